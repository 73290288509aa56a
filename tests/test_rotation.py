"""Eight commits in a row run every slow test, and shared artefacts are what their commands
write."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

from artefacts import Artefact
from rotation import HOME, PARTS, costly_first, eighth_of, parts_of, room_of


def test_eight_commits_run_everything() -> None:
    parts = {eighth_of(str(1000 + k), "") for k in range(8)}
    assert parts == set(range(PARTS))
    found = parts_of([f"tests/test_x.py::test_{k}" for k in range(400)])
    assert set(found) == parts and max(map(found.count, parts)) < 2 * 400 / PARTS
    cases = parts_of([f"tests/test_x.py::test_y[{k}]" for k in range(10)])
    assert set(cases) == parts and cases[:2] == cases[8:], (
        "cases of one function are dealt one after the other"
    )


def test_costly_rooms_come_first_and_whole() -> None:
    def item(name: str, slow: bool = False) -> Any:
        return SimpleNamespace(nodeid=f"tests/{name}", get_closest_marker=lambda mark: slow or None)

    items = [item("test_a.py::x"), item("diagnose/test_b.py::x"), item("test_c.py::x", slow=True)]
    items += [item("model/test_adam.py::x"), item("test_a.py::y[1::2]"), item("test_a.py::z")]
    costly_first(items)
    assert [one.nodeid.removeprefix("tests/") for one in items] == [
        *("test_c.py::x", "test_a.py::x", "test_a.py::y[1::2]", "test_a.py::z"),
        *("diagnose/test_b.py::x", "model/test_adam.py::x"),
    ]


def test_files_that_need_pytorch_go_to_one_worker() -> None:
    files = [
        path
        for path in (HOME / "tests").rglob("test_*.py")
        if re.search(r'(later|skip)\("torch"', path.read_text())
    ]
    assert len(files) > 6 and {room_of(str(path.relative_to(HOME))) for path in files} == {
        "diagnose"
    }


def test_without_history_the_hash_decides() -> None:
    assert eighth_of("", "ff3") == 0xFF3 % 8 and eighth_of("", "") == 0


def test_shared_audits_are_whole(
    shared_audit: Artefact, shared_pair_audit: Artefact, shared_multiclass_audit: Artefact
) -> None:
    for artefact in (shared_audit, shared_pair_audit, shared_multiclass_audit):
        summary = json.loads((artefact.folder / "summary.json").read_text())
        assert summary["classes"] == list(artefact.result.classes)
        assert (artefact.folder / "report.html").exists()


def test_a_verification_is_shared(shared_verification: Artefact) -> None:
    assert (shared_verification.folder / "summary.json").exists()
