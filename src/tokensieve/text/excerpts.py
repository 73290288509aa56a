"""A token where it occurs in a document: keyword in context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokensieve.read.corpus import Corpus
from tokensieve.text.formatting import find_feature, is_formatting
from tokensieve.text.matches import TokenSpan
from tokensieve.text.tokenizers import Tokenizer

Place = tuple[int, int]  # start and end, in characters

CHARACTERS_AROUND = 70  # on either side of a token: a line of the page


@dataclass(frozen=True)
class Excerpt:
    """A token where it occurs.

    Attributes:
        row: row of the document in its source, from 1.
        label: its class.
        before, token, after: the text around the token, and the token as it is written there.
        looks_like: the class that the document looks like, if its label is in doubt.
    """

    row: int
    label: str
    before: str
    token: str
    after: str
    looks_like: str = ""

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        document: int,
        tokens: Sequence[str],
        tokenizer: Tokenizer,
        place: Place | None = None,
    ) -> Excerpt:
        """The first of some tokens in a document, with the text on either side.

        If none of them is a word in it, this is the beginning of the document, or its end.

        Args:
            corpus: the documents.
            document: index of one.
            tokens: words, n-grams or features of formatting.
            tokenizer: splits the text into the words.
            place: where the token is, if that is known.
        """
        text = str(corpus.texts[document])
        row = int(corpus.rows[document])
        label = corpus.classes[corpus.labels[document]]
        feature = next(filter(is_formatting, tokens), "")
        words = [token for token in tokens if not is_formatting(token)]
        if place is None and words:
            place = _first_place(tokenizer.spans(text), words)
        place = place or find_feature(text, feature)
        if place is None:
            return cls(row, label, "", "", _edge(text, feature))
        start, end = place
        return cls(row, label, _before(text, start), text[start:end], _after(text, end))


def _first_place(spans: Sequence[TokenSpan], tokens: Sequence[str]) -> Place | None:
    """Find the first place of any of the words or n-grams; None if none occurs."""
    names = [span.token for span in spans]
    runs = [token.split(" ") for token in tokens]
    places = []
    for first, name in enumerate(names):
        for run in runs:
            if name == run[0] and names[first : first + len(run)] == run:
                last = first + len(run) - 1
                places.append((spans[first].start, spans[last].end))
    return min(places, default=None)


def _edge(text: str, feature: str) -> str:
    """The beginning of a text, or its end if the feature is about the end."""
    is_about_end = "final" in feature or "⟨ends" in feature
    if is_about_end and len(text) > 2 * CHARACTERS_AROUND:
        return f"…{text[-2 * CHARACTERS_AROUND :]}"
    return text[: 2 * CHARACTERS_AROUND]


def _before(text: str, end: int) -> str:
    """The text before a place, from the beginning of a word on."""
    start = max(0, end - CHARACTERS_AROUND)
    part = text[start:end]
    return "…" + part.partition(" ")[2] if start else part


def _after(text: str, start: int) -> str:
    """The text behind a place, up to the end of a word."""
    end = min(len(text), start + CHARACTERS_AROUND)
    part = text[start:end]
    return part.rpartition(" ")[0] + "…" if end < len(text) else part
