"""What a reproduction says: a table of verdicts, what the reviewers asked, and a short section for each experiment."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files

import polars as pl

from tokensieve.blocks import Block, Column, Picture, Report, Section, Table, Text
from tokensieve.reproduce.bench import TITLES
from tokensieve.reproduce.experiment import DEFAULT, FIXED, Experiment, Values
from tokensieve.reproduce.measures import SYMBOLS
from tokensieve.reproduce.result import (
    EXPLAINED,
    NOT_RUN,
    REPRODUCED,
    ExperimentResult,
    Reproduction,
)
from tokensieve.wording import subscripts

_PAPER = "Attention with Trained Embeddings Provably Selects Important Tokens (Wu et al., NeurIPS 2025)"
_HOW_TO_READ = (
    f"Criteria and readings were written down on {FIXED}, when only version 0.1's figures for seed 0 were known; a reading that "
    "was added later is marked. An experiment is reproduced when every criterion is met in more than half of the seeds. Figures "
    "are medians over seeds, with the least and the largest in brackets.",
    "The posterior difference P(1|s) − P(0|s) of a token type is how much more often it occurs in documents of the second class. "
    "E_sᵀv, its value, is what it adds to the prediction where it is attended to; E_sᵀp, its score, decides how much it is "
    "attended to. Bins are the paper's own; bins of fewer than three types count only for table C.",
    "The paper's rows are noisy themselves. The best possible correlation is that of the best smooth curve (a line, a sign or a "
    "tanh for values, |x − c|^γ for scores) with the paper's row; a correlation must reach nine tenths of it.",
)


def compose_report(study: Reproduction) -> Report:
    """The report of a reproduction."""
    scale, seeds = study.settings["scale"], study.settings["seeds"].split()
    most = study.settings.get("documents_at_most")
    trial = f" This is a trial with at most {most} documents of each data set." if most else ""
    longer = " Run it at the paper's sizes with --scale paper." if scale == "quick" else ""
    lead = f"Scale {scale}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}.{trial}{longer}"
    rows = [
        (result.id, subscripts(_paper_shows(result.experiment)), subscripts(result.in_words()), _verdict_cell(result))
        for result in study.results
    ]
    heads = ("Experiment", "The paper shows", "We see", "Verdict")
    table = Table("What holds", tuple(map(Column, heads)), rows)
    said = tuple(Text(subscripts(text)) for text in _HOW_TO_READ)
    reading = Section("How to read this page", said, folded=True, only=("html", "markdown"))
    blocks: tuple[Block, ...] = (
        Text(lead, "lead"),
        table,
        *(_section(result) for result in study.results),
        *([_reviewers(study)] if len(study.results) > 1 else []),
        reading,
    )
    about = {**study.settings, "version": study.version, "date": study.date, "seconds": study.seconds}
    return Report("reproduce", _PAPER, _headline(study), blocks, about)


def describe_experiments(experiments: Sequence[Experiment]) -> Report:
    """What each experiment claims, needs and takes, and its readings."""
    blocks: list[Block] = []
    for e in experiments:
        needs = ", ".join([*e.needs, *(["PyTorch"] if e.torch else [])]) or "nothing"
        takes = ", ".join(
            f"{scale} about {s:.0f} s" if s < 90 else f"{scale} about {s / 60:.0f} min"
            for scale, s in e.seconds.items()
        )
        blocks.append(Text(f"{e.id}: {e.title}. Needs {needs}; {takes} a seed.", "lead"))
        blocks.append(Text(f"The paper: {e.claim}; {e.paper}."))
        blocks.append(Text(f"Criterion, fixed on {FIXED}: {e.criterion}."))
        blocks += [Text(f"Reading {one['name']}: {e.why(one['name'])}.") for one in e.readings]
    blocks = [Text(subscripts(b.text), b.style) if isinstance(b, Text) else b for b in blocks]
    return Report("reproduce", _PAPER, f"{len(experiments)} experiments.", tuple(blocks))


def _headline(study: Reproduction) -> str:
    tally = {verdict: n for verdict, n in study.tally().items() if n}
    names = [{EXPLAINED: "reproduced under another reading"}.get(verdict, verdict) for verdict in tally]
    parts = [f"{n} {name}" for n, name in zip(tally.values(), names, strict=True)]
    total = sum(tally.values())
    if len(parts) == 1:
        return f"{'All ' if total > 1 else ''}{total} experiment{'s' * (total != 1)} {names[0]}."
    return f"Of {total} experiments, {', '.join(parts[:-1])} and {parts[-1]}."


def _paper_shows(experiment: Experiment) -> str:
    """The paper's figures where it gives some, else its claim."""
    return experiment.claim if experiment.paper.endswith(("without numbers", "no figures")) else experiment.paper


