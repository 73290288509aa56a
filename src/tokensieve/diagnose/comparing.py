"""Diagnose several models on the same documents, and compare what they use.

The words used most by any of the models are removed from the same documents, and inserted into the
same others at the same places, with each model. For word s and document i let u_i be the size of
the change of a model's answer; the change of use from A to B is the mean of d_i = u_i(B) − u_i(A),
with the interval of `tokensieve.diagnose.effects.estimates` for the differences themselves.

Removing and inserting are two quantities, and each claim is about one of them. A word has gained or
lost use if Benjamini–Hochberg's q over all m tests is below 0.05. Such words are selected for a
large difference, so that 95 % intervals would contain the truth less often: if R claims are made,
their intervals are at level 1 − 0.05 R/m (Benjamini & Yekutieli 2005). Each claim says whether the
other quantity changes in the same direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.comparison import CHANGES, Comparison, models_table
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.effects.confirming import FEWEST
from tokensieve.diagnose.effects.estimates import hall_interval
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.effects.work import Work
from tokensieve.diagnose.opened import OpenModel, open_model
from tokensieve.diagnose.run import diagnose_corpus
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import LEVEL
from tokensieve.progress import Progress, part, silent
from tokensieve.read.corpus import Corpus

ModelAndTokenizer = tuple[object, object]
USUAL_DOCUMENTS = 1000
N_WORDS = 15  # of each model, by each of its two lists
DIAGNOSING = 0.8  # of the time; the rest compares
# documents that each word is removed from, and inserted into: four times as many as there are to
# share among the words, within these ends
FEWEST_COMPARED = 24
MOST_COMPARED = 96
TIMES_SHARED = 4
SAME = 1e-12  # log-odds; a smaller change is rounding


def compare(
    models: Mapping[str, Callable[[], ModelAndTokenizer] | ModelAndTokenizer],
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
        corpus, settings, mapping, prompted, progress: as for `diagnose_corpus`; all models read the
            same number of documents, 1,000 by default.

    Raises:
        InputError: fewer than two models, or one that cannot be diagnosed.
    """
    if len(models) < 2:
        raise InputError("one model cannot be compared: name two or more")
    settings = settings or DiagnoseSettings()
    settings = replace(settings, max_documents=settings.max_documents or USUAL_DOCUMENTS)
    runs = _Runs(models, corpus, settings, mapping, prompted, progress or silent)
    diagnoses = runs.diagnoses()
    words = _most_used(diagnoses)
    sizes = runs.word_changes(words)
    last = len(models) - 1
    steps = list(pairwise(range(len(models))))
    if last > 1:
        steps.append((0, last))
    changes = [
        changes_between(diagnoses[a], diagnoses[b], sizes[a], sizes[b], words) for a, b in steps
    ]
    return Comparison(
        list(diagnoses), models_table(diagnoses), pl.concat(changes), looked_at=len(words)
    )


@dataclass(frozen=True)
class _Runs:
    """Every model, one after the other; arguments as those of `compare`."""

    models: Mapping[str, Callable[[], ModelAndTokenizer] | ModelAndTokenizer]
    corpus: Corpus
    settings: DiagnoseSettings
    mapping: Mapping[str, str] | None
    prompted: bool
    progress: Progress

    def diagnoses(self) -> list[Diagnosis]:
        """The diagnosis of each model."""
        diagnoses = []
        of_one = DIAGNOSING / len(self.models)
        for i, (name, loader) in enumerate(self.models.items()):
            model, tokenizer = loader() if callable(loader) else loader
            progress = part(partial(_of_model, self.progress, name), i * of_one, (i + 1) * of_one)
            try:
                diagnosis = diagnose_corpus(
                    model,
                    tokenizer,
                    self.corpus,
                    self.settings,
                    mapping=self.mapping,
                    prompted=self.prompted,
                    model_name=name,
                    progress=progress,
                )
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
            diagnoses.append(diagnosis)
        return diagnoses

    def word_changes(self, words: Sequence[str]) -> list[list[WordChanges]]:
        """What each word does in each model."""
        changes = []
        for i, (name, loader) in enumerate(self.models.items()):
            fraction = DIAGNOSING + (1 - DIAGNOSING) * i / len(self.models)
            self.progress(f"{name}: the same words in the same documents", fraction)
            model, tokenizer = loader() if callable(loader) else loader
            with open_model(
                model, tokenizer, self.corpus, self.settings, self.mapping, self.prompted
            ) as opened:
                changes.append(word_changes(opened, self.settings, words))
        return changes


