"""mask: a source without certain tokens."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve.cli.options import (
    CaseOption,
    EncodingOption,
    QuietOption,
    SourceArgument,
    TextOption,
    TokenizerOption,
    app,
    say,
)
from tokensieve.errors import InputError


@app.command()
def mask(
    source: SourceArgument,
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv .tsv .jsonl or .parquet.", metavar="FILE")],
    token: Annotated[list[str] | None, typer.Option("--token", help="Token to cut out (repeatable).")] = None,
    audit: Annotated[
        Path | None,
        typer.Option("--audit", help="Folder of an audit with --fail-on: cut what exceeded it.", metavar="FOLDER"),
    ] = None,
    text: TextOption = None,
    encoding: EncodingOption = "utf-8",
    tokenizer: TokenizerOption = None,
    keep_case: CaseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the documents again with certain tokens cut out, all other columns as they were."""
    import polars as pl

    from tokensieve.columns import choose_text
    from tokensieve.files import check_writable, write_all
    from tokensieve.masking import mask_texts
    from tokensieve.sources import open_source
    from tokensieve.tokens import PieceTokenizer, WordTokenizer

    if out.suffix.lower() not in (".csv", ".tsv", ".jsonl", ".parquet"):
        raise InputError(f"--out {out.name!r} must end in .csv, .tsv, .jsonl or .parquet")
    check_writable(out.parent)
    tokens = list(token or [])
    if audit is not None:
        tokens, settings = tokens + _exceeding(audit), _summary(audit)["settings"]
        tokenizer = tokenizer or (None if settings["tokenizer"] == "words" else settings["tokenizer"])
        keep_case, text = keep_case or settings["keep_case"], text or settings["columns"][0]
    splitter = WordTokenizer(lowercase=not keep_case) if tokenizer is None else PieceTokenizer(tokenizer)
    opened = open_source(source, encoding)
    rows: list[dict[str, Any]] = []
    for part, table in (("train", opened.train), ("test", opened.test)):
        if table is not None:
            split = {} if opened.test is None else {"split": part}
            column = table.columns[choose_text(table, text if text in table.columns else None)]
            read = table.read(range(len(table.columns)))
            rows += [dict(zip(table.columns, row, strict=True)) | split for row in read]
    held = [i for i, row in enumerate(rows) if isinstance(row[column], str)]
    masked, changed = mask_texts(pl.Series([rows[i][column] for i in held], dtype=pl.String), tokens, splitter)
    for i, shorter in zip(held, masked, strict=True):
        rows[i][column] = shorter
    write_all(out.parent, {out.name: _written(rows, out.suffix.lower())})
    say(quiet, f"{changed:,} of {len(rows):,} documents changed, {len(set(tokens))} tokens cut out: {out}")


def _summary(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(f"--audit {str(folder)!r} is no folder of an audit: {problem}") from None
    if not isinstance(found, dict) or not isinstance(found.get("settings"), dict):
        raise InputError(f"--audit {str(folder)!r} is no folder of an audit: its summary.json holds no settings")
    return found


def _exceeding(folder: Path) -> list[str]:
    found = _summary(folder).get("over_budget")
    if not found:
        raise InputError(f"the audit in {str(folder)!r} found no token over a budget: run it with --fail-on first")
    return list(dict.fromkeys(row["token"] for row in found))


def _written(rows: list[dict[str, Any]], suffix: str) -> bytes:
    import polars as pl

    if suffix == ".parquet":
        binary = io.BytesIO()
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(binary)
        return binary.getvalue()
    out = io.StringIO(newline="")
    if suffix == ".jsonl":
        out.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(out, list(rows[0]) if rows else [], delimiter="," if suffix == ".csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue().encode(errors="replace")
