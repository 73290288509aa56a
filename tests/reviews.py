"""Small sources for tests of the command line."""

from __future__ import annotations

import csv
from pathlib import Path

from tokensieve.auditing.demo import demo_reviews


def write_reviews(path: Path, n: int = 300, seed: int = 0, stars: bool = False) -> Path:
    """Generated reviews as CSV: text and label (neg, pos), or text and stars (1, 2, 4, 5)."""
    reviews = demo_reviews(n, seed)
    labels = [
        (5 if i % 2 else 4) if y else (1 if i % 2 else 2) for i, y in enumerate(reviews.labels)
    ]
    named = labels if stars else ["pos" if y else "neg" for y in reviews.labels]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("text", "stars" if stars else "label"), *zip(reviews.texts, named, strict=True)]
        )
    return path
