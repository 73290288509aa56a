"""What users would pick instead, side by side with ours: text classification, and the max-margin problem.

    python benchmarks/peers.py classify [--data imdb|yelp|yelp5] [--ngrams 1 2 3] [--runs 3] [--methods NAME …]
    python benchmarks/peers.py margin [--seconds 120]

`classify`: scikit-learn's TF-IDF + logistic regression, NB-SVM (Wang & Manning 2012), fastText at its defaults and at its best
setting, and `AttentionClassifier`, likewise.
Every method's setting is chosen on the same tenth of the training documents, once, and then
each is timed in a process of its own from the raw file to the test predictions, with that setting, in turns (the search for
the setting is not in the seconds); its peak memory is that process's. fastText is that of
`pip install fasttext-wheel`, and left out without it (builds of other packages, 0.9.2 and 0.9.3, ended runs on single words with
"Encountered NaN", for the same settings and data now and then).

`margin`: `max_margin` against the dense formulation (every pair a row, Clarabel), with more and more documents until the dense
one passes the time allowed.

Data: see machine.py.
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
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from machine import DATA, described

TASKS = {"imdb": "IMDB", "yelp": "Yelp 1,2 / 4,5", "yelp5": "Yelp five stars"}
WORDS = r"(?u)\w+(?:['’]\w+)*"
OURS = "ours, defaults"
GRIDS: dict[str, list[dict[str, Any]]] = {
    OURS: [{}],
    "ours, chosen on validation": [
        {"value_rate": rate, "min_documents": k} for rate in (0.05, 0.1, 0.2) for k in (1, 2, 3)
    ],
    "TF-IDF + LR": [{"C": c} for c in (1.0, 10.0, 100.0)],
    "NB-SVM": [{"C": c, "beta": beta} for c in (0.1, 1.0) for beta in (0.25, 1.0)],
    "fastText, defaults": [{}],
    "fastText, best": [{"epoch": epoch, "lr": lr} for epoch in (5, 25) for lr in (0.1, 0.5, 1.0)],
}
STAGES = ("reading", "features", "training", "predicting")
Split = tuple[list[str], list[Any], list[str]]
Lap = Callable[[str], None]


def load(task: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training and test documents as text and label."""
    if task == "imdb":
        parts = tuple(
            pl.read_parquet(DATA / f"imdb_{part}.parquet").select("text", "label") for part in ("train", "test")
        )
        return parts[0], parts[1]
    yelp = pl.read_parquet(DATA / "yelp.parquet").rename({"stars": "label"})
    if task == "yelp":
        yelp = yelp.filter(pl.col("label") != 3).with_columns(pl.col("label") > 3)
    parts = tuple(
        yelp.filter(pl.col("split") == s).select("text", pl.col("label").cast(pl.String)) for s in ("dev", "test")
    )
    return parts[0], parts[1]


def ours(split: Split, n: int, seed: int, lap: Lap, **setting: Any) -> list[Any]:
    from tokensieve.model.classifier import AttentionClassifier
    from tokensieve.text.corpus import Corpus
    from tokensieve.text.tokenizers import text_series
    from tokensieve.text.vocabulary import count_corpus

    texts, labels, unseen = split
    classes = sorted(set(labels))
    model = AttentionClassifier(ngrams=n, random_state=seed, **setting)
    index = {name: k for k, name in enumerate(classes)}
    y = np.array([index[label] for label in labels])
    documents = Corpus.of(text_series(texts), y, tuple(map(str, classes)))
    counted = count_corpus(documents, ngrams=n, min_documents=model.min_documents)
    lap("features")
    model.fit_counts(counted.counts, counted.vocabulary)
    lap("training")
    answers = model.predict(unseen)
    names = dict(zip(map(str, classes), classes, strict=True))
    return [names[str(a)] for a in answers]


def tfidf(split: Split, n: int, seed: int, lap: Lap, C: float) -> list[Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts, labels, unseen = split
    vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, n), min_df=2, token_pattern=WORDS)
    x = vectorizer.fit_transform(texts)
    lap("features")
    model = LogisticRegression(C=C, max_iter=1000).fit(x, labels)
    lap("training")
    return model.predict(vectorizer.transform(unseen)).tolist()


