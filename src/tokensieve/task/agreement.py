"""Whether data and model agree on a token type: one rule compares its association in the data with
the model's attention."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.importance import Category, Importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.model.attention import Model, per_class

DIGITS = 6  # significant digits of the table, for page, terminal and files alike
FLOOR = 5  # documents that a token needs to stand in a list


class Quadrant(StrEnum):
    """How data and model compare for a token type: the values of the column `quadrant` in
    tokens.csv."""

    BOTH = "carries the label, attended"
    DATA = "carries the label, ignored"
    MODEL = "attended without evidence"
    NEITHER = "neither"
    RARE = "too rare to tell"

    @staticmethod
    def places(importance: Importance, attention: Floats) -> Ints:
        """Index in QUADRANTS of each token type, shape (types,). A type predicts the label if q <
        0.05 for any class; it is without evidence if its interval is tight around zero for every
        class (`Category.IRRELEVANT`), and otherwise too rare to tell. A type is attended if its
        mean attention relative to a uniform share, shape (types,), exceeds 1."""
        carries = importance.q_value.min(axis=1) < LEVEL
        settled = (importance.category() == Category.IRRELEVANT.value).all(axis=1)
        attended = attention > 1
        return np.where(
            carries, np.where(attended, 0, 1), np.where(settled, np.where(attended, 2, 3), 4)
        )


QUADRANTS = tuple(quadrant.value for quadrant in Quadrant)


def token_table(importance: Importance, model: Model, attention: Floats) -> pl.DataFrame:
    """The one table of `Audit.tokens`; `attention` is the mean relative attention of each type,
    shape (types,)."""
    k, quadrant_of_row = len(importance.classes), Quadrant.places(importance, attention)
    table = importance.to_frame().with_columns(
        score=pl.Series(np.tile(model.scores, k)),
        value=pl.Series(per_class(model.values).T.ravel()),
        attention=pl.Series(np.tile(attention, k)),
        quadrant=pl.Series(QUADRANTS).gather(np.tile(quadrant_of_row, k)),
    )
    return table.with_columns(pl.selectors.float().round_sig_figs(DIGITS))
