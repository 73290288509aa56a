"""The audit from Python: every kind of frame, how results look in a notebook, and files that are
those of the command."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tokensieve
from calls import Run
from tokensieve import (
    AttentionClassifier,
    Audit,
    InputError,
    Settings,
    audit,
    demo_reviews,
    read_corpus,
)
from tokensieve.auditing.findings import Finding
from tokensieve.read.settings import Pairs

QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)


def frame(n: int = 60) -> pl.DataFrame:
    reviews = demo_reviews(n, seed=1)
    return pl.DataFrame(
        {
            "id": range(n),
            "body": reviews.texts,
            "stars": [["bad", "good"][y] for y in reviews.labels],
        }
    )


@pytest.fixture(scope="module")
def expected() -> Audit:
    data = frame()
    return audit(read_corpus((data["body"].to_list(), data["stars"].to_list())), QUICK)


def pandas_frame(data: pl.DataFrame) -> Any:
    return pytest.importorskip("pandas").DataFrame(data.to_dict(as_series=False))


def arrow_table(data: pl.DataFrame) -> Any:
    return pytest.importorskip("pyarrow").table(data.to_dict(as_series=False))


def arrow_stream(data: pl.DataFrame) -> Any:
    """Nothing but Arrow's C stream interface, as of any library."""

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return data.__arrow_c_stream__(requested_schema)

    return Stream()


def duckdb_relation(data: pl.DataFrame) -> Any:
    library = pytest.importorskip("duckdb", reason="duckdb is not installed")
    return library.connect().from_arrow(data.to_arrow())


def dataset(data: pl.DataFrame) -> Any:
    library = pytest.importorskip("datasets")
    whole = library.Dataset.from_dict(data.to_dict(as_series=False))
    return whole.cast_column(
        "stars", library.ClassLabel(names=["bad", "good"])
    )  # numbers that are shown as their names


def dataset_dict(data: pl.DataFrame) -> Any:
    return pytest.importorskip("datasets").DatasetDict({"train": dataset(data)})


@pytest.mark.parametrize(
    "kind",
    [
        pl.DataFrame,
        pl.LazyFrame,
        pandas_frame,
        arrow_table,
        arrow_stream,
        duckdb_relation,
        dataset,
        dataset_dict,
    ],
)
def test_every_kind_of_frame_gives_the_same_corpus(kind: Any) -> None:
    found, data = read_corpus(kind(frame()), text="body", label="stars"), frame()
    assert found.classes == ("bad", "good") and found.texts.to_list() == data["body"].to_list()
    assert [found.classes[y] for y in found.labels] == data[
        "stars"
    ].to_list() and found.test is None


def test_a_frame_gives_the_audit_of_its_corpus(expected: Audit) -> None:
    found = audit(pandas_frame(frame()), QUICK, text="body", label="stars")
    assert found.classes == ("bad", "good") and found.tokens.equals(expected.tokens)
    assert found.test_accuracy == expected.test_accuracy


def test_a_dataset_dict_brings_its_test_documents() -> None:
    library, data = pytest.importorskip("datasets"), frame(90)
    parts = {
        name: dataset(data[at : at + 30])
        for name, at in (("train", 0), ("test", 30), ("validation", 60))
    }
    found = audit(library.DatasetDict(parts), QUICK, text="body", label="stars")
    assert found.documents == {"train": 30, "test": 30} and any(
        "'validation'" in note for note in found.notes
    )
    with pytest.raises(InputError, match="needs a split 'train'; it has 'test', 'validation'"):
        audit(
            library.DatasetDict({"test": parts["test"], "validation": parts["validation"]}), QUICK
        )
    with pytest.raises(InputError, match="it has none"):
        audit(library.DatasetDict({}), QUICK)


@pytest.mark.parametrize("kind", [pandas_frame, arrow_table, dataset])
def test_missing_texts_and_labels_are_counted(kind: Any) -> None:
    data = frame(42).with_columns(
        body=pl.when(pl.col("id") == 40).then(None).otherwise("body"),
        stars=pl.when(pl.col("id") == 41).then(None).otherwise("stars"),
    )
    found = read_corpus(kind(data), text="body", label="stars")
    assert len(found.texts) == 40
    lines = " ".join(found.reading.lines())
    assert "1 row without a text" in lines and "1 row without a label" in lines


