"""`rank`: do its intervals cover, does style control do what it should, and what do peers say?

    python benchmarks/ranking.py coverage [--arenas 400]
    python benchmarks/ranking.py alpaca
    python benchmarks/ranking.py length-control
    python benchmarks/ranking.py peers [--battles 140000]
    python benchmarks/ranking.py speed [--battles 140000]

`coverage` simulates arenas whose strengths and effects are known: eight models of strengths from −1
to 1, two features, battles of a prompt that are independent or share a latent normal with
correlation 0.5 (the marginal chance of each battle is that of the model, so that the truth is
exact), models drawn at random or one reference against all others, and wins or continuous
preferences (a beta distribution with the same mean).

`alpaca` ranks AlpacaEval's 29 models (alpaca.parquet, see machine.py) by results, with length alone
and with all of style held fixed: Spearman's correlation with the published length-controlled win
rates, the spread of models of one family that were told to be concise or verbose, and the attacks.
The leaderboard and the families were looked at while the features were chosen.

`length-control` sets win rates at equal length beside AlpacaEval's own: the published ones, which
are the output of its full model, and its "minimal" model, fitted here. That model is written out
from its documentation, since the package does not import beside current releases of what it needs;
the full one needs a difficulty of each prompt, which is a download.

`peers` ranks one simulated arena with arena-rank, where it is installed, and with statsmodels.

`speed` times `rank` on a file of battles of 60 models whose answers are real texts.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

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
ARENA = {"models": ("model_a", "model_b"), "winner": "winner", "by": ("prompt",)}
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


def length_control(options: argparse.Namespace) -> None:
    """Win rates at equal length by several methods, beside the published ones."""
    board = pl.read_csv(DATA / "alpaca_leaderboard.csv").sort("model")
    table = pl.read_parquet(DATA / "alpaca.parquet")
    ranking = rank(DATA / "alpaca.parquet", **ALPACA, discover=False)
    extrapolated = [row.model for row in ranking.extrapolated]
    is_compared = ~board["model"].is_in(extrapolated)
    rows = []
    print("| method | Spearman | mean difference in points | seconds |\n|---|---|---|---|")
    for name, method in LENGTH_CONTROLS.items():
        start = time.perf_counter()
        rates = method(table)
        seconds = time.perf_counter() - start
        everyone = _against_published(rates, board)
        compared = _against_published(rates, board.filter(is_compared))
        print(
            f"| {name} | {everyone.spearman:.3f} ({compared.spearman:.3f}) | "
            f"{everyone.difference:.1f} ({compared.difference:.1f}) | {seconds:.1f} |",
            flush=True,
        )
        figures = {"all": asdict(everyone), "compared": asdict(compared), "rates": rates}
        rows.append({"method": name, "seconds": seconds, **figures})
    print(f"In brackets without {', '.join(extrapolated)}")
    store("ranking-length-control", rows, described("scipy", "scikit-learn"))


@dataclass(frozen=True)
class _Agreement:
    """Spearman's correlation with the published rates, and the mean difference in points."""

    spearman: float
    difference: float


def _against_published(rates: dict[str, float], board: pl.DataFrame) -> _Agreement:
    own = np.array([100 * rates[model] for model in board["model"]])
    published = board["length_controlled_winrate"].to_numpy()
    correlation = float(spearmanr(own, published).statistic)
    return _Agreement(correlation, float(np.abs(own - published).mean()))


def _results_alone(table: pl.DataFrame) -> dict[str, float]:
    """The mean preference of each model."""
    means = table.group_by("model").agg(pl.col("preference").mean() - 1)
    return dict(means.iter_rows())


def _minimal_model(table: pl.DataFrame) -> dict[str, float]:
    """AlpacaEval's `length_controlled_minimal`: per model a logistic regression on a constant and
    tanh of the difference of length over its standard deviation, evaluated at no difference.

    A preference is split into a win and a loss with weights. The L1 penalty is small enough to
    change nothing (AlpacaEval chooses it by cross-validation).
    """
    from sklearn.linear_model import LogisticRegression

    rates = {}
    for (model,), rows in table.group_by("model"):
        difference = rows["reference"].str.len_chars().cast(pl.Int64)
        difference = (difference - rows["answer"].str.len_chars().cast(pl.Int64)).to_numpy()
        preference = rows["preference"].to_numpy() - 1
        columns = np.column_stack(
            [np.tanh(difference / np.std(difference, ddof=1)), np.ones(len(rows))]
        )
        regression = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-8, max_iter=1000)
        regression.fit(
            np.vstack([columns, columns]),
            np.repeat([1, 0], len(rows)),
            np.concatenate([preference, 1 - preference]),
        )
        rates[str(model)] = float(expit(regression.coef_[0][1]))
    return rates


def _ours_with(**options: bool) -> Callable[[pl.DataFrame], dict[str, float]]:
    """Win rates against the reference by `rank`, with style held fixed."""

    def win_rates(table: pl.DataFrame) -> dict[str, float]:
        ranking = rank(DATA / "alpaca.parquet", **ALPACA, **options)
        strength = {row.model: row.style.estimate.value for row in ranking.rows if row.style}
        reference = strength[table["reference_model"][0]]
        return {model: float(expit(value - reference)) for model, value in strength.items()}

    return win_rates


LENGTH_CONTROLS: dict[str, Callable[[pl.DataFrame], dict[str, float]]] = {
    "results alone": _results_alone,
    "AlpacaEval, minimal": _minimal_model,
    "rank": _ours_with(discover=False),
    "rank, with forms that it found": _ours_with(),
}


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


def speed(options: argparse.Namespace) -> None:
    """Seconds of `rank` on a file of battles with real texts."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battles.parquet"
        _arena_with_texts(options.battles, options.seed).write_parquet(path)
        for discover in (False, True):
            start, start_cpu = time.perf_counter(), time.process_time()
            ranking = rank(path, pairs=("answer_a", "answer_b"), discover=discover, **ARENA)
            seconds = time.perf_counter() - start
            cpu = time.process_time() - start_cpu
            print(f"discover={discover}: {seconds:.1f} s, {cpu:.1f} CPU seconds", flush=True)
            rows.append({"discover": discover, "seconds": seconds, "cpu": cpu, **ranking.seconds})
    store("ranking-speed", rows, described("scipy", "polars"))


def _arena_with_texts(n: int, seed: int) -> pl.DataFrame:
    """A simulated arena of 20,000 prompts with real answers, all of them different."""
    answers = pl.read_parquet(DATA / "alpaca.parquet")["answer"].unique(maintain_order=True)
    battles = simulated_arena(n, seed)
    rng = np.random.default_rng(seed)
    names = np.array(battles.models)
    numbers = pl.Series(np.arange(n)).cast(pl.String)
    columns: dict[str, object] = {"prompt": rng.integers(0, 20_000, n)}
    for side, models in (("a", battles.first), ("b", battles.second)):
        texts = answers.gather(rng.integers(0, len(answers), n)).str.head(700)
        columns[f"model_{side}"] = names[models]
        columns[f"answer_{side}"] = texts + " " + numbers
    columns["winner"] = np.where(battles.outcome == 1, "a", "b")
    return pl.DataFrame(columns)


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
    parser.add_argument("what", choices=PARTS)
    parser.add_argument("--arenas", type=int, default=400)
    parser.add_argument("--battles", type=int, default=140_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    PARTS[options.what](options)


PARTS = {
    "coverage": coverage,
    "alpaca": alpaca,
    "length-control": length_control,
    "peers": peers,
    "speed": speed,
}


if __name__ == "__main__":
    main()
