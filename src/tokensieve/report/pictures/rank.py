"""The chart of `rank`: what each feature is worth."""

from __future__ import annotations

from tokensieve.report.blocks import Picture
from tokensieve.report.pictures.frame import (
    BESIDE,
    GREY,
    INK,
    MUTED,
    PALE_BLUE,
    RANK,
    ROW_BAR,
    ROW_HEIGHT,
    ROW_INTERVAL,
    Charts,
    Data,
    Specification,
    channel,
    finish,
    layer,
)

COLOURS = {"held fixed": PALE_BLUE, "not held fixed": GREY}
NAME_SPACE = 1.5  # times the longest bar: its axis, so that names fit beside the bars
SHORTEST_AXIS = 0.1  # log-odds: bars of nothing do not fill the picture
ZERO_LINE = {"color": MUTED, "strokeDash": [4, 4]}


def features(picture: Picture) -> Specification:
    """A bar with its interval for each feature, on an axis with zero on it.

    Data: features (rank, text, x, low, high, kind).
    """
    rows = picture.data["features"]
    highest = max((row["high"] for row in rows), default=1.0)
    lowest = min((row["low"] for row in rows), default=0.0)
    domain = [min(lowest, 0.0), NAME_SPACE * max(highest, SHORTEST_AXIS)]
    title = "log-odds of winning, with 95% interval"
    x = channel("x", title=title, scale={"domain": domain, "nice": False})
    color = channel("kind", {row["kind"]: COLOURS[row["kind"]] for row in rows})
    layers = [
        layer("zero", "rule", ZERO_LINE, x="x"),
        layer("features", "bar", ROW_BAR, x=x, y=RANK, color=color),
        layer("features", "rule", ROW_INTERVAL, x="low", x2="high", y=RANK),
        layer("features", "text", BESIDE | {"color": INK}, x="high", y=RANK, text="text"),
    ]
    datasets: Data = {"features": rows, "zero": [{"x": 0.0}]}
    return finish(layers, datasets, picture.title, [], height=ROW_HEIGHT * max(len(rows), 4))


CHARTS: Charts = {"rank-features": features}
