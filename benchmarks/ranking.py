"""`rank`: do its intervals cover, does style control do what it should, and what do peers say?

    python benchmarks/ranking.py coverage [--arenas 400]
    python benchmarks/ranking.py alpaca
    python benchmarks/ranking.py peers [--battles 140000]

`coverage` simulates arenas whose strengths and effects are known: eight models of strengths from −1
to 1, two features, battles of a prompt that are independent or share a latent normal with
correlation 0.5 (the marginal chance of each battle is that of the model, so that the truth is
exact), models drawn at random or one reference against all others, and wins or continuous
preferences (a beta distribution with the same mean).

`alpaca` ranks AlpacaEval's 29 models (alpaca.parquet, see machine.py) by results, with length alone
and with all of style held fixed: Spearman's correlation with the published length-controlled win
rates, the spread of models of one family that were told to be concise or verbose, and the attacks.
The leaderboard and the families were looked at while the features were chosen.

`peers` ranks one simulated arena with arena-rank, where it is installed, and with statsmodels.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit
from scipy.stats import norm, spearmanr

from machine import DATA, described, store
from tokensieve.arrays import Floats, Ints
from tokensieve.ranking.battles import Battles
from tokensieve.ranking.bradley_terry import components_of, fit
from tokensieve.ranking.run import rank

N_MODELS = 8
EFFECTS = np.array([0.6, 0.0])
CORRELATION = 0.5  # of the latent normals of one prompt
CONCENTRATION = 2.0  # of the beta distribution of continuous preferences: most are near 0 or 1
FAMILY_ENDINGS = ("_concise", "_verbose")
ALPACA = {
    "pairs": ("reference", "answer"),
    "models": ("reference_model", "model"),
    "winner": "preference",
    "by": ("prompt",),
}


@dataclass(frozen=True)
class Scenario:
    """How an arena is drawn."""

    n_prompts: int
    per_prompt: int
    shares_latent: bool
    has_reference: bool
    is_continuous: bool

    def __str__(self) -> str:
        battles = "correlated" if self.shares_latent else "independent"
        design = "one reference" if self.has_reference else "all against all"
        outcome = "continuous" if self.is_continuous else "wins"
        return f"{self.n_prompts} prompts × {self.per_prompt}, {battles}, {design}, {outcome}"


SCENARIOS = (
    Scenario(100, 6, False, False, False),
    Scenario(400, 6, False, False, False),
    Scenario(100, 6, True, False, False),
    Scenario(400, 6, True, False, False),
    Scenario(400, 6, True, True, False),
    Scenario(400, 6, True, True, True),
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """An arena and its features."""

    battles: Battles
    features: Floats


def draw_arena(scenario: Scenario, rng: np.random.Generator) -> Drawn:
    """Battles whose outcomes follow the model exactly."""
    n = scenario.n_prompts * scenario.per_prompt
    prompt = np.repeat(np.arange(scenario.n_prompts), scenario.per_prompt)
    first = rng.integers(0, N_MODELS, n)
    second = (first + rng.integers(1, N_MODELS, n)) % N_MODELS
    if scenario.has_reference:
        first = np.zeros(n, np.int64)
        second = rng.integers(1, N_MODELS, n)
    features = rng.standard_normal((n, len(EFFECTS)))
    p = expit(strengths()[first] - strengths()[second] + features @ EFFECTS)
    latent = rng.standard_normal(n)
    if scenario.shares_latent:
        shared = rng.standard_normal(scenario.n_prompts)[prompt]
        latent = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * latent
    uniform = norm.cdf(latent)
    outcome = (uniform < p).astype(float)
    if scenario.is_continuous:
        outcome = _beta_outcome(1 - uniform, p)
    return Drawn(_battles(first, second, outcome, prompt), features)


def strengths() -> Floats:
    """The true strength of each model."""
    return np.linspace(1.0, -1.0, N_MODELS)


def _beta_outcome(uniform: Floats, p: Floats) -> Floats:
    from scipy.stats import beta

    return np.asarray(beta.ppf(uniform, CONCENTRATION * p, CONCENTRATION * (1 - p)))


def _battles(first: Ints, second: Ints, outcome: Floats, prompt: Ints) -> Battles:
    n = len(outcome)
    zeros = np.zeros(n, np.int64)
    return Battles(
        source="simulated",
        models=tuple(f"m{k}" for k in range(int(max(first.max(), second.max())) + 1)),
        first=first,
        second=second,
        texts=pl.Series(["x"]),
        first_text=zeros,
        second_text=zeros,
        outcome=outcome,
        weight=np.ones(n),
        prompt=prompt,
        has_prompts=True,
        judge=zeros[:0],
    )


@dataclass(frozen=True)
class Hits:
    """Whether each interval contains the truth."""

    strengths: list[bool]
    effects: list[bool]


def intervals_that_hit(scenario: Scenario, rng: np.random.Generator) -> Hits:
    """Rank one arena and compare its intervals with the truth."""
    drawn = draw_arena(scenario, rng)
    components = components_of(drawn.battles)
    found = fit(drawn.battles, drawn.features, components)
    anchor = int(components.anchors[0])
    truth = np.concatenate([strengths() - strengths()[anchor], EFFECTS])
    is_hit = np.abs(found.coefficients - truth) <= found.quantile * found.errors
    of_models = np.delete(is_hit[:N_MODELS], anchor)
    return Hits(of_models.tolist(), is_hit[N_MODELS:].tolist())


def coverage(options: argparse.Namespace) -> None:
    """How often 95% intervals contain the true strengths and effects."""
    print("| arena | strengths covered | effects covered |\n|---|---|---|")
    rows = []
    for scenario in SCENARIOS:
        rng = np.random.default_rng(options.seed)
        hits = [intervals_that_hit(scenario, rng) for _ in range(options.arenas)]
        models = np.mean([hit for arena in hits for hit in arena.strengths])
        effects = np.mean([hit for arena in hits for hit in arena.effects])
        print(f"| {scenario} | {models:.1%} | {effects:.1%} |", flush=True)
        rows.append({"arena": str(scenario), "strengths": models, "effects": effects})
    store("ranking-coverage", rows, described("scipy"))


def alpaca(options: argparse.Namespace) -> None:
    """The ranks of AlpacaEval's models beside the published ones."""
    board = pl.read_csv(DATA / "alpaca_leaderboard.csv")
    published = dict(zip(board["model"], board["length_controlled_winrate"], strict=True))
    start = time.perf_counter()
    ranking = rank(DATA / "alpaca.parquet", **ALPACA)
    seconds = time.perf_counter() - start
    rows = [row for row in ranking.rows if row.model in published and row.style is not None]
    lengths = [published[row.model] for row in rows]
    raw = {row.model: row.raw.estimate.value for row in rows}
    style = {row.model: row.style.estimate.value for row in rows if row.style is not None}
    figures = {
        "seconds": seconds,
        "spearman_raw": float(spearmanr(list(raw.values()), lengths).statistic),
        "spearman_style": float(spearmanr(list(style.values()), lengths).statistic),
        "families": {
            family: {
                "raw": np.ptp([raw[m] for m in names]),
                "style": np.ptp([style[m] for m in names]),
            }
            for family, names in families(list(raw)).items()
        },
        "extrapolated": [row.model for row in ranking.extrapolated],
        "repeated": [answer.model for answer in ranking.repeated],
        "effects": {effect.feature: effect.joint.value for effect in ranking.effects},
    }
    for name, figure in figures.items():
        print(f"{name}: {figure}")
    store("ranking-alpaca", figures, described("scipy"))


