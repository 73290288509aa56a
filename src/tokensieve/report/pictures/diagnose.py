"""The charts of diagnoses and of their comparison."""

from __future__ import annotations

import altair as alt

from tokensieve.blocks import Picture
from tokensieve.report.pictures import Specification
from tokensieve.report.pictures.audit import BLUE, BROWN, GREY, INK, ORANGE, PALE_BLUE, finish


def _use(picture: Picture) -> Specification:
    """A bar with its interval for each of the words used most. Data: words (rank, text, x: use, low, high, data: what it says)."""
    rows = picture.data["words"]
    said = ("predicts the label", "helps in context", "no support", "too rare to tell")
    colours = dict(zip(said, (BLUE, PALE_BLUE, BROWN, ORANGE), strict=True))
    present = list(dict.fromkeys(row["data"] for row in rows))
    scale = alt.Scale(domain=present, range=[colours.get(one, GREY) for one in present])
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=260, columnPadding=24)
    title = "use: change of the prediction without the word, log-odds"
    across = alt.X("x:Q", title=title, scale=alt.Scale(domainMin=0))
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


CHARTS = {"diagnose-use": _use, "diagnose-curve": _curve}
