"""Deep models: against token sequences, finite differences, the exact one-layer model, and PyTorch's own training loop."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import fast_first, later
from tokensieve.errors import InputError
from tokensieve.model.attention import gradient, loss_and_slope
from tokensieve.model.attention import logits as exact_logits
from tokensieve.text.counts import Counts

if TYPE_CHECKING:
    from tokensieve.theory.experiments.deep import DeepSettings, DeepTraining

torch = later("torch")
deep = later("tokensieve.theory.experiments.deep")  # it imports PyTorch
KINDS = ("one-layer", "two-layer", "key-query", "mlp")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    """The tensors here are too small for two."""
    torch.set_num_threads(1)


QUIET = settings(deadline=None, derandomize=True)


def documents(seed: int, n: int = 14, types: int = 11, classes: int = 2, empty: int = 1) -> Counts:
    """Random counts in which type 0 speaks for the last class and type 1 for class 0; some documents are empty."""
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.6, size=(n, types))
    labels = rng.integers(classes, size=n)
    matrix[:, 0] += rng.poisson(1.5, n) * (labels == classes - 1)
    matrix[:, 1] += rng.poisson(1.5, n) * (labels == 0)
    matrix[:empty] = 0
    return Counts.from_matrix(matrix, labels, [str(k) for k in range(classes)])


def planted(seed: int, classes: int = 2) -> Counts:
    """400 documents of nine neutral types, in which types 0 … K−1 stand for their class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=400)
    matrix = rng.poisson(0.5, size=(400, 9 + classes))
    matrix[:, :classes] = rng.poisson(1.2, (400, classes)) * (labels[:, None] == np.arange(classes))
    return Counts.from_matrix(matrix, labels, [str(k) for k in range(classes)])


def random_parameters(kind: str, counts: Counts, d: int, seed: int) -> dict[str, Any]:
    """Every entry random and not small, so that no term of a formula is hidden."""
    found = deep.initial_parameters(
        counts.n_types,
        1 if counts.n_classes == 2 else counts.n_classes,
        deep.DeepSettings(kind, d=d),
    )
    rng = np.random.default_rng(seed)
    return {
        name: torch.tensor(rng.normal(size=x.shape) / d**0.25, requires_grad=True)
        for name, x in found.items()
    }


def token_answer(how: DeepSettings, P: dict[str, Any], tokens: list[int]) -> Any:
    """f of one document, token by token as the paper writes it: T × T attention, no counts, no types, no padding."""
    X = P["E"][tokens]
    W1, W2 = (
        P[name] if how.kind == "key-query" else torch.eye(X.shape[1]).to(X) for name in ("W1", "W2")
    )
    Z = X
    if how.kind in ("two-layer", "key-query"):
        rows = []
        for x in X:
            shrink = how.d**-0.5 if how.scaled else 1.0
            weights = torch.exp(torch.stack([x @ W1 @ other * shrink for other in X]))
            smooth = (
                sum(weight * other for weight, other in zip(weights, X, strict=True))
                / weights.sum()
            )
            rows.append(smooth + x if how.residual else smooth)
        Z = torch.stack(rows)
    weights = torch.exp(torch.stack([P["p"] @ W2 @ z for z in Z]))
    pooled = sum(weight * z for weight, z in zip(weights, Z, strict=True)) / weights.sum()
    if how.kind == "mlp":
        pooled = torch.clamp(P["W"] @ pooled, min=0)
    return pooled @ P["v"]


def token_loss(how: DeepSettings, P: dict[str, Any], counts: Counts) -> Any:
    total = 0.0
    for row, label in zip(counts.matrix.toarray().astype(int), counts.labels, strict=True):
        tokens = np.repeat(np.arange(row.size), row).tolist()
        heads = P["v"].shape[1]
        f = token_answer(how, P, tokens) if tokens else torch.zeros(heads).to(P["v"])
        if heads == 1:
            total = total + torch.log1p(torch.exp(-(2 * int(label) - 1) * f[0]))
        else:
            total = total - torch.log(torch.exp(f[label]) / torch.exp(f).sum())
    return total / counts.n_documents


