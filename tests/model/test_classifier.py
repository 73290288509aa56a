"""The classifier: scikit-learn's contract, exact sums, small and unequal data, and what it can
learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from tokenizers import Tokenizer as Pieces
from tokenizers import models, pre_tokenizers, trainers

from calls import costly, fast_first
from tokensieve.errors import InputError
from tokensieve.model.attention import (
    attention,
    loss_and_slope,
    per_class,
    probabilities,
    with_sink,
)
from tokensieve.model.choice import _last_step_before_rise, best_scale
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.explanation import SINK
from tokensieve.model.fit import fit
from tokensieve.model.start import initial_table
from tokensieve.read.corpus import Corpus
from tokensieve.read.values import text_series
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import count_corpus

FILLER = [f"word{i}" for i in range(30)]
MARKS = ["awful", "superb", "middling"]
WORDS = st.lists(
    st.sampled_from([*MARKS, *FILLER, "unseen", "", "<br />", "AWFUL"]), max_size=40
).map(" ".join)
NEGATIVE_DATA = {
    "check_decision_proba_consistency": "feeds negative numbers although the tags say that X is "
    "not negative",
    "check_class_weight_classifiers": "likewise; tests/model/test_weights.py has counts",
}


def reviews(
    seed: int, sizes: tuple[int, ...] = (60, 60), length: int = 12
) -> tuple[list[str], np.ndarray]:
    """Filler words, and in nine of ten documents the word that marks the class."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    texts = []
    for y in labels:
        words = rng.choice(FILLER, length).tolist()
        if rng.random() < 0.9:
            words[int(rng.integers(length))] = MARKS[y]
        texts.append(" ".join(words))
    return texts, labels


@cache
def trained(classes: int) -> AttentionClassifier:
    return AttentionClassifier(ngrams=2, min_documents=2).fit(*reviews(0, (50,) * classes))


