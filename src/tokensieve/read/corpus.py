"""Read labelled documents into one validated frame, and count every row that was skipped or looks odd."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.escape import for_display, option
from tokensieve.read.documents import Collected, ColumnTokens, Grouping, Usable, collect
from tokensieve.read.fields import ColumnKind
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source, open_source
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.read.values import checked_weights, listed

_NOTES = {  # of documents (False) and of pairs (True)
    False: {
        "missing_text": "row{s} without a text, left out",
        "missing_label": "row{s} without a label, left out",
        "not_accepted": "row{s} whose label the annotator did not accept (column 'answer'), left out",
        "empty": "empty document{s} (white space only), left out",
        "replaced_surrogates": "document{s} with lone surrogates, each replaced by U+FFFD",
        "trimmed": "label{s} with surrounding spaces, trimmed",
        "duplicates": "repeated document{s} (same text and label), kept",
        "duplicates_dropped": "repeated document{s} (same text and label), left out",
        "conflicts": "text{s} with more than one label",
        "conflicting_documents": "document{s} with conflicting labels",
        "test_overlap": "test document{s} whose text also occurs in training",
    },
    True: {
        "missing_text": "pair{s} with only one answer or none, left out",
        "empty": "pair{s} with an empty answer (white space only), left out",
        "identical": "pair{s} of identical answers, which show no preference, left out",
        "undecided": "row{s} without a usable winner, left out",
        "ties_dropped": "tie{s}, left out as requested",
        "ties": "tie{s}, each counted as half a win for each answer",
        "missing_label": "pair{s} without a value in the group column, each treated as a group of its own",
        "duplicates": "repeated pair{s}, kept",
        "conflicts": "pair{s} also found with the preference reversed, kept",
        "replaced_surrogates": "document{s} with lone surrogates, each replaced by U+FFFD",
        "test_overlap": "test pair{s} also found in training",
        "shared_units": "test pair{s} whose group (prompt) also has training pairs",
    },
}


@dataclass(frozen=True, kw_only=True)
class Intake:
    """What was noticed while the source was read.

    Attributes:
        counts: "rows" of the source (in this part of it, where it is split), "kept" documents in the corpus, and the rows or
            documents that were left out, changed or look odd, by reason: the keys of `_NOTES`. One that did not occur counts 0.
        columns: where text and label were read; of pairs, the two answers.
        dropped: label → rows left out because the caller dropped that label.
        ignored: parts of the source without labels → documents set aside there.
        groups: original label → (final label, documents kept).
        detected: properties of the source that were detected, such as its separator.
        pairs: whether `rows` counts pairs, and `kept` texts.
        grouping: a column that nobody named whose values look like groups (`ColumnTokens.likely_groups`).
    """

    counts: Counter[str]
    columns: tuple[str, str] = ("", "")
    dropped: Mapping[str, int] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    detected: tuple[str, ...] = ()
    pairs: bool = False
    grouping: Grouping | None = None

    def lines(self) -> list[str]:
        """One plain sentence for each thing that a reader should know; nothing for things that did not occur."""
        notes = [(note, self.counts[key]) for key, note in _NOTES[self.pairs].items()]
        of, aside = "document{s} labelled ", "in neither the training nor the test split, left out"
        notes += [(f"{of}{name!r}, dropped as requested", n) for name, n in self.dropped.items()]
        notes += [("document{s} in " + f"{name!r}, {aside}", n) for name, n in self.ignored.items()]
        notes += [
            (f"{of}{old!r}, counted as {new!r}", n)
            for old, (new, n) in self.groups.items()
            if old != new
        ]
        spellings: dict[str, list[str]] = {}
        for name in dict.fromkeys(new for new, _ in self.groups.values()):
            spellings.setdefault(name.casefold(), []).append(name)
        merged = {
            listed(same): f"{same[0]}={','.join(same)}"
            for same in spellings.values()
            if len(same) > 1
        }
        differ = "differ only in case; to merge them, pass"
        alike = [
            f"the classes {names} {differ} {option('--group', group)}"
            for names, group in merged.items()
        ]
        return [
            *self.detected,
            *alike,
            *(f"{n:,} {note.replace('{s}', 's' * (n > 1), 1)}" for note, n in notes if n),
        ]

    def check_kept(self, name: str) -> None:
        """Make sure that documents are left; otherwise an `InputError` reports why every row was skipped."""
        rows, empty = self.counts["rows"], self.counts["empty"]
        if self.counts["kept"]:
            return
        if not rows:
            raise InputError(f"{name} has no rows")
        if empty == rows:
            raise InputError(
                f"{name}: all {rows:,} documents are empty; choose another --text COLUMN"
            )
        raise InputError(
            f"{name}: none of the {rows:,} rows is usable ({self.counts['missing_text']:,} without text, "
            f"{self.counts['missing_label']:,} without label, {empty:,} empty, {sum(self.dropped.values()):,} dropped); "
            "check --text, --label and --drop"
        )


@dataclass(frozen=True, eq=False)
class Pairing:
    """Documents 2i and 2i + 1 are the preferred and the other side of pair i, of n pairs.

    Attributes:
        columns, group_column: where they and their units were read; no group column if every pair is a unit.
        units, names: unit (prompt) of each pair, shape (n,), as an index into `names`, which are text.
        position: which of the answers in their columns' order was preferred (0 or 1, or −1 if they are not two columns), or 2 for
            a tie, which is there in both orders, one after the other, shape (n,); None where the order itself says it.
    """

    columns: tuple[str, str]
    group_column: str | None
    units: Ints
    names: tuple[str, ...]
    position: Ints | None = None

    def select(self, mask: NDArray[np.bool_]) -> Pairing:
        """Some of the pairs."""
        position = None if self.position is None else self.position[mask]
        return replace(self, units=self.units[mask], position=position)

    def once(
        self, right: Floats | NDArray[np.bool_], among: NDArray[np.bool_] | None = None
    ) -> tuple[Floats, Ints]:
        """Whether each pair (of some, shape (n,)) is right, and its unit; a tie, which is there in both orders, once and as ½."""
        tie = np.zeros(len(right), bool) if self.position is None else self.position == 2
        kept = ~tie
        kept[np.flatnonzero(tie)[::2]] = True
        kept &= True if among is None else among
        return np.where(tie, 0.5, right)[kept], self.units[kept]


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents with their labels, in one frame.

    Attributes:
        frame: a row per document: "text" (absent if `stored` has the texts), "key" (the digest by which texts are compared,
            Binary), "label" (class index), "row" (in the source, from 1), and, if read, "group" (String: what the
            document belongs to; a document without one is a group of its own), "environment" (String with nulls) and
            "weight" (its weight in training).
        classes: the class names, sorted (numbers by size), so that of two classes index 1 is the positive one:
            False < True, 0 < 1, −1 < 1, negative < positive.
        name: the source, for messages.
        intake: what was noticed while reading. After `split_corpus`, both parts have the intake of the whole.
        test: the test documents under the same classes, or None.
        fields: the fields that were joined into each text; empty if the text is one column.
        columns: those of the fields that are values of other columns (`--columns`), and how these become words.
        pairs: how documents belong together, if they are the two sides of pairs (`tokensieve.read.pairs`).
        stored: the texts, if they were read as a stream and are stored in a file.
    """

    frame: pl.DataFrame
    classes: tuple[str, ...]
    name: str
    intake: Intake
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
        columns = {
            "text": series,
            "key": Collected.digests(series),
            "label": np.asarray(labels, dtype=np.int64),
        }
        frame = pl.DataFrame(columns).with_columns(
            row=pl.int_range(1, len(series) + 1, dtype=pl.Int64)
        )
        intake = Intake(counts=Counter(rows=frame.height, kept=frame.height))
        return cls(frame, tuple(classes), "the documents", intake)

    @property
    def texts(self) -> pl.Series | StoredTexts:
        """n texts, without nulls."""
        return self.frame["text"] if self.stored is None else self.stored

    def rows_of(self, documents: Ints, part: str = "train", token: str = "") -> pl.DataFrame:
        """Documents as rows of the source: token (the reason they are listed, or ""), part ("train" or "test"), row, label."""
        labels = pl.Series(list(map(str, self.classes)), dtype=pl.String).gather(
            self.labels[documents]
        )
        frame = pl.DataFrame({"row": self.rows[documents], "label": labels})
        return frame.select(
            token=pl.lit(token), part=pl.lit(part), row=pl.col("row").cast(pl.Int64), label="label"
        )

    @property
    def characters(self) -> Ints:
        """Length of each text without the values of other columns, shape (n,)."""
        parts = self.stored.batches() if self.stored is not None else [self.frame["text"]]
        if self.columns and len(self.fields) - len(self.columns) == 1:
            first, other = (re.escape(f"⟦{self.fields[i]}⟧") for i in (0, 1))
            parts = (
                part.str.replace(rf"(?s)\n{other} .*", "").str.replace(f"^{first} ", "")
                for part in parts
            )
        lengths = [part.str.len_chars().to_numpy() for part in parts]
        return np.concatenate([np.empty(0, np.int64), *lengths]).astype(np.int64)

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
        """Which documents belong to a tied pair, shape (n,)."""
        if self.pairs is None or self.pairs.position is None:
            return np.zeros(len(self.labels), dtype=np.bool_)
        return np.repeat(self.pairs.position == 2, 2)

    @cached_property
    def rows(self) -> Ints:
        """Row number of each document in its source, shape (n,)."""
        return self.frame["row"].to_numpy()

    @property
    def groups(self) -> pl.Series | None:
        """The group of each document, n; None if every document is its own group."""
        return self.frame["group"] if "group" in self.frame.columns else None

    @property
    def environments(self) -> pl.Series | None:
        """The environment of each document, n; None if none were read."""
        return self.frame["environment"] if "environment" in self.frame.columns else None

    @property
    def weights(self) -> Floats | None:
        """The training weight of each document, shape (n,); None if none were given, and for test documents."""
        return self.frame["weight"].to_numpy() if "weight" in self.frame.columns else None

    @cached_property
    def units(self) -> Ints | None:
        """0 … U−1 for the groups, in order of first appearance, shape (n,); None if every document is its own group."""
        return None if self.groups is None else self.unit_index(self.groups.to_list())

    def with_texts(self, texts: pl.Series) -> Corpus:
        """The same documents with other texts, read as one column."""
        return replace(
            self, frame=self.frame.with_columns(text=texts), stored=None, fields=(), columns={}
        )

    def filter(self, mask: NDArray[np.bool_]) -> Corpus:
        """A subset of the documents; for pairs, always both sides."""
        stored = None if self.stored is None else self.stored.filter(pl.Series(mask))
        pairs = None if self.pairs is None else self.pairs.select(mask[::2])
        return replace(self, frame=self.frame.filter(pl.Series(mask)), stored=stored, pairs=pairs)

    @staticmethod
    def unit_index(units: Sequence[object] | NDArray[np.generic]) -> Ints:
        """0 … U−1 for the distinct values of `units`, in order of first appearance, shape (n,)."""
        names: dict[object, int] = {}
        return np.fromiter(
            (names.setdefault(unit, len(names)) for unit in units), dtype=np.int64, count=len(units)
        )

    @staticmethod
    def in_order(name: str) -> tuple[bool, float, str]:
        """Numbers first and by size, then text."""
        try:
            number = float(name)
        except ValueError:
            number = math.nan
        return (False, number, name) if math.isfinite(number) else (True, 0.0, name)

    @staticmethod
    def check_named(source: str, named: Iterable[str], known: Collection[str]) -> None:
        """Make sure that a source has the labels named in --group and --drop."""
        for name in named:
            if name not in known:
                raise InputError(
                    f"{source}: no document has the label {name!r} named in --group or --drop; "
                    f"the labels are {listed(sorted(known, key=Corpus.in_order))}"
                )

    @staticmethod
    def classes_of(
        sizes: Mapping[str, int], column: str, single: Mapping[str, tuple[str, int]] | None = None
    ) -> tuple[str, ...]:
        """The classes of labels with their documents in order, numbers by size first.

        For messages, `column` describes the label column, and `single` maps each label that occurs once to its value before
        grouping and its row. An `InputError` for fewer than two labels or more than 200, for one with a single document, and for
        more than 50 that have fewer than ten documents on average or are numbers that do not start at 0 or 1.
        """
        names, n = tuple(sorted(sizes, key=Corpus.in_order)), sum(sizes.values())
        if len(names) > 50:
            text = any(Corpus.in_order(name)[0] for name in names)
            numbers = [] if text else [Corpus.in_order(name)[1] for name in names]
            # the numbers of classes begin at 0 or 1 and leave few out; ages, years and measurements do not
            ids = not text and numbers[0] in (0, 1) and numbers[-1] < 2 * len(names)
            many = n >= 10 * len(names) and (text or (ids and all(x.is_integer() for x in numbers)))
            if not many or len(names) > 200:
                rows = not text and len(names) == n and all(x.is_integer() for x in numbers)
                looks = f"looks like {'free text or an identifier' if text else 'row numbers' if rows else 'continuous numbers'}"
                looks = "exceeds the limit of 200 classes" if many else looks
                raise InputError(
                    f"{column} has {len(names):,} different values in {n:,} documents, which {looks}; choose another with "
                    "--label COLUMN, merge values with --group, or leave some out with --drop"
                )
        if len(names) < 2:
            advice = "choose another with --label COLUMN, or check --group and --drop"
            raise InputError(
                f"{column} has only one value, {names[0]!r}; at least two classes are needed: {advice}"
            )
        alone = [(single or {}).get(name, (name, 0)) for name in names if sizes[name] == 1]
        if alone:
            (name, row), *more = sorted(alone, key=lambda found: found[1])
            if len(more) >= 20:
                once = f"{len(alone):,} of {len(names):,} values occur once, like identifiers"
                raise InputError(
                    f"{column}: {once}; choose another with --label COLUMN, or merge values with --group"
                )
            others = f" ({listed(other for other, _ in more)} too)" if more else ""
            frequent = [other for other in names if sizes[other] > 1]
            near = get_close_matches(name.lower(), [other.lower() for other in frequent], n=1)
            partner = next((other for other in frequent if near and other.lower() == near[0]), None)
            merge = (
                " or merge it: " + option("--group", f"{partner}={partner},{name}")
                if partner and not more
                else ""
            )
            drop = " ".join(option("--drop", other) for other in (name, *dict(more)))
            raise InputError(
                f"{column}: {name!r} occurs once{f' (row {row})' * bool(row)}{others}; each class needs two documents. "
                f"Leave {'them' if more else 'it'} out with {drop}{merge}"
            )
        return names

    def __repr__(self) -> str:
        test = "" if self.test is None else f" and {self.test.frame.height:,} for testing"
        return f"Corpus({for_display(self.name)!r}: {self.frame.height:,} documents{test}, {len(self.classes)} classes)"


