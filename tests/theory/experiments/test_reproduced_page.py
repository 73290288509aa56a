"""The script that writes parts of docs/reproduced.md keeps what was written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reproduced

PAGE = Path(__file__).parents[3] / "docs" / "reproduced.md"
PART = re.compile(r"(<!-- (\w+): generated from here -->\n).*?(<!-- \2: to here -->)", re.DOTALL)


def test_everything_outside_the_generated_parts_stays() -> None:
    page = PAGE.read_text(encoding="utf-8")
    changed = reproduced.with_part(page, reproduced.VERDICTS, "| another table |")
    changed = reproduced.with_part(changed, reproduced.SECTIONS, "## Another section")
    assert PART.sub(r"\1\3", changed) == PART.sub(r"\1\3", page)
    assert "## What can and cannot be known from the paper" in changed
    assert "## How far one run can be trusted" in changed
    assert "| another table |" in changed
    assert "## Table A" not in changed


def test_a_part_that_is_written_again_is_the_same() -> None:
    once = reproduced.with_part(PAGE.read_text(encoding="utf-8"), reproduced.VERDICTS, "| a |")
    assert reproduced.with_part(once, reproduced.VERDICTS, "| a |") == once


@pytest.mark.parametrize(
    "page",
    [
        "by hand",
        "<!-- sections: to here -->\n<!-- sections: generated from here -->",
        "<!-- sections: generated from here -->\n" * 2 + "<!-- sections: to here -->",
    ],
)
def test_a_page_without_one_of_each_line_is_not_written(page: str) -> None:
    with pytest.raises(SystemExit):
        reproduced.with_part(page, reproduced.SECTIONS, "## A")