@parametrize_with_checks([AttentionClassifier()], expected_failed_checks=lambda _: NEGATIVE_DATA)
def test_scikit_learns_contract(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_decision_and_probability_agree_on_their_order_for_counts() -> None:
    """check_decision_proba_consistency, on data that are counts."""
    rng = np.random.default_rng(0)
    labels = np.arange(100) % 2
    X = rng.poisson(1 + 3 * (np.arange(6) % 2 == labels[:, None]))
    model = AttentionClassifier().fit(X, labels)
    test = rng.poisson(2, size=(500, 6))
    decision, probability = model.decision_function(test), model.predict_proba(test)[:, 1]
    order = np.argsort(decision)
    assert (np.diff(probability[order]) >= 0).all() and np.ptp(probability) > 0.9
    np.testing.assert_array_equal(model.predict(test), (probability > 0.5).astype(int))
    np.testing.assert_allclose(model.predict_proba(test).sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize(
    ("sizes", "ngrams"),
    fast_first([((30, 40, 50), 2), ((50, 40), 2), ((30, 40, 50), 1), ((50, 40), 1)]),
)
def test_texts_and_their_counts_give_the_same_model(sizes: tuple[int, ...], ngrams: int) -> None:
    texts, labels = reviews(1, sizes)
    names = tuple(str(k) for k in range(len(sizes)))
    counted = count_corpus(
        Corpus.of(text_series(texts), np.asarray(labels), names), ngrams=ngrams, min_documents=3
    )
    matrix = counted.counts.matrix
    from_texts = AttentionClassifier(ngrams, min_documents=3).fit(texts, labels)
    others = [
        AttentionClassifier().fit(matrix, labels),
        AttentionClassifier().fit(matrix.toarray(), labels),
        AttentionClassifier.of(fit(counted.counts, vocabulary=counted.vocabulary)),
    ]
    for model in others:
        assert model.scores_.tobytes() == from_texts.scores_.tobytes()
        assert model.values_.tobytes() == from_texts.values_.tobytes()
        np.testing.assert_array_equal(
            model.decision_function(matrix), from_texts.decision_function(texts)
        )
    np.testing.assert_array_equal(
        from_texts.decision_function(matrix), from_texts.decision_function(texts)
    )
    assert others[2].predict(texts).tolist() == [str(y) for y in from_texts.predict(texts)]


@pytest.mark.slow
def test_agreement_with_count_vectorizer_in_a_pipeline() -> None:
    texts, labels = reviews(2)
    pipeline = make_pipeline(CountVectorizer(min_df=3, token_pattern=r"\w+"), AttentionClassifier())
    pipeline.fit(texts, labels)
    alone = AttentionClassifier().fit(texts, labels)
    np.testing.assert_allclose(
        pipeline.decision_function(texts), alone.decision_function(texts), rtol=1e-6, atol=1e-9
    )
    assert cross_val_score(clone(pipeline), texts, labels, cv=2).min() > 0.8
    assert cross_val_score(clone(alone), pd.Series(texts), pd.Series(labels), cv=2).min() > 0.8


@pytest.mark.parametrize(
    "wrap", [pd.Series, pl.Series, np.array, tuple, lambda x: np.array(x, dtype=object)]
)
def test_every_kind_of_sequence_of_texts_is_read_alike(wrap: Callable[[list[str]], Any]) -> None:
    texts, labels = reviews(0, (12, 12))
    plain = AttentionClassifier().fit(texts, labels)
    model = clone(plain).fit(wrap(texts), labels)
    np.testing.assert_array_equal(
        model.decision_function(wrap(texts)), plain.decision_function(texts)
    )


@costly(5)
@given(WORDS, st.sampled_from([2, 3]))
def test_contributions_add_up_to_the_decision_value(text: str, classes: int) -> None:
    model = trained(classes)
    decision = np.atleast_2d(model.decision_function([text]).reshape(1, -1))[0]
    for label in model.classes_:
        found = model.explain([text], label)[0]
        table = found.table
        assert found.logit == (
            decision[0] * (2 * label - 1) if classes == 2 else decision[int(label)]
        )
        assert found.predicted == model.predict([text])[0]
        assert found.explained == label
        assert found.probability == pytest.approx(
            model.predict_proba([text])[0, int(found.explained)], rel=1e-13
        )
        assert abs(table["contribution"].sum() - found.logit) < 1e-10
        assert table["attention"].sum() == pytest.approx(1, abs=1e-12)
        assert table.filter(pl.col("token") == SINK)["value"].to_list() == [
            per_class(model.prior_[None])[0, int(label)]
        ]
        np.testing.assert_allclose(
            table["contribution"], table["attention"] * table["value"], rtol=1e-14
        )
        sizes = table["contribution"].abs().to_list()
        assert sizes == sorted(sizes, reverse=True)
    words = WordTokenizer().split(text_series([text])).to_list()[0]
    assert model.explain([text])[0].unknown == sum(word not in model.tokens_ for word in words)
    assert model.explain([text])[0].to_dict()["tokens"] == model.explain([text])[0].table.to_dicts()


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_contributions_add_up_for_counts(classes: int) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.poisson(1.0, size=(60, 15)), np.arange(60) % classes
    model = AttentionClassifier().fit(X, y)
    q = attention(
        with_sink(Counts.from_matrix(X, y, "abc"[:classes]).matrix), model.trained_.table[0]
    )
    decision = model.decision_function(X)
    start = 0
    for k, found in enumerate(model.explain(X)):
        head = () if classes == 2 else (model.predict(X)[k],)
        assert abs(found.table["contribution"].sum() - decision[(k, *head)]) < 1e-10
        stop = start + found.table.height
        np.testing.assert_allclose(np.sort(found.table["attention"]), np.sort(q[start:stop]))
        start = stop


@pytest.mark.parametrize("sizes", [(40, 20), (5, 95), (30, 20, 10)])
def test_documents_without_known_tokens_are_answered_by_the_class_frequencies(
    sizes: tuple[int, ...],
) -> None:
    model = AttentionClassifier().fit(*reviews(5, sizes))
    for text in ("", "   ", "nothing known here", "😀"):
        np.testing.assert_allclose(
            model.predict_proba([text])[0], np.array(sizes) / sum(sizes), rtol=1e-12
        )
        assert model.predict([text])[0] == np.argmax(sizes)
        found = model.explain([text])[0]
        assert found.table["token"].to_list() == [SINK] and found.table["attention"].to_list() == [
            1.0
        ]
        assert found.unknown == len(WordTokenizer().spans(text))
        assert found.probability == pytest.approx(
            max(sizes) / sum(sizes) if len(sizes) > 2 else sizes[1] / sum(sizes)
        )


def test_empty_documents_in_training_are_no_obstacle() -> None:
    texts, labels = reviews(6)
    model = AttentionClassifier().fit([*texts, "", "  "], [*labels, 0, 1])
    assert model.score(texts, labels) > 0.9


@pytest.mark.parametrize(
    "sizes", fast_first([((10, 10),), ((95, 5),), ((7, 7, 6),), ((20, 20, 20),), ((190, 10),)], 3)
)
def test_small_and_unequal_data_are_learned(sizes: tuple[int, ...]) -> None:
    model = AttentionClassifier(min_documents=1).fit(*reviews(7, sizes))
    texts, labels = reviews(8, (200,) * len(sizes))
    if min(sizes) > 5:
        assert balanced_accuracy_score(labels, model.predict(texts)) > 0.8
    f = model.decision_function(texts).reshape(len(texts), -1)
    for k, column in enumerate(f.T, start=1 if len(sizes) == 2 else 0):
        assert roc_auc_score(labels == k, column) > 0.85
    assert np.isfinite(model.values_).all()


@pytest.mark.parametrize(
    "names",
    fast_first([["a", "b", "c"], [False, True], [-1.0, 1.0], ["no", "yes"], [3, 7], [1, 2, 3]]),
)
def test_labels_of_every_type_come_back_as_they_were(names: list[Any]) -> None:
    texts, index = reviews(9, (30,) * len(names))
    labels = np.array(names)[index]
    model = AttentionClassifier().fit(texts, labels)
    assert model.classes_.tolist() == names
    assert model.classes_.dtype == labels.dtype
    assert np.mean(model.predict(texts) == labels) > 0.9
    plain = AttentionClassifier().fit(texts, index)
    np.testing.assert_array_equal(model.decision_function(texts), plain.decision_function(texts))
    table = model.predictions(texts)
    assert table["class"].to_list() == model.predict(texts).tolist()
    np.testing.assert_allclose(
        table["probability"], model.predict_proba(texts).max(axis=1), rtol=1e-13
    )


def test_answer_counts_unknown_words() -> None:
    model = trained(2)
    table = model.predictions(["superb never heard of", "", "awful"])
    assert table["unknown_words"].to_list() == [3, 0, 0]
    assert table["class"].to_list()[::2] == [1, 0]
    np.testing.assert_array_equal(
        table["answer"], model.decision_function(["superb never heard of", "", "awful"])
    )


@pytest.mark.parametrize(
    "seeds", fast_first([((3, 3, 4),), ([np.random.RandomState(k) for k in (5, 5, 6)],)])
)
def test_the_same_seed_gives_the_same_bits(seeds: Any) -> None:
    texts, labels = reviews(10)
    one, same, other = [
        AttentionClassifier(random_state=seed).fit(texts, labels).values_.tobytes()
        for seed in seeds
    ]
    assert one == same != other


@pytest.mark.slow
def test_without_a_seed_it_learns() -> None:
    texts, labels = reviews(10)
    assert np.isfinite(AttentionClassifier(random_state=None).fit(texts, labels).values_).all()


def test_validation_chooses_the_length_with_the_smallest_held_out_loss() -> None:
    model = AttentionClassifier().fit(*reviews(11, (300, 300), length=6))
    steps, losses = model.validation_.T
    assert model.n_steps_ == steps[losses.argmin()]
    assert len(losses) <= losses.argmin() + 1 + 3
    assert steps[0] == np.ceil(max(4 * np.ceil(600 / 64), 500) / 8)
    without = AttentionClassifier(validation_share=0).fit(*reviews(11, (300, 300), length=6))
    assert without.n_steps_ == 500
    assert without.validation_.shape == (0, 2)
    few = AttentionClassifier().fit(*reviews(11, (300, 9)))
    assert few.n_steps_ == 500


def logistic_loss(f: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, np.where(y == 1, -f, f))))


