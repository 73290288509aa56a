"""The report of `verify`, as blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from tokensieve import __version__
from tokensieve.escape import for_display
from tokensieve.report.blocks import (
    PAGE,
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
from tokensieve.text.counts import Counts
from tokensieve.theory.claims import Claim, Outcome
from tokensieve.theory.flow.solve import Agreement
from tokensieve.theory.generators import GENERATED
from tokensieve.theory.limit.certify import FlowLimit, Proved
from tokensieve.wording import noun, verb

if TYPE_CHECKING:
    from tokensieve.theory.verify import Verification

# What the verdict adds about its certainty.
STATUS: dict[Proved, str] = {
    "": " (computed, not proved)",
    "attractor": " (the limit is proved, the way there computed)",
    "from this point on": " (proved from the last computed point on)",
}


@dataclass(frozen=True)
class OutcomeWording:
    """How a claim's outcome is set, and what the verdict says of one such claim and of several."""

    style: Style
    of_one: str
    of_several: str


_OUTCOMES: dict[Outcome, OutcomeWording] = {
    "holds": OutcomeWording("good", "", ""),
    "fails": OutcomeWording("bad", "fails", "fail"),
    "hypothesis not met": OutcomeWording(
        "plain", "has a hypothesis that is not met", "have a hypothesis that is not met"
    ),
    "needs a longer run": OutcomeWording("warning", "needs a longer run", "need a longer run"),
}
_MEANS = {
    "converges to a point": (
        "With longer training, attention settles at fixed weights, and every token keeps some of "
        "it.",
        "For a model, this means that no token is ever ignored, and that training longer changes "
        "little.",
    ),
    "diverges along p̂ with finite gaps": (
        "With longer training, attention ends up on a few selected tokens of each document, in "
        "fixed proportions.",
        "For a model, this means that its predictions come to depend on those tokens alone, "
        "unequally; it ignores the others.",
    ),
    "diverges, Theorem 4.3": (
        "With longer training, attention ends up on one selected token of each document.",
        "For a model, this means that its predictions come to depend on that token alone; it "
        "ignores the others.",
    ),
    "not settled": (
        "This run could not settle where attention ends up with longer training.",
        "For a model, this leaves open which tokens it would rely on if it were trained longer.",
    ),
}
_HOW_SURE = {
    "from this point on": "Proved in ball arithmetic, from the last computed point on:",
    "attractor": (
        "Proved in ball arithmetic from every point near a later one of the path; computed up to "
        "there:"
    ),
    "": "Certified in double precision, not proved:",
}
# The claims for people who have not read the paper, in the order of `Claim.of_theory`.
_PLAIN = (
    "one training step already gives each token a value in proportion to how one-sided it is "
    "(Lemma 4.1)",
    "attention keeps concentrating for as long as training lasts (Lemma 4.2)",
    "in the end a prediction is the plain average over the selected tokens (Lemma 4.4)",
    "the tokens that predict the label are among the selected ones (Lemma 4.5)",
    "the selected tokens are separated by the largest possible margin (Theorem 4.3)",
)
_TERMS = {
    "p, v, α, η": (
        "A token's score is the product of the vector p with its embedding; its value is the "
        "product of v with it. α is a token's average signed frequency: the mean over documents "
        "of y times the token's fraction of the document. η is the size of the first training "
        "step."
    ),
    "Assumption 1": (
        "The paper's main assumption: each document contains exactly one token that occurs only "
        "in its class, and all other tokens are equally frequent in both classes."
    ),
    "Score and value": (
        "A document's attention is the softmax of its tokens' scores. Its logit is the sum of "
        "attention × value."
    ),
    "Positive, negative, irrelevant": (
        "The sign of α; irrelevant means α = 0. Completely positive tokens occur only in "
        "documents with y = +1."
    ),
    "Selected": (
        "The tokens of a document that keep attention as training continues and ‖p‖, the norm of "
        "p, grows."
    ),
    "Finite gap": (
        "The difference between the scores of two tokens that are selected together: it settles "
        "while ‖p‖ grows."
    ),
    "log t": ("The logarithm of the time of gradient flow. Growing gaps grow in proportion to it."),
    "Hypothesis not met": (
        "The claim does not apply to this data; the page states what is true instead."
    ),
    "Needs a longer run": (
        "The budget ran out before the limit could be certified. A run that is too short does not "
        "disprove the claim."
    ),
    "Max margin": (
        "The shortest p that separates the selected tokens of every document from its other "
        "tokens. It is certified by the gap between an upper and a lower bound on its optimum, by "
        "the residual of its optimality conditions, and by the smallest margin over every pair of "
        "every document, all computed anew after solving."
    ),
    "Proved, certified, not settled": (
        "Proved from this point on: an inequality in ball arithmetic proves the limit of the flow "
        "from the last point on. Proved attractor: it proves that the limit exists and attracts "
        "every curve near it; that this curve arrives there is computed. Numerically certified: "
        "the conditions hold in double precision. Not settled: none of these applies, for the "
        "reason given."
    ),
    "Certificate": (
        "Three conditions: (F1) the finite gaps are at a strict minimum; (F2) no shorter p "
        "separates the selected tokens; (F3) the forces on the growing gaps balance. "
        "certificate.npz contains the numbers, and checker.py (in theory/limit) proves them "
        "without the rest of the package: python checker.py certificate.npz."
    ),
}
# What "used settings" leaves out: how generated documents are made, or how texts are counted.
_OF_TEXTS = {"ngrams", "min_documents"}
_OF_GENERATED = {"documents", "types", "relevant", "length"}
# So many finite gaps, and changes of the selection, are listed.
_MOST_GAPS = 20
_MOST_CHANGES = 10
# Classes whose names say which one is positive.
_PLAIN_CLASSES = (("-1", "+1"), ("negative", "positive"))


