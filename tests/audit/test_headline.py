"""The first thing on an audit's page shows what its headline claims, and its commands repair that."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve import Settings, audit, demo_pairs, demo_reviews
from tokensieve.auditing.balance_plan import BalancePlan
from tokensieve.auditing.result import Audit
from tokensieve.evidence.paired import PairedDifference
from tokensieve.report.blocks import Command, Facts, Picture, Report
from tokensieve.report.pictures import specification

QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)
LONG_NAME = "cash_withdrawal_not_recognised"


def reviews(
    n: int, seed: int, ending: str = "", labels: tuple[str, str] = ("bad", "good")
) -> Audit:
    """Audits reviews without the demo's shortcut, two thirds of the good ones with another ending."""
    made = demo_reviews(n, seed)
    texts = []
    for i, (text, label) in enumerate(zip(made.texts, made.labels, strict=True)):
        plain = text.partition("\n")[0].rstrip(".")
        is_marked = bool(label and i % 3) or (not label and i % 20 == 0)
        texts.append(f"{plain}{ending}" if is_marked and ending else f"{plain}.")
    return audit((texts, [labels[label] for label in made.labels]), QUICK)


def pictures_of(report: Report) -> list[Picture]:
    return [block for block in report.blocks if isinstance(block, Picture)]


@pytest.mark.slow
def test_a_shortcut_is_shown_by_the_classes_of_its_documents() -> None:
    """The first picture was a map of thousands of tokens, in which a ring marked the shortcut."""
    found = reviews(400, 1, ending="!!")
    finding = found.findings[0]
    first, second, *_ = pictures_of(found.report())
    assert (first.name, second.chart) == ("headline", "audit-map")
    shares = first.data["shares"]
    assert shares["heading"].n_unique() == 2
    for heading in shares["heading"].unique():
        assert shares.filter(pl.col("heading") == heading)["share"].sum() == pytest.approx(1)
    of_class = shares.filter(pl.col("class") == finding.label)["share"].to_list()
    assert of_class[0] == pytest.approx(finding.evidence["decides"].value, abs=1e-9)
    assert of_class[1] < 0.5 < of_class[0]
    drawn = specification(first)["datasets"]
    assert {row["class"] for row in drawn["shares"]} == set(found.classes)


@pytest.mark.slow
def test_rings_on_the_map_are_in_its_legend() -> None:
    found = reviews(400, 1, ending="!!")
    legends = [
        layer["encoding"]["stroke"]["legend"]
        for layer in specification(pictures_of(found.report())[1])["layer"]
        if "stroke" in layer["encoding"]
    ]
    assert len(legends) == 1 and legends[0] is not None


