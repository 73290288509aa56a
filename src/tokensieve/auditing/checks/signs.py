"""The signs that tell an artefact from an ordinary word."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.context import AuditContext, computed_once
from tokensieve.read.corpus import Corpus
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer

CODE = re.compile(
    r"://|^www\.|@|\d[/_=&#?:-]|[/_=&#?%:-]\d"
)  # addresses and codes that are one token
_GLUED_BEFORE, _GLUED_AFTER = (
    re.compile(r"(\w[/_=@#?%:.]|\[|\d-)$"),
    re.compile(r"^([/_=@#?%:.]\w|-\d|\])"),
)

Spans = Callable[[str], list[tuple[int, int, str]]]  # `Tokenizer.spans`
Words = tuple[
    str, list[str], int
]  # a text, its words in one field, and how many words come before these


class Sign(StrEnum):
    """Signs that distinguish an artefact from an ordinary word, clearest first; findings.json contains the values."""

    MARKUP = "markup"  # glued to its neighbours, as in addresses, codes and field names
    BOILERPLATE = (
        "fixed phrase"  # at an edge of the text, with the same neighbour in nearly every document
    )
    FORMATTING = "formatting"  # one of the tokens ⟨…⟩ that stand for form
    SCRIPT = "another script"  # written in letters that are rare in these texts
    NUMBER = "number"  # it contains a digit
    EDGE = "fixed place"  # at the very start or end of its documents
    ALONE = "all but certain"  # none of these, but hardly ever in other classes

    @classmethod
    def of_each(
        cls,
        tokens: Sequence[str],
        documents: Sequence[Ints],
        corpus: Corpus,
        tokenizer: Tokenizer,
        usual: set[Sign] | None = None,
    ) -> list[tuple[tuple[Sign, ...], bool]]:
        """The signs of an artefact that each token bears in 40 of its documents, the clearest first; none for a plain word. And
        whether it mostly has the same word (or a number) on one side, or the same place, as in a template.

        Signs that ordinary words show too (`usual`) mean nothing: in program code most words are joined to a neighbour, and in
        short questions and logs most have a fixed place.
        """
        usual = cls.usual(corpus, tokenizer) if usual is None else usual
        some = [held[:: max(1, len(held) // 40)][:40] for held in documents]
        split, spans = cls._split(
            np.unique(np.concatenate([np.empty(0, np.int64), *some])), corpus, tokenizer
        )
        found = []
        drawn = list(split.values())[:: len(split) // 100 + 1]
        scripts = Counter(_script(name) for _, names, _ in drawn for name in names)
        frequent = {script for script, n in scripts.items() if n >= 0.05 * scripts.total()} | {""}
        for token, held in zip(tokens, some, strict=True):
            fields, script = (
                tokenizer if isinstance(tokenizer, FieldTokenizer) else None,
                _script(token),
            )
            field = fields.field_of(token) if fields else ""
            texts = [split[i, field] for i in held.tolist() if (i, field) in split]
            signs, fixed = cls._signs_of_token(token, texts, spans)
            if fields and fields.is_value(token) and cls.EDGE not in signs:
                signs = (*signs, cls.EDGE)
            if not is_formatting(token) and script not in frequent:
                around = [_script(name) == script for _, names, _ in texts for name in names]
                if 2 * sum(around) < len(
                    around
                ):  # else the texts are written in it, as those of a class may be
                    signs = tuple(sorted((*signs, Sign.SCRIPT), key=list(Sign).index))
            by_itself = {Sign.MARKUP} if CODE.search(token) else {Sign.NUMBER, Sign.FORMATTING}
            found.append((tuple(sign for sign in signs if sign not in usual - by_itself), fixed))
        return found

    @classmethod
    def usual(cls, corpus: Corpus, tokenizer: Tokenizer) -> set[Sign]:
        """The signs that ordinary words of a corpus show too."""
        drawn = np.arange(0, len(corpus.labels), max(1, len(corpus.labels) // 400))
        split, spans = cls._split(drawn, corpus, tokenizer)
        holding: dict[str, list[Words]] = {}
        for part in split.values():
            for word in dict.fromkeys(part[1]):
                holding.setdefault(word, []).append(part)
        ordinary = [(word, held) for word, held in sorted(holding.items()) if len(held) >= 8]
        ordinary = ordinary[:: max(1, len(ordinary) // 80)]
        borne = [cls._signs_of_token(word, held[:40], spans) for word, held in ordinary]
        often = Counter(sign for signs, _ in borne for sign in signs)
        usual = {sign for sign, words in often.items() if words > 0.15 * len(borne)}
        some = [text for text, _, before in split.values() if not before][
            :: max(1, len(drawn) // 80)
        ]
        glued = [cls._is_glued(text, start, end) for text in some for start, end, _ in spans(text)]
        # of all occurrences: the many names of a program are glued, the few common words are not
        return usual | {cls.MARKUP} if sum(glued) > 0.1 * len(glued) else usual

    @staticmethod
    def _split(
        documents: Ints, corpus: Corpus, tokenizer: Tokenizer
    ) -> tuple[dict[tuple[int, str], Words], Spans]:
        """The words of some documents, by document and field, and where words are in a text: they share many of their documents."""
        texts, found = corpus.texts.gather(documents), {}
        field_of = (
            lru_cache(None)(tokenizer.field_of) if isinstance(tokenizer, FieldTokenizer) else None
        )
        for i, text, names in zip(
            documents.tolist(), texts, tokenizer.split(texts).to_list(), strict=True
        ):
            fields = [*map(field_of, names)] if field_of else [""] * len(names)
            for field in dict.fromkeys(fields):
                start, n = fields.index(field), fields.count(field)
                found[i, field] = text, names[start : start + n], start
        return found, lru_cache(1_000)(tokenizer.spans)

    @staticmethod
    def _is_glued(text: str, start: int, end: int) -> bool:
        """Whether a word is glued to one of its neighbours, as in addresses, codes and field names."""
        return bool(
            _GLUED_BEFORE.search(text[max(0, start - 2) : start])
            or _GLUED_AFTER.match(text[end : end + 2])
        )

    @classmethod
    def _signs_of_token(
        cls, token: str, texts: list[Words], spans: Spans
    ) -> tuple[tuple[Sign, ...], bool]:
        """The signs of one token, from texts and their words."""
        if is_formatting(token):
            return (Sign.FORMATTING,), False
        glued = loose = seen = 0
        places: tuple[Counter[int], Counter[int]] = (
            Counter(),
            Counter(),
        )  # words from the start, and from the end
        neighbours: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        parts, size = token.split(" "), token.count(" ") + 1
        for text, names, before in texts:
            words = len(names)
            starts = range(names.index(parts[0]) if parts[0] in names else words, words - size + 1)
            at = next((i for i in starts if names[i : i + size] == parts), -1)
            if at < 0:
                continue
            seen += 1
            if 5 * loose < len(texts):  # else the glued can no longer be most
                places_of_words = spans(text)
                first, last = places_of_words[before + at], places_of_words[before + at + size - 1]
                there = cls._is_glued(text, first[0], last[1])
                glued, loose = glued + there, loose + (not there)
            around = names[at - 1] if at else "", names[at + size] if at + size < words else ""
            for side, name in zip(neighbours, around, strict=True):
                side["0" if name.isdigit() else name] += 1
            if words > size + 1:
                places[0][at] += 1
                places[1][words - at] += 1
        mostly = 0.8 * seen
        # within four words from either end a place that is always the same is a fixed one; in a few documents any word's may be
        at_edge = seen >= 8 and any(
            most > mostly for side in places for place, most in side.most_common(1) if place <= 4
        )
        beside = [most for side in neighbours for name, most in side.most_common(1) if name]
        borne = {
            Sign.MARKUP: bool(CODE.search(token)) or glued > mostly,
            Sign.BOILERPLATE: at_edge and any(most > mostly for most in beside),
            Sign.NUMBER: any(c.isdigit() for c in token),
            Sign.EDGE: at_edge,
        }
        return tuple(sign for sign, there in borne.items() if there), at_edge or any(
            most > seen / 2 for most in beside
        )

    @staticmethod
    def whole_phrases(
        word: str, documents: Ints, texts: pl.Series | StoredTexts, tokenizer: Tokenizer
    ) -> list[str]:
        """The phrase of a word at the start or end of its documents, and the phrases of all texts that differ in that word only.

        None where the word stands by itself, or has more rivals than `VARIANTS` (`NAMES` if two words or more are fixed).
        """
        reach, edge = 6, 200  # words, characters

        def words_at(side: int, which: Ints) -> list[list[str]]:
            """The first words of some texts, or the last ones (side −1), from the edge inwards."""
            cut = (
                texts.gather(which).str.head(edge)
                if side > 0
                else texts.gather(which).str.tail(edge)
            )
            return [[name for _, _, name in tokenizer.spans(text)][::side][:reach] for text in cut]

        for side in (-1, 1):
            mine = [names for names in words_at(side, documents[:500]) if word in names]
            places = Counter(names.index(word) for names in mine)
            if len(mine) < 8 or places.most_common(1)[0][1] < 0.8 * len(mine):
                continue
            place = places.most_common(1)[0][0]
            fixed = {}  # place → the word that nearly all have there
            for inwards in (range(place - 1, -1, -1), range(place + 1, reach)):
                for j in inwards:
                    there = Counter(names[j] for names in mine if len(names) > j).most_common(1)
                    if not there or there[0][1] < 0.9 * len(mine):
                        break
                    fixed[j] = there[0][0]
            variants: Counter[str] = Counter()
            for start in range(0, len(texts) if fixed else 0, 10_000):  # texts may lie in files
                block = np.arange(start, min(start + 10_000, len(texts)))
                for names in words_at(side, block):
                    if len(names) > max(*fixed, place) and all(
                        names[j] == name for j, name in fixed.items()
                    ):
                        variants[names[place]] += 1
            if fixed and len(variants) <= (VARIANTS if len(fixed) == 1 else NAMES):
                order = sorted([*fixed, place])[::side]
                own_first = sorted(variants, key=lambda name: name != word)
                return [" ".join(fixed.get(j, name) for j in order) for name in own_first]
        return []


@lru_cache(10_000)
def _script(word: str) -> str:
    """The script of a word of two letters or more, such as LATIN; "" if there is none."""
    return (
        unicodedata.name(word[0], "").partition(" ")[0]
        if len(word) > 1 and word[:2].isalpha()
        else ""
    )


VARIANTS, NAMES = (
    12,
    500,
)  # of a phrase with one fixed word, such as "the …", and with more, as in "handled by …"
STRONG = {Sign.MARKUP, Sign.FORMATTING}  # each of these suffices
MEANING = {
    Sign.FORMATTING: "formatting, not a word",
    Sign.NUMBER: "a number",
    Sign.SCRIPT: "written in another script than most words",
    Sign.MARKUP: "joined to other characters, as in a code, an address or markup",
    Sign.BOILERPLATE: "part of a fixed phrase at the start or end of the text",
    Sign.EDGE: "always in the same place in the text",
    Sign.ALONE: "nearly certain, in documents that otherwise read like the rest of the class",
}


@computed_once
def usual_signs(audit: AuditContext) -> set[Sign]:
    """The signs of an artefact that ordinary words of this corpus show too."""
    return Sign.usual(audit.train.corpus, audit.tokenizer)
