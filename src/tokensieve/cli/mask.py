"""Copy the data, removing the given tokens and any rows marked as mislabelled.

--out may also name the file to write: .csv .tsv .jsonl or .parquet.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tokensieve.cli.command import (
    IGNORED,
    QUIET,
    SOURCES,
    command,
    out_option,
    pair_columns,
    say,
)
from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.read.settings import SourceSettings
from tokensieve.text.settings import TokenSettings
from tokensieve.wording import plural, verb

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.read.table import SourceTable

Row = dict[str, Any]


@command(without=IGNORED, source=SOURCES)
def _mask(
    source: list[str],
    reading: SourceSettings,
    token_settings: TokenSettings,
    token: list[str] | None = option(
        None, "Token to remove (repeatable).", metavar="TOKEN", parse=list
    ),
    audit: Path | None = option(
        None,
        "Folder of an audit: remove the tokens that exceeded --fail-on, or else its shortcuts.",
        metavar="FOLDER",
    ),
    decisions: Path | None = option(None, "Decisions exported from the audit's page."),
    part: Literal["train", "test"] | None = option(
        None, "Whether SOURCE was the audit's training or test file."
    ),
    pairs: str | None = option(
        None, "Columns of two answers; tokens are removed from both.", metavar="CHOSEN,REJECTED"
    ),
    out: Path = out_option("tokensieve-mask"),
    quiet: bool = QUIET,
) -> None:
    """Write a copy of the source, or one copy of several files."""
    from tokensieve.auditing.masking import mask_fields, read_decisions
    from tokensieve.files import check_writable, write_all
    from tokensieve.model.storage import read_model
    from tokensieve.read.columns import text_columns
    from tokensieve.read.sources import open_source
    from tokensieve.text.tokenizers import FieldTokenizer

    folder, name, review = _target(out, source[0])
    check_writable(folder, audit=folder != out)
    to_mask, to_keep, mislabelled = ([], [], {}) if decisions is None else read_decisions(decisions)
    asked, tokenizer = [*(token or []), *to_mask], token_settings.make_tokenizer()
    tokens, named, likely, sides = asked, list[str](), list[str](), pair_columns(pairs, None)
    if audit is not None:
        over, named, likely = _exceeding(audit, must=decisions is None)
        tokens = [*asked, *(one for one in over if one not in to_keep)]
        model = read_model(audit)
        sides = pair_columns(pairs, audit if model.pairs else None)
        if model.vocabulary is not None and token_settings == TokenSettings():
            tokenizer = model.vocabulary.tokenizer
    fields = list[str]()
    if isinstance(tokenizer, FieldTokenizer):
        tokens = [*tokens, *(one for one in named if tokenizer.is_value(one))]
        fields = [name for name in tokenizer.fields if name not in dict(tokenizer.columns)]
    opened, given = (
        open_source(list(source) if len(source) > 1 else source[0], reading),
        " ".join(source),
    )
    if (folder / name).exists() and any(
        (folder / name).samefile(one) for one in source if Path(one).exists()
    ):
        raise InputError(
            f"--out {str(out)!r} is the source itself and would overwrite it; name another file"
        )
    text = [reading.text] if isinstance(reading.text, str) else list(reading.text or [])
    wanted = list(sides or text or fields or likely)
    there = wanted and (text or sides or set(wanted) <= set(opened.train.columns))
    columns = list(
        dict.fromkeys(text_columns(opened.train, one)[0] for one in (wanted if there else [None]))
    )
    parts = (
        {"": opened.train} if opened.test is None else {"train": opened.train, "test": opened.test}
    )
    rows, wrong = _rows(given, parts, mislabelled, part)
    changed, gone, said = 0, list[str](), list[str]()
    if tokens or not wrong:
        places = {column: _places(rows, column, reading.role) for column in columns}
        texts = {column: _texts(given, places[column], column) for column in columns}
        masked, _, found, said = mask_fields(texts, tokens, tokenizer, alike=bool(sides))
        gone = [one for one, like in found.items() if one == like != ""]
        said += _absent(
            {
                one: like
                for one, like in found.items()
                if one not in gone and (one in asked or not gone)
            }
        )
        if not gone and not wrong:
            none = "no tokens to mask; name one with --token, or pass an audit that found some with --audit"
            raise InputError("; ".join(said) or none)
        differ = set()
        for column, shorter in masked.items():
            for (i, inside, key), value in zip(places[column], shorter, strict=True):
                if value is not None and value != inside[key]:
                    inside[key] = value
                    differ.add(i)
        changed = len(differ)
    kept = [row for place, row in enumerate(rows) if place not in wrong]
    removed = [rows[place] for place in sorted(wrong)]
    files: dict[str, str | bytes] = {name: _written(kept, name, given)}
    ours = re.escape(review)  # what an earlier run may have left
    if folder == out:
        ours = r"(masked|wrong-label)\.(csv|tsv|jsonl|parquet)"
        summary = {
            "documents": len(kept),
            "changed": changed,
            "left_out": len(removed),
            "tokens": gone,
        }
        files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
    if removed:
        files[review] = _written(removed, review, given)
    write_all(folder, files, ours=ours)
    left = f", {plural(len(removed), 'mislabelled row')} left out" if removed else ""
    cut = f", {plural(len(gone), 'token')} removed" if gone else ""
    for line in (
        *said,
        f"{changed:,} of {len(rows):,} documents changed{cut}{left}: {folder / name}",
    ):
        say(quiet, line)


def _absent(tokens: Mapping[str, str]) -> list[str]:
    """A line that names tokens which occur nowhere, with options for those that are like them (token → like it, or "")."""
    from tokensieve.auditing.phrases import quoted

    likely = shlex.join(part for like in tokens.values() if like for part in ("--token", like))
    meant = (
        f"did you mean `{likely}`?"
        if likely
        else "check the spelling, the file and the column (--text)"
    )
    return (
        [f"{quoted(list(tokens))} {verb(len(tokens), 'occur')} in no text; {meant}"]
        if tokens
        else []
    )


def _target(out: Path, source: str) -> tuple[Path, str, str]:
    """The folder to write into, and the names of the data and of the mislabelled rows there: `out` is the folder or the data."""
    suffixes = (".csv", ".tsv", ".jsonl", ".parquet")
    if out.suffix.lower() in suffixes and not out.is_dir():
        return out.parent, out.name, f"{out.stem}-wrong-label{out.suffix}"
    if re.fullmatch(r"\.[A-Za-z]{2,7}", out.suffix) and not out.is_dir():
        raise InputError(
            f"--out {out.name!r} must end in .csv, .tsv, .jsonl or .parquet, or name a folder"
        )
    from tokensieve.read.formats import kind_of

    suffix = {".ndjson": ".jsonl", ".json": ".jsonl"}.get(kind := kind_of(source), kind)
    suffix = suffix if suffix in suffixes else ".csv"
    return out, f"masked{suffix}", f"wrong-label{suffix}"


def _exceeding(folder: Path, must: bool) -> tuple[list[str], list[str], list[str]]:
    """An audit's tokens over the limit, or else those of its shortcuts: to mask, and all; and its text column. Must have some if
    `must`."""
    from tokensieve.files import parsed, read_regular
    from tokensieve.text.formatting import is_formatting

    place, named = "summary.json", list[str]()
    try:
        found = parsed(read_regular(folder / place))
        over = [str(row["token"]) for row in found["over_budget"]]
        column = str(found["settings"]["columns"][0])
        if not over:
            place = "findings.json"
            shortcuts = [
                one
                for one in parsed(read_regular(folder / place))["findings"]
                if one["kind"] == "shortcut"
            ]
            over = [str(token) for one in shortcuts for token in one.get("mask", one["tokens"])]
            named = [str(token) for one in shortcuts for token in one["tokens"]]
            over += [token for token in named if is_formatting(token)]
    except (OSError, ValueError, LookupError, TypeError) as problem:
        said = (
            f"its {place} lacks {problem}"
            if isinstance(problem, LookupError | TypeError)
            else str(problem)
        )
        said = f"no {place}" if isinstance(problem, FileNotFoundError) else said
        raise InputError(f"--audit {str(folder)!r} is not an audit folder: {said}") from None
    if not over and not named and must:
        raise InputError(
            f"{str(folder)!r}: this audit has no shortcut and no token over a limit; name tokens with --token"
        )
    return list(dict.fromkeys(over)), named, [column]


def _rows(
    source: str,
    parts: Mapping[str, SourceTable],
    wrong: Mapping[str, frozenset[int]],
    part: str | None,
) -> tuple[list[Row], set[int]]:
    """All rows, and the indices of those with a wrong label; a source with a single part is `part`, or contains both."""
    rows, places = list[Row](), set[int]()
    for side, table in parts.items():
        mine = list(table.records())
        named = [side or part] if side or part else list(wrong)
        numbers = {number for one in named for number in wrong.get(str(one), ())}
        if beyond := [number for number in numbers if number > len(mine)]:
            raise InputError(
                f"{source}: --decisions refers to {side + ' ' if side else ''}row {min(beyond)}, which does not exist; pass the "
                "audited file, and --part train or --part test if the audit used --test"
            )
        places |= {len(rows) + number - 1 for number in numbers}
        rows += [row | {"split": side} for row in mine] if side else mine
    return rows, places


def _places(rows: list[Row], column: str, role: str | None) -> list[tuple[int, Row, str]]:
    """Where the texts of a column are, as the index of a row, a dictionary and a key of it: the row itself, what is nested in it
    (`data.body`), or each of its chat messages, or those of a role."""
    from tokensieve.read.chats import chat_text

    found = []
    for i, inside in enumerate(rows):
        key = column
        while key not in inside:
            first = next(
                (
                    key[:at]
                    for at in range(len(key), 0, -1)
                    if key[at : at + 1] == "." and key[:at] in inside
                ),
                "",
            )
            if not isinstance(inside.get(first), dict):
                break
            inside, key = inside[first], key[len(first) + 1 :]
        value = inside.get(key)
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            name = next((name for name in ("content", "value", "text") if name in value[0]), key)
            found += [
                (i, one, name)
                for one in value
                if chat_text([one], role) is not None and name in one
            ]
        elif key in inside:
            found.append((i, inside, key))
    return found


def _texts(source: str, places: list[tuple[int, Row, str]], column: str) -> pl.Series:
    """The texts of a column, null where a row has none."""
    from tokensieve.read.values import text_series

    for i, inside, key in places:
        if not (inside[key] is None or isinstance(inside[key], str)):
            raise InputError(
                f"{source}: row {i + 1}: {column!r} is {inside[key]!r:.40}, not text; choose another with --text"
            )
    return text_series([inside[key] for _, inside, key in places])


def _written(rows: list[Row], name: str, source: str) -> bytes:
    """The rows in the format that the name of the file says."""
    import polars as pl

    suffix = Path(name).suffix.lower()
    if suffix == ".parquet":
        known = Path(source).suffix.lower() == ".parquet" and Path(source).is_file()
        schema = pl.read_parquet_schema(source) if known else None
        binary = io.BytesIO()
        try:
            flat = [
                {key: json.dumps(x, default=str) if _deep(x) else x for key, x in row.items()}
                for row in rows
            ]
            pl.DataFrame(flat, schema=schema, infer_schema_length=None).write_parquet(binary)
        except (pl.exceptions.PolarsError, TypeError, OverflowError, ValueError) as problem:
            reason = str(problem).splitlines()[0][:100]
            raise InputError(
                f"{source} cannot be written as Parquet: {reason}; use .jsonl"
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


def _deep(value: object, limit: int = 30) -> bool:
    """Whether a value is nested so deeply that Parquet would take minutes; it is then written as JSON text."""
    inside = list(value.values()) if isinstance(value, dict) else value
    return isinstance(inside, list) and (
        limit == 0 or any(_deep(inner, limit - 1) for inner in inside)
    )
