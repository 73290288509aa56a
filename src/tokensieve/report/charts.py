"""The audit's pictures: Vega-Lite specifications, and the same drawn as SVG and PNG without a browser or a network.

Every number drawn comes from the audit's token table; bin means use all token types, also where only some are drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import altair as alt
import numpy as np
import polars as pl
import vl_convert

from tokensieve.auditing.agreement import Quadrant
from tokensieve.escape import shown
from tokensieve.evidence.importance import Category
from tokensieve.files import csv_table
from tokensieve.report.points import EXTREMES, bins_of, thin
from tokensieve.wording import plain, signed, subscripts

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

POINTS_PER_PICTURE = 2_500
POINTS_IN_ALL = 1_000  # of an audit's pictures together: the page holds them for readers without scripts
PICTURED_CLASSES = 8
BARS = 12
LABELS = 14

INK, MUTED, GRID, PAPER = "#1c1f24", "#5b626c", "#e2e4e8", "#ffffff"
MANY = 5  # irrelevant types from which on they are named together
SIDES = {  # the paper's names, for y = ±1; blue against orange stays apart in all common forms of colour blindness
    "completely positive": "#0d4a8f",
    "positive": "#3f8fd6",
    "irrelevant": "#9aa0a8",
    "negative": "#e08a3c",
    "completely negative": "#a64200",
}
CATEGORIES = {
    Category.ONLY.value: "#0d4a8f",
    Category.FOR.value: "#3f8fd6",
    Category.IRRELEVANT.value: "#9aa0a8",
    Category.AGAINST.value: "#e08a3c",
    Category.NEVER.value: "#a64200",
    Category.RARE.value: "#c9ced6",
}
TURNED = [4, 3, 2, 1, 0, 5]  # the place of each category, for the class at the other side
COLOURS = CATEGORIES | {  # and of the quadrants: attended is dark or warm, ignored is pale
    "carries the label, attended": "#0d4a8f",
    "carries the label, ignored": "#3f8fd6",
    "attended without evidence": "#e08a3c",
    "neither": "#9aa0a8",
}
DARK = {
    INK: "#e7e9ec",
    MUTED: "#a4abb5",
    GRID: "#2f343d",
    PAPER: "#181b21",
    "#0d4a8f": "#a9d2ff",
    "#3f8fd6": "#4f9be0",
    "#9aa0a8": "#7d848e",
    "#c9ced6": "#4a515b",
    "#a64200": "#ffc48a",
}
_NUMBER = r"(-?[0-9]+(?:\.[0-9])?)[0-9]*"  # to one decimal
_CIRCLE = re.compile(
    rf'<path transform="translate\({_NUMBER},{_NUMBER}\)" d="M{_NUMBER},0A[^MZ"]*"( fill="#[0-9a-f]*")'
    r' stroke-width="2"( opacity="[0-9.]*")/>'
)
_NAME_SIDES: tuple[tuple[int, Literal["left", "right"], int], ...] = ((1, "right", -8), (-1, "left", 8))
_HALO_AND_LETTERS: tuple[dict[str, Any], ...] = ({"stroke": PAPER, "strokeWidth": 3.5, "fill": PAPER}, {"fill": INK})


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        name: file name without its ending, ASCII.
        of: what it shows: for an audit "value", "score" or "top" (tokens).
        label: the class that it shows; empty where it shows no class.
        spec: Vega-Lite specification with its data in it.
        caption: what is drawn, and how many of how many token types.
        description: what is to be seen, for people who do not see it.
    """

    name: str
    of: str
    label: str
    spec: dict[str, Any]
    caption: str
    description: str

    @cached_property
    def _svg(self) -> str:
        return subscripts(str(vl_convert.vegalite_to_svg(self.spec, allowed_base_urls=[])))

    def svg(self, follow_theme: bool = False) -> str:
        """The picture as SVG text, drawn once; with `follow_theme` it turns dark where the reader prefers dark."""
        text = self._svg
        if not follow_theme:
            return text
        rules = "".join(
            f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in DARK.items()
        )
        text = _CIRCLE.sub(r'<circle cx="\1" cy="\2" r="\3"\4\5/>', text)  # half of what Vega writes for one
        start = text.index(">") + 1
        return f"{text[:start]}<style>@media (prefers-color-scheme:dark){{{rules}}}</style>{text[start:]}"

    def png(self) -> bytes:
        """The picture as PNG, twice the size of the SVG's units."""
        return vl_convert.svg_to_png(self._svg, scale=2)

    def pdf(self) -> bytes:
        """The picture as PDF, for a paper or a talk."""
        return vl_convert.svg_to_pdf(self._svg)

    def data(self) -> pl.DataFrame:
        """What is drawn: a row per mark, in the column `part` the layer that it belongs to."""
        parts = [
            pl.DataFrame(rows, infer_schema_length=None).select(pl.lit(name).alias("part"), pl.all())
            for name, rows in self.spec["datasets"].items() if rows
        ]  # fmt: skip
        return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame({"part": []})


