"""What people hand over as a model: seen for what it is, and unwrapped to what can be read."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokensieve.diagnose.subjects.classes import OutputKind
from tokensieve.diagnose.subjects.texts import Answer, from_function, from_margins, from_probabilities
from tokensieve.errors import InputError
from tokensieve.text.labels import label_name


@dataclass(frozen=True)
class RecognisedModel:
    """A model ready to be read.

    Attributes:
        family: name of its class, for people.
        names: of its M outputs.
        kind: how they become answers.
        module, tokenizer: of a model that reads pieces; None for others.
        reader: that reads pieces without being a PyTorch module (ONNX); None for others.
        answer: of a model that reads texts; None for others.
        notes: what a reader should know.
    """

    family: str
    names: tuple[str, ...]
    kind: OutputKind = OutputKind.SOFTMAX
    module: Any = None
    tokenizer: Any = None
    reader: Any = None
    answer: Answer | None = None
    notes: tuple[str, ...] = ()


def recognise(model: Any, tokenizer: Any, classes: Sequence[str] | None = None) -> RecognisedModel:
    """What kind of model this is.

    Supported: transformers models for sequence classification (also compiled, wrapped for several devices, quantised, in half
    precision, with PEFT adapters, in a text-classification pipeline), `tokensieve.diagnose.LabelWords` and `OnnxClassifier`,
    anything with `predict_proba` or `decision_function` on texts and `classes_`, and functions of a list of texts.

    Args:
        model: any of these.
        tokenizer: of a transformers model.
        classes: names of the outputs of a function.

    Raises:
        InputError: none of these; says what would do.
    """
    model = getattr(model, "_orig_mod", model)  # torch.compile
    if type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
        model = model.module
    if hasattr(model, "task") and hasattr(model, "model") and hasattr(model, "preprocess"):
        if model.task not in ("text-classification", "sentiment-analysis"):
            raise InputError(f"a pipeline for {model.task!r} names no fixed classes: give one for text-classification")
        model, tokenizer = model.model, model.tokenizer
    family = type(model).__name__
    if hasattr(model, "read_pieces"):
        return RecognisedModel(family, tuple(model.names), reader=model, tokenizer=tokenizer or model.tokenizer)
    if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
        model = merge_adapters(model)
        family = f"{type(model).__name__} with {family}"
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "id2label") and hasattr(model, "get_input_embeddings"):
        return _transformer(model, tokenizer, family)
    if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
        return _estimator(model, family)
    if callable(model):
        if not classes:
            raise InputError("a function needs classes=[…], the labels of its columns in order")
        return RecognisedModel(family, tuple(map(str, classes)), answer=from_function(model, len(classes)))
    if isinstance(model, str):
        raise InputError(f"{model!r} is a name, no model: load it first, diagnose(*load({model!r}), texts, labels)")
    raise InputError(
        f"cannot diagnose a {family}: give a transformers model for sequence classification with its tokenizer, a "
        "text-classification pipeline, something with predict_proba on texts, or a function with classes=[…]"
    )


def _transformer(model: Any, tokenizer: Any, family: str) -> RecognisedModel:
    import torch

    config = model.config
    names = tuple(str(config.id2label[i]) for i in range(int(config.num_labels)))
    if hasattr(model, "names"):  # LabelWords
        names = tuple(model.names)
    elif not any(sign in type(model).__name__ for sign in ("Classif", "Reward")):
        way = "load one that was trained as such with AutoModelForSequenceClassification"
        if any(sign in type(model).__name__ for sign in ("CausalLM", "LMHead")):
            way = "give the words that it answers with, tokensieve.diagnose.LabelWords(model, tokenizer, {class: word})"
        raise InputError(f"{type(model).__name__} is no model for sequence classification: {way}")
    if tokenizer is None:
        raise InputError(f"{family} needs its tokenizer: give both, diagnose(model, tokenizer, texts, labels)")
    kind = (
        OutputKind.SIGMOID
        if getattr(config, "problem_type", None) == "multi_label_classification"
        else OutputKind.SOFTMAX
    )
    notes = []
    if kind is OutputKind.SIGMOID:
        notes.append("each output is a yes or no of its own (multi_label_classification): answers are read one by one")
    dtype = next(model.parameters()).dtype
    if dtype in (torch.float16, torch.bfloat16):
        notes.append(f"read in half precision ({str(dtype).removeprefix('torch.')}): small effects are rounded")
    return RecognisedModel(family, names, kind, model, tokenizer, notes=tuple(notes))


def _estimator(model: Any, family: str) -> RecognisedModel:
    names = getattr(model, "classes_", None)
    if names is None:
        raise InputError(f"{family} has no classes_: fit it first, or set classes_ to the labels of its columns")
    names = tuple(label_name(value) or "" for value in names)
    if hasattr(model, "predict_proba"):
        return RecognisedModel(family, names, answer=from_probabilities(model))
    if len(names) == 2:  # one margin, larger for the second
        return RecognisedModel(family, names, answer=_two_sided(from_margins(model)))
    return RecognisedModel(family, names, answer=from_margins(model))


def _two_sided(answer: Answer) -> Answer:
    """A margin f, shape (n, 1), as logits (−f/2, f/2)."""
    import numpy as np

    def both(texts: list[str]) -> Any:
        f = answer(texts)
        return np.hstack([-f / 2, f / 2])

    return both


def merge_adapters(model: Any) -> Any:
    """A PEFT model as the plain model with its adapters added into the weights; the model itself is left as it is.

    Raises:
        InputError: its adapters change inputs, not weights (prompts, prefixes).
    """
    if not hasattr(model, "merge_and_unload"):
        kinds = ", ".join(sorted({str(getattr(c.peft_type, "value", c.peft_type)) for c in model.peft_config.values()}))
        raise InputError(
            f"{kinds} adapters put vectors before the text and cannot be merged into the weights: give a function of texts "
            "with classes=[…] instead"
        )
    try:
        return copy.deepcopy(model).merge_and_unload()
    except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
        raise InputError(
            f"the adapters cannot be merged into the weights ({' '.join(str(error).split())[:200]}): merge and save the model "
            "(merge_and_unload, save_pretrained), or give a function of texts with classes=[…]"
        ) from None
