"""A text in pieces: nothing of it lost, contributions that add up, n-grams shared among their
words."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Pieces
from tokenizers import models, pre_tokenizers, trainers

from calls import costly, fast_first
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.explanation import SINK

WORDS = [
    "good",
    "bad",
    "not",
    "film",
    "don't",
    "the",
    "straße",
    "日本語",
    "οδος",
    "i̇stanbul",
    "👍🏽",
    "🇩🇪",
]
NASTY = [
    "",
    " ",
    "<br />",
    "<BR>",
    "GOOD",
    "İstanbul",
    "ΟΔΟΣ",
    "ΑΣ.Α",
    "\ud800",
    "\x00",
    "e\u0301",
    "👩🏽‍⚕️",
    "🇩🇪🇫",
    "unseen",
]
texts_strategy = st.lists(
    st.one_of(st.sampled_from(WORDS + NASTY + [" "] * 10), st.text(max_size=4)), max_size=15
).map("".join)
KINDS = ["bigrams", "words", "pieces", "three classes"]


def training(classes: int) -> tuple[list[str], list[int]]:
    rng = np.random.default_rng(0)
    labels = (np.arange(60) % classes).tolist()
    return [
        " ".join(rng.choice(WORDS, 12)) + [" bad", " good", " film"][y] * 2 for y in labels
    ], labels


@cache
def model(kind: str) -> AttentionClassifier:
    texts, labels = training(3 if kind == "three classes" else 2)
    tokenizer = None
    if kind == "pieces":
        tokenizer = Pieces(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        tokenizer.train_from_iterator(
            texts,
            trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, show_progress=False),
        )
    ngrams = 2 if kind == "bigrams" else 1
    return AttentionClassifier(ngrams, min_documents=1, tokenizer=tokenizer).fit(texts, labels)


@pytest.mark.slow
@pytest.mark.parametrize("kind", fast_first(KINDS))
@costly(4)
@given(text=texts_strategy)
@example(text="ΑΣ.Α\ud800 good<br/>İstanbul")
@example(text="")
def test_pieces_join_to_the_text_and_add_up_to_the_answer(kind: str, text: str) -> None:
    trained = model(kind)
    matrix, _ = trained.counts_of([text])
    for k, label in enumerate(trained.classes_):
        cut = trained.trained_.pieces(text, k)
        assert "".join(piece for piece, *_ in cut) == text
        if matrix.nnz:
            found = trained.explain([text], label)[0]
            sink = found.table.row(by_predicate=pl.col("token") == SINK, named=True)
            assert sum(f for _, f, _, _ in cut) == pytest.approx(
                found.logit - sink["contribution"], abs=1e-10
            )
            assert sum(q for _, _, q, _ in cut) == pytest.approx(1.0 - sink["attention"], abs=1e-10)
        else:
            assert all(row[1:] == (0.0, 0.0, 0.0) for row in cut)


def test_each_occurrence_has_its_share_and_an_n_gram_is_shared_by_its_words() -> None:
    trained = model("bigrams")
    tokens = trained.tokens_.tolist()
    words = ["not", "good", "not", "unseen", "good"]
    runs = words + [" ".join(pair) for pair in pairwise(words)]
    counts = Counter(run for run in runs if run in tokens)
    weight = {run: c * np.exp(trained.scores_[tokens.index(run)]) for run, c in counts.items()}
    total = sum(weight.values()) + np.exp(trained.sink_)
    expected = [[0.0, 0.0] for _ in words]
    for n in (1, 2):
        for i in range(len(words) - n + 1):
            run = " ".join(words[i : i + n])
            if run in counts:
                q = weight[run] / counts[run] / total / n
                for j in range(i, i + n):
                    expected[j][0] += q * trained.values_[tokens.index(run), 0]
                    expected[j][1] += q
    cut = trained.trained_.pieces("Not good -- NOT unseen good!")
    assert [piece for piece, *_ in cut] == [
        "Not",
        " ",
        "good",
        " -- ",
        "NOT",
        " ",
        "unseen",
        " ",
        "good",
        "!",
    ]
    assert "not good" in counts
    for (_, f, q, value), (wanted_f, wanted_q), word in zip(cut[::2], expected, words, strict=True):
        assert (f, q) == (pytest.approx(wanted_f, abs=1e-12), pytest.approx(wanted_q, abs=1e-12))
        assert value == (trained.values_[tokens.index(word), 0] if word in tokens else 0.0)
    assert all(row[1:] == (0.0, 0.0, 0.0) for row in cut[1::2])
