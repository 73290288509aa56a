"""Copy the data, removing the given tokens and any rows that are marked or found to be wrong.

--out may also name the file to write: .csv .tsv .jsonl or .parquet.
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tokensieve.cli.command import (
    IGNORED,
    QUIET,
    SOURCES,
    answer_columns,
    as_token,
    command,
    out_option,
    say,
)
from tokensieve.errors import InputError
from tokensieve.escape import public_address
from tokensieve.options import option
from tokensieve.read.settings import SourceSettings
from tokensieve.text.settings import TokenSettings
from tokensieve.wording import plural, verb

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.auditing.swapping import Swap
    from tokensieve.read.copies import CopyTarget, Row, TextCell
    from tokensieve.read.opened import OpenedSource
    from tokensieve.text.tokenizers import Tokenizer

Part = Literal["train", "test"]
FILES_OF_A_FOLDER = r"(masked|wrong-label|left-out)\.(csv|tsv|jsonl|parquet)"

NOTHING_TO_MASK = (
    "no tokens to mask; name one with --token, or pass an audit that found some with --audit"
)


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
    leave_out: list[str] | None = option(
        None,
        "With --audit, in place of removing tokens: leave out the rows that findings.csv lists for "
        "this kind of finding: leak (test documents), repeated, labels, … (repeatable).",
        metavar="KIND",
        parse=list,
    ),
    swap: list[str] | None = option(
        None,
        "Add copies of texts in which two tokens change places (repeatable). Of three, A=B=C, "
        "each text gets two copies.",
        metavar="TOKEN=TOKEN",
        parse=list,
    ),
    part: Part | None = option(None, "Whether SOURCE was the audit's training or test file."),
    pairs: str | None = option(
        None,
        "Columns of the answers; tokens are removed from all of them.",
        metavar="CHOSEN,REJECTED",
    ),
    out: Path = out_option("tokensieve-mask"),
    overwrite: bool = option(False, "Replace an earlier copy."),
    quiet: bool = QUIET,
) -> None:
    """Write a copy of the source, or one copy of several files."""
    from tokensieve.files import check_writable
    from tokensieve.read.copies import copy_target
    from tokensieve.read.sources import open_source

    target = copy_target(out, source[0], "masked")
    check_writable(target.folder, audit=not target.is_folder)
    audit_of_tokens = None if leave_out else audit
    plan = _plan(token or [], audit_of_tokens, decisions, pairs, token_settings)
    plan = plan.swapping(_swaps(swap or [], plan.tokenizer))
    plan = plan.leaving_out(_rows_of_findings(audit, leave_out or []))
    opened = open_source(list(source) if len(source) > 1 else source[0], reading)
    target.check_is_free(source, overwrite)

    source_name = " ".join(public_address(address) for address in source)
    columns = _text_columns(opened, reading, plan)
    rows, wrong_rows = _rows(source_name, opened, plan.mislabelled, part)
    outcome = _Masked()
    # where rows alone are asked for, no tokens are; where nothing is, `_mask_rows` says so
    if plan.tokens or not (wrong_rows or plan.swaps or leave_out):
        outcome = _mask_rows(rows, columns, plan, reading.role, source_name)
        if not outcome.removed_tokens and not wrong_rows:
            raise InputError("; ".join(outcome.warnings) or NOTHING_TO_MASK)

    kept_rows = [row for number, row in enumerate(rows) if number not in wrong_rows]
    copies = _swapped_copies(kept_rows, columns, plan, reading.role, source_name)
    _write(target, [*rows, *copies], wrong_rows, outcome, source_name, bool(leave_out))
    done = _what_was_done(outcome, len(copies), len(kept_rows), len(wrong_rows), bool(leave_out))
    for line in (*outcome.warnings, f"{done}: {target.path}"):
        say(quiet, line)


def _what_was_done(
    outcome: _Masked, n_copies: int, n_kept: int, n_left_out: int, is_by_request: bool
) -> str:
    """A sentence with the numbers of documents that were changed, added and left out, and of tokens
    removed.

    Rows are left out because the user asked for it (`is_by_request`), or as mislabelled.
    """
    parts = [f"{outcome.n_changed:,} of {n_kept + n_left_out:,} documents changed"]
    n_removed = len(outcome.removed_tokens)
    if n_removed and n_removed < outcome.n_asked:
        parts.append(
            f"{n_removed:,} of {plural(outcome.n_asked, 'token')} removed (the others occur in no "
            "text)"
        )
    elif n_removed:
        parts.append(f"{plural(n_removed, 'token')} removed")
    copies = plural(n_copies, "counterfactual copy", "counterfactual copies")
    if n_copies and not n_removed and not n_left_out:
        return f"{copies} added to {plural(n_kept, 'document')}"
    if n_copies:
        parts.append(f"{copies} added")
    if n_left_out:
        kind_of_row = "row" if is_by_request else "mislabelled row"
        parts.append(f"{plural(n_left_out, kind_of_row)} left out")
    return ", ".join(parts)


@dataclass(frozen=True)
class _Plan:
    """What to remove.

    Attributes:
        tokens: what to cut from the texts.
        asked: those of them that the user named.
        tokenizer: splits the texts into such tokens.
        answer_columns: of preference data the columns of the answers, else none.
        audited_columns: the columns of the audit's texts.
        mislabelled: part ("train", "test") → rows with a wrong label, from 1.
        swaps: tokens that take each other's place in copies.
    """

    tokens: list[str]
    asked: list[str]
    tokenizer: Tokenizer
    answer_columns: Sequence[str]
    audited_columns: list[str]
    mislabelled: Mapping[str, frozenset[int]]
    swaps: tuple[Swap, ...] = ()

    def swapping(self, swaps: Sequence[Swap]) -> _Plan:
        """The same plan with copies, for which an audit's phrases with a swapped token stay.

        Raises:
            InputError: the user asks to remove a token that is swapped.
        """
        swapped = [f" {token} " for swap in swaps for token in swap.tokens]

        def holds_swapped(token: str) -> bool:
            return any(words in f" {token} " for words in swapped)

        for token in filter(holds_swapped, self.asked):
            raise InputError(
                f"{token!r} cannot be both removed and swapped: leave out --token or --swap"
            )
        tokens = [token for token in self.tokens if not holds_swapped(token)]
        return replace(self, tokens=tokens, swaps=tuple(swaps))

    def leaving_out(self, rows: Mapping[str, frozenset[int]]) -> _Plan:
        """The same plan, which also leaves out some rows of each part."""
        none: frozenset[int] = frozenset()
        parts = [*self.mislabelled, *rows]
        both = {part: self.mislabelled.get(part, none) | rows.get(part, none) for part in parts}
        return replace(self, mislabelled=both)


def _rows_of_findings(audit: Path | None, kinds: Sequence[str]) -> dict[str, frozenset[int]]:
    """Part → the rows of an audit's findings of some kinds; of a leak, those of the test part."""
    if not kinds:
        return {}
    if audit is None:
        raise InputError("--leave-out needs --audit FOLDER, the audit that found the rows")
    import polars as pl

    from tokensieve.files import read_regular

    try:
        table = pl.read_csv(
            read_regular(audit / "findings.csv"),
            columns=["kind", "part", "row"],
            schema_overrides={"kind": pl.String, "part": pl.String, "row": pl.Int64},
        )
    except (OSError, ValueError, pl.exceptions.PolarsError) as problem:
        raise InputError(
            f"{str(audit)!r} is not an audit folder: its findings.csv cannot be read "
            f"({type(problem).__name__})"
        ) from None
    known = table["kind"].unique().sort().to_list()
    unknown = [kind for kind in kinds if kind not in known]
    if unknown:
        raise InputError(
            f"--leave-out {unknown[0]}: this audit has no such rows; it lists rows of "
            f"{', '.join(known) or 'no finding'}"
        )
    is_other_side = (pl.col("kind") == "leak") & (pl.col("part") != "test")
    own = table.filter(pl.col("kind").is_in(list(kinds)), ~is_other_side)
    return {
        str(part): frozenset(rows) for part, rows in own.group_by("part").agg("row").iter_rows()
    }


