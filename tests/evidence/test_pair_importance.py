"""Differences within pairs: p against all swaps written out, win rates against scikit-learn and
against a known judge."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from calls import fast_first
from tokensieve.arrays import Floats
from tokensieve.auditing.demo import UTILITIES, demo_pairs
from tokensieve.auditing.preferences import log_length_ratios
from tokensieve.evidence.importance import token_importance
from tokensieve.evidence.intervals import Occurrences, Share, share_interval
from tokensieve.evidence.pairs import (
    FlipMoments,
    _flipped_p,
    _length_features,
    _length_weights,
    pair_importance,
    win_rates,
)
from tokensieve.read.pairs import read_pairs
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import count_corpus


def p_of(d: Floats) -> float:
    """`_flipped_p` of one type's differences."""
    x = d[d != 0]
    sums = [np.array([float(y.sum())]) for y in (x, np.abs(x), x**2, x**4)]
    return float(_flipped_p(FlipMoments(*sums, np.array([len(x)])))[0])


def every_swap(d: Floats) -> float:
    """The share of all 2^m swaps whose sum is at least as far from zero."""
    sums = np.array([np.dot(signs, d) for signs in product((-1, 1), repeat=len(d))])
    return float(np.mean(np.abs(sums) >= abs(d.sum()) - 1e-12))


@pytest.mark.parametrize("seed", range(12))
def test_p_is_close_to_that_of_all_swaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = rng.normal(0.3 * (seed % 4), 1.0, 11)
    assert p_of(d) == pytest.approx(every_swap(d), abs=0.035)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 12])
def test_units_that_all_agree_give_no_less_than_their_swaps_allow(m: int) -> None:
    assert p_of(np.full(m, 0.1)) >= every_swap(np.full(m, 0.1)) - 1e-12


@pytest.mark.parametrize("weight", [3.0, 6.0, 12.0])
def test_one_unit_that_outweighs_the_others_does_not_make_evidence(weight: float) -> None:
    d = np.append(np.random.default_rng(4).uniform(0.1, 1.0, 11), weight)
    assert p_of(d) >= every_swap(d) - 0.02


def test_a_type_that_no_pair_has_on_one_side_shows_nothing() -> None:
    assert p_of(np.zeros(4)) == 1.0


def test_chance_gives_uniform_p() -> None:
    rng = np.random.default_rng(1)
    found = np.array([p_of(rng.exponential(size=60) * rng.choice([-1, 1], 60)) for _ in range(600)])
    assert np.mean(found < 0.05) == pytest.approx(0.05, abs=0.02)
    assert np.mean(found < 0.5) == pytest.approx(0.5, abs=0.06)


