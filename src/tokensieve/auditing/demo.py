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
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve import wording
from tokensieve.arrays import Ints
from tokensieve.evidence.intervals import LEVEL
from tokensieve.report.blocks import Column, Report, Table, Text

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

# The true effects. They run from nearly certain to weak, and those of a topic sum to 0.
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
SHORTCUT = "tablet"
SHORTCUT_SHARES = (0.01, 0.25)  # of negative and of positive reviews
# Fractions of answers with a planted feature: frequent enough to be found in a few hundred pairs.
TAPESTRY_SHARE = 0.2  # end in "Tapestry.", which the judge likes (`UTILITIES`)
BOLD_SHARE = 0.3  # have a word in bold
# Per sentence, begin with "Furthermore": the judge ignores it, it wins because long answers do.
FURTHERMORE_PER_SENTENCE = 0.1
NEGATED = 0.1  # ν
N_TOPICS = 2  # of reviews; each has its own things and sentiment words
# of an answer; see above
UTILITIES = {"log length": 3.0, "⟨**bold**⟩": 1.0, "tapestry": 2.0, "furthermore": 0.0}


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

    def found_by(self, audit: Audit) -> Report:
        """Report which of the effects planted in these reviews the audit found."""
        effects = self._effects(audit)
        n = len(effects)
        n_found = sum(effect.is_found for effect in effects)
        n_covered = sum(effect.is_covered for effect in effects)
        summary = (
            f"{n_found} of {n} sentiment words were found (q < {LEVEL} after correcting for "
            f"multiple testing). {n_covered} of {n} intervals contain the true strength."
        )
        columns = (
            Column("Sentiment word"),
            Column("True", "signed"),
            Column("Measured", "interval", unit="with 95% CI"),
            Column("Result"),
        )
        table = Table("", columns, [effect.cells() for effect in effects], n_shown=n)
        verdict = f"The planted shortcut {self.shortcut!r} {self._rank_of_shortcut(audit)}."
        title = "How well the planted effects were recovered"
        return Report("demo", title, verdict, (Text(summary), table))

    def _effects(self, audit: Audit) -> list[_Effect]:
        """The planted words with the rows that measure them."""
        measured = audit.tokens.filter(pl.col("class") == audit.classes[1])
        row_of_token = {row["token"]: row for row in measured.iter_rows(named=True)}
        return [
            _Effect(word, strength, row_of_token.get(word))
            for word, strength in self.strengths.items()
        ]

    def _rank_of_shortcut(self, audit: Audit) -> str:
        suspicious = (finding.maskable[0] for finding in audit.findings if finding.maskable)
        first = next(suspicious, None)
        if first is None:
            return "was not found"
        if first == self.shortcut:
            return "is the first suspicious token"
        return f"is not the first suspicious token; “{first}” is"


@dataclass(frozen=True)
class _Effect:
    """A planted effect, and the row of the table of tokens that measures it; None without one."""

    word: str
    strength: float
    row: dict[str, Any] | None

    @property
    def is_found(self) -> bool:
        return self.row is not None and self.row["q_value"] < LEVEL

    @property
    def is_covered(self) -> bool:
        """Whether the interval contains the true strength."""
        if self.row is None:
            return False
        return bool(self.row["posterior_low"] <= self.strength <= self.row["posterior_high"])

    def cells(self) -> tuple[object, ...]:
        """The row of the report."""
        row = self.row
        if row is None:
            return (self.word, self.strength, None, "not in the data")
        measured = (row["posterior_difference"], row["posterior_low"], row["posterior_high"])
        result = "found"
        if not self.is_found:
            q = wording.chance(row["q_value"])
            result = f"missed after correction for multiple tests (q = {q})"
        if not self.is_covered:
            result += "; outside the interval"
        return (self.word, self.strength, measured, result)


