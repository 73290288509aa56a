"""Vocabulary, importance and training over the partitions of a Dask cluster.

Workers read the partitions, count words and add up sums with the functions of one machine; the client never holds the documents.
Every result is a pure function of the partitions and their order, so a worker that dies changes no bit. Vocabulary and importance
are those of one machine, to the bit. Documents are set aside for testing by a digest of their text (or group); groups are made
whole, and repeated texts found, by sending rows to the bucket of their digest.

Training is by parameter averaging (McMahan et al. 2017, FedAvg): in each round every partition takes `⌈√P⌉` passes of minibatch
Adam over its own documents from the common (u, w) (fewer where a pass has thousands of steps), and the results are averaged,
weighted by documents, pairwise on the workers and in a fixed order. What crosses the network per round and partition is (u, w) both
ways. The number of rounds is chosen on held-out documents.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, importance_of, token_sums
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import Model, answers, attention_sums, decide, loss_and_slope
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.fit import initial_table, prior_of
from tokensieve.model.partitions import HEAD, Piece, pieces_of
from tokensieve.model.remote import Counted, Partitions, Sums
from tokensieve.model.settings import TrainSettings
from tokensieve.progress import Progress, silent
from tokensieve.text.corpus import Corpus, Intake
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.documents import collect, digests
from tokensieve.text.formatting import Bits, Formatting
from tokensieve.text.settings import ReadSettings
from tokensieve.text.table import TEST_NAMES, TRAIN_NAMES, SourceTable, listed
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer, tokenizer_from_dict
from tokensieve.text.vocabulary import TokenStream, Vocabulary, learn_vocabulary

ROUNDS, PATIENCE = 8, 2
Reader = tuple[ReadSettings, Sequence[str], str]  # settings, text columns, label column
Side = tuple[
    TokenStream, Bits, pl.DataFrame, pl.Series
]  # documents: tokens, formatting, labels and the like, and texts
State = tuple[Floats, Floats, int]  # u, w, and the steps of the round, summed over the partitions


@dataclass(frozen=True)
class Learned:
    """What a cluster found.

    Attributes:
        importance: as `token_importance` of all training documents on one machine.
        model: the classifier, as after `fit`; its `n_steps_` are the minibatch steps of the final training, added up over rounds
            and partitions.
        attention: mean over the documents that contain a type of its attention relative to a uniform share, as in
            `AttentionClassifier.effects` but 0 for a type in none, shape (|S|,).
        sizes: documents by side ("train", "test") and class, shape (2, K).
        correct: test documents predicted correctly, by class, shape (K,).
        unknown_share: fraction of the words of the test documents that are no token.
        partitions: P.
        rounds: rounds of training on all documents.
        validation: mean loss on held-out documents after each round of choosing; empty where a class has too few.
        bytes_per_round: what one partition sends, and receives, in a round: 8 bytes · |S| · (1 + outputs).
        intake: what was found on the way in.
    """

    importance: Importance
    model: AttentionClassifier
    attention: Floats
    sizes: Ints
    correct: Ints
    unknown_share: float
    partitions: int
    rounds: int
    validation: list[float]
    bytes_per_round: int
    intake: Intake

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names."""
        return self.importance.classes

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json, but for times and settings."""
        (train, test), classes = self.sizes, self.classes
        recall = zip(classes, self.correct.tolist(), test.tolist(), strict=True)
        names = "partitions rounds validation bytes_per_round".split()
        return {
            "classes": classes,
            "documents": {"train": int(train.sum()), "test": int(test.sum())},
            "class_documents": dict(zip(classes, train.tolist(), strict=True)),
            "token_types": len(self.importance.tokens),
            "test_accuracy": float(self.correct.sum() / max(test.sum(), 1)),
            "majority_accuracy": float(test[train.argmax()] / max(test.sum(), 1)),
            "class_recall": {name: hits / size if size else None for name, hits, size in recall},
            "unknown_share": self.unknown_share,
            "version": __version__,
            "notes": self.intake.lines(),
        } | {name: getattr(self, name) for name in names}


def learn_on(
    client: Any,
    source: Any,
    settings: TrainSettings | None = None,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Learned:
    """Vocabulary, importance and classifier from documents that workers read, or that lie on a cluster.

    Args:
        client: a `dask.distributed.Client`.
        source: a path, glob or address that all workers reach, or several; a Dask bag of (text, label) pairs, a Dask data frame,
            or a sequence of delayed values or futures, each a data frame (pandas or Polars) or a list of pairs. Rows are read as
            by `read_corpus`.
        settings: if None, `TrainSettings(test_share=0)`: all documents are learned from. `pairs`, `formatting`, `sample_weight`,
            `columns`, `environments` and dropping duplicates are not for clusters.
        tokenizer: words if None.
        progress: called with (stage, share done).
        options: fields of the settings by name, in place of those in `settings`.

    Raises:
        InputError: there are no documents, a partition has no such columns or no pairs, the labels cannot be classes, no token
            is frequent enough, or the settings are not for clusters.
    """
    how, tell = (settings or TrainSettings(test_share=0.0)).with_options(options), progress or silent
    found = Training(client, source, how, tokenizer or WordTokenizer(), tell)
    tell("attention", 0.0)
    model, importance = found.model, found.importance
    received = found.train.total(_received, model.scores_) / np.maximum(importance.documents, 1)
    correct, unknown, words = np.zeros(len(found.classes), np.int64), 0, 0
    if found.test is not None:
        _, _, correct, unknown, words = found.test.total(_tested, (model.scores_, model.values_, 0), model.prior_)
    return Learned(
        importance=importance,
        model=model,
        attention=received,
        sizes=found.documents,
        correct=correct,
        unknown_share=float(unknown / max(words, 1)),
        partitions=len(found.train.parts),
        rounds=found.rounds,
        validation=found.validation,
        bytes_per_round=model.scores_.nbytes + model.values_.nbytes,
        intake=found.intake,
    )


class Training:
    """Documents on a cluster, counted, and a model trained on them: what `learn_on` and an audit share.

    Args:
        client: a `dask.distributed.Client`.
        source: as of `learn_on`.
        how: settings.
        tokenizer: that splits the texts.
        tell: called with (stage, share done).
        texts: keep the texts on the cluster, for an audit.

    Attributes:
        settings: with `min_documents` as a number.
        sides: documents for training and for testing, partitions of (tokens, formatting, facts, texts).
        train, test: the same as `Counted` partitions; `test` is None where there are no documents for testing.
        classes, documents: class names, and documents by side and class, shape (2, K).
        vocabulary, importance, model: of the training documents; the model is an average over partitions.
        rounds, validation: of the training, and the held-out loss after each round of choosing.
        columns, fields: where text and label were read; the fields that each text was joined from.
        intake: what was found on the way in.

    Raises:
        InputError: as of `learn_on`.
    """

    def __init__(
        self, client: Any, source: Any, how: TrainSettings, tokenizer: Tokenizer, tell: Progress, texts: bool = False
    ) -> None:
        refused = {"pairs": how.pairs, "weight": how.sample_weight is not None, "columns": how.columns}
        refused |= {"label-separator": how.label_separator, "duplicates drop": how.duplicates == "drop"}
        for name, given in refused.items():
            if given:
                raise InputError(f"--{name} does not work on a cluster yet; leave out --{name} or --cluster")
        if not isinstance(how.label, str | None):
            raise InputError("--cluster takes one label column: name one with --label")
        tell("reading", 0.0)
        train, test, self._tokenizer, self.classes, self.documents, self.intake = _sides(
            client, source, how, tokenizer, texts
        )
        self.sides, self.settings = (train, test), how.of_documents(int(self.documents[0].sum()))
        tell("vocabulary", 0.0)
        self.vocabulary = self.learn_vocabulary(how.ngrams, self.settings.min_documents or 1, how.formatting)
        self.train = self.counted(train, self.vocabulary)
        self.test = None if test is None else self.counted(test, self.vocabulary)
        tell("importance", 0.0)
        sums, marks, present, sizes = self.train.total(_sums, len(self.vocabulary.formatting))
        n = max(int(sizes.sum()), 1)
        length = float(sums.count.sum()) / n
        self.importance = importance_of(sums, self.vocabulary.tokens, self.classes, marks, length)
        if how.by is not None:  # the sums are over groups
            neutral, units = 2 * sizes / n - 1, self.importance.documents
            self.importance = replace(self.importance, class_documents=present, neutral=neutral, units=units)
        self.rounds, self.validation = ROUNDS, list[float]()
        self._fit(tell)

    def learn_vocabulary(self, ngrams: int, min_documents: int, formatting: bool = False) -> Vocabulary:
        """That of the training documents; `tokensieve.text.vocabulary.count_texts` of one machine."""
        train, n = self.sides[0], int(self.documents[0].sum())
        found = learn_vocabulary(train.each(operator.itemgetter(0)), self._tokenizer, ngrams, min_documents)
        return found.with_formatting(train.total(_features), n, min_documents) if formatting else found

    def counted(self, side: Partitions, vocabulary: Vocabulary) -> Partitions:
        """The documents of a side, counted."""
        return side.each(_counted, side.sent(vocabulary), self.classes)

    def _fit(self, tell: Progress) -> None:
        """Choose the number of rounds on held-out documents, then train on all."""
        how, sizes, prior = self.settings, self.documents[0], prior_of(self.documents[0])
        if sizes.min() >= 10:
            inside, outside = (
                self.train.each(_held, how.validation_share, how.seed, held, numbered=True) for held in (False, True)
            )
            present, class_sizes = inside.total(_presence)
            start = initial_table(present, class_sizes, prior)
            for number, state in enumerate(averaged(inside, start, how)):
                tell("choosing the number of rounds", number / ROUNDS)
                loss, n, *_ = outside.total(_tested, state, prior)
                self.validation.append(float(loss / max(n, 1)))
                if number - int(np.argmin(self.validation)) >= PATIENCE:
                    break
            self.rounds = int(np.argmin(self.validation)) + 1
        steps = 0
        start = initial_table(self.importance.class_documents, sizes, prior)
        for number, state in zip(range(self.rounds), averaged(self.train, start, how), strict=False):
            tell("training", number / self.rounds)
            u, w, taken = state.result()
            steps += taken
        self.model = model = AttentionClassifier(tokenizer=self._tokenizer, **how.parameters())
        model.classes_, model.vocabulary_, model.n_features_in_ = (
            np.asarray(self.classes),
            self.vocabulary,
            self.vocabulary.n_types,
        )
        model.min_documents_, model.prior_, model.validation_ = how.min_documents, prior, np.empty((0, 2))
        model.scores_, model.values_, model.n_steps_ = u, w, steps

    def refit(self, counts: Counts, model: Model) -> Model:
        """A model of other counts of documents on the cluster, by as many rounds."""
        prior = prior_of(counts.class_sizes)
        start = initial_table(counts.present, counts.class_sizes, prior)
        *_, state = islice(averaged(counts.matrix.parts, start, self.settings), self.rounds)
        u, w, steps = state.result()
        return replace(model, scores=u, values=w, prior=prior, tokens=counts.tokens, vocabulary=None, steps=steps)


def _partitions_of(client: Any, source: Any) -> Partitions:
    """Pieces of a source for workers to read, or what lies on the cluster."""
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | Path) for path in paths):
        workers = client.nthreads() if hasattr(client, "nthreads") else {}

        def quotes(pieces: list[Piece]) -> list[int]:
            counted: list[int] = client.gather(Partitions(client, pieces).each(Piece.quotes).parts)
            return counted

        return Partitions(client, pieces_of(paths, max(sum(workers.values()), 1), quotes))
    parts = list(source.to_delayed()) if hasattr(source, "to_delayed") else list(source)
    if not parts:
        raise InputError("there are no partitions: give a Dask bag or data frame with documents")
    return Partitions(client, client.compute(parts, sync=False))


# ---- reading


def _sides(
    client: Any, source: Any, how: TrainSettings, tokenizer: Tokenizer, texts: bool
) -> tuple[Partitions, Partitions | None, Tokenizer, tuple[str, ...], Ints, Intake]:
    """Documents for training and for testing (`Side`), the tokenizer that reads them, the classes, documents by side and class,
    shape (2, K), and what was found on the way in."""
    pieces = _partitions_of(client, source)
    given, tests = len(pieces.parts), [] if how.test is None else _partitions_of(client, how.test).parts
    reader, tokenizer = _reader(pieces.parts, how, tokenizer)
    # What is for testing: where a column says so (None), a fraction by digest, all of a piece, or none of it
    rule = False if tests or not (how.split or how.test_share) else None if how.split else (how.test_share, how.seed)
    rules = [rule] * given + [True] * len(tests)
    read = Partitions(client, [*pieces.parts, *tests]).each(_read, reader, rules, numbered=True)
    counts, dropped, sizes = Counter[str](), Counter[str](), Counter[tuple[str, bool]]()
    rows = list[int]()  # of each piece
    for found in read.each(operator.itemgetter(1)).here():
        if isinstance(found, InputError):
            raise found
        counts, dropped, sizes = counts + found[0], dropped + found[1], sizes + found[2]
        rows.append(found[3])
    learned = {name: n for (name, test), n in sizes.items() if not test}
    counts["kept"] = sum(learned.values())
    intake = Intake(counts=counts, columns=(" + ".join(reader[1]), reader[2]), dropped=dict(dropped))
    intake.check_kept("the partitions")
    classes = Corpus.classes_of(learned, f"the partitions: the label column {reader[2]!r}")
    strange = sorted({name for name, _ in sizes} - {*classes}, key=Corpus.in_order)
    if strange:
        raise InputError(
            f"training has no label {strange[0]!r} of the test documents; its labels are {listed(classes)}"
        )
    before = [sum(rows[:i]) if i < given else sum(rows[given:i]) for i in range(len(rows))]
    frames = read.each(_placed, before, numbered=True)
    if how.by is not None:  # documents are sent to the partition of their group
        divided = [Partitions(client, some) for some in (frames.parts[:given], frames.parts[given:])]
        frames.parts = [part for some in divided for part in some.regrouped("group", _buckets, pl.concat).parts]
    repeats = frames.each(_keys).regrouped("key", _buckets, _repeats).sum().result()
    reasons = "duplicates", "conflicts", "conflicting_documents", "test_overlap"
    counts.update(dict(zip(reasons, repeats, strict=True)))
    train, test = (
        Partitions(client, some).each(_side, test, tokenizer.to_dict(), how.formatting, texts)
        for test, some in ((False, frames.parts[:given]), (True, frames.parts[given if tests else 0 :]))
    )
    documents = np.array([[sizes[name, test] for name in classes] for test in (False, True)])
    return train, None if rule is False and not tests else test, tokenizer, classes, documents, intake


def _reader(parts: Sequence[object], how: TrainSettings, tokenizer: Tokenizer) -> tuple[Reader, Tokenizer]:
    """How every partition is read, and the tokenizer; columns are recognised in the first rows of a source."""
    settings, label = replace(how, test=None), how.one_label()
    named = (how.text,) if isinstance(how.text, str) else tuple(how.text or ())
    if isinstance(parts[0], Piece):
        first = parts[0]
        size = 1000 if first.unit == "rows" else HEAD
        head = replace(first, stop=min(first.stop, first.start + size)).table(settings)
        others = [
            head.position(name, flag) for name, flag in ((how.by, "by"), (how.split, "split")) if name is not None
        ]
        named, label = head.labelled_columns(named or None, label, others)
    return (settings, named or ("text",), label or "label"), FieldTokenizer.over(
        tokenizer, named if len(named) > 1 else ()
    )


def _read(
    part: Any, number: int, reader: Reader, rules: Sequence[tuple[float, int] | bool | None]
) -> tuple[pl.DataFrame | None, tuple[Counter[str], Counter[str], Counter[tuple[str, bool]], int] | InputError]:
    """The documents of a partition (text, label, key, test, row, group, environment), and what was read, dropped labels, documents
    and rows, counted.
    An error of the user's is a result like any other, so that no worker logs it."""
    (settings, texts, label), name, rule = reader, f"partition {number + 1}", rules[number]
    try:
        table = part.table(settings) if isinstance(part, Piece) else SourceTable.of_frame(part, name)
        if table is None:
            rows = list(part)
            for row in rows:
                if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2:
                    raise InputError(f"{name} holds {str(row)[:60]!r}: give (text, label) pairs or data frames")
            table = SourceTable.of_lists(([row[0] for row in rows], [row[1] for row in rows]), name)
            texts, label = table.columns[:1], table.columns[1]
        texts, label = [table.position(text, "text") for text in texts], table.position(label, "label")
        more = {"group": settings.by, "part": settings.split, "environment": settings.environments}
        named = {kind: table.position(column, kind) for kind, column in more.items() if column is not None}
        frame, _, counts = collect(table, texts, label, settings, more=named)[0]
        final = settings.destinations()
        if "group" in frame.columns:  # a document without a group is one of its own
            own = pl.format("\0{} {}", pl.lit(table.name), pl.int_range(pl.len()))
            frame = frame.with_columns(group=pl.col("group").fill_null(own))
        if rule is None:
            names = frame["part"].fill_null("").str.strip_chars().str.to_lowercase()
            odd = names.filter(~names.is_in([*TEST_NAMES, *TRAIN_NAMES]))
            if len(odd):
                raise InputError(
                    f"the split column must hold 'test' for test rows and one of {listed(TRAIN_NAMES)} for the others; it "
                    f"holds {str(odd[0])[:40]!r}"
                )
            test = names.is_in(TEST_NAMES)
        elif isinstance(rule, tuple):
            by = frame["group" if "group" in frame.columns else "key"]
            test = pl.Series([_digest(name, rule[1]) < rule[0] * 2**32 for name in by], dtype=pl.Boolean)
        else:
            test = pl.Series([rule] * frame.height, dtype=pl.Boolean)
    except InputError as problem:
        return None, problem
    to = pl.col("label").replace_strict(final, default=pl.col("label"), return_dtype=pl.String)
    frame = frame.with_columns(label=to, original="label", test=test)
    gone = frame.filter(pl.col("label").is_null() & ~pl.col("test"))["original"]
    kept = [name for name in ("text", "label", "key", "test", "row", "group", "environment") if name in frame.columns]
    frame = frame.filter(pl.col("label").is_not_null()).select(kept)
    dropped = Counter(dict(gone.value_counts().iter_rows()))
    sizes = Counter({(label, test): n for label, test, n in frame.group_by("label", "test").len().iter_rows()})
    return frame, (Counter[str]() if rule is True else counts, dropped, sizes, counts["rows"])


