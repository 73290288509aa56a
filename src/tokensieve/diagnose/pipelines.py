"""Any classifier with `predict_proba` on texts (a scikit-learn pipeline): values and deletion effects, no attention.

The answer is log p_1 − log p_0 for two classes, log p_k − mean_j log p_j for K, with p held above 1e-12. A word is deleted by
cutting all its occurrences out of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tokensieve.diagnose.measuring import Checkpoint, Measured, by_group, choose_deletions
from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.tokenizers import Tokenizer

SMALLEST = 1e-12


class PipelineSubject:
    """A classifier with `predict_proba` on documents.

    Args:
        model: with `predict_proba(texts)`, rows of K probabilities.
        order: its column for each class of the data.
        texts: the documents.
        words: the vocabulary.
        splitter: what a word is.
        groups: group of each document, shape (n,).
        n_groups: G.
        per_type: documents from which each word is deleted, at most.
        batch_size: texts of one call.
        seed: of the choice of those documents.
    """

    def __init__(
        self, model: Any, order: Sequence[int], texts: pl.Series, words: tuple[str, ...], splitter: Tokenizer, groups: Ints,
        n_groups: int, per_type: int, batch_size: int, seed: int,
    ) -> None:  # fmt: skip
        self._model, self._order, self._words = model, list(order), words
        self._texts = texts.to_list()
        self.groups, self._n_groups, self.documents = groups, n_groups, np.arange(len(texts))
        self._per_type, self._batch_size, self._seed = per_type, batch_size, seed
        place = {word: i for i, word in enumerate(words)}
        self._spans = [
            [(start, end, place[word]) for start, end, word in splitter.spans(text) if word in place]
            for text in self._texts
        ]

    def held(self) -> tuple[Ints, Ints]:
        """Distinct (type, document) pairs."""
        pairs = [(s, k) for k, spans in enumerate(self._spans) for s in sorted({span[2] for span in spans})]
        types, documents = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return types, documents

    def measure(self, kept: Checkpoint, name: str, progress: Progress) -> Measured:
        """Answers, words alone and deletions."""
        answers = self._answers(self._texts, f"{name}: reading documents", progress)
        value = self._answers(list(self._words), f"{name}: words alone", progress)
        pairs = choose_deletions(*self.held(), self._per_type, self._seed)
        lost = self.delete(answers, pairs, kept, f"{name}: deleting words", progress)
        held, _ = by_group(np.zeros((len(self.held()[0]), 1)), self.held()[0], self.groups[self.held()[1]], self._shape)
        tried, deletion = by_group(lost, pairs[0], self.groups[pairs[1]], self._shape)
        return Measured(answers, value, held, None, None, tried, deletion, None)

    def delete(
        self, answers: Floats, pairs: tuple[Ints, Ints], kept: Checkpoint, name: str, progress: Progress
    ) -> Floats:
        """answers − answers without the word for each (type, document) pair, shape (D, H)."""
        texts = [self._without(int(k), int(s)) for s, k in zip(*pairs, strict=True)]
        return answers[pairs[1]] - self._answers(texts, name, progress)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._n_groups, len(self._words)

    def _without(self, document: int, word: int) -> str:
        text, out, at = self._texts[document], [], 0
        for start, end, which in self._spans[document]:
            if which == word:
                out.append(text[at:start])
                at = end
        return "".join([*out, text[at:]])

    def _answers(self, texts: list[str], stage: str, progress: Progress) -> Floats:
        parts = []
        for start in range(0, len(texts), self._batch_size):
            progress(stage, start / len(texts))
            part = texts[start : start + self._batch_size]
            p = np.asarray(self._model.predict_proba(part), dtype=np.float64)
            if p.shape != (len(part), len(self._order)) or not np.isfinite(p).all():
                raise InputError(
                    f"predict_proba gave {p.shape} for {len(part)} texts, or numbers that are not finite: it must give one "
                    f"row of {len(self._order)} probabilities each"
                )
            parts.append(p)
        z = np.log(np.maximum(np.concatenate(parts) if parts else np.empty((0, len(self._order))), SMALLEST))[
            :, self._order
        ]
        return z[:, 1:] - z[:, :1] if len(self._order) == 2 else z - z.mean(axis=1, keepdims=True)
