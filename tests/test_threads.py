"""What libraries in Rust get from us in several threads at once: standard error and C's handlers."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tokensieve.errors import InputError, one_line


def handler_of_abort() -> int | None:
    """The address of C's handler of SIGABRT."""
    set_handler = ctypes.CDLL(None).signal
    set_handler.argtypes = (ctypes.c_int, ctypes.c_void_p)
    set_handler.restype = ctypes.c_void_p
    address: int | None = set_handler(signal.SIGABRT, None)
    set_handler(signal.SIGABRT, address)
    return address


@pytest.mark.skipif(sys.platform == "win32", reason="no such handlers there")
def test_threads_put_back_standard_error_and_the_handlers_of_c() -> None:
    """In 0.3 a thread restored another's: a closed stream, a handler that was freed."""

    def work(number: int) -> None:
        for _ in range(50):
            with suppress(InputError), one_line("a table"):
                os.getpid()
                if number % 3 == 0:
                    raise RuntimeError("a panic")

    before = os.fstat(2), handler_of_abort()
    n_open = len(os.listdir("/dev/fd"))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    after = os.fstat(2), handler_of_abort()
    assert os.path.samestat(before[0], after[0]) and before[1] == after[1]
    assert len(os.listdir("/dev/fd")) == n_open
