"""The charts of `verify` ("said" in the data of each is a line below the title), of `diagnose`, and of `reproduce`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from tokensieve.blocks import Picture
from tokensieve.escape import shown
from tokensieve.report.pictures import Specification, audit
from tokensieve.report.pictures.audit import AXIS, BLUE, BROWN, GREY, INK, MUTED, ORANGE, PALE_BLUE, SIDES, Data, finish


def _alignment(picture: Picture) -> Specification:
    """(E¹−E⁰)ᵀv against α, with the line that Lemma 4.1 expects.

    Data: tokens (token, documents, alpha, category, alignment); expected (slope of the line); seed (of the choice of points).
    """
    tokens = picture.data["tokens"]
    title = "movement of the embedding along v"
    circles, data, shown_of = audit.alpha_cloud(tokens, "alignment", title, picture.data["seed"])
    data["line"] = [{"x": x, "y": picture.data["expected"] * x} for x in (tokens["alpha"].min(), tokens["alpha"].max())]
    line = alt.Chart(alt.NamedData("line")).encode(x="x:Q", y="y:Q").mark_line(color=MUTED, strokeDash=[5, 4])
    subtitle = [picture.data["said"], f"{shown_of}; dashed: the expected line"]
    return finish(alt.layer(line, circles), data, picture.title, subtitle)


def _scores(picture: Picture) -> Specification:
    """Scores against α at the start or the end of the flow. Data: tokens (`tokens.csv`); of (the column up); seed."""
    data = picture.data
    layers, rows, shown_of = audit.alpha_cloud(data["tokens"], data["of"], "score", data["seed"])
    return finish(layers, rows, picture.title, [data["said"], shown_of])


def _norm(picture: Picture) -> Specification:
    """‖p‖ against log t. Data: curve (`flow.csv`)."""
    curve = picture.data["curve"].select(x="log_time", y="norm").drop_nulls()
    line = _line(alt.X("x:Q", title="log t", axis=AXIS), alt.Y("y:Q", title="|p|", axis=AXIS))
    return finish(line, {"curve": curve.to_dicts()}, picture.title, [picture.data["said"], picture.caption])


def _loss(picture: Picture) -> Specification:
    """Loss against log t, up to where all but a thousandth of its fall is done; data as for the norm."""
    rows = picture.data["curve"].select(x="log_time", y="loss").drop_nulls()
    values = rows["y"].to_numpy()
    settled = values - values[-1] <= 1e-3 * (values[0] - values[-1]) if len(values) else np.zeros(0, bool)
    last = int(np.argmax(settled)) + 1 if settled.any() else len(values)
    wide = max(last, min(len(values), 10))
    title = "log t, until 99.9% of the fall is done" if wide < len(values) else "log t"
    line = _line(alt.X("x:Q", title=title, axis=AXIS), alt.Y("y:Q", title="loss", axis=AXIS))
    subtitle = [picture.data["said"], f"{wide:,} of {len(values):,} steps shown"]
    return finish(line, {"curve": rows[:wide].to_dicts()}, picture.title, subtitle)


def _angle(picture: Picture) -> Specification:
    """Angle to the limit direction against ‖p‖ on logarithmic axes, with the fitted rate through the last point.

    Data: curve (`flow.csv`); exponent (of the fit; nan for none).
    """
    rows = picture.data["curve"].select(x="norm", y="angle").drop_nulls().filter(pl.col("y") > 0)
    log, exponent = alt.Scale(type="log", nice=False, padding=8), picture.data["exponent"]
    data = {"curve": rows.to_dicts()}
    if not rows.height:
        return finish(_line(alt.X("x:Q"), alt.Y("y:Q")), data, picture.title, [picture.data["said"]])
    axes = []
    for values in (rows["x"], rows["y"]):  # ticks at powers of ten only, where there are two or more
        powers = [10.0**k for k in range(math.ceil(np.log10(values.min())), math.floor(np.log10(values.max())) + 1)]
        axes.append(alt.Axis(format=",~r", values=powers) if len(powers) > 1 else AXIS)
    x = alt.X("x:Q", title="|p|", scale=log, axis=axes[0])
    layers = alt.layer(_line(x, alt.Y("y:Q", title="angle to the limit direction (rad)", scale=log, axis=axes[1])))
    if math.isfinite(exponent):
        end = data["curve"][-1]
        data["fit"] = [{"x": r, "y": end["y"] * (r / end["x"]) ** exponent} for r in (end["x"] / 30, end["x"])]
        fit = alt.Chart(alt.NamedData("fit")).mark_line(color=INK, strokeDash=[5, 4]).encode(x="x:Q", y="y:Q")
        layers = alt.layer(layers, fit)
    return finish(layers, data, picture.title, [picture.data["said"], "both axes are logarithmic"])


def _gaps(picture: Picture) -> Specification:
    """Score gaps against log t: the flow in wide pale lines, the prediction dashed on top of them. Data: gaps (`gaps.csv`)."""
    rows = picture.data["gaps"].rename({"log_time": "x", "gap": "y"})
    legend = alt.Legend(title=None, orient="bottom", symbolOpacity=1)
    scale = alt.Scale(domain=["finite", "tight"], range=[SIDES["negative"], PALE_BLUE])
    x, y = alt.X("x:Q", title="log t", axis=AXIS), alt.Y("y:Q", title="score gap (nats)", axis=AXIS)
    styles: dict[str, dict[str, Any]] = {
        "flow": {"strokeWidth": 5, "opacity": 0.35},
        "prediction": {"strokeWidth": 1.5, "strokeDash": [6, 4]},
    }
    layers = [
        alt.Chart(alt.NamedData(name))
        .mark_line(**style)
        .encode(x=x, y=y, color=alt.Color("kind:N", legend=legend, scale=scale), detail="pair:N")
        for name, style in styles.items()
    ]
    data = {name: rows.filter(pl.col("source") == name).to_dicts() for name in styles}
    subtitle = [picture.data["said"], f"{rows['pair'].n_unique()} pairs of tokens"]
    return finish(alt.layer(*layers), data, picture.title, subtitle)


def _selected(picture: Picture) -> Specification:
    """The tokens that most documents select, beside the documents that contain them. Data: tokens (such rows of `tokens.csv`)."""
    tokens = picture.data["tokens"]
    top = tokens.sort("selected_in", "documents", descending=True, maintain_order=True).head(20)
    rows = [
        {"rank": rank, "held": held, "chosen": chosen, "category": category}
        | {"text": f"{shown(token, 24)}: {chosen:,} of {held:,}"}
        for rank, (token, held, chosen, category) in enumerate(
            top.select("token", "documents", "selected_in", "category").iter_rows()
        )
    ]
    legend = alt.Legend(title=None, orient="bottom", columns=3, columnPadding=40, symbolOpacity=1)
    colours = alt.Scale(domain=list(SIDES), range=list(SIDES.values()))
    base = alt.Chart(alt.NamedData("bars")).encode(
        y=alt.Y("rank:O", axis=None), color=alt.Color("category:N", legend=legend, scale=colours)
    )
    most = max((row["held"] for row in rows), default=1)
    across = alt.X("held:Q", title="documents", scale=alt.Scale(domain=[0, 1.5 * most], nice=False), axis=AXIS)
    layers = alt.layer(
        base.mark_bar(opacity=0.3, height={"band": 0.75}).encode(x=across),
        base.mark_bar(height={"band": 0.75}).encode(x="chosen:Q"),
        base.mark_text(align="left", dx=6, fontSize=12).encode(x="held:Q", text="text:N", color=alt.value(INK)),
    )
    said = "documents that select the token; pale: that only contain it"
    shown_of = f"{len(rows):,} of {tokens.height:,} token types that any document selects"
    return finish(layers, {"bars": rows}, picture.title, [said, shown_of], height=18 * max(len(rows), 4))


def _line(x: alt.X, y: alt.Y) -> Any:
    return alt.Chart(alt.NamedData("curve")).mark_line(color=PALE_BLUE, strokeWidth=2.5).encode(x=x, y=y)


def _use(picture: Picture) -> Specification:
    """A bar with its interval for each of the words used most. Data: words (rank, text, x: use, low, high, data: what it says)."""
    rows = picture.data["words"]
    said = ("predicts the label", "helps in context", "no support", "too rare to tell")
    colours = dict(zip(said, (BLUE, PALE_BLUE, BROWN, ORANGE), strict=True))
    present = list(dict.fromkeys(row["data"] for row in rows))
    scale = alt.Scale(domain=present, range=[colours.get(one, GREY) for one in present])
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=260, columnPadding=60)
    title = "use: change of the prediction without the word, log-odds"
    most = max((row["high"] for row in rows), default=1.0)  # beyond it there is space for the longest name
    longest = max((len(row["text"]) for row in rows), default=0)
    scale_x = alt.Scale(domain=[0, most * 420 / (420 - 9 * min(longest, 24))], nice=False)
    across = alt.X("x:Q", title=title, scale=scale_x)
    base = alt.Chart(alt.NamedData("words")).encode(y=alt.Y("rank:O", axis=None))
    layers = alt.layer(
        base.mark_bar(height=11, opacity=0.9).encode(x=across, color=alt.Color("data:N", scale=scale, legend=legend)),
        base.mark_rule(color=INK, strokeWidth=1.4).encode(x="low:Q", x2="high:Q"),
        base.mark_text(align="left", dx=6, fontSize=12, color=INK).encode(x="high:Q", text="text:N"),
    )
    return finish(layers, {"words": rows}, picture.title, ["with 95% intervals"], height=24 * max(len(rows), 4))


def _curve(picture: Picture) -> Specification:
    """Figures from model to model. Data: kinds (their names); models (order, model, of: which of these, y, low, high)."""
    legend = alt.Legend(title=None, orient="bottom", symbolOpacity=1)  # of the lines, not of the pale areas
    scale = alt.Scale(domain=picture.data["kinds"], range=[BLUE, PALE_BLUE, ORANGE])
    base = alt.Chart(alt.NamedData("models")).encode(
        x=alt.X("model:N", sort=alt.SortField("order"), title=None, axis=alt.Axis(labelAngle=-30)),
        color=alt.Color("of:N", scale=scale, legend=legend),
    )
    layers = alt.layer(
        base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=None, scale=alt.Scale(zero=False)), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y="y:Q"),
        base.mark_circle(size=50, stroke=INK).encode(y="y:Q"),
    )
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
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "config": audit.CONFIG,
        "background": "#ffffff",
        "title": {"text": picture.title, "subtitle": picture.caption, "anchor": "start", "offset": 14},
        "vconcat": rows,
        "datasets": datasets,
    }


def _verdicts(picture: Picture) -> Specification:
    """A mark per experiment and seed, filled where every criterion was met. Data: runs (experiment, seed, outcome)."""
    runs = picture.data["runs"]
    outcome = [
        alt.Scale(domain=["every criterion met", "not met"], range=ends)
        for ends in ([BLUE, ORANGE], ["circle", "cross"])
    ]
    legend = alt.Legend(title=None, orient="bottom", symbolOpacity=1, columnPadding=50)
    marks = (
        alt.Chart(alt.NamedData("runs"))
        .mark_point(filled=True, size=170, opacity=1)
        .encode(
            x=alt.X("seed:O", title="seed", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("experiment:N", title=None, sort=None, axis=alt.Axis(grid=True)),
            color=alt.Color("outcome:N", scale=outcome[0], legend=legend),
            shape=alt.Shape("outcome:N", scale=outcome[1], legend=legend),
        )
    )
    rows = len({run["experiment"] for run in runs})
    return finish(marks, {"runs": runs}, picture.title, [], height=max(120, 28 * rows))


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


CHARTS = {
    "theory-alignment": _alignment,
    "theory-scores": _scores,
    "theory-norm": _norm,
    "theory-loss": _loss,
    "theory-angle": _angle,
    "theory-gaps": _gaps,
    "theory-selected": _selected,
    "diagnose-use": _use,
    "diagnose-curve": _curve,
    "reproduce-panels": _panels,
    "reproduce-verdicts": _verdicts,
}
