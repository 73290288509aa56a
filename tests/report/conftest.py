"""One browser and one audit for all tests of its page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import FLAGS, Opened, reviews

from tokensieve.auditing.result import Audit
from tokensieve.report import render


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if shutil.which("chromium") is None:
        pytest.skip("the browser chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as p:
        found = p.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def audited() -> Audit:
    return reviews()


@pytest.fixture(scope="session")
def html(audited: Audit) -> str:
    return render(audited)


@pytest.fixture
def opened(browser: Any, html: str, tmp_path: Path) -> Iterator[Opened]:
    found = Opened(browser, html, tmp_path)
    yield found
    found.check()
    found.context.close()
