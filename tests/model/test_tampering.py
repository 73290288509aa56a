"""Model folders that somebody changed and signed again: each is refused in one line before anything
of it is used."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.model.classifier import AttentionClassifier, load_model
from tokensieve.model.storage import DESCRIPTION, NUMBERS, _digest, model_files, read_model

Run = Callable[..., tuple[int, str, str]]
HUGE = 10**400


@cache
def files() -> dict[str, bytes]:
    texts = ["good film so good", "bad film so bad", "a good plot good", "a bad plot bad"] * 3
    return model_files(AttentionClassifier(2, min_documents=1).fit(texts, [1, 0, 1, 0] * 3))


def write(folder: Path, description: Any = None, numbers: dict[str, Any] | None = None) -> Path:
    """A model folder with other content, its checksum right."""
    folder.mkdir(exist_ok=True, parents=True)
    blob = files()[NUMBERS] if numbers is None else safetensors.numpy.save(numbers)
    (folder / NUMBERS).write_bytes(blob)
    described = json.loads(files()[DESCRIPTION]) if description is None else description
    rest = {name: value for name, value in described.items() if name != "sha256"}
    try:
        rest["sha256"] = _digest(rest, blob)
    except ValueError:  # NaN: no checksum can be formed
        rest["sha256"] = "0" * 64
    (folder / DESCRIPTION).write_text(json.dumps(rest), encoding="utf-8")
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_model(folder)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 1000 and message.isprintable()
    with pytest.raises(InputError):
        load_model(folder)
    return message


WRONG: dict[str, list[Any]] = {
    "classes": [
        None, 3, "ab", {}, [], ["one"], ["same", "same"], [1, 1], [1, "1"], ["a", None], [["a"], ["b"]], [0, HUGE], [0, 0.5],
        [0, 1, 2], [1.0, float("inf")], [True, 1], ["\ud800", "b"],
    ],
    "steps": [None, -1, 1.5, "1", True, HUGE, [1]],
    "sink": ["0", True, HUGE, [0.5], float("inf")],
    "words": [
        None, 3, "good", [], {}, [1, 2], [["good"]], [None], ["good", "good"], ["", "good"], ["good"], ["\ud800"] * 2,
    ],
    "formatting": [None, "⟨tab⟩", ["⟨tab⟩"], ["tab"], [3], {}],
    "settings.formatting": [None, 0, "yes"],
    "settings": [None, [], "fast", {}, {"ngrams": 1}],
    "settings.ngrams": [None, 0, -1, 1.5, "2", True, HUGE, [1], 10**6],
    "settings.min_documents": [None, 0, -3, 2.0, HUGE],
    "settings.batch_size": [None, 0, "64", HUGE],
    "settings.max_epochs": [None, 0, 0.5, HUGE],
    "settings.score_rate": [None, -1, "0.1", HUGE, True],
    "settings.value_rate": [None, -1, [0.1], HUGE],
    "settings.validation_share": [None, -0.1, 1, 2, "0.1"],
    "settings.random_state": [-1, 0.5, "0", 2**32, HUGE, [0]],
    "settings.other": [1],
    "tokenizer": [
        None, [], "words", {}, {"kind": "words"}, {"kind": "other"}, {"kind": "pieces"}, {"kind": "pieces", "json": "{}"},
        {"kind": "fields", "fields": ["a"], "base": {"kind": "fields", "fields": ["a"], "base": {"kind": "pieces"}}},
        {"kind": "fields", "fields": [], "base": {"kind": "words"}}, {"kind": "fields", "fields": ["a"], "base": 3},
        {"kind": "fields", "fields": ["a"], "base": {"kind": "pieces", "json": "/etc/passwd"}},
        {"kind": "pieces", "json": "/etc/passwd"}, {"kind": "pieces", "json": None}, {"kind": "pieces", "json": 7},
    ],
    "tokenizer.pattern": [None, 3, "(", "[z-a]", "a{1000}{1000}{1000}", "(?P<a>", "x" * 10**5, ["\\w"], "\\p{Nothing}"],
    "tokenizer.lowercase": [None, 1, "yes"],
    "tokenizer.line_breaks": [None, 0],
    "tokenizer.html": [None, 0, "drop"],
    "tokenizer.stop_words": [None, "the", [1], [None], {}],
    "tokenizer.other": [1],
    "kind": [None, "sklearn.Pipeline", 3],
    "format": [None, 0, 1, 3, "2", True, 2.0, HUGE],
    "other": [1, None],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_no_part_of_the_description_is_believed(name: str, tmp_path: Path) -> None:
    *path, last = name.split(".")
    for value in WRONG[name]:
        description = json.loads(files()[DESCRIPTION])
        part = description[path[0]] if path else description
        part[last] = value
        refused(write(tmp_path, description))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3)
    ),
    max_leaves=5,
)


@settings(deadline=None, derandomize=True)
@given(name=st.sampled_from(sorted(json.loads(files()[DESCRIPTION]))), value=ANYTHING)
def test_anything_in_the_place_of_a_part_is_read_or_refused(name: str, value: Any) -> None:
    description = json.loads(files()[DESCRIPTION]) | {name: value}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), description)
        with suppress(InputError):
            model = read_model(folder)  # another number of steps, or two other classes
            assert (
                name in ("steps", "sink", "classes", "formatting", "sha256")
                and np.isfinite(model.logits(model.count(["good"])[0])).all()
            )


@pytest.mark.parametrize(
    "name",
    ["classes", "steps", "sink", "words", "settings", "tokenizer", "kind", "format", "sha256"],
)
def test_no_part_may_be_missing(name: str, tmp_path: Path) -> None:
    description = json.loads(files()[DESCRIPTION])
    del description[name]
    folder = write(tmp_path, description)
    if name == "sha256":
        (folder / DESCRIPTION).write_text(json.dumps(description))
    refused(folder)


def spoiled(array: np.ndarray, how: str) -> np.ndarray:
    wrong = np.array(array, order="C")
    if how in ("nan", "inf", "huge"):
        wrong = wrong.astype(np.float64)
        wrong.flat[-1] = {"nan": np.nan, "inf": -np.inf, "huge": 1e200}[how]
        return wrong
    return {
        "empty": wrong[:0],
        "shorter": wrong[:-1],
        "longer": np.concatenate([wrong, wrong[-1:]]),
        "another axis": wrong[None],
        "float32": wrong.astype(np.float32),
        "whole": wrong.astype(np.int32),
        "scalar": np.zeros((), wrong.dtype),
    }[how]


@pytest.mark.parametrize(
    "how",
    [
        "nan",
        "inf",
        "huge",
        "empty",
        "shorter",
        "longer",
        "another axis",
        "float32",
        "whole",
        "scalar",
    ],
)
@pytest.mark.parametrize("name", ["scores", "values", "prior", "grams2"])
def test_no_array_is_believed(name: str, how: str, tmp_path: Path) -> None:
    numbers = safetensors.numpy.load(files()[NUMBERS])
    refused(write(tmp_path, numbers=numbers | {name: spoiled(numbers[name], how)}))


@pytest.mark.parametrize("change", ["negative", "too large", "not sorted", "twice"])
def test_n_grams_lead_to_words(change: str, tmp_path: Path) -> None:
    numbers = safetensors.numpy.load(files()[NUMBERS])
    keys = numbers["grams2"].copy()
    if change == "not sorted":
        keys = keys[::-1].copy()
    else:
        at, value = {"negative": (0, -1), "too large": (-1, 2**62), "twice": (1, keys[0])}[change]
        keys[at] = value
    refused(write(tmp_path, numbers=numbers | {"grams2": keys}))


def test_arrays_too_many_and_too_few(tmp_path: Path) -> None:
    numbers = safetensors.numpy.load(files()[NUMBERS])
    for name in numbers:
        refused(
            write(
                tmp_path,
                numbers={other: array for other, array in numbers.items() if other != name},
            )
        )
    for name in ("grams4", "grams02", "more"):
        refused(write(tmp_path, numbers=numbers | {name: numbers["grams2"]}))


@pytest.mark.parametrize(
    "content",
    [
        files()[DESCRIPTION].decode().encode("utf-16"), files()[DESCRIPTION].decode().encode("utf-32"),
        b"\xef\xbb\xbf" + files()[DESCRIPTION], b'{"steps": NaN}', b'{"steps": Infinity}', b"[" * 50_000, b"9" * 10_000,
        b'{"kind": 1, "kind": 2}', b"\x00", b"null", b'"text"',
    ],
    ids=range(11),
)  # fmt: skip
def test_other_encodings_and_other_json(content: bytes, tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / DESCRIPTION).write_bytes(content)
    refused(folder)


@pytest.mark.parametrize("name", [NUMBERS, DESCRIPTION])
@pytest.mark.parametrize("kind", ["fifo", "device", "link", "folder", "socket", "dangling"])
def test_nothing_but_regular_files_of_the_folder_is_read(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outside = write(tmp_path / "model"), tmp_path / name
    outside.write_bytes((folder / name).read_bytes())
    path = folder / name
    path.unlink()
    monkeypatch.chdir(folder)  # a socket's path must be short
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
    else:
        path.symlink_to(
            {"device": Path("/dev/zero"), "link": outside, "dangling": tmp_path / "nothing"}[kind]
        )
    refused(folder)


@pytest.mark.parametrize(
    "path", ["/dev/zero", "nowhere", "x" * 5000, "a\0b", "", "/dev/null/model"]
)
def test_paths_that_are_no_folder(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value) and "\0" not in str(caught.value)


def test_the_command_line_says_it_in_one_line(run: Run, tmp_path: Path) -> None:
    numbers = safetensors.numpy.load(files()[NUMBERS])
    write(tmp_path / "model", numbers=numbers | {"scores": spoiled(numbers["scores"], "nan")})
    for command in (["explain", "model", "good"], ["predict", "model", "model"]):
        status, out, said = run(*command)
        assert (status, out) == (2, "") and said.count("\n") == 1 and "damaged" in said


def test_a_model_that_nobody_changed_is_read(tmp_path: Path) -> None:
    assert read_model(write(tmp_path)).classes.tolist() == [0, 1]
