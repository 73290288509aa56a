"""Phrases that the sentences of an audit share: quoted tokens, documents of a class, formatting in
words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokensieve.escape import IN_CELL, IN_SENTENCE, for_display
from tokensieve.evidence.paired import PairedDifference
from tokensieve.text.formatting import is_formatting
from tokensieve.wording import signed


def of_class(label: str, noun: str = "") -> str:
    """Names the members of a class: "positive", with a noun "positive documents".

    A class whose name is not a word is "labelled 5", or "documents labelled 5".
    """
    name = for_display(label, IN_SENTENCE)
    is_word = re.fullmatch(r"[^\W\d_]{2,}", label) is not None
    phrase = f"{name} {noun}" if is_word else f"{noun} labelled {name}"
    return phrase.strip()


def form_clause(token: str) -> str:
    """A clause about documents with a formatting feature: ⟨ends "!"⟩ → end in “!”."""
    field, _, name = token.rpartition(":⟨") if not token.startswith("⟨") else ("", "", token[1:])
    name = name.removesuffix("⟩")
    if name.startswith("length "):
        minimum, _, below = name.removeprefix("length ").removesuffix("+").partition("–")
        size = f"{minimum} to {int(below) - 1:,}" if below else f"{int(minimum):,} or more"
        clause = f"are {size} words long"
    elif name in _CLAUSES:
        clause = _CLAUSES[name]
    elif name.startswith(("ends ", 'starts "')):
        verb, _, feature = name.partition("s ")
        feature = re.sub('"(.+)"', r"“\1”", feature.removeprefix("with "))
        clause = f"{verb} {'in' if verb == 'end' else 'with'} {feature}"
    elif name in _WITH_ARTICLE:
        clause = f"contain {'an' if name[0] in 'aei@' else 'a'} {name}"
    else:
        clause = f"contain “{name}”"
    return f"{clause} in {for_display(field, IN_CELL)}" if field else clause


UNSPECIFIC_FEATURES = frozenset(
    {"symbol", "row of signs", "number", "code", "trailing spaces", "… character", ": colon"}
)
_WITH_ARTICLE = (
    "tab|line break|blank line|no-break space|invisible character|bullet list|numbered "
    "list|heading|table|[link](…)|e-mail address|@name|#tag|percentage|sum of money|emoji|emoticon"
).split("|")
_CLAUSES = {
    "no final stop": "end without a full stop",
    "trailing spaces": "end in white space",
    "leading spaces": "start with white space",
    "starts in lower case": "start with a lower-case letter",
    "starts with a quote": "start with a quotation mark",
    "starts with a digit": "start with a digit",
    "starts with a symbol": "start with a symbol or an emoji",
    "ends with a symbol": "end in a symbol or an emoji",
    "nothing but capitals": "are written in capitals",
    "Every Word Capitalized": "capitalize every word",
    "...": "contain “...” or “…”",
    'ends "..."': "end in “...” or “…”",
    "ends with a quote": "end in a quotation mark",
    "… character": "contain the single character “…”",
    "symbol": "contain a symbol such as |, = or ~",
    "row of signs": "contain a row of symbols such as --- or ***",
    "ALL CAPS": "contain a word of four or more capitals",
    "no capitals": "contain no capital letter",
    "2 spaces": "contain double spaces",
    "3+ spaces": "contain three or more spaces in a row",
    "**bold**": "contain **bold** type",
    "code": "contain code",
    "URL": "contain a web address",
    "HTML": "contain HTML",
    "HTML tag": "contain an HTML tag",
    "HTML entity": "contain an HTML entity",
    "number": "contain a digit",
    "n/10 rating": "contain a rating such as 7/10",
    "mojibake": "contain broken characters",
    "— dash": "contain a dash",
    "; semicolon": "contain a semicolon",
    ": colon": "contain a colon before a space",
    "(parentheses)": "contain parentheses",
    '"quotes"': "contain double quotation marks",
    "curly quotes": "contain curly quotes",
    "repeated letters": "contain a letter three times in a row",
    "*asterisks*": "contain a word in *asterisks*",
}


def is_unspecific(token: str) -> bool:
    """Whether a formatting feature only says which signs occur, or how a text ends."""
    name = token.rpartition("⟨")[2].removesuffix("⟩")
    return name in UNSPECIFIC_FEATURES or name.startswith(("ends ", 'starts "'))


def quoted(tokens: Sequence[str], most: int = 5) -> str:
    """“a”, “b” and 3 more; formatting keeps its brackets."""
    names = [
        for_display(token, IN_SENTENCE)
        if is_formatting(token)
        else f"“{for_display(token, IN_SENTENCE)}”"
        for token in tokens[:most]
    ]
    if len(tokens) > most:
        return f"{', '.join(names)} and {len(tokens) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def change_clause(difference: PairedDifference) -> str:
    """A clause on a change in accuracy, with its interval, and whether it is within chance."""
    low, high = signed(100 * difference.low, 1), signed(100 * difference.high, 1)
    clause = f"{signed(100 * difference.change, 1)} points (95% CI {low} to {high})"
    if difference.only_before + difference.only_after == 0:
        return "no prediction changes"
    if not difference.is_significant:
        return f"{clause}, a difference within chance"
    return clause
