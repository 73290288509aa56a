"""Simulated arenas: battles with known strengths, and frames as people have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit

from tokensieve.arrays import Floats
from tokensieve.ranking.battles import Battles

LENGTH_EFFECT = 0.8  # log-odds of an answer of twice the length


@dataclass(frozen=True)
class Arena:
    """A frame of battles and the strengths that they were drawn with."""

    frame: pl.DataFrame
    strengths: dict[str, float]


def arena(
    n_prompts: int = 150,
    n_models: int = 5,
    battles_per_prompt: int = 6,
    seed: int = 0,
    position: float = 0.0,
    length_effect: float = LENGTH_EFFECT,
    prompt_spread: float = 0.0,
) -> Arena:
    """Battles whose winner follows the model that `rank` fits.

    Longer answers win more, and model k writes about 20 · 1.3^k words. With `prompt_spread` the
    battles of a prompt share a preference for one side of the models' order, so that they are not
    independent.
    """
    rng = np.random.default_rng(seed)
    strengths = np.linspace(1.0, -1.0, n_models)
    rows = []
    for prompt in range(n_prompts):
        shared = prompt_spread * rng.standard_normal(n_models)
        for _ in range(battles_per_prompt):
            a, b = rng.choice(n_models, 2, replace=False)
            words = [max(3, int(20 * 1.3**k * np.exp(0.4 * rng.standard_normal()))) for k in (a, b)]
            texts = [" ".join(f"w{i}" for i in rng.integers(0, 90, n)) for n in words]
            sizes = [len(text) for text in texts]
            longer = 3 * (sizes[0] - sizes[1]) / sum(sizes)
            f = strengths[a] - strengths[b] + shared[a] - shared[b]
            f += length_effect * longer + position
            wins = rng.random() < expit(f)
            rows.append((f"p{prompt}", f"m{a}", f"m{b}", *texts, "a" if wins else "b"))
    columns = ["prompt", "model_a", "model_b", "answer_a", "answer_b", "winner"]
    names = {f"m{k}": float(strengths[k]) for k in range(n_models)}
    return Arena(pl.DataFrame(rows, schema=columns, orient="row"), names)


OPTIONS = {
    "pairs": ("answer_a", "answer_b"),
    "models": ("model_a", "model_b"),
    "winner": "winner",
    "by": ("prompt",),
}


def battles_of(
    first: list[int],
    second: list[int],
    outcome: list[float],
    prompt: list[int] | None = None,
    weight: Floats | None = None,
) -> Battles:
    """Battles without texts."""
    n = len(first)
    n_models = max(*first, *second) + 1
    zeros = np.zeros(n, np.int64)
    return Battles(
        source="test",
        models=tuple(f"m{k}" for k in range(n_models)),
        first=np.array(first),
        second=np.array(second),
        texts=pl.Series(["x"]),
        first_text=zeros,
        second_text=zeros,
        outcome=np.array(outcome, dtype=float),
        weight=np.ones(n) if weight is None else weight,
        prompt=np.arange(n) if prompt is None else np.array(prompt),
        has_prompts=prompt is not None,
        judge=zeros[:0],
    )
