"""What the C library does with freed memory: it goes back to the system, where that is possible.

glibc keeps freed arrays of up to 32 MB for later ones, so that the largest memory of a command
would be that of all its stages together: 130 MB more when the reviews of IMDB have been counted.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

M_TRIM_THRESHOLD = -1  # this and the next: options of glibc's mallopt
M_MMAP_THRESHOLD = -3
# Bytes from which an array goes back to the system as soon as it is freed. With 4 MB the findings
# of IMDB with bigrams took 1.7 GB instead of 1.5, but 5,000 reviews 2 s less of system time.
RETURNED_SIZE = 2**20
KEPT_FOR_SMALLER = 2**24  # bytes of freed memory that are kept for smaller arrays


def keep_little_freed_memory() -> None:
    """Let arrays of `RETURNED_SIZE` go back to the system when they are freed, in this process.

    It is for the beginning of a command, before Polars is imported.
    """
    # Polars reads this when it is loaded: pages that it freed do not wait until others need them
    os.environ.setdefault("_RJEM_MALLOC_CONF", "muzzy_decay_ms:0")
    set_option = _function_of_glibc("mallopt")
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, RETURNED_SIZE)
        set_option(M_TRIM_THRESHOLD, KEPT_FOR_SMALLER)


def return_freed_memory() -> None:
    """Give back what smaller arrays left; it takes milliseconds, and is for the end of a stage."""
    trim = _function_of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _function_of_glibc(name: str) -> Any:
    """A function of the C library that only glibc has; None elsewhere."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), name, None)
