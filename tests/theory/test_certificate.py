"""The certificate that `verify` writes, checked by the documentation's script, which knows nothing of tokensieve."""

from __future__ import annotations

import io
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_faces import contradicted

from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import verify

SCRIPT = Path(__file__).parents[2] / "docs" / "check_certificate.py"


def test_a_limit_is_checked_by_a_script_without_tokensieve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "certificate.npz"
    found = verify(contradicted()[0], VerifySettings(d=64, eta=400.0))
    content = found.files()["certificate.npz"]
    assert isinstance(content, bytes) and "tokensieve" not in SCRIPT.read_text().replace(
        "without tokensieve", ""
    )
    path.write_bytes(content)
    done = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True)
    assert not done.stderr and done.returncode == 0
    assert done.stdout.endswith("\ncertified\n") and "F1" in done.stdout and "F3" in done.stdout
    arrays = dict(np.load(io.BytesIO(content)))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(path)])
    for name in ("z", "p_hat", "rho"):
        moved = arrays[name] + 1e-3 * np.linalg.norm(arrays[name]) * np.random.default_rng(
            0
        ).standard_normal(64)
        np.savez(path, **(arrays | {name: moved}))
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPT))
        assert ended.value.code == 1 and capsys.readouterr().out.endswith("NOT certified\n"), name


def test_an_undecided_limit_has_no_certificate() -> None:
    found = verify(contradicted()[0], VerifySettings(d=64, eta=400.0, max_steps=3))
    assert not any(name.startswith("certificate") for name in found.files())


@pytest.mark.parametrize("name", ["certificate.json", "certificate.npz"])
def test_a_point_has_a_certificate_too(name: str) -> None:
    from tokensieve.text.counts import Counts

    counts = Counts.from_matrix([[1, 1, 0]] * 5 + [[0, 1, 1]] * 5, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    assert name in verify(counts, VerifySettings(d=8, eta=20.0, seed=5)).files()
