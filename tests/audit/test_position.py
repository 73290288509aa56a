"""Judges of known truth: their ties and their preference for a position are recovered, and nothing
else is accused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from calls import fast_first
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.intervals import Share
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus


def judged(seed: int, bias: float, n: int = 240, ties: float = 0.1) -> Corpus:
    """Pairs of answers of equal quality; the judge takes the first with probability `bias`, or
    calls a tie."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(60)]
    answers = [" ".join(rng.choice(words, 12)) for _ in range(2 * n)]
    winner = np.where(rng.random(n) < ties, "tie", np.where(rng.random(n) < bias, "a", "b"))
    frame = pl.DataFrame(
        {
            "prompt": [f"q{i // 2}" for i in range(n)],
            "a": answers[:n],
            "b": answers[n:],
            "winner": winner.tolist(),
        }
    )
    return read_corpus(frame, pairs=("a", "b"), winner="winner")


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "least"), fast_first([(15, 13), (40, 34)]))
def test_the_interval_of_the_position_covers_the_truth(seeds: int, least: int) -> None:
    for bias in (0.5, 0.65):
        covered = 0
        for seed in range(seeds):
            pairs = judged(seed, bias).pairs
            assert pairs is not None and pairs.position is not None
            decided = pairs.position != 2
            share = Share.over(pairs.position[decided] == 0, pairs.units[decided])
            covered += share.low <= bias <= share.high
        assert covered >= least  # 95% are expected; of 40, 33 or fewer have a chance of 0.3%


def test_a_judge_of_positions_is_named_and_a_fair_one_is_not() -> None:
    kinds = {
        bias: [
            f.kind
            for f in audit(
                judged(3, bias), Settings(baseline=False, validation_share=0.0, thorough=False)
            ).findings
        ]
        for bias in (0.5, 0.75)
    }
    assert "position" in kinds[0.75] and "position" not in kinds[0.5]
    assert "contradiction" not in kinds[0.5], "ties are not contradictions"