def _plan(
    named: list[str],
    audit: Path | None,
    decisions: Path | None,
    pairs: str | None,
    token_settings: TokenSettings,
) -> _Plan:
    """Collect what to remove, and the tokenizer with which it is found in the texts.

    The tokens are those that the user names, those that were decided to be masked, and the
    shortcuts of an audit that were not decided to be kept. With an audit, texts are split as its
    model splits them, unless options say otherwise.

    Raises:
        InputError: the audit has nothing to remove, or columns of answers are missing.
    """
    from tokensieve.auditing.decisions import read_decisions
    from tokensieve.model.storage import read_model
    from tokensieve.text.tokenizers import FieldTokenizer

    to_mask: list[str] = []
    to_keep: list[str] = []
    mislabelled: dict[str, frozenset[int]] = {}
    if decisions is not None:
        decided = read_decisions(decisions)
        to_mask = decided.to_mask
        to_keep = decided.to_keep
        mislabelled = decided.mislabelled
    tokenizer = token_settings.make_tokenizer()
    asked = [*(as_token(name, tokenizer) for name in named), *to_mask]
    if audit is None:
        return _Plan(asked, asked, tokenizer, answer_columns(pairs, None), [], mislabelled)

    advice = _advice_of(audit)
    if decisions is None and not advice.to_mask and not advice.of_shortcuts:
        raise InputError(
            f"{str(audit)!r}: this audit has no shortcut and no token over a limit; name tokens "
            "with --token"
        )
    tokens = [*asked, *(token for token in advice.to_mask if token not in to_keep)]
    model = read_model(audit)
    if model.vocabulary is not None and token_settings == TokenSettings():
        tokenizer = model.vocabulary.tokenizer
    columns = [advice.text_column]
    if isinstance(tokenizer, FieldTokenizer):
        tokens += [token for token in advice.of_shortcuts if tokenizer.is_value(token)]
        value_columns = dict(tokenizer.columns)
        columns = [name for name in tokenizer.fields if name not in value_columns]
    answers = answer_columns(pairs, audit if model.pairs else None)
    return _Plan(tokens, asked, tokenizer, answers, columns, mislabelled)


