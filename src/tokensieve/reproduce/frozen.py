"""Untrained embeddings: only p and v trained, beside everything trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tokensieve.reproduce.bench import TITLES, Bench
from tokensieve.reproduce.measures import Measurement
from tokensieve.reproduce.result import SeedRun

# the paper's figures, and how far from them ours may be
_THEIRS = {"frozen": {"accuracy": 0.72, "loss": 0.6}, "trained": {"accuracy": 0.95, "loss": 0.1}}
_WIDTHS = {"accuracy": 0.03, "loss": 0.1}


def run(bench: Bench) -> SeedRun:
    """Train p and v alone, with the common and with larger steps, then all, on each data set."""
    rows: list[dict[str, Any]] = []
    curves: list[pl.DataFrame] = []
    kinds: dict[str, dict[str, Any]] = {
        "frozen": {"frozen": ("E",)},
        "frozen, larger steps": {"frozen": ("E",), "learning_rate": bench.settings["larger_rate"]},
        "trained": {"frozen": ()},
    }
    for k, (name, title) in enumerate(TITLES.items()):
        split = bench.load(name)
        for j, (kind, changes) in enumerate(kinds.items()):
            tell = bench.part((k + j / 3) / 2, (k + (j + 1) / 3) / 2)
            path = bench.fit(split, f"{name}-{j}", tell, **changes).trajectory
            for when, row in _moments(path).items():
                shown = ("step", "train_accuracy", "train_loss", "test_accuracy", "test_loss")
                rows.append({"data": title, "embeddings": kind, "when": when, **{key: row[key] for key in shown}})
            curves.append(path.select("step", "test_accuracy", by=pl.lit(f"{title}, {kind}")))
    table = pl.DataFrame(rows)
    ours = []
    for r in rows:
        if r["when"] == ("end" if r["embeddings"] == "frozen" else "best"):
            training = f" (training {r['train_accuracy']:.1%}, {r['train_loss']:.2f})"
            figures = f"test {r['test_accuracy']:.1%}, loss {r['test_loss']:.2f}"
            ours.append(f"{r['data']} {r['embeddings']}: {figures}{training * (r['embeddings'] == 'trained')}")
    accuracy = [
        Measurement(f"{r['data']}, {r['embeddings']}: test accuracy at {r['when']}", r["test_accuracy"])
        for r in rows
        if r["when"] in ("best", "end")
    ]
    measured = _measurements(table, bench.settings["figures"])
    return SeedRun("; ".join(ours), measured, {"accuracy": table, "curves": pl.concat(curves)}, tuple(accuracy))


def _moments(path: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """The records of a trajectory that a reading may look at."""
    return {
        "best": path.row(int(path["validation_loss"].arg_min() or 0), named=True),
        "end": path.row(-1, named=True),
        "test loss nearest to 0.6": path.row(int((path["test_loss"] - 0.6).abs().arg_min() or 0), named=True),
        "nearest to 72% and 0.6": _nearest(path, "test", _THEIRS["frozen"]),
        "training nearest to 95% and 0.1": _nearest(path, "train", _THEIRS["trained"]),
    }


def _nearest(path: pl.DataFrame, of: str, theirs: Mapping[str, float]) -> dict[str, Any]:
    """The record whose accuracy and loss are nearest to the paper's, in units of the criterion's widths; the first of several."""

    def distance(row: dict[str, Any]) -> float:
        return max(float(abs(row[f"{of}_{figure}"] - theirs[figure])) / width for figure, width in _WIDTHS.items())

    return min(path.drop_nulls([f"{of}_{figure}" for figure in _WIDTHS]).to_dicts(), key=distance)


def _measurements(table: pl.DataFrame, figures: str) -> tuple[Measurement, ...]:
    """The nearer of the two data sets counts for each of the paper's four figures, since the paper does not name one.

    Args:
        table: the rows of `run`.
        figures: "test", all four are test figures at the least validation loss; or "training", those of the trained
            embeddings are training figures there, and those of the frozen ones test figures where the test loss is nearest to
            0.6; or "training, stopped", where accuracy and loss together are nearest to 72% and 0.6; or "training, both
            stopped", where the trained ones' are read where their training accuracy and loss are nearest to 95% and 0.1.
    """
    both = "nearest to 72% and 0.6"
    stop = {"test": "best", "training": "test loss nearest to 0.6"}.get(figures, both)
    end = "training nearest to 95% and 0.1" if figures == "training, both stopped" else "best"
    kinds = {kind: table.filter(embeddings=kind, when=when) for kind, when in (("frozen", stop), ("trained", end))}
    out = []
    for kind, theirs in _THEIRS.items():
        of = "train" if figures != "test" and kind == "trained" else "test"
        for figure, width in _WIDTHS.items():
            ours, goal = kinds[kind][f"{of}_{figure}"], theirs[figure]
            near = float(ours[int((ours - goal).abs().arg_min() or 0)])
            name = f"{kind}: {'training' if of == 'train' else 'test'} {figure}"
            out.append(Measurement(name, near, goal - width, goal + width, goal))
    gains = kinds["trained"].sort("data")["test_accuracy"] - kinds["frozen"].sort("data")["test_accuracy"]
    name = "gain in test accuracy from training embeddings, smaller of the two"
    return (*out, Measurement(name, min(gains.to_list()), 0.1, paper=0.23))
