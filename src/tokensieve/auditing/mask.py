"""Texts without certain tokens: what remains is what a model could learn if these had not been there."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer


def mask_texts(texts: pl.Series, tokens: Sequence[str], tokenizer: Tokenizer) -> tuple[pl.Series, int]:
    """Cut every occurrence of the tokens out of the texts, n-grams as runs of words, until none is left.

    The place stays empty: a word put there would carry the label as well as the one that was cut.

    Args:
        texts: String, without nulls.
        tokens: token types as the tokenizer writes them, words of an n-gram joined by one space.
        tokenizer: the one that the tokens come from.

    Returns:
        The texts, and how many of them were changed.

    Raises:
        InputError: no token, or one that the tokenizer would never write.
    """
    if not tokens:
        raise InputError("no token to mask: name one with --token, or an audit that found some with --audit")
    wanted = {tuple(token.split(" ")) for token in tokens}
    for gram in sorted(wanted) if isinstance(tokenizer, WordTokenizer) else ():
        for word in gram:
            if [found for _, _, found in tokenizer.spans(word)] != [word]:
                raise InputError(f"{' '.join(gram)!r} is no token: the tokenizer never writes the word {word!r}")
    lengths = sorted({len(gram) for gram in wanted})
    first = pl.Series(sorted({gram[0] for gram in wanted}))
    near = tokenizer.split(texts).list.eval(pl.element().is_in(first.implode())).list.any()
    whole = texts.to_list()
    changed = 0
    for k in near.arg_true():
        text = _without(whole[k], wanted, lengths, tokenizer)
        changed += text != whole[k]
        whole[k] = text
    return pl.Series(texts.name, whole, dtype=pl.String), changed


def _without(text: str, wanted: set[tuple[str, ...]], lengths: list[int], tokenizer: Tokenizer) -> str:
    """Cutting brings words together that may form the n-gram anew, so it is repeated; each round makes the text shorter."""
    while True:
        spans = tokenizer.spans(text)
        words = tuple(word for _, _, word in spans)
        cut = {
            i for n in lengths for start in range(len(words) - n + 1) if words[start : start + n] in wanted
            for i in range(start, start + n)
        }  # fmt: skip
        if not cut:
            return text
        kept, at = [], 0
        for i in sorted(cut):
            start, end = spans[i][:2]
            kept.append(text[at:start])
            if text[max(start - 1, 0) : start].isalnum() and text[end : end + 1].isalnum():
                kept.append(" ")  # neighbours without a space between them would become one word
            at = max(at, end)
        shorter = "".join([*kept, text[at:]])
        if shorter == text:
            return text
        text = shorter