@pytest.mark.slow
def test_long_class_names_are_written_out_on_the_map() -> None:
    """Two class names of 30 letters were cut to 14, so that they could not be told apart."""
    labels = (f"{LONG_NAME}_at_home", f"{LONG_NAME}_abroad")
    found = reviews(300, 2, labels=labels)
    chart = specification(pictures_of(found.report())[1])
    x_title = chart["layer"][0]["encoding"]["x"]["title"]
    assert isinstance(x_title, list)
    assert all(LONG_NAME[:25] in line for line in x_title)
    legend = chart["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert not any("…" in name for name in legend)


def test_of_pairs_the_first_picture_shows_what_wins_at_equal_length() -> None:
    found = audit(demo_pairs(400, seed=3), QUICK, pairs=("chosen", "rejected"))
    first = pictures_of(found.report())[0]
    assert first.name == "headline" and first.data["rates"].height > 1
    drawn = specification(first)["datasets"]
    kinds = {row["kind"] for row in drawn["dots"]}
    assert kinds == {"overall", "at equal length"}
    assert all(row["low"] <= row["high"] for row in drawn["intervals"])


@pytest.mark.slow
def test_many_classes_without_a_finding_show_the_strongest_predictor_of_each() -> None:
    rng = np.random.default_rng(0)
    words = [f"topic{name}" for name in "abcdefgh"]
    labels = rng.integers(0, 8, 800)
    frame = "we saw it there again and then left for home with them".split()
    texts = [" ".join([words[k], *rng.choice(frame, 6)]) for k in labels.tolist()]
    found = audit((texts, [f"class {k}" for k in labels.tolist()]), QUICK)
    first = pictures_of(replace(found, findings=()).report())[0]
    rows = first.data["rows"]
    assert first.chart == "audit-intervals" and rows.height == 8
    assert all(f"in class {k}" in " ".join(rows["heading"]) for k in range(8))
    assert (rows["low"] <= rows["share"]).all() and (rows["share"] <= rows["high"]).all()
    drawn = specification(first)["datasets"]
    assert [row["text"] for row in drawn["headings"]] == rows["heading"].to_list()


@pytest.mark.slow
def test_the_baseline_is_compared_on_the_same_documents() -> None:
    """Two accuracies side by side said nothing about whether they differ by more than chance."""
    made = demo_reviews(400, 5)
    labels = ["good" if label else "bad" for label in made.labels]
    found = audit((made.texts.to_list(), labels), Settings(thorough=False, validation_share=0.0))
    learned = found.learned
    right = learned.task.baseline(learned.train, learned.test, found.seed)
    own = learned.task.correct(learned.f, learned.test.counts)
    assert found.baseline == PairedDifference.of(right, own)
    facts = next(block for block in found.report().blocks if isinstance(block, Facts)).facts
    note = next(note for name, _, note in facts if name.startswith("TF-IDF"))
    assert "points (95% CI" in note or "no prediction changes" in note
    assert found.to_dict()["baseline"]["items"] == found.documents["test"]


@pytest.mark.slow
def test_what_cannot_be_cut_is_balanced_if_enough_evidence_stays() -> None:
    assert reviews(400, 1, ending="!!").balance_plan.tokens
    # a form that one class never has cannot be balanced
    made = demo_reviews(400, 1)
    texts = [
        f"{text}\n!!" if label and i % 3 else text
        for i, (text, label) in enumerate(zip(made.texts, made.labels, strict=True))
    ]
    labels = ["good" if label else "bad" for label in made.labels]
    assert audit((texts, labels), QUICK).balance_plan == BalancePlan()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn", "quick_training")
def test_the_balance_step_of_an_audit_works_as_printed(run: Run, tmp_path: Path) -> None:
    """An audit that found formatting printed no command at all."""
    for name, seed in (("train", 1), ("test", 2)):
        made = demo_reviews(400, seed)
        texts = [text.partition("\n")[0].rstrip(".") for text in made.texts]
        texts = [
            f"{text}!!" if (label and i % 3) or i % 25 == 0 else f"{text}."
            for i, (text, label) in enumerate(zip(texts, made.labels, strict=True))
        ]
        labels = ["good" if label else "bad" for label in made.labels]
        pl.DataFrame({"text": texts, "label": labels}).write_csv(tmp_path / f"{name}.csv")
    status, out, _ = run("audit", "train.csv", "--test", "test.csv", "--no-pictures", "--out", "a")
    assert status == 0
    printed = [line.strip() for line in out.splitlines() if line.startswith("  tokensieve ")]
    assert [line.split()[1] for line in printed] == ["balance", "audit", "compare"]
    for line in printed:
        status, _, said = run(*shlex.split(line)[1:], "-q")
        assert status == 0, f"{line}\n{said}"
    weights = pl.read_csv(tmp_path / "a-balanced.csv").filter(pl.col("text").str.ends_with("!"))
    by_class = weights.group_by("label").agg(pl.col("weight").sum())["weight"].to_list()
    assert by_class[0] == pytest.approx(by_class[1], rel=0.05)
    repair = json.loads((tmp_path / "a-balanced-compare" / "summary.json").read_text())["repair"]
    assert repair["source"].endswith("test.csv")


def test_commands_of_a_report_come_in_the_order_in_which_they_are_run() -> None:
    found = reviews(400, 1, ending="!!")
    commands = [block.command for block in found.report().blocks if isinstance(block, Command)]
    assert [command.split()[1] for command in commands] == ["balance"]  # in Python: no source
