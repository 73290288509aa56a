"""What the files of a model must hold.

A checksum does not tell a model from nonsense that somebody signed with the same checksum, so
types, shapes, ranges and finiteness of all parts are checked before any is used.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta

from tokensieve.arrays import Floats
from tokensieve.text.formatting import Formatting
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, tokenizer_from_dict

FORMAT = 2
LARGEST = 1e100  # of any number in a model: differences and products of two stay finite
MAX_LEVELS = 100  # n of the longest n-grams
MAX_PATTERN_LENGTH = 10_000  # characters; longer ones take seconds to compile
Whole = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Rate = Annotated[float, Meta(ge=0, le=LARGEST)]


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of `AttentionClassifier`."""

    ngrams: Annotated[int, Meta(ge=1, le=100)]
    min_documents: Whole
    formatting: bool
    batch_size: Whole
    score_rate: Rate
    value_rate: Rate
    max_epochs: Whole
    validation_share: Annotated[float, Meta(ge=0, lt=1)]
    random_state: Annotated[int, Meta(ge=0, lt=2**32)] | None


class _Description(msgspec.Struct, forbid_unknown_fields=True):
    """Content of model.json."""

    format: Literal[2]
    kind: str
    sha256: str
    classes: Annotated[list[str | bool | int | float], Meta(min_length=2)]
    steps: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    sink: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] | None
    settings: _Settings
    tokenizer: dict[str, object]
    words: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]
    formatting: list[str]


def check_content(description: dict[str, Any], numbers: dict[str, Floats]) -> Tokenizer:
    """Check all parts of a model, and return its tokenizer; a ValueError says which part is
    wrong."""
    try:
        content = msgspec.convert(description, _Description)
        # no half of a surrogate pair in any text
        json.dumps(description, ensure_ascii=False).encode()
    except (msgspec.ValidationError, UnicodeEncodeError, OverflowError) as problem:
        raise ValueError(str(problem)) from None
    _check_classes(description["classes"])
    _require(len(set(content.words)) == len(content.words), "words")
    # as an n-gram does
    _require(not any(" " in word for word in content.words), "words, one of which contains a space")
    tokenizer = _check_tokenizer(content.tokenizer)
    features = set(content.formatting)
    _require(len(features) == len(content.formatting), "formatting")
    _require(features <= set(Formatting(tokenizer).names), "formatting")
    n_types = _check_grams(numbers, len(content.words)) + len(features)
    n_outputs = 1 if len(content.classes) == 2 else len(content.classes)
    shapes = {"scores": (n_types,), "values": (n_types, n_outputs), "prior": (n_outputs,)}
    for name, shape in shapes.items():
        _require(numbers[name].dtype == np.float64 and numbers[name].shape == shape, name)
        _require(bool((np.abs(numbers[name]) <= LARGEST).all()), name)
    return tokenizer


def _check_classes(classes: list[Any]) -> None:
    """The names are of one type, no two are written in the same way, and numbers fit into
    arrays."""
    _require(len({type(name) for name in classes}) == 1, "classes")
    _require(len(set(map(str, classes))) == len(classes), "classes")
    if isinstance(classes[0], float):
        _require(bool((np.abs(classes) <= LARGEST).all()), "classes")
    if isinstance(classes[0], int):
        _require(all(-(2**63) <= name < 2**63 for name in classes), "classes")


def _check_tokenizer(settings: dict[str, Any]) -> Tokenizer:
    """The tokenizer that the settings of a stored model describe.

    Raises:
        ValueError: they describe none, or one whose settings differ from these.
    """
    base = settings.get("base", settings)
    if not isinstance(base, dict):
        base = {}
    # the text of pieces is JSON, so that it is never taken for a path
    _require(str(base.get("json", "{")).startswith("{"), "tokenizer")
    _require(len(str(base.get("pattern", ""))) <= MAX_PATTERN_LENGTH, "tokenizer")
    _require(isinstance(base.get("html", False), bool | str), "tokenizer")
    try:
        tokenizer = tokenizer_from_dict(settings)
        tokenizer.split(pl.Series(["a pattern that cannot be used fails here"]))
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise ValueError(f"tokenizer: {' '.join(str(error).split())[:100]}") from None
    _require(_without_json(tokenizer.to_dict()) == _without_json(settings), "tokenizer")
    if isinstance(tokenizer, FieldTokenizer):
        _require(len(set(tokenizer.fields)) == len(tokenizer.fields), "tokenizer")
    return tokenizer


def _without_json(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a tokenizer but for the JSON of word pieces.

    Another version may write that in another way.
    """
    fields: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            fields[name] = _without_json(value)
        elif name != "json":
            fields[name] = value
    return fields


def _check_grams(numbers: dict[str, Floats], n_words: int) -> int:
    """Check the names of the arrays and the keys of n-grams; return the number of words and
    n-grams."""
    levels = range(2, len(numbers) - 1)
    names = {"scores", "values", "prior", *(f"grams{n}" for n in levels)}
    _require(numbers.keys() == names and len(levels) < MAX_LEVELS, "the arrays")
    n_types = n_words
    n_shorter = n_words
    for n in levels:
        keys = numbers[f"grams{n}"]
        _require(keys.dtype == np.int64 and keys.ndim == 1, f"grams{n}")
        _require(bool((keys[1:] > keys[:-1]).all()), f"grams{n}")
        if len(keys):
            _require(keys[0] >= 0 and int(keys[-1]) < n_shorter * n_words, f"grams{n}")
        n_shorter = len(keys)
        n_types += n_shorter
    return n_types


def _require(holds: bool, part: str) -> None:
    """Raise a ValueError that names a part of the model unless the condition holds."""
    if not holds:
        raise ValueError(f"{part} has an invalid value")
