"""Which tests run: the fast ones, and of the slow ones an eighth that moves on with every commit.

`make test` runs `pytest --eighth`. Eight commits in a row run every slow test. Without the option
`-m` decides as always.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest

PARTS = 8
# the names are hashed with it: of 500 the one whose dearest part took the least time when it was
# chosen
SALT = 210
SLOW = 15  # fast tests that take as long as a slow one
WITH_PYTORCH = "test_adam test_attention test_deep test_embeddings test_one_step test_pair_model test_reproduce_experiments".split()
HOME = Path(__file__).parents[1]


def eighth_of(history: str, commit: str) -> int:
    """The part of a commit: the number of commits before it modulo 8, or a remainder of its hash
    where history is cut off.

    Args:
        history: number of commits up to it; empty in a shallow clone.
        commit: its hash; empty outside a repository.
    """
    return int(history) % PARTS if history else int(commit or "0", 16) % PARTS


def current_eighth() -> int:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=HOME, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    whole = git("rev-parse", "--is-shallow-repository") == "false"
    return eighth_of(git("rev-list", "--count", "HEAD") if whole else "", git("rev-parse", "HEAD"))


def parts_of(tests: list[str]) -> list[int]:
    """The part of each test, given by their node ids: the cases of one function, which cost alike,
    are dealt to one part after the other, from a part that the function's name decides."""
    dealt: Counter[str] = Counter()
    parts = []
    for test in tests:
        function = test.partition("[")[0]
        parts.append((crc32(f"{SALT}{function}".encode()) + dealt[function]) % PARTS)
        dealt[function] += 1
    return parts


def room_of(test: str) -> str:
    """What goes to one worker as a whole: a file, or a folder whose tests share a trained model or
    an audit and its page. Files that need PyTorch go to the worker that loads it for the
    diagnoses."""
    file = Path(test.partition("::")[0])
    if file.stem in WITH_PYTORCH:
        return "diagnose"
    return next((room for room in ("diagnose", "report") if room in file.parts), str(file))


def costly_first(items: list[pytest.Item]) -> None:
    """Order the tests by room, costly rooms first, so that no worker ends long after the others."""
    cost: Counter[str] = Counter()
    for item in items:
        cost[room_of(item.nodeid)] += SLOW if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: (-cost[room_of(item.nodeid)], room_of(item.nodeid)))


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a browser, and of the slow tests keep the commit's eighth where `--eighth`
    asks for it."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    part = config.getoption("eighth")
    if part is None:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    left_out = [
        item
        for item, its in zip(slow, parts_of([item.nodeid for item in slow]), strict=True)
        if its != int(part)
    ]
    gone = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in gone]
    config.hook.pytest_deselected(items=left_out)
