"""The theory over many seeds, sizes, step sizes and dimensions: in parallel, resumable, with
failures counted.

Each run is one `verify` on `single_token` data, kept as one small JSON file whose name is a digest
of its settings; a sweep that is started again runs only what is missing. A run that fails is a row
like any other, with its error.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from tokensieve.files import write_all
from tokensieve.progress import Progress
from tokensieve.theory.generators import single_token
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import verify

# Of the limit, what a row keeps.
LIMIT = (
    "verdict",
    "dimension_v",
    "curvature_f1",
    "curvature_f3",
    "pulling_pairs",
    "is_max_margin",
    "angle_times_norm",
    "one_sided_selected",
    "prediction_error",
)


@dataclass(frozen=True)
class Case:
    """One run: sizes and options of `single_token`, dimension, first step (None: the default),
    seed, and the flow's budget."""

    n: int = 200
    n_types: int = 70
    length: int = 8
    n_relevant: int = 20
    relevant_per_document: int = 1
    leak: float = 0.0
    label_rule: str = "token"
    d: int = 1024
    eta: float | None = None
    seed: int = 0
    max_norm: float = 20_000.0
    tolerance: float = 1e-5
    max_steps: int = 3_000

    @property
    def name(self) -> str:
        """Digest of the settings."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Sweep:
    """All rows, and how many runs came to which end ("failed" for those with an error)."""

    rows: list[dict[str, Any]]
    outcomes: dict[str, int]


def grid(options: Mapping[str, Sequence[Any]]) -> list[Case]:
    """Every combination of the values given for the fields of `Case`."""
    return [
        Case(**dict(zip(options, values, strict=True)))
        for values in itertools.product(*options.values())
    ]


def run_case(case: Case) -> dict[str, Any]:
    """One run as a flat row; a run that fails keeps its error."""
    row: dict[str, Any] = asdict(case)
    try:
        counts, relevance = single_token(
            case.n,
            case.n_types,
            case.length,
            case.n_relevant,
            case.relevant_per_document,
            case.leak,
            case.label_rule,
            seed=case.seed,
        )
        settings = VerifySettings(
            d=case.d,
            eta=case.eta,
            seed=case.seed,
            max_norm=case.max_norm,
            tolerance=case.tolerance,
            max_steps=case.max_steps,
        )
        important = relevance != 0
        if case.label_rule == "xor":
            important = np.arange(case.n_types) < case.n_relevant
        found = verify(counts, settings, important).to_dict()
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return row | {"verdict": "failed", "error": str(error)}
    flow, margin, step = found["flow"], found["margin"], found["one_step"]
    keep = (
        "verdict",
        "norm",
        "log_time",
        "loss",
        "cosine",
        "angle",
        "exponent",
        "standard_error",
        "important_selected",
        "rises",
    )
    row |= {name: flow[name] for name in keep}
    limit = found["limit"]
    row |= {f"limit_{name}": limit[name] for name in LIMIT}
    row["tied_share"] = limit["tied_documents"] / case.n
    row |= {
        f"margin_{name}": margin[name]
        for name in ("status", "duality_gap", "kkt_residual", "smallest_margin")
    }
    row |= {
        name: step[name]
        for name in ("slope", "expected_slope", "r2", "relative_remainder", "bound", "bound_holds")
    }
    return row | {"eta": step["eta"], "seconds": sum(found["seconds"].values()), "error": None}


def run_sweep(
    cases: Iterable[Case], folder: Path, jobs: int | None = None, progress: Progress | None = None
) -> Sweep:
    """Run what is missing in a folder, and return all rows in the order of the cases.

    Args:
        cases: the runs.
        folder: one JSON file per run, made if it does not exist; on a cluster every worker must be
            able to write it.
        jobs: processes; each uses one thread of its own when there are several. None: as many as
            `joblib.parallel_config` says, one outside of it. Its backends (loky, Dask's, Ray's) all
            give the same rows.
        progress: called with ("sweep", share done) after each run; where the backend returns all at
            once (Ray's), at the end.
    """
    cases = list(cases)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [case for case in cases if not (folder / f"{case.name}.json").exists()]
    try:
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    except ValueError:  # the backend knows lists only
        parallel = Parallel(n_jobs=jobs)
    done = parallel(delayed(_run_and_keep)(case, folder) for case in missing)
    for count, _ in enumerate(done, start=len(cases) - len(missing) + 1):
        if progress is not None:
            progress("sweep", count / len(cases))
    rows = [
        json.loads((folder / f"{case.name}.json").read_text(encoding="utf-8")) for case in cases
    ]
    verdicts = [str(row["verdict"]) for row in rows]
    return Sweep(rows, {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))})


def _run_and_keep(case: Case, folder: Path) -> None:
    write_all(folder, {f"{case.name}.json": json.dumps(run_case(case))})
