"""Compare what a trained text classifier uses with the words that predict the label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors

from tokensieve.arrays import Floats, Ints
from tokensieve.checkpoint import fingerprint
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.effects.confirming import (
    Rest,
    Trials,
    candidate_words,
    confirm,
    rare_candidates,
    rest_of_words,
)
from tokensieve.diagnose.effects.forms import FORMS, FormEffect, form_importance, probe_forms
from tokensieve.diagnose.effects.measuring import Measured, Removals
from tokensieve.diagnose.effects.orders import OrderEffect, probe_orders
from tokensieve.diagnose.effects.work import Work
from tokensieve.diagnose.judgement.agreement import Evidence, Measures
from tokensieve.diagnose.judgement.context import Company
from tokensieve.diagnose.judgement.skill import Learning, Skill, random_auc
from tokensieve.diagnose.judgement.status import (
    Association,
    form_rows,
    order_rows,
    uses_table,
    word_rows,
)
from tokensieve.diagnose.opened import (
    MAX_UNTRAINED,
    UNTRAINED_FRACTION,
    OpenModel,
    affordable_passes,
    open_model,
    sample_size,
)
from tokensieve.diagnose.result import WORD_KINDS
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.diagnose.shown_documents import shown_documents
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.model.attention import per_class
from tokensieve.progress import Clock, Progress, silent
from tokensieve.read.corpus import Corpus
from tokensieve.read.pairs import read_pairs
from tokensieve.read.reader import read_corpus
from tokensieve.task.agreement import DIGITS, QUADRANTS, Quadrant
from tokensieve.text.counts import Counts

# documents whose form is changed: at most so many, and one in so many of those read
MAX_REFORMATTED = 48
REFORMATTED_FRACTION = 12
MIN_SCREENED = 256  # documents in which a slow model's effects choose the words to confirm
# of the documents that a model reads in a minute, how many are screened: a third of the work
SCREENED_FRACTION = 3
# passes that confirm words: this many, one for every other document, or a minute of a fast model
MIN_BUDGET = 200
MAX_BUDGET = 6_000
DOCUMENTS_OF_A_MINUTE = 250  # read, from which a fast model may take its minute
N_SHOWN_WORDS = 3  # a document with each of them is shown
SAME_ANSWERS = 1e-6  # log-odds by which answers differ at least; less is rounding


def diagnose(
    model: object,
    tokenizer: object,
    texts: Sequence[Any],
    labels: Sequence[Any] | None = None,
    settings: DiagnoseSettings | None = None,
    *,
    name: str = "the documents",
    **options: Any,
) -> Diagnosis:
    """Diagnose a text classifier, or a reward model, on documents that it was not trained on.

    Args:
        model, tokenizer: a Hugging Face model for sequence classification with its fast tokenizer;
            or anything else that `tokensieve.diagnose.subjects.recognise.RecognisedModel.of`
            accepts (tokenizer None for a model that reads texts).
        texts: n documents; or n pairs of texts that the model reads together; or, without labels, n
            pairs (chosen, rejected).
        labels: their labels; None for preference pairs.
        settings: `DiagnoseSettings()` if None.
        name: name of the source, for messages.
        options: those of `diagnose_corpus`, whose errors are raised, as for a text or label that
            cannot be used.
    """
    in_pairs = len(texts) > 0 and not isinstance(texts[0], str) and len(texts[0]) == 2
    if not in_pairs:
        if labels is None:
            raise InputError(
                "without labels the documents must be pairs (chosen, rejected): "
                "pass labels, or pairs"
            )
        corpus = read_corpus((texts, labels))
    elif labels is None:
        sides = _columns(texts, ("chosen", "rejected"))
        corpus = read_pairs(sides, pairs=("chosen", "rejected"))
    else:
        sides = _columns(texts, ("first", "second")).with_columns(label=pl.Series(labels))
        corpus = read_corpus(sides, text=["first", "second"], label="label")
    return diagnose_corpus(model, tokenizer, replace(corpus, name=name), settings, **options)


def _columns(pairs: Sequence[Any], names: tuple[str, str]) -> pl.DataFrame:
    """A table with a column for each side of some pairs."""
    return pl.DataFrame({name: [str(pair[i]) for pair in pairs] for i, name in enumerate(names)})


def diagnose_corpus(
    model: object,
    tokenizer: object,
    corpus: Corpus,
    settings: DiagnoseSettings | None = None,
    *,
    classes: Sequence[str] | None = None,
    mapping: Mapping[str, str] | None = None,
    prompted: bool = False,
    model_name: str = "",
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Like `diagnose`, for a corpus; if it has test documents, these are used.

    Args:
        model, tokenizer, corpus, settings: as `diagnose`.
        classes: for a function, the labels of its columns in order.
        mapping: class → name or number of the model's output, if names do not match.
        prompted: for preference pairs, whether the model reads the prompt before each answer.
        model_name: for messages.
        resume: file in which unfinished work is saved, and from which it continues.
        progress: called with (stage, fraction done).

    Raises:
        InputError: classes that do not match the model's outputs, a tokenizer without offsets,
            weights that are not finite, no frequent word, a checkpoint of another run, or too
            little memory.
    """
    settings = settings or DiagnoseSettings()
    progress = progress or silent
    clock = Clock()
    with open_model(
        model, tokenizer, corpus, settings, mapping, prompted, classes, progress
    ) as opened:
        clock.lap("counting")
        mark = fingerprint(
            *opened.sample.identity,
            opened.recognised.names,
            opened.outputs,
            settings.measuring(),
            opened.digest,
        )
        work = Work(settings.batch_size, settings.deletions, settings.seed, resume, mark, progress)
        run = _Run(opened, work, settings, clock)
        return run.diagnosis(model_name or opened.recognised.family)


