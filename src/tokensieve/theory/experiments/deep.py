"""Deeper relatives of the model in PyTorch: two attention layers, key-query matrices, an MLP layer.

None of them sees word order, so a document is its m distinct types i with counts c_i. Equal tokens
have equal queries, keys and values: a softmax over tokens is a softmax over types with log c_i
added to the logits, and the T × T attention of the first layer is m × m. This is exact, not an
approximation.

The second layer, `<cls>` attention, reads a score and a value of each type (Wu, Shevchenko, Oymak,
Mondelli, NeurIPS 2025):

    f = Σ_i q_i ω_i       q = softmax_i(υ_i + log c_i)       υ_i, ω_i ∈ R (or R^K with K outputs)

    one-layer   υ_i = u_i,   ω_i = w_i,                               u_s = E_sᵀp,  w_s = E_sᵀv
    two-layer   υ_i = pᵀz_i = Σ_j A_ij u_j,   ω_i = z_iᵀv = Σ_j A_ij w_j
                z_i = Σ_j A_ij E_j,   A_ij = softmax_j(E_iᵀE_j + log c_j)
    key-query   the same with A_ij = softmax_j(E_iᵀW₁E_j + log c_j) and u_s = pᵀW₂E_s
    mlp         f = vᵀ ReLU(W Σ_i q_i E_i),   q = softmax_i(u_i + log c_i),   W ∈ R^{d×d}

A second layer that is linear in z needs z nowhere: A smooths the two numbers of each type, and that
is all. A residual connection (z_i + E_i) adds a type's own two numbers to the smoothed ones.

The paper leaves details open. Unless the settings differ, there is no 1/√d in the softmax, no
residual connection and no bias anywhere, because its formulas have none; E, p ~ N(0, I/d) and v of
unit norm (orthonormal columns) as in the paper's lemma; W₁ and W₂ start with entries N(0, 1/d), W
with entries N(0, 2/d).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from tokensieve import checkpoint as disk
from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import initialise
from tokensieve.torch_device import find_device

try:
    import torch
    from torch.nn import functional
except ImportError as error:
    raise InputError(
        f"the deep models need PyTorch ({error}): pip install tokensieve[torch]"
    ) from None

KINDS = ("one-layer", "two-layer", "key-query", "mlp")
TWO_LAYERS = ("two-layer", "key-query")
CPU_BUDGET = 2**19  # numbers in a chunk's largest array: a core's cache holds a few of them
GPU_BUDGET = 2**25  # a GPU needs larger arrays to be busy
SAVE_SECONDS = 60.0  # between two checkpoints
Parameters = dict[str, torch.Tensor]


@dataclass(frozen=True)
class DeepSettings:
    """Which model, and how it is trained; all parameters are trained.

    Attributes:
        kind: one of `KINDS`; see the formulas above.
        d: embedding dimension, ≥ 1 (≥ K with K classes); also the hidden width of the MLP layer.
        epochs: passes over the training documents, at most.
        batch_size: documents per step.
        learning_rate: step size, the same in all epochs.
        optimizer: "adam", with all moments decaying at every step, β = 0.9, 0.999; or "sgd" (plain
            gradient descent).
        start_std: the standard deviation of E's entries at the start; None is the paper's 1/√d.
        seed: of the random start and of the order of documents.
        patience: epochs without a lower validation loss before training stops; None trains all.
        device: "auto" (a GPU where PyTorch finds one, else the CPU), or a PyTorch device such as
            "cpu" or "cuda:1".
        dtype: "float32" or "float64".
        scaled: divide the first layer's logits by √d, as transformers do.
        residual: add a token's own embedding to what the first layer returns.
    """

    kind: str
    d: int = 128
    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 1e-2
    optimizer: str = "adam"
    start_std: float | None = None
    seed: int = 0
    patience: int | None = None
    device: str = "auto"
    dtype: str = "float32"
    scaled: bool = False
    residual: bool = False


class Performance(NamedTuple):
    """Mean loss and accuracy of a model on some documents."""

    loss: float  # mean
    accuracy: float


class DeepTraining:
    """A trained deep model with its history, named as in `tokensieve.theory.embeddings.Training`.

    Attributes:
        scores: E p, or E W₂ᵀp for key-query, at the start and after each epoch: R arrays of shape
            (|S|,).
        values: E v at the same times, shape (|S|, H).
    """

    def __init__(self, counts: Counts, settings: DeepSettings) -> None:
        n_outputs = 1 if counts.n_classes == 2 else counts.n_classes
        make_optimizer = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
        self._settings = settings
        self._parameters = initial_parameters(counts.n_types, n_outputs, settings)
        self._optimizer = make_optimizer(
            list(self._parameters.values()), lr=settings.learning_rate, fused=True
        )
        self._rows: list[dict[str, float | None]] = []
        self.scores: list[Floats] = []
        self.values: list[Floats] = []

    @classmethod
    def fit(
        cls,
        counts: Counts,
        settings: DeepSettings,
        others: Mapping[str, Counts] | None = None,
        progress: Progress = silent,
        checkpoint: Path | None = None,
    ) -> DeepTraining:
        """Train a deep model on all its parameters; read its scores and values after each epoch.

        Each epoch goes through the documents once, in batches and in a new random order. The same
        seed gives the same numbers up to rounding, which depends on the device and PyTorch's
        threads. An `InputError` without documents, for documents of other types or classes, if
        training diverges, or for a checkpoint that is damaged, cannot be written or is of another
        run.

        Args:
            counts: documents to learn from.
            settings: which model, and how it is trained.
            others: documents measured after each epoch; the loss of "validation" stops training
                with `patience`.
            progress: receives what is being done.
            checkpoint: a safetensors file, written about once a minute; training continues from it
                if it exists.
        """
        others = others or {}
        _check_parts(counts, others)
        mark = disk.fingerprint(
            settings, find_device(settings.device).type, counts, *others.items()
        )
        run = cls(counts, settings)
        if checkpoint is None or not run._resume(checkpoint, mark):
            run._record(others, None)
        saved = time.perf_counter()
        while not run._is_finished():
            mean = run._train_epoch(counts, progress)
            run._record(others, mean)
            if checkpoint is not None and time.perf_counter() - saved >= SAVE_SECONDS:
                run._save(checkpoint, mark)
                saved = time.perf_counter()
        return run

    @property
    def n_epochs(self) -> int:
        """Epochs done so far."""
        return len(self._rows) - 1

    @property
    def trajectory(self) -> pl.DataFrame:
        """A row for each of the scores: step (epochs done), norm_p (|p|, or |W₂ᵀp| for key-query),
        train_loss and train_accuracy (means over the epoch's batches, each before its step; missing
        at 0), and for other documents NAME_loss, NAME_accuracy."""
        return pl.DataFrame(self._rows, infer_schema_length=None)

    def best(self) -> int:
        """The record with the lowest validation loss."""
        return int(np.argmin([float(row["validation_loss"] or 0.0) for row in self._rows]))

    def _is_finished(self) -> bool:
        patience = self._settings.patience
        if self.n_epochs >= self._settings.epochs:
            return True
        return patience is not None and self.n_epochs - self.best() >= patience

    def _train_epoch(self, counts: Counts, progress: Progress) -> Performance:
        """One pass over the documents; the mean of each batch's performance before its step."""
        settings = self._settings
        n = counts.n_documents
        order = np.random.default_rng([settings.seed, self.n_epochs]).permutation(n)
        total_loss = 0.0
        total_correct = 0.0
        for first in range(0, n, settings.batch_size):
            batch = order[first : first + settings.batch_size]
            for parameter in self._parameters.values():
                parameter.grad = torch.zeros_like(parameter)
            before_step = run_batch(settings, self._parameters, counts, batch, learn=True)
            self._optimizer.step()
            total_loss += before_step.loss * len(batch)
            total_correct += before_step.accuracy * len(batch)
            epochs_done = self.n_epochs + (first + len(batch)) / n
            progress(settings.kind, epochs_done / settings.epochs)
        return Performance(total_loss / n, total_correct / n)

    def _record(self, others: Mapping[str, Counts], train: Performance | None) -> None:
        """Measure the model as it is now; the start has no training performance."""
        settings = self._settings
        row: dict[str, float | None] = {
            "step": len(self._rows),
            "norm_p": float(_score_vector(settings.kind, self._parameters).norm()),
            "train_loss": None if train is None else train.loss,
            "train_accuracy": None if train is None else train.accuracy,
        }
        for name, part in others.items():
            documents = np.arange(part.n_documents)
            measured = run_batch(settings, self._parameters, part, documents, learn=False)
            row[f"{name}_loss"] = measured.loss
            row[f"{name}_accuracy"] = measured.accuracy
        score, value = scores_and_values(settings.kind, self._parameters)
        self._rows.append(row)
        self.scores.append(score)
        self.values.append(value)

    def _save(self, path: Path, mark: str) -> None:
        """Write the state of training, from which `_resume` goes on to the same bits."""
        arrays = {name: parameter.cpu().numpy() for name, parameter in self._parameters.items()}
        for name, parameter in self._parameters.items():
            for moment, state in self._optimizer.state[parameter].items():
                arrays[f"{name}.{moment}"] = state.cpu().numpy()
        arrays["scores"] = np.stack(self.scores)
        arrays["values"] = np.stack(self.values)
        disk.save(path, mark, arrays, {"rows": self._rows})

    def _resume(self, path: Path, mark: str) -> bool:
        """Take up what `_save` left, if there is something."""
        saved = disk.load(path, mark)
        if saved is None:
            return False
        arrays, state = saved
        for name, parameter in self._parameters.items():
            parameter.copy_(torch.from_numpy(arrays[name]))
            for key, array in arrays.items():
                if not key.startswith(f"{name}."):
                    continue
                moment = key.partition(".")[2]
                value = torch.from_numpy(array).to(parameter.device)
                if moment == "step":
                    value = value.reshape(())
                self._optimizer.state[parameter][moment] = value
        self._rows = state["rows"]
        self.scores = list(arrays["scores"])
        self.values = list(arrays["values"])
        return True


