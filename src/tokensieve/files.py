"""Files: read only if that comes to an end; written all or none; safe tables; temporary files."""

from __future__ import annotations

import atexit
import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tokensieve.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse as sp

Content = str | bytes | Callable[[Path], None]

MEGABYTE = 10**6  # bytes
# JSON takes up to twenty times its size in memory
MAX_SIZE = 2**26  # bytes: 64 MiB
MAX_SIZE_OF_RESULT = 2**31  # bytes; a table of tokens is read in parts
STAGING = ".tokensieve-"  # names of folders for files that are not in their place yet
SUMS = "SHA256SUMS"  # of all files of a result, as `sha256sum --check` reads it
MAX_WAIT = 10.0  # seconds for another run that writes into the same folder; most write for less
PAUSE = 0.01  # seconds between two tries
MAX_DEPTH = 500  # folders above one another, as Python's own recursion would end
# characters that no file system, or no reader of its name, can take
_NO_FOLDER_NAME = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # a disk, a quota, a file


def read_regular(path: Path, links: bool = False, limit: int = MAX_SIZE) -> bytes:
    """Content of a regular file, so that reading ends: no FIFO, device or socket is opened.

    Every file that a user names, or that lies in a folder that a user names, is read by this
    function (large sources of documents are read in parts by `tokensieve.read.formats`, with limits
    of their own).

    Args:
        links: follow symbolic links.
        limit: in bytes.

    Raises:
        InputError: the path is a link or no regular file, or the file is larger than the limit.
        OSError: it is missing or cannot be read.
    """
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is not a file name: it contains a null character")
    if (path.is_symlink() and not links) or (path.exists() and not path.is_file()):
        raise InputError(
            f"{str(path)!r} cannot be read: it is a link, device or pipe, not a regular file"
        )
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{str(path)!r} cannot be read: not a regular file")
        if status.st_size > limit:
            n_megabytes = status.st_size // MEGABYTE
            raise InputError(
                f"{str(path)!r} cannot be read: {n_megabytes:,} MB is too large for this kind of "
                "file"
            )
        if not status.st_size:  # as those in /proc and /sys, of which some have no end
            return b""
        return file.read()


def parsed(content: bytes) -> Any:
    """UTF-8 JSON, strictly.

    Raises:
        ValueError: it is not JSON, or has NaN, numbers too large for a float, a name twice, or deep
            nesting.
    """
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_finite,
            parse_float=_finite,
            object_pairs_hook=_without_repeats,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_text(content: object) -> str:
    """JSON as the files of results hold it: letters of all scripts as they are, indented.

    A number that is not known (nan, such as the accuracy on no document) is null, since JSON has no
    word for it and `parsed` refuses what Python would write.
    """
    return json.dumps(_without_nan(content), ensure_ascii=False, indent=1, allow_nan=False)


