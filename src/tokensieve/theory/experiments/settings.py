"""How the paper's experiments are run: the options of `reproduce`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tokensieve.errors import InputError
from tokensieve.options import option

DEFAULT_SEEDS = {"quick": 5, "paper": 3}


@dataclass(frozen=True)
class ReproduceSettings:
    """Runs.

    How the paper's experiments are run. An `InputError` for a value out of its range, or a data
    folder that does not exist.
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
        "Also run this interpretation of details that the paper leaves open, or all of them "
        "(repeatable; see --list).",
        flag="--reading",
        metavar="NAME",
        parse=tuple,
    )
    documents: int | None = option(
        None, "Use at most this many documents of each data set, for a trial.", low=200
    )
    jobs: int | None = option(None, "Number of parallel runs.", low=1, default_text="one per core")

    def __post_init__(self) -> None:
        if self.scale not in DEFAULT_SEEDS:
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
        if self.data is None and named:
            return Path(named)
        return self.data

    @property
    def all_seeds(self) -> range:
        """The seeds of every draw, one run each."""
        n_seeds = self.seeds or DEFAULT_SEEDS[self.scale]
        return range(self.seed, self.seed + n_seeds)
