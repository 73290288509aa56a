"""The terminal, which names, labels, tokens and texts reach only as printable characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import console
from rich.segment import Segment

from tokensieve.escape import printable


class Console(console.Console):
    """Prints nothing that would steer the terminal, wherever in a text, a table or a title it occurs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def render(self, renderable: Any, options: console.ConsoleOptions | None = None) -> Iterable[Segment]:
        """As in rich; colours are its own and stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def short(text: str, width: int) -> str:
    """The beginning of a name that is too long for its column."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
