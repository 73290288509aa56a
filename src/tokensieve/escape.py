"""Hostile until escaped: names, tokens and texts as people can read them, with nothing
invisible."""

from __future__ import annotations

import html
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import PurePath

HIDDEN = "…"  # in an address, for what is not shown of it
MAX_CODES = 4  # of a text in which nothing is to be seen
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


# Unicode's default ignorable characters that are no format characters ("Cf"): fillers and selectors
# of variants, which is what stays where an emoji was cut
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def visible(text: str) -> str:
    """The text with each control character as its picture (NUL → ␀), each non-character as U+FFFD,
    and each mark that turns the writing direction as its code."""

    def picture(found: re.Match[str]) -> str:
        code = ord(found.group())
        if 0x202A <= code <= 0x2069:
            return f"⟨U+{code:04X}⟩"
        if code < 0x20:
            return chr(0x2400 + code)
        return "\u2421" if code == 0x7F else "\ufffd"

    return _UNSEEN.sub(picture, text)


# How many characters of a token or another name are shown, by the place where it stands.
IN_LIST = 24  # beside other names, or in the head of a table
IN_CELL = 30
IN_SENTENCE = 40
IN_TITLE = 60
ALONE = 80
WHOLE_SENTENCE = 400  # a sentence that quotes data is cut only where data makes it very long


def for_display(text: str, limit: int = ALONE, path: bool = False) -> str:
    """Rewrite a token or label so that people can read it: nothing is invisible or turns the text.

    Args:
        text: any text from data.
        limit: in characters; a longer text is cut there and its full length added (unless that is
            longer than what is left out).
        path: show only the last part of a path: where a reader keeps files is no part of a page
            that is shared.
    """
    if path and ("/" in text or "\\" in text):
        text = PurePath(text).name
    length = f" ({len(text):,} characters)"
    if len(text) > limit:
        is_worth_it = len(text) - limit > len(length)
        return f"{visible(text[:limit])}…" + (length if is_worth_it else "")
    if any(_leaves_ink(character) for character in text):
        return visible(text)
    if not text:
        return "(empty)"
    codes = " ".join(f"U+{ord(character):04X}" for character in text[:MAX_CODES])
    return codes if len(text) <= MAX_CODES else f"{codes}…{length}"


def _leaves_ink(character: str) -> bool:
    """Whether a character is to be seen: neither space nor a mark that only directs others."""
    if character.isspace() or _IGNORABLE.match(character):
        return False
    return unicodedata.category(character) != "Cf"


def printable(text: str) -> str:
    r"""The text as a terminal may get it, lines and tabs kept: what would steer it (control
    characters, marks that turn the direction of writing) is written as `\uXXXX`, which is also how
    JSON may write it."""
    return _HARMFUL.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def option(name: str, value: str) -> str:
    """An option and its value as a shell takes them, in one line and printable: `--text 'a b'`,
    `--text=-b`, `--text $'a\\nb'`."""
    word = shell_word(value)
    return f"{name}{'=' if word.startswith('-') else ' '}{word}"


def shell_word(value: str) -> str:
    r"""A word as a shell takes it, in one line and printable: `'a b'`, `$'a\nb'`.

    A word in which nothing is to be seen is written by its codes, `$'\ufe0f'`.
    """
    if value.strip(" ") and not any(map(_leaves_ink, value)):
        return f"$'{''.join(map(_escaped, value))}'"
    if printable(value) == value and not {"\n", "\t"} & {*value}:
        return shlex.quote(value)
    plain = value.replace("\\", r"\\").replace("'", r"\'").replace("\n", r"\n").replace("\t", r"\t")
    return f"$'{printable(plain)}'"


def _escaped(character: str) -> str:
    r"""A character by its code, as `$'…'` takes it: `\ufe0f`, beyond 16 bits `\U000e0100`."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def public_address(written: str, placeholder: str = "") -> str:
    """A source as everybody may see it: an address without user, password, query and fragment.

    Presigned addresses carry their secret in the query, and pages are made to be shared. Every
    message, page and file shows a source by this function. What is no address stays as it is.

    Args:
        placeholder: what stands for that which is left out, such as "…" in a command.
    """
    scheme, mark, location = written.partition("://")
    if not mark:
        return written
    user, location = _split_user(location)
    public = re.split("[?#]", location)[0]
    before = f"{placeholder}@" if user and placeholder else ""
    after = f"?{placeholder}" if public != location and placeholder else ""
    return f"{scheme}://{before}{public}{after}"


def has_user(address: str) -> bool:
    """Whether an address has a user or a password."""
    return bool(_split_user(address.partition("://")[2])[0])


def _split_user(rest: str) -> tuple[str, str]:
    """User and password, and what follows; `rest` is an address without its scheme.

    A password may hold any character. With a colon before the first slash, all up to the last "@"
    may belong to it; without one, an "@" behind a slash is part of a path.
    """
    host = re.split("[/?#]", rest)[0]
    if ":" in host:
        user, mark, after = rest.rpartition("@")
    else:
        user, mark, after = host.rpartition("@")
        after += rest[len(host) :]
    return (user, after) if mark else ("", rest)


# With one slash where a path was made of it. The longest registered scheme has 36 letters; without
# a limit, a long word would be searched again from each of its letters.
_ADDRESS = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]{1,40}):/{1,2}([^\s'\"<>]+)")


def _public(found: re.Match[str]) -> str:
    address = f"{found[1]}://{found[2]}"
    public = public_address(address)
    return found[0] if public == address else public


LONGEST_LINE = 500  # characters of a message; about six lines of a terminal


def line(message: str) -> str:
    """A message as one printable line, in which addresses are public.

    Of a longer one the middle is left out, since it names the thing and ends with advice.
    """
    public = _ADDRESS.sub(_public, message)
    text_line = printable(" ".join(public.split()))
    if len(text_line) <= LONGEST_LINE:
        return text_line
    head = text_line[: LONGEST_LINE * 2 // 3]
    tail = text_line[3 - LONGEST_LINE // 3 :]
    return f"{head} … {tail}"


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain HTML table for notebooks, with everything in it escaped and numbers to three
    digits."""

    def cell(value: object) -> str:
        if isinstance(value, float):
            return f"{value:.3g}"
        return (
            html.escape(for_display(value)) if isinstance(value, str) else html.escape(str(value))
        )

    lines = ("".join(f"<td><bdi>{cell(value)}</bdi></td>" for value in row) for row in rows)
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    head = f"<caption>{html.escape(line(caption))}</caption><thead><tr>{names}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>"
