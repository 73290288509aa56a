"""The exact full-batch gradient in E, p and v: ours and every way to write it in PyTorch, time and
memory.

    python benchmarks/gradient.py [--d 128 512 2048] [--documents 2000] [--runs 7] [--limit 16]
    [--out FILE]

The loss of the model on IMDB reviews, float64, from embeddings E (|S|, d) and vectors p, v to loss,
∂L/∂E, ∂L/∂p and ∂L/∂v. Each way runs in a process of its own on all cores and stays there; the ways
take turns, and medians (ranges) are shown. Memory is the peak of that process less what it held
with the reviews as ids, E and everything imported. A way whose largest tensors would pass `--limit`
GB is measured on the first of the reviews only, and its row says so.

    embed every token, at once   x = E[ids], padded to the longest review: n × T × d numbers
    embed every token, in parts  the same, 32 reviews at a time, gradients added up
    EmbeddingBag                 Σ q E[ids] by nn.functional.embedding_bag with q as weights of the
                                 tokens
    project, then gather         (E p)[ids] and (E v)[ids], sums over reviews by index_add
    sparse                       our own count form in PyTorch: one entry per review and type, E [p
                                 v] in one product
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from machine import DATA, described, forget_peak, memory

COPIES = 3.5  # of the largest tensor, that the peak of autograd holds
Way = Callable[[], tuple[Any, Any, Any]]


class Problem:
    """Reviews as token ids and as counts, and a point (E, p, v)."""

    def __init__(self, documents: int, d: int) -> None:
        from tokensieve.read.corpus import Corpus
        from tokensieve.text.vocabulary import count_corpus, tokenize
        from tokensieve.theory.embeddings import Start

        frame = pl.read_parquet(DATA / "imdb_train.parquet").sample(documents, seed=0)
        labels = (frame["label"] == "positive").to_numpy().astype(np.int64)
        counted = count_corpus(Corpus.of(frame["text"], labels, ("-1", "+1")))
        self.counts, stream = counted.counts, tokenize(frame["text"], counted.vocabulary.tokenizer)
        self.ids = counted.vocabulary.positions(stream)[:, 0].astype(np.int64)
        self.starts = stream.starts
        self.document = np.repeat(np.arange(stream.n_documents), np.diff(stream.starts))
        rng = np.random.default_rng(0)
        E, p, v = (
            rng.standard_normal(shape) / np.sqrt(d) for shape in ((self.counts.n_types, d), d, d)
        )
        self.at = Start(E, p, v)

    @property
    def longest(self) -> int:
        return int(np.diff(self.starts).max())


def ours(problem: Problem) -> Way:
    from tokensieve.theory.embeddings import embedding_gradient

    counts, at, written = problem.counts, problem.at, np.zeros_like(problem.at.E)
    return lambda: tuple(embedding_gradient(counts, at, written)[1])  # type: ignore[return-value]


def _leaves(problem: Problem) -> list[Any]:
    import torch

    return [torch.from_numpy(np.asarray(a)).requires_grad_() for a in problem.at]


def _gradients(leaves: list[Any]) -> tuple[Any, Any, Any]:
    found = tuple(leaf.grad for leaf in leaves)
    for leaf in leaves:
        leaf.grad = None
    return found  # type: ignore[return-value]


def embed(problem: Problem, part: int | None) -> Way:
    import torch

    ids, y, n = (
        torch.from_numpy(problem.ids),
        torch.from_numpy(problem.counts.signs),
        problem.counts.n_documents,
    )
    leaves, parts = _leaves(problem), []
    size = n if part is None else part
    for first in range(0, n, size):
        rows = range(first, min(first + size, n))
        batch = torch.nn.utils.rnn.pad_sequence(
            [ids[problem.starts[k] : problem.starts[k + 1]] for k in rows], batch_first=True
        )
        length = torch.tensor([problem.starts[k + 1] - problem.starts[k] for k in rows])
        parts.append(
            (batch, torch.arange(batch.shape[1])[None] < length[:, None], y[first : first + size])
        )

    def run() -> tuple[Any, Any, Any]:
        E, p, v = leaves
        for batch, there, sign in parts:
            x = torch.nn.functional.embedding(batch, E)
            q = torch.softmax((x @ p).masked_fill(~there, -torch.inf), dim=1)
            f = torch.einsum("kt,ktd->kd", q, x) @ v
            (torch.nn.functional.softplus(-sign * f).sum() / n).backward()
        return _gradients(leaves)

    return run


def bag(problem: Problem) -> Way:
    import torch

    ids, y = torch.from_numpy(problem.ids), torch.from_numpy(problem.counts.signs)
    document, offsets = (
        torch.from_numpy(problem.document),
        torch.from_numpy(problem.starts[:-1].copy()),
    )
    leaves, n = _leaves(problem), problem.counts.n_documents

    def run() -> tuple[Any, Any, Any]:
        E, p, v = leaves
        u = (E @ p)[ids]
        z = torch.exp(u - u.max())
        q = z / torch.zeros(n, dtype=z.dtype).index_add(0, document, z)[document]
        f = torch.nn.functional.embedding_bag(ids, E, offsets, mode="sum", per_sample_weights=q) @ v
        torch.nn.functional.softplus(-y * f).mean().backward()
        return _gradients(leaves)

    return run


def project(problem: Problem) -> Way:
    import torch

    ids, y = torch.from_numpy(problem.ids), torch.from_numpy(problem.counts.signs)
    document, leaves, n = (
        torch.from_numpy(problem.document),
        _leaves(problem),
        problem.counts.n_documents,
    )

    def run() -> tuple[Any, Any, Any]:
        E, p, v = leaves
        u, w = (E @ p)[ids], (E @ v)[ids]
        z = torch.exp(u - u.max())
        total = torch.zeros(n, dtype=z.dtype).index_add(0, document, z)
        f = torch.zeros(n, dtype=z.dtype).index_add(0, document, z * w) / total
        torch.nn.functional.softplus(-y * f).mean().backward()
        return _gradients(leaves)

    return run


def sparse(problem: Problem) -> Way:
    import torch

    m, y, n = (
        problem.counts.matrix,
        torch.from_numpy(problem.counts.signs),
        problem.counts.n_documents,
    )
    types, c = torch.from_numpy(m.indices.astype(np.int64)), torch.from_numpy(m.data)
    document = torch.from_numpy(np.repeat(np.arange(n), np.diff(m.indptr)))
    leaves = _leaves(problem)

    def run() -> tuple[Any, Any, Any]:
        E, p, v = leaves
        table = (E @ torch.stack([p, v], dim=1))[types]
        z = c * torch.exp(table[:, 0] - table[:, 0].max())
        total = torch.zeros(n, dtype=z.dtype).index_add(0, document, z)
        f = torch.zeros(n, dtype=z.dtype).index_add(0, document, z * table[:, 1]) / total
        torch.nn.functional.softplus(-y * f).mean().backward()
        return _gradients(leaves)

    return run


WAYS: dict[str, Callable[[Problem], Way]] = {
    "tokensieve": ours,
    "PyTorch, embed every token, at once": lambda problem: embed(problem, None),
    "PyTorch, embed every token, in parts": lambda problem: embed(problem, 32),
    "PyTorch, EmbeddingBag": bag,
    "PyTorch, project, then gather": project,
    "PyTorch, sparse": sparse,
}


def serve(name: str, documents: int, d: int) -> None:
    """One way, in this process: a line of JSON for the check, then one for each line that comes
    in."""
    problem = Problem(documents, d)
    forget_peak()
    held = memory("VmRSS")
    way = WAYS[name](problem)
    found = [np.asarray(g) for g in way()]
    way()
    peak = memory("VmHWM") - held
    rng = np.random.default_rng(1)
    probe = [float(g.ravel() @ rng.standard_normal(g.size)) for g in found]
    print(json.dumps({"memory": peak, "probe": probe, "types": problem.counts.n_types}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        way()
        print(json.dumps(time.perf_counter() - start), flush=True)


def measure(d: int, options: argparse.Namespace) -> list[str]:
    """Rows of the table for one d: the ways in turns, one running at a time."""
    longest, workers, first = Problem(options.documents, 1).longest, {}, {}
    sizes = {}
    for name in WAYS:
        most = options.limit * 1e9 / (8 * d * longest * COPIES)
        sizes[name] = (
            min(options.documents, int(most)) if name.endswith("at once") else options.documents
        )
        command = [
            sys.executable,
            __file__,
            "--serve",
            name,
            "--documents",
            str(sizes[name]),
            "--d",
            str(d),
        ]
        workers[name] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        first[name] = json.loads(workers[name].stdout.readline())
        if name.endswith("at once"):  # its memory is wanted for the others; it is timed alone
            seconds = {name: [_ask(workers[name]) for _ in range(min(options.runs, 3))]}
            workers.pop(name).communicate()
    for turn in range(options.runs):
        for name in list(workers)[:: 1 if turn % 2 == 0 else -1]:
            slow = name.endswith("in parts") and turn >= 3
            if not slow:
                seconds.setdefault(name, []).append(_ask(workers[name]))
    for worker in workers.values():
        worker.communicate()
    mine, rows = statistics.median(seconds["tokensieve"]), []
    for name in WAYS:
        s, m, share = seconds[name], first[name]["memory"], sizes[name] / options.documents
        apart = max(
            abs(a / b - 1)
            for a, b in zip(first[name]["probe"], first["tokensieve"]["probe"], strict=True)
        )
        note, same = (
            (f", first {sizes[name]:,} reviews", "–") if share < 1 else ("", f"{apart:.0e}")
        )
        rows.append(
            f"| {d} | {name}{note} | {statistics.median(s):.4f} ({min(s):.4f} … {max(s):.4f}) | "
            f"{statistics.median(s) / share / mine:,.1f} | {m:.3f} | "
            f"{m / share / first['tokensieve']['memory']:,.1f} | {same} |"
        )
    return rows


def _ask(worker: Any) -> float:
    worker.stdin.write("\n")
    worker.stdin.flush()
    return float(json.loads(worker.stdout.readline()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--d", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--limit", type=float, default=16.0, help="GB that a way may take")
    parser.add_argument("--serve", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.documents, options.d[0])
        return
    problem = Problem(options.documents, 1)
    reviews = (
        f"{options.documents:,} reviews, {len(problem.ids):,} tokens (the longest "
        f"{problem.longest:,})"
    )
    print(f"{described('torch')}; {reviews}, |S| = {problem.counts.n_types:,}, float64\n")
    print("| d | | seconds | times ours, per review | GB | times ours, per review | difference |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for d in options.d:
        print("\n".join(measure(d, options)), flush=True)


if __name__ == "__main__":
    main()
