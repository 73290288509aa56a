"""The model of scores with scikit-learn's interface: stars, ratings, a toxicity from 0 to 1."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
from sklearn.base import RegressorMixin

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.model.estimator import AttentionEstimator
from tokensieve.model.fit import fit
from tokensieve.model.inputs import Data, group_index
from tokensieve.model.storage import read_model
from tokensieve.read.corpus import SCORE_SIDES
from tokensieve.read.values import checked_weights
from tokensieve.text.counts import Counts, score_sides
from tokensieve.text.lexicon import without_learned_words


class AttentionRegressor(RegressorMixin, AttentionEstimator):  # type: ignore[misc]
    """Softmax attention over token types that predicts a number; predictions are exact sums.

        f_X = Σ_s q_{X,s} w_s,    q_{X,s} = c_{X,s} e^{u_s} / Σ_r c_{X,r} e^{u_r}

    It is trained by squared loss on standardised labels; values and predictions are in units of the
    labels. For a document without a known token it predicts the mean of the labels. The labels of
    training do not bound the predictions.

    Args:
        ngrams: as in `AttentionClassifier`, like all other parameters.
        min_documents: a type must occur in at least this many training documents.
        tokenizer: None for words.
        formatting: treat formatting as token types too.
        batch_size: documents per training step.
        score_rate: initial step size of Adam for the scores u.
        value_rate: initial step size of Adam for the values w, in standard deviations.
        max_epochs: longest training, in passes over the data.
        validation_share: fraction of the documents on which the length of training is chosen.
        random_state: the same seed gives bit-identical results.

    Attributes:
        scores_: u, shape (types,).
        values_: w, in units of the labels, shape (types, 1).
        prior_: the mean label, which is the value of the sink, shape (1,).
        sink_: score of the sink.
        vocabulary_: token types of text input, else None.
        tokens_: the |S| token types as text; for counts, the names or numbers of their columns.
        n_features_in_: the number of columns of counts; not defined after fitting on texts.
        feature_names_in_: names of the columns of counts, if these were a frame with names.
        min_documents_: the number of training documents in which a type had to occur.
        n_steps_: training steps taken.
        validation_: (steps, mean loss) on the validation documents, shape (checks, 2).
    """

    _needs_numbers = True

    def __sklearn_tags__(self) -> Data:
        tags = super().__sklearn_tags__()
        # attention sees shares of tokens, not magnitudes: scikit-learn's dense data is no counts
        tags.regressor_tags.poor_score = True
        return tags

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a model that `save` wrote.

        Raises:
            InputError: there is none, it is damaged, or it predicts something other than scores.
        """
        model = read_model(path)
        if not model.predicts_scores or model.vocabulary is None:
            raise InputError(f"{path} does not predict scores: load it with tokensieve.load_model")
        return cls.of(model, tokenizer=without_learned_words(model.vocabulary.tokenizer))

    def fit(self, X: Data, y: Data, sample_weight: Data = None, groups: Data = None) -> Self:
        """Learn from texts (a list or series of strings) or from counts.

        Args:
            X: n texts, or counts (dense or sparse, shape (n, types)).
            y: numbers, shape (n,).
            sample_weight: how much each document counts in the loss and at the start, shape (n,),
                finite and ≥ 0; see `AttentionClassifier.fit`.
            groups: what each document belongs to, shape (n,); whole groups are held out together.

        Raises:
            ValueError: labels that are not finite numbers, negative counts, or lengths that do not
                agree (scikit-learn's messages).
            InputError: no token is frequent enough, or the weights are not usable.
        """
        settings = self._settings()
        documents = self._read(X, y, settings)
        n = documents.matrix.shape[0]
        numbers = np.asarray(documents.labels, dtype=np.float64)
        if len(numbers) != n:
            raise ValueError(f"{n} documents, but {len(numbers)} labels")
        weights = None if sample_weight is None else checked_weights(sample_weight, n)
        labels = score_sides(numbers, weights)
        counts = Counts(documents.matrix, labels, SCORE_SIDES, documents.tokens, weights, numbers)
        units = group_index(groups, n)
        model = fit(counts, settings, documents.vocabulary, units=units)
        return self._take(replace(model, settings=self._stored_settings(model)))

    def predict(self, X: Data) -> Floats:
        """The predicted score of each document, shape (n,)."""
        trained = self.trained_  # fails before it is fitted
        return trained.logits(self.counts_of(X)[0])[:, 0]

    def explain(self, X: Data, names: Data = None) -> list[pl.DataFrame]:
        """Write each prediction as the mean label plus a sum over the document's token types.

        Args:
            X: texts or counts, as in `fit`.
            names: one for each column of counts, or an `InputError`.

        Returns:
            A frame per document, largest contribution first: token, attention q_s and contribution
            q_s (w_s − prior). The contributions add up to the prediction minus `prior_`.
        """
        tokens = self._names(names)
        matrix, _ = self.counts_of(X)
        return [
            frame.with_columns(token=pl.Series(tokens[frame["type"]], dtype=pl.String)).select(
                "token", "attention", "contribution"
            )
            for frame in self.trained_.contributions(matrix)
        ]