def _without_nan(content: object) -> object:
    if isinstance(content, Mapping):
        return {name: _without_nan(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written} is not a finite number")
    return number


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return dict(pairs)


def check_writable(folder: Path, audit: bool = False, model: bool = False) -> None:
    """Make sure, before any work is done, that files can be written into the folder.

    It, and the folders that hold it, need not exist. It may hold an audit or a model only if that
    is what will be written (`audit`, `model`). What a killed run left half-written is removed.

    Raises:
        InputError: they cannot, or another run is writing there.
    """
    if len(folder.parts) > MAX_DEPTH or _NO_FOLDER_NAME.search(str(folder)):
        raise InputError(f"--out {str(folder)[:80]!r} cannot be the name of a folder; name another")
    with _writing(folder):
        if not audit:
            _check_not_replaced(folder, model)
        nearest = next(
            place
            for place in (folder, *folder.absolute().parents)
            if place.exists() or place.is_symlink()
        )
        if not nearest.exists():
            raise InputError(f"{str(nearest)!r} is a link that leads nowhere; name another --out")
        if not nearest.is_dir():
            raise InputError(f"{str(nearest)!r} is a file; name a folder with --out")
        if (folder / f"{STAGING}new").exists():  # of a run that was killed, or is writing just now
            with _staging(folder):
                pass
        # a try says more than permission bits: read-only disks, quotas, root; the file has no name,
        # so that a run that is killed just now leaves nothing
        tempfile.TemporaryFile(dir=nearest).close()


class _OpenFolder:
    """A folder that is open, and is closed once.

    Attributes:
        handle: the number of the open file; None once it is closed.
    """

    def __init__(self, place: Path) -> None:
        self.handle: int | None = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def close(self) -> None:
        handle = self.handle
        self.handle = None
        if handle is not None:
            os.close(handle)


# An interrupt may come between any two steps of Python, also before the `try` that would clean up
# after it. So a folder is listed here before it exists, until it is gone.
_TEMPORARY: set[Path] = set()
_STAGINGS: dict[Path, _OpenFolder | None] = {}  # staging folders, and None until ours is open
_OWNER = os.getpid()  # a forked child has the lists too, but not the folders


def _new_folder(parent: Path, prefix: str) -> Path:
    """A new folder that is removed at the end of the process, or by `_remove_folder` before."""
    folder = parent / f"{prefix}{secrets.token_hex(8)}"
    _TEMPORARY.add(folder)
    folder.mkdir(mode=0o700)
    return folder


def _remove_folder(folder: Path) -> None:
    _uninterrupted(lambda: _remove_tree(folder))
    _TEMPORARY.discard(folder)


@atexit.register
def remove_leftovers() -> None:
    """Remove what interrupted work left behind; at the end of the process, when signals are
    ignored."""
    if os.getpid() != _OWNER:
        return
    for folder in list(_TEMPORARY):
        _remove_folder(folder)
    for place, lock in list(_STAGINGS.items()):
        if lock is not None:
            lock.close()
        _STAGINGS.pop(place, None)
        with suppress(OSError):  # gone
            _remove_unused(place)


def _remove_unused(place: Path) -> None:
    """Remove a staging folder that no run uses."""
    if sys.platform == "win32":
        return
    lock = _OpenFolder(place)
    try:
        if _holds_lock(lock, place):
            _remove_tree(place)
    finally:
        lock.close()


def _remove_tree(folder: Path) -> None:
    """Remove a folder and all that it contains, as far as the system allows.

    Raises:
        KeyboardInterrupt: it may be unfinished.
    """
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        # it ignores all of the system's errors but this one: an interrupt just after it closed the
        # folder makes it close it again, and that error takes the interrupt's place
        raise KeyboardInterrupt from None


def _check_not_replaced(folder: Path, model: bool) -> None:
    """Refuse a folder with an audit, or a model if that is not what will be written."""
    results = {"findings.json": "an audit"}
    if not model:
        results["model.json"] = "a model"
    for name, result in results.items():
        if (folder / name).exists():
            raise InputError(
                f"--out {str(folder)!r} contains {result}, which would be replaced; "
                "name another folder"
            )


def check_sums(folder: Path) -> None:
    """Compare a result with the checksums written with it, if there are any.

    Raises:
        InputError: a file differs; the first one is named.
    """
    try:
        listed = read_regular(folder / SUMS).decode(errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return
    for line in dict.fromkeys(listed):
        expected, _, name = line.partition("  ")
        problem = _difference(folder, name, expected)
        if problem:
            raise InputError(
                f"{str(folder)!r}: {name[:80]!r} {problem}; rerun the command that wrote it, or, "
                f"if you made the change yourself, delete {SUMS} there"
            )


def _difference(folder: Path, name: str, expected: str) -> str:
    """What is wrong with a file of a result; empty if nothing is."""
    if not _stays_inside(folder, name):
        return "lies outside"
    try:
        content = read_regular(folder / name, limit=MAX_SIZE_OF_RESULT)
    except OSError as problem:
        return f"cannot be read ({problem.strerror})"
    if hashlib.sha256(content).hexdigest() != expected:
        return "has changed since the result was written"
    return ""


def write_all(
    folder: Path, files: Mapping[str, Content], ours: str | None = None, sums: bool = False
) -> list[Path]:
    """Write all files, or none: an interrupt leaves either run's files, never some of both.

    The files are first written and synchronised in a folder on the same file system: beside the
    target, which then appears with one rename, or, where the target exists and may be a mount point
    of its own, within it. There each file is renamed into its place, and an interrupt waits for the
    last one. A process that is killed (SIGKILL) in these milliseconds may leave files of two runs;
    `check_sums` then names one of them. Other files in the target are left alone.

    Args:
        folder: the target, made if missing.
        files: name, with "/" for subfolders → text (written as UTF-8, lone surrogates as
            `\\udXXX`), bytes, or a function that writes the path it is given.
        ours: a regular expression for names, such as "pictures/.*\\.svg". What has such a name and
            is not among `files` was left by an earlier run and would contradict this one: it is
            removed.
        sums: also write the checksums that `check_sums` compares.

    Returns:
        The paths written, in the order of `files`.

    Raises:
        InputError: the disk refuses, or another run is writing there.
    """
    check_writable(folder, audit=True)
    for name in files:
        if not _stays_inside(folder, name) or (folder / name).is_dir():
            raise InputError(
                f"cannot write {name!r} in {str(folder)!r}: it is a folder or lies outside; "
                "use another name"
            )
    size = sum(len(content) for content in files.values() if isinstance(content, str | bytes))
    with _writing(folder, size):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _staging(folder) as staging:
            names = _write_files(staging / "files", files, sums)
            if staging.parent == folder:
                stale = _stale_names(folder, names, ours)
                _uninterrupted(lambda: _move_into_place(staging / "files", folder, names, stale))
            else:
                os.replace(staging / "files", folder)
    return [folder / name for name in names]


def _write_files(place: Path, files: Mapping[str, Content], sums: bool) -> list[str]:
    """Write the files, and their checksums; all names."""
    place.mkdir()
    for name, content in files.items():
        _write(place / name, content)
    if not sums:
        return list(files)
    digests = {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in files}
    _write(place / SUMS, "".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    return [*files, SUMS]


def _write(path: Path, content: Content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if callable(content):
        content(path)
    elif isinstance(content, str):
        path.write_bytes(content.encode("utf-8", "backslashreplace"))
    else:
        path.write_bytes(content)
    with path.open("rb+") as written:  # the disk may refuse only now
        os.fsync(written.fileno())


def _stale_names(folder: Path, names: Sequence[str], ours: str | None) -> list[str]:
    """Names in the folder that an earlier run left and that this one does not write."""
    if ours is None:
        return []
    present = [path for path in folder.glob("*") if not path.name.startswith(STAGING)]
    present += [content for path in present for content in path.glob("*")]
    stale = []
    for path in present:
        name = path.relative_to(folder).as_posix()
        is_left = re.fullmatch(ours, name) and name not in names and path.is_file()
        if is_left and _stays_inside(folder, name):
            stale.append(name)
    return stale


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """The one folder for files that are not in their place yet; gone at the end, unless killed.

    What a killed run left in it is removed.

    Raises:
        InputError: another run is using it.
    """
    place = _staging_place(folder)
    lock = _locked(place, folder)
    if place != _staging_place(folder):  # the run that we waited for has made the folder
        _release(place, lock)
        place = _staging_place(folder)
        lock = _locked(place, folder)
    try:
        for path in place.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        yield place
    finally:
        _release(place, lock)


def _staging_place(folder: Path) -> Path:
    """Within the folder; beside it as long as it does not exist."""
    if folder.is_dir():
        return folder / f"{STAGING}new"
    digest = hashlib.sha256(folder.name.encode("utf-8", "surrogateescape")).hexdigest()
    return folder.parent / f"{STAGING}{digest[:16]}"  # a name as long as any file's may be too long


def _release(place: Path, lock: _OpenFolder | None) -> None:
    """Remove a staging folder, and let others have it."""
    if lock is not None and lock.handle is None:  # `remove_leftovers` came first
        return
    _uninterrupted(lambda: _remove_tree(place))
    _STAGINGS.pop(place, None)
    if lock is not None:
        lock.close()


def _locked(place: Path, folder: Path) -> _OpenFolder | None:
    """Make the staging folder if it is missing, and lock it for this process.

    The system releases the lock when the process ends. None on a system without such locks.
    """
    end = time.monotonic() + MAX_WAIT
    while time.monotonic() < end:
        _STAGINGS[place] = None
        with suppress(FileExistsError):
            place.mkdir()
        if sys.platform == "win32":
            return None
        with suppress(FileNotFoundError):  # the run before has just removed it
            lock = _OpenFolder(place)
            _STAGINGS[place] = lock
            if _holds_lock(lock, place):
                return lock
            _STAGINGS.pop(place, None)
            lock.close()
        time.sleep(PAUSE)
    raise InputError(
        f"another run is writing to {str(folder)!r}; wait for it, or choose another --out"
    )


def _holds_lock(lock: _OpenFolder, place: Path) -> bool:
    """Whether the lock on an open folder could be had, and the folder is still in its place."""
    import fcntl

    handle = lock.handle
    if handle is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a disk without locks
        return True
    try:
        return os.path.samestat(os.fstat(handle), place.stat())
    except FileNotFoundError:
        return False


def _move_into_place(
    written: Path, folder: Path, names: Sequence[str], stale: Sequence[str]
) -> None:
    """Move the files that are still in `written` into the folder, and remove stale ones there.

    It may be called any number of times.
    """
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (written / name).exists():
            os.replace(written / name, folder / name)
    for name in stale:
        path = folder / name
        path.unlink(missing_ok=True)
        if path.parent != folder and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()


def _uninterrupted(work: Callable[[], None]) -> None:
    """Do what may be done any number of times until it is done; interrupts wait for that."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            work()
            break
        except KeyboardInterrupt as problem:
            interrupt = problem
    if interrupt is not None:
        raise interrupt


def _stays_inside(folder: Path, name: object) -> bool:
    """Whether a name stays within its folder: no folder in it is a link or leads up."""
    if not isinstance(name, str) or "\0" in name:
        return False
    path = Path(name)
    if path.is_absolute() or path.as_posix() != name:
        return False
    with suppress(OSError, RuntimeError):  # links in a circle
        return (folder / path).parent.resolve() == folder.resolve() / path.parent
    return False


@contextmanager
def _writing(folder: Path, size: int = 0) -> Iterator[None]:
    """Say in one line why the operating system refused, and what room was needed."""
    try:
        yield
    except OSError as problem:
        needed = ""
        advice = "name another folder"
        if problem.errno in _DISK_IS_FULL:
            advice = "free some space or name another folder"
            if size:
                needed = f" ({size / MEGABYTE:,.1f} MB are needed)"
        raise InputError(
            f"cannot write to {str(folder)!r}: {problem.strerror or problem}{needed}; "
            f"{advice} with --out"
        ) from None


def csv_table(frame: pl.DataFrame) -> bytes:
    """The frame as UTF-8 CSV that a spreadsheet reads as text and numbers, never as formulas.

    A text cell or column name that starts with = + - @ ' tab or carriage return, and is no number,
    gets one leading apostrophe. To read a cell back, strip one leading apostrophe. All other
    characters, control characters included, stay as they are, in quotes where CSV asks for them; an
    empty text is "", a missing one is nothing.
    """
    names = pl.DataFrame({"": frame.columns}, schema={"": pl.String}).select(_as_text(pl.col("")))
    text = _as_text(pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String))
    table = io.BytesIO()
    safe_names = dict(zip(frame.columns, names[""], strict=True))
    frame.with_columns(text).rename(safe_names).write_csv(table)
    return table.getvalue()


def _as_text(cell: pl.Expr) -> pl.Expr:
    """The cell, with an apostrophe before what a spreadsheet would calculate."""
    is_number = cell.str.contains(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    is_harmless = ~cell.str.contains(r"^[=+\-@\t\r']")
    return pl.when(is_number | is_harmless).then(cell).otherwise(pl.lit("'") + cell)


class Folder:
    """A temporary folder, inside another if given, that lives as long as an object that refers to
    it, or as the process.
    """

    def __init__(self, inside: str | None = None) -> None:
        with Folder.storing():
            self.path = _new_folder(Path(inside or tempfile.gettempdir()), "tokensieve-")
        self._files = 0
        weakref.finalize(self, _remove_folder, self.path)

    @staticmethod
    @contextmanager
    def storing(needed: int | None = None) -> Iterator[None]:
        """Report in one line why temporary files, which may take this many bytes, cannot be
        written.
        """
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as problem:
            reason = getattr(problem, "strerror", None)
            if reason is None:  # Polars has no number of the error
                reason = "no space left, or a limit on the size of files"
            size = ""
            if needed is not None:
                size = f", which need up to {max(needed, MEGABYTE) / (1000 * MEGABYTE):.3f} GB"
            raise InputError(
                f"cannot write temporary files in {tempfile.gettempdir()!r}{size} ({reason}): free "
                "some space, or set TMPDIR to a folder on a larger disk"
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

    def matrix(
        self, blocks: Iterable[sp.csr_array], n_columns: int, max_entries: int
    ) -> sp.csr_array:
        """A CSR matrix from blocks of its rows, in files that are mapped into memory.

        It stays readable when the folder is gone. `max_entries` bounds the stored entries; beyond
        2³¹, positions need eight bytes instead of four.
        """
        import numpy as np
        import scipy.sparse as sp

        position = np.dtype(np.int32 if max_entries < 2**31 else np.int64)
        size = max_entries * (position.itemsize + 8)
        indices_path = self.save([])
        data_path = self.save([])
        starts = [np.zeros(1, np.int64)]
        for block in blocks:
            with Folder.storing(size), indices_path.open("ab") as file:
                block.indices.astype(position, copy=False).tofile(file)
            with Folder.storing(size), data_path.open("ab") as file:
                block.data.astype(np.float64, copy=False).tofile(file)
            starts.append(starts[-1][-1] + block.indptr[1:].astype(np.int64))
        indptr = np.concatenate(starts).astype(position)
        n_rows = len(indptr) - 1
        if not indptr[-1]:
            return sp.csr_array((n_rows, n_columns))
        # copy-on-write, so that the arrays are of the same type to compiled kernels as those in
        # memory
        indices = np.memmap(indices_path, position, "c")
        data = np.memmap(data_path, np.float64, "c")
        return sp.csr_array((data, indices, indptr), shape=(n_rows, n_columns))
