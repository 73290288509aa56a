"""Conversations as lists of messages, in the spellings of the formats for chat models."""

from __future__ import annotations

import re
from typing import Any

from tokensieve.read.written_lists import literal_list

TEXT_KEYS = ("content", "value", "text")  # where a message has its text; the first one counts
ROLE_KEYS = ("role", "from", "speaker", "author")
ROLE_NAMES = {
    "assistant": ("assistant", "gpt", "bot", "model"),
    "user": ("user", "human", "prompter"),
}


def text_key(value: object) -> str | None:
    """The key under which the messages of a conversation have their text.

    None if the value is not a list of messages.
    """
    if not (isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)):
        return None
    if not any(key in value[0] for key in ROLE_KEYS):
        return None
    return next((key for key in TEXT_KEYS if key in value[0]), None)


def message_role(message: dict[str, Any]) -> str:
    """The role of a message's writer, in lower case; "" if it does not say."""
    role = next((message[key] for key in ROLE_KEYS if message.get(key)), "")
    return str(role).lower()


def has_role(message: dict[str, Any], role: str) -> bool:
    """Whether a message is by this role, in any of its spellings."""
    return message_role(message) in ROLE_NAMES.get(role.lower(), (role.lower(),))


def message_text(content: object) -> str | None:
    """The text of a message; of a multimodal one, its parts that are text."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "\n".join(str(part["text"]) for part in parts if part.get("text") is not None)
    return None if content is None else str(content)


def written_chat(value: object) -> list[Any] | None:
    """A conversation that is written in a cell, as JSON, or as Python or numpy print it.

    None for anything else.
    """
    if not isinstance(value, str) or not re.match(r"\s*\[\s*\{", value):
        return None
    text = value.strip()
    entries = literal_list(text)
    if entries is None:  # numpy separates entries by line breaks
        entries = literal_list(re.sub(r"\}[^\S\n]*\n\s*\{", "}, {", text))
    return entries if text_key(entries) is not None else None


def chat_text(value: object, role: str | None = None) -> object:
    """The messages of a conversation as one text; any other value as it is.

    Args:
        value: a list of messages (`role` and `content`, or `from` and `value`), such a list that is
            written in a cell, or anything else.
        role: take only the messages of this role; None is returned if there are none.
    """
    if isinstance(value, str):
        value = written_chat(value) or value
    elif text_key([value]) is not None:  # a message alone
        value = [value]
    key = text_key(value)
    if key is None or not isinstance(value, list):
        return value
    messages = [entry for entry in value if role is None or has_role(entry, role)]
    texts = [message_text(message.get(key)) for message in messages]
    written = [text for text in texts if text is not None]
    return "\n".join(written) if written else None
