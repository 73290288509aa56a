"""What is learned from a corpus: labels, scores, or preferences between two texts; no other module
distinguishes these.

A corpus is made of *items*: documents with labels or scores, or pairs of documents, the first of
which is preferred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve import __version__
from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.pairs import pair_importance
from tokensieve.model.attention import (
    Model,
    attention,
    attention_sums,
    decide,
    per_class,
    probabilities,
    with_sink,
)
from tokensieve.model.choice import best_scale
from tokensieve.model.fit import fit, refit
from tokensieve.model.settings import TrainSettings
from tokensieve.model.start import prior_of
from tokensieve.name_lists import joined_names
from tokensieve.progress import Clock, Progress, check_not_forked, silent
from tokensieve.read.corpus import Corpus
from tokensieve.read.split import draw_units, folds, split_corpus
from tokensieve.task.baseline import BaselineData, baseline_correct
from tokensieve.task.ridge import RidgeData
from tokensieve.task.score_measures import ScoreMeasures
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import CountedCorpus, count_corpus

S = TypeVar("S")
MAX_OPPOSING = 4  # tokens listed for an item
MANY_FOLDS = 5
MAX_DOCUMENTS_OF_MANY_FOLDS = 5_000  # of so few, five models take seconds


class Task:
    """What is learned, with everything that differs between labels (the default) and preferences.

    Attributes:
        size: documents of an item.
        classifies: whether a document alone has a predicted class, so that there are recall by
            class, calibration and a learning curve.
        strengths: C of the logistic regressions of `baseline`, to choose from.
        left_out: names of checks, and of other parts of an audit, that cannot be computed where the
            documents are stored.
        known_totals: counts over all documents, by name, if those at hand are a sample.
    """

    size = 1
    classifies = True
    strengths = 1.0, 10.0, 100.0  # scikit-learn's default and less regularisation
    left_out: tuple[str, ...] = ()
    known_totals: Mapping[str, int] = {}

    def units(self, corpus: Corpus) -> Ints | None:
        """Group of each item, shape (items,); None if every item is independent."""
        return corpus.units

    def decide(self, model: Model, matrix: sp.csr_array) -> Floats:
        """Logits of documents, shape (n, outputs); sigmoid or softmax makes them probabilities.

        Those of a preference are differences to the other side of the pair.
        """
        return model.logits(matrix)

    def correct(self, f: Floats, counts: Counts) -> Floats:
        """Mark the items that are predicted correctly: 1, ½ for a tie, else 0, shape (items,).

        An item is a document, or a pair of them. `f` are the logits, shape (n, outputs).
        """
        return np.asarray(decide(f) == counts.labels, dtype=np.float64)

    def importance(self, part: CountedCorpus) -> Importance:
        """The statistics of each token type, formatting included, that need no model."""
        return token_importance(part.counts, part.n_formatting, part.corpus.units)

    def held_out(self, train: CountedCorpus, seed: int) -> NDArray[np.bool_]:
        """A tenth of the items, on which the strength of `baseline` is chosen, shape (items,)."""
        n = train.counts.n_documents
        return np.isin(np.arange(n), np.random.default_rng(seed).permutation(n)[: max(n // 10, 1)])

    def parts(self, train: CountedCorpus, seed: int) -> list[NDArray[np.bool_]]:
        """The folds of the items, each of shape (items,), held out in turn; an empty list if the
        documents do not allow a split."""
        counts = train.counts
        units = train.corpus.units
        k = _number_of_folds(counts, units)
        if k == 0:
            return []
        if units is not None:
            documents = np.arange(counts.n_documents)
            return [
                np.isin(documents, held_out) for _, held_out in folds(counts.labels, k, seed, units)
            ]
        fold = _stratified_folds(counts.labels, k, seed)
        return [fold == i for i in range(k)]

    def out_of_fold(
        self, train: CountedCorpus, model: Model, settings: TrainSettings
    ) -> Floats | None:
        """Probabilities of each document's classes, shape (n, K), from models that were not trained
        on its group.

        One scale for all of them is chosen to minimize the loss over all documents, since the scale
        of `model` was chosen for that model alone. Both documents of a pair get the same
        probability.
        """
        counts = train.counts
        parts = self.parts(train, settings.seed)
        if not parts:
            return None
        f = np.zeros((counts.n_documents, model.values.shape[1]))
        for part in parts:
            is_held_out = np.repeat(part, self.size)
            refitted = refit(counts.rows(~is_held_out), model, counts.n_documents, settings)
            f[is_held_out] = self.decide(refitted, counts.rows(is_held_out).matrix)
        if self.classifies:
            prior = prior_of(counts.weighted_class_sizes)
            scale = best_scale(f, prior, counts.labels, counts.weights)
        else:
            prior = np.zeros(1)
            scale = best_scale(f[::2], prior, np.ones(len(f) // 2, dtype=np.int64))
        return probabilities(prior + scale * (f - prior))

    def folds(
        self, train: CountedCorpus, model: Model, settings: TrainSettings
    ) -> Callable[[CountedCorpus], Floats] | None:
        """`out_of_fold` for any subset of the training documents."""
        p = self.out_of_fold(train, model, settings)
        return None if p is None else lambda part: p

    def opposing_tokens(
        self, counts: Counts, model: Model, documents: Ints, other: Ints
    ) -> list[str]:
        """The strongest evidence in some items for a class other than the label: up to four tokens
        each, joined by commas.

        `counts` are all documents; `documents`, shape (m,), represent the items, and `other`, shape
        (m,), is the class of each.
        """
        part = counts.rows(documents)
        matrix = part.matrix
        q = attention(matrix, model.scores)
        values = per_class(model.values)
        tokens = []
        for i, (label, k) in enumerate(zip(part.labels, other, strict=True)):
            document = slice(matrix.indptr[i], matrix.indptr[i + 1])
            types = matrix.indices[document]
            push = q[document] * (values[types, k] - values[types, label])
            strongest = types[np.argsort(-push)[:MAX_OPPOSING]]
            tokens.append(", ".join(str(counts.tokens[s]) for s in strongest))
        return tokens

    def text_options(self, corpus: Corpus, known: bool) -> list[str]:
        """The command-line options that name the columns of the text; a single column only if it is
        `known` to be in the source."""
        names: Sequence[str] = [name for name in corpus.fields if name not in corpus.columns]
        if not names and known:
            names = corpus.reading.columns[:1]
        return [part for name in names for part in ("--text", name)]

    def summary(self, train: Corpus, test: Corpus) -> dict[str, object]:
        """The entries of summary.json that are specific to this task."""
        return {}

    def totals(self, learned: CorpusModel) -> dict[str, Any]:
        """The entries of summary.json about sizes and accuracy."""
        train = learned.train.counts
        test = learned.test.counts
        is_correct = decide(learned.f) == test.labels
        return learned.totals(
            classes=train.classes,
            train_sizes=train.class_sizes,
            test_sizes=test.class_sizes,
            correct=np.bincount(test.labels[is_correct], minlength=train.n_classes),
            n_types=train.n_types,
            unknown_share=learned.unknown_share,
        )

    def refit(
        self, types: Ints, train: CountedCorpus, model: Model, settings: TrainSettings
    ) -> Model:
        """`model`, trained again on some of the token types alone."""
        return refit(train.with_types(types), model, train.counts.n_documents, settings)

    def attention_sums(self, part: CountedCorpus, model: Model) -> Floats:
        """`tokensieve.model.attention.attention_sums` of all documents, shape (3, |S|)."""
        return attention_sums(part.counts.matrix, model.scores)

    def total(self, side: CountedCorpus, function: Callable[..., S], *arguments: object) -> S:
        """Add up `function(part, *arguments)` over all documents of one side.

        They may be stored in parts of any size, on other machines (see `tokensieve.task.cluster`);
        here they are one part.
        """
        return function(side, *arguments)

    def document_units(self, corpus: Corpus) -> Ints | None:
        """Group of each document, shape (n,); None if every document is independent."""
        units = self.units(corpus)
        return None if units is None else np.repeat(units, self.size)

    def items(self, documents: int) -> Ints:
        """The document that represents each item of a corpus of this many documents, shape
        (items,)."""
        return np.arange(0, documents, self.size)

    def accuracy(self, f: Floats, part: CountedCorpus) -> Share:
        """Fraction of items predicted correctly, with its interval over groups."""
        return self.share(self.correct(f, part.counts), part.corpus)

    def share(self, right: Floats, corpus: Corpus) -> Share:
        """Fraction of the items of a corpus that are right, shape (items,), with its interval over
        groups."""
        return Share.over(right, self.units(corpus))

    def baseline(self, train: CountedCorpus, test: CountedCorpus, seed: int) -> Floats:
        """Mark which test items TF-IDF (sublinear) and logistic regression predict correctly, as
        `correct` does for the model.

        It has the same words. C is chosen on held-out items. For pairs it is fitted to the
        differences, each pair in both orders, without an intercept.
        """
        return baseline_correct(
            BaselineData(
                train=train.counts.matrix,
                test=test.counts.matrix,
                n_words=train.counts.n_types - train.n_formatting,
                labels=train.counts.labels,
                weights=train.counts.document_weights,
                truth=test.counts.labels,
                is_held_out=np.repeat(self.held_out(train, seed), self.size),
                strengths=self.strengths,
                are_pairs=not self.classifies,
            )
        )


class Labels(Task):
    """Documents with one class each."""


class Scores(Task):
    """Documents with a score each; the decision value of a document is its predicted score.

    Their audit (`tokensieve.auditing.scores`) has checks and files of its own.
    """

    classifies = False

    def totals(self, learned: CorpusModel) -> dict[str, Any]:
        train = learned.train.counts
        test = learned.test.counts
        assert train.numbers is not None and test.numbers is not None
        measures = self.measures(learned.f[:, 0], learned.test, learned.settings.seed)
        return {
            "task": "scores",
            "documents": {"train": train.n_documents, "test": test.n_documents},
            "token_types": train.n_types,
            "mean_score": float(train.numbers.mean()),
            "score_range": [float(train.numbers.min()), float(train.numbers.max())],
            "r2": measures.r2.value,
            "mae": measures.mae.value,
            "spearman": measures.spearman.value,
            "median_score_mae": float(np.abs(test.numbers - np.median(train.numbers)).mean()),
            "unknown_share": learned.unknown_share,
        }

    def measures(self, predicted: Floats, test: CountedCorpus, seed: int) -> ScoreMeasures:
        """Measure predictions of the test documents' scores, shape (n,)."""
        assert test.counts.numbers is not None
        return ScoreMeasures.of(predicted, test.counts.numbers, seed, self.units(test.corpus))

    def baseline_data(self, train: CountedCorpus, test: CountedCorpus, seed: int) -> RidgeData:
        """The counts and scores that `ridge_predictions` and `ordinal_predictions` read."""
        assert train.counts.numbers is not None
        return RidgeData(
            train=train.word_counts.matrix,
            test=test.word_counts.matrix,
            scores=train.counts.numbers,
            weights=train.counts.document_weights,
            is_held_out=self.held_out(train, seed),
        )

    def out_of_fold_scores(
        self, train: CountedCorpus, model: Model, settings: TrainSettings
    ) -> Floats | None:
        """The score that models not trained on a document's group predict for it, shape (n,);
        None if the documents do not allow a split."""
        counts = train.counts
        predicted = np.zeros(counts.n_documents)
        parts = self.parts(train, settings.seed)
        for is_held_out in parts:
            refitted = refit(counts.rows(~is_held_out), model, counts.n_documents, settings)
            matrix = counts.rows(is_held_out).matrix
            predicted[is_held_out] = refitted.logits(matrix)[:, 0]
        return predicted if parts else None


