"""Planted shortcuts: is the mark named first, are clean models accused, is the headline right, are claimed changes true?

    python benchmarks/planted.py run --out planted.csv [--part report] [--skip 0] [--seeds 10] [--until 21:30] [--models FOLDER]
    python benchmarks/planted.py table --out planted.csv
    python benchmarks/planted.py compare --out compare.jsonl [--seeds 30] [--claims 30]
    python benchmarks/planted.py coverage --out coverage.jsonl [--seeds 1] [--budget small]

Each run trains a tiny transformer (2 layers of 32, a vocabulary of its own) on short real texts, clean or with a mark that gives
the label away, and diagnoses it on other texts, in which the mark is unrelated to the label ("random") or still predicts it
("telling" in the files of runs, printed as "predictive"). A row is
appended to the file at once, and a run that is in it already is not made again. With `--models`, trained models are kept in that
folder and used again; `train` makes them without diagnosing them.

**Kept apart**, written down before the first run: the data sets `emotion` (anger against joy) and `tweets` (offensive against
neither) and the family RoBERTa are for reporting only ("report"). Everything may be tried on "develop": `sms`, `imdb`, `yelp`
(one star against five), hypotheses of `snli` (entailment against contradiction) and ModernBERT. Families whose tokenizer folds
case cannot show capitals, so that both are families that keep it. Seeds, chosen before anything was run with them (24 November
2026, 19:30): planted marks 570, 571, … (`--skip 70`), intervals 590 and 591 (`--skip 90`), comparisons 600 to 629 (`--skip 100`);
development from 70 on. Planted marks 580 to 589 (`--skip 80`) were chosen on 25 November 2026, 23:22;
620 to 622 (`--skip 120`, clean models and capitals, after the headline names a form beside a word) on 26 November 2026, 06:26;
630 and 631 (`--skip 130`, six kinds, after a use that a simple model needs is no longer called unsupported) on the same day, 06:54.

**Rules**, also written down before:

- *learned the mark*, measured apart, without tokensieve: on texts that are neither trained nor diagnosed on, inserting the mark (or
  giving the form) changes the answer by log 2 at least on average, and by more than any of the rivals does. Rivals are the RIVALS
  words in most of the texts diagnosed and the RIVALS words most associated with the label there (largest |z| of the difference
  between both classes' fractions), of words in ten texts at least and without the mark's own; of each the larger counts of the mean
  change when it is removed from up to 50 texts that contain it, and when it is inserted into 50 others. (Until 0.3's last sessions
  the rivals were the first three words that the diagnosis names; that rule's count is printed beside the new one);
- *first*: the mark (a word of it) is the first word of the table, or the form that moves predictions most is the one planted. What
  is planted as "length" is one sentence, so that naming the passage is as right as naming the form;
- *asked*: a clean model's headline names a word or a form as one to be checked;
- *accused*: it does so of a form, or of a word that the data does not support or that a simple model of the data does not need.
  (Until 24 November 2026, 20:00, every question counted, as *asked* does now. But the strongest word of a clean model may be what
  the labels are about, as a slur is in `tweets`, and nothing in the data tells it from a shared shortcut: in predictive development
  models, too, a logistic regression gives the mark 0.7 to 5.3 times what the model does. Saying so and asking is right of both.);
- *headline right*, by category: clean: not accused (before: not asked either), or, if it is not above chance, that it is not shown
  to have learned; a random mark: it is named, and the headline says that the data does not support it, or asks whether it should
  decide; a predictive mark: it is named as what the model relies on most, and the headline asks; a form: it is named.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
import transformers as tf
from planted_texts import (
    FRESH,
    HELD,
    LONGER,
    MARKS,
    inserted,
    plant,
    planter,
    rest_of,
    several,
    texts_of,
)
from scipy.stats import binomtest

from machine import DATA, described, store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from diagnose_models import build, config_of, fit, save
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, compare, diagnose
from tokensieve.diagnose import run as run_module
from tokensieve.diagnose.effects.confirming import FEWEST
from tokensieve.diagnose.effects.measuring import Measured, Work
from tokensieve.diagnose.report import DiagnosisReport
from tokensieve.diagnose.run import OpenModel
from tokensieve.progress import silent
from tokensieve.read.reader import read_corpus

SOURCES = {"report": ("emotion", "tweets"), "develop": ("sms", "imdb", "yelp", "snli")}
FAMILY = {"report": "roberta", "develop": "modernbert"}
FORMS = {"capitals": "in CAPITALS", "length": "followed by three neutral sentences"}
KINDS = ("clean", *(f"{mark} {how}" for mark in (*MARKS, *FORMS) for how in ("random", "telling")))
FIRST_SEED = {"report": 500, "develop": 0}
PIECES, EPOCHS = 64, 4
RIVALS = 10
PASSAGE = "later on there were"  # by which a passage named is known
MARGIN = ".,!?:;\"'()"
COLUMNS = "part source seed kind trained accuracy learned first asked accused right mark rival named headline seconds".split()


def trained_model(
    source: str, part: str, seed: int, kind: str, data: Path, models: Path | None = None
) -> tuple[Any, Any, float, Any]:
    """A model, its tokenizer, its accuracy in training, and (held texts, their labels, fresh texts)."""
    texts, labels = texts_of(source, seed, data)
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = len(texts) - HELD - FRESH
    train = plant(texts[:n], labels[:n], kind, rng, True)
    held = plant(texts[n : n + HELD], labels[n : n + HELD], kind, rng, kind.endswith("telling"))
    rest = held, labels[n : n + HELD], texts[n + HELD :]
    folder = None if models is None else models / f"{part}-{source}-{seed}-{kind}".replace(" ", "-")
    if folder and (folder / "trained").exists():
        model = tf.AutoModelForSequenceClassification.from_pretrained(folder)
        tokenizer = tf.PreTrainedTokenizerFast.from_pretrained(folder)
        return model, tokenizer, float((folder / "trained").read_text()), rest
    tokenizer = build(FAMILY[part], [*train, *["zephyr quartz ::"] * 20], size=1500)[1]
    torch.manual_seed(seed)
    model = tf.AutoModelForSequenceClassification.from_config(
        config_of(FAMILY[part], len(tokenizer))
    )
    trained = fit(model, tokenizer, train, labels[:n], epochs=EPOCHS, seed=seed, length=PIECES)
    if folder:
        save(model, tokenizer, folder)
        (folder / "trained").write_text(repr(trained))
    return model, tokenizer, trained, rest


def answers(model: Any, tokenizer: Any, texts: list[str]) -> Any:
    """Log-odds of the second class."""
    model.eval()
    out = [np.empty(0)]
    with torch.no_grad():
        for at in range(0, len(texts), 500):
            some = texts[at : at + 500]
            batch = tokenizer(
                some, padding=True, truncation=True, max_length=2 * PIECES, return_tensors="pt"
            )
            z = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
            out.append((z[:, 1] - z[:, 0]).numpy())
    return np.concatenate(out)


def removed(text: str, word: str) -> str:
    """A text without every occurrence of a word."""
    return " ".join(one for one in text.split() if one.strip(MARGIN).lower() != word)


def plain_words(text: str) -> list[str]:
    """The words of a text, without case and marks around them."""
    return [word for one in text.split() if (word := one.strip(MARGIN).lower())]


def rivals_of(held: list[str], labels: Any, without: set[str]) -> list[str]:
    """The most frequent words of some texts and those most associated with the label (the rule *learned*)."""
    has = [set(plain_words(text)) - without for text in held]
    counts = Counter(word for words in has for word in words)
    often = [word for word, n in counts.most_common() if n >= 10]
    of_one = Counter(word for words, y in zip(has, labels, strict=True) if y for word in words)
    n1, n = int(labels.sum()), len(labels)
    n0 = n - n1
    z = {}
    for word in often:
        p = counts[word] / n
        difference = of_one[word] / n1 - (counts[word] - of_one[word]) / n0
        z[word] = abs(difference) / np.sqrt(max(p * (1 - p), 1e-9) * (1 / n0 + 1 / n1))
    return list(
        dict.fromkeys([*often[:RIVALS], *sorted(often, key=z.__getitem__, reverse=True)[:RIVALS]])
    )


def sizes_without(model: Any, tokenizer: Any, texts: list[str], word: str, most: int) -> Any:
    """How far each answer to some of the texts that contain a word moves when it is removed."""
    some = [text for text in texts if removed(text, word) != " ".join(text.split())][:most]
    if not some:
        return np.zeros(1)
    bare = [removed(text, word) or "." for text in some]
    return np.abs(answers(model, tokenizer, some) - answers(model, tokenizer, bare))


def once(
    source: str, part: str, seed: int, kind: str, data: Path, models: Path | None = None
) -> dict[str, Any]:
    """Train, diagnose, and compare with what was planted."""
    start = time.process_time()
    model, tokenizer, trained, kept = trained_model(source, part, seed, kind, data, models)
    settings = DiagnoseSettings(max_length=PIECES, batch_size=32)
    found = diagnose(model, tokenizer, kept[0], kept[1].tolist(), settings)
    strength = dict.fromkeys(("mark", "rival", "named"), 0.0)
    if kind != "clean":
        strength = strengths(model, tokenizer, kind, kept, seed, found.used["token"].to_list())
    said = DiagnosisReport(found).headline()
    row = {"part": part, "source": source, "seed": seed, "kind": kind, "trained": round(trained, 3)}
    row |= {"accuracy": round(found.accuracy, 3), "learned": found.learned}
    row |= {
        "first": is_first(found, kind),
        "asked": kind == "clean" and asks(said),
        "accused": kind == "clean" and accuses(said),
        "right": right(said, found, kind),
    }
    row |= {name: round(x, 3) for name, x in strength.items()}
    # a headline on `tweets` may quote slurs: of the words that it names the file keeps those planted
    planted = words_of(kind)
    hidden = re.sub(
        "“([^”]+)”",
        lambda one: one[0] if one[1] in planted or PASSAGE in one[1] else "“(a word)”",
        said,
    )
    return row | {"headline": hidden, "seconds": round(time.process_time() - start, 1)}


def strengths(
    model: Any, tokenizer: Any, kind: str, kept: Any, seed: int, named: list[str]
) -> dict[str, float]:
    """Mean changes of the answer by the mark, by its strongest rival, and by the strongest of the first three words named."""
    held, labels, fresh = kept
    rng, change = np.random.default_rng(seed), planter(kind, np.random.default_rng(seed))
    plain = answers(model, tokenizer, fresh)
    own = float(np.abs(answers(model, tokenizer, [change(text) for text in fresh]) - plain).mean())
    rival = 0.0
    for word in rivals_of(held, labels, words_of(kind)):
        rival = max(rival, float(sizes_without(model, tokenizer, held, word, 50).mean()))
        at = [k for k in rng.permutation(len(fresh)) if word not in plain_words(fresh[k])][:50]
        put = [inserted(fresh[k], word, rng) for k in at]
        rival = (
            max(rival, float(np.abs(answers(model, tokenizer, put) - plain[at]).mean()))
            if at
            else rival
        )
    before = [word for word in named if kind.startswith("length") or word not in words_of(kind)][:3]
    sizes = [
        float(sizes_without(model, tokenizer, [*held, *fresh], word, 100).mean()) for word in before
    ]
    return {"mark": own, "rival": rival, "named": max(sizes, default=0.0)}


def words_of(kind: str) -> set[str]:
    """The words of what is planted, as the diagnosis writes them."""
    mark = kind.rpartition(" ")[0]
    return (
        set(plain_words(LONGER))
        if mark == "length"
        else set(MARKS.get(mark, "").replace("::", ":").split())
    )


def is_first(found: Diagnosis, kind: str) -> bool:
    """Whether what was planted comes first (the rule *first*)."""
    mark = kind.rpartition(" ")[0]
    top = found.used["token"].head(1).to_list()
    if mark not in FORMS:
        return bool(words_of(kind) & set(top))
    moved = found.forms.filter("followed").sort(
        pl.col("after") - pl.col("before"), "use", descending=True
    )
    return moved["form"].to_list()[:1] == [FORMS[mark]] or (
        mark == "length" and any(PASSAGE in token for token in top)
    )


def asks(said: str) -> bool:
    """Whether a headline names something to be checked."""
    sure = said.startswith(("This model relies", "This model follows"))
    return sure or " It follows the form" in said or "Its predictions depend most on" in said


def accuses(said: str) -> bool:
    """Whether it names a form, or a word that the data does not support or need."""
    needed = " too (+" in said and " follows the form" not in said
    return asks(said) and not needed


def right(said: str, found: Diagnosis, kind: str) -> bool:
    """Whether the headline is right, by the rule of its category."""
    mark, _, how = kind.rpartition(" ")
    if kind == "clean":
        unsure = not found.skill.above_chance or found.skill.auc <= found.skill.auc_random
        quiet = said.startswith(("No single word dominates", "This model has learned"))
        return quiet or (asks(said) and not accuses(said)) or (not found.learned and unsure)
    if mark in FORMS:
        return FORMS[mark] in said or (mark == "length" and PASSAGE in said and asks(said))
    named = any(f"“{word}”" in said for word in words_of(kind))
    expected = "Would you expect" in said
    return named and asks(said) and (expected or ("does not support" in said and how == "random"))


def run(options: argparse.Namespace) -> None:
    """Every run that the file does not hold yet, seed by seed, until the time is over."""
    torch.set_num_threads(1)
    done = set()
    if options.out.exists():
        with options.out.open(newline="") as file:
            done = {
                (row["part"], row["source"], row["seed"], row["kind"])
                for row in csv.DictReader(file)
            }
    with options.out.open("a", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS)
        if not done:
            rows.writeheader()
        start = FIRST_SEED[options.part] + options.skip
        for seed in range(start, start + options.seeds):
            # another order for each seed, so that a run that is interrupted has about as many models of each kind
            for kind in np.random.default_rng(seed).permutation(options.kinds).tolist():
                for source in SOURCES[options.part]:
                    if (options.part, source, str(seed), kind) in done:
                        continue
                    if options.until and time.strftime("%H:%M") >= options.until:
                        return
                    rows.writerow(
                        once(source, options.part, seed, kind, options.data, options.models)
                    )
                    file.flush()


def train(options: argparse.Namespace) -> None:
    """Make and keep the models that `run` diagnoses."""
    torch.set_num_threads(1)
    start = FIRST_SEED[options.part] + options.skip
    for seed in range(start, start + options.seeds):
        for kind in options.kinds:
            for source in SOURCES[options.part]:
                trained_model(source, options.part, seed, kind, options.data, options.models)


def table(options: argparse.Namespace) -> None:
    """Counts with Wilson's 95 % intervals, by kind and over all; kept in results/ under the name of the file of runs."""
    rows = pl.read_csv(options.out).filter(pl.col("part") == options.part)
    planted, clean = rows.filter(pl.col("kind") != "clean"), rows.filter(pl.col("kind") == "clean")
    learned = planted.filter((pl.col("mark") >= np.log(2)) & (pl.col("mark") > pl.col("rival")))
    print("| planted | learned the mark | of these first | headline right |\n|---|---|---|---|")
    reaching = planted.filter(pl.col("mark") >= np.log(2))
    other = {
        "rule before": reaching.filter(pl.col("mark") > pl.col("named")),
        "whatever the rivals do": reaching,
    }
    figures: dict[str, Any] = {
        "runs": rows.height,
        "seeds": sorted(rows["seed"].unique().to_list()),
    }
    for kind in (*KINDS[1:], "all random", "all telling", "all"):
        of_kind = (
            pl.col("kind").str.ends_with(kind.removeprefix("all"))
            if kind[:3] == "all"
            else pl.col("kind") == kind
        )
        every, mine = planted.filter(of_kind), learned.filter(of_kind)
        figures[kind] = {"models": every.height, "learned": mine.height}
        figures[kind] |= {name: int(mine[name].sum()) for name in ("first", "right")}
        shown = kind.replace("telling", "predictive")
        print(f"| {shown} | {mine.height} of {every.height} | {share(mine['first'].sum(), mine.height)} | "
              f"{share(mine['right'].sum(), mine.height)} |")  # fmt: skip
    for name, some in other.items():
        print(
            f"{name}: first {share(some['first'].sum(), some.height)}, right {share(some['right'].sum(), some.height)}"
        )
        figures[name] = {
            "learned": some.height,
            **{what: int(some[what].sum()) for what in ("first", "right")},
        }
    print(f"clean models accused: {share(clean['accused'].sum(), clean.height)}; asked about a word: "
          f"{share(clean['asked'].sum(), clean.height)}; headline right: "
          f"{share(clean['right'].sum(), clean.height)}; {rows['seconds'].mean():.1f} CPU seconds a run")  # fmt: skip
    figures["clean"] = {"models": clean.height} | {
        name: int(clean[name].sum()) for name in ("asked", "accused", "right")
    }
    store(options.out.stem, figures, described("torch", "transformers"))


