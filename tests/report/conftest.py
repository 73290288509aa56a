"""One audit for all tests of its page."""

from __future__ import annotations

import pytest
from made import reviews

from tokensieve import render
from tokensieve.auditing.result import Audit


@pytest.fixture(scope="session")
def audited() -> Audit:
    return reviews()


@pytest.fixture(scope="session")
def html(audited: Audit) -> str:
    return render(audited)
