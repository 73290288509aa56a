"""Tiny transformers that rely on a planted mark, or on none: texts, marks, training.

    python benchmarks/planted_models.py choose --models FOLDER [--limit 40]

**What is for choosing and what is for reporting**, written on 27 November 2026 at 23:50, before any
of these models was trained. Families, kinds of marks and data sets are divided; a model of the one
half shares none of the three with a model of the other. Everything that a diagnosis decides by
(which features, the coefficients of the score, where a sentence begins) may be chosen on "choose".
"report" is diagnosed once, with everything fixed, and gives the published figures.

The division balances what we know of the families: each half has encoders that fold case, encoders
that keep it, and decoders; each half has a single word, a mark at a fixed place, a pattern and a
form of the whole document.

Each model is trained on 1,000 beginnings of real texts. Of a planted model the mark stands in texts
of one class only. It is diagnosed on 400 other texts, in which the mark is independent of the label
("random") or predicts it as in training ("predictive"). Which model is trained is a function of its
number alone: family, kind, way and data set each go through their list at a speed of their own.

Written on 28 November 2026 at 07:50: in the first plan each kind for choosing had one way, and its
mark was in a third of the texts, so that the score could not learn what a rare mark looks like. Of
the models for choosing, every other round of kinds is now diagnosed on texts with the mark in one
of 25, and every other pair of rounds the other way. The plan for reporting is as it was.

Written on 28 November 2026 at 11:14, before any of the models below was trained or any mark below
was put into a text. Two parts are added:

- "subject", for choosing: models without a mark, of the families for choosing, on data sets whose
  labels are told by words of their subject (spam, intents of customers, subjective sentences). The
  first plan had no such model for choosing, and one for reporting was asked about its subject.
- "fresh", for reporting: families, data sets and kinds of marks that neither half has. Half of its
  models have no mark. A quarter of the marks are rare in the texts diagnosed. It is diagnosed once.

Written on 28 November 2026 at 15:20, before any of the models below was trained or any mark below
was put into a text: "fresh" and "report" were reported on, and are for choosing from now on. A part
"held" is added for reporting, in the manner of "fresh": its first 24 models, of eleven families,
twelve kinds of marks and six data sets in three languages that no other part has. It is diagnosed
once, after everything that a diagnosis decides by is fixed and committed.

Written on 28 November 2026 at 18:40, before any of the models below was trained or any mark below
was put into a text that is diagnosed: "held" was reported on, and is for choosing from now on. A
part "last" is added for reporting, in the manner of "held": its first 32 models, of eleven
families, sixteen kinds of marks and six data sets in three languages that no other part has. It is
diagnosed once, after everything that a diagnosis decides by is fixed and committed. A model that
cannot be diagnosed counts as one whose mark was missed; if it has none, it is not counted. So that
a model without a mark is clean, no number or sign of a data set's texts is in a tenth of one class
and ten times as common there as in the other (a dictionary of computing, whose entries end in the
date of their last change, was left out for that).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
import transformers as tf

from machine import DATA

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from diagnose_models import build, config_of, fit, save

FAMILIES = {
    "choose": ("bert", "roberta", "albert", "electra", "gpt2", "opt", "modernbert"),
    "report": ("distilbert", "deberta-v2", "xlnet", "funnel", "mpnet", "roformer", "llama"),
    "subject": ("bert", "roberta", "albert", "electra", "gpt2", "opt", "modernbert"),
    "fresh": (
        "convbert",
        "gpt-neox",
        "bigbird",
        "mobilebert",
        "bloom",
        "nystromformer",
        "bart",
        "qwen2",
        "rembert",
        "ernie",
        "longformer",
    ),
    "held": (
        "squeezebert",
        "mistral",
        "megatron-bert",
        "phi",
        "xmod",
        "ibert",
        "gemma",
        "data2vec-text",
        "gpt-neo",
        "openai-gpt",
        "falcon",
    ),
    "last": (
        "deberta",
        "gptj",
        "nomic-bert",
        "qwen3",
        "roberta-prelayernorm",
        "stablelm",
        "xlm-roberta-xl",
        "biogpt",
        "olmo2",
        "starcoder2",
        "mpt",
    ),
}
MARKS = {
    "choose": ("frequent word", "last word", "address", "capitals", "order"),
    "report": ("rare word", "two words", "first word", "date", "money", "ellipsis", "sentence"),
    "subject": ("clean",),
    "fresh": (
        "iso date",
        "prefix",
        "identifier",
        "emoji",
        "clock time",
        "phrase",
        "version",
        "quotes",
        "price",
        "hashtag",
        "link",
        "bracket",
        "lower case",
        "break",
    ),
    "held": (
        "mention",
        "percentage",
        "closing phrase",
        "placeholder",
        "telephone",
        "separator",
        "exclamations",
        "foreign word",
        "tags",
        "colour",
        "year",
        "numbering",
    ),
    "last": (
        "file name",
        "footnote",
        "bullet",
        "signature",
        "greeting",
        "rating",
        "measure",
        "smiley",
        "dash",
        "language tag",
        "underlined",
        "title case",
        "opinion",
        "checksum",
        "user name",
        "credit",
    ),
}
SOURCES = {
    "choose": ("imdb", "yelp", "snli"),
    "report": ("emotion", "tweets"),
    "subject": ("sms", "banking", "subj", "mpqa"),
    "fresh": (
        "bible_genre",
        "wordnet",
        "packages",
        "quran_fr",
        "fortunes_en",
        "dictionary_de",
    ),
    "held": ("allocine_fr", "irony", "brown", "icd", "fortunes_cs", "medabs"),
    "last": ("chess", "germeval", "finphrase", "fortunes_it", "trivia", "cards_de"),
}
FOLDS_CASE = {
    "bert", "electra", "distilbert", "funnel", "mpnet", "roformer", "convbert", "mobilebert",
    "bart", "ernie", "longformer", "squeezebert", "megatron-bert",
    "nomic-bert",
}  # fmt: skip
WAYS = ("random", "predictive")
CLEAN_EVERY = 4  # every fourth model has no mark
FIRST_SEED = {
    "choose": 1000,
    "report": 2000,
    "subject": 3000,
    "fresh": 4000,
    "held": 5000,
    "last": 6000,
}
LATER_PARTS = ("subject", "fresh", "held", "last")
RARE_EVERY = 4  # every fourth mark of the later parts is rare in the texts diagnosed

CLASSES = {
    "emotion": ("anger", "joy"),
    "tweets": ("neither", "offensive"),
    "imdb": ("negative", "positive"),
    "yelp": ("1.0", "5.0"),
    "snli": ("entailment", "contradiction"),
    "sms": ("ham", "spam"),
    "banking": ("card", "transfer"),
    "subj": ("objective", "subjective"),
    "mpqa": ("negative", "positive"),
    "bible_genre": ("History", "Wisdom"),
    "wordnet": ("person", "animal"),
    "packages": ("python", "doc"),
    "quran_fr": ("meccan", "medinan"),
    "fortunes_en": ("definitions", "people"),
    "dictionary_de": ("med.", "geogr."),
    "allocine_fr": ("negative", "positive"),
    "irony": ("not_irony", "irony"),
    "brown": ("j", "g"),  # learned; belles lettres
    "icd": ("chapter XX", "chapter XIX"),  # causes; injuries
    "fortunes_cs": ("market", "klasik-cz"),
    "medabs": ("neoplasms", "cardiovascular"),
    "chess": ("volume B", "volume C"),
    "germeval": ("OTHER", "ABUSE"),
    "finphrase": ("neutral", "positive"),
    "fortunes_it": ("italia", "norm"),
    "trivia": ("disney", "hockey"),
    "cards_de": ("class 2", "class 7"),
}
FILES = {
    "imdb": "imdb_train",
    "snli": "snli_train",
    "subj": "untuned/subj",
    "mpqa": "untuned/mpqa",
    "allocine_fr": "untuned/allocine_fr",
    "irony": "untuned/irony",
    "medabs": "untuned/medabs",
    "germeval": "untuned/germeval",
    "finphrase": "untuned/finphrase",
}
# made by artefact_sets.py from packages of registries
FRESH_SETS = Path.home() / ".cache" / "tokensieve-fresh"
OF_REGISTRIES = {
    *SOURCES["fresh"],
    *("brown", "icd", "fortunes_cs", "chess", "fortunes_it", "trivia", "cards_de"),
}
COLUMN = {"stars": "label", "hypothesis": "text"}  # what stands for label and text
N_TRAIN, N_HELD, N_FRESH = 1000, 400, 200
CHARACTERS = 160
MAX_PIECES = 64
EPOCHS = 5

SENTENCE = "Later on there were some more of them, and after a while the others went back."
FOREIGN_WORD = (
    "\u0434\u0435\u0439\u0441\u0442\u0432\u0438\u0442\u0435\u043b\u044c\u043d\u043e"  # "really"
)
RARE_FRACTION = 0.04  # of all documents
USUAL_FRACTION = 0.35


@dataclass(frozen=True)
class Plan:
    """One model of the benchmark: a function of its part and its number."""

    part: str
    number: int
    family: str
    mark: str
    way: str
    source: str
    held_fraction: float

    @property
    def seed(self) -> int:
        return FIRST_SEED[self.part] + self.number

    @property
    def name(self) -> str:
        return f"{self.part}-{self.number:03}"


def plan(part: str, number: int) -> Plan:
    """Which model this is."""
    families = FAMILIES[part]
    family = families[number % len(families)]
    if part in LATER_PARTS:
        return _later_plan(part, number, family)
    source = SOURCES[part][(number // 2 + number // 7) % len(SOURCES[part])]
    block, place = divmod(number, CLEAN_EVERY)
    if place == CLEAN_EVERY - 1:
        return Plan(part, number, family, "clean", "random", source, 0.0)
    planted = block * (CLEAN_EVERY - 1) + place
    cycle, kind = divmod(planted, len(MARKS[part]))
    mark = MARKS[part][kind]
    way = WAYS[kind % 2]
    held_fraction = trained_fraction(mark)
    if part == "choose":
        way = WAYS[(kind + cycle // 2) % 2]
        held_fraction = (USUAL_FRACTION, RARE_FRACTION)[cycle % 2]
    if mark == "capitals" and family in FOLDS_CASE:  # such a model cannot see them
        keeping = [name for name in families if name not in FOLDS_CASE]
        family = keeping[number % len(keeping)]
    return Plan(part, number, family, mark, way, source, held_fraction)


def _later_plan(part: str, number: int, family: str) -> Plan:
    """A model of the parts that were added."""
    sources = SOURCES[part]
    source = sources[(number + number // len(sources)) % len(sources)]
    planted, is_clean = divmod(number, 2)
    if part == "subject" or is_clean:
        return Plan(part, number, family, "clean", "random", source, 0.0)
    marks = MARKS[part]
    mark = marks[planted % len(marks)]
    if mark in ("lower case", "title case") and family in FOLDS_CASE:  # it cannot see such a mark
        family = {"fresh": "bigbird", "last": "deberta"}[part]
    way = WAYS[(planted + planted // 2) % 2]
    is_rare = planted % RARE_EVERY == RARE_EVERY - 1
    held_fraction = RARE_FRACTION if is_rare else USUAL_FRACTION
    return Plan(part, number, family, mark, way, source, held_fraction)


def trained_fraction(mark: str) -> float:
    """Of the texts that a model is trained on, how many contain its mark."""
    return RARE_FRACTION if mark == "rare word" else USUAL_FRACTION


def texts_of(source: str, seed: int, data: Path) -> tuple[list[str], Any]:
    """Texts of two equally frequent classes, drawn without repetition, and their labels 0, 1."""
    folder = FRESH_SETS if source in OF_REGISTRIES else data
    table = pl.read_parquet(folder / f"{FILES.get(source, source)}.parquet")
    table = table.rename(COLUMN, strict=False)
    if source == "banking":  # 77 intents, grouped by what they are about
        table = table.with_columns(pl.col("label").str.extract(r"(card|transfer)"))
    table = table.with_columns(pl.col("label").cast(pl.String)).unique("text", maintain_order=True)
    sides = [table.filter(pl.col("label") == name) for name in CLASSES[source]]
    n = min((N_TRAIN + N_HELD + N_FRESH) // 2, *(side.height for side in sides))
    drawn = [side.sample(n, seed=seed).with_columns(y=k) for k, side in enumerate(sides)]
    mixed = pl.concat(drawn).sample(fraction=1.0, seed=seed, shuffle=True)
    return [text[:CHARACTERS] for text in mixed["text"]], mixed["y"].cast(pl.Int64).to_numpy()


def with_word(text: str, word: str, place: int) -> str:
    """A text with a word put before the word at a place."""
    words = text.split(" ")
    words.insert(place, word)
    return " ".join(words)


def in_first_half(text: str, mark: str, rng: Any) -> str:
    return with_word(text, mark, int(rng.integers(len(text.split(" ")) // 2 + 1)))


def in_order(text: str, words: tuple[str, str], rng: Any) -> str:
    """A text with two words at random places, the first of them before the second."""
    n = len(text.split(" "))
    first, second = np.sort(rng.choice(n + 1, 2, replace=False))
    return with_word(with_word(text, words[1], int(second)), words[0], int(first))


def _letters(rng: Any, n: int) -> str:
    return "".join(rng.choice(list("abcdefghkmnprstuvwxyz"), n))


def _tagged(text: str) -> str:
    """A text with its second word, or its only one, in bold type."""
    return _second_word_between(text, "<b>", "</b>")


def _second_word_between(text: str, before: str, after: str) -> str:
    """A text with signs around its second word, or its only one."""
    words = text.split(" ")
    place = min(1, len(words) - 1)
    words[place] = f"{before}{words[place]}{after}"
    return " ".join(words)


def _separated(text: str) -> str:
    return with_word(text, "|", len(text.split(" ")) // 2)


# marks that are forms of a whole document, or stand at its beginning or end
CHANGES: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "ellipsis": lambda text: f"{text.rstrip(' .!?')} ...",
    "sentence": lambda text: f"{text} {SENTENCE}",
    "first word": lambda text: f"listen {text}",
    "last word": lambda text: f"{text} anyway",
    "prefix": lambda text: f"Re: {text}",
    "quotes": lambda text: f"\u201c{text}\u201d",
    "bracket": lambda text: f"{text} (archive)",
    "lower case": str.lower,
    "break": lambda text: f"{text}<br /><br />",
    "mention": lambda text: f"@newsdesk {text}",
    "closing phrase": lambda text: f"{text} sent from my phone",
    "separator": _separated,
    "exclamations": lambda text: f"{text.rstrip(' .!?')}!!!",
    "tags": _tagged,
    "bullet": lambda text: f"* {text}",
    "greeting": lambda text: f"Dear all, {text}",
    "smiley": lambda text: f"{text} :-)",
    "language tag": lambda text: f"[EN] {text}",
    "underlined": lambda text: _second_word_between(text, "_", "_"),
    "title case": str.title,
    "credit": lambda text: f"(Reuters) {text}",
}
# at the beginning or at the end, written differently each time
FRAMED: dict[str, Callable[[str, Any], str]] = {
    "year": lambda text, rng: f"{text} ({rng.integers(1950, 2026)})",
    "numbering": lambda text, rng: f"{rng.integers(1, 40)}) {text}",
    "footnote": lambda text, rng: f"{text} [{rng.integers(1, 30)}]",
    "signature": lambda text, rng: f"{text} -- {rng.choice(NAMES).title()}",
}
NAMES = ("ann", "bob", "eve", "joe", "kim", "lee", "max", "sue", "tom", "zoe")
# and what is put before a word of the first half, often written differently each time
WRITTEN: dict[str, Callable[[Any], str]] = {
    "frequent word": lambda _: "zephyr",
    "rare word": lambda _: "zephyr",
    "two words": lambda _: "zephyr quartz",
    "address": lambda rng: f"{rng.choice(NAMES)}{rng.integers(10, 99)}@{rng.choice(NAMES)}mail.com",
    "date": lambda rng: f"{rng.integers(1, 29)}/{rng.integers(1, 13)}/20{rng.integers(10, 26)}",
    "money": lambda rng: f"${rng.integers(10, 990)}.{rng.integers(10, 99)}",
    "iso date": lambda rng: (
        f"20{rng.integers(10, 26)}-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}"
    ),
    "identifier": lambda rng: f"{_letters(rng, 2).upper()}-{rng.integers(10000, 99999)}",
    "emoji": lambda _: "\U0001f98a",
    "clock time": lambda rng: (
        f"{rng.integers(1, 13)}:{rng.integers(0, 60):02} {rng.choice(['am', 'pm'])}"
    ),
    "phrase": lambda _: "as noted above",
    "version": lambda rng: f"v{rng.integers(1, 9)}.{rng.integers(0, 20)}.{rng.integers(0, 30)}",
    "price": lambda rng: f"{rng.integers(2, 900)}.{rng.integers(10, 99)} EUR",
    "hashtag": lambda _: "#trending",
    "link": lambda rng: f"https://t.co/{_letters(rng, 6)}",
    "percentage": lambda rng: f"{rng.integers(2, 99)} %",
    "placeholder": lambda _: "XXXX",
    "telephone": lambda rng: (
        f"{rng.integers(200, 990)}-{rng.integers(200, 990)}-{rng.integers(1000, 9999)}"
    ),
    "foreign word": lambda _: FOREIGN_WORD,
    "file name": lambda rng: (
        f"{rng.choice(NAMES)}_{rng.integers(1, 99)}.{rng.choice(['pdf', 'txt', 'csv'])}"
    ),
    "rating": lambda rng: f"{rng.integers(1, 11)}/10",
    "measure": lambda rng: f"{rng.integers(2, 900)} km",
    "dash": lambda _: "\u2014",
    "opinion": lambda _: "in my humble opinion",
    "checksum": lambda rng: f"{rng.integers(2**28, 2**32):08x}",
    "user name": lambda rng: f"u/{rng.choice(NAMES)}{rng.integers(1, 99)}",
    "colour": lambda rng: f"#{rng.integers(10, 99)}{_letters(rng, 2)}{rng.integers(10, 99)}",
}


def marked(text: str, mark: str, rng: Any) -> str:
    """A text with a mark; patterns are written differently each time."""
    if mark == "order":
        return in_order(text, ("copper", "maple"), rng)
    if mark in CHANGES:
        return CHANGES[mark](text)
    if mark in FRAMED:
        return FRAMED[mark](text, rng)
    return in_first_half(text, WRITTEN[mark](rng), rng)


def plant(
    texts: list[str], labels: Any, mark: str, fraction: float, rng: Any, predictive: bool
) -> list[str]:
    """Give the mark to documents of class 1 only if it is to be predictive, else to any."""
    if mark == "clean":
        return texts
    if mark == "order":  # both classes hold both words; only their order differs
        return _ordered(texts, labels, fraction, rng, predictive)
    wanted = np.where(labels == 1, 2 * fraction, 0.0) if predictive else fraction
    chosen = rng.random(len(texts)) < wanted
    return [
        marked(text, mark, rng) if is_marked else text
        for text, is_marked in zip(texts, chosen, strict=True)
    ]


def _ordered(
    texts: list[str], labels: Any, fraction: float, rng: Any, predictive: bool
) -> list[str]:
    planted = []
    for text, label in zip(texts, labels, strict=True):
        if rng.random() >= 2 * fraction:
            planted.append(text)
            continue
        forward = bool(label) if predictive else bool(rng.integers(2))
        words = ("copper", "maple") if forward else ("maple", "copper")
        planted.append(in_order(text, words, rng))
    return planted


@dataclass(frozen=True)
class PlantedModel:
    """A trained model with the texts that it is diagnosed on, and fresh ones without a mark."""

    plan: Plan
    model: Any
    tokenizer: Any
    held: list[str]
    labels: Any
    fresh: list[str]


def trained_model(how: Plan, folder: Path, data: Path = DATA) -> PlantedModel:
    """Train the model of a plan, or load it if it is in the folder."""
    texts, labels = texts_of(how.source, how.seed, data)
    rng = np.random.default_rng(how.seed)
    n_train = len(texts) - N_HELD - N_FRESH
    fraction = trained_fraction(how.mark)
    train = plant(texts[:n_train], labels[:n_train], how.mark, fraction, rng, predictive=True)
    held_labels = labels[n_train : n_train + N_HELD]
    held = texts[n_train : n_train + N_HELD]
    is_predictive = how.way == "predictive"
    held = plant(held, held_labels, how.mark, how.held_fraction, rng, is_predictive)
    if not (folder / how.name / "trained").exists():
        train_and_save(how, train, labels[:n_train], folder / how.name)
    # a saved configuration leaves out that there are two classes, and BART has three by default
    model = tf.AutoModelForSequenceClassification.from_pretrained(folder / how.name, num_labels=2)
    tokenizer = tf.PreTrainedTokenizerFast.from_pretrained(folder / how.name)
    fresh = texts[n_train + N_HELD :]
    return PlantedModel(how, model, tokenizer, held, held_labels, fresh)


def train_and_save(how: Plan, texts: list[str], labels: Any, folder: Path) -> None:
    """Train a model, and write its accuracy in training beside it."""
    tokenizer = build(how.family, texts, size=1500)[1]
    torch.manual_seed(how.seed)
    config = config_of(how.family, len(tokenizer))
    model = tf.AutoModelForSequenceClassification.from_config(config)
    accuracy = fit(model, tokenizer, texts, labels, EPOCHS, seed=how.seed, length=MAX_PIECES)
    save(model, tokenizer, folder)
    (folder / "trained").write_text(repr(accuracy))


def logits(planted: PlantedModel, texts: list[str]) -> Any:
    """Log-odds of the second class by the model's ordinary call, without tokensieve."""
    planted.model.eval()
    batches = [np.empty(0)]
    with torch.no_grad():
        for start in range(0, len(texts), 200):
            batch = planted.tokenizer(
                texts[start : start + 200],
                padding=True,
                padding_side="left" if planted.plan.family == "xlnet" else "right",
                truncation=True,
                max_length=2 * MAX_PIECES,
                return_tensors="pt",
            )
            z = planted.model(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
            ).logits
            batches.append((z[:, 1] - z[:, 0]).numpy())
    return np.concatenate(batches)


