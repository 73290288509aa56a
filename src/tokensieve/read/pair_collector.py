"""Usable pairs of answers, collected for training or testing, and a count of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.read.collect import DocumentCollector
from tokensieve.read.corpus import Corpus, Outcome, Pairing, index_by_first_appearance
from tokensieve.read.fields import ColumnKind, join_fields
from tokensieve.read.reading_report import ReadingReport
from tokensieve.read.table import BATCH_ROWS
from tokensieve.read.values import text_digests

CLASSES = ("rejected", "chosen")
FEWEST_UNITS = 6  # the p-value of a sign test is never below 2^(1 − units)
MIN_PAIRS_TO_JUDGE_UNITS = 50
_SCHEMA = {
    "text": pl.String,
    "label": pl.Int64,
    "row": pl.Int64,
    "weight": pl.Float64,
    "environment": pl.String,
    "unit": pl.String,
    "position": pl.Int64,
}


class Answer(NamedTuple):
    """An answer, and the words of the other columns that belong to it."""

    text: str | None
    words: tuple[str | None, ...] = ()


class Comparison(NamedTuple):
    """Places of the better and the worse of two answers, and whether it is a tie instead."""

    better: int
    worse: int
    is_tie: bool = False


class _Document(NamedTuple):
    """One side of a pair: a row of `_SCHEMA`."""

    text: str | None
    label: int
    row: int
    weight: float
    environment: str | None
    unit: str
    position: int


@dataclass(frozen=True)
class PairSource:
    """What is known of all pairs of a source.

    Attributes:
        columns: those of the answers.
        group_column: the column of the units (prompts), if any.
        outcome_columns: those that say which answer won; empty if the order of `columns` does.
        fields: the fields of each text; empty if it is the answer alone.
        kinds: how values of other columns become words.
        notes: what was detected.
    """

    columns: tuple[str, ...]
    group_column: str | None
    outcome_columns: tuple[str, ...]
    fields: tuple[str, ...]
    kinds: dict[str, ColumnKind]
    notes: tuple[str, ...]


class PairCollector(DocumentCollector):
    """Collects usable pairs of one side, and counts the others."""

    def __init__(
        self, name: str, fields: tuple[str, ...], *, drop_ties: bool, stream: bool
    ) -> None:
        self.name = name
        self._fields = fields
        self._drop_ties = drop_ties
        self._documents: list[_Document] = []
        self._words: list[tuple[str | None, ...]] = []
        super().__init__(_SCHEMA, stream)

    def add_row(
        self,
        row: int,
        answers: Sequence[Answer],
        comparisons: Sequence[Comparison],
        unit: object,
        environment: str | None,
    ) -> None:
        """Add the answers of one row or prompt, weighted so that each prompt counts once."""
        usable = [comparison for comparison in comparisons if self._is_usable(comparison, answers)]
        if usable and unit is None:
            self.counts["missing_label"] += 1
        # NUL prevents collisions with names that a column holds
        if unit is None:
            unit_name = f"\0{row}"
        else:
            unit_name = str(unit)
        for better, worse, is_tie in usable:
            weight = 1.0 / len(usable)
            orders = [(better, worse)]
            if is_tie:
                # a tie is two pairs, one in each order, that weigh as much as one
                weight /= 2
                self.counts["ties"] += 1
                orders.append((worse, better))
            for first, second in orders:
                if is_tie:
                    position = Outcome.TIE
                else:
                    position = Outcome(int(first > second))
                for label, answer in ((1, answers[first]), (0, answers[second])):
                    self._documents.append(
                        _Document(answer.text, label, row, weight, environment, unit_name, position)
                    )
                    self._words.append(answer.words)
        if len(self._documents) >= BATCH_ROWS:
            self._flush()

    def _is_usable(self, comparison: Comparison, answers: Sequence[Answer]) -> bool:
        """Whether two answers differ, are not empty, and one won; otherwise they are counted."""
        better = answers[comparison.better].text
        worse = answers[comparison.worse].text
        if comparison.is_tie and self._drop_ties:
            reason = "ties_dropped"
        elif better is None or worse is None:
            reason = "missing_text"
        elif not better.strip() or not worse.strip():
            reason = "empty"
        elif better == worse:
            reason = "identical"
        else:
            return True
        self.counts[reason] += 1
        return False

    def _flush(self) -> None:
        """Keep the waiting documents, with the values of other columns as fields."""
        columns: Iterable[tuple[Any, ...]] = [()] * len(_SCHEMA)
        if self._documents:
            columns = zip(*self._documents, strict=True)
        frame = pl.DataFrame(dict(zip(_SCHEMA, columns, strict=True)), schema=_SCHEMA)
        frame = frame.with_columns(key=text_digests(frame["text"]))  # of the answers alone
        words = [pl.Series(column, dtype=pl.String) for column in zip(*self._words, strict=True)]
        if words:
            frame = frame.with_columns(text=join_fields(self._fields, [frame["text"], *words]))
        self.keep(frame)
        self._documents = []
        self._words = []

    def corpus(self, source: PairSource) -> Corpus:
        """The collected pairs as a corpus; an `InputError` if no pair is usable."""
        self._flush()
        collected = self.documents()
        frame = collected.frame
        if not frame.height:
            raise self._no_pairs()
        pairs = frame.gather_every(2)
        units = pairs["unit"].to_list()
        position = pairs["position"].to_numpy()
        is_decided = pl.Series(position != Outcome.TIE)
        decided = pl.DataFrame({"a": pairs["key"], "b": frame["key"].gather_every(2, 1)}).filter(
            is_decided
        )
        counts = self._counted(collected.counts, decided, pairs.height, source)
        names = tuple(unit.removeprefix("\0") for unit in dict.fromkeys(units))
        notes = [*source.notes, *_position_notes(source, position)]
        if source.group_column and _are_too_few(len(names), pairs.height):
            notes.append(_few_units_note(source.group_column, len(names), pairs.height))
        ends = (source.columns[0], source.columns[-1])
        return Corpus(
            _without_unused(frame, pairs),
            CLASSES,
            self.name,
            ReadingReport(counts=counts, columns=ends, detected=tuple(notes), pairs=True),
            fields=source.fields,
            columns=source.kinds,
            pairs=Pairing(
                ends,
                source.group_column,
                index_by_first_appearance(units),
                names,
                _places(source, position),
            ),
            stored=collected.stored,
        )

    def _no_pairs(self) -> InputError:
        counts = self.counts
        if not counts["rows"]:
            return InputError(f"{self.name} has no rows")
        return InputError(
            f"{self.name}: none of the {counts['rows']:,} rows is a usable pair "
            f"({counts['missing_text']:,} without an answer, "
            f"{counts['empty']:,} with an empty one, "
            f"{counts['identical']:,} with the same text twice); check --pairs"
        )

    @staticmethod
    def _counted(
        counts: Counter[str], decided: pl.DataFrame, n_pairs: int, source: PairSource
    ) -> Counter[str]:
        """Count repeated and contradicting pairs."""
        swapped = decided.select(a="b", b="a").unique()
        counts["kept"] = 2 * n_pairs
        counts["duplicates"] = decided.height - decided.unique().height
        counts["conflicts"] = decided.join(swapped, on=["a", "b"], how="semi").height
        if not source.group_column:  # a missing value is worth a word only in a column
            del counts["missing_label"]
        return counts


def _places(source: PairSource, position: Ints) -> Ints | None:
    """For each pair, the column that held the preferred answer; None if that says nothing about any
    pair."""
    if source.outcome_columns and len(source.columns) == 2:
        return position
    places = np.where(position == Outcome.TIE, Outcome.TIE, Outcome.UNKNOWN)
    if (places == Outcome.UNKNOWN).all():
        return None
    return places


def _position_notes(source: PairSource, position: Ints) -> list[str]:
    """Sentences on where the preference came from, and how often the first answer won."""
    if not source.outcome_columns:
        return []
    names = ", ".join(map(repr, source.outcome_columns))
    notes = [f"the preferred answer is determined by {names}"]
    n_decided = int((position != Outcome.TIE).sum())
    if len(source.columns) != 2 or not n_decided:
        return notes
    from scipy.stats import binomtest  # half a second, which most readers do not need

    n_first = int((position == Outcome.FIRST).sum())
    interval = binomtest(n_first, n_decided).proportion_ci(method="wilson")
    is_fair = interval.low <= 0.5 <= interval.high
    verdict = ", so its position predicts the preference"
    if is_fair:
        verdict = ""
    notes.append(
        f"the first answer ({source.columns[0]!r}) wins {n_first / n_decided:.1%} of "
        f"{n_decided:,} pairs (95% CI {interval.low:.1%} to {interval.high:.1%}){verdict}"
    )
    return notes


def _are_too_few(n_units: int, n_pairs: int) -> bool:
    return n_units < FEWEST_UNITS and n_pairs >= MIN_PAIRS_TO_JUDGE_UNITS


def _few_units_note(column: str, n_units: int, n_pairs: int) -> str:
    return (
        f"column {column!r} (--by) has {n_units} values for {n_pairs:,} pairs: too few for a "
        f"significant result; to compare them, pass {option('--environments', column)}"
    )


def _without_unused(frame: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The frame without columns that only the collector needs, or that say nothing."""
    unused = ["unit", "position"]
    if pairs["weight"].n_unique() == 1:
        unused.append("weight")
    if pairs["environment"].null_count() == pairs.height:
        unused.append("environment")
    return frame.drop(unused)
