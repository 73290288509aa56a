"""Hostile and odd options, files and model folders: a clean end, whatever they are.

Every case calls the command line in place, in a folder of its own. Options come from the
application itself, so that new ones take part. `make test` tries 50 cases, `make test-all` 1,000.
"""

from __future__ import annotations

import faulthandler
import gc
import gzip
import io
import json
import math
import os
import re
import resource
import signal
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from reviews import write_reviews
from tokensieve import __main__
from tokensieve.cli import app

SECONDS, MEMORY = 60, 2**30  # of one case; what memory may grow by in all of them
STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
COMMANDS = ["audit", "train", "predict", "explain", "mask", "verify", "compare"]
LEFT_OUT = {
    "--help",
    "--cluster",
    "--resume",
}  # the first ends before anything; the others have tests of their own
QUICK = {
    "audit": ["--no-baseline", "--no-pictures"],
    "verify": ["--max-seconds", "0.1", "--d", "32"],
}

ODD = [
    *(
        "",
        " ",
        "-",
        "--",
        "\x1b]0;title\x07",
        "\u202eturned",
        "\x00",
        "a=b",
        "=",
        "=,",
        "1,2",
        "e\u0301" * 40,
        "x" * 5000,
        "a\nb",
    ),
    *(
        "0",
        "-1",
        "1",
        "2",
        "99999999999",
        "1e400",
        "nan",
        "-inf",
        "0x10",
        "10" * 200,
        "0.9@1%",
        "2@-1%",
        "nan@nan",
        "pos=neg,x",
    ),
    *(
        "text",
        "label",
        "keep",
        "drop",
        "utf-16",
        "no-such-codec",
        "rot13",
        "base64",
        "../..",
        "/dev/zero",
        "/",
        "\u0301\u0300",
        "👍",
    ),
    *(
        "good.csv",
        "odd.csv",
        "odd.jsonl",
        "odd.parquet",
        "odd.csv.gz",
        "folder",
        "fifo",
        "zero",
        "model",
        "tokenizer.json",
    ),
]
SOURCES = [
    "odd.csv",
    "odd.jsonl",
    "odd.parquet",
    "odd.csv.gz",
    "odd.tsv",
    "folder",
    "fifo",
    "zero",
    ".",
]
LABELS = ["pos", "neg", "pos", "neg", "", "\x1b[2J", "\u202e1", "=1"]


def scalar(rng: Random) -> Any:
    numbers = [
        None,
        True,
        -1,
        0,
        1,
        2,
        10**400,
        0.5,
        math.nan,
        math.inf,
        -0.0,
        2**63,
        [],
        [1, "a"],
        {},
        {"a": [None]},
    ]
    return rng.choice([*numbers, rng.choice(ODD), "\ud800"])


def cell(rng: Random) -> str:
    return rng.choice(
        [
            rng.choice(ODD),
            "a good film",
            "a bad film",
            "".join(chr(rng.randrange(0x3000)) for _ in range(9)),
        ]
    )


