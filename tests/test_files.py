"""Files are written whole or not at all; tables open in a spreadsheet without running anything."""

from __future__ import annotations

import ast
import csv
import errno
import hashlib
import io
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokensieve
from calls import fast_first
from tokensieve.errors import InputError
from tokensieve.files import (
    STAGING,
    SUMS,
    Folder,
    check_sums,
    check_writable,
    csv_table,
    json_text,
    parsed,
    read_regular,
    remove_leftovers,
    write_all,
)

quick = settings(deadline=None, derandomize=True)
cells = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(
        [
            "=cmd()",
            "+1",
            "-a",
            "-1e5",
            "@x",
            "\tq",
            "\rz",
            "'a",
            "''",
            "<script>",
            'q"',
            "a,b",
            "\u202eabc",
            "",
            "\0",
        ]
    ),
)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b""
        for p in sorted(folder.rglob("*"))
    }


def writing(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def raising(problem: BaseException) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(b"half")
        raise problem

    return write


def test_writes_text_bytes_and_what_functions_write(tmp_path: Path) -> None:
    out = tmp_path / "out"
    paths = write_all(
        out, {"a.txt": "é\n\ud800", "pictures/b.svg": b"\0\1", "pictures/deep/c": writing(b"c")}
    )
    assert tree(out) == {
        "a.txt": b"\xc3\xa9\n\\ud800",
        "pictures": b"",
        "pictures/b.svg": b"\0\1",
        "pictures/deep": b"",
        "pictures/deep/c": b"c",
    }
    assert paths == [out / "a.txt", out / "pictures/b.svg", out / "pictures/deep/c"]
    assert os.listdir(tmp_path) == ["out"]


def test_existing_folder_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a").write_text("old")
    write_all(tmp_path, {"a": "new", "b": "b"})
    assert tree(tmp_path) == {"a": b"new", "b": b"b", "mine": b"mine"}


def test_files_of_an_earlier_run_go_and_those_of_others_stay(tmp_path: Path) -> None:
    ours = r"extra\.csv|pictures/(top|value)\.(svg|png)"
    first = {"a": "a", "extra.csv": "", "pictures/top.svg": "", "pictures/value.png": ""}
    write_all(tmp_path, first | {"extra.csv.mine": "", "pictures/top.txt": "", "top.svg": ""}, ours)
    write_all(tmp_path, {"a": "b", "pictures/value.png": "new"}, ours)
    kept = {
        "a": b"b",
        "extra.csv.mine": b"",
        "pictures": b"",
        "pictures/top.txt": b"",
        "pictures/value.png": b"new",
    }
    assert tree(tmp_path) == kept | {"top.svg": b""}
    (tmp_path / "pictures" / "top.txt").unlink()
    write_all(tmp_path, {"a": "c"}, ours)
    assert tree(tmp_path) == {"a": b"c", "extra.csv.mine": b"", "top.svg": b""}


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize(
    "problem",
    [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError("bug")],
)
def test_nothing_changes_when_writing_fails(
    tmp_path: Path, existing: bool, problem: BaseException
) -> None:
    out = tmp_path / "out"
    if existing:
        out.mkdir()
        (out / "a").write_text("old")
    before = tree(tmp_path)
    expected = InputError if isinstance(problem, OSError) else type(problem)
    with pytest.raises(expected) as caught:
        write_all(out, {"a": "new", "b": raising(problem), "c": "c"})
    assert tree(tmp_path) == before
    if expected is InputError:
        assert "No space left on device" in str(caught.value) and "\n" not in str(caught.value)


NEW = {"a": "new", "sub/b": "new b", "sub/new/c": "c", "d": "d"}


def failing_move(
    monkeypatch: pytest.MonkeyPatch, fails_at: int, problem: BaseException, before: bool
) -> None:
    """The rename of that number fails before or, as an interrupt can, just after it has
    happened."""
    moves, move = 0, os.replace

    def failing(source: Path, target: Path) -> None:
        nonlocal moves
        moves += 1
        if moves == fails_at and before:
            raise problem
        move(source, target)
        if moves == fails_at:
            raise problem

    monkeypatch.setattr(os, "replace", failing)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("fails_at", range(1, 5))
def test_an_interrupt_between_renames_leaves_no_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int, before: bool
) -> None:
    write_all(tmp_path / "out", {"a": "old", "sub/b": "old b", "stale": "", "mine": "mine"})
    write_all(tmp_path / "expected", {**NEW, "mine": "mine"})
    failing_move(monkeypatch, fails_at, KeyboardInterrupt(), before)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path / "out", NEW, ours="stale")
    assert tree(tmp_path / "out") == tree(tmp_path / "expected")


