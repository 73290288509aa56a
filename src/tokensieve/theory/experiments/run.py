"""Run experiments over readings and seeds in parallel, store each run as soon as it ends, and reuse finished runs."""

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

import msgspec
import polars as pl
from joblib import Parallel, delayed, parallel_config

from tokensieve import __version__
from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.files import Content, check_sums, csv_table, parsed, read_regular, write_all
from tokensieve.progress import Progress, silent
from tokensieve.theory.experiments.bench import Bench, Data
from tokensieve.theory.experiments.experiment import DEFAULT, Experiment, ReproduceSettings
from tokensieve.theory.experiments.result import ExperimentResult, Reproduction, SeedRun


class _Task:
    """One run: what, how, where its result is kept, and the fingerprint of everything that decides it."""

    def __init__(
        self, experiment: Experiment, reading: str, seed: int, options: ReproduceSettings, out: Path
    ) -> None:
        self.experiment, self.reading, self.seed, self.options = experiment, reading, seed, options
        changes = {one["name"]: one["settings"] for one in experiment.readings}.get(reading, {})
        self.settings = {
            "scale": options.scale,
            "seed": seed,
            **experiment.settings[options.scale],
            **changes,
        }
        if options.documents is not None:
            self.settings["documents_at_most"] = options.documents
        data = [_data(options).digest(name) for name in experiment.needs]
        said = json.dumps(self.settings, sort_keys=True)
        self.mark = fingerprint(experiment.id, reading, __version__, said, *data)
        self.place = out / "runs" / experiment.id / reading.replace("/", "-") / str(seed)
        self.states = out / "unfinished" / f"{experiment.id}-{self.mark[:12]}"

    def run(self, progress: Progress, threads: int = 0) -> tuple[_Task, SeedRun]:
        """Run and keep; PyTorch uses `threads`, if any are given."""
        if threads and self.experiment.torch:
            import torch

            torch.set_num_threads(threads)
        start = time.perf_counter()
        self.states.mkdir(parents=True, exist_ok=True)
        try:
            found = self.experiment.run(
                Bench(_data(self.options), self.settings, self.seed, progress, self.states)
            )
        except (
            InputError
        ) as error:  # of one data set, one setting or one seed: the other runs go on
            found = SeedRun((), problem=str(error))
        shutil.rmtree(self.states)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
            2**20 if sys.platform == "darwin" else 2**10
        )
        seconds = time.perf_counter() - start
        found = replace(
            found, seed=self.seed, settings=self.settings, seconds=seconds, megabytes=peak
        )
        if not found.problem:
            kept = {
                "mark": self.mark,
                "seconds": seconds,
                "megabytes": peak,
                "measurements": found.measurements,
            }
            kept |= {"accuracy": found.accuracy, "tables": list(found.tables)}
            files: dict[str, Content] = {
                f"{name}.csv": csv_table(table) for name, table in found.tables.items()
            }
            files["finding.json"] = json.dumps(kept, ensure_ascii=False, indent=1)
            self.place.mkdir(parents=True, exist_ok=True)
            write_all(self.place, files, sums=True)
        return self, found

    def kept(self) -> SeedRun | None:
        """An earlier run, if it has the same experiment, settings and data."""
        try:
            kept = parsed(read_regular(self.place / "finding.json"))
            if kept["mark"] != self.mark:
                return None
            check_sums(self.place)
            tables = {name: _table(self.place / f"{name}.csv") for name in kept["tables"]}
            names = ("measurements", "accuracy", "seconds", "megabytes")
            found = msgspec.convert(
                {"tables": tables} | {name: kept[name] for name in names}, SeedRun
            )
            return replace(found, tables=tables, seed=self.seed, settings=self.settings)
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            msgspec.MsgspecError,
            pl.exceptions.PolarsError,
        ):
            return None  # damaged: run again