def report_of(found: Verification) -> Report:
    """Verdicts, hypotheses, pictures and certificates of a verification."""
    limit = found.limit
    status = STATUS[limit.proved] if limit.fate != "not settled" else ""
    pictures = _pictures(found)
    # The first screen of a page: the selected tokens (if undecided, the first step), the claims'
    # outcomes and what to do next.
    on_top = pictures[-1] if pictures[-1].name == "selected" else pictures[0]
    lower_pictures = tuple(picture for picture in pictures if picture is not on_top)
    return Report(
        command="verify",
        title=f"The theory's claims on {for_display(found.name)}",
        verdict=f"{_MEANS[limit.fate][0].removesuffix('.')}{status}. {_outcomes(found)}.",
        blocks=(
            *_opening(found, on_top),
            Section("Claims", tuple(_claims(found)), "found"),
            Section("Where attention ends up", tuple(_limit(found)), "limit"),
            Section("Hypotheses", tuple(_hypotheses(found)), "hypotheses"),
            Section("Pictures", lower_pictures, "pictures", only=PAGE),
            Section("Terms", (Terms(tuple(_TERMS.items())),), "words", folded=True, only=PAGE),
        ),
        about=_about(found),
    )


def _outcomes(found: Verification) -> str:
    """How many claims hold, and what became of the others."""
    total = len(found.claims)
    counts = {
        outcome: sum(claim.outcome == outcome for claim in found.claims) for outcome in _OUTCOMES
    }
    n_holding = counts.pop("holds")
    if n_holding == total:
        parts = [f"All {total} claims hold"]
    else:
        parts = [f"{n_holding} of {total} claims {verb(n_holding, 'hold')}"]
    for outcome, count in counts.items():
        if count:
            wording = _OUTCOMES[outcome]
            parts.append(f"{count} {wording.of_one if count == 1 else wording.of_several}")
    return ", ".join(parts)