@pytest.mark.parametrize("name", ["a/" * 1_500, "nul\0", "\ud800"])
def test_a_name_that_no_folder_can_have_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a folder"):
        write_all(Path(name), {"a": "a"})


def test_a_second_interrupt_while_the_first_one_waits_leaves_no_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path / "out", {"a": "old", "sub/b": "old b"})
    write_all(tmp_path / "expected", NEW)
    for fails_at in (2, 3, 4):  # each counts from the renames that are left
        failing_move(monkeypatch, fails_at, KeyboardInterrupt(), before=True)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path / "out", NEW)
    assert tree(tmp_path / "out") == tree(tmp_path / "expected")


def test_what_a_killed_run_left_unfinished_goes(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from tokensieve.files import write_all
write_all(Path({str(tmp_path)!r}), {{"a": "new", "b": lambda path: os.kill(os.getpid(), signal.SIGKILL)}})
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.glob(f"{STAGING}*"))) == 1
    write_all(tmp_path, {"a": "a", "b": writing(b"b")})
    assert tree(tmp_path) == {"a": b"a", "b": b"b"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_a_link_in_the_place_of_unfinished_files_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f"{STAGING}new").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="cannot write to"):
        write_all(tmp_path / "out", {"a": "a"})
    assert tree(tmp_path / "mine") == {"precious": b"mine"}


def test_a_link_that_leads_nowhere_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for folder in (tmp_path / "link", tmp_path / "link" / "out"):
        with pytest.raises(InputError, match="leads nowhere"):
            check_writable(folder)


def test_links_within_a_folder_do_not_lead_outside(tmp_path: Path) -> None:
    """As in a result that someone else has made: neither writing nor the checksums follow them."""
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("mine")
    (out / "pictures").symlink_to(tmp_path / "mine")
    write_all(out, {"a": "a"}, ours="pictures/precious")
    with pytest.raises(InputError, match="lies outside"):
        write_all(out, {"pictures/precious": "x"})
    assert tree(tmp_path / "mine") == {"precious": b"mine"}
    (out / "l").symlink_to(out)  # a loop, which could make any number of names of one file
    for name in ("l/a", "./a"):
        (out / "SHA256SUMS").write_text(
            "".join(f"{hashlib.sha256(b'a').hexdigest()}  {one}\n" for one in ("a", name))
        )
        with pytest.raises(InputError, match=f"'{name}' lies outside"):
            check_sums(out)


@pytest.mark.parametrize("problem", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_a_new_folder_appears_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    failing_move(monkeypatch, 1, problem, before=True)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_all(tmp_path / "out", NEW)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("fails_at", range(1, 5))
def test_a_disk_that_fails_between_renames_leaves_each_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    write_all(tmp_path, {"a": "old", "sub/b": "old b"})
    failing_move(monkeypatch, fails_at, OSError(errno.EIO, "Input/output error"), before=True)
    with pytest.raises(InputError, match="Input/output error"):
        write_all(tmp_path, NEW)
    found = {name: content for name, content in tree(tmp_path).items() if content}
    old = {"a": b"old", "sub/b": b"old b"}
    assert all(content in (old.get(name), NEW[name].encode()) for name, content in found.items())
    assert set(found) >= set(old) and not list(tmp_path.glob(f"{STAGING}*"))


def test_a_full_disk_says_how_much_room_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        InputError, match=r"No space left on device \(2\.5 MB are needed\); free some space"
    ):
        write_all(tmp_path, {"a": "x" * 2_500_000})
    assert os.listdir(tmp_path) == []


