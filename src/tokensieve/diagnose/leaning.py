"""Which words the model leans on although the data does not support them: shortcuts learnt elsewhere, overfitting.

A candidate is a word whose importance is not significant in these documents (q ≥ 0.05), or points the other way than the
model. The strongest by first-order and deletion effect in context are deleted from many more documents. With d̄_s the mean loss
of the answer, t·SE its margin of error (Student's t, corrected for the number of candidates), [low, high] the interval of the
data's posterior difference and b the loss per unit of importance among the words that carry the label:

    excess_s = (|d̄_s| − t SE_s − b · max(0, end of the interval on the model's side)) / typical

typical: root mean square of d̄ over the words that carry the label. The model leans on s without support where
excess_s > LEAST: even cautiously read, and granting the data all that its interval allows, it does so with more than that
share of the weight of a word that carries the label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.data.importance import LEVEL, Importance
from tokensieve.diagnose.agreement import mean
from tokensieve.diagnose.measuring import Checkpoint, Measured, Subject, choose_deletions
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints

CANDIDATES = 30
WINDOWS = 64
FEWEST = 5
LEAST = 0.25


@dataclass(frozen=True)
class Scale:
    """How strongly the model uses words that carry the label, for one head.

    Attributes:
        effect: mean loss of the answer without each word, shape (|S|,); nan where it was not deleted.
        typical: root mean square over the words that carry the label (over all words where none does).
        per_importance: b, least squares through zero over the words that carry the label, at least 0.
    """

    effect: Floats
    typical: float
    per_importance: float


def lean(
    subject: Subject, measured: Measured, counts: Counts, found: Importance, kept: Checkpoint, seed: int, progress: Progress
) -> pl.DataFrame:  # fmt: skip
    """Confirm the candidates, and list those that the model leans on without support, the strongest first.

    Args:
        subject: the model on its inputs.
        measured: its three passes.
        counts: the documents.
        found: importance in them.
        kept: where the confirmation is saved on the way.
        seed: of the choice of documents.
        progress: called with (stage, share done).

    Returns:
        Columns: token, class (the one that the model takes it to speak for), excess, effect (d̄), effect_low, effect_high, strength
        (|d̄| / typical), documents, posterior_difference, posterior_low, posterior_high, q_value (all for that class).
    """
    heads = measured.value.shape[1]
    columns = [1] if heads == 1 else list(range(heads))
    scales = [_scale(measured, found, h, k) for h, k in enumerate(columns)]
    tested = _candidates(measured, found, scales, columns)
    types, windows = subject.held()
    wanted = np.isin(types, tested)
    pairs = choose_deletions(types[wanted], windows[wanted], WINDOWS, seed)
    lost = subject.delete(measured.answers, pairs, kept, "model: confirming words", progress)
    rows = [
        row
        for s in tested
        for h, k in enumerate(columns)
        for row in _row(s, k, lost[pairs[0] == s, h], scales[h], found, len(tested))
    ]
    table = pl.DataFrame(rows, schema=_SCHEMA, orient="row").filter(pl.col("excess") > LEAST)
    return table.sort("excess", "token", descending=[True, False]).unique("token", keep="first", maintain_order=True)


_SCHEMA: dict[str, Any] = {"token": pl.String, "class": pl.String, "excess": pl.Float64, "effect": pl.Float64,
    "effect_low": pl.Float64, "effect_high": pl.Float64, "strength": pl.Float64, "documents": pl.Int64,
    "posterior_difference": pl.Float64, "posterior_low": pl.Float64, "posterior_high": pl.Float64, "q_value": pl.Float64,
}  # fmt: skip


def _scale(measured: Measured, found: Importance, head: int, column: int) -> Scale:
    effect = mean(measured.deletion, measured.tried[..., None])[:, head]
    there = np.isfinite(effect)
    carries = there & (found.q_value[:, column] < LEVEL)
    among = carries if carries.any() else there
    side = (found.posterior_difference - found.neutral)[among, column]
    slope = float(side @ effect[among]) / max(float(side @ side), 1e-12)
    typical = float(np.sqrt(np.mean(effect[among] ** 2))) if among.any() else 0.0
    return Scale(effect, max(typical, 1e-12), max(slope, 0.0))


def _candidates(measured: Measured, found: Importance, scales: list[Scale], columns: list[int]) -> Ints:
    """Types that the data does not support, of largest effect in units of what label-carrying words have."""
    size = np.zeros(len(found.tokens))
    for h, k in enumerate(columns):
        effects = [scales[h].effect / scales[h].typical]
        if measured.gradient is not None:
            gradient = mean(measured.gradient, measured.held[..., None])[:, h]
            carries = found.q_value[:, k] < LEVEL
            usual = float(np.sqrt(np.nanmean(gradient[carries] ** 2))) if carries.any() else 0.0
            effects.append(gradient / max(usual, 1e-12))
        for effect in effects:
            open_ = _unsupported(found, k, effect)
            size = np.fmax(size, np.where(open_, np.abs(effect), 0.0))
    order = np.argsort(-size, kind="stable")[:CANDIDATES]
    return np.sort(order[size[order] > 0])


def _unsupported(found: Importance, column: int, effect: Any) -> Any:
    """Not significant in the data, or significant the other way."""
    return (found.q_value[:, column] >= LEVEL) | (np.sign(effect) != np.sign(found.effect[:, column]))


def _row(s: int, column: int, lost: Floats, scale: Scale, found: Importance, tests: int) -> list[tuple[Any, ...]]:
    """The candidate's row, for the class on its side; none where too few documents tell or the data supports it."""
    lost = lost[np.isfinite(lost)]
    n = len(lost)
    if n < FEWEST:
        return []
    middle, error = float(lost.mean()), float(lost.std(ddof=1)) / np.sqrt(n)
    two = len(found.classes) == 2
    if not _unsupported(found, column, middle)[s] or (middle < 0 and not two):
        return []
    margin = float(stats.t.isf(LEVEL / 2 / tests, n - 1)) * error
    low, high = (end[s, column] - found.neutral[column] for end in (found.posterior_low, found.posterior_high))
    support = max(0.0, high if middle > 0 else -low) * scale.per_importance
    excess = (abs(middle) - margin - support) / scale.typical
    k, sign = (column, 1.0) if middle > 0 else (0, -1.0)
    half = float(stats.t.isf(LEVEL / 2, n - 1)) * error
    d = float(found.posterior_difference[s, k])
    return [(
        str(found.tokens[s]), found.classes[k], excess, sign * middle, sign * middle - half, sign * middle + half,
        abs(middle) / scale.typical, int(found.documents[s]), d, float(found.posterior_low[s, k]),
        float(found.posterior_high[s, k]), float(found.q_value[s, k]),
    )]  # fmt: skip
