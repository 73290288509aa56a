"""Progress and time of long work, and work in threads and processes beside it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

_T = TypeVar("_T")
Progress = Callable[[str, float], None]
"""Receives what is being done and the fraction of it that is done, from 0 to 1."""


def silent(stage: str, share: float) -> None:
    """Shows nothing."""


def part(tell: Progress, low: float, high: float) -> Progress:
    """A receiver for one part of the work: its 0 … 1 is shown as low … high."""
    return lambda stage, share: tell(stage, low + (high - low) * share)


def beside(work: Callable[[], _T]) -> Future[_T]:
    """Does the work in a thread of its own, which no interrupt and no end of the program waits for."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future


def answer_of(program: Path, write: Callable[[IO[bytes]], object], lost: str, **environment: str) -> Any:
    """The JSON that a Python program of ours writes; `write` fills the file that it reads. Its memory and its faults are its own:
    where it fails, a line on standard error says what is lost and why, and the answer is None."""
    command, variables = [sys.executable, "-P", str(program)], os.environ | environment
    try:
        with TemporaryFile() as file:
            write(file)
            file.seek(0)
            done = subprocess.run(command, stdin=file, capture_output=True, timeout=3600, env=variables, check=True)
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        status = getattr(problem, "returncode", None)
        reason = f"its process ended with status {status}" if status else str(problem)
        logging.getLogger("tokensieve").warning("%s: %s", lost, reason)
        return None


class Clock:
    """Seconds of each stage, kept beside those of earlier stages."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = dict(seconds or {})
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Everything since the last lap was this stage."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
