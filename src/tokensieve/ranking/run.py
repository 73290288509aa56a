"""`rank`: from a source to the standings."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tokensieve import __version__
from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.progress import Progress, silent
from tokensieve.ranking.battles import Battles, read_battles
from tokensieve.ranking.bradley_terry import (
    Components,
    Fit,
    components_of,
    fit,
    position_is_identified,
)
from tokensieve.ranking.data import People
from tokensieve.ranking.judges import (
    agreement_with_people,
    agreements,
    effect_differences,
    powered_win_rates,
    self_preference_differences,
)
from tokensieve.ranking.phrases import model_phrases
from tokensieve.ranking.repeats import repeated_answers
from tokensieve.ranking.result import Ranking
from tokensieve.ranking.rewarded import Found, find_rewarded, form_differences
from tokensieve.ranking.settings import RankSettings
from tokensieve.ranking.standings import FeatureEffect, standings
from tokensieve.ranking.style import STYLE, style_differences
from tokensieve.read.sources import Source

POSITION = "first place"
SELF_PREFERENCE = "judge's own family"


def rank(
    source: Source,
    settings: RankSettings | None = None,
    progress: Progress = silent,
    **options: object,
) -> Ranking:
    """Rank models by pairwise preferences, with and without style held fixed.

    Args:
        source: as for `read_corpus`.
        settings: which columns are read; or pass its fields as `options`.
        progress: receives what is being done.
        options: fields of `RankSettings`, such as pairs=("a", "b") and models=("model_a",
            "model_b").
    """
    if settings is None:
        settings = RankSettings(**options)  # type: ignore[arg-type]
    elif options:
        settings = settings.with_options(options)
    start = time.perf_counter()
    progress("reading", 0.0)
    battles = read_battles(source, settings)
    seconds = {"reading": time.perf_counter() - start}
    ranking = rank_battles(battles, settings, progress, addresses=_addresses(source))
    ranking.seconds.update(seconds)
    ranking.seconds["ranking"] = time.perf_counter() - start - seconds["reading"]
    return ranking


def _addresses(source: Source) -> tuple[str, ...]:
    """The source as a command takes it; none of a frame."""
    given = source if isinstance(source, list | tuple) else [source]
    if not all(isinstance(part, str | Path) for part in given):
        return ()
    return tuple(str(part) for part in given)


def rank_battles(
    battles: Battles,
    settings: RankSettings,
    progress: Progress = silent,
    addresses: tuple[str, ...] = (),
) -> Ranking:
    """The ranking of battles that were read.

    Args:
        battles: all.
        settings: which columns were read, and what is asked.
        progress: receives what is being done.
        addresses: the source as a command takes it, for the commands of the report.

    Raises:
        InputError: there are fewer than two models.
    """
    if len(battles.models) < 2:
        raise InputError(f"{battles.source}: there is one model only, {battles.models[0]!r}")
    components = components_of(battles)
    nuisance = _nuisance(battles)
    progress("ranking by results", 0.2)
    raw = fit(battles, nuisance.differences, components)
    controlled = None
    style = _style(battles)
    effects: list[FeatureEffect] = []
    rewarded = None
    if settings.style:
        if settings.discover:
            progress("looking for what is rewarded", 0.3)
            joined = (style + nuisance).differences
            rewarded = find_rewarded(battles, joined, components, settings.seed)
        progress("measuring effects", 0.8)
        effects = _effects(battles, components, style, nuisance, rewarded)
        held_fixed = _held_fixed(battles, style, effects) + nuisance
        controlled = fit(battles, held_fixed.differences, components)
    repeated = repeated_answers(battles)
    phrases = []
    if settings.discover:
        constant = {answer.model for answer in repeated}
        phrases = [found for found in model_phrases(battles) if found.model not in constant]
    return Ranking(
        source=battles.source,
        addresses=addresses,
        columns={
            "pairs": settings.pairs,
            "models": settings.models,
            "winner": settings.winner,
            "scores": settings.scores,
            "ranks": settings.ranks,
            "by": settings.by,
        },
        n_battles=battles.n,
        n_rows=battles.n_rows,
        n_prompts=len(np.unique(battles.prompt)) if battles.has_prompts else None,
        anchor=battles.models[int(components.anchors[components.main])],
        rows=standings(battles, components, raw, controlled, _length(style)),
        effects=effects,
        n_candidates=0 if rewarded is None else rewarded.n_candidates,
        repeated=repeated,
        phrases=phrases,
        judges=battles.judges,
        agreements=agreements(battles),
        people=_people(battles, components, style + nuisance),
        without_games=battles.without_games,
        notes=(*battles.notes, *_notes(battles, nuisance, raw)),
        seed=settings.seed,
        version=__version__,
    )


def _length(style: Features) -> Floats | None:
    """The difference of length of each battle; None if all answers are of one length."""
    if "length" not in style.names:
        return None
    return style.differences[:, style.names.index("length")]


def _people(battles: Battles, components: Components, features: Features) -> People | None:
    """Rank by the winners that people chose, and compare the judge with them; None without
    people."""
    agreement = agreement_with_people(battles)
    if agreement is None:
        return None
    return People(
        agreement=agreement,
        win_rates=powered_win_rates(battles),
        differences=effect_differences(battles, features.differences, features.names, components),
    )


def _notes(battles: Battles, nuisance: Features, raw: Fit) -> list[str]:
    """Sentences on how the battles were used."""
    notes = []
    if not battles.has_prompts:
        notes.append(
            "no column names the prompts: battles are treated as independent; name one with --by"
        )
    if POSITION not in nuisance.names and not battles.winner_is_first:
        notes.append(
            "the advantage of the first place cannot be told from the models' strengths, since "
            "the models do not change places"
        )
    if not raw.converged:
        notes.append("the strengths did not converge: their intervals cannot be trusted")
    return notes


@dataclass(frozen=True, eq=False)
class Features:
    """Features with the difference of each between the answers of every battle, shape (n, K)."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    differences: Floats

    def __add__(self, other: Features) -> Features:
        return Features(
            self.names + other.names,
            self.units + other.units,
            np.hstack([self.differences, other.differences]),
        )

    def only(self, places: Ints | list[int]) -> Features:
        """Keep some of the features."""
        return Features(
            tuple(self.names[i] for i in places),
            tuple(self.units[i] for i in places),
            self.differences[:, places],
        )


