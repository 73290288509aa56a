"""Which tokens matter to a trained classifier:

ours, captum and shap, seconds and agreement, on one model.

    python benchmarks/importance.py [--seconds 60] [--documents 2000] [--methods NAME ...] [--out
    FILE]

The model is `AttentionClassifier()` trained on words of all 25,000 training reviews of IMDB, and
the question what each token type does to its answers on test reviews: a mean over the reviews that
contain it.

    ours            `effects`, from texts: contribution and deletion in one pass
    answer-again    brute force: every type of every review deleted from the text, the text answered
                    again
    ablation        captum's FeatureAblation, one feature a type, so that it measures deletion too
    gradients       captum's IntegratedGradients in the embeddings, 50 steps, from zero (its
                    LayerIntegratedGradients gives the
                    same numbers, more slowly)
    partition       shap's text explainer at its default of 500 evaluations, masking the model's own
                    words
    linear          shap's LinearExplainer of TF-IDF + logistic regression on the same tokens:
                    another model, for reference

captum has the model as a torch module: an embedding of width two that holds (u, w), a softmax over
token positions, the sum; its answers are compared with ours first. captum starts from token ids,
`linear` from counts, the others from texts; training, and what a method prepares once, is not
counted. Each peer runs in a process of its own, over test reviews in a seeded order, until
`--seconds` are over or `--documents` are done. Memory is that process's peak less what it held once
prepared. Agreement is with brute force, over types in at least five of the reviews that every
method came to: Spearman's rank correlation, how many of the hundred largest by magnitude are the
same, and the largest difference where the same quantity is measured.

Without captum or shap (`pip install -e .[bench]`) their rows are left out. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.stats import spearmanr

from machine import DATA, described, forget_peak, memory
from tokensieve.model.classifier import AttentionClassifier, load_model
from tokensieve.model.storage import model_files
from tokensieve.text.vocabulary import tokenize

REVIEWS = 25_000
FLOOR = 5
STEPS = 50
POSITIONS = 8_000  # tokens that captum has in work at once, times the steps
AT_ONCE = 16  # features that its ablation answers in one call
Attribution = tuple[int, np.ndarray, np.ndarray]  # document, types, what each does
Attributions = Iterator[list[Attribution]]  # some documents at a time


class Problem:
    """The trained model and test reviews in a seeded order."""

    def __init__(self, folder: Path, documents: int | None = None) -> None:
        self.model = load_model(folder)
        texts = pl.read_parquet(DATA / "imdb_test.parquet")["text"].sample(
            fraction=1, shuffle=True, seed=0
        )
        self.texts = texts.head(documents or len(texts))
        self.vocabulary = self.model.vocabulary_
        self.known = {token: k for k, token in enumerate(self.model.tokens_)}

    def ids(self) -> list[np.ndarray]:
        """The known tokens of each review, in order."""
        stream = tokenize(self.texts, self.vocabulary.tokenizer)
        positions = self.vocabulary.positions(stream)[:, 0].astype(np.int64)
        parts = [positions[a:b] for a, b in zip(stream.starts[:-1], stream.starts[1:], strict=True)]
        return [part[part >= 0] for part in parts]


def answer_again(problem: Problem) -> Attributions:
    """The model's answer to each text less that to the text without the type, for every known type
    in it.
    """
    for k, text in enumerate(problem.texts):
        places: dict[int, list[tuple[int, int]]] = {}
        for start, end, word in problem.vocabulary.tokenizer.spans(text):
            if word in problem.known:
                places.setdefault(problem.known[word], []).append((start, end))
        texts = [text]
        for spans in places.values():
            ends = [0, *(end for _, end in spans)]
            starts = [*(start for start, _ in spans), len(text)]
            texts.append(" ".join(text[a:b] for a, b in zip(ends, starts, strict=True)))
        f = problem.model.decision_function(texts)
        yield [(k, np.array(list(places), dtype=np.int64), f[0] - f[1:])]


def torch_model(problem: Problem) -> Any:
    """The classifier as a module that captum can read:

    ids (n, T), padded with |S|, to answers (n,).
    """
    import torch

    class Module(torch.nn.Module):
        def __init__(self, model: AttentionClassifier) -> None:
            super().__init__()
            table = np.column_stack([model.scores_, model.values_[:, 0]])
            weight = torch.from_numpy(np.vstack([table, np.zeros(2)]))
            self.embedding = torch.nn.Embedding.from_pretrained(weight)
            self.pad = len(table)
            self.sink = torch.tensor(
                [model.sink_, model.prior_[0]], dtype=torch.float64
            )  # its score and value

        def forward(self, ids: Any) -> Any:
            return self.read(self.embedding(ids), ids != self.pad)

        def read(self, x: Any, there: Any) -> Any:
            sink = self.sink.to(x.dtype).expand(len(x), 1, 2)
            x = torch.cat([x, sink], dim=1)
            there = torch.cat([there, torch.ones(len(x), 1, dtype=torch.bool)], dim=1)
            q = torch.softmax(x[..., 0].masked_fill(~there, torch.finfo(x.dtype).min), dim=1)
            return (q * x[..., 1]).sum(dim=1)

    return Module(problem.model).eval()


def batches(problem: Problem, positions: int) -> Iterator[tuple[list[int], list[np.ndarray]]]:
    """Reviews of similar length, sorted within 64:

    their numbers and ids, at most so many token positions with padding.
    """
    ids = problem.ids()
    for first in range(0, len(ids), 64):
        batch: list[int] = []
        for k in sorted(range(first, min(first + 64, len(ids))), key=lambda k: len(ids[k])):
            if batch and (len(batch) + 1) * len(ids[k]) > positions:
                yield batch, [ids[j] for j in batch]
                batch = []
            batch.append(k)
        yield batch, [ids[j] for j in batch]


def padded(batch: list[np.ndarray], pad: int) -> Any:
    import torch

    return torch.nn.utils.rnn.pad_sequence(
        [torch.from_numpy(one) for one in batch], batch_first=True, padding_value=pad
    )


def by_type(document: int, ids: np.ndarray, values: np.ndarray) -> Attribution:
    """Sums over the positions of each type."""
    types, which = np.unique(ids, return_inverse=True)
    return document, types, np.bincount(which, values, len(types))


def gradients(problem: Problem) -> Attributions:
    """captum's integrated gradients in (u, w) of every position, summed over both and over the
    positions of a type.
    """
    import torch
    from captum.attr import IntegratedGradients

    module = torch_model(problem)
    check_answers(problem, module)
    module = module.float()
    explainer = IntegratedGradients(module.read)
    for documents, batch in batches(problem, POSITIONS):
        ids = padded(batch, module.pad)
        x = module.embedding(ids)
        there = (ids != module.pad,)
        found = explainer.attribute(
            x, torch.zeros_like(x), additional_forward_args=there, n_steps=STEPS
        )
        values = found.sum(dim=2).numpy().astype(np.float64)
        yield [
            by_type(k, one, row[: len(one)])
            for k, one, row in zip(documents, batch, values, strict=True)
        ]


def ablation(problem: Problem) -> Attributions:
    """captum's ablation of all positions of a type together, by padding; types are numbered within
    each review.
    """
    import torch
    from captum.attr import FeatureAblation

    module = torch_model(problem)
    check_answers(problem, module)
    explainer = FeatureAblation(module)
    for documents, batch in batches(problem, POSITIONS):
        ids, numbered = (
            padded(batch, module.pad),
            [np.unique(one, return_inverse=True) for one in batch],
        )
        mask = padded([which for _, which in numbered], 0)
        with torch.inference_mode():
            found = explainer.attribute(
                ids, baselines=module.pad, feature_mask=mask, perturbations_per_eval=AT_ONCE
            ).numpy()
        out = []
        for k, (types, which), row in zip(documents, numbered, found, strict=True):
            loss = np.zeros(len(types))
            loss[which] = row[: len(which)]
            out.append((k, types, loss))
        yield out


def check_answers(problem: Problem, module: Any) -> None:
    """The module is the model: answers agree to 1e-6."""
    import torch

    with torch.inference_mode():
        theirs = module(padded(problem.ids()[:100], module.pad)).numpy()
    difference = np.abs(theirs - problem.model.decision_function(problem.texts[:100])).max()
    print(f"torch module: answers differ from ours by {difference:.1e} at most", file=sys.stderr)
    assert difference < 1e-6


def partition(problem: Problem) -> Attributions:
    """shap's Owen values over its own tree of neighbouring words, summed over the places of a
    type."""
    import shap

    known, splitter = problem.known, problem.vocabulary.tokenizer

    def words(text: str, return_offsets_mapping: bool = True) -> dict[str, Any]:
        del return_offsets_mapping
        spans = splitter.spans(text) or [(0, len(text), "")] * bool(
            text
        )  # the mask "..." is one piece, not none
        return {
            "input_ids": [known.get(w, -1) for *_, w in spans],
            "offset_mapping": [(a, b) for a, b, _ in spans],
        }

    def answered(texts: Any) -> np.ndarray:
        return problem.model.decision_function([str(text) for text in texts])

    explainer = shap.Explainer(answered, shap.maskers.Text(words, mask_token="..."))
    for k, text in enumerate(problem.texts):
        found = explainer([text], batch_size=500, silent=True).values[0]
        ids = np.array(words(text)["input_ids"])
        yield [by_type(k, ids[ids >= 0], found[ids >= 0])]


def linear(problem: Problem) -> Attributions:
    """shap's exact values of a linear model, its background the mean of all training reviews."""
    import shap
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression

    train, test = (
        pl.read_parquet(DATA / "imdb_train.parquet"),
        problem.model.counts_of(problem.texts)[0],
    )
    scale = TfidfTransformer(sublinear_tf=True)
    x = sp.csr_matrix(scale.fit_transform(problem.model.counts_of(train["text"])[0]))
    model = LogisticRegression(C=10, max_iter=1000).fit(
        x, (train["label"] == "positive").to_numpy()
    )
    explainer = shap.LinearExplainer(model, shap.maskers.Independent(x, max_samples=x.shape[0]))
    for first in range(0, test.shape[0], 64):
        part = sp.csr_matrix(scale.transform(test[first : first + 64]))
        found = explainer.shap_values(part)
        rows = [part.indices[a:b] for a, b in zip(part.indptr[:-1], part.indptr[1:], strict=True)]
        yield [(first + k, types, found[k, types]) for k, types in enumerate(rows)]


