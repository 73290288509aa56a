"""Rank statistics of scores, against SciPy, permutations, and what must not change them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import false_discovery_control, mannwhitneyu, rankdata

from tokensieve.errors import InputError
from tokensieve.evidence.score_ranks import (
    ScoreImportance,
    effect_interval,
    middle_ranks,
    score_importance,
)
from tokensieve.text.counts import Counts, score_sides

N_DRAWS = 150  # of a coverage of 95%, with a standard error of 1.8%


def counted(presence: np.ndarray, scores: np.ndarray) -> Counts:
    plain = Counts.from_matrix(presence, score_sides(scores))
    return Counts(plain.matrix, plain.labels, ("lower", "higher"), plain.tokens, None, scores)


def example(
    seed: int, n: int = 60, types: int = 12, levels: int = 5
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, levels + 1, n).astype(float)
    presence = rng.poisson(rng.uniform(0.05, 1.0, types), (n, types))
    presence[:, 0] = scores >= np.median(scores)  # says much
    return presence, scores


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_effect_and_q_are_those_of_scipy(levels: int) -> None:
    presence, scores = example(0, levels=levels)
    found = score_importance(counted(presence, scores))
    for s in range(presence.shape[1]):
        has = presence[:, s] > 0
        u = mannwhitneyu(scores[has], scores[~has], method="asymptotic")
        assert found.effect[s] == pytest.approx(2 * u.statistic / (has.sum() * (~has).sum()) - 1)
        assert found.mean_with[s] == pytest.approx(scores[has].mean())
        assert found.mean_without[s] == pytest.approx(scores[~has].mean())
        # SciPy's normal curve, without its correction for continuity
        normal = mannwhitneyu(scores[has], scores[~has], method="asymptotic", use_continuity=False)
        assert found.p_value[s] == pytest.approx(normal.pvalue, rel=0.15, abs=0.01)
    assert_allclose(found.q_value, false_discovery_control(found.p_value))
    assert_allclose(middle_ranks(scores), rankdata(scores))


def test_p_is_near_the_exact_one_where_most_scores_are_equal() -> None:
    """Twelve documents, of which two are toxic: all 220 choices of three are counted."""
    scores = np.array([0.0] * 10 + [0.8, 0.9])
    ranks = rankdata(scores)
    middle = 3 * ranks.mean()
    sums = np.array([ranks[list(choice)].sum() for choice in combinations(range(12), 3)])
    for chosen in ([0, 1, 11], [0, 10, 11]):
        presence = np.zeros((12, 1), dtype=int)
        presence[chosen] = 1
        found = score_importance(counted(presence, scores)).p_value[0]
        at_least = (sums >= ranks[chosen].sum() - 1e-9).mean()
        assert ranks[chosen].sum() > middle
        assert at_least / 2 <= found <= 4 * at_least


def test_false_discoveries_are_controlled_where_scores_are_skewed() -> None:
    """Scores that say nothing, nine of ten of them 0: hardly any token may have q < 0.05."""
    rng = np.random.default_rng(0)
    n_with_any = 0
    n_small_p = []
    for _ in range(100):
        scores = np.where(rng.random(200) < 0.9, 0.0, rng.random(200))
        presence = rng.random((200, 50)) < rng.uniform(0.02, 0.5, 50)
        found = score_importance(counted(presence.astype(int), scores))
        n_with_any += bool((found.q_value < 0.05).any())
        n_small_p.append(float((found.p_value < 0.05).mean()))
    assert n_with_any <= 10
    assert 0.02 < np.mean(n_small_p) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("levels", [5, 10**6])
def test_intervals_contain_the_truth(levels: int) -> None:
    """Of two normal distributions one apart, cut into levels; the truth is that of many draws."""
    rng = np.random.default_rng(1)

    def draw(n: int, shift: float) -> np.ndarray:
        numbers = rng.normal(shift, 1, n)
        return np.clip(np.rint(numbers * 1.5), -2, 2) if levels == 5 else numbers

    many_with, many_without = draw(4000, 1.0), draw(4000, 0.0)
    truth = float(np.sign(many_with[:, None] - many_without).mean())
    n_inside = 0
    for _ in range(N_DRAWS):
        scores = np.concatenate([draw(15, 1.0), draw(85, 0.0)])
        presence = (np.arange(100) < 15).astype(int)[:, None]
        low, high = score_importance(counted(presence, scores)).effect_interval
        n_inside += bool(low[0] <= truth <= high[0])
    assert 0.92 <= n_inside / N_DRAWS <= 1.0


def test_newcombes_interval_of_a_published_size() -> None:
    """θ = 1 gives an end of 1 and a start below it that rises with the number of documents."""
    ends = effect_interval(np.array([1.0, 1.0, 0.0]), np.array([5, 50, 50]), 100)
    assert ends.high[0] == ends.high[1] == 1.0
    assert ends.low[0] < ends.low[1] < 1.0
    assert ends.low[2] == pytest.approx(-ends.high[2])


@given(st.integers(0, 10**6), st.floats(0.1, 50), st.floats(-100, 100))
def test_only_the_order_of_scores_counts(seed: int, factor: float, constant: float) -> None:
    presence, scores = example(seed)
    found = score_importance(counted(presence, scores))
    moved = score_importance(counted(presence, factor * scores + constant))
    turned = score_importance(counted(presence, -scores))
    assert_allclose(moved.effect, found.effect, atol=1e-12)
    assert_allclose(moved.p_value, found.p_value, rtol=1e-9)
    assert_allclose(turned.effect, -found.effect, atol=1e-12)
    assert_allclose(turned.p_value, found.p_value, rtol=1e-6)
    assert_allclose(turned.effect_interval[0], -found.effect_interval[1], atol=1e-9)
    check_ranges(found)


def check_ranges(found: ScoreImportance) -> None:
    low, high = found.effect_interval
    assert (np.abs(found.effect) <= 1 + 1e-12).all()
    assert ((low <= found.effect) & (found.effect <= high)).all()
    assert ((found.p_value >= 0) & (found.p_value <= 1)).all()
    assert (found.q_value >= found.p_value - 1e-12).all()
    is_comparable = (found.documents > 0) & (low > -1)
    excludes_zero = (low > 0) | (high < 0)
    np.testing.assert_array_equal(
        excludes_zero[is_comparable], (found.p_value < 0.05)[is_comparable]
    )


def test_copies_of_a_group_count_once() -> None:
    presence, scores = example(3)
    once = score_importance(counted(presence, scores))
    copied = counted(np.repeat(presence, 4, axis=0), np.repeat(scores, 4))
    grouped = score_importance(copied, units=np.repeat(np.arange(len(scores)), 4))
    assert_allclose(grouped.effect, once.effect)
    assert_allclose(grouped.p_value, once.p_value)
    assert (grouped.documents == once.documents).all()


def test_types_in_every_document_or_in_none_say_nothing() -> None:
    presence = np.array([[1, 0], [1, 0], [1, 0]])
    found = score_importance(counted(presence, np.array([1.0, 2.0, 3.0])))
    assert found.effect.tolist() == [0, 0] and found.p_value.tolist() == [1, 1]
    assert found.effect_interval[0].tolist() == [-1, -1]
    assert found.to_frame()["mean_with"].to_list() == [2.0, None]


def test_equal_scores_have_no_effect() -> None:
    presence, _ = example(4)
    found = score_importance(counted(presence, np.full(len(presence), 4.0)))
    assert not found.effect.any() and (found.p_value == 1).all()


def test_documents_without_scores_are_refused() -> None:
    with pytest.raises(InputError, match="needs at least two documents"):
        score_importance(Counts.from_matrix(np.eye(2), [0, 1]))
