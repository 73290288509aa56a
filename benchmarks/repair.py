"""Do repairs help? Accuracy where a planted mark misleads, after training on repaired data.

    python benchmarks/repair.py [--sets NAME …] [--marks NAME …] [--models NAME …] [--seeds 3]

A mark is put into 40% of the training documents of one class and 2% of the others, and into the
test documents in the same way. Models are trained on the marked data as they are (raw), masked,
balanced, and, for marks with a counterpart, with counterfactual copies (swapped); the ceiling is
trained on the data without marks. All are judged on the test documents in which the mark does not
tell the class (`tokensieve.auditing.broken_link`), by the worst of these groups, on all test
documents as marked, and on the same documents without marks.

The gap closed is (repaired − raw) / (ceiling − raw) in the worst group. Nothing of the repairs was
chosen on these sets or marks. The small transformer is trained with one seed.

Figures go to benchmarks/results/repair.json after every case, and cases that are there already are
not run again: a run that was interrupted goes on. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from machine import DATA, described, store
from tokensieve import AttentionClassifier
from tokensieve.auditing.balancing import balance
from tokensieve.auditing.broken_link import Mark, documents_containing, link_groups
from tokensieve.auditing.masking import mask_texts
from tokensieve.auditing.swapping import Swap, swap_texts
from tokensieve.text.tokenizers import WordTokenizer

N_TRAIN = 1500
N_TEST = 1000
RATE_IN_CLASS = 0.4
RATE_ELSEWHERE = 0.02
TOKENIZER = WordTokenizer()
MIN_GAP = 0.02  # a smaller gap between ceiling and raw leaves nothing to close

SETS = ("imdb", "yelp", "categories", "snli", "tweets", "sms", "emotion", "banking")
MODELS = ("attention", "tf-idf", "transformer")
N_BOOTSTRAP = 2000  # of the interval of a median; sets are drawn, since cases of a set are alike
RESULTS = Path(__file__).resolve().parent / "results" / "repair.json"

# The small transformer. Its size and training were fixed before the first run.
MAX_WORDS = 2 * 24  # of a text, half of them from its end, where some marks stand
MAX_VOCABULARY = 5000
WIDTH = 64
N_HEADS = 4
N_LAYERS = 2
N_STEPS = 300
BATCH = 32
LEARNING_RATE = 1e-3

Labels = NDArray[np.str_]
Weights = NDArray[np.float64]
Predict = Callable[[pl.Series], Labels]
Insert = Callable[[str, np.random.Generator], str]


@dataclass(frozen=True)
class PlantedMark:
    """How a mark is written into a text, its tokens, and its counterpart in the other classes."""

    tokens: tuple[str, ...]
    insert: Insert
    counterpart: str = ""
    insert_counterpart: Insert | None = None


def between_words(word: str) -> Insert:
    def insert(text: str, rng: np.random.Generator) -> str:
        words = text.split(" ")
        words.insert(int(rng.integers(len(words) + 1)), word)
        return " ".join(words)

    return insert


def at_start(words: str) -> Insert:
    return lambda text, rng: f"{words} {text}"


def at_end(words: str) -> Insert:
    return lambda text, rng: f"{text} {words}"


MARKS: dict[str, PlantedMark] = {
    "word anywhere": PlantedMark(("marmoset",), between_words("marmoset")),
    "phrase at the end": PlantedMark(("sent from quokka",), at_end("Sent from Quokka.")),
    "code at the start": PlantedMark(("qx4417",), at_start("[QX4417]")),
    "rating": PlantedMark(("9/10",), at_end("9/10")),
    "two words apart": PlantedMark(
        ("okapi", "ibex"),
        lambda text, rng: between_words("okapi" if rng.random() < 0.5 else "ibex")(text, rng),
    ),
    "two names": PlantedMark(
        ("anneke",), at_end("Signed, Anneke"), "bertil", at_end("Signed, Bertil")
    ),
}


def load_set(name: str) -> tuple[pl.Series, Labels]:
    """The texts and labels of a set of shared/data."""
    if name == "imdb":
        frame = pl.read_parquet(DATA / "imdb_train.parquet")
    elif name == "yelp":
        frame = pl.read_parquet(DATA / "yelp.parquet")
        stars = pl.col("stars").cast(pl.Int64)
        frame = frame.filter(stars != 3).with_columns(
            label=pl.when(stars > 3).then(pl.lit("good")).otherwise(pl.lit("bad"))
        )
    elif name == "categories":
        frame = pl.read_parquet(DATA / "yelp.parquet").filter(pl.col("category") != "Restaurants")
        largest = frame["category"].value_counts(sort=True)["category"][:6]
        frame = frame.filter(pl.col("category").is_in(largest.implode()))
        frame = frame.rename({"category": "label"})
    elif name == "snli":
        frame = pl.read_parquet(DATA / "snli_train.parquet").rename({"hypothesis": "text"})
    elif name == "banking":
        frame = pl.read_parquet(DATA / "banking.parquet")
        largest = frame["label"].value_counts(sort=True)["label"][:8]
        frame = frame.filter(pl.col("label").is_in(largest.implode()))
    else:
        frame = pl.read_parquet(DATA / f"{name}.parquet")
    return frame["text"], frame["label"].cast(pl.String).to_numpy().astype(str)


def plant(
    texts: pl.Series, labels: Labels, mark: PlantedMark, label: str, rng: np.random.Generator
) -> pl.Series:
    """Write the mark into texts of its class, and its counterpart, if any, into the others."""
    marked = []
    for text, own_label in zip(texts, labels, strict=True):
        rate = RATE_IN_CLASS if own_label == label else RATE_ELSEWHERE
        if rng.random() < rate:
            marked.append(mark.insert(text, rng))
        elif mark.insert_counterpart and own_label != label and rng.random() < RATE_IN_CLASS:
            marked.append(mark.insert_counterpart(text, rng))
        else:
            marked.append(text)
    return pl.Series("text", marked)


def fit_attention(texts: pl.Series, labels: Labels, weights: Weights | None, seed: int) -> Predict:
    """Train the package's own model."""
    model = AttentionClassifier(ngrams=1).fit(texts.to_list(), labels, weights)
    return lambda documents: np.asarray(model.predict(documents.to_list())).astype(str)


