"""The tokens that a limit selects, the hypotheses of the theory that hold on a data set, and the
verdict on each claim.

A claim about the limit is decided by the certified limit, never refuted by a curve that is too
short. Where one of its hypotheses does not hold, the claim is neither confirmed nor refuted: what
is true instead is stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats
from tokensieve.model.attention import logits
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.solve import Flow
from tokensieve.theory.limit.certify import LATE_ENOUGH, FlowLimit
from tokensieve.theory.one_step import OneStep

# What was found about a claim.
Outcome = Literal["holds", "fails", "hypothesis not met", "needs a longer run"]
_Found = tuple[Outcome, str]  # and why
# Documents and types named as examples of what breaks a hypothesis.
MAX_EXAMPLES = 5
# What "large d" means, in units of log|S|: initial scores and logits are then small (Lemma 4.1).
MIN_DIMENSIONS = 20
# The lemmas say "mostly", "tends to" and "converges" without numbers. These are ours:
MAX_REMAINDER = 0.5  # of the predicted step: most of the step is then the predicted one
MIN_R2 = 0.9  # of the movements' line: less than a tenth of their variance is left over
MAX_LIMIT_ERROR = 1e-3  # in logits: at most 0.025 points of probability
MAX_ANGLE = 0.01  # radians between the curve's end and the max-margin direction
MIN_FALL = -0.5  # exponent of the angle over ‖p‖; the theory has −1, a curve that stalls 0
MAX_PREDICTION_ERROR = 0.01  # of the curve to the predicted path, relative to ‖p‖


@dataclass(frozen=True)
class SelectingDocuments:
    """How many of the documents that contain certain types select them in the limit.

    Attributes:
        all_share, any_share: the fractions that select all, and any, of the types that they
            contain; nan without such documents.
        documents: how many contain any of the types.
    """

    all_share: float
    any_share: float
    documents: int

    @classmethod
    def of(
        cls, counts: Counts, mask: NDArray[np.bool_], is_asked: NDArray[np.bool_]
    ) -> SelectingDocuments:
        """Count documents from masks of the stored entries, both of shape (nnz,).

        Args:
            counts: the documents.
            mask: whether an entry's type is selected in its document.
            is_asked: whether it is one of the types that are asked about.
        """
        document = counts.entry_documents
        n_documents = counts.n_documents
        n_asked = np.bincount(document, is_asked, n_documents)
        n_selected = np.bincount(document, is_asked & mask, n_documents)[n_asked > 0]
        n_asked = n_asked[n_asked > 0]
        if not len(n_asked):
            return cls(math.nan, math.nan, 0)
        return cls(
            all_share=float(np.mean(n_selected == n_asked)),
            any_share=float(np.mean(n_selected > 0)),
            documents=len(n_asked),
        )


@dataclass(frozen=True)
class Attended:
    """The tokens that the limit selects, compared with the important ones.

    Attributes:
        mask: for each stored entry of counts.matrix, whether its type is selected in its document,
            shape (nnz,).
        ties: documents that select more than one type.
        all_share, any_share: fractions of the `important_documents`, with important types, that
            select all, and any, of them; one_sided_share: that select any of their completely
            positive or negative types.
        final_from: log t from which on every document's highest type is one that it selects in the
            limit; nan if never.
        limit_error: largest distance of a prediction from the mean value of the document's selected
            tokens: zero in the limit of Lemma 4.4 where nothing is tied.
    """

    mask: NDArray[np.bool_]
    ties: int
    all_share: float
    any_share: float
    important_documents: int
    one_sided_share: float
    final_from: float
    limit_error: float

    @classmethod
    def of(
        cls,
        counts: Counts,
        E: Floats,
        w: Floats,
        flow: Flow,
        mask: NDArray[np.bool_],
        important: NDArray[np.bool_],
    ) -> Attended:
        """Computed from the end of a curve, a selection in the limit, shape (nnz,), and the
        important types, shape (|S|,)."""
        entry_types = counts.matrix.indices
        selecting = SelectingDocuments.of(counts, mask, important[entry_types])
        is_one_sided = counts.one_sided[entry_types] != 0
        n_selected = np.bincount(counts.entry_documents, mask, counts.n_documents)
        predictions = logits(counts.matrix, E @ flow.p, w)[:, 0]
        return cls(
            mask=mask,
            ties=int(np.sum(n_selected > 1)),
            all_share=selecting.all_share,
            any_share=selecting.any_share,
            important_documents=selecting.documents,
            one_sided_share=SelectingDocuments.of(counts, mask, is_one_sided).any_share,
            final_from=_final_from(counts, E, flow, mask),
            limit_error=float(np.abs(predictions - _mean_selected(counts, mask, w)).max()),
        )


def _final_from(counts: Counts, E: Floats, flow: Flow, mask: NDArray[np.bool_]) -> float:
    """log t from which on every document's highest type is a selected one; nan if never."""
    final = math.nan
    for row in range(len(flow.log_time) - 1, -1, -1):
        scores = (E @ flow.at(row))[counts.matrix.indices]
        highest_selected = counts.largest_per_document(np.where(mask, scores, -np.inf))
        if (highest_selected < counts.largest_per_document(scores)).any():
            break
        final = float(flow.log_time[row])
    return final


