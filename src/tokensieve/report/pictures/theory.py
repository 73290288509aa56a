"""The charts of `verify`; "said" in the data of each is a line below its title."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from tokensieve.escape import IN_LIST, for_display
from tokensieve.report.blocks import Picture
from tokensieve.report.pictures.frame import (
    AXIS,
    BESIDE,
    INK,
    LEGEND,
    MUTED,
    PALE_BLUE,
    RANK,
    SIDES,
    Charts,
    Specification,
    channel,
    finish,
    layer,
)
from tokensieve.report.pictures.tokens import alpha_cloud

DASHED: Specification = {"color": MUTED, "strokeDash": [5, 4]}
TICK_FORMAT = ",~r"  # plain numbers with thousands separators
FIT_RANGE = 30  # the fitted line begins at the last norm over this number
TOP_TOKENS = 20  # bars that a picture holds legibly
BAR_HEIGHT = 18  # pixels
NAME_SPACE = 1.5  # times the longest bar: its axis, so that names fit beside the bars
# Styles of lines and bars, chosen by eye: the flow must stay visible below the prediction on it.
GAP_STYLES: dict[str, Specification] = {
    "flow": {"strokeWidth": 5, "opacity": 0.35},
    "prediction": {"strokeWidth": 1.5, "strokeDash": [6, 4]},
}
BAR: Specification = {"height": {"band": 0.75}}  # of the row: a quarter of it separates two bars
PALE_BAR = BAR | {"opacity": 0.3}  # by eye


def cloud(picture: Picture) -> Specification:
    """Scores, or movements of the embeddings, against α.

    Data: tokens (token, documents, alpha, category, and alignment or the column `of`), of (a column
    of scores at an end of the flow; without it, (E¹ − E⁰)ᵀv is shown), expected (the slope of the
    line that Lemma 4.1 expects; optional), seed (for choosing points).
    """
    data = picture.data
    title = "score" if "of" in data else "movement of the embedding along v"
    drawn = alpha_cloud(data["tokens"], data.get("of", "alignment"), title, data["seed"])
    layers = drawn.layers
    datasets = drawn.data
    note = drawn.note
    if "expected" in data:
        alpha = data["tokens"]["alpha"]
        ends = (alpha.min(), alpha.max())
        datasets["line"] = [{"x": x, "y": data["expected"] * x} for x in ends]
        layers = [layer("line", "line", DASHED, x="x", y="y"), *layers]
        note += "; dashed: the expected line"
    return finish(layers, datasets, picture.title, [data["said"], note])


def norm(picture: Picture) -> Specification:
    """‖p‖ against log t. Data: curve (`flow.csv`)."""
    curve = picture.data["curve"].select(x="log_time", y="norm").drop_nulls()
    x = channel("x", title="log t", axis=AXIS)
    y = channel("y", title="norm of p", axis=AXIS)
    datasets = {"curve": curve.to_dicts()}
    return finish([_curve_line(x, y)], datasets, picture.title, [picture.data["said"]])


def angle(picture: Picture) -> Specification:
    """Angle to the limit direction against ‖p‖, with the fitted rate through the last point.

    Data: curve (`flow.csv`), exponent (of the fit; nan for none).
    """
    curve = picture.data["curve"].select(x="norm", y="angle").drop_nulls()
    curve = curve.filter(pl.col("y") > 0)
    datasets = {"curve": curve.to_dicts()}
    if curve.is_empty():
        return finish([_curve_line("x", "y")], datasets, picture.title, [picture.data["said"]])
    scale = {"type": "log", "nice": False, "padding": 8}
    x = channel("x", title="norm of p", scale=scale, axis=_log_axis(curve["x"]))
    y = channel(
        "y", title="angle to the limit direction (rad)", scale=scale, axis=_log_axis(curve["y"])
    )
    layers = [_curve_line(x, y)]
    exponent = picture.data["exponent"]
    if math.isfinite(exponent):
        end = datasets["curve"][-1]
        datasets["fit"] = [
            {"x": r, "y": end["y"] * (r / end["x"]) ** exponent}
            for r in (end["x"] / FIT_RANGE, end["x"])
        ]
        layers.append(layer("fit", "line", DASHED | {"color": INK}, x="x", y="y"))
    subtitle = [picture.data["said"], "both axes are logarithmic"]
    return finish(layers, datasets, picture.title, subtitle)


def _log_axis(values: pl.Series) -> Specification:
    """Ticks at powers of ten only, where there are two or more of them."""
    smallest = float(values.min())  # type: ignore[arg-type]
    largest = float(values.max())  # type: ignore[arg-type]
    exponents = range(math.ceil(math.log10(smallest)), math.floor(math.log10(largest)) + 1)
    if len(exponents) < 2:
        return AXIS
    return {"format": TICK_FORMAT, "values": [10.0**k for k in exponents]}


def gaps(picture: Picture) -> Specification:
    """Score gaps against log t: wide pale lines for the flow, dashed ones for the prediction.

    Data: gaps (`gaps.csv`).
    """
    rows = picture.data["gaps"].rename({"log_time": "x", "gap": "y"})
    x = channel("x", title="log t", axis=AXIS)
    y = channel("y", title="score gap (nats)", axis=AXIS)
    colours = {"finite": SIDES["negative"], "tight": PALE_BLUE}
    present = {name: colour for name, colour in colours.items() if name in rows["kind"]}
    color = channel("kind", present)
    layers = []
    datasets = {}
    for source, style in GAP_STYLES.items():
        layers.append(layer(source, "line", style, x=x, y=y, color=color, detail="pair"))
        datasets[source] = rows.filter(pl.col("source") == source).to_dicts()
    n_pairs = f"{rows['pair'].n_unique()} pairs of tokens"
    return finish(layers, datasets, picture.title, [picture.data["said"], n_pairs])


def selected(picture: Picture) -> Specification:
    """The tokens that most documents select, beside the documents that contain them.

    Data: tokens (such rows of `tokens.csv`).
    """
    tokens = picture.data["tokens"]
    top = tokens.sort("selected_in", "documents", descending=True, maintain_order=True)
    top = top.head(TOP_TOKENS)
    rows = [_selected_row(rank, token) for rank, token in enumerate(top.iter_rows(named=True))]
    color = _side_colours(top["category"])
    longest = max((row["held"] for row in rows), default=1)
    with_names = {"domain": [0, NAME_SPACE * longest], "nice": False}
    x = channel("held", title="documents", scale=with_names, axis=AXIS)
    layers = [
        layer("bars", "bar", PALE_BAR, x=x, y=RANK, color=color),
        layer("bars", "bar", BAR, x="chosen", y=RANK, color=color),
        layer("bars", "text", BESIDE, x="held", y=RANK, text="text", color={"value": INK}),
    ]
    if any(row["held"] > row["chosen"] for row in rows):
        explanation = "documents whose attention ends up on it; pale: others containing it"
    else:
        explanation = "documents containing the token; in all of them attention ends up on it"
    extent = f"{len(rows):,} of {tokens.height:,} token types that any document selects"
    return finish(
        layers,
        {"bars": rows},
        picture.title,
        [explanation, extent],
        height=BAR_HEIGHT * max(len(rows), 4),
    )


def _side_colours(categories: pl.Series) -> Specification:
    """The colour of each side that is there."""
    present = {name: colour for name, colour in SIDES.items() if name in categories}
    legend = LEGEND | {"columns": 3, "columnPadding": 40}
    return channel("category", present, legend=legend)


def _selected_row(rank: int, token: dict[str, Any]) -> Specification:
    """A row of the chart: the fraction of the documents containing a token that select it."""
    contained = token["documents"]
    chosen = token["selected_in"]
    return {
        "rank": rank,
        "held": contained,
        "chosen": chosen,
        "category": token["category"],
        "text": f"{for_display(token['token'], IN_LIST)}: {chosen:,} of {contained:,}",
    }


def _curve_line(x: str | Specification, y: str | Specification) -> Specification:
    return layer("curve", "line", {"color": PALE_BLUE, "strokeWidth": 2.5}, x=x, y=y)


CHARTS: Charts = {
    "theory-alignment": cloud,
    "theory-scores": cloud,
    "theory-norm": norm,
    "theory-angle": angle,
    "theory-gaps": gaps,
    "theory-selected": selected,
}
