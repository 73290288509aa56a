"""Experiment trackers: what an audit found, beside the runs of the models that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokensieve.errors import InputError

ARTEFACT = "tokensieve-audit"  # the folder, or the name, of the files in a run
TRACKERS = {"mlflow": "pip install mlflow-skinny", "wandb": "pip install wandb"}


def check_tracker(tracker: str) -> None:
    """Make sure, before any work is done, that a tracker is known and installed.

    Raises:
        InputError: it is not.
    """
    if tracker not in TRACKERS:
        raise InputError(f"cannot log to {tracker!r}; choose from {', '.join(TRACKERS)}")
    try:
        is_installed = find_spec(tracker) is not None
    except ValueError:  # a module without a specification
        is_installed = True
    if not is_installed:
        raise InputError(f"{tracker} is not installed: {TRACKERS[tracker]}")


def log_run(
    tracker: str, settings: Mapping[str, Any], figures: Mapping[str, float], folder: Path
) -> None:
    """Log settings, figures and the files of a folder to the open run, or to a new one."""
    module = import_module(tracker)
    parameters = {
        f"tokensieve.{name}": str(value)
        for name, value in settings.items()
        if value not in (None, "", [], {})
    }
    metrics = {f"tokensieve.{name}": value for name, value in figures.items()}
    if tracker == "mlflow":
        _log_to_mlflow(module, parameters, metrics, folder)
    else:
        _log_to_wandb(module, parameters, metrics, folder)


def _log_to_mlflow(
    mlflow: Any, parameters: dict[str, str], metrics: dict[str, float], folder: Path
) -> None:
    """Log to MLflow's open run; without one, to a run of its own, which is ended."""
    is_ours = mlflow.active_run() is None
    if is_ours:
        mlflow.start_run(run_name=ARTEFACT)
    try:
        mlflow.log_params(parameters)
        mlflow.log_metrics(metrics)
        mlflow.log_artifacts(str(folder), artifact_path=ARTEFACT)
    finally:
        if is_ours:
            mlflow.end_run()


def _log_to_wandb(
    wandb: Any, parameters: dict[str, str], metrics: dict[str, float], folder: Path
) -> None:
    """Log to the open run of Weights & Biases; without one, to a run of its own, which is ended."""
    is_ours = wandb.run is None
    run = wandb.init(project="tokensieve", job_type="audit") if is_ours else wandb.run
    try:
        run.config.update(parameters, allow_val_change=True)
        run.log(metrics)
        artefact = wandb.Artifact(ARTEFACT, type="audit")
        artefact.add_dir(str(folder))
        run.log_artifact(artefact)
    finally:
        if is_ours:
            run.finish()
