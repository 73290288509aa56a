"""Training on a cluster: accuracy by partitions, the rates of a worker, and 10^9 documents on 100 workers projected.

    python benchmarks/averaging.py [--ngrams 1] [--seeds 3]

IMDB averaged over 2, 8 and 32 partitions beside one machine, in one process; rates are those of one worker. Figures go to
results/cluster.json. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import polars as pl

from machine import DATA, described, store
from tokensieve.evidence.sums import TokenSums
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.partitions import BUCKETS
from tokensieve.task.cluster import STEPS
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import Vocabulary, learn_vocabulary, tokenize


def projected(
    rates: dict[str, float], documents: float, workers: int, rounds: int
) -> dict[str, Any]:
    """Seconds of each stage and gigabytes, with documents spread evenly and 100,000 in a partition; sums go up a binary tree.

    The first bottleneck is what reaches its limit with the fewest documents: workers of 2 GB that keep all they hold in memory, a
    day of work, or a day of scheduling. What the client holds does not grow.
    """
    each, types = documents / workers, rates["token types"]
    partitions, depth = documents / 1e5, math.ceil(math.log2(workers))
    table = 8.0 * types * 2
    sums = 8.0 * types * 32  # of importance, with two classes
    passes = max(
        min(math.ceil(math.sqrt(partitions)), STEPS // math.ceil(1e5 / 64)), 1
    )  # as the training has it
    moved = 2 * depth * (table / rates["network"] + table / 8 / rates["adding"])
    seconds = {
        "tokenizing": each / rates["tokenizing"],
        "counting": each / rates["counting"],
        "importance": each / rates["importance"]
        + depth * (sums / rates["network"] + sums / 8 / rates["adding"]),
        "training": rounds
        * (
            passes * each / rates["training"]
            + moved
            + partitions / workers * table / 8 / rates["adding"]
        ),
    }
    use = {
        "memory of the workers (2 GB each; Dask spills beyond)": rates["bytes"] * each / 2e9,
        "time (24 hours)": sum(seconds.values()) / 86_400,
        "scheduling (24 hours)": partitions * rates["tasks"] / rates["scheduling"] / 86_400,
    }
    first = max(use, key=use.__getitem__)
    return {
        "seconds": {name: round(x) for name, x in seconds.items()},
        "scheduling, seconds": round(partitions * rates["tasks"] / rates["scheduling"]),
        "worker, GB": rates["bytes"] * each / 1e9,
        "first bottleneck": f"{first}, from {documents / use[first]:,.0f} documents on",
    }


def _network(client: Any, length: int = 4_000_000) -> float:
    """Bytes per second of one array from one worker process to another."""
    source, goal = list(client.nthreads())[:2]
    seconds = []
    for _ in range(3):
        made = client.submit(np.ones, length, workers=[source], pure=False)
        made.result()
        start = time.perf_counter()
        client.submit(np.ndarray.sum, made, workers=[goal], pure=False).result()
        seconds.append(time.perf_counter() - start)
    return 8 * length / statistics.median(seconds)


def _scheduling(client: Any, tasks: int = 2_000) -> float:
    """Tasks per second of a scheduler whose workers have nothing to compute."""
    start = time.perf_counter()
    client.gather([client.submit(abs, i, pure=False) for i in range(tasks)])
    return tasks / (time.perf_counter() - start)


def _rates(frame: pl.DataFrame, ngrams: int, network: float) -> dict[str, float]:
    """Of one worker: documents by stage and numbers added, each per second of processor time; bytes per second of a link; and bytes
    of a document that it holds (tokens and counts)."""
    from tokensieve.model.adam import Schedule
    from tokensieve.model.adam import train as adam
    from tokensieve.model.start import initial_table, prior_of

    splitter, n = WordTokenizer(), len(frame)
    stream, tokenizing = _timed(lambda: tokenize(frame["text"], splitter))
    vocabulary: Vocabulary = learn_vocabulary(stream, splitter, ngrams, 3)
    (matrix, _), counting = _timed(lambda: vocabulary.count(stream))
    labels = (frame["label"] == frame["label"].max()).to_numpy().astype(np.int64)
    counts = Counts(matrix, labels, ("-1", "+1"), vocabulary.tokens)
    _, importance = _timed(lambda: TokenSums.of(counts.matrix, counts.labels, counts.n_classes))
    u, w = initial_table(
        counts.weighted_present, counts.weighted_class_sizes, prior_of(counts.class_sizes)
    )
    _, training = _timed(lambda: next(adam(counts, u, w, Schedule(n // 64), n // 64)))
    _, adding = _timed(lambda: np.ones(10**7) + np.ones(10**7))
    held = (
        stream.ids.nbytes + matrix.nnz + matrix.indices.nbytes
    )  # workers keep a count in one byte
    out = {
        "tokenizing": n / tokenizing,
        "counting": n / counting,
        "importance": n / importance,
        "training": n / training,
    }
    return out | {
        "adding": 1e7 / adding,
        "network": network,
        "token types": counts.n_types,
        "bytes": held / n,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ngrams", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(described("polars") + "\n")
    from dask.delayed import delayed
    from dask.distributed import Client, LocalCluster

    from tokensieve.task.cluster import learn_on

    train, test = (pl.read_parquet(DATA / f"imdb_{part}.parquet") for part in ("train", "test"))
    goal = test["label"].to_numpy()
    found: dict[str, list[float]] = {}
    rounds, tasks = [], 0.0
    print("| partitions | seed | rounds | test accuracy | seconds |\n|---|---|---|---|---|")
    with Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        submit = client.submit
        for seed in range(options.seeds):
            mixed = train.sample(fraction=1.0, shuffle=True, seed=seed)
            for n in (1, 2, 8, 32):
                start = time.perf_counter()
                if n == 1:
                    model = AttentionClassifier(ngrams=options.ngrams, random_state=seed)
                    model.fit(mixed["text"], mixed["label"].to_list())
                else:
                    parts = [delayed(mixed[p::n]) for p in range(n)]
                    client.submit = Mock(side_effect=submit)
                    learned = learn_on(client, parts, ngrams=options.ngrams, seed=seed)
                    tasks = (
                        client.submit.call_count / n - math.ceil(n / 8) + BUCKETS
                    )  # of each of many partitions
                    model, taken = learned.model, learned.rounds
                    # choosing the number of rounds goes at most two rounds beyond the best
                    rounds.append(taken + len(learned.validation))
                seconds = time.perf_counter() - start
                found.setdefault(str(n), []).append(
                    float(np.mean(model.predict(test["text"]) == goal))
                )
                shown = "one machine" if n == 1 else n
                print(
                    f"| {shown} | {seed} | {0 if n == 1 else taken} | {found[str(n)][-1]:.4f} | {seconds:.0f} |",
                    flush=True,
                )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        link, scheduling = _network(client), _scheduling(client)
    _rates(train[:1000], options.ngrams, link)  # compiles
    rates = _rates(train, options.ngrams, link) | {"scheduling": scheduling, "tasks": tasks}
    plan = projected(rates, 1e9, 100, max(rounds, default=16))
    print(json.dumps({"rates of one worker": rates, "10^9 documents, 100 workers": plan}, indent=1))
    figures = {"accuracy": found, "rounds": rounds, "rates": rates, "projection": plan}
    print(store("cluster", figures, described("polars", "dask")))


def _timed(job: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the CPU seconds that it takes."""
    start = time.process_time()
    out = job()
    return out, time.process_time() - start


if __name__ == "__main__":
    main()
