"""The answers in a row of preference data: texts, conversations, transcripts, or all in one cell.

A form is a row of `FORMS`: how it is recognised, and how it is read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tokensieve.read.chats import chat_text

_REPLY = re.compile(r"\n\s*(Assistant|AI|Bot|A|Answer)\s*:", re.IGNORECASE)
_FIRST_TURN = re.compile(r"\s*(Human|User|H|Q|Question|SUBREDDIT)\s*:", re.IGNORECASE)
_WRITTEN_LIST = re.compile(r"\[\s*[{\"'\d.-]")


class Answers(NamedTuple):
    """The answers of a row, and the prompt, if it stands before each of them."""

    cells: Sequence[Any]
    prompt: object = None


class AnswerForm(NamedTuple):
    """A form of answers.

    Attributes:
        recognise: whether cells have this form.
        read: the cells, and the role to read → the answers.
    """

    recognise: Callable[[Sequence[Any]], bool]
    read: Callable[[Sequence[Any], str | None], Answers]


def answer_cells(values: dict[str, Any], columns: Sequence[str]) -> Sequence[Any]:
    """The values of some columns; if there is one column, of a list, its entries.

    CSV holds lists as JSON or Python text. In several columns, a list of texts is an answer to each
    of several turns.
    """
    cells = [parsed_list(values[name]) for name in columns]
    if len(cells) == 1:
        return cells[0] if isinstance(cells[0], list) else cells
    return [_joined_turns(cell) for cell in cells]


def parsed_list(cell: Any) -> Any:
    """A list that is written as JSON or Python text; any other cell as it is."""
    if isinstance(cell, str) and _WRITTEN_LIST.match(cell):
        for parse in (ast.literal_eval, json.loads):
            with suppress(ValueError, SyntaxError, RecursionError):
                return parse(cell)
    return cell


def _joined_turns(cell: Any) -> Any:
    if isinstance(cell, list) and all(isinstance(turn, str | None) for turn in cell):
        return "\n".join(turn or "" for turn in cell)
    return cell


def read_answers(cells: Sequence[Any], role: str | None) -> Answers:
    """The answers of a row, and what they share at the beginning, if they are conversations."""
    if len(cells) > 1:
        for form in FORMS:
            if form.recognise(cells):
                return form.read(cells, role)
    return Answers(cells)


def _are_conversations(cells: Sequence[Any]) -> bool:
    return all(isinstance(cell, list) and cell and isinstance(cell[0], dict) for cell in cells)


def _read_conversations(cells: Sequence[list[Any]], role: str | None) -> Answers:
    """The prompt goes up to where conversations differ; without one, the last messages count."""
    n_common = common_length(cells)
    if not n_common:
        return Answers([chat_text(cell[-1:], role) for cell in cells])
    replies = [cell[n_common:] or cell[-1:] for cell in cells]
    prompt = chat_text(cells[0][:n_common])
    return Answers([chat_text(reply, role) for reply in replies], prompt)


def _are_transcripts(cells: Sequence[Any]) -> bool:
    return all(isinstance(cell, str) and _FIRST_TURN.match(cell) for cell in cells)


def _read_transcripts(cells: Sequence[str], role: str | None) -> Answers:
    """The prompt goes up to the last common reply; without one, the last replies count."""
    common_turns = list(_REPLY.finditer(cells[0][: common_length(cells)]))
    if not common_turns:
        return Answers([_REPLY.split(cell)[-1].strip() for cell in cells])
    end = common_turns[-1].end()
    return Answers([cell[end:].strip() for cell in cells], cells[0][:end].strip())


FORMS = (
    AnswerForm(_are_conversations, _read_conversations),
    AnswerForm(_are_transcripts, _read_transcripts),
)


def common_length(parts: Sequence[Sequence[object]]) -> int:
    """The length of the common beginning of several sequences."""
    length = 0
    for first, *others in zip(*parts, strict=False):
        if any(other != first for other in others):
            break
        length += 1
    return length