class Preferences(Task):
    """Pairs of answers, rows 2i (preferred) and 2i + 1; only differences of decision values mean
    anything."""

    size = 2
    classifies = False
    strengths = 0.3, 1.0, 3.0  # of differences, which are longer than a text and say less

    def units(self, corpus: Corpus) -> Ints:
        assert corpus.pairs is not None
        return corpus.pairs.units

    def share(self, right: Floats, corpus: Corpus) -> Share:
        assert corpus.pairs is not None
        return Share.over(*corpus.pairs.without_mirrored_ties(right))

    def decide(self, model: Model, matrix: sp.csr_array) -> Floats:
        m = model.margins(matrix)
        return np.column_stack([m, -m]).reshape(-1, 1)

    def correct(self, f: Floats, counts: Counts) -> Floats:
        m = f[::2, 0]
        return np.asarray((m > 0) + 0.5 * (m == 0))

    def importance(self, part: CountedCorpus) -> Importance:
        return pair_importance(part.counts, self.units(part.corpus), part.n_formatting)

    def held_out(self, train: CountedCorpus, seed: int) -> NDArray[np.bool_]:
        return draw_units(self.units(train.corpus), 0.1, seed)

    def parts(self, train: CountedCorpus, seed: int) -> list[NDArray[np.bool_]]:
        units = self.units(train.corpus)
        names = np.random.default_rng(seed).permutation(np.unique(units))
        if len(names) < 2:
            return []
        return [np.isin(units, names[half::2]) for half in range(2)]

    def opposing_tokens(
        self, counts: Counts, model: Model, documents: Ints, other: Ints
    ) -> list[str]:
        """The tokens that reduce the margin of each pair most, whichever answer contains them."""
        u, w = model.table
        tokens = []
        for preferred in documents.tolist():
            matrix = with_sink(sp.csr_array(counts.matrix[preferred : preferred + 2]))
            parts = attention(matrix, u) * w[matrix.indices, 0]
            parts[matrix.indptr[1] :] *= -1
            push = np.bincount(matrix.indices, parts, matrix.shape[1])[:-1]
            strongest = np.argsort(push, kind="stable")[:MAX_OPPOSING]
            tokens.append(", ".join(str(counts.tokens[s]) for s in strongest if push[s] < 0))
        return tokens

    def text_options(self, corpus: Corpus, known: bool) -> list[str]:
        assert corpus.pairs is not None
        return ["--pairs", joined_names(corpus.pairs.columns)]

    def summary(self, train: Corpus, test: Corpus) -> dict[str, object]:
        assert train.pairs is not None and test.pairs is not None
        sizes = {"train": len(train.pairs.units), "test": len(test.pairs.units)}
        return {
            "pairs": {"columns": list(train.pairs.columns), "by": train.pairs.group_column, **sizes}
        }


