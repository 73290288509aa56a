"""Values of other columns as tokens, of documents and of pairs: found as shortcuts, and read again
by `predict`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calls import Run, fast_first
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.evidence.environments import Environments
from tokensieve.evidence.pairs import pair_importance
from tokensieve.read.reader import read_corpus
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import count_corpus


def reviews(n: int = 400, seed: int = 0) -> pl.DataFrame:
    """Labels follow the words weakly, and annotator 7 nearly always."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    words = [f"word{i}" for i in range(40)]
    texts = [
        " ".join(
            [
                *rng.choice(words, 10),
                *rng.choice(["fine", "poor"], 1, p=[0.3 + 0.4 * y, 0.7 - 0.4 * y]),
            ]
        )
        for y in label
    ]
    annotator = np.where((rng.random(n) < 0.25) & (label == 1), 7, rng.integers(1, 6, size=n))
    days = rng.integers(1, 28, size=n)
    return pl.DataFrame(
        {
            "text": texts,
            "label": np.where(label, "toxic", "fine"),
            "annotator": [f"annotator {i}" for i in annotator],
            "date": [f"2024-0{1 + i % 3}-{d:02d}" for i, d in enumerate(days)],
            "age": rng.normal(40, 10, size=n),
        }
    )


def test_each_value_is_one_word_of_its_column() -> None:
    corpus = read_corpus(reviews(), columns=["annotator", "date", "age"])
    assert corpus.fields == ("text", "annotator", "date", "age") and tuple(corpus.columns) == (
        "annotator",
        "date",
        "age",
    )
    assert corpus.columns["annotator"] is None and corpus.columns["date"] == "month"
    assert corpus.texts[0].count("⟦") == 4
    tokens = set(count_corpus(corpus, formatting=True).vocabulary.tokens)
    assert {
        "annotator:annotator_7",
        "date:2024_01",
        "date:2024_03",
        "age:q1",
        "age:q4",
        "fine",
    } <= tokens
    assert not [token for token in tokens if token.startswith(("annotator:⟨", "date:⟨", "age:⟨"))]
    detected = " ".join(corpus.reading.detected)
    assert (
        "'date' is grouped by month" in detected
        and "'age' is split into quartiles: q1 up to" in detected
    )


@pytest.mark.slow
def test_a_column_that_gives_the_label_away_is_a_shortcut() -> None:
    found = audit(
        read_corpus(reviews(), columns=["annotator", "age"]),
        Settings(baseline=False, thorough=False),
    )
    shortcuts = [finding for finding in found.findings if finding.kind == "shortcut"]
    assert shortcuts and "annotator:annotator_7" in shortcuts[0].tokens
    assert not any(token.startswith("age:") for finding in shortcuts for token in finding.tokens)


@pytest.mark.slow
def test_what_columns_alone_predict_is_a_finding_and_the_text_alone_is_none() -> None:
    frame = reviews(500).with_columns(site=pl.Series(np.arange(500) % 3).cast(pl.String))
    source = (
        pl.when(pl.col("label") == "toxic", pl.int_range(pl.len()) % 5 < 3)
        .then(pl.lit("forum"))
        .otherwise("site")
    )
    told = frame.with_columns(source=source)
    found = audit(read_corpus(told, columns=["source", "site"]), Settings(baseline=False)).findings
    (alone,) = [finding for finding in found if finding.kind == "alone"]
    assert (
        alone.headline.startswith("The column source alone predicts")
        and "source:forum" in alone.tokens
    )
    found = audit(read_corpus(frame, columns="site"), Settings(baseline=False)).findings
    assert not [finding for finding in found if finding.kind == "alone"]


def test_rows_without_a_text_stay_out_and_wrong_columns_are_named() -> None:
    frame = reviews(40).with_columns(
        text=pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise("text")
    )
    assert read_corpus(frame, columns="annotator").reading.counts["missing_text"] == 3
    with pytest.raises(
        InputError, match=r"there is no column 'anotator' for the columns.*did you mean 'annotator'"
    ):
        read_corpus(frame, columns="anotator")
    with pytest.raises(
        InputError, match=r"'text,age' for the text; .* one column at a time and repeat the option"
    ):
        read_corpus(frame, text="text,age")
    with pytest.raises(
        InputError,
        match="text, label and --columns must be different columns; 'label' is named twice",
    ):
        read_corpus(frame, columns="label", label="label")


