"""Audit built-in reviews with a planted shortcut, offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokensieve.cli.audit import Job, run_audit
from tokensieve.cli.command import command, out_option, quiet_option
from tokensieve.cli.options import MOST_SEED, NGRAMS, SEED, Tokens
from tokensieve.options import option


@command()
def demo(
    out: Path = out_option("tokensieve-demo"),
    seed: int = option(0, SEED, low=0, high=MOST_SEED),
    ngrams: int = option(1, NGRAMS, low=1, high=5),
    quiet: bool = quiet_option(),
) -> None:
    """Audit reviews whose truth is known, and compare."""
    from tokensieve.auditing.demo import demo_reviews
    from tokensieve.report.terminal_audit import show_truth
    from tokensieve.text.corpus import read_corpus

    reviews = demo_reviews(seed=seed)
    names = ["negative" if label == 0 else "positive" for label in reviews.labels]
    read: Callable[[], Any] = lambda: read_corpus((reviews.texts.to_list(), names))  # noqa: E731
    result = run_audit(Job(read, Tokens(ngrams=ngrams), out, quiet, {"seed": seed}, {}, name="2,000 generated reviews"))
    if not quiet:
        show_truth(result, reviews)
