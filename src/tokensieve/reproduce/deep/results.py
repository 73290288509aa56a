"""What training a deep model gave."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tokensieve.reproduce.deep.settings import DeepSettings
from tokensieve.text.counts import Floats


@dataclass(frozen=True)
class DeepResult:
    """A trained deep model, read per token type. All figures are of the weights of `best_epoch`.

    Attributes:
        settings: how it was trained.
        score: E p, or E W₂ᵀp for key-query, shape (|S|,).
        value: E v, shape (|S|,), or (|S|, K) for K > 2 classes.
        loss: mean loss on "train", and on "validation" and "test" where they were given.
        accuracy: share of documents answered right, the same keys. Two classes: class 1 where f > 0.
        trajectory: one entry per epoch from 0 (the start): "epoch", "train_loss" (mean over the epoch's steps, each before
            its step; absent at 0), "validation_loss" and "validation_accuracy" (where given), "score_vector_norm" (|p|, or
            |W₂ᵀp| for key-query).
        best_epoch: the epoch with the lowest validation loss; without validation documents the last.
        seconds: of training and evaluation, those before an interruption included.
        device: what it ran on, "cpu" or "cuda".
    """

    settings: DeepSettings
    score: Floats
    value: Floats
    loss: dict[str, float]
    accuracy: dict[str, float]
    trajectory: tuple[dict[str, float], ...]
    best_epoch: int
    seconds: float
    device: str

    def to_dict(self) -> dict[str, Any]:
        """Everything but the scores and values, ready for JSON."""
        names = ("loss", "accuracy", "best_epoch", "seconds", "device")
        figures = {name: getattr(self, name) for name in names}
        return {"settings": asdict(self.settings), **figures, "trajectory": list(self.trajectory)}
