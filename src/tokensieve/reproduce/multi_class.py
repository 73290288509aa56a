"""Table C: Yelp with four classes, values against importance for each class, and the slope of the first step."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from scipy import stats
from scipy.optimize import isotonic_regression

from tokensieve.evidence.importance import signed_frequency
from tokensieve.model.embeddings import initialise
from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.measures import (
    FEWEST,
    PAPER,
    Measurement,
    beside_the_paper,
    bin_edges,
    bins,
    spearman,
)
from tokensieve.reproduce.result import SeedRun
from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.one_step import one_step


def run(bench: Bench) -> SeedRun:
    """Train, bin the values of classes 2 and 4 by importance, and take one gradient step at a large dimension."""
    split = bench.load("yelp")
    found = bench.fit(split, "yelp", bench.part(0, 0.8))
    measured: list[Measurement] = []
    tables: dict[str, pl.DataFrame] = {}
    for k in (2, 4):
        theirs = PAPER[f"multi-class-{k}"]
        tokens, table = _measure(split[0], k, found.values[-1][:, k - 1], theirs, bench.settings["importance"])
        rank, beside = spearman(table["x"], table["value_mean"]), spearman(theirs["x"], theirs["value"])
        measured += beside_the_paper(table, "value", f"E_sᵀv_{k} with table C, class {k}", fewest=1)
        low, middle = _rank_under_noise(table)
        least = low if bench.settings["rank"] == "noise" else beside - 0.1
        measured.append(Measurement(f"class {k}: Spearman of E_sᵀv_{k} with the importance", rank, least, paper=beside))
        measured.append(Measurement(f"class {k}: median Spearman of a rising curve under our noise", middle))
        tables |= {f"bins-class-{k}": table, f"tokens-class-{k}": tokens}
    bench.tell("one step", 0.9)
    # the remainder of one step falls with the dimension, so the slope is read at a large one
    start = initialise(split[0].n_types, bench.settings["step_d"], 4, bench.start_seed)
    step = one_step(split[0], *start, 1.0)
    slope = step.slope / step.expected_slope
    measured.append(Measurement("slope of E_sᵀv_k after one step, over the formula's", slope, 0.99, 1.01, paper=1.0))
    ours = (
        f"correlation with table C {measured[0].value:.3f} (class 2) and {measured[4].value:.3f} (class 4); one-step slope "
        f"{slope:.4f} of the formula's; {bench.accuracy_in_words(found)}"
    )
    return SeedRun(ours, tuple(measured), tables, tuple(bench.accuracies(found, "Yelp, 4 classes")))


def _measure(
    counts: Counts, k: int, value: Floats, theirs: pl.DataFrame, importance: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tokens, and bins of their importance for class k, both in the units of the comparison.

    Args:
        counts: training documents.
        k: class, from 1.
        value: E_sᵀv_k, shape (|S|,).
        theirs: the paper's row.
        importance: "relative", as fractions of the largest importance on each side of zero, or "without 1/T",
            mean_X (1[y = k] − 1/K) c_{X,s}.
    """
    if importance == "relative":
        x = _relative(signed_frequency(counts, counts.n_classes)[:, k - 1])
        theirs = theirs.with_columns(x=_relative(theirs["x"].to_numpy()))
    else:
        x = np.asarray(counts.matrix.T @ ((counts.labels == k - 1) - 1 / counts.n_classes)) / counts.n_documents
    tokens = pl.DataFrame({"token": [str(t) for t in counts.tokens], "importance": x, "value": value})
    edges = bin_edges(theirs["x"].to_numpy())
    shown = tokens
    if importance != "relative":
        shown = tokens.filter(pl.col("importance").is_between(edges[0], edges[-1]))
    return tokens, bins(shown, "importance", theirs)


def _relative(x: Floats) -> Floats:
    """Importance as a fraction of the largest on its side of zero."""
    return np.asarray(np.where(x < 0, x / -x.min(), x / x.max()))


def _rank_under_noise(table: pl.DataFrame) -> tuple[float, float]:
    """Spearman over bins that a curve which truly rises would show, given how far our own types spread within bins.

    The truth is taken to be the rising curve nearest to our bin means (isotonic regression weighted by types); a bin's mean gets
    a normal error of σ/√types, with σ pooled over the bins of at least three types, the fullest one (around zero) left out.

    Returns:
        The 5% quantile and the median; nan where no bin has three types.
    """
    types, means = table["types"].to_numpy(), table["value_mean"].to_numpy()
    outer = (types >= FEWEST) & (types < types.max())
    if not outer.any():
        return math.nan, math.nan
    variance = (types * table["value_sd"].to_numpy() ** 2)[outer].sum() / (types[outer] - 1).sum()
    rising = isotonic_regression(means, weights=types).x
    noise = np.random.default_rng(0).standard_normal((500, len(types))) * np.sqrt(variance / types)
    ranks = stats.zscore(stats.rankdata(rising + noise, axis=1), axis=1)
    low, middle = np.quantile(ranks @ stats.zscore(stats.rankdata(table["x"])) / len(types), (0.05, 0.5))
    return float(low), float(middle)
