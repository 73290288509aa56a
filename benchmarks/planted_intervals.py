"""Do intervals of a diagnosis contain the truth, and are changes that `compare` claims true?

    python benchmarks/planted_intervals.py coverage --models FOLDER
    python benchmarks/planted_intervals.py compare --models FOLDER

Both use the models of `planted_models.py` that are for reporting.

**Coverage.** A model is diagnosed twice, on halves of its texts that share none. If the intervals
are right, that of the difference of the two means of a word contains zero for 95 of 100 words. It
is made from the ends of both (Zou and Donner 2008):

    m₁ − m₂  ±  √((distance of m₁ from its end)² + (distance of m₂ from its other end)²)

**Compare.** Two models of one data set and different families are compared on one half of the
texts. A claimed change is true if it has the same sign on the other half, where the word is cut out
of texts or put into them, and the models are asked by their ordinary call, without tokensieve.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from machine import DATA, described, store
from planted import rate
from planted_models import MAX_PIECES, PlantedModel, in_first_half, logits, plan, trained_model
from tokensieve.diagnose import DiagnoseSettings, compare, diagnose
from tokensieve.read.reader import read_corpus

SETTINGS = DiagnoseSettings(max_length=MAX_PIECES, batch_size=32, untrained=False)
MEASURES = ("move", "use")
MIN_TEXTS = 5  # of the other half, that contain a word; with fewer its removal is not checked


def reported(options: argparse.Namespace) -> Iterator[PlantedModel]:
    """The models for reporting that are trained."""
    for number in range(options.limit):
        how = plan("report", number)
        if (options.models / how.name / "trained").exists():
            yield trained_model(how, options.models, options.data)


def is_covered(row: dict[str, Any], name: str) -> bool:
    """Whether the interval of the difference between two halves contains zero."""
    first, low, high = (row[column] for column in (name, f"{name}_low", f"{name}_high"))
    other, other_low, other_high = (
        row[f"{column}_right"] for column in (name, f"{name}_low", f"{name}_high")
    )
    difference = first - other
    if difference > 0:
        return bool(difference <= np.hypot(first - low, other_high - other))
    return bool(-difference <= np.hypot(high - first, other - other_low))


def coverage(options: argparse.Namespace) -> dict[str, int]:
    """How many intervals of differences contain zero."""
    counts: Counter[str] = Counter()
    for planted in reported(options):
        halves = []
        for start in (0, 1):
            found = diagnose(
                planted.model,
                planted.tokenizer,
                planted.held[start::2],
                planted.labels[start::2].tolist(),
                SETTINGS,
            )
            halves.append(found.uses.filter(pl.col("kind") != "order"))
        both = halves[0].join(halves[1], on=["token", "kind"])
        for name in MEASURES:
            columns = [name, f"{name}_low", f"{name}_high"]
            columns += [f"{column}_right" for column in columns]
            rows = both.drop_nulls(columns).to_dicts()
            counts[f"{name}: intervals"] += len(rows)
            counts[f"{name}: contain the truth"] += sum(is_covered(row, name) for row in rows)
        counts["models"] += 1
        print(planted.plan.name, dict(counts), flush=True)
    for name in MEASURES:
        n = counts[f"{name}: intervals"]
        print(f"{name}: {rate(counts[f'{name}: contain the truth'], n)}")
    return dict(counts)


def without(text: str, word: str) -> str:
    """A text without a word."""
    return re.sub(rf"(?<!\w){re.escape(word)}(?!\w)\s?", "", text, flags=re.IGNORECASE)


def mean_change(planted: PlantedModel, before: list[str], after: list[str]) -> float:
    """Mean size of the change of the log-odds."""
    return float(np.abs(logits(planted, after) - logits(planted, before)).mean())


def is_true(
    claim: dict[str, Any], first: PlantedModel, second: PlantedModel, texts: list[str]
) -> bool | None:
    """Whether a claimed change has the same sign in other texts; None if these have too few."""
    word = claim["token"]
    if not word.isalnum():
        return None
    containing = [text for text in texts if without(text, word) != text]
    if claim["how"] == "removed":
        if len(containing) < MIN_TEXTS:
            return None
        before = containing
        after = [without(text, word) for text in containing]
    else:
        rng = np.random.default_rng(len(word))
        before = [text for text in texts if without(text, word) == text]
        after = [in_first_half(text, word, rng) for text in before]
    change = mean_change(second, before, after) - mean_change(first, before, after)
    return bool(change * claim["change"] > 0)


def changes(options: argparse.Namespace) -> dict[str, int]:
    """How many claims are true, of each model and the next one of its data set."""
    counts: Counter[str] = Counter()
    previous: dict[str, PlantedModel] = {}
    for planted in reported(options):
        other = previous.get(planted.plan.source)
        previous[planted.plan.source] = planted
        if other is None:
            continue
        read = (planted.held[::2], planted.labels[::2].tolist())
        models = {model.plan.name: (model.model, model.tokenizer) for model in (other, planted)}
        found = compare(models, read_corpus(read), SETTINGS)
        for claim in found.words.to_dicts():
            truth = is_true(claim, other, planted, planted.held[1::2])
            if truth is not None:
                counts[f"{claim['how']}: claims"] += 1
                counts[f"{claim['how']}: true"] += truth
        counts["pairs of models"] += 1
        print(planted.plan.name, dict(counts), flush=True)
    for how in ("removed", "inserted"):
        print(f"{how}: {rate(counts[f'{how}: true'], counts[f'{how}: claims'])} true")
    return dict(counts)


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("coverage", "compare"))
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--limit", type=int, default=44)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    torch.set_num_threads(1)
    measure = {"coverage": coverage, "compare": changes}[options.what]
    store(f"planted-{options.what}", measure(options), described("torch", "transformers"))


if __name__ == "__main__":
    main()
