"""What the model uses, and whether the data supports it.

Of each word s, over the n inputs X that hold it, with e_X the effect of the word on the answer (`tokensieve.diagnose.measuring`):

    mean            ē = Σ e_X/n, for two classes signed towards the second, else towards the class predicted
    use             Σ |e_X|/n, mean magnitude: a word that works by context has a small mean and a large use
    share           Σ |e_X| over that of all words: the word's share of all use
    flipped         share of inputs whose answer names another class without the word
    concentration   1 − (Σ |e_X|)²/(n Σ e_X²): 0 where all inputs owe it the same, near 1 where a few owe it everything
    helps           Σ h_X/n with h_X = e_X where the word speaks for the true class, −e_X where it speaks against it

The words of largest use, of largest share, of largest mean without evidence in the data, and those whose inputs are answered
most unlike all others (z of the mean answer) are **confirmed**: left out of up to CONFIRMED inputs, and the CLOSER used most and
the LARGEST by share of up to CLOSELY, the words of a phrase together (`measuring.companions`). Their numbers are then those of
leaving out. Of a confirmed word, let d̄ be its mean effect on the class that it speaks for, t·SE the margin of error (Student's t,
corrected for the number of words confirmed), [low, high] the data's interval of the posterior difference less its neutral value,
b the mean per unit of posterior difference among words that carry the label, and typical the root mean square of their mean (at
least SPREAD of the standard deviation of the answers, so that what counts is what the model does). With more than two classes, b
and typical are taken from the words confirmed, each on the class that it carries: the mean of all others is over whichever classes
are predicted. Where no word carries the label, typical is the root mean square of the use of the words confirmed, and b = 0.

    excess = (|d̄| − t SE − b · max(0, end of the interval on the model's side)) / typical

The word's **status** (`Status`) weighs both. It is used without support where the excess is above BEYOND and |d̄| at least DOUBLE,
or one standard deviation of the answers where that is less. Its use is **shown** where that it is at most LEAST · typical can be
rejected, by Hall's transformation of t (`above`, one-sided, since sizes are skewed and t itself is far too cautious for them), at
LEVEL over all words confirmed by Holm's procedure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from tokensieve.data.importance import LEVEL, Importance
from tokensieve.diagnose.measuring import Measured, Subject, Work, choose, companions, leave_out
from tokensieve.diagnose.outputs import Outputs
from tokensieve.model.decision import decide
from tokensieve.text.counts import Floats, Ints

# words confirmed: of largest use, share, mean without evidence, and difference between answers with and without
STRONGEST, WIDEST, UNSUPPORTED, ANSWERED = 18, 12, 12, 10
CONFIRMED = 24
CLOSER, LARGEST, CLOSELY = 6, 2, 96
FEWEST = 5
LEAST = 0.25
BEYOND = 0.5  # excess of a word used without support: half a typical word beyond what the data allows
DOUBLE = math.log(2)  # a word that the model leans on doubles the odds
SPREAD = 0.1
TIGHT = 0.3  # the data's interval is tight around neutral where it stays within ± this


class Status(StrEnum):
    """What data and model say of a word; the values are those of the column `status` in tokens.csv."""

    CARRIES = "carries the label and is used"
    CONTEXT = "used, helps in context"
    UNSUPPORTED = "used without support"
    RARE = "used, too rare to tell"
    OTHER = "used"
    NOT_SHOWN = "use not shown"


@dataclass(frozen=True)
class Use:
    """The numbers of the module's formulas, each of shape (|S|,), nan where a word was not measured.

    Attributes:
        inputs: inputs in which the word was measured.
        mean, use, use_low, use_high, share, flipped, concentration, helps, helps_low, helps_high: as above; intervals 95 %.
    """

    inputs: Ints
    mean: Floats
    use: Floats
    use_low: Floats
    use_high: Floats
    share: Floats
    flipped: Floats
    concentration: Floats
    helps: Floats
    helps_low: Floats
    helps_high: Floats


def use_of(types: Ints, effect: Floats, flipped: Floats, helps: Floats, n_types: int) -> Use:
    """The module's formulas, from one row per (word, input) pair.

    Args:
        types: word of each pair, shape (m,).
        effect: e_X, shape (m,); nan does not count.
        flipped: whether the answer changes, shape (m,).
        helps: h_X, shape (m,).
        n_types: |S|.
    """
    there = np.isfinite(effect)
    types, effect, flipped, helps = types[there], effect[there], flipped[there], helps[there]

    def total(x: Floats) -> Floats:
        return np.bincount(types, x, n_types).astype(np.float64)

    n = np.bincount(types, minlength=n_types)
    some = np.where(n > 0, n, np.nan)
    size = np.abs(effect)

    def interval(x: Floats) -> tuple[Floats, Floats]:
        middle = total(x) / some
        variance = np.maximum(total(x**2) / some - middle**2, 0.0) * some / np.maximum(some - 1, 1)
        half = np.where(n > 1, stats.t.isf(0.025, np.maximum(n - 1, 1)) * np.sqrt(variance / some), np.inf)
        return middle - half, middle + half

    sums, squares = total(size), total(size**2)
    low, high = interval(size)
    helps_low, helps_high = interval(helps)
    return Use(
        n, total(effect) / some, sums / some, np.maximum(low, 0.0), high, sums / max(float(sums.sum()), 1e-300),
        total(flipped) / some, 1 - sums**2 / np.where(squares > 0, some * squares, np.nan), total(helps) / some,
        helps_low, helps_high,
    )  # fmt: skip


def estimated(measured: Measured, labels: Ints) -> Use:
    """From the effects of all words.

    With K > 2 classes the effect is on the predicted class's answer f_k = z_k − mean_j z_j; taking e from it moves the margin
    over each other class by e K/(K − 1) on average, by which flips are estimated.

    Args:
        measured: the model's effects.
        labels: true class of each input, shape (W,).
    """
    w, H = measured.pairs.windows, measured.answers.shape[1]
    answers, effect = measured.decisive, measured.effect
    if H == 1:
        f = answers[w, 0]
        flipped = (f > 0) != (f - effect > 0)
        helps = np.where(labels[w] == 1, effect, -effect)
    else:
        top = np.sort(answers, axis=1)
        margin = (top[:, -1] - top[:, -2])[w]
        flipped = effect * H / (H - 1) > margin
        helps = np.where(labels[w] == measured.heads[w], effect, -effect)
    return use_of(measured.pairs.types, effect, flipped.astype(float), helps, len(measured.value))


def left_out(measured: Measured, chosen: Ints, lost: Floats, labels: Ints) -> Use:
    """From leaving words out.

    Args:
        measured: of the model.
        chosen: pairs of which the word was left out, shape (D,).
        lost: what the answers lost, shape (D, H).
        labels: true class of each input, shape (W,).
    """
    w = measured.pairs.windows[chosen]
    before, heads = measured.decisive[w], measured.heads[w]
    after = before - np.nan_to_num(lost)
    effect = lost[np.arange(len(chosen)), heads]
    if before.shape[1] == 1:
        helps = np.where(labels[w] == 1, effect, -effect)
    else:
        helps = lost[np.arange(len(chosen)), labels[w]]
    flipped = decide(before) != decide(after)
    return use_of(measured.pairs.types[chosen], effect, flipped.astype(float), helps, len(measured.value))


def confirm(
    subject: Subject, outputs: Outputs, measured: Measured, first: Use, found: Importance, work: Work
) -> tuple[Ints, Ints, Floats]:
    """Leave the candidates out of more inputs: (words, shape (C,); pairs, shape (D,); what the answers lost, shape (D, H)).

    Args:
        subject: the model on its inputs.
        outputs: how logits become answers.
        measured: its effects.
        first: use by these.
        found: importance in the data.
        work: how it runs.
    """
    inputs = np.bincount(measured.pairs.types, minlength=len(measured.value))
    enough = inputs >= FEWEST
    strong, wide = (np.where(enough, np.nan_to_num(x), 0.0) for x in (first.use, first.share))
    open_ = np.where(_carries(found, first.mean), 0.0, np.abs(np.nan_to_num(first.mean))) * enough
    # where an answer is saturated its gradient vanishes, and integrated gradients see nothing of the word that made it so
    answered = np.where(enough, _answered(measured), 0.0)
    lists = [(strong, STRONGEST), (wide, WIDEST), (open_, UNSUPPORTED), (answered, ANSWERED)]
    if not subject.differentiable:
        lists.append((_in_phrases(subject, outputs, measured, enough, work), STRONGEST))
    words = np.unique(np.concatenate([(at := np.argsort(-x, kind="stable")[:n])[x[at] > 0] for x, n in lists]))
    together = companions(measured.pairs, words)

    def out(chosen: Ints, stage: str) -> Floats:
        return leave_out(subject, outputs, measured.answers, chosen, work, stage, together)

    chosen = choose(measured.pairs, words, CONFIRMED, work.seed)
    lost = out(chosen, "confirming words")
    size, types = np.nan_to_num(np.abs(lost).max(axis=1, initial=0.0)), measured.pairs.types[chosen]
    n = np.maximum(np.bincount(types, minlength=len(measured.value)), 1)
    middle = np.bincount(types, size, len(n)) / n
    spread = np.sqrt(np.maximum(np.bincount(types, size**2, len(n)) / n - middle**2, 0) / n)
    # where only few inputs owe much to a word, 24 may show nothing; its share of all use is estimated from all of them
    largest = words[np.argsort(-wide[words], kind="stable")[:LARGEST]]
    top = np.union1d(words[np.argsort(-(middle - spread)[words], kind="stable")[:CLOSER]], largest)
    more = choose(measured.pairs, top, CLOSELY - CONFIRMED, work.seed, apart=chosen)
    lost = np.vstack([lost, out(more, "confirming the most used")])
    return words, np.r_[chosen, more], lost


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
        types, size = measured.pairs.types[chosen], np.nan_to_num(np.abs(lost).max(axis=1))
        out = np.bincount(types, size, len(enough)) / np.maximum(np.bincount(types, minlength=len(enough)), 1)
    return out


def with_confirmed(first: Use, second: Use, words: Ints) -> Use:
    """Numbers of leaving out for the words confirmed, estimates for all others; shares of use stay estimates of one kind."""
    rows = {name: np.array(getattr(first, name)) for name in first.__dataclass_fields__ if name != "share"}
    good = words[second.inputs[words] >= FEWEST]
    for name, column in rows.items():
        column[good] = getattr(second, name)[good]
    return Use(**rows, share=first.share)


@dataclass(frozen=True)
class Judged:
    """Words confirmed, judged: each of shape (C,).

    Attributes:
        words: word types.
        column: class that the word speaks for in this model.
        excess: see the module's formula.
        status: `Status` of each.
        effect, half: size of its mean effect on that class's answer, and half the 95 % interval of it.
        typical: the mean of a typical word that carries the label (of more than two classes: its use).
    """

    words: Ints
    column: Ints
    excess: Floats
    status: NDArray[np.object_]
    effect: Floats
    half: Floats
    typical: float


def judged(measured: Measured, use: Use, chosen: Ints, lost: Floats, found: Importance, words: Ints) -> Judged:
    """Excess and status of the words confirmed.

    Args:
        measured: of the model.
        use: with the confirmed words' numbers.
        chosen: pairs of which words were left out, shape (D,).
        lost: what the answers lost, shape (D, H).
        found: importance in the data.
        words: the words confirmed, shape (C,).
    """
    H = lost.shape[1]
    side = found.posterior_difference - found.neutral
    by_word = [_finite(lost[measured.pairs.types[chosen] == s]) for s in words]
    means = np.array([rows.mean(axis=0) if len(rows) else np.zeros(H) for rows in by_word]).reshape(len(words), H)
    typical, slope = _scale(measured, use, found, words, means)
    much = min(DOUBLE, float(measured.answers.std(axis=0).mean()))
    sizes = [np.abs(rows).max(axis=1, initial=0.0) for rows in by_word]
    is_shown = holm(np.array([above(size, LEAST * typical) for size in sizes]))
    column, excess = np.zeros(len(words), dtype=np.int64), np.full(len(words), -np.inf)
    effect, half, status = np.zeros(len(words)), np.zeros(len(words)), []
    for i, s in enumerate(words):
        rows, n, middle = by_word[i], len(by_word[i]), means[i]
        column[i] = int(middle.argmax()) if H > 1 else int(middle[0] > 0)
        if n < FEWEST:
            status.append(Status.NOT_SHOWN)
            continue
        h = column[i] if H > 1 else 0
        effect[i] = abs(float(middle[h]))
        t = float(stats.t.isf(LEVEL / 2 / len(words), n - 1))
        error = float(rows[:, h].std(ddof=1)) / np.sqrt(n)
        margin, half[i] = t * error, float(stats.t.isf(0.025, n - 1)) * error
        k = column[i]
        support = max(0.0, float(found.posterior_high[s, k] - found.neutral[k])) * slope
        excess[i] = (effect[i] - margin - support) / typical
        low, high = (float(end[s, k] - found.neutral[k]) for end in (found.posterior_low, found.posterior_high))
        if not is_shown[i]:
            status.append(Status.NOT_SHOWN)
        elif found.q_value[s, k] < LEVEL and side[s, k] > 0:
            status.append(Status.CARRIES)
        elif use.helps_low[s] > 0:
            status.append(Status.CONTEXT)
        elif excess[i] <= LEAST:
            status.append(Status.OTHER)
        elif max(-low, high) <= TIGHT or high < 0:
            leans = excess[i] > BEYOND and effect[i] >= much
            status.append(Status.UNSUPPORTED if leans else Status.OTHER)
        else:
            status.append(Status.RARE)
    return Judged(words, column, excess, np.array(status, dtype=object), effect, half, typical)


def above(sizes: Floats, limit: float) -> float:
    """p of "the mean is at most the limit" for a skewed sample, one-sided: 1 where it has fewer than FEWEST values.

    Hall's transformation (1992, section 2) of T = (x̄ − limit)/(s/√n) with the sample's skewness γ, against Student's t:

        T + γ T²/(3√n) + γ² T³/(27 n) + γ/(6√n)

    Args:
        sizes: n values, none below zero.
        limit: to be exceeded.
    """
    n = len(sizes)
    if n < FEWEST:
        return 1.0
    spread = float(sizes.std(ddof=1))
    if spread <= 1e-9 * float(np.abs(sizes).max()):
        return 0.0 if sizes.mean() > limit else 1.0
    t = (float(sizes.mean()) - limit) / (spread / np.sqrt(n))
    k = float(stats.skew(sizes)) / np.sqrt(n)
    return float(stats.t.sf(t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6, n - 1))


def holm(p: Floats) -> NDArray[np.bool_]:
    """Which hypotheses Holm's procedure (1979) rejects at LEVEL, shape (C,)."""
    order = np.argsort(p, kind="stable")
    passed = np.minimum.accumulate(p[order] < LEVEL / np.arange(len(p), 0, -1)) if len(p) else np.empty(0, dtype=bool)
    out = np.zeros(len(p), dtype=bool)
    out[order] = passed
    return out


