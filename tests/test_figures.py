"""Figures that are published are stored: those of README.md, and the headlines of CHANGELOG.md and
docs/benchmarks.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

HOME = Path(__file__).parents[1]
RESULTS = HOME / "benchmarks" / "results"
FIGURE = re.compile(r"(?<![\w.,/⟨-])\d[\d,]*(?:\.\d+)?%?(?![\w/])")
CONSTANTS = {  # of README.md: no measurements
    *(
        "3.11",
        "0.2",
        "0.3",
        "2025",
        "3",
    ),  # versions, the paper's year, a licence and an exit status
    *(
        "2",
        "200",
        "95%",
        "25,000",
    ),  # n-grams of an example, the most classes, the level of intervals, the reviews of IMDB
}


def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())["figures"]


def numbers(value: Any) -> Iterator[float]:
    """Every number of a stored result."""
    for one in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    ):
        yield from numbers(one)
    if isinstance(value, int | float):
        yield value


def is_stored(figure: str, stored: set[float]) -> bool:
    """Whether a figure is some stored number, or that in percent, at the digits that it is written
    with."""
    number = figure.rstrip("%").replace(",", "")
    scale, half = 100 if "%" in figure else 1, 0.5001 * 10.0 ** -len(number.partition(".")[2])
    return any(abs(scale * x - float(number)) <= half for x in stored)


def unknown_figures(text: str, stored: set[float]) -> list[str]:
    """Figures of Markdown, outside of code and addresses, that are neither stored nor constants."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|^\d+\. ", "", text, flags=re.MULTILINE)
    return [
        one for one in FIGURE.findall(text) if one not in CONSTANTS and not is_stored(one, stored)
    ]


def test_figures_of_the_readme_are_stored() -> None:
    stored = {x for path in RESULTS.glob("*.json") for x in numbers(json.loads(path.read_text()))}
    assert unknown_figures((HOME / "README.md").read_text(), stored) == []
    assert unknown_figures("An audit takes 7.77 s, 95% of it reading, `8.88`.", {7.76, 0.95}) == [
        "7.77"
    ]


def headlines() -> Iterator[tuple[str, str]]:
    """A piece of CHANGELOG.md or docs/benchmarks.md that each stored result calls for, with the
    file."""
    page = "docs/benchmarks.md"
    for row in result("release")["rows"]:
        sides = [
            (median(row[side]), min(row[side]), max(row[side])) for side in ("release", "head")
        ]
        seconds = [f"{middle:.2f} ({low:.2f}, {high:.2f})" for middle, low, high in sides]
        yield page, f"| {' | '.join(seconds)} | {row['ratio']:.2f} |"
        if "bigrams" in row["command"]:
            yield "CHANGELOG.md", f"{row['ratio']:.2f} times"
    for row in result("peers-classify"):
        [run] = row["runs"]
        piece = f"{run['accuracy']:.4f}".lstrip("0")
        yield (
            page,
            f"{piece}**, {run['seconds']:.1f} |"
            if row["method"] == "ours, defaults"
            else f"{piece}, {run['seconds']:.1f} |",
        )
    for kind, row in result("planted").items():
        if isinstance(row, dict) and {"models", "named", "right"} <= row.keys():
            yield page, f"| {kind} | {row['models']} | {row['named']} of {row['models']} = "
    stored = json.loads((RESULTS / "artefacts.json").read_text())
    for left_out in ("unseen sets and kinds", "each set and kind left out"):
        for what in ("marks found", "words and phrases found"):
            row = stored[left_out][what]
            yield "docs/statistics.md", f"{row['found']} of {row['of']} ({row['low']:.0%} to "
        accused = stored[left_out]["accused in texts that people wrote"]
        n_sets = stored[left_out]["sets that people wrote"]
        yield "docs/statistics.md", f"| {accused} in {n_sets} sets"


@pytest.mark.parametrize("page", ["docs/benchmarks.md", "docs/statistics.md", "CHANGELOG.md"])
def test_headline_figures_are_the_stored_ones(page: str) -> None:
    text = (HOME / page).read_text()
    wanted = {piece for name, piece in headlines() if name == page}
    assert wanted and not {piece for piece in wanted if piece not in text}
