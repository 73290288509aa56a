"""Beyond the paper: how far one-step importance carries, and what takes over where it ends."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from sklearn.preprocessing import PolynomialFeatures

from tokensieve.evidence.importance import signed_frequency
from tokensieve.model.embeddings import evaluate
from tokensieve.model.start import initialise
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.joint import at_best, fit
from tokensieve.reproduce.result import Bench, Check, Experiment, Finding, Reading, View
from tokensieve.reproduce.shape import bins, shape_checks, token_table
from tokensieve.text.counts import Counts
from tokensieve.theory.generators import independent_tokens, single_token

RULES: dict[str, dict[str, Any]] = {
    "one relevant token (Assumption 1)": {},
    "3 relevant tokens": {"relevant_per_document": 3},
    "partly relevant, 10 % on the other side": {"leak": 0.1},
    "partly relevant, 30 % on the other side": {"leak": 0.3},
    "negation": {"label_rule": "negation"},
    "xor": {"label_rule": "xor"},
}
ONE, JOINT, ALL, PAIRS = "one step", "E and p trained", "E, p and v trained", "pairs as types"
DEEP = ("two-layer", "key-query", "mlp")
CEILING = {"negation": 0.875, "xor": 0.75}  # of a sign that is linear in the counts: three of four combinations
NOISE = 0.03  # of an accuracy on 750 test documents, two standard errors
SIZES = {"n_types": 70, "length": 8, "n_relevant": 20}
SETTINGS = {
    "quick": {
        "d": 64, "documents": 1500, "independent_documents": 4000, "steps": 150, "learning_rate": 0.01, "epochs": 30,
        "dimensions": [16, 64, 256], "least_dimension": 0,
        **SIZES,
    },
    "paper": {
        "d": 256, "documents": 6000, "independent_documents": 20_000, "steps": 400, "learning_rate": 0.01, "epochs": 40,
        "dimensions": [16, 64, 256, 1024, 4096],
        "least_dimension": 0, **SIZES,
    },
}  # fmt: skip
READINGS = (
    Reading(
        "smaller-steps",
        "a quarter of the step size, shapes judged from d = 64 up: with v trained too, Adam's first steps move every E_sᵀv about "
        "equally far, the further the larger d, so that its size has no room to follow the posterior difference; at d = 16 the "
        "random start alone errs by 1/√d = 1/4, whence dimension has the same bound",
        {"learning_rate": 0.0025, "steps": 300, "least_dimension": 64},
        later=True,
    ),
)
NOTES = (
    "The sign of f is that of Σ_s c_s e^{u_s} w_s, which is linear in the counts: whatever the training, it gets at most three "
    "of the four combinations of two tokens right, which is 75 % of xor and 87.5 % of negation (a quarter of the documents is "
    "negated).",
    "One step: α_s as the value of each type, at p = 0, with no further training. Pairs as types: every product of two types "
    "that occur in one document counts as a type, and the one-layer model is trained on those.",
    "The documents are generated; half as many again validate and test.",
    "A first trial asked for at most 60 % on xor of the trained one-layer model; it had 73 %, and the ceiling of 75 % above is "
    "what holds. That trial had 150 steps and, for the table of dimensions, 1,500 documents.",
)


def run(bench: Bench) -> Finding:
    """The table of rules against models, then d and a trained v on independent tokens."""
    rows: list[dict[str, Any]] = []
    for k, (name, rule) in enumerate(RULES.items()):
        tell = bench.part(0.7 * k / len(RULES), 0.7 * (k + 1) / len(RULES))
        tell(name, 0.0)
        rows.append({"documents": name, **_accuracies(bench, _documents(bench, rule), name)})
    table = pl.DataFrame(rows)
    sizes = pl.DataFrame(_dimensions(bench))
    at = {row["documents"]: row for row in rows}
    xor, negation = at["xor"], at["negation"]
    judged = sizes.filter(pl.col("d") >= bench.settings["least_dimension"])
    simple = min(at[name][ONE] for name in list(RULES)[:3])
    checks = (
        Check("one step: least test accuracy where single tokens decide", simple, 0.85),
        Check("one step: test accuracy on xor", xor[ONE], high=0.6),
        *(
            Check(
                f"E, p and v trained: test accuracy on {name}, less its ceiling {top:.1%}",
                at[name][ALL] - top,
                high=NOISE,
            )
            for name, top in CEILING.items()
        ),
        Check("pairs as types: least test accuracy on negation and xor", min(negation[PAIRS], xor[PAIRS]), 0.9),
        Check("least Spearman of E_sᵀv over d, v fixed or trained", float(judged["value_spearman"].min()), 0.95),  # type: ignore[arg-type]
        Check("least Spearman of E_sᵀp over d, v fixed or trained", float(judged["score_spearman"].min()), 0.85),  # type: ignore[arg-type]
    )
    shown = (ONE, ALL, *DEEP, PAIRS)
    ours = f"test accuracy ({', '.join(shown)}): " + "; ".join(
        f"{name} {_percents(at[name], shown)}" for name in ("3 relevant tokens", "negation", "xor")
    )
    long = sizes.unpivot(["value_spearman", "score_spearman"], index=["d", "v"]).with_columns(
        by=pl.col("variable") + ", v " + pl.col("v")
    )
    view = View("beyond", "Shapes against d, generated documents", "shapes", "value", x="d", by="by", log_x=True)
    return Finding(ours, checks, {"rules": table, "dimensions": sizes, "shapes": long}, (view,), NOTES)


def _percents(row: dict[str, Any], models: tuple[str, ...]) -> str:
    return ", ".join("–" if row[model] is None else f"{row[model]:.0%}" for model in models)


def _documents(bench: Bench, rule: dict[str, Any]) -> Split:
    n = bench.settings["documents"]
    sizes = {name: bench.settings[name] for name in SIZES}
    counts = single_token(2 * n, seed=bench.seed, **sizes, **rule).counts
    return _parts(counts, n)


def _parts(counts: Counts, n: int) -> Split:
    """n documents to learn from, and the rest in halves."""
    ends = (0, n, n + (counts.n_documents - n) // 2, counts.n_documents)
    return Split(*(counts.rows(np.arange(low, high)) for low, high in pairwise(ends)))


def _accuracies(bench: Bench, split: Split, name: str) -> dict[str, float | None]:
    """Test accuracy of each model; the deep ones on pair rules only, and where PyTorch is installed."""
    label = name.split(" ")[0] + str(list(RULES).index(name))
    alpha = signed_frequency(split.train)
    paired = Split(*(with_pairs(part) for part in split))
    out: dict[str, float | None] = {ONE: evaluate(split.test, np.zeros(len(alpha)), alpha)[1]}
    for model, documents, frozen in ((JOINT, split, ("v",)), (ALL, split, ()), (PAIRS, paired, ())):
        training = fit(bench, documents, f"{label}-{len(out)}", lambda stage, share: None, frozen=frozen)
        out[model] = at_best(training)["test_accuracy"]
    out |= dict.fromkeys(DEEP)
    if importlib.util.find_spec("torch") is not None and name in CEILING:
        from tokensieve.reproduce.deep import DeepSettings, fit_deep

        for kind in DEEP:
            how = DeepSettings(kind, bench.settings["d"], bench.settings["epochs"], seed=bench.seed, patience=10)
            others = {"validation": split.validation, "test": split.test}
            out[kind] = at_best(fit_deep(split.train, how, others))["test_accuracy"]
    return out


def with_pairs(counts: Counts) -> Counts:
    """The same documents with a type for every pair of types: the product of their counts.

    Args:
        counts: n documents over |S| types; the result has |S| + |S|(|S| − 1)/2.
    """
    products = PolynomialFeatures(2, interaction_only=True, include_bias=False).fit(np.zeros((1, counts.n_types)))
    matrix = sp.csr_array(products.transform(sp.csr_matrix(counts.matrix)))
    names = products.get_feature_names_out(np.asarray(counts.tokens, dtype=object))
    return Counts(matrix, counts.labels, counts.classes, names)


def _dimensions(bench: Bench) -> list[dict[str, Any]]:
    """Both shapes at each dimension, with v fixed and with v trained."""
    n = bench.settings["independent_documents"]
    split = _parts(independent_tokens(2 * n, 400, 50, 200, delta_min=0.05, seed=bench.seed).counts, n)
    rows = []
    runs = [(d, v, frozen) for d in bench.settings["dimensions"] for v, frozen in (("fixed", ("v",)), ("trained", ()))]
    for k, (d, v, frozen) in enumerate(runs):
        tell = bench.part(0.7 + 0.3 * k / len(runs), 0.7 + 0.3 * (k + 1) / len(runs))
        start = initialise(split.train.n_types, d, 1, bench.seed)
        training = fit(bench, split, f"d-{d}-{v}", tell, start, frozen=frozen)
        table = bins(token_table(split.train, training.scores[-1], training.values[-1][:, 0]))
        value, score = shape_checks(table, "")
        accuracy = at_best(training)["test_accuracy"]
        rows.append(
            {
                "d": d,
                "v": v,
                "value_spearman": value.value,
                "score_spearman": score.value,
                "test_accuracy": accuracy,
            }
        )
    return rows


EXPERIMENT = Experiment(
    "beyond",
    "First-order statistics are what one step sees: several, partly relevant and paired tokens, v trained too, d from 16 up "
    "(asked by the reviewers)",
    "no figures",
    "one step: at least 85 % where single tokens decide (up to 10 % on the other side); one step at most 60 % on xor, one layer "
    "at most its ceilings of 75 % on xor and 87.5 % on negation (within 3 points); pairs as types: at least 90 % on negation "
    "and xor; on independent tokens Spearman at least 0.95 (E_sᵀv) and 0.85 (E_sᵀp) for every d, v fixed or trained",
    SETTINGS,
    {"quick": 60, "paper": 290},
    run,
    readings=READINGS,
)
