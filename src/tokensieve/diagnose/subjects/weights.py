"""The weights of a model, and the device that they are on."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError


def find_device(name: str) -> Any:
    """The PyTorch device of this name; "auto" is a GPU if there is one.

    Raises:
        InputError: PyTorch does not know or cannot reach it, or it computes nothing ("meta").
    """
    import torch

    wanted = name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(wanted)
        reached = device.type in ("cpu", "cuda") and torch.empty(0, device=device) is not None
    except (RuntimeError, AssertionError, NotImplementedError):  # a build without CUDA asserts
        reached = False
    if not reached:
        raise InputError(f"device {name!r} is not there: choose auto, cpu or cuda")
    return device


def transformers_library() -> Any:
    """The module `transformers`.

    Raises:
        InputError: it or PyTorch is not installed.
    """
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError:
        raise InputError(
            "diagnosing a transformer needs the libraries transformers and torch: pip install 'tokensieve[transformers]'"
        ) from None
    return transformers


@contextmanager
def quietly() -> Iterator[Any]:
    """The library without its progress bars and advice; what matters is checked here."""
    transformers = transformers_library()
    talk = transformers.utils.logging
    level, bars = talk.get_verbosity(), talk.is_progress_bar_enabled()
    talk.set_verbosity(logging.CRITICAL)
    hub = [logging.getLogger(name) for name in ("huggingface_hub", "httpx", "urllib3")]
    before = [(log, log.level) for log in hub]
    for log in hub:
        log.setLevel(logging.CRITICAL)
    talk.disable_progress_bar()
    try:
        yield transformers
    finally:
        talk.set_verbosity(level)
        for log, loudness in before:
            log.setLevel(loudness)
        if bars:
            talk.enable_progress_bar()


def check_weights(model: Any, source: str) -> None:
    """Check that every weight is a finite number.

    Raises:
        InputError: one is not; names the parameter.
    """
    for name, weights in model.named_parameters():
        bad = int((~weights.isfinite()).sum())
        if bad:
            raise InputError(
                f"{source!r}: {bad:,} of {weights.numel():,} weights in {name} are not finite numbers: the model is broken, "
                "use an earlier checkpoint"
            )


def untrained_twin(model: Any, seed: int) -> Any:
    """A model of the same class and configuration with freshly drawn weights, on the same device."""
    import torch

    if hasattr(model, "untrained"):
        return model.untrained(seed)
    with torch.random.fork_rng(), quietly():
        torch.manual_seed(seed)
        config = copy.deepcopy(model.config)
        config._attn_implementation = "eager"
        twin = type(model)(config).to(torch.float32)
    return twin.to(next(model.parameters()).device)


def weights_digest(model: Any) -> str:
    """Fingerprint of names, types, shapes and bytes of all weights."""
    import torch

    state = [(name, x) for name, x in sorted(model.state_dict().items()) if isinstance(x, torch.Tensor)]
    parts: list[Any] = []
    for name, x in state:
        plain = (x.int_repr() if x.is_quantized else x).detach().cpu().contiguous()
        parts += [name, str(plain.dtype), tuple(plain.shape), plain.flatten().view(torch.uint8).numpy()]
    return fingerprint(*parts)
