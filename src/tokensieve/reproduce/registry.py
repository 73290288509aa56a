"""The experiments, in the order of the paper."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from tokensieve.errors import InputError
from tokensieve.reproduce import (
    beyond,
    diagnosis,
    dimension,
    frozen,
    key_query,
    mlp,
    multi_class,
    one_layer,
    one_step_only,
    synthetic,
    two_layer,
)
from tokensieve.reproduce.result import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.id: module.EXPERIMENT
    for module in (
        synthetic, one_layer, two_layer, key_query, mlp, multi_class, frozen, one_step_only, diagnosis, dimension, beyond,
    )
}  # fmt: skip


def select(names: Sequence[str]) -> list[Experiment]:
    """The named experiments in the registry's order, or all where none is named.

    Raises:
        InputError: there is no such experiment; the nearest name is given.
    """
    for name in names:
        if name not in EXPERIMENTS:
            near = difflib.get_close_matches(name.lower(), EXPERIMENTS, 1, 0.4)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"there is no experiment {name!r}: {meant}(there are: {', '.join(EXPERIMENTS)})")
    return [experiment for id, experiment in EXPERIMENTS.items() if not names or id in names]


def check_readings(experiments: Sequence[Experiment], names: Sequence[str]) -> None:
    """
    Raises:
        InputError: none of the experiments has a reading of this name; those that they have are given.
    """
    known = {reading.name: None for experiment in experiments for reading in experiment.readings}
    for name in names:
        if name != "all" and name not in known:
            raise InputError(f"there is no reading {name!r} of these experiments: (there are: all, {', '.join(known)})")
