"""Errors in the input: one base class, and one clear line each."""

from __future__ import annotations

import os
import signal
import sys
import threading
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
    user = object()
    try:
        _silence.enter(user, what)
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, InputError, OSError):
        raise
    except BaseException as problem:  # a panic is no Exception
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise InputError(f"{what}: {reason}") from None
    finally:
        _silence.leave(user)


class _Silence:
    """Standard error and the handlers of C while libraries in Rust work, in any number of threads.

    The first thread that enters sets them for the process, the last one that leaves puts back what
    was there. (If each thread put back what it had found, one could restore what another had set:
    a closed standard error, or a handler that is no longer in memory.)
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer may come in between
        self._users: set[object] = set()
        self._what = ""
        self._standard_error = -1
        self._handlers_before: list[object] = []
        self._handler: object = None  # C has its address, so that it is never freed

    def enter(self, user: object, what: str) -> None:
        """Silence standard error, and say `what` if the process is ended."""
        with self._lock:
            self._what = what
            self._users.add(user)
            if len(self._users) > 1:
                return
            sys.stderr.flush()
            self._standard_error = os.dup(2)
            self._handlers_before = _on_abort([self._handler_address()] * 2)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)

    def leave(self, user: object) -> None:
        """Undo `enter`, as far as it came before an interrupt, if no other thread is inside."""
        with self._lock:
            was_inside = user in self._users
            self._users.discard(user)
            if self._users or not was_inside or self._standard_error < 0:
                return
            if self._handlers_before:
                _on_abort(self._handlers_before)
            os.dup2(self._standard_error, 2)
            os.close(self._standard_error)
            self._standard_error = -1
            self._handlers_before = []

    def _handler_address(self) -> object:
        import ctypes

        # Python's own handlers do not run while a library aborts
        self._handler = self._handler or ctypes.CFUNCTYPE(None, ctypes.c_int)(self._aborted)
        return ctypes.cast(self._handler, ctypes.c_void_p)  # type: ignore[arg-type]

    def _aborted(self, number: int) -> None:
        """Say in one line why a library ended the process, and end it; called by C, on a signal."""
        from tokensieve.escape import line

        is_cut = sys.platform != "win32" and number == signal.SIGBUS
        reason = "damaged, or there is not enough memory"
        if is_cut:
            reason = "it was cut short while being read"
        message = f"tokensieve: {line(f'{self._what}: {reason}')}\n"
        os.write(self._standard_error, message.encode())
        os._exit(2)


_silence = _Silence()


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
