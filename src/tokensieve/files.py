"""Files: read only if that must come to an end; written all or none; tables that are safe in a spreadsheet; temporary ones."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import polars as pl

from tokensieve.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse as sp

Content = str | bytes | Callable[[Path], None]

STAGING = ".tokensieve-"
_WAIT = 60  # seconds for another run that writes into the same folder
_SUMS = "SHA256SUMS"  # of all files of a result, as `sha256sum --check` reads it
LOCK, JOURNAL = "lock", "journal.json"  # in such a folder


def read_regular(path: Path, links: bool = False, limit: int = 2**26) -> bytes:
    """Content of a regular file, so that reading ends: no FIFO, device or socket is opened.

    Every file that a user names, or that lies in a folder that a user names, is read by this function (large sources of documents
    are read in parts by `tokensieve.read.formats`, with limits of their own). `links`: follow symbolic links; `limit`: in bytes, by
    default 64 MiB, since JSON takes up to twenty times its size in memory.

    Raises:
        InputError: the path is a link or no regular file, or the file is larger than the limit.
        OSError: it is missing or cannot be read.
    """
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is not a file name: it contains a null character")
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if (path.is_symlink() and not links) or (path.exists() and not path.is_file()):
        raise InputError(
            f"{str(path)!r} cannot be read: it is a link, device or pipe, not a regular file"
        )
    with open(os.open(path, flags | (0 if links else getattr(os, "O_NOFOLLOW", 0))), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{str(path)!r} cannot be read: not a regular file")
        if status.st_size > limit:
            raise InputError(
                f"{str(path)!r} cannot be read: {status.st_size / 1e6:,.0f} MB is too large for this kind of file"
            )
        return (
            file.read() if status.st_size else b""
        )  # as those in /proc and /sys, of which some have no end


def parsed(content: bytes) -> Any:
    """UTF-8 JSON, strictly: NaN, numbers too large for a float, a name twice and deep nesting are a ValueError."""

    def finite(written: str) -> float:
        if not math.isfinite(float(written)):
            raise ValueError(f"{written} is not a finite number")
        return float(written)

    def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name occurs twice in one object")
        return dict(pairs)

    try:
        text = content.decode("utf-8")
        return json.loads(
            text, parse_constant=finite, parse_float=finite, object_pairs_hook=without_repeats
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_writable(folder: Path, audit: bool = False, model: bool = False) -> None:
    """Make sure, before any work is done, that files can be written into the folder, or it and those that hold it be made.

    It may hold an audit or a model only if that is what will be written (`audit`, `model`).
    """
    if len(folder.parts) > 500 or re.search("[\0\ud800-\udc7f\udd00-\udfff]", str(folder)):
        raise InputError(f"--out {str(folder)[:80]!r} cannot be the name of a folder; name another")
    with _writing(folder):
        theirs = (
            {"findings.json": "an audit"}
            if model
            else {"findings.json": "an audit", "model.json": "a model"}
        )
        for holds, what in theirs.items() if not audit else ():
            if (folder / holds).exists():
                raise InputError(
                    f"--out {str(folder)!r} contains {what}, which would be replaced; name another folder"
                )
        home = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        if not home.is_dir():
            raise InputError(f"{str(home)!r} is a file; name a folder with --out")
        with _exclusive_turn(folder):
            _finish_earlier(folder)
        # a try says more than permission bits: read-only disks, quotas, root
        tempfile.TemporaryDirectory(prefix=STAGING, dir=home).cleanup()


def check_sums(folder: Path) -> None:
    """Compare a result with the checksums written with it, if there are any; an `InputError` names the first file that differs."""
    try:
        listed = read_regular(folder / _SUMS).decode(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return
    for line in dict.fromkeys(listed):
        sum_, _, name = line.partition("  ")
        what = "" if _stays_inside(folder, name) else "lies outside"
        try:
            if (
                not what
                and hashlib.sha256(read_regular(folder / name, limit=2**31)).hexdigest() != sum_
            ):
                what = "has changed since the result was written"
        except OSError as problem:
            what = f"cannot be read ({problem.strerror})"
        if what:
            raise InputError(
                f"{str(folder)!r}: {name[:80]!r} {what}; rerun the command that wrote it, or, if you made the change "
                f"yourself, delete {_SUMS} there"
            )


def write_all(
    folder: Path, files: Mapping[str, Content], ours: str | None = None, sums: bool = False
) -> list[Path]:
    """Write all files, or none: each is whole at any moment, and an interrupt leaves either run's files, never some of both.

    The files are first written and synchronised in a temporary folder on the same file system: beside the target, which then
    appears with one rename, or, where the target exists and may be a mount point of its own, within it; then each file is
    renamed, and an interrupt waits for the last one. A journal is written before the first rename: if the process is killed
    between two of them, the next run that writes there finishes the work (`_finish_earlier`). Of several runs that write there
    at the same time, one renames after the other: the files are those of the last. Other files in the target are left alone.

    Args:
        folder: the target, made if missing.
        files: name, with "/" for subfolders → text (written as UTF-8, lone surrogates as `\\udXXX`), bytes, or a
            function that writes the path it is given.
        ours: a regular expression for names, such as "pictures/.*\\.svg". What has such a name and is not among `files` was left
            by an earlier run and would contradict this one: it is removed.
        sums: also write the checksums that `check_sums` compares.

    Returns:
        The paths written, in the order of `files`.
    """
    check_writable(folder, audit=True)
    for name in files:
        if not _stays_inside(folder, name) or (folder / name).is_dir():
            raise InputError(
                f"cannot write {name!r} in {str(folder)!r}: it is a folder or lies outside; use another name"
            )
    home = folder if folder.is_dir() else folder.parent
    with _writing(folder):
        home.mkdir(parents=True, exist_ok=True)
    room = sum(len(content) for content in files.values() if isinstance(content, str | bytes))
    with _writing(folder, room), _staged(home) as staging:
        new = staging / "new"
        new.mkdir()
        for name, content in files.items():
            _write(new / name, content)
        if sums:
            lines = [
                f"{hashlib.sha256((new / name).read_bytes()).hexdigest()}  {name}\n"
                for name in files
            ]
            _write(new / _SUMS, "".join(lines))
        if home != folder:
            try:
                os.replace(new, folder)
                return [folder / name for name in [*files, *[_SUMS] * sums]]
            except OSError:
                if not folder.is_dir():
                    raise
            return write_all(folder, files, ours, sums)  # another run has just made the folder
        with _exclusive_turn(folder):
            _finish_earlier(folder)  # what another run that was killed meanwhile has left
            # names in the folder that an earlier run left and that this one does not write
            present = []
            for path in folder.iterdir():
                if not path.name.startswith(
                    STAGING
                ):  # those of other runs may vanish at any moment
                    present += [
                        path.name,
                        *(f"{path.name}/{inside.name}" for inside in path.glob("*")),
                    ]
            stale = [
                one
                for one in present
                if ours and re.fullmatch(ours, one) and (folder / one).is_file()
            ]
            stale = [one for one in stale if _stays_inside(folder, one)]
            journal = {
                "files": [*files, *[_SUMS] * sums],
                "stale": [name for name in stale if name not in files],
            }
            _write(staging / "unfinished", json.dumps(journal))
            os.rename(
                staging / "unfinished", staging / JOURNAL
            )  # from here on the next run would finish the work
            _uninterrupted(lambda: _move_into_place(staging))
    return [folder / name for name in [*files, *[_SUMS] * sums]]


def _finish_earlier(folder: Path) -> None:
    """Finish what an earlier run that was killed had begun to put into the folder, and remove what others left unfinished there.

    A run holds a lock on what it writes as long as it lives, so that nothing is taken from under it.
    """
    for home in (folder, folder.absolute().parent):
        for staging in home.glob(f"{STAGING}*") if home.is_dir() else ():
            elsewhere = (
                home != folder and (staging / JOURNAL).is_file()
            )  # left to runs that write there
            if elsewhere or staging.is_symlink() or not (staging / LOCK).is_file():
                continue
            with (
                suppress(OSError, ValueError, KeyError, TypeError),
                open(staging / LOCK, "rb+") as lock,
            ):
                # a journal here is of a run whose turn is over: it is ending, and its lock may be released later than its turn
                if not _locked(lock, _WAIT * (home == folder and (staging / JOURNAL).is_file())):
                    continue
                if (staging / JOURNAL).is_file():
                    _move_into_place(staging)
                shutil.rmtree(staging)


@contextmanager
def _staged(home: Path) -> Iterator[Path]:
    """A locked folder for files that are not in their place yet; gone at the end, unless the process is killed."""
    staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=home))
    try:
        with open(staging / "new.lock", "xb") as lock:
            with suppress(OSError):  # a disk without locks
                _locked(lock)
            os.rename(
                staging / "new.lock", staging / LOCK
            )  # another run that finds it finds it locked
            yield staging
    finally:
        _uninterrupted(lambda: shutil.rmtree(staging, ignore_errors=True))


@contextmanager
def _exclusive_turn(folder: Path) -> Iterator[None]:
    """Only one process at a time renames files in the folder; others wait, unless the system has no such locks."""
    if sys.platform == "win32" or not folder.is_dir():
        yield
        return
    path, held = folder / f"{STAGING}turn", False
    try:
        while not held:
            handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW)
            free = True
            with suppress(OSError):  # a disk without locks
                free = _locked(handle, _WAIT)
            with suppress(FileNotFoundError):  # the run before removed it
                held = free and os.path.samestat(os.fstat(handle), path.stat())
            if not held:
                os.close(handle)
            if not free:
                raise InputError(
                    f"another run keeps writing to {str(folder)!r}; end it, or choose another --out"
                )
        yield
    finally:
        if held:
            with suppress(OSError):
                _uninterrupted(lambda: path.unlink(missing_ok=True))
            os.close(handle)


def _uninterrupted(work: Callable[[], None]) -> None:
    """Do what may be done any number of times until it is done; interrupts, of which there may be several, wait for that."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            work()
            break
        except KeyboardInterrupt as problem:
            interrupt = problem
    if interrupt is not None:
        raise interrupt


