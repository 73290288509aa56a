"""What to cut from the texts so that nothing of a finding is left in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from tokensieve.auditing.artefacts.slots import whole_phrases
from tokensieve.auditing.artefacts.suspects import FIXED_PHRASE
from tokensieve.auditing.findings import Finding
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer
from tokensieve.text.vocabulary import CountedCorpus

MAX_TOKEN_CHARACTERS = 200  # of a token that a command can name
MAX_RATING_SCALE = 100  # 7/2019 is a date, not a rating
MAX_COMPLETE_SCALE = 10  # of 7/10 all of 0/10 to 10/10 are cut, whether training has them or not
_RATING = re.compile(r"[\d.]+/\d{1,3}")


def with_removal(finding: Finding, train: CountedCorpus) -> Finding:
    """The finding with the tokens that `mask` can cut, and with all that it should cut."""
    tokenizer = train.vocabulary.tokenizer
    maskable = tuple(token for token in finding.tokens if _can_be_cut(token, tokenizer))
    if not maskable:
        return finding
    known_tokens = [str(token) for token in train.counts.tokens]
    mask = tokens_to_cut(maskable, known_tokens, tokenizer)
    if FIXED_PHRASE in finding.signs and not isinstance(tokenizer, FieldTokenizer):
        phrases = _whole_phrases(maskable, finding, train)
        mask = tokens_to_cut(phrases, known_tokens, tokenizer)
    return replace(finding, maskable=maskable, mask=mask)


def _can_be_cut(token: str, tokenizer: Tokenizer) -> bool:
    """Whether a token is words of a text: no formatting, no value of another column."""
    is_value = isinstance(tokenizer, FieldTokenizer) and tokenizer.is_value(token)
    return len(token) <= MAX_TOKEN_CHARACTERS and not is_formatting(token) and not is_value


def tokens_to_cut(
    tokens: Sequence[str], known_tokens: Sequence[str], tokenizer: Tokenizer
) -> tuple[str, ...]:
    """The tokens; for a rating such as 7/10, also all other ratings on its scale."""
    cut = list(tokens)
    scales = {int(token.partition("/")[2]) for token in tokens if _RATING.fullmatch(token)}
    for scale in sorted(scales):
        if scale <= MAX_RATING_SCALE:
            cut += _ratings(scale, known_tokens, tokenizer)
    return tuple(dict.fromkeys(cut))


def _ratings(scale: int, known_tokens: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """All ratings on a scale: 0/10, 1/10, …, and those of the training documents, as 7.5/10."""
    known = pl.Series(known_tokens, dtype=pl.String)
    ratings = known.filter(known.str.contains(rf"^[\d.]+/{scale}$")).to_list()
    if scale <= MAX_COMPLETE_SCALE:
        ratings += [f"{rating}/{scale}" for rating in range(scale + 1)]

    def is_one_token(text: str) -> bool:
        return [name for _, _, name in tokenizer.spans(text)] == [text]

    return [rating for rating in ratings if is_one_token(rating)]


def _whole_phrases(words: Sequence[str], finding: Finding, train: CountedCorpus) -> list[str]:
    """The phrases around the words of a fixed phrase, in all their variants.

    Cutting "tablet" from "sent from my tablet" beside "sent from my phone" would leave what gives
    the label away.
    """
    rows = finding.rows.filter(pl.col("part") == "train")["row"]
    documents = np.flatnonzero(np.isin(train.corpus.rows, rows))
    phrases: list[str] = []
    for word in words:
        around = whole_phrases(word, documents, train.corpus.texts, train.vocabulary.tokenizer)
        phrases += around or [word]
    return phrases
