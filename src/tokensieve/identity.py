"""What tells one run from another: a checkpoint is taken up only by the run whose fingerprint it carries."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

from tokensieve.counts import Counts


def fingerprint(*parts: Any) -> str:
    """SHA-256 over arrays (their type, shape and bytes), Counts (all they hold), and the `repr` of everything else, in order."""
    digest = sha256()
    for part in parts:
        if isinstance(part, Counts):
            m = part.matrix
            arrays = (x.astype(np.int64) for x in (m.indptr, m.indices, part.labels))
            digest.update(fingerprint(*arrays, m.data, m.shape, part.classes, list(map(str, part.tokens))).encode())
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            text = repr(part).encode("utf-8", "surrogatepass")
            digest.update(f"{len(text)} ".encode() + text)
    return digest.hexdigest()
