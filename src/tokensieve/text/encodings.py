"""Encodings of text files: their codecs, and which one a file that is not UTF-8 is written in."""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence

from tokensieve.errors import InputError

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# those that spreadsheets and old systems write; between others a guess would be too uncertain
_LIKELY = [
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "shift_jis",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
]


def codec_of(encoding: str) -> str:
    """Python's codec of that name; a UTF-8 byte order mark is accepted.

    Raises:
        InputError: there is none for text.
    """
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
    except (LookupError, ValueError):
        raise InputError(f"there is no text encoding {encoding[:40]!r}; try utf-8, latin-1 or cp1252") from None
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def detected_encoding(start: bytes, lines: Sequence[bytes]) -> str | None:
    """The encoding of a file that is not UTF-8; None where it is damaged UTF-8, or nothing is likely.

    Args:
        start: how the file begins.
        lines: some that hold more than ASCII.
    """
    for begins, name in _MARKS.items():  # UTF-32 first: its mark begins with that of UTF-16
        if start.startswith(begins):
            return name
    odd, valid = [], 0
    for line in lines[:2000]:
        try:
            line.decode()
            valid += 1
        except UnicodeDecodeError:
            odd.append(line)
    if not odd or valid >= len(odd):
        return None
    from charset_normalizer import from_bytes

    # a signature of the file would be looked for in vain, as these are lines out of its middle
    best = from_bytes(b"\n".join(odd)[:50_000], cp_isolation=_LIKELY, preemptive_behaviour=False).best()
    if best is None:
        return None
    # Western European text is by far the most frequent: take it where it is as plausible
    try:
        western = b"\n".join(odd).decode("cp1252")
    except UnicodeDecodeError:
        return best.encoding
    letters = sum(c.isalpha() for c in western if not c.isascii())
    total = sum(not c.isascii() for c in western)
    ascii_letters = sum(c.isascii() and c.isalpha() for c in western)
    return "cp1252" if letters >= 0.5 * total and ascii_letters > 3 * total else best.encoding
