"""Diagnosis while a model is trained: a callback for the Trainer of transformers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.run import diagnose
from tokensieve.diagnose.settings import DiagnoseSettings

if TYPE_CHECKING:
    from transformers import Trainer, TrainerState

QUICK = DiagnoseSettings(max_documents=200, untrained=False)


class DiagnoseCallback(TrainerCallback):
    """Diagnoses the model after each evaluation, and logs the result where the Trainer does.

    Logged: diagnose/value (correlation of its predictions for single words with importance in the
    data), diagnose/auc, diagnose/learned (0 or 1), diagnose/unsupported (candidates used without
    support), diagnose/top_share (the largest fraction of all effects that one of them accounts
    for). `found` holds the diagnoses so far, with the step of each.

    Add it with `trainer.add_callback(DiagnoseCallback(trainer, texts, labels))`, with documents
    that the model is not trained on. By default the model reads 200 of them, and no untrained model
    is measured.
    """

    def __init__(
        self,
        trainer: Trainer,
        texts: Sequence[Any],
        labels: Sequence[Any],
        settings: DiagnoseSettings | None = None,
    ) -> None:
        self._trainer = trainer
        self._texts = texts
        self._labels = labels
        self._settings = settings or QUICK
        self.found: list[tuple[int, Diagnosis]] = []

    def on_evaluate(
        self, args: object, state: TrainerState, control: object, **context: Any
    ) -> None:
        """Diagnose and log."""
        tokenizer = (
            context.get("processing_class")
            or context.get("tokenizer")
            or self._trainer.processing_class
        )
        diagnosis = diagnose(context["model"], tokenizer, self._texts, self._labels, self._settings)
        self.found.append((int(state.global_step), diagnosis))
        shares = diagnosis.most_deciding["share"].to_list()
        value = diagnosis.correlation.get("value_importance")
        self._trainer.log(
            {
                "diagnose/value": math.nan if value is None else value.rho,
                "diagnose/auc": diagnosis.skill.auc,
                "diagnose/learned": float(bool(diagnosis.learned)),
                "diagnose/unsupported": float(diagnosis.leaning.height),
                "diagnose/top_share": float(max(shares, default=0.0)),
            }
        )
