"""Which documents are held out of training, so that choices can be made on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Ints
from tokensieve.model.settings import FEW, TrainSettings
from tokensieve.read.split import folds, split_units, stratified
from tokensieve.text.counts import Counts

FOLDS = 5  # parts in which few documents are each held out once
MAX_HELD_OUT = 50_000  # more documents than that add nothing to the choice of when to stop
MIN_PAIRS = 20  # with fewer, nothing is chosen
MAX_PAIRS_IN_FOLDS = 20_000  # more are too many to hold out each once
# Of many documents a fraction is held out once; of few, a part of each class is in every fold, and
# from 40 on folds may lack a class: the scale that they choose is still better than none.
MIN_CLASS_SIZE_IF_MANY = 10
MIN_CLASS_SIZE_IF_SOME = 2
MIN_DOCUMENTS_OF_SOME = 40

SHORT = 50  # token types per document, on average, up to which documents are short
# documents that share a rare type, up to which they are compared: half a second and 250 MB
MAX_COMPARISONS = 10**7
MIN_RARE_DOCUMENTS = 2  # a type in a single document connects none
MAX_RARE_DOCUMENTS = 50  # more common types are shared by chance
MIN_RARE_TYPES = 2  # one shared type can be chance
# of its rare types: of a phrase and its sentence, some are cut off at the phrase's ends
MIN_SHARED_FRACTION = 0.8
# Share of the documents within others, or around others, from which on they stay together: at most
# 0.56 on seven data sets of short texts as they are, at least 0.75 where spans of their sentences
# were added.
MIN_OVERLAPPING = 2 / 3


@dataclass(frozen=True)
class Part:
    """Positions of the documents (or pairs) to learn from, and of those that are held out."""

    learned: Ints
    held_out: Ints

    @classmethod
    def of_mask(cls, is_held_out: NDArray[np.bool_]) -> Part:
        """The positions where the mask is false and true."""
        return cls(np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out))


def held_out_documents(counts: Counts, settings: TrainSettings, groups: Ints | None) -> list[Part]:
    """The parts of documents that are held out: with few documents each once, with many a fraction.

    Args:
        counts: n documents.
        settings: the fraction and the seed.
        groups: the group of each document, shape (n,), which is never on both sides; or None.

    Returns:
        One part, or FOLDS of them, or none if a class has too few documents.
    """
    n = counts.n_documents
    is_one_group = groups is not None and len(np.unique(groups)) < 2
    too_few = counts.class_sizes.min() < _min_class_size(n)
    if settings.validation_share <= 0 or too_few or is_one_group:
        return []
    families = overlapping_families(counts) if groups is None else None
    if n <= FEW:
        if families is not None:
            unrelated = np.arange(n, 2 * n)  # each a family of its own
            groups = np.where(families < 0, unrelated, families)
        return [Part(*part) for part in folds(counts.labels, FOLDS, settings.seed, groups)]

    fraction = min(settings.validation_share, MAX_HELD_OUT / n)
    if families is not None:
        return [_held_out_families(counts, families, fraction, settings.seed)]
    if groups is None:
        n_held_out = math.ceil(max(fraction, counts.n_classes / n) * n)
        return [Part(*stratified(counts.labels, n_held_out, settings.seed))]
    return [Part.of_mask(split_units(groups, counts.labels, fraction, settings.seed))]


def _min_class_size(n_documents: int) -> int:
    if n_documents > FEW:
        return MIN_CLASS_SIZE_IF_MANY
    return MIN_CLASS_SIZE_IF_SOME if n_documents >= MIN_DOCUMENTS_OF_SOME else FOLDS


def _held_out_families(counts: Counts, families: Ints, fraction: float, seed: int) -> Part:
    """Hold out a fraction of the families, stratified by the label of a document of each."""
    first_documents = _first_of_each(families)
    n_families = len(first_documents)
    n_held_out = math.ceil(max(fraction, counts.n_classes / n_families) * n_families)
    _, drawn = stratified(counts.labels[first_documents], n_held_out, seed)
    return Part.of_mask(np.isin(families, families[first_documents[drawn]]))


def _first_of_each(families: Ints) -> Ints:
    """The first document of each family, ascending.

    `families` has the number of each document's family, or −1 for none, shape (n,).
    """
    related = np.flatnonzero(families >= 0)
    return related[np.unique(families[related], return_index=True)[1]]


def overlapping_families(counts: Counts) -> Ints | None:
    """A number for each short document, the same for those that are parts of one another.

    Documents that mostly overlap, such as the phrases of sentences, are a family: a document is
    part of another that contains 80% of its rare types, at least two. Without this, what is held
    out has been learned from, and training goes on for too long.

    Returns:
        Shape (n,), −1 where it cannot be told; None for other documents, and for too many to
        compare.
    """
    matrix = counts.matrix
    n = counts.n_documents
    if matrix.nnz > SHORT * n:
        return None
    frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
    is_rare = (frequency >= MIN_RARE_DOCUMENTS) & (frequency <= MAX_RARE_DOCUMENTS)
    if np.square(frequency[is_rare]).sum() > MAX_COMPARISONS:
        return None
    has_rare_type = _presence(matrix)[:, np.flatnonzero(is_rare)]
    is_comparable = np.diff(has_rare_type.indptr) >= MIN_RARE_TYPES
    family = _connected(has_rare_type)
    families = np.where(is_comparable, family, -1)

    n_overlapping = np.count_nonzero((np.bincount(family)[family] > 1) & is_comparable)
    labels = counts.labels[_first_of_each(families)]
    smallest_class = np.bincount(labels, minlength=counts.n_classes).min()
    min_families = MIN_CLASS_SIZE_IF_MANY if n > FEW else MIN_CLASS_SIZE_IF_SOME
    if smallest_class < min_families:
        return None
    return families if n_overlapping > MIN_OVERLAPPING * is_comparable.sum() else None


def _presence(matrix: sp.csr_array) -> sp.csr_array:
    """A matrix with 1 where a count is positive."""
    unit_values = np.ones(matrix.nnz, np.int32)
    return sp.csr_array((unit_values, matrix.indices, matrix.indptr), shape=matrix.shape)


def _connected(has_rare_type: sp.csr_array) -> Ints:
    """Components of documents that contain most of another's rare types, shape (n,)."""
    n_rare_types = np.diff(has_rare_type.indptr)
    shared = (has_rare_type @ has_rare_type.T).tocoo()
    part, cluster = shared.coords
    is_part = shared.data >= MIN_SHARED_FRACTION * n_rare_types[part]
    is_link = is_part & (n_rare_types[part] >= MIN_RARE_TYPES) & (part != cluster)
    unit_values = np.ones(int(is_link.sum()), np.int8)
    n = has_rare_type.shape[0]
    links = sp.coo_array((unit_values, (part[is_link], cluster[is_link])), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def held_out_pairs(counts: Counts, settings: TrainSettings, groups: Ints | None) -> list[Part]:
    """The parts of pairs that are held out, in whole groups (prompts); none of fewer than 20 pairs.

    Args:
        counts: documents, of which rows 2i and 2i + 1 are a pair.
        settings: the fraction and the seed.
        groups: the group of each pair, shape (n/2,); each is its own if None.
    """
    n_pairs = counts.n_documents // 2
    if groups is None:
        groups = np.arange(n_pairs)
    names = np.random.default_rng(settings.seed).permutation(np.unique(groups))
    if settings.validation_share <= 0 or n_pairs < MIN_PAIRS or len(names) < FOLDS:
        return []
    if n_pairs <= MAX_PAIRS_IN_FOLDS:
        drawn = [names[first::FOLDS] for first in range(FOLDS)]
    else:
        fraction = min(settings.validation_share, MAX_HELD_OUT / n_pairs)
        drawn = [names[: max(round(fraction * len(names)), 1)]]
    return [Part.of_mask(np.isin(groups, held_out)) for held_out in drawn]
