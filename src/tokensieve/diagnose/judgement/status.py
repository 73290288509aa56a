"""What was measured of everything a model may rely on, in one table, and what the data supports.

Words, patterns, passages, forms of whole documents and orders of two words are rows of one table.
Two columns answer two questions:

**What decides most predictions** (`share`): documents × mean size of the change when the row's
candidate is removed, as a fraction of the total over all words. The words that are no candidates
are part of the total, by a random sample of them; forms are compared with it, and are no part of
it, since taking a form away changes words.

**What moves a prediction most** (`move`): mean size of the change when the candidate is inserted
where it usually stands, into documents without it; a form is given to documents, an order is
reversed. Removing and inserting are not mixed.

**Support.** The data supports at most the larger of two log-odds: the upper end of the 95 %
interval of the candidate's own association with the class, and its weight in a logistic regression
on the presence of all words. A use is **unsupported** if it is more than twice that, at the lower
end of its interval, and at least doubles the odds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.confirming import FEWEST, Rest, Trials
from tokensieve.diagnose.effects.estimates import Sizes
from tokensieve.diagnose.effects.forms import FormEffect
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.effects.orders import OrderEffect
from tokensieve.diagnose.judgement.context import Company
from tokensieve.diagnose.judgement.score import Candidates, artefact_probability
from tokensieve.diagnose.subjects.passages import kind_of
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import LEVEL, Z95
from tokensieve.text.counts import Counts

# a use of more than this many times what the data supports is unsupported
MAX_TIMES_SUPPORTED = 2.0
DOUBLED_ODDS = math.log(2)
ALMOST_CERTAIN = 1 - 1e-9  # a posterior difference of one would be infinite log-odds


class Status(StrEnum):
    """What the data says about the use of a candidate; the values of the column `status`."""

    SUPPORTED = "predicts the label"
    UNSUPPORTED = "used without support"
    CONTEXT = "helps in context"
    CANNOT_TELL = "cannot tell"
    ABSENT = "not in this file"


@dataclass(frozen=True)
class Association:
    """What the data says about a candidate and a class: a posterior difference and its interval."""

    difference: float
    low: float
    high: float
    neutral: float
    q_value: float

    @classmethod
    def of(cls, importance: Importance, word: int, k: int) -> Association:
        """That of a type and a class."""
        low, high = importance.posterior_interval
        return cls(
            float(importance.posterior_difference[word, k]),
            float(low[word, k]),
            float(high[word, k]),
            float(importance.neutral[k]),
            float(importance.q_value[word, k]),
        )

    @property
    def is_shown(self) -> bool:
        """Whether the candidate significantly predicts the class."""
        return self.q_value < LEVEL and self.difference > self.neutral

    @property
    def at_most(self) -> float:
        """The upper end of the association, in log-odds; at least zero."""
        high = min(self.high, ALMOST_CERTAIN)
        neutral = min(self.neutral, ALMOST_CERTAIN)
        return max(2 * (math.atanh(high) - math.atanh(max(neutral, -ALMOST_CERTAIN))), 0.0)


@dataclass(frozen=True)
class Row:
    """One candidate of the table.

    Attributes:
        token, kind: how it is named; "word", "pattern", "passage", "form" or "order".
        target: the class for which the model treats it as evidence.
        documents: of the file, that contain it.
        coverage: the fraction of the file, or of the documents read, that contains it.
        n_read: inputs of the model that contain it.
        removed, inserted: sizes of the changes, arrays of one value each; None if not measured.
        consistency, context_auc: as in `judgement.score`.
        words_kept: how much of the effect of other words remains beside a form, 0 to 1.
        needed: weight towards the class in a logistic regression; 0 if it is no word.
        association: what the data says; None if it says nothing.
        phrase: its words and those that come with it, as they are written; else the token.
        thing: parts of one thing have the same number.
        flipped: fraction of documents whose predicted class changes.
        helps: what the true class loses without it, with its interval.
    """

    token: str
    kind: str
    target: int
    documents: int
    coverage: float
    n_read: int
    removed: Sizes | None
    inserted: Sizes | None
    consistency: float
    context_auc: float
    association: Association | None
    phrase: str
    thing: int
    needed: float = 0.0
    words_kept: float = 1.0
    flipped: float = math.nan
    helps: tuple[float, float] | None = None

    @property
    def move(self) -> float:
        """How far it moves predictions when it is inserted; nan if it was not."""
        return _value(self.inserted, "mean")

    @property
    def supported(self) -> float:
        """What the data supports at most, in log-odds."""
        association = 0.0 if self.association is None else self.association.at_most
        return max(association, self.needed)

    @property
    def status(self) -> Status:
        """What the data says about its use."""
        if not self.documents:
            return Status.ABSENT
        if self._is_beyond_support():
            return Status.UNSUPPORTED
        if self.association is not None and self.association.is_shown:
            return Status.SUPPORTED
        if self._helps:
            return Status.CONTEXT
        return Status.CANNOT_TELL

    @property
    def _helps(self) -> bool:
        """Whether the true class becomes less likely without it."""
        return self.helps is not None and self.helps[1] > 0

    def _is_beyond_support(self) -> bool:
        """Whether it moves predictions much further than the data supports at most.

        That holds of a word that predicts the label, too, if the model makes far more of it.
        """
        if self.association is None or self._helps:
            return False
        shown_move = self.consistency * _value(self.inserted, "low")
        return shown_move > max(MAX_TIMES_SUPPORTED * self.supported, DOUBLED_ODDS)


def sizes_one_way(kind: str, inserted: float, removed: float) -> tuple[float, float]:
    """How far a candidate moves predictions when it is inserted, and when it is removed.

    Two words that change places lose one order and gain the other: half of the change is owed to
    the order that was there.
    """
    if kind == "order":
        return inserted, inserted / 2
    return inserted, removed


def _value(sizes: Sizes | None, name: str) -> float:
    return math.nan if sizes is None else float(getattr(sizes, name)[0])


def _at(sizes: Sizes, i: int) -> Sizes | None:
    """The sizes of one word; None if it was measured in fewer than FEWEST inputs."""
    if sizes.n[i] < FEWEST:
        return None
    at = slice(i, i + 1)
    return Sizes(sizes.n[at], sizes.mean[at], sizes.low[at], sizes.high[at], sizes.signed[at])


def word_rows(
    measured: Measured,
    trials: Trials,
    importance: Importance,
    company: Company,
    labels: Ints,
    n_documents: int,
) -> list[Row]:
    """The rows of words, patterns and passages.

    `labels` are those of inputs, (W,); `n_documents` is the number of all documents.
    """
    removed = trials.removed(measured)
    inserted = trials.inserted(measured)
    targets = _targets(trials, measured)
    consistency = trials.consistency()
    flipped = trials.flipped(measured)
    helps = trials.helps(measured, labels)
    needed = needed_weights(company.counts)
    companions = measured.companions(trials.words)
    rows = []
    for i, word in enumerate(trials.words.tolist()):
        token = str(importance.tokens[word])
        parts = companions.get(word, np.array([word]))
        row = Row(
            token=token,
            kind=kind_of(token),
            target=int(targets[i]),
            documents=int(importance.documents[word]),
            coverage=float(importance.documents[word] / n_documents),
            n_read=int((measured.types == word).sum()),
            removed=_at(removed, i),
            inserted=_at(inserted, i),
            consistency=float(consistency[i]),
            context_auc=company.auc(company.contains_all(parts)),
            association=Association.of(importance, word, int(targets[i])),
            phrase=" ".join(str(importance.tokens[part]) for part in parts),
            thing=int(parts.min()),
            needed=max(float(needed[parts, targets[i]].sum()), 0.0),
            flipped=float(flipped[i]),
            helps=(helps[i].mean, helps[i].low),
        )
        rows.append(row)
    return rows


def _targets(trials: Trials, measured: Measured) -> Ints:
    """The class that each word is evidence for: by inserting it, or else by removing it, (C,)."""
    n_inserted = np.bincount(
        np.searchsorted(trials.words, trials.insertions.words), minlength=len(trials.words)
    )
    gain = np.where((n_inserted >= FEWEST)[:, None], trials.mean_gain(), trials.mean_loss(measured))
    if gain.shape[1] == 1:
        return (gain[:, 0] > 0).astype(np.int64)
    return np.asarray(gain.argmax(axis=1))


def form_rows(
    effects: Sequence[FormEffect],
    importance: Importance,
    company: Company,
    has: dict[str, Any],
    n_documents: int,
) -> list[Row]:
    """The rows of forms that the model can see; `has`: form → documents read with it, (n,)."""
    rows = []
    place = {str(token): s for s, token in enumerate(importance.tokens)}
    for number, effect in enumerate(effects, start=1):
        if not effect.visible or effect.given is None:
            continue
        name = effect.form.name
        documents = effect.documents_having or 0
        association = None
        context_auc = 0.5
        if documents:
            association = Association.of(importance, place[name], effect.target)
            context_auc = company.auc(has[name])
        consistency = abs(float(effect.given.signed[0])) / max(float(effect.given.mean[0]), 1e-12)
        rows.append(
            Row(
                token=name,
                kind="form",
                target=effect.target,
                documents=documents,
                coverage=documents / n_documents,
                n_read=documents,
                removed=None if effect.taken is None else _at(effect.taken, 0),
                inserted=effect.given,
                consistency=consistency,
                context_auc=context_auc,
                association=association,
                phrase=name,
                thing=-number,
                words_kept=effect.words_kept,
                flipped=effect.flipped,
            )
        )
    return rows


def order_rows(
    effects: Sequence[OrderEffect],
    words: Sequence[str],
    associations: Sequence[Association],
    n_read: int,
) -> list[Row]:
    """The rows of orders of two words, in the documents read."""
    rows = []
    for number, (effect, association) in enumerate(zip(effects, associations, strict=True)):
        size = max(float(effect.swapped.mean[0]), 1e-12)
        token = f"{words[effect.first]} … {words[effect.second]}"
        rows.append(
            Row(
                token=token,
                kind="order",
                target=effect.target,
                documents=effect.n_inputs,
                coverage=effect.n_inputs / n_read,
                n_read=effect.n_inputs,
                removed=None,
                inserted=effect.swapped,
                consistency=abs(float(effect.swapped.signed[0])) / size,
                context_auc=0.5,
                association=association,
                phrase=token,
                thing=-1000 - number,
            )
        )
    return rows


def needed_weights(counts: Counts) -> Floats:
    """Weights of a logistic regression on the presence of words, in log-odds, (|S|, K)."""
    from sklearn.linear_model import LogisticRegression

    present = counts.matrix.copy()
    present.data = np.ones_like(present.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rough answer is enough here
        weights = LogisticRegression(max_iter=200).fit(present, counts.labels).coef_
    if counts.n_classes == 2:
        return np.column_stack([-weights[0], weights[0]])
    by_class = np.zeros((counts.n_types, counts.n_classes))
    by_class[:, np.unique(counts.labels)] = (weights - weights.mean(axis=0)).T
    return by_class


def uses_table(rows: Sequence[Row], rest: Rest, classes: Sequence[str]) -> pl.DataFrame:
    """The table of `Diagnosis.uses`: what moves predictions most first."""
    shares = _shares(rows, rest)
    probability = artefact_probability(_candidates(rows))
    records = [
        _record(row, share, float(p), classes)
        for row, share, p in zip(rows, shares, probability, strict=True)
    ]
    table = pl.DataFrame(records, schema=SCHEMA)
    return table.sort("move", "token", descending=[True, False], nulls_last=True)


SCHEMA: dict[str, Any] = {
    "token": pl.String,
    "phrase": pl.String,
    "kind": pl.String,
    "class": pl.String,
    "status": pl.String,
    "documents": pl.Int64,
    **dict.fromkeys(("share", "share_low", "share_high"), pl.Float64),
    **dict.fromkeys(("move", "move_low", "move_high"), pl.Float64),
    **dict.fromkeys(("use", "use_low", "use_high"), pl.Float64),
    "inputs": pl.Int64,
    "artefact": pl.Float64,
    **dict.fromkeys(("flipped", "consistency", "context_auc", "words_kept"), pl.Float64),
    **dict.fromkeys(("helps", "helps_low", "needed", "supported"), pl.Float64),
    **dict.fromkeys(
        ("posterior_difference", "posterior_low", "posterior_high", "neutral", "q_value"),
        pl.Float64,
    ),
}


def _record(
    row: Row, share: _Estimate, probability: float, classes: Sequence[str]
) -> dict[str, Any]:
    """One row of the table; a number that does not exist is None."""
    association = row.association
    helps, helps_low = row.helps or (math.nan, math.nan)
    record = {
        "token": row.token,
        "phrase": row.phrase,
        "kind": row.kind,
        "class": classes[row.target],
        "status": str(row.status),
        "documents": row.documents,
        "share": share.value,
        "share_low": max(share.value - Z95 * share.error, 0.0),
        "share_high": min(share.value + Z95 * share.error, 1.0),
        "move": row.move,
        "move_low": _value(row.inserted, "low"),
        "move_high": _value(row.inserted, "high"),
        "use": _value(row.removed, "mean"),
        "use_low": _value(row.removed, "low"),
        "use_high": _value(row.removed, "high"),
        "inputs": 0 if row.removed is None else int(row.removed.n[0]),
        "artefact": probability,
        "flipped": row.flipped,
        "consistency": row.consistency,
        "context_auc": row.context_auc,
        "words_kept": row.words_kept,
        "helps": helps,
        "helps_low": helps_low,
        "needed": row.needed,
        "supported": row.supported,
        "posterior_difference": math.nan if association is None else association.difference,
        "posterior_low": math.nan if association is None else association.low,
        "posterior_high": math.nan if association is None else association.high,
        "neutral": math.nan if association is None else association.neutral,
        "q_value": math.nan if association is None else association.q_value,
    }
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in record.items()
    }


@dataclass(frozen=True)
class _Estimate:
    """A number with its standard error."""

    value: float
    error: float


def _shares(rows: Sequence[Row], rest: Rest) -> list[_Estimate]:
    """The fraction of all effects that each row accounts for; nan if there are no effects."""
    totals = [_total(row) for row in rows]
    # a phrase is removed as a whole; forms change words, and would be counted twice
    by_thing = {
        row.thing: total
        for row, total in zip(rows, totals, strict=True)
        if row.kind not in ("form", "order")
    }
    of_words = list(by_thing.values())
    of_rest = _Estimate(rest.n_pairs * rest.mean, rest.n_pairs * rest.error)
    of_all = _Estimate(
        sum(total.value for total in of_words) + of_rest.value,
        math.hypot(*(total.error for total in of_words), of_rest.error),
    )
    if of_all.value <= 0:
        return [_Estimate(math.nan, math.nan)] * len(rows)
    return [_fraction(total, of_all) for total in totals]


def _total(row: Row) -> _Estimate:
    """Inputs × mean effect of a row's removal; zero if it was not removed."""
    if row.removed is None:
        return _Estimate(0.0, 0.0)
    total = row.n_read * _value(row.removed, "mean")
    half = (_value(row.removed, "high") - _value(row.removed, "low")) / 2
    if not math.isfinite(half):
        return _Estimate(total, total)
    return _Estimate(total, row.n_read * half / Z95)


def _fraction(part: _Estimate, whole: _Estimate) -> _Estimate:
    """A part of a sum as a fraction of it; errors of the parts are independent."""
    fraction = part.value / whole.value
    error_of_others = math.sqrt(max(whole.error**2 - part.error**2, 0.0))
    error = math.hypot((1 - fraction) * part.error, fraction * error_of_others)
    return _Estimate(fraction, error / whole.value)


def _candidates(rows: Sequence[Row]) -> Candidates:
    """What the score is asked about."""

    def column(name: str) -> Floats:
        return np.array([getattr(row, name) for row in rows], dtype=np.float64)

    sizes = [sizes_one_way(row.kind, row.move, _value(row.removed, "mean")) for row in rows]
    inserted, removed = np.array(sizes).reshape(-1, 2).T
    return Candidates(
        inserted=inserted,
        removed=removed,
        consistency=column("consistency"),
        coverage=column("coverage"),
        context_auc=column("context_auc"),
        thing=column("thing"),
    )
