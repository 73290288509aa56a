"""Phase diagrams: means and deviations against arithmetic by hand, failed runs left out and counted."""

from __future__ import annotations

import numpy as np
import pytest

from theory_docs.phases import phase_pictures, phase_table
from theory_docs.sweep import Sweep
from tokensieve.errors import InputError


def sweep() -> Sweep:
    rows = [
        {"leak": leak, "d": d, "seed": seed, "tied_share": leak + 0.1 * seed, "limit_dimension_v": seed}
        for leak in (0.0, 0.3) for d in (64, 1024) for seed in range(3)
    ]  # fmt: skip
    return Sweep([*rows, {"leak": 0.3, "d": 64, "seed": 9, "verdict": "failed"}], {})


def test_means_and_deviations_over_seeds() -> None:
    table = phase_table(sweep(), "leak", "d")
    row = table.filter(x=0.3, by="64", figure="tied_share").to_dicts()[0]
    values = np.array([0.3, 0.4, 0.5])
    assert row["mean"] == pytest.approx(values.mean()) and row["sd"] == pytest.approx(
        values.std(ddof=1)
    )
    assert (row["runs"], row["undecided"]) == (3, 1)


def test_a_picture_for_each_figure_that_was_found() -> None:
    found = phase_pictures(sweep(), "leak", "d")
    assert list(found) == ["phase-dimension-v", "phase-tied-share"]
    assert "1 without this figure" in found["phase-dimension-v"].to_dict()["title"]["subtitle"]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no column 'leek'"):
        phase_pictures(sweep(), "leek")
