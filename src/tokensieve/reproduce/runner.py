"""Run experiments one after the other, keep each result as soon as it is there, and take over what an earlier run finished."""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve import __version__
from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.files import csv_table, write_all
from tokensieve.progress import Progress
from tokensieve.reproduce.data import Data
from tokensieve.reproduce.result import NOT_REPRODUCED, NOT_RUN, REPRODUCED, Bench, Experiment, Result

KEPT, UNFINISHED, TABLES = "experiments", "unfinished", "tables"


def run_all(
    experiments: Sequence[Experiment],
    data: Data,
    scale: str,
    seed: int,
    out: Path,
    tell: Progress,
    done: Callable[[Result, bool], None] = lambda result, taken_over: None,
) -> list[Result]:
    """Every experiment's result; each is written to `out` before the next one starts.

    A result found there with the same settings, seed, data and version is taken over; one with others is replaced. States on
    the way lie under out/unfinished, in a folder named for what they belong to, and are removed when their experiment is done.

    Args:
        experiments: what to run.
        data: the real data sets.
        scale: "quick" or "paper".
        seed: of every draw.
        out: folder, made if missing.
        tell: receives a text with the time left and the share done of all.
        done: called with each result, and whether it was taken over.
    """
    results = []
    for k, experiment in enumerate(experiments):
        settings = {"scale": scale, "seed": seed, **experiment.settings[scale], **_limited(data)}
        mark = _mark(experiment, settings, data)
        earlier = _kept(out, experiment.id, mark)
        if earlier is None:
            clock = _Clock(experiments[k:], scale, f"{k + 1} of {len(experiments)}", tell)
            result = _run(experiment, settings, data, out / UNFINISHED / f"{experiment.id}-{mark[:12]}", clock)
            _keep(out, result, mark)
        results.append(earlier or result)
        done(results[-1], earlier is not None)
    if (out / UNFINISHED).is_dir() and not any((out / UNFINISHED).iterdir()):
        (out / UNFINISHED).rmdir()
    return results


class _Clock:
    """The time left: this experiment's share done against its time so far, and the others by what the registry expects."""

    def __init__(self, experiments: Sequence[Experiment], scale: str, place: str, tell: Progress) -> None:
        self.now, self.rest = experiments[0], sum(e.seconds[scale] for e in experiments[1:])
        self.expected, self.place, self.tell, self.start = (
            experiments[0].seconds[scale],
            place,
            tell,
            time.perf_counter(),
        )

    def __call__(self, stage: str, share: float) -> None:
        spent = time.perf_counter() - self.start
        left = spent * (1 - share) / share if share > 0.05 else max(0.0, self.expected - spent)
        whole = self.rest + left
        minutes = f"{whole / 60:.0f} min" if whole >= 90 else f"{whole:.0f} s"
        self.tell(f"{self.place} {self.now.id}: {stage}, about {minutes} left", share)


def _limited(data: Data) -> dict[str, Any]:
    return {} if data.limit is None else {"documents_at_most": data.limit}


def _mark(experiment: Experiment, settings: dict[str, Any], data: Data) -> str:
    return fingerprint(
        experiment.id, __version__, json.dumps(settings, sort_keys=True), *map(data.mark, experiment.needs)
    )


def _run(experiment: Experiment, settings: dict[str, Any], data: Data, folder: Path, tell: Progress) -> Result:
    start = time.perf_counter()
    row: dict[str, Any] = {
        "id": experiment.id, "claim": experiment.claim, "paper": experiment.paper, "criterion": experiment.criterion,
        "settings": settings,
    }  # fmt: skip
    if reason := _hindrance(experiment, data):
        return Result(**row, ours="", verdict=NOT_RUN, seconds=0.0, notes=(reason,))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        found = experiment.run(Bench(data, settings, settings["seed"], tell, folder))
    except InputError as problem:  # of one data set or one setting: the other experiments can still be run
        return Result(**row, ours="", verdict=NOT_RUN, seconds=time.perf_counter() - start, notes=(str(problem),))
    verdict = REPRODUCED if all(check.passed for check in found.checks) else NOT_REPRODUCED
    shutil.rmtree(folder)
    return Result(
        **row, ours=found.ours, verdict=verdict, seconds=time.perf_counter() - start, checks=found.checks, tables=found.tables,
        views=found.views, notes=found.notes,
    )  # fmt: skip


def _hindrance(experiment: Experiment, data: Data) -> str:
    """Why an experiment cannot be run, and what to do; empty where it can."""
    if experiment.torch and importlib.util.find_spec("torch") is None:
        return "needs PyTorch: pip install 'tokensieve[torch]'"
    return "; ".join(filter(None, map(data.missing, experiment.needs)))


def _keep(out: Path, result: Result, mark: str) -> None:
    """The result as JSON and its tables as CSV, all or nothing."""
    kept = {"mark": mark, "tables": list(result.tables), "result": result.kept()}
    files: dict[str, Any] = {f"{KEPT}/{result.id}.json": json.dumps(kept, ensure_ascii=False, indent=1)}
    files |= {f"{TABLES}/{result.id}-{name}.csv": csv_table(table) for name, table in result.tables.items()}
    write_all(out, files)


def _kept(out: Path, id: str, mark: str) -> Result | None:
    """The result of an earlier run, if it is of the same experiment with the same settings and data, and was run."""
    try:
        kept = json.loads((out / KEPT / f"{id}.json").read_text(encoding="utf-8"))
        if kept["mark"] != mark or kept["result"]["verdict"] == NOT_RUN:
            return None
        tables = {name: _table(out / TABLES / f"{id}-{name}.csv") for name in kept["tables"]}
        return Result.from_kept(kept["result"], tables)
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        return None


def _table(path: Path) -> pl.DataFrame:
    """A table that `csv_table` wrote."""
    frame = pl.read_csv(path, schema_overrides={"token": pl.String}, infer_schema_length=None)
    return frame.with_columns(pl.col(pl.String).str.strip_prefix("'"))
