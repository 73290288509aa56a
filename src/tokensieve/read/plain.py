"""A text file, decompressed and decoded line by line; each line is checked to be text."""

from __future__ import annotations

import codecs
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl

from tokensieve.errors import InputError
from tokensieve.files import Folder
from tokensieve.read.encodings import detected_encoding
from tokensieve.read.settings import SourceSettings


class Packing(NamedTuple):
    """A way to compress a file.

    Attributes:
        name: what it is called.
        module: the Python module that opens such files.
        begins: how they begin.
        start_frame: makes an object that unpacks one frame.
    """

    name: str
    module: str
    begins: bytes
    start_frame: Callable[[], Any]


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2**28)


def _zstd() -> Any:
    import zstandard  # loaded where such a file is read

    return zstandard.ZstdDecompressor().decompressobj()


def _damage() -> tuple[type[Exception], ...]:
    """The exceptions that libraries raise for a file that is damaged or of another kind."""
    zstandard = sys.modules.get("zstandard")
    return (EOFError, lzma.LZMAError, zlib.error, *([zstandard.ZstdError] if zstandard else []))


PACKINGS = {  # by the ending of the file
    ".gz": Packing("gzip", "gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    ".zst": Packing("zstd", "zstandard", b"\x28\xb5\x2f\xfd", _zstd),
    ".xz": Packing(".xz", "lzma", b"\xfd7zXZ\0", _xz),
}
READ_BYTES = 2**22  # read at a time
PACKED_BYTES = 2**11  # unpacked at a time: 2 kB can expand to 64 MB
MAX_LINE_BYTES = 100_000_000  # the longest real documents (books, logs) have about a tenth of it
MAX_EXPANSION = 200  # ordinary text packs 3 to 20 times
HARMLESS_BYTES = 500_000_000  # a result of this size is harmless whatever the ratio
_BINARY = {  # how files begin that are no text, whatever their name says
    b"PK\x03\x04": (
        "a workbook or ZIP archive; rename a workbook to end in .xlsx, or unpack the archive"
    ),
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; rename it to end in .xls",
    b"PAR1": "a Parquet file; rename it to end in .parquet",
    b"ARROW1": "an Arrow file; rename it to end in .arrow",
    b"%PDF": "a PDF; export its text as CSV",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"SQLite format 3": "a database; export the table as CSV",
    b"version https://git-lfs": "a Git LFS pointer; fetch the file with git lfs pull",
    b"BZh": "a bzip2 file; unpack it with bunzip2",
} | {
    packing.begins: (
        f"a {packing.name} file; rename it to end in {ending} after its own extension, "
        f"such as data.csv{ending}"
    )
    for ending, packing in PACKINGS.items()
}


def _unpacked_blocks(packed: IO[bytes], start_frame: Callable[[], Any]) -> Iterator[bytes]:
    """The contents of a file in one or more frames.

    `zstandard.open` would end a truncated file without an error.
    """
    frame = start_frame()
    is_between_frames = False
    n_read = 0
    while block := packed.read(PACKED_BYTES):
        n_read += len(block)
        while block:
            if is_between_frames:
                block = block.lstrip(b"\0")  # zeros may follow a frame
                if not block:
                    break
                frame = start_frame()
                is_between_frames = False
            yield frame.decompress(block)
            is_between_frames = frame.eof
            block = frame.unused_data if frame.eof else b""
    if n_read and not is_between_frames:
        raise EOFError


@contextmanager
def reading(name: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn errors of the operating system, or of Polars, into one line."""
    try:
        yield
    except UnicodeError as problem:  # of encodings in which bad bytes cannot be marked
        raise InputError(
            f"{name} is not in the encoding given ({problem}); check --encoding"
        ) from None
    except OSError as problem:
        raise InputError(f"cannot read {name!r}: {problem.strerror or problem}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        reason = (str(problem).splitlines() or ["damaged"])[0][:200]
        raise InputError(f"{name} is not a readable {kind} file ({reason})") from None


class PlainText:
    """A text file, unpacked, in the encoding given or detected.

    Attributes:
        path: the unpacked file.
        name: what it is called in messages.
        is_utf8: whether all of it is valid UTF-8.
        notes: what was detected.
    """

    class NotText(InputError):
        """A line that is not text."""

    def __init__(self, path: Path, name: str, settings: SourceSettings) -> None:
        PlainText.check_regular(path)
        with reading(name):
            if not path.stat().st_size:
                path = Path(os.devnull)  # in /proc and /sys some of size 0 have no end
        self.name = name
        self.notes: tuple[str, ...] = ()
        self._limits = settings.limits
        self._encoding = _known_encoding(settings.encoding or "utf-8")
        self.path, self._folder = PlainText.unpacked(path, name, settings.limits)
        with reading(name):
            with self.path.open("rb") as file:
                start = file.read(64)
            for begins, kind in _BINARY.items():
                if start.startswith(begins):
                    raise InputError(f"{name} is not text but {kind}")
            self.is_utf8 = False
            if self._encoding.lower() == "utf-8":
                self._detect(start, is_given=settings.encoding is not None)

    def _detect(self, start: bytes, is_given: bool) -> None:
        """Find out whether the file is UTF-8, and if not, what else it is unless that is given."""
        lines = self._undecodable_lines("utf-8")
        self.is_utf8 = lines is None
        if lines is None or is_given:
            return
        encoding = detected_encoding(start, lines)
        if encoding is not None and self._undecodable_lines(encoding) is None:
            self._encoding = encoding
            self.notes = (f"encoding {encoding} (detected)",)

    @staticmethod
    def check_regular(path: Path) -> None:
        """Make sure that reading the file will end."""
        if path.exists() and not path.is_file():
            raise InputError(
                f"{str(path)[-80:]!r} is a device, pipe or socket, not a regular file; "
                "copy it to one"
            )

    @staticmethod
    def check_expansion(name: str, path: Path, size: float, limits: bool) -> None:
        """Refuse a file that expands beyond what real text does."""
        is_large = size > HARMLESS_BYTES
        if limits and is_large and size > MAX_EXPANSION * path.stat().st_size:
            raise InputError(
                f"{name} expands more than {MAX_EXPANSION}-fold, to over {size / 1e9:.1f} GB; "
                "pass --no-limits to allow it"
            )

    @staticmethod
    def too_long_line(name: str) -> InputError:
        """The error for a line that is longer than any document."""
        return InputError(
            f"{name}: a line is over {MAX_LINE_BYTES / 1e6:,.0f} MB; "
            "if it is one document, pass --no-limits"
        )

    @staticmethod
    def unpacked(path: Path, name: str, limits: bool) -> tuple[Path, Folder | None]:
        """The file itself, or if it is packed, its unpacked copy and the folder that holds it."""
        packing = PACKINGS.get(path.suffix.lower())
        if packing is None:
            return path, None
        folder = Folder()
        copy = folder.new()
        n_bytes = 0
        try:
            with reading(name), path.open("rb") as packed, copy.open("wb") as file:
                for block in _unpacked_blocks(packed, packing.start_frame):
                    n_bytes += len(block)
                    PlainText.check_expansion(name, path, n_bytes, limits)
                    with Folder.storing():
                        file.write(block)
        except _damage():
            raise InputError(
                f"{name} is damaged or not a {packing.name} file; create or download it again"
            ) from None
        return copy, folder

    def _undecodable_lines(self, encoding: str) -> list[bytes] | None:
        """Lines around the first bytes that are not in the encoding; None if all of it is text.

        None of them around a NUL byte.
        """
        decoder = codecs.getincrementaldecoder(encoding)()
        block = b""
        with self.path.open("rb") as file:
            try:
                for block in iter(lambda: file.read(READ_BYTES), b""):
                    if "\0" in decoder.decode(block):
                        return []
                decoder.decode(b"", final=True)
            except UnicodeError:
                return [part for part in block.split(b"\n") if not part.isascii()]
        return None

    @cached_property
    def has_line_feeds(self) -> bool:
        """Whether the first line ends with a line feed: then a carriage return alone ends none."""
        with reading(self.name), self._open("") as text:
            return text.readline(READ_BYTES).endswith("\n")

    @property
    def is_ascii_compatible(self) -> bool:
        """Whether a byte below 128 is always that character of ASCII."""
        return not self._encoding.lower().startswith(("utf-16", "utf-32", "utf_16", "utf_32"))

    def lines(
        self, place: Callable[[int], str] | None = None, only_feeds: bool = False
    ) -> Generator[str]:
        """The lines with their endings.

        Args:
            place: the number of a line → how messages name it.
            only_feeds: end lines at line feeds only, not at carriage returns.

        Raises:
            NotText: a line is not text; the message names it.
        """
        number = 1
        line = ""
        with reading(self.name), self._open("\n" if only_feeds else "") as text:
            while part := text.readline(READ_BYTES):
                line += part
                is_whole = part.endswith(("\n", "\r")) or len(part) < READ_BYTES
                if "\0" in part or (is_whole and not line.isascii()):
                    where = place(number) if place else f"{self.name}: line {number}"
                    self._check_text(line, where)
                if is_whole:
                    yield line
                    number += 1
                    line = ""
                elif self._limits and len(line) > MAX_LINE_BYTES:
                    raise PlainText.too_long_line(self.name)
            if line:
                yield line

    def _open(self, newline: str) -> IO[str]:
        is_utf8 = self._encoding.lower().replace("_", "-") in ("utf-8", "utf8")
        codec = "utf-8-sig" if is_utf8 else self._encoding  # skips a byte order mark
        # surrogateescape, not strict: strict fails for a whole block of lines, and the bad line
        # could not be named
        return self.path.open("r", encoding=codec, errors="surrogateescape", newline=newline)

    def _check_text(self, line: str, where: str) -> None:
        """Raise `NotText` if a line has a NUL byte, or one that the encoding does not have."""
        if "\0" in line:
            raise PlainText.NotText(
                f"{where}: it contains a NUL byte, so it is not text; export the file again"
            )
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as problem:
            byte = ord(line[problem.start]) & 0xFF
            raise PlainText.NotText(
                f"{where}: byte 0x{byte:02x} is not {self._encoding} text; "
                "give the right one, such as --encoding latin-1"
            ) from None

    def full_text(self) -> str:
        """The whole file as one string."""
        return "".join(self.lines())


def _known_encoding(encoding: str) -> str:
    """The encoding; an `InputError` if Python does not know it."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
    except (LookupError, ValueError):
        raise InputError(
            f"unknown text encoding {encoding[:40]!r}; try utf-8, latin-1 or cp1252"
        ) from None
    return encoding
