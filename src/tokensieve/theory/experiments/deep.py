"""Deeper relatives of the model, in PyTorch: two layers of attention, key-query matrices, an MLP layer.

None of them sees word order, so a document is its m distinct types i with counts c_i. Equal tokens have equal queries,
keys and values: a softmax over tokens is a softmax over types with log c_i added to the logits, and the T × T attention of
the first layer is m × m. This is exact, not an approximation.

The second layer, `<cls>` attention, reads a score and a value of each type (Wu, Shevchenko, Oymak, Mondelli, NeurIPS 2025):

    f = Σ_i q_i ω_i          q = softmax_i(υ_i + log c_i)          υ_i, ω_i ∈ R (or R^K with K outputs)

    one-layer   υ_i = u_i,   ω_i = w_i,                               u_s = E_sᵀp,  w_s = E_sᵀv
    two-layer   υ_i = pᵀz_i = Σ_j A_ij u_j,   ω_i = z_iᵀv = Σ_j A_ij w_j
                z_i = Σ_j A_ij E_j,   A_ij = softmax_j(E_iᵀE_j + log c_j)
    key-query   the same with A_ij = softmax_j(E_iᵀW₁E_j + log c_j) and u_s = pᵀW₂E_s
    mlp         f = vᵀ ReLU(W Σ_i q_i E_i),   q = softmax_i(u_i + log c_i),   W ∈ R^{d×d}

A second layer that is linear in z needs z nowhere: A smooths the two numbers of each type, and that is all. A residual
connection (z_i + E_i) adds a type's own two numbers to the smoothed ones.

What our sources of the paper leave open, and what is taken here unless the settings differ: no 1/√d in the softmax, no
residual connection and no bias anywhere, because the formulas that they give have none; E, p ~ N(0, I/d) and v of unit norm
(orthonormal columns) as in the paper's lemma; W₁ and W₂ start with entries N(0, 1/d), W with entries N(0, 2/d).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
CPU_BUDGET = (
    2**19
)  # numbers in a chunk's largest array: a core's cache holds a few of them, and little is padded
SAVE_SECONDS = 60.0
_Parameters = dict[str, torch.Tensor]
_Chunk = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class DeepSettings:
    """Which model, and how it is trained; all parameters are trained."""

    kind: str  # one of `KINDS`; see the formulas above
    d: int = (
        128  # embedding dimension, ≥ 1 (≥ K with K classes); also the hidden width of the MLP layer
    )
    epochs: int = 10  # passes over the training documents, at most
    batch_size: int = 32  # documents per step
    learning_rate: float = 1e-2  # step size, the same in all epochs
    optimizer: str = "adam"  # with all moments decaying at every step, β = 0.9, 0.999; or "sgd" (plain gradient descent)
    start_std: float | None = (
        None  # the standard deviation of E's entries at the start; None is the paper's 1/√d
    )
    seed: int = 0  # of the random start and of the order of documents
    patience: int | None = (
        None  # epochs without a lower validation loss before training stops; None trains all epochs
    )
    device: str = "auto"  # a GPU where PyTorch finds one, else the CPU; or a PyTorch device such as "cpu" or "cuda:1"
    dtype: str = "float32"  # "float32" or "float64"
    scaled: bool = False  # divide the first layer's logits by √d, as transformers do
    residual: bool = False  # add a token's own embedding to what the first layer returns


class DeepTraining:
    """A trained deep model with its history, named as in `tokensieve.theory.embeddings.Training`: `scores` (E p, or E W₂ᵀp for
    key-query) at the start and after each epoch, R arrays of shape (|S|,), and `values` (E v), shape (|S|, H)."""

    def __init__(self, counts: Counts, settings: DeepSettings) -> None:
        self._settings = settings
        self._parameters = _start(
            counts.n_types, 1 if counts.n_classes == 2 else counts.n_classes, settings
        )
        make = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
        self._optimizer = make(
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
        """Train a deep model on all its parameters and read its score and value of each token type after every epoch.

        Each epoch goes through the documents once, in batches and in a new random order; `others` are measured after it, and the
        loss of "validation" stops training with `patience`. The same seed gives the same numbers up to rounding, which depends on
        the device and PyTorch's threads. The checkpoint, a safetensors file, is written about once a minute, and training continues
        from it if it exists. An `InputError` without documents, for documents of other types or classes, if training diverges, or
        for a checkpoint that is damaged, cannot be written or is of another run.
        """
        saved, others = time.perf_counter(), others or {}
        for name, part in {"train": counts, **others}.items():
            if part.n_documents == 0:
                raise InputError(f"the {name} part has no documents: deep models need at least one")
            if part.n_types != counts.n_types or part.classes != counts.classes:
                raise InputError(
                    f"the {name} and training parts have different token types or classes; count both with one vocabulary"
                )
        mark = disk.fingerprint(
            settings, find_device(settings.device).type, counts, *others.items()
        )
        run = cls(counts, settings)
        if checkpoint is None or not run._resume(checkpoint, mark):
            run._record(others, None, None)
        while (done := len(run._rows) - 1) < settings.epochs:
            if settings.patience is not None and done - run.best() >= settings.patience:
                break
            # one pass over the documents; loss and accuracy of each batch before its step
            n = counts.n_documents
            order = np.random.default_rng([settings.seed, done]).permutation(n)
            loss = correct = 0.0
            for first in range(0, n, settings.batch_size):
                batch = order[first : first + settings.batch_size]
                for x in run._parameters.values():
                    x.grad = torch.zeros_like(x)
                found = _run_batch(settings, run._parameters, counts, batch, True)
                run._optimizer.step()
                loss, correct = loss + found[0] * len(batch), correct + found[1] * len(batch)
                progress(settings.kind, (done + (first + len(batch)) / n) / settings.epochs)
            run._record(others, loss / n, correct / n)
            if checkpoint is not None and time.perf_counter() - saved >= SAVE_SECONDS:
                run._save(checkpoint, mark)
                saved = time.perf_counter()
        return run

    @property
    def trajectory(self) -> pl.DataFrame:
        """A row for each of the scores: step (epochs done), norm_p (|p|, or |W₂ᵀp| for key-query), train_loss and train_accuracy
        (means over the epoch's batches, each before its step; missing at 0), and for other documents NAME_loss, NAME_accuracy."""
        return pl.DataFrame(self._rows, infer_schema_length=None)

    def best(self) -> int:
        """The record with the lowest validation loss."""
        return int(np.argmin([float(row["validation_loss"] or 0.0) for row in self._rows]))

    def _record(
        self, others: Mapping[str, Counts], loss: float | None, accuracy: float | None
    ) -> None:
        """Measure the model as it is now."""
        norm = float(_score_vector(self._settings.kind, self._parameters).norm())
        row = {
            "step": len(self._rows),
            "norm_p": norm,
            "train_loss": loss,
            "train_accuracy": accuracy,
        }
        for name, part in others.items():
            found = _run_batch(
                self._settings, self._parameters, part, np.arange(part.n_documents), False
            )
            row |= {f"{name}_loss": found[0], f"{name}_accuracy": found[1]}
        score, value = _tables(self._settings.kind, self._parameters)
        self._rows.append(row)
        self.scores.append(score)
        self.values.append(value)

    def _save(self, path: Path, mark: str) -> None:
        arrays = {name: x.cpu().numpy() for name, x in self._parameters.items()}
        for name, x in self._parameters.items():
            arrays |= {
                f"{name}.{moment}": y.cpu().numpy()
                for moment, y in self._optimizer.state[x].items()
            }
        arrays |= {"scores": np.stack(self.scores), "values": np.stack(self.values)}
        disk.save(path, mark, arrays, {"rows": self._rows})

    def _resume(self, path: Path, mark: str) -> bool:
        """Take up what `_save` left, if there is something."""
        found = disk.load(path, mark)
        if found is None:
            return False
        arrays, rest = found
        for name, x in self._parameters.items():
            x.copy_(torch.from_numpy(arrays[name]))
            for moment in (key.partition(".")[2] for key in arrays if key.startswith(f"{name}.")):
                y = torch.from_numpy(arrays[f"{name}.{moment}"]).to(x.device)
                self._optimizer.state[x][moment] = y.reshape(()) if moment == "step" else y
        self._rows, self.scores, self.values = (
            rest["rows"],
            list(arrays["scores"]),
            list(arrays["values"]),
        )
        return True


def _run_batch(
    settings: DeepSettings, parameters: _Parameters, counts: Counts, batch: Ints, learn: bool
) -> tuple[float, float]:
    """Mean loss and accuracy of a batch; with `learn`, the gradient of the mean loss is added to each `.grad`. E takes part with
    the rows of a chunk's types only. A document without any known type always has f = 0."""
    E, outputs = parameters["E"], parameters["v"].shape[1]
    f = torch.zeros(len(counts.labels), outputs, dtype=E.dtype, device=E.device)
    labels = torch.from_numpy(np.asarray(counts.labels)).to(E.device)
    for documents in _chunks(counts, batch, settings):
        chunk, where = _pad(counts, documents, E), torch.from_numpy(documents).to(E.device)
        types = chunk[0]
        own = {
            name: x.detach().requires_grad_(learn) for name, x in parameters.items() if name != "E"
        }
        own["E"] = E.detach()[types].requires_grad_(learn)
        with torch.set_grad_enabled(learn):
            found = _logits(settings, own, chunk)
        f[where] = found.detach()
        if learn:
            (_losses(found, labels[where]).sum() / len(batch)).backward()  # type: ignore[no-untyped-call]
            for name, x in own.items():
                into = parameters[name].grad
                assert into is not None and x.grad is not None
                _ = into.index_add_(0, types, x.grad) if name == "E" else into.add_(x.grad)
    where = torch.from_numpy(batch).to(E.device)
    f, labels = f[where], labels[where]
    if not bool(torch.isfinite(f).all()):
        raise InputError(
            "training diverged (the logits are no longer finite); use a smaller learning_rate"
        )
    predicted = (f[:, 0] > 0).long() if outputs == 1 else f.argmax(dim=1)
    return float(_losses(f, labels).mean()), float((predicted == labels).double().mean())


def _losses(f: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """ℓ of each document: log(1 + e^{−y f}) with one output, cross-entropy of softmax(f) with K."""
    if f.shape[1] == 1:
        return functional.softplus(-torch.where(labels == 1, 1.0, -1.0).to(f) * f[:, 0])
    return functional.cross_entropy(f, labels, reduction="none")


def _start(n_types: int, outputs: int, settings: DeepSettings) -> _Parameters:
    """The random start, the same for a seed on every device: E (|S|, d), p (d,), v (d, H), and the kind's own matrices."""
    d = settings.d
    E, p, v = initialise(n_types, d, outputs, settings.seed)
    scale = 1.0 if settings.start_std is None else settings.start_std * math.sqrt(d)
    arrays = {"E": E * scale, "p": p, "v": v.reshape(d, outputs)}
    rng = np.random.default_rng([settings.seed, d])
    for name in {"key-query": ("W1", "W2"), "mlp": ("W",)}.get(settings.kind, ()):
        arrays[name] = rng.standard_normal((d, d)) * math.sqrt((2 if name == "W" else 1) / d)
    precision = getattr(torch, settings.dtype)
    return {
        name: torch.tensor(x, dtype=precision, device=find_device(settings.device))
        for name, x in arrays.items()
    }


def _chunks(counts: Counts, documents: Ints, settings: DeepSettings) -> list[Ints]:
    """Split documents, longest first, so that a chunk has few padded entries; documents without any type are left out. B documents
    of at most m types take B·m numbers, with a first layer B·m·d and B·m²; each stays within a budget, unless a single document
    exceeds it."""
    sizes = np.diff(counts.matrix.indptr)[documents].astype(np.int64)
    order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    budget = CPU_BUDGET if find_device(settings.device).type == "cpu" else 2**25
    found, first = [], 0
    while first < len(order):
        m = int(sizes[order[first]])
        many = max(
            1,
            budget
            // (m * (max(settings.d, m) if settings.kind in ("two-layer", "key-query") else 1)),
        )
        found.append(documents[order[first : first + many]])
        first += many
    return found


def _pad(counts: Counts, documents: Ints, like: torch.Tensor) -> _Chunk:
    """Documents side by side, padded to the longest, on the device and in the precision of `like`: the distinct types among them,
    shape (U,); each document's positions in those, shape (B, m), 0 where padded; and log c, shape (B, m), −∞ where padded, so that
    padding gets no weight in any softmax."""
    m = counts.matrix
    starts, sizes = m.indptr[documents], np.diff(m.indptr)[documents]
    inside = np.arange(sizes.max()) < sizes[:, None]
    entries = (starts[:, None] + np.arange(sizes.max()))[inside]
    types, places = np.unique(m.indices[entries], return_inverse=True)
    ids, log_counts = np.zeros(inside.shape, np.int64), np.full(inside.shape, -np.inf)
    ids[inside], log_counts[inside] = places, np.log(m.data[entries])
    types_there = torch.from_numpy(types.astype(np.int64)).to(like.device)
    return types_there, torch.from_numpy(ids).to(like.device), torch.from_numpy(log_counts).to(like)


def _logits(settings: DeepSettings, parameters: _Parameters, chunk: _Chunk) -> torch.Tensor:
    """f of B documents, each with at least one type, shape (B, H); E holds the rows of the chunk's types only, shape (U, d)."""
    kind, E = settings.kind, parameters["E"]
    _, ids, log_counts = chunk
    # what a type's row alone decides is computed once per type, not once per document that contains it
    score = (E @ _score_vector(kind, parameters))[:, None]
    if kind == "mlp":
        q = torch.softmax(functional.embedding(ids, score)[..., 0] + log_counts, dim=1)
        pooled = functional.embedding_bag(ids, E, mode="sum", per_sample_weights=q)
        return torch.relu(pooled @ parameters["W"].T) @ parameters["v"]
    read = functional.embedding(
        ids, torch.cat([score, E @ parameters["v"]], dim=1)
    )  # (B, m, 1 + H)
    if kind in ("two-layer", "key-query"):
        X = functional.embedding(ids, E)  # (B, m, d)
        left = functional.embedding(ids, E @ parameters["W1"]) if kind == "key-query" else X
        shrink = 1 / math.sqrt(settings.d) if settings.scaled else 1.0
        A = torch.softmax(
            torch.baddbmm(log_counts[:, None, :], left, X.transpose(1, 2), alpha=shrink), dim=2
        )
        read = read + A @ read if settings.residual else A @ read
    q = torch.softmax(read[..., 0] + log_counts, dim=1)
    return torch.einsum("bm,bmh->bh", q, read[..., 1:])


def _tables(kind: str, parameters: _Parameters) -> tuple[Floats, Floats]:
    """Score E p, or E W₂ᵀp, shape (|S|,), and value E v, shape (|S|, H); in float64."""
    E = parameters["E"].detach().double()
    score = E @ _score_vector(kind, parameters).detach().double()
    return score.cpu().numpy(), (E @ parameters["v"].detach().double()).cpu().numpy()


def _score_vector(kind: str, parameters: _Parameters) -> torch.Tensor:
    """The vector that gives an embedding its score: p, or W₂ᵀp for key-query; shape (d,)."""
    p = parameters["p"]
    return parameters["W2"].T @ p if kind == "key-query" else p
