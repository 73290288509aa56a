"""How long an audit takes, for docs/benchmarks.md.

    python benchmarks/profile_audit.py [--runs 3]

Runs `tokensieve audit` on 2,000 reviews and on all of IMDB, with words and with bigrams, each in a process of its own, and
reads the seconds of each stage from its summary.json; then the large one on one core and on all. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from machine import BYTE_CODE, DATA, described, store

HEAD = """Medians of {runs} runs in seconds, from the file to the finished folder, each in a
process of its own. {machine}. Load while it ran: {load:.1f} processes on {cores} cores.
"""


def run(source: Path, ngrams: int, threads: int | None) -> dict[str, Any]:
    """Seconds by stage, peak memory, and a hash of the token table."""
    env = os.environ | BYTE_CODE
    if threads:
        names = (
            "POLARS_MAX_THREADS",
            "NUMBA_NUM_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
        )
        env |= dict.fromkeys(names, str(threads))
    command = [
        sys.executable,
        "-m",
        "tokensieve",
        "audit",
        str(source),
        "--ngrams",
        str(ngrams),
        "-q",
    ]
    if threads and hasattr(os, "sched_setaffinity"):
        command = ["taskset", "-c", f"0-{threads - 1}", *command]
    if source.name == "imdb_train.parquet":
        command += ["--test", str(DATA / "imdb_test.parquet")]
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        child = subprocess.Popen([*command, "--out", folder], env=env)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"failed: {' '.join(command)}")
        seconds = time.perf_counter() - begun
        stages = json.loads(Path(folder, "summary.json").read_text())["seconds"]
        digest = hashlib.sha256(Path(folder, "tokens.csv").read_bytes()).hexdigest()[:12]
    stages = {name: s for name, s in stages.items() if name != "total"}
    stages["start and end"] = seconds - sum(stages.values())
    return {
        "seconds": seconds,
        "stages": stages,
        "gigabytes": usage.ru_maxrss / 1e6,
        "tokens.csv": digest,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "reviews.parquet"
        train = pl.read_parquet(DATA / "imdb_train.parquet")
        train.gather_every(max(1, train.height // 2000)).head(2000).write_parquet(small)
        large = DATA / "imdb_train.parquet"
        cases: dict[str, tuple[Path, int, int | None]] = {
            "2,000 reviews, words": (small, 1, None),
            "IMDB, words": (large, 1, None),
            "IMDB, bigrams": (large, 2, None),
            **{
                f"IMDB, bigrams, {n} core{'s' * (n > 1)}": (large, 2, n)
                for n in sorted({1, 2, cores})
                if n <= cores
            },
        }
        found = {name: [run(*case) for _ in range(options.runs)] for name, case in cases.items()}
    machine, load = described("polars", "numba", "scikit-learn"), os.getloadavg()[1]
    store("profile-audit", found, machine)
    first = [name for name in found if "core" not in name]
    rest = [name for name in found if "core" in name]
    text = HEAD.format(runs=options.runs, machine=machine, load=load, cores=cores)
    text += "\n" + _table(found, first) + "\n" + _table(found, rest)
    print(text)


def _table(found: dict[str, list[dict[str, Any]]], names: list[str]) -> str:
    """A row per stage, a column per case, the longest stage first."""
    stages = {stage: 0.0 for name in names for stage in found[name][0]["stages"]}
    cells = {
        name: {
            stage: statistics.median(run["stages"].get(stage, 0.0) for run in found[name])
            for stage in stages
        }
        for name in names
    }
    order = sorted(stages, key=lambda stage: -cells[names[-1]][stage])
    lines = [f"| stage | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [
        f"| {stage} | {' | '.join(f'{cells[name][stage]:.2f}' for name in names)} |"
        for stage in order
    ]
    whole = " | ".join(
        f"**{statistics.median(run['seconds'] for run in found[name]):.1f}**" for name in names
    )
    memory = " | ".join(f"{max(run['gigabytes'] for run in found[name]):.2f}" for name in names)
    hashes = " | ".join(
        "/".join(sorted({run["tokens.csv"] for run in found[name]})) for name in names
    )
    return "\n".join(
        [
            *lines,
            f"| **all** | {whole} |",
            f"| peak memory, GB | {memory} |",
            f"| hash of tokens.csv | {hashes} |",
            "",
        ]
    )


if __name__ == "__main__":
    main()
