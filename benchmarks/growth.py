"""How time and memory of an audit grow with the documents and with the classes, stage by stage.

    python benchmarks/growth.py run [--minutes 14] [--documents 1000 10000 100000] [--classes 2 …]
    python benchmarks/growth.py table

The documents are pieces of 60 words of the IMDB reviews, about 190,000 of them. The class of a
piece is the rarest of so many words of medium frequency that it contains (a piece that contains
none is left out), so that any number of classes can be asked for and each has something to learn.

Each size is audited in a process of its own, with stages.py. `table` prints, for each stage, the
seconds of all processors at each size, and the exponent between the last two sizes, log(ratio of
the seconds) / log(ratio of the sizes); stages below a second are too short for one. Called again,
`run` goes on with the sizes that benchmarks/results/growth.json lacks. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from machine import BYTE_CODE, DATA, described, store

NAME = "growth"
RESULTS = Path(__file__).with_name("results") / f"{NAME}.json"
WORDS_OF_PIECE = 60
FIRST_WORD = 200  # in the order of frequency; more frequent ones stand in most pieces
BASE_DOCUMENTS = 10_000  # where classes vary
BASE_CLASSES = 2  # where documents vary
MIN_SECONDS = 1.0  # of a stage that has an exponent


def pieces() -> list[list[str]]:
    """All reviews, cut into runs of words."""
    cut = []
    for name in ("imdb_train", "imdb_test"):
        for text in pl.read_parquet(DATA / f"{name}.parquet")["text"]:
            words = text.split(" ")
            starts = range(0, len(words) - WORDS_OF_PIECE + 1, WORDS_OF_PIECE)
            cut += [words[start : start + WORDS_OF_PIECE] for start in starts]
    return cut


def labelled(all_pieces: list[list[str]], n_documents: int, n_classes: int) -> pl.DataFrame:
    """So many pieces, evenly spread, each with its class."""
    frequency = Counter(
        word for piece in all_pieces for word in set(piece) if re.fullmatch("[a-z]+", word)
    )
    in_order = [word for word, _ in frequency.most_common(FIRST_WORD + n_classes)]
    class_words = set(in_order[FIRST_WORD:])
    texts = []
    labels = []
    for piece in all_pieces:
        own = [word for word in piece if word in class_words]
        if own:
            texts.append(" ".join(piece))
            labels.append(min(own, key=lambda word: (frequency[word], word)))
    if len(texts) < n_documents:
        raise SystemExit(f"{n_classes} classes have {len(texts):,} pieces only")
    table = pl.DataFrame({"text": texts, "label": labels})
    return table.gather_every(len(texts) // n_documents).head(n_documents)


def audited(table: pl.DataFrame) -> dict[str, Any]:
    """What stages.py measures of an audit."""
    with tempfile.TemporaryDirectory() as folder:
        source = f"{folder}/documents.parquet"
        table.write_parquet(source)
        script = str(Path(__file__).with_name("stages.py"))
        command = [sys.executable, script, "--name", f"{folder}/stages", "audit", source]
        subprocess.run(
            [*command, "--out", f"{folder}/audit", "-q"],
            env=os.environ | BYTE_CODE,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        figures: dict[str, Any] = json.loads(Path(f"{folder}/stages.json").read_text())["figures"]
    seconds = {stage["name"]: stage["cpu"] for stage in figures["stages"]}
    return {"seconds": seconds, "gigabytes": figures["largest"]}


def run(options: argparse.Namespace) -> None:
    """Audit the sizes that are lacking, the smallest first, while there is time."""
    end = time.monotonic() + 60 * options.minutes
    figures: dict[str, Any] = {}
    if RESULTS.exists():
        figures = json.loads(RESULTS.read_text())["figures"]
    sizes = [(n, BASE_CLASSES) for n in options.documents]
    sizes += [(BASE_DOCUMENTS, n) for n in options.classes]
    all_pieces = pieces()
    for n_documents, n_classes in sorted(set(sizes), key=lambda size: size[0] * size[1]):
        key = f"{n_documents} {n_classes}"
        if key in figures or time.monotonic() > end:
            continue
        figures[key] = audited(labelled(all_pieces, n_documents, n_classes))
        store(NAME, figures, described("polars", "numba"))
        total = sum(figures[key]["seconds"].values())
        print(f"{key}: {total:.1f} CPU s, {figures[key]['gigabytes']:.2f} GB", flush=True)


def exponent(before: float, after: float, ratio: float) -> str:
    """log(after / before) / log(ratio), where both are large enough to tell."""
    if min(before, after) < MIN_SECONDS:
        return ""
    return f"{math.log(after / before) / math.log(ratio):.2f}"


def table(options: argparse.Namespace) -> None:
    """A table for the documents and one for the classes."""
    stored = json.loads(RESULTS.read_text())
    figures = stored["figures"]
    print(f"{stored['machine']}\n")
    by_documents = {n: f"{n} {BASE_CLASSES}" for n in options.documents}
    by_classes = {n: f"{BASE_DOCUMENTS} {n}" for n in options.classes}
    for what, key_of in (("documents", by_documents), ("classes", by_classes)):
        sizes = [size for size in sorted(key_of) if key_of[size] in figures]
        if len(sizes) < 2:
            continue
        runs = [figures[key_of[size]] for size in sizes]
        ratio = sizes[-1] / sizes[-2]
        print(f"| {what} | {' | '.join(f'{size:,}' for size in sizes)} | exponent |")
        print("|---" * (len(sizes) + 2) + "|")
        for stage in runs[-1]["seconds"]:
            seconds = [run["seconds"].get(stage, 0.0) for run in runs]
            cells = " | ".join(f"{one:.1f} s" for one in seconds)
            print(f"| {stage} | {cells} | {exponent(seconds[-2], seconds[-1], ratio)} |")
        totals = [sum(run["seconds"].values()) for run in runs]
        cells = " | ".join(f"{one:.1f} s" for one in totals)
        print(f"| all | {cells} | {exponent(totals[-2], totals[-1], ratio)} |")
        memory = [run["gigabytes"] for run in runs]
        growth = math.log(memory[-1] / memory[-2]) / math.log(ratio)
        cells = " | ".join(f"{one:.2f} GB" for one in memory)
        print(f"| largest memory | {cells} | {growth:.2f} |\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--minutes", type=float, default=14.0, help="begin no size after them")
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 20, 200])
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
