"""Unwrap whatever object was passed as a model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.diagnose.subjects.outputs import Kind
from tokensieve.errors import InputError
from tokensieve.read.values import label_name

Answer = Callable[[list[str]], Floats]
SMALLEST_PROBABILITY = 1e-12  # a probability of zero would have an infinite logarithm
WRAPPERS = ("DataParallel", "DistributedDataParallel")
TASKS = ("text-classification", "sentiment-analysis")


@dataclass(frozen=True)
class RecognisedModel:
    """A model ready to be read: the name of its class, names of its M outputs, and their kind.

    Attributes:
        module, tokenizer: those of a model that reads pieces.
        reader: one that is no PyTorch module (ONNX).
        answer: that of a model that reads texts: texts → logits, shape (n, M); None for others.
        notes: what a reader of the diagnosis should know.
    """

    family: str
    names: tuple[str, ...]
    kind: Kind = "softmax"
    module: Any = None
    tokenizer: Any = None
    reader: Any = None
    answer: Answer | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, model: Any, tokenizer: Any, classes: Sequence[str] | None = None
    ) -> RecognisedModel:
        """Recognise the kind of model.

        One of transformers for sequence classification (also compiled, wrapped for several devices,
        quantised, in half precision, with PEFT adapters, in a pipeline), `LabelWords`,
        `OnnxClassifier`, anything with `predict_proba` or `decision_function` on texts and
        `classes_`, or a function of a list of texts, which needs the names of its outputs
        (classes).

        Raises:
            InputError: another object.
        """
        model = getattr(model, "_orig_mod", model)  # torch.compile
        if type(model).__name__ in WRAPPERS:
            model = model.module
        if hasattr(model, "task") and hasattr(model, "model") and hasattr(model, "preprocess"):
            if model.task not in TASKS:
                raise InputError(
                    f"a pipeline for {model.task!r} names no fixed classes: "
                    "pass one for text-classification"
                )
            tokenizer = model.tokenizer
            model = model.model
        family = type(model).__name__
        if hasattr(model, "read_pieces"):
            tokenizer = tokenizer or model.tokenizer
            return cls(family, tuple(model.names), reader=model, tokenizer=tokenizer)
        if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
            model = merge_adapters(model)
            family = f"{type(model).__name__} with {family}"
        has_labels = hasattr(getattr(model, "config", None), "id2label")
        if has_labels and hasattr(model, "get_input_embeddings"):
            return _transformer(model, tokenizer, family)
        if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
            return _estimator(model, family)
        if callable(model):
            if not classes:
                raise InputError("a function needs classes=[…], the labels of its columns in order")
            answer = FunctionAnswer(model, len(classes))
            return cls(family, tuple(map(str, classes)), answer=answer)
        if isinstance(model, str):
            raise InputError(
                f"{model!r} is a name, not a model; use diagnose(*load({model!r}), texts, labels)"
            )
        raise InputError(
            f"cannot diagnose a {family}: pass a transformers model for sequence classification "
            "with its tokenizer, a text-classification pipeline, something with predict_proba on "
            "texts, or a function with classes=[…]"
        )


def merge_adapters(model: Any) -> Any:
    """A PEFT model's copy with its adapters added into the weights.

    Raises:
        InputError: prompts and prefixes, which cannot be added.
    """
    if not hasattr(model, "merge_and_unload"):
        types = [config.peft_type for config in model.peft_config.values()]
        kinds = ", ".join(sorted({str(getattr(kind, "value", kind)) for kind in types}))
        raise InputError(
            f"{kinds} adapters prepend vectors to the input and cannot be merged into the "
            "weights; pass a function of texts with classes=[…] instead"
        )
    try:
        return copy.deepcopy(model).merge_and_unload()
    except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(
            f"the adapters cannot be merged into the weights ({why}): merge and save the model "
            "(merge_and_unload, save_pretrained), or pass a function of texts with classes=[…]"
        ) from None


def _transformer(model: Any, tokenizer: Any, family: str) -> RecognisedModel:
    """A model of the library `transformers`."""
    import torch

    config = model.config
    class_name = type(model).__name__
    names = tuple(str(config.id2label[i]) for i in range(int(config.num_labels)))
    if hasattr(model, "names"):  # LabelWords
        names = tuple(model.names)
    elif not any(sign in class_name for sign in ("Classif", "Reward")):
        advice = "load one that was trained as such with AutoModelForSequenceClassification"
        if any(sign in class_name for sign in ("CausalLM", "LMHead")):
            advice = (
                "name the word that it predicts for each class, "
                "tokensieve.diagnose.LabelWords(model, tokenizer, {class: word})"
            )
        raise InputError(f"{class_name} is not a model for sequence classification: {advice}")
    if tokenizer is None:
        raise InputError(
            f"{family} needs its tokenizer: pass both, diagnose(model, tokenizer, texts, labels)"
        )
    kind: Kind = "softmax"
    notes = []
    if getattr(config, "problem_type", None) == "multi_label_classification":
        kind = "sigmoid"
        notes.append(
            "this is a multi-label model (multi_label_classification); "
            "each output is treated as a separate yes/no prediction"
        )
    dtype = next(model.parameters()).dtype
    if dtype in (torch.float16, torch.bfloat16):
        precision = str(dtype).removeprefix("torch.")
        notes.append(f"the model is in half precision ({precision}), so small effects are rounded")
    return RecognisedModel(family, names, kind, model, tokenizer, notes=tuple(notes))


def _estimator(model: Any, family: str) -> RecognisedModel:
    """A classifier with the interface of scikit-learn."""
    names = getattr(model, "classes_", None)
    if names is None:
        raise InputError(
            f"{family} has no classes_: fit it first, or set classes_ to the labels of its columns"
        )
    answer = EstimatorAnswer(model)
    return RecognisedModel(family, tuple(label_name(name) or "" for name in names), answer=answer)


class EstimatorAnswer:
    """Log-probabilities of `predict_proba`, else the margins of `decision_function`.

    A single margin f of two classes is (−f/2, f/2).
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._has_probabilities = hasattr(model, "predict_proba")
        self._method = "predict_proba" if self._has_probabilities else "decision_function"

    def __call__(self, texts: list[str]) -> Floats:
        try:
            z = np.asarray(getattr(self._model, self._method)(texts), dtype=np.float64)
        except (ValueError, TypeError, AttributeError) as error:
            why = " ".join(str(error).split())[:80]
            raise InputError(
                f"{type(self._model).__name__}.{self._method} cannot read a list of texts ({why}): "
                "pass a fitted pipeline that begins with its vectorizer"
            ) from None
        if self._has_probabilities:
            return np.log(np.maximum(z, SMALLEST_PROBABILITY))
        z = z.reshape(len(texts), -1)
        if len(self._model.classes_) == 2:
            return np.hstack([-z / 2, z / 2])
        return z