def mean_loss(how: DeepSettings, parameters: dict[str, Any], counts: Counts) -> float:
    """The loss of all documents; each parameter's `.grad` is set to its gradient."""
    for x in parameters.values():
        x.grad = torch.zeros_like(x)
    return deep.run_batch(how, parameters, counts, np.arange(counts.n_documents), learn=True)[0]


def our_gradient(
    how: DeepSettings, P: dict[str, Any], counts: Counts
) -> tuple[float, dict[str, np.ndarray]]:
    loss = mean_loss(how, P, counts)
    return loss, {name: x.grad.numpy().copy() for name, x in P.items()}


def one_chunk(how: DeepSettings, P: dict[str, Any], counts: Counts) -> np.ndarray:
    """f of documents that all have a type, in their order."""
    chunk = deep.pad(counts, np.arange(counts.n_documents), P["E"])
    own = {name: x.detach() for name, x in P.items()}
    return deep.forward(how, own | {"E": own["E"][chunk[0]]}, chunk).numpy()


def in_turn(*values: Any) -> list[Any]:
    """Cases (kind, value): each kind with one of the two values in the fast suite, with the other in the slow one."""
    return fast_first(
        [(kind, values[(i + k) % 2]) for k in range(2) for i, kind in enumerate(KINDS)], len(KINDS)
    )


CASES = [{"kind": kind} for kind in KINDS] + [
    {"kind": "key-query", "scaled": True, "residual": True}
]


