"""The device of PyTorch that a name stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokensieve.errors import InputError

if TYPE_CHECKING:
    import torch


def find_device(name: str) -> torch.device:
    """Return the PyTorch device of this name; "auto" is a GPU if there is one.

    Raises:
        InputError: the device cannot be reached, or computes nothing ("meta").
    """
    import torch

    place = name
    if name == "auto":
        place = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(place)
        is_reached = device.type in ("cpu", "cuda") and torch.empty(0, device=device) is not None
    except (RuntimeError, AssertionError, NotImplementedError):  # a build without CUDA asserts
        is_reached = False
    if not is_reached:
        raise InputError(f"device {name!r} is not available; choose auto, cpu, cuda or cuda:1")
    return device
