"""Interrupts and terminations, whenever they come: one line, status 130 or 143, nothing left
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest

from calls import fast_first
from reviews import write_reviews
from tokensieve.files import STAGING, SUMS, check_sums

BOTH = pytest.mark.parametrize("number", fast_first([SIGINT, SIGTERM]))
WAITING = """
import os, time
import tokensieve.__main__ as way_in
def run():
    os.kill(os.getpid(), {number})
    time.sleep(0.2)
    print("went on")
    return 0
way_in._run = run
way_in.main()
"""


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("nth", "number"),
    fast_first(
        [(30, SIGTERM), (300, SIGINT), *product((1, 30, 120, 300, 500), (SIGINT, SIGTERM))], 2
    ),
)
def test_while_libraries_are_loaded(tmp_path: Path, nth: int, number: signal.Signals) -> None:
    program = f"""
import os, sys
import tokensieve.__main__ as way_in
class Count:
    n = 0
    def find_spec(self, name, path=None, target=None):
        self.n += 1
        if self.n == {nth}:
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Count())
sys.argv = ["tokensieve", "demo"]
way_in.main()
"""
    done = python(program, tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (128 + number, 1), done.stderr
    assert "no incomplete files were left behind" in done.stderr and list(tmp_path.iterdir()) == []


def test_where_compiled_code_calls_back_and_swallows_it(tmp_path: Path) -> None:
    program = """
import ctypes, os, signal
import tokensieve.__main__ as way_in
@ctypes.CFUNCTYPE(None)
def callback():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass
def run():
    callback()
    print("went on", flush=True)
    while True:
        pass
way_in._run = run
way_in.main()
"""
    done = python(program, tmp_path)
    assert (done.stdout, done.returncode) == ("went on\n", 130) and done.stderr.count("\n") == 1


@BOTH
def test_turned_into_another_error_by_a_library(tmp_path: Path, number: signal.Signals) -> None:
    program = f"""
import os
import tokensieve.__main__ as way_in
def run():
    try:
        os.kill(os.getpid(), {int(number)})
        while True:
            pass
    except:
        raise RuntimeError("failed in pass 3")
way_in._run = run
way_in.main()
"""
    done = python(program, tmp_path)
    assert done.returncode == 128 + number and "RuntimeError" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_closed_terminal_and_a_limit_on_processor_time_end_it_as_an_interrupt_does(
    tmp_path: Path,
) -> None:
    """By default the system would end the process at once, and temporary files would stay."""
    # the tests themselves may run under nohup
    heard = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    done = python(heard + WAITING.format(number=int(signal.SIGHUP)), tmp_path)
    assert (done.stdout, done.returncode, done.stderr.count("\n")) == (
        "",
        129,
        1,
    ) and "terminated" in done.stderr
    done = python(WAITING.format(number=int(signal.SIGXCPU)), tmp_path)
    assert (done.stdout, done.returncode, done.stderr.count("\n")) == (
        "",
        152,
        1,
    ) and "CPU time limit" in done.stderr
    ignored = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)" + WAITING.format(
        number=int(signal.SIGHUP)
    )
    assert python(ignored, tmp_path).stdout == "went on\n", "as nohup asks for"


def test_after_the_work_is_done_it_changes_nothing(tmp_path: Path) -> None:
    program = """
import atexit, os, signal
import tokensieve.__main__ as way_in
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
way_in._run = lambda: 3
way_in.main()
"""
    done = python(program, tmp_path)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.slow
@pytest.mark.parametrize("after", fast_first([1.5, 0.5, 2.5]))
def test_interrupt_leaves_nothing_or_everything(tmp_path: Path, after: float) -> None:
    write_reviews(tmp_path / "good.csv", 1000)
    command = [
        sys.executable,
        "-m",
        "tokensieve",
        "audit",
        "good.csv",
        "--ngrams",
        "3",
        "--out",
        "o",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(after)
    process.send_signal(SIGINT)
    _, err = process.communicate(timeout=60)
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert process.returncode == 0 or b"Traceback" not in err
    if names == ["good.csv"]:
        # a compiled library may end the process itself
        assert process.returncode in (130, -SIGINT)
        return
    # everything, whether the interrupt came after the last file or after the end
    assert {"summary.json", SUMS} <= set(names) and not list(tmp_path.rglob(f"{STAGING}*"))
    check_sums(tmp_path / "o")


@pytest.mark.slow
@BOTH
def test_signals_leave_no_temporary_files(tmp_path: Path, number: signal.Signals) -> None:
    write_reviews(tmp_path / "good.csv", 1000)
    (tmp_path / "tmp").mkdir()
    command = [
        sys.executable,
        "-m",
        "tokensieve",
        "train",
        "good.csv",
        "--ngrams",
        "3",
        "--stream",
        "--out",
        "o",
    ]
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list((tmp_path / "tmp").glob("*/*")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number and b"no incomplete files were left behind" in err
    assert list((tmp_path / "tmp").iterdir()) == [] and not (tmp_path / "o").exists()
