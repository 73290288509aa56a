"""Options of preference pairs, and answers to pairs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokensieve.errors import InputError
from tokensieve.escape import printable

if TYPE_CHECKING:
    pass


def columns_of(given: str) -> tuple[str, str]:
    """--pairs CHOSEN,REJECTED.

    Raises:
        InputError: it does not name two columns.
    """
    names = [name.strip() for name in given.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise InputError(
            f"--pairs {given!r} does not name two columns, the preferred answer first: --pairs chosen,rejected"
        )
    return names[0], names[1]


@dataclass(frozen=True)
class Answering:
    """Pairs to be answered.

    Attributes:
        folder: of the model.
        pairs: --pairs, or None for the columns of training.
        keep: columns to carry along, or None for those of an identifier.
        out: folder for the results, or None for standard output.
        quiet: nothing on the terminal but answers.
    """

    folder: Path
    pairs: str | None
    keep: list[str] | None = None
    out: Path | None = None
    quiet: bool = False

    def columns(self) -> tuple[str, str]:
        """The two columns, the first as in --pairs.

        Raises:
            InputError: they are neither given nor remembered.
        """
        from tokensieve.files import parsed, read_regular

        if self.pairs is not None:
            return columns_of(self.pairs)
        try:
            first, second = map(str, parsed(read_regular(self.folder / "summary.json"))["pairs"]["columns"])
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            raise InputError(
                "this is a model of pairs: name the columns of the two answers, --pairs FIRST,SECOND"
            ) from None
        return first, second


def predict_pairs(model: Any, table: Any, job: Answering, kept: list[str]) -> None:
    """Which of two answers is preferred: a line of CSV for each pair, and in how many it is the first.

    Args:
        model: of pairs.
        table: of a source with a column for each answer.
        job: what was asked for.
        kept: columns to carry along.
    """
    import polars as pl

    from tokensieve.cli.command import say
    from tokensieve.files import csv_table, write_all
    from tokensieve.model.pairs import answer_pairs
    from tokensieve.report.pairs import score_lines
    from tokensieve.text.texts import read_rows

    columns = job.columns()
    sides = [read_rows(table, columns[0])[0], read_rows(table, columns[1], keep=kept)[0]]
    answered = answer_pairs(model, sides[0]["text"].fill_null(""), sides[1]["text"].fill_null(""), columns)
    for name in kept:
        if name == "row" or name in answered.columns:
            raise InputError(f"--keep {name!r}: the results have a column of that name: rename it in the source")
    frame = pl.concat(
        [sides[1].select("row"), sides[1].select(pl.col("kept").struct.field(name) for name in kept), answered],
        how="horizontal",
    )
    answers = csv_table(frame)
    lines, score = score_lines(frame, columns)
    if job.out:
        summary = {"pairs": len(frame), "columns": list(columns), "score": score}
        files: dict[str, Any] = {
            "predictions.csv": answers,
            "summary.json": json.dumps(summary, ensure_ascii=False, indent=1),
        }
        write_all(job.out, files)
        say(job.quiet, f"{len(frame):,} predictions in {job.out / 'predictions.csv'}")
    else:
        sys.stdout.buffer.write(printable(answers.decode()).encode())
    for line in lines:
        say(job.quiet, line)


def explain_pair(model: Any, texts: tuple[str, str], as_json: bool) -> None:
    """Take the comparison of two texts apart: both sums, and their difference."""
    from tokensieve.model.pairs import compare
    from tokensieve.report.pairs import show_pair

    found = compare(model, *texts)
    if as_json:
        print(printable(json.dumps(found.to_dict(), ensure_ascii=False)))
    else:
        show_pair(model, texts, found)