def pictured_classes(audit: Audit) -> tuple[str, ...]:
    """The classes that get pictures: the second of two (the first is its mirror), else the largest in class order."""
    if len(audit.classes) == 2:
        return audit.classes[1:]
    largest = sorted(audit.classes, key=lambda c: -audit.class_documents[c])[:PICTURED_CLASSES]
    return tuple(c for c in audit.classes if c in largest)


def draw(audit: Audit) -> list[Picture]:
    """For each pictured class: value against posterior difference, score against it, top tokens."""
    labels = pictured_classes(audit)
    limit = POINTS_IN_ALL // (2 * len(labels))
    out = []
    for label in labels:
        suffix = "" if len(audit.classes) == 2 else f"-class-{audit.classes.index(label) + 1}"
        tokens = audit.tokens.filter(pl.col("class") == label)
        out += [_scatter(audit, tokens, label, of, limit, of + suffix) for of in ("value", "score")]
        out.append(_top(audit, tokens, label, "top" + suffix))
    return out


def pictures(audit: Audit) -> dict[str, bytes]:
    """File name → content, each picture of the audit as SVG and as PNG (twice its size in pixels)."""
    return drawn(draw(audit))


def drawn(these: list[Picture], for_print: bool = False) -> dict[str, bytes]:
    """File name → content of each picture, as SVG and as PNG; `for_print` also as PDF, with its data as CSV."""
    out: dict[str, bytes] = {}
    for picture in these:
        out[f"{picture.name}.svg"] = picture.svg().encode()
        out[f"{picture.name}.png"] = picture.png()
        if for_print:
            out[f"{picture.name}.pdf"] = picture.pdf()
            out[f"{picture.name}.csv"] = csv_table(picture.data())
    return out


def _spread(tokens: pl.DataFrame, of: str) -> pl.DataFrame:
    """The tokens of strongest effect and of extreme `of` whose names do not run into each other when written."""
    ranked = pl.concat(
        [
            tokens.top_k(30, by=pl.col("effect").abs()).sort(pl.col("effect").abs(), descending=True),
            tokens.top_k(30, by=pl.col(of).abs()).sort(pl.col(of).abs(), descending=True),
        ]
    ).unique("token", maintain_order=True)
    height = float(np.ptp(tokens[of].to_numpy())) or 1.0
    taken: list[tuple[float, float, float]] = []
    rows: list[int] = []
    for i, (token, x, y) in enumerate(ranked.select("token", "posterior_difference", of).iter_rows()):
        half = 0.017 * min(len(shown(token, 20)), 24) + 0.02  # of a name: 7 pixels a letter, 210 a unit
        if all(abs(x - a) > half + b or abs(y - c) > 0.06 * height for a, c, b in taken):
            taken.append((x, y, half))
            rows.append(i)
    return ranked[rows[:LABELS]]


def _scatter(audit: Audit, tokens: pl.DataFrame, label: str, of: str, limit: int, name: str) -> Picture:
    columns = ("token", "posterior_difference", of, "documents", "category", "effect", "quadrant")
    finite = tokens.select(columns).filter(pl.col("posterior_difference").is_finite() & pl.col(of).is_finite())
    named = {category: Category(category).of(shown(label, 24)) for category in CATEGORIES}
    points = strongest(finite, limit, of, audit.seed)
    bins = bins_of(finite, "posterior_difference", of)
    data = {
        "points": _point_rows(points, of, named),
        "bins": bins.to_dicts(),
        "neutral": [{"x": audit.neutral[label]}],
        "names": name_rows(points, of),
    }
    top = max([10, *(row["documents"] for row in data["points"])])
    low, high = directions(audit.classes, label)
    across = f"← {low} · posterior difference · {high} →"
    up = f"value: speaks for {high} ↑" if of == "value" else "score: draws attention ↑"
    chart = _map(
        alt.Scale(domain=[-1, 1], nice=False),
        alt.Scale(zero=False, padding=16),
        across,
        up,
        top,
        {named[c]: colour for c, colour in CATEGORIES.items()},
    )
    caption = f"{points.height:,} of {tokens.height:,} token types shown"
    subtitle = [f"class {shown(label, 40)}", caption]
    if points.height < tokens.height:
        caption += ": the strongest, and a sample of the rest"
    spec = finish(chart, data, f"{of.capitalize()} against posterior difference", subtitle)
    return Picture(name, of, label, spec, caption, _describe(of, label, bins))


