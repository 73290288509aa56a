"""Other people's models: what the data says about each word beside what a trained classifier does with it.

from tokensieve.diagnose import diagnose, load

found = diagnose(*load("my-model"), texts, labels)
"""

from __future__ import annotations

from tokensieve.diagnose.diagnosing import diagnose, diagnose_corpus
from tokensieve.diagnose.loading import load
from tokensieve.diagnose.result import DiagnoseSettings, Diagnosis

__all__ = ["DiagnoseSettings", "Diagnosis", "diagnose", "diagnose_corpus", "load"]
