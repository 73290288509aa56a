"""How many reviews contain as many words as the paper's vocabularies, and how far words alone go.

    python benchmarks/vocabulary.py [--data DIR]

Figures for "What can and cannot be known from the paper" in docs/reproduced.md. Words are maximal
runs of letters, digits and apostrophes; the classifier is a logistic regression on TF-IDF weights.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from machine import DATA

WORD = r"[a-z0-9']+"
PAPER_TYPES = {"IMDB": 7766, "Yelp": 5424}
N_ORDERS = 5
N_FEW = 300  # reviews of the small training sets
N_DRAWS = 3
C = 4.0  # inverse strength of the L2 penalty; chosen beforehand


@dataclass(frozen=True)
class Reviews:
    """Texts and whether they are positive."""

    texts: np.ndarray
    is_positive: np.ndarray

    def rows(self, which: np.ndarray) -> Reviews:
        return Reviews(self.texts[which], self.is_positive[which])


def read(path: Path, label: str, negative: list[str], positive: list[str]) -> Reviews:
    frame = pl.read_parquet(path).with_columns(pl.col(label).cast(pl.String))
    frame = frame.filter(pl.col(label).is_in([*negative, *positive]))
    return Reviews(frame["text"].to_numpy(), frame[label].is_in(positive).to_numpy())


def reviews_with_types(texts: np.ndarray, n_types: int, seed: int) -> int:
    """How many reviews, in a random order, first contain so many different words."""
    seen: set[str] = set()
    order = np.random.default_rng(seed).permutation(len(texts))
    for n_read, row in enumerate(order.tolist(), 1):
        seen.update(re.findall(WORD, texts[row].lower()))
        if len(seen) >= n_types:
            return n_read
    raise SystemExit(f"fewer than {n_types} words in all reviews")


def accuracy(train: Reviews, test: Reviews, n_types: int | None, min_documents: int = 1) -> str:
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, token_pattern=WORD, max_features=n_types, min_df=min_documents
    )
    model = make_pipeline(vectorizer, LogisticRegression(C=C, max_iter=300))
    model.fit(train.texts, train.is_positive)
    return (
        f"{model.score(test.texts, test.is_positive):.1%} ({len(vectorizer.vocabulary_):,} words)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    folder = parser.parse_args().data
    imdb = read(folder / "imdb_train.parquet", "label", ["negative"], ["positive"])
    imdb_test = read(folder / "imdb_test.parquet", "label", ["negative"], ["positive"])
    yelp = read(folder / "yelp.parquet", "stars", ["1.0", "2.0"], ["4.0", "5.0"])
    for name, reviews in (("IMDB", imdb), ("Yelp", yelp)):
        n_types = PAPER_TYPES[name]
        sizes = [reviews_with_types(reviews.texts, n_types, seed) for seed in range(N_ORDERS)]
        print(f"{name}: {n_types:,} different words are in {sorted(sizes)} reviews")

    print("IMDB, words of two reviews or more:", accuracy(imdb, imdb_test, None, min_documents=2))
    print("IMDB, most frequent words:", accuracy(imdb, imdb_test, PAPER_TYPES["IMDB"]))
    for seed in range(N_DRAWS):
        few = np.random.default_rng(seed).permutation(len(imdb.texts))[:N_FEW]
        print(f"IMDB, {N_FEW} reviews:", accuracy(imdb.rows(few), imdb_test, None))
    order = np.random.default_rng(0).permutation(len(yelp.texts))
    n_train = len(order) * 4 // 5
    test = yelp.rows(order[n_train:])
    print("Yelp:", accuracy(yelp.rows(order[:n_train]), test, PAPER_TYPES["Yelp"]))
    print(f"Yelp, positive: {test.is_positive.mean():.1%} of {len(order):,}")


if __name__ == "__main__":
    main()
