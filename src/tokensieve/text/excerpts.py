"""A token where it occurs in a document: keyword in context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokensieve.read.corpus import Corpus
from tokensieve.text.formatting import find_feature, is_formatting
from tokensieve.text.tokenizers import Tokenizer

Place = tuple[int, int]  # of characters


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
        """The first of the tokens in a document (at `place`, in characters, if that is known) with 70 characters on either side;
        the document's start, or its end, if none of them is a word in it."""
        around, text = 70, str(corpus.texts[document])
        row, label = int(corpus.rows[document]), corpus.classes[corpus.labels[document]]
        words = [token for token in tokens if not is_formatting(token)]
        if place is None and words:
            spans, runs = tokenizer.spans(text), [word.split(" ") for word in words]
            names = [name for _, _, name in spans]
            starts = ((i, run) for i, name in enumerate(names) for run in runs if name == run[0])
            ends = ((i, i + len(run) - 1) for i, run in starts if names[i : i + len(run)] == run)
            place = min(((spans[i][0], spans[j][1]) for i, j in ends), default=None)
        form = next(filter(is_formatting, tokens), "")
        place = place or find_feature(text, form)
        if place is None:
            last = ("final" in form or "⟨ends" in form) and len(text) > 2 * around
            return cls(
                row, label, "", "", f"…{text[-2 * around :]}" if last else text[: 2 * around]
            )
        start, end = place
        low, high = max(0, start - around), min(len(text), end + around)
        before, after = text[low:start], text[end:high]
        before = ("…" + before.partition(" ")[2]) if low else before
        after = (after.rpartition(" ")[0] + "…") if high < len(text) else after
        return cls(row, label, before, text[start:end], after)
