"""Pictures of the paper's experiments: panels of bins over token types, with the paper's means beside ours, and lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokensieve.blocks import Picture
from tokensieve.report.pictures import Specification
from tokensieve.report.pictures.audit import BLUE, BROWN, CONFIG, GREY, INK, MUTED, ORANGE, PALE_BLUE, Data


def _panels(picture: Picture) -> Specification:
    """Rows of panels that share a title; each panel's data sets begin with its place."""
    datasets: Data = {}
    rows = []
    for i, row in enumerate(picture.data["rows"]):
        made = []
        for j, panel in enumerate(row):
            spec, data = (_bins if panel["kind"] == "bins" else _lines)(panel, f"{i}-{j}-")
            made.append(spec | {"width": 360, "height": 260})
            datasets |= data
        # axes of neighbours need space: the paper's stands on the right
        space = 130 if any("paper" in panel for panel in row) else 72
        rows.append({"hconcat": made, "spacing": space, "bounds": "flush"})
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "config": CONFIG,
        "background": "#ffffff",
        "title": {"text": picture.title, "subtitle": picture.caption, "anchor": "start", "offset": 14},
        "vconcat": rows,
        "datasets": datasets,
    }


def _bins(panel: Mapping[str, Any], prefix: str) -> tuple[Specification, Data]:
    """A sample of the types, the range of the bin means over seeds, means and deviations; the paper's means on the right axis."""
    data = {f"{prefix}points": panel["points"], f"{prefix}bins": panel["bins"]}
    x = {"field": "x", "type": "quantitative", "title": panel["x"], "scale": {"nice": False, "padding": 12}}

    def layer(source: str, y: str, mark: Specification, **more: Specification) -> Specification:
        # one scale for points, bars and line: all have the same title
        up = {"field": y, "type": "quantitative", "title": f"ours: {panel['y']}", "scale": {"zero": False}}
        return {"data": {"name": prefix + source}, "mark": mark, "encoding": {"x": x, "y": up, **more}}

    colours = {"domain": [False, True], "range": [BLUE, "#ffffff"]}
    fill = {"field": "few", "type": "nominal", "legend": None, "scale": colours}
    dots = {"type": "point", "filled": True, "opacity": 1}
    ours = [
        layer("points", "y", {"type": "circle", "color": MUTED, "opacity": 0.25, "size": 14, "aria": False}),
        layer("bins", "least", {"type": "area", "color": BLUE, "opacity": 0.22}, y2={"field": "most"}),
        layer("bins", "low", {"type": "rule", "color": BLUE, "strokeWidth": 1.6, "opacity": 0.7}, y2={"field": "high"}),
        layer("bins", "mean", {"type": "line", "color": BLUE, "strokeWidth": 2.5}),
        layer("bins", "mean", dots | {"stroke": BLUE, "size": 36}, fill=fill),
    ]
    spec: Specification = {"title": f"{panel['title']} {panel['y']}".strip(), "layer": ours}
    if "paper" in panel:
        data[f"{prefix}paper"] = panel["paper"]
        axis = {"title": "the paper (dashed)", "titleColor": BROWN, "orient": "right", "grid": False}
        up = {"field": "y", "type": "quantitative", "axis": axis, "scale": {"zero": False}}
        dashed = {"type": "line", "color": BROWN, "strokeDash": [6, 4], "strokeWidth": 1.6}
        diamonds = dots | {"color": BROWN, "shape": "diamond", "size": 44}
        theirs = {"data": {"name": f"{prefix}paper"}, "encoding": {"x": x, "y": up}}
        theirs["layer"] = [{"mark": dashed}, {"mark": diamonds}]
        spec |= {"layer": [{"layer": ours}, theirs], "resolve": {"scale": {"y": "independent"}}}
    return spec, data


def _lines(panel: Mapping[str, Any], prefix: str) -> tuple[Specification, Data]:
    """Lines of y against x, one for each value of `by`: means over seeds with their range."""
    scale = {"type": "log" if panel["log"] else "linear", "nice": False, "padding": 12}
    colours = {"range": [BLUE, BROWN, PALE_BLUE, ORANGE, GREY, INK]}
    color = {"field": "by", "type": "nominal", "scale": colours, "legend": None}
    legend = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 300}
    up = {"type": "quantitative", "title": panel["y"], "scale": {"zero": False, "padding": 12}}
    low, mean = {"field": "least", **up}, {"field": "mean", **up}
    band = {"mark": {"type": "area", "opacity": 0.15}, "encoding": {"y": low, "y2": {"field": "most"}, "color": color}}
    line = {"mark": {"type": "line", "strokeWidth": 2.3, "point": True}}
    line["encoding"] = {"y": mean, "color": color | {"legend": legend}}
    x = {"field": "x", "type": "quantitative", "title": panel["x"], "scale": scale}
    spec = {"data": {"name": f"{prefix}lines"}, "encoding": {"x": x}, "layer": [band, line]}
    return spec | {"resolve": {"legend": {"color": "independent"}}}, {f"{prefix}lines": panel["lines"]}


CHARTS = {"reproduce-panels": _panels}
