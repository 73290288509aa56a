"""Are planted artefacts found first, and is nothing found where there is nothing? Reviews whose truth is known by construction.

    python benchmarks/findings.py [--seeds 20] [--documents 1000] [--shuffles 20]

**Planted.** Reviews of 20 to 100 words with sentiment words of graded strength (those of `tokensieve demo`, without its own
shortcut). In a tenth of one class's reviews one of ten artefacts is planted; a run finds it at rank r if the r-th finding of an
audit names one of its tokens. Every other shortcut of that audit, and every shortcut of an audit of the same reviews without an
artefact, is a false alarm.

**Shuffled.** The same reviews, and reviews in groups (five share an author, who has words and, after shuffling, a label of their
own), with labels drawn by chance: share of audits without any finding of kind shortcut; groups with and without `by`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from machine import described
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.text.corpus import read_corpus

SHARE = 0.1  # of the reviews of one class


def middle(text: str, words: str) -> str:
    """The words put into the middle of a text."""
    parts = text.split(" ")
    return " ".join([*parts[: len(parts) // 2], words, *parts[len(parts) // 2 :]])


@dataclass(frozen=True)
class Plant:
    """An artefact.

    Attributes:
        change: puts it into a text.
        tokens: of which a finding must name one.
        label: of the reviews that it is put into.
    """

    change: Callable[[str], str]
    tokens: frozenset[str]
    label: int


PLANTS = {
    "three trailing spaces": Plant(lambda t: t + "   ", frozenset({"⟨trailing spaces⟩", "⟨3+ spaces⟩"}), 1),
    'a final "..."': Plant(lambda t: t.rstrip(".") + "...", frozenset({'⟨ends "..."⟩', "⟨...⟩"}), 0),
    "bold type": Plant(lambda t: middle(t, "**really**"), frozenset({"⟨**bold**⟩", "really"}), 1),
    "a rating": Plant(lambda t: f"{t} 9/10", frozenset({"9", "10", "⟨n/10 rating⟩", "⟨number⟩"}), 1),
    "an address": Plant(lambda t: f"{t} See www.shop.com/item.aspx", frozenset({"aspx", "www", "⟨URL⟩", "shop"}), 0),
    "a last line": Plant(lambda t: f"{t}\nPosted via tablet.", frozenset({"tablet", "posted", "via", "⟨line break⟩"}), 1),
    "a first word": Plant(lambda t: f"Reuters {t}", frozenset({"reuters"}), 0),
    "a word anywhere": Plant(lambda t: middle(t, "zebra"), frozenset({"zebra"}), 1),
    "a phrase of common words": Plant(lambda t: middle(t, "the a was"), frozenset({"the a", "a was", "the a was"}), 0),
    "sheer length": Plant(lambda t: f"{t} " + " ".join(t.split()[:40] * 4), frozenset({"⟨length 100–200⟩", "⟨length 200–400⟩"}), 1),
}  # fmt: skip


def reviews(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Reviews without an artefact, and their labels."""
    made = demo_reviews(n, seed)
    return [text.partition("\n")[0] for text in made.texts], np.asarray(made.labels)


def shortcuts(texts: list[str], labels: np.ndarray, seed: int, by: list[str] | None = None) -> list[Finding]:
    """The findings of kind shortcut among those of an audit, in their order."""
    columns = {"text": texts, "label": ["good" if y else "bad" for y in labels]} | ({"by": by} if by else {})
    corpus = read_corpus(pl.DataFrame(columns), text="text", label="label", by="by" if by else None)
    found = audit(corpus, Settings(seed=seed, baseline=False, thorough=False)).findings
    return [finding for finding in found if finding.kind == "shortcut"]


def planted(seeds: int, documents: int) -> None:
    """The table of artefacts."""
    ranks: dict[str, list[int]] = {name: [] for name in PLANTS}
    alarms = dict.fromkeys([*PLANTS, "nothing"], 0)
    for seed in range(seeds):
        texts, labels = reviews(documents, seed)
        alarms["nothing"] += len(shortcuts(texts, labels, seed))
        for name, plant in PLANTS.items():
            rng = np.random.default_rng([seed, len(name)])
            there = (labels == plant.label) & (rng.random(documents) < SHARE)
            changed = [plant.change(text) if put else text for text, put in zip(texts, there, strict=True)]
            found = shortcuts(changed, labels, seed)
            hits = [i for i, finding in enumerate(found, 1) if plant.tokens & set(finding.tokens)]
            ranks[name].append(hits[0] if hits else 0)
            alarms[name] += len(found) - len(hits)
    print(f"| planted in {SHARE:.0%} of one class | found first | found later | missed | false alarms per audit |")
    print("|---|---|---|---|---|")
    for name, found_at in ranks.items():
        first, later = sum(r == 1 for r in found_at), sum(r > 1 for r in found_at)
        print(f"| {name} | {first} | {later} | {found_at.count(0)} | {alarms[name] / seeds:.2f} |")
    print(f"| nothing | | | | {alarms['nothing'] / seeds:.2f} |", flush=True)


def shuffled(runs: int, documents: int) -> None:
    """Audits of labels that say nothing."""
    quiet = {"documents": 0, "groups, as documents": 0, "groups, with their units": 0}
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        texts, labels = reviews(documents, seed)
        quiet["documents"] += not shortcuts(texts, rng.permutation(labels), seed)
        authors = np.arange(documents) // 5
        own = [" ".join(f"own{w}" for w in rng.integers(0, 200, 6)) for _ in range(authors[-1] + 1)]
        grouped = [f"{text} {own[author]}" for text, author in zip(texts, authors, strict=True)]
        drawn = rng.integers(0, 2, authors[-1] + 1)[authors]
        quiet["groups, as documents"] += not shortcuts(grouped, drawn, seed)
        quiet["groups, with their units"] += not shortcuts(grouped, drawn, seed, [str(a) for a in authors])
    print("\n| labels by chance | audits without a shortcut |\n|---|---|")
    for name, without in quiet.items():
        print(f"| {name} | {without} of {runs} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--shuffles", type=int, default=20)
    options = parser.parse_args()
    print(described("polars", "scikit-learn") + "\n", flush=True)
    if options.seeds:
        planted(options.seeds, options.documents)
    if options.shuffles:
        shuffled(options.shuffles, options.documents)


if __name__ == "__main__":
    main()
