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
from tokensieve.model.embeddings import evaluate, initialise
from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.measures import V_SHAPED, Measurement, bins, shape_measurements, token_table
from tokensieve.reproduce.result import SeedRun
from tokensieve.text.counts import Counts
from tokensieve.theory.generators import independent_tokens, single_token

_RULES: dict[str, dict[str, Any]] = {
    "one relevant token (Assumption 1)": {},
    "3 relevant tokens": {"relevant_per_document": 3},
    "partly relevant, 10% on the other side": {"leak": 0.1},
    "partly relevant, 30% on the other side": {"leak": 0.3},
    "negation": {"label_rule": "negation"},
    "xor": {"label_rule": "xor"},
}
_CEILING = {"negation": 0.875, "xor": 0.75}  # of a sign that is linear in the counts: three of four combinations
_DEEP = ("two-layer", "key-query", "mlp")


def run(bench: Bench) -> SeedRun:
    """The table of rules against models, then d and a trained v on independent tokens."""
    at: dict[str, dict[str, Any]] = {}
    for k, (name, rule) in enumerate(_RULES.items()):
        tell = bench.part(0.7 * k / len(_RULES), 0.7 * (k + 1) / len(_RULES))
        tell(name, 0.0)
        n = bench.settings["documents"]
        sizes = {size: bench.settings[size] for size in ("n_types", "length", "n_relevant")}
        split = _halves(single_token(2 * n, seed=bench.seed, **sizes, **rule).counts, n)
        at[name] = _accuracies(bench, split, k, name)
    table = pl.DataFrame([{"documents": name, **row} for name, row in at.items()])
    sizes_table = pl.DataFrame(_dimensions(bench))
    judged = sizes_table.filter(pl.col("d") >= bench.settings["least_dimension"])
    one, every, pairs = "one step", "E, p and v trained", "pairs as types"
    simple = min(at[name][one] for name in list(_RULES)[:3])
    measured = [
        Measurement("one step: least test accuracy where single tokens decide", simple, 0.85),
        Measurement("one step: test accuracy on xor", at["xor"][one], high=0.6),
    ]
    for name, top in _CEILING.items():
        over = at[name][every] - top
        # 0.03 is two standard errors of an accuracy on 750 test documents
        measured.append(Measurement(f"{every}: test accuracy on {name}, less its ceiling {top:.1%}", over, high=0.03))
    least = min(at["negation"][pairs], at["xor"][pairs])
    measured.append(Measurement("pairs as types: least test accuracy on negation and xor", least, 0.9))
    for of, symbol, bound in (("value", "E_sᵀv", 0.95), ("score", "E_sᵀp", V_SHAPED)):
        worst = min(judged[f"{of}_spearman"].to_list())
        measured.append(Measurement(f"least Spearman of {symbol} over d, v fixed or trained", worst, bound))
    shown = (one, every, *_DEEP, pairs)
    ours = f"test accuracy ({', '.join(shown)}): " + "; ".join(
        f"{name} {', '.join('–' if at[name][m] is None else f'{at[name][m]:.0%}' for m in shown)}"
        for name in ("3 relevant tokens", "negation", "xor")
    )
    shapes = sizes_table.unpivot(["value_spearman", "score_spearman"], index=["d", "v"])
    shapes = shapes.with_columns(by=pl.col("variable") + ", v " + pl.col("v"))
    return SeedRun(ours, tuple(measured), {"rules": table, "dimensions": sizes_table, "shapes": shapes})


def _halves(counts: Counts, n: int) -> Split:
    """n documents to learn from, and the rest in halves."""
    ends = (0, n, n + (counts.n_documents - n) // 2, counts.n_documents)
    train, validation, test = (counts.rows(np.arange(low, high)) for low, high in pairwise(ends))
    return train, validation, test


def _accuracies(bench: Bench, split: Split, k: int, name: str) -> dict[str, float | None]:
    """Test accuracy of each model; the deep ones on pair rules only, and where PyTorch is installed."""
    alpha = signed_frequency(split[0])
    train, validation, test = (_with_pairs(part) for part in split)
    out: dict[str, float | None] = {"one step": evaluate(split[2], np.zeros(len(alpha)), alpha)[1]}
    models: list[tuple[str, Split, tuple[str, ...]]] = [
        ("E and p trained", split, ("v",)),
        ("E, p and v trained", split, ()),
        ("pairs as types", (train, validation, test), ()),
    ]
    for j, (model, documents, frozen) in enumerate(models):
        training = bench.fit(documents, f"rule-{k}-{j}", lambda stage, share: None, frozen=frozen)
        out[model] = training.trajectory["test_accuracy"][training.best()]
    out |= dict.fromkeys(_DEEP)
    if importlib.util.find_spec("torch") is not None and name in _CEILING:
        from tokensieve.reproduce.deep import DeepSettings, fit_deep

        for kind in _DEEP:
            how = DeepSettings(kind, bench.settings["d"], bench.settings["epochs"], seed=bench.seed, patience=10)
            deep = fit_deep(split[0], how, {"validation": split[1], "test": split[2]})
            out[kind] = deep.trajectory["test_accuracy"][deep.best()]
    return out


def _with_pairs(counts: Counts) -> Counts:
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
    split = _halves(independent_tokens(2 * n, 400, 50, 200, delta_min=0.05, seed=bench.seed).counts, n)
    rows = []
    runs = [(d, v, frozen) for d in bench.settings["dimensions"] for v, frozen in (("fixed", ("v",)), ("trained", ()))]
    for k, (d, v, frozen) in enumerate(runs):
        tell = bench.part(0.7 + 0.3 * k / len(runs), 0.7 + 0.3 * (k + 1) / len(runs))
        start = initialise(split[0].n_types, d, 1, bench.seed)
        training = bench.fit(split, f"d-{d}-{v}", tell, start, frozen=frozen)
        table = bins(token_table(split[0], training.scores[-1], training.values[-1][:, 0]))
        value, score = shape_measurements(table, "")
        row = {"d": d, "v": v, "value_spearman": value.value, "score_spearman": score.value}
        rows.append(row | {"test_accuracy": training.trajectory["test_accuracy"][training.best()]})
    return rows
