"""Preference data: rows into a corpus whose documents 2i and 2i + 1 are the two sides of pair i, the preferred one first.

Everything that reads documents (tokens, counts, the table, the page) then reads pairs, too; what is different about them is which
documents belong together. Pairs of one prompt share their prompt's words and difficulty: the prompt is the unit of every
statistic, and stays on one side of every split.

A tie becomes two pairs, one in each order, of half the weight. Several answers to one prompt become all pairs of answers with
different scores, each weighted so that the prompt counts once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Ints
from tokensieve.text.pair_columns import PairReader, UsablePairs
from tokensieve.text.settings import ReadSettings, with_options
from tokensieve.text.sources import Source, open_source


def read_pairs(source: Source, settings: ReadSettings | None = None, **options: Any) -> Corpus:
    """Read preference data.

    An answer is text, a list of chat messages, or a transcript ("Human: …", "Assistant: …"); of the latter two what both sides
    share at the beginning is the prompt. Pairs without two different, non-empty answers are left out and counted.

    Args:
        source: as for `tokensieve.text.corpus.read_corpus`, with the columns of the answers.
        settings: how; `pairs` names the columns, and `winner`, `scores` or `ranks` say which answer won.
        options: fields of `ReadSettings` by name, in place of those in `settings`.

    Returns:
        A corpus of classes "rejected" and "chosen" with 2n documents, in the order chosen, rejected, chosen, …

    Raises:
        InputError: the source cannot be read, a column is missing, a column seems to say which answer won and is not named, or
            fewer than two units hold a usable pair.
    """
    how = with_options(settings or ReadSettings(), options)
    if not how.columns_of_pairs:
        raise InputError(
            'name the columns of the two answers: pairs=("chosen", "rejected"), or --pairs chosen,rejected'
        )
    if how.text is not None:
        raise InputError("--text is for labelled documents: --pairs names the columns of the answers; leave it out")
    table = open_source(source, how).train
    reader = PairReader(table, how)
    parts = {"train": UsablePairs(table.name, how.stream), "test": UsablePairs(f"{table.name} (test rows)", how.stream)}
    reader.fill(parts, "train")
    train = parts["train"].corpus(reader)
    if how.split is None and how.test is None:
        assert train.pairs is not None
        if len(train.pairs.names) < 2:
            n = len(train.pairs.units)
            same = f"the same value in column {train.pairs.by!r}" if train.pairs.by else "the same prompt"
            all_same = f"all {n:,} pairs have {same}"
            usable = "has a single usable pair" if n == 1 else all_same
            raise InputError(
                f"{table.name}: {usable}, so that none can be held out for testing; give more pairs, or --test SOURCE"
            )
        return train
    if how.test is not None:
        held = open_source(how.test, how).held_out
        parts["test"] = UsablePairs(held.name, how.stream)
        reader = PairReader(held, replace(how, by=reader.by if reader.by in held.columns else None))
        reader.fill(parts, "test")
    return _with_test(train, parts["test"].corpus(reader))


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
    return corpus.filter(np.repeat(mask, 2))


def _with_test(train: Corpus, test: Corpus) -> Corpus:
    """Both parts as one corpus, with what they share counted."""
    assert train.pairs is not None and test.pairs is not None
    sides = [pl.DataFrame({"a": c.keys.gather_every(2), "b": c.keys.gather_every(2, 1)}) for c in (train, test)]
    shared = 0
    if train.pairs.by is not None:
        known = set(train.pairs.names)
        shared = sum(test.pairs.names[unit] in known for unit in test.pairs.units)
    overlap = sides[1].join(sides[0].unique(), on=["a", "b"], how="semi").height
    counts = dict(train.intake.counts) | {"shared_units": shared}
    return replace(train, test=test, intake=replace(train.intake, test_overlap=overlap, counts=counts))
