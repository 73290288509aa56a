"""Labelled text in: texts, class indices, and an account of every row that was left out or looks odd."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.escape import shown
from tokensieve.text.columns import choose_columns, one_text, position
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.labels import classes_of, destinations, in_order, listed
from tokensieve.text.multilabel import Having, having
from tokensieve.text.rows import Account, Rows, collect
from tokensieve.text.settings import ReadSettings, with_options
from tokensieve.text.sources import Opened, Source, open_source
from tokensieve.text.spill import StoredTexts
from tokensieve.text.split import linked, split_units, stratified, unit_index
from tokensieve.text.table import Table, once
from tokensieve.text.weights import checked_weights, weights_of_column

TEST_NAMES = ("test", "testing")
TRAIN_NAMES = ("train", "training", "dev", "validation", "val")


@dataclass(frozen=True, kw_only=True)
class Intake(Account):
    """What was found on the way in. rows = kept + missing_text + missing_label + empty + dropped, and, where they were
    left out, duplicates.

    Attributes:
        kept: documents in the corpus.
        dropped: label → rows left out because the caller dropped that label.
        duplicates: documents that repeat an earlier text with the same label.
        duplicates_dropped: whether those were left out.
        conflicts: distinct texts that occur with more than one label.
        conflicting_documents: documents with such a text.
        test_overlap: test documents whose identical text occurs in training; 0 without a test set.
        ignored: parts of the source without labels → documents left aside.
        groups: original label → (final label, documents kept).
        text_column, label_column: where they were read.
    """

    kept: int
    dropped: dict[str, int]
    duplicates: int
    duplicates_dropped: bool
    conflicts: int
    conflicting_documents: int
    test_overlap: int = 0
    ignored: dict[str, int] = field(default_factory=dict)
    groups: dict[str, tuple[str, int]] = field(default_factory=dict)
    text_column: str = ""
    label_column: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All of it, in plain types."""
        return asdict(self)

    def lines(self) -> list[str]:
        """One plain sentence for each thing that a reader should know; nothing for what did not occur."""
        left = "left out" if self.duplicates_dropped else "kept"
        notes = [
            *self._left_out(),
            *((n, f"documents labelled {name!r}, dropped as asked") for name, n in self.dropped.items()),
            (self.duplicates, f"documents that repeat an earlier text with the same label, {left}"),
            (self.conflicts, "texts that occur with more than one label"),
            (self.conflicting_documents, "documents with such a text"),
            self._replaced(),
            (self.test_overlap, "test documents whose text also occurs in training"),
            *(
                (n, f"documents in {name!r}, neither for training nor for testing, left aside")
                for name, n in self.ignored.items()
            ),
            *(
                (n, f"documents labelled {old!r} count as {new!r}")
                for old, (new, n) in self.groups.items()
                if old != new
            ),
        ]
        return [f"{note}: {count:,}" for count, note in notes if count]


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents with their labels.

    Attributes:
        texts: n texts, a String series without nulls, or, where they were read as a stream, texts in files.
        keys: digest of each text, where texts are compared (`tokensieve.text.spill.digest`), Binary, n.
        labels: class index of each document, shape (n,).
        classes: the class names, sorted (numbers by size), so that of two classes index 1 is the positive one:
            False < True, 0 < 1, −1 < 1, negative < positive.
        rows: row number of each document in its source, from 1, shape (n,).
        name: the source, for messages.
        intake: what was found on the way in. After `split_corpus` both parts carry the intake of the whole.
        test: the test documents under the same classes, or None.
        fields: the fields that each text was joined from (`tokensieve.text.fields`); empty where it is one column.
        by: the unit of each document, String, n, where documents belong together; a document without one is a unit of its own.
        environments: the environment of each document, String with nulls, n; None where none were read.
        weights: what each document weighs in training, shape (n,); None where none were given, and of test documents.
        pairs: how documents belong together, where they are the two sides of pairs (`tokensieve.text.pairs`).
    """

    texts: pl.Series | StoredTexts
    keys: pl.Series
    labels: Ints
    classes: tuple[str, ...]
    rows: Ints
    name: str
    intake: Intake
    test: Corpus | None = None
    fields: tuple[str, ...] = ()
    by: pl.Series | None = None
    environments: pl.Series | None = None
    weights: Floats | None = None
    pairs: Pairing | None = None

    @cached_property
    def units(self) -> Ints | None:
        """0 … U−1 for the units, in order of first appearance, shape (n,); None where every document is one."""
        return None if self.by is None else unit_index(self.by.to_list())

    def __repr__(self) -> str:
        test = "" if self.test is None else f" and {len(self.test.texts):,} for testing"
        return f"Corpus({shown(self.name)!r}: {len(self.texts):,} documents{test}, {len(self.classes)} classes)"


@dataclass(frozen=True, eq=False)
class Pairing:
    """Documents 2i and 2i + 1 are the preferred and the other side of pair i, of n pairs.

    Attributes:
        columns: where they were read.
        by: the column of the units, or None where every pair is one.
        units: unit (prompt) of each pair, shape (n,): place in `names`.
        names: the units as text.
    """

    columns: tuple[str, str]
    by: str | None
    units: Ints
    names: tuple[str, ...]


def read_corpus(source: Source, settings: ReadSettings | None = None, **options: Any) -> Corpus:
    """Read labelled documents.

    Labels may be strings, integers, booleans or whole floats (4.0 and "4.0" are the label "4"). Labels that `group` and
    `drop` do not name stay as they are.

    Args:
        source: a .csv, .tsv, .jsonl (.ndjson), .json or .parquet file, each also with .gz; a folder with a subfolder of .txt
            files per label, or with such folders under train/ and test/; a pandas or Polars data frame, or anything else that
            gives Arrow data (PyArrow, DuckDB); a `Dataset` or `DatasetDict` of the datasets library; a pair (texts, labels);
            or the name of a data set, "imdb" or "yelp".
        settings: how; `ReadSettings()` if None.
        options: fields of `ReadSettings` by name, in place of those in `settings`.

    Raises:
        InputError: the source cannot be read, the columns are not clear, or the labels cannot be classes: fewer than
            two, more than 50, a class with one document, or a test label that training does not have.
    """
    how = with_options(settings or ReadSettings(), options)
    if how.pairs is not None:
        from tokensieve.text.pairs import read_pairs

        return read_pairs(source, how)
    opened = open_source(source, how)
    final = destinations(how.group or {}, how.drop)
    table, text, fields = one_text(opened.train, how.text)
    columns = choose_columns(table, text, how.label, how.split)
    if how.having is not None:
        table = having(table, table.columns[columns[1]], Having(how.having, how.label_separator))
    held = None
    asked = {"by": how.by, "environments": how.environments}
    if isinstance(how.sample_weight, str):
        asked["weight"] = how.sample_weight
    more = {kind: position(table, name, kind) for kind, name in asked.items() if name is not None}
    if how.split is not None:
        train, held = _collect_split(table, columns, how.split, how.stream, more)
    else:
        train = collect(table, columns, how.stream, more)
        test_table = opened.test if how.test is None else _test_table(open_source(how.test, how))
        if test_table is not None:
            test_table = one_text(test_table, how.text)[0]
            if how.having is not None:
                test_table = having(test_table, table.columns[columns[1]], Having(how.having, how.label_separator))
            held = _collect_test(test_table, table, columns, how.stream)
    _check_names(final, [train] if held is None else [train, held])
    corpus = replace(_assemble(train, final, how.duplicates, opened.ignored), fields=fields)
    if how.sample_weight is not None and "weight" not in asked:
        total = train.total + (held.total if held is not None and how.split is not None else 0)
        corpus = replace(corpus, weights=checked_weights(how.sample_weight, total)[corpus.rows - 1])
    if held is None:
        return corpus
    return _with_test(corpus, replace(_assemble(held, final, how.duplicates, {}, corpus.classes), fields=fields))


def split_corpus(corpus: Corpus, *, share: float = 0.2, seed: int = 0) -> Corpus:
    """Set a share of the documents aside for testing, at random within each class (scikit-learn's stratified split).

    What is drawn are distinct texts, so identical texts are never on both sides. A class with one distinct text stays
    in training. Where documents belong to units, whole units are drawn (`tokensieve.text.split.split_units`).

    Args:
        corpus: without a test set.
        share: share of the distinct texts, between 0 and 1.
        seed: of the draw.

    Raises:
        InputError: the corpus has a test set, the share is not between 0 and 1, no class has two different texts, or a
            class would be left without training documents.
    """
    if corpus.test is not None:
        raise InputError(f"{corpus.name} has a test set already")
    if not 0 < share < 1:
        raise InputError(f"the test share must lie between 0 and 1, not {share}")
    if corpus.units is not None:
        texts = corpus.keys.rank("dense").to_numpy().astype(np.int64) - 1
        chosen = split_units(linked(corpus.units, texts), corpus.labels, share, seed)
        return _divided(corpus, chosen, share)
    # Distinct texts are numbered by first appearance: other words in the same rows leave the split as it is.
    ranks = corpus.keys.rank("dense").to_numpy().astype(np.int64) - 1
    _, first = np.unique(ranks, return_index=True)
    which = np.argsort(np.argsort(first))[ranks]
    first = np.sort(first)
    strata = corpus.labels[first]
    candidates = np.flatnonzero(np.bincount(strata, minlength=len(corpus.classes))[strata] > 1)
    if not candidates.size:
        raise InputError(
            f"{corpus.name}: {len(corpus.texts):,} documents, but within each class all texts are the same, so none can be held "
            "out for testing; check that --text names the column of the texts, or give --test SOURCE"
        )
    n_classes = np.unique(strata[candidates]).size
    size = min(max(math.ceil(share * candidates.size), n_classes), candidates.size - n_classes)
    return _divided(corpus, np.isin(which, candidates[stratified(strata[candidates], size, seed)[1]]), share)


def _divided(corpus: Corpus, in_test: NDArray[np.bool_], share: float) -> Corpus:
    left = np.bincount(corpus.labels[~in_test], minlength=len(corpus.classes))
    if not left.all():
        name = corpus.classes[int(left.argmin())]
        raise InputError(
            f"with a test share of {share} no training document of class {name!r} is left; take a smaller share"
        )
    return replace(_select(corpus, ~in_test), test=_select(corpus, in_test))


def _select(corpus: Corpus, mask: NDArray[np.bool_]) -> Corpus:
    kept = pl.Series(mask)
    return replace(
        corpus, texts=corpus.texts.filter(kept), keys=corpus.keys.filter(kept), labels=corpus.labels[mask],
        rows=corpus.rows[mask], by=None if corpus.by is None else corpus.by.filter(kept),
        environments=None if corpus.environments is None else corpus.environments.filter(kept),
        weights=None if corpus.weights is None else corpus.weights[mask],
    )  # fmt: skip


# ---- rows into a corpus


def _collect_split(
    table: Table, columns: Sequence[int], split: str, stream: bool, more: Mapping[str, int]
) -> tuple[Rows, Rows]:
    names, others = [table.columns[i] for i in columns], {kind: table.columns[i] for kind, i in more.items()}
    train, test = (Rows(table.name + part, names, stream, others) for part in ("", " (test rows)"))
    found: Counter[str] = Counter()
    for row, (text, label, value, *rest) in enumerate(once(table, [*columns, *more.values()]), 1):
        part = str(value).strip().lower()
        found[part] += 1
        if part in TEST_NAMES + TRAIN_NAMES:
            (test if part in TEST_NAMES else train).add(row, text, label, *rest)
    if not set(found) <= {*TEST_NAMES, *TRAIN_NAMES} or not test.total or not train.total:
        raise InputError(
            f"{table.name}: column {split!r} must hold 'test' for test rows and one of {listed(TRAIN_NAMES)} for "
            f"the others; it holds {listed(sorted(found))}"
        )
    return train, test


def _collect_test(table: Table, like: Table, columns: Sequence[int], stream: bool) -> Rows:
    """Test rows from the columns of the same name; folders and lists name theirs themselves."""
    names = [like.columns[i] for i in columns]
    if table.columns == ("text", "label") and not set(names) <= set(table.columns):
        return collect(table, (0, 1), stream)
    at = [position(table, name, what) for name, what in zip(names, ("text", "label"), strict=True)]
    return collect(table, at, stream)


def _test_table(opened: Opened) -> Table:
    return opened.train if opened.test is None else opened.test


def _check_names(asked: Mapping[str, str | None], parts: Sequence[Rows]) -> None:
    found = {name for part in parts for name in part.names}
    unknown = [name for name in asked if name not in found]
    if unknown:
        raise InputError(
            f"{parts[0].name}: no document has the label {unknown[0]!r} named in --group or --drop; "
            f"the labels are {listed(sorted(found, key=in_order))}"
        )


def _assemble(
    documents: Rows,
    asked: Mapping[str, str | None],
    duplicates: str,
    ignored: Mapping[str, int],
    classes: tuple[str, ...] | None = None,
) -> Corpus:
    """Group, drop, count; `classes` are those of training where this is a test set."""
    texts, everything, of_test = *documents.finish(), classes is not None
    sizes = dict(everything["original"].value_counts().iter_rows())
    final = {name: asked.get(name, name) for name in sorted(sizes, key=in_order)}
    named = pl.col("original").replace_strict(final, return_dtype=pl.String)
    frame = everything.with_row_index("at").with_columns(label=named).drop_nulls("label")
    pairs = frame.unique(["key", "label"], keep="first", maintain_order=True)
    mixed = pairs.filter(pl.col("key").is_duplicated()).select("key").unique()
    kept = pairs if duplicates == "drop" else frame
    kept_sizes = dict(kept["original"].value_counts().iter_rows())
    intake = Intake(
        **asdict(documents.account()),
        kept=kept.height,
        dropped={name: sizes[name] for name, new in final.items() if new is None},
        duplicates=frame.height - pairs.height,
        duplicates_dropped=duplicates == "drop",
        conflicts=mixed.height,
        conflicting_documents=frame.join(mixed, on="key", how="semi").height,
        ignored=dict(ignored),
        groups={name: (new, kept_sizes.get(name, 0)) for name, new in final.items() if new is not None},
        text_column=documents.text_column,
        label_column=documents.label_column,
    )
    intake.check_kept(documents.name, intake.kept, sum(intake.dropped.values()))
    if classes is None:
        single = kept.filter(pl.col("label").is_unique()).select("label", "original", "row")
        column = f"{documents.name}: the label column {documents.label_column!r}"
        first = {name: (old, row) for name, old, row in single.iter_rows()}
        classes = classes_of(dict(kept["label"].value_counts().iter_rows()), column, first)
    index = {name: i for i, name in enumerate(classes)}
    for name, row in kept.filter(~pl.col("label").is_in(list(classes))).select("label", "row").iter_rows():
        raise InputError(
            f"{documents.name}: row {row}: training has no label {name!r}; its labels are {listed(classes)}"
        )
    labels = kept["label"].replace_strict(index, return_dtype=pl.Int64).to_numpy()
    mask = np.zeros(everything.height, dtype=bool)
    mask[kept["at"].to_numpy()] = True
    by = None
    if "by" in kept.columns:  # a row number behind a NUL is no name that a column holds
        by = kept.select(pl.col("by").fill_null(pl.format("\0{}", "row"))).to_series()
    weights = None
    if "weight" in kept.columns and not of_test:
        weights = weights_of_column(kept["weight"], kept["row"].to_numpy(), documents.more["weight"].where)
    return Corpus(
        texts.filter(pl.Series(mask)), kept["key"], labels, classes, kept["row"].to_numpy(), documents.name, intake, by=by,
        environments=kept["environments"] if "environments" in kept.columns else None, weights=weights,
    )  # fmt: skip


def _with_test(corpus: Corpus, test: Corpus) -> Corpus:
    shared = int(test.keys.is_in(corpus.keys.implode()).sum())
    return replace(corpus, test=test, intake=replace(corpus.intake, test_overlap=shared))
