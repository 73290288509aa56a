"""The charts of audits, and of the comparison of two audits."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import polars as pl

from tokensieve.escape import IN_LIST, WHOLE_SENTENCE, for_display
from tokensieve.evidence.importance import Category
from tokensieve.report.blocks import Picture
from tokensieve.report.pictures.frame import (
    BLUE,
    BROWN,
    DOT,
    GREY,
    INK,
    INTERVAL,
    LEGEND,
    MUTED,
    NEUTRAL_LINE,
    ORANGE,
    PALE_BLUE,
    PAPER,
    RANK,
    Charts,
    Data,
    Specification,
    channel,
    finish,
    layer,
    short_name,
    written,
)
from tokensieve.report.pictures.tokens import (
    CATEGORIES,
    SMALLEST_SCALE,
    bins_of,
    circle_rows,
    circles_of,
    name_rows,
    point_names,
    sample_with_extremes,
)
from tokensieve.task.agreement import Quadrant

# open, and wide enough to be seen around a named circle; by eye
RING: Specification = {"size": 150, "strokeWidth": 2.2, "filled": False}
RING_NAME = "named in the first finding"
UNCHANGED = "no significant change"
PREDICTIVE = (Quadrant.BOTH.value, Quadrant.DATA.value)
LONGEST_LEGEND_NAME = 11  # letters of a class: three entries of the legend stand side by side
LONGEST_AXIS_NAME = 26  # letters: two of them fit on a line below the picture
LETTERS_OF_WIDTH = 60  # of an axis title, 420 pixels
LETTERS_OF_HEIGHT = 46  # 330 pixels
BAR_HEIGHT = 20  # pixels
BAR_STEP = 52  # pixels from a bar to the next one, with its heading between
INTERVAL_STEP = 44  # pixels from an interval to the next one, with its heading between
MIN_NAMED_SHARE = 0.14  # of a bar: a narrower part has no room for its percentage
LONGEST_ROW_NAME = 40  # letters beside a dot at the end of the axis: half of the picture
MOST_WITH_NUMBER_RIGHT = 0.8  # of the axis: from there its number stands to the left of a dot
HEADING_SIZE = 12.5  # points; by eye
ROW_STEP = 24  # pixels from a row of dots to the next one
MIN_LINES = 16  # names of fewer lines need no more room than this many have
PERCENT_AXIS = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1.0]}  # quarters of a bar
DEVIATION_BAND = {"color": INK, "opacity": 0.13}  # pale: circles below it stay visible; by eye
MEAN_LINE = {"color": INK, "strokeWidth": 2.2}  # by eye
SLOPE_LINE = {"strokeWidth": 2.2}  # by eye
SIDE_SPACE = {"padding": 0.6}  # of a step: room for the names beside the right ends
# a name at the inner end of an interval, written towards the middle line
INNER_NAME: Specification = {
    "align": {"expr": "datum.sign > 0 ? 'right' : 'left'"},
    "dx": {"expr": "-8 * datum.sign"},
    "fontSize": 12.5,
}
TOKEN_ROW = 19  # pixels from one row of top tokens to the next


def token_map(picture: Picture) -> Specification:
    """Token types: the model's value or score against the posterior difference, with bin means.

    Data: tokens (the rows of one class of `Audit.tokens`), of ("value" or "score", the vertical
    axis), classes (all names), label (that of the rows), neutral (the posterior difference of an
    uninformative token), seed and limit (for choosing points), marked (tokens that stand out;
    optional).
    """
    data = picture.data
    column = data["of"]
    finite = _finite_tokens(data["tokens"], column, data["neutral"])
    points = _points_shown(finite, column, data["limit"], data["seed"])
    bins = bins_of(finite, "posterior_difference", column)
    marked = finite.filter(pl.col("token").is_in(list(data.get("marked", ()))))
    words = {name: _category_name(name, data["label"]) for name in CATEGORIES}
    circles = circle_rows(_rounded(points, column), words)
    datasets = {
        "bins": bins.to_dicts(),
        "neutral": [{"x": data["neutral"]}],
        "marked": marked.select(
            x="posterior_difference", y=column, ring=pl.lit(RING_NAME)
        ).to_dicts(),
        "names": name_rows(points.with_columns(effect="interest"), column, bins, marked),
        "points": circles.to_dicts(),
    }
    cloud = circles_of(
        circles,
        channel("x", title=_map_x_title(data), scale={"domain": [-1, 1], "nice": False}),
        channel("y", title=_map_y_title(data), scale={"zero": False, "padding": 16}),
        max([SMALLEST_SCALE, *points["documents"]]),
        {words[name]: colour for name, colour in CATEGORIES.items()},
    )
    layers = [
        cloud,
        *_bin_layers(),
        NEUTRAL_LINE,
        *_rings(marked),
        *point_names(),
    ]
    subtitle = []
    if points.height < data["tokens"].height:
        subtitle.append(f"{points.height:,} of {data['tokens'].height:,} token types shown")
    return finish(layers, datasets, picture.title, subtitle)


def _category_name(name: str, label: str) -> str:
    """A category with the name of the class, if a legend has room for it: "only in spam"."""
    is_short = len(for_display(label, WHOLE_SENTENCE)) <= LONGEST_LEGEND_NAME
    return Category(name).of(for_display(label, WHOLE_SENTENCE) if is_short else "the class")


def _rings(marked: pl.DataFrame) -> list[Specification]:
    """Open rings around the tokens that stand out, with their own entry in the legend."""
    if marked.is_empty():
        return []
    legend: Specification = {
        "title": None,
        "orient": "top",
        "symbolFillColor": "transparent",
    }
    legend |= {"symbolSize": 120, "symbolStrokeWidth": 2.2, "labelLimit": 300}
    stroke = {
        "field": "ring",
        "type": "nominal",
        "scale": {"domain": [RING_NAME], "range": [INK]},
        "legend": legend,
    }
    return [layer("marked", "point", RING, x="x", y="y", stroke=stroke)]


def _rounded(points: pl.DataFrame, column: str) -> pl.DataFrame:
    """Positions to three decimals, which is a tenth of a pixel."""
    x = pl.col("posterior_difference").round(3)
    return points.with_columns(x=x, y=pl.col(column).round(3))


def _finite_tokens(tokens: pl.DataFrame, column: str, neutral: float) -> pl.DataFrame:
    """The types that can be drawn, with `interest`, by which the interactive map orders names.

    It is how far the interval is from an uninformative token, times the logarithm of documents.
    """
    distance = pl.max_horizontal(
        pl.col("posterior_low") - neutral, neutral - pl.col("posterior_high"), 0
    )
    rows = tokens.select(
        "token",
        "posterior_difference",
        column,
        "documents",
        "category",
        "effect",
        "quadrant",
        interest=distance * pl.col("documents").log1p(),
    )
    return rows.filter(pl.col("posterior_difference").is_finite() & pl.col(column).is_finite())


def _points_shown(finite: pl.DataFrame, column: str, limit: int, seed: int) -> pl.DataFrame:
    """Choose at most `limit` types: half for the predictive ones of strongest effect, then a
    sample."""
    if finite.height <= limit:
        return finite
    is_predictive = pl.col("quadrant").is_in(PREDICTIVE)
    strongest = finite.filter(is_predictive).top_k(limit // 2, by=pl.col("effect").abs())
    others = finite.filter(~is_predictive)
    sample = sample_with_extremes(others, limit - strongest.height, (column,), seed)
    return pl.concat([strongest, sample])


def _map_x_title(data: Mapping[str, Any]) -> str | list[str]:
    """The title that names the class of either side of the horizontal axis; long names take two
    lines."""
    others = [name for name in data["classes"] if name != data["label"]]
    label = short_name(data["label"], LONGEST_AXIS_NAME)
    other = short_name(others[0], LONGEST_AXIS_NAME) if len(others) == 1 else "others"
    left = other if len(others) == 1 else "other classes"
    sides = [f"← {left}", f"{label} →"]
    difference = f"P({label}) − P({other})"
    one_line = f"{sides[0]} · {difference} · {sides[1]}"
    if len(one_line) <= LETTERS_OF_WIDTH:
        return one_line
    return [difference, " · ".join(sides)]


def _map_y_title(data: Mapping[str, Any]) -> str | list[str]:
    """The title of a map's vertical axis, on two lines if it does not fit into one."""
    if data["of"] != "value":
        return "attention (score) ↑"
    label = short_name(data["label"], LONGEST_AXIS_NAME)
    one_line = f"evidence for {label} in the model ↑"
    if len(one_line) <= LETTERS_OF_HEIGHT:
        return one_line
    return [f"evidence for {label}", "in the model ↑"]


