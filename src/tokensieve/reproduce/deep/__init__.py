"""Deeper relatives of the model, in PyTorch: two layers of attention, key-query matrices, an MLP layer.

    from tokensieve.reproduce.deep import DeepSettings, fit_deep

Raises:
    InputError: on import, where PyTorch is not installed (`pip install tokensieve[torch]`).
"""

from __future__ import annotations

from tokensieve.errors import InputError

try:
    import torch  # noqa: F401
except ImportError as error:
    raise InputError(f"the deep models need PyTorch ({error}): pip install tokensieve[torch]") from None

from tokensieve.reproduce.deep.settings import KINDS, DeepSettings
from tokensieve.reproduce.deep.training import DeepTraining, fit_deep

__all__ = ["KINDS", "DeepSettings", "DeepTraining", "fit_deep"]
