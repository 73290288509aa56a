"""How often a planted shortcut is the word used most, and how often a clean model is accused: IMDB, Yelp, SNLI over seeds.

    python benchmarks/planted.py run --out runs.csv [--part report] [--seeds 20] [--sources imdb yelp snli] [--until 21:30]
    python benchmarks/planted.py table --out runs.csv

Each run trains a tiny BERT (2 layers of 32, a vocabulary of its own) on the beginnings of real texts, clean or with a mark that
gives the label away, and diagnoses it on other texts: in those the mark says nothing ("shared": it says the same there). A row
is appended to the file at once, and a run that is in it already is not made again. The parts share no text: thresholds of
`tokensieve.diagnose.judgement.status` were looked at on "tune" alone (training parts of IMDB and SNLI, Yelp's development part),
what is reported comes from "report" (test parts), with other seeds.

Not every model learns its mark, above all a rare one. What a model truly uses is measured apart, without tokensieve, on texts that
are neither trained nor diagnosed on: the mean change of its answer when the mark is cut out of AGAIN of them ("mark"), and the
largest such change of the RIVALS words that the diagnosis names first beside it ("rival").
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
import transformers as tf
from scipy.stats import binomtest

from machine import DATA

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "diagnose"))
from diagnose_models import build, config_of, fit

from tokensieve.diagnose import DiagnoseSettings, diagnose
from tokensieve.diagnose.judgement.status import Status

SOURCES = ("imdb", "yelp", "snli")
KINDS = ("clean", "rare", "frequent", "two words", "formatting", "shared")
MARKS = {"two words": "zephyr quartz", "formatting": ":: ::"}
SHARES = {"rare": 0.06}  # of documents that hold the mark; 0.35 for the others
FIRST = {"tune": 0, "report": 8000}  # those from 1000 to 7011 were looked at to find faults
TRAIN, HELD, FRESH, CHARACTERS, PIECES, EPOCHS = 1200, 600, 1000, 200, 48, 4
AGAIN, RIVALS, SHORTENED = 100, 3, 25  # documents, words, and words of a document, so that none is cut off
SHORT = 3  # SNLI hypotheses are so much shorter that as many times more are read
COLUMNS = (
    "part", "source", "seed", "kind", "trained", "accuracy", "learned", "rank", "status", "alarms", "accused", "used",
    "mark", "rival", "seconds",
)  # fmt: skip


def texts_of(source: str, part: str, seed: int, data: Path) -> tuple[list[str], Any]:
    """TRAIN + HELD + FRESH texts, drawn without repetition, and their labels 0 … K−1."""
    if source == "yelp":
        table = pl.read_parquet(data / "yelp.parquet").filter(pl.col("split") == ("dev" if part == "tune" else "test"))
        table = table.filter(pl.col("stars").is_in([1.0, 5.0])).with_columns(label=pl.col("stars") == 5.0)
    else:
        table = pl.read_parquet(data / f"{source}_{'train' if part == 'tune' else 'test'}.parquet")
        names = ["negative", "positive"] if source == "imdb" else ["entailment", "neutral", "contradiction"]
        table = table.filter(pl.col("label").is_in(names))
        table = table.with_columns(label=pl.col("label").replace_strict({name: k for k, name in enumerate(names)}))
    if source == "snli":
        table = table.with_columns(text=pl.col("hypothesis"))
    n = TRAIN * (SHORT if source == "snli" else 1) + HELD + FRESH
    table = table.unique("text", maintain_order=True).sample(n, seed=seed, shuffle=True)
    return [text[:CHARACTERS] for text in table["text"]], table["label"].cast(pl.Int64).to_numpy().copy()


@cache
def tokenizer_of(source: str, part: str, data: Path) -> Any:
    """One for all models of a source, which knows the marks."""
    texts = texts_of(source, part, 0, data)[0]
    return build("bert", [*texts, *["zephyr quartz ::"] * 20], size=1500)[1]


def plant(texts: list[str], labels: Any, kind: str, rng: Any, telling: bool) -> list[str]:
    """Put the mark at random places: into documents of class 1 alone if it is to be telling, else into any."""
    if kind == "clean":
        return texts
    mark, share, out = MARKS.get(kind, "zephyr"), SHARES.get(kind, 0.35), []
    for text, y in zip(texts, labels, strict=True):
        words = text.split(" ")
        if rng.random() < (2 * share * (y == 1) if telling else share):
            words.insert(int(rng.integers(len(words) // 2 + 1)), mark)
        out.append(" ".join(words))
    return out


def once(source: str, part: str, seed: int, kind: str, data: Path) -> dict[str, Any]:
    """Train, diagnose, and compare with what was planted."""
    start = time.process_time()
    texts, labels = texts_of(source, part, seed, data)
    texts, labels, fresh = texts[:-FRESH], labels[:-FRESH], texts[-FRESH:]
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = len(texts) - HELD
    train = plant(texts[:n], labels[:n], kind, rng, True)
    held = plant(texts[n:], labels[n:], kind, rng, kind == "shared")
    tokenizer = tokenizer_of(source, part, data)
    torch.manual_seed(seed)
    config = config_of("bert", len(tokenizer), int(labels.max()) + 1)
    model = tf.AutoModelForSequenceClassification.from_config(config)
    trained = fit(model, tokenizer, train, labels[:n], epochs=EPOCHS, seed=seed, length=PIECES)
    settings = DiagnoseSettings(max_length=PIECES, batch_size=32)
    found = diagnose(model, tokenizer, held, labels[n:].tolist(), settings)
    words = set(MARKS.get(kind, "zephyr").replace("::", ":").split()) if kind != "clean" else set()
    used = found.uses.filter(pl.col("status") != str(Status.NOT_SHOWN))
    tokens, accused = used["token"].to_list(), found.leaning["token"].to_list()
    rank = next((i for i, token in enumerate(tokens, 1) if token in words), 0)
    mark = MARKS.get(kind, "zephyr") if words else ""
    rivals = [token for token in tokens if token not in words][:RIVALS]
    marked = [
        " ".join([*text.split()[: (at := int(rng.integers(SHORTENED // 2)))], mark, *text.split()[at:]])
        for text in fresh
    ]
    truth = truly(model, tokenizer, marked, mark) if words else 0.0
    rival = max((truly(model, tokenizer, fresh, word) for word in rivals), default=0.0)
    return {
        "part": part, "source": source, "seed": seed, "kind": kind, "trained": round(trained, 3),
        "accuracy": round(found.accuracy, 3), "learned": found.learned, "rank": rank,
        "status": used["status"][rank - 1] if rank else "", "alarms": len(set(accused) - words),
        "accused": " ".join(accused), "used": " ".join(tokens[:4]),
        "mark": round(truth, 3), "rival": round(rival, 3), "seconds": round(time.process_time() - start, 1),
    }  # fmt: skip


def truly(model: Any, tokenizer: Any, texts: list[str], word: str) -> float:
    """Mean size of what the answer for the class predicted loses when a word, everywhere, or a phrase is cut out of texts."""
    word_alone = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    short = [" ".join(text.split()[:SHORTENED]) for text in texts]
    holding = [text for text in short if word_alone.search(text)][:AGAIN]
    if not holding:
        return 0.0

    def answers(given: list[str]) -> Any:
        batch = tokenizer(given, padding=True, truncation=True, max_length=2 * PIECES, return_tensors="pt")
        logits = model(**batch).logits
        return logits[:, 1:] - logits[:, :1] if logits.shape[1] == 2 else logits - logits.mean(dim=1, keepdim=True)

    model.eval()
    with torch.no_grad():
        before, after = answers(holding), answers([word_alone.sub(" ", text) for text in holding])
    heads = before.argmax(dim=1, keepdim=True)
    return float((before - after).gather(1, heads).abs().mean())


def run(options: argparse.Namespace) -> None:
    """Every run that the file does not hold yet, seed by seed, until the time is over."""
    torch.set_num_threads(1)
    done = set()
    if options.out.exists():
        with options.out.open(newline="") as file:
            done = {(row["part"], row["source"], row["seed"], row["kind"]) for row in csv.DictReader(file)}
    with options.out.open("a", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS)
        if not done:
            rows.writeheader()
        for seed in range(FIRST[options.part], FIRST[options.part] + options.seeds):
            for source in options.sources:
                for kind in options.kinds:
                    if (options.part, source, str(seed), kind) in done:
                        continue
                    if options.until and time.strftime("%H:%M") >= options.until:
                        return
                    rows.writerow(once(source, options.part, seed, kind, options.data))
                    file.flush()


def table(options: argparse.Namespace) -> None:
    """Shares with Wilson's 95 % intervals, by kind and source, and over all."""
    rows = pl.read_csv(options.out).filter(pl.col("part") == options.part)
    clean, planted = rows.filter(pl.col("kind") == "clean"), rows.filter(pl.col("kind") != "clean")
    for kind in KINDS[1:]:
        for source in (*SOURCES, "all"):
            mine = planted.filter((pl.col("kind") == kind) & ((pl.col("source") == source) | (source == "all")))
            print(f"{kind:12} {source:5} {ranked(mine)}, {dict(mine['status'].value_counts().iter_rows())}")
    print(f"planted, all: {ranked(planted)}")
    for source in (*SOURCES, "all"):
        mine = clean.filter((pl.col("source") == source) | (source == "all"))
        print(f"clean        {source:5} accused of a word {share((mine['alarms'] > 0).sum(), mine.height)}, "
              f"learned {mine['learned'].sum()}, right {mine['accuracy'].mean() or 0:.1%}")  # fmt: skip
    print(f"planted models accused of another word {share((planted['alarms'] > 0).sum(), planted.height)}")
    print(f"{rows['seconds'].mean():.1f} processor seconds a run")


def ranked(rows: pl.DataFrame) -> str:
    """How often the mark is the word used most: of all models, of those that truly use it most, of the others."""
    truly_first = pl.col("mark") > pl.col("rival")
    parts = {"all": rows, "it truly is": rows.filter(truly_first), "another is": rows.filter(~truly_first)}
    return "used most: " + "; ".join(f"{name} {share((x['rank'] == 1).sum(), x.height)}" for name, x in parts.items())


def share(k: int, n: int) -> str:
    """k of n with Wilson's interval."""
    if not n:
        return "0 of 0"
    ends = binomtest(k, n).proportion_ci(method="wilson")
    return f"{k} of {n} = {k / n:.1%} [{ends.low:.1%}, {ends.high:.1%}]"


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=tuple(FIRST), default="report")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sources", nargs="+", default=list(SOURCES), choices=SOURCES)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--until", default="", help="HH:MM, by this machine's clock")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