def strongest(tokens: pl.DataFrame, limit: int, of: str, seed: int) -> pl.DataFrame:
    """At most `limit` rows: at most half for the types of strongest effect that carry the label, then a sample of the others.

    Args:
        tokens: the rows of one class.
        limit: most rows.
        of: the column up, of whose ends the sample holds some.
        seed: of the sample.
    """
    if tokens.height <= limit:
        return tokens
    carries = pl.col("quadrant").is_in([Quadrant.BOTH.value, Quadrant.DATA.value])
    kept = tokens.filter(carries).top_k(limit // 2, by=pl.col("effect").abs())
    return pl.concat([kept, thin(tokens.filter(~carries), limit - kept.height, (of,), seed)])


def directions(classes: tuple[str, ...], label: str) -> tuple[str, str]:
    """What the two ends of an axis mean: the other class, or all others, and this one."""
    other = next(c for c in classes if c != label) if len(classes) == 2 else "other classes"
    return shown(other, 24), shown(label, 24)


def _map(x: alt.Scale, y: alt.Scale, across: str, up: str, top: int = 10, palette: dict[str, str] = CATEGORIES) -> Any:
    """Circles of token types, bin means with their band, the neutral line, and names."""
    circles = cloud(alt.X("x:Q", title=across, scale=x), alt.Y("y:Q", title=up, scale=y), top, palette)
    return alt.layer(circles, *_mean_lines(), _neutral(), *names())


def _describe(of: str, label: str, bins: pl.DataFrame) -> str:
    head = f"Scatter of {of} against posterior difference for class {shown(label, 40)}."
    if bins.is_empty():
        return head + " No token types."
    parts = [f"{plain(row['mean'])} at {plain(row['x'])}" for row in bins[[0, bins.height // 2, -1]].to_dicts()]
    return f"{head} Bin means of {of}: {', '.join(parts)}."


def back_to_front(points: pl.DataFrame) -> pl.DataFrame:
    """The order of drawing: undecided and irrelevant types first, those in one class only or never in it last."""
    last = ["completely positive", "completely negative", Category.ONLY.value, Category.NEVER.value]
    first = [Category.RARE.value, Category.IRRELEVANT.value]
    depth = pl.col("category").is_in(last).cast(pl.Int8) - pl.col("category").is_in(first)
    return points.sort(depth, maintain_order=True)


def _point_rows(points: pl.DataFrame, of: str, named: dict[str, str]) -> list[dict[str, Any]]:
    drawn_rows = back_to_front(points).select(
        x=pl.col("posterior_difference").round(3),
        y=pl.col(of).round(3),
        documents=pl.col("documents").clip(lower_bound=1),
        category=pl.col("category").replace(named),
    )
    return drawn_rows.to_dicts()


def name_rows(points: pl.DataFrame, of: str) -> list[dict[str, Any]]:
    """Where names are written, and to which side: inwards near the edges."""
    if points.is_empty():
        return []
    x = pl.col("posterior_difference")
    side = pl.when(x < -0.6).then(pl.lit("left")).when(x > 0.6).then(pl.lit("right")).otherwise(pl.lit("center"))
    rows = _spread(points, of).select(x, y=of, side=side, token="token").iter_rows()
    return [{"x": a, "y": b, "side": where, "text": shown(token, 20)} for a, b, where, token in rows]


def cloud(x: alt.X, y: alt.Y, most_documents: int, palette: dict[str, str] = CATEGORIES) -> Any:
    """Circles of the rows in "points", coloured by category, their area by documents."""
    legend = alt.Legend(title=None, orient="bottom", columns=3, columnPadding=40, symbolOpacity=1, symbolSize=70)
    colours = alt.Scale(domain=list(palette), range=list(palette.values()))
    areas = alt.Scale(type="log", domain=[1, most_documents], range=[4, 160])
    return (
        alt.Chart(alt.NamedData("points"))
        .mark_circle(opacity=0.5, aria=False)
        .encode(
            x=x,
            y=y,
            size=alt.Size("documents:Q", legend=None, scale=areas),
            color=alt.Color("category:N", legend=legend, scale=colours),
        )
    )


@cache
def _mean_lines() -> tuple[alt.Chart, ...]:
    base, mean = alt.Chart(alt.NamedData("bins")).encode(x=alt.X("x:Q")), alt.Y("mean:Q")
    return (
        base.mark_area(color=INK, opacity=0.13).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_line(color=PAPER, strokeWidth=5).encode(y=mean),
        base.mark_line(color=INK, strokeWidth=2.2).encode(y=mean),
    )


@cache
def _neutral() -> alt.Chart:
    """The dashed line of a token that says nothing."""
    base = alt.Chart(alt.NamedData("neutral")).mark_rule(color=MUTED, strokeDash=[4, 4])
    rule: alt.Chart = base.encode(x=alt.X("x:Q"))
    return rule


@cache
def names() -> tuple[alt.Chart, ...]:
    """Each name over its point; first its halo, then its letters."""
    layers: list[alt.Chart] = []
    for side in ("left", "center", "right"):
        base = alt.Chart(alt.NamedData("names")).transform_filter(alt.datum.side == side)
        base = base.encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("text:N"))
        style: dict[str, Any] = {"align": side, "dy": -9, "fontSize": 12, "fontWeight": "bold"}
        layers += [base.mark_text(**style, **paint) for paint in _HALO_AND_LETTERS]
    return tuple(layers)


def _top(audit: Audit, tokens: pl.DataFrame, label: str, name: str) -> Picture:
    """Posterior differences of the class's top tokens with intervals; with two classes the other's too, on the left."""
    rows = _interval_rows(audit.top(label, BARS), 1)
    subtitle = f"class {shown(label, 40)}"
    if len(audit.classes) == 2:
        subtitle = f"blue speaks for {shown(label, 30)}, orange for {shown(audit.classes[0], 30)}"
        rows += _interval_rows(audit.top(audit.classes[0], BARS), -1)
    rows = [{"rank": rank, **row} for rank, row in enumerate(rows)]
    caption = f"{len(rows):,} of {tokens.height:,} token types shown"
    data = {"intervals": rows, "neutral": [{"x": audit.neutral[label]}]}
    spec = finish(_intervals(), data, "Top tokens", [subtitle, caption], height=19 * max(len(rows), 4))
    listing = ", ".join(f"{row['text']} {signed(row['x'])}" for row in rows)
    description = f"Posterior difference of the top tokens for class {shown(label, 40)}, with intervals: {listing}."
    return Picture(name, "top", label, spec, caption, description)


def _interval_rows(top: pl.DataFrame, sign: int) -> list[dict[str, Any]]:
    """Each token's name, posterior difference and interval; sign −1 shows them as the mirror class sees them."""
    columns = ("token", "posterior_difference", "posterior_low", "posterior_high")
    return [
        {"text": shown(token, 24), "x": sign * x, "near": sign * low, "far": sign * high, "sign": sign}
        for token, x, low, high in top.select(columns).iter_rows()
    ][::sign]


@cache
def _intervals() -> Any:
    """A dot with its interval for each token, the name at the cautious end."""
    base = alt.Chart(alt.NamedData("intervals")).encode(y=alt.Y("rank:O", axis=None))
    signs = alt.Scale(domain=[-1, 1], range=[SIDES["negative"], SIDES["positive"]])
    colour = alt.Color("sign:N", legend=None, scale=signs)
    across = alt.Scale(domain=[-1, 1], nice=False)
    x = alt.X("near:Q", title="posterior difference, with 95% interval", scale=across)
    return alt.layer(
        _neutral(),
        base.mark_rule(strokeWidth=5, opacity=0.45, strokeCap="round").encode(x=x, x2=alt.X2("far:Q"), color=colour),
        base.mark_circle(size=75, opacity=1).encode(x=alt.X("x:Q"), color=colour),
        *(
            base.transform_filter(alt.datum.sign == sign)
            .mark_text(align=align, dx=shift, fontSize=12.5, **paint)
            .encode(x=alt.X("near:Q"), text=alt.Text("text:N"))
            for sign, align, shift in _NAME_SIDES
            for paint in _HALO_AND_LETTERS
        ),
    )


def alignment_picture(tokens: pl.DataFrame, slope: float, expected: float, named: str, r2: float, seed: int) -> Picture:
    """(E¹−E⁰)ᵀv against α, with the line that Lemma 4.1 expects.

    Args:
        tokens: token, documents, alpha, category, alignment.
        slope, r2: of the fitted line.
        expected: slope of the expected line.
        named: the expected slope in words.
        seed: of the choice of points.
    """
    points, largest = scaled(tokens, "alignment", seed)
    data = cloud_data(points, "alignment", largest)
    ends = [float(end) for end in (tokens["alpha"].min(), tokens["alpha"].max())]  # type: ignore[arg-type]
    data["line"] = [{"x": x, "y": expected * x} for x in ends]
    y = alt.Y("y:Q", title="movement of the embedding along v", scale=alt.Scale(zero=False, padding=16), axis=axis())
    line = alt.Chart(alt.NamedData("line")).encode(x="x:Q", y="y:Q")
    palette = SIDES if tokens["category"].is_in(list(SIDES)).all() else CATEGORIES
    layers = [cloud(x_alpha(), y, max(10, *tokens["documents"]), palette)]
    chart = alt.layer(line.mark_line(color=MUTED, strokeDash=[5, 4]), *layers, *names())
    caption = f"{points.height:,} of {tokens.height:,} token types shown"
    said = f"slope {slope:.4g}, expected {named} = {expected:.4g} (dashed); R² {r2:.4f}"
    spec = finish(chart, data, "One step aligns embeddings with v", [said, caption])
    return Picture(
        "alignment", "alignment", "", spec, caption, f"Movement of each embedding along v against α: {said}."
    )


def scaled(tokens: pl.DataFrame, of: str, seed: int) -> tuple[pl.DataFrame, float]:
    """At most POINTS_PER_PICTURE rows, with α scaled to ±1 under the column names that the audit's pictures use, and the scale."""
    largest = float(tokens["alpha"].abs().max() or 1.0)  # type: ignore[arg-type]
    x = pl.col("alpha") / largest
    return thin(
        tokens.with_columns(effect=x, posterior_difference=x), POINTS_PER_PICTURE, (*EXTREMES, of), seed
    ), largest


def cloud_data(points: pl.DataFrame, of: str, scale: float) -> dict[str, list[dict[str, Any]]]:
    rows = back_to_front(points).select(
        x="alpha", y=of, documents=pl.col("documents").clip(lower_bound=1), category="category"
    )
    written = [row | {"x": row["x"] * scale} for row in name_rows(_one_cloud(points, of), of)]
    return {"points": rows.to_dicts(), "names": written}


def _one_cloud(points: pl.DataFrame, of: str) -> pl.DataFrame:
    """The points with one name for all irrelevant types, at the one of largest `of`, where there are many of them."""
    irrelevant = pl.col("category") == "irrelevant"
    few = points.filter(irrelevant)
    if few.height < MANY:
        return points
    named = few.top_k(1, by=pl.col(of).abs()).with_columns(token=pl.lit(f"{few.height} irrelevant types"))
    return pl.concat([points.filter(~irrelevant), named])


def x_alpha() -> alt.X:
    return alt.X("x:Q", title="average signed frequency α", scale=alt.Scale(zero=False, padding=16), axis=axis())


def axis() -> alt.Axis:
    return alt.Axis(format=",~r", tickCount=5)


def finish(
    chart: Any, data: dict[str, list[dict[str, Any]]], title: str, subtitle: list[str], height: int = 330
) -> dict[str, Any]:
    """The chart's specification with its data, which joins last: Altair would check and copy every row.

    Nor does Altair check or copy the specification, which takes longer than all else here: the tests check it, of every picture.
    """
    spec: dict[str, Any] = chart.to_dict(validate=False)
    headed = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="group", offset=12).to_dict(validate=False)
    frame = {"width": 420, "height": height, "background": PAPER, "title": headed}
    return {**spec, **frame, "config": {**spec["config"], **config()}, "datasets": data}


@cache
def config() -> dict[str, Any]:
    """Type and colours of every picture."""
    text = {"labelFontSize": 12, "titleFontSize": 13, "labelColor": MUTED, "titleColor": INK}
    return {
        "font": "Arial, Helvetica, sans-serif",
        "padding": 8,
        "view": {"stroke": None},
        "title": {
            "fontSize": 15, "color": INK, "subtitleFontSize": 12, "subtitleColor": MUTED, "subtitlePadding": 4,
        },
        "axis": {
            "gridColor": GRID, "domain": False, "tickColor": GRID, "tickCount": 5, "titleFontWeight": "normal",
            "titlePadding": 12, **text,
        },
        "legend": {"labelFontSize": 12, "labelColor": INK},
    }  # fmt: skip
