"""How many samples of real text `verify` decides, on seeds that nobody tuned on; results as JSON
with version, machine and command.

    python benchmarks/limits.py imdb --documents 600 --seeds 100-119 --out limits-imdb-600.json

Every sample is drawn by `sample(n, shuffle=True, seed=…)` from the file, words in at least 20
documents (hypotheses of SNLI: 5), d = 512, random start of seed 0. The prediction begins about four
units of log t before the end of the computed flow and is compared with it: the distance is that of
the computed flow to the predicted path, relative to ‖p‖. Times are CPU seconds of flow and limit,
and so is the limit on them: wall time would measure what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
from safetensors import safe_open

from machine import DATA, described
from tokensieve import __version__
from tokensieve.read.corpus import Corpus
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import count_corpus
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import verify

# File, text, label, and the labels of y = −1 and y = +1; a word must occur in so many documents.
SOURCES = {
    "imdb": ("imdb_train.parquet", "text", "label", (["negative"], ["positive"]), 20),
    "yelp": ("yelp.parquet", "text", "stars", (["1.0", "2.0"], ["4.0", "5.0"]), 20),
    "snli": ("snli_train.parquet", "hypothesis", "label", (["contradiction"], ["entailment"]), 5),
}


def sample(source: str, documents: int, seed: int, folder: Path) -> Counts:
    """A seeded sample as counts."""
    file, text, label, (negative, positive), least = SOURCES[source]
    frame = pl.read_parquet(folder / file).with_columns(pl.col(label).cast(pl.String))
    frame = frame.filter(pl.col(label).is_in([*negative, *positive])).sample(
        documents, shuffle=True, seed=seed
    )
    labels = frame[label].is_in(positive).to_numpy().astype(np.int64)
    return count_corpus(
        Corpus.of(frame[text], labels, ("negative", "positive")), min_documents=least
    ).counts


def run(
    source: str, documents: int, seed: int, seconds: float, folder: Path, states: Path | None
) -> dict[str, object]:
    """One sample as a row; its flow goes on from where an earlier, interrupted run left it in the
    folder of states."""
    counts, earlier, state = sample(source, documents, seed, folder), 0.0, None
    if states is not None:
        state = states / f"{source}-{documents}-{seed}.safetensors"
        if state.exists():
            with safe_open(state, "numpy") as kept:
                earlier = float(json.loads(kept.metadata()["state"])["seconds"])
    started = time.process_time()
    with mock.patch("time.monotonic", time.process_time):
        left = max(seconds - earlier, 1.0)
        found = verify(counts, VerifySettings(d=512, max_seconds=left, resume=state))
    spent = earlier + time.process_time() - started
    figures = found.limit.to_dict()
    keep = (
        "verdict",
        "reason",
        "dimension_v",
        "tied_documents",
        "tight_pairs",
        "pulling_pairs",
        "is_max_margin",
    )
    keep += (
        "prediction_error",
        "compared_from",
        "compared_to",
        "faces",
        "duality_gap",
        "kkt_residual",
    )
    keep += ("curvature_f1", "curvature_f3", "grade")
    return (
        {"source": source, "documents": documents, "seed": seed, "types": counts.n_types}
        | {name: figures.get(name) for name in keep}
        | {"processor_seconds": round(spent, 1), "steps": len(found.flow.log_time) - 1}
        | {"log_time": float(found.flow.log_time[-1]), "proof": figures["proof"]}
    )


def main() -> None:
    """Run the seeds one after the other; the file is written after each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--seeds", default="100-119")
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU seconds of one sample")
    parser.add_argument(
        "--states", type=Path, help="folder that keeps the flows, to go on after an interruption"
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    rows: list[dict[str, object]] = []
    for seed in range(first, last + 1):
        rows.append(
            run(
                options.source,
                options.documents,
                seed,
                options.seconds,
                options.data,
                options.states,
            )
        )
        times = [float(str(row["processor_seconds"])) for row in rows]
        decided = [row["verdict"] != "not settled" for row in rows]
        in_time = [one and spent <= 120 for one, spent in zip(decided, times, strict=True)]
        whole = {
            "version": __version__,
            "machine": described("scipy"),
            "command": " ".join(sys.argv),
            "decided": sum(decided),
            "decided_in_120_processor_seconds": sum(in_time),
            "samples": len(rows),
            "median_processor_seconds": float(np.median(times)) if times else math.nan,
            "rows": rows,
        }
        options.out.write_text(json.dumps(whole, indent=1, ensure_ascii=False), encoding="utf-8")
        print(
            {name: rows[-1][name] for name in ("seed", "verdict", "reason", "processor_seconds")},
            flush=True,
        )


if __name__ == "__main__":
    main()
