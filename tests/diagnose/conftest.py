"""Toy models, trained once for all tests of diagnoses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from artefacts import Artefact
from calls import later
from diagnose_models import planted_reviews
from tokensieve.diagnose import Diagnosis, load

torch = later("torch")
later("transformers")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Tiny models are slower with more."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def reviews() -> Any:
    """Documents in which the planted word says nothing."""
    return planted_reviews(400, 77, planted=False)


@pytest.fixture(scope="session")
def trained(shared_diagnosis: Artefact) -> Any:
    """A model that learnt a planted shortcut, and its tokenizer."""
    return load(str(shared_diagnosis.source.parent / "model"))


@pytest.fixture(scope="session")
def found(shared_diagnosis: Artefact) -> Diagnosis:
    """The diagnosis of that model on `reviews`."""
    assert isinstance(shared_diagnosis.result, Diagnosis)
    return shared_diagnosis.result


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, shared_diagnosis: Artefact) -> Path:
    """A folder with the trained model and documents."""
    folder = tmp_path_factory.mktemp("diagnose")
    held = planted_reviews(200, 9, planted=False)
    shutil.copytree(shared_diagnosis.source.parent / "model", folder / "model")
    names = np.where(held.labels == 1, "positive", "negative")
    pl.DataFrame({"text": held.texts, "label": names}).write_csv(folder / "held.csv")
    pl.DataFrame({"text": held.texts, "label": 1 - held.labels}).write_csv(folder / "swapped.csv")
    other = pl.DataFrame({"text": held.texts, "label": np.where(held.labels == 1, "down", "up")})
    other.write_csv(folder / "other.csv")
    pl.DataFrame({"text": held.texts, "label": np.arange(200) % 3}).write_csv(folder / "three.csv")
    (folder / "few.csv").write_text(
        "text,label\na b,positive\nb c,negative\na d,positive\nc d,negative\n"
    )
    return folder
