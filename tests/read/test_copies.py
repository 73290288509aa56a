"""Whatever `audit` reads, `mask` writes, and the copy is read as the source was."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import layouts
import pytest
from layouts import LABELLED, PREFERENCES, Layout, options_of

from calls import Run
from tokensieve.auditing.next_steps import FILE_OPTIONS
from tokensieve.name_lists import joined_names
from tokensieve.read.copies import write_rows
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus

TOKEN = "number"  # in every text of the layouts
ONE_LABEL = [
    layout for layout in LABELLED if not layout.several and "subject" not in layout.command
]
# a workbook is read by a process of its own, which takes a second
CASES = [
    pytest.param(layout, id=layout.name, marks=pytest.mark.slow if "xlsx" in layout.command else [])
    for layout in [*ONE_LABEL, *PREFERENCES]
]


def labels_of(corpus: Corpus | None) -> Counter[str]:
    return Counter() if corpus is None else Counter(corpus.classes[y] for y in corpus.labels)


def contains(corpus: Corpus, token: str) -> bool:
    return any(token in text for text in corpus.texts)


@pytest.mark.parametrize("layout", CASES)
def test_a_masked_copy_is_read_as_its_source(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    layouts.write(layout, tmp_path)
    monkeypatch.chdir(tmp_path)
    sources, options = options_of(layout.command)
    before = read_corpus(sources[0] if len(sources) == 1 else sources, **options)
    token = "visit" if before.pairs is None else TOKEN
    assert contains(before, token)

    of_file = {name: options.pop(name) for name in FILE_OPTIONS & set(options)}
    columns = ["--text", before.reading.columns[0]]
    if before.pairs is not None:
        columns = ["--pairs", joined_names(options["pairs"])]
    role = ["--role", options["role"]] if "role" in options else []
    words = [word for name, value in of_file.items() for word in written(name, value)]
    copy = "copy of it.jsonl"
    status = run("mask", *sources, *columns, *role, *words, "--token", token, "--out", copy)[0]
    assert status == 0

    if before.pairs is None and "text" not in options:
        options["text"] = before.reading.columns[0]
    if before.test is not None and "split" not in options:
        options["split"] = "split"
    after = read_corpus(copy, **options)
    assert labels_of(after) == labels_of(before)
    assert labels_of(after.test) == labels_of(before.test)
    assert not contains(after, token)


def written(name: str, value: Any) -> list[str]:
    return [f"--no-{name}"] if value is False else [f"--{name}", value]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_lists_and_objects_survive_every_format(tmp_path: Path, suffix: str) -> None:
    labels = ["dull", "fine"] * 4
    rows = [
        {
            "messages": [{"role": "user", "content": f'say "{i}"'}, {"role": "bot", "content": y}],
            "kind": {"name": y},
        }
        for i, y in enumerate(labels)
    ]
    path = tmp_path / f"copy{suffix}"
    path.write_bytes(write_rows(rows, path.name, "rows.jsonl"))
    corpus = read_corpus(path, label="kind.name", text="messages", role="user")
    assert corpus.texts.to_list() == [f'say "{i}"' for i in range(len(labels))]
    assert [corpus.classes[y] for y in corpus.labels] == labels


@pytest.mark.parametrize("name", ['a "b"', "-c", "d, e", "f's", "ü x", '"g"', "h.i", "=j"])
def test_a_column_of_any_name_is_named_in_a_list(tmp_path: Path, name: str, run: Run) -> None:
    rows = [{name: f"fine film {i}", "other, one": f"dull film {i}"} for i in range(8)]
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(write_rows(rows, path.name, "rows.jsonl"))
    written_names = joined_names([name, "other, one"])
    copy = tmp_path / "copy.jsonl"
    command = f"mask {shlex.quote(str(path))} --pairs={shlex.quote(written_names)} --token film"
    assert run(*shlex.split(command), "--out", str(copy))[0] == 0
    assert "film" not in copy.read_text(encoding="utf-8")