def test_refuses_names_that_are_folders_or_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "out" / "sub").mkdir(parents=True)
    for name in ("sub", "../a", "/tmp/a"):
        with pytest.raises(InputError, match="lies outside"):
            write_all(tmp_path / "out", {name: "x"})
    assert os.listdir(tmp_path / "out") == ["sub"]


def test_folders_that_hold_the_target_are_made(tmp_path: Path) -> None:
    write_all(tmp_path / "a" / "b" / "c", {"x/y.txt": "1"})
    assert (tmp_path / "a/b/c/x/y.txt").read_text() == "1" and os.listdir(tmp_path / "a" / "b") == [
        "c"
    ]


def test_check_writable_names_the_reason_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    check_writable(tmp_path)
    check_writable(tmp_path / "new")
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(InputError, match="is a file; name a folder"):
        check_writable(tmp_path / "file")
    check_writable(tmp_path / "no" / "new")  # made when something is written
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(InputError, match="is a file; name a folder"):
        check_writable(tmp_path / "file" / "new")
    with pytest.raises(InputError, match="File name too long"):
        check_writable(tmp_path / ("x" * 300))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        check_writable(tmp_path / "new")


def read_back(table: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(table.decode("utf-8"), newline=""), strict=True))


@quick
@given(st.lists(cells, min_size=1, max_size=20))
def test_csv_cells_come_back_and_no_cell_is_a_formula(values: list[str]) -> None:
    frame = pl.DataFrame(
        {"v": values, "n": range(len(values))}, schema={"v": pl.String, "n": pl.Int64}
    )
    rows = read_back(csv_table(frame))[1:]
    assert [row[0][1:] if row[0].startswith("'") else row[0] for row in rows] == values
    for (cell, _), value in zip(rows, values, strict=True):
        if cell[:1] and cell[0] in "=+-@\t\r":
            assert cell == value and float(cell) is not None  # a number, and left as it was


def test_csv_numbers_categories_missing_values_and_names() -> None:
    frame = pl.DataFrame(
        {
            "=x": ["-1", "+2.5e-3", "-a", None, ""],
            "n": [-1, 2, 3, 4, 5],
            "f": [-0.5, 1.0, 2.0, 3.0, 4.0],
        },
    ).with_columns(c=pl.Series(["@a", "b", "b", "b", "b"], dtype=pl.Enum(["@a", "b"])))
    assert csv_table(frame).decode().splitlines() == [
        "'=x,n,f,c",
        "-1,-1,-0.5,'@a",
        "+2.5e-3,2,1.0,b",
        "'-a,3,2.0,b",
        ",4,3.0,b",
        '"",5,4.0,b',
    ]
    assert csv_table(pl.DataFrame({"a": [1]})) == b"a\n1\n"


def test_what_could_block_or_never_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"{}")
    assert read_regular(tmp_path / "good") == b"{}"
    (tmp_path / "link").symlink_to(tmp_path / "good")
    assert read_regular(tmp_path / "link", links=True) == b"{}"
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, links in (
        ("link", False),
        ("fifo", False),
        ("fifo", True),
        ("zero", False),
        ("zero", True),
        ("\0", False),
    ):
        with pytest.raises(InputError):
            read_regular(tmp_path / name, links)
    with pytest.raises(InputError, match="MB is too large"):
        read_regular(tmp_path / "good", limit=1)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "nothing")


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a": 1e999}',
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b"\xff",
        b"",
        b"1" * 5000,
    ],
)
def test_json_that_is_not_plain_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # each has its own words
        parsed(content)
    assert parsed(b'{"a": [1, 2.5e3, null]}') == {"a": [1, 2500.0, None]}


