"""The cells of a label column as labels or lists of labels, whatever their form in the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.read.annotation_columns import AnnotationColumns
from tokensieve.read.annotations import (
    Agreement,
    Annotation,
    annotations_at,
    annotations_beside,
    annotations_in_columns,
    leads_to_annotations,
    vote,
)
from tokensieve.read.columns import fields_inside
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import Batch, SourceTable, written_object
from tokensieve.read.values import Values, as_list, listed, missing
from tokensieve.read.written_lists import ListForm, column_form, with_lists


class LabelColumn:
    """Reads the cells of a label column.

    Attributes:
        wanted: the columns of the table to read.
        counts: of annotated documents: "annotated" by several, and those with "no_majority".
        disagreements: rows whose annotators chose different labels.
        has_annotators: whether a cell, or several columns, hold the labels of several annotators.
    """

    def __init__(self, table: SourceTable, name: str, settings: SourceSettings) -> None:
        """Find out which form the cells have, by the first of them.

        Raises:
            InputError: the cells are objects; the message names the fields that hold labels.
        """
        self.table = table
        self.name = name
        self.counts = Counter[str]()
        self.disagreements: list[int] = []
        self._annotator = settings.annotator
        self._annotators: set[str] = set()
        annotated_by = settings.annotated_by or ()
        self._one_each = list(annotated_by) if len(annotated_by) > 1 else []
        column = table.top_level_column(name)
        self._keys = name[len(column) + 1 :].split(".") if name != column else []
        sample = self._sample(column)
        self._beside = self._columns_beside()
        self.has_annotators = (
            bool(self._one_each) or bool(self._beside) or leads_to_annotations(sample, self._keys)
        )
        if not self.has_annotators:
            self._leave_annotator_to_rows(settings)
        self.wanted = self._wanted_columns(column)
        self._check_no_objects()
        self._form: ListForm | None = None
        if self.has_annotators:
            self._is_exclusive = self._is_exclusive_choice()
            self._add_note(self._annotators_note())
        else:
            self._recognise_lists()

    def _columns_beside(self) -> list[str]:
        """The columns of users and statuses that Argilla writes beside one of responses."""
        companions = [f"{self.name}.users", f"{self.name}.status"]
        if companions[0] not in self.table.columns:
            return []
        return [companion for companion in companions if companion in self.table.columns]

    def _wanted_columns(self, column: str) -> list[str]:
        if self._one_each:
            return [self.table.checked_column(name, "annotators") for name in self._one_each]
        if self.has_annotators and not self._beside:
            return [column]
        return [self.name, *self._beside]

    def _is_exclusive_choice(self) -> bool:
        """Whether every annotator chose one label in each of the first rows."""
        columns = [self._sample(name) for name in self.wanted]
        return all(
            len(annotation.labels) == 1
            for cells in zip(*columns, strict=True)
            for annotation in self._annotations(cells)
        )

    def _recognise_lists(self) -> None:
        """Find out whether the cells are lists that are written as text, and refuse objects."""
        cells = self._sample(self.name)
        self._form = column_form(cells)
        if self._form is None:
            self._check_no_object(cells)
            return
        example = next(cell for cell in cells if self._is_written_list(cell))
        self._add_note(
            f"column {self.name!r} holds lists written as text, such as {example[:40]!r}"
        )

    def _leave_annotator_to_rows(self, settings: SourceSettings) -> None:
        """Take a named annotator for that of rows; an `InputError` if no column names these."""
        if self._annotator is None:
            return
        if AnnotationColumns.of(self.table, settings, [self.name]) is None:
            raise InputError(
                f"{self.table.name}: --annotator needs a column that names each row's annotator, "
                f"or lists of annotations in {self.name!r}: name the column with "
                "--annotated-by COLUMN, or leave --annotator out"
            )
        self._annotator = None

    def _sample(self, name: str) -> list[Any]:
        """The first cells of a column; none of a table without rows."""
        with suppress(InputError):
            return self.table.sample_of(name)
        return []

    def _is_written_list(self, value: object) -> bool:
        form = self._form
        return form is not None and isinstance(value, str) and form.read(value.strip()) is not None

    def _add_note(self, note: str) -> None:
        if note not in self.table.notes:
            self.table.notes = (*self.table.notes, note)

    def _annotators_note(self) -> str:
        if self._annotator is not None:
            return f"only the labels of annotator {self._annotator!r} are read"
        if self._one_each:
            columns = listed(self._one_each)
            return f"columns {columns} hold the labels of one annotator each; the majority counts"
        return f"{self.name!r} holds the labels of several annotators; the majority counts"

    def _check_no_objects(self) -> None:
        """Refuse objects where labels belong, and name the fields that hold labels."""
        cells = self._sample(self.name)
        form = column_form(cells)
        lists = [] if form is None else with_lists(cells, form)
        has_objects = any(isinstance(entry, dict) for cell in lists for entry in cell or [])
        if not cells or (form is not None and not has_objects):
            return
        fields = fields_inside(self.table, self.name)
        if fields:
            raise InputError(
                f"{self.table.name}: the labels in {self.name!r} are objects; "
                f"name the field that holds the label: {option('--label', fields[0])}"
            )

    def _check_no_object(self, cells: Sequence[object]) -> None:
        """Refuse cells that are all objects without a field of labels."""
        filled = [cell for cell in cells if not missing(cell) and str(cell)]
        objects = [cell for cell in filled if isinstance(cell, dict) or written_object(cell)]
        if objects and len(objects) == len(filled):
            raise InputError(
                f"{self.table.name}: the labels in {self.name!r} are objects, such as "
                f"{str(objects[0])[:40]!r}; write the label in a column of its own"
            )

    def check_annotator(self) -> None:
        """Refuse the name of an annotator of whom there is no annotation, after the last row."""
        if self._annotator is not None and self._annotator not in self._annotators:
            names = listed(sorted(self._annotators))
            raise InputError(
                f"{self.table.name}: {self.name!r} has no annotation by {self._annotator!r}; "
                f"the annotators are {names}"
            )

    def cells(self, batch: Batch, first_row: int) -> Values:
        """The cells of a batch, which begins at this row: a label, or a list of labels."""
        values = batch[self.wanted[0]]
        if self.has_annotators:
            columns = [as_list(batch[name]) for name in self.wanted]
            rows = enumerate(zip(*columns, strict=True), first_row)
            return [self._voted(cells, row) for row, cells in rows]
        if self._form is not None:
            return with_lists(values, self._form)
        return values

    def _annotations(self, cells: Sequence[object]) -> list[Annotation]:
        """The choice of each annotator of each document."""
        if self._one_each:
            return annotations_in_columns(self._one_each, cells)
        if self._beside:
            statuses = cells[2] if len(cells) > 2 else None
            return annotations_beside(cells[0], cells[1], statuses)
        return annotations_at(cells[0], self._keys)

    def _voted(self, cells: Sequence[object], row: int) -> Any:
        """The label that annotators chose, or a list of them; None without one."""
        annotations = self._annotations(cells)
        self._annotators.update(annotation.annotator for annotation in annotations)
        if self._annotator is not None:
            annotations = [
                annotation for annotation in annotations if annotation.annotator == self._annotator
            ]
        if not annotations:
            return None
        result = vote(annotations, self._is_exclusive)
        if len(annotations) > 1:
            self.counts["annotated"] += 1
            if result.agreement != Agreement.AGREE:
                self.disagreements.append(row)
        if result.agreement == Agreement.NO_MAJORITY:
            self.counts["no_majority"] += 1
            return None
        return result.labels[0] if self._is_exclusive else list(result.labels)
