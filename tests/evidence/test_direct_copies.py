"""Which document a copy repeats itself: chains of copies are not copies of their ends."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tokensieve import Settings, audit
from tokensieve.evidence.direct_copies import NO_ORIGINAL, direct_originals, nearly_same

LONG = tuple(f"word{i}" for i in range(40))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("how do i top up my card", "how do i top up my new card", True),
        ("how do i top up my card", "how do i top up my card now please", False),
        ("turn it on", "turn it off", False),  # short sentences of one template
        (" ".join(LONG), " ".join((*LONG[:20], "other", *LONG[21:])), True),
        (" ".join(LONG), " ".join((*LONG[:5], *LONG[6:20], LONG[5], *LONG[20:])), True),
        (" ".join(LONG), " ".join(LONG[20:]), False),
    ],
)
def test_two_texts(a: str, b: str, same: bool) -> None:
    first, second = tuple(a.split()), tuple(b.split())
    assert nearly_same(first, second) is same
    assert nearly_same(second, first) is same


def test_the_end_of_a_chain_repeats_nothing() -> None:
    words = [
        "how do i top up my card",
        "how do i top up my new card",
        "how do i top up my new card today",
    ]
    series = pl.Series([text.split() for text in words])
    group = np.zeros(3, dtype=np.int64)
    assert direct_originals(group, series, 3).tolist() == [NO_ORIGINAL, 0, 1]
    # the third is a test document like the second one, which is not among its originals
    assert direct_originals(group, series, 1).tolist() == [NO_ORIGINAL, 0, NO_ORIGINAL]


@pytest.mark.slow
def test_a_leak_counts_copies_of_training_documents_alone() -> None:
    """14 of 244 leaked requests of a bank differed from every training document by more."""
    rng = np.random.default_rng(0)
    names = [f"w{i}" for i in range(300)]
    texts = [" ".join(rng.choice(names, 8)) for _ in range(60)]
    labels = ["a" if i % 2 else "b" for i in range(60)]
    copy = f"{texts[0]} qovari"
    test = [copy, f"{copy} plover", *(" ".join(rng.choice(names, 8)) for _ in range(20))]
    frame = pl.DataFrame({"text": texts, "label": labels})
    held_out = pl.DataFrame({"text": test, "label": ["a", "b"] * 11})
    found = audit(frame, Settings(baseline=False, min_documents=2), test=held_out)
    leak = next(finding for finding in found.findings if finding.kind == "leak")
    assert leak.documents == 1
    assert [example.row for example in leak.examples] == [1, 1]
