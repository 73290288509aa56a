"""The result of a diagnosis with what is made of it: report, files, limits of `--fail-on`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from tokensieve import __version__
from tokensieve.diagnose.report import DiagnosisReport
from tokensieve.diagnose.result import DiagnosisResult
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.files import Content, csv_table, json_text
from tokensieve.report.blocks import Report, Section


class Diagnosis(DiagnosisResult):
    """Everything a diagnosis found (`DiagnosisResult`), with its report and files."""

    own_files = (
        r"(tokens|uses|leaning|forms)\.csv|model-card\.md|pictures/"
        r"(decides|moves|use|correlations|layers|(value|gradient|deletion|attention)(-class-\d+)?)"
        r"\.(svg|png|pdf|csv)"
    )

    def __repr__(self) -> str:
        limit_of_words = ", ".join(repr(token) for token in self.uses["token"].head(3).to_list())
        return (
            f"Diagnosis({self.model!r} on {self.documents['read']:,} documents, "
            f"{len(self.classes)} classes, accuracy {self.accuracy:.3f}; "
            f"moved most by: {limit_of_words or 'nothing measured'})"
        )

    def _repr_html_(self) -> str:
        import tokensieve

        return tokensieve.render(self, notebook=True)

    def report(self) -> Report:
        """Title, headline and blocks."""
        return DiagnosisReport(self).report()

    def files(self) -> dict[str, Content | Section]:
        """summary.json, tables and the section for a model card."""
        summary = json_text(self.to_dict())
        return {
            "tokens.csv": csv_table(self.tokens),
            "uses.csv": csv_table(self.uses),
            "leaning.csv": csv_table(self.leaning),
            "forms.csv": csv_table(self.forms),
            "model-card.md": DiagnosisReport(self).model_card(),
            "summary.json": summary,
        }

    @staticmethod
    def limits_from(written: Sequence[str]) -> dict[str, float]:
        """What `--fail-on` allows: `share=0.2` (or `share=20%`), `unsupported=0` (words).

        Of a kind that is given twice the last one counts.

        Raises:
            InputError: another kind, or a number that it cannot have.
        """
        limits: dict[str, float] = {}
        for item in written:
            kind, _, limit = item.partition("=")
            try:
                number = float(limit.removesuffix("%"))
            except ValueError:
                number = -1.0
            if limit.endswith("%"):
                number /= 100
            is_share = kind == "share" and 0 <= number <= 1
            is_count = number >= 0 and number % 1 == 0 and not limit.endswith("%")
            if not is_share and not (kind == "unsupported" and is_count):
                raise InputError(
                    f"--fail-on {item!r} is not of the form share=SHARE or unsupported=WORDS, "
                    "for example share=0.2"
                )
            limits[kind] = number
        return limits

    def exceeded(self, limits: dict[str, float]) -> list[str]:
        """One line for each limit that is exceeded."""
        lines = []
        if "share" in limits:
            limit = limits["share"]
            over = self.most_deciding.filter(pl.col("share") > limit)
            if over.height:
                rows = over.select("token", "share").iter_rows()
                names = ", ".join(f"{for_display(token, 30)} {share:.1%}" for token, share in rows)
                lines.append(f"words that account for more than {limit:.1%} of all use: {names}")
        limit_of_words = limits.get("unsupported", math.inf)
        if self.leaning.height > limit_of_words:
            names = ", ".join(for_display(token, 30) for token in self.leaning["token"])
            lines.append(f"more than {limit_of_words:.0f} words used without support: {names}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json; a number that does not exist is None."""
        report = DiagnosisReport(self)
        skill = self.skill
        reading = {name: value for name, value in self.reading.items() if name != "warning"}
        n_read = max(self.documents["read"], 1)
        n_pieces = max(reading["all_pieces"], 1)
        removal = skill.removal
        content = {
            "name": self.name,
            "model": self.model,
            "classes": self.classes,
            "documents": {name: self.documents[name] for name in ("all", "read")},
            "class_documents": self.documents["by class"],
            "accuracy": skill.accuracy,
            "majority_accuracy": skill.majority,
            **reading,
            "truncated_share": reading["truncated_documents"] / n_read,
            "lost_share": reading["lost_pieces"] / n_pieces,
            "learned": self.learned,
            "learning": self.learning,
            "headline": report.headline(),
            "shortcut_verdict": report.verdict().text,
            "verdict": report.sentences(),
            "notes": self.notes,
            "seconds": self.seconds,
            "seed": self.settings["seed"],
            "settings": self.settings,
            "version": __version__,
            "tokens": self.token_types,
            "correlation": {
                name: correlation.rho for name, correlation in self.correlation.items()
            },
            "intervals": self._intervals("model"),
            "baselines": {
                "untrained": self._intervals("untrained") or None,
                "shuffled_labels": self.agreement["shuffled"],
            },
            "accuracy_interval": [skill.accuracy_low, skill.accuracy_high],
            "auc": [skill.auc, skill.auc_low, skill.auc_high],
            "auc_random": skill.auc_random,
            "confusion": skill.confusion.tolist(),
            "leaving_out": [removal.mean, removal.low, removal.high],
            "uses": self.uses.to_dicts(),
            "leaning": self.leaning.to_dicts(),
            "forms": self.forms.to_dicts(),
            "other_words": {"words": self.rest.n_words, "mean_effect": self.rest.mean},
        }
        return {name: _finite(value) for name, value in content.items()}

    def _intervals(self, kind: str) -> dict[str, list[float]]:
        return {
            name: [correlation.rho, correlation.low, correlation.high]
            for name, correlation in self.agreement[kind].items()
        }


def _finite(x: object) -> object:
    """The same with None for every number that does not exist."""
    if isinstance(x, dict):
        return {name: _finite(value) for name, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
