"""What the files of a model must hold: types, shapes, ranges and finiteness, checked before any of it is used.

A checksum tells damage from the original; it does not tell a model from nonsense that somebody signed with the same checksum.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.counts import Ints
from tokensieve.text.formatting import formatting_names
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer, tokenizer_from_dict

LARGEST = 1e100  # of any number in a model: differences and products of two stay finite
MOST_NGRAMS = 100
LONGEST_PATTERN = 10_000
Check = Callable[[Any], bool]


class Damaged(ValueError):
    """A model file that does not hold what it must; the message says which part."""


def read_regular(path: Path) -> bytes:
    """Content of a regular file: no link is followed, and nothing that could block, such as a FIFO or a device, is opened.

    Raises:
        InputError: the path is a link or no regular file.
        OSError: it is missing or cannot be read.
    """
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is no path")
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path} cannot be read: a link, or no regular file")
    with open(os.open(path, flags | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path} is no regular file")
        return file.read()


def parsed(content: bytes) -> Any:
    """UTF-8 JSON, strictly: no NaN or infinity, no name twice.

    Raises:
        ValueError, RecursionError: it is something else.
    """
    return json.loads(content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once)


def checked(description: dict[str, Any], numbers: dict[str, Any]) -> Tokenizer:
    """Check all parts of a model of the current format; its tokenizer.

    Args:
        description: content of model.json.
        numbers: arrays of model.safetensors.

    Raises:
        Damaged: a part is missing, too many, or not what it must be.
    """
    for name in description.keys() ^ {"format", "kind", "sha256", *PARTS}:
        raise Damaged(f"{name!r} is {'unknown' if name in description else 'missing'}")
    for name, check in PARTS.items():
        _must(check(description[name]), name)
    settings = description["settings"]
    _must(settings.keys() == SETTINGS.keys(), "settings")
    for name, check in SETTINGS.items():
        _must(check(settings[name]), f"settings.{name}")
    features = description["formatting"]
    _check_numbers(len(description["words"]), len(features), len(description["classes"]), numbers)
    tokenizer = _tokenizer(description["tokenizer"])
    names = formatting_names(tokenizer.fields if isinstance(tokenizer, FieldTokenizer) else ())
    _must(len(set(features)) == len(features) and set(features) <= set(names), "formatting")
    return tokenizer


def _check_numbers(words: int, features: int, classes: int, numbers: dict[str, Any]) -> None:
    levels = len(numbers) - 3
    expected = {"scores", "values", "prior", *(f"grams{n}" for n in range(2, 2 + levels))}
    _must(numbers.keys() == expected and levels < MOST_NGRAMS, "the arrays")
    types, outputs = words, 1 if classes == 2 else classes
    below = words
    for n in range(2, 2 + levels):
        keys: Ints = numbers[f"grams{n}"]
        _must(keys.dtype == np.int64 and keys.ndim == 1, f"grams{n}")
        _must(not len(keys) or (keys[0] >= 0 and int(keys[-1]) < below * words), f"grams{n}")
        _must(bool((keys[1:] > keys[:-1]).all()), f"grams{n}")
        below = len(keys)
        types += below
    types += features
    for name, shape in (("scores", (types,)), ("values", (types, outputs)), ("prior", (outputs,))):
        array = numbers[name]
        _must(array.dtype == np.float64 and array.shape == shape, name)
        _must(bool((np.abs(array) <= LARGEST).all()), name)


def _tokenizer(described: dict[str, Any]) -> Tokenizer:
    """A tokenizer from the file itself, one that splits a text without an error."""
    _check_tokenizer(described, fields=True)
    try:
        tokenizer = tokenizer_from_dict(described)
        tokenizer.split(pl.Series(["a pattern that cannot be used fails here"]))
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise Damaged(f"tokenizer: {' '.join(str(error).split())[:100]}") from None
    return tokenizer


def _check_tokenizer(described: Any, fields: bool) -> None:
    """Words, pieces (whose text must be JSON, so that it is never taken for a path), or, where allowed, fields of one of them."""
    _must(isinstance(described, dict), "tokenizer")
    if described.get("kind") == "pieces":
        text = described.get("json")
        _must(described.keys() == {"kind", "json"} and isinstance(text, str) and text.startswith("{"), "tokenizer")
    elif described.get("kind") == "fields":
        _must(
            fields and described.keys() == {"kind", "fields", "base"} and _are_words(described["fields"]), "tokenizer"
        )
        _check_tokenizer(described["base"], fields=False)
    else:
        usual = WordTokenizer().to_dict()
        _must(described.keys() == usual.keys() and described["kind"] == "words", "tokenizer")
        _must(all(type(described[name]) is type(value) for name, value in usual.items()), "tokenizer")
        _must(len(described["pattern"]) <= LONGEST_PATTERN and all(map(_is_text, described["stop_words"])), "tokenizer")


def _must(holds: bool, part: str) -> None:
    if not holds:
        raise Damaged(f"{part}: not as a model has it")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _whole(least: int, most: int = 2**63 - 1) -> Check:
    return lambda x: type(x) is int and least <= x <= most


def _number(least: float, most: float = LARGEST) -> Check:
    return lambda x: type(x) in (int, float) and least <= x <= most  # not so for NaN


def _is_text(x: Any) -> bool:
    return isinstance(x, str) and not any("\ud800" <= character <= "\udfff" for character in x)


def _are_words(x: Any) -> bool:
    return isinstance(x, list) and len(x) > 0 and all(map(_is_text, x)) and all(x) and len(set(x)) == len(x)


def _are_classes(x: Any) -> bool:
    """Two or more different names: all text, all whole numbers, all numbers, or false and true."""
    if not isinstance(x, list) or len(x) < 2 or len({type(name) for name in x}) > 1 or len(set(map(str, x))) < len(x):
        return False
    kinds = {str: _is_text, bool: lambda name: True, int: _whole(-(2**63)), float: _number(-LARGEST)}
    return type(x[0]) in kinds and all(map(kinds[type(x[0])], x))


PARTS: dict[str, Check] = {
    "classes": _are_classes,
    "steps": _whole(0),
    "sink": lambda x: x is None or _number(-LARGEST)(x),
    "settings": lambda x: isinstance(x, dict),
    "tokenizer": lambda x: isinstance(x, dict),
    "words": _are_words,
    "formatting": lambda x: isinstance(x, list) and all(map(_is_text, x)),
}
SETTINGS: dict[str, Check] = {
    "ngrams": _whole(1, MOST_NGRAMS),
    "min_documents": _whole(1),
    "formatting": lambda x: type(x) is bool,
    "batch_size": _whole(1),
    "score_rate": _number(0),
    "value_rate": _number(0),
    "max_epochs": _whole(1),
    "validation_share": lambda x: _number(0)(x) and x < 1,
    "random_state": lambda x: x is None or _whole(0, 2**32 - 1)(x),
}
