"""A model of texts without spaces: what it says after loading, its sums, and masks of its words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tokensieve.auditing.masking import mask_texts
from tokensieve.model.classifier import AttentionClassifier, load_model
from tokensieve.model.storage import LEXICON_RULE, model_files, table
from tokensieve.text.tokenizers import WordTokenizer

PHRASE = "自来水公司"
WORDS = "今天 天气 公园 朋友 喜欢 吃饭 电影 学校 老师 认真 图书馆 看书 我们 一起 回家 时间 已经 很".split()
JUDGEMENTS = {"负": ["糟糕", "失望", "无聊"], "正": ["精彩", "满意", "高兴"]}


def reviews() -> tuple[list[str], list[str]]:
    """Texts with words that judge, and in a quarter of one class a phrase that does not."""
    rng = np.random.default_rng(1)
    texts = []
    labels = []
    for number in range(400):
        label = "负正"[number % 2]
        words = list(rng.choice(WORDS, rng.integers(5, 12)))
        words.insert(int(rng.integers(len(words))), str(rng.choice(JUDGEMENTS[label])))
        if label == "正" and rng.random() < 0.25:
            words.insert(int(rng.integers(len(words))), PHRASE)
        texts.append("".join(words))
        labels.append(label)
    return texts, labels


@pytest.fixture(scope="module")
def trained() -> AttentionClassifier:
    texts, labels = reviews()
    return AttentionClassifier(min_documents=2).fit(texts, labels)


def test_the_phrase_is_a_token_that_a_mask_removes(trained: AttentionClassifier) -> None:
    assert PHRASE in trained.tokens_
    texts = pl.Series(reviews()[0])
    contain_phrase = texts.str.contains(PHRASE)
    for tokenizer in (trained.vocabulary_.tokenizer, WordTokenizer()):
        masked, n_changed = mask_texts(texts, [PHRASE], tokenizer)
        assert n_changed == contain_phrase.sum() > 20
        assert masked.equals(texts.str.replace_all(PHRASE, ""))


def test_a_loaded_model_reads_the_same_words(trained: AttentionClassifier, tmp_path: Path) -> None:
    for name, content in model_files(trained).items():
        (tmp_path / name).write_bytes(content)
    texts = [*reviews()[0][:50], "", "新的词", "Ａ自来水公司x"]
    loaded = load_model(tmp_path)
    assert loaded.vocabulary_.tokenizer == trained.vocabulary_.tokenizer
    np.testing.assert_array_equal(loaded.decision_function(texts), trained.decision_function(texts))
    stored = json.loads((tmp_path / "table.json").read_bytes())
    assert PHRASE in stored["tokenizer"]["lexicon"] and LEXICON_RULE in stored["rule"]
    english = AttentionClassifier(min_documents=1).fit(["good film", "bad film"] * 3, [1, 0] * 3)
    assert LEXICON_RULE not in table(english)["rule"]


def test_contributions_add_up(trained: AttentionClassifier) -> None:
    texts = reviews()[0][:40]
    logits = trained.decision_function(texts)
    for logit, explanation in zip(logits, trained.explain(texts), strict=True):
        assert explanation.logit == pytest.approx(logit)
        assert explanation.table["contribution"].sum() == pytest.approx(logit)
