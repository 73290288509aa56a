"""Audits for tests of pages: of any tokens and classes, made of random numbers; and of generated
reviews."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.escape import for_display
from tokensieve.evidence.intervals import Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.model.attention import Model
from tokensieve.read.reader import read_corpus
from tokensieve.report.blocks import Passage
from tokensieve.report.pictures.tokens import CATEGORIES
from tokensieve.task.agreement import QUADRANTS
from tokensieve.task.refitted import RefitComparison
from tokensieve.task.tasks import CorpusModel, Labels
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import CountedCorpus, TokenStream, Vocabulary


def token_rows(
    names: list[str], label: str, quadrants: list[str], rng: np.random.Generator
) -> pl.DataFrame:
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


def passage(names: list[str], predicted: str, label: str, repeats: int = 1) -> Passage:
    pieces = [
        (name, c) for name, c in zip(names, np.linspace(-1, 2, len(names)).tolist(), strict=True)
    ]
    spaced = tuple(piece for pair in ((p, (" ", 0.0)) for p in pieces) for piece in pair) * repeats
    return Passage(
        spaced,
        for_display(label, 30),
        7,
        f"predicted {for_display(predicted, 30)} with probability 75.0%",
        "bad",
    )


def made_model(names: list[str], classes: tuple[str, ...], tokens: pl.DataFrame) -> Model:
    """A model with the scores and values of the table."""
    vocabulary = Vocabulary(tuple(names), (), WordTokenizer())
    values = tokens["value"].to_numpy().reshape(len(classes), len(names)).T
    values = np.ascontiguousarray(values[:, 1:] if len(classes) == 2 else values)
    scores = tokens["score"].to_numpy()[: len(names)]
    return Model(
        np.asarray(classes),
        scores,
        values,
        np.zeros(values.shape[1]),
        vocabulary.tokens,
        vocabulary,
    )


def made_finding(names: list[str], classes: tuple[str, ...]) -> Finding:
    """A shortcut of the first three names, with two lines of text."""
    lines = tuple(
        Excerpt(i + 1, classes[0], f"before {names[i]} ", names[i], f" after {names[i]}")
        for i in range(2)
    )
    evidence = {
        name: Share.count(n, 1200)
        for name, n in (("documents", 90), ("decides", 1100), ("class", 300))
    }
    label = classes[0]
    about = {
        "title": "Shortcut",
        "headline": f"“{names[0][:40]}” appears in 7.5% of documents",
        "action": "Mask it.",
    }
    return Finding(
        "shortcut",
        0.06,
        label,
        tuple(names[:3]),
        ("number",),
        evidence,
        90,
        examples=lines,
        **about,
    )


def make_audit(
    names: list[str], classes: tuple[str, ...], examples: int = 2, repeats: int = 1
) -> Audit:
    rng = np.random.default_rng(0)
    quadrants = rng.choice(list(QUADRANTS), len(names)).tolist()
    tokens = pl.concat([token_rows(names, label, quadrants, rng) for label in classes])
    heads = 1 if len(classes) == 2 else len(classes)
    texts = [" ".join(names[i : i + 5])[:2000] for i in range(0, min(len(names), 40), 5)]
    model = made_model(names, classes, tokens)
    found = Audit(
        learned=made_learned(model, names, classes, texts, heads),
        settings=Settings(ngrams=2, min_documents=5, seed=3),
        tokens=tokens,
        attention_share=dict(
            zip(
                QUADRANTS, [(0.3, 0.1), (0.1, 0.3), (0.3, 0.2), (0.2, 0.3), (0.1, 0.1)], strict=True
            )
        ),
        findings=(made_finding(names, classes),),
        without_shortcuts=RefitComparison(
            all_types=Share.count(325, 400),
            some_types=Share.count(300, 400),
            difference=PairedDifference.of_counts(400, 325, 30, 5),
            concerned=PairedDifference.of_counts(60, 55, 30, 5),
            types=np.arange(len(names)),
            refitted=model,
        ),
        neutral=dict.fromkeys(classes, 0.0),
        baseline=PairedDifference.of_counts(400, 323, 12, 14),
        seconds={"reading": 0.5, "total": 2.25},
    )
    return changed(
        found,
        examples=[passage(names[:50], classes[-1], classes[0], repeats) for _ in range(examples)],
        class_documents={label: 1000 - i for i, label in enumerate(classes)},
        class_recall={},
        accuracy=Share.count(325, 400),
        test_accuracy=0.8125,
        majority_accuracy=0.55,
        suspicious=[(names[0], classes[0], f"is in 31 documents, all {classes[0]}")],
        version="0.1.0",
        card=None,
    )


def changed(audit: Audit, **values: Any) -> Audit:
    """The audit with other fields, or with other values of its properties."""
    own = {field.name for field in fields(audit)}
    made = replace(audit, **{name: value for name, value in values.items() if name in own})
    others = {name: value for name, value in values.items() if name not in own}
    object.__setattr__(made, "__class__", type("Audit", (type(audit),), others))
    return made


def made_learned(
    model: Model, names: list[str], classes: tuple[str, ...], texts: list[str], heads: int
) -> CorpusModel:
    """Documents of no words, 1,200 for training and 400 for testing."""
    parts = []
    for n in (1200, 400):
        labels = np.arange(n, dtype=np.int64) % len(classes)
        made = [texts[i] if i < len(texts) else "x" for i in range(n)]
        corpus = read_corpus(
            pl.DataFrame({"text": made, "label": [str(i) for i in labels]}),
            text="text",
            label="label",
        )
        corpus = replace(corpus, classes=classes, name="reviews.csv")
        matrix = sp.csr_array((n, len(names)), dtype=np.float64)
        assert model.vocabulary is not None
        words = TokenStream(np.zeros(n, np.int32), np.arange(n + 1), ["x"])
        parts.append(
            CountedCorpus(matrix, model.vocabulary, np.zeros(n, dtype=np.int64), words, corpus)
        )
    notes = ["12 duplicate documents were kept once"]
    return CorpusModel(
        model, parts[0], parts[1], np.zeros((400, heads)), notes, Settings(), Labels()
    )


def reviews(n: int = 1000, seed: int = 0, ngrams: int = 2) -> Audit:
    made = demo_reviews(n, seed)
    corpus = read_corpus(
        (made.texts.to_list(), ["negative" if y == 0 else "positive" for y in made.labels])
    )
    return audit(replace(corpus, name="reviews"), Settings(ngrams=ngrams, baseline=False))
