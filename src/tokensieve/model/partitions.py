"""Chunks of data that are stored on a Dask cluster, and what is computed of them there.

Whatever is computed of partitions is a pure function of them and their order, and nothing is
scattered, so that all of it can be computed again when a worker dies. Documents lie in files of the
workers, so that the memory of a worker does not grow with them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from pickle import PickleBuffer
from typing import Any

import numpy as np
import polars as pl

from tokensieve.files import Folder
from tokensieve.read.values import text_digests
from tokensieve.text.vocabulary import Chunks

with suppress(ImportError):
    from distributed import get_worker
    from distributed.protocol.serialize import deserialize_bytes, serialize_bytes

# steps of SplitMix64 (Steele, Lea, Flood 2014): shift, and factor
_MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


class Stored:
    """A value in a file of the worker that computed it, and of any other that it is sent to."""

    _place: str | None = None  # of this worker's files

    def __init__(self, value: object, content: bytes | None = None) -> None:
        with suppress(ValueError):  # outside a task
            Stored._place = str(get_worker().local_directory)
        if content is None:
            content = serialize_bytes(value)
        self._size = len(content)
        self._folder = Folder(Stored._place)
        self._path = self._folder.save([content])

    @property
    def value(self) -> Any:
        """The value, read from its file."""
        return deserialize_bytes(self._path.read_bytes())

    def __reduce__(self) -> tuple[type[Stored], tuple[None, PickleBuffer]]:
        return Stored, (None, PickleBuffer(self._path.read_bytes()))

    def __sizeof__(self) -> int:
        # for Dask: few are sent at a time (400 MB), but it does not write them into files again
        return self._size // 8


class Partitions(Chunks):
    """Chunks stored on a cluster; everything computed from them is computed there."""

    def __init__(self, client: Any, parts: Sequence[Any]) -> None:
        self.client = client
        self.parts = list(parts)

    def run(self, function: Callable[..., object], *arguments: object, priority: int = 0) -> Any:
        """The result of one task, still on the cluster."""
        return self.client.submit(function, *arguments, pure=False, priority=priority)

    def each(
        self,
        function: Callable[..., object],
        *common: object,
        numbered: bool = False,
        store: bool = False,
    ) -> Partitions:
        """Call a function of every partition; the results stay on the cluster.

        Args:
            function: of a partition, its number if `numbered`, and the common arguments.
            common: arguments that are sent once, for the tasks of all partitions.
            numbered: whether the function takes the number.
            store: whether results are kept in files instead of memory.
        """

        def of_value(part: Any, *arguments: object) -> object:
            result = function(part.value if isinstance(part, Stored) else part, *arguments)
            return Stored(result) if store else result

        shared = [self.run(lambda value: value, value) for value in common]
        results = []
        for number, part in enumerate(self.parts):
            own_arguments = (part, number) if numbered else (part,)
            results.append(self.run(of_value, *own_arguments, *shared))
        return Partitions(self.client, results)

    def here(self) -> list[Any]:
        """The partitions, fetched to this machine."""
        return list(self.client.gather(self.parts))

    def sum(self, add: Callable[..., object] = operator.add) -> Any:
        """The sum, pair by pair in a fixed order, still on the cluster.

        Partitions are added as soon as possible, so that few wait in memory.
        """
        parts = self.parts
        while len(parts) > 1:
            firsts = range(0, len(parts) - 1, 2)
            sums = [self.run(add, *parts[i : i + 2], priority=1) for i in firsts]
            parts = sums + parts[2 * len(sums) :]
        return parts[0]

    def total(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        then: Callable[[Any], Any] = lambda total: total,
    ) -> Any:
        """Add up `function(chunk, *arguments)` over all chunks, apply `then` to the sum, and fetch
        the result."""
        return self.run(then, self.each(function, *arguments).sum()).result()

    def regrouped(
        self,
        n: int,
        then: Callable[[pl.DataFrame], object],
        rows: Callable[..., Any],
        *common: object,
    ) -> Partitions:
        """Bring rows of all partitions with the same number together, in n other partitions.

        Args:
            n: how many; rows go to the partition of their number modulo n.
            then: what becomes of the rows of one.
            rows: of a partition, its number and the common arguments: a frame, and the number of
                each row.
            common: further arguments of `rows`.
        """

        def cut(part: Any, number: int, *common: object) -> list[Stored]:
            frame, numbers = rows(part, number, *common)
            return [Stored(frame.filter(numbers % n == i)) for i in range(n)]

        def join(cuts: list[Stored]) -> object:
            return then(pl.concat([stored.value for stored in cuts]))

        cuts = self.each(cut, *common, numbered=True).parts
        joined = []
        for i in range(n):
            of_number = [self.run(operator.getitem, cuts_of_part, i) for cuts_of_part in cuts]
            joined.append(self.run(join, of_number))
        return Partitions(self.client, joined)


def hashed_numbers(values: pl.Series, salt: object) -> pl.Series:
    """A number below 2³² for each value, which depends on nothing else but the salt (SplitMix64).

    Values of bytes are digests already; others are texts.
    """
    digests = values if values.dtype == pl.Binary else text_digests(values)
    mixed = _first_eight_bytes(digests) ^ _first_eight_bytes(text_digests([str(salt)]))
    for shift, factor in _MIXING:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return pl.Series((mixed >> np.uint64(32)).astype(np.uint32))


def _first_eight_bytes(digests: pl.Series) -> Any:
    return digests.bin.slice(0, 8).bin.reinterpret(dtype=pl.UInt64).to_numpy()
