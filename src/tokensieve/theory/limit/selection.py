"""Which tokens a `<cls>` vector selects, S_X(p) = argmax_{s ∈ X} pᵀE_s, and what the model answers in the limit.

As ‖p‖ grows the softmax keeps the types of highest score only, and f_X tends to the mean value of the selected tokens, counted as
often as they occur in the document (Lemma 4.4 of Wu et al., NeurIPS 2025). On a computed curve no two scores are exactly equal:
which gaps stay finite while ‖p‖ grows is decided in `flow.ties` and `limit.certify`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.model.attention import answers
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.flow.solve import Flow
from tokensieve.theory.geometry import documents_of, extremes, highest


@dataclass(frozen=True)
class Selection:
    """The types selected in each document.

    Attributes:
        mask: for each stored entry of counts.matrix, whether its type is selected in its document, shape (nnz,).
        ties: documents that select more than one type.
        everything: documents that select all of their types (one-type documents among them).
        widest_tie: largest score difference inside a selection.
        closest_other: smallest score difference between a selected and another type of a document; inf if there is none.
    """

    mask: NDArray[np.bool_]
    ties: int
    everything: int
    widest_tie: float
    closest_other: float

    def to_dict(self) -> dict[str, float | int | None]:
        """Counts and gaps, ready for JSON."""
        other = self.closest_other if np.isfinite(self.closest_other) else None
        return {
            "documents_with_ties": self.ties,
            "documents_that_select_everything": self.everything,
            "widest_tie": self.widest_tie,
            "closest_other": other,
        }


@dataclass(frozen=True)
class Attended:
    """What the limit selects, against the types that matter.

    Attributes:
        selection: the types selected in each document.
        all_share, any_share: fractions of the documents with important types that select all, and any, of them.
        important_documents: documents with important types.
        one_sided_share: fraction of the documents with completely positive or negative types that select one.
        final_from: log t from which on every document's highest type is one that it selects in the limit.
        limit_error: largest distance of a prediction from the mean value of the document's selected tokens.
    """

    selection: Selection
    all_share: float
    any_share: float
    important_documents: int
    one_sided_share: float
    final_from: float
    limit_error: float


def attended(
    counts: Counts, E: Floats, w: Floats, flow: Flow, mask: NDArray[np.bool_], important: NDArray[np.bool_]
) -> Attended:
    """Describe the selection in the limit.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, d).
        w: values, shape (|S|,).
        flow: the curve.
        mask: the entries that are selected, shape (nnz,).
        important: the important types, shape (|S|,).
    """
    u = E @ flow.p
    every, some, documents = _important_selected(counts, mask, important)
    one_sided_share = _important_selected(counts, mask, one_sided(counts) != 0)[1]
    return Attended(
        _describe(counts, mask, u),
        every,
        some,
        documents,
        one_sided_share,
        final_from(counts, E, flow, mask),
        _limit_error(counts, mask, u, w),
    )


def select(counts: Counts, scores: Floats, slack: float = 0.0) -> Selection:
    """S_X: the types of each document whose score is within `slack` of the document's highest.

    Args:
        counts: n documents over |S| types.
        scores: u, shape (|S|,).
        slack: ≥ 0; zero for the exact argmax.

    Raises:
        InputError: scores that do not fit or are not finite, or a negative slack.
    """
    if scores.shape != (counts.n_types,) or not np.isfinite(scores).all() or not slack >= 0:
        raise InputError(
            f"scores {scores.shape} must be {counts.n_types} finite numbers and the slack {slack} not negative"
        )
    behind = highest(counts, scores)[documents_of(counts)] - scores[counts.matrix.indices]
    return _describe(counts, behind <= slack, scores)


def _describe(counts: Counts, mask: NDArray[np.bool_], scores: Floats) -> Selection:
    """The figures of a selection.

    Args:
        counts: n documents over |S| types.
        mask: the entries that are selected, shape (nnz,).
        scores: u, shape (|S|,), for the gaps.
    """
    m, document = counts.matrix, documents_of(counts)
    behind = highest(counts, scores)[document] - scores[m.indices]
    chosen = np.bincount(document, mask, counts.n_documents)
    held = np.diff(m.indptr)
    return Selection(
        mask,
        int(np.sum(chosen > 1)),
        int(np.sum((chosen == held) & (held > 0))),
        float(behind[mask].max(initial=0.0)),
        float(behind[~mask].min(initial=np.inf)),
    )


def one_sided(counts: Counts) -> Ints:
    """+1 for completely positive types, −1 for completely negative ones, 0 for those in both classes, shape (|S|,)."""
    seen = np.stack([np.asarray((counts.matrix[counts.labels == k] > 0).sum(axis=0)).ravel() for k in (0, 1)])
    return np.asarray(np.where(seen[0] == 0, 1, 0) - np.where(seen[1] == 0, 1, 0), dtype=np.int64)


def _important_selected(
    counts: Counts, mask: NDArray[np.bool_], important: NDArray[np.bool_]
) -> tuple[float, float, int]:
    """Fractions of the documents with important types that select all, and any, of these; and the number of documents with any.

    Args:
        counts: n documents over |S| types.
        mask: a selection, shape (nnz,).
        important: the important types, shape (|S|,).
    """
    document = documents_of(counts)
    matter = important[counts.matrix.indices]
    held = np.bincount(document, matter, counts.n_documents) > 0
    missed = np.bincount(document, matter & ~mask, counts.n_documents) > 0
    chosen = np.bincount(document, matter & mask, counts.n_documents) > 0
    if not held.any():
        return np.nan, np.nan, 0
    return float(np.mean(~missed[held])), float(np.mean(chosen[held])), int(held.sum())


def selected_fraction(counts: Counts, E: Floats, flow: Flow, important: NDArray[np.bool_]) -> Floats:
    """Along a curve, the share of documents with important types in which each of these scores above every other type.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, d).
        flow: a curve of m points.
        important: the important types, shape (|S|,).

    Returns:
        Shares, shape (m,); nan where no document holds an important type.
    """
    m = counts.matrix
    matter = important[m.indices]
    known = np.bincount(documents_of(counts), matter, counts.n_documents) > 0
    out = np.full(len(flow.log_time), np.nan)
    for row in range(len(out) if known.any() else 0):
        u = E @ flow.at(row)
        low, high = extremes(m.indptr, m.indices, matter, u)
        out[row] = np.mean(((high < 0) | (u[low] > u[high]))[known])
    return out


def final_from(counts: Counts, E: Floats, flow: Flow, mask: NDArray[np.bool_]) -> float:
    """log t of a curve from which on the highest type of every document is one that it selects in the end; nan where never.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, d).
        flow: a curve of m points.
        mask: the selection in the limit, shape (nnz,).
    """
    m, found = counts.matrix, np.nan
    for row in range(len(flow.log_time) - 1, -1, -1):
        u = E @ flow.at(row)
        low = np.where(mask, u[m.indices], -np.inf)
        inside = np.full(counts.n_documents, -np.inf)
        np.maximum.at(inside, documents_of(counts), low)
        if (inside < highest(counts, u)).any():
            break
        found = float(flow.log_time[row])
    return float(found)


def _limit_answers(counts: Counts, mask: NDArray[np.bool_], w: Floats) -> Floats:
    """Mean value of the selected tokens of each document, with multiplicity, shape (n,); zero without any."""
    document = documents_of(counts)
    weight = counts.matrix.data * mask
    total = np.bincount(document, weight, counts.n_documents)
    return np.asarray(
        np.bincount(document, weight * w[counts.matrix.indices], counts.n_documents) / np.maximum(total, 1.0)
    )


def _limit_error(counts: Counts, mask: NDArray[np.bool_], u: Floats, w: Floats) -> float:
    """max_X |f_X − mean value of its selected tokens|: zero in the limit of Lemma 4.4 where nothing is tied."""
    return float(np.abs(answers(counts.matrix, u, w)[:, 0] - _limit_answers(counts, mask, w)).max())
