"""The max-margin problem by our active set, by DAQP and by Clarabel, each inside the same constraint generation.

    python benchmarks/solvers.py [--runs 3] [--seconds 100]

Only what solves the pairs written down so far differs: the choice of pairs, the reduction and the certificate are the same code.
DAQP (Arnström, Bemporad & Axehill 2022, a dual active set in C) goes on from its last multipliers, as ours does; the interior
point begins anew each round. Embeddings are those of one step; a direction drawn at random selects the highest-scored type of each
document, so that every problem has a solution. Processor seconds, one thread. Needs daqp (pip install daqp) and the data
(machine.py).
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import scipy.sparse as sp

from machine import described
from theory import highest_entries, real
from tokensieve.model.embeddings import initialise
from tokensieve.text.counts import Counts
from tokensieve.theory.generators import single_token
from tokensieve.theory.geometry import coordinates
from tokensieve.theory.limit import margin
from tokensieve.theory.limit.margin import ActiveSet
from tokensieve.theory.one_step import OneStep, one_step


class Written:
    """Pairs so far and a solver for them, in the place of our active set."""

    def __init__(self, E: np.ndarray) -> None:
        self._E = E
        self.pairs = np.zeros((0, 2), np.int64)
        self.multipliers = np.zeros(0)

    def add(self, pairs: np.ndarray, steps: int) -> tuple[np.ndarray, str]:
        """Take in more pairs and solve all of them."""
        self.pairs = np.concatenate([self.pairs, pairs])
        D = self._E[self.pairs[:, 0]] - self._E[self.pairs[:, 1]]
        self.multipliers, status = self.solve(D, np.concatenate([self.multipliers, np.zeros(len(pairs))]))
        return D.T @ self.multipliers, status


class Daqp(Written):
    """DAQP to a feasibility of 1e-10, warm."""

    def solve(self, D: np.ndarray, warm: np.ndarray) -> tuple[np.ndarray, str]:
        import daqp

        rows, r = D.shape
        start = {"dual_start": -warm} if warm.any() else {}
        _, _, flag, info = daqp.solve(
            np.eye(r), np.zeros(r), np.ascontiguousarray(D), np.full(rows, 1e30), np.ones(rows), np.zeros(rows, np.int32),
            primal_tol=1e-10, iter_limit=1_000_000, **start,
        )  # fmt: skip
        return np.maximum(-np.asarray(info["lam"]), 0.0), "solved" if flag == 1 else "stopped early"


class Clarabel(Written):
    """Clarabel's interior point, to 1e-10."""

    def solve(self, D: np.ndarray, warm: np.ndarray) -> tuple[np.ndarray, str]:
        import clarabel

        rows, r = D.shape
        scale = float(np.linalg.norm(D, axis=1).max())
        options = clarabel.DefaultSettings()
        options.verbose, options.max_threads = False, 1
        options.tol_gap_rel = options.tol_gap_abs = options.tol_feas = 1e-10
        cones = [clarabel.NonnegativeConeT(rows)]
        eye = sp.eye_array(r, format="csc")
        answer = clarabel.DefaultSolver(
            eye, np.zeros(r), sp.csc_array(-D / scale), -np.ones(rows), cones, options
        ).solve()
        lam = np.maximum(np.asarray(answer.z), 0.0)
        # An interior point leaves every multiplier positive; faint ones mean zero.
        lam = np.where(lam < 1e-9 * lam.max(), 0.0, lam) / scale**2
        return lam, "solved" if str(answer.status) == "Solved" else "stopped early"


SIDES = {"tokensieve": ActiveSet, "DAQP": Daqp, "Clarabel": Clarabel}


def problems() -> list[tuple[str, Counts, np.ndarray, np.ndarray]]:
    """Name, documents, embeddings, the selected entries."""
    sources = {
        "Assumption 1, n = 200": (single_token(200, 70, 8, 20, seed=0)[0], 1024),
        "Assumption 1, n = 2,000": (single_token(2_000, 1_000, 50, 100, seed=0)[0], 1024),
        "Assumption 1, n = 10,000": (single_token(10_000, 5_000, 50, 100, seed=0)[0], 1024),
    }
    for documents in (300, 1_000, 5_000):
        one = argparse.Namespace(data=None, documents=documents)
        sources[f"IMDB, n = {documents:,}"] = real("imdb_train.parquet", "label", one), 512
    out = []
    for name, (counts, d) in sources.items():
        step = one_step(counts, *initialise(counts.n_types, d, seed=0), eta=OneStep.default_size(counts))
        E, _ = coordinates(step.embeddings())
        scores = E @ np.random.default_rng(0).standard_normal(E.shape[1])
        out.append((name, counts, E, highest_entries(counts, scores[counts.matrix.indices])))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=100.0, help="a solver that took longer is not tried on later ones"
    )
    options = parser.parse_args()
    print(described("daqp", "clarabel") + "\n")
    print("| problem | r | solver | seconds | rounds | pairs written | tight pairs | duality gap | smallest margin |")
    print("|---|---|---|---|---|---|---|---|---|")
    slow: set[str] = set()
    compiled = single_token(20, 70, 8, 20, seed=0)[0]
    margin.max_margin(compiled, np.eye(70), highest_entries(compiled, compiled.matrix.indices / 1.0))
    for name, counts, E, selected in problems():
        seconds: dict[str, list[float]] = {side: [] for side in SIDES if side not in slow}
        found = {}
        for _ in range(options.runs):
            for side in [*seconds]:
                margin.ActiveSet = SIDES[side]  # type: ignore[misc,assignment]
                start = time.process_time()
                found[side] = margin.max_margin(counts, E, selected, max_seconds=options.seconds)
                seconds[side].append(time.process_time() - start)
                if found[side].status != "solved" or seconds[side][-1] > options.seconds:
                    slow.add(side)
        for side, spent in seconds.items():
            one = found[side]
            low, high = min(spent), max(spent)
            print(
                f"| {name} | {E.shape[1]} | {side} | {statistics.median(spent):.3f} ({low:.3f} … {high:.3f}) | {one.rounds} | "
                f"{one.constraints:,} | {len(one.pairs):,} | {one.duality_gap:.1e} | 1 {one.smallest_margin - 1:+.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
