"""The charts of `diagnose`."""

from __future__ import annotations

from tokensieve.report.blocks import Picture
from tokensieve.report.pictures.frame import (
    BESIDE,
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE_BLUE,
    PALE_GREY,
    RANK,
    ROW_BAR,
    ROW_HEIGHT,
    ROW_INTERVAL,
    Charts,
    Specification,
    channel,
    finish,
    layer,
)

# the colours of the table of words, by the values of its column `status`
USE_COLOURS = {
    "predicts the label": BLUE,
    "helps in context": PALE_BLUE,
    "used without support": ORANGE,
    "cannot tell": PALE_GREY,
}
WIDTH = 420  # pixels, as `finish` sets it
LETTER = 9  # pixels of the widest letters beside a bar
LONGEST_NAME = 24  # letters
USE_LEGEND = {
    "title": None,
    "orient": "bottom",
    "columns": 2,
    "labelLimit": 260,
    "columnPadding": 60,
}
BAND: Specification = {"opacity": 0.15}  # of intervals, below the lines; by eye


def use(picture: Picture) -> Specification:
    """A bar with its interval for each of some words.

    Data: axis (its title); words (rank, text, x, low, high, and data: what the data say of each).
    """
    rows = picture.data["words"]
    present = {row["data"]: USE_COLOURS.get(row["data"], GREY) for row in rows}
    scale = {"domain": [0, _axis_end(rows)], "nice": False}
    x = channel("x", title=picture.data["axis"], scale=scale)
    color = channel("data", present, legend=USE_LEGEND)
    layers = [
        layer("words", "bar", ROW_BAR, x=x, y=RANK, color=color),
        layer("words", "rule", ROW_INTERVAL, x="low", x2="high", y=RANK),
        layer("words", "text", BESIDE | {"color": INK}, x="high", y=RANK, text="text"),
    ]
    height = ROW_HEIGHT * max(len(rows), 4)
    subtitle = ["with 95% intervals"]
    return finish(layers, {"words": rows}, picture.title, subtitle, height=height)


def _axis_end(rows: list[Specification]) -> float:
    """The end of the axis at which the longest name fits beside the longest bar."""
    highest = max((row["high"] for row in rows), default=1.0)
    letters = max((len(row["text"]) for row in rows), default=0)
    name_width = LETTER * min(letters, LONGEST_NAME)
    return float(highest * WIDTH / (WIDTH - name_width))


def curve(picture: Picture) -> Specification:
    """Figures from model to model.

    Data: kinds (the names of the figures); models (order, model, of: which figure, y, low, high).
    """
    x = {
        "field": "model",
        "type": "nominal",
        "sort": {"field": "order"},
        "title": None,
        "axis": {"labelAngle": -30},
    }
    color = channel("of", dict(zip(picture.data["kinds"], (BLUE, PALE_BLUE, ORANGE), strict=False)))
    low = channel("low", title=None, scale={"zero": False})
    layers = [
        layer("models", "area", BAND, x=x, color=color, y=low, y2="high"),
        layer("models", "line", {"strokeWidth": 2}, x=x, color=color, y="y"),
        layer("models", "circle", {"size": 50, "stroke": INK}, x=x, color=color, y="y"),
    ]
    return finish(layers, {"models": picture.data["models"]}, picture.title, [picture.caption])


CHARTS: Charts = {"diagnose-use": use, "diagnose-curve": curve}
