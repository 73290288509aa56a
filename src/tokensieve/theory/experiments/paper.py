"""What is measured for figures 1 to 3 and tables A to C of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy import stats
from scipy.optimize import isotonic_regression

from tokensieve.arrays import Floats
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts
from tokensieve.theory.experiments import measures
from tokensieve.theory.experiments.bench import (
    Bench,
    halves,
    judged_shapes,
    paper_bins,
    tokens_at,
)
from tokensieve.theory.experiments.data import TITLES, Split
from tokensieve.theory.experiments.experiment import SeedRun
from tokensieve.theory.experiments.measures import MIN_SCORE_SPEARMAN, PAPER, Measurement, bins
from tokensieve.theory.generators import independent_tokens
from tokensieve.theory.one_step import one_step

if TYPE_CHECKING:
    from tokensieve.theory.embeddings import Training
    from tokensieve.theory.experiments.deep import DeepTraining

# Criteria, fixed with the experiments (`FIXED` in experiment.py) before the runs.
MAX_CLOUD = 0.2  # |value| of irrelevant types, as a fraction of the largest bin mean
MAX_RELATIVE_SPREAD = 0.1  # of values within bins, as a fraction of their range
MAX_FALL = -0.001  # of |Spearman| with an MLP layer; one step of ranks of 20 bins is larger
MAX_BELOW_PAPER = 0.1  # how far a rank correlation of table C may lie below the paper's
SLOPE_TOLERANCE = 0.01  # of the slope of one step, over the formula's

TABLE_C_CLASSES = (2, 4)  # of four, counted from 1
N_NOISY_CURVES = 500  # their 5% quantile has a standard error of about 0.01 in rank


def one_layer(bench: Bench) -> SeedRun:
    """Figure 3: train the one-layer model on IMDB and on Yelp, and measure both shapes."""
    return _on_both(bench, "one-layer")


def two_layer(bench: Bench) -> SeedRun:
    """Figure 1: the same with two layers of attention."""
    return _on_both(bench, "two-layer")


def _on_both(bench: Bench, kind: str) -> SeedRun:
    """Train one kind of model on IMDB and on Yelp; both shapes are judged on both."""
    measured: list[Measurement] = []
    accuracy: list[Measurement] = []
    tables: dict[str, pl.DataFrame] = {}
    for k, (name, title) in enumerate(TITLES.items()):
        split = bench.load(name)
        trained = _trained(bench, split, kind, name, bench.part(k / 2, (k + 1) / 2))
        tokens = tokens_at(split, trained)
        tables[f"bins-{name}"] = paper_bins(tokens)
        measured += judged_shapes(tables[f"bins-{name}"], split, trained, title)
        accuracy += bench.accuracies(trained, title)
        tables[f"tokens-{name}"] = tokens
        tables[f"trajectory-{name}"] = trained.trajectory
    return SeedRun(tuple(measured), tables, tuple(accuracy))


def _trained(
    bench: Bench, split: Split, kind: str, name: str, progress: Progress
) -> Training | DeepTraining:
    """The one-layer model, whose gradient is exact, or a deep one, by PyTorch."""
    if kind == "one-layer":
        return bench.fit(split, name, progress)
    return bench.fit_deep(split, kind, name, progress)


def synthetic(bench: Bench) -> SeedRun:
    """Figure 2: train on generated documents; half as many more for validation and test."""
    n = bench.settings["documents"]
    sizes = {name: bench.settings[name] for name in ("n_types", "length", "n_irrelevant")}
    counts, relevance = independent_tokens(2 * n, **sizes, delta_min=0.05, seed=bench.seed)
    split = halves(counts, n)
    training = bench.fit(split, "synthetic", bench.progress)
    tokens = tokens_at(split, training).with_columns(true_difference=pl.Series(relevance))
    table = bins(tokens)

    return SeedRun(
        measurements=(*measures.shapes(table, "synthetic"), *_cloud_and_spread(tokens, table)),
        tables={"bins": table, "tokens": tokens},
        accuracy=bench.accuracies(training, "synthetic"),
    )


def _cloud_and_spread(tokens: pl.DataFrame, table: pl.DataFrame) -> list[Measurement]:
    """How close to zero irrelevant types lie, and how little values scatter within bins."""
    irrelevant = tokens.filter(pl.col("true_difference") == 0)
    cloud = irrelevant["value"].abs().to_numpy().mean()
    spread = measures.spread_and_range(table, "value")
    return [
        Measurement(
            "mean |E_sᵀv| of irrelevant types, as a fraction of the largest bin mean",
            float(cloud / (spread.between_bins / 2)),
            high=MAX_CLOUD,
        ),
        Measurement(
            "standard deviation of E_sᵀv within bins, as a fraction of its range",
            spread.within_bins / spread.between_bins,
            high=MAX_RELATIVE_SPREAD,
        ),
    ]


def key_query(bench: Bench) -> SeedRun:
    """Train two layers with key-query matrices on IMDB, and set the bin means beside table A."""
    split = bench.load("imdb")
    trained = bench.fit_deep(split, "key-query", "imdb", bench.progress)
    tokens = tokens_at(split, trained)
    table = bins(tokens, theirs=PAPER["key-query"])
    measured = (
        *judged_shapes(table, split, trained, "IMDB"),
        *measures.beside_the_paper(table, "score", "pᵀW₂E_s with table A"),
        *measures.beside_the_paper(table, "value", "E_sᵀv with table A"),
    )
    tables = {"bins": table, "tokens": tokens, "trajectory": trained.trajectory}
    return SeedRun(measured, tables, bench.accuracies(trained, "IMDB"))


def mlp(bench: Bench) -> SeedRun:
    """Train on IMDB, set the bin means beside table B, and compare with no MLP layer."""
    split = bench.load("imdb")
    without = bench.fit_deep(split, "one-layer", "imdb", bench.part(0, 0.4))
    trained = bench.fit_deep(split, "mlp", "imdb", bench.part(0.4, 1))
    table_without = paper_bins(tokens_at(split, without))
    tokens = with_sign(tokens_at(split, trained))
    table = bins(tokens, theirs=PAPER["mlp"])

    spearman_without = measures.shapes(table_without, "without", judged=False)[0].value
    paper_spearman = measures.spearman(PAPER["mlp"]["x"], PAPER["mlp"]["value"])
    value, score = measures.shapes(table, "IMDB", judged=False)
    measured = (
        score._replace(low=MIN_SCORE_SPEARMAN),
        *measures.beside_the_paper(table, "score", "E_sᵀp with table B"),
        less_monotone(value.value, spearman_without, paper=paper_spearman - 1),
        value,
        *measures.beside_the_paper(
            table, "value", "E_sᵀv with table B (no shape is claimed)", judged=False
        ),
        *measures.spreads(table, "IMDB"),
    )
    tables = {
        "bins": table,
        "bins-without": table_without,
        "tokens": tokens,
        "trajectory": trained.trajectory,
    }
    return SeedRun(measured, tables, bench.accuracies(trained, "IMDB"))


def less_monotone(value: float, without: float, paper: float | None = None) -> Measurement:
    """By how much |Spearman| of E_sᵀv falls with the MLP layer."""
    return Measurement(
        "|Spearman| of E_sᵀv, less that without the MLP layer",
        abs(value) - abs(without),
        high=MAX_FALL,
        paper=paper,
    )


def with_sign(tokens: pl.DataFrame) -> pl.DataFrame:
    """Values with the sign that correlates positively with the posterior difference.

    With an MLP layer between, nothing ties the sign of E_sᵀv to the label.
    """
    correlation = np.corrcoef(tokens["posterior_difference"], tokens["value"])[0, 1]
    if correlation < 0:
        return tokens.with_columns(-pl.col("value"))
    return tokens


def multi_class(bench: Bench) -> SeedRun:
    """Train on Yelp, bin the values of two classes by importance (table C), and take one step."""
    split = bench.load("yelp")
    training = bench.fit(split, "yelp", bench.part(0, 0.8))
    measured: list[Measurement] = []
    tables = {"trajectory": training.trajectory}
    for k in TABLE_C_CLASSES:
        theirs = PAPER[f"multi-class-{k}"]
        tokens = importance_table(
            split.train, k, training.values[-1][:, k - 1], bench.settings["importance"]
        )
        table = importance_bins(tokens, theirs, bench.settings["importance"])
        measured += _beside_table_c(k, table, theirs, bench.settings["rank"])
        tables[f"bins-class-{k}"] = table
        tables[f"tokens-class-{k}"] = tokens

    bench.progress("one step", 0.9)
    # the remainder of one step falls with the dimension, so the slope is read at a large one
    start = bench.start(split.train, bench.settings["step_d"])
    step = one_step(split.train, *start, 1.0)
    measured.append(
        Measurement(
            "slope of E_sᵀv_k after one step, over the formula's",
            step.slope / step.expected_slope,
            low=1 - SLOPE_TOLERANCE,
            high=1 + SLOPE_TOLERANCE,
            paper=1.0,
        )
    )
    return SeedRun(tuple(measured), tables, bench.accuracies(training, "Yelp, 4 classes"))


def _beside_table_c(
    k: int, table: pl.DataFrame, theirs: pl.DataFrame, criterion: str
) -> list[Measurement]:
    """The figures of one class; by `criterion` ("noise" or "paper") its rank correlation is judged
    against what noise leaves of a rising curve, or against the paper's own."""
    spearman = measures.spearman(table["x"], table["value_mean"])
    paper_spearman = measures.spearman(theirs["x"], theirs["value"])
    noise = rank_under_noise(table)
    low = noise.low if criterion == "noise" else paper_spearman - MAX_BELOW_PAPER
    row = f"E_sᵀv_{k} with table C, class {k}"
    return [
        *measures.beside_the_paper(table, "value", row, min_types=1),
        Measurement(
            f"class {k}: Spearman of E_sᵀv_{k} with the importance",
            spearman,
            low=low,
            paper=paper_spearman,
        ),
        Measurement(f"class {k}: median Spearman of a rising curve under our noise", noise.median),
    ]


