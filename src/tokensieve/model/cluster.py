"""Vocabulary, importance and training over the partitions of a Dask cluster.

The partitions are pieces of a source that workers read themselves (`tokensieve.model.partitions`), or data that lies there already.
Rows are read, words counted and sums added by the same functions as on one machine, each where its partition lies; the client
never holds the documents. Every result is a pure function of the partitions and their order: which worker computes what, and how
often after one has died, does not change a bit. Vocabulary and importance are those of one machine, to the bit
(`tokensieve.evidence.sums.TokenSums`).

Without a test set, documents are set aside for testing by a digest of their text (or of their group), so that identical texts are
never on both sides. Documents that belong to groups are first sent to the partition of their group, so that groups are whole there.
Repeated and contradicting texts are found by a join of their digests, a bucket of digests at a time.

Training is by parameter averaging (McMahan et al. 2017, FedAvg): in each round every partition takes `⌈√P⌉` passes of minibatch
Adam over its own documents from the common (u, w) (fewer where a pass has thousands of steps), and the results are averaged,
weighted by documents. What crosses the network per round and partition is (u, w) both ways: two numbers per token type for two
classes. Averages are formed pairwise on the workers, in a fixed order. The number of rounds is chosen on held-out documents. What
attention each type receives is a sum over documents as well, formed the same way: one number per token type and partition.
"""

from __future__ import annotations

import hashlib
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, importance_of, merged
from tokensieve.evidence.sums import TokenSums
from tokensieve.model.averaging import (
    Cluster,
    CountedPart,
    Partitions,
    Sums,
    attention_of,
    same,
    tested_part,
    train_by_averaging,
)
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.partitions import Piece, pieces_of, table_of, with_quotes
from tokensieve.model.settings import TrainSettings
from tokensieve.progress import Progress, silent
from tokensieve.text.columns import labelled_columns
from tokensieve.text.corpus import Intake, one_label
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.documents import TEST_NAMES, TRAIN_NAMES, check_kept, collect
from tokensieve.text.labels import classes_of, destinations, in_order, listed
from tokensieve.text.settings import ReadSettings, with_options
from tokensieve.text.split import unit_index
from tokensieve.text.table import SourceTable
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer, tokenizer_from_dict, with_fields
from tokensieve.text.vocabulary import TokenStream, Vocabulary, learn_vocabulary, tokenize


@dataclass(frozen=True)
class Learned:
    """What a cluster found.

    Attributes:
        importance: as `token_importance` of all training documents on one machine.
        model: the classifier, as after `fit`; its `n_steps_` are the minibatch steps of the final training, added up over rounds
            and partitions.
        attention: mean over the documents that contain a type of its attention relative to a uniform share,
            q_{X,s} / (c_{X,s}/T_X), as in `tokensieve.model.explanation.Effects` but 0 for a type in none, shape (|S|,). The same
            bits for the same partitions; other partitions train another model, and order the sum differently.
        classes: the class names.
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
    classes: tuple[str, ...]
    sizes: Ints
    correct: Ints
    unknown_share: float
    partitions: int
    rounds: int
    validation: list[float]
    bytes_per_round: int
    intake: Intake

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json, but for times and settings."""
        train, test = self.sizes
        recall = zip(self.classes, self.correct.tolist(), test.tolist(), strict=True)
        names = "partitions rounds validation bytes_per_round".split()
        return {
            "classes": self.classes,
            "documents": {"train": int(train.sum()), "test": int(test.sum())},
            "class_documents": dict(zip(self.classes, train.tolist(), strict=True)),
            "token_types": len(self.importance.tokens),
            "test_accuracy": float(self.correct.sum() / max(test.sum(), 1)),
            "majority_accuracy": float(test[train.argmax()] / max(test.sum(), 1)),
            "class_recall": {name: hits / size if size else None for name, hits, size in recall},
            "unknown_share": self.unknown_share,
            "version": __version__,
            "notes": self.intake.lines(),
        } | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class _Part:
    """One side of a partition: its documents as tokens, their labels, keys and groups, and what was found in its rows."""

    stream: TokenStream
    frame: pl.DataFrame
    counts: Counter[str]


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
    how, tell = with_options(settings or TrainSettings(test_share=0.0), options), progress or silent
    _check(how)
    cluster = Cluster(client)
    tell("reading", 0.0)
    train_pieces = _partitions_of(cluster, source)
    test_pieces = [] if how.test is None else _partitions_of(cluster, how.test)
    reader, splitter = _reader(train_pieces, how, tokenizer or WordTokenizer())
    read = [cluster.run(_read, piece, number, reader) for number, piece in enumerate([*train_pieces, *test_pieces], 1)]
    if how.by is not None:
        read = _shuffled(cluster, read, len(train_pieces))
    given = len(train_pieces)
    split = how.test is None and (how.split is not None or how.test_share > 0)
    rule = (how.test_share, how.seed) if split and how.split is None else None
    sides: dict[str, list[Any]] = {"train": [], "test": []}
    for i, part in enumerate(read):
        for side in ("train", "test") if split else ("train",) if i < given else ("test",):
            sides[side].append(cluster.run(_side_of, part, side if split else None, rule, splitter.to_dict()))
    intake, classes, sizes = _intake(cluster, sides, reader)
    how = how.of_documents(int(sizes[0].sum()))
    tell("vocabulary", 0.0)
    streams = Partitions(cluster, cluster.each(_stream, sides["train"]))
    vocabulary = learn_vocabulary(streams, splitter, how.ngrams, how.min_documents or 1)
    sent = cluster.run(same, vocabulary)
    counts = Partitions(cluster, cluster.each(_counted, sides["train"], sent, classes))
    tell("importance", 0.0)
    importance = _importance(counts.total(_sums, then=same), vocabulary, classes, how.by is not None)
    model = AttentionClassifier(tokenizer=splitter, **how.parameters())
    state, rounds, validation = train_by_averaging(counts, sizes[0], model, how.seed, tell)
    tell("attention", 0.0)
    received = counts.total(attention_of, state, then=same) / np.maximum(importance.documents, 1)
    model.min_documents_ = how.min_documents
    model.classes_, model.vocabulary_, model.n_features_in_ = np.asarray(classes), vocabulary, vocabulary.n_types
    correct, unknown, words = np.zeros(len(classes), np.int64), 0, 0
    if sides["test"]:
        tested = Partitions(cluster, cluster.each(_counted, sides["test"], sent, classes))
        correct, unknown, words = tested.total(tested_part, state, model.prior_, then=same)
    return Learned(
        importance=importance,
        model=model,
        attention=received,
        classes=classes,
        sizes=sizes,
        correct=correct,
        unknown_share=float(unknown / max(words, 1)),
        partitions=len(train_pieces),
        rounds=rounds,
        validation=validation,
        bytes_per_round=model.scores_.nbytes + model.values_.nbytes,
        intake=intake,
    )


