"""Prediction-powered means beside the reference implementation of their authors."""

from __future__ import annotations

import numpy as np
import pytest

from tokensieve.ranking.judges import powered_mean

# ppi_python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci (its default tuning, alpha=0.05) of the
# draws below, in their order: labelled, unlabelled, how often the judge errs; estimate, low, high.
REFERENCE = [
    (200, 1800, 0.15, 0.5958678376469767, 0.5469766408159439, 0.6447590344780095),
    (400, 600, 0.35, 0.599573690052524, 0.552777619333967, 0.6463697607710811),
    (150, 150, 0.50, 0.6466666666666666, 0.5701713222482938, 0.7231620110850394),
]


def test_powered_means_are_those_of_the_reference_implementation() -> None:
    rng = np.random.default_rng(20260101)
    for n_labelled, n_unlabelled, error, estimate, low, high in REFERENCE:
        n = n_labelled + n_unlabelled
        human = (rng.random(n) < 0.6).astype(float)
        judge = np.where(rng.random(n) < error, 1 - human, human)
        asked = np.where(np.arange(n) < n_labelled, human, np.nan)
        found = powered_mean(judge, asked, np.arange(n))
        # ours takes Student's quantile and centres on all rows: below 1% of the half-width
        assert found.value == pytest.approx(estimate, abs=2e-4)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1.5e-3)
