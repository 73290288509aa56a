"""Vocabulary, importance and training over the partitions of a Dask cluster.

The partitions are the chunks of a corpus (`tokensieve.text.tokens.Chunks`): rows are read, words counted and sums added by the
same functions as on one machine, each where its partition lies. Every result is a pure function of the partitions and their
order: which worker computes what, and how often after one has died, does not change a bit. Vocabulary and importance are those of
one machine, to the bit (`tokensieve.evidence.sums.TokenSums`).

Training is by parameter averaging (McMahan et al. 2017, FedAvg): in each round every partition takes `⌈√P⌉` passes of minibatch
Adam over its own documents from the common (u, w) (fewer where a pass has thousands of steps), and the results are averaged,
weighted by documents. What crosses the network per round and partition is (u, w) both ways: two numbers per token type for two
classes. Averages are formed pairwise on the workers, in a fixed order. The number of rounds is chosen on held-out documents. What
attention each type receives is a sum over documents as well, formed the same way: one number per token type and partition.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, importance_of
from tokensieve.evidence.sums import TokenSums
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import answers, loss_and_slope
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.effects import attention_sums
from tokensieve.model.start import prior_of, start_of
from tokensieve.progress import Progress, silent
from tokensieve.text.columns import text_columns
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.documents import check_kept, collect, left_out_lines
from tokensieve.text.labels import classes_of
from tokensieve.text.settings import SourceSettings
from tokensieve.text.table import frame_table, list_table
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer, tokenizer_from_dict, with_fields
from tokensieve.text.tokens import Chunks, TokenStream, tokenize
from tokensieve.text.vocabulary import Vocabulary, learn_vocabulary

ROUNDS, PATIENCE = 8, 2
LOCAL_STEPS = 2_000
Table = tuple[Floats, Floats]


@dataclass(frozen=True)
class Learned:
    """What a cluster found.

    Attributes:
        importance: as `token_importance` of all documents on one machine.
        model: the classifier, as after `fit`; its `n_steps_` are the minibatch steps of the final training, added up over rounds
            and partitions.
        attention: mean over the documents that contain a type of its attention relative to a uniform share,
            q_{X,s} / (c_{X,s}/T_X), as in `tokensieve.model.effects.Effects` but 0 for a type in none, shape (|S|,). The same
            bits for the same partitions; other partitions train another model, and order the sum differently.
        documents: how many documents there were.
        partitions: P.
        rounds: rounds of training on all documents.
        validation: mean loss on held-out documents after each round of choosing; empty where a class has too few.
        bytes_per_round: what one partition sends, and receives, in a round: 8 bytes · |S| · (1 + outputs).
        notes: a plain sentence for each kind of row that was left out.
    """

    importance: Importance
    model: AttentionClassifier
    attention: Floats
    documents: int
    partitions: int
    rounds: int
    validation: list[float]
    bytes_per_round: int
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """All but the tables, in plain types."""
        names = "documents partitions rounds validation bytes_per_round"
        return {name: getattr(self, name) for name in names.split()} | {"token_types": len(self.importance.tokens)}


@dataclass(frozen=True)
class _Part:
    """One partition: its documents as tokens, and what was found in its rows."""

    stream: TokenStream
    labels: list[str]
    counts: Counter[str]


def learn_on(
    client: Any,
    partitions: Any,
    *,
    text: str | Sequence[str] = "text",
    label: str = "label",
    ngrams: int = 1,
    min_documents: int = 3,
    tokenizer: Tokenizer | None = None,
    seed: int = 0,
    value_rate: float = 0.1,
    progress: Progress | None = None,
) -> Learned:
    """Vocabulary, importance and classifier from documents that lie on a cluster.

    Args:
        client: a `dask.distributed.Client`.
        partitions: a Dask bag of (text, label) pairs, a Dask data frame, or a sequence of delayed values or futures, each a
            data frame (pandas or Polars) or a list of pairs. Rows are read as by `read_corpus`: those without text or label are
            left out and counted.
        text, label: columns of data frames; several text columns are fields, as for `read_corpus`.
        ngrams: longest run of words that is a token type.
        min_documents: a type must occur in that many documents.
        tokenizer: words if None.
        seed: of the order of documents.
        value_rate: initial step size for the values.
        progress: called with (stage, share done).

    Raises:
        InputError: there are no documents, a partition has no such columns or no pairs, the labels cannot be classes, or no token
            is frequent enough.
    """
    fields = () if isinstance(text, str) or len(text) < 2 else tuple(text)
    splitter, tell = with_fields(tokenizer or WordTokenizer(), fields), progress or silent
    pieces = list(partitions.to_delayed()) if hasattr(partitions, "to_delayed") else list(partitions)
    if not pieces:
        raise InputError("there are no partitions: give a Dask bag or data frame with documents")
    cluster = _Cluster(client)
    tell("tokenizing", 0.0)
    parts = [
        cluster.run(_tokenized, part, f"partition {number}", text, label, splitter.to_dict())
        for number, part in enumerate(client.compute(pieces, sync=False), 1)
    ]
    found, sizes = _accounts(client.gather(cluster.each(_accounted, parts)))
    classes = classes_of(sizes, f"the partitions: the label column {label!r}")
    tell("vocabulary", 0.0)
    vocabulary = learn_vocabulary(_Partitions(cluster, cluster.each(_stream, parts)), splitter, ngrams, min_documents)
    counts = _Partitions(cluster, cluster.each(_counted, parts, cluster.run(_same, vocabulary), classes))
    tell("importance", 0.0)
    sums = counts.total(_sums, then=_same)
    importance = importance_of(sums, vocabulary.tokens, classes)
    model = AttentionClassifier(ngrams, min_documents, splitter, value_rate=value_rate, random_state=seed)
    state, rounds, validation = _train(counts, sums.class_sizes, model, seed, tell)
    tell("attention", 0.0)
    received = counts.total(_received, state, then=_same) / np.maximum(importance.documents, 1)
    model.classes_, model.vocabulary_, model.n_features_in_ = np.asarray(classes), vocabulary, vocabulary.n_types
    sent = model.scores_.nbytes + model.values_.nbytes
    documents = int(sums.class_sizes.sum())
    return Learned(
        importance, model, received, documents, len(parts), rounds, validation, sent, left_out_lines(found)
    )  # fmt: skip


class _Cluster:
    """Tasks on a cluster; nothing is scattered, so that all can be computed again when a worker dies."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def each(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> list[Any]:
        return [self.run(function, part, *common) for part in parts]

    def tree(self, parts: Sequence[Any]) -> Any:
        """The sum, pair by pair in a fixed order, still on the cluster."""
        while len(parts) > 1:
            pairs = [self.run(operator.add, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + list(parts[2 * len(pairs) :])
        return parts[0]


class _Partitions(Chunks):
    """Chunks that lie on a cluster; what is computed of them is computed there."""

    def __init__(self, cluster: _Cluster, parts: list[Any]) -> None:
        self.cluster, self.parts = cluster, parts

    def total(self, of: Callable[..., Any], *common: Any, then: Callable[[Any], Any]) -> Any:
        """What `then` makes of the sum, brought here."""
        sent = [self.cluster.run(_same, value) for value in common]
        return self.cluster.run(then, self.cluster.tree(self.cluster.each(of, self.parts, *sent))).result()


def _same(value: Any) -> Any:
    return value


def _tokenized(
    part: Any, name: str, text: str | Sequence[str], label: str, tokenizer: dict[str, Any]
) -> _Part | InputError:
    """The rows of a partition; an error of the user's is a result like any other, so that no worker logs it."""
    try:
        table = frame_table(part, name) or list_table(_pairs(part, name), name)
        names: tuple[Any, ...] = (text, label) if hasattr(part, "columns") else table.columns
        texts, column = text_columns(table, names[0]), table.position(names[1], "label")
        rows = collect(table, texts, column, SourceSettings())[0]
    except InputError as problem:
        return problem
    frame = rows.finish()[0]
    return _Part(tokenize(frame["text"], tokenizer_from_dict(tokenizer)), frame["label"].to_list(), rows.counts)


def _pairs(part: Any, name: str) -> tuple[list[Any], list[Any]]:
    part = list(part)
    for row in part:
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2:
            raise InputError(f"{name} holds {str(row)[:60]!r}: give (text, label) pairs or data frames")
    return [row[0] for row in part], [row[1] for row in part]


def _accounted(part: _Part | InputError) -> InputError | tuple[Counter[str], Counter[str]]:
    return part if isinstance(part, InputError) else (part.counts, Counter(part.labels))


def _accounts(found: Sequence[InputError | tuple[Counter[str], Counter[str]]]) -> tuple[Counter[str], Counter[str]]:
    """What was found in all partitions together.

    Raises:
        InputError: of the first partition that has one; or no document is left.
    """
    counts, sizes = Counter[str](), Counter[str]()
    for one in found:
        if isinstance(one, InputError):
            raise one
        counts, sizes = counts + one[0], sizes + one[1]
    check_kept("the partitions", counts, sizes.total())
    return counts, sizes


def _stream(part: _Part) -> TokenStream:
    return part.stream


def _counted(part: _Part, vocabulary: Vocabulary, classes: tuple[str, ...]) -> Counts:
    index = {name: k for k, name in enumerate(classes)}
    labels = np.array([index[name] for name in part.labels], dtype=np.int64)
    return Counts(vocabulary.count(part.stream)[0], labels, classes, np.empty(vocabulary.n_types, dtype=object))


# ---- training


class _Sums(tuple[Any, ...]):
    """Numbers that add up one by one."""

    def __add__(self, other: Any) -> _Sums:
        return _Sums(a + b for a, b in zip(self, other, strict=True))


def _train(
    counts: _Partitions, sizes: Ints, model: AttentionClassifier, seed: int, tell: Progress
) -> tuple[Any, int, list[float]]:
    """Choose the number of rounds on held-out documents, then train on all; write (u, w) into the model.

    Returns:
        (u, w) on the cluster, the number of rounds, and the held-out losses.
    """
    cluster = counts.cluster
    model.prior_, model.validation_ = prior_of(sizes), np.empty((0, 2))
    losses: list[float] = []
    rounds = ROUNDS
    if sizes.min() >= 10:
        inside, outside = (
            _Partitions(cluster, [
                cluster.run(_side, part, model.validation_share, seed, p, held_out) for p, part in enumerate(counts.parts)
            ]) for held_out in (False, True)
        )  # fmt: skip
        state = _start(inside, model.prior_)
        for number in range(ROUNDS):
            tell("choosing the number of rounds", number / ROUNDS)
            state, _ = _round(inside, state, number, model, seed)
            loss, n = outside.total(_loss, state, model.prior_, then=_same)
            losses.append(float(loss / max(n, 1)))
            if number - int(np.argmin(losses)) >= PATIENCE:
                break
        rounds = int(np.argmin(losses)) + 1
    state, steps = _start(counts, model.prior_), []
    for number in range(rounds):
        tell("training", number / rounds)
        state, taken = _round(counts, state, number, model, seed)
        steps.append(taken)
    model.scores_, model.values_ = state.result()
    model.n_steps_ = sum(cluster.client.gather(steps))
    return state, rounds, losses


def _start(counts: _Partitions, prior: Floats) -> Any:
    cluster = counts.cluster
    return cluster.run(_first, cluster.tree(cluster.each(_presence, counts.parts)), prior)


def _round(counts: _Partitions, state: Any, number: int, model: AttentionClassifier, seed: int) -> tuple[Any, Any]:
    """(u, w) after one more round, and the steps that all partitions took in it, both on the cluster."""
    cluster, p = counts.cluster, len(counts.parts)
    share = 1 - number / ROUNDS
    rates = model.batch_size, model.score_rate * share, model.value_rate * share
    moved = [
        cluster.run(_local, part, state, math.ceil(math.sqrt(p)), rates, seed + p * number + i)
        for i, part in enumerate(counts.parts)
    ]
    total = cluster.tree(moved)
    return cluster.run(_average, total), cluster.run(operator.itemgetter(3), total)


def _side(counts: Counts, share: float, seed: int, number: int, held_out: bool) -> Counts:
    """The documents of a partition that the number of rounds is chosen on, or all others."""
    order = np.random.default_rng([seed, number]).permutation(counts.n_documents)
    n = round(share * counts.n_documents)
    return counts.rows(np.sort(order[:n] if held_out else order[n:]))


def _presence(counts: Counts) -> _Sums:
    return _Sums((counts.present, counts.class_sizes))


def _first(found: _Sums, prior: Floats) -> Table:
    return start_of(found[0], found[1], prior)


def _local(counts: Counts, state: Table, passes: int, rates: tuple[int, float, float], seed: int) -> _Sums:
    """n·u, n·w, n and the steps taken after some passes of minibatch Adam over the partition's n documents."""
    n = counts.n_documents
    if not n:
        return _Sums((0 * state[0], 0 * state[1], 0, 0))
    per_pass = math.ceil(n / rates[0])
    steps = per_pass * max(min(passes, LOCAL_STEPS // per_pass), 1)
    endless = Schedule(steps * 10**6, *rates, seed)  # within a round the rates stay as they are
    _, u, w = next(train(counts, *state, endless, steps))
    return _Sums((n * u, n * w, n, steps))


def _average(total: _Sums) -> Table:
    return total[0] / total[2], total[1] / total[2]


def _loss(counts: Counts, state: Table, prior: Floats) -> _Sums:
    """Sum of the losses of the partition's documents, and how many there are."""
    f = answers(counts.matrix, *state)
    f[np.diff(counts.matrix.indptr) == 0] = prior
    return _Sums((loss_and_slope(f, counts.labels)[0].sum(), counts.n_documents))


def _sums(counts: Counts) -> TokenSums:
    return TokenSums.of(counts.matrix, counts.labels, counts.n_classes)


def _received(counts: Counts, state: Table) -> Floats:
    """Σ over the partition's documents of q_{X,s} / (c_{X,s}/T_X), shape (|S|,)."""
    sums: Floats = attention_sums(counts.matrix, state[0])[2]
    return sums
