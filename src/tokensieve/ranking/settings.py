"""How preference data are ranked: the options of `rank`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tokensieve.errors import InputError
from tokensieve.name_lists import joined_names
from tokensieve.options import option
from tokensieve.read.settings import SourceSettings, names_from

_column = partial(option, metavar="COLUMN")


@dataclass(frozen=True, kw_only=True)
class RankSettings(SourceSettings):
    """Battles.

    Which columns say who answered what, and who won.

    Attributes:
        pairs: the columns of the two answers.
        models: the columns of the two models, in the same order.
        winner: which answer won: a name of an answer or of a model, A and B, 0 and 1, a chance from
            0 to 1, a continuous preference from 1 (the first) to 2 (the second), or a scale with
            zero in its middle. None if the first answer of a row is the preferred one.
        scores: instead of a winner, the columns of the answers' scores; the higher one wins.
        ranks: instead of a winner, the columns of the answers' ranks; the lower one wins.
        by: the prompt, whose battles are not independent; a column whose name says judge, rater or
            annotator is taken as `judge`.
        judge: who judged each battle.
        human: what people say of some of the battles, written as the winner is.
        battle_weight: the column of weights of battles.
        style: hold style fixed; False ranks by results alone.
        discover: look for words and forms that are rewarded, beside the style features.
        seed: of the halves in which words and forms are chosen and measured.
    """

    pairs: Sequence[str] = option(
        (), "Columns of the two answers.", metavar="FIRST,SECOND", parse=names_from
    )
    models: Sequence[str] = option(
        (), "Columns of the two models.", metavar="FIRST,SECOND", parse=names_from
    )
    winner: str | None = _column(
        None,
        "Column that says which answer won, by name or as a number (0 to 1, 1 to 2, −3 to 3).",
        default_text="the first always wins",
    )
    scores: Sequence[str] = option(
        (),
        "Instead of --winner: columns of the answers' scores.",
        metavar="FIRST,SECOND",
        parse=names_from,
    )
    ranks: Sequence[str] = option(
        (),
        "Instead of --winner: columns of the answers' ranks; the lower one wins.",
        metavar="FIRST,SECOND",
        parse=names_from,
    )
    by: Sequence[str] = option(
        (),
        "Column of the prompt; also of the judge (repeatable).",
        metavar="COLUMN,…",
        parse=names_from,
        default_text="the column `prompt`, if there is one",
    )
    judge: str | None = _column(None, "Column of the judge.")
    human: str | None = _column(
        None, "Column with the winner by people, where they were asked; empty elsewhere."
    )
    battle_weight: str | None = option(
        None, "Column of weights (0 or more).", flag="--weight", metavar="COLUMN"
    )
    style: bool = option(True, "Hold length, lists, bold and headings fixed.")
    discover: bool = option(True, "Look for other words and forms that are rewarded.")
    seed: int = option(0, "Seed of the halves in which these are chosen and measured.", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pairs", "models", "scores", "ranks", "by"):
            given = getattr(self, name)
            names = names_from(given) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, name, names)
        for name, example in (("pairs", "answer_a,answer_b"), ("models", "model_a,model_b")):
            columns = getattr(self, name)
            if len(columns) != 2 or columns[0] == columns[1]:
                given = f"; got {joined_names(columns)!r}" if columns else ""
                raise InputError(
                    f"--{name} must name two different columns, such as --{name} {example}{given}"
                )
        outcomes = [name for name in ("winner", "scores", "ranks") if getattr(self, name)]
        if len(outcomes) > 1:
            first, second = outcomes[:2]
            raise InputError(f"pass one of --{first} and --{second}, not both")
        for name in ("scores", "ranks"):
            columns = getattr(self, name)
            if columns and len(columns) != 2:
                raise InputError(f"--{name} must name two columns; got {joined_names(columns)!r}")

    @property
    def outcome_columns(self) -> tuple[str, ...]:
        """The columns that say which answer won; empty if the order of the answers does."""
        if self.winner:
            return (self.winner,)
        return tuple(self.scores or self.ranks)
