"""Units that belong together: merged by brute force, split whole, and no false discoveries from
labels of whole units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.evidence.importance import token_importance
from tokensieve.read.corpus import index_by_first_appearance
from tokensieve.read.split import split_units
from tokensieve.text.counts import Counts

QUIET = settings(deadline=None, derandomize=True)


def phrases(seed: int, sentences: int = 250, types: int = 600) -> tuple[Counts, np.ndarray]:
    """Each sentence of 20 Zipf words is repeated as 1 to 15 of its parts; its label is a coin's."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(2, types + 2)
    rows, labels, units = [], [], []
    for u in range(sentences):
        words, label = rng.choice(types, 20, p=zipf / zipf.sum()), int(rng.integers(2))
        for _ in range(int(rng.integers(1, 16))):
            start = int(rng.integers(0, 18))
            part = words[start : start + int(rng.integers(2, 12))]
            rows.append(np.bincount(part, minlength=types))
            labels.append(label)
            units.append(u)
    matrix = np.array(rows)
    return Counts.from_matrix(matrix[:, (matrix > 0).sum(axis=0) >= 3], labels), np.array(units)


def test_a_random_label_per_sentence_gives_no_discovery_once_sentences_are_the_units() -> None:
    alone = together = 0
    for seed in range(8):
        counts, units = phrases(seed)
        alone += int((token_importance(counts).q_value[:, 1] < 0.05).sum())
        together += int(
            (token_importance(counts.merge_groups(units)[0]).q_value[:, 1] < 0.05).any()
        )
    assert alone > 100  # what counting parts as documents gives
    assert together <= 1


def test_a_word_that_carries_the_label_is_still_found() -> None:
    counts, units = phrases(9)
    dense = counts.matrix.toarray()
    dense[:, 0] = np.where(counts.labels == 1, np.random.default_rng(0).random(len(units)) < 0.3, 0)
    found = token_importance(Counts.from_matrix(dense, counts.labels).merge_groups(units)[0])
    assert found.q_value[0, 1] < 1e-6
    assert found.effect_interval[0][0, 1] > 0


@QUIET
@given(st.integers(0, 10**6))
def test_merging_is_a_loop_over_documents(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense, labels, units = rng.poisson(1.0, (30, 5)), rng.integers(0, 3, 30), rng.integers(0, 8, 30)
    whole = Counts.from_matrix(dense, labels, "abc").merge_groups(units)[0]
    expected: dict[tuple[int, int], np.ndarray] = {}
    for row, label, unit in zip(dense, labels, units, strict=True):
        expected[unit, label] = expected.get((unit, label), 0) + row
    np.testing.assert_array_equal(
        whole.matrix.toarray(), [expected[key] for key in sorted(expected)]
    )
    assert whole.labels.tolist() == [label for _, label in sorted(expected)]


@QUIET
@given(st.integers(0, 10**6))
def test_one_document_per_unit_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = Counts.from_matrix(rng.poisson(1.0, (30, 5)), np.arange(30) % 2)
    a, b = token_importance(counts.merge_groups(np.arange(30))[0]), token_importance(counts)
    np.testing.assert_array_equal(a.p_value, b.p_value)
    np.testing.assert_array_equal(a.effect_interval[0], b.effect_interval[0])


@QUIET
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.2, 0.5]))
def test_no_unit_is_on_both_sides_and_classes_keep_their_shares(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    units = rng.integers(0, 200, 2000)
    labels = (rng.random(2000) < 0.3).astype(int)
    test = split_units(units, labels, share, seed)
    assert not set(units[test].tolist()) & set(units[~test].tolist())
    for k in (0, 1):
        assert abs(test[labels == k].mean() - share) < 0.05
    np.testing.assert_array_equal(test, split_units(units, labels, share, seed))


def test_units_that_cannot_be_split_are_refused() -> None:
    with pytest.raises(InputError, match="at least two groups"):
        split_units(np.zeros(9, np.int64), np.arange(9) % 2)
    with pytest.raises(InputError, match="one is needed for each"):
        Counts.from_matrix(np.ones((4, 1)), [0, 1, 0, 1]).merge_groups(np.arange(3))


def test_values_of_a_column_become_numbers_in_order() -> None:
    assert index_by_first_appearance(["b", "a", "b", None]).tolist() == [0, 1, 0, 2]