def test_every_kind_is_tested() -> None:
    assert deep.KINDS == KINDS


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_loss_and_gradients_are_those_of_the_token_sequences(
    case: dict[str, Any], classes: int
) -> None:
    counts, how = documents(1, classes=classes), deep.DeepSettings(d=5, **case)
    P = random_parameters(how.kind, counts, d=5, seed=2)
    loss = token_loss(how, P, counts)
    expected = torch.autograd.grad(loss, list(P.values()))
    found, gradients = our_gradient(how, P, counts)
    assert found == pytest.approx(loss.item(), rel=1e-12)
    for name, x in zip(P, expected, strict=True):
        assert np.abs(gradients[name]).max() > 1e-4, name
        np.testing.assert_allclose(gradients[name], x.numpy(), rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    counts, how = documents(3), deep.DeepSettings(kind, d=4)
    P = random_parameters(kind, counts, d=4, seed=4)
    _, gradients = our_gradient(how, P, counts)
    rng = np.random.default_rng(5)
    for name in P:
        along = rng.normal(size=tuple(P[name].shape))
        ends = [P | {name: P[name].detach() + step * torch.tensor(along)} for step in (1e-6, -1e-6)]
        losses = [mean_loss(how, moved, counts) for moved in ends]
        assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(
            (gradients[name] * along).sum(), rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_one_layer_is_the_exact_model(classes: int) -> None:
    counts, how = (
        documents(6, n=40, types=30, classes=classes, empty=0),
        deep.DeepSettings("one-layer", d=7),
    )
    counts = counts.rows(np.diff(counts.matrix.indptr) > 0)
    P = random_parameters("one-layer", counts, d=7, seed=7)
    E, p, V = (P[name].detach().numpy() for name in ("E", "p", "v"))
    exact = gradient(counts, E @ p, E @ V)
    np.testing.assert_allclose(one_chunk(how, P, counts), exact.f, atol=1e-10)
    loss, found = our_gradient(how, P, counts)
    assert loss == pytest.approx(exact.loss, rel=1e-12)
    np.testing.assert_allclose(found["E"], np.outer(exact.a, p) + exact.b @ V.T, atol=1e-10)
    np.testing.assert_allclose(found["p"], E.T @ exact.a, atol=1e-10)
    np.testing.assert_allclose(found["v"], E.T @ exact.b, atol=1e-10)


def test_key_query_with_identities_is_two_layer() -> None:
    counts = documents(8, empty=0)
    counts = counts.rows(np.diff(counts.matrix.indptr) > 0)
    plain = random_parameters("two-layer", counts, d=6, seed=8)
    one = one_chunk(deep.DeepSettings("two-layer", d=6), plain, counts)
    identities = {name: torch.eye(6).double() for name in ("W1", "W2")}
    other = one_chunk(deep.DeepSettings("key-query", d=6), plain | identities, counts)
    np.testing.assert_allclose(one, other, rtol=1e-13)
    assert np.ptp(one) > 0.1


def test_the_start_has_the_stated_spread() -> None:
    for kind, names, variance in (
        ("key-query", ("E", "p", "W1", "W2"), 1),
        ("mlp", ("E", "p", "W"), 2),
    ):
        P = deep.initial_parameters(500, 1, deep.DeepSettings(kind, d=400, dtype="float64"))
        for name in names:
            spread = (variance if name == "W" else 1) / 400
            error = 4 * np.sqrt(2 / P[name].numel())
            assert float(P[name].square().mean()) == pytest.approx(spread, rel=error)
        assert float(P["v"].norm()) == pytest.approx(1.0)
        larger = deep.initial_parameters(
            500, 1, deep.DeepSettings(kind, d=400, dtype="float64", start_std=1.0)
        )
        assert torch.allclose(larger["E"], 20 * P["E"]) and torch.equal(larger["p"], P["p"])


def test_score_of_key_query_is_read_through_its_second_matrix() -> None:
    counts = documents(9, classes=3)
    P = random_parameters("key-query", counts, d=4, seed=10)
    score, value = deep.scores_and_values("key-query", P)
    E, p, W2, V = (P[name].detach().numpy() for name in ("E", "p", "W2", "v"))
    np.testing.assert_allclose(score, [p @ W2 @ e for e in E], atol=1e-14)
    np.testing.assert_allclose(value, [[e @ v for v in V.T] for e in E], atol=1e-14)


@pytest.mark.slow
@QUIET
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    extra=st.integers(0, 6),
    mates=st.permutations(range(1, 14)),
    cut=st.integers(1, 13),
)
def test_padding_mates_and_order_change_nothing(
    kind: str, seed: int, extra: int, mates: list[int], cut: int
) -> None:
    counts = documents(seed % 50, empty=1)
    counts = counts.rows(np.diff(counts.matrix.indptr) > 0)
    P = random_parameters(kind, counts, d=5, seed=seed)
    chosen = np.array([k for k in mates if k < counts.n_documents])[:cut]

    def values_and_gradients(group: np.ndarray, padding: int) -> tuple[Any, list[Any]]:
        chunk = deep.pad(counts, group, P["E"])
        more = torch.zeros(len(group), padding)
        padded = deep.Chunk(
            types=chunk.types,
            positions=torch.cat([chunk.positions, more.long()], dim=1),
            log_counts=torch.cat([chunk.log_counts, more.double() - torch.inf], dim=1),
        )
        E = P["E"].detach()[chunk.types].requires_grad_()
        f = deep.forward(deep.DeepSettings(kind, d=5), P | {"E": E}, padded)
        return f, [f, *torch.autograd.grad(f.sum(), [E, P["p"], P["v"]])]

    together, first = values_and_gradients(chosen, extra)
    alone = torch.cat([values_and_gradients(np.array([k]), 0)[0] for k in chosen])
    np.testing.assert_allclose(together.detach(), alone.detach(), rtol=1e-12, atol=1e-12)
    for x, y in zip(first, values_and_gradients(chosen, 0)[1], strict=True):
        np.testing.assert_allclose(x.detach(), y.detach(), rtol=1e-12, atol=1e-12)


@QUIET
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), exponent=st.integers(0, 9))
def test_chunks_hold_each_document_once_within_the_budget(
    seed: int, kind: str, exponent: int
) -> None:
    counts = documents(seed, n=30, empty=3)
    batch = np.random.default_rng(seed).permutation(30)[:20]
    sizes = np.diff(counts.matrix.indptr)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tokensieve.theory.experiments.deep.CPU_BUDGET", 2**exponent)
        found = deep.chunks(counts, batch, deep.DeepSettings(kind, d=4, device="cpu"))
    assert sorted(np.concatenate(found)) == sorted(k for k in batch if sizes[k])
    for chunk in found:
        longest = sizes[chunk].max()
        width = max(4, longest) if kind in ("two-layer", "key-query") else 1
        assert len(chunk) == 1 or len(chunk) * longest * width <= 2**exponent


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_of_chunks_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = documents(11, n=30)
    P = random_parameters(kind, counts, d=5, seed=12)
    how = deep.DeepSettings(kind, d=5, device="cpu")
    loss, whole = our_gradient(how, P, counts)
    monkeypatch.setattr("tokensieve.theory.experiments.deep.CPU_BUDGET", 100)
    again, parts = our_gradient(how, P, counts)
    assert again == pytest.approx(loss, rel=1e-13)
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-11, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "optimizer"), in_turn("adam", "sgd"))
def test_full_batch_training_is_that_of_pytorch_on_token_sequences(
    kind: str, optimizer: str
) -> None:
    counts = documents(13)
    given = deep.DeepSettings(
        kind,
        d=4,
        epochs=4,
        batch_size=14,
        learning_rate=0.05,
        optimizer=optimizer,
        dtype="float64",
        seed=3,
    )
    result = deep.DeepTraining.fit(counts, given)
    P = {
        name: x.requires_grad_()
        for name, x in deep.initial_parameters(counts.n_types, 1, given).items()
    }
    make = torch.optim.Adam if optimizer == "adam" else torch.optim.SGD
    steps = make(list(P.values()), lr=0.05)
    losses = []
    for _ in range(4):
        steps.zero_grad()
        loss = token_loss(given, P, counts)
        loss.backward()
        losses.append(loss.item())
        steps.step()
    score, value = deep.scores_and_values(kind, P)
    assert result.trajectory["train_loss"].to_list()[1:] == pytest.approx(losses, rel=1e-10)
    np.testing.assert_allclose(result.scores[-1], score, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.values[-1], value, rtol=1e-8, atol=1e-10)