def content(rng: Random) -> bytes:
    """Bytes of a source: CSV or JSONL with odd cells, JSON of another shape, or noise; sometimes
    cut, packed or in UTF-16."""
    table = [
        (cell(rng), rng.choice(LABELS[: rng.choice([2, 4, 8])]))
        for _ in range(rng.choice([0, 1, 4, 30]))
    ]
    quoted = "\n".join(
        ["text,label", *(",".join('"' + x.replace('"', '""') + '"' for x in row) for row in table)]
    )
    lines = "\n".join(
        json.dumps({"text": text, "label": rng.choice([label, label, scalar(rng)])})
        for text, label in table
    )
    whole = rng.choice(
        [
            *(
                quoted.encode(errors="surrogatepass"),
                quoted.encode(errors="surrogatepass"),
                lines.encode(),
                lines.encode(),
            ),
            *(
                json.dumps(scalar(rng)).encode(),
                rng.randbytes(60),
                b"",
                ("x," * 20_000).encode(),
                quoted.encode("utf-16", "replace"),
            ),
        ]
    )
    return rng.choice([whole, whole, whole, whole[: len(whole) // 2], gzip.compress(whole)])


def invocation(rng: Random) -> list[str]:
    """A command in which one thing is odd: its source, its model or its options (up to three),
    sometimes all of them."""
    subject = rng.choice(["source", "model", "options", "options", "all"])
    name = rng.choice(["predict", "explain"] if subject == "model" else COMMANDS)
    arguments: list[str] = []
    options: list[str] = []
    parameters = app.get_command(None, name).params
    for p in parameters:
        if p.param_type_name == "argument":
            sane = {
                "model": "model",
                "source": "good.csv",
                "text": "a good film",
                "before": "saved",
                "after": "saved",
            }.get(p.name, "x")
            if p.required or subject == "source" or rng.random() < 0.3:
                strange = rng.choice([*SOURCES, rng.choice(ODD)])
                arguments.append(
                    strange if subject in ("source", "all") and p.name != "model" else sane
                )
        elif p.required:
            options += [p.opts[0], "written.csv"]
    if subject in ("options", "all"):
        candidates = [
            p for p in parameters if p.param_type_name == "option" and not LEFT_OUT & set(p.opts)
        ]
        for p in rng.sample(candidates, min(len(candidates), rng.choice([1, 1, 2, 3]))):
            options += [p.opts[0]] if p.is_flag else [p.opts[0], rng.choice([*ODD, *SOURCES])]
    more = ["extra"] if rng.random() < 0.02 else ["--frobnicate"] if rng.random() < 0.02 else []
    whole = [name, *arguments, *QUICK.get(name, []), *options, *more]
    return [
        item.replace("\x00", "\\0") for item in whole
    ]  # the system allows no NUL in an argument


def mutated(value: Any, rng: Random) -> Any:
    """A JSON value with one node replaced, taken out or doubled."""
    if not value or not isinstance(value, dict | list) or rng.random() < 0.15:
        return scalar(rng)
    changed = dict(value) if isinstance(value, dict) else list(value)
    key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    how = rng.random()
    if how < 0.1:
        del changed[key]  # type: ignore[arg-type]
    elif how < 0.2 and isinstance(changed, list):
        changed.append(value[key])
    else:
        changed[key] = mutated(value[key], rng)  # type: ignore[index]
    return changed


def tamper(folder: Path, rng: Random) -> None:
    """Change one file of a model, often with a digest that fits the change."""
    kind = rng.choice(
        ["json", "json", "json", "numbers", "numbers", "bytes", "cut", "gone", "fifo", "link"]
    )
    path = folder / rng.choice(["model.json", "model.safetensors"])
    whole, described = path.read_bytes(), json.loads((folder / "model.json").read_text())
    if kind == "json":
        described = mutated(described, rng)
    elif kind == "numbers":
        arrays = load((folder / "model.safetensors").read_bytes())
        name = rng.choice(list(arrays))
        flat = arrays[name].copy().reshape(-1)
        flat[: rng.randrange(1, flat.size + 1)] = rng.choice([np.nan, np.inf, -np.inf, 1e38, 0.0])
        arrays[name] = rng.choice(
            [flat.reshape(arrays[name].shape), flat[:0], flat[:, None], flat.astype(np.float32)]
        )
        (folder / "model.safetensors").write_bytes(save(arrays))
    elif kind == "bytes":
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :])
    elif kind == "cut":
        path.write_bytes(whole[: rng.randrange(len(whole))])
    else:
        path.unlink()
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to("/dev/zero")
    if kind in ("json", "numbers"):
        if isinstance(described, dict) and rng.random() < 0.8:
            described = with_digest(described, (folder / "model.safetensors").read_bytes())
        (folder / "model.json").write_text(json.dumps(described))


def with_digest(description: dict[str, Any], blob: bytes) -> dict[str, Any]:
    from tokensieve.model.storage import _digest

    bare = {name: value for name, value in description.items() if name != "sha256"}
    with suppress(Exception):  # of what cannot be a description there is none
        bare["sha256"] = _digest(bare, blob)
    return bare


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a good model."""
    folder = tmp_path_factory.mktemp("model")
    write_reviews(folder / "good.csv", 40)
    status, _, err = call(
        ["train", "good.csv", "--out", "model", "-q"], folder, b"", 10 * SECONDS
    )  # compiles
    assert status == 0, err
    return {path.name: path.read_bytes() for path in (folder / "model").iterdir()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an audit that `compare` reads."""
    folder = tmp_path_factory.mktemp("saved")
    write_reviews(folder / "good.csv", 40)
    status, _, err = call(
        ["audit", "good.csv", "--out", "saved", "-q", *QUICK["audit"]], folder, b"", 10 * SECONDS
    )
    assert status == 0, err
    return {name: (folder / "saved" / name).read_bytes() for name in ("summary.json", "tokens.csv")}


def hanging(number: int, frame: object) -> None:
    raise AssertionError("no end")


def call(
    arguments: list[str], folder: Path, typed: bytes, seconds: float = SECONDS
) -> tuple[int, str, str]:
    """Status, standard output and standard error of a call in place, in that folder."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    before, handlers = Path.cwd(), {number: signal.getsignal(number) for number in __main__.STATUS}
    with ExitStack() as stack:
        replaced = {
            "argv": ["tokensieve", *arguments],
            "stdout": out,
            "stderr": err,
            "unraisablehook": sys.unraisablehook,
        }
        for name, value in (replaced | {"stdin": io.TextIOWrapper(io.BytesIO(typed))}).items():
            stack.enter_context(mock.patch.object(sys, name, value))
        stack.callback(os.chdir, before)
        os.chdir(folder)
        faulthandler.dump_traceback_later(
            4 * seconds, exit=True, file=sys.__stderr__
        )  # where no signal is heard
        stack.callback(faulthandler.cancel_dump_traceback_later)
        stack.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, hanging))
        stack.callback(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        stack.enter_context(mock.patch.object(gc, "freeze"))  # for a process that ends
        try:
            __main__.main()
            raise AssertionError("main ended without a status")
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
        for number, handler in handlers.items():
            signal.signal(number, handler)
        return status, *(stream.buffer.getvalue().decode() for stream in (out, err))


@pytest.fixture(scope="module")
def peak() -> int:
    """Bytes of the process, all cases together, may rise by this much."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + MEMORY


def one_case(seed: int, model: dict[str, bytes], saved: dict[str, bytes], peak: int) -> None:
    rng = Random(seed)
    arguments = invocation(rng)
    with tempfile.TemporaryDirectory() as root:
        folder, temporary = Path(root, "here"), Path(root, "tmp")
        (folder / "folder" / "pos").mkdir(parents=True)
        temporary.mkdir()
        write_reviews(folder / "good.csv", 20)
        for name in (
            "odd.csv",
            "odd.tsv",
            "odd.jsonl",
            "odd.parquet",
            "odd.csv.gz",
            "tokenizer.json",
            "folder/pos/1.txt",
        ):
            (folder / name).write_bytes(content(rng))
        os.mkfifo(folder / "fifo")
        (folder / "zero").symlink_to("/dev/zero")
        for home, files in (("model", model), ("saved", saved)):
            (folder / home).mkdir()
            for name, whole in files.items():
                (folder / home / name).write_bytes(whole)
        if arguments[0] in ("predict", "explain") and rng.random() < 0.9:
            tamper(folder / "model", rng)
        before = everything(Path(root))
        with (
            mock.patch.object(tempfile, "tempdir", str(temporary)),
            mock.patch.dict(os.environ, TMPDIR=str(temporary)),
        ):
            status, out, err = call(arguments, folder, b"a good film \xff\x1b[2J")
            if any(
                temporary.iterdir()
            ):  # a rendered page refers to its audit in a circle; the end of a process frees both
                gc.collect()
        assert status in (0, 2, 3), err
        assert err.count("\n") <= 3 and len(err) < 2000, err
        assert not STEERS.search(out) and not STEERS.search(err)
        assert status != 2 or (everything(Path(root)) == before and out == "")
        assert not list(temporary.iterdir()) and not list(folder.rglob(".tokensieve-*"))
    assert 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < peak


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(p): p.read_bytes() if p.is_file() and not p.is_symlink() else b""
        for p in sorted(folder.rglob("*"))
    }


def fuzz(cases: int) -> Any:
    return settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.slow
@fuzz(25)
@given(seed=st.integers(0, 2**40))
def test_some_cases_end_cleanly(
    seed: int, model: dict[str, bytes], saved: dict[str, bytes], peak: int
) -> None:
    one_case(seed, model, saved, peak)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("part", range(8))
@fuzz(60)
@given(seed=st.integers(0, 2**37))
def test_cases_of_eight_parts_end_cleanly(
    seed: int, part: int, model: dict[str, bytes], saved: dict[str, bytes], peak: int
) -> None:
    one_case(8 * seed + part, model, saved, peak)
