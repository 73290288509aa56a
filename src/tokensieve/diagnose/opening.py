"""A model on its documents, open for as long as it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl

from tokensieve.diagnose.effects.measuring import Measured, Work, measure, read
from tokensieve.diagnose.settings import DiagnoseSettings
from tokensieve.diagnose.subjects.classes import Outputs
from tokensieve.diagnose.subjects.documents import Sample
from tokensieve.diagnose.subjects.pieces import PieceSubject, Subject
from tokensieve.diagnose.subjects.recognise import RecognisedModel
from tokensieve.diagnose.subjects.texts import TextSubject
from tokensieve.diagnose.subjects.weights import check_weights, untrained_twin, weights_digest
from tokensieve.diagnose.subjects.windows import Frame, Windows
from tokensieve.errors import InputError
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Floats, Ints

UNTRAINED = 100  # documents that the untrained model reads at most: a quarter of those that the model reads


class OpenModel:
    """A model on its documents, ready to be measured.

    Attributes:
        subject, known: the model on its inputs, and what kind it is.
        predict: logits of any texts; (texts, what to call that) → shape (n, M).
        same: whether the model reads two texts as the same pieces.
        twin: measures an untrained model of the same shape; gives it with the document of each of its inputs. None without.
        facts: of `Diagnosis.reading`.
        digest: fingerprint of the weights.
        notes: what a reader should know.
    """

    def __init__(self, subject: Subject, known: RecognisedModel, **more: Any) -> None:
        self.subject, self.known = subject, known
        self.predict: Callable[[list[str], Work, str], Floats] = more["predict"]
        self.same: Callable[[str, str], bool] = more["same"]
        self.twin: Callable[[Outputs, Work, Ints], tuple[Measured, Ints]] | None = more.get("twin")
        self.facts: dict[str, Any] = more["facts"]
        self.digest: str = more.get("digest", "")
        self.notes: list[str] = more.get("notes", [])


def few(most: int, wanted: int) -> int:
    """So many documents, at least 24."""
    return min(most, max(wanted, 24))


@contextmanager
def open_subject(
    known: RecognisedModel, outputs: Outputs, sample: Sample, settings: DiagnoseSettings, tell: Progress
) -> Iterator[OpenModel]:
    """The model on the documents, for as long as it is measured."""
    if known.answer is None:
        with _open_pieces(known, outputs, sample, settings, tell) as opened:
            yield opened
        return
    answer = known.answer
    facts: dict[str, Any] = dict.fromkeys(("truncated_documents", "long_documents", "lost_pieces", "all_pieces"), 0)
    yield OpenModel(
        TextSubject(answer, outputs.width, sample.texts, sample.words, sample.splitter),
        known,
        predict=lambda texts, work, stage: answer(texts),
        same=lambda text, other: text == other,
        facts={"reads": None, "layers": 0, **facts},
    )


@contextmanager
def _open_pieces(
    known: RecognisedModel, outputs: Outputs, sample: Sample, settings: DiagnoseSettings, tell: Progress
) -> Iterator[OpenModel]:
    """A model that reads word pieces."""
    model, tokenizer = known.module or known.reader, known.tokenizer
    frame = (model.frame if hasattr(model, "frame") else Frame.of)(tokenizer, sample.paired)
    frame = replace(frame, prompted=sample.prompts is not None)
    limit, cut = frame.limit(model, tokenizer, settings.max_length), settings.long == "truncate"
    windows = Windows.encode(tokenizer, sample.inputs, sample.splitter, sample.words, frame, limit, cut, tell)
    facts = {
        "reads": None,
        "layers": 0,
        "truncated_documents": windows.long_documents if cut or sample.paired else 0,
        "long_documents": windows.long_documents,
        "lost_pieces": windows.lost_pieces,
        "all_pieces": windows.all_pieces,
    }

    @cache
    def ids(text: str) -> tuple[int, ...]:
        return tuple(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def predict(reader: Any, texts: list[str], work: Work, stage: str) -> Floats:
        given = pl.Series(texts, dtype=pl.String)
        windows = Windows.encode(tokenizer, given, sample.splitter, (), frame, limit, True, silent)
        subject = PieceSubject(reader, windows, outputs.width)
        logits: Floats = work.zeros(stage, logits=(len(texts), outputs.width))["logits"]

        def step(at: Ints) -> None:
            logits[at] = subject.look(at, None)

        work.batches(stage, subject.lengths, step)
        return logits

    def opened(reader: Any, **more: Any) -> OpenModel:
        subject = PieceSubject(reader, windows, outputs.width)
        given = {"predict": partial(predict, reader), "same": lambda text, other: ids(text) == ids(other)}
        return OpenModel(subject, known, **given, **({"facts": facts} | more))

    no_gradients = "no gradient reaches its word embeddings: effects are measured by removing words"
    if known.reader is not None:
        yield opened(known.reader, notes=[no_gradients])
        return
    from tokensieve.diagnose.subjects.reader import Reader, prepared

    check_weights(model, known.family)
    rows = model.get_input_embeddings().num_embeddings
    if int(windows.pieces.max()) >= rows:
        raise InputError(
            f"the tokenizer gives piece {int(windows.pieces.max())}, the model knows {rows:,}: they do not belong together"
        )
    pad = next((x for x in (tokenizer.pad_token_id, tokenizer.eos_token_id) if x is not None), 0)
    with prepared(model, pad):
        reader = Reader(model, outputs, frame)
        notes = [] if reader.differentiable else [no_gradients]
        if not reader.layers:
            why = "gives no attention weights" if reader.reads else "does not show from where it reads its prediction"
            notes.append(f"{known.family} {why}: attention is left out, everything else is measured")

        def twin(outputs: Outputs, work: Work, kept: Ints) -> tuple[Measured, Ints]:
            other = untrained_twin(model, settings.seed)
            with prepared(other, pad):
                inputs = windows.of_words(kept).of_documents(sample.order[: few(UNTRAINED, len(sample.read) // 4)])
                subject = PieceSubject(Reader(other, outputs, frame), inputs, outputs.width)
                arrays = read(subject, outputs, work, "untrained model")
                nothing = np.zeros(len(inputs))
                return measure(subject, outputs, arrays, nothing, work, "untrained model"), inputs.documents

        yield opened(
            reader,
            twin=twin if settings.untrained else None,
            facts=facts | {"reads": reader.reads, "layers": reader.layers},
            digest=weights_digest(model),
            notes=notes,
        )
