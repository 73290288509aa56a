"""Read labelled documents: collect the rows, merge and drop labels, and count what looks odd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.name_lists import joined_names
from tokensieve.read.annotation_columns import AnnotationColumns
from tokensieve.read.annotation_rows import merge_annotations
from tokensieve.read.classes import (
    SingleDocument,
    check_labels_exist,
    class_names,
    label_order,
    likely_scores,
    score_numbers,
)
from tokensieve.read.collect import CollectedDocuments, CollectedParts, collect_documents
from tokensieve.read.column_tokens import ColumnTokens
from tokensieve.read.columns import LabelledColumns, annotators_beside, labelled_columns
from tokensieve.read.corpus import SCORE_SIDES, Corpus
from tokensieve.read.label_column import LabelColumn
from tokensieve.read.likely_groups import likely_groups
from tokensieve.read.opened import OpenedSource
from tokensieve.read.reading_report import ReadingReport
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source, open_source
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.read.table import SourceTable
from tokensieve.read.values import checked_weights, listed

HIDDEN_LABELS = {"-1", "?"}  # what the test set of a competition has instead of each label


def read_labelled(source: Source, settings: ReadSettings) -> Corpus:
    """Read labelled documents, with their test documents if there are any; see `read_corpus`."""
    label = settings.one_label()
    opened = open_source(source, settings)
    reader = _LabelledReader.of(opened, label, settings)
    train_rows, test_rows = reader.collect(opened.train)
    sides = [_Side(opened.train.name, train_rows)]
    sides += _test_side(opened, reader, settings, train_rows, test_rows)

    all_labels = {*train_rows.frame["label"].unique(), *test_rows.frame["label"].unique()}
    corpora = _assemble_all(sides, reader, settings, all_labels)
    corpus = corpora[0]
    if settings.sample_weight is not None and "weight" not in reader.other_columns:
        n_rows = train_rows.counts["rows"] + test_rows.counts["rows"]
        weights = checked_weights(settings.sample_weight, n_rows)[corpus.rows - 1]
        corpus = replace(corpus, frame=corpus.frame.with_columns(weight=weights))
    if len(corpora) > 1:
        overlap = corpora[1].keys.is_in(corpus.keys.implode())
        corpus.reading.counts["test_overlap"] = int(overlap.sum())
        corpus = replace(corpus, test=corpora[1])
    return replace(corpus, reading=_report(corpus, opened, reader, settings))


def _assemble_all(
    sides: Sequence[_Side],
    reader: _LabelledReader,
    settings: ReadSettings,
    known_labels: set[str],
) -> list[Corpus]:
    """The corpus of training, and that of testing under the same classes, if there is one.

    `known_labels` are labels that also occur in the source, perhaps in rows that were set aside.
    """
    final_labels = settings.destinations()
    names = {name for side in sides for name in side.documents.frame["label"].unique()}
    check_labels_exist(sides[0].name, final_labels, names | known_labels)
    corpora = list[Corpus]()
    for side in sides:
        columns = reader.shown_columns
        if settings.task == "scores":
            training = None
            if corpora:
                training = corpora[0]
            assembly: _Assembly = _ScoreAssembly(side, final_labels, settings, columns, training)
        else:
            classes = None
            if corpora:
                classes = corpora[0].classes
            assembly = _Assembly(side, final_labels, settings, columns, classes)
        corpora.append(
            replace(assembly.corpus(), fields=reader.fields, columns=reader.tokens.kinds)
        )
    return corpora


def _report(
    corpus: Corpus, opened: OpenedSource, reader: _LabelledReader, settings: ReadSettings
) -> ReadingReport:
    """The report of the corpus, with what is known of the whole source."""
    hints: list[str] = []
    if settings.task != "scores":
        score_hint = likely_scores(corpus.classes)
        hints += [score_hint] if score_hint else []
        hints += _one_class_notes(corpus)
    report = replace(
        corpus.reading,
        ignored=opened.ignored,
        hidden=opened.hidden,
        detected=(
            *opened.train.notes,
            *reader.tokens.notes,
            *hints,
        ),
    )
    if settings.by is not None or settings.stream:
        return report
    taken = {
        *reader.columns.texts,
        reader.columns.label,
        reader.part,
        *reader.other_columns.values(),
        *reader.tokens.names,
    }
    groups = likely_groups(opened.train, taken, corpus.rows, corpus.labels)
    return replace(report, likely_groups=groups)


def _one_class_notes(corpus: Corpus) -> Iterator[str]:
    """Say so if all test documents have one label, as fillers of a competition's test data have."""
    test = corpus.test
    if test is not None and len(test.labels) > 1 and len(np.unique(test.labels)) == 1:
        label = corpus.classes[test.labels[0]]
        yield f"all {len(test.labels):,} test documents are labelled {label!r}"