def test_minibatches_are_stepped_one_after_the_other() -> None:
    counts = documents(14, n=12, empty=0)
    given = deep.DeepSettings(
        "two-layer",
        d=4,
        epochs=2,
        batch_size=5,
        learning_rate=0.1,
        optimizer="sgd",
        dtype="float64",
    )
    P = deep.initial_parameters(counts.n_types, 1, given)
    for epoch in range(2):
        order = np.random.default_rng([0, epoch]).permutation(12)
        for batch in (order[:5], order[5:10], order[10:]):
            leaves = {name: x.detach().requires_grad_() for name, x in P.items()}
            grads = torch.autograd.grad(
                token_loss(given, leaves, counts.rows(batch)), list(leaves.values())
            )
            P = {
                name: x.detach() - 0.1 * g
                for (name, x), g in zip(leaves.items(), grads, strict=True)
            }
    np.testing.assert_allclose(
        deep.DeepTraining.fit(counts, given).scores[-1],
        deep.scores_and_values("two-layer", P)[0],
        rtol=1e-9,
        atol=1e-12,
    )


def same(one: DeepTraining, other: DeepTraining) -> bool:
    return (
        np.array_equal(one.scores, other.scores)
        and np.array_equal(one.values, other.values)
        and one.trajectory.equals(other.trajectory)
    )


def small(**changed: Any) -> DeepSettings:
    usual = {"kind": "two-layer", "d": 8, "epochs": 4, "batch_size": 16, "learning_rate": 0.05}
    found: DeepSettings = deep.DeepSettings(**usual | changed)
    return found


def test_the_record_of_least_validation_loss_and_early_stopping() -> None:
    counts, validation, test = (documents(seed, n=60, types=40) for seed in (17, 18, 19))
    given, others = (
        small(kind="one-layer", epochs=60, patience=2),
        {"validation": validation, "test": test},
    )
    result = deep.DeepTraining.fit(counts, given, others)
    losses = result.trajectory["validation_loss"].to_list()
    assert len(losses) < 61
    assert result.best() == int(np.argmin(losses)) == len(losses) - 3 > 0
    for name, part in others.items():
        f = exact_logits(part.matrix, result.scores[result.best()], result.values[result.best()])
        row = result.trajectory.row(result.best(), named=True)
        assert row[f"{name}_loss"] == pytest.approx(
            loss_and_slope(f, part.labels)[0].mean(), rel=1e-5
        )
        assert row[f"{name}_accuracy"] == np.mean((f[:, 0] > 0) == (part.labels == 1))
    whole = deep.DeepTraining.fit(counts, replace(given, patience=None, epochs=len(losses)), others)
    assert whole.trajectory.height == len(losses) + 1 and whole.trajectory[:-1].equals(
        result.trajectory
    )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "classes"), in_turn(2, 3))
