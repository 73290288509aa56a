"""Train a model on labelled documents on a Dask cluster, like `tokensieve.task.tasks.train_corpus`
on one machine.

Workers read the partitions, count words and add up sums with the functions of one machine; the
client never holds the documents. Every result is a pure function of the partitions and their order,
so a worker that dies changes no bit. Vocabulary and importance are those of one machine, to the
bit. Documents are set aside for testing by a digest of their text (or group).

Training is by parameter averaging (McMahan et al. 2017, FedAvg): in each round every partition
takes `⌈√P⌉` passes of minibatch Adam over its own documents from the common (u, w) (fewer where a
pass has hundreds of steps), and the results are averaged, weighted by documents, pairwise on the
workers and in a fixed order. What crosses the network per round and partition is (u, w) both ways.
The number of rounds is chosen on held-out documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve import __version__
from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, importance_of
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import (
    Model,
    attention_sums,
    decide,
    logits,
    loss_and_slope,
    probabilities,
)
from tokensieve.model.choice import best_scale
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.order import in_canonical_order
from tokensieve.model.partitions import Partitions, hashed_numbers
from tokensieve.model.read_partitions import (
    REPEATS,
    StoredSide,
    count_copies,
    read_partitions,
)
from tokensieve.model.settings import TrainSettings
from tokensieve.model.source_pieces import source_paths
from tokensieve.model.start import initial_table, prior_of
from tokensieve.progress import Clock, Progress, silent
from tokensieve.read.corpus import Corpus
from tokensieve.read.reading_report import ReadingReport
from tokensieve.task.tasks import CorpusModel, Labels
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer
from tokensieve.text.vocabulary import CountedCorpus, Vocabulary, count_corpus, learn_vocabulary
from tokensieve.wording import plural

ROUNDS = 8  # at most; how many of them are taken is chosen on held-out documents
PATIENCE = 2  # rounds without a lower held-out loss, after which no further round is tried
MAX_LOCAL_STEPS = 800  # of a partition in one round, unless one pass has more
MIN_CLASS_SIZE = 10  # documents; of fewer, none can be spared to choose the number of rounds
LEFT_OUT = ("curve",)  # of an audit
LEFT_OUT_OF_SAMPLE = ("curve", "groups")  # documents sharing rare words are hardly ever in one
MAX_LISTED_SOURCES = 3


@dataclass(frozen=True)
class Draw:
    """A fraction of the documents, drawn by digests with a salt; the others if not `is_drawn`."""

    fraction: float
    salt: str
    is_drawn: bool

    def rows(self, part: CountedCorpus) -> NDArray[np.bool_]:
        """Whether each document is one of them, as are all copies of its text (or its group)."""
        by = part.corpus.keys if part.corpus.groups is None else part.corpus.groups
        is_below = hashed_numbers(by, self.salt) < self.fraction * 2**32
        rows: NDArray[np.bool_] = is_below.to_numpy()
        return rows if self.is_drawn else ~rows


# two halves without a document in both: a model of each judges the labels of the other
HALVES = (Draw(0.5, "half", False), Draw(0.5, "half", True))


class RoundState(NamedTuple):
    """The model after a round, and the steps of all partitions in it."""

    u: Floats
    w: Floats
    steps: int


@dataclass(frozen=True)
class Tested:
    """How a model does on documents; `a + b` is the same of both together.

    Attributes:
        loss: the sum over documents.
        correct: documents predicted correctly, by class, shape (K,).
        unknown_words, words: of all documents.
    """

    loss: float
    documents: int
    correct: Ints
    unknown_words: int
    words: int

    def __add__(self, other: Tested) -> Tested:
        return Tested(
            loss=self.loss + other.loss,
            documents=self.documents + other.documents,
            correct=self.correct + other.correct,
            unknown_words=self.unknown_words + other.unknown_words,
            words=self.words + other.words,
        )


class TrainedOnCluster:
    """Documents on a cluster, their statistics, and a model trained on them (`learn_on`).

    Attributes:
        importance: as `token_importance` of all training documents on one machine.
        model: as after `fit`; its `n_steps_` are minibatch steps of the final training, over all
            rounds and partitions.
        attention: as in `AttentionClassifier.effects`, but 0 for a type in no document, shape
            (types,).
        reading: what was noticed while reading, and the columns of text and label.
        sizes: documents by side ("train", "test") and class, shape (2, K).
        tested: the model on the test documents.
        rounds, validation: rounds of training on all documents; mean loss on held-out documents
            after each trial round.
        train, test: the documents on the cluster, as `CountedCorpus`; None without test documents.
        sample: of both, in partitions, as in `Corpus.frame` but for "label", the name of the class,
            and "test".
        copies: as of `count_copies`.
    """

    def __init__(
        self,
        client: Any,
        source: Any,
        settings: TrainSettings,
        progress: Progress,
        for_audit: bool = False,
        near_copies: bool = False,
    ) -> None:
        """Let the workers read the source, count words and train; this takes all of the time.

        Args:
            client: a `dask.distributed.Client`.
            source: paths for the workers to read, or data on the cluster.
            settings: what to read, and how to train.
            progress: told of each stage as it begins.
            for_audit: draw a sample of documents, whose texts the client may fetch (`sample`).
            near_copies: count copies that differ in some words, too, which takes longer.
        """
        settings.check_for_cluster()
        progress("reading", 0.0)
        tokenizer = _tokenizer(settings)
        documents = read_partitions(client, source, settings, tokenizer, for_audit, near_copies)
        self.sample = documents.sample
        self.classes = documents.classes
        self.sizes = documents.sizes
        self.reading = documents.report
        self.partitions = len(documents.train.parts)
        self.settings = settings.of_documents(int(self.sizes[0].sum()))
        progress("vocabulary", 0.0)
        self.vocabulary = self._learn_vocabulary(documents.train, documents.tokenizer)
        progress("copies", 0.0)  # before documents are counted, which takes most memory
        self.copies = count_copies(documents.train, documents.test, self.classes, near_copies)
        self.reading.counts.update({name: self.copies.pop(name, 0) for name in REPEATS})
        progress("importance", 0.0)
        tokenizer = documents.tokenizer
        self.train = documents.train.each(_counted, self.vocabulary, self.classes, store=True)
        self.test = None
        if documents.test is not None:
            self.test = documents.test.each(_counted, self.vocabulary, self.classes, store=True)
        del documents  # the cluster forgets the texts
        self.importance = self._importance()
        self.rounds = ROUNDS
        self.validation: list[float] = []
        if self.sizes[0].min() >= MIN_CLASS_SIZE:
            self._choose_rounds(progress)
        table = self.trained(progress=progress)
        model = replace(table, vocabulary=self.vocabulary, tokens=self.vocabulary.tokens)
        self.model = AttentionClassifier.of(model, tokenizer=tokenizer)
        progress("attention", 0.0)
        self.attention_sums: Floats = self.train.total(
            lambda part, u: attention_sums(part.counts.matrix, u), model.scores
        )
        self.attention = self.attention_sums[2] / np.maximum(self.importance.documents, 1)
        progress("testing", 0.0)
        self.tested = Tested(0.0, 0, np.zeros(len(self.classes), np.int64), 0, 0)
        if self.test is not None:
            state = RoundState(model.scores, model.values, model.steps)
            self.tested = self.test.total(_tested, state, model.prior)

    def _learn_vocabulary(self, train: Partitions, tokenizer: Tokenizer) -> Vocabulary:
        """The vocabulary of the training documents, formatting included if it is counted."""
        min_documents = self.settings.min_documents or 1
        streams = train.each(itemgetter(0))
        vocabulary = learn_vocabulary(streams, tokenizer, self.settings.ngrams, min_documents)
        if not self.settings.formatting:
            return vocabulary
        documents_with_feature = train.total(_documents_with_feature)
        n_documents = int(self.sizes[0].sum())
        return vocabulary.with_formatting(documents_with_feature, n_documents, min_documents)

    def _importance(self) -> Importance:
        """Importance of each token type from the sums of all workers, with exact arithmetic on
        counts."""
        words, marks, groups = self.train.total(_token_sums)
        return importance_of(
            words,
            self.vocabulary.tokens,
            self.classes,
            marks,
            self.sizes[0],
            None if self.settings.by is None else groups,
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json, except for times and settings."""
        tested = self.tested
        totals = CorpusModel.totals(
            classes=self.classes,
            train_sizes=self.sizes[0],
            test_sizes=self.sizes[1],
            correct=tested.correct,
            n_types=len(self.importance.tokens),
            unknown_share=float(tested.unknown_words / max(tested.words, 1)),
        )
        return totals | {
            "version": __version__,
            "notes": self.reading.lines(),
            "partitions": self.partitions,
            "rounds": self.rounds,
            "validation": self.validation,
            # what one partition sends, and receives, in a round: 8 bytes · |S| · (1 + outputs)
            "bytes_per_round": self.model.scores_.nbytes + self.model.values_.nbytes,
        }

    def trained(
        self, types: Ints | None = None, draw: Draw | None = None, progress: Progress = silent
    ) -> Model:
        """A model trained in all rounds.

        Args:
            types: the token types to use; all if None.
            draw: the training documents to use; all if None.
        """
        parts = self.train
        if types is not None:
            parts = parts.each(
                lambda part, types: replace(part, matrix=part.matrix[:, types]), types, store=True
            )
        prior = prior_of(self.sizes[0])
        steps = 0
        states = self._averaged(parts, prior, draw)
        for number, state in zip(range(self.rounds), states, strict=False):
            progress("training", number / self.rounds)
            u, w, steps_of_round = state.result()
            steps += steps_of_round
        return Model(
            np.asarray(self.classes),
            u,
            w,
            prior,
            np.empty(0, dtype=object),  # workers need no names of tokens
            steps=steps,
            settings=self.settings.parameters(),
        )

    def _choose_rounds(self, progress: Progress) -> None:
        """Choose the number of rounds on held-out documents."""
        prior = prior_of(self.sizes[0])
        fraction = self.settings.validation_share
        salt = f"validation {self.settings.seed}"
        training = Draw(fraction, salt, is_drawn=False)
        held_out = Draw(fraction, salt, is_drawn=True)
        for number, state in enumerate(self._averaged(self.train, prior, training)):
            progress("choosing the number of rounds", number / ROUNDS)
            tested = self.train.total(_tested, state, prior, held_out)
            self.validation.append(float(tested.loss / max(tested.documents, 1)))
            if number - int(np.argmin(self.validation)) >= PATIENCE:
                break
        self.rounds = int(np.argmin(self.validation)) + 1

    def _averaged(self, parts: Partitions, prior: Floats, draw: Draw | None) -> Iterator[Any]:
        """The `RoundState` after each round; still on the cluster."""
        settings = self.settings
        n_parts = len(parts.parts)
        passes = math.ceil(math.sqrt(n_parts))
        present, sizes = parts.total(_presence, draw)
        state: Any = RoundState(*initial_table(present, sizes, prior), steps=0)
        for number in range(ROUNDS):
            rate = 1 - number / ROUNDS
            schedule = Schedule(
                10**9,  # steps: so many that the rates stay as they are within a round
                settings.batch_size,
                settings.score_rate * rate,
                settings.value_rate * rate,
                settings.seed + number,
            )
            total = parts.each(_local_sums, state, schedule, passes, draw).sum()
            state = parts.run(_averages, total)
            yield state


