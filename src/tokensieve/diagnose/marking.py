"""A few documents with the effect of each of their words, for people to read."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.diagnose.encoding import SEPARATOR
from tokensieve.diagnose.judging import Status
from tokensieve.diagnose.measuring import Measured
from tokensieve.diagnose.result import Marked
from tokensieve.diagnose.sample import Sample
from tokensieve.model.decision import decide
from tokensieve.text.counts import Floats, Ints

EACH = 2
DRAWS = 16  # of the effects in these documents, which are read one by one
WORDS = 3


def mark_documents(
    measured: Measured, documents: Ints, sample: Sample, classes: tuple[str, ...], uses: pl.DataFrame
) -> list[Marked]:  # fmt: skip
    """Documents answered right and wrong with most certainty, and some that hold the words most used without support.

    Args:
        measured: of the model, with effects of all words.
        documents: document of each input, shape (W,).
        sample: the documents read.
        classes: names.
        uses: the words confirmed.
    """
    f = measured.decisive
    answered, sure, whole = decide(f), _certainty(f), _whole(documents)
    picked = certain(measured, documents, sample.labels)
    place = {word: s for s, word in enumerate(sample.words)}
    for token in uses.filter(pl.col("status") == str(Status.UNSUPPORTED))["token"][:WORDS]:
        of_word = measured.pairs.windows[measured.pairs.types == place.get(token, -1)]
        of_word = of_word[np.isin(of_word, whole)]
        picked |= {int(w): f"holds “{token}”" for w in of_word[np.argsort(-sure[of_word], kind="stable")][:1]}
    return [_marked(measured, int(w), why, sample, documents, classes, int(answered[w])) for w, why in picked.items()]


def certain(measured: Measured, documents: Ints, labels: Ints) -> dict[int, str]:
    """Inputs, whole documents each, that are answered wrong and right with most certainty, and which of both."""
    f, whole = measured.decisive, _whole(documents)
    right, sure = decide(f) == labels[documents], _certainty(f)
    picked: dict[int, str] = {}
    for why, kept in (("wrong and certain", ~right), ("right and certain", right)):
        order = whole[kept[whole]][np.argsort(-sure[whole][kept[whole]], kind="stable")]
        picked |= {int(w): why for w in order[:EACH]}
    return picked


def _certainty(f: Floats) -> Floats:
    """How far each answer is from another class's."""
    top = np.sort(f, axis=1)
    return np.asarray(np.abs(f[:, 0]) if f.shape[1] == 1 else top[:, -1] - top[:, -2])


def _whole(documents: Ints) -> Ints:
    """Inputs that hold all of their document."""
    return np.flatnonzero(np.bincount(documents)[documents] == 1) if len(documents) else documents


def _marked(
    measured: Measured, w: int, why: str, sample: Sample, documents: Ints, classes: tuple[str, ...], answered: int
) -> Marked:  # fmt: skip
    """One document; effects are towards the class answered."""
    pairs, k = measured.pairs, int(documents[w])
    here = slice(int(pairs.starts[w]), int(pairs.starts[w + 1]))
    sign = -1.0 if measured.answers.shape[1] == 1 and answered == 0 else 1.0
    effect = dict(zip(pairs.types[here].tolist(), np.nan_to_num(sign * measured.effect[here]).tolist(), strict=True))
    place = {word: s for s, word in enumerate(sample.words)}
    text, at = str(sample.texts[k]), 0
    pieces: list[tuple[str, float]] = []
    for start, end, word in sample.splitter.spans(text):
        if start > at:
            pieces.append((text[at:start], 0.0))
        pieces.append((text[start:end], effect.get(place.get(word, -1), 0.0)))
        at = end
    pieces.append((text[at:], 0.0))
    return Marked(
        int(sample.rows[k]),
        classes[int(sample.labels[k])],
        classes[answered],
        why,
        [(piece.replace(SEPARATOR, " ⏐ "), one) for piece, one in pieces if piece],
        classes[answered],
    )
