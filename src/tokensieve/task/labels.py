"""Labels: every document has one class."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.model.attention import attention
from tokensieve.model.decision import both, decide, probabilities
from tokensieve.model.fit import best_scale, fit, refit
from tokensieve.model.settings import TrainSettings
from tokensieve.model.start import prior_of
from tokensieve.model.trained import Model
from tokensieve.progress import Progress
from tokensieve.task.interface import AGAINST, Part, Task
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.split import folds, split_corpus
from tokensieve.text.vocabulary import Vocabulary


class Labels(Task):
    """Documents with one class each."""

    noun = "document"
    checks = tuple("shortcut leak contradiction labels imbalance empty drift unstable repeated".split())
    single = True
    strengths = 1.0, 10.0, 100.0
    few = 5_000  # documents, up to which five folds take seconds; two beyond

    def split(self, corpus: Corpus, share: float, seed: int) -> Corpus:
        return split_corpus(corpus, share=share, seed=seed)

    def units(self, corpus: Corpus) -> Ints | None:
        return corpus.units

    def document_units(self, corpus: Corpus) -> Ints | None:
        return corpus.units

    def items(self, documents: int) -> Ints:
        return np.arange(documents)

    def fit(
        self,
        train: Part,
        settings: TrainSettings,
        vocabulary: Vocabulary | None = None,
        progress: Progress | None = None,
    ) -> Model:
        return fit(train.counts, settings, vocabulary, progress, train.corpus.units)

    def decide(self, model: Model, matrix: sp.csr_array) -> Floats:
        return model.decide(matrix)

    def correct(self, f: Floats, counts: Counts) -> Floats:
        return np.asarray(decide(f) == counts.labels, dtype=np.float64)

    def importance(self, part: Part) -> Importance:
        return token_importance(part.counts, part.features, part.corpus.units)

    def baseline(self, train: Part, test: Part, seed: int) -> float:
        from tokensieve.task.baseline import logistic_accuracy

        counts = train.plain
        order = np.random.default_rng(seed).permutation(counts.n_documents)
        held_out = np.zeros(counts.n_documents, dtype=bool)
        held_out[order[: max(counts.n_documents // 10, 1)]] = True
        part, rest = counts.rows(~held_out), counts.rows(held_out)
        best = self.strengths[1]
        if np.count_nonzero(part.class_sizes) == counts.n_classes:
            best = max(self.strengths, key=lambda c: logistic_accuracy(part, rest, c))
        return logistic_accuracy(counts, test.plain, best)

    def refit(self, counts: Counts, model: Model, of: int, settings: TrainSettings) -> Model:
        return refit(counts, model, of, settings)

    def out_of_fold(self, train: Part, model: Model, settings: TrainSettings) -> Floats | None:
        from sklearn.model_selection import StratifiedKFold

        counts, units = train.counts, train.corpus.units
        k = 5 if counts.n_documents <= self.few and _divisible(counts, units, 5) else 2
        if not _divisible(counts, units, k):
            return None
        f = np.zeros((counts.n_documents, model.values.shape[1]))
        if units is None:
            parts = StratifiedKFold(k, shuffle=True, random_state=settings.seed).split(f, counts.labels)
        else:
            parts = iter(folds(counts.labels, k, settings.seed, units))
        for inside, outside in parts:
            other = refit(counts.rows(inside), model, counts.n_documents, settings)
            f[outside] = other.decide(counts.rows(outside).matrix)
        prior = prior_of(counts.weighed[1])
        return probabilities(prior + best_scale(f, prior, counts.labels, counts.weights) * (f - prior))

    def against(self, counts: Counts, model: Model, documents: Ints, other: Ints) -> list[str]:
        part = counts.rows(documents)
        q, values, m = attention(part.matrix, model.scores), both(model.values), part.matrix
        out = []
        for i, (label, k) in enumerate(zip(part.labels, other, strict=True)):
            inside = slice(m.indptr[i], m.indptr[i + 1])
            types = m.indices[inside]
            push = q[inside] * (values[types, k] - values[types, label])
            out.append(", ".join(str(counts.tokens[types[t]]) for t in np.argsort(-push)[:AGAINST]))
        return out

    def summary(self, train: Corpus, test: Corpus) -> dict[str, Any]:
        return {}


def _divisible(counts: Counts, units: Ints | None, k: int) -> bool:
    """Whether every class has k documents, and of at least k groups, so that a model of one part can know it."""
    pairs = counts.labels if units is None else np.unique(np.stack([counts.labels, units]), axis=1)[0]
    return int(np.bincount(pairs, minlength=counts.n_classes)[counts.class_sizes > 0].min()) >= k
