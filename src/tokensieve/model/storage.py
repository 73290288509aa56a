"""A trained classifier on disk, without pickle: numbers in safetensors, everything else in JSON; and the portable table."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
import safetensors.numpy
from msgspec import Meta
from safetensors import SafetensorError

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.files import check_sums, parsed, read_regular
from tokensieve.model.attention import Model
from tokensieve.text.formatting import Formatting, describe_features
from tokensieve.text.patterns import APOSTROPHE, LINE_BREAK, MARKUP, SKIPPED
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, tokenizer_from_dict
from tokensieve.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokensieve.model.classifier import AttentionClassifier


FORMAT = 2
KINDS = {
    "tokensieve.AttentionClassifier": False,
    "tokensieve.PairModel": True,
}  # → whether it was trained on pairs
RULE = (
    "Words: if tokenizer.kind is fields, the text consists of parts, each preceded by its marker \u27e6name\u27e7 (anything "
    "before the first marker belongs to the first field). Split each part with tokenizer.base and write each word as name:word, "
    "replacing white space and colons in the name with _. If only one field is not in tokenizer.columns, write its words without "
    f"the name. If tokenizer.html is skip, replace matches of {APOSTROPHE} with ' and then matches of {SKIPPED} with a space; if "
    f"it is strip, replace matches of {MARKUP} with a space and decode HTML character references; if it is keep and "
    f"tokenizer.line_breaks is true, replace matches of {LINE_BREAK} with a space. If tokenizer.lowercase is true, convert to "
    "Unicode lower case. Take all matches of tokenizer.pattern (syntax of Rust's regex crate, Unicode \\w), strip white space at "
    "both ends, replace inner white space with _, and drop words in tokenizer.stop_words. Count each word, and each sequence of "
    "up to `ngrams` adjacent words joined by one space, that is in tokens. Token s has the weight count * exp(scores[s]); divide "
    "the weights by their sum. The logit is the sum of weight * values[s]: one number for two classes (positive means "
    "classes[1]), otherwise one per class (the largest wins). If sink is a number, every text also contains a sink with the "
    "weight exp(sink) and the value prior. The last entries of tokens belong to `formatting`. Each is counted once if it "
    "applies: if `pattern` is found (with absent: not found) in the text or, if `where` is end, in its end (take the last 200 "
    "characters, strip trailing white space, keep the last 8); or if the number of runs of non-white-space characters is at "
    "least words[0] and below words[1]. For a text without known tokens the logit is prior."
)
NUMBERS, DESCRIPTION, TABLE = "model.safetensors", "model.json", "table.json"


def model_files(model: Model | AttentionClassifier) -> dict[str, bytes]:
    """The files of a model fitted on texts: name → content, for `tokensieve.files.write_all`.

    `model.safetensors` holds scores, values, prior and n-gram keys; `model.json` the classes, words and tokenizer;
    `table.json` the same model for any other program (see `table`).
    """
    model, vocabulary = _with_vocabulary(model)
    numbers = {"scores": model.scores, "values": model.values, "prior": model.prior}
    numbers |= {f"grams{n}": keys for n, keys in enumerate(vocabulary.grams, start=2)}
    blob = safetensors.numpy.save({name: np.ascontiguousarray(x) for name, x in numbers.items()})
    description = {
        "format": FORMAT,
        "kind": next(kind for kind, pairs in KINDS.items() if pairs == model.pairs),
        "classes": model.classes.tolist(),
        "steps": model.steps,
        "sink": model.sink,
        "settings": dict(
            sorted(model.settings.items())
        ),  # `train` and `audit` collect them in different orders
        "tokenizer": vocabulary.tokenizer.to_dict(),
        "words": vocabulary.words,
        "formatting": vocabulary.formatting,
    }
    description["sha256"] = _digest(description, blob)
    listed = table(model)
    floats = msgspec.json.encode(
        {name: listed.pop(name) for name in ("scores", "values")}
    )  # a tenth of json's time
    return {
        NUMBERS: blob,
        DESCRIPTION: _json(description),
        TABLE: _json(listed)[:-1] + b"," + floats[1:],
    }


def table(model: Model | AttentionClassifier) -> dict[str, Any]:
    """The model as a table of numbers per token type that any language can run; its `rule` (`RULE`) explains how."""
    model, vocabulary = _with_vocabulary(model)
    pair_rule = (
        " This is a preference model: it prefers the first of two texts with probability 1/(1 + exp(second - first)), where first "
        "and second are their logits. The logit of a single text has no meaning on its own."
    )
    return {
        "format": FORMAT,
        "rule": RULE + (pair_rule if model.pairs else ""),
        "classes": model.classes.tolist(),
        "tokenizer": vocabulary.tokenizer.to_dict(),
        "ngrams": 1 + len(vocabulary.grams),
        "prior": model.prior.tolist(),
        "sink": model.sink,
        "formatting": describe_features(vocabulary.formatting),
        "tokens": [*vocabulary.runs.tolist(), *vocabulary.formatting],
        "scores": model.scores.tolist(),
        "values": model.values.tolist(),
    }


def read_model(path: str | Path) -> Model:
    """Read a model from its folder, or from the path of one of its two files; an `InputError` if it is damaged."""
    folder = Path(path)
    if folder.name in (NUMBERS, DESCRIPTION):
        folder = folder.parent
    described = f"{str(folder)[:200]} is damaged"
    try:
        content, blob = (
            read_regular(folder / DESCRIPTION, limit=2**28),
            read_regular(folder / NUMBERS, limit=2**31),
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = Path(str(error.filename)).name
        raise InputError(
            f"{path} is not a model folder (no {missing}); create one with `tokensieve train`"
        ) from None
    except OSError as error:
        raise InputError(f"{str(path)[:200]} cannot be read: {error.strerror}") from None
    try:
        description = parsed(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{described}: {DESCRIPTION}: {str(error)[:100]}: train the model again"
        ) from None
    if not isinstance(description, dict) or description.get("kind") not in tuple(KINDS):
        raise InputError(f"{folder / DESCRIPTION} does not describe a tokensieve model")
    if type(description.get("format")) is not int or description["format"] != FORMAT:
        found = str(description.get("format"))[:20]
        raise InputError(
            f"{folder} contains a model of format {found}, but this version reads format {FORMAT}: train it again"
        )
    if _digest(description, blob) != description.get("sha256"):
        raise InputError(
            f"{folder}: {NUMBERS} and {DESCRIPTION} are truncated, altered or from two models: train the model again"
        )
    try:
        numbers = safetensors.numpy.load(blob)
        tokenizer = _checked(description, numbers)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{described} ({str(error)[:200]}): train the model again") from None
    check_sums(folder)
    grams = tuple(numbers[f"grams{n}"] for n in range(2, len(numbers) - 1))
    vocabulary = Vocabulary(
        tuple(description["words"]), grams, tokenizer, tuple(description["formatting"])
    )
    return Model(
        classes=np.asarray(description["classes"]),
        scores=numbers["scores"],
        values=numbers["values"],
        prior=numbers["prior"],
        tokens=vocabulary.tokens,
        vocabulary=vocabulary,
        steps=description["steps"],
        sink=description["sink"],
        settings=description["settings"],
        pairs=KINDS[description["kind"]],
    )


def _with_vocabulary(model: Model | AttentionClassifier) -> tuple[Model, Vocabulary]:
    model = model if isinstance(model, Model) else model.trained_
    if model.vocabulary is None:
        raise InputError(
            "only a model fitted on texts can be saved: this one was fitted on counts and has no tokens"
        )
    return model, model.vocabulary


def _digest(description: dict[str, Any], numbers: bytes) -> str:
    """SHA-256 of everything in the description but itself, and of the numbers."""
    digest = hashlib.sha256(
        _json({name: value for name, value in description.items() if name != "sha256"})
    )
    digest.update(numbers)  # which may be large: not joined
    return digest.hexdigest()


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


# ---- what the files must hold: a checksum does not tell a model from nonsense that somebody signed with the same checksum

LARGEST = 1e100  # of any number in a model: differences and products of two stay finite
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


def _checked(description: dict[str, Any], numbers: dict[str, Floats]) -> Tokenizer:
    """Check types, shapes, ranges and finiteness of all parts of a model before any is used; its tokenizer, or a ValueError."""
    try:
        found = msgspec.convert(description, _Description)
        json.dumps(
            description, ensure_ascii=False
        ).encode()  # no half of a surrogate pair in any text
    except (msgspec.ValidationError, UnicodeEncodeError, OverflowError) as problem:
        raise ValueError(str(problem)) from None
    classes, base = description["classes"], found.tokenizer.get("base", found.tokenizer)
    sound = len({type(name) for name in classes}) == 1 and len(set(map(str, classes))) == len(
        classes
    )
    sound = sound and (
        not isinstance(classes[0], float) or bool((np.abs(classes) <= LARGEST).all())
    )
    _must(
        sound
        and (not isinstance(classes[0], int) or all(-(2**63) <= name < 2**63 for name in classes)),
        "classes",
    )
    _must(len(set(found.words)) == len(found.words), "words")
    _must(
        not any(" " in word for word in found.words), "words, one of which contains a space"
    )  # as an n-gram does
    part = dict(base) if isinstance(base, dict) else {}
    # the text of pieces is JSON, so that it is never taken for a path
    sound = (
        str(part.get("json", "{")).startswith("{") and len(str(part.get("pattern", ""))) <= 10_000
    )
    _must(sound and isinstance(part.get("html", False), bool | str), "tokenizer")
    try:
        tokenizer = tokenizer_from_dict(found.tokenizer)
        tokenizer.split(pl.Series(["a pattern that cannot be used fails here"]))
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise ValueError(f"tokenizer: {' '.join(str(error).split())[:100]}") from None
    _must(_shape(tokenizer.to_dict()) == _shape(found.tokenizer), "tokenizer")
    fields = tokenizer.fields if isinstance(tokenizer, FieldTokenizer) else ()
    _must(len(set(fields)) == len(fields), "tokenizer")
    features = set(found.formatting)
    _must(
        len(features) == len(found.formatting) and features <= set(Formatting(tokenizer).names),
        "formatting",
    )
    levels = range(2, len(numbers) - 1)
    names = {"scores", "values", "prior", *(f"grams{n}" for n in levels)}
    _must(numbers.keys() == names and len(levels) < 100, "the arrays")
    words = below = len(found.words)
    types, outputs = words + len(features), 1 if len(classes) == 2 else len(classes)
    for n in levels:
        keys = numbers[f"grams{n}"]
        sound = keys.dtype == np.int64 and keys.ndim == 1 and bool((keys[1:] > keys[:-1]).all())
        _must(
            sound and (not len(keys) or (keys[0] >= 0 and int(keys[-1]) < below * words)),
            f"grams{n}",
        )
        below = len(keys)
        types += below
    for name, shape in (("scores", (types,)), ("values", (types, outputs)), ("prior", (outputs,))):
        array = numbers[name]
        _must(
            array.dtype == np.float64
            and array.shape == shape
            and bool((np.abs(array) <= LARGEST).all()),
            name,
        )
    return tokenizer


def _shape(settings: dict[str, object]) -> dict[str, object]:
    """The settings of a tokenizer but for the JSON of word pieces, which another version may write in another way."""
    return {k: _shape(x) if isinstance(x, dict) else k == "json" or x for k, x in settings.items()}


def _must(holds: bool, part: str) -> None:
    if not holds:
        raise ValueError(f"{part} has an invalid value")
