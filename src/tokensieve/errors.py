"""What can go wrong because of the input: one root, one clear line each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """The input or an option is wrong: the message says what, where, and what to do (exit status 2)."""


def check_memory(needed: float, what: str) -> None:
    """Refuse, before anything is allocated, what cannot fit into this machine: bytes, roughly, and the options that decide it.

    Raises:
        InputError: the machine has less memory than that.
    """
    if not hasattr(os, "sysconf"):  # not on Windows
        return
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        raise InputError(
            f"{what} would need about {needed / 1e9:,.0f} GB of memory, and this machine has {present / 1e9:,.0f}: use less"
        )


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """Whatever a library in Rust raises becomes one line, and what a panic writes to standard error is left out."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, InputError, OSError):
        raise
    except BaseException as problem:  # a panic is no Exception
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise InputError(f"{what}: {reason}") from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
