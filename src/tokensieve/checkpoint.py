"""Resuming: the state of unfinished work in a file, which only the same run takes up again.

The file is safetensors: arrays as they are, and in its header all else as JSON, the fingerprint of
the run and one of the content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.files import parsed, read_regular, write_all

FORMAT = "tokensieve checkpoint 1"


def fingerprint(*parts: object) -> str:
    """SHA-256 over arrays (type, shape and bytes), objects with an `identity` (a tuple of parts),
    and the `repr` of all else."""
    digest = sha256()
    for part in parts:
        if hasattr(part, "identity"):
            digest.update(fingerprint(*part.identity).encode())
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            text = repr(part).encode("utf-8", "surrogatepass")
            digest.update(f"{len(text)} ".encode() + text)
    return digest.hexdigest()


def save(
    path: Path, mark: str, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, object]
) -> None:
    """Write arrays and the rest of the state, as JSON values, whole or not at all, into a folder
    that exists.

    `mark`: `fingerprint` of everything that decides the run: data, settings, start.
    """
    from safetensors.numpy import save as packed

    header = {"format": FORMAT, "mark": mark, "state": json.dumps(dict(state))}
    arrays = {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}
    header["sum"] = fingerprint(
        header["state"], *(part for item in arrays.items() for part in item)
    )
    blob = packed(arrays, header)
    write_all(path.parent, {path.name: blob})


def load(path: Path, mark: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """The saved (arrays, state), or None if there is no such file; an `InputError` if it belongs to
    another run."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpacked

    if not path.exists():
        return None
    advice = "delete it, or name another file"
    try:
        content = read_regular(path, limit=2**31)
        header = parsed(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
        if header["format"] != FORMAT:
            raise InputError(f"{str(path)!r} is not a tokensieve checkpoint; {advice}")
        if header["mark"] != mark:
            raise InputError(
                f"{str(path)!r} belongs to a run with different data, settings or initialisation; "
                f"{advice}"
            )
        arrays = unpacked(content)
        if header["sum"] != fingerprint(
            header["state"], *(part for item in sorted(arrays.items()) for part in item)
        ):
            raise ValueError("its content has changed")
        return arrays, json.loads(header["state"])
    except InputError:
        raise
    except (OSError, SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as a checkpoint ({error}); {advice}"
        ) from None
