"""What a model does with each word type, summed over groups of documents so that memory does not grow with their number.

Three passes, each in batches of inputs of like length: **look** (answers, attention, first-order effects of every window),
**words** (the answer to each word alone), **deletion** (the answer to a window without one of its words, for a bounded, seeded
number of windows of each word).
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tokensieve.diagnose.encoding import REST, SPECIAL, Windows
from tokensieve.errors import InputError
from tokensieve.files import write_all
from tokensieve.progress import Progress
from tokensieve.text.counts import Floats, Ints

SAVE_SECONDS = 20.0
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Measured:
    """Sums over the windows of each of G groups of documents, for |S| word types, H heads and L layers.

    Attributes:
        answers: the model's answer to each window, shape (W, H).
        value: its answer to each word alone, shape (|S|, H).
        held: windows that hold the word, shape (G, |S|).
        attention: Σ over them of the attention that the word receives, relative to an equal share for every piece of text
            in the window; each layer and last the rollout, shape (L+1, G, |S|); None where the model gives no attention.
        gradient: Σ over them of the first-order effect of all its occurrences, shape (G, |S|, H); None where there is none.
        tried: windows from which the word was deleted, shape (G, |S|).
        deletion: Σ over them of answer − answer without the word, shape (G, |S|, H).
        on_special: mean share of attention that goes to special tokens, each layer and the rollout, shape (L+1,), or None.
    """

    answers: Floats
    value: Floats
    held: Floats
    attention: Floats | None
    gradient: Floats | None
    tried: Floats
    deletion: Floats
    on_special: Floats | None


class Checkpoint:
    """Arrays of an unfinished run in one .npz file, tied to everything that decides the result.

    Args:
        path: the file; None keeps nothing.
        digest: of data, model and settings.

    Raises:
        InputError: the file exists and is no checkpoint, or belongs to another run.
    """

    def __init__(self, path: Path | None, digest: str) -> None:
        self._path, self._digest, self._saved = path, digest, time.monotonic()
        self.arrays: Arrays = {}
        if path is None or not path.exists():
            return
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            known = str(arrays.pop("digest"))
        except Exception:  # numpy and zipfile raise a dozen kinds for files of other programs
            raise InputError(f"{str(path)!r} is not a saved diagnosis: name another file with --resume") from None
        if known != digest:
            raise InputError(
                f"{str(path)!r} belongs to other documents, another model or other settings: name another file with --resume"
            )
        self.arrays = arrays

    def zeros(self, name: str, **shapes: tuple[int, ...]) -> Arrays:
        """Arrays to be filled, kept under this name: as they were saved, else zero."""
        for array, shape in shapes.items():
            self.arrays.setdefault(f"{name}/{array}", np.zeros(shape))
        return {array: self.arrays[f"{name}/{array}"] for array in shapes}

    def save(self, now: bool = False) -> None:
        """Write the arrays, whole or not at all, every SAVE_SECONDS, or now."""
        if self._path is None or (not now and time.monotonic() - self._saved < SAVE_SECONDS):
            return
        content = io.BytesIO()
        np.savez(content, digest=np.array(self._digest), **self.arrays)  # type: ignore[arg-type]
        write_all(self._path.parent, {self._path.name: content.getvalue()})
        self._saved = time.monotonic()


def choose_deletions(types: Ints, windows: Ints, per_type: int, seed: int) -> tuple[Ints, Ints]:
    """At most `per_type` of the (type, window) pairs of each type, at random."""
    key = np.random.default_rng(seed).random(len(types))
    order = np.lexsort((key, types))
    first = np.searchsorted(types[order], types[order])
    chosen = np.sort(order[np.arange(len(order)) - first < per_type])
    return types[chosen], windows[chosen]


class Subject(Protocol):
    """A model on its inputs, ready to be measured."""

    @property
    def groups(self) -> Ints:
        """Group of the document of each window, shape (W,), values 0 … G−1."""
        ...

    @property
    def documents(self) -> Ints:
        """Document of each window, shape (W,)."""
        ...

    def measure(self, kept: Checkpoint, name: str, progress: Progress) -> Measured:
        """All three passes, or what is left of them."""
        ...

    def delete(
        self, answers: Floats, pairs: tuple[Ints, Ints], kept: Checkpoint, name: str, progress: Progress
    ) -> Floats:
        """answers − answers without the word for each (type, window) pair, shape (D, H); nan where nothing else stands there."""
        ...

    def held(self) -> tuple[Ints, Ints]:
        """Distinct (type, window) pairs."""
        ...


class _Reads(Protocol):
    """What is asked of a `tokensieve.diagnose.reading.Reader`."""

    layers: int
    reads: str

    @property
    def heads(self) -> int: ...

    def answers(self, batch: Any) -> Floats: ...

    def look(self, batch: Any) -> Any: ...


@dataclass(frozen=True)
class TransformerSubject:
    """A transformer on its windows.

    Attributes:
        reader: the model.
        windows: its inputs.
        groups: group of each window's document, shape (W,).
        n_groups: G.
        per_type: windows from which each word is deleted, at most.
        batch_size: inputs of one batch.
        seed: of the choice of those windows.
    """

    reader: _Reads
    windows: Windows
    groups: Ints
    n_groups: int
    per_type: int
    batch_size: int
    seed: int

    @property
    def documents(self) -> Ints:
        """Document of each window."""
        return self.windows.documents

    def held(self) -> tuple[Ints, Ints]:
        """Distinct (type, window) pairs."""
        return self.windows.held()

    def measure(self, kept: Checkpoint, name: str, progress: Progress) -> Measured:
        """All three passes, or what is left of them."""
        reader, windows = self.reader, self.windows
        W, S, G, H, L = len(windows), len(windows.forms), self.n_groups, reader.heads, reader.layers
        a = kept.zeros(
            name, answers=(W, H), value=(S, H), held=(G, S), gradient=(G, S, H), attention=(L + 1, G, S), on_special=(L + 1,)
        )  # fmt: skip
        sizes = np.diff(windows.starts)
        run = partial(self._run, kept, progress)
        run(f"{name}: reading documents", sizes, lambda at: _look(reader, windows, self.groups, at, a))

        def alone(at: Ints) -> None:
            a["value"][at] = reader.answers([windows.forms[s] for s in at])

        run(f"{name}: words alone", np.array([len(f) for f in windows.forms]), alone)
        pairs = choose_deletions(*self.held(), self.per_type, self.seed)
        lost = self.delete(a["answers"], pairs, kept, f"{name}: deleting words", progress)
        tried, deletion = by_group(lost, pairs[0], self.groups[pairs[1]], (G, S))
        special = a["on_special"] / max(W, 1) if L else None
        return Measured(
            a["answers"], a["value"], a["held"], a["attention"] if L else None, a["gradient"], tried, deletion, special
        )  # fmt: skip

    def delete(
        self, answers: Floats, pairs: tuple[Ints, Ints], kept: Checkpoint, name: str, progress: Progress
    ) -> Floats:
        """answers − answers without the word for each (type, window) pair, shape (D, H); nan where nothing else stands there."""
        words, rows = pairs
        a = kept.zeros(name, lost=(len(words), answers.shape[1]))

        def step(at: Ints) -> None:
            batch = [self.windows.without(w, s) for s, w in zip(words[at], rows[at], strict=True)]
            whole = np.array([len(ids) > 0 for ids in batch], dtype=bool)
            a["lost"][at] = np.nan
            if whole.any():
                a["lost"][at[whole]] = answers[rows[at[whole]]] - self.reader.answers(
                    [ids for ids in batch if len(ids)]
                )

        self._run(kept, progress, name, np.diff(self.windows.starts)[rows], step)
        return a["lost"]

    def _run(
        self, kept: Checkpoint, progress: Progress, stage: str, lengths: Ints, step: Callable[[Ints], None]
    ) -> None:  # fmt: skip
        """One pass: batches of inputs of like length, the longest first, from where an earlier run stopped."""
        order, n = np.argsort(-lengths, kind="stable"), len(lengths)
        done = kept.zeros(stage, done=(1,))["done"]
        try:
            while (start := int(done[0])) < n:
                progress(stage, start / n)
                step(order[start : start + self.batch_size])
                done[0] = min(start + self.batch_size, n)
                kept.save()
        finally:
            kept.save(now=True)


def by_group(lost: Floats, types: Ints, groups: Ints, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Number and sum of what was lost, by group and type, shapes (G, |S|) and (G, |S|, H); nan does not count."""
    there = np.isfinite(lost).all(axis=1)
    cell = (groups[there], types[there])
    tried, total = np.zeros(shape), np.zeros((*shape, lost.shape[1]))
    np.add.at(tried, cell, 1.0)
    np.add.at(total, cell, lost[there])
    return tried, total


