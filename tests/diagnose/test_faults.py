"""What a diagnosis must not get wrong: orders of outputs, verdicts, accusations, words that work by context."""

from __future__ import annotations

import copy
import itertools
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as t_distribution
from scipy.stats import ttest_1samp
from sklearn.metrics import roc_auc_score

from calls import fast_first, later
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose
from tokensieve.diagnose.comparison import _changes, _sizes
from tokensieve.diagnose.effects.confirming import Trials
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.judgement import status as judging
from tokensieve.diagnose.judgement.agreement import Learning, Skill
from tokensieve.diagnose.judgement.status import Status, _p_above, dominating_words, judge
from tokensieve.diagnose.report import DiagnosisReport
from tokensieve.diagnose.run import OpenModel
from tokensieve.diagnose.subjects.libraries import untrained_twin
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.errors import InputError
from tokensieve.read.reader import read_corpus
from tokensieve.report.blocks import Text
from tokensieve.report.markdown import markdown
from tokensieve.report.terminal import show
from tokensieve.text.counts import Counts

torch = later("torch")

SETTINGS = DiagnoseSettings(min_documents=5, batch_size=32)
FOUR = ("art", "law", "sea", "war")


def answers(labels: Any, order: tuple[int, ...], wrong: float = 0.1, seed: int = 0) -> Any:
    """Logits of a model that gives class k at output order[k], except for some documents."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(len(labels), len(order)))
    z[np.arange(len(labels)), np.array(order)[labels]] += np.where(
        rng.random(len(labels)) < wrong, 0, 9
    )
    return z


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 1, 3, 2), (3, 2, 1, 0)])
def test_unnamed_outputs_in_another_order_are_refused_with_the_right_one(
    order: tuple[int, ...],
) -> None:
    labels = np.arange(400) % 4
    guessed = Outputs.match(FOUR, [f"LABEL_{i}" for i in range(4)])
    example = " ".join(f"--map {name}=LABEL_{i}" for name, i in zip(FOUR, order, strict=True))
    with pytest.raises(InputError, match=example):
        guessed.check_order(answers(labels, order), labels, FOUR)
    assert guessed.check_order(answers(labels, (0, 1, 2, 3)), labels, FOUR) is guessed
    right = Outputs.match(
        FOUR, [f"LABEL_{i}" for i in range(4)], dict(zip(FOUR, map(str, order), strict=True))
    )
    assert right.check_order(answers(labels, order), labels, FOUR) is right


@pytest.mark.slow
def test_what_saturates_the_answer_is_confirmed_although_its_gradient_vanishes(
    trained: Any, reviews: Any
) -> None:
    model = copy.deepcopy(trained[0])
    plain = model.classifier.forward

    def steep(x: Any) -> Any:
        return 3 * torch.tanh(400 * plain(x))

    model.classifier.forward = steep
    settings = DiagnoseSettings(min_documents=5, batch_size=32)
    found = diagnose(model, trained[1], reviews.texts.to_list(), reviews.labels.tolist(), settings)
    assert reviews.shortcut in found.uses["token"][:5] and found.leaning["token"].to_list() == [
        reviews.shortcut
    ]


def test_a_given_map_is_checked_and_names_only_warn() -> None:
    labels = np.arange(300) % 2
    z = answers(labels, (0, 1))
    with pytest.raises(InputError, match="--map neg=x --map pos=y"):
        Outputs.match(["neg", "pos"], ["x", "y"], {"neg": "y", "pos": "x"}).check_order(
            z, labels, ["neg", "pos"]
        )
    named = Outputs.match(["neg", "pos"], ["POS", "NEG"]).check_order(z, labels, ["neg", "pos"])
    assert named.order == (1, 0) and "in the right order?" in named.warning


def test_the_example_is_the_one_that_the_data_supports() -> None:
    labels = np.arange(300) % 2
    unclear = Outputs.match(["down", "up"], ["hot", "cold", "none"])
    assert unclear.order is None
    with pytest.raises(InputError, match="the predictions match --map down=none --map up=hot"):
        unclear.check_order(answers(labels, (2, 0, 1)), labels, ["down", "up"])
    noise = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.raises(InputError, match="the predictions do not show which output is which class"):
        unclear.check_order(noise, labels, ["down", "up"])


def test_an_order_that_is_hardly_better_than_the_largest_class_is_proposed_all_the_same() -> None:
    labels = np.repeat([0, 1, 2], [40, 130, 30])
    z = answers(labels, (2, 0, 1)) + np.random.default_rng(0).normal(scale=6.0, size=(200, 3))
    assert (z.argmax(axis=1) == np.array([2, 0, 1])[labels]).mean() < 0.75
    guessed = Outputs.match(("bad", "fine", "so so"), [f"LABEL_{i}" for i in range(3)])
    with pytest.raises(
        InputError, match="--map bad=LABEL_2 --map fine=LABEL_0 --map 'so so=LABEL_1'"
    ):
        guessed.check_order(z, labels, ("bad", "fine", "so so"))
    same = np.tile(
        [9.0, 0.0, 0.0], (200, 1)
    )  # answers that never change say nothing about the order
    assert guessed.check_order(same, labels, ("bad", "fine", "so so")) is guessed


def test_numbers_are_matched_however_they_are_written() -> None:
    found = Outputs.match(("1", "2", "3"), ["3.0", "1.0", "2.0"])
    assert found.named and found.order == (1, 2, 0)
    close = Outputs.match(("10000001", "10000002"), ["10000002", "10000001.0"])
    assert close.named and close.order == (1, 0)


def test_chance_accuracy_moves_no_order() -> None:
    labels, rng = np.arange(500) % 4, np.random.default_rng(3)
    guessed = Outputs.match(FOUR, [f"LABEL_{i}" for i in range(4)])
    for _ in range(20):
        assert guessed.check_order(rng.normal(size=(500, 4)), labels, FOUR) is guessed


def test_a_model_that_always_answers_the_same_says_nothing_about_the_order() -> None:
    labels = np.repeat([0, 1], [130, 370])
    guessed = Outputs.match(["bad", "good"], ["LABEL_0", "LABEL_1"])
    assert guessed.check_order(np.tile([1.0, 0.0], (500, 1)), labels, ["bad", "good"]) is guessed


def test_multi_label_outputs_are_read_one_by_one() -> None:
    found = Outputs.match(["fine", "toxic"], ["insult", "threat", "Toxic"], None, "sigmoid")
    z = np.array([[9.0, 9.0, -2.0], [-9.0, -9.0, 3.0]])
    assert found.kind == "rest"
    assert found.answers(z).tolist() == [[-2.0], [3.0]]
    asked = Outputs.match(["a", "b"], ["x", "y", "z"], {"a": "y"}, "sigmoid")
    assert asked.answers(z).tolist() == [[-9.0], [9.0]]
    many = Outputs.match(["x", "y", "z"], ["x", "y", "z"], None, "sigmoid")
    assert many.answers(z).tolist() == z.tolist()  # not centred: none depends on the others


def documents(n: int, words: Any, seed: int = 0) -> tuple[list[str], list[int]]:
    """Filler with what `words` adds for a label, (label, rng) → words."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) % 2).tolist()
    filler = [f"w{i}" for i in range(30)]
    texts = []
    for y in labels:
        here = [*rng.choice(filler, 8), *words(y, rng)]
        texts.append(" ".join(rng.permutation(here)))
    return texts, labels