def _of_model(progress: Progress, name: str, stage: str, fraction: float) -> None:
    """Report progress with the name of a model."""
    progress(f"{name}: {stage}", fraction)


def _most_used(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """The words at the top of either list of any model."""
    words: set[str] = set()
    for diagnosis in diagnoses:
        for column in ("move", "use"):
            rows = diagnosis.used.filter(pl.col(column).is_not_null())
            words |= set(rows.top_k(N_WORDS, by=column)["token"].to_list())
    return sorted(words)


@dataclass(frozen=True)
class WordChanges:
    """Sizes of the changes of one model's answers when a word is removed, and when it is inserted.

    Each is of the documents that all models are asked about.
    """

    removed: Floats
    inserted: Floats


@dataclass(frozen=True)
class _Plan:
    """A word's type (−1 if the model's documents do not have it), and the inputs it is tried in."""

    word: int
    removed_from: Ints
    inserted_into: Ints


def word_changes(
    opened: OpenModel, settings: DiagnoseSettings, words: Sequence[str]
) -> list[WordChanges]:
    """What each word does in the documents that all models are asked about."""
    # as in a diagnosis, the sign of a single output is decided by all documents
    work = Work(settings.batch_size, settings.deletions, settings.seed, None, "", silent)
    measured = Measured(opened.subject, opened.outputs, work)
    plans = _plans(opened, settings.seed, words)
    inputs = np.unique(
        np.concatenate([np.r_[plan.removed_from, plan.inserted_into] for plan in plans])
    )
    heads = opened.outputs.heads
    measured.answers = np.full((len(opened.subject.documents), heads), np.nan)

    def look(at: Ints) -> None:
        logits = opened.subject.look(inputs[at], None)
        measured.answers[inputs[at]] = opened.outputs.answers(logits)

    work.batches("as they are", opened.subject.lengths[inputs], look)
    changes = []
    for word, plan in zip(words, plans, strict=True):
        removed = measured.remove_from(
            np.full(len(plan.removed_from), plan.word), plan.removed_from, f"{word}: removed"
        )
        inserted = measured.insert(
            np.full(len(plan.inserted_into), plan.word), plan.inserted_into, f"{word}: inserted"
        )
        answers = measured.answers
        changes.append(
            WordChanges(
                _sizes_of(removed, answers[plan.removed_from]),
                _sizes_of(inserted, answers[plan.inserted_into] + inserted),
            )
        )
    return changes


def _sizes_of(change: Floats, answers: Floats) -> Floats:
    """Size of the change of the answer of the class predicted with the word, (n,)."""
    heads = np.zeros(len(change), dtype=np.int64)
    if change.shape[1] > 1:
        heads = answers.argmax(axis=1)
    return np.abs(change[np.arange(len(change)), heads])


def _plans(opened: OpenModel, seed: int, words: Sequence[str]) -> list[_Plan]:
    """The same documents for every model: in a random order, as many as there are."""
    n_read = len(opened.sample.read)
    shared = TIMES_SHARED * n_read // max(len(words), 1)
    max_compared = int(np.clip(shared, FEWEST_COMPARED, MOST_COMPARED))
    order = np.random.default_rng([seed, 11]).permutation(n_read)
    return [_plan(opened, word, order, max_compared) for word in words]


def _plan(opened: OpenModel, word: str, order: Ints, max_compared: int) -> _Plan:
    """The first documents, in a given order, with a word and without it."""
    sample = opened.sample
    if word not in sample.words:
        return _Plan(-1, order[:0], order[:0])
    s = sample.words.index(word)
    counts = sample.counts.matrix[sample.read][:, [s]].toarray().ravel()
    containing = order[counts[order] > 0][:max_compared]
    without = order[counts[order] == 0][:max_compared]
    first_window = np.searchsorted(opened.subject.documents, np.arange(len(sample.read)))
    removed_from = _windows_with(opened, s, containing, first_window)
    return _Plan(s, removed_from, first_window[without])


def _windows_with(opened: OpenModel, word: int, documents: Ints, first_window: Ints) -> Ints:
    """Of several windows of each document, the first that contains the word."""
    subject = opened.subject
    windows = subject.windows[subject.types == word][::-1]
    window_of = dict(zip(subject.documents[windows].tolist(), windows.tolist(), strict=True))
    chosen = [window_of.get(int(k), int(first_window[k])) for k in documents]
    return np.array(chosen, dtype=np.int64)


def changes_between(
    before: Diagnosis,
    after: Diagnosis,
    was: Sequence[WordChanges],
    now: Sequence[WordChanges],
    words: Sequence[str],
) -> pl.DataFrame:
    """Words whose use differs between two models; the largest change first."""
    tests = []
    for word, a, b in zip(words, was, now, strict=True):
        for how in ("removed", "inserted"):
            test = _paired_test(getattr(a, how), getattr(b, how))
            if test is not None:
                names = {"before": before.model, "after": after.model, "token": word, "how": how}
                tests.append({**names, **test})
    if not tests:
        return pl.DataFrame(schema=CHANGES)
    table = _with_intervals(pl.DataFrame(tests))
    table = table.join(_documents(before, after), on="token", how="left", maintain_order="left")
    other_tests = table.select(
        "token",
        how=pl.col("how").replace_strict({"removed": "inserted", "inserted": "removed"}),
        other_change="change",
    )
    table = table.join(other_tests, on=["token", "how"], how="left", maintain_order="left")
    table = table.with_columns(agrees=pl.col("other_change") * pl.col("change") > 0)
    is_claim = (pl.col("q_value") < LEVEL) & (pl.col("low") * pl.col("high") > 0)
    claims = table.filter(is_claim).select(*CHANGES).cast(pl.Schema(CHANGES))
    return claims.sort(pl.col("change").abs(), "token", "how", descending=[True, False, False])


def _with_intervals(tests: pl.DataFrame) -> pl.DataFrame:
    """Tests with q-values, and with intervals that allow for having been selected."""
    q = stats.false_discovery_control(tests["p_value"].to_numpy())
    level = LEVEL * max(float(np.mean(q < LEVEL)), 1 / len(q))
    interval = hall_interval(
        tests["inputs"].to_numpy(),
        tests["change"].to_numpy(),
        tests["spread"].to_numpy(),
        tests["skewness"].to_numpy(),
        level=level,
    )
    return tests.with_columns(
        q_value=pl.Series(q), low=pl.Series(interval.low), high=pl.Series(interval.high)
    )


def _documents(before: Diagnosis, after: Diagnosis) -> pl.DataFrame:
    """The number of documents that contain each word of either model."""
    tokens = [diagnosis.tokens.select("token", "documents") for diagnosis in (before, after)]
    return pl.concat(tokens).unique("token", keep="last")


def _paired_test(was: Floats, now: Floats) -> dict[str, float] | None:
    """The mean difference of sizes in the same documents; None if it cannot be tested."""
    is_known = np.isfinite(was) & np.isfinite(now)
    was = was[is_known]
    now = now[is_known]
    difference = now - was
    n = len(difference)
    if n < FEWEST or float(np.abs(difference).max()) <= SAME:
        return None
    spread = float(difference.std(ddof=1))
    skewness = 0.0
    p_value = 2.0 ** (1 - n)  # the same in every document: the sign test
    if spread <= SAME:
        spread = 0.0
    else:
        skewness = float(stats.skew(difference, bias=False))
        p_value = float(stats.ttest_1samp(difference, 0.0).pvalue)
    return {
        "use_before": float(was.mean()),
        "use_after": float(now.mean()),
        "change": float(difference.mean()),
        "spread": spread,
        "skewness": skewness,
        "p_value": p_value,
        "inputs": n,
    }