def importance_table(counts: Counts, k: int, value: Floats, importance: str) -> pl.DataFrame:
    """Tokens with their importance for class k (from 1) and their value E_sᵀv_k, shape (|S|,).

    Importance is "relative" (fractions of the largest on each side of zero) or "without 1/T":
    mean_X (1[y = k] − 1/K) c_{X,s}.
    """
    if importance == "relative":
        x = relative_importance(counts.signed_frequency(counts.n_classes)[:, k - 1])
    else:
        sign = (counts.labels == k - 1) - 1 / counts.n_classes
        x = np.asarray(counts.matrix.T @ sign) / counts.n_documents
    names = [str(token) for token in counts.tokens]
    return pl.DataFrame({"token": names, "importance": x, "value": value})


def importance_bins(tokens: pl.DataFrame, theirs: pl.DataFrame, importance: str) -> pl.DataFrame:
    """Bins of the tokens' importance, in the units of the paper's row `theirs`."""
    is_relative = importance == "relative"
    if is_relative:
        theirs = theirs.with_columns(x=relative_importance(theirs["x"].to_numpy()))
    return bins(tokens, "importance", theirs, beyond=is_relative)


def relative_importance(x: Floats) -> Floats:
    """Importance as a fraction of the largest on its side of zero."""
    return np.asarray(np.where(x < 0, x / -x.min(), x / x.max()))


