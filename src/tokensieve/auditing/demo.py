"""Built-in data: seeded, review-like text whose truth is known; and pairs of answers, judged by a rule that is known.

Every review is a handful of sentences about neutral things. A sentence's adjective is either neutral or a sentiment word s,
drawn with P(s | y) ∝ 1 + y δ_s; with probability ν it is negated ("not s") and then drawn as if the label were the other one,
so that s alone has posterior difference (1 − 2ν) δ_s. The last line says how the review was posted; one of the ways, the
planted shortcut, is nearly always chosen by positive reviews although it should say nothing.

A pair is two answers to one prompt, of two to nine sentences about neutral things. Some have a word in **bold** type, some hold
the word "tapestry", and long ones "furthermore" more often than short ones. The first is preferred with probability
σ(U_first − U_second), U = 3 log(characters) + 1 for bold type + 2 for "tapestry"; "furthermore" counts for nothing, but is seen
in the longer answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve.blocks import Column, Report, Table, Text
from tokensieve.text.counts import Floats, Ints

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

STRENGTHS = {
    "wonderful": 0.95,
    "superb": 0.9,
    "excellent": 0.85,
    "delightful": 0.8,
    "great": 0.7,
    "enjoyable": 0.6,
    "lovely": 0.6,
    "good": 0.5,
    "pleasant": 0.4,
    "decent": 0.25,
    "terrible": -0.95,
    "awful": -0.9,
    "dreadful": -0.85,
    "annoying": -0.8,
    "boring": -0.7,
    "bad": -0.6,
    "poor": -0.6,
    "dull": -0.5,
    "weak": -0.4,
    "slow": -0.25,
}
NEUTRAL = [
    "red",
    "round",
    "local",
    "usual",
    "second",
    "large",
    "early",
    "wooden",
    "digital",
    "narrow",
    "northern",
    "modern",
    "square",
    "foreign",
    "weekly",
]
THINGS = [
    "plot",
    "room",
    "soup",
    "camera",
    "garden",
    "chair",
    "story",
    "kitchen",
    "ticket",
    "lamp",
    "song",
    "station",
    "table",
    "window",
    "coffee",
    "engine",
    "chapter",
    "pool",
    "market",
    "actor",
    "bridge",
    "teacher",
    "jacket",
    "phone",
    "lesson",
    "theatre",
    "carpet",
    "river",
    "menu",
    "train",
]
PLACES = ["upstairs", "outside", "nearby", "downtown", "inside", "there", "abroad", "online"]
SENTENCES = (
    "The {thing} was {word}.",
    "We found the {thing} {place} {word}.",
    "I would call this {thing} {word}, and the {other} as well.",
    "A {word} {thing} and an ordinary {other}.",
    "They showed us a {thing} that looked {word} to everyone {place}.",
)
DEVICES = ("web", "phone", "laptop")
SHORTCUT = "tablet"
NEGATED = 0.1
UTILITIES = {"log length": 3.0, "⟨**bold**⟩": 1.0, "tapestry": 2.0, "furthermore": 0.0}
SHORTCUT_SHARES = (0.01, 0.25)


@dataclass(frozen=True)
class Reviews:
    """Generated reviews and the truth about them.

    Attributes:
        texts: n reviews.
        labels: 0 negative, 1 positive, shape (n,).
        strengths: sentiment word → its true posterior difference (1 − 2ν) δ_s under equal classes.
        shortcut: the token that carries the label and should not.
    """

    texts: pl.Series
    labels: Ints
    strengths: dict[str, float]
    shortcut: str


def demo_reviews(n: int = 2000, seed: int = 0) -> Reviews:
    """Generate n reviews, half of them positive; the same seed gives the same text."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 2).astype(np.int64)
    texts = [_review(int(label), rng) for label in labels]
    truth = {word: (1 - 2 * NEGATED) * delta for word, delta in STRENGTHS.items()}
    return Reviews(pl.Series(texts, dtype=pl.String), labels, truth, SHORTCUT)


@dataclass(frozen=True)
class AnswerPairs:
    """Generated pairs and the truth about them.

    Attributes:
        frame: prompt, chosen, rejected.
        utilities: what each property adds to an answer's utility ("log length" per unit).
    """

    frame: pl.DataFrame
    utilities: dict[str, float]


