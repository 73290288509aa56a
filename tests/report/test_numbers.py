"""One table of cases for the numbers of the static page and terminal, and for those of the page's
own script."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokensieve import wording as numbers
from tokensieve.report.html import FOLDER

NAN = math.nan
CASES: list[tuple[str, list[float | None], str]] = [
    ("signed", [1.234], "+1.23"), ("signed", [-0.456], "−0.46"), ("signed", [0.0], "0.00"), ("signed", [-0.0], "0.00"),
    ("signed", [-0.001], "0.00"), ("signed", [0.001], "0.00"), ("signed", [-0.001, 3], "−0.001"), ("signed", [NAN], "–"),
    ("signed", [math.inf], "–"), ("signed", [-0.5, 0], "−1"),
    ("signed", [0.125], "+0.13"), ("signed", [1e6, 1], "+1000000.0"), ("plain", [1.5], "1.50"),
    ("plain", [-1.5, 1], "−1.5"), ("plain", [-1e-9, 1], "0.0"), ("plain", [NAN], "–"), ("percent", [0.8766], "87.7%"),
    ("percent", [1.0], "100.0%"), ("percent", [0.0], "0.0%"), ("percent", [0.9996], "> 99.9%"), ("percent", [0.9994], "99.9%"),
    ("percent", [0.0004], "< 0.1%"), ("percent", [0.0006], "0.1%"), ("percent", [0.9999, 2], "99.99%"),
    ("percent", [0.99999, 2], "> 99.99%"), ("percent", [0.999, 0], "> 99%"), ("percent", [0.004, 0], "< "
                                                                                                     "1%"),
    ("percent", [NAN], "–"), ("count", [12211], "12,211"), ("count", [0], "0"), ("chance", [0.0004], "< "
                                                                                                     "0.001"),
    ("chance", [0.0321], "0.032"),
    ("chance", [NAN], "–"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_written_by_python(name: str, arguments: list[float], expected: str) -> None:
    assert getattr(numbers, name)(*arguments) == expected


def test_written_by_the_page(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    special = {math.inf: "Infinity"}
    calls = [
        [
            name,
            [
                ("NaN" if x != x else special.get(x, x)) if isinstance(x, float) else x
                for x in arguments
            ],
        ]
        for name, arguments, _ in CASES
    ]
    script = (FOLDER / "live/format.js").read_text(encoding="utf-8") + (
        f"\nconst calls = {json.dumps(calls)};console.log(JSON.stringify(calls.map(([name, given]) "
        "=> Format[name](...given.map(Number)))));"
    )
    (tmp_path / "run.js").write_text(script, encoding="utf-8")
    found = subprocess.run([node, tmp_path / "run.js"], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == [expected for _, _, expected in CASES]


def test_missing_numbers() -> None:
    assert [numbers.signed(None), numbers.percent(None), numbers.chance(None)] == ["–"] * 3
    assert numbers.interval(-0.001, 0.5) == "[0.00, +0.50]"


@given(st.floats(-1, 1), st.integers(0, 4))
def test_zero_has_no_sign_and_an_end_is_only_reached_exactly(x: float, digits: int) -> None:
    written = numbers.signed(x, digits)
    assert (written[0] in "+−") == bool(written.strip("+−0."))
    share = numbers.percent(abs(x), digits)
    assert (share.startswith("100")) == (abs(x) == 1) and (share.strip("0.%") == "") == (x == 0)


def test_subscripts_in_formulas_only() -> None:
    assert numbers.subscripts("E_sᵀv_2, pᵀW₂E_s, E_sᵀv_k, δ_s") == "Eₛᵀv₂, pᵀW₂Eₛ, Eₛᵀvₖ, δₛ"
    assert numbers.subscripts("file_s E_s v_2 value_size") == "file_s E_s v_2 value_size"