def _check_parts(counts: Counts, others: Mapping[str, Counts]) -> None:
    """An `InputError` for a part without documents, or of other types or classes."""
    for name, part in {"train": counts, **others}.items():
        if part.n_documents == 0:
            raise InputError(f"the {name} part has no documents: deep models need at least one")
        if part.n_types != counts.n_types or part.classes != counts.classes:
            raise InputError(
                f"the {name} and training parts have different token types or classes; "
                "count both with one vocabulary"
            )


def run_batch(
    settings: DeepSettings, parameters: Parameters, counts: Counts, batch: Ints, *, learn: bool
) -> Performance:
    """Mean loss and accuracy of a batch.

    With `learn`, the gradient of the mean loss is added to each `.grad`; E takes part with the rows
    of a chunk's types only. A document without any known type always has f = 0.
    """
    E = parameters["E"]
    n_outputs = parameters["v"].shape[1]
    f = torch.zeros(len(counts.labels), n_outputs, dtype=E.dtype, device=E.device)
    labels = torch.from_numpy(np.asarray(counts.labels)).to(E.device)
    for documents in chunks(counts, batch, settings):
        chunk = pad(counts, documents, E)
        rows = torch.from_numpy(documents).to(E.device)
        local = _copies(parameters, chunk.types, learn)
        with torch.set_grad_enabled(learn):
            f_chunk = forward(settings, local, chunk)
        f[rows] = f_chunk.detach()
        if learn:
            total = losses(f_chunk, labels[rows]).sum() / len(batch)
            total.backward()  # type: ignore[no-untyped-call]
            _add_gradients(parameters, local, chunk.types)
    rows = torch.from_numpy(batch).to(E.device)
    return _performance(f[rows], labels[rows])


