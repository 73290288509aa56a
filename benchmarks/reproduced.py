"""The generated parts of docs/reproduced.md, from folders that `tokensieve reproduce` has written.

    python benchmarks/reproduced.py FOLDER [FOLDER]      (or: make reproduced)

One folder per scale. Two parts of the page are written anew: the table of verdicts over both
scales, and the sections of the last folder, which `reproduce` wrote as table.md; pictures are
copied beside it. A part lies between the lines "<!-- NAME: generated from here -->" and
"<!-- NAME: to here -->". All other text of the page is written by hand and stays. The verdicts and
figures, without those of single seeds, go to results/reproduced.json.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path
from typing import Any

from machine import described, store

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "pictures" / "reproduced"
VERDICTS = "verdicts"
SECTIONS = "sections"
FIELDS = ("id", "verdict", "ours", "seconds", "megabytes", "criterion", "checks", "readings")


def escaped(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def verdict_table(summaries: dict[str, dict[str, Any]]) -> str:
    """A row per experiment: what the paper shows, and what we see at each scale."""
    heads = ["Experiment", "The paper"]
    for scale in summaries:
        heads += [f"We see, {scale} scale", "Verdict"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    by_scale = {
        scale: {row["id"]: row for row in summary["experiments"]}
        for scale, summary in summaries.items()
    }
    first = next(iter(by_scale.values()))
    for name, described_row in first.items():
        cells = [name, described_row["claim"]]
        for rows in by_scale.values():
            row = rows.get(name)
            cells += [row["ours"], row["verdict_in_words"]] if row else ["–", "not run"]
        lines.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(lines)


def sections(folder: Path, scale: str) -> str:
    """The sections of table.md, with its pictures copied beside the page."""
    (PICTURES / scale).mkdir(parents=True, exist_ok=True)
    for picture in (folder / "pictures").glob("*.svg"):
        shutil.copy(picture, PICTURES / scale / picture.name)
    text = (folder / "table.md").read_text(encoding="utf-8")
    after_table = text.split("\n## What holds", 1)[1]
    body = after_table.split("\n## ", 1)[1]
    return "## " + re.sub(r"<pictures/", f"<pictures/reproduced/{scale}/", body)


def with_part(page: str, name: str, content: str) -> str:
    """The page with one generated part replaced.

    Raises:
        SystemExit: a line around the part is missing or stands twice, so that text written by hand
            could be lost.
    """
    begins = f"<!-- {name}: generated from here -->"
    ends = f"<!-- {name}: to here -->"
    start = page.find(begins)
    end = page.find(ends)
    if page.count(begins) != 1 or page.count(ends) != 1 or end < start:
        raise SystemExit(f"docs/reproduced.md needs the lines {begins} and {ends}, once each")
    return f"{page[:start]}{begins}\n\n{content.strip()}\n\n{page[end:]}"


def without_seeds(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the summary without the figures of single seeds."""
    kept = {key: row[key] for key in FIELDS}
    kept["readings"] = [
        {key: reading[key] for key in ("reading", "met", "of", "interval")}
        for reading in row["readings"]
    ]
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    summaries: dict[str, dict[str, Any]] = {}
    last = ""
    for folder in options.folders:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        scale = summary["settings"]["scale"]
        summaries[scale] = summary
        last = sections(folder, scale)
    machine = described("torch", "numba")
    path = DOCS / "reproduced.md"
    page = path.read_text(encoding="utf-8")
    page = with_part(page, VERDICTS, verdict_table(summaries))
    page = with_part(page, SECTIONS, f"{last.strip()}\n\nMeasured with {machine}.")
    path.write_text(page, encoding="utf-8")
    figures = {
        scale: [without_seeds(row) for row in summary["experiments"]]
        for scale, summary in summaries.items()
    }
    store("reproduced", figures, machine)


if __name__ == "__main__":
    main()
