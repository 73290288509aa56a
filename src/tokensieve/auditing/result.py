"""What an audit found: numbers and tables, from which terminal, page and files are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve.auditing.agreement import Quadrant, disagreeing, quadrant_sizes, surest
from tokensieve.auditing.budget import Budget
from tokensieve.auditing.card import ModelCard
from tokensieve.auditing.concordance import Concordance
from tokensieve.auditing.documents import Example, Sampled
from tokensieve.auditing.findings import Finding, FindingKind
from tokensieve.auditing.pairs import PreferenceFacts
from tokensieve.escape import html_table, shown
from tokensieve.evidence.shares import Share
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.settings import TrainSettings

BUDGETED = ("token", "class", "documents", "posterior_difference", "posterior_low", "posterior_high")
DOCUMENT = {"part": pl.String, "row": pl.Int64, "label": pl.String}
SUMMARY = (
    "name classes documents class_documents token_types test_accuracy majority_accuracy class_recall baseline_accuracy "
    "unknown_share attention_share seconds seed settings version notes"
)


@dataclass(frozen=True)
class Settings(TrainSettings):
    """What an audit can be given: how its model is trained, and more.

    Attributes:
        formatting: what a text looks like is a token type, too (`tokensieve.text.formatting`).
        baseline: whether TF-IDF + logistic regression is trained beside the model.
        budget: what no token and no finding may exceed (`Audit.over_budget`, `Audit.exceeded`), or None.
        thorough: also look for wrong labels, and measure accuracy without the shortcuts: about three more trainings.
    """

    formatting: bool = True
    baseline: bool = True
    budget: Budget | None = None
    thorough: bool = True


@dataclass(frozen=True, repr=False)
class Audit:
    """Everything that an audit found; tables, terminal and page all read from here.

    Attributes:
        name: the source.
        classes: class names; with two, the second is y = +1.
        version: of this package.
        seed, settings: as given.
        documents: {"train": …, "test": …}.
        class_documents: training documents per class.
        token_types: |S|.
        accuracy: test documents (of pairs, pairs) answered right, with an interval over units where documents belong together.
        test_accuracy, majority_accuracy: shares of test documents answered right by the model and by always naming the
            largest class of the training documents.
        class_recall: class → share of its test documents that are answered right (None where it has none).
        baseline_accuracy: the same of TF-IDF + logistic regression on the same token counts; None without the baseline.
        unknown_share: share of the words of the test documents that training never saw often enough.
        seconds: reading, tokenizing, training, baseline, …, total.
        notes: what was counted on the way in, in plain words.
        tokens: the one table: a row per token type and class (`Importance.to_frame`), then score u, value w, attention (mean
            over the documents that contain it of its attention relative to a uniform share) and quadrant.
        neutral: class → posterior difference of a type that carries nothing.
        examples: test documents, taken apart.
        attention_share: quadrant → (share of all attention, share of uniform attention) of its types, means over training
            documents; both sum to one.
        suspicious: (token, class, reason) of single tokens that nearly decide a class.
        model: the trained classifier.
        sample: test documents for the page: some of each kind, and some that hold the most telling tokens.
        over_budget: the rows of `tokens` that exceed the budget; none without a budget.
        to_review: token, part ("train" or "test"), row, label of every document that holds one of these.
        findings: what someone should act on, the gravest first.
        label_issues: training documents that may carry the wrong label (row, label, looks_like, margin, against).
        honest_accuracy: test accuracy with all tokens, and of a model trained without those of the shortcuts; None without
            shortcuts.
        environments: per token type and class, its effect in each environment and whether that is the same everywhere; empty
            without environments.
        lines: token → keyword in context, from training documents (`auditing.concordance`).
        card: precision, recall, calibration and the like; None where it was not made.
        exceeded: kinds of findings of which there is more than the budget allows.
        pairs: what preference pairs show beside all this; None where documents are no pairs.
    """

    name: str
    classes: tuple[str, ...]
    version: str
    seed: int
    settings: dict[str, Any]
    documents: dict[str, int]
    class_documents: dict[str, int]
    token_types: int
    accuracy: Share
    test_accuracy: float
    majority_accuracy: float
    class_recall: dict[str, float | None]
    baseline_accuracy: float | None
    unknown_share: float
    seconds: dict[str, float]
    notes: list[str]
    tokens: pl.DataFrame
    neutral: dict[str, float]
    examples: list[Example]
    attention_share: dict[str, tuple[float, float]]
    suspicious: list[tuple[str, str, str]]
    model: AttentionClassifier
    sample: list[Sampled] = field(default_factory=list)
    over_budget: pl.DataFrame = field(default_factory=pl.DataFrame)
    to_review: pl.DataFrame = field(default_factory=pl.DataFrame)
    findings: tuple[Finding, ...] = ()
    label_issues: pl.DataFrame = field(default_factory=pl.DataFrame)
    honest_accuracy: tuple[Share, Share] | None = None
    exceeded: tuple[FindingKind, ...] = ()
    environments: pl.DataFrame = field(default_factory=pl.DataFrame)
    lines: Concordance = field(default_factory=dict)
    card: ModelCard | None = None
    pairs: PreferenceFacts | None = None

    def __repr__(self) -> str:
        n, classes = self.documents, len(self.classes)
        return (
            f"Audit({self.name!r}: {n['train']:,} training and {n['test']:,} test documents, {classes} classes, "
            f"{self.token_types:,} token types, test accuracy {self.test_accuracy:.3f})"
        )

    @property
    def fails(self) -> bool:
        """Whether a token or another finding exceeds the budget."""
        return not self.over_budget.is_empty() or bool(self.exceeded)

    def _repr_html_(self) -> str:
        """Findings, and the surest tokens of each class, for notebooks."""
        findings = [
            (
                one.level.value,
                one.kind.value,
                ", ".join(shown(token, 40) for token in one.tokens[:5]),
                one.label,
                one.documents,
            )
            for one in self.findings[:10]
        ]
        columns = "class token documents posterior_difference posterior_low posterior_high attention quadrant".split()
        top = pl.concat([self.top(label, 5) for label in self.classes[:6]]).select(columns)
        head = ("level", "kind", "tokens", "class", "documents")
        found = html_table(f"{len(self.findings)} findings", head, findings) if findings else ""
        return html_table(repr(self), columns, top.iter_rows()) + found

    def save(self, folder: str | Path, pictures: bool = True) -> list[Path]:
        """Write the files of `tokensieve audit` into a folder (`tokensieve.save`): all, or none.

        Raises:
            InputError: the folder cannot be written.
        """
        import tokensieve  # by the front door: this room knows no page, and only the page's room can write one

        return tokensieve.save(self, folder, pictures)

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        suspicious = [dict(zip(("token", "class", "reason"), s, strict=True)) for s in self.suspicious]
        over = [] if self.over_budget.is_empty() else self.over_budget.select(BUDGETED).to_dicts()
        summary = {name: getattr(self, name) for name in SUMMARY.split()}
        honest = None if self.honest_accuracy is None else [share.to_dict() for share in self.honest_accuracy]
        kinds = [finding.kind.value for finding in self.findings]
        found = {"findings": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}, "honest_accuracy": honest}
        card = {} if self.card is None else {"model_card": self.card.to_dict()}
        pairs = {} if self.pairs is None else {"pairs": self.pairs.to_dict()}
        summary["accuracy_interval"] = [self.accuracy.low, self.accuracy.high]
        return summary | {"suspicious": suspicious, "over_budget": over} | found | card | pairs

    def findings_dict(self) -> dict[str, Any]:
        """The content of findings.json."""
        return {
            "name": self.name,
            "version": self.version,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def finding_rows(self) -> pl.DataFrame:
        """Every document of every finding: finding (its place, from 1), kind, tokens, part, row, label."""
        empty = pl.DataFrame(schema={"finding": pl.Int32, "kind": pl.String, "tokens": pl.String} | DOCUMENT)
        parts = [
            finding.rows.select(
                pl.lit(i, pl.Int32).alias("finding"),
                pl.lit(finding.kind.value).alias("kind"),
                pl.lit(", ".join(finding.tokens[:5])).alias("tokens"),
                *DOCUMENT,
            )
            for i, finding in enumerate(self.findings, 1)
        ]
        return pl.concat([empty, *parts])

    def to_frame(self) -> pl.DataFrame:
        """The table of tokens: a row per token type and class."""
        return self.tokens

    def top(self, label: str, rows: int = 10) -> pl.DataFrame:
        """The tokens that speak most surely for a class (`agreement.surest`)."""
        return surest(self.tokens, label, rows)

    def disagreement(self, quadrant: Quadrant | str, rows: int = 10) -> pl.DataFrame:
        """Tokens of one disagreeing quadrant (`agreement.disagreeing`)."""
        return disagreeing(self.tokens, Quadrant(quadrant), rows)

    @cached_property
    def quadrants(self) -> dict[Quadrant, int]:
        """How many token types stand in each quadrant."""
        return quadrant_sizes(self.tokens)