def test_missing_values_in_lists_of_numpy_and_pandas() -> None:
    pandas, data = pytest.importorskip("pandas"), frame(42)
    texts, labels = data["body"].to_list(), data["stars"].to_list()
    for nothing in (np.nan, float("nan"), None, pandas.NA, pandas.NaT):
        corpus = read_corpus(([*texts, nothing, "x"], [*labels, "bad", nothing]))
        assert (corpus.reading.counts["missing_text"], corpus.reading.counts["missing_label"]) == (
            1,
            1,
        )
    with pytest.raises(ValueError, match=r"label 2 is missing: leave its text out"):
        AttentionClassifier().fit(texts[:2] * 5, [0.0, 1.0, np.nan, *[0.0] * 7])
    with pytest.raises(ValueError, match=r"label 1 is missing"):
        AttentionClassifier().fit(texts[:2], ["a", None])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"text": "bdy", "label": "stars"},
            "there is no column 'bdy' for the text.*did you mean 'body'",
        ),
        ({"text": "body", "label": 3}, "there is no column '3' for the label"),
        ({"text": "id", "label": "stars"}, "row 1: column 'id' contains int values, not text"),
        ({"text": "body", "label": "id"}, "60 different values in 60 documents"),
        ({"txt": "body"}, "unknown option 'txt'; did you mean 'text'"),
        ({"text": "body", "label": "body"}, "text and label must be different columns"),
    ],
)
def test_wrong_columns_are_told_in_our_words(options: dict[str, Any], message: str) -> None:
    for kind in (pandas_frame, arrow_table):
        with pytest.raises(InputError, match=message):
            audit(kind(frame()), QUICK, **options)


@pytest.mark.slow
def test_settings_by_name_and_in_an_object_are_the_same() -> None:
    settings = replace(QUICK, text="body", label="stars", ngrams=2, seed=3)
    expected, found = (
        audit(frame(), settings),
        audit(frame(), QUICK, text="body", label="stars", ngrams=2, seed=3),
    )
    assert found.tokens.equals(expected.tokens)
    assert found.to_dict()["settings"] == expected.to_dict()["settings"]
    corpus = read_corpus(frame(), text="body", label="stars")
    assert audit(corpus, QUICK, ngrams=2, seed=3).tokens.equals(expected.tokens)


@pytest.mark.parametrize(
    "name", ["ngrams", "seed", "min_documents", "validation_share", "test_share", "budget"]
)
def test_a_setting_of_the_wrong_kind_is_told_in_our_words(name: str) -> None:
    options: dict[str, Any] = {name: "x"}
    with pytest.raises(InputError, match=f"{name}|fail-on"):
        audit(demo_reviews(60), **options)
    assert Settings(budget="leak=0").to_dict()["budget"] == "leak=0"  # type: ignore[arg-type]


@pytest.mark.slow
def test_dicts_are_read_as_columns_and_lists_of_dicts_as_rows() -> None:
    numbered = frame().with_columns(stars=pl.col("stars").replace_strict({"bad": 1, "good": 5}))
    expected = audit(numbered, QUICK, text="body", label="stars")
    for source in (numbered.to_dict(as_series=False), numbered.to_dicts()):
        found = audit(source, QUICK, text="body", label="stars")
        assert found.tokens.equals(expected.tokens)
    assert expected.top(5).equals(expected.top("5"))
    every = expected.top(rows=100)
    for label in ("1", "5"):
        assert every.filter(pl.col("class") == label).equals(expected.top(label, 100))


