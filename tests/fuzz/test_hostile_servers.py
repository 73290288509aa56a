"""What a web server may answer instead of a file: each answer is read whole, or refused in one
line."""

from __future__ import annotations

import base64
import gc
import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tokensieve.errors import InputError
from tokensieve.read.reader import read_corpus

# urllib leaves the socket of an answer that it refuses to the garbage collector
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
TEXT = "text,label\n" + "".join(
    f"a {'fine' if i % 2 else 'poor'} film number {i},{'pos' if i % 2 else 'neg'}\n"
    for i in range(400)
)
CONTENT = TEXT.encode()
MD5 = base64.b64encode(hashlib.md5(CONTENT, usedforsecurity=False).digest()).decode()
SHA256 = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
OTHER_MD5 = base64.b64encode(bytes(16)).decode()
Send = Callable[[socket.socket], None]


def answer(*headers: str, content: bytes = CONTENT, status: str = "200 OK") -> Send:
    def send(client: socket.socket) -> None:
        head = "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""])
        client.sendall(head.encode() + content)

    return send


def chunks(*parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + end


LENGTH = f"Content-Length: {len(CONTENT)}"
CHUNKED = "Transfer-Encoding: chunked"
WHOLE = {
    "with its length": answer(LENGTH),
    "without its length": answer("Connection: close"),
    "in chunks": answer(CHUNKED, content=chunks(CONTENT[:500], CONTENT[500:])),
    "with an MD5": answer(LENGTH, f"Content-MD5: {MD5}"),
    "with a digest": answer(LENGTH, f"Repr-Digest: sha-256=:{SHA256}:, unknown=:eA==:"),
    "as Google's storage": answer(
        LENGTH, "x-goog-hash: crc32c=AAAAAA==", f"x-goog-hash: md5={MD5}"
    ),
    "with a checksum that is none": answer(LENGTH, "Content-MD5: nothing"),
    "more than its length": answer(LENGTH, content=CONTENT + b"rest"),
    "with a length that is no number": answer("Content-Length: many", "Connection: close"),
}
REFUSED = {
    "cut": (answer(LENGTH, content=CONTENT[:9000]), r"broke off after 9,000 of [\d,]+ bytes"),
    "cut at once": (answer(LENGTH, content=b""), "broke off after 0 of"),
    "a chunk cut": (
        answer(CHUNKED, content=b"ffff\r\n" + CONTENT[:5000]),
        "broke off after",
    ),
    "the last chunk missing": (
        answer(CHUNKED, content=chunks(CONTENT[:5000], end=b"")),
        "broke off after",
    ),
    "another MD5": (answer(LENGTH, f"Content-MD5: {OTHER_MD5}"), r"server's checksum \(md5\)"),
    "another digest": (
        answer(
            f"Content-Length: {len(CONTENT)}",
            f"Digest: SHA-256={SHA256}",
            content=TEXT.replace("fine", "evil").encode(),
        ),
        r"server's checksum \(sha256\)",
    ),
    "compressed": (answer(LENGTH, "Content-Encoding: gzip"), "sends it as 'gzip'"),
    "nothing": (lambda client: None, "cannot read"),
    "no headers": (lambda client: client.sendall(b"nonsense\r\n\r\n"), "cannot read"),
    "too many headers": (answer(*["X: y"] * 500), "cannot read"),
    "a header without end": (answer("X: " + "y" * 100_000), "cannot read"),
    "an error": (answer("Content-Length: 0", content=b"", status="503 Busy"), "503"),
    "chunks of no size": (answer(CHUNKED, content=b"zz\r\nabc\r\n"), "broke off|cannot read"),
    "a part that nobody asked for": (
        answer(
            f"Content-Length: {len(CONTENT) // 2}",
            content=CONTENT[: len(CONTENT) // 2],
            status="206 Partial Content",
        ),
        "only a part",
    ),
    "two lengths": (answer("Content-Length: 9000", LENGTH), "several lengths, 9,000 and"),
    "fewer bytes in chunks than its length": (
        answer(f"Content-Length: {10**6}", CHUNKED, content=chunks(CONTENT)),
        r"broke off after [\d,]+ of 1,000,000 bytes",
    ),
    "a circle": (
        answer("Location: /reviews.csv", "Content-Length: 0", content=b"", status="302 Found"),
        "cannot read",
    ),
    "a file here": (
        answer(
            "Location: file:///etc/passwd", "Content-Length: 0", content=b"", status="302 Found"
        ),
        "cannot read",
    ),
}


@pytest.fixture
def serve() -> Iterator[Callable[[Send], str]]:
    """Start a server that gives this answer to whoever asks; its address."""
    listeners = []

    def start(send: Send) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def handle(client: socket.socket) -> None:
            with client, suppress(OSError):
                client.recv(65536)
                send(client)
                client.shutdown(socket.SHUT_WR)
                client.settimeout(5)
                while client.recv(65536):  # until the other side has read everything
                    pass

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client = listener.accept()[0]
                    threading.Thread(target=handle, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/reviews.csv"

    yield start
    for listener in listeners:
        listener.close()
    gc.collect()


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_file_is_read(serve: Callable[[Send], str], kind: str) -> None:
    assert len(read_corpus(serve(WHOLE[kind])).texts) == 400


@pytest.mark.parametrize("kind", REFUSED)
def test_anything_else_is_one_line(serve: Callable[[Send], str], kind: str) -> None:
    send, message = REFUSED[kind]
    with pytest.raises(InputError, match=message) as caught:
        read_corpus(serve(send))
    assert "\n" not in str(caught.value)


def drip(client: socket.socket) -> None:
    """A byte now and then, never silent for long, without end."""
    client.sendall(f"HTTP/1.1 200 OK\r\n{LENGTH}\r\n\r\n".encode())
    for byte in CONTENT:
        client.sendall(bytes([byte]))
        time.sleep(0.02)


def drip_of_headers(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        client.sendall(b"X: y\r\n")
        time.sleep(0.1)


@pytest.mark.parametrize("send", [drip, drip_of_headers])
def test_a_slow_drip_ends(
    serve: Callable[[Send], str], monkeypatch: pytest.MonkeyPatch, send: Send
) -> None:
    monkeypatch.setattr("tokensieve.read.downloads.TIMEOUT", 0.5)
    start = time.monotonic()
    with pytest.raises(InputError, match=r"only 0\.0 MB arrived|does not answer"):
        read_corpus(serve(send))
    assert time.monotonic() - start < 20


def test_without_limits_a_slow_server_may_take_its_time(
    serve: Callable[[Send], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokensieve.read.downloads.MAX_SECONDS", 0.0)
    address = serve(answer(LENGTH))
    with pytest.raises(InputError, match="pass --no-limits"):
        read_corpus(address)
    assert len(read_corpus(address, limits=False).texts) == 400
