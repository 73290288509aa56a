"""Joint training of E, p and v: step by step against PyTorch's literal token-by-token model, and
its checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import tokensieve.theory.embeddings as module
from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.model.attention import accuracy, logits, loss_and_slope
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import (
    Start,
    TrainingSettings,
    initialise,
    train_embeddings,
)
from tokensieve.theory.generators import independent_tokens
from tokensieve.theory.one_step import one_step

N, TYPES, D = 30, 12, 6


def documents(classes: int = 2, seed: int = 0) -> Counts:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 4, (N, TYPES)) * rng.integers(0, 2, (N, TYPES))
    return Counts.from_matrix(
        matrix, rng.integers(0, classes, N).tolist(), [str(k) for k in range(classes)]
    )


def evaluate(counts: Counts, u: Any, w: Any) -> tuple[float, float]:
    f = logits(counts.matrix, u, w)
    return float(np.mean(loss_and_slope(f, counts.labels)[0])), accuracy(f, counts.labels)


def begin(classes: int = 2, seed: int = 1) -> Start:
    return initialise(TYPES, D, 1 if classes == 2 else classes, seed)


def in_torch(counts: Counts, start: Start, how: TrainingSettings) -> tuple[Any, Any, Any]:
    """The same training with every token embedded, softmax over tokens, autograd and
    torch.optim."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    E, p, v = (torch.tensor(x.copy(), dtype=torch.float64, requires_grad=True) for x in start)
    trained = [x for name, x in zip("Epv", (E, p, v), strict=True) if name not in how.frozen]
    kind = torch.optim.Adam if how.optimizer == "adam" else torch.optim.SGD
    optimizer = kind(trained, lr=how.learning_rate)
    dense = counts.matrix.toarray().astype(int)
    for step in range(how.steps):
        rows = range(N)
        if how.batch_size is not None:
            epoch, place = divmod(step, N // how.batch_size)
            order = np.random.default_rng([how.seed, epoch]).permutation(N)
            rows = order[place * how.batch_size : (place + 1) * how.batch_size]
        optimizer.zero_grad()
        loss = torch.zeros((), dtype=torch.float64)
        for k in rows:
            X = E[torch.tensor(np.repeat(np.arange(TYPES), dense[k]))]  # T × d
            f = torch.softmax(X @ p, 0) @ X @ v
            y = int(counts.labels[k])
            single = (
                torch.log1p(torch.exp(-(2 * y - 1) * f))
                if v.ndim == 1
                else -torch.log_softmax(f, 0)[y]
            )
            loss = loss + single / len(rows)
        loss.backward()
        optimizer.step()
    return tuple(x.detach().numpy() for x in (E, p, v))


CASES = [
    {"optimizer": "gd", "learning_rate": 0.5},
    {"optimizer": "gd", "learning_rate": 0.5, "batch_size": 7},
    {"optimizer": "adam"},
    {"optimizer": "adam", "batch_size": 7, "frozen": ()},
    {"optimizer": "adam", "frozen": ("E",)},
    {"optimizer": "gd", "learning_rate": 0.3, "frozen": ("p",)},
    {"optimizer": "adam", "frozen": ("E", "v")},
    {"optimizer": "adam", "frozen": ("p", "v")},
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("case", CASES, ids=[" ".join(map(str, case.values())) for case in CASES])
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_every_step_is_pytorchs(case: dict[str, Any], classes: int, steps: int) -> None:
    how = TrainingSettings(**({"dtype": "float64", "steps": steps, "seed": 3} | case))
    counts, start = documents(classes), begin(classes)
    counts = counts.rows(counts.lengths > 0)
    assert counts.n_documents == N, "every document needs a token in the literal model"
    ours = train_embeddings(counts, start, how)
    for name, mine, theirs in zip(
        "Epv", (ours.E, ours.p, ours.v), in_torch(counts, start, how), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11, err_msg=name)
        moved = not np.array_equal(mine, getattr(start, name))
        assert moved == (name not in how.frozen)


def test_one_step_of_descent_is_the_theorys_step() -> None:
    (counts, _), eta = independent_tokens(200, 40, 10, 20, seed=2), 3.0
    start = initialise(40, 64, seed=4)
    how = TrainingSettings("gd", eta, 1, frozen=("p", "v"), dtype="float64")
    np.testing.assert_allclose(
        train_embeddings(counts, start, how).E,
        one_step(counts, *start, eta).embeddings(),
        atol=1e-13,
    )


@pytest.mark.slow
def test_float32_stays_near_float64() -> None:
    (counts, _), start = independent_tokens(300, 60, 12, 30, seed=5), initialise(60, 32, seed=6)
    runs = [
        train_embeddings(counts, start, TrainingSettings(dtype=dtype, steps=40, frozen=()))  # type: ignore[arg-type]
        for dtype in ("float32", "float64")
    ]
    assert runs[0].E.dtype == np.float32
    np.testing.assert_allclose(runs[0].E, runs[1].E, atol=2e-3)
    np.testing.assert_allclose(
        runs[0].trajectory["train_loss"], runs[1].trajectory["train_loss"], rtol=1e-3
    )


@pytest.mark.parametrize("optimizer", ["gd", "adam"])
def test_same_bits_for_any_number_of_threads(
    optimizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (counts, _), start = independent_tokens(200, 300, 12, 100, seed=7), initialise(300, 400, seed=8)
    how = TrainingSettings(optimizer, 0.05, 12, batch_size=50, frozen=())
    runs = []
    for cores in (1, 2, 4):
        monkeypatch.setattr("tokensieve.arrays.n_threads", lambda cores=cores: cores)
        runs.append(train_embeddings(counts, start, how))
    for name in ("E", "p", "v", "scores", "values"):
        assert all(np.array_equal(getattr(runs[0], name), getattr(run, name)) for run in runs), name


@given(st.permutations(range(N)), st.integers(0, 50))
@settings(deadline=None, derandomize=True, max_examples=15)
def test_order_of_documents_does_not_matter(order: list[int], seed: int) -> None:
    counts, start, how = documents(seed=seed), begin(), TrainingSettings(steps=6, dtype="float64")
    one, other = (train_embeddings(c, start, how) for c in (counts, counts.rows(np.array(order))))
    np.testing.assert_allclose(one.E, other.E, rtol=1e-6, atol=1e-9)


@given(st.permutations(range(TYPES)))
@settings(deadline=None, derandomize=True, max_examples=15)
def test_order_of_types_moves_with_the_rows(order: list[int]) -> None:
    counts, start, how = documents(), begin(), TrainingSettings(steps=6, dtype="float64")
    turned = Counts.from_matrix(counts.matrix[:, order], counts.labels.tolist())
    one = train_embeddings(counts, start, how)
    other = train_embeddings(turned, Start(start.E[order], start.p, start.v), how)
    np.testing.assert_allclose(one.E[order], other.E, rtol=1e-6, atol=1e-9)


def test_turned_labels_turn_the_values() -> None:
    counts, start, how = documents(), begin(), TrainingSettings(steps=8, dtype="float64", frozen=())
    turned = Counts.from_matrix(counts.matrix, (1 - counts.labels).tolist())
    one = train_embeddings(counts, start, how)
    other = train_embeddings(turned, Start(start.E, start.p, -start.v), how)
    np.testing.assert_allclose(one.values, -other.values, atol=1e-9)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)


def test_trajectory_says_what_the_tables_give() -> None:
    counts, test = documents(), documents(seed=9)
    run = train_embeddings(
        counts,
        begin(),
        TrainingSettings(steps=7, record_every=3, dtype="float64"),
        {"validation": test},
    )
    assert run.steps.tolist() == run.trajectory["step"].to_list() == [0, 3, 6, 7]
    for row, u, w in zip(run.trajectory.to_dicts(), run.scores, run.values, strict=True):
        assert evaluate(counts, u, w) == pytest.approx((row["train_loss"], row["train_accuracy"]))
        assert evaluate(test, u, w) == pytest.approx(
            (row["validation_loss"], row["validation_accuracy"])
        )
    np.testing.assert_allclose(run.E @ run.p, run.scores[-1], atol=1e-12)
    np.testing.assert_allclose(run.E @ run.v, run.values[-1][:, 0], atol=1e-12)
    assert run.trajectory["validation_loss"][run.best()] == run.trajectory["validation_loss"].min()
    assert run.trajectory["norm_p"][-1] == pytest.approx(np.linalg.norm(run.p))


def test_accuracy_counts_right_answers() -> None:
    assert accuracy(np.array([[1.0], [-1.0], [0.0], [2.0]]), np.array([1, 0, 0, 0])) == 0.75
    assert accuracy(np.array([[1.0, 2, 0], [3, 2, 0]]), np.array([1, 1])) == 0.5


class Stopped(Exception):
    pass


def stop_at(share: float) -> Any:
    def tell(_: str, done: float) -> None:
        if done >= share:
            raise Stopped

    return tell


@pytest.mark.parametrize("batch_size", [None, 7])
@pytest.mark.parametrize("optimizer", ["gd", "adam"])
def test_resumed_to_the_same_bits(
    tmp_path: Path, optimizer: Any, batch_size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    how = TrainingSettings(optimizer, 0.05, 20, batch_size, (), record_every=4)
    counts, start, file = documents(3), begin(3), tmp_path / "state.safetensors"
    whole = train_embeddings(counts, start, how)
    for share in (0.3, 0.7):
        with pytest.raises(Stopped):
            train_embeddings(counts, start, how, checkpoint=file, progress=stop_at(share))
    resumed = train_embeddings(counts, start, how, checkpoint=file)
    for name in ("E", "p", "v", "steps", "scores", "values"):
        assert np.array_equal(getattr(whole, name), getattr(resumed, name)), name
    assert whole.trajectory.equals(resumed.trajectory)


def test_checkpoints_of_other_runs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    file, how = tmp_path / "state.safetensors", TrainingSettings(steps=3)
    counts, start = documents(), begin()
    train_embeddings(counts, start, how, checkpoint=file)
    for others in (
        (counts, start, TrainingSettings(steps=4)),
        (documents(seed=5), start, how),
        (counts, begin(seed=9), how),
    ):
        with pytest.raises(InputError, match="data, settings or"):
            train_embeddings(*others, checkpoint=file)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        train_embeddings(counts, start, how, checkpoint=file)
    assert [path.name for path in tmp_path.iterdir()] == ["state.safetensors"]


def test_start_is_left_alone_and_fingerprints_differ() -> None:
    start = begin()
    copy = [x.copy() for x in start]
    train_embeddings(documents(), start, TrainingSettings(frozen=(), dtype="float64"))
    assert all(np.array_equal(a, b) for a, b in zip(start, copy, strict=True))
    marks = {fingerprint(documents(seed=s), start.p, text) for s in (0, 1) for text in ("a", "b")}
    assert len(marks) == 4


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"optimizer": "sgd"}, "use 'adam' or 'gd'"),
        ({"dtype": "float16"}, "float32"),
        ({"frozen": ("q",)}, "cannot freeze"),
        ({"learning_rate": 0.0}, "learning rate"),
        ({"learning_rate": float("nan")}, "learning rate"),
        ({"steps": -1}, "whole numbers"),
        ({"batch_size": 0}, "whole numbers"),
        ({"record_every": 0}, "whole numbers"),
    ],
)
def test_settings_out_of_range(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        TrainingSettings(**bad)


def test_inputs_that_do_not_fit() -> None:
    counts, start, how = documents(), begin(), TrainingSettings(steps=1)
    with pytest.raises(InputError, match="no documents"):
        train_embeddings(counts.rows(np.arange(0)), start, how)
    with pytest.raises(InputError, match="do not fit 12 token types"):
        train_embeddings(counts, Start(start.E[1:], start.p, start.v), how)
    with pytest.raises(InputError, match="1 heads for 3 classes"):
        train_embeddings(documents(3), start, how)
    with pytest.raises(InputError, match="the test documents have different token types"):
        train_embeddings(counts, start, how, {"test": documents(3)})
    with pytest.raises(InputError, match="overflowed at step"):
        train_embeddings(
            counts, start, TrainingSettings("gd", 1e200, 5, frozen=(), dtype="float64")
        )


@pytest.mark.parametrize(
    "change", ["state", "deep", "shape", "missing", "extra", "byte", "list", "not a list"]
)
def test_a_checkpoint_of_other_content_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    file, how = tmp_path / "state.safetensors", TrainingSettings(steps=3)
    counts, start = documents(), begin()
    train_embeddings(counts, start, how, checkpoint=file)
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header, arrays = json.loads(whole[8 : 8 + length])["__metadata__"], load_arrays(whole)
    if change in ("state", "deep"):
        header["state"] = '{"step": "x", "rows": 5}' if change == "state" else "[" * 200_000
    elif change == "shape":
        arrays["E"] = arrays["E"][:1]
    elif change == "missing":
        del arrays["p"]
    elif change == "extra":
        arrays["__proto__"] = arrays["p"]
    content = save_arrays(arrays, header)
    if change == "byte":
        content = whole[:-1] + bytes([whole[-1] ^ 1])
    elif change in ("list", "not a list"):
        content = (2).to_bytes(8, "little") + (b"[]" if change == "list" else b"{}")
    file.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        train_embeddings(counts, start, how, checkpoint=file)
