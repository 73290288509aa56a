"""What all charts share: colours, channels, layers and the frame around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import wrap
from typing import Any

from tokensieve.escape import WHOLE_SENTENCE, for_display
from tokensieve.report.blocks import Picture

Specification = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""

Data = dict[str, list[Specification]]
"""Name of a data set → its rows."""

Charts = Mapping[str, Callable[[Picture], Specification]]
"""The name of a chart, as `Picture.chart` has it → the function that draws it."""

INK = "#1c1f24"
MUTED = "#5b626c"
GRID = "#e2e4e8"
PAPER = "#ffffff"
# blue against orange stays apart in all common forms of colour blindness
BLUE = "#0d4a8f"
PALE_BLUE = "#3f8fd6"
GREY = "#9aa0a8"
PALE_GREY = "#c9ced6"
ORANGE = "#e08a3c"
BROWN = "#a64200"
SIDES = {  # the paper's names, for y = ±1
    "completely positive": BLUE,
    "positive": PALE_BLUE,
    "irrelevant": GREY,
    "negative": ORANGE,
    "completely negative": BROWN,
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
LEGEND = {"title": None, "orient": "bottom", "symbolOpacity": 1}
RANK: Specification = {"field": "rank", "type": "ordinal", "axis": None}  # one below the other
BESIDE: Specification = {"align": "left", "dx": 6, "fontSize": 12}  # a name on the right of a bar
TITLE_WIDTH = 52  # letters on a line above a picture of 420 pixels
# paper around letters, wide enough to keep them apart from marks below; by eye
HALO: Specification = {"stroke": PAPER, "strokeWidth": 3.5, "fill": PAPER}
# a wide pale rule for an interval, with a dot on it; by eye
INTERVAL: Specification = {"strokeWidth": 5, "opacity": 0.45, "strokeCap": "round"}
DOT: Specification = {"size": 75, "opacity": 1}
# a bar of a row of 24 pixels, and the line of its interval on it; by eye
ROW_BAR: Specification = {"height": 11, "opacity": 0.9}
# by eye, too
ROW_INTERVAL: Specification = {"color": INK, "strokeWidth": 1.4}
ROW_HEIGHT = 24  # pixels
# the dashed line of an uninformative token
NEUTRAL_LINE: Specification = {
    "data": {"name": "neutral"},
    "mark": {"type": "rule", "color": MUTED, "strokeDash": [4, 4]},
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}


def short_name(label: str, most: int) -> str:
    """A class name as it fits on an axis, cut to `most` letters."""
    name = for_display(label, WHOLE_SENTENCE)
    if len(name) <= most:
        return name
    return f"{name[: most - 1]}…"


def channel(field: str, colours: Mapping[str, str] | None = None, **more: Any) -> Specification:
    """A channel that shows a field: numbers, or names in their colours.

    Layers on one axis give its title and scale once.
    """
    if colours is None:
        return {"field": field, "type": "quantitative", **more}
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": LEGEND} | more


def layer(rows: str, mark: str, style: Specification, **channels: Any) -> Specification:
    """Marks of one kind, one for each row of a data set.

    A channel given only as the name of a field takes its scale and title from other layers.
    """
    encoding = {name: given for name, given in channels.items() if not isinstance(given, str)}
    for name in channels.keys() - encoding.keys():
        field = channels[name]
        if name in ("x2", "y2", "text", "detail"):
            encoding[name] = {"field": field}
        else:
            encoding[name] = channel(field)
    return {"data": {"name": rows}, "mark": {"type": mark, **style}, "encoding": encoding}


def written(rows: str, style: Specification, **channels: Any) -> list[Specification]:
    """Text on top of marks: first its halo, then the letters."""
    return [layer(rows, "text", style | paint, **channels) for paint in (HALO, {"fill": INK})]


def finish(
    layers: list[Specification], data: Data, title: str, subtitle: list[str], height: int = 330
) -> Specification:
    """The whole specification of a chart: its layers from back to front, and its data by name."""
    heading = {
        "text": wrap(title, TITLE_WIDTH) or [""],
        "subtitle": subtitle,
        "anchor": "start",
        "frame": "bounds",
        "offset": 12,
    }
    return {
        "title": heading,
        "width": 420,
        "height": height,
        "background": PAPER,
        "config": CONFIG,
        "layer": layers,
        "datasets": data,
    }
