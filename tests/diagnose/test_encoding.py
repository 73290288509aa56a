"""Words and pieces: which word a piece belongs to, what is cut off, and what leaving a word out
leaves."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from tokenizers import Tokenizer

from calls import later
from diagnose_models import build, framed, kind_of, train_tokenizer
from tokensieve.auditing.demo import demo_reviews
from tokensieve.diagnose.subjects.frame import Frame
from tokensieve.diagnose.subjects.windows import REST, SPECIAL, Windows
from tokensieve.errors import InputError
from tokensieve.progress import silent
from tokensieve.text.tokenizers import WordTokenizer

torch = later("torch")
tf = later("transformers")

TEXTS = demo_reviews(120, seed=3).texts
WORDS = ("bad", "good", "not", "plot", "tablet", "the", "wonderful")


@cache
def tokenizer_of(kind: str) -> str:
    """As JSON, trained once."""
    return str(train_tokenizer(kind, TEXTS.to_list()).to_str())


def encoded(
    family: str, limit: int | None = None, cut: bool = True, texts: pl.Series = TEXTS[:20]
) -> tuple[Any, Any]:
    tokenizer = framed(
        Tokenizer.from_str(tokenizer_of(kind_of(family))), family in ("gpt2", "llama")
    )
    return tokenizer, Windows(
        tokenizer, texts, WordTokenizer(), WORDS, Frame.of(tokenizer), limit, cut, silent
    )


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_pieces_of_a_word_spell_the_word(family: str) -> None:
    tokenizer, windows = encoded(family)
    frame = Frame.of(tokenizer)
    before, after = frame.before, frame.after
    assert windows.long_documents == windows.lost_pieces == 0 and len(windows) == 20
    for w in range(len(windows)):
        ids = windows.input(w).ids
        types = windows.types[windows.starts[w] : windows.starts[w + 1]]
        assert ids.tolist() == tokenizer(TEXTS[w])["input_ids"]
        assert (types == SPECIAL).sum() == len(before) + len(after)
        for s in np.unique(types[types >= 0]):
            written = tokenizer.decode(ids[types == s].tolist()).lower().replace(" ", "")
            occurrences = sum(word == WORDS[s] for _, _, word in WordTokenizer().spans(TEXTS[w]))
            assert written.strip(".,") == WORDS[s] * occurrences
    for s, form in enumerate(windows.forms):
        inner = form.ids[len(before) : len(form.ids) - len(after)]
        assert not len(inner) or tokenizer.decode(inner.tolist()).lower().strip(" .,") == WORDS[s]


def test_the_first_word_that_a_piece_reaches_into_gets_it() -> None:
    made = train_tokenizer("bytes", ["x"])
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]")
    windows = Windows(
        tokenizer,
        pl.Series(["naïve not, \U0001f600 bad", ""]),
        WordTokenizer(),
        ("bad", "naïve", "not"),
        Frame.of(tokenizer),
        None,
        True,
        silent,
    )
    text = "naïve not, \U0001f600 bad"
    expected = (
        [1] * 6 + [REST] + [2] * 3 + [REST] * 2 + [REST] * 5 + [0] * 3
    )  # one piece a byte; ï has two, the smile four
    assert len(text.encode()) == len(expected) == windows.starts[1]
    assert windows.types.tolist() == expected and windows.starts[2] == windows.starts[1]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_windows_cover_everything_and_truncation_counts_what_is_lost(family: str) -> None:
    tokenizer, whole = encoded(family)
    _, parts = encoded(family, 20, cut=False)
    _, cut = encoded(family, 20, cut=True)
    frame = Frame.of(tokenizer).size
    text = whole.types != SPECIAL
    assert parts.pieces[parts.types != SPECIAL].tolist() == whole.pieces[text].tolist()
    assert parts.types[parts.types != SPECIAL].tolist() == whole.types[text].tolist()
    assert (
        np.diff(parts.starts).max() == 20
        and np.diff(cut.starts).max() == 20
        and parts.lost_pieces == 0
    )
    lengths = np.diff(whole.starts) - frame
    assert cut.long_documents == parts.long_documents == (lengths > 20 - frame).sum()
    assert (
        cut.lost_pieces == np.maximum(lengths - (20 - frame), 0).sum()
        and cut.all_pieces == lengths.sum()
    )
    tokenizer.truncation_side = "left"
    end = Windows(
        tokenizer, TEXTS[:20], WordTokenizer(), WORDS, Frame.of(tokenizer), 20, True, silent
    )
    assert (
        end.input(0).ids[end.types[: end.starts[1]] != SPECIAL].tolist()
        == whole.pieces[: whole.starts[1]][whole.types[: whole.starts[1]] != SPECIAL][
            frame - 20 :
        ].tolist()
    )


@pytest.mark.parametrize("side", ["right", "left"])
def test_what_is_left_of_a_long_document_is_what_the_tokenizer_gives_without_the_words(
    side: str,
) -> None:
    tokenizer, _ = encoded("bert")
    tokenizer.truncation_side = side
    windows = Windows(
        tokenizer, TEXTS[:20], WordTokenizer(), WORDS, Frame.of(tokenizer), 20, True, silent
    )
    for w, text in enumerate(TEXTS[:20]):
        for words in ([5], [1, 2, 5], list(range(len(WORDS)))):
            left, at = "", 0
            for start, end, word in WordTokenizer().spans(text):
                left, at = (
                    left + text[at : start if word in [WORDS[s] for s in words] else end],
                    end,
                )
            ids = tokenizer(left + text[at:], truncation=True, max_length=20)["input_ids"]
            assert windows.without(w, np.array(words)).ids.tolist() == ids
    parts = Windows(
        tokenizer, TEXTS[:20], WordTokenizer(), WORDS, Frame.of(tokenizer), 20, False, silent
    )
    few = parts.of_documents(np.array([3, 7]))
    mine = [w for w, k in enumerate(parts.documents) if k in (3, 7)]
    assert [few.without(i, np.array([5])).ids.tolist() for i in range(len(few))] == [
        parts.without(w, np.array([5])).ids.tolist() for w in mine
    ]


def test_length_limits() -> None:
    for family, limit in (("bert", 256), ("roberta", 256)):
        model, tokenizer = build(family, TEXTS.to_list())
        assert Frame.of(tokenizer).limit(model, tokenizer, None) == limit
        tokenizer.model_max_length = 10**30
        assert Frame.of(tokenizer).limit(model, tokenizer, None) == (
            258 if family == "bert" else 257
        )  # RoBERTa's padding row is row 0
        assert Frame.of(tokenizer).limit(model, tokenizer, 40) == 40
        with pytest.raises(InputError, match="no room for text"):
            Frame.of(tokenizer).limit(model, tokenizer, 3)