def _placed(found: tuple[pl.DataFrame, object], number: int, before: list[int]) -> pl.DataFrame:
    """The documents with the rows of the whole source."""
    return found[0].with_columns(pl.col("row") + before[number])


def _digest(value: str | bytes, seed: int) -> int:
    """A number below 2³² that depends on nothing but the value and the seed."""
    content = value if isinstance(value, bytes) else value.encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=4, salt=seed.to_bytes(8, "little")).digest(), "little")


def _buckets(frame: pl.DataFrame, column: str, n: int) -> list[pl.DataFrame]:
    where = pl.Series([_digest(value, 0) % n for value in frame[column]], dtype=pl.Int64)
    return [frame.filter(where == i) for i in range(n)]


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.group_by("key", "label", "test").len("n")


def _repeats(frames: list[pl.DataFrame]) -> Sums:
    """Of some digests: training documents that repeat one of the same label, texts of several labels, training documents of these,
    and test documents whose text is in training."""
    found = pl.concat(frames)
    train, test = found.filter(~pl.col("test")), found.filter("test")
    sums = train.group_by("key", "label").agg(pl.col("n").sum())
    mixed = sums.group_by("key").agg(pl.len().alias("labels"), pl.col("n").sum()).filter(pl.col("labels") > 1)
    shared = test.join(train.select("key").unique(), on="key", how="semi")
    return Sums((int((sums["n"] - 1).sum()), mixed.height, int(mixed["n"].sum()), int(shared["n"].sum())))


