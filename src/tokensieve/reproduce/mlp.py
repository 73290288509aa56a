"""Table B: an MLP layer after the softmax."""

from __future__ import annotations

from tokensieve.reproduce import paper
from tokensieve.reproduce.joint import OURS, TRIED, fit_kind, read, said_accuracy, views
from tokensieve.reproduce.result import Bench, Check, Experiment, Finding
from tokensieve.reproduce.shape import counted, paper_check, shape_checks, spearman

THEIRS = spearman(paper.MLP["x"], paper.MLP["value"])
SETTINGS = {
    "quick": {
        "d": 64, "epochs": 15, "learning_rate": 0.01, "batch_size": 256, "test_documents": 1000,
        "imdb": {"types": paper.TYPES["imdb"], "documents": 8000},
    },
    "paper": {
        "d": 512, "epochs": 15, "learning_rate": 0.01, "batch_size": 256, "test_documents": 2000,
        "imdb": {"types": paper.TYPES["imdb"], "documents": 10_000},
    },
}  # fmt: skip


def run(bench: Bench) -> Finding:
    """Train on IMDB, set the bin means beside table B, and compare with the same model without the MLP layer."""
    _, without = fit_kind(bench, "one-layer", "imdb", bench.part(0, 0.4))
    split, found = fit_kind(bench, "mlp", "imdb", bench.part(0.4, 1))
    tokens, table = read(split, found)
    _, plain = read(split, without)
    straight = spearman(counted(plain)["x"], counted(plain)["value_mean"])
    value, score = shape_checks(table, "IMDB")
    checks = (
        score,
        paper_check(table, "score", paper.MLP, "correlation of E_sᵀp with table B"),
        Check(
            "|Spearman| of E_sᵀv, less that without the MLP layer",
            abs(value.value) - abs(straight),
            high=0.0,
            paper=THEIRS - 1,
        ),
    )
    ours = (
        f"correlation of E_sᵀp with table B {checks[1].value:.3f}, Spearman {score.value:.3f}; Spearman of E_sᵀv "
        f"{value.value:.3f} with the MLP layer (paper {THEIRS:.3f}) and {straight:.3f} without; {said_accuracy(found)}"
    )
    notes = (
        OURS,
        TRIED,
        "Tried on 3,000 reviews and 5,000 types as well: correlation of E_sᵀp with table B 0.898, Spearman 0.972.",
        "The paper does not name the data set of table B; ours is IMDB, one layer W of ReLU with d hidden units and "
        "random start. "
        "With an MLP between, nothing ties the sign of E_sᵀv to the label.",
        paper_check(table, "value", paper.MLP, "correlation of E_sᵀv with table B (not claimed as a shape)").name
        + f": {paper_check(table, 'value', paper.MLP, '').value:.3f}",
    )
    tables = {"bins": table, "bins-without": plain, "tokens": tokens, "paper": paper.MLP}
    return Finding(ours, checks, tables, views("mlp", "MLP layer, IMDB", paper="paper"), notes)


EXPERIMENT = Experiment(
    "mlp",
    "Table B, one MLP layer after the softmax: E_sᵀp is still V-shaped, E_sᵀv is less monotone",
    "bin means of E_sᵀp from 4.76 over 0.59 to 6.10, of E_sᵀv from 0.13 over −0.01 to 1.40",
    "correlation of our bin means of E_sᵀp with the paper's at least 0.9 and its Spearman at least 0.85; |Spearman| of "
    "E_sᵀv lower than without the MLP layer (the layer leaves its sign free)",
    SETTINGS,
    {"quick": 40, "paper": 600},
    run,
    needs=("imdb",),
    torch=True,
)
