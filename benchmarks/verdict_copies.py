"""Near copies: which of planted ones are missed, and which documents are accused wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.evidence.direct_copies import direct_originals
from tokensieve.evidence.duplicates import near_duplicates
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream
from verdict_data import Documents, Outcome, Verdict, others

MIN_WORDS = 8  # of an original
N_COPIES = 90
MIN_SHARED = 0.5  # of the words of the longer text; with less, nobody calls it a copy

Words = list[str]
EDITS: dict[str, Callable[[Words, np.random.Generator], Words]] = {
    "last word cut": lambda words, rng: words[:-1],
    "first word cut": lambda words, rng: words[1:],
    "word added": lambda words, rng: _with(words, "qovari", rng),
    "word doubled": lambda words, rng: _doubled(words, rng),
    "capitals and a full stop": lambda words, rng: [*(word.upper() for word in words), "."],
}


def _with(words: Words, word: str, rng: np.random.Generator) -> Words:
    place = int(rng.integers(len(words) + 1))
    return [*words[:place], word, *words[place:]]


def _doubled(words: Words, rng: np.random.Generator) -> Words:
    place = int(rng.integers(len(words)))
    return [*words[:place], words[place], *words[place:]]


def missed_copies(documents: Documents, seed: int) -> Outcome:
    """Copies with a small edit, of texts of eight words or more: how many are not found."""
    rng = np.random.default_rng(seed)
    long_enough = [text for text in documents.texts if len(text.split()) >= MIN_WORDS]
    chosen = [long_enough[i] for i in rng.permutation(len(long_enough))[:N_COPIES].tolist()]
    edits = list(EDITS.values())
    copies = [" ".join(edits[i % len(edits)](text.split(), rng)) for i, text in enumerate(chosen)]
    originals = _originals(documents.texts, copies)
    return Outcome(len(copies), int((originals[len(documents.texts) :] < 0).sum()))


def false_copies(documents: Documents, seed: int) -> Outcome:
    """Documents that are said to nearly repeat another, and share less than half of its words."""
    rng = np.random.default_rng(seed)
    everything = [*documents.texts, *others(documents, seed).texts]
    texts = [everything[i] for i in rng.permutation(len(everything)).tolist()]
    originals = _originals(texts, [])
    accused = np.flatnonzero(originals >= 0).tolist()
    false = 0
    for document in accused:
        own = _words_of(texts[document])
        other = _words_of(texts[int(originals[document])])
        false += len(own & other) < MIN_SHARED * max(len(own), len(other), 1)
    return Outcome(len(accused), false)


def _words_of(text: str) -> set[str]:
    """Letters and digits only: "Ok." and "ok" are the same."""
    return set(re.findall(r"\w+", text.lower()))


def _originals(texts: list[str], tests: list[str]) -> Ints:
    """The document that each text, then each test, repeats (`direct_originals`)."""
    streams = [TokenStream.of(pl.Series(texts), WordTokenizer())]
    if tests:
        streams.append(TokenStream.of(pl.Series(tests), WordTokenizer()))
    first = near_duplicates(streams)
    is_in_group = np.bincount(first, minlength=len(first))[first] > 1
    everything = pl.Series([*texts, *tests], dtype=pl.String)
    words = WordTokenizer().split(everything.filter(pl.Series(is_in_group)))
    return direct_originals(first, words, len(texts))


VERDICTS = (
    Verdict(
        "… duplicate or nearly duplicate training documents: copies not reported",
        "copies with a word added or doubled, the first or last word cut, or in capitals, of texts "
        f"of {MIN_WORDS} words or more",
        "planted copy",
        missed_copies,
    ),
    Verdict(
        "… repeat or nearly repeat an earlier one",
        "the two share less than half of their words",
        "accused document",
        false_copies,
        n_generated=10,
    ),
)
