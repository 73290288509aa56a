"""Rows of files are found at the lines where they begin."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tokensieve.read.row_places import row_places
from tokensieve.read.settings import SourceSettings

TEXTS = ["plain", 'with "quotes"', "two\nlines", "three\r\nlines\n\nand a blank one", "last"]


def write_table(path: Path, separator: str = ",", above: str = "") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(above)
        rows = csv.writer(file, delimiter=separator, lineterminator="\n")
        rows.writerow(["text", "label"])
        rows.writerows((f"{number} {text}", "a") for number, text in enumerate(TEXTS, 1))


def lines_of(path: Path, settings: SourceSettings | None = None) -> dict[int, int | None]:
    rows = range(1, len(TEXTS) + 1)
    return {
        row: place.line
        for row, place in row_places(str(path), settings or SourceSettings(), rows).items()
    }


@pytest.mark.parametrize(
    ("ending", "separator"), [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".csv", "|")]
)
def test_rows_of_tables_with_line_breaks_in_fields(
    tmp_path: Path, ending: str, separator: str
) -> None:
    path = tmp_path / f"data{ending}"
    write_table(path, separator)
    lines = path.read_bytes().decode().split("\n")
    places = lines_of(path)
    assert list(places) == [1, 2, 3, 4, 5]
    for row, line in places.items():
        assert lines[line - 1].lstrip('"').startswith(f"{row} ")


def test_blank_lines_titles_and_tables_without_header(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("Export of today\n\ntext,label\na b,x\n\n\nc d,y\n")
    assert lines_of(path) == {1: 4, 2: 7}
    path.write_text("a b,x\nc d,y\n")
    assert lines_of(path, SourceSettings(header=False)) == {1: 1, 2: 2}


def test_json_lines_with_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    records = [json.dumps({"text": text, "label": "a"}) for text in TEXTS]
    path.write_text("\n" + "\n\n".join(records))
    assert lines_of(path) == {1: 2, 2: 4, 3: 6, 4: 8, 5: 10}


def test_rows_are_counted_on_over_several_files(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write_table(tmp_path / name)
    found = row_places(str(tmp_path / "*.csv"), SourceSettings(), [5, 6])
    assert [(Path(place.file).name, place.line) for place in found.values()] == [
        ("a.csv", 10),
        ("b.csv", 2),
    ]


@pytest.mark.parametrize("name", ["data.json", "list.jsonl", "table.parquet"])
def test_rows_that_are_no_lines_have_the_file_only(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps([{"text": "a"}, {"text": "b"}]))
    assert row_places(str(path), SourceSettings(), [2]) == {2: (str(path), None)}


@pytest.mark.parametrize("source", ["-", "https://example.org/a.csv", ".", "nowhere.csv"])
def test_other_sources_have_no_places(source: str) -> None:
    assert row_places(source, SourceSettings(), [1]) == {}