def _bin_layers() -> list[Specification]:
    """Bin means with a band of one deviation; dotted where there are no tokens between."""
    halo = {"color": PAPER, "strokeWidth": 5}
    dotted = {"color": MUTED, "strokeDash": [2, 4]}
    return [
        layer("bins", "area", DEVIATION_BAND, x="x", y="low", y2="high", detail="run"),
        layer("bins", "line", halo, x="x", y="mean", detail="run"),
        layer("bins", "line", dotted, x="x", y="mean"),
        layer("bins", "line", MEAN_LINE, x="x", y="mean", detail="run"),
    ]


def top_tokens(picture: Picture) -> Specification:
    """Posterior differences of a class's strongest tokens, with intervals.

    With two classes, those of the other are on the left.

    Data: top and other (token, posterior_difference, posterior_low, posterior_high; other is None
    unless there are two classes), neutral (the posterior difference of an uninformative token),
    subtitle.
    """
    rows = _interval_rows(picture.data["top"], 1)
    if picture.data["other"] is not None:
        rows += _interval_rows(picture.data["other"], -1)
    rows = [{"rank": rank, **row} for rank, row in enumerate(rows)]
    colours = {"domain": [-1, 1], "range": [ORANGE, PALE_BLUE]}
    colour = {"field": "sign", "type": "nominal", "legend": None, "scale": colours}
    title = "posterior difference, with 95% interval"
    x = channel("inner", title=title, scale={"domain": [-1, 1], "nice": False})
    layers = [
        NEUTRAL_LINE,
        layer("intervals", "rule", INTERVAL, x=x, x2="outer", y=RANK, color=colour),
        layer("intervals", "circle", DOT, x="x", y=RANK, color=colour),
        *written("intervals", INNER_NAME, x="inner", y=RANK, text="text"),
    ]
    datasets: Data = {"intervals": rows, "neutral": [{"x": picture.data["neutral"]}]}
    height = TOKEN_ROW * max(len(rows), 4)
    return finish(layers, datasets, picture.title, [picture.data["subtitle"]], height=height)


