"""A text file, decompressed and decoded line by line; each line is checked to be text."""

from __future__ import annotations

import codecs
import io
import lzma
import os
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl
import zstandard

from tokensieve.errors import InputError
from tokensieve.files import Folder
from tokensieve.read.settings import SourceSettings

# ending → name, module that opens such files, how they begin, and what unpacks one frame of them
PACKED: dict[str, tuple[str, str, bytes, Callable[[], Any]]] = {
    ".gz": ("gzip", "gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    ".zst": (
        "zstd",
        "zstandard",
        b"\x28\xb5\x2f\xfd",
        lambda: zstandard.ZstdDecompressor().decompressobj(),
    ),
    ".xz": (
        ".xz",
        "lzma",
        b"\xfd7zXZ\0",
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2**28),
    ),
}
BLOCK = 2**22
_WESTERN_MARKS = "‘’“”„–—…•€£©®™°«»´·¿¡\xa0"  # no letters, and frequent in cp1252
_ALPHABETS = (  # small letters beyond ASCII, in one language or a few that have much in common
    "àâæçèéêëîïôœùûüÿ äöüßé áéíñóúüºª ãáâàçéêíóõúüºª àèéìíîòóùú àçèéíïòóúü åäöéü åæøéòôüö áæéðíóöþúý ëïéèöüóê "
    "ąćęłńóśźż áčďéěíňóřšťúůýžäĺľŕô áéíóöőúüű ăâîşţșț čćđšž çğıöşüâîû āčēģīķļņšūž ąčęėįšųūž äõöüšž"
).split()
LONGEST = 100_000_000  # bytes of a line or cell; the longest real documents (books, logs) have about a tenth of it
EXPANSION = 200  # ordinary text packs 3 to 20 times
LARGE = 500_000_000  # bytes; smaller results are harmless whatever the ratio
_BINARY = {  # how files begin that are no text, whatever their name says
    b"PK\x03\x04": "a workbook or ZIP archive; rename a workbook to end in .xlsx, or unpack the archive",
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
    begins: f"a {name} file; rename it to end in {ending} after its own extension, such as data.csv{ending}"
    for ending, (name, _, begins, _) in PACKED.items()
}


def _unpacked_blocks(packed: IO[bytes], start: Callable[[], Any]) -> Iterator[bytes]:
    """The contents of a file in one or more frames. `zstandard.open` would end a truncated file without an error."""
    frame, first = None, True
    while block := packed.read(2**11):  # 2 kB can expand to 64 MB
        while block := block if frame or first else block.lstrip(b"\0"):  # zeros may follow a frame
            frame, first = frame or start(), False
            yield frame.decompress(block)
            block = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError


