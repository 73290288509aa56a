"""Whether tokens predict the label alike in every environment: what the checks share about it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.context import AuditContext, computed_once
from tokensieve.errors import InputError
from tokensieve.evidence.environments import Environments
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.text.vocabulary import CountedCorpus

MAX_ENVIRONMENTS = 100  # with more, each has too few documents to compare, and the table no reader
NO_ENVIRONMENT = -1


@dataclass(frozen=True, eq=False)
class EnvironmentEffects:
    """The effect of every token type in every environment.

    Attributes:
        effects: by type, class and environment.
        document_environments: number of the environment of each training document, shape (n,);
            −1 for none.
    """

    effects: Environments
    document_environments: Ints


@computed_once
def environment_effects(audit: AuditContext) -> EnvironmentEffects | None:
    """The effects by environment; None if no environments were read.

    Raises:
        InputError: there are over 100 environments, or fewer than two have documents of two classes
            (ten pairs).
    """
    corpus = audit.train.corpus
    if corpus.environments is None:
        return None
    names = corpus.environments.drop_nulls().unique().sort().to_list()
    if len(names) > MAX_ENVIRONMENTS:
        raise InputError(
            f"{corpus.name}: the --environments column has {len(names):,} different values, but "
            f"the limit is {MAX_ENVIRONMENTS}; choose another column, or merge values (months into "
            "years, say)"
        )
    numbers = corpus.environments.replace_strict(
        names, list(range(len(names))), default=NO_ENVIRONMENT, return_dtype=pl.Int64
    ).to_numpy()
    if audit.task.classifies:
        sums = [audit.task.total(audit.train, _sums_within, name) for name in names]
        effects = Environments.of_sums(sums, tuple(names), audit.importance)
    else:
        units = audit.task.units(corpus)
        assert units is not None  # pairs always have them
        effects = Environments.compare_pairs(
            audit.train.counts,
            numbers,
            tuple(names),
            audit.importance,
            audit.train.n_formatting,
            units,
        )
    return EnvironmentEffects(effects, numbers)


def _sums_within(part: CountedCorpus, name: str) -> Sums:
    """The sums from which importance among the documents of one environment is computed."""
    corpus = part.corpus
    assert corpus.environments is not None
    is_inside = (corpus.environments == name).fill_null(False).to_numpy()
    units = None if corpus.units is None else corpus.units[is_inside]
    counts = part.counts.rows(is_inside)
    token_sums = TokenSums.of_counts(counts, part.n_formatting, units)
    return Sums((*token_sums, counts.present))
