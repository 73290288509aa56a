"""Whether the data supports what a model uses.

Of a confirmed word, let d̄ be its mean effect on the class that it speaks for, t·SE the margin of error (Student's t,
corrected for the number of words confirmed), [low, high] the data's interval of the posterior difference less its neutral value,
b the mean per unit of posterior difference among words that carry the label, and typical the root mean square of their mean (at
least SPREAD of the standard deviation of the answers, so that what counts is what the model does). With more than two classes, b
and typical are taken from the words confirmed, each on the class that it carries: the mean of all others is over whichever classes
are predicted. Where no word carries the label, typical is the root mean square of the use of the words confirmed, and b = 0.

    excess = (|d̄| − t SE − b · max(0, end of the interval on the model's side)) / typical

All this is of inputs that hold the word. Its **status** (`Status`) weighs both. It is used without support where the excess is
above BEYOND and |d̄| at least DOUBLE, or one standard deviation of the answers where that is less. Its use is **shown** where
it can be rejected that it is at most LEAST · typical, over all inputs, those that the word was put into among them, by Hall's
transformation of t (`above`, one-sided, since sizes are skewed and t itself is far too cautious for them), at LEVEL over all
words confirmed by Holm's procedure. It **helps in context** where the lower end of what the right answer loses without it is above
zero, corrected like t·SE.
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

from tokensieve.diagnose.confirming import FEWEST, Confirmed
from tokensieve.diagnose.measuring import Measured
from tokensieve.diagnose.use import Use
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.text.counts import Floats, Ints

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


def judged(measured: Measured, use: Use, seen: Confirmed, found: Importance) -> Judged:
    """Excess and status of the words confirmed.

    Args:
        measured: of the model.
        use: with the confirmed words' numbers.
        seen: what was measured again.
        found: importance in the data.
    """
    words, lost = seen.words, seen.lost
    H = lost.shape[1]
    side = found.posterior_difference - found.neutral
    by_word = [_finite(lost[measured.pairs.types[seen.chosen] == s]) for s in words]
    means = np.array([rows.mean(axis=0) if len(rows) else np.zeros(H) for rows in by_word]).reshape(len(words), H)
    typical, slope = _scale(measured, use, found, words, means)
    much = min(DOUBLE, float(measured.answers.std(axis=0).mean()))
    put = (seen.gained[seen.types == s] for s in words)
    sizes = [np.abs(np.vstack(both)).max(axis=1, initial=0.0) for both in zip(by_word, put, strict=True)]
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
        single = float(stats.t.isf(0.025, n - 1))
        margin, half[i] = t * error, single * error
        helps = use.helps[s] - t / single * (use.helps[s] - use.helps_low[s])
        k = column[i]
        support = max(0.0, float(found.posterior_interval.high[s, k] - found.neutral[k])) * slope
        excess[i] = (effect[i] - margin - support) / typical
        low, high = (
            float(end[s, k] - found.neutral[k]) for end in (found.posterior_interval.low, found.posterior_interval.high)
        )
        if not is_shown[i]:
            status.append(Status.NOT_SHOWN)
        elif found.q_value[s, k] < LEVEL and side[s, k] > 0:
            status.append(Status.CARRIES)
        elif helps > 0:
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
