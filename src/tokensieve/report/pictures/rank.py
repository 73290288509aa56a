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
    Charts,
    Specification,
    channel,
    finish,
    layer,
)

COLOURS = {"held fixed": PALE_BLUE, "not held fixed": GREY}
ROOM = 1.5  # of the axis, for names beside the longest bar


def features(picture: Picture) -> Specification:
    """A bar with its interval for each feature, on an axis with zero on it.

    Data: features (rank, text, x, low, high, kind).
    """
    rows = picture.data["features"]
    highest = max((row["high"] for row in rows), default=1.0)
    lowest = min((row["low"] for row in rows), default=0.0)
    domain = [min(lowest, 0.0), ROOM * max(highest, 0.1)]
    title = "log-odds of winning, with 95% interval"
    x = channel("x", title=title, scale={"domain": domain, "nice": False})
    present = {row["kind"]: COLOURS[row["kind"]] for row in rows}
    color = channel("kind", present)
    zero = {"color": MUTED, "strokeDash": [4, 4]}
    layers = [
        layer("zero", "rule", zero, x="x"),
        layer("features", "bar", {"height": 11, "opacity": 0.9}, x=x, y=RANK, color=color),
        layer("features", "rule", {"color": INK, "strokeWidth": 1.4}, x="low", x2="high", y=RANK),
        layer("features", "text", BESIDE | {"color": INK}, x="high", y=RANK, text="text"),
    ]
    datasets = {"features": rows, "zero": [{"x": 0.0}]}
    return finish(layers, datasets, picture.title, [], height=24 * max(len(rows), 4))


CHARTS: Charts = {"rank-features": features}
