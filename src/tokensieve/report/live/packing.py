"""Blocks of data in the page: how they are packed, and how its page data names tokens.

A block is base64 of gzip of: the length of its JSON in 4 bytes (little-endian), the JSON, then each
array named in the JSON's "arrays", as byte planes (all first bytes, all second bytes, …), which
compress better.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

LONGEST_TOKEN = 256  # characters of a token that the page holds whole
SHORTENED_TOKEN = 200  # characters that it holds of a longer one


def packed(meta: Json, arrays: Arrays | None = None) -> str:
    """A block of JSON values and little-endian arrays of one dimension."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    listed = [[name, array.dtype.str[1:], len(array)] for name, array in contiguous.items()]
    header = {**meta, "arrays": listed}
    head = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    planes = [
        array.view(np.uint8).reshape(len(array), array.itemsize).T.tobytes()
        for array in contiguous.values()
        if len(array)
    ]
    raw = b"".join([len(head).to_bytes(4, "little"), head, *planes])
    return b64encode(gzip.compress(raw, 6, mtime=0)).decode()


def shortened(token: str) -> str:
    """A token as the page holds it."""
    if len(token) <= LONGEST_TOKEN:
        return token
    return token[:SHORTENED_TOKEN]
