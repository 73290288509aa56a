"""Rows out of every format: the same texts back, and every broken file named by row and line."""

from __future__ import annotations

import csv
import email.message
import gzip
import io
import json
import os
import socket
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import layouts
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calls import fails, read_texts
from tokensieve.errors import InputError
from tokensieve.read import hub as hub_module
from tokensieve.read.columns import labelled_columns, text_columns, verdict_column
from tokensieve.read.likely_groups import likely_groups
from tokensieve.read.reader import read_corpus
from tokensieve.read.table import Batch, SourceTable
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.tokenizers import read_stop_words

quick = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXTS = ["good film here", "bad film here", "good plot there", "bad plot there"]
LABELS = ["positive", "negative", "positive", "negative"]
HOSTILE = [
    'q"uote',
    '"',
    "a\tb",
    "line\nbreak",
    "\r\n.",
    "<script>alert(1)</script>",
    "=cmd()",
    "\u202eright to left",
    "👍🏽",
    "lone\ud800",
    "\udfff",
    "comma, semi;",
    "'",
    "\ufeffmark",
    "ı İ ß",
    "\x1b[31m",
]
hostile = st.lists(
    st.one_of(
        st.sampled_from(HOSTILE), st.text(st.characters(exclude_characters="\0"), max_size=12)
    ).map(lambda s: "x" + s),
    min_size=4,
    max_size=12,
)


def write_csv(path: Path, rows: list[list[Any]], **options: Any) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, **options).writerows(rows)
    return path


# ---- formats


def write_every_format(folder: Path, frame: pl.DataFrame) -> list[Any]:
    frame.write_csv(folder / "a.csv")
    frame.write_csv(folder / "a.tsv", separator="\t")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_ndjson(folder / "a.ndjson")
    frame.write_json(folder / "a.json")
    frame.write_parquet(folder / "a.parquet")
    plain = sorted(folder.glob("a.*"))
    for path in plain:
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
    lists = (frame["text"].to_list(), frame["label"].to_list())
    return [*plain, *folder.glob("*.gz"), str(plain[0]), frame, frame.to_pandas(), lists]


@pytest.mark.parametrize(
    "labels", [LABELS, [1, 0, 1, 0], [True, False, True, False], [5.0, 1.0, 5.0, 1.0]]
)
def test_every_format_gives_the_same_corpus(tmp_path: Path, labels: list[Any]) -> None:
    every = write_every_format(tmp_path, pl.DataFrame({"text": TEXTS, "label": labels}))
    assert len(every) == 16
    for source in every:
        corpus = read_corpus(source)
        assert corpus.texts.to_list() == TEXTS
        assert [corpus.classes[i].lower() for i in corpus.labels] == [
            str(v).lower().removesuffix(".0") for v in labels
        ]
        assert corpus.labels.tolist() == [1, 0, 1, 0] and corpus.labels.dtype == np.int64
        assert corpus.rows.tolist() == [1, 2, 3, 4] and corpus.test is None
        assert corpus.reading.lines() == []
        assert read_texts(source).to_list() == TEXTS


@settings(quick, max_examples=max(settings.default.max_examples // 3, 1))
@given(texts=hostile)
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "list", "polars", "pandas"])
def test_hostile_texts_survive_every_format(tmp_path: Path, kind: str, texts: list[str]) -> None:
    clean = ["".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in t) for t in texts]
    labels = [["=a", "<b>"][i % 2] for i in range(len(texts))]
    path = tmp_path / f"t.{kind}"
    can_hold = kind in ("jsonl", "list", "pandas")
    given_texts = texts if can_hold else clean
    frame = {"text": given_texts, "label": labels}
    source: Any = path
    if kind in ("csv", "tsv"):
        write_csv(
            path,
            [["text", "label"], *map(list, zip(given_texts, labels, strict=True))],
            delimiter="\t" if kind == "tsv" else ",",
        )
    elif kind == "jsonl":
        path.write_text(
            "".join(
                json.dumps({"text": t, "label": y}) + "\n"
                for t, y in zip(texts, labels, strict=True)
            )
        )
    elif kind == "parquet":
        pl.DataFrame(frame).write_parquet(path)
    else:
        source = {
            "list": (given_texts, labels),
            "polars": pl.DataFrame,
            "pandas": lambda f: pd.DataFrame(f, dtype=object),
        }[kind]
        source = source(frame) if callable(source) else source
    corpus = read_corpus(source)
    assert corpus.texts.to_list() == clean
    assert corpus.classes == ("<b>", "=a")
    assert corpus.reading.counts["replaced_surrogates"] == (
        sum(a != b for a, b in zip(texts, clean, strict=True)) if can_hold else 0
    )
    assert read_texts(source).to_list() == clean


