"""What a token does to the model's answers: against deletion and a second answer, exact fractions
and hand-made documents."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.arrays import matrix_blocks
from tokensieve.model.attention import Model, attention, attention_sums, logits
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.text.counts import Counts

QUIET = settings(deadline=None, derandomize=True)
HEADS = [1, 3]


def problem(
    seed: int, heads: int, spread: float = 1.5, n: int = 12, types: int = 9
) -> tuple[Counts, *tuple[np.ndarray, ...]]:
    """Counts with an empty document, one of a single type and a type in no document; scores, values
    and prior."""
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.7, size=(n, types))
    matrix[0], matrix[1], matrix[1, 2], matrix[:, -1] = 0, 0, 3, 0
    counts = Counts.from_matrix(matrix, np.zeros(n, int), ("",))
    return (
        counts,
        rng.normal(scale=spread, size=types),
        rng.normal(size=(types, heads)),
        rng.normal(size=heads),
    )


def effects(
    matrix: sp.csr_array, u: np.ndarray, w: np.ndarray, prior: np.ndarray, sink: float | None = None
) -> dict[str, np.ndarray]:
    return Model(np.arange(2), u, w, prior, np.arange(len(u)).astype(str), sink=sink).effects(
        matrix
    )


def by_deletion(counts: Counts, u: np.ndarray, w: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """mean f_X − f_{X∖s}: the type's column emptied, every document answered again."""
    dense = counts.matrix.toarray()

    def answered(matrix: np.ndarray) -> np.ndarray:
        f = logits(sp.csr_array(matrix), u, w)
        f[matrix.sum(axis=1) == 0] = prior
        return f

    out = np.full(w.shape, np.nan)
    for s in range(counts.n_types):
        holds = dense[:, s] > 0
        if holds.any():
            without = dense.copy()
            without[:, s] = 0
            out[s] = np.mean(answered(dense)[holds] - answered(without)[holds], axis=0)
    return out


@QUIET
@given(st.integers(0, 10**6), st.sampled_from(HEADS), st.sampled_from([0.1, 1.5, 6.0]))
def test_deletion_is_the_mean_change_when_documents_are_answered_again(
    seed: int, heads: int, spread: float
) -> None:
    counts, u, w, prior = problem(seed, heads, spread)
    found = effects(counts.matrix, u, w, prior)
    np.testing.assert_allclose(
        found["deletion"], by_deletion(counts, u, w, prior), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(found["documents"], (counts.matrix.toarray() > 0).sum(axis=0))


@QUIET
@given(st.integers(0, 10**6), st.sampled_from(HEADS))
def test_contributions_and_attention_against_a_loop(seed: int, heads: int) -> None:
    counts, u, w, prior = problem(seed, heads)
    found, dense = effects(counts.matrix, u, w, prior), counts.matrix.toarray()
    for s in range(counts.n_types):
        terms, ratios = [], []
        for c in dense[dense[:, s] > 0]:
            q = c * np.exp(u) / np.sum(c * np.exp(u))
            terms.append(q[s] * w[s])
            ratios.append(q[s] / (c[s] / c.sum()))
        if terms:
            np.testing.assert_allclose(found["contribution"][s], np.mean(terms, axis=0), rtol=1e-12)
            assert found["attention"][s] == pytest.approx(np.mean(ratios), rel=1e-12)
        else:
            assert np.isnan(
                [*found["contribution"][s], *found["deletion"][s], found["attention"][s]]
            ).all()


@QUIET
@given(st.integers(0, 10**6), st.sampled_from(HEADS))
def test_contributions_of_a_document_add_up_to_its_answer(seed: int, heads: int) -> None:
    counts, u, w, prior = problem(seed, heads)
    f = logits(counts.matrix, u, w)
    for k in range(1, counts.n_documents):
        one = counts.rows(slice(k, k + 1))
        if one.matrix.nnz:
            found = effects(one.matrix, u, w, prior)
            np.testing.assert_allclose(
                np.nansum(found["contribution"], axis=0), f[k], rtol=1e-10, atol=1e-12
            )
            types, q = one.matrix.indices, attention(one.matrix, u)[:, None]
            if len(types) > 1:
                without = f[k] - found["deletion"][types]
                np.testing.assert_allclose(
                    (1 - q) * without + q * w[types], np.tile(f[k], (len(types), 1)), atol=1e-10
                )


def exact_losses(c: list[int], powers: list[int], w: list[float], prior: float) -> list[Fraction]:
    """f_X − f_{X∖s} of one document with weights c 2^power, in fractions and by the definition."""
    weights = [Fraction(k) * Fraction(2) ** p for k, p in zip(c, powers, strict=True)]
    values = [Fraction(x) for x in w]
    total = sum(weights)
    f = sum(a * b for a, b in zip(weights, values, strict=True)) / total
    out = []
    for s in range(len(c)):
        left = [(a, b) for r, (a, b) in enumerate(zip(weights, values, strict=True)) if r != s]
        rest = sum(a for a, _ in left)
        out.append(f - (sum(a * b for a, b in left) / rest if rest else Fraction(prior)))
    return out


@QUIET
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(-400, 400), st.floats(-9, 9)),
        min_size=1,
        max_size=6,
    ),
    st.floats(-3, 3),
    st.integers(0, 1200),
)
def test_relative_precision_where_one_type_takes_all_attention(
    types: list[tuple[int, int, float]], prior: float, lead: int
) -> None:
    c, powers, w = (list(x) for x in zip(*types, strict=True))
    powers[0] += lead
    counts = Counts.from_matrix([c], [0], ("",))
    found = effects(
        counts.matrix, np.log(2) * np.array(powers), np.array(w)[:, None], np.array([prior])
    )["deletion"][:, 0]
    for got, exact, q in zip(
        found,
        exact_losses(c, powers, w, prior),
        attention(counts.matrix, np.log(2) * np.array(powers)),
        strict=True,
    ):
        # e^u carries a relative error of |u| rounding units, and w_s − f_X cancels where the values
        # agree
        assert (
            abs(got - float(exact)) <= 1e-11 * (q * max(map(abs, w)) + abs(float(exact))) + 1e-290
        )