class FunctionAnswer:
    """Logits from a function of a list of texts.

    It may return rows of probabilities (that sum to one), else logits. With two classes it may
    return one number per text for the second: a probability if those of the first texts are all in
    [0, 1], else log-odds. The first texts decide once for all.
    """

    def __init__(self, function: Callable[[list[str]], object], n_classes: int) -> None:
        self._function = function
        self._n_classes = n_classes
        self._gives_probabilities: bool | None = None

    def __call__(self, texts: list[str]) -> Floats:
        z = self._numbers(texts)
        is_single = z.ndim == 1 or z.shape[1:] == (1,)
        if z.ndim < 3:
            z = z.reshape(len(texts), -1)
        is_inside = bool(np.all((z >= 0) & (z <= 1)))
        if self._gives_probabilities is None:
            sums_to_one = is_single or bool(np.allclose(z.sum(axis=-1), 1, atol=1e-3))
            self._gives_probabilities = is_inside and sums_to_one
        if self._gives_probabilities and not is_inside:
            raise InputError(
                "the function returned numbers in [0, 1] first and others later: "
                "return probabilities, or log-odds, throughout"
            )
        if self._n_classes == 2 and is_single:
            z = np.hstack([1 - z, z] if self._gives_probabilities else [-z / 2, z / 2])
        if self._gives_probabilities:
            return np.log(np.maximum(z, SMALLEST_PROBABILITY))
        return z

    def _numbers(self, texts: list[str]) -> Floats:
        """What the function returns, as an array; an InputError if it is none."""
        returned = self._function(texts)
        try:
            z = np.asarray(returned, dtype=np.float64)
        except (ValueError, TypeError):
            z = np.empty(0)
        if z.ndim == 0 or len(z) != len(texts):
            shown = " ".join(repr(returned).split())[:80]
            raise InputError(
                f"the function must return a row of {self._n_classes} numbers for each of "
                f"{len(texts)} texts, probabilities or log-odds, not {shown}"
            )
        return z