def read_corpus(source: Source, settings: ReadSettings | None = None, **options: Any) -> Corpus:
    """Read labelled documents, or preference pairs if `pairs` names their columns.

    Labels may be strings, integers, booleans or whole floats (4.0 and "4.0" are the label "4"). Labels that `group` and
    `drop` do not name stay as they are.

    Args:
        source: a .csv, .tsv, .jsonl (.ndjson), .json, .parquet, .arrow or .xlsx file, also compressed with gzip, zstd or xz;
            several files as a list or a glob; a folder of such files, or with a subfolder of .txt files per label, or with such
            folders under train/ and test/; "-" for standard input; an address that Polars reads (s3://, https://, hf://); a
            pandas or Polars data frame, or anything else that gives Arrow data (PyArrow, DuckDB); a `Dataset` or `DatasetDict`
            of the datasets library; a pair (texts, labels); or the name of a data set, "imdb" or "yelp".
        options: fields of `ReadSettings` by name, in place of those in `settings`.

    Raises:
        InputError: the source cannot be read, the columns are ambiguous, or the labels cannot be classes: fewer than
            two, more than 200, a class with one document, or a test label that training does not have.
    """
    how = (settings or ReadSettings()).with_options(options)
    if how.pairs is not None:
        from tokensieve.read.pairs import read_pairs

        return read_pairs(source, how)
    label = how.one_label()
    opened = open_source(source, how)
    table, final = opened.train, how.destinations()
    named = {"group": (how.by, "groups"), "environment": (how.environments, "environments")}
    named["weight"] = how.sample_weight if isinstance(how.sample_weight, str) else None, "weights"
    more = {
        kind: table.checked_column(name, flag)
        for kind, (name, flag) in named.items()
        if name is not None
    }
    others = ColumnTokens(table, {name: (name,) for name in how.columns})
    part = opened.split_column(how)
    texts, label = table.labelled_columns(
        how.text, label, [*more.values(), *others.names, *([part] if part else [])]
    )
    if twice := {*texts, label} & {*others.names, part}:
        other = "--split" if part in twice else "--columns"
        raise InputError(
            f"{table.name}: text, label and {other} must be different columns; {min(twice)!r} is named twice"
        )
    train, test = collect(table, texts, label, how, more=more, part=part, columns=others)
    sides = [(table.name, train)]
    held = opened.test if how.test is None else open_source(how.test, how).held_out
    if part is not None and (
        how.split or len(test[0])
    ):  # test rows of a competition have no labels
        sides.append((f"{table.name} (test rows)", test))
    elif held is not None:
        own = held.columns == ("text", "label") and not {*texts, label} <= {
            "text",
            "label",
        }  # folders and lists
        target = "label" if own else label
        usable = None
        if how.test is not None or held.top_level_column(target) in held.columns:
            names = [held.checked_column(name, "text") for name in (("text",) if own else texts)]
            target = held.checked_column(target, "label")
            usable = collect(held, names, target, how, more={}, columns=others)[0]
        # a competition's test set has no labels, or −1 for each
        if how.test is None and (
            usable is None or set(usable[0]["label"]) <= {"-1"} - set(train[0]["label"])
        ):
            opened.ignored[held.name] = held.height()
        elif usable is not None:
            sides.append((held.name, usable))
    Corpus.check_named(
        table.name, final, {name for _, (frame, _, _) in sides for name in frame["label"].unique()}
    )
    fields = (*texts, *others.names) if len(texts) + len(others.names) > 1 else ()
    columns = (" + ".join([*texts, *others.names]), label)
    corpora: list[Corpus] = []
    for name, usable in sides:
        classes = corpora[0].classes if corpora else None
        one = _assemble(name, usable, final, how, columns, classes)
        corpora.append(replace(one, fields=fields, columns=others.kinds))
    corpus = corpora[0]
    if how.sample_weight is not None and "weight" not in more:
        weights = checked_weights(how.sample_weight, train[2]["rows"] + test[2]["rows"])[
            corpus.rows - 1
        ]
        corpus = replace(corpus, frame=corpus.frame.with_columns(weight=weights))
    if len(corpora) > 1:
        corpus.intake.counts["test_overlap"] = int(
            corpora[1].keys.is_in(corpus.keys.implode()).sum()
        )
        corpus = replace(corpus, test=corpora[1])
    found = replace(corpus.intake, ignored=opened.ignored, detected=(*table.notes, *others.notes))
    if how.by is None and not how.stream:
        taken = {*texts, label, part, *more.values(), *others.names}
        found = replace(
            found, grouping=others.likely_groups(table, taken, corpus.rows, corpus.labels)
        )
    return replace(corpus, intake=found)