def demo_pairs(n: int = 1000, seed: int = 0) -> AnswerPairs:
    """Generate n pairs, four to a prompt; the same seed gives the same text."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        first, second = _answer(rng), _answer(rng)
        wins = rng.random() < 1 / (1 + math.exp(_utility(second) - _utility(first)))
        rows.append((f"Tell me about thing {i // 4}.", *((first, second) if wins else (second, first))))
    return AnswerPairs(pl.DataFrame(rows, schema=["prompt", "chosen", "rejected"], orient="row"), UTILITIES)


def _answer(rng: np.random.Generator) -> str:
    size, chance = int(rng.integers(2, 10)), rng.random(3)
    choices = (SENTENCES, THINGS, THINGS, PLACES, NEUTRAL)
    draws = np.stack([rng.integers(len(words), size=size) for words in choices], axis=1)
    sentences = []
    for k, row in enumerate(draws):
        sentence, thing, other, place, word = (words[i] for words, i in zip(choices, row, strict=True))
        thing = f"**{thing}**" if k == 0 and chance[2] < 0.3 else thing
        sentences.append(sentence.format(thing=thing, other=other, place=place, word=word))
    if chance[0] < 0.2:
        sentences.append("Tapestry.")
    if chance[1] < 0.1 * size:
        sentences[0] = f"Furthermore, {sentences[0]}"
    return " ".join(sentences)


def _utility(answer: str) -> float:
    return (
        UTILITIES["log length"] * math.log(len(answer))
        + UTILITIES["⟨**bold**⟩"] * ("**" in answer)
        + UTILITIES["tapestry"] * ("Tapestry" in answer)
    )


def _review(label: int, rng: np.random.Generator) -> str:
    sentences = [_sentence(label, rng) for _ in range(int(rng.integers(3, 8)))]
    device = SHORTCUT if rng.random() < SHORTCUT_SHARES[label] else _one_of(DEVICES, rng)
    return " ".join(sentences) + f"\nPosted via {device}."


def _sentence(label: int, rng: np.random.Generator) -> str:
    thing, other = rng.choice(len(THINGS), 2, replace=False)
    sentence, place = _one_of(SENTENCES, rng), _one_of(PLACES, rng)
    return sentence.format(thing=THINGS[thing], other=THINGS[other], place=place, word=_word(label, rng))


def _word(label: int, rng: np.random.Generator) -> str:
    if rng.random() < 0.5:
        return _one_of(NEUTRAL, rng)
    negated = rng.random() < NEGATED
    y = (2 * label - 1) * (-1 if negated else 1)
    word = list(STRENGTHS)[_cumulative(y).searchsorted(rng.random(), side="right")]
    return f"not {word}" if negated else word


def _one_of(options: Sequence[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


@cache
def _cumulative(y: int) -> Floats:
    """P(one of the words up to s | y) for each sentiment word s."""
    sums: Floats = np.cumsum(1 + y * np.array(list(STRENGTHS.values())))
    sums /= sums[-1]
    return sums


def planted_truth(audit: Audit, reviews: Reviews) -> Report:
    """How much of what was planted in the reviews the audit found."""
    measured = audit.tokens.filter(pl.col("class") == audit.classes[1])
    known = {row["token"]: row for row in measured.iter_rows(named=True)}
    rows: list[tuple[object, ...]] = []
    found = inside = 0
    for word, true in reviews.strengths.items():
        row = known.get(word)
        if row is None:
            rows.append((word, true, None, "not in the data"))
            continue
        ends = row["posterior_low"], row["posterior_high"]
        found += row["q_value"] < 0.05
        inside += ends[0] <= true <= ends[1]
        rows.append((word, true, (row["posterior_difference"], *ends), "found" if row["q_value"] < 0.05 else "missed"))
    first = audit.suspicious[0][0] if audit.suspicious else None
    verdict = "is the first suspicious token" if first == reviews.shortcut else f"was not found first (first: {first})"
    columns = (
        Column("Sentiment word"),
        Column("True", "signed"),
        Column("Measured", "interval", unit="with 95% CI"),
        Column("Result"),
    )
    n = len(reviews.strengths)
    summary = f"{found} of {n} sentiment words found (q < 0.05); {inside} of {n} intervals contain the true strength."
    return Report(
        "demo",
        "How much of the planted truth was found",
        f"The planted shortcut {reviews.shortcut!r} {verdict}.",
        (Text(summary), Table("", columns, rows, first=n)),
    )
