"""A source in partitions that the workers of a Dask cluster read themselves, and the documents that they find there.

Whatever is computed of partitions is a pure function of them and their order, and nothing is scattered, so that all of it can be
computed again when a worker dies. Documents lie in files of the workers, so that the memory of a worker does not grow with them.
"""

from __future__ import annotations

import glob
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from pickle import PickleBuffer
from typing import Any

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.evidence import duplicates
from tokensieve.evidence.sums import Sums
from tokensieve.files import Folder
from tokensieve.model.settings import TrainSettings
from tokensieve.read.addresses import shown_address
from tokensieve.read.classes import check_labels_exist, class_names, label_order
from tokensieve.read.collect import collect_documents
from tokensieve.read.columns import labelled_columns
from tokensieve.read.formats import KINDS, file_table, kind_of
from tokensieve.read.part_column import TEST_NAMES, not_parts, unknown_parts
from tokensieve.read.plain import PACKINGS, reading
from tokensieve.read.reading_report import ReadingReport
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import open_source
from tokensieve.read.table import Batch, SourceTable
from tokensieve.read.values import as_list, listed, text_digests
from tokensieve.text.formatting import Formatting
from tokensieve.text.tokenizers import (
    Tokenizer,
    tokenizer_from_dict,
    tokenizer_of_fields,
)
from tokensieve.text.vocabulary import Chunks, TokenStream

with suppress(ImportError):
    from distributed import get_worker
    from distributed.protocol.serialize import deserialize_bytes, serialize_bytes

Reader = tuple[ReadSettings, Sequence[str], str]  # settings, text columns, label column
PIECE = 2**24  # bytes of a file to a piece; a task needs about eight times as much memory
LEAST = 2**20  # bytes of a piece at least, where a file has so many
QUOTED = ".csv", ".tsv"  # where a line break inside quotes ends no record
MATCHED = 16  # partitions whose number of texts are matched at a time; each time is a task for every partition
PAIRS = 2**18  # candidates that are compared at a time
_PLACES = 2**40  # documents are numbered from this, times the number of their partition
SAMPLE, CHARACTERS = (
    100_000,
    2**26,
)  # most documents, and characters of their texts, that an audit brings to its client


class _Stored:
    """A value in a file of the worker that computed it, and of any other that it is sent to."""

    _place: str | None = None  # of this worker's files

    def __init__(self, value: object, content: bytes | None = None) -> None:
        with suppress(ValueError):  # outside a task
            _Stored._place = str(get_worker().local_directory)
        content = serialize_bytes(value) if content is None else content
        self._size, self._folder = len(content), Folder(_Stored._place)
        self._path = self._folder.save([content])

    @property
    def value(self) -> Any:
        return deserialize_bytes(self._path.read_bytes())

    def __reduce__(self) -> tuple[type[_Stored], tuple[None, PickleBuffer]]:
        return _Stored, (None, PickleBuffer(self._path.read_bytes()))

    def __sizeof__(self) -> int:
        return (
            self._size // 8
        )  # for Dask: few are sent at a time (400 MB), but it does not write them into files again


Side = tuple[
    _Stored, _Stored, _Stored
]  # documents: tokens; formatting, labels and groups; MinHash signatures


class Partitions(Chunks):
    """Chunks stored on a cluster; everything computed from them is computed there."""

    REPEATS = (
        "duplicates",
        "conflicts",
        "conflicting_documents",
        "test_overlap",
    )  # of an `ReadingReport`

    def __init__(self, client: Any, parts: Sequence[Any]) -> None:
        self.client, self.parts = client, list(parts)

    def run(self, function: Callable[..., object], *arguments: object, priority: int = 0) -> Any:
        """The result of one task, still on the cluster."""
        return self.client.submit(function, *arguments, pure=False, priority=priority)

    def each(
        self,
        function: Callable[..., object],
        *common: object,
        numbered: bool = False,
        store: bool = False,
    ) -> Partitions:
        """The results of a function of every partition (and its number), still on the cluster, in memory or stored in files."""

        def of_value(part: Any, *given: object) -> object:
            found = function(part.value if isinstance(part, _Stored) else part, *given)
            return _Stored(found) if store else found

        shared = [
            self.run(lambda x: x, value) for value in common
        ]  # sent once, for the tasks of all partitions
        parts = [(part, i) if numbered else (part,) for i, part in enumerate(self.parts)]
        return Partitions(self.client, [self.run(of_value, *part, *shared) for part in parts])

    def here(self) -> list[Any]:
        """The partitions, fetched to this machine."""
        return list(self.client.gather(self.parts))

    def sum(self, add: Callable[..., object] = operator.add) -> Any:
        """The sum, pair by pair in a fixed order, still on the cluster; added as soon as possible, so that few wait in memory."""
        parts = self.parts
        while len(parts) > 1:
            pairs = [
                self.run(add, *parts[i : i + 2], priority=1) for i in range(0, len(parts) - 1, 2)
            ]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0]

    def total(
        self, of: Callable[..., Any], *common: Any, then: Callable[[Any], Any] = lambda total: total
    ) -> Any:
        """`then` applied to the sum of `of(chunk, *common)`, fetched to this machine."""
        return self.run(then, self.each(of, *common).sum()).result()

    def regrouped(
        self,
        n: int,
        then: Callable[[pl.DataFrame], object],
        rows: Callable[..., Any],
        *common: object,
    ) -> Partitions:
        """`then` of the rows of `rows(partition, number, *common)` in n other partitions, those with the same number in one."""

        def cut(part: Any, number: int, *common: object) -> list[_Stored]:
            frame, numbers = rows(part, number, *common)
            return [_Stored(frame.filter(numbers % n == i)) for i in range(n)]

        def joined(some: list[_Stored]) -> object:
            return then(pl.concat([one.value for one in some]))

        cuts = self.each(cut, *common, numbered=True).parts
        taken = [[self.run(operator.getitem, cut, i) for cut in cuts] for i in range(n)]
        return Partitions(self.client, [self.run(joined, some) for some in taken])

    @staticmethod
    def numbers(values: pl.Series, salt: object) -> pl.Series:
        """A number below 2³² for each value (of bytes: digests), which depends on nothing else but the salt (SplitMix64)."""
        digests = values if values.dtype == pl.Binary else text_digests(values)
        both = digests, text_digests([str(salt)])
        mixed, own = (
            some.bin.slice(0, 8).bin.reinterpret(dtype=pl.UInt64).to_numpy() for some in both
        )
        mixed = mixed ^ own
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return pl.Series((mixed >> np.uint64(32)).astype(np.uint32))

    def copies(self, test: Partitions | None, classes: tuple[str, ...], near: bool) -> Counter[str]:
        """Numbers of texts of training documents (`Side`), and of test documents, that occur more than once.

        `REPEATS`, and of all documents "contradicting" (the same text has another label too), "leaked_copies" and "leaked" (test
        documents with a copy, and with a copy or a near copy, in training) and "repeated" (training documents with an earlier copy
        or near copy). Without `near` no near copies are sought.
        """
        first_test = len(self.parts) * _PLACES
        sides = Partitions(self.client, self.parts + ([] if test is None else test.parts))
        n = math.ceil(len(sides.parts) / MATCHED)
        matched = sides.regrouped(n, partial(_matched, first_test=first_test), _marks, classes)
        counts: Counter[str] = matched.each(operator.itemgetter(0)).sum().result()
        if (
            near
        ):  # candidates, and the signatures of some of them at a time, come together on one worker
            pairs = matched.each(operator.itemgetter(1)).sum(duplicates.merged)
            alike = []
            for start in range(0, self.run(len, pairs).result(), PAIRS):
                some = self.run(lambda pairs, start: pairs[start : start + PAIRS], pairs, start)
                alike.append(
                    self.run(_alike, some, sides.each(_involved, some, numbered=True).parts)
                )
            counts.update(self.run(duplicates.count_near_copies, alike, first_test).result())
        return counts

    @staticmethod
    def of(client: Any, source: Any) -> Partitions:
        """Pieces of a source for workers to read, or data already on the cluster."""
        if paths := Piece.paths(source):
            threads = sum(client.nthreads().values()) if hasattr(client, "nthreads") else 1
            pieces = Piece.of(
                paths, max(threads, 1), lambda of, some: Partitions(client, some).each(of).here()
            )
            return Partitions(client, pieces)
        parts = list(source.to_delayed()) if hasattr(source, "to_delayed") else list(source)
        if not parts:
            raise InputError(
                "there are no partitions: pass a Dask bag or data frame with documents"
            )
        return Partitions(client, client.compute(parts, sync=False))

    @classmethod
    def read(
        cls, client: Any, source: Any, how: TrainSettings, tokenizer: Tokenizer, near: bool | None
    ) -> tuple[
        Partitions, Partitions | None, Partitions, Tokenizer, tuple[str, ...], Ints, ReadingReport
    ]:
        """Documents for training and for testing (`Side`), a sample of both, the tokenizer that reads them, the classes, documents
        by side and class, shape (2, K), and what was noticed while reading. No sample if `near` is None; signatures if it is true.

        The sample holds all documents, or those whose text (or group) has a digest below some number: copies of a text come
        together, so that as large a fraction of the sample as of all documents has a copy.
        """
        pieces = cls.of(client, source).parts
        given, tests = len(pieces), [] if how.test is None else cls.of(client, how.test).parts
        reader, tokenizer, detected = _reader(cls(client, pieces), how, tokenizer)
        # What is for testing: where a column says so (None), a fraction by digest, all of a piece, or none of it
        drawn_share = None if reader[0].split else (how.test_share, how.seed)
        rule = False if tests or not (reader[0].split or how.test_share) else drawn_share
        rules = [rule] * given + [True] * len(tests)
        read = cls(client, [*pieces, *tests]).each(_read, reader, rules, numbered=True)
        found = read.each(operator.itemgetter(1, 2)).here()
        for problem in (one for _, one in found if isinstance(one, InputError)):
            raise problem
        rows = [n for n, _ in found]
        counts, read_sizes, characters = reduce(operator.add, (sums for _, sums in found))
        asked, sizes = how.destinations(), Counter[tuple[Any, int]]()
        check_labels_exist("the source", asked, {old for old, _ in read_sizes})
        for (old, test), n in read_sizes.items():
            sizes[asked.get(old, old), test] += n
        groups = {
            old: (asked.get(old, old), n)
            for (old, test), n in sorted(read_sizes.items())
            if not test
        }
        dropped = {old: groups.pop(old)[1] for old in list(groups) if groups[old][0] is None}
        learned, held_out = (
            {name: n for (name, test), n in sizes.items() if name and test == side}
            for side in (0, 1)
        )
        counts["kept"], columns = sum(learned.values()), (" + ".join(reader[1]), reader[2])
        intake = ReadingReport(
            counts=counts, columns=columns, dropped=dropped, groups=groups, detected=detected
        )
        intake.check_kept("the partitions")
        classes = class_names(learned, f"the partitions: the label column {reader[2]!r}")
        for name in sorted(held_out.keys() - learned.keys(), key=label_order):
            raise InputError(
                f"the training data has no label {name!r} of the test documents; its labels are {listed(classes)}"
            )
        documents = np.array([[sizes[name, test] for name in classes] for test in (0, 1)])
        before = [sum(rows[:i]) if i < given else sum(rows[given:i]) for i in range(len(rows))]
        frames = read.each(lambda found, i, before: (found[0], before[i]), before, numbered=True)
        by = "key" if how.by is None else "group"
        rate = (
            min(1.0, SAMPLE / documents.sum(), CHARACTERS / max(characters, 1))
            if near is not None
            else 0.0
        )
        drawn = frames.each(
            lambda part: (frame := _frame(part)).filter(
                cls.numbers(frame[by], "sample") < rate * 2**32
            )
        )
        of_side = slice(given), slice(given if tests else 0, None)
        if how.by is not None:  # documents are sent to the partition of their group
            of_side = slice(None), slice(None)
            frames = frames.regrouped(len(rows), lambda frame: (_Stored(frame), 0), _grouped)
        train, held = (
            cls(client, frames.parts[some]).each(
                _side, bool(test), tokenizer.to_dict(), how.formatting, bool(near)
            )
            for test, some in enumerate(of_side)
        )
        return (
            train,
            None if rule is False and not tests else held,
            drawn,
            tokenizer,
            classes,
            documents,
            intake,
        )


