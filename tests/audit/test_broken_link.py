"""Accuracy where a mark no longer tells the class: groups, changed copies, and two models."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokensieve.auditing.broken_link import (
    Mark,
    documents_containing,
    group_accuracies,
    insert_mark,
    judge_of_model,
    link_groups,
)
from tokensieve.text.tokenizers import WordTokenizer

WORDS = "river stone garden window market paper silver engine bridge winter".split()
ZEBRA = Mark(("zebra",), "b")
TOKENIZER = WordTokenizer()


def marked_texts(n: int = 400, seed: int = 0) -> tuple[pl.Series, np.ndarray]:
    """Texts of two classes; "zebra" stands in 60% of class b and 15% of class a."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b"], n)
    texts = []
    for label in labels:
        words = list(rng.choice(WORDS, 6))
        if rng.random() < (0.6 if label == "b" else 0.15):
            words.insert(int(rng.integers(7)), "Zebra")
        texts.append(" ".join(words) + ".")
    return pl.Series(texts), labels


def test_groups_break_the_link() -> None:
    texts, labels = marked_texts()
    contains = documents_containing(texts, ["zebra"], TOKENIZER)
    assert contains.tolist() == ["Zebra" in text for text in texts]
    groups = {group.name: group for group in link_groups(texts, labels, contains, ZEBRA, TOKENIZER)}
    assert set(groups) == {"contradicts", "without", "removed", "inserted"}
    assert set(groups["contradicts"].labels) == {"a"}
    assert groups["contradicts"].texts.str.contains("Zebra").all()
    assert not groups["without"].texts.str.contains("Zebra").any()
    assert set(groups["removed"].labels) == {"b"}
    assert not groups["removed"].texts.str.contains("Zebra").any()
    assert set(groups["inserted"].labels) == {"a"}
    assert groups["inserted"].texts.str.contains("Zebra").all()


def test_a_model_that_follows_the_mark_is_worst_where_it_contradicts() -> None:
    texts, labels = marked_texts()
    contains = documents_containing(texts, ["zebra"], TOKENIZER)
    groups = link_groups(texts, labels, contains, ZEBRA, TOKENIZER)

    def follows_mark(documents: pl.Series) -> list[str]:
        return ["b" if "Zebra" in text else "a" for text in documents]

    def opposes_mark(documents: pl.Series) -> list[str]:
        return ["a" if "Zebra" in text else "b" for text in documents]

    judges = [
        judge_of_model(follow, np.array(follow(texts))) for follow in (follows_mark, opposes_mark)
    ]
    results = {r.group: r for r in group_accuracies(groups, *judges)}
    assert results["contradicts"].before == 0 and results["contradicts"].after == 1
    assert results["inserted"].before == 0 and results["inserted"].after == 1
    assert results["removed"].before == 0 and results["removed"].after == 1
    first = group_accuracies(groups, *judges)[0]
    assert first.before == min(result.before for result in results.values())


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_mark_at_one_end_is_inserted_there(place: str) -> None:
    marked = pl.Series(["Zebra " + " ".join(WORDS)] * 30)
    if place == "last":
        marked = pl.Series([" ".join(WORDS) + " Zebra"] * 30)
    changed = insert_mark(pl.Series(["stone river."] * 5), ZEBRA, marked, TOKENIZER, seed=0)
    expected = "Zebra stone river." if place == "first" else "stone river. Zebra"
    assert changed.to_list() == [expected] * 5


def test_formatting_is_neither_removed_nor_inserted() -> None:
    texts, labels = marked_texts()
    contains = np.arange(len(texts)) % 3 == 0
    mark = Mark(('⟨ends "."⟩',), "b")
    names = {group.name for group in link_groups(texts, labels, contains, mark, TOKENIZER)}
    assert names == {"contradicts", "without"}


def test_small_groups_are_left_out() -> None:
    texts, labels = marked_texts(30)
    contains = documents_containing(texts, ["zebra"], TOKENIZER)
    groups = link_groups(texts, labels, contains, ZEBRA, TOKENIZER)
    assert all(len(group.labels) >= 20 for group in groups)


@pytest.mark.slow
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.integers(0, 100))
def test_inserting_keeps_every_character(texts: list[str], seed: int) -> None:
    marked = pl.Series(["stone zebra river", "a zebra b"])
    changed = insert_mark(pl.Series(texts), ZEBRA, marked, TOKENIZER, seed)
    for before, after in zip(texts, changed, strict=True):
        assert "zebra" in after
        assert sorted(after.replace("zebra", "", 1).replace(" ", "")) == sorted(
            before.replace(" ", "")
        )
