"""Labelled documents read by the workers of a cluster: which are for testing, and what was noticed.

Workers read their pieces, split the texts into tokens and keep both in files. The client sees
counts, and the sample of documents that an audit shows.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial, reduce
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.evidence import duplicates
from tokensieve.model.partitions import Partitions, Stored, hashed_numbers
from tokensieve.model.settings import TrainSettings
from tokensieve.model.source_pieces import Piece, cut_source, source_paths
from tokensieve.read.annotation_columns import AnnotationColumns
from tokensieve.read.classes import check_labels_exist, class_names, label_order
from tokensieve.read.collect import collect_documents
from tokensieve.read.columns import labelled_columns
from tokensieve.read.part_column import TEST_NAMES, not_parts, unknown_parts
from tokensieve.read.reading_report import ReadingReport
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import open_source
from tokensieve.read.table import Batch, SourceTable
from tokensieve.read.values import as_list, listed
from tokensieve.text.formatting import Bits, Formatting
from tokensieve.text.lexicon import MAX_CHARACTERS, with_lexicon
from tokensieve.text.tokenizers import (
    FieldTokenizer,
    Tokenizer,
    WordTokenizer,
    tokenizer_from_dict,
    tokenizer_of_fields,
)
from tokensieve.text.vocabulary import TokenStream

# what an audit brings to its client at most: documents, and characters of their texts
MAX_SAMPLE_DOCUMENTS = 100_000
MAX_SAMPLE_CHARACTERS = 2**26
CHARACTERS_LOOKED_AT = 500_000  # of training texts, to see whether a script has no spaces
# partitions whose number of texts are matched at a time; each time is a task for every partition
PARTITIONS_PER_MATCH = 16
CANDIDATES_PER_COMPARISON = 2**18  # pairs of documents, whose signatures come to one worker
# documents are numbered from this, times the number of their partition
PLACES_PER_PARTITION = 2**40
# n partitions are cut into n² pieces to be exchanged, and Dask's scheduler handles each piece
MAX_EXCHANGED_PARTITIONS = 64
# numbers of copies that are reported as what was noticed while reading
REPEATS = ("duplicates", "conflicts", "conflicting_documents", "test_overlap")


class Destination(Enum):
    """Where the documents of a partition go."""

    TRAINING = "training"
    TESTING = "testing"
    BY_COLUMN = "as a column says"
    DRAWN = "a fraction is drawn for testing by the digest of the text, or of the group"


@dataclass(frozen=True)
class _Reader:
    """How every partition is read.

    Attributes:
        settings: those of reading; `split` is the column that says what is for testing, if any.
        texts, label: columns.
        fraction, seed: what is drawn for testing, if something is.
        notes: what was noticed when the columns were recognised.
    """

    settings: ReadSettings
    texts: Sequence[str]
    label: str
    fraction: float
    seed: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Totals:
    """What was counted while reading partitions; `a + b` is that of both.

    Attributes:
        counts: what was noticed in training data (`ReadingReport.counts`).
        sizes: documents by label, as it is there, and whether they are for testing.
        characters: of the texts that are kept.
    """

    counts: Counter[str] = field(default_factory=Counter)
    sizes: Counter[tuple[Any, bool]] = field(default_factory=Counter)
    characters: int = 0

    def __add__(self, other: _Totals) -> _Totals:
        return _Totals(
            self.counts + other.counts,
            self.sizes + other.sizes,
            self.characters + other.characters,
        )


@dataclass(frozen=True)
class _ReadPartition:
    """A partition after reading.

    Attributes:
        documents: a frame in a file; None if there was a problem.
        n_rows: rows of the source, whether they are kept or not.
        totals: of the documents.
        problem: what is wrong with the data. An error of the user's is a result like any other, so
            that no worker logs it.
    """

    documents: Stored | None
    n_rows: int = 0
    totals: _Totals = field(default_factory=_Totals)
    problem: InputError | None = None

    def without_documents(self) -> _ReadPartition:
        """The rest, which is small."""
        return replace(self, documents=None)


class _Numbered(NamedTuple):
    """Documents of a partition, and how many rows of the source stand before it."""

    documents: Stored
    rows_before: int

    def frame(self) -> pl.DataFrame:
        """The documents, with their row in the source."""
        return pl.DataFrame(self.documents.value).with_columns(pl.col("row") + self.rows_before)


@dataclass(frozen=True)
class SideDocuments:
    """Formatting, labels and groups of documents; the texts are gone.

    Attributes:
        bits: as of `Formatting.bits`; of no document without formatting.
        frame: as of `Corpus.frame`, but for the text, with the name of the class as label.
    """

    bits: Bits
    frame: pl.DataFrame


class StoredSide(NamedTuple):
    """Training or test documents of a partition, in files.

    Attributes:
        tokens: a `TokenStream`.
        documents: `SideDocuments`.
        signatures: MinHash signatures; None if no near copies are sought.
    """

    tokens: Stored
    documents: Stored
    signatures: Stored


@dataclass(frozen=True)
class ReadPartitions:
    """Labelled documents on a cluster.

    Attributes:
        train: training documents, a `StoredSide` for each partition.
        test: test documents likewise; None if there are none.
        sample: frames of some of both; empty if no sample was asked for.
        tokenizer: reads their texts.
        classes: names of the K classes.
        sizes: documents by side and class, shape (2, K).
        report: what was noticed while reading.
    """

    train: Partitions
    test: Partitions | None
    sample: Partitions
    tokenizer: Tokenizer
    classes: tuple[str, ...]
    sizes: Ints
    report: ReadingReport


def read_partitions(
    client: Any,
    source: Any,
    settings: TrainSettings,
    tokenizer: Tokenizer,
    with_sample: bool,
    near_copies: bool,
) -> ReadPartitions:
    """Let workers read documents for training and for testing.

    The sample holds all documents, or those whose text (or group) has a digest below some number:
    copies of a text come together, so that as large a fraction of the sample as of all documents
    has a copy.

    Args:
        client: a `dask.distributed.Client`.
        source: paths for the workers to read, or data on the cluster.
        settings: what is read, and what is for testing.
        tokenizer: splits a text, or a field of it.
        with_sample: draw a sample; without, it is empty.
        near_copies: make signatures, by which copies that differ in some words are found.
    """
    source_parts = _partitions_of(client, source)
    reader = _recognise_columns(source_parts, settings)
    if len(reader.texts) > 1:
        tokenizer = tokenizer_of_fields(tokenizer, tuple(reader.texts))
    reading = _read_all(source_parts, settings, reader)
    totals = reduce(operator.add, [summary.totals for summary in reading.summaries])
    report = _report(reader, settings, totals)
    classes, sizes = _classes_and_sizes(reader, settings, totals)

    tokenizer = _with_learned_words(tokenizer, reading.documents, totals)
    fraction = _sample_fraction(sizes, totals) if with_sample else 0.0
    sample = reading.documents.each(_draw, "group" if settings.by else "key", fraction)
    store = partial(
        _store_side,
        tokenizer=tokenizer.to_dict(),
        formatting=settings.formatting,
        near_copies=near_copies,
    )
    sides = _sides(reading, settings.by is not None, store)
    return ReadPartitions(*sides, sample, tokenizer, classes, sizes, report)


@dataclass(frozen=True)
class _Reading:
    """Partitions of a source, and behind them those of a test source, after reading.

    Attributes:
        documents: `_Numbered` documents of each.
        summaries: what was read of each.
        n_given: how many are of the source.
        has_test: whether there are test documents.
    """

    documents: Partitions
    summaries: list[_ReadPartition]
    n_given: int
    has_test: bool


def _read_all(source_parts: Partitions, settings: TrainSettings, reader: _Reader) -> _Reading:
    """Let workers read all partitions of the source, and of the test source if there is one."""
    test_parts: list[Any] = []
    if settings.test is not None:
        test_parts = _partitions_of(source_parts.client, settings.test).parts
    destination = _destination(reader, bool(test_parts))
    n_given = len(source_parts.parts)
    destinations = [destination] * n_given + [Destination.TESTING] * len(test_parts)
    every_part = Partitions(source_parts.client, [*source_parts.parts, *test_parts])
    read = every_part.each(_read_partition, reader, destinations, numbered=True)
    summaries = read.each(_ReadPartition.without_documents).here()
    _raise_problem(summaries)
    rows_before = _rows_before(summaries[:n_given]) + _rows_before(summaries[n_given:])
    documents = read.each(_number, rows_before, numbered=True)
    has_test = bool(test_parts) or destination is not Destination.TRAINING
    return _Reading(documents, summaries, n_given, has_test)


def _number(part: _ReadPartition, number: int, rows_before: Sequence[int]) -> _Numbered:
    assert part.documents is not None
    return _Numbered(part.documents, rows_before[number])


def _sides(
    reading: _Reading, has_groups: bool, store: Callable[..., StoredSide]
) -> tuple[Partitions, Partitions | None]:
    """Training and test documents as `store` keeps them; no test documents are None.

    Documents are sent to the partition of their group, or else of their text, so that the order of
    the rows does not decide which documents are learned together: files are often sorted by label.
    Many partitions keep theirs if there are no groups.
    """
    client = reading.documents.client
    training_parts = reading.documents.parts[: reading.n_given]
    # without a test source, the test documents are among those of the source
    test_parts = reading.documents.parts[reading.n_given :] or training_parts
    if has_groups:
        training_parts = test_parts = _exchanged(reading.documents, "group").parts
    elif reading.n_given <= MAX_EXCHANGED_PARTITIONS:
        has_test_source = test_parts is not training_parts
        training_parts = _exchanged(Partitions(client, training_parts), "key").parts
        if not has_test_source:
            test_parts = training_parts
    train = Partitions(client, training_parts).each(partial(store, test=False))
    if not reading.has_test:
        return train, None
    return train, Partitions(client, test_parts).each(partial(store, test=True))


def _exchanged(documents: Partitions, column: str) -> Partitions:
    """Move documents so that those with one value in a column are in one partition; the number of
    partitions stays."""

    def rows(part: _Numbered, _: int) -> tuple[pl.DataFrame, pl.Series]:
        frame = part.frame()
        return frame, hashed_numbers(frame[column], "bucket")

    return documents.regrouped(
        len(documents.parts), lambda frame: _Numbered(Stored(frame), 0), rows
    )


def _partitions_of(client: Any, source: Any) -> Partitions:
    """Pieces of a source for workers to read, or data already on the cluster."""
    if paths := source_paths(source):
        n_threads = sum(client.nthreads().values()) if hasattr(client, "nthreads") else 1
        pieces = cut_source(
            paths,
            max(n_threads, 1),
            lambda function, pieces: Partitions(client, pieces).each(function).here(),
        )
        return Partitions(client, pieces)
    parts = list(source.to_delayed()) if hasattr(source, "to_delayed") else list(source)
    if not parts:
        raise InputError("there are no partitions: pass a Dask bag or data frame with documents")
    return Partitions(client, client.compute(parts, sync=False))


def _destination(reader: _Reader, has_test_source: bool) -> Destination:
    """Decide where the documents of the source go: to training, to testing, or to either."""
    if has_test_source or not (reader.settings.split or reader.fraction):
        return Destination.TRAINING
    return Destination.BY_COLUMN if reader.settings.split else Destination.DRAWN


def _recognise_columns(parts: Partitions, settings: TrainSettings) -> _Reader:
    """Find the columns: in the first rows, but the one that marks rows as test in all of them."""
    texts = settings.text or ()
    reader = _Reader(
        settings=replace(settings, test=None),
        texts=(texts,) if isinstance(texts, str) else tuple(texts),
        label=settings.one_label() or "",
        fraction=settings.test_share,
        seed=settings.seed,
    )
    if not isinstance(parts.parts[0], Piece):
        return replace(reader, texts=reader.texts or ("text",), label=reader.label or "label")
    head = parts.parts[0].table(reader.settings)

    def values(names: Sequence[str]) -> Iterator[Batch]:
        distinct = parts.each(_distinct_values, names[0], reader.settings).here()
        yield {names[0]: sorted(set().union(*distinct))}

    source = SourceTable(head.name, head.columns, values)
    part_column = open_source(source).part_column(settings)
    other_columns = [
        head.checked_column(column, flag)
        for flag, column in (("by", settings.by), ("split", part_column))
        if column is not None
    ]
    columns, label = labelled_columns(
        head, reader.texts or None, reader.label or None, other_columns
    )
    annotators = _row_annotators(head, settings, [*columns, label, *other_columns])
    return replace(
        reader,
        settings=replace(reader.settings, split=part_column),
        texts=tuple(columns),
        label=label,
        notes=(*head.notes, *source.notes, *annotators),
    )


def _row_annotators(
    head: SourceTable, settings: TrainSettings, taken: Sequence[str]
) -> Iterator[str]:
    """Say that rows of one text by several annotators stay apart: they may be in any partition."""
    columns = AnnotationColumns.of(head, settings, taken)
    if columns is None or not columns.is_certain:
        return
    if settings.annotator is not None:
        raise InputError(
            f"--annotator does not work on a cluster for rows (column {columns.annotator!r}); "
            "leave out --cluster, and use --stream if the data is larger than memory"
        )
    yield (
        f"column {columns.annotator!r} may name annotators; on a cluster each row is a document, "
        "also if one text has several"
    )


def _distinct_values(piece: Piece, column: str, settings: ReadSettings) -> set[str]:
    """The different values in a column; none if a piece cannot be read, which is reported later."""
    values: set[str] = set()
    with suppress(InputError):
        for batch in piece.table(settings).read([column]):
            values.update(str(value) for value in as_list(batch[column]))
        return values
    return set()


def _read_partition(
    part: Any, number: int, reader: _Reader, destinations: Sequence[Destination]
) -> _ReadPartition:
    """Read the documents of a partition, and decide which of them are for testing."""
    settings = reader.settings
    destination = destinations[number]
    try:
        table, texts, label = _table_and_columns(part, f"partition {number + 1}", reader)
        collected = collect_documents(
            table, texts, label, settings, other_columns=_other_columns(table, settings)
        ).train
        frame = collected.frame
        if "group" in frame.columns:  # a document without a group is one of its own
            row_names = pl.format("\0{} {}", pl.lit(table.name), pl.int_range(pl.len()))
            frame = frame.with_columns(group=pl.col("group").fill_null(row_names))
        frame = frame.with_columns(test=_is_test(frame, table, reader, destination))
    except InputError as problem:
        return _ReadPartition(None, problem=problem)

    sizes = frame.group_by("label", "test").len()
    new_label = pl.col("label").replace_strict(
        settings.destinations(), default=pl.col("label"), return_dtype=pl.String
    )
    frame = frame.with_columns(label=new_label).drop_nulls("label").drop("part", strict=False)
    totals = _Totals(
        counts=Counter() if destination is Destination.TESTING else collected.counts,
        sizes=Counter({(label, test): n for label, test, n in sizes.iter_rows()}),
        characters=int(frame["text"].str.len_chars().sum()),
    )
    return _ReadPartition(Stored(frame), collected.counts["rows"], totals)


def _other_columns(table: SourceTable, settings: ReadSettings) -> dict[str, str]:
    """The columns of group, part and environment, where they are named."""
    columns = {
        "group": settings.by,
        "part": settings.split,
        "environment": settings.environments,
    }
    return {
        kind: table.checked_column(column, kind)
        for kind, column in columns.items()
        if column is not None
    }


class _TableAndColumns(NamedTuple):
    """Rows of a partition, and the columns of their texts and label."""

    table: SourceTable
    texts: list[str]
    label: str


def _table_and_columns(part: Any, name: str, reader: _Reader) -> _TableAndColumns:
    """A piece of a source, a data frame, or (text, label) pairs as a table."""
    if isinstance(part, Piece):
        table = part.table(reader.settings)
    else:
        frame_table = SourceTable.of_frame(part, name)
        if frame_table is None:
            return _table_of_pairs(list(part), name)
        table = frame_table
    texts = [table.checked_column(text, "text") for text in reader.texts]
    return _TableAndColumns(table, texts, table.checked_column(reader.label, "label"))


def _table_of_pairs(rows: list[Any], name: str) -> _TableAndColumns:
    """A table of (text, label) pairs, and its two columns.

    Raises:
        InputError: an entry is no pair.
    """
    for row in rows:
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2:
            raise InputError(
                f"{name} contains {str(row)[:60]!r}: pass (text, label) pairs or data frames"
            )
    texts = [row[0] for row in rows]
    labels = [row[1] for row in rows]
    table = SourceTable.of_lists((texts, labels), name)
    text, label = table.columns
    return _TableAndColumns(
        table, [table.checked_column(text, "text")], table.checked_column(label, "label")
    )


def _is_test(
    frame: pl.DataFrame, table: SourceTable, reader: _Reader, destination: Destination
) -> pl.Expr | pl.Series:
    """Whether each document is for testing."""
    if destination is Destination.BY_COLUMN:
        names = frame["part"].fill_null("").str.strip_chars().str.to_lowercase()
        # one side alone is no error in a part of the source
        if unknown := unknown_parts(set(names)):
            raise not_parts(table, str(reader.settings.split), unknown)
        return names.is_in(TEST_NAMES)
    if destination is Destination.DRAWN:
        by = "group" if "group" in frame.columns else "key"
        return _is_drawn(frame[by], reader.seed, reader.fraction)
    return pl.lit(destination is Destination.TESTING)


def _is_drawn(values: pl.Series, salt: object, fraction: float) -> pl.Series:
    """Whether each value is among a fraction that depends on the values and the salt only."""
    return hashed_numbers(values, salt) < fraction * 2**32


def _raise_problem(summaries: Sequence[_ReadPartition]) -> None:
    """Raise the first problem that a partition has."""
    for summary in summaries:
        if summary.problem is not None:
            raise summary.problem


def _report(reader: _Reader, settings: TrainSettings, totals: _Totals) -> ReadingReport:
    """A report on what was noticed in the training data."""
    new_names = settings.destinations()
    check_labels_exist("the source", new_names, {label for label, _ in totals.sizes})
    groups: dict[str, tuple[str, int]] = {}
    dropped: dict[str, int] = {}
    for (label, is_test), n in sorted(totals.sizes.items()):
        if is_test:
            continue
        new_name = new_names.get(label, label)
        if new_name is None:
            dropped[label] = n
        else:
            groups[label] = (new_name, n)
    totals.counts["kept"] = sum(n for _, n in groups.values())
    report = ReadingReport(
        counts=totals.counts,
        columns=(" + ".join(reader.texts), reader.label),
        dropped=dropped,
        groups=groups,
        detected=reader.notes,
    )
    report.check_kept("the partitions")
    return report


class _ClassesAndSizes(NamedTuple):
    """The classes, and the documents by side and class, shape (2, K)."""

    classes: tuple[str, ...]
    sizes: Ints


def _classes_and_sizes(
    reader: _Reader, settings: TrainSettings, totals: _Totals
) -> _ClassesAndSizes:
    """The classes of the training data; an InputError if the test documents have others."""
    new_names = settings.destinations()
    training: Counter[str] = Counter()
    testing: Counter[str] = Counter()
    for (label, is_test), n in totals.sizes.items():
        new_name = new_names.get(label, label)
        if new_name:
            (testing if is_test else training)[new_name] += n
    classes = class_names(training, f"the partitions: the label column {reader.label!r}")
    for name in sorted(testing.keys() - training.keys(), key=label_order):
        raise InputError(
            f"the training data has no label {name!r} of the test documents; "
            f"its labels are {listed(classes)}"
        )
    sizes = np.array([[side[name] for name in classes] for side in (training, testing)])
    return _ClassesAndSizes(classes, sizes)


def _rows_before(summaries: Sequence[_ReadPartition]) -> list[int]:
    """Rows of a source before each of its partitions."""
    return list(accumulate((summary.n_rows for summary in summaries), initial=0))[:-1]


def _sample_fraction(sizes: Ints, totals: _Totals) -> float:
    """The fraction of the documents that an audit brings to its client."""
    by_documents = MAX_SAMPLE_DOCUMENTS / sizes.sum()
    by_characters = MAX_SAMPLE_CHARACTERS / max(totals.characters, 1)
    return float(min(1.0, by_documents, by_characters))


def _with_learned_words(tokenizer: Tokenizer, documents: Partitions, totals: _Totals) -> Tokenizer:
    """The tokenizer with the words of scripts without spaces that training texts contain.

    They are learned on the client, from training texts drawn by their digests: from few, to see
    whether there are such scripts, then from more.
    """
    learned = tokenizer
    for n_characters in (CHARACTERS_LOOKED_AT, MAX_CHARACTERS):
        fraction = min(1.0, n_characters / max(totals.characters, 1))
        frames = documents.each(_drawn_texts, fraction).here()
        learned = with_lexicon(tokenizer, pl.concat(frames)["text"])
        if fraction == 1.0 or not _has_lexicon(learned):
            break
    return learned


def _drawn_texts(part: _Numbered, fraction: float) -> pl.DataFrame:
    """The training texts of a partition whose digests are below a fraction."""
    frame = part.frame().filter(~pl.col("test"))
    return frame.filter(_is_drawn(frame["key"], "words", fraction)).select("text")


def _has_lexicon(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer knows words of scripts without spaces."""
    base = tokenizer.base if isinstance(tokenizer, FieldTokenizer) else tokenizer
    return isinstance(base, WordTokenizer) and bool(base.lexicon)


