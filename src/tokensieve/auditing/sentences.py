"""Words that several findings share: tokens in quotation marks, and what each feature of formatting means."""

from __future__ import annotations

from collections.abc import Sequence

from tokensieve.escape import shown
from tokensieve.text.formatting import is_formatting

# what documents with a feature do; lengths and “ends …” are made by rule
_CLAUSES = {
    "no final stop": "end without a full stop",
    "trailing spaces": "end in white space",
    "leading spaces": "start with white space",
    "starts in lower case": "start in lower case",
    "starts with a quote": "start with a quotation mark",
    "starts with a digit": "start with a digit",
    "ALL CAPS": "contain a word in capitals",
    "no capitals": "contain no capital letter",
    "2 spaces": "contain double spaces",
    "3+ spaces": "contain three or more spaces in a row",
    "tab": "contain a tab",
    "line break": "contain a line break",
    "blank line": "contain a blank line",
    "no-break space": "contain a no-break space",
    "invisible character": "contain an invisible character",
    "**bold**": "contain **bold** type",
    "bullet list": "contain a bullet list",
    "numbered list": "contain a numbered list",
    "heading": "contain a heading",
    "table": "contain a table",
    "code": "contain code",
    "[link](…)": "contain a [link](…)",
    "URL": "contain a web address",
    "e-mail address": "contain an e-mail address",
    "HTML": "contain HTML",
    "@name": "contain an @name",
    "#tag": "contain a #tag",
    "number": "contain a digit",
    "n/10 rating": "contain a rating such as 7/10",
    "percentage": "contain a percentage",
    "sum of money": "contain a sum of money",
    "emoji": "contain an emoji",
    "emoticon": "contain an emoticon",
    "mojibake": "contain broken characters",
    "— dash": "contain a dash",
    "; semicolon": "contain a semicolon",
    ": colon": "contain a colon",
    "(parentheses)": "contain (parentheses)",
    '"quotes"': "contain quotation marks",
    "curly quotes": "contain curly quotes",
    "repeated letters": "contain a letter three times in a row",
    "*asterisks*": "contain a word in *asterisks*",
}

# the columns of an audit's tables, for readers of a page
TERMS = (
    (
        "Effect",
        "How much more a token is used in the class than elsewhere: the mean over documents of the sign of the class times the "
        "token's fraction of the document, corrected for unequal classes. The interval counts documents, not occurrences.",
    ),
    (
        "Posterior difference",
        "How exclusively a token belongs to the class: (occurrences in the class − occurrences elsewhere) / all occurrences, from "
        "−1 (never in the class) to +1 (only in it). With unequal classes an uninformative token is not at 0.",
    ),
    (
        "q",
        "Benjamini–Hochberg false-discovery rate: of the tokens with q below 0.05, about one in twenty predicts nothing.",
    ),
    ("Score", "What attention is made of: a document's attention is the softmax of its tokens' scores."),
    ("Value", "What a token adds to the logit when attended to; above zero it is evidence for the class."),
    (
        "Attention",
        "Mean attention to the token in documents containing it, relative to the average token; 1 is average.",
    ),
    (
        "Data and model",
        "Whether the token predicts the label (q below 0.05 for any class), and whether it receives more than average attention. "
        "Without evidence: its interval is tight around zero for every class. Too rare to tell: neither.",
    ),
)


def form_clause(token: str) -> str:
    """What documents with a feature of formatting do: ⟨ends "!"⟩ → end in "!"."""
    field, _, name = token.rpartition(":⟨") if not token.startswith("⟨") else ("", "", token[1:])
    name = name.removesuffix("⟩")
    if name.startswith("length "):
        words = name.removeprefix("length ").replace("–", " to ").replace("+", " or more")
        clause = f"are {words} words long"
    elif name.startswith("ends "):
        clause = f"end in {name.removeprefix('ends ').removeprefix('with ')}"
    else:
        clause = _CLAUSES.get(name, f'contain "{name}"')
    return f"{clause} in {shown(field, 30)}" if field else clause


def quoted(tokens: Sequence[str], most: int = 5) -> str:
    """“a”, “b” and 3 more; formatting keeps its brackets."""
    names = [shown(token, 40) if is_formatting(token) else f"“{shown(token, 40)}”" for token in tokens[:most]]
    if len(tokens) > most:
        return f"{', '.join(names)} and {len(tokens) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plural(n: int, one: str, many: str = "") -> str:
    """1 token, 2 tokens, 1,200 tokens."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
