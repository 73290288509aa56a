"""mask: every field of every row survives, whatever the formats, and a bad row is named wherever it
stands."""

from __future__ import annotations

import csv
import gzip
import json
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from calls import Run
from tokensieve.auditing.masking import mask_fields
from tokensieve.text.tokenizers import WordTokenizer

EARLY, LATE = 1_200, 3  # rows without the late field, and with it


def rows() -> list[dict[str, Any]]:
    early: list[dict[str, Any]] = [
        {"text": f"{'' if i % 50 else 'good '}film {i}", "id": i} for i in range(EARLY)
    ]
    return early + [
        {"text": f"good end {i}", "id": EARLY + i, "late": f"kept {i}"} for i in range(LATE)
    ]


@pytest.mark.parametrize("source", ["a.jsonl", "a.jsonl.gz", "a.ndjson"])
@pytest.mark.parametrize("target", ["b.jsonl", "b.csv", "b.tsv", "b.parquet"])
def test_fields_that_first_occur_late_are_kept(
    run: Run, tmp_path: Path, source: str, target: str
) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows()).encode()
    (tmp_path / source).write_bytes(gzip.compress(content) if source.endswith(".gz") else content)
    assert run("mask", source, "--token", "good", "--out", target)[0] == 0
    path = tmp_path / target
    if target.endswith("jsonl"):
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert found == [{**row, "text": row["text"].removeprefix("good ")} for row in rows()]
        return
    if target.endswith("parquet"):
        table = pl.read_parquet(path)
    else:
        with path.open(newline="") as file:
            table = pl.DataFrame(
                list(csv.DictReader(file, delimiter="\t" if target.endswith("tsv") else ","))
            )
    assert table.columns == ["text", "id", "late"]
    assert table["late"][-LATE:].to_list() == [row["late"] for row in rows()[-LATE:]]
    assert table["text"].to_list() == [row["text"].removeprefix("good ") for row in rows()]


@pytest.mark.parametrize("depth", [150, 300, 900])
def test_deep_columns_are_written_to_parquet_as_json_text(
    run: Run, tmp_path: Path, depth: int
) -> None:
    cells = ["[" * depth + "7" + "]" * depth, '{"a":' * depth + "7" + "}" * depth]
    lines = [f'{{"text": "a good film {i}", "more": {cells[i % 2]}}}' for i in range(40)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    start = time.process_time()
    assert run("mask", "a.jsonl", "--token", "good", "--out", "b.parquet")[0] == 0
    assert time.process_time() - start < 5
    assert (
        pl.read_parquet(tmp_path / "b.parquet")["more"][:2].str.replace_all(" ", "").to_list()
        == cells
    )


@pytest.mark.parametrize("value", ["1" + "0" * 400, '"\\ud800"'])
def test_what_parquet_cannot_hold_is_one_line(run: Run, tmp_path: Path, value: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "a good film", "more": {value}}}\n' * 3)
    status, _, err = run("mask", "a.jsonl", "--token", "good", "--out", "b.parquet")
    assert (
        (status, err.count("\n")) == (2, 1)
        and "cannot be written as Parquet" in err
        and "use .jsonl" in err
    )
    assert run("mask", "a.jsonl", "--token", "good", "--out", "b.jsonl")[0] == 0


@pytest.mark.parametrize("target", ["b.jsonl", "b.csv"])
@pytest.mark.parametrize("bad", ['{"text": "cut', '["no object"]'])
def test_a_bad_late_line_is_named_and_nothing_is_written(
    run: Run, tmp_path: Path, target: str, bad: str
) -> None:
    lines = [json.dumps(row) for row in rows()] + [bad]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    status, _, said = run("mask", "a.jsonl", "--token", "good", "--out", target)
    assert status == 2 and f"a.jsonl: line {len(lines)}: is " in said and said.count("\n") == 1
    assert not (tmp_path / target).exists()


@pytest.mark.parametrize("out", ["masked.csv", "."])
def test_the_source_is_never_replaced(run: Run, tmp_path: Path, out: str) -> None:
    (tmp_path / "masked.csv").write_text("text,label\na good film,x\na bad film,y\n")
    status, _, said = run("mask", "masked.csv", "--token", "good", "--out", out)
    assert status == 2 and "is the source itself" in said and said.count("\n") == 1
    assert "good" in (tmp_path / "masked.csv").read_text()


