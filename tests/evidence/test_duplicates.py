"""Near duplicates against brute force over all pairs."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.evidence.duplicates import SHINGLE, near_duplicates
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream, tokenize


def stream_of(texts: list[str]) -> TokenStream:
    return tokenize(pl.Series("text", texts, dtype=pl.String), WordTokenizer())


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + SHINGLE]) for i in range(max(len(words) - SHINGLE + 1, 1))}


def made(seed: int, n: int = 150) -> list[str]:
    """Random texts, and for a third of them one with a few words changed."""
    rng = np.random.default_rng(seed)
    texts = [
        " ".join(f"w{w}" for w in rng.integers(0, 400, rng.integers(20, 80))) for _ in range(n)
    ]
    for text in texts[: n // 3]:
        words = text.split()
        for at in rng.integers(0, len(words), rng.integers(0, 5)):
            words[at] = "changed"
        texts.append(" ".join(words))
    return texts


def test_pairs_well_above_the_threshold_are_joined_and_those_well_below_are_not() -> None:
    above = below = 0
    for seed in range(3):
        texts = made(seed)
        first, sets = near_duplicates(stream_of(texts)), [shingles(text) for text in texts]
        for i in range(len(texts)):
            for j in range(i):
                similar = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
                if similar >= 0.93:
                    assert first[i] == first[j]
                    above += 1
                if similar < 0.5:
                    assert first[i] != first[j]
                    below += 1
    assert above >= 30 and below > 10_000


def test_exact_repeats_short_texts_and_empty_ones() -> None:
    texts = [
        "good",
        "bad",
        "Good!",
        "",
        "a b",
        "b a",
        "",
        "one two three four",
        "one two three four",
        "a b",
    ]
    found = near_duplicates(stream_of(texts))
    assert found.tolist() == [0, 1, 0, 3, 4, 5, 6, 7, 7, 4]


def test_parts_one_after_the_other_are_one_corpus_and_leaks_across_them_are_seen() -> None:
    texts = made(7)
    whole = near_duplicates(stream_of(texts))
    parts = near_duplicates([stream_of(texts[:90]), stream_of(texts[90:])])
    np.testing.assert_array_equal(whole, parts)
    stored = StoredTexts()
    stored.extend(texts[90:])
    np.testing.assert_array_equal(
        whole, near_duplicates([stream_of(texts[:90]), tokenize(stored, WordTokenizer())])
    )
    later = np.arange(len(texts)) >= 150  # the changed copies
    leaked = np.flatnonzero(later & np.isin(whole, whole[~later]))
    sets = [shingles(text) for text in texts]
    likest = {
        i: max(len(s & sets[i]) / len(s | sets[i]) for s in sets[:150])
        for i in range(150, len(texts))
    }
    expected = [i for i, similar in likest.items() if similar > 0.95]
    assert set(expected) <= set(leaked.tolist())
    assert all(likest[i] > 0.6 for i in leaked.tolist())


def test_no_documents_have_no_duplicates() -> None:
    assert near_duplicates(stream_of([])).shape == (0,)
    assert near_duplicates([]).shape == (0,)
