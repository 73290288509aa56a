"""What an audit found that someone should act on: one thing each, with its evidence, its documents and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import polars as pl

from tokensieve.auditing.context import Excerpt
from tokensieve.escape import html_table, shown
from tokensieve.evidence.shares import Share
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Ints
from tokensieve.text.formatting import is_formatting

ROWS = {"token": pl.String, "part": pl.String, "row": pl.Int64, "label": pl.String}
LISTED_ROWS = 1000  # of a finding in findings.json; findings.csv has them all


class Level(StrEnum):
    """How serious, for people: a finding that touches 5% of the documents is high, one below 1% is low."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, repr=False)
class Finding:
    """One thing to act on.

    Attributes:
        kind: the name of the check that found it.
        severity: about the fraction of documents whose prediction it puts in doubt; findings are ranked by it.
        label: the class concerned, or "".
        tokens: the tokens concerned; of a shortcut, those that occur together or share a word, the least word-like first.
        signs: how the tokens differ from ordinary words ("number", "fixed place", …).
        evidence: name → fraction of documents with its interval.
        documents: how many are concerned, in training and test data.
        rows: token, part ("train" or "test"), row, label of these documents.
        examples: a few of them.
        title: of the check.
        headline: one sentence with its number, without a full stop.
        details: what it rests on, each a short clause.
        action: what to do about it.
    """

    kind: str
    severity: float
    label: str = ""
    tokens: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    evidence: dict[str, Share] = field(default_factory=dict)
    documents: int = 0
    rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ROWS))
    examples: tuple[Excerpt, ...] = ()
    title: str = ""
    headline: str = ""
    details: tuple[str, ...] = ()
    action: str = ""

    @property
    def level(self) -> Level:
        """High from 5% of the documents, low below 1%."""
        return Level.HIGH if self.severity >= 0.05 else Level.MEDIUM if self.severity >= 0.01 else Level.LOW

    @property
    def maskable(self) -> list[str]:
        """Its tokens that a command can cut from a text: neither formatting nor longer than 200 characters."""
        return [token for token in self.tokens if not is_formatting(token) and len(token) <= 200]

    def __repr__(self) -> str:
        about = ", ".join(shown(token, 40) for token in self.tokens[:3]) or shown(self.label, 40) * bool(self.label)
        return f"Finding({self.kind}{f': {about}' if about else ''}; {self.level.value}, {self.documents:,} documents)"

    def _repr_html_(self) -> str:
        shares = [(name, *share.to_dict().values()) for name, share in self.evidence.items()]
        return html_table(repr(self), ("evidence", "documents", "of", "fraction", "low", "high"), shares)

    def to_dict(self) -> dict[str, Any]:
        """An entry of findings.json."""
        return {
            "kind": self.kind,
            "title": self.title,
            "headline": self.headline,
            "level": self.level.value,
            "severity": round(self.severity, 6),
            "class": self.label,
            "tokens": list(self.tokens),
            "signs": list(self.signs),
            "evidence": {name: share.to_dict() for name, share in self.evidence.items()},
            "details": list(self.details),
            "action": self.action,
            "documents": self.documents,
            "rows": self.rows.select("token", "part", "row", "label").to_dicts()[:LISTED_ROWS],
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
