"""The command line, called in place; a browser for pages. The process that only deals out tests
imports nothing of the library."""

from __future__ import annotations

import os

# read by libraries as they are imported: the workers of a run share the cores already, and threads
# of Polars that wait for work take a fifth of all processor time (`make test-all` runs with
# several)
for threads in "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS POLARS_MAX_THREADS NUMBA_NUM_THREADS".split():
    os.environ.setdefault(threads, "1")

os.environ.pop(
    "PYTHONDONTWRITEBYTECODE", None
)  # each process that a test starts would compile the whole source again

import gc
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from artefacts import Artefact
    from calls import Run

settings.register_profile("fast", max_examples=25, deadline=None, derandomize=True)
settings.register_profile(
    "thorough", max_examples=200, deadline=None, derandomize=True
)  # of `make test-all`
settings.load_profile("fast")
FAST = "not slow and not browser"  # as in pyproject.toml


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--eighth",
        action="store_const",
        const="auto",
        help="Of the slow tests, run this commit's eighth too.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("eighth") == "auto":  # workers are told the number
        from rotation import current_eighth

        config.option.eighth = current_eighth()
    if config.getoption("eighth") is not None:
        config.option.markexpr = {FAST: "not browser"}.get(
            config.option.markexpr, config.option.markexpr
        )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    part = config.getoption("eighth")
    if part is not None:
        terminalreporter.write_line(
            f"of the slow tests part {part + 1} of 8 ran, chosen by the commit"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from rotation import costly_first, select

    select(config, items)
    if hasattr(config, "workerinput"):
        costly_first(items)


def pytest_collection_finish() -> None:
    """What libraries and tests are made of stays until the end: garbage is looked for in the rest
    alone."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file go to one worker; those of a folder too, where they share a trained model
    or an audit and its page."""
    from xdist.scheduler import LoadScopeScheduling

    from rotation import room_of

    class ByRoom(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return room_of(nodeid)

    config.option.loadscopereorder = False  # the workers have put the costly ones first
    return ByRoom(config, log)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Call the command line in a folder of its own; give (exit status, standard output, standard
    error)."""
    from tokensieve import __main__

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    handlers = {number: signal.getsignal(number) for number in __main__.STATUS}

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tokensieve", *arguments])
        status = 0
        try:
            __main__.main()
        except SystemExit as stop:
            status = int(stop.code or 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture(name="undrawn")
def without_pictures() -> Iterator[None]:
    from calls import undrawn

    with undrawn():
        yield


@pytest.fixture
def quick_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few documents are held out as many are, in one part instead of five, and no baseline is
    fitted.

    For tests that judge no model.
    """
    for module in ("choice", "held_out"):
        monkeypatch.setattr(f"tokensieve.model.{module}.FEW", 0)

    def three_of_four_right(data: Any) -> Any:
        n_items = len(data.truth) // 2 if data.are_pairs else len(data.truth)
        return (data.truth[:n_items] * 0.0) + 0.75

    monkeypatch.setattr("tokensieve.task.tasks.baseline_correct", three_of_four_right)


def shared_artefact(name: str) -> Any:
    """A fixture `shared_NAME`: the artefact of tests/artefacts.py, made once for all workers of a
    run."""

    def build(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
        import artefacts

        return artefacts.shared(tmp_path_factory, name)

    return pytest.fixture(scope="session", name=f"shared_{name}")(build)


shared_audit = shared_artefact("audit")
shared_pair_audit = shared_artefact("pair_audit")
shared_multiclass_audit = shared_artefact("multiclass_audit")
shared_verification = shared_artefact("verification")
shared_diagnosis = shared_artefact("diagnosis")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from pages import FLAGS

    if shutil.which("chromium") is None:
        pytest.skip("the browser chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as p:
        found = p.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield found
        found.close()
