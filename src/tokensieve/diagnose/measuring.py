"""What a model does with each word of each document it reads, in batches of inputs of like length.

Four passes: **reading** (logits, and attention where the model gives any), **words alone**, **effects** (of every word on the
answer to its document: by integrated gradients where gradients reach the embeddings, else by leaving the word out of a bounded,
seeded number of documents), and later **leaving out** of the words that matter, which are also **put into** other documents
(`tokensieve.diagnose.confirming`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve import checkpoint
from tokensieve.diagnose.outputs import Outputs
from tokensieve.progress import Progress
from tokensieve.text.counts import Floats, Ints

SAVE_SECONDS = 20.0
TOGETHER = 0.8
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Pairs:
    """Every distinct (word type, input) pair, ordered by input, then by type.

    Attributes:
        types, windows: of each of m pairs, shape (m,).
        starts: where each input's pairs begin, shape (W+1,).
    """

    types: Ints
    windows: Ints
    starts: Ints

    @classmethod
    def of(cls, types: Ints, windows: Ints, n_windows: int) -> Pairs:
        """From pairs already in order."""
        return cls(types, windows, np.searchsorted(windows, np.arange(n_windows + 1)))


class Subject(Protocol):
    """A model on its inputs, ready to be measured."""

    documents: Ints
    """Document of each input, ascending, shape (W,)."""
    pairs: Pairs
    lengths: Ints
    """Length of each input, shape (W,)."""
    word_lengths: Ints
    """Length of each word alone, shape (|S|,)."""
    layers: int
    differentiable: bool

    def look(self, at: Ints, attention: NDArray[np.float32] | None) -> Floats:
        """Logits of some inputs, shape (n, M); fills what their pairs receive of attention, shape (L+1, m + 1), relative to an
        equal share for every piece of text, and in the last column adds the share that goes to special tokens."""
        ...

    def alone(self, at: Ints) -> Floats:
        """Logits of some words as whole inputs, shape (n, M)."""
        ...

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        """Fill the effect of each pair of some inputs on one answer of each, the mean over so many draws."""
        ...

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of inputs without some words each, shape (n, M); nan where nothing else is in them."""
        ...

    def having(self, words: Ints, windows: Ints, places: Floats) -> Floats:
        """Logits of inputs into each of which one word was put, at that share of its words, shape (n, M)."""
        ...


@dataclass(frozen=True)
class Measured:
    """What a model does with W inputs and |S| word types; H answers, L layers, m pairs.

    Attributes:
        logits: to each input, shape (W, M).
        answers: to each input, shape (W, H).
        offset: what a decision takes from the answer: the threshold of a single output, the partner's answer in a preference
            pair, else 0; shape (W,).
        heads: the answer that `effect` is about: the predicted class's, shape (W,).
        value: answer to each word alone, shape (|S|, H).
        pairs: every (word, input) pair.
        effect: what the input's answer owes to the word, shape (m,); nan where it was not measured.
        method: "integrated gradients" or "leave-one-out".
        chosen, lost: with the latter, the pairs of which the word was left out, shape (D,), and what all answers lost, shape
            (D, H); else empty.
        attention: that the word receives, relative to an equal share for every piece of text in the input; each layer and
            last the rollout, shape (L+1, m); None where the model gives none.
        on_special: mean share of attention that goes to special tokens, each layer and the rollout, shape (L+1,), or None.
    """

    logits: Floats
    answers: Floats
    offset: Floats
    heads: Ints
    value: Floats
    pairs: Pairs
    effect: Floats
    method: str
    chosen: Ints
    lost: Floats
    attention: NDArray[np.float32] | None
    on_special: Floats | None

    @property
    def decisive(self) -> Floats:
        """Answers less their offset, shape (W, H): what `tokensieve.model.decision.decide` takes."""
        return self.answers - self.offset[:, None]