@dataclass(frozen=True, eq=False)
class _Side:
    """The documents for training or for testing, and what they are called in messages."""

    name: str
    documents: CollectedDocuments


@dataclass(frozen=True, eq=False)
class _LabelledReader:
    """Which columns of a source are read, and as what.

    Attributes:
        columns: those of the text and the label.
        tokens: other columns whose values are words.
        other_columns: name in the frame ("group", "environment", "weight") → column.
        part: the column that marks training and test rows, if any.
        settings: how rows are read.
    """

    columns: LabelledColumns
    tokens: ColumnTokens
    other_columns: Mapping[str, str]
    part: str | None
    settings: ReadSettings

    @classmethod
    def of(cls, opened: OpenedSource, label: str | None, settings: ReadSettings) -> _LabelledReader:
        """Recognise the columns that are not named."""
        table = opened.train
        weight = settings.sample_weight
        purposes = {
            "group": (settings.by, "groups"),
            "environment": (settings.environments, "environments"),
            "weight": (weight if isinstance(weight, str) else None, "weights"),
        }
        other_columns = {
            kind: table.checked_column(name, purpose)
            for kind, (name, purpose) in purposes.items()
            if name is not None
        }
        tokens = ColumnTokens(table, {name: (name,) for name in settings.columns})
        part = opened.part_column(settings)
        taken = [*other_columns.values(), *tokens.names]
        taken += [name for name in (part, settings.row_annotator) if name is not None]
        columns = labelled_columns(table, settings.text, label, taken)
        repeated = {*columns.texts, columns.label} & {*tokens.names, part}
        if repeated:
            flag = "--columns"
            if part in repeated:
                flag = "--split"
            raise InputError(
                f"{table.name}: text, label and {flag} must be different columns; "
                f"{min(map(str, repeated))!r} is named twice"
            )
        if settings.role is not None and not any(table.has_chats(name) for name in columns.texts):
            raise InputError(
                f"{table.name}: --role is for conversations, but the texts are plain: leave it out"
            )
        return cls(columns, tokens, other_columns, part, settings)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of each text; empty if it is one column."""
        names = (*self.columns.texts, *self.tokens.names)
        if len(names) > 1:
            return names
        return ()

    @property
    def shown_columns(self) -> tuple[str, str]:
        """The columns of text and label, for messages and settings."""
        return " + ".join([*self.columns.texts, *self.tokens.names]), self.columns.label

    def collect(self, table: SourceTable) -> CollectedParts:
        """The documents of a table: those for training, and those marked for testing."""
        return self._collected(table, self.columns, self.other_columns, self.part)

    def _collected(
        self,
        table: SourceTable,
        columns: LabelledColumns,
        other_columns: Mapping[str, str],
        part: str | None,
    ) -> CollectedParts:
        """The documents of a table; its rows of one text by several annotators are one document."""
        beside = annotators_beside(table, columns)
        if beside and not self.settings.annotated_by:
            table.notes = (
                *table.notes,
                f"columns {listed(beside)} may hold the labels of one annotator each: for their "
                f"majority pass {option('--annotated-by', joined_names(beside))}",
            )
        annotations = self._annotation_columns(table, columns)
        annotation_columns = {}
        if annotations is not None:
            annotation_columns = annotations.by_name
        parts = collect_documents(
            table,
            columns.texts,
            columns.label,
            self.settings,
            other_columns={**other_columns, **annotation_columns},
            part=part,
            columns=self.tokens,
        )
        if annotations is None:
            return parts
        return merge_annotations(parts, annotations, table, self.settings.annotator)

    def _annotation_columns(
        self, table: SourceTable, columns: LabelledColumns
    ) -> AnnotationColumns | None:
        """The column of the annotators of rows, if there is one that has no other purpose."""
        if LabelColumn(table, columns.label, self.settings).has_annotators:
            return None
        taken = {
            *columns.texts,
            columns.label,
            self.part,
            *self.other_columns.values(),
            *self.tokens.names,
        }
        return AnnotationColumns.of(table, self.settings, taken)

    def collect_test(self, table: SourceTable, is_named: bool) -> CollectedDocuments | None:
        """The documents of another source for testing; None if it has no labels.

        A folder of texts and a pair of lists have the columns text and label, whatever those of
        the training source are called.
        """
        texts, label = self.columns
        has_own_names = table.columns == ("text", "label")
        if has_own_names and not {*texts, label} <= {"text", "label"}:
            texts, label = ("text",), "label"
        if not is_named and table.top_level_column(label) not in table.columns:
            return None
        texts = tuple(table.checked_column(name, "text") for name in texts)
        label = table.checked_column(label, "label")
        return self._collected(table, LabelledColumns(texts, label), {}, None).train


def _test_side(
    opened: OpenedSource,
    reader: _LabelledReader,
    settings: ReadSettings,
    train_rows: CollectedDocuments,
    test_rows: CollectedDocuments,
) -> list[_Side]:
    """The test documents, if there are any: marked rows, --test, or those beside the training data.

    Test data of a competition, whose labels are hidden, are set aside and counted.
    """
    if reader.part is not None:
        name = f"{opened.train.name} (test rows)"
        mark = _hidden_mark(test_rows, train_rows)
        if mark is None:
            return [_Side(name, test_rows)]
        opened.hidden[_hidden_part(name, mark)] = test_rows.counts["rows"]
        return []
    if settings.test is not None:
        table = open_source(settings.test, settings).held_out
        documents = reader.collect_test(table, is_named=True)
        if documents is None or _hidden_mark(documents, train_rows, True) is not None:
            raise InputError(
                f"{table.name}: the label of every row is hidden (missing, or one mark), so the "
                "rows cannot be used for testing: leave out --test"
            )
        return [_Side(table.name, documents)]
    if opened.test is None:
        return []
    documents = reader.collect_test(opened.test, is_named=False)
    mark = ""
    if documents is not None:
        mark = _hidden_mark(documents, train_rows)
    if documents is None or mark is not None:
        opened.hidden[_hidden_part(opened.test.name, mark or "")] = opened.test.height()
        return []
    return [_Side(opened.test.name, documents)]


def _hidden_mark(
    test: CollectedDocuments, train: CollectedDocuments, is_named: bool = False
) -> str | None:
    """The value that all test documents have in place of a label, such as -1; None if any of them
    has a label.

    "" if labels are missing. A label that all of them have, and that no training document has,
    is such a mark, too, unless the user named the test documents.
    """
    labels = set(test.frame["label"])
    unknown = labels - set(train.frame["label"])
    if not test.counts["rows"] or labels != unknown:
        return None
    is_one_mark = len(labels) == 1 and not is_named
    if labels <= HIDDEN_LABELS or is_one_mark:
        return ", ".join(sorted(labels))
    return None


def _hidden_part(name: str, mark: str) -> str:
    """The test documents of a part, and what they have in place of labels, for the report."""
    if mark:
        return f"{name!r}, all labelled {mark!r}"
    return f"{name!r} without a label"


class _Assembly:
    """The documents of one side with their final labels, as a corpus."""

    def __init__(
        self,
        side: _Side,
        final_labels: Mapping[str, str | None],
        settings: ReadSettings,
        columns: tuple[str, str],
        classes: tuple[str, ...] | None,
    ) -> None:
        """Assemble documents; `classes` are those of training if this is the test side."""
        self.name = side.name
        self.documents = side.documents
        self.final_labels = final_labels
        self.settings = settings
        self.columns = columns
        self.classes = classes
        self.counts = side.documents.counts

    def corpus(self) -> Corpus:
        """Merge and drop labels, count duplicates and conflicts, and number the classes."""
        everything = self.documents.frame.rename({"label": "original"})
        sizes = dict(everything["original"].value_counts().iter_rows())
        final = self._destinations(sizes)
        named = pl.col("original").replace_strict(final, return_dtype=pl.String)
        labelled = everything.with_row_index("at").with_columns(label=named).drop_nulls("label")
        usable = self._without_duplicates(labelled)
        kept_sizes = dict(usable["original"].value_counts().iter_rows())
        self.counts["kept"] = usable.height
        report = ReadingReport(
            counts=self.counts,
            columns=self.columns,
            disagreements=self.documents.disagreements,
            dropped={old: sizes[old] for old, new in final.items() if new is None},
            groups={
                old: (new, kept_sizes.get(old, 0)) for old, new in final.items() if new is not None
            },
        )
        report.check_kept(self.name)
        if self.classes is None:
            classes = self._new_classes(usable)
        else:
            classes = self.classes
        self._check_classes(usable, classes)
        frame = self._numbered(usable, classes)
        return Corpus(frame, classes, self.name, report, stored=self._stored(usable))

    def _destinations(self, sizes: Mapping[str, int]) -> dict[str, str | None]:
        """Original label → final label, or None if its documents are dropped.

        TRUE and True, from two spreadsheets, are one value: that of training, or the most frequent.
        """
        by_size = sorted(sizes, key=lambda label: (sizes[label], label))
        spelling = {
            name.lower(): name
            for name in self.classes or by_size
            if name.lower() in ("true", "false")
        }
        return {
            label: self.final_labels.get(label, spelling.get(label.lower(), label))
            for label in sorted(sizes, key=label_order)
        }

    def _without_duplicates(self, labelled: pl.DataFrame) -> pl.DataFrame:
        """Count repeated texts and texts with two labels; drop the repeated ones if asked."""
        firsts = labelled.select("key", "label", "at").unique(
            ["key", "label"], keep="first", maintain_order=True
        )
        conflicting = firsts.filter(pl.col("key").is_duplicated()).select("key").unique()
        self.counts["conflicts"] = conflicting.height
        self.counts["conflicting_documents"] = labelled.join(
            conflicting, on="key", how="semi"
        ).height
        n_repeated = labelled.height - firsts.height
        if self.settings.duplicates == "drop":
            self.counts["duplicates_dropped"] = n_repeated
            return labelled.join(firsts, on="at", how="semi", maintain_order="left")
        self.counts["duplicates"] = n_repeated
        return labelled

    def _new_classes(self, kept: pl.DataFrame) -> tuple[str, ...]:
        single = kept.filter(pl.col("label").is_unique()).select("label", "original", "row")
        return class_names(
            dict(kept["label"].value_counts().iter_rows()),
            f"{self.name}: the label column {self.columns[1]!r}",
            {label: SingleDocument(old, row) for label, old, row in single.iter_rows()},
        )

    def _check_classes(self, kept: pl.DataFrame, classes: Sequence[str]) -> None:
        is_unknown = ~pl.col("label").is_in(list(classes))
        for label, row in kept.filter(is_unknown).select("label", "row").iter_rows():
            raise InputError(
                f"{self.name}: row {row}: no training row has label {label!r}; "
                f"the labels are {listed(classes)}"
            )

    def _stored(self, kept: pl.DataFrame) -> StoredTexts | None:
        stored = self.documents.stored
        if stored is None:
            return None
        is_kept = np.zeros(self.documents.frame.height, dtype=np.bool_)
        is_kept[kept["at"].to_numpy()] = True
        return stored.filter(pl.Series(is_kept))

    def _numbered(self, kept: pl.DataFrame, classes: Sequence[str]) -> pl.DataFrame:
        """The frame of the corpus, with labels as numbers, own groups and weights."""
        index = {label: i for i, label in enumerate(classes)}
        frame = kept.with_columns(
            label=pl.col("label").replace_strict(index, return_dtype=pl.Int64)
        )
        if "group" in frame.columns:  # NUL prevents collisions with names that a column holds
            own_group = pl.format("\0{}", "row")
            frame = frame.with_columns(group=pl.col("group").fill_null(own_group))
        if "weight" in frame.columns:
            is_test = self.classes is not None
            if is_test:
                frame = frame.drop("weight")
            else:
                frame = self._with_weights(frame)
        return frame.drop("at", "original")

    def _with_weights(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with its weights as numbers.

        Raises:
            InputError: a weight is missing, no number, negative or too large; its row
                is named.
        """
        column = f"{self.name}: the column {self.settings.sample_weight!r} (--weight)"
        weights = frame["weight"].str.strip_chars().cast(pl.Float64, strict=False)
        for weight, row in frame.filter(weights.is_null()).select("weight", "row").iter_rows():
            content = "no number"
            if weight is not None:
                content = repr(weight[:40])
            raise InputError(
                f"{column} contains {content} in row {row}: "
                "every document needs a number of at least 0"
            )
        rows = frame["row"].to_numpy()
        checked = checked_weights(weights.to_numpy(), frame.height, column, rows)
        return frame.with_columns(weight=checked)


