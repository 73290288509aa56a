"""The page docs/reproduced.md, from the runs that `tokensieve reproduce` has finished; nothing is run.

    python benchmarks/reproduced.py FOLDER [FOLDER]      (or: make reproduced)

A folder is one that `tokensieve reproduce --out` wrote, at either scale; unfinished seeds and readings are left out. Of several
folders of a scale, the first that holds an experiment counts. The page gets its pictures and tables beside it, and
benchmarks/results/reproduced.json keeps every figure with seconds, memory, version and seeds.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from dataclasses import replace
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from machine import DATA, described, store
from table_a import best, factor, settings_searched
from tokensieve import __version__
from tokensieve.report.pictures import draw, themed
from tokensieve.theory.experiments.experiment import DEFAULT, FIXED, Experiment, ReproduceSettings
from tokensieve.theory.experiments.result import (
    EXPLAINED,
    NOT_REPRODUCED,
    ExperimentResult,
    Reproduction,
    SeedRun,
)
from tokensieve.theory.experiments.run import _Task

HERE = Path(__file__).resolve().parent
RESULTS, DOCS = HERE / "results", HERE.parent / "docs"
HEAD = """# The paper reproduced

This page compares the experiments of Wu, Shevchenko, Oymak and Mondelli, "Attention with Trained Embeddings Provably Selects
Important Tokens" (NeurIPS 2025), with what `tokensieve reproduce` finds when it runs them again.

{tally}

{table}

"We see" gives medians over seeds; brackets after a verdict count the seeds that meet every criterion. Each row links to a section
with both scales and the data. Paper scale has the paper's vocabularies (7,766 words of IMDB, 5,424 of Yelp) and, unless the
table says otherwise, its dimension d = 2048.

- The *score* of a word s is Eₛᵀp, which decides how much attention it gets. Its *value* is Eₛᵀv, what it adds to the prediction.
- *Rank correlations* are Spearman's, over bins of words: of values with the posterior difference P(1|s) − P(0|s), of scores with
  its size. *V-shaped* scores are higher for words typical of either class. *Spread* is the standard deviation within bins.
- **Reproduced** means that more than half of the seeds met every criterion. The criteria are ours, fixed on {fixed}, when only
  version 0.1's figures for seed 0 were known; so seed 0 is the least independent of them.
- **Reproduced under another interpretation** means that they met them with another choice where the paper leaves one open. One
  *added later* was added after the first results had been seen.
- In the sections, rows named *values* or *scores* are rank correlations. Brackets give the range over seeds, and ✗ marks a
  criterion missed in at least half of them.
"""
SCALES = {"quick": "Quick scale", "paper": "Paper scale"}
WORDS: dict[str, dict[str, Any]] = tomllib.loads(
    (HERE / "reproduced.toml").read_text(encoding="utf-8")
)
ASKED = tomllib.loads(
    resources("tokensieve.theory.experiments").joinpath("reviews.toml").read_text(encoding="utf-8")
)["asked"]


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


def joined(studies: list[Reproduction]) -> list[Reproduction]:
    """One study for each scale; an experiment that several folders hold is taken from the first."""
    out: dict[str, Reproduction] = {}
    for study in studies:
        first = out.setdefault(study.settings["scale"], study)
        both = {result.id: result for result in (*study.results, *first.results)}
        results = tuple(
            both[experiment.id] for experiment in Experiment.select() if experiment.id in both
        )
        runs = [run for result in results for run in result.runs[DEFAULT]]
        settings = {
            **first.settings,
            "seeds": " ".join(map(str, sorted({run.seed for run in runs}))),
        }
        seconds = {"experiments": sum(result.seconds for result in results)}
        out[study.settings["scale"]] = replace(
            first, results=results, settings=settings, seconds=seconds
        )
    return list(out.values())


def table(studies: list[Reproduction]) -> str:
    """Experiment × (what the paper shows, what we see, the verdict at each scale, picture), a few words in each cell."""
    heads = [
        "Experiment",
        "The paper shows",
        "We see",
        *(SCALES[study.settings["scale"]] for study in studies),
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for result in studies[0].results:
        words, goal = WORDS[result.id], f"#{anchor(result)}"
        sees, verdicts = [], []
        for study in studies:
            there = found(study, result.id)
            d = result.experiment.settings[study.settings["scale"]].get("d")
            small = (
                f" (d = {d})"
                if d not in (None, 2048) and study.settings["scale"] == "paper" and there
                else ""
            )
            verdicts.append(verdict(there) + small)
            if there is not None:
                medians = (Spread([np.median(values)]) for values in figures(there, DEFAULT))
                sees.append(
                    f"{study.settings['scale'].capitalize()}: {words['sees'].format(*medians)}"
                )
        shown = f'<img src="{picture_name(studies[0], result)}.svg" alt="our picture" width="140">'
        cells = [f"[{words['name']}]({goal}) {shown}", words["shows"], "<br>".join(sees), *verdicts]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


class Spread:
    """The median of a figure over seeds, with the least and the largest in brackets if they look different."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __format__(self, how: str) -> str:
        middle, low, high = (
            format(float(of(self.values)), how).replace("-", "−") for of in (np.median, min, max)
        )
        between = " to " if low.startswith("−") else "–"
        return middle if low == high else f"{middle} ({low}{between}{high})"


