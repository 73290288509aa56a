"""Words that a model may rely on, measured until their intervals are narrow enough.

Each is **removed** from inputs that contain it, the words of a phrase together
(`Measured.companions`), and **inserted** into as many others, drawn at random, where it usually
stands. All are measured in FIRST inputs; then, sequentially, those whose interval is still wide in
twice as many, half of the remaining budget in every round.

The two are different quantities, and are never pooled. Removing says what the documents at hand
owe to a word; inserting says what the word does by itself, and compares words that stand in
different documents.

Candidates are the words with the largest screened effect, in all documents together and in each
document that contains them; words whose inputs are predicted most unlike all others, since where an
answer is saturated its gradient vanishes; and all patterns and passages. Of **rare words**, too
rare for a fair number of inputs that contain them, those are candidates that move others most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.estimates import Sizes, mean_sizes
from tokensieve.diagnose.effects.measuring import Measured, Removals, towards_predicted
from tokensieve.diagnose.subjects.passages import kind_of
from tokensieve.model.attention import decide

FIRST = 24  # inputs at first; fewer say little of a skewed mean
FEWEST = 5  # inputs without which nothing is said
MOST = 192  # inputs; intervals are narrow by then
USUAL_BUDGET = 1200  # passes; with a smaller one fewer words are measured, none too briefly
MIN_BUDGET_FRACTION = 0.35  # of the usual one, where fewer words are measured
# so much of the budget must remain for the most used words after the first round
RESERVE = 1.3

N_BY_TOTAL = 20  # candidates of each kind, with the usual budget
N_BY_SIZE = 20
N_UNLIKE = 12
N_PHRASES = 12
N_RARE = 18
N_RARE_SCREENED = 24  # rare words of each kind that are inserted first
TRIES_OF_RARE = 4  # inputs that each of them is inserted into

# an interval is wide if its half exceeds this fraction of the size itself, and of the largest size
MAX_HALF = 0.15  # of the size itself
MAX_HALF_OF_LARGEST = 0.02  # of the largest size
REST_DRAWS = 200  # removals of words that are no candidates, for the total of all effects


@dataclass(frozen=True)
class Insertions:
    """Words put into inputs without them, each (P,), and what answers gained, (P, H)."""

    words: Ints
    windows: Ints
    gained: Floats

    @classmethod
    def none(cls, heads: int) -> Insertions:
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, np.empty((0, heads)))

    def and_also(self, other: Insertions) -> Insertions:
        return Insertions(
            np.r_[self.words, other.words],
            np.r_[self.windows, other.windows],
            np.vstack([self.gained, other.gained]),
        )


@dataclass(frozen=True)
class Rest:
    """Effects of all words that are no candidates: their mean size, its error, and their number."""

    mean: float
    error: float
    n_pairs: int
    n_words: int


@dataclass(frozen=True)
class MeanInterval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


class Trials:
    """What C words (ascending) do when they are removed and when they are inserted."""

    def __init__(self, words: Ints, heads: int) -> None:
        self.words = words
        self.removals = Removals.none(heads)
        self.insertions = Insertions.none(heads)

    @property
    def n_passes(self) -> int:
        """How often the model was asked."""
        return len(self.removals.pairs) + len(self.insertions.words)

    def removed(self, measured: Measured) -> Sizes:
        """Sizes of removals, with their sign towards the class predicted, (C,).

        Windows of one document are not independent: they are one value.
        """
        pairs = self.removals.pairs
        windows = measured.windows[pairs]
        lost = towards_predicted(self.removals.lost, measured.heads[windows])
        is_known = np.isfinite(lost)
        place = np.searchsorted(self.words, measured.types[pairs[is_known]])
        documents = measured.subject.documents[windows[is_known]]
        keys, row = np.unique(np.column_stack([place, documents]), axis=0, return_inverse=True)
        of_document = _joined(row, lost[is_known], len(keys))
        return mean_sizes(keys[:, 0], of_document, len(self.words))

    def inserted(self, measured: Measured) -> Sizes:
        """Sizes of insertions, towards the class that gained most, (C,)."""
        place = np.searchsorted(self.words, self.insertions.words)
        gained = self.insertions.gained
        heads = np.zeros(len(gained), dtype=np.int64)
        if gained.shape[1] > 1:
            answers = measured.answers[self.insertions.windows]
            heads = (answers + gained).argmax(axis=1)
        return mean_sizes(place, towards_predicted(gained, heads), len(self.words))

    def mean_gain(self) -> Floats:
        """What each answer gains on average when a word is inserted, (C, H); 0 if it was not."""
        place = np.searchsorted(self.words, self.insertions.words)
        return _means(place, self.insertions.gained, len(self.words))

    def mean_loss(self, measured: Measured) -> Floats:
        """What each answer loses on average when a word is removed, (C, H); 0 if it was not."""
        is_known = np.isfinite(self.removals.lost).all(axis=1)
        place = np.searchsorted(self.words, measured.types[self.removals.pairs[is_known]])
        return _means(place, self.removals.lost[is_known], len(self.words))

    def consistency(self) -> Floats:
        """How far a word always pushes the same way, from 0 to 1, (C,).

        Mean change over mean size, of the answer that it moves most.
        """
        place = np.searchsorted(self.words, self.insertions.words)
        mean = self.mean_gain()
        size = _means(place, np.abs(self.insertions.gained), len(self.words))
        head = np.abs(mean).argmax(axis=1)
        rows = np.arange(len(self.words))
        return np.asarray(np.abs(mean[rows, head]) / np.maximum(size[rows, head], 1e-12))

    def flipped(self, measured: Measured) -> Floats:
        """Fraction of the removals that change the predicted class, (C,)."""
        pairs = self.removals.pairs
        before = measured.decisive[measured.windows[pairs]]
        after = before - np.nan_to_num(self.removals.lost)
        changes = (decide(before) != decide(after)).astype(float)
        place = np.searchsorted(self.words, measured.types[pairs])
        return _means(place, changes[:, None], len(self.words))[:, 0]

    def helps(self, measured: Measured, labels: Ints) -> list[MeanInterval]:
        """What the true class's answer loses without each word; labels are of inputs, (W,)."""
        of_true = self._loss_of_true_class(measured, labels)
        types = measured.types[self.removals.pairs]
        return [_t_interval(of_true[types == word]) for word in self.words]

    def loss_of_true_class(self, measured: Measured, labels: Ints) -> MeanInterval:
        """Mean over documents of what the true class's answer loses without one of the words."""
        of_true = self._loss_of_true_class(measured, labels)
        is_known = np.isfinite(of_true)
        documents = measured.subject.documents[measured.windows[self.removals.pairs[is_known]]]
        _, row = np.unique(documents, return_inverse=True)
        return _t_interval(np.bincount(row, of_true[is_known]) / np.bincount(row))

    def _loss_of_true_class(self, measured: Measured, labels: Ints) -> Floats:
        lost = self.removals.lost
        if lost.shape[1] == 1:
            lost = np.hstack([-lost, lost])
        true = labels[measured.windows[self.removals.pairs]]
        return np.asarray(lost[np.arange(len(lost)), true])


