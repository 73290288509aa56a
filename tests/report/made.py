"""Audits for tests of pages: of any tokens and classes, made of random numbers; and of generated reviews."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from tokensieve.auditing.agreement import QUADRANTS
from tokensieve.auditing.context import Passage
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.documents import Example, Kind, Sampled
from tokensieve.auditing.findings import Finding, FindingKind
from tokensieve.auditing.result import Audit, Settings
from tokensieve.auditing.run import audit
from tokensieve.evidence.shares import Share
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.report.charts import CATEGORIES
from tokensieve.text.corpus import read_corpus
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import Vocabulary


def token_rows(names: list[str], label: str, quadrants: list[str], rng: np.random.Generator) -> pl.DataFrame:
    n = len(names)
    count = rng.integers(5, 5000, n)
    difference = rng.integers(-count, count + 1)
    x = difference / count
    effect = x * rng.exponential(1e-3, n)
    return pl.DataFrame(
        {
            "token": names,
            "class": [label] * n,
            "documents": count,
            "count": count.astype(float),
            "class_documents": (count + difference) // 2,
            "count_difference": difference.astype(float),
            "posterior_difference": x,
            "alpha": 1.1 * effect,
            "alpha_low": 1.1 * effect - 1e-4,
            "alpha_high": 1.1 * effect + 1e-4,
            "posterior_low": x - 0.1,
            "posterior_high": x + 0.05,
            "effect": effect,
            "effect_low": effect - 1e-4,
            "effect_high": effect + 1e-4,
            "p_value": rng.uniform(0, 0.2, n),
            "q_value": rng.uniform(0, 0.2, n),
            "category": rng.choice(list(CATEGORIES), n),
            "score": np.abs(x) + rng.normal(0, 0.1, n),
            "value": 3 * x + rng.normal(0, 0.1, n),
            "attention": rng.uniform(0, 2, n),
            "quadrant": quadrants,
        }
    )


def explanation(names: list[str], predicted: str, label: str, repeats: int = 1) -> Example:
    contribution = np.linspace(-1, 2, len(names))
    table = {"token": names, "count": [1] * len(names), "attention": [1 / len(names)] * len(names)}
    table |= {"value": contribution * len(names), "contribution": contribution}
    pieces = [(name, c, 1 / len(names), c * len(names)) for name, c in zip(names, contribution.tolist(), strict=True)]
    spaced = [piece for pair in ((p, (" ", 0.0, 0.0, 0.0)) for p in pieces) for piece in pair] * repeats
    answer = float(contribution.sum())
    return Example(Kind.WRONG_CERTAIN, 7, label, predicted, 0.75, answer, spaced, pl.DataFrame(table))


def made_model(names: list[str], classes: tuple[str, ...], tokens: pl.DataFrame) -> AttentionClassifier:
    """A model with the scores and values of the table."""
    model = AttentionClassifier()
    model.classes_ = np.asarray(classes)
    model.vocabulary_ = Vocabulary(tuple(names), (), WordTokenizer())
    model.scores_ = tokens["score"].to_numpy()[: len(names)]
    values = tokens["value"].to_numpy().reshape(len(classes), len(names)).T
    model.values_ = np.ascontiguousarray(values[:, 1:] if len(classes) == 2 else values)
    model.prior_ = np.zeros(model.values_.shape[1])
    return model


def made_finding(names: list[str], classes: tuple[str, ...]) -> Finding:
    """A shortcut of the first three names, with two lines of text."""
    lines = tuple(Passage(i + 1, classes[0], f"before {names[i]} ", names[i], f" after {names[i]}") for i in range(2))
    evidence = {name: Share.count(n, 1200) for name, n in (("documents", 90), ("decides", 1100), ("class", 300))}
    label = classes[0]
    return Finding(FindingKind.SHORTCUT, 0.06, label, tuple(names[:3]), ("number",), evidence, 90, examples=lines)


def make_audit(names: list[str], classes: tuple[str, ...], examples: int = 2, repeats: int = 1) -> Audit:
    rng = np.random.default_rng(0)
    quadrants = rng.choice(list(QUADRANTS), len(names)).tolist()
    tokens = pl.concat([token_rows(names, label, quadrants, rng) for label in classes])
    heads = 1 if len(classes) == 2 else len(classes)
    texts = [" ".join(names[i : i + 5])[:2000] for i in range(0, min(len(names), 40), 5)]
    return Audit(
        name="reviews.csv",
        classes=classes,
        tokens=tokens,
        class_recall={},
        attention_share=dict(zip(QUADRANTS, [(0.3, 0.1), (0.1, 0.3), (0.3, 0.2), (0.2, 0.3), (0.1, 0.1)], strict=True)),
        findings=(made_finding(names, classes),),
        honest_accuracy=(Share.count(325, 400), Share.count(300, 400)),
        token_types=len(names),
        class_documents={label: 1000 - i for i, label in enumerate(classes)},
        neutral=dict.fromkeys(classes, 0.0),
        examples=[explanation(names[:50], classes[-1], classes[0], repeats) for _ in range(examples)],
        suspicious=[(names[0], classes[0], f"stands in 31 documents, all {classes[0]}")],
        version="0.1.0",
        seed=3,
        settings={"ngrams": 2, "min_documents": 5},
        documents={"train": 1200, "test": 400},
        accuracy=Share.count(325, 400),
        test_accuracy=0.8125,
        majority_accuracy=0.55,
        baseline_accuracy=0.8075,
        unknown_share=0.034,
        seconds={"reading": 0.5, "total": 2.25},
        notes=["12 duplicate documents were kept once"],
        model=made_model(names, classes, tokens),
        sample=[Sampled(i + 1, 0, Kind.WRONG_CERTAIN, text, np.zeros(heads), 1.0) for i, text in enumerate(texts)],
    )


def reviews(n: int = 1000, seed: int = 0, ngrams: int = 2) -> Audit:
    made = demo_reviews(n, seed)
    corpus = read_corpus((made.texts.to_list(), ["negative" if y == 0 else "positive" for y in made.labels]))
    return audit(replace(corpus, name="reviews"), Settings(ngrams=ngrams, baseline=False))
