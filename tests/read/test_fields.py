"""Texts of several fields: marks that nothing in a text can fake, tokens that know their field,
models that keep it all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Pieces
from tokenizers import models, pre_tokenizers

from calls import Run, joined, read_texts
from tokensieve.errors import InputError
from tokensieve.model.classifier import AttentionClassifier, load_model
from tokensieve.model.storage import model_files
from tokensieve.read.corpus import Corpus
from tokensieve.read.fields import split_fields
from tokensieve.read.reader import read_corpus
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.tokenizers import (
    FieldTokenizer,
    WordTokenizer,
    tokenizer_from_dict,
    tokenizer_of_fields,
)
from tokensieve.text.vocabulary import count_corpus

QUIET = settings(deadline=None, derandomize=True)
FIELDS = ("title", "body")
part = st.one_of(st.none(), st.text(st.sampled_from("ab ⟦⟧titlebody:中\n"), max_size=25))
ROWS = [
    {
        "title": ["refund please", "great thing"][i % 2],
        "body": f"the text number {i % 7} is long",
        "y": "no yes".split()[i % 2],
    }
    for i in range(60)
]


@QUIET
@given(st.tuples(part, part))
@example(("⟦body⟧ a", "⟦title⟧"))
def test_parts_come_back_whatever_is_in_them(parts: tuple[str | None, str | None]) -> None:
    text = joined(FIELDS, parts)
    if text is None:
        assert parts == (None, None)
    elif not "".join(x or "" for x in parts).strip():
        assert not text.strip()
    else:
        found = {
            name: text[start:end].strip() for name, start, end in split_fields(FIELDS, text)[1:]
        }
        clean = [
            (x or "").replace("⟦title⟧", "[title]").replace("⟦body⟧", "[body]").strip()
            for x in parts
        ]
        assert found == dict(zip(FIELDS, clean, strict=True))


def test_a_model_may_have_a_thousand_fields() -> None:
    """Each has features of its own: a hundred thousand fields filled the memory."""
    settings = {
        "kind": "fields",
        "base": WordTokenizer().to_dict(),
        "fields": [f"f{i}" for i in range(1_001)],
    }
    with pytest.raises(ValueError, match="no fields"):
        tokenizer_from_dict(settings)
    assert tokenizer_from_dict(settings | {"fields": settings["fields"][:1_000]})


def test_what_stands_before_the_first_mark_is_of_the_first_field() -> None:
    assert [(f, "a ⟦body⟧b"[s:e]) for f, s, e in split_fields(FIELDS, "a ⟦body⟧b")] == [
        ("title", "a "),
        ("body", "b"),
    ]


@pytest.mark.slow
@QUIET
@given(st.lists(st.tuples(part, part), min_size=1, max_size=5))
def test_spans_are_the_tokens_of_split_at_their_place(
    rows: list[tuple[str | None, str | None]],
) -> None:
    tokenizer, texts = (
        FieldTokenizer(WordTokenizer(), FIELDS),
        [joined(FIELDS, row) or "" for row in rows],
    )
    lists = tokenizer.split(pl.Series("text", texts, dtype=pl.String)).to_list()
    assert len(lists) == len(texts)
    for text, tokens in zip(texts, lists, strict=True):
        spans = tokenizer.spans(text)
        assert [token for _, _, token in spans] == tokens
        assert [token.partition(":")[2] for _, _, token in spans] == [
            text[a:b].lower() for a, b, _ in spans
        ]


def test_tokens_know_their_field_and_n_grams_stay_within_it() -> None:
    assert (
        FieldTokenizer(WordTokenizer(), FIELDS).split(pl.Series([], dtype=pl.String)).to_list()
        == []
    )
    corpus = read_corpus(pl.DataFrame(ROWS), text=FIELDS, label="y")
    assert corpus.fields == FIELDS and corpus.reading.columns[0] == "title + body"
    counted = count_corpus(corpus, ngrams=2, min_documents=2)
    tokens = counted.vocabulary.tokens.tolist()
    assert (
        "title:refund" in tokens
        and "title:refund title:please" in tokens
        and "body:the body:text" in tokens
    )
    assert not [t for t in tokens if len({word.split(":")[0] for word in t.split(" ")}) > 1]
    crossing = counted.vocabulary.tokens.tolist().count("title:please body:the")
    assert crossing == 0
    # the same as counting each field alone
    title = count_corpus(
        Corpus.of(pl.Series([r["title"] for r in ROWS]), corpus.labels, corpus.classes),
        ngrams=2,
        min_documents=2,
    )
    own = [
        tokens.index(" ".join(f"title:{w}" for w in t.split(" "))) for t in title.vocabulary.tokens
    ]
    assert (counted.matrix[:, own] != title.matrix).nnz == 0


def test_missing_and_empty_parts() -> None:
    frame = pl.DataFrame(
        {
            "title": ["a", None, None, " ", "b", "a"],
            "body": [None, "b", None, "", "c", "d"],
            "y": [1, 2, 1, 2, 1, 2],
        }
    )
    corpus = read_corpus(frame, text=list(FIELDS), label="y")
    assert corpus.rows.tolist() == [1, 2, 5, 6]
    assert (corpus.reading.counts["missing_text"], corpus.reading.counts["empty"]) == (1, 1)
    assert read_texts(frame, text=FIELDS).to_list()[1] == "⟦title⟧ \n⟦body⟧ b"
    for wrong, message in (
        (frame.with_columns(body=pl.lit(3)), "row 1: column 'body' contains int values"),
        (frame.drop("body"), "no column 'body'"),
    ):
        with pytest.raises(InputError, match=message):
            read_corpus(wrong, text=FIELDS, label="y")
    with pytest.raises(InputError, match="named twice"):
        read_corpus(frame, text=("title", "title"), label="y")
    both = read_corpus(frame, text=FIELDS, label="y", test=frame)
    assert (
        both.test is not None
        and both.test.fields == FIELDS
        and both.test.texts.to_list() == both.texts.to_list()
    )
    stream = read_corpus(frame, text=FIELDS, label="y", stream=True)
    assert stream.texts.to_list() == corpus.texts.to_list() and stream.fields == FIELDS


def pieces() -> PieceTokenizer:
    words = {"[UNK]": 0, "refund": 1, "please": 2, "great": 3, "text": 4}
    tokenizer = Pieces(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PieceTokenizer(tokenizer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tokenizer",
    [
        FieldTokenizer(WordTokenizer(), FIELDS),
        FieldTokenizer(pieces(), FIELDS),
        WordTokenizer(html=True, stop_words=("the", "is")),
        WordTokenizer(lowercase=False, pattern=r"[\p{Han}\w]+|\S"),
    ],
)
def test_a_saved_model_reads_texts_alike(tmp_path: Path, tokenizer: Any) -> None:
    corpus = read_corpus(pl.DataFrame(ROWS), text=FIELDS, label="y")
    model = AttentionClassifier(2, 2, tokenizer).fit(
        corpus.texts, [corpus.classes[y] for y in corpus.labels]
    )
    for name, content in model_files(model).items():
        (tmp_path / name).write_bytes(content)
    again = load_model(tmp_path)
    texts = [*corpus.texts[:4], "refund", "⟦body⟧ <b>the</b> text&#33; 中文", ""]
    np.testing.assert_array_equal(again.decision_function(texts), model.decision_function(texts))
    assert again.tokens_.tolist() == model.tokens_.tolist()
    kept = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["tokenizer"]
    assert tokenizer_from_dict(kept).to_dict() == tokenizer.to_dict() == kept


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "fields", "fields": [], "base": WordTokenizer().to_dict()},
        {"kind": "fields", "fields": ["a", 3], "base": WordTokenizer().to_dict()},
        {
            "kind": "fields",
            "fields": ["a"],
            "base": FieldTokenizer(WordTokenizer(), ("a",)).to_dict(),
        },
        WordTokenizer().to_dict() | {"kind": "letters"},
        WordTokenizer().to_dict() | {"lowercase": 1},
        WordTokenizer().to_dict() | {"stop_words": "the"},
        WordTokenizer().to_dict() | {"pattern": None},
        WordTokenizer().to_dict() | {"pattern": "("},
    ],
)
def test_settings_that_are_of_no_tokenizer(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"tokenizer|field|pattern"):
        tokenizer_from_dict(settings)


def test_other_tokenizers_have_no_fields() -> None:
    assert tokenizer_of_fields(WordTokenizer(), ()) == WordTokenizer()
    fielded = FieldTokenizer(WordTokenizer(), FIELDS)
    assert tokenizer_of_fields(fielded, FIELDS) is fielded


@pytest.mark.slow
def test_the_command_line_with_fields(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    common = ("a.json", "--text", "title", "--text", "body", "--label", "y")
    assert run("train", *common, "--out", "m", "--ngrams", "2", "-q")[0] == 0
    settings = json.loads((tmp_path / "m/summary.json").read_text())["settings"]
    assert settings["text"] == ["title", "body"] and settings["columns"] == ["title + body", "y"]
    status, out, _ = run("predict", "m", "a.json")  # the columns are those of training
    assert status == 0 and [line.split(",")[1] for line in out.splitlines()[1:]] == [
        row["y"] for row in ROWS
    ]
    assert "title:refund" in run("explain", "m", "refund")[1]
    masking = ("mask", "a.json", "--text", "title", "--text", "body", "--out", "b.jsonl", "--token")
    assert run(*masking, "title:refund title:please", "--token", "body:the")[0] == 0
    found = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert found[0] == {"title": "", "body": "text number 0 is long", "y": "no"}
    assert found[1] == {"title": "great thing", "body": "text number 1 is long", "y": "yes"}
    (tmp_path / "b.jsonl").unlink()
    status, _, said = run(*masking, "refund")
    assert status == 2 and "does not name a field; write title:TOKEN, body:TOKEN" in said
