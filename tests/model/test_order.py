"""The order of the rows changes no bit of a model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.arrays import Ints
from tokensieve.model.attention import Model
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.fit import fit, refit
from tokensieve.model.order import document_hashes, in_canonical_order, mix
from tokensieve.model.settings import TrainSettings
from tokensieve.text.counts import Counts


def drawn(n: int, seed: int = 0) -> Counts:
    """Documents of few types, many of them equal, with weights of which many are equal."""
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.5, 1.0, 2.0], n)
    counts = Counts.from_matrix(rng.poisson(0.3, (n, 6)), rng.integers(2, size=n))
    return Counts(counts.matrix, counts.labels, counts.classes, counts.tokens, weights)


def permuted(counts: Counts, order: Ints) -> Counts:
    return counts.rows(order)


def same_bits(one: Model, other: Model) -> None:
    for name in ("scores", "values", "prior", "validation"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.sink, one.steps) == (other.sink, other.steps)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_documents_in_another_order_give_the_same_model(weighted: bool, grouped: bool) -> None:
    counts = drawn(120)
    if not weighted:
        counts = Counts(counts.matrix, counts.labels, counts.classes, counts.tokens)
    groups = np.random.default_rng(1).integers(30, size=120) if grouped else None
    settings = TrainSettings(min_documents=1)
    model = fit(counts, settings, units=groups)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(120)
        names = None if groups is None else (groups * 7 % 31)[order]
        again = fit(permuted(counts, order), settings, units=names)
        same_bits(model, again)
        same_bits(
            refit(counts, model, 120, settings),
            refit(permuted(counts, order), model, 120, settings),
        )


def test_pairs_in_another_order_give_the_same_model_but_not_with_other_winners() -> None:
    counts = drawn(120)
    counts = Counts(counts.matrix, counts.labels * 0, ("preferred", "rejected"), counts.tokens)
    settings = TrainSettings(min_documents=1)
    model = fit(counts, settings, pairs=True)
    pairs = np.random.default_rng(2).permutation(60)
    order = np.column_stack([2 * pairs, 2 * pairs + 1]).ravel()
    same_bits(model, fit(permuted(counts, order), settings, pairs=True))
    turned = fit(permuted(counts, np.arange(120) ^ 1), settings, pairs=True)
    assert np.abs(turned.values - model.values).max() > 0.1


def test_texts_in_another_order_give_the_same_classifier() -> None:
    rng = np.random.default_rng(0)
    words = np.array("good fine bad poor film plot scene actor".split())
    texts = [" ".join(rng.choice(words, 6)) for _ in range(80)]
    labels = np.array(["good" in text or "fine" in text for text in texts])
    order = rng.permutation(80)
    one = AttentionClassifier(ngrams=2, min_documents=1).fit(texts, labels)
    other = AttentionClassifier(ngrams=2, min_documents=1)
    other.fit([texts[i] for i in order], labels[order])
    same_bits(one.trained_, other.trained_)


@given(st.integers(0, 2**32), st.integers(1, 30))
@settings(deadline=None, max_examples=20)
def test_hashes_are_those_of_a_loop_over_the_entries(seed: int, n: int) -> None:
    counts = drawn(n, seed)
    expected = []
    for k in range(n):
        row = counts.matrix[[k]]
        types = row.indices.astype(np.uint64)
        bits = row.data.view(np.uint64)
        total = mix(mix(types) + bits).sum(dtype=np.uint64)
        label = mix(counts.labels[[k]].astype(np.uint64))
        expected.append(mix(total + label)[0])
    np.testing.assert_array_equal(document_hashes(counts), np.array(expected, np.uint64))


def test_equal_documents_of_different_groups_are_told_apart_by_their_groups() -> None:
    """Rows 0 and 1 are equal; which of them comes first depends on the rest of their group."""
    matrix = np.array([[1, 0], [1, 0], [0, 1], [0, 2]])
    counts = Counts.from_matrix(matrix, [0, 0, 1, 1])
    groups = np.array([5, 9, 5, 9])
    one = in_canonical_order(counts, groups, pairs=False)
    order = np.array([1, 0, 3, 2])
    other = in_canonical_order(permuted(counts, order), groups[order], pairs=False)
    np.testing.assert_array_equal(one.counts.matrix.toarray(), other.counts.matrix.toarray())
    np.testing.assert_array_equal(one.groups, other.groups)
