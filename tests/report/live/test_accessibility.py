"""axe-core finds no violation on the pages, with everything open; those of reproduce and diagnose
are tested beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calls import fast_first
from pages import violations
from tokensieve.auditing.compare import compare_audits
from tokensieve.auditing.result import Audit
from tokensieve.report.html import page as html_page
from tokensieve.text.counts import Counts
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import verify


@pytest.mark.slow
@pytest.mark.parametrize("theme", fast_first(["light", "dark"]))
def test_the_audit(browser: Any, html: str, tmp_path: Path, theme: str) -> None:
    assert violations(browser, html, tmp_path, theme) == []


@pytest.mark.slow
def test_verify(browser: Any, tmp_path: Path) -> None:
    counts = Counts.from_matrix([[1, 1, 0]] * 5 + [[0, 1, 1]] * 5, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    found = verify(counts, VerifySettings(d=8, eta=20.0, seed=5))
    assert violations(browser, html_page(found.report()), tmp_path, "light") == []


@pytest.mark.slow
def test_compare(browser: Any, audited: Audit, tmp_path: Path) -> None:
    assert (
        violations(browser, html_page(compare_audits(audited, audited).report()), tmp_path, "light")
        == []
    )
