"""Pairs of answers, one preferred to the other: rows into a corpus whose documents 2i and 2i + 1 are the two sides of pair i.

Everything that reads documents (tokens, counts, the table, the page) then reads pairs, too; what is different about them is which
documents belong together. Pairs of one prompt share their prompt's words and difficulty: the prompt is the unit of every
statistic, and stays on one side of every split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.text.columns import position
from tokensieve.text.corpus import TEST_NAMES, TRAIN_NAMES, Corpus, Intake, Pairing
from tokensieve.text.counts import Ints
from tokensieve.text.labels import listed
from tokensieve.text.rows import Rows
from tokensieve.text.settings import ReadSettings, with_options
from tokensieve.text.sources import Source, open_source
from tokensieve.text.table import Table, once

CLASSES = ("rejected", "chosen")  # the second of two is y = +1
PROMPT_NAMES = ("prompt", "question", "instruction", "query")


@dataclass(frozen=True, kw_only=True)
class PairIntake(Intake):
    """What was found on the way in; `rows` counts pairs, `kept` texts.

    Attributes:
        identical: pairs left out because both sides are the same text.
        shared_units: test pairs whose unit (prompt) also has training pairs.
    """

    identical: int = 0
    shared_units: int = 0

    def lines(self) -> list[str]:
        """One plain sentence for each thing that a reader should know."""
        notes = [
            (self.missing_text, "pairs with only one answer or none, left out"),
            (self.empty, "pairs with an empty answer (white space only), left out"),
            (self.identical, "pairs with the same text on both sides, left out: they show no preference"),
            (self.missing_label, "pairs without a value in the column of units, each a unit of its own"),
            (self.duplicates, "pairs that repeat an earlier pair, kept"),
            (self.conflicts, "pairs whose two texts occur with the other one preferred, kept"),
            self._replaced(),
            (self.test_overlap, "test pairs that are also in training"),
            (self.shared_units, "test pairs whose unit (prompt) also has training pairs"),
        ]
        return [f"{note}: {count:,}" for count, note in notes if count]


def read_pairs(source: Source, settings: ReadSettings | None = None, **options: Any) -> Corpus:
    """Read pairs of answers.

    An answer is text, or a list of messages with `content`, of which the last one is taken. Pairs without two different,
    non-empty answers are left out and counted.

    Args:
        source: a file or data frame, as for `tokensieve.text.corpus.read_corpus`, with a column for each side.
        settings: how; `pairs` names the columns.
        options: fields of `ReadSettings` by name, in place of those in `settings`.

    Returns:
        A corpus of classes "rejected" and "chosen" with 2n documents, in the order chosen, rejected, chosen, …

    Raises:
        InputError: the source cannot be read, a column is missing, or fewer than two units hold a usable pair.
    """
    how = with_options(settings or ReadSettings(), options)
    if how.pairs is None:
        raise InputError(
            'name the columns of the two answers: pairs=("chosen", "rejected"), or --pairs chosen,rejected'
        )
    pairs = how.columns_of_pairs
    if len(pairs) != 2 or how.winner or how.scores or how.ranks:
        raise InputError("--winner, --scores and --ranks are not read yet")
    if how.text is not None:
        raise InputError("--text is for labelled documents: --pairs names the columns of the answers; leave it out")
    table = open_source(source, how).train
    by = how.by or next((c for name in PROMPT_NAMES for c in table.columns if c.strip().lower() == name), None)
    if by in pairs:
        by = None
    columns = [*pairs, *([by] if by else []), *([how.split] if how.split else [])]
    parts = {"train": _Pairs(table.name, how.stream, by), "test": _Pairs(f"{table.name} (test rows)", how.stream, by)}
    _fill(parts, table, columns, by, how.split)
    train = parts["train"].corpus(pairs)
    if how.split is None and how.test is None:
        if len(np.unique(train.pairs.units)) < 2:  # type: ignore[union-attr]
            raise InputError(
                f"{table.name}: {_usable(train)}, so that none can be held out for testing; give more pairs, or --test SOURCE"
            )
        return train
    if how.test is not None:
        other = open_source(how.test, how)
        held = other.train if other.test is None else other.test
        parts["test"] = _Pairs(held.name, how.stream, by)
        _fill(parts, held, columns, by, None, "test")
    return _with_test(train, parts["test"].corpus(pairs))


def split_pairs(corpus: Corpus, *, share: float = 0.2, seed: int = 0) -> Corpus:
    """Set whole units with about `share` of the pairs aside for testing.

    Args:
        corpus: of pairs, without a test set.
        share: of the pairs, between 0 and 1.
        seed: of the draw.
    """
    assert corpus.pairs is not None
    mask = draw_units(corpus.pairs.units, share, seed)
    return replace(select_pairs(corpus, ~mask), test=select_pairs(corpus, mask))


def draw_units(units: Ints, share: float, seed: int) -> NDArray[np.bool_]:
    """Pairs of units drawn at random until they are `share` of all, at least one unit and not the last one, shape (n,).

    Args:
        units: unit of each pair, shape (n,), at least two different ones.
        share: between 0 and 1.
        seed: of the draw.

    Raises:
        InputError: the share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError(f"the test share must lie between 0 and 1, not {share}")
    names, sizes = np.unique(units, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    before = np.cumsum(sizes[order]) - sizes[order] / 2
    most = max(1, min(int(np.searchsorted(before, share * len(units))), len(names) - 1))
    return np.isin(units, names[order[:most]])


def select_pairs(corpus: Corpus, mask: NDArray[np.bool_]) -> Corpus:
    """Some of the pairs.

    Args:
        corpus: n pairs.
        mask: shape (n,).
    """
    assert corpus.pairs is not None
    both = np.repeat(mask, 2)
    kept = pl.Series(both)
    return replace(
        corpus, texts=corpus.texts.filter(kept), keys=corpus.keys.filter(kept), labels=corpus.labels[both],
        rows=corpus.rows[both], pairs=replace(corpus.pairs, units=corpus.pairs.units[mask]),
    )  # fmt: skip


class _Pairs:
    """Collects usable pairs one at a time, and counts the others."""

    def __init__(self, name: str, stream: bool, by: str | None) -> None:
        self.rows = Rows(name, ("the answers", "label"), stream)
        self.by, self.names, self.units, self.identical = by, list[str | None](), list[Any](), 0

    def add(self, row: int, answers: Sequence[Any], columns: Sequence[str], unit: Any) -> None:
        """One more pair, the preferred answer first."""
        rows, texts = self.rows, []
        rows.total += 1
        for answer, column in zip(answers, columns, strict=True):
            rows.text_column = column
            texts.append(rows.text_of(row, _content(answer)))
        if any(text is None for text in texts):
            rows.missing_text += 1
        elif any(not text or text.isspace() for text in texts):
            rows.empty += 1
        elif texts[0] == texts[1]:
            self.identical += 1
        else:
            rows.total -= 2
            for text, name in zip(texts, reversed(CLASSES), strict=True):
                rows.add(row, text, name)
            missing = unit is None or unit != unit
            rows.missing_label += bool(missing and self.by)
            self.units.append(("row", row) if missing else ("unit", str(unit)))

    def corpus(self, columns: tuple[str, str]) -> Corpus:
        """What was collected.

        Raises:
            InputError: no pair is usable.
        """
        rows = self.rows
        if not self.units:
            if not rows.total:
                raise InputError(f"{rows.name}: has no rows")
            raise InputError(
                f"{rows.name}: no pair is left; of {rows.total:,} rows {rows.missing_text:,} lack an answer, {rows.empty:,} have "
                f"an empty one, {self.identical:,} have the same text on both sides; check --pairs"
            )
        texts, frame = rows.finish()
        keys = frame["key"]
        sides = pl.DataFrame({"a": keys.gather_every(2), "b": keys.gather_every(2, 1)})
        swapped = sides.select(pl.col("b").alias("a"), pl.col("a").alias("b")).unique()
        intake = PairIntake(
            rows=rows.total, missing_text=rows.missing_text, missing_label=rows.missing_label, empty=rows.empty,
            replaced_surrogates=rows.replaced, kept=len(keys), dropped={}, duplicates=sides.height - sides.unique().height,
            duplicates_dropped=False, conflicts=sides.join(swapped, on=["a", "b"], how="semi").height, conflicting_documents=0,
            text_column=columns[0], label_column=columns[1], identical=self.identical,
        )  # fmt: skip
        numbers: dict[Any, int] = {}
        units = np.array([numbers.setdefault(unit, len(numbers)) for unit in self.units], dtype=np.int64)
        labels = np.tile(np.array([1, 0], dtype=np.int64), len(units))
        pairing = Pairing(columns, self.by, units, tuple(str(name) for _, name in numbers))
        return Corpus(texts, keys, labels, CLASSES, frame["row"].to_numpy(), rows.name, intake, pairs=pairing)


def _fill(
    parts: dict[str, _Pairs], table: Table, columns: Sequence[str], by: str | None, split: str | None, part: str = "train"
) -> None:  # fmt: skip
    """All rows of a table into their parts."""
    at = [position(table, name, "pairs" if i < 2 else "units") for i, name in enumerate(columns)]
    found = set()
    for row, values in enumerate(once(table, at), 1):
        where = part
        if split is not None:
            name = str(values[-1]).strip().lower()
            found.add(name)
            where = "test" if name in TEST_NAMES else "train"
        parts[where].add(row, values[:2], columns[:2], values[2] if by else None)
    if split is not None and (not found <= {*TEST_NAMES, *TRAIN_NAMES} or not found & {*TEST_NAMES}):
        raise InputError(
            f"{table.name}: column {split!r} must hold 'test' for test rows and one of {listed(TRAIN_NAMES)} for the others; it "
            f"holds {listed(sorted(found))}"
        )


def _content(answer: Any) -> Any:
    """The text of an answer: of a list of messages, the content of the last."""
    if isinstance(answer, list) and answer and isinstance(answer[-1], dict) and "content" in answer[-1]:
        return answer[-1]["content"]
    return answer


def _usable(corpus: Corpus) -> str:
    assert corpus.pairs is not None
    n = len(corpus.pairs.units)
    if n == 1:
        return "has a single usable pair"
    return f"all {n:,} pairs have the same value in column {corpus.pairs.by!r}"


def _with_test(train: Corpus, test: Corpus) -> Corpus:
    """Both parts as one corpus, with what they share counted; units of both are numbered as one."""
    assert train.pairs is not None and test.pairs is not None and isinstance(train.intake, PairIntake)
    sides = [pl.DataFrame({"a": c.keys.gather_every(2), "b": c.keys.gather_every(2, 1)}) for c in (train, test)]
    number = {name: i for i, name in enumerate(train.pairs.names)}
    shared = 0
    if train.pairs.by is not None:
        shared = sum(test.pairs.names[unit] in number for unit in test.pairs.units)
    intake = replace(
        train.intake,
        test_overlap=sides[1].join(sides[0].unique(), on=["a", "b"], how="semi").height,
        shared_units=shared,
    )
    return replace(train, test=test, intake=intake)
