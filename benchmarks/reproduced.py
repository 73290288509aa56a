"""The page docs/reproduced.md, from the runs that `tokensieve reproduce` has finished; nothing is run.

    python benchmarks/reproduced.py FOLDER [FOLDER]      (or: make reproduced)

A folder is one that `tokensieve reproduce --out` wrote, at either scale; unfinished seeds and readings are left out. The page gets
its pictures beside it, and benchmarks/results/reproduced.json keeps every figure with seconds, memory, version and seeds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from machine import DATA, described, store
from table_a import best, factor, settings_searched
from tokensieve import __version__
from tokensieve.blocks import Picture, Report, Section, Text
from tokensieve.report.markdown import markdown
from tokensieve.report.pictures import draw, themed
from tokensieve.reproduce.experiment import DEFAULT, FIXED, Experiment, ReproduceSettings
from tokensieve.reproduce.result import (
    EXPLAINED,
    HOW_TO_READ,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    ExperimentResult,
    Reproduction,
    SeedRun,
)
from tokensieve.reproduce.run import _Task
from tokensieve.wording import subscripts

HERE = Path(__file__).resolve().parent
RESULTS, DOCS = HERE / "results", HERE.parent / "docs"
HEAD = """# The paper reproduced

What holds of the experiments of Wu, Shevchenko, Oymak and Mondelli, "Attention with Trained Embeddings Provably Selects Important
Tokens" (NeurIPS 2025). One command runs them all: `tokensieve reproduce`.
"""
TERMS = f"""Four terms are enough to read the table. For each word the model learns a *score*, which decides how much attention
the word gets, and a *value*, which is what it adds to the prediction. The *posterior difference* of a word tells how much more
often it occurs in positive than in negative documents. Scores are *V-shaped* if words typical of either class score higher than
neutral words. Rank correlations are between averages over bins of similar words; 1 means exactly the expected order.

