"""What someone decided on an audit's page: tokens to mask or to keep, and labels that are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import msgspec

from tokensieve.errors import InputError
from tokensieve.files import parsed, read_regular


@dataclass(frozen=True)
class Decisions:
    """The content of a file of decisions.

    Attributes:
        to_mask, to_keep: tokens.
        mislabelled: part ("train" or "test") → rows whose label is wrong, from 1 in their source.
    """

    to_mask: list[str]
    to_keep: list[str]
    mislabelled: dict[str, frozenset[int]]


class _Document(TypedDict):
    part: Literal["train", "test"]
    row: Annotated[int, msgspec.Meta(ge=1)]
    decision: Literal["keep", "wrong label"]


class _File(msgspec.Struct):
    tokensieve: Literal["decisions"]
    version: Literal[1]
    tokens: dict[str, Literal["keep", "mask"]] = {}
    documents: list[_Document] = []


def read_decisions(path: Path) -> Decisions:
    """The decisions that a page exported.

    Raises:
        InputError: the file cannot be read, or is something else.
    """
    name = f"--decisions {path.name!r}"
    try:
        content = msgspec.convert(parsed(read_regular(path)), _File)
    except InputError:
        raise
    except OSError as problem:
        raise InputError(f"cannot read {name}: {problem.strerror or problem}") from None
    except ValueError as problem:  # msgspec's errors are ValueErrors too
        raise InputError(
            f"{name} is not valid ({str(problem)[:200]}); export it from the audit's page again"
        ) from None
    rows: dict[str, set[int]] = {"train": set(), "test": set()}
    for document in content.documents:
        if document["decision"] == "wrong label":
            rows[document["part"]].add(document["row"])
    return Decisions(
        to_mask=[token for token, decided in content.tokens.items() if decided == "mask"],
        to_keep=[token for token, decided in content.tokens.items() if decided == "keep"],
        mislabelled={part: frozenset(own_rows) for part, own_rows in rows.items()},
    )