def _locked(file: IO[bytes] | int, wait: float = 0) -> bool:
    """Lock the file for this process; false where another one holds it, for all the seconds to wait. The system releases it when
    the process ends."""
    end = time.monotonic() + wait
    while True:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks: what is older than a day belongs to nobody
            handle = file if isinstance(file, int) else file.fileno()
            return time.time() - os.fstat(handle).st_mtime > 86_400
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
        else:
            return True


def _stays_inside(folder: Path, name: object) -> bool:
    """Whether a name stays within the folder that it is used in: no folder in it is a link or leads up."""
    if (
        not isinstance(name, str)
        or "\0" in name
        or Path(name).is_absolute()
        or Path(name).as_posix() != name
    ):
        return False
    with suppress(OSError, RuntimeError):  # links in a circle
        return (folder / name).parent.resolve() == folder.resolve() / Path(name).parent
    return False


def csv_table(frame: pl.DataFrame) -> bytes:
    """The frame as UTF-8 CSV that a spreadsheet reads as text and numbers, never as formulas.

    A text cell or column name that starts with = + - @ ' tab or carriage return, and is no number, gets one leading
    apostrophe. To read a cell back, strip one leading apostrophe. All other characters, control characters included,
    stay as they are, in quotes where CSV asks for them; an empty text is "", a missing one is nothing.
    """

    def as_text(cell: pl.Expr) -> pl.Expr:
        number = cell.str.contains(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
        return (
            pl.when(number | ~cell.str.contains(r"^[=+\-@\t\r']"))
            .then(cell)
            .otherwise(pl.lit("'") + cell)
        )

    names = pl.DataFrame({"": frame.columns}, schema={"": pl.String}).select(as_text(pl.col("")))
    text = as_text(pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String))
    out = io.BytesIO()
    frame.with_columns(text).rename(dict(zip(frame.columns, names[""], strict=True))).write_csv(out)
    return out.getvalue()