def _assemble(
    name: str,
    usable: Usable,
    asked: Mapping[str, str | None],
    how: ReadSettings,
    columns: tuple[str, str],
    classes: tuple[str, ...] | None,
) -> Corpus:
    """Group, drop, count; `classes` are those of training where this is a test set."""
    (everything, stored, counts), of_test = usable, classes is not None
    everything = everything.rename({"label": "original"})
    sizes = dict(everything["original"].value_counts().iter_rows())
    # TRUE and True, from two spreadsheets, are one value: that of training, or the most frequent
    known = classes or sorted(sizes, key=lambda old: (sizes[old], old))
    truth = {name.lower(): name for name in known if name.lower() in ("true", "false")}
    final = {
        old: asked.get(old, truth.get(old.lower(), old))
        for old in sorted(sizes, key=Corpus.in_order)
    }
    named = pl.col("original").replace_strict(final, return_dtype=pl.String)
    frame = everything.with_row_index("at").with_columns(label=named).drop_nulls("label")
    pairs = frame.select("key", "label", "at").unique(
        ["key", "label"], keep="first", maintain_order=True
    )
    mixed = pairs.filter(pl.col("key").is_duplicated()).select("key").unique()
    kept = (
        frame.join(pairs, on="at", how="semi", maintain_order="left")
        if how.duplicates == "drop"
        else frame
    )
    kept_sizes = dict(kept["original"].value_counts().iter_rows())
    counts["kept"], counts["conflicts"] = kept.height, mixed.height
    counts["duplicates_dropped" if how.duplicates == "drop" else "duplicates"] = (
        frame.height - pairs.height
    )
    counts["conflicting_documents"] = frame.join(mixed, on="key", how="semi").height
    dropped = {old: sizes[old] for old, new in final.items() if new is None}
    groups = {old: (new, kept_sizes.get(old, 0)) for old, new in final.items() if new is not None}
    intake = Intake(counts=counts, columns=columns, dropped=dropped, groups=groups)
    intake.check_kept(name)
    if classes is None:
        single = kept.filter(pl.col("label").is_unique()).select("label", "original", "row")
        first = {label: (old, row) for label, old, row in single.iter_rows()}
        column = f"{name}: the label column {columns[1]!r}"
        classes = Corpus.classes_of(dict(kept["label"].value_counts().iter_rows()), column, first)
    for label, row in (
        kept.filter(~pl.col("label").is_in(list(classes))).select("label", "row").iter_rows()
    ):
        raise InputError(
            f"{name}: row {row}: no training row has label {label!r}; the labels are {listed(classes)}"
        )
    if stored is not None:
        mask = np.zeros(everything.height, dtype=bool)
        mask[kept["at"].to_numpy()] = True
        stored = stored.filter(pl.Series(mask))
    index = {label: i for i, label in enumerate(classes)}
    kept = kept.with_columns(label=pl.col("label").replace_strict(index, return_dtype=pl.Int64))
    if "group" in kept.columns:  # a row number behind a NUL is no name that a column holds
        kept = kept.with_columns(group=pl.col("group").fill_null(pl.format("\0{}", "row")))
    if "weight" in kept.columns and of_test:
        kept = kept.drop("weight")
    if "weight" in kept.columns:
        where, rows = f"{name}: the column {how.sample_weight!r} (--weight)", kept["row"].to_numpy()
        weights = kept["weight"].str.strip_chars().cast(pl.Float64, strict=False)
        for given, row in kept.filter(weights.is_null()).select("weight", "row").iter_rows():
            held = "no number" if given is None else repr(given[:40])
            raise InputError(
                f"{where} contains {held} in row {row}: every document needs a number of at least 0"
            )
        kept = kept.with_columns(
            weight=checked_weights(weights.to_numpy(), kept.height, where, rows)
        )
    return Corpus(kept.drop("at", "original"), classes, name, intake, stored=stored)
