"""A model on its documents, ready to be measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.diagnose.effects.measuring import Measured, Subject
from tokensieve.diagnose.effects.work import Work
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
from tokensieve.progress import Progress, silent
from tokensieve.read.corpus import Corpus
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.tokenizers import Tokenizer

USUAL_DOCUMENTS = 1_000  # or as many as the model reads in DEFAULT_SECONDS, if that is more
DEFAULT_SECONDS = 300
LEAST_DOCUMENTS = 200  # however few seconds are asked for
# one to read, two for effects, one to confirm, and about one for everything else
PASSES_PER_DOCUMENT = 5
OPERATIONS_PER_SECOND = 5e10  # about one core
OPERATIONS_PER_INPUT = 1e6  # besides the weights: the library's own work
PASSES_PER_SECOND = 10.0  # of a model that is no PyTorch module: taken to be slow
CHARACTERS_PER_PIECE = 4  # of English text; only for the estimate
MAX_ESTIMATED_PIECES = 512  # of one input
N_ESTIMATED_TEXTS = 500
# documents that the untrained model reads: at most so many, and one in so many of those read
MAX_UNTRAINED = 64
UNTRAINED_FRACTION = 4
FEWEST_DOCUMENTS = 24  # of any such sample


@dataclass
class OpenModel:
    """A model on its documents, ready to be measured.

    Attributes:
        known: the model as it was recognised.
        outputs: how its outputs match the classes.
        sample: the documents.
        subject: the model on them.
        twin: measures an untrained model of the same shape on some words; None without.
        facts: those of `Diagnosis.reading`.
        notes: what a reader should know.
        digest: fingerprint of the weights.
        set_outputs: says how logits become answers, once the order is checked.
    """

    recognised: RecognisedModel
    outputs: Outputs
    sample: Sample
    subject: Subject
    twin: Callable[[Outputs, Work, Ints], Measured] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    digest: str = ""
    set_outputs: Callable[[Outputs], None] = lambda _: None


@contextmanager
def open_model(
    model: object,
    tokenizer: object,
    corpus: Corpus,
    settings: DiagnoseSettings,
    mapping: Mapping[str, str] | None,
    prompted: bool,
    classes: Sequence[str] | None = None,
    progress: Progress = silent,
) -> Iterator[OpenModel]:
    """The model on the documents, for as long as it is measured; arguments as `diagnose_corpus`."""
    recognised = RecognisedModel.of(model, tokenizer, classes)
    part = corpus.test or corpus
    outputs = Outputs.match(part.classes, recognised.names, mapping, recognised.kind)
    max_documents = settings.max_documents
    if max_documents is None:
        max_documents = _affordable_documents(recognised, part, settings)
    progress("counting words", 0.0)
    splitter = _splitter(recognised, settings)
    sample = Sample(
        corpus, splitter, settings.min_documents, max_documents, settings.seed, prompted
    )
    if sample.partner is not None and outputs.kind != "single":
        raise InputError(
            "preference pairs need a model with a single output, a reward; "
            f"this one has {len(recognised.names)}"
        )
    if recognised.answer is None:
        with _open_pieces(recognised, outputs, sample, settings, progress) as opened:
            opened.facts = {"reads": None, "layers": 0, **opened.facts}
            yield opened
        return
    if sample.paired:
        raise InputError(
            "a function of texts reads one text at a time: join the two texts of each pair yourself"
        )
    subject = TextSubject(
        recognised.answer, outputs.width, sample.texts, sample.words, sample.splitter
    )
    facts = {"reads": None, "layers": 0, **subject.lengths_read}
    yield OpenModel(recognised, outputs, sample, subject, facts=facts)


def _affordable_documents(
    recognised: RecognisedModel, corpus: Corpus, settings: DiagnoseSettings
) -> int:
    """How many documents the model reads if --max-documents does not say."""
    texts = corpus.texts.to_list()[:N_ESTIMATED_TEXTS]
    seconds = settings.seconds or DEFAULT_SECONDS
    n_affordable = int(
        affordable_passes(recognised, texts, settings, seconds) / PASSES_PER_DOCUMENT
    )
    min_affordable = USUAL_DOCUMENTS if settings.seconds is None else LEAST_DOCUMENTS
    return max(min_affordable, n_affordable)


def _splitter(recognised: RecognisedModel, settings: DiagnoseSettings) -> Tokenizer:
    """What counts as a word."""
    if settings.tokenizer is None:
        return SPLITTER
    if settings.tokenizer != "model":
        return PieceTokenizer(settings.tokenizer)
    backend = getattr(recognised.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            "--tokenizer model needs a model with a tokenizer of its own: "
            "name a tokenizer.json instead"
        )
    return PieceTokenizer(backend)


@contextmanager
def _open_pieces(
    recognised: RecognisedModel,
    outputs: Outputs,
    sample: Sample,
    settings: DiagnoseSettings,
    progress: Progress,
) -> Iterator[OpenModel]:
    """A model that reads word pieces."""
    model = recognised.module or recognised.reader
    make_frame = model.frame if hasattr(model, "frame") else Frame.of
    frame = make_frame(recognised.tokenizer, sample.paired)
    frame = replace(frame, prompted=sample.prompts is not None)
    limit = frame.limit(model, recognised.tokenizer, settings.max_length)
    windows = Windows(
        recognised.tokenizer,
        sample.inputs,
        sample.splitter,
        sample.words,
        frame,
        limit,
        settings.long == "truncate",
        progress,
    )
    if recognised.reader is not None:
        subject = PieceSubject(recognised.reader, windows, outputs.width)
        yield _opened(recognised, outputs, sample, subject)
        return
    with _open_transformer(recognised, outputs, sample, settings, windows, frame) as opened:
        yield opened


def _opened(
    recognised: RecognisedModel, outputs: Outputs, sample: Sample, subject: PieceSubject
) -> OpenModel:
    notes = []
    if not subject.differentiable:
        notes.append(
            "gradients do not reach its word embeddings, so effects are measured by removing words"
        )
    return OpenModel(
        recognised, outputs, sample, subject, facts=dict(subject.lengths_read), notes=notes
    )


@contextmanager
def _open_transformer(
    recognised: RecognisedModel,
    outputs: Outputs,
    sample: Sample,
    settings: DiagnoseSettings,
    windows: Windows,
    frame: Frame,
) -> Iterator[OpenModel]:
    """A PyTorch model of the library `transformers`."""
    from tokensieve.diagnose.subjects.reader import Reader

    model = recognised.module
    check_weights(model, recognised.family)
    _check_pieces(model, windows)
    pad = recognised.tokenizer.pad_token_id
    if pad is None:
        pad = recognised.tokenizer.eos_token_id
    pad = pad or 0

    def measure_twin(outputs: Outputs, work: Work, kept: Ints) -> Measured:
        untrained = untrained_twin(model, settings.seed)
        n = sample_size(MAX_UNTRAINED, UNTRAINED_FRACTION, len(sample.read))
        with Reader.prepared(untrained, pad):
            inputs = windows.of_words(kept).of_documents(sample.order[:n])
            subject = PieceSubject(Reader(untrained, outputs, frame), inputs, outputs.width)
            measured = Measured(subject, outputs, work, "untrained model")
            measured.read()
            measured.set_answers(outputs, np.zeros(len(inputs)))
            measured.screen(np.arange(len(inputs)))
            return measured

    with Reader.prepared(model, pad):
        reader = Reader(model, outputs, frame)
        opened = _opened(recognised, outputs, sample, PieceSubject(reader, windows, outputs.width))
        opened.twin = measure_twin if settings.untrained else None
        opened.facts |= {"reads": reader.reads, "layers": reader.layers}
        opened.facts["substitute"] = "padding" if reader.reads_text else "cut"
        opened.digest = reader.digest()

        def set_outputs(outputs: Outputs) -> None:
            reader.outputs = outputs

        opened.set_outputs = set_outputs
        if not reader.layers:
            why = "does not reveal which position it predicts from"
            if reader.reads:
                why = "gives no attention weights"
            opened.notes.append(
                f"{recognised.family} {why}, so attention is not measured; everything else is"
            )
        yield opened


def _check_pieces(model: Any, windows: Windows) -> None:
    """Raise an InputError if the tokenizer returns tokens that the model does not have."""
    n_embeddings = model.get_input_embeddings().weight.shape[0]
    largest = int(windows.pieces.max())
    if largest >= n_embeddings:
        raise InputError(
            f"the tokenizer returns token {largest:,}, but the model has {n_embeddings:,} "
            "embeddings; use its own tokenizer"
        )


def sample_size(max_documents: int, one_in: int, n_documents: int) -> int:
    """So many documents at most, or one in so many of all, but not fewer than FEWEST_DOCUMENTS."""
    return min(max_documents, max(n_documents // one_in, FEWEST_DOCUMENTS))


def affordable_passes(
    recognised: RecognisedModel, texts: Sequence[str], settings: DiagnoseSettings, seconds: float
) -> float:
    """How many documents a model reads in some seconds.

    A pass takes 2 P T operations for T pieces, with P the weights that are not a table of words.
    """
    if recognised.module is None:
        return PASSES_PER_SECOND * seconds
    table = recognised.module.get_input_embeddings().weight
    n_weights = sum(p.numel() for p in recognised.module.parameters() if p is not table)
    longest = getattr(recognised.tokenizer, "model_max_length", MAX_ESTIMATED_PIECES)
    limit = settings.max_length or min(int(longest), MAX_ESTIMATED_PIECES)
    pieces = np.mean([min(len(text) / CHARACTERS_PER_PIECE + 2, limit) for text in texts])
    operations = 2.0 * n_weights * float(pieces) + OPERATIONS_PER_INPUT
    return float(seconds * OPERATIONS_PER_SECOND / operations)