@pytest.mark.parametrize("gap", [30.0, 700.0, 5000.0])
def test_the_winner_is_missed_in_full_and_the_others_not_at_all(gap: float) -> None:
    counts = Counts.from_matrix([[1, 1, 3]], [0], ("",))
    found = effects(
        counts.matrix, np.array([gap, 0.0, 0.0]), np.array([[5.0], [1.0], [2.0]]), np.zeros(1)
    )["deletion"][:, 0]
    assert found[0] == pytest.approx(5 - 7 / 4, rel=1e-12)
    np.testing.assert_allclose(found[1:], np.array([1 - 5, 3 * (2 - 5)]) * np.exp(-gap), rtol=1e-11)


@QUIET
@given(
    st.integers(0, 10**6),
    st.sampled_from(HEADS),
    st.sampled_from([0.1, 1.5, 6.0]),
    st.floats(-3, 3),
)
def test_a_sink_takes_part_in_every_document(
    seed: int, heads: int, spread: float, sink: float
) -> None:
    counts, u, w, prior = problem(seed, heads, spread)
    found, types = effects(counts.matrix, u, w, prior, sink), counts.n_types
    dense = np.hstack([counts.matrix.toarray(), np.ones((counts.n_documents, 1))])
    weight = dense * np.exp(np.append(u, sink))
    value = np.vstack([w, prior])
    for s in range(types - 1):
        holds = dense[:, s] > 0
        if holds.any():
            q, rest = (
                weight / weight.sum(axis=1, keepdims=True),
                weight * (np.arange(types + 1) != s),
            )
            lost = q @ value - rest @ value / rest.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(
                found["deletion"][s], lost[holds].mean(axis=0), rtol=1e-8, atol=1e-11
            )
            np.testing.assert_allclose(
                found["contribution"][s], q[holds, s].mean() * w[s], rtol=1e-11
            )
    np.testing.assert_allclose(found["attention"], effects(counts.matrix, u, w, prior)["attention"])


