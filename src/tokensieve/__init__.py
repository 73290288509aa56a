"""tokensieve: which tokens decide the label, which does the model look at, and do the two agree?

    from tokensieve import AttentionClassifier, audit, read_corpus

Names are loaded when they are first used; no name here is also that of a module, which loading would put in its place.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tokensieve.attention import Gradient, answers, gradient
    from tokensieve.auditing import Audit, Settings, audit
    from tokensieve.budget import Budget
    from tokensieve.classifier import AttentionClassifier, Explanation
    from tokensieve.corpus import Corpus, read_corpus, split_corpus
    from tokensieve.counts import Counts
    from tokensieve.demo import demo_reviews
    from tokensieve.diagnose.diagnosing import DiagnoseSettings, Diagnosis
    from tokensieve.distributed import learn_on
    from tokensieve.errors import InputError
    from tokensieve.importance import Importance, TokenSums, token_importance
    from tokensieve.masking import mask_texts
    from tokensieve.model_file import load_model, model_files, table
    from tokensieve.onnx_file import onnx_model
    from tokensieve.report.charts import pictures
    from tokensieve.report.page import render
    from tokensieve.theory.flow import gradient_flow
    from tokensieve.theory.margin import max_margin, selection_of
    from tokensieve.theory.one_step import initialise, one_step
    from tokensieve.theory.sweep import grid, run_sweep
    from tokensieve.theory.verify import verify
    from tokensieve.tokens import PieceTokenizer, Vocabulary, WordTokenizer, learn_vocabulary, tokenize
    from tokensieve.training import Training, TrainingSettings, embedding_gradient, train_embeddings

_HOMES = {
    "attention": "Gradient answers gradient",
    "auditing": "Audit Settings audit",
    "budget": "Budget",
    "classifier": "AttentionClassifier Explanation",
    "corpus": "Corpus read_corpus split_corpus",
    "counts": "Counts",
    "demo": "demo_reviews",
    "diagnose.diagnosing": "DiagnoseSettings Diagnosis",
    "distributed": "learn_on",
    "errors": "InputError",
    "importance": "Importance TokenSums token_importance",
    "masking": "mask_texts",
    "model_file": "load_model model_files table",
    "onnx_file": "onnx_model",
    "report.charts": "pictures",
    "report.page": "render",
    "theory.flow": "gradient_flow",
    "theory.margin": "max_margin selection_of",
    "theory.one_step": "initialise one_step",
    "theory.sweep": "grid run_sweep",
    "theory.verify": "verify",
    "tokens": "PieceTokenizer Vocabulary WordTokenizer learn_vocabulary tokenize",
    "training": "Training TrainingSettings embedding_gradient train_embeddings",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tokensieve' has no attribute {name!r}")
    value = getattr(import_module(f"tokensieve.{_HOME[name]}"), name)
    globals()[name] = value
    return value
