"""Deep models: against token sequences, finite differences, the exact one-layer model, and PyTorch's own training loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binned_statistic, spearmanr

from tokensieve.errors import InputError
from tokensieve.files import write_all
from tokensieve.model.attention import answers as exact_answers
from tokensieve.model.attention import gradient, loss_and_slope
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import Documents, count_corpus

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install tokensieve[torch]")

from safetensors.torch import save

from tokensieve.reproduce.deep import KINDS, DeepResult, DeepSettings, chunks, fit_deep
from tokensieve.reproduce.deep.chunks import add_gradient, answer_all, pad, plan, workers
from tokensieve.reproduce.deep.models import Chunk, answers, start, tables

QUIET = settings(deadline=None, derandomize=True, max_examples=30)
CPU = torch.device("cpu")


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
    found = start(counts.n_types, 1 if counts.n_classes == 2 else counts.n_classes, DeepSettings(kind, d=d))
    rng = np.random.default_rng(seed)
    return {name: torch.tensor(rng.normal(size=x.shape) / d**0.25, requires_grad=True) for name, x in found.items()}


def token_answer(kind: str, P: dict[str, Any], tokens: list[int]) -> Any:
    """f of one document, token by token as the paper writes it: T × T attention, no counts, no types, no padding."""
    X = P["E"][tokens]
    W1, W2 = (P[name] if kind == "key-query" else torch.eye(X.shape[1]).to(X) for name in ("W1", "W2"))
    Z = X
    if kind in ("two-layer", "key-query"):
        rows = []
        for x in X:
            weights = torch.exp(torch.stack([x @ W1 @ other for other in X]))
            rows.append(sum(weight * other for weight, other in zip(weights, X, strict=True)) / weights.sum())
        Z = torch.stack(rows)
    weights = torch.exp(torch.stack([P["p"] @ W2 @ z for z in Z]))
    pooled = sum(weight * z for weight, z in zip(weights, Z, strict=True)) / weights.sum()
    if kind == "mlp":
        pooled = torch.clamp(P["W"] @ pooled, min=0)
    return pooled @ P["v"]


def token_loss(kind: str, P: dict[str, Any], counts: Counts) -> Any:
    total = 0.0
    for row, label in zip(counts.matrix.toarray().astype(int), counts.labels, strict=True):
        tokens = np.repeat(np.arange(row.size), row).tolist()
        heads = P["v"].shape[1]
        f = token_answer(kind, P, tokens) if tokens else torch.zeros(heads).to(P["v"])
        if heads == 1:
            total = total + torch.log1p(torch.exp(-(2 * int(label) - 1) * f[0]))
        else:
            total = total - torch.log(torch.exp(f[label]) / torch.exp(f).sum())
    return total / counts.n_documents


def our_gradient(kind: str, P: dict[str, Any], counts: Counts) -> tuple[float, dict[str, np.ndarray]]:
    with workers(CPU) as run:
        total = add_gradient(kind, P, counts, np.arange(counts.n_documents), run)
    return total / counts.n_documents, {name: x.grad.numpy().copy() for name, x in P.items()}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradients_are_those_of_the_token_sequences(kind: str, classes: int) -> None:
    counts = documents(1, classes=classes)
    P = random_parameters(kind, counts, d=5, seed=2)
    loss = token_loss(kind, P, counts)
    expected = torch.autograd.grad(loss, list(P.values()))
    found, gradients = our_gradient(kind, P, counts)
    assert found == pytest.approx(loss.item(), rel=1e-12)
    for name, x in zip(P, expected, strict=True):
        assert np.abs(gradients[name]).max() > 1e-4, name
        np.testing.assert_allclose(gradients[name], x.numpy(), rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    counts = documents(3)
    P = random_parameters(kind, counts, d=4, seed=4)
    _, gradients = our_gradient(kind, P, counts)
    rng = np.random.default_rng(5)
    for name in P:
        along = rng.normal(size=tuple(P[name].shape))
        losses = []
        for step in (1e-6, -1e-6):
            moved = P | {name: P[name].detach() + step * torch.tensor(along)}
            with workers(CPU) as run:
                f = answer_all(kind, moved, counts, run)
            losses.append(loss_and_slope(f, counts.labels)[0].mean())
        assert (losses[0] - losses[1]) / 2e-6 == pytest.approx((gradients[name] * along).sum(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_layer_is_the_exact_model(classes: int) -> None:
    counts = documents(6, n=40, types=30, classes=classes)
    P = random_parameters("one-layer", counts, d=7, seed=7)
    E, p, V = (P[name].detach().numpy() for name in ("E", "p", "v"))
    exact = gradient(counts, E @ p, E @ V)
    with workers(CPU) as run:
        np.testing.assert_allclose(answer_all("one-layer", P, counts, run), exact.f, atol=1e-10)
    loss, found = our_gradient("one-layer", P, counts)
    assert loss == pytest.approx(exact.loss, rel=1e-12)
    np.testing.assert_allclose(found["E"], np.outer(exact.a, p) + exact.b @ V.T, atol=1e-10)
    np.testing.assert_allclose(found["p"], E.T @ exact.a, atol=1e-10)
    np.testing.assert_allclose(found["v"], E.T @ exact.b, atol=1e-10)


def test_key_query_with_identities_is_two_layer() -> None:
    counts = documents(8)
    plain = random_parameters("two-layer", counts, d=6, seed=8)
    with workers(CPU) as run:
        one = answer_all("two-layer", plain, counts, run)
        other = answer_all("key-query", plain | {name: torch.eye(6).double() for name in ("W1", "W2")}, counts, run)
    np.testing.assert_allclose(one, other, rtol=1e-13)
    assert np.ptp(one) > 0.1


def test_the_start_has_the_stated_spread() -> None:
    for kind, names, variance in (("key-query", ("E", "p", "W1", "W2"), 1), ("mlp", ("E", "p", "W"), 2)):
        P = start(500, 1, DeepSettings(kind, d=400, dtype="float64"))
        for name in names:
            spread = (variance if name == "W" else 1) / 400
            error = 4 * np.sqrt(2 / P[name].numel())
            assert float(P[name].square().mean()) == pytest.approx(spread, rel=error)
        assert float(P["v"].norm()) == pytest.approx(1.0)


def test_score_of_key_query_is_read_through_its_second_matrix() -> None:
    counts = documents(9, classes=3)
    P = random_parameters("key-query", counts, d=4, seed=10)
    score, value = tables("key-query", P)
    E, p, W2, V = (P[name].detach().numpy() for name in ("E", "p", "W2", "v"))
    np.testing.assert_allclose(score, [p @ W2 @ e for e in E], atol=1e-14)
    np.testing.assert_allclose(value, [[e @ v for v in V.T] for e in E], atol=1e-14)


@QUIET
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    extra=st.integers(0, 6),
    mates=st.permutations(range(1, 14)),
    cut=st.integers(1, 13),
)
def test_padding_mates_and_order_change_nothing(kind: str, seed: int, extra: int, mates: list[int], cut: int) -> None:
    counts = documents(seed % 50, empty=1)
    counts = counts.rows(np.diff(counts.matrix.indptr) > 0)
    P = random_parameters(kind, counts, d=5, seed=seed)
    chosen = np.array([k for k in mates if k < counts.n_documents])[:cut]

    def values_and_gradients(group: np.ndarray, padding: int) -> tuple[Any, list[Any]]:
        chunk = pad(counts, group, CPU, torch.float64)
        more = torch.zeros(len(group), padding)
        ids = torch.cat([chunk.ids, more.long()], dim=1)
        chunk = Chunk(chunk.types, ids, torch.cat([chunk.log_counts, more.double() - torch.inf], dim=1))
        E = P["E"].detach()[chunk.types].requires_grad_()
        f = answers(kind, P | {"E": E}, chunk)
        return f, [f, *torch.autograd.grad(f.sum(), [E, P["p"], P["v"]])]

    together, first = values_and_gradients(chosen, extra)
    alone = torch.cat([values_and_gradients(np.array([k]), 0)[0] for k in chosen])
    np.testing.assert_allclose(together.detach(), alone.detach(), rtol=1e-12, atol=1e-12)
    for x, y in zip(first, values_and_gradients(chosen, 0)[1], strict=True):
        np.testing.assert_allclose(x.detach(), y.detach(), rtol=1e-12, atol=1e-12)


@QUIET
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), exponent=st.integers(0, 9))
def test_chunks_hold_each_document_once_within_the_budget(seed: int, kind: str, exponent: int) -> None:
    counts = documents(seed, n=30, empty=3)
    batch = np.random.default_rng(seed).permutation(30)[:20]
    sizes = np.diff(counts.matrix.indptr)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CPU_BUDGET", 2**exponent)
        found = plan(counts, batch, kind, 4, CPU)
    assert sorted(np.concatenate(found)) == sorted(k for k in batch if sizes[k])
    for chunk in found:
        longest = sizes[chunk].max()
        width = max(4, longest if kind in ("two-layer", "key-query") else 0)
        assert len(chunk) == 1 or len(chunk) * longest * width <= 2**exponent


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_of_chunks_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = documents(11, n=30)
    P = random_parameters(kind, counts, d=5, seed=12)
    loss, whole = our_gradient(kind, P, counts)
    monkeypatch.setattr(chunks, "CPU_BUDGET", 100)
    again, parts = our_gradient(kind, P, counts)
    assert again == pytest.approx(loss, rel=1e-13)
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("kind", KINDS)
def test_full_batch_training_is_that_of_pytorch_on_token_sequences(kind: str, optimizer: str) -> None:
    counts = documents(13)
    given = DeepSettings(
        kind, d=4, epochs=4, batch_size=14, learning_rate=0.05, optimizer=optimizer, dtype="float64", seed=3
    )
    result = fit_deep(counts, given)
    P = {name: x.requires_grad_() for name, x in start(counts.n_types, 1, given).items()}
    make = torch.optim.Adam if optimizer == "adam" else torch.optim.SGD
    steps = make(list(P.values()), lr=0.05)
    losses = []
    for _ in range(4):
        steps.zero_grad()
        loss = token_loss(kind, P, counts)
        loss.backward()
        losses.append(loss.item())
        steps.step()
    score, value = tables(kind, P)
    assert [entry["train_loss"] for entry in result.trajectory[1:]] == pytest.approx(losses, rel=1e-10)
    np.testing.assert_allclose(result.score, score, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.value, value, rtol=1e-8, atol=1e-10)


def test_minibatches_are_stepped_one_after_the_other() -> None:
    counts = documents(14, n=12, empty=0)
    given = DeepSettings("two-layer", d=4, epochs=2, batch_size=5, learning_rate=0.1, optimizer="sgd", dtype="float64")
    P = start(counts.n_types, 1, given)
    for epoch in range(2):
        order = np.random.default_rng([0, epoch]).permutation(12)
        for batch in (order[:5], order[5:10], order[10:]):
            leaves = {name: x.detach().requires_grad_() for name, x in P.items()}
            grads = torch.autograd.grad(token_loss("two-layer", leaves, counts.rows(batch)), list(leaves.values()))
            P = {name: x.detach() - 0.1 * g for (name, x), g in zip(leaves.items(), grads, strict=True)}
    np.testing.assert_allclose(fit_deep(counts, given).score, tables("two-layer", P)[0], rtol=1e-9, atol=1e-12)


def same(one: DeepResult, other: DeepResult) -> bool:
    figures = (one.loss, one.accuracy, one.trajectory, one.best_epoch)
    return (
        np.array_equal(one.score, other.score)
        and np.array_equal(one.value, other.value)
        and figures == (other.loss, other.accuracy, other.trajectory, other.best_epoch)
    )


SMALL = DeepSettings("two-layer", d=8, epochs=4, batch_size=16, learning_rate=0.05, patience=4)


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CPU_BUDGET", 2000)
    counts, validation = documents(15, n=60, types=200), documents(16, n=30, types=200)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(fit_deep(counts, replace(SMALL, kind=kind), validation))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert same(found[0], found[1]) and same(found[0], found[2])
    assert not np.array_equal(found[0].score, fit_deep(counts, replace(SMALL, kind=kind, seed=1), validation).score)


def test_threads_are_restored_after_a_failure() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), workers(CPU) as run:
        list(run(lambda x: 1 / x, [1, 0]))
    assert torch.get_num_threads() == before


def test_the_best_epoch_is_taken_and_training_stops() -> None:
    counts, validation, test = (documents(seed, n=60, types=40) for seed in (17, 18, 19))
    result = fit_deep(counts, replace(SMALL, kind="one-layer", epochs=60, patience=2), validation, test)
    losses = [entry["validation_loss"] for entry in result.trajectory]
    assert len(losses) < 61
    assert result.best_epoch == int(np.argmin(losses)) == len(losses) - 3 > 0
    for name, part in (("train", counts), ("validation", validation), ("test", test)):
        f = exact_answers(part, result.score, result.value)
        assert result.loss[name] == pytest.approx(loss_and_slope(f, part.labels)[0].mean(), rel=1e-5)
        assert result.accuracy[name] == np.mean((f[:, 0] > 0) == (part.labels == 1))
    assert result.loss["validation"] == losses[result.best_epoch]


def test_without_validation_the_last_epoch_stands() -> None:
    result = fit_deep(documents(20, n=40), SMALL)
    assert result.best_epoch == 4 and set(result.loss) == {"train"}
    assert result.loss["train"] < np.log(2) - 0.05


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_that_decide_are_found(kind: str, classes: int) -> None:
    counts, validation, test = (planted(seed, classes) for seed in (21, 22, 23))
    result = fit_deep(counts, replace(SMALL, kind=kind, d=16, epochs=20), validation, test)
    assert result.accuracy["test"] > (
        0.84 if classes == 2 else 0.76
    )  # the others hold no deciding token: e^−1.2 of them
    assert result.score[:classes].min() > result.score[classes:].max()
    if kind == "mlp":
        return
    value = result.value if classes == 3 else np.column_stack([-result.value, result.value])
    assert value.shape == (counts.n_types, classes)
    assert value[:classes].argmax(axis=0).tolist() == list(range(classes))


def test_progress_and_json() -> None:
    seen: list[tuple[str, float]] = []
    result = fit_deep(documents(24, n=40), SMALL, progress=lambda stage, share: seen.append((stage, share)))
    shares = [share for _, share in seen]
    assert {stage for stage, _ in seen} == {"two-layer"}
    assert len(shares) == 12 and shares == sorted(shares) and shares[-1] == 1.0
    figures = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert figures["settings"]["kind"] == "two-layer" and len(figures["trajectory"]) == 5


class Interrupted(Exception): ...


def interrupted_at(share: float) -> Any:
    def progress(stage: str, done: float) -> None:
        if done >= share:
            raise Interrupted

    return progress


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_goes_on_to_the_same_bits(kind: str, optimizer: str, tmp_path: Path) -> None:
    counts, validation = documents(25, n=60), documents(26, n=30)
    given = replace(SMALL, kind=kind, optimizer=optimizer)
    path = tmp_path / "run.safetensors"
    for share in (0.1, 0.4, 0.9):
        with pytest.raises(Interrupted):
            fit_deep(counts, given, validation, progress=interrupted_at(share), checkpoint=path)
    resumed = fit_deep(counts, given, validation, checkpoint=path)
    assert same(resumed, fit_deep(counts, given, validation))
    finished = path.read_bytes()
    assert same(fit_deep(counts, given, validation, checkpoint=path), resumed)
    assert path.read_bytes() == finished
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    counts, validation, path = documents(27, n=30), documents(28, n=20), tmp_path / "run.safetensors"
    fit_deep(counts, SMALL, validation, checkpoint=path)
    with pytest.raises(InputError, match=r"another run \(learning_rate 0\.05, not 0\.1\)"):
        fit_deep(counts, replace(SMALL, learning_rate=0.1), validation, checkpoint=path)
    with pytest.raises(InputError, match="another run \\(kind two-layer, not mlp"):
        fit_deep(counts, replace(SMALL, kind="mlp"), validation, checkpoint=path)
    flipped = replace(counts, labels=1 - counts.labels)
    for other, beside in ((flipped, validation), (counts, None), (counts.rows(np.arange(29)), validation)):
        with pytest.raises(InputError, match=r"another run \(other documents\)"):
            fit_deep(other, SMALL, beside, checkpoint=path)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    counts, path = documents(29, n=30), tmp_path / "run.safetensors"
    fit_deep(counts, SMALL, checkpoint=path)
    whole = path.read_bytes()
    for kept in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises(InputError, match="cannot be read as a checkpoint"):
            fit_deep(counts, SMALL, checkpoint=path)
    write_all(tmp_path, {path.name: save({"x": torch.zeros(1)})})
    with pytest.raises(InputError, match="no checkpoint of a deep model"):
        fit_deep(counts, SMALL, checkpoint=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "three-layer"}, "kind 'three-layer' is unknown: choose one of one-layer"),
        ({"optimizer": "lbfgs"}, "optimizer 'lbfgs' is unknown"),
        ({"dtype": "float16"}, "dtype 'float16' is unknown"),
        ({"d": 0}, "d must be a whole number of at least 1"),
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"batch_size": True}, "batch_size must be a whole number"),
        ({"patience": 0}, "patience must be"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a positive number"),
        ({"device": "abacus"}, "device 'abacus' is not there"),
        ({"learning_rate": "fast"}, "learning_rate must be a positive number"),
        ({"device": "meta"}, "device 'meta' is not there"),
        ({"device": "cuda:99"}, "device 'cuda:99' is not there"),
    ],
)
def test_wrong_settings(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def test_wrong_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = documents(30)
    with pytest.raises(InputError, match="the validation part has no documents"):
        fit_deep(counts, SMALL, counts.rows(np.array([], dtype=int)))
    with pytest.raises(InputError, match="the test part has other token types"):
        fit_deep(counts, SMALL, test=documents(30, types=12))
    with pytest.raises(InputError, match="3 heads"):
        fit_deep(documents(30, classes=3), replace(SMALL, d=2))
    monkeypatch.setattr(chunks, "MAX_TYPES", 5)
    row = int(np.diff(counts.matrix.indptr).argmax())
    with pytest.raises(InputError, match=f"document {row + 1} of the train part has .* distinct token types"):
        fit_deep(counts, SMALL)
    assert fit_deep(counts, replace(SMALL, kind="mlp")).best_epoch == 4


def test_training_that_diverges_is_refused() -> None:
    with pytest.raises(InputError, match="training diverged"):
        fit_deep(documents(31, n=40), replace(SMALL, learning_rate=1e38))


def test_without_pytorch_the_extra_is_named() -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError('No module named torch')\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from tokensieve import InputError\n"
        "try:\n"
        "    import tokensieve.reproduce.deep\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install tokensieve[torch]" in done.stdout and done.stdout.count("\n") == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_gives_the_answers_of_the_cpu(kind: str) -> None:
    counts, validation = documents(32, n=60), documents(33, n=30)
    given = replace(SMALL, kind=kind, dtype="float64")
    one, other = (fit_deep(counts, replace(given, device=name), validation) for name in ("cpu", "cuda"))
    np.testing.assert_allclose(one.score, other.score, atol=1e-8)
    np.testing.assert_allclose(one.value, other.value, atol=1e-8)


@pytest.mark.slow
def test_two_layers_on_reviews_show_the_shape_of_the_paper() -> None:
    """Its figure 1: bin means of E v increase with the posterior difference, and those of E p are V-shaped."""
    folder = Path(os.environ.get("TOKENSIEVE_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not (folder / "imdb_train.parquet").is_file():
        pytest.skip(f"no IMDB reviews in {folder}; set TOKENSIEVE_DATA")
    frame = pl.read_parquet(folder / "imdb_train.parquet").sample(4000, shuffle=True, seed=0)
    labels = (frame["label"] == "positive").cast(pl.Int64).to_numpy()
    counts = count_corpus(Documents(frame["text"], labels, ("-1", "+1")), min_documents=15).counts
    matrix = counts.matrix
    given = DeepSettings("two-layer", d=128, learning_rate=0.01, patience=1)
    result = fit_deep(counts.rows(np.arange(3000)), given, counts.rows(np.arange(3000, 4000)))
    positive, negative = (matrix[labels == k].sum(axis=0) for k in (1, 0))
    difference = (positive - negative) / (positive + negative)
    score, value = (
        binned_statistic(difference, x, bins=20, range=(difference.min(), difference.max())).statistic
        for x in (result.score, result.value)
    )
    centres, filled = np.linspace(-1, 1, 20), np.isfinite(score)
    assert spearmanr(centres[filled], value[filled]).statistic > 0.95
    assert min(np.nanmean(score[:5]), np.nanmean(score[15:])) > np.nanmean(score[8:12]) + 0.1
    assert result.accuracy["validation"] > 0.83
