"""The report page and its pictures: right numbers, nothing of the data taken for markup, small for
any data set."""

from __future__ import annotations

import base64
import re
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from hashlib import sha256

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import changed, make_audit

from pages import Page, pictures_in
from tokensieve import render
from tokensieve.auditing.any_audit import Invocation
from tokensieve.auditing.result import Audit
from tokensieve.escape import for_display, visible
from tokensieve.report.blocks import Command, Picture, Report, Section, Text
from tokensieve.report.html import FOLDER, SCRIPTS, page
from tokensieve.report.pictures import specification
from tokensieve.report.terminal import show

HOSTILE = [
    *(
        "<script>alert(1)</script>",
        "</style><b>bold</b>",
        "</title></head>",
        "{{7*7}}",
        "{% raw %}",
    ),
    *(
        "=cmd()",
        "a\"b'c`",
        "tab\there\nand\rthere",
        "nul\x00bell\x07esc\x1b",
        "<img src=x onerror=alert(1)>",
    ),
    *(
        "javascript:alert(1)",
        "&lt;already&gt; &amp; &#60;",
        "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \u200f",
        "👩‍👩‍👧‍👦🏳️‍🌈",
        "\ufffd\ufffe\x85",
    ),
    *("]]>-->", " ", "\u200b", "datum.x;url(https://example.org/a.png)"),
]


class VisiblePage(Page):
    """A page with the text that a reader sees, and its tokens."""

    def __init__(self, html: str) -> None:
        self.tokens: list[str] = []
        super().__init__(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "bdi":
            self.tokens.append("")

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self.open):
            return
        super().handle_data(data)
        if "bdi" in self.open:
            self.tokens[-1] += data


def page_script() -> str:
    inside = "\n".join(
        (FOLDER / f"live/{name}.js").read_text(encoding="utf-8") for name in SCRIPTS.split()
    )
    return (FOLDER / "page.js").read_text(
        encoding="utf-8"
    ) + f'(() => {{\n"use strict";\n{inside}}})();\n'


def without_pictures(audit: Audit) -> str:
    """The page without its pictures, which take most of the time."""
    return page(audit.report(), {})


@pytest.fixture(scope="module")
def plain_page() -> tuple[Audit, VisiblePage]:
    audit = make_audit([f"token{i}" for i in range(200)], ("bad", "good"))
    return audit, VisiblePage(without_pictures(audit))


@pytest.fixture(scope="module")
def hostile() -> tuple[Audit, str]:
    audit = make_audit(HOSTILE, (HOSTILE[0], HOSTILE[12]))
    audit = changed(
        audit, name=HOSTILE[1], notes=HOSTILE, invocation=Invocation(HOSTILE, HOSTILE[9])
    )
    audit = changed(audit, suspicious=[(token, HOSTILE[0], token) for token in HOSTILE])
    return audit, render(audit)


def test_hostile_text_is_there_as_text(hostile: tuple[Audit, str]) -> None:
    page = VisiblePage(hostile[1])
    assert not page.open
    for token in HOSTILE:
        # an address in a text is shown as addresses are: without what may be a secret
        is_shown = any(for_display(token) in text for text in page.tokens)
        assert is_shown or "https://" in token
    assert "49" not in page.tokens
    assert not {"iframe", "object", "link", "base"} & {tag for tag, _ in page.elements}
    scripts = re.findall("<script([^>]*)>(.*?)</script>", hostile[1], re.DOTALL)
    assert [head for head, _ in scripts][-1] == "" and scripts[-1][1] == page_script()
    for head, block in scripts[:-1]:
        assert re.fullmatch(' type="text/plain" id="block-[a-z]+"', head) and re.fullmatch(
            "[A-Za-z0-9+/]+=*", block
        )
    names = {name for _, attributes in page.elements for name in attributes}
    assert not [name for name in names if name.startswith("on")]


def test_page_holds_no_character_that_html_forbids(hostile: tuple[Audit, str]) -> None:
    html = hostile[1]
    html.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", html)