**Holds** means that every criterion was met in more than half of the seeds. **Holds under a reading** means that it was met only
after we settled differently something that the paper leaves open. The criteria are ours, written down on {FIXED}, when version
0.1's figures for seed 0 were known. Where the paper gives no figures, a verdict says only that these criteria were met.
[What does not reproduce at first, and why](#what-does-not-reproduce-at-first-and-why) looks at the other readings."""
# experiment: what the paper reports; what we find, with the placeholders of `Experiment.sees`
PLAIN = {
    "two-layer": (
        "Two layers of attention on IMDB and Yelp: values rise with the posterior difference, scores are V-shaped (figure 1).",
        "Rank correlations: values {0:.2f} (IMDB) and {2:.2f} (Yelp), scores {1:.2f} and {3:.2f}.",
    ),
    "synthetic": (
        "One layer on generated documents: the same shapes, irrelevant words near zero, little spread (figure 2).",
        "Rank correlations: values {0:.2f}, scores {1:.2f}. Values of irrelevant words are {2:.0%} of the largest bin average; the "
        "spread within bins is {3:.0%} of the range.",
    ),
    "one-layer": (
        "One layer on IMDB and Yelp: the same shapes, with more spread (figure 3).",
        "Rank correlations: values {0:.2f} (IMDB) and {2:.2f} (Yelp), scores {1:.2f} and {3:.2f}. The spread is not part of the "
        "verdict.",
    ),
    "key-query": (
        "Two layers with trained key and query matrices: V-shaped scores, rising values (table A).",
        "Correlation with the paper's table: {2:.2f} for scores, {4:.2f} for values. The verdict is about shape, not scale: our "
        "scores span {3:.2g} times the paper's range, our values {5:.2g} times.",
    ),
    "mlp": (
        "An MLP layer after the attention: scores stay V-shaped, values rise less steadily (table B).",
        "Correlation with the paper's scores: {1:.2f}. The MLP layer changes the rank correlation of values by {3:+.2f} "
        "(the paper's table: −0.34). The criterion asks only for a fall.",
    ),
    "multi-class": (
        "Four classes of Yelp ratings: a word's value for a class rises with its importance for that class (table C); the first "
        "gradient step has the slope of the formula.",
        "Correlation with the paper's table: {0:.2f} (class 2) and {3:.2f} (class 4). Rank correlation with importance: {2:.2f} "
        "and {5:.2f}. The first step has {6:.3f} times the slope of the formula.",
    ),
    "frozen": (
        "Untrained embeddings classify worse: accuracy about 72% and loss about 0.6, against 95% and 0.1 after training.",
        "Untrained embeddings reach {0:.0%} (loss {1:.2f}), trained ones {2:.0%} (loss {3:.2f}).",
    ),
    "one-step-only": (
        "With embeddings after one gradient step, the spread within bins is about 8 times (values) and 6 times (scores) smaller "
        "than after full training.",
        "It is {0:.1f} and {2:.1f} times smaller, but {1:.1f} and {3:.1f} times larger relative to the range of the averages.",
    ),
    "diagnosis": (
        "Without trained embeddings, values and scores hardly correlate with importance (no figures).",
        "Rank correlations at the random start: {0:.2f} (values) and {1:.2f} (scores). With frozen embeddings they are "
        "{2:.0%} and {3:.0%} of those of the trained model.",
    ),
    "dimension": (
        "Only dimension 2048 was run. A reviewer asked for others.",
        "From dimension 64 up, rank correlations are at least {0:.3f} (values) and {1:.3f} (scores). The relative error of the "
        "one-step formula falls like the dimension to the power {2:.2f}; the theory suggests −0.5.",
    ),
    "beyond": (
        "No figures. Reviewers asked about data beyond the assumptions, such as words that matter only in combination.",
        "One gradient step classifies at least {0:.1%} correctly where single words decide, and {1:.1%} where only the combination "
        "of two words does (xor). With pairs of words as tokens it is at least {4:.1%}. The lowest rank correlations over the "
        "dimensions are {5:.3f} (values) and {6:.3f} (scores).",
    ),
}
# readings whose description in `tokensieve reproduce --list` assumes that one knows the experiment
READINGS = {
    (
        "multi-class",
        "within-noise",
    ): "most bins hold one to three words, so we ask for the rank correlation that a truly rising "
    "curve would show with so few",
    (
        "frozen",
        "stopping-time",
    ): "the paper's figures of the trained model are those on training documents, and the untrained "
    "model is read at the step of training where it is nearest to the paper's figures",
    ("beyond", "smaller-steps"): "a quarter of the step size, and dimensions from 64 up only",
}


def finished(folder: Path) -> Reproduction:
    """What a folder holds of this version's runs."""
    scales: tuple[Literal["quick", "paper"], ...] = ("quick", "paper")
    for scale in scales:
        results, seeds = [], set()
        options = ReproduceSettings(data=DATA, scale=scale)
        for experiment in Experiment.select():
            runs: dict[str, tuple[SeedRun, ...]] = {}
            for reading in (DEFAULT, *(one["name"] for one in experiment.readings)):
                place = folder / "runs" / experiment.id / reading.replace("/", "-")
                there = sorted(int(path.name) for path in place.glob("*") if path.name.isdigit())
                kept = [_Task(experiment, reading, seed, options, folder).kept() for seed in there]
                done = tuple(run for run in kept if run is not None)
                if done:
                    runs[reading] = done
                    seeds |= {run.seed for run in done}
            if DEFAULT in runs:
                results.append(ExperimentResult(experiment, runs))
        if results:
            said = {"scale": scale, "seeds": " ".join(map(str, sorted(seeds))), "seed": min(seeds)}
            seconds = {"experiments": sum(result.seconds for result in results)}
            return Reproduction(tuple(results), said, __version__, "", seconds)
    raise SystemExit(f"{folder} holds no finished runs of tokensieve {__version__}")


def table(studies: list[Reproduction]) -> str:
    """Experiment × (what the paper reports, and at each scale what we find and whether it holds), in plain English."""
    heads = ["Experiment", "The paper reports"]
    for study in studies:
        heads += [f"We find ({study.settings['scale']} scale)", "Verdict"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for result in studies[0].results:
        cells = [f"[{result.id}](#{anchor(result)})", PLAIN[result.id][0]]
        for study in studies:
            found = next((one for one in study.results if one.id == result.id), None)
            cells += ["–", "not run"] if found is None else [plainly(found), holds(found)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


class Spread:
    """The median of a figure over seeds, with the least and the largest in brackets if they look different."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __format__(self, how: str) -> str:
        middle, low, high = (format(float(of(self.values)), how).replace("-", "−") for of in (np.median, min, max))
        return middle if low == high else f"{middle} [{low} to {high}]"


def in_words(result: ExperimentResult, reading: str) -> str:
    """`PLAIN` with the figures of a reading."""
    shown = [Spread(values) for one, values, _ in result.over_seeds(reading) if one.judged or one.prominent]
    return PLAIN[result.id][1].format(*shown)


def plainly(result: ExperimentResult) -> str:
    """What we find by the default reading, and what changes under the reading that the verdict rests on."""
    first, name = in_words(result, DEFAULT), result.explained_by
    if result.verdict != EXPLAINED or name is None:
        return first
    other = ". ".join(one for one in in_words(result, name).split(". ") if one not in first.split(". "))
    return f"{first} Under the reading, {other[0].lower()}{other[1:]}" if other else first


def holds(result: ExperimentResult) -> str:
    """The verdict: whether it holds, in how many seeds, and the reading if it rests on one."""

    def seeds(reading: str = DEFAULT) -> str:
        met = result.met(reading)
        return f"{met.counted} seed{'s' * (met.of != 1)}"

    name = result.explained_by
    if result.verdict != EXPLAINED or name is None:
        words = {REPRODUCED: "**holds** (in {})", NOT_REPRODUCED: "**does not hold** (criteria met in {})"}
        return words[result.verdict].format(seeds()) if result.verdict in words else result.verdict
    e = result.experiment
    why = READINGS.get((e.id, name)) or e.why(name)
    later = any("later" in one for one in e.readings if one["name"] == name)
    late = " This reading was added after the first results." if later else ""
    return f"**holds under a reading** (in {seeds(name)}; in {seeds()} as first read): {why}.{late}"


def tally(study: Reproduction) -> str:
    """How many experiments hold, and on how many seeds that rests."""
    counts = {verdict: n for verdict, n in study.tally().items() if n}
    words = {
        REPRODUCED: ("hold", "holds"),
        EXPLAINED: ("hold under a reading", "holds under a reading"),
        NOT_REPRODUCED: ("do not hold", "does not hold"),
        NOT_RUN: ("were not run", "was not run"),
    }
    parts = ", ".join(f"{n} {words[verdict][n == 1]}" for verdict, n in counts.items())
    seeds = study.settings["seeds"].split()
    over = f"seeds {', '.join(seeds)}" if len(seeds) > 1 else f"seed {seeds[0]} only"
    ranges = " Figures are medians over seeds, with the least and the largest in brackets." if len(seeds) > 1 else ""
    return (
        f"At {study.settings['scale']} scale, with {over}: of {sum(counts.values())} experiments, {parts}.{ranges} The terms are "
        "explained below the table."
    )


def seen(result: ExperimentResult) -> tuple[str, str]:
    return result.in_words(), result.verdict_cell


def anchor(result: ExperimentResult) -> str:
    """The address that Markdown gives the section's title."""
    kept = (c for c in result.experiment.title.lower() if c.isalnum() or c in " -")
    return "".join(kept).replace(" ", "-")


def picture_name(study: Reproduction, result: ExperimentResult) -> str:
    return f"pictures/reproduced/{result.id}-{study.settings['scale']}"


def sections(studies: list[Reproduction]) -> tuple[str, list[Picture]]:
    """The sections of the first study, each with a sentence for the other scale, and the pictures they show."""
    pictures: list[Picture] = []
    out = []
    for result in studies[0].results:
        section = result.section()
        blocks: list[Any] = []
        for block in section.blocks:
            if isinstance(block, Picture):
                block = replace(block, name=picture_name(studies[0], result).removeprefix("pictures/"))
                pictures.append(block)
            blocks.append(block)
        for study in studies[1:]:
            for other in study.results:
                if other.id == result.id:
                    what, verdict = seen(other)
                    said = f"At {study.settings['scale']} scale: {verdict}. We see {what}."
                    blocks.insert(3, Text(subscripts(said)))
        blocks += [
            Text(said) for said in (*restarts(result.id), *(scale_of_table_a() if result.id == "key-query" else []))
        ]
        out.append(Section(section.title, tuple(blocks)))
    out.append(studies[0].reviewers())
    out.append(Section("How to read this page", tuple(Text(subscripts(text)) for text in HOW_TO_READ)))
    text = markdown(Report("reproduce", "", "", tuple(out)))
    explained, reviewers = (HERE / "readings.md").read_text(encoding="utf-8"), "## What the reviewers asked"
    return text[text.index("## ") :].replace(reviewers, f"{explained}\n{reviewers}", 1), pictures


def restarts(id: str) -> list[str]:
    """What benchmarks/restarts.py found, where it has been run."""
    if not (RESULTS / "restarts.json").exists():
        return []
    rows = [one for one in json.loads((RESULTS / "restarts.json").read_text())["figures"] if one["experiment"] == id]
    out = []
    for scale, seed in sorted({(one["scale"], one["seed"]) for one in rows}):
        these = [one for one in rows if (one["scale"], one["seed"]) == (scale, seed)]
        met = sum(one["passed"] for one in these)
        said = f"{len(these)} restarts of seed {seed} at {scale} scale that differ in the order of sums alone:"
        out.append(f"{said} {met} meet every criterion.")
        for name in these[0]["figures"]:
            values = [one["figures"][name][0] for one in these]
            if max(values) - min(values) > 0.01:
                out[-1] += f" {subscripts(name)}: {min(values):.2f} to {max(values):.2f}."
    return out


def scale_of_table_a() -> list[str]:
    """What benchmarks/table_a.py found, where it has been run."""
    if not (RESULTS / "table_a.json").exists():
        return []
    kept = json.loads((RESULTS / "table_a.json").read_text())["runs"]
    searched = [one for one in settings_searched() if any(one == run["setting"] and run["seed"] == 100 for run in kept)]
    chosen = best(kept)
    if chosen is None or not searched:
        return []
    setting, row = chosen
    confirmed = [run["epochs"][row["epoch"] - 1] for run in kept if run["setting"] == setting and run["seed"] != 100]
    held = sum(there["shape"] and factor(there) <= 2 for there in confirmed)
    others = f" With other seeds {held} of {len(confirmed)} match." if confirmed else ""
    found = "matches shape and scale" if factor(row) <= 2 else "has the shape, not the scale"
    how = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in setting.items()
    )
    run_so_far = f"{len(searched)} of {len(settings_searched())} run"
    return [
        f"Scale: a search over training settings, written down beforehand ({run_so_far}), {found}: the nearest setting "
        f"({how}, epoch {row['epoch']}) is off by a factor of {factor(row):.1f} in the range that is further off.{others}"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--note", default="", help="a sentence on how the runs were made, for the end of the page")
    options = parser.parse_args()
    studies = [finished(folder) for folder in options.folders]
    machine = described("torch", "numba")
    made = []
    for study in studies:
        seconds = study.seconds["experiments"]
        peak = max(run.megabytes for result in study.results for runs in result.runs.values() for run in runs)
        seeds = ", ".join(f"{result.id} {len(result.runs[DEFAULT])}" for result in study.results)
        made.append(
            f"Runs at {study.settings['scale']} scale: seeds of each experiment: {seeds}. All runs one after the other took "
            f"{seconds:,.0f} s, the largest process {peak:,.0f} MB."
        )
    text, pictures = sections(studies)
    (DOCS / "pictures" / "reproduced").mkdir(parents=True, exist_ok=True)
    for name, files in draw(pictures).items():
        (DOCS / "pictures" / f"{name}.svg").write_text(themed(files["svg"]), encoding="utf-8")
    whole = [
        HEAD.strip(),
        *map(tally, studies),
        table(studies),
        TERMS,
        text.strip(),
        *made,
        *([options.note] if options.note else []),
        f"Made with {machine}.",
        "",
    ]
    (DOCS / "reproduced.md").write_text("\n\n".join(whole), encoding="utf-8")
    store("reproduced", {study.settings["scale"]: study.to_dict() for study in studies}, machine)


if __name__ == "__main__":
    main()
