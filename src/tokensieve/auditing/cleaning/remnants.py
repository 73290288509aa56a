"""What a cut leaves readable: if the changed texts still begin or end alike, as no others do, the mark is not gone."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import polars as pl

from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.text.counts import Ints

WORDS = 3  # at most, at either end
LEAST, MOSTLY, SURE = (
    10,
    0.5,
    0.9,
)  # changed texts, the fraction of them that are alike, and of the texts alike that were changed
_DIGITS, _PIECES = re.compile(r"\d+"), re.compile(r"\w+|[^\w\s]")


def remnants(texts: pl.Series, changed: Ints) -> list[tuple[str, str, Share]]:
    """How the changed texts begin or end that others do not: ("start" or "end", the pieces, fraction of such texts that were
    changed), the longest that most share; digits are 0.

    Args:
        texts: after the cut, String without nulls.
        changed: places of the texts that were changed.
    """
    if len(changed) < LEAST or len(changed) == len(texts):
        return []
    pieces = [_PIECES.findall(_DIGITS.sub("0", text.lower())) for text in texts]
    mask = np.zeros(len(texts), dtype=bool)
    mask[changed] = True
    out = []
    for side in ("start", "end"):
        for size in range(WORDS, 0, -1):
            ends = [tuple(p[:size] if side == "start" else p[-size:]) for p in pieces]
            common = Counter(ends[i] for i in changed.tolist()).most_common(1)
            end, n = common[0]
            every = sum(1 for one in ends if one == end)
            if end and n >= MOSTLY * len(changed) and n >= SURE * every:
                out.append((side, " ".join(end), Share.count(n, every)))
                break
    return out


def warning(side: str, pieces: str, share: Share) -> str:
    """The sentence about one of them."""
    verb = "begin with" if side == "start" else "end in"
    return (
        f"the mark is still readable: {share.counted} texts that {verb} {shown(pieces, 60)!r} (0 stands for any number) are among "
        "those that were changed; remove this too, or audit the copy before you use it"
    )
