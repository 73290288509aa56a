"""The deep models, on token counts.

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
(orthonormal columns) as in the paper's lemma; W₁ and W₂ start with entries N(0, 1/d) (a start at the identity, where
key-query is two-layer, had a slightly higher validation loss on reviews), W with entries N(0, 2/d).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from tokensieve.model.start import initialise
from tokensieve.reproduce.deep.settings import DeepSettings
from tokensieve.text.counts import Counts, Floats, Ints

Parameters = dict[str, torch.Tensor]
SELF_ATTENTION = ("two-layer", "key-query")
MATRICES: dict[str, tuple[tuple[str, ...], int]] = {
    "key-query": (("W1", "W2"), 1),
    "mlp": (("W",), 2),
}  # the d × d matrices of a kind, and d times the variance of their entries at the start


class Chunk(NamedTuple):
    """Some documents side by side, padded to the length of the longest.

    Attributes:
        types: the distinct types among them, shape (U,).
        ids: positions in `types`, shape (B, m); 0 where padded.
        log_counts: log c, shape (B, m); −∞ where padded, so that padding has no weight in any softmax.
    """

    types: torch.Tensor
    ids: torch.Tensor
    log_counts: torch.Tensor


def start(n_types: int, outputs: int, settings: DeepSettings) -> Parameters:
    """The random start, the same for a seed on every device: E (|S|, d), p (d,), v (d, H), and the kind's own matrices.

    Raises:
        InputError: more outputs than dimensions.
    """
    d = settings.d
    E, p, v = initialise(n_types, d, outputs, settings.seed)
    arrays = {"E": E * math.sqrt(d) if settings.unit_start else E, "p": p, "v": v.reshape(d, outputs)}
    own, variance = MATRICES.get(settings.kind, ((), 0))
    rng = np.random.default_rng([settings.seed, d])
    arrays |= {name: rng.standard_normal((d, d)) * math.sqrt(variance / d) for name in own}
    precision = getattr(torch, settings.dtype)
    return {name: torch.tensor(x, dtype=precision, device=settings.where()) for name, x in arrays.items()}


def pad(counts: Counts, documents: Ints, like: torch.Tensor) -> Chunk:
    """Put documents side by side, on the device and in the precision of `like`; each has at least one type."""
    m = counts.matrix
    starts, sizes = m.indptr[documents], np.diff(m.indptr)[documents]
    inside = np.arange(sizes.max()) < sizes[:, None]
    entries = (starts[:, None] + np.arange(sizes.max()))[inside]
    types, places = np.unique(m.indices[entries], return_inverse=True)
    ids, log_counts = np.zeros(inside.shape, np.int64), np.full(inside.shape, -np.inf)
    ids[inside], log_counts[inside] = places, np.log(m.data[entries])
    return Chunk(
        torch.from_numpy(types.astype(np.int64)).to(like.device),
        torch.from_numpy(ids).to(like.device),
        torch.from_numpy(log_counts).to(like),
    )


def answers(settings: DeepSettings, parameters: Parameters, chunk: Chunk) -> torch.Tensor:
    """f of each document, shape (B, H).

    Args:
        settings: which model, and its `scaled` and `residual`.
        parameters: E holds the rows of `chunk.types` only, shape (U, d).
        chunk: B documents, each with at least one type.
    """
    kind, E = settings.kind, parameters["E"]
    # what a type's row alone decides is computed once per type, not once per document that holds it
    score = (E @ read_vector(kind, parameters))[:, None]
    if kind == "mlp":
        q = torch.softmax(functional.embedding(chunk.ids, score)[..., 0] + chunk.log_counts, dim=1)
        pooled = functional.embedding_bag(chunk.ids, E, mode="sum", per_sample_weights=q)
        return torch.relu(pooled @ parameters["W"].T) @ parameters["v"]
    read = functional.embedding(chunk.ids, torch.cat([score, E @ parameters["v"]], dim=1))  # (B, m, 1 + H)
    if kind in SELF_ATTENTION:
        X = functional.embedding(chunk.ids, E)  # (B, m, d)
        left = functional.embedding(chunk.ids, E @ parameters["W1"]) if kind == "key-query" else X
        shrink = 1 / math.sqrt(settings.d) if settings.scaled else 1.0
        logits = torch.baddbmm(chunk.log_counts[:, None, :], left, X.transpose(1, 2), alpha=shrink)
        smooth = torch.softmax(logits, dim=2) @ read
        read = read + smooth if settings.residual else smooth
    q = torch.softmax(read[..., 0] + chunk.log_counts, dim=1)
    return torch.einsum("bm,bmh->bh", q, read[..., 1:])


def tables(kind: str, parameters: Parameters) -> tuple[Floats, Floats]:
    """Score E p, or E W₂ᵀp, shape (|S|,), and value E v, shape (|S|, H); in float64."""
    E = parameters["E"].detach().double()
    score = E @ read_vector(kind, parameters).detach().double()
    return score.cpu().numpy(), (E @ parameters["v"].detach().double()).cpu().numpy()


def read_vector(kind: str, parameters: Parameters) -> torch.Tensor:
    """The vector that reads a score from an embedding: p, or W₂ᵀp for key-query; shape (d,)."""
    p = parameters["p"]
    return parameters["W2"].T @ p if kind == "key-query" else p
