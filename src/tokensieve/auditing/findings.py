"""Findings of an audit: what to act on, where it occurs in the texts, and how serious it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Literal

import polars as pl

from tokensieve.escape import IN_SENTENCE, for_display, html_table
from tokensieve.evidence.intervals import Share
from tokensieve.text.excerpts import Excerpt

HIGH_SEVERITY = 0.05  # the prediction of one document in twenty is in doubt
MEDIUM_SEVERITY = 0.01  # that of one in a hundred
# title of a shortcut that the score takes for an artefact, but not with much confidence
PROBABLE_SHORTCUT = "Probable shortcut"
MAX_ROWS_IN_JSON = 1000  # findings.csv has all
MAX_TOKENS_IN_CSV = 5  # of a finding; findings.json has all
ROWS = {"token": pl.String, "part": pl.String, "row": pl.Int64, "label": pl.String}


def written_score(score: float) -> str:
    """A score as a reader writes it: 4, 3.75 or 0.031."""
    return f"{score:.4g}"


@dataclass(frozen=True, repr=False)
class Finding:
    """One thing to act on.

    Attributes:
        kind: the name of the check that found it.
        severity: roughly the fraction of documents whose prediction it puts in doubt; "high" from
            5%, "low" below 1%. Findings of one level are ranked by it.
        label: the class concerned, or "".
        tokens: the tokens concerned; for a shortcut, those that occur together or share a word, the
            least word-like first.
        signs: how the tokens differ from ordinary words ("number", "fixed place", …).
        evidence: name → fraction of documents with its interval.
        documents: the number of documents concerned, in training and test data.
        rows: token, part ("train" or "test"), row, label of these documents.
        examples: a few of them.
        title: title of the check.
        headline: one sentence with its number, without a full stop.
        details: the evidence, as short clauses.
        action: what to do about it.
        exploitable: whether a model can predict the label by it without the subject.
        probability: of a shortcut, how likely it is an artefact; None of other findings.
        reasons: what speaks for and against that, as short clauses.
        maskable: those of `tokens` that `mask` can cut from texts.
        mask: what it should cut so that nothing of the finding is left: whole phrases, all ratings.
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
    exploitable: bool = False
    probability: float | None = None
    reasons: tuple[str, ...] = ()
    maskable: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()

    @property
    def level(self) -> Literal["high", "medium", "low"]:
        """The severity in words."""
        if self.severity >= HIGH_SEVERITY:
            return "high"
        if self.severity >= MEDIUM_SEVERITY:
            return "medium"
        return "low"

    def __repr__(self) -> str:
        about = ", ".join(for_display(token, IN_SENTENCE) for token in self.tokens[:3])
        if not about and self.label:
            about = for_display(self.label, IN_SENTENCE)
        subject = f"{self.kind}: {about}" if about else self.kind
        return f"Finding({subject}; {self.level}, {self.documents:,} documents)"

    def _repr_html_(self) -> str:
        columns = ("evidence", "documents", "of", "fraction", "low", "high")
        rows = [(name, *share.to_dict().values()) for name, share in self.evidence.items()]
        return html_table(repr(self), columns, rows)

    def to_dict(self) -> dict[str, object]:
        """An entry of findings.json, with its first thousand rows (findings.csv has them all)."""
        entry: dict[str, object] = {
            "kind": self.kind,
            "title": self.title,
            "headline": self.headline,
            "level": self.level,
            "severity": round(self.severity, 6),
            "class": self.label,
            "tokens": list(self.tokens),
            "signs": list(self.signs),
            "evidence": {name: share.to_dict() for name, share in self.evidence.items()},
            "details": list(self.details),
            "action": self.action,
            "documents": self.documents,
            "rows": self.rows.select(list(ROWS)).head(MAX_ROWS_IN_JSON).to_dicts(),
            "examples": [asdict(example) for example in self.examples],
        }
        if self.probability is not None:
            entry |= {"probability": self.probability, "reasons": list(self.reasons)}
        return entry


def rows_of_findings(findings: Iterable[Finding]) -> pl.DataFrame:
    """A table of every document of every finding: finding (its place, from 1), kind, tokens, part,
    row, label."""
    columns = {"finding": pl.Int32, "kind": pl.String, "tokens": pl.String}
    columns |= {name: ROWS[name] for name in ("part", "row", "label")}
    tables = [pl.DataFrame(schema=columns)]
    for number, finding in enumerate(findings, 1):
        table = finding.rows.with_columns(
            finding=pl.lit(number, pl.Int32),
            kind=pl.lit(finding.kind),
            tokens=pl.lit(", ".join(finding.tokens[:MAX_TOKENS_IN_CSV])),
        )
        tables.append(table.select(list(columns)))
    return pl.concat(tables)
