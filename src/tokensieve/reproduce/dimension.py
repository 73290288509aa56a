"""How the picture depends on the dimension d."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.model.embeddings import initialise
from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.measures import V_SHAPED, Measurement, shape_measurements
from tokensieve.reproduce.result import SeedRun
from tokensieve.theory.one_step import one_step


def run(bench: Bench) -> SeedRun:
    """The same training and the same first step at each dimension."""
    split = bench.load("imdb")
    sizes, least = bench.settings["dimensions"], bench.settings["from"]
    rows, tables = [], {}
    for k, d in enumerate(sizes):
        start = initialise(split[0].n_types, d, 1, bench.start_seed)
        training = bench.fit(split, f"d-{d}", bench.part(k / len(sizes), (k + 1) / len(sizes)), start)
        _, table = bench.read(split, training)
        value, score = shape_measurements(table, "IMDB")
        step = one_step(split[0], *start, 1.0)
        row = {"d": d, "value_spearman": value.value, "score_spearman": score.value}
        row |= {"test_accuracy": training.trajectory["test_accuracy"][training.best()]}
        rows.append(row | {"one_step_r2": step.r2, "relative_remainder": step.relative_remainder})
        tables[f"bins-{d}"] = table
    found = pl.DataFrame(rows)
    large = [row for row in rows if row["d"] >= least]
    fall = float(stats.linregress(np.log(found["d"].to_numpy()), np.log(found["relative_remainder"].to_numpy())).slope)
    measured = (
        Measurement(f"least Spearman of E_sᵀv for d ≥ {least}", min(r["value_spearman"] for r in large), 0.95),
        Measurement(f"least Spearman of E_sᵀp for d ≥ {least}", min(r["score_spearman"] for r in large), V_SHAPED),
        Measurement("exponent of d in the relative remainder of one step", fall, -0.6, -0.4),
    )
    ours = f"remainder of one step falls like d to the {fall:.2f}; Spearman of E_sᵀv, E_sᵀp: " + "; ".join(
        f"d = {r['d']}: {r['value_spearman']:.3f}, {r['score_spearman']:.3f}" for r in rows
    )
    shapes = found.unpivot(["value_spearman", "score_spearman", "test_accuracy"], index="d", variable_name="by")
    return SeedRun(ours, measured, {"dimensions": found, "shapes": shapes, **tables})
