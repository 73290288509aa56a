"""What a word is, and what is HTML: regular expressions in the syntax of Rust's `regex` crate.

The page has the same rules in JavaScript (report/live/words.js), and `table.json` tells them to any
other program.
"""

from __future__ import annotations

# scripts that are written without spaces
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
MARKS = r"[\p{M}\x{200C}\x{200D}]"  # and joiners, which belong to the letter before them
_WORD_CHARACTER = rf"[\w--{UNSPACED}]"
_ADDRESS = r"(?:https?://|www\.)[^\s<>\x22]*[^\s<>\x22'.,;:!?)\]}…”’]"  # without the sign behind it
_EMAIL = (
    rf"{_WORD_CHARACTER}[\w.+\-]*@{_WORD_CHARACTER}+(?:[.\-]{_WORD_CHARACTER}+)*\.\p{{L}}\p{{L}}+"
)
_ABBREVIATION = rf"(?:[\p{{L}}--{UNSPACED}]\.){{2,}}"  # e.g. and U.S.
# $20, 4/10, 50%, 10:30, 3.11, 1,000
_NUMBER = (
    rf"[$€£¥]?\p{{Nd}}{_WORD_CHARACTER}*(?:[.,:/]\p{{Nd}}{_WORD_CHARACTER}*)*"
    rf"(?:['’]{_WORD_CHARACTER}+)*[%‰€]?"
)
_VERSION = r"v\p{Nd}+(?:\.\p{Nd}+)+"  # v1.2
_PLUS_PLUS = rf"{_WORD_CHARACTER}+\+\+"  # C++
_PLAIN_WORD = rf"{_WORD_CHARACTER}+(?:['’]{_WORD_CHARACTER}+)*"
_EMOJI = (
    r"\p{Extended_Pictographic}"
    r"(?:\p{Emoji_Modifier}|\x{FE0F}|\x{200D}\p{Extended_Pictographic})*"
)
_FLAG = r"\p{Regional_Indicator}{2}"


def _word(unspaced: str) -> str:
    """The pattern of a word, with another one for what scripts without spaces have as a word."""
    kinds = (  # tried in this order at each place
        _ADDRESS,
        _EMAIL,
        _ABBREVIATION,
        _NUMBER,
        _VERSION,
        _PLUS_PLUS,
        _PLAIN_WORD,
        unspaced,
        _EMOJI,
        _FLAG,
    )
    return "|".join(kinds)


WORD = _word(rf"{UNSPACED}{MARKS}*")

# What follows is for tokenizers that know words of scripts without spaces (text/unspaced.py).
# digits are numbers, in every script
UNSPACED_LETTER = rf"[{UNSPACED}--\p{{Nd}}]"
# all letters between others, as one match
WORD_OR_RUN = _word(rf"{UNSPACED_LETTER}[{UNSPACED_LETTER}{MARKS}]*")
# vowels of Thai and Lao that are written before their consonant
LEADING_VOWELS = "\u0e40-\u0e44\u0ec0-\u0ec4"
# put the next consonant under this one: coeng of Khmer, virama of Burmese
STACKERS = "\u17d2\u1039"
# vowels of Thai and Lao that are written behind their consonant and are no marks for Unicode
TRAILING_VOWELS = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"
# a consonant of Burmese that ends the syllable before it, as asat shows
FINAL_CONSONANT = "[\u1000-\u1021]\u1037?\u103a"
_CLUSTER_LETTER = r"[[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]--\p{Nd}]"
_STACKED = (
    rf"(?:(?:[{LEADING_VOWELS}]|{_CLUSTER_LETTER}{MARKS}*[{STACKERS}])*{_CLUSTER_LETTER}{MARKS}*)"
)
_BEHIND = rf"(?:[{TRAILING_VOWELS}]|{FINAL_CONSONANT})(?:{MARKS}*[{STACKERS}]{_STACKED})?{MARKS}*"
# a letter with all that cannot be read apart from it
CLUSTER = rf"{_STACKED}(?:{_BEHIND})*|{UNSPACED_LETTER}{MARKS}*"

# lower case of the Turkish capital İ, the only one with two characters; i is written for it, so
# that İNDİRİM and indirim are one word
DOTTED_I = "i\u0307"
LINE_BREAK = r"(?i)<br\s*/?>"
MARKUP = r"(?is)<!--.*?-->|<script\b.*?</script\s*>|<style\b.*?</style\s*>|</?[a-z][^<>]*>"
_TAGS = (
    "a abbr b big blockquote body br button center code dd div dl dt em font form h1 h2 h3 h4 h5 "
    "h6 head hr html i iframe img input li link meta ol option p pre s section small span strike "
    "strong style sub sup table tbody td th thead title tr tt u ul video"
)
# tags of HTML (other words in angle brackets are placeholders), character references, and what is
# left of them without "&"
SKIPPED = (
    r"(?is)<!--.*?-->|<script[ >].*?</script *>|<style[ >].*?</style *>|"
    rf"</?(?:{_TAGS.replace(' ', '|')})(?:[ \t\r\n/][^<>]*)?>|"
    r"&(?:[a-z][a-z0-9]{1,30}|#[0-9]{1,7}|#x[0-9a-f]{1,6});|#[0-9]{2,5};|quot;|nbsp;"
)
APOSTROPHE = r"(?i)&(?:#0?39|#x27|apos|rsquo|#8217);|#39;"
