"""Ten reference runs: show that a change of the code changed no result.

    python benchmarks/reference.py FOLDER [--only NAME …]     run, and write the results to FOLDER
    python benchmarks/reference.py FOLDER --against OTHER     also compare them with an earlier
                                                              folder, byte by byte

It is for steps that are meant to change nothing, between two commits of one version: a function is
rewritten, a file is divided. Versions are not compared with it: from one to the next, scores,
findings and files change on purpose (CHANGELOG.md), and `benchmarks/release.py` measures what they
are worth.

A run's folder keeps what a user relies on: the tables, `findings.json`, `summary.json`, the model,
and the page. Times, the version and the paths of the machine are taken out. The package
is imported from PYTHONPATH, so the same script runs two checkouts:

    git worktree add ../before HEAD~1
    PYTHONPATH=../before/src python benchmarks/reference.py /tmp/before
    PYTHONPATH=src python benchmarks/reference.py /tmp/after --against /tmp/before

Data: see machine.py.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

import tokensieve
from machine import DATA

IMDB = [str(DATA / "imdb_train.parquet"), "--test", str(DATA / "imdb_test.parquet")]
SNLI = [str(DATA / "snli_train.parquet"), "--test", str(DATA / "snli_test.parquet")]

# Each run is a list of commands; OUT is the folder whose files are compared. Inputs that a run
# needs are written to the same folder first (`write_inputs`).
RUNS: dict[str, list[list[str]]] = {
    "imdb": [["audit", *IMDB, "--ngrams", "2", "--out", "OUT"]],
    "snli": [["audit", *SNLI, "--text", "premise", "--text", "hypothesis", "--out", "OUT"]],
    "banking": [["audit", str(DATA / "banking.parquet"), "--text", "text", "--label", "label"]],
    "preferences": [
        ["audit", str(DATA / "preferences.parquet"), "--pairs", "chosen,rejected", "--by", "prompt"]
    ],
    "labels": [["audit", "several.jsonl"]],
    "compare": [
        ["audit", "reviews.parquet", "--text", "text", "--label", "label", "--out", "first"],
        [
            "mask",
            "reviews.parquet",
            "--text",
            "text",
            "--token",
            "worst",
            "--out",
            "masked.parquet",
        ],
        ["audit", "masked.parquet", "--text", "text", "--label", "label", "--out", "second"],
        ["compare", "first", "second", "--out", "OUT"],
    ],
    "mask": [
        ["mask", "reviews.parquet", "--text", "text", "--token", "the plot", "--out", "OUT/m.csv"]
    ],
    "verify": [
        ["verify", "few.parquet", "--text", "text", "--label", "label", "--out", "OUT"],
    ],
    "diagnose": [
        ["diagnose", "model", "demo.csv", "--text", "text", "--label", "label", "--out", "OUT"]
    ],
    "reproduce": [["reproduce", "synthetic", "--seeds", "1", "--jobs", "1", "--out", "OUT"]],
}
SKIPPED_SUFFIXES = {".png", ".svg", ".jpg", ".pdf"}
SKIPPED_NAMES = {"SHA256SUMS"}  # also of files with times
PAGES_WITH_TIMES = {"verify", "reproduce"}  # their tables of seconds are data of the page
TIMES = re.compile(r'"(?:seconds|megabytes|this_run_seconds)": *(?:\{[^{}]*\}|"?[0-9.e+-]+"?)')
VERSION = re.compile(r"\b0\.[34]\.0(?:\.dev\d+)?\b")


def write_inputs(run: str, folder: Path) -> None:
    """Write the files that a run's commands read."""
    if run in ("compare", "mask", "verify"):
        reviews = pl.read_parquet(DATA / "imdb_train.parquet").gather_every(12).head(2000)
        reviews.write_parquet(folder / "reviews.parquet")
        reviews.gather_every(10).write_parquet(folder / "few.parquet")
    if run == "labels":
        tweets = pl.read_parquet(DATA / "emotion.parquet").head(2000)
        rows = [
            {"text": text, "labels": [label, "long" if len(text) > 90 else "short"]}
            for text, label in zip(tweets["text"], tweets["label"], strict=True)
        ]
        lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (folder / "several.jsonl").write_text(lines, encoding="utf-8")
    if run == "diagnose":
        write_transformer(folder)


def write_transformer(folder: Path) -> None:
    """Train a tiny BERT on generated reviews and write it with other reviews that judge it."""
    # the tests beside the package that runs: those of another version import other modules
    sys.path.insert(0, str(Path(tokensieve.__file__).resolve().parents[2] / "tests"))
    import torch

    import diagnose_models  # of the tests

    torch.set_num_threads(1)  # sums in another order would train another model
    train = tokensieve.demo_reviews(600, seed=1)
    texts = train.texts.to_list()
    model, tokenizer = diagnose_models.build("bert", texts)
    diagnose_models.fit(model, tokenizer, texts, train.labels, epochs=2)
    names = {0: "negative", 1: "positive"}
    diagnose_models.save(model, tokenizer, folder / "model", names)
    held_out = tokensieve.demo_reviews(300, seed=2)
    labels = [names[int(label)] for label in held_out.labels]
    pl.DataFrame({"text": held_out.texts, "label": labels}).write_csv(folder / "demo.csv")


def normalised(path: Path, root: str) -> bytes:
    """The content of a result without times, version, and the folder it was made in."""
    content = path.read_bytes()
    if path.suffix not in (".json", ".csv", ".html", ".md"):
        return content
    text = content.decode("utf-8")
    text = TIMES.sub('"seconds": 0', text)
    return VERSION.sub("VERSION", text.replace(root, "ROOT")).encode()


def is_compared(run: str, path: Path) -> bool:
    """Whether a file of a run is the same each time, apart from what `normalised` takes out."""
    if run in PAGES_WITH_TIMES and path.suffix == ".html":
        return False
    return path.suffix not in SKIPPED_SUFFIXES and path.name not in SKIPPED_NAMES


def run_all(target: Path, names: list[str]) -> None:
    """Run the commands of each name in a folder of its own and keep its normalised results."""
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_inputs(name, folder)
            for command in RUNS[name]:
                arguments = list(command) if "--out" in command else [*command, "--out", "OUT"]
                subprocess.run(
                    [sys.executable, "-m", "tokensieve", *arguments, "--quiet"],
                    cwd=folder,
                    check=True,
                )
            shutil.rmtree(target / name, ignore_errors=True)
            for path in sorted((folder / "OUT").rglob("*")):
                if path.is_file() and is_compared(name, path):
                    kept = target / name / path.relative_to(folder / "OUT")
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_bytes(normalised(path, temporary))
        print(f"{name}: done", flush=True)


def compare_folders(one: Path, other: Path, names: list[str]) -> list[str]:
    """Names of the files that differ or that only one of the folders has."""
    differing = []
    for name in names:
        files = {
            path.relative_to(side) for side in (one, other) for path in (side / name).rglob("*.*")
        }
        for file in sorted(files):
            both = (one / file).exists() and (other / file).exists()
            if not (both and filecmp.cmp(one / file, other / file, shallow=False)):
                differing.append(str(file))
    return differing


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS), metavar="NAME")
    parser.add_argument("--against", type=Path, help="an earlier folder to compare with")
    options = parser.parse_args()
    run_all(options.folder, options.only)
    if options.against is None:
        return 0
    differing = compare_folders(options.folder, options.against, options.only)
    print("\n".join(["these files differ:", *differing]) if differing else "all files are equal")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
