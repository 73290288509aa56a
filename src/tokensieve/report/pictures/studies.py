"""The charts of `verify` ("said" in the data of each is a line below the title), of `diagnose`, and of `reproduce`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from tokensieve.escape import for_display
from tokensieve.report.blocks import Picture
from tokensieve.report.pictures.audit import (
    AXIS,
    BLUE,
    BROWN,
    CONFIG,
    GREY,
    INK,
    LEGEND,
    MUTED,
    ORANGE,
    PALE_BLUE,
    PALE_GREY,
    PAPER,
    RANK,
    SIDES,
    Data,
    Specification,
    alpha_cloud,
    channel,
    finish,
    layer,
)

_DASHED: Specification = {"color": MUTED, "strokeDash": [5, 4]}
_BESIDE: Specification = {"align": "left", "dx": 6, "fontSize": 12}  # a name on the right of a bar


def _cloud(picture: Picture) -> Specification:
    """Against α: scores at an end of the flow (the column `of`), else (E¹−E⁰)ᵀv with the line that Lemma 4.1 expects. Data: tokens
    (token, documents, alpha, category, and alignment or the column `of`), expected (the slope of the line), seed (for choosing
    points)."""
    data = picture.data
    title = "score" if "of" in data else "movement of the embedding along v"
    layers, rows, shown_of = alpha_cloud(
        data["tokens"], data.get("of", "alignment"), title, data["seed"]
    )
    if "expected" in data:
        alpha = data["tokens"]["alpha"]
        rows["line"] = [{"x": x, "y": data["expected"] * x} for x in (alpha.min(), alpha.max())]
        layers.insert(0, layer("line", "line", _DASHED, x="x", y="y"))
        shown_of += "; dashed: the expected line"
    return finish(layers, rows, picture.title, [data["said"], shown_of])


def _norm(picture: Picture) -> Specification:
    """‖p‖ against log t. Data: curve (`flow.csv`)."""
    curve = picture.data["curve"].select(x="log_time", y="norm").drop_nulls()
    line = _line(channel("x", title="log t", axis=AXIS), channel("y", title="norm of p", axis=AXIS))
    return finish([line], {"curve": curve.to_dicts()}, picture.title, [picture.data["said"]])


def _angle(picture: Picture) -> Specification:
    """Angle to the limit direction against ‖p‖ on logarithmic axes, with the fitted rate through the last point. Data: curve
    (`flow.csv`), exponent (of the fit; nan for none)."""
    rows = picture.data["curve"].select(x="norm", y="angle").drop_nulls().filter(pl.col("y") > 0)
    scale, exponent = {"type": "log", "nice": False, "padding": 8}, picture.data["exponent"]
    data = {"curve": rows.to_dicts()}
    if not rows.height:
        return finish([_line("x", "y")], data, picture.title, [picture.data["said"]])
    axes = []
    for values in (
        rows["x"],
        rows["y"],
    ):  # ticks at powers of ten only, where there are two or more
        powers = [
            10.0**k
            for k in range(
                math.ceil(np.log10(values.min())), math.floor(np.log10(values.max())) + 1
            )
        ]
        axes.append({"format": ",~r", "values": powers} if len(powers) > 1 else AXIS)
    x = channel("x", title="norm of p", scale=scale, axis=axes[0])
    layers = [
        _line(
            x, channel("y", title="angle to the limit direction (rad)", scale=scale, axis=axes[1])
        )
    ]
    if math.isfinite(exponent):
        end = data["curve"][-1]
        data["fit"] = [
            {"x": r, "y": end["y"] * (r / end["x"]) ** exponent} for r in (end["x"] / 30, end["x"])
        ]
        layers.append(layer("fit", "line", _DASHED | {"color": INK}, x="x", y="y"))
    return finish(layers, data, picture.title, [picture.data["said"], "both axes are logarithmic"])


def _gaps(picture: Picture) -> Specification:
    """Score gaps against log t: the flow in wide pale lines, the prediction dashed on top of them. Data: gaps (`gaps.csv`)."""
    rows = picture.data["gaps"].rename({"log_time": "x", "gap": "y"})
    x, y = channel("x", title="log t", axis=AXIS), channel("y", title="score gap (nats)", axis=AXIS)
    colours = {"finite": SIDES["negative"], "tight": PALE_BLUE}
    kind = channel(
        "kind", {name: colour for name, colour in colours.items() if name in rows["kind"]}
    )
    styles: dict[str, Specification] = {
        "flow": {"strokeWidth": 5, "opacity": 0.35},
        "prediction": {"strokeWidth": 1.5, "strokeDash": [6, 4]},
    }
    layers = [
        layer(name, "line", style, x=x, y=y, color=kind, detail="pair")
        for name, style in styles.items()
    ]
    data = {name: rows.filter(pl.col("source") == name).to_dicts() for name in styles}
    return finish(
        layers,
        data,
        picture.title,
        [picture.data["said"], f"{rows['pair'].n_unique()} pairs of tokens"],
    )


def _selected(picture: Picture) -> Specification:
    """The tokens that most documents select, beside the documents that contain them. Data: tokens (such rows of `tokens.csv`)."""
    tokens = picture.data["tokens"]
    top = tokens.sort("selected_in", "documents", descending=True, maintain_order=True).head(20)
    rows = [
        {"rank": rank, "held": held, "chosen": chosen, "category": category}
        | {"text": f"{for_display(token, 24)}: {chosen:,} of {held:,}"}
        for rank, (token, held, chosen, category) in enumerate(
            top.select("token", "documents", "selected_in", "category").iter_rows()
        )
    ]
    present = {name: colour for name, colour in SIDES.items() if name in top["category"]}
    color = channel("category", present, legend=LEGEND | {"columns": 3, "columnPadding": 40})
    most = max((row["held"] for row in rows), default=1)
    across = channel(
        "held", title="documents", scale={"domain": [0, 1.5 * most], "nice": False}, axis=AXIS
    )
    layers = [
        layer(
            "bars", "bar", {"opacity": 0.3, "height": {"band": 0.75}}, x=across, y=RANK, color=color
        ),
        layer("bars", "bar", {"height": {"band": 0.75}}, x="chosen", y=RANK, color=color),
        layer("bars", "text", _BESIDE, x="held", y=RANK, text="text", color={"value": INK}),
    ]
    said = "documents whose attention ends up on the token, of all containing it"
    if any(row["held"] > row["chosen"] for row in rows):
        said = "documents whose attention ends up on it; pale: others containing it"
    shown_of = f"{len(rows):,} of {tokens.height:,} token types that any document selects"
    return finish(
        layers, {"bars": rows}, picture.title, [said, shown_of], height=18 * max(len(rows), 4)
    )


def _line(x: str | Specification, y: str | Specification) -> Specification:
    return layer("curve", "line", {"color": PALE_BLUE, "strokeWidth": 2.5}, x=x, y=y)


def _use(picture: Picture) -> Specification:
    """A bar with its interval for each of the words used most. Data: words (rank, text, x: use, low, high, data: what it says)."""
    rows = picture.data["words"]
    said = ("predicts the label", "helps in context", "no support", "too rare to tell")
    colours = dict(zip(said, (BLUE, PALE_BLUE, ORANGE, PALE_GREY), strict=True))  # as in the table
    present = {row["data"]: colours.get(row["data"], GREY) for row in rows}
    legend = {
        "title": None,
        "orient": "bottom",
        "columns": 2,
        "labelLimit": 260,
        "columnPadding": 60,
    }
    title = "use: change of the prediction without the word, log-odds"
    most = max(
        (row["high"] for row in rows), default=1.0
    )  # beyond it there is space for the longest name
    longest = max((len(row["text"]) for row in rows), default=0)
    scale = {"domain": [0, most * 420 / (420 - 9 * min(longest, 24))], "nice": False}
    x, color = channel("x", title=title, scale=scale), channel("data", present, legend=legend)
    layers = [
        layer("words", "bar", {"height": 11, "opacity": 0.9}, x=x, y=RANK, color=color),
        layer("words", "rule", {"color": INK, "strokeWidth": 1.4}, x="low", x2="high", y=RANK),
        layer("words", "text", _BESIDE | {"color": INK}, x="high", y=RANK, text="text"),
    ]
    return finish(
        layers,
        {"words": rows},
        picture.title,
        ["with 95% intervals"],
        height=24 * max(len(rows), 4),
    )


def _curve(picture: Picture) -> Specification:
    """Figures from model to model. Data: kinds (their names); models (order, model, of: which of these, y, low, high)."""
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
        layer("models", "area", {"opacity": 0.15}, x=x, color=color, y=low, y2="high"),
        layer("models", "line", {"strokeWidth": 2}, x=x, color=color, y="y"),
        layer("models", "circle", {"size": 50, "stroke": INK}, x=x, color=color, y="y"),
    ]
    return finish(layers, {"models": picture.data["models"]}, picture.title, [picture.caption])


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


def _verdicts(picture: Picture) -> Specification:
    """A mark per experiment and seed, filled where every criterion was met. Data: runs (experiment, seed, outcome)."""
    runs = picture.data["runs"]
    said, legend = ["every criterion met", "not met"], LEGEND | {"columnPadding": 50}
    shape = {
        "field": "outcome",
        "type": "nominal",
        "scale": {"domain": said, "range": ["circle", "cross"]},
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
        color=channel("outcome", dict(zip(said, (BLUE, ORANGE), strict=True)), legend=legend),
        shape=shape | {"legend": legend},
    )
    rows = len({run["experiment"] for run in runs})
    return finish([marks], {"runs": runs}, picture.title, [], height=max(120, 28 * rows))


def _bins(panel: Mapping[str, Any], prefix: str) -> tuple[Specification, Data]:
    """A sample of the types, the range of the bin means over seeds, means and deviations; the paper's means on the right axis."""
    data = {f"{prefix}points": panel["points"], f"{prefix}bins": panel["bins"]}
    x = channel("x", title=panel["x"], scale={"nice": False, "padding": 12})
    points, bins = data

    def up(field: str) -> Specification:
        """One scale for points, bars and line: all have the same title."""
        return channel(field, title=f"ours: {panel['y']}", scale={"zero": False})

    fill = {
        "field": "few",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [False, True], "range": [BLUE, PAPER]},
    }
    dots = {"filled": True, "opacity": 1}
    ours = [
        layer(
            points,
            "circle",
            {"color": MUTED, "opacity": 0.25, "size": 14, "aria": False},
            x=x,
            y=up("y"),
        ),
        layer(bins, "area", {"color": BLUE, "opacity": 0.22}, x=x, y=up("least"), y2="most"),
        layer(
            bins,
            "rule",
            {"color": BLUE, "strokeWidth": 1.6, "opacity": 0.7},
            x=x,
            y=up("low"),
            y2="high",
        ),
        layer(bins, "line", {"color": BLUE, "strokeWidth": 2.5}, x=x, y=up("mean")),
        layer(bins, "point", dots | {"stroke": BLUE, "size": 36}, x=x, y=up("mean"), fill=fill),
    ]
    spec: Specification = {"title": f"{panel['title']} {panel['y']}".strip(), "layer": ours}
    if "paper" in panel:
        data[f"{prefix}paper"] = panel["paper"]
        axis = {
            "title": "the paper (dashed)",
            "titleColor": BROWN,
            "orient": "right",
            "grid": False,
        }
        y = channel("y", axis=axis, scale={"zero": False})
        dashed = {"color": BROWN, "strokeDash": [6, 4], "strokeWidth": 1.6}
        diamonds = dots | {"color": BROWN, "shape": "diamond", "size": 44}
        paper = [("line", dashed), ("point", diamonds)]
        theirs = {
            "layer": [layer(f"{prefix}paper", mark, style, x=x, y=y) for mark, style in paper]
        }
        spec |= {"layer": [{"layer": ours}, theirs], "resolve": {"scale": {"y": "independent"}}}
    return spec, data


