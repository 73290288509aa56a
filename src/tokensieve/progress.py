"""Progress and time of long work, and work in other threads and processes."""

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

from tokensieve.errors import InputError
from tokensieve.memory import return_freed_memory

T = TypeVar("T")
Progress = Callable[[str, float], None]
"""Receives what is being done and the fraction of it that is done, from 0 to 1."""

MAX_SECONDS_OF_HELPER = 3600
PICTURES_ADDRESS_SPACE = (
    70 * 10**9
)  # bytes that V8 reserves; measured: 64 GB fail, 67.5 at its peak


def silent(stage: str, share: float) -> None:
    """Shows nothing."""


def part(progress: Progress, low: float, high: float) -> Progress:
    """A receiver for one part of the work: its 0 … 1 is shown as low … high."""
    return lambda stage, share: progress(stage, low + (high - low) * share)


def in_background(work: Callable[[], T]) -> Future[T]:
    """Do the work in a thread of its own, which no interrupt and no end of the program waits
    for."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future


def prefetch(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, each made in a thread while the one before it is used."""
    remaining = iter(items)
    end = object()
    following = in_background(lambda: next(remaining, end))
    while (item := following.result()) is not end:
        following = in_background(lambda: next(remaining, end))
        yield cast(T, item)


class _FirstProcess:
    """The process in which the threads of Polars and Numba were started."""

    number: int | None = None


def check_not_forked() -> None:
    """Refuse work in a forked child of a process that has worked already.

    A fork copies no threads, so that the pools of Polars and Numba would wait for them forever.
    Whatever reads texts calls it first: audits, rankings, readers, and the estimators (which need
    neither pool for counts).

    Raises:
        InputError: this is such a process.
    """
    if _FirstProcess.number is None:
        _FirstProcess.number = os.getpid()
    elif _FirstProcess.number != os.getpid():
        raise InputError(
            "this process was forked from one that had used tokensieve, and its threads were not "
            'copied: start processes with multiprocessing.get_context("spawn"), or fork them first'
        )


class Helper:
    """A Python program of ours in a process of its own, so that its memory and faults are its own.

    It reads standard input and writes JSON.

    Args:
        program: its file in this package.
        lost: what is missing if it fails, for standard error.
        address_space: bytes that it reserves; under a lower limit it is not started.
    """

    def __init__(self, program: str, lost: str, address_space: int = 0) -> None:
        self._program = Path(__file__).parent / program
        self._lost = lost
        self._address_space = address_space
        self._waiting: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it before it is needed, as its libraries take a while to load; it ends with us."""
        if self._waiting is None and address_space_limit() >= self._address_space:
            with suppress(OSError):  # `answer` will report it
                self._waiting = self._process()
                atexit.register(self._end)

    def answer(self, write: Callable[[IO[bytes]], object]) -> Any:
        """The helper's result for what `write` sends it.

        If it fails, None, and standard error says what is lost and why.
        """
        try:
            return json.loads(self._output(write))
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            logging.getLogger("tokensieve").warning("%s: %s", self._lost, problem)
            return None

    def _output(self, write: Callable[[IO[bytes]], object]) -> bytes:
        """What the helper writes for what `write` sends it.

        Raises:
            ValueError: the limit on address space is too low for it.
            OSError, SubprocessError: it cannot be started, or fails.
        """
        if address_space_limit() < self._address_space:
            raise ValueError(
                f"they need {self._address_space / 1e9:.0f} GB of address space, more than "
                "`ulimit -v` allows; limit memory instead"
            )
        process = self._waiting or self._process()
        self._waiting = None
        with process:
            assert process.stdin
            try:
                with suppress(BrokenPipeError):  # it has ended: its status says why
                    write(process.stdin)
                output, _ = process.communicate(timeout=MAX_SECONDS_OF_HELPER)
            finally:
                process.kill()
        if process.returncode:
            raise ValueError(f"its process ended with status {process.returncode}")
        return output

    def _process(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", str(self._program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _end(self) -> None:
        if self._waiting is not None:
            self._waiting.kill()
            self._waiting.communicate()


DRAWING = Helper(
    "report/pictures/child.py",
    "the pictures are missing, everything else is complete",
    PICTURES_ADDRESS_SPACE,
)


def address_space_limit() -> float:
    """Bytes that this process may reserve (`ulimit -v`); infinite without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else float(limit)


class Clock:
    """Seconds of each stage, kept with those of earlier stages."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = dict(seconds or {})
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Attribute the elapsed time to this stage, and give back what it has freed."""
        return_freed_memory()
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
