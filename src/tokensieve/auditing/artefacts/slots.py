"""Fixed phrases at the edge of texts, and what else fills the slot of a word in them.

Cutting "tablet" from "sent from my tablet" beside "sent from my phone" would leave what gives the
label away: the phrases of all texts that differ in this word only go with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.tokenizers import Tokenizer

EDGE_WORDS = 6
EDGE_CHARACTERS = 200  # in which these words are looked for
MAX_TEXTS_OF_WORD = 500
MIN_TEXTS_OF_WORD = 8  # of fewer, any word's place is always the same
SAME_PLACE = 0.8  # of the texts of the word
SAME_NEIGHBOUR = 0.9  # of the texts of the word
MAX_VARIANTS_OF_ONE = 12  # of a phrase with one fixed word, such as "the …"
MAX_VARIANTS = 500  # with more fixed words, as in "handled by …"
TEXTS_AT_ONCE = 10_000  # texts may lie in files


@dataclass(frozen=True)
class Slot:
    """A place at the edge of texts, counted from the edge inwards, between fixed words.

    Attributes:
        is_start: whether it is counted from the start.
        place: of the slot.
        fixed: the words at other places.
    """

    is_start: bool
    place: int
    fixed: dict[int, str]

    def filler(self, words: Sequence[str]) -> str:
        """What fills the slot in a text, given its words from the edge inwards; empty if it has
        none.
        """
        if len(words) <= max(*self.fixed, self.place):
            return ""
        is_here = all(words[place] == word for place, word in self.fixed.items())
        return words[self.place] if is_here else ""

    def phrase(self, filler: str) -> str:
        """The fixed words with another filler, in the order of the text."""
        places = sorted([*self.fixed, self.place], reverse=not self.is_start)
        return " ".join(self.fixed.get(place, filler) for place in places)


def whole_phrases(
    word: str, documents: Ints, texts: pl.Series | StoredTexts, tokenizer: Tokenizer
) -> list[str]:
    """The fixed phrase around a word at the start or end of its documents, then its variants in all
    texts.

    None if the word stands by itself, or if too many words fill its slot.
    """
    for is_start in (False, True):
        own_texts = edge_words(texts, documents[:MAX_TEXTS_OF_WORD], tokenizer, is_start)
        slot = slot_of(word, own_texts, is_start)
        if slot is None:
            continue
        fillers: Counter[str] = Counter()
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            block = np.arange(first, min(first + TEXTS_AT_ONCE, len(texts)))
            fillers.update(map(slot.filler, edge_words(texts, block, tokenizer, is_start)))
        del fillers[""]
        max_fillers = MAX_VARIANTS_OF_ONE if len(slot.fixed) == 1 else MAX_VARIANTS
        if len(fillers) <= max_fillers:
            own_first = sorted(fillers, key=lambda filler: filler != word)
            return [slot.phrase(filler) for filler in own_first]
    return []


def edge_words(
    texts: pl.Series | StoredTexts, documents: Ints, tokenizer: Tokenizer, is_start: bool
) -> list[list[str]]:
    """The first words of some texts, or the last ones, from the edge inwards."""
    chosen_texts = texts.gather(documents)
    if is_start:
        return [
            [name for _, _, name in tokenizer.spans(text)][:EDGE_WORDS]
            for text in chosen_texts.str.head(EDGE_CHARACTERS)
        ]
    return [
        [name for _, _, name in tokenizer.spans(text)][::-1][:EDGE_WORDS]
        for text in chosen_texts.str.tail(EDGE_CHARACTERS)
    ]


def slot_of(word: str, texts: Sequence[Sequence[str]], is_start: bool) -> Slot | None:
    """The slot of a word in its texts, given from the edge inwards; None if it has no fixed place
    or neighbour.
    """
    texts = [names for names in texts if word in names]
    places = Counter(names.index(word) for names in texts)
    if len(texts) < MIN_TEXTS_OF_WORD:
        return None
    place, n_texts = places.most_common(1)[0]
    if n_texts < SAME_PLACE * len(texts):
        return None
    fixed: dict[int, str] = {}
    for inwards in (range(place - 1, -1, -1), range(place + 1, EDGE_WORDS)):
        for neighbour in inwards:
            words_there = Counter(names[neighbour] for names in texts if len(names) > neighbour)
            if not words_there:
                break
            name, n_texts = words_there.most_common(1)[0]
            if n_texts < SAME_NEIGHBOUR * len(texts):
                break
            fixed[neighbour] = name
    return Slot(is_start, place, fixed) if fixed else None
