"""The benchmark of verdicts runs small: no sentence is false more often than one in twenty allows,
and a sentence that is false is counted as such."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import verdict_audits
import verdict_copies
import verdicts
from tokensieve.arrays import Ints
from verdict_data import GENERATED, Outcome, Verdict, generated

VERDICTS = {verdict.name: verdict for verdict in verdicts.VERDICTS}
MOST_FALSE = {  # of the sentences said in one trial
    "missed_copies": 0.1,
    "wrong_label_although_right": 1.0,  # of generated reviews, the words only make a label likely
}
FAST = {"missed_copies", "false_copies"}  # the others train a model
NEEDS_DATA = {"rewarded_in_random_real_preferences", "style_rewarded_by_random_judge"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
        for name in VERDICTS
        if name not in NEEDS_DATA
    ],
)
def test_a_verdict_on_generated_data(name: str) -> None:
    outcome = VERDICTS[name].trial(generated(0, 300), 0)
    assert outcome.said >= outcome.false
    assert outcome.false <= MOST_FALSE.get(name, 0.0) * outcome.said


def test_copies_that_are_not_found_count_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_copies, "direct_originals", _no_originals)
    outcome = VERDICTS["missed_copies"].trial(generated(0, 300), 0)
    assert outcome.false == outcome.said > 0


def _no_originals(first: Ints, words: object, n_training: int) -> Ints:
    """As if no document repeated another."""
    return np.full(len(first), -1, dtype=np.int64)


@dataclass(frozen=True)
class _Finding:
    kind: str


@dataclass(frozen=True)
class _Audit:
    findings: tuple[_Finding, ...] = (_Finding("shortcut"), _Finding("alone"), _Finding("drift"))
    n_predictive: int = 1


@pytest.mark.parametrize(
    "name",
    [
        "shortcut_in_shuffled_labels",
        "token_in_shuffled_labels",
        "alone_in_shuffled_labels",
        "drift_in_random_split",
    ],
)
def test_an_audit_that_accuses_random_data_counts_as_false(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_audits, "audit", lambda *given, **options: _Audit())
    monkeypatch.setattr(verdict_audits, "_latest_shuffled", {})
    assert VERDICTS[name].trial(generated(0, 100), 0) == Outcome(1, 1)


def test_every_verdict_is_drawn_and_no_measurement_is_made_twice() -> None:
    every = verdicts.tasks(small=False, n_seeds=3)
    assert {task.verdict.name for task in every} == set(VERDICTS)
    assert len({task.key for task in every}) == len(every)
    first_tenth = every[: len(every) // 10 + 1]
    assert len({task.verdict.name for task in first_tenth}) > len(VERDICTS) / 2
    assert {task.set_name for task in verdicts.tasks(small=True, n_seeds=3)} == {GENERATED}


def _row(state: str, said: int = 1) -> str:
    key = json.dumps(["drift_in_random_split", "sms", 1])
    return json.dumps({"key": key, "said": said, "false": 0, "state": state, "on": "a machine"})


def test_outcomes_of_two_states_of_the_package_are_never_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.jsonl"
    monkeypatch.setattr(verdicts, "KEPT", kept)
    kept.write_text(_row("abc") + "\n")
    assert verdicts.Kept.read().state == "abc"
    kept.write_text(_row("abc") + "\n" + _row("def") + "\n")
    with pytest.raises(SystemExit, match="abc and def"):
        verdicts.Kept.read()


def test_a_rate_whose_lower_bound_is_above_five_percent_is_said_to_be_too_high() -> None:
    verdict = next(iter(VERDICTS.values()))
    page = _page_of(verdict, said=100, false=20)
    assert f"“{verdict.sentence}” was false 20 of 100 times. It must be reworded." in page
    assert "It must be reworded" not in _page_of(verdict, said=100, false=1)


def _page_of(verdict: Verdict, said: int, false: int) -> str:
    """The page if only one verdict was measured."""
    every = [task for task in verdicts.tasks(small=True, n_seeds=1) if task.verdict is verdict]
    known = {every[0].key: Outcome(said, false)}
    row = verdicts.Row.of(verdict, every, known)
    return verdicts.page([row], "abc", "a machine")


def test_the_page_is_written_by_the_script_from_the_kept_outcomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = verdicts.tasks(small=False, n_seeds=verdicts.N_SEEDS)
    kept = verdicts.Kept.read()
    if kept.state is None:
        pytest.skip("benchmarks/verdicts.py has not been run since it was rewritten")
    rows = [verdicts.Row.of(verdict, every, kept.by_key) for verdict in verdicts.VERDICTS]
    # rows of transformers come from another script
    monkeypatch.setattr(verdicts, "_rows_of_planted_models", list)
    expected = verdicts.page(rows, kept.state, kept.machine).splitlines()
    written = verdicts.PAGE.read_text().splitlines()
    assert [line for line in expected if line not in written] == []
