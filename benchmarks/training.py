"""Joint training of E, p and v: seconds per step and memory, beside the straightforward PyTorch model.

    python benchmarks/training.py [--d 2048] [--types 7766] [--steps 10] [--documents 500] [--dtype float32] [--data FOLDER]

Ours takes full-batch Adam steps on the whole IMDB training set. The PyTorch model embeds every token (n × T × d numbers), lets
autograd find the gradient and takes Adam steps on the first `--documents` reviews of a random order, padded to the longest; it is
measured in a process of its own, so that each has its own peak of memory. Both start from the same E, p, v and take the same loss;
the last lines are ratios per document. Reads imdb_train.parquet and imdb_test.parquet from --data
(default: see machine.py).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from machine import DATA, described
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import TrainingSettings, initialise, train_embeddings
from tokensieve.theory.experiments.bench import Data


def counts_of(options: argparse.Namespace) -> Counts:
    """All 25,000 training reviews (the split keeps a tenth for validation; here both parts are joined)."""
    import scipy.sparse as sp

    train, validation, _ = Data(options.data).imdb(options.types)
    matrix = sp.csr_array(sp.vstack([train.matrix, validation.matrix]))
    return Counts(
        matrix, np.concatenate([train.labels, validation.labels]), train.classes, train.tokens
    )


def ours(options: argparse.Namespace, answer: Any) -> None:
    """Seconds per full-batch step after a warm-up, and the peak of memory less what the data take."""
    counts = counts_of(options)
    start = initialise(counts.n_types, options.d)
    how = TrainingSettings(dtype=options.dtype, steps=1, record_every=10**6)
    train_embeddings(counts, start, how)  # compiles
    before = peak()
    seconds = []
    for steps in (1, 1 + options.steps):
        begun = time.perf_counter()
        run = train_embeddings(
            counts, start, TrainingSettings(dtype=options.dtype, steps=steps, record_every=10**6)
        )
        seconds.append(time.perf_counter() - begun)
    answer.put(
        {"documents": counts.n_documents, "types": counts.n_types, "nonzeros": counts.matrix.nnz,
         "seconds": (seconds[1] - seconds[0]) / options.steps, "peak": peak(), "data": before,
         "loss": run.trajectory["train_loss"][-1]}
    )  # fmt: skip


def plain(options: argparse.Namespace, answer: Any) -> None:
    """The same for every token embedded, softmax over tokens, autograd, torch.optim.Adam."""
    import torch

    torch.set_num_threads(options.threads)
    counts = counts_of(options).rows(np.arange(options.documents))
    m = counts.matrix
    tokens = [
        np.repeat(m.indices[a:b], m.data[a:b].astype(int))
        for a, b in zip(m.indptr, m.indptr[1:], strict=False)
    ]
    length = max(map(len, tokens))
    ids, there = (
        torch.zeros((len(tokens), length), dtype=torch.long),
        torch.zeros((len(tokens), length), dtype=torch.bool),
    )
    for k, row in enumerate(tokens):
        ids[k, : len(row)], there[k, : len(row)] = torch.from_numpy(row.astype(np.int64)), True
    E, p, v = (
        torch.tensor(x, dtype=getattr(torch, options.dtype))
        for x in initialise(counts.n_types, options.d)
    )
    E.requires_grad_()
    p.requires_grad_()
    y = torch.tensor(counts.signs, dtype=E.dtype)
    optimizer = torch.optim.Adam([E, p], lr=0.01)
    seconds, before = [], peak()
    for _ in range(options.steps + 1):
        begun = time.perf_counter()
        optimizer.zero_grad()
        X = torch.nn.functional.embedding(ids, E)  # n × T × d
        q = torch.softmax((X @ p).masked_fill(~there, -torch.inf), dim=1)
        loss = torch.nn.functional.softplus(-y * (torch.einsum("nt,ntd->nd", q, X) @ v)).mean()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begun)
    found = {
        "documents": len(tokens),
        "length": length,
        "seconds": float(np.mean(seconds[1:])),
        "peak": peak(),
        "data": before,
    }
    answer.put(found | {"loss": loss.item()})


def peak() -> float:
    """Largest resident memory of this process so far, GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def apart(what: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Run in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=what, args=(options, answer))
    process.start()
    found: dict[str, Any] = answer.get()
    process.join()
    return found


def main() -> None:
    """Measure both and print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--d", type=int, default=2048)
    parser.add_argument("--types", type=int, default=7766)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--documents", type=int, default=500, help="of the PyTorch model")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    print(described("torch") + "\n")
    a = apart(ours, options)
    print(f"d = {options.d}, |S| = {a['types']:,}, {options.dtype}, {options.threads} threads")
    print(
        f"tokensieve  {a['documents']:,} documents: {a['seconds']:.3f} s/step, peak {a['peak']:.2f} GB"
    )
    bytes_moved = (
        8 * a["types"] * options.d * np.dtype(options.dtype).itemsize
    )  # E read twice; E, m, r read and written
    print(
        f"            embeddings and moments move {bytes_moved / 1e9:.2f} GB a step; {a['nonzeros']:,} stored counts"
    )
    b = apart(plain, options)
    size = f"{b['documents']:,} documents of up to {b['length']:,} tokens"
    print(f"PyTorch     {size}: {b['seconds']:.3f} s/step, peak {b['peak']:.2f} GB")
    speed = (b["seconds"] / b["documents"]) / (a["seconds"] / a["documents"])
    memory = ((b["peak"] - b["data"]) / b["documents"]) * a["documents"]
    print(f"per document a step is {speed:,.0f} times faster; PyTorch would need about {memory:,.0f} GB for all documents, "
          f"{memory / a['peak']:,.0f} times our peak")  # fmt: skip


if __name__ == "__main__":
    main()
