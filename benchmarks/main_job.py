"""The figures of the main job, ours and what a user would pick instead, side by side in one run.

    python benchmarks/main_job.py tokens     reading text into counts, against scikit-learn's
                                             CountVectorizer
    python benchmarks/main_job.py rules      accuracy with the word rule of 0.2 and with that of
                                             0.3, on the same documents
    python benchmarks/main_job.py audit      `tokensieve audit` of all of IMDB with bigrams:
                                             seconds, peak memory, page size

Data: see machine.py. Every figure is measured when it is printed; runs of the two sides alternate,
and medians are shown.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from machine import DATA, described
from peers import TASKS, load
from tokensieve.text.patterns import UNSPACED
from tokensieve.text.vocabulary import count_texts

LETTER = rf"[\w--{UNSPACED}]"
OLD_WORD = (  # the rule of 0.2
    rf"{LETTER}+(?:['’]{LETTER}+)*|{UNSPACED}[\p{{M}}\x{{200C}}\x{{200D}}]*"
    r"|\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\x{FE0F}|\x{200D}\p{Extended_Pictographic})*|\p{Regional_Indicator}{2}"
)


def alternate(sides: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Median seconds of each side, the sides taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(s) for name, s in seconds.items()}


def imdb(part: str) -> pl.DataFrame:
    return pl.read_parquet(DATA / f"imdb_{part}.parquet")


def tokens(runs: int) -> None:
    """25,000 + 25,000 reviews into counts: vocabulary from the first, both counted."""
    from sklearn.feature_extraction.text import CountVectorizer

    train, test = imdb("train")["text"], imdb("test")["text"]

    def ours(n: int) -> None:
        count_texts(test, count_texts(train, ngrams=n, min_documents=2).vocabulary)

    def theirs(n: int) -> None:
        vectorizer = CountVectorizer(
            ngram_range=(1, n), min_df=2, token_pattern=r"(?u)\w+(?:['’]\w+)*"
        )
        vectorizer.fit_transform(train.to_list())
        vectorizer.transform(test.to_list())

    print("| features | tokensieve | CountVectorizer | ratio |\n|---|---|---|---|")
    for n, name in ((1, "words"), (2, "words + bigrams")):
        m = alternate({"ours": lambda n=n: ours(n), "theirs": lambda n=n: theirs(n)}, runs)
        print(
            f"| {name} | {m['ours']:.1f} s | {m['theirs']:.1f} s | {m['theirs'] / m['ours']:.1f} |"
        )


def datasets() -> Iterator[tuple[str, int, pl.DataFrame, pl.DataFrame]]:
    """Name, longest n-gram, training and test documents (text, label):

    the nine rows of peers.py and five other sets.
    """

    def cut(
        frame: pl.DataFrame, name: str, last: str
    ) -> tuple[str, int, pl.DataFrame, pl.DataFrame]:
        return name, 1, frame.filter(pl.col("split") != last), frame.filter(pl.col("split") == last)

    for task, name in TASKS.items():
        for n in (1, 2, 3):
            yield f"{name}, {n}", n, *load(task)
    snli = [
        pl.read_parquet(DATA / f"snli_{part}.parquet").rename({"hypothesis": "text"})
        for part in ("train", "test")
    ]
    yield "SNLI, hypotheses", 1, *snli
    for name in ("emotion", "banking", "tweets", "sms"):
        frame = pl.read_parquet(DATA / f"{name}.parquet")
        if "split" not in frame.columns:
            fifth = pl.int_range(pl.len()).shuffle(seed=1) < pl.len() // 5
            frame = frame.with_columns(
                split=pl.when(fifth).then(pl.lit("test")).otherwise(pl.lit("train"))
            )
        yield cut(frame, name, "test")


def rules(runs: int) -> None:
    """Fitted on nine tenths of the training documents; the last tenth is for the choice of the
    default.
    """
    del runs
    from tokensieve import AttentionClassifier, WordTokenizer

    old = WordTokenizer(pattern=OLD_WORD, html="keep")  # HTML was text like any other
    print(
        "| data | validation 0.2 | 0.3 | test 0.2 | 0.3 | difference (95% interval) "
        "|\n|---|---|---|---|---|---|",
        flush=True,
    )
    for name, n, train, test in datasets():
        last = (
            pl.Series(np.random.default_rng(0).permutation(len(train))) < len(train) // 10
        ).rename("last")
        fitted, held = train.filter(~last), train.filter(last)
        right = []
        for tokenizer in (old, WordTokenizer()):
            model = AttentionClassifier(ngrams=n, tokenizer=tokenizer).fit(
                fitted["text"], fitted["label"].to_list()
            )
            right.append(
                [model.predict(part["text"]) == part["label"].to_numpy() for part in (held, test)]
            )
        (old_held, old_test), (new_held, new_test) = right
        change = new_test.astype(float) - old_test
        half = 1.96 * change.std() / len(change) ** 0.5
        shown = [f"{100 * part.mean():.2f}" for part in (old_held, new_held, old_test, new_test)]
        print(
            f"| {name} | {' | '.join(shown)} | {100 * change.mean():+.2f} ± {100 * half:.2f} |",
            flush=True,
        )


def whole_audit(runs: int) -> None:
    """The command as its user runs it, as a process of its own."""
    del runs
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit"
        files = [str(DATA / "imdb_train.parquet"), "--test", str(DATA / "imdb_test.parquet")]
        start = time.perf_counter()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "tokensieve",
                "audit",
                *files,
                "--ngrams",
                "2",
                "--out",
                str(out),
                "-q",
            ],
            check=True,
        )
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        summary = json.loads((out / "summary.json").read_text())
        page = (out / "report.html").stat().st_size / 1e6
    print(
        f"{seconds:.1f} s, peak memory {peak:.2f} GB, page {page:.2f} MB, test accuracy "
        f"{summary['test_accuracy']:.4f}"
    )
    print("seconds: " + ", ".join(f"{name} {s:.1f}" for name, s in summary["seconds"].items()))


def main() -> None:
    jobs = {"tokens": (tokens, 3), "rules": (rules, 1), "audit": (whole_audit, 1)}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=jobs)
    parser.add_argument("--runs", type=int)
    arguments = parser.parse_args()
    job, runs = jobs[arguments.job]
    print(described("polars", "scikit-learn") + "\n")
    job(arguments.runs or runs)


if __name__ == "__main__":
    main()
