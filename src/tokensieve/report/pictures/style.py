"""What all charts share: colours, axes, clouds of token types with names, bin means, and the frame around them."""

from __future__ import annotations

from functools import cache
from textwrap import wrap
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from tokensieve.escape import shown
from tokensieve.evidence.importance import Category
from tokensieve.report.pictures import Specification
from tokensieve.report.points import EXTREMES, thin

POINTS_PER_PICTURE = 2_500
LABELS = 14
MANY = 5  # irrelevant types from which on they are named together
INK, MUTED, GRID, PAPER = "#1c1f24", "#5b626c", "#e2e4e8", "#ffffff"
BLUE, PALE_BLUE, GREY, PALE_GREY, ORANGE, BROWN = "#0d4a8f", "#3f8fd6", "#9aa0a8", "#c9ced6", "#e08a3c", "#a64200"
SIDES = {  # the paper's names, for y = ±1; blue against orange stays apart in all common forms of colour blindness
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
_HALO_AND_LETTERS: tuple[dict[str, Any], ...] = ({"stroke": PAPER, "strokeWidth": 3.5, "fill": PAPER}, {"fill": INK})


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


def back_to_front(points: pl.DataFrame) -> pl.DataFrame:
    """The order of drawing: undecided and irrelevant types first, those in one class only or never in it last."""
    last = ["completely positive", "completely negative", Category.ONLY.value, Category.NEVER.value]
    first = [Category.RARE.value, Category.IRRELEVANT.value]
    depth = pl.col("category").is_in(last).cast(pl.Int8) - pl.col("category").is_in(first)
    return points.sort(depth, maintain_order=True)


def name_rows(points: pl.DataFrame, of: str, bins: pl.DataFrame | None = None) -> list[dict[str, Any]]:
    """Where names are written: over or under their point, inwards near the edges, off each other and off the line of `bins`.

    Args:
        points: token, posterior_difference, effect and the column `of`.
        of: the column up.
        bins: the means that are drawn as a line (`tokensieve.report.points.bins_of`).
    """
    if points.is_empty():
        return []
    ranked = pl.concat(
        [points.top_k(30, by=pl.col(by).abs()).sort(pl.col(by).abs(), descending=True) for by in ("effect", of)]
    ).unique("token", maintain_order=True)
    height = float(np.ptp(points[of].to_numpy())) or 1.0
    taken: list[tuple[float, float, float]] = []
    out: list[dict[str, Any]] = []
    for token, x, y in ranked.select("token", "posterior_difference", of).iter_rows():
        text = shown(token, 20)
        half = 0.017 * min(len(text), 24) + 0.02  # of a name: 7 pixels a letter, 210 a unit
        side = "left" if x < -0.6 else "right" if x > 0.6 else "center"
        middle = x + {"left": half, "right": -half, "center": 0.0}[side]
        for under in (False, True):
            at = y + (-0.05 if under else 0.045) * height
            if any(abs(middle - a) < half + b and abs(at - c) < 0.06 * height for a, c, b in taken):
                continue
            if _crossed(bins, middle, half, at, 0.035 * height):
                continue
            taken.append((middle, at, half))
            out.append({"x": x, "y": y, "side": side, "under": under, "text": text})
            break
        if len(out) == LABELS:
            break
    return out


def _crossed(bins: pl.DataFrame | None, middle: float, half: float, at: float, margin: float) -> bool:
    """Whether the line of means runs through a name."""
    if bins is None or bins.height < 2:
        return False
    along = np.linspace(middle - half, middle + half, 9)
    line = np.interp(along, bins["x"].to_numpy(), bins["mean"].to_numpy())
    return bool((np.abs(line - at) < margin).any())


@cache
def name_layers() -> tuple[alt.Chart, ...]:
    """Each name over or under its point; first its halo, then its letters."""
    layers: list[alt.Chart] = []
    for side in ("left", "center", "right"):
        for under in (False, True):
            mine = (alt.datum.side == side) & (alt.datum.under == under)
            base = alt.Chart(alt.NamedData("names")).transform_filter(mine)
            base = base.encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("text:N"))
            style: dict[str, Any] = {"align": side, "dy": 14 if under else -9, "fontSize": 12, "fontWeight": "bold"}
            layers += [base.mark_text(**style, **paint) for paint in _HALO_AND_LETTERS]
    return tuple(layers)


def axis() -> alt.Axis:
    """An axis of plain numbers."""
    return alt.Axis(format=",~r", tickCount=5)


def x_alpha() -> alt.X:
    """α across."""
    return alt.X("x:Q", title="average signed frequency α", scale=alt.Scale(zero=False, padding=16), axis=axis())


def cloud_data(points: pl.DataFrame, of: str, scale: float) -> dict[str, list[dict[str, Any]]]:
    """The data of `cloud` and `name_layers` against α, for points of `scaled` and its scale."""
    rows = back_to_front(points).select(
        x="alpha", y=of, documents=pl.col("documents").clip(lower_bound=1), category="category"
    )
    named = [row | {"x": row["x"] * scale} for row in name_rows(_one_cloud(points, of), of)]
    return {"points": rows.to_dicts(), "names": named}


def _one_cloud(points: pl.DataFrame, of: str) -> pl.DataFrame:
    """The points with one name for all irrelevant types, at the one of largest `of`, where there are many of them."""
    irrelevant = pl.col("category") == "irrelevant"
    few = points.filter(irrelevant)
    if few.height < MANY:
        return points
    named = few.top_k(1, by=pl.col(of).abs()).with_columns(token=pl.lit(f"{few.height} irrelevant types"))
    return pl.concat([points.filter(~irrelevant), named])


def scaled(tokens: pl.DataFrame, of: str, seed: int) -> tuple[pl.DataFrame, float]:
    """At most POINTS_PER_PICTURE rows, with α scaled to ±1 under the column names that the audit's pictures use, and the scale."""
    largest = float(tokens["alpha"].abs().max() or 1.0)  # type: ignore[arg-type]
    x = pl.col("alpha") / largest
    return thin(
        tokens.with_columns(effect=x, posterior_difference=x), POINTS_PER_PICTURE, (*EXTREMES, of), seed
    ), largest


def finish(
    chart: Any, data: dict[str, list[dict[str, Any]]], title: str, subtitle: list[str], height: int = 330
) -> Specification:
    """The chart's specification with its data, which joins last: Altair would check and copy every row.

    Nor does Altair check or copy the specification, which takes longer than all else here: the tests check it, of every picture.
    """
    spec: Specification = chart.to_dict(validate=False)
    headed = alt.TitleParams(
        wrap(title, 44) or [""], subtitle=subtitle, anchor="start", frame="group", offset=12
    ).to_dict(validate=False)
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
            **text,
        },
        "legend": {"labelFontSize": 12, "labelColor": INK},
    }


@cache
def mean_lines() -> tuple[alt.Chart, ...]:
    """The bin means with their band, from the data "bins"."""
    base, mean = alt.Chart(alt.NamedData("bins")).encode(x=alt.X("x:Q")), alt.Y("mean:Q")
    return (
        base.mark_area(color=INK, opacity=0.13).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_line(color=PAPER, strokeWidth=5).encode(y=mean),
        base.mark_line(color=INK, strokeWidth=2.2).encode(y=mean),
    )


@cache
def neutral_line() -> alt.Chart:
    """The dashed line of an uninformative token, from the data "neutral"."""
    base = alt.Chart(alt.NamedData("neutral")).mark_rule(color=MUTED, strokeDash=[4, 4])
    rule: alt.Chart = base.encode(x=alt.X("x:Q"))
    return rule
