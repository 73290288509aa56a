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
from dataclasses import replace
from operator import itemgetter
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any

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
from tokensieve.text.tokenizers import FieldTokenizer
from tokensieve.text.vocabulary import CountedCorpus, Vocabulary, count_corpus, learn_vocabulary
from tokensieve.wording import plural

ROUNDS, PATIENCE, STEPS = 8, 2, 800  # steps: most of a partition and round of several passes
Some = tuple[
    float, object, bool
]  # documents of a share that is drawn by digests with a salt; all others if False
HALVES: tuple[Some, ...] = ((0.5, "half", False), (0.5, "half", True))


class Learned:
    """Documents on a cluster, their statistics, and a model trained on them (`learn_on`).

    Attributes:
        importance: as `token_importance` of all training documents on one machine.
        model: as after `fit`; its `n_steps_` are minibatch steps of the final training, over all
            rounds and partitions.
        attention: as in `AttentionClassifier.effects`, but 0 for a type in no document, shape
            (|S|,).
        intake: what was noticed while reading, and the columns of text and label.
        sizes: documents by side ("train", "test") and class, shape (2, K).
        tested: test documents predicted correctly, by class, shape (K,); unknown words in them; all
            of their words.
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
        how: TrainSettings,
        progress: Progress,
        near: bool | None = None,
    ) -> None:
        how.check_for_cluster()
        tokenizer = how.make_tokenizer()
        progress("reading", 0.0)
        documents = read_partitions(client, source, how, tokenizer, near)
        inside = documents.train
        outside = documents.test
        tokenizer = documents.tokenizer
        self.sample = documents.sample
        self.classes = documents.classes
        self.sizes = documents.sizes
        self.reading = documents.report
        del documents
        n, self.partitions = int(self.sizes[0].sum()), len(inside.parts)
        self.settings = how.of_documents(n)
        progress("vocabulary", 0.0)
        least = self.settings.min_documents or 1
        self.vocabulary = learn_vocabulary(inside.each(itemgetter(0)), tokenizer, how.ngrams, least)
        if how.formatting:  # documents with each feature
            with_it = inside.total(
                lambda side: np.unpackbits(side.documents.value.bits, axis=1).sum(
                    axis=0, dtype=np.int64
                )
            )
            self.vocabulary = self.vocabulary.with_formatting(with_it, n, least)
        progress("copies", 0.0)  # before documents are counted, which takes most memory
        self.copies = count_copies(inside, outside, self.classes, bool(near))
        self.reading.counts.update({name: self.copies.pop(name, 0) for name in REPEATS})
        progress("importance", 0.0)
        self.train = inside.each(_counted, self.vocabulary, self.classes, store=True)
        self.test = (
            None
            if outside is None
            else outside.each(_counted, self.vocabulary, self.classes, store=True)
        )
        del inside, outside
        words, marks, present = self.train.total(
            lambda part: Sums(
                (
                    *TokenSums.of_counts(part.counts, part.n_formatting, part.corpus.units),
                    part.counts.present,
                )
            )
        )
        groups = None if how.by is None else present
        self.importance = importance_of(
            words, self.vocabulary.tokens, self.classes, marks, self.sizes[0], groups
        )
        self.rounds, self.validation = ROUNDS, list[float]()
        if self.sizes[0].min() >= 10:
            self._choose(progress)
        model = replace(
            self.trained(progress=progress),
            vocabulary=self.vocabulary,
            tokens=self.vocabulary.tokens,
        )
        self.model = AttentionClassifier.of(model, tokenizer=tokenizer)
        progress("attention", 0.0)
        attended = self.train.total(
            lambda part, u: attention_sums(part.counts.matrix, u), model.scores
        )
        self.attention_sums: Floats = attended
        self.attention = self.attention_sums[2] / np.maximum(self.importance.documents, 1)
        progress("testing", 0.0)
        self.tested: tuple[Ints, int, int] = np.zeros(len(self.classes), np.int64), 0, 0
        if self.test is not None:
            self.tested = tuple(
                self.test.total(_tested, (model.scores, model.values), model.prior)[2:]
            )

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json, except for times and settings."""
        correct, unknown, words = self.tested
        given = (
            self.classes,
            self.sizes,
            correct,
            len(self.importance.tokens),
            float(unknown / max(words, 1)),
        )
        return CorpusModel.figures(*given) | {
            "version": __version__,
            "notes": self.reading.lines(),
            "partitions": self.partitions,
            "rounds": self.rounds,
            "validation": self.validation,
            # what one partition sends, and receives, in a round: 8 bytes · |S| · (1 + outputs)
            "bytes_per_round": self.model.scores_.nbytes + self.model.values_.nbytes,
        }

    def trained(
        self, types: Ints | None = None, some: Some | None = None, progress: Progress = silent
    ) -> Model:
        """A model trained in all rounds on all or some of the training documents, with all or some
        of the token types."""
        parts = self.train
        if types is not None:
            parts = parts.each(
                lambda part, types: replace(part, matrix=part.matrix[:, types]), types, store=True
            )
        prior, steps, tokens = (
            prior_of(self.sizes[0]),
            0,
            np.empty(0, dtype=object),
        )  # which workers do not need
        for number, state in zip(
            range(self.rounds), self._averaged(parts, prior, some), strict=False
        ):
            progress("training", number / self.rounds)
            u, w, taken = state.result()
            steps += taken
        return Model(
            np.asarray(self.classes),
            u,
            w,
            prior,
            tokens,
            steps=steps,
            settings=self.settings.parameters(),
        )

    def _choose(self, progress: Progress) -> None:
        """The number of rounds, chosen on held-out documents."""
        how, prior = self.settings, prior_of(self.sizes[0])
        share, salt = how.validation_share, f"validation {how.seed}"
        for number, state in enumerate(self._averaged(self.train, prior, (share, salt, False))):
            progress("choosing the number of rounds", number / ROUNDS)
            loss, n, *_ = self.train.total(_tested, state, prior, (share, salt, True))
            self.validation.append(float(loss / max(n, 1)))
            if number - int(np.argmin(self.validation)) >= PATIENCE:
                break
        self.rounds = int(np.argmin(self.validation)) + 1

    def _averaged(self, parts: Partitions, prior: Floats, some: Some | None) -> Iterator[Any]:
        """u, w and the steps of the round, summed over the partitions, after each round; still on
        the cluster."""
        how, n = self.settings, len(parts.parts)
        present, sizes = parts.total(
            lambda part: Sums(((counts := _counts(part, some)).present, counts.class_sizes))
        )
        state: Any = (*initial_table(present, sizes, prior), 0)
        for number in range(ROUNDS):
            share, passes = 1 - number / ROUNDS, math.ceil(math.sqrt(n))
            rates = how.score_rate * share, how.value_rate * share
            schedule = Schedule(10**9, how.batch_size, *rates, how.seed + n * number)
            total = parts.each(_local, state, schedule, passes, some, numbered=True).sum()
            state = parts.run(lambda sums: (sums[0] / sums[2], sums[1] / sums[2], sums[3]), total)
            yield state


