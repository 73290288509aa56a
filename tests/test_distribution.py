"""What leaves the house: the wheel and the source archive, their metadata, and the documentation
site."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def python(
    *arguments: str, folder: Path, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with the packages installed here and `path` before them."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {} if path is None else {"PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built from the files that git knows."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in names:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    done = python("-m", "build", "--no-isolation", "--outdir", str(out), folder=copy)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return out


def test_metadata_is_complete_and_archives_hold_what_they_should(built: Path) -> None:
    checked = python("-m", "twine", "check", "--strict", *map(str, built.iterdir()), folder=built)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    inside = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "py.typed",
        "report/page.jinja",
        "report/page.css",
        "report/live/main.js",
        "model/attention.py",
    ):
        assert f"tokensieve/{name}" in inside
    assert not [name for name in inside if name.startswith(("tests", "docs", "benchmarks"))]
    with tarfile.open(source) as archive:
        assert any(
            name.endswith("src/tokensieve/model/attention.py") for name in archive.getnames()
        )


def test_the_wheel_runs_the_demo_without_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    home = tmp_path / "installed"
    done = python(
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(home),
        str(wheel),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    ran = python("-m", "tokensieve", "demo", "--out", "demo", folder=tmp_path, path=str(home))
    assert ran.returncode == 0, ran.stderr
    where = python(
        "-c", "import tokensieve; print(tokensieve.__file__)", folder=tmp_path, path=str(home)
    ).stdout
    assert where.startswith(str(home))
    assert (
        json.loads((tmp_path / "demo" / "summary.json").read_text(encoding="utf-8"))["documents"][
            "test"
        ]
        == 400
    )
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000


def test_types_are_seen_from_outside(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    home = tmp_path / "installed"
    python(
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(home),
        str(wheel),
        folder=tmp_path,
    )
    (tmp_path / "user.py").write_text(
        "from tokensieve import AttentionClassifier, read_corpus\n"
        "reveal_type(read_corpus(([], [])).classes)\n"
        "reveal_type(AttentionClassifier().predict)\n"
    )
    # types of other libraries, which take minutes, are not looked at
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nfollow_imports = skip\n[mypy-tokensieve.*]\nfollow_imports = normal\n"
    )
    seen = python("-m", "mypy", "user.py", folder=tmp_path, path=str(home)).stdout
    assert "tuple[str, ...]" in seen and "def (X: Any)" in seen, seen


# what a browser would fetch from elsewhere; links that a reader may follow are fine
OUTSIDE = re.compile(
    r"""(<script|<img|<link|<iframe)[^>]+(src|href)=["'](https?:)?//[^"']+|@import\s+url\(["']?https?:"""
)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = python("-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(ROOT / "docs"), str(tmp_path), folder=ROOT,
                  path=str(ROOT / "src"))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "api" / "model.html").read_text(encoding="utf-8")
    assert "AttentionClassifier" in page and "problematic" not in page
    loaded = [
        f"{path.name}: {found[0]}"
        for path in tmp_path.rglob("*.html")
        for found in OUTSIDE.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not loaded, loaded
    assert "<math" in (tmp_path / "glossary.html").read_text(encoding="utf-8")
    assert "over-budget.csv" in (tmp_path / "reference" / "files.html").read_text(encoding="utf-8")