def _lines(panel: Mapping[str, Any], prefix: str) -> tuple[Specification, Data]:
    """Lines of y against x, one for each value of `by`: means over seeds with their range."""
    scale = {"type": "log" if panel["log"] else "linear", "nice": False, "padding": 12}
    colours = {"range": [BLUE, BROWN, PALE_BLUE, ORANGE, GREY, INK]}
    pale: Specification = {"field": "by", "type": "nominal", "scale": colours, "legend": None}
    full = pale | {"legend": {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 300}}
    x = channel("x", title=panel["x"], scale=scale)
    low, mean = (
        channel(field, title=panel["y"], scale={"zero": False, "padding": 12})
        for field in ("least", "mean")
    )
    layers = [
        layer(f"{prefix}lines", "area", {"opacity": 0.15}, x=x, y=low, y2="most", color=pale),
        layer(
            f"{prefix}lines", "line", {"strokeWidth": 2.3, "point": True}, x=x, y=mean, color=full
        ),
    ]
    return {"layer": layers, "resolve": {"legend": {"color": "independent"}}}, {
        f"{prefix}lines": panel["lines"]
    }


CHARTS = {
    "theory-alignment": _cloud,
    "theory-scores": _cloud,
    "theory-norm": _norm,
    "theory-angle": _angle,
    "theory-gaps": _gaps,
    "theory-selected": _selected,
    "diagnose-use": _use,
    "diagnose-curve": _curve,
    "reproduce-panels": _panels,
    "reproduce-verdicts": _verdicts,
}
