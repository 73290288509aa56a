"""The findings of an audit as problems of a pipeline: a level, a message, and where to look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl

from tokensieve.auditing.any_audit import AnyAudit
from tokensieve.auditing.checks.registry import all_checks
from tokensieve.auditing.data import AuditData
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import printable
from tokensieve.read.row_places import RowPlace, row_places
from tokensieve.wording import plural

Level = Literal["error", "warning", "note"]
TOKEN_LIMIT = "token-limit"  # the kind of a problem with a token that is no finding by itself
MAX_PLACES = 100  # of a problem; findings.csv has all rows


@dataclass(frozen=True)
class Place:
    """A row of the data.

    Attributes:
        part: "train" or "test".
        row: its number in its source, from 1.
        file: where it stands; None if the source is not a file.
        line: where it begins there, from 1; None if rows are not lines.
    """

    part: str
    row: int
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        if self.part == "test":
            return f"test row {self.row:,}"
        return f"row {self.row:,}"


@dataclass(frozen=True)
class Problem:
    """A finding, or a token beyond the limit of `--fail-on`.

    Attributes:
        kind: the name of the check.
        title: the check's heading.
        level: "error" if it exceeds `--fail-on`; else "note" of a finding of low severity, and
            "warning" of any other.
        message: one sentence with its number.
        action: what to do about it.
        about: what the check looks for.
        places: the first hundred rows.
        n_documents: how many documents are concerned.
        file: the source, if it is one file.
    """

    kind: str
    title: str
    level: Level
    message: str
    action: str
    about: str
    places: tuple[Place, ...]
    n_documents: int
    file: str | None = None

    @property
    def text(self) -> str:
        """The problem and its remedy, for a tool that shows one text."""
        several = ""
        if len(self.places) > 1:
            several = f" (one of {plural(self.n_documents, 'document')})"
        return f"{self.message}{several}. {self.action}"


def problems_of(audit: AnyAudit, source: str | Sequence[str] | None = None) -> list[Problem]:
    """The problems of an audit, most serious first.

    Args:
        audit: a finished audit, of classes, preferences or scores.
        source: what was read; None if it has no files.
    """
    over_limit: set[str] = set()
    if isinstance(audit, AuditData):  # scores have no limit for single tokens
        over_limit.update(audit.over_budget["token"])
    problems = [_of_finding(audit, finding, over_limit) for finding in audit.findings]
    if isinstance(audit, AuditData):
        explained: set[str] = set()
        for shortcut in audit.shortcuts:
            explained.update(shortcut.tokens)
        problems += _of_tokens(audit, explained)
    located = _with_lines(audit, source, problems)
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(located, key=lambda problem: order[problem.level])


def _of_finding(audit: AnyAudit, finding: Finding, over_limit: set[str]) -> Problem:
    """A finding as a problem whose lines are not known yet."""
    has_token_over_limit = finding.kind == "shortcut" and not over_limit.isdisjoint(finding.tokens)
    level: Level = "warning"
    if finding.kind in audit.exceeded or has_token_over_limit:
        level = "error"
    elif finding.level == "low":
        level = "note"
    task = audit.learned.task
    about = [
        check.about
        for check in all_checks()
        if check.name == finding.kind and isinstance(task, check.tasks)
    ]
    return Problem(
        kind=finding.kind,
        title=_one_line(finding.title),
        level=level,
        message=_one_line(finding.headline),
        action=_one_line(finding.action),
        about=_one_line(about[0]) if about else _one_line(finding.title),
        places=_places(finding.rows),
        n_documents=finding.documents,
    )


def _of_tokens(audit: AuditData, explained: set[str]) -> Iterator[Problem]:
    """The tokens beyond the limit that no shortcut is about."""
    tokens = audit.over_budget.unique("token", keep="first", maintain_order=True)
    for row in tokens.filter(~pl.col("token").is_in(list(explained))).iter_rows(named=True):
        rows = audit.to_review.filter(pl.col("token") == row["token"])
        message = (
            f"{quoted([row['token']])} has a posterior difference of "
            f"{row['posterior_difference']:.2f} for {row['class']}, beyond the limit "
            f"{audit.settings.budget}"
        )
        yield Problem(
            kind=TOKEN_LIMIT,
            title="A token exceeds the limit",
            level="error",
            message=_one_line(message),
            action="Review the rows in over-budget.csv, or mask the token.",
            about="No token may predict a class better than --fail-on allows.",
            places=_places(rows),
            n_documents=rows.height,
        )


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _places(rows: pl.DataFrame) -> tuple[Place, ...]:
    """The first rows of a problem, each once."""
    distinct = rows.select("part", "row").unique(maintain_order=True).head(MAX_PLACES)
    return tuple(Place(part, row) for part, row in distinct.iter_rows())


def _with_lines(
    audit: AnyAudit, source: str | Sequence[str] | None, problems: Sequence[Problem]
) -> list[Problem]:
    """The problems with the files and lines of their rows."""
    sources = {"train": source, "test": source}
    given_test = audit.settings.test
    if isinstance(given_test, str | Path):
        sources["test"] = str(given_test)
    elif given_test is not None:  # rows in memory
        sources["test"] = None
    places = {place for problem in problems for place in problem.places}
    found: dict[tuple[str, int], RowPlace] = {}
    for part, own_source in sources.items():
        rows = [place.row for place in places if place.part == part]
        if own_source is None or not rows:
            continue
        for row, where in row_places(own_source, audit.settings, rows).items():
            found[part, row] = where
    file = None
    if isinstance(source, str) and Path(source).is_file():
        file = Path(source).as_posix()
    return [_located(problem, found, file) for problem in problems]


def _located(problem: Problem, found: dict[tuple[str, int], RowPlace], file: str | None) -> Problem:
    """The problem with file and line of each place that could be found; other places stay as they
    are.
    """
    places = []
    for place in problem.places:
        where = found.get((place.part, place.row))
        if where is not None:
            place = Place(place.part, place.row, Path(where.file).as_posix(), where.line)
        places.append(place)
    return replace(problem, places=tuple(places), file=file)
