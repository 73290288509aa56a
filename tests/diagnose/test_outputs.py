"""How a model's outputs are matched with the classes of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.errors import InputError

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


def test_a_number_of_its_own_scale_is_judged_relative_to_its_spread() -> None:
    """Stars from 1 to 5 and numbers from 0 to 1 are the same predictions."""
    found = Outputs.match(["bad", "good"], ["LABEL_0"])
    z = np.random.default_rng(0).normal(0.5, 0.2, (500, 1))
    answers = found.stretched(z).answers(z)
    assert answers.std() == pytest.approx(np.pi / np.sqrt(3))
    np.testing.assert_allclose(found.stretched(4 * z).answers(4 * z), answers)
    assert found.stretched(np.ones((500, 1))) is found