def _finite(rows: Floats) -> Floats:
    return np.asarray(rows[np.isfinite(rows).all(axis=1)])


def _carries(found: Importance, mean: Floats) -> NDArray[np.bool_]:
    """Whether the data is significant for any class (two classes: on the model's side), shape (|S|,)."""
    if found.q_value.shape[1] == 2:
        return np.asarray((found.q_value[:, 1] < LEVEL) & (np.sign(found.effect[:, 1]) == np.sign(mean)))
    return np.asarray((found.q_value < LEVEL).any(axis=1))


def _scale(measured: Measured, use: Use, found: Importance, words: Ints, means: Floats) -> tuple[float, float]:
    """Typical mean of words that carry the label, and mean per unit of posterior difference among them (at least zero).

    Args:
        measured, use, found: as in `judged`.
        words: the words confirmed, shape (C,).
        means: what each class's answer loses without them, shape (C, H).
    """
    side = found.posterior_difference - found.neutral
    if found.q_value.shape[1] == 2:
        carries = np.isfinite(use.mean) & (found.q_value[:, 1] < LEVEL)
        side, mean = side[carries, 1], use.mean[carries]
    else:
        best = found.effect[words].argmax(axis=1)
        rows = np.flatnonzero(found.q_value[words, best] < LEVEL)
        side, mean = side[words[rows], best[rows]], means[rows, best[rows]]
    slope = float(side @ mean) / max(float(side @ side), 1e-12)
    size = mean if len(mean) else use.use[words][np.isfinite(use.use[words])]
    typical = float(np.sqrt(np.mean(size**2))) if len(size) else 0.0
    return max(typical, SPREAD * float(measured.answers.std(axis=0).mean()), 1e-12), max(slope, 0.0)


