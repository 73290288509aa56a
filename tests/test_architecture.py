"""The budget of the architecture: few concepts, short files and functions, and limits that only get tighter.

`LIMITS` is the goal. `CEILINGS` lists what still exceeds it, with the value that may not be exceeded until then: lower an entry
when you reach less, remove it when you reach the limit, and never raise one. `python tests/test_architecture.py` prints them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

import tokensieve

HOME = Path(tokensieve.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
LIMITS = {
    "public names": 320,
    "constants": 350,
    "dataclasses": 90,
    "fields of the largest dataclass": 15,
    "class names used twice": 0,
    "Any": 250,
    "fmt: skip": 0,
    "lines": 24_000,
    "lines of the longest file": 500,
    "lines of the longest function": 80,
    "parameters of the widest public function": 10,
    "imports of private names": 0,
}
CEILINGS: dict[str, int] = {
    "lines": 30_005,  # goal 24,000; raised once more, for wrong results that a new user found (fields, ties, intervals)
}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_record(node: ast.ClassDef) -> bool:
    """A dataclass, NamedTuple or Struct."""
    decorators = {ast.unparse(d).split("(")[0].split(".")[-1] for d in node.decorator_list}
    return "dataclass" in decorators or bool(
        {"NamedTuple", "Struct"} & {ast.unparse(b).split(".")[-1] for b in node.bases}
    )


def constants_in(node: ast.stmt) -> int:
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return 0
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return sum(isinstance(x, ast.Name) and x.id.isupper() for t in targets for x in ast.walk(t))


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = node.args
    return sum(a.arg not in ("self", "cls") for a in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Each parameter of a command is one of its options."""
    return any(ast.unparse(d).startswith("command(") for d in node.decorator_list)


def private_imports(path: Path) -> int:
    return sum(
        (node.module or "").startswith("tokensieve")
        and any(name.name.startswith("_") and not name.name.startswith("__") for name in node.names)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
    )


@cache
def measured() -> tuple[dict[str, int], dict[str, list[str]]]:
    """Every figure of the budget, and for some of them where the largest ones are."""
    sums: Counter[str] = Counter()
    classes: defaultdict[str, list[str]] = defaultdict(list)
    sizes: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for path in FILES:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(HOME).as_posix()
        here: Counter[str] = Counter(lines=text.count("\n"))
        here["fmt: skip"] = len(re.findall(r"#\s*fmt:\s*skip", text))
        here["imports of private names"] = private_imports(path)
        sizes["lines of the longest file"].append((here["lines"], name))
        for node in tree(path).body:
            here["constants"] += constants_in(node)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                here["public names"] += not node.name.startswith("_")
        for node in ast.walk(tree(path)):
            here["Any"] += isinstance(node, ast.Name) and node.id == "Any"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                sizes["lines of the longest function"].append((length, f"{name}: {node.name}"))
                if not node.name.startswith("_") and not is_command(node):
                    sizes["parameters of the widest public function"].append((parameters(node), f"{name}: {node.name}"))
            elif isinstance(node, ast.ClassDef):
                classes[node.name].append(name)
                if is_record(node):
                    here["dataclasses"] += 1
                    own = sum(isinstance(x, ast.AnnAssign) for x in node.body)
                    sizes["fields of the largest dataclass"].append((own, f"{name}: {node.name}"))
        sums.update(here)
    twice = [f"{name}: {', '.join(where)}" for name, where in sorted(classes.items()) if len(where) > 1]
    figures = dict(sums) | {"class names used twice": len(twice)}
    figures |= {key: max(found)[0] for key, found in sizes.items()}
    places = {
        key: [f"{size} {where}" for size, where in sorted(found, reverse=True)[:8]] for key, found in sizes.items()
    }
    return figures, places | {"class names used twice": twice}


@pytest.mark.parametrize("figure", LIMITS, ids=lambda figure: figure.replace(" ", "-"))
def test_budget(figure: str) -> None:
    figures, places = measured()
    allowed = max(LIMITS[figure], CEILINGS.get(figure, 0))
    where = "".join(f"\n  {place}" for place in places.get(figure, []))
    assert figures[figure] <= allowed, (
        f"{figures[figure]:,} {figure}, at most {allowed:,} (goal {LIMITS[figure]:,}){where}"
    )


@pytest.mark.parametrize("figure", CEILINGS)
def test_ceilings_are_lowered_with_what_they_limit(figure: str) -> None:
    found = measured()[0][figure]
    assert LIMITS[figure] < CEILINGS[figure] <= 1.02 * found + 1, f"{figure}: lower the ceiling to {found:,}"


if __name__ == "__main__":
    figures, places = measured()
    for key, limit in LIMITS.items():
        if figures[key] > limit:
            print(f'    "{key}": {figures[key]:_},  # goal {limit:,}')
    for name, found in places.items():
        print(name, *found[:8], sep="\n    ")
