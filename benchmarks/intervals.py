"""Do the intervals hold what they promise, and are discoveries real?

Simulated documents whose truth is known by construction.

    python benchmarks/intervals.py [--corpora 40] [--seed 0]            (about two minutes on one
                                                                        core)

**Coverage.** A corpus has class sizes 1:1 or 1:20 and documents of 80 tokens each, of log-normal
lengths (5 to some hundreds), or of such lengths three times as long in one class. Each type has a
rate per class: 40 % of the types the same in both, the others up to 8 times as high in one, so that
E[c/T] per class is exactly that rate; expected document frequencies are spread evenly (on a log
scale) from 1 to half of the documents. Words are independent (multinomial) or bursty
(Dirichlet-multinomial, where the variance of a count is several times its mean). α and effect:
class sizes are fixed. Posterior difference: labels are drawn. Results are grouped by the number of
documents in which a type was *seen*, as a user meets it: being selected into the table because it
occurred is part of what is measured.

**False discoveries.** Labels of bursty Zipf documents are shuffled, so that every discovery is
false. Beside ours: Monroe et al. 2008's log-odds ratio with an informative Dirichlet prior (z), χ²
of the 2 × 2 table of tokens, and the token-level z of Gardner et al. 2021, each with
Benjamini-Hochberg over the types in at least three documents.

**Units.** A random label for every prompt of the preference data: how many tokens of its answers
are "discovered" with answers, and with prompts, as the independent units.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from scipy import stats

from machine import DATA, described
from tokensieve.evidence.importance import Importance, token_importance
from tokensieve.evidence.intervals import Z95, false_discovery
from tokensieve.read.corpus import Corpus as Documents
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import learn_vocabulary, tokenize

LENGTH = 80
SIZES = ((400, 400), (400, 20), (2000, 100))
LENGTHS = ("equal", "unequal", "by class")
BURSTS = (0, 25)  # 0: independent tokens; else the concentration of the Dirichlet distribution
STRATA = ((1, 1), (2, 2), (3, 4), (5, 19), (20, 99), (100, 10**9))
STATISTICS = ("effect", "alpha", "posterior")
TYPES = 200


@dataclass(frozen=True)
class Corpus:
    """Documents and the truth behind them.

    Attributes:
        counts: types and, last, one more that fills documents up.
        rates: E[c/T] of each type in each class, shape (2, types).
        truth: statistic → true value for class 1, shape (types,).
    """

    counts: Counts
    rates: np.ndarray
    truth: dict[str, np.ndarray]


def drawn_lengths(kind: str, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Tokens of each document."""
    if kind == "equal":
        return np.full(len(labels), LENGTH)
    lengths = rng.lognormal(np.log(LENGTH) - 0.32, 0.8, len(labels))
    if kind == "by class":
        lengths *= np.where(labels == 1, 0.5, 1.5)
    return np.maximum(lengths, 5).astype(np.int64)


def mean_lengths(kind: str) -> np.ndarray:
    """E[T] in each class."""
    rng = np.random.default_rng(0)
    return np.array([drawn_lengths(kind, np.full(200_000, k), rng).mean() for k in (0, 1)])


def corpus(
    sizes: tuple[int, int],
    kind: str,
    burst: float,
    rng: np.random.Generator,
    fixed: bool = True,
    types: int = TYPES,
) -> Corpus:
    """One corpus.

    Args:
        sizes: documents of each class.
        kind: one of LENGTHS.
        burst: concentration of the Dirichlet distribution of each document's rates; 0 for none.
        rng: seeded.
        fixed: class sizes are exactly those; else labels are drawn in these proportions.
        types: how many besides the filler.
    """
    n, share = sum(sizes), np.array(sizes) / sum(sizes)
    labels = np.repeat([0, 1], sizes) if fixed else (rng.random(n) < share[1]).astype(np.int64)
    lengths = drawn_lengths(kind, labels, rng)
    frequency = np.exp(rng.uniform(0, np.log(n / 2), types)) / n
    ratio = np.where(rng.random(types) < 0.4, 0.0, rng.uniform(-np.log(8), np.log(8), types))
    rate = -np.log1p(-frequency) / LENGTH * (1.4 if burst else 1.0)
    rates = np.stack([rate * np.exp(-ratio * share[1]), rate * np.exp(ratio * share[0])])
    rates = np.concatenate([rates, np.maximum(1 - rates.sum(axis=1, keepdims=True), 0.02)], axis=1)
    rates /= rates.sum(axis=1, keepdims=True)
    chances = rates[labels]
    if burst:
        chances = np.maximum(rng.gamma(burst * chances), 1e-300)
        chances /= chances.sum(axis=1, keepdims=True)
    matrix, rates = rng.multinomial(lengths, chances), rates[:, :-1]
    occurring = rates * (mean_lengths(kind) * share)[:, None] if not fixed else rates
    truth = {
        "effect": (rates[1] - rates[0]) / 2,
        "alpha": rates[1] * share[1] - rates[0] * share[0],
        "posterior": (occurring[1] - occurring[0]) / occurring.sum(axis=0),
    }
    return Corpus(Counts.from_matrix(matrix, labels, ("0", "1")), rates, truth)


