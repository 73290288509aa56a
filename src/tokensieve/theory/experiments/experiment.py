"""The definition of an experiment, the list of experiments, and the settings of a reproduction."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tokensieve.errors import InputError
from tokensieve.options import option

if TYPE_CHECKING:
    from tokensieve.theory.experiments.bench import Bench
    from tokensieve.theory.experiments.result import SeedRun

Values = Mapping[str, Any]  # settings by name, as in experiments.toml
DEFAULT = "default"  # the reading of the paper that an experiment takes unless another is named
FIXED = "2026-11-21"  # when the criteria and readings were written down: 0.1's figures for seed 0 were known, no others


@dataclass(frozen=True)
class ReproduceSettings:
    """Runs.

    How the paper's experiments are run. An `InputError` for a value out of its range, or a data folder that does not exist.
    """

    data: Path | None = option(
        None,
        "Folder of imdb_train.parquet, imdb_test.parquet and yelp.parquet.",
        metavar="FOLDER",
        default_text="TOKENSIEVE_DATA",
    )
    scale: Literal["quick", "paper"] = option(
        "quick", "quick takes minutes; paper takes hours, with the paper's sizes."
    )
    seed: int = option(0, "The first seed.", low=0)
    seeds: int | None = option(
        None,
        "Number of seeds, counting up from --seed.",
        low=1,
        high=1000,
        default_text="5, or 3 at scale paper",
    )
    readings: tuple[str, ...] = option(
        (),
        "Also run this interpretation of details that the paper leaves open, or all of them (repeatable; see --list).",
        flag="--reading",
        metavar="NAME",
        parse=tuple,
    )
    documents: int | None = option(
        None, "Use at most this many documents of each data set, for a trial.", low=200
    )
    jobs: int | None = option(None, "Number of parallel runs.", low=1, default_text="one per core")

    def __post_init__(self) -> None:
        if self.scale not in ("quick", "paper"):
            raise InputError(f"--scale {self.scale!r} is not known: use quick or paper")
        folder = self.data_folder
        if folder is not None and not folder.is_dir():
            raise InputError(
                f"there is no data folder {str(folder)!r}: check --data and TOKENSIEVE_DATA"
            )

    @property
    def data_folder(self) -> Path | None:
        """The folder named, else the one in TOKENSIEVE_DATA, else None."""
        named = os.environ.get("TOKENSIEVE_DATA")
        return self.data or (Path(named) if named else None)

    @property
    def all_seeds(self) -> range:
        """The seeds of every draw, one run each."""
        return range(self.seed, self.seed + (self.seeds or {"quick": 5, "paper": 3}[self.scale]))


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, as experiments.toml describes it."""

    id: str  # its name on the command line
    title: str  # where it is in the paper
    claim: str  # what the paper says
    paper: str  # the paper's figures, in a sentence
    sees: str  # what we see, in a sentence; {i} stands for the i-th figure that is judged or prominent
    criterion: str  # what "reproduced" means, fixed on `FIXED`
    settings: Mapping[str, Values]  # scale → settings
    seconds: Mapping[str, float]  # scale → about how long one seed takes on one core
    run: Callable[[Bench], SeedRun]  # measures
    needs: tuple[str, ...] = ()  # the data sets it reads
    torch: bool = False  # whether it needs PyTorch
    # other ways to read what the paper leaves open: name, why, settings (what it changes), and later, whether it was added
    # after figures of the default reading had been seen
    readings: tuple[Values, ...] = ()
    notes: tuple[str, ...] = ()  # choices of ours, and what was tried

    def reading_note(self, reading: str) -> str:
        """What this reading changes, and whether it was defined before the runs."""
        [found] = [one for one in self.readings if one["name"] == reading]
        later = " (added after the default's figures had been seen)" if "later" in found else ""
        return f"{found['why']}{later}"

    @property
    def paper_shows(self) -> str:
        """The paper's figures where it gives some, else its claim."""
        return self.claim if self.paper.endswith(("without numbers", "no figures")) else self.paper

    @classmethod
    def select(cls, names: Sequence[str] = (), readings: Sequence[str] = ()) -> list[Experiment]:
        """The named experiments in the paper's order, all if none is named; an `InputError` for an unknown one, or a reading that
        none has."""
        from tokensieve.theory.experiments.experiments import RUNS

        known: dict[str, Experiment] = {}
        described = (
            files("tokensieve.theory.experiments").joinpath("experiments.toml").read_text("utf-8")
        )
        for id, said in tomllib.loads(described).items():
            said |= {name: tuple(said.get(name, ())) for name in ("needs", "readings", "notes")}
            known[id] = cls(id=id, run=RUNS[id], **said)
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name.lower(), known, 1, 0.4)
                meant = f"; did you mean {near[0]!r}?" if near else ""
                raise InputError(
                    f"there is no experiment {name!r}{meant} (available: {', '.join(known)})"
                )
        chosen = [experiment for id, experiment in known.items() if not names or id in names]
        theirs = dict.fromkeys(
            ["all", *(reading["name"] for experiment in chosen for reading in experiment.readings)]
        )
        for name in readings:
            if name not in theirs:
                raise InputError(
                    f"there is no interpretation {name!r} of these experiments (available: {', '.join(theirs)})"
                )
        return chosen