def confirm(measured: Measured, words: Ints, budget: int) -> Trials:
    """Remove words from inputs that contain them, and insert them into others.

    Args:
        measured: a model whose words are screened.
        words: the candidates, ascending.
        budget: passes at most.
    """
    trials = Trials(words, measured.outputs.heads)
    companions = measured.companions(words)
    n_inputs = FIRST
    if budget <= RESERVE * 2 * FIRST * len(words):
        n_inputs = FIRST // 3
    _measure_round(measured, trials, words, n_inputs, companions)
    while n_inputs < MOST:
        n_inputs *= 2
        n_affordable = max((budget - trials.n_passes) // 2 // n_inputs, 0)
        wide = _wide(measured, trials, n_inputs // 2)[:n_affordable]
        if not len(wide):
            break
        _measure_round(measured, trials, np.sort(wide), n_inputs, companions)
    return trials


def _measure_round(
    measured: Measured, trials: Trials, words: Ints, n_inputs: int, companions: dict[int, Ints]
) -> None:
    """Measure some words in this many inputs, including those of earlier rounds."""
    stage = f"model: confirming {len(words)} words, {n_inputs} times each"
    removals = _more_removals(measured, trials, words, n_inputs)
    lost = measured.remove(removals, stage, companions)
    trials.removals = trials.removals.and_also(Removals(removals, lost))

    inserted = []
    windows = []
    for word in words:
        parts = companions.get(int(word), np.array([word]))
        n_done = int((trials.insertions.words == word).sum())
        new_windows = inputs_without(measured, parts, n_inputs)[n_done:]
        windows.append(new_windows)
        inserted.append(np.full(len(new_windows), word))
    all_inserted = np.concatenate(inserted)
    all_windows = np.concatenate(windows)
    gained = measured.insert(all_inserted, all_windows, f"{stage}, inserted", companions)
    insertions = Insertions(all_inserted, all_windows, gained)
    trials.insertions = trials.insertions.and_also(insertions)


def _more_removals(measured: Measured, trials: Trials, words: Ints, n_inputs: int) -> Ints:
    """Pairs of some words that were not removed yet, as many as are missing to `n_inputs` each."""
    n_removed = np.bincount(measured.types[trials.removals.pairs], minlength=measured.n_types)
    n_wanted = np.zeros(measured.n_types, dtype=np.int64)
    n_wanted[words] = n_inputs
    n_missing = np.maximum(n_wanted - n_removed, 0)
    return measured.choose(words, n_missing, trials.removals.pairs)


def inputs_without(measured: Measured, words: Ints, n: int) -> Ints:
    """At most n random inputs that contain none of the words; more begin with the same ones."""
    containing = np.unique(measured.windows[np.isin(measured.types, words)])
    free_inputs = np.setdiff1d(np.arange(len(measured.answers)), containing)
    rng = np.random.default_rng([measured.work.seed, int(words.min())])
    return rng.permutation(free_inputs)[:n]


def _wide(measured: Measured, trials: Trials, n_inputs: int) -> Ints:
    """Words of the last round with a wide interval, those that move answers most first."""
    removed = trials.removed(measured)
    inserted = trials.inserted(measured)
    is_wide = _has_wide_interval(removed) | _has_wide_interval(inserted)
    has_more = measured.inputs_with()[trials.words] > removed.n
    has_more |= inserted.n >= n_inputs
    is_of_last_round = np.maximum(removed.n, inserted.n) >= n_inputs
    size = np.fmax(np.nan_to_num(removed.mean), np.nan_to_num(inserted.mean))
    chosen = np.flatnonzero(is_wide & has_more & is_of_last_round)
    return trials.words[chosen[np.argsort(-size[chosen], kind="stable")]]


def _has_wide_interval(sizes: Sizes) -> np.ndarray:
    """Which words have an interval that more inputs would make useful; none of an unknown size."""
    mean = np.nan_to_num(sizes.mean)
    half = np.nan_to_num((sizes.high - sizes.low) / 2, nan=0.0, posinf=np.inf)
    limit = np.maximum(MAX_HALF * mean, MAX_HALF_OF_LARGEST * mean.max(initial=0.0))
    return np.asarray(half > limit)


def candidate_words(
    measured: Measured, is_frequent: np.ndarray, words: tuple[str, ...], budget: int
) -> Ints:
    """The words to be measured, ascending, shape (C,).

    Args:
        measured: a model whose words are screened.
        is_frequent: whether each word is in a fair number of inputs; others are candidates anyway.
        words: as they are written.
        budget: passes at most.
    """
    scale = budget_fraction(budget)
    n_inputs = measured.inputs_with()
    is_eligible = is_frequent & (n_inputs >= FEWEST)
    total = screened_totals(measured)
    size = screened_sizes(measured)
    lists = [
        _largest(np.where(is_eligible, total, 0.0), round(scale * N_BY_TOTAL)),
        _largest(np.where(is_eligible, size, 0.0), round(scale * N_BY_SIZE)),
    ]
    if measured.method == "leave-one-out":
        lists.append(_phrases(measured, np.flatnonzero(is_eligible), round(scale * N_PHRASES)))
    chosen = np.unique(np.concatenate(lists))
    unlike = np.where(is_eligible, unlike_others(measured), 0.0)
    unlike[chosen] = 0.0
    is_special = np.array([kind_of(word) != "word" for word in words], dtype=bool)
    return np.unique(
        np.concatenate(
            [
                chosen,
                _largest(unlike, round(scale * N_UNLIKE)),
                np.flatnonzero(is_special & is_eligible),
                np.flatnonzero(~is_frequent),
            ]
        )
    )


def _phrases(measured: Measured, words: Ints, n: int) -> Ints:
    """Words whose answer is held by another word of their phrase when they alone are removed."""
    companions = measured.companions(words)
    if not companions:
        return words[:0]
    pairs = measured.choose(np.sort(np.array(list(companions))), measured.work.removals)
    lost = measured.remove(pairs, "model: removing phrases", companions)
    size = np.nan_to_num(np.abs(lost).max(axis=1, initial=0.0))
    return _largest(_means(measured.types[pairs], size[:, None], measured.n_types)[:, 0], n)


def rare_candidates(measured: Measured, rare: Ints, budget: int) -> Ints:
    """Rare words worth measuring, ascending.

    Those of largest answer alone, of largest screened effect, and in inputs predicted most unlike
    all others are inserted into the same few inputs. Those that move them most are returned.
    """
    words = _screened_rare_words(measured, rare, budget)
    rng = np.random.default_rng(measured.work.seed)
    inputs = rng.permutation(len(measured.answers))[:TRIES_OF_RARE]
    gained = measured.insert(
        np.repeat(words, len(inputs)), np.tile(inputs, len(words)), "model: inserting rare words"
    )
    largest_gain = np.abs(gained).max(axis=1, initial=0.0)
    mean_gain = largest_gain.reshape(len(words), len(inputs)).mean(axis=1)
    n_candidates = round(N_RARE * budget_fraction(budget))
    return np.sort(words[_largest(mean_gain, n_candidates)])


def _screened_rare_words(measured: Measured, rare: Ints, budget: int) -> Ints:
    """Rare words of largest answer alone, of largest effect, and in the most unusual inputs."""
    n = round(N_RARE_SCREENED * min(budget / (2 * USUAL_BUDGET), 1.0))
    alone = np.abs(measured.value - np.median(measured.value, axis=0)).max(axis=1)
    unlike = np.where(measured.inputs_with() >= 2, unlike_others(measured), 0.0)
    scores = (alone, screened_sizes(measured), unlike)
    largest = [_largest(score[rare], n) for score in scores]
    return np.unique(rare[np.concatenate(largest)])


def rest_of_words(measured: Measured, candidates: Ints) -> Rest:
    """Remove words that are no candidates from random inputs, for the total of all effects."""
    pairs = np.flatnonzero(~np.isin(measured.types, candidates))
    rng = np.random.default_rng([measured.work.seed, 13])
    drawn = np.sort(rng.permutation(pairs)[:REST_DRAWS])
    lost = measured.remove(drawn, "model: removing other words")
    sizes = np.abs(towards_predicted(lost, measured.heads[measured.windows[drawn]]))
    sizes = sizes[np.isfinite(sizes)]
    mean = 0.0
    error = 0.0
    if len(sizes) > 1:
        mean = float(sizes.mean())
        error = float(sizes.std(ddof=1) / np.sqrt(len(sizes)))
    n_words = measured.n_types - len(candidates)
    return Rest(mean, error, len(pairs), n_words)


def budget_fraction(budget: int) -> float:
    """The fraction of the usual numbers of words that a budget allows."""
    return float(np.clip(budget / USUAL_BUDGET, MIN_BUDGET_FRACTION, 1.0))


def screened_sizes(measured: Measured) -> Floats:
    """Mean size of each word's screened effects, shape (|S|,); 0 of a word without any."""
    is_known = np.isfinite(measured.effect)
    n = np.bincount(measured.types[is_known], minlength=measured.n_types)
    sums = np.bincount(
        measured.types[is_known], np.abs(measured.effect[is_known]), measured.n_types
    )
    return np.asarray(sums / np.maximum(n, 1))


def screened_totals(measured: Measured) -> Floats:
    """Estimated sum of the sizes of each word's effects in all inputs, shape (|S|,)."""
    return screened_sizes(measured) * measured.inputs_with()


def unlike_others(measured: Measured) -> Floats:
    """|z| of the mean answer to the inputs that contain each word, largest over answers, (|S|,).

    It is compared with the mean answer to all inputs.
    """
    n = np.maximum(measured.inputs_with(), 1)
    deviation = measured.answers - measured.answers.mean(axis=0)
    spread = np.maximum(measured.answers.std(axis=0), 1e-12)
    of_pairs = deviation[measured.windows] / spread
    sums = [np.bincount(measured.types, column, measured.n_types) for column in of_pairs.T]
    return np.asarray(np.abs(np.stack(sums, axis=1)).max(axis=1) / np.sqrt(n))


def _joined(rows: Ints, changes: Floats, n_rows: int) -> Floats:
    """One change for each row: the mean size of its changes with the sign of their sum."""
    size = np.bincount(rows, np.abs(changes), n_rows) / np.bincount(rows, minlength=n_rows)
    is_negative = np.bincount(rows, changes, n_rows) < 0
    return np.where(is_negative, -size, size)


def _largest(x: Floats, n: int) -> Ints:
    """Places of the n largest numbers above zero."""
    places = np.argsort(-x, kind="stable")[:n]
    return places[x[places] > 0]


def _means(groups: Ints, rows: Floats, n_groups: int) -> Floats:
    """Mean of the rows of each group, (n_groups, H); 0 of an empty group."""
    n = np.maximum(np.bincount(groups, minlength=n_groups), 1)
    sums = [np.bincount(groups, column, n_groups) for column in rows.T]
    return np.stack(sums, axis=1) / n[:, None]


def _t_interval(values: Floats) -> MeanInterval:
    """Student's interval of a mean; nan without values, infinite of one."""
    values = values[np.isfinite(values)]
    n = len(values)
    if not n:
        return MeanInterval(np.nan, np.nan, np.nan)
    mean = float(values.mean())
    if n == 1:
        return MeanInterval(mean, -np.inf, np.inf)
    half = float(stats.t.isf(0.025, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return MeanInterval(mean, mean - half, mean + half)
