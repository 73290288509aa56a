"""How much of an outcome is rounding: the same experiment and seed ten times, with sums taken in other orders.

    python benchmarks/restarts.py [EXPERIMENT …] [--scale quick|paper] [--seed 0] [--restarts 10]

Only the size of the chunks in which documents are trained changes, and with it the order of summation; every formula, draw and
document stays. Prints, for each figure that decides the verdict, its range and in how many restarts it meets the criterion, and
keeps them in benchmarks/results/restarts.json. Restarts that are there already are taken over. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from machine import DATA, described, store
from tokensieve.progress import silent
from tokensieve.theory.experiments import deep
from tokensieve.theory.experiments.bench import Bench, Data
from tokensieve.theory.experiments.experiment import Experiment

RESULTS = Path(__file__).resolve().parent / "results" / "restarts.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", nargs="*", default=["two-layer", "key-query", "mlp"])
    parser.add_argument("--scale", choices=("quick", "paper"), default="quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=10)
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else []
    data = Data(DATA)
    for experiment in Experiment.select(options.experiments):
        for k in range(options.restarts):
            where = {
                "experiment": experiment.id,
                "scale": options.scale,
                "seed": options.seed,
                "restart": k,
            }
            if any(where.items() <= one.items() for one in kept):
                continue
            deep.CPU_BUDGET = 2**19 - 2**13 * k
            if (
                experiment.id == "mlp"
            ):  # its chunks are small: a batch is one chunk unless the budget is, too
                deep.CPU_BUDGET = 2**15 - 2**11 * k
            begun = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                bench = Bench(
                    data, experiment.settings[options.scale], options.seed, silent, Path(folder)
                )
                found = experiment.run(bench)
            figures = {
                one.name: (one.value, one.passed) for one in found.measurements if one.has_bounds
            }
            kept.append(
                where
                | {
                    "passed": found.passed,
                    "seconds": time.perf_counter() - begun,
                    "figures": figures,
                }
            )
            store("restarts", kept, described("torch"))
        rows = [
            one
            for one in kept
            if one["experiment"] == experiment.id and one["scale"] == options.scale
        ]
        rows = [one for one in rows if one["seed"] == options.seed]
        print(
            f"{experiment.id}, {options.scale}, seed {options.seed}: {sum(r['passed'] for r in rows)} of {len(rows)} meet all"
        )
        for name in rows[0]["figures"]:
            values = [one["figures"][name][0] for one in rows]
            met = sum(one["figures"][name][1] for one in rows)
            print(
                f"  {name}: {min(values):.3f} to {max(values):.3f}, {met} of {len(rows)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
