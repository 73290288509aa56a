"""Is the model as accurate as TF-IDF + logistic regression? On every set, for several splits.

    python benchmarks/accuracy.py run [--seeds 5] [--ngrams 1 2] [--only NAME …] [--documents 10000]
    python benchmarks/accuracy.py table

`run` draws a fifth of each set's documents as the test set, once for each seed, of at most so
many documents, and keeps what both models predict correctly. A run that was stopped goes on
where it was. The baseline is that of `tokensieve audit`: sublinear TF-IDF of the same words and
scikit-learn's logistic regression, its C chosen on held-out documents. `table` prints, for each
set, the mean difference over the seeds with Student's interval of the seeds, and how many of the
seeds' paired tests are significant (p < 0.05) for either model. The splits of one set share
documents, so that the intervals over seeds are too short rather than too long. Data: see
machine.py.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from machine import DATA, described, store
from tokensieve.auditing.settings import Settings
from tokensieve.read.reader import read_corpus
from tokensieve.task.refitted import compare_outcomes
from tokensieve.task.tasks import train_corpus

COLUMNS = {  # file → text and label; the files of untuned/ have columns of these names
    "banking": ("text", "label"),
    "emotion": ("text", "label"),
    "imdb_train": ("text", "label"),
    "sms": ("text", "label"),
    "snli_train": ("hypothesis", "label"),
    "tweets": ("text", "label"),
    "yelp": ("text", "stars"),
}
UNTUNED = "allocine_fr bbc emoji finphrase germeval hwu irony medabs mpqa subj".split()
SETS = [*COLUMNS, *UNTUNED]


def documents(name: str, n_most: int) -> tuple[list[str], list[str]]:
    """Texts and labels of a set, an even sample of large ones."""
    folder = DATA if name in COLUMNS else DATA / "untuned"
    text, label = COLUMNS.get(name, ("text", "label"))
    table = pl.read_parquet(folder / f"{name}.parquet")
    step = -(-table.height // n_most)
    table = table.gather_every(step)
    return table[text].to_list(), table[label].cast(pl.String).to_list()


def compared(name: str, ngrams: int, seed: int, n_most: int) -> dict[str, Any]:
    """Both models on one split, as `PairedDifference.to_dict` writes it: before is the baseline."""
    settings = Settings(ngrams=ngrams, seed=seed)
    learned = train_corpus(read_corpus(documents(name, n_most), settings), settings)
    task = learned.task
    baseline_is_right = task.baseline(learned.train, learned.test, seed)
    is_right = task.correct(learned.f, learned.test.counts)
    return compare_outcomes(task, learned.test, baseline_is_right, is_right).to_dict()


def run(options: argparse.Namespace) -> None:
    """Every set, seed by seed, so that a run that is stopped has some of everything."""
    path = Path(__file__).with_name("results") / f"{options.name}.json"
    figures: dict[str, Any] = {}
    if path.exists():
        figures = json.loads(path.read_text())["figures"]
    for seed in range(options.seeds):
        for ngrams in options.ngrams:
            for name in options.only:
                key = f"{name} {ngrams} {seed}"
                if key in figures:
                    continue
                figures[key] = compared(name, ngrams, seed, options.documents)
                store(options.name, figures, described("scikit-learn", "polars"))
                change = figures[key]["change"]
                print(f"{key}: {change:+.4f} (p {figures[key]['p_value']:.3f})", flush=True)


def table(options: argparse.Namespace) -> None:
    """The mean difference of each set."""
    path = Path(__file__).with_name("results") / f"{options.name}.json"
    figures = json.loads(path.read_text())["figures"]
    print(
        "| data | words | seeds | TF-IDF + LR | tokensieve | difference, points | better, worse |"
    )
    print("|---|---|---|---|---|---|---|")
    for ngrams in options.ngrams:
        for name in options.only:
            keys = [f"{name} {ngrams} {seed}" for seed in range(options.seeds)]
            runs = [figures[key] for key in keys if key in figures]
            if runs:
                print(row(name, ngrams, runs))


def row(name: str, ngrams: int, runs: list[dict[str, Any]]) -> str:
    """A row of the table."""
    changes = 100 * np.array([one["change"] for one in runs])
    before = 100 * np.mean([one["before"] for one in runs])
    after = 100 * np.mean([one["after"] for one in runs])
    interval = ""
    if len(runs) > 1:
        half = stdtrit(len(runs) - 1, 0.975) * changes.std(ddof=1) / np.sqrt(len(runs))
        interval = f" ({changes.mean() - half:+.1f} to {changes.mean() + half:+.1f})"
    significant = [one for one in runs if one["p_value"] < 0.05]
    n_better = sum(one["change"] > 0 for one in significant)
    n_worse = sum(one["change"] < 0 for one in significant)
    return (
        f"| {name} | 1…{ngrams} | {len(runs)} | {before:.1f} | {after:.1f} | "
        f"{changes.mean():+.1f}{interval} | {n_better}, {n_worse} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ngrams", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS, metavar="NAME")
    parser.add_argument("--documents", type=int, default=10_000, help="most of each set")
    parser.add_argument("--name", default="accuracy", help="of the file in results/")
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
