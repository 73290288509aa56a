"""The library `transformers`, and what is done to any of its models: check, copy untrained."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tokensieve.errors import InputError

if TYPE_CHECKING:
    import torch


def transformers_library() -> ModuleType:
    """The module `transformers`; an InputError if it or PyTorch is not installed."""
    try:
        import torch  # noqa: F401  (transformers imports without it, and then loads nothing)
        import transformers
    except ImportError:
        raise InputError(
            "diagnosing a transformer needs the libraries transformers and torch: "
            "pip install 'tokensieve[transformers]'"
        ) from None
    return transformers


@contextmanager
def quiet_transformers() -> Iterator[ModuleType]:
    """The library without its progress bars and advice; what matters is checked here."""
    transformers = transformers_library()
    library_logging = transformers.utils.logging
    level = logging.root.manager.disable
    had_bars = library_logging.is_progress_bar_enabled()
    logging.disable(logging.CRITICAL)
    library_logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.disable(level)
        if had_bars:
            library_logging.enable_progress_bar()


def check_weights(model: torch.nn.Module, source: str) -> None:
    """Raise an InputError that names the first parameter with a number that is not finite."""
    for name, weights in model.named_parameters():
        n_bad = int((~weights.isfinite()).sum())
        if n_bad:
            raise InputError(
                f"{source!r}: {n_bad:,} of {weights.numel():,} weights in {name} are not finite "
                "numbers, so the model is broken; use an earlier checkpoint"
            )


def untrained_twin(model: Any, seed: int) -> Any:
    """A model of the same class and configuration with fresh weights, on the same device."""
    import torch

    if hasattr(model, "untrained"):
        return model.untrained(seed)
    with torch.random.fork_rng(), quiet_transformers():
        torch.manual_seed(seed)
        config = copy.deepcopy(model.config)
        config._attn_implementation = "eager"
        twin = type(model)(config).to(torch.float32)
    return twin.to(next(model.parameters()).device)
