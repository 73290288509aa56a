"""Ratings such as 7/10 are a shortcut where together they nearly decide the label, however few
documents each of them is in."""

from dataclasses import replace

import numpy as np
import pytest

from tokensieve.auditing.artefacts.ratings import certainty_of
from tokensieve.auditing.artefacts.suspects import Suspect
from tokensieve.auditing.checks.shortcut import probability_details
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings

QUICK = Settings(baseline=False, thorough=False)


def reviews(rated: float, told: float, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of random words; some have a rating, which agrees with the label as often as told."""
    rng = np.random.default_rng(seed)
    words = [f"word{number}" for number in range(80)]
    texts, labels = [], []
    for _ in range(700):
        label = str(rng.choice(["bad", "good"]))
        text = list(rng.choice(words, 12))
        if rng.random() < rated:
            is_good = (label == "good") == (rng.random() < told)
            rating = rng.integers(7, 11) if is_good else rng.integers(1, 5)
            text.insert(int(rng.integers(13)), f"{rating}/10")
        texts.append(" ".join(text))
        labels.append(label)
    return texts, labels


@pytest.mark.slow
def test_ratings_that_decide_the_label_are_one_finding() -> None:
    found = audit(reviews(rated=0.12, told=1.0), QUICK)
    first, *_ = found.shortcuts
    assert sum(token.endswith("/10") for token in first.tokens) >= 4
    assert first.level != "low"
    assert "n/10" in first.mask or {"1/10", "10/10"} <= set(first.mask)


def test_reasons_of_several_ratings_name_the_one_that_they_hold_of() -> None:
    """ "It occurs in no other class" stood on a card of ten ratings, of which four did not."""
    scored = Suspect(
        token="9/10",
        type=4,
        classes=(1,),
        documents=np.arange(22),
        certainty=1.0,
        probability=0.95,
        reasons=("it occurs in no other class",),
        scored_token="9/10",
    )
    member = replace(scored, token="8/10", documents=np.arange(34))
    details = probability_details(member, ["8/10", "9/10"])
    assert details[0].startswith("the probability that “9/10” is an artefact")
    assert probability_details(member, ["8/10"])[0].startswith("the probability that “9/10”")
    assert probability_details(scored, ["9/10"])[0].startswith("the probability that it is")


def test_ratings_that_say_nothing_are_none() -> None:
    found = audit(reviews(rated=0.12, told=0.5), QUICK)
    assert not any("/10" in token for one in found.shortcuts for token in one.tokens)


def test_a_document_is_no_evidence_of_itself() -> None:
    once = np.eye(2, dtype=np.int64).repeat(20, axis=0)  # each rating is in one document
    assert certainty_of(once, np.array([50, 50])) <= 0.0
    decided = np.array([[20, 0], [0, 20]])
    assert certainty_of(decided, np.array([50, 50])) > 0.5
    balanced = np.array([[10, 10], [10, 10]])
    assert certainty_of(balanced, np.array([50, 50])) <= 0.0


def test_few_documents_show_nothing() -> None:
    assert certainty_of(np.array([[4, 0]]), np.array([50, 50])) == 0.0
    assert certainty_of(np.array([[20, 0]]), np.array([5_000, 5_000])) == 0.0
