"""What an audit without a shortcut says it would have found: no more than its controls show."""

from types import SimpleNamespace
from typing import Any

from tokensieve.auditing.artefacts.controls import RATES, Controls, DetectionLimit
from tokensieve.auditing.report_limits import limit_clause, limit_sentences


def controls(found: dict[str, list[int]], n_trials: int = 20) -> Controls:
    """Words found of each class, at each rate."""
    limits = [
        DetectionLimit(label, rate, n_found, n_trials)
        for label, counts in found.items()
        for rate, n_found in zip(RATES, counts, strict=True)
    ]
    return Controls(tuple(limits), false_alarms=0, n_shuffles=2)


def audited(found: Controls | None, *classes: str) -> Any:
    return SimpleNamespace(controls=found, classes=list(classes))


def test_the_rate_is_the_smallest_from_which_on_nearly_all_are_found() -> None:
    made = controls({"a": [0, 19, 20, 20], "b": [20, 5, 20, 19], "c": [0, 0, 9, 18]})
    assert made.found_from("a") == 0.05
    assert made.found_from("b") == 0.1  # what is found at 2 % by luck does not count
    assert made.found_from("c") is None
    assert made.found_from("unknown") is None


def test_few_trials_of_many_classes_are_taken_together() -> None:
    many = {f"class {number}": [0, 2, 5, 5] for number in range(30)}
    assert controls(many, n_trials=5).found_from("class 3") == 0.1
    many["class 3"] = [0, 0, 0, 0]
    many["class 4"] = [0, 0, 0, 5]
    assert controls(many, n_trials=5).found_from("class 9") == 0.2


def test_the_verdict_claims_what_holds_for_every_class_that_it_names() -> None:
    both = audited(controls({"a": [0, 19, 20, 20], "b": [0, 5, 20, 20]}), "a", "b")
    assert "10% or more of any class" in limit_clause(both)
    one = audited(controls({"a": [0, 19, 20, 20], "b": [0, 5, 9, 9]}), "a", "b")
    assert "5% or more of class a" in limit_clause(one)
    none = audited(controls({"a": [0, 0, 0, 9], "b": [0, 0, 0, 0]}), "a", "b")
    assert "missed" in limit_clause(none)
    assert "does not show" in limit_clause(audited(None, "a", "b"))


def test_the_sentence_names_each_class_once_and_those_that_were_not_tested() -> None:
    made = controls({"a": [0, 19, 20, 20], "b": [0, 5, 20, 20], "c": [0, 0, 0, 9]})
    sentence = limit_sentences(audited(made, "a", "b", "c", "d"))
    assert "5% or more of “a” and in 10% or more of “b”" in sentence
    assert "in “c”, more were missed" in sentence
    assert "1 smallest class" in sentence
    assert limit_sentences(audited(None, "a")) == ""
