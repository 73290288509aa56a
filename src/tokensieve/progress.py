"""Progress and time of long work, and work in threads and processes beside it."""

from __future__ import annotations

import atexit
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar, cast

_T = TypeVar("_T")
Progress = Callable[[str, float], None]
"""Receives what is being done and the fraction of it that is done, from 0 to 1."""


def silent(stage: str, share: float) -> None:
    """Shows nothing."""


def part(progress: Progress, low: float, high: float) -> Progress:
    """A receiver for one part of the work: its 0 … 1 is shown as low … high."""
    return lambda stage, share: progress(stage, low + (high - low) * share)


def in_background(work: Callable[[], _T]) -> Future[_T]:
    """Does the work in a thread of its own, which no interrupt and no end of the program waits for."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future


def prefetch(items: Iterable[_T]) -> Iterator[_T]:
    """The items, each made in a thread while the one before it is used."""
    remaining, end = iter(items), object()
    following = in_background(lambda: next(remaining, end))
    while (item := following.result()) is not end:
        following = in_background(lambda: next(remaining, end))
        yield cast(_T, item)


class Helper:
    """A Python program of ours that reads standard input and writes JSON, in a process of its own: so are its memory and faults."""

    def __init__(self, program: str, lost: str, **environment: str) -> None:
        self._program, self._lost, self._environment = (
            Path(__file__).parent / program,
            lost,
            environment,
        )
        self._waiting: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it before it is needed, as its libraries take a while to load; it ends with us."""
        if self._waiting is None:
            with suppress(OSError):  # `answer` will report it
                self._waiting = self._process()
                atexit.register(self._end)

    def answer(self, write: Callable[[IO[bytes]], object]) -> Any:
        """The helper's result for what `write` sends it; if it fails, None, and standard error says what is lost and why."""
        try:
            process = self._waiting or self._process()
            self._waiting = None
            with process:
                assert process.stdin
                try:
                    with suppress(BrokenPipeError):  # it has ended: its status says why
                        write(process.stdin)
                    out, _ = process.communicate(timeout=3600)
                finally:
                    process.kill()
            if process.returncode:
                raise ValueError(f"its process ended with status {process.returncode}")
            return json.loads(out)
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            logging.getLogger("tokensieve").warning("%s: %s", self._lost, problem)
            return None

    def _process(self) -> subprocess.Popen[bytes]:
        command, pipe = [sys.executable, "-P", str(self._program)], subprocess.PIPE
        variables = os.environ | self._environment
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=variables
        )

    def _end(self) -> None:
        if self._waiting is not None:
            self._waiting.kill()
            self._waiting.communicate()


DRAWING = Helper(
    "report/pictures/child.py", "the pictures are missing, everything else is complete"
)


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