def _opening(found: Verification, picture: Picture) -> list[Block]:
    """What stands before the first section."""
    blocks: list[Block] = [Text(_lead(found.counts), "lead")]
    is_settled = found.limit.fate != "not settled"
    if not is_settled and "--max-seconds" in found.limit.reason:
        hint = (
            "The time limit ended this run before a limit was certified. Next, allow more time "
            "with --max-seconds; --resume FILE continues where a run stopped."
        )
        blocks.append(Text(hint, "warning"))
    blocks.append(picture)
    if is_settled:
        blocks.append(Text(_statement(found.limit), only=("html",)))
    for claim, plain in zip(found.claims, _PLAIN, strict=True):
        style = _OUTCOMES[claim.outcome].style
        blocks.append(Text(f"{claim.outcome}: {plain}", style, only=("html",)))
    if is_settled:
        hint = (
            "Next: read where attention ends up. To check the certificate without this package, "
            "run theory/limit/checker.py: python checker.py certificate.npz."
        )
        blocks.append(Text(hint, only=("html",)))
    blocks += [
        Text(f"{for_display(note[:1].upper() + note[1:], 300)}.", "note") for note in found.notes
    ]
    return blocks


def _statement(limit: FlowLimit) -> str:
    """The limit in the paper's symbols, and how much of it is proved, for the first screen."""
    face = limit.face
    if limit.direction is None or face is None:
        point = "p converges to a finite point, a minimum of the loss nearby"
        return f"{_HOW_SURE[limit.proved]} {point}."
    statement = "p follows the line p̂ log t + ρ + z*, so that p/‖p‖ tends to p̂/‖p̂‖"
    if limit.is_max_margin:
        statement += ", the max-margin direction of the selection"
    if face.dimension:
        statement += (
            ". The score gaps between tokens that are selected together "
            f"(dim V = {face.dimension}) tend to those of z*, and all others grow like log t; the "
            "paper's Theorem 4.3 covers dim V = 0"
        )
    else:
        statement += ". All score gaps below a selected token grow like log t"
    figures = limit.proof
    if limit.proved == "from this point on" and "radius" in figures:
        start = f"from log t = {figures['log_time']:.4g} on"
        statement += f" ({start}, p stays within {figures['radius']:.3g} of the line)"
    return f"{_HOW_SURE[limit.proved]} {statement}."


def _lead(counts: Counts) -> str:
    """Whose claims they are, what was trained, and on what data."""
    lead = (
        "The claims are those of “Attention with Trained Embeddings Provably Selects Important "
        "Tokens” (2025). One training step was taken on random embeddings; then a vector p was "
        "trained for a time t, as long as it takes to see where attention ends up. A token's "
        "score is the product of p with its embedding, and a document's attention is the softmax "
        "of its scores. "
        f"This data has {counts.n_documents:,} documents and {counts.n_types:,} token types"
    )
    if counts.classes not in _PLAIN_CLASSES:
        negative, positive = (for_display(name, 40) for name in counts.classes)
        lead += f"; positive means {positive}, negative means {negative}"
    return f"{lead}."


def _about(found: Verification) -> dict[str, object]:
    """Version, the settings that decided something, and times."""
    face = found.limit.face
    unused = _OF_TEXTS if found.name == GENERATED else _OF_GENERATED
    has_ties = face is not None and face.dimension > 0
    about: dict[str, object] = {"version": __version__, "seed": found.settings.seed}
    for name, value in found.settings_used().items():
        if name not in unused and (has_ties or name != "max_log_time"):
            about[name] = f"{value:g}" if isinstance(value, float) else value
    return about | {"seconds": found.seconds}


def _claims(found: Verification) -> list[Block]:
    """Each claim with its outcome and figures."""
    failing = sum(item.holds is False for item in found.assumptions)
    head = (
        "The paper says what training does to a model: which tokens gain weight first, and which "
        "it relies on in the end. Each claim below is followed by the figures that decide it. "
    )
    if failing:
        head += (
            f"This data violates {failing} of the {len(found.assumptions)} hypotheses behind the "
            "claims, so a claim that fails here does not contradict the theory."
        )
    else:
        head += "All hypotheses behind the claims hold."
    blocks: list[Block] = [Text(head, only=PAGE)]
    for claim in found.claims:
        blocks += [
            Text(f"{claim.outcome}: {claim.name}", _OUTCOMES[claim.outcome].style),
            Text(for_display(claim.verdict, 600)),
        ]
    return blocks


