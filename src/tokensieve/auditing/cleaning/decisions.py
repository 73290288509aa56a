"""What someone decided about an audit: tokens to keep or mask, documents whose label is wrong. The page exports it as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tokensieve.errors import InputError
from tokensieve.files import parsed, read_regular

VERSION = 1
PARTS = ("train", "test")


class Decision(StrEnum):
    """The values that a decisions file may hold; of a document KEEP or WRONG, of a token KEEP or MASK."""

    KEEP = "keep"
    MASK = "mask"
    WRONG = "wrong label"


@dataclass(frozen=True)
class Decisions:
    """Decisions on tokens and documents.

    Attributes:
        mask, keep: tokens, in the order of the file.
        wrong: part ("train" or "test") → rows whose label is wrong, counted from 1 in their source.
    """

    mask: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    wrong: dict[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Decisions:
        """Read `{"tokensieve": "decisions", "version": 1, "tokens": {token: "keep" | "mask"}, "documents": [{"part": "train" |
        "test", "row": N, "decision": "keep" | "wrong label"}]}`.

        Raises:
            InputError: the file cannot be read, or holds something else.
        """
        name = f"--decisions {path.name!r}"
        try:
            content = parsed(read_regular(path))
        except OSError as problem:
            raise InputError(f"cannot read {name}: {problem.strerror or problem}") from None
        except (ValueError, RecursionError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(
                f"{name} is no JSON ({str(problem)[:100]}): export it from the audit's page again"
            ) from None
        if not isinstance(content, dict) or content.get("tokensieve") != "decisions":
            raise InputError(f"{name} holds no decisions: export them from the audit's page")
        if content.get("version") != VERSION or isinstance(content["version"], bool):
            raise InputError(f"{name} is of version {content.get('version')!s:.20}, this tokensieve reads {VERSION}")
        tokens, documents = content.get("tokens", {}), content.get("documents", [])
        if not isinstance(tokens, dict) or not isinstance(documents, list):
            raise InputError(f"{name}: tokens must be an object and documents a list")
        for token, decided in tokens.items():
            if decided not in (Decision.KEEP, Decision.MASK):
                raise InputError(f"{name}: the token {token!r:.60} is to be kept or masked, not {decided!r:.40}")
        wrong: dict[str, set[int]] = {part: set() for part in PARTS}
        for i, one in enumerate(documents, 1):
            part, row = _document(f"{name}: document {i}", one)
            if one["decision"] == Decision.WRONG:
                wrong[part].add(row)
        of = {d: tuple(t for t, decided in tokens.items() if decided == d) for d in (Decision.MASK, Decision.KEEP)}
        return cls(of[Decision.MASK], of[Decision.KEEP], {part: frozenset(rows) for part, rows in wrong.items()})


def _document(where: str, one: Any) -> tuple[str, int]:
    if not isinstance(one, dict) or one.get("part") not in PARTS:
        raise InputError(f"{where} needs a part, train or test")
    if type(one.get("row")) is not int or one["row"] < 1:
        raise InputError(f"{where} needs a row, a whole number from 1")
    if one.get("decision") not in (Decision.KEEP, Decision.WRONG):
        raise InputError(f"{where}: the decision is keep or wrong label, not {one.get('decision')!r:.40}")
    return one["part"], one["row"]
