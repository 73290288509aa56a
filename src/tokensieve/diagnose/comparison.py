"""Several models on the same documents: which words the later ones use more, which less.

The words used most by any of the models are removed from the same documents, and rare ones inserted into the same documents at the
same places, with each model. For word s and document i let u_i be the size of the change of a model's answer; the change of use
from A to B is the mean of d_i = u_i(B) − u_i(A), with the interval of `tokensieve.diagnose.effects.use` for the differences
themselves. Words have gained or lost if Benjamini–Hochberg's q over all words looked at is below 0.05.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.blocks import Report
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.effects.measuring import Work, insert_words
from tokensieve.diagnose.effects.use import mean_interval
from tokensieve.diagnose.opening import open_subject
from tokensieve.diagnose.run import diagnose_corpus, prepare
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.diagnose.subjects.documents import Sample
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import LEVEL
from tokensieve.files import Content, csv_table
from tokensieve.progress import Progress, silent
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Floats, Ints

Loader = Callable[[], tuple[Any, Any]]
_TOP = 15  # words of each model
_FEWEST, _MOST = 24, 96  # documents for each word
_WORDS: dict[str, Any] = {
    "before": pl.String,
    "after": pl.String,
    "token": pl.String,
    "use_before": pl.Float64,
    "use_after": pl.Float64,
    "change": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "q_value": pl.Float64,
    "documents": pl.Int64,
}
_NOTE = (
    "The correlation of what a model does with words and what the data says shows whether it has learned, not which of two trained "
    "models is better: accuracy shows that."
)


@dataclass(frozen=True)
class Comparison:
    """Several models on the same documents.

    Attributes:
        diagnoses: of each, in the order given.
        models: a row per model: model, accuracy and AUC with intervals, value (its correlation with importance) with interval,
            learned, learning (`Learning`), unsupported (words used without support), most_used (– if no word's use is shown).
        words: those that gained or lost use from each model to the next, and from the first to the last if there are more
            than two; the largest change first.
        looked_at: how many words were compared.
        notes: what a reader should know.
    """

    diagnoses: list[Diagnosis]
    models: pl.DataFrame
    words: pl.DataFrame
    looked_at: int
    notes: list[str]

    own_files = r"(models|words)\.csv|pictures/(curve|compare)\.(svg|png|pdf|csv)"

    @property
    def seconds(self) -> dict[str, float]:
        """Of each model."""
        return {one.model: sum(one.seconds.values()) for one in self.diagnoses}

    def report(self) -> Report:
        """Title, headline and blocks."""
        from tokensieve.diagnose.comparison_report import comparison_report

        return comparison_report(self)

    def files(self) -> dict[str, Content]:
        """summary.json and tables."""
        summary = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        return {"models.csv": csv_table(self.models), "words.csv": csv_table(self.words), "summary.json": summary}

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        return {
            "models": _plain(self.models),
            "words": _plain(self.words),
            "notes": self.notes,
            "diagnoses": {one.model: one.to_dict() for one in self.diagnoses},
        }


def compare(
    models: Mapping[str, Loader | tuple[Any, Any]],
    corpus: Corpus,
    settings: DiagnoseSettings | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    prompted: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Diagnose several models on the same documents, and compare what they use.

    Args:
        models: name → (model, tokenizer), or a function that loads them, called each time its turn comes.
        corpus: the documents.
        settings: `DiagnoseSettings()` if None; of documents the same number is read by all, 1,000 if it is not given.
        mapping, prompted: as for `diagnose_corpus`.
        progress: called with (stage, fraction done).

    Raises:
        InputError: fewer than two models, or one that cannot be diagnosed.
    """
    if len(models) < 2:
        raise InputError("one model cannot be compared: name two or more")
    settings = settings or DiagnoseSettings()
    settings = replace(settings, max_documents=settings.max_documents or 1000)
    tell, found = progress or silent, []
    for i, (name, one) in enumerate(models.items()):

        def stage(what: str, share: float, name: str = name, i: int = i) -> None:
            tell(f"{name}: {what}", 0.8 * (i + share) / len(models))

        given = one() if callable(one) and not isinstance(one, tuple) else one
        try:
            options: dict[str, Any] = {"mapping": mapping, "prompted": prompted, "model_name": name}
            found.append(diagnose_corpus(*given, corpus, settings, **options, progress=stage))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    words = sorted({word for one in found for word in one.uses.top_k(_TOP, by="use")["token"].to_list()})
    sizes = []
    for i, (name, one) in enumerate(models.items()):
        tell(f"{name}: the same words in the same documents", 0.8 + 0.2 * i / len(models))
        given = one() if callable(one) and not isinstance(one, tuple) else one
        sizes.append(_sizes(given, corpus, settings, mapping, prompted, words))
    order = list(range(len(found)))
    steps = list(pairwise(order)) + ([(0, order[-1])] if len(order) > 2 else [])
    parts = [_changes((found[a], found[b]), (sizes[a], sizes[b]), words) for a, b in steps]
    rows = pl.concat([pl.DataFrame(schema=_WORDS), *parts])
    return Comparison(
        found, pl.DataFrame([_row(one) for one in found], infer_schema_length=None), rows, len(words), [_NOTE]
    )


def _sizes(
    given: tuple[Any, Any],
    corpus: Corpus,
    settings: DiagnoseSettings,
    mapping: Mapping[str, str] | None,
    prompted: bool,
    words: Sequence[str],
) -> list[Floats]:
    """For each word the size of the change of one model's answer in each of the documents that all models are asked about."""
    known, outputs, sample = prepare(*given, corpus, settings, None, mapping, prompted, silent)
    with open_subject(known, outputs, sample, settings, silent) as opened:
        # as in a diagnosis, the sign of a single output is decided by all documents
        subject = opened.subject
        work = Work(settings.batch_size, settings.deletions, settings.seed, None, "", silent)
        first = np.searchsorted(subject.documents, np.arange(len(sample.read)))
        place = {word: s for s, word in enumerate(sample.words)}
        out = []
        logits = np.full((len(subject.documents), outputs.width), np.nan)
        for word in words:
            s = place.get(word, -1)
            removed, inserted = _plan(sample, s, settings.seed, len(words))
            mine = subject.windows[subject.types == s]
            holding = dict(zip(subject.documents[mine[::-1]].tolist(), mine[::-1].tolist(), strict=True))
            w = np.array([holding.get(int(k), int(first[k])) for k in removed], dtype=np.int64)
            put = first[inserted]
            missing = np.unique(np.r_[w, put])
            missing = missing[np.isnan(logits[missing, 0])]

            def look(at: Ints, missing: Ints = missing) -> None:
                logits[missing[at]] = subject.look(missing[at], None)

            work.batches(f"{word}: as it is", subject.lengths[missing], look)
            answers = np.asarray(outputs.answers(logits))
            without = np.full((len(w), outputs.width), np.nan)

            def remove(at: Ints, s: int = s, w: Ints = w, without: Floats = without) -> None:
                without[at] = subject.without([np.array([s])] * len(at), w[at])

            work.batches(f"{word}: removed", subject.lengths[w], remove)
            lost = answers[w] - np.asarray(outputs.answers(without))
            gained = insert_words(subject, outputs, answers, np.full(len(put), s), put, work, f"{word}: inserted")
            heads = np.r_[answers[w], answers[put] + gained]
            heads = heads.argmax(axis=1) if outputs.heads > 1 else np.zeros(len(heads), dtype=np.int64)
            change = np.vstack([lost, gained])
            out.append(np.abs(change[np.arange(len(heads)), heads]))
    return out


def _plan(sample: Sample, word: int, seed: int, words: int) -> tuple[Ints, Ints]:
    """Documents that a word is removed from, and those that it is inserted into if too few contain it."""
    column = sample.counts.matrix[sample.read][:, [word]].toarray().ravel() if word >= 0 else np.zeros(len(sample.read))
    rng = np.random.default_rng([seed, 11])
    order = rng.permutation(len(column))
    holding, others = order[column[order] > 0], order[column[order] == 0]
    most = int(np.clip(4 * len(sample.read) // max(words, 1), _FEWEST, _MOST))
    return holding[:most], others[: max(_FEWEST - len(holding), 0)] if word >= 0 else others[:0]


def _changes(
    pair: tuple[Diagnosis, Diagnosis], sizes: tuple[list[Floats], list[Floats]], words: Sequence[str]
) -> pl.DataFrame:
    """Words whose use differs between two models, by the module's formula; the largest change first."""
    before, after = pair
    rows: list[dict[str, Any]] = []
    counted = before.tokens.select("token", "documents").unique("token")
    documents = dict(counted.iter_rows()) | dict(after.tokens.select("token", "documents").unique("token").iter_rows())
    for word, a, b in zip(words, *sizes, strict=True):
        both = np.isfinite(a) & np.isfinite(b)
        a, b = a[both], b[both]
        d, n = b - a, int(both.sum())
        if n < 5 or float(d.std(ddof=1)) <= 1e-12:
            continue
        ends = mean_interval(*(np.array([x]) for x in (n, d.mean(), d.std(ddof=1), stats.skew(d, bias=False))))
        rows.append(
            {
                "before": before.model,
                "after": after.model,
                "token": word,
                "use_before": float(a.mean()),
                "use_after": float(b.mean()),
                "change": float(d.mean()),
                "low": float(ends[0][0]),
                "high": float(ends[1][0]),
                "q_value": float(stats.ttest_1samp(d, 0.0).pvalue),
                "documents": int(documents.get(word, 0)),
            }
        )
    table = pl.DataFrame(rows, schema=_WORDS)
    if table.is_empty():
        return table
    q = stats.false_discovery_control(table["q_value"].to_numpy())
    certain = (pl.col("q_value") < LEVEL) & (pl.col("low") * pl.col("high") > 0)
    kept = table.with_columns(q_value=pl.Series(q)).filter(certain)
    return kept.sort(pl.col("change").abs(), "token", descending=[True, False])


def _row(one: Diagnosis) -> dict[str, Any]:
    skill, value, used = one.skill, one.correlation["value_importance"], one.used["token"]
    return {
        "model": one.model,
        "accuracy": skill.accuracy,
        "accuracy_low": skill.accuracy_low,
        "accuracy_high": skill.accuracy_high,
        "auc": skill.auc,
        "auc_low": skill.auc_low,
        "auc_high": skill.auc_high,
        "value": value.rho,
        "value_low": value.low,
        "value_high": value.high,
        "learned": one.learned,
        "learning": str(one.learning),
        "unsupported": one.leaning.height,
        "most_used": used[0] if len(used) else "–",
    }


def _plain(frame: pl.DataFrame) -> Sequence[dict[str, Any]]:
    return frame.with_columns(pl.selectors.float().fill_nan(None)).to_dicts()