def _check(how: TrainSettings) -> None:
    """Refuse what needs all documents in one place."""
    refused = {
        "--pairs": how.pairs,
        "--formatting": how.formatting,
        "--weight": how.sample_weight is not None,
        "--columns": how.columns,
        "--environments": how.environments,
        "--duplicates drop": how.duplicates == "drop",
    }
    for name, given in refused.items():
        if given:
            raise InputError(f"{name} does not work on a cluster yet; leave out {name} or --cluster")


def _partitions_of(cluster: Cluster, source: Any) -> list[Any]:
    """Partitions of a source: pieces for workers to read, or what lies on the cluster."""
    paths = [source] if isinstance(source, str) or hasattr(source, "__fspath__") else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str) or hasattr(p, "__fspath__") for p in paths):
        workers = cluster.client.nthreads() if hasattr(cluster.client, "nthreads") else {}
        found = pieces_of([str(path) for path in paths], max(sum(workers.values()), 1))
        return with_quotes(found, cluster.client.gather(cluster.each(_quotes, found)))
    parts = list(source.to_delayed()) if hasattr(source, "to_delayed") else list(source)
    if not parts:
        raise InputError("there are no partitions: give a Dask bag or data frame with documents")
    return list(cluster.client.compute(parts, sync=False))


def _shuffled(cluster: Cluster, parts: list[Any], first: int) -> list[Any]:
    """Documents sent to the partition of their group, those of the first parts and of all others apart."""
    out: list[Any] = []
    for some in (parts[:first], parts[first:]):
        cut = cluster.each(_by_group, some, max(len(some), 1))
        out += [
            cluster.run(_together, *[cluster.run(operator.getitem, one, i) for one in cut]) for i in range(len(some))
        ]
    return out


def _quotes(piece: Piece) -> int:
    return piece.quotes() if piece.unit == "bytes" else 0


# ---- reading

Reader = tuple[
    ReadSettings, tuple[str, ...] | None, str
]  # settings, text columns, label column; None: as a partition has them


def _reader(pieces: Sequence[Any], how: TrainSettings, tokenizer: Tokenizer) -> tuple[Reader, Tokenizer]:
    """How every partition is read, and the tokenizer; columns are recognised in the first rows of a source."""
    settings = ReadSettings(**{name: getattr(how, name) for name in ReadSettings.__dataclass_fields__} | {"test": None})
    label, texts = one_label(how.label), () if how.text is None else how.text
    named = (texts,) if isinstance(texts, str) else tuple(texts)
    if pieces and isinstance(pieces[0], Piece):
        head = pieces[0].table(settings, rows=1000)
        more = [name for name in (how.by, how.split) if name is not None]
        for name, flag in ((how.by, "by"), (how.split, "split")):
            if name is not None:
                head.position(name, flag)
        named, label = labelled_columns(head, named or None, label, more)
    return (settings, named or ("text",), label or "label"), with_fields(tokenizer, named if len(named) > 1 else ())


