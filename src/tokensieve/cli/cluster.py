"""audit and train --cluster: the same command with its work on a Dask cluster, whose workers read the source."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import polars

from tokensieve import __version__
from tokensieve.cli.command import say
from tokensieve.errors import InputError
from tokensieve.progress import in_background
from tokensieve.read.settings import ReadSettings

SECONDS = 10  # that a scheduler, and its first worker, may take to answer
PAUSED, DEATHS = (
    120,
    5,
)  # seconds that all workers may wait for memory, and how often each may be started anew


@contextmanager
def connected(address: str, quiet: bool, settings: ReadSettings) -> Iterator[Any]:
    """A client of a scheduler, or of workers on all cores here ("local"); what goes wrong with the cluster becomes one line."""
    settings.check_for_cluster()
    try:
        from dask.distributed import Client, KilledWorker, LocalCluster
        from distributed.client import ClosedClientError
        from distributed.comm.core import CommClosedError
    except ImportError:
        raise InputError("--cluster needs Dask: pip install 'tokensieve[dask]'") from None
    for name in ("distributed", "distributed.client", "distributed.nanny", "distributed.scheduler"):
        logging.getLogger(name).setLevel(
            logging.CRITICAL
        )  # they log a traceback where one line will follow
    where: Any = address
    if address == "local":
        where = LocalCluster(
            n_workers=polars.thread_pool_size(), threads_per_worker=1, dashboard_address=":0"
        )  # type: ignore[no-untyped-call]
    try:
        client = Client(where, timeout=SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, TypeError, ValueError) as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({reason}); check --cluster ADDRESS"
        ) from None
    done, starved = threading.Event(), threading.Event()
    try:
        with client:
            _check_workers(client, address)
            if client.dashboard_link:
                say(quiet, f"dashboard: {client.dashboard_link}")
            in_background(lambda: _watch(client, done, starved))
            yield client
    except (CancelledError, ClosedClientError, CommClosedError, KilledWorker) as problem:
        if not isinstance(problem, KilledWorker) and not starved.is_set():
            raise InputError(
                f"lost the scheduler at {address!r}: restart it, then run the command again"
            ) from None
        raise InputError(
            "workers kept dying, most likely for lack of memory: give each worker more "
            "(dask worker --memory-limit) or start fewer per machine"
        ) from None
    finally:
        done.set()
        if address == "local":
            where.close()


def _check_workers(client: Any, address: str) -> None:
    """There are some, with the versions of this machine: texts are compared by what Polars makes of them."""
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except TimeoutError:
        raise InputError(
            f"the scheduler at {address!r} has no workers; start some: dask worker {address}"
        ) from None
    for package, own in (("tokensieve", __version__), ("polars", polars.__version__)):
        there = client.run(lambda name: __import__(name).__version__, package, on_error="return")
        for worker, version in there.items():
            if version != own:
                has = f"no {package}" if isinstance(version, Exception) else f"{package} {version}"
                raise InputError(
                    f"the worker at {worker} runs {has}, but this machine runs {own}; install one version everywhere"
                )


def _watch(client: Any, done: threading.Event, starved: threading.Event) -> None:
    """Closes a client whose workers have too little memory: Dask itself starts them anew, or pauses them, without end."""
    seen, paused = set[str](), 0
    while not done.wait(SECONDS):
        workers = client.run_on_scheduler(
            lambda dask_scheduler: {n: w.status.name for n, w in dask_scheduler.workers.items()}
        )
        seen |= workers.keys()
        paused = paused + SECONDS if workers and {*workers.values()} == {"paused"} else 0
        if paused > PAUSED or len(seen) > (1 + DEATHS) * max(len(workers), 1):
            starved.set()
            client.close()
            return
