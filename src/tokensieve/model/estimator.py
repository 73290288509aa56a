"""What the estimators with scikit-learn's interface share: inputs and stored numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.files import write_all
from tokensieve.model.attention import Model
from tokensieve.model.inputs import (
    Array,
    Data,
    as_counts,
    is_text,
    labels_of_texts,
    numbers_of_texts,
)
from tokensieve.model.settings import PARAMETERS, TrainSettings
from tokensieve.model.storage import model_files
from tokensieve.progress import check_not_forked
from tokensieve.read.values import text_series
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import Vocabulary, count_texts

MAX_SEED = 2**31  # of a seed that is drawn


class Documents(NamedTuple):
    """What `fit` learns from: counts, labels, names of the types, and how text becomes counts."""

    matrix: sp.csr_array
    labels: Array
    tokens: Array
    vocabulary: Vocabulary | None = None


class AttentionEstimator(BaseEstimator):  # type: ignore[misc]
    """Texts or counts in, and the numbers of a trained model under scikit-learn's names."""

    _needs_numbers = False  # as labels

    # scikit-learn reads an estimator's parameters from the signature of its own `__init__`
    # (`get_params`, `clone`, grid searches), so that every subclass repeats them, and stores them
    # as they are; `_settings` checks them.
    def __init__(
        self,
        ngrams: int = 1,
        min_documents: int | None = None,
        tokenizer: Data = None,
        formatting: bool = False,
        batch_size: int = 64,
        score_rate: float = 0.01,
        value_rate: float = 0.1,
        max_epochs: int = 4,
        validation_share: float = 0.1,
        random_state: Data = 0,
    ) -> None:
        self.ngrams = ngrams
        self.min_documents = min_documents
        self.tokenizer = tokenizer
        self.formatting = formatting
        self.batch_size = batch_size
        self.score_rate = score_rate
        self.value_rate = value_rate
        self.max_epochs = max_epochs
        self.validation_share = validation_share
        self.random_state = random_state

    def __sklearn_tags__(self) -> Data:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.string = True
        return tags

    def _settings(self) -> TrainSettings:
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(MAX_SEED)
        parameters = {name: getattr(self, name) for name in PARAMETERS}
        return TrainSettings(**parameters, seed=int(seed))

    def _read(self, X: Data, y: Data, settings: TrainSettings) -> Documents:
        """Turn texts or counts, with their labels, into documents to learn from."""
        if not is_text(X):
            return self._read_counts(X, y)
        check_not_forked()
        if self._needs_numbers:
            return self._read_texts(text_series(X), numbers_of_texts(y), settings)
        return self._read_texts(text_series(X), labels_of_texts(y), settings)

    def _read_texts(self, texts: pl.Series, labels: Array, settings: TrainSettings) -> Documents:
        tokenizer = WordTokenizer() if self.tokenizer is None else self.tokenizer
        if not isinstance(tokenizer, Tokenizer):
            tokenizer = PieceTokenizer(tokenizer)
        settings = settings.of_documents(len(texts))
        counted = count_texts(
            texts,
            tokenizer=tokenizer,
            ngrams=settings.ngrams,
            min_documents=settings.min_documents or 1,
            formatting=settings.formatting,
        )
        self.__dict__.pop("feature_names_in_", None)
        vocabulary = counted.vocabulary
        return Documents(counted.matrix, labels, vocabulary.tokens, vocabulary)

    def _read_counts(self, X: Data, y: Data) -> Documents:
        X, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=self._needs_numbers
        )
        matrix = as_counts(X)
        columns = getattr(self, "feature_names_in_", np.arange(matrix.shape[1]).astype(str))
        return Documents(matrix, labels, np.asarray(columns, dtype=object))

    def _stored_settings(self, model: Model) -> dict[str, Any]:
        """The parameters that train the same model again, as JSON values."""
        stored = {
            name: int(value) if isinstance(value, np.integer) else value
            for name, value in model.settings.items()
        }
        if not isinstance(self.random_state, int | np.integer):
            # None or a generator: the next training draws its own seed, as this one did
            stored["random_state"] = None
        return stored

    @classmethod
    def of(cls, model: Model, tokenizer: Tokenizer | None = None) -> Self:
        """A fitted estimator from a trained model and its settings."""
        return cls(tokenizer=tokenizer, **model.settings)._take(model)

    def _take(self, model: Model) -> Self:
        """Store what was learned under scikit-learn's names."""
        self._model = model
        self.__dict__.pop("n_features_in_", None)
        if model.vocabulary is None:  # texts have no columns
            self.n_features_in_ = len(model.scores)
        self.vocabulary_ = model.vocabulary
        self.tokens_ = model.tokens
        self.scores_ = model.scores
        self.values_ = model.values
        self.prior_ = model.prior
        self.sink_ = model.sink
        self.n_steps_ = model.steps
        self.validation_ = model.validation
        self.min_documents_ = model.settings.get("min_documents", self.min_documents)
        return self

    @property
    def trained_(self) -> Model:
        """The model without scikit-learn, as `tokensieve.model.fit` makes it."""
        check_is_fitted(self, "scores_")
        return self._model

    def counts_of(self, X: Data) -> tuple[sp.csr_array, Ints]:
        """X as counts, shape (n, types), and the unknown words of each document, shape (n,)."""
        check_is_fitted(self, "scores_")
        is_empty_list = self.vocabulary_ is not None and isinstance(X, list) and not X
        if is_text(X) or is_empty_list:
            if self.vocabulary_ is None:
                raise ValueError("this model was fitted on counts: pass counts, not texts")
            check_not_forked()
            return self.vocabulary_.read(X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        if X.shape[1] != len(self.scores_):
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{len(self.scores_)} features as input"
            )
        return as_counts(X), np.zeros(X.shape[0], dtype=np.int64)

    def get_feature_names_out(self, input_features: Data = None) -> Array:
        """Names of the |S| token types, or of the columns of counts, shape (types,).

        Args:
            input_features: names of the columns of counts; those that `fit` has seen, if it has.
        """
        check_is_fitted(self, "scores_")
        if self.vocabulary_ is not None:
            return self.tokens_
        return np.asarray(_check_feature_names_in(self, input_features), dtype=object)

    def save(self, folder: str | Path) -> list[Path]:
        """Write a model fitted on texts into a folder, without pickle.

        `tokensieve.load_model` and `tokensieve predict` read it. An `InputError` if the folder
        cannot be written, or the model was fitted on counts.
        """
        return write_all(Path(folder), model_files(self.trained_))

    def _names(self, given: Data) -> Array:
        """The tokens, or other names for the columns of counts."""
        if given is None:
            return self.tokens_
        names = np.asarray([str(name) for name in given], dtype=object)
        if self.vocabulary_ is not None:
            raise InputError("a model of texts names its tokens: pass no other names")
        if len(names) != len(self.scores_):
            raise InputError(
                f"{len(names)} names for {len(self.scores_)} columns of counts: pass one for each"
            )
        return names
