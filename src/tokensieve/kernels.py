"""Compiled functions whose machine code is kept on disk, and checked when it is read again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys  # type: ignore[attr-defined]


class _CheckedCache(FunctionCache):
    """Numba's cache, which does not return code for other arguments than those asked for, and
    survives damage.

    Numba numbers the files of a function's signatures without a lock. Of two processes that compile
    one function for different arguments at the same time, each may take number 1, and the index of
    one then leads to the code of the other. The training loop for pairs, run on documents, would
    read beyond the end of its arrays and write anywhere: a segmentation fault much later.

    A file that a full disk or a crash left damaged is not an error either: the index is emptied,
    and the function is compiled and kept again.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these arguments; None, so that it is compiled, if there is none.

        Numba's own method imports a hundred modules about types and functions before it looks into
        the cache. Finished code needs its memory manager only, and a compilation imports them
        itself.
        """
        rtsys.initialize(target_context)
        loaded = None
        try:
            with self._guard_against_spurious_io_errors():
                loaded = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # whatever unpickling other bytes raises
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None
        expected = tuple(getattr(sig, "args", sig))
        if loaded is None or tuple(loaded.signature.args) != expected:
            return None
        return loaded


_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[_Function], _Function]:
    """`numba.njit` with these options, and with a cache on disk that is checked."""

    def decorate(function: _Function) -> _Function:
        dispatcher = numba.njit(**options)(function)
        if dispatcher is not function:  # as it is where NUMBA_DISABLE_JIT is set
            dispatcher._cache = _CheckedCache(function)  # type: ignore[no-untyped-call]
        return cast(_Function, dispatcher)

    return decorate
