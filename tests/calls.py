"""What tests share: the type of the fixture `run`, and texts read as `predict` reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tokensieve.text.formats import Format
from tokensieve.text.texts import Texts, table_of, texts_of

Run = Callable[..., tuple[int, str, str]]


def read_texts(source: Any, *, text: str | Sequence[str] | None = None, **how: Any) -> Texts:
    """Every row of a source, whatever its labels."""
    return texts_of(table_of(source, Format(**how)), text)