def _draw(part: _Numbered, by: str, fraction: float) -> pl.DataFrame:
    frame = part.frame()
    return frame.filter(_is_drawn(frame[by], "sample", fraction))


def _store_side(
    part: _Numbered, test: bool, tokenizer: dict[str, Any], formatting: bool, near_copies: bool
) -> StoredSide:
    """The documents for training or for testing as tokens."""
    frame = part.frame().filter(pl.col("test") == test)
    text = frame["text"]
    splitter = tokenizer_from_dict(tokenizer)
    stream = TokenStream.of(text, splitter)
    bits = Formatting(splitter).bits(text if formatting else text.clear())
    documents = SideDocuments(bits, frame.drop("text", "test"))
    signatures = duplicates.signatures(stream) if near_copies else None
    return StoredSide(Stored(stream), Stored(documents), Stored(signatures))


def count_copies(
    train: Partitions, test: Partitions | None, classes: tuple[str, ...], near_copies: bool
) -> Counter[str]:
    """Numbers of texts of training and test documents that occur more than once.

    They are `REPEATS`, and of all documents "contradicting" (the same text has another label too),
    "leaked_copies" and "leaked" (test documents with a copy, and with a copy or a near copy, in
    training) and "repeated" (training documents with an earlier copy or near copy). Without
    `near_copies` no near copies are sought.
    """
    first_test = len(train.parts) * PLACES_PER_PARTITION
    sides = Partitions(train.client, train.parts + ([] if test is None else test.parts))
    n = math.ceil(len(sides.parts) / PARTITIONS_PER_MATCH)
    matched = sides.regrouped(n, partial(_matched, first_test=first_test), _marks, classes)
    counts: Counter[str] = matched.each(operator.itemgetter(0)).sum().result()
    if not near_copies:
        return counts
    # candidates, and the signatures of some of them at a time, come together on one worker
    pairs = matched.each(operator.itemgetter(1)).sum(duplicates.merged)
    n_pairs = sides.run(len, pairs).result()
    similar = []
    for start in range(0, n_pairs, CANDIDATES_PER_COMPARISON):
        candidates = sides.run(_next_candidates, pairs, start)
        signatures = sides.each(_involved, candidates, numbered=True).parts
        similar.append(sides.run(_similar, candidates, signatures))
    counts.update(sides.run(duplicates.count_near_copies, similar, first_test).result())
    return counts


