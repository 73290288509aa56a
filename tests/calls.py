"""What tests share: the type of `run`, texts as `predict` reads them, cases for the slow suite,
pages without pictures."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import polars as pl
import pytest
from hypothesis import settings

from tokensieve.errors import InputError
from tokensieve.read.fields import join_fields
from tokensieve.read.reader import read_corpus
from tokensieve.read.rows import read_rows
from tokensieve.read.settings import SourceSettings
from tokensieve.read.sources import open_source

Run = Callable[..., tuple[int, str, str]]


def read_texts(source: Any, *, text: str | Sequence[str] | None = None, **how: Any) -> pl.Series:
    """The text of every row of a source, whatever its labels."""
    table = open_source(source, SourceSettings(**how), labelled=False).held_out
    return read_rows(table, text)["text"].fill_null("")


def joined(fields: Sequence[str], parts: Sequence[str | None]) -> str | None:
    """The parts of one document as one text."""
    text: str | None = join_fields(fields, [pl.Series([part], dtype=pl.String) for part in parts])[
        0
    ]
    return text


def fails(source: Any, *parts: str, **options: Any) -> None:
    """Reading it ends in one line that contains the parts."""
    with pytest.raises(InputError) as caught:
        read_corpus(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message


class _Later:
    def __init__(self, name: str) -> None:
        self._module = name

    def __getattr__(self, name: str) -> Any:
        # pytest looks for these at every object of a file
        if name.startswith(("__", "_pytest", "_mock")):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._module), name)


def later(name: str) -> Any:
    """A library that is imported when a test first uses it, since every worker collects every file;
    without it they are skipped."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed", allow_module_level=True)
    return _Later(name)


def fast_first(cases: Iterable[Any], n: int = 1) -> list[Any]:
    """Cases of a parametrized test: the first n run in the fast suite, the others in the slow
    one."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*row, marks=[] if k < n else pytest.mark.slow) for k, row in enumerate(rows)
    ]


def costly(fraction: int) -> Any:
    """A property whose examples are dear: an nth of those that the profile asks for."""
    return settings(max_examples=max(settings.default.max_examples // fraction, 1))


EMPTY = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'


@contextmanager
def undrawn() -> Iterator[None]:
    """Every picture is empty: for tests that look at none, since drawing takes most of their
    time."""
    from tokensieve.report import html, writer
    from tokensieve.report.blocks import Picture, walk

    def nothing(blocks: Any, *also: str) -> dict[str, dict[str, bytes]]:
        names = [block.name for block in walk(blocks) if isinstance(block, Picture)]
        return {name: dict.fromkeys(("svg", *also), EMPTY) for name in names}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "draw", nothing)
        patch.setattr(writer, "draw", nothing)
        yield
