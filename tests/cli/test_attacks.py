"""The attacks of `benchmarks/attacks.py`: every family draws cases, the same ones for a seed, and the judge sees each fault."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

attacks = pytest.importorskip("attacks", reason="needs Linux")
from attack_cases import KINDS, Case


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_family_draws_the_same_case_for_a_seed(kind: str) -> None:
    for draw, _ in KINDS[kind].values():
        first, again, others = (
            draw(Random("a")),
            draw(Random("a")),
            {draw(Random(str(i))).name for i in range(9)},
        )
        assert (first.name == again.name and len(others) > 1) or first.name.endswith(
            ("tensors", "checksums", "tokenizer")
        )


@pytest.mark.parametrize(
    ("status", "out", "err", "fault"),
    [
        (0, "", "", ""),
        (2, "", "tokensieve: no such file\n", ""),
        (1, "", "tokensieve: unexpected KeyError: 'x'\n", "status 1"),
        (2, "", "", "no message"),
        (2, "", "tokensieve: a\nb\nc\n", "3 lines"),
        (2, "", "tokensieve: thread panicked at x.rs\n", "trace"),
        (0, "\x1b[2J", "", "control characters"),
        (139, "", "", "status 139"),
    ],
)
def test_the_judge_sees_what_was_printed(
    tmp_path: Path, status: int, out: str, err: str, fault: str
) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    found = attacks.faults(Case("", list), status, out, err, tmp_path / "here", {})
    assert fault in "; ".join(found) if fault else not found


def test_the_judge_sees_what_was_lost_left_and_mixed(tmp_path: Path) -> None:
    here, (result, kept) = (
        tmp_path / "here",
        (tmp_path / "here" / "o", tmp_path / "here" / "mine.csv"),
    )
    (tmp_path / "tmp").mkdir()
    result.mkdir(parents=True)
    kept.write_text("mine")
    before = attacks.state(here, "o")
    kept.unlink()
    (tmp_path / "tmp" / "tokensieve-x").touch()
    (result / "findings.csv").write_text("token\n=cmd()\n")
    (result / "SHA256SUMS").write_text(f"{'0' * 64}  findings.csv\n")
    found = "; ".join(attacks.faults(Case("", list), 0, "", "", here, before))
    for fault in ("lost mine.csv", "left tokensieve-x", "o is mixed", "the formula '=cmd()'"):
        assert fault in found