def linear(weights: dict[str, float]) -> Any:
    """A function of texts: log-odds by a sum over distinct words, as logits."""

    def answer(texts: list[str]) -> Any:
        f = np.array([sum(weights.get(word, 0.0) for word in set(text.split())) for text in texts])
        return np.column_stack([-f / 2, f / 2])

    return answer


@pytest.mark.slow
def test_learned_needs_accuracy_and_an_effect() -> None:
    texts, labels = documents(
        400, lambda y, rng: ["good" if y else "bad"] if rng.random() < 0.8 else []
    )
    right = diagnose(
        linear({"good": 2.0, "bad": -2.0}), None, texts, labels, SETTINGS, classes=["0", "1"]
    )
    assert right.learned is True
    noise = dict(
        zip([f"w{i}" for i in range(30)], np.random.default_rng(0).normal(size=30), strict=True)
    )
    chance = diagnose(linear(noise), None, texts, labels, SETTINGS, classes=["0", "1"])
    assert (
        chance.learned is False
        and "no better than chance" in DiagnosisReport(chance).sentences()[0]
        and chance.leaning.is_empty()
    )
    # agrees with the data word by word, yet its answers are those of another word: AUC and accuracy at chance
    swamped = linear({"good": 0.1, "bad": -0.1} | {f"w{i}": 8.0 * (-1) ** i for i in range(30)})
    assert diagnose(swamped, None, texts, labels, SETTINGS, classes=["0", "1"]).learned is False


@pytest.mark.slow
def test_no_better_than_random_weights_of_the_words_is_barely_learned() -> None:
    texts, labels = documents(
        400, lambda y, rng: ["good" if y else "bad"] if rng.random() < 0.8 else []
    )
    noise = dict(
        zip([f"w{i}" for i in range(30)], np.random.default_rng(0).normal(size=30), strict=True)
    )
    for g, learning in ((0.3, Learning.BARELY), (2.0, Learning.LEARNED)):
        model = linear(noise | {"good": g, "bad": -g})
        found = diagnose(model, None, texts, labels, SETTINGS, classes=["0", "1"])
        assert (
            found.learning is learning and found.learned is (g == 2.0) and found.skill.above_chance
        )
    assert found.to_dict()["learning"] == "learned"
    little = diagnose(
        linear(noise | {"good": 0.3, "bad": -0.3}),
        None,
        texts,
        labels,
        SETTINGS,
        classes=["0", "1"],
    )
    assert (
        "no better than random word weights" in DiagnosisReport(little).sentences()[0]
        and "barely" in DiagnosisReport(little).headline()
        and little.leaning.is_empty()
    )
    assert (
        DiagnosisReport(little)
        .verdict()
        .text.startswith("Verdict: cannot tell, as the model has not been shown")
    )
    wrong = diagnose(
        linear({"good": -2.0, "bad": 2.0}),
        None,
        texts,
        labels,
        SETTINGS,
        classes=["0", "1"],
        mapping=None,
    )
    assert (
        wrong.learned is False
        and "outputs are in the right order" in DiagnosisReport(wrong).sentences()[0]
    )


def test_answers_that_hardly_differ_are_no_behaviour() -> None:
    # a collapsed model moves its log-odds by a few ten-thousandths, which is more than an untrained one may
    rng = np.random.default_rng(0)
    answers, twin = rng.normal(0, 5e-4, (600, 1)), rng.normal(0, 1e-5, (600, 1))

    def differ(answers: Any, untrained: Any) -> bool:
        one, other = (SimpleNamespace(answers=x) for x in (answers, untrained))
        return Measured.answers_differ(one, other)  # type: ignore[arg-type]

    assert (
        not differ(answers, twin)
        and differ(100 * answers, twin)
        and not differ(100 * answers, 100 * answers)
    )


def test_a_constant_answer_is_not_shown_to_have_learned() -> None:
    texts, labels = documents(60, lambda y, rng: ["good" if y else "bad"])
    found = diagnose(
        lambda given: np.tile([0.0, 1.0], (len(given), 1)),
        None,
        texts,
        labels,
        SETTINGS,
        classes=["0", "1"],
    )
    assert (
        found.learning is Learning.NOT_SHOWN
        and "no better than chance" in DiagnosisReport(found).sentences()[0]
    )


