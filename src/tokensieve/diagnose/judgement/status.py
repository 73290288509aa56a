"""Whether the data supports what a model uses.

Of a confirmed word, let d̄ be its mean effect on the class that it is evidence for, t·SE the margin of error (Student's t,
corrected for the number of words confirmed), [low, high] the data's interval of the posterior difference less its neutral value,
b the mean per unit of posterior difference among words that predict the label, and typical the root mean square of their mean (at
least a tenth of the standard deviation of the answers, so that what counts is what the model does). With more than two classes, b
and typical are taken from the words confirmed, each on the class that it predicts: the mean of all others is over whichever classes
are predicted. If no word predicts the label, typical is the root mean square of the use of the words confirmed, and b = 0.

    excess = (|d̄| − t SE − b · max(0, end of the interval on the model's side)) / typical

All this is of inputs that contain the word; of a rare word in fewer than FEWEST of them, of those that it was inserted into. Its
**status** (`Status`) weighs both. It is used without support if the excess is above BEYOND, |d̄| at least log 2, or one standard
deviation of the answers if that is less, and less than half of |d̄| is needed. Its use is **shown** if it can be rejected that it
is at most LEAST · typical, over all inputs, by Hall's transformation of t (`_p_above`, one-sided, since sizes are skewed and t
itself is far too cautious for them), at LEVEL over all words confirmed by Holm's procedure. It **helps in context** if the lower
end of what the correct answer loses without it is above zero, corrected like t·SE.

**Needed** is what a simple model of the data, logistic regression on the presence of these words, gives the word (its weight
towards the class that the word is evidence for in the model, in log-odds; at least zero). Use **beyond** need is what remains.
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.confirming import FEWEST, Trials
from tokensieve.diagnose.effects.measuring import Measured, Use
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import LEVEL

_LEAST = 0.25  # of a typical word: use that is shown is above this
_BEYOND = (
    0.5  # excess of a word used without support: half a typical word beyond what the data allows
)
_TIGHT = 0.3  # the data's interval is tight around neutral if it stays within ± this


class Status(StrEnum):
    """What the data and the model show about a word; the values of the column `status` in tokens.csv."""

    CARRIES = "carries the label and is used"
    CONTEXT = "used, helps in context"
    UNSUPPORTED = "used without support"
    RARE = "used, too rare to tell"
    OTHER = "used"
    NOT_SHOWN = "use not shown"


def judge(
    measured: Measured,
    use: Use,
    trials: Trials,
    found: Importance,
    needed: Floats,
    answers_differ: bool,
) -> pl.DataFrame:
    """The words confirmed: those whose use is shown; of these those that dominate, those in FEWEST documents that double the odds,
    then by reliance. `needed` is the weight of each word and class in a simple model of the data, shape (|S|, K). If answers do not
    differ between documents, no use is shown.

    Of the columns, class is the one that the model treats the word as evidence for, inserted and inserted_low are nan of fewer than
    FEWEST insertions, effect is |d̄| towards that class, strength is effect in units of a typical word that predicts the label, and
    posterior_difference, posterior_low, posterior_high, neutral and q_value are those of the data for that class.
    """
    words, H = trials.words, trials.lost.shape[1]
    own = [trials.lost[measured.types[trials.chosen] == s] for s in words]
    own = [rows[np.isfinite(rows).all(axis=1)] for rows in own]
    put = [trials.gained[trials.types == s] for s in words]
    rows_of = [a if len(a) >= FEWEST else b for a, b in zip(own, put, strict=True)]
    means = np.array([rows.mean(axis=0) if len(rows) else np.zeros(H) for rows in rows_of]).reshape(
        len(words), H
    )
    typical, slope = _typical_use(measured, use, found, words, means)
    much = min(math.log(2), float(measured.answers.std(axis=0).mean()))
    sizes = [
        np.abs(np.vstack(pair)).max(axis=1, initial=0.0) for pair in zip(own, put, strict=True)
    ]
    proved = (
        Measured.holm(np.array([_p_above(size, _LEAST * typical) for size in sizes]))
        & answers_differ
    )
    n, at = np.array([len(rows) for rows in rows_of]), np.arange(len(words))
    k = means.argmax(axis=1) if H > 1 else (means[:, 0] > 0).astype(np.int64)
    h, enough, degrees = k if H > 1 else 0 * k, n >= FEWEST, np.maximum(n - 1, 1)
    effect = np.abs(means[at, h])
    spread = [
        rows[:, j].std(ddof=1) if len(rows) >= FEWEST else math.nan
        for rows, j in zip(rows_of, h, strict=True)
    ]
    error = np.array(spread) / np.sqrt(np.maximum(n, 1))
    t, single = (stats.t.isf(level, degrees) for level in (LEVEL / 2 / max(len(words), 1), 0.025))
    mine = {name: column[words] for name, column in use.items()}
    helps = np.where(
        enough, mine["helps"] - t / single * (mine["helps"] - mine["helps_low"]), -math.inf
    )
    neutral, difference, q = (
        found.neutral[k],
        found.posterior_difference[words, k],
        found.q_value[words, k],
    )
    ends = [end[words, k] for end in found.posterior_interval]
    low, high = ends[0] - neutral, ends[1] - neutral
    excess = np.where(
        enough, (effect - t * error - np.maximum(0.0, high) * slope) / typical, -math.inf
    )
    tight = (np.maximum(-low, high) <= _TIGHT) | (
        (high < 0) & (q < LEVEL)
    )  # or significant over all words
    # the words of a phrase are removed together, and a simple model divides its weight among them
    together = measured.companions(words)
    need = np.array(
        [needed[together.get(int(s), s), i].sum() for s, i in zip(words, k, strict=True)]
    ).clip(0.0)
    # the first that holds
    kinds = {
        Status.NOT_SHOWN: ~(enough & proved),
        Status.CARRIES: (q < LEVEL) & (difference > neutral),
        Status.CONTEXT: helps > 0,
        Status.OTHER: (excess <= _LEAST)
        | (need >= effect / 2)
        | (tight & ((excess <= _BEYOND) | (effect < much))),
        Status.UNSUPPORTED: tight,
    }
    half = single * error
    columns = {
        "token": [str(found.tokens[s]) for s in words],
        "class": [found.classes[i] for i in k],
        "status": np.select(list(kinds.values()), list(map(str, kinds)), str(Status.RARE)).tolist(),
        **{name: mine[name] for name in ("use", "use_low", "use_high", "inserted", "inserted_low")},
        "reliance": np.sqrt(found.documents[words]) * np.fmax(mine["use"], mine["inserted"]),
        **{"beyond": np.maximum(mine["use"] - need, 0.0), "needed": need},
        **{
            name: mine[name]
            for name in "share mean flipped concentration helps helps_low helps_high".split()
        },
        **{"effect": effect, "effect_low": effect - half, "effect_high": effect + half},
        **{"strength": effect / typical, "excess": excess},
        **{
            "inputs": mine["inputs"].astype(np.int64),
            "documents": found.documents[words].astype(np.int64),
        },
        **{"posterior_difference": difference, "posterior_low": ends[0], "posterior_high": ends[1]},
        **{"neutral": neutral, "q_value": q},
    }
    table = pl.DataFrame(
        columns, schema_overrides=dict.fromkeys(("token", "class", "status"), pl.String)
    )
    hidden = pl.col("status") == str(Status.NOT_SHOWN)
    table = table.filter(pl.col("inputs") >= FEWEST)
    # a word in few documents that moves answers much further than any other comes first all the same
    first = pl.col("token").is_in(dominating_words(table.filter(~hidden)))
    doubles = pl.max_horizontal("use_low", pl.col("inserted_low").fill_nan(None)) > math.log(2)
    doubles &= pl.col("documents") >= FEWEST
    order = (hidden, first, doubles, "reliance", "use", "token")
    return table.sort(*order, descending=[False, True, True, True, True, False])


def dominating_words(used: pl.DataFrame) -> list[str]:
    """The few words, three at most, that a model relies on far more than on any other; empty if there are none.

    By reliance: each at least doubles the odds and has twice the next word's. By reliance beyond need: one word in ten documents
    or more that quadruples the odds, is called for by the data for at most a quarter of that and has 1.5 times the next one's:
    words that the data calls for must not hide a rare mark. By use, for a word or phrase in few documents: the lower end of its
    interval is above 2.5 times the median of the eight words behind it, and 1.5 times the next. Else the first word by reliance, if
    it has three times the median of the eight behind it and a simple model of the data gives it half of its use: beside a shortcut
    that model and data share, other words of its class may be as strong. The factors were chosen on development models of
    `benchmarks/planted.py`. The data calls for what a simple model gives a word, or for its own association if that is more, since
    the simple model shrinks words in few documents. `used` are the rows of `judge` whose use is shown.
    """
    larger, n = pl.max_horizontal("use", pl.col("inserted").fill_nan(None)), pl.col("documents")
    alone = 2 * (
        (pl.col("posterior_difference") * n / (n + 1)).arctanh() - pl.col("neutral").arctanh()
    )
    called = pl.max_horizontal("needed", alone)
    used = used.with_columns(
        past=n.sqrt() * (larger - called).clip(0), uncalled=(n >= 10) & (called <= larger / 4)
    )
    used = used.with_columns(
        both=(pl.col("status") == str(Status.CARRIES)) & (pl.col("needed") > larger / 2)
    )
    rules = [
        (size, *rule)
        for size in (1, 2, 3)
        for rule in (("reliance", 2.0), ("past", 1.5), ("use", 0.0))
    ]
    for size, by, times in [
        rule for rule in (*rules, (1, "reliance", 3.0)) if rule[0] <= used.height
    ]:
        rows = used.sort(by, "token", descending=[True, False])
        value, either = (
            rows[by].to_numpy(),
            np.fmax(rows["use_low"].to_numpy(), rows["inserted_low"].to_numpy()),
        )
        rest, least = value[size : size + 8], either[:size].min()
        usual = np.median(rest) if len(rest) >= 3 else rest.max(initial=0.0)
        if times == 3.0:
            found = value[0] > times * usual and least > math.log(2) and bool(rows["both"][0])
        elif times:
            found = value[size - 1] > times * rest.max(initial=0.0) and least > math.log(2)
            found &= by == "reliance" or (
                size == 1 and bool(rows["uncalled"][0]) and least > math.log(4)
            )
        else:
            phrase = (
                size == 2 and value[1] > 0.7 * value[0] and rows["class"].head(2).n_unique() == 1
            )
            found = least > max(2.5 * usual, 1.5 * rest.max(initial=0.0)) and (size == 1 or phrase)
        if found:
            return rows["token"].head(size).to_list()
    return []


def _p_above(sizes: Floats, limit: float) -> float:
    """p of "the mean is at most the limit" for a skewed sample, one-sided: 1 if it has fewer than FEWEST values.

    Hall's transformation (1992, section 2) of T = (x̄ − limit)/(s/√n) with the sample's skewness γ, against Student's t:

        T + γ T²/(3√n) + γ² T³/(27 n) + γ/(6√n)
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


def _typical_use(
    measured: Measured, use: Use, found: Importance, words: Ints, means: Floats
) -> tuple[float, float]:
    """Typical mean of words that predict the label, and mean per unit of posterior difference among them (at least zero); `means`
    is what each class's answer loses without the words confirmed, shape (C, H)."""
    side = found.posterior_difference - found.neutral
    if found.q_value.shape[1] == 2:
        carries = np.isfinite(use["mean"]) & (found.q_value[:, 1] < LEVEL)
        side, mean = side[carries, 1], use["mean"][carries]
    else:
        best = found.effect[words].argmax(axis=1)
        rows = np.flatnonzero(found.q_value[words, best] < LEVEL)
        side, mean = side[words[rows], best[rows]], means[rows, best[rows]]
    slope = float(side @ mean) / max(float(side @ side), 1e-12)
    size = mean if len(mean) else use["use"][words][np.isfinite(use["use"][words])]
    typical = float(np.sqrt(np.mean(size**2))) if len(size) else 0.0
    least = 0.1 * float(measured.answers.std(axis=0).mean())
    return max(typical, least, 1e-12), max(slope, 0.0)
