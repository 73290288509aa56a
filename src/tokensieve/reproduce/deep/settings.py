"""How a deep model is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from tokensieve.diagnose.device import find_device
from tokensieve.errors import InputError

KINDS = ("one-layer", "two-layer", "key-query", "mlp")
OPTIMIZERS = ("adam", "sgd")
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class DeepSettings:
    """Which model, and how it is trained; all parameters are trained. See `tokensieve.reproduce.deep.models` for the formulas.

    Attributes:
        kind: "one-layer", "two-layer", "key-query" or "mlp".
        d: embedding dimension, ≥ 1 (≥ K with K classes); also the hidden width of the MLP layer.
        epochs: passes over the training documents, at most.
        batch_size: documents per step.
        learning_rate: step size, the same in all epochs.
        optimizer: "adam" (all moments decay at every step, β = 0.9, 0.999) or "sgd" (plain gradient descent).
        seed: of the random start and of the order of documents.
        patience: epochs without a lower validation loss before training stops; None trains all epochs.
        device: "auto" (a GPU where PyTorch finds one, else the CPU), or a PyTorch device such as "cpu", "cuda" or "cuda:1".
        dtype: "float32" or "float64".
        unit_start: E starts with entries N(0, 1), as PyTorch's own embeddings do, instead of N(0, 1/d).
        scaled: divide the first layer's logits by √d, as transformers do.
        residual: add a token's own embedding to what the first layer reads.

    Raises:
        InputError: a value is not one of these, or out of its range.
    """

    kind: str
    d: int = 128
    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 1e-2
    optimizer: str = "adam"
    seed: int = 0
    patience: int | None = None
    device: str = "auto"
    dtype: str = "float32"
    unit_start: bool = False
    scaled: bool = False
    residual: bool = False

    def __post_init__(self) -> None:
        for name, choices in (("kind", KINDS), ("optimizer", OPTIMIZERS), ("dtype", DTYPES)):
            if getattr(self, name) not in choices:
                raise InputError(f"{name} {getattr(self, name)!r} is unknown: choose one of {', '.join(choices)}")
        for name in ("d", "epochs", "batch_size", "learning_rate"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{name} must be a positive number, not {getattr(self, name)!r}")
        self.where()

    def where(self) -> torch.device:
        """The device that `device` stands for on this machine (see `tokensieve.diagnose.device`)."""
        return find_device(self.device)
