"""Texts whose truth is known, and what a verdict is: shared by the trials of `verdicts.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from machine import DATA
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.settings import Settings

GENERATED = "generated"
N_GENERATED_DOCUMENTS = 400
N_CLASSES_OF_BANKING = 10  # of 77: a sample of all has too few documents of each


@dataclass(frozen=True)
class RealSet:
    """One of the sets of real texts.

    Attributes:
        file: in the folder of the data.
        text, label: its columns.
        n_documents: of a sample; fewer of long texts.
        max_others: further documents, on which a change is seen within about a point.
        n_classes: as many are drawn at random; 0 for all.
    """

    file: str
    text: str = "text"
    label: str = "label"
    n_documents: int = 400
    max_others: int = 2000
    n_classes: int = 0


REAL_SETS = {
    "emotion": RealSet("emotion"),
    "yelp": RealSet("yelp", label="stars"),
    "snli": RealSet("snli_train", text="hypothesis"),
    "banking": RealSet("banking", n_classes=N_CLASSES_OF_BANKING),
    "imdb": RealSet("imdb_train", n_documents=300, max_others=1000),
    "tweets": RealSet("tweets"),
    "sms": RealSet("sms"),
}


@dataclass(frozen=True)
class Documents:
    """Texts with labels, from one set."""

    set_name: str
    texts: list[str]
    labels: list[str]

    @property
    def pair(self) -> tuple[list[str], list[str]]:
        """As `audit` takes them."""
        return self.texts, self.labels


@dataclass(frozen=True)
class Outcome:
    """How many sentences were said in one trial, and how many of them were false."""

    said: int
    false: int


Trial = Callable[[Documents, int], Outcome]


@dataclass(frozen=True)
class Verdict:
    """A sentence, how it is put to the test, and what is counted.

    Attributes:
        sentence: as a page says it.
        truth: how the data is made, and what makes the sentence false.
        counted: what one count is.
        trial: makes the data from documents and a seed, and judges the sentences.
        on_real_sets: whether documents of the real sets are drawn for it.
        n_generated: draws of generated data beside those.
    """

    sentence: str
    truth: str
    counted: str
    trial: Trial
    on_real_sets: bool = True
    n_generated: int = 0

    @property
    def name(self) -> str:
        """Of its trial."""
        return self.trial.__name__


def load(name: str, seed: int) -> Documents:
    """A sample of one of the real sets."""
    source = REAL_SETS[name]
    frame = _frame(source)
    if source.n_classes:
        names = frame["label"].unique().sort().sample(source.n_classes, seed=seed)
        frame = frame.filter(pl.col("label").is_in(names.to_list()))
    sample = frame.sample(source.n_documents, seed=seed)
    return Documents(name, sample["text"].to_list(), sample["label"].to_list())


def _frame(source: RealSet) -> pl.DataFrame:
    frame = pl.read_parquet(DATA / f"{source.file}.parquet").select(
        text=pl.col(source.text), label=pl.col(source.label).cast(pl.String)
    )
    is_labelled = frame["label"].is_in(["", "-"]).not_()  # SNLI has "-" where people disagreed
    return frame.filter(is_labelled).drop_nulls().unique("text", maintain_order=True)


def generated(seed: int, n: int = N_GENERATED_DOCUMENTS) -> Documents:
    """Generated reviews without the shortcut that the demo plants."""
    made = demo_reviews(n, seed)
    texts = [text.partition("\n")[0] for text in made.texts]
    return Documents(GENERATED, texts, ["good" if label else "bad" for label in made.labels])


def others(documents: Documents, seed: int) -> Documents:
    """Documents of the same set and classes that are not among these."""
    if documents.set_name == GENERATED:
        return generated(100_000 + seed, 3000)
    source = REAL_SETS[documents.set_name]
    frame = _frame(source).filter(
        pl.col("label").is_in(sorted(set(documents.labels)))
        & ~pl.col("text").is_in(documents.texts)
    )
    frame = frame.sample(min(source.max_others, frame.height), seed=seed)
    return Documents(documents.set_name, frame["text"].to_list(), frame["label"].to_list())


def shuffled(documents: Documents, seed: int) -> Documents:
    """The texts with the labels of others: nothing predicts them."""
    labels = np.random.default_rng(seed).permutation(documents.labels).tolist()
    return Documents(documents.set_name, documents.texts, labels)


def insert(text: str, words: str, rng: np.random.Generator) -> str:
    """Words at a random place."""
    parts = text.split(" ")
    place = int(rng.integers(len(parts) + 1))
    return " ".join([*parts[:place], words, *parts[place:]])


def quick(seed: int) -> Settings:
    """An audit without what these trials do not ask for."""
    return Settings(baseline=False, thorough=False, seed=seed)
