"""The rooms stand in the order of the data's way: each knows those before it and none after it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import tokensieve

ROOMS = "text evidence model task theory auditing diagnose reproduce report cli".split()
HOME = Path(tokensieve.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
DRAWS = {"altair", "vl_convert", "rich", "jinja2", "click"}  # for report and cli only


@cache
def imports(path: Path) -> set[str]:
    """Full names of all modules imported in the file, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def room(name: str) -> str | None:
    """The room of a module of ours; None at the root and for others' modules."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "tokensieve" and parts[1] in ROOMS else None


def test_every_folder_is_a_room() -> None:
    assert {p.name for p in HOME.iterdir() if p.is_dir() and list(p.glob("*.py"))} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(HOME).as_posix())
def test_imports_go_back_only(path: Path) -> None:
    inside = path.relative_to(HOME).parts
    if inside in (("__init__.py",), ("__main__.py",)):
        return  # the two ways in
    own = inside[0] if len(inside) > 1 else None
    allowed = set(ROOMS[: ROOMS.index(own) + 1]) if own else set()
    names = imports(path)
    later = {other for other in map(room, names) if other is not None and other not in allowed}
    assert not later, path
    if own not in ("report", "cli"):
        assert not DRAWS & {name.split(".")[0] for name in names}, path


def test_results_reach_the_terminal_through_one_console() -> None:
    users = {p.relative_to(HOME).as_posix() for p in FILES if {"rich.console", "rich.console.Console"} & imports(p)}
    assert users <= {"report/terminal.py", "cli/command.py"}  # the latter for the progress bar, which shows no data
