"""A trained text classifier against the words that predict the label: measured, correlated, judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors

from tokensieve.auditing.agreement import DIGITS, QUADRANTS, quadrants
from tokensieve.checkpoint import fingerprint
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.effects.confirming import (
    confirm,
    confirmed_use,
    rare_candidates,
    with_confirmed,
)
from tokensieve.diagnose.effects.forms import FORMS, probe_forms
from tokensieve.diagnose.effects.measuring import Work, by_document, measure, read
from tokensieve.diagnose.effects.use import Use, estimated_use
from tokensieve.diagnose.judgement import agreement
from tokensieve.diagnose.judgement.learning import (
    Learning,
    behaves,
    learning_of,
    random_auc,
    removal_effect,
    skill_of,
    without_claims,
)
from tokensieve.diagnose.judgement.passages import DRAWS, most_confident, passages_of
from tokensieve.diagnose.judgement.status import judge, needed_weights
from tokensieve.diagnose.opening import UNTRAINED, OpenModel, few, open_subject
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.diagnose.subjects.classes import OutputKind, Outputs
from tokensieve.diagnose.subjects.documents import Sample, corpus_of
from tokensieve.diagnose.subjects.pieces import Subject
from tokensieve.diagnose.subjects.recognise import RecognisedModel, recognise
from tokensieve.diagnose.subjects.windows import SPLITTER
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.model.attention import both
from tokensieve.progress import Clock, Progress, silent
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.tokenizers import PieceTokenizer, Tokenizer

_PROBED = 64  # documents whose form is changed at most: a twelfth of those that the model reads
_CONFIRMING = 2  # passes to confirm words, for each document read
_PASSES = (
    6  # passes for each document in all, for the estimate of time: one to read, two for effects, the others to confirm
)
_RATE = 5e10  # operations a second of the machine that `seconds` is about


def diagnose(
    model: Any,
    tokenizer: Any,
    texts: Sequence[Any],
    labels: Sequence[Any] | None = None,
    settings: DiagnoseSettings | None = None,
    *,
    name: str = "the documents",
    **options: Any,
) -> Diagnosis:
    """Diagnose a text classifier, or a reward model, on documents that it was not trained on.

    Args:
        model: a Hugging Face model for sequence classification, or any other that
            `tokensieve.diagnose.subjects.recognise.recognise` knows.
        tokenizer: its fast tokenizer; None for a model that reads texts.
        texts: n documents; or n pairs of texts that the model reads together; or, without labels, n pairs (chosen, rejected).
        labels: their labels; None for preference pairs.
        settings: `DiagnoseSettings()` if None.
        name: of the source, for people.
        options: of `diagnose_corpus`.

    Raises:
        InputError: as `diagnose_corpus`, or a text or label cannot be used.
    """
    return diagnose_corpus(model, tokenizer, corpus_of(texts, labels, name), settings, **options)


def diagnose_corpus(
    model: Any,
    tokenizer: Any,
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
    """As `diagnose`, on a corpus; of one with a test part that part is used, the other may have trained the model.

    Args:
        model, tokenizer, settings: as `diagnose`.
        corpus: the documents.
        classes: of a function, the labels of its columns in order.
        mapping: class → name or number of the model's output, if names do not tell.
        prompted: of preference pairs, whether the model reads their unit, the prompt, before each answer.
        model_name: for people.
        resume: file that keeps the unfinished work, and from which it goes on.
        progress: called with (stage, fraction done).

    Raises:
        InputError: classes that do not match the model's outputs, a tokenizer without offsets, weights that are not finite, no
            frequent word, a checkpoint of another run, or too little memory.
    """
    settings, tell, clock = settings or DiagnoseSettings(), progress or silent, Clock()
    known, outputs, sample = prepare(model, tokenizer, corpus, settings, classes, mapping, prompted, tell)
    clock.lap("counting")
    corpus = sample.corpus
    with open_subject(known, outputs, sample, settings, tell) as opened:
        mark = fingerprint(*sample.identity, known.names, outputs, settings.measuring(), opened.digest)
        work = Work(settings.batch_size, settings.deletions, settings.seed, resume, mark, tell)
        _plan_work(work, opened.subject, len(sample.read), settings)
        measurements = _Measurements(opened, outputs, sample, work, settings, clock)
    tell("correlations", 0.99)
    out = measurements.conclude(settings)
    clock.lap("correlations")
    outputs = measurements.outputs
    return Diagnosis(
        name=corpus.name,
        model=model_name or known.family,
        classes=corpus.classes,
        documents={
            "all": len(corpus.labels),
            "read": len(sample.labels),
            "by class": dict(zip(corpus.classes, sample.counts.class_sizes.tolist(), strict=True)),
        },
        settings=settings.measuring(),
        reading={"family": known.family, **opened.facts, **measurements.facts(), "warning": outputs.warning},
        notes=[*sample.notes, *known.notes, *filter(None, [outputs.note]), *opened.notes, *measurements.odd()],
        seconds=clock.seconds,
        **out,
    )


def prepare(
    model: Any,
    tokenizer: Any,
    corpus: Corpus,
    settings: DiagnoseSettings,
    classes: Sequence[str] | None,
    mapping: Mapping[str, str] | None,
    prompted: bool,
    tell: Progress,
) -> tuple[RecognisedModel, Outputs, Sample]:
    """What kind of model this is, which of its outputs is which class, and the documents that it reads."""
    known = recognise(model, tokenizer, classes)
    part = corpus.test or corpus
    outputs = Outputs.match(part.classes, known.names, mapping, known.kind)
    if part.pairs is not None and (outputs.order is None or outputs.kind is not OutputKind.SINGLE):
        raise InputError(
            f"preference pairs need a model with a single output, a reward; this one has {len(known.names)}"
        )
    if known.answer is not None and (len(part.fields) == 2 or prompted):
        raise InputError("a function of texts reads one text at a time: join the two texts of each pair yourself")
    most = _documents_to_read(known, part, settings)
    tell(f"counting words; the model reads {min(most, len(part.labels)):,} documents", 0.0)
    splitter = _splitter(settings, known)
    sample = Sample.draw(corpus, splitter, settings.min_documents, most, settings.seed, prompted)
    return known, outputs, sample


def _documents_to_read(known: RecognisedModel, corpus: Corpus, settings: DiagnoseSettings) -> int:
    """How many documents the model reads at most: as asked, else as many as an estimate of time allows."""
    if settings.max_documents is not None:
        return settings.max_documents
    least = 1000 if settings.seconds is None else 200
    return max(least, int(_passes(known, corpus.texts, settings, settings.seconds or 300) / _PASSES))


def _passes(known: RecognisedModel, texts: Any, settings: DiagnoseSettings, seconds: float) -> float:
    """How many documents a model passes over in some seconds on a machine of _RATE operations a second.

    A pass over T pieces takes 2 P T operations, with P the weights that are not a table of words. Of a model that is no PyTorch
    module nothing is known: it is taken to be slow.
    """
    if known.module is None:
        return 10.0 * seconds
    table = known.module.get_input_embeddings().weight
    weights = sum(p.numel() for p in known.module.parameters() if p is not table)
    limit = settings.max_length or min(int(getattr(known.tokenizer, "model_max_length", 512)), 512)
    pieces = np.mean([min(len(text) / 4 + 2, limit) for text in texts.to_list()[:500]])
    return float(seconds * _RATE / (2.0 * weights * float(pieces) + 1e6))


def _plan_work(work: Work, subject: Subject, documents: int, settings: DiagnoseSettings) -> None:
    """Estimate of all work, in pieces."""
    pieces = float(subject.lengths.sum())
    each = pieces / max(documents, 1)
    passes = 3.0 + _CONFIRMING if subject.differentiable else 1.0 + _CONFIRMING
    work.pieces = passes * pieces + float(subject.word_lengths.sum())
    work.pieces += each * few(_PROBED, documents // 12) * (len(FORMS) + 1)
    if not subject.differentiable:
        held = np.bincount(subject.types, minlength=len(subject.word_lengths))
        work.pieces += each * float(np.minimum(held, settings.deletions).sum())
    if settings.untrained and subject.differentiable:
        work.pieces += 3 * each * few(UNTRAINED, documents // 4) + float(subject.word_lengths.sum())


class _Measurements:
    """Every pass through the model and through its untrained twin, and what they mean."""

    def __init__(
        self, opened: OpenModel, outputs: Outputs, sample: Sample, work: Work, settings: DiagnoseSettings, clock: Clock
    ) -> None:
        subject, classes = opened.subject, sample.corpus.classes
        arrays = read(subject, outputs, work)
        logits = by_document(arrays["logits"], subject.documents)
        outputs = outputs.check_order(logits, sample.labels, classes)
        offset = _decision_offset(np.asarray(outputs.answers(logits)), outputs, sample)
        measured = measure(subject, outputs, arrays, offset[subject.documents], work)
        frequent = np.flatnonzero(sample.frequent)
        kept = np.union1d(frequent, rare_candidates(measured, np.flatnonzero(~sample.frequent)))
        self.min_documents = settings.min_documents
        self.screened = int((~sample.frequent).sum())
        sample, subject, measured = sample.of_words(kept), subject.of_words(kept), measured.of_words(kept)
        rare = np.flatnonzero(~sample.frequent)
        if subject.differentiable:
            picked = np.array(list(most_confident(measured, subject.documents, sample.labels)), dtype=np.int64)
            if len(picked):
                subject.integrate(picked, measured.heads[picked], measured.effect, DRAWS)
        clock.lap("model")
        found = token_importance(sample.counts)
        labels = sample.labels[subject.documents]
        first = estimated_use(measured, labels)
        # in proportion to the documents, and a minute's worth of a fast model
        quick = int(min(_passes(opened.known, sample.texts, settings, 60), 6_000))
        budget = max(_CONFIRMING * len(sample.read), 400, quick)
        trials = confirm(subject, outputs, measured, first, found, rare, budget, work)
        clock.lap("confirming words")
        some = sample.order[: few(_PROBED, len(sample.read) // 12)]
        texts = sample.inputs.gather(some).to_list()
        self.forms = probe_forms(
            lambda given, stage: opened.predict(given, work, stage),
            opened.same,
            outputs,
            texts,
            offset[some],
            sample.corpus,
        )
        clock.lap("forms of documents")
        self.twin = None if opened.twin is None else opened.twin(outputs, work, kept)
        clock.lap("untrained model")
        self.outputs, self.sample, self.measured, self.found = outputs, sample, measured, found
        self.first, self.trials, self.rare, self.documents = first, trials, rare, subject.documents
        self.answers = by_document(measured.decisive, subject.documents)

    def facts(self) -> dict[str, Any]:
        """Of `Diagnosis.reading`."""
        special = self.measured.on_special
        return {
            "method": self.measured.method,
            "on_special": [] if special is None else special.tolist(),
            "windows": len(self.documents),
            "coverage": self._coverage(),
        }

    def odd(self) -> list[str]:
        """What is odd about the answers."""
        if np.isfinite(self.answers).all() and float(np.ptp(self.answers, axis=0).max()) > 1e-6:
            return []
        return ["the model predicts the same for every document, so nothing can be learned from its predictions"]

    def conclude(self, settings: DiagnoseSettings) -> dict[str, Any]:
        """What the measurements mean: the fields of `Diagnosis` that come from them."""
        sample, measured, trials, found = self.sample, self.measured, self.trials, self.found
        labels, groups = sample.labels[self.documents], sample.groups[sample.read]
        confirmed = confirmed_use(measured, trials, labels, self.documents)
        use = with_confirmed(self.first, confirmed, trials.words)
        alive = behaves(measured.answers, self.twin and self.twin[0].answers)
        uses = judge(measured, use, trials, found, needed_weights(sample.counts), alive)
        held = measured.windows[trials.chosen]
        removal = removal_effect(trials.lost, labels[held], self.documents[held])
        parts = agreement.parts_of(measured, groups[self.documents], sample.n_groups, *self._all_removed(), self.rare)
        evidence = agreement.gather(sample.counts, sample.groups, sample.n_groups)
        correlation = agreement.correlations(evidence, parts)
        untrained = {}
        if self.twin is not None:
            other, documents = self.twin
            nothing = np.empty(0, dtype=np.int64), np.empty((0, measured.value.shape[1]))
            theirs = agreement.parts_of(other, groups[documents], sample.n_groups, *nothing, self.rare)
            untrained = agreement.correlations(evidence, theirs)
        by_chance = agreement.shuffled(sample.counts, parts, settings.seed)
        luck = random_auc(sample.counts, sample.read, sample.partner, settings.seed)
        pairs = sample.partner is not None
        skill = skill_of(self.answers, sample.labels, groups, sample.n_groups, pairs, luck, removal)
        learning = learning_of(correlation, untrained, by_chance, skill, uses)
        if self.outputs.warning:
            learning = Learning.NOT_SHOWN
        if learning is not Learning.LEARNED:
            uses = without_claims(uses)
        return {
            "skill": skill,
            "agreement": {
                "model": correlation,
                "untrained": untrained,
                "shuffled": by_chance,
                "frequency": agreement.of_frequency(evidence, found.documents),
            },
            "tokens": _table(found, evidence, parts, measured.value, use, uses),
            "uses": uses,
            "forms": self.forms,
            "learning": learning,
            "passages": passages_of(measured, self.documents, sample, found.classes, uses),
        }

    def _coverage(self) -> dict[str, Any]:
        sample = self.sample
        frequent = int(sample.frequent.sum())
        return {
            "words": frequent,
            "rescued": [sample.words[s] for s in self.rare],
            "rare": self.screened - len(self.rare),
            "distinct": sample.distinct,
            "min_documents": self.min_documents,
        }

    def _all_removed(self) -> tuple[Ints, Floats]:
        """Pairs of which a word was removed, and what was lost: the confirmed ones, and of other words those measured this way."""
        measured, trials = self.measured, self.trials
        others = ~np.isin(measured.types[measured.chosen], trials.words)
        return np.r_[measured.chosen[others], trials.chosen], np.vstack([measured.lost[others], trials.lost])


def _splitter(settings: DiagnoseSettings, known: RecognisedModel) -> Tokenizer:
    if settings.tokenizer is None:
        return SPLITTER
    if settings.tokenizer != "model":
        return PieceTokenizer(settings.tokenizer)
    backend = getattr(known.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError("--tokenizer model needs a model with a tokenizer of its own: name a tokenizer.json instead")
    return PieceTokenizer(backend)


def _decision_offset(answers: Floats, outputs: Outputs, sample: Sample) -> Floats:
    """What a decision takes from each document's answer, shape (n,): its partner's answer in a preference pair; of another single
    output the value that as many answers exceed as documents are of the second class."""
    if sample.partner is not None:
        return np.asarray(answers[sample.partner, 0])
    if outputs.kind is not OutputKind.SINGLE:
        return np.zeros(len(answers))
    return np.full(len(answers), np.quantile(answers[:, 0], 1 - float(np.mean(sample.labels == 1))))


def _table(
    found: Importance,
    evidence: agreement.Evidence,
    parts: agreement.Parts,
    value: Floats,
    use: Use,
    uses: pl.DataFrame,
) -> pl.DataFrame:
    """Importance of each word and class with what the model does with it."""
    K = len(found.classes)

    def per_class(values: Floats) -> pl.Series:
        return pl.Series(both(values).T.ravel(), nan_to_null=True)

    def per_word(values: Floats) -> pl.Series:
        return pl.Series(np.tile(values, K), nan_to_null=True)

    shrunken = agreement.importance(*(part.sum(axis=0) for part in evidence))
    columns = {"importance": per_class(shrunken), "value": per_class(value)}
    if "effect" in parts:
        columns["gradient"] = per_class(agreement.mean(parts["effect"], parts["effects"]))
    columns["deletion"] = per_class(agreement.mean(parts["deletion"], parts["deletions"]))
    columns["deleted_from"] = per_word(parts["deletions"].sum(axis=0)[:, 0].astype(np.int64))
    if "attention" in parts:
        received = [agreement.mean(sums, parts["held"]) for sums in parts["attention"]]
        columns["attention"] = per_word(received[-1])
        columns |= {f"attention_layer_{i + 1}": per_word(layer) for i, layer in enumerate(received[:-1])}
        which = quadrants(found, np.nan_to_num(received[-1]))
        columns["quadrant"] = pl.Series(QUADRANTS).gather(np.tile(which, K))
    columns |= {name: per_word(values) for name, values in use.items() if name not in ("inputs", "mean", "use_error")}
    table = found.to_frame().with_columns(**columns)
    table = table.join(uses.select("token", "status"), on="token", how="left", maintain_order="left")
    return table.with_columns(polars.selectors.float().round_sig_figs(DIGITS))
