"""Read preference data into a corpus whose documents 2i and 2i + 1 are the two sides of pair i.

The preferred side comes first. Pairs of one prompt share its words and difficulty, so all
statistics count prompts, and a prompt stays on one side of a split.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.corpus import Corpus, Pairing
from tokensieve.read.opened import OpenedSource
from tokensieve.read.pair_collector import PairCollector
from tokensieve.read.pair_reader import PairReader
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source, open_source
from tokensieve.read.table import SourceTable


def read_pairs(source: Source, settings: ReadSettings | None = None, **options: object) -> Corpus:
    """Read preference data.

    An answer is text, a list of chat messages, or a transcript ("Human: …", "Assistant: …"); in the
    latter two, what both sides share at the beginning is the prompt. Pairs without two different,
    non-empty answers are left out and counted.

    `settings.pairs` names the columns, and `winner`, `scores` or `ranks` say which answer won; see
    `read_corpus`. The corpus has classes "rejected" and "chosen" and 2n documents, in the order
    chosen, rejected, chosen, …

    Raises:
        InputError: the source cannot be read, a column is missing or seems to name the winner, or
            fewer than two groups are usable.
    """
    settings = (settings or ReadSettings()).with_options(options)
    if not settings.columns_of_pairs:
        raise InputError(
            'name the columns of two answers: pairs=("chosen", "rejected"), '
            "or --pairs chosen,rejected"
        )
    if settings.text is not None:
        raise InputError(
            "--text is for labelled documents: --pairs names the columns of the answers; "
            "leave it out"
        )
    opened = open_source(source, settings)
    settings = replace(settings, split=opened.part_column(settings))
    test_table = _test_table(opened, settings)
    table = opened.train
    reader = PairReader(table, settings, settings.by)
    train_side = _collector(table.name, settings, reader)
    test_side = _collector(f"{table.name} (test rows)", settings, reader)
    pair_source = reader.read_into(train_side, test_side)
    train = train_side.corpus(pair_source)
    train = replace(train, reading=replace(train.reading, ignored=opened.ignored))
    if test_table is not None:
        by = reader.by if reader.by in test_table.columns else None
        reader = PairReader(test_table, settings, by, reader.tokens.kinds)
        test_side = _collector(test_table.name, settings, reader)
        pair_source = reader.read_into(test_side, test_side)
    elif settings.split is None:
        _check_several_units(train, reader.by)
        return train
    return _with_test(train, test_side.corpus(pair_source))


def _test_table(opened: OpenedSource, settings: ReadSettings) -> SourceTable | None:
    """The table of test pairs, if any; test data without the columns of answers are set aside."""
    if settings.test is not None:
        return open_source(settings.test, settings).held_out
    table = opened.test
    if table is None:
        return None
    if settings.split or not set(settings.columns_of_pairs) <= set(table.columns):
        opened.ignored[table.name] = table.height()
        return None
    return table


def _collector(name: str, settings: ReadSettings, reader: PairReader) -> PairCollector:
    return PairCollector(
        name, reader.fields, drop_ties=settings.ties == "drop", stream=settings.stream
    )


def _pairing(corpus: Corpus) -> Pairing:
    assert corpus.pairs is not None, "a corpus of pairs has a pairing"
    return corpus.pairs


def _check_several_units(corpus: Corpus, by: str | None) -> None:
    """Raise an `InputError` if all pairs belong to one prompt."""
    pairs = _pairing(corpus)
    if len(pairs.names) >= 2:
        return
    n_pairs = len(pairs.units)
    unit = f"the same value in column {by!r}" if by else "the same prompt"
    reason = "has a single usable pair" if n_pairs == 1 else f"all {n_pairs:,} pairs have {unit}"
    raise InputError(
        f"{corpus.name}: {reason}, so none can be held out; add pairs, or pass --test SOURCE"
    )


def _with_test(train: Corpus, test: Corpus) -> Corpus:
    """Join both sides into one corpus, with counts of what they share."""
    shared = _pair_keys(test).join(_pair_keys(train).unique(), on=["a", "b"], how="semi")
    train.reading.counts["test_overlap"] = shared.height
    train_pairs = _pairing(train)
    test_pairs = _pairing(test)
    if train_pairs.group_column is not None:
        train_names = set(train_pairs.names)
        is_shared = (test_pairs.names[unit] in train_names for unit in test_pairs.units)
        train.reading.counts["shared_units"] = sum(is_shared)
    return replace(train, test=test)


def _pair_keys(corpus: Corpus) -> pl.DataFrame:
    """The digests of both sides of each pair."""
    keys = corpus.keys
    return pl.DataFrame({"a": keys.gather_every(2), "b": keys.gather_every(2, 1)})
