"""Run experiments over readings and seeds, in parallel, keep each run as soon as it is there, and take over what is finished."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from joblib import Parallel, delayed, parallel_config

from tokensieve import __version__
from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.files import csv_table, write_all
from tokensieve.progress import Progress, silent
from tokensieve.reproduce.data import Data
from tokensieve.reproduce.result import DEFAULT, Bench, Experiment, Finding
from tokensieve.reproduce.seeds import Outcome, Result, Run

KEPT, UNFINISHED = "runs", "unfinished"


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        experiments: in this order.
        scale: "quick" or "paper".
        seeds: of every draw, one run each.
        readings: names of readings beside the default one; "all" for every one that an experiment has.
        folder: of the data files; None without.
        limit: at most this many documents of each data set, for trials; None for all.
        out: where results are kept, made if missing.
        jobs: runs at a time; several share the cores.
    """

    experiments: Sequence[Experiment]
    scale: str
    seeds: Sequence[int]
    readings: Sequence[str]
    folder: Path | None
    limit: int | None
    out: Path
    jobs: int = 1


class Task(NamedTuple):
    """One run: what, how, where its result is kept, and the fingerprint of everything that decides it."""

    experiment: Experiment
    reading: str
    seed: int
    settings: dict[str, Any]
    place: Path
    mark: str


def run_all(plan: Plan, tell: Progress, done: Callable[[str, Run, bool], None]) -> list[Result]:
    """Every experiment's result; each run is written to `plan.out` when it ends.

    A run found there with the same settings, data and version is taken over; one with others is replaced. States on the way lie
    under out/unfinished, in a folder named for what they belong to, and are removed when their run is done.

    Args:
        plan: what to run.
        tell: receives a text with the time left and the share done of all.
        done: called with each experiment's name, its run, and whether that was taken over.
    """
    data = Data(plan.folder, plan.limit)
    problems = {e.id: _hindrance(e, data) for e in plan.experiments}
    tasks = [task for e in plan.experiments if not problems[e.id] for task in _tasks(e, plan, data)]
    runs: dict[str, Run] = {}
    for task in tasks:
        if (earlier := _kept(task)) is not None:
            runs[task.mark] = earlier
            done(task.experiment.id, earlier, True)
    missing = [task for task in tasks if task.mark not in runs]
    clock = _Clock(missing, plan.scale, tell)
    for task, run in _work_through(missing, plan, clock):
        runs[task.mark] = run
        clock.finished()
        done(task.experiment.id, run, False)
    if (plan.out / UNFINISHED).is_dir() and not any((plan.out / UNFINISHED).iterdir()):
        (plan.out / UNFINISHED).rmdir()
    return [
        _result(e, [(t, runs[t.mark]) for t in tasks if t.experiment is e], problems[e.id]) for e in plan.experiments
    ]


def _result(experiment: Experiment, done: Sequence[tuple[Task, Run]], problem: str) -> Result:
    by_reading: dict[str, list[Run]] = {}
    for task, run in done:
        by_reading.setdefault(task.reading, []).append(run)
    outcomes = tuple(Outcome(reading, tuple(runs)) for reading, runs in by_reading.items())
    return Result(experiment, outcomes, problem or outcomes[0].runs[0].problem)


def _tasks(experiment: Experiment, plan: Plan, data: Data) -> list[Task]:
    """Each run of an experiment, the default reading first."""
    known = {reading.name: reading.settings for reading in experiment.readings}
    wanted = [name for name in known if name in plan.readings or "all" in plan.readings]
    limited = {} if plan.limit is None else {"documents_at_most": plan.limit}
    data_marks = [data.mark(name) for name in experiment.needs]
    tasks = []
    for reading in (DEFAULT, *wanted):
        for seed in plan.seeds:
            settings = {
                "scale": plan.scale,
                "seed": seed,
                **experiment.settings[plan.scale],
                **known.get(reading, {}),
                **limited,
            }
            parts = (experiment.id, reading, __version__, json.dumps(settings, sort_keys=True), *data_marks)
            place = plan.out / KEPT / experiment.id / reading.replace("/", "-") / str(seed)
            tasks.append(Task(experiment, reading, seed, settings, place, fingerprint(*parts)))
    return tasks


