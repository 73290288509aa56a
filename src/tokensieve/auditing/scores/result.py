"""The result of an audit of scores: what was measured, and its files and report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tokensieve.auditing.any_audit import AnyAudit, Invocation
from tokensieve.auditing.balance_plan import BalancePlan
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.scores.report import score_report
from tokensieve.auditing.settings import Settings
from tokensieve.files import Content, csv_table, json_text
from tokensieve.model.storage import model_files
from tokensieve.report.blocks import Report
from tokensieve.report.html import render
from tokensieve.report.writer import save
from tokensieve.task.score_measures import Measure, ScoreMeasures
from tokensieve.task.tasks import CorpusModel

if TYPE_CHECKING:
    from tokensieve.model.regressor import AttentionRegressor


@dataclass(frozen=True)
class Baseline:
    """Another model on the same test documents.

    Attributes:
        measures: how well they predict.
        mae_difference: the model's mean absolute error minus the baseline's, paired; below zero the
            model is better.
    """

    measures: ScoreMeasures
    mae_difference: Measure


@dataclass(frozen=True, repr=False, eq=False)
class ScoreAudit(AnyAudit):
    """Everything an audit of scores found, and its files.

    Attributes:
        learned: the trained model, and the documents it was trained and tested on.
        settings: as given.
        tokens: a row per token type: the columns of `ScoreImportance.to_frame`, then score u,
            value w (in units of the labels) and attention.
        findings: what to act on, most serious first.
        measures: how well the model predicts the test documents.
        baseline: the same of TF-IDF and ridge regression; None without it.
        ordinal: of TF-IDF and a logistic regression for each threshold; None for more than ten
            different scores.
        label_issues: training documents whose score may be wrong.
        test_given: whether the test documents were given rather than drawn at random.
        balance_plan: which shortcuts weights can balance, as `mask` cannot cut them.
        seconds: of each stage.
        invocation: how the command was called; None for an audit in Python.
    """

    learned: CorpusModel
    settings: Settings
    tokens: pl.DataFrame
    findings: tuple[Finding, ...]
    measures: ScoreMeasures
    baseline: Baseline | None
    ordinal: Baseline | None
    label_issues: pl.DataFrame
    test_given: bool
    balance_plan: BalancePlan
    seconds: dict[str, float] = field(default_factory=dict)
    invocation: Invocation | None = None

    def __repr__(self) -> str:
        sides = self.documents
        return (
            f"ScoreAudit({self.name!r}: {sides['train']:,} training and {sides['test']:,} test "
            f"documents, R² {self.measures.r2.value:.3f}, mean absolute error "
            f"{self.measures.mae.value:.3g})"
        )

    @property
    def model(self) -> AttentionRegressor:
        """The trained model as a scikit-learn regressor."""
        # scikit-learn takes a second to import, and most audits need no regressor
        from tokensieve.model.regressor import AttentionRegressor

        trained = self.learned.model
        assert trained.vocabulary is not None
        return AttentionRegressor.of(trained, tokenizer=trained.vocabulary.tokenizer)

    def report(self) -> Report:
        """The report that the terminal and the page show."""
        return score_report(self, self.small_print())

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        summary = dict(self.learned.summary)
        summary |= {"settings": self.settings_dict(), "seconds": self.seconds, "notes": self.notes}
        summary["intervals"] = self.measures.to_dict()
        if self.baseline is not None:
            measures = self.baseline.measures
            summary |= {
                "baseline_r2": measures.r2.value,
                "baseline_mae": measures.mae.value,
                "baseline_spearman": measures.spearman.value,
                "baseline_intervals": measures.to_dict(),
                "mae_difference": self.baseline.mae_difference.to_dict(),
            }
        if self.ordinal is not None:
            summary |= {
                "ordinal_intervals": self.ordinal.measures.to_dict(),
                "ordinal_mae_difference": self.ordinal.mae_difference.to_dict(),
            }
        summary["findings"] = Counter(finding.kind for finding in self.findings)
        summary["exceeded"] = list(self.exceeded)
        summary["over_budget"] = []  # `mask --audit` reads it
        return summary

    def files(self) -> dict[str, Content]:
        """File name → content, for every file except the page."""
        test = self.learned.test
        predictions = pl.DataFrame(
            {
                "row": test.corpus.rows,
                "score": test.counts.numbers,
                "predicted": self.learned.f[:, 0],
            }
        )
        tables = {
            "tokens.csv": self.tokens,
            "findings.csv": self.finding_rows,
            "test-predictions.csv": predictions,
        }
        if not self.label_issues.is_empty():
            tables["label-issues.csv"] = self.label_issues
        files: dict[str, Content] = {name: csv_table(table) for name, table in tables.items()}
        files.update(model_files(self.learned.model))
        files["findings.json"] = json_text(self.findings_dict())
        files["summary.json"] = json_text(self.to_dict())
        return files

    def top(self, rows: int = 10) -> pl.DataFrame:
        """The strongest predictors (q < 0.05), by the end of the interval that is nearer to
        zero."""
        bound = pl.max_horizontal("effect_low", -pl.col("effect_high"))
        significant = self.tokens.filter(pl.col("category").is_in(["higher", "lower"]))
        return significant.sort(bound, "token", descending=[True, False]).head(rows)

    def save(self, folder: str | Path, pictures: bool = True) -> list[Path]:
        """Write the files of `tokensieve audit --task scores` into a folder, all or none."""
        return save(self, folder, pictures)

    def _repr_html_(self) -> str:
        """The first screen and the findings, for notebooks."""
        return render(self, notebook=True)
