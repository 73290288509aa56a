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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, importance_of, merged
from tokensieve.evidence.sums import TokenSums
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import answers, attention_sums, decide, loss_and_slope
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.fit import initial_table, prior_of
from tokensieve.model.partitions import HEAD, Piece, pieces_of
from tokensieve.model.settings import TrainSettings
from tokensieve.progress import Progress, silent
from tokensieve.text.corpus import Corpus, Intake
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.documents import collect
from tokensieve.text.settings import ReadSettings
from tokensieve.text.table import TEST_NAMES, TRAIN_NAMES, SourceTable, listed
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer, tokenizer_from_dict
from tokensieve.text.vocabulary import Chunks, TokenStream, Vocabulary, learn_vocabulary

ROUNDS, PATIENCE = 8, 2
Reader = tuple[ReadSettings, Sequence[str], str]  # settings, text columns, label column
Side = tuple[TokenStream, pl.DataFrame]  # documents as tokens, and their labels, keys and groups
Counted = tuple[Counts, Ints | None, int, int]  # documents, their groups, words that are no token type, and all words


class _Partitions(Chunks):
    """Chunks that lie on a cluster; what is computed of them is computed there.

    Nothing is scattered, so that everything can be computed again when a worker dies.
    """

    def __init__(self, client: Any, parts: Sequence[Any]) -> None:
        self.client, self.parts = client, list(parts)

    def run(self, function: Callable[..., object], *arguments: object) -> Any:
        """The result of one task, still on the cluster."""
        return self.client.submit(function, *arguments, pure=False)

    def each(self, function: Callable[..., object], *common: object, numbered: bool = False) -> _Partitions:
        """The results of a function of every partition (and its number), still on the cluster."""
        parts = [(part, i) if numbered else (part,) for i, part in enumerate(self.parts)]
        return _Partitions(self.client, [self.run(function, *part, *common) for part in parts])

    def sum(self) -> Any:
        """The sum, pair by pair in a fixed order, still on the cluster."""
        parts = self.parts
        while len(parts) > 1:
            pairs = [self.run(operator.add, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0]

    def total(self, of: Callable[..., Any], *common: Any, then: Callable[[Any], Any] | None = None) -> Any:
        """What `then` makes of the sum of `of(chunk, *common)`, brought here."""
        found = self.each(of, *[self.run(_same, value) for value in common]).sum()
        return (found if then is None else self.run(then, found)).result()

    def regrouped(self, column: str, join: Callable[[list[pl.DataFrame]], object]) -> _Partitions:
        """`join` of frames that hold all rows of some values of a column; as many as there are partitions."""
        n = len(self.parts)
        cuts = self.each(_buckets, column, n).parts
        pieces = [[self.run(operator.getitem, cut, i) for cut in cuts] for i in range(n)]
        return _Partitions(self.client, [self.run(join, some) for some in pieces])


def _same(value: object) -> object:
    return value


class _Sums(tuple[Any, ...]):
    """Numbers that add up one by one."""

    def __add__(self, other: Any) -> _Sums:
        return _Sums(a + b for a, b in zip(self, other, strict=True))


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
    refused = {"pairs": how.pairs, "formatting": how.formatting, "weight": how.sample_weight is not None}
    refused |= {"columns": how.columns, "environments": how.environments, "duplicates drop": how.duplicates == "drop"}
    for name, given in refused.items():
        if given:
            raise InputError(f"--{name} does not work on a cluster yet; leave out --{name} or --cluster")
    tell("reading", 0.0)
    train, test, splitter, classes, documents, intake = _sides(client, source, how, tokenizer or WordTokenizer())
    how = how.of_documents(int(documents[0].sum()))
    tell("vocabulary", 0.0)
    streams = train.each(operator.itemgetter(0))
    vocabulary = learn_vocabulary(streams, splitter, how.ngrams, how.min_documents or 1)
    sent = train.run(_same, vocabulary)
    counted = train.each(_counted, sent, classes)
    tell("importance", 0.0)
    found = counted.each(_sums).sum()
    sums, present, class_sizes = found.result()
    importance = importance_of(sums, vocabulary.tokens, classes)
    if how.by is not None:  # the sums are over groups
        neutral = 2 * class_sizes / max(int(class_sizes.sum()), 1) - 1
        importance = replace(importance, class_documents=present, neutral=neutral, units=importance.documents)
    model = AttentionClassifier(tokenizer=splitter, **how.parameters())
    model.classes_, model.vocabulary_, model.n_features_in_ = np.asarray(classes), vocabulary, vocabulary.n_types
    model.min_documents_ = how.min_documents
    state, rounds, validation = _train(counted, found, documents[0], model, how.seed, tell)
    tell("attention", 0.0)
    received = counted.total(_received, state) / np.maximum(importance.documents, 1)
    correct, unknown, words = np.zeros(len(classes), np.int64), 0, 0
    if test is not None:
        _, _, correct, unknown, words = test.each(_counted, sent, classes).total(_tested, state, model.prior_)
    return Learned(
        importance=importance,
        model=model,
        attention=received,
        sizes=documents,
        correct=correct,
        unknown_share=float(unknown / max(words, 1)),
        partitions=len(train.parts),
        rounds=rounds,
        validation=validation,
        bytes_per_round=model.scores_.nbytes + model.values_.nbytes,
        intake=intake,
    )


def _partitions_of(client: Any, source: Any) -> _Partitions:
    """Pieces of a source for workers to read, or what lies on the cluster."""
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | Path) for path in paths):
        workers = client.nthreads() if hasattr(client, "nthreads") else {}

        def quotes(pieces: list[Piece]) -> list[int]:
            counted: list[int] = client.gather(_Partitions(client, pieces).each(Piece.quotes).parts)
            return counted

        return _Partitions(client, pieces_of(paths, max(sum(workers.values()), 1), quotes))
    parts = list(source.to_delayed()) if hasattr(source, "to_delayed") else list(source)
    if not parts:
        raise InputError("there are no partitions: give a Dask bag or data frame with documents")
    return _Partitions(client, client.compute(parts, sync=False))


