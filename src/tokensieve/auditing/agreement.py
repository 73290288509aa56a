"""Do data and model agree? The one rule: what the data says of a token type, against the attention that the model pays it."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import polars as pl
import polars.selectors

from tokensieve.evidence.importance import Category, Importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.model.attention import Model, both
from tokensieve.text.counts import Floats, Ints

DIGITS = 6  # significant digits of the table, for page, terminal and files alike
FLOOR = 5  # documents that a token needs to stand in a list


class Quadrant(StrEnum):
    """Where a token type stands; the values are those of the column `quadrant` in tokens.csv."""

    BOTH = "carries the label, attended"
    DATA = "carries the label, ignored"
    MODEL = "attended without evidence"
    NEITHER = "neither"
    RARE = "too rare to tell"


QUADRANTS = tuple(quadrant.value for quadrant in Quadrant)


def quadrants(importance: Importance, attention: Floats) -> Ints:
    """Index in QUADRANTS of each token type, shape (|S|,).

    A type carries the label if it does for any class (q < 0.05). "Without evidence" is more than a lack of significance: for
    every class its interval is tight around zero (`Category.IRRELEVANT`). What is neither is too rare to tell, however much
    attention it receives.

    Args:
        importance: of |S| types and K classes.
        attention: mean attention relative to an equal share, shape (|S|,); more than 1 is "attended".
    """
    carries = importance.q_value.min(axis=1) < LEVEL
    settled = (importance.category() == Category.IRRELEVANT.value).all(axis=1)
    attended = attention > 1
    return np.where(carries, np.where(attended, 0, 1), np.where(settled, np.where(attended, 2, 3), 4))


def token_table(importance: Importance, model: Model, attention: Floats) -> tuple[pl.DataFrame, Ints]:
    """The one table of `Audit.tokens`, and the index in QUADRANTS of each type, shape (|S|,).

    Args:
        importance: of the training documents.
        model: trained on them.
        attention: mean relative attention of each type, shape (|S|,) (`tokensieve.model.explanation.Effects.attention`).
    """
    k, which = len(importance.classes), quadrants(importance, attention)
    table = importance.to_frame().with_columns(
        score=pl.Series(np.tile(model.scores, k)),
        value=pl.Series(both(model.values).T.ravel()),
        attention=pl.Series(np.tile(attention, k)),
        quadrant=pl.Series(QUADRANTS).gather(np.tile(which, k)),
    )
    return table.with_columns(polars.selectors.float().round_sig_figs(DIGITS)), which


def quadrant_sizes(tokens: pl.DataFrame) -> dict[Quadrant, int]:
    """How many token types stand in each quadrant."""
    sizes = dict(tokens.group_by("quadrant").agg(pl.col("token").n_unique()).iter_rows())
    return {quadrant: sizes.get(quadrant.value, 0) for quadrant in Quadrant}


def surest(tokens: pl.DataFrame, label: str, rows: int = 10) -> pl.DataFrame:
    """The tokens that speak most surely for a class: q < 0.05, in at least 5 documents, ordered by the cautious end of the
    interval of their posterior difference.

    Args:
        tokens: a row per token type and class (`Audit.tokens`, `Diagnosis.tokens`).
        label: the class.
        rows: at most this many.
    """
    mine = tokens.lazy().filter(
        pl.col("class") == label, pl.col("q_value") < LEVEL, pl.col("effect") > 0, pl.col("documents") >= FLOOR
    )
    return mine.sort("posterior_low", "token", descending=[True, False]).head(rows).collect()


def disagreeing(tokens: pl.DataFrame, quadrant: Quadrant, rows: int = 10) -> pl.DataFrame:
    """Tokens of one quadrant, in at least 5 documents, each for the class it speaks for most.

    `Quadrant.MODEL`: most attended first, and only those with p ≥ 0.05, before any correction for the number of tokens;
    otherwise largest effect first.

    Args:
        tokens: a row per token type and class (`Audit.tokens`, `Diagnosis.tokens`).
        quadrant: the tokens wanted.
        rows: at most this many.
    """
    found = tokens.lazy().filter(
        pl.col("quadrant") == quadrant.value, pl.col("effect") > 0, pl.col("documents") >= FLOOR
    )
    found = found.sort("effect", "token", descending=[True, False]).unique("token", maintain_order=True)
    if quadrant is Quadrant.MODEL:
        found = found.filter(pl.col("p_value") >= LEVEL).sort("attention", "token", descending=[True, False])
    return found.head(rows).collect()