@pytest.mark.parametrize("n", [30, 200])
def test_probabilities_of_labels_by_chance_are_hardly_worse_than_class_frequencies(n: int) -> None:
    rng = np.random.default_rng(n)
    words = [f"w{i}" for i in range(300)]
    texts = [" ".join(rng.choice(words, 20)) for _ in range(n + 500)]
    y = (rng.random(n + 500) < 0.4).astype(int)
    model = AttentionClassifier(min_documents=1).fit(texts[:n], y[:n])
    share = y[:n].mean()
    frequencies = logistic_loss(np.full(500, np.log(share / (1 - share))), y[n:])
    assert logistic_loss(model.decision_function(texts[n:]), y[n:]) < frequencies + 0.05


def test_a_short_text_is_answered_more_carefully_than_a_long_one() -> None:
    texts, labels = reviews(11, (300, 300), length=30)
    model = AttentionClassifier().fit(texts, labels)
    word = model.tokens_[np.argmax(model.values_[:, 0] * np.exp(model.scores_))]
    f = model.decision_function([" ".join([word] * k) for k in (1, 2, 5, 50)])
    assert (np.diff(f) > 0).all() and f[0] < 0.5 * f[-1]


@pytest.mark.parametrize("caution", [0.0, 0.7])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_scale_is_where_the_bound_on_the_loss_is_least(classes: int, caution: float) -> None:
    rng = np.random.default_rng(classes)
    heads = 1 if classes == 2 else classes
    f, prior, labels = rng.normal(size=(80, heads)), rng.normal(size=heads), np.arange(80) % classes
    for slant in (0.0, 0.7, 3.0):
        signal = slant * (labels[:, None] == 1) if heads == 1 else slant * np.eye(classes)[labels]
        losses = [
            loss_and_slope(prior + t * (f + signal - prior), labels)[0]
            for t in np.linspace(0, 2, 201)
        ]
        bounds = [x.mean() + caution * np.std(x - losses[0]) / np.sqrt(80) for x in losses]
        found = best_scale(f + signal, prior, labels, caution=caution)
        assert found == pytest.approx(np.argmin(bounds) / 100, abs=0.01)


