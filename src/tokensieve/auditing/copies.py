"""Documents that repeat one another, exactly or nearly, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.context import AuditContext, computed_once
from tokensieve.evidence.direct_copies import NO_ORIGINAL, direct_originals
from tokensieve.evidence.duplicates import near_duplicates as find_near_duplicates
from tokensieve.evidence.word_edits import document_hashes
from tokensieve.read.corpus import Corpus
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer
from tokensieve.text.vocabulary import Chunks, TokenStream

NO_WORDS = -1  # texts without a word in a field are alike there


@computed_once
def near_duplicates(audit: AuditContext) -> Ints | None:
    """The first near duplicate of each training document, then of each test document.

    Training and test documents are numbered together, training first; a document that repeats none
    has its own number. None unless the audit is thorough. In a sample, which holds few near
    duplicates of its own documents, only exact copies count.
    """
    if not audit.settings.thorough:
        return None
    exact = _first_with_same_key(audit.train.corpus.keys, audit.test.corpus.keys)
    is_sample = bool(audit.task.known_totals)
    if is_sample:
        return exact

    near = _first_near_copy(audit)
    repeats_none = near == np.arange(len(near))
    # texts without words are alike only if they are the same
    return np.where(repeats_none, exact, near)


def _first_near_copy(audit: AuditContext) -> Ints:
    """The first document that each nearly repeats: in every field, if texts have several.

    Many pairs of premise and hypothesis share a premise by design, and are no copies.
    """
    streams = [audit.train.stream, audit.test.stream]
    fields = text_fields(audit)
    if audit.fields is None or len(fields) < 2:
        return find_near_duplicates(streams)
    columns = {}
    for field in fields:
        parts = [_FieldChunks(stream, field, audit.fields) for stream in streams]
        near = find_near_duplicates(parts)
        has_words = np.concatenate([np.diff(chunk.starts) > 0 for part in parts for chunk in part])
        columns[field] = np.where(has_words, near, NO_WORDS)
    frame = pl.DataFrame(columns).with_row_index("document")
    first = frame.select(pl.col("document").min().over(fields)).to_series()
    return first.to_numpy().astype(np.int64)


def text_fields(audit: AuditContext) -> list[str]:
    """The fields of a document that are texts, not values of other columns."""
    corpus = audit.train.corpus
    return [field for field in corpus.fields if field not in corpus.columns]


def field_values(audit: AuditContext, field: str) -> pl.Series:
    """One number per training document: the same for documents with the same words in a field."""
    assert audit.fields is not None
    sums = [
        pl.Series(document_hashes(chunk))
        for chunk in _FieldChunks(audit.train.stream, field, audit.fields)
    ]
    return pl.concat(sums)


class _FieldChunks(Chunks):
    """One field of documents: its tokens, chunk by chunk."""

    def __init__(self, whole: Chunks, field: str, fields: FieldTokenizer) -> None:
        self._whole = whole
        self._field = field
        self._fields = fields

    def __iter__(self) -> Iterator[TokenStream]:
        """The same streams with the words of the field only; documents without any stay, and are
        empty.
        """
        for stream in self._whole:
            is_of_field = np.array(
                [self._fields.field_of(word) == self._field for word in stream.words],
                dtype=np.bool_,
            )
            is_kept = is_of_field[stream.ids]
            n_kept_before = np.append(0, np.cumsum(is_kept))
            yield TokenStream(stream.ids[is_kept], n_kept_before[stream.starts], stream.words)


@computed_once
def originals(audit: AuditContext) -> Ints | None:
    """The document that each repeats itself, without a copy of a copy between them.

    Documents are numbered as by `near_duplicates`, and a test document repeats training documents;
    −1 for one that repeats none. None unless the audit is thorough. Of texts in several fields it
    is the first document of the group.
    """
    first = near_duplicates(audit)
    if first is None:
        return None
    train = audit.train.corpus
    test = audit.test.corpus
    n_training = len(train.labels)
    exact = _first_with_same_key(train.keys, test.keys)
    limits = np.minimum(np.arange(len(first)), n_training)
    repeats_exactly = exact < limits
    if audit.fields is not None or np.array_equal(first, exact):
        return np.where(first < limits, first, NO_ORIGINAL)

    direct = originals_in(first, train, test, audit.tokenizer)
    # texts without words are alike only if they are the same
    return np.where(repeats_exactly, exact, direct)


def originals_in(first: Ints, train: Corpus, test: Corpus, tokenizer: Tokenizer) -> Ints:
    """`direct_originals` of training and test documents, of which `first` gives the groups."""
    n_training = len(train.labels)
    sizes = np.bincount(first, minlength=len(first))
    texts = [
        str(train.texts[i]) if i < n_training else str(test.texts[i - n_training])
        for i in np.flatnonzero(sizes[first] > 1).tolist()
    ]
    words = tokenizer.split(pl.Series(texts, dtype=pl.String))
    return direct_originals(first, words, n_training)


@computed_once
def first_copies(audit: AuditContext) -> Ints:
    """The first copy of each training document; near duplicates count where they were looked
    for."""
    near = near_duplicates(audit)
    if near is None:
        return _first_with_same_key(audit.train.corpus.keys)
    return near[: len(audit.train.corpus.labels)]


def without_copies(audit: AuditContext, documents: Ints) -> Ints:
    """Keep one document of each text, since a repeated text is evidence only once."""
    _, first_places = np.unique(first_copies(audit)[documents], return_index=True)
    return documents[np.sort(first_places)]


def removal_advice(audit: AuditContext, n_exact: int, n_near: int) -> str:
    """A sentence on how to remove copies: an option drops exact ones, near ones are left to a
    person."""
    by_hand = "by hand (findings.csv lists their rows)"
    reader_drops_copies = not audit.task.known_totals  # on a cluster none are dropped
    if n_exact and reader_drops_copies:
        advice = "Remove the exact copies with --duplicates=drop"
        if n_near:
            advice += f" and the near copies {by_hand}"
    elif n_near:
        advice = f"Remove the near copies {by_hand}"
    else:
        advice = f"Remove the copies {by_hand}"
    has_groups = audit.train.corpus.groups is not None  # and they have not kept copies together
    if not has_groups:
        advice += (
            ", or keep them together with --by COLUMN if a column tells which documents belong "
            "together"
        )
    return f"{advice}."


def _first_with_same_key(*keys: pl.Series) -> Ints:
    """For each document, the number of the first one with the same key."""
    frame = pl.DataFrame({"key": pl.concat(keys)}).with_row_index("document")
    first = frame.select(pl.col("document").min().over("key")).to_series()
    return first.to_numpy().astype(np.int64)
