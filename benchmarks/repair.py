"""Do repairs help? Accuracy where a planted mark misleads, after training on repaired data.

    python benchmarks/repair.py [--sets NAME …] [--marks NAME …] [--seed 0] [--name repair]

A mark is put into 40% of the training documents of one class and 2% of the others, and into the
test documents in the same way. Models are trained on the marked data as they are (raw), masked,
balanced, and, for marks with a counterpart, with counterfactual copies (swapped); the ceiling is
trained on the data without marks. All are judged on the test documents in which the mark does not
tell the class (`tokensieve.auditing.broken_link`), by the worst of these groups, on all test
documents as marked, and on the same documents without marks.

The gap closed is (repaired − raw) / (ceiling − raw) in the worst group. Nothing of the repairs was
chosen on these sets or marks. Figures go to benchmarks/results/repair.json. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
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

Labels = NDArray[np.str_]
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


@dataclass(frozen=True)
class Trainer:
    """Fits one kind of model to texts, labels and weights, and returns how it predicts."""

    name: str

    def fit(
        self, texts: pl.Series, labels: Labels, weights: NDArray[np.float64] | None
    ) -> Callable[[pl.Series], Labels]:
        if self.name == "attention":
            model = AttentionClassifier(ngrams=1).fit(texts.to_list(), labels, weights)
            return lambda documents: np.asarray(model.predict(documents.to_list())).astype(str)
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
        regression = LogisticRegression(C=10.0, max_iter=1000)
        regression.fit(vectorizer.fit_transform(texts.to_list()), labels, weights)
        return lambda documents: regression.predict(
            vectorizer.transform(documents.to_list())
        ).astype(str)


def training_sets(
    marked: pl.Series, clean: pl.Series, labels: Labels, planted: PlantedMark
) -> dict[str, tuple[pl.Series, Labels, NDArray[np.float64] | None]]:
    """The data that each repair trains on: texts, labels, weights."""
    every_token = [*planted.tokens, *([planted.counterpart] if planted.counterpart else [])]
    masked, _ = mask_texts(marked, every_token, TOKENIZER)
    features = np.column_stack(
        [documents_containing(marked, [token], TOKENIZER) for token in every_token]
    )
    class_index = np.unique(labels, return_inverse=True)[1]
    weights = balance(features, class_index).weights
    sets = {
        "ceiling": (clean, labels, None),
        "raw": (marked, labels, None),
        "masked": (masked, labels, None),
        "balanced": (marked, labels, weights),
    }
    if planted.counterpart:
        swaps = [Swap(planted.tokens[0], planted.counterpart)]
        copies = swap_texts(marked, swaps, TOKENIZER)
        is_copied = copies.is_not_null()
        both_texts = pl.concat([marked, copies.filter(is_copied)])
        both_labels = np.concatenate([labels, labels[is_copied.to_numpy()]])
        sets["swapped"] = (both_texts, both_labels, None)
    return sets


def judge(
    predict: Callable[[pl.Series], Labels],
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


def run(set_name: str, mark_name: str, seed: int) -> list[dict[str, object]]:
    """One set with one mark: a row per model and training set."""
    drawn = draw(set_name, mark_name, seed)
    sets = training_sets(drawn.marked_train, drawn.train, drawn.train_labels, drawn.planted)
    rows: list[dict[str, object]] = []
    for name, (texts, labels, weights) in sets.items():
        for trainer in (Trainer("attention"), Trainer("tf-idf")):
            predict = trainer.fit(texts, labels, weights)
            figures = judge(predict, drawn.marked_test, drawn.test_labels, drawn.mark)
            figures["unmarked"] = float(np.mean(predict(drawn.test) == drawn.test_labels))
            about = {"set": set_name, "mark": mark_name, "model": trainer.name, "data": name}
            rows.append({**about, **figures})
    return rows


def summarise(rows: list[dict[str, object]]) -> pl.DataFrame:
    """Per model and repair: the part of the worst group's gap that it closes, and its cost."""
    frame = pl.DataFrame(rows).select(
        "set", "mark", "model", "data", "worst", "overall", "unmarked"
    )
    key = ["set", "mark", "model"]
    raw = (
        frame.filter(data="raw")
        .drop("data")
        .rename({"worst": "raw", "overall": "raw_overall", "unmarked": "raw_unmarked"})
    )
    ceiling = frame.filter(data="ceiling").select(*key, top="worst")
    joined = frame.filter(~pl.col("data").is_in(["raw", "ceiling"])).join(raw, on=key)
    joined = joined.join(ceiling, on=key).filter(pl.col("top") - pl.col("raw") >= MIN_GAP)
    gap = (pl.col("worst") - pl.col("raw")) / (pl.col("top") - pl.col("raw"))
    cost = pl.col("raw_overall") - pl.col("overall")
    cost_unmarked = pl.col("raw_unmarked") - pl.col("unmarked")
    grouped = joined.with_columns(gap=gap, cost=cost, cost_unmarked=cost_unmarked).group_by(
        "model", "data"
    )
    return grouped.agg(
        cases=pl.len(),
        raw=pl.col("raw").median(),
        repaired=pl.col("worst").median(),
        ceiling=pl.col("top").median(),
        gap_closed=pl.col("gap").median(),
        gap_low=pl.col("gap").quantile(0.25),
        gap_high=pl.col("gap").quantile(0.75),
        cost=pl.col("cost").median(),
        cost_unmarked=pl.col("cost_unmarked").median(),
    ).sort("model", "data")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sets = "imdb yelp snli tweets sms emotion banking".split()
    parser.add_argument("--sets", nargs="+", default=sets)
    parser.add_argument("--marks", nargs="+", default=list(MARKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="repair", help="of the file in results/")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for set_name in options.sets:
        for mark_name in options.marks:
            rows += run(set_name, mark_name, options.seed)
            print(f"{set_name}, {mark_name}: done", flush=True)
    table = summarise(rows)
    with pl.Config(tbl_cols=-1, tbl_rows=-1, tbl_width_chars=160):
        print(table)
    summary = json.loads(table.write_json())
    store(options.name, {"summary": summary, "rows": rows}, described("polars", "numba"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