@dataclass(frozen=True, repr=False)
class CorpusModel:
    """A model trained on one side of a corpus, and tested on the other.

    Attributes:
        f: logits of the test documents, shape (n, outputs); for pairs, each minus that of the other
            side.
        notes: what was noticed while the data was read, in plain words.
        seconds: of each stage.
    """

    model: Model
    train: CountedCorpus
    test: CountedCorpus
    f: Floats
    notes: list[str]
    settings: TrainSettings
    task: Task
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"CorpusModel({self.train.corpus.name!r}, {self.train.counts.n_types:,} token types)"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """`to_dict`, computed once."""
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        totals = self.task.totals(self)
        columns = {"columns": list(self.train.corpus.reading.columns)}
        return {
            "name": self.train.corpus.name,
            **totals,
            "seconds": self.seconds,
            "seed": self.settings.seed,
            "settings": self.settings.to_dict() | columns,
            "version": __version__,
            "notes": self.notes,
        } | self.task.summary(self.train.corpus, self.test.corpus)

    @property
    def unknown_share(self) -> float:
        """Fraction of the words of the test documents that are no token types."""
        return float(self.test.unknown.sum() / max(self.test.stream.n_tokens, 1))

    @staticmethod
    def totals(
        classes: tuple[str, ...],
        train_sizes: Ints,
        test_sizes: Ints,
        correct: Ints,
        n_types: int,
        unknown_share: float,
    ) -> dict[str, Any]:
        """The entries of summary.json for these numbers of training, test and correctly predicted
        documents by class."""
        n_test = max(test_sizes.sum(), 1)
        recall = {
            name: n_correct / n if n else None
            for name, n_correct, n in zip(
                classes, correct.tolist(), test_sizes.tolist(), strict=True
            )
        }
        return {
            "classes": classes,
            "documents": {"train": int(train_sizes.sum()), "test": int(test_sizes.sum())},
            "class_documents": dict(zip(classes, train_sizes.tolist(), strict=True)),
            "token_types": n_types,
            "test_accuracy": float(correct.sum() / n_test),
            "majority_accuracy": float(test_sizes[train_sizes.argmax()] / n_test),
            "class_recall": recall,
            "unknown_share": unknown_share,
        }


