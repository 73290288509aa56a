"""The report on one experiment: what the paper says, what we see, what decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from tokensieve.report.blocks import (
    PAGE,
    Block,
    Column,
    Picture,
    Section,
    Style,
    Table,
    Text,
)
from tokensieve.theory.experiments.data import TITLES
from tokensieve.theory.experiments.measures import SYMBOLS
from tokensieve.theory.experiments.result import (
    EXPLAINED,
    NOT_REPRODUCED,
    NOT_RUN,
    ExperimentResult,
)
from tokensieve.wording import subscripts

Panel = dict[str, object]  # of a picture, as report/pictures/studies.py draws it
MAX_POINTS = 300  # token types fill a panel


def experiment_section(result: ExperimentResult) -> Section:
    """What the paper says, what we see, what decides, and the other readings."""
    experiment = result.experiment
    blocks: list[Block] = [Text(subscripts(f"The paper: {experiment.claim} ({experiment.paper})."))]
    if result.verdict == NOT_RUN:
        blocks.append(Text(f"Not run: {result.problem}.", "warning"))
    else:
        blocks += [
            *_what_we_see(result),
            Text(subscripts(f"Criterion: {experiment.criterion}.")),
            *pictures(result),
            _deciding_figures(result),
        ]
        if result.other_readings:
            blocks.append(_other_readings(result))
        blocks += [Text(subscripts(note), "note") for note in experiment.notes]
        place = f"tables/{experiment.id}-*.csv and runs/{experiment.id}/"
        blocks.append(Text(f"Every bin and every seed: {place}.", "note"))
    return Section(experiment.title, tuple(blocks), anchor=experiment.id, only=PAGE)


def _what_we_see(result: ExperimentResult) -> list[Text]:
    """The verdict with our figures; those of the reading that explains it, if they differ."""
    style: Style = "bad" if result.verdict == NOT_REPRODUCED else "good"
    verdict = result.verdict_in_words
    sentence = f"{verdict[0].upper()}{verdict[1:]}. We see {result.in_words()}."
    texts = [Text(subscripts(sentence), style)]
    if result.verdict == EXPLAINED:
        name = str(result.explained_by)
        figures = result.in_words(name)
        if figures != result.in_words():
            sentence = f"Under interpretation “{name}” we see {figures}."
            texts.append(Text(subscripts(sentence)))
    return texts


def _deciding_figures(result: ExperimentResult) -> Table:
    """Every figure that has bounds, beside its criterion and the figure of the paper."""
    columns = (
        Column("Figure"),
        Column("Ours"),
        Column("Criterion"),
        Column("The paper", "plain"),
        Column("Best possible", "plain", 3),
        Column("Seeds that meet it"),
    )
    rows: list[tuple[object, ...]] = []
    for row in result.over_seeds():
        figure = row.figure
        if figure.has_bounds:
            seeds = f"{row.n_passed} of {len(row.values)}"
            name = subscripts(figure.name)
            rows.append((name, row.in_words, figure.bounds, figure.paper, figure.ceiling, seeds))
    return Table("What decides", columns, rows, only=("html",))


def _other_readings(result: ExperimentResult) -> Table:
    """What each other reading of the paper changes, and in how many seeds it meets the criteria."""
    columns = (Column("Interpretation"), Column("What changes"), Column("Reproduced in"))
    rows = [
        (name, subscripts(result.experiment.reading(name).note), result.seeds_met(name))
        for name in result.other_readings
    ]
    return Table("Other interpretations of what the paper leaves open", columns, rows)


def pictures(result: ExperimentResult) -> list[Picture]:
    """One picture: lines against steps or dimensions where there are any, else panels of bins."""
    lines = next((table for table in result.tables.values() if "by" in table.columns), None)
    if lines is not None:
        rows = [[_line_panel(lines)]]
        caption = _line_caption(len(result.finished()))
    else:
        rows = _bin_panels(result)
        if not rows:
            return []
        caption = _bin_caption(rows, len(result.finished()))
    title = result.experiment.title
    description = subscripts(f"{title}. {result.in_words()}.")
    return [Picture(result.id, "reproduce-panels", {"rows": rows}, title, caption, description)]


def _bin_panels(result: ExperimentResult) -> list[list[Panel]]:
    """A row of panels (score, value) for each table of bins; one row if each has one panel."""
    tokens_of = result.finished()[0].tables
    rows = []
    for name, table in result.tables.items():
        suffix = name.removeprefix("bins")
        tokens = tokens_of.get(f"tokens{suffix}")
        if name.startswith("bins") and tokens is not None:
            rows.append(_panels_of_table(suffix.strip("-"), table, tokens))
    if rows and all(len(row) == 1 for row in rows):
        return [[panel for row in rows for panel in row]]
    return rows


def _panels_of_table(part: str, table: pl.DataFrame, tokens: pl.DataFrame) -> list[Panel]:
    """The panels of the scores and of the values, as far as the types have them."""
    title = TITLES.get(part, part.replace("-", " "))
    quantities = [name for name in ("score", "value") if name in tokens.columns]
    return [_bin_panel(title, quantity, table, tokens) for quantity in quantities]


def _bin_panel(title: str, quantity: str, table: pl.DataFrame, tokens: pl.DataFrame) -> Panel:
    """Bin means with their spread over a sample of the types, and the paper's means beside them."""
    x = "importance" if "importance" in tokens.columns else "posterior_difference"
    mean = pl.col(f"{quantity}_mean")
    deviation = pl.col(f"{quantity}_sd")
    bins = table.select(
        "x",
        "few",
        mean=mean,
        low=mean - deviation,
        high=mean + deviation,
        least=f"{quantity}_low",
        most=f"{quantity}_high",
    )
    every = max(1, -(-tokens.height // MAX_POINTS))  # rounded up
    points = tokens.gather_every(every).select(x=pl.col(x).round(5), y=pl.col(quantity).round(4))
    panel: Panel = {
        "kind": "bins",
        "title": title,
        "x": x.replace("_", " "),
        "y": SYMBOLS[quantity],
        "bins": bins.to_dicts(),
        "points": points.drop_nans().to_dicts(),
    }
    if f"paper_{quantity}" in table.columns:
        panel["paper"] = table.select("x", y=f"paper_{quantity}").to_dicts()
    return panel


def _line_panel(lines: pl.DataFrame) -> Panel:
    """Means over seeds with their range, against steps or dimensions."""
    if "step" in lines.columns:
        x = "step"
        y = "test_accuracy"
        label = "test accuracy"
    else:
        x = "d"
        y = "value"
        label = "Spearman, accuracy"
    over_seeds = lines.group_by("by", x, maintain_order=True).agg(
        mean=pl.mean(y), least=pl.min(y), most=pl.max(y)
    )
    names = {f"{quantity}_spearman": f"Spearman of {s}" for quantity, s in SYMBOLS.items()}
    names["test_accuracy"] = "test accuracy"
    by = pl.col("by").cast(pl.String).str.replace_many(names)
    return {
        "kind": "lines",
        "title": "",
        "x": x,
        "y": label,
        "lines": over_seeds.select("mean", "least", "most", x=x, by=by).to_dicts(),
        "log": x == "d",
    }


def _line_caption(n_seeds: int) -> str:
    return f"lines: range over {n_seeds} seeds" if n_seeds > 1 else "one seed"


def _bin_caption(rows: Iterable[Iterable[Mapping[str, object]]], n_seeds: int) -> str:
    parts = ["bin means and standard deviations over token types; grey: types"]
    if n_seeds > 1:
        parts.append(f"band: range of the means over {n_seeds} seeds")
    if any("paper" in panel for row in rows for panel in row):
        parts.append("orange: the paper's means, on the right axis")
    return "; ".join(parts)