def reproduce(
    experiments: Sequence[Experiment],
    settings: ReproduceSettings,
    out: Path,
    progress: Progress = silent,
    done: Callable[[str, str, SeedRun, bool], None] = lambda id, reading, run, taken_over: None,
) -> Reproduction:
    """Run experiments over seeds and readings; each run is written to `out` when it ends. A run found there with the same settings,
    data and version is reused; any other is replaced. Intermediate states are kept in out/unfinished until their run is done.
    `done` is called with each experiment's name and reading, its run, and whether that was reused."""
    began = time.perf_counter()
    # why an experiment cannot be run, and what to do; empty where it can
    problems = {
        e.id: "; ".join(filter(None, map(_data(settings).missing, e.needs))) for e in experiments
    }
    if importlib.util.find_spec("torch") is None:
        problems |= {
            e.id: "needs PyTorch: pip install 'tokensieve[torch]'" for e in experiments if e.torch
        }
    tasks = []
    for e in (e for e in experiments if not problems[e.id]):
        names = [one["name"] for one in e.readings if {one["name"], "all"} & set(settings.readings)]
        tasks += [
            _Task(e, name, seed, settings, out)
            for name in (DEFAULT, *names)
            for seed in settings.all_seeds
        ]
    runs: dict[str, SeedRun] = {}
    for task in tasks:
        if (earlier := task.kept()) is not None:
            runs[task.mark] = earlier
            done(task.experiment.id, task.reading, earlier, True)
    missing = [task for task in tasks if task.mark not in runs]
    clock = _SeedClock(missing, settings.scale, progress)
    for task, run in _work_through(missing, settings, clock):
        runs[task.mark] = run
        clock.finished()
        done(task.experiment.id, task.reading, run, False)
    unfinished = out / "unfinished"
    if unfinished.is_dir() and not any(unfinished.iterdir()):
        unfinished.rmdir()
    results = []
    for e in experiments:
        found: dict[str, tuple[SeedRun, ...]] = {}
        for task in (task for task in tasks if task.experiment is e):
            found[task.reading] = (*found.get(task.reading, ()), runs[task.mark])
        results.append(ExperimentResult(e, found, problems[e.id] or found[DEFAULT][0].problem))
    said: dict[str, object] = {
        "scale": settings.scale,
        "experiments": " ".join(e.id for e in experiments),
    }
    said |= {
        "data": str(settings.data_folder or "none"),
        "seeds": " ".join(map(str, settings.all_seeds)),
    }
    optional = {
        "readings": " ".join(settings.readings),
        "documents_at_most": str(settings.documents or ""),
    }
    said |= {name: value for name, value in optional.items() if value}
    said |= {"seed": settings.seed, "this_run_seconds": f"{time.perf_counter() - began:.0f}"}
    seconds = {"experiments": sum(result.seconds for result in results)}
    return Reproduction(tuple(results), said, __version__, time.strftime("%Y-%m-%d %H:%M"), seconds)


def _work_through(
    missing: list[_Task], settings: ReproduceSettings, clock: _SeedClock
) -> Iterator[tuple[_Task, SeedRun]]:
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
    """The time left and the fraction that is done of all runs, by what each is expected to take."""

    def __init__(self, missing: list[_Task], scale: str, progress: Progress) -> None:
        self.missing, self.expected = missing, [task.experiment.seconds[scale] for task in missing]
        self.progress, self.start, self.done = progress, time.perf_counter(), 0

    def __call__(self, stage: str, share: float) -> None:
        task = self.missing[self.done]
        self._show(
            f"{self.done + 1} of {len(self.missing)} {task.experiment.id}, seed {task.seed}: {stage}",
            share,
        )

    def finished(self) -> None:
        self.done += 1
        self._show(f"{self.done} of {len(self.missing)} runs done", 0.0)

    def _show(self, stage: str, share: float) -> None:
        spent, total = time.perf_counter() - self.start, sum(self.expected)
        worked = sum(self.expected[: self.done]) + (share and share * self.expected[self.done])
        left = (
            spent * (total - worked) / worked if worked > 0.05 * total else max(0.0, total - spent)
        )
        shown = f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
        self.progress(f"{stage}, about {shown} left", worked / total)


@lru_cache(maxsize=1)
def _data(settings: ReproduceSettings) -> Data:
    """The data of this process, read once."""
    return Data(settings.data_folder, settings.documents)


def _table(path: Path) -> pl.DataFrame:
    """A table that `csv_table` wrote."""
    frame = pl.read_csv(
        read_regular(path, limit=2**31),
        schema_overrides={"token": pl.String},
        infer_schema_length=None,
    )
    return frame.with_columns(pl.col(pl.String).str.strip_prefix("'"))
