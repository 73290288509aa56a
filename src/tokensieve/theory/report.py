"""The report of `verify`, as blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from tokensieve import __version__
from tokensieve.escape import for_display
from tokensieve.report.blocks import (
    Block,
    Column,
    Medium,
    Picture,
    Report,
    Section,
    Style,
    Table,
    Terms,
    Text,
)
from tokensieve.theory.claims import Outcome
from tokensieve.theory.generators import GENERATED
from tokensieve.theory.limit.certify import FlowLimit, Proved
from tokensieve.wording import noun, verb

if TYPE_CHECKING:
    from tokensieve.theory.verify import Verification

# What the verdict adds about its certainty.
STATUS: dict[Proved, str] = {
    "": " (computed, not proved)",
    "attractor": " (the limit is proved, the way there computed)",
    "from this point on": " (proved)",
}
_PAGE: tuple[Medium, ...] = ("html", "markdown")
# How a claim's outcome is set, and what the verdict says of one such claim and of several.
_OUTCOMES: dict[Outcome, tuple[Style, str, str]] = {
    "holds": ("good", "", ""),
    "fails": ("bad", "fails", "fail"),
    "hypothesis not met": (
        "plain",
        "has a hypothesis that is not met",
        "have a hypothesis that is not met",
    ),
    "needs a longer run": ("warning", "needs a longer run", "need a longer run"),
}
_MEANS = {
    "converges to a point": (
        "With longer training, attention settles at fixed weights, and every token keeps some of it.",
        "For a model, this means that no token is ever ignored, and that training longer changes little.",
    ),
    "diverges along p̂ with finite gaps": (
        "With longer training, attention ends up on a few selected tokens of each document, in fixed proportions.",
        "For a model, this means that its predictions come to depend on those tokens alone, unequally; it ignores the others.",
    ),
    "diverges, Theorem 4.3": (
        "With longer training, attention ends up on one selected token of each document.",
        "For a model, this means that its predictions come to depend on that token alone; it ignores the others.",
    ),
    "not settled": (
        "This run could not settle where attention ends up with longer training.",
        "For a model, this leaves open which tokens it would rely on if it were trained longer.",
    ),
}
# The claims for people who have not read the paper, in the order of `Claim.of_theory`.
_PLAIN = (
    "one training step already gives each token a value in proportion to how one-sided it is (Lemma 4.1)",
    "attention keeps concentrating for as long as training lasts (Lemma 4.2)",
    "in the end a prediction is the plain average over the selected tokens (Lemma 4.4)",
    "the tokens that predict the label are among the selected ones (Lemma 4.5)",
    "the selected tokens are separated by the largest possible margin (Theorem 4.3)",
)
_TERMS = {
    "p, v, α, η": "A token's score is the product of the vector p with its embedding; its value is the product of v with it. α is "
    "a token's average signed frequency: the mean over documents of y times the token's fraction of the document. η is the "
    "size of the first training step.",
    "Assumption 1": "The paper's main assumption: each document contains exactly one token that occurs only in its class, and all "
    "other tokens are equally frequent in both classes.",
    "Score and value": "A document's attention is the softmax of its tokens' scores. Its logit is the sum of attention × value.",
    "Positive, negative, irrelevant": "The sign of α; irrelevant means α = 0. Completely positive tokens occur only in documents "
    "with y = +1.",
    "Selected": "The tokens of a document that keep attention as training continues and ‖p‖, the norm of p, grows.",
    "Finite gap": "The difference between the scores of two tokens that are selected together: it settles while ‖p‖ grows.",
    "log t": "The logarithm of the time of gradient flow. Growing gaps grow in proportion to it.",
    "Hypothesis not met": "The claim does not apply to this data; the page states what is true instead.",
    "Needs a longer run": "The budget ran out before the limit could be certified. A run that is too short does not disprove the "
    "claim.",
    "Max margin": "The shortest p that separates the selected tokens of every document from its other tokens. It is certified by "
    "the gap between an upper and a lower bound on its optimum, by the residual of its optimality conditions, and by the "
    "smallest margin over every pair of every document, all computed anew after solving.",
    "Proved, certified, not settled": "Proved from this point on: an inequality in ball arithmetic proves "
    "the limit of the flow from the last point on. Proved attractor: it proves that the limit exists and "
    "attracts every curve near it; that this curve arrives there is computed. Numerically certified: "
    "the conditions hold in double precision. Not settled: none of these applies, for the reason given.",
    "Certificate": "Three conditions: (F1) the finite gaps are at a strict minimum; (F2) no shorter p separates the selected "
    "tokens; (F3) the forces on the growing gaps balance. certificate.npz contains the numbers, and "
    "checker.py (in theory/limit) proves them without the rest of the package: python checker.py "
    "certificate.npz.",
}


def report_of(found: Verification) -> Report:
    """Verdicts, hypotheses, pictures and certificates of a verification."""
    counts, limit = found.counts, found.limit
    total = len(found.claims)
    sizes = {one: sum(claim.outcome == one for claim in found.claims) for one in _OUTCOMES}
    hold = sizes.pop("holds")
    parts = [
        f"All {total} claims hold"
        if hold == total
        else f"{hold} of {total} claims {'holds' if hold == 1 else 'hold'}"
    ]
    parts += [f"{n} {_OUTCOMES[one][1 if n == 1 else 2]}" for one, n in sizes.items() if n]
    status = STATUS[limit.proved] if limit.fate != "not settled" else ""
    first, second = (for_display(name, 40) for name in counts.classes)
    lead = (
        "The claims are those of “Attention with Trained Embeddings Provably Selects Important Tokens” (2025). One training "
        "step was taken on random embeddings; then a vector p was trained for as long as it takes to see where attention ends "
        "up. A token's score is the product of p with its embedding, and a document's attention is the softmax of its scores. "
        f"This data has {counts.n_documents:,} documents and {counts.n_types:,} token types"
    )
    if counts.classes not in (("-1", "+1"), ("negative", "positive")):
        lead += f"; positive means {second}, negative means {first}"
    start: list[Block] = [Text(f"{lead}.", "lead")]
    if limit.fate == "not settled" and "--max-seconds" in limit.reason:
        words = "The time limit ended this run before a limit was certified. Next, allow more time with --max-seconds; "
        start.append(Text(f"{words}--resume FILE continues where a run stopped.", "warning"))
    # The first screen of a page: the selected tokens (if undecided, the first step), the claims'
    # outcomes and what to do next.
    pictures = _pictures(found)
    on_top = pictures[-1] if pictures[-1].name == "selected" else pictures[0]
    start.append(on_top)
    for one, plain in zip(found.claims, _PLAIN, strict=True):
        start.append(Text(f"{one.outcome}: {plain}", _OUTCOMES[one.outcome][0], only=("html",)))
    words = "Next: read where attention ends up. theory/limit/checker.py proves the certificate on its own: python "
    words += "checker.py certificate.npz."
    start += [Text(words, only=("html",))] * (limit.fate != "not settled")
    start += [
        Text(f"{for_display(note[:1].upper() + note[1:], 300)}.", "note") for note in found.notes
    ]
    ends: list[Block] = [
        Text(f"{' '.join(_MEANS[limit.fate])} The evidence follows.", "lead", only=_PAGE)
    ]
    ends += [Text(for_display(line, 600)) for line in _limit_lines(found)]
    gaps = found.finite_gaps().head(20)
    if gaps.height:
        columns = (
            Column("Token", "token"),
            Column("stays above", "token"),
            Column("by (nats)", "plain", 3),
        )
        rows = gaps.select("token", "below", "gap", "documents").rows()
        ends.append(
            Table("Finite score gaps", (*columns, Column("Documents", "count")), rows, only=_PAGE)
        )
    # What decided nothing here is left out: how generated documents are made, or how texts are
    # counted.
    generated = found.name == GENERATED
    idle = (
        {"ngrams", "min_documents"} if generated else {"documents", "types", "relevant", "length"}
    )
    idle |= set() if limit.face is not None and limit.face.dimension else {"max_log_time"}
    used = {name: x for name, x in found.settings_used().items() if name not in idle}
    return Report(
        command="verify",
        title=f"The theory's claims on {for_display(found.name)}",
        verdict=f"{_MEANS[limit.fate][0].removesuffix('.')}{status}. {', '.join(parts)}.",
        blocks=(
            *start,
            Section("Claims", tuple(_claims(found)), "found"),
            Section("Where attention ends up", tuple(ends), "limit"),
            Section("Hypotheses", tuple(_hypotheses(found)), "hypotheses"),
            Section(
                "Pictures",
                tuple(one for one in pictures if one is not on_top),
                "pictures",
                only=_PAGE,
            ),
            Section("Terms", (Terms(tuple(_TERMS.items())),), "words", folded=True, only=_PAGE),
        ),
        about={"version": __version__, "seed": found.settings.seed}
        | {name: f"{x:g}" if isinstance(x, float) else x for name, x in used.items()}
        | {"seconds": found.seconds},
    )


def _claims(found: Verification) -> list[Block]:
    """Each claim with its outcome and figures."""
    failing = sum(item.holds is False for item in found.assumptions)
    head = (
        "The paper says what training does to a model: which tokens gain weight first, and which it relies on in the end. "
        "Each claim below is followed by the figures that decide it. "
    )
    words = f"This data violates {failing} of the {len(found.assumptions)} hypotheses behind the claims, so a claim that "
    words += "fails here does not contradict the theory."
    out: list[Block] = [
        Text(head + (words if failing else "All hypotheses behind the claims hold."), only=_PAGE)
    ]
    for claim in found.claims:
        out += [
            Text(f"{claim.outcome}: {claim.name}", _OUTCOMES[claim.outcome][0]),
            Text(for_display(claim.verdict, 600)),
        ]
    return out


def _limit_lines(found: Verification) -> list[str]:
    """The certificates of the limit in words, one line each."""
    limit = found.limit
    face, finite, margin, balance = limit.face, limit.finite, limit.margin, limit.balance
    lines = [f"not settled, because {limit.reason}"]
    if limit.fate != "not settled":
        lines = [f"{limit.grade}: {limit.fate}" + (f"; {limit.reason}" if limit.reason else "")]
        lines.append(_proof_line(limit))
    if face is not None and finite is not None and face.dimension:
        lines.append(
            f"(F1) tied tokens keep their proportions: dim V = {face.dimension}, {finite.documents:,} documents; smallest "
            f"curvature {finite.curvature:.3g} > 0"
            + (f" across a surface of minima of dimension {finite.flat}" if finite.flat else "")
        )
    if margin is not None and limit.direction is not None:
        lines.append(
            f"(F2) selected tokens are{'' if limit.is_max_margin else ' not'} separated from the others as far as possible: margin "
            f"{margin.margin:.4g}, duality gap {margin.duality_gap:.1e}, KKT residual {margin.kkt_residual:.1e}"
        )
    if balance is not None:
        lines.append(
            f"(F3) the forces on the growing gaps balance: {len(balance.tight)} constraints are active, "
            f"{balance.pulling or 'none'} of them against convergence; smallest curvature {balance.curvature:.3g} > 0, residual "
            f"{balance.residual:.1e}; angle·‖p‖ tends to {limit.angle_constant:.4g}"
        )
    if found.attended is not None and math.isfinite(found.attended.final_from):
        # How hard the data set is: where the selection is final, and how far curvatures differ.
        conditions = (
            [f"{1 / finite.spread:.3g} (F1)"]
            if finite is not None and math.isfinite(finite.curvature)
            else []
        )
        conditions += [f"{1 / balance.spread:.3g} (F3)"] if balance is not None else []
        words = f"no document's highest-scoring token changes after log t = {found.attended.final_from:.3g}"
        lines.append(
            words + (f"; condition number {' and '.join(conditions)}" if conditions else "")
        )
    if limit.changes:
        at = ", ".join(
            f"{change.log_time:,.4g} ({change.documents})" for change in limit.changes[:10]
        )
        lines.append(
            f"the highest-scoring token changes again at these values of log t (number of documents): {at}"
        )
    begun, ended, error = limit.compared.begins, limit.compared.ends, limit.compared.error
    if math.isfinite(error):
        lines.append(
            f"the path is predicted from log t = {begun:.4g} on; up to log t = {ended:.4g} the computed flow "
            f"stays within {error:.1e} of it, relative to ‖p‖"
        )
    if found.attended is not None and math.isfinite(found.attended.one_sided_share):
        share = found.attended.one_sided_share
        lines.append(
            f"{share:.1%} of the documents containing a completely positive or negative token select one"
        )
    return lines


def _proof_line(limit: FlowLimit) -> str:
    """What is proved of the limit, and what is not."""
    figures = limit.proof
    if not limit.proved:
        return f"not proved, because {limit.unproved}"
    if limit.proved == "attractor" and "attractor_log_time" in figures:
        return (
            "proved in ball arithmetic: the limit exists and attracts every curve near it from log "
            f"t = {figures['attractor_log_time']:.4g} on; that this curve gets there is computed, "
            f"because {limit.unproved}"
        )
    if limit.proved == "attractor":
        return (
            "proved in ball arithmetic: the point is a strict minimum and attracts every curve near "
            "it; that this curve gets there is computed"
        )
    if "radius" in figures:
        return (
            f"proved in ball arithmetic: from log t = {figures['log_time']:.4g} on, p stays within "
            f"{figures['radius']:.3g} of the line p̂ log t + ρ' + z*"
        )
    return "proved in ball arithmetic: the last point lies in the basin of a strict minimum"


def _hypotheses(found: Verification) -> list[Block]:
    """Which hypotheses hold here; the terminal shows those that fail."""
    total, failing = len(found.assumptions), sum(item.holds is False for item in found.assumptions)
    head = f"{failing} of {total} hypotheses of the theory {verb(failing, 'fail')} on this data:"
    head = head if failing else f"All {total} hypotheses of the theory hold on this data."
    out: list[Block] = [Text(head, only=("terminal",))]
    head = "The paper proves its claims for data that meets these conditions. Where one fails, a model may still behave as "
    out.append(Text(f"{head}claimed, but that is not proved.", only=_PAGE))
    for item in found.assumptions:
        only: tuple[Medium, ...] = ("terminal", *_PAGE) if item.holds is False else _PAGE
        examples = []
        if item.documents and not item.holds:
            rows = ", ".join(str(row) for row in found.rows[list(item.documents)])
            examples.append(f"{noun(len(item.documents), 'row')} {rows}")
        if item.types and not item.holds:
            examples.append(f"tokens {', '.join(for_display(word, 30) for word in item.types)}")
        reason = for_display(item.verdict, 600) + (
            f"; for example {'; '.join(examples)}" if examples else ""
        )
        outcome = "not applicable" if item.holds is None else item.outcome
        out.append(Text(f"{outcome}: {item.name}", _OUTCOMES[item.outcome][0], only=only))
        out.append(Text(reason, only=only))
    return out


def _pictures(found: Verification) -> list[Picture]:
    """The pictures; some only where p diverges along a direction, the limit was predicted, or the
    selection is decided."""
    tokens, curve, seed = found.token_table(), found.flow_table(), found.settings.seed
    step, flow, out = found.step, found.flow, list[Picture]()

    def add(
        name: str,
        data: dict[str, object],
        title: str,
        caption: str,
        description: str,
        chart: str = "",
    ) -> None:
        out.append(Picture(name, f"theory-{chart or name}", data, title, caption, description))

    slope = f"slope {step.slope:.4g} (expected {step.expected_slope:.4g}), R² {step.r2:.4f}"
    cloud: dict[str, object] = {"tokens": tokens, "seed": seed}
    data = cloud | {"slope": step.slope, "expected": step.expected_slope, "said": slope}
    said = "Each dot is a token type. One gradient step moves its embedding along v in proportion to α: a token "
    said += "used more in one class becomes evidence for that class."
    words = f"Movement of each embedding along v against α: {slope}."
    add("alignment", data, "One step aligns embeddings with v", said, words)
    said = f"{flow.norm[-1]:,.5g} at the end, after {curve.height - 1:,} steps of gradient flow"
    caption = "The larger ‖p‖, the more sharply attention concentrates. Where p diverges, its norm grows in proportion to log t."
    words = f"Norm of p against the logarithm of time: {said}."
    add("norm", {"curve": curve, "said": said}, "Norm of p under gradient flow", caption, words)
    if found.agreement is not None:
        angle, exponent, error = found.agreement
        said = f"{angle:.3g} rad at the end"
        if math.isfinite(exponent):
            said += f", falling like ‖p‖ to the {exponent:.2f} ± {error:.2f} (dashed)"
        said = said.replace("-", "−")
        caption = "How far p still is from the predicted direction. The theory expects the angle to fall like 1/‖p‖."
        data, words = (
            {"curve": curve, "exponent": exponent, "said": said},
            f"Angle between p and its limit: {said}.",
        )
        add("angle", data, "Direction of p against its limit", caption, words)
    gaps = found.gap_curves()
    if gaps.height:
        begun, error = found.limit.compared.begins, found.limit.compared.error
        said = f"prediction (dashed) from log t = {begun:.3g}; distance to its path {error:.1e}"
        pairs = ", ".join(
            for_display(pair, 60) for pair in gaps["pair"].unique(maintain_order=True)
        )
        words = f"Score gaps against log t, {said}: {pairs}."
        title = (
            "Finite and growing score gaps" if "finite" in gaps["kind"] else "Growing score gaps"
        )
        caption = "A growing gap takes attention from the lower token. Tight gaps grow like log t, the slowest of all growing gaps."
        caption += " Finite gaps settle." * ("finite" in gaps["kind"])
        add("gaps", {"gaps": gaps, "said": said}, title, caption, words)
    for when, row in (("before", 0), ("after", -1)):
        said, title = f"at ‖p‖ = {float(flow.norm[row]):,.5g}", f"Scores {when} the flow of p"
        data = cloud | {"of": f"score_{when}", "said": said}
        caption = (
            "A document attends to its tokens of highest score."
            if row
            else "Scores at the random start, after one step."
        )
        add(f"score-{when}", data, title, caption, f"{title}, {said}, against α.", "scores")
    if found.attended is not None:
        top = tokens.filter(pl.col("selected_in") > 0)
        said = f"{top.height:,} token types keep attention in at least one document"
        words = "Documents that select each token, beside the documents that contain it."
        add("selected", {"tokens": top}, "Tokens selected most often", said, words)
    return out
