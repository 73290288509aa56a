"""Files at addresses that Polars reads (https, s3, hf); text files are copied here first."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import has_user, public_address
from tokensieve.files import Folder
from tokensieve.read.downloads import http_blocks
from tokensieve.read.formats import KINDS, file_table, kind_of
from tokensieve.read.plain import MAX_LINE_BYTES, PlainText
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import (
    BATCH_ROWS,
    Batch,
    SourceTable,
    batch_height,
    check_all_rows,
    frame_batches,
)

POLARS_FOLDER = "POLARS_TEMP_DIR"  # the variable that names Polars' folder, read once
_CACHES: list[Folder] = []  # removed at the end of the process
MAX_COPIED_BYTES = 10_000_000_000  # of standard input or an address; more could fill the disk


def address_table(address: str, settings: SourceSettings) -> SourceTable:
    """A file, or files by a glob, at an address; text files are checked like any other."""
    name = public_address(address)
    if has_user(address):
        raise InputError(
            f"{name}: a user and a password in an address are not supported; use a presigned "
            "address, credentials in the environment, or a file that you have downloaded"
        )
    kind = kind_of(name)
    if not kind or not KINDS[kind].is_remote:
        raise InputError(
            f"{name}: only .csv, .tsv, .jsonl, .parquet and .arrow files can be read from a URL; "
            "download it"
        )
    try:
        if KINDS[kind].is_text:
            return _copied_table(address, name, kind, settings)
        return _scanned_table(address, name, kind)
    except InputError:
        raise
    except Exception as problem:  # every cloud has errors of its own
        raise _failed(problem, address) from None


def _copied_table(address: str, name: str, kind: str, settings: SourceSettings) -> SourceTable:
    folder = Folder()
    copy = folder.save(limited(_downloaded(address, name, settings.limits), name, settings.limits))
    table = file_table(copy.rename(f"{copy}{kind}"), settings, name)
    table.keep_alive.append(folder)
    return table


def _scanned_table(address: str, name: str, kind: str) -> SourceTable:
    if kind == ".arrow" and POLARS_FOLDER not in os.environ:
        # Polars copies the file, and would leave the copy behind
        folder = Folder()
        _CACHES.append(folder)
        os.environ[POLARS_FOLDER] = str(folder.path)
    scan = pl.scan_parquet if kind == ".parquet" else pl.scan_ipc

    def read(names: Sequence[str]) -> Iterator[Batch]:
        n_rows = 0
        try:
            for batch in frame_batches(scan(address), names):
                n_rows += batch_height(batch)
                yield batch
            check_all_rows(scan(address), n_rows, name)
        except InputError:
            raise
        except Exception as problem:
            raise _failed(problem, address) from None

    return SourceTable(name, scan(address).collect_schema().names(), read)


def _failed(problem: Exception, address: str) -> InputError:
    """One line, without the parts of the address that may be secret."""
    name = public_address(address)
    reason = (str(problem).splitlines() or [type(problem).__name__])[0].replace(address, name)
    without_user = re.sub(r"://[^/\s@]*@", "://", reason)
    without_query = re.sub(r"[?&#][^\s'\"]*", "", without_user)
    return InputError(
        f"cannot read {name}: {without_query[:300]}; check the address and the credentials"
    )


def _downloaded(address: str, name: str, has_limits: bool) -> Iterator[bytes]:
    """The content of a text file at an address, in blocks."""
    if address.lower().startswith(("http://", "https://")):
        yield from http_blocks(address, name, has_limits)
        return
    if not hasattr(pl, "scan_lines"):
        raise InputError(
            f"{name}: this version of Polars downloads only .parquet and .arrow files; "
            "download it first"
        )
    for part in pl.scan_lines(address).collect_batches(chunk_size=BATCH_ROWS, lazy=True):
        lines = part.to_series().fill_null("").to_list()
        yield ("\n".join(lines) + "\n").encode()


def limited(
    blocks: Iterable[bytes], name: str, has_limits: bool, packed: tuple[bytes, ...] = ()
) -> Iterator[bytes]:
    """Pass blocks of a source of unknown size on until they, or one of their lines, are too large.

    Args:
        blocks: the content.
        name: the source, for messages.
        has_limits: False passes everything on.
        packed: how content begins whose lines are not looked at.
    """
    start = b""
    line_bytes = 0
    n_bytes = 0
    for block in blocks:
        start = start or block[:8]
        n_bytes += len(block)
        if has_limits and n_bytes > MAX_COPIED_BYTES:
            raise InputError(
                f"{name} is over {MAX_COPIED_BYTES / 1e9:,.0f} GB; save it to a file first, "
                "or pass --no-limits"
            )
        if b"\n" in block:
            line_bytes = len(block) - block.rfind(b"\n") - 1
        else:
            line_bytes += len(block)
        if has_limits and line_bytes > MAX_LINE_BYTES and not start.startswith(packed):
            raise PlainText.too_long_line(name)
        yield block
