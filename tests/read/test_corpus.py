"""Rows into a corpus: columns, labels, the account of every row, training and test."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import fails, read_texts
from tokensieve.errors import InputError
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.split import split_corpus

quick = settings(deadline=None, derandomize=True)
TEXTS = ["good film here", "bad film here", "good plot there", "bad plot there"]
LABELS = ["positive", "negative", "positive", "negative"]


def write_csv(path: Path, rows: list[list[Any]], **options: Any) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, **options).writerows(rows)
    return path


def labelled(labels: list[Any]) -> tuple[list[str], list[Any]]:
    return [f"text number {i}" for i in range(len(labels))], labels


FAR = 2**63 - 1  # a moment that neither Python nor, in microseconds, Polars can write
MOMENTS = {
    "date": pl.Series([36_500_000, 36_500_001] * 2, dtype=pl.Int32).cast(pl.Date),
    "moment": pl.Series([FAR, -FAR] * 2).cast(pl.Datetime("us")),
    "zoned": pl.Series([FAR, -FAR] * 2).cast(pl.Datetime("us", "Europe/Rome")),
    "duration": pl.Series([FAR, 1] * 2).cast(pl.Duration("ms")),
    "nested": pl.Series([[FAR], [1]] * 2).cast(pl.List(pl.Datetime("us"))),
}


@pytest.mark.parametrize("kind", MOMENTS)
@pytest.mark.parametrize("role", ["label", "by", "text"])
def test_dates_beyond_python_are_the_numbers_that_they_are_stored_as(
    kind: str, role: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "far.parquet"
    pl.DataFrame({"text": TEXTS, "label": LABELS} | MOMENTS).write_parquet(path)
    if role == "text":
        fails(path, "not text", text=kind)
    else:
        corpus = read_corpus(path, **{"text": "text", "label": "label"} | {role: kind})
        stored = [
            str(x[0] if kind == "nested" else x) for x in MOMENTS[kind].to_physical().to_list()
        ]
        named = (
            [corpus.classes[k] for k in corpus.labels]
            if role == "label"
            else corpus.groups.to_list()
        )
        assert named == stored
    assert capfd.readouterr().err == ""


# ---- columns


def frame(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(columns)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"Review": TEXTS, "Sentiment": LABELS}, {}),
        ({"rating": [1, 2, 3, 4], "label": LABELS, "text": TEXTS, "body": TEXTS}, {}),
        ({"answer": LABELS, "tweet": TEXTS}, {}),
        ({"id": [1, 2, 3, 4], "said": TEXTS, "stars": LABELS}, {"text": "said"}),
        ({"stars": [1, 2, 3, 4], "category": LABELS, "text": TEXTS}, {"label": "category"}),
        ({"text": LABELS, "label": TEXTS}, {"text": "label", "label": "text"}),
        ({"评论": ["这部电影非常好看我非常喜欢它的每一个镜头和音乐"] * 4, "答": LABELS}, {}),
        ({"评论": ["服务很好，下次还会再来", "东西很差，要求退款了吗"] * 2, "答": LABELS}, {}),
    ],
)
def test_columns_are_guessed_when_unambiguous(
    columns: dict[str, list[Any]], options: dict[str, str]
) -> None:
    corpus = read_corpus(frame(**columns), **options)  # type: ignore[arg-type]
    assert corpus.labels.tolist() == [1, 0, 1, 0]
    assert corpus.texts.to_list() in (TEXTS, columns.get("评论"))


def test_unclear_and_wrong_columns_are_listed() -> None:
    fails(
        frame(text=TEXTS, stars=[1, 2, 1, 2], category=LABELS),
        "'stars', 'category'",
        "--text text --label stars",
    )
    fails(frame(review=TEXTS, comment=TEXTS, label=LABELS), "'review', 'comment'", "--text review")
    fails(
        frame(a=TEXTS, b=TEXTS),
        "which column holds the text: 'a', 'b'",
        "--text a",
        "--text a --text b",
    )
    fails(frame(a=LABELS, b=LABELS), "'a', 'b'")
    fails(
        frame(a=TEXTS, b=LABELS, c=LABELS),
        "which column holds the label: 'b', 'c'",
        "--text a --label b",
    )
    fails(frame(text=TEXTS, b=LABELS, c=LABELS), "which column holds the label: 'b', 'c'")
    fails(frame(text=TEXTS), "no label column")
    turns = [
        [{"role": "user", "content": t}, {"role": "assistant", "content": y}]
        for t, y in zip(TEXTS, LABELS, strict=True)
    ]
    fails(frame(chat=turns), "no label column", "pass --text chat.user --label chat.assistant")
    fails(
        frame(text=TEXTS, label=LABELS),
        "no column 'lable'",
        "'text', 'label'",
        "did you mean 'label'?",
        label="lable",
    )
    fails(frame(text=TEXTS, label=LABELS), "different columns", text="text", label="text")
    fails(frame(text=[1, 2], label=[1, 2]), "row 1", "not text")
    fails(pd.DataFrame([["a", "b"]], columns=["text", "text"]), "more than once")
    with pytest.raises(InputError, match="which column holds the text: 'a', 'b'"):
        read_texts(frame(a=TEXTS, b=TEXTS))
    assert read_texts(frame(only=["a", None, ""])).to_list() == ["a", "", ""]


# ---- labels


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([True, False] * 2, ("False", "True")),
        ([1, -1] * 2, ("-1", "1")),
        (["+1", "-1"] * 2, ("-1", "+1")),
        ([10, 9, 2, 10, 9, 2], ("2", "9", "10")),
        ([4.0, 1.0] * 2, ("1", "4")),
        (["4.0", "1"] * 2, ("1", "4")),
        ([np.float32(4.5), np.int8(1)] * 2, ("1", "4.5")),
        ([np.bool_(True), np.bool_(False)] * 2, ("False", "True")),
        (["positive", "negative"] * 2, ("negative", "positive")),
        (["b", "2", "b", "2", "nan", "nan"], ("2", "b", "nan")),
        ([10**400, 7] * 2, ("7", "1" + "0" * 400)),
    ],
)
def test_label_types_and_their_order(labels: list[Any], classes: tuple[str, ...]) -> None:
    corpus = read_corpus(labelled(labels))
    assert corpus.classes == classes
    sizes = Counter(corpus.labels.tolist())
    assert sizes == Counter({i: len(labels) // len(classes) for i in range(len(classes))})


def test_grouping_and_dropping() -> None:
    stars = [1, 2, 3, 4, 5, 1, 5, 3, None]
    group = {"negative": ["1", "2"], "positive": ["4", "5.0"]}
    corpus = read_corpus(labelled(stars), group=group, drop=["3"])
    assert corpus.classes == ("negative", "positive")
    assert corpus.labels.tolist() == [0, 0, 1, 1, 0, 1] and corpus.rows.tolist() == [
        1,
        2,
        4,
        5,
        6,
        7,
    ]
    assert corpus.reading.dropped == {"3": 2} and corpus.reading.counts["missing_label"] == 1
    assert corpus.reading.groups == {
        "1": ("negative", 2),
        "2": ("negative", 1),
        "4": ("positive", 1),
        "5": ("positive", 2),
    }
    assert any(line.startswith("2 documents labelled '3'") for line in corpus.reading.lines())
    assert read_corpus(labelled(stars), group=group).classes == ("3", "negative", "positive")
    fails(
        labelled(stars),
        "no document has the label '7'",
        "'1', '2', '3', '4', '5'",
        group={"x": ["7"]},
    )
    fails(labelled(stars), "no document has the label 'six'", drop=["six"])
    fails(
        labelled(stars),
        "the label '1' is grouped or dropped in two ways",
        group={"x": ["1"]},
        drop=["1"],
    )
    fails(labelled(stars), "the label '1' is grouped", group={"x": ["1"], "y": ["1"]})
    fails(labelled(stars), "list of labels", drop="3")


def test_missing_values_of_every_kind() -> None:
    data = pd.DataFrame(
        {
            "text": ["a", None, float("nan"), pd.NA, "b", "c", "d", "e", "f"],
            "label": ["x", "x", "x", "x", None, float("nan"), pd.NaT, "y", "x"],
        },
        dtype=object,
    )
    more = pd.DataFrame({"text": ["g"], "label": ["y"]})
    found = read_corpus(pd.concat([data, more])).reading
    assert [found.counts[k] for k in ("rows", "kept", "missing_text", "missing_label")] == [
        10,
        4,
        3,
        3,
    ]
    numbers = pd.DataFrame(
        {"text": list("abcde"), "label": pd.array([1, 2, None, 1, 2], dtype="Int64")}
    )
    assert read_corpus(numbers).reading.counts["missing_label"] == 1 and read_corpus(
        numbers
    ).classes == ("1", "2")
    nulls = pl.DataFrame(
        {"text": ["a", None, "b", "c", "d"], "label": [1.0, 1.0, float("nan"), 2.0, 1.0]}
    )
    found = read_corpus(nulls.vstack(pl.DataFrame({"text": ["e"], "label": [2.0]}))).reading
    assert [found.counts[k] for k in ("rows", "kept", "missing_text", "missing_label")] == [
        6,
        4,
        1,
        1,
    ]


def test_json_keys_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [
        '{"label": "x"}',
        '{"text": "a", "label": "x"}',
        '{"text": "b"}',
        '{"text": "c", "label": "y"}',
        "",
        '{"text": "d", "label": "y"}',
        '{"text": "e", "label": "x", "more": {}}',
        '{"text": null, "label": NaN}',
    ]
    path.write_text("\n".join(lines))
    corpus = read_corpus(path)
    assert corpus.rows.tolist() == [2, 4, 5, 6]
    assert (corpus.reading.counts["missing_text"], corpus.reading.counts["missing_label"]) == (2, 1)


def test_labels_that_cannot_be_classes() -> None:
    fails(labelled(["x"] * 5), "'label' has only one value, 'x'", "two classes")
    fails(labelled(["x", "y", "x"]), "'y' occurs once (row 2)", "--drop y")
    fails(
        labelled(["Billing", "billing", "bug", "billing", "bug"]), "--group billing=billing,Billing"
    )
    fails(labelled(["x", "y", "z", "x"]), "'z' too")
    fails(
        labelled([i / 7 for i in range(60)]),
        "60 different values",
        "continuous numbers",
        "--label COLUMN",
        "--group",
    )
    fails(
        labelled([f"my view of it {i}" for i in range(60)]),
        "60 different values",
        "free text",
        "--label COLUMN",
    )
    fails(labelled([*range(18, 88)] * 10), "70 different values", "continuous numbers")
    fails(
        labelled([f"intent {i}" for i in range(201)] * 10),
        "201 different values",
        "the limit of 200 classes",
    )
    fails(labelled([f"intent {i}" for i in range(70)] * 9), "70 different values", "free text")
    fails(([" ", "\t\n"], ["x", "y"]), "all 2 documents are empty")


@pytest.mark.parametrize(
    "names", [range(77), range(1, 201), [f"intent {i:03}" for i in range(150)]]
)
def test_many_classes_with_ten_documents_each(names: Sequence[Any]) -> None:
    assert read_corpus(labelled([*names] * 10)).classes == tuple(map(str, names))


def test_empty_documents_and_missing_labels() -> None:
    left = "none of the 3 rows is usable (1 without text", "1 without label", "1 empty"
    fails(([None, "", "a"], ["x", "y", None]), *left)
    fails(frame(text=[], label=[]), "has no rows")


# ---- what was found on the way in

rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", " ", "", None]), st.sampled_from(["x", "y", "z", None])
    ),
    min_size=1,
    max_size=30,
)


@quick
@given(rows=rows, drop_z=st.booleans(), duplicates=st.sampled_from(["keep", "drop"]))
def test_every_row_is_accounted_for(
    rows: list[tuple[Any, Any]], drop_z: bool, duplicates: Any
) -> None:
    table = [
        ("sure 1", "x"),
        ("sure 2", "x"),
        ("sure 1", "y"),
        ("sure 2", "y"),
        ("sure", "z"),
        ("sure 3", "z"),
        *rows,
    ]
    corpus = read_corpus(
        ([t for t, _ in table], [y for _, y in table]),
        drop=["z"] if drop_z else [],
        duplicates=duplicates,
    )
    found, n = corpus.reading, corpus.reading.counts
    usable = [(t, y) for t, y in table if t is not None and y is not None and t.strip()]
    use = [(t, y) for t, y in usable if not (drop_z and y == "z")]
    by_text = {t: {y for u, y in use if u == t} for t, _ in use}
    left_out = n["duplicates_dropped"] if duplicates == "drop" else 0
    assert n["rows"] == len(table)
    assert (
        n["rows"]
        == n["kept"]
        + n["missing_text"]
        + n["missing_label"]
        + n["empty"]
        + sum(found.dropped.values())
        + left_out
    )
    assert n["missing_text"] == sum(t is None for t, _ in table)
    assert n["empty"] == sum(t is not None and y is not None and not t.strip() for t, y in table)
    assert n["duplicates"] + n["duplicates_dropped"] == len(use) - len(set(use))
    assert n["conflicts"] == sum(len(ys) > 1 for ys in by_text.values())
    assert n["conflicting_documents"] == sum(len(by_text[t]) > 1 for t, _ in use)
    assert sum(of for _, of in found.groups.values()) == n["kept"] == len(corpus.texts)
    kept = [(t, corpus.classes[y]) for t, y in zip(corpus.texts, corpus.labels, strict=True)]
    assert kept == (list(dict.fromkeys(use)) if duplicates == "drop" else use)
    assert [table[r - 1] for r in corpus.rows] == kept


def test_a_hundred_thousand_duplicates_are_counted() -> None:
    corpus = read_corpus((["good film here", "bad film here"] * 50_000, ["p", "n"] * 50_000))
    assert (
        corpus.reading.counts["duplicates"] == 99_998 and corpus.reading.counts["kept"] == 100_000
    )


# ---- training and test


def test_split_column() -> None:
    data = frame(
        text=[f"t {i}" for i in range(8)],
        label=["a", "b"] * 4,
        split=["train", "Dev", "val", "training", "validation", "train", "test", "TESTING"],
    )
    corpus = read_corpus(data, split="split")
    assert corpus.test is not None
    assert corpus.rows.tolist() == [1, 2, 3, 4, 5, 6] and corpus.test.rows.tolist() == [7, 8]
    assert (
        corpus.test.classes == corpus.classes
        and corpus.reading.counts["rows"] == 6
        and corpus.test.reading.counts["rows"] == 2
    )
    other = data.with_columns(split=pl.lit("train"))
    fails(other, "'split' must contain 'test'", "it contains 'train'", split="split")
    fails(data.with_columns(split=pl.lit("test")), "it contains 'test'", split="split")
    fails(data.with_columns(pl.col("split").replace("Dev", "fold1")), "'fold1'", split="split")
    fails(data, "no column 'part'", split="part")
    fails(data, "not both", split="split", test=data)


def test_test_source_is_read_like_training(tmp_path: Path) -> None:
    group = {"neg": ["1", "2"], "pos": ["5"]}
    path = write_csv(
        tmp_path / "a.csv",
        [["body", "stars"], *[[f"t {i}", s] for i, s in enumerate([1, 2, 3, 5, 5])]],
    )
    test = write_csv(tmp_path / "b.csv", [["stars", "body"], [1, "t 1"], [5, "t 9"], [3, "t 8"]])
    corpus = read_corpus(path, group=group, drop=["3"], test=test)
    assert corpus.test is not None
    assert corpus.test.texts.to_list() == ["t 1", "t 9"] and corpus.test.labels.tolist() == [0, 1]
    assert corpus.reading.counts["test_overlap"] == 1 and corpus.test.reading.dropped == {"3": 1}
    listed = read_corpus(path, group=group, drop=["3"], test=(["new"], [5]))
    assert listed.test is not None and listed.test.labels.tolist() == [1]
    fails(
        path,
        "row 1: no training row has label '4'",
        "'neg', 'pos'",
        group=group,
        drop=["3"],
        test=(["x"], [4]),
    )
    fails(path, "no column 'body'", group=group, drop=["3"], test=frame(x=["x"], stars=[4]))
    fails(path, "has no rows", group=group, drop=["3"], test=([], []))


@quick
@given(
    texts=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=60),
    share=st.sampled_from([0.1, 0.2, 0.5]),
    seed=st.integers(0, 5),
)
def test_split_never_separates_identical_texts(
    texts: list[tuple[int, int]], share: float, seed: int
) -> None:
    table = [(f"sure {i}", i % 3) for i in range(12)] + [(f"t {t}", y) for t, y in texts]
    corpus = read_corpus(([t for t, _ in table], [y for _, y in table]))
    split = split_corpus(corpus, share=share, seed=seed)
    assert split.test is not None
    assert not set(split.texts) & set(split.test.texts)
    assert sorted([*split.rows, *split.test.rows]) == corpus.rows.tolist()
    for part in (split, split.test):
        assert [table[r - 1] for r in part.rows] == list(
            zip(part.texts, part.labels.tolist(), strict=True)
        )
    assert set(split.labels.tolist()) == {0, 1, 2}
    again = split_corpus(corpus, share=share, seed=seed)
    assert again.test is not None and again.test.rows.tolist() == split.test.rows.tolist()


def test_split_is_stratified_and_seeded() -> None:
    corpus = read_corpus(labelled(["a"] * 300 + ["b"] * 100))
    split = split_corpus(corpus, share=0.25, seed=1)
    assert split.test is not None and np.bincount(split.test.labels).tolist() == [75, 25]
    other = split_corpus(corpus, share=0.25, seed=2)
    assert other.test is not None and other.test.rows.tolist() != split.test.rows.tolist()
    four = split_corpus(read_corpus((TEXTS, LABELS)))
    assert four.test is not None and np.bincount(four.labels).tolist() == np.bincount(
        four.test.labels
    ).tolist() == [
        1,
        1,
    ]


def test_split_refusals() -> None:
    same = read_corpus((["a", "b"] * 10, ["x", "y"] * 10))
    for corpus, share, part in [
        (same, 0.2, "within each class all texts are the same"),
        (same, 1.5, "between 0 and 1"),
        (read_corpus((TEXTS, LABELS), test=(TEXTS, LABELS)), 0.2, "already has a test set"),
        (read_corpus(labelled(["a"] * 98 + ["b"] * 2)), 0.97, "no training document of class"),
    ]:
        with pytest.raises(InputError, match=part):
            split_corpus(corpus, share=share)


# ---- real data


@pytest.fixture(scope="module")
def data() -> Path:
    folder = Path(
        os.environ.get("TOKENSIEVE_DATA") or Path(__file__).parents[3] / "shared" / "data"
    )
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set TOKENSIEVE_DATA")
    return folder


def test_yelp_reviews(data: Path) -> None:
    fails(data / "yelp.parquet", "'stars', 'category'", "--text text --label stars")
    corpus: Corpus = read_corpus(
        data / "yelp.parquet",
        label="stars",
        split="split",
        group={"negative": ["1", "2"], "positive": ["4", "5"]},
        drop=["3"],
    )
    assert (
        corpus.test is not None
        and corpus.reading.counts["rows"] == corpus.test.reading.counts["rows"] == 5000
    )
    sizes = np.bincount(corpus.labels) + np.bincount(corpus.test.labels)
    assert sizes.tolist() == [1472 + 854, 2184 + 4429]


@pytest.mark.slow
def test_imdb_reviews_as_csv_and_parquet_agree(data: Path, tmp_path: Path) -> None:
    parquet = read_corpus(data / "imdb_train.parquet", test=data / "imdb_test.parquet")
    assert parquet.test is not None and len(parquet.texts) == len(parquet.test.texts) == 25_000
    assert np.bincount(parquet.labels).tolist() == [12_500, 12_500]
    pl.read_parquet(data / "imdb_train.parquet").write_csv(tmp_path / "a.csv")
    csv_corpus = read_corpus(tmp_path / "a.csv")
    assert csv_corpus.texts.equals(parquet.texts) and (csv_corpus.labels == parquet.labels).all()
    assert csv_corpus.reading.counts["duplicates"] == parquet.reading.counts["duplicates"] > 0


def test_a_column_of_train_and_test_is_used_and_reported() -> None:
    rows = {"text": [f"text {i}" for i in range(40)], "label": ["a", "b"] * 20}
    sides = ["train"] * 30 + ["Test"] * 10
    corpus = read_corpus(pl.DataFrame(rows | {"Split": sides}))
    assert corpus.test is not None and (len(corpus.texts), len(corpus.test.texts)) == (30, 10)
    assert "column 'Split' marks training and test rows (detected)" in corpus.reading.lines()
    assert read_corpus(pl.DataFrame(rows | {"split": [*sides[:-1], "fold 3"]})).test is None, (
        "it holds something else"
    )
    assert read_corpus(pl.DataFrame(rows | {"split": ["train"] * 40})).test is None, "one side only"
    assert read_corpus(pl.DataFrame(rows | {"split": sides}), columns=("split",)).test is None, (
        "it has another role"
    )
    unlabelled = rows | {"label": rows["label"][:30] + [None] * 10, "split": sides}
    assert read_corpus(pl.DataFrame(unlabelled)).test is None, (
        "as in a competition, the test rows have no labels"
    )


def test_a_label_column_of_row_numbers_is_called_that() -> None:
    with pytest.raises(InputError, match="looks like row numbers"):
        read_corpus(
            pl.DataFrame({"text": ["some words"] * 90, "#": list(range(90))}),
            text="text",
            label="#",
        )
