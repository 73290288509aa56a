"""Environments: effects that differ are found, those that do not are left alone, by simulations
whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.evidence.environments import Environments
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.text.counts import Counts


def made(
    rng: np.random.Generator,
    ratios: np.ndarray,
    base: np.ndarray,
    n: int = 1500,
    burst: float = 0.0,
) -> tuple[Counts, np.ndarray]:
    """Documents of 40 tokens; in environment e type s is ratios[e, s] times as frequent in class 1
    as in class 0.

    Args:
        rng: seeded.
        ratios: shape (3, S).
        base: frequency in class 0, shape (3, S).
        n: documents, spread over environments and classes unevenly.
        burst: concentration of the Dirichlet distribution of each document's rates; 0 for none.
    """
    of = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    labels = (rng.random(n) < np.array([0.5, 0.3, 0.6])[of]).astype(int)
    rates = base[of] * np.where(labels[:, None] == 1, ratios[of], 1.0)
    chances = np.column_stack([rates, 1 - rates.sum(axis=1)])
    if burst:
        chances = np.maximum(rng.gamma(burst * chances), 1e-300)
        chances /= chances.sum(axis=1, keepdims=True)
    return Counts.from_matrix(rng.multinomial(40, chances), labels), of


NAMES = ("a", "b", "c")


def compare(counts: Counts, of: Ints, names: tuple[str, ...], overall: Importance) -> Environments:
    sides = [counts.rows(of == e) for e in range(len(names))]
    sums = [Sums((*TokenSums.of_counts(side), side.present)) for side in sides]
    return Environments.of_sums(sums, names, overall)


@pytest.mark.parametrize("burst", [0.0, 20.0])
def test_a_common_ratio_is_called_unstable_at_the_nominal_rate(burst: float) -> None:
    """Base rates differ between environments, up to 3 times; ratios do not."""
    rng, small, tested, false = np.random.default_rng(1), 0, 0, 0
    for _ in range(12):
        frequency = np.exp(rng.uniform(np.log(0.0005), np.log(0.01), 40))
        base = frequency * np.exp(rng.uniform(-0.5, 0.5, (3, 40)))
        ratios = np.tile(np.exp(rng.uniform(-0.8, 0.8, 40)), (3, 1))
        counts, of = made(rng, ratios, base, burst=burst)
        overall = token_importance(counts)
        found = compare(counts, of, NAMES, overall)
        enough = overall.documents[:40] >= 5
        small, tested = (
            small + int((found.p_value[:40, 1][enough] < 0.05).sum()),
            tested + int(enough.sum()),
        )
        false += int((found.stability[:40] == "unstable").any())
    assert 0.02 < small / tested < 0.075
    assert false <= 2


def test_what_carries_the_label_in_one_place_only_is_unstable_and_what_does_everywhere_is_stable() -> (
    None
):
    rng = np.random.default_rng(2)
    base = np.full((3, 12), 0.008)
    ratios = np.ones((3, 12))
    ratios[0, :3] = 4.0  # here and not there
    ratios[1, 3:6] = 5.0
    ratios[2, 3:6] = 0.2  # opposed
    ratios[:, 6:9] = 4.0  # everywhere
    counts, of = made(rng, ratios, base, n=6000)
    overall = token_importance(counts)
    found = compare(counts, of, NAMES, overall)
    assert (found.stability[:6, 1] == "unstable").all()
    assert (found.stability[6:9, 1] == "stable").all()
    assert not (found.stability[9:12, 1] == "stable").any()
    np.testing.assert_allclose(found.ratio[6:9, 1], 4.0, rtol=0.25)
    np.testing.assert_allclose(found.ratio[9:12, 1], 1.0, rtol=0.2)
    frame = found.to_frame(overall)
    assert frame.height == 2 * counts.n_types
    assert {"lean in a", "lean in b", "lean in c", "stability", "q_value"} <= set(frame.columns)


def test_two_classes_mirror_each_other_and_one_environment_is_not_enough() -> None:
    rng = np.random.default_rng(3)
    counts, of = made(rng, np.full((3, 8), 2.0), np.full((3, 8), 0.01), n=400)
    overall = token_importance(counts)
    found = compare(counts, of, NAMES, overall)
    np.testing.assert_allclose(found.q_statistic[:, 0], found.q_statistic[:, 1], rtol=1e-6)
    np.testing.assert_allclose(found.ratio[:8, 0] * found.ratio[:8, 1], 1.0, rtol=1e-9)
    with pytest.raises(InputError, match="fewer than two environments"):
        compare(counts, np.zeros(400, np.int64), ("all",), overall)


def test_the_statistic_by_hand() -> None:
    """Documents of one token each: the shares are 0 or 1, and φ is 1 less the frequency."""
    tables = [((30, 70), (10, 90)), ((20, 80), (18, 82))]  # (with, without) in class 1, in class 0
    rows, labels, of = [], [], []
    for e, (inside, outside) in enumerate(tables):
        for label, (yes, no) in ((1, inside), (0, outside)):
            rows += [[1, 0]] * yes + [[0, 1]] * no
            labels += [label] * (yes + no)
            of += [e] * (yes + no)
    counts = Counts.from_matrix(rows, labels)
    found = compare(counts, np.array(of), ("x", "y"), token_importance(counts))
    theta = (30 * 0.5 + 20 * 0.5) / (10 * 0.5 + 18 * 0.5)
    assert found.ratio[0, 1] == pytest.approx(theta)
    share = theta / (1 + theta)
    phi_in, phi_out = (0.75 * 200 / 199, 0.86 * 200 / 199)
    w = (1 - share) * phi_in + share * phi_out
    expected = sum(
        (a - share * t) ** 2 / (t * share * (1 - share) * w) for a, t in ((30, 40), (20, 38))
    )
    assert found.q_statistic[0, 1] == pytest.approx(
        expected, rel=0.02
    )  # up to the one pooled event
    assert found.degrees.tolist() == [1, 1]


def test_the_order_of_documents_and_of_environments_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    counts, of = made(rng, np.full((3, 8), 2.0), np.full((3, 8), 0.01), n=300)
    overall = token_importance(counts)
    found = compare(counts, of, NAMES, overall)
    order = rng.permutation(300)
    again = compare(counts.rows(order), (2 - of)[order], NAMES[::-1], overall)
    np.testing.assert_allclose(found.q_statistic, again.q_statistic, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.stability, again.stability)
