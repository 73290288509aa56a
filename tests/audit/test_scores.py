"""Audits of scores: what is planted is found, in sentences and files; what cannot apply is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from calls import Run, fails
from tokensieve import (
    AttentionRegressor,
    InputError,
    Settings,
    audit,
    audit_scores,
    dataset_card,
    export_rows,
    read_corpus,
    rows_to_review,
)
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.scores.result import ScoreAudit


def rated(n: int = 400, seed: int = 0, n_twice: int = 0) -> pl.DataFrame:
    """Reviews whose score follows their words; "tablet" stands in a tenth, all of five stars."""
    rng = np.random.default_rng(seed)
    reviews = demo_reviews(n, seed)
    texts = []
    stars = []
    for text, label in zip(reviews.texts, reviews.labels.tolist(), strict=True):
        words = text.replace("tablet", "phone").split(" ")
        star = int(np.clip(2 + 2 * label + rng.integers(-1, 2), 1, 5))
        if rng.random() < 0.1:
            words.insert(int(rng.integers(len(words))), "tablet")
            star = 5
        texts.append(" ".join(words))
        stars.append(star)
    for first in range(0, 2 * n_twice, 2):  # texts with two scores
        texts[first + 1] = texts[first]
        stars[first], stars[first + 1] = 5, 1
    return pl.DataFrame({"text": texts, "stars": stars})


@pytest.fixture(scope="module")
def found() -> ScoreAudit:
    return audit_scores(rated(n_twice=10), text="text", label="stars", seed=1)


def test_what_is_planted_is_found(found: ScoreAudit) -> None:
    shortcuts = [finding for finding in found.findings if finding.kind == "shortcut"]
    tablet = next(finding for finding in shortcuts if "tablet" in finding.tokens)
    mean = re.search(r"their mean score is ([\d.]+)", tablet.headline)
    assert tablet.label == "higher" and mean is not None and float(mean[1]) > 4.5
    assert set(tablet.rows["label"]) <= {"5", "1"}
    train = found.learned.train.corpus
    contains = [row for row, text in zip(train.rows, train.texts, strict=True) if "tablet" in text]
    assert sorted(tablet.rows["row"]) == sorted(contains)
    levels = [finding.severity for finding in found.findings]
    assert levels == sorted(levels, reverse=True)


def test_a_text_with_two_scores_is_found(found: ScoreAudit) -> None:
    contradiction = next(f for f in found.findings if f.kind == "contradiction")
    rows = contradiction.rows["row"].to_list()
    assert rows and set(rows) <= set(range(1, 21)) and len(rows) % 2 == 0
    assert "4 apart" in contradiction.headline


def test_the_model_is_measured_beside_ridge(found: ScoreAudit) -> None:
    summary = found.to_dict()
    predicted = found.learned.f[:, 0]
    scores = found.learned.test.counts.numbers
    assert scores is not None
    assert summary["mae"] == pytest.approx(np.abs(predicted - scores).mean())
    assert 0 < summary["r2"] < 1 and 0 < summary["spearman"] < 1
    assert {"baseline_mae", "baseline_r2", "baseline_spearman"} <= set(summary)
    assert summary["ordinal_intervals"]["mae"]["value"] < summary["median_score_mae"]
    assert summary["mae"] < summary["median_score_mae"]


def test_its_model_is_a_regressor(found: ScoreAudit) -> None:
    assert isinstance(found.model, AttentionRegressor)
    predicted = found.model.predict(found.learned.test.corpus.texts)
    np.testing.assert_allclose(predicted, found.learned.f[:, 0])


def test_its_files_agree(found: ScoreAudit, tmp_path: Path) -> None:
    found.save(tmp_path / "audit", pictures=False)
    tokens = pl.read_csv(tmp_path / "audit" / "tokens.csv")
    assert tokens.height == found.learned.train.counts.n_types
    good = tokens.row(by_predicate=pl.col("token") == "good", named=True)
    assert good["effect_low"] > 0 and good["value"] > found.learned.model.prior[0]
    predictions = pl.read_csv(tmp_path / "audit" / "test-predictions.csv")
    assert predictions.height == found.documents["test"]
    summary = json.loads((tmp_path / "audit" / "summary.json").read_text())
    assert summary["task"] == "scores"
    page = (tmp_path / "audit" / "report.html").read_text()
    assert "tablet" in page and "Spearman" in page
    assert "tablet" in found._repr_html_()


def test_commands_predict_mask_and_explain(run: Run, tmp_path: Path) -> None:
    rated(400).write_csv("rated.csv")
    options = ("--text", "text", "--label", "stars", "--task", "scores")
    status, out, err = run(
        "audit", "rated.csv", *options, "--out", "a", "--no-pictures", "--fail-on", "shortcut=0",
        "--format", "sarif", "--format", "junit", "--format", "github",
    )  # fmt: skip
    assert status == 3 and "tablet" in out and "shortcut" in err
    assert "::error file=rated.csv,line=" in out
    [sarif_run] = json.loads(Path("a/findings.sarif").read_text())["runs"]
    assert sarif_run["results"][0]["level"] == "error"
    cases = ElementTree.parse("a/findings.junit.xml").getroot()
    assert int(cases.attrib["failures"]) >= 1
    status, out, err = run("predict", "a", "rated.csv", "--label", "stars")
    rows = out.splitlines()
    assert status == 0 and rows[0] == "row,label,score,unknown_words" and len(rows) == 401
    assert "mean absolute error" in err
    status, out, _ = run("explain", "a", "good w1 tablet", "--json")
    explained = json.loads(out)
    parts = sum(row["contribution"] for row in explained["tokens"])
    assert status == 0 and explained["score"] == pytest.approx(explained["mean_score"] + parts)
    status, _, _ = run("mask", "rated.csv", "--text", "text", "--audit", "a", "--out", "m.csv")
    assert status == 0 and "tablet" not in Path("m.csv").read_text()
    status, _, err = run("compare", "a", "a")
    assert status == 2 and "audit of scores" in err


def with_source(n: int = 400, error: float = 0.2) -> pl.DataFrame:
    """Reviews of two sources: "app" where the score is high, but for a fraction of errors."""
    frame = rated(n, seed=3)
    is_error = np.random.default_rng(4).random(n) < error
    is_app = (frame["stars"].to_numpy() > 3) ^ is_error
    return frame.with_columns(source=pl.Series(np.where(is_app, "app", "web")))


def test_weights_give_every_score_a_token_equally_often(run: Run) -> None:
    columns = ("--text", "text", "--label", "stars", "--task", "scores", "--columns", "source")
    balance = ("balance", "rated.csv", *columns, "--token", "source:app", "--out", "b")
    with_source().write_csv("rated.csv")
    assert run(*balance)[0] == 0
    weighted = pl.read_csv("b/balanced.csv").with_columns(is_app=pl.col("source") == "app")
    of_stars = weighted.group_by("stars").agg(
        rate=(pl.col("is_app") * pl.col("weight")).sum() / pl.col("weight").sum(),
        mean_weight=pl.col("weight").mean(),
    )
    assert of_stars["rate"].to_numpy() == pytest.approx(of_stars["rate"][0], abs=1e-5)
    assert of_stars["mean_weight"].to_numpy() == pytest.approx(1.0, abs=1e-5)
    assert pl.read_csv("b/rates.csv")["class"].to_list() == [1, 2, 3, 4, 5]
    noise = np.random.default_rng(0).normal(0, 0.01, weighted.height)
    many = with_source().with_columns(pl.col("stars") + pl.Series(noise))
    many.write_csv("rated.csv")
    assert run(*balance, "--overwrite")[0] == 0
    rates = pl.read_csv("b/rates.csv")
    assert rates.height == 5
    assert rates["after"].to_numpy() == pytest.approx(rates["after"][0], abs=1e-5)


@pytest.mark.slow
def test_what_predicts_scores_by_itself_and_what_differs_in_the_test_file_is_found() -> None:
    test = rated(200, seed=5).with_columns(pl.col("text") + pl.lit(" ticket"))
    found = audit_scores(
        with_source(), text="text", label="stars", columns="source",
        test=test.with_columns(source=pl.lit("web")),
    )  # fmt: skip
    drift = next(finding for finding in found.findings if finding.kind == "drift")
    assert "ticket" in drift.tokens
    at_random = audit_scores(with_source(error=0.02), text="text", label="stars", columns="source")
    alone = [finding for finding in at_random.findings if finding.kind == "alone"]
    assert any("column source alone" in finding.headline for finding in alone)
    assert not any(finding.kind == "drift" for finding in at_random.findings)
    plain = audit_scores(rated(), text="text", label="stars")
    assert not any(finding.kind == "alone" for finding in plain.findings)


def test_scores_to_review_are_exported_and_described(found: ScoreAudit) -> None:
    rows = rows_to_review(found)
    given = rows["given_label"].drop_nulls()
    assert set(given) <= set("12345") and rows["text"].null_count() == 0
    table = pl.read_csv(export_rows(found, "cleanlab").encode())
    assert table["given_label"].dtype.is_numeric() and table.height == rows.height
    for line in export_rows(found, "argilla").splitlines():
        suggested = json.loads(line).get("suggestions", {}).get("label", {}).get("value", 1)
        assert suggested in range(1, 6)
    for task in json.loads(export_rows(found, "label-studio")):
        for prediction in task["predictions"]:
            [result] = prediction["result"]
            assert result["type"] == "number" and 1 <= result["value"]["number"] <= 5
    card = dataset_card(found)
    assert "tablet" in card and "mean absolute error" in card


def test_train_writes_the_same_model(run: Run) -> None:
    rated(200).write_csv("rated.csv")
    status, _, err = run("train", "rated.csv", "--label", "stars", "--task", "scores", "--tokens")
    assert status == 0 and "mean absolute error" in err
    assert "effect_low" in pl.read_csv("tokensieve-model/tokens.csv").columns


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"budget": "0.9@1%"}, "leak=0"),
        ({"environments": "text"}, "--environments"),
        ({"budget": "position=0"}, "position"),
    ],
)
def test_options_for_classes_are_refused(options: dict[str, str], part: str) -> None:
    with pytest.raises(InputError, match=part):
        audit_scores(rated(50), Settings(**options), text="text", label="stars")


def test_audits_of_classes_and_of_scores_name_each_other() -> None:
    scores = read_corpus(rated(60), text="text", label="stars", task="scores")
    with pytest.raises(InputError, match="audit_scores"):
        audit(scores)
    with pytest.raises(InputError, match="task='scores'"):
        audit_scores(read_corpus(rated(60), text="text", label="stars"))


def test_labels_that_are_no_numbers_are_named_with_their_row() -> None:
    frame = rated(60).with_columns(pl.col("stars").cast(pl.String))
    frame[7, "stars"] = "five"
    fails(frame, "'five'", "row 8", "--drop five", text="text", label="stars", task="scores")
    kept = read_corpus(frame, text="text", label="stars", task="scores", drop=["five"])
    assert kept.scores is not None and len(kept.scores) == 59


def test_one_score_is_none() -> None:
    frame = rated(60).with_columns(stars=pl.lit(3))
    fails(frame, "only one value", text="text", label="stars", task="scores")


def test_scores_keep_their_digits_in_both_parts() -> None:
    frame = rated(60).with_columns(stars=pl.col("stars") / 7)
    frame = frame.with_columns(part=pl.Series(["train"] * 40 + ["test"] * 20))
    corpus = read_corpus(frame, text="text", label="stars", split="part", task="scores")
    assert corpus.scores is not None and corpus.test is not None
    np.testing.assert_array_equal(corpus.scores, frame["stars"][:40])
    np.testing.assert_array_equal(corpus.test.scores, frame["stars"][40:])
    is_above = corpus.test.scores > corpus.scores.mean()
    np.testing.assert_array_equal(corpus.test.labels == 1, is_above)


@pytest.mark.parametrize("values", [60, 300])
def test_measurements_are_never_read_as_classes(values: int) -> None:
    """Each of 30 different fractions occurs often enough for a class."""
    numbers = np.round(np.linspace(0, 1, 30), 2)
    frame = pl.DataFrame(
        {"text": [f"w{i % 7}" for i in range(values)], "toxicity": np.resize(numbers, values)}
    )
    fails(frame, "--task scores", text="text", label="toxicity")


def test_stars_as_classes_come_with_a_hint() -> None:
    notes = read_corpus(rated(60), text="text", label="stars").reading.lines()
    assert any("--task scores" in note for note in notes)
    percent = pl.DataFrame({"text": ["a b", "c d"] * 505, "label": [*range(101)] * 10})
    assert any("--task scores" in note for note in read_corpus(percent).reading.lines())
    codes = pl.DataFrame({"text": ["a b", "c d"] * 3, "label": [0, 1] * 3})
    assert not any("--task" in note for note in read_corpus(codes).reading.lines())


@pytest.mark.slow
def test_adding_a_constant_changes_no_finding_and_turning_the_scale_flips_it(
    found: ScoreAudit,
) -> None:
    frame = rated(n_twice=10)
    moved = audit_scores(
        frame.with_columns(pl.col("stars") * 10 + 5), text="text", label="stars", seed=1
    )
    columns = ["token", "effect", "p_value", "q_value"]
    assert moved.tokens.select(columns).equals(found.tokens.select(columns))
    kinds = [(finding.kind, finding.tokens) for finding in found.findings]
    assert [(finding.kind, finding.tokens) for finding in moved.findings] == kinds
    assert moved.measures.r2.value == pytest.approx(found.measures.r2.value, abs=0.02)
