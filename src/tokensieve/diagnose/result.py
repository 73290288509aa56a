"""What a diagnosis found: numbers and tables, from which the page and the files are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tokensieve.diagnose.effects.confirming import Rest
from tokensieve.diagnose.judgement.agreement import Correlation
from tokensieve.diagnose.judgement.score import SUSPECTED
from tokensieve.diagnose.judgement.skill import Learning, Skill
from tokensieve.diagnose.judgement.status import Status
from tokensieve.report.blocks import Passage

WORD_KINDS = ("word", "pattern", "passage")


@dataclass(frozen=True, repr=False)
class DiagnosisResult:
    """Everything a diagnosis found, as data.

    Attributes:
        name, model: of the documents and of the model.
        classes: with two, the second is y = +1.
        documents: {"all": …, "read": by the model, "by class": of all}.
        settings: those of the measurement.
        skill: how well the model predicts.
        reading: how the model was read: family; method ("integrated gradients" or "leave-one-out",
            how words were screened); unit (of predictions: "log-odds" or "scaled output");
            reads (where its prediction comes from: "first", "last", "mean" or None); substitute
            (what takes the place of a removed word: "cut" or "padding"); layers (0 without
            attention); truncated_documents, long_documents, windows, lost_pieces, all_pieces;
            warning (another order of the outputs fits far better; else empty); coverage (words:
            frequent ones; rescued: rare ones that stood out; rare: those that did not; distinct: of
            all documents; min_documents).
        agreement: correlations with importance in the data: "model" and "untrained" hold a
            `Correlation` each for value_importance, gradient_importance, deletion_importance and
            attention_importance (rolled out over the layers), as far as they exist; "shuffled" the
            middle 95 % under random orders of the labels.
        tokens: a row per word and class (`Importance.to_frame`), then importance, value, gradient,
            deletion, deleted_from, attention, quadrant, and use, move, share and status of the
            words in `uses`.
        uses: every candidate, as `tokensieve.diagnose.judgement.status.uses_table` returns them.
        rest: effects of the words that are no candidates.
        forms: what the formatting of documents does.
        learning: whether the model has learned to predict the label.
        notes: what a reader should know.
        seconds: wall time of each stage.
        passages: documents with their words' effects.
    """

    name: str
    model: str
    classes: tuple[str, ...]
    documents: dict[str, Any]
    settings: dict[str, Any]
    skill: Skill
    reading: dict[str, Any]
    agreement: dict[str, dict[str, Any]]
    tokens: pl.DataFrame
    uses: pl.DataFrame
    rest: Rest
    forms: pl.DataFrame
    learning: Learning
    notes: list[str]
    seconds: dict[str, float]
    passages: list[Passage] = field(default_factory=list)

    @property
    def used(self) -> pl.DataFrame:
        """The words, patterns and passages, those that move a prediction most first."""
        return self.uses.filter(pl.col("kind").is_in(WORD_KINDS))

    @property
    def suspects(self) -> pl.DataFrame:
        """Candidates that are more likely an artefact than not, the most likely first."""
        suspected = self.uses.filter(pl.col("artefact") > SUSPECTED)
        return suspected.sort("artefact", "token", descending=[True, False])

    @property
    def leaning(self) -> pl.DataFrame:
        """Suspects whose use the data contradicts."""
        return self.suspects.filter(pl.col("status") == str(Status.UNSUPPORTED))

    @property
    def most_deciding(self) -> pl.DataFrame:
        """Candidates in the documents, by the fraction of all effects that they account for."""
        is_measured = pl.col("share").is_not_null() & (pl.col("documents") > 0)
        measured_rows = self.uses.filter(is_measured & (pl.col("kind") != "order"))
        ranked = measured_rows.sort("share", "token", descending=[True, False])
        return ranked.unique("phrase", keep="first", maintain_order=True)

    @property
    def learned(self) -> bool | None:
        """Whether it has learned to predict the label; None if that is undetermined."""
        return None if self.learning is Learning.OPEN else self.learning is Learning.LEARNED

    @property
    def accuracy(self) -> float:
        """Fraction of the documents (or pairs) read that the model predicts correctly."""
        return self.skill.accuracy

    @property
    def token_types(self) -> int:
        """The number of words, |S|."""
        return self.tokens.height // len(self.classes)

    @property
    def correlation(self) -> dict[str, Correlation]:
        """Correlation of the model's value with importance in the data."""
        return self.agreement["model"]
