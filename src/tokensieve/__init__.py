"""tokensieve: which tokens decide the label, which does the model look at, and do the two agree?

    from tokensieve import AttentionClassifier, audit, read_corpus

Names are loaded when they are first used; no name here is also that of a module, which loading would put in its place.
"""

from __future__ import annotations

__version__ = "0.3.0"

TYPE_CHECKING = (
    False  # type checkers take it for true; importing `typing` for it would double the time until a command starts
)
if TYPE_CHECKING:
    from typing import Any

    from tokensieve.auditing.budget import Budget
    from tokensieve.auditing.compare import AuditComparison, compare_audits
    from tokensieve.auditing.demo import demo_pairs, demo_reviews
    from tokensieve.auditing.mask import mask_texts
    from tokensieve.auditing.result import Audit, Settings
    from tokensieve.auditing.run import audit
    from tokensieve.diagnose.result import DiagnoseSettings, Diagnosis
    from tokensieve.errors import InputError
    from tokensieve.evidence.importance import Category, Importance, importance_of, token_importance
    from tokensieve.evidence.sums import TokenSums
    from tokensieve.model.attention import Gradient, answers, gradient
    from tokensieve.model.classifier import AttentionClassifier
    from tokensieve.model.cluster import learn_on
    from tokensieve.model.embeddings import Training, TrainingSettings, embedding_gradient, train_embeddings
    from tokensieve.model.explanation import Explanation
    from tokensieve.model.fit import fit
    from tokensieve.model.pairs import compare, fit_pairs, pair_gradient
    from tokensieve.model.settings import TrainSettings
    from tokensieve.model.start import initialise
    from tokensieve.model.storage import load_model, model_files, read_model, table
    from tokensieve.model.trained import Model
    from tokensieve.report.charts import pictures
    from tokensieve.report.dataset_card import dataset_card
    from tokensieve.report.page import render
    from tokensieve.report.save import save as save
    from tokensieve.text.corpus import Corpus, read_corpus, split_corpus
    from tokensieve.text.counts import Counts
    from tokensieve.text.pairs import read_pairs
    from tokensieve.text.tokenizers import PieceTokenizer, WordTokenizer
    from tokensieve.text.tokens import tokenize
    from tokensieve.text.vocabulary import Vocabulary, count_corpus, count_texts, learn_vocabulary
    from tokensieve.theory.flow import gradient_flow
    from tokensieve.theory.margin import max_margin, selection_of
    from tokensieve.theory.one_step import one_step
    from tokensieve.theory.verify import verify

_HOMES = {
    "auditing.budget": "Budget",
    "auditing.compare": "AuditComparison compare_audits",
    "auditing.demo": "demo_pairs demo_reviews",
    "auditing.mask": "mask_texts",
    "auditing.result": "Audit Settings",
    "auditing.run": "audit",
    "evidence.importance": "Category Importance importance_of token_importance",
    "evidence.sums": "TokenSums",
    "diagnose.result": "DiagnoseSettings Diagnosis",
    "errors": "InputError",
    "model.attention": "Gradient answers gradient",
    "model.classifier": "AttentionClassifier",
    "model.cluster": "learn_on",
    "model.embeddings": "Training TrainingSettings embedding_gradient train_embeddings",
    "model.explanation": "Explanation",
    "model.fit": "fit",
    "model.pairs": "compare fit_pairs pair_gradient",
    "model.settings": "TrainSettings",
    "model.start": "initialise",
    "model.storage": "load_model model_files read_model table",
    "model.trained": "Model",
    "report.charts": "pictures",
    "report.dataset_card": "dataset_card",
    "report.page": "render",
    "report.save": "save",
    "text.corpus": "Corpus read_corpus split_corpus",
    "text.counts": "Counts",
    "text.pairs": "read_pairs",
    "text.tokenizers": "PieceTokenizer WordTokenizer",
    "text.tokens": "tokenize",
    "text.vocabulary": "Vocabulary count_corpus count_texts learn_vocabulary",
    "theory.flow": "gradient_flow",
    "theory.margin": "max_margin selection_of",
    "theory.one_step": "one_step",
    "theory.verify": "verify",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tokensieve' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"tokensieve.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
