"""Unwrap whatever object was passed as a model, and match its outputs with the classes of the data."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest, mannwhitneyu

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.subjects.windows import LENGTHS
from tokensieve.errors import InputError
from tokensieve.read.values import label_name, listed
from tokensieve.text.tokenizers import Tokenizer

_Kind = Literal["softmax", "sigmoid", "rest", "single"]
_CERTAIN = 1e-6  # p-value below which another order is taken to be the right one


@dataclass(frozen=True)
class Outputs:
    """How the model's `width` outputs match the `classes` of the data, and how answers are computed from them.

    The logits z of the classes, in the data's order, become the **answer** f by its kind:

        softmax   z_1 − z_0 for two classes (H = 1), z_k − mean_j z_j for K (H = K)
        sigmoid   the same for two classes, z_k for K: each output is a yes or no of its own (multi-label heads)
        rest      ±z of the one output that is a class, the other class being "not that" (H = 1)
        single    z of the only output: a reward, a regression, the margin of a linear classifier (H = 1)

    It is larger for the class it is about, and with two classes above zero (single: above a threshold) for the second.

    `order` is the output of each class, shape (K,), of rest and single the one output, None if only the predictions can tell;
    `sign` is −1 if the output of rest is about the first class; if names are equal (`named`), contradicting predictions are a
    `warning`, not an error; `note` says how outputs were matched otherwise.
    """

    order: tuple[int, ...] | None
    width: int
    classes: int
    kind: _Kind = "softmax"
    sign: int = 1
    names: tuple[str, ...] = ()
    named: bool = False
    note: str = ""
    warning: str = ""

    @property
    def heads(self) -> int:
        """H."""
        return 1 if self.classes == 2 else self.classes

    def answers(self, z: Any) -> Any:
        """Logits, shape (n, M), NumPy or PyTorch → answers, shape (n, H)."""
        order = list(self.order or range(self.classes))
        if self.kind in ("rest", "single"):
            return self.sign * z[:, order[:1]]
        z = z[:, order]
        if self.classes == 2:
            return z[:, 1:] - z[:, :1]
        return z if self.kind == "sigmoid" else z - z.mean(axis=1, keepdims=True)

    @classmethod
    def match(
        cls,
        classes: Sequence[str],
        names: Sequence[str],
        asked: Mapping[str, str] | None = None,
        kind: _Kind = "softmax",
    ) -> Outputs:
        """Match the data's K classes with the model's M outputs: as asked (class → output name or number), else by name (without
        case), else by number.

        `names` are the outputs' in index order (the model's `id2label`); `kind` is sigmoid if each is a yes or no of its own; a
        single output is always single. More classes than outputs, or an unusable request, are an InputError.
        """
        names, M, K = tuple(names), len(names), len(classes)
        have = f"the model predicts {listed(names)}, but the labels are {listed(classes)}"
        if M == 1:
            if K != 2:
                raise InputError(
                    f"the model has a single output, which can separate only two classes, but the data has {K} classes: reduce it "
                    "to two with --group NEW=OLD,OLD or --drop OLD"
                )
            note = f"the model's single output is assumed to be larger for {classes[1]!r}"
            return cls((0,), 1, 2, "single", names=names, named=True, note=note)
        if asked:
            given = {label_name(name): str(output) for name, output in asked.items()}
            places = {**{str(i): i for i in range(M)}, **{name: i for i, name in enumerate(names)}}
            order = [places.get(given.get(name, "")) for name in classes]
            whole = [place for place in order if place is not None]
            if K == 2 and len(given) == len(whole) == 1 and kind == "sigmoid":
                return cls((whole[0],), M, 2, "rest", 1 if order[1] is not None else -1, names)
            if set(given) != set(classes) or len(set(whole)) != K:
                raise InputError(
                    f"{have}: --map must name each class once, as CLASS=OUTPUT, and each output at most once"
                )
            return cls(tuple(whole), M, K, kind, names=names)
        folded, mine = (
            [(label_name(name) or name).casefold() for name in some] for some in (names, classes)
        )
        if len(set(folded)) == M and len(set(mine)) == K:
            found = [folded.index(name) for name in mine if name in folded]
            if len(found) == K:
                unused = (
                    listed([name for i, name in enumerate(names) if i not in found])
                    if M > K
                    else ""
                )
                note = (
                    f"only the outputs for the data's classes are compared; unused: {unused}"
                    if unused
                    else ""
                )
                return cls(tuple(found), M, K, kind, names=names, named=True, note=note)
            if len(found) == 1 and K == 2 and kind == "sigmoid":
                note = f"the output {names[found[0]]!r} is treated as a yes/no prediction"
                return cls(
                    (found[0],), M, 2, "rest", 1 if mine[1] in folded else -1, names, True, note
                )
        if M < K:
            raise InputError(
                f"{have}: reduce the data to {M} classes with --group NEW=OLD,OLD or --drop OLD"
            )
        in_order = cls(tuple(range(K)), M, K, kind, names=names)
        if list(classes) == [str(i) for i in range(K)] and M == K:
            pairs = ", ".join(f"{k} = {names[k]}" for k in range(K))
            return replace(
                in_order, note=f"labels are treated as numbers of the model's outputs: {pairs}"
            )
        if M == K and all(re.fullmatch(r"LABEL_[0-9]+", name) for name in names):
            pairs = ", ".join(
                f"{name} = {output}" for name, output in zip(classes, names, strict=True)
            )
            return replace(
                in_order, note=f"the model's outputs have no names and are taken in order: {pairs}"
            )
        return replace(in_order, order=None, note=have)

    def check_order(self, logits: Floats, labels: Ints, classes: Sequence[str]) -> Outputs:
        """Check the order against the predictions, of logits (n, M) and labels (n,): no other assignment of outputs to classes may
        be right far more often; an InputError with the `--map` that the predictions support if one is, or if names do not tell.

        The best assignment maximises the trace of the confusion matrix (Hungarian algorithm). It wins if, of the documents that
        only one of the two gets right, it gets right more than half (sign test, p < 1e-6), and at least 5 % of all documents more;
        and if its predictions agree with the labels beyond what their frequencies alone give: a model that always predicts the
        same class says nothing about the order. One output is turned if it is larger for the other class (Mann–Whitney's test).
        """
        if self.order is not None and self.kind in ("rest", "single"):
            f = self.answers(logits)[:, 0]
            if mannwhitneyu(f[labels == 1], f[labels == 0], alternative="less").pvalue >= _CERTAIN:
                return self
            if self.kind == "single":
                note = (
                    f"the model's single output is larger for {classes[0]!r}: its sign is flipped"
                )
                return replace(self, sign=-1, note=note)
            return replace(self, note=f"{self.note}; it is larger for the other class".lstrip("; "))
        predicted = logits.argmax(axis=1)
        confusion = np.zeros((len(classes), logits.shape[1]))
        np.add.at(confusion, (labels, predicted), 1.0)
        _, best = linear_sum_assignment(-confusion)
        right = best[labels] == predicted
        example = " ".join(
            f"--map {quote(f'{name}={self.names[k]}')}"
            for name, k in zip(classes, best, strict=True)
        )
        chance = float(confusion.sum(axis=1) @ confusion[:, best].sum(axis=0)) / len(labels) ** 2
        tells = (
            binomtest(int(right.sum()), len(right), min(chance, 1.0), alternative="greater").pvalue
            < _CERTAIN
        )
        if self.order is None:
            rate = f"{right.mean():.1%} correct"
            if tells:
                raise InputError(
                    f"{self.note}; the predictions match {example} ({rate}); pass that to confirm it"
                )
            raise InputError(
                f"{self.note}; the predictions do not show which output is which class (best match: {rate}), so name each "
                "with --map CLASS=OUTPUT"
            )
        mine = logits[:, list(self.order)].argmax(axis=1) == labels
        gained, lost = int((right & ~mine).sum()), int((mine & ~right).sum())
        wins = gained - lost > 0.05 * len(right)
        if not (
            tells
            and wins
            and binomtest(gained, gained + lost, 0.5, alternative="greater").pvalue < _CERTAIN
        ):
            return self
        what = (
            f"{mine.mean():.1%} of the predictions are correct, {right.mean():.1%} with {example}"
        )
        if self.named:
            return replace(
                self, warning=f"{what}. Are the names in its config.json in the right order?"
            )
        order = self.note or "the outputs are matched as --map specifies"
        raise InputError(f"{order}, but only {what}; set the right order with --map")


_Answer = Callable[[list[str]], Floats]


@dataclass(frozen=True)
class RecognisedModel:
    """A model ready to be read: the name of its class, names of its M outputs, and how they become answers.

    Module and tokenizer are those of a model that reads pieces, `reader` one that is no PyTorch module (ONNX), `answer` that of a
    model that reads texts: texts → logits, shape (n, M); None for others.
    """

    family: str
    names: tuple[str, ...]
    kind: _Kind = "softmax"
    module: Any = None
    tokenizer: Any = None
    reader: Any = None
    answer: _Answer | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, model: Any, tokenizer: Any, classes: Sequence[str] | None = None
    ) -> RecognisedModel:
        """Recognise the kind of model: one of transformers for sequence classification (also compiled, wrapped for several devices,
        quantised, in half precision, with PEFT adapters, in a pipeline), `LabelWords`, `OnnxClassifier`, anything with
        `predict_proba` or `decision_function` on texts and `classes_`, or a function of a list of texts, which needs the names of
        its outputs (classes). An InputError for others."""
        model = getattr(model, "_orig_mod", model)  # torch.compile
        if type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
            model = model.module
        if hasattr(model, "task") and hasattr(model, "model") and hasattr(model, "preprocess"):
            if model.task not in ("text-classification", "sentiment-analysis"):
                raise InputError(
                    f"a pipeline for {model.task!r} names no fixed classes: pass one for text-classification"
                )
            model, tokenizer = model.model, model.tokenizer
        family = type(model).__name__
        if hasattr(model, "read_pieces"):
            return cls(
                family, tuple(model.names), reader=model, tokenizer=tokenizer or model.tokenizer
            )
        if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
            model = cls.merge_adapters(model)
            family = f"{type(model).__name__} with {family}"
        if hasattr(getattr(model, "config", None), "id2label") and hasattr(
            model, "get_input_embeddings"
        ):
            return _transformer(model, tokenizer, family)
        if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
            names = getattr(model, "classes_", None)
            if names is None:
                raise InputError(
                    f"{family} has no classes_: fit it first, or set classes_ to the labels of its columns"
                )
            return cls(
                family,
                tuple(label_name(value) or "" for value in names),
                answer=_of_estimator(model),
            )
        if callable(model):
            if not classes:
                raise InputError("a function needs classes=[…], the labels of its columns in order")
            return cls(family, tuple(map(str, classes)), answer=_of_function(model, len(classes)))
        if isinstance(model, str):
            raise InputError(
                f"{model!r} is a name, not a model; use diagnose(*load({model!r}), texts, labels)"
            )
        raise InputError(
            f"cannot diagnose a {family}: pass a transformers model for sequence classification with its tokenizer, a "
            "text-classification pipeline, something with predict_proba on texts, or a function with classes=[…]"
        )

    @staticmethod
    def merge_adapters(model: Any) -> Any:
        """A PEFT model's copy with its adapters added into the weights; prompts and prefixes, which cannot be, an InputError."""
        if not hasattr(model, "merge_and_unload"):
            kinds = ", ".join(
                sorted(
                    {
                        str(getattr(c.peft_type, "value", c.peft_type))
                        for c in model.peft_config.values()
                    }
                )
            )
            raise InputError(
                f"{kinds} adapters prepend vectors to the input and cannot be merged into the weights; pass a function of "
                "texts with classes=[…] instead"
            )
        try:
            return copy.deepcopy(model).merge_and_unload()
        except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
            raise InputError(
                f"the adapters cannot be merged into the weights ({' '.join(str(error).split())[:200]}): merge and save the model "
                "(merge_and_unload, save_pretrained), or pass a function of texts with classes=[…]"
            ) from None


def _transformer(model: Any, tokenizer: Any, family: str) -> RecognisedModel:
    import torch

    config, notes = model.config, []
    kind: _Kind = "softmax"
    names = tuple(str(config.id2label[i]) for i in range(int(config.num_labels)))
    if hasattr(model, "names"):  # LabelWords
        names = tuple(model.names)
    elif not any(sign in type(model).__name__ for sign in ("Classif", "Reward")):
        way = "load one that was trained as such with AutoModelForSequenceClassification"
        if any(sign in type(model).__name__ for sign in ("CausalLM", "LMHead")):
            way = "name the word that it predicts for each class, tokensieve.diagnose.LabelWords(model, tokenizer, {class: word})"
        raise InputError(
            f"{type(model).__name__} is not a model for sequence classification: {way}"
        )
    if tokenizer is None:
        raise InputError(
            f"{family} needs its tokenizer: pass both, diagnose(model, tokenizer, texts, labels)"
        )
    if getattr(config, "problem_type", None) == "multi_label_classification":
        kind = "sigmoid"
        note = "this is a multi-label model (multi_label_classification); each output is treated as a separate yes/no prediction"
        notes.append(note)
    dtype = next(model.parameters()).dtype
    if dtype in (torch.float16, torch.bfloat16):
        note = f"the model is in half precision ({str(dtype).removeprefix('torch.')}), so small effects are rounded"
        notes.append(note)
    return RecognisedModel(family, names, kind, model, tokenizer, notes=tuple(notes))


def _of_estimator(model: Any) -> _Answer:
    """The log-probabilities of `predict_proba`, else the margins of `decision_function`: of two classes one, f, as (−f/2, f/2)."""
    name = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"

    def answer(texts: list[str]) -> Floats:
        try:
            z = np.asarray(getattr(model, name)(texts), dtype=np.float64)
        except (ValueError, TypeError, AttributeError) as error:
            why = " ".join(str(error).split())[:80]
            raise InputError(
                f"{type(model).__name__}.{name} cannot read a list of texts ({why}): pass a fitted pipeline that begins with its "
                "vectorizer"
            ) from None
        if name == "predict_proba":
            return np.log(np.maximum(z, 1e-12))
        z = z.reshape(len(texts), -1)
        return np.hstack([-z / 2, z / 2]) if len(model.classes_) == 2 else z

    return answer


def _of_function(function: Callable[[list[str]], object], classes: int) -> _Answer:
    """What a function gives for a list of texts: rows of probabilities (that sum to one), else logits; with two classes it may
    give one number a text for the second, a probability if the first texts' are all in [0, 1], else log-odds."""
    share: list[bool] = []  # decided once, by the first texts

    def answer(texts: list[str]) -> Floats:
        given = function(texts)
        try:
            z = np.asarray(given, dtype=np.float64)
        except (ValueError, TypeError):
            z = np.empty(0)
        if z.ndim == 0 or len(z) != len(texts):
            shown = " ".join(repr(given).split())[:80]
            raise InputError(
                f"the function must return a row of {classes} numbers for each of {len(texts)} texts, probabilities or log-odds, "
                f"not {shown}"
            )
        one = z.ndim == 1 or z.shape[1:] == (1,)
        z = z.reshape(len(texts), -1) if z.ndim < 3 else z
        inside = bool(np.all((z >= 0) & (z <= 1)))
        if not share:
            share.append(inside and (one or bool(np.allclose(z.sum(axis=-1), 1, atol=1e-3))))
        if share[0] and not inside:
            raise InputError(
                "the function returned numbers in [0, 1] first and others later: return probabilities, or log-odds, throughout"
            )
        if classes == 2 and one:
            z = np.hstack([1 - z, z]) if share[0] else np.hstack([-z / 2, z / 2])
        return np.log(np.maximum(z, 1e-12)) if share[0] else z

    return answer


class TextSubject:
    """A classifier on whole documents, as `windows.PieceSubject`: a word is removed by cutting all its occurrences out of the
    text."""

    layers, differentiable = 0, False
    lengths_read: ClassVar[dict[str, int]] = dict.fromkeys(LENGTHS, 0)

    def __init__(
        self,
        answer: _Answer,
        width: int,
        texts: pl.Series,
        words: tuple[str, ...],
        splitter: Tokenizer,
    ) -> None:
        self._answer, self._width, self._words, self._splitter = (
            answer,
            width,
            list(words),
            splitter,
        )
        self._texts: list[str] = texts.to_list()
        self.documents = np.arange(len(texts))
        self.lengths = np.array([len(text) for text in self._texts], dtype=np.int64)
        self.word_lengths = np.array([len(word) for word in words], dtype=np.int64)
        place = {word: i for i, word in enumerate(words)}
        self._spans = [
            [
                (start, end, place[word])
                for start, end, word in (splitter.spans(text) if words else ())
                if word in place
            ]
            for text in self._texts
        ]
        pairs = [
            (s, k)
            for k, spans in enumerate(self._spans)
            for s in sorted({span[2] for span in spans})
        ]
        self.types, self.windows = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def of_words(self, kept: Ints) -> TextSubject:
        """The same with some of the words."""
        words = tuple(self._words[s] for s in kept)
        return TextSubject(
            self._answer,
            self._width,
            pl.Series(self._texts, dtype=pl.String),
            words,
            self._splitter,
        )

    def of_texts(self, texts: list[str]) -> TextSubject:
        """The same model on other texts, without any words."""
        return TextSubject(
            self._answer, self._width, pl.Series(texts, dtype=pl.String), (), self._splitter
        )

    def pieces_of(self, text: str) -> object:
        """The part of a text that the model sees."""
        return text

    def in_order(self, words: Ints, window: int) -> Ints:
        """Some words in the order in which they first occur in a document that contains them."""
        types = [span[2] for span in self._spans[window]]
        return np.array(sorted(words.tolist(), key=types.index))

    def look(self, at: Ints, attention: object) -> Floats:
        """Logits of some documents."""
        return self._logits([self._texts[k] for k in at])

    def alone(self, at: Ints) -> Floats:
        """Logits of words alone."""
        return self._logits([self._words[s] for s in at])

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        raise NotImplementedError

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of documents without some words each."""
        texts = []
        for some, k in zip(words, windows, strict=True):
            gone, out, at = set(some.tolist()), [], 0
            for start, end, word in self._spans[k]:
                if word in gone:
                    out.append(self._texts[k][at:start])
                    at = end
            texts.append("".join([*out, self._texts[k][at:]]))
        return self._logits(texts)

    def having(self, words: Sequence[Ints], windows: Ints, places: Floats) -> Floats:
        """Logits of documents into each of which some words were inserted."""
        texts = []
        for some, k, place in zip(words, windows, places, strict=True):
            text, spans = self._texts[k], self._spans[k]
            at = spans[int(place * len(spans))][0] if spans else 0
            texts.append(f"{text[:at]}{' '.join(self._words[s] for s in some)} {text[at:]}")
        return self._logits(texts)

    def _logits(self, texts: list[str]) -> Floats:
        z = self._answer(texts)
        if z.shape != (len(texts), self._width) or not np.isfinite(z).all():
            raise InputError(
                f"the model returned {z.shape} for {len(texts)} texts, or numbers that are not finite: it must return one row of "
                f"{self._width} probabilities or scores each"
            )
        return z
