"""Guess the encoding of a text file from the bytes that are not UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

MAX_LINES = 2000  # beyond ASCII, by which a file is judged
MAX_BYTES = 50_000
MIN_SCORE = 0.5  # of the letters beyond ASCII must be of one language
_WESTERN_MARKS = "‘’“”„–—…•€£©®™°«»´·¿¡\xa0"  # no letters, and frequent in cp1252
_ALPHABETS = (  # small letters beyond ASCII, in one language or a few that have much in common
    "àâæçèéêëîïôœùûüÿ äöüßé áéíñóúüºª ãáâàçéêíóõúüºª àèéìíîòóùú àçèéíïòóúü åäöéü åæøéòôüö "
    "áæéðíóöþúý ëïéèöüóê ąćęłńóśźż áčďéěíňóřšťúůýžäĺľŕô áéíóöőúüű ăâîşţșț čćđšž çğıöşüâîû "
    "āčēģīķļņšūž ąčęėįšųūž äõöüšž"
).split()
_LATIN = "cp1252 cp1250 iso8859_2 cp1254 cp1257 iso8859_15 mac_roman cp850".split()
# those that spreadsheets and old systems write; between others a guess would be too uncertain
_LIKELY = (
    "cp1252 cp1250 cp1251 koi8_r cp1253 cp1254 cp1255 cp1256 shift_jis euc_jp gb18030 big5 euc_kr"
).split()


def detected_encoding(start: bytes, lines: Sequence[bytes]) -> str | None:
    """The encoding of a file; None if it is damaged UTF-8, or no encoding is likely.

    Args:
        start: its first bytes.
        lines: some of its lines beyond ASCII.
    """
    wide = _wide_encoding(start)
    if wide is not None:
        return wide
    undecodable = [line for line in lines[:MAX_LINES] if not _is_utf8(line)]
    if len(undecodable) <= min(len(lines), MAX_LINES) / 2:
        return None
    sample = b"\n".join(undecodable)[:MAX_BYTES]
    from charset_normalizer import from_bytes

    # a signature would be looked for in vain, as these are lines out of the middle of the file
    best = from_bytes(sample, cp_isolation=_LIKELY, preemptive_behaviour=False).best()
    if not _is_mostly_latin(sample):
        return best.encoding if best else None
    scores = {encoding: _latin_score(sample, encoding) for encoding in _LATIN}
    likeliest = max(scores, key=lambda encoding: scores[encoding])
    return likeliest if scores[likeliest] > MIN_SCORE or best is None else best.encoding


def _wide_encoding(start: bytes) -> str | None:
    """UTF-16 or UTF-32, by the byte order mark or by the zeros in ASCII."""
    # UTF-32 first: its mark begins with that of UTF-16
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros_in_odd_places = start[1::2].count(0)
    zeros_in_even_places = start[::2].count(0)
    if max(zeros_in_odd_places, zeros_in_even_places) <= len(start) / 4:
        return None
    return "utf-16-le" if zeros_in_odd_places > zeros_in_even_places else "utf-16-be"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_mostly_latin(sample: bytes) -> bool:
    """Whether Latin letters outnumber bytes beyond ASCII two to one.

    Not if most of these bytes stand in runs: those are words of another script among Latin ones.
    """
    runs = re.findall(rb"[\x80-\xff]{3,}", sample)
    if sum(map(len, runs)) > sum(byte > 127 for byte in sample) / 2:
        return False
    n_letters = sum(ord("a") <= byte | 32 <= ord("z") for byte in sample)
    n_beyond_ascii = sum(byte > 127 for byte in sample)
    return n_letters > 2 * n_beyond_ascii


def _latin_score(sample: bytes, encoding: str) -> float:
    """The fraction of characters beyond ASCII that are letters of one language, or marks that break
    no word."""
    text = f" {sample.decode(encoding, 'replace')} "
    n_beyond_ascii = 0
    n_marks = 0
    letters = list[str]()
    for i, character in enumerate(text):
        if character.isascii():
            continue
        n_beyond_ascii += 1
        before = text[i - 1]
        after = text[i + 1]
        is_capital_inside_word = character.isupper() and before.islower()
        if character.isalpha() and not is_capital_inside_word:
            letters.append(character.lower())
        breaks_word = before.isalpha() and (after.isalpha() or character in "‚„¿¡")
        if character in _WESTERN_MARKS and (character == "’" or not breaks_word):
            n_marks += 1
    n_of_one_language = max(
        sum(letter in alphabet for letter in letters) for alphabet in _ALPHABETS
    )
    return (n_marks + n_of_one_language) / max(n_beyond_ascii, 1)