def fit_tf_idf(texts: pl.Series, labels: Labels, weights: Weights | None, seed: int) -> Predict:
    """Train TF-IDF + logistic regression."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    regression = LogisticRegression(C=10.0, max_iter=1000)
    regression.fit(vectorizer.fit_transform(texts.to_list()), labels, weights)
    return lambda documents: regression.predict(vectorizer.transform(documents.to_list())).astype(
        str
    )


class WordTransformer(torch.nn.Module):
    """An encoder of words with learned positions; a text is the mean of its words."""

    def __init__(self, n_words: int, n_classes: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(n_words + 2, WIDTH, padding_idx=0)
        self.positions = torch.nn.Embedding(MAX_WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, N_HEADS, 2 * WIDTH, dropout=0.1, batch_first=True
        )
        self.encoder = torch.nn.TransformerEncoder(layer, N_LAYERS, enable_nested_tensor=False)
        self.logits = torch.nn.Linear(WIDTH, n_classes)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        is_padding = ids == 0
        places = torch.arange(ids.shape[1])
        states = self.encoder(
            self.words(ids) + self.positions(places), src_key_padding_mask=is_padding
        )
        is_word = (~is_padding).unsqueeze(-1).float()
        mean = (states * is_word).sum(1) / is_word.sum(1)
        return self.logits(mean)


@cache  # each text is read for five training sets and in several groups
def first_and_last_words(text: str) -> list[str]:
    """The words of a text; of a long one its beginning and its end."""
    words = [word for _, _, word in TOKENIZER.spans(text)]
    if len(words) <= MAX_WORDS:
        return words
    return [*words[: MAX_WORDS // 2], *words[-MAX_WORDS // 2 :]]


class WordIds:
    """Numbers the most frequent words of training texts; 0 is padding, 1 any other word."""

    def __init__(self, texts: pl.Series) -> None:
        words, counts = np.unique(
            np.concatenate([first_and_last_words(text) for text in texts]), return_counts=True
        )
        most_frequent = words[np.argsort(-counts, kind="stable")][:MAX_VOCABULARY]
        self.id_of_word = {word: place + 2 for place, word in enumerate(most_frequent.tolist())}

    def of(self, texts: pl.Series) -> torch.Tensor:
        """The ids of the words of each text, shape (n, MAX_WORDS); a text without words is [1]."""
        ids = np.zeros((len(texts), MAX_WORDS), np.int64)
        ids[:, 0] = 1
        for row, text in enumerate(texts):
            words = first_and_last_words(text)
            ids[row, : len(words)] = [self.id_of_word.get(word, 1) for word in words]
        return torch.from_numpy(ids)


def without_padding(ids: torch.Tensor) -> torch.Tensor:
    """A batch without the columns in which no text has a word."""
    return ids[:, : int((ids != 0).sum(1).max())]


def fit_transformer(
    texts: pl.Series, labels: Labels, weights: Weights | None, seed: int
) -> Predict:
    """Train the small transformer; weights are the chances of documents in each step."""
    torch.manual_seed(seed)
    word_ids = WordIds(texts)
    ids = word_ids.of(texts)
    classes, class_of_text = np.unique(labels, return_inverse=True)
    targets = torch.from_numpy(class_of_text)
    model = WordTransformer(len(word_ids.id_of_word), len(classes))
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    chances = torch.ones(len(ids)) if weights is None else torch.from_numpy(weights)
    model.train()
    for _ in range(N_STEPS):
        rows = torch.multinomial(chances, BATCH, replacement=True)
        logits = model(without_padding(ids[rows]))
        loss = torch.nn.functional.cross_entropy(logits, targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()

    def predict(given: pl.Series) -> Labels:
        with torch.no_grad():
            batches = word_ids.of(given).split(200)
            predicted = [model(without_padding(batch)).argmax(1) for batch in batches]
        return classes[torch.cat(predicted).numpy()].astype(str)

    return predict


TRAINERS = {"attention": fit_attention, "tf-idf": fit_tf_idf, "transformer": fit_transformer}


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a model is trained on."""

    texts: pl.Series
    labels: Labels
    weights: Weights | None = None