def nbsvm(split: Split, n: int, seed: int, lap: Lap, C: float, beta: float) -> list[Any]:
    """Presence × log-count ratio of each class against the rest, a linear SVM, its weights interpolated with their mean."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.svm import LinearSVC

    texts, labels, unseen = split
    vectorizer = CountVectorizer(binary=True, ngram_range=(1, n), min_df=2, token_pattern=WORDS)
    x = vectorizer.fit_transform(texts).astype(np.float64)
    lap("features")
    names, machines = sorted(set(labels)), []
    for name in names[1:] if len(names) == 2 else names:
        y = np.array([label == name for label in labels])
        inside, outside = x[y].sum(axis=0).A1 + 1, x[~y].sum(axis=0).A1 + 1
        ratio = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
        machine = LinearSVC(C=C, random_state=seed).fit(x.multiply(ratio).tocsr(), y)
        weights = beta * machine.coef_[0] + (1 - beta) * np.abs(machine.coef_).mean()
        machines.append((ratio * weights, machine.intercept_[0]))
    lap("training")
    z = vectorizer.transform(unseen).astype(np.float64)
    answers = [z @ weights + bias for weights, bias in machines]
    best = (answers[0] > 0).astype(int) if len(names) == 2 else np.argmax(answers, axis=0)
    return [names[k] for k in best]


def fasttext(split: Split, n: int, seed: int, lap: Lap, **setting: Any) -> list[Any]:
    """On the same words, lower-cased, through its own training file; two threads, so its result depends on their race."""
    import fasttext as library

    from tokensieve.text.tokenizers import WordTokenizer, text_series

    def split_words(part: list[str]) -> list[str]:
        return [" ".join(row) for row in WordTokenizer().split(text_series(part)).to_list()]

    texts, labels, unseen = split
    names = {label: f"__label__{k}" for k, label in enumerate(sorted(set(labels)))}
    words = split_words(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        order = np.random.default_rng(seed).permutation(
            len(labels)
        )  # read in order, and IMDB's file is sorted by label
        path.write_text("".join(f"{names[labels[i]]} {words[i]}\n" for i in order), encoding="utf-8")
        lap("features")
        how = {"wordNgrams": n, "minCount": 2, "thread": 2, "seed": seed} | setting
        model = library.train_supervised(str(path), verbose=0, **how)
    lap("training")
    back = {name: label for label, name in names.items()}
    answered = model.f.multilinePredict([line + "\n" for line in split_words(unseen)], 1, 0.0, "strict")[0]
    return [back[row[0]] for row in answered]


METHODS: dict[str, Callable[..., list[Any]]] = {
    OURS: ours, "ours, chosen on validation": ours, "TF-IDF + LR": tfidf, "NB-SVM": nbsvm, "fastText, defaults": fasttext,
    "fastText, best": fasttext,
}  # fmt: skip


def choose(task: str, n: int, method: str) -> dict[str, Any]:
    """The setting of best accuracy on a seeded tenth of the training documents, and that accuracy."""
    train, _ = load(task)
    order = np.random.default_rng(0).permutation(len(train))
    held, rest = train[order[: len(train) // 10]], train[order[len(train) // 10 :]]
    split = rest["text"].to_list(), rest["label"].to_list(), held["text"].to_list()
    goal, scores = held["label"].to_numpy(), []
    for setting in GRIDS[method]:
        answers = METHODS[method](split, n, 0, lambda stage: None, **setting)
        scores.append(float(np.mean(np.array(answers) == goal)))
    best = int(np.argmax(scores))
    return {"setting": GRIDS[method][best], "score": scores[best]}


def one(task: str, n: int, method: str, seed: int, setting: dict[str, Any]) -> dict[str, float]:
    """Raw file to test predictions."""
    laps = [("", time.perf_counter())]
    lap: Lap = lambda stage: laps.append((stage, time.perf_counter()))  # noqa: E731
    train, test = load(task)
    split = train["text"].to_list(), train["label"].to_list(), test["text"].to_list()
    lap("reading")
    answers = METHODS[method](split, n, seed, lap, **setting)
    lap("predicting")
    accuracy = float(np.mean(np.array(answers) == test["label"].to_numpy()))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    stages = {stage: end - start for (_, start), (stage, end) in pairwise(laps)}
    return {"accuracy": accuracy, "seconds": laps[-1][1] - laps[0][1], "gigabytes": memory, "tests": len(test)} | stages


def child(what: str, task: str, n: int, method: str, **more: Any) -> dict[str, Any]:
    """This file in a process of its own, its last line read as JSON."""
    options = [
        x for name, value in more.items() for x in (f"--{name}", value if name != "setting" else json.dumps(value))
    ]
    command = [
        sys.executable,
        __file__,
        what,
        "--data",
        task,
        "--ngrams",
        str(n),
        "--method",
        method,
        *map(str, options),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def classify(options: argparse.Namespace) -> None:
    """A row for each data set, length of n-grams and method, and what the rows say of ours beside the best of the others."""
    methods = [m for m in options.methods if find_spec("fasttext") or not m.startswith("fastText")]
    print(described("scikit-learn", "fasttext-wheel") + "\n")
    print(f"| data | words | method | setting | validation | test accuracy | seconds | {' | '.join(STAGES)} | GB |")
    print("|---|---|---|---|---|---|---|" + "---|" * (len(STAGES) + 1), flush=True)
    verdicts = []
    for task in options.data:
        for n in options.ngrams:
            chosen = {m: child("choose", task, n, m) for m in methods}
            runs: dict[str, list[dict[str, float]]] = {m: [] for m in methods}
            for seed in range(options.runs):
                for m in methods if seed % 2 == 0 else methods[::-1]:
                    runs[m].append(child("one", task, n, m, seed=seed, setting=chosen[m]["setting"]))
            for m in methods:
                print(_row(task, n, m, chosen[m], runs[m]), flush=True)
            if {OURS} < set(methods):
                verdicts.append(_verdict(task, n, runs))
    print("\n" + "\n".join(verdicts))


def _row(task: str, n: int, method: str, chosen: dict[str, Any], runs: list[dict[str, float]]) -> str:
    def middle(key: str, digits: int, spread: bool = False) -> str:
        values = [run[key] for run in runs]
        wide = f" ({min(values):.{digits}f} … {max(values):.{digits}f})" if spread else ""
        return f"{statistics.median(values):.{digits}f}{wide}"

    setting = ", ".join(f"{k} {v:g}" for k, v in chosen["setting"].items()) or "–"
    stages = " | ".join(middle(stage, 1) for stage in STAGES)
    return (
        f"| {TASKS[task]} | 1…{n} | {method} | {setting} | {chosen['score']:.4f} | {middle('accuracy', 4, True)} | "
        f"{middle('seconds', 1, True)} | {stages} | {max(run['gigabytes'] for run in runs):.2f} |"
    )


def _verdict(task: str, n: int, runs: dict[str, list[dict[str, float]]]) -> str:
    """Ours, at defaults, beside the most accurate of the others, whose 95 % interval (Wilson's) is that of its test documents."""
    from scipy.stats import binomtest

    accuracy = {m: statistics.median(run["accuracy"] for run in of) for m, of in runs.items()}
    seconds = {m: statistics.median(run["seconds"] for run in of) for m, of in runs.items()}
    mine, tests = accuracy.pop(OURS), int(runs[OURS][0]["tests"])
    accuracy = {m: a for m, a in accuracy.items() if not m.startswith("ours")}
    best = max(accuracy, key=lambda m: accuracy[m])
    interval = binomtest(round(accuracy[best] * tests), tests).proportion_ci(method="wilson")
    said = (
        "at least as accurate"
        if mine >= accuracy[best]
        else "less accurate, within"
        if mine > interval.low
        else "less accurate, below"
    )
    times = ", ".join(f"{m} {s / seconds[OURS]:.1f}" for m, s in seconds.items() if m != OURS)
    return (
        f"- {TASKS[task]}, 1…{n} words: ours at defaults {mine:.4f}; the best of the others is {best}, {accuracy[best]:.4f} "
        f"({interval.low:.4f} … {interval.high:.4f}): {said}. Times our seconds: {times}."
    )


def margin(options: argparse.Namespace) -> None:
    """Assumption 1, d = 1024, T = 20: seconds of both, and how far their solutions are apart."""
    import clarabel
    import scipy.sparse as sp

    from tokensieve.model.start import initialise
    from tokensieve.theory.generators import single_token
    from tokensieve.theory.margin import max_margin
    from tokensieve.theory.one_step import one_step

    print(described("clarabel", "scipy") + "\n")
    print("| documents | types | pairs | tokensieve | dense, Clarabel | ratio | difference |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for n in (50, 100, 200, 400, 800, 1600, 3200, 6400):
        data = single_token(n, max(60, n // 2), 20, max(10, n // 20), seed=0)
        counts = data.counts
        E = one_step(counts, *initialise(counts.n_types, 1024, seed=0), 300.0).embeddings()
        mask = (data.relevance != 0)[counts.matrix.indices]
        start = time.perf_counter()
        found = max_margin(counts, E, mask)
        mine = time.perf_counter() - start
        document = np.repeat(np.arange(n), np.diff(counts.matrix.indptr))
        chosen = np.full(n, -1)
        chosen[document[mask]] = counts.matrix.indices[mask]
        pairs = np.unique(np.stack([chosen[document[~mask]], counts.matrix.indices[~mask]], axis=1), axis=0)
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.time_limit = False, options.seconds
        start = time.perf_counter()
        D = E[pairs[:, 0]] - E[pairs[:, 1]]
        solver = clarabel.DefaultSolver(
            sp.eye_array(1024, format="csc"), np.zeros(1024), sp.csc_array(-D), -np.ones(len(D)),
            [clarabel.NonnegativeConeT(len(D))], settings,
        )  # fmt: skip
        answer = solver.solve()
        theirs = time.perf_counter() - start
        solved = str(answer.status) in ("Solved", "AlmostSolved")
        apart = np.linalg.norm(np.asarray(answer.x) - found.p) / np.linalg.norm(found.p) if solved else np.nan
        print(
            f"| {n:,} | {counts.n_types:,} | {len(pairs):,} | {mine:.2f} s ({found.status}) | {theirs:.2f} s ({answer.status}) | "
            f"{theirs / mine:.0f} | {apart:.1e} |",
            flush=True,
        )
        if not solved or theirs > options.seconds:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("classify", "margin", "choose", "one"))
    parser.add_argument("--data", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--ngrams", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--method", choices=METHODS)
    parser.add_argument("--setting", type=json.loads, default={})
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    if options.what == "choose":
        print(json.dumps(choose(options.data[0], options.ngrams[0], options.method)))
    elif options.what == "one":
        print(json.dumps(one(options.data[0], options.ngrams[0], options.method, options.seed, options.setting)))
    else:
        {"classify": classify, "margin": margin}[options.what](options)


if __name__ == "__main__":
    main()
