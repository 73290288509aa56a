"""Preference pairs: ours beside what one would write oneself, on the same test pairs.

    python benchmarks/pairs.py

Data: preferences.parquet (see machine.py), 6,037 training and 2,138 test pairs, split by prompt. Settings of the peers are chosen
on a fifth of the training prompts, then learned on all; ours are the defaults. Intervals are over prompts; "of like length" are
the test pairs whose lengths are within 25 % of each other. Seconds: from texts to answers for the test pairs, choosing included.

    longer          the answer with more characters
    tfidf           scikit-learn's TfidfVectorizer (sublinear, min_df=3), logistic regression on differences, C of 0.1 to 10
    formatting      `tokensieve.text.formatting` and log length, logistic regression on differences, likewise
    ours            `tokensieve train --pairs chosen,rejected`; words alone with --no-formatting
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from machine import DATA, described
from tokensieve.auditing.preferences import log_length_ratios
from tokensieve.evidence.intervals import Share
from tokensieve.model.settings import TrainSettings
from tokensieve.read.corpus import Corpus
from tokensieve.read.pairs import read_pairs
from tokensieve.read.split import draw_units
from tokensieve.task.tasks import train_corpus
from tokensieve.text.formatting import Formatting

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
Features = Callable[[pl.Series], Any]
Makes = Callable[[pl.Series], Features]


def tfidf(ngrams: int) -> Makes:
    """TF-IDF learned from training texts."""
    return lambda texts: (
        TfidfVectorizer(ngram_range=(1, ngrams), min_df=3, sublinear_tf=True).fit(texts).transform
    )


def form(texts: pl.Series) -> Features:
    """Formatting and the logarithm of the length."""

    def of(texts: pl.Series) -> Any:
        length = np.log(texts.str.len_chars().to_numpy() + 1.0)
        return sp.csr_array(
            sp.hstack(
                [
                    sp.csr_array(np.unpackbits(Formatting().bits(texts), axis=1)),
                    sp.csr_array(length[:, None]),
                ],
                format="csr",
            )
        )

    return of


def difference(features: Features, corpus: Corpus) -> Any:
    """Preferred side less the other."""
    x = features(corpus.texts)
    return x[::2] - x[1::2]


def answered(makes: Makes, train: Corpus, test: Corpus, strength: float) -> np.ndarray:
    """Margins of the test pairs by logistic regression on differences."""
    features = makes(train.texts)
    d = difference(features, train)
    model = LogisticRegression(C=strength, max_iter=2000, fit_intercept=False)
    model.fit(sp.vstack([d, -d]), np.repeat([1, 0], d.shape[0]))
    return np.asarray(model.decision_function(difference(features, test)))


def chosen(makes: Makes, train: Corpus, test: Corpus) -> np.ndarray:
    """The same with C chosen on held-out prompts."""
    assert train.pairs is not None
    held = draw_units(train.pairs.units, 0.2, seed=0)
    part, rest = train.filter(np.repeat(~held, 2)), train.filter(np.repeat(held, 2))
    best = max(STRENGTHS, key=lambda c: float(np.mean(answered(makes, part, rest, c) > 0)))
    return answered(makes, train, test, best)


def ours(corpus: Corpus, **settings: Any) -> np.ndarray:
    """Margins of the test pairs by this package."""
    return np.asarray(train_corpus(corpus, TrainSettings(**settings)).f[::2, 0])


def main() -> None:
    """Print the table."""
    corpus = read_pairs(DATA / "preferences.parquet", pairs=("chosen", "rejected"), split="split")
    train, test = corpus, corpus.test
    assert test is not None
    assert test.pairs is not None
    rows: dict[str, Callable[[], np.ndarray]] = {
        "longer": lambda: log_length_ratios(test),
        "tfidf, words": lambda: chosen(tfidf(1), train, test),
        "tfidf, words and bigrams": lambda: chosen(tfidf(2), train, test),
        "formatting": lambda: chosen(form, train, test),
        "ours, words": lambda: ours(corpus),
        "**ours, at its defaults** (words, formatting)": lambda: ours(corpus, formatting=True),
        "ours, words, bigrams, formatting": lambda: ours(corpus, formatting=True, ngrams=2),
    }
    print(described(), "\n")
    print(
        "| | test accuracy | 95 % over prompts | log loss | of like length | seconds |\n|---|---|---|---|---|---|"
    )
    like = np.abs(log_length_ratios(test)) <= np.log(1.25)
    for name, margins in rows.items():
        start = time.perf_counter()
        m = margins()
        seconds = time.perf_counter() - start
        right = (m > 0) + 0.5 * (m == 0)
        share, alike = (
            Share.over(right, test.pairs.units),
            Share.over(right[like], test.pairs.units[like]),
        )
        loss = "–" if name == "longer" else f"{np.mean(np.logaddexp(0, -m)):.3f}"
        print(
            f"| {name} | {share.value:.4f} | {share.low:.3f}–{share.high:.3f} | {loss} | {alike.value:.3f} | {seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
