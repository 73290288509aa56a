"""All experiments of one `reproduce`, and how they were run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl

from tokensieve.reproduce.seeds import VERDICTS, Result


@dataclass(frozen=True)
class Reproduction:
    """Everything that the files, the page and the terminal show of one `reproduce`.

    Attributes:
        name: what was reproduced, for people.
        results: one per experiment, in the paper's order.
        settings: name → value of every option that decides the results.
        seed: the first of the seeds.
        version: of tokensieve.
        date: when it was finished, as ISO 8601.
        seconds: wall time of each stage; of the experiments the sum, also of those that an earlier run finished.
    """

    name: str
    results: list[Result]
    settings: dict[str, Any]
    seed: int
    version: str
    date: str
    seconds: dict[str, float]

    def tally(self) -> dict[str, int]:
        """Verdict → number of experiments."""
        count = Counter(result.verdict for result in self.results)
        return {verdict: count[verdict] for verdict in VERDICTS}

    def to_dict(self) -> dict[str, Any]:
        """The summary: a row per experiment, and how it was made."""
        return {
            "experiments": [result.to_dict() for result in self.results], "verdicts": self.tally(), "settings": self.settings,
            "seed": self.seed, "version": self.version, "date": self.date, "seconds": self.seconds,
        }  # fmt: skip

    def tables(self) -> dict[str, pl.DataFrame]:
        """EXPERIMENT-NAME → table over seeds under the default reading; those of token types stay with their runs."""
        found = {r.id: r.default.tables for r in self.results if r.default}
        return {f"{id}-{name}": table for id, tables in found.items() for name, table in tables.items()}
