"""The experiments: what experiments.toml says about each, and the function that measures it."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from importlib.resources import files

from tokensieve.errors import InputError
from tokensieve.theory.experiments import asked, paper
from tokensieve.theory.experiments.experiment import Experiment, Reading

RUNS = {
    "two-layer": paper.two_layer,
    "synthetic": paper.synthetic,
    "one-layer": paper.one_layer,
    "key-query": paper.key_query,
    "mlp": paper.mlp,
    "multi-class": paper.multi_class,
    "frozen": asked.frozen,
    "one-step-only": asked.one_step_only,
    "diagnosis": asked.diagnosis,
    "dimension": asked.dimension,
    "beyond": asked.beyond,
}
MIN_SIMILARITY = 0.4  # of a mistyped name to the one suggested for it


def all_experiments() -> dict[str, Experiment]:
    """Every experiment by its name, in the paper's order."""
    text = files("tokensieve.theory.experiments").joinpath("experiments.toml").read_text("utf-8")
    experiments = {}
    for name, described in tomllib.loads(text).items():
        readings = tuple(Reading(**reading) for reading in described.pop("readings", ()))
        experiments[name] = Experiment(
            id=name,
            run=RUNS[name],
            readings=readings,
            needs=tuple(described.pop("needs", ())),
            notes=tuple(described.pop("notes", ())),
            **described,
        )
    return experiments


def select_experiments(names: Sequence[str] = (), readings: Sequence[str] = ()) -> list[Experiment]:
    """The named experiments in the paper's order; all if none is named.

    An `InputError` for an unknown name, or a reading that none of them has.
    """
    known = all_experiments()
    for name in names:
        if name not in known:
            similar = difflib.get_close_matches(name.lower(), known, 1, MIN_SIMILARITY)
            suggestion = f"; did you mean {similar[0]!r}?" if similar else ""
            available = f"available: {', '.join(known)}"
            raise InputError(f"there is no experiment {name!r}{suggestion} ({available})")
    chosen = [experiment for name, experiment in known.items() if not names or name in names]

    known_readings = {"all": None}
    for experiment in chosen:
        known_readings |= dict.fromkeys(reading.name for reading in experiment.readings)
    for name in readings:
        if name not in known_readings:
            available = f"available: {', '.join(known_readings)}"
            raise InputError(
                f"there is no interpretation {name!r} of these experiments ({available})"
            )
    return chosen
