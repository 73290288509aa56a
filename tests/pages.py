"""What tests of pages share: hostile strings, and a reader of HTML."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = ["<script>alert(1)</script>", "</title></style>", "{{7*7}}", "=cmd()", "a\"b'c", "\u202eturned", "nul\x00"]
VOID = {"meta", "img", "input"}


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
