"""The figures of the main job, ours and what a user would pick instead, side by side in one run.

    python benchmarks/main_job.py tokens     reading text into counts, against scikit-learn's CountVectorizer
    python benchmarks/main_job.py classify   test accuracy and seconds on IMDB and Yelp, against TF-IDF + logistic regression
    python benchmarks/main_job.py audit      `tokensieve audit` of all of IMDB with bigrams: seconds, peak memory, page size

Data: see machine.py. Every figure is measured when it is printed;
runs of the two sides alternate, and medians are shown.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from machine import DATA, described
from tokensieve.classifier import AttentionClassifier
from tokensieve.tokens import WordTokenizer, learn_vocabulary, tokenize


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
    splitter = WordTokenizer()

    def ours(n: int) -> None:
        stream = tokenize(train, splitter)
        vocabulary = learn_vocabulary(stream, splitter, n, 2)
        vocabulary.count(stream)
        vocabulary.count(tokenize(test, splitter))

    def theirs(n: int) -> None:
        vectorizer = CountVectorizer(ngram_range=(1, n), min_df=2, token_pattern=r"(?u)\w+(?:['’]\w+)*")
        vectorizer.fit_transform(train.to_list())
        vectorizer.transform(test.to_list())

    print("| features | tokensieve | CountVectorizer | ratio |\n|---|---|---|---|")
    for n, name in ((1, "words"), (2, "words + bigrams")):
        m = alternate({"ours": lambda n=n: ours(n), "theirs": lambda n=n: theirs(n)}, runs)
        print(f"| {name} | {m['ours']:.1f} s | {m['theirs']:.1f} s | {m['theirs'] / m['ours']:.1f} |")


def classify(runs: int) -> None:
    """Texts in memory to test accuracy, everything included; C of the peer is chosen on a tenth of the training documents."""
    yelp = pl.read_parquet(DATA / "yelp.parquet")
    binary = yelp.filter(pl.col("stars") != 3).with_columns(label=pl.col("stars") > 3)
    tasks = {
        "IMDB": (imdb("train"), imdb("test"), "label"),
        "Yelp 1,2 / 4,5": (*(binary.filter(pl.col("split") == s) for s in ("dev", "test")), "label"),
        "Yelp five stars": (*(yelp.filter(pl.col("split") == s) for s in ("dev", "test")), "stars"),
    }
    AttentionClassifier(max_epochs=1).fit(["a b", "a c"] * 5, [0, 1] * 5)  # compile before the clock starts
    print("| data | features | tokensieve | seconds | TF-IDF + LR | C | seconds |\n|---|---|---|---|---|---|---|")
    for name, (train, test, label) in tasks.items():
        for n in (1, 2, 3):
            ours, our_seconds, theirs, strength, their_seconds = [], [], [], 0.0, []
            for seed in range(runs):
                accuracy, seconds = _ours(train, test, label, n, seed)
                ours.append(accuracy)
                our_seconds.append(seconds)
                accuracy, strength, seconds = _tfidf(train, test, label, n, seed)
                theirs.append(accuracy)
                their_seconds.append(seconds)
            cells = (
                f"{statistics.median(ours):.4f} ({min(ours):.4f} … {max(ours):.4f})", f"{statistics.median(our_seconds):.1f}",
                f"{statistics.median(theirs):.4f} ({min(theirs):.4f} … {max(theirs):.4f})", f"{strength:g}",
                f"{statistics.median(their_seconds):.1f}",
            )  # fmt: skip
            print(f"| {name} | 1…{n} words | {' | '.join(cells)} |", flush=True)


def _ours(train: pl.DataFrame, test: pl.DataFrame, label: str, n: int, seed: int) -> tuple[float, float]:
    start = time.perf_counter()
    model = AttentionClassifier(ngrams=n, random_state=seed).fit(train["text"], train[label].to_list())
    accuracy = float(np.mean(model.predict(test["text"]) == np.array(test[label].to_list())))
    return accuracy, time.perf_counter() - start


def _tfidf(train: pl.DataFrame, test: pl.DataFrame, label: str, n: int, seed: int) -> tuple[float, float, float]:
    """The same types by the same tokenizer (which spares the peer its own, slower one), then scikit-learn."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    splitter = WordTokenizer()
    stream = tokenize(train["text"], splitter)
    vocabulary = learn_vocabulary(stream, splitter, n, 3)
    y, goal = np.array(train[label].to_list()), np.array(test[label].to_list())
    scale = TfidfTransformer(sublinear_tf=True)
    x = scale.fit_transform(vocabulary.count(stream)[0])
    inside, outside = train_test_split(np.arange(len(y)), test_size=0.1, stratify=y, random_state=seed)

    def fit(rows: Any, c: float) -> Any:
        with threadpool_limits(1):  # the peer is faster so: its dense products are small
            return LogisticRegression(C=c, max_iter=1000).fit(x[rows], y[rows])

    best = max((1.0, 10.0, 100.0), key=lambda c: fit(inside, c).score(x[outside], y[outside]))
    model = fit(np.arange(len(y)), best)
    accuracy = float(model.score(scale.transform(vocabulary.count(tokenize(test["text"], splitter))[0]), goal))
    return accuracy, best, time.perf_counter() - start


def whole_audit(runs: int) -> None:
    """The command as its user runs it, as a process of its own."""
    del runs
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit"
        files = [str(DATA / "imdb_train.parquet"), "--test", str(DATA / "imdb_test.parquet")]
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "tokensieve", "audit", *files, "--ngrams", "2", "--out", str(out), "-q"], check=True
        )
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        summary = json.loads((out / "summary.json").read_text())
        page = (out / "report.html").stat().st_size / 1e6
    print(
        f"{seconds:.1f} s, peak memory {peak:.2f} GB, page {page:.2f} MB, test accuracy {summary['test_accuracy']:.4f}"
    )
    print("seconds: " + ", ".join(f"{name} {s:.1f}" for name, s in summary["seconds"].items()))


def main() -> None:
    jobs = {"tokens": (tokens, 3), "classify": (classify, 3), "audit": (whole_audit, 1)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=jobs)
    parser.add_argument("--runs", type=int)
    arguments = parser.parse_args()
    job, runs = jobs[arguments.job]
    print(described("polars", "scikit-learn") + "\n")
    job(arguments.runs or runs)


if __name__ == "__main__":
    main()
