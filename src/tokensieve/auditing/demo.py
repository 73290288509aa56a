"""Built-in data with a known truth: reviews, and pairs of answers judged by a known rule.

A review is a few sentences about neutral things of one of two topics. The adjective of a sentence
is neutral or a sentiment word s of the topic, drawn with P(s | y) ∝ 1 + y δ_s. The strengths of a
topic sum to 0, so δ_s is exact, and words of a topic keep company, as they do in real reviews. With
probability ν the word is negated ("not s") and drawn as if the label were the other one, so s alone
has posterior difference (1 − 2ν) δ_s. The last line says how the review was posted; nearly all
reviews that were posted in one of the ways are positive: the planted shortcut.

A pair is two answers to one prompt, of two to nine neutral sentences each. Some have a word in
**bold** type, some contain "tapestry", and long ones contain "furthermore" more often. The first is
preferred with probability σ(U_first − U_second), U = 3 log(characters) + 1 for bold type + 2 for
"tapestry"; "furthermore" itself has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve import wording
from tokensieve.arrays import Ints
from tokensieve.report.blocks import Column, Report, Table, Text

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

_POSITIVE = (
    "wonderful superb excellent delightful great enjoyable lovely good pleasant decent".split()
)
_NEGATIVE = "terrible awful dreadful annoying boring bad poor dull weak slow".split()
STRENGTHS = dict(zip(_POSITIVE, (0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4, 0.25), strict=True))
STRENGTHS |= dict(
    zip(_NEGATIVE, (-0.95, -0.9, -0.85, -0.8, -0.7, -0.6, -0.6, -0.5, -0.4, -0.25), strict=True)
)
NEUTRAL = (
    "red round local usual second large early wooden digital narrow northern modern square foreign "
    "weekly"
).split()
THINGS = (
    "plot room soup camera garden chair story kitchen ticket lamp song station table window coffee "
    "engine chapter pool market actor bridge teacher jacket phone lesson theatre carpet river menu "
    "train"
).split()
PLACES = "upstairs outside nearby downtown inside there abroad online".split()
SENTENCES = (
    "The {thing} was {word}.",
    "We found the {thing} {place} {word}.",
    "I would call this {thing} {word}, and the {other} as well.",
    "A {word} {thing} and an ordinary {other}.",
    "They showed us a {thing} that looked {word} to everyone {place}.",
)
DEVICES = ("web", "phone", "laptop")
SHORTCUT, SHORTCUT_SHARES = "tablet", (0.01, 0.25)  # of negative and of positive reviews
NEGATED = 0.1
N_TOPICS = 2  # of reviews; each has its own things and sentiment words
UTILITIES = {"log length": 3.0, "⟨**bold**⟩": 1.0, "tapestry": 2.0, "furthermore": 0.0}


@dataclass(frozen=True)
class Reviews:
    """Generated reviews and the truth about them."""

    texts: pl.Series  # n reviews
    labels: Ints  # 0 negative, 1 positive, shape (n,)
    strengths: dict[
        str, float
    ]  # sentiment word → its true posterior difference (1 − 2ν) δ_s under equal classes
    shortcut: str  # the token that carries the label and should not

    def found_by(self, audit: Audit) -> Report:
        """How many of the effects planted in these reviews the audit found."""
        measured = audit.tokens.filter(pl.col("class") == audit.classes[1])
        known = {row["token"]: row for row in measured.iter_rows(named=True)}
        rows: list[tuple[object, ...]] = []
        found = inside = 0
        for word, true in self.strengths.items():
            row = known.get(word)
            if row is None:
                rows.append((word, true, None, "not in the data"))
                continue
            ends = row["posterior_low"], row["posterior_high"]
            predicts, covered = row["q_value"] < 0.05, ends[0] <= true <= ends[1]
            found, inside = found + predicts, inside + covered
            missed = (
                f"missed after correction for multiple tests (q = {wording.chance(row['q_value'])})"
            )
            said = ("found" if predicts else missed) + "; outside the interval" * (not covered)
            rows.append((word, true, (row["posterior_difference"], *ends), said))
        first = next((finding.maskable[0] for finding in audit.findings if finding.maskable), None)
        verdict = f"is not the first suspicious token; “{first}” is" if first else "was not found"
        verdict = "is the first suspicious token" if first == self.shortcut else verdict
        measured_column, n = Column("Measured", "interval", unit="with 95% CI"), len(self.strengths)
        columns = (
            Column("Sentiment word"),
            Column("True", "signed"),
            measured_column,
            Column("Result"),
        )
        summary = (
            f"{found} of {n} sentiment words were found (q < 0.05 after correcting for multiple "
            f"testing). {inside} of {n} intervals contain the true strength."
        )
        blocks = (Text(summary), Table("", columns, rows, first=n))
        title = "How well the planted effects were recovered"
        return Report("demo", title, f"The planted shortcut {self.shortcut!r} {verdict}.", blocks)


def demo_reviews(n: int = 2000, seed: int = 0) -> Reviews:
    """Generate n reviews, half of them positive; the same seed gives the same text."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 2).astype(np.int64)
    words_of_topic = [list(STRENGTHS)[topic::N_TOPICS] for topic in range(N_TOPICS)]
    things_of_topic = [THINGS[topic::N_TOPICS] for topic in range(N_TOPICS)]

    def sentiment_word(topic: int, y: int) -> str:
        words = words_of_topic[topic]
        chances = np.array([1 + y * STRENGTHS[word] for word in words])
        return words[int(rng.choice(len(words), p=chances / chances.sum()))]

    def one_of(options: Sequence[str]) -> str:
        return options[int(rng.integers(len(options)))]

    texts = []
    for label in labels.tolist():
        topic = int(rng.integers(N_TOPICS))
        things = things_of_topic[topic]
        sentences = []
        for _ in range(int(rng.integers(3, 8))):
            thing, other = rng.choice(len(things), 2, replace=False)
            sentence = one_of(SENTENCES)
            place = one_of(PLACES)
            if rng.random() < 0.5:
                word = one_of(NEUTRAL)
            else:
                negated = rng.random() < NEGATED
                word = sentiment_word(topic, 2 * (label != negated) - 1)
                if negated:
                    word = f"not {word}"
            sentences.append(
                sentence.format(thing=things[thing], other=things[other], place=place, word=word)
            )
        device = SHORTCUT if rng.random() < SHORTCUT_SHARES[label] else one_of(DEVICES)
        texts.append(" ".join(sentences) + f"\nPosted via {device}.")
    truth = {word: (1 - 2 * NEGATED) * delta for word, delta in STRENGTHS.items()}
    return Reviews(pl.Series(texts, dtype=pl.String), labels, truth, SHORTCUT)