def old_intervals(counts: Counts) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Those of version 0.1:

    Welch's, Wald's by class, and Wilson's on (Σc)²/Σc² documents, with the normal quantile.
    """
    dense = counts.matrix.toarray()
    shares = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    groups = [shares[counts.labels == k] for k in (0, 1)]
    n = np.array([len(g) for g in groups])
    mean, variance = (
        np.stack([f(g) for g in groups]) for f in (lambda g: g.mean(0), lambda g: g.var(0, ddof=1))
    )
    effect, half = (mean[1] - mean[0]) / 2, Z95 / 2 * np.sqrt((variance / n[:, None]).sum(axis=0))
    alpha = (n[1] * mean[1] - n[0] * mean[0]) / n.sum()
    half_alpha = Z95 * np.sqrt((variance * n[:, None]).sum(axis=0)) / n.sum()
    total = dense.sum(axis=0)
    p = dense[counts.labels == 1].sum(axis=0) / np.maximum(total, 1)
    documents = total**2 / np.maximum((dense**2).sum(axis=0), 1)
    centre = (documents * p + Z95**2 / 2) / (documents + Z95**2)
    reach = Z95 / (documents + Z95**2) * np.sqrt(documents * p * (1 - p) + Z95**2 / 4)
    return {
        "effect": (effect - half, effect + half),
        "alpha": (alpha - half_alpha, alpha + half_alpha),
        "posterior": (2 * (centre - reach) - 1, 2 * (centre + reach) - 1),
    }


def new_intervals(found: Importance) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Ours, for class 1."""
    ends = {name: getattr(found, f"{name}_interval") for name in STATISTICS}
    return {name: (low[:, 1], high[:, 1]) for name, (low, high) in ends.items()}


def coverage(
    sizes: tuple[int, int],
    kind: str,
    burst: float,
    corpora: int,
    rng: np.random.Generator,
    types: int = TYPES,
) -> dict[tuple[str, str], np.ndarray]:
    """("old" or "new", statistic) → intervals that hold the truth and all intervals, by stratum,
    shape (strata, 2).
    """
    hits = {key: np.zeros((len(STRATA), 2)) for key in product(("old", "new"), STATISTICS)}
    for fixed in (True, False):
        for _ in range(corpora):
            made = corpus(sizes, kind, burst, rng, fixed, types)
            found = token_importance(made.counts)
            both = {"old": old_intervals(made.counts), "new": new_intervals(found)}
            seen = found.documents[:types]
            for side, name in product(both, ("effect", "alpha") if fixed else ("posterior",)):
                low, high = (end[:types] for end in both[side][name])
                held = (low <= made.truth[name]) & (made.truth[name] <= high)
                for i, (least, most) in enumerate(STRATA):
                    there = (seen >= least) & (seen <= most)
                    hits[side, name][i] += held[there].sum(), there.sum()
    return hits


def show_coverage(corpora: int, seed: int) -> None:
    """The table: mean over the settings of lengths and words, and their range."""
    rng = np.random.default_rng(seed)
    heads = [
        f"{a}" if a == b else f"{a} or more" if b > 10**6 else f"{a} to {b}" for a, b in STRATA
    ]
    print(
        "Coverage in %, version 0.1 → now (lowest and highest of six settings now), by documents "
        "that contain the type:\n"
    )
    print(f"| | documents | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}")
    for sizes in SIZES:
        runs = [
            coverage(sizes, kind, burst, corpora, rng) for kind, burst in product(LENGTHS, BURSTS)
        ]
        for name in STATISTICS:
            cells = []
            for i in range(len(STRATA)):
                old, new = (
                    [100 * run[side, name][i, 0] / max(run[side, name][i, 1], 1) for run in runs]
                    for side in ("old", "new")
                )
                cells.append(
                    f"{np.mean(old):.0f} → **{np.mean(new):.1f}** ({min(new):.1f}–{max(new):.1f})"
                )
            print(f"| {name} | {sizes[0]:,} + {sizes[1]:,} | {' | '.join(cells)} |", flush=True)


def monroe(inside: np.ndarray, outside: np.ndarray, prior: float = 500.0) -> np.ndarray:
    """p of the z-score of the log-odds ratio, Dirichlet prior in proportion to the corpus (Monroe
    et al. 2008, eqs. 15–22).
    """
    alpha = prior * (inside + outside) / (inside + outside).sum()
    sides = [(x + alpha, x.sum() + prior) for x in (inside, outside)]
    odds = [np.log(a / (total - a)) for a, total in sides]
    z = (odds[0] - odds[1]) / np.sqrt(1 / sides[0][0] + 1 / sides[1][0])
    return np.asarray(2 * stats.norm.sf(np.abs(z)))


