"""Audits are logged to whatever tracker is installed, in the run that is open."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tokensieve.auditing.trackers import check_tracker, log_run
from tokensieve.errors import InputError

SETTINGS = {"seed": 0, "text": None, "ngrams": 2}
FIGURES = {"test_accuracy": 0.75}
PARAMETERS = {"tokensieve.seed": "0", "tokensieve.ngrams": "2"}
METRICS = {"tokensieve.test_accuracy": 0.75}


class FakeMlflow(SimpleNamespace):
    """Records what is logged, and in which run."""

    def __init__(self, run: str | None) -> None:
        super().__init__(run=run, begun=0, logged={})

    def active_run(self) -> str | None:
        return self.run

    def start_run(self, run_name: str) -> None:
        self.begun += 1
        self.run = run_name

    def end_run(self) -> None:
        self.run = None

    def log_params(self, parameters: dict[str, str]) -> None:
        self.logged["parameters"] = parameters

    def log_metrics(self, metrics: dict[str, float]) -> None:
        self.logged["metrics"] = metrics

    def log_artifacts(self, folder: str, artifact_path: str) -> None:
        assert self.run is not None
        self.logged["files"] = sorted(path.name for path in Path(folder).iterdir())


class FakeWandbRun(SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(logged={}, is_finished=False)
        self.config = SimpleNamespace(update=self._update)

    def _update(self, parameters: dict[str, str], allow_val_change: bool) -> None:
        self.logged["parameters"] = parameters

    def log(self, metrics: dict[str, float]) -> None:
        self.logged["metrics"] = metrics

    def log_artifact(self, artefact: Any) -> None:
        self.logged["files"] = artefact.files

    def finish(self) -> None:
        self.is_finished = True


class FakeArtifact(SimpleNamespace):
    def __init__(self, name: str, type: str) -> None:
        super().__init__(name=name, type=type, files=[])

    def add_dir(self, folder: str) -> None:
        self.files = sorted(path.name for path in Path(folder).iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "report.html").write_text("page")
    return tmp_path


@pytest.mark.parametrize("open_run", ["mine", None])
def test_mlflow(monkeypatch: pytest.MonkeyPatch, folder: Path, open_run: str | None) -> None:
    mlflow = FakeMlflow(open_run)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    check_tracker("mlflow")
    log_run("mlflow", SETTINGS, FIGURES, folder)
    assert mlflow.logged == {
        "parameters": PARAMETERS,
        "metrics": METRICS,
        "files": ["report.html"],
    }
    assert mlflow.run == open_run and mlflow.begun == (open_run is None)


@pytest.mark.parametrize("is_open", [True, False])
def test_wandb(monkeypatch: pytest.MonkeyPatch, folder: Path, is_open: bool) -> None:
    run = FakeWandbRun()
    wandb = SimpleNamespace(
        run=run if is_open else None, init=lambda **_: run, Artifact=FakeArtifact
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    check_tracker("wandb")
    log_run("wandb", SETTINGS, FIGURES, folder)
    assert run.logged == {"parameters": PARAMETERS, "metrics": METRICS, "files": ["report.html"]}
    assert run.is_finished is not is_open


def test_a_tracker_that_is_not_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokensieve.auditing.trackers.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install wandb"):
        check_tracker("wandb")
    with pytest.raises(InputError, match="mlflow, wandb"):
        check_tracker("neptune")
