"""audit and train --cluster: the same command with its work on a Dask cluster, whose workers read the source."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokensieve import __version__
from tokensieve.cli.command import progress, say
from tokensieve.errors import InputError

if TYPE_CHECKING:
    from tokensieve.files import Content
    from tokensieve.model.settings import TrainSettings
    from tokensieve.text.tokenizers import Tokenizer

SECONDS = 10  # that a scheduler, and its first worker, may take to answer


def train_on_cluster(
    source: object, address: str, out: Path, quiet: bool, tokenizer: Tokenizer | None, settings: TrainSettings
) -> None:
    """Read, learn and test there; write tokens.csv, the model and summary.json, or nothing."""
    from tokensieve.auditing.agreement import token_table
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.cluster import learn_on
    from tokensieve.model.storage import model_files

    start = time.perf_counter()
    check_writable(out)
    with connected(address, quiet) as client:
        with progress(quiet) as tell:
            learned = learn_on(client, source, settings, tokenizer, tell)
        table = token_table(learned.importance, learned.model.trained_, learned.attention)
        summary = {"name": str(source)} | learned.to_dict()
        summary |= {"seconds": {"total": time.perf_counter() - start}, "seed": settings.seed}
        summary["settings"] = settings.to_dict() | {"columns": list(learned.intake.columns)}
        files: dict[str, Content] = {"tokens.csv": csv_table(table), **model_files(learned.model)}
        files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
        write_all(out, files)
    say(
        quiet,
        f"test accuracy {summary['test_accuracy']:.1%} (largest class: {summary['majority_accuracy']:.1%}); "
        f"{summary['token_types']:,} tokens; model in {out}",
    )


@contextmanager
def connected(address: str, quiet: bool) -> Iterator[Any]:
    """A client of a scheduler, or of workers on all cores here ("local"); what goes wrong with the cluster becomes one line."""
    try:
        from dask.distributed import Client, KilledWorker, LocalCluster
        from joblib import cpu_count
    except ImportError:
        raise InputError("--cluster needs Dask: pip install 'tokensieve[dask]'") from None
    for name in ("distributed", "distributed.client", "distributed.nanny", "distributed.scheduler"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they log a traceback where one line will follow
    where: Any = address
    if address == "local":
        where = LocalCluster(n_workers=cpu_count(), threads_per_worker=1, dashboard_address=":0")  # type: ignore[no-untyped-call]
    try:
        client = Client(where, timeout=SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, TypeError, ValueError) as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise InputError(f"no Dask scheduler answers at {address!r} ({reason}); check --cluster ADDRESS") from None
    try:
        with client:
            try:
                client.wait_for_workers(1, timeout=SECONDS)
            except TimeoutError:
                raise InputError(
                    f"the scheduler at {address!r} has no workers; start some: dask worker {address}"
                ) from None
            for worker, version in client.run(_version_there, on_error="return").items():
                if version != __version__:
                    has = "no tokensieve" if isinstance(version, Exception) else f"tokensieve {version}"
                    raise InputError(
                        f"the worker at {worker} has {has}, this is {__version__}: install the same version everywhere"
                    )
            if client.dashboard_link:
                say(quiet, f"dashboard: {client.dashboard_link}")
            yield client
    except CancelledError:
        raise InputError(f"lost the scheduler at {address!r}: start it again, and the command") from None
    except KilledWorker:
        raise InputError(
            "workers died again and again on the same partition, most likely for lack of memory: give each worker more "
            "(dask worker --memory-limit) or start fewer on a machine"
        ) from None
    finally:
        if address == "local":
            where.close()


def _version_there() -> str:
    from tokensieve import __version__ as version

    return version
