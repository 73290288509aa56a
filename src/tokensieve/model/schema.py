"""What the files of a model must hold: types, shapes, ranges and finiteness, checked before any of it is used.

A checksum tells damage from the original; it does not tell a model from nonsense that somebody signed with the same checksum.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta
from numpy.typing import NDArray

from tokensieve.text.formatting import formatting_names
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, tokenizer_from_dict

LARGEST = 1e100  # of any number in a model: differences and products of two stay finite
MOST_NGRAMS = 100
Whole = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Rate = Annotated[float, Meta(ge=0, le=LARGEST)]
Names = Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of `AttentionClassifier`."""

    ngrams: Annotated[int, Meta(ge=1, le=MOST_NGRAMS)]
    min_documents: Whole
    formatting: bool
    batch_size: Whole
    score_rate: Rate
    value_rate: Rate
    max_epochs: Whole
    validation_share: Annotated[float, Meta(ge=0, lt=1)]
    random_state: Annotated[int, Meta(ge=0, lt=2**32)] | None


class _Words(msgspec.Struct, tag_field="kind", tag="words", forbid_unknown_fields=True):
    lowercase: bool
    line_breaks: bool
    pattern: Annotated[str, Meta(max_length=10_000)]
    html: bool | Literal["skip", "keep", "strip"]
    stop_words: list[str]


class _Pieces(msgspec.Struct, tag_field="kind", tag="pieces", forbid_unknown_fields=True):
    """The text must be JSON, so that it is never taken for a path."""

    json: Annotated[str, Meta(pattern=r"^\{")]


class _Fields(msgspec.Struct, tag_field="kind", tag="fields", forbid_unknown_fields=True):
    fields: Names
    base: _Words | _Pieces


class _Description(msgspec.Struct, forbid_unknown_fields=True):
    """Content of model.json."""

    format: Literal[2]
    kind: str
    sha256: str
    classes: Annotated[list[str | bool | int | float], Meta(min_length=2)]
    steps: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    sink: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] | None
    settings: _Settings
    tokenizer: _Words | _Pieces | _Fields
    words: Names
    formatting: list[str]


class Damaged(ValueError):
    """A model file that does not hold what it must; the message says which part."""


def checked(description: dict[str, Any], numbers: dict[str, NDArray[Any]]) -> Tokenizer:
    """Check all parts of a model of the current format; its tokenizer.

    Args:
        description: content of model.json.
        numbers: arrays of model.safetensors.

    Raises:
        Damaged: a part is missing, too many, or not what it must be.
    """
    try:
        found = msgspec.convert(description, _Description)
        json.dumps(description, ensure_ascii=False).encode()  # no half of a surrogate pair in any text
    except (msgspec.ValidationError, UnicodeEncodeError, OverflowError) as problem:
        raise Damaged(str(problem)) from None
    classes = description["classes"]
    _must(len({type(name) for name in classes}) == 1 and len(set(map(str, classes))) == len(classes), "classes")
    _must(not isinstance(classes[0], float) or bool((np.abs(classes) <= LARGEST).all()), "classes")
    _must(not isinstance(classes[0], int) or all(-(2**63) <= name < 2**63 for name in classes), "classes")
    _must(len(set(found.words)) == len(found.words), "words")
    _check_numbers(len(found.words), len(found.formatting), len(classes), numbers)
    try:
        tokenizer = tokenizer_from_dict(description["tokenizer"])
        tokenizer.split(pl.Series(["a pattern that cannot be used fails here"]))
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise Damaged(f"tokenizer: {' '.join(str(error).split())[:100]}") from None
    fields = tokenizer.fields if isinstance(tokenizer, FieldTokenizer) else ()
    _must(len(set(fields)) == len(fields), "tokenizer")
    features = set(found.formatting)
    _must(len(features) == len(found.formatting) and features <= set(formatting_names(fields)), "formatting")
    return tokenizer


def _check_numbers(words: int, features: int, classes: int, numbers: dict[str, NDArray[Any]]) -> None:
    levels = len(numbers) - 3
    expected = {"scores", "values", "prior", *(f"grams{n}" for n in range(2, 2 + levels))}
    _must(numbers.keys() == expected and levels < MOST_NGRAMS, "the arrays")
    types, below = words + features, words
    for n in range(2, 2 + levels):
        keys = numbers[f"grams{n}"]
        _must(keys.dtype == np.int64 and keys.ndim == 1, f"grams{n}")
        _must(not len(keys) or (keys[0] >= 0 and int(keys[-1]) < below * words), f"grams{n}")
        _must(bool((keys[1:] > keys[:-1]).all()), f"grams{n}")
        below = len(keys)
        types += below
    outputs = 1 if classes == 2 else classes
    for name, shape in (("scores", (types,)), ("values", (types, outputs)), ("prior", (outputs,))):
        array = numbers[name]
        _must(array.dtype == np.float64 and array.shape == shape, name)
        _must(bool((np.abs(array) <= LARGEST).all()), name)


def _must(holds: bool, part: str) -> None:
    if not holds:
        raise Damaged(f"{part}: not as a model has it")