@pytest.mark.parametrize("command", ["mask", "balance"])
@pytest.mark.parametrize("out", ["copy.csv", "copies"])
def test_an_earlier_copy_is_replaced_only_on_request(
    run: Run, tmp_path: Path, command: str, out: str
) -> None:
    """A second copy of the same name replaced the first one without a word."""
    rows = [f"a {'good ' * (i % 3 > 0)}film,{'xy'[i % 2]}" for i in range(60)]
    (tmp_path / "a.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    arguments = (command, "a.csv", "--token", "good", "--out", out)
    assert run(*arguments)[0] == 0
    [copy] = [tmp_path / out] if out.endswith(".csv") else (tmp_path / out).glob("*ed.csv")
    copy.write_text("mine")
    status, _, said = run(*arguments)
    assert status == 2 and "exists already" in said and said.count("\n") == 1
    assert copy.read_text() == "mine"
    assert run(*arguments, "--overwrite")[0] == 0 and copy.read_text() != "mine"


def test_a_token_that_occurs_nowhere_is_named_and_not_counted(run: Run) -> None:
    Path("a.csv").write_text("text,label\na good film,x\nseen on my tablet,y\n")
    tokens = (
        "--token",
        "good",
        "--token",
        "tabelt",
        "--token",
        "on my tablte",
        "--token",
        "⟨length 20–50⟩",
    )
    status, _, said = run("mask", "a.csv", "--text", "text", *tokens)
    assert status == 0 and said.splitlines() == [
        "cannot mask ⟨length 20–50⟩: it is the length of a text, not a word in it",
        "“tabelt” and “on my tablte” occur in no text; did you mean `--token tablet --token 'on "
        "my tablet'`?",
        "1 of 2 documents changed, 1 token removed: tokensieve-mask/masked.csv",
    ]
    assert json.loads(Path("tokensieve-mask/summary.json").read_text())["tokens"] == ["good"]


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["tabelt"], "“tabelt” occurs in no text; did you mean `--token tablet`?"),
        (
            ["on tablet"],
            "“on tablet” occurs in no text; check the spelling, the file and the column (--text)",
        ),
        (
            ["zzz", ""],
            "“zzz” and “(empty)” occur in no text; check the spelling, the file and the column "
            "(--text)",
        ),
        (["⟨emoji⟩"], "cannot mask ⟨emoji⟩: it is formatting, not a word of the text"),
    ],
)
def test_nothing_is_written_if_no_token_occurs(run: Run, tokens: list[str], said: str) -> None:
    Path("a.csv").write_text('text,label\na good film,x\nseen on my tablet,y\n"",y\n')
    arguments = (
        "mask",
        "a.csv",
        "--text",
        "text",
        *(part for one in tokens for part in ("--token", one)),
    )
    assert (
        run(*arguments) == (2, "", f"tokensieve: {said}\n") and not Path("tokensieve-mask").exists()
    )


def test_words_like_a_token_are_looked_for_in_its_own_column_and_in_both_of_pairs(run: Run) -> None:
    Path("a.csv").write_text("title,body\nlate refund,a parcel\nnew order,the refund\n")
    fields = ("--text", "title", "--text", "body")
    status, _, said = run(
        "mask", "a.csv", *fields, "--token", "title:refnd", "--token", "body:refund"
    )
    assert (
        status == 0
        and "“title:refnd” occurs in no text; did you mean `--token title:refund`?" in said
    )
    status, _, said = run(
        "mask", "a.csv", "--pairs", "title,body", "--token", "parcel", "--out", "b.csv"
    )
    assert (status, said.partition(":")[0]) == (0, "1 of 2 documents changed, 1 token removed")


@pytest.mark.slow
def test_a_token_of_ten_megabytes_occurs_nowhere() -> None:
    texts = {"text": pl.Series(["a film about a river", "a film about a stone"])}
    masked = mask_fields(texts, ["x" * 10_500_000, "film"], WordTokenizer())
    assert masked.texts["text"].to_list() == ["a about a river", "a about a stone"]
    assert masked.n_changed == 2
