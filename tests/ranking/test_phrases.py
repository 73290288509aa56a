"""Phrases of single models: found where a model has one, with its wins, and nowhere else."""

from __future__ import annotations

import numpy as np
import polars as pl
from arenas import OPTIONS, arena

from tokensieve.ranking.battles import read_battles
from tokensieve.ranking.phrases import model_phrases
from tokensieve.ranking.run import rank
from tokensieve.ranking.settings import RankSettings


def with_habit(frame: pl.DataFrame, model: str, phrase: str, rate: float) -> pl.DataFrame:
    """The same battles, where a model begins some answers with a phrase and then loses."""
    rng = np.random.default_rng(1)
    has_habit = pl.Series(rng.random(frame.height) < rate)
    for side, other in (("a", "b"), ("b", "a")):
        is_used = (pl.col(f"model_{side}") == model) & has_habit
        answer = pl.col(f"answer_{side}")
        frame = frame.with_columns(
            pl.when(is_used).then(phrase + " " + answer).otherwise(answer).alias(f"answer_{side}"),
            winner=pl.when(is_used).then(pl.lit(other)).otherwise("winner"),
        )
    return frame


def test_a_models_own_phrase_is_found_with_its_wins() -> None:
    frame = with_habit(arena(seed=3).frame, "m1", "As an AI language model,", 0.3)
    (found,) = model_phrases(read_battles(frame, RankSettings(**OPTIONS)))
    assert found.model == "m1" and "ai language" in found.phrase
    assert 0.2 < found.of_model.value < 0.4 and found.of_others == 0
    assert found.wins_with.value == 0 < found.wins_without.value


def test_a_phrase_that_all_models_use_is_nobodys() -> None:
    frame = arena(seed=4).frame.with_columns(
        answer_a="I think that " + pl.col("answer_a"), answer_b="I think that " + pl.col("answer_b")
    )
    assert model_phrases(read_battles(frame, RankSettings(**OPTIONS))) == []


def test_answers_without_common_words_have_no_phrases() -> None:
    frame = arena(seed=5).frame
    numbers = pl.Series([f"u{i}x" for i in range(frame.height)])
    frame = frame.with_columns(answer_a="a" + numbers, answer_b="b" + numbers)
    found = rank(frame, RankSettings(**OPTIONS))
    assert found.phrases == [] and found.n_candidates == 0
