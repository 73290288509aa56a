"""What can go wrong because of the input: one root, one clear line each."""

from __future__ import annotations

import os


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
