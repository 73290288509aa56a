"""mask: a source without certain tokens."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve.cli.options import (
    Files,
    QuietOption,
    SourceArgument,
    Splitting,
    TextOption,
    command,
    say,
)
from tokensieve.errors import InputError


@command
def mask(
    source: SourceArgument,
    splitting: Splitting,
    files: Files,
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv .tsv .jsonl or .parquet.", metavar="FILE")],
    token: Annotated[list[str] | None, typer.Option("--token", help="Token to cut out (repeatable).")] = None,
    audit: Annotated[
        Path | None,
        typer.Option("--audit", help="Folder of an audit with --fail-on: cut what exceeded it.", metavar="FOLDER"),
    ] = None,
    text: TextOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write the documents again with certain tokens cut out, all other columns as they were."""
    from tokensieve.auditing.mask import mask_fields
    from tokensieve.files import check_writable, write_all
    from tokensieve.model.storage import read_model

    if out.suffix.lower() not in (".csv", ".tsv", ".jsonl", ".parquet"):
        raise InputError(f"--out {out.name!r} must end in .csv, .tsv, .jsonl or .parquet")
    check_writable(out.parent)
    tokens, likely, splitter = list(token or []), None, splitting.splitter()
    if audit is not None:
        found, likely = _exceeding(audit)
        tokens += found
        vocabulary = read_model(audit).vocabulary
        if vocabulary is not None and splitting == Splitting():
            splitter = vocabulary.tokenizer
    fields = text or list(getattr(splitter, "fields", [])) or likely
    rows, columns = _rows(source, files, fields, must=bool(text))
    texts = {column: _texts(source, rows, column) for column in columns}
    masked, changed = mask_fields(texts, tokens, splitter)
    for column, shorter in masked.items():
        for row, value in zip(rows, shorter, strict=True):
            if value is not None:
                row[column] = value
    write_all(out.parent, {out.name: _written(rows, out.suffix.lower(), source)})
    say(quiet, f"{changed:,} of {len(rows):,} documents changed, {len(set(tokens))} tokens cut out: {out}")


def _rows(source: str, files: Files, fields: list[str] | None, must: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """All rows with all their fields, a split of the source's own as one more, and the names of the text columns.

    Args:
        source: as for every command.
        files: how it is read.
        fields: the columns that are wanted; guessed if None.
        must: whether they have to be there; otherwise one is guessed where they are not.
    """
    from tokensieve.text.columns import choose_text
    from tokensieve.text.formats import Format
    from tokensieve.text.sources import open_source

    opened = open_source(source, Format(**files.form()))
    columns = opened.train.columns
    wanted: list[str | None] = [*fields] if fields and (must or set(fields) <= set(columns)) else [None]
    chosen = [columns[choose_text(opened.train, name)] for name in wanted]
    rows: list[dict[str, Any]] = []
    for part, table in (("train", opened.train), ("test", opened.test)):
        if table is not None:
            split = {} if opened.test is None else {"split": part}
            rows += [row | split for row in table.records()]
    return rows, list(dict.fromkeys(chosen))


def _texts(source: str, rows: list[dict[str, Any]], column: str) -> Any:
    """The texts of a column, null where a row has none."""
    from tokensieve.text.tokenizers import text_series

    values = [row.get(column) for row in rows]
    for i, value in enumerate(values):
        if not (value is None or isinstance(value, str)):
            raise InputError(f"{source}: row {i + 1}: {column!r} holds {value!r:.40}, no text: choose with --text")
    return text_series(values)


def _exceeding(folder: Path) -> tuple[list[str], list[str]]:
    """Tokens over the budget of an audit, and its text column."""
    try:
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        over = [str(row["token"]) for row in found["over_budget"]]
        column = str(found["settings"]["columns"][0])
    except (OSError, ValueError) as problem:
        raise InputError(f"--audit {str(folder)!r} is no folder of an audit: {problem}") from None
    except (KeyError, TypeError, IndexError) as problem:
        raise InputError(
            f"--audit {str(folder)!r} is no folder of an audit: its summary.json lacks {problem}"
        ) from None
    if not over:
        raise InputError(f"the audit in {str(folder)!r} found no token over a budget: run it with --fail-on first")
    return list(dict.fromkeys(over)), [column]


def _written(rows: list[dict[str, Any]], suffix: str, source: str) -> bytes:
    import polars as pl

    if suffix == ".parquet":
        schema = pl.read_parquet_schema(source) if source.lower().endswith(".parquet") else None
        binary = io.BytesIO()
        try:
            pl.DataFrame(rows, schema=schema, infer_schema_length=None).write_parquet(binary)
        except (pl.exceptions.PolarsError, TypeError) as problem:
            raise InputError(
                f"{source} cannot be written as Parquet: {str(problem).splitlines()[0]}; use .jsonl"
            ) from None
        return binary.getvalue()
    out = io.StringIO(newline="")
    if suffix == ".jsonl":
        out.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    else:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        writer = csv.DictWriter(out, columns, delimiter="," if suffix == ".csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue().encode(errors="replace")
