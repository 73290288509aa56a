"""The charts of audits and of their comparison."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import altair as alt
import polars as pl

from tokensieve.auditing.agreement import Quadrant
from tokensieve.blocks import Picture
from tokensieve.escape import shown
from tokensieve.evidence.importance import Category
from tokensieve.report.pictures import Specification, chart
from tokensieve.report.pictures.style import (
    CATEGORIES,
    INK,
    MUTED,
    ORANGE,
    PALE_BLUE,
    PAPER,
    back_to_front,
    cloud,
    finish,
    mean_lines,
    name_layers,
    name_rows,
    neutral_line,
)
from tokensieve.report.points import bins_of, thin

_NAME_SIDES: tuple[tuple[int, Literal["left", "right"], int], ...] = ((1, "right", -8), (-1, "left", 8))
_HALO_AND_LETTERS: tuple[dict[str, Any], ...] = ({"stroke": PAPER, "strokeWidth": 3.5, "fill": PAPER}, {"fill": INK})


@chart("audit-map")
def token_map(picture: Picture) -> Specification:
    """Token types: the model's value or score against the posterior difference, with bin means and names.

    Data:
        tokens: the rows of one class of `Audit.tokens`.
        of: "value" or "score", the column up.
        classes, label: all class names, and the one of the rows.
        neutral: the posterior difference of an uninformative token.
        seed: of the sample of points.
        limit: most points.
        marked: tokens that stand out; may be missing.
    """
    data = picture.data
    of, label = data["of"], data["label"]
    columns = ("token", "posterior_difference", of, "documents", "category", "effect", "quadrant")
    finite = data["tokens"].select(columns).filter(pl.col("posterior_difference").is_finite() & pl.col(of).is_finite())
    named = {category: Category(category).of(shown(label, 24)) for category in CATEGORIES}
    points = _strongest(finite, data["limit"], of, data["seed"])
    bins = bins_of(finite, "posterior_difference", of)
    marked = finite.filter(pl.col("token").is_in(list(data.get("marked", ()))))
    rows = {
        "points": _point_rows(points, of, named),
        "bins": bins.to_dicts(),
        "neutral": [{"x": data["neutral"]}],
        "marked": marked.select(x="posterior_difference", y=of).to_dicts(),
        "names": name_rows(marked if marked.height else points, of, bins),
    }
    low, high = directions(data["classes"], label)
    x = alt.X("x:Q", title=f"← {low} · posterior difference · {high} →", scale=alt.Scale(domain=[-1, 1], nice=False))
    up = f"value: evidence for {high} ↑" if of == "value" else "score: attention ↑"
    y = alt.Y("y:Q", title=up, scale=alt.Scale(zero=False, padding=16))
    most = max([10, *(row["documents"] for row in rows["points"])])
    circles = cloud(x, y, most, {named[category]: colour for category, colour in CATEGORIES.items()})
    rings = alt.Chart(alt.NamedData("marked")).mark_point(size=150, strokeWidth=2.2, color=INK, filled=False)
    layers = alt.layer(circles, *mean_lines(), neutral_line(), rings.encode(x="x:Q", y="y:Q"), *name_layers())
    return finish(layers, rows, picture.title, [f"{points.height:,} of {data['tokens'].height:,} token types shown"])


@chart("audit-top")
def top_tokens(picture: Picture) -> Specification:
    """Posterior differences of the strongest tokens of a class with intervals; of two classes the other's too, on the left.

    Data:
        top: token, posterior_difference, posterior_low, posterior_high of the class's strongest tokens.
        other: the same of the other of two classes; None with more classes.
        neutral: the posterior difference of an uninformative token.
        subtitle: a line below the title.
    """
    rows = _interval_rows(picture.data["top"], 1)
    if picture.data.get("other") is not None:
        rows += _interval_rows(picture.data["other"], -1)
    rows = [{"rank": rank, **row} for rank, row in enumerate(rows)]
    data = {"intervals": rows, "neutral": [{"x": picture.data["neutral"]}]}
    return finish(_intervals(), data, picture.title, [picture.data["subtitle"]], height=19 * max(len(rows), 4))


@chart("audit-slopes")
def slopes(picture: Picture) -> Specification:
    """What changed between two audits: a line from before to after for each token.

    Data:
        changes: token, before, after and kind (which gives the colour).
        names: of the two sides.
        axis: what is drawn.
    """
    before, after = picture.data["names"]
    changes = picture.data["changes"]
    rows = [
        {"token": shown(token, 24), "side": side, "y": y, "kind": kind}
        for token, first, last, kind in changes.select("token", "before", "after", "kind").iter_rows()
        for side, y in ((before, first), (after, last))
    ]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    colours = alt.Scale(domain=kinds, range=[PALE_BLUE, ORANGE, MUTED, INK, "#0d4a8f"][: len(kinds)])
    base = alt.Chart(alt.NamedData("changes")).encode(
        x=alt.X("side:N", title=None, sort=[before, after], axis=alt.Axis(labelAngle=0), scale=alt.Scale(padding=0.6)),
        y=alt.Y("y:Q", title=picture.data["axis"]),
        detail="token:N",
        color=alt.Color("kind:N", scale=colours, legend=alt.Legend(title=None, orient="bottom", columns=3)),
    )
    ends = _apart([row for row in rows if row["side"] == after])
    names = alt.Chart(alt.NamedData("ends")).encode(x=alt.X("side:N", sort=[before, after]), y="at:Q", text="token:N")
    layers = alt.layer(
        base.mark_line(strokeWidth=2.2),
        base.mark_circle(size=60, opacity=1),
        *(names.mark_text(align="left", dx=9, fontSize=12, **paint) for paint in _HALO_AND_LETTERS),
    )
    return finish(layers, {"changes": rows, "ends": ends}, picture.title, [], height=max(260, 18 * len(ends)))


@chart("audit-reliability")
def reliability(picture: Picture) -> Specification:
    """How often a prediction is correct against its probability; on the dashed line both agree.

    Data:
        bins: probability, accuracy, low, high and documents of each bin.
    """
    rows = picture.data["bins"].to_dicts()
    ends = alt.Scale(domain=[0, 1], nice=False)
    share = alt.Axis(format=".0%", tickCount=5)
    base = alt.Chart(alt.NamedData("bins")).encode(
        x=alt.X("probability:Q", title="probability of the prediction", scale=ends, axis=share)
    )
    up = alt.Y("accuracy:Q", title="fraction correct", scale=ends, axis=share)
    ideal = alt.Chart(alt.NamedData("ideal")).mark_line(color=MUTED, strokeDash=[4, 4]).encode(x="x:Q", y="x:Q")
    size = alt.Size("documents:Q", legend=None, scale=alt.Scale(type="log", range=[20, 180]))
    layers = alt.layer(
        ideal,
        base.mark_rule(color=PALE_BLUE, strokeWidth=2).encode(y=alt.Y("low:Q", title="fraction correct"), y2="high:Q"),
        base.mark_circle(color=PALE_BLUE, opacity=1).encode(y=up, size=size),
    )
    return finish(layers, {"bins": rows, "ideal": [{"x": 0.0}, {"x": 1.0}]}, picture.title, [])


def directions(classes: tuple[str, ...], label: str) -> tuple[str, str]:
    """What the two ends of an axis mean: the other class, or all others, and this one."""
    other = next(c for c in classes if c != label) if len(classes) == 2 else "other classes"
    return shown(other, 24), shown(label, 24)


def _strongest(tokens: pl.DataFrame, limit: int, of: str, seed: int) -> pl.DataFrame:
    """At most `limit` rows: at most half for the predictive types of strongest effect, then a sample of the others."""
    if tokens.height <= limit:
        return tokens
    predictive = pl.col("quadrant").is_in([Quadrant.BOTH.value, Quadrant.DATA.value])
    kept = tokens.filter(predictive).top_k(limit // 2, by=pl.col("effect").abs())
    return pl.concat([kept, thin(tokens.filter(~predictive), limit - kept.height, (of,), seed)])


def _point_rows(points: pl.DataFrame, of: str, named: dict[str, str]) -> list[dict[str, Any]]:
    drawn = back_to_front(points).select(
        x=pl.col("posterior_difference").round(3),
        y=pl.col(of).round(3),
        documents=pl.col("documents").clip(lower_bound=1),
        category=pl.col("category").replace(named),
    )
    return drawn.to_dicts()


def _interval_rows(top: pl.DataFrame, sign: int) -> list[dict[str, Any]]:
    """Each token's name, posterior difference and interval; sign −1 shows them as the mirror class sees them."""
    columns = ("token", "posterior_difference", "posterior_low", "posterior_high")
    return [
        {"text": shown(token, 24), "x": sign * x, "near": sign * low, "far": sign * high, "sign": sign}
        for token, x, low, high in top.select(columns).iter_rows()
    ][::sign]


@cache
def _intervals() -> Any:
    """A dot with its interval for each token, the name at the conservative end."""
    base = alt.Chart(alt.NamedData("intervals")).encode(y=alt.Y("rank:O", axis=None))
    colour = alt.Color("sign:N", legend=None, scale=alt.Scale(domain=[-1, 1], range=[ORANGE, PALE_BLUE]))
    across = alt.Scale(domain=[-1, 1], nice=False)
    x = alt.X("near:Q", title="posterior difference, with 95% interval", scale=across)
    return alt.layer(
        neutral_line(),
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


def _apart(ends: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ends of lines with a height for each name, so that no name lies on the next."""
    ordered = sorted(ends, key=lambda row: row["y"])
    spread = (ordered[-1]["y"] - ordered[0]["y"]) or 1.0 if ordered else 1.0
    step, at = spread / max(len(ordered), 16), float("-inf")
    out = []
    for row in ordered:
        at = max(row["y"], at + step)
        out.append(row | {"at": at})
    return out
