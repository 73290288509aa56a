"""Download a file by http or https: whole, within a time limit, with the checksum that the server
gives."""

from __future__ import annotations

import hashlib
import re
import time
from base64 import b64decode
from collections.abc import Iterator
from http.client import PARTIAL_CONTENT, HTTPResponse, IncompleteRead
from typing import Any

from tokensieve.errors import InputError
from tokensieve.progress import in_background
from tokensieve.read.plain import PACKINGS

BLOCK_BYTES = 2**20
TIMEOUT = 60  # seconds until a silent server is given up; also for its first answer
MAX_SECONDS = 3600  # for one file; --no-limits has no limit
MIN_BYTES_PER_SECOND = 10_000  # on average, once the first minute is over
# headers with a checksum of the content, such as `Repr-Digest: sha-256=:…:` (RFC 9530) and
# `x-goog-hash: md5=…`; Content-MD5 has the digest alone
DIGEST_HEADERS = ("Repr-Digest", "Content-Digest", "Digest", "x-goog-hash")
_DIGEST = re.compile("(md5|sha-256|sha-512)=:?([A-Za-z0-9+/]+=*)", re.IGNORECASE)


def http_blocks(address: str, name: str, has_limits: bool) -> Iterator[bytes]:
    """The content of a file, in blocks of up to 1 MiB.

    Args:
        name: the address for messages.
        has_limits: give up a download that takes too long.

    Raises:
        InputError: it takes too long, ends early, or differs from its checksum.
        OSError: the server cannot be reached, or refuses.
    """
    if name.lower().endswith(tuple(PACKINGS)):
        raise InputError(f"{name}: compressed files cannot be read from a URL; download it first")
    start = time.monotonic()
    n_bytes = 0
    with _answer(address, name) as response:
        expected = _length(response, name)
        checksums = _Checksums(response)
        while block := _next_block(response, name, n_bytes):
            n_bytes += len(block)
            checksums.update(block)
            if has_limits:
                _check_time(name, time.monotonic() - start, n_bytes)
            yield block
    if expected is not None and n_bytes < expected:
        raise _broke_off(name, n_bytes, f" of {expected:,}")
    checksums.check(name)


def _answer(address: str, name: str) -> HTTPResponse:
    """The server's answer, of which only the headers have been read."""
    from urllib.request import urlopen

    opening = in_background(lambda: urlopen(address, timeout=TIMEOUT))
    try:
        response: HTTPResponse = opening.result(timeout=2 * TIMEOUT)
    except TimeoutError:
        raise InputError(
            f"{name}: the server does not answer within {2 * TIMEOUT} seconds; try again later"
        ) from None
    if response.status == PARTIAL_CONTENT:  # nobody asked for a part
        raise InputError(f"{name}: the server sends only a part of it; download it first")
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise InputError(f"{name}: the server sends it as {encoding[:20]!r}; download it first")
    return response


def _length(response: HTTPResponse, name: str) -> int | None:
    """The length of the content in bytes, as the server gives it; None if it gives none."""
    written = response.headers.get_all("Content-Length", [])
    lengths = {int(length) for length in written if length.strip().isdecimal()}
    if len(lengths) > 1:
        listed = " and ".join(f"{length:,}" for length in sorted(lengths))
        raise InputError(
            f"{name}: the server gives several lengths, {listed} bytes; download it first"
        )
    return lengths.pop() if lengths else None


def _next_block(response: HTTPResponse, name: str, n_bytes: int) -> bytes:
    """The bytes that have arrived; empty at the end. A full block may take a slow server
    forever."""
    try:
        return response.read1(BLOCK_BYTES)
    except IncompleteRead:
        raise _broke_off(name, n_bytes) from None


def _broke_off(name: str, n_bytes: int, of: str = "") -> InputError:
    return InputError(
        f"{name}: the download broke off after {n_bytes:,}{of} bytes; run the command again, or "
        "download the file first"
    )


def _check_time(name: str, seconds: float, n_bytes: int) -> None:
    """Refuse a download that takes too long."""
    is_slow = seconds > TIMEOUT and n_bytes < MIN_BYTES_PER_SECOND * seconds
    if is_slow or seconds > MAX_SECONDS:
        raise InputError(
            f"{name}: only {n_bytes / 1e6:,.1f} MB arrived in {seconds:,.0f} seconds; download it "
            "first, or pass --no-limits"
        )


class _Checksums:
    """The checksums that a server gives for a file, and those of what has arrived."""

    def __init__(self, response: HTTPResponse) -> None:
        written = []
        for header in DIGEST_HEADERS:
            written += response.headers.get_all(header, [])
        self._expected = {
            kind.lower().replace("-", ""): digest
            for kind, digest in _DIGEST.findall(" ".join(written))
        }
        if "Content-MD5" in response.headers:
            self._expected["md5"] = response.headers["Content-MD5"].strip()
        self._hashes: dict[str, Any] = {
            kind: hashlib.new(kind, usedforsecurity=False) for kind in self._expected
        }

    def update(self, block: bytes) -> None:
        """Take what has arrived into account."""
        for digest in self._hashes.values():
            digest.update(block)

    def check(self, name: str) -> None:
        """Refuse content that differs from a checksum."""
        for kind, digest in self._hashes.items():
            try:
                expected = b64decode(self._expected[kind], validate=True)
            except ValueError:  # not base64: no checksum that we know
                continue
            if len(expected) == digest.digest_size and expected != digest.digest():
                raise InputError(
                    f"{name}: what arrived differs from the server's checksum ({kind}); run the "
                    "command again, or download the file first"
                )
