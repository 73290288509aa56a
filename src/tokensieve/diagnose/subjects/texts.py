"""Any classifier that reads whole texts (a scikit-learn pipeline, a function): values and leave-one-out effects, no attention.

A word is left out by cutting all its occurrences out of the text. Probabilities p become logits log p, held above log 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.tokenizers import Tokenizer

Answer = Callable[[list[str]], Floats]


class TextSubject:
    """A classifier on documents.

    Args:
        answer: texts → logits, shape (n, M).
        width: M.
        texts: the documents.
        words: the vocabulary.
        splitter: what a word is.
    """

    layers, differentiable = 0, False

    def __init__(
        self, answer: Answer, width: int, texts: pl.Series, words: tuple[str, ...], splitter: Tokenizer
    ) -> None:
        self._answer, self._width, self._words = answer, width, list(words)
        self._texts: list[str] = texts.to_list()
        self.documents = np.arange(len(texts))
        self.lengths = np.array([len(text) for text in self._texts], dtype=np.int64)
        self.word_lengths = np.array([len(word) for word in words], dtype=np.int64)
        self._splitter = splitter
        place = {word: i for i, word in enumerate(words)}
        self._spans = [
            [(start, end, place[word]) for start, end, word in splitter.spans(text) if word in place]
            for text in self._texts
        ]
        pairs = [(s, k) for k, spans in enumerate(self._spans) for s in sorted({span[2] for span in spans})]
        self.types, self.windows = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def of_words(self, kept: Ints) -> TextSubject:
        """The same with some of the words."""
        words = tuple(self._words[s] for s in kept)
        return TextSubject(self._answer, self._width, pl.Series(self._texts, dtype=pl.String), words, self._splitter)

    def look(self, at: Ints, attention: Any) -> Floats:
        """Logits of some documents."""
        return self._logits([self._texts[k] for k in at])

    def alone(self, at: Ints) -> Floats:
        """Logits of words alone."""
        return self._logits([self._words[s] for s in at])

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        """There are no gradients here."""
        raise NotImplementedError

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of documents without some words each."""
        return self._logits([self._without(int(k), set(some.tolist())) for some, k in zip(words, windows, strict=True)])

    def having(self, words: Ints, windows: Ints, places: Floats) -> Floats:
        """Logits of documents into each of which one word was put."""
        return self._logits(
            [self._having(int(k), self._words[s], x) for s, k, x in zip(words, windows, places, strict=True)]
        )

    def _having(self, document: int, word: str, place: float) -> str:
        text, spans = self._texts[document], self._spans[document]
        at = spans[int(place * len(spans))][0] if spans else 0
        return f"{text[:at]}{word} {text[at:]}"

    def _without(self, document: int, words: set[int]) -> str:
        text, out, at = self._texts[document], [], 0
        for start, end, which in self._spans[document]:
            if which in words:
                out.append(text[at:start])
                at = end
        return "".join([*out, text[at:]])

    def _logits(self, texts: list[str]) -> Floats:
        z = self._answer(texts)
        if z.shape != (len(texts), self._width) or not np.isfinite(z).all():
            raise InputError(
                f"the model gave {z.shape} for {len(texts)} texts, or numbers that are not finite: it must give one row of "
                f"{self._width} probabilities or scores each"
            )
        return z


def _log(p: Floats) -> Floats:
    """Probabilities as logits up to a constant, held above log 1e-12."""
    return np.log(np.maximum(p, 1e-12))


def from_probabilities(model: Any) -> Answer:
    """The log-probabilities of `predict_proba`."""
    return lambda texts: _log(_asked(model, "predict_proba", texts))


def from_margins(model: Any) -> Answer:
    """The margins of `decision_function`: one column for two classes."""

    def answer(texts: list[str]) -> Floats:
        z = _asked(model, "decision_function", texts)
        return z.reshape(len(texts), -1)

    return answer


def _asked(model: Any, name: str, texts: list[str]) -> Floats:
    """What an estimator answers to texts.

    Raises:
        InputError: it reads something else.
    """
    try:
        return np.asarray(getattr(model, name)(texts), dtype=np.float64)
    except (ValueError, TypeError, AttributeError) as error:
        why = " ".join(str(error).split())[:80]
        raise InputError(
            f"{type(model).__name__}.{name} cannot read a list of texts ({why}): give a fitted pipeline that begins with its "
            "vectorizer"
        ) from None


def from_function(function: Any, classes: int) -> Answer:
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
                f"the function must give a row of {classes} numbers for each of {len(texts)} texts, probabilities or log-odds, not "
                f"{shown}"
            )
        one = z.ndim == 1 or z.shape[1:] == (1,)
        z = z.reshape(len(texts), -1) if z.ndim < 3 else z
        inside = bool(np.all((z >= 0) & (z <= 1)))
        if not share:
            share.append(inside and (one or bool(np.allclose(z.sum(axis=-1), 1, atol=1e-3))))
        if share[0] and not inside:
            raise InputError(
                "the function gave numbers in [0, 1] first and others later: give probabilities, or log-odds, throughout"
            )
        if classes == 2 and one:
            z = np.hstack([1 - z, z]) if share[0] else np.hstack([-z / 2, z / 2])
        return _log(z) if share[0] else z

    return answer
