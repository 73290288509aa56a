"""The result of a diagnosis: numbers and frames, from which the page, the terminal output and the files are made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.diagnose.judgement.agreement import Correlation, Learning, Skill
from tokensieve.diagnose.judgement.status import Status
from tokensieve.diagnose.report import DiagnosisReport
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.files import Content, csv_table
from tokensieve.report.blocks import Passage, Report, Section


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Everything a diagnosis found.

    With two classes, the second is y = +1. documents: {"all": …, "read": by the model, "by class": of all}. reading: how the model
    was read: family; method ("integrated gradients" or "leave-one-out"); reads (where its prediction comes from: "first", "last",
    "mean" or None); layers (0 without attention); on_special (mean fraction of attention on special tokens, each layer and last the
    rollout); truncated_documents, long_documents, windows, lost_pieces, all_pieces; warning (another order of the outputs fits far
    better; else empty); coverage (words: frequent ones; rescued: rare ones that stood out; rare: those that did not; distinct: of
    all documents; min_documents). agreement: correlations with importance in the data: "model", "untrained" and "frequency" hold a
    `Correlation` each for value_importance, gradient_importance, deletion_importance, attention_importance (rolled out) and
    attention_layer_<l>_importance, as far as they exist; "shuffled" the middle 95 % under random orders of the labels. tokens: a
    row per word and class (`Importance.to_frame`), then importance, value, gradient, deletion, deleted_from, attention,
    attention_layer_<l>, quadrant, the numbers of `tokensieve.diagnose.effects.measuring`, and status. uses: the words confirmed, as
    `tokensieve.diagnose.judgement.status.judge` returns them. forms: as `tokensieve.diagnose.effects.forms`. passages: documents
    with their words' effects. seconds: wall time of each stage.
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
    forms: pl.DataFrame
    learning: Learning
    notes: list[str]
    seconds: dict[str, float]
    passages: list[Passage] = field(default_factory=list)

    own_files = (
        r"(tokens|uses|leaning|forms)\.csv|model-card\.md|"
        r"pictures/(use|correlations|layers|(value|gradient|deletion|attention)(-class-\d+)?)\.(svg|png|pdf|csv)"
    )

    def __repr__(self) -> str:
        first = (
            ", ".join(repr(token) for token in self.uses["token"].head(3).to_list())
            or "no word could be confirmed"
        )
        return (
            f"Diagnosis({self.model!r} on {self.documents['read']:,} documents, {len(self.classes)} classes, "
            f"accuracy {self.accuracy:.3f}; uses most: {first})"
        )

    def _repr_html_(self) -> str:
        import tokensieve

        return tokensieve.render(self, notebook=True)

    @property
    def used(self) -> pl.DataFrame:
        """The words whose use is shown."""
        return self.uses.filter(pl.col("status") != str(Status.NOT_SHOWN))

    @property
    def leaning(self) -> pl.DataFrame:
        """Words that the model uses without support, the least supported first."""
        unsupported = self.uses.filter(pl.col("status") == str(Status.UNSUPPORTED))
        return unsupported.sort("excess", "token", descending=[True, False])

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
        """|S|."""
        return self.tokens.height // len(self.classes)

    @property
    def correlation(self) -> dict[str, Correlation]:
        """Correlation of the model's value with importance in the data."""
        return self.agreement["model"]

    def report(self) -> Report:
        """Title, headline and blocks."""
        return DiagnosisReport(self).report()

    def files(self) -> dict[str, Content | Section]:
        """summary.json, tables and the section for a model card."""
        return {
            "tokens.csv": csv_table(self.tokens),
            "uses.csv": csv_table(self.uses),
            "leaning.csv": csv_table(self.leaning),
            "forms.csv": csv_table(self.forms),
            "model-card.md": DiagnosisReport(self).model_card(),
            "summary.json": json.dumps(
                self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False
            ),
        }

    @staticmethod
    def limits_from(written: Sequence[str]) -> dict[str, float]:
        """`--fail-on`: `share=0.2`, `share=20%`, `unsupported=0`; an InputError for another form."""
        found: dict[str, float] = {}
        for item in written:
            kind, _, limit = item.partition("=")
            try:
                number = float(limit.removesuffix("%")) / (100 if limit.endswith("%") else 1)
            except ValueError:
                number = -1.0
            if not (
                (kind == "share" and 0 <= number <= 1)
                or (kind == "unsupported" and number >= 0 and number % 1 == 0)
            ):
                raise InputError(
                    f"--fail-on {item!r} is not of the form share=SHARE or unsupported=WORDS, for example share=0.2"
                )
            found[kind] = number
        return found

    def exceeded(self, limits: dict[str, float]) -> list[str]:
        """One line for each limit that is exceeded."""
        lines = []
        if "share" in limits:
            over = self.used.filter(pl.col("share") > limits["share"]).sort(
                "share", descending=True
            )
            rows = over.select("token", "share").iter_rows()
            names = ", ".join(f"{for_display(token, 30)} {share:.1%}" for token, share in rows)
            lines += (
                [f"words that account for more than {limits['share']:.1%} of all use: {names}"]
                if over.height
                else []
            )
        if self.leaning.height > limits.get("unsupported", np.inf):
            names = ", ".join(for_display(token, 30) for token in self.leaning["token"])
            lines.append(
                f"more than {limits['unsupported']:.0f} words used without support: {names}"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json; a number that does not exist is None."""
        skill, reading, read, agreement = (
            self.skill,
            self.reading,
            max(self.documents["read"], 1),
            self.agreement,
        )
        intervals, untrained, frequency = (
            {name: [one.rho, one.low, one.high] for name, one in agreement[kind].items()}
            for kind in ("model", "untrained", "frequency")
        )
        content = {
            "name": self.name,
            "model": self.model,
            "classes": self.classes,
            "documents": {name: self.documents[name] for name in ("all", "read")},
            "class_documents": self.documents["by class"],
            "accuracy": skill.accuracy,
            "majority_accuracy": skill.majority,
            **{name: value for name, value in reading.items() if name != "warning"},
            "truncated_share": reading["truncated_documents"] / read,
            "lost_share": reading["lost_pieces"] / max(reading["all_pieces"], 1),
            "learned": self.learned,
            "learning": self.learning,
            "headline": DiagnosisReport(self).headline(),
            "shortcut_verdict": DiagnosisReport(self).verdict().text,
            "verdict": DiagnosisReport(self).sentences(),
            "notes": self.notes,
            "seconds": self.seconds,
            "seed": self.settings["seed"],
            "settings": self.settings,
            "version": __version__,
            "tokens": self.token_types,
            "correlation": {name: one.rho for name, one in self.correlation.items()},
            "intervals": intervals,
            "baselines": {
                "untrained": untrained or None,
                "shuffled_labels": agreement["shuffled"],
                "frequency": frequency,
            },
            "accuracy_interval": [skill.accuracy_low, skill.accuracy_high],
            "auc": [skill.auc, skill.auc_low, skill.auc_high],
            "auc_random": skill.auc_random,
            "confusion": skill.confusion.tolist(),
            "leaving_out": skill.removal,
            "uses": self.uses.to_dicts(),
            "leaning": self.leaning.to_dicts(),
            "forms": self.forms.to_dicts(),
        }
        return {name: _finite(value) for name, value in content.items()}


def _finite(x: object) -> object:
    """The same with None for every number that does not exist."""
    if isinstance(x, dict):
        return {name: _finite(value) for name, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not np.isfinite(x) else x
