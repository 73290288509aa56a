"""What counts as a word: tokens, patterns (`units`), and passages that many documents repeat.

A **passage** is a run of tokens that many documents share, such as a disclaimer, a signature or a
template. A model learns it as a whole, and no single word of it shows that. It is therefore one
word here: counted, removed and inserted whole. Its words are not counted where they are part of it.

Passages are maximal runs in which every GRAM tokens in a row are shared by enough documents. They
hold four different words at least, occur in enough documents themselves, and belong together: most
documents that contain their first or last four tokens contain the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from tokensieve.diagnose.subjects.units import PATTERNS, Unit, units_of
from tokensieve.text.lexicon import with_lexicon
from tokensieve.text.matches import ANY_SIGN, TokenSpan
from tokensieve.text.patterns import WORD
from tokensieve.text.tokenizers import WordTokenizer

SEPARATOR = "\x1f"  # between the two texts of a pair
# punctuation too: a model may rely on it
SPLITTER = WordTokenizer(line_breaks=False, html="keep", pattern=WORD + ANY_SIGN)

GRAM = 6  # tokens of the shortest passage; ordinary phrases that many documents share are shorter
EDGE = 4  # tokens at either end by which documents with a part of the passage are known
MIN_DISTINCT_WORDS = 4  # fewer are a refrain ("very very very"), no passage
# most documents with its first or last tokens must contain all of it, else an end is an idiom
MIN_WHOLE_FRACTION = 0.8

NAME = "[a name]"
TITLES = ("dear", "mr", "mrs", "ms", "dr", "prof")  # what follows them is a name
Tokens = tuple[str, ...]


class Run(NamedTuple):
    """A token or a passage, and the places of its tokens in the list of all."""

    first: int
    end: int
    token: str


def learned_splitter(texts: pl.Series, min_documents: int, min_of_passage: int) -> WordSplitter:
    """Return a splitter that knows what the texts share.

    Args:
        texts: documents from which it learns.
        min_documents: a number or name in so many of them is a word of its own.
        min_of_passage: a passage must be in so many of them.
    """
    # words of scripts without spaces are those that an audit finds
    audited = with_lexicon(WordTokenizer(line_breaks=False, html="keep"), texts)
    assert isinstance(audited, WordTokenizer)
    tokenizer = replace(SPLITTER, lexicon=audited.lexicon)
    documents: list[list[str]] = [
        [unit.token for unit in units_of(tokens)] for tokens in tokenizer.split(texts).to_list()
    ]
    counts = Counter(token for tokens in documents for token in set(tokens))
    frequent = frozenset(token for token, n in counts.items() if n >= min_documents)
    passages = _passages(documents, texts, min_of_passage, tokenizer)
    return WordSplitter(tokenizer, passages, frequent)


def _passages(
    documents: list[list[str]], texts: pl.Series, min_documents: int, tokenizer: WordTokenizer
) -> dict[Tokens, str]:
    """Passages that enough of the texts share, and how each is written."""
    candidates = _candidate_passages(documents, min_documents)
    edge_counts = _document_frequencies(documents, EDGE)
    padded = {passage: f" {' '.join(passage)} " for passage in candidates}
    shared = [passage for passage in candidates if len(candidates[passage]) >= min_documents]
    shared.sort(key=lambda passage: (-len(candidates[passage]), passage))

    written: dict[Tokens, str] = {}
    for passage in shared:
        if any(padded[candidate] in padded[passage] for candidate in written):
            continue
        n_containing = len(_documents_containing(passage, candidates, padded))
        n_with_edge = max(edge_counts[passage[:EDGE]], edge_counts[passage[-EDGE:]])
        if n_containing >= MIN_WHOLE_FRACTION * n_with_edge:
            written[passage] = _as_written(passage, texts[min(candidates[passage])], tokenizer)
    return written


def _candidate_passages(documents: list[list[str]], min_documents: int) -> dict[Tokens, set[int]]:
    """Maximal runs of frequent grams, and the documents in which each is a maximal run."""
    gram_counts = _document_frequencies(documents, GRAM)
    passages: dict[Tokens, set[int]] = {}
    for number, tokens in enumerate(documents):
        is_frequent = [gram_counts[gram] >= min_documents for gram in _grams(tokens, GRAM)]
        for frequent, places in groupby(range(len(is_frequent)), is_frequent.__getitem__):
            if not frequent:
                continue
            starts = list(places)
            passage = _without_marks_around(tokens[starts[0] : starts[-1] + GRAM])
            if passage is not None:
                passages.setdefault(passage, set()).add(number)
    return passages


def _without_marks_around(tokens: list[str]) -> Tokens | None:
    """Drop punctuation at both ends; None if what remains is too short for a passage."""
    words = [place for place, token in enumerate(tokens) if token[0].isalnum()]
    if len({tokens[place] for place in words}) < MIN_DISTINCT_WORDS:
        return None
    passage = tuple(tokens[words[0] : words[-1] + 1])
    return passage if len(passage) >= GRAM else None


def _grams(tokens: Sequence[str], n: int) -> Iterator[Tokens]:
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def _document_frequencies(documents: list[list[str]], n: int) -> Counter[Tokens]:
    """How many documents contain each n tokens in a row."""
    counts: Counter[Tokens] = Counter()
    for tokens in documents:
        counts.update(set(_grams(tokens, n)))
    return counts


def _documents_containing(
    passage: Tokens, candidates: dict[Tokens, set[int]], padded: dict[Tokens, str]
) -> set[int]:
    """Documents with the passage, alone or inside a longer run."""
    numbers: set[int] = set()
    for candidate, documents in candidates.items():
        if padded[passage] in padded[candidate]:
            numbers |= documents
    return numbers


def _as_written(passage: Tokens, text: str, tokenizer: WordTokenizer) -> str:
    """The passage as a text writes it, in lower case and with single spaces."""
    key = " ".join(passage)
    spans = WordSplitter(tokenizer, {passage: key}, None).spans(text)
    start, end = next(span[:2] for span in spans if span[2] == key)
    return " ".join(text[start:end].lower().split())


class WordSplitter:
    """Splits a text into words and punctuation, with each pattern and passage as one token.

    Args:
        tokenizer: splits texts into words and signs.
        passages: the tokens of each passage, and how it is written as one token.
        frequent: tokens that are words of their own although they look like a pattern; None if no
            patterns are looked for.
    """

    def __init__(
        self,
        tokenizer: WordTokenizer,
        passages: dict[Tokens, str],
        frequent: frozenset[str] | None,
    ) -> None:
        self._tokenizer = tokenizer
        self._written = passages
        self._frequent = frequent
        self._by_first: dict[str, list[Tokens]] = {}
        for passage in sorted(passages, key=len, reverse=True):
            self._by_first.setdefault(passage[0], []).append(passage)

    def _runs(self, tokens: Sequence[str]) -> Iterator[Run]:
        """Each token, pattern or passage with its place among the tokens."""
        units = units_of(tokens)
        written = [unit.token for unit in units]
        place = 0
        while place < len(units):
            passage = self._passage_at(written, place)
            n_units = 1 if passage is None else len(passage)
            name = self._named(units, place) if passage is None else self._written[passage]
            yield Run(units[place].first, units[place + n_units - 1].end, name)
            place += n_units

    def _passage_at(self, tokens: Sequence[str], place: int) -> Tokens | None:
        """The longest passage that begins here."""
        for passage in self._by_first.get(tokens[place], ()):
            if tuple(tokens[place : place + len(passage)]) == passage:
                return passage
        return None

    def _named(self, units: Sequence[Unit], place: int) -> str:
        """How a unit is written, or the name of its pattern."""
        unit = units[place]
        if self._frequent is None or unit.token in self._frequent:
            return unit.token
        if place > 0 and units[place - 1].token in TITLES and unit.token.isalpha():
            return NAME
        return unit.pattern or unit.token

    def split(self, texts: pl.Series) -> pl.Series:
        """As `Tokenizer.split`."""
        lists = [
            [run.token for run in self._runs(tokens)]
            for tokens in self._tokenizer.split(texts).to_list()
        ]
        return pl.Series(texts.name, lists, dtype=pl.List(pl.String))

    def spans(self, text: str) -> list[TokenSpan]:
        """As `Tokenizer.spans`."""
        spans = self._tokenizer.spans(text)
        runs = self._runs([token for _, _, token in spans])
        return [
            TokenSpan(spans[run.first].start, spans[run.end - 1].end, run.token) for run in runs
        ]

    def to_dict(self) -> dict[str, Any]:
        """As `Tokenizer.to_dict`; patterns and passages are found again in the documents."""
        return self._tokenizer.to_dict()


def kind_of(token: str) -> str:
    """Whether a token of this splitter is a "word", a "pattern" or a "passage"."""
    if token in PATTERNS or token == NAME:
        return "pattern"
    return "passage" if " " in token else "word"
