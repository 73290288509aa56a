"""An audit as a folder, read again: its table and its summary, checked before any of it is used."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.errors import InputError
from tokensieve.evidence.shares import Share
from tokensieve.files import parsed, read_regular

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit


NUMBERS = "posterior_difference effect effect_low effect_high q_value value".split()
COLUMNS = ["token", "class", "documents", *NUMBERS]
LARGEST = 1e12  # of any number in the table
MOST_DOCUMENTS = 2**53
HEADLINES = 3


@dataclass(frozen=True)
class Saved:
    """What a comparison needs of an audit.

    Attributes:
        name: the source.
        classes: class names.
        train, test: documents.
        accuracy: of the test documents, with its interval.
        floor: documents that a token type needed.
        tokens: token, class, documents, and the columns in NUMBERS; a row per token type and class.
        findings: kind → how many.
        headlines: the gravest findings, without their rows and examples; none where the folder has no findings.json.
    """

    name: str
    classes: tuple[str, ...]
    train: int
    test: int
    accuracy: Share
    floor: int
    tokens: pl.DataFrame
    findings: dict[str, int]
    headlines: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, audit: Audit) -> Saved:
        """From an audit that is still in memory."""
        found = cls._checked("the audit", audit.to_dict(), audit.tokens.select(COLUMNS))
        return replace(found, headlines=audit.findings[:HEADLINES])

    @classmethod
    def read(cls, folder: str | Path) -> Saved:
        """From the folder that `tokensieve audit` or `save` wrote.

        Raises:
            InputError: it is no folder of an audit, or its files are damaged.
        """
        path = Path(folder)
        where = str(path)[-80:]
        try:
            summary, table = (read_regular(path / name) for name in ("summary.json", "tokens.csv"))
        except (FileNotFoundError, NotADirectoryError) as problem:
            missing = Path(str(problem.filename)).name
            raise InputError(
                f"{where!r} is no folder of an audit: {missing} is missing; `tokensieve audit` writes one"
            ) from None
        except OSError as problem:
            raise InputError(f"{where!r} cannot be read: {problem.strerror or problem}") from None
        try:
            content = parsed(summary)
        except (ValueError, RecursionError) as problem:
            raise InputError(f"{where!r} is damaged: summary.json: {str(problem)[:100]}: run the audit again") from None
        found = cls._checked(repr(where), content, _table(repr(where), table))
        return replace(found, headlines=_headlines(path, repr(where)))

    @classmethod
    def _checked(cls, where: str, summary: Any, tokens: pl.DataFrame) -> Saved:
        try:
            documents, settings = summary["documents"], summary["settings"]
            floor, classes, accuracy = settings.get("min_documents", 1), summary["classes"], summary["test_accuracy"]
            sizes = documents["train"], documents["test"], floor
            findings = summary.get("findings", {})
            right = Share.count(round(accuracy * sizes[1]), sizes[1])
            low, high = summary.get("accuracy_interval", (right.low, right.high))
            share = replace(right, value=float(accuracy), low=float(low), high=float(high))
            good = (
                isinstance(summary["name"], str)
                and all(type(n) is int and 0 < n < MOST_DOCUMENTS for n in sizes)
                and type(accuracy) in (int, float)
                and 0 <= accuracy <= 1
                and len(classes) > 1
                and 0 <= low <= accuracy + 1e-9
                and accuracy - 1e-9 <= high <= 1
                and all(isinstance(name, str) for name in classes)
                and len(set(classes)) == len(classes)
                and all(type(n) is int and isinstance(kind, str) for kind, n in findings.items())
            )
        except (LookupError, TypeError, AttributeError) as problem:
            raise InputError(f"{where} is no folder of an audit: its summary.json lacks {problem!s:.60}") from None
        except (ValueError, OverflowError):  # an accuracy that is no share of the documents
            good = False
        if not good:
            raise InputError(f"{where} is damaged: summary.json holds numbers that no audit has: run the audit again")
        if not set(tokens["class"]) <= set(classes):
            raise InputError(
                f"{where} is damaged: tokens.csv names a class that summary.json does not: run the audit again"
            )
        return cls(summary["name"], tuple(classes), *sizes[:2], share, floor, tokens, dict(findings))


def _headlines(folder: Path, where: str) -> tuple[Finding, ...]:
    """The first findings of findings.json.

    Raises:
        InputError: it holds something else.
    """
    try:
        entries = parsed(read_regular(folder / "findings.json"))["findings"][:HEADLINES]
        return tuple(_finding(entry) for entry in entries)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
        raise InputError(f"{where} is damaged: findings.json: {str(problem)[:100]}: run the audit again") from None


def _finding(entry: dict[str, Any]) -> Finding:
    """One entry of findings.json.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: it is none.
    """
    evidence = {}
    for name, one in entry["evidence"].items():
        found, of, *shares = (one[key] for key in ("found", "of", "value", "low", "high"))
        if not (0 <= int(found) <= int(of) < MOST_DOCUMENTS and all(0 <= x <= 1 for x in shares)):
            raise ValueError(f"{name!r} is no share")
        evidence[str(name)] = Share(int(found), int(of), *map(float, shares))
    tokens, label = tuple(map(str, entry["tokens"])), str(entry["class"])
    severity = float(entry["severity"])
    kind, documents = entry["kind"], int(entry["documents"])
    if not isinstance(kind, str):
        raise TypeError("a kind is text")
    title, headline = (str(entry.get(name, kind)) for name in ("title", "headline"))  # 0.2 wrote neither
    return Finding(
        kind, severity, label, tokens, evidence=evidence, documents=documents, title=title, headline=headline
    )


def _table(where: str, content: bytes) -> pl.DataFrame:
    """tokens.csv as numbers.

    Raises:
        InputError: a column is missing, a cell is no number, or a row occurs twice.
    """
    damaged = f"{where} is damaged: tokens.csv"
    try:
        frame = pl.read_csv(io.BytesIO(content), infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as problem:
        reason = (str(problem).splitlines() or ["no table"])[0]
        raise InputError(f"{damaged} cannot be read ({reason[:100]}): run the audit again") from None
    lacking = [name for name in COLUMNS if name not in frame.columns]
    if lacking:
        raise InputError(f"{damaged} has no column {lacking[0]!r}: run the audit again")
    frame = frame.select(
        pl.col("token", "class").fill_null("").str.strip_prefix("'"),  # which keeps a cell from being a formula
        pl.col("documents").cast(pl.Int64, strict=False),
        pl.col(NUMBERS).cast(pl.Float64, strict=False),
    )
    fine = pl.all_horizontal(pl.col(NUMBERS).is_finite() & (pl.col(NUMBERS).abs() <= LARGEST))
    fine &= (pl.col("effect_low") <= pl.col("effect_high")) & pl.col("documents").is_between(0, MOST_DOCUMENTS)
    bad = frame.select((~fine.fill_null(False)).arg_true()).to_series()
    if len(bad):
        raise InputError(f"{damaged}: row {bad[0] + 1} holds what is no number of an audit: run the audit again")
    if frame.select("token", "class").is_duplicated().any():
        raise InputError(f"{damaged} names a token twice for one class: run the audit again")
    return frame