@dataclass(frozen=True)
class _Advice:
    """What an audit says should be masked.

    Attributes:
        to_mask: tokens over the limit of `--fail-on`, or else the tokens to mask of its shortcuts.
        of_shortcuts: all tokens of its shortcuts, if none is over the limit.
        text_column: the first column that it read.
    """

    to_mask: list[str]
    of_shortcuts: list[str]
    text_column: str


def _advice_of(folder: Path) -> _Advice:
    """The advice in an audit's summary.json and findings.json; an `InputError` without them."""
    from tokensieve.files import parsed, read_regular
    from tokensieve.text.formatting import is_formatting

    name = "summary.json"
    try:
        summary = parsed(read_regular(folder / name))
        over_limit = [str(row["token"]) for row in summary["over_budget"]]
        column = str(summary["settings"]["columns"][0])
        if over_limit:
            return _Advice(list(dict.fromkeys(over_limit)), [], column)
        name = "findings.json"
        to_mask: list[str] = []
        of_shortcuts: list[str] = []
        for finding in parsed(read_regular(folder / name))["findings"]:
            if finding["kind"] == "shortcut":
                to_mask += map(str, finding.get("mask", finding["tokens"]))
                of_shortcuts += map(str, finding["tokens"])
    except FileNotFoundError:
        raise InputError(f"--audit {str(folder)!r} is not an audit folder: no {name}") from None
    except (LookupError, TypeError) as problem:
        raise InputError(
            f"--audit {str(folder)!r} is not an audit folder: its {name} lacks {problem}"
        ) from None
    except (OSError, ValueError) as problem:
        raise InputError(f"--audit {str(folder)!r} is not an audit folder: {problem}") from None
    forms = [token for token in of_shortcuts if is_formatting(token)]
    return _Advice(list(dict.fromkeys([*to_mask, *forms])), of_shortcuts, column)


