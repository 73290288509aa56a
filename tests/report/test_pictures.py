"""Pictures of an audit: bin means, which points are drawn, files."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from made import make_audit

from pages import check_specifications, pictures_in
from tokensieve import pictures
from tokensieve.report.blocks import Picture
from tokensieve.report.pictures import draw, specification, themed
from tokensieve.report.pictures.tokens import EXTREMES, bins_of, sample_with_extremes


def test_bin_means_against_a_loop() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 0.5, 400), rng.normal(size=400)
    x[:3] = (-1.0, 1.0, 0.0)
    found = bins_of(pl.DataFrame({"x": x, "y": y}), "x", "y")
    expected = {}
    for i in range(20):
        low, high = -1 + i / 10, -0.9 + i / 10
        inside = y[(x >= low - 1e-12) & ((x < high - 1e-12) | (i == 19))]
        if len(inside):
            expected[round(low + 0.05, 6)] = (
                inside.mean(),
                inside.mean() - inside.std(),
                inside.mean() + inside.std(),
            )
    assert [round(c, 6) for c in found["x"]] == list(expected)
    assert found.select("mean", "low", "high").to_numpy() == pytest.approx(
        np.array(list(expected.values()))
    )
    assert found["types"].sum() == 400
    gap = bins_of(pl.DataFrame({"x": [-0.9, -0.85, 0.35, 0.45], "y": [1.0] * 4}), "x", "y")
    assert (
        gap["run"].n_unique() == 2 and gap["run"][0] != gap["run"][-1] == gap["run"][-2]
    )  # the line is broken there


def test_a_broken_line_is_dotted_between_its_parts_and_a_picture_of_one_class_says_which() -> None:
    audit = make_audit([f"t{i}" for i in range(40)], ("bad", "good", "mixed"))
    _, first, *others = pictures_in(audit)  # after that of the headline
    lines = [layer for layer in specification(first)["layer"] if layer["mark"]["type"] == "line"]
    assert [("strokeDash" in layer["mark"], "detail" in layer["encoding"]) for layer in lines] == [
        (False, True),
        (True, False),
        (False, True),
    ]
    assert "one of 3; to see another, choose it under “Class”" in first.caption
    assert not any("one of 3" in picture.caption for picture in others)


@pytest.mark.slow
def test_thinning_keeps_the_extreme_ones_and_says_so() -> None:
    audit = make_audit([f"t{i}" for i in range(6000)], ("bad", "good"))
    rows = audit.tokens.filter(pl.col("class") == "good")
    kept = sample_with_extremes(rows, 2500, (*EXTREMES, "value"), seed=1)
    assert kept.height == 2500 and kept["token"].n_unique() == 2500
    for column in ("effect", "posterior_difference", "documents", "value"):
        for ends in (rows.top_k(100, by=column), rows.bottom_k(100, by=column)):
            assert set(ends["token"]) <= set(kept["token"])
    assert sample_with_extremes(rows, 2500, (*EXTREMES, "value"), seed=1).equals(kept)
    value = next(picture for picture in pictures_in(audit) if picture.name == "value")
    spec = specification(value)
    assert len(spec["datasets"]["points"]) == value.data["limit"] < 2000
    whole = bins_of(rows, "posterior_difference", "value")
    assert spec["datasets"]["bins"] == whole.to_dicts()
    assert spec["title"]["subtitle"] == [f"{value.data['limit']:,} of 6,000 token types shown"]


def test_names_on_the_map_are_of_strong_predictors_and_the_caption_explains_every_line() -> None:
    """They were of common words, whose effect is large however little one of them tells."""
    audit = make_audit([f"t{i}" for i in range(40)], ("bad", "good"))
    [value] = [picture for picture in pictures_in(audit) if picture.name == "value"]
    common = {
        "token": "of",
        "documents": 100_000,
        "posterior_difference": 0.1,
        "effect": 1.0,
        "value": 0.1,
    }
    common |= {"posterior_low": 0.09, "posterior_high": 0.11}
    told = {
        "token": "⟨starts with a symbol⟩",
        "documents": 5000,
        "posterior_difference": 0.9,
        "value": 8.0,
    }
    told |= {"posterior_low": 0.88, "posterior_high": 0.92}
    rows = value.data["tokens"]
    more = [rows.row(0, named=True) | row for row in (common, told)]
    tokens = pl.concat([rows, pl.DataFrame(more, schema=rows.schema)])
    names = [
        row["text"]
        for row in specification(replace(value, data=value.data | {"tokens": tokens}))["datasets"][
            "names"
        ]
    ]
    assert names[0] == "⟨starts with a symbol⟩" and "of" not in names[:5]
    for words in (
        "mean over all token types",
        "grey band",
        "dashed line is where a token spread evenly",
    ):
        assert words in value.caption


@pytest.mark.slow
def test_pictures_are_files_of_the_pages_specifications() -> None:
    audit = make_audit([f"t{i}" for i in range(40)], ("bad", "good"))
    files = pictures(audit)
    names = ("headline", "alarm", "value", "score", "top")
    assert set(files) == {f"{of}.{ending}" for of in names for ending in ("svg", "png")}
    found = pictures_in(audit)
    check_specifications([specification(picture) for picture in found])
    drawings = draw(found)
    for name in names:
        assert files[f"{name}.svg"] == drawings[name]["svg"]
        assert files[f"{name}.png"].startswith(b"\x89PNG\r\n")
        assert "prefers-color-scheme" in themed(drawings[name]["svg"])
        assert b"prefers-color-scheme" not in drawings[name]["svg"]


@pytest.mark.slow
def test_a_label_of_emojis_costs_no_picture(capfd: pytest.CaptureFixture[str]) -> None:
    """Vega cuts a label that is too long for a chart, and what it leaves may end in half of a
    character."""
    audit = make_audit([f"t{i}" for i in range(40)], ("bad", "😀" * 10 + " 2"))
    assert {"value", "score"} <= set(draw(pictures_in(audit))) and not capfd.readouterr().err


@pytest.mark.slow
def test_the_page_holds_circles_where_vega_draws_them() -> None:
    audit = make_audit([f"t{i}" for i in range(40)], ("bad", "good"))
    [value] = [picture for picture in pictures_in(audit) if picture.name == "value"]
    plain = draw([value])["value"]["svg"].decode()
    slim = themed(plain.encode())
    moved = r'translate\(([-0-9.]+),([-0-9.]+)\)" d="M[0-9.]+,0A[^"]*" fill="#[0-9a-f]+" stroke-width="2" opacity'
    circle = (
        r'<circle cx="([-0-9.]+)" cy="([-0-9.]+)" r="[0-9.]+" fill="#[0-9a-f]+" opacity="0.5"/>'
    )
    places, circles = re.findall(moved, plain), re.findall(circle, slim)
    assert len(circles) == len(places) == 40
    for one, other in zip(places, circles, strict=True):
        assert all(abs(float(a) - float(b)) < 0.1 for a, b in zip(one, other, strict=True))


def test_names_lie_beside_each_other_and_inside_the_picture() -> None:
    lines = pl.DataFrame(
        {"token": list("abcdef"), "before": [0.0] * 6, "after": [1.0, 1.01, 1.02, 1.03, 5.0, 9.0]}
    )
    data = {
        "changes": lines.with_columns(kind=pl.lit("new")),
        "names": ("x", "y"),
        "axis": "effect",
    }
    ends = specification(Picture("compare", "audit-slopes", data, "t"))["datasets"]["ends"]
    places = np.asarray([row["at"] for row in ends])
    assert (
        np.diff(places).min() > 0.49 and abs(places[:4].mean() - 1.015) < 1e-6
    )  # of 8/16, centred on their lines
    gone = pl.DataFrame({"token": list("abc"), "before": [-1.2, 3.0, -1.1], "after": [0.0] * 3})
    ends = specification(
        Picture(
            "compare",
            "audit-slopes",
            data | {"changes": gone.with_columns(kind=pl.lit("gone"))},
            "t",
        )
    )["datasets"]["ends"]
    assert [row["token"] for row in sorted(ends, key=lambda row: -row["at"])] == [
        "b",
        "c",
        "a",
    ]  # as their lines lie
    stayed = pl.DataFrame(
        {"token": list("abc"), "before": [3.0, 2.0, 2.01], "after": [0.0, 2.0, 2.01]}
    )
    kinds = stayed.with_columns(
        kind=pl.Series(["gone", "no significant change", "no significant change"])
    )
    ends = specification(Picture("compare", "audit-slopes", data | {"changes": kinds}, "t"))[
        "datasets"
    ]["ends"]
    assert [(row["token"], row["at"]) for row in ends] == [
        ("a", 0.0),
        ("c", 2.01),
    ]  # an unchanged one only at its own line
    words = [
        {
            "rank": 0,
            "text": "indistinguishable",
            "x": 1.0,
            "low": 0.5,
            "high": 2.0,
            "data": "no support",
        }
    ]
    text = str(
        specification(Picture("use", "diagnose-use", {"words": words, "axis": "effect"}, "t"))
    )
    end = float(re.search(r"'domain': \[0, ([0-9.]+)\]", text)[1])  # type: ignore[index]
    assert 420 * (1 - 2.0 / end) > 8 * len("indistinguishable")
