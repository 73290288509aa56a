"""One way to a device of PyTorch."""

from __future__ import annotations

import torch

from tokensieve.errors import InputError


def find_device(name: str) -> torch.device:
    """The device of a name; "auto" is a GPU where there is one.

    Raises:
        InputError: PyTorch does not know or cannot reach it, or it computes nothing ("meta").
    """
    wanted = name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(wanted)
        reached = device.type in ("cpu", "cuda") and torch.empty(0, device=device) is not None
    except (RuntimeError, AssertionError, NotImplementedError):  # a build without CUDA asserts
        reached = False
    if not reached:
        raise InputError(f"device {name!r} is not there: choose auto, cpu or cuda")
    return device
