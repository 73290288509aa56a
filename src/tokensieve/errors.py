"""What can go wrong because of the input: one root, one clear line each."""

from __future__ import annotations


class InputError(ValueError):
    """The input or an option is wrong: the message says what, where, and what to do (exit status 2)."""