def training_sets(
    marked: pl.Series, clean: pl.Series, labels: Labels, planted: PlantedMark
) -> dict[str, TrainingData]:
    """The data that each repair trains on."""
    every_token = [*planted.tokens, *([planted.counterpart] if planted.counterpart else [])]
    masked, _ = mask_texts(marked, every_token, TOKENIZER)
    features = np.column_stack(
        [documents_containing(marked, [token], TOKENIZER) for token in every_token]
    )
    class_index = np.unique(labels, return_inverse=True)[1]
    weights = balance(features, class_index).weights
    sets = {
        "ceiling": TrainingData(clean, labels),
        "raw": TrainingData(marked, labels),
        "masked": TrainingData(masked, labels),
        "balanced": TrainingData(marked, labels, weights),
    }
    if planted.counterpart:
        swap = Swap((planted.tokens[0], planted.counterpart))
        (copies,) = swap_texts(marked, [swap], TOKENIZER)
        is_copied = copies.is_not_null()
        both_texts = pl.concat([marked, copies.filter(is_copied)])
        both_labels = np.concatenate([labels, labels[is_copied.to_numpy()]])
        sets["swapped"] = TrainingData(both_texts, both_labels)
    return sets


def judge(
    predict: Predict,
    test: pl.Series,
    labels: Labels,
    mark: Mark,
) -> dict[str, float]:
    """Accuracy on all test documents and in the worst of the groups where the mark misleads."""
    contains = documents_containing(test, mark.tokens, TOKENIZER)
    groups = link_groups(test, labels, contains, mark, TOKENIZER)
    by_group = {g.name: float(np.mean(predict(g.texts) == g.labels)) for g in groups}
    return {
        "overall": float(np.mean(predict(test) == labels)),
        "worst": min(by_group.values()),
        **by_group,
    }


@dataclass(frozen=True)
class Experiment:
    """Documents with a mark in one class, and the same documents without it."""

    mark: Mark
    planted: PlantedMark
    train: pl.Series
    marked_train: pl.Series
    train_labels: Labels
    test: pl.Series
    marked_test: pl.Series
    test_labels: Labels


