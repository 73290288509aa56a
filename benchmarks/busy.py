"""What other work on the machine costs training: seconds with one thread and with all, alone and beside competing processes.

    python benchmarks/busy.py [--documents 5000] [--runs 3]

`tokensieve train` of IMDB trigrams in a process of its own, as a user would start it; a competing process multiplies numbers
without end on one core. Each figure is the median of alternating runs. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from machine import DATA, described

COMPETITOR = "while True:\n    sum(i * i for i in range(10**6))"
THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


def seconds(reviews: Path, threads: int, out: Path) -> float:
    """Wall time of one training."""
    command = [
        sys.executable,
        "-m",
        "tokensieve",
        "train",
        str(reviews),
        "--ngrams",
        "3",
        "--out",
        str(out),
        "-q",
    ]
    start = time.perf_counter()
    subprocess.run(command, check=True, env=os.environ | dict.fromkeys(THREADS, str(threads)))
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    cores = os.cpu_count() or 1
    print(described(), end="\n\n")
    with tempfile.TemporaryDirectory() as folder:
        reviews, out = Path(folder) / "reviews.parquet", Path(folder) / "model"
        pl.read_parquet(DATA / "imdb_train.parquet").sample(args.documents, seed=0).write_parquet(
            reviews
        )
        seconds(reviews, cores, out)  # compiled once
        print("| Competing processes | 1 thread | all threads | ratio |\n|---|---|---|---|")
        for others in range(cores + 1):
            competing = [
                subprocess.Popen([sys.executable, "-c", COMPETITOR]) for _ in range(others)
            ]
            try:
                found = [
                    (seconds(reviews, 1, out), seconds(reviews, cores, out))
                    for _ in range(args.runs)
                ]
            finally:
                for one in competing:
                    one.kill()
            one_thread, all_threads = (statistics.median(side) for side in zip(*found, strict=True))
            print(
                f"| {others} | {one_thread:.1f} s | {all_threads:.1f} s | {all_threads / one_thread:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
