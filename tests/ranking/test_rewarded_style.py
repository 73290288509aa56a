"""What a ranking says is rewarded: several features are looked at, and each by its own interval."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tokensieve.ranking.bradley_terry import Estimate
from tokensieve.ranking.data import RankingData
from tokensieve.ranking.report import rewarded_style
from tokensieve.ranking.standings import FeatureEffect
from tokensieve.ranking.style import STYLE


class Effects:
    """As many features of style as were measured, all with the same estimate."""

    def __init__(self, n_measured: int, estimate: Estimate) -> None:
        self._names = [feature.name for feature in STYLE[:n_measured]]
        self._estimate = estimate

    def effect(self, name: str) -> FeatureEffect | None:
        if name not in self._names:
            return None
        return FeatureEffect(name, "with it", self._estimate, self._estimate)


@pytest.mark.parametrize(
    ("n_measured", "low", "n_rewarded"),
    [(0, 0.5, 0), (1, 0.05, 1), (1, -0.05, 0), (4, 0.05, 0), (4, 0.5, 4)],
)
def test_one_of_several_features_needs_more_than_its_own_interval(
    n_measured: int, low: float, n_rewarded: int
) -> None:
    estimate = Estimate(value=1.0, low=low, high=2.0 - low)
    data = cast(RankingData, cast(Any, Effects(n_measured, estimate)))
    assert len(rewarded_style(data)) == n_rewarded