def test_tokens_that_decide_are_found(kind: str, classes: int) -> None:
    counts, test = (planted(seed, classes) for seed in (21, 23))
    result = deep.DeepTraining.fit(counts, small(kind=kind, d=16, epochs=6), {"test": test})
    # the others hold no deciding token: e^−1.2 of them
    assert result.trajectory["test_accuracy"][-1] > (0.84 if classes == 2 else 0.76)
    score, value = result.scores[-1], result.values[-1]
    assert score[:classes].min() > score[classes:].max()
    if kind == "mlp":
        return
    both = value if classes == 3 else np.hstack([-value, value])
    assert both.shape == (counts.n_types, classes)
    assert both[:classes].argmax(axis=0).tolist() == list(range(classes))


def test_one_seed_one_result_and_progress() -> None:
    seen: list[tuple[str, float]] = []
    counts = documents(24, n=40)
    result = deep.DeepTraining.fit(
        counts, small(), progress=lambda stage, share: seen.append((stage, share))
    )
    shares = [share for _, share in seen]
    assert {stage for stage, _ in seen} == {"two-layer"}
    assert len(shares) == 12 and shares == sorted(shares) and shares[-1] == 1.0
    assert result.trajectory["step"].to_list() == [0, 1, 2, 3, 4]
    assert same(result, deep.DeepTraining.fit(counts, small()))
    assert not np.array_equal(result.scores, deep.DeepTraining.fit(counts, small(seed=1)).scores)


class Interrupted(Exception): ...


def interrupted_at(share: float) -> Any:
    def progress(stage: str, done: float) -> None:
        if done >= share:
            raise Interrupted

    return progress


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("kind", ["two-layer", "mlp"])
def test_an_interrupted_run_goes_on_to_the_same_numbers(
    kind: str, optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokensieve.theory.experiments.deep.SAVE_SECONDS", 0.0)
    counts, others = documents(25, n=60), {"validation": documents(26, n=30)}
    given = small(kind=kind, optimizer=optimizer)
    path = tmp_path / "run.safetensors"
    for share in (0.1, 0.4, 0.9):
        with pytest.raises(Interrupted):
            deep.DeepTraining.fit(counts, given, others, interrupted_at(share), path)
    resumed = deep.DeepTraining.fit(counts, given, others, checkpoint=path)
    assert same(resumed, deep.DeepTraining.fit(counts, given, others))
    assert same(deep.DeepTraining.fit(counts, given, others, checkpoint=path), resumed)
    assert [x.name for x in tmp_path.iterdir()] == [path.name]
    for other in (replace(given, learning_rate=0.1), replace(given, scaled=True)):
        with pytest.raises(InputError, match="data, settings or"):
            deep.DeepTraining.fit(counts, other, others, checkpoint=path)
    with pytest.raises(InputError, match="data, settings or"):
        deep.DeepTraining.fit(
            replace(counts, labels=1 - counts.labels), given, others, checkpoint=path
        )


def test_wrong_documents() -> None:
    counts = documents(30)
    with pytest.raises(InputError, match="the validation part has no documents"):
        deep.DeepTraining.fit(counts, small(), {"validation": counts.rows(np.array([], dtype=int))})
    with pytest.raises(InputError, match="the test and training parts have different token types"):
        deep.DeepTraining.fit(counts, small(), {"test": documents(30, types=12)})
    with pytest.raises(InputError, match="3 heads"):
        deep.DeepTraining.fit(documents(30, classes=3), small(d=2))


def test_training_that_diverges_is_refused() -> None:
    with pytest.raises(InputError, match="training diverged"):
        deep.DeepTraining.fit(documents(31, n=40), small(learning_rate=1e38))


def test_without_pytorch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tokensieve.theory.experiments.deep", raising=False)
    with pytest.raises(InputError) as caught:
        importlib.import_module("tokensieve.theory.experiments.deep")
    assert "pip install tokensieve[torch]" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_gives_the_answers_of_the_cpu(kind: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    counts, others = documents(32, n=60), {"validation": documents(33, n=30)}
    given = small(kind=kind, dtype="float64")
    one, other = (
        deep.DeepTraining.fit(counts, replace(given, device=name), others)
        for name in ("cpu", "cuda")
    )
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-8)
    np.testing.assert_allclose(one.values, other.values, atol=1e-8)
