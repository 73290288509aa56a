"""The answers in a row of preference data: texts, conversations, transcripts, or lists of them.

A form is a row of `FORMS`: how it is recognised, and how it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tokensieve.read.chats import chat_text, has_role, message_role, text_key
from tokensieve.read.written_lists import literal_list

_FIRST_TURN = re.compile(r"\s*(Human|User|H|Q|Question|SUBREDDIT)\s*:", re.IGNORECASE)
# A mark is looked for in its line alone: over line breaks, a search takes quadratic time.
_REPLY = re.compile(r"\n[^\S\n]*(Assistant|AI|Bot|A|Answer)\s*:", re.IGNORECASE)
ASSISTANT = "assistant"  # whose messages are compared unless another role is named


class Answers(NamedTuple):
    """The answers of a row.

    Attributes:
        cells: an answer each; a text, or what is to be refused.
        prompt: what stands before each of them, if it does.
        differ_in_role: a role beside the one that is read whose messages differ, too; "" if none.
    """

    cells: Sequence[Any]
    prompt: object = None
    differ_in_role: str = ""


class AnswerForm(NamedTuple):
    """A form of answers.

    Attributes:
        recognise: whether cells have this form.
        read: the cells, and the role to read → the answers.
    """

    recognise: Callable[[Sequence[Any]], bool]
    read: Callable[[Sequence[Any], str], Answers]


def answer_cells(values: Mapping[str, Any], columns: Sequence[str]) -> Sequence[Any]:
    """The values of some columns; if there is one column, of a list, its entries.

    CSV holds lists as JSON or Python text. In several columns, a list of texts is an answer to each
    of several turns.
    """
    cells = [parsed_list(values[name]) for name in columns]
    if len(cells) == 1:
        if isinstance(cells[0], list):
            return cells[0]
        return cells
    return [_joined_turns(cell) for cell in cells]


def alternatives(cell: Any) -> Sequence[Any]:
    """The answers in a cell that holds one answer, or a list of texts or conversations."""
    cell = parsed_list(cell)
    if not isinstance(cell, list) or (cell and isinstance(cell[0], dict)):
        return [cell]
    return cell


def parsed_list(cell: Any) -> Any:
    """A list that is written as JSON or Python text; any other cell as it is."""
    entries = None
    if isinstance(cell, str):
        entries = literal_list(cell)
    if entries is None:
        return cell
    return entries


def _joined_turns(cell: Any) -> Any:
    if isinstance(cell, list) and all(isinstance(turn, str | None) for turn in cell):
        return "\n".join(turn or "" for turn in cell)
    return cell


def read_answers(cells: Sequence[Any], role: str | None) -> Answers:
    """The answers of a row, and what they share at the beginning, if they are conversations."""
    cells = [_as_conversation(cell) for cell in cells]
    if len(cells) > 1:
        for form in FORMS:
            if form.recognise(cells):
                return form.read(cells, role or ASSISTANT)
    return Answers(cells)


def has_roles(cells: Sequence[Any]) -> bool:
    """Whether answers are conversations or transcripts, in which roles can be told apart."""
    cells = [_as_conversation(cell) for cell in cells]
    return any(_is_conversation(cell) for cell in cells) or _are_transcripts(cells)


def _as_conversation(cell: Any) -> Any:
    """A single message, {"role": …, "content": …}, as a conversation; any other cell as it is."""
    if text_key([cell]) is not None:
        return [cell]
    return cell


# ---- conversations


def _is_conversation(cell: Any) -> bool:
    return isinstance(cell, list) and bool(cell) and isinstance(cell[0], dict)


def _are_conversations(cells: Sequence[Any]) -> bool:
    return all(map(_is_conversation, cells))


def _read_conversations(cells: Sequence[list[Any]], role: str) -> Answers:
    """The prompt goes up to where conversations differ; then one role's messages are compared.

    Without a common beginning, the last messages are.
    """
    n_common = common_length(cells)
    if not n_common:
        return Answers([chat_text(cell[-1:]) for cell in cells])
    replies = [cell[n_common:] or cell[-1:] for cell in cells]
    prompt = chat_text(cells[0][:n_common])
    if not all(_is_said_by(role, reply) for reply in replies):
        # where nobody is called so, all messages are compared
        role_read = None if role == ASSISTANT else role
        return Answers([chat_text(reply, role_read) for reply in replies], prompt)
    texts = [chat_text(reply, role) for reply in replies]
    return Answers(texts, prompt, _other_role_that_differs(replies, role))


def _is_said_by(role: str, messages: Sequence[Any]) -> bool:
    return any(has_role(message, role) for message in messages)


def _other_role_that_differs(replies: Sequence[list[Any]], role: str) -> str:
    """The name of another role that says different things in several replies; "" if there is
    none."""
    others = [[message for message in reply if not has_role(message, role)] for reply in replies]
    if all(messages == others[0] for messages in others):
        return ""
    first_reply_with_others = next(messages for messages in others if messages)
    return message_role(first_reply_with_others[0])


def _is_conversation_beside_text(cells: Sequence[Any]) -> bool:
    n_conversations = sum(map(_is_conversation, cells))
    return 0 < n_conversations < len(cells) and all(
        _is_conversation(cell) or isinstance(cell, str) for cell in cells
    )


def _read_conversation_beside_text(cells: Sequence[Any], role: str) -> Answers:
    """Read two answers of which one is a conversation, whose last message is the answer, and one is
    plain text."""
    conversation = next(cell for cell in cells if _is_conversation(cell))
    answers = [chat_text(cell[-1:]) if _is_conversation(cell) else cell for cell in cells]
    return Answers(answers, chat_text(conversation[:-1]))


# ---- transcripts


class _Turn(NamedTuple):
    """What one side says in a transcript, and where it begins."""

    is_assistant: bool
    text: str
    start: int


def _are_transcripts(cells: Sequence[Any]) -> bool:
    return all(isinstance(cell, str) and _FIRST_TURN.match(cell) for cell in cells)


def _turns(transcript: str) -> list[_Turn]:
    """The turns of a transcript; none if nobody replies.

    The first two marks are those of all turns: an answer itself may contain "Question:".
    """
    first = _FIRST_TURN.match(transcript)
    reply = _REPLY.search(transcript)
    if first is None or reply is None:
        return []
    user = re.escape(first[1])
    assistant = re.escape(reply[1])
    mark_at_line = rf"(?:^|\n)[^\S\n]*({user}|{assistant})\s*:"
    marks = list(re.finditer(mark_at_line, transcript, re.IGNORECASE))
    ends = [mark.start() for mark in marks[1:]]
    ends.append(len(transcript))
    return [
        _Turn(
            mark[1].lower() == reply[1].lower(),
            transcript[mark.end() : end].strip(),
            mark.end(),
        )
        for mark, end in zip(marks, ends, strict=True)
    ]


def _read_transcripts(cells: Sequence[str], role: str) -> Answers:
    """The prompt goes up to where the turns differ; then one side's turns are compared.

    Without a common beginning, the last replies are.
    """
    transcripts = [_turns(cell) for cell in cells]
    n_common = common_length([[turn[:2] for turn in turns] for turns in transcripts])
    if not n_common:
        return Answers([_last_reply(cell) for cell in cells])
    is_assistant = role.lower() == ASSISTANT
    rests = [turns[n_common:] or turns[-1:] for turns in transcripts]
    answers = ["\n".join(_said_by(turns, is_assistant)) for turns in rests]
    prompts = [_said_by(turns, not is_assistant) for turns in rests]
    prompt = cells[0][: rests[0][0].start].strip()
    if all(said == prompts[0] for said in prompts):
        return Answers(answers, prompt)
    if is_assistant:
        return Answers(answers, prompt, "user")
    return Answers(answers, prompt, ASSISTANT)


def _last_reply(transcript: str) -> str:
    """The text after the last mark of a reply; all of a transcript without one."""
    return _REPLY.split(transcript)[-1].strip()


def _said_by(turns: Sequence[_Turn], is_assistant: bool) -> list[str]:
    return [turn.text for turn in turns if turn.is_assistant == is_assistant]


FORMS = (
    AnswerForm(_are_conversations, _read_conversations),
    AnswerForm(_is_conversation_beside_text, _read_conversation_beside_text),
    AnswerForm(_are_transcripts, _read_transcripts),
)


def common_length(parts: Sequence[Sequence[object]]) -> int:
    """The length of the common beginning of several sequences."""
    length = 0
    for first, *following in zip(*parts, strict=False):
        if any(next_message != first for next_message in following):
            break
        length += 1
    return length