def test_page_asks_for_nothing(
    hostile: tuple[Audit, str], plain_page: tuple[Audit, VisiblePage]
) -> None:
    for read in (VisiblePage(hostile[1]), plain_page[1]):
        sources = [
            a[key]
            for _, a in read.elements
            for key in ("src", "href", "srcset", "action", "data")
            if key in a
        ]
        assert sources
        assert all(
            source and source.startswith(("data:image/svg+xml;base64,", "#")) for source in sources
        )
        policies = [
            a["content"]
            for _, a in read.elements
            if a.get("http-equiv") == "Content-Security-Policy"
        ]
        rules = dict(rule.strip().split(" ", 1) for rule in str(policies[0]).split(";"))
        assert (
            rules["default-src"] == "'none'" and rules["img-src"] == "data:" and len(policies) == 1
        )
        hashes = {sha256(text.encode()).digest() for text in (page_script(),)}
        assert {base64.b64decode(rule[8:-1]) for rule in rules["script-src"].split()} == hashes
        assert set(rules) == {
            *"default-src script-src style-src style-src-attr img-src base-uri form-action".split()
        }
        assert not [a for _, a in read.elements if "url(" in str(a.get("style", ""))]
    style = re.search("<style>(.*?)</style>", hostile[1], re.DOTALL)
    assert style and "url(" not in style[1] and "@import" not in style[1]


def test_pictures_in_the_page_are_well_formed_and_inert(hostile: tuple[Audit, str]) -> None:
    sources = [str(a["src"]) for tag, a in VisiblePage(hostile[1]).elements if tag == "img"]
    assert len(sources) == 5
    for source in sources:
        root = ElementTree.fromstring(base64.b64decode(source.partition(",")[2]))
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {
            "svg",
            "style",
            "rect",
            "g",
            "path",
            "circle",
            "line",
            "text",
            "defs",
            "clipPath",
            "tspan",
        }
        assert not [
            name
            for element in root.iter()
            for name in element.attrib
            if name.endswith(("href", "onclick"))
        ]


def test_every_page_element_that_needs_a_name_has_one(
    plain_page: tuple[Audit, VisiblePage],
) -> None:
    elements = plain_page[1].elements
    tags = [tag for tag, _ in elements]
    assert tags.count("h1") == 1
    assert tags.count("caption") <= tags.count("table")
    assert all("scope" in a for tag, a in elements if tag == "th")
    assert all(a.get("alt") for tag, a in elements if tag == "img")
    assert all(
        a.get("aria-label") or a.get("aria-labelledby")
        for _, a in elements
        if a.get("role") == "region"
    )
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {str(a["href"])[1:] for tag, a in elements if tag == "a"} <= set(ids)
    assert elements[0][1].get("lang") == "en"


def test_document_is_shown_whole_and_unchanged(plain_page: tuple[Audit, VisiblePage]) -> None:
    text = "Ein <b>Satz</b>,\n\tzwei  Zeilen & Ende"
    pieces = [(part, float(i % 2)) for i, part in enumerate(re.split(r"(\w+)", text))]
    audit = changed(plain_page[0], examples=[replace(plain_page[0].examples[0], pieces=pieces)])
    body = re.search('<div class="text" dir="auto">(.*?)</div>', without_pictures(audit), re.DOTALL)
    assert body and VisiblePage(body[1]).text == text


def test_direction_overrides_end_with_their_piece(plain_page: tuple[Audit, VisiblePage]) -> None:
    pieces = [
        ("one ", 0.0),
        ("\u202etwo", 0.5),
        (" \u2067", 0.0),
        ("three", 0.5),
    ]
    audit = changed(plain_page[0], examples=[replace(plain_page[0].examples[0], pieces=pieces)])
    body = re.search('<div class="text" dir="auto">(.*?)</div>', without_pictures(audit), re.DOTALL)
    assert body and VisiblePage(body[1]).text == "one ⟨U+202E⟩two ⟨U+2067⟩three"
    assert not set("\u202e\u2067") & set(body[1])


def test_long_document_says_how_much_was_left_out(plain_page: tuple[Audit, VisiblePage]) -> None:
    example = replace(plain_page[0].examples[0], pieces=[("a" * 50_000_000, 0.1)])
    html = without_pictures(changed(plain_page[0], examples=[example]))
    assert "49,997,000 characters omitted" in html
    assert len(html) < 2_000_000


@pytest.mark.slow
def test_a_token_of_a_megabyte_is_shortened_with_its_length_stated() -> None:
    audit = make_audit(["é" * 1_000_000, "short", "<" * 500_000], ("bad", "good"))
    html = render(audit)
    assert "(1,000,000 characters)" in html
    assert len(html.encode()) < 1_000_000


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=100))
def test_shown_text_is_short_visible_and_keeps_what_can_be_kept(text: str) -> None:
    result = for_display(text, 40)
    assert result.strip()
    assert len(result) <= 40 + len("… (100 characters)")
    assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", result)
    assert visible(visible(text)) == visible(text)
    if len(text) <= 40 and text.isprintable() and text.strip():
        assert result == text


