"""Weights of documents: repeated documents, left out ones, and scikit-learn's class_weight are what
they are checked against."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import compute_sample_weight

import tokensieve
from calls import Run, costly
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.choice import best_scale
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.fit import fit
from tokensieve.model.settings import TrainSettings
from tokensieve.model.start import initial_table, prior_of
from tokensieve.read.reader import read_corpus
from tokensieve.text.counts import Counts


def made(n: int = 40, classes: int = 2, seed: int = 0, types: int = 25) -> Counts:
    """Documents in which some types lean to a class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    rates = 0.4 + 1.2 * (np.arange(types) % (classes + 2) == labels[:, None])
    return Counts.from_matrix(rng.poisson(rates), labels, tuple("abcd"[:classes]))


def repeated(counts: Counts, times: Any) -> Counts:
    return counts.rows(np.repeat(np.arange(counts.n_documents), times))


def same_bits(a: Any, b: Any) -> None:
    assert a.scores.tobytes() == b.scores.tobytes() and a.values.tobytes() == b.values.tobytes()
    assert (a.sink, a.steps, a.prior.tobytes()) == (b.sink, b.steps, b.prior.tobytes())


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), classes=st.integers(2, 3))
def test_from_one_start_integer_weights_train_like_repeated_documents(
    seed: int, classes: int
) -> None:
    """Full batches, so that both gradients are one sum in another order: 60 steps agree to 1e-6."""
    counts = made(24, classes, seed)
    times = np.random.default_rng(seed).integers(1, 5, 24)
    many = repeated(counts, times)
    start = initial_table(
        counts.weighted_present, counts.weighted_class_sizes, prior_of(counts.class_sizes)
    )
    weighted = replace(counts, weights=times / times.mean())
    schedule = Schedule(60, batch_size=1000)
    (_, u, w), (_, u2, w2) = (next(train(c, *start, schedule, 60)) for c in (weighted, many))
    np.testing.assert_allclose(u, u2, atol=1e-6)
    np.testing.assert_allclose(w, w2, atol=1e-6)
    (_, u3, _) = next(train(counts, *start, schedule, 60))
    assert np.abs(u3 - u).max() > 1e-4 or np.ptp(times) == 0


@pytest.mark.slow
@settings(deadline=None)
@given(seed=st.integers(0, 1000))
def test_sums_medians_and_scales_count_weights_like_repeated_documents(seed: int) -> None:
    counts = made(30, 3, seed)
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 4, 30)
    times[:3] = 1
    many, weighted = repeated(counts, times), replace(counts, weights=times.astype(float))
    np.testing.assert_array_equal(weighted.weighted_present, many.present)
    np.testing.assert_array_equal(weighted.weighted_class_sizes, many.class_sizes)
    still = TrainSettings(
        score_rate=0.0, validation_share=0.0
    )  # the sink stays at the log of the median length
    assert fit(weighted, still).sink == fit(many, still).sink == np.log(np.median(many.lengths))
    f, prior = rng.normal(size=(30, 3)), np.zeros(3)
    f[np.arange(30), counts.labels] += 0.5
    again = best_scale(np.repeat(f, times, axis=0), prior, many.labels)
    assert best_scale(f, prior, counts.labels, weighted.weights) == pytest.approx(again, abs=1e-5)


@pytest.mark.parametrize("units", [False, True])
def test_integer_weights_answer_like_repeated_documents(units: bool) -> None:
    """The whole fit, the choices by held-out documents included, with copies on one side of every
    split. What is left is the order of batches and the smoothing of the start, which sees more
    documents: probabilities differ by 0.03 at most on average."""
    counts = made(300, 2, 5, 40)
    times = np.random.default_rng(0).integers(1, 4, 300)
    many = repeated(counts, times)
    copies = np.repeat(np.arange(300), times)
    own = np.arange(300)
    how = TrainSettings(validation_share=0.1 if units else 0.0)
    weighted = fit(replace(counts, weights=times.astype(float)), how, units=own if units else None)
    other = fit(many, how, units=copies if units else None)
    p, q = (1 / (1 + np.exp(-model.logits(counts.matrix)[:, 0])) for model in (weighted, other))
    assert np.abs(p - q).mean() < 0.03


@costly(25)
@given(seed=st.integers(0, 100), weight=st.floats(1e-3, 1e6))
def test_equal_weights_change_nothing(seed: int, weight: float) -> None:
    counts = made(40, 2, seed)
    same_bits(fit(counts), fit(replace(counts, weights=np.full(40, weight))))


@pytest.mark.slow
def test_documents_of_weight_zero_are_as_good_as_not_there() -> None:
    counts, rng = made(80, 3), np.random.default_rng(1)
    weights = rng.uniform(0.5, 2, 80)
    weights[rng.permutation(80)[:20]] = 0
    kept = np.flatnonzero(weights)
    one = fit(replace(counts, weights=weights))
    same_bits(one, fit(replace(counts.rows(kept), weights=weights[kept])))
    np.testing.assert_allclose(
        one.scores, fit(replace(counts, weights=4 * weights)).scores, rtol=1e-12
    )


