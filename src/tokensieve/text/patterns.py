"""What a word is, and what is HTML: regular expressions in the syntax of Rust's `regex` crate.

The page has the same rules in JavaScript (report/live/words.js), and `table.json` tells them to any
other program.
"""

from __future__ import annotations

# scripts that are written without spaces
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
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
_UNSPACED_CHARACTER = rf"{UNSPACED}[\p{{M}}\x{{200C}}\x{{200D}}]*"
_EMOJI = (
    r"\p{Extended_Pictographic}"
    r"(?:\p{Emoji_Modifier}|\x{FE0F}|\x{200D}\p{Extended_Pictographic})*"
)
_FLAG = r"\p{Regional_Indicator}{2}"
# tried in this order at each place
WORD = "|".join(
    (
        _ADDRESS,
        _EMAIL,
        _ABBREVIATION,
        _NUMBER,
        _VERSION,
        _PLUS_PLUS,
        _PLAIN_WORD,
        _UNSPACED_CHARACTER,
        _EMOJI,
        _FLAG,
    )
)

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