def _read(part: Any, number: int, reader: Reader) -> tuple[pl.DataFrame, Counter[str]] | InputError:
    """The usable rows of a partition; an error of the user's is a result like any other, so that no worker logs it."""
    settings, texts, label = reader
    try:
        table = table_of(part, f"partition {number}", settings)
        if not isinstance(part, Piece) and not hasattr(part, "columns"):
            texts, label = table.columns[:1], table.columns[1]
        return _rows(table, texts or (), label, settings)
    except InputError as problem:
        return problem


def _rows(
    table: SourceTable, texts: Sequence[str], label: str, settings: ReadSettings
) -> tuple[pl.DataFrame, Counter[str]]:
    columns, column = [table.position(name, "text") for name in texts], table.position(label, "label")
    more = {"group": settings.by, "part": settings.split}
    named = {kind: table.position(name, kind) for kind, name in more.items() if name is not None}
    rows = collect(table, columns, column, settings, having=settings.having, more=named)[0]
    frame, final = rows.finish()[0], destinations(settings.group or {}, settings.drop)
    kept = [name for name in ("text", "label", "key", "group", "part") if name in frame.columns]
    frame = frame.select(kept).with_columns(original="label")
    frame = frame.with_columns(
        label=pl.col("label").replace_strict(final, default=pl.col("label"), return_dtype=pl.String)
    )
    if "group" in frame.columns:  # a document without a group is one of its own
        own = pl.format("\0{} {}", pl.lit(table.name), pl.int_range(pl.len()))
        frame = frame.with_columns(group=pl.col("group").fill_null(own))
    return frame, rows.counts


Rows = tuple[pl.DataFrame, Counter[str]]


def _by_group(read: Rows | InputError, parts: int) -> list[Rows | InputError]:
    """The rows of a partition by the partition of their group; counts go with the first."""
    if isinstance(read, InputError):
        return [read] * parts
    frame, counts = read
    where = pl.Series([_digest(name, 0) % parts for name in frame["group"]], dtype=pl.Int64)
    return [(frame.filter(where == i), counts if i == 0 else Counter[str]()) for i in range(parts)]


def _together(*read: Rows | InputError) -> Rows | InputError:
    for one in read:
        if isinstance(one, InputError):
            return one
    rows = [one for one in read if not isinstance(one, InputError)]
    return pl.concat([frame for frame, _ in rows]), sum((counts for _, counts in rows), Counter[str]())


def _side_of(
    read: Rows | InputError, side: str | None, rule: tuple[float, int] | None, tokenizer: dict[str, Any]
) -> _Part | InputError:
    """The documents of one side as tokens: by the column of the split, or by a rule (share for testing, seed).

    Args:
        read: of `_read`.
        side: "train" or "test"; None where all of the partition is one side.
        rule: None where a column decides.
        tokenizer: settings of the tokenizer.
    """
    if isinstance(read, InputError):
        return read
    frame, counts = read
    if side is not None:
        if rule is not None:
            share, seed = rule
            by = "group" if "group" in frame.columns else "key"
            test = pl.Series([_digest(name, seed) < share * 2**32 for name in frame[by]], dtype=pl.Boolean)
        else:
            names = frame["part"].fill_null("").str.strip_chars().str.to_lowercase()
            odd = names.filter(~names.is_in([*TEST_NAMES, *TRAIN_NAMES]))
            if len(odd):
                return InputError(
                    f"the split column must hold 'test' for test rows and one of {listed(TRAIN_NAMES)} for the others; it holds "
                    f"{str(odd[0])[:40]!r}"
                )
            test = names.is_in(TEST_NAMES)
        frame = frame.filter(test if side == "test" else ~test)
        counts = counts if side == "train" else Counter[str]()
    dropped = Counter(dict(frame.filter(pl.col("label").is_null())["original"].value_counts().iter_rows()))
    counts = counts + Counter({f"dropped {name}": n for name, n in dropped.items()})
    frame = frame.filter(pl.col("label").is_not_null())
    return _Part(tokenize(frame["text"], tokenizer_from_dict(tokenizer)), frame.drop("text", "original"), counts)


def _digest(value: str | bytes, seed: int) -> int:
    """A number below 2³² that depends on nothing but the value and the seed."""
    content = value if isinstance(value, bytes) else value.encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=4, salt=seed.to_bytes(8, "little")).digest(), "little")


def _accounted(part: _Part | InputError) -> InputError | tuple[Counter[str], Counter[str]]:
    if isinstance(part, InputError):
        return part
    return part.counts, Counter(dict(part.frame["label"].value_counts().iter_rows()))


