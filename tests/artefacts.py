"""Results that many tests look at, made once per session and shared between the workers of a run.

Each is a folder with the source, what its command writes for it (pictures are empty: drawing takes
most of the time), and the result itself. A test must not change any of them.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from calls import undrawn


class Artefact(NamedTuple):
    """A source, the folder that a command wrote for it, and the result (None where the command is
    the only way)."""

    source: Path
    folder: Path
    result: Any


@contextmanager
def locked(path: Path) -> Iterator[None]:
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def shared(factory: pytest.TempPathFactory, name: str) -> Artefact:
    """The artefact of that name; the first worker that asks makes it, the others wait for it and
    read it."""
    base = factory.getbasetemp()
    home = base.parent if base.name.startswith("popen-") else base
    folder = home / f"shared-{name}"
    with locked(home / f"shared-{name}.lock"):
        if not (folder / "artefact").exists():
            folder.mkdir(exist_ok=True)
            with undrawn():
                (folder / "artefact").write_bytes(pickle.dumps(MAKERS[name](folder)))
    found = pickle.loads((folder / "artefact").read_bytes())
    assert isinstance(found, Artefact)
    return found


def saved_audit(folder: Path, source: Path, **how: Any) -> Artefact:
    from tokensieve import Settings, audit, save
    from tokensieve.read.pairs import read_pairs
    from tokensieve.read.reader import read_corpus

    settings = Settings(ngrams=how.pop("ngrams", 1), baseline=how.pop("baseline", True))
    found = audit((read_pairs if "pairs" in how else read_corpus)(source, **how), settings)
    save(found, folder / "out")
    return Artefact(source, folder / "out", found)


def audit_of_reviews(folder: Path) -> Artefact:
    """1,000 generated reviews, two classes, words and pairs of words."""
    from reviews import write_reviews

    return saved_audit(folder, write_reviews(folder / "reviews.csv", 1000), ngrams=2)


def audit_of_pairs(folder: Path) -> Artefact:
    """Generated preference pairs: length, bold type and one word decide them."""
    from tokensieve import demo_pairs

    source = folder / "pairs.csv"
    demo_pairs(1600, 1).write_csv(source)
    return saved_audit(folder, source, pairs=("chosen", "rejected"))


def audit_of_topics(folder: Path) -> Artefact:
    """Four classes with words of their own, and a mark that gives one of them away."""
    rng = np.random.default_rng(0)
    words = {
        "account": "login password",
        "billing": "invoice refund",
        "orders": "parcel tracking",
        "product": "screen battery",
    }
    labels = [list(words)[i % 4] for i in range(480)]
    common = "the a please help with my about today hello thanks since".split()
    texts = [
        " ".join(
            rng.permutation(
                [*rng.choice(words[label].split(), 2), *rng.choice(common, 8), f"n{i % 60}"]
            )
        )
        + (f" [INV-{1000 + i}]" if label == "billing" else "")
        for i, label in enumerate(labels)
    ]
    source = folder / "topics.csv"
    pl.DataFrame({"text": texts, "label": labels}).write_csv(source)
    return saved_audit(folder, source, baseline=False)


def verification(folder: Path) -> Artefact:
    """The theory's claims on generated documents that satisfy its assumption; the result is what
    the command prints."""
    from tokensieve.cli import run

    small = (
        "--documents 60 --types 24 --length 5 --relevant 6 --d 256 --max-norm 400 --seed 2".split()
    )
    with redirect_stdout(io.StringIO()) as printed:
        assert run(["verify", *small, "--out", str(folder / "out")]) == 0
    return Artefact(folder, folder / "out", printed.getvalue())


def diagnosis(folder: Path) -> Artefact:
    """A transformer of two layers in `model` that learnt a planted shortcut, on reviews in which
    the word says nothing."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from diagnose_models import build, fit, planted_reviews, save
    from tokensieve import save as save_result
    from tokensieve.diagnose import DiagnoseSettings, diagnose

    torch.set_num_threads(1)
    train, held = planted_reviews(1000, 5, planted=True), planted_reviews(400, 77, planted=False)
    model, tokenizer = build("modernbert", train.texts.to_list())
    fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=6)
    save(model, tokenizer, folder / "model", {0: "Negative", 1: "Positive"})
    source = folder / "held.csv"
    pl.DataFrame({"text": held.texts, "label": held.labels}).write_csv(source)
    settings = DiagnoseSettings(min_documents=5, batch_size=32)
    found = diagnose(model, tokenizer, held.texts.to_list(), held.labels.tolist(), settings)
    save_result(found, folder / "out")
    return Artefact(source, folder / "out", found)


MAKERS = {
    "audit": audit_of_reviews,
    "pair_audit": audit_of_pairs,
    "multiclass_audit": audit_of_topics,
    "verification": verification,
    "diagnosis": diagnosis,
}