def test_invisible_tokens_are_named() -> None:
    assert for_display("") == "(empty)"
    assert for_display(" ") == "U+0020"
    assert for_display("\u200b\u200e") == "U+200B U+200E"
    assert for_display(" " * 60) == "U+0020 U+0020 U+0020 U+0020… (60 characters)"
    assert for_display("a\x00b\x7f") == "a␀b␡"


@pytest.mark.slow
def test_numbers_that_are_missing_do_not_break_the_page() -> None:
    audit = make_audit([f"t{i}" for i in range(30)], ("bad", "good"))
    holes = audit.tokens.with_columns(
        posterior_difference=pl.when(pl.col("documents") % 2 == 0)
        .then(float("nan"))
        .otherwise("posterior_difference"),
        q_value=pl.lit(float("nan")),
    )
    page = VisiblePage(render(changed(audit, tokens=holes, baseline=None)))
    assert not page.open
    assert "nan" not in page.text.lower()


def test_empty_audit_still_gives_a_page() -> None:
    audit = make_audit(["a", "b"], ("bad", "good"))
    nothing = changed(
        audit,
        tokens=audit.tokens.clear(),
        examples=[],
        suspicious=[],
        findings=(),
        without_shortcuts=None,
        notes=[],
    )
    text = VisiblePage(without_pictures(nothing)).text
    assert "No token in reviews.csv predicts the label better than chance" in text


@pytest.mark.slow
@pytest.mark.parametrize(("types", "classes", "seconds"), [(200_000, 2, 8.0), (1_500, 50, 10.0)])
def test_page_stays_under_five_megabytes(types: int, classes: int, seconds: float) -> None:
    names = [f"{i} " + "<'&\">" * 30 for i in range(types)]
    audit = make_audit(
        names, tuple(f"{i} " + "&" * 90 for i in range(classes)), examples=30, repeats=60
    )
    start = time.process_time()
    html = render(audit)
    assert time.process_time() - start < seconds
    assert len(html.encode()) < 5_000_000


def test_the_first_finding_names_its_tokens_in_the_terminal(
    plain_page: tuple[Audit, VisiblePage], capsys: pytest.CaptureFixture[str]
) -> None:
    finding = replace(
        plain_page[0].findings[0], details=("9 of 10 training documents containing it are bad",)
    )
    show(changed(plain_page[0], findings=(finding,)).report())
    assert "“token0”, “token1” and “token2”: 9 of 10" in " ".join(capsys.readouterr().out.split())


def test_settings_leave_out_what_was_not_given(plain_page: tuple[Audit, VisiblePage]) -> None:
    assert ">None<" not in without_pictures(plain_page[0])


def test_every_first_screen_has_a_picture_and_the_next_step(
    plain_page: tuple[Audit, VisiblePage],
) -> None:
    shortcut = plain_page[0].findings[0]
    leak = replace(
        shortcut, kind="leak", tokens=(), action="Keep each text on one side of the split."
    )
    for findings in ((), (leak,), (leak, shortcut)):
        blocks = changed(plain_page[0], findings=findings).report().blocks
        screen = blocks[: next(i for i, block in enumerate(blocks) if isinstance(block, Section))]
        assert any(isinstance(block, Picture) for block in screen)
        said = [block.text for block in screen if isinstance(block, Text)]
        assert (leak.action in said) == bool(findings)
        has_command = any(isinstance(block, Command) for block in screen)
        assert has_command or leak.action in said or any("Next, " in text for text in said)


def test_names_of_classes_fit_on_the_picture_and_break_in_the_headline() -> None:
    name = "top_up_by_bank_transfer_charge_of_some_kind"
    [value] = [
        one
        for one in pictures_in(make_audit(["a", "b", "c"], ("bad", name)))
        if one.name == "value"
    ]
    spec = specification(value)
    axes = [layer["encoding"][axis]["title"] for layer in spec["layer"][:1] for axis in "xy"]
    assert max(map(len, axes)) <= 60 and not any("characters)" in title for title in axes)
    assert max(map(len, spec["layer"][0]["encoding"]["color"]["scale"]["domain"])) <= 24
    assert "by_<wbr>bank_<wbr>" in page(Report("audit", "t", name, ()), {})


def test_options_are_code_and_links_end_with_a_word() -> None:
    long = Section(
        "One gradient step on the embeddings and nothing else", (Text("Add --seed 3, `a <b>`."),)
    )
    html = page(
        Report("x", "t", "v", (long, Section("Untrained embeddings (asked by X)", (Text("b"),)))),
        {},
    )
    assert "Add <code>--seed</code> 3, <code>a &lt;b&gt;</code>." in html
    assert ">One gradient step on the …</a>" in html and ">Untrained embeddings</a>" in html
