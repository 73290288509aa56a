"""Words of scripts without spaces: the longest match in a lexicon, and learning one from texts."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.report.live.model import tokenizer_for_page
from tokensieve.text.lexicon import with_lexicon
from tokensieve.text.patterns import CLUSTER
from tokensieve.text.settings import TokenSettings
from tokensieve.text.tokenizers import (
    FieldTokenizer,
    WordTokenizer,
    tokenizer_from_dict,
    with_named_words,
)
from tokensieve.text.vocabulary import Vocabulary, count_texts

QUIET = settings(deadline=None, derandomize=True, max_examples=25)
# of every script; 自来 begins 自来水, and 水 ends it
LEXICON = tuple(
    sorted(
        ["自来", "自来水", "公司", "水公", "さくら", "花見", "น้ำตาล", "น้ำ" + "ใน", "ភាសា", "ខ្មែរ", "ພາສາ", "မြန်မာ", "စာအုပ်"]
    )
)  # fmt: skip
PIECES = [
    *LEXICON, *"自来水公司花見さくら", "เ", "แ", "น", "้", "ำ", "า", "ะ", "ខ", "្", "ម", "ែ", "၊", "က", "်", "့", "္", "က္က",
    "၃", "๑", "๑.๒", "៣", "ア", "カタカナ", "ー", "a", "B2", "'", " ", "。", "\u200b", "\u200d", "\u0301",
    "https://例.jp/自来水", "a自@例.公司",
    "<br>", "&#39;", "İ", "x\u17d2", "👍🏽", "𠮷", "\U0002a700", "㊗", "々", "〇", "ໜ", "ໆ", "ៗ",
]  # fmt: skip
texts_strategy = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=12).map(
    "".join
)
KNOWING = WordTokenizer(lexicon=LEXICON)


def clusters(text: str) -> list[str]:
    return list(pl.Series([text]).str.extract_all(CLUSTER)[0])


def split(text: str, tokenizer: WordTokenizer) -> list[str]:
    return list(tokenizer.split(pl.Series([text]))[0])


@given(texts_strategy)
@example("เเก")
@example("ក្a")
@example("ក្១")
@example("စ္မ်")
@example("x\u17d2เ水")
@QUIET
def test_places_and_words_agree_and_cover_what_characters_cover(text: str) -> None:
    spans = KNOWING.spans(text)
    assert [word for *_, word in spans] == split(text, KNOWING)
    by_character = WordTokenizer().spans(text)
    assert "".join(word for *_, word in spans) == "".join(word for *_, word in by_character)
    boundaries = {start for start, *_ in by_character}
    assert {start for start, *_ in spans} <= boundaries


@given(st.lists(st.sampled_from([*LEXICON, *"自来水公司", "น้ำ", "ខ្មែ"]), max_size=10))
@QUIET
def test_the_longest_word_from_the_left_is_taken(parts: list[str]) -> None:
    text = "".join(parts)
    expected = []
    left = clusters(text)
    while left:
        sizes = range(len(left), 1, -1)
        size = next((n for n in sizes if "".join(left[:n]) in LEXICON), 1)
        expected.append("".join(left[:size]))
        left = left[size:]
    assert split(text, KNOWING) == expected


@given(texts_strategy)
@QUIET
def test_without_words_nothing_changes(text: str) -> None:
    for tokenizer in (WordTokenizer(lexicon=()), WordTokenizer(words="characters")):
        assert tokenizer.spans(text) == WordTokenizer().spans(text)
        assert split(text, tokenizer) == split(text, WordTokenizer())


def test_clusters_are_not_divided() -> None:
    cases = {
        "น้ำเปล่า": ["น้ำ", "เป", "ล่า"],
        "ខ្មែរ": ["ខ្មែ", "រ"],
        "မြန်မာ": ["မြန်", "မာ"],
        "အင်္ဂလိပ်": ["အင်္ဂ", "လိပ်"],
        "ພາສາ": ["ພາ", "ສາ"],
        "日本": ["日", "本"],
    }
    for text, expected in cases.items():
        assert clusters(text) == expected


@pytest.mark.parametrize("word", ["", "水", "น้ำ", "ab", "自来 水", "自a", "๑๒"])
def test_a_lexicon_of_something_else_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="script without spaces"):
        WordTokenizer(lexicon=(word,))
    with pytest.raises(ValueError, match="without spaces"):
        tokenizer_from_dict({"kind": "words", "lexicon": [word]})


def test_settings_have_a_lexicon_only_if_there_is_one() -> None:
    assert WordTokenizer(lexicon=()).to_dict() == WordTokenizer().to_dict()
    assert not {"words", "lexicon"} & WordTokenizer().to_dict().keys()
    for tokenizer in (KNOWING, WordTokenizer(words="segmenter", lexicon=LEXICON)):
        settings = json.loads(json.dumps(tokenizer.to_dict()))
        assert tokenizer_from_dict(settings) == tokenizer
    # a stored tokenizer never learns
    assert tokenizer_from_dict(WordTokenizer().to_dict()).lexicon == ()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_page_reads_the_same_words() -> None:
    rng = np.random.default_rng(5)
    texts = ["".join(rng.choice(PIECES, rng.integers(0, 14))) for _ in range(400)]
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    script = resources.files("tokensieve.report.live").joinpath("words.js").read_text("utf-8")
    script += """
      const [settings, texts] = JSON.parse(require("fs").readFileSync(0));
      console.log(JSON.stringify(texts.map((text) => Words.spans(text, settings))));"""
    for tokenizer in (KNOWING, WordTokenizer(lexicon=()), WordTokenizer(False, lexicon=LEXICON)):
        on_page = tokenizer_for_page(Vocabulary((), (), tokenizer))
        found = subprocess.run(
            ["node", "-e", script],
            input=json.dumps([on_page, texts]),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        for text, spans in zip(texts, json.loads(found.stdout), strict=True):
            expected = [
                [units(text[:start]), units(text[:end]), word]
                for start, end, word in tokenizer.spans(text)
            ]
            assert spans == expected, text


def units(text: str) -> int:
    """Characters of a text as JavaScript counts them."""
    return len(text.encode("utf-16-le")) // 2


WORDS = {
    "zh": "今天 天气 公园 朋友 喜欢 吃饭 电影 学校 老师 认真 图书馆 看书 非常 高兴 我们 一起 回家 时间 已经 很".split(),
    "th": "วันนี้ อากาศ สวน เพื่อน ชอบ กินข้าว ภาพยนตร์ โรงเรียน ครู หนังสือ ห้องสมุด ดีใจ เรา ด้วยกัน กลับบ้าน เวลา แล้ว มาก".split(),
    "ja": "きょう 天気 公園 ともだち 映画 学校 先生 図書館 とても うれしい 一緒 帰宅 時間 わたし 読書 電車 駅前".split(),
}  # fmt: skip


def sentences(language: str, n: int, seed: int = 0) -> list[list[str]]:
    """Lists of words of a language."""
    rng = np.random.default_rng(seed)
    return [list(rng.choice(WORDS[language], rng.integers(4, 12))) for _ in range(n)]


@pytest.mark.parametrize("language", WORDS)
def test_words_are_learned_from_texts(language: str) -> None:
    divided = sentences(language, 600)
    texts = pl.Series(["".join(words) for words in divided])
    learned = with_lexicon(WordTokenizer(), texts)
    assert isinstance(learned, WordTokenizer) and learned.lexicon
    assert learned.lexicon == tuple(sorted(set(learned.lexicon)))
    found = learned.split(texts).to_list()
    right = sum(
        len({*boundaries(a)} & {*boundaries(b)}) for a, b in zip(found, divided, strict=True)
    )
    n_found = sum(len(boundaries(words)) for words in found)
    n_true = sum(len(boundaries(words)) for words in divided)
    assert right / n_found > 0.9 and right / n_true > 0.9


def boundaries(words: list[str]) -> list[int]:
    return np.cumsum([len(word) for word in words]).tolist()


def test_the_order_of_texts_does_not_matter() -> None:
    texts = pl.Series(["".join(words) for words in sentences("zh", 300)])
    mixed = texts.sample(fraction=1.0, shuffle=True, seed=3)
    assert with_lexicon(WordTokenizer(), texts) == with_lexicon(WordTokenizer(), mixed)


def test_texts_in_files_give_the_same_words() -> None:
    texts = ["".join(words) for words in sentences("zh", 300)]
    stored = StoredTexts()
    stored.extend(texts)
    learned = with_lexicon(WordTokenizer(), stored)
    assert learned == with_lexicon(WordTokenizer(), pl.Series(texts))


def test_nothing_is_learned_where_there_is_nothing_to_learn() -> None:
    english = pl.Series(["a good film about 日本"] + ["a plain sentence with words"] * 300)
    assert with_lexicon(WordTokenizer(), english) == WordTokenizer(lexicon=())
    chinese = pl.Series(["".join(words) for words in sentences("zh", 50)])
    assert with_lexicon(WordTokenizer(words="characters"), chinese).lexicon == ()  # type: ignore[attr-defined]
    own_pattern = WordTokenizer(pattern=r"\w+")
    assert with_lexicon(own_pattern, chinese) is own_pattern
    assert with_lexicon(KNOWING, chinese) is KNOWING
    assert with_lexicon(WordTokenizer(), pl.Series([], dtype=pl.String)).lexicon == ()  # type: ignore[attr-defined]


def test_fields_share_a_lexicon_without_their_names() -> None:
    parts = zip(sentences("zh", 300), sentences("zh", 300, seed=1), strict=True)
    texts = pl.Series([f"⟦标题⟧ {''.join(a)}\n⟦正文⟧ {''.join(b)}" for a, b in parts])
    learned = with_lexicon(FieldTokenizer(WordTokenizer(), ("标题", "正文")), texts)
    assert isinstance(learned, FieldTokenizer)
    assert "图书馆" in learned.base.lexicon and "标题" not in learned.base.lexicon  # type: ignore[union-attr]
    named = with_named_words(learned, ["标题:自来水公司"])
    assert [word for *_, word in named.spans("⟦标题⟧ 自来水公司")] == ["标题:自来水公司"]


def test_counting_learns_once() -> None:
    texts = pl.Series(["".join(words) for words in sentences("zh", 300)])
    counted = count_texts(texts)
    tokenizer = counted.vocabulary.tokenizer
    assert "图书馆" in counted.vocabulary.words and tokenizer.lexicon  # type: ignore[attr-defined]
    again = count_texts(pl.Series(["很很很很"] * 5), tokenizer=tokenizer)
    assert again.vocabulary.tokenizer is tokenizer


def test_a_planted_phrase_is_a_word_however_rare_its_characters_are_alone() -> None:
    rng = np.random.default_rng(2)
    texts = []
    for words in sentences("zh", 500):
        if rng.random() < 0.1:
            words.insert(rng.integers(len(words)), "自来水公司")
        texts.append("".join(words))
    learned = with_lexicon(WordTokenizer(), pl.Series(texts))
    assert "自来水公司" in learned.lexicon  # type: ignore[attr-defined]


def test_a_segmenter_divides_the_texts() -> None:
    pytest.importorskip("icu4py")
    texts = pl.Series(["我们今天在图书馆看书", "图书馆今天非常安静", "ภาษาไทยง่ายมาก", "ภาษาไทยยาก"])
    learned = with_lexicon(WordTokenizer(words="segmenter"), texts)
    assert {"图书馆", "今天", "ภาษา"} <= {*learned.lexicon}  # type: ignore[attr-defined]


def test_a_missing_segmenter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "icu4py.breakers", None)
    texts = pl.Series(["我们今天在图书馆看书"] * 3)
    with pytest.raises(InputError, match="icu4py"):
        with_lexicon(WordTokenizer(words="segmenter"), texts)


def test_the_option_reaches_the_tokenizer() -> None:
    made = TokenSettings(words="characters").make_tokenizer()
    assert made == WordTokenizer(words="characters")
    with pytest.raises(InputError, match="--words"):
        TokenSettings(words="characters", tokenizer="tokenizer.json").make_tokenizer()
