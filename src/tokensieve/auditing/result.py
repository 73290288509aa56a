"""The result of an audit: what was measured, and the files and the report that are made from it."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tokensieve.auditing.data import AuditData
from tokensieve.auditing.outcomes import FILE_NAME as OUTCOMES_FILE
from tokensieve.auditing.outcomes import outcomes_table
from tokensieve.auditing.report import audit_report
from tokensieve.auditing.trackers import check_tracker, log_run
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.evidence.intervals import Share
from tokensieve.files import Content, csv_table, json_text
from tokensieve.model.storage import model_files
from tokensieve.report.blocks import Report
from tokensieve.report.html import NOTEBOOK_BYTES, page, render
from tokensieve.report.widget import page_widget
from tokensieve.report.writer import save

if TYPE_CHECKING:
    from tokensieve.model.classifier import AttentionClassifier

SUMMARY_COPIES = (  # attributes that summary.json holds as they are
    "name",
    "classes",
    "documents",
    "class_documents",
    "token_types",
    "test_accuracy",
    "majority_accuracy",
    "class_recall",
    "baseline_accuracy",
    "unknown_share",
    "attention_share",
    "seconds",
    "seed",
    "settings",
    "version",
    "notes",
)
ATTRIBUTE_OF_FILE = {  # files that findings name → the attribute of `Audit` that holds the same
    "label-issues.csv": ".label_issues",
    "findings.csv": ".finding_rows",
    "over-budget.csv": ".to_review",
    "environments.csv": ".environments",
}
OVER_BUDGET_COLUMNS = (
    "token",
    "class",
    "documents",
    "posterior_difference",
    "posterior_low",
    "posterior_high",
)


@dataclass(frozen=True, repr=False)
class Audit(AuditData):
    """Everything an audit found (the attributes are those of `AuditData`), and its files."""

    def __repr__(self) -> str:
        task = self.learned.task
        train = self.documents["train"] // task.size
        test = self.documents["test"] // task.size
        items = "pairs"
        if task.classifies:
            items = f"documents, {len(self.classes)} classes"
        return (
            f"Audit({self.name!r}: {train:,} training and {test:,} test {items}, "
            f"{self.token_types:,} token types, test accuracy {self.test_accuracy:.3f})"
        )

    @property
    def accuracy_with_shortcuts(self) -> Share | None:
        """Test accuracy with all tokens; None if there are no shortcuts."""
        return None if self.without_shortcuts is None else self.without_shortcuts.all_types

    @property
    def accuracy_without_shortcuts(self) -> Share | None:
        """Test accuracy of the model trained without the shortcuts; None if there are none."""
        return None if self.without_shortcuts is None else self.without_shortcuts.some_types

    @property
    def honest_accuracy(self) -> tuple[Share, Share] | None:
        """The old name of `accuracy_with_shortcuts` and `accuracy_without_shortcuts`."""
        warnings.warn(
            "honest_accuracy is now accuracy_with_shortcuts and accuracy_without_shortcuts",
            DeprecationWarning,
            stacklevel=2,
        )
        if self.without_shortcuts is None:
            return None
        return self.without_shortcuts.all_types, self.without_shortcuts.some_types

    @cached_property
    def model(self) -> AttentionClassifier:
        """The trained model as a scikit-learn classifier."""
        # scikit-learn takes a second to import, and most audits need no classifier
        from tokensieve.model.classifier import AttentionClassifier

        trained = self.learned.model
        assert trained.vocabulary is not None
        return AttentionClassifier.of(trained, tokenizer=trained.vocabulary.tokenizer)

    def report(self) -> Report:
        """The report that the terminal and the page show."""
        return audit_report(self, self.small_print())

    def files(self) -> dict[str, Content]:
        """File name → content, for every file except the page and its pictures."""
        tables = {"tokens.csv": self.tokens, "findings.csv": self.finding_rows}
        outcomes = outcomes_table(self.learned)
        if outcomes is not None:
            tables[OUTCOMES_FILE] = outcomes
        if not self.label_issues.is_empty():
            tables["label-issues.csv"] = self.label_issues
        if not self.environments.is_empty():
            tables["environments.csv"] = self.environments
        if self.pairs is not None:
            tables["pairs.csv"] = self.pairs.wins
        if self.settings.budget is not None:
            tables["over-budget.csv"] = self.to_review
        files: dict[str, Content] = {name: csv_table(table) for name, table in tables.items()}
        files.update(model_files(self.learned.model))
        files["findings.json"] = json_text(self.findings_dict())
        self.seconds.setdefault("total", sum(self.seconds.values()))
        files["summary.json"] = json_text(self.to_dict())
        return files

    def save(self, folder: str | Path, pictures: bool = True) -> list[Path]:
        """Write the files of `tokensieve audit` into a folder, all or none (`tokensieve.save`)."""
        return save(self, folder, pictures)

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        summary: dict[str, Any] = {name: getattr(self, name) for name in SUMMARY_COPIES}
        summary["settings"] = self.settings_dict()
        summary["accuracy_interval"] = [self.accuracy.low, self.accuracy.high]
        summary["suspicious"] = self._suspicious()
        summary["over_budget"] = self.over_budget.select(OVER_BUDGET_COLUMNS).to_dicts()
        summary["findings"] = Counter(finding.kind for finding in self.findings)
        summary["accuracy_with_shortcuts"] = None
        summary["accuracy_without_shortcuts"] = None
        if self.without_shortcuts is not None:
            summary["accuracy_with_shortcuts"] = self.without_shortcuts.all_types.to_dict()
            summary["accuracy_without_shortcuts"] = self.without_shortcuts.some_types.to_dict()
            summary["without_shortcuts"] = {
                "all": self.without_shortcuts.difference.to_dict(),
                "containing": self.without_shortcuts.concerned.to_dict(),
            }
        effects = (self.misleading.without_shortcuts, self.misleading.other)
        given = [effect for effect in effects if effect is not None]
        if given:
            summary["where_shortcuts_mislead"] = [
                {"models": list(effect.names), "groups": effect.to_frame().to_dicts()}
                for effect in given
            ]
        if self.baseline is not None:
            summary["baseline"] = self.baseline.to_dict()
        if self.controls is not None:
            summary["controls"] = self.controls.to_dict()
        if self.few_words is not None and self.few_words.comparison is not None:
            summary["few_words"] = {
                "tokens": list(self.few_words.words),
                "accuracy": self.few_words.comparison.some_types.to_dict(),
                "difference": self.few_words.comparison.difference.to_dict(),
            }
        if self.card is not None:
            summary["model_card"] = self.card.to_dict()
        if self.pairs is not None:
            summary["pairs"] = self.pairs.to_dict()
        return summary

    def _suspicious(self) -> list[dict[str, str]]:
        """token, class and reason of the first word of each shortcut among the token types."""
        entries: list[dict[str, str]] = []
        if not self.learned.task.classifies:
            return entries
        for finding in self.shortcuts:
            is_first = pl.col("token").is_in(finding.maskable[:1])
            classes = self.tokens.filter(is_first).sort("posterior_difference", descending=True)
            # of a phrase there is no row, if only single words are tokens
            for row in classes.head(1).iter_rows(named=True):
                fraction = row["documents"] / self.documents["train"]
                in_class = row["class_documents"] / row["documents"]
                label = for_display(row["class"], IN_SENTENCE)
                reason = (
                    f"occurs in {row['documents']:,} documents ({fraction:.1%}), {in_class:.1%} of "
                    f"them labelled {label}"
                )
                entries.append({"token": row["token"], "class": row["class"], "reason": reason})
        return entries

    def _repr_html_(self) -> str:
        """The first screen, the findings and the interactive page, for notebooks.

        No file may be there yet, so the attributes that hold the same are named instead.
        """
        shown = render(self, notebook=True)
        for file, attribute in ATTRIBUTE_OF_FILE.items():
            shown = shown.replace(file, attribute)
        return shown

    @cached_property
    def widget(self) -> Any:
        """The interactive page for a notebook, as a widget; needs the extra `notebook`."""
        return page_widget(page(self.report(), n_bytes=NOTEBOOK_BYTES))

    @property
    def selected(self) -> list[str]:
        """The tokens that are selected in `widget`: one, or those of an area of the map."""
        return list(self.widget.selected)

    def log_to(self, tracker: Literal["mlflow", "wandb"]) -> None:
        """Log the settings, accuracies and numbers of findings, and all files, to a tracker.

        They join the run that is open; without one, a run is begun and ended.

        Raises:
            InputError: the tracker is unknown or not installed.
        """
        check_tracker(tracker)
        with TemporaryDirectory(prefix="tokensieve-") as folder:
            self.save(folder, pictures=False)
            log_run(tracker, self.settings_dict(), self._figures(), Path(folder))

    def _figures(self) -> dict[str, float]:
        """The numbers that are worth following over time."""
        figures = {
            "test_accuracy": self.test_accuracy,
            "test_accuracy_low": self.accuracy.low,
            "test_accuracy_high": self.accuracy.high,
            "majority_accuracy": self.majority_accuracy,
            "findings": len(self.findings),
        }
        if self.baseline_accuracy is not None:
            figures["baseline_accuracy"] = self.baseline_accuracy
        if self.accuracy_without_shortcuts is not None:
            figures["accuracy_without_shortcuts"] = self.accuracy_without_shortcuts.value
        kinds = Counter(finding.kind for finding in self.findings)
        figures |= {f"findings_{kind}": number for kind, number in kinds.items()}
        return {name: float(value) for name, value in figures.items()}