METHODS: dict[str, tuple[str, str, Callable[[Problem], Attributions]]] = {
    "answer-again": ("every text answered again", "tokensieve", answer_again),
    "ablation": ("captum FeatureAblation", "captum", ablation),
    "gradients": (f"captum IntegratedGradients, {STEPS} steps", "captum", gradients),
    "partition": ("shap text explainer", "shap", partition),
    "linear": ("shap LinearExplainer of TF-IDF + LR (another model)", "shap", linear),
}


def work(options: argparse.Namespace) -> None:
    """One method in this process:

    attributions into a file; documents, seconds and memory on standard output.
    """
    if options.work == "ours":
        print(json.dumps(ours(Problem(options.folder))))
        return
    problem = Problem(options.folder, options.documents)
    attributions = METHODS[options.work][2](problem)
    done = next(attributions)  # compiles, prepares and fills caches before the clock starts
    warm = len(done)
    forget_peak()
    held, start = memory("VmRSS"), time.perf_counter()
    while (
        time.perf_counter() - start < options.seconds
        and (more := next(attributions, None)) is not None
    ):
        done += more
    seconds, peak = time.perf_counter() - start, memory("VmHWM")
    done.sort(key=lambda one: one[0])
    first = [one for k, one in enumerate(done) if one[0] == k]  # without gaps
    starts = np.cumsum([0, *(len(types) for _, types, _ in first)])
    types, values = (np.concatenate([one[i] for one in first]) for i in (1, 2))
    found = sp.csr_array((values, types, starts), shape=(len(first), len(problem.known)))
    sp.save_npz(options.folder / f"{options.work}.npz", found)
    print(json.dumps({"documents": len(done) - warm, "seconds": seconds, "memory": peak - held}))


