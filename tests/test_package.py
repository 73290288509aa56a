"""The public names: each exists, is documented, and has a home of another name."""

from __future__ import annotations

import gc
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tokensieve
from tokensieve import InputError, read_corpus
from tokensieve.__main__ import _explain
from tokensieve.text.pieces import PieceTokenizer

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", [n for n in tokensieve.__all__ if n != "__version__"])
def test_public_name(name: str) -> None:
    value = getattr(tokensieve, name)
    assert inspect.getdoc(value), f"{name} is not documented"
    assert importlib.util.find_spec(f"tokensieve.{name}") is None


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = tokensieve.nonsense


@pytest.mark.skipif(os.name != "posix", reason="for POSIX only")
def test_where_no_folder_can_be_written_kernels_are_kept_in_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba's cache holds pickles: a folder that others can write, or made first by somebody else,
    is not used."""

    def place() -> Path:
        monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # so that it is set back at the end
        monkeypatch.delenv("NUMBA_CACHE_DIR")
        tokensieve._find_room_for_kernels()
        return Path(os.environ.get("NUMBA_CACHE_DIR", "beside the code"))

    assert place() == Path("beside the code")
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = place()
    assert own.parent == tmp_path and own.stat().st_mode == 0o40700 and place() == own
    own.chmod(0o777)
    assert place() != own and place().stat().st_mode == 0o40700
    own.rmdir()
    own.symlink_to(tmp_path)
    assert place() not in (own, tmp_path)


def test_a_folder_for_kernels_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """NUMBA_CACHE_DIR of another user, for example; the error is Numba's."""
    assert (
        _explain(RuntimeError("cannot cache function 'f': no locator available for file 'x.py'"))
        == 2
    )
    assert capsys.readouterr().err.endswith(
        "set NUMBA_CACHE_DIR to a folder that you can write to\n"
    )


def test_help_waits_for_no_library_that_it_does_not_need() -> None:
    heavy = {"numpy", "polars", "scipy", "numba", "altair", "sklearn"}
    code = f"import sys, tokensieve.cli; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_an_audit_loads_neither_scikit_learn_nor_pandas(tmp_path: Path) -> None:
    """Where one thread has pandas half loaded, Polars fails in another; scikit-learn loads
    pandas."""
    (tmp_path / "a.csv").write_text(
        "text,label\n" + "".join(f"word{i % 7} w{i},{'ab'[i % 2]}\n" for i in range(60))
    )
    code = (
        "import sys\n"
        "from tokensieve.__main__ import main\n"
        "sys.argv = ['tokensieve', 'audit', 'a.csv', '-q', '--no-pictures']\n"
        "try:\n    main()\n"
        "finally:\n    print({'sklearn', 'pandas'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "set()"
    assert (
        json.loads((tmp_path / "tokensieve-audit" / "summary.json").read_text())[
            "baseline_accuracy"
        ]
        is not None
    )


@pytest.mark.slow
def test_main_job_needs_no_optional_library() -> None:
    code = (
        "import sys\nclass Missing:\n    def find_spec(self, name, path=None, "
        "target=None):\n        if name.split('.')[0] in {'torch', 'datasets', 'transformers', "
        "'pandas', 'pyarrow', 'dask', 'tokenizers', 'fastexcel'}:\n            raise "
        "ModuleNotFoundError(name)\nsys.meta_path.insert(0, Missing())\nimport tokensieve\nr = "
        "tokensieve.demo_reviews(80)\na = "
        "tokensieve.audit(tokensieve.read_corpus((r.texts.to_list(), r.labels.tolist())))\nassert "
        "len(tokensieve.render(a, [])) > 10_000 and tokensieve.pictures(a)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setattr("tokensieve.read.workbooks.find_spec", lambda name: None)
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    for library, read in (
        ("tokenizers", lambda: PieceTokenizer("tokenizer.json")),
        ("fastexcel", lambda: read_corpus(str(tmp_path / "a.xlsx"))),
    ):
        with pytest.raises(InputError, match=f"needs {library}: pip install") as raised:
            read()
        extra = re.search(r"tokensieve\[(\w+)\]", str(raised.value))
        assert extra and library in project["optional-dependencies"][extra[1]][0]


def test_locked_versions_are_in_the_declared_ranges() -> None:
    """The ranges say what was tried; both locks are installed by `make test`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for lock in ("requirements.lock", "requirements-test.lock"):
        entries = re.findall(
            r"^(\S+)==(\S+) ((?:\\\n +--hash=sha256:[0-9a-f]{64} ?)+)$",
            (ROOT / lock).read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        locked = {canonicalize_name(name): version for name, version, _ in entries}
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert text.count("==") == len(locked), "each is locked once, with its hashes"
        for requirement in map(Requirement, project["dependencies"]):
            assert {"<", ">="} <= {part.operator for part in requirement.specifier}, requirement
            version = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), (lock, requirement, version)


def test_importing_a_name_leaves_the_garbage_collector_as_it_was() -> None:
    for switch in (gc.disable, gc.enable):
        switch()
        was_enabled = gc.isenabled()
        assert callable(tokensieve.audit)
        with pytest.raises(AttributeError):
            tokensieve.no_such_name  # noqa: B018
        assert gc.isenabled() == was_enabled
