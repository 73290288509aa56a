"""This version beside the last release:

seconds of what users run, side by side, and a failure where something became slower.

    python benchmarks/release.py [--base REF] [--runs 3] [--only NAME …] [--most 1.15]

(or: make bench; --name NAME for another file)

The release is checked out into a temporary folder; the same Python runs both, in turns, each
command in a process of its own after one that is not counted (it compiles). The ratio is that of
the medians. The exit status is 1 where a ratio exceeds 1.15. Figures go to
benchmarks/results/release.json (--name). Data: see machine.py.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from machine import BYTE_CODE, DATA, described, store

ROOT = Path(__file__).resolve().parents[1]
IMDB = [str(DATA / "imdb_train.parquet"), "--test", str(DATA / "imdb_test.parquet")]
SNLI = [
    str(DATA / "snli_train.parquet"),
    "--test",
    str(DATA / "snli_test.parquet"),
    "--text",
    "hypothesis",
]
JOBS: dict[str, list[str]] = {
    "help": ["--help"],
    "train IMDB, words": ["train", *IMDB, "--ngrams", "1", "--out", "OUT/model", "-q"],
    "train IMDB, bigrams": ["train", *IMDB, "--ngrams", "2", "--out", "OUT/model", "-q"],
    "train IMDB, trigrams": ["train", *IMDB, "--ngrams", "3", "--out", "OUT/model", "-q"],
    "train banking (short texts, 77 classes)": [
        "train",
        str(DATA / "banking.parquet"),
        "--out",
        "OUT/model",
        "-q",
    ],
    "train SNLI, one column": ["train", *SNLI, "--out", "OUT/model", "-q"],
    "train SNLI, two columns": ["train", *SNLI, "--text", "premise", "--out", "OUT/model", "-q"],
    "audit 2,000 reviews": ["audit", "OUT/reviews.parquet", "--out", "OUT/audit", "-q"],
    "audit IMDB, bigrams": ["audit", *IMDB, "--ngrams", "2", "--out", "OUT/audit", "-q"],
    "reproduce synthetic": [
        "reproduce",
        "synthetic",
        "--seeds",
        "1",
        "--out",
        "OUT/reproduce",
        "-q",
    ],
}


def seconds(source: Path, arguments: list[str]) -> float:
    """Wall time of one command with the package in `source`."""
    with tempfile.TemporaryDirectory() as folder:
        train = pl.read_parquet(DATA / "imdb_train.parquet")
        train.gather_every(max(1, train.height // 2000)).head(2000).write_parquet(
            f"{folder}/reviews.parquet"
        )
        command = [argument.replace("OUT", folder) for argument in arguments]
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "tokensieve", *command],
            env=os.environ | BYTE_CODE | {"PYTHONPATH": str(source)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base",
        help="a tag or commit; the last tag, or where the version was set to 0.2, if not given",
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS), metavar="NAME")
    parser.add_argument("--most", type=float, default=1.15, help="the largest ratio that passes")
    parser.add_argument("--name", default="release", help="of the file in results/")
    options = parser.parse_args()
    base = options.base or _last_release()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "release"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "-q", "--detach", str(there), base],
            check=True,
        )
        try:
            print(f"{described('polars', 'numba')}; base {base}\n")
            print("| command | release | this version | ratio |\n|---|---|---|---|", flush=True)
            for name in options.only:
                sides: dict[str, list[float]] = {"release": [], "head": []}
                for run in range(options.runs + 1):
                    for side, source in (("release", there / "src"), ("head", ROOT / "src")):
                        taken = seconds(source, JOBS[name])
                        if run:
                            sides[side].append(taken)
                before, after = (statistics.median(sides[side]) for side in ("release", "head"))
                spread = " | ".join(
                    f"{statistics.median(s):.2f} s ({min(s):.2f} … {max(s):.2f})"
                    for s in sides.values()
                )
                print(f"| {name} | {spread} | {after / before:.2f} |", flush=True)
                rows.append({"command": name, **sides, "ratio": after / before})
        finally:
            subprocess.run(
                ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(there)], check=True
            )
    store(
        options.name,
        {"base": base, "rows": rows, "gigabytes": _children_peak()},
        described("polars", "numba"),
    )
    slower = [row["command"] for row in rows if row["ratio"] > options.most]
    if slower:
        print(f"\nslower than {options.most:.2f} times the release: {', '.join(slower)}")
    return 1 if slower else 0


def _last_release() -> str:
    """The last tag, or else the commit that is named after a version."""
    tag = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--tags", "--abbrev=0"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if tag:
        return tag
    log = ["git", "-C", str(ROOT), "log", "-1", "--format=%H", "--grep=^Version [0-9]"]
    return subprocess.run(log, capture_output=True, text=True, check=True).stdout.strip()


def _children_peak() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


if __name__ == "__main__":
    sys.exit(main())
