"""What `balance` can balance: which rows contain a token, a form, a length or a value of a column.

A row of the source holds one document, or for preference data one pair or several. Its feature is 1
where its document contains the token; for pairs it is the number of chosen answers minus the number
of rejected answers with it, so that a tie, which stands for both orders, counts 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.escape import shell_word
from tokensieve.text.tokenizers import Tokenizer, with_named_words
from tokensieve.text.vocabulary import CountedCorpus, count_corpus

if TYPE_CHECKING:
    from tokensieve.read.corpus import Corpus

LENGTH_FORM = "⟨length "
MAX_LEVELS = 10  # such as scores from 1 to 10: each is a class of its own
N_QUANTILES = 5  # of more scores: as few as stars have, so that each level keeps many documents
LONGER_BINS = 3  # of pairs by how much their lengths differ, so that length wins half in each


@dataclass(frozen=True)
class RowFeatures:
    """The features of every row that holds a document.

    Attributes:
        rows: the rows in the source, from 1, shape (n,).
        labels: class of each row, shape (n, 1); of scores the level; all 0 for pairs. If documents
            can have several labels, shape (n, L): 1 where a row has the label, else 0.
        classes: for each column of `labels` the names of its classes or levels.
        names: what each feature is called, J of them.
        features: z, shape (n, J).
    """

    rows: Ints
    labels: Ints
    classes: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    features: Floats

    def for_labels(self, labels: Sequence[RowLabels]) -> RowFeatures:
        """The same features of rows that can have several labels, each with and without it."""
        return replace(
            self,
            labels=np.column_stack([of_label.labels for of_label in labels]),
            classes=tuple(of_label.classes for of_label in labels),
        )


@dataclass(frozen=True)
class RowLabels:
    """The classes of the rows that hold a document.

    Attributes:
        labels: class of each row, shape (n,); of scores the level; all 0 for pairs.
        classes: the names of the classes or levels.
    """

    labels: Ints
    classes: tuple[str, ...]

    @classmethod
    def of(cls, corpus: Corpus) -> RowLabels:
        """The classes of the rows of a corpus, in the order of the rows."""
        rows, row_of_document = np.unique(corpus.rows, return_inverse=True)
        labels = np.zeros(len(rows), dtype=np.int64)
        if corpus.scores is not None:
            levels = ScoreLevels.of(corpus.scores)
            labels[row_of_document] = levels.level
            return cls(labels, levels.names)
        if corpus.pairs is None:
            labels[row_of_document] = corpus.labels
        return cls(labels, corpus.classes)


@dataclass(frozen=True)
class ScoreLevels:
    """Scores as classes: each score, or where there are many, a fifth of the documents.

    Attributes:
        names: of the levels, lowest first, as in "4" or "0.1 to 0.25".
        level: of each document, shape (n,).
    """

    names: tuple[str, ...]
    level: Ints

    @classmethod
    def of(cls, scores: Floats) -> ScoreLevels:
        """The levels of the scores, shape (n,)."""
        values = np.unique(scores)
        if len(values) <= MAX_LEVELS:
            names = tuple(f"{value:.4g}" for value in values)
            return cls(names, np.searchsorted(values, scores).astype(np.int64))
        fractions = np.linspace(0, 1, N_QUANTILES + 1)
        inner_edges = np.unique(np.quantile(scores, fractions[1:-1]))
        bin_of_document = np.digitize(scores, inner_edges)
        # of equal quantiles only one is an edge, so that bins may be empty: they are left out
        filled_bins, level = np.unique(bin_of_document, return_inverse=True)
        scores_of_levels = [scores[bin_of_document == filled] for filled in filled_bins]
        names = tuple(
            f"{of_level.min():.4g} to {of_level.max():.4g}" for of_level in scores_of_levels
        )
        return cls(names, level.astype(np.int64))


def row_features(
    corpus: Corpus, tokens: Sequence[str], with_length: bool, tokenizer: Tokenizer
) -> RowFeatures:
    """The chosen features of the rows of a corpus.

    Args:
        corpus: the training documents.
        tokens: words, n-grams, formatting (⟨…⟩) and values of columns, as an audit writes them.
        with_length: also balance how long texts are.
        tokenizer: the one of the audit.

    Raises:
        InputError: a token occurs in no document.
    """
    tokenizer = with_named_words(tokenizer, tokens)
    longest = max((token.count(" ") + 1 for token in tokens), default=1)
    counted = count_corpus(
        corpus, tokenizer=tokenizer, ngrams=longest, min_documents=1, formatting=True
    )
    return counted_features(counted, tokens, with_length)


def counted_features(
    counted: CountedCorpus, tokens: Sequence[str], with_length: bool
) -> RowFeatures:
    """The chosen features of the rows of a corpus whose tokens are counted.

    Raises:
        InputError: a token occurs in no document.
    """
    corpus = counted.corpus
    names = [str(token) for token in counted.counts.tokens]
    places = {name: place for place, name in enumerate(names)}
    missing = [token for token in tokens if token not in places]
    if missing:
        advice = "write tokens as the audit's tokens.csv does"
        similar = get_close_matches(missing[0], names, n=1)
        if similar:
            advice = f"did you mean --token {shell_word(similar[0])}?"
        raise InputError(f"{missing[0]!r} occurs in no document; {advice}")
    chosen = list(tokens)
    if with_length and corpus.pairs is None:
        chosen += [name for name in names if LENGTH_FORM in name and name not in tokens]
    contains = _contains(counted, [places[name] for name in chosen])
    if corpus.pairs is not None:
        contains = contains * _signs_of_sides(corpus)[:, None]
        if with_length:
            longer = _longer_side(corpus)
            contains = np.column_stack([contains, longer])
            chosen += [
                f"longer answer ({part + 1} of {LONGER_BINS})" for part in range(LONGER_BINS)
            ]
    return _by_row(corpus, tuple(chosen), contains)


def _contains(counted: CountedCorpus, types: list[int]) -> Floats:
    """Mark the documents that contain each type with 1, others with 0, shape (n, J)."""
    columns = counted.counts.matrix[:, types]
    return np.asarray(columns.todense() > 0, dtype=np.float64).reshape(columns.shape)


def _signs_of_sides(corpus: Corpus) -> Floats:
    """+1 for chosen answers and −1 for rejected ones, shape (n,)."""
    return np.where(corpus.labels == 1, 1.0, -1.0)


def _longer_side(corpus: Corpus) -> Floats:
    """Mark which answer of a pair is longer, in a column for each bin of |log length ratio|, shape
    (n, bins).

    Both documents of a pair get ½ if the chosen answer is longer, −½ if it is shorter, so that
    together they add up to ±1.
    """
    log_ratios = _chosen_over_rejected(corpus)
    sizes = np.abs(log_ratios)
    inner_fractions = np.linspace(0, 1, LONGER_BINS + 1)[1:-1]
    bin_of_pair = np.digitize(sizes, np.quantile(sizes, inner_fractions))
    columns = np.zeros((len(sizes), LONGER_BINS))
    columns[np.arange(len(sizes)), bin_of_pair] = np.sign(log_ratios) / 2
    return np.repeat(columns, 2, axis=0)


def _chosen_over_rejected(corpus: Corpus) -> Floats:
    """The logarithm of each pair's ratio of lengths, chosen to rejected answer, in characters."""
    characters = np.maximum(corpus.characters, 1).astype(np.float64)
    first, second = np.log(characters).reshape(-1, 2).T
    is_first_chosen = corpus.labels.reshape(-1, 2)[:, 0] == 1
    return np.where(is_first_chosen, first - second, second - first)


