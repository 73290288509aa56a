"""What an audit found that someone should act on: one thing each, with its evidence, its documents and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.escape import html_table, shown
from tokensieve.evidence.shares import Share
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import Tokenizer

ROWS = {"token": pl.String, "part": pl.String, "row": pl.Int64, "label": pl.String}
LISTED_ROWS = 1000  # of a finding in findings.json; findings.csv has them all


class Level(StrEnum):
    """How serious, for people: a finding that touches 5% of the documents is high, one below 1% is low."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, repr=False)
class Finding:
    """One thing to act on.

    Attributes:
        kind: the name of the check that found it.
        severity: about the fraction of documents whose prediction it puts in doubt; findings are ranked by it.
        label: the class concerned, or "".
        tokens: the tokens concerned; of a shortcut, those that occur together or share a word, the least word-like first.
        signs: how the tokens differ from ordinary words ("number", "fixed place", …).
        evidence: name → fraction of documents with its interval.
        documents: how many are concerned, in training and test data.
        rows: token, part ("train" or "test"), row, label of these documents.
        examples: a few of them.
        title: of the check.
        headline: one sentence with its number, without a full stop.
        details: what it rests on, each a short clause.
        action: what to do about it.
    """

    kind: str
    severity: float
    label: str = ""
    tokens: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    evidence: dict[str, Share] = field(default_factory=dict)
    documents: int = 0
    rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ROWS))
    examples: tuple[Excerpt, ...] = ()
    title: str = ""
    headline: str = ""
    details: tuple[str, ...] = ()
    action: str = ""

    @property
    def level(self) -> Level:
        """High from 5% of the documents, low below 1%."""
        return Level.HIGH if self.severity >= 0.05 else Level.MEDIUM if self.severity >= 0.01 else Level.LOW

    @property
    def maskable(self) -> list[str]:
        """Its tokens that a command can cut from a text: neither formatting nor longer than 200 characters."""
        return [token for token in self.tokens if not is_formatting(token) and len(token) <= 200]

    def __repr__(self) -> str:
        about = ", ".join(shown(token, 40) for token in self.tokens[:3]) or shown(self.label, 40) * bool(self.label)
        return f"Finding({self.kind}{f': {about}' if about else ''}; {self.level.value}, {self.documents:,} documents)"

    def _repr_html_(self) -> str:
        shares = [(name, *share.to_dict().values()) for name, share in self.evidence.items()]
        return html_table(repr(self), ("evidence", "documents", "of", "fraction", "low", "high"), shares)

    def to_dict(self) -> dict[str, Any]:
        """An entry of findings.json."""
        return {
            "kind": self.kind,
            "title": self.title,
            "headline": self.headline,
            "level": self.level.value,
            "severity": round(self.severity, 6),
            "class": self.label,
            "tokens": list(self.tokens),
            "signs": list(self.signs),
            "evidence": {name: share.to_dict() for name, share in self.evidence.items()},
            "details": list(self.details),
            "action": self.action,
            "documents": self.documents,
            "rows": self.rows.select("token", "part", "row", "label").to_dicts()[:LISTED_ROWS],
            "examples": [vars(one) for one in self.examples],
        }


def rows_of(documents: Ints, corpus: Corpus, part: str = "train", token: str = "") -> pl.DataFrame:
    """Documents as rows of their source: token, part, row, label.

    Args:
        documents: indices into the corpus.
        corpus: the documents of that part.
        part: "train" or "test".
        token: why they are listed, or "".
    """
    labels = pl.Series([str(name) for name in corpus.classes], dtype=pl.String).gather(corpus.labels[documents])
    frame = pl.DataFrame({"row": corpus.rows[documents], "label": labels})
    return frame.select(pl.lit(token).alias("token"), pl.lit(part).alias("part"), pl.col("row").cast(pl.Int64), "label")


AROUND = 70  # characters on either side


@dataclass(frozen=True)
class Excerpt:
    """A token where it occurs.

    Attributes:
        row: row of the document in its source, from 1.
        label: its class.
        before, token, after: the text around it, and it as it is written there.
        looks_like: the class that the document looks like, where its label is in doubt.
    """

    row: int
    label: str
    before: str
    token: str
    after: str
    looks_like: str = ""


def occurrences(text: str, tokens: Iterable[str], tokenizer: Tokenizer) -> Iterator[tuple[int, int, int, int]]:
    """(start, end) in characters, and the place among the words with their number, of each of the tokens in a text."""
    spans = tokenizer.spans(text)
    words = [word for _, _, word in spans]
    for token in tokens:
        parts = token.split(" ")
        for i in range(len(words) - len(parts) + 1):
            if words[i] == parts[0] and words[i : i + len(parts)] == parts:
                yield spans[i][0], spans[i + len(parts) - 1][1], i, len(words)


def passage(
    corpus: Corpus, document: int, tokens: Sequence[str], tokenizer: Tokenizer, place: tuple[int, int] | None = None
) -> Excerpt:
    """The first of the tokens in a document, with the text around it; its start, or its end, where none is a word of it.

    Args:
        corpus: the documents.
        document: which of them.
        tokens: looked for.
        tokenizer: that found them.
        place: where one stands, (start, end) in characters, if that is known.
    """
    text = str(corpus.texts[document])
    row, label = int(corpus.rows[document]), corpus.classes[corpus.labels[document]]
    words = [token for token in tokens if not is_formatting(token)]
    found = place or (words and next((o[:2] for o in sorted(occurrences(text, words, tokenizer))), None)) or None
    if found is None:
        form = " ".join(token for token in tokens if is_formatting(token))
        last = any(word in form for word in ("ends", "trailing", "final")) and len(text) > 2 * AROUND
        return Excerpt(row, label, "", "", f"…{text[-2 * AROUND :]}" if last else text[: 2 * AROUND])
    start, end = found
    low, high = max(0, start - AROUND), min(len(text), end + AROUND)
    before, after = text[low:start], text[end:high]
    before = ("…" + before.partition(" ")[2]) if low else before
    after = (after.rpartition(" ")[0] + "…") if high < len(text) else after
    return Excerpt(row, label, before, text[start:end], after)


def holders(counts: Counts, types: Ints) -> list[Ints]:
    """For each type the documents that contain it."""
    columns = sp.csc_array(counts.matrix[:, types])
    return [columns.indices[columns.indptr[t] : columns.indptr[t + 1]].astype(np.int64) for t in range(len(types))]


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
