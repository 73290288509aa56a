"""Words that a model may use most, measured again until their intervals are narrow enough.

Candidates are the words of largest use, of largest share, and of largest mean without evidence in the data; of the others those
whose inputs are predicted most unlike all others (z of the mean answer), since where an answer is saturated its gradient
vanishes. Of **rare words**, too rare for a fair number of inputs that contain them, those that move others most
(`Trials.rare_candidates`).

Each is **removed** from inputs that contain it, the words of a phrase together (`Measured.companions`), and **inserted** into
others, drawn at random, half as many or as many as are missing. All are measured in FIRST inputs (in a third of that if the
budget is small); then, sequentially, those whose interval of use is wider than 15 % of the use itself (of the mean effect: 30 %)
in twice as many, the most used first, half of the remaining budget in every round.

The numbers of `measuring.use_of` are then those of removing, or, of a word in fewer than FEWEST inputs, those of inserting. The two
are not pooled: what a word does at a random place in another document is a different quantity, and a joint interval would cover
neither.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.measuring import Measured, Use
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.model.attention import decide

FIRST = 24  # inputs at first; fewer say little of a skewed mean
FEWEST = 5  # inputs without which nothing is said
_TRIED = 4  # inputs that every rare candidate is inserted into


class Trials:
    """What C words (ascending) do: `chosen` pairs whose word was removed, (D,), what the answers `lost`, (D, H), and what they
    `gained`, (P, H), when words `types` were inserted into `windows` that do not contain them, (P,)."""

    def __init__(self, words: Ints, heads: int) -> None:
        none = np.empty(0, dtype=np.int64)
        self.words, self.chosen, self.types, self.windows = words, none, none, none
        self.lost = self.gained = np.empty((0, heads))

    def add(self, chosen: Ints, lost: Floats, types: Ints, windows: Ints, gained: Floats) -> None:
        self.chosen, self.lost = np.r_[self.chosen, chosen], np.vstack([self.lost, lost])
        self.types, self.windows = np.r_[self.types, types], np.r_[self.windows, windows]
        self.gained = np.vstack([self.gained, gained])

    @classmethod
    def confirm(
        cls, measured: Measured, first: Use, found: Importance, rare: Ints, budget: int
    ) -> Trials:
        """Remove the candidates, rare words among them, from inputs that contain them, and insert them into others, in at most
        `budget` passes; `first` is use by the effects of all words, `found` importance in the data."""
        words = _candidates(measured, first, found, rare, _share_measured(budget))
        trials = cls(words, measured.outputs.heads)
        together = measured.companions(words)
        # a budget that leaves nothing for the most used words after the first round is better spent on fewer inputs in it
        inputs = FIRST if budget > 1.3 * 1.5 * FIRST * len(words) else FIRST // 3
        _repeat(measured, trials, words, inputs, together)
        while inputs < 192:
            inputs *= 2
            left = budget - len(trials.chosen) - len(trials.types)
            # half an input inserted for each removed, of those that went through the last round
            wide = _wide(measured, trials, first["share"], inputs // 2)[
                : max(left // 2 // (3 * inputs // 4), 0)
            ]
            if not len(wide):
                break
            _repeat(measured, trials, np.sort(wide), inputs, together)
        return trials

    @staticmethod
    def rare_candidates(measured: Measured, rare: Ints, budget: int) -> tuple[Ints, int]:
        """Rare words to be looked at, ascending, and the passes that this took: those of largest answer alone, of largest effect,
        and in inputs predicted most unlike all others are inserted into the same few inputs; best are those of largest reliance,
        √n times the mean size of the change, if n inputs contain the word."""
        S, most = len(measured.value), round(24 * min(budget / 2400, 1.0))
        value = np.abs(measured.value - np.median(measured.value, axis=0)).max(axis=1)
        held, known = np.bincount(measured.types, minlength=S), np.isfinite(measured.effect)
        sums = np.bincount(measured.types[known], np.abs(measured.effect[known]), S)
        effect = sums / np.maximum(np.bincount(measured.types[known], minlength=S), 1)
        unlike = np.where(held >= 2, _unlike_others(measured), 0.0)
        words = np.unique(
            np.concatenate([rare[_largest(score[rare], most)] for score in (value, effect, unlike)])
        )
        inputs = np.random.default_rng(measured.work.seed).permutation(len(measured.answers))[
            :_TRIED
        ]
        types, windows = np.repeat(words, len(inputs)), np.tile(inputs, len(words))
        gained = np.abs(measured.insert(types, windows, "model: inserting rare words")).max(
            axis=1, initial=0.0
        )
        reliance = np.sqrt(held[words]) * gained.reshape(len(words), len(inputs)).mean(axis=1)
        return np.sort(words[_largest(reliance, round(18 * _share_measured(budget)))]), len(types)

    def use(self, measured: Measured, first: Use, labels: Ints) -> Use:
        """Numbers of removing and inserting for these words, first estimates for others (and of shares); labels of inputs, (W,)."""
        S, w, types = (
            len(measured.value),
            measured.windows[self.chosen],
            measured.types[self.chosen],
        )
        before, heads = measured.decisive[w], measured.heads[w]
        effect = self.lost[np.arange(len(w)), heads]
        of_true = np.hstack([-self.lost, self.lost]) if before.shape[1] == 1 else self.lost
        helps = of_true[np.arange(len(w)), labels[w]]
        flipped = (decide(before) != decide(before - np.nan_to_num(self.lost))).astype(float)
        # windows of one document are not independent: one row per word and document
        key, at = np.unique(
            np.column_stack([types, measured.subject.documents[w]]), axis=0, return_inverse=True
        )
        if len(key) < len(types):
            columns = (np.abs(effect), effect, flipped, helps)
            size, mean, flipped, helps = (
                np.bincount(at, np.nan_to_num(x)) / np.bincount(at) for x in columns
            )
            # the size is averaged, since use is a mean of sizes; the sign is that of the mean
            types, effect = key[:, 0], np.where(mean < 0, -size, size)
        own = Measured.use_of(types, effect, flipped, helps, S)
        having = measured.answers[self.windows] + self.gained
        towards = (
            having.argmax(axis=1) if having.shape[1] > 1 else np.zeros(len(having), dtype=np.int64)
        )
        gain, nothing = self.gained[np.arange(len(having)), towards], np.zeros(len(having))
        put = Measured.use_of(self.types, gain, nothing, nothing, S)
        out, enough = (
            {name: column.copy() for name, column in first.items()},
            put["inputs"] >= FEWEST,
        )
        own["inputs"] += put["inputs"]
        alone = (own["inputs"] - put["inputs"] < FEWEST) & enough
        for name in ("mean", "use", "use_low", "use_high"):
            own[name][alone] = put[name][alone]
        tried = self.words[own["inputs"][self.words] >= FEWEST]
        for name in set(out) - {"share"}:
            out[name][tried] = own[name][tried]
        inserted = {
            name.replace("use", "inserted"): np.where(enough, put[name], np.nan)
            for name in ("use", "use_low")
        }
        return out | inserted

    def removal(self, measured: Measured, labels: Ints) -> tuple[float, float, float]:
        """Mean over documents of what the true class's answer loses when one of these words is removed, with its 95 % interval."""
        there = np.isfinite(self.lost).all(axis=1)
        lost, w = self.lost[there], measured.windows[self.chosen[there]]
        if not len(lost):
            return np.nan, np.nan, np.nan
        of_true = np.hstack([-lost, lost]) if lost.shape[1] == 1 else lost
        _, at = np.unique(measured.subject.documents[w], return_inverse=True)
        means = np.bincount(at, of_true[np.arange(len(w)), labels[w]]) / np.bincount(at)
        n, mean = len(means), float(means.mean())
        half = float(stats.t.isf(0.025, max(n - 1, 1)) * means.std(ddof=int(n > 1)) / np.sqrt(n))
        return mean, mean - half, mean + half


