"""A trained text classifier against the words that carry the label: measured, correlated, judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors

from tokensieve import __version__
from tokensieve.auditing.agreement import DIGITS, QUADRANTS, quadrants
from tokensieve.checkpoint import fingerprint
from tokensieve.diagnose.agreement import (
    Evidence,
    Parts,
    correlations,
    gather,
    importance,
    mean,
    of_frequency,
    parts_of,
    shuffled,
)
from tokensieve.diagnose.classes import Matched, match_classes, settle
from tokensieve.diagnose.confirming import Confirmed, confirm, confirmed_use, with_confirmed
from tokensieve.diagnose.encoding import SPLITTER
from tokensieve.diagnose.judging import Status, judged, uses_frame
from tokensieve.diagnose.loading import check_weights, untrained_twin, weights_digest
from tokensieve.diagnose.marking import DRAWS, certain, mark_documents
from tokensieve.diagnose.measuring import Checkpoint, Measured, Subject, Work, measure, read
from tokensieve.diagnose.models import Model, recognise
from tokensieve.diagnose.outputs import Kind, Outputs
from tokensieve.diagnose.result import DiagnoseSettings, Diagnosis
from tokensieve.diagnose.sample import Documents, Sample, documents_from, documents_of, draw_sample
from tokensieve.diagnose.texts import TextSubject
from tokensieve.diagnose.use import Use, estimated
from tokensieve.diagnose.verdict import (
    Learning,
    accuse_nobody,
    behaves,
    effect_of,
    learning_of,
    random_auc,
    sentences,
    skill_of,
)
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.model.decision import both
from tokensieve.progress import Clock, Progress, silent
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.tokenizers import PieceTokenizer, Tokenizer

UNTRAINED = 100  # documents that the untrained model reads
NO_GRADIENTS = "no gradient reaches its word embeddings: effects are measured by leaving words out"
USE_COLUMNS = ("use", "use_low", "use_high", "share", "flipped", "concentration", "helps", "helps_low", "helps_high")


def diagnose(
    model: Any, tokenizer: Any, texts: Sequence[Any], labels: Sequence[Any] | None = None,
    settings: DiagnoseSettings | None = None, *, classes: Sequence[str] | None = None, mapping: Mapping[str, str] | None = None,
    name: str = "the documents", resume: Path | None = None, progress: Progress | None = None,
) -> Diagnosis:  # fmt: skip
    """Diagnose a text classifier, or a reward model, on documents that it was not trained on.

    Args:
        model: a Hugging Face model for sequence classification, or any other that `tokensieve.diagnose.models.recognise` knows.
        tokenizer: its fast tokenizer; None for a model that reads texts.
        texts: n documents; or n pairs of texts that the model reads together; or, without labels, n pairs (chosen, rejected).
        labels: their labels; None for preference pairs.
        settings: `DiagnoseSettings()` if None.
        classes: of a function, the labels of its columns in order.
        mapping: class → name or number of the model's output, where names do not tell.
        name: of the source, for people.
        resume: file that keeps the unfinished work, and from which it goes on.
        progress: called with (stage, share done).

    Raises:
        InputError: as `diagnose_corpus`, or a text or label cannot be used.
    """
    return diagnose_corpus(
        model, tokenizer, documents_of(texts, labels, name), settings, classes=classes, mapping=mapping, resume=resume,
        progress=progress,
    )  # fmt: skip


def diagnose_corpus(
    model: Any, tokenizer: Any, corpus: Corpus | Documents, settings: DiagnoseSettings | None = None, *,
    classes: Sequence[str] | None = None, mapping: Mapping[str, str] | None = None, model_name: str = "",
    resume: Path | None = None, progress: Progress | None = None, seconds: dict[str, float] | None = None,
) -> Diagnosis:  # fmt: skip
    """As `diagnose`, on a corpus; of one with a test part that part is used, the other may have trained the model.

    Args:
        model, tokenizer, settings, classes, mapping, resume, progress: as `diagnose`.
        corpus: the documents.
        model_name: for people.
        seconds: times of earlier stages, to be reported with the others.

    Raises:
        InputError: classes that do not match the model's outputs, a tokenizer without offsets, weights that are not finite, no
            frequent word, a checkpoint of another run, or too little memory.
    """
    settings, tell, clock = settings or DiagnoseSettings(), progress or silent, Clock(seconds)
    settings.check()
    known = recognise(model, tokenizer, classes)
    documents = corpus if isinstance(corpus, Documents) else documents_from(corpus)
    matched = match_classes(documents.corpus.classes, known.names, mapping, known.kind)
    if documents.partner is not None and (matched.outputs is None or matched.outputs.kind is not Kind.SINGLE):
        raise InputError(
            f"preference pairs need a model with a single output, a reward; this one has {len(known.names)}"
        )
    splitter = _splitter(settings, known)
    sample = draw_sample(documents, splitter, settings.min_documents, settings.max_documents, settings.seed)
    tell("counting words", 0.0)
    found = token_importance(sample.counts)
    clock.lap("counting")
    run = _run(known, matched, documents, sample, found, (settings, resume, tell, clock))
    tell("correlations", 0.0)
    notes = [*documents.notes, *known.notes, *filter(None, [run.matched.note]), *sample.notes, *run.facts.notes]
    out = _conclude(run, sample, found, settings, documents.partner is not None)
    clock.lap("correlations")
    corpus = documents.corpus
    return Diagnosis(
        name=corpus.name, model=model_name or known.family, family=known.family, classes=corpus.classes, version=__version__,
        seed=settings.seed, settings=asdict(settings), documents={"all": len(corpus.labels), "read": len(sample.labels)},
        class_documents=dict(zip(corpus.classes, sample.counts.class_sizes.tolist(), strict=True)),
        notes=[*notes, *_odd(run.answers)], seconds=clock.seconds, **out,
    )  # fmt: skip


@dataclass(frozen=True)
class _Facts:
    """What is known of a model and its inputs beside the measurement."""

    digest: str = ""
    reads: str | None = None
    layers: int = 0
    truncated: int = 0
    long: int = 0
    lost: int = 0
    pieces: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Run:
    """All that was measured: of the model, of the words left out once more, and of the untrained twin.

    Attributes:
        answers: of each document, less their offset, shape (n, H).
        documents: of each input, shape (W,).
        first: use of all words by their effects.
        seen: the words looked at again.
        twin: of the untrained model, and its groups of inputs; None without one.
    """

    facts: _Facts
    matched: Matched
    measured: Measured
    answers: Floats
    documents: Ints
    first: Use
    seen: Confirmed
    twin: tuple[Measured, Ints] | None


def _run(
    known: Model, matched: Matched, documents: Documents, sample: Sample, found: Importance,
    how: tuple[DiagnoseSettings, Path | None, Progress, Clock],
) -> _Run:  # fmt: skip
    """Every pass through the model, and through its untrained twin."""
    settings, resume, tell, clock = how
    M = len(known.names)
    asked = matched.outputs or Outputs(tuple(range(M)), M, M, known.kind)
    with _subjects(known, asked, sample, settings, documents, tell) as (subject, twin, facts):
        mark = fingerprint(*sample.identity(), known.names, asked, asdict(settings), facts.digest)
        work = Work(settings.batch_size, settings.deletions, settings.seed, Checkpoint(resume, mark), tell)
        arrays = read(subject, asked, work)
        logits = by_document(arrays["logits"], subject.documents)
        matched = settle(matched, logits, sample.labels, documents.corpus.classes)
        outputs = matched.outputs
        assert outputs is not None
        offset = _offset(np.asarray(outputs.answers(logits)), outputs, sample)
        measured = measure(subject, outputs, arrays, offset[subject.documents], work)
        if subject.differentiable:
            picked = np.array(list(certain(measured, subject.documents, sample.labels)), dtype=np.int64)
            if len(picked):
                subject.integrate(picked, measured.heads[picked], measured.effect, DRAWS)
        clock.lap("model")
        first = estimated(measured, sample.labels[subject.documents])
        seen = confirm(subject, outputs, measured, first, found, work)
        clock.lap("confirming words")
        other = twin(outputs, work) if twin is not None else None
        clock.lap("untrained model")
    answers = by_document(measured.decisive, subject.documents)
    return _Run(facts, matched, measured, answers, subject.documents, first, seen, other)


def _conclude(
    run: _Run, sample: Sample, found: Importance, settings: DiagnoseSettings, pairs: bool
) -> dict[str, Any]:  # fmt: skip
    """What the measurements mean: the fields of `Diagnosis` that come from them."""
    measured, groups, facts = run.measured, sample.groups[sample.read], run.facts
    on = sample.labels[run.documents]
    use = with_confirmed(run.first, confirmed_use(measured, run.seen, on), run.seen.words)
    verdict = judged(measured, use, run.seen, found)
    if not behaves(measured.answers, run.twin and run.twin[0].answers):
        verdict = replace(verdict, status=np.full(len(run.seen.words), Status.NOT_SHOWN, dtype=object))
    uses = uses_frame(use, verdict, found)
    held = measured.pairs.windows[run.seen.chosen]
    effect = effect_of(run.seen.lost, on[held], run.documents[held])
    parts = parts_of(measured, groups[run.documents], sample.n_groups, *_all_left_out(run))
    evidence = gather(sample.counts, sample.groups, sample.n_groups)
    correlation = correlations(evidence, parts)
    untrained = {}
    if run.twin is not None:
        empty = np.empty(0, dtype=np.int64), np.empty((0, parts.value.shape[1]))
        untrained = correlations(evidence, parts_of(run.twin[0], groups[run.twin[1]], sample.n_groups, *empty))
    by_chance = shuffled(sample.counts, parts, settings.seed)
    luck = random_auc(sample.counts, sample.read, sample.partner, settings.seed)
    skill = skill_of(run.answers, sample.labels, groups, sample.n_groups, pairs, luck)
    learning = learning_of(correlation, untrained, by_chance, skill, effect, uses)
    if learning is not Learning.LEARNED:
        uses = accuse_nobody(uses)
    return {
        "skill": skill, "effect": effect, "method": measured.method, "reads": facts.reads, "layers": facts.layers,
        "on_special": [] if measured.on_special is None else measured.on_special.tolist(),
        "truncated_documents": facts.truncated, "long_documents": facts.long, "windows": len(run.documents),
        "lost_pieces": facts.lost, "all_pieces": facts.pieces, "correlation": correlation, "untrained": untrained,
        "shuffled_labels": by_chance, "frequency": of_frequency(evidence, found.documents),
        "tokens": _table(found, evidence, parts, use, uses), "uses": uses, "learning": learning,
        "verdict": sentences(learning, correlation, untrained, by_chance, skill, effect, uses),
        "marked": mark_documents(measured, run.documents, sample, found.classes, uses), "parts": parts,
    }  # fmt: skip


def _splitter(settings: DiagnoseSettings, known: Model) -> Tokenizer:
    if settings.tokenizer is None:
        return SPLITTER
    if settings.tokenizer != "model":
        return PieceTokenizer(settings.tokenizer)
    backend = getattr(known.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError("--tokenizer model needs a model with a tokenizer of its own: name a tokenizer.json instead")
    return PieceTokenizer(backend)


Twin = Callable[[Outputs, Work], tuple[Measured, Ints]]


@contextmanager
def _subjects(
    known: Model, outputs: Outputs, sample: Sample, settings: DiagnoseSettings, documents: Documents, tell: Progress
) -> Iterator[tuple[Subject, Twin | None, _Facts]]:  # fmt: skip
    """The model on the documents, how to measure its untrained twin (or None), and what is known of both."""
    if known.answer is not None:
        if documents.paired:
            raise InputError("a function of texts reads one text at a time: join the two texts of each pair yourself")
        yield TextSubject(known.answer, outputs.width, sample.texts, sample.words, sample.splitter), None, _Facts()
        return
    from tokensieve.diagnose.encoding import encode, frame_of, length_limit
    from tokensieve.diagnose.pieces import PieceSubject

    model, tokenizer = known.module or known.reader, known.tokenizer
    frame = (model.frame if hasattr(model, "frame") else frame_of)(tokenizer, documents.paired)
    frame = replace(frame, prompted=documents.prompts is not None)
    limit, cut = length_limit(model, tokenizer, settings.max_length, frame), settings.long == "truncate"
    windows = encode(tokenizer, sample.inputs, sample.splitter, sample.words, frame, limit, cut, tell)
    facts = _Facts(
        truncated=windows.long_documents if cut or documents.paired else 0, long=windows.long_documents, lost=windows.lost_pieces,
        pieces=windows.all_pieces,
    )  # fmt: skip
    if known.reader is not None:
        yield PieceSubject(known.reader, windows, outputs.width), None, replace(facts, notes=(NO_GRADIENTS,))
        return
    from tokensieve.diagnose.reading import Reader, prepared

    check_weights(model, known.family)
    rows = model.get_input_embeddings().num_embeddings
    if int(windows.pieces.max()) >= rows:
        raise InputError(
            f"the tokenizer gives piece {int(windows.pieces.max())}, the model knows {rows:,}: they do not belong together"
        )
    pad = next((x for x in (tokenizer.pad_token_id, tokenizer.eos_token_id) if x is not None), 0)
    with prepared(model, pad):
        reader = Reader(model, outputs, frame)
        notes: tuple[str, ...] = () if reader.differentiable else (NO_GRADIENTS,)
        if not reader.layers:
            why = "gives no attention weights" if reader.reads else "does not show from where it reads its answer"
            notes += (f"{known.family} {why}: attention is left out, everything else is measured",)
        facts = replace(facts, digest=weights_digest(model), reads=reader.reads, layers=reader.layers, notes=notes)

        def twin(outputs: Outputs, work: Work) -> tuple[Measured, Ints]:
            other = untrained_twin(model, settings.seed)
            with prepared(other, pad):
                few = windows.some(sample.few(UNTRAINED))
                subject = PieceSubject(Reader(other, outputs, frame), few, outputs.width)
                work = replace(work, name="untrained model")
                arrays = read(subject, outputs, work)
                return measure(subject, outputs, arrays, np.zeros(len(few)), work), few.documents

        yield PieceSubject(reader, windows, outputs.width), twin if settings.untrained else None, facts


def by_document(values: Floats, documents: Ints) -> Floats:
    """Mean over each document's windows, shape (n, …)."""
    sizes = np.bincount(documents)
    return np.column_stack([np.bincount(documents, column) / sizes for column in values.T])


