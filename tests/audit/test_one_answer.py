"""A model that gives one answer to every prompt, and models that do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.read.reader import read_corpus

QUICK = Settings(baseline=False, validation_share=0.0, thorough=False)


def battles(n_repeated: int, n: int = 300) -> pl.DataFrame:
    """Pairs of different answers, of which some on one side are the same text, which wins 3 of 4."""
    rng = np.random.default_rng(1)
    words = [f"word{i}" for i in range(60)]
    answers = [" ".join(rng.choice(words, 12)) for _ in range(2 * n)]
    answers[:n_repeated] = ["Output: the best of both, as asked."] * n_repeated
    winners = np.where(np.arange(n) % 4 < 3, "a", "b").tolist()
    return pl.DataFrame(
        {
            "prompt": [f"Question {i}?" for i in range(n)],
            "a": answers[:n],
            "b": answers[n:],
            "winner": winners,
        }
    )


def test_an_answer_to_most_prompts_is_the_first_finding() -> None:
    corpus = read_corpus(battles(240), pairs=("a", "b"), winner="winner", by="prompt")
    found = audit(corpus, QUICK).findings[0]
    assert found.kind == "one_answer" and found.level == "high"
    assert found.evidence["documents"].value == pytest.approx(0.8, abs=0.06)
    assert found.evidence["decides"].value == pytest.approx(0.75, abs=0.04)
    example = found.examples[0]
    assert "Output: the best" in example.before + example.token + example.after


@pytest.mark.parametrize(("n_repeated", "by"), [(0, "prompt"), (6, "prompt"), (240, None)])
def test_no_answer_is_accused_of_few_prompts_or_unknown_ones(
    n_repeated: int, by: str | None
) -> None:
    frame = battles(n_repeated)
    frame = frame if by else frame.drop("prompt")
    corpus = read_corpus(frame, pairs=("a", "b"), winner="winner", by=by)
    assert "one_answer" not in [finding.kind for finding in audit(corpus, QUICK).findings]
