"""Temporary files for data that does not fit into memory: texts, token ids, document frequencies, signatures, counts.

Files lie in one temporary folder (that of the system: set TMPDIR for another) and go with the last object that needs them. They
hold what would be in memory otherwise: a copy of the texts, four bytes per token, and twelve bytes per stored entry of the counts.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.errors import InputError


class Folder:
    """A temporary folder, inside another if given, that lives as long as an object that refers to it, or as the process."""

    def __init__(self, inside: str | None = None) -> None:
        with Folder.storing():
            self.path = Path(tempfile.mkdtemp(prefix="tokensieve-", dir=inside))
        self._files = 0
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    @staticmethod
    @contextmanager
    def storing(needed: int | None = None) -> Iterator[None]:
        """Report in one line why temporary files, which may take this many bytes, cannot be written."""
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as problem:
            reason = getattr(problem, "strerror", None) or "no space left, or a limit on the size of files"
            room = "" if needed is None else f", which need up to {max(needed, 10**6) / 1e9:.3f} GB"
            raise InputError(
                f"cannot write temporary files in {tempfile.gettempdir()!r}{room} ({reason}): free some space, or set TMPDIR to a "
                "folder on a larger disk"
            ) from None

    def new(self) -> Path:
        """A new, unused path."""
        self._files += 1
        return self.path / f"{self._files:07d}"

    def save(self, blocks: Iterable[bytes]) -> Path:
        """A new file with these bytes."""
        path = self.new()
        with path.open("wb") as file:
            for block in blocks:
                with Folder.storing():
                    file.write(block)
        return path

    @staticmethod
    def holds(array: object) -> bool:
        """Whether an array is a view of a file."""
        while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
            array = array.base
        return isinstance(array, np.memmap)

    def matrix(self, blocks: Iterable[sp.csr_array], columns: int, most: int) -> sp.csr_array:
        """A CSR matrix from blocks of its rows, in files that are mapped into memory and stay readable when their folder is gone.

        `most` bounds the stored entries; beyond 2³¹ positions need eight bytes instead of four.
        """
        kind = np.dtype(np.int32 if most < 2**31 else np.int64)
        paths, starts = (self.save([]), self.save([])), [np.zeros(1, np.int64)]
        for block in blocks:
            entries = block.indices.astype(kind, copy=False), block.data.astype(np.float64, copy=False)
            for path, values in zip(paths, entries, strict=True):
                with Folder.storing(most * (kind.itemsize + 8)), path.open("ab") as file:
                    values.tofile(file)
            starts.append(starts[-1][-1] + block.indptr[1:].astype(np.int64))
        ends = np.concatenate(starts).astype(kind)
        if not ends[-1]:
            return sp.csr_array((len(ends) - 1, columns))
        # copy-on-write, so that the arrays are of the same type to compiled kernels as those in memory
        indices, data = np.memmap(paths[0], kind, "c"), np.memmap(paths[1], np.float64, "c")
        return sp.csr_array((data, indices, ends), shape=(len(ends) - 1, columns))