@pytest.mark.parametrize("shape", [1, 3, 9])
@pytest.mark.parametrize("root", [-0.5, 0.0, 1e-4, 0.3, 1.99, 3.0])
def test_the_change_of_sign_is_where_halving_finds_it(root: float, shape: int) -> None:
    def slope_at(t: float) -> float:
        return float((t - root) ** shape + 0.1 * (t - root))

    low, high = 0.0, 2.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if slope_at(middle) > 0 else (middle, high)
    assert _last_step_before_rise(slope_at, 2.0, 2**20) == low


@pytest.mark.parametrize(("epochs", "batch", "steps"), [(1, 1, 600), (2, 1, 1200), (3, 600, 500)])
def test_the_longest_training_is_max_epochs_or_500_steps(
    epochs: int, batch: int, steps: int
) -> None:
    model = AttentionClassifier(max_epochs=epochs, batch_size=batch, validation_share=0).fit(
        *reviews(12, (300, 300), length=3)
    )
    assert model.n_steps_ == steps


def test_initial_table_is_the_smoothed_class_balanced_log_ratio() -> None:
    texts, labels = reviews(13, (40, 20))
    dense = CountVectorizer().fit_transform(texts).toarray()
    counts = Counts.from_matrix(dense, labels)
    u, w = initial_table(counts.weighted_present, counts.weighted_class_sizes, np.array([0.3]))
    present = dense > 0
    r = np.log1p(np.stack([60 / 2 * present[labels == k].mean(axis=0) for k in (0, 1)]))
    np.testing.assert_allclose(u, abs(r[1] - r[0]) / 4, atol=1e-14)
    np.testing.assert_allclose(w[:, 0], 4 * (r[1] - r[0]) + 0.3, atol=1e-13)


