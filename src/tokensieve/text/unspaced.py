"""Words in scripts without spaces, by the longest match in a lexicon.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces between words. A
tokenizer with a lexicon (learned by text/lexicon.py) reads a run of their letters from left to
right and takes the longest word of the lexicon that begins there, or one cluster if none does. A
cluster is a letter with what cannot be read apart from it: marks, the vowels of Thai and Lao on
either side, stacked consonants of Khmer and Burmese. The page does the same in JavaScript
(report/live/words.js).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.matches import Span
from tokensieve.text.patterns import (
    CLUSTER,
    FINAL_CONSONANT,
    LEADING_VOWELS,
    MARKS,
    STACKERS,
    TRAILING_VOWELS,
    UNSPACED_LETTER,
)

IS_RUN = (
    f"^{UNSPACED_LETTER}"  # of a match of `WORD_OR_RUN`: no other word begins with such a letter
)
# of the characters: with fewer, names and quotations in other languages would be looked through
MIN_UNSPACED_FRACTION = 0.01
# around each cluster and word; no letter or mark is one of them
_OPEN = "<"
_CLOSE = ">"
_LETTERS = f"^(?:{UNSPACED_LETTER}{MARKS}*)+$"
# what Python sees between two matches of `WORD` that stand side by side
_HOLDS_NEXT = re.compile(f".[{STACKERS}]$|^[{LEADING_VOWELS}]$")
_HELD_BY_LAST = re.compile(f"[{TRAILING_VOWELS}]|{FINAL_CONSONANT}")
_HAS_CLUSTERS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f]"
)


@dataclass(frozen=True)
class Lexicon:
    """Words of scripts without spaces.

    Attributes:
        words: each of two clusters or more.
    """

    words: tuple[str, ...]

    def check(self) -> None:
        """Raise an InputError if one of them is no such word."""
        column = pl.Series(self.words, dtype=pl.String)
        is_word = _are_words(column)
        if not is_word.all():
            wrong = column.filter(~is_word)[0]
            raise InputError(
                f"{wrong[:40]!r} is no word of two or more characters of a script without spaces"
            )

    @cached_property
    def _by_length(self) -> pl.Series:
        """The longest words first."""
        return pl.Series(sorted(self.words, key=lambda word: (-len(word), word)))

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def _most_clusters(self) -> int:
        """Clusters of the longest word."""
        return int(self._by_length.str.count_matches(CLUSTER).max() or 1)  # type: ignore[arg-type]

    def words_of_runs(self, tokens: pl.Expr) -> pl.Expr:
        """Lists of words for lists of matches of `WORD_OR_RUN`, in which runs are one match."""
        token = pl.element()
        patterns = self._by_length.str.replace_all(CLUSTER, _around("${0}")).to_list()
        replacements = [_around(word) for word in self._by_length]
        words = (
            token.str.replace_all(CLUSTER, _around("${0}"))
            # of several patterns that match at a place the first, which is the longest
            .str.replace_many(patterns, replacements, leftmost=True)
            .str.replace_all(_CLOSE + _OPEN, " ", literal=True)
            .str.strip_chars(_OPEN + _CLOSE)
        )
        words = pl.when(token.str.contains(IS_RUN)).then(words).otherwise(token)
        # no token contains a space
        separate = tokens.list.eval(words).list.join(" ").str.split(" ")
        return separate.list.filter(pl.element() != "")

    def joined(self, text: str, matches: Sequence[Span]) -> list[Span]:
        """The matches of `WORD` in a text, with one for each word of the lexicon."""
        clusters = _clusters(text, matches)
        words = []
        first = 0
        while first < len(clusters):
            last = self._last_of_word(text, clusters, first)
            words.append((clusters[first][0], clusters[last][1]))
            first = last + 1
        return words

    def _last_of_word(self, text: str, clusters: Sequence[Span], first: int) -> int:
        """The last cluster of the longest word that begins at this one; itself if none does."""
        start = clusters[first][0]
        longest = first
        end_before = clusters[first][1]
        for last in range(first + 1, min(first + self._most_clusters, len(clusters))):
            cluster_start, end = clusters[last]
            if cluster_start != end_before:
                break
            if text[start:end] in self._set:
                longest = last
            end_before = end
        return longest


def is_unspaced_word(word: str) -> bool:
    """Whether a word has two clusters or more, all of scripts without spaces."""
    return bool(_are_words(pl.Series([word]))[0])


def is_unspaced(word: str) -> bool:
    """Whether a word is written in a script without spaces; a single character is, too."""
    return bool(pl.Series([word]).str.contains(_LETTERS)[0])


def _are_words(words: pl.Series) -> pl.Series:
    # in two steps: in one, the pattern would divide a cluster where that makes two of it
    return words.str.contains(_LETTERS) & (words.str.count_matches(CLUSTER) >= 2)


def _around(word: str) -> str:
    return f"{_OPEN}{word}{_CLOSE}"


def _clusters(text: str, matches: Sequence[Span]) -> list[Span]:
    """The matches, with one for each cluster of several letters."""
    if not _HAS_CLUSTERS.search(text):
        return list(matches)
    clusters = list(matches[:1])
    for (last_start, last_end), (start, end) in pairwise(matches):
        last = text[last_start:last_end]
        letters = text[start:end]
        belongs_to_last = _HOLDS_NEXT.search(last) or _HELD_BY_LAST.match(letters)
        if start == last_end and belongs_to_last and _is_letter(last) and _is_letter(letters):
            clusters[-1] = (clusters[-1][0], end)
        else:
            clusters.append((start, end))
    return clusters


def _is_letter(match: str) -> bool:
    """Whether a match of `WORD` is a letter of a script with clusters, and no number."""
    return _HAS_CLUSTERS.match(match) is not None and not match[0].isdecimal()


def unspaced_fraction(texts: pl.Series) -> float:
    """The fraction of characters that are letters of scripts without spaces."""
    n_characters = int(texts.str.len_chars().sum())
    n_bytes = int(texts.str.len_bytes().sum())
    # each takes three bytes or more, so this is an upper bound, at a tenth of the cost
    most = (n_bytes - n_characters) / 2
    if most < MIN_UNSPACED_FRACTION * n_characters:
        return 0.0
    n_unspaced = int(texts.str.count_matches(UNSPACED_LETTER).sum())
    return n_unspaced / max(n_characters, 1)
