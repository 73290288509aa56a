"""Figures of `diagnose`: every family trained and untrained, a planted shortcut over seeds, IMDB, speed beside other libraries.

    python benchmarks/diagnose.py families|shortcut|imdb|speed [--seeds 20] [--family roberta] [--data FOLDER]

`imdb` reads imdb_train.parquet and imdb_test.parquet from --data (default: see machine.py); `speed` compares
with captum and shap where they are installed. Models are tiny ones, trained here (tests/diagnose_models.py), but for `speed`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from machine import DATA

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from diagnose_models import FAMILIES, build, fit, framed, planted_reviews, train_tokenizer

from tokensieve.auditing.demo import demo_reviews
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose

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


def shortcut(options: argparse.Namespace) -> None:
    """Models trained with and without a planted shortcut, diagnosed on documents in which it says nothing."""
    rows = []
    for seed in range(options.first, options.first + options.seeds):
        held = planted_reviews(800, 5000 + seed, planted=False)
        for planted in (True, False):
            train = planted_reviews(1500, 100 + seed, planted)
            model, tokenizer = build(options.family, train.texts.to_list(), seed=seed)
            trained = fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=6, seed=seed)
            found = diagnose(model, tokenizer, held.texts.to_list(), held.labels.tolist(), SETTINGS)
            words = found.leaning["token"].to_list()
            rank = words.index(held.shortcut) + 1 if held.shortcut in words else 0
            excess = found.leaning["excess"].round(2).to_list()
            rows.append({"planted": planted, "rank": rank, "listed": len(words)})
            print(f"seed {seed} planted {planted!s:5} trained {trained:.1%} held out {found.accuracy:.1%} rank {rank} "
                  f"listed {list(zip(words, excess, strict=True))[:4]}", flush=True)  # fmt: skip
    table = pl.DataFrame(rows)
    print(table.group_by("planted").agg(
        models=pl.len(), first=(pl.col("rank") == 1).sum(), listed=(pl.col("rank") > 0).sum(), any=(pl.col("listed") > 0).sum()
    ))  # fmt: skip


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

    from tokensieve.diagnose.encoding import frame_of
    from tokensieve.diagnose.reading import Reader, prepared

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
    with prepared(model, 0):
        reader = Reader(model, (0, 1), frame_of(tokenizer))
        reader.look(encoded[:2])
        start = time.perf_counter()
        for i in range(0, len(encoded), 8):
            reader.look(encoded[i : i + 8])
        ours = (time.perf_counter() - start) / len(encoded)
    print(f"tokensieve, attention and gradient: {1 / ours:.2f} documents/s")
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
    parts = {"families": families, "shortcut": shortcut, "imdb": imdb, "speed": speed}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--family", default="roberta", choices=FAMILIES)
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