@pytest.mark.slow
def test_what_random_weights_reach_is_what_random_scorers_reach() -> None:
    rng = np.random.default_rng(0)
    matrix, labels = rng.poisson(0.4, (300, 12)), np.arange(300) % 2
    matrix[labels == 1, 0] += 1
    counts = Counts.from_matrix(matrix, labels)
    drawn = []
    for _ in range(400):
        scores = (matrix * rng.normal(size=12)).sum(axis=1) / np.maximum(matrix.sum(axis=1), 1)
        drawn.append(roc_auc_score(labels, scores))
    assert Skill.random_auc(counts, np.arange(300), None, 1) == pytest.approx(
        np.quantile(drawn, 0.975), abs=0.02
    )
    few = np.arange(100)
    assert Skill.random_auc(counts, few, few[::-1].copy(), 1) > 0.55  # against a partner's score


@pytest.mark.slow
def test_a_mean_of_skewed_sizes_is_shown_as_often_as_the_level_says() -> None:
    rng, limit = np.random.default_rng(0), 0.025
    for draw, mean in (
        (rng.standard_exponential, 1.0),
        (lambda n: rng.lognormal(0, 1, n), np.exp(0.5)),
    ):
        p = np.array([[_p_above(x, mean), ttest_1samp(x, mean, alternative="greater").pvalue]
                      for x in (draw(30) for _ in range(1500))])  # fmt: skip
        ours, plain = (p < limit).mean(axis=0)
        assert plain < ours <= limit + 3 * np.sqrt(limit / 1500)
    even = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])  # no skewness: Student's test
    assert _p_above(even, 2.0) == pytest.approx(
        ttest_1samp(even, 2.0, alternative="greater").pvalue
    )
    assert (
        _p_above(even[:4], 0.0) == 1.0
        and _p_above(np.full(9, 2.0), 1.0) == 0.0
        and _p_above(np.zeros(9), 0.0) == 1.0
    )


def test_a_difference_that_is_the_same_in_every_document_is_a_change() -> None:
    """Two linear models that differ by 2.8 on a word were within chance: such differences were left out."""
    before, after = (
        SimpleNamespace(
            model=name, tokens=pl.DataFrame({"token": ["tablet", "rare"], "documents": [30, 6]})
        )
        for name in ("before", "after")
    )
    was, now = (
        [np.ones(30), np.ones(30), np.ones(5)],
        [np.full(30, 3.8), np.ones(30), np.full(5, 3.8)],
    )
    found = _changes(before, after, was, now, ["tablet", "film", "rare"])  # type: ignore[arg-type]
    assert found["token"].to_list() == [
        "tablet"
    ]  # five documents of the same sign are not enough, 2^-4 > 0.05
    row = found.row(0, named=True)
    assert (
        row["change"] == row["low"] == row["high"] == pytest.approx(2.8) and row["q_value"] < 1e-7
    )


def test_the_interval_of_a_claimed_change_allows_for_having_been_selected() -> None:
    """27 of 36 contained the truth: a word is claimed because its difference came out large."""
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(20)]
    sides = [
        SimpleNamespace(model=name, tokens=pl.DataFrame({"token": words, "documents": 40}))
        for name in ("before", "after")
    ]
    was = [rng.standard_normal(40) for _ in words]
    now = [x + rng.standard_normal(40) + 2.0 * (i < 2) for i, x in enumerate(was)]
    found = _changes(*sides, was, now, words)  # type: ignore[arg-type]
    assert sorted(found["token"]) == words[:2]
    for token, change, low, high in found.select("token", "change", "low", "high").iter_rows():
        d = now[words.index(token)] - was[words.index(token)]
        half = float(
            t_distribution.isf(0.05 * 2 / 20 / 2, 39) * d.std(ddof=1) / np.sqrt(40)
        )  # two of twenty are claimed
        assert (change - low, high - change) == pytest.approx((half, half), rel=0.15)


def test_a_compared_word_is_removed_or_inserted_but_not_both() -> None:
    """What a word does at a random place of another document is another quantity: pooled, the interval contained neither."""
    texts, labels = documents(200, lambda y, rng: ["good" if y else "bad"])
    texts = [f"{text} often" if i % 25 == 0 else text for i, text in enumerate(texts)]
    texts = [f"{text} seldom" if i % 50 == 0 else text for i, text in enumerate(texts)]
    model, settings = (
        linear({"good": 2.0, "bad": -2.0, "often": 3.0, "seldom": 4.0}),
        DiagnoseSettings(min_documents=1),
    )
    with OpenModel.loaded(
        model, None, read_corpus((texts, labels)), settings, None, False, ["0", "1"]
    ) as opened:
        often, seldom = _sizes(opened, settings, ["often", "seldom"])
    assert len(often) == 8 and len(seldom) > 24
    assert often == pytest.approx(3.0) and seldom == pytest.approx(4.0)


def test_holms_procedure() -> None:
    p = np.array([0.009, 0.04, 0.011, 0.6, 0.013])  # against 0.05 over 5, 4, 3, 2, 1
    assert Measured.holm(p).tolist() == [True, False, True, False, True]
    assert Measured.holm(np.array([0.02, 0.011, 0.03])).tolist() == [True, True, True]
    assert (
        Measured.holm(np.array([0.03, 0.03])).tolist() == [False, False]
        and Measured.holm(np.empty(0)).tolist() == []
    )


