"""Figure 1: two layers of attention, the first without weights, on IMDB and Yelp."""

from __future__ import annotations

from functools import partial

from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.result import SeedRun


def run(bench: Bench) -> SeedRun:
    """Train on each data set and measure both shapes."""
    return bench.shapes_on_both(partial(bench.fit_deep, "two-layer"))
