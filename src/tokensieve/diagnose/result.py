"""What a diagnosis is: numbers and frames, from which tables, terminal and page all read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tokensieve.diagnose.agreement import Correlation
from tokensieve.diagnose.judging import Status
from tokensieve.diagnose.verdict import Effect, Learning, Skill
from tokensieve.errors import InputError

LONG = ("truncate", "windows")


@dataclass(frozen=True)
class DiagnoseSettings:
    """How a diagnosis is made.

    Attributes:
        min_documents: a word must occur in this many of the documents that the model reads.
        max_documents: the model reads at most this many, drawn at random in proportion to the classes; importance in the data
            always comes from all documents.
        max_length: pieces of one input, special tokens included; None for what model and tokenizer allow.
        long: what happens to longer documents: "truncate" as in use, or "windows" that follow one another.
        batch_size: inputs of one batch.
        deletions: of a model without gradients: each word is left out of at most this many documents.
        untrained: whether an untrained model of the same shape is measured too.
        seed: of every draw.
        tokenizer: what a word is: None for words and punctuation by Unicode rules, "model" for the pieces of the model's own
            tokenizer, else the path of a tokenizer.json.
    """

    min_documents: int = 10
    max_documents: int = 1000
    max_length: int | None = None
    long: str = "truncate"
    batch_size: int = 16
    deletions: int = 4
    untrained: bool = True
    seed: int = 0
    tokenizer: str | None = None

    def check(self) -> None:
        """Whether all of it makes sense.

        Raises:
            InputError: a number below one, or another way with long documents.
        """
        for name in ("min_documents", "max_documents", "batch_size", "deletions"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.long not in LONG:
            raise InputError(f"long documents are handled by 'truncate' or 'windows', not {self.long!r}")


@dataclass(frozen=True)
class Marked:
    """One document with its words' effects.

    Attributes:
        row: in the source, from 1.
        label, predicted: class names.
        why: it is shown, in plain words.
        pieces: the text in order as (piece, effect on the answer for the class `towards`).
        towards: a class name.
    """

    row: int
    label: str
    predicted: str
    why: str
    pieces: list[tuple[str, float]]
    towards: str


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Everything that a diagnosis found; tables, terminal and page all read from here.

    Attributes:
        name: the source.
        model, family: the model's name, and its class in the library.
        classes: class names; with two, the second is y = +1.
        version, seed, settings: how it was made.
        documents: {"all": …, "read": by the model}.
        class_documents: documents per class, of all.
        skill: accuracy, AUC and confusion matrix, on the documents read.
        effect: what leaving out the words confirmed takes from the right answer.
        method: how effects were measured: "integrated gradients" or "leave-one-out".
        reads: where the model reads its answer: "first", "last" or "mean"; None where that is not known.
        layers: L; 0 where the model gives no attention, or it is not known from where it reads.
        on_special: mean share of attention that goes to special tokens, each layer and last the rollout.
        truncated_documents, windows, lost_pieces, all_pieces: documents that were cut off; inputs read; pieces lost and in all.
        long_documents: documents longer than one input.
        correlation: "value_importance", "gradient_importance", "deletion_importance", "attention_importance" (rolled out) and
            "attention_layer_<l>_importance", where they exist.
        untrained: the same for the untrained model; empty where there is none.
        shuffled_labels: middle 95 % of the same under random orders of the labels.
        frequency: what the number of documents alone would reach.
        tokens: a row per word and class (`Importance.to_frame`), then importance (`tokensieve.diagnose.agreement`), value,
            gradient, deletion, deleted_from, attention, attention_layer_<l>, quadrant, use, use_low, use_high, share, flipped,
            concentration, helps, helps_low, helps_high, status (`tokensieve.diagnose.use`, `tokensieve.diagnose.judging`).
        uses: the words confirmed by leaving them out, the most used first (`uses_frame`).
        marked: documents with their words' effects.
        learning: whether this model has learned where the label is.
        verdict: plain sentences.
        notes: what was odd.
        seconds: wall time of each stage.
        parts: sums of effects over groups of documents, for comparing models on the same documents.
    """

    name: str
    model: str
    family: str
    classes: tuple[str, ...]
    version: str
    seed: int
    settings: dict[str, Any]
    documents: dict[str, int]
    class_documents: dict[str, int]
    skill: Skill
    effect: Effect
    method: str
    reads: str | None
    layers: int
    on_special: list[float]
    truncated_documents: int
    long_documents: int
    windows: int
    lost_pieces: int
    all_pieces: int
    correlation: dict[str, Correlation]
    untrained: dict[str, Correlation]
    shuffled_labels: dict[str, tuple[float, float]]
    frequency: dict[str, Correlation]
    tokens: pl.DataFrame
    uses: pl.DataFrame
    learning: Learning
    verdict: list[str]
    notes: list[str]
    seconds: dict[str, float]
    marked: list[Marked] = field(default_factory=list, repr=False)
    parts: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        first = ", ".join(repr(token) for token in self.uses["token"].head(3).to_list()) or "no word could be confirmed"
        return (
            f"Diagnosis({self.model!r} on {self.documents['read']:,} documents, {len(self.classes)} classes, "
            f"accuracy {self.accuracy:.3f}; uses most: {first})"
        )

    def _repr_html_(self) -> str:
        columns = "token class status use use_low use_high share flipped documents posterior_difference".split()
        return str(self.uses.head(10).select(columns)._repr_html_())

    @property
    def leaning(self) -> pl.DataFrame:
        """Words that the model uses without support, the furthest beyond it first."""
        return self.uses.filter(pl.col("status") == str(Status.UNSUPPORTED)).sort(
            "excess", "token", descending=[True, False]
        )

    @property
    def learned(self) -> bool | None:
        """Whether it has learned where the label is; None: cannot be said."""
        return None if self.learning is Learning.OPEN else self.learning is Learning.LEARNED

    @property
    def accuracy(self) -> float:
        """Share of the documents read (of pairs) that the model gets right."""
        return self.skill.accuracy

    @property
    def majority_accuracy(self) -> float:
        """Share of the largest class."""
        return self.skill.majority

    @property
    def token_types(self) -> int:
        """|S|."""
        return self.tokens.height // len(self.classes)

    @property
    def truncated_share(self) -> float:
        """Share of the documents read that were cut off."""
        return self.truncated_documents / max(self.documents["read"], 1)

    @property
    def lost_share(self) -> float:
        """Share of the pieces of the documents read that the model never saw."""
        return self.lost_pieces / max(self.all_pieces, 1)

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json; a number that does not exist is None."""
        names = (
            "name model family classes documents class_documents accuracy majority_accuracy method reads layers on_special "
            "truncated_documents truncated_share long_documents windows lost_pieces lost_share learned learning verdict notes "
            "seconds seed settings version"
        )
        baselines: dict[str, Any] = {
            "untrained": _plain(self.untrained) or None,
            "shuffled_labels": {name: [_finite(x) for x in ends] for name, ends in self.shuffled_labels.items()},
            "frequency": _plain(self.frequency),
        }
        rho = {name: _finite(found.rho) for name, found in self.correlation.items()}
        skill, effect = self.skill, [self.effect.mean, self.effect.low, self.effect.high]
        return {name: getattr(self, name) for name in names.split()} | {
            "tokens": self.token_types, "correlation": rho, "intervals": _plain(self.correlation), "baselines": baselines,
            "accuracy_interval": [skill.accuracy_low, skill.accuracy_high],
            "auc": [_finite(x) for x in (skill.auc, skill.auc_low, skill.auc_high)], "auc_random": skill.auc_random,
            "confusion": skill.confusion.tolist(),
            "leaving_out": [_finite(x) for x in effect], "uses": _rows(self.uses), "leaning": _rows(self.leaning),
        }  # fmt: skip


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: _finite(x) if isinstance(x, float) else x for name, x in row.items()}
        for row in frame.iter_rows(named=True)
    ]


def _plain(found: dict[str, Correlation]) -> dict[str, list[float | None]]:
    """name → [ρ, low, high]."""
    return {name: [_finite(x) for x in (one.rho, one.low, one.high)] for name, one in found.items()}


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
