"""Figures of the theory: agreement under Assumption 1, large sizes, remainder against d, IMDB,
relaxed hypotheses, and the share selected against the first step.

    python benchmarks/theory.py
    small|large|one-step|imdb|relaxed|step-size|subsets|descent|classes|phases
        [--seeds 20] [--data DIR] [--out DIR]

Each prints one table and its wall time. `imdb` reads imdb_train.parquet from --data (default: see
machine.py).
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer

from machine import DATA
from theory_docs.descent import descend
from theory_docs.joint import joint_flow, own_margin
from theory_docs.phases import phase_pictures, phase_table
from theory_docs.sweep import grid, run_sweep
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import initialise
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.generators import single_token
from tokensieve.theory.geometry import coordinates
from tokensieve.theory.limit.certify import FlowLimit
from tokensieve.theory.limit.margin import max_margin
from tokensieve.theory.one_step import OneStep, one_step
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import Verification, verify

RELAXED = {
    "Assumption 1": {},
    "3 relevant tokens": {"relevant_per_document": [3]},
    "partly relevant (leak 0.1)": {"leak": [0.1]},
    "partly relevant (leak 0.3)": {"leak": [0.3]},
    "negation": {"label_rule": ["negation"], "n_types": [71]},
    "xor": {"label_rule": ["xor"]},
}


SOURCES = (
    ("imdb_train.parquet", "label", "text", None),
    (
        "yelp.parquet",
        "stars",
        "text",
        {"1.0": "negative", "2.0": "negative", "4.0": "positive", "5.0": "positive"},
    ),
    (
        "snli_train.parquet",
        "label",
        "hypothesis",
        {"entailment": "entailment", "contradiction": "contradiction"},
    ),
)
# Documents, dimension, and the documents that a word must occur in.
SIZES = (
    (40, 24, 2),
    (60, 32, 3),
    (80, 48, 4),
    (100, 64, 5),
    (150, 96, 7),
    (200, 128, 10),
    (300, 192, 15),
    (400, 256, 20),
    (600, 384, 20),
)
KEPT = (
    "verdict",
    "dimension_v",
    "tied_documents",
    "curvature_f1",
    "curvature_f3",
    "duality_gap",
    "kkt_residual",
    "tight_pairs",
    "pulling_pairs",
    "is_max_margin",
    "one_sided_selected",
    "prediction_error",
)


def small(options: argparse.Namespace) -> None:
    """n = 200, |S| = 70, T = 8, d = 1024: one row per seed."""
    found = run_sweep(grid({"seed": range(options.seeds)}), options.out / "small")
    columns = [
        "seed",
        "eta",
        "important_selected",
        "norm",
        "angle",
        "exponent",
        "margin_duality_gap",
        "margin_kkt_residual",
        "seconds",
    ]
    table = pl.DataFrame(found.rows, infer_schema_length=None).select(columns)
    print(table)
    print(
        "largest:",
        table.select("norm", "angle", "margin_duality_gap", "margin_kkt_residual", "seconds")
        .max()
        .to_dicts()[0],
    )
    print(found.outcomes)


def large(options: argparse.Namespace) -> None:
    """|S| = 5,000, n = 10,000, T = 50, d = 2048."""
    counts, _ = single_token(10_000, 5_000, 50, options.relevant, seed=options.seed)
    report(verify(counts, budget(options, 2048), progress=ticker()))


def one_step_decay(options: argparse.Namespace) -> None:
    """Relative remainder against d, its exponent, and whether every bound holds: generated, IMDB,
    and Yelp's five classes."""
    yelp = real("yelp.parquet", "stars", options)
    for name, counts, dimensions, seeds in (
        (
            "generated",
            single_token(200, 70, 8, 20, seed=0)[0],
            (128, 256, 512, 1024, 2048, 4096, 8192),
            options.seeds,
        ),
        ("IMDB", real("imdb_train.parquet", "label", options), (128, 256, 512, 1024, 2048), 3),
        ("Yelp, five classes", yelp, (128, 256, 512, 1024, 2048), 3),
    ):
        heads = 1 if counts.n_classes == 2 else counts.n_classes
        rows = [
            {"d": d, "seed": seed}
            | one_step(counts, *initialise(counts.n_types, d, heads, seed), 1.0).to_dict()
            for d in dimensions
            for seed in range(seeds)
        ]
        table = pl.DataFrame(rows)
        print(
            name,
            f"{counts.n_documents} documents, {counts.n_types} token types, expected slope "
            f"{rows[0]['expected_slope']}",
        )
        print(
            table.group_by("d", maintain_order=True).agg(
                pl.col("slope", "r2", "relative_remainder", "bound").mean(),
                pl.col("bound_holds").all(),
            )
        )
        fit = stats.linregress(np.log(table["d"]), np.log(table["relative_remainder"]))
        held = table["bound_holds"].sum()
        print(
            f"remainder exponent {fit.slope:.3f} ± {fit.stderr:.3f}; bound holds on {held} of "
            f"{len(table)} runs"
        )


