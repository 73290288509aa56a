"""The certificate that `verify` writes, checked by the documentation's script, which knows nothing of tokensieve."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_faces import contradicted

from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import verify

SCRIPT = Path(__file__).parents[2] / "docs" / "check_certificate.py"


def checked(folder: Path, arrays: dict[str, np.ndarray]) -> tuple[int, str]:
    np.savez(folder / "certificate.npz", **arrays)
    done = subprocess.run([sys.executable, SCRIPT, folder / "certificate.npz"], capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_limit_is_checked_by_a_script_without_tokensieve(tmp_path: Path) -> None:
    found = verify(contradicted()[0], VerifySettings(d=64, eta=400.0))
    content = found.files()["certificate.npz"]
    assert isinstance(content, bytes) and "tokensieve" not in SCRIPT.read_text().replace("without tokensieve", "")
    arrays = dict(np.load(io.BytesIO(content)))
    status, said = checked(tmp_path, arrays)
    assert status == 0 and said.endswith("certified\n") and "F1" in said and "F3" in said
    for name in ("z", "p_hat", "rho"):
        moved = arrays[name] + 1e-3 * np.linalg.norm(arrays[name]) * np.random.default_rng(0).standard_normal(64)
        assert checked(tmp_path, arrays | {name: moved})[0] == 1, name


def test_an_undecided_limit_has_no_certificate() -> None:
    found = verify(contradicted()[0], VerifySettings(d=64, eta=400.0, max_steps=3))
    assert not any(name.startswith("certificate") for name in found.files())


@pytest.mark.parametrize("name", ["certificate.json", "certificate.npz"])
def test_a_point_has_a_certificate_too(name: str) -> None:
    from tokensieve.text.counts import Counts

    counts = Counts.from_matrix([[1, 1, 0]] * 5 + [[0, 1, 1]] * 5, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    assert name in verify(counts, VerifySettings(d=8, eta=20.0, seed=5)).files()