def test_a_document_of_one_type_falls_back_on_the_prior() -> None:
    counts = Counts.from_matrix([[2, 0], [0, 0], [1, 1]], [0, 0, 0], ("",))
    found = effects(
        counts.matrix, np.zeros(2), np.array([[3.0, -1.0], [1.0, 4.0]]), np.array([0.5, 0.25])
    )
    np.testing.assert_allclose(
        found["deletion"], [[(2.5 + 1.0) / 2, (-1.25 - 2.5) / 2], [-1.0, 2.5]]
    )
    np.testing.assert_array_equal(found["documents"], [2, 1])


def test_blocks_change_rounding_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    counts = Counts.from_matrix(rng.poisson(0.9, size=(1200, 100)), np.zeros(1200, int), ("",))
    u, w, prior = rng.normal(size=100), rng.normal(size=(100, 2)), np.zeros(2)
    whole = effects(counts.matrix, u, w, prior)
    monkeypatch.setattr("tokensieve.arrays.ENTRIES_PER_BLOCK", 5000)
    assert len(list(matrix_blocks(counts.matrix))) > 10
    parts = effects(counts.matrix, u, w, prior)
    for name in ("documents", "attention", "contribution", "deletion"):
        np.testing.assert_allclose(whole[name], parts[name], rtol=1e-9, atol=1e-13)
    received, uniform, _ = attention_sums(counts.matrix, u)
    np.testing.assert_allclose(
        [received.sum(), uniform.sum()], np.count_nonzero(counts.lengths), rtol=1e-12
    )


TEXTS = [
    "good film",
    "a good good plot",
    "bad film",
    "a bad plot",
    "an odd film",
    "odd odd story",
    "good",
    "unseen words",
]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifiers_table_against_texts_without_the_token(classes: int) -> None:
    labels = [("good", "bad", "odd")[k // 2 % classes] for k in range(6)]
    model = AttentionClassifier(min_documents=1).fit(TEXTS[:6] * 5, labels * 5)
    names, n = model.classes_.tolist(), len(model.tokens_)
    found = model.effects(TEXTS)
    assert found.columns == [
        "token",
        "class",
        "documents",
        "attention",
        "score",
        "value",
        "contribution",
        "deletion",
    ]
    assert found["class"].to_list() == [name for name in names for _ in range(n)]
    assert found["token"].to_list() == model.tokens_.tolist() * classes
    signs = np.array([[-1.0, 1.0]]) if classes == 2 else np.eye(classes)
    for row in found.iter_rows(named=True):
        k, token = names.index(row["class"]), row["token"]
        holding = [text for text in TEXTS if token in text.split()]
        left = [" ".join(word for word in text.split() if word != token) for text in holding]
        f, rest = (
            np.atleast_2d(model.decision_function(x).reshape(len(x), -1)) @ signs[:, k]
            for x in (holding, left)
        )
        explained = pl.concat(e.table for e in model.explain(holding, row["class"])).filter(
            pl.col("token") == token
        )
        assert row["documents"] == len(holding)
        assert row["deletion"] == pytest.approx(np.mean(f - rest), rel=1e-9, abs=1e-11)
        assert row["contribution"] == pytest.approx(explained["contribution"].mean(), rel=1e-12)
        assert row["value"] == explained["value"][0]
        assert row["score"] == model.scores_[model.tokens_.tolist().index(token)]


def test_means_over_no_document_are_null() -> None:
    model = AttentionClassifier(min_documents=1).fit(
        TEXTS[:6] * 5, ["good", "good", "bad", "bad", "bad", "bad"] * 5
    )
    for texts in (["good film"], [], ["nothing known"]):
        found = model.effects(texts)
        none = found.filter(pl.col("documents") == 0)
        assert found["documents"].sum() == (4 if texts == ["good film"] else 0)
        assert (
            none.select("attention", "contribution", "deletion").null_count().row(0)
            == (none.height,) * 3
        )
        assert found.select("score", "value").null_count().row(0) == (0, 0)


def test_counts_are_read_as_texts_are() -> None:
    model = AttentionClassifier(min_documents=1).fit(
        TEXTS[:6] * 5, ["good", "good", "bad", "bad", "bad", "bad"] * 5
    )
    matrix, _ = model.counts_of(TEXTS)
    other = AttentionClassifier.of(replace(model.trained_, vocabulary=None))
    assert other.effects(matrix).equals(model.effects(TEXTS))
