"""Errors in the input: one base class, and one clear line each."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class InputError(ValueError):
    """The input or an option is wrong: the message says what, where, and what to do (exit status
    2)."""


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """Whatever a library in Rust raises becomes one line, and the trace that it writes to standard
    error is left out.

    Memory that Rust cannot get, which a damaged size may ask for, and the end of a mapped file that
    another process cuts end the process: with status 2 and one line here.
    """
    import ctypes

    from tokensieve.escape import line

    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)

    def aborted(number: int) -> None:
        cut = sys.platform != "win32" and number == signal.SIGBUS
        reason = (
            "it was cut short while being read" if cut else "damaged, or there is not enough memory"
        )
        os.write(saved, f"tokensieve: {line(f'{what}: {reason}')}\n".encode())
        os._exit(2)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(
        aborted
    )  # Python's own handlers do not run while a library aborts
    before = _on_abort([ctypes.cast(handler, ctypes.c_void_p)] * 2)
    try:
        os.dup2(nowhere, 2)
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, InputError, OSError):
        raise
    except BaseException as problem:  # a panic is no Exception
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise InputError(f"{what}: {reason}") from None
    finally:
        _on_abort(before)
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def _on_abort(handlers: Sequence[object]) -> list[object]:
    """Set C's handlers of SIGABRT and SIGBUS; those before."""
    import ctypes

    if sys.platform == "win32":
        return []
    set_handler = ctypes.CDLL(None).signal
    set_handler.argtypes, set_handler.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    return [
        set_handler(number, handler)
        for number, handler in zip((signal.SIGABRT, signal.SIGBUS), handlers, strict=True)
    ]
