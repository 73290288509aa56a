"""The interface that labels and preferences implement, so that nothing else asks which of the two it has.

A corpus is made of *items*: documents with labels, or pairs of documents of which the first is preferred.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.evidence.importance import Importance
from tokensieve.evidence.shares import Share
from tokensieve.model.settings import TrainSettings
from tokensieve.model.trained import Model
from tokensieve.progress import Progress
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.vocabulary import Vocabulary

AGAINST = 4  # tokens that `Task.against` names


@dataclass(frozen=True)
class Part:
    """One side of the split, counted.

    Attributes:
        corpus: its texts and labels.
        counts: as the model reads them.
        unknown: words of each document that are no token type, shape (n,).
        words: of all documents.
        features: how many types, the last ones, are formatting.
    """

    corpus: Corpus
    counts: Counts
    unknown: Ints
    words: int
    features: int = 0

    @property
    def plain(self) -> Counts:
        """The counts without formatting."""
        c = self.counts
        size = c.n_types - self.features
        return replace(c, matrix=sp.csr_array(c.matrix[:, :size]), tokens=c.tokens[:size]) if self.features else c


class Task(ABC):
    """What is learned, and everything that differs between labels and preferences.

    Attributes:
        noun: what an item is called: "document" or "pair".
        checks: names of the audit's checks that apply.
        single: whether a document alone has a predicted class, so that there are recall by class, calibration and a learning
            curve.
    """

    noun: str
    checks: tuple[str, ...]
    single: bool

    @abstractmethod
    def split(self, corpus: Corpus, share: float, seed: int) -> Corpus:
        """The corpus with a seeded test set: `share` of its items, groups kept whole.

        Raises:
            InputError: it cannot be split.
        """

    @abstractmethod
    def units(self, corpus: Corpus) -> Ints | None:
        """Group of each item, shape (items,); None if every item is independent."""

    @abstractmethod
    def document_units(self, corpus: Corpus) -> Ints | None:
        """Group of each document, shape (n,); None if every document is independent."""

    @abstractmethod
    def items(self, documents: int) -> Ints:
        """The document that stands for each item of a corpus of so many documents, shape (items,)."""

    @abstractmethod
    def fit(
        self,
        train: Part,
        settings: TrainSettings,
        vocabulary: Vocabulary | None = None,
        progress: Progress | None = None,
    ) -> Model:
        """Train scores and values; the same seed gives the same bits."""

    @abstractmethod
    def decide(self, model: Model, matrix: sp.csr_array) -> Floats:
        """Decision values of documents, shape (n, H), on a scale where they give probabilities of the classes.

        Those of a preference are differences to the other side of the pair.
        """

    @abstractmethod
    def correct(self, f: Floats, counts: Counts) -> Floats:
        """1 for each item that decision values f, shape (n, H), predict correctly, ½ for a tie, else 0, shape (items,)."""

    def accuracy(self, f: Floats, part: Part) -> Share:
        """Fraction of items predicted correctly, with its interval over groups."""
        return Share.over(self.correct(f, part.counts), self.units(part.corpus))

    @abstractmethod
    def importance(self, part: Part) -> Importance:
        """What the data alone says about each token type, formatting included."""

    @abstractmethod
    def baseline(self, train: Part, test: Part, seed: int) -> float:
        """Test accuracy of TF-IDF (sublinear) and logistic regression on the same words; C is chosen on held-out items."""

    @abstractmethod
    def refit(self, counts: Counts, model: Model, of: int, settings: TrainSettings) -> Model:
        """Scores and values learned from `counts`, in as many passes over them as `model` took over its documents.

        Args:
            counts: documents over any token types, of the same classes.
            model: whose length of training is taken over, so that none has to be chosen again.
            of: documents that it was trained on.
            settings: with which it was.
        """

    @abstractmethod
    def out_of_fold(self, train: Part, model: Model, settings: TrainSettings) -> Floats | None:
        """Probabilities of each document's classes, shape (n, K), by models that never saw its group; None if the documents do
        not allow a split.

        Their scale, one number that was chosen for `model` alone, is that of least loss over all.

        Args:
            train: the documents.
            model: trained on all of them.
            settings: with which it was.
        """

    @abstractmethod
    def against(self, counts: Counts, model: Model, documents: Ints, other: Ints) -> list[str]:
        """The tokens of each item that speak most for another class than its label, four at most, joined by commas.

        Args:
            counts: all documents.
            model: trained on them.
            documents: documents that stand for the items, shape (m,).
            other: index of the other class, shape (m,).
        """

    @abstractmethod
    def summary(self, train: Corpus, test: Corpus) -> dict[str, Any]:
        """Entries of summary.json that only this task has."""

    def accuracy_without(
        self, tokens: set[str], train: Part, test: Part, model: Model, f: Floats, settings: TrainSettings
    ) -> tuple[Share, Share] | None:
        """Test accuracy with all token types, and of the same model trained without some of them.

        Every type that contains one of the tokens goes too, so that "4 10" leaves nothing of itself in "gave 4 10".

        Args:
            tokens: to leave out.
            train, test: the two sides.
            model: trained with all types.
            f: its decision values of the test documents, shape (n, H).
            settings: with which it was trained.

        Returns:
            Both; None if no type contains any of the tokens, or nothing else is left.
        """
        keep = types_without(train.counts, tokens)
        if keep is None:
            return None
        parts = [
            replace(c, matrix=sp.csr_array(c.matrix[:, keep]), tokens=np.asarray(c.tokens, dtype=object)[keep])
            for c in (train.counts, test.counts)
        ]
        without = self.refit(parts[0], model, train.counts.n_documents, settings)
        correct = self.correct(self.decide(without, parts[1].matrix), parts[1])
        return self.accuracy(f, test), Share.over(correct, self.units(test.corpus))


def types_without(counts: Counts, tokens: set[str]) -> Ints | None:
    """The token types that contain none of the tokens; None where all do, or none does."""
    if not tokens:
        return None

    def contains(token: str) -> bool:
        if is_formatting(token):
            return token in tokens
        words = token.split(" ")
        runs = (" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1))
        return any(run in tokens for run in runs)

    every = pl.Series(counts.tokens, dtype=pl.String)
    # as text first: of half a million types a few are left to be looked into
    likely = np.flatnonzero(every.str.contains_any(list(tokens)).to_numpy())
    gone = [i for i in likely.tolist() if contains(every[i])]
    keep = np.setdiff1d(np.arange(counts.n_types), gone)
    return None if len(keep) in (0, counts.n_types) else keep
