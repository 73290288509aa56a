"""A report of every kind of block, with hostile text in every place, on the terminal, as a page, as
Markdown and in a notebook."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from pages import HOSTILE, Page
from tokensieve.escape import for_display
from tokensieve.report.blocks import (
    Block,
    Column,
    Command,
    Fact,
    Facts,
    Passage,
    Passages,
    Picture,
    Report,
    Section,
    Table,
    Terms,
    Text,
    Tokens,
)
from tokensieve.report.html import page, render
from tokensieve.report.markdown import markdown
from tokensieve.report.pictures import draw
from tokensieve.report.terminal import show

TURNS = "".join(chr(code) for code in [*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def blocks_with(text: str) -> tuple[Block, ...]:
    named = for_display(text)
    columns = (
        Column("Token", "token"),
        Column(named, "interval", unit=named, bar=True),
        Column("Documents", "count"),
        Column("Rate", "rate", bar=True),
        Column("Where", marks={named: "alarm"}),
        Column("Part", "cell", extra=True),
    )
    rows = [
        (text, (0.4, 0.3, 0.5), 1234, (0.83, 0.79, 0.86), named, (107, 0.97)),
        (named, *[None] * 5),
    ]
    passage = Passage(((text, 0.5), (" and ", 0.0), (text, -1.0)), named, 7, named, "bad", "train")
    return (
        Text(named, "lead"),
        Facts((Fact(named, named, named),)),
        Command(f"tokensieve audit '{named}'", named),
        Tokens(named, (text, named), 3),
        Section(named, (Section(named, (Text(named), Passages(named, (passage,))), level="high"),)),
        Section(
            named, (Table(named, columns, rows, named, searchable=True), Terms(((named, named),)))
        ),
        Section(named, (Passages(named, (passage,), short=False),), folded=True),
    )


def report_with(text: str) -> Report:
    named = for_display(text)
    return Report(
        "audit",
        named,
        named,
        blocks_with(text),
        {"settings": {named: named}, "seed": 0, named: named},
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_on_the_page(text: str) -> None:
    html = page(report_with(text))
    read = Page(html)
    assert read.open == []
    assert not {"iframe", "object", "form", "base"} & {tag for tag, _ in read.elements}
    scripts = [attributes for tag, attributes in read.elements if tag == "script"]
    assert scripts == [{}]
    assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
    assert for_display(text) in read.text
    assert not set(TURNS) & set(html)
    assert "\x00" not in html
    places = [attributes["id"] for _, attributes in read.elements if attributes.get("id")]
    assert len(places) == len(set(places))


@pytest.mark.parametrize(
    "text",
    [*HOSTILE, "[x](http://a.b)", "![i](//x)", "`a`", "| a |", "# h", "www.evil.org", "a@b.cd"],
)
def test_hostile_text_stays_text_in_markdown(text: str) -> None:
    written = markdown(report_with(text))
    outside = re.sub(r"(?s)```sh\n.*?\n```", "", written)
    assert not re.search(r"<(?!pictures/)", outside)
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert not re.search(r"https?://|www\.|\w@", outside)
    assert not set(TURNS) & set(written)


def shown_in_terminal(report: Report) -> str:
    with redirect_stdout(io.StringIO()) as out:
        show(report)
    return out.getvalue()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_the_terminal_and_in_notebooks(text: str) -> None:
    assert not set(TURNS + "\x00\x1b") & set(shown_in_terminal(report_with(text)))
    html = render(SimpleNamespace(report=lambda: report_with(text)), notebook=True)
    assert "alert(1)</script>" not in html
    assert html.count("<script>") == 1


def test_a_table_says_how_many_rows_it_leaves_out() -> None:
    rows = [(f"w{i}", i) for i in range(30)]
    table = Table("Words", (Column("Word", "token"), Column("Documents", "count")), rows, n_shown=4)
    report = Report("audit", "t", "v", (table,))
    out = shown_in_terminal(report)
    assert "w3" in out
    assert "w4" not in out
    assert "26 more" in out
    assert "26 more" in markdown(report)
    assert "w29" in page(report)


def test_blocks_reach_the_media_they_are_for() -> None:
    report = Report(
        "audit",
        "t",
        "v",
        (Text("OnlyTerminal", only=("terminal",)), Text("OnlyPage", only=("html",))),
    )
    out = shown_in_terminal(report)
    assert "OnlyTerminal" in out
    assert "OnlyPage" not in out
    assert "OnlyPage" in page(report)
    assert "OnlyTerminal" not in page(report)


def picture() -> Picture:
    changes = pl.DataFrame({"token": ["a"], "before": [0.5], "after": [0.4], "kind": ["gone"]})
    data = {"changes": changes, "names": ("before", "after"), "axis": "effect"}
    return Picture("slopes", "audit-slopes", data, "Top tokens", "a caption", "a description")


def test_a_picture_is_drawn_in_every_form() -> None:
    files = draw([picture()], "png", "pdf", "csv")["slopes"]
    assert files["svg"].startswith(b"<svg")
    assert files["png"].startswith(b"\x89PNG")
    assert files["pdf"].startswith(b"%PDF")
    assert files["csv"].startswith(b"part,")


def test_a_failure_to_draw_costs_the_pictures_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    report = Report("audit", "t", "the verdict", (picture(),))
    html = page(report)
    assert "the verdict" in html
    assert "could not be drawn" in html
    assert "a description" in html
    [line] = caplog.messages
    assert line.startswith(
        "the pictures are missing, everything else is complete: its process ended with status 1"
    )


@pytest.mark.slow
def test_pages_are_functions_of_their_report() -> None:
    report = replace(report_with("x"), blocks=(*blocks_with("x"), picture()))
    assert page(report) == page(report)