def demo_pairs(n: int = 1000, seed: int = 0) -> pl.DataFrame:
    """Generate n pairs (prompt, chosen, rejected), four to a prompt; the same seed gives the same
    text."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        first, second = _answer(rng), _answer(rng)
        wins = rng.random() < 1 / (1 + math.exp(_utility(second) - _utility(first)))
        rows.append(
            (f"Tell me about thing {i // 4}.", *((first, second) if wins else (second, first)))
        )
    return pl.DataFrame(rows, schema=["prompt", "chosen", "rejected"], orient="row")


def _answer(rng: np.random.Generator) -> str:
    size, chance = int(rng.integers(2, 10)), rng.random(3)
    choices = (SENTENCES, THINGS, THINGS, PLACES, NEUTRAL)
    draws = np.stack([rng.integers(len(words), size=size) for words in choices], axis=1)
    sentences = []
    for k, row in enumerate(draws):
        sentence, thing, other, place, word = (
            words[i] for words, i in zip(choices, row, strict=True)
        )
        thing = f"**{thing}**" if k == 0 and chance[2] < 0.3 else thing
        sentences.append(sentence.format(thing=thing, other=other, place=place, word=word))
    if chance[0] < 0.2:
        sentences.append("Tapestry.")
    if chance[1] < 0.1 * size:
        sentences[0] = f"Furthermore, {sentences[0]}"
    return " ".join(sentences)


def _utility(answer: str) -> float:
    there = {
        "log length": math.log(len(answer)),
        "⟨**bold**⟩": "**" in answer,
        "tapestry": "Tapestry" in answer,
    }
    return sum(UTILITIES[name] * value for name, value in there.items())
