"""The statistic by which words and forms are chosen, beside its definition with dense matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from arenas import battles_of
from scipy.special import expit

from tokensieve.ranking.bradley_terry import components_of, fit, model_columns
from tokensieve.ranking.rewarded import _scores


def test_scores_follow_their_definition() -> None:
    rng = np.random.default_rng(2)
    n = 400
    first = rng.integers(0, 5, n)
    second = (first + rng.integers(1, 5, n)) % 5
    outcome = rng.integers(0, 2, n).astype(float)
    prompt = rng.integers(0, 60, n)
    battles = battles_of(first.tolist(), second.tolist(), outcome.tolist(), prompt.tolist())
    features = rng.standard_normal((n, 2))
    candidates = rng.integers(-1, 2, (n, 7)).astype(float)
    candidates[:, 6] = features[:, 0]  # the model has it already
    rows = np.flatnonzero(rng.random(n) < 0.8)
    base = fit(battles, features, components_of(battles), rows=rows)
    found = _scores(battles, base, features, sp.csr_array(candidates[rows]), rows)

    x = np.hstack([model_columns(battles).toarray(), features])[rows]
    d = candidates[rows]
    p = expit(x @ base.coefficients)
    curvature = (p * (1 - p))[:, None]
    explained = np.linalg.pinv(x.T @ (curvature * x)) @ (x.T @ (curvature * d))
    influence = (d - x @ explained) * (outcome[rows] - p)[:, None]
    spread = np.sqrt(
        sum((influence[prompt[rows] == g].sum(axis=0)) ** 2 for g in np.unique(prompt[rows]))
    )
    expected = d.T @ (outcome[rows] - p) / spread
    np.testing.assert_allclose(found[:6], expected[:6], rtol=1e-6)
    assert found[6] == 0
