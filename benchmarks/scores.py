"""Stars as scores and as classes: mean absolute error and accuracy on Yelp's test reviews.

    python benchmarks/scores.py [--name scores]

All models are trained on the 5,000 reviews of the part `dev` and judged on the 5,000 of `test`:
`AttentionRegressor`, `AttentionClassifier` (its class, and the mean and the median of the stars by
its probabilities), and on TF-IDF (sublinear, words in three reviews or more) ridge regression,
logistic regression, and an ordinal baseline: a logistic regression for each threshold between stars
(Frank and Hall 2001), predicting the median. Strengths of the baselines are chosen by five folds of
the training part. A prediction is rounded to a star for the accuracy; its error is measured as it
is.

Then the statistics of tokens, on simulated scores: how often any token has q < 0.05 where scores
say nothing, and how often intervals contain the true effect.

Constants of `AttentionRegressor` were chosen on reviews of `dev` alone. Figures go to
benchmarks/results/scores.json. Data: see machine.py.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV

from machine import DATA, described, store
from tokensieve import AttentionClassifier, AttentionRegressor
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.score_ranks import ScoreImportance, score_importance
from tokensieve.task.score_measures import ScoreMeasures, mae_difference
from tokensieve.text.counts import Counts, score_sides

MIN_DOCUMENTS = 3
ALPHAS = (0.1, 0.3, 1.0, 3.0, 10.0)
STRENGTHS = (0.3, 1.0, 3.0, 10.0)
KINDS = ("stars", "continuous", "mostly zeros")
N_DOCUMENTS = 400
N_TYPES = 300
N_RUNS = 200
N_COVERAGE = 500
N_TRUTH = 200_000  # draws of each side
Numbers = NDArray[np.float64]


def predictions(train: pl.DataFrame, test: pl.DataFrame) -> dict[str, Numbers]:
    """The predicted stars of each test review, by model."""
    stars = train["stars"].to_numpy().astype(np.float64)
    classes = stars.astype(int)
    predicted: dict[str, Numbers] = {}

    regressor = AttentionRegressor(min_documents=MIN_DOCUMENTS).fit(train["text"], stars)
    predicted["scores"] = regressor.predict(test["text"])
    classifier = AttentionClassifier(min_documents=MIN_DOCUMENTS).fit(train["text"], classes)
    probabilities = classifier.predict_proba(test["text"])
    predicted["classes"] = classifier.predict(test["text"]).astype(np.float64)
    predicted["mean of classes"] = probabilities @ classifier.classes_
    predicted["middle class"] = classifier.predict_median(test["text"]).astype(np.float64)

    tf_idf = TfidfVectorizer(sublinear_tf=True, min_df=MIN_DOCUMENTS)
    x = tf_idf.fit_transform(train["text"].to_list())
    new = tf_idf.transform(test["text"].to_list())
    predicted["ridge"] = RidgeCV(ALPHAS, cv=5).fit(x, stars).predict(new)
    nominal = LogisticRegressionCV(Cs=STRENGTHS, cv=5, max_iter=1000, scoring="accuracy")
    nominal.fit(x, classes)
    predicted["logistic"] = nominal.predict(new).astype(np.float64)
    strength = float(np.ravel(nominal.C_)[0])
    above = [
        LogisticRegression(C=strength, max_iter=1000).fit(x, classes > k).predict_proba(new)[:, 1]
        for k in range(1, 5)
    ]
    predicted["ordinal"] = 1 + (np.array(above) > 0.5).sum(axis=0).astype(np.float64)
    return predicted


def judged(predicted: Numbers, scores: Numbers, ours: Numbers) -> dict[str, object]:
    """Error, correlation and accuracy of one model; and our error minus its error."""
    measures = ScoreMeasures.of(predicted, scores, seed=0)
    rounded = np.clip(np.rint(predicted), 1, 5)
    return {
        "mae": measures.mae.to_dict(),
        "r2": measures.r2.to_dict(),
        "spearman": measures.spearman.to_dict(),
        "accuracy_of_rounded": Share.count(int((rounded == scores).sum()), len(scores)).to_dict(),
        "mae_of_rounded": float(np.abs(rounded - scores).mean()),
        "mae_difference": mae_difference(ours, predicted, scores, seed=0).to_dict(),
    }


def scores_of_kind(kind: str, n: int, shift: float, rng: np.random.Generator) -> Numbers:
    """Scores whose size grows with the shift: stars, continuous ones, or mostly zeros."""
    hidden = rng.normal(shift, 1, n)
    if kind == "stars":
        return np.clip(np.rint(hidden + 4), 1, 5)
    if kind == "mostly zeros":
        return np.maximum(hidden - 1.3, 0.0)  # nine of ten without a shift
    return hidden


def tested(contains: NDArray[np.bool_], scores: Numbers) -> ScoreImportance:
    """The statistics of tokens that documents contain, shape (n, |S|)."""
    plain = Counts.from_matrix(contains.astype(int), score_sides(scores))
    return score_importance(replace(plain, numbers=scores))


def false_discoveries(kind: str) -> dict[str, float]:
    """Of scores that say nothing: runs with any q < 0.05, and tokens with p < 0.05."""
    rng = np.random.default_rng(0)
    has_any = []
    n_small = []
    for _ in range(N_RUNS):
        rates = 0.5 / np.arange(1, N_TYPES + 1) ** 0.8
        contains = rng.random((N_DOCUMENTS, N_TYPES)) < rates
        found = tested(contains, scores_of_kind(kind, N_DOCUMENTS, 0.0, rng))
        occurs = found.documents >= 3
        has_any.append(bool((found.q_value < 0.05).any()))
        n_small.append(float((found.p_value[occurs] < 0.05).mean()))
    return {"runs_with_discovery": float(np.mean(has_any)), "small_p": float(np.mean(n_small))}


def coverage(kind: str, n_with: int, shift: float) -> float:
    """How often the interval of a token in `n_with` of 400 documents contains its effect."""
    rng = np.random.default_rng(1)
    with_token = scores_of_kind(kind, N_TRUTH, shift, rng)
    without = np.sort(scores_of_kind(kind, N_TRUTH, 0.0, rng))
    below = np.searchsorted(without, with_token, "left")
    not_above = np.searchsorted(without, with_token, "right")
    truth = float((below - (N_TRUTH - not_above)).mean() / N_TRUTH)
    contains = np.arange(N_DOCUMENTS)[:, None] < n_with
    n_inside = 0
    for _ in range(N_COVERAGE):
        parts = [
            scores_of_kind(kind, n_with, shift, rng),
            scores_of_kind(kind, N_DOCUMENTS - n_with, 0.0, rng),
        ]
        low, high = tested(contains, np.concatenate(parts)).effect_interval
        n_inside += bool(low[0] <= truth <= high[0])
    return n_inside / N_COVERAGE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="scores")
    name = parser.parse_args().name
    frame = pl.read_parquet(DATA / "yelp.parquet")
    train = frame.filter(pl.col("split") == "dev")
    test = frame.filter(pl.col("split") == "test")
    scores = test["stars"].to_numpy().astype(np.float64)
    predicted = predictions(train, test)
    judgements = {
        model: judged(values, scores, predicted["scores"]) for model, values in predicted.items()
    }
    figures = {
        "yelp": judgements,
        "false_discoveries": {kind: false_discoveries(kind) for kind in KINDS},
        "coverage": {
            kind: {
                f"{n_with} documents, shift {shift:g}": coverage(kind, n_with, shift)
                for n_with in (5, 20, 100)
                for shift in (0.0, 1.0)
            }
            for kind in KINDS
        },
    }
    for part, found in figures.items():
        for name_of_part, numbers in found.items():
            print(part, name_of_part, numbers)
    print(store(name, figures, described("scikit-learn", "scipy")))


if __name__ == "__main__":
    main()