def _by_row(corpus: Corpus, names: tuple[str, ...], contains: Floats) -> RowFeatures:
    """Add up what the documents of each row contain."""
    rows, row_of_document = np.unique(corpus.rows, return_inverse=True)
    features = np.zeros((len(rows), len(names)))
    np.add.at(features, row_of_document, contains)
    of_rows = RowLabels.of(corpus)
    return RowFeatures(
        rows=rows.astype(np.int64),
        labels=of_rows.labels[:, None],
        classes=(of_rows.classes,),
        names=names,
        features=features,
    )


def rates_by_class(data: RowFeatures, weights: Floats) -> pl.DataFrame:
    """A table of the rate of each feature before and after weighting, by class; of preference
    pairs, its win rates.

    Columns: feature, class ("chosen" for pairs), before, after (fractions from 0 to 1).
    """
    is_pairs = bool((data.features < 0).any())
    table = []
    for j, feature in enumerate(data.names):
        values = data.features[:, j]
        for labels, classes in zip(data.labels.T, data.classes, strict=True):
            for k, name in enumerate(["chosen"] if is_pairs else classes):
                is_of_class = labels == k
                before = _rate(values[is_of_class], np.ones(int(is_of_class.sum())), is_pairs)
                after = _rate(values[is_of_class], weights[is_of_class], is_pairs)
                table.append({"feature": feature, "class": name, "before": before, "after": after})
    return pl.DataFrame(table)


def _rate(values: Floats, weights: Floats, is_pairs: bool) -> float:
    """The weighted fraction of rows with the feature, or of differing pairs that it wins."""
    if not is_pairs:
        return float(weights @ (values > 0) / weights.sum())
    differing = weights @ np.abs(values)
    return float(weights @ np.maximum(values, 0.0) / differing) if differing else 0.5