def _style(battles: Battles) -> Features:
    """The style features in which any two answers differ."""
    differences = style_differences(battles)
    places = np.flatnonzero(np.any(differences != 0, axis=0))
    features = Features(
        tuple(feature.name for feature in STYLE),
        tuple(feature.unit for feature in STYLE),
        differences,
    )
    return features.only(places)


def _nuisance(battles: Battles) -> Features:
    """The advantage of the first place and of the judge's own family, where they can be told."""
    features = Features((), (), np.zeros((battles.n, 0)))
    if not battles.winner_is_first and position_is_identified(battles):
        intercept = np.ones((battles.n, 1))
        features += Features((POSITION,), ("shown first instead of second",), intercept)
    own_family = self_preference_differences(battles)
    if own_family is not None:
        unit = "of a model of the judge's family"
        features += Features((SELF_PREFERENCE,), (unit,), own_family[:, None])
    return features


def _found_features(found: Found) -> Features:
    units = tuple(f"with {name} against one without" for name in found.names)
    return Features(found.names, units, found.differences)


def _effects(
    battles: Battles,
    components: Components,
    style: Features,
    nuisance: Features,
    found: Found | None,
) -> list[FeatureEffect]:
    """The effect of each feature on winning, alone and jointly with the others.

    What was found is measured on the half of the prompts that did not choose it, everything else on
    all battles.
    """
    effects = _measured(battles, components, style + nuisance, rows=None)
    if found is None or not found.names:
        return effects
    all_features = style + nuisance + _found_features(found)
    on_other_half = _measured(battles, components, all_features, rows=found.report_rows)
    for effect, is_form in zip(on_other_half[len(effects) :], found.is_form, strict=True):
        if effect.joint.excludes_zero:  # what does not survive on the other half is left out
            effects.append(replace(effect, is_controlled=is_form, is_found=True))
    return effects


def _measured(
    battles: Battles, components: Components, features: Features, rows: Ints | None
) -> list[FeatureEffect]:
    """The effect of each feature alone and beside all others, in the order of the features."""
    joint = fit(battles, features.differences, components, rows=rows)
    effects = []
    for k, (name, unit) in enumerate(zip(features.names, features.units, strict=True)):
        column = features.differences[:, [k]]
        alone = fit(battles, column, components, rows=rows, start=joint.strengths)
        effects.append(FeatureEffect(name, unit, alone.effect(0), joint.effect(k)))
    return effects


def _held_fixed(battles: Battles, style: Features, effects: list[FeatureEffect]) -> Features:
    """The style features, and forms that were found and survived."""
    survivors = [effect for effect in effects if effect.is_found and effect.is_controlled]
    if not survivors:
        return style
    names = tuple(effect.feature for effect in survivors)
    units = tuple(effect.unit for effect in survivors)
    return style + Features(names, units, form_differences(battles, names))