class _ScoreAssembly(_Assembly):
    """The documents of one side whose labels are scores.

    Documents above the mean of training stand for one class, and the others for another one, where
    documents are drawn in proportion.
    """

    def __init__(
        self,
        side: _Side,
        final_labels: Mapping[str, str | None],
        settings: ReadSettings,
        columns: tuple[str, str],
        training: Corpus | None,
    ) -> None:
        """Assemble documents; `training` is that side's corpus if this is the test side."""
        classes = None
        if training is not None:
            classes = training.classes
        super().__init__(side, final_labels, settings, columns, classes)
        self.training = training

    def _new_classes(self, kept: pl.DataFrame) -> tuple[str, ...]:
        return SCORE_SIDES

    def _check_classes(self, kept: pl.DataFrame, classes: Sequence[str]) -> None:
        """Refuse nothing: any number may be a score."""

    def _numbered(self, kept: pl.DataFrame, classes: Sequence[str]) -> pl.DataFrame:
        """The frame of the corpus with scores; the class says whether each is above the mean of
        training.

        Raises:
            InputError: a label is no number, or all of training are equal.
        """
        column = f"{self.name}: the label column {self.columns[1]!r}"
        scores = score_numbers(kept, column)
        mean = float(scores.to_numpy().mean())
        if self.training is not None and self.training.scores is not None:
            mean = float(self.training.scores.mean())
        elif scores.n_unique() < 2:
            raise InputError(
                f"{column} has only one value, {kept['label'][0]!r}; scores need at least two: "
                "choose another with --label COLUMN"
            )
        sides = pl.Series(np.where(scores.to_numpy() > mean, SCORE_SIDES[1], SCORE_SIDES[0]))
        return super()._numbered(kept.with_columns(label=sides), classes).with_columns(score=scores)