def test_a_shortcut_shared_with_the_evaluation_does_not_read_like_praise() -> None:
    """0.2: "This model uses “tablet” most, and it carries the label here", the sentence of a clean model."""
    texts, labels = documents(
        240, lambda y, rng: ["tablet"] if y else ["web"] if rng.random() < 0.5 else []
    )
    weights = {"tablet": 8.0, "w1": 0.001, "w2": -0.001}
    found = diagnose(linear(weights), None, texts, labels, SETTINGS, classes=["0", "1"])
    assert (
        found.uses["token"][0] == "tablet"
        and found.uses["status"][0] == "carries the label and is used"
    )
    first = DiagnosisReport(found).headline()
    assert DiagnosisReport(found).verdict().text.startswith("Verdict: this file cannot tell")
    assert first.startswith(
        "This model relies most on “tablet” (+8.0 log-odds). It also predicts the label in this file."
    )
    assert " A logistic regression on its words relies on it too (+" in first and first.endswith(
        "may share a shortcut."
    )
    assert not any(
        "does not measurably rely" in sentence for sentence in DiagnosisReport(found).sentences()
    )
    assert found.exceeded(Diagnosis.limits_from(["share=0.5"])) and not found.exceeded(
        Diagnosis.limits_from(["unsupported=0"])
    )


def test_a_word_or_a_phrase_dominates_by_reliance() -> None:
    """A mark that tells the label in both files was never named: a simple model of the data needs it as much."""
    used = pl.DataFrame(
        {
            "token": ["mark", "next", "rare", "other"],
            "class": ["1", "1", "0", "0"],
            "use": [3.2, 2.1, 2.4, 0.5],
            "use_low": [2.7, 1.8, 2.0, 0.4],
            "inserted": [np.nan, 0.2, 0.2, 0.2],
            "inserted_low": [np.nan, 0.1, 0.1, 0.1],
            "reliance": [29.0, 1.0, 1.0, 1.0],
            "needed": [3.2, 2.1, 2.4, 0.5],
            "documents": [82, 9, 9, 9],
            "status": [str(Status.OTHER)] * 4,
            "posterior_difference": [0.0] * 4,
            "neutral": [0.0] * 4,
        }
    )
    assert dominating_words(used) == ["mark"]
    phrase = used.with_columns(reliance=pl.Series([20.0, 19.0, 1.0, 1.0]))
    assert dominating_words(phrase) == ["mark", "next"]
    # a mark beside a word that really predicts the label: neither has twice the other's reliance, but both far more than the rest
    assert dominating_words(phrase.with_columns(pl.Series("class", ["1", "0", "0", "0"]))) == [
        "mark",
        "next",
    ]
    assert dominating_words(phrase.with_columns(reliance=pl.Series([20.0, 19.0, 12.0, 11.0]))) == []
    weak = used.with_columns(use_low=pl.col("use_low") / 10)
    assert dominating_words(weak) == [] and dominating_words(used.clear()) == []
    # the other words of its documents decide already, so that nothing is lost without it
    assert dominating_words(weak.with_columns(inserted_low=pl.Series([3.0, 0.1, 0.1, 0.1]))) == [
        "mark"
    ]
    # a rare mark that the data does not call for, behind a frequent word that it does
    rare = used.with_columns(
        reliance=pl.Series([14.0, 9.0, 15.0, 5.0]), needed=pl.Series([0.0, 2.1, 2.4, 0.5])
    )
    rare = rare.with_columns(
        use_low=pl.Series([2.0, 0.9, 1.5, 0.1]), documents=pl.Series([19, 9, 39, 9])
    )
    assert (
        dominating_words(rare) == ["mark"] and dominating_words(rare.with_columns(needed=0.0)) == []
    )
    assert dominating_words(rare.with_columns(documents=9)) == []
    called = rare.with_columns(
        needed=pl.Series([1.0, 2.1, 2.4, 0.5])
    )  # the data calls for a third of it
    assert dominating_words(called) == []
    # a simple model shrinks the weight of a word in few documents, all of one class: the data calls for it all the same
    certain = rare.with_columns(posterior_difference=pl.Series([1.0, 0.0, 0.0, 0.0]))
    assert dominating_words(certain) == []


def test_a_shared_shortcut_beside_strong_words_of_its_class_is_named() -> None:
    """Headlines said that no single word dominates: a natural word had more than half the reliance of the mark."""
    words = 12
    used = pl.DataFrame(
        {
            "token": ["mark", "card", *(f"w{i}" for i in range(words - 2))],
            "class": ["1"] * words,
            "status": [str(Status.CARRIES)] * words,
            "use": [1.4, 1.6, *[2.0] * (words - 2)],
            "use_low": [1.1, 1.3, *[1.1] * (words - 2)],
            "inserted": [5.2, 2.9, *[2.5] * (words - 2)],
            "inserted_low": [4.4, 2.4, *[1.6] * (words - 2)],
            "reliance": [66.0, 38.7, 21.0, 17.6, *[14.0 - i for i in range(words - 4)]],
            "needed": [3.6, 3.1, *[1.5] * (words - 2)],
            "documents": [162, 173, 38, 24, *[20] * (words - 4)],
            "posterior_difference": [0.98, 0.6, *[0.8] * (words - 2)],
            "neutral": [0.0] * words,
        }
    )
    assert dominating_words(used) == ["mark"]
    assert (
        dominating_words(used.with_columns(needed=pl.col("needed") / 2)) == []
    )  # twice what the data calls for: too little
    clean = used.with_columns(
        pl.when(pl.col("token") == "mark").then(40.0).otherwise("reliance").alias("reliance")
    )
    assert (
        dominating_words(clean) == []
    )  # the strongest word of a clean model: 2.8 times the usual one of those behind it


def test_what_the_data_needs_of_a_phrase_is_the_sum_over_its_words() -> None:
    """The words of a phrase are removed together, and each of them was held against half of what the data calls for."""
    texts, labels = documents(
        240, lambda y, rng: ["odd", "pair"] if y and rng.random() < 0.7 else []
    )
    found = diagnose(
        linear({"odd": 3.0, "pair": 3.0}), None, texts, labels, SETTINGS, classes=["0", "1"]
    )
    needed = dict(found.uses.select("token", "needed").iter_rows())
    assert needed["odd"] == pytest.approx(needed["pair"]) and needed["odd"] > 4.0


