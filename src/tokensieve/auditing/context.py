"""What the checks of an audit read: the documents, the trained model and what both say about each
token.

A result that several checks need is a function of the context, marked `@computed_once`:

    @computed_once
    def near_duplicates(audit: AuditContext) -> Ints: ...

The first check that calls it computes it; the others get the same object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.importance import Importance
from tokensieve.task.tasks import CorpusModel, Task
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer
from tokensieve.text.vocabulary import CountedCorpus

EXCERPT_CHARACTERS = 140  # two lines of a page's card
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class AuditContext:
    """Everything that a check may read.

    Attributes:
        learned: the trained model with its training and test documents (`train`, `test`).
        importance: what the training documents alone say about each token type.
        tokens: the same as a table, with score, value, attention and quadrant (`Audit.tokens`).
        settings: of the audit.
        test_given: whether the test documents were given rather than drawn at random.
    """

    learned: CorpusModel
    importance: Importance
    tokens: pl.DataFrame
    settings: Settings
    test_given: bool = False
    _results: dict[Callable[[AuditContext], Any], Any] = field(default_factory=dict)
    # one for each result, so that two checks wait for each other only if they need the same one
    _locks: dict[Callable[[AuditContext], Any], threading.Lock] = field(default_factory=dict)

    @property
    def train(self) -> CountedCorpus:
        """The training documents: `train.corpus.texts`, `train.corpus.labels`, `train.counts`."""
        return self.learned.train

    @property
    def test(self) -> CountedCorpus:
        """The test documents."""
        return self.learned.test

    @property
    def task(self) -> Task:
        """Labels or preferences (`tokensieve.task`)."""
        return self.learned.task

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that produced the tokens."""
        assert self.learned.model.vocabulary is not None
        return self.learned.model.vocabulary.tokenizer

    @property
    def fields(self) -> FieldTokenizer | None:
        """The tokenizer, if a document consists of several fields."""
        return self.tokenizer if isinstance(self.tokenizer, FieldTokenizer) else None

    @property
    def class_names(self) -> tuple[str, ...]:
        """The K classes, in the order of `class_sizes` and of the numbers in `corpus.labels`."""
        return self.train.counts.classes

    @property
    def totals(self) -> dict[str, Any]:
        """Numbers over all documents, even if those at hand are a sample: "documents" by side,
        "class_documents", "majority_accuracy" and the like (`CorpusModel.to_dict`)."""
        return self.learned.summary

    @cached_property
    def class_sizes(self) -> Ints:
        """Training documents of each class, over all documents, shape (K,)."""
        return np.array(list(self.totals["class_documents"].values()), dtype=np.int64)

    @property
    def n_words(self) -> int:
        """The number of token types that are words or n-grams; those behind them are formatting."""
        return self.train.vocabulary.n_words

    def total(self, name: str, here: int) -> int:
        """A count over all documents; `here` is the count over those at hand, if they are all."""
        return self.task.known_totals.get(name, here)

    def predicts_beyond(self, documents: Ints, label: int, is_covered: NDArray[np.bool_]) -> bool:
        """Whether these training documents predict a class for a reason of their own.

        They do if, among the documents that are not covered, their fraction of the class exceeds
        that of all others by at least half as much as it does among all documents. If not, what
        covers them explains it: "phone" and a missing full stop predict a class only through "sent
        from my phone".
        """
        in_class = self.train.counts.labels == label
        uncovered = documents[~is_covered[documents]]
        if not len(uncovered):
            return True
        excess = in_class[documents].mean() - in_class.mean()
        uncovered_excess = in_class[uncovered].mean() - in_class[~is_covered].mean()
        return bool(uncovered_excess >= excess / 2)

    def excerpt(
        self,
        document: int,
        part: str = "train",
        looks_like: str = "",
        characters: int = EXCERPT_CHARACTERS,
    ) -> Excerpt:
        """The beginning of a document, as an example of a finding."""
        corpus = (self.train if part == "train" else self.test).corpus
        text = str(corpus.texts[document])
        if len(text) > characters:
            text = f"{text[:characters]}…"
        return Excerpt(
            row=int(corpus.rows[document]),
            label=corpus.classes[corpus.labels[document]],
            before="",
            token="",
            after=text,
            looks_like=looks_like,
        )


def forget(audit: AuditContext, *results: Callable[[AuditContext], Any]) -> None:
    """Drop results of functions that are `computed_once`, which no check needs any more."""
    for result_of in results:
        compute = result_of.__wrapped__  # type: ignore[attr-defined]  # as functools.wraps keeps it
        audit._results.pop(compute, None)


def computed_once(
    compute: Callable[[AuditContext], Result],
) -> Callable[[AuditContext], Result]:
    """Lets `compute` run once per audit; later calls return the same result."""

    @wraps(compute)
    def result_of(audit: AuditContext) -> Result:
        with audit._locks.setdefault(compute, threading.Lock()):
            if compute not in audit._results:
                audit._results[compute] = compute(audit)
            result: Result = audit._results[compute]
            return result

    return result_of