def _interval_rows(tokens: pl.DataFrame, sign: int) -> list[Specification]:
    """A row per token; sign −1 shows them as the mirror class sees them, weakest first."""
    return [
        {
            "text": for_display(token["token"], LONGEST_ROW_NAME),
            "x": sign * token["posterior_difference"],
            "inner": sign * token["posterior_low"],
            "outer": sign * token["posterior_high"],
            "sign": sign,
        }
        for token in tokens[::sign].iter_rows(named=True)
    ]


def evidence(picture: Picture) -> Specification:
    """Documents with a mark and without it, as bars of their classes.

    Data: shares (heading, which names the documents of a bar; class; share of the bar), from top to
    bottom and from left to right; colours (the classes in the order of the colours).
    """
    placed = _placed(picture.data["shares"])
    middle = (pl.col("start") + pl.col("end")) / 2
    wide = placed.filter(pl.col("share") >= MIN_NAMED_SHARE)
    headings = placed.select("rank", text="heading", x=pl.lit(0.0)).unique("rank").sort("rank")
    datasets = {
        "shares": placed.drop("heading").to_dicts(),
        "percentages": wide.select("rank", x=middle, text=_percent(pl.col("share"))).to_dicts(),
        "headings": headings.to_dicts(),
    }
    above = {"align": "left", "baseline": "bottom", "dy": -BAR_HEIGHT / 2 - 3, "fontSize": 13}
    layers = [
        _bar_layer([name for name in picture.data["colours"] if name in set(placed["class"])]),
        *written("percentages", {"fontSize": 12, "fontWeight": "bold"}, x="x", y=RANK, text="text"),
        *written("headings", above, x="x", y=RANK, text="text"),
    ]
    return finish(layers, datasets, picture.title, [], height=BAR_STEP * headings.height)


def _bar_layer(classes: list[str]) -> Specification:
    """Stacked bars, a colour for each class."""
    scale = {"domain": [0, 1], "nice": False}
    x = channel("start", title=None, scale=scale, axis=PERCENT_AXIS)
    colours = dict(zip(classes, (PALE_BLUE, ORANGE, BROWN, GREY), strict=False))
    legend = LEGEND | {"labelLimit": 400, "columns": 2, "columnPadding": 26}
    colour = channel("class", colours, legend=legend)
    return layer("shares", "bar", {"size": BAR_HEIGHT}, x=x, x2="end", y=RANK, color=colour)


