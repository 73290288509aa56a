"""What to cut from the texts so that nothing of a finding is left in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from tokensieve.auditing.artefacts.shapes import NUMBER_WORDS
from tokensieve.auditing.artefacts.slots import whole_phrases
from tokensieve.auditing.artefacts.suspects import FIXED_PHRASE
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.fixed_runs import with_fixed_runs
from tokensieve.auditing.masking import mask_texts, places_of_tokens
from tokensieve.auditing.phrases import quoted
from tokensieve.auditing.unspaced_phrases import whole_unspaced
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import CountedCorpus

MAX_TOKEN_CHARACTERS = 200  # of a token that a command can name
MAX_RATING_SCALE = 100  # 7/2019 is a date, not a rating
MAX_COMPLETE_SCALE = 10  # of 7/10 all of 0/10 to 10/10 are cut, whether training has them or not
FRACTIONS = ("", ".0", ".25", ".5", ".75")  # of a rating in words that new documents may contain
MAX_TEXTS_TRIED = 300  # of a finding
MOST_LEFT = 0.05  # of the texts with a number: it stood elsewhere than in a date or a code, too
_NUMBER = re.compile(r"[\d:.,/-]+")
_COUNTED = r"(?:\d{1,2}(?:[.,]\d{1,2})?|one|two|three|four|five|six|seven|eight|nine|ten|zero)"
_IN_WORDS = r"(?: 1/2)?(?: (?:stars?|points?))? out of (?:10|ten)"
_RATING_IN_WORDS = rf"\b{_COUNTED}(?:{_IN_WORDS}| / 10| /10|/ 10)\b"
_IN_EVERY_RATING = ["out of", "/10", "/ 10"]  # one of these; few texts have any, and go on
_TEXTS_AT_ONCE = 4096  # in which ratings are looked for: the search takes 20 times their memory
_OUT_OF_TEN = re.compile(r"^(?:[\d.]+|n)/10$|\bout of (?:10|ten)$")
_RATING = re.compile(r"[\d.]+/\d{1,3}")


def with_removal(finding: Finding, train: CountedCorpus) -> Finding:
    """The finding with the tokens that `mask` can cut, and with all that it should cut."""
    tokenizer = train.vocabulary.tokenizer
    maskable = tuple(token for token in finding.tokens if _can_be_cut(token, tokenizer))
    if not maskable:
        return finding
    known_tokens = [str(token) for token in train.counts.tokens]
    phrases: Sequence[str] = maskable
    if FIXED_PHRASE in finding.signs and not isinstance(tokenizer, FieldTokenizer):
        phrases = _whole_phrases(maskable, finding, train)
    mask = tokens_to_cut(phrases, known_tokens, tokenizer)
    mask = tuple(dict.fromkeys([*mask, *_ratings_in_words([*maskable, *phrases], train)]))
    texts = _texts_of(finding, train).head(MAX_TEXTS_TRIED)
    if len(mask) > 1:
        mask = _without_parts_of_others(mask, texts, tokenizer)
    mask = with_fixed_runs(mask, texts, tokenizer)
    whole = whole_unspaced(mask, texts, tokenizer)
    if not whole:  # nothing but letters of other words
        return finding
    details = finding.details
    phrases = [token for token in whole if token not in finding.tokens and token not in mask]
    if phrases:
        details = (*details, f"in full: {quoted(phrases)}")
    return replace(finding, maskable=maskable, mask=whole, details=details)


def _texts_of(finding: Finding, train: CountedCorpus) -> pl.Series:
    """The training documents of a finding."""
    rows = finding.rows.filter(pl.col("part") == "train")["row"]
    return train.corpus.texts.gather(np.flatnonzero(np.isin(train.corpus.rows, rows)))


def _without_parts_of_others(
    tokens: Sequence[str], texts: pl.Series, tokenizer: Tokenizer
) -> tuple[str, ...]:
    """The tokens without the numbers that go when the others are cut.

    Of the dates in 2018, cutting 2018 removes whole dates. Cutting their days and months too would
    remove the same numbers from all other texts.
    """
    kept = list(tokens)
    words = tokenizer.split(texts)
    for token in reversed(tokens):
        others = [other for other in kept if other != token]
        if not _NUMBER.fullmatch(token) or not others:
            continue
        contain = texts.gather(places_of_tokens([token], words))
        if contain.is_empty():  # as most ratings on a scale are
            kept = others
            continue
        without_others, _ = mask_texts(contain, others, tokenizer)
        n_left = len(places_of_tokens([token], tokenizer.split(without_others)))
        if n_left <= MOST_LEFT * len(contain):
            kept = others
    return tuple(kept)


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
    token_order = pl.Series(known_tokens, dtype=pl.String)
    ratings = token_order.filter(token_order.str.contains(rf"^[\d.]+/{scale}$")).to_list()
    if scale <= MAX_COMPLETE_SCALE:
        ratings += [f"{rating}/{scale}" for rating in range(scale + 1)]

    def is_one_token(text: str) -> bool:
        return [name for _, _, name in tokenizer.spans(text)] == [text]

    return [rating for rating in ratings if is_one_token(rating)]


def _written_ratings(train: CountedCorpus) -> set[str]:
    """The ratings out of ten of the training documents, as they are written, in lower case."""
    texts = train.corpus.texts
    batches = [texts] if isinstance(texts, pl.Series) else texts.batches()
    written: set[str] = set()
    for batch in batches:
        for first in range(0, len(batch), _TEXTS_AT_ONCE):
            lower = batch[first : first + _TEXTS_AT_ONCE].str.to_lowercase()
            candidates = lower.filter(lower.str.contains_any(_IN_EVERY_RATING))
            ratings = candidates.str.extract_all(_RATING_IN_WORDS).explode()
            written.update(ratings.drop_nulls().unique())
    return written


def _ratings_in_words(tokens: Sequence[str], train: CountedCorpus) -> list[str]:
    """All ratings on the scale of 7/10: 9.5/10, "7 out of 10", "two stars out of ten", "7 / 10".

    Those that training documents contain, and those that new documents are likely to contain.
    """
    tokenizer = train.vocabulary.tokenizer
    is_out_of_ten = any(_OUT_OF_TEN.search(token) for token in tokens)
    if not is_out_of_ten or not isinstance(tokenizer, WordTokenizer):
        return []
    written = _written_ratings(train)
    likely = {f"{rating} stars out of 10" for rating in range(2, MAX_COMPLETE_SCALE + 1)}
    for scale in ("10", "ten"):
        likely |= {f"{word} out of {scale}" for word in NUMBER_WORDS}
        likely |= {
            f"{rating}{fraction} out of {scale}"
            for rating in range(MAX_COMPLETE_SCALE + 1)
            for fraction in FRACTIONS
        }
    grams = {" ".join(name for _, _, name in tokenizer.spans(text)) for text in written | likely}
    return [f"n/{MAX_COMPLETE_SCALE}", *sorted(grams)]


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
