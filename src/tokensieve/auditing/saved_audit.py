"""The part of an audit that a comparison needs, from memory or from the folder that holds it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.auditing.outcomes import FILE_NAME, outcomes_table, read_outcomes
from tokensieve.auditing.result import Audit
from tokensieve.errors import InputError
from tokensieve.escape import IN_TITLE, for_display
from tokensieve.evidence.intervals import Share
from tokensieve.files import check_sums, parsed, read_regular

NUMBERS = ("posterior_difference", "effect", "effect_low", "effect_high", "q_value", "value")
MAX_DOCUMENTS = 2**53  # larger numbers are not exact in JSON
MAX_SUMMARY_BYTES = 2**26
MAX_TABLE_BYTES = 2**29
MAX_SIZE = 1e12  # of a number in the table; those of real audits are below a million
MAX_HEADLINES = 3
ROUNDING = 1e-9  # of an accuracy against its interval
NO_FINDINGS: dict[str, Any] = {"findings": []}  # 0.2 wrote none for some audits

_Number = Annotated[int, msgspec.Meta(ge=1, lt=MAX_DOCUMENTS)]  # of documents
_Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Settings(TypedDict):
    min_documents: NotRequired[_Number]


class _Summary(TypedDict):
    """The part of summary.json that is read."""

    name: str
    classes: Annotated[tuple[str, ...], msgspec.Meta(min_length=2)]
    documents: dict[str, _Number]
    settings: _Settings
    test_accuracy: _Fraction
    accuracy_interval: NotRequired[tuple[_Fraction, _Fraction]]
    findings: NotRequired[dict[str, int]]


class _Entry(TypedDict):
    """The part of a finding in findings.json that is read; 0.2 wrote neither title nor headline."""

    kind: str
    severity: float
    tokens: list[str]
    evidence: dict[str, Share]
    title: NotRequired[str]
    headline: NotRequired[str]


@dataclass(frozen=True)
class SavedFinding:
    """What a comparison shows of a finding: its kind in words, its sentence, how serious it is."""

    title: str
    headline: str
    level: str


@dataclass(frozen=True)
class SavedAudit:
    """The part of an audit that a comparison needs.

    Attributes:
        name: of the source.
        classes: class names.
        n_train, n_test: documents.
        accuracy: of the test documents, with its interval.
        min_documents: documents that a token type needed.
        tokens: a row per token type and class: token, class, documents and `NUMBERS`.
        findings: kind → how many.
        headlines: the most serious findings; none where the folder has no findings.json.
        page: what to open: folder and report.html where there is one.
        outcomes: a row per test item (`outcomes_table`); None in folders of 0.3, and of audits on a
            cluster.
    """

    name: str
    classes: tuple[str, ...]
    n_train: int
    n_test: int
    accuracy: Share
    min_documents: int
    tokens: pl.DataFrame
    findings: dict[str, int]
    headlines: tuple[SavedFinding, ...] = ()
    page: str = "the later audit"
    outcomes: pl.DataFrame | None = None

    @classmethod
    def of(cls, audit: Audit) -> SavedAudit:
        """Convert an audit that is still in memory."""
        tokens = audit.tokens.select("token", "class", "documents", *NUMBERS)
        findings = audit.findings_dict()["findings"]
        saved = _checked("the audit", audit.to_dict(), tokens, findings)
        return replace(saved, outcomes=outcomes_table(audit.learned))

    @classmethod
    def read(cls, folder: str | Path) -> SavedAudit:
        """Read the folder that `tokensieve audit` or `save` wrote.

        Raises:
            InputError: it is another folder, or its files are damaged.
        """
        path = Path(folder)
        where = repr(str(folder)[-80:])
        summary = _read_json(path, "summary.json", where)
        _refuse_scores(where, summary)
        tokens = _token_table(where, _read_file(path, "tokens.csv", where))
        findings = NO_FINDINGS
        if (path / "findings.json").exists():
            findings = _read_json(path, "findings.json", where)
        listed = findings.get("findings") if isinstance(findings, dict) else None
        saved = _checked(where, summary, tokens, listed)
        check_sums(path)
        if (path / FILE_NAME).exists():
            outcomes = read_outcomes(read_regular(path / FILE_NAME, limit=MAX_TABLE_BYTES))
            if outcomes is None:
                raise _damaged(where, f"{FILE_NAME} cannot be read")
            saved = replace(saved, outcomes=outcomes)
        page = path.resolve() / "report.html"
        if page.exists():
            saved = replace(saved, page=f"{for_display(page.parent.name, IN_TITLE)}/{page.name}")
        return saved


def _refuse_scores(where: str, summary: Any) -> None:
    """Raise an `InputError` for an audit of scores, whose tables are others."""
    if isinstance(summary, dict) and summary.get("task") == "scores":
        raise InputError(
            f"{where} is an audit of scores, which cannot be compared yet: compare mae, r2 and "
            "spearman in the two summary.json"
        )


def _damaged(where: str, what: str) -> InputError:
    return InputError(f"{where} is damaged: {what}; run the audit again")


def _read_json(folder: Path, name: str, where: str) -> Any:
    """One of the audit's JSON files; an `InputError` if it is not there, or no JSON."""
    content = _read_file(folder, name, where)
    try:
        return parsed(content)
    except InputError:
        raise
    except (ValueError, RecursionError) as problem:
        raise _damaged(where, f"{name}: {str(problem)[:100]}") from None


