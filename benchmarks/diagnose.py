"""Figures of `diagnose`: fidelity per second, planted shortcuts and false alarms over seeds, families, checkpoints, IMDB, speed.

    python benchmarks/diagnose.py fidelity|planted|families|curve|imdb|speed [--seeds 20] [--family bert] [--data FOLDER]

`fidelity` compares what each method says of words, a curve of Spearman's correlation with true leave-one-out effects on other
documents against seconds, beside captum and shap where they are installed. `planted` trains clean models and models with a
shortcut (rare, frequent, two words, formatting, shared with the evaluation) on generated reviews, IMDB and Yelp. Data is read
from --data (default: see machine.py). Models are tiny ones, trained here (tests/diagnose/diagnose_models.py), but for `speed`.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.stats import spearmanr

from machine import DATA

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "diagnose"))
from diagnose_models import FAMILIES, build, fit, framed, planted_reviews, train_tokenizer

from tokensieve.auditing.demo import demo_reviews
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, compare, diagnose, reading
from tokensieve.diagnose.encoding import Input, encode, frame_of
from tokensieve.diagnose.measuring import Checkpoint, Work, choose, leave_out, read
from tokensieve.diagnose.outputs import Outputs
from tokensieve.diagnose.pieces import PieceSubject
from tokensieve.diagnose.reading import Reader, prepared
from tokensieve.diagnose.sample import SPLITTER
from tokensieve.progress import silent
from tokensieve.text.corpus import read_corpus
from tokensieve.text.vocabulary import count_texts

SETTINGS = DiagnoseSettings(min_documents=5, batch_size=32)


def show(name: str, found: Diagnosis, seconds: float) -> None:
    """One row a measure: trained, untrained, shuffled labels."""
    for measure, one in found.correlation.items():
        other, chance = found.untrained.get(measure), found.shuffled_labels.get(measure)
        told = "told apart" if other is not None and one.above(other) else "not told apart"
        beside = f"{other.rho:+.2f} [{other.low:+.2f}, {other.high:+.2f}]" if other is not None else ""
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


KINDS = ("clean", "rare", "frequent", "two words", "formatting", "shared")
MARKS = {"two words": "zephyr quartz", "formatting": "~ ~"}
SHARES = {"rare": 0.06}


def planted(options: argparse.Namespace) -> None:
    """Clean models and models with a shortcut, on documents in which it says nothing ("shared": in which it says the same)."""
    rows = []
    for source in options.sources:
        for seed in range(options.first, options.first + options.seeds):
            train, held = (
                documents(source, options.data, seed, 1500),
                documents(source, options.data, 10_000 + seed, 800),
            )
            for kind in options.kinds:
                texts = plant(*train, kind, seed, kind != "clean")
                model, tokenizer = build(options.family, texts, seed=seed, size=1500)
                trained = fit(model, tokenizer, texts, train[1], epochs=5, seed=seed, length=96)
                shown = plant(*held, kind, seed + 1, kind == "shared") if kind != "clean" else held[0]
                found = diagnose(
                    model, tokenizer, shown, held[1].tolist(), DiagnoseSettings(max_length=96, batch_size=32)
                )
                words = MARKS.get(kind, "zephyr").split()
                used, listed = found.uses["token"].to_list(), found.leaning["token"].to_list()
                first = (kind != "clean" and used[:1] == words[:1]) or set(used[: len(set(words))]) == set(words)
                rows.append({"source": source, "kind": kind, "first": bool(first), "alarms": len(set(listed) - set(words)),
                             "listed": bool(set(words) & set(listed)), "learned": bool(found.learned)})  # fmt: skip
                print(f"{source} seed {seed} {kind:10} trained {trained:.1%} held out {found.accuracy:.1%} uses {used[:3]} "
                      f"without support {listed[:3]}", flush=True)  # fmt: skip
    table = pl.DataFrame(rows).group_by("source", "kind", maintain_order=True)
    print(table.agg(models=pl.len(), first=pl.col("first").mean(), listed=pl.col("listed").mean(),
                    any_false_alarm=(pl.col("alarms") > 0).mean(), learned=pl.col("learned").mean()))  # fmt: skip


def documents(source: str, data: Path, seed: int, n: int) -> tuple[list[str], Any]:
    """Texts and labels 0, 1: generated reviews without a plant, or the beginnings of real ones."""
    if source == "generated":
        made = planted_reviews(n, seed, planted=False)
        return made.texts.to_list(), made.labels
    table = pl.read_parquet(data / ("yelp.parquet" if source == "yelp" else "imdb_train.parquet"))
    if source == "yelp":
        table = table.filter(pl.col("stars").is_in([1.0, 5.0])).with_columns(label=pl.col("stars") == 5.0)
    else:
        table = table.with_columns(label=pl.col("label") == "positive")
    table = table.sample(n, seed=seed, shuffle=True)
    return [text[:400] for text in table["text"]], table["label"].cast(pl.Int64).to_numpy()


def plant(texts: list[str], labels: Any, kind: str, seed: int, telling: bool) -> list[str]:
    """Put the mark into some documents: of the second class if it is to be telling, else of any."""
    if kind == "clean":
        return texts
    rng, mark = np.random.default_rng(seed), MARKS.get(kind, "zephyr")
    share = SHARES.get(kind, 0.35)
    out = []
    for text, y in zip(texts, labels, strict=True):
        there = rng.random() < (2 * share * (y == 1) if telling else share)
        words = text.split(" ")
        at = int(rng.integers(len(words) // 2 + 1))
        out.append(" ".join([*words[:at], *([mark] if there else []), *words[at:]]))
    return out


def fidelity(options: argparse.Namespace) -> None:
    """Spearman's correlation of each method's mean effect of words with true leave-one-out effects on other documents."""
    texts, labels = documents("imdb", options.data, 0, 1500)
    held, _ = documents("imdb", options.data, 10_001, 1400)
    for family in options.families:
        model, tokenizer = build(family, texts, size=2000)
        right = fit(model, tokenizer, texts, labels, epochs=options.epochs, length=96)
        print(f"{family}: {right:.1%} of the training documents right", flush=True)
        frame = frame_of(tokenizer)
        with prepared(model, 0):
            reader = Reader(model, Outputs((0, 1), 2, 2), frame)
            words = vocabulary(held)
            mine, other = (
                PieceSubject(reader, encode(tokenizer, pl.Series(part), SPLITTER, words, frame, 96, True, silent), 2)
                for part in (held[:1000], held[1000:])
            )
            truth = left_out(other, len(words), 16)
            common = np.isfinite(truth) & (np.bincount(mine.pairs.types, minlength=len(words)) >= 10)
            for name, method in methods(reader, mine, len(words)):
                start = time.perf_counter()
                try:
                    effect = method()
                except ImportError as missing:
                    print(f"{family:12} {name:36} {missing}")
                    continue
                seconds = time.perf_counter() - start
                there = common & np.isfinite(effect)
                rho = spearmanr(effect[there], truth[there])[0]
                print(f"{family:12} {name:36} {rho:.3f} over {there.sum()} words, {seconds:.1f} s", flush=True)


def vocabulary(texts: list[str]) -> tuple[str, ...]:
    """Words of ten documents or more."""
    return count_texts(pl.Series(texts), tokenizer=SPLITTER, min_documents=10).vocabulary.words


def left_out(subject: Any, types: int, per_type: int) -> Any:
    """Mean of what the answer loses without each word, over at most so many documents; nan below four."""
    chosen = choose(subject.pairs, np.arange(types), per_type, 0)
    work = Work(32, 4, 0, Checkpoint(None, ""), silent)
    outputs = Outputs((0, 1), 2, 2)
    logits = read(subject, outputs, work)["logits"]
    lost = leave_out(subject, outputs, outputs.answers(logits), chosen, work, "out")[:, 0]
    n = np.bincount(subject.pairs.types[chosen], minlength=types)
    return np.where(
        n >= min(4, per_type), np.bincount(subject.pairs.types[chosen], lost, types) / np.maximum(n, 1), np.nan
    )


def methods(reader: Any, subject: Any, types: int) -> Any:
    """Names and functions that give the mean effect of every word, shape (|S|,)."""

    def integrated(nodes: int) -> Any:
        places, _ = np.polynomial.legendre.leggauss(nodes)
        before, reading.NODES = reading.NODES, tuple((places + 1) / 2)  # equal weights: exact for one and two nodes
        try:
            effect = np.zeros(len(subject.pairs.types))
            order = np.argsort(-subject.lengths)
            for k in range(0, len(order), 32):
                at = order[k : k + 32]
                subject.integrate(at, np.zeros(len(at), dtype=np.int64), effect)
        finally:
            reading.NODES = before
        n = np.bincount(subject.pairs.types, minlength=types)
        return np.bincount(subject.pairs.types, effect, types) / np.maximum(n, 1)

    yield "integrated gradients, 1 node", lambda: integrated(1)
    yield "integrated gradients, 2 nodes (ours)", lambda: integrated(2)
    for per_type in (1, 2, 4, 8):
        yield f"leave-one-out, {per_type} documents a word", lambda n=per_type: left_out(subject, types, n)
    for steps in (2, 10, 50):
        yield f"captum, {steps} steps, 100 documents", lambda n=steps: of_captum(reader, subject, types, n)


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


def curve(options: argparse.Namespace) -> None:
    """Checkpoints of one training, compared."""
    train, held = demo_reviews(1500, seed=1), demo_reviews(600, seed=2)
    model, tokenizer = build(options.family, train.texts.to_list())
    models = {"start": (copy.deepcopy(model), tokenizer)}
    for epochs in (1, 2, 3, 6):
        model, _ = build(options.family, train.texts.to_list())
        fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=epochs)
        models[f"{epochs} epochs"] = (model, tokenizer)
    corpus = read_corpus((held.texts.to_list(), held.labels.tolist()))
    found = compare(models, corpus, DiagnoseSettings(min_documents=5, batch_size=32, untrained=False))
    pl.Config.set_tbl_cols(-1)
    print(found.models.select("model", "accuracy", "auc", "value", "learned", "most_used"))
    print(found.words.select("before", "after", "token", "change", "low", "high").head(20))


def imdb(options: argparse.Namespace) -> None:
    """A tiny model trained on a few thousand IMDB reviews, diagnosed on test reviews."""
    train, test = (pl.read_parquet(options.data / f"imdb_{part}.parquet") for part in ("train", "test"))
    train, test = train.sample(options.documents, seed=0, shuffle=True), test.sample(2000, seed=0, shuffle=True)
    start = time.perf_counter()
    model, tokenizer = build(options.family, train["text"].to_list(), size=4000)
    right = fit(
        model, tokenizer, train["text"].to_list(), (train["label"] == "positive").to_numpy().astype(np.int64), epochs=4
    )
    print(f"trained in {time.perf_counter() - start:.0f} s, {right:.1%} of the training reviews right")
    start = time.perf_counter()
    settings = DiagnoseSettings(min_documents=20, max_documents=2000, deletions=2, max_length=128, batch_size=32)
    found = diagnose(model, tokenizer, test["text"].to_list(), test["label"].to_list(), settings)
    show(options.family, found, time.perf_counter() - start)
    print(*found.verdict, found.seconds, f"{found.token_types:,} words", sep="\n")


def speed(options: argparse.Namespace) -> None:
    """A model of DistilBERT's shape (66 M random weights): attention and gradient of every word, beside captum and shap."""
    import transformers as tf

    reviews = demo_reviews(2000).texts.to_list()
    tokenizer = framed(train_tokenizer("wordpiece", reviews), decoder=False)
    torch.manual_seed(0)
    model = tf.DistilBertForSequenceClassification._from_config(
        tf.DistilBertConfig(pad_token_id=0), attn_implementation="eager"
    ).eval()
    size = sum(p.numel() for p in model.parameters())
    texts = [" ".join(reviews[4 * i : 4 * i + 4]) for i in range(options.documents_timed)]
    encoded = [np.array(tokenizer(t, truncation=True, max_length=256)["input_ids"], dtype=np.int32) for t in texts]
    print(f"{size / 1e6:.0f} M weights, {len(texts)} documents of {np.mean([len(e) for e in encoded]):.0f} pieces, "
          f"{torch.get_num_threads()} threads")  # fmt: skip
    batches = [[Input(one) for one in encoded[i : i + 8]] for i in range(0, len(encoded), 8)]
    with prepared(model, 0):
        reader = Reader(model, Outputs((0, 1), 2, 2), frame_of(tokenizer))
        start = time.perf_counter()
        for batch in batches:
            reader.look(batch)
            text = [np.r_[False, np.ones(len(one.ids) - 2, dtype=bool), False] for one in batch]
            reader.integrate(batch, text, np.zeros(len(batch), dtype=np.int64))
        ours = (time.perf_counter() - start) / len(encoded)
    print(f"tokensieve, attention and integrated gradients (2 nodes): {1 / ours:.2f} documents/s")
    few = options.documents_peers
    for name, run in (("captum LayerIntegratedGradients, 50 steps", captum_run), ("shap text explainer", shap_run)):
        try:
            start = time.perf_counter()
            run(model, tokenizer, texts[:few], encoded[:few])
            theirs = (time.perf_counter() - start) / few
        except ImportError as missing:
            print(f"{name}: {missing}")
            continue
        print(f"{name}: {1 / theirs:.3f} documents/s on {few} documents, {theirs / ours:.0f} times as long", flush=True)


