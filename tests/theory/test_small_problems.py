"""Verdicts on small random problems against an independent integration in high precision."""

from __future__ import annotations

import pytest

from small_problems import KINDS, WRONG, compare, problem, verdict

FAST = 4  # problems in the fast suite, one of each of as many kinds
# 1,000 problems; an eighth of them runs with every commit
SLOW_SEEDS = range(70001, 70126)


@pytest.mark.parametrize("kind", KINDS[:FAST])
def test_verdicts_agree_with_an_independent_curve(kind: str) -> None:
    assert compare(kind, 0).comparison != WRONG


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW_SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_more_verdicts_agree_with_an_independent_curve(kind: str, seed: int) -> None:
    assert compare(kind, seed).comparison != WRONG


@pytest.mark.parametrize("seed", range(2))
def test_a_surface_that_other_documents_move_along_is_not_settled(seed: int) -> None:
    """Every earlier verdict of this kind was wrong."""
    assert verdict(problem("push nearly orthogonal to V", seed)).fate == "not settled"
