"""What tests of the command line share: the type of the fixture `run`."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
