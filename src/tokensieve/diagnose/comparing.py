"""Several models on the same documents: which words the later ones use more, which less, and a curve over checkpoints.

For word s with mean magnitude of its effects u_s in two models (`tokensieve.diagnose.use`), the change is u_s(B) − u_s(A). Both
models read the same documents, so that its standard error comes from the jackknife over groups of documents, of the difference
itself: σ² = (G−1)/G Σ_g (Δ_(g) − Δ̄)². Words have gained or lost where Benjamini–Hochberg's q over all words is below 0.05.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.diagnose.agreement import Parts, mean
from tokensieve.diagnose.diagnosing import diagnose_corpus
from tokensieve.diagnose.judging import Status
from tokensieve.diagnose.result import DiagnoseSettings, Diagnosis
from tokensieve.diagnose.sample import Documents
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import LEVEL, Z95
from tokensieve.progress import Progress, silent
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Floats

Loader = Callable[[], tuple[Any, Any]]
WORDS: dict[str, Any] = {
    "before": pl.String, "after": pl.String, "token": pl.String, "use_before": pl.Float64, "use_after": pl.Float64,
    "change": pl.Float64, "low": pl.Float64, "high": pl.Float64, "q_value": pl.Float64, "documents": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Several models on the same documents.

    Attributes:
        diagnoses: of each, in the order given.
        models: a row per model: model, accuracy and AUC with intervals, value (its correlation with importance) with interval,
            learned, learning (`Learning`), unsupported (words used without support), most_used (– where no word's use is shown).
        words: those that gained or lost use from each model to the next, and from the first to the last where there are more
            than two; the largest change first.
        notes: what a reader should know.
    """

    diagnoses: list[Diagnosis]
    models: pl.DataFrame
    words: pl.DataFrame
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        return {"models": _plain(self.models), "words": _plain(self.words), "notes": self.notes} | {
            "diagnoses": {one.model: one.to_dict() for one in self.diagnoses}
        }


NOTE = (
    "The correlation of what a model does with words and what the data says tells whether it has learned, not which of two trained "
    "models is better: accuracy tells that."
)


def compare(
    models: Mapping[str, Loader | tuple[Any, Any]], corpus: Corpus | Documents, settings: DiagnoseSettings | None = None, *,
    mapping: Mapping[str, str] | None = None, progress: Progress | None = None,
) -> Comparison:  # fmt: skip
    """Diagnose several models on the same documents, and compare what they use.

    Args:
        models: name → (model, tokenizer), or a function that loads them, called when its turn comes.
        corpus: the documents.
        settings: `DiagnoseSettings()` if None.
        mapping: class → output, as for `diagnose`.
        progress: called with (stage, share done).

    Raises:
        InputError: fewer than two models, or one that cannot be diagnosed.
    """
    if len(models) < 2:
        raise InputError("one model cannot be compared: name two or more")
    tell, found = progress or silent, []
    for name, one in models.items():

        def stage(what: str, share: float, name: str = name) -> None:
            tell(f"{name}: {what}", share)

        model, tokenizer = one() if callable(one) and not isinstance(one, tuple) else one
        try:
            diagnosis = diagnose_corpus(
                model, tokenizer, corpus, settings, mapping=mapping, model_name=name, progress=stage
            )
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        found.append(diagnosis)
    steps = list(pairwise(found))
    if len(found) > 2:
        steps.append((found[0], found[-1]))
    parts = [changes(a, b) for a, b in steps if a.method == b.method]
    notes = [NOTE]
    if len(parts) < len(steps):
        notes.append("words are compared only between models measured the same way")
    words = pl.concat([pl.DataFrame(schema=WORDS), *parts])
    return Comparison(found, pl.DataFrame([_row(one) for one in found], infer_schema_length=None), words, notes)


def changes(before: Diagnosis, after: Diagnosis) -> pl.DataFrame:
    """Words whose use differs between two models, by the module's formula; the largest change first.

    Raises:
        InputError: they were not diagnosed on the same documents with the same words.
    """
    a, b = before.parts, after.parts
    tokens = before.tokens.filter(pl.col("class") == before.classes[0])
    if a.size.shape != b.size.shape or not tokens["token"].equals(
        after.tokens.filter(pl.col("class") == after.classes[0])["token"]
    ):
        raise InputError("the models were diagnosed on other documents or words: diagnose them with the same settings")
    whole = _use(b) - _use(a)
    left = np.array([_use(b, g) - _use(a, g) for g in range(len(a.size))])
    G = np.isfinite(left).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.nansum((left - np.nansum(left, axis=0) / np.maximum(G, 1)) ** 2, axis=0)
        error = np.sqrt((G - 1) / np.maximum(G, 1) * spread)
        p = 2 * stats.norm.sf(np.abs(whole) / np.where(error > 0, error, np.nan))
    known = np.isfinite(p)
    q = np.full(len(p), np.nan)
    if known.any():
        q[known] = stats.false_discovery_control(p[known])
    table = pl.DataFrame(
        {
            "before": pl.Series([before.model] * len(q), dtype=pl.String),
            "after": pl.Series([after.model] * len(q), dtype=pl.String), "token": tokens["token"],
            "use_before": _use(a), "use_after": _use(b), "change": whole, "low": whole - Z95 * error,
            "high": whole + Z95 * error, "q_value": q, "documents": tokens["documents"].cast(pl.Int64),
        }
    )  # fmt: skip
    differing = table.filter(pl.col("q_value").is_finite() & (pl.col("q_value") < LEVEL))
    return differing.sort(pl.col("change").abs(), "token", descending=[True, False])


def _use(parts: Parts, leave: int | None = None) -> Floats:
    return mean(parts.size, parts.held, leave)


def _row(one: Diagnosis) -> dict[str, Any]:
    skill, value = one.skill, one.correlation["value_importance"]
    used = one.uses.filter(pl.col("status") != str(Status.NOT_SHOWN))["token"]
    return {
        "model": one.model, "accuracy": skill.accuracy, "accuracy_low": skill.accuracy_low, "accuracy_high": skill.accuracy_high,
        "auc": skill.auc, "auc_low": skill.auc_low, "auc_high": skill.auc_high, "value": value.rho, "value_low": value.low,
        "value_high": value.high, "learned": one.learned, "learning": str(one.learning),
        "unsupported": one.leaning.height,
        "most_used": used[0] if len(used) else "–",
    }  # fmt: skip


def _plain(frame: pl.DataFrame) -> Sequence[dict[str, Any]]:
    return frame.with_columns(pl.selectors.float().fill_nan(None)).to_dicts()
