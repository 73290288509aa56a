"""Token importance: every column by brute force, the test by enumeration and simulation,
calibration and coverage."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from calls import costly, fast_first
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Category, Importance, token_importance
from tokensieve.evidence.intervals import LEVEL, permutation_p
from tokensieve.evidence.sums import TokenSums
from tokensieve.text.counts import Counts

QUIET = settings(deadline=None, derandomize=True)
INTERVALS = [
    f"{name}{end}" for name in ("posterior", "alpha", "effect") for end in ("_low", "_high")
]
PER_CLASS = [
    "class_documents",
    "count_difference",
    "posterior_difference",
    "alpha",
    "effect",
    "p_value",
    "q_value",
    *INTERVALS,
]


def column(found: Importance, name: str) -> np.ndarray:
    """A column of the table by type and class, shape (|S|, K)."""
    return found.to_frame()[name].to_numpy().reshape(len(found.classes), -1).T


def random_counts(
    seed: int, classes: int = 2, n: int = 30, types: int = 8, sizes: tuple[int, ...] = ()
) -> Counts:
    """Documents of very different lengths, one of them empty, every type somewhere."""
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(rng.gamma(1.0, 1.0, size=(n, 1)) * rng.gamma(1.0, 1.0, size=types))
    matrix[0] = 0
    matrix[1 + np.arange(types) % (n - 1), np.arange(types)] += 1
    labels = np.repeat(np.arange(classes), sizes) if sizes else np.arange(n) % classes
    return Counts.from_matrix(
        matrix, rng.permutation(labels), [f"class {k}" for k in range(classes)]
    )


def documents_with(shares: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    """Documents of `length` tokens: type s with chance shares[k, s] in document k, the last type
    fills up."""
    return rng.multinomial(length, np.column_stack([shares, 1 - shares.sum(axis=1)]))


def score_interval(shares: np.ndarray, dispersion: float, t: float) -> tuple[float, float, float]:
    """Mean, and the two means μ at which (m − μ)² n = t² φ μ, found by bisection."""
    n, mean = len(shares), float(shares.mean())

    def gap(mu: float) -> float:
        return (mean - mu) ** 2 * n - t**2 * dispersion * mu

    low = optimize.brentq(gap, 0.0, mean, xtol=1e-15) if mean else 0.0
    return mean, low, optimize.brentq(gap, mean + 1e-9, mean + 1e3, xtol=1e-15)


def difference_interval(
    weights: list[float], ends: list[tuple[float, float, float]]
) -> tuple[float, float, float]:
    middle, below, above = 0.0, 0.0, 0.0
    for a, (mean, low, high) in zip(weights, ends, strict=True):
        middle += a * mean
        below += (a * (mean - low if a > 0 else high - mean)) ** 2
        above += (a * (high - mean if a > 0 else mean - low)) ** 2
    return middle, middle - below**0.5, middle + above**0.5


def ends_of(
    parts: list[np.ndarray], inverse: list[float], held: float
) -> list[tuple[float, float, float]]:
    """Score intervals of the mean of each part, with the dispersion that the parts share."""
    weight = sum(x.sum() * inv for x, inv in zip(parts, inverse, strict=True))
    event = sum((x**2).sum() for x in parts) / weight
    pooled = sum(x.var(ddof=1) * len(x) for x in parts) / weight
    out = []
    for x, inv in zip(parts, inverse, strict=True):
        phi = (x.var(ddof=1) * len(x) + event * pooled * inv**2) / (x.sum() + event * inv)
        out.append(score_interval(x, phi, stats.t.isf(0.025, max(min(held + 3, len(x) - 1), 1))))
    return out


def brute_force(counts: Counts, s: int, k: int) -> dict[str, float]:
    """Every column for one type and class, one document at a time, intervals by root finding."""
    dense, n, classes = counts.matrix.toarray(), counts.n_documents, counts.n_classes
    inside = outside = held_inside = held = 0.0
    share, target, mine = np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool)
    for x in range(n):
        here, mine[x] = dense[x, s], counts.labels[x] == k
        share[x] = here / dense[x].sum() if dense[x].sum() else 0.0
        target[x] = (1.0 if mine[x] else -1.0) if classes == 2 else float(mine[x]) - 1 / classes
        inside, outside = inside + here * mine[x], outside + here * (not mine[x])
        held, held_inside = held + (here > 0), held_inside + (here > 0) * mine[x]
    lengths = dense.sum(axis=1)
    total, inverse = inside + outside, np.where(lengths > 0, 1 / np.maximum(lengths, 1), 0.0)
    groups = [counts.labels == j for j in range(classes)]
    ends = ends_of([share[g] for g in groups], [inverse[g].mean() for g in groups], held)
    alpha = difference_interval([target[g][0] * g.mean() for g in groups], ends)
    scale = 0.5 if classes == 2 else (classes - 1) / classes**2
    two = ends_of(
        [share[g] for g in (mine, ~mine)], [inverse[g].mean() for g in (mine, ~mine)], held
    )
    effect = difference_interval([scale, -scale], two)
    squares = [(dense[g, s] ** 2).sum() for g in (mine, ~mine)]
    typical = sum(squares) / total
    p = (inside + typical / 2) / (total + typical)
    w = (1 - p) * (squares[0] + typical**2) / (inside + typical) + p * (squares[1] + typical**2) / (
        outside + typical
    )
    effective, z = total / w, stats.t.isf(0.025, held + 3)
    roots = np.roots(
        [1 + z**2 / effective, -(2 * inside / total + z**2 / effective), (inside / total) ** 2]
    )
    return {
        "class_documents": held_inside,
        "count_difference": inside - outside,
        "posterior_difference": (inside - outside) / total,
        "posterior_low": 2 * min(roots.real) - 1,
        "posterior_high": 2 * max(roots.real) - 1,
        "alpha": float(np.mean(target * share)),
        "alpha_low": alpha[1],
        "alpha_high": alpha[2],
        "effect": scale * (share[mine].mean() - share[~mine].mean()),
        "effect_low": effect[1],
        "effect_high": effect[2],
        "reach": scale * (share[mine].mean() + share[~mine].mean()),
        "documents": held,
        "count": total,
        "neutral": 2 * mine.mean() - 1,
    }


def disagree(found: Importance, counts: Counts, s: int, k: int) -> bool:
    """Whether the plain interval and the test differ about zero, so that the test decides."""
    plain = brute_force(counts, s, k)
    return (plain["effect_low"] > 0 or plain["effect_high"] < 0) != (found.p_value[s, k] < LEVEL)


@pytest.mark.parametrize(
    ("classes", "sizes"), fast_first([(2, (25, 5)), (4, (12, 10, 5, 3)), (2, ()), (3, ())], 2)
)
def test_every_column_by_brute_force(classes: int, sizes: tuple[int, ...]) -> None:
    counts = random_counts(1, classes, sizes=sizes)
    found = token_importance(counts)
    for s in range(counts.n_types):
        for k in range(classes):
            for name, expected in brute_force(counts, s, k).items():
                values = column(found, name) if name in PER_CLASS else getattr(found, name)
                mine = (
                    values[s, k]
                    if values.ndim == 2
                    else values[k]
                    if name == "neutral"
                    else values[s]
                )
                if name.startswith("effect_") and disagree(found, counts, s, k):
                    continue
                assert mine == pytest.approx(expected, rel=1e-9, abs=1e-12), (name, s, k)
    for k in range(classes):
        order = np.argsort(found.p_value[:, k])
        steps = found.p_value[order, k] * counts.n_types / np.arange(1, counts.n_types + 1)
        adjusted = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
        np.testing.assert_allclose(found.q_value[order, k], adjusted, rtol=1e-12)


def test_posterior_interval_is_wilsons_on_documents_that_hold_the_type_once() -> None:
    counts = Counts.from_matrix(np.ones((40, 1)), np.r_[np.ones(31, int), np.zeros(9, int)])
    found = token_importance(counts)
    level = 1 - 2 * float(
        stats.norm.sf(stats.t.isf(0.025, 43))
    )  # Wilson's with Student's quantile for 40 documents and 3
    interval = stats.binomtest(31, 40).proportion_ci(level, method="wilson")
    assert found.posterior_interval[0][0, 1] == pytest.approx(2 * interval.low - 1, rel=1e-9)
    assert found.posterior_interval[1][0, 1] == pytest.approx(2 * interval.high - 1, rel=1e-9)


def enumerated(counts: Counts, s: int, k: int) -> tuple[np.ndarray, float]:
    """The sum of shares in class k under every relabelling of the documents, and the observed
    sum."""
    dense = counts.matrix.toarray()
    share = dense[:, s] / np.maximum(dense.sum(axis=1), 1)
    every = {tuple(labels) for labels in permutations((counts.labels == k).tolist())}
    return np.array([share[list(labels)].sum() for labels in sorted(every)]), float(
        share[counts.labels == k].sum()
    )


def relabelling_p(counts: Counts) -> np.ndarray:
    """p by the moments of relabelling alone, whatever the lengths of documents, shape (|S|, K)."""
    sums = TokenSums.of(counts.matrix, counts.labels, counts.n_classes)
    equal = replace(
        sums, inverse_lengths=np.outer(counts.class_sizes, [1, 0, 0])
    )  # as if no class were shorter
    return permutation_p([equal], np.arange(counts.n_classes))


@QUIET
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_p_is_that_of_relabelling_or_larger_where_a_class_is_shorter(
    seed: int, classes: int
) -> None:
    counts = random_counts(seed, classes)
    found, alone = token_importance(counts).p_value, relabelling_p(counts)
    assert (found >= alone * (1 - 1e-6))[alone < 0.5].all()
    filler = counts.lengths.max() - counts.lengths
    equal = Counts.from_matrix(
        np.column_stack([counts.matrix.toarray(), filler]),
        counts.labels,
        [str(k) for k in range(classes)],
    )
    np.testing.assert_allclose(token_importance(equal).p_value, relabelling_p(equal), rtol=1e-6)


def test_equal_rates_in_a_rare_class_of_short_documents_are_not_discoveries() -> None:
    rng, small, tested = np.random.default_rng(31), 0, 0
    labels = np.repeat([0, 1], (400, 20))
    for _ in range(15):
        lengths = np.maximum(
            rng.lognormal(4, 0.5, 420) * np.where(labels == 1, 0.4, 1.5), 5
        ).astype(int)
        chances = np.tile(np.r_[np.full(40, 0.012), 1 - 40 * 0.012], (420, 1))
        found = token_importance(Counts.from_matrix(rng.multinomial(lengths, chances), labels))
        small, tested = small + int((found.p_value[:40, 1] < LEVEL).sum()), tested + 40
    assert small / tested < 0.075  # 0.2 by relabelling alone


def test_mean_variance_and_skewness_are_those_of_all_relabellings() -> None:
    counts = random_counts(3, n=8, types=4, sizes=(6, 2))
    p = relabelling_p(counts)
    for s in range(4):
        for k in (0, 1):
            sums, observed = enumerated(counts, s, k)
            z, skew = (observed - sums.mean()) / sums.std(), float(stats.skew(sums))
            curve = stats.pearson3(skew)
            assert p[s, k] == pytest.approx(
                min(1.0, 2 * min(curve.sf(z), curve.cdf(z))), rel=1e-6
            ), (s, k)


@pytest.mark.slow
def test_p_values_are_near_the_exact_ones_of_all_relabellings() -> None:
    """Mid-p by enumeration of the 9!/(6! 3!) = 84 relabellings: a sum so coarse that 0.15 is what a
    smooth curve can reach."""
    close = []
    for seed in range(6):
        counts = random_counts(seed, n=9, types=5, sizes=(6, 3))
        found = relabelling_p(counts)[:, 1]
        for s in range(5):
            sums, observed = enumerated(counts, s, 1)
            tie = np.isclose(sums, observed).mean() / 2
            above, below = (
                (sums > observed + 1e-12).mean() + tie,
                (sums < observed - 1e-12).mean() + tie,
            )
            close.append(abs(found[s] - min(1.0, 2 * min(above, below))))
    assert max(close) < 0.25
    assert np.mean(close) < 0.08


@pytest.mark.parametrize("rare", [0.5, 0.1])
def test_p_values_are_those_of_a_monte_carlo_permutation_test(rare: float) -> None:
    rng = np.random.default_rng(11)
    n, draws = 300, 20_000
    labels = (np.arange(n) < rare * n).astype(int)
    strength = np.linspace(0.0, 0.014 if rare == 0.5 else 0.025, 12)
    matrix = documents_with(0.02 + labels[:, None] * strength[None, :], 40, rng)
    counts = Counts.from_matrix(matrix, labels)
    found = token_importance(counts).p_value[:12, 1]
    share = matrix[:, :12] / 40
    relabelled = np.stack(
        [share[rng.permutation(n)[: int(rare * n)]].sum(axis=0) for _ in range(draws)]
    )
    observed = share[labels == 1].sum(axis=0)
    above, below = (
        (relabelled >= observed - 1e-12).mean(axis=0),
        (relabelled <= observed + 1e-12).mean(axis=0),
    )
    tie = np.isclose(relabelled, observed).mean(axis=0) / 2
    simulated = np.minimum(2 * np.minimum(above - tie, below - tie), 1.0)
    settled = simulated > 200 / draws
    assert 3 <= settled.sum() < 12
    np.testing.assert_allclose(found[settled], simulated[settled], rtol=0.2)
    assert (found[~settled] < 300 / draws).all()


@pytest.mark.parametrize(
    "sizes",
    fast_first([((270, 30),), ((150, 150),), ((294, 6),), ((1990, 10),), ((120, 100, 80),)]),
)
def test_shuffled_labels_give_discoveries_at_no_more_than_the_nominal_rate(
    sizes: tuple[int, ...],
) -> None:
    """Zipf types in documents of very different lengths: P(any q < 0.05) ≤ 0.05 per class, p-values
    uniform or above."""
    rng, runs, any_found, small, tested = np.random.default_rng(5), 40, 0, 0, 0
    n = sum(sizes)
    lengths = rng.geometric(1 / 60, size=n)
    zipf = 1 / np.arange(1, 401)
    matrix = np.stack([rng.multinomial(length, zipf / zipf.sum()) for length in lengths])
    matrix = matrix[:, (matrix > 0).sum(axis=0) >= 3]
    for _ in range(runs):
        counts = Counts.from_matrix(
            matrix, rng.permutation(np.repeat(np.arange(len(sizes)), sizes)), "abc"[: len(sizes)]
        )
        found = token_importance(counts)
        any_found += int((found.q_value < 0.05).any(axis=0).sum())
        small, tested = small + int((found.p_value < 0.05).sum()), tested + found.p_value.size
    families = runs * len(sizes)
    assert any_found <= stats.binom.isf(0.001, families, 0.05) * (
        2 if len(sizes) == 2 else 1
    )  # two classes mirror
    assert 0.01 < small / tested < 0.06


def test_rare_types_and_a_rare_class_yield_no_false_discoveries() -> None:
    rng = np.random.default_rng(6)
    matrix = np.zeros((400, 1500))
    for s in range(1500):
        matrix[rng.choice(400, 1 + s % 4, replace=False), s] = 1
    matrix[:, 0] += 20
    found = 0
    for _ in range(10):
        labels = rng.permutation(np.arange(400) < 8).astype(int)
        found += int((token_importance(Counts.from_matrix(matrix, labels)).q_value < 0.05).any())
    assert found <= 2


@pytest.mark.parametrize("rare", [0.5, 0.1])
def test_planted_tokens_are_found_and_only_those(rare: float) -> None:
    rng = np.random.default_rng(7)
    n, planted, types = 600, 8, 200
    labels = (np.arange(n) < rare * n).astype(int)
    shares = np.full((n, types), 0.004)
    shares[labels == 1, : planted // 2] = 0.016
    shares[labels == 0, planted // 2 : planted] = 0.016
    found = token_importance(Counts.from_matrix(documents_with(shares, 80, rng), labels))
    hits = found.q_value[:types, 1] < 0.05
    assert hits[:planted].all()
    assert hits[planted:].sum() <= 3
    assert (found.effect[: planted // 2, 1] > 0).all()
    assert (found.effect[planted // 2 : planted, 1] < 0).all()


@costly(3)
@given(st.integers(0, 10**6))
def test_two_classes_mirror_each_other(seed: int) -> None:
    found = token_importance(random_counts(seed))
    for name in ("posterior", "alpha", "effect"):
        point = "posterior_difference" if name == "posterior" else name
        np.testing.assert_allclose(
            column(found, point)[:, 0], -column(found, point)[:, 1], atol=1e-15
        )
        np.testing.assert_allclose(
            column(found, f"{name}_low")[:, 0], -column(found, f"{name}_high")[:, 1], atol=1e-14
        )
    np.testing.assert_allclose(found.p_value[:, 0], found.p_value[:, 1], rtol=1e-6)


@costly(3)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_the_order_of_documents_and_types_does_not_matter(seed: int, classes: int) -> None:
    counts = random_counts(seed, classes)
    rng = np.random.default_rng(seed)
    rows, types = rng.permutation(counts.n_documents), rng.permutation(counts.n_types)
    base = token_importance(counts)
    other = Counts.from_matrix(
        counts.matrix.toarray()[rows][:, types], counts.labels[rows], counts.classes
    )
    found = token_importance(other)
    for name in PER_CLASS:
        np.testing.assert_allclose(
            column(found, name), column(base, name)[types], rtol=1e-7, atol=1e-12, err_msg=name
        )


@costly(3)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_renaming_the_classes_renames_the_columns(seed: int, classes: int) -> None:
    counts = random_counts(seed, classes)
    order = np.random.default_rng(seed).permutation(classes)
    base = token_importance(counts)
    found = token_importance(
        Counts.from_matrix(counts.matrix, order[counts.labels], counts.classes)
    )
    for name in PER_CLASS:
        np.testing.assert_allclose(
            column(found, name)[:, order], column(base, name), rtol=1e-9, atol=1e-14
        )


@costly(3)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_duplicated_documents_leave_effects_and_scaled_documents_leave_everything_but_counts(
    seed: int, classes: int
) -> None:
    counts = random_counts(seed, classes)
    base = token_importance(counts)
    twice = token_importance(counts.rows(np.tile(np.arange(counts.n_documents), 2)))
    for name in ("alpha", "effect", "posterior_difference"):
        np.testing.assert_allclose(column(twice, name), column(base, name), atol=1e-14)
    scaled = token_importance(
        Counts.from_matrix(3 * counts.matrix.toarray(), counts.labels, counts.classes)
    )
    for name in PER_CLASS:
        if name != "count_difference":
            np.testing.assert_allclose(
                column(scaled, name), column(base, name), rtol=1e-6, atol=1e-12, err_msg=name
            )


def test_a_word_repeated_in_one_document_is_one_piece_of_evidence() -> None:
    rng = np.random.default_rng(12)
    labels = np.arange(100) % 2
    once = documents_with(np.full((100, 3), 0.02), 100, rng)
    once[:, 0] = 0
    once[1, 0] = 1
    many = once.copy()
    many[1, 0] = 40
    few, more = (token_importance(Counts.from_matrix(x, labels)) for x in (once, many))
    assert 2 * more.class_count[0, 1] - more.count[0] == 40
    assert more.p_value[0, 1] == pytest.approx(few.p_value[0, 1], rel=1e-6)
    assert more.posterior_interval[0][0, 1] == pytest.approx(
        few.posterior_interval[0][0, 1], rel=1e-9
    )
    assert more.q_value[0, 1] > 0.3
    assert more.alpha_interval[0][0, 1] < 0 < more.alpha_interval[1][0, 1]


def test_alpha_is_the_papers_with_equal_lengths() -> None:
    rng = np.random.default_rng(13)
    n, length = 40, 25
    matrix, labels = rng.multinomial(length, np.full(9, 1 / 9), size=n), rng.integers(2, size=n)
    counts = Counts.from_matrix(matrix, labels)
    paper = (matrix[labels == 1].sum(axis=0) - matrix[labels == 0].sum(axis=0)) / (n * length)
    found = token_importance(counts)
    np.testing.assert_allclose(found.alpha[:, 1], paper, atol=1e-15)
    np.testing.assert_allclose(counts.signed_frequency(), paper, atol=1e-15)
    np.testing.assert_array_equal(
        2 * found.class_count[:, 1] - found.count, np.rint(paper * n * length)
    )


@pytest.mark.parametrize("classes", [3, 5])
def test_alpha_of_many_classes_is_the_papers_with_equal_lengths(classes: int) -> None:
    rng = np.random.default_rng(14)
    n, length = 50, 12
    matrix, labels = rng.multinomial(length, np.full(7, 1 / 7), size=n), np.arange(n) % classes
    counts = Counts.from_matrix(matrix, labels, [str(k) for k in range(classes)])
    found = token_importance(counts).alpha
    for s in range(7):
        for k in range(classes):
            inside, outside = matrix[labels == k, s].sum(), matrix[labels != k, s].sum()
            paper = ((classes - 1) / classes * inside - outside / classes) / (n * length)
            assert found[s, k] == pytest.approx(paper, abs=1e-15)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-15)
    np.testing.assert_allclose(counts.signed_frequency(classes), found, atol=1e-15)


@pytest.mark.parametrize("classes", [2, 3])
def test_effect_is_alpha_with_equal_classes(classes: int) -> None:
    found = token_importance(random_counts(15, classes, n=30))
    np.testing.assert_allclose(found.effect, found.alpha, atol=1e-15)


def test_effect_is_zero_for_a_type_that_says_nothing_however_unequal_the_classes() -> None:
    labels = np.r_[np.zeros(90, int), np.ones(10, int)]
    found = token_importance(Counts.from_matrix(np.tile([1, 2], (100, 1)), labels))
    np.testing.assert_allclose(found.effect, 0, atol=1e-15)
    np.testing.assert_array_equal(found.p_value, 1.0)
    np.testing.assert_allclose(found.alpha[:, 1], [-0.8 / 3, -1.6 / 3])
    np.testing.assert_allclose(found.neutral, [0.8, -0.8])
    np.testing.assert_allclose(found.posterior_difference, np.tile(found.neutral, (2, 1)))
    assert (found.category() == Category.IRRELEVANT).all()


def test_categories_and_the_frame_hold_the_same_table() -> None:
    labels = np.arange(60) % 2
    y = labels.astype(bool)
    odd = np.zeros(60, dtype=bool)
    odd[[0, 2]] = (
        # two negative documents, so that a type is for a class without being in that class only
        True
    )
    matrix = np.column_stack(
        [
            y,
            ~y,
            y | odd,
            ~y & ~odd | np.isin(np.arange(60), [1, 3]),
            np.ones(60),
            np.arange(60) == 1,
        ]
    )
    tokens = ["good", "<b>", "fine", "meh", "the", "=cmd()"]
    counts = Counts.from_matrix(matrix.astype(int), labels, ["neg", "pos"], tokens)
    found = token_importance(counts)
    only, for_, against, never = Category.ONLY, Category.FOR, Category.AGAINST, Category.NEVER
    expected = [only, never, for_, against, Category.IRRELEVANT, Category.RARE]
    assert found.category()[:, 1].tolist() == expected
    assert found.category()[:, 0].tolist() == [
        never,
        only,
        against,
        for_,
        Category.IRRELEVANT,
        Category.RARE,
    ]
    assert set(found.category(level=1e-30)[:, 1].tolist()) <= {Category.IRRELEVANT, Category.RARE}
    assert Category.NEVER.of("neg") == "never in neg"
    frame = found.to_frame()
    assert frame["token"].to_list() == tokens * 2
    assert frame["class"].to_list() == ["neg"] * 6 + ["pos"] * 6
    assert frame["category"].to_list()[6:] == expected
    assert frame["documents"].to_list() == [30, 30, 32, 30, 60, 1] * 2
    assert frame["count"].to_list() == [30, 30, 32, 30, 60, 1] * 2
    for name in PER_CLASS:
        np.testing.assert_array_equal(frame[name].to_numpy(), column(found, name).T.ravel())


def test_irrelevant_needs_evidence_and_a_lack_of_it_is_called_so() -> None:
    """Types without any difference: common ones are shown to be irrelevant, those in few documents
    cannot be told."""
    rng = np.random.default_rng(21)
    shares = np.tile(np.r_[np.full(20, 0.01), np.full(20, 0.00002)], (2000, 1))
    counts = Counts.from_matrix(documents_with(shares, 60, rng), np.arange(2000) % 2)
    names = token_importance(counts).category()[:40, 1]
    assert (names[:20] == Category.IRRELEVANT).sum() >= 18
    assert (names[20:] == Category.RARE).all()


@costly(3)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_effect_intervals_exclude_zero_exactly_where_the_test_does(seed: int, classes: int) -> None:
    found = token_importance(random_counts(seed, classes, n=40))
    excluded = (found.effect_interval[0] > 0) | (found.effect_interval[1] < 0)
    np.testing.assert_array_equal(excluded, found.p_value < LEVEL)
    assert (
        (found.effect_interval[0] <= found.effect) & (found.effect <= found.effect_interval[1])
    ).all()
    assert (
        (found.alpha_interval[0] <= found.alpha) & (found.alpha <= found.alpha_interval[1])
    ).all()
    assert (np.abs(found.effect) <= found.reach * (1 + 1e-9) + 1e-12).all()


def test_a_type_without_documents_is_no_evidence() -> None:
    counts = Counts.from_matrix(np.array([[1, 0], [2, 0], [1, 0], [3, 0]]), [0, 1, 1, 0])
    found = token_importance(counts)
    assert all(np.isfinite(column(found, name)).all() for name in PER_CLASS)
    assert (found.p_value[1] == 1).all()
    np.testing.assert_allclose(found.posterior_interval[0][1], -1, rtol=1e-14)
    np.testing.assert_allclose(found.posterior_interval[1][1], 1, rtol=1e-14)
    assert (found.category()[1] == Category.RARE).all()


def test_a_class_without_documents_is_left_out_of_the_evidence() -> None:
    counts = random_counts(16)
    three = Counts.from_matrix(counts.matrix, counts.labels, ["a", "b", "c"])
    found: Importance = token_importance(three)
    assert (found.p_value[:, 2] == 1).all()
    assert all(np.isfinite(column(found, name)).all() for name in PER_CLASS)
    with pytest.raises(InputError, match="at least two classes"):
        token_importance(Counts.from_matrix(np.ones((3, 2)), [1, 1, 1]))


def test_no_types_at_all_give_an_empty_table() -> None:
    found = token_importance(Counts.from_matrix(np.zeros((4, 0)), [0, 1, 0, 1]))
    assert found.to_frame().height == 0