def _limit(found: Verification) -> list[Block]:
    """Where attention ends up, with the certificates."""
    blocks: list[Block] = [
        Text(f"{' '.join(_MEANS[found.limit.fate])} The evidence follows.", "lead", only=PAGE)
    ]
    lines = [*_grade_lines(found.limit), *_certificate_lines(found.limit), *_path_lines(found)]
    blocks += [Text(for_display(line, 600)) for line in lines]
    gaps = found.finite_gaps().head(_MOST_GAPS)
    if gaps.height:
        columns = (
            Column("Token", "token"),
            Column("stays above", "token"),
            Column("by (nats)", "plain", 3),
            Column("Documents", "count"),
        )
        rows = gaps.select("token", "below", "gap", "documents").rows()
        blocks.append(Table("Finite score gaps", columns, rows, only=PAGE))
    return blocks


def _grade_lines(limit: FlowLimit) -> list[str]:
    if limit.fate == "not settled":
        return [f"not settled, because {limit.reason}"]
    verdict = f"{limit.grade}: {limit.fate}"
    if limit.reason:
        verdict += f"; {limit.reason}"
    return [verdict, _proof_line(limit)]


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
            "proved in ball arithmetic: the point is a strict minimum and attracts every curve "
            "near it; that this curve gets there is computed"
        )
    if "radius" in figures:
        return (
            f"proved in ball arithmetic: from log t = {figures['log_time']:.4g} on, p stays within "
            f"{figures['radius']:.3g} of the line p̂ log t + ρ' + z*"
        )
    return "proved in ball arithmetic: the last point lies in the basin of a strict minimum"


def _certificate_lines(limit: FlowLimit) -> list[str]:
    """(F1), (F2) and (F3), where they were looked at."""
    face = limit.face
    finite = limit.finite
    margin = limit.margin
    balance = limit.balance
    lines = []
    if face is not None and finite is not None and face.dimension:
        surface = ""
        if finite.flat:
            surface = f" across a surface of minima of dimension {finite.flat}"
        lines.append(
            f"(F1) tied tokens keep their proportions: dim V = {face.dimension}, "
            f"{finite.documents:,} documents; smallest curvature {finite.curvature:.3g} > 0"
            f"{surface}"
        )
    if margin is not None and limit.direction is not None:
        separated = "separated" if limit.is_max_margin else "not separated"
        lines.append(
            f"(F2) selected tokens are {separated} from the others as far as possible: margin "
            f"{margin.margin:.4g}, duality gap {margin.duality_gap:.1e}, KKT residual "
            f"{margin.kkt_residual:.1e}"
        )
    if balance is not None:
        lines.append(
            f"(F3) the forces on the growing gaps balance: {len(balance.tight)} constraints are "
            f"active, {balance.pulling or 'none'} of them against convergence; smallest curvature "
            f"{balance.curvature:.3g} > 0, residual {balance.residual:.1e}; "
            f"angle·‖p‖ tends to {limit.angle_constant:.4g}"
        )
    return lines


def _path_lines(found: Verification) -> list[str]:
    """How the flow gets to its limit."""
    limit = found.limit
    attended = found.attended
    lines = []
    if attended is not None and math.isfinite(attended.final_from):
        line = "no document's highest-scoring token changes after log t = "
        line += f"{attended.final_from:.3g}"
        conditions = _condition_numbers(limit)
        if conditions:
            line += f"; condition number {' and '.join(conditions)}"
        lines.append(line)
    visible_changes = [change for change in limit.changes if change.documents]
    if visible_changes:
        changes = ", ".join(
            f"{change.log_time:,.4g} ({change.documents})"
            for change in visible_changes[:_MOST_CHANGES]
        )
        lines.append(
            "the highest-scoring token changes again at these values of log t (number of "
            f"documents): {changes}"
        )
    compared = limit.compared
    if math.isfinite(compared.error):
        lines.append(
            f"the path is predicted from log t = {compared.begins:.4g} on; up to log t = "
            f"{compared.ends:.4g} the computed flow stays within {compared.error:.1e} of it, "
            "relative to ‖p‖"
        )
    if attended is not None and math.isfinite(attended.one_sided_share):
        lines.append(
            f"{attended.one_sided_share:.1%} of the documents containing a completely positive or "
            "negative token select one"
        )
    return lines


