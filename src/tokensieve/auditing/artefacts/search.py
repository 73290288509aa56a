"""The search for artefacts among the words and phrases of labelled texts."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import candidate_phrases, candidate_words
from tokensieve.auditing.artefacts.score import Scored, scored
from tokensieve.auditing.artefacts.traits import Asked, Usual, observe
from tokensieve.auditing.artefacts.use import WordUse
from tokensieve.read.stored_texts import StoredTexts


@dataclass(frozen=True, eq=False)
class ArtefactSearch:
    """What was found among the words and phrases of some texts.

    Attributes:
        use: the words of the texts, as they were searched.
        texts: themselves.
        usual: what is usual in them.
        scored: every candidate with its score.
    """

    use: WordUse
    texts: pl.Series | StoredTexts
    usual: Usual
    scored: list[Scored]


def search(
    use: WordUse, texts: pl.Series | StoredTexts, units: Ints | None = None
) -> ArtefactSearch:
    """Scores every word, family and phrase that predicts a class.

    Args:
        use: the words of the texts.
        texts: the texts themselves, in the same order.
        units: the group of each document, if documents belong together; evidence is one for each.
    """
    candidates = [*candidate_words(use, units), *candidate_phrases(use, units)]
    asked = Asked.all_of(use, candidates)
    usual = Usual.of(asked)
    observed = observe(asked, usual, texts)
    return ArtefactSearch(use, texts, usual, scored(observed))
