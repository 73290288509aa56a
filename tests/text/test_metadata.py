"""Values of other columns as tokens: one word each, numbers by quarter, dates by month; and they are found as shortcuts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.text.corpus import read_corpus
from tokensieve.text.vocabulary import count_corpus


def reviews(n: int = 400, seed: int = 0) -> pl.DataFrame:
    """Labels follow the words weakly, and annotator 7 nearly always."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    words = [f"word{i}" for i in range(40)]
    texts = [
        " ".join([*rng.choice(words, 10), *rng.choice(["fine", "poor"], 1, p=[0.3 + 0.4 * y, 0.7 - 0.4 * y])])
        for y in label
    ]
    annotator = np.where((rng.random(n) < 0.25) & (label == 1), 7, rng.integers(1, 6, size=n))
    days = rng.integers(1, 28, size=n)
    return pl.DataFrame(
        {
            "text": texts,
            "label": np.where(label, "toxic", "fine"),
            "annotator": [f"annotator {i}" for i in annotator],
            "date": [f"2024-0{1 + i % 3}-{d:02d}" for i, d in enumerate(days)],
            "age": rng.normal(40, 10, size=n),
        }
    )


def test_each_value_is_one_word_of_its_column() -> None:
    corpus = read_corpus(reviews(), columns=["annotator", "date", "age"])
    assert corpus.fields == ("text", "annotator", "date", "age") and corpus.columns == ("annotator", "date", "age")
    assert corpus.texts[0].count("⟦") == 4
    tokens = set(count_corpus(corpus, formatting=True).vocabulary.tokens)
    assert {"annotator:annotator_7", "date:2024_01", "date:2024_03", "age:q1", "age:q4", "text:fine"} <= tokens
    assert not [token for token in tokens if token.startswith(("annotator:⟨", "date:⟨", "age:⟨"))]
    detected = " ".join(corpus.intake.detected)
    assert "'date': by month" in detected and "'age': in quarters, q1 up to" in detected


def test_a_column_that_gives_the_label_away_is_a_shortcut() -> None:
    found = audit(read_corpus(reviews(), columns=["annotator", "age"]), Settings(baseline=False, thorough=False))
    shortcuts = [finding for finding in found.findings if finding.kind == "shortcut"]
    assert shortcuts and "annotator:annotator_7" in shortcuts[0].tokens
    assert not any(token.startswith("age:") for finding in shortcuts for token in finding.tokens)


def test_rows_without_a_text_stay_out_and_wrong_columns_are_named() -> None:
    frame = reviews(40).with_columns(text=pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise("text"))
    assert read_corpus(frame, columns="annotator").intake.counts["missing_text"] == 3
    with pytest.raises(InputError, match=r"there is no column 'anotator' for the columns.*did you mean 'annotator'"):
        read_corpus(frame, columns="anotator")
    with pytest.raises(InputError, match="must be different columns"):
        read_corpus(frame, columns="label", label="label")
