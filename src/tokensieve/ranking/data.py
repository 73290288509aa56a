"""Everything that a ranking found, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tokensieve.evidence.intervals import Share
from tokensieve.ranking.judges import EffectDifference, JudgeAgreement, PoweredWinRate
from tokensieve.ranking.phrases import ModelPhrase
from tokensieve.ranking.repeats import RepeatedAnswer
from tokensieve.ranking.standings import FeatureEffect, ModelStanding


@dataclass(frozen=True)
class People:
    """What people say, where they were asked.

    Attributes:
        agreement: how often the judge prefers the answer that people prefer.
        win_rates: of models with enough battles that people judged.
        differences: what each feature is worth to the judge less what it is worth to people.
    """

    agreement: Share
    win_rates: list[PoweredWinRate]
    differences: list[EffectDifference]


@dataclass(frozen=True, kw_only=True, eq=False)
class RankingData:
    """The standings and what they stand on.

    Attributes:
        source: what the data are called.
        addresses: the source as a command takes it; none of a frame.
        columns: name of an option → the columns that it named.
        n_battles, n_rows: battles used, and rows of the source.
        n_prompts: independent prompts; None if no column names them.
        anchor: the model whose strength is zero.
        rows: the models, the strongest by results first.
        effects: the features, style first, then what was found and survived.
        n_candidates: words and forms that were tried.
        repeated: models that give one answer to many prompts, most prompts first.
        phrases: that one model uses and the others hardly do; none without a search.
        judges: their names, if a column has them.
        agreements: of each two judges that share battles.
        people: None without a column of what people say.
        without_games: models whose rows could not be used.
        notes: what was left out, and how columns were read.
        seed: of the halves.
        version: of tokensieve.
        seconds: of each stage.
    """

    source: str
    addresses: tuple[str, ...]
    columns: Mapping[str, Sequence[str] | str | None]
    n_battles: int
    n_rows: int
    n_prompts: int | None
    anchor: str
    rows: list[ModelStanding]
    effects: list[FeatureEffect]
    n_candidates: int
    repeated: list[RepeatedAnswer]
    phrases: list[ModelPhrase]
    judges: tuple[str, ...]
    agreements: list[JudgeAgreement]
    people: People | None
    without_games: tuple[str, ...]
    notes: tuple[str, ...]
    seed: int
    version: str
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def has_style(self) -> bool:
        """Whether style was held fixed."""
        return any(row.style is not None for row in self.rows)

    @property
    def moved(self) -> list[ModelStanding]:
        """The models that style moves by more than chance explains, the largest moves first."""
        moved = [row for row in self.rows if row.has_moved]
        return sorted(moved, key=lambda row: (-abs(row.move), row.model))

    @property
    def extrapolated(self) -> list[ModelStanding]:
        """The models that cannot be ranked at equal style."""
        return [row for row in self.rows if row.is_extrapolated]

    def effect(self, name: str) -> FeatureEffect | None:
        """The effect of a feature, if it was measured."""
        for effect in self.effects:
            if effect.feature == name:
                return effect
        return None
