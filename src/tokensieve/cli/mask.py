"""Copy the data, removing the given tokens and any rows marked as mislabelled.

--out may also name the file to write: .csv .tsv .jsonl or .parquet.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tokensieve.cli.command import command, out_option, quiet_option, say
from tokensieve.cli.options import IGNORED, SOURCE, Splitting, TwoColumns, pair_columns, two_columns
from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.text.settings import SourceSettings

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")


@command(without=IGNORED, source=SOURCE)
def mask(
    source: str,
    reading: SourceSettings,
    splitting: Splitting,
    token: list[str] | None = option(None, "Token to remove (repeatable).", metavar="TOKEN", parse=list),
    audit: Path | None = option(
        None, "Folder of an audit: remove the tokens that exceeded --fail-on, or else its shortcuts.", metavar="FOLDER"
    ),
    decisions: Path | None = option(None, "Decisions exported from the audit's page."),
    part: Literal["train", "test"] | None = option(
        None, "Whether SOURCE was the training or the test file, if the audit had --test."
    ),
    pairs: TwoColumns | None = option(
        None, "Columns of two answers; tokens are removed from both.", metavar="CHOSEN,REJECTED", parse=two_columns
    ),
    out: Path = out_option("tokensieve-mask"),
    quiet: bool = quiet_option(),
) -> None:
    """Write a copy of one source."""
    from tokensieve.auditing.masking import Decisions, mask_fields, remnants
    from tokensieve.files import check_writable, write_all
    from tokensieve.model.storage import read_model
    from tokensieve.text.formatting import is_formatting

    folder, name = _target(out, source)
    check_writable(folder)
    decided = Decisions() if decisions is None else Decisions.read(decisions)
    asked, tokenizer = list(token or []), splitting.splitter()
    tokens, likely = [*asked, *decided.mask], list[str]()
    if audit is not None:
        over, likely = _exceeding(audit, must=decisions is None)
        tokens = [*asked, *(one for one in over if one not in decided.keep), *decided.mask]
        model = read_model(audit)
        pairs = (pairs or pair_columns(audit)) if model.pairs else pairs
        if model.vocabulary is not None and splitting == Splitting():
            tokenizer = model.vocabulary.tokenizer
    formatting = [one for one in tokens if one not in asked and is_formatting(one)]
    tokens = [one for one in dict.fromkeys(tokens) if one not in formatting]
    text = [reading.text] if isinstance(reading.text, str) else list(reading.text or [])
    wanted = list(pairs or text or getattr(tokenizer, "fields", []) or likely)
    rows, columns = _rows(source, reading, wanted, must=bool(text or pairs))
    wrong = _wrong(source, rows, decided.wrong, part)
    changed, left = 0, list[str]()
    if tokens or not any(wrong):
        texts = {column: _texts(source, [row for _, _, row in rows], column) for column in columns}
        masked, changed = mask_fields(texts, tokens, tokenizer, alike=bool(pairs))
        for column, shorter in masked.items():
            differ = (shorter != texts[column]).fill_null(False).arg_true().to_numpy()
            left += remnants(shorter.fill_null(""), differ)
            for (_, _, row), value in zip(rows, shorter, strict=True):
                if value is not None:
                    row[column] = value
    kept = [row for (_, _, row), gone in zip(rows, wrong, strict=True) if not gone]
    removed = [row for (_, _, row), gone in zip(rows, wrong, strict=True) if gone]
    files: dict[str, Any] = {name: _written(kept, name, source)}
    review = (
        name.replace("masked", "wrong-label", 1)
        if folder == out
        else f"{Path(name).stem}-wrong-label{Path(name).suffix}"
    )
    ours = r"(masked|wrong-label)\.(csv|tsv|jsonl|parquet)" if folder == out else re.escape(review)
    if removed:
        files[review] = _written(removed, review, source)
    if folder == out:
        summary = {"documents": len(kept), "changed": changed, "left_out": len(removed), "tokens": tokens}
        files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
    write_all(folder, files, ours=ours)
    for one in dict.fromkeys(formatting):
        say(quiet, f"not removed: {one} is formatting, not a word of the text")
    if tokens and not changed:
        say(quiet, "no document contains any of the tokens; the data is a copy")
    for line in left:
        say(quiet, line)
    gone = f", {len(removed):,} mislabelled row{'s' * (len(removed) != 1)} left out" if removed else ""
    what = f"{len(tokens)} token{'s' * (len(tokens) != 1)} removed"
    say(quiet, f"{changed:,} of {len(rows):,} documents changed, {what}{gone}: {folder / name}")


def _target(out: Path, source: str) -> tuple[Path, str]:
    """The folder to write into and the name of the data there: `out` is the folder, or names the file.

    Raises:
        InputError: it names a file of another kind.
    """
    if out.suffix.lower() in SUFFIXES and not out.is_dir():
        return out.parent, out.name
    if re.fullmatch(r"\.[A-Za-z]{2,7}", out.suffix) and not out.is_dir():
        raise InputError(f"--out {out.name!r} must end in .csv, .tsv, .jsonl or .parquet, or name a folder")
    suffix = Path(re.sub(r"\.(gz|zst)$", "", source.lower())).suffix
    suffix = {".ndjson": ".jsonl", ".json": ".jsonl"}.get(suffix, suffix)
    return out, f"masked{suffix if suffix in SUFFIXES else '.csv'}"


def _wrong(
    source: str, rows: list[tuple[str, int, dict[str, Any]]], wrong: Mapping[str, frozenset[int]], part: str | None
) -> list[bool]:
    """Which rows have a wrong label. A source with training and test documents of its own has rows of both parts; any other is the
    part named, or has the documents of both.

    Raises:
        InputError: a row that the decisions name is not there.
    """
    if {side for side, _, _ in rows} <= {""}:
        wrong = {"": wrong.get(part, frozenset()) if part else frozenset().union(*wrong.values())}
    have = {(side, number) for side, number, _ in rows}
    for side, numbers in wrong.items():
        missing = sorted(number for number in numbers if (side, number) not in have)
        if missing:
            raise InputError(
                f"{source}: there is no {side + ' ' if side else ''}row {missing[0]}, which --decisions names; give the source of "
                "the audit, and --part train or --part test if the audit had --test"
            )
    return [number in wrong.get(side, ()) for side, number, _ in rows]


def _rows(
    source: str, reading: SourceSettings, wanted: list[str], must: bool
) -> tuple[list[tuple[str, int, dict[str, Any]]], list[str]]:
    """All rows as (part, or "" if the source has none; number; fields), and the names of the text columns.

    Args:
        source, reading: the source and how it is read.
        wanted: text columns; empty to find one.
        must: whether they have to be there; otherwise one is found if they are not.
    """
    from tokensieve.text.columns import text_columns
    from tokensieve.text.sources import open_source

    opened = open_source(source, reading)
    there = wanted and (must or set(wanted) <= set(opened.train.columns))
    chosen = [text_columns(opened.train, name)[0] for name in (wanted if there else [None])]
    rows = []
    for part, table in (("train", opened.train), ("test", opened.test)):
        if table is not None:
            side = "" if opened.test is None else part
            split = {"split": part} if side else {}
            rows += [(side, number, row | split) for number, row in enumerate(table.records(), 1)]
    return rows, list(dict.fromkeys(chosen))


def _texts(source: str, rows: list[dict[str, Any]], column: str) -> Any:
    """The texts of a column, null where a row has none."""
    from tokensieve.text.tokenizers import text_series

    values = [row.get(column) for row in rows]
    for i, value in enumerate(values):
        if not (value is None or isinstance(value, str)):
            raise InputError(
                f"{source}: row {i + 1}: {column!r} is {value!r:.40}, not text; name the text column with --text"
            )
    return text_series(values)


def _exceeding(folder: Path, must: bool) -> tuple[list[str], list[str]]:
    """Tokens over the budget of an audit, of which there must be some where nothing else names any, and its text column."""
    from tokensieve.files import parsed, read_regular

    try:
        found = parsed(read_regular(folder / "summary.json"))
        over = [str(row["token"]) for row in found["over_budget"]]
        column = str(found["settings"]["columns"][0])
    except (OSError, ValueError) as problem:
        raise InputError(f"--audit {str(folder)!r} is not the folder of an audit: {problem}") from None
    except (KeyError, TypeError, IndexError) as problem:
        raise InputError(
            f"--audit {str(folder)!r} is not the folder of an audit: its summary.json lacks {problem}"
        ) from None
    if not over:
        over = _shortcuts(folder)
    if not over and must:
        raise InputError(
            f"the audit in {str(folder)!r} found no shortcut and no token over a limit; name tokens with --token"
        )
    return list(dict.fromkeys(over)), [column]


def _shortcuts(folder: Path) -> list[str]:
    """The tokens of the shortcuts of an audit without a limit."""
    from tokensieve.files import parsed, read_regular
    from tokensieve.text.formatting import is_formatting

    try:
        findings = parsed(read_regular(folder / "findings.json"))["findings"]
        tokens = [str(token) for one in findings if one["kind"] == "shortcut" for token in one["tokens"]]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"--audit {str(folder)!r} is not the folder of an audit: findings.json: {problem}") from None
    return [token for token in tokens if not is_formatting(token)]


def _written(rows: list[dict[str, Any]], name: str, source: str) -> bytes:
    """The rows in the format that the name of the file says."""
    import polars as pl

    suffix = Path(name).suffix.lower()
    if suffix == ".parquet":
        schema = pl.read_parquet_schema(source) if source.lower().endswith(".parquet") else None
        binary = io.BytesIO()
        try:
            flat = [{key: json.dumps(x, default=str) if _deep(x) else x for key, x in row.items()} for row in rows]
            pl.DataFrame(flat, schema=schema, infer_schema_length=None).write_parquet(binary)
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


def _deep(value: Any, limit: int = 30) -> bool:
    """Whether a value is nested so deeply that Parquet would take minutes; it is then written as JSON text."""
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list) and (limit == 0 or any(_deep(inner, limit - 1) for inner in value))