def ours(problem: Problem) -> dict[str, float]:
    """All test reviews, from texts and from counts."""
    problem.model.effects(problem.texts[:100])
    forget_peak()
    held, start = memory("VmRSS"), time.perf_counter()
    problem.model.effects(problem.texts)
    seconds, peak = time.perf_counter() - start, memory("VmHWM")
    matrix, _ = problem.model.counts_of(problem.texts)
    start = time.perf_counter()
    problem.model.trained_.effects(matrix)
    again = time.perf_counter() - start
    return {
        "documents": len(problem.texts),
        "seconds": seconds,
        "memory": peak - held,
        "from_counts": again,
    }


def agreement(truth: np.ndarray, other: np.ndarray) -> tuple[float, int]:
    """Spearman's correlation, and how many of the hundred largest by magnitude are the same."""
    best = [set(np.argsort(-np.abs(x), kind="stable")[:100].tolist()) for x in (truth, other)]
    return float(spearmanr(truth, other).statistic), len(best[0] & best[1])


def report(folder: Path, measured: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Print the table; agreement over the reviews that every method came to."""
    found = {name: sp.load_npz(folder / f"{name}.npz") for name in measured if name != "ours"}
    common = min(matrix.shape[0] for matrix in found.values())
    problem = Problem(folder, common)
    frame = problem.model.effects(problem.texts).tail(len(problem.known))
    documents = frame["documents"].to_numpy()
    kept = documents >= FLOOR
    means = {
        name: matrix[:common].sum(axis=0)[kept] / documents[kept] for name, matrix in found.items()
    }
    means |= {name: frame[name].to_numpy()[kept] for name in ("deletion", "contribution")}
    truth, rows = means["answer-again"], []
    labels = {
        "deletion": "tokensieve `effects`, deletion",
        "contribution": "tokensieve `effects`, contribution",
    }
    for name in ("deletion", "contribution", *found):
        m = measured.get(name, measured["ours"])
        rho, same = agreement(truth, means[name])
        speed = m["documents"] / m["seconds"]
        difference = (
            float(np.abs(means[name] - truth).max()) if name in ("deletion", "ablation") else None
        )
        label = labels[name] if name in labels else METHODS[name][0]
        rows.append(
            {
                "method": label,
                "documents": m["documents"],
                "per_second": speed,
                "projected": REVIEWS / speed,
            }
            | {"memory": m["memory"], "spearman": rho, "top": same, "difference": difference}
        )
    return {
        "common": common,
        "types": int(kept.sum()),
        "from_counts": measured["ours"]["from_counts"],
        "rows": rows,
    }


def show(result: dict[str, Any]) -> None:
    print(
        "| method | reviews | a second | 25,000 reviews | memory | Spearman | of the top 100 | "
        "largest difference |\n|---|---|---|---|---|---|---|---|"
    )
    for row in result["rows"]:
        exact = "" if row["difference"] is None else f"{row['difference']:.0e}"
        print(
            f"| {row['method']} | {row['documents']:,} | {row['per_second']:,.1f} | "
            f"{row['projected']:,.1f} s | {row['memory']:.2f} GB | {row['spearman']:.3f} | "
            f"{row['top']} | {exact} |"
        )
    print(
        f"\nAgreement with every text answered again: {result['types']:,} types in at least "
        f"{FLOOR} of the first {result['common']:,} test reviews. `effects` gives both of its "
        f"measures in one pass; from counts instead of texts it takes {result['from_counts']:.2f} "
        "s for all 25,000."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="time allowance of each peer")
    parser.add_argument("--documents", type=int, default=2000, help="reviews at most for each peer")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=list(METHODS),
        help="beside ours and answer-again",
    )
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options)
        return
    machine, start = described("torch", "captum", "shap", "scikit-learn"), time.perf_counter()
    print(machine + "\n")
    names = [name for name in METHODS if name in options.methods or name == "answer-again"]
    missing = {METHODS[name][1] for name in names} - {
        m for m in ("tokensieve", "captum", "shap") if find_spec(m)
    }
    if missing:
        print(f"left out, not installed: {', '.join(sorted(missing))}")
    with tempfile.TemporaryDirectory() as made:
        folder, train = Path(made), pl.read_parquet(DATA / "imdb_train.parquet")
        model = AttentionClassifier().fit(train["text"], train["label"].to_list())
        for file, content in model_files(model).items():
            (folder / file).write_bytes(content)
        measured = {}
        for name in ["ours", *(name for name in names if METHODS[name][1] not in missing)]:
            command = [sys.executable, __file__, "--work", name, "--folder", made]
            command += ["--seconds", str(options.seconds), "--documents", str(options.documents)]
            measured[name] = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            )
            print(f"{name}: {measured[name]}", file=sys.stderr)
        result = report(folder, measured)
    show(result)
    print(f"{time.perf_counter() - start:.0f} s")
    if options.out:
        options.out.write_text(json.dumps({"machine": machine} | result, indent=1))


if __name__ == "__main__":
    main()
