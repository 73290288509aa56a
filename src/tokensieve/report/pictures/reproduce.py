"""Pictures of the paper's experiments: panels of bins over token types, with the paper's means beside ours, and lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokensieve.blocks import Picture
from tokensieve.report.pictures import Specification, chart
from tokensieve.report.pictures.style import INK, MUTED, config

_OURS, _THEIRS = "#0d4a8f", "#a64200"
_LINES = [_OURS, _THEIRS, "#3f8fd6", "#e08a3c", "#9aa0a8", INK]


@chart("reproduce-panels")
def panels(picture: Picture) -> Specification:
    """Rows of panels that share a title; each panel's data sets begin with its place."""
    datasets: dict[str, Any] = {}
    rows = []
    for i, row in enumerate(picture.data["rows"]):
        made = []
        for j, panel in enumerate(row):
            draw = _bins if panel["kind"] == "bins" else _lines
            spec, data = draw(panel, f"{i}-{j}-")
            made.append(spec | {"width": 360, "height": 260})
            datasets |= data
        # axes of neighbours need space: the paper's stands on the right
        rows.append(
            {"hconcat": made, "spacing": 130 if any("paper" in panel for panel in row) else 72, "bounds": "flush"}
        )
    title = {"text": picture.title, "subtitle": picture.caption, "anchor": "start", "offset": 14}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "config": config(),
        "background": "#ffffff",
        "title": title,
        "vconcat": rows,
        "datasets": datasets,
    }


def _bins(panel: Mapping[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A sample of the types, the range of the bin means over seeds, means and deviations; the paper's means on the right axis."""
    data = {f"{prefix}points": panel["points"], f"{prefix}bins": panel["bins"]}
    x = {"field": "x", "type": "quantitative", "title": panel["x"], "scale": {"nice": False, "padding": 12}}

    def layer(source: str, mark: dict[str, Any], y: str, to: str = "", **more: Any) -> dict[str, Any]:
        # one scale for points, bars and line: all have the same title
        up = {"field": y, "type": "quantitative", "title": f"ours: {panel['y']}", "scale": {"zero": False}}
        encoding = {"x": x, "y": up, **({"y2": {"field": to}} if to else {}), **more}
        return {"data": {"name": prefix + source}, "mark": mark, "encoding": encoding}

    fill = {
        "field": "few",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [False, True], "range": [_OURS, "#ffffff"]},
    }
    ours = [
        layer("points", {"type": "circle", "color": MUTED, "opacity": 0.25, "size": 14, "aria": False}, "y"),
        layer("bins", {"type": "area", "color": _OURS, "opacity": 0.22}, "least", "most"),
        layer("bins", {"type": "rule", "color": _OURS, "strokeWidth": 1.6, "opacity": 0.7}, "low", "high"),
        layer("bins", {"type": "line", "color": _OURS, "strokeWidth": 2.5}, "mean"),
        layer("bins", {"type": "point", "stroke": _OURS, "filled": True, "opacity": 1, "size": 36}, "mean", fill=fill),
    ]
    spec: dict[str, Any] = {"title": f"{panel['title']} {panel['y']}".strip(), "layer": ours}
    if "paper" in panel:
        data[f"{prefix}paper"] = panel["paper"]
        axis = {"title": "the paper (dashed)", "titleColor": _THEIRS, "orient": "right", "grid": False}
        up = {"field": "y", "type": "quantitative", "axis": axis, "scale": {"zero": False}}
        dashed = {"type": "line", "color": _THEIRS, "strokeDash": [6, 4], "strokeWidth": 1.6}
        dots = {"type": "point", "color": _THEIRS, "shape": "diamond", "filled": True, "opacity": 1, "size": 44}
        theirs = {
            "data": {"name": f"{prefix}paper"},
            "encoding": {"x": x, "y": up},
            "layer": [{"mark": dashed}, {"mark": dots}],
        }
        spec |= {"layer": [{"layer": ours}, theirs], "resolve": {"scale": {"y": "independent"}}}
    return spec, data


def _lines(panel: Mapping[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lines of y against x, one for each value of `by`: means over seeds with their range."""
    scale = {"type": "log" if panel["log"] else "linear", "nice": False, "padding": 12}
    legend = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 300}
    shared = {
        "x": {"field": "x", "type": "quantitative", "title": panel["x"], "scale": scale},
        "color": {"field": "by", "type": "nominal", "scale": {"range": _LINES}, "legend": legend},
    }
    up = {"type": "quantitative", "title": panel["y"], "scale": {"zero": False, "padding": 12}}
    band = {"mark": {"type": "area", "opacity": 0.15}}
    unnamed = shared["color"] | {"legend": None}
    band |= {"encoding": {"y": {"field": "least", **up}, "y2": {"field": "most"}, "color": unnamed}}
    line = {"mark": {"type": "line", "strokeWidth": 2.3, "point": True}}
    line |= {"encoding": {"y": {"field": "mean", **up}, "color": shared["color"]}}
    spec = {"data": {"name": f"{prefix}lines"}, "encoding": {"x": shared["x"]}, "layer": [band, line]}
    spec["resolve"] = {"legend": {"color": "independent"}}
    return spec, {f"{prefix}lines": panel["lines"]}
