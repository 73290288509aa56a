"""Counterfactual copies: the same text with the other class's mark.

For marks with a counterpart (two names, two codes, two spellings), a trainer that sees each text
with both of them under the same label cannot use the mark (Kaushik et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.formatting import is_formatting
from tokensieve.text.matches import TokenSpan
from tokensieve.text.tokenizers import Tokenizer, with_named_words


@dataclass(frozen=True)
class Swap:
    """Two tokens, each of which replaces the other; n-grams have a space between their words."""

    first: str
    second: str

    @classmethod
    def parse(cls, written: str) -> Swap:
        """`FIRST=SECOND`, as on the command line.

        Raises:
            InputError: there are not two different words.
        """
        first, _, second = (part.strip() for part in written.partition("="))
        if not first or not second or first == second:
            raise InputError(
                f"--swap {written!r} is not of the form FIRST=SECOND with two different tokens"
            )
        for token in (first, second):
            if is_formatting(token):
                raise InputError(f"--swap {written!r}: {token} is formatting, not a word of a text")
        return cls(first, second)


def swap_texts(texts: pl.Series, swaps: Sequence[Swap], tokenizer: Tokenizer) -> pl.Series:
    """Replace all marks of each text by their counterparts; null where a text contains none.

    A mark is written as its counterpart is written in the texts most often, in capitals if the mark
    is.

    Raises:
        InputError: a token occurs in no text, so that it is unknown how it is written.
    """
    counterparts = {swap.first: swap.second for swap in swaps}
    counterparts |= {swap.second: swap.first for swap in swaps}
    tokenizer = with_named_words(tokenizer, counterparts)
    spellings = _common_spellings(texts, list(counterparts), tokenizer)
    for token in counterparts:
        if token not in spellings:
            raise InputError(f"--swap: {token!r} occurs in no text; write it as tokens.csv does")
    swapped = [
        _swap(text, counterparts, spellings, tokenizer) if text is not None else None
        for text in texts
    ]
    return pl.Series(texts.name, swapped, dtype=pl.String)


def _places(text: str, tokens: Sequence[str], tokenizer: Tokenizer) -> list[TokenSpan]:
    """Find the tokens in a text, from left to right, without overlaps; the longest n-gram first."""
    spans = tokenizer.spans(text)
    words = [span.token for span in spans]
    by_length = sorted((token.split(" ") for token in tokens), key=len, reverse=True)
    places: list[TokenSpan] = []
    at = 0
    while at < len(words):
        parts = next((parts for parts in by_length if words[at : at + len(parts)] == parts), None)
        if parts is None:
            at += 1
            continue
        end = at + len(parts)
        places.append(TokenSpan(spans[at].start, spans[end - 1].end, " ".join(parts)))
        at = end
    return places


def _common_spellings(
    texts: pl.Series, tokens: Sequence[str], tokenizer: Tokenizer
) -> dict[str, str]:
    """The most frequent spelling of each token that occurs; of equally frequent ones the first."""
    written: dict[str, dict[str, int]] = {}
    for text in texts.drop_nulls():
        for place in _places(text, tokens, tokenizer):
            counts = written.setdefault(place.token, {})
            spelling = text[place.start : place.end]
            counts[spelling] = counts.get(spelling, 0) + 1
    return {token: max(counts, key=lambda name: counts[name]) for token, counts in written.items()}


def _swap(
    text: str, counterparts: dict[str, str], spellings: dict[str, str], tokenizer: Tokenizer
) -> str | None:
    """The text with every token replaced by its counterpart; None if it contains none of them."""
    places = _places(text, list(counterparts), tokenizer)
    if not places:
        return None
    pieces = []
    done = 0
    for place in places:
        counterpart = spellings[counterparts[place.token]]
        is_in_capitals = text[place.start : place.end].isupper()
        pieces += [text[done : place.start], counterpart.upper() if is_in_capitals else counterpart]
        done = place.end
    return "".join([*pieces, text[done:]])
