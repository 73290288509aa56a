"""The charts of audits and of their comparison, and what all charts share: colours, clouds of token types, bins, the frame."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from textwrap import wrap
from typing import Any

import numpy as np
import polars as pl

from tokensieve.escape import for_display
from tokensieve.evidence.importance import Category
from tokensieve.report.blocks import Picture
from tokensieve.task.agreement import Quadrant

Specification = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""

Data = dict[str, list[Specification]]
"""Name of a data set → its rows."""

EXTREMES = ("effect", "posterior_difference", "documents")
INK, MUTED, GRID, PAPER = "#1c1f24", "#5b626c", "#e2e4e8", "#ffffff"
# blue against orange stays apart in all common forms of colour blindness
BLUE, PALE_BLUE, GREY, PALE_GREY, ORANGE, BROWN = (
    "#0d4a8f",
    "#3f8fd6",
    "#9aa0a8",
    "#c9ced6",
    "#e08a3c",
    "#a64200",
)
SIDES = {  # the paper's names, for y = ±1
    "completely positive": BLUE,
    "positive": PALE_BLUE,
    "irrelevant": GREY,
    "negative": ORANGE,
    "completely negative": BROWN,
}
CATEGORIES = {
    Category.ONLY.value: BLUE,
    Category.FOR.value: PALE_BLUE,
    Category.IRRELEVANT.value: GREY,
    Category.AGAINST.value: ORANGE,
    Category.NEVER.value: BROWN,
    Category.RARE.value: PALE_GREY,
}
DARK = {  # what each colour turns into on a dark page
    INK: "#e7e9ec",
    MUTED: "#a4abb5",
    GRID: "#2f343d",
    PAPER: "#181b21",
    BLUE: "#a9d2ff",
    PALE_BLUE: "#4f9be0",
    GREY: "#7d848e",
    PALE_GREY: "#4a515b",
    BROWN: "#ffc48a",
}
CONFIG: Specification = {  # type and colours of every picture
    "font": "Arial, Helvetica, sans-serif",
    "padding": 14,  # letters may be wider than Arial's, by which they are measured
    "view": {"stroke": None},
    "title": {
        "fontSize": 15,
        "color": INK,
        "subtitleFontSize": 12,
        "subtitleColor": MUTED,
        "subtitlePadding": 4,
    },
    "axis": {
        "gridColor": GRID,
        "domain": False,
        "tickColor": GRID,
        "tickCount": 5,
        "titleFontWeight": "normal",
        "titlePadding": 12,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "labelColor": MUTED,
        "titleColor": INK,
    },
    "legend": {"labelFontSize": 12, "labelColor": INK},
}
AXIS = {"format": ",~r", "tickCount": 5}  # of plain numbers
_UNCHANGED = "no significant change"
LEGEND = {"title": None, "orient": "bottom", "symbolOpacity": 1}
RANK: Specification = {"field": "rank", "type": "ordinal", "axis": None}  # one below the other


def _short(label: str, most: int) -> str:
    """A class name as it fits on an axis."""
    name = for_display(label, 400)
    return name if len(name) <= most else f"{name[: most - 1]}…"


def channel(field: str, colours: Mapping[str, str] | None = None, **more: Any) -> Specification:
    """A channel that shows a field: of numbers, or names in their colours. Layers on one axis give its title and scale once."""
    if colours is None:
        return {"field": field, "type": "quantitative", **more}
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": LEGEND} | more


def layer(rows: str, mark: str, style: Specification, **channels: Any) -> Specification:
    """Marks of one kind, one for each row of a data set. A channel given only as the name of a field takes its scale and title from
    other layers."""
    encoding = {name: given for name, given in channels.items() if not isinstance(given, str)}
    for name in channels.keys() - encoding.keys():
        field = channels[name]
        encoding[name] = (
            {"field": field} if name in ("x2", "y2", "text", "detail") else channel(field)
        )
    return {"data": {"name": rows}, "mark": {"type": mark, **style}, "encoding": encoding}


def _written(rows: str, style: Specification, **channels: Any) -> list[Specification]:
    """Text on top of marks: first its halo, then the letters."""
    halo = {"stroke": PAPER, "strokeWidth": 3.5, "fill": PAPER}
    return [layer(rows, "text", style | paint, **channels) for paint in (halo, {"fill": INK})]


# the dashed line of an uninformative token
_NEUTRAL_LINE = layer("neutral", "rule", {"color": MUTED, "strokeDash": [4, 4]}, x="x")


def finish(
    layers: list[Specification], data: Data, title: str, subtitle: list[str], height: int = 330
) -> Specification:
    """The whole specification of a chart: its layers from back to front, and its data by name."""
    headed = {"text": wrap(title, 52) or [""], "subtitle": subtitle}
    return {
        "title": headed | {"anchor": "start", "frame": "bounds", "offset": 12},
        "width": 420,
        "height": height,
        "background": PAPER,
        "config": CONFIG,
        "layer": layers,
        "datasets": data,
    }


def sample_with_extremes(
    tokens: pl.DataFrame, limit: int, columns: tuple[str, ...], seed: int
) -> pl.DataFrame:
    """At most `limit` rows: those at either end of a column, half of them or fewer, and a sample of the rest."""
    if tokens.height <= limit:
        return tokens
    each = limit // (4 * len(columns))
    orders = [np.argsort(tokens[column].to_numpy(), kind="stable") for column in columns]
    extreme = np.unique(
        [place for order in orders for place in (*order[:each], *order[-each:])]
    ).astype(np.int64)
    rest = np.setdiff1d(np.arange(tokens.height), extreme, assume_unique=True)
    sample = np.random.default_rng(seed).choice(rest, limit - len(extreme), replace=False)
    return tokens[np.sort(np.concatenate([extreme, sample]))]


def bins_of(tokens: pl.DataFrame, across: str, up: str, end: float = 1.0) -> pl.DataFrame:
    """Mean and standard deviation of the column `up` in 20 equal bins of `across` ∈ [−end, end], over the rows where both are
    finite: columns x (centre), mean, low, high, types, and run, which is the same for neighbouring bins that hold types."""
    pair = tokens.select(across, up).filter(pl.col(across).is_finite() & pl.col(up).is_finite())
    y, edges = pair[up].to_numpy(), np.linspace(-1, 1, 21)
    where = np.digitize(pair[across].to_numpy() / end, edges[1:-1])
    types = np.bincount(where, minlength=20)
    inside = np.maximum(types, 1)
    mean = np.bincount(where, y, 20) / inside
    deviation = np.sqrt(np.bincount(where, (y - mean[where]) ** 2, 20) / inside)
    centre = (edges[:-1] + edges[1:]) / 2 * end
    run = np.cumsum(types == 0)
    columns = {
        "x": centre,
        "mean": mean,
        "low": mean - deviation,
        "high": mean + deviation,
        "types": types,
        "run": run,
    }
    return pl.DataFrame(columns).filter(pl.col("types") > 0)


def alpha_cloud(
    tokens: pl.DataFrame, of: str, title: str, seed: int
) -> tuple[list[Specification], Data, str]:
    """Token types (columns token, documents, alpha, category (`SIDES`), and the column `of`) as circles with names, the column `of`
    against α: the layers, their data, and how many types are shown."""
    largest = float(tokens["alpha"].abs().max() or 1.0)  # type: ignore[arg-type]
    share = pl.col("alpha") / largest  # under the names that the audit's pictures use
    tokens = tokens.with_columns(effect=share, posterior_difference=share)
    points = sample_with_extremes(tokens, 2_500, (*EXTREMES, of), seed)
    axes: Specification = {"scale": {"zero": False, "padding": 16}, "axis": AXIS}
    x, y = (
        channel("x", title="average signed frequency α", **axes),
        channel("y", title=title, **axes),
    )
    drawn, circles = _cloud(
        points.with_columns(x="alpha", y=of), x, y, max(10, *tokens["documents"]), SIDES
    )
    irrelevant = points.filter(pl.col("category") == "irrelevant")
    if irrelevant.height >= 5:  # one name for all of them, at the one that is furthest from zero
        furthest = irrelevant.top_k(1, by=pl.col(of).abs())
        furthest = furthest.with_columns(token=pl.lit(f"{irrelevant.height} irrelevant types"))
        points = pl.concat([points.filter(pl.col("category") != "irrelevant"), furthest])
    named = [row | {"x": row["x"] * largest} for row in _name_rows(points, of)]
    said = f"{len(drawn):,} of {tokens.height:,} token types shown"
    return [circles, *_point_names()], {"points": drawn, "names": named}, said


def _map(picture: Picture) -> Specification:
    """Token types: the model's value or score against the posterior difference, with bin means and names. Data: tokens (the rows of
    one class of `Audit.tokens`), of ("value" or "score", the vertical axis), classes (all names), label (that of the rows), neutral
    (the posterior difference of an uninformative token), seed and limit (for choosing points), marked (tokens that stand out;
    optional)."""
    data = picture.data
    of, label = data["of"], data["label"]
    columns = ("token", "posterior_difference", of, "documents", "category", "effect", "quadrant")
    # the interactive map's order of names: how far the interval is from an uninformative token, times the logarithm of documents
    away = pl.max_horizontal(
        pl.col("posterior_low") - data["neutral"], data["neutral"] - pl.col("posterior_high"), 0
    )
    finite = data["tokens"].select(*columns, interest=away * pl.col("documents").log1p())
    finite = finite.filter(pl.col("posterior_difference").is_finite() & pl.col(of).is_finite())
    points, limit = finite, data["limit"]
    if (
        finite.height > limit
    ):  # at most half for the predictive types of strongest effect, then a sample of the others
        predictive = pl.col("quadrant").is_in([Quadrant.BOTH.value, Quadrant.DATA.value])
        kept = finite.filter(predictive).top_k(limit // 2, by=pl.col("effect").abs())
        points = pl.concat(
            [
                kept,
                sample_with_extremes(
                    finite.filter(~predictive), limit - kept.height, (of,), data["seed"]
                ),
            ]
        )
    bins = bins_of(finite, "posterior_difference", of)
    marked = finite.filter(pl.col("token").is_in(list(data.get("marked", ()))))
    rows = {
        "bins": bins.to_dicts(),
        "neutral": [{"x": data["neutral"]}],
        "marked": marked.select(x="posterior_difference", y=of).to_dicts(),
        "names": _name_rows(points.with_columns(effect="interest"), of, bins, marked),
    }
    others = [c for c in data["classes"] if c != label]
    low, high = _short(others[0], 14) if len(others) == 1 else "other classes", _short(label, 14)
    title = f"← {low} · P({high}) − P({low}) · {high} →"
    if (
        len(others) > 1
    ):  # class names of many classes are long, and the arrow to the left says which side is whose
        title = f"← {low} · P({high}) − P(others) →"
    up = (
        f"evidence for {_short(label, 22)} in the model ↑"
        if of == "value"
        else "attention (score) ↑"
    )
    x = channel("x", title=title, scale={"domain": [-1, 1], "nice": False})
    y = channel("y", title=up, scale={"zero": False, "padding": 16})
    words = {category: Category(category).of(_short(label, 11)) for category in CATEGORIES}
    rounded = points.with_columns(x=pl.col("posterior_difference").round(3), y=pl.col(of).round(3))
    rows["points"], cloud = _cloud(
        rounded, x, y, max([10, *points["documents"]]), CATEGORIES, words
    )
    layers = [
        cloud,
        layer(
            "bins", "area", {"color": INK, "opacity": 0.13}, x="x", y="low", y2="high", detail="run"
        ),
        layer("bins", "line", {"color": PAPER, "strokeWidth": 5}, x="x", y="mean", detail="run"),
        layer(
            "bins", "line", {"color": MUTED, "strokeDash": [2, 4]}, x="x", y="mean"
        ),  # where there are no tokens
        layer("bins", "line", {"color": INK, "strokeWidth": 2.2}, x="x", y="mean", detail="run"),
        _NEUTRAL_LINE,
        layer(
            "marked",
            "point",
            {"size": 150, "strokeWidth": 2.2, "color": INK, "filled": False},
            x="x",
            y="y",
        ),
        *_point_names(),
    ]
    said = f"{points.height:,} of {data['tokens'].height:,} token types shown"
    return finish(layers, rows, picture.title, [said] * (points.height < data["tokens"].height))


def _top(picture: Picture) -> Specification:
    """Posterior differences of a class's strongest tokens, with intervals; with two classes, those of the other on the left. Data:
    top and other (token, posterior_difference, posterior_low, posterior_high; other is None unless there are two classes), neutral
    (the posterior difference of an uninformative token), subtitle."""
    columns = ("token", "posterior_difference", "posterior_low", "posterior_high")
    rows: list[Specification] = []
    for tokens, sign in ((picture.data["top"], 1), (picture.data["other"], -1)):
        if tokens is not None:  # sign −1 shows them as the mirror class sees them
            rows += [
                {
                    "text": for_display(token, 24),
                    "x": sign * x,
                    "inner": sign * low,
                    "outer": sign * high,
                    "sign": sign,
                }
                for token, x, low, high in tokens.select(columns)[::sign].iter_rows()
            ]
    rows = [{"rank": rank, **row} for rank, row in enumerate(rows)]
    scale = {"domain": [-1, 1], "range": [ORANGE, PALE_BLUE]}
    colour = {"field": "sign", "type": "nominal", "legend": None, "scale": scale}
    title, across = "posterior difference, with 95% interval", {"domain": [-1, 1], "nice": False}
    x = channel("inner", title=title, scale=across)
    thick = {"strokeWidth": 5, "opacity": 0.45, "strokeCap": "round"}
    outwards = {
        "align": {"expr": "datum.sign > 0 ? 'right' : 'left'"},
        "dx": {"expr": "-8 * datum.sign"},
    }
    layers = [
        _NEUTRAL_LINE,
        layer("intervals", "rule", thick, x=x, x2="outer", y=RANK, color=colour),
        layer("intervals", "circle", {"size": 75, "opacity": 1}, x="x", y=RANK, color=colour),
        *_written("intervals", outwards | {"fontSize": 12.5}, x="inner", y=RANK, text="text"),
    ]
    data = {"intervals": rows, "neutral": [{"x": picture.data["neutral"]}]}
    return finish(
        layers, data, picture.title, [picture.data["subtitle"]], height=19 * max(len(rows), 4)
    )


def _slopes(picture: Picture) -> Specification:
    """Changes between two audits: a line from before to after for each token. Data: changes (token, before, after, and kind, which
    sets the colour), names (of the two sides), axis (its title)."""
    before, after = picture.data["names"]
    rows = [
        {"token": for_display(token, 24), "side": side, "y": y, "kind": kind}
        for token, first, last, kind in picture.data["changes"]
        .select("token", "before", "after", "kind")
        .iter_rows()
        for side, y in ((before, first), (after, last))
    ]
    kinds = dict.fromkeys(row["kind"] for row in rows)
    colours = dict(zip(kinds, (PALE_BLUE, ORANGE, MUTED, INK, BLUE), strict=False))
    colours |= {kind: GREY for kind in kinds if kind == _UNCHANGED}
    side = {"field": "side", "type": "nominal", "sort": [before, after]}
    channels: Specification = {
        "x": side | {"title": None, "axis": {"labelAngle": 0}, "scale": {"padding": 0.6}},
        "y": channel("y", title=picture.data["axis"]),
        "detail": "token",
        "color": channel("kind", colours, legend={"title": None, "orient": "bottom", "columns": 3}),
    }
    # of lines that end in one place, in the order in which they begin
    pairs = sorted(
        zip(rows[1::2], rows[::2], strict=True), key=lambda pair: (pair[0]["y"], pair[1]["y"])
    )
    ends = [last for last, _ in pairs]
    changed = [row for row in ends if row["kind"] != _UNCHANGED]
    heights = [row["y"] for row in changed]
    gap = (max(row["y"] for row in rows) - min(row["y"] for row in rows) or 1.0) / max(
        len(ends), 16
    )
    # no name lies on the next: the middle between names pushed up and names pushed down
    pushed_up = accumulate(heights, lambda below, y: max(y, below + gap))
    pushed_down = reversed(
        list(accumulate(reversed(heights), lambda above, y: min(y, above - gap)))
    )
    named = [
        row | {"at": (up + down) / 2}
        for row, up, down in zip(changed, pushed_up, pushed_down, strict=True)
    ]
    # of the lines that stayed as they were, those with room for a name at their end
    for row in sorted(
        (row for row in ends if row["kind"] == _UNCHANGED), key=lambda row: -abs(row["y"])
    ):
        if all(abs(row["y"] - other["at"]) >= gap for other in named):
            named.append(row | {"at": row["y"]})
    layers = [
        layer("changes", "line", {"strokeWidth": 2.2}, **channels),
        layer("changes", "circle", {"size": 60, "opacity": 1}, **channels),
        *_written("ends", {"align": "left", "dx": 9, "fontSize": 12}, x=side, y="at", text="token"),
    ]
    return finish(
        layers, {"changes": rows, "ends": named}, picture.title, [], height=max(260, 18 * len(ends))
    )


def _cloud(
    points: pl.DataFrame,
    x: Specification,
    y: Specification,
    most_documents: int,
    palette: Mapping[str, str],
    words: Mapping[str, str] | None = None,
) -> tuple[list[Specification], Specification]:
    """Circles at the columns x and y, coloured by category, with areas by documents: the rows of "points", and the layer. Rare and
    irrelevant types are drawn first, types in one class only last. `words` are the legend's names of the categories; those without
    a circle are left out."""
    last = ["completely positive", "completely negative", Category.ONLY.value, Category.NEVER.value]
    first = [Category.RARE.value, Category.IRRELEVANT.value]
    depth = pl.col("category").is_in(last).cast(pl.Int8) - pl.col("category").is_in(first)
    drawn = points.sort(depth, maintain_order=True)
    there, words = set(drawn["category"]), words or {name: name for name in palette}
    legend = LEGEND | {
        "columns": 3,
        "columnPadding": 26,
        "symbolSize": 70,
        "labelLimit": 140,
        "symbolOpacity": 0.6,
    }
    present = {words[name]: colour for name, colour in palette.items() if name in there}
    areas = {"type": "log", "domain": [1, most_documents], "range": [4, 160]}
    size, colour = (
        channel("documents", legend=None, scale=areas),
        channel("category", present, legend=legend),
    )
    rows = drawn.select(
        "x", "y", pl.col("documents").clip(lower_bound=1), pl.col("category").replace(words)
    )
    circles = layer(
        "points", "circle", {"opacity": 0.5, "aria": False}, x=x, y=y, size=size, color=colour
    )
    return rows.to_dicts(), circles


def _name_rows(
    points: pl.DataFrame,
    of: str,
    bins: pl.DataFrame | None = None,
    marked: pl.DataFrame | None = None,
) -> list[Specification]:
    """Positions of names: above or below their point, inwards near the edges, clear of each other and of the line of `bins`. Marked
    tokens are named first, in bold, and then fewer others, so that the marked ones stand out."""
    if points.is_empty():
        return []
    strongest = [
        points.top_k(30, by=pl.col(by).abs()).sort(pl.col(by).abs(), descending=True)
        for by in ("effect", of)
    ]
    first = points[:0] if marked is None else marked
    height = float(np.ptp(points[of].to_numpy())) or 1.0
    taken: list[tuple[float, float, float]] = []
    out: list[Specification] = []
    columns = ("token", "posterior_difference", of)
    ranked = pl.concat([frame.select(columns) for frame in (first, *strongest)]).unique(
        "token", maintain_order=True
    )
    for place, (token, x, y) in enumerate(ranked.iter_rows()):
        text = for_display(token, 24)
        half = 0.017 * min(len(text), 24) + 0.02  # of a name: 7 pixels a letter, 210 a unit
        side = "left" if x < -0.6 else "right" if x > 0.6 else "center"
        middle = x + {"left": half, "right": -half, "center": 0.0}[side]
        along = np.linspace(middle - half, middle + half, 9)
        means = (
            None if bins is None or bins.height < 2 else np.interp(along, bins["x"], bins["mean"])
        )
        for under in (False, True):
            at = y + (-0.05 if under else 0.045) * height
            near = any(
                abs(middle - a) < half + b and abs(at - c) < 0.06 * height for a, c, b in taken
            )
            if near or (means is not None and bool((np.abs(means - at) < 0.035 * height).any())):
                continue
            taken.append((middle, at, half))
            weight = "bold" if place < first.height or first.is_empty() else "normal"
            out.append(
                {"x": x, "y": y, "side": side, "under": under, "text": text, "weight": weight}
            )
            break
        if len(out) == (14 if first.is_empty() else 10):  # more would hide the points
            break
    return out


def _point_names() -> list[Specification]:
    """Each name over or under its point."""
    place = {
        "align": {"expr": "datum.side"},
        "dy": {"expr": "datum.under ? 19 : -12"},
    }  # clear of a ring
    return _written(
        "names",
        place | {"fontSize": 12, "fontWeight": {"expr": "datum.weight"}},
        x="x",
        y="y",
        text="text",
    )


CHARTS = {"audit-map": _map, "audit-top": _top, "audit-slopes": _slopes}