@contextmanager
def _writing(folder: Path, room: int = 0) -> Iterator[None]:
    """Say in one line why the operating system refused, and what room was needed."""
    try:
        yield
    except OSError as problem:
        full = problem.errno in {
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EFBIG,
        }  # of a disk, of a quota, of a file
        needed = f" ({room / 1e6:,.1f} MB are needed)" if full and room else ""
        advice = "free some space or name another folder" if full else "name another folder"
        raise InputError(
            f"cannot write to {str(folder)!r}: {problem.strerror or problem}{needed}; {advice} with --out"
        ) from None


def _write(path: Path, content: Content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if callable(content):
        content(path)
    else:
        path.write_bytes(
            content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        )
    with path.open("rb+") as written:  # the disk may refuse only now
        os.fsync(written.fileno())


def _move_into_place(staging: Path) -> None:
    """Do what the journal says: move what is still in `new`, and remove what is stale; may be called any number of times."""
    folder, new = staging.parent, staging / "new"
    journal = parsed(read_regular(staging / JOURNAL))
    if not all(_stays_inside(folder, name) for name in (*journal["files"], *journal["stale"])):
        raise ValueError("a name in the journal points outside its folder")
    for name in journal["files"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (new / name).exists():
            os.replace(new / name, folder / name)
    for name in journal["stale"]:
        path = folder / name
        path.unlink(missing_ok=True)
        if path.parent != folder and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()


class Folder:
    """A temporary folder, inside another if given, that lives as long as an object that refers to it, or as the process."""

    def __init__(self, inside: str | None = None) -> None:
        with Folder.storing():
            self.path = Path(tempfile.mkdtemp(prefix="tokensieve-", dir=inside))
        self._files = 0
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    @staticmethod
    @contextmanager
    def storing(needed: int | None = None) -> Iterator[None]:
        """Report in one line why temporary files, which may take this many bytes, cannot be written."""
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as problem:
            reason = (
                getattr(problem, "strerror", None)
                or "no space left, or a limit on the size of files"
            )
            room = "" if needed is None else f", which need up to {max(needed, 10**6) / 1e9:.3f} GB"
            raise InputError(
                f"cannot write temporary files in {tempfile.gettempdir()!r}{room} ({reason}): free some space, or set TMPDIR to a "
                "folder on a larger disk"
            ) from None

    def new(self) -> Path:
        """A new, unused path."""
        self._files += 1
        return self.path / f"{self._files:07d}"

    def save(self, blocks: Iterable[bytes]) -> Path:
        """A new file with these bytes."""
        path = self.new()
        with path.open("wb") as file:
            for block in blocks:
                with Folder.storing():
                    file.write(block)
        return path

    @staticmethod
    def holds(array: object) -> bool:
        """Whether an array is a view of a file."""
        while (base := getattr(array, "base", None)) is not None:
            array = base
        return isinstance(array, mmap)

    def matrix(self, blocks: Iterable[sp.csr_array], columns: int, most: int) -> sp.csr_array:
        """A CSR matrix from blocks of its rows, in files that are mapped into memory and stay readable when their folder is gone.

        `most` bounds the stored entries; beyond 2³¹ positions need eight bytes instead of four.
        """
        import numpy as np
        import scipy.sparse as sp

        kind = np.dtype(np.int32 if most < 2**31 else np.int64)
        paths, starts = (self.save([]), self.save([])), [np.zeros(1, np.int64)]
        for block in blocks:
            entries = (
                block.indices.astype(kind, copy=False),
                block.data.astype(np.float64, copy=False),
            )
            for path, values in zip(paths, entries, strict=True):
                with Folder.storing(most * (kind.itemsize + 8)), path.open("ab") as file:
                    values.tofile(file)
            starts.append(starts[-1][-1] + block.indptr[1:].astype(np.int64))
        ends = np.concatenate(starts).astype(kind)
        if not ends[-1]:
            return sp.csr_array((len(ends) - 1, columns))
        # copy-on-write, so that the arrays are of the same type to compiled kernels as those in memory
        indices, data = np.memmap(paths[0], kind, "c"), np.memmap(paths[1], np.float64, "c")
        return sp.csr_array((data, indices, ends), shape=(len(ends) - 1, columns))
