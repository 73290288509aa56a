"""Which output of the model is which class of the data: by name, as asked, or by number, and always checked against the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest, mannwhitneyu

from tokensieve.diagnose.outputs import Kind, Outputs
from tokensieve.errors import InputError
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.labels import label_name, listed

UNNAMED = re.compile(r"LABEL_[0-9]+")
SURE = 1e-6
MUCH = 0.05  # share of the documents that another order must win


@dataclass(frozen=True)
class Matched:
    """How the model's outputs answer for the classes.

    Attributes:
        outputs: which output is which class; None where nothing tells, and the answers must be asked.
        names: of the model's outputs.
        named: whether the names of outputs and classes are equal: then the answers may contradict, but not refuse.
        note: how it was found, in plain words; empty where names are equal.
    """

    outputs: Outputs | None
    names: tuple[str, ...]
    named: bool = False
    note: str = ""


def match_classes(
    classes: Sequence[str], names: Sequence[str], asked: Mapping[str, str] | None = None, kind: Kind = Kind.SOFTMAX
) -> Matched:
    """Match the data's classes with the model's outputs: as asked, else by name (without case), else by number.

    Args:
        classes: the data's K classes.
        names: of the model's M outputs in index order (its `id2label`).
        asked: class → output name or number.
        kind: SIGMOID where each output is a yes or no of its own; a single output is SINGLE.

    Raises:
        InputError: the data has more classes than the model outputs, or what was asked names no output, or one twice.
    """
    names, M, K = tuple(names), len(names), len(classes)
    have = f"the model answers {listed(names)}, the data is labelled {listed(classes)}"
    if M == 1:
        if K != 2:
            raise InputError(
                f"the model has a single output, which puts documents on one scale, and the data has {K} classes: bring it to "
                "two with --group NEW=OLD,OLD or --drop OLD"
            )
        note = f"the model's single output is taken to be larger for {classes[1]!r}"
        return Matched(Outputs((0,), 1, 2, Kind.SINGLE), names, True, note)
    if asked:
        return Matched(_as_asked(classes, names, asked, kind, have), names)
    folded, mine = [_folded(name) for name in names], [_folded(name) for name in classes]
    if len(set(folded)) == M and len(set(mine)) == K:
        found = [folded.index(name) for name in mine if name in folded]
        if len(found) == K:
            unused = [name for i, name in enumerate(names) if i not in found]
            note = f"only the outputs for the data's classes are compared; unused: {listed(unused)}" if unused else ""
            return Matched(Outputs(tuple(found), M, K, kind), names, True, note)
        if len(found) == 1 and K == 2 and kind is Kind.SIGMOID:
            return Matched(
                _rest(mine, folded, M), names, True, f"the output {names[found[0]]!r} is read as a yes or no"
            )
    if M < K:
        raise InputError(f"{have}: bring the data to {M} classes with --group NEW=OLD,OLD or --drop OLD")
    order = Outputs(tuple(range(K)), M, K, kind)
    if list(classes) == [str(i) for i in range(K)] and M == K:
        pairs = ", ".join(f"{k} = {names[k]}" for k in range(K))
        return Matched(order, names, False, f"labels are taken as numbers of the model's outputs: {pairs}")
    if M == K and all(UNNAMED.fullmatch(name) for name in names):
        pairs = ", ".join(f"{name} = {output}" for name, output in zip(classes, names, strict=True))
        return Matched(order, names, False, f"the model's outputs have no names and are taken in order: {pairs}")
    return Matched(None, names, False, have)


def _folded(name: str) -> str:
    """As labels are read, without case."""
    return (label_name(name) or name).casefold()


def _rest(mine: list[str], names: list[str], width: int) -> Outputs:
    k = next(i for i, name in enumerate(mine) if name in names)
    return Outputs((names.index(mine[k]),), width, 2, Kind.REST, 1 if k else -1)


def _as_asked(
    classes: Sequence[str], names: Sequence[str], asked: Mapping[str, str], kind: Kind, have: str
) -> Outputs:  # fmt: skip
    given = {label_name(name): str(output) for name, output in asked.items()}
    places = {**{str(i): i for i in range(len(names))}, **{name: i for i, name in enumerate(names)}}
    order = [places.get(given.get(name, "")) for name in classes]
    whole = [place for place in order if place is not None]
    if len(classes) == 2 and len(given) == len(whole) == 1 and kind is Kind.SIGMOID:
        return Outputs((whole[0],), len(names), 2, Kind.REST, 1 if order[1] is not None else -1)
    if set(given) != set(classes) or len(set(whole)) != len(classes):
        raise InputError(f"{have}: --map must name each class once, as CLASS=OUTPUT, and each output at most once")
    return Outputs(tuple(whole), len(names), len(classes), kind)


def settle(found: Matched, logits: Floats, labels: Ints, classes: Sequence[str]) -> Matched:
    """Check the order against the answers: no other assignment of outputs to classes may be right far more often.

    The best assignment maximises the trace of the confusion matrix (Hungarian algorithm). It wins where, of the documents that
    only one of the two gets right, it gets right more than half (sign test, p < 1e-6), and at least 5 % of all documents more;
    and where its answers agree with the labels beyond what their frequencies alone give: a model that always answers the same says
    nothing about the order.

    Args:
        found: by name, as asked, or guessed.
        logits: of the model, shape (n, M).
        labels: true class of each document, shape (n,).
        classes: names of the K classes.

    Raises:
        InputError: names do not tell, or another order is right far more often; with the `--map` that the answers support.
    """
    K, outputs = len(classes), found.outputs
    if outputs is not None and outputs.kind in (Kind.REST, Kind.SINGLE):
        return _settle_scale(found, outputs, logits, labels, classes)
    answered = logits.argmax(axis=1)
    confusion = np.zeros((K, logits.shape[1]))
    np.add.at(confusion, (labels, answered), 1.0)
    _, best = linear_sum_assignment(-confusion)
    right = best[labels] == answered
    example = " ".join(
        f"--map {quote(f'{name}={found.names[output]}')}" for name, output in zip(classes, best, strict=True)
    )
    tells = _tells(right, float(confusion.sum(axis=1) @ confusion[:, best].sum(axis=0)) / len(labels) ** 2)
    if outputs is None:
        if tells:
            raise InputError(f"{found.note}: the answers fit {example} ({right.mean():.1%} right); confirm with it")
        raise InputError(
            f"{found.note}: say which is which with --map CLASS=OUTPUT for each class; the answers do not tell (at best "
            f"{right.mean():.1%} right)"
        )
    mine = logits[:, list(outputs.order)].argmax(axis=1) == labels
    only_best, only_mine = int((right & ~mine).sum()), int((mine & ~right).sum())
    wins = (
        only_best + only_mine > 0
        and tells
        and (
            binomtest(only_best, only_best + only_mine, 0.5, alternative="greater").pvalue < SURE
            and only_best - only_mine > MUCH * len(labels)
        )
    )
    if not wins:
        return found
    what = f"{mine.mean():.1%} of the answers are right, {right.mean():.1%} with {example}"
    if found.named:
        return replace(
            found, note=f"{found.note}; {what}: are the names in its config.json in the right order?".lstrip("; ")
        )
    order = found.note or "the outputs are matched as --map says"
    raise InputError(f"{order}, but then only {what}: give the order that is right with --map")


def _tells(right: NDArray[np.bool_], chance: float) -> bool:
    """Whether answers are right more often than by chance (p < 1e-6)."""
    return bool(binomtest(int(right.sum()), len(right), min(chance, 1.0), alternative="greater").pvalue < SURE)


def _settle_scale(
    found: Matched, outputs: Outputs, logits: Floats, labels: Ints, classes: Sequence[str]
) -> Matched:  # fmt: skip
    """One output: whether it is larger for the class that it is about."""
    answers = outputs.answers(logits)[:, 0]
    p = mannwhitneyu(answers[labels == 1], answers[labels == 0], alternative="less").pvalue
    if p >= SURE:
        return found
    if outputs.kind is Kind.SINGLE:
        note = f"the model's single output is larger for {classes[0]!r}: its sign is turned"
        return replace(found, outputs=replace(outputs, sign=-1), note=note)
    return replace(found, note=f"{found.note}; it is larger for the other class".lstrip("; "))
