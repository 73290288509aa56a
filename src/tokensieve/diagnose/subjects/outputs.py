"""How a model's outputs match the classes of the data, and how answers are computed from them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest, mannwhitneyu

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.read.values import label_name, listed

SPREAD_OF_LOG_ODDS = math.pi / math.sqrt(3)  # standard deviation of the logistic distribution
SMALLEST_SPREAD = 1e-9  # relative to the outputs; less is rounding

Kind = Literal["softmax", "sigmoid", "rest", "single"]
# p-value below which another order is taken to be the right one: a wrong accusation stops the run
MAX_P_VALUE = 1e-6
# of all documents: another order that is right this much more often is more than a tie
MIN_GAIN = 0.05


@dataclass(frozen=True)
class Outputs:
    """How the model's `width` outputs match the `classes` of the data.

    The logits z of the classes, in the data's order, become the **answer** f by its kind:

        softmax   z_1 − z_0 for two classes (H = 1), z_k − mean_j z_j for K (H = K)
        sigmoid   the same for two classes, z_k for K: each output is a yes or no of its own
        rest      ±z of the one output that is a class, the other class being "not that" (H = 1)
        single    z of the only output: a reward, a regression, the margin of a linear classifier

    It is larger for the class it is about, and with two classes above zero (single: above a
    threshold) for the second.

    Attributes:
        order: the output of each class, shape (K,), of rest and single the one output; None if only
            the predictions can tell.
        sign: −1 if the output of rest is about the first class.
        scale: what a single output is multiplied by (`stretched`).
        names: the outputs' names.
        named: names are equal, so that contradicting predictions are a `warning`, not an error.
        note: how outputs were matched otherwise.
    """

    order: tuple[int, ...] | None
    width: int
    classes: int
    kind: Kind = "softmax"
    sign: int = 1
    scale: float = 1.0
    names: tuple[str, ...] = ()
    named: bool = False
    note: str = ""
    warning: str = ""

    @property
    def heads(self) -> int:
        """The number of outputs, H: one for two classes, else one per class."""
        return 1 if self.classes == 2 else self.classes

    def answers(self, z: Any) -> Any:
        """Logits, shape (n, M), NumPy or PyTorch → answers, shape (n, H)."""
        order = list(self.order or range(self.classes))
        if self.kind in ("rest", "single"):
            return self.sign * self.scale * z[:, order[:1]]
        z = z[:, order]
        if self.classes == 2:
            return z[:, 1:] - z[:, :1]
        if self.kind == "sigmoid":
            return z
        return z - z.mean(axis=1, keepdims=True)

    @classmethod
    def match(
        cls,
        classes: Sequence[str],
        names: Sequence[str],
        asked: Mapping[str, str] | None = None,
        kind: Kind = "softmax",
    ) -> Outputs:
        """Match the data's K classes with the model's M outputs.

        As asked, else by name (without case), else by number.

        Args:
            classes: the data's classes.
            names: the outputs' in index order (the model's `id2label`).
            asked: class → output name or number.
            kind: sigmoid if each output is a yes or no of its own; a single output is always
                single.

        Raises:
            InputError: more classes than outputs, or an unusable request.
        """
        names = tuple(names)
        n_outputs = len(names)
        n_classes = len(classes)
        if n_outputs == 1:
            return _single(classes, names)
        base = cls(None, n_outputs, n_classes, kind, names=names)
        if asked:
            return _as_asked(base, classes, asked)
        by_name = _by_name(base, classes)
        if by_name is not None:
            return by_name
        have = _both_lists(classes, names)
        if n_outputs < n_classes:
            raise InputError(
                f"{have}: reduce the data to {n_outputs} classes with --group NEW=OLD,OLD "
                "or --drop OLD"
            )
        if n_outputs == n_classes:
            by_number = _by_number(base, classes)
            if by_number is not None:
                return by_number
        return replace(base, note=have)

    def check_order(self, logits: Floats, labels: Ints, classes: Sequence[str]) -> Outputs:
        """Check the order against the predictions, of logits (n, M) and labels (n,).

        No other assignment of outputs to classes may be right far more often. The best one
        maximises the trace of the confusion matrix (Hungarian algorithm). It wins if, of the
        documents that only one of the two gets right, it gets right more than half (sign test), and
        at least 5 % of all documents more; and if its predictions agree with the labels beyond what
        their frequencies alone give: a model that always predicts the same class says nothing about
        the order. One output is turned if it is larger for the other class (Mann–Whitney's test).

        Raises:
            InputError: with the `--map` that the predictions support if another order wins, or if
                names do not tell.
        """
        if self.order is not None and self.kind in ("rest", "single"):
            return self._check_sign(logits, labels, classes)
        best = _best_assignment(logits, labels, classes)
        example = " ".join(
            f"--map {quote(f'{name}={self.names[k]}')}"
            for name, k in zip(classes, best.outputs, strict=True)
        )
        if self.order is None:
            rate = f"{best.is_right.mean():.1%} correct"
            if best.beats_chance:
                raise InputError(
                    f"{self.note}; the predictions match {example} ({rate}); pass that to "
                    "confirm it"
                )
            raise InputError(
                f"{self.note}; the predictions do not show which output is which class (best "
                f"match: {rate}), so name each with --map CLASS=OUTPUT"
            )
        is_right = logits[:, list(self.order)].argmax(axis=1) == labels
        if not best.beats_chance or not _is_far_better(best.is_right, is_right):
            return self
        rates = (
            f"{is_right.mean():.1%} of the predictions are correct, "
            f"{best.is_right.mean():.1%} with {example}"
        )
        if self.named:
            warning = f"{rates}. Are the names in its config.json in the right order?"
            return replace(self, warning=warning)
        order = self.note or "the outputs are matched as --map specifies"
        raise InputError(f"{order}, but only {rates}; set the right order with --map")

    def stretched(self, logits: Floats) -> Outputs:
        """A single output that varies as much as log-odds do, if these are logistic.

        A regression may predict stars from 1 to 5 or a number from 0 to 1. Sizes of its changes can
        only be judged relative to how far its predictions are apart.
        """
        spread = float(np.std(logits[:, 0]))
        if spread <= SMALLEST_SPREAD * max(float(np.abs(logits[:, 0]).max()), 1.0):
            return self
        note = (
            "the model's output is a number of its own scale: it was multiplied by "
            f"{SPREAD_OF_LOG_ODDS / spread:.3g}, so that it varies as much as log-odds "
            f"(standard deviation {SPREAD_OF_LOG_ODDS:.2f})"
        )
        if self.note:
            note = f"{self.note}; {note}"
        return replace(self, scale=SPREAD_OF_LOG_ODDS / spread, note=note)

    def _check_sign(self, logits: Floats, labels: Ints, classes: Sequence[str]) -> Outputs:
        """Turn a single output that is larger for the other class."""
        answers = self.answers(logits)[:, 0]
        test = mannwhitneyu(answers[labels == 1], answers[labels == 0], alternative="less")
        if test.pvalue >= MAX_P_VALUE:
            return self
        if self.kind == "single":
            note = f"the model's single output is larger for {classes[0]!r}: its sign is flipped"
            return replace(self, sign=-1, note=note)
        return replace(self, note=f"{self.note}; it is larger for the other class".lstrip("; "))


@dataclass(frozen=True)
class Assignment:
    """Outputs assigned to classes, and whether the predictions are right by it, shape (n,)."""

    outputs: Ints
    is_right: np.ndarray[Any, np.dtype[np.bool_]]
    beats_chance: bool


def _best_assignment(logits: Floats, labels: Ints, classes: Sequence[str]) -> Assignment:
    """The assignment by which most predictions are right."""
    predicted = logits.argmax(axis=1)
    confusion = np.zeros((len(classes), logits.shape[1]))
    np.add.at(confusion, (labels, predicted), 1.0)
    _, outputs = linear_sum_assignment(-confusion)
    is_right = outputs[labels] == predicted
    n = len(labels)
    label_rates = confusion.sum(axis=1) / n
    prediction_rates = confusion[:, outputs].sum(axis=0) / n
    right_by_chance = min(float(label_rates @ prediction_rates), 1.0)
    test = binomtest(int(is_right.sum()), n, right_by_chance, alternative="greater")
    return Assignment(outputs, is_right, bool(test.pvalue < MAX_P_VALUE))


def _is_far_better(best: Any, given: Any) -> bool:
    """Whether the predictions that are right by one order are far more than by the given one."""
    n_gained = int((best & ~given).sum())
    n_lost = int((given & ~best).sum())
    if n_gained - n_lost <= MIN_GAIN * len(best):
        return False
    test = binomtest(n_gained, n_gained + n_lost, 0.5, alternative="greater")
    return bool(test.pvalue < MAX_P_VALUE)


def _both_lists(classes: Sequence[str], names: Sequence[str]) -> str:
    return f"the model predicts {listed(names)}, but the labels are {listed(classes)}"


def _single(classes: Sequence[str], names: tuple[str, ...]) -> Outputs:
    """The outputs of a model that has only one."""
    if len(classes) != 2:
        raise InputError(
            "the model has a single output, which can separate only two classes, but the data has "
            f"{len(classes)} classes: reduce it to two with --group NEW=OLD,OLD or --drop OLD"
        )
    note = f"the model's single output is assumed to be larger for {classes[1]!r}"
    return Outputs((0,), 1, 2, "single", names=names, named=True, note=note)


def _as_asked(base: Outputs, classes: Sequence[str], asked: Mapping[str, str]) -> Outputs:
    """Match outputs by `--map`."""
    place_of = {str(i): i for i in range(base.width)}
    place_of |= {name: i for i, name in enumerate(base.names)}
    output_of_label = {label_name(name): str(output) for name, output in asked.items()}
    order = [place_of.get(output_of_label.get(name, "")) for name in classes]
    matched_places = [place for place in order if place is not None]
    if (
        base.classes == 2
        and len(output_of_label) == len(matched_places) == 1
        and base.kind == "sigmoid"
    ):
        sign = 1 if order[1] is not None else -1
        return replace(base, order=(matched_places[0],), kind="rest", sign=sign)
    if set(output_of_label) != set(classes) or len(set(matched_places)) != base.classes:
        raise InputError(
            f"{_both_lists(classes, base.names)}: --map must name each class once, as "
            "CLASS=OUTPUT, and each output at most once"
        )
    return replace(base, order=tuple(matched_places))


def _comparable(name: str) -> str:
    """A name as it is compared with others: without the case, and as a label is written."""
    return (label_name(name) or name).casefold()


def _by_name(base: Outputs, classes: Sequence[str]) -> Outputs | None:
    """Match outputs that have the classes' names; None if they have not."""
    output_names = [_comparable(name) for name in base.names]
    class_names = [_comparable(name) for name in classes]
    if len(set(output_names)) < base.width or len(set(class_names)) < base.classes:
        return None
    matched = [output_names.index(name) for name in class_names if name in output_names]
    if len(matched) == base.classes:
        unused = [name for i, name in enumerate(base.names) if i not in matched]
        note = ""
        if unused:
            note = f"only the outputs for the data's classes are compared; unused: {listed(unused)}"
        return replace(base, order=tuple(matched), named=True, note=note)
    if len(matched) == 1 and base.classes == 2 and base.kind == "sigmoid":
        sign = 1 if class_names[1] in output_names else -1
        note = f"the output {base.names[matched[0]]!r} is treated as a yes/no prediction"
        return replace(base, order=(matched[0],), kind="rest", sign=sign, named=True, note=note)
    return None


def _by_number(base: Outputs, classes: Sequence[str]) -> Outputs | None:
    """Match as many outputs as classes by their numbers; None if nothing suggests their order."""
    in_order = replace(base, order=tuple(range(base.classes)))
    if list(classes) == [str(k) for k in range(base.classes)]:
        pairs = ", ".join(f"{k} = {name}" for k, name in enumerate(base.names))
        note = f"labels are treated as numbers of the model's outputs: {pairs}"
        return replace(in_order, note=note)
    if all(re.fullmatch(r"LABEL_[0-9]+", name) for name in base.names):
        matches = zip(classes, base.names, strict=True)
        pairs = ", ".join(f"{name} = {output}" for name, output in matches)
        note = f"the model's outputs have no names and are taken in order: {pairs}"
        return replace(in_order, note=note)
    return None