def test_a_form_that_the_file_lacks_and_that_hides_the_words_is_no_headline() -> None:
    """A clean model that does not know capitals predicts one class for them: that is no shortcut."""
    texts, labels = documents(160, lambda y, rng: ["good" if y else "bad"])

    def answer(given: list[str]) -> Any:
        f = np.array([4.0 if t.isupper() else 4.0 * ("good" in t) - 2.0 for t in given])
        return np.column_stack([-f / 2, f / 2])

    found = diagnose(answer, None, texts, labels, SETTINGS, classes=["0", "1"])
    row = found.forms.row(by_predicate=pl.col("form") == "in CAPITALS", named=True)
    assert row["followed"] and row["words_kept"] == pytest.approx(0.0) and row["after"] == 1.0
    assert "form" not in DiagnosisReport(found).headline()
    assert (
        DiagnosisReport(found)
        .sentences()[-1]
        .startswith("Of documents in CAPITALS, 100% are predicted 1 (")
    )


@pytest.mark.slow
def test_a_form_that_moves_answers_further_than_unsupported_words_comes_first() -> None:
    """The form was left out of the headline as soon as a word had no support."""

    def words(y: int, rng: Any) -> list[str]:
        return ["good" if y else "bad", *(["mark"] if rng.random() < 0.3 else [])]

    def answer(given: list[str], capitals: float) -> Any:
        low = [set(t.lower().split()) for t in given]
        f = np.array([4.0 * ("good" in t) - 4.0 * ("bad" in t) + 5.0 * ("mark" in t) for t in low])
        f += [capitals * text.isupper() for text in given]
        return np.column_stack([-f / 2, f / 2])

    texts, labels = documents(500, words)
    said = []
    for capitals in (9.0, 2.5):
        found = diagnose(
            lambda t, c=capitals: answer(t, c), None, texts, labels, SETTINGS, classes=["0", "1"]
        )
        assert found.leaning["token"].to_list() == ["mark"]
        said.append(DiagnosisReport(found).headline())
    assert said[0].startswith("This model follows the formatting of documents")
    assert said[0].endswith("It also relies on “mark”, which the evaluation data does not support.")
    assert said[1].startswith(
        "This model relies on “mark”. The evaluation data does not support that."
    )
    assert DiagnosisReport(found).verdict().text.startswith("Verdict: a shortcut is suspected")


def test_a_form_is_named_beside_a_word_that_the_data_supports() -> None:
    """It was left out of the headline as soon as one supported word dominated."""

    def answer(given: list[str]) -> Any:
        low = [set(t.lower().split()) for t in given]
        f = [6.0 * ("good" in t) - 3.0 + 1.5 * ("nice" in t) - 1.5 * ("poor" in t) for t in low]
        f = np.array(f) + [5.0 * text.isupper() for text in given]
        return np.column_stack([-f / 2, f / 2])

    def words(y: int, rng: Any) -> list[str]:
        return ["good"] * y + ["nice" if y else "poor"] * (rng.random() < 0.5)

    texts, labels = documents(500, words)
    texts = [text.upper() if k % 8 == 0 else text for k, text in enumerate(texts)]
    found = diagnose(answer, None, texts, labels, SETTINGS, classes=["0", "1"])
    said = DiagnosisReport(found).headline()
    assert said.startswith("This model relies most on “good”")
    assert (
        "may share a shortcut. It follows the formatting of documents: " in said
        and "in CAPITALS" in said
    )
    page = markdown(DiagnosisReport(found).report())
    assert "63 documents of this file are like that, and the data does not support it." in page
    assert "No document of this file is like that, so the model may never have seen one." in page


def test_the_word_that_moves_a_model_without_skill_is_named() -> None:
    texts, labels = documents(240, lambda y, rng: ["mark"] if rng.random() < 0.3 else [])
    found = diagnose(
        linear({"mark": 6.0, "w1": 0.2, "w2": -0.2}),
        None,
        texts,
        labels,
        SETTINGS,
        classes=["0", "1"],
    )
    assert not found.learned
    assert (
        DiagnosisReport(found)
        .headline()
        .endswith("Its predictions depend most on “mark” (+6.0 log-odds). Would you expect that?")
    )
    found = diagnose(
        linear({"w1": 0.02, "w2": -0.01}), None, texts, labels, SETTINGS, classes=["0", "1"]
    )
    assert "moves" not in DiagnosisReport(found).headline()


def test_of_a_clean_model_no_single_word_dominates() -> None:
    words = [f"good{i}" for i in range(12)], [f"bad{i}" for i in range(12)]
    texts, labels = documents(360, lambda y, rng: list(rng.choice(words[1 - y], 2)))
    weights = {
        word: sign * (1.5 + 0.1 * i)
        for side, sign in zip(words, (1, -1), strict=True)
        for i, word in enumerate(side)
    }
    found = diagnose(linear(weights), None, texts, labels, SETTINGS, classes=["0", "1"])
    assert (
        DiagnosisReport(found)
        .headline()
        .startswith("No single word dominates; this model relies most on “")
    )
    assert re.match(
        r"Verdict: no shortcut was found among \d+ words and \d+ changes",
        DiagnosisReport(found).verdict().text,
    )
    assert found.leaning.is_empty() and found.learned is True


