"""Diagnosis while a model is trained: a callback for the Trainer of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.run import diagnose
from tokensieve.diagnose.settings import DiagnoseSettings

if TYPE_CHECKING:
    from transformers import Trainer, TrainerState

_SMALL = DiagnoseSettings(max_documents=200, untrained=False)


class DiagnoseCallback(TrainerCallback):
    """Diagnoses the model after each evaluation, and logs the result to whatever the Trainer reports to.

    Logged: diagnose/value (correlation of its predictions for single words with importance in the data), diagnose/auc,
    diagnose/learned (0 or 1), diagnose/unsupported (words used without support), diagnose/top_share (the largest fraction of all
    use that one word accounts for). `found` holds the diagnoses so far, with the step of each. Add it with
    `trainer.add_callback(DiagnoseCallback(trainer, texts, labels))`, with documents that the model is not trained on. By default
    the model reads 200 of them, and no untrained model is measured.
    """

    def __init__(
        self,
        trainer: Trainer,
        texts: Sequence[Any],
        labels: Sequence[Any],
        settings: DiagnoseSettings | None = None,
    ) -> None:
        self._trainer, self._texts, self._labels = trainer, texts, labels
        self._settings = settings or _SMALL
        self.found: list[tuple[int, Diagnosis]] = []

    def on_evaluate(self, args: object, state: TrainerState, control: object, **more: Any) -> None:
        """Diagnose and log."""
        tokenizer = (
            more.get("processing_class") or more.get("tokenizer") or self._trainer.processing_class
        )
        one = diagnose(more["model"], tokenizer, self._texts, self._labels, self._settings)
        self.found.append((int(state.global_step), one))
        share = one.uses["share"].max() if one.uses.height else 0.0
        value = one.correlation.get("value_importance")
        self._trainer.log(
            {
                "diagnose/value": float("nan") if value is None else value.rho,
                "diagnose/auc": one.skill.auc,
                "diagnose/learned": float(bool(one.learned)),
                "diagnose/unsupported": float(one.leaning.height),
                "diagnose/top_share": float(share or 0.0),  # type: ignore[arg-type]
            }
        )