def random_counts(n: int, types: int, seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    return Counts.from_matrix(
        rng.poisson(0.8, (2 * n, types)) * 1.0, np.tile([1, 0], n), ("rejected", "chosen")
    )


def test_the_effect_is_half_the_mean_difference_of_shares() -> None:
    counts = random_counts(40, 6, 2)
    found = pair_importance(counts, np.arange(40))
    x = counts.matrix.toarray() / np.maximum(counts.lengths, 1)[:, None]
    assert np.allclose(found.effect[:, 1], (x[::2] - x[1::2]).mean(axis=0) / 2)
    plain = token_importance(counts)
    assert np.allclose(found.effect, plain.effect)  # as both classes are equally large
    assert np.array_equal(found.class_documents, plain.class_documents)
    assert np.allclose(found.posterior_difference, plain.posterior_difference)
    assert np.allclose(found.reach, plain.reach)
    assert np.all(
        (found.p_value < 0.05) == ((found.effect_interval[0] > 0) | (found.effect_interval[1] < 0))
    )


@given(st.integers(0, 10_000))
@settings(deadline=None)
def test_swapping_all_sides_mirrors_everything(seed: int) -> None:
    counts = random_counts(15, 5, seed)
    units = np.arange(15) // 3
    turned = Counts(
        counts.matrix[np.arange(30).reshape(-1, 2)[:, ::-1].ravel()],
        counts.labels,
        counts.classes,
        counts.tokens,
    )
    a, b = pair_importance(counts, units), pair_importance(turned, units)
    assert np.allclose(a.effect, -b.effect)
    assert np.allclose(a.p_value, b.p_value)
    assert np.allclose(a.posterior_interval[0], -b.posterior_interval[1])
    one, other = (win_rates(c, units, np.zeros(15)).sort("token") for c in (counts, turned))
    assert np.allclose(one["win_rate"], 1 - other["win_rate"])
    assert np.allclose(one["low"], 1 - other["high"])


def test_pairs_of_one_prompt_are_one_piece_of_evidence() -> None:
    """The same pair twenty times over, as one unit, says no more than once."""
    counts = random_counts(20, 4, 7)
    many = counts.rows(np.repeat(np.arange(40).reshape(-1, 2), 20, axis=0).ravel())
    once, often = (
        pair_importance(counts, np.arange(20)),
        pair_importance(many, np.repeat(np.arange(20), 20)),
    )
    assert np.allclose(once.p_value, often.p_value)
    assert pair_importance(many, np.arange(400)).p_value.min() < once.p_value.min()


def test_formatting_counts_as_a_presence() -> None:
    counts = random_counts(30, 3, 4)
    mark = np.tile([1.0, 0.0], 30)[:, None]
    whole = Counts(
        sp.csr_array(np.hstack([counts.matrix.toarray(), mark])),
        counts.labels,
        counts.classes,
        np.array([*"abc", "⟨x⟩"], object),
    )
    found, plain = pair_importance(whole, np.arange(30), 1), pair_importance(counts, np.arange(30))
    assert np.allclose(found.effect[:3], plain.effect)
    assert found.effect[3, 1] == pytest.approx(0.5 / counts.lengths.mean())
    assert found.class_documents[3].tolist() == [0, 30]


def test_units_that_hold_both_sides_alike_narrow_the_share() -> None:
    a = np.array([[30.0]])
    wide, narrow = (
        share_interval(Occurrences(a, a, a, a, shared), np.array([[2.0]])) for shared in (0.0, 20.0)
    )
    assert narrow.estimate == wide.estimate == 0
    assert narrow.high[0, 0] < wide.high[0, 0]


@pytest.mark.slow
def test_rates_are_those_of_a_logistic_regression_with_length() -> None:
    rng = np.random.default_rng(0)
    n, log_ratio = 400, rng.normal(0.3, 0.8, 400)
    delta = rng.choice([-1.0, 0.0, 1.0], n)
    matrix = sp.csr_array(
        np.column_stack([np.ones(2 * n), np.column_stack([delta > 0, delta < 0]).ravel()]).astype(
            float
        )
    )
    features = _length_features(log_ratio)
    assert np.allclose(features.sum(axis=1), log_ratio)
    counts = Counts(
        matrix, np.tile([1, 0], n), ("rejected", "chosen"), np.array(["both", "one"], object)
    )
    found = win_rates(counts, np.arange(n), log_ratio).row(0, named=True)
    assert (found["token"], found["pairs"]) == ("one", int(np.abs(delta).sum()))
    offset = features @ _length_weights(features)
    # θ alone, offset fixed, half a win and half a loss: by a scan of the likelihood
    grid = np.linspace(-3, 3, 60_001)
    used = delta != 0
    margin = offset[used][:, None] + delta[used][:, None] * grid
    best = grid[
        (
            np.logaddexp(0, -margin).sum(axis=0)
            + (np.logaddexp(0, -grid) + np.logaddexp(0, grid)) / 2
        ).argmin()
    ]
    assert logit(found["equal_length_win_rate"]) == pytest.approx(best, abs=2e-4)
    assert found["win_rate"] == pytest.approx((found["wins"] + 0.5) / (found["pairs"] + 1))


def test_weights_of_length_are_scikit_learns() -> None:
    rng = np.random.default_rng(3)
    x = _length_features(rng.normal(size=3000))
    x *= np.where(rng.random(3000) < expit(1.5 * x.sum(axis=1)), 1, -1)[:, None]
    both = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-10).fit(
        np.vstack([x, -x]), np.repeat([1, 0], 3000)
    )
    assert np.allclose(_length_weights(x), both.coef_[0], atol=0.02)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_pairs_have_finite_weights(rows: int) -> None:
    assert np.isfinite(_length_weights(_length_features(np.full(rows, 2.0)))).all()


