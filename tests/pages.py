"""What tests of pages share: hostile strings, a reader of HTML, and axe-core."""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

HOSTILE = [
    "<script>alert(1)</script>",
    "</title></style>",
    "{{7*7}}",
    "=cmd()",
    "a\"b'c",
    "\u202eturned",
    "nul\x00",
]
VOID = {"meta", "img", "br", "link", "input", "hr", "wbr"}


class Page(HTMLParser):
    """Elements with their attributes, text, and whether all of them are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def pictures_in(result: Any) -> list[Any]:
    """The pictures of a result's report, each once."""
    from tokensieve.report.blocks import Picture, walk

    return list(
        {one.name: one for one in walk(result.report().blocks) if isinstance(one, Picture)}.values()
    )


def check_specifications(pictures: Iterable[Any]) -> None:
    """Each is valid Vega-Lite; the program does not check what it draws."""
    import altair

    for picture in pictures:
        altair.Chart.from_dict(picture if isinstance(picture, dict) else picture.spec)


FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
OPEN = (
    "for (const one of document.querySelectorAll('details')) one.open = true; "
    "document.querySelector('button.pick')?.click()"
)


def violations(browser: Any, html: str, folder: Path, theme: str = "light") -> list[str]:
    """What axe-core finds on a page with everything open."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    (folder / "page.html").write_text(html, encoding="utf-8")
    context = browser.new_context(
        color_scheme=theme, bypass_csp=True, viewport={"width": 1280, "height": 900}
    )
    page = context.new_page()
    page.goto((folder / "page.html").as_uri())
    if "block-table" in html:
        page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate(OPEN)
    page.wait_for_timeout(200)
    found = axe.Axe().run(page).response["violations"]
    context.close()
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:150]} {one['nodes'][0]['failureSummary'][:200]}"
        for one in found
    ]