def _text_columns(opened: OpenedSource, reading: SourceSettings, plan: _Plan) -> list[str]:
    """The columns to cut tokens from: those named, those of the pairs, or those of the audit."""
    from tokensieve.read.columns import text_columns

    chosen: Sequence[str] = [reading.text] if isinstance(reading.text, str) else reading.text or []
    named = list(plan.answer_columns or chosen)
    columns_to_read: list[str | None] = list(named or plan.audited_columns)
    is_known = named or set(columns_to_read) <= set(opened.train.columns)
    if not columns_to_read or not is_known:
        columns_to_read = [None]  # the only column of text
    columns = [text_columns(opened.train, name)[0] for name in columns_to_read]
    return list(dict.fromkeys(columns))


def _rows(
    source: str,
    opened: OpenedSource,
    mislabelled: Mapping[str, frozenset[int]],
    part: Part | None,
) -> tuple[list[Row], set[int]]:
    """All rows, and the places of those with a wrong label.

    Decisions refer to rows of the audit's training or test file. A source with one table is `part`,
    or contains both.
    """
    from tokensieve.read.copies import part_rows, parts_of

    rows: list[Row] = []
    wrong: set[int] = set()
    for side, table in parts_of(opened).items():
        own_rows = part_rows(side, table)
        known_part = side or part
        decided_parts = [known_part] if known_part else list(mislabelled)
        numbers = {number for name in decided_parts for number in mislabelled.get(name, ())}
        beyond = [number for number in numbers if number > len(own_rows)]
        if beyond:
            row = f"{side} row {min(beyond)}" if side else f"row {min(beyond)}"
            raise InputError(
                f"{source}: the rows to leave out include {row}, which does not exist; pass the "
                "audited file, and --part train or --part test if the audit used --test"
            )
        wrong |= {len(rows) + number - 1 for number in numbers}
        rows += own_rows
    return rows, wrong


@dataclass(frozen=True)
class _Masked:
    """What was cut from the rows, and what the user should know about it.

    Attributes:
        n_changed: rows with a shorter text.
        removed_tokens: the tokens that occurred.
        n_asked: tokens that were looked for, without those that a warning names as absent.
        warnings: what the user should know.
    """

    n_changed: int = 0
    removed_tokens: list[str] = field(default_factory=list)
    n_asked: int = 0
    warnings: list[str] = field(default_factory=list)


def _mask_rows(
    rows: Sequence[Row], columns: Sequence[str], plan: _Plan, role: str | None, source: str
) -> _Masked:
    """Cut the tokens from the texts of the rows, in place."""
    from tokensieve.auditing.masking import mask_fields
    from tokensieve.read.copies import cell_texts, text_cells

    cells = {column: list(text_cells(rows, column, role)) for column in columns}
    texts = {column: cell_texts(source, cells[column], column) for column in columns}
    is_pairs = len(plan.answer_columns) > 0
    masked = mask_fields(texts, plan.tokens, plan.tokenizer, alike=is_pairs)
    warnings = masked.warnings
    removed = [token for token, occurring in masked.similar.items() if token and token == occurring]

    changed_rows = set()
    for column, shorter in masked.texts.items():
        before = texts[column]
        for cell, text, earlier in zip(cells[column], shorter, before, strict=True):
            if text is not None and text != earlier:
                cell.holder[cell.key] = text
                changed_rows.add(cell.row)

    # an audit names tokens of all its texts; that this file lacks some matters only if it lacks all
    absent = {
        token: occurring
        for token, occurring in masked.similar.items()
        if token not in removed and (token in plan.asked or not removed)
    }
    if absent:
        warnings = [*warnings, _absent(absent)]
    n_asked = len(masked.similar) - len(absent)
    return _Masked(len(changed_rows), removed, n_asked, warnings)


