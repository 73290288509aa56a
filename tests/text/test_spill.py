"""Texts, tokens and counts in files: the same bits as in memory, whatever the source and however
small the parts."""

from __future__ import annotations

import csv
import dataclasses
import json
import operator
import os
import pickle
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import Run, fast_first
from tokensieve import arrays
from tokensieve.arrays import matrix_blocks, select
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, importance_of, token_importance
from tokensieve.evidence.sums import TokenSums
from tokensieve.files import Folder
from tokensieve.model.adam import Schedule, train
from tokensieve.read import stored_texts as streaming
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.split import split_corpus
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text import frequencies
from tokensieve.text.counts import Counts
from tokensieve.text.frequencies import Frequencies
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import count_corpus, count_texts, tokenize

QUIET = settings(deadline=None, derandomize=True, max_examples=10)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 17 documents, 20,000 bytes or 1,000 entries; frequencies go to files from 50 keys
    on."""
    monkeypatch.setattr(streaming, "MAX_BATCH_DOCUMENTS", 17)
    monkeypatch.setattr(streaming, "MAX_BATCH_BYTES", 20_000)
    monkeypatch.setattr(arrays, "ENTRIES_PER_BLOCK", 1_000)
    monkeypatch.setattr(frequencies, "MAX_ROWS_IN_MEMORY", 50)


def table(n: int = 150) -> list[tuple[str, str]]:
    """Reviews of two kinds with repeats, an empty one, odd characters and a label to drop."""
    reviews = demo_reviews(n)
    rows = [
        (t, "neg pos".split()[y])
        for t, y in zip(reviews.texts.to_list(), reviews.labels.tolist(), strict=True)
    ]
    return [
        *rows,
        *rows[:9],
        (rows[0][0], "neg" if rows[0][1] == "pos" else "pos"),
        (" ", "neg"),
        ("naïve 这部 \U0001f600 film", "pos"),
        ("gone", "zzz"),
    ]


def written(folder: Path, kind: str) -> Path:
    path, rows = folder / f"a.{kind}", table()
    if kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    elif kind == "jsonl":
        path.write_text(
            "".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in rows), encoding="utf-8"
        )
    else:
        pl.DataFrame(rows, schema=["text", "label"], orient="row").write_parquet(path)
    return path


def mapped(part: Any) -> bool:
    """Whether an array, or what it is a view of, lies in a file."""
    return part is not None and (isinstance(part, np.memmap) or mapped(getattr(part, "base", None)))


def same(a: Corpus, b: Corpus) -> None:
    assert a.texts.to_list() == b.texts.to_list() and a.keys.equals(b.keys)
    assert a.labels.tolist() == b.labels.tolist() and a.rows.tolist() == b.rows.tolist()
    assert a.classes == b.classes and a.reading == b.reading
    assert (a.test is None) == (b.test is None)
    if a.test is not None and b.test is not None:
        same(a.test, b.test)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_a_streamed_corpus_is_the_one_in_memory(
    tmp_path: Path, kind: str, duplicates: Any, tiny: None
) -> None:
    path = written(tmp_path, kind)
    options: dict[str, Any] = {"drop": ["zzz"], "duplicates": duplicates}
    memory, stream = read_corpus(path, **options), read_corpus(path, stream=True, **options)
    assert isinstance(memory.texts, pl.Series) and isinstance(stream.texts, StoredTexts)
    same(memory, stream)
    found = stream.reading.counts
    assert found["duplicates" if duplicates == "keep" else "duplicates_dropped"] >= 9
    assert found["conflicts"] == 1 and found["empty"] == 1
    same(split_corpus(memory, seed=3), split_corpus(stream, seed=3))
    with_test = read_corpus(path, stream=True, test=path, **options)
    same(read_corpus(path, test=path, **options), with_test)
    assert with_test.reading.counts["test_overlap"] == len(with_test.texts)
    np.testing.assert_array_equal(memory.characters, stream.characters)


@pytest.mark.slow
@pytest.mark.parametrize(("ngrams", "thorough"), fast_first([(2, False), (1, True), (3, True)]))
def test_an_audit_of_a_stream_has_the_bits_of_that_in_memory(
    tmp_path: Path, ngrams: int, thorough: bool, tiny: None
) -> None:
    path, chosen = (
        written(tmp_path, "csv"),
        Settings(ngrams=ngrams, min_documents=2, baseline=False, thorough=thorough),
    )
    memory, stream = (
        audit(read_corpus(path, drop=["zzz"], stream=s), chosen) for s in (False, True)
    )
    assert memory.tokens.equals(stream.tokens)
    assert memory.model.scores_.tobytes() == stream.model.scores_.tobytes()
    assert memory.model.values_.tobytes() == stream.model.values_.tobytes()
    assert memory.model.tokens_.tolist() == stream.model.tokens_.tolist()
    for name, value in memory.to_dict().items():
        assert name == "seconds" or value == stream.to_dict()[name], name
    assert [e.pieces for e in memory.examples] == [e.pieces for e in stream.examples]


@pytest.mark.slow
def test_a_stream_has_no_baseline_and_says_so(tmp_path: Path) -> None:
    found = audit(
        read_corpus(written(tmp_path, "jsonl"), drop=["zzz"], stream=True), Settings(thorough=False)
    )
    assert found.baseline_accuracy is None
    assert any("TF-IDF + logistic regression was not trained" in note for note in found.notes)


@pytest.mark.slow
def test_counts_in_files_are_mapped_not_copied_and_their_folder_vanishes(
    tmp_path: Path, tiny: None
) -> None:
    corpus = read_corpus(written(tmp_path, "csv"), drop=["zzz"], stream=True)
    assert isinstance(corpus.texts, StoredTexts)
    home = corpus.texts.folder.path
    texts = pl.Series(corpus.texts.to_list())
    found = count_corpus(corpus, ngrams=2, min_documents=2)
    expected = count_texts(texts, ngrams=2, min_documents=2)
    assert (
        mapped(found.matrix.data)
        and mapped(found.matrix.indices)
        and not mapped(expected.matrix.data)
    )
    assert (
        found.matrix != expected.matrix
    ).nnz == 0 and found.unknown.tolist() == expected.unknown.tolist()
    assert found.stream.n_tokens == expected.stream.n_tokens and home.is_dir()
    assert (
        found.counts.labels is corpus.labels
        and found.counts.tokens.tolist() == expected.vocabulary.tokens.tolist()
    )
    assert sum(1 for _ in tokenize(corpus.texts, WordTokenizer())) > 5
    matrix = found.matrix
    del corpus, found
    assert not home.exists()
    assert matrix.sum() == expected.matrix.sum()


def test_an_empty_stream_and_an_empty_matrix() -> None:
    texts = StoredTexts()
    assert len(texts) == 0 and texts.to_list() == []
    found = texts.folder.matrix([sp.csr_array((2, 5))], 5, 10)
    assert found.shape == (2, 5) and found.nnz == 0


def test_more_entries_than_four_byte_positions_hold_get_eight() -> None:
    for most, kind in ((2**31 - 1, np.int32), (2**31, np.int64)):
        found = streaming.Folder().matrix([sp.csr_array(np.eye(3))], 3, most)
        assert found.indices.dtype == found.indptr.dtype == kind
        np.testing.assert_array_equal(found.toarray(), np.eye(3))


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 6)
@given(
    st.lists(st.dictionaries(st.integers(0, 60), st.integers(1, 5), max_size=40), max_size=4),
    st.integers(1, 9),
)
def test_frequencies_in_files_are_those_of_one_dictionary(
    parts: list[dict[int, int]], minimum: int
) -> None:
    expected: dict[int, int] = {}
    for part in parts:
        for key, n in part.items():
            expected[key] = expected.get(key, 0) + n
    before = frequencies.MAX_ROWS_IN_MEMORY
    for rows in (before, 30, 1):
        frequencies.MAX_ROWS_IN_MEMORY = rows
        try:
            for kind in (pl.Int64, pl.String):
                sums = [
                    Frequencies(
                        pl.Series(list(part), dtype=pl.Int64).cast(kind),
                        np.array(list(part.values()), np.int64),
                    )
                    for part in [{}, *parts]
                ]
                wanted: list[Any] = [k for k, n in expected.items() if n >= minimum]
                wanted = sorted(wanted) if kind == pl.Int64 else sorted(map(str, wanted))
                assert reduce(operator.add, sums).frequent(minimum).to_list() == wanted
                # other groups, sent from one process to another on the way, and the same sums added
                # twice
                half = len(sums) // 2
                for _ in range(2):
                    groups = [
                        reduce(operator.add, group)
                        for group in (sums[:half] or sums[:1], sums[half:])
                    ]
                    sent = [pickle.loads(pickle.dumps(group)) for group in groups]
                    assert (sent[0] + sent[1]).frequent(minimum).to_list() == wanted
        finally:
            frequencies.MAX_ROWS_IN_MEMORY = before


def random_counts(seed: int, n: int = 60, types: int = 9, classes: int = 3) -> Counts:
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(rng.gamma(0.5, 2.0, size=(n, 1)) * rng.gamma(1.0, 1.0, size=types))
    return Counts.from_matrix(matrix, np.arange(n) % classes, [str(k) for k in range(classes)])


@QUIET
@given(st.integers(0, 10**6), st.permutations(range(60)), st.lists(st.integers(0, 60), max_size=5))
def test_importance_of_parts_in_any_order_has_the_bits_of_the_whole(
    seed: int, order: list[int], cuts: list[int]
) -> None:
    whole, rows = random_counts(seed), np.array(order)
    total = TokenSums.zero(whole.n_types, whole.n_classes)
    for part in np.split(rows, sorted(cuts)):
        some = whole.rows(part)
        total = total + TokenSums.of(some.matrix, some.labels, whole.n_classes)
    found, expected = importance_of(total, whole.tokens, whole.classes), token_importance(whole)
    for field in dataclasses.fields(Importance):
        np.testing.assert_array_equal(
            getattr(found, field.name), getattr(expected, field.name), err_msg=field.name
        )


def test_training_on_some_rows_is_training_on_their_copy() -> None:
    whole, rows = random_counts(1, classes=2), np.array([5, 1, 40, 7, 33, 2, 58])
    u, w, schedule = np.zeros(9), np.zeros((9, 1)), Schedule(30, 3, seed=2)
    inside = [u.copy() for _, u, _ in train(whole, u, w, schedule, 30, rows)]
    copied = [u.copy() for _, u, _ in train(whole.rows(rows), u, w, schedule, 30)]
    assert inside[-1].tobytes() == copied[-1].tobytes()


def test_blocks_cover_the_documents_once(tiny: None) -> None:
    whole = random_counts(2, n=500)
    parts = list(matrix_blocks(whole.matrix))
    assert len(parts) > 1 and all(m.nnz <= 1_000 for _, m in parts)
    assert (sp.vstack([m for _, m in parts]) != whole.matrix).nnz == 0
    assert sum(len(whole.labels[rows]) for rows, _ in parts) == 500
    dense = whole.matrix.toarray() > 0
    np.testing.assert_array_equal(
        whole.present, np.stack([dense[whole.labels == k].sum(axis=0) for k in range(3)], 1)
    )


def test_many_rows_of_counts_in_files_are_in_files_and_few_are_not(tiny: None) -> None:
    whole = random_counts(2, n=500)
    stored = dataclasses.replace(
        whole, matrix=Folder().matrix([whole.matrix], whole.n_types, whole.matrix.nnz)
    )
    for which in (np.arange(len(whole.labels)) % 3 > 0, np.arange(400)[::-1], slice(20, 480)):
        some, expected = stored.rows(which), whole.rows(which)
        assert mapped(some.matrix.data) and (some.matrix != expected.matrix).nnz == 0
    assert not mapped(stored.rows(np.arange(9)).matrix.data)
    types = np.arange(0, whole.n_types, 2)
    columns = select(stored.matrix, slice(None), types)
    assert mapped(columns.data) and (columns != whole.matrix[:, types]).nnz == 0


@pytest.mark.slow
def test_the_command_line_writes_the_same_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "csv")
    common = ("train", str(path), "--drop", "zzz", "--ngrams", "2", "--tokens")
    assert (
        run(*common, "--out", "memory", "-q")[0]
        == run(*common, "--out", "stream", "--stream", "-q")[0]
        == 0
    )
    for name in ("tokens.csv", "model.safetensors", "model.json", "table.json"):
        assert (tmp_path / "memory" / name).read_bytes() == (
            tmp_path / "stream" / name
        ).read_bytes()
    monkeypatch.setattr("tokensieve.cli.command.LARGE", 1000)
    assert "--stream keeps it out of memory" in run(*common, "--out", "memory")[2]
    assert "--stream keeps" not in run(*common, "--out", "stream", "--stream")[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit", [2_000, *(pytest.param(size, marks=pytest.mark.slow) for size in (60_000, 120_000))]
)
def test_no_room_for_temporary_files_is_one_clear_line(tmp_path: Path, limit: int) -> None:
    """Limits that are hit by the texts, their tokens, and what comes later."""
    (tmp_path / "tmp").mkdir()
    path = written(tmp_path, "csv")
    program = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "from tokensieve.errors import InputError; from tokensieve.read.reader import read_corpus; "
        "from tokensieve.text.vocabulary import count_corpus\n"
        "try: count_corpus(read_corpus(sys.argv[1], drop=['zzz'], stream=True), ngrams=3)\n"
        "except InputError as problem: print(problem); sys.exit(2)"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-B",
            "-c",
            program,
            str(path),
        ],  # byte code that it wrote would be cut off too
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stderr == "" and done.stdout.count("\n") == 1, done.stderr
    assert "cannot write temporary files in" in done.stdout and "set TMPDIR" in done.stdout
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_the_room_that_counts_need_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = streaming.Folder()
    monkeypatch.setattr(folder, "save", lambda blocks: Path("/dev/full"))
    with pytest.raises(InputError, match=r"need up to 12\.000 GB \(no space left"):
        folder.matrix([sp.csr_array(np.ones((1, 100_000)))], 100_000, 10**9)


@pytest.mark.slow
@pytest.mark.parametrize("end", fast_first(["raise KeyboardInterrupt", "", "sys.exit(3)"]))
def test_a_process_leaves_no_folder_behind(tmp_path: Path, end: str) -> None:
    program = (
        "import sys; from tokensieve.files import Folder; a = Folder(); a.new().write_text('x'); "
        f"{end}"
    )
    command = [sys.executable, "-c", program]
    subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True)
    assert list(tmp_path.iterdir()) == []
