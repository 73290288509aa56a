"""Fixed runs of words anywhere in a text: what to cut beside a word that always stands in one.

Of "posted via tablet" in the middle of texts, cutting "tablet" alone leaves "posted via", which
gives the label away as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl

from tokensieve.auditing.artefacts.shapes import stands_for_several
from tokensieve.auditing.artefacts.slots import MIN_TEXTS_OF_WORD, SAME_NEIGHBOUR
from tokensieve.text.matches import TokenSpan
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer

MAX_RUN = 6  # words; longer runs are texts that are repeated
MAX_TEXTS = 100  # in which words are looked at: a sixth of a second for long reviews

_Words = Sequence[TokenSpan]


def with_fixed_runs(
    tokens: Sequence[str], texts: pl.Series, tokenizer: Tokenizer
) -> tuple[str, ...]:
    """The tokens, and before each word that nearly always stands in one run of words that run.

    Args:
        tokens: what a mask would cut.
        texts: training documents that contain them.
        tokenizer: the one of the training documents; in fields and pieces, no run is looked for.
    """
    if not isinstance(tokenizer, WordTokenizer):
        return tuple(tokens)
    single = [token for token in tokens if _is_word(token)]
    words_of_texts = [tokenizer.spans(text) for text in texts.head(MAX_TEXTS)] if single else []
    cut: dict[str, None] = {}
    for token in tokens:
        if token in single:
            run = fixed_run(token, words_of_texts)
            cut[run] = None
        cut[token] = None
    return tuple(cut)


def _is_word(token: str) -> bool:
    """Whether a token is one word, and no number or family of spellings."""
    return " " not in token and token.isalpha() and not stands_for_several((token,))


def fixed_run(token: str, words_of_texts: Sequence[_Words]) -> str:
    """The longest run of words that nearly all occurrences of a word stand in; itself if none."""
    run = token
    n_words = 1
    occurrences = [
        (words, place)
        for words in words_of_texts
        for place, word in enumerate(words)
        if word.token == token
    ]
    n_all = len(occurrences)
    for step in (-1, 1):
        reached = 0  # words of the run on this side
        while n_words < MAX_RUN and n_all >= MIN_TEXTS_OF_WORD:
            neighbours = [
                _beside(words, place + reached * step, step) for words, place in occurrences
            ]
            (neighbour, n_same), *_ = Counter(neighbours).most_common(1)
            if not neighbour or n_same < SAME_NEIGHBOUR * n_all:
                break
            run = f"{neighbour} {run}" if step < 0 else f"{run} {neighbour}"
            occurrences = [
                occurrence
                for occurrence, own in zip(occurrences, neighbours, strict=True)
                if own == neighbour
            ]
            reached += 1
            n_words += 1
    return run


def _beside(words: _Words, place: int, step: int) -> str:
    """The word on one side of another, with nothing but a space between; empty if there is none."""
    other = place + step
    if not 0 <= other < len(words):
        return ""
    left, right = sorted((place, other))
    is_beside = words[right].start - words[left].end == 1
    return words[other].token if is_beside and words[other].token.isalpha() else ""
