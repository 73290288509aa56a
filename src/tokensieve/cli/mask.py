"""Copy the data, removing the given tokens and any rows marked as mislabelled.

--out may also name the file to write: .csv .tsv .jsonl or .parquet.
"""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokensieve.cli.command import command, out_option, quiet_option, say
from tokensieve.cli.options import SOURCE, Files, Splitting
from tokensieve.cli.pairs import Answering, columns_of
from tokensieve.errors import InputError
from tokensieve.options import option

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """What to remove."""

    token: list[str] | None = option(None, "Token to remove (repeatable).", metavar="TOKEN", parse=list)
    audit: Path | None = option(
        None, "Folder of an audit with --fail-on: remove the tokens that exceeded the limit.", metavar="FOLDER"
    )
    decisions: Path | None = option(None, "Decisions exported from the audit's page.")
    part: str | None = option(
        None, "Whether SOURCE was the training or the test file, if the audit had --test.", metavar="train|test"
    )


@command(source=SOURCE)
def mask(
    source: str,
    what: Cut,
    splitting: Splitting,
    files: Files,
    out: Path = out_option("tokensieve-mask"),
    text: list[str] | None = option(None, "Column of the text (repeatable).", metavar="COLUMN", parse=list),
    pairs: str | None = option(
        None, "Columns of two answers; tokens are removed from both.", metavar="CHOSEN,REJECTED"
    ),
    quiet: bool = quiet_option(),
) -> None:
    """Write a copy of one source."""
    from tokensieve.auditing.decisions import Decisions
    from tokensieve.auditing.mask import mask_fields
    from tokensieve.files import check_writable, write_all
    from tokensieve.model.storage import read_model

    both = None if pairs is None else columns_of(pairs)
    target = _Target.of(out, source)
    check_writable(target.folder)
    if what.part not in (None, "train", "test"):
        raise InputError(f"--part is train or test, not {what.part!r}")
    decided = Decisions() if what.decisions is None else Decisions.read(what.decisions)
    tokens, likely, splitter = list(what.token or []), None, splitting.splitter()
    if what.audit is not None:
        found, likely = _exceeding(what.audit, must=what.decisions is None)
        tokens += [one for one in found if one not in decided.keep]
        model = read_model(what.audit)
        vocabulary = model.vocabulary
        both = Answering(what.audit, pairs).columns() if model.pairs else both
        if vocabulary is not None and splitting == Splitting():
            splitter = vocabulary.tokenizer
    tokens, formatting = _words([*tokens, *decided.mask], asked=what.token or [])
    fields = both or text or list(getattr(splitter, "fields", [])) or likely
    rows, columns = _rows(source, files, list(fields or []), must=bool(text or both))
    left_out = _left_out(source, rows, decided.wrong, what.part)
    changed = 0
    if tokens or not any(left_out):
        texts = {column: _texts(source, [row for _, _, row in rows], column) for column in columns}
        masked, changed = mask_fields(texts, tokens, splitter, alike=bool(both))
        for column, shorter in masked.items():
            for (_, _, row), value in zip(rows, shorter, strict=True):
                if value is not None:
                    row[column] = value
    kept, wrong = (
        [row for (_, _, row), gone in zip(rows, left_out, strict=True) if gone is which] for which in (False, True)
    )
    summary = {
        "documents": len(kept),
        "changed": changed,
        "left_out": len(wrong),
        "tokens": list(dict.fromkeys(tokens)),
    }
    write_all(target.folder, target.files(kept, wrong, summary, source), ours=target.ours)
    for name in formatting:
        say(quiet, f"not cut: {name} is formatting, no token of the text")
    gone = f", {len(wrong):,} with a wrong label left out" if wrong else ""
    if tokens and not changed:
        say(quiet, "no document holds what was to be cut out: the documents are a copy")
    cut, where = len(set(tokens)), target.folder / target.name
    words = f"{cut} token{'s' * (cut != 1)} cut out"
    say(quiet, f"{changed:,} of {len(rows):,} documents changed, {words}{gone}: {where}")