@dataclass(frozen=True)
class _Measurements:
    """What was measured: of all frequent words, and of candidates; and what the data says."""

    measured: Measured
    importance: Importance
    trials: Trials
    rest: Rest
    forms: list[FormEffect]
    orders: list[OrderEffect]


class _Run:
    """Every pass through a model and through its untrained twin, and what they mean.

    Attributes:
        _n_read: documents that the model reads.
        _minute: documents that it reads in about a minute.
        _budget: changed copies of documents that may be read to confirm candidates.
        _n_screened: documents in which every word is screened.
        _n_reformatted: documents that are also read in other formatting.
    """

    def __init__(
        self, opened: OpenModel, work: Work, settings: DiagnoseSettings, clock: Clock
    ) -> None:
        self._opened = opened
        self._work = work
        self._settings = settings
        self._clock = clock
        self._sample = opened.sample
        self._n_read = len(opened.sample.read)
        texts = opened.sample.texts.head(500).to_list()
        self._minute = affordable_passes(opened.recognised, texts, settings, 60)
        in_a_minute = self._minute * min(self._n_read / DOCUMENTS_OF_A_MINUTE, 1)
        self._budget = max(MIN_BUDGET + self._n_read // 2, int(min(in_a_minute, MAX_BUDGET)))
        affordable = int(self._minute / SCREENED_FRACTION)
        self._n_screened = min(self._n_read, max(MIN_SCREENED, affordable))
        self._n_reformatted = sample_size(MAX_REFORMATTED, REFORMATTED_FRACTION, self._n_read)

    def diagnosis(self, model_name: str) -> Diagnosis:
        """Measure and judge."""
        self._estimate_work()
        everything, offset = self._read()
        n_infrequent = int((~self._sample.frequent).sum())
        results = self._measure(everything, offset)
        measured = results.measured
        twin = None
        if self._opened.twin is not None:
            twin = self._opened.twin(measured.outputs, self._work, self._kept)
        self._clock.lap("untrained model")
        self._work.progress("correlations", 0.99)
        judged = self._judge(results, twin)
        self._clock.lap("correlations")
        sample = self._sample
        by_class = dict(zip(sample.corpus.classes, sample.counts.class_sizes.tolist(), strict=True))
        return Diagnosis(
            name=sample.corpus.name,
            model=model_name,
            classes=sample.corpus.classes,
            documents={
                "all": len(sample.corpus.labels),
                "read": self._n_read,
                "by class": by_class,
            },
            settings=self._settings.measuring(),
            reading={
                "family": self._opened.recognised.family,
                **self._opened.facts,
                "method": measured.method,
                "unit": "scaled output" if self._is_scale(measured.outputs) else "log-odds",
                "windows": len(measured.subject.documents),
                "coverage": self._coverage(n_infrequent),
                "warning": measured.outputs.warning,
            },
            notes=self._notes(measured),
            seconds=self._clock.seconds,
            **judged,
        )

    def _is_scale(self, outputs: Outputs) -> bool:
        """Whether predictions are numbers of a scale, as of a regression, instead of log-odds.

        Of a preference pair, the difference of two rewards is the log-odds of the chosen answer;
        a function of texts with one output returns a margin.
        """
        is_network = self._opened.recognised.answer is None
        return outputs.kind == "single" and self._sample.partner is None and is_network

    def _coverage(self, n_infrequent: int) -> dict[str, Any]:
        """Which words were looked at: `coverage` of `Diagnosis.reading`."""
        sample = self._sample
        rare = [
            word for word, common in zip(sample.words, sample.frequent, strict=True) if not common
        ]
        return {
            "words": len(sample.words) - len(rare),
            "rescued": rare,
            "rare": n_infrequent - len(rare),
            "distinct": sample.distinct,
            "min_documents": self._settings.min_documents,
        }

    def _estimate_work(self) -> None:
        """Estimate how many word pieces the model will read, and say so if that takes minutes.

        The estimate is the length of the progress bar. A read document counts as one, a document
        read backwards for its gradient as about one more.
        """
        subject = self._opened.subject
        n_documents = self._n_read + self._budget
        n_documents += self._n_reformatted * (len(FORMS) + 1)  # as it is, and in each form
        pieces_of_single_words = float(subject.word_lengths.sum())  # each word read by itself
        if subject.differentiable:
            n_documents += 2 * self._n_screened  # forwards and backwards
            if self._settings.untrained:
                n_untrained = sample_size(MAX_UNTRAINED, UNTRAINED_FRACTION, self._n_read)
                n_documents += 3 * n_untrained  # read once, then forwards and backwards
                pieces_of_single_words *= 2  # by the untrained model too
        else:
            n_containing = np.bincount(subject.types, minlength=len(subject.word_lengths))
            n_documents += int(np.minimum(n_containing, self._settings.deletions).sum())
        mean_length = float(subject.lengths.sum()) / max(self._n_read, 1)
        self._work.pieces = n_documents * mean_length + pieces_of_single_words
        self._work.longest = int(subject.lengths.max())
        minutes = self._work.pieces / float(subject.lengths.mean()) / self._minute
        if minutes > 1:
            self._work.progress(
                f"the model reads {self._n_read:,} documents; "
                f"expect about {minutes:.0f} min on one core",
                0.0,
            )

    def _read(self) -> tuple[Measured, Floats]:
        """Read and screen all documents; also what a decision takes from each document's answer.

        That is its partner's answer in a preference pair; of another single output, the value that
        as many answers exceed as documents are of the second class; else 0.
        """
        opened = self._opened
        sample = self._sample
        subject = opened.subject
        measured = Measured(subject, opened.outputs, self._work)
        measured.read()
        logits = measured.by_document(measured.logits)
        outputs = opened.outputs.check_order(logits, sample.labels, sample.corpus.classes)
        if self._is_scale(outputs):
            outputs = outputs.stretched(logits)
        opened.set_outputs(outputs)  # its sign may have been turned
        answers = np.asarray(outputs.answers(logits))
        offset = np.zeros(self._n_read)
        if sample.partner is not None:
            offset = answers[sample.partner, 0]
        elif outputs.kind == "single":
            fraction = float(np.mean(sample.labels == 1))
            offset = np.full(self._n_read, np.quantile(answers[:, 0], 1 - fraction))
        measured.set_answers(outputs, offset[subject.documents])
        screened = sample.order[: self._n_screened]
        measured.screen(np.flatnonzero(np.isin(subject.documents, screened)))
        return measured, offset

    def _measure(self, everything: Measured, offset: Floats) -> _Measurements:
        """Measure candidates; forget the rare words that are none."""
        sample = self._sample
        infrequent = np.flatnonzero(~sample.frequent)
        rescued = rare_candidates(everything, infrequent, self._budget)
        self._kept = np.union1d(np.flatnonzero(sample.frequent), rescued)
        self._sample = sample = sample.of_words(self._kept)
        measured = everything.of_words(self._kept)
        self._clock.lap("model")
        words = candidate_words(measured, sample.frequent, sample.words, self._budget)
        trials = confirm(measured, words, self._budget)
        rest = rest_of_words(everything, self._kept[words])
        orders = probe_orders(measured, trials, sample.words)
        self._clock.lap("confirming words")
        reformatted = sample.order[: self._n_reformatted]
        texts = sample.inputs.gather(reformatted).to_list()
        more_texts = sample.inputs.gather(sample.order[self._n_reformatted :]).to_list()
        forms = probe_forms(measured, texts, more_texts, offset[reformatted], sample.corpus)
        self._clock.lap("formatting of documents")
        return _Measurements(measured, token_importance(sample.counts), trials, rest, forms, orders)

    def _notes(self, measured: Measured) -> list[str]:
        notes = [*self._sample.notes, *self._opened.recognised.notes]
        if measured.outputs.note:
            notes.append(measured.outputs.note)
        notes += self._opened.notes
        decisive = measured.by_document(measured.decisive)
        range_of_answers = float(np.ptp(decisive, axis=0).max())
        if not np.isfinite(measured.answers).all() or range_of_answers <= SAME_ANSWERS:
            notes.append(
                "the model makes the same prediction for every document, "
                "so its predictions reveal nothing"
            )
        return notes

    def _judge(self, results: _Measurements, twin: Measured | None) -> dict[str, Any]:
        """Interpret the measurements: the fields of `Diagnosis` computed from them."""
        sample = self._sample
        measured = results.measured
        importance = results.importance
        labels = sample.labels[measured.subject.documents]
        uses = self._uses(results, labels)
        if not measured.answers_differ(twin):
            uses = uses.clear()
        removals = _all_removals(measured, results.trials, np.flatnonzero(~sample.frequent))
        evidence = Evidence(sample.counts, sample.groups, sample.n_groups)
        measures = self._measures(evidence, measured, removals)
        agreement: dict[str, dict[str, Any]] = {
            "model": evidence.correlations(measures),
            "untrained": {},
            "shuffled": evidence.shuffled(measures, self._settings.seed),
        }
        if twin is not None:
            of_twin = self._measures(evidence, twin, Removals.none(measured.outputs.heads))
            agreement["untrained"] = evidence.correlations(of_twin)
        skill = self._skill(measured, results.trials, labels)
        learning = Learning.NOT_SHOWN
        if not measured.outputs.warning:
            learning = Learning.of(
                agreement["model"], agreement["untrained"], agreement["shuffled"], skill, uses
            )
        return {
            "skill": skill,
            "agreement": agreement,
            "tokens": _tokens_table(importance, evidence, measures, measured, removals, uses),
            "uses": uses,
            "rest": results.rest,
            "forms": _forms_table(results.forms, sample.corpus.classes),
            "learning": learning,
            "passages": shown_documents(measured, sample, _shown_words(uses)),
        }

    def _measures(self, evidence: Evidence, measured: Measured, removals: Removals) -> Measures:
        """How a model uses each word, with the groups of its documents."""
        sample = self._sample
        groups = sample.groups[sample.read][measured.subject.documents]
        return evidence.measures(measured, groups, removals, np.flatnonzero(~sample.frequent))

    def _skill(self, measured: Measured, trials: Trials, labels: Ints) -> Skill:
        sample = self._sample
        return Skill.of(
            measured.by_document(measured.decisive),
            sample.labels,
            sample.groups[sample.read],
            sample.partner is not None,
            random_auc(sample.counts, sample.read, sample.partner, self._settings.seed),
            trials.loss_of_true_class(measured, labels),
        )

    def _uses(self, results: _Measurements, labels: Ints) -> pl.DataFrame:
        """The table of everything that may move predictions."""
        sample = self._sample
        counts = sample.counts
        read = sample.read
        company = Company(
            Counts(counts.matrix[read], counts.labels[read], counts.classes, counts.tokens)
        )
        measured = results.measured
        rows = word_rows(
            measured, results.trials, results.importance, company, labels, counts.n_documents
        )
        texts = sample.texts.to_list()
        has = {
            form.name: np.array([form.has(text) for text in texts])
            for form in FORMS
            if form.has is not None
        }
        rows += form_rows(
            results.forms, form_importance(sample.corpus), company, has, counts.n_documents
        )
        associations = [
            _order_association(measured, effect, sample.labels, counts.classes)
            for effect in results.orders
        ]
        rows += order_rows(results.orders, sample.words, associations, self._n_read)
        return uses_table(rows, results.rest, counts.classes)


def _shown_words(uses: pl.DataFrame) -> list[str]:
    """The words that are most likely artefacts: a document with each is shown."""
    words = uses.filter(pl.col("kind").is_in(WORD_KINDS))
    return words.sort("artefact", descending=True)["token"].head(N_SHOWN_WORDS).to_list()


def _order_association(
    measured: Measured, effect: OrderEffect, labels: Ints, classes: tuple[str, ...]
) -> Association:
    """What the documents read say about one word standing before another."""
    present = np.zeros((len(labels), 2))
    first = measured.windows[measured.types == effect.first]
    for w in np.intersect1d(first, measured.windows[measured.types == effect.second]):
        order = measured.subject.word_order(int(w)).tolist()
        is_forward = order.index(effect.first) < order.index(effect.second)
        present[measured.subject.documents[w], 0 if is_forward else 1] = 1
    counts = Counts.from_matrix(present, labels.tolist(), classes, ["forward", "backward"])
    return Association.of(token_importance(counts), 0, effect.target)


def _all_removals(measured: Measured, trials: Trials, rare: Ints) -> Removals:
    """Removals of the words confirmed, and of others what screening by removal measured."""
    is_other = ~np.isin(measured.types[measured.removals.pairs], trials.words)
    removals = measured.removals.where(is_other).and_also(trials.removals)
    is_known = np.isfinite(removals.lost).all(axis=1)
    return removals.where(is_known & ~np.isin(measured.types[removals.pairs], rare))


def _tokens_table(
    importance: Importance,
    evidence: Evidence,
    measures: Measures,
    measured: Measured,
    removals: Removals,
    uses: pl.DataFrame,
) -> pl.DataFrame:
    """Importance of each word and class with what the model does with it."""
    n_classes = len(importance.classes)

    def column(values: Floats) -> pl.Series:
        """A row for each class and word, of values for each word, or for each word and class."""
        if values.ndim == 1:
            return pl.Series(np.tile(values, n_classes), nan_to_null=True)
        return pl.Series(per_class(values).T.ravel(), nan_to_null=True)

    means = {name: measure.of_all for name, measure in measures.items()}
    means["value"] = measured.value
    attention = means.pop("attention", None)
    columns = {"importance": column(evidence.importance.of_all)}
    columns |= {name: column(values) for name, values in means.items()}
    n_removals = np.bincount(measured.types[removals.pairs], minlength=measured.n_types)
    columns["deleted_from"] = pl.Series(np.tile(n_removals, n_classes))
    if attention is not None:
        columns["attention"] = column(attention)
        quadrant = Quadrant.places(importance, np.nan_to_num(attention))
        columns["quadrant"] = pl.Series(QUADRANTS).gather(np.tile(quadrant, n_classes))
    table = importance.to_frame().with_columns(**columns)
    of_words = uses.select("token", "use", "use_low", "use_high", "move", "share", "status")
    table = table.join(of_words, on="token", how="left", maintain_order="left")
    return table.with_columns(polars.selectors.float().round_sig_figs(DIGITS))


def _forms_table(effects: Sequence[FormEffect], classes: Sequence[str]) -> pl.DataFrame:
    """What each form of documents does to predictions, the largest effect first."""
    records = []
    for effect in effects:
        when_given = effect.given
        records.append(
            {
                "form": effect.form.name,
                "class": classes[effect.target] if effect.visible else None,
                "visible": effect.visible,
                "documents_having": effect.documents_having,
                "use": None if when_given is None else float(when_given.mean[0]),
                "use_low": None if when_given is None else float(when_given.low[0]),
                "use_high": None if when_given is None else float(when_given.high[0]),
                "mean": None if when_given is None else float(when_given.signed[0]),
                "flipped": effect.flipped,
                "words_kept": effect.words_kept,
                "before": effect.before,
                "after": effect.after,
            }
        )
    table = pl.DataFrame(records, infer_schema_length=None)
    table = table.with_columns(polars.selectors.float().fill_nan(None))
    return table.sort("use", descending=True, nulls_last=True)
