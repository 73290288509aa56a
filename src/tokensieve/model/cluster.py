"""Vocabulary, importance and training over the partitions of a Dask cluster.

Every result is a pure function of the partitions and their order: which worker computes what, and how often after one has died,
does not change a bit. Vocabulary and importance are those of one machine, to the bit (`tokensieve.data.importance.TokenSums`).

Training is by parameter averaging (McMahan et al. 2017, FedAvg): in each round every partition takes `⌈√P⌉` passes of minibatch
Adam over its own documents from the common (u, w) (fewer where a pass has thousands of steps), and the results are averaged,
weighted by documents. What crosses the network per round and partition is (u, w) both ways: two numbers per token type for two
classes. Averages are formed pairwise on the workers, in a fixed order. The number of rounds is chosen on held-out documents. What
attention each type receives is a sum over documents as well, formed the same way: one number per token type and partition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tokensieve.data.importance import Importance, TokenSums
from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import answers, loss_and_slope
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.effects import attention_sums
from tokensieve.model.start import prior_of, start_of
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.labels import in_order, label_name
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer, text_series, tokenizer_from_dict
from tokensieve.text.vocabulary import TokenStream, Vocabulary, tokenize, word_frequencies

ROUNDS, PATIENCE = 8, 2
LOCAL_STEPS = 2_000
Table = tuple[Floats, Floats]


@dataclass(frozen=True)
class Learned:
    """What a cluster found.

    Attributes:
        importance: as `token_importance` of all documents on one machine.
        model: the classifier, as after `fit`.
        attention: mean over the documents that contain a type of its attention relative to a uniform share,
            q_{X,s} / (c_{X,s}/T_X), as in `tokensieve.model.effects.Effects` but 0 for a type in none, shape (|S|,). The same
            bits for the same partitions; other partitions train another model, and order the sum differently.
        documents: how many documents there were.
        partitions: P.
        rounds: rounds of training on all documents.
        validation: mean loss on held-out documents after each round of choosing; empty where a class has too few.
        bytes_per_round: what one partition sends, and receives, in a round: 8 bytes · |S| · (1 + heads).
    """

    importance: Importance
    model: AttentionClassifier
    attention: Floats
    documents: int
    partitions: int
    rounds: int
    validation: list[float]
    bytes_per_round: int

    def to_dict(self) -> dict[str, Any]:
        """All but the tables, in plain types."""
        names = "documents partitions rounds validation bytes_per_round"
        return {name: getattr(self, name) for name in names.split()} | {"token_types": len(self.importance.tokens)}


@dataclass(frozen=True)
class _Part:
    """One partition as token ids."""

    stream: TokenStream
    labels: list[str]


def learn_on(
    client: Any,
    partitions: Any,
    *,
    text: str = "text",
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
            data frame (pandas or Polars) or a list of pairs. Rows without text or label are left out.
        text, label: columns of data frames.
        ngrams: longest run of words that is a token type.
        min_documents: a type must stand in that many documents.
        tokenizer: words if None.
        seed: of the order of documents.
        value_rate: initial step size for the values.
        progress: called with (stage, share done).

    Raises:
        InputError: there are no documents, a partition has no such columns or no pairs, there are fewer than two classes, or no
            token is frequent enough.
    """
    splitter, tell = tokenizer or WordTokenizer(), progress or silent
    pieces = list(partitions.to_delayed()) if hasattr(partitions, "to_delayed") else list(partitions)
    if not pieces:
        raise InputError("there are no partitions: give a Dask bag or data frame with documents")
    cluster = _Cluster(client)
    tell("tokenizing", 0.0)
    parts = [
        cluster.run(_tokenized, part, text, label, splitter.to_dict()) for part in client.compute(pieces, sync=False)
    ]
    names = set().union(*client.gather(cluster.each(_label_names, parts)))
    classes = tuple(sorted(names, key=in_order))
    if len(classes) < 2:
        raise InputError(f"the partitions hold {len(classes)} class: two are needed; check --label")
    tell("vocabulary", 0.0)
    vocabulary = _vocabulary(cluster, parts, splitter, ngrams, min_documents)
    counts = cluster.each(
        _counted, parts, cluster.run(Vocabulary, vocabulary.words, vocabulary.grams, splitter), classes
    )
    tell("importance", 0.0)
    sums: TokenSums = cluster.total(cluster.each(TokenSums.of, counts)).result()
    importance = sums.importance(vocabulary.tokens, classes)
    model = AttentionClassifier(ngrams, min_documents, splitter, value_rate=value_rate, random_state=seed)
    state, rounds, validation = _train(cluster, counts, sums.class_sizes, model, seed, tell)
    tell("attention", 0.0)
    received = cluster.total(cluster.each(_received, counts, state)).result() / np.maximum(importance.documents, 1)
    model.classes_, model.vocabulary_, model.n_features_in_ = np.asarray(classes), vocabulary, vocabulary.n_types
    sent = model.scores_.nbytes + model.values_.nbytes
    documents = int(sums.class_sizes.sum())
    return Learned(importance, model, received, documents, len(parts), rounds, validation, sent)