def share(k: int, n: int) -> str:
    """k of n with Wilson's interval."""
    if not n:
        return "0 of 0 = –"
    ends = binomtest(int(k), n).proportion_ci(method="wilson")
    return f"{k} of {n} = {k / n:.1%} [{ends.low:.1%}, {ends.high:.1%}]"


def changes(options: argparse.Namespace) -> None:
    """Two models of the same shape, one clean and one with a frequent mark: which claimed changes of use are true?

    The truth is the paired difference by the models' ordinary call on text, over texts that neither model was trained on and that
    the comparison did not read (2,000 of each class at most, the mark in some of them as in those it read): over all that contain
    the word, or 200 that it is inserted into, at any place, if the comparison inserted it too (until 24 November 2026: if fewer
    than 24 contain it, and into their first half). A claim is true if the truth has its sign and its own 95 % interval excludes
    zero. Every claim is a line of `--out`; seeds go on until `--claims` are reached.
    """
    torch.set_num_threads(1)
    start, rows = FIRST_SEED[options.part] + options.skip, list[dict[str, Any]]()
    if options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    done = {row["seed"] for row in rows}
    for seed in range(start, start + options.seeds):
        if seed in done or sum(row["token"] != "" for row in rows) >= options.claims:
            continue
        source = SOURCES[options.part][seed % 2]
        model, tokenizer, _, _ = trained_model(source, options.part, seed, "clean", options.data)
        other, same, _, (held, labels, _) = trained_model(
            source, options.part, seed, "frequent random", options.data
        )
        models = {"clean": (model, tokenizer), "planted": (other, same)}
        corpus = read_corpus((held, labels.tolist()))
        settings = DiagnoseSettings(max_length=2 * PIECES, batch_size=32, max_documents=HELD)
        claims = compare(models, corpus, settings).words
        unread = rest_of(source, seed, options.data)
        new = [{"seed": seed, "source": source, "token": ""}]  # that this seed is done
        for row in claims.select(
            "token", "change", "low", "high", "q_value", "documents"
        ).iter_rows(named=True):
            d = true_change(models, row["token"], unread, seed, row["documents"] < FEWEST)
            new.append(
                {"seed": seed, "source": source, **row, "texts": len(d), "truth": float(d.mean())}
            )
            new[-1]["error"] = float(1.96 * d.std(ddof=1) / np.sqrt(len(d)))
        rows += new
        with options.out.open("a") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in new)
    claimed = [row for row in rows if row["token"] and row["texts"] >= 24]
    signs = sum(
        row["truth"] * row["change"] > 0 and abs(row["truth"]) > row["error"] for row in claimed
    )
    inside = sum(row["low"] <= row["truth"] <= row["high"] for row in claimed)
    seeds = len({row["seed"] for row in rows})
    print(f"{seeds} pairs, {len(claimed)} claims, true {share(signs, len(claimed))}, "
          f"truth inside the interval {share(inside, len(claimed))}")  # fmt: skip