def _share_measured(budget: int) -> float:
    """With a small budget, fewer words are measured, instead of all of them too briefly: the factor of the usual numbers."""
    return float(np.clip(budget / 1200, 0.35, 1.0))


def _repeat(
    measured: Measured, trials: Trials, words: Ints, inputs: int, together: dict[int, Ints]
) -> None:
    """Measure some words in this many inputs, including those of earlier rounds."""
    stage = f"model: confirming {len(words)} words, {inputs} times each"
    most = np.zeros(len(measured.value), dtype=np.int64)
    most[words] = inputs
    had = np.bincount(measured.types[trials.chosen], minlength=len(most))
    chosen = measured.choose(words, np.maximum(most - had, 0), trials.chosen)
    lost = measured.remove(measured.types[chosen], measured.windows[chosen], stage, together)
    types, windows = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for s in words:
        others = _other_inputs(measured, together.get(int(s), np.array([s])), inputs)
        windows.append(others[int((trials.types == s).sum()) :])
        types.append(np.full(len(windows[-1]), s))
    where = np.concatenate(types), np.concatenate(windows)
    trials.add(chosen, lost, *where, measured.insert(*where, f"{stage}, inserted", together))


def _other_inputs(measured: Measured, words: Ints, inputs: int) -> Ints:
    """Inputs that a word or phrase is inserted into: half of `inputs`, or more if fewer than the other half contain it."""
    containing = np.unique(measured.windows[np.isin(measured.types, words)])
    free = np.setdiff1d(np.arange(len(measured.answers)), containing)
    drawn = np.random.default_rng([measured.work.seed, int(words.min())]).permutation(free)
    return drawn[: max(inputs - len(containing), inputs // 2)]


def _wide(measured: Measured, trials: Trials, share: Floats, inputs: int) -> Ints:
    """Words of the last round whose interval of use is still wide, the most used first."""
    S, words, mine = len(measured.value), trials.words, measured.types[trials.chosen]
    types = np.r_[mine, trials.types]
    change = np.nan_to_num(np.vstack([trials.lost, trials.gained]))
    size, nothing = np.abs(change).max(axis=1, initial=0.0), np.zeros(len(change))
    # the mean with its interval is that of "helps", which has a sign
    use = Measured.use_of(types, size, nothing, change[:, 0] if change.shape[1] == 1 else size, S)
    own, held = (
        np.bincount(mine, minlength=S)[words],
        np.bincount(measured.types, minlength=S)[words],
    )
    more = (own >= min(inputs, FIRST)) & (held > own) | (held < FIRST)
    went_on = own + np.bincount(trials.types, minlength=S)[words] >= inputs
    used = use["use"][words]
    half, half_mean = (
        (use[f"{name}_high"] - use[f"{name}_low"])[words] / 2 for name in ("use", "helps")
    )
    largest = float(np.nanmax(used, initial=0.0))
    wide = half > np.maximum(0.15 * used, 0.02 * largest)
    wide |= half_mean > np.maximum(0.3 * used, 0.04 * largest)
    wide &= more & went_on
    # if only few inputs owe much to a word, a few show nothing of it; its share of all use is estimated from all of them
    shares = np.argsort(-np.nan_to_num(share[words]), kind="stable")[:2]
    rank = np.where(np.isin(np.arange(len(words)), shares), np.inf, used)
    return np.asarray(words[wide][np.argsort(-rank[wide], kind="stable")])


def _candidates(
    measured: Measured, first: Use, found: Importance, rare: Ints, scale: float
) -> Ints:
    """The words to be confirmed, ascending, shape (C,); the numbers of each kind are scaled."""
    enough = np.bincount(measured.types, minlength=len(measured.value)) >= FEWEST
    enough[rare] = False
    mean = first["mean"]
    # whether the data is significant for any class (two classes: on the model's side)
    supported = (found.q_value < LEVEL).any(axis=1)
    if found.q_value.shape[1] == 2:
        supported = (found.q_value[:, 1] < LEVEL) & (np.sign(found.effect[:, 1]) == np.sign(mean))
    strong, wide = (np.where(enough, np.nan_to_num(first[name]), 0.0) for name in ("use", "share"))
    unsupported = np.where(supported, 0.0, np.abs(np.nan_to_num(mean))) * enough
    lists = [(strong, 24), (wide, 12), (unsupported, 12)]
    together = measured.companions(np.flatnonzero(enough))
    if together and not measured.subject.differentiable:
        # the answer is held by one word of a phrase when the other is removed: the mean size of what is lost without both
        chosen = measured.choose(np.sort(np.array(list(together))), measured.work.removals)
        types = measured.types[chosen]
        lost = measured.remove(types, measured.windows[chosen], "model: removing phrases", together)
        size = np.nan_to_num(np.abs(lost).max(axis=1, initial=0.0))
        held = np.bincount(types, minlength=len(enough))
        lists.append((np.bincount(types, size, len(enough)) / np.maximum(held, 1), 24))
    words = np.unique(np.concatenate([_largest(x, round(scale * n)) for x, n in lists]))
    unlike = np.where(enough, _unlike_others(measured), 0.0)
    unlike[words] = 0.0
    return np.union1d(np.union1d(words, _largest(unlike, round(scale * 16))), rare)


def _largest(x: Floats, n: int) -> Ints:
    at = np.argsort(-x, kind="stable")[:n]
    return np.asarray(at[x[at] > 0])


def _unlike_others(measured: Measured) -> Floats:
    """|z| of the mean answer to the inputs that contain each word, against that to all inputs; largest over outputs, (|S|,)."""
    types, windows, S = measured.types, measured.windows, len(measured.value)
    answers = measured.answers - measured.answers.mean(axis=0)
    n = np.maximum(np.bincount(types, minlength=S), 1)
    sums = np.stack([np.bincount(types, column[windows], S) for column in answers.T], axis=1)
    spread = np.maximum(answers.std(axis=0), 1e-12)
    return np.asarray((np.abs(sums) / np.sqrt(n)[:, None] / spread).max(axis=1))
