"""Do probabilities mean what they say, with few and with many documents? Ours at defaults beside TF-IDF + logistic regression.

    python benchmarks/calibration.py [--sizes 50 200 1000 5000] [--data imdb yelp snli] [--runs 5]

For each size a seeded draw of training documents, every method on the same, tested on the whole test file: log loss in nats,
calibration error (mean |accuracy − confidence| over ten bins of as many documents each, by the answered class's probability) and
accuracy, means over runs. TF-IDF is sublinear, of words; C is 1, or chosen by five-fold cross-validation for log loss out
of 0.1, 1, 10, 100, 1,000.
*Class frequencies* answers every document by the shares of the classes. SNLI: hypotheses alone. Data: see machine.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from machine import DATA, described
from peers import WORDS
from peers import load as load_reviews
from tokensieve.model.classifier import AttentionClassifier

TASKS = {"imdb": "IMDB", "yelp": "Yelp 1,2 / 4,5", "snli": "SNLI, three classes"}
BINS, FOLDS = 10, 5
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
Answers = Callable[[list[str], list[str], list[str], int], tuple[np.ndarray, list[str]]]


def load(task: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training and test documents as text and label."""
    if task != "snli":
        return load_reviews(task)
    parts = (pl.read_parquet(DATA / f"snli_{part}.parquet") for part in ("train", "test"))
    train, test = (part.select(text="hypothesis", label="label").drop_nulls() for part in parts)
    return train, test


def ours(
    texts: list[str], labels: list[str], unseen: list[str], seed: int
) -> tuple[np.ndarray, list[str]]:
    model = AttentionClassifier(random_state=seed).fit(texts, labels)
    return model.predict_proba(unseen), list(model.classes_)


def regression(chosen: bool) -> Answers:
    def answer(
        texts: list[str], labels: list[str], unseen: list[str], seed: int
    ) -> tuple[np.ndarray, list[str]]:
        vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=WORDS)
        x = vectorizer.fit_transform(texts)
        model: Any = LogisticRegression(max_iter=1000)
        if chosen:
            model = LogisticRegressionCV(
                Cs=STRENGTHS,
                cv=FOLDS,
                scoring="neg_log_loss",
                l1_ratios=(0.0,),
                max_iter=1000,
                use_legacy_attributes=False,
            )
        model.fit(x, labels)
        return model.predict_proba(vectorizer.transform(unseen)), list(model.classes_)

    return answer


def frequencies(
    texts: list[str], labels: list[str], unseen: list[str], seed: int
) -> tuple[np.ndarray, list[str]]:
    names, sizes = np.unique(labels, return_counts=True)
    return np.tile(sizes / sizes.sum(), (len(unseen), 1)), list(names)


METHODS: dict[str, Answers] = {
    "ours, defaults": ours, "TF-IDF + LR, C 1": regression(False), "TF-IDF + LR, C chosen": regression(True),
    "class frequencies": frequencies,
}  # fmt: skip


def scores(p: np.ndarray, names: list[str], labels: np.ndarray) -> tuple[float, float, float]:
    """Log loss, calibration error and accuracy."""
    index = np.searchsorted(names, labels)
    loss = -np.log(np.clip(p[np.arange(len(p)), index], 1e-300, None)).mean()
    answer = p.argmax(axis=1)
    confidence, right = p.max(axis=1), answer == index
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    error = sum(abs(confidence[i].mean() - right[i].mean()) * len(i) for i in bins) / len(p)
    return float(loss), float(error), float(right.mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[50, 200, 1000, 5000])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(described("scikit-learn") + "\n")
    print(
        "| data | documents | method | log loss | times ours | calibration error | accuracy |\n|---|---|---|---|---|---|---|"
    )
    for task in options.data:
        train, test = load(task)
        unseen, truth = test["text"].to_list(), test["label"].to_numpy()
        for size in options.sizes:
            found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
            for seed in range(options.runs):
                part = train.sample(min(size, len(train)), seed=seed)
                texts, labels = part["text"].to_list(), part["label"].to_list()
                for name, method in METHODS.items():
                    found[name].append(scores(*method(texts, labels, unseen, seed), truth))
            mine = np.mean([loss for loss, _, _ in found["ours, defaults"]])
            for name, runs in found.items():
                loss, error, accuracy = np.mean(runs, axis=0)
                low, high = np.array(runs)[:, 0].min(), np.array(runs)[:, 0].max()
                print(
                    f"| {TASKS[task]} | {min(size, len(train)):,} | {name} | {loss:.3f} ({low:.3f} … {high:.3f}) | "
                    f"{loss / mine:.2f} | {error:.3f} | {accuracy:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
