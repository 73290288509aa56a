"""The built-in reviews: reproducible, as they say they are, and their shortcut found."""

from __future__ import annotations

import numpy as np
import pytest

from calls import fast_first
from tokensieve.auditing.demo import NEUTRAL, PLACES, STRENGTHS, THINGS, Reviews, demo_reviews
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.text.vocabulary import count_corpus


def importance(reviews: Reviews, ngrams: int = 1) -> Importance:
    documents = Corpus.of(reviews.texts, reviews.labels, ("negative", "positive"))
    return token_importance(count_corpus(documents, ngrams=ngrams, min_documents=3).counts)


def test_the_same_seed_gives_the_same_reviews() -> None:
    first, again, other = demo_reviews(50, 3), demo_reviews(50, 3), demo_reviews(50, 4)
    assert first.texts.to_list() == again.texts.to_list()
    assert first.labels.tolist() == again.labels.tolist()
    assert first.texts.to_list() != other.texts.to_list()
    assert first.labels.sum() == 25
    assert demo_reviews(7).labels.sum() == 3
    assert len(demo_reviews(0).texts) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seeds", fast_first([3, 8]))
def test_measured_posterior_differences_hold_the_truth_in_their_intervals_for_about_95_percent_of_words(
    seeds: int,
) -> None:
    inside, errors = [], []
    for seed in range(seeds):
        reviews = demo_reviews(1000, seed)
        found = importance(reviews)
        index = {token: s for s, token in enumerate(found.tokens)}
        for word, truth in reviews.strengths.items():
            s = index[word]
            inside.append(
                found.posterior_interval[0][s, 1] <= truth <= found.posterior_interval[1][s, 1]
            )
            errors.append(found.posterior_difference[s, 1] - truth)
    assert 0.90 < np.mean(inside) < 0.99
    assert abs(np.mean(errors)) < 0.02


def test_neutral_words_say_nothing_and_every_sentiment_word_is_found() -> None:
    found = importance(demo_reviews(2000, 1))
    index = {token: s for s, token in enumerate(found.tokens)}
    neutral = [index[word] for word in (*NEUTRAL, *THINGS, *PLACES)]
    assert np.mean(found.q_value[neutral, 1] < 0.05) < 0.05
    for word, strength in STRENGTHS.items():
        # of 0.25, the weakest, 180 documents find seven in ten
        assert abs(strength) < 0.4 or found.q_value[index[word], 1] < 0.05, word
        assert np.sign(found.effect[index[word], 1]) == np.sign(strength), word


@pytest.mark.parametrize(("n", "strong"), fast_first([(2000, 0.85), (6000, 0.7)]))
def test_negation_turns_a_word_round(n: int, strong: float) -> None:
    found = importance(demo_reviews(n, 2), ngrams=2)
    index = {token: s for s, token in enumerate(found.tokens)}
    seen = [
        (found.posterior_difference[index[f"not {word}"], 1], delta)
        for word, delta in STRENGTHS.items()
        if abs(delta) >= strong
    ]
    assert all(np.sign(measured) == -np.sign(delta) for measured, delta in seen)


@pytest.mark.slow  # with seed 0 the shared audit of tests/audit/test_run.py finds it
@pytest.mark.parametrize("seed", [1, 2])
def test_the_shortcut_heads_the_list_of_suspects(seed: int) -> None:
    reviews = demo_reviews(800, seed)
    names = np.where(reviews.labels == 1, "positive", "negative").tolist()
    found = audit(
        read_corpus((reviews.texts.to_list(), names)), Settings(seed=seed, baseline=False)
    )
    assert (found.findings[0].tokens[0], found.findings[0].label) == (reviews.shortcut, "positive")
    assert found.test_accuracy > found.majority_accuracy + 0.2
