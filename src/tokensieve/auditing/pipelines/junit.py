"""Findings as a JUnit report, which nearly every CI system shows as tests."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from tokensieve.auditing.any_audit import AnyAudit
from tokensieve.auditing.checks.registry import all_checks
from tokensieve.auditing.pipelines.problems import Place, Problem
from tokensieve.escape import printable

CLASS_NAME = "tokensieve.audit"
MAX_LISTED_PLACES = 20  # in the text of a failure


def junit(audit: AnyAudit, problems: Sequence[Problem]) -> str:
    """A suite with a test case for each problem, and one for each check that found nothing.

    A problem fails its test case if it exceeds `--fail-on`; without `--fail-on`, if its severity is
    medium or high. The text of any other is the output of a case that passes.
    """
    failing = {"error"} if audit.settings.budget is not None else {"error", "warning"}
    n_failures = sum(problem.level in failing for problem in problems)
    found = {problem.kind for problem in problems}
    task = audit.learned.task
    quiet = [
        check
        for check in all_checks()
        if check.name not in found | {*task.left_out} and isinstance(task, check.tasks)
    ]
    seconds = f"{sum(audit.seconds.values()):.3f}"
    counts = {
        "tests": str(len(problems) + len(quiet)),
        "failures": str(n_failures),
        "errors": "0",
        "time": seconds,
    }
    suites = ElementTree.Element("testsuites", {"name": "tokensieve", **counts})
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": "tokensieve audit", "skipped": "0", **counts}
    )
    for problem in problems:
        _add_case(suite, problem, is_failure=problem.level in failing)
    for check in quiet:
        _case(suite, f"{check.name}: {check.title}", None)
    ElementTree.indent(suites, " ")
    content = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{content}\n'


def _case(suite: ElementTree.Element, name: str, place: Place | None) -> ElementTree.Element:
    attributes = {"classname": CLASS_NAME, "name": name, "time": "0"}
    if place is not None and place.file is not None:
        attributes["file"] = printable(place.file)
        if place.line is not None:
            attributes["line"] = str(place.line)
    return ElementTree.SubElement(suite, "testcase", attributes)


def _add_case(suite: ElementTree.Element, problem: Problem, is_failure: bool) -> None:
    """Add a finding as a test case, which fails if the finding exceeds a limit."""
    first = problem.places[0] if problem.places else None
    case = _case(suite, f"{problem.kind}: {problem.message}", first)
    places = ", ".join(_described(place) for place in problem.places[:MAX_LISTED_PLACES])
    text = f"{problem.message}.\n{problem.action}\n{places}".rstrip()
    if is_failure:
        attributes = {"message": problem.message, "type": problem.kind}
        ElementTree.SubElement(case, "failure", attributes).text = text
    else:
        ElementTree.SubElement(case, "system-out").text = text


def _described(place: Place) -> str:
    """The place of a document in words: file:line, or the row."""
    if place.file is None:
        return str(place)
    file = printable(place.file)
    return f"{file} {place}" if place.line is None else f"{file}:{place.line}"