def _verdict_cell(result: ExperimentResult) -> str:
    if result.verdict == NOT_RUN:
        return NOT_RUN
    if result.verdict == EXPLAINED:
        name = str(result.explained_by)
        return f"reproduced under reading “{name}” ({_met(result, name)}; {_met(result)} as first read)"
    return f"{result.verdict} ({_met(result)})"


def _met(result: ExperimentResult, reading: str = DEFAULT) -> str:
    met = result.met(reading)
    return f"{met.counted} seed{'s' * (met.of != 1)}"


def _section(result: ExperimentResult) -> Section:
    e = result.experiment
    style = {REPRODUCED: "good", EXPLAINED: "good", NOT_RUN: "warning"}.get(result.verdict, "bad")
    said = [Text(subscripts(f"The paper: {e.claim} ({e.paper})."))]
    if result.verdict == NOT_RUN:
        said.append(Text(f"Not run: {result.problem}.", "warning"))
        return Section(e.title, tuple(said), anchor=e.id, only=("html", "markdown"))
    verdict = result.verdict_in_words
    said.append(Text(subscripts(f"{verdict[0].upper()}{verdict[1:]}. We see {result.in_words()}."), style))  # type: ignore[arg-type]
    name = str(result.explained_by)
    if result.verdict == EXPLAINED and result.in_words(name) != result.in_words():
        said.append(Text(subscripts(f"Under reading “{name}” we see {result.in_words(name)}.")))
    said.append(Text(subscripts(f"Criterion: {e.criterion}.")))
    rows: list[tuple[object, ...]] = []
    for one, values, passed in result.over_seeds():
        if one.judged:
            met = f"{passed} of {len(values)}"
            rows.append((subscripts(one.name), result.spread(values), one.bounds, one.paper, one.ceiling, met))
    paper, best = Column("The paper", "plain"), Column("Best possible", "plain", 3)
    columns = (Column("Figure"), Column("Ours"), Column("Criterion"), paper, best, Column("Seeds that meet it"))
    blocks: list[Block] = [*said, *_pictures(result), Table("What decides", columns, rows, only=("html",))]
    if len(result.runs) > 1:
        rows = [(name, subscripts(e.why(name)), _met(result, name)) for name in list(result.runs)[1:]]
        heads = (Column("Reading"), Column("What changes"), Column("Reproduced in"))
        blocks.append(Table("Other readings of what the paper leaves open", heads, rows))
    blocks += [Text(subscripts(note), "note") for note in e.notes]
    blocks.append(Text(f"Every bin and every seed: tables/{e.id}-*.csv and runs/{e.id}/.", "note"))
    return Section(e.title, tuple(blocks), anchor=e.id, only=("html", "markdown"))