def uses_frame(use: Use, judged_: Judged, found: Importance) -> pl.DataFrame:
    """The words confirmed, those whose use is shown first, the most used first, with the data's evidence beside.

    Columns: token, class (the one that the model takes it to speak for), status, use, use_low, use_high, share, mean, flipped,
    concentration, helps, helps_low, helps_high, effect (|d̄|, towards that class), effect_low, effect_high, strength (effect
    in units of a typical word that carries the label), excess, inputs, documents, posterior_difference, posterior_low,
    posterior_high, neutral, q_value (those of the data for that class).
    """
    s, k = judged_.words, judged_.column
    numbers = (
        "use",
        "use_low",
        "use_high",
        "share",
        "mean",
        "flipped",
        "concentration",
        "helps",
        "helps_low",
        "helps_high",
    )
    columns: dict[str, Any] = {
        "token": pl.Series([str(found.tokens[i]) for i in s], dtype=pl.String),
        "class": pl.Series([found.classes[i] for i in k], dtype=pl.String),
        "status": pl.Series([str(one) for one in judged_.status], dtype=pl.String),
    }
    columns |= {name: pl.Series(np.asarray(getattr(use, name)[s], dtype=float)) for name in numbers}
    effect = judged_.effect
    columns |= {"effect": effect, "effect_low": effect - judged_.half, "effect_high": effect + judged_.half}
    columns |= {"strength": effect / judged_.typical}
    columns |= {"excess": judged_.excess.astype(float), "inputs": use.inputs[s], "documents": found.documents[s]}
    data = ("posterior_difference", "posterior_low", "posterior_high", "q_value")
    columns |= {name: getattr(found, name)[s, k] for name in data} | {"neutral": found.neutral[k]}
    frame = pl.DataFrame(columns)
    not_shown = pl.col("status") == str(Status.NOT_SHOWN)
    return frame.filter(pl.col("inputs") >= FEWEST).sort(not_shown, "use", "token", descending=[False, True, False])
