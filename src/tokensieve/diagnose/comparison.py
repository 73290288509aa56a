"""Several models on the same documents: which words the later ones use more or less."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tokensieve import __version__
from tokensieve.auditing.phrases import quoted
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.report import WithInterval, cells
from tokensieve.escape import for_display
from tokensieve.files import Content, csv_table, json_text
from tokensieve.report.blocks import Block, Column, Picture, Report, Section, Table, Text
from tokensieve.wording import count, signed

NOTE = (
    "The correlation between a model's use of words and the data shows whether the model has "
    "learned anything. To decide which of two trained models is better, compare their accuracy."
)
CHANGES: dict[str, Any] = {
    **dict.fromkeys(("before", "after", "token", "how"), pl.String),
    **dict.fromkeys(("use_before", "use_after", "change", "low", "high", "q_value"), pl.Float64),
    "agrees": pl.Boolean,
    "documents": pl.Int64,
}
CURVES = {"accuracy": "accuracy", "AUC": "auc", "words alone against the data": "value"}
CHANGE = WithInterval("change", "low", "high")
OTHERWISE = {
    "removed": "when they are inserted, it does not",
    "inserted": "when they are removed, it does not",
}
N_IN_HEADLINE = 3  # words
LONGEST_NAME = 28  # characters below a curve


@dataclass(frozen=True)
class Comparison:
    """Several models on the same documents.

    Attributes:
        diagnoses: of each model.
        models: a row per model: model, accuracy and AUC with intervals, value (its correlation with
            importance) with interval, learned, learning (`Learning`), unsupported (words used
            without support), most_used (– if nothing was measured).
        words: those, of the words `looked_at`, that gained or lost use from each model to the next,
            and from the first to the last if there are more than two; the largest change first.
            `how` says by which measurement, `agrees` whether the other one changes in the same
            direction (null where it was not possible).
        looked_at: number of words.
    """

    diagnoses: list[Diagnosis]
    models: pl.DataFrame
    words: pl.DataFrame
    looked_at: int

    own_files = r"(models|words)\.csv|pictures/(curve|compare)\.(svg|png|pdf|csv)"

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each model."""
        return {diagnosis.model: sum(diagnosis.seconds.values()) for diagnosis in self.diagnoses}

    def files(self) -> dict[str, Content]:
        """summary.json and tables."""
        summary = json_text(self.to_dict())
        return {
            "models.csv": csv_table(self.models),
            "words.csv": csv_table(self.words),
            "summary.json": summary,
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        without_nan = pl.selectors.float().fill_nan(None)
        return {
            "models": self.models.with_columns(without_nan).to_dicts(),
            "words": self.words.with_columns(without_nan).to_dicts(),
            "notes": [NOTE],
            "diagnoses": {diagnosis.model: diagnosis.to_dict() for diagnosis in self.diagnoses},
        }

    def report(self) -> Report:
        """Which words the last model uses more or less than the first, then model by model."""
        short = short_names(self.models["model"].to_list())
        blocks: list[Block] = [
            Text(
                f"The {self.looked_at} words most used by any model were removed from the same "
                "documents, and inserted into the same others.",
                "note",
            ),
            *self._models_tables(short),
            self._curve(short),
            Text(
                "Look for words that the later model uses more but that should not matter.", "lead"
            ),
            *self._steps(short),
            Section("How it was measured", (Text(NOTE, "note"),), only=("html", "markdown")),
        ]
        first = self.diagnoses[0]
        about = {"settings": first.settings, "seconds": self.seconds, "version": __version__}
        title = f"{len(self.diagnoses)} models compared on {for_display(first.name)}"
        return Report("diagnose", title, self.headline(), tuple(blocks), about)

    def _steps(self, short: Mapping[str, str]) -> list[Section]:
        """The changes from each model to the next; from the first to the last come first."""
        ends = (self.diagnoses[0].model, self.diagnoses[-1].model)
        steps = list(self.words.group_by("before", "after", maintain_order=True))
        steps.sort(key=lambda step: step[0] != ends)
        sections = []
        for (before, after), words in steps:
            title = f"{short[str(before)]} → {short[str(after)]}"
            sections.append(Section(title, changes_tables(words), folded=(before, after) != ends))
        return sections

    def headline(self) -> str:
        """What the last model uses more or less than the first; it says by which measurement."""
        names = self.models["model"].to_list()
        short = short_names(names)
        claims = self.words.filter(before=names[0], after=names[-1])
        if claims.is_empty():
            return "All differences in the use of words are within chance."
        direction = "less"
        gained = claims.filter(pl.col("change") > 0)
        if gained.height:
            direction = "more"
            claims = gained
        words, when = _strongest_claim(claims)
        last = for_display(short[names[-1]], 40)
        first = for_display(short[names[0]], 40)
        return f"{last} uses {quoted(words)} {direction} than {first} does{when}."

    def _models_tables(self, short: Mapping[str, str]) -> tuple[Block, Block]:
        """The models, for a terminal and for a page."""
        n_read = count(self.diagnoses[0].documents["read"])
        title = f"The models on the same {n_read} documents"
        shortened = self.models.with_columns(pl.col("model").replace_strict(short))
        columns = (
            Column("model", "token"),
            Column("accuracy", "rate"),
            Column("AUC", "interval"),
            Column("learned"),
            Column("unsupported", "count"),
            Column("uses most", "token"),
        )
        names = (
            "model",
            WithInterval("accuracy", "accuracy_low", "accuracy_high"),
            WithInterval("auc", "auc_low", "auc_high"),
            "learning",
            "unsupported",
            "most_used",
        )
        rows = cells(shortened, names)
        in_terminal = (0, 1, 4, 5)
        narrow = [tuple(row[i] for i in in_terminal) for row in rows]
        narrow_columns = tuple(columns[i] for i in in_terminal)
        page = Table(title, columns, rows)
        return (
            Table(title, narrow_columns, narrow, only=("terminal",)),
            Section("The models", (page,), only=("html", "markdown")),
        )

    def _curve(self, short: Mapping[str, str]) -> Picture:
        points = []
        for order, row in enumerate(self.models.to_dicts()):
            for name, column in CURVES.items():
                if not math.isfinite(row[column]) or not math.isfinite(row[f"{column}_low"]):
                    continue
                points.append(
                    {
                        "order": order,
                        "model": short[row["model"]][-LONGEST_NAME:],
                        "of": name,
                        "y": row[column],
                        "low": row[f"{column}_low"],
                        "high": row[f"{column}_high"],
                    }
                )
        listing = "; ".join(
            f"{point['model']}: {point['of']} {signed(point['y'])}" for point in points
        )
        return Picture(
            "curve",
            "diagnose-curve",
            {"models": points, "kinds": list(CURVES)},
            "From model to model",
            "with 95% intervals",
            f"{listing}.",
        )


def _strongest_claim(claims: pl.DataFrame) -> tuple[list[str], str]:
    """The words of a headline, and by which measurement they changed, as the end of a sentence."""
    agreeing = claims.filter(pl.col("agrees").fill_null(value=False))
    if agreeing.height:
        words = agreeing["token"].unique(maintain_order=True).head(N_IN_HEADLINE)
        return words.to_list(), ", when removed and when inserted"
    how = str(claims["how"][0])
    words = claims.filter(how=how)["token"].head(N_IN_HEADLINE)
    return words.to_list(), f" when {how}; {OTHERWISE[how]}"


def changes_tables(words: pl.DataFrame) -> tuple[Table, ...]:
    """Words used more, and words used less, from one model to another."""
    table = words.with_columns(
        other=pl.when("agrees")
        .then(pl.lit("changes too"))
        .when(pl.col("agrees").is_not_null())
        .then(pl.lit("does not"))
    )
    columns = (
        Column("word", "token"),
        Column("when"),
        Column("before", "plain", unit="log-odds"),
        Column("after", "plain", unit="log-odds"),
        Column("change", "interval", unit="log-odds"),
        Column("the other way"),
    )
    names = ("token", "how", "use_before", "use_after", CHANGE, "other")
    tables = []
    for how, is_chosen in (("more", pl.col("change") > 0), ("less", pl.col("change") < 0)):
        rows = table.filter(is_chosen)
        if rows.height:
            tables.append(Table(f"Words used {how} (q < 0.05)", columns, cells(rows, names)))
    return tuple(tables)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Models' folders without those that they lie in, if that still tells them apart."""
    short = {name: name.rstrip("/").rpartition("/")[2] for name in names}
    return short if len(set(short.values())) == len(names) else {name: name for name in names}


def models_table(diagnoses: Sequence[Diagnosis]) -> pl.DataFrame:
    """The table `Comparison.models`."""
    rows = []
    for diagnosis in diagnoses:
        value = diagnosis.correlation["value_importance"]
        skill = diagnosis.skill
        most_used = diagnosis.used["token"]
        rows.append(
            {
                "model": diagnosis.model,
                "accuracy": skill.accuracy,
                "accuracy_low": skill.accuracy_low,
                "accuracy_high": skill.accuracy_high,
                "auc": skill.auc,
                "auc_low": skill.auc_low,
                "auc_high": skill.auc_high,
                "value": value.rho,
                "value_low": value.low,
                "value_high": value.high,
                "learned": diagnosis.learned,
                "learning": str(diagnosis.learning),
                "unsupported": diagnosis.leaning.height,
                "most_used": most_used[0] if len(most_used) else "–",
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)
