"""A trained model on disk, without pickle: numbers in safetensors, everything else in JSON.

`table.json` holds the same model for any other program.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from tokensieve.errors import InputError
from tokensieve.files import check_sums, parsed, read_regular
from tokensieve.model.attention import Model
from tokensieve.model.stored_content import FORMAT, check_content
from tokensieve.text.formatting import describe_features
from tokensieve.text.patterns import (
    APOSTROPHE,
    CLUSTER,
    LINE_BREAK,
    MARKUP,
    SKIPPED,
    UNSPACED_LETTER,
    WORD_OR_RUN,
)
from tokensieve.text.vocabulary import Vocabulary

NUMBERS = "model.safetensors"
DESCRIPTION = "model.json"
TABLE = "table.json"
MAX_DESCRIPTION_BYTES = 2**28  # a vocabulary of ten million words
MAX_NUMBERS_BYTES = 2**31  # a hundred million numbers with their n-grams
# what model.json calls a model of classes, of pairs, and of scores
CLASSIFIER = "tokensieve.AttentionClassifier"
PAIR_MODEL = "tokensieve.PairModel"
REGRESSOR = "tokensieve.AttentionRegressor"
KINDS = (CLASSIFIER, PAIR_MODEL, REGRESSOR)
RULE = (
    "Words: if tokenizer.kind is fields, the text consists of parts, each preceded by its "
    "marker \u27e6name\u27e7 (anything before the first marker belongs to the first field). "
    "Split each part with tokenizer.base and write each word as name:word, replacing white "
    "space and colons in the name with _. If only one field is not in tokenizer.columns, "
    "write its words without the name. If tokenizer.html is skip, replace matches of "
    f"{APOSTROPHE} with ' and then matches of {SKIPPED} with a space; if it is strip, replace "
    f"matches of {MARKUP} with a space and decode HTML character references; if it is keep "
    f"and tokenizer.line_breaks is true, replace matches of {LINE_BREAK} with a space. If "
    "tokenizer.lowercase is true, convert to Unicode lower case and write i for i "
    "followed by U+0307. Take all matches of tokenizer.pattern (syntax of Rust's regex crate, "
    "Unicode \\w), strip white space at both ends, replace inner white space with _, and "
    "drop words in tokenizer.stop_words. Count each word, and each sequence of up to "
    "`ngrams` adjacent words joined by one space, that is in tokens. Token s has the weight "
    "count * exp(scores[s]); divide the weights by their sum. The logit is the sum of weight "
    "* values[s]: one number for two classes (positive means classes[1]), otherwise one per "
    "class (the largest wins). If sink is a number, every text also contains a sink with the "
    "weight exp(sink) and the value prior. The last entries of tokens belong to "
    "`formatting`. Each is counted once if it applies: if `pattern` is found (with absent: "
    "not found) in the text or, if `where` is end, in its end (take the last 200 characters, "
    "strip trailing white space, keep the last 8); or if the number of runs of "
    "non-white-space characters is at least words[0] and below words[1]. For a text without "
    "known tokens the logit is prior."
)
LEXICON_RULE = (
    " Scripts without spaces: instead of tokenizer.pattern take all matches of "
    f"{WORD_OR_RUN}. Those that begin with {UNSPACED_LETTER} are divided: "
    f"into matches of {CLUSTER}, then from left to right into the longest sequence of these "
    "that is in tokenizer.lexicon, or else one of them."
)
PAIR_RULE = (
    " This is a preference model: it prefers the first of two texts with probability "
    "1/(1 + exp(second - first)), where first and second are their logits. "
    "The logit of a single text has no meaning on its own."
)
SCORE_RULE = (
    " This model predicts scores: the logit is the predicted score itself, and prior the mean "
    "score of training."
)


class HasModel(Protocol):
    """What stores a trained model, such as an `AttentionClassifier`."""

    @property
    def trained_(self) -> Model: ...


def model_files(model: Model | HasModel) -> dict[str, bytes]:
    """The files of a model fitted on texts: name → content, for `tokensieve.files.write_all`.

    `model.safetensors` holds scores, values, prior and n-gram keys; `model.json` the classes, words
    and tokenizer; `table.json` the same model for any other program (see `table`).
    """
    model, vocabulary = _with_vocabulary(model)
    numbers: dict[str, Any] = {"scores": model.scores, "values": model.values, "prior": model.prior}
    for n, keys in enumerate(vocabulary.grams, start=2):
        numbers[f"grams{n}"] = keys
    contiguous = {name: np.ascontiguousarray(array) for name, array in numbers.items()}
    blob = safetensors.numpy.save(contiguous)
    description = {
        "format": FORMAT,
        "kind": _kind(model),
        "classes": model.classes.tolist(),
        "steps": model.steps,
        "sink": model.sink,
        # `train` and `audit` collect them in different orders
        "settings": dict(sorted(model.settings.items())),
        "tokenizer": vocabulary.tokenizer.to_dict(),
        "words": vocabulary.words,
        "formatting": vocabulary.formatting,
    }
    description["sha256"] = _digest(description, blob)
    return {
        NUMBERS: blob,
        DESCRIPTION: _json(description),
        TABLE: _table_as_json(table(model)),
    }


def _kind(model: Model) -> str:
    """The name in model.json for this kind of model."""
    if model.predicts_scores:
        return REGRESSOR
    return PAIR_MODEL if model.pairs else CLASSIFIER


def _table_as_json(content: dict[str, Any]) -> bytes:
    """A table as JSON; msgspec writes its many numbers, in a tenth of json's time."""
    numbers = msgspec.json.encode({name: content.pop(name) for name in ("scores", "values")})
    return _json(content)[:-1] + b"," + numbers[1:]