@dataclass(frozen=True)
class Piece:
    """Part of a source, read on a worker by the functions that read a whole file, so that a row means the same.

    Attributes:
        path: a path or an address that all workers reach.
        unit: what start and stop count: rows, or bytes (of whole records); "file" for a whole file.
        start, stop: where it begins and ends; 0 and 0 for a whole file.
    """

    path: str
    unit: str = "file"
    start: int = 0
    stop: int = 0

    @staticmethod
    def paths(source: Any) -> list[str]:
        """The paths, globs and addresses that a source consists of; empty for data already on the cluster."""
        some = [source] if isinstance(source, str | Path) else source
        named = isinstance(some, list | tuple) and all(isinstance(one, str | Path) for one in some)
        return list(map(str, some)) if named else []

    @staticmethod
    def of(
        sources: Sequence[str | Path], least: int = 1, each: Callable[..., Iterable[int]] = map
    ) -> list[Piece]:
        """Paths, globs and addresses in pieces of some ten megabytes, at least `least` of them where the files allow it.

        `each` calls a function of every piece; a cluster does so where the pieces are read. An `InputError` has the command that
        converts a file that is large and cannot be cut.
        """
        paths: list[str] = []
        for one in map(str, sources):
            local_glob = "://" not in one and re.search(r"[*?\[]", one) and not Path(one).exists()
            paths += sorted(glob.glob(one)) if local_glob else [one]
        if not paths:
            raise InputError(f"there is no file {str(sources[0])[:80]!r}; check the path")
        pieces = [piece for path in paths for piece in _cut(path, math.ceil(least / len(paths)))]
        before, out = 0, list[Piece]()
        for piece, found in zip(pieces, each(Piece.quotes, pieces), strict=True):
            if piece.unit == "bytes":
                start, before = (out[-1].stop, before) if piece.start else (0, 0)
                before += found
                piece = replace(
                    piece, start=start, stop=_record_end(piece.path, piece.stop, before)
                )
            if piece.start < piece.stop or not piece.start:  # a record may be longer than a piece
                out.append(piece)
        return out

    def table(self, settings: ReadSettings) -> SourceTable:
        """Its rows; an InputError if it cannot be read."""
        name = shown_address(self.path) if "://" in self.path else Path(self.path).name
        if self.start:
            name += f", from {self.unit[:-1]} {self.start + 1:,} on"
        if self.unit == "file":
            return open_source(self.path, settings).train
        if self.unit == "rows" and "://" not in self.path:
            return file_table(Path(self.path), settings, name, slice(self.start, self.stop))
        if self.unit == "rows":
            with reading(name):
                rows = (
                    pl.scan_parquet(self.path).slice(self.start, self.stop - self.start).collect()
                )
            return open_source(rows).train
        folder = Folder()
        copy = folder.path / f"piece{kind_of(self.path)}"
        names = self.start and settings.header and kind_of(self.path) in QUOTED
        with open(self.path, "rb") as file:
            head = file.read(_record_end(self.path, 0, 0) if names else 0)
            file.seek(self.start)
            copy.write_bytes(head + file.read(self.stop - self.start))
        table = file_table(copy, settings, name)
        table.keep_alive.append(folder)
        return table

    def quotes(self) -> int:
        """Quotation marks in its range of a .csv or .tsv file."""
        if self.unit != "bytes" or kind_of(self.path) not in QUOTED:
            return 0
        with open(self.path, "rb") as file:
            file.seek(self.start)
            return file.read(self.stop - self.start).count(b'"')