def _copies(parameters: Parameters, types: torch.Tensor, learn: bool) -> Parameters:
    """The parameters apart from their graph, of E only the rows of some types."""
    copies = {
        name: parameter.detach().requires_grad_(learn)
        for name, parameter in parameters.items()
        if name != "E"
    }
    copies["E"] = parameters["E"].detach()[types].requires_grad_(learn)
    return copies


def _add_gradients(parameters: Parameters, local: Parameters, types: torch.Tensor) -> None:
    """Add the gradients of a chunk; that of E belongs to the rows of its types."""
    for name, parameter in local.items():
        total = parameters[name].grad
        assert total is not None and parameter.grad is not None
        if name == "E":
            total.index_add_(0, types, parameter.grad)
        else:
            total.add_(parameter.grad)


def _performance(f: torch.Tensor, labels: torch.Tensor) -> Performance:
    """Mean loss and accuracy of logits; an `InputError` if they are no longer finite."""
    if not bool(torch.isfinite(f).all()):
        raise InputError(
            "training diverged (the logits are no longer finite); use a smaller learning_rate"
        )
    if f.shape[1] == 1:
        predicted = (f[:, 0] > 0).long()
    else:
        predicted = f.argmax(dim=1)
    accuracy = (predicted == labels).double().mean()
    return Performance(float(losses(f, labels).mean()), float(accuracy))


