"""Run experiments over readings and seeds, in parallel, and reuse the runs that are finished."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl
from joblib import Parallel, delayed, parallel_config

from tokensieve import __version__
from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.files import (
    Content,
    check_sums,
    csv_table,
    json_text,
    parsed,
    read_regular,
    write_all,
)
from tokensieve.progress import Progress, silent
from tokensieve.theory.experiments.bench import Bench
from tokensieve.theory.experiments.data import Data
from tokensieve.theory.experiments.experiment import (
    DEFAULT,
    Experiment,
    SeedRun,
)
from tokensieve.theory.experiments.measures import Measurement
from tokensieve.theory.experiments.reproduction import Reproduction
from tokensieve.theory.experiments.result import ExperimentResult
from tokensieve.theory.experiments.settings import ReproduceSettings

MAX_TABLE_BYTES = 2**31
SECONDS_SHOWN = 90  # longer times are given in minutes
# of the work; before it, the expected time is shown, not the measured pace
MIN_FRACTION_TIMED = 0.05
RunEnded = Callable[[str, str, SeedRun, bool], None]


class _KeptRun(msgspec.Struct):
    """finding.json of a finished run: its figures; its tables are files beside it."""

    mark: str
    seconds: float
    megabytes: float
    measurements: tuple[Measurement, ...]
    accuracy: tuple[Measurement, ...]
    tables: list[str]


class _Task:
    """One run: what, how, and where its result is kept.

    Attributes:
        mark: fingerprint of everything that decides the result.
        place: folder of the finished run.
        states: folder of its intermediate states.
    """

    def __init__(
        self, experiment: Experiment, reading: str, seed: int, options: ReproduceSettings, out: Path
    ) -> None:
        self.experiment = experiment
        self.reading = reading
        self.seed = seed
        self.options = options
        self.settings = {
            "scale": options.scale,
            "seed": seed,
            **experiment.settings_of(options.scale, reading),
        }
        if options.documents is not None:
            self.settings["documents_at_most"] = options.documents
        digests = [_data(options).digest(name) for name in experiment.needs]
        settings = json.dumps(self.settings, sort_keys=True)
        self.mark = fingerprint(experiment.id, reading, __version__, settings, *digests)
        self.place = out / "runs" / experiment.id / reading.replace("/", "-") / str(seed)
        self.states = out / "unfinished" / f"{experiment.id}-{self.mark[:12]}"

    def run(self, progress: Progress, threads: int = 0) -> _TaskDone:
        """Run and keep the result; PyTorch uses `threads`, if any are given."""
        if threads and self.experiment.torch:
            import torch

            torch.set_num_threads(threads)
        start = time.perf_counter()
        self.states.mkdir(parents=True, exist_ok=True)
        bench = Bench(_data(self.options), self.settings, self.seed, progress, self.states)
        try:
            measured = self.experiment.run(bench)
        except InputError as error:  # of this data set, setting or seed: the other runs go on
            measured = SeedRun((), problem=str(error))
        shutil.rmtree(self.states)
        result = replace(
            measured,
            seed=self.seed,
            settings=self.settings,
            seconds=time.perf_counter() - start,
            megabytes=_peak_megabytes(),
        )
        if not result.problem:
            self._keep(result)
        return _TaskDone(self, result)

    def _keep(self, result: SeedRun) -> None:
        """Write figures and tables of a finished run, with check sums, where `kept` finds them."""
        kept = {
            "mark": self.mark,
            "seconds": result.seconds,
            "megabytes": result.megabytes,
            "measurements": result.measurements,
            "accuracy": result.accuracy,
            "tables": list(result.tables),
        }
        files: dict[str, Content] = {
            f"{name}.csv": csv_table(table) for name, table in result.tables.items()
        }
        files["finding.json"] = json_text(kept)
        self.place.mkdir(parents=True, exist_ok=True)
        write_all(self.place, files, sums=True)

    def kept(self) -> SeedRun | None:
        """An earlier run of the same experiment, settings and data; None if it is damaged."""
        try:
            kept = msgspec.convert(parsed(read_regular(self.place / "finding.json")), _KeptRun)
            if kept.mark != self.mark:
                return None
            check_sums(self.place)
            tables = {name: _read_table(self.place / f"{name}.csv") for name in kept.tables}
        except (OSError, ValueError, msgspec.MsgspecError, pl.exceptions.PolarsError):
            return None
        return SeedRun(
            kept.measurements,
            tables,
            kept.accuracy,
            self.seed,
            self.settings,
            kept.seconds,
            kept.megabytes,
        )


class _TaskDone(NamedTuple):
    task: _Task
    result: SeedRun


def _peak_megabytes() -> float:
    """The largest memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    units_per_megabyte = 2**20 if sys.platform == "darwin" else 2**10
    return peak / units_per_megabyte