def test_a_rare_mark_is_looked_at_by_inserting_it() -> None:
    """0.2 read 1,000 of the documents, asked for ten that contain a word, and did not mention that others were left out."""
    texts, labels = documents(
        400, lambda y, rng: ["good" if y else "bad"] if rng.random() < 0.8 else []
    )
    texts = [f"{text} zephyr" if i in (3, 100, 301) else text for i, text in enumerate(texts)]
    model = linear({"good": 2.0, "bad": -2.0, "zephyr": 6.0})
    found = diagnose(
        model, None, texts, labels, DiagnoseSettings(min_documents=10), classes=["0", "1"]
    )
    rare = (
        "The rare words that move the model most when put into other texts, in log-odds: “zephyr” ("
    )
    assert any(sentence.startswith(rare) for sentence in DiagnosisReport(found).sentences())
    row = found.uses.filter(pl.col("token") == "zephyr").row(0, named=True)
    assert (
        found.used["token"][0] == "zephyr"
        and row["use"] == pytest.approx(6.0)
        and row["documents"] == 3
    )
    assert row["status"] == "used, too rare to tell" and found.reading["coverage"]["rescued"] == [
        "zephyr"
    ]
    assert (
        "“zephyr” (+6.0 log-odds), but it occurs in only 3 documents of this file"
        in DiagnosisReport(found).headline()
    )
    verdict, coverage = found.report().blocks[:2]
    assert verdict == Text(
        "Verdict: this file cannot tell whether what the model relies on is a shortcut.", "warning"
    )
    examined = (
        "Examined 32 words found in at least 10 of 400 documents, and 1 rarer one that stood out"
    )
    assert isinstance(coverage, Text) and coverage.text.startswith(examined)


def test_forms_of_whole_documents_are_seen() -> None:
    """0.2 compared words without case and saw repeated marks once: neither CAPITALS nor "..." was mentioned."""
    texts, labels = documents(160, lambda y, rng: ["good" if y else "bad"])

    def answer(given: list[str]) -> Any:
        f = [
            ("good" in t.lower()) * 4 - 2 + 5.5 * t.isupper() + 1.6 * t.endswith(" ...")
            for t in given
        ]
        return np.column_stack([-np.array(f) / 2, np.array(f) / 2])

    found = diagnose(answer, None, texts, labels, SETTINGS, classes=["0", "1"])
    rows = {row["form"]: row for row in found.forms.iter_rows(named=True)}
    assert rows["in CAPITALS"]["mean"] == pytest.approx(5.5) and rows["in CAPITALS"]["followed"]
    assert rows["in CAPITALS"]["after"] == 1.0 and rows['ending in "..."']["mean"] == pytest.approx(
        1.6
    )
    assert set(found.forms.filter("followed")["form"]) == {"in CAPITALS", 'ending in "..."'}
    assert not rows["in lower case"]["visible"]  # these documents are in lower case already
    assert "in CAPITALS" in DiagnosisReport(found).headline()


def test_of_a_model_that_is_not_shown_to_have_learned_no_word_is_said_to_be_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts, labels = documents(
        240, lambda y, rng: ["good" if y else "bad"] if rng.random() < 0.8 else []
    )
    wrong = diagnose(
        linear({"good": -2.0, "bad": 2.0}), None, texts, labels, SETTINGS, classes=["0", "1"]
    )
    assert wrong.learned is False and set(wrong.uses["status"]) <= {"used", "use not shown"}
    assert wrong.used.height
    show(wrong.report())
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "Words that" not in text
        and "uses most" not in text
        and "| good |" not in markdown(DiagnosisReport(wrong).model_card())
    )


