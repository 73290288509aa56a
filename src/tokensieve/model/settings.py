"""Training settings: one object, passed unchanged from the command line to the optimizer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.read.settings import ReadSettings
from tokensieve.text.settings import TokenSettings

# settings that are parameters of `AttentionClassifier` of the same name
PARAMETERS = (
    "ngrams",
    "min_documents",
    "formatting",
    "batch_size",
    "score_rate",
    "value_rate",
    "max_epochs",
    "validation_share",
)
MIN_DOCUMENTS_IF_MANY = 3  # of a type: in large data, rarer ones are noise
FEW = 2_000  # documents (or pairs): up to so many are each held out once, and rare types count


MAX_RATE = 100  # of the step sizes; compiled training does not expect NaN, to which 1e308 leads


@dataclass(frozen=True, kw_only=True)
class TrainSettings(TokenSettings, ReadSettings):
    """Tokens and training.

    Settings not listed here have the same meaning as in `AttentionClassifier`.

    Attributes:
        min_documents: a type must occur in at least this many training documents; None means 1 for
            up to 2,000 documents and 3 for more. In small data, rare types provide half of the
            information; in large data they are noise.
        test_share: fraction of the documents set aside for testing if the corpus has no test set.
        seed: seed of the split, the held-out documents and the order of documents.
        batch_size: documents (of pairs, pairs) per step.
        validation_share: as there. Up to 2,000 documents are each held out once, in five parts, to
            choose the strength of the initial values too (half strength if a class has too few
            documents).
    """

    ngrams: int = option(1, "Maximum n-gram length, in words.", low=1, high=100)
    min_documents: int | None = option(
        None,
        "A token must occur in at least this many documents.",
        low=1,
        default_text="1 for up to 2,000 documents, else 3",
    )
    formatting: bool = option(False, "Treat formatting (length, spaces, marks) as tokens too.")
    value_rate: float = option(
        0.1, "Initial step size of the token values.", low=1e-6, high=MAX_RATE
    )
    seed: int = option(0, "Random seed.", low=0, high=2**32 - 1)
    test_share: float = option(0.2, "", flag="")
    score_rate: float = option(0.01, "", flag="")
    batch_size: int = option(64, "", flag="")
    max_epochs: int = option(4, "", flag="")
    validation_share: float = option(0.1, "", flag="")

    def __post_init__(self) -> None:
        super().__post_init__()
        smallest = {"ngrams": 1, "batch_size": 1, "max_epochs": 1, "seed": 0}
        if self.min_documents is not None:
            smallest["min_documents"] = 1
        for name, low in smallest.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < low:
                raise InputError(f"{name} must be a whole number of at least {low}, not {value!r}")
        for name in ("score_rate", "value_rate", "validation_share", "test_share"):
            value = getattr(self, name)
            if not hasattr(value, "__float__") or not value >= 0:
                raise InputError(f"{name} must be a number of at least 0, not {value!r}")
        for name in ("score_rate", "value_rate"):
            if getattr(self, name) > MAX_RATE:
                raise InputError(
                    f"{name} must be at most {MAX_RATE}, not {getattr(self, name)!r}: larger steps "
                    "lead to numbers without end"
                )
        if self.validation_share >= 1:
            raise InputError(f"validation_share must be below 1, not {self.validation_share!r}")

    def of_documents(self, documents: int) -> Self:
        """The same settings for this number of training documents, with `min_documents` set."""
        if self.min_documents is not None:
            return self
        return replace(self, min_documents=1 if documents <= FEW else MIN_DOCUMENTS_IF_MANY)

    def to_dict(self) -> dict[str, Any]:
        """The settings of training for a summary; of those without an option, only changed ones."""
        inherited = {field.name for field in (*fields(ReadSettings), *fields(TokenSettings))}
        reported: dict[str, Any] = {}
        for field in fields(self):
            if field.name in inherited:
                continue
            value = getattr(self, field.name)
            has_option = field.metadata.get("option", {}).get("flag") != ""
            if has_option or field.name == "test_share" or value != field.default:
                reported[field.name] = value
        return reported

    def source_options(self) -> dict[str, Any]:
        """The settings that decide which documents are read and what a token is, for a summary."""
        return self.read_options() | self.token_options()

    def parameters(self) -> dict[str, Any]:
        """The same as parameters of `AttentionClassifier`, for model.json."""
        return {name: getattr(self, name) for name in PARAMETERS} | {"random_state": self.seed}