def _tokenizer(how: TrainSettings) -> Tokenizer:
    """The tokenizer of the settings.

    Raises:
        InputError: words are to be found by a segmenter.
    """
    if how.words == "segmenter":
        raise InputError(
            "--words segmenter does not work on a cluster yet; leave out --cluster, "
            "and use --stream if the data is larger than memory"
        )
    return how.make_tokenizer()


def learn_on(
    client: Any,
    source: Any,
    settings: TrainSettings | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> TrainedOnCluster:
    """Compute vocabulary, importance and classifier from documents that workers read or already
    hold in memory.

    Args:
        client: a `dask.distributed.Client`.
        source: a path, glob or address that all workers reach, or several; a Dask bag of (text,
            label) pairs, a Dask data frame, or a sequence of delayed values or futures, each a data
            frame (pandas or Polars) or a list of pairs. Rows are read as by `read_corpus`.
        settings: if None, `TrainSettings(test_share=0)`, which trains on all documents.
        options: fields of the settings by name, in place of those in `settings`.
    """
    how = (settings or TrainSettings(test_share=0.0)).with_options(options)
    return TrainedOnCluster(client, source, how, progress or silent)


def _documents_with_feature(side: StoredSide) -> Ints:
    """Documents with each feature of formatting."""
    bits = np.unpackbits(side.documents.value.bits, axis=1)
    return np.asarray(bits.sum(axis=0, dtype=np.int64))


def _token_sums(part: CountedCorpus) -> Sums:
    """Sums of words and formatting, and the documents (or groups) in which each type is present."""
    sums = TokenSums.of_counts(part.counts, part.n_formatting, part.corpus.units)
    return Sums((*sums, part.counts.present))


def _presence(part: CountedCorpus, draw: Draw | None) -> Sums:
    counts = _counts(part, draw)
    return Sums((counts.present, counts.class_sizes))


def _counted(side: StoredSide, vocabulary: Vocabulary, classes: tuple[str, ...]) -> CountedCorpus:
    """The documents as counts; of the vocabulary and the words, only the numbers are passed on."""
    stream = side.tokens.value
    documents = side.documents.value
    index = {name: k for k, name in enumerate(classes)}
    labels = pl.col("label").replace_strict(index, return_dtype=pl.Int64)
    matrix, unknown = vocabulary.count(stream, documents.bits)
    if matrix.nnz and matrix.data.max() < 256:  # a byte for each count: half as many bytes in files
        matrix = matrix.astype(np.uint8)
    types: Any = SimpleNamespace(
        tokens=np.empty(vocabulary.n_types, dtype=object),
        n_words=vocabulary.n_words,
        formatting=vocabulary.formatting,
    )
    words: Any = SimpleNamespace(n_tokens=stream.n_tokens)
    report = ReadingReport(counts=Counter())
    corpus = Corpus(documents.frame.with_columns(labels), classes, "", report)
    return CountedCorpus(matrix, types, unknown, words, corpus)


def _counts(part: CountedCorpus, draw: Draw | None) -> Counts:
    """The counts of the documents drawn, or of all."""
    return part.counts if draw is None else part.counts.rows(draw.rows(part))


def _local_sums(
    part: CountedCorpus,
    state: RoundState,
    schedule: Schedule,
    passes: int,
    draw: Draw | None,
) -> Sums:
    """n·u, n·w, n and the steps taken after some passes of minibatch Adam over the partition's n
    documents.

    They are learned in an order by content. Apart from rounding, neither the order of a partition's
    rows nor that of the partitions matters, only which documents lie together.
    """
    counts = in_canonical_order(_counts(part, draw), None, pairs=False).counts
    u, w, _ = state
    n = counts.n_documents
    if not n:
        return Sums((0 * u, 0 * w, 0, 0))
    steps_per_pass = math.ceil(n / schedule.batch_size)
    steps = steps_per_pass * max(min(passes, MAX_LOCAL_STEPS // steps_per_pass), 1)
    _, u, w = next(train(counts, u, w, schedule, steps))
    return Sums((n * u, n * w, n, steps))


def _averages(sums: Sums) -> RoundState:
    """The means over documents of what `_local_sums` returned for all partitions."""
    u, w, n, steps = sums
    return RoundState(u / n, w / n, steps)


def _tested(
    part: CountedCorpus, state: RoundState, prior: Floats, draw: Draw | None = None
) -> Tested:
    """Test the model on the documents drawn, or on all."""
    counts = _counts(part, draw)
    labels = counts.labels
    f = logits(counts.matrix, state.u, state.w)
    f[np.diff(counts.matrix.indptr) == 0] = prior
    return Tested(
        loss=loss_and_slope(f, labels)[0].sum(),
        documents=len(labels),
        correct=np.bincount(labels[decide(f) == labels], minlength=counts.n_classes),
        unknown_words=int(part.unknown.sum()),
        words=part.stream.n_tokens,
    )


def _out_of_half(part: CountedCorpus, models: Sequence[Model]) -> Floats:
    """Logits of each document by the model that has not seen its half, shape (n, outputs)."""
    f = np.zeros((part.counts.n_documents, models[0].values.shape[1]))
    for half, model in zip(HALVES, reversed(models), strict=True):
        rows = half.rows(part)
        f[rows] = model.logits(part.counts.matrix[rows])
    return f


class _OnCluster(Labels):
    """Labelled documents on a cluster: sums and models cover all of them; only the documents of the
    parts, a sample, are here."""

    def __init__(self, learned: TrainedOnCluster, parts: Sequence[CountedCorpus]) -> None:
        self.learned = learned
        self.test_sample = parts[1]
        self.left_out = LEFT_OUT
        if sum(part.counts.n_documents for part in parts) < learned.sizes.sum():
            self.left_out = LEFT_OUT_OF_SAMPLE
            self.known_totals = learned.copies

    def __reduce__(self) -> tuple[type[Labels], tuple[()]]:
        return Labels, ()  # what the workers need of it

    def total(self, side: CountedCorpus, function: Callable[..., Any], *arguments: object) -> Any:
        is_test = side is self.test_sample
        documents = self.learned.test if is_test else self.learned.train
        assert documents is not None
        return documents.total(function, *arguments)

    def importance(self, part: CountedCorpus) -> Importance:
        return self.learned.importance

    def attention_sums(self, part: CountedCorpus, model: Model) -> Floats:
        return self.learned.attention_sums

    def refit(
        self, types: Ints, train: CountedCorpus, model: Model, settings: TrainSettings
    ) -> Model:
        return self.learned.trained(types)

    def folds(
        self, train: CountedCorpus, model: Model, settings: TrainSettings
    ) -> Callable[[CountedCorpus], Floats] | None:
        """Probabilities of each document by a model of the other half, scaled on the documents at
        hand.

        None if a class has too few documents.
        """
        if self.learned.sizes[0].min() < MIN_CLASS_SIZE:
            return None
        models = [self.learned.trained(draw=half) for half in HALVES]
        prior = prior_of(self.learned.sizes[0])
        scale = best_scale(_out_of_half(train, models), prior, train.counts.labels)
        return lambda part: probabilities(prior + scale * (_out_of_half(part, models) - prior))

    def accuracy(self, f: Floats, part: CountedCorpus) -> Share:
        if part.corpus.units is not None:  # groups are counted in the sample
            return super().accuracy(f, part)
        n_test = int(self.learned.sizes[1].sum())
        return Share.count(int(self.learned.tested.correct.sum()), n_test)

    def summary(self, train: Corpus, test: Corpus) -> dict[str, object]:
        return {name: value for name, value in self.learned.to_dict().items() if name != "notes"}


def train_remote(
    client: Any,
    source: Any,
    settings: TrainSettings,
    progress: Progress,
    clock: Clock,
) -> CorpusModel:
    """Read documents, train a model on them and test it, all on a Dask cluster, for an audit.

    The workers do all of it; what comes back is the model, its statistics, and the texts of a
    sample of documents, which the audit shows.

    Args:
        client: a `dask.distributed.Client`; None for the default one.
        source: paths for the workers to read, or data on the cluster.
        settings: name a test set, or have a fraction to draw for one.
        progress: told of each stage as it begins.
        clock: gets the seconds of each stage.
    """
    from dask.distributed import get_client

    if settings.test is None and settings.split is None and not 0 < settings.test_share < 1:
        raise InputError(f"the test fraction must lie between 0 and 1, not {settings.test_share}")
    current_stage = "reading"

    def begin_stage(stage: str, share: float) -> None:
        nonlocal current_stage
        if stage != current_stage:
            clock.lap(current_stage)  # it took the time since the last lap
            current_stage = stage
        progress(stage, share)

    # settings of an audit have `thorough`; those of training, which have it not, leave nothing out
    near_copies = getattr(settings, "thorough", True)
    trained = TrainedOnCluster(
        client or get_client(),
        source,
        settings,
        begin_stage,
        for_audit=True,
        near_copies=near_copies,
    )
    begin_stage("sample", 0.0)
    parts = _sampled_parts(trained, source)
    train, test = parts
    task = _OnCluster(trained, parts)
    model = trained.model.trained_
    f = model.logits(test.counts.matrix)
    clock.lap("sample")
    notes = _notes(trained, task, train, test)
    return CorpusModel(model, train, test, f, notes, trained.settings, task, clock.seconds)


def _sampled_parts(learned: TrainedOnCluster, source: Any) -> list[CountedCorpus]:
    """The sampled training and test documents, brought here and counted."""
    paths = source_paths(source)[:MAX_LISTED_SOURCES]
    name = ", ".join(PurePath(path).name for path in paths) or "the partitions"
    index = {label: k for k, label in enumerate(learned.classes)}
    label = pl.col("label").replace_strict(index, return_dtype=pl.Int64)
    sample = pl.concat(learned.sample.here()).with_columns(label)
    tokenizer = learned.vocabulary.tokenizer
    fields = tokenizer.fields if isinstance(tokenizer, FieldTokenizer) else ()
    parts = []
    for part_name, is_test in ((name, False), (f"{name} (test)", True)):
        frame = sample.filter(pl.col("test") == is_test).drop("test")
        corpus = Corpus(frame, learned.classes, part_name, learned.reading, fields=fields)
        parts.append(count_corpus(corpus, learned.vocabulary))
    return parts


def _notes(
    learned: TrainedOnCluster, task: _OnCluster, train: CountedCorpus, test: CountedCorpus
) -> list[str]:
    """Sentences for the report on how the cluster's audit differs from one on a single machine."""
    notes = [
        *learned.reading.lines(),
        *train.group_notes(test),
        "trained on a cluster: the model is an average over "
        f"{plural(learned.partitions, 'partition')} of the documents, so its accuracy is similar "
        "to that of training on one machine, but not the same",
    ]
    if task.known_totals:
        n_train, n_test = learned.sizes.sum(axis=1)
        notes.append(
            "the workers counted all documents; texts, the rows listed for a finding, calibration "
            f"and phrases of several words are from a sample of {train.counts.n_documents:,} of "
            f"{n_train:,} training and {test.counts.n_documents:,} of {n_test:,} test documents"
        )
    groups = " and the search for unnamed groups" if "groups" in task.left_out else ""
    notes.append(f"not computed on a cluster: the learning curve{groups}")
    return notes