class Checkpoint:
    """Arrays of an unfinished run, kept in one file (`tokensieve.checkpoint`) that is written again every SAVE_SECONDS.

    Args:
        path: the file; None keeps nothing.
        mark: fingerprint of data, model and settings.

    Raises:
        InputError: the file exists and is no checkpoint, or belongs to another run.
    """

    def __init__(self, path: Path | None, mark: str) -> None:
        self._path, self._mark, self._saved = path, mark, time.monotonic()
        found = None if path is None else checkpoint.load(path, mark)
        self.arrays: Arrays = {} if found is None else found[0]

    def zeros(self, name: str, **shapes: tuple[int, ...]) -> Arrays:
        """Arrays to be filled, kept under this name: as they were saved, else zero."""
        for array, shape in shapes.items():
            self.arrays.setdefault(f"{name}/{array}", np.zeros(shape))
        return {array: self.arrays[f"{name}/{array}"] for array in shapes}

    def save(self, now: bool = False) -> None:
        """Write the arrays, whole or not at all, every SAVE_SECONDS, or now."""
        if self._path is None or (not now and time.monotonic() - self._saved < SAVE_SECONDS):
            return
        checkpoint.save(self._path, self._mark, self.arrays, {})
        self._saved = time.monotonic()


@dataclass(frozen=True)
class Work:
    """How a measurement runs.

    Attributes:
        batch_size: inputs of one batch.
        per_type: inputs that each word is left out of, at most, where there are no gradients.
        seed: of their choice.
        kept: where unfinished work is saved.
        progress: receives (stage, share done).
        name: of the model, in stages.
    """

    batch_size: int
    per_type: int
    seed: int
    kept: Checkpoint
    progress: Progress
    name: str = "model"

    def batches(self, stage: str, lengths: Ints, step: Callable[[Ints], None]) -> None:
        """Call `step` with inputs of like length, the longest first, from where an earlier run stopped."""
        stage = f"{self.name}: {stage}"
        order, n = np.argsort(-lengths, kind="stable"), len(lengths)
        done = self.kept.zeros(stage, done=(1,))["done"]
        try:
            while (start := int(done[0])) < n:
                self.progress(stage, start / n)
                step(order[start : start + self.batch_size])
                done[0] = min(start + self.batch_size, n)
                self.kept.save()
        finally:
            self.kept.save(now=True)


def read(subject: Subject, outputs: Outputs, work: Work) -> Arrays:
    """First pass: "logits", shape (W, M), and where the model gives attention "attention", shape (L+1, m + 1)."""
    shapes = {"logits": (len(subject.documents), outputs.width)}
    if subject.layers:
        shapes["attention"] = (subject.layers + 1, len(subject.pairs.types) + 1)
    a = work.kept.zeros(f"{work.name}: reading", **shapes)

    def step(at: Ints) -> None:
        a["logits"][at] = subject.look(at, a.get("attention"))

    work.batches("reading documents", subject.lengths, step)
    return a


def measure(subject: Subject, outputs: Outputs, first: Arrays, offset: Floats, work: Work) -> Measured:
    """The passes after the first, or what is left of them.

    Args:
        subject: the model on its inputs.
        outputs: how logits become answers.
        first: what `read` gave.
        offset: what a decision takes from the answers, shape (W,).
        work: how it runs.
    """
    pairs, W, S = subject.pairs, len(subject.documents), len(subject.word_lengths)
    answers = np.asarray(outputs.answers(first["logits"]))
    heads = np.asarray(answers.argmax(axis=1)) if outputs.heads > 1 else np.zeros(W, dtype=np.int64)
    a = work.kept.zeros(f"{work.name}: measured", value=(S, outputs.heads), effect=(len(pairs.types),))

    def alone(at: Ints) -> None:
        a["value"][at] = outputs.answers(subject.alone(at))

    work.batches("words alone", subject.word_lengths, alone)
    if subject.differentiable:
        work.batches("effects", subject.lengths, lambda at: subject.integrate(at, heads[at], a["effect"]))
        effect, method = a["effect"], "integrated gradients"
        chosen, lost = np.empty(0, dtype=np.int64), np.empty((0, outputs.heads))
    else:
        chosen = choose(pairs, np.arange(S), work.per_type, work.seed)
        lost = leave_out(subject, outputs, answers, chosen, work, "leaving out words")
        effect, method = np.full(len(pairs.types), np.nan), "leave-one-out"
        effect[chosen] = lost[np.arange(len(chosen)), heads[pairs.windows[chosen]]]
    attention = first.get("attention")
    return Measured(
        first["logits"], answers, offset, heads, a["value"], pairs, effect, method, chosen, lost,
        None if attention is None else attention[:, :-1], None if attention is None else attention[:, -1] / max(W, 1),
    )  # fmt: skip