def _condition_numbers(limit: FlowLimit) -> list[str]:
    """How far curvatures differ, which says how hard the data set is."""
    numbers = []
    if limit.finite is not None and math.isfinite(limit.finite.curvature):
        numbers.append(f"{1 / limit.finite.spread:.3g} (F1)")
    if limit.balance is not None:
        numbers.append(f"{1 / limit.balance.spread:.3g} (F3)")
    return numbers


def _hypotheses(found: Verification) -> list[Block]:
    """Which hypotheses hold here; the terminal shows those that fail."""
    n = len(found.assumptions)
    n_failing = sum(item.holds is False for item in found.assumptions)
    head = f"All {n} hypotheses of the theory hold on this data."
    if n_failing:
        fail = verb(n_failing, "fail")
        head = f"{n_failing} of {n} hypotheses of the theory {fail} on this data:"
    explanation = (
        "The paper proves its claims for data that meets these conditions. Where one fails, a "
        "model may still behave as claimed, but that is not proved."
    )
    blocks: list[Block] = [Text(head, only=("terminal",)), Text(explanation, only=PAGE)]
    for item in found.assumptions:
        blocks += _hypothesis(found, item)
    return blocks


def _hypothesis(found: Verification, item: Claim) -> list[Block]:
    """A hypothesis and its reason, with examples of what breaks it."""
    only: tuple[Medium, ...] = ("terminal", *PAGE) if item.holds is False else PAGE
    reason = for_display(item.verdict, 600)
    examples = [] if item.holds else _examples(found, item)
    if examples:
        reason += f"; for example {'; '.join(examples)}"
    outcome = "not applicable" if item.holds is None else item.outcome
    heading = Text(f"{outcome}: {item.name}", _OUTCOMES[item.outcome].style, only=only)
    return [heading, Text(reason, only=only)]


def _examples(found: Verification, item: Claim) -> list[str]:
    """Rows and tokens on which a hypothesis fails."""
    examples = []
    if item.documents:
        rows = ", ".join(str(row) for row in found.rows[list(item.documents)])
        examples.append(f"{noun(len(item.documents), 'row')} {rows}")
    if item.types:
        examples.append(f"tokens {', '.join(for_display(token, 30) for token in item.types)}")
    return examples


def _pictures(found: Verification) -> list[Picture]:
    """The pictures; some only where p diverges along a direction, the limit was predicted, or the
    selection is decided."""
    tokens = found.token_table()
    pictures = [_alignment(found, tokens), _norm(found)]
    if found.agreement is not None:
        pictures.append(_angle(found, found.agreement))
    gaps = found.gap_curves()
    if gaps.height:
        pictures.append(_gaps(found, gaps))
    pictures += [_scores(found, tokens, "before"), _scores(found, tokens, "after")]
    if found.attended is not None:
        pictures.append(_selected(tokens))
    return pictures


def _alignment(found: Verification, tokens: pl.DataFrame) -> Picture:
    """The picture of Lemma 4.1: how one step moved each type's embedding, against α."""
    step = found.step
    slope = f"slope {step.slope:.4g} (expected {step.expected_slope:.4g}), R² {step.r2:.4f}"
    return Picture(
        name="alignment",
        chart="theory-alignment",
        data={
            "tokens": tokens,
            "seed": found.settings.seed,
            "slope": step.slope,
            "expected": step.expected_slope,
            "said": slope,
        },
        title="One step aligns embeddings with v",
        caption=(
            "Each dot is a token type. One gradient step moves its embedding along v in proportion "
            "to α: a token used more in one class becomes evidence for that class."
        ),
        description=f"Movement of each embedding along v against α: {slope}.",
    )