def test_probabilities_are_logistic_and_softmax() -> None:
    f = np.array([-800.0, -1.0, 0.0, 2.0, 800.0])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(probabilities(f)[:, 1], 1 / (1 + np.exp(-f)), atol=1e-300)
    np.testing.assert_allclose(
        probabilities(np.column_stack([-f / 2, f / 2])), probabilities(f), rtol=1e-12, atol=1e-300
    )
    np.testing.assert_array_equal(probabilities(np.array([[1e3, 0, -1e3]])), [[1, 0, 0]])


@pytest.mark.slow
def test_a_planted_pair_of_tokens_is_learned_with_bigrams_only() -> None:
    rng = np.random.default_rng(14)

    def draw(n: int) -> tuple[list[str], np.ndarray]:
        negated, good = rng.integers(2, size=n), rng.integers(2, size=n)
        texts = []
        for a, b in zip(negated, good, strict=True):
            words = rng.choice(FILLER, 8).tolist()
            words.insert(int(rng.integers(8)), ("not " if a else "so ") + ("good" if b else "bad"))
            texts.append(" ".join(words))
        return texts, negated ^ good

    texts, labels = draw(600)
    test, truth = draw(400)
    assert AttentionClassifier(ngrams=2).fit(texts, labels).score(test, truth) > 0.97
    assert AttentionClassifier(ngrams=1).fit(texts, labels).score(test, truth) < 0.65


def test_the_marks_of_the_classes_have_the_extreme_values_and_the_attention() -> None:
    model = AttentionClassifier().fit(*reviews(15, (200, 200)))
    tokens = model.tokens_.tolist()
    assert tokens[int(model.values_[:, 0].argmax())] == "superb"
    assert tokens[int(model.values_[:, 0].argmin())] == "awful"
    assert {tokens[s] for s in np.argsort(model.scores_)[-2:]} == {"superb", "awful"}


def test_word_pieces() -> None:
    texts, labels = reviews(16)
    pieces = Pieces(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=90, show_progress=False))
    model = AttentionClassifier(tokenizer=pieces).fit(texts, labels)
    assert len(model.tokens_) > 20
    assert model.score(texts, labels) > 0.9
    assert clone(model).fit(texts, labels).values_.tobytes() == model.values_.tobytes()


@pytest.mark.slow
def test_names_of_counts_are_the_columns_and_forgotten_when_fitted_again() -> None:
    rng = np.random.default_rng(17)
    X, y = pd.DataFrame(rng.poisson(1.0, size=(40, 3)), columns=["x", "y", "z"]), np.arange(40) % 2
    model = AttentionClassifier().fit(X, y)
    assert model.tokens_.tolist() == ["x", "y", "z"]
    assert set(model.explain(X.iloc[:1])[0].table["token"]) <= {"x", "y", "z", SINK}
    model.fit(X.to_numpy(), y)
    assert model.tokens_.tolist() == ["0", "1", "2"]
    with pytest.raises(ValueError, match="fitted on counts"):
        model.predict(["superb"])
    model.fit(X, y)
    texts, labels = reviews(18)
    model.fit(texts, labels)
    counts = model.counts_of(texts)[0]
    np.testing.assert_array_equal(model.decision_function(counts), model.decision_function(texts))


@pytest.mark.parametrize("with_vocabulary", [True, False])
def test_counts_of_the_wrong_width_are_refused(with_vocabulary: bool) -> None:
    texts, labels = reviews(19)
    base = AttentionClassifier().fit(texts, labels)
    counts = Counts.from_matrix(base.counts_of(texts)[0], labels)
    model = base if with_vocabulary else AttentionClassifier().fit(counts.matrix, labels)
    with pytest.raises(ValueError, match="features"):
        model.predict(np.ones((2, counts.n_types + 1)))
    with pytest.raises(ValueError, match="features"):
        model.predict(np.ones((2, counts.n_types - 1)))