def _side(frame: pl.DataFrame, test: bool, tokenizer: dict[str, Any], formatting: bool, texts: bool) -> Side:
    """The documents for training or for testing as tokens."""
    frame, splitter = frame.filter(pl.col("test") == test), tokenizer_from_dict(tokenizer)
    text, fields = frame["text"], splitter.fields if isinstance(splitter, FieldTokenizer) else ()
    bits = Formatting(fields).bits(text if formatting else text.clear())
    return TokenStream.of(text, splitter), bits, frame.drop("text", "test"), text if texts else text.clear()


def facts(side: Side, classes: tuple[str, ...]) -> pl.DataFrame:
    """Class index, row, and 64 bits of the digests of text and group; the environment by name: what a client holds of documents."""
    frame, digested = side[2], ["key"]
    if "group" in frame.columns:
        frame, digested = frame.with_columns(group=digests(frame["group"])), ["key", "group"]
    short = [pl.col(digested).bin.slice(0, 8).bin.reinterpret(dtype=pl.Int64), pl.col("row")]
    short += [pl.col("environment")] * ("environment" in frame.columns)
    labels = pl.col("label").replace_strict(list(classes), list(range(len(classes))), return_dtype=pl.Int64)
    return frame.select(labels, *short)


def _features(side: Side) -> Ints:
    """Documents with each feature of formatting."""
    return np.asarray(np.unpackbits(side[1], axis=1).sum(axis=0, dtype=np.int64))


