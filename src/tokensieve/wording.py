"""Numbers as pages and terminal write them; live/format.js writes the same, which a table of cases
in the tests checks."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

_WIDE = Context(prec=400)
_INDEX = re.compile(r"(?<=E)_s(?=ᵀ)|(?<=₂E)_s|(?<=ᵀv)_[k0-9]|(?<=δ)_s")
_SUBSCRIPTS = str.maketrans("sk0123456789", "ₛₖ₀₁₂₃₄₅₆₇₈₉")


def _fixed(x: float, digits: int) -> str:
    """A number with fixed digits, rounded as JavaScript's toFixed does: of two equally near numbers
    the one further from zero (Python's format takes the even one)."""
    return f"{Decimal(x).quantize(Decimal((0, (1,), -digits)), ROUND_HALF_UP, _WIDE):f}"


def signed(x: float | None, digits: int = 2) -> str:
    """+1.23, −0.45, 0.00 (zero has no sign); – where there is no number."""
    if x is None or not math.isfinite(x):
        return "–"
    text = _fixed(abs(x), digits)
    return text if not text.strip("0.") else f"{'−' if x < 0 else '+'}{text}"


def plain(x: float | None, digits: int = 2) -> str:
    """As `signed`, without the plus."""
    return signed(x, digits).removeprefix("+")


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """[−0.45, +1.23]."""
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def percent(x: float | None, digits: int = 1) -> str:
    """0.5 → 50.0%; only all of something is 100.0%, and only nothing is 0.0%: what lies between is
    > 99.9% or < 0.1%."""
    if x is None or not math.isfinite(x):
        return "–"
    text = _fixed(100 * x, digits)
    step = 10.0**-digits  # of the last digit shown
    if x < 1 and float(text) >= 100:
        return f"> {100 - step:.{digits}f}%"
    if x > 0 and float(text) <= 0:
        return f"< {step:.{digits}f}%"
    return f"{text}%"


def count(x: float) -> str:
    """12211 → 12,211."""
    return f"{x:,.0f}"


def plural(n: float, one: str, many: str = "") -> str:
    """A number with its noun: 1 token, 1,200 tokens; `many` where the plural is not `one` + s."""
    return f"{n:,.0f} {noun(n, one, many)}"


def noun(n: float, one: str, many: str = "") -> str:
    """The noun for a number that stands elsewhere, or none at all: token, tokens."""
    return one if n == 1 else many or f"{one}s"


def verb(n: float, plain: str, singular: str = "") -> str:
    """The verb for a subject of n things: verb(1, "contain") is contains, verb(2, "have", "has") is
    have."""
    return plain if n != 1 else singular or f"{plain}s"


def chance(x: float | None) -> str:
    """A p- or q-value: three digits, or < 0.001."""
    if x is None or not math.isfinite(x):
        return "–"
    return "< 0.001" if x < 0.001 else _fixed(x, 3)


def subscripts(text: str) -> str:
    """E_sᵀv_2 → Eₛᵀv₂, in formulas only."""
    return _INDEX.sub(lambda found: found[0].removeprefix("_").translate(_SUBSCRIPTS), text)