@pytest.mark.slow
def test_a_known_judge_is_found_and_length_is_told_apart() -> None:
    """Planted: U = 3 log length + 2 tapestry; "furthermore" is only in longer answers."""
    corpus = read_pairs(demo_pairs(3000, 3), pairs=("chosen", "rejected"))
    assert corpus.pairs is not None
    counts = count_corpus(corpus).counts
    frame = win_rates(counts, corpus.pairs.units, log_length_ratios(corpus))
    found = frame.row(by_predicate=pl.col("token") == "tapestry", named=True)
    assert found["equal_length_low"] < expit(UTILITIES["tapestry"]) < found["equal_length_high"]
    found = frame.row(by_predicate=pl.col("token") == "furthermore", named=True)
    assert found["win_rate"] > 0.6
    assert found["q_value"] < 0.001
    assert found["equal_length_low"] < 0.5 < found["equal_length_high"]
    assert frame.filter(pl.col("equal_length_q_value") < 0.05)["token"][0] == "tapestry"


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "most"), fast_first([(8, 2), (25, 4)]))
def test_at_equal_length_a_useless_word_is_called_useful_no_more_often_than_it_should(
    seeds: int, most: int
) -> None:
    false = 0
    for seed in range(seeds):
        corpus = read_pairs(demo_pairs(250, 100 + seed), pairs=("chosen", "rejected"))
        assert corpus.pairs is not None
        counts = count_corpus(corpus).counts
        found = win_rates(counts, corpus.pairs.units, log_length_ratios(corpus)).filter(
            token="furthermore"
        )
        false += int(found["equal_length_p_value"][0] < 0.05)
    assert false <= most  # a twentieth expected


@pytest.mark.parametrize(("wins", "losses"), [(31, 0), (19, 1), (60, 20), (12, 12), (3, 9)])
def test_intervals_of_win_rates_are_wilsons_where_pairs_are_independent(
    wins: int, losses: int
) -> None:
    """They had the variance of a rate of one half: true rates of 95% were inside in half of the
    cases."""
    n = wins + losses
    matrix = np.ones((2 * n, 2))
    matrix[:, 1] = np.repeat([1, 0], [wins, losses]).repeat(2) == np.tile([1, 0], n)
    found = win_rates(
        Counts.from_matrix(matrix, np.tile([1, 0], n)), np.arange(n), np.zeros(n)
    ).row(0, named=True)
    wilson = Share.count(wins, n)
    assert (found["wins"], found["pairs"]) == (wins, n)
    ends = [found["low"], found["high"]]
    if (found["p_value"] < 0.05) == (
        wilson.low > 0.5 or wilson.high < 0.5
    ):  # else the end beside ½ is that of the test
        assert ends == pytest.approx([wilson.low, wilson.high], abs=1e-6)
    assert [found["equal_length_low"], found["equal_length_high"]] == pytest.approx(ends, abs=1e-4)


def test_a_tie_counts_once_as_half_a_win() -> None:
    """Twelve decided pairs, of which the type wins nine, and eight ties, each in both orders."""
    sides = [1] * 9 + [0] * 3 + [1, 0] * 8
    matrix = np.ones((2 * len(sides), 2))
    matrix[::2, 1], matrix[1::2, 1] = sides, [1 - side for side in sides]
    units = np.append(np.arange(12), 12 + np.arange(16) // 2)
    weights = np.repeat([1.0, 0.5], [12, 16])
    counts = Counts.from_matrix(matrix, np.tile([1, 0], len(sides)))
    found = win_rates(counts, units, np.zeros(len(sides)), weights).row(0, named=True)
    assert (found["pairs"], found["wins"]) == (20, 13.0)
    assert found["win_rate"] == pytest.approx(13.5 / 21) and found["low"] < 13 / 20 < found["high"]


@pytest.mark.parametrize(
    ("rate", "alike", "units", "each"),
    fast_first([(0.95, 1e9, 30, 1), (0.95, 2.0, 60, 5), (0.7, 3.0, 40, 4)]),
)
def test_intervals_contain_the_true_rate_where_pairs_of_a_unit_are_alike(
    rate: float, alike: float, units: int, each: int
) -> None:
    """Each unit has a rate of its own (a beta law with this mean; the same for all if `alike` is
    large)."""
    rng, inside = np.random.default_rng(14), []
    for _ in range(150):
        of_units = rng.beta(rate * alike, (1 - rate) * alike, units)
        won = (rng.random((units, each)) < of_units[:, None]).ravel()
        matrix = np.ones((2 * len(won), 2))
        matrix[::2, 1], matrix[1::2, 1] = won, ~won
        counts, log_ratio = (
            Counts.from_matrix(matrix, np.tile([1, 0], len(won))),
            rng.normal(0, 0.3, len(won)),
        )
        found = win_rates(counts, np.repeat(np.arange(units), each), log_ratio).row(0, named=True)
        inside.append(
            [found[f"{kind}low"] <= rate <= found[f"{kind}high"] for kind in ("", "equal_length_")]
        )
    assert (np.mean(inside, axis=0) > 0.9).all()