def _record_end(path: str, at: int, quotes: int) -> int:
    """The end of the record that contains the byte before `at`, given the number of quotation marks before `at`."""
    inside, quoting, back = quotes % 2 == 1, kind_of(path) in QUOTED, min(at, 1)
    with open(path, "rb") as file:
        file.seek(at - back)
        inside ^= quoting and file.read(back) == b'"'
        file.seek(at - back)
        while line := file.readline():
            inside ^= quoting and line.count(b'"') % 2 == 1
            if not inside:
                break
        return file.tell()


def _cut(path: str, least: int) -> list[Piece]:
    """A file in equal ranges of rows or bytes, or whole."""
    kind, address, size = kind_of(path.partition("?")[0]), "://" in path, 0
    if not address:
        if not Path(path).is_file():
            what = (
                "workers cannot read a folder of texts"
                if Path(path).is_dir()
                else "there is no such file"
            )
            raise InputError(
                f"--cluster needs files that every worker can read, but {path!r} is not one ({what}); pass .parquet files or a glob"
            )
        size = Path(path).stat().st_size
        path = str(Path(path).resolve())  # workers may run elsewhere in the file system
    unit, whole, n = "file", 0, 1
    packing = PACKINGS.get(Path(path).suffix.lower())
    packed = packing.module if packing else ""  # no part of such a file can be read by itself
    if kind == ".parquet" and not packed:
        with reading(Path(path).name):
            unit, whole = "rows", int(pl.scan_parquet(path).select(pl.len()).collect().item())
        # the size of a file at an address is not known
        n = max(
            math.ceil(whole / 100_000) if address else math.ceil(size / PIECE), min(least, whole), 1
        )
    elif not address and not packed and kind in (*QUOTED, ".jsonl", ".ndjson"):
        with open(path, "rb") as file:
            if file.read(2) not in (
                b"\xff\xfe",
                b"\xfe\xff",
            ):  # UTF-16 has line breaks of two bytes
                unit, whole, n = (
                    "bytes",
                    size,
                    max(math.ceil(size / PIECE), min(least, size // LEAST), 1),
                )
    if unit == "file" and size > 4 * PIECE:
        if packed:
            out = str(Path(path).with_suffix(""))
            command = f"import {packed}, shutil; shutil.copyfileobj({packed}.open({path!r}), open({out!r}, 'wb'))"
        else:
            method = KINDS[kind].polars_method if kind else "read_csv"
            more = f", encoding='utf-16', separator={',' if kind == '.csv' else chr(9)!r}" * (
                method == "read_csv"
            )
            command = (
                f"import polars; polars.{method}({path!r}{more}).write_parquet('converted.parquet')"
            )
        raise InputError(
            f'{path}: this format cannot be split among workers; convert it: python -c "{command}"'
        )
    return [Piece(path, unit, whole * i // n, whole * (i + 1) // n) for i in range(n)]


def _reader(
    parts: Partitions, how: TrainSettings, tokenizer: Tokenizer
) -> tuple[Reader, Tokenizer, tuple[str, ...]]:
    """How every partition is read, the tokenizer, and notes; columns are recognised in the first rows of a source, but the one that
    marks rows as train or test in all of them."""
    settings, label, detected = replace(how, test=None), how.one_label(), tuple[str, ...]()
    named = (how.text,) if isinstance(how.text, str) else tuple(how.text or ())
    if isinstance(parts.parts[0], Piece):
        head = parts.parts[0].table(settings)

        def values(names: Sequence[str]) -> Iterator[Batch]:
            yield {names[0]: sorted(set().union(*parts.each(_values, names[0], settings).here()))}

        whole = SourceTable(head.name, head.columns, values)
        settings = replace(settings, split=open_source(whole).part_column(how))
        taken = {"by": how.by, "split": settings.split}
        others = [
            head.checked_column(name, flag) for flag, name in taken.items() if name is not None
        ]
        named, label = labelled_columns(head, named or None, label, others)
        detected = (*head.notes, *whole.notes)
    fields = named if len(named) > 1 else ()
    return (
        (settings, named or ("text",), label or "label"),
        tokenizer_of_fields(tokenizer, fields),
        detected,
    )


def _values(piece: Piece, name: str, settings: ReadSettings) -> set[str]:
    """The different values in a column; none if a piece cannot be read, which `_read` reports."""
    with suppress(InputError):
        return {
            str(x) for batch in piece.table(settings).read([name]) for x in as_list(batch[name])
        }
    return set()


def _read(
    part: Any, number: int, reader: Reader, rules: Sequence[Any]
) -> tuple[_Stored | None, int, Sums | InputError]:
    """The documents of a partition, its rows, and sums: what was read, documents by label (as it is there) and side, characters. An
    error of the user's is a result like any other, so that no worker logs it."""
    (settings, texts, label), name, rule = reader, f"partition {number + 1}", rules[number]
    try:
        table = (
            part.table(settings) if isinstance(part, Piece) else SourceTable.of_frame(part, name)
        )
        if table is None:
            rows = list(part)
            for row in rows:
                if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2:
                    raise InputError(
                        f"{name} contains {str(row)[:60]!r}: pass (text, label) pairs or data frames"
                    )
            table = SourceTable.of_lists(([row[0] for row in rows], [row[1] for row in rows]), name)
            texts, label = table.columns[:1], table.columns[1]
        texts, label = (
            [table.checked_column(text, "text") for text in texts],
            table.checked_column(label, "label"),
        )
        more = {"group": settings.by, "part": settings.split, "environment": settings.environments}
        named = {
            kind: table.checked_column(column, kind)
            for kind, column in more.items()
            if column is not None
        }
        documents = collect_documents(table, texts, label, settings, other_columns=named).train
        frame, counts = documents.frame, documents.counts
        if "group" in frame.columns:  # a document without a group is one of its own
            own = pl.format("\0{} {}", pl.lit(table.name), pl.int_range(pl.len()))
            frame = frame.with_columns(group=pl.col("group").fill_null(own))
        test: Any = pl.lit(rule is True)
        if rule is None:
            names = frame["part"].fill_null("").str.strip_chars().str.to_lowercase()
            # one side alone is no error in a part of the source
            if odd := unknown_parts(set(names)):
                raise not_parts(table, str(settings.split), odd)
            test = names.is_in(TEST_NAMES)
        elif isinstance(rule, tuple):
            by = "group" if "group" in frame.columns else "key"
            test = Partitions.numbers(frame[by], rule[1]) < rule[0] * 2**32
    except InputError as problem:
        return None, 0, problem
    frame = frame.with_columns(test=test)
    sizes = Counter(
        {(label, test): n for label, test, n in frame.group_by("label", "test").len().iter_rows()}
    )
    to = pl.col("label").replace_strict(
        settings.destinations(), default=pl.col("label"), return_dtype=pl.String
    )
    frame = frame.with_columns(label=to).drop_nulls("label").drop("part", strict=False)
    characters = int(frame["text"].str.len_chars().sum())
    return (
        _Stored(frame),
        counts["rows"],
        Sums((Counter() if rule is True else counts, sizes, characters)),
    )


def _frame(part: tuple[_Stored, int]) -> pl.DataFrame:
    """The documents of a partition, given the rows of the source before it."""
    return pl.DataFrame(part[0].value).with_columns(pl.col("row") + part[1])


def _grouped(part: tuple[_Stored, int], _: int) -> tuple[pl.DataFrame, pl.Series]:
    return (frame := _frame(part)), Partitions.numbers(frame["group"], "bucket")


def _side(
    part: tuple[_Stored, int], test: bool, tokenizer: dict[str, Any], formatting: bool, near: bool
) -> Side:
    """The documents for training or for testing as tokens."""
    frame, splitter = _frame(part).filter(pl.col("test") == test), tokenizer_from_dict(tokenizer)
    text = frame["text"]
    stream, bits = (
        TokenStream.of(text, splitter),
        Formatting(splitter).bits(text if formatting else text.clear()),
    )
    signatures = duplicates.signatures(stream) if near else None
    return _Stored(stream), _Stored((bits, frame.drop("text", "test"))), _Stored(signatures)


def _matched(marks: pl.DataFrame, first_test: int) -> tuple[Counter[str], Ints]:
    """Numbers of documents of the same digest, and the candidates for near duplicates."""
    exact = duplicates.count_exact_copies(marks, first_test)
    return exact, duplicates.candidates_of_marks(marks)


def _marks(side: Side, number: int, classes: tuple[str, ...]) -> tuple[pl.DataFrame, pl.Series]:
    """Documents by the digest of their text (band 0), and by the bands of their signature."""
    stream, (_, frame), signatures = (one.value for one in side)
    words = (
        np.diff(stream.starts) > 0 if signatures is not None else np.zeros(frame.height, dtype=bool)
    )
    digest = np.frombuffer(b"".join(frame["key"]), dtype="<u4").reshape(-1, 3)
    document = np.arange(stream.n_documents) + number * _PLACES
    columns = {name: digest[:, i] for i, name in enumerate("abc")} | {
        "document": document,
        "words": words,
    }
    index = {name: k for k, name in enumerate(classes)}
    label = frame["label"].replace_strict(index, return_dtype=pl.UInt8)
    out = [
        pl.DataFrame(columns).with_columns(
            label=label, d=pl.lit(0, pl.UInt32), band=pl.lit(0, pl.UInt8)
        )
    ]
    if signatures is not None:
        out += duplicates.bands(signatures, words, document[words])
    found = pl.concat(out, how="diagonal")
    return found, found["a"]


def _involved(side: Side, number: int, pairs: Ints) -> tuple[Ints, Any]:
    """Documents of a partition that occur in pairs, with their signatures."""
    documents = np.unique(pairs[pairs // _PLACES == number])
    return documents, side[2].value[documents % _PLACES] if len(documents) else np.empty(
        (0, duplicates.HASHES), np.uint32
    )


def _alike(pairs: Ints, involved: Sequence[tuple[Ints, Any]]) -> Ints:
    """The pairs that are similar enough."""
    documents, signatures = (np.concatenate(x) for x in zip(*involved, strict=True))
    return duplicates.similar(pairs, documents, signatures)