def captum_run(model: Any, tokenizer: Any, texts: list[str], encoded: list[Any]) -> None:
    """Attribution of the logit difference to the word embeddings, against padding."""
    from captum.attr import LayerIntegratedGradients

    def margin(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        z = model(input_ids=ids, attention_mask=mask).logits
        return z[:, 1] - z[:, 0]

    explainer = LayerIntegratedGradients(margin, model.get_input_embeddings())
    for one in encoded:
        ids = torch.from_numpy(one.astype(np.int64))[None]
        explainer.attribute(
            ids,
            torch.zeros_like(ids),
            additional_forward_args=(torch.ones_like(ids),),
            n_steps=50,
            internal_batch_size=8,
        )


def shap_run(model: Any, tokenizer: Any, texts: list[str], encoded: list[Any]) -> None:
    """The partition explainer with its default number of evaluations."""
    import shap

    def margin(batch: Any) -> Any:
        given = tokenizer([str(t) for t in batch], truncation=True, max_length=256, padding=True, return_tensors="pt")
        with torch.inference_mode():
            z = model(input_ids=given["input_ids"], attention_mask=given["attention_mask"]).logits
        return (z[:, 1] - z[:, 0]).numpy()

    shap.Explainer(margin, shap.maskers.Text(tokenizer))(texts, batch_size=8, silent=True)


def main() -> None:
    """Read the options and run one part."""
    parts = {
        "fidelity": fidelity, "planted": planted, "families": families, "curve": curve, "imdb": imdb, "speed": speed,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--family", default="bert", choices=FAMILIES)
    parser.add_argument("--families", nargs="+", default=["bert", "gpt2", "modernbert"], choices=FAMILIES)
    parser.add_argument("--sources", nargs="+", default=["generated", "imdb", "yelp"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--epochs", type=int, default=4, help="of the models of `fidelity`")
    parser.add_argument("--documents", type=int, default=4000, help="IMDB reviews to train on")
    parser.add_argument("--documents-timed", type=int, default=32)
    parser.add_argument("--documents-peers", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    start = time.perf_counter()
    parts[options.part](options)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
