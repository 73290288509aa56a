"""Near copies that differ in one word, against a comparison of all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from tokensieve.evidence import word_edits
from tokensieve.evidence.duplicates import near_duplicates
from tokensieve.evidence.word_edits import MIN_WORDS_ADDED, MIN_WORDS_MOVED, one_word_pairs
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream


def stream(texts: list[str]) -> TokenStream:
    return TokenStream.of(pl.Series(texts), WordTokenizer())


def without_one(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[:i] + words[i + 1 :]) for i in range(len(words))}


def are_near(a: list[str], b: list[str]) -> bool:
    longer, shorter = sorted((a, b), key=len, reverse=True)
    if len(longer) == len(shorter) + 1:
        return len(longer) >= MIN_WORDS_ADDED and tuple(shorter) in without_one(longer)
    is_long = len(a) == len(b) >= MIN_WORDS_MOVED
    return is_long and bool(without_one(a) & without_one(b))


def made(seed: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    documents = []
    for _ in range(60):
        words = [f"w{i}" for i in rng.integers(0, 4, int(rng.integers(2, 22)))]
        documents.append(words)
        edited = list(words)
        place = int(rng.integers(len(words)))
        if rng.random() < 0.5:
            edited.insert(place, "new")
        else:
            edited[place] = "new"
        documents.append(edited)
    return documents


@pytest.mark.parametrize("seed", range(3))
def test_joined_documents_are_those_connected_by_one_word(seed: int) -> None:
    documents = made(seed)
    pairs = one_word_pairs([stream([" ".join(words) for words in documents])])
    for a, b in pairs:
        assert tuple(documents[a]) == tuple(documents[b]) or are_near(documents[a], documents[b])
    joined = near_duplicates([stream([" ".join(words) for words in documents])])
    for a, b in itertools.combinations(range(len(documents)), 2):
        if are_near(documents[a], documents[b]):
            assert joined[a] == joined[b]


def test_parts_give_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [stream([" ".join(words) for words in made(seed)]) for seed in (4, 5)]
    whole = one_word_pairs(streams)
    monkeypatch.setattr(word_edits, "MAX_VARIANTS", 100)
    assert len(whole) and np.array_equal(one_word_pairs(streams), whole)