def _next_candidates(pairs: Ints, start: int) -> Ints:
    """The candidates that are compared at once, from row `start` on, shape (rows, 2)."""
    return pairs[start : start + CANDIDATES_PER_COMPARISON]


def _matched(marks: pl.DataFrame, first_test: int) -> tuple[Counter[str], Ints]:
    """Numbers of documents of the same digest, and the candidates for near duplicates."""
    exact = duplicates.count_exact_copies(marks, first_test)
    return exact, duplicates.candidates_of_marks(marks)


def _marks(
    side: StoredSide, number: int, classes: tuple[str, ...]
) -> tuple[pl.DataFrame, pl.Series]:
    """Documents by the digest of their text (band 0), and by the bands of their signature."""
    stream = side.tokens.value
    frame = side.documents.value.frame
    signatures = side.signatures.value
    has_words = np.zeros(frame.height, dtype=bool)
    if signatures is not None:
        has_words = np.diff(stream.starts) > 0
    digest = np.frombuffer(b"".join(frame["key"]), dtype="<u4").reshape(-1, 3)
    document = np.arange(stream.n_documents) + number * PLACES_PER_PARTITION
    class_index = {name: k for k, name in enumerate(classes)}
    by_text = pl.DataFrame(
        {
            "a": digest[:, 0],
            "b": digest[:, 1],
            "c": digest[:, 2],
            "document": document,
            "words": has_words,
        }
    ).with_columns(
        label=frame["label"].replace_strict(class_index, return_dtype=pl.UInt8),
        d=pl.lit(0, pl.UInt32),
        band=pl.lit(0, pl.UInt8),
    )
    marks = [by_text]
    if signatures is not None:
        marks += duplicates.bands(signatures, has_words, document[has_words])
    all_marks = pl.concat(marks, how="diagonal")
    return all_marks, all_marks["a"]


def _involved(side: StoredSide, number: int, pairs: Ints) -> tuple[Ints, Any]:
    """Documents of a partition that occur in pairs, with their signatures."""
    documents = np.unique(pairs[pairs // PLACES_PER_PARTITION == number])
    if not len(documents):
        return documents, np.empty((0, duplicates.HASHES), np.uint32)
    return documents, side.signatures.value[documents % PLACES_PER_PARTITION]


def _similar(pairs: Ints, involved: Sequence[tuple[Ints, Any]]) -> Ints:
    """The candidates that are near duplicates, rows of `pairs`.

    Args:
        pairs: the numbers of two documents in each row, shape (m, 2).
        involved: of each partition, the numbers of its documents and their signatures.
    """
    documents = np.concatenate([numbers for numbers, _ in involved])
    signatures = np.concatenate([of_documents for _, of_documents in involved])
    return duplicates.similar(pairs, documents, signatures)
