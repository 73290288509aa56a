"""The words that a model may use most, looked at again.

Those of largest use, of largest share, of largest mean without evidence in the data, and of the others those whose inputs are
answered most unlike all others (z of the mean answer) are **confirmed**: left out of inputs that hold them, the words of a phrase
together (`measuring.companions`), and put into others, drawn at random, half as many or as many as are missing. All are measured in
CONFIRMED inputs; as in successive halving (Jamieson and Talwalkar 2016), those used most by then are measured in more (ROUNDS).

The numbers of `tokensieve.diagnose.use` are then those of leaving out. Of a word that was also put in, let u be the mean magnitude
of what the answers lose without it in its own inputs, v that of what they gain with it in others, s_u² and s_v² the squares of
their standard errors, and τ² the variance of u − v over words beyond these (at least zero). The two are weighted by precision:

    use = (u/s_u² + v/(s_v² + τ²)) / (1/s_u² + 1/(s_v² + τ²))

so that what few inputs say of a rare word is drawn towards what many others say, as far as the two agree for words at large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tokensieve.diagnose.measuring import Measured, Subject, Work, choose, companions, leave_out, put_in
from tokensieve.diagnose.outputs import Outputs
from tokensieve.diagnose.use import Use, use_of
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.model.decision import decide
from tokensieve.text.counts import Floats, Ints

# words confirmed: of largest use, share, mean without evidence, and difference between answers with and without
STRONGEST, WIDEST, UNSUPPORTED, ANSWERED = 24, 12, 12, 16
CONFIRMED = 24
ROUNDS = ((24, 48), (10, 96))  # words that are looked at again, and inputs each
LARGEST = 2  # words of the largest share, which stay in every round
FEWEST = 5


@dataclass(frozen=True)
class Confirmed:
    """What C words do, measured by leaving them out and putting them in.

    Attributes:
        words: word types, ascending, shape (C,).
        chosen, lost: pairs of which a word was left out, shape (D,), and what the answers lost, shape (D, H).
        types, windows, gained: words, and inputs that do not hold them, each of shape (P,), and what the answers gain where the
            word is put in, shape (P, H).
    """

    words: Ints
    chosen: Ints
    lost: Floats
    types: Ints
    windows: Ints
    gained: Floats


def confirm(
    subject: Subject, outputs: Outputs, measured: Measured, first: Use, found: Importance, work: Work
) -> Confirmed:  # fmt: skip
    """Leave the candidates out of inputs that hold them, and put them into others.

    Args:
        subject: the model on its inputs.
        outputs: how logits become answers.
        measured: its effects.
        first: use by these.
        found: importance in the data.
        work: how it runs.
    """
    words = _candidates(subject, outputs, measured, first, found, work)
    pairs, answers, none = measured.pairs, measured.answers, np.empty(0, dtype=np.int64)
    together = companions(pairs, words)
    nothing = np.empty((0, outputs.heads))
    seen, looked, had = Confirmed(words, none, nothing, none, none, nothing), words, 0
    for many, inputs in ((len(words), CONFIRMED), *ROUNDS):
        stage = f"confirming words, {inputs} times each"
        looked = _most_used(seen, looked, measured, first, many)
        chosen = choose(pairs, looked, inputs - had, work.seed, apart=seen.chosen)
        lost = leave_out(subject, outputs, answers, chosen, work, stage, together)
        # a part of a phrase says nothing where the others are not
        drawn = [
            (s, _others(measured, s, inputs, work.seed)[(seen.types == s).sum() :]) for s in looked if s not in together
        ]
        types = np.concatenate([none, *(np.full(len(windows), s) for s, windows in drawn)])
        windows = np.concatenate([none, *(windows for _, windows in drawn)])
        gained = put_in(subject, outputs, answers, types, windows, work, f"{stage}, put in")
        seen = Confirmed(
            words, np.r_[seen.chosen, chosen], np.vstack([seen.lost, lost]), np.r_[seen.types, types],
            np.r_[seen.windows, windows], np.vstack([seen.gained, gained]),
        )  # fmt: skip
        had = inputs
    return seen


def _others(measured: Measured, word: int, many: int, seed: int) -> Ints:
    """Inputs that a word is put into: half of `many`, or more where fewer than the other half hold it."""
    held = measured.pairs.windows[measured.pairs.types == word]
    free = np.setdiff1d(np.arange(len(measured.answers)), held)
    return np.random.default_rng([seed, word]).permutation(free)[: max(many - len(held), many // 2)]


def _candidates(
    subject: Subject, outputs: Outputs, measured: Measured, first: Use, found: Importance, work: Work
) -> Ints:  # fmt: skip
    """The words to be confirmed, ascending, shape (C,)."""
    enough = np.bincount(measured.pairs.types, minlength=len(measured.value)) >= FEWEST
    strong, wide = (np.where(enough, np.nan_to_num(x), 0.0) for x in (first.use, first.share))
    open_ = np.where(_carries(found, first.mean), 0.0, np.abs(np.nan_to_num(first.mean))) * enough
    lists = [(strong, STRONGEST), (wide, WIDEST), (open_, UNSUPPORTED)]
    if not subject.differentiable:
        lists.append((_in_phrases(subject, outputs, measured, enough, work), STRONGEST))
    words = np.unique(np.concatenate([_largest(x, n) for x, n in lists]))
    # where an answer is saturated its gradient vanishes, and integrated gradients see nothing of the word that made it so
    answered = np.where(enough, _answered(measured), 0.0)
    answered[words] = 0.0
    return np.union1d(words, _largest(answered, ANSWERED))


def _largest(x: Floats, n: int) -> Ints:
    at = np.argsort(-x, kind="stable")[:n]
    return np.asarray(at[x[at] > 0])


def _most_used(seen: Confirmed, looked: Ints, measured: Measured, first: Use, many: int) -> Ints:
    """Those of some words that are used most, and those of the largest share, ascending.

    Where only few inputs owe much to a word, a few show nothing of it; its share of all use is estimated from all of them.
    """
    types = np.r_[measured.pairs.types[seen.chosen], seen.types]
    use = _mean_size(types, np.vstack([seen.lost, seen.gained]), len(measured.value))
    most = looked[np.argsort(-use[looked], kind="stable")[:many]]
    return np.union1d(most, looked[np.argsort(-np.nan_to_num(first.share[looked]), kind="stable")[:LARGEST]])


def _mean_size(types: Ints, change: Floats, n_types: int) -> Floats:
    """Of each word the mean size of what the answers change, largest over outputs, shape (|S|,); zero where it was not measured."""
    size = np.nan_to_num(np.abs(change).max(axis=1, initial=0.0))
    return np.asarray(np.bincount(types, size, n_types) / np.maximum(np.bincount(types, minlength=n_types), 1))


def _answered(measured: Measured) -> Floats:
    """|z| of the mean answer to the inputs that hold each word, against that to all inputs; largest over outputs, shape (|S|,)."""
    types, windows, S = measured.pairs.types, measured.pairs.windows, len(measured.value)
    answers = measured.answers - measured.answers.mean(axis=0)
    n = np.maximum(np.bincount(types, minlength=S), 1)
    sums = np.stack([np.bincount(types, column[windows], S) for column in answers.T], axis=1)
    spread = np.maximum(answers.std(axis=0), 1e-12)
    return np.asarray((np.abs(sums) / np.sqrt(n)[:, None] / spread).max(axis=1))


def _in_phrases(
    subject: Subject, outputs: Outputs, measured: Measured, enough: NDArray[np.bool_], work: Work
) -> Floats:  # fmt: skip
    """Size of what is lost without each word and its companions, shape (|S|,): of a model without gradients, whose answer the
    one holds where the other is left out. Zero for words that have none."""
    together = companions(measured.pairs, np.flatnonzero(enough))
    out = np.zeros(len(enough))
    if together:
        chosen = choose(measured.pairs, np.sort(np.array(list(together))), work.per_type, work.seed)
        lost = leave_out(subject, outputs, measured.answers, chosen, work, "leaving out phrases", together)
        out = _mean_size(measured.pairs.types[chosen], lost, len(enough))
    return out


def confirmed_use(measured: Measured, seen: Confirmed, labels: Ints) -> Use:
    """The numbers of the words confirmed; nan for all others.

    Args:
        measured: of the model.
        seen: what was measured again.
        labels: true class of each input, shape (W,).
    """
    S, w = len(measured.value), measured.pairs.windows[seen.chosen]
    before, heads = measured.decisive[w], measured.heads[w]
    after = before - np.nan_to_num(seen.lost)
    effect = seen.lost[np.arange(len(w)), heads]
    if before.shape[1] == 1:
        helps = np.where(labels[w] == 1, effect, -effect)
    else:
        helps = seen.lost[np.arange(len(w)), labels[w]]
    flipped = decide(before) != decide(after)
    own = use_of(measured.pairs.types[seen.chosen], effect, flipped.astype(float), helps, S)
    having = measured.answers[seen.windows] + seen.gained
    heads = having.argmax(axis=1) if having.shape[1] > 1 else np.zeros(len(having), dtype=np.int64)
    gain = seen.gained[np.arange(len(heads)), heads]
    nothing = np.zeros(len(gain))
    return _together(own, use_of(seen.types, gain, nothing, nothing, S))


def _together(own: Use, put: Use) -> Use:
    """Use by both means; all other numbers are those of a word's own inputs."""
    u, v, both = own.use, put.use, (own.inputs >= FEWEST) & (put.inputs >= FEWEST)

    def squared_error(x: Use) -> Floats:
        half = (x.use_high - x.use) / stats.t.isf(0.025, np.maximum(x.inputs - 1, 1))
        return np.asarray(np.maximum(half**2, (1e-9 * np.abs(x.use)) ** 2 + 1e-300))

    s_u, s_v = squared_error(own), squared_error(put)
    beyond = ((u - v) ** 2 - s_u - s_v)[both]
    tau = max(float(beyond.mean()), 0.0) if len(beyond) else 0.0
    weight, other = 1 / s_u, 1 / (s_v + tau)
    use = np.where(both, (weight * u + other * v) / (weight + other), u)
    half = stats.t.isf(0.025, np.maximum(own.inputs + put.inputs - 1, 1)) / np.sqrt(weight + other)
    low, high = np.where(both, np.maximum(use - half, 0.0), own.use_low), np.where(both, use + half, own.use_high)
    return replace(own, inputs=own.inputs + put.inputs, use=use, use_low=low, use_high=high)


def with_confirmed(first: Use, second: Use, words: Ints) -> Use:
    """Numbers of leaving out and putting in for the words confirmed, estimates for all others; shares of use stay estimates of
    one kind."""
    rows = {name: np.array(getattr(first, name)) for name in first.__dataclass_fields__ if name != "share"}
    good = words[second.inputs[words] >= FEWEST]
    for name, column in rows.items():
        column[good] = getattr(second, name)[good]
    return Use(**rows, share=first.share)


def _carries(found: Importance, mean: Floats) -> NDArray[np.bool_]:
    """Whether the data is significant for any class (two classes: on the model's side), shape (|S|,)."""
    if found.q_value.shape[1] == 2:
        return np.asarray((found.q_value[:, 1] < LEVEL) & (np.sign(found.effect[:, 1]) == np.sign(mean)))
    return np.asarray((found.q_value < LEVEL).any(axis=1))
