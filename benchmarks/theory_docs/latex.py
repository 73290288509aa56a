"""Verdicts as a LaTeX table (booktabs), to be put into a paper."""

from __future__ import annotations

import re

from tokensieve import __version__
from tokensieve.escape import for_display
from tokensieve.theory.verify import Verification

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
MATHS = {
    "α": r"\alpha",
    "η": r"\eta",
    "ρ": r"\rho",
    "∞": r"\infty",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "→": r"\to",
    "−": "-",
    "·": r"\cdot",
    "×": r"\times",
    "±": r"\pm",
    "‖": r"\|",
    "ᵀ": r"^{\top}",
    "²": "^2",
    "⁰": "^0",
    "¹": "^1",
    "∈": r"\in",
    "₀": "_0",
    "√": r"\surd",
    "∇": r"\nabla",
}
# An exponent as the claims write it, ^(−1.00 ± 0.00), after its signs have become formulas.
EXPONENT = re.compile(r"\\textasciicircum\{\}\(((?:[^()\\]|\\\(|\\\)|\\pm)+)\)")


def escaped(text: str) -> str:
    """Text that stays text in LaTeX; mathematical signs become formulas, other letters are left to
    a Unicode engine."""
    out = "".join(SPECIAL.get(c) or (rf"\({MATHS[c]}\)" if c in MATHS else c) for c in text)
    out = EXPONENT.sub(r"\\textsuperscript{\1}", out)
    return out.replace("p̂", r"\(\hat{p}\)")


def _column(width: float) -> str:
    """A column of this share of the line, not stretched to fill it."""
    return rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}"


def verdicts(found: Verification) -> str:
    """A table: claim, outcome, figures; and what becomes of p."""
    rows = [(claim.name, claim.outcome.value, claim.verdict) for claim in found.claims]
    rows.append(("what becomes of p", found.limit.fate.value, found.limit.reason))
    body = [" & ".join(escaped(for_display(cell, 600)) for cell in row) + r" \\" for row in rows]
    name = escaped(for_display(found.name, 100))
    return "\n".join(
        [
            r"% needs \usepackage{array,booktabs}; made by tokensieve " + escaped(__version__),
            rf"\begin{{tabular}}{{@{{}}{''.join(map(_column, (0.29, 0.15, 0.42)))}@{{}}}}",
            r"\toprule",
            rf"Claim & On {name} & Figures \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
