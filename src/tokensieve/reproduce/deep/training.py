"""Training a deep model: minibatches in padded chunks, a record after every epoch, early stopping, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch.nn import functional

from tokensieve import checkpoint as disk
from tokensieve.errors import InputError
from tokensieve.progress import Progress, silent
from tokensieve.reproduce.deep.models import SELF_ATTENTION, Parameters, answers, pad, read_vector, start, tables
from tokensieve.reproduce.deep.settings import DeepSettings
from tokensieve.text.counts import Counts, Floats, Ints

CPU_BUDGET, GPU_BUDGET = 2**21, 2**25  # numbers in a chunk's largest array
SAVE_SECONDS = 60.0
Sets = Mapping[str, Counts]


@dataclass(frozen=True)
class DeepTraining:
    """A trained deep model with its history; the names are those of `tokensieve.model.embeddings.Training`.

    Attributes:
        settings: how it was trained.
        scores: E p, or E W₂ᵀp for key-query, at the start and after each epoch, shape (R, |S|).
        values: E v, shape (R, |S|, H).
        trajectory: a row for each of them: step (epochs done), norm_p (|p|, or |W₂ᵀp| for key-query), train_loss and
            train_accuracy (means over the epoch's batches, each before its step; missing at 0), and for each other set of
            documents NAME_loss and NAME_accuracy.
        seconds: wall time of this call.
        device: what it ran on, "cpu" or "cuda".
    """

    settings: DeepSettings
    scores: Floats
    values: Floats
    trajectory: pl.DataFrame
    seconds: float
    device: str

    def best(self, of: str = "validation_loss") -> int:
        """The record where a column of the trajectory is least."""
        return int(np.argmin(self.trajectory[of].to_numpy()))


@dataclass
class _State:
    parameters: Parameters
    optimizer: torch.optim.Optimizer
    rows: list[dict[str, Any]] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)


def fit_deep(
    counts: Counts,
    settings: DeepSettings,
    others: Sets | None = None,
    progress: Progress = silent,
    checkpoint: Path | None = None,
) -> DeepTraining:
    """Train a deep model on all its parameters and read its score and value of each token type after every epoch.

    Each epoch goes once through the documents in a new random order, in batches; the loss is that of
    `tokensieve.model.attention`. The same seed gives the same numbers up to rounding, which depends on the device and on
    the number of PyTorch's threads.

    Memory: a few |S| × d arrays (weights, gradient, two moments for Adam), and about six arrays of a chunk's size.

    Args:
        counts: n ≥ 1 training documents over |S| types.
        settings: which model, and how it is trained.
        others: name → documents that are measured after every epoch; "validation" stops training where the settings have
            `patience`.
        progress: called with the kind of model and the share of all epochs done.
        checkpoint: a safetensors file, written about once a minute; where it exists, training goes on from it.

    Raises:
        InputError: no documents, documents over other types or classes, training that diverges, or a checkpoint that is
            damaged, cannot be written, or is of another run.
    """
    began = saved = time.perf_counter()
    others = others or {}
    _check({"train": counts, **others})
    mark = disk.fingerprint(settings, settings.where().type, counts, *others.items())
    state = _begin(counts, settings)
    if checkpoint is None or not _resume(state, checkpoint, mark):
        _record(state, settings, others, None, None)
    while not _finished(state, settings):
        _record(state, settings, others, *_epoch(state, counts, settings, progress))
        if checkpoint is not None and time.perf_counter() - saved >= SAVE_SECONDS:
            _save(state, checkpoint, mark)
            saved = time.perf_counter()
    frame = pl.DataFrame(state.rows, infer_schema_length=None)
    device = settings.where().type
    return DeepTraining(
        settings, np.stack(state.scores), np.stack(state.values), frame, time.perf_counter() - began, device
    )


def plan(counts: Counts, documents: Ints, settings: DeepSettings) -> list[Ints]:
    """Split documents, longest first, so that a chunk holds few padded entries; documents without any type are left out.

    A chunk of B documents of at most m types holds B·m numbers, with a first layer B·m·d and B·m²: at most a budget of each,
    unless a single document is larger.
    """
    sizes = np.diff(counts.matrix.indptr)[documents].astype(np.int64)
    order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    budget = CPU_BUDGET if settings.where().type == "cpu" else GPU_BUDGET
    found, first = [], 0
    while first < len(order):
        m = int(sizes[order[first]])
        many = max(1, budget // (m * (max(settings.d, m) if settings.kind in SELF_ATTENTION else 1)))
        found.append(documents[order[first : first + many]])
        first += many
    return found


def _check(sets: Sets) -> None:
    train = sets["train"]
    for name, part in sets.items():
        if part.n_documents == 0:
            raise InputError(f"the {name} part has no documents: deep models need at least one")
        if part.n_types != train.n_types or part.classes != train.classes:
            raise InputError(f"the {name} part has other token types or classes than the train part: count both alike")


def _begin(counts: Counts, settings: DeepSettings) -> _State:
    parameters = start(counts.n_types, 1 if counts.n_classes == 2 else counts.n_classes, settings)
    make = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
    return _State(parameters, make(list(parameters.values()), lr=settings.learning_rate, fused=True))


def _finished(state: _State, settings: DeepSettings) -> bool:
    done = len(state.rows) - 1
    if done >= settings.epochs or settings.patience is None:
        return done >= settings.epochs
    return done - int(np.argmin([row["validation_loss"] for row in state.rows])) >= settings.patience


def _epoch(state: _State, counts: Counts, settings: DeepSettings, progress: Progress) -> tuple[float, float]:
    """One pass over the documents; mean loss and accuracy of its batches, each before its step."""
    done, n = len(state.rows) - 1, counts.n_documents
    order = np.random.default_rng([settings.seed, done]).permutation(n)
    loss = right = 0.0
    for first in range(0, n, settings.batch_size):
        batch = order[first : first + settings.batch_size]
        for x in state.parameters.values():
            x.grad = torch.zeros_like(x)
        found = _pass(settings, state.parameters, counts, batch, True)
        state.optimizer.step()
        loss, right = loss + found[0] * len(batch), right + found[1] * len(batch)
        progress(settings.kind, (done + (first + len(batch)) / n) / settings.epochs)
    return loss / n, right / n


def _pass(
    settings: DeepSettings, parameters: Parameters, counts: Counts, batch: Ints, learn: bool
) -> tuple[float, float]:
    """Mean loss and accuracy of a batch; with `learn`, the gradient of the mean loss is added to each `.grad`.

    E enters with the rows of a chunk's types only. A document without any known type has f = 0 always.
    """
    E, outputs = parameters["E"], parameters["v"].shape[1]
    f = torch.zeros(len(counts.labels), outputs, dtype=E.dtype, device=E.device)
    labels = torch.from_numpy(np.asarray(counts.labels)).to(E.device)
    for documents in plan(counts, batch, settings):
        chunk, where = pad(counts, documents, E), torch.from_numpy(documents).to(E.device)
        own = {name: x.detach().requires_grad_(learn) for name, x in parameters.items() if name != "E"}
        own["E"] = E.detach()[chunk.types].requires_grad_(learn)
        with torch.set_grad_enabled(learn):
            found = answers(settings, own, chunk)
        f[where] = found.detach()
        if learn:
            (_losses(found, labels[where]).sum() / len(batch)).backward()  # type: ignore[no-untyped-call]
            for name, x in own.items():
                into = parameters[name].grad
                assert into is not None and x.grad is not None
                _ = into.index_add_(0, chunk.types, x.grad) if name == "E" else into.add_(x.grad)
    where = torch.from_numpy(batch).to(E.device)
    f, labels = f[where], labels[where]
    if not bool(torch.isfinite(f).all()):
        raise InputError("training diverged, the model's answers are no finite numbers: use a smaller learning_rate")
    predicted = (f[:, 0] > 0).long() if outputs == 1 else f.argmax(dim=1)
    return float(_losses(f, labels).mean()), float((predicted == labels).double().mean())


def _losses(f: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """ℓ of each document: log(1 + e^{−y f}) with one output, cross-entropy of softmax(f) with K."""
    if f.shape[1] == 1:
        return functional.softplus(-torch.where(labels == 1, 1.0, -1.0).to(f) * f[:, 0])
    return functional.cross_entropy(f, labels, reduction="none")


def _record(state: _State, settings: DeepSettings, others: Sets, loss: float | None, accuracy: float | None) -> None:
    norm = float(read_vector(settings.kind, state.parameters).norm())
    row = {"step": len(state.rows), "norm_p": norm, "train_loss": loss, "train_accuracy": accuracy}
    for name, part in others.items():
        found = _pass(settings, state.parameters, part, np.arange(part.n_documents), False)
        row |= {f"{name}_loss": found[0], f"{name}_accuracy": found[1]}
    score, value = tables(settings.kind, state.parameters)
    state.rows.append(row)
    state.scores.append(score)
    state.values.append(value)


def _save(state: _State, path: Path, mark: str) -> None:
    moments = state.optimizer.state_dict()["state"]
    arrays = {name: x.cpu().numpy() for name, x in state.parameters.items()}
    arrays |= {f"{i}.{name}": x.cpu().numpy() for i, found in moments.items() for name, x in found.items()}
    arrays |= {"scores": np.stack(state.scores), "values": np.stack(state.values)}
    disk.save(path, mark, arrays, {"rows": state.rows})


def _resume(state: _State, path: Path, mark: str) -> bool:
    """Take up what `_save` left, if there is something."""
    found = disk.load(path, mark)
    if found is None:
        return False
    arrays, rest = found
    for name, x in state.parameters.items():
        x.copy_(torch.from_numpy(arrays[name]))
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name in (name for name in arrays if "." in name):
        position, _, moment = name.partition(".")
        x = torch.from_numpy(arrays[name])
        moments.setdefault(int(position), {})[moment] = x.reshape(()) if moment == "step" else x
    state.optimizer.load_state_dict({**state.optimizer.state_dict(), "state": moments})
    state.rows, state.scores, state.values = rest["rows"], list(arrays["scores"]), list(arrays["values"])
    return True
