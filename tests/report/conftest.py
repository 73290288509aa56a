"""One audit for all tests of its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import Opened, reviews

from tokensieve.auditing.result import Audit
from tokensieve.report import render


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