def demo_reviews(n: int = 2000, seed: int = 0) -> Reviews:
    """Generate n reviews, half of them positive; the same seed gives the same text."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 2).astype(np.int64)
    texts = []
    for label in labels.tolist():
        topic = int(rng.integers(N_TOPICS))
        n_sentences = int(rng.integers(3, 8))
        sentences = [_sentence(rng, topic, label) for _ in range(n_sentences)]
        has_shortcut = rng.random() < SHORTCUT_SHARES[label]
        device = SHORTCUT if has_shortcut else _drawn(rng, DEVICES)
        texts.append(" ".join(sentences) + f"\nPosted via {device}.")
    truth = {word: (1 - 2 * NEGATED) * delta for word, delta in STRENGTHS.items()}
    return Reviews(pl.Series(texts, dtype=pl.String), labels, truth, SHORTCUT)


def _sentence(rng: np.random.Generator, topic: int, label: int) -> str:
    """A sentence of a review; in half of them the adjective tells the sentiment."""
    topic_things = THINGS[topic::N_TOPICS]
    subject, second_subject = rng.choice(len(topic_things), 2, replace=False)
    sentence = _drawn(rng, SENTENCES)
    place = _drawn(rng, PLACES)
    if rng.random() < 0.5:
        word = _drawn(rng, NEUTRAL)
    else:
        is_negated = rng.random() < NEGATED
        word = _sentiment_word(rng, topic, 2 * (label != is_negated) - 1)
        if is_negated:
            word = f"not {word}"
    return sentence.format(
        thing=topic_things[subject], other=topic_things[second_subject], place=place, word=word
    )


def _sentiment_word(rng: np.random.Generator, topic: int, y: int) -> str:
    """Draw a word of a topic for the sentiment y = ±1, each with chance ∝ 1 + y δ."""
    words = list(STRENGTHS)[topic::N_TOPICS]
    chances = np.array([1 + y * STRENGTHS[word] for word in words])
    return words[int(rng.choice(len(words), p=chances / chances.sum()))]


def _drawn(rng: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(rng.integers(len(options)))]


def demo_pairs(n: int = 1000, seed: int = 0) -> pl.DataFrame:
    """Generate n pairs (prompt, chosen, rejected), four to a prompt; the same seed gives the same
    text."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        first = _answer(rng)
        second = _answer(rng)
        chance_of_first = 1 / (1 + math.exp(_utility(second) - _utility(first)))
        is_first_chosen = rng.random() < chance_of_first
        answers = (first, second) if is_first_chosen else (second, first)
        rows.append((f"Tell me about thing {i // 4}.", *answers))
    return pl.DataFrame(rows, schema=["prompt", "chosen", "rejected"], orient="row")


def _answer(rng: np.random.Generator) -> str:
    """An answer of two to nine sentences, with planted features that judges may reward."""
    size = int(rng.integers(2, 10))
    chances = (TAPESTRY_SHARE, FURTHERMORE_PER_SENTENCE * size, BOLD_SHARE)
    has_tapestry, has_furthermore, has_bold = rng.random(3) < chances
    sentences = _filled_sentences(rng, size, has_bold)
    if has_tapestry:
        sentences.append("Tapestry.")
    if has_furthermore:
        sentences[0] = f"Furthermore, {sentences[0]}"
    return " ".join(sentences)


def _filled_sentences(rng: np.random.Generator, size: int, has_bold: bool) -> list[str]:
    """Sentences with random words in their blanks; the first word in bold, if asked for."""
    choices = (SENTENCES, THINGS, THINGS, PLACES, NEUTRAL)
    draws = np.stack([rng.integers(len(words), size=size) for words in choices], axis=1)
    sentences: list[str] = []
    for row in draws:
        sentence, *blanks = [words[i] for words, i in zip(choices, row, strict=True)]
        if has_bold and not sentences:
            blanks[0] = f"**{blanks[0]}**"
        filled = dict(zip(("thing", "other", "place", "word"), blanks, strict=True))
        sentences.append(sentence.format(**filled))
    return sentences


def _utility(answer: str) -> float:
    features = {
        "log length": math.log(len(answer)),
        "⟨**bold**⟩": "**" in answer,
        "tapestry": "Tapestry" in answer,
    }
    return sum(UTILITIES[name] * value for name, value in features.items())