def _read_file(folder: Path, name: str, where: str) -> bytes:
    """One of the audit's files; an `InputError` if it is not there."""
    limit = MAX_TABLE_BYTES if name == "tokens.csv" else MAX_SUMMARY_BYTES
    try:
        return read_regular(folder / name, limit=limit)
    except (FileNotFoundError, NotADirectoryError):
        advice = "create one with `tokensieve audit`"
        similar = _similar_folder(folder)
        if similar:
            advice = f"did you mean {similar!r}?"
        raise InputError(f"{where} is not an audit folder: {name} is missing; {advice}") from None
    except OSError as problem:
        raise InputError(f"{where} cannot be read: {problem.strerror or problem}") from None
    except ValueError as problem:
        raise _damaged(where, f"{name}: {str(problem)[:100]}") from None


def _similar_folder(folder: Path) -> str:
    """An audit beside a folder that does not exist, with a similar name; "" if there is none."""
    if folder.exists():
        return ""
    names = [summary.parent.name for summary in folder.parent.glob("*/summary.json")]
    for name in get_close_matches(folder.name, names, n=1):
        return str(folder.with_name(name))
    return ""


def _checked(where: str, content: Any, tokens: pl.DataFrame, findings: Any) -> SavedAudit:
    """Build a saved audit from the contents of its files, all of which are checked."""
    summary = _checked_summary(where, content)
    n_test = summary["documents"]["test"]
    accuracy = summary["test_accuracy"]
    counted = Share.count(round(accuracy * n_test), n_test)
    low, high = summary.get("accuracy_interval", (counted.low, counted.high))
    is_unique = len(set(summary["classes"])) == len(summary["classes"])
    if not is_unique or not low - ROUNDING <= accuracy <= high + ROUNDING:
        raise _damaged(where, "summary.json contains impossible numbers")
    if not set(tokens["class"]) <= set(summary["classes"]):
        raise _damaged(where, "tokens.csv names a class that is not in summary.json")
    return SavedAudit(
        name=summary["name"],
        classes=summary["classes"],
        n_train=summary["documents"]["train"],
        n_test=n_test,
        accuracy=replace(counted, value=accuracy, low=low, high=high),
        min_documents=summary["settings"].get("min_documents", 1),
        tokens=tokens,
        findings=summary.get("findings", {}),
        headlines=_headlines(where, findings),
    )


def _checked_summary(where: str, content: Any) -> _Summary:
    """The content of summary.json; an `InputError` for anything else."""
    try:
        summary = msgspec.convert(content, _Summary)
        for side in ("train", "test"):
            _ = summary["documents"][side]
    except (ValueError, OverflowError, KeyError) as problem:
        missing = re.search(r"missing required field `(\w+)`|^'(\w+)'$", str(problem))
        if missing is None:
            raise _damaged(where, "summary.json contains impossible numbers") from None
        name = missing[1] or missing[2]
        raise InputError(
            f"{where} is not an audit folder: its summary.json lacks {name!r}"
        ) from None
    return summary


def _headlines(where: str, findings: Any) -> tuple[SavedFinding, ...]:
    """The first findings of findings.json."""
    try:
        entries: Sequence[_Entry] = msgspec.convert(findings[:MAX_HEADLINES], list[_Entry])
    except (TypeError, ValueError) as problem:
        raise _damaged(where, f"findings.json: {problem!s:.100}") from None
    headlines = []
    for entry in entries:
        title = entry.get("title", entry["kind"])
        level = Finding(entry["kind"], entry["severity"]).level
        headlines.append(SavedFinding(title, entry.get("headline", title), level))
    return tuple(headlines)


def _token_table(where: str, content: bytes) -> pl.DataFrame:
    """tokens.csv as numbers, each row once."""
    try:
        frame = pl.read_csv(io.BytesIO(content), infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as problem:
        reason = (str(problem).splitlines() or ["no table"])[0]
        raise _damaged(where, f"tokens.csv cannot be read ({reason[:100]})") from None
    for name in ("token", "class", "documents", *NUMBERS):
        if name not in frame.columns:
            raise _damaged(where, f"tokens.csv has no column {name!r}")
    # an apostrophe keeps a cell from being a formula in a spreadsheet
    texts = pl.col("token", "class").fill_null("").str.strip_prefix("'")
    documents = pl.col("documents").cast(pl.Int64, strict=False)
    frame = frame.select(texts, documents, pl.col(NUMBERS).cast(pl.Float64, strict=False))
    bad_rows = frame.select((~_is_possible().fill_null(False)).arg_true()).to_series()
    if len(bad_rows):
        raise _damaged(where, f"tokens.csv: row {bad_rows[0] + 1} contains an impossible number")
    if frame.select("token", "class").is_duplicated().any():
        raise _damaged(where, "tokens.csv lists a token twice for one class")
    return frame


def _is_possible() -> pl.Expr:
    """Whether a row of tokens.csv holds numbers that an audit can write."""
    numbers = pl.col(NUMBERS)
    is_number = pl.all_horizontal(numbers.is_finite() & (numbers.abs() <= MAX_SIZE))
    is_interval = pl.col("effect_low") <= pl.col("effect_high")
    return is_number & is_interval & pl.col("documents").is_between(0, MAX_DOCUMENTS)