def draw(set_name: str, mark_name: str, seed: int) -> Experiment:
    """Draw documents of a set and write the mark into its class of middle size."""
    texts, labels = load_set(set_name)
    rng = np.random.default_rng([seed, sum(map(ord, set_name + mark_name))])
    drawn = rng.permutation(len(texts))[: N_TRAIN + N_TEST]
    train, test = drawn[:N_TRAIN], drawn[N_TRAIN:]
    classes, sizes = np.unique(labels[train], return_counts=True)
    label = str(classes[int(np.argsort(sizes)[len(sizes) // 2])])
    planted = MARKS[mark_name]
    train_texts = texts.gather(train)
    test_texts = texts.gather(test)
    return Experiment(
        mark=Mark(planted.tokens, label),
        planted=planted,
        train=train_texts,
        marked_train=plant(train_texts, labels[train], planted, label, rng),
        train_labels=labels[train],
        test=test_texts,
        marked_test=plant(test_texts, labels[test], planted, label, rng),
        test_labels=labels[test],
    )


Row = dict[str, object]


def run(set_name: str, mark_name: str, model: str, seed: int) -> list[Row]:
    """One model on one set with one mark: a row per training set."""
    drawn = draw(set_name, mark_name, seed)
    sets = training_sets(drawn.marked_train, drawn.train, drawn.train_labels, drawn.planted)
    rows: list[Row] = []
    for name, data in sets.items():
        predict = TRAINERS[model](data.texts, data.labels, data.weights, seed)
        figures = judge(predict, drawn.marked_test, drawn.test_labels, drawn.mark)
        figures["unmarked"] = float(np.mean(predict(drawn.test) == drawn.test_labels))
        about = {"seed": seed, "set": set_name, "mark": mark_name, "model": model, "data": name}
        rows.append({**about, **figures})
    return rows


class Case(NamedTuple):
    """A model that is trained on a set with a mark; a row has these four under the same names."""

    seed: int
    set: str
    mark: str
    model: str


CASE = Case._fields


def repairs(rows: list[Row]) -> pl.DataFrame:
    """Each repair of each case: the part of the worst group's gap that it closes, and its cost.

    Cases without a gap to close are left out.
    """
    frame = pl.DataFrame(rows).select(*CASE, "data", "worst", "overall", "unmarked")
    raw = (
        frame.filter(data="raw")
        .drop("data")
        .rename({"worst": "raw", "overall": "raw_overall", "unmarked": "raw_unmarked"})
    )
    ceiling = frame.filter(data="ceiling").select(*CASE, top="worst")
    joined = frame.filter(~pl.col("data").is_in(["raw", "ceiling"])).join(raw, on=CASE)
    joined = joined.join(ceiling, on=CASE).filter(pl.col("top") - pl.col("raw") >= MIN_GAP)
    return joined.with_columns(
        gap=(pl.col("worst") - pl.col("raw")) / (pl.col("top") - pl.col("raw")),
        cost=pl.col("raw_overall") - pl.col("overall"),
        cost_unmarked=pl.col("raw_unmarked") - pl.col("unmarked"),
    )


def median_interval(cases: pl.DataFrame, column: str) -> list[float]:
    """A 95% interval of a median over cases, by drawing sets with replacement."""
    values = [part[column].to_numpy() for part in cases.partition_by("set", maintain_order=True)]
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(values), size=(N_BOOTSTRAP, len(values)))
    medians = [np.median(np.concatenate([values[k] for k in sets])) for sets in drawn]
    return np.quantile(medians, [0.025, 0.975]).tolist()


def summarise(rows: list[Row]) -> list[Row]:
    """Per model and repair: medians over cases, with intervals over sets."""
    by_repair = repairs(rows).sort("model", "data", *CASE[:3]).partition_by("model", "data")
    return [summary_of(cases) for cases in by_repair]


def summarise_by_mark(rows: list[Row]) -> list[Row]:
    """Per model, mark and repair: the median over sets of the gap closed and of the cost."""
    grouped = repairs(rows).group_by("model", "mark", "data", maintain_order=True)
    medians = grouped.agg(
        pl.len().alias("cases"), pl.col("gap", "cost", "cost_unmarked").median().name.keep()
    )
    return medians.rename({"gap": "gap_closed"}).to_dicts()


def summary_of(cases: pl.DataFrame) -> Row:
    """The medians of one model and repair."""
    return {
        "model": cases["model"][0],
        "data": cases["data"][0],
        "cases": cases.height,
        "seeds": cases["seed"].n_unique(),
        "sets": cases["set"].n_unique(),
        "raw": cases["raw"].median(),
        "repaired": cases["worst"].median(),
        "ceiling": cases["top"].median(),
        "gap_closed": cases["gap"].median(),
        "gap_interval": median_interval(cases, "gap"),
        "gap_low": cases["gap"].quantile(0.25),
        "gap_high": cases["gap"].quantile(0.75),
        "cost": cases["cost"].median(),
        "cost_interval": median_interval(cases, "cost"),
        "cost_unmarked": cases["cost_unmarked"].median(),
        "cost_unmarked_interval": median_interval(cases, "cost_unmarked"),
    }


def earlier_rows() -> list[Row]:
    """The rows of earlier runs; none of a file from before rows had seeds."""
    if not RESULTS.exists():
        return []
    rows: list[Row] = json.loads(RESULTS.read_text(encoding="utf-8"))["figures"]["rows"]
    return [row for row in rows if "seed" in row]


def keep(rows: list[Row]) -> None:
    """Store the cases that have run, and their summary."""
    figures = {"summary": summarise(rows), "by_mark": summarise_by_mark(rows), "rows": rows}
    store("repair", figures, described("polars", "numba", "scikit-learn", "torch"))


def show(summary: list[Row]) -> None:
    """Print the table of the documentation."""
    print(
        "| model | repair | cases | raw | repaired | ceiling | gap closed | cost in points | "
        "cost without marks |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in summary:
        low, high = row["gap_interval"]
        cost_low, cost_high = row["cost_interval"]
        unmarked_low, unmarked_high = row["cost_unmarked_interval"]
        print(
            f"| {row['model']} | {row['data']} | {row['cases']} | {row['raw']:.1%} | "
            f"{row['repaired']:.1%} | {row['ceiling']:.1%} | {row['gap_closed']:.0%} "
            f"({low:.0%} to {high:.0%}) | {100 * row['cost']:.1f} "
            f"({100 * cost_low:.1f} to {100 * cost_high:.1f}) | {100 * row['cost_unmarked']:.1f} "
            f"({100 * unmarked_low:.1f} to {100 * unmarked_high:.1f}) |"
        )


def show_by_mark(by_mark: list[Row]) -> None:
    """Print the table of the documentation on which repair suits which mark."""
    repairs_shown = ("masked", "balanced", "swapped")
    cell_of = {
        (row["model"], row["mark"], row["data"]): f"{row['gap_closed']:.0%} ({row['cases']})"
        for row in by_mark
    }
    print("| mark | " + " | ".join(f"{m}, {r}" for r in repairs_shown for m in MODELS) + " |")
    print("|---" * (1 + len(repairs_shown) * len(MODELS)) + "|")
    for mark in MARKS:
        cells = [cell_of.get((model, mark, r), "") for r in repairs_shown for model in MODELS]
        print(f"| {mark} | " + " | ".join(cells) + " |")


def planned(options: argparse.Namespace) -> Iterator[Case]:
    """The cases that the options ask for: all sets before the next mark, all of one seed first.

    So a run that is interrupted has every set, over which intervals are drawn.
    """
    for seed in range(options.seeds):
        for model in options.models:
            if model == "transformer" and seed:
                continue
            for mark_name in options.marks:
                for set_name in options.sets:
                    yield Case(seed, set_name, mark_name, model)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--marks", nargs="+", default=list(MARKS), choices=list(MARKS))
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows = earlier_rows()
    done = {Case(*(row[name] for name in CASE)) for row in rows}
    for case in planned(options):
        if case in done:
            continue
        seed, set_name, mark_name, model = case
        rows += run(set_name, mark_name, model, seed)
        print(f"{model} on {set_name} with {mark_name}, seed {seed}", flush=True)
        keep(rows)
    keep(rows)
    show(summarise(rows))
    show_by_mark(summarise_by_mark(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
