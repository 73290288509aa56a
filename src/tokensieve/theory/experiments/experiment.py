"""An experiment: its claim, its criterion, its settings, and what one run of it measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tokensieve.theory.experiments.bench import Bench, Values
from tokensieve.theory.experiments.measures import Measurement

DEFAULT = "default"  # the reading of the paper that an experiment takes unless another is named
# When the criteria and readings were written down: 0.1's figures for seed 0 were known, no others.
FIXED = "2026-11-21"


@dataclass(frozen=True)
class SeedRun:
    """What one run of an experiment measured, under one reading with one seed.

    Attributes:
        measurements: the figures that decide the verdict and those reported beside them; every seed
            has the same names.
        tables: by name; "bins…" and "tokens…" where bins and token types are measured.
        accuracy: test accuracies, at the lowest validation loss and at the end of training.
        seed, settings: what was run.
        seconds: wall time.
        megabytes: the largest memory that its process had held by then.
        problem: why it failed; empty where it did not.
    """

    measurements: tuple[Measurement, ...]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    accuracy: tuple[Measurement, ...] = ()
    seed: int = 0
    settings: Values = field(default_factory=dict)
    seconds: float = 0.0
    megabytes: float = 0.0
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether every measurement lies within its bounds; a run that failed does not pass."""
        return not self.problem and all(figure.passed for figure in self.measurements)


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open.

    Attributes:
        name: as `--reading` takes it.
        why: what it changes.
        settings: the settings that it changes.
        later: whether it was added after figures of the default reading had been seen.
    """

    name: str
    why: str
    settings: Values
    later: bool = False

    @property
    def note(self) -> str:
        """What this reading changes, and whether it was defined before the runs."""
        if self.later:
            return f"{self.why} (added after the default's figures had been seen)"
        return self.why


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, as experiments.toml describes it.

    Attributes:
        id: its name on the command line.
        title: where it is in the paper.
        claim: what the paper says.
        paper: the paper's figures, in a sentence.
        sees: what we see, in a sentence; {i} is the i-th figure that is judged or prominent.
        criterion: what "reproduced" means, fixed on `FIXED`.
        settings: by scale.
        seconds: by scale, about how long one seed takes on one core.
        run: measures.
        needs: the data sets it reads.
        torch: whether it needs PyTorch.
        readings: other ways to read what the paper leaves open.
        notes: choices of ours, and what was tried.
    """

    id: str
    title: str
    claim: str
    paper: str
    sees: str
    criterion: str
    settings: Mapping[str, Values]
    seconds: Mapping[str, float]
    run: Callable[[Bench], SeedRun]
    needs: tuple[str, ...] = ()
    torch: bool = False
    readings: tuple[Reading, ...] = ()
    notes: tuple[str, ...] = ()

    def reading(self, name: str) -> Reading:
        """The reading of a name; the default one changes nothing."""
        for reading in self.readings:
            if reading.name == name:
                return reading
        return Reading(name, "", {})

    @property
    def paper_shows(self) -> str:
        """The paper's figures where it gives some, else its claim."""
        if self.paper.endswith(("without numbers", "no figures")):
            return self.claim
        return self.paper

    def settings_of(self, scale: str, reading: str) -> dict[str, Any]:
        """The settings at a scale, as a reading changes them."""
        return {**self.settings[scale], **self.reading(reading).settings}