def figures(result: ExperimentResult, reading: str) -> list[list[float]]:
    """The figures that `WORDS` names, in every seed."""
    return [
        values for one, values, _ in result.over_seeds(reading) if one.has_bounds or one.prominent
    ]


def found(study: Reproduction, id: str) -> ExperimentResult | None:
    """An experiment's result at a scale; None where it was not run."""
    return next((one for one in study.results if one.id == id), None)


def verdict(result: ExperimentResult | None, long: bool = False) -> str:
    """The verdict, with the seeds that meet it, and the reading that it rests on or what we see instead."""
    if result is None:
        return "not run"
    name, first = str(result.explained_by), str(result.met().as_counts)
    if result.verdict == EXPLAINED:
        late = ", added later" * later(result.experiment, name)
        seeds = (
            f"{result.met(name).as_counts} seeds; {first} under the default"
            if long
            else f"{result.met(name).as_counts}{late}"
        )
        return f"**reproduced under interpretation** *{name}* ({seeds})"
    if result.verdict == NOT_REPRODUCED:
        return f"**not reproduced** ({first}{' seeds' * long})" + (
            f": {missed(result)}" if not long else ""
        )
    return f"**{result.verdict}** ({first}{' seeds' * long})"


def missed(result: ExperimentResult) -> str:
    """The criterion that most seeds miss: the figure, its median and what was asked."""
    if "instead" in WORDS[result.id]:
        return WORDS[result.id]["instead"].format(*map(np.median, figures(result, DEFAULT)))
    shown = [row for row in result.over_seeds() if row[0].has_bounds or row[0].prominent]
    rows = zip(shown, WORDS[result.id]["figures"].items(), strict=True)
    (one, values, _), (label, how) = min(
        (row for row in rows if row[0][0].has_bounds), key=lambda row: row[0][2] / len(row[0][1])
    )
    value, low, high = (
        format(x, how) if x is not None else "" for x in (np.median(values), one.low, one.high)
    )
    asked = f"at most {high}" if not low else f"at least {low}" if not high else f"{low} to {high}"
    return f"{label[0].lower()}{label[1:]}: {value} instead of {asked}".replace(" -", " −")


def tally(study: Reproduction) -> str:
    """How many experiments are reproduced, and on how many seeds that rests."""
    counts = [
        f"{n} {'reproduced under another interpretation' if name == EXPLAINED else name}"
        for name, n in study.tally().items()
        if n
    ]
    left = len(WORDS) - len(study.results)
    counts += [f"{left} not run"] * bool(left)
    runs = sorted({result.met().of for result in study.results})
    seeds = (
        f"{runs[0]} to {runs[-1]} seeds"
        if len(runs) > 1
        else f"{runs[0]} seed{'s' * (runs[0] > 1)}"
    )
    return f"- **{SCALES[study.settings['scale']]}, {seeds}:** {', '.join(counts)} (of {len(WORDS)} experiments)."


def anchor(result: ExperimentResult) -> str:
    """The address that Markdown gives the section's title."""
    kept = (c for c in result.experiment.title.lower() if c.isalnum() or c in " -")
    return "".join(kept).replace(" ", "-")


def picture_name(study: Reproduction, result: ExperimentResult) -> str:
    return f"pictures/reproduced/{result.id}-{study.settings['scale']}"


