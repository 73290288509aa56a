"""The charts of diagnoses and of their comparison."""

from __future__ import annotations

import altair as alt

from tokensieve.blocks import Picture
from tokensieve.report.pictures import Specification, chart
from tokensieve.report.pictures.style import BLUE, BROWN, GREY, INK, ORANGE, PALE_BLUE, finish

_COLOURS = {  # by what the data says
    "predicts the label": BLUE,
    "helps in context": PALE_BLUE,
    "no support": BROWN,
    "too rare to tell": ORANGE,
}


@chart("diagnose-use")
def most_used(picture: Picture) -> Specification:
    """A bar with its interval for each of the words used most, coloured by what the data says of them.

    Data:
        words: rank, text, x (use), low, high, data (what the data says).
    """
    rows = picture.data["words"]
    base = alt.Chart(alt.NamedData("words")).encode(y=alt.Y("rank:O", axis=None))
    present = list(dict.fromkeys(row["data"] for row in rows))
    colours = [_COLOURS.get(said, GREY) for said in present]
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=260, columnPadding=24)
    across = alt.X(
        "x:Q", title="use: change of the prediction without the word, log-odds", scale=alt.Scale(domainMin=0)
    )
    colour = alt.Color("data:N", scale=alt.Scale(domain=present, range=colours), legend=legend)
    layers = alt.layer(
        base.mark_bar(height=11, opacity=0.9).encode(x=across, color=colour),
        base.mark_rule(color=INK, strokeWidth=1.4).encode(x="low:Q", x2="high:Q"),
        base.mark_text(align="left", dx=6, fontSize=12, color=INK).encode(x="high:Q", text="text:N"),
    )
    return finish(layers, {"words": rows}, picture.title, ["with 95% intervals"], height=24 * max(len(rows), 4))


@chart("diagnose-curve")
def curve(picture: Picture) -> Specification:
    """Accuracy, AUC and the correlation of words alone, from model to model.

    Data:
        models: order, model, of (which of these), y, low, high.
        kinds: the names of these.
    """
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
