"""The report of a comparison of several models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from tokensieve import __version__
from tokensieve.blocks import Block, Column, Picture, Report, Section, Table, Text
from tokensieve.diagnose.comparison import Comparison
from tokensieve.diagnose.report import quoted
from tokensieve.escape import shown
from tokensieve.wording import count, signed


def comparison_report(found: Comparison) -> Report:
    """Which words the last model uses more or less than the first, then model by model."""
    short = _last_names(found.models["model"].to_list())
    first, last = found.diagnoses[0], found.diagnoses[-1]
    columns = (
        Column("model", "token"),
        Column("accuracy", "rate"),
        Column("AUC", "interval"),
        Column("learned"),
        Column("words without support", "count"),
        Column("uses most", "token"),
    )
    rows = [
        (
            short[row["model"]],
            (row["accuracy"], row["accuracy_low"], row["accuracy_high"]),
            (row["auc"], row["auc_low"], row["auc_high"]),
            row["learning"],
            row["unsupported"],
            row["most_used"],
        )
        for row in found.models.iter_rows(named=True)
    ]
    n = count(first.documents["read"])
    looked = (
        f"{found.looked_at} words were removed from the same documents with each model, the most used of any of them."
    )
    blocks: list[Block] = [
        Text(looked, "note"),
        Table(f"The models on the same {n} documents", columns, rows),
        _curve(found, short),
        Text("Look at words that the later model uses more and that should not matter.", "lead"),
    ]
    steps = list(found.words.group_by("before", "after", maintain_order=True))
    for (before, after), part in sorted(steps, key=lambda one: one[0] != (first.model, last.model)):
        names = f"{short[str(before)]} → {short[str(after)]}"
        tables = []
        for title, sign in (("gained", 1), ("lost", -1)):
            some = part.filter(sign * pl.col("change") > 0)
            cells = [
                (row["token"], row["use_before"], row["use_after"], (row["change"], row["low"], row["high"]))
                for row in some.iter_rows(named=True)
            ]
            heads = (
                Column("word", "token"),
                Column("before", "plain", unit="log-odds"),
                Column("after", "plain", unit="log-odds"),
                Column("change", "interval"),
            )
            if cells:
                tables.append(Table(f"Words that {title} use (q < 0.05)", heads, cells))
        blocks.append(Section(names, tuple(tables), folded=(before, after) != (first.model, last.model)))
    notes = tuple(Text(shown(note, 400), "note") for note in found.notes)
    blocks.append(Section("How it was measured", notes, only=("html", "markdown")))
    about = {"settings": first.settings, "seconds": found.seconds, "version": __version__}
    title = f"{len(found.diagnoses)} models compared on {shown(first.name)}"
    return Report("diagnose", title, _changed(found, short), tuple(blocks), about)


def _changed(found: Comparison, short: dict[str, str]) -> str:
    """Up to three words that the last model uses more, or less, than the first."""
    ends = found.diagnoses[0].model, found.diagnoses[-1].model
    first, last = (shown(short[one], 40) for one in ends)
    rows = found.words.filter(pl.col("before") == ends[0], pl.col("after") == ends[1])
    for sign, how in ((1, "more"), (-1, "less")):
        words = rows.filter(sign * pl.col("change") > 0)["token"].head(3).to_list()
        if words:
            return f"{last} uses {quoted(words)} {how} than {first} does."
    return "No word's use differs between these models by more than chance."


def _curve(found: Comparison, short: dict[str, str]) -> Picture:
    kinds = (("accuracy", "accuracy"), ("AUC", "auc"), ("words alone against the data", "value"))
    rows: list[dict[str, Any]] = [
        {
            "order": i,
            "model": short[row["model"]][-28:],
            "of": name,
            "y": row[of],
            "low": row[f"{of}_low"],
            "high": row[f"{of}_high"],
        }
        for i, row in enumerate(found.models.to_dicts())
        for name, of in kinds
        if math.isfinite(row[of]) and math.isfinite(row[f"{of}_low"])
    ]
    listing = "; ".join(f"{row['model']}: {row['of']} {signed(row['y'])}" for row in rows)
    data = {"models": rows, "kinds": [name for name, _ in kinds]}
    return Picture("curve", "diagnose-curve", data, "From model to model", "with 95% intervals", f"{listing}.")


def _last_names(models: Sequence[str]) -> dict[str, str]:
    """Models' folders without those that they lie in, if that still tells them apart."""
    last = [model.rstrip("/").rpartition("/")[2] for model in models]
    return dict(zip(models, last if len(set(last)) == len(models) else models, strict=True))