def true_change(
    models: dict[str, tuple[Any, Any]], token: str, texts: list[str], seed: int, put: bool
) -> Any:
    """How much further the second model's answer moves than the first's, of every text, when a word is removed or `put` in."""

    def bare(text: str) -> str:
        return (
            removed(text, token)
            if token[0].isalnum()
            else " ".join(text.replace(token, " ").split())
        )

    plain = [" ".join(text.split()) for text in texts]
    some = [text for text in plain if bare(text) != text]
    changed = [bare(text) or "." for text in some]
    if put:
        rng = np.random.default_rng(seed)
        some = [text for text in plain if bare(text) == text][:FRESH]
        changed = [inserted(text, token, rng, 1.0) for text in some]
    sizes = [np.abs(answers(*one, some) - answers(*one, changed)) for one in models.values()]
    return sizes[1] - sizes[0]


def covered(source: str, classes: int, family: str, seed: int, data: Path) -> list[dict[str, Any]]:
    """Each confirmed word of a model, trained on 1,200 texts and diagnosed on 400 others: its interval and the truth.

    The truth is the mean over the texts that were not read and contain the word (600 of them at most; 30 at least, or the word is
    left out); of a word that was only inserted, over 300 that do not; `error` is its standard error. Until lately it was
    the mean over all texts, 400 of about 3,000 read: intervals then cover more than they do for new documents. Phrases, whose
    words are removed together, are left out.
    """
    texts, labels, names = several(source, classes, seed, data)
    tokenizer = build(family, texts[:1200], size=1500)[1]
    torch.manual_seed(seed)
    model = tf.AutoModelForSequenceClassification.from_config(
        config_of(family, len(tokenizer), classes)
    )
    fit(model, tokenizer, texts[:1200], labels[:1200], epochs=6, seed=seed, length=PIECES)
    model.config.id2label, model.config.label2id = (
        dict(enumerate(names)),
        {x: k for k, x in enumerate(names)},
    )
    said = [names[k] for k in labels]
    settings = {"max_length": PIECES, "batch_size": 32, "seed": seed, "untrained": False}
    found = diagnose(
        model, tokenizer, texts[1200:1600], said[1200:1600], DiagnoseSettings(**settings)
    )
    every = DiagnoseSettings(max_documents=len(texts), min_documents=1, **settings)
    rows = []
    with OpenModel.loaded(
        model, tokenizer, read_corpus((texts[1600:], said[1600:])), every, None, False
    ) as opened:
        measured = Measured(opened.subject, opened.outputs, Work(64, 0, 0, None, "", silent))
        measured.read()
        measured.subject.differentiable = False  # nothing but the answers is needed
        measured.measure(
            opened.outputs, np.zeros(len(measured.logits)), np.empty(0, dtype=np.int64)
        )
        place = {word: s for s, word in enumerate(opened.sample.words)}
        words = np.sort([place[word] for word in found.uses["token"] if word in place])
        words = np.setdiff1d(words, np.array(sorted(measured.companions(words)), dtype=np.int64))
        at = measured.choose(words, 600)
        types, windows = measured.types[at], measured.windows[at]
        lost = np.abs(
            measured.remove(types, windows, "removed")[np.arange(len(at)), measured.heads[windows]]
        )
        for row in found.uses.filter(
            pl.col("token").is_in([opened.sample.words[s] for s in words])
        ).iter_rows(named=True):
            s = place[row["token"]]
            sizes = lost[(types == s) & np.isfinite(lost)]
            if put := row["use"] == row["inserted"]:
                free = np.setdiff1d(
                    np.arange(len(measured.answers)), measured.windows[measured.types == s]
                )
                free = np.random.default_rng(seed).permutation(free)[:300]
                gained = measured.insert(np.full(len(free), s), free, f"inserted {s}")
                towards = (
                    (measured.answers[free] + gained).argmax(axis=1) if gained.shape[1] > 1 else 0
                )
                sizes = np.abs(gained[np.arange(len(free)), towards])
            if len(sizes) < 30:
                continue
            row = {name: row[name] for name in ("token", "use", "use_low", "use_high", "inputs")}
            row |= {
                "truth": float(sizes.mean()),
                "error": float(sizes.std(ddof=1) / np.sqrt(len(sizes))),
            }
            rows.append(
                row
                | {
                    "classes": classes,
                    "family": family,
                    "source": source,
                    "seed": seed,
                    "inserted": put,
                }
            )
    return rows


