"""The dataset card: Markdown in which nothing of the data is markup."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from calls import Run
from reviews import write_reviews
from tokensieve import Settings, audit, dataset_card
from tokensieve.report.blocks import Report, Text
from tokensieve.report.markdown import markdown

HOSTILE = (
    "[x](http://evil) ![i](//e) <b onclick=1> | `c` **b** # h\n\n## evil www.evil.org @you &lt; "
    "$x$ ~~s~~ \u202e"
)
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def text(content: str) -> str:
    """A paragraph of a report with this text."""
    return (
        markdown(Report("", "title", "verdict", (Text(content),)))
        .partition("**verdict**")[2]
        .strip("\n")
    )


@settings(derandomize=True, deadline=None)
@given(
    st.text(st.sampled_from("[]()<>!*_`#|~\\&;:/.@ab \n\t1-+=\"'") | st.characters(), max_size=30)
)
def test_text_of_the_data_stays_text(content: str) -> None:
    tokens = MARKDOWN.parse(f"- item: {text(content)}.")
    inline = [token for token in tokens if token.type == "inline"]
    assert [token.type for token in tokens].count("list_item_open") == len(inline) == 1
    kinds = {child.type for token in inline for child in token.children or []}
    assert kinds <= {"text", "text_special"}
    assert "\n" not in text(content) and "\u202e" not in text(content)


@pytest.mark.parametrize("address", ["www.evil.org", "WWW.evil.org", "https://evil.org", "a@b.org"])
def test_addresses_do_not_become_links(address: str) -> None:
    assert not any(mark in text(address).lower() for mark in ("www.", "https://", "a@"))
    assert MARKDOWN.renderInline(text(address)) == address


@pytest.mark.slow
def test_the_card_of_a_hostile_data_set() -> None:
    texts = [f"{HOSTILE} good {i}" if i % 2 else f"bad {i}" for i in range(40)]
    quick = Settings(baseline=False, thorough=False, validation_share=0.0)
    found = audit((texts, [f"{HOSTILE}{i % 2}" for i in range(40)]), quick)
    card = dataset_card(found)
    tokens = MARKDOWN.parse(card)
    headings = [t.content for before, t in pairwise(tokens) if before.type == "heading_open"]
    assert headings == [
        "Tokens that give the label away",
        "Findings",
        "Strongest predictors of each class",
        "Notes",
    ]
    kinds = {
        child.type for token in tokens if token.type == "inline" for child in token.children or []
    }
    assert kinds <= {"text", "text_special", "strong_open", "strong_close", "softbreak"}
    assert "html_block" not in {token.type for token in tokens} and "\u202e" not in card
    rows = [line for line in card.splitlines() if line.startswith("| ")]
    assert all(len(line.replace("\\|", "").split("|")) == 7 for line in rows)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_command_writes_it_on_demand_only(run: Run) -> None:
    write_reviews(Path("a.csv"), 80)
    options = ["a.csv", "--no-baseline", "--no-pictures", "--quiet"]
    assert run("audit", *options, "--card") == (0, "", "")
    card = Path("tokensieve-audit/card.md").read_text()
    assert (
        card.startswith("## Tokens that give the label away\n")
        and "test documents correctly" in card
        and "### Findings" in card
    )
    assert run("audit", *options) == (0, "", "") and not Path("tokensieve-audit/card.md").exists()
