"""The benchmark of verdicts runs small: no sentence is false more often than one in twenty
allows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from calls import fast_first

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def verdicts() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("verdicts", BENCHMARKS / "verdicts.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["verdicts"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


@pytest.mark.parametrize(
    ("trial", "most"),
    fast_first(
        [
            ("significant_without_effect", 0.0),
            ("shortcut_in_shuffled_labels", 0.0),
            ("missed_copies", 0.1),
            ("false_copies", 0.0),
            ("accused_in_unlearnable_class", 0.0),
            ("drift_in_random_split", 0.0),
            ("rewarded_in_random_preferences", 0.0),
            ("missed_although_it_would_be_found", 0.0),
        ],
        2,
    ),
)
def test_a_verdict_on_generated_data(verdicts: ModuleType, trial: str, most: float) -> None:
    outcome = getattr(verdicts, trial)(verdicts.generated(0, 400), 0)
    assert outcome.false <= most * max(outcome.said, 1)


def test_the_page_has_a_row_for_each_verdict(verdicts: ModuleType) -> None:
    import polars as pl

    rows = [
        {
            "sentence": verdict.sentence,
            "truth": verdict.truth,
            "counted": verdict.counted,
            "sets": "generated",
            "said": 20,
            "false": 1,
            "rate": 0.05,
            "low": 0.01,
            "high": 0.24,
        }
        for verdict in verdicts.VERDICTS
    ]
    page = verdicts.page(pl.DataFrame(rows))
    assert all(verdict.sentence in page for verdict in verdicts.VERDICTS)
    written = (BENCHMARKS.parent / "docs" / "verdicts.md").read_text()
    assert all(verdict.sentence in written for verdict in verdicts.VERDICTS)
