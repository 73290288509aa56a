"""Whole phrases of scripts without spaces: what to cut instead of their pieces.

Where no space parts words, training learns what a word is from its texts
(`tokensieve.text.lexicon`), and a phrase that is nothing but an artefact may be divided at odd
places: a piece of it can be a single letter, which stands in a hundred other words, too. Cutting
the pieces one by one would cut the letter out of those. So each piece grows over the pieces beside
it as long as its texts have the same one there, and the phrase is cut as one word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from tokensieve.auditing.artefacts.slots import MIN_TEXTS_OF_WORD, SAME_NEIGHBOUR
from tokensieve.text.matches import TokenSpan
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer
from tokensieve.text.unspaced import is_unspaced, is_unspaced_word


def whole_unspaced(
    tokens: Sequence[str], texts: pl.Series, tokenizer: Tokenizer
) -> tuple[str, ...]:
    """The tokens, with the whole phrase in place of those that are pieces of one.

    Left out are single characters that words of the lexicon contain, too: a mask would cut them out
    of rare words that the lexicon lacks.

    Args:
        tokens: what a mask would cut.
        texts: training documents that contain them.
        tokenizer: the one of the training documents.
    """
    base = _base_with_lexicon(tokenizer)
    if base is None:
        return tuple(tokens)
    pieces = [_Pieces.of(token, tokenizer) for token in tokens]
    unspaced = [one for one in pieces if all(map(is_unspaced, one.words))]
    if not unspaced:
        return tuple(tokens)
    spans_of_texts = [tokenizer.spans(text) for text in texts]
    whole: list[_Pieces] = []
    # the longest first: it is the rarest, and grows over the others
    for one in sorted(unspaced, key=lambda one: -len(one.joined)):
        is_part = any(
            one.prefix == phrase.prefix and one.joined in phrase.joined for phrase in whole
        )
        if not is_part:
            whole.append(_grown(one, spans_of_texts))
    named = [one.token for one in whole if not _is_letter_of_words(one.words, base)]
    return (*named, *(one.token for one in pieces if one not in unspaced))


def is_letter_of_words(token: str, tokenizer: Tokenizer) -> bool:
    """Whether a token is a single character of a script without spaces that stands in longer words,
    too.
    """
    base = _base_with_lexicon(tokenizer)
    if base is None or token.isascii():
        return False
    pieces = _Pieces.of(token, tokenizer)
    return all(map(is_unspaced, pieces.words)) and _is_letter_of_words(pieces.words, base)


def _base_with_lexicon(tokenizer: Tokenizer) -> WordTokenizer | None:
    """The tokenizer of a text, or of each of its fields, if it knows words of scripts without
    spaces; else None."""
    base = tokenizer.base if isinstance(tokenizer, FieldTokenizer) else tokenizer
    return base if isinstance(base, WordTokenizer) and base.lexicon else None


def _is_letter_of_words(words: Sequence[str], base: WordTokenizer) -> bool:
    """Whether this is one character, which words of the lexicon contain, too."""
    if len(words) > 1 or is_unspaced_word(words[0]):
        return False
    return any(words[0] in word for word in base.lexicon or ())


@dataclass(frozen=True)
class _Pieces:
    """A token as its words.

    Attributes:
        prefix: the name of their field, as tokens begin with it; "" without fields.
        words: without it.
    """

    prefix: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, token: str, tokenizer: Tokenizer) -> _Pieces:
        """The words of a token, n-grams included."""
        prefix = ""
        if isinstance(tokenizer, FieldTokenizer):
            prefix = tokenizer.prefixes.get(tokenizer.field_of(token), "")
        return cls(prefix, tuple(word.removeprefix(prefix) for word in token.split(" ")))

    @property
    def token(self) -> str:
        """The phrase as an audit writes it."""
        return " ".join(self.prefix + word for word in self.words)

    @property
    def joined(self) -> str:
        """The words without spaces."""
        return "".join(self.words)


@dataclass(frozen=True)
class _Occurrence:
    """Words of a text that follow each other: words[first:last + 1]."""

    words: Sequence[TokenSpan]
    first: int
    last: int

    def is_unbroken(self) -> bool:
        """Whether no space is between the words."""
        places = range(self.first, self.last)
        return all(self.words[place].end == self.words[place + 1].start for place in places)

    def grown(self, on_left: bool) -> _Occurrence:
        """The same with the word before it or behind it; itself if there is none without a
        space."""
        if on_left:
            longer = replace(self, first=max(self.first - 1, 0))
            added = self.words[longer.first].token
        else:
            longer = replace(self, last=min(self.last + 1, len(self.words) - 1))
            added = self.words[longer.last].token
        return longer if longer.is_unbroken() and is_unspaced(added) else self

    def name(self) -> str:
        """The words without spaces."""
        return "".join(word.token for word in self.words[self.first : self.last + 1])


def _grown(pieces: _Pieces, spans_of_texts: Sequence[Sequence[TokenSpan]]) -> _Pieces:
    """The pieces with those that nearly all their occurrences have beside them, as one word.

    The words of an n-gram stay apart where a text writes a space between them.
    """
    occurrences = _occurrences(pieces, spans_of_texts)
    are_unbroken = all(occurrence.is_unbroken() for occurrence in occurrences)
    if not occurrences or not are_unbroken:
        return pieces
    phrase = pieces.joined
    for on_left in (True, False):
        while len(occurrences) >= MIN_TEXTS_OF_WORD:
            longer = [occurrence.grown(on_left) for occurrence in occurrences]
            (most_common, n_texts), *_ = Counter(one.name() for one in longer).most_common(1)
            if most_common == phrase or n_texts < SAME_NEIGHBOUR * len(longer):
                break
            phrase = most_common
            occurrences = [one for one in longer if one.name() == phrase]
    return _Pieces(pieces.prefix, (phrase,))


def _occurrences(
    pieces: _Pieces, spans_of_texts: Sequence[Sequence[TokenSpan]]
) -> list[_Occurrence]:
    """Find the places where the pieces follow each other in their field."""
    occurrences = []
    n_pieces = len(pieces.words)
    for spans in spans_of_texts:
        words = [
            span._replace(token=span.token.removeprefix(pieces.prefix))
            for span in spans
            if span.token.startswith(pieces.prefix)
        ]
        names = tuple(word.token for word in words)
        occurrences += [
            _Occurrence(words, first, first + n_pieces - 1)
            for first in range(len(names) - n_pieces + 1)
            if names[first : first + n_pieces] == pieces.words
        ]
    return occurrences
