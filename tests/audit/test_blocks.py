"""What an audit looks at in blocks, so that its memory stays small, gives the same results as a whole."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tokensieve import arrays, audit
from tokensieve.auditing import removal
from tokensieve.auditing.artefacts import neighbours
from tokensieve.auditing.artefacts.use import WordOrder, is_among
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.result import Audit
from tokensieve.evidence import order, sums
from tokensieve.task import baseline, refitted
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream


def audit_of_reviews() -> Audit:
    """An audit of 400 reviews, of which a part of one class ends with a rating out of ten."""
    reviews = demo_reviews(400)
    texts = [
        f"{text} I give it 3 out of 10." if i % 5 == 0 and label == reviews.labels[0] else text
        for i, (text, label) in enumerate(zip(reviews.texts, reviews.labels, strict=True))
    ]
    names = np.array(["negative", "positive"])[reviews.labels]
    frame = pl.DataFrame({"text": texts, "label": names})
    return audit(frame, text="text", label="label")


@pytest.mark.slow
def test_an_audit_in_small_blocks_has_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = audit_of_reviews()
    monkeypatch.setattr(sums, "TYPES_AT_ONCE", 64)
    monkeypatch.setattr(neighbours, "POSITIONS_AT_ONCE", 1000)
    monkeypatch.setattr(order, "PAIRS_AT_ONCE", 64)
    monkeypatch.setattr(refitted, "ENTRIES_AT_ONCE", 500)
    monkeypatch.setattr(removal, "_TEXTS_AT_ONCE", 10)
    monkeypatch.setattr(baseline, "row_blocks", partial(arrays.row_blocks, entries=500))
    in_blocks = audit_of_reviews()

    assert_frame_equal(in_blocks.tokens, whole.tokens)
    assert in_blocks.baseline == whole.baseline
    assert in_blocks.without_shortcuts is not None
    assert whole.without_shortcuts is not None
    assert in_blocks.without_shortcuts.difference == whole.without_shortcuts.difference
    assert in_blocks.without_shortcuts.concerned == whole.without_shortcuts.concerned
    for name in ("headline", "mask", "severity"):
        assert [getattr(finding, name) for finding in in_blocks.findings] == [
            getattr(finding, name) for finding in whole.findings
        ]


def test_pairs_that_recur_are_those_that_are_counted_twice() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, 60)
    starts = np.append(0, np.cumsum(lengths))
    ids = rng.integers(0, 12, starts[-1]).astype(np.int32)
    stream = TokenStream(ids, starts, [f"w{i}" for i in range(12)])
    words = WordOrder.of(stream, stream, WordTokenizer())
    n_following = words.n_occurrences(words.ids[:-1], words.ids[1:])
    assert words.is_recurring_pair[:-1].tolist() == (n_following >= 2).tolist()
    assert 0 < words.is_recurring_pair.mean() < 1
    n_around = words.n_occurrences(words.ids[:-2], words.ids[2:])
    assert words.is_skipped_pair[1:-1].tolist() == (n_around >= 1).tolist()
    assert 0 < words.is_skipped_pair.mean() < 1


def test_nothing_is_among_nothing() -> None:
    none = np.empty(0, np.int64)
    assert not is_among(np.arange(3), none).any()
    assert is_among(none, np.arange(3)).tolist() == []
