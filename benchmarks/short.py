"""Accuracy and log loss on short texts, and where texts are parts of one another, beside logistic regression.

    python benchmarks/short.py [--seeds 5] [--first 20] [--ngrams 1 2 3]

Tweets, their emotion, hypotheses of SNLI, and sentences of 3 to 15 words of Yelp and IMDB reviews, labelled as their review is
(those of three stars are left out; no review is on both sides). Of "phrases" 7,000 sentences train, each with six random spans of
its words, labelled alike, and whole sentences of other reviews test; nothing says which phrases belong together. The other sets
are divided at random, a quarter for testing. Logistic regression (TF-IDF with sublinear counts; words and marks) chooses C among
0.3, 1, 3, 10 and 30 by the log loss of a random tenth; `AttentionClassifier` has its defaults. Intervals are 95% t intervals over
seeds of the difference of the two.
"""

import argparse
import re
import warnings
from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.stats import t
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from machine import DATA, described, store
from tokensieve.model.classifier import AttentionClassifier

SETS = ("emotion", "tweets", "snli", "yelp sentences", "yelp phrases", "imdb phrases")


def sentences(frame: pl.DataFrame, most: int, rng: np.random.Generator) -> pl.DataFrame:
    """Sentences of 3 to 15 words of the reviews, each with its review's label."""
    plain = pl.col("text").str.replace_all("<br />", " ")
    cut = plain.map_elements(
        lambda text: re.split(r"(?<=[.!?])\s+", text), return_dtype=pl.List(pl.String)
    )
    found = frame.select("label", text=cut).explode("text")
    found = found.filter(pl.col("text").str.split(" ").list.len().is_between(3, 15))
    return found[rng.permutation(found.height)[:most]]


def phrases(frame: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Each sentence with six random spans of its words."""
    texts, labels = [], []
    for text, label in frame.select("text", "label").iter_rows():
        words = text.split()
        texts.append(text)
        for _ in range(6):
            length = rng.integers(1, len(words) + 1)
            start = rng.integers(0, len(words) - length + 1)
            texts.append(" ".join(words[start : start + length]))
        labels += [label] * 7
    return pl.DataFrame({"text": texts, "label": labels})


def divided(name: str, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training and test texts with their labels."""
    rng = np.random.default_rng(seed)
    if name == "snli":
        files = [pl.read_parquet(DATA / f"snli_{part}.parquet") for part in ("train", "test")]
        frame = pl.concat(files).select("label", text="hypothesis")
    elif name.startswith("yelp"):
        stars = pl.col("stars").cast(pl.Float64)
        frame = pl.read_parquet(DATA / "yelp.parquet").filter(stars != 3)
        frame = frame.select(
            "text", label=pl.when(stars > 3).then(pl.lit("high")).otherwise(pl.lit("low"))
        )
    else:
        frame = pl.read_parquet(
            DATA / ("imdb_train.parquet" if name.startswith("imdb") else f"{name}.parquet")
        )
    frame = frame.select("text", pl.col("label").cast(pl.String))[rng.permutation(frame.height)]
    if " " not in name:
        return frame[: frame.height * 3 // 4], frame[frame.height * 3 // 4 :]
    train, test = frame[: frame.height // 2], frame[frame.height // 2 :]
    train = sentences(train, 7_000 if name.endswith("phrases") else 15_000, rng)
    return phrases(train, rng) if name.endswith("phrases") else train, sentences(test, 5_000, rng)


def regression(
    train: pl.DataFrame, texts: list[str], ngrams: int, seed: int
) -> tuple[np.ndarray, list[str]]:
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, ngrams), token_pattern=r"\w+|[^\w\s]"
    )
    x, y = vectorizer.fit_transform(train["text"]), train["label"].to_numpy()
    held = np.random.default_rng(seed).random(len(y)) < 0.1
    losses = {}
    for C in (0.3, 1, 3, 10, 30):
        model = LogisticRegression(C=C, max_iter=300).fit(x[~held], y[~held])
        losses[C] = log_loss(y[held], model.predict_proba(x[held]), labels=model.classes_)
    model = LogisticRegression(C=min(losses, key=losses.__getitem__), max_iter=300).fit(x, y)
    return model.predict_proba(vectorizer.transform(texts)), list(model.classes_)


def rows(seed: int, ngrams: int) -> Iterator[dict[str, object]]:
    for name in SETS:
        train, test = divided(name, seed)
        texts, truth = test["text"].to_list(), test["label"].to_numpy()
        ours = AttentionClassifier(ngrams=ngrams, random_state=seed).fit(
            train["text"].to_list(), train["label"].to_list()
        )
        found = {"ours": (ours.predict_proba(texts), list(ours.classes_))}
        found["LR"] = regression(train, texts, ngrams, seed)
        for method, (p, classes) in found.items():
            right = float((np.array(classes)[p.argmax(axis=1)] == truth).mean())
            row = {
                "set": name,
                "ngrams": ngrams,
                "seed": seed,
                "n": train.height,
                "method": method,
                "accuracy": right,
            }
            yield row | {"log loss": float(log_loss(truth, p, labels=classes))}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--ngrams", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--name", default="short", help="of the file in results/")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    machine = described("polars", "scikit-learn")
    found: list[dict[str, object]] = []
    for seed in range(options.first, options.first + options.seeds):
        for ngrams in options.ngrams:
            found += rows(seed, ngrams)
            print(seed, ngrams, flush=True)
            store(options.name, found, machine)
    frame = pl.DataFrame(found)
    for measure in ("accuracy", "log loss"):
        wide = frame.pivot("method", index=["set", "ngrams", "seed"], values=measure)
        print(f"\n| {measure}: set | n-grams | ours | LR | ours less LR |\n|---|---|---|---|---|")
        for (name, ngrams), part in wide.group_by("set", "ngrams", maintain_order=True):
            d = part["ours"] - part["LR"]
            half = float(t.ppf(0.975, len(d) - 1) * d.std() / np.sqrt(len(d)))
            interval = f"{d.mean():+.3f} ({d.mean() - half:+.3f} to {d.mean() + half:+.3f})"
            print(
                f"| {name} | {ngrams} | {part['ours'].mean():.3f} | {part['LR'].mean():.3f} | {interval} |"
            )


if __name__ == "__main__":
    main()
