"""Phrases that one model uses and the others hardly do, such as "as an ai", and how often the model
wins with them.

By such phrases a judge can tell whose an answer is, and a reward model trained on these battles
learns them. A phrase is two to four words. The fraction of the model's answers that contain it is
compared with the fraction of the other models' answers (two-proportion z-test; Bonferroni over all
models and phrases).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import ndtri  # scipy.stats has the same, and takes 0.7 s to import

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.ranking.battles import Battles
from tokensieve.text.formatting import is_formatting
from tokensieve.text.vocabulary import count_texts

MAX_ANSWERS = 6_000  # of all models together: a second or two of work
MAX_CHARACTERS = 400  # of the beginning of an answer, where phrases of habit stand
LONGEST = 4  # words
MIN_ANSWERS = 20  # of a model; of fewer, no habit can be told
MIN_FRACTION = 0.05  # of the model's answers: rarer phrases move no rank
MIN_RATIO = 4.0  # times as frequent as in the answers of the others: then it is the model's own
MIN_TEXTS = 5  # that contain a phrase
MAX_PHRASES = 2  # of a model


@dataclass(frozen=True)
class ModelPhrase:
    """A phrase that gives a model away.

    Attributes:
        model: who uses it.
        phrase: in lower case.
        of_model: the fraction of the model's answers that contain it.
        of_others: the same of the other models' answers.
        wins_with: the fraction of its battles that the model wins with the phrase.
        wins_without: the same with answers that do not contain it.
    """

    model: str
    phrase: str
    of_model: Share
    of_others: float
    wins_with: Share
    wins_without: Share


def model_phrases(battles: Battles) -> list[ModelPhrase]:
    """The most telling phrases of each model, by the model's place in the alphabet."""
    answers = _answers(battles)
    if answers.group_by("model").len().filter(pl.col("len") >= MIN_ANSWERS).is_empty():
        return []
    beginnings = battles.texts.gather(answers["text"]).str.head(MAX_CHARACTERS)
    try:
        counted = count_texts(beginnings, ngrams=LONGEST, min_documents=MIN_TEXTS)
    except InputError:  # no word is in so many answers
        return []
    names = [str(token) for token in counted.vocabulary.tokens]
    is_phrase = [" " in name and not is_formatting(name) for name in names]
    types = np.flatnonzero(is_phrase)
    presence = sp.csc_array(counted.matrix[:, types], dtype=np.float64)
    presence.data[:] = 1.0
    phrases = [names[t] for t in types]
    scores = _scores(presence, answers["model"].to_numpy(), len(battles.models))
    found = []
    for model in range(len(battles.models)):
        for place in _most_telling(scores.z[model], phrases):
            has_phrase = presence[:, [place]].toarray()[:, 0] > 0
            of_others = float(scores.of_others[model, place])
            found.append(_measured(battles, model, phrases[place], answers, has_phrase, of_others))
    return found


def _answers(battles: Battles) -> pl.DataFrame:
    """Different answers of each model (model, text), as many of each as of the others."""
    sides = pl.concat(
        [
            pl.DataFrame({"model": battles.first, "text": battles.first_text}),
            pl.DataFrame({"model": battles.second, "text": battles.second_text}),
        ]
    )
    distinct = sides.unique(maintain_order=True)
    most = max(MAX_ANSWERS // len(battles.models), MIN_ANSWERS)
    return distinct.filter(pl.int_range(pl.len()).over("model") < most)


@dataclass(frozen=True, eq=False)
class _Scores:
    """z of each model and phrase (0 where it is no habit of the model), and the fraction of the
    others' answers, shape (M, P)."""

    z: Floats
    of_others: Floats


def _scores(presence: sp.csc_array, model: Ints, n_models: int) -> _Scores:
    n = len(model)
    indicator = sp.csr_array((np.ones(n), (model, np.arange(n))), shape=(n_models, n))
    with_phrase = (indicator @ presence).toarray()
    n_own = np.maximum(np.bincount(model, minlength=n_models)[:, None], 1.0)
    n_others = np.maximum(n - n_own, 1.0)
    total = with_phrase.sum(axis=0)
    of_model = with_phrase / n_own
    of_others = (total - with_phrase) / n_others
    variance = total / n * (1 - total / n) * (1 / n_own + 1 / n_others)
    z = (of_model - of_others) / np.sqrt(np.maximum(variance, 1 / n**2))
    is_own = z >= -ndtri(LEVEL / max(z.size, 1))
    is_own &= (n_own >= MIN_ANSWERS) & (of_model >= MIN_FRACTION)
    is_own &= of_model >= MIN_RATIO * of_others
    return _Scores(np.where(is_own, z, 0.0), of_others)


def _most_telling(z: Floats, phrases: list[str]) -> list[int]:
    """The phrases with the largest z; of phrases that share words, the longest as strong one."""
    order = sorted(
        np.flatnonzero(z > 0).tolist(), key=lambda t: (-round(float(z[t]), 6), -len(phrases[t]))
    )
    chosen: list[int] = []
    words: set[str] = set()
    for place in order:
        own = set(phrases[place].split(" "))
        if not own & words:
            chosen.append(place)
            words |= own
        if len(chosen) == MAX_PHRASES:
            break
    return chosen


def _measured(
    battles: Battles,
    model: int,
    phrase: str,
    answers: pl.DataFrame,
    has_phrase: Bools,
    of_others: float,
) -> ModelPhrase:
    """A phrase with the battles that the model wins with it and without it."""
    own = answers.with_columns(has_phrase=pl.Series(has_phrase)).filter(model=model)
    is_first = battles.first == model
    rows = np.flatnonzero(is_first | (battles.second == model))
    text = np.where(is_first, battles.first_text, battles.second_text)[rows]
    wins = np.where(is_first, battles.outcome, 1 - battles.outcome)[rows]

    def wins_with(texts: pl.Series) -> Share:
        is_used = np.isin(text, texts.to_numpy())
        return Share.over(wins[is_used], battles.prompt[rows][is_used])

    return ModelPhrase(
        model=battles.models[model],
        phrase=phrase,
        of_model=Share.count(int(own["has_phrase"].sum()), own.height),
        of_others=of_others,
        wins_with=wins_with(own.filter("has_phrase")["text"]),
        wins_without=wins_with(own.filter(~pl.col("has_phrase"))["text"]),
    )
