"""Other people's models: what each word does to their answers, beside what the data says about it.

from tokensieve.diagnose import diagnose, load

found = diagnose(*load("my-model"), texts, labels)
"""

from __future__ import annotations

from typing import Any

from tokensieve.diagnose.comparing import Comparison, compare
from tokensieve.diagnose.diagnosing import diagnose, diagnose_corpus
from tokensieve.diagnose.loading import load
from tokensieve.diagnose.result import DiagnoseSettings, Diagnosis

__all__ = [
    "Comparison", "DiagnoseCallback", "DiagnoseSettings", "Diagnosis", "LabelWords", "compare", "diagnose", "diagnose_corpus",
    "load",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What needs PyTorch is imported when it is asked for."""
    if name == "LabelWords":
        from tokensieve.diagnose.words import LabelWords

        return LabelWords
    if name == "DiagnoseCallback":
        from tokensieve.diagnose.callback import DiagnoseCallback

        return DiagnoseCallback
    raise AttributeError(f"module 'tokensieve.diagnose' has no attribute {name!r}")
