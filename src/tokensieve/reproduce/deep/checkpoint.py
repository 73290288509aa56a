"""A training run on disk after each epoch: one safetensors file, with everything that is no tensor as JSON in its header."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.files import write_all
from tokensieve.reproduce.deep.models import Parameters
from tokensieve.reproduce.deep.settings import DeepSettings
from tokensieve.text.counts import Counts

FORMAT = "tokensieve.reproduce.deep 1"


@dataclass
class State:
    """Where training stands.

    Attributes:
        parameters: the current weights, trained in place.
        optimizer: the PyTorch optimizer over them, in the order of `parameters`.
        best: the weights of `best_epoch`.
        best_epoch: see `DeepResult`.
        trajectory: see `DeepResult`; the last entry is the last epoch done.
        seconds: spent so far.
    """

    parameters: Parameters
    optimizer: torch.optim.Optimizer
    best: Parameters
    best_epoch: int = 0
    trajectory: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def identity(settings: DeepSettings, counts: Counts, validation: Counts | None) -> dict[str, str]:
    """What must agree for training to go on from a checkpoint: all settings, the kind of device, and the data."""
    what = {name: str(value) for name, value in asdict(settings).items()}
    parts = [fingerprint(part) for part in (counts, validation) if part is not None]
    return what | {"device": settings.where().type, "documents": " ".join(parts)}


def write(path: Path, state: State, what: dict[str, str]) -> None:
    """Write the state, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    header = {
        "format": FORMAT,
        "identity": json.dumps(what),
        "trajectory": json.dumps(state.trajectory),
        "best_epoch": str(state.best_epoch),
        "seconds": str(state.seconds),
    }
    moments = state.optimizer.state_dict()["state"]
    tensors = {f"now.{name}": x for name, x in state.parameters.items()}
    tensors |= {f"best.{name}": x for name, x in state.best.items()}
    tensors |= {f"optimizer.{i}.{name}": x for i, found in moments.items() for name, x in found.items()}
    write_all(path.parent, {path.name: lambda target: save_file(tensors, target, header)})


def read_into(path: Path, state: State, what: dict[str, str]) -> None:
    """Take up the state that a checkpoint holds, if there is one.

    Raises:
        InputError: it is damaged, or of other settings or data.
    """
    if not path.exists():
        return
    try:
        with safe_open(path, framework="pt", device=str(next(iter(state.parameters.values())).device)) as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise InputError(f"{path} is no checkpoint of a deep model: name another file")
            _check(path, json.loads(header["identity"]), what)
            _fill(state, header, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise InputError(f"{path} cannot be read as a checkpoint ({error}): delete it, or name another file") from None


def _check(path: Path, found: dict[str, str], what: dict[str, str]) -> None:
    for name, value in what.items():
        if found.get(name) != value:
            other = f"{name} {found.get(name)}, not {value}" if name != "documents" else "other documents"
            raise InputError(f"{path} is a checkpoint of another run ({other}): delete it, or name another file")


def _fill(state: State, header: dict[str, str], tensors: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name in state.parameters:
            state.parameters[name].copy_(tensors[f"now.{name}"])
            state.best[name].copy_(tensors[f"best.{name}"])
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, x in tensors.items():
        owner, _, rest = name.partition(".")
        if owner == "optimizer":
            position, _, moment = rest.partition(".")
            moments.setdefault(int(position), {})[moment] = x
    state.optimizer.load_state_dict({**state.optimizer.state_dict(), "state": moments})
    state.trajectory = json.loads(header["trajectory"])
    state.best_epoch, state.seconds = int(header["best_epoch"]), float(header["seconds"])
