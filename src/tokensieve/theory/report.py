"""What `verify` says, as blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from tokensieve import __version__
from tokensieve.blocks import Block, Column, Columns, Picture, Report, Section, Style, Table, Terms, Text
from tokensieve.escape import shown
from tokensieve.theory.claims import Assumption, Outcome
from tokensieve.theory.limit.certify import Fate, FlowLimit
from tokensieve.theory.tables import finite_gap_table, flow_table, gap_curves, token_table

if TYPE_CHECKING:
    from tokensieve.theory.verify import Verification

GAPS = 20
MORE_TIME = (
    "The time limit ended this run before a limit was certified. Allow more with --max-seconds; --resume FILE continues where a "
    "run stopped."
)
STYLES: dict[Outcome, Style] = {
    Outcome.HOLDS: "good",
    Outcome.FAILS: "bad",
    Outcome.UNMET: "plain",
    Outcome.LONGER: "warning",
}
MEANS = {
    Fate.POINT: "p stops growing: attention settles at fixed weights, and every token keeps some of it.",
    Fate.FINITE_GAPS: "p grows without end. In each document attention concentrates on its selected tokens and splits "
    "between them in fixed proportions; all other tokens lose theirs.",
    Fate.MAX_MARGIN: "p grows without end and separates the selected token of each document from all others by the "
    "largest margin, as Theorem 4.3 states.",
    Fate.UNDECIDED: "This run could not certify where attention ends up.",
}
TERMS = (
    (
        "p, v, α",
        "The products of the vector p with the embeddings are the attention scores; those of v are the values. "
        "α is a token's average signed frequency: the mean over documents of y times the token's fraction of the document.",
    ),
    (
        "Score and value",
        "A document's attention is the softmax of its tokens' scores. Its logit is the sum of attention × value.",
    ),
    (
        "Positive, negative, irrelevant",
        "By the sign of α. Completely positive tokens occur only in documents with y = +1.",
    ),
    ("Selected", "The tokens of a document that keep attention as |p| grows."),
    (
        "Finite gap",
        "The difference between the scores of two tokens that are selected together. It converges while |p| grows.",
    ),
    ("log t", "The logarithm of the time of gradient flow. Growing gaps grow in proportion to it."),
    ("Hypothesis not met", "The claim does not apply to this data; the page states what is true instead."),
    (
        "Needs a longer run",
        "The budget ended before the limit could be certified. A curve that is too short refutes nothing.",
    ),
    (
        "Certificate",
        "(F1) the finite gaps are at a strict minimum; (F2) no shorter p separates the selected tokens; (F3) the growing gaps "
        "balance. certificate.npz holds the numbers, and docs/theory.md a script that checks them.",
    ),
)


def report_of(found: Verification) -> Report:
    """Verdicts, hypotheses, pictures and certificates of a verification."""
    counts, step = found.counts, found.step
    failing = [item for item in found.assumptions if not item.holds]
    first, second = (shown(name, 40) for name in counts.classes)
    lead = f"{counts.n_documents:,} documents, {counts.n_types:,} token types, dimension {step.start.p.size:,}, η = {step.eta:.4g}"
    if counts.classes != ("-1", "+1"):
        lead += f"; y = +1 means {second}, y = −1 means {first}"
    notes = tuple(Text(shown(note, 300), "warning") for note in found.notes)
    return Report(
        command="verify",
        title=f"The theory's claims on {shown(found.name)}",
        verdict=f"{MEANS[found.limit.fate]} {_counted_claims(found)}",
        blocks=(
            Text(f"{lead}.", "lead"),
            *notes,
            *(_more_time(found)),
            Section("Claims", tuple(_claims(found, len(failing))), "found"),
            Section("Where attention ends up", tuple(_limit(found)), "limit"),
            Section("Hypotheses", tuple(_hypotheses(found, failing)), "hypotheses"),
            Section("Pictures", tuple(pictures_of(found)), "pictures", only=("html", "markdown")),
            Section("Figures and certificate", tuple(_figures(found)), "figures", folded=True, only=("html",)),
            Section("Words", (Terms(TERMS),), "words", folded=True, only=("html", "markdown")),
        ),
        about={"version": __version__, "seed": found.settings.seed}
        | found.settings_used()
        | {"seconds": found.seconds},
    )


def _counted_claims(found: Verification) -> str:
    """How many claims hold, and what the others lack."""
    sizes = {one: sum(claim.outcome is one for claim in found.claims) for one in Outcome}
    hold, total = sizes[Outcome.HOLDS], len(found.claims)
    head = f"All {total} claims hold" if hold == total else f"{hold} of {total} claims hold"
    words = {
        Outcome.FAILS: ("fails", "fail"),
        Outcome.UNMET: ("has a hypothesis that is not met", "have a hypothesis that is not met"),
        Outcome.LONGER: ("needs a longer run", "need a longer run"),
    }
    rest = [f"{sizes[one]} {said[sizes[one] != 1]}" for one, said in words.items() if sizes[one]]
    return f"{', '.join([head, *rest])}."


def _more_time(found: Verification) -> list[Block]:
    limited = found.limit.fate is Fate.UNDECIDED and "--max-seconds" in found.limit.reason
    return [Text(MORE_TIME, "warning")] if limited else []


def _claims(found: Verification, failing: int) -> list[Block]:
    """Each claim with its outcome and figures."""
    if failing:
        head = f"{failing} of the {len(found.assumptions)} hypotheses behind the claims fail on this data, so a claim that "
        head += "fails here does not contradict the theory."
    else:
        head = "All hypotheses behind the claims hold."
    out: list[Block] = [
        Text(
            f"One gradient step was taken on random embeddings, then p was trained by gradient flow. {head}",
            only=("html", "markdown"),
        )
    ]
    for claim in found.claims:
        out += [Text(f"{claim.outcome}: {claim.name}", STYLES[claim.outcome]), Text(shown(claim.verdict, 600))]
    return out


def _limit(found: Verification) -> list[Block]:
    """What becomes of p, with its certificates."""
    out: list[Block] = [Text(MEANS[found.limit.fate], "lead", only=("html", "markdown"))]
    out += [Text(shown(line, 600)) for line in _limit_lines(found)]
    gaps = finite_gap_table(found).head(GAPS)
    if gaps.height:
        columns = (Column("Token", "token"), Column("stays above", "token"), Column("by (nats)", "plain", 3))
        rows = gaps.select("token", "below", "gap", "documents").rows()
        out.append(
            Table("Finite score gaps", (*columns, Column("Documents", "count")), rows, only=("html", "markdown"))
        )
    return out


def _limit_lines(found: Verification) -> list[str]:
    """The certificates of the limit in words, one line each."""
    limit = found.limit
    lines = [f"{limit.fate}: {limit.reason}"] if limit.reason else []
    if limit.face is not None and limit.finite is not None and limit.face.dimension:
        lines.append(
            f"(F1) dim V = {limit.face.dimension}, {limit.finite.documents:,} documents with tied tokens; smallest curvature "
            f"{limit.finite.curvature:.3g} > 0"
        )
    if limit.margin is not None and limit.direction is not None:
        lines.append(
            f"(F2) p̂ {'is' if limit.is_max_margin else 'is not'} the max-margin direction with equalities: margin "
            f"{limit.margin.margin:.4g}, duality gap {limit.margin.duality_gap:.1e}, KKT residual {limit.margin.kkt_residual:.1e}"
        )
    if limit.balance is not None:
        lines.append(
            f"(F3) {len(limit.balance.tight)} constraints are active, {limit.balance.pulling} of them work against convergence; "
            f"smallest curvature {limit.balance.curvature:.3g} > 0, residual {limit.balance.residual:.1e}; angle·‖p‖ tends to "
            f"{limit.angle_constant:.4g}"
        )
    if found.attended is not None and math.isfinite(found.attended.final_from):
        lines.append(_conditioning(found.attended.final_from, limit))
    if limit.changes:
        at = ", ".join(f"{log_time:,.4g} ({documents})" for _, log_time, documents in limit.changes[:10])
        lines.append(f"predicted changes of the selection at log t (documents whose highest token changes): {at}")
    if math.isfinite(limit.compared[2]):
        lines.append(
            f"predicted from log t = {limit.compared[0]:.4g} on; up to log t = {limit.compared[1]:.4g} the computed flow "
            f"stays within {limit.compared[2]:.1e} of the predicted path, relative to ‖p‖"
        )
    if found.attended is not None and math.isfinite(found.attended.one_sided_share):
        share = found.attended.one_sided_share
        lines.append(f"{share:.1%} of the documents containing completely positive or negative tokens select one")
    return lines


def _conditioning(final_from: float, limit: FlowLimit) -> str:
    """How hard the data set is: where the selection is final, and the condition numbers of (F1) and (F3)."""
    parts = []
    if limit.finite is not None and math.isfinite(limit.finite.curvature):
        parts.append(f"{1 / limit.finite.spread:.3g} (F1)")
    if limit.balance is not None:
        parts.append(f"{1 / limit.balance.spread:.3g} (F3)")
    words = f"every document's highest token is final from log t = {final_from:.3g}"
    return words + (f"; condition numbers {' and '.join(parts)}" if parts else "")


def _hypotheses(found: Verification, failing: list[Assumption]) -> list[Block]:
    """Which hypotheses hold here; the terminal shows those that fail."""
    total = len(found.assumptions)
    out: list[Block] = []
    if failing:
        out.append(Text(f"{len(failing)} of {total} hypotheses of the theory fail on this data:", only=("terminal",)))
    else:
        out.append(Text(f"All {total} hypotheses of the theory hold on this data.", only=("terminal",)))
    for item in found.assumptions:
        only: Any = ("html", "markdown") if item.holds else ("terminal", "html", "markdown")
        out.append(Text(f"{'holds' if item.holds else 'fails'}: {item.name}", "good" if item.holds else "bad", only))
        out.append(Text(_reason(found, item), only=only))
    return out


def _reason(found: Verification, item: Assumption) -> str:
    """The counts, and a few rows or tokens that break it."""
    parts = []
    if item.documents and not item.holds:
        rows = ", ".join(str(row) for row in found.rows_of(item.documents))
        parts.append(f"row{'s' * (len(item.documents) > 1)} {rows}")
    if item.types and not item.holds:
        parts.append(f"tokens {', '.join(shown(word, 30) for word in item.types)}")
    return shown(item.detail, 600) + (f"; for example {'; '.join(parts)}" if parts else "")


def _figures(found: Verification) -> list[Block]:
    """Every figure of summary.json, and how a solution is certified."""
    figures = found.to_dict()
    titles = {
        "one_step": "One step",
        "flow": "Gradient flow of p",
        "margin": "Max margin of the selection",
        "limit": "Limit of p",
    }
    tables = tuple(
        (Table(title, (Column("Figure"), Column("Value")), _rows(figures[name]), first=50),)
        for name, title in titles.items()
    )
    certified = (
        "A max-margin solution is certified by the gap between an upper and a lower bound on its optimum, by the residual of its "
        "optimality conditions, and by the smallest margin over every pair of every document, all computed anew after solving."
    )
    return [Text(certified), Columns(tables)]


def _rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Numbers to five digits, undefined ones as a dash."""
    out = []
    for name, value in figures.items():
        if isinstance(value, list | dict):
            continue
        said = f"{value:.5g}" if isinstance(value, float) else "–" if value is None else shown(str(value), 300)
        out.append((name.replace("_", " "), {"True": "yes", "False": "no"}.get(said, said)))
    return out


