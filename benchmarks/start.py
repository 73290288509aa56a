"""A quick start: the first `tokensieve demo` after installation beside the second, and the seconds before any work begins.

    python benchmarks/start.py [--before FOLDER] [--runs 3]

Cold is a copy of the source without byte code, and an empty folder for compiled kernels, as after an installation; warm is the same
copy again. --before names the source folder of another version (the one that holds the folder `tokensieve`), measured in the same
run, in turns. Seconds are those of the clock; those of the processor, which a busy machine disturbs less, stand in brackets.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from machine import described, store

HERE = Path(__file__).resolve().parents[1] / "src"
Times = list[tuple[float, float]]


def timed(command: Sequence[str], source: Path, kernels: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a process that imports tokensieve from `source` and keeps compiled kernels in `kernels`."""
    settings = os.environ | {
        "PYTHONPATH": str(source),
        "NUMBA_CACHE_DIR": str(kernels),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run([sys.executable, *command], env=settings, check=True, stdout=subprocess.DEVNULL)
    wall, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def demos(name: str, source: Path, runs: int, folder: Path) -> tuple[Times, Times]:
    """Times of cold and of warm demos."""
    cold, warm = [], []
    for run in range(runs):
        copy, kernels = folder / f"{name}-{run}", folder / f"{name}-{run}-kernels"
        shutil.copytree(
            source / "tokensieve", copy / "tokensieve", ignore=shutil.ignore_patterns("__pycache__")
        )
        command = ("-m", "tokensieve", "demo", "-q", "--out", str(folder / "demo"))
        cold.append(timed(command, copy, kernels))
        warm.append(timed(command, copy, kernels))
    return cold, warm


def middle(times: Times) -> tuple[float, float]:
    """Medians of both clocks."""
    wall, processor = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(processor)


def main() -> None:
    """Measure, print both tables, and keep their figures in results/start.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="source of another version")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    figures: dict[str, dict[str, Times | tuple[float, float]]] = {}
    sides = {"now": HERE} | ({"before": options.before.resolve()} if options.before else {})
    print(described("numba", "polars", "scikit-learn") + "\n")
    print("| | first demo, s | second demo, s | ratio |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, source in sides.items():
            demo = demos(name, source, options.runs, folder)
            figures[f"demo, {name}"] = dict(zip(("first", "second"), demo, strict=True))
            cold, warm = map(middle, demo)
            ratio = f"{cold[0] / warm[0]:.2f} ({cold[1] / warm[1]:.2f})"
            print(
                f"| {name} | {cold[0]:.1f} ({cold[1]:.1f}) | {warm[0]:.1f} ({warm[1]:.1f}) | {ratio} |",
                flush=True,
            )
        table = folder / "reviews.csv"
        write = "import sys; from tokensieve import demo_reviews as made; import polars as pl; r = made(200); "
        write += "pl.DataFrame({'text': r.texts, 'label': r.labels}).write_csv(sys.argv[1])"
        timed(("-c", write, str(table)), HERE, folder / "kernels")
        starts = {
            "python alone": ("-c", "pass"),
            "import tokensieve": ("-c", "import tokensieve"),
            "tokensieve --help": ("-m", "tokensieve", "--help"),
            "train, 200 short reviews": (
                "-m",
                "tokensieve",
                "train",
                str(table),
                "-q",
                "--out",
                str(folder / "model"),
            ),
        }
        print(f"\n| | {' | '.join(f'{name}, s' for name in sides)} |\n|---|{'---|' * len(sides)}")
        for what, command in starts.items():
            times: dict[str, Times] = {name: [] for name in sides}
            for run in range(options.runs + 1):
                for name, source in sides.items():
                    found = timed(command, source, folder / f"{name}-kernels")
                    times[name] += [found] if run else []  # the first fills the caches
            figures[what] = {name: middle(of) for name, of in times.items()}
            cells = (middle(of) for of in times.values())
            print(
                f"| {what} | {' | '.join(f'{wall:.2f} ({cpu:.2f})' for wall, cpu in cells)} |",
                flush=True,
            )
    store("start", figures, described("numba", "polars"))


if __name__ == "__main__":
    main()
