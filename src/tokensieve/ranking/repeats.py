"""Models that give one answer to many prompts: an attack on a judge, or a fault of the data."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.intervals import Share
from tokensieve.ranking.battles import Battles

MIN_PROMPTS = 10  # with the same answer; fewer may have a common short answer
MIN_FRACTION = 0.1  # of the model's prompts


@dataclass(frozen=True)
class RepeatedAnswer:
    """One answer of a model to many prompts.

    Attributes:
        model: who gives it.
        text: the answer.
        n_prompts: the prompts that it answers.
        n_prompts_of_model: all prompts of the model.
        wins: the fraction of its battles that this answer wins, with an interval over prompts.
    """

    model: str
    text: str
    n_prompts: int
    n_prompts_of_model: int
    wins: Share


def repeated_answers(battles: Battles) -> list[RepeatedAnswer]:
    """The most frequent answer of each model that gives it to many prompts, most prompts first."""
    sides = pl.concat(
        [
            _side(battles, battles.first, battles.first_text, battles.outcome),
            _side(battles, battles.second, battles.second_text, 1 - battles.outcome),
        ]
    )
    n_prompts = pl.col("prompt").n_unique()
    prompts_of_model = sides.group_by("model").agg(n_of_model=n_prompts)
    most_frequent = (
        sides.group_by("model", "text")
        .agg(n=n_prompts)
        .join(prompts_of_model, on="model")
        .filter(pl.col("n") >= MIN_PROMPTS, pl.col("n") >= MIN_FRACTION * pl.col("n_of_model"))
        .sort("n", "model", "text", descending=[True, False, False])
        .unique("model", keep="first", maintain_order=True)
    )
    repeated = []
    for row in most_frequent.iter_rows(named=True):
        answers = sides.filter(model=row["model"], text=row["text"])
        wins = Share.over(answers["wins"].to_numpy(), answers["prompt"].to_numpy())
        name = battles.models[row["model"]]
        text = str(battles.texts[row["text"]])
        repeated.append(RepeatedAnswer(name, text, row["n"], row["n_of_model"], wins))
    return repeated


def _side(battles: Battles, model: Ints, text: Ints, wins: Floats) -> pl.DataFrame:
    columns = {"model": model, "text": text, "prompt": battles.prompt, "wins": wins}
    return pl.DataFrame(columns)
