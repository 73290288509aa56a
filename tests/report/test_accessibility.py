"""axe-core finds no violation on the pages, in light and dark, with everything open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
OPEN = "for (const one of document.querySelectorAll('details')) one.open = true; document.querySelector('button.pick')?.click()"


def violations(browser: Any, html: str, folder: Path, theme: str) -> list[str]:
    (folder / "page.html").write_text(html, encoding="utf-8")
    context = browser.new_context(color_scheme=theme, bypass_csp=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto((folder / "page.html").as_uri())
    if "block-table" in html:
        page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate(OPEN)
    page.wait_for_timeout(200)
    found = axe.Axe().run(page).response["violations"]
    context.close()
    return [f"{one['id']}: {one['nodes'][0]['html'][:150]} {one['nodes'][0]['failureSummary'][:200]}" for one in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_audit(browser: Any, html: str, tmp_path: Path, theme: str) -> None:
    assert violations(browser, html, tmp_path, theme) == []
