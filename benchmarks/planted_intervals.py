"""Do intervals of a diagnosis contain the truth, and are changes that `compare` claims true?

    python benchmarks/planted_intervals.py coverage --models FOLDER --out coverage.jsonl
    python benchmarks/planted_intervals.py compare --models FOLDER --out compare.jsonl
    python benchmarks/planted_intervals.py orderings --models FOLDER --out orderings.jsonl

All use the models of a part of `planted_models.py` that is for reporting. What a model counted is
a line of the file, and a model that has its line is not measured again.

**Coverage.** A model is diagnosed twice, on halves of its texts that share none. If the intervals
are right, that of the difference of the two means of a word contains zero for 95 of 100 words. It
is made from the ends of both (Zou and Donner 2008):

    m₁ − m₂  ±  √((distance of m₁ from its end)² + (distance of m₂ from its other end)²)

**Compare.** Two models of one data set and different families are compared on one half of the
texts. A claimed change is true if it has the same sign on the other half, where the word is cut out
of texts or put into them, and the models are asked by their ordinary call, without tokensieve.

**Orderings.** A diagnosis of one half orders the words in several ways. On the other half every
word is cut out of every text that contains it, by the same means. The total effect of the first
three words of each ordering, and the predicted classes that they change, are compared with those of
the best three words.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from machine import DATA, described, store
from planted import lines, rate
from planted_models import (
    FAMILIES,
    MAX_PIECES,
    Plan,
    PlantedModel,
    in_first_half,
    logits,
    plan,
    trained_model,
)
from tokensieve.diagnose import DiagnoseSettings, compare, diagnose
from tokensieve.read.reader import read_corpus

SETTINGS = DiagnoseSettings(max_length=MAX_PIECES, batch_size=32, untrained=False)
MEASURES = ("move", "use")
MIN_TEXTS = 5  # of the other half, that contain a word; with fewer its removal is not checked


def reported(options: argparse.Namespace) -> Iterator[Plan]:
    """The models of the part that are trained."""
    for number in range(options.limit):
        how = plan(options.part, number)
        if (options.models / how.name / "trained").exists():
            yield how


def total(path: Path) -> dict[str, Any]:
    """The sums of the counts in a file."""
    counts: Counter[str] = Counter()
    for line in lines(path):
        counts.update(line["counts"])
    return dict(counts)


def add_line(path: Path, name: str, counts: Mapping[str, float]) -> None:
    """Keep what one model counted."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"name": name, "counts": counts}) + "\n")
    print(name, counts, flush=True)


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
    done = {line["name"] for line in lines(options.out)}
    for how in reported(options):
        if how.name not in done:
            planted = trained_model(how, options.models, options.data)
            add_line(options.out, how.name, covered(planted))
    counts = total(options.out)
    for name in MEASURES:
        n = counts[f"{name}: intervals"]
        print(f"{name}: {rate(counts[f'{name}: contain the truth'], n)}")
    return counts


def covered(planted: PlantedModel) -> dict[str, int]:
    """How many intervals of the differences between two halves of the texts contain zero."""
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
    counts = {"models": 1}
    for name in MEASURES:
        columns = [name, f"{name}_low", f"{name}_high"]
        columns += [f"{column}_right" for column in columns]
        rows = both.drop_nulls(columns).to_dicts()
        counts[f"{name}: intervals"] = len(rows)
        counts[f"{name}: contain the truth"] = sum(is_covered(row, name) for row in rows)
    return counts


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
    done = {line["name"] for line in lines(options.out)}
    previous: dict[str, Plan] = {}
    for how in reported(options):
        before = previous.get(how.source)
        previous[how.source] = how
        if before is None or how.name in done:
            continue
        first = trained_model(before, options.models, options.data)
        second = trained_model(how, options.models, options.data)
        add_line(options.out, how.name, claimed(first, second))
    counts = total(options.out)
    for how_changed in ("removed", "inserted"):
        n = counts.get(f"{how_changed}: claims", 0)
        print(f"{how_changed}: {rate(counts.get(f'{how_changed}: true', 0), n)} true")
    return counts