def _intake(cluster: Cluster, sides: dict[str, list[Any]], reader: Reader) -> tuple[Intake, tuple[str, ...], Ints]:
    """What was found on the way in, the classes, and the documents of each side and class, shape (2, K).

    Raises:
        InputError: of the first partition that has one; no document is left; or the labels cannot be classes.
    """
    counts, sizes = {"train": Counter[str](), "test": Counter[str]()}, {"train": Counter[str](), "test": Counter[str]()}
    for side, parts in sides.items():
        for found in cluster.client.gather(cluster.each(_accounted, parts)):
            if isinstance(found, InputError):
                raise found
            counts[side] += found[0]
            sizes[side] += found[1]
    rows = Counter({name: n for name, n in counts["train"].items() if not name.startswith("dropped ")})
    dropped = {name[8:]: n for name, n in counts["train"].items() if name.startswith("dropped ")}
    check_kept("the partitions", rows, sizes["train"].total(), sum(dropped.values()))
    classes = classes_of(sizes["train"], f"the partitions: the label column {reader[2]!r}")
    strange = sorted(set(sizes["test"]) - set(classes), key=in_order)
    if strange:
        raise InputError(
            f"training has no label {strange[0]!r} of the test documents; its labels are {listed(classes)}"
        )
    everywhere = [*((part, "train") for part in sides["train"]), *((part, "test") for part in sides["test"])]
    cut = [cluster.run(_keys, part, side, len(everywhere)) for part, side in everywhere]
    joined = [
        cluster.run(_joined, *[cluster.run(operator.getitem, one, i) for one in cut]) for i in range(len(everywhere))
    ]
    repeats = cluster.tree(joined).result()
    duplicates, conflicts, conflicting, overlap = map(int, repeats)
    intake = Intake(
        counts=dict(rows),
        kept=sizes["train"].total(),
        columns=(" + ".join(reader[1] or ()), reader[2]),
        dropped=dropped,
        duplicates=duplicates,
        conflicts=conflicts,
        conflicting_documents=conflicting,
        test_overlap=overlap,
    )
    return intake, classes, np.array([[sizes[side][name] for name in classes] for side in ("train", "test")])


def _keys(part: _Part, side: str, buckets: int) -> list[pl.DataFrame]:
    """Digests of the texts, their labels and how often each occurs, by bucket of the digest."""
    found = part.frame.group_by("key", "label").len("n").with_columns(side=pl.lit(side))
    where = pl.Series([int.from_bytes(key[:4], "little") % buckets for key in found["key"]], dtype=pl.Int64)
    return [found.filter(where == i) for i in range(buckets)]


def _joined(*frames: pl.DataFrame) -> Sums:
    """Of one bucket: training documents that repeat one of the same label, texts of several labels, training documents of these,
    and test documents whose text is in training."""
    found = pl.concat(frames)
    train, test = (found.filter(pl.col("side") == side) for side in ("train", "test"))
    sums = train.group_by("key", "label").agg(pl.col("n").sum())
    mixed = sums.group_by("key").agg(pl.len().alias("labels"), pl.col("n").sum()).filter(pl.col("labels") > 1)
    shared = test.join(train.select("key").unique(), on="key", how="semi")
    return Sums((int((sums["n"] - 1).sum()), mixed.height, int(mixed["n"].sum()), int(shared["n"].sum())))


def _stream(part: _Part) -> TokenStream:
    return part.stream


def _counted(part: _Part, vocabulary: Vocabulary, classes: tuple[str, ...]) -> CountedPart:
    index = {name: k for k, name in enumerate(classes)}
    labels = np.array([index[name] for name in part.frame["label"]], dtype=np.int64)
    matrix, unknown = vocabulary.count(part.stream)
    units = unit_index(part.frame["group"].to_list()) if "group" in part.frame.columns else None
    counts = Counts(matrix, labels, classes, np.empty(vocabulary.n_types, dtype=object))
    return CountedPart(counts, units, int(unknown.sum()), part.stream.n_tokens)


def _sums(part: CountedPart) -> Sums:
    counts = part.counts
    whole = counts if part.units is None else merged(counts, part.units)[0]
    return Sums((TokenSums.of(whole.matrix, whole.labels, whole.n_classes), counts.present, counts.class_sizes))


def _importance(sums: Sums, vocabulary: Vocabulary, classes: tuple[str, ...], by: bool) -> Importance:
    """As `token_importance`, from the sums over all partitions; where groups are whole, over groups."""
    found = importance_of(sums[0], vocabulary.tokens, classes)
    if not by:
        return found
    neutral = 2 * sums[2] / max(int(sums[2].sum()), 1) - 1
    return replace(found, class_documents=sums[1], neutral=neutral, units=found.documents)
