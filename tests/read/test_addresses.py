"""Addresses: http and https from a server of static files, s3 from a server of moto's; and no
message shows a credential."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from calls import Run
from tokensieve.errors import InputError
from tokensieve.read.reader import read_corpus

ROWS = pl.DataFrame(
    {
        "text": [f"A fine film number {i}, really." for i in range(30)],
        "label": ["pos", "neg", "neg"] * 10,
    }
)
FILES = ("reviews.csv", "reviews.tsv", "reviews.jsonl", "reviews.parquet", "reviews.arrow")


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Static files; parts of them too, as readers of Parquet ask for."""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        part, path = self.headers.get("Range"), Path(self.translate_path(self.path))
        if part is None or not path.is_file():
            super().do_GET()
            return
        content, (start, _, end) = path.read_bytes(), part.removeprefix("bytes=").partition("-")
        first = int(start) if start else max(len(content) - int(end), 0)
        last = int(end) if start and end else len(content) - 1
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(content[first : last + 1])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    ROWS.write_csv(folder / "reviews.csv")
    ROWS.write_csv(folder / "reviews.tsv", separator="\t")
    ROWS.write_ndjson(folder / "reviews.jsonl")
    ROWS.write_parquet(folder / "reviews.parquet")
    ROWS.write_ipc(folder / "reviews.arrow")
    return folder


def served(files: Path, certificate: Path | None = None) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Handler, directory=str(files))
    )
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"{'https' if certificate else 'http'}://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def plain(files: Path) -> Iterator[str]:
    yield from served(files)


@pytest.fixture(scope="module")
def secure(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same by https, with a certificate that this process trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate of the server, is not installed")
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
        "subjectAltName=DNS:localhost"
    )
    done = subprocess.run(
        [*command.split(), "-keyout", "-", "-out", "-"], capture_output=True, check=True
    )
    path.write_bytes(done.stdout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield from served(files, path)


def same(address: str, **options: object) -> None:
    corpus = read_corpus(address, **options)
    assert corpus.texts.to_list() == ROWS["text"].to_list()
    assert [corpus.classes[y] for y in corpus.labels] == ROWS["label"].to_list()


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_by_http(plain: str, name: str) -> None:
    same(f"{plain}/{name}")


@pytest.mark.parametrize("name", FILES[:3])
def test_text_files_are_read_by_https(secure: str, name: str) -> None:
    same(f"{secure}/{name}?signature=abc")


def test_a_command_takes_an_address(plain: str, run: Run) -> None:
    status, _, err = run("train", f"{plain}/reviews.csv", "--out", "model", "-q")
    assert status == 0, err
    status, out, err = run("predict", "model", f"{plain}/reviews.parquet")
    assert status == 0 and out.count("\n") == 31, err


SECRET = "hunter2"


@pytest.mark.parametrize("name", ["none.csv", "none.jsonl", "none.parquet", "reviews.csv"])
@pytest.mark.parametrize("place", ["user:{}@", "?token={}&x=1", "#{}"])
def test_what_is_not_there_is_one_line_without_credentials(
    plain: str, run: Run, name: str, place: str
) -> None:
    scheme, host = plain.split("://")
    given = place.format(SECRET)
    address = f"{scheme}://{given}{host}/{name}" if "@" in place else f"{plain}/{name}{given}"
    status, out, err = run("train", address, "--label", "nowhere", "--out", "model")
    assert status == 2 and err.count("\n") == 1 and SECRET not in out + err, err
    assert name in err


@pytest.fixture(scope="module")
def bucket(files: Path) -> Iterator[str]:
    """The files in a bucket of a local server, and credentials in the environment."""
    server = pytest.importorskip(
        "moto.server", reason="moto, the local server of S3, is not installed"
    )
    boto3 = pytest.importorskip("boto3", reason="boto3, which fills the bucket, is not installed")
    with pytest.MonkeyPatch.context() as patch:
        running = server.ThreadedMotoServer(port=0, verbose=False)
        running.start()
        host, port = running.get_host_and_port()
        endpoint = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
        names = {
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
        for name, value in (
            names | {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
        ).items():
            patch.setenv(name, value)
        client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        client.create_bucket(Bucket="data")
        for path in files.iterdir():
            client.upload_file(str(path), "data", path.name)
        yield "s3://data"
        running.stop()


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_from_s3(bucket: str, name: str) -> None:
    same(f"{bucket}/{name}")


def test_a_missing_object_of_s3_is_one_line_without_credentials(bucket: str) -> None:
    for name in ("none.parquet", "none.csv"):
        with pytest.raises(InputError) as found:
            read_corpus(f"{bucket}/{name}")
        assert str(found.value).startswith(f"cannot read s3://data/{name}: ") and "\n" not in str(
            found.value
        )
        assert SECRET not in str(found.value) and os.environ["AWS_ACCESS_KEY_ID"] not in str(
            found.value
        )


def test_polars_gets_the_address_of_a_bucket_as_it_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def scan(address: str) -> pl.LazyFrame:
        seen.append(address)
        return ROWS.lazy()

    monkeypatch.setattr(pl, "scan_parquet", scan)
    for address in (
        "s3://bucket/a/*.parquet",
        "gs://bucket/b.parquet",
        "hf://datasets/someone/data/train.parquet",
    ):
        same(address)
        assert set(seen) == {address}
        seen.clear()