# ---- reading


def _sides(
    client: Any, source: Any, how: TrainSettings, tokenizer: Tokenizer
) -> tuple[_Partitions, _Partitions | None, Tokenizer, tuple[str, ...], Ints, Intake]:
    """Documents for training and for testing (`Side`), the tokenizer that reads them, the classes, documents by side and class,
    shape (2, K), and what was found on the way in."""
    pieces = _partitions_of(client, source)
    given, tests = len(pieces.parts), [] if how.test is None else _partitions_of(client, how.test).parts
    reader, tokenizer = _reader(pieces.parts, how, tokenizer)
    # What is for testing: where a column says so (None), a fraction by digest, all of a piece, or none of it
    rule = False if tests or not (how.split or how.test_share) else None if how.split else (how.test_share, how.seed)
    rules = [rule] * given + [True] * len(tests)
    read = _Partitions(client, [*pieces.parts, *tests]).each(_read, reader, rules, numbered=True)
    counts, dropped, sizes = Counter[str](), Counter[str](), Counter[tuple[str, bool]]()
    for found in client.gather(read.each(operator.itemgetter(1)).parts):
        if isinstance(found, InputError):
            raise found
        counts, dropped, sizes = counts + found[0], dropped + found[1], sizes + found[2]
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
    frames = read.each(operator.itemgetter(0))
    if how.by is not None:  # documents are sent to the partition of their group
        divided = [_Partitions(client, some) for some in (frames.parts[:given], frames.parts[given:])]
        frames.parts = [part for some in divided for part in some.regrouped("group", pl.concat).parts]
    repeats = frames.each(_keys).regrouped("key", _repeats).sum().result()
    reasons = "duplicates", "conflicts", "conflicting_documents", "test_overlap"
    counts.update(dict(zip(reasons, repeats, strict=True)))
    train, test = (
        _Partitions(client, some).each(_side, test, tokenizer.to_dict())
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
) -> tuple[pl.DataFrame | None, tuple[Counter[str], Counter[str], Counter[tuple[str, bool]]] | InputError]:
    """The documents of a partition (text, label, key, test, and group), and its rows, dropped labels and documents counted.
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
        more = {"group": settings.by, "part": settings.split}
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
    kept = [name for name in ("text", "label", "key", "test", "group") if name in frame.columns]
    frame = frame.filter(pl.col("label").is_not_null()).select(kept)
    dropped = Counter(dict(gone.value_counts().iter_rows()))
    sizes = Counter({(label, test): n for label, test, n in frame.group_by("label", "test").len().iter_rows()})
    return frame, (Counter[str]() if rule is True else counts, dropped, sizes)


def _digest(value: str | bytes, seed: int) -> int:
    """A number below 2³² that depends on nothing but the value and the seed."""
    content = value if isinstance(value, bytes) else value.encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=4, salt=seed.to_bytes(8, "little")).digest(), "little")


def _buckets(frame: pl.DataFrame, column: str, n: int) -> list[pl.DataFrame]:
    where = pl.Series([_digest(value, 0) % n for value in frame[column]], dtype=pl.Int64)
    return [frame.filter(where == i) for i in range(n)]


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.group_by("key", "label", "test").len("n")


def _repeats(frames: list[pl.DataFrame]) -> _Sums:
    """Of some digests: training documents that repeat one of the same label, texts of several labels, training documents of these,
    and test documents whose text is in training."""
    found = pl.concat(frames)
    train, test = found.filter(~pl.col("test")), found.filter("test")
    sums = train.group_by("key", "label").agg(pl.col("n").sum())
    mixed = sums.group_by("key").agg(pl.len().alias("labels"), pl.col("n").sum()).filter(pl.col("labels") > 1)
    shared = test.join(train.select("key").unique(), on="key", how="semi")
    return _Sums((int((sums["n"] - 1).sum()), mixed.height, int(mixed["n"].sum()), int(shared["n"].sum())))


def _side(frame: pl.DataFrame, test: bool, tokenizer: dict[str, Any]) -> Side:
    """The documents for training or for testing as tokens."""
    frame = frame.filter(pl.col("test") == test)
    return TokenStream.of(frame["text"], tokenizer_from_dict(tokenizer)), frame.drop("text", "test")


def _counted(side: Side, vocabulary: Vocabulary, classes: tuple[str, ...]) -> Counted:
    stream, frame = side
    index = {name: k for k, name in enumerate(classes)}
    labels = np.array([index[name] for name in frame["label"]], dtype=np.int64)
    matrix, unknown = vocabulary.count(stream)
    units = Corpus.unit_index(frame["group"].to_list()) if "group" in frame.columns else None
    counts = Counts(matrix, labels, classes, np.empty(vocabulary.n_types, dtype=object))
    return counts, units, int(unknown.sum()), stream.n_tokens


def _sums(part: Counted) -> _Sums:
    counts, units, _, _ = part
    whole = counts if units is None else merged(counts, units)[0]
    return _Sums((TokenSums.of(whole.matrix, whole.labels, whole.n_classes), counts.present, counts.class_sizes))


# ---- training by averaging; a state is u, w and the steps of the round, summed over the partitions


def _train(
    counts: _Partitions, sums: Any, sizes: Ints, model: AttentionClassifier, seed: int, tell: Progress
) -> tuple[Any, int, list[float]]:
    """Choose the number of rounds on held-out documents, then train on all and write (u, w) into the model; the state on the
    cluster, the number of rounds, and the held-out losses."""
    run, prior = counts.run, prior_of(sizes)
    model.prior_, model.validation_ = prior, np.empty((0, 2))
    passes = math.ceil(math.sqrt(len(counts.parts)))

    def one_round(parts: _Partitions, state: Any, number: int) -> Any:
        share = 1 - number / ROUNDS
        rates = model.batch_size, model.score_rate * share, model.value_rate * share
        moved = parts.each(_local, state, passes, rates, seed + len(parts.parts) * number, numbered=True)
        return run(_average, moved.sum())

    losses: list[float] = []
    rounds = ROUNDS
    if sizes.min() >= 10:
        inside, outside = (
            counts.each(_held, model.validation_share, seed, held, numbered=True) for held in (False, True)
        )
        state = run(_first, inside.each(_sums).sum(), prior)
        for number in range(ROUNDS):
            tell("choosing the number of rounds", number / ROUNDS)
            state = one_round(inside, state, number)
            loss, n, *_ = outside.total(_tested, state, prior)
            losses.append(float(loss / max(n, 1)))
            if number - int(np.argmin(losses)) >= PATIENCE:
                break
        rounds = int(np.argmin(losses)) + 1
    state, steps = run(_first, sums, prior), []
    for number in range(rounds):
        tell("training", number / rounds)
        state = one_round(counts, state, number)
        steps.append(run(operator.itemgetter(2), state))
    model.scores_, model.values_, _ = state.result()
    model.n_steps_ = sum(counts.client.gather(steps))
    return state, rounds, losses


def _held(part: Counted, number: int, share: float, seed: int, held_out: bool) -> Counted:
    """The documents of a partition that the number of rounds is chosen on, in whole groups, or all others."""
    counts = part[0]
    units = np.arange(counts.n_documents) if part[1] is None else part[1]
    names = np.random.default_rng([seed, number]).permutation(np.unique(units))
    chosen = np.isin(units, names[: round(share * len(names))])
    return counts.rows(chosen if held_out else ~chosen), None, 0, 0


def _first(sums: _Sums, prior: Floats) -> tuple[Floats, Floats, int]:
    return *initial_table(sums[1], sums[2], prior), 0


def _local(part: Counted, number: int, state: Any, passes: int, rates: tuple[int, float, float], seed: int) -> _Sums:
    """n·u, n·w, n and the steps taken after some passes of minibatch Adam over the partition's n documents."""
    n, (u, w, _) = part[0].n_documents, state
    if not n:
        return _Sums((0 * u, 0 * w, 0, 0))
    per_pass = math.ceil(n / rates[0])
    steps = per_pass * max(min(passes, 2_000 // per_pass), 1)
    endless = Schedule(steps * 10**6, *rates, seed + number)  # within a round the rates stay as they are
    _, u, w = next(train(part[0], u, w, endless, steps))
    return _Sums((n * u, n * w, n, steps))


def _average(total: _Sums) -> tuple[Floats, Floats, int]:
    return total[0] / total[2], total[1] / total[2], total[3]


def _tested(part: Counted, state: Any, prior: Floats) -> _Sums:
    """Sum of the losses, documents, those predicted correctly by class, words that are no token, and all words."""
    counts, _, unknown, words = part
    f, labels = answers(counts.matrix, state[0], state[1]), counts.labels
    f[np.diff(counts.matrix.indptr) == 0] = prior
    hits = np.bincount(labels[decide(f) == labels], minlength=counts.n_classes)
    return _Sums((loss_and_slope(f, labels)[0].sum(), len(labels), hits, unknown, words))


def _received(part: Counted, state: Any) -> Floats:
    """Σ over the partition's documents of q_{X,s} / (c_{X,s}/T_X), shape (|S|,)."""
    return np.asarray(attention_sums(part[0].matrix, state[0])[2])
