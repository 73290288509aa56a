"""The documents of a diagnosis: all of them as counts, and those that the model reads."""

from __future__ import annotations

import copy

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.diagnose.subjects.passages import SEPARATOR, SPLITTER, learned_splitter
from tokensieve.errors import InputError
from tokensieve.read.corpus import Corpus
from tokensieve.read.fields import split_fields
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import count_texts

MAX_GROUPS = 50  # of documents, for the jackknife; its variance is steady from about 30 on
MIN_GROUPS = 4
MAX_RARE_WORDS = 5_000  # each is read alone once; more would cost more than all documents
PASSAGE_DOCUMENTS = 1_000  # in which passages are looked for
MIN_PASSAGE_FRACTION = 100  # of these, one in so many must contain a passage


class Sample:
    """All documents as counts, and those that the model reads, drawn in proportion to the classes.

    A frequent word occurs in `min_documents` of at most `max_documents` read. Of a corpus with a
    test part, that part is used. With preference pairs the model may be prompted: it then reads the
    unit of the pair before each answer.

    Attributes:
        corpus: all documents; of pairs of texts (`paired`) each holds both, SEPARATOR between.
        counts: of all documents over `words`: the frequent, then the rare, each in alphabetical
            order; `frequent` tells which.
        groups, n_groups: group of every document, for jackknives, and their number.
        read, texts, labels: index of those read, ascending, and what they are.
        order: places among those read, such that every beginning holds the classes in proportion,
            shape (n read,).
        partner: of preference data, the place among those read of each one's partner; else None.
        prompts: what the model reads before each document read; its words are never measured. None
            without.
        distinct: distinct words in all documents.
        notes: what a reader should know.

    Raises:
        InputError: fewer than eight documents of two classes, texts of three fields, or no frequent
            word.
    """

    def __init__(
        self,
        corpus: Corpus,
        splitter: Tokenizer,
        min_documents: int,
        max_documents: int,
        seed: int,
        prompted: bool = False,
    ) -> None:
        self.notes: list[str] = []
        if corpus.test is not None:
            corpus = corpus.test
            self.notes.append(
                "only the test rows are used; the model may have seen the training rows"
            )
        self.notes = [*corpus.reading.lines(), *self.notes]
        _check_fields(corpus)
        is_preference = bool(corpus.pairs)
        self.paired = len(corpus.fields) == 2 or (is_preference and prompted)
        if corpus.fields:
            corpus = corpus.with_texts(_joined_sides(corpus))
        self.corpus = corpus

        order = balanced_order(corpus.labels, is_preference, np.random.default_rng(seed))
        step = 2 if is_preference else 1  # documents that stay together: the sides of a pair
        self._choose_documents(order, max_documents - max_documents % step, step)

        # a passage must not reach from one text of a pair into the other
        if splitter is SPLITTER and not self.paired:
            drawn = order[: min(len(self.read), PASSAGE_DOCUMENTS)]
            of_passage = max(min_documents, len(drawn) // MIN_PASSAGE_FRACTION)
            texts = corpus.texts.gather(drawn)
            splitter = learned_splitter(texts, min_documents, of_passage)
        self.splitter = splitter
        self._count_words(min_documents)

        n_all = len(corpus.labels)
        if len(self.read) < n_all:
            self.notes.append(
                f"the model reads {len(self.read):,} of {n_all:,} documents, drawn at random "
                "(--max-documents); word importance in the data is computed from all of them"
            )
        self.partner = np.searchsorted(self.read, self.read ^ 1) if is_preference else None
        self.prompts = self._prompts() if is_preference and prompted else None

    def _choose_documents(self, order: Ints, most: int, step: int) -> None:
        """Take the beginning of the order; put all documents into groups for jackknives."""
        self.read = np.sort(order[:most])
        n_read = len(self.read)
        self.n_groups = min(MAX_GROUPS, n_read // 2)
        n_classes = len(np.unique(self.corpus.labels[self.read]))
        if n_classes < 2 or self.n_groups < MIN_GROUPS:
            raise InputError(
                f"{n_read} documents are too few to diagnose a model: pass at least 8, "
                "from two classes"
            )
        n_all = len(self.corpus.labels)
        self.groups = np.empty(n_all, dtype=np.int64)
        self.groups[order] = np.arange(n_all) // step % self.n_groups
        self.order = np.searchsorted(self.read, order[:n_read])
        self.labels = self.corpus.labels[self.read]
        is_read = pl.Series(np.isin(np.arange(n_all), self.read))
        # copied, since a large source keeps its texts in a file
        texts = self.corpus.texts.filter(is_read).to_list()
        self.texts = pl.Series("text", texts, dtype=pl.String)

    def _count_words(self, min_documents: int) -> None:
        """Count the words of all documents; keep the frequent ones and the commonest rare ones."""
        counted = count_texts(self.corpus.texts, tokenizer=self.splitter)
        n_types = counted.matrix.shape[1]
        in_read = np.bincount(counted.matrix[self.read].indices, minlength=n_types)
        in_all = np.bincount(counted.matrix.indices, minlength=n_types)
        self.distinct = int((in_all > 0).sum())

        frequent = np.flatnonzero(in_read >= min_documents)
        if not len(frequent):
            raise InputError(
                f"no word occurs in {min_documents} of the {len(self.read):,} documents read: "
                "lower --min-documents, or, if words are not separated by spaces (Chinese, "
                "Japanese, Thai), use the model's own tokens as words with --tokenizer model"
            )
        is_rare = (in_read < min_documents) & (in_read > 0) & (in_all >= 2)
        rare = np.flatnonzero(is_rare)
        commonest = np.argsort(-in_all[rare], kind="stable")[:MAX_RARE_WORDS]
        rare = np.sort(rare[commonest])

        tokens = np.asarray(counted.vocabulary.words, dtype=object)
        counts = Counts(counted.matrix, self.corpus.labels, self.corpus.classes, tokens)
        self._keep_words(counts, np.r_[frequent, rare])
        self.frequent = np.arange(len(frequent) + len(rare)) < len(frequent)

    def _prompts(self) -> pl.Series:
        """What the model reads before each document: the unit that its pair belongs to."""
        pairs = self.corpus.pairs
        assert pairs
        units = np.repeat(pairs.units, 2)[self.read]
        return pl.Series(
            [_without_separator(str(pairs.names[unit])) for unit in units], dtype=pl.String
        )

    @property
    def inputs(self) -> pl.Series:
        """The model's inputs, including prompts."""
        if self.prompts is None:
            return self.texts
        return self.prompts + SEPARATOR + self.texts

    @property
    def identity(self) -> tuple[object, ...]:
        """The properties of the documents that affect the result."""
        return (*self.counts.identity, self.groups, self.read, self.inputs.to_list())

    def of_words(self, kept: Ints) -> Sample:
        """The same documents with some of the words."""
        smaller = copy.copy(self)
        smaller._keep_words(self.counts, kept)
        smaller.frequent = self.frequent[kept]
        return smaller

    def _keep_words(self, counts: Counts, kept: Ints) -> None:
        tokens = counts.tokens[kept]
        matrix = counts.matrix[:, kept]
        matrix.sort_indices()
        self.words: tuple[str, ...] = tuple(tokens.tolist())
        self.counts = Counts(matrix, counts.labels, counts.classes, tokens)


def _check_fields(corpus: Corpus) -> None:
    """Raise an InputError for columns and fields that a transformer cannot read."""
    if corpus.columns:
        raise InputError(
            "--columns is for audit and train: a transformer reads the text alone; leave it out"
        )
    if len(corpus.fields) > 2:
        raise InputError(
            "a transformer reads one text, or two together, "
            f"not {len(corpus.fields)} fields: pass --text once or twice"
        )


def _joined_sides(corpus: Corpus) -> pl.Series:
    """The texts of each document with SEPARATOR between them, instead of marked fields."""
    joined = []
    for text in corpus.texts.to_list():
        fields = split_fields(corpus.fields, text)[-2:]
        sides = [_without_separator(text[start:end]).strip() for _, start, end in fields]
        joined.append(SEPARATOR.join(sides))
    return pl.Series("text", joined, dtype=pl.String)


def _without_separator(text: str) -> str:
    return text.replace(SEPARATOR, " ")


def balanced_order(labels: Ints, in_pairs: bool, rng: np.random.Generator) -> Ints:
    """An order of the documents of which every beginning holds the classes in proportion.

    Args:
        labels: class of each document, shape (n,).
        in_pairs: documents 2i and 2i + 1 stay together.
        rng: draws the order.
    """
    n = len(labels)
    if in_pairs:
        return np.add.outer(2 * rng.permutation(n // 2), [0, 1]).ravel()
    place = np.empty(n)
    for k in range(int(labels.max()) + 1):
        of_class = np.flatnonzero(labels == k)
        place[of_class] = (rng.permutation(len(of_class)) + 0.5) / max(len(of_class), 1)
    return np.argsort(place, kind="stable")
