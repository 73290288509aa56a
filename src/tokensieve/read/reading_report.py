"""What was noticed while a source was read: every row that was left out, changed or looks odd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.name_lists import joined_group, joined_names
from tokensieve.read.values import listed
from tokensieve.wording import percent, plural


class _Note(NamedTuple):
    """A sentence about a number of things: "3 rows without a text, left out"."""

    thing: str
    rest: str


_NOTES_ON_DOCUMENTS = {
    "missing_text": _Note("row", "without a text, left out"),
    "missing_label": _Note("row", "without a label, left out"),
    "not_accepted": _Note(
        "row", "whose label the annotator did not accept (column 'answer'), left out"
    ),
    "empty": _Note("empty document", "(white space only), left out"),
    "replaced_surrogates": _Note("document", "with lone surrogates, each replaced by U+FFFD"),
    "numbers_as_text": _Note("number", "among the texts, read as text"),
    "placeholders": _Note(
        "document", "whose whole text is a word for a missing value, such as 'nan', kept"
    ),
    "repeated_headers": _Note("row", "with the names of the columns again, left out"),
    "further_annotations": _Note("row", "with a further annotation of a document"),
    "trimmed": _Note("label", "with surrounding spaces, trimmed"),
    "duplicates": _Note("repeated document", "(same text and label), kept"),
    "duplicates_dropped": _Note("repeated document", "(same text and label), left out"),
    "conflicts": _Note("text", "with more than one label"),
    "conflicting_documents": _Note("document", "with conflicting labels"),
    "test_overlap": _Note("test document", "whose text also occurs in training"),
}
_NOTES_ON_PAIRS = {
    "missing_text": _Note("pair", "with only one answer or none, left out"),
    "empty": _Note("pair", "with an empty answer (white space only), left out"),
    "identical": _Note("pair", "of identical answers, which show no preference, left out"),
    "undecided": _Note("row", "without a usable winner, left out"),
    "ties_dropped": _Note("tie", "left out as requested"),
    "ties": _Note("tie", "each counted as half a win for each answer"),
    "missing_label": _Note(
        "pair", "without a value in the group column, each treated as a group of its own"
    ),
    "duplicates": _Note("repeated pair", "kept"),
    "conflicts": _Note("pair", "also found with the preference reversed, kept"),
    "replaced_surrogates": _Note("document", "with lone surrogates, each replaced by U+FFFD"),
    "test_overlap": _Note("test pair", "also found in training"),
    "shared_units": _Note("test pair", "whose group (prompt) also has training pairs"),
}
_MARKS = {"-", "--", "?", ".", "nan", "NaN", "<NA>"}  # that stand for no label
LABEL_MARKS = ";|,#\n"  # between several labels in a cell
_TRUTH_VALUES = {"true": "1", "false": "0"}  # JSON may have either by turns
_WITH_COMMA = {"ties_dropped", "ties", "duplicates"}  # of pairs: "2 ties, left out as requested"


@dataclass(frozen=True)
class LikelyGroups:
    """A column that nobody named and whose values look like groups (authors, threads).

    Attributes:
        column: its name.
        n_groups: values that occur in two or more documents.
        agreement: how often two documents of one group share a label, the mean over groups.
        expected_agreement: the same for shuffled labels.
        n_documents: documents in these groups.
    """

    column: str
    n_groups: int
    agreement: float
    expected_agreement: float
    n_documents: int


@dataclass(frozen=True, kw_only=True)
class ReadingReport:
    """What was noticed while the source was read.

    Attributes:
        counts: "rows" of the source (in this part, if it is split), "kept" documents in the
            corpus, and the rows or documents that were left out, changed or look odd, by reason.
            A reason that did not occur counts 0.
        columns: where text and label were read; of pairs, the first and the last answer.
        dropped: label → rows left out because the caller dropped that label.
        ignored: parts of the source that are not used → documents set aside there.
        hidden: test parts without labels, and what they have instead → documents set aside there.
        groups: original label → (final label, documents kept).
        detected: properties of the source that were detected, such as its separator.
        pairs: whether `rows` counts pairs, and `kept` texts.
        likely_groups: a column that looks like groups; None if there is none, or it was not sought.
        disagreements: rows whose annotators chose different labels.
    """

    counts: Counter[str]
    columns: tuple[str, str] = ("", "")
    dropped: Mapping[str, int] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    hidden: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    detected: tuple[str, ...] = ()
    pairs: bool = False
    likely_groups: LikelyGroups | None = None
    disagreements: tuple[int, ...] = ()

    def lines(self) -> list[str]:
        """One plain sentence for each thing that a reader should know."""
        return [
            *self.detected,
            *self._classes_that_may_be_one(),
            *self._counted_reasons(),
            *self._disagreements(),
            *self._labels_that_may_be_none(),
            *self._labels_that_may_be_several(),
            *self._labels_that_are_dates(),
            *self._changed_labels(),
        ]

    def _counted_reasons(self) -> Iterator[str]:
        notes = _NOTES_ON_PAIRS if self.pairs else _NOTES_ON_DOCUMENTS
        for reason, note in notes.items():
            n = self.counts[reason]
            if n:
                comma = "," if self.pairs and reason in _WITH_COMMA else ""
                yield f"{plural(n, note.thing)}{comma} {note.rest}"

    def _labels_that_may_be_none(self) -> Iterator[str]:
        """Labels that are marks, as SNLI's "-" for documents without a consensus."""
        for name, (final, n) in self.groups.items():
            if final in _MARKS and n:
                drop = option("--drop", joined_names([name]))
                yield (
                    f"{plural(n, 'document')} labelled {name!r}, which may mean no label; "
                    f"to leave them out, pass {drop}"
                )

    def _labels_that_may_be_several(self) -> Iterator[str]:
        """Labels such as "food;travel", whose parts are labels too, or parts of several labels."""
        names = {final for final, n in self.groups.values() if n}
        for mark in LABEL_MARKS:
            joint = {name: _parts(name, mark) for name in names if mark in name}
            n_uses = Counter(part for parts in joint.values() for part in parts)
            n_uses.update(names - set(joint))
            recurring = [
                name for name, parts in joint.items() if all(n_uses[part] > 1 for part in parts)
            ]
            if len(recurring) > 1 and len(recurring) > len(joint) / 2:
                yield (
                    f"{len(recurring):,} labels such as {min(recurring)!r} may be several: to "
                    f"split them, pass {option('--label-separator', mark)}"
                )

    def _labels_that_are_dates(self) -> Iterator[str]:
        """Dates among other labels: spreadsheets make them of text."""
        names = [final for final, n in self.groups.values() if n]
        dates = [name for name in names if re.fullmatch(r"\d{4}-\d\d-\d\d 00:00:00", name)]
        if dates and len(dates) < len(names):
            yield (
                f"labels such as {min(dates)!r} are dates, into which spreadsheets turn text such "
                "as 1-2: check these cells"
            )

    def _disagreements(self) -> Iterator[str]:
        """Sentences on how often several annotators of a document disagree."""
        n_annotated = self.counts["annotated"]
        if not n_annotated:
            return
        n_disagreements = len(self.disagreements)
        fraction = percent(n_disagreements / n_annotated)
        documents = plural(n_annotated, "document")
        yield f"annotators disagree on {n_disagreements:,} of {documents} with several ({fraction})"
        if self.counts["no_majority"]:
            rows = plural(self.counts["no_majority"], "document")
            yield f"{rows} without a majority, left out as without a label"

    def _changed_labels(self) -> Iterator[str]:
        for name, n in self.dropped.items():
            yield f"{plural(n, 'document')} labelled {name!r}, dropped as requested"
        for name, n in self.ignored.items():
            yield (
                f"{plural(n, 'document')} in {name!r}, in neither the training nor the test split, "
                "left out"
            )
        for name, n in self.hidden.items():
            yield f"{plural(n, 'document')} in {name}, set aside"
        for old, (new, n) in self.groups.items():
            if old != new and n:
                yield f"{plural(n, 'document')} labelled {old!r}, counted as {new!r}"

    def _classes_that_may_be_one(self) -> Iterator[str]:
        spellings: dict[str, list[str]] = {}
        for name in dict.fromkeys(new for new, _ in self.groups.values()):
            spelling = name.casefold()
            spellings.setdefault(_TRUTH_VALUES.get(spelling, spelling), []).append(name)
        for names in spellings.values():
            if len(names) > 1:
                have_one_spelling = len({name.casefold() for name in names}) == 1
                problem = "differ only in case" if have_one_spelling else "may be one value"
                merge = option("--group", joined_group(names[0], names))
                yield f"the classes {listed(names)} {problem}; to merge them, pass {merge}"

    def check_kept(self, name: str) -> None:
        """Raise an `InputError` that reports why every row was skipped, if no document is left."""
        if self.counts["kept"]:
            return
        rows = self.counts["rows"]
        empty = self.counts["empty"]
        if not rows:
            raise InputError(f"{name} has no rows")
        if empty == rows:
            raise InputError(
                f"{name}: all {rows:,} documents are empty; choose another --text COLUMN"
            )
        raise InputError(
            f"{name}: none of the {rows:,} rows is usable "
            f"({self.counts['missing_text']:,} without text, "
            f"{self.counts['missing_label']:,} without label, {empty:,} empty, "
            f"{sum(self.dropped.values()):,} dropped); check --text, --label and --drop"
        )


def _parts(name: str, mark: str) -> set[str]:
    return {part.strip() for part in name.split(mark)}
