"""The architecture: packages import only those before them, no module imports in a circle.

What is measured is where code depends on other code, never how much of it there is.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import tokensieve

ROOT = Path(tokensieve.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# in the order of the data's way: each imports those before it, and none behind it
PACKAGES = "read text evidence model task report auditing ranking diagnose theory cli".split()
# packages that a package of the theorist's side may use; nothing but the commands imports that side
THEORY_USES = {"read", "text", "evidence", "model", "report", "theory"}
ENTRY_POINTS = {"__init__.py", "__main__.py"}
DRAWING_LIBRARIES = {"altair", "vl_convert", "rich", "jinja2", "click"}  # report and cli only
# arrows that are still to go: (importing file, imported package)
PENDING_LAYERS: set[tuple[str, str]] = {}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


@cache
def imports(path: Path) -> frozenset[str]:
    """Full names of all modules and names imported in the file, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def run_time_imports(path: Path) -> frozenset[str]:
    """Our modules that the file imports when it runs: those for type checkers are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                names.add(name if name in MODULES else str(node.module))
    # a package's __init__ that only holds others' names is no module of a circle
    return frozenset(name for name in names if name in MODULES and name != "tokensieve")


def package_of(name: str) -> str | None:
    """The package of one of our modules; None at the root and for others' modules."""
    parts = name.split(".")
    is_ours = len(parts) > 1 and parts[0] == "tokensieve"
    return parts[1] if is_ours and parts[1] in PACKAGES else None


def test_every_folder_is_a_package_with_a_place() -> None:
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and list(p.glob("*.py"))}
    assert folders == set(PACKAGES)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_go_back_only(path: Path) -> None:
    inside = path.relative_to(ROOT).as_posix()
    if inside in ENTRY_POINTS:
        return
    own = inside.split("/")[0] if "/" in inside else None
    if own is None:
        allowed: set[str] = set()
    elif own == "theory":
        allowed = THEORY_USES
    else:
        allowed = set(PACKAGES[: PACKAGES.index(own) + 1])
    if own != "cli":
        allowed = allowed - ({"theory"} if own != "theory" else set())
    used = {package for package in map(package_of, imports(path)) if package is not None}
    pending = {package for file, package in PENDING_LAYERS if file == inside}
    assert used - allowed == pending, inside
    if own not in ("report", "cli"):
        libraries = {name.split(".")[0] for name in imports(path)}
        assert not DRAWING_LIBRARIES & libraries, inside


def test_no_module_imports_in_a_circle() -> None:
    """Imports inside functions count: a circle that is hidden is a circle."""
    reachable = {name: set(run_time_imports(path)) for name, path in MODULES.items()}
    for middle in MODULES:
        for targets in reachable.values():
            if middle in targets:
                targets |= reachable[middle]
    in_circle = {name.removeprefix("tokensieve.") for name in MODULES if name in reachable[name]}
    assert not in_circle


def test_results_reach_the_terminal_through_one_console() -> None:
    consoles = {"rich.console", "rich.console.Console"}
    users = {p.relative_to(ROOT).as_posix() for p in FILES if consoles & imports(p)}
    assert users <= {"report/terminal.py", "cli/command.py"}  # the latter for the progress bar