def test_byte_order_marks_encodings_and_line_ends(tmp_path: Path) -> None:
    text = "text,label\r\ncafé a,x\r\ncafé b,y\r\ncafé c,x\r\ncafé d,y\r\n"
    path = tmp_path / "a.csv"
    for written, said in [
        ("utf-8-sig", "utf-8"),
        ("latin-1", "latin-1"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
    ]:
        path.write_bytes(text.encode(written))
        assert read_corpus(path, encoding=said).texts.to_list() == [
            "café a",
            "café b",
            "café c",
            "café d",
        ]
    assert read_corpus(path).reading.detected == ("encoding utf-16 (detected)",)
    fails(path, "unknown text encoding 'klingon'", encoding="klingon")
    path.write_bytes(text.encode("utf-8"))
    fails(path, "check --encoding", encoding="utf-16")
    path.write_bytes(text.replace("\r\n", "\r").encode("utf-8"))
    assert read_corpus(path).rows.tolist() == [1, 2, 3, 4]


def test_blank_lines_and_line_breaks_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('\ntext,label\n"a b\nc",x\n\n"d ""e""\n\nf",y\ng,x\nh,y\n\n')
    corpus = read_corpus(path)
    assert corpus.texts.to_list() == ["a b\nc", 'd "e"\n\nf', "g", "h"]
    assert corpus.rows.tolist() == [1, 2, 3, 4]


@pytest.mark.slow
def test_one_document_of_50_megabytes(tmp_path: Path) -> None:
    huge = "word " * 10_000_000
    path = write_csv(
        tmp_path / "a.csv", [["text", "label"], [huge, "a"], ["x", "b"], ["y", "a"], ["z", "b"]]
    )
    assert len(read_corpus(path).texts[0]) == len(huge)


def make_folder(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8"))
    return root


def test_folder_with_a_subfolder_per_label(tmp_path: Path) -> None:
    folder = make_folder(
        tmp_path / "d",
        {
            "pos/1.txt": "good\r\n",
            "pos/2.txt": "fine",
            "neg/1.txt": "bad",
            "neg/2.txt": "é",
            "readme.md": "no",
            "empty/x.md": "no",
        },
    )
    corpus = read_corpus(folder)
    assert corpus.classes == ("neg", "pos") and corpus.labels.tolist() == [0, 0, 1, 1]
    assert corpus.texts.to_list() == ["bad", "é", "good\r\n", "fine"]
    assert read_texts(folder / "pos").to_list() == ["good\r\n", "fine"]


def test_the_layout_of_acl_imdb(tmp_path: Path) -> None:
    folder = make_folder(
        tmp_path / "aclImdb",
        {
            "imdb.vocab": "x",
            "train/urls_pos.txt": "http",
            "train/unsup/0_0.txt": "who knows",
            "train/unsup/1_0.txt": "?",
            "train/pos/0_9.txt": "good a",
            "train/pos/1_9.txt": "good b",
            "train/neg/0_1.txt": "bad a",
            "train/neg/1_1.txt": "bad b",
            "test/pos/0_9.txt": "good c",
            "test/neg/0_1.txt": "bad a",
        },
    )
    corpus = read_corpus(folder)
    assert corpus.test is not None
    assert corpus.texts.to_list() == ["bad a", "bad b", "good a", "good b"]
    assert corpus.test.texts.to_list() == ["bad a", "good c"] and corpus.test.labels.tolist() == [
        0,
        1,
    ]
    assert corpus.reading.ignored == {"unsup": 2} and corpus.reading.counts["test_overlap"] == 1
    assert any("unsup" in line and line.startswith("2 ") for line in corpus.reading.lines())
    alone = read_corpus(folder / "train", test=folder)
    assert alone.test is not None and alone.test.texts.to_list() == corpus.test.texts.to_list()
    assert read_texts(folder).to_list() == ["bad a", "good c"]


def test_folders_that_are_no_data_set(tmp_path: Path) -> None:
    fails(tmp_path, "not a data set", "one subfolder of .txt files per label")
    make_folder(tmp_path, {"a.txt": "x"})
    fails(tmp_path, "not a data set")
    make_folder(tmp_path, {"pos/a.txt": "x", "neg/b.txt": "x"})
    (tmp_path / "neg" / "b.txt").write_bytes(b"caf\xe9\n")
    fails(tmp_path, "b.txt", "line 1", "0xe9", "--encoding latin-1", encoding="utf-8")


# ---- bad input


def test_missing_unknown_and_unreadable_files(tmp_path: Path) -> None:
    write_csv(tmp_path / "reviews.csv", [["text", "label"]])
    fails(tmp_path / "reveiws.csv", "no file or folder", "did you mean", "reviews.csv")
    fails("nowhere/at/all.csv", "no file or folder", "imdb, yelp")
    for long in ("x" * 5000, "x/" * 2500):
        fails(long, "cannot open", "check the path")
        with pytest.raises(InputError) as caught:
            read_corpus(long)
        assert len(str(caught.value)) < 300
    (tmp_path / "a.xlsx").write_bytes(
        layouts.workbook([{"text": "a", "label": "b"}])[:-30] + b"PK\x05\x06" + bytes(18)
    )
    fails(tmp_path / "a.xlsx", "not a readable workbook")
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    fails(tmp_path / "a.xlsx", "not a readable workbook")
    (tmp_path / "a.docx").write_bytes(b"PK")
    fails(tmp_path / "a.docx", "'.docx'", ".csv .tsv .jsonl .ndjson .json .parquet")
    (tmp_path / "noext").write_bytes(b"x")
    fails(tmp_path / "noext", "without an extension")
    (tmp_path / "a.parquet").write_bytes(b"text,label\n")
    fails(tmp_path / "a.parquet", "not a readable Parquet file")
    whole = gzip.compress(b"text,label\n" + os.urandom(20_000).hex().encode())
    for broken in (b"text,label\n", whole[:-100], whole[:200] + b"\0" * 50 + whole[250:]):
        (tmp_path / "a.csv.gz").write_bytes(broken)
        fails(tmp_path / "a.csv.gz", "damaged or not a gzip file")
    fails([1, 2], "cannot read a list")
    fails(["a", "b"], "no file or folder 'a'")
    fails((["a"], ["x", "y"]), "1 texts but 2 labels")
    fails(("ab", "xy"), "pair of lists")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["is empty"]),
        (b"text,label\n", ["has no rows"]),
        (b"text,text\na,b\n", ["'text' occurs more than once"]),
        (b"text,label\na,x\nb,y,z\n", ["row 2 (line 3)", "3 fields", "header has 2"]),
        (b'text,label\n"a\nb",x\nc\n', ["row 2 (line 4)", "1 fields"]),
        (b'text,label\na,x\n"b,y\nc,x\n', ["row 2 (line 3)", "never closed"]),
        (b'text,label\na,x\n"b"c,y\n', ["row 2 (line 3)", "stray characters"]),
        (b"text,label\na,x\n\nb\0c,y\n", ["row 2 (line 4)", "NUL"]),
        (
            b"text,label\na,x\nb,y\ncaf\xe9,x\n",
            ["row 3 (line 4)", "0xe9", "not utf-8", "--encoding latin-1"],
        ),
        (b'text,label\na,x\n"b\nc\nd\xe9",y\n', ["row 2 (line 5)", "0xe9"]),
        (b"te\xe9xt,label\na,x\n", ["header (line 1)", "0xe9"]),
        (b"text,label\n" + b"a,x\n" * 5000 + b"\xff,x\n", ["row 5001 (line 5002)", "0xff"]),
    ],
)
def test_broken_csv_is_named_by_row_and_line(
    tmp_path: Path, content: bytes, parts: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    fails(path, "a.csv", *parts, encoding="utf-8")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files cannot be listed here")
@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"text,label\na\nb,2\n"), ("a.jsonl", b'{"text": "a", "label": 1}\n[1]\n{}\n')],
)
def test_a_refused_file_is_closed_while_its_error_is_held(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as held:
        read_corpus(tmp_path / name)
    opened = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert str(tmp_path / name) not in opened and held.value is not None


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["has no rows"]),
        (b'{"text": "a", "label": 1}\n{"text": "b", \n', ["line 2", "is not JSON"]),
        (b'{"text": "a", "label": 1}\n\n[1, 2]\n', ["line 3", "JSON list"]),
        (b'{"text": "a", "label": 1}\n{"text": "caf\xe9"}\n', ["line 2", "0xe9"]),
        (
            b'{"text": "a", "label": 1}\n{"text": true, "label": 1}\n',
            ["row 2", "bool values, not text"],
        ),
        (
            b'{"text": "a", "label": 1}\n{"text": "b", "label": [1, 2]}\n',
            ["row 2", "label is a list"],
        ),
        (b"[" * 100_000 + b"\n", ["line 1", "is not JSON"]),
    ],
)
def test_broken_json_lines_are_named(tmp_path: Path, content: bytes, parts: list[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    fails(path, "a.jsonl", *parts, encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("[", ["is not JSON"]),
        ("[]", ["has no rows"]),
        ('[{"text": "a"}, 3]', ["row 2 is the JSON value 3"]),
        ('{"text": ["a"], "label": 1}', ["lists of texts"]),
        ('{"text": "a", "label": 1} x', ["line 1", "is not JSON"]),
        ("[" * 100_000, ["is not JSON"]),
        ("[" + "9" * 5000 + "]", ["is not JSON"]),
    ],
)
def test_broken_json_is_named(tmp_path: Path, content: str, parts: list[str]) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    fails(path, "a.json", *parts)


def test_json_may_be_an_array_over_many_lines_or_lines(tmp_path: Path) -> None:
    rows = [
        {"text": t, "label": y, **({"late": 1} if t == TEXTS[-1] else {})}
        for t, y in zip(TEXTS, LABELS, strict=True)
    ]
    for content in (
        json.dumps(rows, indent=2),
        "\ufeff " + json.dumps(rows),
        "\n".join(map(json.dumps, rows)),
    ):
        (tmp_path / "a.json").write_text(content, encoding="utf-8")
        assert read_corpus(tmp_path / "a.json").texts.to_list() == TEXTS


# ---- separators and headers


def test_separators(tmp_path: Path) -> None:
    rows = [["text", "label"], *map(list, zip(TEXTS, LABELS, strict=True))]
    for mark in ";|\t:":
        path = write_csv(tmp_path / "a.csv", rows, delimiter=mark)
        assert read_corpus(path, separator=mark).texts.to_list() == TEXTS
        assert read_texts(path, separator=mark).to_list() == TEXTS
    for wrong in (";;", "", '"', "\n"):
        fails(path, "the separator must be one ASCII character", separator=wrong)
    (tmp_path / "a.jsonl").write_text("{}")
    fails(tmp_path / "a.jsonl", "--no-header and --no-quotes are for .csv and .tsv", separator=";")
    fails(tmp_path / "a.jsonl", "--no-header and --no-quotes are for .csv and .tsv", header=False)


def test_a_file_without_a_header_is_refused_or_read_whole(tmp_path: Path) -> None:
    long = [f"{t} and some more words" for t in TEXTS]
    path = write_csv(tmp_path / "a.csv", list(map(list, zip(long, LABELS, strict=True))))
    fails(
        path,
        "the first line looks like data",
        "'good film here and some more words'",
        "--no-header",
    )
    corpus = read_corpus(path, header=False)
    assert corpus.texts.to_list() == long and corpus.rows.tolist() == [1, 2, 3, 4]
    assert corpus.reading.columns == ("column 1", "column 2")
    with pytest.raises(InputError, match="--no-header"):
        read_texts(path)
    assert read_texts(path, text="column 1", header=False).to_list() == long
    # a label among the names, and more columns than can be guessed
    path = write_csv(
        tmp_path / "b.csv",
        [["it", "positive"], *[[f"it is number {i}", y] for i, y in enumerate(LABELS)]],
    )
    fails(path, "the first line looks like data", "'positive'", "--no-header")
    path = write_csv(
        tmp_path / "c.csv",
        [[i, t, y, t + "!"] for i, (t, y) in enumerate(zip(long, LABELS, strict=True))],
    )
    fails(path, "cannot tell which column holds the text", "no header", "--no-header")
    path = tmp_path / "d.csv"
    path.write_text("a,x\nb\n")
    fails(path, "row 2 (line 2): 1 fields where the first row has 2", header=False)


def test_a_text_within_objects_is_proposed_by_its_path(tmp_path: Path) -> None:
    """A column named review holds objects here, as JSON often does."""
    rows = [
        {"review": {"title": "x", "body": t}, "rating": y}
        for t, y in zip(TEXTS, LABELS, strict=True)
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    fails(tmp_path / "a.json", "Pass --text review.body --label rating")
    assert read_corpus(tmp_path / "a.json", text="review.body").frame.height == len(TEXTS)


# ---- files that are none


class Endless(io.RawIOBase):
    """Standard input, or an answer of a server, that never ends; each block is counted."""

    headers = email.message.Message()
    status = 200

    def __init__(self, block: bytes) -> None:
        self.block, self.bytes = block, 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "all of it was asked for"
        self.bytes += size
        return (self.block * (size // len(self.block) + 1))[:size]

    read1 = read


@pytest.mark.parametrize("block", [b"\0", b"text,label\0", b"x" * 99])
def test_an_endless_line_of_standard_input_ends_before_it_fills_the_disk(
    block: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless(block)
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=endless))
    monkeypatch.setattr("tokensieve.read.addresses.MAX_LINE_BYTES", 20_000_000)
    with pytest.raises(InputError, match=r"standard input: a line is over .* pass --no-limits"):
        read_corpus("-")
    assert endless.bytes < 30_000_000


@pytest.mark.parametrize("source", ["-", "https://example.org/a.csv"])
def test_lines_without_end_stop_before_they_fill_the_disk(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from `yes text,label | tokensieve audit -`, or a server that never closes."""
    endless = Endless(b"good film,p\n")
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=endless))
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: endless)
    monkeypatch.setattr("tokensieve.read.addresses.MAX_COPIED_BYTES", 20_000_000)
    with pytest.raises(
        InputError, match=r"is over 0 GB; save it to a file first, or pass --no-limits"
    ):
        read_corpus(source)
    assert endless.bytes < 30_000_000


def test_devices_pipes_and_sockets_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s.csv"))
        for path in ("pipe.csv", "zero.csv", "s.csv"):
            fails(tmp_path / path, "not a regular file")
    fails("/dev/zero", "not a regular file")
    folder = make_folder(tmp_path / "d", {"pos/1.txt": "a", "neg/1.txt": "b"})
    (folder / "neg" / "2.txt").symlink_to("/dev/zero")
    fails(folder, "2.txt", "leads out of the folder")
    with pytest.raises(InputError, match="not a regular file"):
        PieceTokenizer(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="not a regular file"):
        read_stop_words(tmp_path / "pipe.csv")


@pytest.mark.slow
def test_many_columns(tmp_path: Path) -> None:
    names, n = (
        ["text", "label", *[f"c{i}" for i in range(10_000)]],
        len(TEXTS),
    )  # the time grows in proportion
    rows = [[t, y, *["1"] * 10_000] for t, y in zip(TEXTS, LABELS, strict=True)]
    path = write_csv(tmp_path / "a.csv", [names, *rows])
    assert len(read_corpus(path).texts) == n
    path = write_csv(tmp_path / "b.csv", [["x", "y", *names[2:]], *rows])
    assert read_corpus(path, label="y").reading.columns[0] == "x"  # the only column with text
    path = write_csv(tmp_path / "c.csv", [[*names[:-1], "c0"], *rows])
    fails(path, "'c0' occurs more than once")


def test_columns_that_may_be_authors_are_read_in_one_pass() -> None:
    """A pass for each of 10,000 columns of a file would take minutes."""
    read: list[tuple[str, ...]] = []
    names, n = [f"c{i}" for i in range(60)], 40

    def batches(wanted: Sequence[str]) -> Iterator[Batch]:
        read.append(tuple(wanted))
        yield {
            name: pl.Series([f"writer {i % 20}" if name == "c7" else "1" for i in range(n)])
            for name in wanted
        }

    table, labels = SourceTable("a.csv", names, batches), np.arange(n) % 2
    found = likely_groups(table, (), np.arange(1, n + 1), labels)
    assert found is not None and (found.column, found.n_groups) == ("c7", 20)
    assert read == [tuple(names)] * 2  # to see what they hold, and to look for authors


def test_what_columns_hold_is_looked_at_once() -> None:
    read: list[tuple[str, ...]] = []

    def batches(names: Sequence[str]) -> Iterator[Batch]:
        read.append(tuple(names))
        yield {
            name: pl.Series({"text": TEXTS, "label": LABELS, "more": [1] * len(TEXTS)}[name])
            for name in names
        }

    table = SourceTable("a.csv", ["text", "label", "more"], batches)
    assert labelled_columns(table, None, None, ()) == (("text",), "label")
    assert verdict_column(table) is None and text_columns(table, None) == ("text",)
    assert len(read) == 1


# ---- named data sets


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Parquet files as the hub holds them, under the name imdb."""
    import datasets

    names = datasets.ClassLabel(names=["neg", "pos"])
    features = datasets.Features({"text": datasets.Value("string"), "label": names})
    folder = tmp_path / "hub"
    folder.mkdir()
    for part, labels in [
        ("train", [0, 1, 0, 1]),
        ("test", [1, 0, -1]),
        ("unsupervised", [-1, -1, -1]),
    ]:
        data = datasets.Dataset.from_dict(
            {"text": [f"{part} {i}" for i in range(len(labels))], "label": labels}, features
        )
        data.to_parquet(folder / f"{part}-00000-of-00001.parquet")
    parts = "".join(
        f"  - split: {part}\n    path: {part}-*\n" for part in ("train", "test", "unsupervised")
    )
    (folder / "README.md").write_text(
        f"---\nconfigs:\n- config_name: default\n  data_files:\n{parts}---\n"
    )
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setitem(hub_module.DATA_SETS, "imdb", str(folder))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_named_data_set_from_local_files(hub: Path) -> None:
    corpus = read_corpus("imdb")
    assert corpus.test is not None
    assert corpus.classes == ("neg", "pos") and corpus.labels.tolist() == [0, 1, 0, 1]
    assert corpus.texts.to_list() == [
        f"train {i}" for i in range(4)
    ] and corpus.test.labels.tolist() == [1, 0]
    assert corpus.test.reading.counts["missing_label"] == 1
    assert corpus.reading.ignored == {"unsupervised": 3}
    make_folder(hub / "imdb", {"a/1.txt": "1", "a/2.txt": "2", "b/1.txt": "3", "b/2.txt": "4"})
    assert read_corpus("imdb").classes == ("a", "b")


def test_named_data_set_without_library_or_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import datasets

    def offline(*_: object) -> None:
        raise ConnectionError("Couldn't reach the hub\nlong story")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "load_dataset", offline)
    fails(
        "yelp",
        "cannot load the data set 'yelp' (Yelp/yelp_review_full)",
        "Couldn't reach the hub",
        "check the network",
    )
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    fails("imdb", "tokensieve[datasets]")
