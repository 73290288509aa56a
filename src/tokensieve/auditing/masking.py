"""Texts without certain tokens; what remains is what a model could learn without them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.shapes import shape_of, stands_for_several
from tokensieve.auditing.seam import Seam
from tokensieve.auditing.units import Cut, glued_numbers, widened, without_empty_signature
from tokensieve.errors import InputError
from tokensieve.escape import IN_TITLE, for_display
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import (
    FieldTokenizer,
    Tokenizer,
    WordTokenizer,
    with_named_words,
)

MAX_LOOKED_FOR = 3  # tokens that occur nowhere for which a similar one is looked for
MIN_SIMILARITY = 0.75  # of two words (difflib): a letter lost, added or swapped in one of six
MIN_CHANGED = 10  # texts; of fewer, a trace of the mask cannot be told from chance
TRACE_OF_CHANGED = 0.5  # of the changed texts begin or end alike
TRACE_OF_ALL = 0.9  # of the texts that begin or end so were changed
TRACE_PIECES = (3, 2, 1)  # words or marks at an edge, the longest first

_Gram = tuple[str, ...]  # the words of an n-gram


@dataclass(frozen=True)
class MaskedFields:
    """Columns of texts without the tokens.

    Attributes:
        texts: by column; null where a row has no text.
        n_changed: rows of which a text changed.
        similar: each token that could be masked → itself if it occurs, else a similar token that
            occurs, or "".
        warnings: what could not be masked, and what masking leaves readable.
    """

    texts: dict[str, pl.Series]
    n_changed: int
    similar: dict[str, str]
    warnings: list[str]


def mask_fields(
    texts: Mapping[str, pl.Series], tokens: Sequence[str], tokenizer: Tokenizer, alike: bool = False
) -> MaskedFields:
    """`mask_texts` for the columns of one table.

    Args:
        texts: by column, null where a row has no text. Each of several columns is a field with its
            own tokens, written `column:word`.
        tokens: what to remove.
        tokenizer: the one that the tokens come from.
        alike: every token is removed from all columns, as from both answers of a pair.

    Raises:
        InputError: there are several columns, and a token belongs to none of them.
    """
    tokenizer = with_named_words(tokenizer, tokens)
    reasons = _reasons_not_to_mask(tokens, tokenizer)
    warnings = [f"cannot mask {token}: {reason}" for token, reason in reasons.items()]
    words = [token for token in tokens if token not in reasons]
    masked = dict(texts)
    similar = dict.fromkeys(words, "")
    is_changed = np.zeros(max(map(len, texts.values()), default=0), dtype=bool)
    for column in _tokens_by_column(texts, words, tokenizer, alike):
        if not column.tokens:
            continue
        before = texts[column.name]
        after = _masked_column(before, column, tokenizer, similar)
        differs = (after != before).fill_null(False).to_numpy()
        is_changed[: len(differs)] |= differs
        masked[column.name] = after
        warnings += _traces(after.fill_null(""), np.flatnonzero(differs))
    return MaskedFields(masked, int(is_changed.sum()), similar, warnings)


def _masked_column(
    texts: pl.Series, column: _ColumnTokens, tokenizer: Tokenizer, similar: dict[str, str]
) -> pl.Series:
    """One column without its tokens; enters into `similar` what occurs in it."""
    base = tokenizer.base if isinstance(tokenizer, FieldTokenizer) else tokenizer
    has_text = texts.is_not_null()
    present = texts.filter(has_text)
    split = base.split(present)
    for word, like in _similar_tokens(column.tokens, split).items():
        token = column.tokens[word]
        if like == word or (like and not similar[token]):
            similar[token] = column.with_prefix(like)
    shorter = _masked_texts(present, column.tokens, base, split)
    return texts.clone().scatter(has_text.arg_true(), shorter)


def _reasons_not_to_mask(tokens: Iterable[str], tokenizer: Tokenizer) -> dict[str, str]:
    """Token → why it cannot be cut out of a text, for those that cannot."""
    reasons = {}
    for token in tokens:
        if isinstance(tokenizer, FieldTokenizer) and tokenizer.is_value(token):
            reasons[token] = "it is a value of another column"
        elif is_formatting(token) and "⟨length " in token:
            reasons[token] = "it is the length of a text, not a word in it"
        elif is_formatting(token):
            reasons[token] = "it is formatting, not a word of the text"
    return reasons


@dataclass(frozen=True)
class _ColumnTokens:
    """What to remove from one column.

    Attributes:
        name: of the column.
        prefix: of its tokens; "" where columns are no fields.
        tokens: words as they are in the text → the token as the user writes it.
    """

    name: str
    prefix: str
    tokens: dict[str, str]

    def with_prefix(self, gram: str) -> str:
        """Words of a text as a token of the field."""
        return " ".join(f"{self.prefix}{word}" for word in gram.split(" "))


def _tokens_by_column(
    texts: Mapping[str, pl.Series], tokens: Sequence[str], tokenizer: Tokenizer, alike: bool
) -> list[_ColumnTokens]:
    """Assign each token to the column from which it is to be removed."""
    is_fields = len(texts) > 1 or isinstance(tokenizer, FieldTokenizer)
    if alike or not is_fields:
        return [_ColumnTokens(name, "", {token: token for token in tokens}) for name in texts]
    fields = _fields_of(tuple(texts), tokenizer)
    columns = {name: _ColumnTokens(name, fields.prefixes[name], {}) for name in texts}
    for token in tokens:
        column = columns.get(fields.field_of(token))
        if column is None:
            ways = ", ".join(f"{known.prefix}TOKEN" for known in columns.values())
            raise InputError(f"{token!r} does not name a field; write {ways}")
        words = [word.removeprefix(column.prefix) for word in token.split(" ")]
        column.tokens[" ".join(words)] = token
    return list(columns.values())


def _fields_of(columns: tuple[str, ...], tokenizer: Tokenizer) -> FieldTokenizer:
    """The audit's tokenizer if it has these fields, else one that has."""
    if not isinstance(tokenizer, FieldTokenizer):
        return FieldTokenizer(cast(WordTokenizer, tokenizer), columns)
    if set(columns) <= set(tokenizer.fields):
        return tokenizer
    return FieldTokenizer(tokenizer.base, columns)


