"""Counterfactual copies: the same text with the other class's mark.

For marks with counterparts (names, codes, spellings), a trainer that sees each text with all of
them under the same label cannot use the mark (Kaushik et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tokensieve.auditing.artefacts.shapes import stands_for_several
from tokensieve.errors import InputError
from tokensieve.text.formatting import is_formatting
from tokensieve.text.matches import TokenSpan
from tokensieve.text.tokenizers import Tokenizer, with_named_words

MIN_SWAPPED = 2  # tokens


@dataclass(frozen=True)
class Swap:
    """Tokens that take each other's place, in a circle; n-grams have a space between their words.

    Two tokens change places. Of three, a text with one of them gets two copies, one with each of
    the others.
    """

    tokens: tuple[str, ...]

    @classmethod
    def parse(cls, written: str) -> Swap:
        """`FIRST=SECOND` or `FIRST=SECOND=THIRD`, as on the command line.

        Raises:
            InputError: there are not at least two different words, or one that stands for several.
        """
        tokens = tuple(part.strip() for part in written.split("="))
        if len(tokens) < MIN_SWAPPED or "" in tokens or len(set(tokens)) < len(tokens):
            raise InputError(
                f"--swap {written!r} is not of the form FIRST=SECOND with two different tokens"
            )
        for token in tokens:
            if is_formatting(token):
                raise InputError(f"--swap {written!r}: {token} is formatting, not a word of a text")
            if stands_for_several(tuple(token.split(" "))):
                raise InputError(
                    f"--swap {written!r}: {token!r} stands for several words, and it is unknown "
                    "which of them to write; name single ones, as in 9/10=2/10"
                )
        return cls(tokens)


def check_swaps(swaps: Sequence[Swap]) -> None:
    """Raise an `InputError` if a token is in two swaps, so that it has two counterparts."""
    seen: set[str] = set()
    for swap in swaps:
        for token in swap.tokens:
            if token in seen:
                raise InputError(
                    f"--swap: {token!r} is in two swaps; write three tokens that take each other's "
                    "place as FIRST=SECOND=THIRD"
                )
            seen.add(token)


def swap_texts(texts: pl.Series, swaps: Sequence[Swap], tokenizer: Tokenizer) -> list[pl.Series]:
    """Copy texts with all their marks replaced by their counterparts.

    There is a series for each step in the circles of tokens, one if all swaps are of two. A text is
    null in it if it contains no mark. A mark is written as its counterpart is written in the texts
    most often, in capitals if the mark is.

    Raises:
        InputError: a token occurs in no text, so that it is unknown how it is written, or is in two
            swaps.
    """
    check_swaps(swaps)
    tokens = [token for swap in swaps for token in swap.tokens]
    tokenizer = with_named_words(tokenizer, tokens)
    spellings = _common_spellings(texts, tokens, tokenizer)
    for token in tokens:
        if token not in spellings:
            raise InputError(f"--swap: {token!r} occurs in no text; write it as tokens.csv does")
    n_steps = max(len(swap.tokens) for swap in swaps) - 1
    copies = []
    for step in range(1, n_steps + 1):
        counterparts = _counterparts(swaps, step)
        swapped = [
            _swap(text, counterparts, spellings, tokenizer) if text is not None else None
            for text in texts
        ]
        copies.append(pl.Series(texts.name, swapped, dtype=pl.String))
    return copies


def _counterparts(swaps: Sequence[Swap], step: int) -> dict[str, str]:
    """What replaces each token that far ahead in its circle; shorter circles are done earlier."""
    counterparts = {}
    for swap in swaps:
        n_tokens = len(swap.tokens)
        if step < n_tokens:
            for place, token in enumerate(swap.tokens):
                counterparts[token] = swap.tokens[(place + step) % n_tokens]
    return counterparts


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