def real(name: str, label: str, options: argparse.Namespace) -> Counts:
    """A file of ../shared/data as counts, words in at least 20 documents."""
    folder = options.data or DATA
    frame = (
        pl.read_parquet(folder / name)
        .sample(fraction=1.0, shuffle=True, seed=0)
        .head(options.documents)
    )
    vectorizer = CountVectorizer(lowercase=True, min_df=20, token_pattern=r"[a-z0-9']+")
    matrix = vectorizer.fit_transform(frame["text"].to_list())
    classes = frame[label].cast(pl.String).unique().sort()
    labels = (
        frame[label].cast(pl.String).cast(pl.Enum(classes)).to_physical().cast(pl.Int64).to_list()
    )
    names = vectorizer.get_feature_names_out().tolist()
    return Counts.from_matrix(matrix, labels, tuple(classes), names)


def imdb(options: argparse.Namespace) -> None:
    """25,000 reviews (or --documents), words in at least 20 reviews, d = 512 (or --d)."""
    counts = real("imdb_train.parquet", "label", options)
    print(
        f"{counts.n_documents} documents, {counts.n_types} token types, {counts.matrix.nnz} entries"
    )
    report(verify(counts, budget(options, options.d), progress=ticker()))


def relaxed(options: argparse.Namespace) -> None:
    """What still holds where a hypothesis is given up: one row per relaxation, over all seeds."""
    for name, change in RELAXED.items():
        cases = grid({"seed": range(options.seeds), "max_steps": [1500]} | change)
        found = run_sweep(cases, options.out / "relaxed")
        rows = pl.DataFrame(found.rows, infer_schema_length=None)
        if "angle" not in rows.columns:
            print(name, found.outcomes)
            continue
        angles = rows["angle"].cast(pl.Float64).drop_nulls()
        print(
            f"{name}: {found.outcomes}; one-step R² {rows['r2'].median():.3f}; important selected "
            f"{rows['important_selected'].mean()}; limit "
            f"{rows['limit_verdict'].value_counts().sort('limit_verdict').rows()}, dim V "
            f"{rows['limit_dimension_v'].drop_nulls().max()}, prediction error ≤ "
            f"{rows['limit_prediction_error'].max()}; margin "
            f"{rows['margin_status'].value_counts().sort('margin_status').rows()}; median angle "
            f"{angles.median()} (≤ 0.01 in {(angles <= 0.01).sum()} of {len(rows)}); rises "
            f"{rows['rises'].sum()}; {rows['seconds'].sum():.0f} s"
        )


def step_size(options: argparse.Namespace) -> None:
    """Share of documents whose important token is selected, against the size of the first step:
    sizes of the small experiment."""
    steps = [1.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0]
    found = run_sweep(
        grid({"eta": steps, "seed": range(options.seeds), "max_steps": [1500]}),
        options.out / "step-size",
    )
    rows = pl.DataFrame(found.rows, infer_schema_length=None)
    share = pl.col("important_selected")
    print(
        rows.group_by("eta", maintain_order=True).agg(
            share.mean().alias("mean share"),
            share.min().alias("smallest"),
            (share == 1).sum().alias("all selected"),
            pl.len(),
        )
    )
    print(found.outcomes)


