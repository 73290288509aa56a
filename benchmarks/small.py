"""Accuracy and log loss by number of documents: this model beside logistic regression, NB-SVM and the class frequencies.

    python benchmarks/small.py [--seeds 3] [--first 400] [--sizes 50 200 1000]

Of each of eight sets (as `findings.py` reads them) a draw of up to 3,000 documents for every seed: the first n train, the last
1,000 test. Classes with one training document, or none, are left out. Logistic regression (TF-IDF, C from 0.1 to 1,000) and NB-SVM
(presence times log-count ratio of each class, Wang & Manning 2012, with logistic instead of hinge loss, so that it has
probabilities; C from 0.001 to 10) choose C by the log loss of five-fold cross-validation. `AttentionClassifier` has its defaults.
Intervals are 95% t intervals of the mean of the eight sets' mean differences; counts are of single draws.
"""

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.stats import t
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss

from findings import DEVELOPED, HELD_OUT, real_set
from machine import described, store
from tokensieve.model.classifier import AttentionClassifier

Probabilities = np.ndarray


def chosen(x: object, y: np.ndarray, Cs: list[float]) -> LogisticRegressionCV:
    folds = int(max(2, min(5, np.unique(y, return_counts=True)[1].min())))
    return LogisticRegressionCV(
        Cs=Cs, cv=folds, scoring="neg_log_loss", max_iter=300, use_legacy_attributes=False
    ).fit(x, y)


def regression(texts: list[str], y: np.ndarray, unseen: list[str]) -> Probabilities:
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    return chosen(vectorizer.fit_transform(texts), y, [0.1, 1, 10, 100, 1000]).predict_proba(
        vectorizer.transform(unseen)
    )


def nbsvm(texts: list[str], y: np.ndarray, unseen: list[str]) -> Probabilities:
    vectorizer = CountVectorizer(binary=True)
    x, z = vectorizer.fit_transform(texts).astype(float), vectorizer.transform(unseen).astype(float)
    columns = []
    for k in np.unique(y)[(1 if len(np.unique(y)) == 2 else 0) :]:
        inside, outside = (np.asarray(x[part].sum(axis=0)).ravel() + 1 for part in (y == k, y != k))
        ratio = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
        columns.append(
            chosen(x.multiply(ratio).tocsr(), y == k, [0.001, 0.01, 0.1, 1, 10]).predict_proba(
                z.multiply(ratio).tocsr()
            )[:, 1]
        )
    p = np.column_stack([1 - columns[0], columns[0]] if len(columns) == 1 else columns)
    return p / p.sum(axis=1, keepdims=True)


def rows(seed: int, sizes: list[int]) -> Iterator[dict[str, object]]:
    for name in (*DEVELOPED, *HELD_OUT):
        frame = real_set(name, seed)
        for n in sizes:
            train = frame.head(n).filter(pl.len().over("label") > 1)
            names = train["label"].unique().sort()
            test = frame.tail(1000).filter(pl.col("label").is_in(names.implode()))
            code = dict(zip(names.to_list(), range(len(names)), strict=True))
            y, truth = (
                part["label"].replace_strict(code, return_dtype=pl.Int64).to_numpy()
                for part in (train, test)
            )
            texts, unseen = train["text"].to_list(), test["text"].to_list()
            ours = AttentionClassifier(random_state=seed).fit(texts, y).predict_proba(unseen)
            found = {
                "ours": ours,
                "LR": regression(texts, y, unseen),
                "NB-SVM": nbsvm(texts, y, unseen),
            }
            found["frequencies"] = np.tile(np.bincount(y) / len(y), (len(truth), 1))
            for method, p in found.items():
                row = {
                    "set": name,
                    "seed": seed,
                    "n": n,
                    "method": method,
                    "accuracy": float((p.argmax(axis=1) == truth).mean()),
                }
                yield row | {
                    "log loss": float(
                        log_loss(truth, np.clip(p, 1e-12, 1), labels=range(len(names)))
                    )
                }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 1000])
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    machine = described("polars", "scikit-learn")
    print(machine + "\n", flush=True)
    found: list[dict[str, object]] = []
    for seed in range(options.first, options.first + options.seeds):
        for row in rows(seed, options.sizes):
            found.append(row)
            print(*row.values(), flush=True)
            store("small", found, machine)
    frame = pl.DataFrame(found)
    for measure in ("accuracy", "log loss"):
        wide = frame.pivot("method", index=["set", "seed", "n"], values=measure)
        means = wide.group_by("n", "set", maintain_order=True).agg(
            pl.col("ours", "LR", "NB-SVM", "frequencies").mean()
        )
        print(
            f"\n| {measure}: documents, set | ours | LR | NB-SVM | frequencies |\n|---|---|---|---|---|"
        )
        for n, name, *values in means.sort("n").iter_rows():
            print(f"| {n:,}, {name} | {' | '.join(f'{x:.3f}' for x in values)} |")
        for n in options.sizes:
            for other in ("LR", "NB-SVM", "frequencies"):
                d = means.filter(n=n).select(pl.col("ours") - pl.col(other)).to_series()
                half = float(t.ppf(0.975, len(d) - 1) * d.std() / np.sqrt(len(d)))
                draws = wide.filter(n=n)
                lower = draws.filter(pl.col("ours") < pl.col(other)).height
                interval = f"{d.mean():+.3f} ({d.mean() - half:+.3f} to {d.mean() + half:+.3f})"
                print(f"{n:,}, ours less {other}: {interval}; lower in {lower} of {draws.height}")


if __name__ == "__main__":
    main()
