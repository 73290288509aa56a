"""Documents that are parts of one another, such as the phrases of sentences, are held out together
when training is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokensieve.arrays import Ints
from tokensieve.model.choice import RATES
from tokensieve.model.fit import fit, refit
from tokensieve.model.held_out import MIN_OVERLAPPING, held_out_documents, overlapping_families
from tokensieve.model.settings import FEW, TrainSettings
from tokensieve.text.counts import Counts


def spans(sentences: int, seed: int = 0, words: int = 8, each: int = 5) -> tuple[Counts, Ints]:
    """Sentences of words of their own and common ones, with spans of them; and the sentence of each
    document."""
    rng = np.random.default_rng(seed)
    rows, of = [], []
    for i in range(sentences):
        sentence = np.where(
            rng.random(words) < 0.7, 50 + words * i + np.arange(words), rng.integers(0, 50, words)
        )
        cuts = [(0, words)] + [
            (start, start + words // 2) for start in rng.integers(0, words // 2, each)
        ]
        rows += [
            np.bincount(sentence[start:end], minlength=50 + words * sentences)
            for start, end in cuts
        ]
        of += [i] * len(cuts)
    found = np.array(of)
    return Counts.from_matrix(np.array(rows), rng.integers(2, size=sentences)[found]), found


def by_brute_force(held: list[set[int]]) -> list[set[int]]:
    """For each document those that it is linked with, directly or not."""
    frequency = {s: sum(s in one for one in held) for one in held for s in one}
    rare = [{s for s in one if 2 <= frequency[s] <= 50} for one in held]
    linked = [{i} for i in range(len(held))]
    for i, part in enumerate(rare):
        for j, whole in enumerate(rare):
            if i != j and len(part) >= 2 and len(part & whole) >= 0.8 * len(part):
                joined = linked[i] | linked[j]
                for k in joined:
                    linked[k] = joined
    return [linked[i] if len(rare[i]) >= 2 else set() for i in range(len(held))]


@given(held=st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=4, max_size=12))
def test_families_are_those_of_brute_force(held: list[set[int]]) -> None:
    matrix = np.array([[s in one for s in range(12)] for one in held], dtype=int)
    counts = Counts.from_matrix(
        np.vstack([matrix, matrix]), [0, 1] * len(held)
    )  # every document twice
    expected = by_brute_force([*held, *held])
    found = overlapping_families(counts)
    many = sum(len(family) > 1 for family in expected) > MIN_OVERLAPPING * sum(
        bool(family) for family in expected
    )
    if found is None:
        heads = {min(family): counts.labels[min(family)] for family in expected if family}
        assert not many or np.bincount(list(heads.values()), minlength=2).min() < 2
        return
    assert many
    for i, family in enumerate(expected):
        assert set(np.flatnonzero(found == found[i])) == family if family else found[i] == -1


@pytest.mark.parametrize("sentences", [150, FEW // 4])
def test_the_spans_of_a_sentence_are_held_out_together(sentences: int) -> None:
    counts, of = spans(sentences)
    family = overlapping_families(counts)
    assert family is not None and (counts.n_documents > FEW) == (sentences > 150)
    for one in np.unique(family[family >= 0]):
        assert len(set(of[family == one])) == 1
    for part in held_out_documents(counts, TrainSettings(), None):
        assert (
            not set(family[part.learned]) & set(family[part.held_out]) - {-1}
            and len(part.held_out) > 10
        )
        assert sorted([*part.learned, *part.held_out]) == list(range(counts.n_documents))


def test_documents_of_their_own_are_divided_as_ever() -> None:
    rng = np.random.default_rng(0)
    counts = Counts.from_matrix(rng.poisson(0.02, (2500, 300)), rng.integers(2, size=2500))
    assert overlapping_families(counts) is None
    long = Counts.from_matrix(np.ones((20, 60)), [0, 1] * 10)  # equal, but too long to compare
    assert overlapping_families(long) is None


def test_spans_do_not_give_away_what_is_held_out() -> None:
    """The labels of sentences are chance, so that the loss on others is about log 2 and not near
    zero."""
    model = fit(spans(500)[0], TrainSettings(min_documents=1))
    assert (
        model.validation[:, 1].min() > 0.6
    )  # below 0.02 where spans of the same sentences are learned from


def test_refits_take_the_step_size_that_was_chosen() -> None:
    counts, _ = spans(500)
    settings = TrainSettings(min_documents=1)
    model = fit(counts, settings)
    assert model.score_rate in [rate * settings.score_rate for rate in RATES]
    slow = replace(model, score_rate=settings.score_rate / 10)
    asked = replace(settings, score_rate=settings.score_rate / 10)
    n = counts.n_documents
    kept, wanted = (
        refit(counts, slow, n, settings),
        refit(counts, replace(slow, score_rate=None), n, asked),
    )
    np.testing.assert_array_equal(kept.scores, wanted.scores)
    other = refit(counts, replace(slow, score_rate=settings.score_rate), n, settings)
    assert not np.array_equal(kept.scores, other.scores)