def _swapped_copies(
    rows: Sequence[Row],
    columns: Sequence[str],
    plan: _Plan,
    role: str | None,
    source: str,
) -> list[Row]:
    """Copies of every row whose texts contain a swapped token, with another one in its place."""
    if not plan.swaps:
        return []
    from tokensieve.auditing.swapping import swap_texts
    from tokensieve.read.copies import cell_texts, text_cells

    cells = [cell for column in columns for cell in text_cells(rows, column, role)]
    texts = cell_texts(source, cells, " + ".join(columns))
    copies: list[Row] = []
    for swapped in swap_texts(texts, plan.swaps, plan.tokenizer):
        copies += _rows_with(rows, columns, cells, swapped, role)
    return copies


def _swaps(written: Sequence[str], tokenizer: Tokenizer) -> list[Swap]:
    """The swaps that the user names, with their tokens as the tokenizer writes them."""
    if not written:
        return []
    from tokensieve.auditing.swapping import Swap, check_swaps

    named = [Swap.parse(swap) for swap in written]
    swaps = [Swap(tuple(as_token(token, tokenizer) for token in swap.tokens)) for swap in named]
    check_swaps(swaps)
    return swaps


def _rows_with(
    rows: Sequence[Row],
    columns: Sequence[str],
    cells: Sequence[TextCell],
    swapped: pl.Series,
    role: str | None,
) -> list[Row]:
    """A copy of each row that has a new text, with it.

    Args:
        cells: the texts of the rows.
        swapped: the new text of each cell, or null.
    """
    from tokensieve.read.copies import text_cells

    changed_rows = {cell.row for cell, text in zip(cells, swapped, strict=True) if text is not None}
    copies = {number: copy.deepcopy(rows[number]) for number in sorted(changed_rows)}
    # the cells of a copy come in the same order as those of its row
    cells_of_copies = {
        number: iter([cell for column in columns for cell in text_cells([row], column, role)])
        for number, row in copies.items()
    }
    for cell, text in zip(cells, swapped, strict=True):
        if cell.row in copies:
            own_cell = next(cells_of_copies[cell.row])
            if text is not None:
                own_cell.holder[own_cell.key] = text
    return list(copies.values())


def _write(
    target: CopyTarget,
    rows: Sequence[Row],
    wrong_rows: set[int],
    outcome: _Masked,
    source: str,
    is_by_finding: bool,
) -> None:
    """Write the copy, the rows left out beside it, and a summary if a folder was named."""
    from tokensieve.files import json_text, write_all
    from tokensieve.read.copies import write_rows

    name_of_rest = "left-out" if is_by_finding else "wrong-label"
    rows_written = [row for number, row in enumerate(rows) if number not in wrong_rows]
    left_out = [rows[number] for number in sorted(wrong_rows)]
    files: dict[str, str | bytes] = {target.name: write_rows(rows_written, target.name, source)}
    if target.is_folder:
        review_name = name_of_rest + Path(target.name).suffix
        ours = FILES_OF_A_FOLDER
        summary = {
            "documents": len(rows_written),
            "changed": outcome.n_changed,
            "left_out": len(left_out),
            "tokens": outcome.removed_tokens,
        }
        files["summary.json"] = json_text(summary)
    else:
        review_name = target.beside(name_of_rest)
        ours = re.escape(review_name)
    if left_out:
        files[review_name] = write_rows(left_out, review_name, source)
    write_all(target.folder, files, ours=ours)


def _absent(similar: Mapping[str, str]) -> str:
    """Names tokens that occur nowhere, with options for the similar ones that do (or "")."""
    from tokensieve.auditing.phrases import quoted

    options = [part for token in similar.values() if token for part in ("--token", token)]
    advice = "check the spelling, the file and the column (--text)"
    if options:
        advice = f"did you mean `{shlex.join(options)}`?"
    return f"{quoted(list(similar))} {verb(len(similar), 'occur')} in no text; {advice}"
