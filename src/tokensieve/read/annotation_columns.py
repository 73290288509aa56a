"""Which columns say who labelled a row, and which document it is about: by names and values."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import SourceTable

# how columns with the annotator are called, without capitals and marks
ANNOTATOR_NAMES = set(
    "annotator annotatorid annotatorname annotatedby annotatorusername rater raterid coder coderid "
    "labeler labelerid labeller labellerid worker workerid completedby judge judgeid".split()
)
# those who labelled the texts or those who wrote them
AMBIGUOUS_NAMES = set("user userid username createdby createdusername reviewer reviewerid".split())
ANNOTATOR = "annotator"  # in the frame
UNIT = "unit of annotation"  # in the frame, with a number


@dataclass(frozen=True)
class AnnotationColumns:
    """The columns that may show that rows are annotations.

    Attributes:
        annotator: the column with the annotator of each row.
        is_certain: whether it cannot be the column of those who wrote the texts.
        units: columns whose values may identify the annotated documents.
    """

    annotator: str
    is_certain: bool
    units: tuple[str, ...]

    @classmethod
    def of(
        cls, table: SourceTable, settings: SourceSettings, taken: Collection[str | None]
    ) -> AnnotationColumns | None:
        """The columns by their names; None without an annotator, or if other options name it."""
        named = settings.row_annotator
        if named is None and settings.annotated_by is not None:
            return None
        free = [name for name in table.columns if name not in taken]
        units = tuple(name for name in free if _may_identify(table, name))
        if named is not None:
            column = table.checked_column(named, "annotators")
            return cls(column, True, tuple(name for name in units if name != column))
        for names in (ANNOTATOR_NAMES, AMBIGUOUS_NAMES):
            columns = [name for name in free if _plain(name) in names]
            if len(columns) == 1 and _holds_names(table, columns[0]):
                others = tuple(name for name in units if name != columns[0])
                return cls(columns[0], names is ANNOTATOR_NAMES, others)
        return None

    @property
    def by_name(self) -> dict[str, str]:
        """Name in the frame → column."""
        units = {f"{UNIT} {number}": column for number, column in enumerate(self.units)}
        return {ANNOTATOR: self.annotator} | units


def is_annotator_name(name: str) -> bool:
    """Whether a column is called like one with the annotator of each row."""
    return _plain(name) in ANNOTATOR_NAMES


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def is_identifier_name(name: str) -> bool:
    """Whether a column is called like an identifier, though not that of a label."""
    is_identifier = re.search(r"(^|[\W_])(id|idx|index|task|item)$|[a-z](Id|ID)$", name)
    return is_identifier is not None and not re.search(r"label|class|categor", name, re.IGNORECASE)


def _may_identify(table: SourceTable, name: str) -> bool:
    return is_identifier_name(name) and _holds_names(table, name)


def _holds_names(table: SourceTable, name: str) -> bool:
    return all(isinstance(value, str | int | None) for value in table.sample[name])
