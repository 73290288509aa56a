"""What tests of live pages share: a page opened in Chromium, and an audit of generated reviews."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tokensieve.auditing.report import interactive_part
from tokensieve.auditing.result import Audit
from tokensieve.report.html import page
from tokensieve.report.live.model import tokenizer_for_page
from tokensieve.report.live.samples import sample_documents


def sample(audit: Audit) -> list[SimpleNamespace]:
    """The test documents that the page holds: row, label, kind, text and answer."""
    vocabulary = audit.learned.model.vocabulary
    assert vocabulary is not None
    page_splits_text = tokenizer_for_page(vocabulary) is not None
    return [
        SimpleNamespace(**document | {"answer": np.asarray(document["answer"])})
        for document in sample_documents(interactive_part(audit), page_splits_text).documents
    ]


def without_pictures(audit: Audit) -> str:
    """The page without its pictures, which take most of the time."""
    return page(audit.report(), {})


class Opened:
    """A page in the browser that refuses every request and remembers every complaint."""

    def __init__(
        self, browser: Any, html: str, folder: Path, width: int = 1200, theme: str = "light"
    ) -> None:
        self.file = folder / "report.html"
        self.file.write_bytes(html.encode())
        self.theme = theme
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme
        )
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss())
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.context.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
        self._load()

    def _load(self) -> None:
        self.page.goto(self.file.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=30_000)
        self.settle()

    def again(self) -> None:
        """Load the page anew, with nothing kept of what was done with it: half the work of another
        `Opened`."""
        self.page.evaluate("localStorage.clear()")
        self.page.goto("about:blank")
        self.page.emulate_media(color_scheme=self.theme, media="screen")
        self.complaints.clear()
        self.requests.clear()
        self._load()

    def settle(self) -> None:
        self.page.evaluate(
            "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => done()), 60))"
        )

    def rows(self) -> list[str]:
        return [text.strip() for text in self.page.locator("#table-body th").all_inner_texts()]

    def caption(self) -> str:
        return str(self.page.inner_text("#table-caption"))

    def check(self) -> None:
        assert not self.complaints
        asked = [
            url for url in self.requests if not url.startswith(("data:image/svg+xml", "blob:"))
        ]
        assert asked == self.requests[:1]


def download(opened: Opened) -> bytes:
    with opened.page.expect_download() as saved:
        opened.page.click("#table-download")
    return Path(saved.value.path()).read_bytes()
