"""Settings of a diagnosis, in a module that is quick to import for `tokensieve diagnose --help`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.read.settings import ReadSettings


@dataclass(frozen=True, kw_only=True)
class DiagnoseSettings(ReadSettings):
    """How a model is measured.

    A number below one, or an unknown choice, raises an InputError. Documents are drawn in
    proportion to the classes; word importance is always computed from all of them. `seconds`
    assumes 50 billion operations a second, about one core, so that the number of documents depends
    only on the model and the texts. `max_length` counts special tokens. `label_words` maps each
    class to the word that a causal language model predicts for it.
    """

    min_documents: int = option(
        10, "Words in fewer documents are examined only if they stand out.", low=1
    )
    max_documents: int | None = option(
        None,
        "The model reads a random sample of at most this many documents.",
        low=8,
        default_text="set by --seconds",
    )
    seconds: float | None = option(
        None,
        "Read as many documents as the model can process in about this many seconds.",
        low=1,
        default_text="1,000 documents, or 300 s if that allows more",
    )
    max_length: int | None = option(
        None, "Maximum tokens per input.", low=3, default_text="the model's limit"
    )
    long: Literal["truncate", "windows"] = option(
        "truncate", "What to do with documents longer than --max-length."
    )
    batch_size: int = option(
        16, "Inputs per batch; short inputs are read in larger batches.", low=1
    )
    deletions: int = option(
        4,
        "For models without gradients: in the first pass, remove each word from at most this many "
        "documents.",
        low=1,
    )
    untrained: bool = option(True, "Also measure an untrained model of the same architecture.")
    tokenizer: str | None = option(
        None,
        "What counts as a word: `model` for the model's own tokens, or a tokenizer.json.",
        metavar="FILE",
        default_text="words and punctuation",
    )
    seed: int = option(0, "Random seed.", low=0)
    label_words: Any = option(
        None,
        "For a causal language model: the word it predicts for each class.",
        metavar="CLASS=WORD,…",
    )
    template: str | None = option(
        None,
        "With --label-words: the prompt around {text} (and {second}).",
        metavar="TEMPLATE",
        default_text="{text}, a new line, Label:",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task == "scores":
            raise InputError("diagnose needs a model of classes: leave out --task scores")
        for name in ("min_documents", "max_documents", "seconds", "batch_size", "deletions"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        if self.long not in ("truncate", "windows"):
            raise InputError(
                f"long documents are handled by 'truncate' or 'windows', not {self.long!r}"
            )
        if self.template is not None and self.label_words is None:
            raise InputError(
                "--template is for language models: name the word for each class with --label-words"
            )
        if isinstance(self.label_words, str):
            words = _label_words(self.label_words, self.template)
            object.__setattr__(self, "label_words", words)

    def measuring(self) -> dict[str, Any]:
        """All settings but those of reading the source, for summary.json."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in ReadSettings.__dataclass_fields__
        }


def _label_words(written: str, template: str | None) -> dict[str, str]:
    """`negative=terrible,positive=great`, or words that are themselves names: `terrible,great`.

    Each is written with a space before it, unless the template ends in white space.
    """
    space = "" if template and template[-1].isspace() else " "
    words: dict[str, str] = {}
    items = written.split(",")
    for item in items:
        name, _, word = item.rpartition("=")
        if word.strip():
            words[name.strip() or word.strip()] = space + word.strip()
    if len(words) < 2 or len(words) < len(items):
        raise InputError(
            f"--label-words {written!r} must name a word for each of two or more classes: for "
            "example negative=terrible,positive=great"
        )
    return words
