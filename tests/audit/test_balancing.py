"""Weights that balance features: reached where feasible, closest to 1, refused if too costly."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from calls import costly
from tokensieve import Settings, audit, read_corpus
from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.balance_features import rates_by_class, row_features
from tokensieve.auditing.balancing import (
    MAX_WEIGHT,
    TOLERANCE,
    balance,
    require_enough_documents,
)
from tokensieve.errors import InputError
from tokensieve.read.corpus import Corpus
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer


def rates(features: Floats, labels: Ints, weights: Floats) -> Floats:
    """The weighted rate of each feature in each class, the plain way, shape (K, J)."""
    classes = range(int(labels.max()) + 1)
    return np.array(
        [np.average(features[labels == c], axis=0, weights=weights[labels == c]) for c in classes]
    )


def drawn(seed: int, n: int = 400, n_classes: int = 2, n_features: int = 2) -> tuple[Floats, Ints]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    chance = rng.uniform(0.1, 0.7, (n_classes, n_features))
    return (rng.random((n, n_features)) < chance[labels]).astype(float), labels


@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4), n_features=st.integers(1, 3))
def test_balanced_features_are_equally_frequent_in_every_class(
    seed: int, n_classes: int, n_features: int
) -> None:
    features, labels = drawn(seed, n_classes=n_classes, n_features=n_features)
    result = balance(features, labels)
    assert result.balanced.all()
    by_class = rates(features, labels, result.weights)
    assert np.ptp(by_class, axis=0).max() < 2 * TOLERANCE
    sizes = np.bincount(labels)
    np.testing.assert_allclose(np.bincount(labels, result.weights), sizes, rtol=1e-5)
    assert result.weights.min() > 0
    assert result.weights.max() <= MAX_WEIGHT


@given(seed=st.integers(0, 10**6))
def test_of_pairs_each_feature_wins_half(seed: int) -> None:
    rng = np.random.default_rng(seed)
    differs = np.sign(rng.normal(0.4, 1, (300, 2))) * (rng.random((300, 2)) < 0.6)
    result = balance(differs, np.zeros(300, dtype=np.int64))
    assert result.balanced.all()
    assert np.abs(result.weights @ differs).max() / 300 < TOLERANCE


@st.composite
def awkward(draw: st.DrawFn) -> tuple[Floats, Ints]:
    """Few or many documents, classes of one, features that repeat, complement or never vary."""
    n = draw(st.sampled_from([1, 2, 3, 7, 30, 200]))
    n_classes = draw(st.integers(1, 4))
    n_features = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    labels = np.unique(rng.integers(0, n_classes, n), return_inverse=True)[1]
    chance = rng.beta(0.4, 0.4, (n_classes, n_features))
    features = (rng.random((n, n_features)) < chance[labels]).astype(float)
    other = draw(st.sampled_from(["none", "copy", "complement", "constant", "signs"]))
    if other == "copy":
        features[:, -1] = features[:, 0]
    elif other == "complement":
        features[:, -1] = 1 - features[:, 0]
    elif other == "constant":
        features[:, 0] = 1
    elif other == "signs":  # of pairs: which answer has the feature
        labels = np.zeros_like(labels)
        features *= np.sign(rng.normal(rng.normal(), 1, features.shape))
    return features, labels


@given(data=awkward(), several=st.booleans())
def test_whatever_the_data_balanced_features_are_balanced_and_weights_bounded(
    data: tuple[Floats, Ints], several: bool
) -> None:
    features, labels = data
    sets = labels[:, None]
    if several and labels.max():  # each class as a label of its own, which a document has or not
        sets = np.column_stack([labels == k for k in range(labels.max() + 1)]).astype(np.int64)
    result = balance(features, sets)
    weights = result.weights
    assert weights.shape == (len(labels),) and weights.min() > 0
    assert weights.max() <= MAX_WEIGHT * (1 + 1e-12)
    if not result.balanced.any():
        assert (weights == 1).all()
    balanced = features[:, result.balanced]
    for of_label in sets.T:
        np.testing.assert_allclose(
            np.bincount(of_label, weights), np.bincount(of_label), rtol=TOLERANCE
        )
        by_class = rates(balanced, of_label, weights)
        spread = by_class.max(axis=0) - by_class.min(axis=0)
        assert spread.max(initial=0) < 2 * TOLERANCE
        if not of_label.any():  # pairs: each feature wins half
            assert np.abs(by_class).max(initial=0) < TOLERANCE
    same_cell = np.unique(np.column_stack([sets, balanced]), axis=0, return_inverse=True)[1]
    for cell in np.unique(same_cell):  # documents that do not differ in it are treated alike
        assert np.ptp(weights[same_cell.reshape(-1) == cell]) < 1e-9


@given(data=awkward())
def test_a_feature_that_is_left_out_has_no_weights(data: tuple[Floats, Ints]) -> None:
    """Against the range of rates that weights of 1/20 to 20 reach in each class, by hand."""
    features, labels = data
    assume(labels.max() > 0)
    alone = features[:, :1]
    frequencies = [float(alone[labels == k].mean()) for k in range(labels.max() + 1)]
    lowest = max(_extreme_rate(p, smallest=True) for p in frequencies)
    highest = min(_extreme_rate(p, smallest=False) for p in frequencies)
    assume(lowest == highest or abs(lowest - highest) > 1e-9)
    assert balance(alone, labels).balanced.all() == (lowest <= highest)


def _extreme_rate(frequency: float, smallest: bool) -> float:
    """The lowest or highest weighted frequency in a class whose weights are 1/20 to 20, mean 1."""
    if frequency in (0.0, 1.0):
        return frequency
    if smallest:
        return 1 - _extreme_rate(1 - frequency, smallest=False)
    return min(MAX_WEIGHT * frequency, 1 - (1 - frequency) / MAX_WEIGHT)


def test_weights_are_the_closest_to_one() -> None:
    """Against the primal problem, solved by another method over documents instead of cells."""
    features, labels = drawn(3, n=24, n_features=1)

    def relative_entropy(weights: Floats) -> float:
        return float((weights * (np.log(weights) - 1)).sum())

    def differences(weights: Floats) -> Floats:
        sums = np.bincount(labels, weights) - np.bincount(labels)
        with_feature = rates(features, labels, weights)
        return np.append(sums, with_feature[0] - with_feature[1])

    primal = minimize(
        relative_entropy,
        np.ones(24),
        bounds=[(1e-6, MAX_WEIGHT)] * 24,
        constraints={"type": "eq", "fun": differences},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    np.testing.assert_allclose(balance(features, labels).weights, primal.x, atol=1e-4)


def test_one_feature_and_two_classes_have_a_closed_form() -> None:
    """The common odds of two equally large classes are the geometric mean of their odds."""
    features = np.array([1] * 30 + [0] * 70 + [1] * 5 + [0] * 95, dtype=float)[:, None]
    labels = np.repeat([0, 1], 100)
    common_odds = np.sqrt((30 / 70) * (5 / 95))
    weighted = rates(features, labels, balance(features, labels).weights)
    np.testing.assert_allclose(weighted, common_odds / (1 + common_odds), atol=1e-6)


def test_a_feature_of_one_class_only_cannot_be_balanced() -> None:
    features, labels = drawn(0, n_features=2)
    features[labels == 0, 0] = 0
    result = balance(features, labels)
    assert result.balanced.tolist() == [False, True]
    assert np.ptp(rates(features, labels, result.weights)[:, 1]) < 2 * TOLERANCE


def test_weights_are_one_where_nothing_is_chosen_or_all_is_balanced() -> None:
    labels = np.repeat([0, 1], 50)
    assert (balance(np.empty((100, 0)), labels).weights == 1).all()
    even = np.tile([1.0, 0.0], 50)[:, None]
    np.testing.assert_allclose(balance(even, labels).weights, 1, atol=1e-6)


def test_weights_that_leave_too_little_evidence_are_refused() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 1000)
    mark = (rng.random(2000) < np.where(labels == 0, 0.96, 0.04)).astype(float)
    harmless = (rng.random(2000) < 0.5).astype(float)
    features = np.column_stack([harmless, mark])
    result = balance(features, labels)
    assert result.effective_fraction < 0.25
    with pytest.raises(InputError, match="leave out 'mark'"):
        require_enough_documents(result, ["harmless", "mark"], features, labels)
    for name, advice in (("⟨**bold**⟩", "leave out '⟨"), ("⟨length 0–5⟩", "leave out --length")):
        with pytest.raises(InputError, match=advice) as caught:
            require_enough_documents(result, ["harmless", name], features, labels)
        assert "mask" not in str(caught.value)  # it cuts words


KINDS_OF_DATA = ("classes", "columns", "scores", "pairs")


def awkward_corpus(kind: str, seed: int) -> Corpus:
    """Texts whose length, exclamation marks and bold type differ between classes."""
    rng = np.random.default_rng(seed)
    n = 160
    rates = rng.uniform(0.1, 0.6, 3)
    outcomes = rng.integers(0, 3, n)
    texts = []
    for outcome in outcomes:
        longest = 28 if rng.random() < rates[outcome] else 8
        words = ["stone"] * int(rng.integers(2, longest))
        if rng.random() < rates[2 - outcome]:
            words.insert(0, "**note**")
        if rng.random() < rates[outcome]:
            words[-1] += "!"
        texts.append(" ".join(words))
    if kind == "pairs":
        frame = pl.DataFrame({"chosen": texts[::2], "rejected": texts[1::2]})
        return read_corpus(frame, pairs=("chosen", "rejected"))
    frame = pl.DataFrame({"text": texts, "label": outcomes, "sent by": rng.choice(["a", "b"], n)})
    if kind == "columns":
        return read_corpus(frame, text="text", label="label", columns=("sent by",))
    task = "scores" if kind == "scores" else "classes"
    return read_corpus(frame, text="text", label="label", task=task)


@pytest.mark.parametrize("kind", KINDS_OF_DATA)
@costly(10)
@given(seed=st.integers(0, 10**6))
def test_words_forms_lengths_and_columns_are_balanced_in_data_of_every_kind(
    kind: str, seed: int
) -> None:
    corpus = awkward_corpus(kind, seed)
    tokens = ["note", "⟨**bold**⟩"]
    tokenizer: Tokenizer = WordTokenizer()
    if kind == "columns":
        tokens.append("sent_by:a")
        tokenizer = FieldTokenizer(WordTokenizer(), corpus.fields, tuple(corpus.columns.items()))
    data = row_features(corpus, tokens, with_length=True, tokenizer=tokenizer)
    assert len(data.names) > len(tokens)
    result = balance(data.features, data.labels)
    table = rates_by_class(data, result.weights)
    balanced = [
        name for name, is_balanced in zip(data.names, result.balanced, strict=True) if is_balanced
    ]
    after = (
        table.filter(pl.col("feature").is_in(balanced))
        .group_by("feature")
        .agg(low=pl.col("after").min(), high=pl.col("after").max())
    )
    assert after.height == len(balanced)
    if kind == "pairs":
        assert ((after["low"] - 0.5).abs() < 1e-4).all()
    else:
        assert (after["high"] - after["low"] < 1e-5).all()
    assert result.weights.min() > 0 and result.weights.max() <= MAX_WEIGHT * (1 + 1e-12)


@pytest.mark.parametrize(("rate_elsewhere", "is_planned"), [(0.0, False), (0.06, True)])
def test_length_is_planned_if_each_class_has_texts_of_the_length_that_tells_it(
    rate_elsewhere: float, is_planned: bool
) -> None:
    """The loop was printed, and after it the length told the class as before."""
    rng = np.random.default_rng(0)
    words = [f"word{number}" for number in range(60)]
    labels = rng.choice(["a", "b", "c"], 900)
    is_long = rng.random(900) < np.where(labels == "a", 0.5, rate_elsewhere)
    sizes = np.where(is_long, rng.integers(25, 45, 900), rng.integers(4, 14, 900))
    texts = [" ".join(rng.choice(words, size)) for size in sizes]
    found = audit((texts, labels.tolist()), Settings(baseline=False, thorough=False))
    assert any("⟨length 20–50⟩" in finding.tokens for finding in found.shortcuts)
    assert found.balance_plan.with_length is is_planned