@contextmanager
def reading(name: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn an error of the operating system, or of Polars reading a file of some kind, into one line."""
    try:
        yield
    except (
        UnicodeError
    ) as problem:  # encodings of more than one byte a character, where bad bytes cannot be marked
        raise InputError(
            f"{name} is not in the encoding given ({problem}); check --encoding"
        ) from None
    except OSError as problem:
        raise InputError(f"cannot read {name!r}: {problem.strerror or problem}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        reason = (str(problem).splitlines() or ["damaged"])[0][:200]
        raise InputError(f"{name} is not a readable {kind} file ({reason})") from None


class PlainText:
    """A text file, unpacked (`path`), in the encoding given or, if none is, the one detected; `notes` say what was detected."""

    class NotText(InputError):
        """A line that is not text."""

    def __init__(self, path: Path, name: str, settings: SourceSettings) -> None:
        PlainText.check_regular(path)
        with reading(name):
            path = (
                path if path.stat().st_size else Path(os.devnull)
            )  # in /proc and /sys some of size 0 have no end
        self.name, self._limits, self.notes = name, settings.limits, tuple[str, ...]()
        encoding = self._encoding = settings.encoding or "utf-8"
        self.path, self._folder = PlainText.unpacked(path, name, self._limits)
        try:
            io.TextIOWrapper(io.BytesIO(), self._encoding)
        except (LookupError, ValueError):
            raise InputError(
                f"unknown text encoding {encoding[:40]!r}; try utf-8, latin-1 or cp1252"
            ) from None
        with reading(name):
            with self.path.open("rb") as file:
                start = file.read(64)
            kind = next(
                (kind for begins, kind in _BINARY.items() if start.startswith(begins)), None
            )
            if kind is not None:
                raise InputError(f"{name} is not text but {kind}")
            odd = self._undecodable("utf-8") if encoding.lower() == "utf-8" else []
            self.is_utf8 = odd is None
            found = None if settings.encoding or odd is None else _detected_encoding(start, odd)
            if found is not None and self._undecodable(found) is None:
                self._encoding, self.notes = found, (f"encoding {found} (detected)",)

    @staticmethod
    def check_regular(path: Path) -> None:
        """Make sure that reading the file will end."""
        if path.exists() and not path.is_file():
            raise InputError(
                f"{str(path)[-80:]!r} is a device, pipe or socket, not a regular file; copy it to one"
            )

    @staticmethod
    def check_expansion(name: str, path: Path, size: float, limits: bool) -> None:
        """Refuse a file that expands beyond what real text does."""
        if limits and size > LARGE and size > EXPANSION * path.stat().st_size:
            raise InputError(
                f"{name} expands more than {EXPANSION}-fold, to over {size / 1e9:.1f} GB; pass --no-limits to allow it"
            )

    @staticmethod
    def too_long_line(name: str) -> InputError:
        """The error for a line that is longer than any document."""
        return InputError(
            f"{name}: a line is over {LONGEST / 1e6:,.0f} MB; if it is one document, pass --no-limits"
        )

    @staticmethod
    def unpacked(path: Path, name: str, limits: bool) -> tuple[Path, Folder | None]:
        """The file, unless it is packed: then it is unpacked into a folder, up to what real text expands to."""
        if path.suffix.lower() not in PACKED:
            return path, None
        packing, _, _, start = PACKED[path.suffix.lower()]
        folder = Folder()
        out, total = folder.new(), 0
        try:
            with reading(name), path.open("rb") as packed, out.open("wb") as file:
                for block in _unpacked_blocks(packed, start):
                    total += len(block)
                    PlainText.check_expansion(name, path, total, limits)
                    with Folder.storing():
                        file.write(block)
        except (EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError):
            raise InputError(
                f"{name} is damaged or not a {packing} file; create or download it again"
            ) from None
        return out, folder

    def _undecodable(self, encoding: str) -> list[bytes] | None:
        """Lines around the first bytes that are not in the encoding; none around a NUL byte; None if all of it is text."""
        decoder = codecs.getincrementaldecoder(encoding)()
        block = b""
        with self.path.open("rb") as file:
            try:
                for block in iter(lambda: file.read(BLOCK), b""):
                    if "\0" in decoder.decode(block):
                        return []
                decoder.decode(b"", final=True)
            except UnicodeError:
                return [part for part in block.split(b"\n") if not part.isascii()]
        return None

    def lines(self, place: Callable[[int], str] | None = None) -> Generator[str]:
        """The lines with their endings; one that is no text is an `InputError` that names it: `place` says how, by its number."""
        codec = (
            "utf-8-sig"
            if self._encoding.lower().replace("_", "-") in ("utf-8", "utf8")
            else self._encoding
        )
        # surrogateescape, not strict: strict fails for a whole block of lines, and the bad line could not be named
        with (
            reading(self.name),
            self.path.open("r", encoding=codec, errors="surrogateescape", newline="") as text,
        ):
            number, line = 1, ""
            while part := text.readline(BLOCK):
                where = place(number) if place else f"{self.name}: line {number}"
                if "\0" in part:
                    raise PlainText.NotText(
                        f"{where}: it contains a NUL byte, so it is not text; export the file again"
                    )
                line += part
                if not part.endswith(("\n", "\r")) and len(part) == BLOCK:
                    if self._limits and len(line) > LONGEST:
                        raise PlainText.too_long_line(self.name)
                    continue
                if not line.isascii():
                    try:
                        line.encode("utf-8")
                    except UnicodeEncodeError as problem:
                        byte = f"byte 0x{ord(line[problem.start]) & 0xFF:02x} is not {self._encoding} text"
                        raise PlainText.NotText(
                            f"{where}: {byte}; give the right one, such as --encoding latin-1"
                        ) from None
                yield line
                number, line = number + 1, ""
            if line:
                yield line

    def full_text(self) -> str:
        """The whole file as one string."""
        return "".join(self.lines())


def _detected_encoding(start: bytes, lines: Sequence[bytes]) -> str | None:
    """The encoding of a file, judged by its beginning and some lines beyond ASCII; None if it is damaged UTF-8 or nothing is
    likely."""
    if start.startswith(
        (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
    ):  # first: its mark begins with that of UTF-16
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if (
        start[1::2].count(0) > len(start) / 4 or start[::2].count(0) > len(start) / 4
    ):  # ASCII in UTF-16 without a mark
        return "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"
    odd = []
    for line in lines[:2000]:
        try:
            line.decode()
        except UnicodeDecodeError:
            odd.append(line)
    if len(odd) <= min(len(lines), 2000) / 2:
        return None
    from charset_normalizer import from_bytes

    # those that spreadsheets and old systems write; between others a guess would be too uncertain
    likely = "cp1252 cp1250 cp1251 koi8_r cp1253 cp1254 cp1255 cp1256 shift_jis euc_jp gb18030 big5 euc_kr".split()
    # a signature of the file would be looked for in vain, as these are lines out of its middle
    joined = b"\n".join(odd)[:50_000]
    best = from_bytes(joined, cp_isolation=likely, preemptive_behaviour=False).best()
    # in Latin letters: the encoding in which most letters beyond ASCII are those of one language, and none breaks a word
    plain = sum(97 <= byte | 32 <= 122 for byte in joined)
    if plain <= 2 * sum(byte > 127 for byte in joined):
        return best.encoding if best else None

    def score(encoding: str) -> float:
        text = f" {joined.decode(encoding, 'replace')} "
        near = [(text[i - 1], c, text[i + 1]) for i, c in enumerate(text) if not c.isascii()]
        letters = [
            c.lower() for a, c, b in near if c.isalpha() and not (c.isupper() and a.islower())
        ]
        marks = sum(
            c in _WESTERN_MARKS and (c == "’" or not (a.isalpha() and (b.isalpha() or c in "‚„¿¡")))
            for a, c, b in near
        )
        return (marks + max(sum(c in alphabet for c in letters) for alphabet in _ALPHABETS)) / max(
            len(near), 1
        )

    found = max(
        ("cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257", "iso8859_15", "mac_roman", "cp850"),
        key=score,
    )
    return found if score(found) > 0.5 or best is None else best.encoding
