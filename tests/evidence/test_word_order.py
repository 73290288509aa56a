"""Pairs of words: order and joint presence against brute force, planted pairs, shuffled labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact, hypergeom

from tokensieve.evidence.intervals import false_discovery
from tokensieve.evidence.order import (
    WINDOW,
    CellTerms,
    WordRuns,
    count_pairs,
    documents_in_order,
    fisher_p,
    hypergeometric_tail,
    interaction_z,
    predictive_pairs,
    q_values_below,
)

WORDS = [f"w{i}" for i in range(60)]


def runs_of(texts: list[list[str]], labels: np.ndarray) -> WordRuns:
    words = sorted({word for text in texts for word in text})
    place = {word: i for i, word in enumerate(words)}
    ids = np.array([place[word] for text in texts for word in text], dtype=np.int32)
    starts = np.cumsum([0, *map(len, texts)])
    return WordRuns(ids, starts, np.arange(len(texts)), words, labels, 2)


def random_texts(n: int, seed: int) -> tuple[list[list[str]], np.ndarray]:
    rng = np.random.default_rng(seed)
    texts = [rng.choice(WORDS, 25).tolist() for _ in range(n)]
    return texts, rng.integers(0, 2, n)


def test_counts_are_those_of_a_loop() -> None:
    texts, labels = random_texts(20, 0)
    runs = runs_of(texts, labels)
    counts = count_pairs(runs)
    for a, b in ((0, 1), (3, 2), (7, 30)):
        first, second = runs.words[a], runs.words[b]
        has_order = [
            any(
                text[i] == first and second in text[i + 1 : i + 1 + WINDOW]
                for i in range(len(text))
            )
            for text in texts
        ]
        has_both = [first in text and second in text for text in texts]
        for k in (0, 1):
            assert counts.before[k, a, b] == np.sum(np.array(has_order) & (labels == k))
            assert counts.both[k, a, b] == np.sum(np.array(has_both) & (labels == k))
        assert documents_in_order(runs, a, b).tolist() == np.flatnonzero(has_order).tolist()


def test_an_order_only_mark_is_found_and_none_with_shuffled_labels() -> None:
    texts, labels = random_texts(800, 1)
    rng = np.random.default_rng(2)
    for text, label in zip(texts, labels, strict=True):
        if rng.random() < 0.2:
            text[5], text[9] = ("alpha", "beta") if label else ("beta", "alpha")
    first, *others = predictive_pairs(runs_of(texts, labels))
    assert {first.first, first.second} == {"alpha", "beta"} and first.kind == "order"
    assert first.rate == 1 and not others
    assert not predictive_pairs(runs_of(texts, rng.permutation(labels)))


def test_a_joint_pair_is_found_that_no_word_shows() -> None:
    texts, labels = random_texts(2000, 3)
    rng = np.random.default_rng(4)
    for text, label in zip(texts, labels, strict=True):
        has_first = rng.random() < 0.4
        if has_first:
            text.insert(3, "alpha")
        if has_first == bool(label):
            text.insert(20, "beta")
    found = predictive_pairs(runs_of(texts, labels))
    assert found and {found[0].first, found[0].second} == {"alpha", "beta"}


def test_the_exact_test_is_scipys() -> None:
    expected = fisher_exact([[18, 2], [10, 30]], alternative="greater").pvalue
    one = fisher_p(np.array([18]), np.array([20]), np.array([28]), np.array([60]), 1)
    assert one[0] == pytest.approx(expected)


def test_the_hypergeometric_tail_is_scipys() -> None:
    rng = np.random.default_rng(0)
    n_all = rng.integers(50, 30_000, 1_000)
    n_marked = rng.integers(1, n_all)
    n_drawn = rng.integers(1, n_all)
    expected_hits = n_marked * (n_drawn / n_all)
    fewest = np.ceil(expected_hits + 3 * np.sqrt(expected_hits)).astype(np.int64)
    fewest = np.minimum(fewest, np.minimum(n_marked, n_drawn))
    tail = hypergeometric_tail(fewest, n_all, n_marked, n_drawn)
    scipys = hypergeom.sf(fewest - 1, n_all, n_marked, n_drawn)
    np.testing.assert_allclose(tail, scipys, rtol=1e-9, atol=1e-300)


def test_the_interaction_is_the_log_odds_of_its_table() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 30, (4, 50))  # with both words, one of them (twice), neither
    sizes[3] = 200 - sizes[:3].sum(axis=0)
    cells = rng.integers(0, sizes[:3] + 1)
    class_size = 110
    z = interaction_z(cells, sizes[:3], class_size, 200, CellTerms.of(200))
    in_class = np.vstack([cells, class_size - cells.sum(axis=0)]) + 0.5
    in_others = sizes + 1 - in_class
    logits = np.log(in_class / in_others)
    expected = logits[0] - logits[1] - logits[2] + logits[3]
    assert z == pytest.approx(expected / np.sqrt((1 / in_class + 1 / in_others).sum(axis=0)))


def test_small_q_values_are_those_of_all_tests() -> None:
    p_value = np.random.default_rng(4).uniform(size=500) ** 4
    of_all = false_discovery(p_value[:, None])[:, 0]
    q_value = q_values_below(0.01, p_value)
    is_small = of_all < 0.01
    assert 10 < is_small.sum() < 400
    assert np.array_equal(q_value[is_small], of_all[is_small])
    assert (q_value[~is_small] == 1).all()
