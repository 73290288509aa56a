"""Reference pages made from the code: every command with its options, and every file with its
columns.

The files are those that the commands write for built-in data. `files.toml` says what each file and
column means; the build fails if one has no description, so the page cannot fall behind.
"""

from __future__ import annotations

import csv
import os
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
RUNS = {  # command → arguments, in a folder with reviews.csv and pairs.csv
    "audit": [
        "reviews.csv",
        "--by",
        "author",
        "--environments",
        "site",
        "--fail-on",
        "0.5@1%",
        "--card",
        *"--format sarif --format junit --export cleanlab --export label-studio".split(),
        *"--export argilla --export doccano".split(),
    ],
    "audit of scores": "stars.csv --text text --label stars --task scores".split(),
    "audit of pairs": ["pairs.csv", "--pairs", "chosen,rejected"],
    "compare": ["audit", "audit"],
    "mask": ["reviews.csv", "--text", "text", "--token", "tablet"],
    "train": ["reviews.csv", "--text", "text", "--label", "label", "--tokens"],
    "predict": ["train", "reviews.csv"],
    "verify": "--documents 60 --types 24 --length 5 --relevant 6 --d 128 --max-norm 100".split(),
    "rank": "battles.csv --pairs chosen,rejected --models first,second --by prompt".split(),
}


def commands_page() -> str:
    """Arguments and options of every command, as `--help` shows them."""
    from tokensieve.cli import app

    context = click.Context(app, info_name="tokensieve")
    page = [
        "# Commands\n",
        "Generated from the program: `tokensieve COMMAND --help` shows the same.\n",
    ]
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        page += [
            f"## {name}\n",
            f"{command.help}\n",
            f"    {command.get_usage(inner).removeprefix('Usage: ')}\n",
        ]
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                row = (parameter.make_metavar(inner), getattr(parameter, "explained", ""))
                sections.setdefault("Arguments", []).append(row)
            else:
                record = parameter.get_help_record(inner)
                assert record is not None
                sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for title, rows in sections.items():
            page += [f"**{title}**\n", "| | |", "|---|---|"]
            page += [f"| `{cell(left)}` | {cell(right)} |" for left, right in rows] + [""]
    return "\n".join(page)


def cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def files_page() -> str:
    """Every file and column that the commands write, with its meaning."""
    described = tomllib.loads((HERE / "files.toml").read_text(encoding="utf-8"))
    with written() as folders:
        page = [
            "# Files and columns\n",
            "Generated from what the commands write for built-in data.\n",
        ]
        missing: list[str] = []
        for name, folder in folders.items():
            page += [f"## {name}\n", "| file | content |", "|---|---|"]
            tables: list[Path] = []
            for path in sorted(p for p in folder.iterdir() if p.is_file()):
                page.append(
                    f"| `{path.name}` | {_meaning(described['files'], path.name, missing)} |"
                )
                if path.suffix == ".csv" and path.name != "reviews.csv" and name != "mask":
                    tables.append(path)
            if (folder / "pictures").is_dir():
                page.append("| `pictures/` | every picture of the page as SVG and PNG |")
            page.append("")
            for path in tables:
                with path.open(encoding="utf-8", newline="") as file:
                    columns = next(csv.reader(file))
                page += [f"**`{path.name}`**\n", "| column | meaning |", "|---|---|"]
                table = described["columns"] | described.get(path.stem, {})
                table |= described.get(f"{name}: {path.stem}", {})
                page += [
                    f"| `{column}` | {_meaning(table, _general(column), missing)} |"
                    for column in columns
                ] + [""]
    if missing:
        raise RuntimeError(f"docs/files.toml does not describe {', '.join(sorted(set(missing)))}")
    return "\n".join(page)


def _general(column: str) -> str:
    """Columns of one kind share a description: P(negative) is P(…)."""
    return "P(…)" if column.startswith("P(") else column


def _meaning(table: dict[str, Any], name: str, missing: list[str]) -> str:
    if name not in table:
        missing.append(name)
    return str(table.get(name, ""))


@contextmanager
def written() -> Iterator[dict[str, Path]]:
    """Run every command of `RUNS`; give name → folder."""
    import polars as pl

    from tokensieve import demo_pairs, demo_reviews
    from tokensieve.cli import run

    reviews, before = demo_reviews(500), Path.cwd()
    labels = ["positive" if y else "negative" for y in reviews.labels]
    frame = pl.DataFrame({"text": reviews.texts, "label": labels})
    frame = frame.with_columns(
        author=pl.Series([f"a{i % 400}" for i in range(500)]), site=pl.Series(["a", "b"] * 250)
    )
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        try:
            frame.write_csv("reviews.csv")
            stars = [4 * y + 1 + i % 2 - y for i, y in enumerate(reviews.labels)]
            frame.select("text", stars=pl.Series(stars)).write_csv("stars.csv")
            demo_pairs(300).write_csv("pairs.csv")
            models = [f"model {i % 3}" for i in range(demo_pairs(300).height + 1)]
            battles = demo_pairs(300).with_columns(
                first=pl.Series(models[:-1]), second=pl.Series(models[1:])
            )
            battles.write_csv("battles.csv")
            for name, arguments in RUNS.items():
                pictures = [] if name != "audit" else ["--pictures"]
                out = name.replace(" ", "-")
                status = run([name.split()[0], *arguments, *pictures, "--out", out, "--quiet"])
                assert status in (0, 3), name
            yield {name: Path(home, name.replace(" ", "-")) for name in RUNS}
        finally:
            os.chdir(before)
