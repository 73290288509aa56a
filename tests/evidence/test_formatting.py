"""Formatting in the importance table and in counts: planted features found, words left as they
are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from tokensieve.evidence.drift import drift
from tokensieve.evidence.importance import token_importance
from tokensieve.text.counts import Counts
from tokensieve.text.formatting import FORMATTING, Formatting


def planted() -> tuple[Counts, pl.Series]:
    """Random words; three trailing spaces in 10 % of the positives, a final "..." in 10 % of the
    negatives."""
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
    return Counts.from_matrix(
        matrix, labels, ("neg", "pos"), [f"w{i}" for i in range(30)]
    ), pl.Series("text", texts)


def with_features(counts: Counts, texts: pl.Series) -> tuple[Counts, int]:
    """The counts with one more column for each feature that holds in three documents, and how many
    these are."""
    present = np.unpackbits(Formatting().bits(texts), axis=1, count=len(FORMATTING)).astype(
        np.float64
    )
    kept = np.flatnonzero(present.sum(axis=0) >= 3)
    tokens = np.concatenate(
        [counts.tokens.astype(object), np.asarray(FORMATTING, dtype=object)[kept]]
    )
    matrix = sp.csr_array(sp.hstack([counts.matrix, present[:, kept]], format="csr"))
    return Counts(matrix, counts.labels, counts.classes, tokens), len(kept)


def test_planted_formatting_is_found_and_words_keep_their_numbers() -> None:
    counts, texts = planted()
    words = token_importance(counts)
    table = token_importance(*with_features(counts, texts))
    found = {str(t) for t, q in zip(table.tokens, table.q_value[:, 1], strict=True) if q < 0.05}
    assert found == {"⟨trailing spaces⟩", "⟨3+ spaces⟩", '⟨ends "..."⟩', "⟨...⟩", '⟨ends "."⟩'}
    n = counts.n_types
    for name in ("alpha", "effect", "posterior_difference", "p_value"):
        np.testing.assert_array_equal(getattr(table, name)[:n], getattr(words, name))
    at = table.tokens.tolist().index("⟨trailing spaces⟩")
    assert table.documents[at] == 30
    assert table.posterior_difference[at, 1] == 1
    assert table.effect[at, 1] == pytest.approx(30 / 300 / 2 / counts.lengths.mean())
    assert table.to_frame().height == 2 * len(table.tokens)


def test_blocks_and_groups_of_one_document_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    more, features = with_features(*planted())
    found = token_importance(more, features)
    groups = token_importance(more, features, np.arange(more.n_documents))
    monkeypatch.setattr("tokensieve.arrays.ENTRIES_PER_BLOCK", 1000)  # several blocks
    assert token_importance(more, features).to_frame().equals(found.to_frame())
    assert (
        groups.to_frame()
        .drop("units")
        .sort("token", "class")
        .equals(found.to_frame().sort("token", "class"))
    )


def test_drift_of_formatting_is_that_of_its_share_of_documents() -> None:
    counts, texts = planted()
    more, features = with_features(counts, texts)
    ends = np.arange(600) % 3 > 0  # after: all that end in spaces, and a third of the others
    spaces = (more.matrix[:, [more.tokens.tolist().index("⟨3+ spaces⟩")]].toarray() > 0).ravel()
    side = ~ends | spaces
    table = drift(more.rows(~side), more.rows(side), features)
    words = drift(counts.rows(~side), counts.rows(side))
    assert table.head(counts.n_types).drop("q_value").equals(words.drop("q_value"))
    row = table.filter(pl.col("token") == "⟨3+ spaces⟩").row(0, named=True)
    assert (row["documents_before"], row["documents_after"]) == (0, 30) and row["q_value"] < 0.05
    mix = np.bincount(counts.labels) / 600
    share = sum(mix[k] * spaces[side & (counts.labels == k)].mean() for k in (0, 1))
    assert row["difference"] * counts.lengths.mean() == pytest.approx(share)