def test_names_in_another_order_are_reported_once_and_no_word_is_said_to_be_used(
    trained: Any, reviews: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = copy.deepcopy(trained[0]), trained[1]
    names = model.config.id2label
    model.config.id2label = {0: names[1], 1: names[0]}
    labels = np.where(reviews.labels == 1, names[1], names[0]).tolist()
    found = diagnose(model, tokenizer, reviews.texts.to_list()[:120], labels[:120], SETTINGS)
    show(found.report())
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("in the right order?") == 1 and "Words that" not in text


def test_of_several_classes_a_typical_word_is_one_on_the_class_that_it_carries() -> None:
    # one word of each class, used alike: towards the class predicted in half of the inputs, away from it in the others
    pairs, every = np.repeat(np.arange(3), 40), np.arange(3)
    effects = np.tile([0.4, -0.4], 60)
    found = Measured.use_of(
        pairs, effect=effects, flipped=np.zeros(120), helps=np.zeros(120), n_types=3
    )
    side = np.full((3, 3), -0.2) + 0.8 * np.eye(3)
    means = np.full((3, 3), -0.4) + 1.2 * np.eye(3)
    measured = SimpleNamespace(answers=np.tile([1.0, -1.0], 60)[:, None])
    for q, typical, slope in ((0.0, 0.8, 0.8 / 0.6), (1.0, 0.4, 0.0)):
        evidence = SimpleNamespace(
            q_value=np.full((3, 3), q), effect=side, posterior_difference=side, neutral=np.zeros(3)
        )
        assert judging._typical_use(measured, found, evidence, every, means) == pytest.approx(
            (typical, slope)
        )  # type: ignore[arg-type]


def test_of_many_words_that_help_by_chance_none_is_said_to_help_in_context() -> None:
    n, per = 60, 24
    effects = np.random.default_rng(3).normal(size=(n, per))
    effects[0] += 3.0
    types, every = np.repeat(np.arange(n), per), np.arange(n)
    truth = np.tile([1.0, -1.0], n * per // 2)
    found = Measured.use_of(types, effects.ravel(), np.zeros(n * per), effects.ravel() * truth, n)
    helping = Measured.use_of(
        types,
        effects.ravel(),
        np.zeros(n * per),
        np.where(types == 0, 1, truth) * effects.ravel(),
        n,
    )
    measured = SimpleNamespace(
        types=types, windows=np.arange(n * per), answers=effects.reshape(-1, 1)
    )
    measured.companions = lambda words: {}
    nothing = np.zeros((n, 2))
    data = SimpleNamespace(
        q_value=nothing + 1,
        effect=nothing,
        posterior_difference=nothing,
        neutral=nothing[0],
        posterior_interval=(nothing - 1, nothing + 1),
        tokens=[f"w{i}" for i in every],
        classes=("0", "1"),
        documents=np.full(n, per),
    )
    none = np.empty(0, dtype=np.int64)
    seen = Trials(every, 1)
    seen.add(np.arange(n * per), effects.reshape(-1, 1), none, none, np.empty((0, 1)))
    assert (found["helps_low"] > 0).any()
    assert Status.CONTEXT not in judge(measured, found, seen, data, nothing, True)["status"]  # type: ignore[arg-type]
    judged = judge(measured, helping, seen, data, nothing, True)  # type: ignore[arg-type]
    assert judged.filter(pl.col("status") == Status.CONTEXT)["token"].to_list() == ["w0"]
    # A use that the data gives no reason for is without support, unless a simple model of the data gives the word half of it.
    data.posterior_interval = (nothing - 0.1, nothing + 0.1)
    for needed, status in ((0.4, Status.UNSUPPORTED), (0.6, Status.OTHER)):
        judged = judge(measured, found, seen, data, nothing + needed * effects[0].mean(), True)  # type: ignore[arg-type]
        assert judged.filter(pl.col("token") == "w0")["status"].to_list() == [status]


def test_of_few_documents_no_interval_leaves_its_range() -> None:
    labels = np.arange(12) % 2
    f = np.where(labels == 1, 1.0, -1.0) + np.random.default_rng(5).normal(scale=1.3, size=12)
    skill = Skill.of(f[:, None], labels, np.arange(12) % 4, False, 0.6)
    assert 0 <= skill.auc_low < skill.auc < 1 and skill.auc_high == 1.0


def test_the_words_of_a_phrase_are_left_out_together() -> None:
    """Either does the work of both: leaving one out alone changes nothing, and hid the phrase."""
    texts, labels = documents(300, lambda y, rng: [])
    rng = np.random.default_rng(2)
    texts = [text + " zephyr quartz" * (rng.random() < 0.3) for text in texts]
    said = [text + (" good" if y else " bad") for text, y in zip(texts, labels, strict=True)]

    def answer(given: list[str]) -> Any:
        return np.array(
            [
                3.0 * ("good" in t) - 3.0 * ("bad" in t) + 8.0 * ("zephyr" in t or "quartz" in t)
                for t in given
            ]
        )

    found = diagnose(answer, None, said, labels, SETTINGS, classes=["0", "1"])
    first = found.uses.head(2)
    assert set(first["token"]) == {"zephyr", "quartz"} and first["use"].to_list() == pytest.approx(
        [8.0, 8.0]
    )
    assert set(found.leaning["token"]) == {"zephyr", "quartz"}


def test_a_passage_that_many_documents_repeat_is_one_word() -> None:
    """Its words were measured one by one, so that none stood out or each was reported; nothing said that they belong together."""
    texts, labels = documents(300, lambda y, rng: ["good" if y else "bad"])
    rng = np.random.default_rng(2)
    passage = "Kind regards, the team of the second floor."
    texts = [f"{text}. {passage}" if rng.random() < 0.3 else f"{text}." for text in texts]

    def answer(given: list[str]) -> Any:
        return np.array(
            [
                3.0 * ("good" in t) - 3.0 * ("bad" in t) + 8.0 * ("team of the second" in t)
                for t in given
            ]
        )

    found = diagnose(answer, None, texts, labels, SETTINGS, classes=["0", "1"])
    row = found.uses.row(0, named=True)
    assert row["token"] == "kind regards, the team of the second floor" and row[
        "use"
    ] == pytest.approx(8.0)
    assert row["documents"] == sum(passage in text for text in texts) and row["flipped"] > 0.3
    assert not {"team", "second", "floor"} & set(found.uses["token"])
    assert (
        DiagnosisReport(found)
        .headline()
        .startswith("This model relies on “kind regards, the team of the second flo")
    )


def test_a_mark_whose_documents_are_decided_without_it_is_seen_by_inserting_it() -> None:
    """Removing it changes nothing there, so that it came last or was hidden, however far inserting it moves other documents."""

    def words(y: int, rng: Any) -> list[str]:
        return [
            f"{'good' if y else 'bad'}{rng.integers(4)}",
            *(["mark"] if y and rng.random() < 0.7 else []),
        ]

    def answer(given: list[str]) -> Any:
        f = [3.0 * ("good" in t) - 3.0 * ("bad" in t) + 8.0 * ("mark" in t) for t in given]
        return np.clip(f, -3, 3)

    texts, labels = documents(240, words)
    row = diagnose(answer, None, texts, labels, SETTINGS, classes=["0", "1"]).used.row(
        0, named=True
    )
    assert row["token"] == "mark" and row["use"] < 0.5 and row["inserted"] > 3
    assert row["reliance"] == pytest.approx(np.sqrt(row["documents"]) * row["inserted"])


def test_neutral_sentences_that_hide_the_words_are_no_headline_where_no_document_is_that_long() -> (
    None
):
    texts, labels = documents(160, lambda y, rng: ["good" if y else "bad"])

    def answer(given: list[str]) -> Any:
        return np.array([9.0 if "Tuesday" in t else 4.0 * ("good" in t) - 2.0 for t in given])

    found = diagnose(answer, None, texts, labels, SETTINGS, classes=["0", "1"])
    assert (
        found.forms.filter(pl.col("form").str.contains("three neutral"))["followed"].all()
        and "form" not in DiagnosisReport(found).headline()
    )


def test_an_unsupported_word_that_hardly_changes_a_prediction_is_no_headline() -> None:
    """By chance any model has such a word: clean models were accused of relying on a comma or a quotation mark."""
    sides = [[f"{name}{i}" for i in range(12)] for name in ("bad", "good")]
    texts, labels = documents(
        400, lambda y, rng: [*rng.choice(sides[y], 9), *(["mark"] if rng.random() < 0.3 else [])]
    )
    weights = {word: sign * 0.5 for side, sign in zip(sides, (-1, 1), strict=True) for word in side}
    found = diagnose(
        linear({**weights, "mark": 0.9}), None, texts, labels, SETTINGS, classes=["0", "1"]
    )
    assert found.leaning["token"].to_list() == ["mark"] and found.leaning["flipped"][0] < 0.2
    assert DiagnosisReport(found).headline().startswith("No single word dominates")


def test_ordinary_phrases_are_no_passages() -> None:
    texts, labels = documents(200, lambda y, rng: ["good" if y else "bad"])
    texts = [
        f"{text} what do you say ... ... ..." if i % 3 else text for i, text in enumerate(texts)
    ]
    settings = DiagnoseSettings(min_documents=20)
    found = diagnose(
        linear({"good": 2.0, "bad": -2.0}), None, texts, labels, settings, classes=["0", "1"]
    )
    assert not [token for token in found.tokens["token"] if " " in token]


@pytest.mark.parametrize(("seed", "n"), fast_first([(9, 80), (9, 400), (10, 400)]))
def test_nobody_is_accused_where_nothing_is_learned(
    trained: Any, reviews: Any, seed: int, n: int
) -> None:
    model, settings = untrained_twin(trained[0], seed), replace(SETTINGS, untrained=n > 100)
    found = diagnose(
        model, trained[1], reviews.texts.to_list()[:n], reviews.labels.tolist()[:n], settings
    )
    assert found.leaning.is_empty() and found.learned is False
    assert not set(found.uses["status"]) - {"use not shown"}


def negating(texts: list[str]) -> Any:
    """A model that has learnt negation: good is bad after not."""
    f = []
    for text in texts:
        words = text.split()
        sign = -1 if "not" in words else 1
        f.append(sign * (4.0 * ("good" in words) - 4.0 * ("bad" in words)))
    return np.column_stack([-np.array(f) / 2, np.array(f) / 2])


def test_words_that_work_by_context_are_seen() -> None:
    def words(y: int, rng: Any) -> list[str]:
        turned = rng.random() < 0.5
        return [["bad", "good"][y ^ turned], *(["not"] if turned else [])]

    texts, labels = documents(240, words)
    found = diagnose(negating, None, texts, labels, SETTINGS, classes=["0", "1"])
    row = found.uses.filter(pl.col("token") == "not").to_dicts()[0]
    assert found.accuracy == 1.0 and found.learned is True
    assert row["use"] == pytest.approx(8.0) and abs(row["mean"]) < 4 and row["flipped"] == 1.0
    assert row["helps"] == pytest.approx(8.0) and row["status"] == "used, helps in context"
    assert found.leaning.is_empty()


def test_too_rare_to_tell_is_no_accusation() -> None:
    def words(y: int, rng: Any) -> list[str]:
        return [
            *(["good"] if y and rng.random() < 0.9 else []),
            *(["rare"] if rng.random() < 0.02 else []),
        ]

    texts, labels = documents(400, words, seed=4)
    found = diagnose(
        linear({"good": 3.0, "rare": 30.0}), None, texts, labels, SETTINGS, classes=["0", "1"]
    )
    assert found.uses["token"][0] == "rare" and found.uses["status"][0] == "used, too rare to tell"


@pytest.mark.slow
@pytest.mark.parametrize("classes", fast_first([4, 2]))
def test_neutral_is_marked_and_shortcuts_found_with_any_number_of_classes(classes: int) -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(800) % classes
    filler = [f"w{i}" for i in range(30)]
    texts = []
    for y in labels:
        said = [f"topic{y}"] * (rng.random() < 0.8) + ["tablet"] * (rng.random() < 0.3)
        texts.append(" ".join([*rng.choice(filler, 8), *said]))

    def answer(given: list[str]) -> Any:
        z = np.array(
            [[2.0 * (f"topic{k}" in text.split()) for k in range(classes)] for text in given]
        )
        z[:, 1] += [3.0 * ("tablet" in text.split()) for text in given]
        return z

    found = diagnose(
        answer, None, texts, labels.tolist(), SETTINGS, classes=[str(k) for k in range(classes)]
    )
    assert found.leaning["token"].to_list() == ["tablet"] and found.leaning["class"][0] == "1"
    assert found.leaning["neutral"][0] == pytest.approx(2 / classes - 1)
    carried = found.uses.filter(pl.col("status") == "carries the label and is used")
    assert set(carried["token"]) == {f"topic{k}" for k in range(classes)}


def test_chinese_needs_a_tokenizer_and_is_told_so(trained: Any) -> None:
    texts = [
        f"{a}{b}{c}电影很{'好' if i % 2 else '坏'}"
        for i, (a, b, c) in enumerate(itertools.product("天地人山水火", repeat=3))
    ]
    labels = [i % 2 for i in range(len(texts))]

    def answer(given: list[str]) -> Any:
        return np.array([3.0 * ("好" in text) - 3.0 * ("坏" in text) for text in given])

    with pytest.raises(InputError, match="--tokenizer"):
        diagnose(answer, None, [f"run{i}on" for i in range(len(texts))], labels, classes=["0", "1"])
    from diagnose_models import train_tokenizer

    made = train_tokenizer("unigram", texts, size=60)
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        made.save(file.name)
        settings = DiagnoseSettings(tokenizer=file.name, min_documents=5)
        found = diagnose(answer, None, texts, labels, settings, classes=["0", "1"])
    assert found.learned is True and {"好", "坏"} <= set("".join(found.uses["token"][:3]))


def test_limits_are_parsed_and_checked(found: Diagnosis) -> None:
    assert found.exceeded(Diagnosis.limits_from([])) == []
    assert found.exceeded(Diagnosis.limits_from(["unsupported=0"]))
    assert not found.exceeded(Diagnosis.limits_from(["unsupported=3"]))
    assert "tablet" in found.exceeded(Diagnosis.limits_from(["share=2%"]))[0]
    for bad in ("share", "share=2", "unsupported=0.5", "word=1", "share=x"):
        with pytest.raises(InputError, match="share=SHARE"):
            Diagnosis.limits_from([bad])
