"""Every layout of the page "What it reads" is read by the command beside it, and bad input of each
kind ends in one line."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import layouts
import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import BAD, GOOD, LABELLED, LABELS, PREFERENCES, PROMPTS, TEXTS, Layout, N, options_of

from calls import fast_first
from tokensieve.errors import InputError
from tokensieve.escape import option, printable
from tokensieve.read.columnar import expanded_bytes
from tokensieve.read.label_lists import settings_per_label
from tokensieve.read.reader import read_corpus
from tokensieve.read.settings import ReadSettings


def read(layout: Layout, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    layouts.write(layout, folder)
    monkeypatch.chdir(folder)
    sources, options = options_of(layout.command)
    return read_corpus(sources[0] if len(sources) == 1 else sources, **options)


@pytest.mark.parametrize("layout", LABELLED, ids=lambda layout: layout.name)
def test_labelled_documents(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if layout.several:
        layouts.write(layout, tmp_path)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("tokensieve.read.label_lists.MIN_DOCUMENTS_PER_LABEL", 5)
        sources, options = options_of(layout.command)
        settings = settings_per_label(sources[0], ReadSettings(**options)).settings
        corpus = read_corpus(sources[0], settings["positive"])
        assert [corpus.classes[y] for y in corpus.labels] == [
            "yes" if y == "positive" else "no" for y in LABELS
        ]
        return
    corpus = read(layout, tmp_path, monkeypatch)
    found = {text: corpus.classes[y] for text, y in zip(corpus.texts, corpus.labels, strict=True)}
    expected = dict(zip(TEXTS, LABELS, strict=True))
    if corpus.fields:
        found = {text.partition("⟦text⟧ ")[2]: label for text, label in found.items()}
    assert found == expected and len(corpus.labels) == N
    assert layout.detected in " ".join(corpus.reading.detected)
    assert bool(layout.detected) == bool(corpus.reading.detected)


@pytest.mark.parametrize("layout", PREFERENCES, ids=lambda layout: layout.name)
def test_preferences(layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = read(layout, tmp_path, monkeypatch)
    if layout.several:
        assert set(corpus.texts.to_list()[::2]) == set(GOOD)
        assert {text.removesuffix(" again") for text in corpus.texts.to_list()[1::2]} == set(BAD)
        return
    assert (
        corpus.pairs is not None
        and corpus.texts.to_list()[::2] == GOOD
        and corpus.texts.to_list()[1::2] == BAD
    )
    assert "--by" in layout.command or corpus.pairs.units.tolist() == [i // 2 for i in range(N)]
    assert corpus.reading.counts.get("ties_dropped", 0) == layout.ties
    if corpus.pairs.position is not None:
        assert corpus.pairs.position.tolist() == [int(i % 3 == 0) for i in range(N)]


JUDGED = [
    layout
    for layout in PREFERENCES
    if "--ties" not in layout.command
    and re.search("--(winner|scores)", layout.command)
    and layout.command.count(",")
]


@pytest.mark.parametrize("layout", JUDGED, ids=lambda layout: layout.name)
def test_a_winner_that_is_not_named_is_never_ignored(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts.write(layout, tmp_path)
    monkeypatch.chdir(tmp_path)
    sources, options = options_of(layout.command)
    with pytest.raises(InputError) as caught:
        read_corpus(sources[0], pairs=options["pairs"])
    suggested = str(caught.value).partition("use ")[2].partition(", or,")[0]
    corpus = read_corpus(sources[0], **options_of(f"audit {suggested}")[1])
    if "LMSYS" not in layout.name:
        assert corpus.texts.to_list()[::2] == GOOD


def test_the_page_is_that_of_these_layouts() -> None:
    written = Path(__file__).parents[2] / "docs" / "reads.md"
    assert written.read_text(encoding="utf-8") == layouts.page(), "run python tests/read/layouts.py"
    assert len(LABELLED) + len(PREFERENCES) >= 30


@pytest.mark.parametrize(
    ("name", "values", "better"),
    [
        ("a_wins", [1, 0, 1, 0], "abab"),
        ("b_is_better", ["True", "False", "True", "False"], "baba"),
        ("p_b", [0.9, 0.2, 1.0, 1e-7], "baba"),
        ("winner", [0, 1, 0, 1], "abab"),
    ],
)  # fmt: skip
def test_a_winner_column_that_names_one_answer_speaks_of_it(
    name: str, values: list[Any], better: str
) -> None:
    frame = pl.DataFrame(
        {"a": [f"a {i}" for i in range(4)], "b": [f"b {i}" for i in range(4)], name: values}
    )
    corpus = read_corpus(frame, pairs=("a", "b"), winner=name)
    assert [text[0] for text in corpus.texts.to_list()[::2]] == list(better)


def test_true_in_several_spellings_is_one_class_and_other_capitals_are_named() -> None:
    said = pl.DataFrame(
        {"text": [f"text {i}" for i in range(8)], "label": ["TRUE", "True", "false", "True"] * 2}
    )
    corpus = read_corpus(said)
    assert (
        corpus.classes == ("True", "false")
        and "2 documents labelled 'TRUE', counted as 'True'" in corpus.reading.lines()
    )
    spam = said.with_columns(label=pl.Series(["Spam", "spam", "ham", "ham"] * 2))
    (line,) = read_corpus(spam).reading.lines()
    options = options_of("audit x " + line.partition("pass ")[2])[1]
    assert read_corpus(spam, **options).classes == ("Spam", "ham")


def test_ties_are_half_of_each_order() -> None:
    frame = pl.DataFrame(
        {"a": ["x 1", "x 2", "x 3"], "b": ["y 1", "y 2", "y 3"], "w": ["a", "tie", "both bad"]}
    )
    corpus = read_corpus(frame, pairs=("a", "b"), winner="w")
    assert corpus.texts.to_list() == [
        "x 1",
        "y 1",
        "x 2",
        "y 2",
        "y 2",
        "x 2",
        "x 3",
        "y 3",
        "y 3",
        "x 3",
    ]
    assert corpus.weights is not None and corpus.weights.tolist() == [1, 1, *[0.5] * 8]
    assert "the first answer ('a') wins 100.0% of 1 pairs" in " ".join(corpus.reading.lines())
    assert (
        corpus.reading.counts["ties"] == 2
        and corpus.reading.counts["duplicates"] == corpus.reading.counts["conflicts"] == 0
    )
    dropped = read_corpus(
        frame.vstack(frame[:1].with_columns(a=pl.lit("z"))),
        pairs=("a", "b"),
        winner="w",
        ties="drop",
    )
    assert (
        dropped.texts.to_list() == ["x 1", "y 1", "z", "y 1"]
        and dropped.reading.counts["ties_dropped"] == 2
    )


def test_several_answers_count_as_one_prompt() -> None:
    frame = pl.DataFrame(
        {
            "q": ["p", "q"],
            "answers": [["bad 1", "good 1", "fair 1"], ["good 2", "bad 2", "worst 2"]],
            "s": [[0, 2, 1], [3, 2, 1]],
        }
    )
    corpus = read_corpus(frame, pairs="answers", scores="s", by="q")
    assert corpus.pairs is not None and corpus.pairs.units.tolist() == [0, 0, 0, 1, 1, 1]
    assert corpus.texts.to_list()[:6] == ["good 1", "bad 1", "fair 1", "bad 1", "good 1", "fair 1"]
    assert corpus.weights is None or np.allclose(
        np.bincount(corpus.pairs.units, corpus.weights[::2]), 1
    )


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        ({"a": ["x"] * 4, "b": ["y"] * 4, "w": ["a", "b", "c", "a"]}, {"winner": "w"}, "row 3: "
                                                                                       "column "
                                                                                       "'w' "
                                                                                       "contains "
                                                                                       "'c'"),
        ({"a": ["x"] * 2, "b": ["y"] * 2, "w": [7, 8]}, {"winner": "w"}, "does not say which "
                                                                         "answer won"),
        ({"a": ["x"] * 2, "b": ["y"] * 2, "s": ["1", "u"], "t": [1, 2]}, {"scores": ("s", "t")}, "row "
                                                                                                 "2: "
                                                                                                 "the "
                                                                                                 "score "
                                                                                                 "'u'"),
        ({"a": ["x"] * 2, "b": ["y"] * 2}, {"winner": "w"}, "no column 'w' for the winner"),
        ({"a": ["x"] * 2, "b": ["y"] * 2}, {"scores": ("a",)}, "--scores names 1 columns, but "
                                                               "--pairs names 2"),
        ({"a": ["x"] * 2, "b": ["y"] * 2, "w": ["a", "b"]}, {"winner": "w", "text": "a"}, "--text "
                                                                                          "is "
                                                                                          "for "
                                                                                          "labelled"),
        ({"a": ["x"] * 2, "b": ["y"] * 2, "w": ["a", "b"]}, {"winner": "w", "ties": "half of it"}, "--ties "
                                                                                                   "must "
                                                                                                   "be "
                                                                                                   "half "
                                                                                                   "or "
                                                                                                   "drop"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_preferences_is_named(
    frame: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_corpus(pl.DataFrame(frame), pairs=("a", "b"), **options)


def test_preference_data_is_never_read_as_labelled_text() -> None:
    summaries = {
        "summaries": [[{"text": a}, {"text": b}] for a, b in zip(GOOD, BAD, strict=True)],
        "choice": [0, 1] * (N // 2),
    }
    with pytest.raises(InputError, match="this looks like preference data"):
        read_corpus(pl.DataFrame(summaries))
    arena = pl.DataFrame(layouts.ARENA)
    with pytest.raises(InputError, match="--pairs response_a,response_b --winner winner"):
        read_corpus(arena)
    shp = {
        "history": ["q"] * 4,
        "human_ref_A": GOOD[:4],
        "human_ref_B": BAD[:4],
        "labels": [0, 1, 0, 1],
    }
    with pytest.raises(
        InputError, match="--pairs human_ref_A,human_ref_B --scores score_A,score_B"
    ):
        read_corpus(pl.DataFrame(shp | {"score_A": [1, 2, 3, 4], "score_B": [4, 3, 2, 1]}))


def test_the_verdict_on_two_answers_is_found_whatever_its_name() -> None:
    answers = {"answer_a": GOOD[:4], "answer_b": BAD[:4]}
    for values in (["first", "second", "tie", "first"], ["Response A", "Response B"] * 2):
        with pytest.raises(InputError, match="--pairs answer_a,answer_b --winner outcome_xyz"):
            read_corpus(pl.DataFrame(answers | {"outcome_xyz": values}))
    topics = pl.DataFrame(answers | {"topic": ["cats", "dogs"] * 2})
    with pytest.raises(InputError, match="--label topic"):
        read_corpus(topics)


def test_lists_of_texts_are_named_with_what_to_write_instead() -> None:
    patterns = [[f"a greeting of {i} words", f"how is number {i} today"] for i in range(40)]
    intents = pl.DataFrame({"tag": ["greet", "bye"] * 20, "patterns": patterns})
    lists = [[good, bad] for good, bad in zip(GOOD, BAD, strict=True)]
    asked = [f"what is said of it, {i}?" for i in range(N)]
    best_first = {"instruction": asked, "input": [""] * N, "output": lists}
    for frame, name in ((intents, "patterns"), (pl.DataFrame(best_first), "output")):
        with pytest.raises(
            InputError, match=f"'{name}' holds several texts a row.*chosen,rejected"
        ):
            read_corpus(frame)
    tags = pl.DataFrame({"text": GOOD, "tags": [["red", "blue"], ["blue"]] * (N // 2)})
    assert len(read_corpus(tags, having="red").texts) == N


def test_answers_in_one_cell_and_their_ranks_in_another_are_named_with_a_command() -> None:
    lists = [[good, bad] for good, bad in zip(GOOD, BAD, strict=True)]
    ranked = pl.DataFrame({"answers": lists, "ranks": [[1, 2]] * N})
    with pytest.raises(InputError, match="--pairs answers --ranks ranks"):
        read_corpus(ranked)
    corpus = read_corpus(ranked, pairs=("answers",), ranks=("ranks",))
    assert corpus.texts[0] == GOOD[0]
    ordered = ranked.rename({"ranks": "order"})
    with pytest.raises(InputError, match=r"--pairs answers --ranks order$"):
        read_corpus(ordered)
    of_three = [[*texts, "a third answer"] for texts in lists]
    unclear = pl.DataFrame({"answers": of_three, "order": [[1, 2, 0]] * N})
    with pytest.raises(InputError, match="--ranks order if each number is the rank"):
        read_corpus(unclear)
    uneven = pl.DataFrame({"answers": lists, "ranks": [[1, 2, 3]] * N})
    with pytest.raises(InputError, match="'answers' holds several texts a row"):
        read_corpus(uneven)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.zip", b"PK", "unpack it first: unzip "),
        ("a.tar.gz", b"\x1f\x8b", "unpack it first: tar -xf "),
        ("a.csv", b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        ("a.csv", b"<!DOCTYPE html>\n<p>Not, found\n", "is a page of HTML"),
        ("a.csv", b"-1 1:0.5 7:3\n1 2:1 9:1\n", "SVMlight"),
        ("a.svm", b"-1 1:0.5 7:3\n1 2:1 9:1\n", "SVMlight"),
        (
            "a.txt",
            b"One review, of a film.\nAnother one, about, a film.\n",
            "cannot read a '.txt' file",
        ),
        (
            "a.txt",
            b"I hate it, really\nI love it, really\nNot good, really\n",
            "cannot read a '.txt' file",
        ),
        (
            "a.json",
            b'{"train": [{"text": "a"}], "test": [{"text": "b"}]}',
            "the parts 'train', 'test'",
        ),
        (
            "a.csv",
            b"text\nI hate it, really\nI love it, really\n",
            "there is no label column besides the text",
        ),
    ],
)
def test_other_files_are_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_corpus(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        ("Очень хороший фильм, смотрел вчера вечером", "koi8-r", "koi8_r"),
        ("Очень хороший фильм, смотрел вчера вечером", "cp1251", "cp1251"),
        ("it’s “fine” – ok… no more", "cp1252", "cp1252"),
        ("c’était très français, à côté", "cp1252", "cp1252"),
        ("c'était très français, à côté", "cp850", "cp850"),
        ("das war schön und größer als früher", "mac_roman", "mac_roman"),
        ("é cómodo e está à venda amanhã em São Paulo", "cp1252", "cp1252"),
        ("zażółć gęślą jaźń, było świetnie", "cp1250", "cp1250"),
        (
            "byl to opravdu dobrý film, ještě se na něj rád podívám, ať to stojí cokoli",
            "iso8859_2",
            "iso8859_2",
        ),
        ("nagyon jó volt, köszönöm, őszintén tetszett", "cp1250", "cp1250"),
        ("çok güzel bir gün, teşekkür ederim, ığdır", "cp1254", "cp1254"),
        ("labai gražus žodis, ačiū už viską, šįryt", "cp1257", "cp1257"),
    ],
)
def test_the_encoding_is_detected(tmp_path: Path, text: str, encoding: str, found: str) -> None:
    texts = [f"{text} {i}" for i in range(N)]
    (tmp_path / "a.csv").write_bytes(
        layouts.csv_bytes(layouts.rows(text=texts, label=LABELS), encoding=encoding)
    )
    corpus = read_corpus(tmp_path / "a.csv")
    assert corpus.texts.to_list() == texts and corpus.reading.detected == (
        f"encoding {found} (detected)",
    )


def test_labels_that_an_annotator_did_not_accept_are_left_out() -> None:
    """Prodigy's column `answer`; where there is one label only, it is whether that was accepted."""
    frame = pl.DataFrame(
        {
            "text": TEXTS,
            "label": LABELS,
            "answer": ["accept", "accept", "reject", "ignore"] * (N // 4),
        }
    )
    corpus = read_corpus(frame)
    assert (
        len(corpus.labels) == N // 2
        and f"{N // 2} rows whose label the annotator did not accept" in corpus.reading.lines()[0]
    )
    one = read_corpus(frame.with_columns(label=pl.lit("INSULT")))
    assert one.classes == ("accept", "reject") and len(one.labels) == N * 3 // 4
    other = read_corpus(
        frame.with_columns(answer=pl.lit("yes"))
    )  # a column of that name with anything else
    assert len(other.labels) == N and other.reading.lines() == []


def test_labels_that_are_identifiers_are_said_to_be() -> None:
    with pytest.raises(InputError, match="24 of 24 values occur once, like identifiers"):
        read_corpus(pl.DataFrame({"text": TEXTS, "label": [f"id {i}" for i in range(N)]}))
    few = pl.DataFrame({"text": TEXTS, "label": [*LABELS[2:], "odd", "rare one"]})
    with pytest.raises(InputError) as caught:
        read_corpus(few)
    options = options_of("audit x " + str(caught.value).partition("out with ")[2])[1]
    assert read_corpus(few, **options).classes == ("negative", "positive")


def test_columns_within_records_are_proposed(tmp_path: Path) -> None:
    """The full export of Label Studio, whose text is in a column that nobody could know."""
    given = [
        {
            "id": i,
            "data": {"body": text},
            "annotations": [{"result": [{"value": {"choices": [label]}, "type": "choices"}]}],
        }
        for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    (tmp_path / "a.json").write_text(json.dumps(given), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_corpus(tmp_path / "a.json")
    options = options_of("audit x " + str(caught.value).partition("Pass ")[2])[1]
    corpus = read_corpus(tmp_path / "a.json", **options)
    assert corpus.texts.to_list() == TEXTS and corpus.classes == ("negative", "positive")


@pytest.mark.parametrize(
    "columns",
    [
        {"prob_a": [0.9, 0.2] * (N // 2)},
        {"helpful_a": [3, 1] * (N // 2), "helpful_b": [2, 2] * (N // 2)},
        {"target": ["a", "b"] * (N // 2)},
        {"rank of a": [1, 2] * (N // 2), "rank of b": [2, 1] * (N // 2)},
    ],
    ids=lambda columns: ", ".join(columns),
)
def test_what_says_which_answer_won_is_named_with_a_command_that_works(
    columns: dict[str, list[Any]],
) -> None:
    frame = pl.DataFrame({"a": GOOD, "b": BAD, **columns})
    with pytest.raises(InputError, match="seems to say which answer won") as caught:
        read_corpus(frame, pairs=("a", "b"))
    options = options_of(
        "audit x " + str(caught.value).partition("use ")[2].partition(", or, if")[0]
    )[1]
    corpus = read_corpus(frame, **options)
    assert [text[0] for text in corpus.texts.to_list()[:4:2]] == [GOOD[0][0], BAD[1][0]]


def test_how_the_preferred_answer_was_found_is_said() -> None:
    frame = pl.DataFrame({"response_1": GOOD, "response_2": BAD})
    assert (
        "'response_1' is read as the preferred answer of every pair"
        in read_corpus(frame, pairs=("response_1", "response_2")).reading.lines()
    )
    numbered = frame.with_columns(winner=pl.Series([1, 2] * (N // 2)))
    lines = read_corpus(
        numbered, pairs=("response_1", "response_2"), winner="winner"
    ).reading.lines()
    assert "a winner of 1 means 'response_1', 2 means 'response_2'" in lines


def test_lists_of_answers_and_ranks_in_csv(tmp_path: Path) -> None:
    """Written as Python or JSON writes them."""
    for k, written in enumerate((str, json.dumps)):
        rows = {
            "prompt": PROMPTS,
            "answers": [written([a, b]) for a, b in zip(BAD, GOOD, strict=True)],
            "ranks": ["[2, 1]"] * N,
        }
        pl.DataFrame(rows).write_csv(tmp_path / f"{k}.csv")
        corpus = read_corpus(tmp_path / f"{k}.csv", pairs=("answers",), ranks=("ranks",))
        assert corpus.texts.to_list()[:2] == [GOOD[0], BAD[0]]


def test_what_a_folder_holds_beside_training_data_is_named(tmp_path: Path) -> None:
    """Test rows without labels (or with −1) are left aside; labelled ones are the test set, of
    pairs too."""
    frame = pl.DataFrame({"text": TEXTS, "label": [i % 2 for i in range(N)]})
    for labels in (
        frame.select("text"),
        frame.with_columns(label=pl.lit(-1)),
        frame.with_columns(label=pl.lit(None)),
    ):
        frame.write_parquet(tmp_path / "train.parquet")
        labels.write_parquet(tmp_path / "test.parquet")
        corpus = read_corpus(tmp_path)
        assert corpus.test is None and len(corpus.labels) == N
        assert any("test.parquet" in line and "24" in line for line in corpus.reading.lines())
    frame.write_parquet(tmp_path / "test.parquet")
    assert read_corpus(tmp_path).test is not None
    pairs = pl.DataFrame({"chosen": GOOD, "rejected": BAD})
    for name in ("train", "test"):
        pairs.write_parquet(tmp_path / f"{name}.parquet")
    test = read_corpus(tmp_path, pairs=("chosen", "rejected")).test
    assert test is not None and len(test.labels) == 2 * N


@pytest.mark.parametrize(
    ("columns", "command"),
    [
        (
            {"q1": GOOD, "q2": TEXTS, "is_duplicate": [i % 2 for i in range(N)]},
            "--text q1 --label is_duplicate",
        ),
        (
            {"prompt": TEXTS, "preferred": GOOD, "dispreferred": BAD},
            "--pairs preferred,dispreferred",
        ),
        (
            {"prompt": TEXTS, "response_chosen": GOOD, "response_rejected": BAD},
            "--pairs response_chosen,response_rejected",
        ),
    ],
)
def test_a_suggested_command_works(columns: dict[str, Any], command: str) -> None:
    frame = pl.DataFrame(columns)
    with pytest.raises(InputError, match=command + "(,|$)"):
        read_corpus(frame)
    assert len(read_corpus(frame, **options_of(f"audit {command}")[1]).labels) in (N, 2 * N)


def test_several_columns_without_a_name_are_numbered(tmp_path: Path) -> None:
    rows = "".join(f'{label},"{text}",,\n' for text, label in zip(TEXTS, LABELS, strict=True))
    (tmp_path / "spam.csv").write_text("v1,v2,,\n" + rows)
    corpus = read_corpus(tmp_path / "spam.csv")
    assert corpus.texts.to_list() == TEXTS and corpus.reading.columns == ("v2", "v1")


@pytest.mark.slow
def test_bombs_and_endless_lines_stop_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same limits, a thousandth of their size."""
    from tokensieve.read import plain

    monkeypatch.setattr(plain, "HARMLESS_BYTES", 500_000)
    monkeypatch.setattr(plain, "MAX_LINE_BYTES", 2_000_000)
    monkeypatch.setattr(plain, "READ_BYTES", 2**16)
    rows = [{"text": "a b " * 500 + str(i % 3), "label": "xy"[i % 2]} for i in range(2_000)]
    whole = csv_of(rows)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(whole))
    (tmp_path / "bomb.csv.zst").write_bytes(zstandard.compress(whole))
    (tmp_path / "bomb.csv.xz").write_bytes(lzma.compress(whole))
    pl.DataFrame(rows).write_parquet(tmp_path / "bomb.parquet")
    for name in ("bomb.csv.gz", "bomb.csv.zst", "bomb.csv.xz", "bomb.parquet"):
        for stream in (False, True):
            with pytest.raises(InputError, match=r"expands more than 200-fold.*--no-limits"):
                read_corpus(tmp_path / name, stream=stream)
        assert len(read_corpus(tmp_path / name, limits=False).labels) == 2_000
    hidden = pl.Series(
        [row["text"] if 0 < i < 1_000 else "a" for i, row in enumerate(rows)]
    )  # the ends look harmless
    frame = pl.DataFrame({"text": hidden, "label": [row["label"] for row in rows]})
    frame.write_parquet(tmp_path / "hidden.parquet")
    frame.select(pl.struct("text").alias("data"), "label").write_parquet(
        tmp_path / "nested.parquet"
    )
    frame.with_columns(pl.col("text").cast(pl.Categorical)).write_ipc(
        tmp_path / "categories.arrow", compression="zstd"
    )
    for name, column in (
        ("hidden.parquet", "text"),
        ("nested.parquet", "data.text"),
        ("categories.arrow", "text"),
    ):
        with pytest.raises(InputError, match=r"expands more than 200-fold.*--no-limits"):
            read_corpus(tmp_path / name, text=column, label="label")
        assert (
            len(read_corpus(tmp_path / name, text=column, label="label", limits=False).labels)
            == 2_000
        )
    large = pl.Series(["x" * 3_000_000]).gather([0] * 3_000)  # more than four bytes can count
    assert expanded_bytes(large) == expanded_bytes(large.cast(pl.Categorical)) == 9_000_024_000
    (tmp_path / "long.csv").write_text("text,label\n" + "a b " * 600_000 + ",x\nb,y\na,x\nb,y\n")
    with pytest.raises(InputError, match=r"a line is over 2 MB.*--no-limits"):
        read_corpus(tmp_path / "long.csv")
    assert len(read_corpus(tmp_path / "long.csv", limits=False).labels) == 4
    with (tmp_path / "sparse.jsonl").open("wb") as file:
        file.truncate(10**11)
    with pytest.raises(InputError, match="NUL"):
        read_corpus(tmp_path / "sparse.jsonl")


@pytest.mark.slow
def test_a_packed_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    """A cut CSV would otherwise be read as a shorter one."""
    rng = np.random.default_rng(0)
    whole = csv_of([{"text": f"{rng.random()} words", "label": "xy"[i % 2]} for i in range(4_000)])
    for ending, pack in (
        (".gz", gzip.compress),
        (".zst", zstandard.compress),
        (".xz", lzma.compress),
    ):
        path = tmp_path / f"reviews.csv{ending}"
        path.write_bytes(pack(whole) + pack(b"last,x\n"))  # packed files may follow each other
        assert len(read_corpus(path).labels) == 4_001
        if ending != ".zst":
            path.write_bytes(pack(whole) + bytes(9_000))  # as tapes pad them
            assert len(read_corpus(path).labels) == 4_000
        path.write_bytes(pack(whole)[: len(pack(whole)) // 2])
        with pytest.raises(InputError, match="is damaged"):
            read_corpus(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"),
    fast_first([("a.csv", ",".join(f"c{i}" for i in range(20_100))), ("b.csv", "," * 20_100)]),
)
def test_a_file_of_too_many_columns_is_one_line(tmp_path: Path, name: str, line: str) -> None:
    (tmp_path / name).write_text(f"{line}\n{line}\n")
    (tmp_path / "c.jsonl").write_text(json.dumps(dict.fromkeys(line.split(","), "a")) + "\n")
    pl.DataFrame({f"c{i}": ["a"] for i in range(20_001)}).write_parquet(tmp_path / "d.parquet")
    for file in (name, *(["c.jsonl", "d.parquet"] if name == "a.csv" else [])):
        with pytest.raises(
            InputError, match="has over 20,000 columns; write a file with only the columns you need"
        ):
            read_corpus(tmp_path / file)


@pytest.mark.slow
def test_a_workbook_that_asks_for_any_amount_of_memory_is_one_line(tmp_path: Path) -> None:
    """A cell far away makes readers hold all those between: 736 million."""
    (tmp_path / "good.xlsx").write_bytes(layouts.workbook(layouts.PLAIN))
    with (
        zipfile.ZipFile(tmp_path / "good.xlsx") as good,
        zipfile.ZipFile(tmp_path / "far.xlsx", "w") as far,
    ):
        for name in good.namelist():
            row = b'<row r="1048576"><c r="ZZ1048576"><v>1</v></c></row></sheetData>'
            far.writestr(name, good.read(name).replace(b"</sheetData>", row))
    with pytest.raises(InputError, match=r"far.xlsx takes over 4 GB .* --no-limits"):
        read_corpus(tmp_path / "far.xlsx")
    assert len(read_corpus(tmp_path / "good.xlsx").labels) == len(
        read_corpus(tmp_path / "good.xlsx", limits=False).labels
    )


def test_a_workbook_without_its_end_is_one_line_whatever_its_size(tmp_path: Path) -> None:
    content = layouts.workbook(layouts.PLAIN)
    (tmp_path / "cut.xlsx").write_bytes(content[: len(content) // 2])
    sparse = tmp_path / "sparse.xlsx"
    sparse.write_bytes(content)
    os.truncate(sparse, 200 * 2**30)  # zeros that take no room on the disk
    for name in ("cut.xlsx", "sparse.xlsx"):
        with pytest.raises(InputError, match=f"{name} .* its end is missing"):
            read_corpus(tmp_path / name)


@pytest.mark.slow
def test_a_packed_workbook_through_standard_input_outlives_its_temporary_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = lzma.compress(layouts.workbook(layouts.PLAIN))
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(packed)))
    assert len(read_corpus("-").labels) == len(layouts.PLAIN)


@pytest.mark.slow
def test_a_parquet_file_whose_middle_is_missing_is_not_read_in_part(tmp_path: Path) -> None:
    """Polars reads the row groups before the gap, and then ends without an error.

    One of its threads fails, so the file is read in a process of its own.
    """
    path = tmp_path / "x.parquet"
    n = 40_000
    texts = [f"a {'fine' if i % 2 else 'poor'} film {i}" for i in range(n)]
    frame = pl.DataFrame({"text": texts, "label": ["pos", "neg"] * (n // 2)})
    frame.write_parquet(path, compression="uncompressed", row_group_size=n // 8)
    assert len(read_corpus(path).labels) == n
    whole = path.read_bytes()
    gap = len(whole) * 5 // 8
    path.write_bytes(whole[:gap] + whole[gap + 60_000 :])
    program = f"from tokensieve import read_corpus; read_corpus({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "tokensieve.errors.InputError: x.parquet is" in done.stderr


@pytest.mark.slow
def test_a_damaged_arrow_file_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.arrow"
    pl.DataFrame({"text": TEXTS[:8], "label": LABELS[:8]}).write_ipc(path)
    whole = path.read_bytes()
    for place in range(len(whole) * 3 // 4, len(whole), 2):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with contextlib.suppress(InputError):
            read_corpus(path)
    assert capfd.readouterr().err == "", "a panic writes a trace"


def test_a_library_that_aborts_ends_in_one_line() -> None:
    """As Polars does for a Parquet file whose damaged page asks for 2^61 bytes."""
    program = (
        "import os; from tokensieve.errors import one_line\nwith one_line('x.parquet: is no "
        "Parquet file'): os.abort()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    said = "tokensieve: x.parquet: is no Parquet file: damaged, or there is not enough memory\n"
    assert (done.returncode, done.stderr) == (2, said)


def csv_of(table: layouts.Rows) -> bytes:
    return layouts.csv_bytes(table)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
@settings(max_examples=60)
def test_a_proposed_option_reaches_the_program_as_it_was(value: str) -> None:
    """One printable line, which bash turns back into the value."""
    written = option("--text", value)
    assert printable(written) == written and len(written.splitlines()) <= 1
    command = ["bash", "-c", f"printf '%s\\0' {written}"]
    out = subprocess.run(
        command, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout.decode()
    assert (
        out.removeprefix("--text").removeprefix("=" if out.startswith("--text=") else "\0")
        == value + "\0"
    )
