"""Words of a megabyte take linear time; with quadratic patterns these tests would take hours."""

from __future__ import annotations

import pytest

from tokensieve.auditing.artefacts.shapes import shape_of
from tokensieve.auditing.units import Cut, widened
from tokensieve.escape import line

LENGTH = 1_000_000
WORDS = [
    "a",
    "@",
    "a@",
    "a.",
    "1,",
    "7",
    "11-",
    "0/",
    "http://",
    "www.",
    ".",
    "\\",
    "'",
    "[",
    "12:",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_long_word_ends(word: str) -> None:
    text = word * (LENGTH // len(word)) + "x"
    shape_of(text)
    assert len(line(f"there is no column {text!r}")) <= 500
    assert widened(text, [Cut(0, 1)])[0].start == 0


def test_a_secret_behind_a_long_word_stays_hidden() -> None:
    message = line("a" * 100 + "http://user:S3CRET@host/path?sig=S3CRET")
    assert "S3CRET" not in message and "host/path" in message


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("kim@example.org", "e-mail-address"),
        ("www.example.org", "web-address"),
        ("http://kim@example", "e-mail-address"),
        ("@kim", "@kim"),
        ("kim@example", "kim@example"),
        ("@@a.x", "e-mail-address"),
    ],
)
def test_addresses_have_one_shape(word: str, shape: str) -> None:
    assert shape_of(word) == shape
