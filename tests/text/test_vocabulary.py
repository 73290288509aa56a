"""Tokens: against scikit-learn's CountVectorizer, awkward Unicode, places in the text, and
word-piece tokenizers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from tokenizers import Tokenizer as Pieces
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

import tokensieve.text.vocabulary
from tokensieve.diagnose.subjects.passages import SPLITTER
from tokensieve.errors import InputError
from tokensieve.progress import prefetch
from tokensieve.read.values import text_series
from tokensieve.text.patterns import DOTTED_I
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.tokenizers import (
    Tokenizer,
    WordTokenizer,
    read_stop_words,
    tokenizer_from_dict,
)
from tokensieve.text.vocabulary import (
    TokenStream,
    Vocabulary,
    count_texts,
    learn_vocabulary,
    tokenize,
)

QUIET = settings(deadline=None, derandomize=True)
ASCII_WORD = r"\w+(?:['’]\w+)*"
ASCII_WORDS = [
    "the", "a", "not", "good", "Bad", "it's", "don't", "film_1", "42", "plot,", "(the)", "end.", "GOOD", "rare's", "of", "to", "x",
    "yz", '"', "'", "--", "can't",
]  # fmt: skip
NASTY = [
    "", " \t\n", "<br />", "<BR>x<br/>", "<br", "a<br\n/>b", "don't", "rock 'n' roll", "l’été", "_x_1", "Straße", "ΟΔΟΣ", "ΑΣ.Α",
    "Σ", "İstanbul", "ıI", "\u0301a", "e\u0301", "日本語", "ไทย", "שלום\u200f", "a\u200db", "👩🏽‍⚕️", "👍🏽👍", "🇩🇪🇫🇷", "🇦", "1️⃣",
    "☀️", "ﬁ", "Ǆ", "ᏸ", "ẞ", "\x00", "\ud800", "\ufffd", "'", "’", "\u2028", "$0 ${1}", "\ue000", "=cmd()", "<script>",
]  # fmt: skip
texts_strategy = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=6)), max_size=8).map(
    "".join
)


def words_of(text: str, tokenizer: Tokenizer | None = None) -> list[str]:
    tokenizer = tokenizer or WordTokenizer()
    return tokenizer.split(text_series([text])).to_list()[0]


def ascii_texts(seed: int, n: int) -> list[str]:
    rng = np.random.default_rng(seed)
    words = np.array(ASCII_WORDS)
    weights = 1 / np.arange(1, len(words) + 1)
    lengths = rng.integers(0, 40, size=n)
    return [" ".join(rng.choice(words, length, p=weights / weights.sum())) for length in lengths]


def matrix_of(
    texts: list[str], tokenizer: Tokenizer, ngrams: int, min_documents: int
) -> tuple[np.ndarray, list[str]]:
    stream = tokenize(text_series(texts), tokenizer)
    vocabulary = learn_vocabulary(stream, tokenizer, ngrams, min_documents)
    return vocabulary.count(stream)[0].toarray(), vocabulary.tokens.tolist()


@pytest.mark.parametrize("ngrams", [1, 2, 3])
@pytest.mark.parametrize("min_documents", [1, 3, 20])
@pytest.mark.parametrize("lowercase", [True, False])
def test_counts_are_those_of_count_vectorizer(
    ngrams: int, min_documents: int, lowercase: bool
) -> None:
    train, test = (
        ascii_texts(1, 120),
        [*ascii_texts(2, 60), "", "unseen words only", "good unseen film_1 good film_1"],
    )
    peer = CountVectorizer(
        token_pattern=ASCII_WORD, ngram_range=(1, ngrams), min_df=min_documents, lowercase=lowercase
    ).fit(train)
    tokenizer = WordTokenizer(lowercase=lowercase)
    stream = tokenize(text_series(train), tokenizer)
    vocabulary = learn_vocabulary(stream, tokenizer, ngrams, min_documents)
    assert set(vocabulary.tokens) == set(peer.vocabulary_)
    assert vocabulary.n_types == len(peer.vocabulary_)
    columns = [peer.vocabulary_[token] for token in vocabulary.tokens]
    for texts in (train, test):
        matrix, _ = vocabulary.count(tokenize(text_series(texts), tokenizer))
        np.testing.assert_array_equal(matrix.toarray(), peer.transform(texts).toarray()[:, columns])
        assert matrix.has_canonical_format


def test_vocabulary_lists_sorted_words_first_then_longer_runs_whatever_the_order_of_documents() -> (
    None
):
    texts = ascii_texts(3, 80)
    first, tokens = matrix_of(texts, WordTokenizer(), 3, 2)
    lengths = [token.count(" ") for token in tokens]
    assert lengths == sorted(lengths)
    words = [token for token in tokens if " " not in token]
    assert words == sorted(words)
    order = np.random.default_rng(0).permutation(len(texts))
    second, again = matrix_of([texts[i] for i in order], WordTokenizer(), 3, 2)
    assert again == tokens
    np.testing.assert_array_equal(second, first[order])


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_chunks_leave_no_trace(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", *ascii_texts(4, 20), "", "end of the end"]
    whole = tokenize(text_series(texts), WordTokenizer())
    monkeypatch.setattr(tokensieve.text.vocabulary, "DOCUMENTS_PER_CHUNK", chunk)
    done: list[int] = []
    cut = tokenize(text_series(texts), WordTokenizer(), done.append)
    assert [cut.words[i] for i in cut.ids] == [whole.words[i] for i in whole.ids]
    np.testing.assert_array_equal(cut.starts, whole.starts)
    assert done == [min(i + chunk, len(texts)) for i in range(0, len(texts), chunk)]
    assert len(set(cut.words)) == len(cut.words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\r\n\u00a0\u2003\u2028", []),
        ("Good, GOOD; good!", ["good", "good", "good"]),
        ("don't l’été rock 'n' roll' '", ["don't", "l’été", "rock", "n", "roll"]),
        ("it''s", ["it", "s"]),
        ("film_1 3.5 2nd", ["film_1", "3.5", "2nd"]),
        ("bad<br />good<br/>so<BR>so<Br \t/>end", ["bad", "good", "so", "so", "end"]),
        ("<b>br</b> <brr>", ["br", "brr"]),
        ("cafe\u0301 CAFE\u0301", ["cafe\u0301", "cafe\u0301"]),
        ("İIı", ["iiı"]),
        ("ΟΔΟΣ ΣΑΣ Σ", ["οδος", "σας", "σ"]),
        ("日本語 中文", ["日", "本", "語", "中", "文"]),
        ("हिन्दी ไทย", ["हिन्दी", "ไ", "ท", "ย"]),
        ("がコンピューターを買った。", ["が", "コンピューター", "を", "買", "っ", "た"]),
        ("Tシャツ ﾃｽﾄ 한국어 ㄅㄆ", ["tシャツ", "ﾃｽﾄ", "한국어", "ㄅㄆ"]),
        ("กำลัง ကောင်း ខ្មែរ", ["ก", "ำ", "ลั", "ง", "ကော", "င်း", "ខ្", "មែ", "រ"]),
        ("it's中文's 3本", ["it's", "中", "文", "s", "3", "本"]),
        ("שלום\u200f \u202bעולם\u202c", ["שלום", "עולם"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("👍🏽👍 👩🏽‍⚕️ ☀️", ["👍🏽", "👍", "👩🏽‍⚕️", "☀️"]),
        ("👨‍👩‍👧‍👦!🏳️‍🌈", ["👨‍👩‍👧‍👦", "🏳️‍🌈"]),
        ("🇩🇪🇫🇷🇦", ["🇩🇪", "🇫🇷"]),
        ("a\x00b", ["a", "b"]),
        ("<script>alert(1)</script> =cmd()", ["cmd"]),
    ],
)
def test_words_of_awkward_texts(text: str, expected: list[str]) -> None:
    assert words_of(text) == expected
    assert [token for _, _, token in WordTokenizer().spans(text)] == expected


def test_options_keep_case_and_line_breaks() -> None:
    assert words_of("Good BAD<br />x", WordTokenizer(lowercase=False)) == ["Good", "BAD", "x"]
    assert words_of("Good<br />x", WordTokenizer(line_breaks=False, html="keep")) == [
        "good",
        "br",
        "x",
    ]
    assert words_of("a-b c", WordTokenizer(pattern=r"[a-z-]+")) == ["a-b", "c"]
    settings = WordTokenizer(False, False, r"\S+", "strip", ("a", "b"), lexicon=())
    assert tokenizer_from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_html_is_read_as_a_browser_shows_it() -> None:
    text = """<p class='x'>The don&#39;t &amp; caf&eacute;<br/>b</p><SCRIPT>var x</script> end&nbsp;x<y <!-- no
    <b>no</b> --> &bad; &lt;b&gt; 3<4"""
    tokenizer = WordTokenizer(html="strip")
    expected = ["the", "don't", "café", "b", "end", "x", "y", "bad", "b", "3", "4"]
    assert words_of(text, tokenizer) == expected == [token for _, _, token in tokenizer.spans(text)]
    places = {token: text[start:end] for start, end, token in tokenizer.spans(text)}
    assert (
        places["don't"] == "don&#39;t"
        and places["café"] == "caf&eacute;"
        and places["end"] == "end"
    )
    assert words_of(text, WordTokenizer(html="keep"))[:3] == ["p", "class", "x"]
    assert words_of(text)[:4] == ["the", "don't", "caf", "b"]
    assert WordTokenizer(html=True) == tokenizer and WordTokenizer(html=False) == WordTokenizer(
        html="keep"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4/10 and 8.5/10, at 10:30pm.", ["4/10", "and", "8.5/10", "at", "10:30pm"]),
        ("e.g. the U.S. film.It ended", ["e.g.", "the", "u.s.", "film", "it", "ended"]),
        ("C++ or c", ["c++", "or", "c"]),
        ("50% of $20, £1,000.50 and 20€", ["50%", "of", "$20", "£1,000.50", "and", "20€"]),
        ("v1.2 of 3.11.4 on 12/05/2020", ["v1.2", "of", "3.11.4", "on", "12/05/2020"]),
        ("see https://x.org/a?b=1, www.y.com.", ["see", "https://x.org/a?b=1", "www.y.com"]),
        ("mail me.too@x.co.uk!", ["mail", "me.too@x.co.uk"]),
        ("don't, don&#39;t, don’t", ["don't", "don't", "don’t"]),
        (
            "Fed #39;s quot;hi quot; A&amp;B <br/>x <b class='y'>z</b>",
            ["fed", "s", "hi", "a", "b", "x", "z"],
        ),
        ("<user> says 3 < 4 and <3", ["user", "says", "3", "4", "and", "3"]),
        ("the 1990's, 3D, i++", ["the", "1990's", "3d", "i++"]),
        ("2-3 well-known #tag @me a_b", ["2", "3", "well", "known", "tag", "me", "a_b"]),
    ],
)
def test_tokens_as_people_read_them(text: str, expected: list[str]) -> None:
    assert words_of(text) == expected
    spans = WordTokenizer().spans(text)
    assert [token for _, _, token in spans] == expected
    plain = [text[start:end].lower() for start, end, _ in spans]
    assert plain == [
        token if token != "don't" else shown for token, shown in zip(expected, plain, strict=True)
    ]


@QUIET
@given(st.text(st.sampled_from("ab ,\t\xa0\u2003\x1cé"), max_size=30))
def test_no_token_holds_a_space_whatever_the_pattern(text: str) -> None:
    tokenizer = WordTokenizer(pattern="[^,]+", stop_words=("b",))
    spans = tokenizer.spans(text)
    assert [token for _, _, token in spans] == words_of(text, tokenizer)
    parts = [
        re.sub(r"\s+", "_", part.strip()) for part in text.lower().replace("\x1c", "é").split(",")
    ]
    assert [token.replace("\x1c", "é") for _, _, token in spans] == [
        part for part in parts if part not in ("", "b")
    ]


@QUIET
@given(st.text(st.sampled_from("ab1 .,:/@%$+-'’;&#3<>9évwhtp中q"), max_size=40))
def test_spans_of_ascii_and_of_other_texts_follow_one_rule(text: str) -> None:
    for one, tokenizer in product(
        (text, text.encode("ascii", "ignore").decode()), (WordTokenizer(), SPLITTER)
    ):
        spans = tokenizer.spans(one)
        assert [token for _, _, token in spans] == words_of(one, tokenizer)
        assert all(0 <= start < end <= len(one) for start, end, _ in spans)


def test_stand_ins_in_ascii_are_the_same_to_the_rule_of_words() -> None:
    around = (
        *(
            "{0}",
            "a{0}b",
            "1{0}2",
            "a {0} b",
            "{0}1",
            "1{0}",
            "{0}'a",
            "x@y.{0}{0}",
            "x{0}@y.de",
            "www.{0}",
            "$1{0}",
        ),
        *(
            "http://a{0}b c",
            "http://a{0}",
            '"{0}.{0}."',
            "v1{0}2",
            "a{0}++",
            "&{0}a;",
            "<b {0}>",
            "#3{0}9;",
            "A{0}<br>{0}",
        ),
    )
    texts = [
        form.format(chr(code))
        for code in (*range(128, 192, 2), *range(192, 0x530, 19), *range(0x2010, 0x2040, 2))
        for form in around
    ]
    for tokenizer in (WordTokenizer(), WordTokenizer(lowercase=False, html="keep"), SPLITTER):
        found = [[token for _, _, token in tokenizer.spans(text)] for text in texts]
        assert found == tokenizer.split(pl.Series(texts)).to_list()


@QUIET
@given(st.text(st.sampled_from("<>/!-&;#ab3 xlt中\u0130\U0001f600"), max_size=40))
@example("&#55296;a&#0;b&#x110000;")
def test_spans_of_html_are_the_tokens_of_split_in_order(text: str) -> None:
    tokenizer = WordTokenizer(html="strip")
    spans = tokenizer.spans(text)
    assert [token for _, _, token in spans] == words_of(text, tokenizer)
    assert all(0 <= start < end <= len(text) for start, end, _ in spans)
    assert [start for start, _, _ in spans] == sorted(start for start, _, _ in spans)


def test_stop_words_are_left_out_before_n_grams_are_formed(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("# of no weight\nThe\n\nof \nthe\n", encoding="utf-8")
    assert read_stop_words(path) == ("of", "the") and read_stop_words(path, False) == (
        "The",
        "of",
        "the",
    )
    tokenizer = WordTokenizer(stop_words=read_stop_words(path))
    assert words_of("The end of the film, the", tokenizer) == ["end", "film"]
    assert [token for _, _, token in tokenizer.spans("The end of the film, the")] == ["end", "film"]
    assert matrix_of(["the end of the film"], tokenizer, 2, 1)[1] == ["end", "film", "end film"]
    path.write_text("# nothing\n")
    for wrong, message in (
        (path, "contains no stop words"),
        (tmp_path / "none.txt", "cannot read"),
    ):
        with pytest.raises(InputError, match=message):
            read_stop_words(wrong)


@pytest.mark.parametrize("pattern", ["(", "a*", "x?", r"\b", "", "[z-a]", "(?<n>a)(?<n>b)"])
def test_a_pattern_that_is_none_is_one_clear_line(pattern: str) -> None:
    with pytest.raises(InputError, match="the pattern") as caught:
        WordTokenizer(pattern=pattern)
    assert "\n" not in str(caught.value)


def test_texts_without_words_are_named_as_such() -> None:
    with pytest.raises(InputError, match="contain no words"):
        count_texts(pl.Series(["...", "!", " "]))


@QUIET
@given(texts_strategy, st.booleans(), st.booleans())
@example("ΑΣ.Α", True, True)
@example("\ud800<BR >İ\ue000x", True, True)
def test_spans_are_the_tokens_of_split_at_their_place(
    text: str, lowercase: bool, line_breaks: bool
) -> None:
    tokenizer = WordTokenizer(lowercase, line_breaks)
    spans = tokenizer.spans(text)
    assert [token for _, _, token in spans] == words_of(text, tokenizer)
    at = 0
    for start, end, token in spans:
        assert at <= start < end <= len(text)
        there = text[start:end]
        if lowercase:
            there = there.lower().replace(DOTTED_I, "i")
        assert there.replace("ς", "σ") == token.replace("ς", "σ")
        at = end


@QUIET
@given(
    st.text(st.characters(max_codepoint=127), max_size=60) | st.text("a'_ 9.<B", max_size=20),
    st.booleans(),
)
@example("Don't say 'never': rock'n'roll isn''t a_b 9'9.", True)
def test_words_of_ascii_are_found_at_their_place_too(text: str, lowercase: bool) -> None:
    tokenizer = WordTokenizer(lowercase, line_breaks=False)
    spans = tokenizer.spans(text)
    assert [token for _, _, token in spans] == words_of(text, tokenizer)
    assert all(
        (text[start:end].lower() if lowercase else text[start:end]) == token
        for start, end, token in spans
    )


@pytest.mark.parametrize("pattern", [r"\bfoo\b", r"\w{2}", r"[^\s]+", r"o+$"])
def test_spans_follow_any_pattern(pattern: str) -> None:
    text = "xfoo foo, foofoo foo"
    tokenizer = WordTokenizer(pattern=pattern)
    assert tokenizer.spans(text) == [(*m.span(), m.group()) for m in re.finditer(pattern, text)]
    assert words_of(text, tokenizer) == re.findall(pattern, text)


@QUIET
@given(st.lists(texts_strategy, min_size=1, max_size=6), st.integers(1, 3), st.integers(1, 2))
def test_counts_by_brute_force_on_any_text(
    texts: list[str], ngrams: int, min_documents: int
) -> None:
    found = []
    for text in texts:
        words = words_of(text)
        runs = [
            tuple(words[i : i + n]) for n in range(1, ngrams + 1) for i in range(len(words) - n + 1)
        ]
        found.append(Counter(" ".join(run) for run in runs))
    frequency = Counter(token for document in found for token in document)
    kept = {token for token, documents in frequency.items() if documents >= min_documents}
    if not kept:
        with pytest.raises(InputError, match="no token occurs in"):
            matrix_of(texts, WordTokenizer(), ngrams, min_documents)
        return
    matrix, tokens = matrix_of(texts, WordTokenizer(), ngrams, min_documents)
    assert set(tokens) == kept
    for row, document in zip(matrix, found, strict=True):
        assert row.tolist() == [document[token] for token in tokens]


def test_unknown_words_are_counted_per_document() -> None:
    vocabulary = learn_vocabulary(
        tokenize(text_series(["good film", "good plot"]), WordTokenizer()), WordTokenizer(), 2, 1
    )
    texts = ["good film", "a good a", "", "zzz zzz zzz", "film good"]
    matrix, unknown = vocabulary.count(tokenize(text_series(texts), WordTokenizer()))
    assert unknown.tolist() == [0, 2, 0, 3, 0]
    assert unknown.dtype == np.int64
    assert matrix.sum(axis=1).tolist() == [3, 1, 0, 0, 2]


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert text_series(["a\ud800b", "ok"]).to_list() == ["a\ufffdb", "ok"]
    series = pl.Series(["as", "it", "is"])
    assert text_series(series) is series


@pytest.mark.parametrize(("ngrams", "min_documents"), [(0, 1), (1, 0), (-1, 3)])
def test_settings_below_one_are_refused(ngrams: int, min_documents: int) -> None:
    with pytest.raises(InputError, match="positive whole numbers"):
        matrix_of(["a b"], WordTokenizer(), ngrams, min_documents)


@pytest.mark.parametrize("texts", [[], ["", " "], ["...", "!"]])
def test_no_words_at_all_is_one_clear_line(texts: list[str]) -> None:
    with pytest.raises(InputError, match="lower --min-documents") as caught:
        matrix_of(texts, WordTokenizer(), 1, 1)
    assert "\n" not in str(caught.value)


def bpe() -> Pieces:
    tokenizer = Pieces(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(ascii_texts(5, 200), trainer)
    return tokenizer


def word_pieces() -> Pieces:
    tokenizer = Pieces(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=60, special_tokens=["[UNK]", "[CLS]"], show_progress=False
    )
    tokenizer.train_from_iterator(ascii_texts(6, 200), trainer)
    return tokenizer


@pytest.mark.parametrize("build", [bpe, word_pieces])
def test_piece_tokenizers_from_object_file_and_json(build: type, tmp_path: Path) -> None:
    pieces = build()
    (tmp_path / "tokenizer.json").write_text(pieces.to_str(), encoding="utf-8")
    texts = [*ascii_texts(7, 10), "", "Überraschung 👍🏽", "don't"]
    expected = [pieces.encode(text, add_special_tokens=False).tokens for text in texts]
    sources = (
        pieces,
        tmp_path / "tokenizer.json",
        str(tmp_path / "tokenizer.json"),
        pieces.to_str(),
    )
    for tokenizer in [PieceTokenizer(source) for source in sources]:
        assert tokenizer.split(pl.Series(texts)).to_list() == expected
        again = tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict())))
        assert again.split(pl.Series(texts)).to_list() == expected
        for text, tokens in zip(texts, expected, strict=True):
            spans = tokenizer.spans(text)
            assert [token for _, _, token in spans] == tokens
            assert all(0 <= start <= end <= len(text) for start, end, _ in spans)
    stream = tokenize(pl.Series(texts), PieceTokenizer(pieces))
    assert [stream.words[i] for i in stream.ids] == [
        token for tokens in expected for token in tokens
    ]


def test_piece_tokenizers_forget_padding_truncation_and_special_tokens_but_leave_the_original_alone() -> (
    None
):
    pieces = bpe()
    pieces.enable_truncation(2)
    pieces.enable_padding(length=8)
    tokenizer = PieceTokenizer(pieces)
    assert len(tokenizer.spans("a good plot and a bad end")) > 8
    assert pieces.truncation["max_length"] == 2
    assert "<s>" not in words_of("good", tokenizer)


@pytest.mark.parametrize("content", [None, "", "not json", "[]", "{}", '{"model": 3}'])
def test_a_file_that_is_no_tokenizer_is_one_clear_line(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    sources = [path, content] if content and content.startswith("{") else [path]
    for source in sources:
        with pytest.raises(InputError, match="not a tokenizers file") as caught:
            PieceTokenizer(source)
        assert "\n" not in str(caught.value)


def test_n_grams_do_not_cross_documents_or_rare_words() -> None:
    stream = TokenStream(np.array([0, 1, 1, 0, 2, 1]), np.array([0, 2, 3, 6]), ["a", "b", "rare"])
    vocabulary: Vocabulary = learn_vocabulary(stream, WordTokenizer(), 2, 1)
    assert vocabulary.tokens.tolist() == ["a", "b", "rare", "a b", "a rare", "rare b"]
    fewer = learn_vocabulary(stream, WordTokenizer(), 2, 2)
    assert fewer.words == ("a", "b")
    assert fewer.tokens.tolist() == ["a", "b"]
    assert vocabulary.positions(stream)[:, 1].tolist() == [-1, 3, -1, -1, 4, 5]


def test_what_is_made_ahead_comes_in_order_and_so_does_its_error() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise InputError("no more")

    coming = prefetch(items())
    assert [next(coming) for _ in range(5)] == list(range(5)) and list(prefetch([])) == []
    with pytest.raises(InputError, match="no more"):
        next(coming)


def test_the_turkish_capital_i_is_the_only_one_whose_lower_case_is_longer() -> None:
    longer = [chr(code) for code in range(0x110000) if len(chr(code).lower()) > 1]
    assert longer == ["İ"] and "İ".lower() == DOTTED_I


@pytest.mark.parametrize("html", ["skip", "keep", "strip"])
def test_a_word_with_a_turkish_capital_i_is_the_one_in_lower_case(
    html: Literal["skip", "keep", "strip"],
) -> None:
    tokenizer = WordTokenizer(html=html)
    texts = ["İNDİRİM indirim I\u0307NDI\u0307RI\u0307M", "<b>İ</b>&amp;ıI", "x İ\u0307"]
    for text in texts:
        spans = tokenizer.spans(text)
        assert [token for _, _, token in spans] == words_of(text, tokenizer)
    assert words_of(texts[0], tokenizer) == ["indirim"] * 3
    written = [texts[0][start:end] for start, end, _ in tokenizer.spans(texts[0])]
    assert written == texts[0].split()
    assert words_of("İyi", WordTokenizer(lowercase=False)) == ["İyi"]
