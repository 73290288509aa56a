"""The LaTeX table of verdicts: whatever the text, the table keeps its shape."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calls import Run
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
    assert escaped("‖p‖^(−1.00 ± 0.02); 2^n") == (
        r"\(\|\)p\(\|\)\textsuperscript{\(-\)1.00 \(\pm\) 0.02}; 2\textasciicircum{}n"
    )
    assert escaped("‖p‖ grows, 50% of R² ≥ 0.9") == r"\(\|\)p\(\|\) grows, 50\% of R\(^2\) \(\ge\) 0.9"


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed (Debian: texlive-latex-recommended)"
)
def test_the_table_compiles_without_a_box_that_is_too_full(run: Run, tmp_path: Path) -> None:
    assert run("verify", "--out", str(tmp_path / "study"), "-q")[0] == 0
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage{array,booktabs}\begin{document}"
        + (tmp_path / "study" / "verdicts.tex").read_text(encoding="utf-8")
        + r"\end{document}",
        encoding="utf-8",
    )
    log = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert log.returncode == 0, log.stdout.decode(errors="replace")[-2000:]
    assert b"Overfull" not in log.stdout
