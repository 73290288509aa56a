"""The model beside one that was trained on some of its token types, on the same test items."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints, pair_differences
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.model.attention import Model
from tokensieve.model.settings import TrainSettings
from tokensieve.task.tasks import Task
from tokensieve.text.vocabulary import CountedCorpus


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
class _Outcomes:
    """Which items two models predict correctly, shape (items,), and which are concerned."""

    before: Floats
    after: Floats
    is_concerned: Floats


def compare_refit(
    task: Task,
    types: Ints,
    train: CountedCorpus,
    test: CountedCorpus,
    model: Model,
    settings: TrainSettings,
) -> RefitComparison:
    """Trains the model on some token types alone and compares both on the test items."""
    refitted = task.refit(types, train, model, settings)
    if task.units(test.corpus) is not None:  # the groups are the independent units
        outcomes = _outcomes(test, task, types, model, refitted)
        return RefitComparison(
            all_types=task.share(outcomes.before, test.corpus),
            some_types=task.share(outcomes.after, test.corpus),
            difference=_difference(task, test, outcomes, np.ones(len(outcomes.before)) > 0),
            concerned=_difference(task, test, outcomes, outcomes.is_concerned > 0),
            types=types,
            refitted=refitted,
        )

    def sums(part: CountedCorpus) -> Ints:
        return _sums(_outcomes(part, task, types, model, refitted))

    everywhere, concerned = task.total(test, sums)
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


def _outcomes(
    part: CountedCorpus, task: Task, types: Ints, model: Model, refitted: Model
) -> _Outcomes:
    """What two models predict correctly in the test documents or pairs.

    Args:
        types: the token types that the second model was trained with.
        model, refitted: the model of all types, and the one of `types` alone.

    Returns:
        For each item, whether each model is right, and whether the item contains (of pairs, differs
        in) a type that was left out.
    """
    remaining = part.with_types(types)
    left_out = np.setdiff1d(np.arange(part.counts.n_types), types)
    removed = sp.csr_array(part.counts.matrix[:, left_out])
    removed.data = np.ones_like(removed.data)
    if task.size == 2:
        removed = pair_differences(removed)
        removed.eliminate_zeros()
    return _Outcomes(
        before=task.correct(task.decide(model, part.counts.matrix), part.counts),
        after=task.correct(task.decide(refitted, remaining.matrix), remaining),
        is_concerned=(np.diff(removed.indptr) > 0).astype(np.float64),
    )


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
