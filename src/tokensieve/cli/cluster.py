"""train --cluster: the same command with its work on a Dask cluster."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokensieve import __version__
from tokensieve.cli.command import progress, say
from tokensieve.errors import InputError

SECONDS = 10  # that a scheduler, and its first worker, may take to answer


def train_on_cluster(
    read: Callable[[], Any], address: str, out: Path, quiet: bool, tokenizer: Any, settings: Any
) -> None:
    """Read and split here, learn there, test here; write tokens.csv, the model and summary.json, or nothing."""
    import numpy as np

    from tokensieve.auditing.agreement import token_table
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.storage import model_files
    from tokensieve.text.corpus import split_corpus

    start = time.perf_counter()
    check_writable(out)
    with progress(quiet) as tell, _connected(address) as client:
        tell("reading", 0.0)
        corpus = read()
        if corpus.test is None:
            corpus = split_corpus(corpus, seed=settings.seed)
        learned, seconds = _learn(
            client,
            corpus,
            tell,
            start,
            tokenizer=tokenizer,
            **{name: getattr(settings, name) for name in ("ngrams", "min_documents", "seed", "value_rate")},
        )
        model, k = learned.model, len(corpus.classes)
        right = sum(
            int((model.predict(texts) == np.asarray(corpus.classes)[labels]).sum())
            for texts, labels in _batches(corpus.test)
        )
        table, _ = token_table(learned.importance, model.trained_, learned.attention)
        sizes = np.bincount(corpus.labels, minlength=k)
        summary = learned.to_dict() | {
            "documents": {"train": len(corpus.texts), "test": len(corpus.test.texts)},
            "classes": corpus.classes,
            "test_accuracy": right / len(corpus.test.texts),
            "majority_accuracy": float(np.mean(corpus.test.labels == sizes.argmax())),
            "seconds": seconds | {"total": time.perf_counter() - start},
            "seed": settings.seed,
            "version": __version__,
            "notes": corpus.intake.lines(),
        }
        files: dict[str, Any] = {"tokens.csv": csv_table(table)} | model_files(model)
        files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
        write_all(out, files)
    say(quiet, f"test accuracy {summary['test_accuracy']:.1%}; {len(model.scores_):,} tokens; model in {out}")


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of the scheduler; what goes wrong with the cluster becomes one line."""
    try:
        from dask.distributed import Client
    except ImportError:
        raise InputError("--cluster needs Dask: pip install 'tokensieve[dask]'") from None
    for name in ("distributed", "distributed.client"):  # they log a traceback where one line will follow
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, TypeError, ValueError) as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise InputError(f"no Dask scheduler answers at {address!r} ({reason}); check --cluster ADDRESS") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError:
            raise InputError(
                f"the scheduler at {address!r} has no workers; start some: dask worker {address}"
            ) from None
        try:
            yield client
        except CancelledError:
            raise InputError(f"lost the scheduler at {address!r}: start it again, and the command") from None


def _batches(corpus: Any) -> Any:
    """Texts and class indices, a batch at a time."""
    import polars as pl

    done = 0
    for texts in [corpus.texts] if isinstance(corpus.texts, pl.Series) else corpus.texts.batches():
        yield texts, corpus.labels[done : done + len(texts)]
        done += len(texts)


def _learn(client: Any, corpus: Any, tell: Any, start: float, **how: Any) -> tuple[Any, dict[str, float]]:
    """Partitions as Parquet files under $TMPDIR, which workers must be able to read: document i goes to partition i mod P."""
    import dask
    import numpy as np
    import polars as pl

    from tokensieve.model.cluster import learn_on
    from tokensieve.text.spill import Folder, storing
    from tokensieve.text.tokenizers import with_fields

    how["tokenizer"] = with_fields(how["tokenizer"], corpus.fields)
    folder = Folder()
    files: list[list[str]] = [[] for _ in range(max(sum(client.nthreads().values()), 1))]
    for texts, labels in _batches(corpus):
        frame = pl.DataFrame({"text": texts, "label": np.asarray(corpus.classes)[labels]})
        for p, paths in enumerate(files):
            paths.append(str(folder.new()))
            with storing():
                frame.gather_every(len(files), p).write_parquet(paths[-1])
    partitions = [dask.delayed(pl.read_parquet)(paths) for paths in files]  # type: ignore[attr-defined]
    read = time.perf_counter()
    learned = learn_on(client, partitions, progress=tell, **how)
    return learned, {"reading": read - start, "cluster": time.perf_counter() - read}
