"""Texts of the data sets that `planted.py` trains models on, and the marks that it puts into them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

CLASSES = {
    "emotion": ("anger", "joy"),
    "tweets": ("neither", "offensive"),
    "sms": ("ham", "spam"),
    "imdb": ("negative", "positive"),
    "yelp": ("1.0", "5.0"),
    "snli": ("entailment", "contradiction"),
}
FILES = {"imdb": "imdb_train", "snli": "snli_train"}
COLUMN = {"stars": "label", "hypothesis": "text"}  # what stands for label and text
MARKS = {
    "rare": "zephyr",
    "frequent": "zephyr",
    "two words": "zephyr quartz",
    "punctuation": ":: ::",
}
SHARES = {"rare": 0.04}  # of documents that contain the mark; 0.35 for the others
TRAIN, HELD, FRESH, CHARACTERS = 1000, 500, 200, 160
LONGER = " Later on there were some more of them, and after a while the others went back to the place as well."


def texts_of(source: str, seed: int, data: Path) -> tuple[list[str], Any]:
    """TRAIN + HELD + FRESH texts of two equally frequent classes, drawn without repetition, and their labels 0, 1."""
    table = pl.read_parquet(data / f"{FILES.get(source, source)}.parquet").rename(
        COLUMN, strict=False
    )
    table = table.with_columns(pl.col("label").cast(pl.String)).unique("text", maintain_order=True)
    half = (TRAIN + HELD + FRESH) // 2
    sides = [table.filter(pl.col("label") == name) for name in CLASSES[source]]
    n = min(half, *(side.height for side in sides))
    drawn = pl.concat(
        [side.sample(n, seed=seed).with_columns(y=pl.lit(k)) for k, side in enumerate(sides)]
    )
    drawn = drawn.sample(fraction=1.0, seed=seed, shuffle=True)
    return [text[:CHARACTERS] for text in drawn["text"]], drawn["y"].cast(
        pl.Int64
    ).to_numpy().copy()


def planter(kind: str, rng: Any) -> Callable[[str], str]:
    """What gives one text the mark or the form of a kind."""
    mark = kind.rpartition(" ")[0]
    if mark == "capitals":
        return str.upper
    if mark == "length":
        return lambda text: text + LONGER

    return lambda text: inserted(text, MARKS[mark], rng)


def inserted(text: str, mark: str, rng: Any, part: float = 0.5) -> str:
    """A text with a mark in its first half, or in another part."""
    words = text.split(" ")
    words.insert(int(rng.integers(int(part * len(words)) + 1)), mark)
    return " ".join(words)


def plant(texts: list[str], labels: Any, kind: str, rng: Any, predictive: bool) -> list[str]:
    """Give the mark to documents of class 1 alone if it is to be predictive, else to any."""
    if kind == "clean":
        return texts
    share, change = SHARES.get(kind.rpartition(" ")[0], 0.35), planter(kind, rng)
    marked = rng.random(len(texts)) < (
        np.where(labels == 1, 2 * share, 0.0) if predictive else share
    )
    return [change(text) if there else text for text, there in zip(texts, marked, strict=True)]


def rest_of(source: str, seed: int, data: Path) -> list[str]:
    """Texts that no model of this seed has seen, as many of either class, 2,000 at most, in a third of which the mark was put."""
    table = pl.read_parquet(data / f"{FILES.get(source, source)}.parquet").rename(
        COLUMN, strict=False
    )
    table = table.with_columns(pl.col("label").cast(pl.String)).unique("text", maintain_order=True)
    seen, rng = set(texts_of(source, seed, data)[0]), np.random.default_rng([seed, 1])
    table = table.filter(~pl.col("text").str.head(CHARACTERS).is_in(list(seen))).sample(
        fraction=1.0, shuffle=True, seed=seed
    )
    sides = [table.filter(pl.col("label") == name)["text"].to_list() for name in CLASSES[source]]
    unread = [text[:CHARACTERS] for side in sides for text in side[: min(2000, *map(len, sides))]]
    return plant(unread, np.zeros(len(unread)), "frequent random", rng, False)


def several(source: str, classes: int, seed: int, data: Path) -> tuple[list[str], Any, list[str]]:
    """Up to 8,000 texts of two or four classes as they come, their labels 0, 1, … and the names of these."""
    table = pl.read_parquet(data / f"{FILES.get(source, source)}.parquet").rename(
        COLUMN, strict=False
    )
    table = table.with_columns(pl.col("label").cast(pl.String)).unique("text", maintain_order=True)
    names = list(CLASSES[source]) if classes == 2 else sorted(table["label"].unique())
    names = ["1.0", "2.0", "4.0", "5.0"] if source == "yelp" and classes == 4 else names
    table = (
        table.filter(pl.col("label").is_in(names))
        .sample(fraction=1.0, shuffle=True, seed=seed)
        .head(8000)
    )
    return (
        [text[:240] for text in table["text"]],
        np.array([names.index(one) for one in table["label"]]),
        names,
    )