@dataclass(frozen=True)
class _Target:
    """Where the documents go: a folder with them and a summary, or one file that --out names.

    Attributes:
        folder: to write into.
        name: of the file with the documents.
        whole: whether the folder is the result, so that a summary belongs to it.
    """

    folder: Path
    name: str
    whole: bool

    @classmethod
    def of(cls, out: Path, source: str) -> _Target:
        if out.suffix.lower() in SUFFIXES and not out.is_dir():
            return cls(out.parent, out.name, False)
        if re.fullmatch(r"\.[A-Za-z]{2,7}", out.suffix) and not out.is_dir():
            raise InputError(f"--out {out.name!r} must end in .csv, .tsv, .jsonl or .parquet, or name a folder")
        likely = Path(source.lower().removesuffix(".gz")).suffix
        same = {".ndjson": ".jsonl", ".json": ".jsonl"}.get(likely, likely)
        return cls(out, f"masked{same if same in SUFFIXES else '.csv'}", True)

    @property
    def review(self) -> str:
        """The file of the documents that were left out."""
        path = Path(self.name)
        return f"wrong-label{path.suffix}" if self.whole else f"{path.stem}-wrong-label{path.suffix}"

    @property
    def ours(self) -> str:
        """What an earlier run may have left and would contradict this one."""
        return r"(masked|wrong-label)\.(csv|tsv|jsonl|parquet)" if self.whole else re.escape(self.review)

    def files(self, kept: list[Any], wrong: list[Any], summary: dict[str, Any], source: str) -> dict[str, Any]:
        """Name → content."""
        suffix = Path(self.name).suffix.lower()
        files: dict[str, Any] = {self.name: _written(kept, suffix, source)}
        if wrong:
            files[self.review] = _written(wrong, suffix, source)
        if self.whole:
            files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
        return files


def _words(tokens: list[str], asked: list[str]) -> tuple[list[str], list[str]]:
    """The tokens that stand in the text, and those that describe how it is written; what the user typed counts as text."""
    from tokensieve.text.formatting import is_formatting

    formatting = [one for one in tokens if one not in asked and is_formatting(one)]
    return [one for one in tokens if one not in formatting], list(dict.fromkeys(formatting))


def _left_out(source: str, rows: list[Any], wrong: dict[str, frozenset[int]], part: str | None) -> list[bool]:
    """Which rows have a wrong label. A source with training and test documents of its own has rows of either side; any other is
    the side that `part` names, or holds the documents of both.

    Args:
        source: for messages.
        rows: (side, or "" where the source has no sides, row number, the row).
        wrong: of the decisions.
        part: side of the audit that the source is, or None.
    """
    sides = {side for side, _, _ in rows}
    if sides <= {""}:
        numbers = wrong.get(part, frozenset()) if part else frozenset().union(*wrong.values())
        wrong = {"": numbers}
    have = {(side, number) for side, number, _ in rows}
    for side, numbers in wrong.items():
        missing = sorted(number for number in numbers if (side, number) not in have)
        if missing:
            raise InputError(
                f"{source}: there is no {f'{side} ' if side else ''}row {missing[0]}, which --decisions names: give the source of "
                "the audit, and --part train or --part test where the audit had --test"
            )
    return [number in wrong.get(side, ()) for side, number, _ in rows]


def _rows(source: str, files: Files, fields: list[str] | None, must: bool) -> tuple[list[Any], list[str]]:
    """All rows, each with its side ("" where the source has none of its own), its number there and all its fields, a split of the
    source's own as one more; and the names of the text columns.

    Args:
        source: as for every command.
        files: how it is read.
        fields: the columns that are wanted; guessed if None.
        must: whether they have to be there; otherwise one is guessed where they are not.
    """
    from tokensieve.text.columns import text_columns
    from tokensieve.text.settings import SourceSettings
    from tokensieve.text.sources import open_source

    opened = open_source(source, SourceSettings(**files.form()))
    columns = opened.train.columns
    wanted: list[str | None] = [*fields] if fields and (must or set(fields) <= set(columns)) else [None]
    chosen = [text_columns(opened.train, name)[0] for name in wanted]
    rows: list[tuple[str, int, dict[str, Any]]] = []
    for part, table in (("train", opened.train), ("test", opened.test)):
        if table is not None:
            split = {} if opened.test is None else {"split": part}
            side = part if split else ""
            rows += [(side, number, row | split) for number, row in enumerate(table.records(), 1)]
    return rows, list(dict.fromkeys(chosen))


def _texts(source: str, rows: list[dict[str, Any]], column: str) -> Any:
    """The texts of a column, null where a row has none."""
    from tokensieve.text.tokenizers import text_series

    values = [row.get(column) for row in rows]
    for i, value in enumerate(values):
        if not (value is None or isinstance(value, str)):
            raise InputError(f"{source}: row {i + 1}: {column!r} holds {value!r:.40}, no text: choose with --text")
    return text_series(values)


def _exceeding(folder: Path, must: bool) -> tuple[list[str], list[str]]:
    """Tokens over the budget of an audit, of which there must be some where nothing else names any, and its text column."""
    from tokensieve.files import parsed, read_regular

    try:
        found = parsed(read_regular(folder / "summary.json"))
        over = [str(row["token"]) for row in found["over_budget"]]
        column = str(found["settings"]["columns"][0])
    except (OSError, ValueError) as problem:
        raise InputError(f"--audit {str(folder)!r} is no folder of an audit: {problem}") from None
    except (KeyError, TypeError, IndexError) as problem:
        raise InputError(
            f"--audit {str(folder)!r} is no folder of an audit: its summary.json lacks {problem}"
        ) from None
    if not over and must:
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