def test_what_cannot_be_fitted_or_asked_is_named() -> None:
    texts, labels = reviews(20)
    with pytest.raises(ValueError, match="only one class"):
        AttentionClassifier().fit(texts, np.zeros(len(texts)))
    with pytest.raises(ValueError, match=f"{len(texts)} documents, but 3 labels"):
        AttentionClassifier().fit(texts, [0, 1, 0])
    with pytest.raises(InputError, match="lower --min-documents"):
        AttentionClassifier(min_documents=1000).fit(texts, labels)
    with pytest.raises(ValueError, match="Negative values"):
        AttentionClassifier().fit(np.array([[1, -1], [2, 3]]), [0, 1])
    with pytest.raises(InputError, match="has no class 'x'; it has 0, 1, 2"):
        AttentionClassifier().fit(*reviews(21, (20, 20, 20))).explain(texts[:1], "x")
    with pytest.raises(InputError, match="tokenizers file"):
        AttentionClassifier(tokenizer="nowhere.json").fit(texts, labels)


@pytest.mark.parametrize(
    "setting",
    [
        {"batch_size": 0},
        {"max_epochs": 0},
        {"value_rate": -1.0},
        {"validation_share": 1.0},
        {"score_rate": np.nan},
    ],
)
def test_impossible_settings_are_named(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        AttentionClassifier(**setting).fit(["a b", "a c"] * 10, [0, 1] * 10)


def test_no_documents_no_answers() -> None:
    model = AttentionClassifier().fit(["a b", "a c"] * 10, [0, 1] * 10)
    assert model.predict([]).shape == (0,) and model.explain([]) == []


def test_word_tokenizer_with_other_settings() -> None:
    texts, labels = ["Yes it is", "yes it is"] * 10, [0, 1] * 10
    model = AttentionClassifier(tokenizer=WordTokenizer(lowercase=False)).fit(texts, labels)
    assert model.score(texts, labels) == 1.0
    assert AttentionClassifier().fit(texts, labels).score(texts, labels) == 0.5


def test_the_first_of_two_classes_is_explained_with_signs_turned() -> None:
    model = AttentionClassifier(min_documents=1).fit(
        ["a good thing", "a bad thing"] * 10, ["yes", "no"] * 10
    )
    for_yes, for_no = (model.explain(["a good bad thing"], label)[0] for label in ("yes", "no"))
    assert for_no.explained == "no" and for_yes.explained == "yes"
    assert for_no.logit == -for_yes.logit
    assert for_no.probability == pytest.approx(1 - for_yes.probability)
    assert for_no.table["contribution"].sum() == pytest.approx(for_no.logit, abs=1e-10)


def test_what_is_no_list_of_texts_is_said_so() -> None:
    model = AttentionClassifier(min_documents=1).fit(
        ["a good thing", "a bad thing"] * 10, ["yes", "no"] * 10
    )
    for use in (model.predict, model.effects, lambda X: model.fit(X, ["yes", "no"])):
        with pytest.raises(ValueError, match="got one string"):
            use("a good thing")
        with pytest.raises(ValueError, match="entry 1 of the texts is missing"):
            use(["a", None])
        with pytest.raises(ValueError, match="entry 0 of the texts is not text but bytes"):
            use([b"a"])
    with pytest.raises(ValueError, match="1d array"):
        model.fit(["a good thing", "a bad thing"], [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda texts: [None, *texts[1:]], "entry 0 of the texts is missing"),
        (
            lambda texts: np.array([None, *texts[1:]], dtype=object),
            "entry 0 of the texts is missing",
        ),
        (lambda texts: pd.Series([*texts[:-1], None]), "entry 39 of the texts is missing"),
        (lambda texts: pl.Series([*texts[:-1], None]), "entry 39 of the texts is missing"),
        (lambda texts: (*texts[:-1], 3), "entry 39 of the texts is not text but int"),
        (lambda texts: pd.DataFrame({"body": texts}), "data frame.* column 'body'"),
        (lambda texts: pl.DataFrame({"body": texts}), "data frame.* column 'body'"),
        (lambda texts: np.array(texts, dtype=object)[:, None], "one column"),
    ],
)
def test_what_is_almost_a_list_of_texts_is_refused_by_its_place(made: Any, said: str) -> None:
    texts, labels = ["good film", "bad film"] * 20, [1, 0] * 20
    with pytest.raises(ValueError, match=said):
        AttentionClassifier().fit(made(texts), labels)


