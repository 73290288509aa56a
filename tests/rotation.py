"""Which tests run: the fast ones, and of the slow ones an eighth that moves on with every commit.

`make test` runs `pytest --eighth`. Eight commits in a row run every slow test. Without the option `-m` decides as always.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from zlib import crc32

import pytest

PARTS = 8
HOME = Path(__file__).parents[1]


def eighth_of(history: str, commit: str) -> int:
    """The part of a commit: the number of commits before it modulo 8, or a remainder of its hash where history is cut off.

    Args:
        history: number of commits up to it; empty in a shallow clone.
        commit: its hash; empty outside a repository.
    """
    return int(history) % PARTS if history else int(commit or "0", 16) % PARTS


def current_eighth() -> int:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=HOME, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    whole = git("rev-parse", "--is-shallow-repository") == "false"
    return eighth_of(git("rev-list", "--count", "HEAD") if whole else "", git("rev-parse", "HEAD"))


def in_eighth(test: str, part: int) -> bool:
    """Whether a test, given by its node id, is in that part."""
    return crc32(test.encode("utf-8", "replace")) % PARTS == part


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a browser, and of the slow tests keep the commit's eighth where `--eighth` asks for it."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    part = config.getoption("eighth")
    if part is None:
        return
    left_out = [item for item in items if item.get_closest_marker("slow") and not in_eighth(item.nodeid, int(part))]
    gone = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in gone]
    config.hook.pytest_deselected(items=left_out)
