"""Labelled documents, or pairs of answers, in one validated frame."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.escape import for_display
from tokensieve.read.fields import ColumnKind
from tokensieve.read.reading_report import ReadingReport
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.read.values import text_digests

SCORE_SIDES = ("lower", "higher")  # than the mean score of training, where labels are scores


class Outcome(IntEnum):
    """Which of two answers won; the numbers of `Pairing.position`."""

    UNKNOWN = -1
    FIRST = 0
    SECOND = 1
    TIE = 2

    @property
    def opposite(self) -> Outcome:
        """The outcome if the two answers change places."""
        swapped = {Outcome.FIRST: Outcome.SECOND, Outcome.SECOND: Outcome.FIRST}
        return swapped.get(self, self)


class PairResults(NamedTuple):
    """Whether pairs were predicted right (½ of a tie), and the unit of each."""

    right: Floats
    units: Ints


@dataclass(frozen=True, eq=False)
class Pairing:
    """Documents 2i and 2i + 1 are the preferred and the other side of pair i, of n pairs.

    Attributes:
        columns: where the first and the last answer were read.
        group_column: where the units were read; None if every pair is a unit.
        units: unit (prompt) of each pair, shape (n,), as an index into `names`.
        names: the units, as text.
        position: the `Outcome` of each pair: which of two columns held the preferred answer
            (UNKNOWN if they are not two), or TIE, shape (n,). A tied pair is there twice, in both
            orders, one after the other. None if the order of the columns itself says who won.
    """

    columns: tuple[str, str]
    group_column: str | None
    units: Ints
    names: tuple[str, ...]
    position: Ints | None = None

    def select(self, mask: NDArray[np.bool_]) -> Pairing:
        """The pairs where `mask`, shape (n,), is true."""
        position = None
        if self.position is not None:
            position = self.position[mask]
        return replace(self, units=self.units[mask], position=position)

    def without_mirrored_ties(
        self, right: Floats | NDArray[np.bool_], among: NDArray[np.bool_] | None = None
    ) -> PairResults:
        """Count each tie once, and as half right, although it is there in both orders.

        Args:
            right: whether each pair is predicted right, shape (n,).
            among: which pairs count, shape (n,); all if None.
        """
        if self.position is None:
            is_tie = np.zeros(len(right), dtype=np.bool_)
        else:
            is_tie = self.position == Outcome.TIE
        is_counted = ~is_tie
        first_of_each_tie = np.flatnonzero(is_tie)[::2]
        is_counted[first_of_each_tie] = True
        if among is not None:
            is_counted &= among
        return PairResults(np.where(is_tie, 0.5, right)[is_counted], self.units[is_counted])


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents with their labels, in one frame.

    Attributes:
        frame: a row per document: "text" (absent if `stored` has the texts), "key" (the digest by
            which texts are compared, Binary), "label" (class index), "row" (in the source, from 1),
            and, if read, "group" (String: what the document belongs to; a document without one is a
            group of its own), "environment" (String with nulls) and "weight" (in training). If
            labels are scores, "score" (Float64); "label" then says whether it is above the mean.
        classes: the class names, sorted (numbers by size), so that of two classes index 1 is the
            positive one: False < True, 0 < 1, −1 < 1, negative < positive.
        name: the source, for messages.
        reading: what was noticed while reading. After `split_corpus`, both parts have the report on
            the whole.
        test: the test documents under the same classes, or None.
        fields: the fields that were joined into each text; empty if the text is one column.
        columns: those of the fields that are values of other columns (`--columns`), and how these
            become words.
        pairs: how documents belong together, if they are the two sides of pairs.
        stored: the texts, if they were read as a stream and are stored in a file.
    """

    frame: pl.DataFrame
    classes: tuple[str, ...]
    name: str
    reading: ReadingReport
    test: Corpus | None = None
    fields: tuple[str, ...] = ()
    columns: Mapping[str, ColumnKind] = field(default_factory=dict)
    pairs: Pairing | None = None
    stored: StoredTexts | None = None

    @classmethod
    def of(
        cls, texts: Sequence[str] | pl.Series, labels: Sequence[int] | Ints, classes: Sequence[str]
    ) -> Corpus:
        """A corpus from data in memory: n texts, the class index of each, and the class names."""
        series = pl.Series("text", texts, dtype=pl.String)
        frame = pl.DataFrame(
            {
                "text": series,
                "key": text_digests(series),
                "label": np.asarray(labels, dtype=np.int64),
            }
        ).with_columns(row=pl.int_range(1, len(series) + 1, dtype=pl.Int64))
        reading = ReadingReport(counts=Counter(rows=frame.height, kept=frame.height))
        return cls(frame, tuple(classes), "the documents", reading)

    @property
    def texts(self) -> pl.Series | StoredTexts:
        """n texts, without nulls."""
        if self.stored is None:
            return self.frame["text"]
        return self.stored

    def rows_of(self, documents: Ints, part: str = "train", token: str = "") -> pl.DataFrame:
        """Documents as rows of the source, with columns token, part, row and label.

        Args:
            documents: their positions.
            part: "train" or "test".
            token: the reason they are listed, or "".
        """
        names = pl.Series(list(map(str, self.classes)), dtype=pl.String)
        frame = pl.DataFrame(
            {"row": self.rows[documents], "label": names.gather(self.labels[documents])}
        )
        row = pl.col("row").cast(pl.Int64)
        return frame.select(token=pl.lit(token), part=pl.lit(part), row=row, label="label")

    @property
    def characters(self) -> Ints:
        """Length of each text without the values of other columns, shape (n,)."""
        lengths = [texts.str.len_chars().to_numpy() for texts in self._texts_without_columns()]
        return np.concatenate([np.empty(0, np.int64), *lengths]).astype(np.int64)

    def _texts_without_columns(self) -> Iterator[pl.Series]:
        """Batches of texts; where values of columns follow one field of text, the text alone."""
        if self.stored is None:
            batches = iter([self.frame["text"]])
        else:
            batches = self.stored.batches()
        has_one_text = len(self.fields) - len(self.columns) == 1
        if not (self.columns and has_one_text):
            yield from batches
            return
        text_mark = re.escape(f"⟦{self.fields[0]}⟧")
        column_mark = re.escape(f"⟦{self.fields[1]}⟧")
        for texts in batches:
            without_columns = texts.str.replace(rf"(?s)\n{column_mark} .*", "")
            yield without_columns.str.replace(f"^{text_mark} ", "")

    @property
    def keys(self) -> pl.Series:
        """Digest of each text, n."""
        return self.frame["key"]

    @cached_property
    def labels(self) -> Ints:
        """Class index of each document, shape (n,)."""
        return self.frame["label"].to_numpy()

    @cached_property
    def tied(self) -> NDArray[np.bool_]:
        """Mark the documents that belong to a tied pair, shape (n,)."""
        if self.pairs is None or self.pairs.position is None:
            return np.zeros(len(self.labels), dtype=np.bool_)
        return np.repeat(self.pairs.position == Outcome.TIE, 2)

    @cached_property
    def rows(self) -> Ints:
        """Row number of each document in its source, shape (n,)."""
        return self.frame["row"].to_numpy()

    @property
    def groups(self) -> pl.Series | None:
        """The group of each document, n; None if every document is its own group."""
        return self._column("group")

    @property
    def environments(self) -> pl.Series | None:
        """The environment of each document, n; None if none were read."""
        return self._column("environment")

    @property
    def weights(self) -> Floats | None:
        """The training weight of each document, shape (n,); None if none were given."""
        weights = self._column("weight")
        if weights is None:
            return None
        return weights.to_numpy()

    @property
    def scores(self) -> Floats | None:
        """The score of each document, shape (n,); None if labels are classes."""
        scores = self._column("score")
        if scores is None:
            return None
        return scores.to_numpy()

    def _column(self, name: str) -> pl.Series | None:
        if name in self.frame.columns:
            return self.frame[name]
        return None

    @cached_property
    def units(self) -> Ints | None:
        """0 … U−1 for the groups in order of first appearance, shape (n,); None without groups."""
        if self.groups is None:
            return None
        return index_by_first_appearance(self.groups.to_list())

    def with_texts(self, texts: pl.Series) -> Corpus:
        """The same documents with other texts, read as one column."""
        frame = self.frame.with_columns(text=texts)
        return replace(self, frame=frame, stored=None, fields=(), columns={})

    def filter(self, mask: NDArray[np.bool_]) -> Corpus:
        """A subset of the documents; for pairs, always both sides."""
        is_kept = pl.Series(mask)
        stored = None
        if self.stored is not None:
            stored = self.stored.filter(is_kept)
        pairs = None
        if self.pairs is not None:
            pairs = self.pairs.select(mask[::2])
        return replace(self, frame=self.frame.filter(is_kept), stored=stored, pairs=pairs)

    def __repr__(self) -> str:
        test = ""
        if self.test is not None:
            test = f" and {self.test.frame.height:,} for testing"
        return (
            f"Corpus({for_display(self.name)!r}: {self.frame.height:,} documents{test}, "
            f"{len(self.classes)} classes)"
        )


def index_by_first_appearance(names: Sequence[object] | NDArray[np.generic]) -> Ints:
    """0 … U−1 for the distinct names, in order of first appearance, shape (n,)."""
    index: dict[object, int] = {}
    numbers = (index.setdefault(name, len(index)) for name in names)
    return np.fromiter(numbers, dtype=np.int64, count=len(names))
