"""mask: a source without certain tokens."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve.cli.options import (
    EncodingOption,
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
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv .tsv .jsonl or .parquet.", metavar="FILE")],
    token: Annotated[list[str] | None, typer.Option("--token", help="Token to cut out (repeatable).")] = None,
    audit: Annotated[
        Path | None,
        typer.Option("--audit", help="Folder of an audit with --fail-on: cut what exceeded it.", metavar="FOLDER"),
    ] = None,
    text: TextOption = None,
    encoding: EncodingOption = "utf-8",
    quiet: QuietOption = False,
) -> None:
    """Write the documents again with certain tokens cut out, all other columns as they were."""
    from tokensieve.auditing.mask import mask_texts
    from tokensieve.files import check_writable, write_all
    from tokensieve.text.tokenizers import PieceTokenizer, WordTokenizer, text_series

    if out.suffix.lower() not in (".csv", ".tsv", ".jsonl", ".parquet"):
        raise InputError(f"--out {out.name!r} must end in .csv, .tsv, .jsonl or .parquet")
    check_writable(out.parent)
    tokens, likely = list(token or []), None
    tokenizer, keep_case = splitting.tokenizer, splitting.keep_case
    if audit is not None:
        found, settings, likely = _exceeding(audit)
        tokens += found
        tokenizer = tokenizer or (None if settings["tokenizer"] == "words" else str(settings["tokenizer"]))
        keep_case = keep_case or bool(settings["keep_case"])
    splitter = WordTokenizer(lowercase=not keep_case) if tokenizer is None else PieceTokenizer(tokenizer)
    rows, column = _rows(source, encoding, text, likely)
    held = [i for i, row in enumerate(rows) if row.get(column) is not None]
    for i in held:
        if not isinstance(rows[i][column], str):
            raise InputError(
                f"{source}: row {i + 1}: {column!r} holds {rows[i][column]!r:.40}, no text: choose with --text"
            )
    masked, changed = mask_texts(text_series([rows[i][column] for i in held]), tokens, splitter)
    for i, shorter in zip(held, masked, strict=True):
        rows[i][column] = shorter
    write_all(out.parent, {out.name: _written(rows, out.suffix.lower(), source)})
    say(quiet, f"{changed:,} of {len(rows):,} documents changed, {len(set(tokens))} tokens cut out: {out}")


def _rows(source: str, encoding: str, text: str | None, likely: str | None) -> tuple[list[dict[str, Any]], str]:
    """All rows with all their fields, a split of the source's own as one more, and the name of the text column."""
    from tokensieve.text.columns import choose_text
    from tokensieve.text.sources import open_source

    opened = open_source(source, encoding)
    wanted = text if text is not None or likely not in opened.train.columns else likely
    column = opened.train.columns[choose_text(opened.train, wanted)]
    rows: list[dict[str, Any]] = []
    for part, table in (("train", opened.train), ("test", opened.test)):
        if table is not None:
            split = {} if opened.test is None else {"split": part}
            rows += [row | split for row in table.records()]
    return rows, column


def _exceeding(folder: Path) -> tuple[list[str], dict[str, Any], str]:
    """Tokens over the budget of an audit, its settings, and its text column."""
    try:
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        settings, over = found["settings"], [str(row["token"]) for row in found["over_budget"]]
        column, _, _ = str(settings["columns"][0]), settings["tokenizer"], settings["keep_case"]
    except (OSError, ValueError) as problem:
        raise InputError(f"--audit {str(folder)!r} is no folder of an audit: {problem}") from None
    except (KeyError, TypeError, IndexError) as problem:
        raise InputError(
            f"--audit {str(folder)!r} is no folder of an audit: its summary.json lacks {problem}"
        ) from None
    if not over:
        raise InputError(f"the audit in {str(folder)!r} found no token over a budget: run it with --fail-on first")
    return list(dict.fromkeys(over)), settings, column


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
