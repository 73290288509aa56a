"""The signs that a token was put into a text by a machine, a form or a source, not chosen by a writer for its meaning."""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum

from tokensieve.auditing.context import occurrences
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import Tokenizer

_CODE = re.compile(r"://|^www\.|@|\d[/_=&#?%:-]|[/_=&#?%:-]\d")  # addresses and codes that are one token
LOOKED_AT = 40  # documents per token
EDGE = 4  # words from either end, within which a place that is always the same is a fixed one
MOSTLY = 0.8  # of the documents looked at
_GLUED_BEFORE, _GLUED_AFTER = re.compile(r"(\w[/_=&@#?%:.]|\[|\d-)$"), re.compile(r"^([/_=&@#?%:.]\w|-\d|\])")


class Sign(StrEnum):
    """What tells an artefact from an ordinary word; the values stand in findings.json."""

    MARKUP = "markup"  # glued to its neighbours, as in addresses, codes and field names
    BOILERPLATE = "fixed phrase"  # at an edge of the text, with the same neighbour in nearly every document
    FORMATTING = "formatting"  # one of the tokens ⟨…⟩ that stand for form
    NUMBER = "number"  # it contains a digit
    EDGE = "fixed place"  # at the very start or end of its documents
    ALONE = "all but certain"  # none of these, but hardly ever elsewhere


STRONG = (Sign.MARKUP, Sign.FORMATTING)  # each of these suffices


def signs_of(token: str, documents: Ints, corpus: Corpus, tokenizer: Tokenizer) -> tuple[Sign, ...]:
    """The signs of an artefact that a token bears in up to 40 of its documents, the clearest first; none for an ordinary word.

    Args:
        token: a token type.
        documents: those of the corpus that contain it.
        corpus: the texts.
        tokenizer: that found it.
    """
    if is_formatting(token):
        return (Sign.FORMATTING,)
    out = [Sign.MARKUP] if _CODE.search(token) else []
    glued = seen = 0
    places: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    neighbours: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    size = len(token.split(" "))
    for i in documents[:: max(1, len(documents) // LOOKED_AT)][:LOOKED_AT]:
        text = str(corpus.texts[int(i)])
        place = next(occurrences(text, [token], tokenizer), None)
        if place is None:
            continue
        start, end, at, words = place
        seen += 1
        glued += bool(_GLUED_BEFORE.search(text[max(0, start - 2) : start]) or _GLUED_AFTER.match(text[end : end + 2]))
        spans = tokenizer.spans(text)
        neighbours[0][spans[at - 1][2] if at else ""] += 1
        neighbours[1][spans[at + size][2] if at + size < words else ""] += 1
        if words > size + 1:
            places[0][at] += 1
            places[1][words - at] += 1
    if not out and seen and glued > MOSTLY * seen:
        out.append(Sign.MARKUP)
    fixed = [most for side in places for place, most in side.most_common(1) if place <= EDGE]
    at_edge = any(most > MOSTLY * seen for most in fixed)
    same = any(most > MOSTLY * seen for side in neighbours for name, most in side.most_common(1) if name)
    if at_edge and same:
        out.append(Sign.BOILERPLATE)
    if any(c.isdigit() for c in token):
        out.append(Sign.NUMBER)
    if at_edge:
        out.append(Sign.EDGE)
    return tuple(out)
