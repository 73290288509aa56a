"""A transformer's predictions for any texts, such as copies in which a mark was put or removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

from tokensieve.arrays import Floats
from tokensieve.auditing.broken_link import ClassNames
from tokensieve.diagnose.subjects.loading import load
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.diagnose.subjects.recognise import RecognisedModel
from tokensieve.errors import InputError
from tokensieve.model.attention import decide
from tokensieve.read.corpus import Corpus

BATCH = 32  # texts; those of a batch are padded to the longest
# where neither model nor tokenizer names a limit: what most encoders read
USUAL_PIECES = 512


def text_classifier(source: str, corpus: Corpus) -> Callable[[pl.Series], ClassNames]:
    """What a transformers classifier predicts, with its outputs matched to the classes of a corpus.

    Long texts are cut where the model's input ends.

    Args:
        source: folder of the model.
        corpus: labelled documents, by which the order of the outputs is checked.

    Raises:
        InputError: the folder holds no such model, or its outputs do not match the classes.
    """
    model, tokenizer = load(source)
    recognised = RecognisedModel.of(model, tokenizer, None)
    if recognised.module is None:
        raise InputError(
            f"{source!r}: only classifiers of transformers can be judged here; write the "
            "predictions to a file and name that with --predictions"
        )
    texts = corpus.texts.to_list()
    logits = _logits(recognised.module, tokenizer, texts)
    outputs = Outputs.match(corpus.classes, recognised.names, None, recognised.kind)
    outputs = outputs.check_order(logits, corpus.labels, corpus.classes)
    names = np.array([str(name) for name in corpus.classes])

    def predict(given: pl.Series) -> ClassNames:
        own = logits if given.to_list() == texts else _logits(model, tokenizer, given.to_list())
        answers: Floats = np.asarray(outputs.answers(own), dtype=np.float64)
        predicted: ClassNames = names[decide(answers)]
        return predicted

    return predict


def _logits(model: Any, tokenizer: Any, texts: list[str]) -> Floats:
    """The logits of some texts, shape (n, M)."""
    import torch

    limit = min(_limits(model, tokenizer), default=USUAL_PIECES)
    model.eval()
    parts = []
    for start in range(0, len(texts), BATCH):
        encoded = tokenizer(
            texts[start : start + BATCH],
            truncation=True,
            max_length=limit,
            padding=True,
            return_tensors="pt",
        )
        inputs = {name: encoded[name] for name in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            parts.append(model(**inputs).logits.double().cpu().numpy())
    return np.concatenate(parts)


def _limits(model: Any, tokenizer: Any) -> Iterator[int]:
    """The pieces that the model and the tokenizer say they read, where they say it."""
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions:
        # RoBERTa's first positions are not used
        padding = getattr(model.config, "pad_token_id", None) or 0
        yield int(positions) - (padding + 1 if padding == 1 else 0)
    if tokenizer.model_max_length < 1_000_000:  # a tokenizer without a limit says 10^30
        yield int(tokenizer.model_max_length)
