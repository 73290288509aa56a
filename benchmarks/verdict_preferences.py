"""What judges reward: audits of pairs and ranks of models whose winners were drawn at random."""

from __future__ import annotations

import numpy as np
import polars as pl

from machine import DATA
from tokensieve.auditing.demo import demo_pairs
from tokensieve.auditing.run import audit
from tokensieve.ranking.report import rewarded_style
from tokensieve.ranking.run import rank
from verdict_data import Documents, Outcome, Verdict, quick

N_GENERATED_PAIRS = 200
N_PROMPTS = 40  # of real pairs in an audit, about ten each
N_RANKED_PROMPTS = 100  # of real battles that are ranked
OF_REWARDS = ("shortcut", "possible_shortcut", "alone", "position")


def rewarded_in_random_preferences(documents: Documents, seed: int) -> Outcome:
    """Generated pairs of answers whose winner is drawn at random: nothing is rewarded."""
    frame = _random_winners(demo_pairs(N_GENERATED_PAIRS, seed), seed)
    return _rewards(frame, seed)


def rewarded_in_random_real_preferences(documents: Documents, seed: int) -> Outcome:
    """The same with answers of real models."""
    frame = _random_winners(_real_pairs(N_PROMPTS, seed), seed)
    return _rewards(frame.select("prompt", "chosen", "rejected"), seed)


def _rewards(frame: pl.DataFrame, seed: int) -> Outcome:
    """Whether an audit of pairs says that something is rewarded."""
    found = audit(frame, quick(seed), pairs=("chosen", "rejected"), by="prompt")
    return Outcome(1, int(any(one.kind in OF_REWARDS for one in found.findings)))


def style_rewarded_by_random_judge(documents: Documents, seed: int) -> Outcome:
    """Battles of real models whose winner is drawn at random: no style wins."""
    frame = _random_winners(_real_pairs(N_RANKED_PROMPTS, seed), seed)
    ranking = rank(
        frame,
        pairs=("chosen", "rejected"),
        models=("chosen_model", "rejected_model"),
        by=("prompt",),
        seed=seed,
    )
    return Outcome(1, int(bool(rewarded_style(ranking))))


def _real_pairs(n_prompts: int, seed: int) -> pl.DataFrame:
    frame = pl.read_parquet(DATA / "preferences.parquet")
    prompts = frame["prompt"].unique().sort().sample(n_prompts, seed=seed)
    return frame.filter(pl.col("prompt").is_in(prompts.to_list())).drop("split")


def _random_winners(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Pairs in which the rejected answer takes the chosen one's place half of the time."""
    is_swapped = pl.Series(np.random.default_rng(seed).random(frame.height) < 0.5)
    swapped = {
        first: pl.when(is_swapped).then(second).otherwise(first)
        for chosen, rejected in (("chosen", "rejected"), ("chosen_model", "rejected_model"))
        if chosen in frame.columns
        for first, second in ((chosen, rejected), (rejected, chosen))
    }
    return frame.with_columns(**swapped)


VERDICTS = (
    Verdict(
        "An answer … wins … of its pairs (any finding of an audit)",
        "winners are drawn at random (generated pairs)",
        "audit",
        rewarded_in_random_preferences,
        on_real_sets=False,
        n_generated=76,
    ),
    Verdict(
        "An answer … wins … of its pairs (any finding of an audit), on answers of real models",
        "winners are drawn at random",
        "audit",
        rewarded_in_random_real_preferences,
        on_real_sets=False,
        n_generated=20,
    ),
    Verdict(
        "`rank`: between equally strong models, an answer … wins … (any feature of style)",
        "winners are drawn at random (answers of real models)",
        "ranking",
        style_rewarded_by_random_judge,
        on_real_sets=False,
        n_generated=76,
    ),
)
