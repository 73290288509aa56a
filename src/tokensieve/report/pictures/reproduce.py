"""The charts of `reproduce`: panels of bins or lines, and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tokensieve.report.blocks import Picture
from tokensieve.report.pictures.frame import (
    BLUE,
    BROWN,
    CONFIG,
    GREY,
    INK,
    LEGEND,
    MUTED,
    ORANGE,
    PALE_BLUE,
    PAPER,
    Charts,
    Data,
    Specification,
    channel,
    finish,
    layer,
)

OUTCOMES = {"every criterion met": BLUE, "not met": ORANGE}
LINE_COLOURS = {"range": [BLUE, BROWN, PALE_BLUE, ORANGE, GREY, INK]}
LINE_LEGEND = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 300}
DOTS: Specification = {"filled": True, "opacity": 1}
# Styles of the panels; widths are pixels, and all were chosen by eye.
TYPE_POINTS: Specification = {"color": MUTED, "opacity": 0.25, "size": 14, "aria": False}
SEED_BAND: Specification = {"color": BLUE, "opacity": 0.22}  # the bins' range over seeds
DEVIATION: Specification = {"color": BLUE, "strokeWidth": 1.6, "opacity": 0.7}  # within a bin
PAPER_LINE: Specification = {"color": BROWN, "strokeDash": [6, 4], "strokeWidth": 1.6}  # dashed
LINE: Specification = {"strokeWidth": 2.3, "point": True}  # one of several, with its points
LINE_BAND: Specification = {"opacity": 0.15}  # pale, as several may overlap
PANEL_SIZE = {"width": 360, "height": 260}  # pixels
PANEL_SPACE = 72  # pixels between neighbours, for the axis of the right one
PAPER_AXIS_SPACE = 130  # and for the paper's axis, which stands on the right of a panel


class Panel(NamedTuple):
    """One panel of a picture, and its data sets, whose names begin with its place."""

    specification: Specification
    data: Data


def panels(picture: Picture) -> Specification:
    """Rows of panels that share a title.

    Data: rows, each a list of panels of kind bins or lines.
    """
    datasets: Data = {}
    rows = []
    for i, row in enumerate(picture.data["rows"]):
        drawn = []
        for j, panel in enumerate(row):
            made = _panel(panel, f"{i}-{j}-")
            drawn.append(made.specification | PANEL_SIZE)
            datasets |= made.data
        has_paper = any("paper" in panel for panel in row)
        space = PAPER_AXIS_SPACE if has_paper else PANEL_SPACE
        rows.append({"hconcat": drawn, "spacing": space, "bounds": "flush"})
    return {
        "config": CONFIG,
        "background": PAPER,
        "title": {
            "text": picture.title,
            "subtitle": picture.caption,
            "anchor": "start",
            "offset": 14,
        },
        "vconcat": rows,
        "datasets": datasets,
    }


def _panel(panel: Mapping[str, Any], prefix: str) -> Panel:
    if panel["kind"] == "bins":
        return _bins(panel, prefix)
    return _lines(panel, prefix)


def verdicts(picture: Picture) -> Specification:
    """A mark per experiment and seed, filled where every criterion was met.

    Data: runs (experiment, seed, outcome).
    """
    runs = picture.data["runs"]
    legend = LEGEND | {"columnPadding": 50}
    shape = {
        "field": "outcome",
        "type": "nominal",
        "scale": {"domain": list(OUTCOMES), "range": ["circle", "cross"]},
        "legend": legend,
    }
    marks = layer(
        "runs",
        "point",
        {"filled": True, "size": 170, "opacity": 1},
        x={"field": "seed", "type": "ordinal", "title": "seed", "axis": {"labelAngle": 0}},
        y={
            "field": "experiment",
            "type": "nominal",
            "title": None,
            "sort": None,
            "axis": {"grid": True},
        },
        color=channel("outcome", OUTCOMES, legend=legend),
        shape=shape,
    )
    n_experiments = len({run["experiment"] for run in runs})
    height = max(120, 28 * n_experiments)
    return finish([marks], {"runs": runs}, picture.title, [], height=height)


def _bins(panel: Mapping[str, Any], prefix: str) -> Panel:
    """Bin means and deviations with their range over seeds, before a sample of the types."""
    points = f"{prefix}points"
    bins = f"{prefix}bins"
    data = {points: panel["points"], bins: panel["bins"]}
    x = channel("x", title=panel["x"], scale={"nice": False, "padding": 12})
    ours = _our_layers(points, bins, x, title=f"ours: {panel['y']}")
    specification: Specification = {
        "title": f"{panel['title']} {panel['y']}".strip(),
        "layer": ours,
    }
    if "paper" in panel:
        paper = f"{prefix}paper"
        data[paper] = panel["paper"]
        specification["layer"] = [{"layer": ours}, _paper_layers(paper, x)]
        specification["resolve"] = {"scale": {"y": "independent"}}
    return Panel(specification, data)


def _our_layers(points: str, bins: str, x: Specification, title: str) -> list[Specification]:
    """Points, band, bars and line on one scale, which all layers share because of one title."""

    def y(field: str) -> Specification:
        return channel(field, title=title, scale={"zero": False})

    filled = {
        "field": "few",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [False, True], "range": [BLUE, PAPER]},
    }
    dots = DOTS | {"stroke": BLUE, "size": 36}
    return [
        layer(points, "circle", TYPE_POINTS, x=x, y=y("y")),
        layer(bins, "area", SEED_BAND, x=x, y=y("least"), y2="most"),
        layer(bins, "rule", DEVIATION, x=x, y=y("low"), y2="high"),
        layer(bins, "line", {"color": BLUE, "strokeWidth": 2.5}, x=x, y=y("mean")),
        layer(bins, "point", dots, x=x, y=y("mean"), fill=filled),
    ]


def _paper_layers(paper: str, x: Specification) -> Specification:
    """The paper's means, dashed, on an axis of their own on the right."""
    axis = {"title": "the paper (dashed)", "titleColor": BROWN, "orient": "right", "grid": False}
    y = channel("y", axis=axis, scale={"zero": False})
    diamonds = DOTS | {"color": BROWN, "shape": "diamond", "size": 44}
    layers = [
        layer(paper, "line", PAPER_LINE, x=x, y=y),
        layer(paper, "point", diamonds, x=x, y=y),
    ]
    return {"layer": layers}


def _lines(panel: Mapping[str, Any], prefix: str) -> Panel:
    """Lines of y against x, one for each value of `by`: means over seeds with their range."""
    name = f"{prefix}lines"
    scale = {"type": "log" if panel["log"] else "linear", "nice": False, "padding": 12}
    x = channel("x", title=panel["x"], scale=scale)
    band_colour = {"field": "by", "type": "nominal", "scale": LINE_COLOURS, "legend": None}
    line_colour = band_colour | {"legend": LINE_LEGEND}
    y_scale = {"zero": False, "padding": 12}
    low = channel("least", title=panel["y"], scale=y_scale)
    mean = channel("mean", title=panel["y"], scale=y_scale)
    layers = [
        layer(name, "area", LINE_BAND, x=x, y=low, y2="most", color=band_colour),
        layer(name, "line", LINE, x=x, y=mean, color=line_colour),
    ]
    resolve = {"legend": {"color": "independent"}}
    return Panel({"layer": layers, "resolve": resolve}, {name: panel["lines"]})


CHARTS: Charts = {"reproduce-panels": panels, "reproduce-verdicts": verdicts}