def learn_on(
    client: Any,
    source: Any,
    settings: TrainSettings | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Learned:
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
    return Learned(client, source, how, progress or silent)


def _counted(side: StoredSide, vocabulary: Vocabulary, classes: tuple[str, ...]) -> CountedCorpus:
    """The documents as counts; of the vocabulary and the words, only the numbers are passed on."""
    stream, documents = side.tokens.value, side.documents.value
    bits, frame = documents.bits, documents.frame
    index = {name: k for k, name in enumerate(classes)}
    frame = frame.with_columns(pl.col("label").replace_strict(index, return_dtype=pl.Int64))
    matrix, unknown = vocabulary.count(stream, bits)
    if matrix.nnz and matrix.data.max() < 256:  # a byte for each count: half as many bytes in files
        matrix = matrix.astype(np.uint8)
    names = np.empty(vocabulary.n_types, dtype=object)
    types: Any = SimpleNamespace(
        tokens=names, n_words=vocabulary.n_words, formatting=vocabulary.formatting
    )
    words: Any = SimpleNamespace(n_tokens=stream.n_tokens)
    return CountedCorpus(
        matrix, types, unknown, words, Corpus(frame, classes, "", ReadingReport(counts=Counter()))
    )


def _which(part: CountedCorpus, some: Some) -> NDArray[np.bool_]:
    """Some of the documents, with all copies of a text (and all of a group), shape (n,)."""
    by = part.corpus.keys if part.corpus.groups is None else part.corpus.groups
    share, salt, drawn = some
    below: NDArray[np.bool_] = (hashed_numbers(by, salt) < share * 2**32).to_numpy()
    return below if drawn else ~below


def _counts(part: CountedCorpus, some: Some | None) -> Counts:
    """The counts of some of the documents, or all."""
    return part.counts if some is None else part.counts.rows(_which(part, some))


def _local(
    part: CountedCorpus, number: int, state: Any, schedule: Schedule, passes: int, some: Some | None
) -> Sums:
    """n·u, n·w, n and the steps taken after some passes of minibatch Adam over n documents of the
    partition."""
    counts, (u, w, _) = _counts(part, some), state
    n = counts.n_documents
    if not n:
        return Sums((0 * u, 0 * w, 0, 0))
    per_pass = math.ceil(n / schedule.batch_size)
    steps = per_pass * max(min(passes, STEPS // per_pass), 1)
    # so long a schedule that the rates stay as they are within a round
    _, u, w = next(train(counts, u, w, replace(schedule, seed=schedule.seed + number), steps))
    return Sums((n * u, n * w, n, steps))


def _tested(part: CountedCorpus, state: Any, prior: Floats, some: Some | None = None) -> Sums:
    """The sum of the losses, the documents, those predicted correctly by class, unknown words, and
    all words."""
    counts = _counts(part, some)
    matrix, labels = counts.matrix, counts.labels
    f = logits(matrix, state[0], state[1])
    f[np.diff(matrix.indptr) == 0] = prior
    hits = np.bincount(labels[decide(f) == labels], minlength=counts.n_classes)
    words = int(part.unknown.sum()), part.stream.n_tokens
    return Sums((loss_and_slope(f, labels)[0].sum(), len(labels), hits, *words))


def _out_of_half(part: CountedCorpus, models: Sequence[Model]) -> Floats:
    """Decision values of each document by the model that has not seen its half, shape (n, H)."""
    f = np.zeros((part.counts.n_documents, models[0].values.shape[1]))
    for half, model in zip(HALVES, reversed(models), strict=True):
        rows = _which(part, half)
        f[rows] = model.logits(part.counts.matrix[rows])
    return f


class _OnCluster(Labels):
    """Labelled documents on a cluster: sums and models cover all of them; only the documents of the
    parts, a sample, are here."""

    def __init__(self, learned: Learned, parts: Sequence[CountedCorpus]) -> None:
        self.learned, self.held_out_here, self.left_out = learned, parts[1], ("curve",)
        if sum(part.counts.n_documents for part in parts) < learned.sizes.sum():
            # documents that share rare words are hardly ever in a sample together
            self.left_out, self.known_totals = ("curve", "groups"), learned.copies

    def __reduce__(self) -> tuple[type[Labels], tuple[()]]:
        return Labels, ()  # what the workers need of it

    def total(self, part: CountedCorpus, of: Callable[..., Any], *given: object) -> Any:
        side = self.learned.test if part is self.held_out_here else self.learned.train
        assert side is not None
        return side.total(of, *given)

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
        if self.learned.sizes[0].min() < 10:
            return None
        models = [self.learned.trained(some=half) for half in HALVES]
        prior = prior_of(self.learned.sizes[0])
        scale = best_scale(_out_of_half(train, models), prior, train.counts.labels)
        return lambda part: probabilities(prior + scale * (_out_of_half(part, models) - prior))

    def accuracy(self, f: Floats, part: CountedCorpus) -> Share:
        if part.corpus.units is not None:  # groups are counted in the sample
            return super().accuracy(f, part)
        return Share.count(int(self.learned.tested[0].sum()), int(self.learned.sizes[1].sum()))

    def summary(self, train: Corpus, test: Corpus) -> dict[str, object]:
        return {name: value for name, value in self.learned.to_dict().items() if name != "notes"}


def train_remote(
    client: Any,
    source: Any,
    settings: TrainSettings,
    progress: Progress,
    clock: Clock,
) -> CorpusModel:
    """Read, count, learn and test on a cluster, for an audit, with the arguments of `learn_on`; the
    client is the default one if None. The settings have a test set or a fraction for one, and
    `clock` keeps the seconds of the stages."""
    from dask.distributed import get_client

    if settings.test is None and settings.split is None and not 0 < settings.test_share < 1:
        raise InputError(f"the test fraction must lie between 0 and 1, not {settings.test_share}")
    stages = ["reading"]

    def timed(stage: str, share: float) -> None:
        if stage != stages[-1]:
            clock.lap(stages[-1])
            stages.append(stage)
        progress(stage, share)

    near = getattr(settings, "thorough", True)
    found = Learned(client or get_client(), source, settings, timed, near)
    timed("sample", 0.0)
    name = ", ".join(PurePath(path).name for path in source_paths(source)[:3]) or "the partitions"
    index = {label: k for k, label in enumerate(found.classes)}
    sample = pl.concat(found.sample.here()).with_columns(
        pl.col("label").replace_strict(index, return_dtype=pl.Int64)
    )
    splitter, parts = found.vocabulary.tokenizer, list[CountedCorpus]()
    fields = splitter.fields if isinstance(splitter, FieldTokenizer) else ()
    for side, test in ((name, False), (f"{name} (test)", True)):
        frame = sample.filter(pl.col("test") == test).drop("test")
        corpus = Corpus(frame, found.classes, side, found.reading, fields=fields)
        parts.append(count_corpus(corpus, found.vocabulary))
    train, held = parts
    task, n = _OnCluster(found, parts), found.sizes.sum(axis=1)
    notes = [
        *found.reading.lines(),
        *train.group_notes(held),
        "trained on a cluster: the model is an average over "
        f"{plural(found.partitions, 'partition')} of the documents, so its accuracy is similar "
        "to that of training on one machine, but not the same",
    ]
    if task.known_totals:
        notes.append(
            "the workers counted all documents; texts, the rows listed for a finding, calibration "
            f"and phrases of several words are from a sample of {train.counts.n_documents:,} of "
            f"{n[0]:,} training and {held.counts.n_documents:,} of {n[1]:,} test documents"
        )
    groups = " and the search for unnamed groups" * ("groups" in task.left_out)
    notes.append(f"not computed on a cluster: the learning curve{groups}")
    model, f = found.model.trained_, found.model.trained_.logits(held.counts.matrix)
    clock.lap("sample")
    return CorpusModel(model, train, held, f, notes, found.settings, task, clock.seconds)
