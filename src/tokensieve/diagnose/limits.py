"""What a pipeline may refuse: a word with too large a share of all use, words used without support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tokensieve.diagnose.judging import Status
from tokensieve.diagnose.result import Diagnosis
from tokensieve.errors import InputError
from tokensieve.escape import shown


@dataclass(frozen=True)
class Limits:
    """Limits on a diagnosis; None: no limit.

    Attributes:
        share: of all use that one word may have, between 0 and 1.
        unsupported: words that may be used without support.
    """

    share: float | None = None
    unsupported: int | None = None

    @classmethod
    def parse(cls, written: Sequence[str]) -> Limits:
        """`share=0.2`, `share=20%`, `unsupported=0`.

        Raises:
            InputError: not of that form.
        """
        found: dict[str, float] = {}
        for item in written:
            kind, _, limit = item.partition("=")
            try:
                number = float(limit.removesuffix("%")) / (100 if limit.endswith("%") else 1)
            except ValueError:
                number = -1.0
            right = (kind == "share" and 0 <= number <= 1) or (
                kind == "unsupported" and number >= 0 and number % 1 == 0
            )
            if not right:
                raise InputError(
                    f"--fail-on {item!r} is not of the form share=SHARE or unsupported=WORDS, for example share=0.2"
                )
            found[kind] = number
        return cls(found.get("share"), None if "unsupported" not in found else int(found["unsupported"]))

    def exceeded(self, found: Diagnosis) -> list[str]:
        """One line for each limit exceeded."""
        lines = []
        used = found.uses.filter(pl.col("status") != str(Status.NOT_SHOWN))
        if self.share is not None:
            over = used.filter(pl.col("share") > self.share).sort("share", descending=True)
            names = ", ".join(
                f"{shown(token, 30)} {share:.1%}" for token, share in over.select("token", "share").iter_rows()
            )
            lines += [f"words with more than {self.share:.1%} of all use: {names}"] if over.height else []
        if self.unsupported is not None and found.leaning.height > self.unsupported:
            names = ", ".join(shown(token, 30) for token in found.leaning["token"])
            lines.append(f"used without support, where {self.unsupported} are allowed: {names}")
        return lines
