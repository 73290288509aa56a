"""Settings of `verify`, including those of the flow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.read.settings import SourceSettings


@dataclass(frozen=True, kw_only=True)
class VerifySettings(SourceSettings):
    """The claims.

    Attributes:
        types, relevant, length: |S|, how many types predict the label, and T of the generated
            documents, of which there are n.
        d: embedding dimension; 512, or 1024 for generated documents, if None.
        eta: size of the first step; `OneStep.default_size` if None.
        max_norm, max_steps: ‖p‖ and accepted steps at which a curve ends.
        max_seconds: time limit for flow and limit together, or of one call of `gradient_flow`.
        tolerance: local error of a step relative to ‖p‖'s components.
        max_log_time: log t at which a curve with settled ties ends; what follows is predicted and
            certified.
        resume: file that keeps the state of the flow; a flow found there is continued.
    """

    ngrams: int = option(1, "Maximum n-gram length, in words.", low=1, high=5)
    min_documents: int = option(20, "Ignore tokens that occur in fewer documents.", low=1)
    documents: int = option(200, "Number of generated documents.", low=1)
    types: int = option(70, "Number of generated token types |S|.", low=1)
    relevant: int = option(20, "Generated types that predict the label.", low=1)
    length: int = option(8, "Tokens per generated document (T).", low=1)
    d: int | None = option(
        None,
        "Dimension of the embeddings.",
        low=1,
        default_text="512; 1024 for generated documents",
    )
    eta: float | None = option(None, "Size of the first step.", default_text="from the data")
    max_norm: float = option(20_000.0, "Follow p up to this norm.")
    max_seconds: float = option(
        600.0, "Total time limit in seconds, for following the flow and certifying its limit."
    )
    tolerance: float = option(1e-4, "", flag="")
    max_steps: int = option(10_000, "", flag="")
    max_log_time: float = option(40.0, "", flag="")
    seed: int = option(0, "Random seed.", low=0)
    resume: Path | None = option(
        None, "Save the state of the flow in this file, and continue from it."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume and (self.resume.is_dir() or not self.resume.parent.is_dir()):
            raise InputError(
                f"cannot save the flow in {str(self.resume)!r}: name a file in an existing folder"
            )
        if not (0 < self.max_norm < math.inf and self.max_seconds > 0):
            raise InputError(
                f"--max-norm {self.max_norm:g} and --max-seconds {self.max_seconds:g} "
                "must be positive numbers"
            )
        if not (self.max_steps > 0 and 0 < self.tolerance < 0.1):
            raise InputError(
                "use max_steps > 0 and 0 < tolerance < 0.1, "
                f"not {self.max_steps} and {self.tolerance:g}"
            )
