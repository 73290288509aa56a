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

import math
import operator
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.evidence.importance import importance_of
from tokensieve.evidence.sums import TokenSums
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import Model, answers, attention_sums, decide, loss_and_slope
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.fit import initial_table, prior_of
from tokensieve.model.partitions import Partitions, Side, Sums, read_sides
from tokensieve.model.settings import TrainSettings
from tokensieve.progress import Progress, silent
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import Vocabulary, learn_vocabulary

ROUNDS, PATIENCE = 8, 2
_Counted = tuple[Counts, Ints | None, int, int]  # documents, their groups, words that are no token type, and all words


class Learned:
    """Documents that workers read, or that lie on a cluster, and a model trained on them.

    Args:
        client, source, tokenizer: as of `learn_on`.
        how: settings.
        tell: called with (stage, share done).
        sampled: bring a sample of the documents here, for an audit.

    Attributes:
        importance: as `token_importance` of all training documents on one machine.
        model: as after `fit`; its `n_steps_` are minibatch steps of the final training, over all rounds and partitions.
        attention_sums: as `tokensieve.model.attention.attention_sums` of all training documents, shape (3, |S|).
        attention: as in `AttentionClassifier.effects`, but 0 for a type in no document, shape (|S|,).
        tested: of the test documents those predicted correctly, by class, shape (K,), words that are no token, and all words.
        settings: with `min_documents` as a number.
        sizes: documents by side ("train", "test") and class, shape (2, K).
        classes: the class names.
        intake: what was found on the way in, and where text and label were read.
        sample: partitions of training and test documents, as in `Corpus.frame` but for "label", the name of the class, and "test".
        partitions: of the training documents.
        rounds: rounds of training on all documents.
        validation: mean loss on held-out documents after each round of choosing; empty where a class has too few.

    Raises:
        InputError: as of `learn_on`.
    """

    def __init__(
        self, client: Any, source: Any, how: TrainSettings, tokenizer: Tokenizer, tell: Progress, sampled: bool = False
    ) -> None:
        refused = {"pairs": how.pairs, "weight": how.sample_weight is not None, "columns": how.columns}
        refused |= {"label-separator": how.label_separator, "duplicates drop": how.duplicates == "drop"}
        for name, given in refused.items():
            if given:
                raise InputError(f"--{name} does not work on a cluster yet; leave out --{name} or --cluster")
        if not isinstance(how.label, str | None):
            raise InputError("--cluster takes one label column: name one with --label")
        tell("reading", 0.0)
        inside, outside, self.sample, tokenizer, self.classes, self.sizes, self.intake = read_sides(
            client, source, how, tokenizer, sampled
        )
        n, self.partitions = int(self.sizes[0].sum()), len(inside.parts)
        self.settings = how.of_documents(n)
        tell("vocabulary", 0.0)
        least = self.settings.min_documents or 1
        self.vocabulary = learn_vocabulary(inside.each(operator.itemgetter(0)), tokenizer, how.ngrams, least)
        if how.formatting:  # documents with each feature
            with_it = inside.total(lambda side: np.unpackbits(side[1], axis=1).sum(axis=0, dtype=np.int64))
            self.vocabulary = self.vocabulary.with_formatting(with_it, n, least)
        self._train = inside.each(_counted, self.vocabulary, self.classes)
        self._test = None if outside is None else outside.each(_counted, self.vocabulary, self.classes)
        del inside, outside
        tell("importance", 0.0)
        features = len(self.vocabulary.formatting)
        words, marks, present = self._train.total(
            lambda part: Sums((*TokenSums.of_counts(part[0], features, part[1]), part[0].present))
        )
        groups = None if how.by is None else present
        self.importance = importance_of(words, self.vocabulary.tokens, self.classes, marks, self.sizes[0], groups)
        self.rounds, self.validation = ROUNDS, list[float]()
        if self.sizes[0].min() >= 10:
            self._choose(tell)
        model = replace(self.trained(tell=tell), vocabulary=self.vocabulary)
        self.model = AttentionClassifier.of(model, tokenizer=tokenizer)
        tell("attention", 0.0)
        self.attention_sums: Floats = self._train.total(lambda part, u: attention_sums(part[0].matrix, u), model.scores)
        self.attention = self.attention_sums[2] / np.maximum(self.importance.documents, 1)
        tell("testing", 0.0)
        self.tested: tuple[Ints, int, int] = np.zeros(len(self.classes), np.int64), 0, 0
        if self._test is not None:
            self.tested = tuple(self._test.total(_tested, (model.scores, model.values), model.prior)[2:])

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json, but for times and settings."""
        (train, test), classes, (correct, unknown, words) = self.sizes, self.classes, self.tested
        recall = zip(classes, correct.tolist(), test.tolist(), strict=True)
        return {
            "classes": classes,
            "documents": {"train": int(train.sum()), "test": int(test.sum())},
            "class_documents": dict(zip(classes, train.tolist(), strict=True)),
            "token_types": len(self.importance.tokens),
            "test_accuracy": float(correct.sum() / max(test.sum(), 1)),
            "majority_accuracy": float(test[train.argmax()] / max(test.sum(), 1)),
            "class_recall": {name: hits / size if size else None for name, hits, size in recall},
            "unknown_share": float(unknown / max(words, 1)),
            "version": __version__,
            "notes": self.intake.lines(),
            "partitions": self.partitions,
            "rounds": self.rounds,
            "validation": self.validation,
            # what one partition sends, and receives, in a round: 8 bytes · |S| · (1 + outputs)
            "bytes_per_round": self.model.scores_.nbytes + self.model.values_.nbytes,
        }

    def trained(self, types: Ints | None = None, tell: Progress = silent) -> Model:
        """A model of all training documents, of some of the token types alone, after all rounds."""
        parts, tokens = self._train, self.vocabulary.tokens
        if types is not None:
            parts, tokens = parts.each(_columns, types), tokens[types]
        prior, steps = prior_of(self.sizes[0]), 0
        for number, state in zip(range(self.rounds), self._averaged(parts, prior), strict=False):
            tell("training", number / self.rounds)
            u, w, taken = state.result()
            steps += taken
        return Model(np.asarray(self.classes), u, w, prior, tokens, steps=steps, settings=self.settings.parameters())

    def _choose(self, tell: Progress) -> None:
        """The number of rounds, on held-out documents."""
        how = self.settings
        inside, outside = (
            self._train.each(_held, how.validation_share, how.seed, held, numbered=True) for held in (False, True)
        )
        prior = prior_of(self.sizes[0])
        for number, state in enumerate(self._averaged(inside, prior)):
            tell("choosing the number of rounds", number / ROUNDS)
            loss, n, *_ = outside.total(_tested, state, prior)
            self.validation.append(float(loss / max(n, 1)))
            if number - int(np.argmin(self.validation)) >= PATIENCE:
                break
        self.rounds = int(np.argmin(self.validation)) + 1

    def _averaged(self, parts: Partitions, prior: Floats) -> Iterator[Any]:
        """u, w and the steps of the round, summed over the partitions, after each round; still on the cluster."""
        how, n = self.settings, len(parts.parts)
        present, sizes = parts.total(lambda part: Sums((part[0].present, part[0].class_sizes)))
        state: Any = (*initial_table(present, sizes, prior), 0)
        for number in range(ROUNDS):
            share = 1 - number / ROUNDS
            rates = how.batch_size, how.score_rate * share, how.value_rate * share
            passes, seed = math.ceil(math.sqrt(n)), how.seed + n * number
            total = parts.each(_local, state, passes, rates, seed, numbered=True).sum()
            state = parts.run(lambda sums: (sums[0] / sums[2], sums[1] / sums[2], sums[3]), total)
            yield state


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
        settings: if None, `TrainSettings(test_share=0)`: all documents are learned from. `pairs`, `sample_weight`, `columns`
            and dropping duplicates are not for clusters.
        tokenizer: words if None.
        progress: called with (stage, share done).
        options: fields of the settings by name, in place of those in `settings`.

    Raises:
        InputError: there are no documents, a partition has no such columns or no pairs, the labels cannot be classes, no token
            is frequent enough, or the settings are not for clusters.
    """
    how = (settings or TrainSettings(test_share=0.0)).with_options(options)
    return Learned(client, source, how, tokenizer or WordTokenizer(), progress or silent)