def _similar_tokens(tokens: Iterable[str], split: pl.Series) -> dict[str, str]:
    """For each token, itself if it occurs in the split texts, else a similar one that does, or
    ""."""
    counts = split.explode().drop_nulls().alias("word").value_counts().sort("count", "word")
    spellings = {word.lower(): word for word in counts["word"]}  # the most frequent last
    frequency = {word: place for place, word in enumerate(spellings)}
    joined = [f" {words} " for words in split.list.join(" ").drop_nulls()]
    grams = {token: _Grams([token]) for token in tokens if _is_family(token)}
    similar: dict[str, str] = {}
    n_looked_for = 0
    for token in tokens:
        if token in grams and any(map(grams[token].places, split.to_list())):
            similar[token] = token
            continue
        like = token
        if n_looked_for < MAX_LOOKED_FOR and not _occurs(token, joined):
            n_looked_for += 1
            like = _closest_gram(token, spellings, frequency)
        similar[token] = like if _occurs(like, joined) else ""
    return similar


def _occurs(gram: str, joined: Sequence[str]) -> bool:
    """Whether words follow each other in one of the texts, which have spaces around each word.

    Polars would compile the words, which it refuses from 10 MB on.
    """
    looked_for = f" {gram} "
    return any(looked_for in words for words in joined)


def _closest_gram(token: str, spellings: Mapping[str, str], frequency: Mapping[str, int]) -> str:
    """The token with the most frequent similar word in place of each word that does not occur."""
    words = []
    for word in token.lower().split(" "):
        near = (
            [word] if word in spellings else get_close_matches(word, spellings, 5, MIN_SIMILARITY)
        )
        words.append(spellings[max(near, key=frequency.__getitem__)] if near else "")
    return " ".join(words)