def chi_squared(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """p of Pearson's χ² of the table (this type, other types) × (class, rest), in tokens."""
    totals, n = (inside.sum(), outside.sum()), inside.sum() + outside.sum()
    both = inside + outside
    expected = both * totals[0] / n
    scale = expected * (1 - both / n) * totals[1] / n
    return np.asarray(stats.chi2.sf((inside - expected) ** 2 / np.maximum(scale, 1e-300), 1))


def gardner(inside: np.ndarray, outside: np.ndarray, share: float) -> np.ndarray:
    """p of z = (p̂(y|x) − p0)/√(p0 (1 − p0)/n) over the n occurrences of the type (Gardner et al.

    2021, section 3).
    """
    n = inside + outside
    z = (inside / n - share) / np.sqrt(share * (1 - share) / n)
    return np.asarray(2 * stats.norm.sf(np.abs(z)))


def shuffled(
    sizes: tuple[int, int], burst: float, runs: int, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Method → share of runs with any q < 0.05, and share of types with one; labels mean
    nothing."""
    zipf = 1 / np.arange(3, 1203)
    labels, any_, types = np.repeat([0, 1], sizes), {}, {}
    for _ in range(runs):
        lengths = drawn_lengths("unequal", labels, rng)
        chances = np.tile(zipf / zipf.sum(), (len(labels), 1))
        if burst:
            chances = np.maximum(rng.gamma(burst * chances), 1e-300)
            chances /= chances.sum(axis=1, keepdims=True)
        matrix = rng.multinomial(lengths, chances)
        matrix = matrix[:, (matrix > 0).sum(axis=0) >= 3]
        y = rng.permutation(labels)
        inside, outside = (matrix[y == k].sum(axis=0).astype(float) for k in (1, 0))
        p = {
            "Monroe et al. 2008, log-odds z": monroe(inside, outside),
            "χ² on tokens": chi_squared(inside, outside),
            "Gardner et al. 2021, z": gardner(inside, outside, float(np.mean(y))),
        }
        q = {"tokensieve": token_importance(Counts.from_matrix(matrix, y)).q_value[:, 1]}
        q |= {name: false_discovery(x[:, None])[:, 0] for name, x in p.items()}
        for name, x in q.items():
            any_.setdefault(name, []).append(bool((x < 0.05).any()))
            types.setdefault(name, []).append(float((x < 0.05).mean()))
    return {name: (float(np.mean(any_[name])), float(np.mean(types[name]))) for name in any_}


def show_discoveries(runs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    settings = list(product(SIZES, BURSTS))
    results = [shuffled(sizes, burst, runs, rng) for sizes, burst in settings]
    heads = [f"{a:,} + {b:,}, {'bursty' if burst else 'independent'}" for (a, b), burst in settings]
    print(
        f"\nShuffled labels: % of {runs} runs with any q < 0.05 (and % of all types):\n\n| | "
        f"{' | '.join(heads)} |\n|---|{'---|' * len(heads)}"
    )
    for name in results[0]:
        print(
            f"| {name} | "
            f"{' | '.join(f'{100 * r[name][0]:.0f} ({100 * r[name][1]:.1f})' for r in results)} |"
        )


def show_units(seed: int) -> None:
    """A coin's label for every prompt of the preference data:

    answers to one prompt share words, and now a label too.
    """
    path = DATA / "preferences.parquet"
    if not path.exists():
        print(f"\nunits: left out, there is no {path}")
        return
    frame, splitter = pl.read_parquet(path), WordTokenizer()
    stream = tokenize(frame["chosen"], splitter)
    vocabulary = learn_vocabulary(stream, splitter, 1, 3)
    matrix, units = vocabulary.count(stream)[0], Documents.unit_index(frame["prompt"].to_list())
    found = []
    for run in range(5):
        labels = np.random.default_rng([seed, run]).integers(0, 2, units.max() + 1)[units]
        counts = Counts(matrix, labels, ("0", "1"), vocabulary.tokens)
        found.append(
            [
                int((q(counts) < 0.05).sum())
                for q in (
                    lambda c: token_importance(c).q_value[:, 1],
                    lambda c: token_importance(c.merge_groups(units)[0]).q_value[:, 1],
                )
            ]
        )
    alone, together = zip(*found, strict=True)
    print(
        f"\nA random label per prompt, {len(units):,} answers to {units.max() + 1:,} prompts, "
        f"{matrix.shape[1]:,} types: {min(alone):,} to {max(alone):,} types with q < 0.05 where "
        f"answers are the units, {min(together)} to {max(together)} where prompts are."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpora",
        type=int,
        default=40,
        help="corpora of each of 18 settings, and runs with shuffled labels",
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    print(described("scipy") + "\n")
    show_coverage(options.corpora, options.seed)
    show_discoveries(options.corpora, options.seed)
    show_units(options.seed)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
