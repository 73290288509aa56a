"""Where tokens occur in their documents: keyword in context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import Tokenizer

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
