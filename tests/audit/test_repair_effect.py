"""compare --on: a repair is judged where the shortcut misleads, in words, numbers and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve import InputError, Settings, audit, demo_reviews, mask_texts, read_corpus
from tokensieve.auditing.link_report import repair_effect
from tokensieve.auditing.predictions import read_predictions
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
    train = reviews(1000, 1)
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
    assert inserted.after > inserted.before + 0.3 and inserted.difference.p_value < 1e-6
    assert of_tablet.groups[0].before == min(result.before for result in of_tablet.groups)
    assert abs(effect.overall.before - effect.overall.after) < 0.1
    table = effect.to_frame()
    assert table.height == 1 + sum(len(e.groups) for e in effect.marks)


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_first_model_against_itself_changes_nothing(audits: Path) -> None:
    effect = repair_effect(audits / "before", audits / "before", str(audits / "test.csv"))
    results = [effect.overall, *(result for e in effect.marks for result in e.groups)]
    assert all(
        result.difference.p_value == 1 and result.before == result.after for result in results
    )


def test_the_command_says_and_writes_it(run: Run, audits: Path) -> None:
    folders = (str(audits / "before"), str(audits / "after"))
    status, out, _ = run("compare", *folders, "--on", str(audits / "test.csv"), "--out", "c")
    assert status == 0 and "Did it help?" in out
    assert pl.read_csv("c/repair.csv")["documents"][0] == 800
    headline = json.loads(Path("c/summary.json").read_text())["repair"]["headline"]
    assert "tablet" in headline
    assert "Did it help?" in Path("c/report.html").read_text()


@pytest.mark.slow
def test_an_audit_without_shortcuts_is_one_line(run: Run, audits: Path, tmp_path: Path) -> None:
    plain = reviews(400, 3)
    plain = plain.with_columns(label=pl.Series(NAMES * 200))
    audit(plain, QUICK, text="text", label="label").save(tmp_path / "none", pictures=False)
    status, _, error = run("compare", "none", "none", "--on", str(audits / "test.csv"))
    assert status == 2
    assert "no shortcut" in error and error.count("\n") == 1


def test_values_of_other_columns_are_read_from_the_documents_too(tmp_path: Path) -> None:
    """The models were judged as if the documents had no such values."""
    rng = np.random.default_rng(2)
    labels = rng.choice(["a", "b"], 900)
    is_mailed = rng.random(900) < np.where(labels == "a", 0.6, 0.03)
    words = [f"w{number}" for number in range(30)]
    frame = pl.DataFrame(
        {
            "text": [" ".join(rng.choice(words, 8)) for _ in labels],
            "label": labels,
            "sent by": np.where(is_mailed, "mail", rng.choice(["web", "app"], 900)),
        }
    )
    frame.tail(300).write_csv(tmp_path / "test.csv")
    settings = Settings(baseline=False, thorough=False, columns=("sent by",))
    options = {"text": "text", "label": "label", "test": str(tmp_path / "test.csv")}
    found = audit(frame.head(600), settings, **options)
    found.save(tmp_path / "a", pictures=False)
    effect = repair_effect(tmp_path / "a", tmp_path / "a", str(tmp_path / "test.csv"))
    assert effect.overall.before == found.accuracy.value > 0.7
    of_mail = effect.marks[0]
    assert of_mail.mark.tokens == ("sent_by:mail",)
    n_without = frame.tail(300).filter(pl.col("sent by") != "mail").height
    assert {g.group: g.n_documents for g in of_mail.groups}["without"] == n_without


def test_the_audit_of_one_of_several_labels_is_judged_on_documents_with_such_lists(
    run: Run, tmp_path: Path
) -> None:
    frame = reviews(1500, 7).with_columns(
        tags=pl.concat_list("label", pl.when(pl.int_range(1500) % 3 == 0).then(pl.lit("new")))
    )
    table = frame.select("text", tags=pl.col("tags").list.drop_nulls())
    table.head(1000).write_ndjson(tmp_path / "train.jsonl")
    table.tail(500).write_ndjson(tmp_path / "test.jsonl")
    options = ("--text", "text", "--test", "test.jsonl", "--no-baseline", "--no-pictures")
    assert run("audit", "train.jsonl", *options, "--out", "a", "--quiet")[0] == 0
    effect = repair_effect(Path("a/positive"), Path("a/positive"), "test.jsonl")
    audited = json.loads(Path("a/positive/summary.json").read_text())
    assert effect.overall.before == audited["test_accuracy"]


# ---- other models, by their predictions


def mark_follower(frame: pl.DataFrame) -> list[str]:
    """What a model that has learned nothing but the mark predicts."""
    return [NAMES[int("tablet" in text)] for text in frame["text"]]


@pytest.mark.slow
def test_other_models_are_judged_by_their_predictions(run: Run, audits: Path) -> None:
    frame = pl.read_csv(audits / "test.csv")
    predicted = pl.DataFrame({"raw": mark_follower(frame), "fixed": frame["label"]})
    predicted.write_csv("predictions.csv")
    folders = (str(audits / "before"), str(audits / "after"))
    judged = ("compare", *folders, "--on", str(audits / "test.csv"), "--out", "c")
    columns = ("--predicted", "raw", "--predicted", "fixed")
    status, _, _ = run(*judged, "--predictions", "predictions.csv", *columns)
    assert status == 0
    table = pl.read_csv("c/repair-of-predictions.csv")
    (without,) = table.filter(pl.col("tokens").str.contains("tablet"), group="without").iter_rows(
        named=True
    )
    assert without["before"] < 0.7 and without["after"] == 1
    change = without["after"] - without["before"]
    assert 0.2 < without["change_low"] < change < without["change_high"]
    assert set(table["group"]) <= {"all", "contradicts", "without"}


def test_predictions_are_matched_by_row(tmp_path: Path, audits: Path) -> None:
    frame = pl.read_csv(audits / "test.csv")
    frame = frame.with_columns(
        text=pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.lit("")).otherwise("text")
    )
    frame.write_csv(tmp_path / "gaps.csv")
    corpus = read_corpus(str(tmp_path / "gaps.csv"))
    whole = pl.DataFrame({"prediction": frame["label"]}).with_row_index("row", offset=1)
    for name, table in (
        ("in-order", whole.drop("row")),
        ("shuffled", whole.sample(fraction=1, shuffle=True, seed=3)),
        ("used", whole.drop("row").filter(frame["text"] != "")),
    ):
        table.write_csv(tmp_path / f"{name}.csv")
        predictions = read_predictions(str(tmp_path / f"{name}.csv"), corpus)
        assert predictions.predicted.tolist() == [corpus.classes[k] for k in corpus.labels]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"prediction": ["positive"] * 5}, "5 predictions, but"),
        ({"prediction": ["good", "bad"] * 400}, "the classes are"),
        ({"x": ["a"] * 800, "y": ["b"] * 800}, "name it with --predicted"),
        ({"prediction": ["positive"] * 800, "row": [1] * 800}, "each row of the documents once"),
        ({"prediction": ["positive"] * 9, "row": [*range(1, 10)]}, "have no row there"),
        ({"prediction": ["positive"] * 800, "row": [*range(800)]}, "counts from 0"),
        ({"prediction": ["Positive", "negative"] * 400}, "the class is 'positive'"),
        ({"negative": [0.4, 2.5] * 400, "positive": [0.6, -1.5] * 400}, "row 2 .* sum to 1"),
        ({"negative": [0.4, None] * 400, "positive": [0.6, 0.5] * 400}, "row 2 .* sum to 1"),
    ],
)
def test_predictions_that_do_not_match_are_refused(
    tmp_path: Path, audits: Path, table: dict[str, list[object]], problem: str
) -> None:
    corpus = read_corpus(str(audits / "test.csv"))
    pl.DataFrame(table).write_csv(tmp_path / "p.csv")
    with pytest.raises(InputError, match=problem):
        read_predictions(str(tmp_path / "p.csv"), corpus)
    with pytest.raises(InputError, match="is a folder"):
        read_predictions(str(tmp_path), corpus)


def test_probabilities_of_the_classes_are_predictions(tmp_path: Path, audits: Path) -> None:
    corpus = read_corpus(str(audits / "test.csv"))
    is_positive = corpus.labels == 1
    table = {"positive": is_positive * 0.6 + 0.2, "negative": 0.8 - is_positive * 0.6}
    pl.DataFrame(table).write_csv(tmp_path / "p.csv")
    predictions = read_predictions(str(tmp_path / "p.csv"), corpus)
    assert predictions.predicted.tolist() == [corpus.classes[k] for k in corpus.labels]
    assert predictions.note == ""


def test_predictions_in_another_order_are_matched_by_a_column_that_the_documents_have(
    tmp_path: Path, audits: Path
) -> None:
    """They were taken in the file's order, and the accuracy was that of a shuffle."""
    frame = pl.read_csv(audits / "test.csv").with_columns(id=pl.int_range(800) * 3 + 1)
    frame.write_csv(tmp_path / "t.csv")
    corpus = read_corpus(str(tmp_path / "t.csv"), text="text", label="label")
    truth = [corpus.classes[k] for k in corpus.labels]
    shuffled = frame.with_columns(prediction="label").sample(fraction=1, shuffle=True, seed=5)

    def read(columns: list[str]) -> list[str]:
        shuffled.select(columns).write_csv(tmp_path / "p.csv")
        documents = str(tmp_path / "t.csv")
        return list(
            read_predictions(str(tmp_path / "p.csv"), corpus, documents=documents).predicted
        )

    assert read(["id", "prediction"]) == truth
    assert read(["prediction", "label", "id"]) == truth
    assert read(["prediction"]) != truth  # nothing shows the order
    with pytest.raises(InputError, match="values of t.csv in another order".replace(".", r"\.")):
        read(["prediction", "label"])


