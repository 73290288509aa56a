"""Training a deep model: minibatches, early stopping, checkpoints."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from tokensieve.errors import InputError
from tokensieve.files import check_writable
from tokensieve.model.attention import loss_and_slope
from tokensieve.model.decision import decide
from tokensieve.progress import Progress
from tokensieve.reproduce.deep import checkpoint as disk
from tokensieve.reproduce.deep.chunks import Map, add_gradient, answer_all, check_lengths, workers
from tokensieve.reproduce.deep.models import Parameters, read_vector, start, tables
from tokensieve.reproduce.deep.results import DeepResult
from tokensieve.reproduce.deep.settings import DeepSettings
from tokensieve.text.counts import Counts


def fit_deep(
    counts: Counts,
    settings: DeepSettings,
    validation: Counts | None = None,
    test: Counts | None = None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> DeepResult:
    """Train a deep model on all its parameters and read its score and value of each token type.

    Each epoch goes once through the documents in a new random order, in batches; the loss is that of
    `tokensieve.model.attention`. With validation documents, training stops after `patience` epochs without a lower validation
    loss, and the weights of the best epoch are taken. On the CPU the same seed gives the same bits for any number of
    threads (`torch.set_num_threads` says how many are used) on one machine and version of PyTorch; on a GPU sums may be
    rounded in another order from run to run.

    Memory: a few |S| × d arrays (weights, gradient, best weights, two moments for Adam), and about six m × m arrays per
    thread for the longest document of m distinct types.

    Args:
        counts: n ≥ 1 training documents over |S| types.
        settings: which model, and how it is trained.
        validation: documents that choose the epoch.
        test: documents that are only evaluated, at the end.
        progress: called with (kind of model, share of all epochs done).
        checkpoint: a safetensors file, written after each epoch; where it exists, training goes on from it to the same
            result.

    Raises:
        InputError: no documents, documents over other types or classes, a document of too many types, training that
            diverges, a checkpoint that is damaged, cannot be written, or is of another run.
    """
    began = time.perf_counter()
    parts = {"train": counts, "validation": validation, "test": test}
    given = {name: part for name, part in parts.items() if part is not None}
    _check(given, settings)
    state = _start(counts, settings)
    what = disk.identity(settings, counts, validation)
    if checkpoint is not None:
        check_writable(checkpoint.parent)
        disk.read_into(checkpoint, state, what)
    before = state.seconds
    with workers(settings.where()) as run:
        if not state.trajectory:
            _note(state, settings, validation, run)
        while not _finished(state, settings, validation):
            train_loss = _epoch(state, counts, settings, progress, run)
            _note(state, settings, validation, run, train_loss)
            state.seconds = before + time.perf_counter() - began
            if checkpoint is not None:
                disk.write(checkpoint, state, what)
        figures = {name: _evaluate(settings.kind, state.best, part, run) for name, part in given.items()}
    loss, accuracy = ({name: pair[i] for name, pair in figures.items()} for i in (0, 1))
    score, value = tables(settings.kind, state.best)
    seconds = before + time.perf_counter() - began
    return DeepResult(
        settings, score, value, loss, accuracy, tuple(state.trajectory), state.best_epoch, seconds, what["device"]
    )


def _check(given: dict[str, Counts], settings: DeepSettings) -> None:
    train = given["train"]
    for name, part in given.items():
        if part.n_documents == 0:
            raise InputError(f"the {name} part has no documents: deep models need at least one")
        if part.n_types != train.n_types or part.classes != train.classes:
            raise InputError(f"the {name} part has other token types or classes than the train part: count both alike")
        check_lengths(part, settings.kind, name)


def _start(counts: Counts, settings: DeepSettings) -> disk.State:
    heads = 1 if counts.n_classes == 2 else counts.n_classes
    parameters = start(counts.n_types, heads, settings)
    best = {name: x.clone() for name, x in parameters.items()}
    make = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
    optimizer = make(list(parameters.values()), lr=settings.learning_rate, fused=True)
    return disk.State(parameters, optimizer, best)


def _finished(state: disk.State, settings: DeepSettings, validation: Counts | None) -> bool:
    done = len(state.trajectory) - 1
    return done >= settings.epochs or (validation is not None and done - state.best_epoch >= settings.patience)


def _epoch(state: disk.State, counts: Counts, settings: DeepSettings, progress: Progress | None, run: Map) -> float:
    """One pass over the documents; give the mean loss of its steps, each taken before its step."""
    done, n = len(state.trajectory) - 1, counts.n_documents
    order = np.random.default_rng([settings.seed, done]).permutation(n)
    total = 0.0
    for first in range(0, n, settings.batch_size):
        batch = order[first : first + settings.batch_size]
        total += add_gradient(settings.kind, state.parameters, counts, batch, run)
        state.optimizer.step()
        if progress is not None:
            progress(settings.kind, (done + (first + len(batch)) / n) / settings.epochs)
    return total / n


def _note(
    state: disk.State, settings: DeepSettings, validation: Counts | None, run: Map, train_loss: float | None = None
) -> None:
    """Add an entry to the trajectory, and keep the weights if they are the best so far."""
    entry: dict[str, float] = {"epoch": len(state.trajectory)}
    if train_loss is not None:
        entry["train_loss"] = train_loss
    entry["score_vector_norm"] = float(read_vector(settings.kind, state.parameters).norm())
    better = True
    if validation is not None:
        loss, accuracy = _evaluate(settings.kind, state.parameters, validation, run)
        entry |= {"validation_loss": loss, "validation_accuracy": accuracy}
        better = not state.trajectory or loss < state.trajectory[state.best_epoch]["validation_loss"]
    state.trajectory.append(entry)
    if better:
        state.best_epoch = len(state.trajectory) - 1
        for name, x in state.best.items():
            x.copy_(state.parameters[name])


def _evaluate(kind: str, parameters: Parameters, counts: Counts, run: Map) -> tuple[float, float]:
    """Mean loss and accuracy."""
    f = answer_all(kind, parameters, counts, run)
    loss, _ = loss_and_slope(f, counts.labels)
    predicted = decide(f)
    return float(loss.mean()), float(np.mean(predicted == counts.labels))