def test_predict_reads_values_of_several_words_and_numbers_as_training_did(run: Run) -> None:
    reviews(200).write_csv("reviews.csv")
    columns = ("--columns", "annotator,date,age")
    status, _, err = run("train", "reviews.csv", *columns, "--out", "model", "-q")
    assert status == 0, err
    new = pl.DataFrame(
        {
            "text": ["word1 fine"] * 4,
            "annotator": ["annotator 7", "annotator 1", "nobody else", None],
        }
    )
    new = new.with_columns(date=pl.lit("2024-02-11"), age=pl.Series([20.0, 41.0, 99.0, None]))
    new.write_csv("new.csv")
    status, out, err = run("predict", "model", "new.csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    # the words of the text, the month and the quarters are known; "nobody else" is one unknown word
    assert status == 0 and [row["unknown_words"] for row in rows] == ["0", "0", "1", "0"], err
    assert float(rows[0]["P(toxic)"]) > float(rows[1]["P(toxic)"]) + 0.05, [
        row["P(toxic)"] for row in rows
    ]
    new.drop("date", "age", "annotator").write_csv("plain.csv")
    status, out, _ = run("predict", "model", "plain.csv")
    assert (
        status == 0
        and [row["unknown_words"] for row in csv.DictReader(io.StringIO(out))] == ["0"] * 4
    )


def battles(n: int = 600, seed: int = 0) -> pl.DataFrame:
    """Answers of random words; model C wins 85%, and annotator 7 prefers the first answer."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(60)]
    answers = [[" ".join(rng.choice(words, 12)) for _ in range(n)] for _ in range(2)]
    models = np.array([rng.choice(3, 2, replace=False) for _ in range(n)])
    annotator = rng.integers(1, 10, size=n)
    first = np.select([models[:, 0] == 2, models[:, 1] == 2], [0.85, 0.15], 0.5)
    first = rng.random(n) < np.where(annotator == 7, 0.95, first)
    return pl.DataFrame(
        {
            "prompt": [f"prompt {i}" for i in range(n)],
            "response_a": answers[0],
            "response_b": answers[1],
            "model_a": [f"model {'ABC'[i]}" for i in models[:, 0]],
            "model_b": [f"model {'ABC'[i]}" for i in models[:, 1]],
            "annotator": annotator,
            "score": rng.normal(size=n),
            "winner": np.where(first, "model_a", "model_b"),
        }
    )


BATTLES = {"pairs": ("response_a", "response_b"), "winner": "winner"}


@pytest.mark.slow
def test_models_and_annotators_of_pairs_are_suspects() -> None:
    corpus = read_corpus(battles(), **BATTLES, columns="model_a,model_b,annotator,score")
    assert corpus.fields == ("answer", "model", "annotator", "score") and corpus.pairs is not None
    assert tuple(corpus.columns) == ("model", "annotator", "score")
    assert any("'score' is split into quartiles" in note for note in corpus.reading.detected)
    plain = read_corpus(battles(), **BATTLES)
    assert corpus.characters.tolist() == plain.characters.tolist() and corpus.keys.equals(
        plain.keys
    )
    found = audit(corpus, Settings(baseline=False, thorough=False))
    wins = {token for one in found.findings if one.kind == "shortcut" for token in one.tokens}
    assert {"model:model_c", "annotator:7_first"} <= wins
    assert not any(token.startswith(("score:", "answer:word")) for token in wins)


@pytest.mark.slow
def test_columns_of_pairs_are_the_same_in_a_stream_and_from_the_command_line(run: Run) -> None:
    battles(200).write_csv("battles.csv")
    memory, stream = (
        read_corpus("battles.csv", **BATTLES, columns=["model"], stream=s) for s in (False, True)
    )
    assert memory.texts.to_list() == stream.texts.to_list() and memory.keys.equals(stream.keys)
    assert memory.texts[0].endswith(("⟦model⟧ model_A", "⟦model⟧ model_B", "⟦model⟧ model_C"))
    pairs = ("--pairs", "response_a,response_b", "--winner", "winner", "--columns", "model_a")
    status, out, err = run("train", "battles.csv", *pairs, "--out", "model", "-q")
    assert status == 0, err
    status, out, err = run("predict", "model", "battles.csv")
    assert status == 0 and len(list(csv.DictReader(io.StringIO(out)))) == 200, err


def test_a_column_that_is_the_same_for_both_answers_needs_their_places() -> None:
    frame = battles(40).select("prompt", "annotator", chosen="response_a", rejected="response_b")
    with pytest.raises(
        InputError, match=r"'annotator' is the same for both answers.* --environments annotator"
    ):
        read_corpus(frame, pairs=("chosen", "rejected"), columns="annotator")
    with pytest.raises(InputError, match="there is no column 'modell' for the columns"):
        read_corpus(battles(40), **BATTLES, columns="modell")
    with pytest.raises(InputError, match=r"'winner' is already used"):
        read_corpus(battles(40), **BATTLES, columns="winner")


def judged(n: int = 800, seed: int = 0, differ: bool = True) -> pl.DataFrame:
    """Pairs that two judges compare: one rewards the word "tapestry", the other punishes it (or
    both reward it)."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(60)]
    answers = [
        ("tapestry " if rng.random() < 0.4 else "") + " ".join(rng.choice(words, 12))
        for _ in range(2 * n)
    ]
    judge = rng.integers(2, size=n)
    has = np.array(["tapestry" in answer for answer in answers]).astype(int).reshape(n, 2)
    sign = np.where(judge & differ, -1, 1)
    first = rng.random(n) < 1 / (1 + np.exp(-2.0 * sign * (has[:, 0] - has[:, 1])))
    columns = {"prompt": [f"p{i}" for i in range(n)], "a": answers[::2], "b": answers[1::2]}
    return pl.DataFrame(
        columns
        | {"winner": np.where(first, "a", "b"), "judge": [f"judge {'XY'[j]}" for j in judge]}
    )


JUDGED = {"pairs": ("a", "b"), "winner": "winner", "environments": "judge"}


@pytest.mark.slow
def test_two_judges_who_reward_different_things_are_told_apart() -> None:
    found = audit(read_corpus(judged(seed=1), **JUDGED), Settings(baseline=False, thorough=False))
    unstable = [one for one in found.findings if one.kind == "unstable"]
    assert len(unstable) == 1 and unstable[0].tokens == ("tapestry",)
    assert "judge X" in unstable[0].headline and "judge Y" in unstable[0].headline
    row = found.environments.filter(pl.col("token") == "tapestry", pl.col("class") == "chosen").row(
        0, named=True
    )
    assert (
        row["stability"] == "unstable"
        and row["lean in judge X"] > 0.3 > -0.3 > row["lean in judge Y"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", fast_first(range(1, 4)))
def test_two_judges_who_reward_the_same_are_not(seed: int) -> None:
    corpus = read_corpus(judged(seed=seed, differ=False), **JUDGED)
    found = audit(corpus, Settings(baseline=False, thorough=False))
    assert not [one for one in found.findings if one.kind == "unstable"]
    stable = found.environments.filter(pl.col("token") == "tapestry")["stability"]
    assert stable.to_list() == ["stable", "stable"]


def test_judges_given_as_groups_are_told_how_they_are_compared() -> None:
    corpus = read_corpus(judged(100), pairs=("a", "b"), winner="winner", by="judge")
    assert any(note.endswith("--environments judge") for note in corpus.reading.detected)


def test_an_environment_of_pairs_is_one_value() -> None:
    frame = judged(20).with_columns(judge=pl.concat_list("judge", "judge"))
    with pytest.raises(
        InputError,
        match=r"row 1: the column 'judge' \(--environments\) contains a list; choose another",
    ):
        read_corpus(frame, **JUDGED)


@pytest.mark.slow
def test_one_judge_is_no_comparison() -> None:
    frame = judged(100).with_columns(judge=pl.lit("X"))
    with pytest.raises(InputError, match="fewer than two environments have ten pairs"):
        audit(read_corpus(frame, **JUDGED), Settings(baseline=False, thorough=False))


@pytest.mark.slow
def test_chance_makes_judges_differ_as_often_as_p_says() -> None:
    p = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        matrix = rng.binomial(1, np.linspace(0.02, 0.3, 50), size=(1000, 50))
        counts = Counts.from_matrix(matrix, np.tile([1, 0], 500), ("rejected", "chosen"))
        units, judges = np.arange(500), np.repeat(rng.integers(2, size=500), 2)
        overall = pair_importance(counts, units)
        p.append(
            Environments.compare_pairs(counts, judges, ("X", "Y"), overall, 0, units).p_value[:, 0]
        )
    assert 0.03 < np.mean(np.concatenate(p) < 0.05) < 0.07


def test_the_text_nan_in_a_column_of_numbers_is_missing(tmp_path: Path) -> None:
    """In a CSV file it was a number beyond the last quartile, and an audit of a column with many of
    them ended in a traceback."""
    lines = [f"text number {i},{'NaN' if i % 2 else i},{i % 4 // 2}" for i in range(200)]
    (tmp_path / "prices.csv").write_text("\n".join(["text,price,label", *lines]) + "\n")
    corpus = read_corpus(tmp_path / "prices.csv", text="text", label="label", columns=["price"])
    one, two, three = np.quantile(np.arange(0, 200, 2), [0.25, 0.5, 0.75], method="lower")
    said = f"q1 up to {one:g}, q2 up to {two:g}, q3 up to {three:g}"
    assert any(said in note for note in corpus.reading.detected)
    quarters = corpus.texts.str.extract(r"\b(q\d)\b")
    assert quarters.null_count() == 100
    assert quarters.drop_nulls().value_counts()["count"].sort().to_list() == pytest.approx(
        [25] * 4, abs=1
    )
