"""Formatting in the importance table and in counts: planted features found, words left as they are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tokensieve.evidence.drift import drift
from tokensieve.evidence.formatting import beside, formatting_importance, importance_of_all, with_formatting
from tokensieve.evidence.importance import token_importance
from tokensieve.text.counts import Counts
from tokensieve.text.formatting import FORMATTING, formatting


def planted() -> tuple[Counts, pl.Series]:
    """Random words; three trailing spaces in 10 % of the positives, a final "..." in 10 % of the negatives."""
    rng = np.random.default_rng(1)
    labels = np.arange(600) % 2
    words = rng.integers(0, 30, size=(600, 12))
    texts = []
    for k in range(600):
        text = "A " + " ".join(f"w{w}" for w in words[k]) + "."
        if k % 20 == 1:
            text += "   "
        if k % 20 == 2:
            text += ".."
        texts.append(text)
    matrix = np.stack([np.bincount(row, minlength=30) for row in words])
    return Counts.from_matrix(matrix, labels, ("neg", "pos"), [f"w{i}" for i in range(30)]), pl.Series("text", texts)


def test_planted_formatting_is_found_and_words_keep_their_numbers() -> None:
    counts, texts = planted()
    words = token_importance(counts)
    marks = formatting_importance(formatting(texts), counts.labels, counts.classes, float(counts.lengths.mean()))
    table = beside(words, marks)
    found = {str(t) for t, q in zip(table.tokens, table.q_value[:, 1], strict=True) if q < 0.05}
    assert found == {"⟨trailing spaces⟩", "⟨3+ spaces⟩", '⟨ends "..."⟩', "⟨...⟩", '⟨ends "."⟩'}
    n = counts.n_types
    for name in ("alpha", "effect", "effect_low", "posterior_difference", "p_value"):
        np.testing.assert_array_equal(getattr(table, name)[:n], getattr(words, name))
    at = table.tokens.tolist().index("⟨trailing spaces⟩")
    assert table.documents[at] == 30
    assert table.posterior_difference[at, 1] == 1
    assert table.effect[at, 1] == pytest.approx(30 / 300 / 2 / counts.lengths.mean())
    assert table.to_frame().height == 2 * len(table.tokens)


def test_features_enter_the_model_as_tokens_that_occur_once() -> None:
    counts, texts = planted()
    present = formatting(texts)
    more, kept = with_formatting(counts, present, min_documents=10)
    assert more.n_types == counts.n_types + len(kept)
    assert (np.asarray(present.sum(axis=0)).ravel()[kept] >= 10).all()
    np.testing.assert_array_equal(more.matrix[:, : counts.n_types].toarray(), counts.matrix.toarray())
    np.testing.assert_array_equal(more.matrix[:, counts.n_types :].toarray(), present[:, kept].toarray())
    assert more.matrix.has_sorted_indices
    assert [str(t) for t in more.tokens[counts.n_types :]] == [FORMATTING[i] for i in kept]


def test_counts_with_formatting_have_both_tables_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, texts = planted()
    more, kept = with_formatting(counts, formatting(texts), min_documents=3)
    length = float(counts.lengths.mean())
    marks = formatting_importance(formatting(texts), counts.labels, counts.classes, length)
    monkeypatch.setattr("tokensieve.text.counts.BLOCK", 1000)  # several blocks
    found = importance_of_all(more, len(kept))
    words = token_importance(counts)
    n = counts.n_types
    np.testing.assert_array_equal(found.alpha[:n], words.alpha)
    np.testing.assert_array_equal(found.p_value[:n], words.p_value)
    place = [marks.tokens.tolist().index(token) for token in found.tokens[n:]]
    np.testing.assert_allclose(found.effect[n:], marks.effect[place], rtol=1e-12)
    np.testing.assert_array_equal(found.posterior_low[n:], marks.posterior_low[place])
    assert importance_of_all(counts, 0).to_frame().equals(words.to_frame())


def test_drift_of_formatting_is_that_of_its_share_of_documents() -> None:
    counts, texts = planted()
    more, kept = with_formatting(counts, formatting(texts), min_documents=3)
    ends = np.arange(600) % 3 > 0  # after: all that end in spaces, and a third of the others
    spaces = (more.matrix[:, [more.tokens.tolist().index("⟨3+ spaces⟩")]].toarray() > 0).ravel()
    side = ~ends | spaces
    table = drift(more.rows(~side), more.rows(side), len(kept))
    words = drift(counts.rows(~side), counts.rows(side))
    assert table.head(counts.n_types).drop("q_value").equals(words.drop("q_value"))
    row = table.filter(pl.col("token") == "⟨3+ spaces⟩").row(0, named=True)
    assert (row["documents_before"], row["documents_after"]) == (0, 30) and row["q_value"] < 0.05
    mix = np.bincount(counts.labels) / 600
    share = sum(mix[k] * spaces[side & (counts.labels == k)].mean() for k in (0, 1))
    assert row["difference"] * counts.lengths.mean() == pytest.approx(share)
