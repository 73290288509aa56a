"""Prediction-powered means beside the reference implementation of their authors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from tokensieve.ranking.bradley_terry import t_quantile
from tokensieve.ranking.judges import powered_mean

POWER = 0.7
# ppi_python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05) of the draws below, in their
# order: labelled, unlabelled, how often the judge errs; estimate, low and high with
# lam = POWER · unlabelled/all, which is the same estimate, since ours averages the judge over all
# battles and theirs over the unlabelled ones; last the estimate with their own tuning of lam.
REFERENCE = [
    (200, 1800, 0.15, 0.5961000000000001, 0.5471959302534082, 0.645004069746592, 0.595867837),
    (400, 600, 0.35, 0.60585, 0.5566131445297006, 0.6550868554702994, 0.599573690),
    (150, 150, 0.50, 0.6093333333333332, 0.5221423374085583, 0.696524329258108, 0.646666667),
]


def test_powered_means_are_those_of_the_reference_implementation() -> None:
    rng = np.random.default_rng(20260101)
    for n_labelled, n_unlabelled, error, estimate, low, high, tuned in REFERENCE:
        n = n_labelled + n_unlabelled
        human = (rng.random(n) < 0.6).astype(float)
        judge = np.where(rng.random(n) < error, 1 - human, human)
        asked = np.where(np.arange(n) < n_labelled, human, np.nan)
        found = powered_mean(judge, asked, np.arange(n), power=POWER)
        assert found.value == pytest.approx(estimate, abs=1e-12)
        # ours takes Student's quantile in place of the normal one
        wider = t_quantile(n_labelled) / norm.isf(0.025)
        assert (found.high - found.low) / (high - low) == pytest.approx(wider, rel=3e-3)
        # the variance in λ is of the labelled battles here, and of all battles there
        assert powered_mean(judge, asked, np.arange(n)).value == pytest.approx(tuned, abs=1e-3)
