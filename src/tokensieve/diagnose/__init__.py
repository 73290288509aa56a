"""Other people's models: what each word does to their predictions, beside what the data says about it.

from tokensieve.diagnose import diagnose, load

found = diagnose(*load("my-model"), texts, labels)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokensieve.diagnose.callback import DiagnoseCallback
    from tokensieve.diagnose.comparison import Comparison, compare
    from tokensieve.diagnose.diagnosis import Diagnosis
    from tokensieve.diagnose.run import diagnose, diagnose_corpus
    from tokensieve.diagnose.settings import DiagnoseSettings
    from tokensieve.diagnose.subjects.loading import load
    from tokensieve.diagnose.subjects.reader import LabelWords

_MODULES = {
    "Comparison": "comparison",
    "DiagnoseCallback": "callback",
    "DiagnoseSettings": "settings",
    "Diagnosis": "diagnosis",
    "LabelWords": "subjects.reader",
    "compare": "comparison",
    "diagnose": "run",
    "diagnose_corpus": "run",
    "load": "subjects.loading",
}
__all__ = [
    "Comparison",
    "DiagnoseCallback",
    "DiagnoseSettings",
    "Diagnosis",
    "LabelWords",
    "compare",
    "diagnose",
    "diagnose_corpus",
    "load",
]


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used: some need PyTorch."""
    if name not in _MODULES:
        raise AttributeError(f"module 'tokensieve.diagnose' has no attribute {name!r}")
    return getattr(import_module(f"tokensieve.diagnose.{_MODULES[name]}"), name)
