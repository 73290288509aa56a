"""The documents that the page shows, with the effect of each of their words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.subjects.documents import Sample
from tokensieve.diagnose.subjects.passages import SEPARATOR
from tokensieve.escape import for_display
from tokensieve.model.attention import decide
from tokensieve.report.blocks import Passage

N_CONFIDENT = 2  # documents predicted wrongly, and correctly, with most confidence
MAX_CHARACTERS = 1_600  # of a document; one longer is cut
MIN_COLOURED = 0.05  # of the largest effect in the document; smaller ones would be a tint of noise
DRAWS = 8  # of the integrated gradients: these documents are read one by one


def shown_documents(measured: Measured, sample: Sample, words: Sequence[str]) -> list[Passage]:
    """Documents with the effect of each of their words: those of `_chosen`."""
    reasons = _chosen(measured, sample, words)
    inputs = np.array(list(reasons), dtype=np.int64)
    if measured.method == "integrated gradients" and len(inputs):
        measured.subject.integrate(inputs, measured.heads[inputs], measured.effect, DRAWS)
    return [_passage(measured, sample, w, reason) for w, reason in reasons.items()]


def _chosen(measured: Measured, sample: Sample, words: Sequence[str]) -> dict[int, str]:
    """Whole documents predicted with most confidence, then one with each word; and why."""
    is_right = decide(measured.decisive) == sample.labels[measured.subject.documents]
    wrong = np.flatnonzero(~is_right)
    right = np.flatnonzero(is_right)
    reasons = dict.fromkeys(_most_confident(measured, wrong, N_CONFIDENT), "wrong and confident")
    reasons |= dict.fromkeys(_most_confident(measured, right, N_CONFIDENT), "correct and confident")
    for word in words:
        containing = np.unique(measured.windows[measured.types == sample.words.index(word)])
        reason = f"contains “{for_display(word, 30)}”"
        reasons |= dict.fromkeys(_most_confident(measured, containing, 1), reason)
    return {int(w): reason for w, reason in reasons.items()}


def _most_confident(measured: Measured, inputs: Ints, n: int) -> Ints:
    """Of some inputs (ascending) that are whole documents, those predicted most confidently."""
    documents = measured.subject.documents
    is_whole = np.bincount(documents)[documents[inputs]] == 1
    whole = inputs[is_whole]
    confidence = _confidence(measured.decisive[whole])
    by_confidence = np.argsort(-confidence, kind="stable")
    most_confident: Ints = whole[by_confidence]
    return most_confident[:n]


def _confidence(decisive: Floats) -> Floats:
    """How far the class predicted is ahead of the next, for each input."""
    if decisive.shape[1] == 1:
        return np.abs(decisive[:, 0])
    ranked = np.sort(decisive, axis=1)
    return np.asarray(ranked[:, -1] - ranked[:, -2])


def _passage(measured: Measured, sample: Sample, window: int, reason: str) -> Passage:
    """One document for people to read."""
    document = int(measured.subject.documents[window])
    predicted = int(decide(measured.decisive[[window]])[0])
    effect_of = _effects_towards(measured, sample, window, predicted)
    visible = _coloured(str(sample.texts[document]), sample, effect_of)
    classes = sample.corpus.classes
    note = f"predicted {for_display(classes[predicted], 40)}: {reason}."
    row = int(sample.corpus.rows[sample.read[document]])
    return Passage(visible, classes[int(sample.labels[document])], row, note)


def _effects_towards(
    measured: Measured, sample: Sample, window: int, predicted: int
) -> dict[str, float]:
    """The effect of each word of an input towards the class predicted."""
    is_here = measured.windows == window
    effects = _visible_effects(measured.effect[is_here])
    if measured.answers.shape[1] == 1 and predicted == 0:
        effects = -effects  # a single answer is the second class's
    types = measured.types[is_here]
    return {sample.words[s]: float(x) for s, x in zip(types, effects, strict=True)}


def _coloured(
    text: str, sample: Sample, effect_of: dict[str, float]
) -> tuple[tuple[str, float], ...]:
    """The parts of a text, each with its effect."""
    end_of_last = 0
    pieces: list[tuple[str, float]] = []
    for start, end, word in sample.splitter.spans(text):
        if start > MAX_CHARACTERS:
            text = f"{text[:end_of_last]} […]"
            break
        pieces.append((text[end_of_last:start], 0.0))
        pieces.append((text[start:end], effect_of.get(word, 0.0)))
        end_of_last = end
    pieces.append((text[end_of_last:], 0.0))
    return tuple((piece.replace(SEPARATOR, " ⏐ "), effect) for piece, effect in pieces if piece)


def _visible_effects(effects: Floats) -> Floats:
    """Effects without the smallest."""
    effects = np.nan_to_num(effects)
    largest = np.abs(effects).max(initial=0.0)
    return np.where(np.abs(effects) > MIN_COLOURED * largest, effects, 0.0)