def _offset(answers: Floats, outputs: Outputs, sample: Sample) -> Floats:
    """What a decision takes from each document's answer, shape (n,): its partner's answer in a preference pair; of another single
    output the value that as many answers exceed as documents are of the second class."""
    if sample.partner is not None:
        return np.asarray(answers[sample.partner, 0])
    if outputs.kind is not Kind.SINGLE:
        return np.zeros(len(answers))
    return np.full(len(answers), np.quantile(answers[:, 0], 1 - float(np.mean(sample.labels == 1))))


def _all_left_out(run: _Run) -> tuple[Ints, Floats]:
    """Pairs of which a word was left out, and what was lost: the confirmed ones, and of other words those measured this way."""
    others = ~np.isin(run.measured.pairs.types[run.measured.chosen], run.seen.words)
    return np.r_[run.measured.chosen[others], run.seen.chosen], np.vstack([run.measured.lost[others], run.seen.lost])


def _odd(answers: Floats) -> list[str]:
    if np.isfinite(answers).all() and float(np.ptp(answers, axis=0).max()) > 1e-6:
        return []
    return ["the model gives every document the same answer, so nothing can be learnt from how it answers"]


def _table(found: Importance, evidence: Evidence, parts: Parts, use: Use, uses: pl.DataFrame) -> pl.DataFrame:
    """Importance of each word and class with what the model does with it."""
    K = len(found.classes)

    def per_class(values: Floats) -> pl.Series:
        return pl.Series(both(values).T.ravel(), nan_to_null=True)

    def per_word(values: Floats) -> pl.Series:
        return pl.Series(np.tile(values, K), nan_to_null=True)

    shrunken = importance(*(part.sum(axis=0) for part in evidence))
    columns = {"importance": per_class(shrunken), "value": per_class(parts.value)}
    if parts.effect is not None:
        columns["gradient"] = per_class(mean(parts.effect, parts.effects))
    columns["deletion"] = per_class(mean(parts.deletion, parts.deletions))
    columns["deleted_from"] = per_word(parts.deletions.sum(axis=0)[:, 0].astype(np.int64))
    if parts.attention is not None:
        received = [mean(sums, parts.held) for sums in parts.attention]
        columns["attention"] = per_word(received[-1])
        columns |= {f"attention_layer_{i + 1}": per_word(layer) for i, layer in enumerate(received[:-1])}
        which = quadrants(found, received[-1])
        columns["quadrant"] = pl.Series(QUADRANTS).gather(np.tile(which, K))
    columns |= {name: per_word(getattr(use, name)) for name in USE_COLUMNS}
    table = found.to_frame().with_columns(**columns)
    table = table.join(uses.select("token", "status"), on="token", how="left", maintain_order="left")
    return table.with_columns(polars.selectors.float().round_sig_figs(DIGITS))
