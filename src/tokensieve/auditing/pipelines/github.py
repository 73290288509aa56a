"""Findings as workflow commands of GitHub Actions, which become annotations of a change."""

from __future__ import annotations

from collections.abc import Sequence

from tokensieve.auditing.pipelines.problems import Level, Place, Problem
from tokensieve.escape import printable

COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}
MAX_ANNOTATIONS = 10  # of one level that GitHub shows for one step


def github_annotations(problems: Sequence[Problem]) -> list[str]:
    """A line for each annotation: the first row of every problem, then the second rows, …"""
    lines = []
    for level in COMMANDS:
        own = [problem for problem in problems if problem.level == level]
        lines += _of_one_level(own)[:MAX_ANNOTATIONS]
    return lines


def _of_one_level(problems: Sequence[Problem]) -> list[str]:
    """The first annotation of every problem, then the second of each that has one, and so on.

    GitHub shows only the first ten of a level, which are then about as many problems as possible.
    """
    lines = []
    for depth in range(MAX_ANNOTATIONS):
        for problem in problems:
            if depth < len(problem.places):
                lines.append(_annotation(problem, problem.places[depth]))
            elif depth == 0:
                lines.append(_annotation(problem, None))
    return lines


def _annotation(problem: Problem, place: Place | None) -> str:
    """The line by which GitHub shows a problem beside a place in a file, or for the run as a
    whole."""
    properties = {}
    message = problem.text
    file = problem.file
    if place is not None:
        message = f"{str(place).capitalize()}: {message}"
        file = place.file
    if file is not None:
        properties["file"] = printable(file)
    if place is not None and place.line is not None:
        properties["line"] = str(place.line)
    properties["title"] = f"tokensieve: {problem.title}"
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{COMMANDS[problem.level]} {written}::{_data(message)}"


def _data(text: str) -> str:
    """A message in which nothing ends the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of a property, which a comma or a colon would end."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