def _placed(shares: pl.DataFrame) -> pl.DataFrame:
    """The parts of all bars with their bar (rank), and where they start and end on it."""
    ranks = {name: rank for rank, name in enumerate(shares["heading"].unique(maintain_order=True))}
    end = pl.col("share").cum_sum().over("heading")
    return shares.with_columns(
        rank=pl.col("heading").replace_strict(ranks, return_dtype=pl.Int64),
        start=end - pl.col("share"),
        end=end,
    )


def _percent(share: pl.Expr) -> pl.Expr:
    """A fraction as a whole percentage; 100 and 0 only where it is exact."""
    rounded = (share * 100).round(0).clip(1, 99).cast(pl.Int64).cast(pl.String)
    return pl.when(share == 1).then(pl.lit("100")).otherwise(rounded) + "%"


def intervals(picture: Picture) -> Specification:
    """Fractions with their 95% intervals, each below a heading that is never cut.

    Data: rows (heading, share, low, high; from top to bottom), axis (its title).
    """
    rows = picture.data["rows"].with_row_index("rank")
    headings = rows.select("rank", x=pl.lit(0.0), text="heading")
    datasets: Data = {"intervals": rows.drop("heading").to_dicts(), "headings": headings.to_dicts()}
    scale = {"domain": [0, 1], "nice": False}
    x = channel("low", title=picture.data["axis"], scale=scale, axis=PERCENT_AXIS)
    colour = {"color": PALE_BLUE}
    above = {"align": "left", "baseline": "bottom", "dy": -7, "fontSize": HEADING_SIZE}
    is_far_right = f"datum.share > {MOST_WITH_NUMBER_RIGHT}"
    beside = {"align": {"expr": f"{is_far_right} ? 'right' : 'left'"}, "fontSize": 12}
    beside["dx"] = {"expr": f"{is_far_right} ? -9 : 9"}
    beside["dy"] = 13
    datasets["numbers"] = rows.select("rank", "share", text=_percent(pl.col("share"))).to_dicts()
    layers = [
        layer("intervals", "rule", INTERVAL | colour, x=x, x2="high", y=RANK),
        layer("intervals", "circle", DOT | colour, x="share", y=RANK),
        *written("numbers", beside, x="share", y=RANK, text="text"),
        *written("headings", above, x="x", y=RANK, text="text"),
    ]
    return finish(layers, datasets, picture.title, [], height=INTERVAL_STEP * max(rows.height, 2))


def wins(picture: Picture) -> Specification:
    """A chart of the win rates of answers with a token: as they are, and at equal length with an
    interval.

    Data: rates (text, overall; rate, low and high at equal length, null where there is none), from
    top to bottom.
    """
    rates = picture.data["rates"].with_columns(
        text=pl.col("text").map_elements(_row_name, pl.String)
    )
    overall = rates.select("text", x="overall", kind=pl.lit("overall"))
    at_equal_length = rates.select("text", x="rate", kind=pl.lit("at equal length"))
    y: Specification = {"field": "text", "type": "nominal", "title": None}
    y |= {"sort": rates["text"].to_list(), "axis": {"labelLimit": 190}}
    axis = {"format": "%", "tickCount": 5}
    x = channel("x", title="wins", scale={"domain": [0, 1], "nice": False}, axis=axis)
    colours = {"at equal length": PALE_BLUE, "overall": GREY}
    colour = channel("kind", colours, legend=LEGEND | {"columnPadding": 26, "columns": 2})
    interval = INTERVAL | {"opacity": 0.4, "color": PALE_BLUE}  # by eye
    layers = [
        NEUTRAL_LINE,
        layer("intervals", "rule", interval, x="low", x2="high", y=y),
        layer("dots", "circle", DOT, x=x, y=y, color=colour),
    ]
    datasets: Data = {
        "intervals": rates.drop_nulls().select("text", "low", "high").to_dicts(),
        "dots": pl.concat([overall, at_equal_length]).drop_nulls().to_dicts(),
        "neutral": [{"x": 1 / 2}],  # an uninformative token wins half of the time
    }
    return finish(layers, datasets, picture.title, [], height=ROW_STEP * max(rates.height, 3))


def _row_name(name: str) -> str:
    return for_display(name, 28)


