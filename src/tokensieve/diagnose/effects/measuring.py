"""What a model does with each word of each document it reads, in batches of inputs of similar length.

Four passes: **reading** (logits, and attention if the model gives any), **words alone**, **effects** (of every word on the
answer to its document: by integrated gradients if gradients reach the embeddings, else by removing the word from a bounded,
seeded number of documents), and later **removing** the words that matter, which are also **inserted** into other documents
(`tokensieve.diagnose.effects.confirming`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve import checkpoint
from tokensieve.diagnose.subjects.classes import Outputs
from tokensieve.diagnose.subjects.pieces import Subject
from tokensieve.progress import Progress
from tokensieve.text.counts import Floats, Ints

_SAVE_SECONDS = 20.0
_TOGETHER = 0.8  # of the inputs that contain either of two words contain both: then they are parts of a phrase
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Measured:
    """What a model does with W inputs and |S| word types; H answers, L layers, m pairs.

    Attributes:
        answers: to each input, shape (W, H).
        offset: what a decision takes from the answer: the threshold of a single output, the partner's answer in a preference
            pair, else 0; shape (W,).
        heads: the answer that `effect` is about: the predicted class's, shape (W,).
        value: answer to each word alone, shape (|S|, H).
        types, windows: word type and input of every pair, ordered by input, shape (m,).
        effect: what the input's answer owes to the word, shape (m,); nan if it was not measured.
        method: "integrated gradients" or "leave-one-out".
        chosen, lost: with the latter, the pairs of which the word was removed, shape (D,), and what all answers lost, shape
            (D, H); else empty.
        attention: that the word receives, relative to an equal share for every piece of text in the input; each layer and
            last the rollout, shape (L+1, m); None if the model gives none.
        on_special: mean share of attention that goes to special tokens, each layer and the rollout, shape (L+1,), or None.
    """

    answers: Floats
    offset: Floats
    heads: Ints
    value: Floats
    types: Ints
    windows: Ints
    effect: Floats
    method: str
    chosen: Ints
    lost: Floats
    attention: NDArray[np.float32] | None
    on_special: Floats | None

    @property
    def decisive(self) -> Floats:
        """Answers less their offset, shape (W, H): what `tokensieve.model.attention.decide` takes."""
        return self.answers - self.offset[:, None]

    def of_words(self, kept: Ints) -> Measured:
        """The same for some of the words, ascending, which are then numbered from zero."""
        place = np.full(len(self.value), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        there = place[self.types] >= 0
        number = np.cumsum(there) - 1
        still = there[self.chosen]
        return replace(
            self,
            value=self.value[kept],
            types=place[self.types[there]],
            windows=self.windows[there],
            effect=self.effect[there],
            chosen=number[self.chosen[still]],
            lost=self.lost[still],
            attention=None if self.attention is None else self.attention[:, there],
        )


class Work:
    """How a measurement runs: batch by batch, saved as it goes, reporting how much of all work is done.

    Args:
        batch_size: inputs of one batch.
        removals: inputs that each word is removed from, at most, if there are no gradients.
        seed: of their choice.
        path: file that keeps unfinished work; None keeps nothing.
        mark: fingerprint of data, model and settings.
        progress: receives (stage, fraction of all work done).

    Raises:
        InputError: the file exists and is no checkpoint, or belongs to another run.

    Attributes:
        pieces: estimate of all work, in pieces read; set by whoever plans it.
    """

    def __init__(
        self, batch_size: int, removals: int, seed: int, path: Path | None, mark: str, progress: Progress
    ) -> None:
        self.batch_size, self.removals, self.seed, self.progress = batch_size, removals, seed, progress
        self.pieces, self._done = 0.0, 0.0
        self._path, self._mark, self._saved = path, mark, time.monotonic()
        found = None if path is None else checkpoint.load(path, mark)
        self._arrays: Arrays = {} if found is None else found[0]

    def zeros(self, name: str, **shapes: tuple[int, ...]) -> Arrays:
        """Arrays to be filled, kept under this name: as they were saved, else zero."""
        for array, shape in shapes.items():
            self._arrays.setdefault(f"{name}/{array}", np.zeros(shape))
        return {array: self._arrays[f"{name}/{array}"] for array in shapes}

    def batches(self, stage: str, lengths: Ints, step: Callable[[Ints], None], cost: float = 1.0) -> None:
        """Call `step` with inputs of similar length, the longest first, from where an earlier run stopped.

        Args:
            stage: its name.
            lengths: pieces of each input.
            step: reads the inputs of these numbers.
            cost: of a piece, in forward passes.
        """
        order, n = np.argsort(-lengths, kind="stable"), len(lengths)
        done = self.zeros(stage, done=(1,))["done"]
        before = self._done + cost * float(lengths[order[: int(done[0])]].sum())
        try:
            while (start := int(done[0])) < n:
                self.progress(stage, min(before / max(self.pieces, before, 1.0), 0.99))
                at = order[start : start + self.batch_size]
                step(at)
                before += cost * float(lengths[at].sum())
                done[0] = min(start + self.batch_size, n)
                self._save()
        finally:
            self._done = before
            self._save(now=True)

    def _save(self, now: bool = False) -> None:
        """Write the arrays, whole or not at all, every 20 seconds, or now."""
        if self._path is None or (not now and time.monotonic() - self._saved < _SAVE_SECONDS):
            return
        checkpoint.save(self._path, self._mark, self._arrays, {})
        self._saved = time.monotonic()


def read(subject: Subject, outputs: Outputs, work: Work, name: str = "model") -> Arrays:
    """First pass: "logits", shape (W, M), and if the model gives attention "attention", shape (L+1, m + 1)."""
    shapes = {"logits": (len(subject.documents), outputs.width)}
    if subject.layers:
        shapes["attention"] = (subject.layers + 1, len(subject.types) + 1)
    found = work.zeros(f"{name}: reading", **shapes)

    def step(at: Ints) -> None:
        found["logits"][at] = subject.look(at, found.get("attention"))

    work.batches(f"{name}: reading documents", subject.lengths, step)
    return found


def measure(
    subject: Subject, outputs: Outputs, first: Arrays, offset: Floats, work: Work, name: str = "model"
) -> Measured:
    """The passes after the first, or what is left of them.

    Args:
        subject: the model on its inputs.
        outputs: how logits become answers.
        first: what `read` gave.
        offset: what a decision takes from the answers, shape (W,).
        work: how it runs.
        name: of the model, in stages.
    """
    W, S = len(subject.documents), len(subject.word_lengths)
    answers = np.asarray(outputs.answers(first["logits"]))
    heads = np.asarray(answers.argmax(axis=1)) if outputs.heads > 1 else np.zeros(W, dtype=np.int64)
    found = work.zeros(f"{name}: measured", value=(S, outputs.heads), effect=(len(subject.types),))

    def alone(at: Ints) -> None:
        found["value"][at] = outputs.answers(subject.alone(at))

    work.batches(f"{name}: words alone", subject.word_lengths, alone)
    if subject.differentiable:
        effect, method = found["effect"], "integrated gradients"
        work.batches(
            f"{name}: effects", subject.lengths, lambda at: subject.integrate(at, heads[at], found["effect"]), 2.0
        )
        chosen, lost = np.empty(0, dtype=np.int64), np.empty((0, outputs.heads))
    else:
        chosen = choose(subject.types, np.arange(S), work.removals, work.seed)
        lost = remove_words(subject, outputs, answers, chosen, work, f"{name}: removing words")
        effect, method = np.full(len(subject.types), np.nan), "leave-one-out"
        effect[chosen] = lost[np.arange(len(chosen)), heads[subject.windows[chosen]]]
    attention = first.get("attention")
    return Measured(
        answers=answers,
        offset=offset,
        heads=heads,
        value=found["value"],
        types=subject.types,
        windows=subject.windows,
        effect=effect,
        method=method,
        chosen=chosen,
        lost=lost,
        attention=None if attention is None else attention[:, :-1],
        on_special=None if attention is None else attention[:, -1] / max(W, 1),
    )


def choose(types: Ints, words: Ints, per_word: int | Ints, seed: int, apart: Ints | None = None) -> Ints:
    """Pairs of some words, at random, ascending.

    Args:
        types: word type of every pair, shape (m,).
        words: the words wanted.
        per_word: pairs of each at most; or of each word type.
        seed: of the choice.
        apart: pairs that are not wanted.
    """
    there = np.flatnonzero(np.isin(types, words))
    there = there if apart is None else np.setdiff1d(there, apart)
    key = np.random.default_rng(seed).random(len(types))[there]
    order = np.lexsort((key, types[there]))
    ordered = types[there][order]
    first = np.searchsorted(ordered, ordered)
    most = per_word if isinstance(per_word, int) else per_word[ordered]
    return np.sort(there[order[np.arange(len(order)) - first < most]])


def companions(types: Ints, windows: Ints, words: Ints) -> dict[int, Ints]:
    """For each of some words those that are removed with it, itself included: the parts of a phrase, of which either can do the
    work of both. Words that have none are not in there.

    Args:
        types, windows: of every pair.
        words: word types, ascending, shape (C,).
    """
    known = np.isin(types, words)
    rows, columns = np.searchsorted(words, types[known]), windows[known]
    held = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(words), int(windows.max(initial=0)) + 1))
    alone, both = held.sum(axis=1), (held @ held.T).tocoo()
    either = alone[both.row] + alone[both.col] - both.data
    same = (both.data >= _TOGETHER * either) & (both.row != both.col)
    out: dict[int, list[int]] = {}
    for row, column in zip(both.row[same], both.col[same], strict=True):
        out.setdefault(int(words[row]), [int(words[row])]).append(int(words[column]))
    return {word: np.array(some) for word, some in out.items()}


def remove_words(
    subject: Subject,
    outputs: Outputs,
    answers: Floats,
    chosen: Ints,
    work: Work,
    stage: str,
    together: Mapping[int, Ints] | None = None,
) -> Floats:
    """answers − answers without the word, for some pairs, shape (D, H); nan if nothing else is in the input.

    Args:
        subject: the model on its inputs.
        outputs: how logits become answers.
        answers: to each input, shape (W, H).
        chosen: index of the pairs, shape (D,).
        work: how it runs.
        stage: what to call it.
        together: word type → the types that are removed with it, itself included; alone if it is not in there.
    """
    types, windows = subject.types[chosen], subject.windows[chosen]
    groups = together or {}
    lost: Floats = work.zeros(stage, lost=(len(chosen), outputs.heads))["lost"]

    def step(at: Ints) -> None:
        words = [groups.get(int(s), np.array([s])) for s in types[at]]
        lost[at] = answers[windows[at]] - outputs.answers(subject.without(words, windows[at]))

    work.batches(stage, subject.lengths[windows], step)
    return lost


def insert_words(
    subject: Subject, outputs: Outputs, answers: Floats, types: Ints, windows: Ints, work: Work, stage: str
) -> Floats:
    """answers with the word − answers, for inputs that do not contain it, shape (P, H).

    Args:
        subject, outputs, answers, work, stage: as in `remove_words`.
        types: word inserted into each input, in front of another of its words drawn at random, shape (P,).
        windows: these inputs, shape (P,).
    """
    # the place depends on word and input alone, so that two models are asked about the same texts
    places = np.array(
        [np.random.default_rng([work.seed, 7, s, w]).random() for s, w in zip(types, windows, strict=True)]
    )
    gained: Floats = work.zeros(stage, gained=(len(types), outputs.heads))["gained"]

    def step(at: Ints) -> None:
        gained[at] = outputs.answers(subject.having(types[at], windows[at], places[at])) - answers[windows[at]]

    work.batches(stage, subject.lengths[windows], step)
    return gained


def by_document(values: Floats, documents: Ints) -> Floats:
    """Mean over each document's windows, shape (n, …)."""
    sizes = np.bincount(documents)
    return np.column_stack([np.bincount(documents, column) / sizes for column in values.T])