def subsets(options: argparse.Namespace) -> None:
    """What becomes of p on 27 real subsets: reviews, restaurants and premises, 40 to 600 documents,
    d = 24 to 384, over seeds."""
    rows = []
    for (name, label, text, groups), (size, d, least) in itertools.product(SOURCES, SIZES):
        for seed in range(options.seeds):
            counts = subset((options.data or DATA) / name, label, text, groups, size, least, seed)
            started = time.process_time()
            step = one_step(
                counts, *initialise(counts.n_types, d, seed=seed), OneStep.default_size(counts)
            )
            E = step.embeddings()
            settings = VerifySettings(tolerance=options.tolerance, max_seconds=options.seconds)
            flow = gradient_flow(counts, E, E @ step.start.v, step.start.p, settings)
            middle = time.process_time()
            limit = FlowLimit.find(counts, E, E @ step.start.v, flow, options.seconds)
            found = limit.to_dict()
            changes = found["selection_changes"]
            rows.append(
                {
                    "source": name.split(".")[0],
                    "n": size,
                    "d": d,
                    "seed": seed,
                    "types": counts.n_types,
                }
                | {key: found[key] for key in KEPT}
                | {"changes": len(changes), "last_change": changes[-1]["norm"] if changes else None}
                | {
                    "flow_s": middle - started,
                    "limit_s": time.process_time() - middle,
                    "reason": found["reason"],
                }
            )
            print(
                {
                    key: f"{x:.3g}" if isinstance(x, float) else str(x)
                    for key, x in rows[-1].items()
                },
                flush=True,
            )
    table = pl.DataFrame(rows, infer_schema_length=None)
    options.out.mkdir(parents=True, exist_ok=True)
    table.write_csv(options.out / "subsets.csv")
    show_subsets(table)


