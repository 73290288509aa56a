"""The command line, called in place; a browser for pages."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calls import Run
from pages import FLAGS
from tokensieve import __main__


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Call the command line in a folder of its own; give (exit status, standard output, standard error)."""
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


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if shutil.which("chromium") is None:
        pytest.skip("the browser chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as p:
        found = p.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield found
        found.close()
