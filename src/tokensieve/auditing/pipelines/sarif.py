"""Findings as SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tokensieve import __version__
from tokensieve.auditing.pipelines.problems import Place, Problem
from tokensieve.files import json_text

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT = "tokensieve/v1"


def sarif(problems: Sequence[Problem]) -> str:
    """A log with one run; each problem is a result, and each kind of problem a rule."""
    rules = {problem.kind: _rule(problem) for problem in problems}
    index = {kind: number for number, kind in enumerate(rules)}
    driver = {"name": "tokensieve", "version": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, index[problem.kind]) for problem in problems],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(log)


def _rule(problem: Problem) -> dict[str, Any]:
    return {
        "id": problem.kind,
        "shortDescription": {"text": problem.title},
        "fullDescription": {"text": problem.about},
        "help": {"text": problem.action},
    }


def _result(problem: Problem, rule_index: int) -> dict[str, Any]:
    """A problem with all its places.

    SARIF allows several locations where "the condition … can only be corrected by making a change
    at every specified location" (section 3.27.12): a shortcut is gone when no row has it.
    """
    identity = hashlib.sha256(f"{problem.kind}\n{problem.message}".encode()).hexdigest()
    result: dict[str, Any] = {
        "ruleId": problem.kind,
        "ruleIndex": rule_index,
        "level": problem.level,
        "message": {"text": f"{problem.message}. {problem.action}"},
        "partialFingerprints": {FINGERPRINT: identity},
        "properties": {
            "documents": problem.n_documents,
            "rows": [{"part": place.part, "row": place.row} for place in problem.places],
        },
    }
    locations = [_location(place) for place in problem.places if place.file is not None]
    if not locations and problem.file is not None:  # code hosts show no result without a place
        locations = [{"physicalLocation": {"artifactLocation": {"uri": _address(problem.file)}}}]
    if locations:
        result["locations"] = locations
    return result


def _location(place: Place) -> dict[str, Any]:
    assert place.file is not None
    physical: dict[str, Any] = {"artifactLocation": {"uri": _address(place.file)}}
    if place.line is not None:
        physical["region"] = {"startLine": place.line}
    return {"physicalLocation": physical, "message": {"text": str(place)}}


def _address(file: str) -> str:
    """A path as a reference of RFC 3986; a relative one stays relative to the folder of the run."""
    if Path(file).is_absolute():
        return Path(file).as_uri()
    return quote(file)
