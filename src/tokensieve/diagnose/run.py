"""Compare what a trained text classifier uses with the words that predict the label."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors

from tokensieve.arrays import Floats, Ints
from tokensieve.checkpoint import fingerprint
from tokensieve.diagnose.diagnosis import Diagnosis
from tokensieve.diagnose.effects.confirming import Trials
from tokensieve.diagnose.effects.forms import FORMS, probe_forms
from tokensieve.diagnose.effects.measuring import Measured, Use, Work
from tokensieve.diagnose.judgement.agreement import Evidence, Learning, Parts, Skill
from tokensieve.diagnose.judgement.status import Status, judge
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.diagnose.subjects.documents import Sample
from tokensieve.diagnose.subjects.frame import Frame
from tokensieve.diagnose.subjects.libraries import check_weights, untrained_twin
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.diagnose.subjects.passages import SPLITTER
from tokensieve.diagnose.subjects.pieces import PieceSubject
from tokensieve.diagnose.subjects.recognise import RecognisedModel
from tokensieve.diagnose.subjects.texts import TextSubject
from tokensieve.diagnose.subjects.windows import Windows
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.model.attention import per_class
from tokensieve.progress import Clock, Progress, silent
from tokensieve.read.corpus import Corpus
from tokensieve.read.pairs import read_pairs
from tokensieve.read.reader import read_corpus
from tokensieve.task.agreement import DIGITS, QUADRANTS, Quadrant
from tokensieve.text.counts import Counts
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.tokenizers import Tokenizer

if TYPE_CHECKING:
    from tokensieve.diagnose.subjects.reader import Reader

_PROBED = (
    48,
    12,
)  # documents whose form is changed: at most so many, and this part of those that the model reads
_UNTRAINED = 64, 4  # documents that the untrained model reads, likewise
_SCREENED = 256  # documents in which a slow model's effects of all words choose those to confirm


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
        model, tokenizer: a Hugging Face model for sequence classification with its fast tokenizer; or anything else that
            `tokensieve.diagnose.subjects.recognise.RecognisedModel.of` accepts (tokenizer None for a model that reads texts).
        texts: n documents; or n pairs of texts that the model reads together; or, without labels, n pairs (chosen, rejected).
        labels: their labels; None for preference pairs.
        settings: `DiagnoseSettings()` if None.
        name: name of the source, for messages.
        options: those of `diagnose_corpus`, whose errors are raised, as for a text or label that cannot be used.
    """
    paired = len(texts) > 0 and not isinstance(texts[0], str) and len(texts[0]) == 2
    if not paired and labels is None:
        raise InputError(
            "without labels the documents must be pairs (chosen, rejected): pass labels, or pairs"
        )
    if not paired:
        corpus = read_corpus((texts, labels))
    else:
        names = ("chosen", "rejected") if labels is None else ("first", "second")
        sides = pl.DataFrame(
            {side: [str(pair[i]) for pair in texts] for i, side in enumerate(names)}
        )
        if labels is None:
            corpus = read_pairs(sides, pairs=names)
        else:
            corpus = read_corpus(
                sides.with_columns(label=pl.Series(labels)), text=list(names), label="label"
            )
    return diagnose_corpus(model, tokenizer, replace(corpus, name=name), settings, **options)


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
        model_name: for messages. resume: file in which unfinished work is saved, and from which it continues. progress: called with
        (stage, fraction done).

    Raises:
        InputError: classes that do not match the model's outputs, a tokenizer without offsets, weights that are not finite, no
            frequent word, a checkpoint of another run, or too little memory.
    """
    settings, progress, clock = settings or DiagnoseSettings(), progress or silent, Clock()
    with OpenModel.loaded(
        model, tokenizer, corpus, settings, mapping, prompted, classes, progress
    ) as opened:
        clock.lap("counting")
        sample, known = opened.sample, opened.known
        mark = fingerprint(
            *sample.identity, known.names, opened.outputs, settings.measuring(), opened.digest
        )
        work = Work(settings.batch_size, settings.deletions, settings.seed, resume, mark, progress)
        return _measure(opened, work, settings, model_name or known.family, clock)


class OpenModel:
    """A model on its documents, ready to be measured: `twin` measures an untrained model of the same shape on some words (or None),
    `facts` are those of `Diagnosis.reading`, `digest` is a fingerprint of the weights, `reader` that of a PyTorch model (or None).
    """

    def __init__(
        self,
        known: RecognisedModel,
        outputs: Outputs,
        sample: Sample,
        subject: PieceSubject | TextSubject,
    ) -> None:
        self.known, self.outputs, self.sample, self.subject, self.digest = (
            known,
            outputs,
            sample,
            subject,
            "",
        )
        self.twin: Callable[[Outputs, Work, Ints], Measured] | None = None
        self.facts: dict[str, Any] = {"reads": None, "layers": 0, **subject.lengths_read}
        self.notes: list[str] = []
        self.reader: Reader | None = None
        if known.answer is None and not subject.differentiable:
            self.notes.append(
                "gradients do not reach its word embeddings, so effects are measured by removing words"
            )

    @classmethod
    @contextmanager
    def loaded(
        cls,
        model: object,
        tokenizer: object,
        corpus: Corpus,
        settings: DiagnoseSettings,
        mapping: Mapping[str, str] | None,
        prompted: bool,
        classes: Sequence[str] | None = None,
        progress: Progress = silent,
    ) -> Iterator[OpenModel]:
        """The model on the documents, for as long as it is measured; arguments as of `diagnose_corpus`."""
        known, part = RecognisedModel.of(model, tokenizer, classes), corpus.test or corpus
        outputs = Outputs.match(part.classes, known.names, mapping, known.kind)
        most = settings.max_documents
        if most is None:
            # for each document one pass to read, two for effects, one to confirm, and about one for everything else
            passes = (
                _passes(known, part.texts.to_list()[:500], settings, settings.seconds or 300) / 5
            )
            most = max(1000 if settings.seconds is None else 200, int(passes))
        progress("counting words", 0.0)
        splitter: Tokenizer = SPLITTER
        if settings.tokenizer is not None:
            backend = getattr(known.tokenizer, "backend_tokenizer", None)
            if settings.tokenizer == "model" and backend is None:
                raise InputError(
                    "--tokenizer model needs a model with a tokenizer of its own: name a tokenizer.json instead"
                )
            splitter = PieceTokenizer(
                backend if settings.tokenizer == "model" else settings.tokenizer
            )
        sample = Sample(corpus, splitter, settings.min_documents, most, settings.seed, prompted)
        if sample.partner is not None and outputs.kind != "single":
            raise InputError(
                f"preference pairs need a model with a single output, a reward; this one has {len(known.names)}"
            )
        if known.answer is None:
            with _open_pieces(known, outputs, sample, settings, progress) as opened:
                yield opened
        elif sample.paired:
            raise InputError(
                "a function of texts reads one text at a time: join the two texts of each pair yourself"
            )
        else:
            subject = TextSubject(
                known.answer, outputs.width, sample.texts, sample.words, sample.splitter
            )
            yield cls(known, outputs, sample, subject)


@contextmanager
def _open_pieces(
    known: RecognisedModel,
    outputs: Outputs,
    sample: Sample,
    settings: DiagnoseSettings,
    progress: Progress,
) -> Iterator[OpenModel]:
    """A model that reads word pieces."""
    model, pieces = known.module or known.reader, known.tokenizer
    frame = (model.frame if hasattr(model, "frame") else Frame.of)(pieces, sample.paired)
    frame = replace(frame, prompted=sample.prompts is not None)
    limit, cut = frame.limit(model, pieces, settings.max_length), settings.long == "truncate"
    windows = Windows(
        pieces, sample.inputs, sample.splitter, sample.words, frame, limit, cut, progress
    )
    if known.reader is not None:
        yield OpenModel(known, outputs, sample, PieceSubject(known.reader, windows, outputs.width))
        return
    from tokensieve.diagnose.subjects.reader import Reader

    check_weights(model, known.family)
    rows, largest = model.get_input_embeddings().num_embeddings, int(windows.pieces.max())
    if largest >= rows:
        raise InputError(
            f"the tokenizer returns token {largest:,}, but the model has {rows:,} embeddings; use its own tokenizer"
        )
    pad = next((x for x in (pieces.pad_token_id, pieces.eos_token_id) if x is not None), 0)

    def twin(outputs: Outputs, work: Work, kept: Ints) -> Measured:
        other = untrained_twin(model, settings.seed)
        with Reader.prepared(other, pad):
            inputs = windows.of_words(kept).of_documents(
                sample.order[: _sample_size(_UNTRAINED, len(sample.read))]
            )
            subject = PieceSubject(Reader(other, outputs, frame), inputs, outputs.width)
            measured = Measured(subject, outputs, work, "untrained model")
            measured.read()
            measured.measure(outputs, np.zeros(len(inputs)), np.arange(len(inputs)))
            return measured

    with Reader.prepared(model, pad):
        reader = Reader(model, outputs, frame)
        opened = OpenModel(known, outputs, sample, PieceSubject(reader, windows, outputs.width))
        opened.twin, opened.reader = (twin if settings.untrained else None), reader
        opened.facts |= {"reads": reader.reads, "layers": reader.layers}
        opened.digest = reader.digest()
        if not reader.layers:
            why = (
                "gives no attention weights"
                if reader.reads
                else "does not reveal which position it predicts from"
            )
            opened.notes.append(
                f"{known.family} {why}, so attention is not measured; everything else is"
            )
        yield opened


def _sample_size(most: tuple[int, int], documents: int) -> int:
    """So many documents at most, or a part of all, at least 24."""
    return min(most[0], max(documents // most[1], 24))


def _passes(
    known: RecognisedModel, texts: Sequence[str], settings: DiagnoseSettings, seconds: float
) -> float:
    """How many documents a model passes over in some seconds at 50 billion operations a second: 2 P T for T pieces, with P the
    weights that are not a table of words. One that is no PyTorch module is taken to be slow."""
    if known.module is None:
        return 10.0 * seconds
    table = known.module.get_input_embeddings().weight
    weights = sum(p.numel() for p in known.module.parameters() if p is not table)
    limit = settings.max_length or min(int(getattr(known.tokenizer, "model_max_length", 512)), 512)
    pieces = np.mean([min(len(text) / 4 + 2, limit) for text in texts])
    return float(seconds * 5e10 / (2.0 * weights * float(pieces) + 1e6))


def _estimate_pieces(
    opened: OpenModel, settings: DiagnoseSettings, budget: int, screened: int
) -> float:
    """Pieces that all passes read; words are confirmed in `budget` passes, and screened in so many documents."""
    subject, n = opened.subject, len(opened.sample.read)
    passes, alone = (
        n + budget + _sample_size(_PROBED, n) * (len(FORMS) + 1),
        float(subject.word_lengths.sum()),
    )
    if not subject.differentiable:
        containing = np.bincount(subject.types, minlength=len(subject.word_lengths))
        passes += int(np.minimum(containing, settings.deletions).sum())
    else:
        passes += 2 * screened
        if settings.untrained:
            passes, alone = passes + 3 * _sample_size(_UNTRAINED, n), 2 * alone
    return passes * float(subject.lengths.sum()) / max(n, 1) + alone


def _measure(
    opened: OpenModel, work: Work, settings: DiagnoseSettings, model_name: str, clock: Clock
) -> Diagnosis:
    """Every pass through the model and through its untrained twin, and what they mean."""
    known, subject, sample, n = opened.known, opened.subject, opened.sample, len(opened.sample.read)
    minute = _passes(known, sample.texts.to_list()[:500], settings, 60)
    # words are confirmed in proportion to the documents, or for a minute by a fast model, which is screened in all documents
    budget = max(200 + n // 2, int(min(minute * min(n / 250, 1), 6_000)))
    screened = min(n, max(_SCREENED, int(minute / 3)))
    work.pieces = _estimate_pieces(opened, settings, budget, screened)
    work.longest = int(subject.lengths.max())
    minutes = work.pieces / float(subject.lengths.mean()) / minute
    if minutes > 1:
        work.progress(
            f"the model reads {n:,} documents; expect about {minutes:.0f} min on one core", 0.0
        )
    measured = Measured(subject, opened.outputs, work)
    measured.read()
    logits = measured.by_document(measured.logits)
    outputs = opened.outputs.check_order(logits, sample.labels, sample.corpus.classes)
    if opened.reader is not None:
        opened.reader.outputs = outputs  # its sign may have been turned
    # what a decision takes from each document's answer: its partner's answer in a preference pair; of another single output the
    # value that as many answers exceed as documents are of the second class
    answers, offset = np.asarray(outputs.answers(logits)), np.zeros(n)
    if sample.partner is not None:
        offset = answers[sample.partner, 0]
    elif outputs.kind == "single":
        offset = np.full(n, np.quantile(answers[:, 0], 1 - float(np.mean(sample.labels == 1))))
    inputs = np.flatnonzero(np.isin(subject.documents, sample.order[:screened]))
    measured.measure(outputs, offset[subject.documents], inputs)
    infrequent = np.flatnonzero(~sample.frequent)
    rescued, passes = Trials.rare_candidates(measured, infrequent, budget)
    kept = np.union1d(np.flatnonzero(sample.frequent), rescued)
    sample, measured = sample.of_words(kept), measured.of_words(kept)
    rare = np.flatnonzero(~sample.frequent)
    clock.lap("model")
    found, first = token_importance(sample.counts), measured.use(sample.labels[subject.documents])
    trials = Trials.confirm(measured, first, found, rare, budget - passes)
    clock.lap("confirming words")
    some = sample.order[: _sample_size(_PROBED, n)]
    texts = sample.inputs.gather(some).to_list()
    forms = probe_forms(measured, texts, offset[some], sample.corpus)
    clock.lap("formatting of documents")
    twin = None if opened.twin is None else opened.twin(outputs, work, kept)
    clock.lap("untrained model")
    work.progress("correlations", 0.99)
    judged = _judge(measured, twin, sample, found, first, trials, settings.seed)
    clock.lap("correlations")
    special, counts, classes = measured.on_special, sample.counts, sample.corpus.classes
    coverage = {"words": len(kept) - len(rare), "rescued": [sample.words[s] for s in rare]}
    coverage |= {"rare": len(infrequent) - len(rare), "distinct": sample.distinct}
    coverage["min_documents"] = settings.min_documents
    by_class = dict(zip(classes, counts.class_sizes.tolist(), strict=True))
    notes = [*sample.notes, *known.notes, *filter(None, [outputs.note]), *opened.notes]
    if not (
        np.isfinite(answers).all()
        and float(np.ptp(measured.by_document(measured.decisive), axis=0).max()) > 1e-6
    ):
        notes.append(
            "the model makes the same prediction for every document, so its predictions reveal nothing"
        )
    return Diagnosis(
        name=sample.corpus.name,
        model=model_name,
        classes=classes,
        documents={"all": len(sample.corpus.labels), "read": n, "by class": by_class},
        settings=settings.measuring(),
        reading={
            "family": known.family,
            **opened.facts,
            "method": measured.method,
            "on_special": [] if special is None else special.tolist(),
            "windows": len(subject.documents),
            "coverage": coverage,
            "warning": outputs.warning,
        },
        forms=forms,
        notes=notes,
        seconds=clock.seconds,
        **judged,
    )


def _judge(
    measured: Measured,
    twin: Measured | None,
    sample: Sample,
    found: Importance,
    first: Use,
    trials: Trials,
    seed: int,
) -> dict[str, Any]:
    """Interpret the measurements: the fields of `Diagnosis` computed from them."""
    documents, rare = measured.subject.documents, np.flatnonzero(~sample.frequent)
    labels, groups, pairs = (
        sample.labels[documents],
        sample.groups[sample.read],
        sample.partner is not None,
    )
    use = trials.use(measured, first, labels)
    uses = judge(
        measured, use, trials, found, _needed_weights(sample.counts), measured.answers_differ(twin)
    )
    # the words confirmed were removed; of others what was measured this way
    others = ~np.isin(measured.types[measured.chosen], trials.words)
    chosen, lost = (
        np.r_[measured.chosen[others], trials.chosen],
        np.vstack([measured.lost[others], trials.lost]),
    )
    known = np.isfinite(lost).all(axis=1) & ~np.isin(measured.types[chosen], rare)
    chosen, lost = chosen[known], lost[known]
    removals = np.bincount(measured.types[chosen], minlength=len(measured.value))
    evidence = Evidence(sample.counts, sample.groups, sample.n_groups)
    parts = evidence.parts(measured, groups[documents], chosen, lost, rare)
    correlation, untrained = evidence.correlations(parts), {}
    if twin is not None:
        nothing = np.empty(0, dtype=np.int64), np.empty((0, measured.value.shape[1]))
        theirs = evidence.parts(twin, groups[twin.subject.documents], *nothing, rare)
        untrained = evidence.correlations(theirs)
    by_chance = evidence.shuffled(parts, seed)
    luck = Skill.random_auc(sample.counts, sample.read, sample.partner, seed)
    answers = measured.by_document(measured.decisive)
    skill = Skill.of(answers, sample.labels, groups, pairs, luck, trials.removal(measured, labels))
    learning = Learning.of(correlation, untrained, by_chance, skill, uses)
    if measured.outputs.warning:
        learning = Learning.NOT_SHOWN
    if learning is not Learning.LEARNED:  # then nothing is said of what a word is used for
        used = pl.col("status") != str(Status.NOT_SHOWN)
        uses = uses.with_columns(
            status=pl.when(used).then(pl.lit(str(Status.OTHER))).otherwise("status")
        )
    agreement = {"model": correlation, "untrained": untrained, "shuffled": by_chance}
    unsupported = uses.filter(pl.col("status") == str(Status.UNSUPPORTED))["token"][:3].to_list()
    return {
        "skill": skill,
        "agreement": agreement | {"frequency": evidence.of_frequency(found.documents)},
        "tokens": _table(found, evidence, parts, measured.value, removals, use, uses),
        "uses": uses,
        "learning": learning,
        "passages": measured.passages(sample, unsupported),
    }


def _needed_weights(counts: Counts) -> Floats:
    """Weights of a logistic regression on the presence of words, in log-odds towards each class, shape (|S|, K)."""
    from sklearn.linear_model import LogisticRegression

    x, K = counts.matrix.copy(), counts.n_classes
    x.data = np.ones_like(x.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rough answer is enough here
        weights = LogisticRegression(max_iter=200).fit(x, counts.labels).coef_
    if K == 2:
        return np.column_stack([-weights[0], weights[0]])
    out = np.zeros((counts.n_types, K))
    out[:, np.unique(counts.labels)] = (weights - weights.mean(axis=0)).T
    return out


def _table(
    found: Importance,
    evidence: Evidence,
    parts: Parts,
    value: Floats,
    removals: Ints,
    use: Use,
    uses: pl.DataFrame,
) -> pl.DataFrame:
    """Importance of each word and class with what the model does with it."""

    def column(values: Floats) -> pl.Series:
        """A row for each class and word, of values for each word, or for each and class."""
        wide = np.tile(values, (len(found.classes), 1)) if values.ndim == 1 else per_class(values).T
        return pl.Series(wide.ravel(), nan_to_null=True)

    means = {name: whole for name, (whole, _) in parts.items()} | {"value": value}
    layers = {name: means.pop(name) for name in list(means) if "layer" in name}
    columns = {"importance": column(evidence.whole)} | {
        name: column(x) for name, x in means.items()
    }
    columns["deleted_from"] = pl.Series(np.tile(removals, len(found.classes)))
    if "attention" in means:
        columns["attention"] = columns.pop("attention")
        columns |= {name: column(x) for name, x in layers.items()}
        which = Quadrant.places(found, np.nan_to_num(means["attention"]))
        columns["quadrant"] = pl.Series(QUADRANTS).gather(np.tile(which, len(found.classes)))
    unseen = "inputs", "mean", "inserted", "inserted_low"
    columns |= {name: column(values) for name, values in use.items() if name not in unseen}
    table = found.to_frame().with_columns(**columns)
    table = table.join(
        uses.select("token", "status"), on="token", how="left", maintain_order="left"
    )
    return table.with_columns(polars.selectors.float().round_sig_figs(DIGITS))
