"""audit and train --cluster: the same command with its work on a Dask cluster.

The workers read the source.
"""

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
from tokensieve.escape import has_user, public_address
from tokensieve.progress import in_background
from tokensieve.read.settings import ReadSettings

TIMEOUT = 10  # seconds that a scheduler, and its first worker, may take to answer
MAX_PAUSE = 120  # seconds that all workers may wait for memory
MAX_RESTARTS = 5  # of each worker; Dask itself starts one anew without end


@contextmanager
def connected(address: str, quiet: bool, settings: ReadSettings) -> Iterator[Any]:
    """A client of a scheduler, or of workers on all cores here ("local").

    Raises:
        InputError: what goes wrong with the cluster, in one line.
    """
    settings.check_for_cluster()
    if has_user(address):
        raise InputError(
            f"--cluster {public_address(address)}: Dask takes no user and no password; leave them "
            "out"
        )
    try:
        from dask.distributed import KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm.core import CommClosedError
    except ImportError:
        raise InputError("--cluster needs Dask: pip install 'tokensieve[dask]'") from None
    for name in ("distributed", "distributed.client", "distributed.nanny", "distributed.scheduler"):
        # they log a traceback where one line will follow
        logging.getLogger(name).setLevel(logging.CRITICAL)
    name = public_address(address)
    workers = _local_workers() if address == "local" else None
    done = threading.Event()
    starved = threading.Event()
    try:
        with _client(address if workers is None else workers, name) as client:
            _check_workers(client, name)
            if client.dashboard_link:
                say(quiet, f"dashboard: {client.dashboard_link}")
            in_background(lambda: _watch(client, done, starved))
            yield client
    except (CancelledError, ClosedClientError, CommClosedError, KilledWorker) as problem:
        if not isinstance(problem, KilledWorker) and not starved.is_set():
            raise InputError(
                f"lost the scheduler at {name!r}: restart it, then run the command again"
            ) from None
        raise InputError(
            "workers kept dying, most likely for lack of memory: give each worker more "
            "(dask worker --memory-limit) or start fewer per machine"
        ) from None
    finally:
        done.set()
        if workers is not None:
            workers.close()


def _local_workers() -> Any:
    """A scheduler and a worker for each core of this machine."""
    from dask.distributed import LocalCluster

    try:
        return LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=polars.thread_pool_size(), threads_per_worker=1, dashboard_address=":0"
        )
    except Exception as problem:  # a worker that dies while it starts is a RuntimeError
        raise InputError(
            f"the workers of --cluster local did not start ({_reason(problem)}); run the command "
            "again, or leave out --cluster"
        ) from None


def _client(place: Any, name: str) -> Any:
    """A client of a scheduler or a cluster; an `InputError` if none answers in time."""
    from dask.distributed import Client

    try:
        return Client(place, timeout=TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, TypeError, ValueError, RuntimeError) as problem:
        raise InputError(
            f"no Dask scheduler answers at {name!r} ({_reason(problem)}); check --cluster ADDRESS"
        ) from None


def _reason(problem: Exception) -> str:
    lines = str(problem).splitlines()
    return lines[0] if lines else type(problem).__name__


def _check_workers(client: Any, name: str) -> None:
    """Make sure that there are some, with the versions of this machine.

    Texts are compared by what Polars makes of them.
    """
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        raise InputError(
            f"the scheduler at {name!r} has no workers; start some: dask worker {name}"
        ) from None
    for package, ours in (("tokensieve", __version__), ("polars", polars.__version__)):
        versions = client.run(lambda name: __import__(name).__version__, package, on_error="return")
        for worker, version in versions.items():
            if version == ours:
                continue
            has = f"{package} {version}"
            if isinstance(version, Exception):
                has = f"no {package}"
            raise InputError(
                f"the worker at {worker} runs {has}, but this machine runs {ours}; install one "
                "version everywhere"
            )


def _watch(client: Any, done: threading.Event, starved: threading.Event) -> None:
    """Close a client whose workers have too little memory."""
    names_seen: set[str] = set()
    seconds_paused = 0
    while not done.wait(TIMEOUT):
        workers = client.run_on_scheduler(
            lambda dask_scheduler: {n: w.status.name for n, w in dask_scheduler.workers.items()}
        )
        names_seen |= workers.keys()
        if workers and set(workers.values()) == {"paused"}:
            seconds_paused += TIMEOUT
        else:
            seconds_paused = 0
        n_started = len(names_seen)
        if seconds_paused > MAX_PAUSE or n_started > (1 + MAX_RESTARTS) * max(len(workers), 1):
            starved.set()
            client.close()
            return
