"""compare --on: a repair is judged where the shortcut misleads, in words, numbers and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve import Settings, audit, demo_reviews, mask_texts
from tokensieve.auditing.link_report import repair_effect
from tokensieve.text.tokenizers import WordTokenizer

QUICK = Settings(baseline=False, thorough=False)
NAMES = ["negative", "positive"]


def reviews(n: int, seed: int) -> pl.DataFrame:
    made = demo_reviews(n, seed=seed)
    return pl.DataFrame({"text": made.texts, "label": [NAMES[label] for label in made.labels]})


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Audits of reviews with the planted "tablet" and of a masked copy, and held-out reviews."""
    folder = tmp_path_factory.mktemp("repair")
    train = reviews(1500, 1)
    masked, _ = mask_texts(train["text"], ["tablet", "laptop", "phone", "web"], WordTokenizer())
    for name, frame in (("before", train), ("after", train.with_columns(text=masked))):
        audit(frame, QUICK, text="text", label="label").save(folder / name, pictures=False)
    reviews(800, 2).write_csv(folder / "test.csv")
    return folder


def test_a_masked_copy_helps_where_the_mark_misleads(audits: Path) -> None:
    effect = repair_effect(audits / "before", audits / "after", str(audits / "test.csv"))
    of_tablet = next(e for e in effect.marks if "tablet" in e.mark.tokens)
    groups = {result.group: result for result in of_tablet.groups}
    inserted = groups["inserted"]
    assert inserted.after > inserted.before + 0.3 and inserted.p_value < 1e-6
    assert of_tablet.groups[0].before == min(result.before for result in of_tablet.groups)
    assert abs(effect.overall.before - effect.overall.after) < 0.1
    table = effect.to_frame()
    assert table.height == 1 + sum(len(e.groups) for e in effect.marks)


def test_ratings_of_both_classes_are_a_mark_of_each(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = reviews(1200, 4)
    ratings = [
        f" {rng.integers(*((7, 11) if label == 'positive' else (1, 5)))}/10" if i % 2 else ""
        for i, label in enumerate(frame["label"])
    ]
    rated = frame.with_columns(text=frame["text"] + pl.Series(ratings))
    found = audit(rated, QUICK, text="text", label="label")
    assert any(finding.label == "" for finding in found.shortcuts)
    found.save(tmp_path / "rated", pictures=False)
    rated.write_csv(tmp_path / "rated.csv")
    effect = repair_effect(tmp_path / "rated", tmp_path / "rated", str(tmp_path / "rated.csv"))
    of_class = {e.mark.label: set(e.mark.tokens) for e in effect.marks if "/" in e.mark.tokens[0]}
    assert of_class["positive"] >= {"8/10", "9/10", "10/10"}
    assert of_class["negative"] >= {"1/10", "2/10", "3/10"}
    assert {group.group for e in effect.marks for group in e.groups} >= {"inserted", "removed"}


def test_the_first_model_against_itself_changes_nothing(audits: Path) -> None:
    effect = repair_effect(audits / "before", audits / "before", str(audits / "test.csv"))
    results = [effect.overall, *(result for e in effect.marks for result in e.groups)]
    assert all(result.p_value == 1 and result.before == result.after for result in results)


def test_the_command_says_and_writes_it(run: Run, audits: Path) -> None:
    folders = (str(audits / "before"), str(audits / "after"))
    status, out, _ = run("compare", *folders, "--on", str(audits / "test.csv"), "--out", "c")
    assert status == 0 and "Did it help?" in out
    assert pl.read_csv("c/repair.csv")["documents"][0] == 800
    headline = json.loads(Path("c/summary.json").read_text())["repair"]["headline"]
    assert "tablet" in headline
    assert "Did it help?" in Path("c/report.html").read_text()


def test_an_audit_without_shortcuts_is_one_line(run: Run, audits: Path, tmp_path: Path) -> None:
    plain = reviews(400, 3)
    plain = plain.with_columns(label=pl.Series(NAMES * 200))
    audit(plain, QUICK, text="text", label="label").save(tmp_path / "none", pictures=False)
    status, _, error = run("compare", "none", "none", "--on", str(audits / "test.csv"))
    assert status == 2
    assert "no shortcut" in error and error.count("\n") == 1
