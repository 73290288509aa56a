"""Texts without certain tokens: what remains is what a model could learn if these had not been there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tokensieve.auditing.cleaning.seam import Seam
from tokensieve.errors import InputError
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer

GLUE = ("-", "_", "/", "#", ":")
_NUMBER = re.compile(r"\d{2,}")


def mask_fields(
    texts: Mapping[str, pl.Series], tokens: Sequence[str], tokenizer: Tokenizer, alike: bool = False
) -> tuple[dict[str, pl.Series], int]:
    """`mask_texts` for the columns of one table, each with the tokens of its own field where there are several.

    Args:
        texts: column → n texts, String, null where a row has none.
        tokens: token types; with several columns each word is written `column:word`.
        tokenizer: the one that the tokens come from, or that of one field.
        alike: the columns are no fields but the two sides of pairs, and every token is cut from both.

    Returns:
        The texts, and how many rows were changed.

    Raises:
        InputError: no token, one that the tokenizer would never write, or one of no field.
    """
    base = tokenizer.base if isinstance(tokenizer, FieldTokenizer) else tokenizer
    own = {column: list(tokens) for column in texts}
    if not alike and (len(texts) > 1 or isinstance(tokenizer, FieldTokenizer)):
        fields = FieldTokenizer(base, tuple(texts))  # type: ignore[arg-type]
        own = {column: [] for column in texts}
        for token in tokens:
            field = fields.field_of(token)
            if not field:
                raise InputError(f"{token!r} is of no field: write {', '.join(f'{name}:TOKEN' for name in texts)}")
            own[field].append(" ".join(word.removeprefix(field + ":") for word in token.split(" ")))
    masked, changed = {}, np.zeros(max(map(len, texts.values()), default=0), dtype=bool)
    for column, mine in own.items():
        masked[column] = texts[column]
        if mine or not tokens:
            held = texts[column].is_not_null()
            masked[column] = (
                texts[column].clone().scatter(held.arg_true(), mask_texts(texts[column].filter(held), mine, base)[0])
            )
        changed |= (masked[column] != texts[column]).fill_null(False).to_numpy()
    return masked, int(changed.sum())


def mask_texts(texts: pl.Series, tokens: Sequence[str], tokenizer: Tokenizer) -> tuple[pl.Series, int]:
    """Cut every occurrence of the tokens out of the texts, n-grams as runs of words, until none is left.

    Of a code such as INV-38977 the number goes with its letters.

    The place stays empty: a word put there would carry the label as well as the one that was cut. Around it nothing is left that
    shows where it was (`tokensieve.auditing.cleaning.seam`); all else stays as it is.

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
            i
            for n in lengths
            for start in range(len(words) - n + 1)
            if words[start : start + n] in wanted
            for i in range(start, start + n)
        }
        if not cut:
            return text
        cut = _whole_codes(text, spans, cut)
        seam = Seam(text)
        for i in sorted(cut):
            seam.cut(*spans[i][:2])
        shorter = seam.finish()
        if shorter == text:
            return text
        text = shorter


def _whole_codes(text: str, spans: list[tuple[int, int, str]], cut: set[int]) -> set[int]:
    """The words to cut, with the numbers that are glued to them: of [INV-38977] neither the number nor the brackets stay."""
    out = set(cut)
    for i in sorted(cut):
        for step in (1, -1):
            j = i + step
            while 0 <= j < len(spans) and spans[i][2].isalpha():
                between = text[spans[j - 1][1] : spans[j][0]] if step > 0 else text[spans[j][1] : spans[j + 1][0]]
                if between not in GLUE or not _NUMBER.fullmatch(spans[j][2]):
                    break
                out.add(j)
                j += step
    return out