def _look(reader: _Reads, windows: Windows, groups: Ints, at: Ints, a: Arrays) -> None:
    """Answers, attention and first-order effects of some windows, added to the sums of their groups."""
    batch = [windows.ids(w) for w in at]
    look = reader.look(batch)
    width = max(map(len, batch))
    types = np.full((len(at), width), SPECIAL, dtype=np.int64)
    for row, w in enumerate(at):
        types[row, : len(batch[row])] = windows.types[windows.starts[w] : windows.starts[w + 1]]
    S = len(windows.forms)
    rows, columns = np.nonzero(types >= 0)
    pairs, which, occurrences = np.unique(rows * S + types[rows, columns], return_inverse=True, return_counts=True)
    row, word = pairs // S, pairs % S
    cell = (groups[at[row]], word)
    a["answers"][at] = look.answers
    np.add.at(a["held"], cell, 1.0)
    for h in range(reader.heads):
        np.add.at(a["gradient"][..., h], cell, np.bincount(which, look.effects[rows, columns, h], len(pairs)))
    if look.attention is None:
        return
    text = types >= REST
    pieces = text.sum(axis=1)
    for layer, received in enumerate(look.attention.astype(np.float64)):
        on_text = np.where(text, received, 0.0).sum(axis=1)
        a["on_special"][layer] += np.sum(1.0 - on_text)
        share = np.bincount(which, received[rows, columns], len(pairs)) / np.maximum(on_text, 1e-30)[row]
        np.add.at(a["attention"][layer], cell, share / (occurrences / pieces[row]))
