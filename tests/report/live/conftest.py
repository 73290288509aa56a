"""The page of an audit, opened in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opened import Opened


@pytest.fixture(scope="session")
def window(browser: Any, html: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    found = Opened(browser, html, tmp_path_factory.mktemp("page"))
    yield found
    found.context.close()


@pytest.fixture
def opened(window: Opened) -> Iterator[Opened]:
    """The page as it opens, in one window for all tests."""
    window.again()
    yield window
    window.check()
