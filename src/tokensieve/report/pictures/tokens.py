"""Clouds of token types, their bin means and their names: what charts of tokens share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from tokensieve.escape import for_display
from tokensieve.evidence.importance import Category
from tokensieve.report.pictures.frame import (
    AXIS,
    BLUE,
    BROWN,
    GREY,
    LEGEND,
    ORANGE,
    PALE_BLUE,
    PALE_GREY,
    SIDES,
    Data,
    Specification,
    channel,
    layer,
    written,
)

EXTREMES = ("effect", "posterior_difference", "documents")
CATEGORIES = {
    Category.ONLY.value: BLUE,
    Category.FOR.value: PALE_BLUE,
    Category.IRRELEVANT.value: GREY,
    Category.AGAINST.value: ORANGE,
    Category.NEVER.value: BROWN,
    Category.RARE.value: PALE_GREY,
}
DRAWN_FIRST = (Category.RARE.value, Category.IRRELEVANT.value)
DRAWN_LAST = (
    "completely positive",
    "completely negative",
    Category.ONLY.value,
    Category.NEVER.value,
)
N_BINS = 20
MAX_POINTS = 2_500  # more circles hide each other
MIN_IRRELEVANT = 5  # from this many on, irrelevant types share one name
SMALLEST_SCALE = 10  # documents: sizes of circles are comparable in small data, too

# Sizes of names in units of the axes: 7 pixels a letter, 210 pixels a unit of x.
LETTER_WIDTH = 0.017  # half of a letter's
NAME_PADDING = 0.02  # 4 pixels on either side of a name
LONGEST_NAME = 24  # letters
# Distances in heights of the picture, 330 pixels; by eye, for letters of 12 pixels.
NAME_ABOVE = 0.045  # the middle of a name over its point
NAME_BELOW = -0.05  # and under it
MIN_NAME_DISTANCE = 0.06  # between the middles of two names
MIN_LINE_DISTANCE = 0.035  # between a name and the line of bin means
EDGE = 0.6  # names of points beyond it are written inwards
N_CANDIDATES = 30  # by effect, and by height
MAX_NAMES = 14  # more would hide the points
MAX_NAMES_BESIDE_MARKED = 10  # fewer, so that the marked ones stand out
# distances and sizes by eye
CATEGORY_LEGEND = LEGEND | {
    "columns": 3,
    "columnPadding": 26,
    "symbolSize": 70,
    "labelLimit": 140,
    "symbolOpacity": 0.6,
}
# by eye: circles that overlap stay apart; 2,500 of them are not read aloud
CIRCLE_STYLE: Specification = {"opacity": 0.5, "aria": False}


def sample_with_extremes(
    tokens: pl.DataFrame, limit: int, columns: tuple[str, ...], seed: int
) -> pl.DataFrame:
    """Choose at most `limit` rows: those at either end of a column, at most half, and a sample."""
    if tokens.height <= limit:
        return tokens
    n_each = limit // (4 * len(columns))
    ends = []
    for column in columns:
        order = np.argsort(tokens[column].to_numpy(), kind="stable")
        ends += [order[:n_each], order[len(order) - n_each :]]
    extreme = np.unique(np.concatenate(ends)).astype(np.int64)
    others = np.setdiff1d(np.arange(tokens.height), extreme, assume_unique=True)
    sample = np.random.default_rng(seed).choice(others, limit - len(extreme), replace=False)
    return tokens[np.sort(np.concatenate([extreme, sample]))]


def bins_of(tokens: pl.DataFrame, across: str, up: str) -> pl.DataFrame:
    """Mean and standard deviation of a column in 20 equal bins of another.

    Args:
        tokens: rows where either column is not finite are left out.
        across: the column whose bins are taken, within [−1, 1].
        up: the column that is averaged.

    Returns:
        A row per bin with types: x (centre), mean, low and high (one standard deviation away),
        types, and run, which is the same for neighbouring bins that hold types.
    """
    is_finite = pl.col(across).is_finite() & pl.col(up).is_finite()
    rows = tokens.select(across, up).filter(is_finite)
    y = rows[up].to_numpy()
    edges = np.linspace(-1, 1, N_BINS + 1)
    bin_of_type = np.digitize(rows[across].to_numpy(), edges[1:-1])
    n_types = np.bincount(bin_of_type, minlength=N_BINS)
    mean = np.bincount(bin_of_type, y, N_BINS) / np.maximum(n_types, 1)
    squares = np.bincount(bin_of_type, (y - mean[bin_of_type]) ** 2, N_BINS)
    deviation = np.sqrt(squares / np.maximum(n_types, 1))
    columns = {
        "x": (edges[:-1] + edges[1:]) / 2,
        "mean": mean,
        "low": mean - deviation,
        "high": mean + deviation,
        "types": n_types,
        "run": np.cumsum(n_types == 0),
    }
    return pl.DataFrame(columns).filter(pl.col("types") > 0)


class Cloud(NamedTuple):
    """Layers of a chart from back to front, their data sets, and a note on what is shown."""

    layers: list[Specification]
    data: Data
    note: str


def alpha_cloud(tokens: pl.DataFrame, column: str, title: str, seed: int) -> Cloud:
    """Token types as circles with names: a column against α.

    Args:
        tokens: token, documents, alpha, category (`SIDES`), and the column.
        column: on the vertical axis.
        title: of the vertical axis.
        seed: for choosing points.
    """
    largest = float(tokens["alpha"].abs().max() or 1.0)  # type: ignore[arg-type]
    relative = pl.col("alpha") / largest  # under the names that the audit's pictures use
    tokens = tokens.with_columns(effect=relative, posterior_difference=relative)
    points = sample_with_extremes(tokens, MAX_POINTS, (*EXTREMES, column), seed)
    axes: Specification = {"scale": {"zero": False, "padding": 16}, "axis": AXIS}
    circles = circle_rows(points.with_columns(x="alpha", y=column))
    circle_layer = circles_of(
        circles,
        channel("x", title="average signed frequency α", **axes),
        channel("y", title=title, **axes),
        max(SMALLEST_SCALE, *tokens["documents"]),
        SIDES,
    )
    names = name_rows(_irrelevant_as_one(points, column), column)
    for row in names:
        row["x"] *= largest
    return Cloud(
        layers=[circle_layer, *point_names()],
        data={"points": circles.to_dicts(), "names": names},
        note=f"{circles.height:,} of {tokens.height:,} token types shown",
    )


def _irrelevant_as_one(points: pl.DataFrame, column: str) -> pl.DataFrame:
    """One name for all irrelevant types, at the one that is furthest from zero."""
    is_irrelevant = pl.col("category") == "irrelevant"
    irrelevant = points.filter(is_irrelevant)
    if irrelevant.height < MIN_IRRELEVANT:
        return points
    furthest = irrelevant.top_k(1, by=pl.col(column).abs())
    furthest = furthest.with_columns(token=pl.lit(f"{irrelevant.height} irrelevant types"))
    return pl.concat([points.filter(~is_irrelevant), furthest])


def circle_rows(points: pl.DataFrame, words: Mapping[str, str] | None = None) -> pl.DataFrame:
    """x, y, documents and category of each circle, from back to front.

    Rare and irrelevant types are drawn first, types in one class only last. `words` are the names
    of the categories in the legend.
    """
    category = pl.col("category")
    depth = category.is_in(DRAWN_LAST).cast(pl.Int8) - category.is_in(DRAWN_FIRST)
    if words is not None:
        category = category.replace(words)
    documents = pl.col("documents").clip(lower_bound=1)  # the scale of areas is logarithmic
    return points.sort(depth, maintain_order=True).select("x", "y", documents, category)


def circles_of(
    circles: pl.DataFrame,
    x: Specification,
    y: Specification,
    most_documents: int,
    palette: Mapping[str, str],
) -> Specification:
    """The layer of circles, coloured by category, with areas by documents.

    Categories without a circle are left out of the legend.
    """
    there = set(circles["category"])
    present = {name: colour for name, colour in palette.items() if name in there}
    areas = {"type": "log", "domain": [1, most_documents], "range": [4, 160]}
    size = channel("documents", legend=None, scale=areas)
    colour = channel("category", present, legend=CATEGORY_LEGEND)
    return layer("points", "circle", CIRCLE_STYLE, x=x, y=y, size=size, color=colour)


class _Name(NamedTuple):
    """A name on the picture, in units of the horizontal axis.

    Attributes:
        text: the token, cut if it is long.
        middle: the middle of the written name.
        half_width: half of its width.
        align: what stands at the token's own x: the name's left end, its right end or its center.
    """

    text: str
    middle: float
    half_width: float
    align: str


def _name_at(token: str, x: float) -> _Name:
    """The name of a token at x, written inwards near the edges."""
    text = for_display(token, LONGEST_NAME)
    half_width = LETTER_WIDTH * min(len(text), LONGEST_NAME) + NAME_PADDING
    if x < -EDGE:
        return _Name(text, middle=x + half_width, half_width=half_width, align="left")
    if x > EDGE:
        return _Name(text, middle=x - half_width, half_width=half_width, align="right")
    return _Name(text, middle=x, half_width=half_width, align="center")


class _Places:
    """Which places for names are free: clear of other names and of the line of bin means.

    Attributes:
        height: the range of the vertical axis.
    """

    def __init__(self, height: float, bins: pl.DataFrame | None) -> None:
        self.height = height
        self._line = bins if bins is not None and bins.height >= 2 else None
        self._taken: list[tuple[_Name, float]] = []

    def take(self, name: _Name, y: float) -> bool:
        """Whether the place was free; it no longer is."""
        if self._touches_name(name, y) or self._touches_line(name, y):
            return False
        self._taken.append((name, y))
        return True

    def _touches_name(self, name: _Name, y: float) -> bool:
        return any(
            abs(name.middle - other.middle) < name.half_width + other.half_width
            and abs(y - other_y) < MIN_NAME_DISTANCE * self.height
            for other, other_y in self._taken
        )

    def _touches_line(self, name: _Name, y: float) -> bool:
        if self._line is None:
            return False
        along = np.linspace(name.middle - name.half_width, name.middle + name.half_width, 9)
        means = np.interp(along, self._line["x"], self._line["mean"])
        return bool((np.abs(means - y) < MIN_LINE_DISTANCE * self.height).any())


def name_rows(
    points: pl.DataFrame,
    column: str,
    bins: pl.DataFrame | None = None,
    marked: pl.DataFrame | None = None,
) -> list[Specification]:
    """Names above or below their points, clear of each other and of the line of `bins`.

    Tokens in `marked` are named first, in bold, and then fewer others, so that the marked ones
    stand out.
    """
    if points.is_empty():
        return []
    n_marked = 0 if marked is None else marked.height
    limit = MAX_NAMES_BESIDE_MARKED if n_marked else MAX_NAMES
    places = _Places(float(np.ptp(points[column].to_numpy())) or 1.0, bins)
    rows: list[Specification] = []
    for rank, (token, x, y) in enumerate(_tokens_to_name(points, column, marked).iter_rows()):
        placed = _placed_name(places, token, x, y)
        if placed is None:
            continue
        is_bold = rank < n_marked or n_marked == 0
        rows.append({"x": x, "y": y, **placed, "weight": "bold" if is_bold else "normal"})
        if len(rows) == limit:
            break
    return rows


def _tokens_to_name(points: pl.DataFrame, column: str, marked: pl.DataFrame | None) -> pl.DataFrame:
    """Token, x and y: those marked, then the largest effects, then the highest and lowest."""
    candidates = [points[:0] if marked is None else marked]
    for by in ("effect", column):
        top = points.top_k(N_CANDIDATES, by=pl.col(by).abs())
        candidates.append(top.sort(pl.col(by).abs(), descending=True))
    columns = ("token", "posterior_difference", column)
    ranked = pl.concat([frame.select(columns) for frame in candidates])
    return ranked.unique("token", maintain_order=True)


def _placed_name(places: _Places, token: str, x: float, y: float) -> Specification | None:
    """A token's name above its point, or else below it; None if neither place is free."""
    name = _name_at(token, x)
    is_above = places.take(name, y + NAME_ABOVE * places.height)
    if not is_above and not places.take(name, y + NAME_BELOW * places.height):
        return None
    return {"align": name.align, "under": not is_above, "text": name.text}


def point_names() -> list[Specification]:
    """The layers of names, each over or under its point, clear of a ring around it."""
    style = {
        "align": {"expr": "datum.align"},
        "dy": {"expr": "datum.under ? 19 : -12"},
        "fontSize": 12,
        "fontWeight": {"expr": "datum.weight"},
    }
    return written("names", style, x="x", y="y", text="text")