def _counted(side: Side, vocabulary: Vocabulary, classes: tuple[str, ...]) -> Counted:
    stream, bits, frame, _ = side
    index = {name: k for k, name in enumerate(classes)}
    labels = np.array([index[name] for name in frame["label"]], dtype=np.int64)
    matrix, unknown = vocabulary.count(stream, bits)
    units = Corpus.unit_index(frame["group"].to_list()) if "group" in frame.columns else None
    counts = Counts(matrix, labels, classes, np.empty(vocabulary.n_types, dtype=object))
    return counts, units, int(unknown.sum()), stream.n_tokens


def _sums(part: Counted, features: int) -> Sums:
    counts, units, _, _ = part
    return Sums((*token_sums(counts, features, units), counts.present, counts.class_sizes))


def _presence(part: Counted) -> Sums:
    return Sums((part[0].present, part[0].class_sizes))


# ---- training by averaging


def averaged(parts: Partitions, start: tuple[Floats, Floats], how: TrainSettings) -> Iterator[Any]:
    """The `State` after each round of training from a table, still on the cluster."""
    state, n = parts.sent((*start, 0)), len(parts.parts)
    for number in range(ROUNDS):
        share = 1 - number / ROUNDS
        rates = how.batch_size, how.score_rate * share, how.value_rate * share
        passes, seed = math.ceil(math.sqrt(n)), how.seed + n * number
        state = parts.run(_average, parts.each(_local, state, passes, rates, seed, numbered=True).sum())
        yield state