@pytest.mark.slow
def test_balanced_is_the_weight_that_scikit_learn_computes() -> None:
    counts = made(90, 2)
    rare = counts.rows(np.flatnonzero((counts.labels == 0) | (np.arange(90) < 30)))
    X, y = rare.matrix.toarray(), np.array(["no", "yes"])[rare.labels]
    weight = compute_sample_weight("balanced", y)
    sizes = rare.class_sizes
    np.testing.assert_allclose(weight, (len(y) / (2 * sizes))[rare.labels])
    plain, balanced = (
        AttentionClassifier().fit(X, y),
        AttentionClassifier(class_weight="balanced").fit(X, y),
    )
    by_hand = AttentionClassifier().fit(X, y, sample_weight=weight)
    same_bits(balanced.trained_, by_hand.trained_)
    named = AttentionClassifier(class_weight={"no": 1.0, "yes": sizes[0] / sizes[1]}).fit(X, y)
    np.testing.assert_allclose(named.scores_, by_hand.scores_, atol=1e-6)
    assert (
        plain.prior_[0] == pytest.approx(np.log(sizes[1] / sizes[0]))
        and abs(balanced.prior_[0]) < 1e-12
    )
    nothing = np.zeros((1, X.shape[1]))
    assert balanced.predict_proba(nothing)[0, 1] == pytest.approx(0.5)
    assert plain.predict_proba(nothing)[0, 1] == pytest.approx(sizes[1] / len(y))


@pytest.mark.slow
def test_weights_of_texts_and_of_their_counts_are_the_same() -> None:
    counts = made(60, 2)
    texts = [
        " ".join(np.repeat([f"w{s}" for s in range(25)], row.astype(int)))
        for row in counts.matrix.toarray()
    ]
    weights = np.random.default_rng(2).uniform(0.1, 3, 60)
    of_texts = AttentionClassifier(class_weight="balanced").fit(texts, counts.labels, weights)
    matrix, _ = of_texts.counts_of(texts)
    of_counts = AttentionClassifier(class_weight="balanced").fit(matrix, counts.labels, weights)
    assert of_texts.scores_.tobytes() == of_counts.scores_.tobytes()


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([1.0] * 39, r"39 for 40 documents"),
        ([-1.0] + [1.0] * 39, r"-1 in place 0: a weight is a number from 0 to 1e100"),
        ([1.0] * 39 + [np.nan], r"nan in place 39"),
        ([np.inf] + [1.0] * 39, r"inf in place 0"),
        ([1e101] + [1.0] * 39, r"1e\+101 in place 0"),
        ([0.0] * 40, r"every weight is zero"),
        (["much"] * 40, r"must be numbers, one for each document"),
        ([[1.0]] * 40, r"an array of shape \(40, 1\) for 40 documents"),
        ([float(i % 2) for i in range(40)], r"every document of class 'a' has weight 0"),
    ],
)
def test_bad_weights_get_one_clear_line(weights: list[Any], problem: str) -> None:
    counts = made(40, 2)
    with pytest.raises(InputError, match=problem) as caught:
        AttentionClassifier().fit(
            counts.matrix, np.array(["a", "b"])[counts.labels], sample_weight=weights
        )
    assert "\n" not in str(caught.value)


