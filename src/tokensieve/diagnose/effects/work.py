"""How a measurement runs: in batches, with progress, and with a file that keeps unfinished work."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tokensieve import checkpoint
from tokensieve.arrays import Floats, Ints
from tokensieve.progress import Progress

SECONDS_BETWEEN_SAVES = 20
ALMOST_DONE = 0.99  # progress ends when the result is there, not when the model was last asked


class Work:
    """How a measurement runs: in batches of `batch_size` inputs of the `longest` length, or more
    if they are shorter.

    Args:
        batch_size: inputs as long as the longest document in one batch.
        removals: without gradients, each word is removed from so many inputs at most.
        seed: of everything drawn.
        path: file that keeps unfinished work; None to keep none.
        mark: fingerprint of data, model and settings.
        progress: called with the stage and the fraction of `pieces`, an estimate of all work.

    Raises:
        InputError: the file holds the work of another mark.
    """

    def __init__(
        self,
        batch_size: int,
        removals: int,
        seed: int,
        path: Path | None,
        mark: str,
        progress: Progress,
    ) -> None:
        self.batch_size = batch_size
        self.removals = removals
        self.seed = seed
        self.progress = progress
        self.pieces = 0.0
        self.longest = 0
        self._pieces_done = 0.0
        self._path = path
        self._mark = mark
        self._last_save = time.monotonic()
        saved = None if path is None else checkpoint.load(path, mark)
        self._arrays: dict[str, Floats] = {} if saved is None else saved[0]
        self._names_taken: set[str] = set()

    def zeros(self, name: str, *shape: int) -> Floats:
        """An array to be filled, kept under this name: as an interrupted run saved it, else zero.

        Raises:
            ValueError: the name was given out before; its array would be taken for unfinished work.
        """
        if name in self._names_taken:
            raise ValueError(f"two steps of a measurement have the name {name!r}")
        self._names_taken.add(name)
        return self._arrays.setdefault(name, np.zeros(shape))

    def batches(
        self, stage: str, lengths: Ints, step: Callable[[Ints], None], cost: float = 1.0
    ) -> None:
        """Call `step` with inputs of similar length, the longest first.

        No two calls have the same `stage`, by which unfinished work is known: it begins where an
        earlier run stopped. A piece counts `cost` times in the progress.
        """
        order = np.argsort(-lengths, kind="stable")
        n_done = self.zeros(f"{stage}/done", 1)
        pieces = self._pieces_done + cost * float(lengths[order[: int(n_done[0])]].sum())
        try:
            while (start := int(n_done[0])) < len(lengths):
                fraction = pieces / max(self.pieces, pieces, 1.0)
                self.progress(stage, min(fraction, ALMOST_DONE))
                times_shorter = self.longest // max(int(lengths[order[start]]), 1)
                size = self.batch_size * max(times_shorter, 1)
                at = order[start : start + size]
                step(at)
                pieces += cost * float(lengths[at].sum())
                n_done[0] = start + len(at)
                if time.monotonic() - self._last_save > SECONDS_BETWEEN_SAVES:
                    self._save()
        finally:
            self._pieces_done = pieces
            self._save()

    def _save(self) -> None:
        if self._path is not None:
            checkpoint.save(self._path, self._mark, self._arrays, {})
            self._last_save = time.monotonic()
