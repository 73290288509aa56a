"""Several models on the same documents: which words the later ones use more or less.

The words used most by any of the models are removed from the same documents, or, if fewer than FEWEST contain them, inserted into
the same documents at the same places, with each model. For word s and document i let u_i be the size of the change of a model's
answer; the change of use from A to B is the mean of d_i = u_i(B) − u_i(A), with the interval of
`tokensieve.diagnose.effects.measuring` for the differences themselves. A word has gained or lost use if Benjamini–Hochberg's q over
all m words examined is below 0.05. Such words are selected for a large difference, so that 95 % intervals would contain the truth
less often: if R words are selected, their intervals are at level 1 − 0.05 R/m (Benjamini & Yekutieli 2005).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve import __version__
from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.phrases import quoted
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.effects.confirming import FEWEST
from tokensieve.diagnose.effects.measuring import Measured, Work
from tokensieve.diagnose.report import DiagnosisReport
from tokensieve.diagnose.run import OpenModel, diagnose_corpus
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.evidence.intervals import LEVEL
from tokensieve.files import Content, csv_table
from tokensieve.progress import Progress, part, silent
from tokensieve.read.corpus import Corpus
from tokensieve.report.blocks import Block, Column, Format, Picture, Report, Section, Table, Text
from tokensieve.wording import count, signed

_Loaded = tuple[object, object]
_NOTE = (
    "The correlation between a model's use of words and the data shows whether the model has learned anything. To decide which of "
    "two trained models is better, compare their accuracy."
)


@dataclass(frozen=True)
class Comparison:
    """Several models on the same documents.

    `models` has a row per model: model, accuracy and AUC with intervals, value (its correlation with importance) with interval,
    learned, learning (`Learning`), unsupported (words used without support), most_used (– if no word's use is shown). `words` are
    those, of the words `looked_at`, that gained or lost use from each model to the next, and from the first to the last if there
    are more than two; the largest change first.
    """

    diagnoses: list[Diagnosis]
    models: pl.DataFrame
    words: pl.DataFrame
    looked_at: int
    notes: list[str]

    own_files = r"(models|words)\.csv|pictures/(curve|compare)\.(svg|png|pdf|csv)"

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each model."""
        return {one.model: sum(one.seconds.values()) for one in self.diagnoses}

    def files(self) -> dict[str, Content]:
        """summary.json and tables."""
        summary = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        return {
            "models.csv": csv_table(self.models),
            "words.csv": csv_table(self.words),
            "summary.json": summary,
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        models, words = (
            x.with_columns(pl.selectors.float().fill_nan(None)) for x in (self.models, self.words)
        )
        return {
            "models": models.to_dicts(),
            "words": words.to_dicts(),
            "notes": self.notes,
            "diagnoses": {one.model: one.to_dict() for one in self.diagnoses},
        }

    def report(self) -> Report:
        """Which words the last model uses more or less than the first, then model by model."""
        first, last = self.diagnoses[0], self.diagnoses[-1]
        names = self.models["model"].to_list()
        # models' folders without those that they lie in, if that still tells them apart
        short = {name: name.rstrip("/").rpartition("/")[2] for name in names}
        if len(set(short.values())) < len(names):
            short = {name: name for name in names}
        kinds: dict[str, Format] = {
            "model": "token",
            "accuracy": "rate",
            "AUC": "interval",
            "learned": "text",
        }
        kinds |= {"unsupported": "count", "uses most": "token"}
        columns = tuple(Column(name, kind) for name, kind in kinds.items())
        shortened = self.models.with_columns(pl.col("model").replace_strict(short))
        rows = DiagnosisReport.cells(
            shortened,
            "model accuracy/accuracy_low/accuracy_high auc/auc_low/auc_high learning unsupported most_used",
        )
        looked = f"The {self.looked_at} words most used by any model were removed from (if rare, inserted into) the same documents."
        title, few = (
            f"The models on the same {count(first.documents['read'])} documents",
            (0, 1, 4, 5),
        )
        short_rows = [tuple(row[i] for i in few) for row in rows]
        blocks: list[Block] = [
            Text(looked, "note"),
            Table(title, tuple(columns[i] for i in few), short_rows, only=("terminal",)),
            self._curve(short),
            Section("The models", (Table(title, columns, rows),), only=("html", "markdown")),
            Text(
                "Look for words that the later model uses more but that should not matter.", "lead"
            ),
        ]
        ends, verdict = (
            (first.model, last.model),
            "All differences in the use of words are within chance.",
        )
        steps = list(self.words.group_by("before", "after", maintain_order=True))
        for (before, after), words in sorted(steps, key=lambda one: one[0] != ends):
            tables: list[Block] = []
            for sign, how in ((-1, "less"), (1, "more")):
                some = words.filter(sign * pl.col("change") > 0)
                if some.is_empty():
                    continue
                cells = DiagnosisReport.cells(some, "token use_before use_after change/low/high")
                kinds = {"before": "plain", "after": "plain", "change": "interval"}
                of_use = (Column(name, kind, unit="log-odds") for name, kind in kinds.items())
                tables.insert(
                    0,
                    Table(
                        f"Words used {how} (q < 0.05)", (Column("word", "token"), *of_use), cells
                    ),
                )
                if (before, after) == ends:
                    most = quoted(some["token"].head(3).to_list())
                    ends_named = [for_display(short[one.model], 40) for one in (last, first)]
                    verdict = f"{ends_named[0]} uses {most} {how} than {ends_named[1]} does."
            title = f"{short[str(before)]} → {short[str(after)]}"
            blocks.append(Section(title, tuple(tables), folded=(before, after) != ends))
        notes = tuple(Text(for_display(note, 400), "note") for note in self.notes)
        blocks.append(Section("How it was measured", notes, only=("html", "markdown")))
        about = {"settings": first.settings, "seconds": self.seconds, "version": __version__}
        title = f"{len(self.diagnoses)} models compared on {for_display(first.name)}"
        return Report("diagnose", title, verdict, tuple(blocks), about)

    def _curve(self, short: Mapping[str, str]) -> Picture:
        kinds = {"accuracy": "accuracy", "AUC": "auc", "words alone against the data": "value"}
        rows: list[dict[str, Any]] = [
            {"order": i, "model": short[row["model"]][-28:], "of": name}
            | {to: row[f"{of}{end}"] for to, end in (("y", ""), ("low", "_low"), ("high", "_high"))}
            for i, row in enumerate(self.models.to_dicts())
            for name, of in kinds.items()
            if math.isfinite(row[of]) and math.isfinite(row[f"{of}_low"])
        ]
        listing = "; ".join(f"{row['model']}: {row['of']} {signed(row['y'])}" for row in rows)
        data = {"models": rows, "kinds": list(kinds)}
        return Picture(
            "curve",
            "diagnose-curve",
            data,
            "From model to model",
            "with 95% intervals",
            f"{listing}.",
        )


def compare(
    models: Mapping[str, Callable[[], _Loaded] | _Loaded],
    corpus: Corpus,
    settings: DiagnoseSettings | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    prompted: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Diagnose several models on the same documents, and compare what they use.

    Args:
        models: name → (model, tokenizer), or a function that loads them when their turn comes.
        corpus, settings, mapping, prompted, progress: as for `diagnose_corpus`; all models read the same number of documents, 1,000
            by default.

    Raises:
        InputError: fewer than two models, or one that cannot be diagnosed.
    """
    if len(models) < 2:
        raise InputError("one model cannot be compared: name two or more")
    settings = settings or DiagnoseSettings()
    settings = replace(settings, max_documents=settings.max_documents or 1000)
    progress, found, n = progress or silent, [], len(models)
    diagnosed = partial(
        diagnose_corpus, corpus=corpus, settings=settings, mapping=mapping, prompted=prompted
    )
    for i, (name, one) in enumerate(models.items()):
        given = one() if callable(one) else one
        named = lambda stage, share, name=name: progress(f"{name}: {stage}", share)  # noqa: E731
        of_model = part(named, 0.8 * i / n, 0.8 * (i + 1) / n)
        try:
            found.append(diagnosed(*given, model_name=name, progress=of_model))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    # the fifteen most used of each
    words = sorted(
        {word for one in found for word in one.uses.top_k(15, by="use")["token"].to_list()}
    )
    sizes = []
    for i, (name, one) in enumerate(models.items()):
        progress(f"{name}: the same words in the same documents", 0.8 + 0.2 * i / n)
        given = one() if callable(one) else one
        with OpenModel.loaded(*given, corpus, settings, mapping, prompted) as opened:
            sizes.append(_sizes(opened, settings, words))
    steps = [*pairwise(range(n)), *([(0, n - 1)] if n > 2 else [])]
    changes = pl.concat([_changes(found[a], found[b], sizes[a], sizes[b], words) for a, b in steps])
    ends = [f"{name}{end}" for name in ("accuracy", "auc") for end in ("", "_low", "_high")]
    rows = []
    for mine in found:
        value, used = mine.correlation["value_importance"], mine.used["token"]
        rows.append(
            {
                "model": mine.model,
                **{name: getattr(mine.skill, name) for name in ends},
                **{"value": value.rho, "value_low": value.low, "value_high": value.high},
                **{
                    "learned": mine.learned,
                    "learning": str(mine.learning),
                    "unsupported": mine.leaning.height,
                },
                "most_used": used[0] if len(used) else "–",
            }
        )
    return Comparison(
        found, pl.DataFrame(rows, infer_schema_length=None), changes, len(words), [_NOTE]
    )


def _sizes(opened: OpenModel, settings: DiagnoseSettings, words: Sequence[str]) -> list[Floats]:
    """For each word the size of the change of one model's answer in each of the documents that all models are asked about."""
    # as in a diagnosis, the sign of a single output is decided by all documents
    subject, sample, outputs = opened.subject, opened.sample, opened.outputs
    work = Work(settings.batch_size, settings.deletions, settings.seed, None, "", silent)
    measured, n = Measured(subject, outputs, work), len(sample.read)
    measured.answers = np.full((len(subject.documents), outputs.heads), np.nan)
    first = np.searchsorted(subject.documents, np.arange(n))
    most = int(np.clip(4 * n // max(len(words), 1), 24, 96))
    order = np.random.default_rng([settings.seed, 11]).permutation(n)
    plan: list[tuple[int, Ints, Ints]] = []
    for word in words:
        if word not in sample.words:
            plan.append((-1, order[:0], order[:0]))
            continue
        # documents that the word is removed from, or inserted into if too few contain it: not both, which would mix two quantities
        s = sample.words.index(word)
        column = sample.counts.matrix[sample.read][:, [s]].toarray().ravel()
        holding, others = order[column[order] > 0], order[column[order] == 0]
        mine = subject.windows[subject.types == s][::-1]
        window = dict(zip(subject.documents[mine].tolist(), mine.tolist(), strict=True))
        held = holding[: most if len(holding) >= FEWEST else 0]
        removed = np.array([window.get(int(k), int(first[k])) for k in held], dtype=np.int64)
        plan.append((s, removed, first[others[: 0 if len(held) else most]]))
    needed = np.unique(np.concatenate([np.r_[w, put] for _, w, put in plan])).astype(np.int64)

    def look(at: Ints) -> None:
        measured.answers[needed[at]] = outputs.answers(subject.look(needed[at], None))

    work.batches("as they are", subject.lengths[needed], look)
    out = []
    for word, (s, w, put) in zip(words, plan, strict=True):
        lost = measured.remove(np.full(len(w), s), w, f"{word}: removed")
        gained = measured.insert(np.full(len(put), s), put, f"{word}: inserted")
        now = np.r_[measured.answers[w], measured.answers[put] + gained]
        heads = now.argmax(axis=1) if outputs.heads > 1 else np.zeros(len(now), dtype=np.int64)
        out.append(np.abs(np.vstack([lost, gained])[np.arange(len(now)), heads]))
    return out


def _changes(
    before: Diagnosis,
    after: Diagnosis,
    was: Sequence[Floats],
    now: Sequence[Floats],
    words: Sequence[str],
) -> pl.DataFrame:
    """Words whose use differs between two models, by the module's formula; the largest change first."""
    documents: dict[str, int] = {}
    for one in (before, after):
        documents |= dict(one.tokens.select("token", "documents").iter_rows())
    rows: list[tuple[object, ...]] = []
    for word, a, b in zip(words, was, now, strict=True):
        both = np.isfinite(a) & np.isfinite(b)
        a, b = a[both], b[both]
        d, n = b - a, len(a)
        if n < FEWEST or float(np.abs(d).max()) <= 1e-12:
            continue
        means, numbers = (
            (float(a.mean()), float(b.mean()), float(d.mean())),
            (0.0, 0.0, 2.0 ** (1 - n)),
        )
        if (
            spread := float(d.std(ddof=1))
        ) > 1e-12:  # else it is the same in every document: the sign test above
            numbers = (
                spread,
                float(stats.skew(d, bias=False)),
                float(stats.ttest_1samp(d, 0.0).pvalue),
            )
        rows.append(
            (before.model, after.model, word, *means, *numbers, n, int(documents.get(word, 0)))
        )
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(("before", "after", "token"), pl.String)
    schema |= dict.fromkeys(
        "use_before use_after change spread skewness q_value".split(), pl.Float64
    )
    table = pl.DataFrame(
        rows, schema=schema | {"inputs": pl.Int64, "documents": pl.Int64}, orient="row"
    )
    columns = "before after token use_before use_after change low high q_value documents".split()
    if table.is_empty():
        return table.with_columns(low=0.0, high=0.0)[columns]
    q = stats.false_discovery_control(table["q_value"].to_numpy())
    sample = (table[name].to_numpy() for name in ("inputs", "change", "spread", "skewness"))
    low, high = Measured.mean_interval(
        *sample, level=LEVEL * max(float(np.mean(q < LEVEL)), 1 / len(q))
    )
    table = table.with_columns(q_value=pl.Series(q), low=pl.Series(low), high=pl.Series(high))
    kept = table.filter((pl.col("q_value") < LEVEL) & (pl.col("low") * pl.col("high") > 0))[columns]
    return kept.sort(pl.col("change").abs(), "token", descending=[True, False])
