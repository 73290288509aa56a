"""A few documents with the effect of each of their words, for people to read."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.blocks import Passage
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.judgement.status import Status
from tokensieve.diagnose.subjects.documents import Sample
from tokensieve.diagnose.subjects.windows import SEPARATOR
from tokensieve.escape import shown
from tokensieve.model.attention import decide
from tokensieve.text.counts import Floats, Ints

DRAWS = 16  # of the effects in these documents, which are read one by one
_CHARACTERS = 1_600


def passages_of(
    measured: Measured, documents: Ints, sample: Sample, classes: tuple[str, ...], uses: pl.DataFrame
) -> list[Passage]:
    """Documents predicted correctly and wrongly with most confidence, and some that contain the words most used without support.

    Args:
        measured: of the model, with effects of all words.
        documents: document of each input, shape (W,).
        sample: the documents read.
        classes: names.
        uses: the words confirmed.
    """
    predicted, confidence = decide(measured.decisive), _confidence(measured.decisive)
    picked = most_confident(measured, documents, sample.labels)
    place = {word: s for s, word in enumerate(sample.words)}
    for token in uses.filter(pl.col("status") == str(Status.UNSUPPORTED))["token"][:3]:
        of_word = measured.windows[measured.types == place.get(token, -1)]
        of_word = of_word[np.isin(of_word, _whole(documents))]
        first = of_word[np.argsort(-confidence[of_word], kind="stable")][:1]
        picked |= {int(w): f"contains “{shown(token, 30)}”" for w in first}
    return [
        _passage(measured, w, why, sample, int(documents[w]), classes, int(predicted[w])) for w, why in picked.items()
    ]


def most_confident(measured: Measured, documents: Ints, labels: Ints) -> dict[int, str]:
    """Inputs, whole documents each, that are predicted wrongly and correctly with most confidence, and which of both."""
    f, whole = measured.decisive, _whole(documents)
    right, confidence = decide(f) == labels[documents], _confidence(f)
    picked: dict[int, str] = {}
    for why, kept in (("wrong and confident", ~right), ("correct and confident", right)):
        some = whole[kept[whole]]
        picked |= {int(w): why for w in some[np.argsort(-confidence[some], kind="stable")][:2]}
    return picked


def _confidence(f: Floats) -> Floats:
    """How far each answer is from another class's."""
    top = np.sort(f, axis=1)
    return np.asarray(np.abs(f[:, 0]) if f.shape[1] == 1 else top[:, -1] - top[:, -2])


def _whole(documents: Ints) -> Ints:
    """Inputs that hold all of their document."""
    return np.flatnonzero(np.bincount(documents)[documents] == 1) if len(documents) else documents


def _passage(
    measured: Measured, w: int, why: str, sample: Sample, k: int, classes: tuple[str, ...], predicted: int
) -> Passage:
    """One document; effects are towards the class predicted."""
    here = measured.windows == w
    sign = -1.0 if measured.answers.shape[1] == 1 and predicted == 0 else 1.0
    effects = np.nan_to_num(sign * measured.effect[here])
    effects = np.where(np.abs(effects) > 0.05 * np.abs(effects).max(initial=0.0), effects, 0.0)
    of_word = {sample.words[s]: float(x) for s, x in zip(measured.types[here], effects, strict=True)}
    text, at = str(sample.texts[k]), 0
    pieces: list[tuple[str, float]] = []
    for start, end, word in sample.splitter.spans(text):
        if start > _CHARACTERS:
            text = f"{text[:at]} […]"
            break
        pieces += [(text[at:start], 0.0), (text[start:end], of_word.get(word, 0.0))]
        at = end
    pieces.append((text[at:], 0.0))
    label = classes[int(sample.labels[k])]
    note = f"Predicted {shown(classes[predicted], 40)}: {why}."
    joined = [(piece.replace(SEPARATOR, " ⏐ "), effect) for piece, effect in pieces if piece]
    return Passage(tuple(joined), label, int(sample.corpus.rows[sample.read[k]]), note)