def _mean_selected(counts: Counts, mask: NDArray[np.bool_], w: Floats) -> Floats:
    """The mean value w of each document's selected tokens, shape (n,); 0 without any."""
    document = counts.entry_documents
    n_documents = counts.n_documents
    weight = counts.matrix.data * mask
    total = np.bincount(document, weight * w[counts.matrix.indices], n_documents)
    return np.asarray(total / np.maximum(np.bincount(document, weight, n_documents), 1.0))


@dataclass(frozen=True)
class Claim:
    """A claim of the theory or one of its hypotheses, with its verdict and the reason in words.

    Attributes:
        verdict: the reason, with the figures behind it.
        documents, types: indices of up to five documents, and up to five token types, that break a
            hypothesis.
    """

    name: str
    outcome: Outcome
    verdict: str
    documents: tuple[int, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def holds(self) -> bool | None:
        """True or False if it was decided; None if it was not, or if its hypothesis does not
        hold."""
        return {"holds": True, "fails": False}.get(self.outcome)

    @staticmethod
    def hypotheses(counts: Counts, step: OneStep) -> list[Claim]:
        """Every hypothesis of Lemma 4.1 and Theorem 4.3 that can be checked on documents of two
        classes and their first step, in the order of `of_theory`."""
        return [
            has_a_choice(counts),
            has_one_length(counts),
            has_one_relevant_token(counts),
            has_irrelevant_others(counts, step),
            has_many_dimensions(counts, step),
            has_small_remainder(step),
            has_large_step(counts, step),
        ]

    @staticmethod
    def of_theory(
        step: OneStep, limit: FlowLimit, found: Attended | None, assumptions: list[Claim]
    ) -> list[Claim]:
        """Every claim, in the order of the paper, from the first step, what becomes of p, what the
        limit selects (None while it is not decided), and the hypotheses."""
        choice, _, one_relevant, irrelevant, large_d, _, large_step = (
            item.holds for item in assumptions
        )
        # Assumption 1 and a first step that is large enough: the hypotheses of Lemmas 4.4 and 4.5
        # and of Theorem 4.3. Where one fails, a limit that contradicts a claim refutes nothing.
        refuted: Outcome = "hypothesis not met"
        if choice and one_relevant and irrelevant and large_step:
            refuted = "fails"
        prediction: _Found = ("needs a longer run", limit.reason)
        selection = prediction
        if found is not None:
            prediction = _predictions_in_the_limit(limit, found, refuted)
            selection = _selection_in_the_limit(limit, found, refuted)
        return [
            Claim(
                "one step aligns each embedding with v in proportion to α (Lemma 4.1)",
                *_alignment(step),
            ),
            Claim("‖p‖ grows without bound (Lemma 4.2)", *_divergence(limit, large_d)),
            Claim("predictions tend to the mean over the selected tokens (Lemma 4.4)", *prediction),
            Claim("important tokens are selected (Lemma 4.5)", *selection),
            Claim(
                "p/‖p‖ converges to the max-margin direction of its selection (Theorem 4.3)",
                *_direction(limit, refuted),
            ),
        ]


def hypothesis(
    name: str,
    holds: bool | None,
    words: str,
    breaks: NDArray[np.bool_] | None = None,
    types: tuple[str, ...] = (),
) -> Claim:
    """A hypothesis with the documents that break it; `holds` is None where it concerns no
    document."""
    documents = ()
    if breaks is not None:
        documents = tuple(np.flatnonzero(breaks)[:MAX_EXAMPLES].tolist())
    outcome: Outcome = "holds" if holds else "fails"
    if holds is None:
        outcome = "hypothesis not met"
    return Claim(name, outcome, words, documents, types)


def has_a_choice(counts: Counts) -> Claim:
    """With one token type there is nothing to select."""
    n_held = np.diff(counts.matrix.indptr)
    words = (
        f"of {counts.n_documents:,} documents, {np.sum(n_held == 0):,} have no known token and "
        f"{np.sum(n_held == 1):,} a single token type"
    )
    name = "every document contains at least two token types"
    return hypothesis(name, bool(n_held.min() > 1), words, n_held < 2)


def has_one_length(counts: Counts) -> Claim:
    """The theorem is stated for documents of T tokens each."""
    lengths = counts.lengths
    common = np.bincount(lengths.astype(np.int64)).argmax()
    is_equal = bool(np.ptp(lengths) == 0)
    words = f"lengths {lengths.min():.0f} to {lengths.max():.0f}, most often {common}"
    if is_equal:
        words = f"all documents have {common} tokens"
    name = "all documents have the same length T"
    return hypothesis(name, is_equal, words, lengths != common)


def has_one_relevant_token(counts: Counts) -> Claim:
    """Assumption 1, its first half: one token of each document shows the label, no two disagree."""
    m = counts.matrix
    sides = counts.one_sided
    weights = m.data * (sides != 0)[m.indices]
    n_relevant = np.bincount(counts.entry_documents, weights, counts.n_documents)
    words = (
        f"{np.sum(n_relevant == 1):,} of {counts.n_documents:,} documents contain exactly one "
        f"completely positive or negative token, {np.sum(n_relevant == 0):,} none, "
        f"{np.sum(n_relevant > 1):,} several; {np.sum(sides > 0):,} types are completely positive, "
        f"{np.sum(sides < 0):,} completely negative"
    )
    name = "every document contains exactly one completely positive or completely negative token"
    return hypothesis(name, bool(np.all(n_relevant == 1)), words, n_relevant != 1)


def has_irrelevant_others(counts: Counts, step: OneStep) -> Claim:
    """Assumption 1, its second half: types of both classes are equally frequent in them."""
    is_two_sided = counts.one_sided == 0
    is_relevant = is_two_sided & _is_not_rounding(step.alpha, counts)
    by_size = np.argsort(-np.abs(step.alpha[is_relevant]), kind="stable")
    strongest = np.flatnonzero(is_relevant)[by_size]
    words = (
        f"{is_relevant.sum():,} of the {is_two_sided.sum():,} token types that occur in both "
        "classes have α ≠ 0"
    )
    if strongest.size:
        largest = f"{step.alpha[strongest[0]]:.3g}".replace("-", "−")
        words += f"; the largest is {largest} ({counts.tokens[strongest[0]]})"
    entries = is_relevant[counts.matrix.indices]
    return hypothesis(
        "all other tokens are irrelevant (α = 0 exactly)",
        not is_relevant.any(),
        words,
        breaks=np.bincount(counts.entry_documents, entries, counts.n_documents) > 0,
        types=tuple(str(counts.tokens[s]) for s in strongest[:MAX_EXAMPLES]),
    )


def _is_not_rounding(alpha: Floats, counts: Counts) -> NDArray[np.bool_]:
    """Whether α of each type differs from zero, shape (|S|,).

    α sums n fractions: below n·eps of a type's own frequency it is zero as far as the arithmetic
    can tell.
    """
    n = counts.n_documents
    frequency = np.asarray(counts.matrix.T @ (1 / (np.maximum(counts.lengths, 1) * n)))
    return np.asarray(np.abs(alpha) > n * np.finfo(float).eps * frequency)


def has_many_dimensions(counts: Counts, step: OneStep) -> Claim:
    """Lemma 4.1 holds for large d, because scores and logits of a random start are then small."""
    d = step.start.p.size
    ratio = d / math.log(max(counts.n_types, 2))
    words = (
        f"d = {d} is {ratio:.1f} · log|S|; initial scores span ±{step.score_range:.3g}, logits "
        f"±{step.answer_range:.3g}"
    )
    name = f"d ≥ {MIN_DIMENSIONS} log|S| (initial scores and logits are small)"
    return hypothesis(name, ratio >= MIN_DIMENSIONS, words)


def has_small_remainder(step: OneStep) -> Claim:
    """Lemma 4.1 describes the first step as (η/2) α v and a remainder."""
    remainder = step.relative_remainder
    words = (
        f"the remainder is {remainder:.3g} of the predicted step; the bound known in advance is "
        f"{step.bound:.3g}"
    )
    name = "the first step is mostly (η/2) α v (remainder below one half)"
    return hypothesis(name, remainder < MAX_REMAINDER, words)


def has_large_step(counts: Counts, step: OneStep) -> Claim:
    """η₀ is large enough if the value of a document's important token beats every other in the
    direction of its label."""
    entry_types = counts.matrix.indices
    values = (step.start.E @ step.start.v + step.alignment)[entry_types]
    toward_label = counts.signs[counts.entry_documents] * values
    is_important = (counts.one_sided != 0)[entry_types]
    important = counts.largest_per_document(np.where(is_important, toward_label, -np.inf))
    unimportant = counts.largest_per_document(np.where(~is_important, toward_label, -np.inf))
    is_concerned = np.isfinite(important)
    is_short = is_concerned & (important <= unimportant)
    name = "η₀ is large enough: the important token has the largest value in its document"
    if not is_concerned.any():
        return hypothesis(name, None, "no document contains such a token", is_short)
    n_concerned = is_concerned.sum()
    words = (
        f"in {n_concerned - is_short.sum()} of the {n_concerned} documents with such a token, it "
        "has the largest value in the direction of the label"
    )
    return hypothesis(name, not is_short.any(), words, is_short)


def _alignment(step: OneStep) -> _Found:
    """Lemma 4.1."""
    within = "within" if step.bound_holds else "NOT within"
    words = (
        f"(E¹−E⁰)ᵀv against α: slope {step.slope:.4g}, "
        f"{abs(step.slope / step.expected_slope - 1):.1%} from the expected "
        f"{step.expected_slope:.4g}; R² {step.r2:.4f}; remainder {step.relative_remainder:.3g} of "
        f"the predicted step, {within} its bound {step.bound:.3g}"
    )
    if not math.isfinite(step.r2):
        words = "α is the same for every token type, so there is no line to fit"
        return "hypothesis not met", words
    if not step.bound_holds:
        return "fails", words
    if step.relative_remainder < MAX_REMAINDER and step.r2 > MIN_R2:
        return "holds", words
    words = f"d is too small for a small remainder, but the bound on it holds: {words}"
    return "hypothesis not met", words


def _divergence(limit: FlowLimit, large_d: bool | None) -> _Found:
    """Lemma 4.2."""
    flow = limit.flow
    if limit.fate == "not settled":
        return "needs a longer run", limit.reason
    if limit.fate != "converges to a point":
        return "holds", f"{flow.verdict}: {flow.reason}"
    if large_d:
        return "fails", f"{flow.verdict}: {flow.reason}"
    words = f"d is not large; instead p converges to a finite point: {flow.reason}"
    return "hypothesis not met", words


def _predictions_in_the_limit(limit: FlowLimit, found: Attended, refuted: Outcome) -> _Found:
    """Lemma 4.4 where the selection is known; `refuted`: what a claim is that the limit
    contradicts."""
    distance = max(found.limit_error, 1e-15)
    words = f"predictions are within {distance:.3g} of the mean value of selected tokens"
    if limit.fate == "converges to a point":
        return "hypothesis not met", "p does not diverge: every token keeps some of the attention"
    if limit.face is not None and limit.face.dimension:
        words += f"; {found.ties} documents select several types, which keep finite score gaps"
        return refuted, words
    if found.limit_error < MAX_LIMIT_ERROR:
        return "holds", words
    wait = float(limit.flow.log_time[-1]) + math.log(found.limit_error / MAX_LIMIT_ERROR)
    words += f", and this distance falls like 1/t; follow the flow to log t ≈ {wait:.3g}"
    return "needs a longer run", words


def _selection_in_the_limit(limit: FlowLimit, found: Attended, refuted: Outcome) -> _Found:
    """Lemma 4.5 where the selection is known; `refuted` as for Lemma 4.4."""
    if not found.important_documents:
        return "hypothesis not met", "no document contains an important token"
    words = (
        f"{found.all_share:.1%} of the {found.important_documents} documents with important tokens "
        "select all of them"
    )
    if limit.fate == "converges to a point":
        return "hypothesis not met", f"p does not diverge; at its limit {words}"
    if found.all_share == 1.0:
        return "holds", f"{words}, at ‖p‖ = {limit.flow.norm[-1]:.5g}"
    if refuted == "hypothesis not met":
        words += f"; {found.any_share:.1%} select at least one"
    return refuted, words


def _direction(limit: FlowLimit, refuted: Outcome) -> _Found:
    """Theorem 4.3; `refuted`: what it is where the limit contradicts it."""
    margin = limit.margin
    if limit.fate == "not settled":
        return "needs a longer run", limit.reason
    if limit.fate == "converges to a point" or margin is None or limit.direction is None:
        return (
            "hypothesis not met",
            "p converges to a finite point; the max-margin statement does not apply",
        )
    angle, slope, error = limit.flow.agreement(limit.direction)
    words = f"angle {angle:.3g} rad at ‖p‖ = {limit.flow.norm[-1]:.5g}, "
    if math.isfinite(slope):
        words += f"falling like ‖p‖^({slope:.2f} ± {error:.2f}); ".replace("-", "−")
    words += (
        f"angle·‖p‖ tends to {limit.angle_constant:.4g}; margin {margin.margin:.4g}, "
        f"duality gap {margin.duality_gap:.1e}, "
        f"KKT residual {margin.kkt_residual:.1e}"
    )
    if not limit.is_max_margin:
        return refuted, f"{limit.reason}; measured against that direction: {words}"
    if limit.face is not None and limit.face.dimension:
        words = f"{limit.face.dimension} finite gaps, which the margin problem keeps equal; {words}"
    # Confirmed by an angle that is small and falls, or by a prediction that the curve follows.
    is_small_and_falls = angle <= MAX_ANGLE and slope < MIN_FALL
    if is_small_and_falls or limit.compared.error < MAX_PREDICTION_ERROR:
        return "holds", words
    return (
        "needs a longer run",
        f"{words}; follow the flow to log t > {LATE_ENOUGH:g}, or to twice its norm",
    )
