"""The LaTeX table of verdicts: whatever the text, the table keeps its shape."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tokensieve.report.latex import MATHS, SPECIAL, escaped


@given(st.lists(st.sampled_from([*SPECIAL, *MATHS, "a", " ", "é", "p̂"]), max_size=30).map("".join))
def test_no_special_sign_is_left_and_braces_and_formulas_close(text: str) -> None:
    out = escaped(text)
    assert not re.search(r"(?<!\\)[&#%~]", out)
    outside = re.sub(r"\\\(.*?\\\)", "", out)
    assert not re.search(r"(?<!\\)[$_^]", outside)
    depth = 0
    for sign in re.findall(r"(?<!\\)[{}]", out.replace(r"\{", "").replace(r"\}", "")):
        depth += 1 if sign == "{" else -1
        assert depth >= 0
    assert depth == 0


def test_a_claim_reads_as_it_should() -> None:
    assert escaped("‖p‖ grows, 50% of R² ≥ 0.9") == r"\(\|\)p\(\|\) grows, 50\% of R\(^2\) \(\ge\) 0.9"