def test_one_class_is_named_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"only one class \('a'\)"):
        AttentionClassifier().fit(["good", "bad"] * 5, ["a"] * 10)


def test_columns_of_counts_can_be_named() -> None:
    texts, labels = ["good film", "bad film"] * 20, [1, 0] * 20
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(texts)
    model = AttentionClassifier().fit(X, labels)
    names = vectorizer.get_feature_names_out()
    assert set(model.explain(X[:1], names=names)[0].table["token"]) == {"good", "film", "⟨sink⟩"}
    assert model.effects(X, names=names)["token"].unique().sort().to_list() == [
        "bad",
        "film",
        "good",
    ]
    with pytest.raises(InputError, match="2 names for 3 columns"):
        model.explain(X[:1], names=["good", "bad"])


def test_a_model_is_printed_without_its_regular_expression() -> None:
    trained = AttentionClassifier().fit(["good film", "bad film"] * 20, [1, 0] * 20).trained_
    assert trained.vocabulary is not None
    again = AttentionClassifier.of(trained, tokenizer=trained.vocabulary.tokenizer)
    assert "Alphabetic" not in repr(again) and "pattern" not in repr(again)


@pytest.mark.slow
def test_groups_are_held_out_whole() -> None:
    """Forty copies of each of thirty texts with random labels: chance is all there is, and with
    their groups the model says so."""
    rng = np.random.default_rng(0)
    sources = [" ".join(rng.choice([f"w{i}" for i in range(500)], 20)) for _ in range(30)]
    groups = np.repeat(np.arange(30), 40)
    texts, labels = [sources[g] for g in groups], rng.integers(0, 2, 30)[groups]
    test = [" ".join(rng.choice([f"w{i}" for i in range(500)], 20)) for _ in range(200)]
    alone = AttentionClassifier().fit(texts, labels)
    together = AttentionClassifier().fit(texts, labels, groups=[f"source {g}" for g in groups])
    spread = [np.abs(m.decision_function(test) - m.prior_[0]).mean() for m in (alone, together)]
    assert spread[1] < 0.5 * spread[0]
    with pytest.raises(ValueError, match="1200 documents, but 2 groups"):
        AttentionClassifier().fit(texts, labels, groups=[1, 2])


def test_of_few_documents_every_token_counts_and_of_many_only_those_in_three() -> None:
    texts, labels = reviews(3, (30, 30))
    texts = [f"{text} only{i}" for i, text in enumerate(texts)]
    few = AttentionClassifier().fit(texts, labels)
    assert few.min_documents is None and few.min_documents_ == 1 and "only3" in few.tokens_
    assert few.trained_.settings["min_documents"] == 1
    many = AttentionClassifier(max_epochs=1).fit(texts * 40, list(labels) * 40)
    assert (
        many.min_documents_ == 3
        and AttentionClassifier(min_documents=2).fit(texts, labels).min_documents_ == 2
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_class_with_few_documents_makes_nobody_overconfident(seed: int) -> None:
    """Forty-five documents of chance, three of them of one class: hardly worse than the class
    frequencies on new ones."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(FILLER, 12)) for _ in range(1045)]
    labels = np.r_[np.arange(45) < 3, rng.random(1000) < 3 / 45].astype(np.int64)
    model = AttentionClassifier().fit(texts[:45], labels[:45])
    p = model.predict_proba(texts[45:])[np.arange(1000), labels[45:]]
    frequencies = np.where(labels[45:] == 1, 3 / 45, 42 / 45)
    assert -np.log(p).mean() < -np.log(frequencies).mean() + 0.05
