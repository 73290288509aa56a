"""The command line, called in place."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from calls import Run
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
