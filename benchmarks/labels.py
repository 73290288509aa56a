"""Wrong labels:

ours beside cleanlab (Northcutt et al. 2021), where 2 % of the labels were turned and it is known
which.

    python benchmarks/labels.py [--documents 2000] [--seeds 5]

Of each data set a seeded draw of training documents; 2 % of them get another label at random.
Precision is the share of turned labels among the first 1 % and 2 % of the suspects (a list that
ends before that is counted to its full length). *Ours* is what `tokensieve audit` writes to
label-issues.csv. *cleanlab* is `find_label_issues` with its defaults, ranked by self-confidence, on
probabilities of TF-IDF (sublinear) + logistic regression from the same two halves, and from five
parts, as its documentation advises; and on our probabilities, which separates the ranking from the
model. The labels as published are no certain truth: a suspect that was not turned may be wrong,
too. Data: see machine.py.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from machine import DATA, described
from tokensieve.arrays import Floats, Ints
from tokensieve.evidence import label_issues
from tokensieve.model.fit import fit
from tokensieve.model.settings import TrainSettings
from tokensieve.read.reader import read_corpus
from tokensieve.task.tasks import Labels
from tokensieve.text.vocabulary import CountedCorpus, count_corpus

TURNED = 0.02
FOLDS = 2
SHARES = (0.01, 0.02)


def sets() -> dict[str, tuple[pl.DataFrame, list[str]]]:
    """Name → training documents and their text columns."""
    yelp = pl.read_parquet(DATA / "yelp.parquet").filter(pl.col("stars") != 3)
    return {
        "IMDB": (pl.read_parquet(DATA / "imdb_train.parquet"), ["text"]),
        "Yelp 1,2 / 4,5": (
            yelp.with_columns(label=(pl.col("stars") > 3).cast(pl.String)),
            ["text"],
        ),
        "SNLI": (pl.read_parquet(DATA / "snli_train.parquet"), ["premise", "hypothesis"]),
    }


def suspects(train: CountedCorpus, words: int, seed: int) -> dict[str, Ints]:
    """Method → documents, the clearest suspect first."""
    settings, counts = TrainSettings(seed=seed), train.counts
    mine = Labels().out_of_fold(train, fit(counts, settings), settings)
    assert mine is not None
    regression = make_pipeline(
        TfidfTransformer(sublinear_tf=True), LogisticRegression(max_iter=1000)
    )
    plain = counts.matrix[:, :words]

    def theirs(parts: int) -> Floats:
        split = StratifiedKFold(parts, shuffle=True, random_state=seed)
        return np.asarray(
            cross_val_predict(regression, plain, counts.labels, cv=split, method="predict_proba")
        )

    def ranked(p: Floats) -> Ints:
        issues = find_label_issues(counts.labels, p, return_indices_ranked_by="self_confidence")
        first, order = (
            np.asarray(issues, dtype=np.int64),
            np.argsort(get_label_quality_scores(counts.labels, p), kind="stable"),
        )
        return np.concatenate([first, order[~np.isin(order, first)]])

    return {
        "ours": label_issues.find_label_issues(mine, counts.labels).documents,
        f"cleanlab, TF-IDF + LR, {FOLDS} parts": ranked(theirs(FOLDS)),
        "cleanlab, TF-IDF + LR, 5 parts": ranked(theirs(5)),
        "cleanlab on our probabilities": ranked(mine),
    }


def run(frame: pl.DataFrame, text: list[str], documents: int, seed: int) -> dict[str, list[float]]:
    """Method → precision at each of `SHARES`."""
    corpus = read_corpus(frame.sample(documents, seed=seed), text=text, label="label")
    counted = count_corpus(corpus, formatting=True, min_documents=3)
    rng = np.random.default_rng(seed)
    turned = rng.permutation(documents)[: round(TURNED * documents)]
    labels = corpus.labels.copy()
    labels[turned] = (labels[turned] + rng.integers(1, len(corpus.classes), len(turned))) % len(
        corpus.classes
    )
    turned_corpus = replace(corpus, frame=corpus.frame.with_columns(label=labels))
    out: dict[str, list[float]] = {}
    for name, found in suspects(
        replace(counted, corpus=turned_corpus), counted.vocabulary.n_words, seed
    ).items():
        sizes = [round(share * documents) for share in SHARES]
        out[name] = [float(np.isin(found[:size], turned).sum()) / size for size in sizes]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(described("scikit-learn", "cleanlab") + "\n", flush=True)
    heads = " | ".join(f"precision in the first {share:.0%}" for share in SHARES)
    print(
        f"| data, {options.documents:,} documents | method | {heads} |\n|---|---|"
        + "---|" * len(SHARES),
        flush=True,
    )
    for name, (frame, text) in sets().items():
        runs: list[dict[str, Any]] = [
            run(frame, text, options.documents, seed) for seed in range(options.seeds)
        ]
        for method in runs[0]:
            values = np.array([one[method] for one in runs])
            cells = " | ".join(f"{x.mean():.2f} ({x.min():.2f} … {x.max():.2f})" for x in values.T)
            print(f"| {name} | {method} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
