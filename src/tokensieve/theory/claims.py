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
        m, document, n, u = counts.matrix, counts.entry_documents, counts.n_documents, E @ flow.p

        def shares(matter: NDArray[np.bool_]) -> tuple[float, float, int]:
            """Among the documents with types that matter: the fractions that select all and any of
            them, and their number."""
            all_of, some_of = (
                np.bincount(document, matter, n),
                np.bincount(document, matter & mask, n),
            )
            known = all_of > 0
            if not known.any():
                return math.nan, math.nan, 0
            return (
                float(np.mean((some_of == all_of)[known])),
                float(np.mean((some_of > 0)[known])),
                int(known.sum()),
            )

        every, some, documents = shares(important[m.indices])
        final = math.nan
        for row in range(len(flow.log_time) - 1, -1, -1):
            scores = (E @ flow.at(row))[m.indices]
            if (
                counts.largest_per_document(np.where(mask, scores, -np.inf))
                < counts.largest_per_document(scores)
            ).any():
                break
            final = float(flow.log_time[row])
        weight = m.data * mask
        mean = np.bincount(document, weight * w[m.indices], n) / np.maximum(
            np.bincount(document, weight, n), 1.0
        )
        return cls(
            mask=mask,
            ties=int(np.sum(np.bincount(document, mask, n) > 1)),
            all_share=every,
            any_share=some,
            important_documents=documents,
            one_sided_share=shares(counts.one_sided[m.indices] != 0)[1],
            final_from=final,
            limit_error=float(np.abs(logits(m, u, w)[:, 0] - mean).max()),
        )


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
        classes and their first step."""
        m, document, n, lengths = (
            counts.matrix,
            counts.entry_documents,
            counts.n_documents,
            counts.lengths,
        )
        out: list[Claim] = []

        def add(
            name: str,
            holds: bool | None,  # None where it speaks of no document
            words: str,
            breaks: NDArray[np.bool_] | None = None,
            types: tuple[str, ...] = (),
        ) -> None:
            documents = () if breaks is None else tuple(np.flatnonzero(breaks)[:5].tolist())
            outcome: Outcome = (
                "hypothesis not met" if holds is None else "holds" if holds else "fails"
            )
            out.append(Claim(name, outcome, words, documents, types))

        held = np.diff(m.indptr)
        lone = f"of {n:,} documents, {np.sum(held == 0):,} have no known token and {np.sum(held == 1):,} a single token type"
        add("every document contains at least two token types", held.min() > 1, lone, held < 2)
        common = np.bincount(lengths.astype(np.int64)).argmax()
        span = f"lengths {lengths.min():.0f} to {lengths.max():.0f}, most often {common}"
        if np.ptp(lengths) == 0:
            span = f"all documents have {common} tokens"
        add(
            "all documents have the same length T",
            bool(np.ptp(lengths) == 0),
            span,
            lengths != common,
        )
        sides = counts.one_sided
        relevant = np.bincount(document, m.data * (sides != 0)[m.indices], n)
        words = (
            f"{np.sum(relevant == 1):,} of {n:,} documents contain exactly one completely positive or negative token, "
            f"{np.sum(relevant == 0):,} none, {np.sum(relevant > 1):,} several; {np.sum(sides > 0):,} types are completely "
            f"positive, {np.sum(sides < 0):,} completely negative"
        )
        exactly = (
            "every document contains exactly one completely positive or completely negative token"
        )
        add(exactly, bool(np.all(relevant == 1)), words, relevant != 1)
        # α sums n fractions: below n·eps of a type's own frequency it is zero as far as the
        # arithmetic can tell.
        share = np.asarray(m.T @ (1 / (np.maximum(lengths, 1) * n)))
        bad = (sides == 0) & (np.abs(step.alpha) > n * np.finfo(float).eps * share)
        order = np.flatnonzero(bad)[np.argsort(-np.abs(step.alpha[bad]), kind="stable")]
        words = f"{bad.sum():,} of the {np.sum(sides == 0):,} token types that occur in both classes have α ≠ 0"
        if order.size:
            words += (
                f"; the largest is {step.alpha[order[0]]:.3g} ".replace("-", "−")
                + f"({counts.tokens[order[0]]})"
            )
        holders = np.bincount(document, bad[m.indices], n) > 0
        types = tuple(str(counts.tokens[s]) for s in order[:5])
        add("all other tokens are irrelevant (α = 0 exactly)", not bad.any(), words, holders, types)
        d, left = step.start.p.size, step.relative_remainder
        ratio = d / math.log(max(counts.n_types, 2))
        words = f"d = {d} is {ratio:.1f} · log|S|; initial scores span ±{step.score_range:.3g}, logits ±{step.answer_range:.3g}"
        add("d ≥ 20 log|S| (initial scores and logits are small)", ratio >= 20, words)
        words = f"the remainder is {left:.3g} of the predicted step; the bound known in advance is {step.bound:.3g}"
        add("the first step is mostly (η/2) α v (remainder below one half)", left < 0.5, words)
        # η₀ is large enough when the value of a document's important token beats every other in the
        # direction of its label.
        signed = counts.signs[document] * (step.start.E @ step.start.v + step.alignment)[m.indices]
        important = (sides != 0)[m.indices]
        best, other = (
            counts.largest_per_document(np.where(which, signed, -np.inf))
            for which in (important, ~important)
        )
        concerned = np.isfinite(best)
        short = concerned & (best <= other)
        words = f"in {concerned.sum() - short.sum()} of the {concerned.sum()} documents with such a token, it has the largest value"
        name = "η₀ is large enough: the important token has the largest value in its document"
        words = (
            f"{words} in the direction of the label"
            if concerned.any()
            else "no document contains such a token"
        )
        add(name, not short.any() if concerned.any() else None, words, short)
        return out

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
        # and of Theorem 4.3.
        refuted: Outcome = (
            "fails"
            if choice and one_relevant and irrelevant and large_step
            else "hypothesis not met"
        )
        words = (
            f"(E¹−E⁰)ᵀv against α: slope {step.slope:.4g}, {abs(step.slope / step.expected_slope - 1):.1%} from the expected "
            f"{step.expected_slope:.4g}; R² {step.r2:.4f}; remainder {step.relative_remainder:.3g} of the predicted step, "
            f"{'within' if step.bound_holds else 'NOT within'} its bound {step.bound:.3g}"
        )
        flow = limit.flow
        undecided: _Found = ("needs a longer run", limit.reason)
        one: _Found = ("holds" if step.bound_holds else "fails", words)
        if not math.isfinite(step.r2):
            one = (
                "hypothesis not met",
                "α is the same for every token type, so there is no line to fit",
            )
        elif step.bound_holds and not (step.relative_remainder < 0.5 and step.r2 > 0.9):
            words = f"d is too small for a small remainder, but the bound on it holds: {words}"
            one = ("hypothesis not met", words)
        norm: _Found = (
            "fails" if limit.fate == "converges to a point" else "holds",
            f"{flow.verdict}: {flow.reason}",
        )
        if limit.fate == "not settled":
            norm = undecided
        elif limit.fate == "converges to a point" and not large_d:
            norm = (
                "hypothesis not met",
                f"d is not large; instead p converges to a finite point: {flow.reason}",
            )
        matter, important = (
            (undecided, undecided) if found is None else _selected_tokens(limit, found, refuted)
        )
        names: dict[str, _Found] = {
            "one step aligns each embedding with v in proportion to α (Lemma 4.1)": one,
            "‖p‖ grows without bound (Lemma 4.2)": norm,
            "predictions tend to the mean over the selected tokens (Lemma 4.4)": matter,
            "important tokens are selected (Lemma 4.5)": important,
            "p/‖p‖ converges to the max-margin direction of its selection (Theorem 4.3)": _direction(
                limit, refuted
            ),
        }
        return [Claim(name, *what) for name, what in names.items()]


def _selected_tokens(limit: FlowLimit, found: Attended, refuted: Outcome) -> tuple[_Found, _Found]:
    """Lemmas 4.4 and 4.5 where the selection is known; `refuted`: what a claim is that the limit
    contradicts."""
    matter: _Found
    words = f"predictions are within {max(found.limit_error, 1e-15):.3g} of the mean value of selected tokens"
    if limit.fate == "converges to a point":
        matter = (
            "hypothesis not met",
            "p does not diverge: every token keeps some of the attention",
        )
    elif limit.face is not None and limit.face.dimension:
        matter = (
            refuted,
            f"{words}; {found.ties} documents select several types, which keep finite score gaps",
        )
    elif found.limit_error < 1e-3:
        matter = ("holds", words)
    else:
        wait = float(limit.flow.log_time[-1]) + math.log(found.limit_error / 1e-3)
        matter = (
            "needs a longer run",
            f"{words}, and this distance falls like 1/t; follow the flow to log t ≈ {wait:.3g}",
        )
    if not found.important_documents:
        return matter, ("hypothesis not met", "no document contains an important token")
    words = f"{found.all_share:.1%} of the {found.important_documents} documents with important tokens select all of them"
    if limit.fate == "converges to a point":
        return matter, ("hypothesis not met", f"p does not diverge; at its limit {words}")
    if found.all_share == 1.0:
        return matter, ("holds", f"{words}, at ‖p‖ = {limit.flow.norm[-1]:.5g}")
    if refuted == "hypothesis not met":
        words += f"; {found.any_share:.1%} select at least one"
    return matter, (refuted, words)


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
        f"angle·‖p‖ tends to {limit.angle_constant:.4g}; margin {margin.margin:.4g}, duality gap {margin.duality_gap:.1e}, "
        f"KKT residual {margin.kkt_residual:.1e}"
    )
    if not limit.is_max_margin:
        return refuted, f"{limit.reason}; measured against that direction: {words}"
    if limit.face is not None and limit.face.dimension:
        words = f"{limit.face.dimension} finite gaps, which the margin problem keeps equal; {words}"
    # Confirmed by an angle that is small and falls, or by a prediction that the curve follows.
    if (angle <= 0.01 and slope < -0.5) or limit.compared.error < 0.01:
        return "holds", words
    return (
        "needs a longer run",
        f"{words}; follow the flow to log t > {LATE_ENOUGH:g}, or to twice its norm",
    )
