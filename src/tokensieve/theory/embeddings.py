"""Embeddings E, `<cls>` vector p and output vector v trained together, with exact gradients that
never need n × T × d numbers.

With u = E p, w = E V and the count-form gradients a = ∂L/∂u, B = ∂L/∂w of
`tokensieve.model.attention`,

    ∇_E L = a pᵀ + B Vᵀ  (rank 1 + H)        ∇_p L = Eᵀ a        ∇_V L = Eᵀ B

(Wu, Shevchenko, Oymak, Mondelli, NeurIPS 2025, section 3; H = 1 head for two classes, K for K
classes). A step reads the counts once and E twice: once for u and w, and once for Eᵀ[a B] and the
update of E, which share a pass over its rows.

Gradient descent: x ← x − η ∇.  Adam: the rule of `tokensieve.model.adam`. Its moments of E are as
large as E; E and they are kept in float32 or float64, everything else in float64.

Rows of E are taken in blocks of a fixed size and sums over blocks run in order, so the result has
the same bits for any number of threads.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints, in_threads
from tokensieve.checkpoint import fingerprint, load, save
from tokensieve.errors import InputError
from tokensieve.kernels import compiled
from tokensieve.model.adam import BETA1, BETA2, CONSTANTS, adam_step
from tokensieve.model.attention import accuracy, gradient, logits, loss_and_slope
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Counts

# Rows of E in a block: they fit the nearest cache at d = 512.
BLOCK = 64
# A checkpoint is written so often, in seconds: rewriting E takes about one at |S| = 20,000.
SAVE_SECONDS = 60.0
# What a pass over the rows of E does with their gradient.
FROZEN = 0
DESCENT = 1
ADAM = 2
Array = NDArray[Any]  # of float32 or float64


class Start(NamedTuple):
    """The random start of Lemma 4.1.

    Attributes:
        E: embeddings E⁰, shape (|S|, d), entries N(0, 1/d).
        p: `<cls>` vector, shape (d,), entries N(0, 1/d).
        v: output vector of unit norm, shape (d,); with several heads orthonormal columns, shape (d,
            K).
    """

    E: Array
    p: Floats
    v: Floats


def initialise(n_types: int, d: int, heads: int = 1, seed: int = 0) -> Start:
    """Draw E⁰, p ~ N(0, I/d) and v: a uniformly random unit vector, or K orthonormal columns.

    Args:
        n_types: |S| ≥ 1.
        d: embedding dimension, at least the number of heads.
        heads: 1 for two classes with one output vector, K for K classes.
        seed: the same seed gives bit-identical results.
    """
    if n_types < 1 or heads < 1 or d < heads:
        raise InputError(
            f"cannot draw {n_types} embeddings of dimension {d} with {heads} heads: "
            "use at least one type and d ≥ heads"
        )
    rng = np.random.default_rng(seed)
    p = rng.standard_normal(d) / math.sqrt(d)
    directions = rng.standard_normal((d, heads))
    if heads == 1:
        v = directions[:, 0] / np.linalg.norm(directions)
    else:
        v = np.linalg.qr(directions)[0]
    E = rng.standard_normal((n_types, d))
    E /= math.sqrt(d)
    return Start(E, p, v)


@dataclass(frozen=True)
class TrainingSettings:
    """How E, p and v are trained.

    Attributes:
        optimizer: "adam" or "gd" (gradient descent).
        learning_rate: η > 0.
        steps: number of updates ≥ 0.
        batch_size: documents per step, drawn without replacement in seeded order; None is all of
            them.
        frozen: which of "E", "p" and "v" are not trained.
        dtype: "float32" or "float64", of E and its moments.
        record_every: steps between two records of the trajectory; start and end are always
            recorded.
        seed: order of the documents.
    """

    optimizer: Literal["adam", "gd"] = "adam"
    learning_rate: float = 0.01
    steps: int = 100
    batch_size: int | None = None
    frozen: tuple[str, ...] = ("v",)
    dtype: Literal["float32", "float64"] = "float32"
    record_every: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        problem = ""
        has_empty_batches = self.batch_size is not None and self.batch_size < 1
        if self.optimizer not in ("adam", "gd") or self.dtype not in ("float32", "float64"):
            problem = (
                f"optimizer {self.optimizer!r} with {self.dtype!r}: use 'adam' or 'gd', "
                "'float32' or 'float64'"
            )
        elif not set(self.frozen) <= {"E", "p", "v"}:
            problem = f"cannot freeze {list(self.frozen)}: name any of 'E', 'p', 'v'"
        elif not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            problem = (
                f"learning rate {self.learning_rate} is not a positive number; "
                "use 0.01, for example"
            )
        elif self.steps < 0 or self.record_every < 1 or has_empty_batches:
            problem = (
                f"{self.steps} steps, records every {self.record_every}, "
                f"batches of {self.batch_size}: use positive whole numbers"
            )
        if problem:
            raise InputError(problem)


@dataclass(frozen=True)
class Training:
    """A training run with its history.

    Attributes:
        E: embeddings at the end, shape (|S|, d).
        p, v: vectors at the end, shapes (d,) and (d,) or (d, K).
        steps: the recorded steps, shape (R,).
        scores: u = E p at each of them, shape (R, |S|).
        values: w = E v, shape (R, |S|, H).
        trajectory: one row per record: step, norm_p, norm_v, and for each set of documents
            NAME_loss and NAME_accuracy.
        settings: of the run.
        seconds: wall time of this call.
    """

    E: Array
    p: Floats
    v: Floats
    steps: Ints
    scores: Floats
    values: Floats
    trajectory: pl.DataFrame
    settings: TrainingSettings
    seconds: float

    def best(self) -> int:
        """The record with the lowest validation loss."""
        return int(np.argmin(self.trajectory["validation_loss"].to_numpy()))

    def to_dict(self) -> dict[str, Any]:
        """Settings, seconds and trajectory, ready for JSON."""
        path = self.trajectory.to_dict(as_series=False)
        return {"settings": asdict(self.settings), "seconds": self.seconds, "trajectory": path}


def train_embeddings(
    counts: Counts,
    start: Start,
    settings: TrainingSettings,
    others: dict[str, Counts] | None = None,
    checkpoint: Path | None = None,
    progress: Progress = silent,
) -> Training:
    """Train E, p and v (those that are not frozen) from a given start.

    Args:
        counts: n ≥ 1 documents to learn from.
        start: E (|S|, d), p (d,), v (d,) for two classes or (d, K); left as they are.
        settings: see `TrainingSettings`.
        others: name → documents over the same types that the trajectory also measures, for example
            validation and test.
        checkpoint: file that keeps the state; a run found there is resumed, with bit-identical
            results.
        progress: called with a text and the fraction done.

    An `InputError` if training overflows, or the checkpoint belongs to another run.
    """
    others = others or {}
    _check_shapes(counts, start, others)
    begun = saved = time.perf_counter()
    mark = fingerprint(sorted(asdict(settings).items()), *start, counts, *others.values())
    earlier = None if checkpoint is None else _Run.resume(checkpoint, mark)
    run = earlier or _Run.begin(start, settings)
    sets = {"train": counts} | others
    while run.step < settings.steps:
        table = run.table()
        batch = _documents_of_step(counts, settings, run.step)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = gradient(batch, table[:, 0], table[:, 1:])
        if not math.isfinite(slope.loss):
            raise InputError(f"training overflowed at step {run.step}: use a smaller learning rate")
        if run.step % settings.record_every == 0:
            run.record(table, sets, slope.f if batch is counts else None)
        run.step += 1
        _update(run.state, np.column_stack([slope.a, slope.b]), settings, run.step)
        if checkpoint is not None and time.perf_counter() - saved >= SAVE_SECONDS:
            run.save(checkpoint, mark)
            saved = time.perf_counter()
        progress("training", run.step / settings.steps)
    run.record(run.table(), sets, None)
    return run.finished(settings, start.v.ndim == 1, time.perf_counter() - begun)


@dataclass
class _Run:
    """A training run on its way.

    Attributes:
        state: E, p, v (rows are heads, shape (H, d), as those of E are types), and moments.
        step: updates so far.
        rows, tables: the records: rows of the trajectory, and [u w] of each type.
    """

    state: dict[str, Array]
    step: int
    rows: list[dict[str, float]]
    tables: list[Floats]

    @classmethod
    def begin(cls, start: Start, settings: TrainingSettings) -> _Run:
        """A run before its first step; gradient descent has no moments."""
        state = {
            "E": np.array(start.E, dtype=settings.dtype, order="C"),
            "p": np.array(start.p, dtype=np.float64),
            "v": np.array(np.atleast_2d(start.v.T), dtype=np.float64, order="C"),
        }
        if settings.optimizer == "adam":
            for name in sorted({"E", "p", "v"} - set(settings.frozen)):
                state[f"moment_{name}1"] = np.zeros_like(state[name])
                state[f"moment_{name}2"] = np.zeros_like(state[name])
        return cls(state, 0, [], [])

    @classmethod
    def resume(cls, checkpoint: Path, mark: str) -> _Run | None:
        """The run that a file keeps, if there is one."""
        stored = load(checkpoint, mark)
        if stored is None:
            return None
        state, about = stored
        tables = list(state.pop("tables"))
        return cls(state, about["step"], about["rows"], tables)

    def save(self, checkpoint: Path, mark: str) -> None:
        about = {"step": self.step, "rows": self.rows}
        save(checkpoint, mark, {**self.state, "tables": np.stack(self.tables)}, about)

    def finished(self, settings: TrainingSettings, has_one_head: bool, seconds: float) -> Training:
        """The result of a run, with v in the shape in which it was given."""
        path = pl.DataFrame(self.rows, infer_schema_length=None).cast({"step": pl.Int64})
        history = np.stack(self.tables)
        v = self.state["v"]
        return Training(
            E=self.state["E"],
            p=self.state["p"],
            v=v[0] if has_one_head else np.ascontiguousarray(v.T),
            steps=path["step"].to_numpy(),
            scores=history[:, :, 0],
            values=history[:, :, 1:],
            trajectory=path,
            settings=settings,
            seconds=seconds,
        )

    def table(self) -> Floats:
        """[u w] of each type, shape (|S|, 1 + H)."""
        return _project(self.state["E"], np.vstack([self.state["p"], self.state["v"]]))

    def record(self, table: Floats, sets: dict[str, Counts], f: Floats | None) -> None:
        """Measure every set of documents; f are the logits of the first if they are known."""
        row = {
            "step": self.step,
            "norm_p": float(np.linalg.norm(self.state["p"])),
            "norm_v": float(np.linalg.norm(self.state["v"])),
        }
        for name, documents in sets.items():
            if f is None or name != "train":
                f = logits(documents.matrix, table[:, 0], table[:, 1:])
            row[f"{name}_loss"] = float(np.mean(loss_and_slope(f, documents.labels)[0]))
            row[f"{name}_accuracy"] = accuracy(f, documents.labels)
        self.rows.append(row)
        self.tables.append(table)


def _check_shapes(counts: Counts, start: Start, others: dict[str, Counts]) -> None:
    """Raise an `InputError` for shapes or vocabularies that do not agree, or no documents."""
    heads = 1 if start.v.ndim == 1 else start.v.shape[1]
    if counts.n_documents == 0:
        raise InputError("there are no documents to train on: pass at least one")
    if start.E.shape != (counts.n_types, start.p.size) or start.v.shape[0] != start.p.size:
        shapes = f"embeddings {start.E.shape}, p {start.p.shape} and v {start.v.shape}"
        raise InputError(f"{shapes} do not fit {counts.n_types} token types")
    if heads != (1 if counts.n_classes == 2 else counts.n_classes):
        raise InputError(
            f"{heads} heads for {counts.n_classes} classes: "
            "use one head for two classes, else one each"
        )
    for name, other in others.items():
        if other.n_types != counts.n_types or other.classes != counts.classes:
            raise InputError(
                f"the {name} documents have different token types or classes from the training "
                "documents"
            )


def _documents_of_step(counts: Counts, settings: TrainingSettings, step: int) -> Counts:
    """The documents of a step: epoch after epoch a new order, each drawn from its own seed so that
    any step can be found."""
    size = settings.batch_size
    if size is None or size >= counts.n_documents:
        return counts
    epoch, place = divmod(step, counts.n_documents // size)
    order = np.random.default_rng([settings.seed, epoch]).permutation(counts.n_documents)
    return counts.rows(np.sort(order[place * size : (place + 1) * size]))


class _StepSize(NamedTuple):
    """What a pass over E does, and the factors of the t-th step; those of Adam correct its bias."""

    mode: int
    rate: float
    root: float

    @classmethod
    def of(cls, settings: TrainingSettings, t: int) -> _StepSize:
        if settings.optimizer != "adam":
            return cls(DESCENT, settings.learning_rate, root=1.0)
        rate = settings.learning_rate * (1 / (1 - BETA1**t))
        return cls(ADAM, rate, root=float(1 / np.sqrt(1 - BETA2**t)))


def _update(state: dict[str, Array], left: Floats, settings: TrainingSettings, t: int) -> None:
    """The t-th step: move E, p and v along their gradients at the same point."""
    size = _StepSize.of(settings, t)
    E = state["E"]
    no_moments = np.empty((0, 0), E.dtype)
    pull = _pull_and_update(
        E,
        state.get("moment_E1", no_moments),
        state.get("moment_E2", no_moments),
        left,
        right=np.vstack([state["p"], state["v"]]),
        mode=FROZEN if "E" in settings.frozen else size.mode,
        rate=size.rate,
        root=size.root,
    )
    for name, slope in (("p", pull[0]), ("v", pull[1:])):
        if name not in settings.frozen:
            state[name] -= _change(state, name, slope, size)


def _change(state: dict[str, Array], name: str, slope: Floats, size: _StepSize) -> Floats:
    """What a step takes from p or v; its moments are updated."""
    if size.mode != ADAM:
        return size.rate * slope
    m = state[f"moment_{name}1"]
    r = state[f"moment_{name}2"]
    step = getattr(adam_step, "py_func", adam_step)  # for arrays, as it was written
    m[:], r[:], change = step(slope, m, r, size.rate, size.root, CONSTANTS)
    return np.asarray(change)


def _project(E: Array, right: Floats) -> Floats:
    """[E p, E V] for the rows p, Vᵀ of `right`, shape (|S|, 1 + H)."""
    out = np.empty((len(E), len(right)))
    in_threads(lambda part: _row_products(E[part], right, out[part]), len(E), E.size)
    return out


def _pull_and_update(
    E: Array,
    m1: Array,
    m2: Array,
    left: Floats,
    right: Floats,
    mode: int,
    rate: float = 1.0,
    root: float = 1.0,
) -> Floats:
    """Pull the gradient back through E, and update E's rows in the same pass over them.

    Args:
        E: embeddings, shape (|S|, d); they change unless `mode` leaves them.
        m1, m2: Adam's moments of E, of the same shape; they change too.
        left, right: the factors of the gradient leftᵀ right, shapes (|S|, 1 + H) and (1 + H, d).
        mode: which update it is (`_update_rows`).
        rate, root: step size, and Adam's correction of the second moment.

    Returns:
        leftᵀ E before the update, shape (1 + H, d).
    """
    n_blocks = -(-len(E) // BLOCK)  # rounded up
    pull = np.zeros((n_blocks, *right.shape))
    kind = E.dtype.type
    constants = tuple(kind(x) for x in CONSTANTS)
    left = left.astype(kind)
    right = right.astype(kind)

    def update(part: slice) -> None:
        rows = slice(part.start * BLOCK, part.stop * BLOCK)
        _update_rows(
            E[rows],
            m1[rows],
            m2[rows],
            left[rows],
            right,
            mode,
            kind(rate),
            kind(root),
            constants,
            pull[part],
        )

    in_threads(update, len(pull), E.size)
    return np.asarray(pull.sum(axis=0))


@compiled(nogil=True, fastmath={"reassoc", "contract"})
def _row_products(E: Floats, right: Floats, out: Floats) -> None:
    """out = E rightᵀ, a row of E at a time."""
    for s in range(len(E)):
        for h in range(len(right)):
            total = 0.0
            for j in range(E.shape[1]):
                total += E[s, j] * right[h, j]
            out[s, h] = total


@compiled(nogil=True, error_model="numpy", fastmath={"contract"})
def _update_rows(
    E: Floats,
    m1: Floats,
    m2: Floats,
    left: Floats,
    right: Floats,
    mode: int,
    rate: float,
    root: float,
    constants: tuple[float, ...],
    pull: Floats,
) -> None:
    """pull[block] = Σ_s left_s E_sᵀ over the block's rows, then their update with the gradient
    left_s · right."""
    types, d = E.shape
    for block in range(len(pull)):
        g = np.empty(d, E.dtype)
        for s in range(block * BLOCK, min(types, (block + 1) * BLOCK)):
            if mode in (DESCENT, FROZEN) and not np.any(left[s]):
                continue
            g[:] = 0
            for h in range(len(right)):
                share = left[s, h]
                for j in range(d):
                    pull[block, h, j] += share * E[s, j]
                    g[j] += share * right[h, j]
            if mode == DESCENT:
                for j in range(d):
                    E[s, j] -= rate * g[j]
            elif mode == ADAM:
                for j in range(d):
                    m1[s, j], m2[s, j], change = adam_step(
                        g[j], m1[s, j], m2[s, j], rate, root, constants
                    )
                    E[s, j] -= change
