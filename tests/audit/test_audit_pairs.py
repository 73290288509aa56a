"""An audit of pairs: findings about a judge that is known, the page, the terminal, and nothing
found where nothing is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from artefacts import Artefact
from calls import fast_first
from tokensieve.auditing.demo import demo_pairs
from tokensieve.auditing.report import interactive_part
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Budget, Settings
from tokensieve.evidence.intervals import Share
from tokensieve.read.pairs import read_pairs
from tokensieve.report.html import page as render
from tokensieve.report.live.samples import sample_documents
from tokensieve.report.terminal import show

PAIRS = ("chosen", "rejected")
PLAIN = Settings(baseline=False, validation_share=0.0)


@pytest.fixture
def found(shared_pair_audit: Artefact) -> Audit:
    assert isinstance(shared_pair_audit.result, Audit)
    return shared_pair_audit.result


def test_length_formatting_and_word_are_found_and_the_useless_word_is_not(found: Audit) -> None:
    said = [finding.headline for finding in found.findings]
    assert said[0].startswith("The longer answer wins 7")
    assert said[0].endswith("% of the training pairs")
    assert any("contains **bold** type wins" in line and "at equal length" in line for line in said)
    assert any("“tapestry” wins" in line for line in said)
    assert not any("furthermore" in finding.tokens for finding in found.findings)
    for finding in found.findings:
        assert finding.details and finding.action.endswith(".")
        assert finding.kind in ("shortcut", "labels")


def test_the_summary_keeps_its_keys_and_gains_pairs(found: Audit) -> None:
    summary = json.loads(json.dumps(found.to_dict()))
    assert summary["classes"] == ["rejected", "chosen"]
    assert summary["documents"] == {
        "train": 2 * summary["pairs"]["train"],
        "test": 2 * summary["pairs"]["test"],
    }
    assert summary["pairs"]["train"] + summary["pairs"]["test"] == 1600
    assert summary["pairs"]["by"] == "prompt"
    assert summary["majority_accuracy"] == 0.5
    assert summary["pairs"]["accuracy"]["value"] == pytest.approx(
        summary["test_accuracy"], abs=0.01
    )
    assert (
        0.5
        < summary["pairs"]["longer_wins"]["test"]["value"]
        < summary["pairs"]["accuracy"]["value"] + 0.05
    )
    assert summary["baseline_accuracy"] > 0.6


def test_the_model_is_better_than_length_alone_where_more_than_length_decides(found: Audit) -> None:
    assert found.pairs is not None
    model, longer = found.pairs.like_length
    assert model.value > longer.value
    assert found.pairs.log_loss < np.log(2)


def test_the_page_and_the_terminal_speak_of_pairs(
    found: Audit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = render(found.report(), {})
    assert "The longer answer wins" in page.split("</h1>")[0]
    for said in ("What wins", "pairs.csv", "Always picking the longer answer", "is rewarded"):
        assert said in page
    assert "always answering the largest class" not in page.split("<script")[0]
    show(replace(found, seconds=found.seconds | {"total": 1.0}).report(), Path("out"))
    lines = capsys.readouterr().out.splitlines()
    assert any(len(line) > 80 for line in lines), "what is piped is not broken into lines"
    assert any(line.startswith("Test accuracy") for line in lines)


def test_an_explanation_of_one_answer_names_what_the_other_adds(found: Audit) -> None:
    """The page said "token types that are not on this page −8.039", which was the other answer."""
    sample = sample_documents(interactive_part(found), page_splits_text=True)
    order, model, sides = {}, found.learned.model, found.learned.test
    for place, row in enumerate(sides.corpus.rows.tolist()):
        order.setdefault((row, place % 2), place)
    for one in sample.documents[:40]:
        place = order[one["row"], one["label"] == 0]
        own = float(model.logits(sides.counts.matrix[[place]])[0, 0])
        assert one["answer"][0] == pytest.approx(own + one["other"], abs=1e-5)
        assert set(sides.counts.matrix[[place]].indices) <= set(sample.types)


def test_rows_of_findings_are_those_of_the_source(found: Audit) -> None:
    frame = demo_pairs(1600, 1)
    word = next(finding for finding in found.findings if finding.tokens == ("tapestry",))
    for row in word.rows["row"].head(50):
        assert "Tapestry" in frame["chosen"][row - 1]
        assert "Tapestry" not in frame["rejected"][row - 1]
    assert found.pairs is not None
    held = found.pairs.wins.row(by_predicate=pl.col("token") == "tapestry", named=True)
    assert held["wins"] == len(word.rows)


def coin(n: int, seed: int) -> pl.DataFrame:
    """Pairs whose preferred side is drawn by a coin, whatever they hold."""
    frame, rng = demo_pairs(n, seed), np.random.default_rng(seed)
    turn = pl.Series(rng.random(n) < 0.5)
    return frame.with_columns(
        chosen=pl.when(turn).then("chosen").otherwise("rejected"), rejected=pl.when(turn).then("rejected").otherwise("chosen")
    )  # fmt: skip


@pytest.mark.parametrize(("seeds", "most"), fast_first([(1, 0), (6, 1)]))
def test_a_judge_that_tosses_a_coin_rewards_nothing(seeds: int, most: int) -> None:
    plain = Settings(baseline=False, thorough=False, validation_share=0.0)
    some = [
        audit(read_pairs(coin(300, seed), pairs=PAIRS), plain).findings for seed in range(seeds)
    ]
    assert sum(bool(findings) for findings in some) <= most


def test_leaks_and_contradictions_are_findings() -> None:
    frame = demo_pairs(80, 2).with_columns(split=pl.Series(["train"] * 60 + ["test"] * 20))
    again = frame[:2].with_columns(split=pl.lit("test"))
    turned = frame[4:6].select(
        "prompt", pl.col("rejected").alias("chosen"), pl.col("chosen").alias("rejected"), "split"
    )
    result = audit(read_pairs(pl.concat([frame, again, turned]), pairs=PAIRS, split="split"), PLAIN)
    said = {
        finding.kind: finding.headline for finding in result.findings if finding.kind != "shortcut"
    }
    assert (
        said["leak"] == "2 test pairs (9.1%) share the prompt, or both answers, with training pairs"
    )
    assert said["contradiction"] == "4 pairs (6.5%) also occur with the other answer preferred"
    assert "leak" in render(result.report(), {}).lower()


@pytest.mark.slow
def test_a_budget_applies_to_pairs(found: Audit) -> None:
    over = audit(
        read_pairs(demo_pairs(400, 1), pairs=PAIRS),
        Settings(baseline=False, budget=Budget.parse("0.3@1%")),
    )
    assert "tapestry" in over.over_budget["token"]
    assert over.fails
    assert not found.fails


def test_two_pairs_are_enough_to_run() -> None:
    rows: list[Any] = [
        ("a", "good one", "bad one"),
        ("b", "good two", "bad two"),
        ("c", "good one", "bad two"),
    ]
    result = audit(
        read_pairs(pl.DataFrame(rows, schema=["prompt", *PAIRS], orient="row"), pairs=PAIRS),
        Settings(min_documents=1, baseline=False),
    )
    assert result.pairs is not None
    shown_page = render(result.report(), {})
    assert "2 training pairs in 2 prompts" in shown_page and "1 test pair in 1 prompt" in shown_page


@pytest.mark.slow
def test_a_stream_gives_the_same_audit(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    demo_pairs(120, 3).write_ndjson(path)
    plain, stream = (
        audit(read_pairs(path, pairs=PAIRS, stream=stream), PLAIN) for stream in (False, True)
    )
    assert plain.tokens.equals(stream.tokens)
    assert plain.pairs is not None
    assert stream.pairs is not None
    assert plain.pairs.wins.equals(stream.pairs.wins)
    assert plain.test_accuracy == stream.test_accuracy


def test_a_share_over_units_is_as_wide_as_the_units_are_alike() -> None:
    rng = np.random.default_rng(0)
    right, units = rng.random(400) < 0.7, np.arange(400)
    alone, together = (
        Share.over(right, units),
        Share.over(np.repeat(right[:100], 4), np.arange(400) // 4),
    )
    assert alone.found == int(right.sum())
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
    single = Share.over(right[:100], np.arange(100))
    assert together.low == pytest.approx(single.low, abs=0.01)
    assert Share.over(np.zeros(0), np.zeros(0, np.int64)).of == 0


def test_pairs_turned_round_lead_the_list_and_what_speaks_against_them_is_named() -> None:
    frame = demo_pairs(300, 5)
    rng = np.random.default_rng(0)
    mark = [f"{good} verily" for good in frame["chosen"]]
    turned = np.sort(rng.permutation(300)[:12])
    swap = pl.Series(np.isin(np.arange(300), turned))
    sure = pl.DataFrame({"prompt": frame["prompt"], "good": mark, "bad": frame["rejected"]})
    pick = [
        pl.when(swap).then(b).otherwise(a).alias(c)
        for a, b, c in (("good", "bad", "chosen"), ("bad", "good", "rejected"))
    ]
    found = audit(read_pairs(sure.select("prompt", *pick), pairs=PAIRS), PLAIN)
    issues = found.label_issues
    assert np.isin(issues["row"].head(6) - 1, turned).all()
    assert issues["margin"].is_sorted(descending=True) and issues["row"].is_unique().all()
    assert issues["against"].head(6).str.contains("verily").all()
    finding = next(f for f in found.findings if f.kind == "labels")
    assert finding.headline.endswith("contradict")
    assert "label-issues.csv" in finding.action and "at least 0.9" in finding.details[0]
    assert "label-issues.csv" in found.files()


def test_accuracy_without_the_shortcuts_of_pairs_is_that_of_answers_without_them(
    found: Audit,
) -> None:
    """Nothing but length, bold type and a word decides these pairs, so that without them the answer
    is chance."""
    assert found.without_shortcuts is not None and found.pairs is not None
    whole, without = found.without_shortcuts.all_types, found.without_shortcuts.some_types
    assert whole == found.pairs.accuracy == found.accuracy
    assert without.value < whole.value and without.low < 0.65
    assert found.to_dict()["accuracy_interval"] == [whole.low, whole.high]


@pytest.mark.slow
def test_drift_between_given_sides_of_pairs_is_found_and_none_between_drawn_ones() -> None:
    frame = demo_pairs(400, 2).with_columns(part=pl.Series(["train"] * 240 + ["test"] * 160))
    late = pl.col("part") == "test"
    moved = frame.with_columns(
        pl.when(late).then(pl.col(c) + " Furthermore. Furthermore.").otherwise(c).alias(c)
        for c in PAIRS
    )
    drifts = []
    for data in (moved, frame):
        kinds = audit(
            read_pairs(data, pairs=PAIRS, split="part"),
            Settings(baseline=False, thorough=False, validation_share=0.0),
        ).findings
        drifts.append([f for f in kinds if f.kind == "drift"])
    assert len(drifts[0]) == 1 and drifts[1] == []
    assert drifts[0][0].evidence["after"].value > drifts[0][0].evidence["before"].value


def test_the_page_says_why_effect_and_posterior_difference_can_contradict_each_other(
    found: Audit,
) -> None:
    train = found.learned.train.counts
    words = [not token.startswith("⟨") for token in train.tokens.tolist()]
    n = np.asarray(train.matrix[:, words].sum(axis=1)).ravel()
    share = n[train.labels == 1].sum() / n.sum()
    assert 0.55 < share < 0.75  # the judge prefers longer answers
    said = f"preferred answers contain {share:.0%} of all words"
    page = render(found.report(), {})
    assert said in page and f"posterior difference of +{2 * share - 1:.2f}, not 0" in page


def test_a_tie_is_one_pair_and_half_a_win() -> None:
    """Every other pair is a tie; the longer answer wins the rest: 75%, not 67%."""
    rng, words = (
        np.random.default_rng(3),
        "red blue green cold warm big small fast slow old new hard".split(),
    )
    short, long = ([" ".join(rng.choice(words, k)) for _ in range(200)] for k in (8, 16))
    frame = pl.DataFrame({"a": short, "b": long, "winner": ["tie", "b"] * 100})
    found = audit(
        read_pairs(frame, pairs=("a", "b"), winner="winner"),
        Settings(thorough=False, baseline=False),
    ).pairs
    assert found is not None and sum(found.pairs.values()) == 200
    for part in ("train", "test"):
        assert found.longer[part].of == found.pairs[part]
        assert found.longer[part].value == pytest.approx(0.75, abs=0.08)
    assert (
        found.accuracy.of == found.pairs["test"]
        and found.accuracy.value == found.longer["test"].value
    )


def test_ties_of_answers_in_one_column_are_no_contradictions() -> None:
    """A tie is there in both orders; of lists of answers the audit did not know that it is one."""
    rng, words = (
        np.random.default_rng(4),
        "red blue green cold warm big small fast slow old new hard".split(),
    )
    answers = [[" ".join(rng.choice(words, k)) for k in (8, 12)] for _ in range(200)]
    frame = pl.DataFrame(
        {"answers": answers, "scores": [[1, 1] if i % 2 else [1, 2] for i in range(200)]}
    )
    found = audit(
        read_pairs(frame, pairs=["answers"], scores=["scores"]),
        Settings(thorough=False, baseline=False),
    )
    assert found.pairs is not None and sum(found.pairs.pairs.values()) == 200
    assert not {"contradiction", "position"} & {finding.kind for finding in found.findings}