class OfCorpusModel:
    """What the documents of a model are; for results that hold one as `learned`."""

    learned: CorpusModel

    @property
    def name(self) -> str:
        """The source."""
        return self.learned.train.corpus.name

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names; with two, the second is y = +1."""
        return self.learned.train.counts.classes

    @property
    def documents(self) -> dict[str, int]:
        """{"train": …, "test": …}."""
        return dict(self.learned.summary["documents"])

    @property
    def class_documents(self) -> dict[str, int]:
        """Training documents per class."""
        return dict(self.learned.summary["class_documents"])

    @property
    def token_types(self) -> int:
        """The number of token types, |S|."""
        return self.learned.train.counts.n_types


def _number_of_folds(counts: Counts, units: Ints | None) -> int:
    """The number of folds for cross-validation that the documents allow, and that are worth their
    time; 0 if they allow none.

    A model of some folds can know every class only if each class has documents of at least as many
    groups as there are folds.
    """
    labels = counts.labels
    if units is not None:
        labels = np.unique(np.stack([labels, units]), axis=1)[0]  # one label per group and class
    sizes = np.bincount(labels, minlength=counts.n_classes)
    smallest = int(sizes[counts.class_sizes > 0].min())
    if counts.n_documents <= MAX_DOCUMENTS_OF_MANY_FOLDS and smallest >= MANY_FOLDS:
        return MANY_FOLDS
    return 2 if smallest >= 2 else 0


def _stratified_folds(labels: Ints, k: int, seed: int) -> Ints:
    """The fold of each document, as of scikit-learn's StratifiedKFold, which takes a second to
    import."""
    rng = np.random.RandomState(seed)
    fold = np.empty(len(labels), dtype=np.int64)
    n_assigned = 0
    in_order_of_appearance = np.sort(np.unique(labels, return_index=True)[1])
    for label in labels[in_order_of_appearance]:
        is_of_class = labels == label
        turns = np.sort((n_assigned + np.arange(np.count_nonzero(is_of_class))) % k)
        rng.shuffle(turns)
        fold[is_of_class] = turns
        n_assigned += len(turns)
    return fold


def train_corpus(
    corpus: Corpus,
    settings: TrainSettings | None = None,
    progress: Progress = silent,
    clock: Clock | None = None,
    when_counted: Callable[[Task, CountedCorpus, CountedCorpus], None] | None = None,
) -> CorpusModel:
    """Split, count, learn and test; without a test set a seeded, stratified share of the documents
    is set aside.

    Args:
        clock: keeps the seconds of the stages.
        when_counted: called with the task and both sides before training.

    Raises:
        InputError: the corpus cannot be split, or no token is frequent enough.
    """
    check_not_forked()
    settings = settings or TrainSettings()
    clock = clock or Clock()
    task = _task_of(corpus)
    notes = _notes(corpus)
    if corpus.test is None:
        corpus = split_corpus(corpus, share=settings.test_share, seed=settings.seed)
    assert corpus.test is not None
    notes += _weight_notes(corpus)
    settings = settings.of_documents(len(corpus.texts))
    train, test = _count_both(corpus, corpus.test, settings, progress)
    clock.lap("tokenizing")
    if when_counted:
        when_counted(task, train, test)
    model = fit(
        train.counts,
        settings,
        train.vocabulary,
        progress,
        task.units(corpus),
        pairs=corpus.pairs is not None,
    )
    f = task.decide(model, test.counts.matrix)
    clock.lap("training")
    notes += train.group_notes(test)
    return CorpusModel(model, train, test, f, notes, settings, task, clock.seconds)


def _task_of(corpus: Corpus) -> Task:
    """The task that fits a corpus: labels, preferences or scores."""
    if corpus.pairs is not None:
        return Preferences()
    return Labels() if corpus.scores is None else Scores()


def _notes(corpus: Corpus) -> list[str]:
    """Sentences on what was noticed while reading; each once, though both sides may have it.

    With a test source of its own, each line says which of the two sources it is about.
    """
    lines = corpus.reading.lines()
    if corpus.test is None:
        return lines
    detected = corpus.reading.detected
    notes = [
        line if line in detected or " test " in line else f"training documents: {line}"
        for line in lines
    ]
    of_test = [line for line in corpus.test.reading.lines() if line not in detected]
    return [*notes, *(f"test documents: {line}" for line in of_test)]


def _weight_notes(train: Corpus) -> list[str]:
    """Sentences on the weights of documents, if there are any."""
    if train.weights is None:
        return []
    low = float(train.weights.min())
    high = float(train.weights.max())
    return [
        f"the model weights documents ({low:g} to {high:g}); importance, findings and accuracy "
        "count them equally"
    ]


def _count_both(
    corpus: Corpus, test: Corpus, settings: TrainSettings, progress: Progress
) -> tuple[CountedCorpus, CountedCorpus]:
    """Count training and test documents; the vocabulary is that of the training documents."""
    n_train = len(corpus.texts)
    n = n_train + len(test.texts)
    counted = count_corpus(
        corpus,
        tokenizer=settings.make_tokenizer(),
        ngrams=settings.ngrams,
        min_documents=settings.min_documents or 1,
        formatting=settings.formatting,
        progress=lambda read: progress("tokenizing", read / n),
    )
    counted_test = count_corpus(
        test,
        counted.vocabulary,
        progress=lambda read: progress("tokenizing", (n_train + read) / n),
    )
    return counted, counted_test
