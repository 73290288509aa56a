"""Polars reads a CSV file only where it reads it as strictly as row by row parsing does."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.read import delimited, formats
from tokensieve.read.settings import SourceSettings

CELLS = st.sampled_from(
    ["a", "b,c", '"', '""', 'x"y', "", " ", "é", "\n", "\r", "\r\n", "l1\nl2", ";", 'a""b']
)
PIECES = st.sampled_from(
    ["a", '"b"', '"c', 'd"', "", '"x""y"', ' "z"', '"q" ', ",", "\n", "\r\n", "\n\n"]
)
sound = st.builds(
    lambda rows, end: written([["h1", "h2"], *rows], end),
    st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=5),
    st.sampled_from(["\n", "\r\n"]),
)


def written(rows: list[list[str]], end: str) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator=end).writerows(rows)
    return out.getvalue()


def outcome(path: Path) -> list[tuple[str, ...]] | str:
    try:
        table = formats.file_table(path, SourceSettings(separator=","))
        return [
            row for batch in table.read(table.columns) for row in zip(*batch.values(), strict=True)
        ]
    except InputError as problem:
        return str(problem)


@settings(deadline=None, derandomize=True, max_examples=4 * settings.default.max_examples)
@given(st.one_of(sound, st.lists(PIECES, max_size=14).map("".join)))
@example('a,"x""y"\n "z","b"\na,"c\n"b"')
@example('a,"b"\n"c,"b"\nd",d"')
@example("a,b\nc\n,\n")
@example('a\n\n""\nb')
def test_both_ways_read_the_same_or_fail_alike(content: str) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "a.csv")
        path.write_bytes(content.encode())
        fast = outcome(path)
        patch.setattr(delimited, "_polars_frame", lambda *_: None)
        assert fast == outcome(path)


def test_ordinary_files_are_read_by_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        written(
            [["text", "note"], *[[f'it is, "so"\n{i}', "" if i % 3 else "n"] for i in range(50)]],
            "\r\n",
        )
    )
    only_header = iter([delimited._Record(1, ["text", "note"])])
    monkeypatch.setattr(delimited._DelimitedFile, "records", lambda _: only_header)
    table = formats.file_table(path, SourceSettings())
    assert sum(len(batch["text"]) for batch in table.read(["text"])) == 50