def families(models: list[str]) -> dict[str, list[str]]:
    """Models that differ only in having been told to be concise or verbose."""
    groups: dict[str, list[str]] = {}
    for model in models:
        base = model
        for ending in FAMILY_ENDINGS:
            base = base.removesuffix(ending)
        groups.setdefault(base, []).append(model)
    return {base: names for base, names in groups.items() if len(names) > 1}


def simulated_arena(n: int, seed: int) -> Battles:
    """Battles of 60 models, without style."""
    rng = np.random.default_rng(seed)
    n_models = 60
    truth = rng.normal(0, 0.7, n_models)
    first = rng.integers(0, n_models, n)
    second = (first + rng.integers(1, n_models, n)) % n_models
    outcome = (rng.random(n) < expit(truth[first] - truth[second])).astype(float)
    return _battles(first, second, outcome, np.arange(n))


def peers(options: argparse.Namespace) -> None:
    """Agreement and seconds of several programs on one arena."""
    battles = simulated_arena(options.battles, options.seed)
    ours = _ours(battles)
    print("| program | seconds | largest difference |\n|---|---|---|")
    rows = []
    for name, run in PEERS.items():
        try:
            importlib.import_module(name.replace("-", "_"))
        except ImportError:
            print(f"| {name} | not installed | |")
            continue
        start = time.perf_counter()
        theirs = run(battles)
        seconds = time.perf_counter() - start
        difference = float(np.abs((theirs - theirs.mean()) - (ours - ours.mean())).max())
        print(f"| {name} | {seconds:.2f} | {difference:.1e} |", flush=True)
        rows.append({"program": name, "seconds": seconds, "difference": difference})
    store("ranking-peers", rows, described("scipy", "statsmodels", "arena-rank"))


def _ours(battles: Battles) -> Floats:
    return fit(battles, np.zeros((battles.n, 0)), components_of(battles)).strengths


def _statsmodels(battles: Battles) -> Floats:
    """A binomial GLM with robust errors, as one would write it oneself."""
    import statsmodels.api as sm

    X = np.zeros((battles.n, len(battles.models)))
    X[np.arange(battles.n), battles.first] = 1.0
    X[np.arange(battles.n), battles.second] -= 1.0
    found = sm.GLM(battles.outcome, X[:, 1:], family=sm.families.Binomial()).fit(cov_type="HC0")
    return np.concatenate([[0.0], found.params])


def _arena_rank(battles: Battles) -> Floats:
    """Bradley–Terry by arena-rank, whose ratings are 1,000 plus 400/log 10 times the log-odds."""
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    names = np.array(battles.models)
    frame = pl.DataFrame(
        {
            "model_a": names[battles.first],
            "model_b": names[battles.second],
            "winner": np.where(battles.outcome == 1, "model_a", "model_b"),
        }
    ).to_pandas()
    dataset = PairDataset.from_pandas(frame)
    model = BradleyTerry(n_competitors=len(dataset.competitors))
    ratings = model.compute_ratings_and_cis(dataset)["ratings"]
    by_name = dict(zip(dataset.competitors, ratings, strict=True))
    theirs = np.array([by_name[name] for name in battles.models])
    return (theirs - 1000) * np.log(10) / 400


PEERS: dict[str, Callable[[Battles], Floats]] = {
    "tokensieve": _ours,
    "statsmodels": _statsmodels,
    "arena-rank": _arena_rank,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("coverage", "alpaca", "peers"))
    parser.add_argument("--arenas", type=int, default=400)
    parser.add_argument("--battles", type=int, default=140_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    {"coverage": coverage, "alpaca": alpaca, "peers": peers}[options.what](options)


if __name__ == "__main__":
    main()
