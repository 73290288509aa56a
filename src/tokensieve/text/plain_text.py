"""Bytes of a file → its text: packing, encoding, and limits on what may come out; and which encoding a file is written in."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.settings import SourceSettings
from tokensieve.text.spill import Folder, storing

PACKED = (".gz", ".zst")
BLOCK = 2**22
LONGEST = 100_000_000  # bytes of a line or cell; the longest real documents (books, logs) have about a tenth of it
EXPANSION, LARGE = (
    200,
    500_000_000,
)  # ordinary text packs 3 to 20 times; smaller results are harmless whatever the ratio
_BINARY = {  # how files begin that are no text, whatever their name says
    b"PK\x03\x04": "a workbook or ZIP archive: name a workbook .xlsx, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "a workbook of old Excel: name it .xls",
    b"PAR1": "Parquet: name it .parquet",
    b"ARROW1": "Arrow: name it .arrow",
    b"\x1f\x8b": "gzip: name it .gz, after the name of its kind",
    b"\x28\xb5\x2f\xfd": "zstd: name it .zst, after the name of its kind",
    b"%PDF": "PDF: export its text as CSV",
    b"\x89PNG": "a picture",
    b"SQLite format 3": "a database: export the table as CSV",
}


def check_regular(path: Path) -> None:
    """Make sure that reading comes to an end.

    Raises:
        InputError: the path leads to a device, a pipe or a socket.
    """
    if path.exists() and not path.is_file():
        raise InputError(
            f"{str(path)[-80:]!r} is no regular file (a device, pipe or socket): save its content in a file"
        )


@contextmanager
def reading(name: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn what the operating system, gzip, zstd or Polars say into one line.

    Args:
        name: of the file.
        kind: what Polars takes it for.
    """
    import zstandard

    try:
        yield
    except UnicodeError as problem:  # encodings of more than one byte a character, where bad bytes cannot be marked
        raise InputError(f"{name}: is not in the encoding given ({problem}); check --encoding") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{name}: is damaged or no gzip file; make or download it again") from None
    except zstandard.ZstdError:
        raise InputError(f"{name}: is damaged or no zstd file; make or download it again") from None
    except OSError as problem:
        raise InputError(f"cannot read {name!r}: {problem.strerror or problem}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        reason = (str(problem).splitlines() or ["damaged"])[0][:200]
        raise InputError(f"{name}: is no readable {kind} file ({reason})") from None


# ---- bytes


def _open_bytes(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    opened: Any = None
    if suffix == ".gz":
        opened = gzip.open(path)  # noqa: SIM115  # the caller closes it
        return cast("IO[bytes]", opened)
    if suffix == ".zst":
        import zstandard

        opened = zstandard.open(path, "rb")
        return cast("IO[bytes]", opened)
    return path.open("rb")


def _blocks(path: Path, name: str, limits: bool) -> Iterator[bytes]:
    """The bytes of a file, unpacked.

    Raises:
        InputError: it expands beyond what real text does.
    """
    size, total = max(path.stat().st_size, 1), 0
    with _open_bytes(path) as file:
        while block := file.read(BLOCK):
            total += len(block)
            if limits and path.suffix.lower() in PACKED and total > LARGE and total > EXPANSION * size:
                raise InputError(
                    f"{name}: expands more than {EXPANSION}-fold, to over {total / 1e9:.1f} GB: if it is meant to, give --no-limits"
                )
            yield block


def unpacked(path: Path, name: str, folder: Folder, limits: bool) -> Path:
    """A packed file, unpacked into a folder.

    Raises:
        InputError: it is damaged, or expands beyond what real text does.
    """
    out = folder.new()
    with reading(name), out.open("wb") as file:
        for block in _blocks(path, name, limits):
            with storing():
                file.write(block)
    return out


class BadText(Exception):
    """A line that is no text: (line number, what is wrong); whoever counts rows adds the row."""


class PlainText:
    """A text file as UTF-8 on disk: itself where it is that, else a copy that goes with this object.

    Attributes:
        name: for messages.
        path: of the UTF-8 text; of the file as it is where a byte is at fault.
        encoding: of `path`.
        sound: every byte was looked at and is text: no NUL, no broken encoding.
        lone_returns: whether a carriage return stands without a line feed.
        notes: what was detected.
    """

    def __init__(self, path: Path, name: str, settings: SourceSettings, packed: bool = False) -> None:
        self.name, self.path, self.limits = name, path, settings.limits
        self.encoding, self.notes = settings.encoding or "utf-8", tuple[str, ...]()
        self.sound, self.lone_returns = False, False
        codec = _codec_of(self.encoding)
        with reading(name):
            start = next(_blocks(path, name, self.limits), b"")
            kind = next((kind for begins, kind in _BINARY.items() if start.startswith(begins)), None)
            if kind is not None:
                raise InputError(f"{name}: is no text but {kind}")
            if codec != "utf-8-sig":
                self._take(_recoded(_blocks(path, name, self.limits), codec), copy=True)
                return
            odd = self._take(_blocks(path, name, self.limits), copy=packed)
            found = _detected_encoding(start, odd) if settings.encoding is None and not self.sound else None
            if found is not None:
                self._take(_recoded(_blocks(path, name, self.limits), _codec_of(found)), copy=True)
                self.notes = (f"encoding {found} (detected)",) if self.sound else ()

    def _take(self, blocks: Iterator[bytes], copy: bool) -> list[bytes]:
        """Look at every byte up to the first fault, and copy if asked; returns lines around a byte that is not UTF-8."""
        decoder, block = codecs.getincrementaldecoder("utf-8")(), b""
        line, returns, pairs, last = 0, 0, 0, b""
        folder = Folder() if copy else None
        with storing():
            out = (folder.new() if folder else Path(os.devnull)).open("wb")
        with closing(out):
            try:
                for block in blocks:
                    if b"\0" in block:
                        return []
                    line = self._line_length(line, block)
                    returns, pairs = returns + block.count(b"\r"), pairs + (last + block).count(b"\r\n")
                    last = block[-1:] if block.endswith(b"\r") else b""
                    if not block.isascii() or decoder.getstate()[0]:
                        decoder.decode(block)
                    if copy:
                        with storing():
                            out.write(block)
                decoder.decode(b"", final=True)
            except UnicodeError:
                return [part for part in block.split(b"\n") if not part.isascii()]
        if folder:
            self._folder, self.path, self.encoding = folder, Path(out.name), "utf-8"
        self.sound, self.lone_returns = True, returns > pairs
        return []

    def _line_length(self, before: int, block: bytes) -> int:
        """Bytes of the last line so far, `before` of them in earlier blocks.

        Raises:
            InputError: a line does not end.
        """
        first, last = block.find(b"\n"), block.rfind(b"\n")
        if self.limits and before + (len(block) if first < 0 else first) > LONGEST:
            raise InputError(_endless(self.name))
        return before + len(block) if last < 0 else len(block) - last - 1

    def lines(self) -> Generator[str]:
        """The lines with their endings, each checked to be text.

        Raises:
            BadText: a line is not.
        """
        # surrogateescape, not strict: strict fails for a whole block of lines, and the bad line could not be named
        with reading(self.name), _open_bytes(self.path) as raw:
            text = io.TextIOWrapper(raw, _codec_of(self.encoding), "surrogateescape", newline="")
            number, line = 1, ""
            while part := text.readline(BLOCK):
                if "\0" in part:
                    raise BadText(number, "there is a NUL byte, so this is no text; remove it or export the file again")
                line += part
                if not part.endswith(("\n", "\r")) and len(part) == BLOCK:
                    if self.limits and len(line) > LONGEST:
                        raise InputError(_endless(self.name))
                    continue
                if not line.isascii():
                    _check_decoded(number, line, self.encoding)
                yield line
                number, line = number + 1, ""
            if line:
                yield line

    def whole(self) -> str:
        """All of it.

        Raises:
            InputError: it is not text.
        """
        try:
            return "".join(self.lines())
        except BadText as problem:
            line, reason = problem.args
            raise InputError(f"{self.name}: line {line}: {reason}") from None


def _endless(name: str) -> str:
    return f"{name}: a line has more than {LONGEST / 1e6:,.0f} MB: if it is one document, give --no-limits"


def _recoded(blocks: Iterator[bytes], codec: str) -> Iterator[bytes]:
    """Text of any encoding as UTF-8."""
    decoder = codecs.getincrementaldecoder(codec)()
    for block in blocks:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def _check_decoded(number: int, line: str, encoding: str) -> None:
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as problem:
        byte = ord(line[problem.start]) & 0xFF
        reason = f"byte 0x{byte:02x} is not {encoding} text; give the right encoding, for example --encoding latin-1"
        raise BadText(number, reason) from None


# ---- CSV and TSV


_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# those that spreadsheets and old systems write; between others a guess would be too uncertain
_LIKELY = [
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "shift_jis",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
]


def _codec_of(encoding: str) -> str:
    """Python's codec of that name; a UTF-8 byte order mark is accepted.

    Raises:
        InputError: there is none for text.
    """
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
    except (LookupError, ValueError):
        raise InputError(f"there is no text encoding {encoding[:40]!r}; try utf-8, latin-1 or cp1252") from None
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _detected_encoding(start: bytes, lines: Sequence[bytes]) -> str | None:
    """The encoding of a file that is not UTF-8; None where it is damaged UTF-8, or nothing is likely.

    Args:
        start: how the file begins.
        lines: some that hold more than ASCII.
    """
    for begins, name in _MARKS.items():  # UTF-32 first: its mark begins with that of UTF-16
        if start.startswith(begins):
            return name
    odd, valid = [], 0
    for line in lines[:2000]:
        try:
            line.decode()
            valid += 1
        except UnicodeDecodeError:
            odd.append(line)
    if not odd or valid >= len(odd):
        return None
    from charset_normalizer import from_bytes

    # a signature of the file would be looked for in vain, as these are lines out of its middle
    best = from_bytes(b"\n".join(odd)[:50_000], cp_isolation=_LIKELY, preemptive_behaviour=False).best()
    if best is None:
        return None
    # Western European text is by far the most frequent: take it where it is as plausible
    try:
        western = b"\n".join(odd).decode("cp1252")
    except UnicodeDecodeError:
        return best.encoding
    letters = sum(c.isalpha() for c in western if not c.isascii())
    total = sum(not c.isascii() for c in western)
    ascii_letters = sum(c.isascii() and c.isalpha() for c in western)
    return "cp1252" if letters >= 0.5 * total and ascii_letters > 3 * total else best.encoding