class RankUnderNoise(NamedTuple):
    """The Spearman correlation over bins that a truly rising curve shows under noise."""

    low: float  # its 5% quantile
    median: float


def rank_under_noise(table: pl.DataFrame) -> RankUnderNoise:
    """What rank correlation a truly rising curve would show; nan if no bin has enough types.

    The truth is taken to be the rising curve nearest to our bin means (isotonic regression weighted
    by types). A bin's mean gets a normal error of σ/√types, with σ pooled over the bins of enough
    types except the fullest, which lies around zero.
    """
    n_types = table["types"].to_numpy()
    is_pooled = (n_types >= measures.MIN_TYPES) & (n_types < n_types.max())
    if not is_pooled.any():
        return RankUnderNoise(math.nan, math.nan)
    squares = (n_types * table["value_sd"].to_numpy() ** 2)[is_pooled].sum()
    variance = squares / (n_types[is_pooled] - 1).sum()
    rising = isotonic_regression(table["value_mean"].to_numpy(), weights=n_types).x
    curves = np.tile(rising, (N_NOISY_CURVES, 1))
    curves += np.random.default_rng(0).standard_normal(curves.shape) * np.sqrt(variance / n_types)
    low, median = np.quantile(_rank_correlations(curves, table["x"]), (0.05, 0.5))
    return RankUnderNoise(float(low), float(median))


def _rank_correlations(curves: Floats, x: pl.Series) -> Floats:
    """Spearman's correlation of each curve, a row of values at x, with x, shape (curves,)."""
    ranks = stats.zscore(stats.rankdata(curves, axis=1), axis=1)
    order = stats.zscore(stats.rankdata(x))
    return np.asarray(ranks @ order / len(x))