class _Cluster:
    """Tasks on a cluster; nothing is scattered, so that all can be computed again when a worker dies."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def each(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> list[Any]:
        return [self.run(function, part, *common) for part in parts]

    def total(self, parts: Sequence[Any], add: Callable[[Any, Any], Any] | None = None) -> Any:
        """The sum, pair by pair in a fixed order."""
        while len(parts) > 1:
            pairs = [self.run(add or _add, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + list(parts[2 * len(pairs) :])
        return parts[0]


def _add(a: Any, b: Any) -> Any:
    return a + b


def _tokenized(part: Any, text: str, label: str, tokenizer: dict[str, Any]) -> _Part:
    if hasattr(part, "columns"):
        missing = [name for name in (text, label) if name not in part.columns]
        if missing:
            raise InputError(f"a partition has no column {missing[0]!r}, only {', '.join(map(str, part.columns))}")
        part = zip(part[text].to_list(), part[label].to_list(), strict=True)
    part = list(part)
    strange = next((row for row in part if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2), None)
    if strange is not None:
        raise InputError(f"a partition holds {str(strange)[:60]!r}: give (text, label) pairs or data frames")
    usable = [(t, label_name(y)) for t, y in part if isinstance(t, str) and not (not t or t.isspace())]
    kept = [(t, name) for t, name in usable if name is not None]
    stream = tokenize(text_series([t for t, _ in kept]), tokenizer_from_dict(tokenizer))
    return _Part(stream, [name for _, name in kept])


def _label_names(part: _Part) -> set[str]:
    return set(part.labels)


def _words(part: _Part) -> pl.DataFrame:
    keys, documents = word_frequencies(part.stream)
    return pl.DataFrame({"key": keys, "documents": documents})


def _grams(part: _Part, known: Vocabulary) -> pl.DataFrame:
    keys, documents = known.gram_frequencies(part.stream)
    return pl.DataFrame({"key": keys, "documents": documents})


def _both(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([a, b]).group_by("key").agg(pl.col("documents").sum())


def _frequent(found: pl.DataFrame, minimum: int) -> pl.Series:
    return found.filter(pl.col("documents") >= minimum)["key"].sort()


def _vocabulary(cluster: _Cluster, parts: Sequence[Any], splitter: Tokenizer, ngrams: int, minimum: int) -> Vocabulary:
    def frequent(found: Sequence[Any]) -> pl.Series:
        kept: pl.Series = cluster.run(_frequent, cluster.total(found, _both), minimum).result()
        return kept

    words = tuple(frequent(cluster.each(_words, parts)).to_list())
    if not words:
        raise InputError(f"no token stands in {minimum} documents or more: lower --min-documents")
    vocabulary = Vocabulary(words, (), splitter)
    for _ in range(ngrams - 1):
        known = cluster.run(Vocabulary, words, vocabulary.grams, splitter)
        more = frequent(cluster.each(_grams, parts, known)).to_numpy()
        vocabulary = Vocabulary(words, (*vocabulary.grams, more), splitter)
    return vocabulary


def _counted(part: _Part, vocabulary: Vocabulary, classes: tuple[str, ...]) -> Counts:
    index = {name: k for k, name in enumerate(classes)}
    labels = np.array([index[name] for name in part.labels], dtype=np.int64)
    return Counts(vocabulary.count(part.stream)[0], labels, classes, np.empty(vocabulary.n_types, dtype=object))


# ---- training


def _train(
    cluster: _Cluster, counts: list[Any], sizes: Ints, model: AttentionClassifier, seed: int,
    tell: Progress,
) -> tuple[Any, int, list[float]]:  # fmt: skip
    """Choose the number of rounds on held-out documents, then train on all; write (u, w) into the model.

    Returns:
        (u, w) on the cluster, the number of rounds, and the held-out losses.
    """
    model.prior_, model.validation_ = prior_of(sizes), np.empty((0, 2))
    tenths = [cluster.run(_held_out, part, model.validation_share, seed, p) for p, part in enumerate(counts)]
    losses: list[float] = []
    rounds = ROUNDS
    if sizes.min() >= 10:
        state = _start(cluster, counts, tenths, model.prior_)
        for number in range(ROUNDS):
            tell("choosing the number of rounds", number / ROUNDS)
            state = _round(cluster, counts, tenths, state, number, model, seed)
            found = [
                cluster.run(_loss, part, rows, state, model.prior_) for part, rows in zip(counts, tenths, strict=True)
            ]
            loss, n = np.sum(cluster.client.gather(found), axis=0)
            losses.append(float(loss / max(n, 1)))
            if number - int(np.argmin(losses)) >= PATIENCE:
                break
        rounds = int(np.argmin(losses)) + 1
    nothing = [cluster.run(np.empty, 0, np.int64)] * len(counts)
    state = _start(cluster, counts, nothing, model.prior_)
    for number in range(rounds):
        tell("training", number / rounds)
        state = _round(cluster, counts, nothing, state, number, model, seed)
    model.scores_, model.values_ = state.result()
    model.n_steps_ = rounds
    return state, rounds, losses


def _start(cluster: _Cluster, counts: list[Any], without: list[Any], prior: Floats) -> Any:
    present = [cluster.run(_presence, part, rows) for part, rows in zip(counts, without, strict=True)]
    return cluster.run(_first, cluster.total(present, _add_arrays), prior)


def _round(
    cluster: _Cluster,
    counts: list[Any],
    without: list[Any],
    state: Any,
    number: int,
    model: AttentionClassifier,
    seed: int,
) -> Any:
    passes = math.ceil(math.sqrt(len(counts)))
    share = 1 - number / ROUNDS
    rates = model.batch_size, model.score_rate * share, model.value_rate * share
    moved = [
        cluster.run(_local, part, rows, state, passes, rates, seed + len(counts) * number + p)
        for p, (part, rows) in enumerate(zip(counts, without, strict=True))
    ]
    return cluster.run(_average, cluster.total(moved, _add_arrays))


def _held_out(counts: Counts, share: float, seed: int, number: int) -> Ints:
    order = np.random.default_rng([seed, number]).permutation(counts.n_documents)
    return np.sort(order[: round(share * counts.n_documents)])


def _presence(counts: Counts, without: Ints) -> tuple[Ints, Ints]:
    rest = counts.rows(without)
    return counts.present - rest.present, counts.class_sizes - rest.class_sizes


def _first(found: tuple[Ints, Ints], prior: Floats) -> Table:
    return start_of(*found, prior)


def _add_arrays(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _local(
    counts: Counts, without: Ints, state: Table, passes: int, rates: tuple[int, float, float], seed: int
) -> tuple[Floats, Floats, int]:
    """n·u, n·w and n after some passes of minibatch Adam over the partition's n documents."""
    rows = np.setdiff1d(np.arange(counts.n_documents), without)
    if not len(rows):
        return 0 * state[0], 0 * state[1], 0
    per_pass = math.ceil(len(rows) / rates[0])
    steps = per_pass * max(min(passes, LOCAL_STEPS // per_pass), 1)
    endless = Schedule(steps * 10**6, *rates, seed)  # within a round the rates stay as they are
    _, u, w = next(train(counts, *state, endless, steps, rows))
    return len(rows) * u, len(rows) * w, len(rows)


def _average(total: tuple[Floats, Floats, int]) -> Table:
    return total[0] / total[2], total[1] / total[2]


def _loss(counts: Counts, rows: Ints, state: Table, prior: Floats) -> tuple[float, int]:
    part = counts.rows(rows)
    f = answers(part.matrix, *state)
    f[np.diff(part.matrix.indptr) == 0] = prior
    return float(loss_and_slope(f, part.labels)[0].sum()), len(rows)


def _received(counts: Counts, state: Table) -> Floats:
    """Σ over the partition's documents of q_{X,s} / (c_{X,s}/T_X), shape (|S|,)."""
    sums: Floats = attention_sums(counts.matrix, state[0])[2]
    return sums