def test_what_cannot_be_read_is_told_in_our_words(expected: Audit) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    twice = pyarrow.table([["a"], ["b"]], names=["text", "text"])
    for source, message in (
        (twice, "Arrow table cannot be read"), ({"text": ["a"], "label": []}, "the same length"), (3, "cannot "
                                                                                                      "read "
                                                                                                      "a "
                                                                                                      "int"),
        (pl.DataFrame({"only": ["x y z w"] * 9}), "no label column"),
        (pandas_frame(pl.DataFrame({"text": [], "label": []})), "has no rows"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            audit(source, QUICK)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"audit\(\(texts, labels\)\)"):
        audit(["good", "bad"], [1, 0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="already been read"):
        audit(read_corpus(frame(), text="body", label="stars"), text="body")


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.frames: list[dict[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.add(tag)
        if tag == "iframe":
            self.frames.append(dict(attrs))


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_results_are_short_in_a_notebook_and_hostile_text_is_inert(expected: Audit) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e"
    texts = [f"{hostile} good film {i}" if i % 2 else f"bad film {i}" for i in range(40)]
    names = [f"<b>{i % 2}" for i in range(40)]
    found = audit((texts, names), QUICK)
    (explained,) = found.model.explain([f"{hostile} good film"])
    odd = Finding("shortcut", 0.5, hostile, (hostile, "onerror"))
    for thing in (found, explained, odd, expected):
        assert len(repr(thing)) < 400 and "\n" not in repr(thing)
        page = thing._repr_html_()
        tags = Tags(page)
        assert not {"img", "a", "link"} & tags.found and "\u202e" not in page
        # the interactive page has no origin, so that its scripts cannot reach the notebook
        for attributes in tags.frames:
            assert attributes["sandbox"] == "allow-scripts allow-downloads"
            assert {*attributes} <= {"title", "sandbox", "srcdoc", "style"}
            assert not {"link", "iframe"} & Tags(attributes["srcdoc"]).found
    assert "good" in explained._repr_html_() and f"{explained.logit:+.4f}" in repr(explained)
    assert "Finding" not in repr(expected) and len(expected._repr_html_()) < 1_600_000
    assert [len(Tags(thing._repr_html_()).frames) for thing in (found, explained)] == [1, 0]


@pytest.mark.usefixtures("undrawn")
def test_a_notebook_names_no_file_that_is_not_there(expected: Audit) -> None:
    rows = Finding("labels", 0.5, headline="some labels", action="Read label-issues.csv first.")
    page = replace(expected, findings=(rows,))._repr_html_()
    assert "label-issues.csv" not in page and ".label_issues" in page


def test_an_audit_of_pairs_counts_pairs() -> None:
    found = audit(tokensieve.demo_pairs(60), QUICK, pairs=("chosen", "rejected"))
    assert "48 training and 12 test pairs" in repr(found) and "classes" not in repr(found)


def test_accuracies_with_and_without_the_shortcuts_have_names(expected: Audit) -> None:
    assert expected.accuracy_with_shortcuts is None
    with pytest.warns(DeprecationWarning, match="accuracy_without_shortcuts"):
        assert expected.honest_accuracy is None
    assert expected.to_dict()["accuracy_without_shortcuts"] is None


def test_the_name_of_the_command_s_option_sets_the_limits() -> None:
    by_option = Settings(fail_on="leak=0")
    assert by_option == Settings(budget="leak=0")  # type: ignore[arg-type]
    assert by_option.with_options({"fail_on": "0.9@1%"}).to_dict()["budget"] == "0.9@1%"
    assert by_option.to_dict().get("fail_on") is None


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_an_audit_saves_what_the_command_writes(run: Run) -> None:
    frame(80).write_csv("a.csv")
    options = ["--text", "body", "--label", "stars", "--no-baseline", "--out", "command"]
    assert run("audit", "a.csv", *options)[0] == 0
    found = audit("a.csv", Settings(baseline=False), text="body", label="stars")
    assert {path.name for path in found.save("python")} >= {
        "report.html",
        "tokens.csv",
        "summary.json",
        "model.json",
    }
    files = {p.relative_to("command") for p in Path("command").rglob("*") if p.is_file()}
    assert files == {p.relative_to("python") for p in Path("python").rglob("*") if p.is_file()}
    for name in ("tokens.csv", "findings.json", "findings.csv", "model.safetensors", "table.json"):
        assert Path("python", name).read_bytes() == Path("command", name).read_bytes(), name
    one, other = (json.loads(Path(at, "summary.json").read_text()) for at in ("command", "python"))
    assert one.keys() == other.keys() and one["test_accuracy"] == other["test_accuracy"]
    Path("taken").write_text("")
    with pytest.raises(InputError, match="is a file"):
        tokensieve.save(found, "taken")
    tokensieve.save(found, "python", pictures=False)
    assert not Path("python/pictures").exists()  # what the first left would contradict it


def test_dir_lists_the_public_names() -> None:
    assert set(dir(tokensieve)) | {"__version__"} == set(tokensieve.__all__) and {
        "audit",
        "save",
    } <= set(dir(tokensieve))


@pytest.mark.parametrize("kind", [pl.LazyFrame, duckdb_relation])
def test_frames_that_are_computed_when_they_are_read_give_the_audit_of_their_rows(
    kind: Any, expected: Audit
) -> None:
    found = audit(kind(frame()), QUICK, text="body", label="stars")
    assert found.classes == ("bad", "good") and found.tokens.equals(expected.tokens)


@pytest.mark.parametrize("kind", [pl.LazyFrame, duckdb_relation])
def test_pairs_are_read_from_frames_that_are_computed(kind: Any) -> None:
    data = pl.DataFrame(
        {"prompt": ["p", "q", "r"], "a": ["one", "two", "three"], "b": ["x", "y", "z"]}
    )
    data = data.with_columns(winner=pl.Series(["a", "b", "tie"]))
    found = read_corpus(kind(data), pairs=Pairs("a", "b", winner="winner"))
    assert found.texts.to_list() == ["one", "x", "y", "two", "three", "z", "z", "three"]


def test_a_lazy_frame_that_fails_when_it_is_read_is_one_line() -> None:
    broken = pl.LazyFrame({"text": ["a"], "label": ["x"]}).with_columns(
        pl.col("nowhere").alias("other")
    )
    with pytest.raises(InputError, match=r"the lazy frame cannot be read: .*nowhere"):
        read_corpus(broken)


def test_where_no_token_could_be_significant_the_verdict_does_not_clear_the_data() -> None:
    """Three groups cannot tell anything from chance; "no shortcut found" read like praise of the
    data."""
    n = 90
    table = {
        "text": [f"the {'good' if i % 2 else 'bad'} case {i % 7} of {i % 11}" for i in range(n)],
        "label": ["yes" if i % 2 else "no" for i in range(n)],
        "agent": [f"agent {i % 3}" for i in range(n)],
    }
    corpus = read_corpus(pl.DataFrame(table), text="text", label="label", by="agent")
    found = audit(corpus, Settings(baseline=False, thorough=False))
    verdict = found.report().verdict
    assert not found.findings
    assert (
        verdict.startswith("No token in")
        and "(the training documents form 2 groups, and each counts once)" in verdict
    )
