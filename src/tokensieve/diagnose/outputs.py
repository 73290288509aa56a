"""How a model's M outputs become answers about the data's K classes.

With logits z of the classes in the data's order, the **answer** f is

    SOFTMAX   z_1 − z_0 for two classes (H = 1), z_k − mean_j z_j for K (H = K)
    SIGMOID   the same for two classes, z_k for K: each output is a yes or no of its own (multi-label heads)
    REST      ±z of the one output that is a class, the other class being "not that" (H = 1)
    SINGLE    z of the only output: a reward, a regression, the margin of a linear classifier (H = 1)

in every case larger for the class it is about, and with two classes above zero (SINGLE: above a threshold) for the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from tokensieve.errors import InputError
from tokensieve.text.counts import Floats


class Kind(StrEnum):
    """How logits become answers (module formula)."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"
    REST = "rest"
    SINGLE = "single"


@dataclass(frozen=True)
class Outputs:
    """Which output is which class, and how the answers come of them.

    Attributes:
        order: output of each class, shape (K,); REST and SINGLE: the one output.
        width: M, the model's outputs.
        classes: K.
        kind: see the module's formula.
        sign: −1 where the output of REST is about the first class.
    """

    order: tuple[int, ...]
    width: int
    classes: int
    kind: Kind = Kind.SOFTMAX
    sign: int = 1

    @property
    def heads(self) -> int:
        """H."""
        return 1 if self.classes == 2 else self.classes

    def answers(self, z: Any) -> Any:
        """Logits, shape (n, M), NumPy or PyTorch → answers, shape (n, H)."""
        if self.kind in (Kind.REST, Kind.SINGLE):
            return self.sign * z[:, list(self.order[:1])]
        z = z[:, list(self.order)]
        if self.classes == 2:
            return z[:, 1:] - z[:, :1]
        return z if self.kind is Kind.SIGMOID else z - z.mean(axis=1, keepdims=True)

    def check(self, logits: Floats, name: str) -> None:
        """Whether the model gives what its configuration promises.

        Raises:
            InputError: another number of outputs.
        """
        if logits.ndim != 2 or logits.shape[1] != self.width:
            raise InputError(
                f"{name} gives outputs of shape {logits.shape[1:]}, its configuration names {self.width}: it is no "
                "classifier of whole texts"
            )


def log_odds(p: Floats) -> Floats:
    """Probabilities, shape (n, M) → logits up to a constant: log p, held above log 1e-12."""
    return np.log(np.maximum(p, 1e-12))
