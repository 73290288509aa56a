"""Figure 3: the one-layer model on IMDB and Yelp, embeddings and p trained together."""

from __future__ import annotations

from tokensieve.model.embeddings import Training
from tokensieve.progress import Progress
from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.result import SeedRun


def run(bench: Bench) -> SeedRun:
    """Train on each data set and measure both shapes."""

    def train(name: str, tell: Progress) -> tuple[Split, Training]:
        split = bench.load(name)
        return split, bench.fit(split, name, tell)

    return bench.shapes_on_both(train)