def frame(n: int = 120) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    labels = np.arange(n) % 2
    texts = [
        f"{rng.choice(['fine', 'good'] if y else ['poor', 'bad'])} word{rng.integers(9)} thing"
        for y in labels
    ]
    return pl.DataFrame(
        {
            "text": texts,
            "label": labels,
            "w": rng.uniform(0.2, 4, n).round(3),
            "part": ["train", "train", "test"] * (n // 3),
        }
    )


def test_a_column_and_numbers_weigh_alike_and_follow_their_documents() -> None:
    data = frame()
    column = read_corpus(data, text="text", label="label", sample_weight="w")
    numbers = read_corpus(data, text="text", label="label", sample_weight=data["w"].to_list())
    assert column.weights is not None and numbers.weights is not None
    np.testing.assert_array_equal(column.weights, data["w"])
    np.testing.assert_array_equal(numbers.weights, data["w"])
    split = read_corpus(data, text="text", label="label", split="part", sample_weight="w")
    again = read_corpus(data, text="text", label="label", split="part", sample_weight=data["w"])
    train = data.filter(pl.col("part") == "train")["w"]
    np.testing.assert_array_equal(np.asarray(split.weights), train)
    np.testing.assert_array_equal(np.asarray(again.weights), train)
    assert split.test is not None and split.test.weights is None
    dropped = read_corpus(data, text="text", label="label", duplicates="drop", sample_weight="w")
    np.testing.assert_array_equal(
        np.asarray(dropped.weights), data["w"].to_numpy()[dropped.rows - 1]
    )
    streamed = read_corpus(data, text="text", label="label", stream=True, sample_weight="w")
    np.testing.assert_array_equal(np.asarray(streamed.weights), data["w"])


@pytest.mark.slow
def test_an_audit_weighs_the_model_and_counts_documents_elsewhere() -> None:
    data = frame(240)
    how: dict[str, Any] = {
        "text": "text",
        "label": "label",
        "settings": Settings(thorough=False, baseline=False),
    }
    plain = tokensieve.audit(data, **how)
    ones = tokensieve.audit(data, **how, sample_weight=np.full(240, 3.0))
    weighed = tokensieve.audit(data, **how, sample_weight="w")
    same_bits(plain.model.trained_, ones.model.trained_)
    counted = ["token", "class", "documents", "effect", "q_value"]
    assert plain.tokens.select(counted).equals(weighed.tokens.select(counted))
    assert not np.array_equal(plain.model.scores_, weighed.model.scores_)
    assert any("the model weights documents (0.2" in note for note in weighed.notes)
    assert not any("weighs" in note for note in plain.notes)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "no number in row 3"),
        ("much", "'much' in row 3"),
        ("-2", "-2 in row 3: a weight is a number from 0 to 1e100"),
    ],
)
def test_a_bad_weight_is_named_with_its_row(
    value: str, problem: str, tmp_path: Path, run: Run
) -> None:
    data = frame().with_columns(pl.col("w").cast(pl.String))
    data[2, "w"] = value
    data.write_csv(tmp_path / "d.csv")
    code, _, err = run(
        "train",
        str(tmp_path / "d.csv"),
        "--label",
        "label",
        "--weight",
        "w",
        "--out",
        str(tmp_path / "m"),
    )
    assert (code, err.count("\n")) == (2, 1) and problem in err and "(--weight)" in err
    with pytest.raises(InputError, match="in row 3"):
        read_corpus(tmp_path / "d.csv", label="label", sample_weight="w")


def test_the_option_goes_into_the_summary_and_is_refused_for_pairs(
    tmp_path: Path, run: Run
) -> None:
    frame().write_csv(tmp_path / "d.csv")
    code, _, err = run(
        "train",
        str(tmp_path / "d.csv"),
        "--weight",
        "w",
        "--out",
        str(tmp_path / "m"),
        "--label",
        "label",
    )
    assert code == 0, err
    assert '"weight": "w"' in (tmp_path / "m" / "summary.json").read_text()
    code, _, err = run("train", str(tmp_path / "d.csv"), "--pairs", "text,part", "--weight", "w")
    assert code == 2 and "--weight is for labelled documents" in err
    code, _, err = run("train", str(tmp_path / "d.csv"), "--label", "label", "--weight", "W")
    assert code == 2 and "did you mean 'w'?" in err


def test_balanced_classes_do_not_count_documents_of_weight_zero() -> None:
    counts = made(80, 2, 7)
    weights = np.random.default_rng(3).integers(0, 3, 80).astype(float)
    kept = np.flatnonzero(weights)
    all_rows = AttentionClassifier(class_weight="balanced", min_documents=1)
    all_rows.fit(counts.matrix, counts.labels, weights)
    without = AttentionClassifier(class_weight="balanced", min_documents=1)
    without.fit(counts.matrix[kept], counts.labels[kept], weights[kept])
    same_bits(all_rows.trained_, without.trained_)


def test_balanced_classes_weigh_the_same_whatever_the_weights_of_documents() -> None:
    """As if documents of integer weight were repeated rows: scikit-learn's factors for those."""
    labels = np.array([0, 0, 0, 1, 1, 2])
    weights = np.array([1.0, 2, 1, 3, 0, 5])
    model = AttentionClassifier(class_weight="balanced")
    combined = model._weights(labels, weights)
    assert combined is not None
    np.testing.assert_allclose(np.bincount(labels, combined), weights.sum() / 3)
    repeated_labels = np.repeat(labels, weights.astype(int))
    of_repeated = compute_sample_weight("balanced", repeated_labels)
    per_class = {label: of_repeated[repeated_labels == label][0] for label in range(3)}
    expected = weights * np.array([per_class[label] for label in labels])
    np.testing.assert_allclose(combined, expected)


@pytest.mark.parametrize("rate", [1e308, float("inf"), float("nan"), -1.0])
@pytest.mark.parametrize("name", ["score_rate", "value_rate"])
def test_step_sizes_lead_to_no_number_without_end(name: str, rate: float) -> None:
    with pytest.raises(InputError, match=name):
        TrainSettings(**{name: rate})