def table(model: Model | HasModel) -> dict[str, Any]:
    """The model as a table of numbers per token type that any language can run.

    Its `rule` (`RULE`) explains how.
    """
    model, vocabulary = _with_vocabulary(model)
    return {
        "format": FORMAT,
        "rule": _rule(model, vocabulary),
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


def _rule(model: Model, vocabulary: Vocabulary) -> str:
    """A text that tells how to run the exported model in any programming language."""
    tokenizer = vocabulary.tokenizer.to_dict()
    rule = RULE
    if "lexicon" in tokenizer.get("base", tokenizer):
        rule += LEXICON_RULE
    if model.predicts_scores:
        return rule + SCORE_RULE
    return rule + PAIR_RULE if model.pairs else rule


class _ModelContent(NamedTuple):
    """The two files of a model."""

    description: dict[str, Any]
    numbers: bytes


def read_model(path: str | Path) -> Model:
    """Read a model from its folder, or from the path of one of its two files.

    Raises:
        InputError: there is none, or it is damaged.
    """
    folder = Path(path)
    if folder.name in (NUMBERS, DESCRIPTION):
        folder = folder.parent
    damaged = f"{str(folder)[:200]} is damaged"
    content = _read_content(path, folder, damaged)
    description = content.description
    try:
        numbers: dict[str, Any] = safetensors.numpy.load(content.numbers)
        tokenizer = check_content(description, numbers)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{damaged} ({str(error)[:200]}): train the model again") from None
    check_sums(folder)
    n_levels = sum(name.startswith("grams") for name in numbers)
    vocabulary = Vocabulary(
        words=tuple(description["words"]),
        grams=tuple(numbers[f"grams{n}"] for n in range(2, n_levels + 2)),
        tokenizer=tokenizer,
        formatting=tuple(description["formatting"]),
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
        pairs=description["kind"] == PAIR_MODEL,
        predicts_scores=description["kind"] == REGRESSOR,
    )


def _read_content(path: str | Path, folder: Path, damaged: str) -> _ModelContent:
    """Read both files, and check that they are a model's, of this format, and belong together.

    Args:
        path: as it was given.
        folder: where the files are.
        damaged: the beginning of a message that says what is.
    """
    try:
        content = read_regular(folder / DESCRIPTION, limit=MAX_DESCRIPTION_BYTES)
        numbers = read_regular(folder / NUMBERS, limit=MAX_NUMBERS_BYTES)
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
            f"{damaged}: {DESCRIPTION}: {str(error)[:100]}: train the model again"
        ) from None
    if not isinstance(description, dict) or description.get("kind") not in KINDS:
        raise InputError(f"{folder / DESCRIPTION} does not describe a tokensieve model")
    if type(description.get("format")) is not int or description["format"] != FORMAT:
        found_format = str(description.get("format"))[:20]
        raise InputError(
            f"{folder} contains a model of format {found_format}, "
            f"but this version reads format {FORMAT}: train it again"
        )
    if _digest(description, numbers) != description.get("sha256"):
        raise InputError(
            f"{folder}: {NUMBERS} and {DESCRIPTION} are truncated, altered or from two models: "
            "train the model again"
        )
    return _ModelContent(description, numbers)


def _with_vocabulary(model: Model | HasModel) -> tuple[Model, Vocabulary]:
    """The model and its vocabulary.

    Raises:
        InputError: it was fitted on counts, and has none.
    """
    if not isinstance(model, Model):
        model = model.trained_
    if model.vocabulary is None:
        raise InputError(
            "only a model fitted on texts can be saved: "
            "this one was fitted on counts and has no tokens"
        )
    return model, model.vocabulary


def _digest(description: dict[str, Any], numbers: bytes) -> str:
    """SHA-256 of everything in the description but itself, and of the numbers."""
    content = {name: value for name, value in description.items() if name != "sha256"}
    digest = hashlib.sha256(_json(content))
    digest.update(numbers)  # which may be large: not joined
    return digest.hexdigest()


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")
