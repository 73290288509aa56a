"""predict: all probabilities, what stays beside them, the score where labels are there, and
standard input."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss

from calls import Run
from reviews import write_reviews
from tokensieve.model.classifier import load_model
from tokensieve.read.rows import read_rows
from tokensieve.read.sources import open_source
from tokensieve.task.score import Score


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on `review` and `stars`, grouped to bad and good."""
    from tokensieve.cli import app

    folder = tmp_path_factory.mktemp("predict")
    source = write_reviews(folder / "reviews.csv", 200, stars=True)
    source.write_text(source.read_text().replace("text,stars", "review,stars", 1))
    groups = ["--group", "bad=1,2", "--group", "good=4,5"]
    app(
        args=["train", str(source), *groups, "--out", str(folder / "model"), "-q"],
        standalone_mode=False,
    )
    return folder


def test_texts_of_mostly_unknown_words_are_a_line_on_standard_error(
    model: Path, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "new.csv").write_text(
        "review\nder Film war ganz wunderbar\nich fand ihn langweilig\n"
    )
    status, out, err = run("predict", str(model / "model"), "new.csv")
    assert status == 0 and len(rows_of(out)) == 2
    assert (
        err.startswith("most words of these texts are unknown to the model (9 of 9)")
        and err.count("\n") == 1
    )
    (tmp_path / "many.csv").write_text("review\n" + "langweilig der film\n" * 1001)
    assert (
        "most words of the first 1,000 rows" in run("predict", str(model / "model"), "many.csv")[2]
    )
    assert run("predict", str(model / "model"), "new.csv", "--quiet")[2] == ""
    assert "unknown" not in run("predict", str(model / "model"), str(model / "reviews.csv"))[2]


def rows_of(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(out)))


def test_columns_and_groups_of_training_are_remembered_and_the_score_is_scikit_learns(
    model: Path, run: Run
) -> None:
    status, out, err = run("predict", str(model / "model"), str(model / "reviews.csv"))
    rows, loaded = rows_of(out), load_model(model / "model")
    assert (
        status == 0
        and list(rows[0])
        == "row label class probability answer unknown_words P(bad) P(good)".split()
    )
    frame = pl.read_csv(model / "reviews.csv")
    p = loaded.predict_proba(frame["review"].to_list())
    np.testing.assert_allclose(
        [[float(r["P(bad)"]), float(r["P(good)"])] for r in rows], p, rtol=1e-12
    )
    true = ["bad" if stars < 3 else "good" for stars in frame["stars"]]
    status, table, _ = run(
        "predict", str(model / "model"), str(model / "reviews.csv"), "--out", "there"
    )
    assert status == 0 and "always predicting the largest class" in table and err.count("\n") == 1
    found = json.loads(Path("there/summary.json").read_text())["score"]
    assert found["accuracy"]["value"] == accuracy_score(true, [r["class"] for r in rows])
    assert found["confusion"] == confusion_matrix(true, [r["class"] for r in rows]).tolist()
    assert found["log_loss"] == pytest.approx(log_loss(true, p), rel=1e-12)
    assert f"log loss {found['log_loss']:.4f}" in err and f"{found['accuracy']['value']:.1%}" in err


@pytest.mark.parametrize("k", [3, 5])
def test_the_log_loss_of_many_classes_is_scikit_learns(k: int) -> None:
    rng = np.random.default_rng(k)
    f, labels = 3 * rng.normal(size=(40, k)), [None, "strange", *map(str, rng.integers(0, k, 38))]
    found = Score.of(f, pl.Series(labels, dtype=pl.String), [str(i) for i in range(k)])
    p = np.exp(f[2:]) / np.exp(f[2:]).sum(axis=1, keepdims=True)
    assert found is not None and (found.unlabelled, found.unknown_labels) == (1, {"strange": 1})
    assert found.log_loss == pytest.approx(
        log_loss(labels[2:], p, labels=[str(i) for i in range(k)]), rel=1e-12
    )
    assert found.confusion.sum() == found.accuracy.of == 38
    assert Score.of(f[:1], pl.Series([None], dtype=pl.String), ["0", "1", "2"]) is None