def mask_texts(
    texts: pl.Series, tokens: Sequence[str], tokenizer: Tokenizer
) -> tuple[pl.Series, int]:
    """Remove every occurrence of the tokens from texts, and return how many texts changed.

    A code such as INV-38977 and a time stamp such as 2018-03-13 15:43 are removed whole. Nothing
    replaces them, because a placeholder would predict the label as well as the token did. Spaces
    and punctuation that would show where they were are removed too; everything else stays.

    Args:
        texts: without nulls.
        tokens: as the tokenizer writes them, n-grams with a space between words.
        tokenizer: what finds them in the texts.

    Raises:
        InputError: there are no tokens, or one that the tokenizer never produces.
    """
    if not tokens:
        raise InputError("no tokens to mask")
    tokenizer = with_named_words(tokenizer, tokens)
    if isinstance(tokenizer, WordTokenizer):
        for gram in tokens:
            if not _is_family(gram):
                _check_is_produced(gram, tokenizer)
    masked = _masked_texts(texts, tokens, tokenizer, tokenizer.split(texts))
    return masked, int((masked != texts).sum())


def _check_is_produced(gram: str, tokenizer: WordTokenizer) -> None:
    for word in gram.split(" "):
        if [name for _, _, name in tokenizer.spans(word)] != [word]:
            raise InputError(
                f"{gram!r} is not a token: the tokenizer never produces the word {word!r}"
            )


def _is_family(token: str) -> bool:
    """Whether a token stands for several spellings."""
    return stands_for_several(tuple(token.split(" ")))