READS = re.compile(
    r"(^|\.)(read_text|read_bytes|open|memmap|fromfile|load|load_file|from_file|urlopen|from_pretrained|load_dataset|"
    r"(read|scan)_(csv|ndjson|json|parquet|parquet_schema|ipc|ipc_stream|excel|ods|lines))$"
)
MAY_READ = {  # files, or folders, that read otherwise than by `read_regular`, with the reason
    "files.py": "is where that function is; its temporary files",
    "__main__.py": "streams and os.devnull",
    "errors.py": "os.devnull",
    "read/": "documents, in parts with limits of their own, after `check_regular`",
    "model/source_pieces.py": "documents on a cluster, pieces of a regular file",
    "model/partitions.py": "temporary files",
    "cli/command.py": "a file of this package",
    "report/html.py": "a file of this package",
    "report/pictures/child.py": "a pipe from our own process",
    "auditing/checks/registry.py": "code that was installed",
    "auditing/artefacts/score.py": "a file of this package",
    "diagnose/judgement/score.py": "a file of this package",
    "report/widget.py": "a file of this package",
    "auditing/link_report.py": "content that read_regular has read",
    "auditing/saved_audit.py": "content that read_regular has read",
    "cli/mask.py": "content that read_regular has read",
    "auditing/outcomes.py": "content that read_regular has read",
    "model/storage.py": "content that read_regular has read",
    "evidence/duplicates.py": "temporary files",
    "text/": "temporary files",
    "diagnose/subjects/": "models, by the libraries that made them",
    "theory/limit/checker.py": "a script that runs without this package",
    "theory/experiments/": "files of this package; the paper's data sets in a folder that is named",
}


def test_every_file_is_read_through_the_guarded_function() -> None:
    """A file that reads otherwise: use `read_regular`, rather than add it to this list."""
    package = Path(tokensieve.__file__).parent
    others = set()
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)]
        # `checkpoint.load` and what calls it are ours
        ours = re.compile(r"(checkpoints?|disk|bench|self|)\.?load")
        if any(READS.search(call) and not ours.fullmatch(call) for call in calls):
            others.add(path.relative_to(package).as_posix())
    unknown = [name for name in others if not name.startswith(tuple(MAY_READ))]
    assert not unknown, unknown
    unused = [place for place in MAY_READ if not any(name.startswith(place) for name in others)]
    assert not unused, "no longer read: take them off the list"


