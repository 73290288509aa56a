"""The pre-commit hook and the CI action do what they say, run as their hosts run them."""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from calls import Run, fast_first
from tokensieve import demo_reviews

ROOT = Path(__file__).parents[1]


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """A file in which `leaked` gives the label away."""
    found = demo_reviews(240, seed=2)
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(["text", "label"])
        for k, (text, label) in enumerate(zip(found.texts, found.labels, strict=True)):
            rows.writerow(
                [f"{text} leaked" if label and k % 4 == 0 else text, "pos" if label else "neg"]
            )
    return path


def test_the_action_installs_itself_where_no_version_is_named() -> None:
    [step] = [
        step for step in settings("action.yml")["runs"]["steps"] if step.get("name") == "Install"
    ]
    for version, installed in (("", "/the/action"), ("==0.4.0", "tokensieve==0.4.0")):
        done = subprocess.run(
            ["bash", "-e", "-c", f'python() {{ echo "$@"; }}\n{step["run"]}'],
            env=os.environ | {"VERSION": version, "GITHUB_ACTION_PATH": "/the/action"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == f"-m pip install {installed}"


def settings(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_hook_fails_on_a_shortcut_and_passes_without(run: Run, reviews: Path) -> None:
    hook = settings(".pre-commit-hooks.yaml")[0]
    program, command = shlex.split(hook["entry"])
    assert program == "tokensieve" and hook["pass_filenames"] is False
    status, _, reasons = run(command, str(reviews), *hook["args"])
    assert status == 3 and "leaked" in reasons and "over-budget.csv" in reasons
    loose = [arg.replace("0.9@1%", "0.99@50%") for arg in hook["args"]]
    assert run(command, str(reviews), *loose)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "status"), fast_first([("0.9@1%", 3), ("0.99@50%", 0)]))
def test_the_action_runs_its_own_script(
    reviews: Path, tmp_path: Path, budget: str, status: int
) -> None:
    (step,) = [
        step for step in settings("action.yml")["runs"]["steps"] if step.get("name") == "Audit"
    ]
    assert all(
        "${{" not in step["run"]
        for step in settings("action.yml")["runs"]["steps"]
        if "run" in step
    )
    values = {
        "SOURCE": str(reviews),
        "FAIL_ON": budget,
        "OPTIONS": "--label label --quiet --no-baseline --no-pictures",
    }
    assert set(step["env"]) == set(values)
    script = f'tokensieve() {{ "{sys.executable}" -m tokensieve "$@"; }}\n{step["run"]}'
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env=os.environ | values,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    assert (tmp_path / "tokensieve-audit" / "report.html").exists()
    assert (tmp_path / "tokensieve-audit" / "findings.sarif").exists()
    assert f" file={reviews},line=" in done.stdout
    assert ("::error file=" in done.stdout) == (status == 3)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
def test_compare_as_hook_and_as_a_step_of_the_action(
    run: Run, reviews: Path, tmp_path: Path
) -> None:
    quick = ["--no-baseline", "--no-pictures", "--quiet"]
    assert run("audit", str(reviews), "--out", "tokensieve-audit", *quick)[0] == 0
    reviews.write_text(reviews.read_text().replace(" leaked", ""))
    assert run("audit", str(reviews), "--out", "clean", *quick)[0] == 0
    hook = settings(".pre-commit-hooks.yaml")[1]
    program, command = shlex.split(hook["entry"])
    assert program == "tokensieve" and hook["pass_filenames"] is False
    status, _, reasons = run(command, "clean", "tokensieve-audit", *hook["args"])
    assert status == 3 and "appeared" in reasons  # leaked
    assert run(command, "clean", "clean", *hook["args"])[0] == 0
    (step,) = [
        step for step in settings("action.yml")["runs"]["steps"] if step.get("name") == "Compare"
    ]
    script = f'tokensieve() {{ "{sys.executable}" -m tokensieve "$@"; }}\n{step["run"]}'
    values = {"BEFORE": "clean", "FAIL_ON": "appeared=0"}
    assert set(step["env"]) == set(values)
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env=os.environ | values,
        capture_output=True,
        text=True,
    )
    assert (
        done.returncode == 3
        and "leaked" in done.stdout
        and (tmp_path / "tokensieve-compare" / "report.html").exists()
    )
