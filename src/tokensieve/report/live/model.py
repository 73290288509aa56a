"""The model as the page's scripts run it, and documents with types as they number them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.report.blocks import InteractiveAudit
from tokensieve.report.live.packing import Arrays, Json, packed
from tokensieve.text.formatting import describe_features
from tokensieve.text.patterns import (
    APOSTROPHE,
    FINAL_CONSONANT,
    LEADING_VOWELS,
    SKIPPED,
    STACKERS,
    TRAILING_VOWELS,
    WORD,
)
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import Vocabulary

NOT_KEPT = 2**32 - 1
# our syntax of patterns → JavaScript's with its flag u, which has Unicode's classes by name
JAVASCRIPT_PATTERNS = {
    "\\d": r"\p{Nd}",
    "\\s": r"\p{White_Space}",
    "\\S": r"\P{White_Space}",
    "\\w": r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]",
}


def tokenizer_for_page(vocabulary: Vocabulary) -> Json | None:
    """Settings of a tokenizer that the page can run; None where it cannot."""
    tokenizer = vocabulary.tokenizer
    needed = {"pattern": WORD, "html": "skip", "stop_words": []}  # all else the page can do
    if (
        not isinstance(tokenizer, WordTokenizer)
        or not needed.items() <= tokenizer.to_dict().items()
    ):
        return None
    settings = {
        "lowercase": tokenizer.lowercase,
        "apostrophe": APOSTROPHE[4:],
        "skipped": SKIPPED[5:],
    }
    if tokenizer.lexicon:
        settings["lexicon"] = tokenizer.lexicon
        settings |= {
            "leading": LEADING_VOWELS,
            "stackers": STACKERS,
            "trailing": TRAILING_VOWELS,
            "final": FINAL_CONSONANT,
        }
    return settings


def model_block(audit: InteractiveAudit, vocabulary: Vocabulary, kept: Ints, tabled: Ints) -> str:
    """The model of the kept types, numbered in the order of the vocabulary.

    Words come first, then 2-grams, 3-grams, … For each level of n-grams, "first" has the steps
    between the (n−1)-grams that they begin with, and "last" their last words. Both are numbered
    among the kept types of their level, so that the former never decrease within a level. "place"
    has the position of each type in `tabled`.
    """
    model = audit.learned.model
    place = np.full(vocabulary.n_types, NOT_KEPT, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    arrays: Arrays = {
        "score": model.scores[kept].astype("<f4"),
        "place": place[tabled].astype("<u4"),
    }
    for k, column in enumerate(model.values[kept].T):
        arrays[f"value{k}"] = column.astype("<f4")
    arrays |= _gram_arrays(vocabulary, kept)
    formatting = kept[kept >= vocabulary.n_words] - vocabulary.n_words
    meta = {
        "left": vocabulary.n_types - len(kept),
        "tokenizer": tokenizer_for_page(vocabulary),
        "levels": 1 + len(vocabulary.grams),
        "heads": model.values.shape[1],
        "prior": model.prior.tolist(),
        "sink": model.sink,
        "words": [vocabulary.words[i] for i in kept[kept < len(vocabulary.words)]],
        "features": _features_for_page([vocabulary.formatting[i] for i in formatting]),
    }
    return packed(meta, arrays)


def _gram_arrays(vocabulary: Vocabulary, kept: Ints) -> Arrays:
    """Describe the n-grams of each level by the (n−1)-gram that they begin with and by their last
    word."""
    arrays: Arrays = {}
    n_words = len(vocabulary.words)
    words = kept[kept < n_words]
    level_above = words
    base = n_words
    for n, keys in enumerate(vocabulary.grams, start=2):
        level = kept[(kept >= base) & (kept < base + len(keys))] - base
        first, last = np.divmod(keys[level], max(n_words, 1))
        place_of_first = np.searchsorted(level_above, first)
        # differences of rising numbers pack better than the numbers
        arrays[f"first{n}"] = np.diff(place_of_first, prepend=0).astype("<u4")
        arrays[f"last{n}"] = np.searchsorted(words, last).astype("<u4")
        level_above = level
        base += len(keys)
    return arrays


def _features_for_page(names: Sequence[str]) -> list[Json]:
    """Formatting features, with patterns in JavaScript's syntax."""
    features = []
    for feature in describe_features(names):
        pattern = feature.get("pattern")
        if pattern is not None:
            for ours, theirs in JAVASCRIPT_PATTERNS.items():
                pattern = pattern.replace(ours, theirs)
            feature = feature | {"pattern": pattern}
        features.append(feature)
    return features


def documents_block(
    audit: InteractiveAudit,
    vocabulary: Vocabulary,
    documents: Sequence[Json],
    kept: Ints,
    left_out: str,
) -> str:
    """The sample documents with types as the page numbers them, and which types it leaves out."""
    place = np.full(vocabulary.n_types + 1, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    n_words = int(np.count_nonzero(kept < vocabulary.n_words))
    numbered = []
    for document in documents:
        if "types" in document:
            features = place[document["features"]] - n_words
            document = document | {
                "types": place[document["types"]].tolist(),
                "features": features[features >= 0].tolist(),
            }
        numbered.append(document)
    return packed({"documents": numbered, "test": audit.documents["test"], "left": left_out})
