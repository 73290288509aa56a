"""Preferences: pairs of documents, rows 2i (preferred) and 2i + 1; only differences of decision values mean anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tokensieve.evidence.importance import Importance
from tokensieve.evidence.pairs import pair_importance
from tokensieve.model.attention import attention, with_sink
from tokensieve.model.decision import probabilities
from tokensieve.model.fit import best_scale, fit, refit
from tokensieve.model.pairs import against_other, margins, named_rightly
from tokensieve.model.settings import TrainSettings
from tokensieve.model.trained import Model
from tokensieve.progress import Progress
from tokensieve.task.interface import AGAINST, Part, Task
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.split import draw_units, split_corpus
from tokensieve.text.vocabulary import Vocabulary


class Preferences(Task):
    """Pairs of answers, the preferred one first."""

    noun = "pair"
    checks = ("shortcut", "leak", "contradiction", "labels", "drift")
    single = False
    strengths = 0.3, 1.0, 3.0  # of differences, which are longer than a text and say less
    folds = 2

    def split(self, corpus: Corpus, share: float, seed: int) -> Corpus:
        return split_corpus(corpus, share=share, seed=seed)

    def units(self, corpus: Corpus) -> Ints:
        assert corpus.pairs is not None
        return corpus.pairs.units

    def document_units(self, corpus: Corpus) -> Ints:
        return np.repeat(self.units(corpus), 2)

    def items(self, documents: int) -> Ints:
        return np.arange(0, documents, 2)

    def fit(
        self,
        train: Part,
        settings: TrainSettings,
        vocabulary: Vocabulary | None = None,
        progress: Progress | None = None,
    ) -> Model:
        return fit(train.counts, settings, vocabulary, progress, self.units(train.corpus), pairs=True)

    def decide(self, model: Model, matrix: sp.csr_array) -> Floats:
        return against_other(model.decide(matrix))

    def correct(self, f: Floats, counts: Counts) -> Floats:
        return named_rightly(f[::2, 0])

    def importance(self, part: Part) -> Importance:
        return pair_importance(part.counts, self.units(part.corpus), part.features)

    def baseline(self, train: Part, test: Part, seed: int) -> float:
        from tokensieve.task.baseline import logistic_pair_accuracy

        counts = train.plain
        held = draw_units(self.units(train.corpus), 0.1, seed)
        part, rest = counts.rows(np.repeat(~held, 2)), counts.rows(np.repeat(held, 2))
        best = max(self.strengths, key=lambda c: logistic_pair_accuracy(part, rest, c))
        return logistic_pair_accuracy(counts, test.plain, best)

    def refit(self, counts: Counts, model: Model, of: int, settings: TrainSettings) -> Model:
        return refit(counts, model, of, settings)

    def out_of_fold(self, train: Part, model: Model, settings: TrainSettings) -> Floats | None:
        """As for labels, of two halves of the groups; the margin of a pair gives both of its documents the same probability."""
        units, counts = self.units(train.corpus), train.counts
        names = np.random.default_rng(settings.seed).permutation(np.unique(units))
        if len(names) < self.folds:
            return None
        m = np.zeros(len(units))
        for fold in range(self.folds):
            outside = np.isin(units, names[fold :: self.folds])
            inside, held = (counts.rows(np.repeat(part, 2)) for part in (~outside, outside))
            m[outside] = margins(refit(inside, model, counts.n_documents, settings).decide(held.matrix))
        m *= best_scale(m[:, None], np.zeros(1), np.ones(len(m), dtype=np.int64))
        return probabilities(against_other(np.column_stack([m / 2, -m / 2]).ravel()))

    def against(self, counts: Counts, model: Model, documents: Ints, other: Ints) -> list[str]:
        """The tokens that take most from the margin of each pair, whichever answer holds them."""
        u, w = model.table
        out = []
        for preferred in documents.tolist():
            matrix = with_sink(sp.csr_array(counts.matrix[preferred : preferred + 2]))
            parts = attention(matrix, u) * w[matrix.indices, 0]
            parts[matrix.indptr[1] :] *= -1
            push = np.bincount(matrix.indices, parts, matrix.shape[1])[:-1]
            least = [s for s in np.argsort(push, kind="stable")[:AGAINST] if push[s] < 0]
            out.append(", ".join(str(counts.tokens[s]) for s in least))
        return out

    def summary(self, train: Corpus, test: Corpus) -> dict[str, Any]:
        assert train.pairs is not None and test.pairs is not None
        sizes = {"train": len(train.pairs.units), "test": len(test.pairs.units)}
        return {"pairs": {"columns": list(train.pairs.columns), "by": train.pairs.by, **sizes}}
