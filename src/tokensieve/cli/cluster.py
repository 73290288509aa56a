"""audit and train --cluster: the same command with its work on a Dask cluster, whose workers read the source."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from tokensieve import __version__
from tokensieve.cli.command import say
from tokensieve.errors import InputError

SECONDS = 10  # that a scheduler, and its first worker, may take to answer


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
            there = client.run(lambda: __import__("tokensieve").__version__, on_error="return")
            for worker, version in there.items():
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
