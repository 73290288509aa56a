"""Which output of the model is which class of the data, and how its outputs become answers.

With logits z of the classes in the data's order, the **answer** f is

    SOFTMAX   z_1 − z_0 for two classes (H = 1), z_k − mean_j z_j for K (H = K)
    SIGMOID   the same for two classes, z_k for K: each output is a yes or no of its own (multi-label heads)
    REST      ±z of the one output that is a class, the other class being "not that" (H = 1)
    SINGLE    z of the only output: a reward, a regression, the margin of a linear classifier (H = 1)

in every case larger for the class it is about, and with two classes above zero (SINGLE: above a threshold) for the second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from shlex import quote
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest, mannwhitneyu

from tokensieve.errors import InputError
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.labels import label_name, listed

_CERTAIN = 1e-6  # p-value below which another order is taken to be the right one


class OutputKind(StrEnum):
    """How logits become answers (module formula)."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"
    REST = "rest"
    SINGLE = "single"


@dataclass(frozen=True)
class Outputs:
    """Which output is which class, and how answers are made of them.

    Attributes:
        order: output of each class, shape (K,); of REST and SINGLE the one output; None if only the predictions can tell.
        width: M, the model's outputs.
        classes: K.
        kind: see the module's formula.
        sign: −1 if the output of REST is about the first class.
        names: of the model's outputs.
        named: whether the names of outputs and classes are equal: then contradicting predictions are a warning, not an error.
        note: how outputs were matched; empty if names are equal.
        warning: that another order fits the predictions far better.
    """

    order: tuple[int, ...] | None
    width: int
    classes: int
    kind: OutputKind = OutputKind.SOFTMAX
    sign: int = 1
    names: tuple[str, ...] = ()
    named: bool = False
    note: str = ""
    warning: str = ""

    @property
    def heads(self) -> int:
        """H."""
        return 1 if self.classes == 2 else self.classes

    def answers(self, z: Any) -> Any:
        """Logits, shape (n, M), NumPy or PyTorch → answers, shape (n, H)."""
        order = list(self.order or range(self.classes))
        if self.kind in (OutputKind.REST, OutputKind.SINGLE):
            return self.sign * z[:, order[:1]]
        z = z[:, order]
        if self.classes == 2:
            return z[:, 1:] - z[:, :1]
        return z if self.kind is OutputKind.SIGMOID else z - z.mean(axis=1, keepdims=True)

    @classmethod
    def match(
        cls,
        classes: Sequence[str],
        names: Sequence[str],
        asked: Mapping[str, str] | None = None,
        kind: OutputKind = OutputKind.SOFTMAX,
    ) -> Outputs:
        """Match the data's K classes with the model's M outputs: as asked, else by name (without case), else by number.

        Args:
            classes: the data's classes.
            names: of the outputs in index order (the model's `id2label`).
            asked: class → output name or number.
            kind: SIGMOID if each output is a yes or no of its own; a single output is SINGLE.

        Raises:
            InputError: the data has more classes than the model has outputs, or what was asked names no output, or one twice.
        """
        names, M, K = tuple(names), len(names), len(classes)
        have = f"the model predicts {listed(names)}, the data is labelled {listed(classes)}"
        if M == 1:
            if K != 2:
                raise InputError(
                    f"the model has a single output, which puts documents on one scale, and the data has {K} classes: bring it to "
                    "two with --group NEW=OLD,OLD or --drop OLD"
                )
            note = f"the model's single output is taken to be larger for {classes[1]!r}"
            return cls((0,), 1, 2, OutputKind.SINGLE, names=names, named=True, note=note)
        if asked:
            given = {label_name(name): str(output) for name, output in asked.items()}
            places = {**{str(i): i for i in range(M)}, **{name: i for i, name in enumerate(names)}}
            order = [places.get(given.get(name, "")) for name in classes]
            whole = [place for place in order if place is not None]
            if K == 2 and len(given) == len(whole) == 1 and kind is OutputKind.SIGMOID:
                return cls((whole[0],), M, 2, OutputKind.REST, 1 if order[1] is not None else -1, names)
            if set(given) != set(classes) or len(set(whole)) != K:
                raise InputError(
                    f"{have}: --map must name each class once, as CLASS=OUTPUT, and each output at most once"
                )
            return cls(tuple(whole), M, K, kind, names=names)
        folded, mine = ([(label_name(name) or name).casefold() for name in some] for some in (names, classes))
        if len(set(folded)) == M and len(set(mine)) == K:
            found = [folded.index(name) for name in mine if name in folded]
            if len(found) == K:
                unused = listed([name for i, name in enumerate(names) if i not in found]) if M > K else ""
                note = f"only the outputs for the data's classes are compared; unused: {unused}" if unused else ""
                return cls(tuple(found), M, K, kind, names=names, named=True, note=note)
            if len(found) == 1 and K == 2 and kind is OutputKind.SIGMOID:
                note = f"the output {names[found[0]]!r} is read as a yes or no"
                return cls((found[0],), M, 2, OutputKind.REST, 1 if mine[1] in folded else -1, names, True, note)
        if M < K:
            raise InputError(f"{have}: bring the data to {M} classes with --group NEW=OLD,OLD or --drop OLD")
        in_order = cls(tuple(range(K)), M, K, kind, names=names)
        if list(classes) == [str(i) for i in range(K)] and M == K:
            pairs = ", ".join(f"{k} = {names[k]}" for k in range(K))
            return replace(in_order, note=f"labels are taken as numbers of the model's outputs: {pairs}")
        if M == K and all(re.fullmatch(r"LABEL_[0-9]+", name) for name in names):
            pairs = ", ".join(f"{name} = {output}" for name, output in zip(classes, names, strict=True))
            return replace(in_order, note=f"the model's outputs have no names and are taken in order: {pairs}")
        return replace(in_order, order=None, note=have)

    def check_order(self, logits: Floats, labels: Ints, classes: Sequence[str]) -> Outputs:
        """Check the order against the predictions: no other assignment of outputs to classes may be right far more often.

        The best assignment maximises the trace of the confusion matrix (Hungarian algorithm). It wins if, of the documents that
        only one of the two gets right, it gets right more than half (sign test, p < 1e-6), and at least 5 % of all documents more;
        and if its predictions agree with the labels beyond what their frequencies alone give: a model that always predicts the
        same class says nothing about the order. One output is turned if it is larger for the other class (Mann–Whitney's test).
        Logits have shape (n, M), labels (n,).

        Raises:
            InputError: names do not tell, or another order is right far more often; with the `--map` that the predictions support.
        """
        if self.order is not None and self.kind in (OutputKind.REST, OutputKind.SINGLE):
            f = self.answers(logits)[:, 0]
            if mannwhitneyu(f[labels == 1], f[labels == 0], alternative="less").pvalue >= _CERTAIN:
                return self
            if self.kind is OutputKind.SINGLE:
                note = f"the model's single output is larger for {classes[0]!r}: its sign is turned"
                return replace(self, sign=-1, note=note)
            return replace(self, note=f"{self.note}; it is larger for the other class".lstrip("; "))
        predicted = logits.argmax(axis=1)
        confusion = np.zeros((len(classes), logits.shape[1]))
        np.add.at(confusion, (labels, predicted), 1.0)
        _, best = linear_sum_assignment(-confusion)
        right = best[labels] == predicted
        example = " ".join(f"--map {quote(f'{name}={self.names[k]}')}" for name, k in zip(classes, best, strict=True))
        chance = float(confusion.sum(axis=1) @ confusion[:, best].sum(axis=0)) / len(labels) ** 2
        tells = binomtest(int(right.sum()), len(right), min(chance, 1.0), alternative="greater").pvalue < _CERTAIN
        if self.order is None:
            rate = f"{right.mean():.1%} correct"
            if tells:
                raise InputError(f"{self.note}: the predictions fit {example} ({rate}); confirm with it")
            raise InputError(
                f"{self.note}: say which is which with --map CLASS=OUTPUT for each class; the predictions do not tell (at best "
                f"{rate})"
            )
        mine = logits[:, list(self.order)].argmax(axis=1) == labels
        gained, lost = int((right & ~mine).sum()), int((mine & ~right).sum())
        wins = gained - lost > 0.05 * len(right)
        if not (tells and wins and binomtest(gained, gained + lost, 0.5, alternative="greater").pvalue < _CERTAIN):
            return self
        what = f"{mine.mean():.1%} of the predictions are correct, {right.mean():.1%} with {example}"
        if self.named:
            return replace(self, warning=f"{what}. Are the names in its config.json in the right order?")
        order = self.note or "the outputs are matched as --map says"
        raise InputError(f"{order}, but then only {what}: give the order that is right with --map")
