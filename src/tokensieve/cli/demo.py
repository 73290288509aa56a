"""Audit built-in reviews with a planted shortcut, offline."""

from __future__ import annotations

from pathlib import Path

from tokensieve.auditing.settings import Settings
from tokensieve.cli.audit import run_audit
from tokensieve.cli.command import QUIET, command, out_option
from tokensieve.options import option
from tokensieve.progress import DRAWING


@command()
def _demo(
    seed: int = option(0, "Random seed.", low=0, high=2**32 - 1),
    ngrams: int = option(1, "Maximum n-gram length, in words.", low=1, high=5),
    out: Path = out_option("tokensieve-demo"),
    quiet: bool = QUIET,
) -> None:
    """Audit reviews whose truth is known, and compare."""
    DRAWING.start()
    from tokensieve.auditing.demo import demo_reviews
    from tokensieve.report.terminal import show

    reviews, settings = demo_reviews(seed=seed), Settings(seed=seed, ngrams=ngrams)
    source = (
        reviews.texts.to_list(),
        ["negative" if label == 0 else "positive" for label in reviews.labels],
    )
    result = run_audit(source, settings, out, quiet, name="2,000 generated reviews")
    if not quiet:
        show(result.report())
        show(reviews.found_by(result), out, result.seconds["total"])