def show_subsets(table: pl.DataFrame) -> None:
    """A row for each source and size, over seeds: least to largest."""
    decided = pl.col("verdict") != "not settled"
    print(
        "| source | n, d | decided | dim V | tied documents | pulling | changes | prediction error "
        "| flow + limit (s) |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for (source, n, d), rows in table.group_by("source", "n", "d", maintain_order=True):
        held = rows.filter(decided)
        ends = [
            f"{held[x].min()} … {held[x].max()}"
            for x in ("dimension_v", "tied_documents", "pulling_pairs", "changes")
        ]
        cells = [
            f"{held.height} of {rows.height}",
            *ends,
            f"≤ {rows['prediction_error'].max():.1g}",
        ]
        print(
            f"| {source} | {n}, {d} | {' | '.join(cells)} | {rows['flow_s'].median():.1f} + "
            f"{rows['limit_s'].median():.1f} |"
        )
    held = table.filter(decided)
    largest, least = (
        pl.col("duality_gap", "kkt_residual").max(),
        pl.col("curvature_f1", "curvature_f3").min(),
    )
    ends = held.select(largest, least, pl.col("is_max_margin").sum()).row(0, named=True)
    print(f"decided {held.height} of {table.height}: {ends}")


def subset(
    path: Path,
    label: str,
    text: str,
    groups: dict[str, str] | None,
    size: int,
    least: int,
    seed: int,
) -> Counts:
    """A seeded sample of a file as counts, words in at least `least` documents."""
    frame = pl.read_parquet(path).with_columns(pl.col(label).cast(pl.String))
    if groups:
        frame = frame.filter(pl.col(label).is_in(list(groups))).with_columns(
            pl.col(label).replace_strict(groups)
        )
    frame = frame.sample(fraction=1.0, shuffle=True, seed=seed).head(size)
    vectorizer = CountVectorizer(lowercase=True, min_df=least, token_pattern=r"[a-z0-9']+")
    matrix = vectorizer.fit_transform(frame[text].to_list())
    classes = frame[label].unique().sort()
    labels = frame[label].cast(pl.Enum(classes)).to_physical().cast(pl.Int64).to_list()
    return Counts.from_matrix(
        matrix, labels, tuple(classes), vectorizer.get_feature_names_out().tolist()
    )


def budget(options: argparse.Namespace, d: int) -> VerifySettings:
    """Settings from the command line."""
    return VerifySettings(
        d=d,
        eta=options.eta,
        seed=options.seed,
        max_norm=options.norm,
        tolerance=options.tolerance,
        max_seconds=options.seconds,
        resume=kept(options),
    )


def kept(options: argparse.Namespace) -> Path:
    """Where the flow of a long run is kept, so that it can be stopped and resumed."""
    options.out.mkdir(parents=True, exist_ok=True)
    decide = (
        options.documents,
        options.d,
        options.relevant,
        options.eta,
        options.seed,
        options.tolerance,
    )
    return options.out / f"{options.figure}-{'-'.join(map(str, decide))}.npz"


def report(found: Verification) -> None:
    """Claims, assumptions and cost of one verification."""
    for claim in found.claims:
        print(
            {True: "holds", False: "FAILS", None: "open"}[claim.holds],
            "|",
            claim.name,
            "|",
            claim.verdict,
        )
    for item in found.assumptions:
        outcome = {True: "holds", False: "FAILS", None: "not applicable"}[item.holds]
        print(outcome, "|", item.name, "|", item.verdict, item.types, item.documents)
    print({name: round(x, 1) for name, x in found.seconds.items()}, found.flow.to_dict())
    if found.margin is not None:
        print(found.margin.to_dict())
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def ticker():  # type: ignore[no-untyped-def]
    """Progress: a line every 30 seconds."""
    last = [time.monotonic()]

    def tick(stage: str, share: float) -> None:
        if time.monotonic() - last[0] > 30:
            last[0] = time.monotonic()
            print(f"  {stage} {share:.2%}", flush=True)

    return tick


def descent(options: argparse.Namespace) -> None:
    """Gradient descent and SGD on p beside the flow: n = 200, |S| = 70, T = 8, d = 1024, 5,000
    steps, medians over seeds.

    "Own max margin" is the angle of the end to the max-margin direction of the types that the run
    itself has on top.
    """
    print(
        "| step size | batch | log t | angle to the flow | loss / the flow's | own max margin | as "
        "the flow selects |"
    )
    print("|---|---|---|---|---|---|---|")
    for size, batch in itertools.product((0.1, 1.0, 10.0, 100.0), (None, 20)):
        found = []
        for seed in range(options.seeds):
            counts = single_token(200, 70, 8, 20, seed=seed)[0]
            start = initialise(70, 1024, seed=seed)
            step = one_step(counts, *start, eta=OneStep.default_size(counts))
            E = step.embeddings()
            w, p = E @ step.start.v, step.start.p
            flow = gradient_flow(counts, E, w, p, VerifySettings(max_norm=400.0))
            run = descend(counts, E, w, p, size, 5_000, batch, seed)
            reduced = coordinates(E)[0]
            ends = run.coordinates[-1], flow.coordinates[-1]
            masks = [highest_entries(counts, (reduced @ z)[counts.matrix.indices]) for z in ends]
            margin = max_margin(counts, reduced, masks[0])
            z = ends[0]
            own = (
                np.nan
                if margin.status != "solved"
                else float(
                    np.arccos(
                        np.clip(z @ margin.p / np.linalg.norm(z) / np.linalg.norm(margin.p), -1, 1)
                    )
                )
            )
            _, _, angle = run.beside(flow)
            loss = run.loss[-1] / np.interp(run.log_time[-1], flow.log_time[1:], flow.loss[1:])
            same = float(
                np.mean(np.minimum.reduceat(masks[0] == masks[1], counts.matrix.indptr[:-1]))
            )
            found.append((run.log_time[-1], angle[-1], loss, own, same))
        middle = np.nanmedian(np.array(found), axis=0)
        print(
            f"| {size:g} | {batch or 'all'} | " + " | ".join(f"{x:.3g}" for x in middle) + " |",
            flush=True,
        )


def classes(options: argparse.Namespace) -> None:
    """More classes, and v trained: K classes of two relevant types each, 12 documents a class, d =
    256, over seeds.

    "Angle · ‖p‖" at two ends: constant where p turns to the max-margin direction of its own
    selection as the theorem has it.
    """
    print("| K | v | own token on top | ‖p‖ at log t = 12, 18 | angle (rad) | angle · ‖p‖ | loss |")
    print("|---|---|---|---|---|---|---|")
    for k, train_v in itertools.product((3, 5, 10), (False, True)):
        found = []
        for seed in range(options.seeds):
            rng, labels = np.random.default_rng(seed), np.arange(12 * k) % k
            matrix = np.zeros((len(labels), 2 * k + 6))
            matrix[np.arange(len(labels)), 2 * labels + rng.integers(2, size=len(labels))] = 1
            for row in matrix:
                row[2 * k + rng.choice(6, 4, replace=False)] = 1
            counts = Counts.from_matrix(matrix, labels.tolist(), [str(c) for c in range(k)])
            step = one_step(counts, *initialise(counts.n_types, 256, k, seed), eta=60.0)
            E, start = step.embeddings(), step.start
            ends = [joint_flow(counts, E, start.v, start.p, train_v, end) for end in (12.0, 18.0)]
            angles = [own_margin(counts, E, one)[1] for one in ends]
            top = np.argmax(np.where(matrix > 0, ends[1].scores[-1], -np.inf), axis=1)
            norms = [one.norm[-1] for one in ends]
            found.append(
                (
                    np.mean(top // 2 == labels),
                    *norms,
                    *angles,
                    *np.multiply(norms, angles),
                    ends[1].loss[-1],
                )
            )
        share, *middle, loss = np.median(np.array(found), axis=0)
        pairs = " | ".join(
            f"{a:.3g}, {b:.3g}" for a, b in zip(middle[::2], middle[1::2], strict=True)
        )
        print(
            f"| {k} | {'trained' if train_v else 'fixed'} | {share:.0%} | {pairs} | {loss:.2g} |",
            flush=True,
        )


def phases(options: argparse.Namespace) -> None:
    """Phase diagrams: the limit over step size, dimension, documents and types, with and without
    leaks, drawn for docs/theory.md.

    Base: n = 60, |S| = 30, T = 6, 8 relevant types, d = 128; every curve to ‖p‖ = 1,000.
    """
    base = {
        "n": [60],
        "n_types": [30],
        "length": [6],
        "n_relevant": [8],
        "d": [128],
        "max_norm": [1000.0],
    }
    across = {
        "eta": [30.0, 100.0, 300.0, 1000.0],
        "d": [32, 64, 128, 256],
        "n": [20, 60, 120, 240],
        "n_types": [15, 30, 60, 120],
    }
    for x, values in across.items():
        cases = grid(base | {"leak": [0.0, 0.1, 0.3], "seed": range(options.seeds), x: values})
        found = run_sweep(cases, options.out / "phases")
        table = phase_table(found, x, "leak")
        table.write_csv(options.out / f"phases-{x}.csv")
        fates = (
            pl.DataFrame(found.rows, infer_schema_length=None)["limit_verdict"]
            .value_counts()
            .rows()
        )
        print(x, found.outcomes, fates, flush=True)
        for name, chart in phase_pictures(found, x, "leak").items():
            chart.save(options.out / f"{name}-{x.replace('_', '-')}.svg")


def highest_entries(counts: Counts, scores: np.ndarray) -> np.ndarray:
    """The stored entries of largest score in their document."""
    starts = counts.matrix.indptr[:-1]
    best = np.repeat(np.maximum.reduceat(scores, starts), np.diff(counts.matrix.indptr))
    return np.asarray(scores >= best - 1e-9)


def main() -> None:
    """Parse, run, time."""
    runs = {
        "classes": classes,
        "phases": phases,
        "descent": descent,
        "small": small,
        "large": large,
        "one-step": one_step_decay,
        "imdb": imdb,
        "relaxed": relaxed,
        "step-size": step_size,
        "subsets": subsets,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figure", choices=runs)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--eta", type=float, default=None)
    parser.add_argument("--norm", type=float, default=20_000.0)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--relevant", type=int, default=100)
    parser.add_argument("--documents", type=int, default=25_000)
    parser.add_argument("--d", type=int, default=512)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument(
        "--out", type=Path, default=Path(tempfile.gettempdir()) / "tokensieve-theory"
    )
    options = parser.parse_args()
    started = time.monotonic()
    runs[options.figure](options)
    print(f"wall time {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
