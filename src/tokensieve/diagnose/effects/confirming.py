"""The words that a model may use most, looked at again, until their numbers are narrow enough.

Candidates are the words of largest use, of largest share, and of largest mean without evidence in the data; of the others those
whose inputs are predicted most unlike all others (z of the mean answer), since where an answer is saturated its gradient
vanishes. Of **rare words**, too rare for a fair number of inputs that contain them, those of largest answer alone, of largest
effect, and in inputs predicted most unlike all others.

Each is **removed** from inputs that contain it, the words of a phrase together (`measuring.companions`), and **inserted** into
others, drawn at random, half as many or as many as are missing. All are measured in FIRST inputs (in a third of that if the
budget is small); then, sequentially, those whose interval of use is wider than 15 % of the use itself (of the mean effect: 30 %)
in twice as many, the most used first, half of what is left of the budget in every round.

The numbers of `tokensieve.diagnose.effects.use` are then those of removing. Of a word in fewer than FIRST inputs that was also
inserted, let u be the mean magnitude of what the answers lose without it in its own inputs, v that of what they gain with it in
others, s_u² and s_v² the squares of their standard errors, and τ² the variance of u − v over words beyond these (at least zero).
The two are weighted by precision:

    use = (u/s_u² + v/(s_v² + τ²)) / (1/s_u² + 1/(s_v² + τ²))

so that what few inputs say of a rare word is drawn towards what many others say, as far as the two agree for words at large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tokensieve.diagnose.effects.measuring import (
    Measured,
    Work,
    choose,
    companions,
    insert_words,
    remove_words,
)
from tokensieve.diagnose.effects.use import Use, use_of
from tokensieve.diagnose.subjects.classes import Outputs
from tokensieve.diagnose.subjects.pieces import Subject
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.model.attention import decide
from tokensieve.text.counts import Floats, Ints

# candidates: of largest use, of largest share, of largest mean without evidence, of predictions unlike all others
_STRONGEST, _WIDEST, _UNSUPPORTED, _UNLIKE = 24, 12, 12, 16
_RESCUED = 6  # rare words by each of three measures
FIRST = 24  # inputs at first; fewer say little of a skewed mean
_MOST = 192  # inputs at last
FEWEST = 5  # inputs without which nothing is said


class Trials:
    """What C words do: every removal and insertion so far.

    Attributes:
        words: word types, ascending, shape (C,).
        chosen, lost: pairs of which a word was removed, shape (D,), and what the answers lost, shape (D, H).
        types, windows, gained: words, and inputs that do not contain them, each of shape (P,), and what the answers gain if the
            word is inserted, shape (P, H).
    """

    def __init__(self, words: Ints, heads: int) -> None:
        none = np.empty(0, dtype=np.int64)
        self.words, self.chosen, self.types, self.windows = words, none, none, none
        self.lost = self.gained = np.empty((0, heads))

    def add(self, chosen: Ints, lost: Floats, types: Ints, windows: Ints, gained: Floats) -> None:
        """More of both."""
        self.chosen, self.lost = np.r_[self.chosen, chosen], np.vstack([self.lost, lost])
        self.types, self.windows = np.r_[self.types, types], np.r_[self.windows, windows]
        self.gained = np.vstack([self.gained, gained])


def rare_candidates(measured: Measured, rare: Ints) -> Ints:
    """Rare words that deserve a look, ascending.

    Args:
        measured: of the model, over all words.
        rare: word types that are too rare for a fair number of inputs.
    """
    S = len(measured.value)
    value = np.abs(measured.value - np.median(measured.value, axis=0)).max(axis=1)
    size = np.bincount(measured.types, np.nan_to_num(np.abs(measured.effect)), S)
    held = np.bincount(measured.types, minlength=S)
    effect = size / np.maximum(held, 1)
    unlike = np.where(held >= 2, _unlike_others(measured), 0.0)
    scores = (value, effect, unlike)
    return np.unique(np.concatenate([rare[_largest(score[rare], _RESCUED)] for score in scores]))


def confirm(
    subject: Subject,
    outputs: Outputs,
    measured: Measured,
    first: Use,
    found: Importance,
    rare: Ints,
    budget: int,
    work: Work,
) -> Trials:
    """Remove the candidates from inputs that contain them, and insert them into others.

    Args:
        subject: the model on its inputs.
        outputs: how logits become answers.
        measured: its effects.
        first: use by these.
        found: importance in the data.
        rare: rare words among the candidates.
        budget: passes that may be spent.
        work: how it runs.
    """
    # a small budget looks at fewer words rather than at all of them too briefly
    scale = float(np.clip(budget / 1200, 0.35, 1.0))
    words = _candidates(subject, outputs, measured, first, found, rare, scale, work)
    trials = Trials(words, outputs.heads)
    together = companions(measured.types, measured.windows, words)
    # a budget that leaves nothing for the most used words after the first round is better spent on fewer inputs in it
    inputs = FIRST if budget > 1.3 * 1.5 * FIRST * len(words) else FIRST // 3
    _repeat(subject, outputs, measured.answers, trials, words, inputs, together, work)
    while inputs < _MOST:
        inputs *= 2
        left = budget - len(trials.chosen) - len(trials.types)
        # half an input inserted for each removed, of those that went through the last round
        wide = _wide(measured, trials, first["share"], inputs // 2)[: max(left // 2 // (3 * inputs // 4), 0)]
        if not len(wide):
            break
        _repeat(subject, outputs, measured.answers, trials, np.sort(wide), inputs, together, work)
    return trials


def _repeat(
    subject: Subject,
    outputs: Outputs,
    answers: Floats,
    trials: Trials,
    words: Ints,
    inputs: int,
    together: dict[int, Ints],
    work: Work,
) -> None:
    """Measure some words in so many inputs, those of earlier rounds included."""
    stage = f"model: confirming {len(words)} words, {inputs} times each"
    most = np.zeros(len(subject.word_lengths), dtype=np.int64)
    most[words] = inputs
    had = np.bincount(subject.types[trials.chosen], minlength=len(most))
    chosen = choose(subject.types, words, np.maximum(most - had, 0), work.seed, apart=trials.chosen)
    lost = remove_words(subject, outputs, answers, chosen, work, stage, together)
    none = np.empty(0, dtype=np.int64)
    types, windows = [none], [none]
    for s in words:
        if int(s) in together:  # a part of a phrase says nothing where the others are not
            continue
        drawn = _other_inputs(subject, int(s), inputs, work.seed)[int((trials.types == s).sum()) :]
        types.append(np.full(len(drawn), s))
        windows.append(drawn)
    where = np.concatenate(types), np.concatenate(windows)
    gained = insert_words(subject, outputs, answers, *where, work, f"{stage}, inserted")
    trials.add(chosen, lost, *where, gained)


def _other_inputs(subject: Subject, word: int, inputs: int, seed: int) -> Ints:
    """Inputs that a word is inserted into: half of `inputs`, or more if fewer than the other half contain it."""
    held = subject.windows[subject.types == word]
    free = np.setdiff1d(np.arange(len(subject.documents)), held)
    return np.random.default_rng([seed, word]).permutation(free)[: max(inputs - len(held), inputs // 2)]


def _wide(measured: Measured, trials: Trials, share: Floats, inputs: int) -> Ints:
    """Words of the last round whose interval of use is still wide, the most used first."""
    types = np.r_[measured.types[trials.chosen], trials.types]
    change = np.nan_to_num(np.vstack([trials.lost, trials.gained]))
    size, nothing = np.abs(change).max(axis=1, initial=0.0), np.zeros(len(change))
    # the mean with its interval is that of "helps", which has a sign
    use = use_of(types, size, nothing, change[:, 0] if change.shape[1] == 1 else size, len(measured.value))
    own = np.bincount(measured.types[trials.chosen], minlength=len(measured.value))
    held = np.bincount(measured.types, minlength=len(measured.value))
    words = trials.words
    more = (own[words] >= min(inputs, FIRST)) & (held[words] > own[words]) | (held[words] < FIRST)
    went_on = (own + np.bincount(trials.types, minlength=len(own)))[words] >= inputs
    half, half_mean = ((use[f"{name}_high"] - use[f"{name}_low"])[words] / 2 for name in ("use", "helps"))
    largest = float(np.nanmax(use["use"][words], initial=0.0))
    wide = half > np.maximum(0.15 * use["use"][words], 0.02 * largest)
    wide |= half_mean > np.maximum(0.3 * use["use"][words], 0.04 * largest)
    wide &= more & went_on
    kept = words[wide]
    # if only few inputs owe much to a word, a few show nothing of it; its share of all use is estimated from all of them
    rank = np.where(np.isin(words, words[np.argsort(-np.nan_to_num(share[words]), kind="stable")[:2]]), np.inf, 0.0)[
        wide
    ]
    return np.asarray(kept[np.argsort(-np.maximum(use["use"][kept], rank), kind="stable")])


def _candidates(
    subject: Subject,
    outputs: Outputs,
    measured: Measured,
    first: Use,
    found: Importance,
    rare: Ints,
    scale: float,
    work: Work,
) -> Ints:
    """The words to be confirmed, ascending, shape (C,)."""
    enough = np.bincount(measured.types, minlength=len(measured.value)) >= FEWEST
    enough[rare] = False
    strong, wide = (np.where(enough, np.nan_to_num(first[name]), 0.0) for name in ("use", "share"))
    supported = _supported(found, first["mean"])
    unsupported = np.where(supported, 0.0, np.abs(np.nan_to_num(first["mean"]))) * enough
    lists = [(strong, _STRONGEST), (wide, _WIDEST), (unsupported, _UNSUPPORTED)]
    if not subject.differentiable:
        lists.append((_in_phrases(subject, outputs, measured, enough, work), _STRONGEST))
    words = np.unique(np.concatenate([_largest(x, round(scale * n)) for x, n in lists]))
    unlike = np.where(enough, _unlike_others(measured), 0.0)
    unlike[words] = 0.0
    return np.union1d(np.union1d(words, _largest(unlike, round(scale * _UNLIKE))), rare)


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


def _in_phrases(
    subject: Subject, outputs: Outputs, measured: Measured, enough: NDArray[np.bool_], work: Work
) -> Floats:
    """Mean size of what is lost without each word and its companions, shape (|S|,): of a model without gradients, whose answer the
    one holds when the other is removed. Zero for words that have none."""
    together = companions(measured.types, measured.windows, np.flatnonzero(enough))
    out = np.zeros(len(enough))
    if together:
        chosen = choose(measured.types, np.sort(np.array(list(together))), work.removals, work.seed)
        lost = remove_words(subject, outputs, measured.answers, chosen, work, "model: removing phrases", together)
        types = measured.types[chosen]
        size = np.nan_to_num(np.abs(lost).max(axis=1, initial=0.0))
        out = np.bincount(types, size, len(out)) / np.maximum(np.bincount(types, minlength=len(out)), 1)
    return out


def _supported(found: Importance, mean: Floats) -> NDArray[np.bool_]:
    """Whether the data is significant for any class (two classes: on the model's side), shape (|S|,)."""
    if found.q_value.shape[1] == 2:
        return np.asarray((found.q_value[:, 1] < LEVEL) & (np.sign(found.effect[:, 1]) == np.sign(mean)))
    return np.asarray((found.q_value < LEVEL).any(axis=1))


def confirmed_use(measured: Measured, trials: Trials, labels: Ints, documents: Ints) -> Use:
    """The numbers of the words confirmed; nan for all others.

    Args:
        measured: of the model.
        trials: what was measured again.
        labels: true class of each input, shape (W,).
        documents: document of each input, shape (W,).
    """
    S, w = len(measured.value), measured.windows[trials.chosen]
    before, heads = measured.decisive[w], measured.heads[w]
    after = before - np.nan_to_num(trials.lost)
    effect = trials.lost[np.arange(len(w)), heads]
    if before.shape[1] == 1:
        helps = np.where(labels[w] == 1, effect, -effect)
    else:
        helps = trials.lost[np.arange(len(w)), labels[w]]
    flipped = (decide(before) != decide(after)).astype(float)
    types = measured.types[trials.chosen]
    types, effect, flipped, helps = _one_per_document(types, documents[w], effect, flipped, helps)
    own = use_of(types, effect, flipped, helps, S)
    having = measured.answers[trials.windows] + trials.gained
    heads = having.argmax(axis=1) if having.shape[1] > 1 else np.zeros(len(having), dtype=np.int64)
    gain = trials.gained[np.arange(len(heads)), heads]
    nothing = np.zeros(len(gain))
    return _together(own, use_of(trials.types, gain, nothing, nothing, S))


def _one_per_document(
    types: Ints, documents: Ints, effect: Floats, flipped: Floats, helps: Floats
) -> tuple[Ints, Floats, Floats, Floats]:
    """One row per word and document: windows of one document are not independent."""
    key, at = np.unique(np.column_stack([types, documents]), axis=0, return_inverse=True)
    if len(key) == len(types):
        return types, effect, flipped, helps
    n = np.bincount(at)
    # the size is averaged, since use is a mean of sizes; the sign is that of the mean
    size, mean = (np.bincount(at, np.nan_to_num(x)) / n for x in (np.abs(effect), effect))
    rows = [np.bincount(at, np.nan_to_num(x)) / n for x in (flipped, helps)]
    return key[:, 0], np.where(mean < 0, -size, size), rows[0], rows[1]


def _together(own: Use, put: Use) -> Use:
    """Use by both means; all other numbers are those of a word's own inputs, if it has any."""
    u, v, n, m = own["use"], put["use"], own["inputs"], put["inputs"]
    both, alone = (n >= FEWEST) & (n < FIRST) & (m >= FEWEST), (n < FEWEST) & (m >= FEWEST)

    def squared_error(x: Use) -> Floats:
        return np.asarray(np.maximum(x["use_error"] ** 2, (1e-9 * np.abs(x["use"])) ** 2 + 1e-300))

    s_u, s_v = squared_error(own), squared_error(put)
    compared = (n >= FEWEST) & (m >= FEWEST)
    beyond = ((u - v) ** 2 - s_u - s_v)[compared]
    tau = max(float(beyond.mean()), 0.0) if len(beyond) else 0.0
    weight, other = 1 / s_u, 1 / (s_v + tau)
    use = np.where(both, (weight * u + other * v) / (weight + other), np.where(alone, v, u))
    half = stats.t.isf(0.025, np.maximum(n + m - 1, 1)) / np.sqrt(weight + other)
    low = np.where(both, np.maximum(use - half, 0.0), np.where(alone, put["use_low"], own["use_low"]))
    high = np.where(both, use + half, np.where(alone, put["use_high"], own["use_high"]))
    mean = np.where(alone, put["mean"], own["mean"])
    return own | {"inputs": n + m, "mean": mean, "use": use, "use_low": low, "use_high": high}


def with_confirmed(first: Use, second: Use, words: Ints) -> Use:
    """Numbers of removing and inserting for the words confirmed, estimates for all others; shares of use stay estimates of one
    kind."""
    good = words[second["inputs"][words] >= FEWEST]
    out = {name: column.copy() for name, column in first.items()}
    for name in out:
        if name != "share":
            out[name][good] = second[name][good]
    return out
