"""No run of any command writes a secret of an address: not to a file, not to a page, not in an
error.

A marker is put into the user, the password or the query of every address that a command takes. The
server answers, so that most runs with a query end well and write all their files.
"""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import Run
from reviews import write_reviews
from tokensieve.escape import has_user, line, public_address

MARKER = "hunter2SECRET"
PASSWORDS = ("{}", "{}/x", "1/{}", "a@{}", "{}?b", "a#{}", "80", "%2F{}")
COMMANDS = {
    "audit": "audit {} --text text --label label --no-pictures --no-baseline --out out",
    "audit with a limit": "audit {} --no-pictures --no-baseline --fail-on 0.1@0% --card --out out",
    "audit of a test set": "audit {} --test {} --no-pictures --no-baseline --out out",
    "audit of two": "audit {} {} --no-pictures --no-baseline --out out",
    "audit, quiet": "audit {} --no-pictures --no-baseline --out out -q",
    "train": "train {} --tokens --out out",
    "predict": "predict model {} --out out",
    "predict to standard output": "predict model {}",
    "mask": "mask {} --token great --out out",
    "balance": "balance {} --out out",
    "verify": "verify {} --max-seconds 0.2 --d 32 --out out",
    "compare": "compare {} {}",
    "no such column": "audit {} --text nowhere --out out",
    "no such option": "audit {} --seed {}",
    "not a folder": "explain {} text",
    "too many arguments": "predict model {} {}",
    "as a folder": "audit reviews.csv --out {}",
    "as a cluster": "audit reviews.csv --cluster {} --out out",
}


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    write_reviews(folder / "reviews.csv", 120)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


def written(folder: Path) -> bytes:
    """The names and the content of all files below a folder."""
    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path.relative_to(folder)).encode())
        if path.is_file():
            parts.append(path.read_bytes())
    return b"\n".join(parts)


def assert_secret(run: Run, folder: Path, command: str, address: str, status: set[int]) -> None:
    words = [word.replace("{}", address) for word in command.split()]
    result, out, err = run(*words)
    assert MARKER not in out + err, (words, out, err)
    assert MARKER.encode() not in written(folder), words
    assert result in status, (words, err)


DEAR = ("audit ", "audit,", "verify")  # how names of commands begin that take seconds


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith(DEAR) else [])
        for name in COMMANDS
    ],
)
def test_no_query_is_written(server: str, run: Run, tmp_path: Path, name: str) -> None:
    write_reviews(tmp_path / "reviews.csv", 120)
    command = COMMANDS[name]
    if "model" in command:
        assert run("train", "reviews.csv", "--out", "model", "-q")[0] == 0
    address = f"http://{server}/reviews.csv?sig={MARKER}&x={MARKER}#{MARKER}"
    assert_secret(run, tmp_path, command, address, {0, 2, 3})


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("name", ["audit", "predict", "compare", "as a cluster", "not a folder"])
def test_no_user_or_password_is_written(
    server: str, run: Run, tmp_path: Path, name: str, password: str
) -> None:
    write_reviews(tmp_path / "reviews.csv", 60)
    secret = password.format(MARKER)
    scheme = "tcp" if "cluster" in name else "http"
    address = f"{scheme}://{MARKER}:{secret}@{server}/reviews.csv"
    assert_secret(run, tmp_path, COMMANDS[name], address, {2})


@pytest.mark.parametrize("path", ["none.csv", "none.parquet", "reviews.txt", "reviews.csv.gz", ""])
def test_no_error_shows_a_secret(server: str, run: Run, tmp_path: Path, path: str) -> None:
    for address in (
        f"http://{server}/{path}?sig={MARKER}",
        f"http://nowhere.invalid/{path}?sig={MARKER}",
        f"s3://{MARKER}:{MARKER}@bucket/{path}",
        f"ftp://u:{MARKER}@{server}/{path}",
    ):
        assert_secret(run, tmp_path, "train {} --out out", address, {2})


@pytest.mark.slow
def test_the_command_to_paste_has_a_placeholder_and_says_so(
    server: str, run: Run, tmp_path: Path
) -> None:
    address = f"http://{server}/reviews.csv?sig={MARKER}"
    status, out, err = run(*COMMANDS["audit with a limit"].replace("{}", address).split())
    assert status == 3, err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["settings"]["source"] == f"http://{server}/reviews.csv?…"
    command = next(line for line in out.splitlines() if "tokensieve mask" in line)
    assert "reviews.csv?…" in command and "in place of …" in out


SAFE = st.characters(exclude_characters="/?#@:", exclude_categories=["Cs"])


@given(
    st.text(SAFE, max_size=9),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    st.text(SAFE, max_size=9),
)
@settings(deadline=None, derandomize=True, max_examples=100)
def test_an_address_is_shown_without_its_secrets(user: str, password: str, query: str) -> None:
    address = f"https://{user}:{MARKER}{password}@host/a/file.csv?{query}{MARKER}"
    assert has_user(address)
    for placeholder in ("", "…"):
        assert MARKER not in public_address(address, placeholder)
    plain = f"https://host/a/file.csv?{query}{MARKER}"
    assert public_address(plain) == "https://host/a/file.csv"
    assert public_address(plain, "…") == "https://host/a/file.csv?…"


@pytest.mark.parametrize(
    "written",
    [
        "reviews.csv",
        "https://host/a.csv",
        "https://host:8080/a.csv",
        "hf://datasets/who/what@main/data/*.parquet",
        "s3://bucket/a@b/c.csv",
        "C:\\data\\a.csv",
        "",
    ],
)
def test_what_has_no_secret_stays(written: str) -> None:
    assert public_address(written, "…") == written and not has_user(written)
    assert line(f"cannot read {written}") == f"cannot read {written}".strip()