def slopes(picture: Picture) -> Specification:
    """A line from before to after for each token or other thing that two sides have.

    Data: changes (token, before, after, and kind, which sets the colour), names (of the two sides),
    axis (its title), reversed (whether small numbers are on top; optional).
    """
    before, after = picture.data["names"]
    changes = picture.data["changes"]
    rows = _line_ends(changes, before, after)
    side = {"field": "side", "type": "nominal", "sort": [before, after]}
    legend = LEGEND | {"columnPadding": 26, "columns": 2}
    y: Specification = {"title": picture.data["axis"]}
    if picture.data.get("reversed"):
        y["scale"] = {"reverse": True, "zero": False, "nice": False, "padding": 12}
    channels: Specification = {
        "x": side | {"title": None, "axis": {"labelAngle": 0}, "scale": SIDE_SPACE},
        "y": channel("y", **y),
        "detail": "token",
        "color": channel("kind", _kind_colours(changes["kind"]), legend=legend),
    }
    beside = {"align": "left", "dx": 9, "fontSize": 12}
    layers = [
        layer("changes", "line", SLOPE_LINE, **channels),
        layer("changes", "circle", {"size": 60, "opacity": 1}, **channels),
        *written("ends", beside, x=side, y="at", text="token"),
    ]
    datasets = {"changes": rows, "ends": _end_names(rows)}
    return finish(layers, datasets, picture.title, [], height=max(260, 18 * changes.height))


def _kind_colours(kinds: pl.Series) -> dict[str, str]:
    """A colour for each kind of change; those without one are grey."""
    distinct = dict.fromkeys(kinds)
    colours = dict(zip(distinct, (PALE_BLUE, ORANGE, MUTED, INK, BLUE), strict=False))
    if UNCHANGED in distinct:
        colours[UNCHANGED] = GREY
    return colours


def _line_ends(changes: pl.DataFrame, before: str, after: str) -> list[Specification]:
    """Two rows per line: its left end, then its right end."""
    rows = []
    for change in changes.iter_rows(named=True):
        line = {"token": for_display(change["token"], IN_LIST), "kind": change["kind"]}
        rows.append({**line, "side": before, "y": change["before"]})
        rows.append({**line, "side": after, "y": change["after"]})
    return rows


def _end_names(rows: list[Specification]) -> list[Specification]:
    """Names at the right ends of the lines, so that none lies on the next.

    Lines that changed are all named; those that did not are named where there is room, furthest
    from zero first. `rows` are those of `_line_ends`; a name gets its height as "at".
    """
    ends = _right_ends_from_below(rows)
    gap = _smallest_gap(rows)
    changed = [end for end in ends if end["kind"] != UNCHANGED]
    unchanged = [end for end in ends if end["kind"] == UNCHANGED]
    heights = _spread_out([end["y"] for end in changed], gap)
    names = [end | {"at": height} for end, height in zip(changed, heights, strict=True)]
    for end in sorted(unchanged, key=lambda end: -abs(end["y"])):
        has_room = all(abs(end["y"] - name["at"]) >= gap for name in names)
        if has_room:
            names.append(end | {"at": end["y"]})
    return names


def _right_ends_from_below(rows: list[Specification]) -> list[Specification]:
    """The right ends in order of height; of equally high ones, in order of their left ends."""
    lefts, rights = rows[::2], rows[1::2]
    lines = zip(lefts, rights, strict=True)
    from_below = sorted(lines, key=lambda line: (line[1]["y"], line[0]["y"]))
    return [right for _, right in from_below]


def _smallest_gap(rows: list[Specification]) -> float:
    """The smallest distance between two names that do not overlap, in units of the axis."""
    heights = [row["y"] for row in rows]
    height_of_axis = max(heights) - min(heights) or 1.0
    n_lines = len(rows) // 2
    return height_of_axis / max(n_lines, MIN_LINES)


def _spread_out(heights: list[float], gap: float) -> list[float]:
    """Rising heights moved apart, so that no two are closer than the gap.

    Each is midway between where it is pushed by those below it and by those above it.
    """
    pushed_up = accumulate(heights, lambda below, y: max(y, below + gap))
    from_above = accumulate(reversed(heights), lambda above, y: min(y, above - gap))
    pushed_down = reversed(list(from_above))
    return [(up + down) / 2 for up, down in zip(pushed_up, pushed_down, strict=True)]


CHARTS: Charts = {
    "audit-map": token_map,
    "audit-top": top_tokens,
    "audit-evidence": evidence,
    "audit-intervals": intervals,
    "audit-wins": wins,
    "audit-slopes": slopes,
}
