"""The theory's pictures, and its page."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from tokensieve.escape import shown
from tokensieve.report.charts import (
    INK,
    MUTED,
    SIDES,
    Picture,
    alignment_picture,
    axis,
    cloud,
    cloud_data,
    finish,
    names,
    scaled,
    x_alpha,
)
from tokensieve.report.page import environment, source
from tokensieve.report.sentences import MORE_TIME
from tokensieve.theory.claims import Outcome
from tokensieve.theory.study import Study

BARS = 20
LISTED = 100
GAPS = 20
BLUE = SIDES["positive"]
LOOKS = {
    Outcome.HOLDS: ("right", "✓"), Outcome.FAILS: ("wrong", "✗"), Outcome.UNMET: ("open", "○"), Outcome.LONGER: ("open", "–"),
}  # fmt: skip
PICTURES = ("alignment", "norm", "loss", "angle", "gaps", "score-before", "score-after", "selected")


def render_theory(study: Study, pictures: list[Picture] | None = None) -> str:
    """A verification as one HTML page without scripts or requests: verdicts, hypotheses, pictures, figures, citation.

    All text of the data is escaped, isolated in its own writing direction and shortened where it is long.

    Args:
        study: the verification.
        pictures: of `draw`, where they are drawn already.
    """
    found, pictures = study.found, draw(study) if pictures is None else pictures
    return environment().get_template("theory.html").render(
        study=study,
        command="verify",
        headline=headline(study),
        more_time=MORE_TIME,
        found=found,
        outcome={
            **{outcome: (outcome.value, *look) for outcome, look in LOOKS.items()},
            True: ("holds", "right", "✓"), False: ("fails", "wrong", "✗"),
        },
        failing=[item for item in found.assumptions if not item.holds],
        figures=[{"source": source(picture), "picture": picture} for picture in pictures],
        figures_of={part: _readable(found.to_dict()[part]) for part in ("one_step", "flow", "margin", "limit")},
        longer=found.limit.fate == "not decided" or any(claim.outcome is Outcome.LONGER for claim in found.claims),
        gaps=[row | {"gap": f"{row['gap']:.3f}"} for row in study.gaps().head(GAPS).to_dicts()],
        listed=LISTED,
    )  # fmt: skip


def headline(study: Study) -> str:
    """How many claims hold, and what becomes of p."""
    claims, fate = study.found.claims, study.found.limit.fate
    sizes = {one: sum(claim.outcome is one for claim in claims) for one in Outcome}
    hold = sizes[Outcome.HOLDS]
    head = f"All {len(claims)} claims hold" if hold == len(claims) else f"{hold} of {len(claims)} claims hold"
    words = {
        Outcome.FAILS: "fail",
        Outcome.UNMET: "have a hypothesis that is not met",
        Outcome.LONGER: "need a longer run",
    }
    rest = [f"{sizes[one]} {said}" for one, said in words.items() if sizes[one]]
    limit = "what becomes of p is not decided" if fate == "not decided" else f"p {fate}"
    return f"{', '.join([head, *rest])}; {limit}"


def draw(study: Study) -> list[Picture]:
    """The pictures in the order of `PICTURES`; "angle" only where p diverges along a direction, "gaps" only where the limit was
    predicted, "selected" only where the selection is decided."""
    tokens, curve = study.tokens(), study.curve()
    out = [
        alignment_picture(
            tokens, study.found.step.slope, study.found.step.expected_slope, "η/2", study.found.step.r2, study.seed
        ),
        _norm(study, curve),
        _loss(curve),
    ]
    if study.found.agreement is not None:
        out.append(_angle(study, curve))
    gaps = study.gap_curves()
    if gaps.height:
        out.append(_gaps(study, gaps))
    out += [_scores(study, tokens, when) for when in ("before", "after")]
    if study.found.selection is not None:
        out.append(_selected(study, tokens))
    return out


def _readable(figures: dict[str, Any]) -> dict[str, str]:
    """Numbers to five digits, undefined ones as a dash."""
    out = {}
    for name, value in figures.items():
        if isinstance(value, bool):
            out[name] = "yes" if value else "no"
        elif isinstance(value, float):
            out[name] = f"{value:.5g}"
        elif not isinstance(value, list):
            out[name] = "–" if value is None else str(value)
    return out


def _decades(values: pl.Series) -> alt.Axis:
    """Ticks at powers of ten only, where there are two or more."""
    low, high = (math.log10(float(end)) for end in (values.min(), values.max()))  # type: ignore[arg-type]
    powers = [10.0**k for k in range(math.ceil(low), math.floor(high) + 1)]
    return alt.Axis(format=",~r", values=powers) if len(powers) > 1 else axis()


def _line(rows: pl.DataFrame, x: alt.X, y: alt.Y) -> tuple[Any, dict[str, list[dict[str, Any]]]]:
    chart = alt.Chart(alt.NamedData("curve")).mark_line(color=BLUE, strokeWidth=2.5).encode(x=x, y=y)
    return chart, {"curve": rows.drop_nulls().to_dicts()}


def _norm(study: Study, curve: pl.DataFrame) -> Picture:
    """‖p‖ against log t, with the finite limit where there is one."""
    flow = study.found.flow
    rows = curve.select(x="log_time", y="norm")
    chart, data = _line(rows, alt.X("x:Q", title="log t", axis=axis()), alt.Y("y:Q", title="|p|", axis=axis()))
    said = f"{flow.verdict}; |p| = {flow.norm[-1]:,.5g} at the end"
    if flow.limit is not None:
        limit = float(np.linalg.norm(flow.limit))
        data["limit"] = [{"y": limit}]
        rule = alt.Chart(alt.NamedData("limit")).mark_rule(color=MUTED, strokeDash=[5, 4]).encode(y="y:Q")
        chart, said = alt.layer(rule, chart), f"{flow.verdict} at |p| = {limit:,.5g} (dashed)"
    caption = f"{len(flow.arc) - 1:,} steps of gradient flow"
    spec = finish(chart, data, "Norm of p under gradient flow", [said, caption])
    return Picture("norm", "norm", "", spec, caption, f"Norm of p against the logarithm of time: {said}.")


def _loss(curve: pl.DataFrame) -> Picture:
    """Loss against log t, up to where all but a thousandth of its fall is done."""
    rows = curve.select(x="log_time", y="loss").drop_nulls()
    loss = rows["y"].to_numpy()
    settled = loss - loss[-1] <= 1e-3 * (loss[0] - loss[-1]) if len(loss) else np.zeros(0, bool)
    last = int(np.argmax(settled)) + 1 if settled.any() else len(loss)
    wide = max(last, min(len(loss), 10))
    title = "log t, until 99.9 % of the fall is done" if wide < len(loss) else "log t"
    x, y = alt.X("x:Q", title=title, axis=axis()), alt.Y("y:Q", title="loss", axis=axis())
    chart, data = _line(rows[:wide], x, y)
    ends = f"from {curve['loss'][0]:.4g} to {curve['loss'][-1]:.4g}"
    spec = finish(chart, data, "Loss under gradient flow", [ends, f"{len(loss):,} steps, {wide:,} shown"])
    return Picture("loss", "loss", "", spec, f"{wide:,} of {len(loss):,} steps shown", f"Loss against log t, {ends}.")


def _angle(study: Study, curve: pl.DataFrame) -> Picture:
    """Angle to the max-margin direction against ‖p‖ on logarithmic axes, with the fitted rate through the last point."""
    agreement = study.found.agreement
    assert agreement is not None
    rows = curve.select(x="norm", y="angle").filter(pl.col("y") > 0)
    log = alt.Scale(type="log", nice=False, padding=8)
    x = alt.X("x:Q", title="|p|", scale=log, axis=_decades(rows["x"]))
    y = alt.Y("y:Q", title="angle to the limit direction (rad)", scale=log, axis=_decades(rows["y"]))
    chart, data = _line(rows, x, y)
    said = f"{agreement.angle:.3g} rad at the end"
    if math.isfinite(agreement.exponent) and rows.height:
        end = rows[-1].to_dicts()[0]
        near = end["x"] / 30
        data["fit"] = [{"x": r, "y": end["y"] * (r / end["x"]) ** agreement.exponent} for r in (near, end["x"])]
        fit = alt.Chart(alt.NamedData("fit")).mark_line(color=INK, strokeDash=[5, 4]).encode(x="x:Q", y="y:Q")
        chart = alt.layer(chart, fit)
        said += f", falling like |p| to the {agreement.exponent:.2f} ± {agreement.standard_error:.2f} (dashed)".replace(
            "-", "−"
        )
    spec = finish(chart, data, "Direction of p against max margin", [said])
    caption = "both axes are logarithmic"
    return Picture("angle", "angle", "", spec, caption, f"Angle between p and the max-margin direction: {said}.")


def _gaps(study: Study, gaps: pl.DataFrame) -> Picture:
    """Score gaps against log t: the flow in wide pale lines, the prediction dashed on top of them."""
    rows = gaps.select("pair", "kind", "source", x="log_time", y="gap")
    colour = alt.Color(
        "kind:N", legend=alt.Legend(title=None, orient="bottom", symbolOpacity=1),
        scale=alt.Scale(domain=["finite", "tight"], range=[SIDES["negative"], BLUE]),
    )  # fmt: skip
    x, y = alt.X("x:Q", title="log t", axis=axis()), alt.Y("y:Q", title="score gap (nats)", axis=axis())
    base = alt.Chart(alt.NamedData("flow")).encode(x=x, y=y, color=colour, detail="pair:N")
    chart = alt.layer(
        base.mark_line(strokeWidth=5, opacity=0.35),
        alt.Chart(alt.NamedData("prediction"))
        .mark_line(strokeWidth=1.5, strokeDash=[6, 4])
        .encode(x=x, y=y, color=colour, detail="pair:N"),
    )
    data = {source: rows.filter(pl.col("source") == source).to_dicts() for source in ("flow", "prediction")}
    start, end, error = study.found.limit.compared
    said = f"prediction (dashed) from log t = {start:.3g}; relative error {error:.1e} up to {end:.4g}"
    pairs = rows.select("pair").n_unique()
    spec = finish(chart, data, "Finite and growing score gaps", [said, f"{pairs} pairs of tokens"])
    listing = ", ".join(shown(pair, 60) for pair in rows["pair"].unique(maintain_order=True))
    return Picture(
        "gaps", "gaps", "", spec, f"{pairs} pairs of tokens", f"Score gaps against log t, {said}: {listing}."
    )


def _scores(study: Study, tokens: pl.DataFrame, when: str) -> Picture:
    """Scores against α at the start or the end of the flow."""
    of, norm = f"score_{when}", float(study.found.flow.norm[0 if when == "before" else -1])
    points, largest = scaled(tokens, of, study.seed)
    y = alt.Y("y:Q", title="score", scale=alt.Scale(zero=False, padding=16), axis=axis())
    most = max(10, *tokens["documents"])
    chart = alt.layer(cloud(x_alpha(), y, most, SIDES), *names())
    caption = f"{points.height:,} of {tokens.height:,} token types shown"
    said = f"at |p| = {norm:,.5g}"
    title = f"Scores {when} the flow of p"
    spec = finish(chart, cloud_data(points, of, largest), title, [said, caption])
    low, high = tokens.select(low=pl.col(of).min(), high=pl.col(of).max()).row(0)
    description = f"{title}, {said}: from {low:.4g} to {high:.4g}, against α."
    return Picture(f"score-{when}", "scores", "", spec, caption, description)


def _selected(study: Study, tokens: pl.DataFrame) -> Picture:
    """The tokens that most documents select, beside the documents that hold them."""
    top = tokens.filter(pl.col("selected_in") > 0).sort(
        "selected_in", "documents", descending=True, maintain_order=True
    )
    rows = [
        {"rank": rank, "held": held, "chosen": chosen, "category": category,
         "text": f"{shown(token, 24)}  {chosen:,} of {held:,}"}
        for rank, (token, held, chosen, category) in enumerate(
            top.head(BARS).select("token", "documents", "selected_in", "category").iter_rows()
        )
    ]  # fmt: skip
    most = max((row["held"] for row in rows), default=1)
    base = alt.Chart(alt.NamedData("bars")).encode(
        y=alt.Y("rank:O", axis=None),
        color=alt.Color(
            "category:N",
            legend=alt.Legend(title=None, orient="bottom", columns=3, columnPadding=40, symbolOpacity=1),
            scale=alt.Scale(domain=list(SIDES), range=list(SIDES.values())),
        ),
    )
    across = alt.X("held:Q", title="documents", scale=alt.Scale(domain=[0, 1.5 * most], nice=False), axis=axis())
    text = base.mark_text(align="left", dx=6, fontSize=12).encode(x="held:Q", text="text:N", color=alt.value(INK))
    chart = alt.layer(
        base.mark_bar(opacity=0.3, height={"band": 0.75}).encode(x=across),
        base.mark_bar(height={"band": 0.75}).encode(x="chosen:Q"),
        text,
    )
    caption = f"{len(rows):,} of {top.height:,} token types that any document selects"
    said = "documents that select the token, and in pale those that only hold it"
    spec = finish(chart, {"bars": rows}, "Tokens selected most often", [said, caption], height=18 * max(len(rows), 4))
    listing = ", ".join(row["text"] for row in rows)
    return Picture("selected", "selected", "", spec, caption, f"Documents that select each token: {listing}.")