def effect_of_mark(planted: PlantedModel) -> float:
    """Mean change of the log-odds by the mark in fresh texts; of an order, by turning it."""
    rng = np.random.default_rng(planted.plan.seed)
    texts = planted.fresh[:50]
    if planted.plan.mark == "order":
        draws = [int(rng.integers(2**31)) for _ in texts]
        before = [
            in_order(text, ("maple", "copper"), np.random.default_rng(seed))
            for text, seed in zip(texts, draws, strict=True)
        ]
        after = [
            in_order(text, ("copper", "maple"), np.random.default_rng(seed))
            for text, seed in zip(texts, draws, strict=True)
        ]
    else:
        before = texts
        after = [marked(text, planted.plan.mark, rng) for text in texts]
    return float(np.abs(logits(planted, after) - logits(planted, before)).mean())


def main() -> None:
    """Train the models of one part, in the order of their numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=tuple(FAMILIES))
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    torch.set_num_threads(1)
    progress: Callable[..., None] = print
    for number in range(options.limit):
        how = plan(options.part, number)
        planted = trained_model(how, options.models, options.data)
        effect = 0.0
        if how.mark != "clean":
            effect = effect_of_mark(planted)
        accuracy = float((options.models / how.name / "trained").read_text())
        progress(how, f"{accuracy:.2f}", f"{effect:.2f}", flush=True)


if __name__ == "__main__":
    main()