def reproduce(
    experiments: Sequence[Experiment],
    settings: ReproduceSettings,
    out: Path,
    progress: Progress = silent,
    ended: RunEnded | None = None,
) -> Reproduction:
    """Run experiments over seeds and readings.

    Each run is written to `out` when it ends. A run found there with the same settings, data and
    version is reused; any other is replaced. Intermediate states are kept in out/unfinished until
    their run is done.

    Args:
        experiments: in the order of the report.
        settings: scale, seeds, readings and data.
        out: folder of the runs.
        progress: receives what is being done.
        ended: called with each experiment's name and reading, its run, and whether that was reused.
    """
    began = time.perf_counter()
    problems = {experiment.id: _problem(experiment, settings) for experiment in experiments}
    runnable = [experiment for experiment in experiments if not problems[experiment.id]]
    tasks = _tasks(runnable, settings, out)

    runs: dict[str, SeedRun] = {}

    def take(task: _Task, run: SeedRun, *, reused: bool) -> None:
        runs[task.mark] = run
        if ended is not None:
            ended(task.experiment.id, task.reading, run, reused)

    for task in tasks:
        earlier = task.kept()
        if earlier is not None:
            take(task, earlier, reused=True)
    missing = [task for task in tasks if task.mark not in runs]
    clock = _SeedClock(missing, settings.scale, progress)
    for done in _work_through(missing, settings, clock):
        clock.finished()
        take(done.task, done.result, reused=False)
    _remove_if_empty(out / "unfinished")

    results = []
    for experiment in experiments:
        own_runs: dict[str, tuple[SeedRun, ...]] = {}
        for task in tasks:
            if task.experiment is experiment:
                own_runs[task.reading] = (*own_runs.get(task.reading, ()), runs[task.mark])
        problem = problems[experiment.id] or own_runs[DEFAULT][0].problem
        results.append(ExperimentResult(experiment, own_runs, problem))
    return Reproduction(
        results=tuple(results),
        settings=_settings_said(experiments, settings, time.perf_counter() - began),
        version=__version__,
        date=time.strftime("%Y-%m-%d %H:%M"),
        seconds={"experiments": sum(result.seconds for result in results)},
    )


def _problem(experiment: Experiment, settings: ReproduceSettings) -> str:
    """Why an experiment cannot be run, and what to do; empty if it can."""
    if experiment.torch and importlib.util.find_spec("torch") is None:
        return "needs PyTorch: pip install 'tokensieve[torch]'"
    return "; ".join(filter(None, map(_data(settings).missing, experiment.needs)))


def _tasks(
    experiments: Sequence[Experiment], settings: ReproduceSettings, out: Path
) -> list[_Task]:
    """One task per experiment, reading and seed."""
    tasks = []
    for experiment in experiments:
        wants_all = "all" in settings.readings
        readings = [reading.name for reading in experiment.readings]
        wanted = [name for name in readings if wants_all or name in settings.readings]
        for name in (DEFAULT, *wanted):
            tasks += [_Task(experiment, name, seed, settings, out) for seed in settings.all_seeds]
    return tasks


def _settings_said(
    experiments: Sequence[Experiment], settings: ReproduceSettings, seconds: float
) -> dict[str, object]:
    """Everything that decides the results, for the report; options not given are left out."""
    described: dict[str, object] = {
        "scale": settings.scale,
        "experiments": " ".join(experiment.id for experiment in experiments),
        "data": str(settings.data_folder or "none"),
        "seeds": " ".join(map(str, settings.all_seeds)),
    }
    if settings.readings:
        described["readings"] = " ".join(settings.readings)
    if settings.documents:
        described["documents_at_most"] = str(settings.documents)
    described["seed"] = settings.seed
    described["this_run_seconds"] = f"{seconds:.0f}"
    return described


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _work_through(
    missing: list[_Task], settings: ReproduceSettings, clock: _SeedClock
) -> Iterator[_TaskDone]:
    """Each missing run as it ends; in this process, with progress, where one runs at a time."""
    cores = os.cpu_count() or 1
    jobs = min(settings.jobs or cores, len(missing))
    if jobs <= 1:
        yield from (task.run(clock) for task in missing)
        return
    threads = max(1, cores // jobs)
    # the longest first, so that no core waits at the end for one that began late
    ordered = sorted(missing, key=lambda task: -task.experiment.seconds[settings.scale])
    with parallel_config("loky", inner_max_num_threads=threads):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)
        yield from parallel(delayed(_Task.run)(task, silent, threads) for task in ordered)


class _SeedClock:
    """The time left and the fraction done of all runs, by what each is expected to take."""

    def __init__(self, missing: list[_Task], scale: str, progress: Progress) -> None:
        self.missing = missing
        self.expected = [task.experiment.seconds[scale] for task in missing]
        self.progress = progress
        self.start = time.perf_counter()
        self.n_done = 0

    def __call__(self, stage: str, fraction: float) -> None:
        task = self.missing[self.n_done]
        place = f"{self.n_done + 1} of {len(self.missing)}"
        self._show(f"{place} {task.experiment.id}, seed {task.seed}: {stage}", fraction)

    def finished(self) -> None:
        self.n_done += 1
        self._show(f"{self.n_done} of {len(self.missing)} runs done", 0.0)

    def _show(self, stage: str, fraction: float) -> None:
        """Report the stage, with the fraction of the current run that is done."""
        total = sum(self.expected)
        worked = sum(self.expected[: self.n_done])
        if fraction:
            worked += fraction * self.expected[self.n_done]
        spent = time.perf_counter() - self.start
        if worked > MIN_FRACTION_TIMED * total:
            left = spent * (total - worked) / worked
        else:
            left = max(0.0, total - spent)
        if left >= SECONDS_SHOWN:
            time_left = f"{left / 60:.0f} min"
        else:
            time_left = f"{left:.0f} s"
        self.progress(f"{stage}, about {time_left} left", worked / total)


@lru_cache(maxsize=1)
def _data(settings: ReproduceSettings) -> Data:
    """The data of this process, read once."""
    return Data(settings.data_folder, settings.documents)


def _read_table(path: Path) -> pl.DataFrame:
    """A table that `csv_table` wrote."""
    frame = pl.read_csv(
        read_regular(path, limit=MAX_TABLE_BYTES),
        schema_overrides={"token": pl.String},
        infer_schema_length=None,
    )
    return frame.with_columns(pl.col(pl.String).str.strip_prefix("'"))