class _Grams:
    """N-grams to find in texts: as they are written, or as families of spellings.

    A family, as an audit names it, stands for all words of one shape: 0 for any digits in `0:0`,
    `n/10` for ratings, `web-address` for all of them.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        grams = {tuple(token.split(" ")) for token in tokens}
        self._families = [gram for gram in sorted(grams) if stands_for_several(gram)]
        self._literal = grams
        self._literal_from = _by_first_word(grams)
        self._families_from = _by_first_word(self._families)

    def may_occur(self, split: pl.Series) -> Ints:
        """Places of the texts that contain all words of an n-gram.

        All, because "one" and "out" of "one out of ten" are in every other text.

        Args:
            split: the words of each text, a list per text.
        """
        words = split.explode().drop_nulls().unique()
        parts = self._words_of_grams(words)
        wanted = words.filter(words.is_in(sorted(parts)))
        words_of_texts = pl.LazyFrame({"place": np.arange(len(split)), "word": split})
        wanted_of_texts = (
            words_of_texts.explode("word")
            .filter(pl.col("word").is_in(wanted.implode()))
            .group_by("place")
            .agg(pl.col("word").unique())
            .sort("place")
            .collect()
        )
        places = [place for place, words in wanted_of_texts.iter_rows() if self._may_be_of(words)]
        return np.array(places, np.int64)

    def _words_of_grams(self, words: Iterable[str]) -> set[str]:
        """The words of all n-grams; for a family, such as all ratings, those of `words` that
        belong to it.
        """
        parts = {part for gram in self._literal for part in gram}
        if self._families:
            parts.update(word for word in words if shape_of(word) in parts)
        return parts

    def _may_be_of(self, words: Sequence[str]) -> bool:
        """Whether there are all words of an n-gram among the words, or their shapes."""
        parts = set(words)
        if self._families:
            parts.update(map(shape_of, words))
        return any(parts.issuperset(gram) for gram in self._literal)

    def places(self, words: Sequence[str]) -> set[int]:
        """Places of the words of a text that are part of an n-gram."""
        places: set[int] = set()
        for first, word in enumerate(words):
            for gram in self._literal_from.get(word, ()):
                if tuple(words[first : first + len(gram)]) == gram:
                    places.update(range(first, first + len(gram)))
        if self._families_from:
            shapes = [shape_of(word) for word in words]
            for first, (word, shape) in enumerate(zip(words, shapes, strict=True)):
                families = [
                    gram for part in {word, shape} for gram in self._families_from.get(part, ())
                ]
                for gram in families:
                    places.update(_places_of_family(gram, first, words, shapes))
        return places


def places_of_tokens(tokens: Sequence[str], split: pl.Series) -> Ints:
    """Places of the texts with all words of one of the tokens; `split` are the words of each."""
    return _Grams(tokens).may_occur(split)


def _by_first_word(grams: Iterable[_Gram]) -> dict[str, list[_Gram]]:
    """The n-grams that begin with each word."""
    first_words: dict[str, list[_Gram]] = {}
    for gram in grams:
        first_words.setdefault(gram[0], []).append(gram)
    return first_words


def _places_of_family(
    gram: _Gram, first: int, words: Sequence[str], shapes: Sequence[str]
) -> Iterable[int]:
    """The places from `first` on, if every word there, or its shape, is that of the family."""
    places = range(first, first + len(gram))
    if places.stop > len(words):
        return ()
    for part, place in zip(gram, places, strict=True):
        if part not in (words[place], shapes[place]):
            return ()
    return places


def _masked_texts(
    texts: pl.Series, tokens: Iterable[str], tokenizer: Tokenizer, split: pl.Series
) -> pl.Series:
    """The texts without the tokens; `split` are their words."""
    grams = _Grams(tokens)
    masked = texts.to_list()
    for place in grams.may_occur(split).tolist():
        masked[place] = _without_grams(masked[place], grams, tokenizer)
    return pl.Series(texts.name, masked, dtype=pl.String)


def _without_grams(text: str, grams: _Grams, tokenizer: Tokenizer) -> str:
    """The text without the n-grams.

    Repeated, because words that a cut brings together may form an n-gram again; each round makes
    the text shorter.
    """
    while True:
        shorter = _cut_once(text, grams, tokenizer)
        if shorter == text:
            return text
        text = shorter


def _cut_once(text: str, grams: _Grams, tokenizer: Tokenizer) -> str:
    """The text without the n-grams that it contains now, and without the rest of their units."""
    spans = tokenizer.spans(text)
    places = grams.places([word for _, _, word in spans])
    if not places:
        return text
    places |= glued_numbers(text, spans, places)
    cuts = [Cut(spans[place][0], spans[place][1]) for place in sorted(places)]
    seam = Seam(text)
    for cut in widened(text, cuts):
        seam.cut(cut.start, cut.end)
    return without_empty_signature(seam.finish(), text)


def _traces(texts: pl.Series, changed: Ints) -> list[str]:
    """Warnings of what a cut leaves readable: how half of the changed texts begin or end."""
    if len(changed) < MIN_CHANGED or len(changed) == len(texts):
        return []
    # digits as 0, so that "ticket 17" and "ticket 4" begin alike
    pieces = [re.findall(r"\w+|[^\w\s]", re.sub(r"\d+", "0", text.lower())) for text in texts]
    warnings = []
    for verb, from_end in (("begin with", False), ("end in", True)):
        for n_pieces in TRACE_PIECES:
            trace = _trace(pieces, changed, n_pieces, from_end)
            if trace is not None:
                warnings.append(trace.warning(verb))
                break
    return warnings


@dataclass(frozen=True)
class _Trace:
    """How many texts begin or end with the same pieces, and how many of these were changed."""

    pieces: tuple[str, ...]
    n_changed: int
    n_texts: int

    def warning(self, verb: str) -> str:
        """The sentence about this trace; `verb` says on which side of the texts it is ("begin
        with")."""
        number = ""
        if any("0" in piece for piece in self.pieces):
            number = " (0 stands for any number)"
        phrase = for_display(" ".join(self.pieces), IN_TITLE)
        return (
            f"masking leaves a trace: {self.n_changed:,} of the {self.n_texts:,} texts that {verb} "
            f"{phrase!r}{number} were changed, so the rest of the phrase still reveals them; "
            "remove the whole phrase, in all its variants"
        )


def _trace(
    pieces: Sequence[list[str]], changed: Ints, n_pieces: int, from_end: bool
) -> _Trace | None:
    """The pieces that most changed texts begin or end with, if they give these away."""
    edges = [tuple(words[-n_pieces:] if from_end else words[:n_pieces]) for words in pieces]
    edge, n_changed = Counter(edges[place] for place in changed.tolist()).most_common(1)[0]
    n_texts = edges.count(edge)
    is_common = n_changed >= TRACE_OF_CHANGED * len(changed)
    if not edge or not is_common or n_changed < TRACE_OF_ALL * n_texts:
        return None
    return _Trace(edge, n_changed, n_texts)