def coverage(options: argparse.Namespace) -> None:
    """How often the interval of use contains the truth, for two and four classes, an encoder and a decoder.

    Reported are BERT and GPT-2 on `tweets` and, with four classes, `emotion`; everything was tuned on ModernBERT and Llama on
    `imdb`, `yelp` and `banking`. `--budget small`: 2 passes a document, as for a model of 67 million weights. A model that `--out`
    holds is not made again. An interval contains the truth, its own error allowed for, if it is no further from the use than
    √(h² + (1.96 · error)²), with h the distance of the interval's end on that side.
    """
    torch.set_num_threads(1)
    if options.budget == "small":
        run_module._passes = lambda *_: 1.0
    start, report = FIRST_SEED[options.part] + options.skip, options.part == "report"
    for seed in range(start, start + options.seeds):
        for family in ("bert", "gpt2") if report else ("modernbert", "llama"):
            for source, classes in (
                (("tweets", 2), ("emotion", 4)) if report else (("imdb", 2), ("yelp", 4))
            ):
                done = (
                    pl.read_ndjson(options.out)
                    if options.out.exists()
                    else pl.DataFrame({"seed": []})
                )
                if done.height and done.filter(seed=seed, family=family, source=source).height:
                    continue
                with options.out.open("a") as file:
                    rows = covered(source, classes, family, seed, options.data)
                    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    use, low, high, truth = map(pl.col, ("use", "use_low", "use_high", "truth"))
    reach = (
        (pl.when(truth < use).then(use - low).otherwise(high - use)) ** 2
        + (1.96 * pl.col("error")) ** 2
    ).sqrt()
    counts = {"words": pl.len(), "inside": ((low <= truth) & (truth <= high)).sum()}
    counts |= {"allowing": ((truth - use).abs() <= reach).sum(), "above": (truth > high).sum()}
    counts["width"] = ((high - low) / 2 / use).median()
    table = pl.read_ndjson(options.out)
    for by in (["source", "family", "seed"], ["inserted"], []):
        print(
            (table.group_by(by).agg(**counts).sort(by) if by else table.select(**counts)).to_dicts()
        )


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("train", "run", "table", "compare", "coverage"))
    parser.add_argument("--out", type=Path, default=Path("planted.csv"))
    parser.add_argument("--part", choices=tuple(SOURCES), default="report")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--skip", type=int, default=0, help="seeds to leave out first")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument(
        "--claims", type=int, default=30, help="of `compare`, after which no further seed is begun"
    )
    parser.add_argument("--models", type=Path, help="folder of trained models")
    parser.add_argument("--until", default="", help="HH:MM, by this machine's clock")
    parser.add_argument(
        "--budget", choices=("usual", "small"), default="usual", help="of `coverage`"
    )
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    {"train": train, "run": run, "table": table, "compare": changes, "coverage": coverage}[
        options.what
    ](options)


if __name__ == "__main__":
    main()
