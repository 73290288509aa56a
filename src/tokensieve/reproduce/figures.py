"""The paper's own experiments: figures 1 to 3 and tables A to C."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy import stats
from scipy.optimize import isotonic_regression

from tokensieve.evidence.importance import signed_frequency
from tokensieve.reproduce.bench import TITLES, Bench
from tokensieve.reproduce.measures import (
    FEWEST,
    PAPER,
    V_SHAPED,
    Measurement,
    beside_the_paper,
    bins,
    shape_measurements,
    spearman,
    spread_and_range,
    spread_measurements,
    token_table,
)
from tokensieve.reproduce.result import SeedRun
from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.generators import independent_tokens
from tokensieve.theory.one_step import one_step

if TYPE_CHECKING:
    from tokensieve.reproduce.bench import Trained


def _on_both(bench: Bench, kind: str) -> SeedRun:
    """Figures 1 and 3: train the one-layer model, or a deep one, on IMDB and on Yelp, and measure both shapes."""
    measured: list[Measurement] = []
    accuracy: list[Measurement] = []
    tables: dict[str, pl.DataFrame] = {}
    for k, (name, title) in enumerate(TITLES.items()):
        tell = bench.part(k / 2, (k + 1) / 2)
        found: Trained
        if kind == "one-layer":
            split = bench.load(name)
            found = bench.fit(split, name, tell)
        else:
            split, found = bench.fit_deep(kind, name, tell)
        tokens, table = bench.read(split, found)
        measured += bench.shapes(table, split, found, title)
        accuracy += bench.accuracies(found, title)
        tables |= {f"bins-{name}": table, f"tokens-{name}": tokens, f"trajectory-{name}": found.trajectory}
    return SeedRun(tuple(measured), tables, tuple(accuracy))


def _synthetic(bench: Bench) -> SeedRun:
    """Figure 2: train on generated documents; half as many more for validation and test."""
    n = bench.settings["documents"]
    sizes = {name: bench.settings[name] for name in ("n_types", "length", "n_irrelevant")}
    counts, relevance = independent_tokens(2 * n, **sizes, delta_min=0.05, seed=bench.seed)
    split = Bench.halves(counts, n)
    training = bench.fit(split, "synthetic", bench.tell)
    tokens = token_table(split[0], training.scores[-1], training.values[-1][:, 0])
    tokens = tokens.with_columns(true_difference=pl.Series(relevance))
    table = bins(tokens)
    cloud = tokens.filter(pl.col("true_difference") == 0)["value"].abs().to_numpy().mean()
    spread, width = spread_and_range(table, "value")
    size, relative = float(cloud / (width / 2)), spread / width
    measured = (
        *shape_measurements(table, "synthetic"),
        Measurement("mean |E_sᵀv| of irrelevant types, as a fraction of the largest bin mean", size, high=0.2),
        Measurement("standard deviation of E_sᵀv within bins, as a fraction of its range", relative, high=0.1),
    )
    return SeedRun(measured, {"bins": table, "tokens": tokens}, bench.accuracies(training, "synthetic"))


def _key_query(bench: Bench) -> SeedRun:
    """Train two layers with key-query matrices on IMDB, and set the bin means beside table A."""
    split, found = bench.fit_deep("key-query", "imdb", bench.tell)
    tokens, _ = bench.read(split, found)
    table = bins(tokens, theirs=PAPER["key-query"])
    score = beside_the_paper(table, "score", "pᵀW₂E_s with table A")
    value = beside_the_paper(table, "value", "E_sᵀv with table A")
    shape = bench.shapes(table, split, found, "IMDB")
    tables = {"bins": table, "tokens": tokens, "trajectory": found.trajectory}
    return SeedRun((*shape, *score, *value), tables, bench.accuracies(found, "IMDB"))


def _mlp(bench: Bench) -> SeedRun:
    """Train on IMDB, set the bin means beside table B, and compare with the same model without the MLP layer."""
    plain_split, without = bench.fit_deep("one-layer", "imdb", bench.part(0, 0.4))
    split, found = bench.fit_deep("mlp", "imdb", bench.part(0.4, 1))
    tokens = _with_sign(bench.read(split, found)[0])
    table = bins(tokens, theirs=PAPER["mlp"])
    _, plain = bench.read(plain_split, without)
    straight = shape_measurements(plain, "without", judged=False)[0].value
    theirs = spearman(PAPER["mlp"]["x"], PAPER["mlp"]["value"])
    value, score = shape_measurements(table, "IMDB", judged=False)
    beside = beside_the_paper(table, "score", "E_sᵀp with table B")
    not_claimed = beside_the_paper(table, "value", "E_sᵀv with table B (no shape is claimed)", judged=False)
    less = _less_monotone(value.value, straight, theirs - 1)
    measured = (score._replace(low=V_SHAPED), *beside, less, value, *not_claimed, *spread_measurements(table, "IMDB"))
    tables = {"bins": table, "bins-without": plain, "tokens": tokens, "trajectory": found.trajectory}
    return SeedRun(measured, tables, bench.accuracies(found, "IMDB"))


def _less_monotone(value: float, without: float, theirs: float | None = None) -> Measurement:
    """Of |Spearman| of E_sᵀv, which must be lower than without the MLP layer; a step of ranks is more than 0.001."""
    falls = abs(value) - abs(without)
    return Measurement("|Spearman| of E_sᵀv, less that without the MLP layer", falls, high=-0.001, paper=theirs)


def _with_sign(tokens: pl.DataFrame) -> pl.DataFrame:
    """Values with the sign that correlates positively with the posterior difference over our own token types.

    With an MLP layer between, nothing ties the sign of E_sᵀv to the label.
    """
    along = np.corrcoef(tokens["posterior_difference"], tokens["value"])[0, 1]
    return tokens.with_columns(-pl.col("value")) if along < 0 else tokens


def _multi_class(bench: Bench) -> SeedRun:
    """Train on Yelp, bin the values of classes 2 and 4 by importance (table C), and take one gradient step at a large dimension."""
    split = bench.load("yelp")
    found = bench.fit(split, "yelp", bench.part(0, 0.8))
    measured: list[Measurement] = []
    tables = {"trajectory": found.trajectory}
    for k in (2, 4):
        theirs = PAPER[f"multi-class-{k}"]
        tokens, table = _by_importance(split[0], k, found.values[-1][:, k - 1], theirs, bench.settings["importance"])
        rank, beside = spearman(table["x"], table["value_mean"]), spearman(theirs["x"], theirs["value"])
        measured += beside_the_paper(table, "value", f"E_sᵀv_{k} with table C, class {k}", fewest=1)
        low, middle = _rank_under_noise(table)
        least = low if bench.settings["rank"] == "noise" else beside - 0.1
        measured.append(Measurement(f"class {k}: Spearman of E_sᵀv_{k} with the importance", rank, least, paper=beside))
        measured.append(Measurement(f"class {k}: median Spearman of a rising curve under our noise", middle))
        tables |= {f"bins-class-{k}": table, f"tokens-class-{k}": tokens}
    bench.tell("one step", 0.9)
    # the remainder of one step falls with the dimension, so the slope is read at a large one
    step = one_step(split[0], *bench.start(split[0], bench.settings["step_d"]), 1.0)
    slope = step.slope / step.expected_slope
    measured.append(Measurement("slope of E_sᵀv_k after one step, over the formula's", slope, 0.99, 1.01, paper=1.0))
    return SeedRun(tuple(measured), tables, bench.accuracies(found, "Yelp, 4 classes"))


def _by_importance(
    counts: Counts, k: int, value: Floats, theirs: pl.DataFrame, importance: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tokens, and bins of their importance for class k (from 1), in the units of the paper's row `theirs`.

    Importance is "relative", as fractions of the largest on each side of zero, or "without 1/T", mean_X (1[y = k] − 1/K) c_{X,s},
    of the types within the paper's bins. `value` is E_sᵀv_k, shape (|S|,).
    """
    relative = importance == "relative"
    if relative:
        x = _relative(signed_frequency(counts, counts.n_classes)[:, k - 1])
        theirs = theirs.with_columns(x=_relative(theirs["x"].to_numpy()))
    else:
        x = np.asarray(counts.matrix.T @ ((counts.labels == k - 1) - 1 / counts.n_classes)) / counts.n_documents
    tokens = pl.DataFrame({"token": [str(t) for t in counts.tokens], "importance": x, "value": value})
    return tokens, bins(tokens, "importance", theirs, beyond=relative)


def _relative(x: Floats) -> Floats:
    """Importance as a fraction of the largest on its side of zero."""
    return np.asarray(np.where(x < 0, x / -x.min(), x / x.max()))


def _rank_under_noise(table: pl.DataFrame) -> tuple[float, float]:
    """The 5% quantile and the median of Spearman over bins that a truly rising curve would show; nan where no bin has three types.

    The truth is taken to be the rising curve nearest to our bin means (isotonic regression weighted by types); a bin's mean gets
    a normal error of σ/√types, with σ pooled over the bins of at least three types, the fullest one (around zero) left out.
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


RUNS = {
    "two-layer": lambda bench: _on_both(bench, "two-layer"),
    "synthetic": _synthetic,
    "one-layer": lambda bench: _on_both(bench, "one-layer"),
    "key-query": _key_query,
    "mlp": _mlp,
    "multi-class": _multi_class,
}
