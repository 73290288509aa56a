"""The style of answers: length, lists, bold and headings, and by how much two answers differ in it.

Of two answers with quantities q_a and q_b, a feature of style is

    Δx = (q_a − q_b) / (q_a + q_b)        from −1 to 1, and 0 where neither has any

which is tanh(½ log(q_a/q_b)), so that a difference of length counts in proportion while it is small
and saturates where answers are of entirely different length (as in the style control of LMArena).
Length is multiplied by three, so that one unit is an answer of twice the length; of lists, bold
and headings one unit is having some against having none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.arrays import Floats
from tokensieve.ranking.battles import Battles

TWICE_AS_LONG = 1 / 3  # (2 − 1) / (2 + 1)


@dataclass(frozen=True)
class StyleFeature:
    """A quantity of an answer.

    Attributes:
        name: in features.csv.
        unit: what one unit of difference is, in words.
        quantity: of a text, from a column named `text`.
        scale: the difference (q_a − q_b)/(q_a + q_b) of one unit.
        forms: the formatting (`tokensieve.text.formatting`) that it measures.
    """

    name: str
    unit: str
    quantity: pl.Expr
    scale: float = 1.0
    forms: tuple[str, ...] = ()


_TEXT = pl.col("text").str
STYLE = (
    StyleFeature("length", "twice as long", _TEXT.len_chars(), TWICE_AS_LONG),
    StyleFeature(
        "lists",
        "with a list against one without",
        _TEXT.count_matches(r"(?m)^[ \t]*(?:[-*+•]|\d+[.)])[ \t]+\S"),
        forms=("⟨bullet list⟩", "⟨numbered list⟩"),
    ),
    StyleFeature(
        "bold",
        "with bold type against one without",
        _TEXT.count_matches(r"\*\*[^*\n]+\*\*|__[^_\n]+__|<b>|<strong>"),
        forms=("⟨**bold**⟩",),
    ),
    StyleFeature(
        "headings",
        "with a heading against one without",
        _TEXT.count_matches(r"(?m)^ {0,3}#{1,6}[ \t]+\S"),
        forms=("⟨heading⟩",),
    ),
)


def style_quantities(texts: pl.Series) -> Floats:
    """The quantities of each text, shape (texts, features)."""
    frame = pl.DataFrame({"text": texts})
    columns = frame.select(feature.quantity.alias(feature.name) for feature in STYLE)
    return columns.to_numpy().astype(np.float64)


def style_differences(battles: Battles) -> Floats:
    """Subtract the style of the second answer of each battle from that of the first, in units,
    shape (n, K)."""
    quantities = style_quantities(battles.texts)
    first = quantities[battles.first_text]
    second = quantities[battles.second_text]
    total = first + second
    relative = np.divide(first - second, total, out=np.zeros_like(total), where=total > 0)
    scaled: Floats = relative / np.array([feature.scale for feature in STYLE])
    return scaled
