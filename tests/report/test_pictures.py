"""Pictures of an audit: bin means, which points are drawn, files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from made import make_audit

from pages import check_specifications
from tokensieve.report import pictures, render
from tokensieve.report.charts import draw
from tokensieve.report.points import EXTREMES, bin_means, thin


def test_bin_means_against_a_loop() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 0.5, 400), rng.normal(size=400)
    x[:3] = (-1.0, 1.0, 0.0)
    found = bin_means(x, y)
    expected = {}
    for i in range(20):
        low, high = -1 + i / 10, -0.9 + i / 10
        inside = y[(x >= low - 1e-12) & ((x < high - 1e-12) | (i == 19))]
        if len(inside):
            expected[round(low + 0.05, 6)] = (inside.mean(), inside.mean() - inside.std(), inside.mean() + inside.std())
    assert [round(c, 6) for c in found["x"]] == list(expected)
    assert found.select("mean", "low", "high").to_numpy() == pytest.approx(np.array(list(expected.values())))
    assert found["types"].sum() == 400


@pytest.mark.slow
def test_thinning_keeps_the_extreme_ones_and_says_so() -> None:
    audit = make_audit([f"t{i}" for i in range(6000)], ("bad", "good"))
    rows = audit.tokens.filter(pl.col("class") == "good")
    kept = thin(rows, 2500, (*EXTREMES, "value"), seed=1)
    assert kept.height == 2500 and kept["token"].n_unique() == 2500
    for column in ("effect", "posterior_difference", "documents", "value"):
        for ends in (rows.top_k(100, by=column), rows.bottom_k(100, by=column)):
            assert set(ends["token"]) <= set(kept["token"])
    assert thin(rows, 2500, (*EXTREMES, "value"), seed=1).equals(kept)
    drawn = draw(audit)
    value = drawn[0]
    assert len(value.spec["datasets"]["points"]) == 500
    assert value.caption == "500 of 6,000 token types shown: the strongest, and a sample of the rest"
    whole = bin_means(rows["posterior_difference"].to_numpy(), rows["value"].to_numpy())
    assert value.spec["datasets"]["bins"] == whole.to_dicts()
    assert "500 of 6,000 token types shown" in render(audit, drawn)


@pytest.mark.slow
def test_pictures_are_files_of_the_pages_specifications() -> None:
    audit = make_audit([f"t{i}" for i in range(40)], ("bad", "good"))
    files = pictures(audit)
    assert set(files) == {f"{of}.{ending}" for of in ("value", "score", "top") for ending in ("svg", "png")}
    drawn = draw(audit)
    check_specifications(drawn)
    for picture in drawn:
        assert files[f"{picture.name}.svg"] == picture.svg().encode()
        assert files[f"{picture.name}.png"].startswith(b"\x89PNG\r\n")
        assert "prefers-color-scheme" in picture.svg(follow_theme=True)
        assert "prefers-color-scheme" not in picture.svg()
