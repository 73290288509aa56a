"""Stars as scores and as classes: mean absolute error and accuracy on Yelp's test reviews.

    python benchmarks/scores.py [--name scores] [--yelp-only]

All models are trained on the 5,000 reviews of the part `dev` and judged on the 5,000 of `test`:
`AttentionRegressor`, `AttentionClassifier` (its class, the mean and the median of the stars by
its probabilities, and the median with as much weight on being right as makes it as often right as
the class, out of fold), and on TF-IDF (sublinear, words in three reviews or more) ridge regression,
logistic regression, and an ordinal baseline: a logistic regression for each threshold between stars
(Frank and Hall 2001), predicting the median. Strengths of the baselines are chosen by five folds of
the training part. A prediction is rounded to a star for the accuracy; its error is measured as it
is.

Then the statistics of tokens, on simulated scores: how often any token has q < 0.05 where scores
say nothing, and how often intervals contain the true effect.

With --yelp-only, figures of the second part stay as they are stored.

Constants of `AttentionRegressor` were chosen on reviews of `dev` alone. Figures go to
benchmarks/results/scores.json. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import StratifiedKFold

from machine import DATA, described, store
from tokensieve import AttentionClassifier, AttentionRegressor
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.evidence.score_ranks import ScoreImportance, score_importance
from tokensieve.task.score_measures import ScoreMeasures, mae_difference
from tokensieve.text.counts import Counts, score_sides

MIN_DOCUMENTS = 3
ALPHAS = (0.1, 0.3, 1.0, 3.0, 10.0)
STRENGTHS = (0.3, 1.0, 3.0, 10.0)
EXACT = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 100.0)  # to choose from; the last is all but `predict`
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
    exact = chosen_exact(train["text"], classes)
    print(f"exact={exact:g}, chosen on training reviews")
    near = classifier.predict_median(test["text"], exact)
    predicted["as often right"] = near.astype(np.float64)
    return predicted | baseline_predictions(train, test)


def baseline_predictions(train: pl.DataFrame, test: pl.DataFrame) -> dict[str, Numbers]:
    """The same of ridge regression, logistic regression and one for each threshold, on TF-IDF."""
    stars = train["stars"].to_numpy().astype(np.float64)
    classes = stars.astype(int)
    predicted: dict[str, Numbers] = {}
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


def chosen_exact(texts: pl.Series, classes: NDArray[np.int64]) -> float:
    """The smallest `exact` of `predict_median` with which models are at least as often right about
    training reviews that they have not seen as `predict` is."""
    n_right = np.zeros(len(EXACT))
    n_right_of_predict = 0
    for rows, held_out in StratifiedKFold(5, shuffle=True, random_state=0).split(texts, classes):
        model = AttentionClassifier(min_documents=MIN_DOCUMENTS)
        model.fit(texts[rows.tolist()], classes[rows])
        new = texts[held_out.tolist()]
        n_right_of_predict += int((model.predict(new) == classes[held_out]).sum())
        for place, exact in enumerate(EXACT):
            near = model.predict_median(new, exact)
            n_right[place] += (near == classes[held_out]).sum()
    is_enough = n_right >= n_right_of_predict
    return EXACT[int(is_enough.argmax())]


def judged(predicted: Numbers, scores: Numbers, ours: Numbers) -> dict[str, Any]:
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


def simulated(name: str, is_stored: bool) -> dict[str, Any]:
    """False discoveries and coverage, measured or as they are stored."""
    if is_stored:
        path = Path(__file__).resolve().parent / "results" / f"{name}.json"
        stored = json.loads(path.read_text(encoding="utf-8"))["figures"]
        return {part: stored[part] for part in ("false_discoveries", "coverage")}
    return {
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="scores")
    parser.add_argument("--yelp-only", action="store_true")
    options = parser.parse_args()
    name = options.name
    frame = pl.read_parquet(DATA / "yelp.parquet")
    train = frame.filter(pl.col("split") == "dev")
    test = frame.filter(pl.col("split") == "test")
    scores = test["stars"].to_numpy().astype(np.float64)
    predicted = predictions(train, test)
    judgements = {
        model: judged(values, scores, predicted["scores"]) for model, values in predicted.items()
    }
    judgements["as often right"]["accuracy_difference"] = asdict(
        PairedDifference.of(
            (predicted["classes"] == scores).astype(np.float64),
            (predicted["as often right"] == scores).astype(np.float64),
        )
    )
    judgements["as often right"]["mae_less_than_classes"] = mae_difference(
        predicted["as often right"], predicted["classes"], scores, seed=0
    ).to_dict()
    figures = {"yelp": judgements} | simulated(name, is_stored=options.yelp_only)
    for part, found in figures.items():
        for name_of_part, numbers in found.items():
            print(part, name_of_part, numbers)
    print(store(name, figures, described("scikit-learn", "scipy")))


if __name__ == "__main__":
    main()
