"""What the printed mask cuts out of texts in scripts without spaces: the phrase, and no letter of
another word."""

import numpy as np
import polars as pl
import pytest

from calls import fast_first
from tokensieve.auditing.masking import mask_texts
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.auditing.unspaced_phrases import whole_unspaced
from tokensieve.text.tokenizers import FieldTokenizer, WordTokenizer

N_DOCUMENTS = 500
WORDS = {
    "Thai": "ข้าว ปลา น้ำ ตลาด บ้าน โรงเรียน หนังสือ รถไฟ ฝน แมว สุนัข ดอกไม้ ทะเล เพื่อน ครู อาหาร เมือง",
    "Japanese": "今日は 駅で 友達と 映画を 本を 読んだ 雨が 犬が 海で 山で 電車に 乗った 学校へ 行った 食べた",
    "Khmer": "ទឹក បាយ ត្រី ផ្សារ ផ្ទះ សាលា សៀវភៅ រថភ្លើង ភ្លៀង ឆ្មា ផ្កា សមុទ្រ ភ្នំ មិត្ត គ្រូ អាហារ ផ្លូវ",
    "Chinese": "房间 服务 位置 早餐 酒店 前台 价格 电梯 朋友 机场 城市 花园 窗户 晚上 空调 自助 手续 来往",
}
PHRASES = {
    "Thai": "ส่งจากโทรศัพท์ของฉัน",
    "Japanese": "携帯から送信しました",
    "Khmer": "ផ្ញើពីទូរស័ព្ទរបស់ខ្ញុំ",
    "Chinese": "来自我的手机",
}


def marked_texts(language: str, seed: int) -> tuple[pl.Series, list[str]]:
    """Texts of words drawn at random; the phrase stands between two words in a fifth of a class."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b"], N_DOCUMENTS).tolist()
    texts = []
    for label in labels:
        words = rng.choice(WORDS[language].split(), 9).tolist()
        if label == "a" and rng.random() < 0.2:
            words.insert(int(rng.integers(10)), PHRASES[language])
        texts.append("".join(words))
    return pl.Series(texts), labels


@pytest.mark.slow
@pytest.mark.parametrize("language", fast_first(sorted(WORDS, reverse=True)))
def test_headline_names_the_phrase_and_its_mask_leaves_other_texts_as_they_are(language):
    texts, labels = marked_texts(language, seed=4)
    settings = Settings(baseline=False, thorough=False)
    audited = audit((texts.to_list(), labels), settings)
    # these texts are words drawn independently: how suspicious the phrase is depends on the draw
    found = [f for f in audited.findings if f.kind in ("shortcut", "possible_shortcut")]
    cut = [token for finding in found for token in finding.mask]
    assert cut
    tokenizer = audited.learned.model.vocabulary.tokenizer
    masked, _ = mask_texts(texts, cut, tokenizer)
    phrase = PHRASES[language]
    assert any(phrase in finding.headline for finding in found)
    expected = texts.str.replace_all(phrase, "", literal=True)
    assert (masked == expected).all()


def lexicon(*words: str) -> WordTokenizer:
    return WordTokenizer(lexicon=words)


def test_pieces_of_a_phrase_become_the_phrase_and_its_letter_is_not_cut_alone():
    tokenizer = lexicon("ส่งจา", "กโท", "ศัพ", "ท์ของฉัน", "อาหาร")
    texts = pl.Series([f"{word}ส่งจากโทรศัพท์ของฉัน" for word in ["แมว", "ฝน", "ครู"] * 4])
    pieces = ["ท์ของฉัน", "กโท", "ร"]
    assert whole_unspaced(pieces, texts, tokenizer) == ("ส่งจากโทรศัพท์ของฉัน",)
    assert whole_unspaced(["ร"], pl.Series(["ครูมา", "อาหาร"]), tokenizer) == ()


def test_a_character_that_no_other_word_contains_is_cut():
    texts = pl.Series(["房间很好卍", "卍服务很好"] * 6)
    assert whole_unspaced(["卍"], texts, lexicon("房间", "服务")) == ("卍",)


def test_words_with_a_space_between_them_stay_an_n_gram():
    texts = pl.Series(["ข้าว ปลา น้ำ", "แมว ข้าว ปลา"] * 6)
    tokenizer = lexicon("ข้าว", "ปลา", "แมว")
    assert whole_unspaced(["ข้าว ปลา"], texts, tokenizer) == ("ข้าว ปลา",)


def test_each_field_has_phrases_of_its_own():
    tokenizer = FieldTokenizer(lexicon("来自", "手机"), ("question", "answer"))
    marked = pl.Series([f"⟦question⟧房间{n}⟦answer⟧来自我的手机" for n in range(10)])
    plain = pl.Series([f"⟦question⟧来自{n}⟦answer⟧{n}来自" for n in range(10)])
    pieces = ["answer:手机", "question:来自"]
    assert whole_unspaced(pieces, pl.concat([marked, plain]), tokenizer) == (
        "answer:来自我的手机",
        "question:来自",
    )


def test_other_scripts_and_tokenizers_are_left_as_they_are():
    texts = pl.Series(["sent from my tablet"] * 10)
    assert whole_unspaced(["tablet", "sent from"], texts, WordTokenizer()) == (
        "tablet",
        "sent from",
    )
