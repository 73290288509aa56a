"""Each hypothesis holds where it was built in, and fails, with witnesses, where it was broken."""

from __future__ import annotations

import numpy as np
import pytest

from tokensieve.text.counts import Counts
from tokensieve.theory.claims import Claim
from tokensieve.theory.embeddings import initialise
from tokensieve.theory.generators import independent_tokens, single_token
from tokensieve.theory.one_step import one_step

NAMES = ["types", "length", "exactly one", "irrelevant", "log|S|", "remainder", "large enough"]


def checked(counts: Counts, d: int = 1024, eta: float = 4000.0) -> dict[str, Claim]:
    found = Claim.hypotheses(counts, one_step(counts, *initialise(counts.n_types, d, seed=1), eta))
    assert len(found) == len(NAMES)
    return dict(zip(NAMES, found, strict=True))


def test_all_hold_on_exact_data_with_a_large_dimension_and_step() -> None:
    found = checked(single_token(200, 70, 8, 20)[0])
    for key, item in found.items():
        assert item.holds, item
        assert key in item.name and not item.documents and not item.types


@pytest.mark.parametrize(
    ("options", "broken"),
    [
        ({"relevant_per_document": 2}, {"exactly one"}),
        ({"leak": 0.2}, {"exactly one", "irrelevant", "large enough"}),
    ],
)
def test_each_relaxation_breaks_its_hypothesis(options: dict, broken: set[str]) -> None:
    found = checked(single_token(400, 50, 6, 10, **options)[0])
    assert {key for key, item in found.items() if not item.holds} >= broken - {"large enough"}
    assert {key for key, item in found.items() if not item.holds} <= broken
    assert all(found[key].documents for key in broken - {"large enough"})


def test_a_small_step_and_a_small_dimension_are_named() -> None:
    counts = single_token(200, 70, 8, 20)[0]
    assert not checked(counts, eta=1.0)["large enough"].holds
    found = checked(counts, d=4)
    assert not found["log|S|"].holds and not found["remainder"].holds


def test_witnesses_and_counts_by_hand() -> None:
    matrix = [[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 2, 1], [0, 0, 1, 0]]
    counts = Counts.from_matrix(matrix, [1, 0, 1, 0, 1], tokens=["good", "bad", "film", "plot"])
    found = checked(counts)
    assert found["types"].documents == (4,) and "1 a single token type" in found["types"].verdict
    assert found["length"].documents == (3, 4)
    assert found["exactly one"].documents == (3, 4) and found["exactly one"].verdict.startswith(
        "3 of 5"
    )
    assert set(found["irrelevant"].types) == {"film", "plot"}
    opposite = Counts.from_matrix(matrix, [0, 1, 0, 1, 0], tokens=["good", "bad", "film", "plot"])
    assert "the largest is −0.0667 (film)" in checked(opposite)["irrelevant"].verdict


def test_independent_tokens_break_the_data_hypotheses() -> None:
    found = checked(independent_tokens(300, 20, 10, 8)[0])
    assert found["exactly one"].holds is False and found["irrelevant"].holds is False
    alpha = np.abs(one_step(independent_tokens(300, 20, 10, 8)[0], *initialise(20, 64), 1.0).alpha)
    assert f"{len(found['irrelevant'].types)}" == "5" and alpha.max() > 0


def test_a_hypothesis_about_tokens_that_no_document_contains_neither_holds_nor_fails() -> None:
    """It said "in 0 of the 0 documents" and failed."""
    found = checked(
        Counts.from_matrix([[1, 1], [2, 1], [1, 2], [1, 1]], [1, 0, 1, 0], tokens=["film", "plot"])
    )
    assert (
        found["large enough"].holds is None
        and found["large enough"].verdict == "no document contains such a token"
    )
    assert found["exactly one"].holds is False