def section(id: str, studies: list[Reproduction]) -> str:
    """The verdicts, what the paper reports, what was asked, what we see at each scale, the readings, the picture and the data."""
    results = [(SCALES[study.settings["scale"]], found(study, id), study) for study in studies]
    words, ran = (
        WORDS[id],
        [(scale, result, study) for scale, result, study in results if result is not None],
    )
    e = ran[0][1].experiment
    verdicts = []
    for scale, result, study in results:
        d = e.settings[study.settings["scale"]].get("d")
        size = f" (d = {d})" if d and result else ""
        verdicts.append(f"{scale}{size}: {verdict(result, long=True)}.")
    lines = [f"## {e.title}", " ".join(verdicts)]
    lines += [f"The paper: {words['paper']}", figure_table(ran)]
    items, others = [], []
    for scale, result, _ in ran:
        for name in list(result.runs)[1:]:
            if result.verdict == EXPLAINED and name == result.explained_by:
                items.append(f"Interpretation *{name}*: {reading(e, name)}")
            else:
                others.append(f"*{name}* {result.met(name).as_counts} ({scale.lower()})")
    items = list(dict.fromkeys(items))
    items += [
        "Seeds that meet every criterion under other interpretations: " + ", ".join(others) + "."
    ] * bool(others)
    items += [*([words["note"]] if "note" in words else []), *more_of(id, ran), *restarts(id)]
    items += scale_of_table_a() if id == "key-query" else []
    picture = f"![{words['name']}: {words['shows']}]({picture_name(ran[0][2], ran[0][1])}.svg)"
    more = [
        f"[picture at {scale.lower()}]({picture_name(study, result)}.svg)"
        for scale, result, study in ran[1:]
    ]
    data = [
        f"[figures of every seed](pictures/reproduced/{id}.csv)",
        f"[bins](pictures/reproduced/{id}-bins.csv)",
        *more,
    ]
    said = ["\n".join(f"- {item}" for item in items)] * bool(items)
    return "\n\n".join([*lines, *said, picture, "Data: " + ", ".join(data) + "."])


def figure_table(ran: list[tuple[str, ExperimentResult, Reproduction]]) -> str:
    """A row for each figure: what was asked, the paper's, and ours at each scale, also under the reading that meets it."""
    id, columns = ran[0][1].id, []
    for scale, result, _ in ran:
        columns.append((scale, result.over_seeds()))
        if result.verdict == EXPLAINED:
            columns.append(
                (f"{scale}, *{result.explained_by}*", result.over_seeds(str(result.explained_by)))
            )
    columns = [
        (head, [row for row in rows if row[0].has_bounds or row[0].prominent])
        for head, rows in columns
    ]
    printed = any(one.paper is not None for one, _, _ in columns[0][1])
    heads = ["Figure", "Required", *(["Paper"] * printed), *(head for head, _ in columns)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for i, (label, how) in enumerate(WORDS[id]["figures"].items()):
        one = columns[0][1][i][0]
        ends = [
            None if x is None else format(x, how).replace("-", "−") for x in (one.low, one.high)
        ]
        asked = (
            "–"
            if ends == [None, None]
            else f"≤ {ends[1]}".replace("≤ −0.00", "< 0")
            if ends[0] is None
            else f"≥ {ends[0]}"
        )
        cells = [label, asked if None in ends else f"{ends[0]} to {ends[1]}"]
        cells += ["–" if one.paper is None else format(one.paper, how).replace("-", "−")] * printed
        for _, rows in columns:
            this, values, passed = rows[i]
            cells.append(
                f"{Spread(values):{how}}" + " ✗" * (this.has_bounds and passed <= len(values) / 2)
            )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def reading(e: Experiment, name: str) -> str:
    """What a reading changes, and whether it was added later."""
    why = (
        WORDS[e.id].get("why", {}).get(name)
        or next(one["why"] for one in e.readings if one["name"] == name) + "."
    )
    return str(why) + " Added later." * later(e, name)


def later(e: Experiment, name: str) -> bool:
    return any("later" in one for one in e.readings if one["name"] == name)


def reviewers(studies: list[Reproduction]) -> str:
    """Each question of the reviewers, the authors' answer, our experiment and its verdicts, in one table."""
    scales = " / ".join(SCALES[study.settings["scale"]].lower() for study in studies)
    lines = [
        "## What the reviewers asked",
        "",
        f"| Reviewer | Question | The authors' answer, in our words | Our result ({scales}) |",
    ]
    lines.append("|---|---|---|---|")
    for one in ASKED:
        ours = one.get("ours", "")
        if not ours:
            there = [found(study, one["experiment"]) for study in studies]
            outcome = " / ".join(result.verdict if result else "not run" for result in there)
            title = next(result for result in there if result is not None)
            ours = f"[{WORDS[one['experiment']]['name']}](#{anchor(title)}): " + outcome.replace(
                EXPLAINED, "under another interpretation"
            )
        lines.append(f"| {one['who']} | {one['question']} | {one['answer']} | {ours} |")
    return "\n".join(lines)


def tables(id: str, studies: list[Reproduction]) -> dict[str, pl.DataFrame]:
    """Every figure of every seed and reading; and the bins or curves of the picture, over seeds."""
    rows, bins = [], []
    for study in studies:
        result, scale = found(study, id), study.settings["scale"]
        if result is None:
            continue
        for name, runs in result.runs.items():
            for run in runs:
                for one in (*run.measurements, *run.accuracy):
                    said = {
                        "scale": scale,
                        "reading": name,
                        "seed": run.seed,
                        "figure": one.name,
                        "value": one.value,
                    }
                    said |= {
                        "least": one.low,
                        "most": one.high,
                        "paper": one.paper,
                        "best_possible": one.ceiling,
                    }
                    rows.append(said | {"met": one.passed if one.has_bounds else None})
        for name, one in result.tables.items():
            if name.startswith("bins") or "by" in one.columns:
                bins.append(
                    one.select(pl.lit(scale).alias("scale"), pl.lit(name).alias("table"), pl.all())
                )
    schema = dict.fromkeys(("value", "least", "most", "paper", "best_possible"), pl.Float64)
    every = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=schema)
    return {f"{id}.csv": every, f"{id}-bins.csv": pl.concat(bins, how="diagonal_relaxed")}