def test_an_identifier_stays_and_other_columns_on_request(model: Path, run: Run) -> None:
    Path("a.jsonl").write_text(
        '{"ID": "x", "review": "great", "tags": ["a"], "at": 1.5}\n{"ID": null, "review": null, '
        '"at": true}\n'
    )
    rows = rows_of(run("predict", str(model / "model"), "a.jsonl")[1])
    assert (
        [row["ID"] for row in rows] == ["x", ""]
        and "label" not in rows[0]
        and "tags" not in rows[0]
    )
    rows = rows_of(
        run("predict", str(model / "model"), "a.jsonl", "--keep", "tags", "--keep", "at")[1]
    )
    assert [(row["tags"], row["at"]) for row in rows] == [('["a"]', "1.5"), ("", "True")]


@pytest.mark.parametrize(
    "content",
    [
        b"great film\r\nbad film\n", b"review\ngreat film\nbad film\n", b"id\treview\n1\tgreat film\n2\tbad film\n",
        b'\xef\xbb\xbftext,id\n"great film",1\nbad film,2', b'{"review": "great film"}\n{"review": "bad film"}',
        b' [{"text": "great film"}, {"text": "bad film"}]',
    ],
)  # fmt: skip
def test_standard_input_of_every_kind(
    model: Path, run: Run, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    status, out, err = run("predict", str(model / "model"), "-")
    expected = load_model(model / "model").predict_proba(["great film", "bad film"])
    assert (status, err) == (0, "")
    np.testing.assert_allclose(
        [float(row["P(good)"]) for row in rows_of(out)], expected[:, 1], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b" \n", [], "standard input is empty"), (b"\x1f\x8bx", [], "or not a gzip file"), (b"\xff\xfe\x00", [], "is "
                                                                                                                 "not "
                                                                                                                 "text"),
        (b"id,review\n1,x\n", ["--keep", "other"], "standard input: there is no column 'other'"),
        (b"row,review\n1,x\n", ["--keep", "row"], "the results have a column of this name"),
        (b"stars,review\n9,x\n", ["--label", "stars"], "has none of the model's labels"),
        (b"{oops", [], "is not JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_one_line(
    model: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    status, out, err = run("predict", str(model / "model"), "-", *options)
    assert (status, out, err.count("\n")) == (2, "", 1) and message in err


@pytest.mark.parametrize(
    "summary", ['{"settings": {"columns": [[], 3], "group": 7}}', "[" * 100_000, "", '{"settings"']
)
def test_a_damaged_memory_is_no_memory(model: Path, run: Run, tmp_path: Path, summary: str) -> None:
    (tmp_path / "m").mkdir()
    for path in (model / "model").iterdir():
        (tmp_path / "m" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "m" / "summary.json").write_text(summary)
    assert run("predict", "m", str(model / "reviews.csv"))[0] == 0


def test_labels_and_kept_columns_beside_several_fields() -> None:
    table = open_source(pl.DataFrame({"title": ["a"], "body": ["b"], "id": [4], "y": [1.0]})).train
    found = read_rows(table, ["title", "body"], "y", ["id"])
    assert found["text"].to_list() == ["⟦title⟧ a\n⟦body⟧ b"]
    assert found["label"].to_list() == ["1"] and found["kept"].struct.field("id").to_list() == ["4"]


@pytest.mark.slow
def test_every_column_that_the_model_reads_must_be_there(run: Run, tmp_path: Path) -> None:
    """All predictions were the share of the classes, and the message was about unknown words."""
    texts, kinds = (
        [f"a {('fine', 'dull')[i % 2]} film of {1900 + i}" for i in range(60)],
        ["good", "bad"] * 30,
    )
    pl.DataFrame({"title": texts, "text": texts, "label": kinds}).write_csv(tmp_path / "both.csv")
    pl.DataFrame({"text": texts, "label": ["1", "0"] * 30}).write_csv(tmp_path / "one.csv")
    columns = ("--text", "title", "--text", "text")
    assert run("train", "both.csv", *columns, "--label", "label", "--out", "m", "--quiet")[0] == 0
    assert run("predict", "m", "both.csv")[0] == 0
    for source, options in (("one.csv", ()), ("both.csv", ("--text", "text"))):
        status, out, err = run("predict", "m", source, *options)
        assert (status, out, err.count("\n")) == (2, "", 1) and "'title' is missing" in err
    assert (
        run("train", "both.csv", "--text", "text", "--label", "label", "--out", "m1", "--quiet")[0]
        == 0
    )
    status, out, err = run("predict", "m1", "one.csv")
    assert (
        status == 0
        and "column 'label' has none of the model's labels ('bad', 'good'), so" in out + err
    )
