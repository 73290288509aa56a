"""Words and tokens as people and shells read them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.escape import for_display, shell_word

# no argument of a program can hold NUL, and a surrogate is no character
CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="needs bash")
@settings(max_examples=20)
@given(words=st.lists(st.text(CHARACTERS, max_size=12), min_size=1, max_size=20))
def test_a_shell_reads_a_word_as_it_was(words: list[str]) -> None:
    written = " ".join(map(shell_word, words))
    assert written.isprintable() or not any(ord(letter) < 0x20 for letter in written)
    assert BASH is not None
    read = subprocess.run(
        [BASH, "-c", f"printf '%s\\0' {written}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert read.stdout.decode().split("\0")[:-1] == words


def test_what_cannot_be_seen_is_shown_by_its_code() -> None:
    everything = pl.Series(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    ignorable = everything.filter(everything.str.contains(r"\p{Default_Ignorable_Code_Point}"))
    assert len(ignorable) > 100
    for letter in ignorable.filter(~ignorable.str.contains(r"\p{Cn}")):  # Unicode has defined it
        assert for_display(letter) == f"U+{ord(letter):04X}"
        assert letter not in shell_word(letter)
    assert for_display("\u2764\ufe0f") == "\u2764\ufe0f"