def more_of(id: str, ran: list[tuple[str, ExperimentResult, Reproduction]]) -> list[str]:
    """What the runs show beyond the figures of the table: medians, or the least and the largest, at each scale."""
    out = []
    for scale, result, _ in ran:
        runs, shapes = result.runs[DEFAULT], result.tables.get("shapes", pl.DataFrame())
        every = {one.name: one for run in runs for one in (*run.measurements, *run.accuracy)}
        medians = {
            name: float(
                np.median(
                    [
                        m.value
                        for run in runs
                        for m in (*run.measurements, *run.accuracy)
                        if m.name == name
                    ]
                )
            )
            for name in every
        }
        if id in ("two-layer", "key-query"):
            early = [
                f"{x:.2f}"
                for name, x in medians.items()
                if "least validation loss: Spearman of E_sᵀp" in name
            ]
            out.append(
                f"{scale}: at the lowest validation loss, scores have a rank correlation of {' and '.join(early)}"
            )
        if id == "frozen":
            gaps = [
                f"{medians[f'{source}, frozen, larger steps: test accuracy at best']:.0%} on {source} (trained: "
                f"{medians[f'{source}, trained: test accuracy at best']:.0%})"
                for source in ("IMDB", "Yelp")
            ]
            out.append(
                f"{scale}: with larger steps, untrained embeddings reach {' and '.join(gaps)}"
            )
        if id == "dimension" or (id == "beyond" and scale == SCALES["paper"]):
            kept = shapes if "v" not in shapes.columns else shapes.filter(pl.col("v") == "fixed")
            sizes = sorted(kept["d"].unique().to_list())
            at = sizes[0] if id == "dimension" else sizes[-1]
            ends = [
                f"{x.min():.2f} to {x.max():.2f} ({what}s)"
                for what in ("value", "score")
                if len(
                    x := kept.filter(
                        pl.col("d") == at, pl.col("by").str.starts_with(f"{what}_spearman")
                    )["value"]
                )
            ]
            fixed = "with v fixed, " if id == "beyond" else ""
            out.append(
                f"{scale}: {fixed}d = {', '.join(map(str, sizes))} were run; with d = {at} rank correlations are {', '.join(ends)}"
            )
    moment = ["The table shows the end of training"] if id in ("two-layer", "key-query") else []
    cause = ["So the gap depends on the step size"] if id == "frozen" else []
    return [". ".join([*moment, *out, *cause]) + "."] * bool(out)


def readings(studies: list[Reproduction]) -> str:
    """What each reading that was run changes, and whether it was added after figures had been seen."""
    lines = [
        "## Interpretations",
        "",
        "| Experiment | Interpretation | What it changes | Added |",
        "|---|---|---|---|",
    ]
    for id, words in WORDS.items():
        ran = {
            name: None
            for study in studies
            if (one := found(study, id))
            for name in list(one.runs)[1:]
        }
        experiment = next(one for study in studies if (one := found(study, id))).experiment
        for name in ran:
            added = "later" if later(experiment, name) else "beforehand"
            what = reading(experiment, name).removesuffix(" Added later.").removesuffix(".")
            lines.append(f"| {words['name']} | *{name}* | {what} | {added} |")
    return "\n".join(lines)


