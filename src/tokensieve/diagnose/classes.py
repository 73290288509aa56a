"""Which output of the model is which class of the data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from tokensieve.errors import InputError
from tokensieve.model.decision import decide
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.labels import label_name, listed

UNNAMED = re.compile(r"LABEL_[0-9]+")
SURE = 1e-6


@dataclass(frozen=True)
class Matched:
    """The model's output for each class of the data.

    Attributes:
        order: output index for each class, shape (K,).
        guessed: whether names did not tell, so that the order itself was taken.
        note: how it was found, in plain words; empty where names are equal.
    """

    order: tuple[int, ...]
    guessed: bool
    note: str


def match_classes(classes: Sequence[str], outputs: Sequence[str], asked: Mapping[str, str] | None = None) -> Matched:
    """Match the data's classes with the model's outputs: as asked, else by name (without case), else by number.

    Args:
        classes: the data's K classes.
        outputs: names of the model's outputs in index order (its `id2label`).
        asked: class → output name or number.

    Raises:
        InputError: the model has one output, or another number than the data has classes, or neither names nor numbers
            tell which is which.
    """
    have = f"the model answers {listed(outputs)}, the data is labelled {listed(classes)}"
    if len(outputs) == 1:
        raise InputError("the model has a single output: it is a regression, not a classifier; name another model")
    if len(outputs) != len(classes):
        raise InputError(f"{have}: bring the data to {len(outputs)} classes with --group NEW=OLD,OLD or --drop OLD")
    numbers = [str(i) for i in range(len(outputs))]
    if asked:
        return _as_asked(classes, outputs, asked, have)
    names = [name.casefold() for name in outputs]
    if sorted(names) == sorted(name.casefold() for name in classes) and len(set(names)) == len(names):
        return Matched(tuple(names.index(name.casefold()) for name in classes), False, "")
    if sorted(classes) == sorted(numbers):
        pairs = ", ".join(f"{number} = {outputs[int(number)]}" for number in classes)
        return Matched(
            tuple(int(name) for name in classes), True, f"labels are taken as numbers of the model's outputs: {pairs}"
        )
    if all(UNNAMED.fullmatch(name) for name in outputs):
        pairs = ", ".join(f"{name} = {output}" for name, output in zip(classes, outputs, strict=True))
        return Matched(
            tuple(range(len(outputs))), True, f"the model's outputs have no names and are taken in order: {pairs}"
        )
    example = " ".join(f"--map {name}={output}" for name, output in zip(classes, outputs, strict=True))
    raise InputError(f"{have}: say which is which, for example {example}")


def _as_asked(classes: Sequence[str], outputs: Sequence[str], asked: Mapping[str, str], have: str) -> Matched:
    given = {label_name(name): str(output) for name, output in asked.items()}
    places = {**{str(i): i for i in range(len(outputs))}, **{name: i for i, name in enumerate(outputs)}}
    order = [places.get(given.get(name, "")) for name in classes]
    whole = [place for place in order if place is not None]
    if set(given) != set(classes) or len(set(whole)) != len(classes):
        raise InputError(f"{have}: --map must name each class once, as CLASS=OUTPUT, and each output once")
    return Matched(tuple(whole), False, "")


def check_order(found: Matched, predicted: Ints, labels: Ints, classes: Sequence[str]) -> None:
    """Refuse a guessed order under which the model does worse than it would by chance.

    Raises:
        InputError: the answers, in the guessed order, are right less often than chance (one-sided p < 1e-6).
    """
    chance = 1 / len(classes)
    right = int(np.sum(predicted == labels))
    if found.guessed and binomtest(right, len(labels), chance, alternative="less").pvalue < SURE:
        raise InputError(
            f"only {right / len(labels):.1%} of the answers are right when {found.note}: the order seems to be another one; "
            "say which is which with --map CLASS=OUTPUT"
        )


def predicted(answers: Floats) -> Ints:
    """Class index of each row of answers, shape (n,)."""
    return decide(answers)
