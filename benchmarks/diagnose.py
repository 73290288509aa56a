"""Figures of `diagnose`: fidelity per second, families, checkpoints, IMDB, speed. Planted shortcuts: see planted.py.

    python benchmarks/diagnose.py fidelity|families|curve|imdb|speed|picture [--family bert] [--data FOLDER]

`fidelity` compares what each method says of words, a curve of Spearman's correlation with true leave-one-out effects on other
documents against CPU seconds, beside captum and shap where they are installed. Data is read from --data (default: see
machine.py). Models are tiny ones, trained here (tests/diagnose_models.py), but for `speed`.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.stats import spearmanr

from machine import DATA

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import tokensieve
from diagnose_models import FAMILIES, build, fit, framed, planted_reviews, save, train_tokenizer
from tokensieve.auditing.demo import demo_reviews
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, compare, diagnose
from tokensieve.diagnose.effects.measuring import Measured, Work
from tokensieve.diagnose.subjects.frame import Frame, Input
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.diagnose.subjects.passages import SPLITTER
from tokensieve.diagnose.subjects.pieces import PieceSubject
from tokensieve.diagnose.subjects.reader import Reader
from tokensieve.diagnose.subjects.windows import REST, Windows
from tokensieve.progress import silent
from tokensieve.read.reader import read_corpus
from tokensieve.text.vocabulary import count_texts

SETTINGS = DiagnoseSettings(min_documents=5, batch_size=32)


def show(name: str, found: Diagnosis, seconds: float) -> None:
    """One row a measure: trained, untrained, shuffled labels."""
    for measure, one in found.correlation.items():
        other, chance = (
            found.agreement["untrained"].get(measure),
            found.agreement["shuffled"].get(measure),
        )
        told = (
            "told apart" if other is not None and one.stands_out(None, other) else "not told apart"
        )
        beside = (
            f"{other.rho:+.2f} [{other.low:+.2f}, {other.high:+.2f}]" if other is not None else ""
        )
        shuffled = f"{chance[0]:+.2f} … {chance[1]:+.2f}" if chance else ""
        print(
            f"{name:12} {measure:28} {one.rho:+.2f} [{one.low:+.2f}, {one.high:+.2f}]  {beside:22} {shuffled:15} {told}"
        )
    leaning = found.leaning["token"].head(5).to_list()
    print(
        f"{name:12} learned: {found.learned}, accuracy {found.accuracy:.1%}, leans on {leaning}, {seconds:.0f} s",
        flush=True,
    )


def families(options: argparse.Namespace) -> None:
    """Each family, trained on generated reviews, and its untrained twin; diagnosed on other reviews."""
    train, held = demo_reviews(1500, seed=1), demo_reviews(1000, seed=2)
    for family in FAMILIES:
        start = time.perf_counter()
        model, tokenizer = build(family, train.texts.to_list())
        fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=6)
        show(
            family,
            diagnose(model, tokenizer, held.texts.to_list(), held.labels.tolist(), SETTINGS),
            time.perf_counter() - start,
        )


def documents(
    source: str, data: Path, seed: int, n: int, characters: int = 400, classes: int = 2
) -> tuple[list[str], Any]:
    """Texts and labels 0, 1 (Yelp: or all five stars): generated reviews without a plant, or the beginnings of real ones."""
    if source == "generated":
        made = planted_reviews(n, seed, planted=False)
        return made.texts.to_list(), made.labels
    table = pl.read_parquet(data / ("yelp.parquet" if source == "yelp" else "imdb_train.parquet"))
    if source == "yelp":
        table = table.filter(pl.col("stars").is_in([1.0, 5.0]) | (classes == 5))
        table = table.with_columns(
            label=pl.col("stars") - 1 if classes == 5 else pl.col("stars") == 5.0
        )
    else:
        table = table.with_columns(label=pl.col("label") == "positive")
    table = table.sample(n, seed=seed, shuffle=True)
    return [text[:characters] for text in table["text"]], table["label"].cast(pl.Int64).to_numpy()


def fidelity(options: argparse.Namespace) -> None:
    """Spearman's correlation of each method's mean effect of words with true leave-one-out effects on other documents."""
    texts, labels = documents("imdb", options.data, 0, 1500)
    held, _ = documents("imdb", options.data, 10_001, 1400)
    for family in options.families:
        model, tokenizer = build(family, texts, size=2000)
        right = fit(model, tokenizer, texts, labels, epochs=options.epochs, length=96)
        print(f"{family}: {right:.1%} of the training documents right\n", flush=True)
        frame = Frame.of(tokenizer)
        with Reader.prepared(model, 0):
            reader = Reader(model, Outputs((0, 1), 2, 2), frame)
            words = vocabulary(held)
            mine, other = (
                PieceSubject(
                    reader,
                    Windows(tokenizer, pl.Series(part), SPLITTER, words, frame, 96, True, silent),
                    2,
                )
                for part in (held[:1000], held[1000:])
            )
            truth, own = left_out(other, len(words), 16), reader.reads_text
            frequent = np.bincount(mine.types, minlength=len(words)) >= 10
            found, both = next(iter(methods(reader, mine, len(words))))[1](), []
            for reader.reads_text in (False, True):
                lost = left_out(other, len(words), 16)
                some = np.isfinite(found + lost) & frequent
                both.append((spearmanr(found[some], lost[some])[0], halves(other, len(words))))
            reader.reads_text = own
            print(
                "The word cut out of the text: ours {:.3f}, one half of the documents with the other {:.3f}; padding in its place: "
                "ours {:.3f}, halves {:.3f}.\n".format(*both[0], *both[1])
            )
            print(
                "| model | method | CPU s | Spearman | words | ours on these words |\n|---|---|---|---|---|---|"
            )
            common = np.isfinite(truth) & frequent
            ours = None
            for name, method in methods(reader, mine, len(words)):
                start = time.process_time()
                try:
                    effect = method()
                except ImportError as missing:
                    print(f"{family:12} {name:48} {missing}")
                    continue
                seconds, ours = time.process_time() - start, effect if ours is None else ours
                there = common & np.isfinite(effect)
                rho, same = (spearmanr(x[there], truth[there])[0] for x in (effect, ours))
                print(
                    f"| {family} | {name} | {seconds:.2f} | {rho:.3f} | {there.sum()} | {same:.3f} |",
                    flush=True,
                )


def vocabulary(texts: list[str]) -> tuple[str, ...]:
    """Words of ten documents or more."""
    return count_texts(pl.Series(texts), tokenizer=SPLITTER, min_documents=10).vocabulary.words


def left_out(subject: Any, types: int, per_type: int) -> Any:
    """Mean of what the answer loses without each word, over at most so many documents; nan below four."""
    of, lost = losses(subject, types, per_type)
    n = np.bincount(of, minlength=types)
    return np.where(n >= min(4, per_type), np.bincount(of, lost, types) / np.maximum(n, 1), np.nan)


def losses(subject: Any, types: int, per_type: int) -> tuple[Any, Any]:
    """Words left out of a document each, and what its answer loses."""
    measured = Measured(subject, Outputs((0, 1), 2, 2), Work(32, 4, 0, None, "", silent))
    measured.read()
    measured.answers = measured.outputs.answers(measured.logits)
    chosen = measured.choose(np.arange(types), per_type)
    of = subject.types[chosen]
    return of, measured.remove(of, subject.windows[chosen], "out")[:, 0]


def halves(subject: Any, types: int) -> float:
    """Spearman's correlation of the mean over half of each word's 16 documents with that over the other half."""
    of, lost = losses(subject, types, 16)
    half, n = np.random.default_rng(0).random(len(of)) < 0.5, []
    means = []
    for kept in (half, ~half):
        n.append(np.bincount(of[kept], minlength=types))
        means.append(np.bincount(of[kept], lost[kept], types) / np.maximum(n[-1], 1))
    both = (n[0] >= 4) & (n[1] >= 4)
    return float(spearmanr(means[0][both], means[1][both])[0])


def methods(reader: Any, subject: Any, types: int) -> Any:
    """Names and functions that give the mean effect of every word, shape (|S|,)."""

    def integrated(draws: int, straight: bool, documents: int = 1000) -> Any:
        own = subject._share
        subject._share = np.full(len(own), 0.5 / draws) if straight else own
        try:
            effect = np.zeros(len(subject.types))
            order = np.argsort(-subject.lengths[:documents])
            for k in range(0, len(order), 32):
                at = order[k : k + 32]
                subject.integrate(at, np.zeros(len(at), dtype=np.int64), effect, draws)
        finally:
            subject._share = own
        read = subject.windows < documents
        n = np.bincount(subject.types[read], minlength=types)
        return np.where(
            n >= 4, np.bincount(subject.types, effect, types) / np.maximum(n, 1), np.nan
        )

    for draws in (1, 2, 4):
        yield (
            f"a path for each word, {draws} draws" + " (ours)" * (draws == 1),
            lambda n=draws: integrated(n, False),
        )
    for some in (40, 100, 300):
        yield f"ours, {some} documents", lambda n=some: integrated(1, False, n)
    for draws in (1, 2, 4):
        yield f"straight path, {draws} nodes", lambda n=draws: integrated(n, True)
    for per_type in (1, 2, 4, 8):
        yield (
            f"leave-one-out, {per_type} documents a word",
            lambda n=per_type: left_out(subject, types, n),
        )
    for steps in (2, 10, 50):
        yield (
            f"captum, {steps} steps, 100 documents",
            lambda n=steps: of_captum(reader, subject, types, n),
        )
    for evaluations in (50, 200):
        yield (
            f"shap, {evaluations} evaluations, 40 documents", lambda n=evaluations: of_shap(reader, subject, types, n),
        )  # fmt: skip


def of_captum(reader: Any, subject: Any, types: int, steps: int) -> Any:
    """LayerIntegratedGradients on the first 100 documents, one at a time as its tutorials do."""
    from captum.attr import LayerIntegratedGradients

    model = reader._model

    def margin(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        z = model(input_ids=ids, attention_mask=mask).logits
        return z[:, 1] - z[:, 0]

    explainer = LayerIntegratedGradients(margin, model.get_input_embeddings())
    total, n = np.zeros(types), np.zeros(types)
    windows = subject._windows
    for w in range(100):
        ids = torch.from_numpy(windows.input(w).ids.astype(np.int64))[None]
        found = explainer.attribute(
            ids, torch.zeros_like(ids), additional_forward_args=(torch.ones_like(ids),), n_steps=steps
        )  # fmt: skip
        mine = windows.types[windows.starts[w] : windows.starts[w + 1]]
        there = mine >= 0
        np.add.at(total, mine[there], found.sum(-1)[0].detach().numpy()[there])
        n[np.unique(mine[there])] += 1
    return np.where(n >= 4, total / np.maximum(n, 1), np.nan)


def of_shap(reader: Any, subject: Any, types: int, evaluations: int) -> Any:
    """The permutation of word pieces that padding hides, on the first 40 documents (Owen values, its partition explainer)."""
    import shap

    windows, total, n = subject._windows, np.zeros(types), np.zeros(types)
    for w in range(40):
        one = windows.input(w).ids
        mine = windows.types[windows.starts[w] : windows.starts[w + 1]]
        text = np.flatnonzero(mine >= REST)

        def margin(masks: Any, one: Any = one, text: Any = text) -> Any:
            rows = np.repeat(one[None], len(masks), axis=0)
            rows[:, text] = np.where(np.asarray(masks) > 0.5, rows[:, text], 0)
            z = reader.logits([Input(row) for row in rows])
            return z[:, 1] - z[:, 0]

        flat = shap.maskers.Partition(np.zeros((1, len(text))), clustering=_in_order(len(text)))
        explainer = shap.PartitionExplainer(margin, flat)
        found = explainer(np.ones((1, len(text))), max_evals=evaluations, silent=True)
        values, words = found.values[0], mine[text]
        np.add.at(total, words[words >= 0], values[words >= 0])
        n[np.unique(words[words >= 0])] += 1
    return np.where(n >= 4, total / np.maximum(n, 1), np.nan)


def _in_order(n: int) -> Any:
    """Neighbouring pieces joined first: a balanced tree in the form of scipy.cluster.hierarchy."""
    nodes, rows, new = [(i, 1) for i in range(n)], [], n
    while len(nodes) > 1:
        merged = []
        for k in range(0, len(nodes) - 1, 2):
            (a, x), (b, y) = nodes[k], nodes[k + 1]
            rows.append([a, b, float(x + y), float(x + y)])
            merged.append((new, x + y))
            new += 1
        nodes = merged + nodes[len(nodes) - len(nodes) % 2 :]
    return np.array(rows)


def curve(options: argparse.Namespace) -> None:
    """One training on Yelp, looked at as it goes, and models that learn nothing: value correlation beside accuracy and AUC."""
    texts, y = documents("yelp", options.data, 0, 2100, 200)
    y = np.array(y)
    train, corpus = texts[:1500], read_corpus((texts[1500:], y[1500:].tolist()))
    model, tokenizer = build(options.family, train, size=1500)
    models, labels, done = {"start": (copy.deepcopy(model), tokenizer)}, y[:1500], 0.0
    for most, epochs in ((450, 1), (900, 1), (1500, 1), (1500, 1), (1500, 2), (1500, 4), (1500, 8)):
        first = (
            int(1500 * done) if done < 1 else 0
        )  # the first epoch in parts, then whole ones, each with its own warm-up
        fit(model, tokenizer, train[first:most], labels[first:most], epochs=epochs, length=48)
        done = most / 1500 if first or not done else done + epochs
        models[f"{done:.1f} epochs"] = (copy.deepcopy(model), tokenizer)
    rng = np.random.default_rng(0)
    for name, given, rate in (
        ("random labels", rng.permutation(labels), 3e-3), ("frozen embeddings", labels, 3e-3), ("diverged", labels, 1.0)
    ):  # fmt: skip
        model, _ = build(options.family, train, size=1500)
        model.get_input_embeddings().requires_grad_(name != "frozen embeddings")
        fit(model, tokenizer, train, given, epochs=4, rate=rate, length=48)
        models[name] = (model, tokenizer)
    found = compare(models, corpus, DiagnoseSettings(max_length=48, batch_size=32)).models
    print(
        "| model | accuracy | AUC | value correlation | learned | used most |\n|---|---|---|---|---|---|"
    )
    for row in found.iter_rows(named=True):
        number = [
            f"{row[x]:.2f} [{row[x + '_low']:.2f}, {row[x + '_high']:.2f}]"
            for x in ("accuracy", "auc", "value")
        ]
        number = ["–" if "nan" in one else one for one in number]
        print(f"| {row['model']} | {' | '.join(number)} | {row['learning']} | {row['most_used']} |")
    trained = found.filter(pl.col("model").str.ends_with("epochs"))
    for name, some in (
        ("all of this training", found.head(trained.height + 1)),
        ("from 1.0 epochs on", trained[2:]),
    ):
        rho = spearmanr(some["value"], some["accuracy"])[0]
        print(f"\nRank correlation of the value correlation with accuracy, {name}: {rho:+.2f}.")


def picture(options: argparse.Namespace) -> None:
    """Fidelity against CPU seconds, drawn from the tables that `fidelity` printed into docs/benchmarks-archive.md."""
    import altair as alt

    rows = []
    for line in options.table.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0] in FAMILIES:
            rows.append(
                {
                    "model": cells[0],
                    "method": cells[1],
                    "seconds": max(float(cells[2]), 0.05),
                    "Spearman": float(cells[3]),
                }
            )
            rows[-1]["kind"] = next(
                (x for x in ("leave-one-out", "captum", "shap", "straight") if x in cells[1]),
                "tokensieve",
            )
    chart = alt.Chart(pl.DataFrame(rows)).mark_point(filled=True, size=60).encode(
        x=alt.X("seconds", scale=alt.Scale(type="log"), title="CPU seconds"),
        y=alt.Y("Spearman", scale=alt.Scale(zero=False), title="correlation with leave-one-out"), color="kind", shape="kind",
    ).properties(width=230, height=190).facet("model", columns=3)  # fmt: skip
    chart = chart.configure(
        padding={"left": 5, "top": 5, "bottom": 5, "right": 30}
    )  # else the legend's words are cut
    chart.save(options.table.parent / "fidelity.svg")


def imdb(options: argparse.Namespace) -> None:
    """A tiny model trained on a few thousand IMDB reviews, diagnosed on test reviews."""
    train, test = (
        pl.read_parquet(options.data / f"imdb_{part}.parquet") for part in ("train", "test")
    )
    train, test = (
        train.sample(options.documents, seed=0, shuffle=True),
        test.sample(2000, seed=0, shuffle=True),
    )
    start = time.perf_counter()
    model, tokenizer = build(options.family, train["text"].to_list(), size=4000)
    right = fit(
        model,
        tokenizer,
        train["text"].to_list(),
        (train["label"] == "positive").to_numpy().astype(np.int64),
        epochs=4,
    )
    print(
        f"trained in {time.perf_counter() - start:.0f} s, {right:.1%} of the training reviews right"
    )
    start = time.perf_counter()
    settings = DiagnoseSettings(
        min_documents=20, max_documents=2000, deletions=2, max_length=128, batch_size=32
    )
    found = diagnose(model, tokenizer, test["text"].to_list(), test["label"].to_list(), settings)
    show(options.family, found, time.perf_counter() - start)
    print(*found.to_dict()["verdict"], found.seconds, f"{found.token_types:,} words", sep="\n")


TIMED = """
import sys, time, json
import polars as pl, torch
from tokensieve.diagnose import DiagnoseSettings, diagnose, load
torch.set_num_threads(1)
held, model = pl.read_parquet(sys.argv[2]), load(sys.argv[1])
start = time.process_time()
found = diagnose(*model, held["text"].to_list(), held["label"].to_list(), DiagnoseSettings(max_length=128))
print(json.dumps([time.process_time() - start, found.token_types, found.seconds]))
"""


def speed(options: argparse.Namespace) -> None:
    """Documents a CPU second, one thread, of a whole diagnosis, beside another version's source (--other)."""
    import transformers as tf

    with tempfile.TemporaryDirectory() as folder:
        for source, classes, shapes in (("imdb", 2, ((2, 32), (4, 128))), ("yelp", 5, ((2, 32),))):
            texts, labels = documents(
                source, options.data, 0, options.documents_timed, 700, classes
            )
            held = str(Path(folder) / f"{source}.parquet")
            pl.DataFrame({"text": texts, "label": [str(y) for y in labels]}).write_parquet(held)
            tokenizer = framed(train_tokenizer("wordpiece", texts, 4000), decoder=False)
            for layers, width in shapes:
                torch.manual_seed(0)
                config = tf.BertConfig(
                    hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 64 or 2, num_labels=classes,
                    intermediate_size=4 * width, max_position_embeddings=258, pad_token_id=0, vocab_size=len(tokenizer),
                )  # fmt: skip
                model = tf.AutoModelForSequenceClassification.from_config(config)
                saved = save(
                    model, tokenizer, Path(folder) / "model", {k: str(k) for k in range(classes)}
                )
                rate = {}
                for version in ("", options.other) if options.other else ("",):
                    path = version or str(Path(tokensieve.__file__).parents[1])
                    done = subprocess.run(
                        [sys.executable, "-c", TIMED, saved, held], env=os.environ | {"PYTHONPATH": path}, check=True,
                        capture_output=True, text=True,
                    )  # fmt: skip
                    seconds, words, stages = json.loads(done.stdout.splitlines()[-1])
                    rate[version] = len(texts) / seconds
                    print(f"{source}, {classes} classes, {layers} layers of {width}, {version or 'this version'}: "
                          f"{len(texts)} documents, {words} words, {seconds:.1f} s, {rate[version]:.1f} documents/s, "
                          f"{ {name: round(x, 1) for name, x in stages.items()} }", flush=True)  # fmt: skip
                if options.other:
                    print(
                        f"{rate[''] / rate[options.other]:.2f} times as many documents a second",
                        flush=True,
                    )


def main() -> None:
    """Read the options and run one part."""
    parts = {
        "fidelity": fidelity, "families": families, "curve": curve, "imdb": imdb, "speed": speed, "picture": picture,
    }  # fmt: skip
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=parts)
    parser.add_argument("--family", default="bert", choices=FAMILIES)
    parser.add_argument(
        "--families", nargs="+", default=["bert", "gpt2", "modernbert"], choices=FAMILIES
    )
    parser.add_argument("--epochs", type=int, default=4, help="of the models of `fidelity`")
    parser.add_argument("--documents", type=int, default=4000, help="IMDB reviews to train on")
    parser.add_argument("--documents-timed", type=int, default=1000)
    parser.add_argument(
        "--table",
        type=Path,
        default=Path(__file__).parents[1] / "docs" / "benchmarks-archive.md",
        help="for `picture`",
    )
    parser.add_argument("--other", default="", help="source folder of another version, for `speed`")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    start = time.perf_counter()
    parts[options.part](options)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
