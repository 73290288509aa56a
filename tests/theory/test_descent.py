"""Gradient descent on p: each step against the definition, small steps against the flow."""

from __future__ import annotations

import numpy as np
import pytest

from theory_docs.descent import descend
from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import initialise
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.generators import single_token
from tokensieve.theory.one_step import one_step
from tokensieve.theory.settings import VerifySettings


def problem(d: int) -> tuple[Counts, Floats, Floats, Floats]:
    counts = single_token(24, 14, 5, 6, seed=1)[0]
    step = one_step(counts, *initialise(counts.n_types, d, seed=1), eta=40.0)
    E = step.embeddings()
    return counts, E, E @ step.start.v, step.start.p


def loss(counts: Counts, E: Floats, w: Floats, p: Floats) -> float:
    """From the definition, document by document."""
    total = 0.0
    for row, y in zip(counts.matrix.toarray(), counts.signs, strict=True):
        weights = row * np.exp(E @ p)
        total += np.log1p(np.exp(-y * (weights @ w) / weights.sum()))
    return float(total / counts.n_documents)


@pytest.mark.slow
@pytest.mark.parametrize("d", [8, 40])
def test_a_step_goes_down_the_gradient_of_the_definition(d: int) -> None:
    counts, E, w, p = problem(d)
    found = descend(counts, E, w, p, step_size=0.7, steps=1)
    slope = np.array(
        [(loss(counts, E, w, p + h) - loss(counts, E, w, p - h)) / 2e-5 for h in 1e-5 * np.eye(d)]
    )
    assert found.norm[0] == pytest.approx(np.linalg.norm(p - 0.7 * slope), rel=1e-7)
    assert found.loss[0] == pytest.approx(loss(counts, E, w, p - 0.7 * slope), rel=1e-7)


def test_small_steps_follow_the_flow_and_smaller_ones_closer() -> None:
    counts, E, w, p = problem(40)
    flow = gradient_flow(counts, E, w, p, VerifySettings(max_norm=60.0, tolerance=1e-8))
    errors = []
    for size in (8.0, 0.8):
        _, error, angle = descend(counts, E, w, p, size, steps=int(400 / size)).beside(flow)
        errors.append(error.max())
        assert angle.max() <= 2 * error.max() + 1e-12
    assert errors[1] < 0.3 * errors[0] < 0.1


def test_minibatches_are_seeded_and_all_documents_are_one_batch() -> None:
    counts, E, w, p = problem(40)
    one, two, other = (
        descend(counts, E, w, p, 0.5, 30, batch=5, seed=seed).coordinates for seed in (3, 3, 4)
    )
    assert np.array_equal(one, two) and not np.allclose(one, other)
    whole = descend(counts, E, w, p, 0.5, 30, batch=24).coordinates
    assert np.allclose(whole, descend(counts, E, w, p, 0.5, 30).coordinates, rtol=1e-10)


@pytest.mark.parametrize(
    ("size", "steps", "batch"),
    [(0.0, 5, None), (float("nan"), 5, None), (1.0, 0, None), (1.0, 5, 25)],
)
def test_what_cannot_be_run_is_refused(size: float, steps: int, batch: int | None) -> None:
    with pytest.raises(InputError, match="a batch of 1 to 24"):
        descend(*problem(8), size, steps, batch)