def _held(part: Counted, number: int, share: float, seed: int, held_out: bool) -> Counted:
    """The documents of a partition that the number of rounds is chosen on, in whole groups, or all others."""
    counts = part[0]
    units = np.arange(counts.n_documents) if part[1] is None else part[1]
    names = np.random.default_rng([seed, number]).permutation(np.unique(units))
    chosen = np.isin(units, names[: round(share * len(names))])
    return counts.rows(chosen if held_out else ~chosen), None, 0, 0


def _local(part: Counted, number: int, state: Any, passes: int, rates: tuple[int, float, float], seed: int) -> Sums:
    """n·u, n·w, n and the steps taken after some passes of minibatch Adam over the partition's n documents."""
    n, (u, w, _) = part[0].n_documents, state
    if not n:
        return Sums((0 * u, 0 * w, 0, 0))
    per_pass = math.ceil(n / rates[0])
    steps = per_pass * max(min(passes, 2_000 // per_pass), 1)
    endless = Schedule(steps * 10**6, *rates, seed + number)  # within a round the rates stay as they are
    _, u, w = next(train(part[0], u, w, endless, steps))
    return Sums((n * u, n * w, n, steps))


def _average(total: Sums) -> State:
    return total[0] / total[2], total[1] / total[2], total[3]


def _tested(part: Counted, state: Any, prior: Floats) -> Sums:
    """Sum of the losses, documents, those predicted correctly by class, words that are no token, and all words."""
    counts, _, unknown, words = part
    f, labels = answers(counts.matrix, state[0], state[1]), counts.labels
    f[np.diff(counts.matrix.indptr) == 0] = prior
    hits = np.bincount(labels[decide(f) == labels], minlength=counts.n_classes)
    return Sums((loss_and_slope(f, labels)[0].sum(), len(labels), hits, unknown, words))


def _received(part: Counted, u: Floats) -> Floats:
    """Σ over the partition's documents of q_{X,s} / (c_{X,s}/T_X), shape (|S|,)."""
    return np.asarray(attention_sums(part[0].matrix, u)[2])