def _reviewers(study: Reproduction) -> Section:
    """Each question of the reviewers, the authors' answer, and ours."""
    asked = tomllib.loads(files("tokensieve.reproduce").joinpath("reviews.toml").read_text(encoding="utf-8"))["asked"]
    by_id = {result.id: result for result in study.results}
    rows = []
    for one in asked:
        result = by_id.get(one.get("experiment", ""))
        if result is None and "ours" not in one:
            continue
        ours = one.get("ours") or (f"{_verdict_cell(result)}: {result.in_words()}" if result else "")
        rows.append((one["who"], one["question"], one["answer"], one.get("experiment"), subscripts(ours)))
    heads = ("Reviewer", "Asked", "The authors' answer, in our words", "Our experiment", "Our result")
    table = Table("", tuple(map(Column, heads)), rows, first=30)
    return Section("What the reviewers asked", (table,), only=("html", "markdown"))


def _pictures(result: ExperimentResult) -> list[Picture]:
    """One picture: panels of bins over token types, or lines, from the tables of the default reading."""
    first, tables = result.finished()[0].tables, result.tables
    rows: list[list[Values]] = []
    for name, table in tables.items():
        points = first.get("tokens" + name.removeprefix("bins"))
        if name.startswith("bins") and points is not None:
            part = name.removeprefix("bins").strip("-")
            part = TITLES.get(part, part.replace("-", " "))
            rows.append([_panel(part, of, table, points) for of in ("score", "value") if of in points.columns])
    if rows and max(map(len, rows)) == 1:
        rows = [[panel for row in rows for panel in row]]
    lines = next((table for table in tables.values() if "by" in table.columns), None)
    if lines is not None:  # against steps or dimensions: means over seeds with their range
        x, y = ("step", "test_accuracy") if "step" in lines.columns else ("d", "value")
        over = lines.group_by("by", x, maintain_order=True).agg(mean=pl.mean(y), least=pl.min(y), most=pl.max(y))
        names = {f"{of}_spearman": f"Spearman of {symbol}" for of, symbol in SYMBOLS.items()}
        by = pl.col("by").cast(pl.String).str.replace_many(names | {"test_accuracy": "test accuracy"})
        drawn = over.select("mean", "least", "most", x=x, by=by).to_dicts()
        label = "test accuracy" if y == "test_accuracy" else "Spearman, accuracy"
        rows = [[{"kind": "lines", "title": "", "x": x, "y": label, "lines": drawn, "log": x == "d"}]]
    if not rows:
        return []
    seeds = len(result.finished())
    caption = f"lines: range over {seeds} seeds" if seeds > 1 else "one seed"
    if lines is None:
        caption = "bin means and standard deviations over token types; grey: types"
        caption += f"; band: range of the means over {seeds} seeds" if seeds > 1 else ""
        if any("paper" in panel for row in rows for panel in row):
            caption += "; orange: the paper's means, on the right axis"
    title = result.experiment.title
    description = subscripts(f"{title}. {result.in_words()}.")
    return [Picture(result.id, "reproduce-panels", {"rows": rows}, title, caption, description, wide=True)]


def _panel(part: str, of: str, table: pl.DataFrame, tokens: pl.DataFrame) -> Values:
    """Bin means with their spread over a sample of the types, and the paper's means beside them."""
    x = "importance" if "importance" in tokens.columns else "posterior_difference"
    mean, sd = pl.col(f"{of}_mean"), pl.col(f"{of}_sd")
    shown = table.select("x", "few", mean=mean, low=mean - sd, high=mean + sd, least=f"{of}_low", most=f"{of}_high")
    sample = tokens.gather_every(max(1, -(-tokens.height // 300)))  # 300 types fill a panel
    panel: dict[str, object] = {"kind": "bins", "title": part, "x": x.replace("_", " "), "y": SYMBOLS[of]}
    panel |= {"bins": shown.to_dicts()}
    panel |= {"points": sample.select(x=pl.col(x).round(5), y=pl.col(of).round(4)).drop_nans().to_dicts()}
    if f"paper_{of}" in table.columns:
        panel["paper"] = table.select("x", y=f"paper_{of}").to_dicts()
    return panel
