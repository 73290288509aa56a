"""Table A: two layers with key-query matrices in both."""

from __future__ import annotations

from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.measures import PAPER, beside_the_paper, bins
from tokensieve.reproduce.result import SeedRun


def run(bench: Bench) -> SeedRun:
    """Train on IMDB, and set the bin means beside table A."""
    split, found = bench.fit_deep("key-query", "imdb", bench.tell)
    tokens, _ = bench.read(split, found)
    table = bins(tokens, theirs=PAPER["key-query"])
    score = beside_the_paper(table, "score", "pᵀW₂E_s with table A")
    value = beside_the_paper(table, "value", "E_sᵀv with table A")
    shape = bench.shapes(table, split, found, "IMDB")
    ours = (
        f"correlation with table A {score[0].value:.3f} (pᵀW₂E_s) and {value[0].value:.3f} (E_sᵀv); scales "
        f"{score[1].value:.2f} and {value[1].value:.2f} of the paper's; "
        f"Spearman {shape[0].value:.3f} (E_sᵀv) and {shape[1].value:.3f} (pᵀW₂E_s); {bench.accuracy_in_words(found)}"
    )
    return SeedRun(
        ours, (*shape, *score, *value), {"bins": table, "tokens": tokens}, tuple(bench.accuracies(found, "IMDB"))
    )
