"""What an audit found that someone should act on, the worst first: each with its evidence, its documents and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import polars as pl

from tokensieve.auditing.context import Passage
from tokensieve.escape import html_table, shown
from tokensieve.evidence.shares import Share
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Ints

ROWS = {"token": pl.String, "part": pl.String, "row": pl.Int64, "label": pl.String}


class FindingKind(StrEnum):
    """What was found; the values stand in findings.json and are the names that `--fail-on` knows."""

    SHORTCUT = "shortcut"
    LEAK = "leak"
    CONTRADICTION = "contradiction"
    LABELS = "labels"
    IMBALANCE = "imbalance"
    EMPTY = "empty"
    DRIFT = "drift"
    UNSTABLE = "unstable"
    REPEATED = "repeated"


class Level(StrEnum):
    """How grave, for people: what touches a twentieth of the documents is high, less than a hundredth is low."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, repr=False)
class Finding:
    """One thing to act on.

    Attributes:
        kind: what it is.
        severity: about the share of the documents whose answer it puts in doubt, between 0 and 1; findings are ranked by it.
        label: the class concerned, or "".
        tokens: the tokens concerned; for a shortcut the least word-like first, those that occur together or share a word.
        signs: of the tokens, how they differ from ordinary words ("number", "fixed place", …).
        evidence: name → share of documents with its interval.
        documents: concerned, of all parts.
        rows: token, part ("train" or "test"), row, label of these documents.
        examples: a few, in context.
    """

    kind: FindingKind
    severity: float
    label: str = ""
    tokens: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    evidence: dict[str, Share] = field(default_factory=dict)
    documents: int = 0
    rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ROWS))
    examples: tuple[Passage, ...] = ()

    @property
    def level(self) -> Level:
        """High from 5 % of the documents, low below 1 %."""
        return Level.HIGH if self.severity >= 0.05 else Level.MEDIUM if self.severity >= 0.01 else Level.LOW

    def __repr__(self) -> str:
        about = ", ".join(shown(token, 40) for token in self.tokens[:3]) or shown(self.label, 40) * bool(self.label)
        return f"Finding({self.kind.value}{f': {about}' if about else ''}; {self.level.value}, {self.documents:,} documents)"

    def _repr_html_(self) -> str:
        shares = [
            (name, share.value, share.low, share.high, share.found, share.of) for name, share in self.evidence.items()
        ]
        return html_table(repr(self), ("evidence", "share", "low", "high", "documents", "of"), shares)

    def to_dict(self) -> dict[str, Any]:
        """An entry of findings.json."""
        return {
            "kind": self.kind.value,
            "level": self.level.value,
            "severity": round(self.severity, 6),
            "class": self.label,
            "tokens": list(self.tokens),
            "signs": list(self.signs),
            "evidence": {name: share.to_dict() for name, share in self.evidence.items()},
            "documents": self.documents,
            "rows": self.rows.select("token", "part", "row", "label").to_dicts()[:1000],
            "examples": [vars(one) for one in self.examples],
        }


def rows_of(documents: Ints, corpus: Corpus, part: str = "train", token: str = "") -> pl.DataFrame:
    """Documents as rows of their source: token, part, row, label.

    Args:
        documents: indices into the corpus.
        corpus: the documents of that part.
        part: "train" or "test".
        token: why they are listed, or "".
    """
    labels = pl.Series([str(name) for name in corpus.classes], dtype=pl.String).gather(corpus.labels[documents])
    frame = pl.DataFrame({"row": corpus.rows[documents], "label": labels})
    return frame.select(pl.lit(token).alias("token"), pl.lit(part).alias("part"), pl.col("row").cast(pl.Int64), "label")


def ranked(findings: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first."""
    return tuple(sorted(findings, key=lambda finding: -finding.severity))