def pictures_of(found: Verification) -> list[Picture]:
    """The pictures; "angle" only where p diverges along a direction, "gaps" only where the limit was predicted, "selected" only
    where the selection is decided."""
    tokens, curve, seed = token_table(found), flow_table(found), found.settings.seed
    step, flow, limit = found.step, found.flow, found.limit
    ends = f"from {flow.track.loss[0]:.4g} to {flow.track.loss[-1]:.4g}"
    norm = f"|p| = {flow.norm[-1]:,.5g} at the end"
    slope = f"slope {step.slope:.4g} (expected {step.expected_slope:.4g}), R² {step.r2:.4f}"
    cloud = {"tokens": tokens, "seed": seed}
    out = [
        Picture(
            "alignment",
            "theory-alignment",
            cloud | {"slope": step.slope, "expected": step.expected_slope, "said": slope},
            "One step aligns embeddings with v",
            slope,
            f"Movement of each embedding along v against α: {slope}.",
        ),
        Picture(
            "norm",
            "theory-norm",
            {"curve": curve, "said": norm},
            "Norm of p under gradient flow",
            f"{curve.height - 1:,} steps of gradient flow",
            f"Norm of p against the logarithm of time: {norm}.",
        ),
        Picture(
            "loss",
            "theory-loss",
            {"curve": curve, "said": ends},
            "Loss under gradient flow",
            ends,
            f"Loss against log t, {ends}.",
        ),
    ]
    if found.agreement is not None:
        said = f"{found.agreement.angle:.3g} rad at the end"
        if math.isfinite(found.agreement.exponent):
            said += f", falling like |p| to the {found.agreement.exponent:.2f} ± {found.agreement.standard_error:.2f} (dashed)"
        said = said.replace("-", "−")
        data = {"curve": curve, "exponent": found.agreement.exponent, "said": said}
        description = f"Angle between p and the limit direction: {said}."
        out.append(Picture("angle", "theory-angle", data, "Direction of p against its limit", said, description))
    gaps = gap_curves(found)
    if gaps.height:
        said = f"prediction (dashed) from log t = {limit.compared[0]:.3g}; distance to its path {limit.compared[2]:.1e}"
        pairs = ", ".join(shown(pair, 60) for pair in gaps["pair"].unique(maintain_order=True))
        data = {"gaps": gaps.select("pair", "kind", "source", "log_time", "gap"), "said": said}
        out.append(
            Picture(
                "gaps",
                "theory-gaps",
                data,
                "Finite and growing score gaps",
                said,
                f"Score gaps against log t, {said}: {pairs}.",
            )
        )
    for when, row in (("before", 0), ("after", -1)):
        said = f"at |p| = {float(flow.norm[row]):,.5g}"
        data = cloud | {"of": f"score_{when}", "said": said}
        title = f"Scores {when} the flow of p"
        out.append(Picture(f"score-{when}", "theory-scores", data, title, said, f"{title}, {said}, against α."))
    if found.attended is not None:
        top = tokens.filter(pl.col("selected_in") > 0)
        said = f"{top.height:,} token types are selected in some document"
        description = "Documents that select each token; pale bars show documents that contain it."
        out.append(
            Picture("selected", "theory-selected", {"tokens": top}, "Tokens selected most often", said, description)
        )
    return out