def restarts(id: str) -> list[str]:
    """What benchmarks/restarts.py found, where it has been run."""
    if not (RESULTS / "restarts.json").exists():
        return []
    rows = [
        one
        for one in json.loads((RESULTS / "restarts.json").read_text())["figures"]
        if one["experiment"] == id
    ]
    out = []
    for scale, seed in sorted({(one["scale"], one["seed"]) for one in rows}):
        these = [one for one in rows if (one["scale"], one["seed"]) == (scale, seed)]
        met = sum(one["passed"] for one in these)
        said = f"{len(these)} restarts of seed {seed} at {scale} scale with sums in another order:"
        spread = [[one["figures"][name][0] for one in these] for name in these[0]["figures"]]
        widest = max(max(values) - min(values) for values in spread)
        same = (
            "with identical figures"
            if widest == 0
            else f"with figures that differ by at most {widest:.0e}"
        )
        out.append(f"{said} {met} meet every criterion, {same}.")
    return out


def scale_of_table_a() -> list[str]:
    """What benchmarks/table_a.py found, where it has been run."""
    if not (RESULTS / "table_a.json").exists():
        return []
    kept = json.loads((RESULTS / "table_a.json").read_text())["runs"]
    searched = [
        one
        for one in settings_searched()
        if any(one == run["setting"] and run["seed"] == 100 for run in kept)
    ]
    chosen = best(kept)
    if chosen is None or not searched:
        return []
    setting, row = chosen
    confirmed = [
        run["epochs"][row["epoch"] - 1]
        for run in kept
        if run["setting"] == setting and run["seed"] != 100
    ]
    held = sum(there["shape"] and factor(there) <= 2 for there in confirmed)
    others = f" With other seeds {held} of {len(confirmed)} match." if confirmed else ""
    outcome = (
        "matches both"
        if factor(row) <= 2
        else f"has the shape but is off in scale by a factor of {factor(row):.1f}"
    )
    sought = f"we searched {len(searched)} training settings, fixed beforehand, for shape and scale within a factor of two"
    return [f"Scale: {sought}. The nearest {outcome}.{others}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--note", default="", help="a sentence on how the runs were made, for the end of the page"
    )
    options = parser.parse_args()
    studies = joined([finished(folder) for folder in options.folders])
    machine, made = described("torch", "numba"), []
    for study in studies:
        peak = max(
            run.megabytes
            for result in study.results
            for runs in result.runs.values()
            for run in runs
        )
        few = [
            f"{result.id} {n}"
            for result in study.results
            if (n := len(result.runs[DEFAULT])) < len(study.settings["seeds"].split())
        ]
        fewer = f" (fewer for {', '.join(few)})" if few else ""
        made.append(
            f"{SCALES[study.settings['scale']]}: seeds {study.settings['seeds']}{fewer}; {study.seconds['experiments']:,.0f} s for "
            f"all runs one after the other, at most {peak:,.0f} MB."
        )
    place, pictures = DOCS / "pictures" / "reproduced", []
    place.mkdir(parents=True, exist_ok=True)
    for study in studies:
        for result in study.results:
            pictures += [
                replace(one, name=picture_name(study, result).removeprefix("pictures/"))
                for one in result.pictures()
            ]
    for name, files in draw(pictures).items():
        (DOCS / "pictures" / f"{name}.svg").write_text(themed(files["svg"]), encoding="utf-8")
    for id in WORDS:
        for name, one in tables(id, studies).items():
            one.write_csv(place / name, float_precision=6)
    head = HEAD.format(tally="\n".join(map(tally, studies)), table=table(studies), fixed=FIXED)
    how = " ".join([*made, *([options.note] if options.note else []), f"Made with {machine}."])
    sections = [section(result.id, studies) for result in studies[0].results]
    whole = [
        head.strip(),
        *sections,
        reviewers(studies),
        readings(studies),
        (HERE / "readings.md").read_text(encoding="utf-8").strip(),
        how,
        "",
    ]
    (DOCS / "reproduced.md").write_text("\n\n".join(whole), encoding="utf-8")
    store("reproduced", {study.settings["scale"]: study.to_dict() for study in studies}, machine)


if __name__ == "__main__":
    main()