@pytest.mark.parametrize("place", ["fifo", "/dev/zero", "/proc/kmsg"])
def test_no_reader_opens_what_has_no_end(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of results, of settings that name files, and of a cluster's pieces."""
    from tokensieve.auditing.compare import compare_audits
    from tokensieve.auditing.decisions import read_decisions
    from tokensieve.checkpoint import load
    from tokensieve.model.source_pieces import cut_source
    from tokensieve.model.storage import read_model
    from tokensieve.read.settings import ReadSettings
    from tokensieve.read.sources import open_source
    from tokensieve.text.pieces import PieceTokenizer
    from tokensieve.text.tokenizers import read_stop_words

    monkeypatch.chdir(tmp_path)
    path, audit = Path("endless.json"), Path("audit")
    os.mkfifo(path) if place == "fifo" else path.symlink_to(place)
    audit.mkdir()
    for name in ("summary.json", "findings.json", "model.json", "tokens.csv"):
        (audit / name).symlink_to(path.absolute())
    reads: list[Callable[[], object]] = [
        lambda: read_decisions(path),
        lambda: compare_audits(audit, audit),
        lambda: read_model(audit),
        lambda: load(path, "mark"),
        lambda: PieceTokenizer(path),
        lambda: read_stop_words(path, True),
        lambda: cut_source([path])[0].table(ReadSettings()),
        lambda: open_source(path),
    ]
    for read in reads:
        with pytest.raises(InputError):
            read()


def test_a_result_that_was_changed_is_noticed(tmp_path: Path) -> None:
    paths = write_all(tmp_path / "o", {"a.csv": "a", "sub/b.json": "b"}, sums=True)
    assert [path.name for path in paths] == ["a.csv", "b.json", "SHA256SUMS"]
    check_sums(tmp_path / "o")
    check_sums(tmp_path / "an older result has no checksums")
    (tmp_path / "o" / "a.csv").write_text("A")
    with pytest.raises(
        InputError, match=r"'a.csv' has changed since the result was written; rerun the command"
    ):
        check_sums(tmp_path / "o")
    (tmp_path / "o" / "a.csv").unlink()
    with pytest.raises(InputError, match=r"'a.csv' cannot be read"):
        check_sums(tmp_path / "o")
    (tmp_path / "o" / "SHA256SUMS").write_text("0  ../../etc/passwd\n")
    with pytest.raises(InputError, match="passwd' lies outside"):
        check_sums(tmp_path / "o")


def _write_at(start: float, folder: Path, who: str, refused: Any) -> None:
    time.sleep(max(0.0, start - time.time()))
    try:
        write_all(folder, {f"{i}": who for i in range(15)}, sums=True)
    except InputError as problem:
        refused.put(str(problem))


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_a_second_run_into_the_same_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokensieve.files.MAX_WAIT", 0.05)
    refusals = []

    def write(path: Path) -> None:
        for second in (check_writable, lambda folder: write_all(folder, {"a": "second"})):
            with pytest.raises(InputError, match="another run is writing to") as caught:
                second(tmp_path)
            refusals.append(str(caught.value))
        path.write_text("first")

    write_all(tmp_path, {"a": write})
    assert len(refusals) == 2 and not any("\n" in line for line in refusals)
    assert tree(tmp_path) == {"a": b"first"}


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
@pytest.mark.parametrize("killed", [False, True])
def test_runs_that_write_to_one_folder_at_the_same_time_do_not_mix(
    tmp_path: Path, killed: bool
) -> None:
    """At first the folder is missing, then it exists; one of three may be killed."""
    context = multiprocessing.get_context("fork")
    refused = context.Queue()
    for turn in range(5):
        start = time.time() + 0.05
        runs = [
            context.Process(target=_write_at, args=(start, tmp_path / "o", who, refused))
            for who in "abc"
        ]
        for run in runs:
            run.start()
        if killed:
            time.sleep(max(0.0, start - time.time()) + 0.01 * turn)
            runs[0].kill()
        for run in runs:
            run.join()
        write_all(tmp_path / "o", {"next": ""})
        assert refused.empty(), refused.get()
        assert len({path.read_text() for path in (tmp_path / "o").glob("[0-9]*")}) == 1
        check_sums(tmp_path / "o")
        left = [*(tmp_path / "o").glob(f"{STAGING}*"), *tmp_path.glob(f"{STAGING}*")]
        assert not left, left


class _InterruptAtStep:
    """A tracer that interrupts our file functions, and those that they call, at one of their
    bytecodes.
    """

    def __init__(self, step: int) -> None:
        self.step = step
        self.n_steps = 0

    def __call__(self, frame: Any, event: str, argument: object) -> Any:
        if Path(frame.f_code.co_filename).name not in ("files.py", "shutil.py", "contextlib.py"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.n_steps += 1
            if self.n_steps == self.step:
                raise KeyboardInterrupt
        return self


# a file that was open when the interrupt came is closed by the interpreter, which says so
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("step", fast_first(range(5, 2600, 45), 8))
@pytest.mark.parametrize("is_there", [False, True])
def test_an_interrupt_at_any_step_leaves_all_or_nothing(
    tmp_path: Path, step: int, is_there: bool
) -> None:
    before = {"old.txt": b"old"} if is_there else {}
    if is_there:
        write_all(tmp_path / "out", {"old.txt": "old"})
    tracer = sys.gettrace()
    sys.settrace(_InterruptAtStep(step))
    try:
        write_all(tmp_path / "out", {"a.txt": "a", "b/c.txt": "c"}, sums=True)
        Folder(str(tmp_path))
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(tracer)
    remove_leftovers()  # as at the end of the process
    files = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert not list(tmp_path.rglob(f"{STAGING}*")) and not list(tmp_path.glob("tokensieve-*"))
    written = {"a.txt", "b/c.txt", SUMS}
    assert files == before or files.keys() == written | before.keys()


def test_a_number_that_is_not_known_is_null() -> None:
    content = {"none": float("nan"), "rows": [(1.5, float("inf"))], "name": "ü"}
    written = json_text(content).encode()
    assert parsed(written) == {"none": None, "rows": [[1.5, None]], "name": "ü"}
