"""Classify new documents: one CSV line each, and a score if labels are present."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import command, quiet_option, say
from tokensieve.cli.options import IGNORED, TwoColumns, pair_columns, summary_of, two_columns
from tokensieve.errors import InputError
from tokensieve.escape import printable
from tokensieve.options import option
from tokensieve.text.settings import SourceSettings, groups_from

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.model.attention import Model
    from tokensieve.text.table import SourceTable


@command(
    without=IGNORED,
    model="Folder written by `train` or `audit`.",
    source="A file, a folder, a URL, or - for standard input.",
)
def predict(
    model: Path,
    source: str,
    reading: SourceSettings,
    pairs: TwoColumns | None = option(
        None, "Columns of two answers, for a model of pairs.", metavar="FIRST,SECOND", parse=two_columns
    ),
    label: str | None = option(
        None, "Column of the true labels, to score.", metavar="COLUMN", default_text="that of training"
    ),
    keep: list[str] | None = option(
        None, "Column to copy to the output (repeatable).", metavar="COLUMN", default_text="id, if present", parse=list
    ),
    out: Path | None = option(None, "Folder for the results.", metavar="FOLDER", default_text="standard output"),
    quiet: bool = quiet_option(),
) -> None:
    """Classify one source, or say which of two answers is preferred."""
    from tokensieve.files import check_writable
    from tokensieve.model.storage import read_model
    from tokensieve.text.columns import TEXT_NAMES
    from tokensieve.text.sources import open_source

    if out:
        check_writable(out)
    classifier = read_model(model)
    text = [reading.text] if isinstance(reading.text, str) else list(reading.text or [])
    if classifier.pairs and not text:
        sides = pairs or pair_columns(model)
        likely = [*sides, *(keep or [])]
        table = open_source(source, reading, labelled=False, columns=[*likely, *TEXT_NAMES]).held_out
        _predict_pairs(classifier, table, sides, _kept(table, keep), out, quiet)
        return
    if pairs:
        raise InputError(
            "--pairs is for a model of pairs; this one classifies single texts: name their column with --text"
        )
    fields, known, final = _training(model, classifier)
    likely = [*(text or fields), *(keep or []), label or ""]
    table = open_source(source, reading, labelled=False, columns=[*likely, *TEXT_NAMES]).held_out
    if not text and set(fields) <= set(table.columns):
        text = fields
    if label is None and known in table.columns and known not in text:
        label, given = known, False
    else:
        given = label is not None
    _predict_documents(classifier, table, text, (label, given, final), _kept(table, keep, label), out, quiet)


def _predict_documents(
    model: Model,
    table: SourceTable,
    text: list[str],
    truth: tuple[str | None, bool, dict[str, str | None]],
    kept: list[str],
    out: Path | None,
    quiet: bool,
) -> None:
    """A row per document: row, columns that are copied, label, class, probability, answer, unknown_words, P(…) of each class.

    Args:
        model: of labels.
        table: the documents.
        text: the text columns; empty to find them.
        truth: the label column, if there is one; whether the user named it; label in the source → label in training.
        kept: columns to copy.
        out: folder for the results, or None for standard output.
        quiet: nothing but predictions.
    """
    import polars as pl

    from tokensieve.auditing.score import Score
    from tokensieve.model.attention import probabilities
    from tokensieve.report.terminal import show_score
    from tokensieve.text.documents import read_rows

    label, given, final = truth
    rows, _ = read_rows(table, text or None, label, kept)
    matrix, unknown = model.count(rows["text"].fill_null(""))
    f = model.decide(matrix)
    found = None
    if label is not None:
        labels = [name if name is None else final.get(name) or name for name in rows["label"]]
        found = Score.of(f, pl.Series(labels, dtype=pl.String), list(map(str, model.classes)))
        if given and found is None:
            raise InputError(
                f"{table.name}: column {label!r} has no label that the model knows; choose another with --label"
            )
    frame, p = model.answer(matrix, unknown), probabilities(f)
    if found is not None:
        frame = frame.insert_column(0, rows["label"].alias("label"))
    frame = frame.with_columns(pl.Series(f"P({name})", p[:, k]) for k, name in enumerate(map(str, model.classes)))
    summary = {"documents": len(frame), "missing_texts": rows["text"].null_count(), "score": found and found.to_dict()}
    _write(_beside(rows, kept, frame), summary, out, quiet)
    if found and not quiet:
        show_score(found, brief=out is None)


def _predict_pairs(
    model: Model, table: SourceTable, columns: tuple[str, str], kept: list[str], out: Path | None, quiet: bool
) -> None:
    """A row per pair, and how often the first answer is preferred."""
    from tokensieve.model.explanation import answer_pairs
    from tokensieve.report.terminal import score_lines
    from tokensieve.text.documents import read_rows

    first, second = read_rows(table, columns[0])[0], read_rows(table, columns[1], keep=kept)[0]
    answered = answer_pairs(model, first["text"].fill_null(""), second["text"].fill_null(""), columns)
    frame = _beside(second, kept, answered)
    lines, score = score_lines(frame, columns)
    _write(frame, {"pairs": len(frame), "columns": list(columns), "score": score}, out, quiet)
    for line in lines:
        say(quiet, line)


def _beside(rows: pl.DataFrame, kept: list[str], frame: pl.DataFrame) -> pl.DataFrame:
    """The results beside the row numbers and the columns that are copied."""
    import polars as pl

    for name in kept:
        if name == "row" or name in frame.columns:
            raise InputError(f"--keep {name!r}: the results have a column of this name; rename it in the source")
    copied = rows.select("row", *(pl.col("kept").struct.field(name) for name in kept))
    return pl.concat([copied, frame], how="horizontal")


def _write(frame: pl.DataFrame, summary: Mapping[str, object], out: Path | None, quiet: bool) -> None:
    """Into a folder, or onto standard output."""
    from tokensieve.files import csv_table, write_all

    content = csv_table(frame)
    if out is None:
        sys.stdout.buffer.write(printable(content.decode()).encode())
        return
    write_all(out, {"predictions.csv": content, "summary.json": json.dumps(summary, ensure_ascii=False, indent=1)})
    say(quiet, f"{len(frame):,} predictions in {out / 'predictions.csv'}")


def _training(folder: Path, model: Model) -> tuple[list[str], str, dict[str, str | None]]:
    """Text columns, label column, and label in the source → label in training, as far as the model's folder says."""
    from tokensieve.text.labels import destinations

    fields = list(getattr(model.vocabulary and model.vocabulary.tokenizer, "fields", ()))
    try:
        settings = summary_of(folder)["settings"]
        text, label = map(str, settings["columns"][:2])
        dropped = [name for item in settings.get("drop") or [] for name in item.split(",")]
        return fields or [text], label, destinations(groups_from(settings.get("group") or []), dropped)
    except (ValueError, LookupError, TypeError, AttributeError):
        return fields, "", {}


def _kept(table: SourceTable, keep: Sequence[str] | None, label: str | None = None) -> list[str]:
    """The columns to copy; those of an identifier if none is named."""
    from tokensieve.text.documents import IDS

    wanted = [name for name in table.columns if name.lower() in IDS] if keep is None else keep
    return [name for name in dict.fromkeys(wanted) if name != label]
