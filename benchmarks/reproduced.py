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

from machine import DATA, described, store
from table_a import best, factor, settings_searched
from tokensieve import __version__
from tokensieve.blocks import Picture, Report, Section, Text
from tokensieve.report.markdown import _safe, markdown
from tokensieve.report.pictures import draw, themed
from tokensieve.reproduce import report as wording
from tokensieve.reproduce.experiment import DEFAULT, ReproduceSettings, select_experiments
from tokensieve.reproduce.result import ExperimentResult, Reproduction, SeedRun
from tokensieve.reproduce.run import _Task
from tokensieve.wording import subscripts

RESULTS = Path(__file__).resolve().parent / "results"
DOCS = Path(__file__).resolve().parents[1] / "docs"
HEAD = """# The paper reproduced

The experiments of Wu, Shevchenko, Oymak and Mondelli, "Attention with Trained Embeddings Provably Selects Important Tokens"
(NeurIPS 2025), run by one command: `tokensieve reproduce`. Each row links to a section with the picture in full.
[What does not reproduce at first, and why](readings.md) looks at the other readings of what the paper leaves open.
"""


def finished(folder: Path) -> Reproduction:
    """What a folder holds of this version's runs."""
    scales: tuple[Literal["quick", "paper"], ...] = ("quick", "paper")
    for scale in scales:
        results, seeds = [], set()
        options = ReproduceSettings(data=DATA, scale=scale)
        for experiment in select_experiments([]):
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
    """Experiment × (the paper, what we see and the verdict at each scale, picture)."""
    heads = ["Experiment", "The paper shows"]
    for study in studies:
        heads += [f"We see ({study.settings['scale']})", "Verdict"]
    lines = [f"| {' | '.join([*heads, 'Picture'])} |", "|---" * (len(heads) + 1) + "|"]
    for result in studies[0].results:
        cells = [
            f"[{result.id}](#{anchor(result)})",
            _safe(subscripts(wording._paper_shows(result.experiment))),
        ]
        for study in studies:
            found = next((one for one in study.results if one.id == result.id), None)
            cells += ["–", "not run"] if found is None else [_safe(subscripts(said)) for said in seen(found)]
        lines.append(f"| {' | '.join(cells)} | ![]({picture_name(studies[0], result)}.svg) |")
    return "\n".join(lines)


def seen(result: ExperimentResult) -> tuple[str, str]:
    return result.in_words(), wording._verdict_cell(result)


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
        section = wording._section(result)
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
    out.append(wording._reviewers(studies[0]))
    out.append(Section("How to read this page", tuple(Text(subscripts(text)) for text in wording._HOW_TO_READ)))
    text = markdown(Report("reproduce", "", "", tuple(out)))
    return text[text.index("## ") :], pictures


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
    studies = [finished(folder) for folder in parser.parse_args().folders]
    machine = described("torch", "numba")
    made = []
    for study in studies:
        seconds = study.seconds["experiments"]
        peak = max(run.megabytes for result in study.results for runs in result.runs.values() for run in runs)
        seeds = ", ".join(f"{result.id} {len(result.runs[DEFAULT])}" for result in study.results)
        made.append(
            f"Scale {study.settings['scale']}: {wording._headline(study)} Seeds of each experiment: {seeds}. All runs one after "
            f"the other took {seconds:,.0f} s, the largest process {peak:,.0f} MB."
        )
    text, pictures = sections(studies)
    (DOCS / "pictures" / "reproduced").mkdir(parents=True, exist_ok=True)
    for name, files in draw(pictures).items():
        (DOCS / "pictures" / f"{name}.svg").write_text(themed(files["svg"]), encoding="utf-8")
    whole = [HEAD, *made, table(studies), text.strip(), f"Made with {machine}.", ""]
    (DOCS / "reproduced.md").write_text("\n\n".join(whole), encoding="utf-8")
    store("reproduced", {study.settings["scale"]: study.to_dict() for study in studies}, machine)


if __name__ == "__main__":
    main()
