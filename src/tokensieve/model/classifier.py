"""The classifier with scikit-learn's interface, around `tokensieve.model.fit`.

The model of `tokensieve.model.attention`, trained on its scores u and values w directly. It starts
where one gradient step would take it (Wu et al. 2025, Lemma 4.1: embeddings align with the output
vector in proportion to token importance): values at the smoothed, class-balanced log-ratio of
document frequencies (Wang & Manning 2012), scores at its range.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
import polars.selectors
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.model.attention import (
    Model,
    decide,
    log_probabilities,
    per_class,
    probabilities,
)
from tokensieve.model.estimator import AttentionEstimator
from tokensieve.model.explanation import Explanation
from tokensieve.model.fit import fit
from tokensieve.model.inputs import (
    Array,
    Data,
    group_index,
)
from tokensieve.model.storage import read_model
from tokensieve.read.values import checked_weights
from tokensieve.text.counts import Counts
from tokensieve.text.lexicon import without_learned_words


class AttentionClassifier(ClassifierMixin, AttentionEstimator):  # type: ignore[misc]
    """Softmax attention over token types; its predictions are exact sums over tokens.

        f_X = Σ_s q_{X,s} w_s,    q_{X,s} = c_{X,s} e^{u_s} / Σ_r c_{X,r} e^{u_r}

    With two classes P(classes_[1]) = 1/(1 + e^{−f}); with K, softmax over K such logits. For a
    document without a known token it predicts the class frequencies.

    Args:
        ngrams: longest run of words that is a token type (text input only).
        min_documents: a type must occur in at least this many training documents; None means 1 for
            up to 2,000 documents and 3 for more (text input only).
        tokenizer: None for words; a `tokenizers.Tokenizer` or the path of its file for word pieces;
            or a `WordTokenizer` with other settings (text input only).
        formatting: treat formatting, such as ⟨3+ spaces⟩ or ⟨no final stop⟩, as token types too
            (text input only).
        batch_size: documents per training step.
        score_rate: initial step size of Adam for the scores u; for more than 2,000 short texts, a
            tenth of it is also tried.
        value_rate: initial step size of Adam for the values w.
        max_epochs: longest training, in passes over the data (at least 500 steps are allowed on
            small data).
        validation_share: fraction of the training documents on which the length of training is
            chosen; the model is then trained on all documents for that long. If a class has too few
            documents (fewer than 2; 5 if there are fewer than 40 documents, 10 if there are more
            than 2,000), nothing is chosen: training takes a quarter of the full length, or all of
            it for more than 2,000 documents. Short texts that are mostly parts of one another, such
            as phrases of sentences, are held out together.
        class_weight: None, a dict class → weight, or "balanced" for W/(K W_k), which gives every
            class the same weight in total: W_k is the sum of the sample weights of class k, or the
            number of its documents, and W that of all. Multiplied by `sample_weight`. Not stored
            with a saved model.
        random_state: an integer seed, None or a NumPy RandomState; the same seed gives
            bit-identical results.

    Attributes:
        classes_: the K labels, sorted.
        scores_: u, shape (types,).
        values_: w, shape (types, 1) for two classes (of classes_[1]), (types, K) otherwise.
        prior_: logit of a document without known tokens, and value of the sink, shape (1,) or (K,).
        sink_: score of the sink, which is part of every document's softmax; None for a model
            without one.
        vocabulary_: token types of text input, else None.
        tokens_: the |S| token types as text; for counts, the names or numbers of their columns.
        n_features_in_: the number of columns of counts; not defined after fitting on texts.
        feature_names_in_: names of the columns of counts, if these were a frame with names.
        min_documents_: the number of training documents in which a type had to occur.
        n_steps_: training steps taken.
        validation_: (steps, mean loss) on the validation documents, shape (checks, 2).
    """

    # every parameter by name, as scikit-learn asks; see `AttentionEstimator`
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
        class_weight: Data = None,
        random_state: Data = 0,
    ) -> None:
        super().__init__(
            ngrams,
            min_documents,
            tokenizer,
            formatting,
            batch_size,
            score_rate,
            value_rate,
            max_epochs,
            validation_share,
            random_state,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Data:
        tags = super().__sklearn_tags__()
        # attention sees shares of tokens, not magnitudes: scikit-learn's dense blobs are no counts
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Data, y: Data, sample_weight: Data = None, groups: Data = None) -> Self:
        """Learn from texts (a list or series of strings) or from counts.

        Args:
            X: n texts, or counts (dense or sparse, shape (n, types)).
            y: labels, shape (n,).
            sample_weight: how much each document counts in the loss and at the start, shape (n,),
                finite and ≥ 0. Only ratios matter: equal weights change nothing, and a document of
                weight 0 has no effect, except that the vocabulary is that of all texts. A weight of
                2 is not the same as two equal rows: those are drawn for a step more often, and
                count twice in the length of training and for `min_documents`.
            groups: what each document belongs to (author, prompt, source), shape (n,). Whole groups
                are then held out when the length of training is chosen, so that documents of a
                group are never on both sides.

        Raises:
            ValueError: fewer than two classes, negative counts, or lengths that do not agree
                (scikit-learn's messages).
            InputError: no token is frequent enough, or the weights are not usable.
        """
        settings = self._settings()
        documents = self._read(X, y, settings)
        labels = documents.labels
        classes, label_index = _class_index(labels, documents.matrix.shape[0])
        weights = self._weights(labels, sample_weight)
        names = tuple(str(name) for name in classes)
        counts = Counts(documents.matrix, label_index, names, documents.tokens, weights)
        units = group_index(groups, len(labels))
        model = fit(counts, settings, documents.vocabulary, units=units)
        return self._take(replace(model, classes=classes, settings=self._stored_settings(model)))

    def _weights(self, labels: Array, sample_weight: Data) -> Floats | None:
        """The weight of each document, from `sample_weight` and `class_weight`."""
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, len(labels))
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            of_class = _balanced(labels, weights)
        else:
            of_class = compute_sample_weight(self.class_weight, labels)
        combined = of_class if weights is None else weights * of_class
        return checked_weights(combined, len(labels), "class_weight")

    def _take(self, model: Model) -> Self:
        self.classes_ = model.classes
        return super()._take(model)

    def decision_function(self, X: Data) -> Floats:
        """f_X, shape (n,) for two classes and (n, K) for K."""
        f = self.trained_.logits(self.counts_of(X)[0])
        return f[:, 0] if f.shape[1] == 1 else f

    def predict_proba(self, X: Data) -> Floats:
        """Class probabilities, shape (n, K)."""
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Data) -> Floats:
        """Logarithms of the class probabilities, shape (n, K), finite where these round to 0."""
        return log_probabilities(self.decision_function(X))

    def predict(self, X: Data) -> Array:
        """The most probable class of each document."""
        f = self.decision_function(X)  # fails where there are no classes yet
        return np.asarray(self.classes_[decide(f)])

    def predict_median(self, X: Data, exact: float = 0.0) -> Array:
        """The middle class of each document, for classes in an order, such as stars; shape (n,).

        It is the class with the smallest expected loss, where a prediction that is k classes off
        costs k, and another `exact` for not being right. With 0 that is the first of the sorted
        classes up to which the probabilities add up to one half, and if the probabilities are right
        no other class has a smaller mean absolute error. The larger `exact`, the more often the
        class is that of `predict`, which is most often exactly right.

        Raises:
            ValueError: the classes are not numbers, so that their order is not known.
        """
        probability = self.predict_proba(X)
        if not np.issubdtype(self.classes_.dtype, np.number):
            raise ValueError("the middle class needs classes that are numbers, such as stars")
        place = np.arange(len(self.classes_))
        steps = np.abs(place[:, None] - place)
        loss = probability @ (steps + exact * (steps > 0))
        return np.asarray(self.classes_[loss.argmin(axis=1)])

    def answer(self, X: Data) -> pl.DataFrame:
        """The old name of `predictions`."""
        warnings.warn("answer is now predictions", DeprecationWarning, stacklevel=2)
        return self.predictions(X)

    def predictions(self, X: Data) -> pl.DataFrame:
        """A row per document: class, probability, answer (the logit) and unknown_words.

        They are those of `Model.predictions`.
        """
        return self.trained_.predictions(*self.counts_of(X))

    def explain(self, X: Data, label: object = None, names: Data = None) -> list[Explanation]:
        """Write each logit as a sum over the document's token types.

        Args:
            X: texts or counts, as in `fit`.
            label: the class to explain, or an `InputError`; if None, the second of two, or the
                predicted one of more.
            names: one for each column of counts, or an `InputError`:
                `vectorizer.get_feature_names_out()`; a frame brings its own.
        """
        named_model = replace(self.trained_, tokens=self._names(names))
        return Explanation.of(named_model, *self.counts_of(X), label)

    def effects(self, X: Data, names: Data = None) -> pl.DataFrame:
        """A table of the effect of each token on the logits f of the documents X, one row per token
        and class.

        Exact means over the documents that contain the token; the formulas are those of
        `Model.effects`. With two classes, the rows of the first have the opposite signs of the
        second, as in `explain`, whose arguments these are.

        Returns:
            All tokens of class 0, then of class 1, …: token, class, documents (of X that contain
            the token), attention (mean q_{X,s} T_X/c_{X,s}: 1 is what uniform attention gives),
            score u, value w, contribution, deletion (the logit with the token minus the logit after
            every occurrence is deleted; `prior_` where no known token is left). The means are null
            for a token that occurs in no document.
        """
        matrix, _ = self.counts_of(X)
        effects = self.trained_.effects(matrix)
        n_classes = len(self.classes_)
        n_types = len(self.scores_)
        types = np.tile(np.arange(n_types), n_classes)
        class_index = np.repeat(np.arange(n_classes), n_types)
        names_column = pl.Series(self._names(names).tolist(), dtype=pl.String)
        frame = pl.DataFrame(
            {
                "token": names_column.gather(types),
                "class": pl.Series(self.classes_.tolist()).gather(class_index),
                "documents": effects["documents"][types],
                "attention": effects["attention"][types],
                "score": self.scores_[types],
                "value": per_class(self.values_).T.ravel(),
                "contribution": per_class(effects["contribution"]).T.ravel(),
                "deletion": per_class(effects["deletion"]).T.ravel(),
            }
        )
        return frame.with_columns(polars.selectors.float().fill_nan(None))


def _balanced(labels: Array, weights: Floats | None) -> Floats:
    """W/(K W_k) for each document, where W_k is the weight of its class, and W of all; (n,).

    A class without weight gets 0. Without weights this is scikit-learn's n/(K n_k).
    """
    _, index = np.unique(labels, return_inverse=True)
    class_weights = np.bincount(index, weights)
    n_classes = np.count_nonzero(class_weights)
    with np.errstate(divide="ignore"):
        factors = class_weights.sum() / (n_classes * class_weights)
    factors[class_weights == 0] = 0.0
    return np.asarray(factors[index])


def _class_index(labels: Array, n_documents: int) -> tuple[Array, Ints]:
    """The classes, sorted, and the index of each label; a ValueError if they cannot be used."""
    check_classification_targets(labels)
    classes, index = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"the data has only one class ({classes.tolist()[0]!r}); "
            "a classifier needs at least two"
        )
    if len(labels) != n_documents:
        raise ValueError(f"{n_documents} documents, but {len(labels)} labels")
    return classes, index.astype(np.int64)


def load_model(path: str | Path) -> AttentionClassifier:
    """Load a saved model as a fitted scikit-learn classifier with its training settings."""
    model = read_model(path)
    assert model.vocabulary is not None
    if model.predicts_scores:
        raise InputError(
            f"{path} predicts scores, not classes: load it with AttentionRegressor.load"
        )
    return AttentionClassifier.of(
        model, tokenizer=without_learned_words(model.vocabulary.tokenizer)
    )