def choose(pairs: Pairs, types: Ints, per_type: int, seed: int, apart: Ints | None = None) -> Ints:
    """Index of at most `per_type` pairs, at random, of each of some types, ascending; none of those `apart`."""
    there = np.flatnonzero(np.isin(pairs.types, types))
    there = there if apart is None else np.setdiff1d(there, apart)
    key = np.random.default_rng(seed).random(len(there))
    order = np.lexsort((key, pairs.types[there]))
    ordered = pairs.types[there][order]
    first = np.searchsorted(ordered, ordered)
    return np.sort(there[order[np.arange(len(order)) - first < per_type]])


def companions(pairs: Pairs, words: Ints) -> dict[int, Ints]:
    """For each of some words those that are left out with it, itself included: where the inputs that hold both are at least
    TOGETHER of those that hold either, they are the parts of a phrase, and either can do the work of both.

    Args:
        pairs: every (word, input) pair.
        words: word types, ascending, shape (C,).
    """
    known = np.isin(pairs.types, words)
    rows, columns = np.searchsorted(words, pairs.types[known]), pairs.windows[known]
    held = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(words), len(pairs.starts) - 1))
    alone, both = held.sum(axis=1), (held @ held.T).tocoo()
    either = alone[both.row] + alone[both.col] - both.data
    same = (both.data >= TOGETHER * either) & (both.row != both.col)
    out: dict[int, list[int]] = {}
    for row, column in zip(both.row[same], both.col[same], strict=True):
        out.setdefault(int(words[row]), [int(words[row])]).append(int(words[column]))
    return {word: np.array(some) for word, some in out.items()}


def leave_out(
    subject: Subject, outputs: Outputs, answers: Floats, chosen: Ints, work: Work, stage: str,
    together: Mapping[int, Ints] | None = None,
) -> Floats:  # fmt: skip
    """answers − answers without the word, for some pairs, shape (D, H); nan where nothing else is in the input.

    Args:
        subject: the model on its inputs.
        outputs: how logits become answers.
        answers: to each input, shape (W, H).
        chosen: index of the pairs, shape (D,).
        work: how it runs.
        stage: what to call it.
        together: word type → the types that are left out with it, itself included; alone where it is not in there.
    """
    types, windows = subject.pairs.types[chosen], subject.pairs.windows[chosen]
    groups = together or {}
    lost: Floats = work.kept.zeros(f"{work.name}: {stage}", lost=(len(chosen), outputs.heads))["lost"]

    def step(at: Ints) -> None:
        words = [groups.get(int(s), np.array([s])) for s in types[at]]
        lost[at] = answers[windows[at]] - outputs.answers(subject.without(words, windows[at]))

    work.batches(stage, subject.lengths[windows], step)
    return lost


def put_in(
    subject: Subject, outputs: Outputs, answers: Floats, types: Ints, windows: Ints, work: Work, stage: str
) -> Floats:  # fmt: skip
    """answers with the word − answers, for inputs that do not hold it, shape (P, H).

    Args:
        subject, outputs, answers, work, stage: as in `leave_out`.
        types: word put into each input, in front of another of its words drawn at random, shape (P,).
        windows: these inputs, shape (P,).
    """
    places = np.random.default_rng(work.seed).random(len(types))
    gained: Floats = work.kept.zeros(f"{work.name}: {stage}", gained=(len(types), outputs.heads))["gained"]

    def step(at: Ints) -> None:
        gained[at] = outputs.answers(subject.having(types[at], windows[at], places[at])) - answers[windows[at]]

    work.batches(stage, subject.lengths[windows], step)
    return gained
