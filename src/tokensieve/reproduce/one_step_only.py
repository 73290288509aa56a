"""Embeddings after a single gradient step, then only p and v trained: the spread within bins."""

from __future__ import annotations

import polars as pl

from tokensieve.model.embeddings import Start, Training, initialise
from tokensieve.progress import Progress
from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.measures import SYMBOLS, Measurement, spread_and_range
from tokensieve.reproduce.result import SeedRun
from tokensieve.theory.one_step import one_step


def run(bench: Bench) -> SeedRun:
    """Full training, then one step of each size followed by p and v alone."""
    split = bench.load("imdb")
    etas = bench.settings["etas"]
    part = 1 / (len(etas) + 1)
    full = bench.fit(split, "full", bench.part(0, part), frozen=())
    tokens, table = bench.read(split, full)
    rows, runs = [], []
    for k, eta in enumerate(etas):
        training = _after_one_step(bench, split, eta, bench.part((k + 1) * part, (k + 2) * part))
        best = training.trajectory.row(training.best(), named=True)
        row = {"eta": eta, "validation_loss": best["validation_loss"], "test_accuracy": best["test_accuracy"]}
        _, after = bench.read(split, training)
        for of in SYMBOLS:
            (before_spread, before_range), (spread, width) = (spread_and_range(t, of) for t in (table, after))
            row[f"falls_{of}"] = before_spread / spread
            row[f"rises_{of}_per_range"] = (spread / width) / (before_spread / before_range)
        rows.append(row)
        runs.append(training)
    best_size = int(pl.DataFrame(rows)["validation_loss"].arg_min() or 0)
    chosen = rows[best_size]
    measured: list[Measurement] = []
    for of, theirs in (("value", 8.0), ("score", 6.0)):
        name = f"the spread of {SYMBOLS[of]} within bins"
        measured.append(Measurement(f"{name} falls by a factor", chosen[f"falls_{of}"], theirs / 2, theirs * 2, theirs))
        rises = chosen[f"rises_{of}_per_range"]
        name += ", as a fraction of the range of the means, rises by a factor"
        measured.append(Measurement(name, rises, prominent=True))
    ours = (
        f"the spread within bins falls {chosen['falls_value']:.1f} times (E_sᵀv) and {chosen['falls_score']:.1f} times (E_sᵀp) "
        f"at η₀ = {chosen['eta']:g}; as a fraction of the range of the bin means it rises "
        f"{chosen['rises_value_per_range']:.1f} and {chosen['rises_score_per_range']:.1f} times, because the means shrink faster"
    )
    one_tokens, one_table = bench.read(split, runs[best_size])
    tables = {"bins": one_table, "tokens": one_tokens, "bins-full": table, "tokens-full": tokens}
    accuracy = (*bench.accuracies(full, "all trained"), *bench.accuracies(runs[best_size], "after one step"))
    return SeedRun(ours, tuple(measured), tables | {"sizes": pl.DataFrame(rows)}, accuracy)


def _after_one_step(bench: Bench, split: Split, eta: float, tell: Progress) -> Training:
    """E¹ from one full-batch step of size η, then p and v alone."""
    start = initialise(split[0].n_types, bench.settings["d"], 1, bench.start_seed)
    moved = Start(one_step(split[0], *start, eta).embeddings(), start.p, start.v)
    return bench.fit(split, f"eta-{eta:g}", tell, moved, frozen=("E",))