def losses(f: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """ℓ of each document: log(1 + e^{−y f}) with one output, cross-entropy of softmax(f) with K."""
    if f.shape[1] == 1:
        y = torch.where(labels == 1, 1.0, -1.0).to(f)
        return functional.softplus(-y * f[:, 0])
    return functional.cross_entropy(f, labels, reduction="none")


def initial_parameters(n_types: int, n_outputs: int, settings: DeepSettings) -> Parameters:
    """The random start, the same for a seed on every device.

    E (|S|, d), p (d,), v (d, H), and the kind's own matrices, each (d, d).
    """
    d = settings.d
    start = initialise(n_types, d, n_outputs, settings.seed)
    scale = 1.0 if settings.start_std is None else settings.start_std * math.sqrt(d)
    arrays = {"E": start.E * scale, "p": start.p, "v": start.v.reshape(d, n_outputs)}
    rng = np.random.default_rng([settings.seed, d])
    if settings.kind == "key-query":
        for name in ("W1", "W2"):
            arrays[name] = rng.standard_normal((d, d)) * math.sqrt(1 / d)
    elif settings.kind == "mlp":
        arrays["W"] = rng.standard_normal((d, d)) * math.sqrt(2 / d)
    dtype = getattr(torch, settings.dtype)
    device = find_device(settings.device)
    return {name: torch.tensor(array, dtype=dtype, device=device) for name, array in arrays.items()}


def chunks(counts: Counts, documents: Ints, settings: DeepSettings) -> list[Ints]:
    """Split documents, longest first, so that a chunk has few padded entries.

    Documents without any type are left out. B documents of at most m types take B·m numbers, with a
    first layer B·m·d and B·m²; each stays within a budget, unless a single document exceeds it.
    """
    n_types = np.diff(counts.matrix.indptr)[documents].astype(np.int64)
    longest_first = np.argsort(-n_types, kind="stable")[: np.count_nonzero(n_types)]
    is_on_cpu = find_device(settings.device).type == "cpu"
    budget = CPU_BUDGET if is_on_cpu else GPU_BUDGET
    parts = []
    first = 0
    while first < len(longest_first):
        m = int(n_types[longest_first[first]])
        numbers_per_document = m
        if settings.kind in TWO_LAYERS:
            numbers_per_document *= max(settings.d, m)
        size = max(1, budget // numbers_per_document)
        parts.append(documents[longest_first[first : first + size]])
        first += size
    return parts


class Chunk(NamedTuple):
    """B documents side by side, padded to the longest of m types.

    Attributes:
        types: the distinct types among them, shape (U,).
        positions: of each document's types in `types`, shape (B, m), 0 where padded.
        log_counts: log c, shape (B, m), −∞ where padded, so that padding gets no weight.
    """

    types: torch.Tensor
    positions: torch.Tensor
    log_counts: torch.Tensor


def pad(counts: Counts, documents: Ints, like: torch.Tensor) -> Chunk:
    """The documents as a chunk, on the device and in the precision of `like`."""
    matrix = counts.matrix
    starts = matrix.indptr[documents]
    sizes = np.diff(matrix.indptr)[documents]
    columns = np.arange(sizes.max())
    is_filled = columns < sizes[:, None]
    entries = (starts[:, None] + columns)[is_filled]
    types, position_of_entry = np.unique(matrix.indices[entries], return_inverse=True)

    positions = np.zeros(is_filled.shape, np.int64)
    positions[is_filled] = position_of_entry
    log_counts = np.full(is_filled.shape, -np.inf)
    log_counts[is_filled] = np.log(matrix.data[entries])
    return Chunk(
        types=torch.from_numpy(types.astype(np.int64)).to(like.device),
        positions=torch.from_numpy(positions).to(like.device),
        log_counts=torch.from_numpy(log_counts).to(like),
    )


def forward(settings: DeepSettings, parameters: Parameters, chunk: Chunk) -> torch.Tensor:
    """f of B documents, each with at least one type, shape (B, H).

    E holds the rows of the chunk's types only, shape (U, d). What a type's row alone decides is
    computed once per type, not once per document that contains it.
    """
    E = parameters["E"]
    score = (E @ _score_vector(settings.kind, parameters))[:, None]
    if settings.kind == "mlp":
        scores = functional.embedding(chunk.positions, score)[..., 0]
        q = torch.softmax(scores + chunk.log_counts, dim=1)
        pooled = functional.embedding_bag(chunk.positions, E, mode="sum", per_sample_weights=q)
        return torch.relu(pooled @ parameters["W"].T) @ parameters["v"]

    score_and_value = torch.cat([score, E @ parameters["v"]], dim=1)
    read = functional.embedding(chunk.positions, score_and_value)  # (B, m, 1 + H)
    if settings.kind in TWO_LAYERS:
        smoothed = _first_layer(settings, parameters, chunk) @ read
        read = read + smoothed if settings.residual else smoothed
    q = torch.softmax(read[..., 0] + chunk.log_counts, dim=1)
    return torch.einsum("bm,bmh->bh", q, read[..., 1:])


def _first_layer(settings: DeepSettings, parameters: Parameters, chunk: Chunk) -> torch.Tensor:
    """A, the attention of the first layer, shape (B, m, m)."""
    E = parameters["E"]
    X = functional.embedding(chunk.positions, E)  # (B, m, d)
    queries = X
    if settings.kind == "key-query":
        queries = functional.embedding(chunk.positions, E @ parameters["W1"])
    scale = 1 / math.sqrt(settings.d) if settings.scaled else 1.0
    attention = torch.baddbmm(chunk.log_counts[:, None, :], queries, X.transpose(1, 2), alpha=scale)
    return torch.softmax(attention, dim=2)


class ScoresAndValues(NamedTuple):
    """Score E p, or E W₂ᵀp, shape (|S|,), and value E v, shape (|S|, H), in float64."""

    score: Floats
    value: Floats


def scores_and_values(kind: str, parameters: Parameters) -> ScoresAndValues:
    """The score and the value of each token type."""
    E = parameters["E"].detach().double()
    score = E @ _score_vector(kind, parameters).detach().double()
    value = E @ parameters["v"].detach().double()
    return ScoresAndValues(score.cpu().numpy(), value.cpu().numpy())


def _score_vector(kind: str, parameters: Parameters) -> torch.Tensor:
    """The vector that gives an embedding its score: p, or W₂ᵀp for key-query; shape (d,)."""
    if kind == "key-query":
        return parameters["W2"].T @ parameters["p"]
    return parameters["p"]
