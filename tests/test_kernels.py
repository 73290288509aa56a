"""Machine code from the cache is run only for the arguments that it was compiled for."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PROGRAM = """
from tokensieve.kernels import compiled
@compiled()
def total(numbers):
    result = 0.0
    for i in range(len(numbers)):
        result += numbers[i]
    return result
"""


def imported(path: Path) -> ModuleType:
    """The module in a file, anew: its compiled functions have nothing in memory."""
    specification = importlib.util.spec_from_file_location("kernel_of_a_test", path)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_code_for_other_arguments_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two processes leave it that compile at the same time: the two files change places."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "kernel.py"
    path.write_text(PROGRAM)
    numbers = np.arange(10.0)
    every_other = numbers[::2]  # not contiguous
    kernels = imported(path)
    assert (kernels.total(numbers), kernels.total(every_other)) == (45.0, 20.0)
    first, second = sorted((tmp_path / "cache").rglob("*.nbc"))
    code = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(code)
    kernels = imported(path)
    assert (kernels.total(every_other), kernels.total(numbers)) == (20.0, 45.0)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\0" * 500, b"\x99rubbish", b"cos\nno_such\n."])
def test_a_damaged_cache_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, content: bytes
) -> None:
    """As a full disk or a crash leaves it; the next process finds a good one again."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "kernel.py"
    path.write_text(PROGRAM)
    numbers = np.arange(10.0)
    assert imported(path).total(numbers) == 45.0
    (damaged,) = (tmp_path / "cache").rglob(f"*.{ending}")
    damaged.write_bytes(content)
    assert imported(path).total(numbers) == 45.0
    repaired = imported(path)
    assert repaired.total(numbers) == 45.0
    assert repaired.total.stats.cache_hits


LATER_PROCESS = """
import sys
import numpy as np
from kernel import total
assert total(np.arange(10.0)) == 45.0 and total.stats.cache_hits
print("numba.cpython.unicode" in sys.modules)
assert total(np.arange(10)) == 45.0 and total.stats.cache_misses
print("numba.cpython.unicode" in sys.modules)
"""


@pytest.mark.slow
def test_code_from_the_cache_needs_no_compiler(tmp_path: Path) -> None:
    """What a compilation needs is imported for other arguments, and not before."""
    (tmp_path / "kernel.py").write_text(PROGRAM)
    first = "import numpy; from kernel import total; total(numpy.arange(10.0))"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for program in (first, LATER_PROCESS)
    ]
    assert outputs[1] == ["False", "True"]
