"""The certificate that `verify` writes, and the checker, which knows nothing of the package."""

from __future__ import annotations

import ast
import io
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_faces import contradicted

from tokensieve.text.counts import Counts
from tokensieve.theory.limit import checker
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import verify

Arrays = dict[str, Any]


@pytest.fixture(scope="module")
def content() -> bytes:
    """A limit with a finite gap: one document stands in the data with both labels."""
    files = verify(contradicted()[0], VerifySettings(d=64, eta=400.0)).files()
    written = files["certificate.npz"]
    assert isinstance(written, bytes)
    return written


@pytest.fixture
def arrays(content: bytes) -> Arrays:
    return dict(np.load(io.BytesIO(content)))


def refused(arrays: Arrays) -> bool:
    try:
        checker.check(arrays)
    except checker.Refused:
        return True
    return False


def test_the_checker_imports_numpy_and_flint_alone() -> None:
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    standard = {"__future__", "sys", "zipfile", "zlib", "dataclasses", "typing"}
    assert imported - standard == {"numpy", "flint"}


def test_the_script_accepts_what_verify_proved(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "certificate.npz"
    path.write_bytes(content)
    done = subprocess.run([sys.executable, checker.__file__, path], capture_output=True, text=True)
    assert done.returncode == 0
    assert not done.stderr
    assert done.stdout.count("proved: ") == 3


@pytest.mark.parametrize("size", [0, 10, 2000])
def test_a_damaged_file_is_refused_in_one_line(
    content: bytes, tmp_path: Path, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "certificate.npz"
    path.write_bytes(content[:size])
    assert checker.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("refused: ")


def as_one_array(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        np.save(file, np.load(io.BytesIO(content))["E"])


def as_pickle(path: Path, content: bytes) -> None:
    path.write_bytes(pickle.dumps(dict(np.load(io.BytesIO(content)))))


def with_objects(path: Path, content: bytes) -> None:
    arrays = dict(np.load(io.BytesIO(content)))
    arrays["E"] = arrays["E"].astype(object)
    np.savez(path, **arrays)


def with_damaged_compression(path: Path, content: bytes) -> None:
    packed = io.BytesIO()
    np.savez_compressed(packed, **dict(np.load(io.BytesIO(content))))
    damaged = bytearray(packed.getvalue())
    begins = damaged.index(b"E.npy") + 40
    damaged[begins : begins + 50] = b"\xff" * 50
    path.write_bytes(bytes(damaged))


def with_bits(path: Path, content: bytes, in_directory: int, in_member: int, bits: int) -> None:
    """Sets a byte of all headers, at its place in the directory's and in the member's."""
    damaged = bytearray(content)
    for signature, offset in ((b"PK\x01\x02", in_directory), (b"PK\x03\x04", in_member)):
        at = damaged.find(signature)
        while at >= 0:
            damaged[at + offset] |= bits
            at = damaged.find(signature, at + 4)
    path.write_bytes(bytes(damaged))


def encrypted(path: Path, content: bytes) -> None:
    with_bits(path, content, in_directory=8, in_member=6, bits=1)


def with_unknown_compression(path: Path, content: bytes) -> None:
    with_bits(path, content, in_directory=10, in_member=8, bits=99)


def with_a_shape_beyond_memory(path: Path, content: bytes) -> None:
    written = io.BytesIO()
    np.save(written, np.zeros((1, 64)))
    header = written.getvalue().replace(b"(1, 64), }" + b" " * 12, b"(1000000000000, 64), }")
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, header if name == "E.npy" else old.read(name))


def with_a_member_without_suffix(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name.removesuffix(".npy"), old.read(name))


FORGERIES = [
    as_one_array, as_pickle, with_objects, with_damaged_compression, encrypted,
    with_unknown_compression, with_a_shape_beyond_memory, with_a_member_without_suffix,
]  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_file_of_another_kind_is_refused_in_one_line(
    content: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    forge: Callable[[Path, bytes], None],
) -> None:
    path = tmp_path / "certificate.npz"
    forge(path, content)
    assert checker.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("refused: ")


def test_arrays_that_no_proof_needs_are_not_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "certificate.npz"
    path.write_bytes(content)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.npy", pickle.dumps("anything"))
    assert checker.main([str(path)]) == 0


def test_arrays_beyond_the_limit_are_refused(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "certificate.npz"
    path.write_bytes(content)
    monkeypatch.setattr(checker, "MAX_BYTES", 1000)
    assert checker.main([str(path)]) == 1


@pytest.mark.slow
def test_the_inequality_decides_to_the_last_digit(arrays: Arrays) -> None:
    """A point on one ray is accepted up to a distance, and refused a 10⁻¹²th further out."""
    s, r = arrays["tight"][0]
    along = arrays["E"][s] - arrays["E"][r]
    along = along - arrays["basis"].T @ np.linalg.lstsq(arrays["basis"].T, along, rcond=None)[0]
    start = arrays["point"]

    def at(distance: float) -> Arrays:
        return arrays | {"point": start + distance * along / np.linalg.norm(along)}

    accepted = 0.0
    beyond = 2 * float(arrays["radius"])
    assert refused(at(beyond))
    while beyond - accepted > 1e-12 * beyond:
        middle = (accepted + beyond) / 2
        if refused(at(middle)):
            beyond = middle
        else:
            accepted = middle
    proof = checker.check(at(accepted))
    assert proof.left < proof.right
    assert proof.left == pytest.approx(proof.right, rel=1e-9)
    with pytest.raises(checker.Refused, match="inequality"):
        checker.check(at(beyond))


@pytest.mark.parametrize(
    "name",
    "indptr indices counts labels E w selected basis z p_hat rho tight point log_time radius tube".split(),
)
def test_a_missing_array_is_refused(arrays: Arrays, name: str) -> None:
    del arrays[name]
    assert refused(arrays)


@pytest.mark.parametrize("name", "E w basis z p_hat rho point log_time radius tube".split())
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_refused(arrays: Arrays, name: str, value: float) -> None:
    arrays[name].flat[0] = value
    assert refused(arrays)


def moved(name: str, factor: float = 1e-3) -> Callable[[Arrays], None]:
    def mutate(arrays: Arrays) -> None:
        values = arrays[name]
        noise = np.random.default_rng(0).standard_normal(values.shape)
        arrays[name] = values + factor * np.linalg.norm(values) * noise

    return mutate


def scaled(name: str, factor: float) -> Callable[[Arrays], None]:
    def mutate(arrays: Arrays) -> None:
        arrays[name] = arrays[name] * factor

    return mutate


def flipped_labels(arrays: Arrays) -> None:
    arrays["labels"] = -arrays["labels"]


def deselected(arrays: Arrays) -> None:
    """The tied document selects one of its types less."""
    sizes = np.add.reduceat(arrays["selected"].astype(int), arrays["indptr"][:-1])
    row = int(np.argmax(sizes))
    entries = np.arange(arrays["indptr"][row], arrays["indptr"][row + 1])
    arrays["selected"][entries[arrays["selected"][entries]][0]] = False


def selected_one_more(arrays: Arrays) -> None:
    arrays["selected"][np.flatnonzero(~arrays["selected"])[0]] = True


def exchanged_selection(arrays: Arrays) -> None:
    """The second document selects another type instead."""
    start, end = arrays["indptr"][1:3]
    entries = np.arange(start, end)
    is_selected = arrays["selected"][entries]
    arrays["selected"][entries[is_selected][0]] = False
    arrays["selected"][entries[~is_selected][0]] = True


def without_a_tight_pair(arrays: Arrays) -> None:
    arrays["tight"] = arrays["tight"][1:]


def tight_pair_twice(arrays: Arrays) -> None:
    arrays["tight"] = np.concatenate([arrays["tight"], arrays["tight"][:1]])


def tight_pair_reversed(arrays: Arrays) -> None:
    arrays["tight"][0] = arrays["tight"][0, ::-1].copy()


def unknown_type(arrays: Arrays) -> None:
    arrays["indices"][0] = len(arrays["w"])


def repeated_type(arrays: Arrays) -> None:
    arrays["indices"][1] = arrays["indices"][0]


def negative_count(arrays: Arrays) -> None:
    arrays["counts"][0] = -1


def without_a_document(arrays: Arrays) -> None:
    arrays["indptr"] = arrays["indptr"][:-1]


def transposed(arrays: Arrays) -> None:
    arrays["E"] = arrays["E"].T.copy()


def text(arrays: Arrays) -> None:
    arrays["w"] = arrays["w"].astype(str)


def in_single_precision(arrays: Arrays) -> None:
    arrays["E"] = arrays["E"].astype(np.float32)


MUTATIONS = [
    moved("z"), moved("p_hat"), moved("rho"), moved("point"), moved("E"), moved("w", 0.1),
    scaled("radius", 0.1), scaled("radius", 1e5), scaled("radius", -1.0), scaled("tube", 1e9),
    scaled("tube", 0.0), scaled("log_time", 0.5), scaled("log_time", 2.0), scaled("p_hat", 0.5),
    flipped_labels, deselected, selected_one_more, exchanged_selection, without_a_tight_pair,
    tight_pair_twice, tight_pair_reversed, unknown_type, repeated_type, negative_count,
    without_a_document, transposed, text, in_single_precision,
]  # fmt: skip


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_changed_certificate_is_refused(arrays: Arrays, mutate: Callable[[Arrays], None]) -> None:
    mutate(arrays)
    assert refused(arrays)


def test_tied_types_of_equal_value_have_no_strict_minimum() -> None:
    """Nothing moves their gap, so that L_S is constant along it; an earlier checker accepted this."""
    arrays = {
        "indptr": np.array([0, 2]),
        "indices": np.array([0, 1]),
        "counts": np.array([1.0, 1.0]),
        "labels": np.array([1]),
        "E": np.eye(2),
        "w": np.array([1.0, 1.0]),
        "selected": np.array([True, True]),
        "z": np.zeros(2),
        "point": np.zeros(2),
        "tube": np.array(0.1),
    }
    assert refused(arrays)


def test_tiny_embeddings_are_not_taken_for_equal() -> None:
    """The squares of these differences are too small for double precision."""
    assert (checker.lengths(np.full((2, 3), 1e-170)) >= 1e-170 * np.sqrt(3)).all()


def test_an_undecided_limit_has_no_certificate() -> None:
    found = verify(contradicted()[0], VerifySettings(d=64, eta=400.0, max_steps=3))
    assert not any(name.startswith("certificate") for name in found.files())


def test_a_finite_limit_is_proved_too() -> None:
    held = [[1, 1, 0]] * 5 + [[0, 1, 1]] * 5
    counts = Counts.from_matrix(held, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    found = verify(counts, VerifySettings(d=8, eta=20.0, seed=5))
    assert found.limit.fate == "converges to a point"
    assert found.limit.grade == "proved attractor"
    content = found.files()["certificate.npz"]
    assert isinstance(content, bytes)
    assert checker.check(dict(np.load(io.BytesIO(content)))).curvature > 0


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(["z", "p_hat", "rho"]),
    place=st.integers(0, 10**6),
    size=st.floats(1e-4, 1e3),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_a_vector_with_one_other_number_is_refused(
    content: bytes, name: str, place: int, size: float, sign: float
) -> None:
    arrays = dict(np.load(io.BytesIO(content)))
    vector = arrays[name]
    vector[place % vector.size] += sign * size * (1 + np.linalg.norm(vector))
    assert refused(arrays)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(place=st.integers(0, 10**6))
def test_another_selection_is_refused(content: bytes, place: int) -> None:
    arrays = dict(np.load(io.BytesIO(content)))
    entry = place % arrays["selected"].size
    arrays["selected"][entry] = ~arrays["selected"][entry]
    assert refused(arrays)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(checker.ARRAYS)),
    place=st.integers(0, 10**6),
    value=st.sampled_from([0, -1, 1, 7, -(2**31), 2**31, 1e-300, 1e300, -1e300]),
)
def test_no_number_makes_the_checker_fail(
    content: bytes, name: str, place: int, value: float
) -> None:
    """It accepts or refuses: no traceback and no warning."""
    arrays = dict(np.load(io.BytesIO(content)))
    numbers = arrays[name].reshape(-1)
    with np.errstate(all="ignore"):
        numbers[place % numbers.size] = np.array(value).astype(numbers.dtype)
    refused(arrays)