def test_the_file_that_predict_writes_is_recognised(run: Run, audits: Path) -> None:
    """It has the true labels beside the predicted ones."""
    test = str(audits / "test.csv")
    assert run("predict", str(audits / "before"), test, "--out", "p")[0] == 0
    corpus = read_corpus(test)
    predictions = read_predictions("p/predictions.csv", corpus)
    written = pl.read_csv("p/predictions.csv")
    assert predictions.predicted.tolist() == written["class"].to_list()
    assert written["class"].to_list() != written["label"].to_list()


def test_predictions_that_cannot_be_right_are_named(tmp_path: Path, audits: Path) -> None:
    corpus = read_corpus(str(audits / "test.csv"))
    truth = [corpus.classes[k] for k in corpus.labels]
    predicted = ["neutral", None, None, *truth[3:]]
    table = pl.DataFrame({"prediction": predicted, "model": "a"})  # no line is empty
    table.write_csv(tmp_path / "p.csv")
    note = read_predictions(str(tmp_path / "p.csv"), corpus).note
    assert "1 prediction names no class" in note and "“neutral”" in note
    assert "2 documents have none" in note


@pytest.mark.slow
def test_an_audit_judges_the_predictions_beside_its_own(run: Run, audits: Path) -> None:
    frame = pl.read_csv(audits / "test.csv")
    pl.DataFrame({"pred": mark_follower(frame)}).write_csv("pred.csv")
    reviews(1000, 1).write_csv("train.csv")
    options = ("--no-baseline", "--no-pictures", "--out", "a")
    test = ("--test", str(audits / "test.csv"))
    status, out, _ = run("audit", "train.csv", *test, "--predictions", "pred.csv", *options)
    assert status == 0 and "Predictions of pred.csv" in out
    own, other = json.loads(Path("a/summary.json").read_text())["where_shortcuts_mislead"]
    groups = {row["group"]: row for row in own["groups"] if "tablet" in row["tokens"]}
    assert groups["inserted"]["after"] > groups["inserted"]["before"] + 0.2
    of_tablet = {row["group"]: row for row in other["groups"] if "tablet" in row["tokens"]}
    assert of_tablet["without"]["before"] < 0.7 < of_tablet["without"]["after"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--predictions", "p.csv", "--predictions", "p.csv"),
        ("--on", "t.csv", "--predictions", "p.csv"),
        ("--on", "t.csv", "--predicted", "a", "--predicted", "b"),
    ],
)
def test_predictions_without_their_other_half_are_refused(
    run: Run, audits: Path, arguments: tuple[str, ...]
) -> None:
    folders = (str(audits / "before"), str(audits / "after"))
    status, _, problem = run("compare", *folders, *arguments)
    assert status == 2 and "--predict" in problem
