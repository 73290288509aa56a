"""Several labels: an audit of each, in a folder of its own, and an index that leads to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve.cli.audit import folder_names
from tokensieve.errors import InputError
from tokensieve.read.label_lists import SettingsPerLabel, has_label, settings_per_label
from tokensieve.read.reader import read_corpus
from tokensieve.read.settings import ReadSettings

pytestmark = pytest.mark.usefixtures("undrawn", "quick_training")

FEW = ("--no-pictures", "--no-baseline")


def posts(n: int = 160) -> pl.DataFrame:
    """Posts with none, one or two labels; each label has a word."""
    rng = np.random.default_rng(0)
    has = rng.random((n, 2)) < 0.5
    texts = [
        " ".join([*(["refund"] * a), *(["crash"] * b), *(f"w{i}" for i in rng.integers(0, 30, 6))])
        for a, b in has.tolist()
    ]
    return pl.DataFrame({"text": texts, "billing": has[:, 0], "bug/s": has[:, 1].astype(int)})


def as_lists(frame: pl.DataFrame) -> pl.DataFrame:
    names = [
        [name for name in ("billing", "bug/s") if row[name]] for row in frame.iter_rows(named=True)
    ]
    return frame.select("text").with_columns(
        labels=pl.Series([[*n, *(["rare"] if i < 3 else [])] for i, n in enumerate(names)])
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    lists = as_lists(posts())
    posts().write_csv(folder / "columns.csv")
    lists.write_ndjson(folder / "lists.jsonl")
    lists.write_parquet(folder / "lists.parquet")
    lists.with_columns(pl.col("labels").list.join("|")).write_csv(folder / "cells.csv")
    return folder


@pytest.mark.parametrize("name", ["lists.jsonl", "lists.parquet", "cells.csv"])
def test_lists_and_separated_cells_ask_the_same(files: Path, name: str) -> None:
    separator = "|" if name == "cells.csv" else None
    audits = settings_per_label(files / name, ReadSettings(label_separator=separator))
    asked, left_out = list(audits.settings.items()), audits.too_few
    assert {label for label, _ in asked} == {"billing", "bug/s"} and left_out == {"rare": 3}
    truth = posts()
    for label, how in asked:
        assert how.having == label
        corpus = read_corpus(files / name, how)
        assert corpus.classes == ("no", "yes") and len(corpus.labels) == 160
        np.testing.assert_array_equal(corpus.labels, truth[label].cast(pl.Int64))


def test_an_ordinary_label_asks_nothing(files: Path) -> None:
    assert (
        settings_per_label(files / "columns.csv", ReadSettings(label="billing"))
        == SettingsPerLabel()
    )
    asked = settings_per_label(files / "columns.csv", ReadSettings(label=["billing", "bug/s"]))
    assert list(asked.settings) == ["billing", "bug/s"]


@pytest.mark.parametrize(
    ("cell", "separator", "names"),
    [
        (["a", 2, None, 3.0], None, ["a", "2", "3"]),
        ([], None, []),
        ("a| b |", "|", ["a", "b"]),
        ("", "|", []),
        (np.array(["x"]), None, ["x"]),
    ],
)
def test_the_labels_of_a_cell(cell: Any, separator: str | None, names: list[str]) -> None:
    values = {
        label: has_label([cell], label, separator, "a", 1)[0]
        for label in ("a", "2", "3", "b", "x", "")
    }
    assert [label for label, held in values.items() if held == "yes"] == sorted(
        names, key=list(values).index
    )


def test_folders_have_safe_names_and_none_is_used_twice() -> None:
    labels = ["../../etc", "a/b c", "", ".hidden", "x" * 100, "A-B c", "ü" * 3]
    expected = ["etc", "a-b-c", "label", "hidden", "x" * 60, "A-B-c-6", "label-7"]
    assert list(folder_names(labels).values()) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("columns.csv", ["--label", "billing", "--label", "bugs"], "did you mean 'bug/s'?"),
        ("columns.csv", ["--label", "billing", "--label", "billing"], "names a column twice"),
        (
            "cells.csv",
            ["--label", "labels", "--label-separator", ";"],
            "never contains ';'; check --label-separator",
        ),
        (
            "cells.csv",
            ["--label", "labels", "--label", "text", "--label-separator", "|"],
            "is for one label column",
        ),
        ("lists.jsonl", ["--drop", "billing"], "--group and --drop need one label column"),
    ],
)
def test_bad_input_is_said_in_one_line_before_any_audit(
    files: Path, name: str, arguments: list[str], problem: str, tmp_path: Path, run: Run
) -> None:
    code, _, err = run("audit", str(files / name), *arguments, "--out", str(tmp_path / "out"))
    assert (code, err.count("\n")) == (2, 1) and problem in err
    assert not (tmp_path / "out").exists()


def test_a_text_is_a_list_of_one_and_an_object_in_a_list_is_named_with_its_row() -> None:
    data = [{"text": f"a {i}", "label": "x" if i % 2 else ["y"]} for i in range(4)]
    assert read_corpus(data, having="x").labels.tolist() == [0, 1, 0, 1]
    data[3]["label"] = ["x", {"name": "y"}]
    with pytest.raises(InputError, match="row 4: the labels contain objects"):
        read_corpus(data, having="x")


@pytest.mark.slow
def test_each_label_has_its_audit_and_the_index_leads_there(
    files: Path, tmp_path: Path, run: Run
) -> None:
    out = tmp_path / "out"
    limits = ("--fail-on", "0.6@1%")
    code, printed, err = run("audit", str(files / "lists.jsonl"), "--out", str(out), *FEW, *limits)
    assert code == 3 and "audits that exceed the --fail-on limit: bug/s, billing" in err
    summary = json.loads((out / "summary.json").read_text())
    assert summary["left_out"] == {"rare": 3}
    assert {row["folder"] for row in summary["labels"]} == {"billing", "bug-s"}
    page = (out / "report.html").read_text()
    found = 0
    for row in summary["labels"]:
        found += bool(json.loads((out / row["folder"] / "findings.json").read_text())["findings"])
        own = json.loads((out / row["folder"] / "summary.json").read_text())
        assert own["classes"] == ["no", "yes"] and own["name"].endswith(f": {row['label']}")
        assert row["test_accuracy"] == own["test_accuracy"] > 0.9
        assert f'href="{row["folder"]}/report.html"' in page
        tokens = pl.read_csv(out / row["folder"] / "tokens.csv").filter(pl.col("class") == "yes")
        assert tokens.sort("q_value")["token"][0] == (
            "refund" if row["label"] == "billing" else "crash"
        )
    assert pl.read_csv(out / "labels.csv").height == 2
    has = "has" if found == 1 else "have"
    assert found and f"{found} of 2 labels {has} findings" in printed and "rare (3)" in printed
