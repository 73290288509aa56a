"""The model beside one that was trained on some of its token types, on the same test items."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Bools, Floats, Ints, pair_differences, row_blocks
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.model.attention import Model
from tokensieve.model.settings import TrainSettings
from tokensieve.task.tasks import CorpusModel, Task
from tokensieve.text.vocabulary import CountedCorpus

ENTRIES_AT_ONCE = 2**20  # of the test documents whose types are selected together: 12 MB


@dataclass(frozen=True)
class RefitComparison:
    """Test accuracy with all token types, and of the same model trained on some of them.

    Attributes:
        all_types, some_types: fraction of the test items predicted correctly.
        difference: of the two, item by item.
        concerned: the same among the items that contain a type that was left out; of pairs, among
            those whose answers differ in one.
        types: the types that the second model was trained on, as columns of the first one's counts.
        refitted: the second model.
    """

    all_types: Share
    some_types: Share
    difference: PairedDifference
    concerned: PairedDifference
    types: Ints = field(repr=False)
    refitted: Model = field(repr=False)


@dataclass(frozen=True, eq=False)
class _TwoModels:
    """What is compared; it may travel to other machines.

    Attributes:
        types: the token types that the second model was trained with.
        model, refitted: the model of all types, and the one of `types` alone.
    """

    task: Task
    types: Ints
    model: Model
    refitted: Model


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """Which items two models predict correctly, shape (items,), and which are concerned."""

    before: Floats
    after: Floats
    is_concerned: Floats


def compare_refit(learned: CorpusModel, types: Ints, settings: TrainSettings) -> RefitComparison:
    """Trains the model on some token types alone and compares both on the test items."""
    task = learned.task
    test = learned.test
    refitted = task.refit(types, learned.train, learned.model, settings)
    models = _TwoModels(task=task, types=types, model=learned.model, refitted=refitted)
    if task.units(test.corpus) is not None:  # the groups are the independent units
        outcomes = _outcomes(test, models)
        return RefitComparison(
            all_types=task.share(outcomes.before, test.corpus),
            some_types=task.share(outcomes.after, test.corpus),
            difference=_difference(task, test, outcomes, np.ones(len(outcomes.before)) > 0),
            concerned=_difference(task, test, outcomes, outcomes.is_concerned > 0),
            types=types,
            refitted=refitted,
        )

    everywhere, concerned = task.total(test, _outcome_sums, models)
    n, n_before, only_before, only_after = everywhere.tolist()
    n_after = n_before - only_before + only_after
    return RefitComparison(
        all_types=Share.count(n_before, n),
        some_types=Share.count(n_after, n),
        difference=PairedDifference.of_counts(n, n_before, only_before, only_after),
        concerned=PairedDifference.of_counts(*concerned.tolist()),
        types=types,
        refitted=refitted,
    )


def compare_outcomes(
    task: Task, test: CountedCorpus, before: Floats, after: Floats
) -> PairedDifference:
    """Compares two models on all test items; `before` and `after` are as `Task.correct` says."""
    if task.units(test.corpus) is None:
        return PairedDifference.of(before, after)
    everything = np.ones(len(before))
    outcomes = _Outcomes(before=before, after=after, is_concerned=everything)
    return _difference(task, test, outcomes, everything > 0)


def _outcome_sums(part: CountedCorpus, models: _TwoModels) -> Ints:
    return _sums(_outcomes(part, models))


def _outcomes(part: CountedCorpus, models: _TwoModels) -> _Outcomes:
    """Mark which test documents or pairs each of two models predicts correctly.

    Returns:
        For each item, whether each model is right, and whether the item contains (of pairs, differs
        in) a type that was left out.
    """
    task = models.task
    matrix = part.counts.matrix
    f_of_all_types = []
    f_of_some_types = []
    concerned_of_blocks = []
    for items in row_blocks(matrix.indptr[:: task.size], ENTRIES_AT_ONCE):
        block = matrix[task.size * items.start : task.size * items.stop]
        remaining = sp.csr_array(block[:, models.types])
        f_of_all_types.append(task.decide(models.model, block))
        f_of_some_types.append(task.decide(models.refitted, remaining))
        if task.size == 2:
            concerned_of_blocks.append(_pairs_differ(block, models.types))
        else:
            concerned_of_blocks.append(np.diff(block.indptr) > np.diff(remaining.indptr))
    return _Outcomes(
        before=task.correct(np.concatenate(f_of_all_types), part.counts),
        after=task.correct(np.concatenate(f_of_some_types), part.counts),
        is_concerned=np.concatenate(concerned_of_blocks).astype(np.float64),
    )


def _pairs_differ(matrix: sp.csr_array, types: Ints) -> Bools:
    """Whether the two documents of each pair differ in a type that is not among `types`."""
    left_out = np.setdiff1d(np.arange(matrix.shape[1]), types)
    removed = sp.csr_array(matrix[:, left_out])
    removed.data = np.ones_like(removed.data)
    return np.asarray(np.diff(pair_differences(removed).indptr) > 0)


def _sums(outcomes: _Outcomes) -> Ints:
    """Items, correct before, only before, only after: of all and of those concerned, shape (2,
    4)."""
    only_before = (outcomes.before > outcomes.after).astype(np.float64)
    only_after = (outcomes.after > outcomes.before).astype(np.float64)
    columns = np.stack(
        [np.ones_like(only_before), outcomes.before, only_before, only_after], axis=1
    )
    weights = np.stack([np.ones_like(only_before), outcomes.is_concerned])
    sums: Ints = np.rint(weights @ columns).astype(np.int64)
    return sums


def _difference(
    task: Task, test: CountedCorpus, outcomes: _Outcomes, among: NDArray[np.bool_]
) -> PairedDifference:
    """Compares both models on some of the items."""
    pairs = test.corpus.pairs
    if pairs is not None:
        before, units = pairs.without_mirrored_ties(outcomes.before, among)
        after, _ = pairs.without_mirrored_ties(outcomes.after, among)
        return PairedDifference.of(before, after, units)
    groups = task.units(test.corpus)
    assert groups is not None
    return PairedDifference.of(outcomes.before[among], outcomes.after[among], groups[among])