def _norm(found: Verification) -> Picture:
    """The picture of Lemma 4.2: ‖p‖ along the curve."""
    curve = found.flow_table()
    n_steps = curve.height - 1
    summary = f"{found.flow.norm[-1]:,.5g} at the end, after {n_steps:,} steps of gradient flow"
    return Picture(
        name="norm",
        chart="theory-norm",
        data={"curve": curve, "said": summary},
        title="Norm of p under gradient flow",
        caption=(
            "The larger ‖p‖, the more sharply attention concentrates. Where p diverges, its norm "
            "grows in proportion to log t."
        ),
        description=f"Norm of p against the logarithm of time: {summary}.",
    )


def _angle(found: Verification, agreement: Agreement) -> Picture:
    """The picture of Theorem 4.3: the angle between p and its limit."""
    summary = f"{agreement.angle:.3g} rad at the end"
    if math.isfinite(agreement.exponent):
        exponent = f"{agreement.exponent:.2f} ± {agreement.standard_error:.2f}"
        summary += f", falling like ‖p‖ to the {exponent} (dashed)"
    summary = summary.replace("-", "−")
    return Picture(
        name="angle",
        chart="theory-angle",
        data={
            "curve": found.flow_table(),
            "exponent": agreement.exponent,
            "said": summary,
        },
        title="Direction of p against its limit",
        caption=(
            "How far p still is from the predicted direction. The theory expects the angle to fall "
            "like 1/‖p‖."
        ),
        description=f"Angle between p and its limit: {summary}.",
    )


def _gaps(found: Verification, gaps: pl.DataFrame) -> Picture:
    """The picture of score gaps that settle, and of the tight ones, which grow most slowly."""
    compared = found.limit.compared
    summary = (
        f"prediction (dashed) from log t = {compared.begins:.3g}; distance to its path "
        f"{compared.error:.1e}"
    )
    pairs = ", ".join(for_display(pair, 60) for pair in gaps["pair"].unique(maintain_order=True))
    title = "Growing score gaps"
    caption = (
        "A growing gap takes attention from the lower token. Tight gaps grow like log t, the "
        "slowest of all growing gaps."
    )
    if "finite" in gaps["kind"]:
        title = "Finite and growing score gaps"
        caption += " Finite gaps settle."
    return Picture(
        name="gaps",
        chart="theory-gaps",
        data={"gaps": gaps, "said": summary},
        title=title,
        caption=caption,
        description=f"Score gaps against log t, {summary}: {pairs}.",
    )


def _scores(found: Verification, tokens: pl.DataFrame, when: Literal["before", "after"]) -> Picture:
    """The picture of all scores against α, at the start of the flow or at its end."""
    caption = "Scores at the random start, after one step."
    row = 0
    if when == "after":
        caption = "A document attends to its tokens of highest score."
        row = -1
    summary = f"at ‖p‖ = {float(found.flow.norm[row]):,.5g}"
    title = f"Scores {when} the flow of p"
    return Picture(
        name=f"score-{when}",
        chart="theory-scores",
        data={
            "tokens": tokens,
            "seed": found.settings.seed,
            "of": f"score_{when}",
            "said": summary,
        },
        title=title,
        caption=caption,
        description=f"{title}, {summary}, against α.",
    )


def _selected(tokens: pl.DataFrame) -> Picture:
    """The picture of the tokens that most documents select."""
    selected = tokens.filter(pl.col("selected_in") > 0)
    return Picture(
        name="selected",
        chart="theory-selected",
        data={"tokens": selected},
        title="Tokens selected most often",
        caption=f"{selected.height:,} token types keep attention in at least one document",
        description="Documents that select each token, beside the documents that contain it.",
    )