# ---- documents as counts


def _counted(side: Side, vocabulary: Vocabulary, classes: tuple[str, ...]) -> _Counted:
    stream, bits, frame = side
    index = {name: k for k, name in enumerate(classes)}
    labels = np.array([index[name] for name in frame["label"]], dtype=np.int64)
    matrix, unknown = vocabulary.count(stream, bits)
    units = Corpus.unit_index(frame["group"].to_list()) if "group" in frame.columns else None
    counts = Counts(matrix, labels, classes, np.empty(vocabulary.n_types, dtype=object))
    return counts, units, int(unknown.sum()), stream.n_tokens


def _columns(part: _Counted, types: Ints) -> _Counted:
    return replace(part[0], matrix=part[0].matrix[:, types], tokens=part[0].tokens[types]), *part[1:]


# ---- training by averaging


def _held(part: _Counted, number: int, share: float, seed: int, held_out: bool) -> _Counted:
    """The documents of a partition that the number of rounds is chosen on, in whole groups, or all others."""
    counts = part[0]
    units = np.arange(counts.n_documents) if part[1] is None else part[1]
    names = np.random.default_rng([seed, number]).permutation(np.unique(units))
    chosen = np.isin(units, names[: round(share * len(names))])
    return counts.rows(chosen if held_out else ~chosen), None, 0, 0


def _local(part: _Counted, number: int, state: Any, passes: int, rates: tuple[int, float, float], seed: int) -> Sums:
    """n·u, n·w, n and the steps taken after some passes of minibatch Adam over the partition's n documents."""
    n, (u, w, _) = part[0].n_documents, state
    if not n:
        return Sums((0 * u, 0 * w, 0, 0))
    per_pass = math.ceil(n / rates[0])
    steps = per_pass * max(min(passes, 2_000 // per_pass), 1)
    endless = Schedule(steps * 10**6, *rates, seed + number)  # within a round the rates stay as they are
    _, u, w = next(train(part[0], u, w, endless, steps))
    return Sums((n * u, n * w, n, steps))


def _tested(part: _Counted, state: Any, prior: Floats) -> Sums:
    """Sum of the losses, documents, those predicted correctly by class, words that are no token, and all words."""
    counts, _, unknown, words = part
    f, labels = answers(counts.matrix, state[0], state[1]), counts.labels
    f[np.diff(counts.matrix.indptr) == 0] = prior
    hits = np.bincount(labels[decide(f) == labels], minlength=counts.n_classes)
    return Sums((loss_and_slope(f, labels)[0].sum(), len(labels), hits, unknown, words))