def _work_through(missing: list[Task], plan: Plan, clock: _Clock) -> Iterator[tuple[Task, Run]]:
    """Each missing run as it ends; in this process, with progress, where one runs at a time."""
    jobs = min(plan.jobs, len(missing))
    if jobs <= 1:
        yield from (_run(task, plan, clock) for task in missing)
        return
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with parallel_config("loky", inner_max_num_threads=threads):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)
        yield from parallel(delayed(_run)(task, plan, silent, threads) for task in missing)


class _Clock:
    """Where the whole stands: the share of it that is done, and the time left, by what the registry expects of each run."""

    def __init__(self, missing: list[Task], scale: str, tell: Progress) -> None:
        self.missing, self.expected = missing, [task.experiment.seconds[scale] for task in missing]
        self.tell, self.start, self.done = tell, time.perf_counter(), 0

    def __call__(self, stage: str, share: float) -> None:
        """The run after those done is at `share` of its own work."""
        task = self.missing[self.done]
        self._show(f"{self.done + 1} of {len(self.missing)} {task.experiment.id}, seed {task.seed}: {stage}", share)

    def finished(self) -> None:
        """One more run is done."""
        self.done += 1
        self._show(f"{self.done} of {len(self.missing)} runs done", 0.0)

    def _show(self, stage: str, share: float) -> None:
        spent, total = time.perf_counter() - self.start, sum(self.expected)
        worked = sum(self.expected[: self.done]) + (share * self.expected[self.done] if share else 0.0)
        left = spent * (total - worked) / worked if worked > 0.05 * total else max(0.0, total - spent)
        shown = f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
        self.tell(f"{stage}, about {shown} left", worked / total)


@lru_cache(maxsize=1)
def _data(folder: Path | None, limit: int | None) -> Data:
    """The data of this process, read once."""
    return Data(folder, limit)


def _run(task: Task, plan: Plan, tell: Progress, threads: int = 0) -> tuple[Task, Run]:
    """Run and keep; PyTorch uses `threads`, if any are given."""
    if threads and task.experiment.torch:
        import torch

        torch.set_num_threads(threads)
    start = time.perf_counter()
    states = plan.out / UNFINISHED / f"{task.experiment.id}-{task.mark[:12]}"
    states.mkdir(parents=True, exist_ok=True)
    finding, problem = None, ""
    try:
        bench = Bench(_data(plan.folder, plan.limit), task.settings, task.seed, tell, states)
        finding = task.experiment.run(bench)
    except InputError as error:  # of one data set, one setting or one seed: the other runs go on
        problem = str(error)
    shutil.rmtree(states)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    run = Run(task.reading, task.seed, task.settings, finding, time.perf_counter() - start, peak, problem)
    if finding is not None:
        kept = {"mark": task.mark, "seconds": run.seconds, "megabytes": peak, "tables": list(finding.tables)}
        files: dict[str, Any] = {f"{name}.csv": csv_table(table) for name, table in finding.tables.items()}
        files["finding.json"] = json.dumps(kept | {"finding": finding.kept()}, ensure_ascii=False, indent=1)
        task.place.mkdir(parents=True, exist_ok=True)
        write_all(task.place, files)
    return task, run


def _kept(task: Task) -> Run | None:
    """An earlier run, if it is of the same experiment with the same settings and data."""
    try:
        kept = json.loads((task.place / "finding.json").read_text(encoding="utf-8"))
        if kept["mark"] != task.mark:
            return None
        tables = {name: _table(task.place / f"{name}.csv") for name in kept["tables"]}
        finding = Finding.from_kept(kept["finding"], tables)
        return Run(task.reading, task.seed, task.settings, finding, kept["seconds"], kept["megabytes"])
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        return None


def _hindrance(experiment: Experiment, data: Data) -> str:
    """Why an experiment cannot be run, and what to do; empty where it can."""
    if experiment.torch and importlib.util.find_spec("torch") is None:
        return "needs PyTorch: pip install 'tokensieve[torch]'"
    return "; ".join(filter(None, map(data.missing, experiment.needs)))


def _table(path: Path) -> pl.DataFrame:
    """A table that `csv_table` wrote."""
    frame = pl.read_csv(path, schema_overrides={"token": pl.String}, infer_schema_length=None)
    return frame.with_columns(pl.col(pl.String).str.strip_prefix("'"))