def claimed(first: PlantedModel, second: PlantedModel) -> dict[str, int]:
    """How many changes are claimed between two models, and how many of these are true."""
    counts = Counter({"pairs of models": 1})
    read = (second.held[::2], second.labels[::2].tolist())
    models = {model.plan.name: (model.model, model.tokenizer) for model in (first, second)}
    found = compare(models, read_corpus(read), SETTINGS)
    for claim in found.words.to_dicts():
        truth = is_true(claim, first, second, second.held[1::2])
        if truth is None:
            counts["not checked"] += 1
            continue
        counts[f"{claim['how']}: claims"] += 1
        counts[f"{claim['how']}: true"] += truth
    return dict(counts)


@dataclass(frozen=True)
class CutWord:
    """What cutting a word out of all texts does: changes of log-odds, and of predicted classes."""

    total: float
    n_flips: int


def every_word_cut(planted: PlantedModel, texts: list[str]) -> dict[str, CutWord]:
    """What cutting each word of some texts does, for words in MIN_TEXTS of them or more."""
    texts_with = defaultdict(list)
    for place, text in enumerate(texts):
        for word in set(re.findall(r"\w+", text.lower())):
            if word.isalnum():
                texts_with[word].append(place)
    common = {word: places for word, places in texts_with.items() if len(places) >= MIN_TEXTS}
    before = logits(planted, texts)
    after = logits(
        planted,
        [without(texts[place], word) for word, places in common.items() for place in places],
    )
    ends = np.cumsum([len(places) for places in common.values()])
    cut_words = {}
    for (word, places), of_word in zip(common.items(), np.split(after, ends[:-1]), strict=True):
        n_flips = int(((of_word > 0) != (before[places] > 0)).sum())
        cut_words[word] = CutWord(float(np.abs(of_word - before[places]).sum()), n_flips)
    return cut_words


def orderings(options: argparse.Namespace) -> dict[str, float]:
    """How much of the best three words' effect the first three of each ordering have."""
    done = {line["name"] for line in lines(options.out)}
    for how in reported(options):
        if how.name not in done:
            planted = trained_model(how, options.models, options.data)
            add_line(options.out, how.name, ordered(planted))
    sums = total(options.out)
    for name in ORDERINGS:
        total_effect = sums[f"{name}: total effect"] / sums["models"]
        flips = sums[f"{name}: flips"] / sums["models with flips"]
        print(f"{name}: {total_effect:.0%} of the total effect, {flips:.0%} of the flips")
    return sums


ORDERINGS = {
    "artefact score": pl.col("artefact"),
    "move (inserting)": pl.col("move"),
    "use (removing)": pl.col("use"),
    "reliance (0.3)": pl.col("documents").sqrt() * pl.max_horizontal("use", "move"),
    "documents × use": pl.col("share"),
}


def ordered(planted: PlantedModel) -> dict[str, float]:
    """Of one model, the fraction of the best three words' effect that each ordering's have."""
    found = diagnose(
        planted.model,
        planted.tokenizer,
        planted.held[::2],
        planted.labels[::2].tolist(),
        SETTINGS,
    )
    cut_words = every_word_cut(planted, planted.held[1::2])
    rows = found.uses.filter((pl.col("kind") == "word") & pl.col("token").is_in(list(cut_words)))
    most_total = sum(sorted((word.total for word in cut_words.values()), reverse=True)[:3])
    most_flips = sum(sorted((word.n_flips for word in cut_words.values()), reverse=True)[:3])
    counts = {"models": 1.0, "models with flips": float(most_flips > 0)}
    for name, by in ORDERINGS.items():
        first = rows.sort(by, descending=True, nulls_last=True)["token"].head(3).to_list()
        counts[f"{name}: total effect"] = sum(cut_words[word].total for word in first) / most_total
        if most_flips:
            n_flips = sum(cut_words[word].n_flips for word in first)
            counts[f"{name}: flips"] = n_flips / most_flips
    return counts


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("coverage", "compare", "orderings"))
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--part", choices=tuple(FAMILIES), default="last")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=44)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    torch.set_num_threads(1)
    measures = {"coverage": coverage, "compare": changes, "orderings": orderings}
    measure = measures[options.what]
    store(f"planted-{options.what}", measure(options), described("torch", "transformers"))


if __name__ == "__main__":
    main()
