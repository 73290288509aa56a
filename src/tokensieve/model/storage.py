"""A trained classifier on disk, without pickle: numbers in safetensors, everything else in JSON; and the portable table."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from tokensieve.errors import InputError
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.text.tokenizers import tokenizer_from_dict
from tokensieve.text.vocabulary import Vocabulary

FORMAT = 2
RULE = (
    "Words: where tokenizer.line_breaks, replace matches of (?i)<br\\s*/?> by a space; where tokenizer.lowercase, fold to Unicode "
    "lower case; take all matches of tokenizer.pattern (syntax of Rust's regex crate, \\w of Unicode). Count each word, and each "
    "run of up to `ngrams` adjacent words joined by one space, that is in tokens. Type s weighs count * exp(scores[s]); divide by "
    "the sum of weights; the answer is the sum of weight * values[s]: for two classes one number, positive for classes[1]; else "
    "one per class, the largest wins. A text without known tokens is answered by prior."
)
SETTINGS = (
    "ngrams",
    "min_documents",
    "batch_size",
    "score_rate",
    "value_rate",
    "max_epochs",
    "validation_share",
    "random_state",
)
NUMBERS, DESCRIPTION, TABLE = "model.safetensors", "model.json", "table.json"


def model_files(model: AttentionClassifier) -> dict[str, bytes]:
    """The files of a model fitted on texts: name → content, for `tokensieve.files.write_all`.

    `model.safetensors` holds scores, values, prior and n-gram keys; `model.json` the classes, words and tokenizer;
    `table.json` the same model for any other program (see `table`).
    """
    vocabulary = _vocabulary(model)
    numbers = {"scores": model.scores_, "values": model.values_, "prior": model.prior_}
    numbers |= {f"grams{n}": keys for n, keys in enumerate(vocabulary.grams, start=2)}
    blob = safetensors.numpy.save({name: np.ascontiguousarray(x) for name, x in numbers.items()})
    description = {
        "format": FORMAT,
        "kind": "tokensieve.AttentionClassifier",
        "classes": model.classes_.tolist(),
        "steps": model.n_steps_,
        "settings": {name: _plain(getattr(model, name)) for name in SETTINGS},
        "tokenizer": vocabulary.tokenizer.to_dict(),
        "words": vocabulary.words,
    }
    description["sha256"] = _digest(description, blob)
    return {NUMBERS: blob, DESCRIPTION: _json(description), TABLE: _json(table(model))}


def table(model: AttentionClassifier) -> dict[str, Any]:
    """The model as a table of numbers per token type that any language can run; its `rule` says how.

    Split a text as `tokenizer` says; count every word and every run of up to `ngrams` adjacent words, joined by one space,
    that is in `tokens`; weigh type s by count · exp(scores[s]) and divide by the sum of weights; the answer is the sum of
    weight · values[s]: for two classes one number, positive for classes[1]; otherwise one per class, the largest wins. A
    text without known tokens is answered by `prior`.
    """
    vocabulary = _vocabulary(model)
    return {
        "format": FORMAT,
        "rule": RULE,
        "classes": model.classes_.tolist(),
        "tokenizer": vocabulary.tokenizer.to_dict(),
        "ngrams": 1 + len(vocabulary.grams),
        "prior": model.prior_.tolist(),
        "tokens": vocabulary.tokens.tolist(),
        "scores": model.scores_.tolist(),
        "values": model.values_.tolist(),
    }


def load_model(path: str | Path) -> AttentionClassifier:
    """Read a model from its folder, or from the path of one of its two files.

    Raises:
        InputError: it is missing, truncated, altered, of another format version, or no model.
    """
    folder = Path(path)
    if folder.name in (NUMBERS, DESCRIPTION):
        folder = folder.parent
    try:
        description = json.loads((folder / DESCRIPTION).read_bytes())
        blob = (folder / NUMBERS).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = Path(str(error.filename)).name
        raise InputError(f"{path} is no model: {missing} is missing there; `tokensieve train` writes one") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{folder / DESCRIPTION} is damaged ({error}): train the model again") from None
    if not isinstance(description, dict) or description.get("kind") != "tokensieve.AttentionClassifier":
        raise InputError(f"{folder / DESCRIPTION} does not describe a tokensieve model")
    if description.get("format") != FORMAT:
        raise InputError(
            f"{folder} holds a model of format {description.get('format')}, this version reads format {FORMAT}: train it again"
        )
    if _digest(description, blob) != description.get("sha256"):
        raise InputError(
            f"{folder}: {NUMBERS} and {DESCRIPTION} are truncated, altered or of two models: train the model again"
        )
    try:
        return _assemble(description, safetensors.numpy.load(blob))
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise InputError(f"{folder} is damaged ({error}): train the model again") from None


def _assemble(description: dict[str, Any], numbers: dict[str, Any]) -> AttentionClassifier:
    grams = tuple(numbers[f"grams{n}"] for n in range(2, 2 + sum(name.startswith("grams") for name in numbers)))
    vocabulary = Vocabulary(tuple(description["words"]), grams, tokenizer_from_dict(description["tokenizer"]))
    heads = 1 if len(description["classes"]) == 2 else len(description["classes"])
    settings = description["settings"]
    if numbers["scores"].shape != (vocabulary.n_types,) or numbers["values"].shape != (vocabulary.n_types, heads):
        raise ValueError("numbers and vocabulary do not agree")
    model = AttentionClassifier(tokenizer=vocabulary.tokenizer, **{name: settings[name] for name in SETTINGS})
    model.classes_, model.vocabulary_ = np.asarray(description["classes"]), vocabulary
    model.scores_, model.values_, model.prior_ = numbers["scores"], numbers["values"], numbers["prior"]
    model.n_features_in_ = vocabulary.n_types
    model.n_steps_, model.validation_ = int(description["steps"]), np.empty((0, 2))
    return model


def _vocabulary(model: AttentionClassifier) -> Vocabulary:
    if model.vocabulary_ is None:
        raise InputError("only a model fitted on texts can be saved: this one was fitted on counts and knows no tokens")
    return model.vocabulary_


def _plain(value: Any) -> int | float | None:
    """A setting as a JSON value; a random generator has none, and is drawn anew by a clone."""
    if isinstance(value, np.integer):
        return int(value)
    return value if isinstance(value, int | float) else None


def _digest(description: dict[str, Any], numbers: bytes) -> str:
    """SHA-256 of everything in the description but itself, and of the numbers."""
    rest = {name: value for name, value in description.items() if name != "sha256"}
    return hashlib.sha256(_json(rest) + numbers).hexdigest()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )
