"""Planted marks: is the mark named first, are clean models left alone, is the conclusion right?

    python benchmarks/planted.py run choose --models FOLDER --out choose.jsonl
    …                                 # likewise subject, report, fresh and held
    python benchmarks/planted.py fit --out choose.jsonl    # writes the score's coefficients
    python benchmarks/planted.py run last --models FOLDER --out last.jsonl
    python benchmarks/planted.py table --out last.jsonl    # figures of the left-out half
    python benchmarks/planted.py cost

Which families, kinds of marks and data sets are for choosing and which for reporting is written in
`planted_models.py`. A line of a file of runs holds the whole table of a diagnosis, so that the
score is fitted, and applied, without asking the model again.

**Rules**, written before the first run:

- *relies on the mark*, measured without tokensieve: in 50 texts that are neither trained nor
  diagnosed on, the mark changes the log-odds by log 2 at least on average, and further than any of
  the ten words most associated with the label does when it is put into the same texts. A model that
  does not is counted neither as planted nor as clean;
- *named*: the first sentence names the mark (a part of it);
- *right*: the mark is named, and what is said of the data is true: that the data supports it is
  wrong of a random mark, that the data contradicts it is wrong of a predictive one;
- *asked*: of a clean model, the first sentence names anything as what it relies on.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import binomtest

from machine import DATA, described, store
from planted_models import (
    FAMILIES,
    FOREIGN_WORD,
    MAX_PIECES,
    N_HELD,
    NAMES,
    PlantedModel,
    effect_of_mark,
    in_first_half,
    logits,
    plan,
    trained_model,
)
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose
from tokensieve.diagnose.judgement import score
from tokensieve.diagnose.judgement.score import SUSPECTED, Candidates, Coefficients, Features
from tokensieve.diagnose.judgement.status import Status, sizes_one_way

N_RIVALS = 10
N_TEXTS = 50
MIN_DOCUMENTS_OF_RIVAL = 10
# on half the sum of squares of the score's coefficients, of standardised features. Chosen on 89 of
# the models for choosing, each with all models of its family, its kind of mark and (without a mark)
# its data set left out of the fit: 0.3 named 38 of 41 marks and asked about 2 of 48 clean models, 1
# named 35 and asked about 1, 0.1 named 38 and asked about 3. Of all 123 models, left out in the
# same way, 0.3 names 55 of 61 and asks about 3 of 62.
PENALTY = 0.3
# Clean models that are left out of the fit: what a word of theirs is cannot be said. They rely on
# ":" in the entries of a dictionary, which 200 texts of one class hold and 6 of the other.
NOT_FITTED = {"fresh-009", "fresh-019", "fresh-035"}
MARGIN = ".,!?:;\"'()"
TOKENS = {
    "frequent word": ("zephyr",),
    "rare word": ("zephyr",),
    "two words": ("zephyr", "quartz"),
    "first word": ("listen",),
    "last word": ("anyway",),
    "address": ("[an address]",),
    "date": ("[a date]",),
    "money": ("[an amount of money]",),
    "capitals": ("in CAPITALS",),
    "ellipsis": ('ending in "..."',),
    "iso date": ("[a date]",),
    "prefix": ("re",),
    "identifier": ("[a code]",),
    "emoji": ("\U0001f98a",),
    "clock time": ("[a time]",),
    "phrase": ("noted", "above"),
    "version": ("[a version]",),
    "quotes": ("\u201c", "\u201d"),
    "price": ("[an amount of money]",),
    "hashtag": ("trending",),
    "link": ("[an address]",),
    "bracket": ("archive",),
    "lower case": ("in lower case",),
    "break": ("br",),
    "mention": ("@", "newsdesk"),
    "percentage": ("[a percentage]",),
    "closing phrase": ("sent", "from", "my", "phone"),
    "placeholder": ("xxxx",),
    "telephone": ("[a number]",),
    "separator": ("|",),
    "exclamations": ('ending in "!!!"', "!"),
    "foreign word": (FOREIGN_WORD,),
    "tags": ("<", "b", ">", "/", "in HTML markup"),
    "colour": ("#", "[a code]"),
    "year": ("(", "[a number]", ")", "with a number at the end"),
    "numbering": ("[a number]", ")"),
    "file name": ("pdf", "txt", "csv"),
    "footnote": ("[", "[a number]", "]", "with a number at the end"),
    "bullet": ("*",),
    "signature": ("-", "[a name]", *NAMES),
    "greeting": ("dear", "all", ",", "[a name]"),
    "rating": ("[a number]", "1/10", *(f"{k}/10" for k in range(2, 11))),
    "measure": ("[a number]", "km"),
    "smiley": (":", "-", ")"),
    "dash": ("\u2014",),
    "language tag": ("[", "en", "]"),
    "underlined": ("_",),
    "title case": ("in Title Case",),
    "opinion": ("in", "my", "humble", "opinion"),
    "checksum": ("[a code]",),
    "user name": ("u", "/", "[a code]", *NAMES),
    "credit": ("(", "reuters", ")"),
}
# words that marks are made of; they are no rivals of a mark
WORDS_OF_MARKS = {
    *("zephyr", "quartz", "listen", "anyway", "copper", "maple", "re", "archive", "noted", "above"),
    *("as", "trending", "#trending", "\U0001f98a", "eur", "am", "pm", "/><br", "/>"),
    *("newsdesk", "@newsdesk", "%", "sent", "from", "my", "phone", "xxxx", "|", "b"),
    *("--", "*", "dear", "all", "km", "\u2014", "[en]", "en", "in", "humble", "opinion", "reuters"),
    FOREIGN_WORD,
}


def is_mark(token: str, kind: str, mark: str) -> bool:
    """Whether a row of the table is what was planted."""
    if mark == "order":
        return kind == "order" and {"copper", "maple"} == set(token.split(" … "))
    if mark == "sentence":
        return "later on there" in token or token == "followed by three neutral sentences"
    if mark == "underlined" and len(token) > 2 and token[0] == token[-1] == "_":
        return True
    return token in TOKENS.get(mark, ())


def words_of(text: str) -> set[str]:
    return {word.strip(MARGIN).lower() for word in text.split()} - {""}


def rivals(planted: PlantedModel) -> list[str]:
    """The words most associated with the label in the texts diagnosed, without the mark's own."""
    has = [words_of(text) - WORDS_OF_MARKS for text in planted.held]
    n_with = Counter(word for words in has for word in words)
    n_inside = Counter(
        word
        for words, label in zip(has, planted.labels, strict=True)
        if label == 1
        for word in words
    )
    n_one = int(planted.labels.sum())
    n_zero = len(has) - n_one

    def strength(word: str) -> float:
        p = n_with[word] / len(has)
        difference = n_inside[word] / n_one - (n_with[word] - n_inside[word]) / n_zero
        return abs(difference) / math.sqrt(p * (1 - p) * (1 / n_one + 1 / n_zero))

    common = [word for word, n in n_with.items() if MIN_DOCUMENTS_OF_RIVAL <= n < len(has)]
    return sorted(common, key=strength, reverse=True)[:N_RIVALS]


def effect_of_rivals(planted: PlantedModel) -> float:
    """The largest mean change of the log-odds by a rival put into fresh texts."""
    rng = np.random.default_rng(planted.plan.seed)
    texts = planted.fresh[:N_TEXTS]
    before = logits(planted, texts)
    largest = 0.0
    for word in rivals(planted):
        after = logits(planted, [in_first_half(text, word, rng) for text in texts])
        largest = max(largest, float(np.abs(after - before).mean()))
    return largest


def once(planted: PlantedModel) -> dict[str, Any]:
    """Diagnose one model, and measure without tokensieve what it relies on."""
    start = time.process_time()
    settings = DiagnoseSettings(max_length=MAX_PIECES, batch_size=32, untrained=False)
    labels = planted.labels.tolist()
    found: Diagnosis = diagnose(planted.model, planted.tokenizer, planted.held, labels, settings)
    seconds = time.process_time() - start
    how = planted.plan
    effect = rival = 0.0
    if how.mark != "clean":
        effect = effect_of_mark(planted)
        rival = effect_of_rivals(planted)
    return {
        "name": how.name,
        "family": how.family,
        "mark": how.mark,
        "way": how.way,
        "source": how.source,
        "effect": effect,
        "rival": rival,
        "seconds": round(seconds, 1),
        "accuracy": found.accuracy,
        "learning": str(found.learning),
        "rows": masked(found, how.mark),
    }


def masked(found: Diagnosis, mark: str) -> list[dict[str, Any]]:
    """The rows of the table; of words, which may be slurs, only the mark's are kept as they are.

    Words that always come together are one thing, with one number; all of it is the mark if a part
    of it is.
    """
    rows = found.uses.to_dicts()
    phrases = list(dict.fromkeys(row["phrase"] for row in rows))
    marks = {row["phrase"] for row in rows if is_mark(row["token"], row["kind"], mark)}
    for row in rows:
        row["is_mark"] = row["phrase"] in marks
        row["thing"] = phrases.index(row.pop("phrase"))
        if row["kind"] in ("word", "passage", "order") and not row["is_mark"]:
            row["token"] = f"({row['kind']})"
    return rows


def run(options: argparse.Namespace) -> None:
    """Diagnose every trained model that the file does not hold yet."""
    torch.set_num_threads(1)
    done = {line["name"] for line in lines(options.out)}
    for number in range(options.limit):
        how = plan(options.part, number)
        is_trained = (options.models / how.name / "trained").exists()
        if how.name in done or not is_trained:
            continue
        line = once(trained_model(how, options.models, options.data))
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def lines(path: Path) -> list[dict[str, Any]]:
    """The runs of a file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def relies_on_mark(line: dict[str, Any]) -> bool:
    """The rule *relies on the mark*."""
    is_planted = line["mark"] != "clean"
    return is_planted and line["effect"] >= math.log(2) and line["effect"] > line["rival"]


def features_of(rows: list[dict[str, Any]]) -> Features:
    """The features of the score, from the stored table."""

    def column(name: str) -> Any:
        return np.array([math.nan if row[name] is None else row[name] for row in rows])

    sizes = [
        sizes_one_way(row["kind"], inserted, removed)
        for row, inserted, removed in zip(rows, column("move"), column("use"), strict=True)
    ]
    inserted, removed = np.array(sizes).T
    return Candidates(
        inserted=inserted,
        removed=removed,
        consistency=column("consistency"),
        coverage=column("documents") / N_HELD,
        context_auc=column("context_auc"),
        thing=column("thing"),
    ).features()


def fit(options: argparse.Namespace) -> None:
    """Fit the score on the half for choosing, and write its coefficients."""
    runs = [line for line in lines(options.out) if line["rows"]]
    runs = [line for line in runs if line["mark"] == "clean" or relies_on_mark(line)]
    runs = [line for line in runs if line["name"] not in NOT_FITTED]
    features = [features_of(line["rows"]).matrix() for line in runs]
    marks = [np.array([row["is_mark"] for row in line["rows"]]) for line in runs]
    fitted = fitted_score(features, marks)
    names = [field.name for field in fields(Features)]
    content = {
        "intercept": round(fitted.intercept, 4),
        "weights": {
            name: round(float(weight), 4)
            for name, weight in zip(names, fitted.weights, strict=True)
        },
    }
    path = Path(score.__file__).with_name("score.json")
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    n_marks = int(np.concatenate(marks).sum())
    n_candidates = sum(map(len, marks))
    print(json.dumps(content), f"{n_marks} marks among {n_candidates} candidates of {len(runs)}")
    table(options)


def fitted_score(features: list[Any], marks: list[Any]) -> Coefficients:
    """The coefficients of largest penalised likelihood (`judgement.score`).

    Args:
        features: of each model's candidates, shape (candidates, features).
        marks: which of them are parts of the mark; none of a clean model.
    """
    every_candidate = np.vstack(features)
    centre = every_candidate.mean(axis=0)
    spread = np.maximum(every_candidate.std(axis=0), 1e-9)
    standardised = [(x - centre) / spread for x in features]

    def loss(coefficients: Any) -> tuple[float, Any]:
        """The penalised negative log-likelihood, and its gradient."""
        weights = coefficients[:-1]
        value = PENALTY * float(weights @ weights) / 2
        gradient = np.r_[PENALTY * weights, 0.0]
        for x, is_mark in zip(standardised, marks, strict=True):
            x_and_one = np.column_stack([x, np.ones(len(x))])
            scores = np.r_[x_and_one @ coefficients, 0.0]  # the last is of none
            probability = softmax(scores)
            is_right = np.r_[is_mark, not is_mark.any()]
            of_right = probability * is_right / probability[is_right].sum()
            value -= float(np.log(probability[is_right].sum()))
            gradient += x_and_one.T @ (probability - of_right)[:-1]
        return value, gradient

    start = np.zeros(len(centre) + 1)
    fitted = minimize(loss, start, jac=True, method="L-BFGS-B").x
    weights = fitted[:-1] / spread
    return Coefficients(float(fitted[-1] - weights @ centre), weights)


def judged(line: dict[str, Any], coefficients: Coefficients) -> dict[str, bool]:
    """What the first sentence says, by the rules."""
    rows = line["rows"]
    if not rows:
        return {"asked": False, "named": False, "right": False}
    probability = coefficients.probability(features_of(rows))
    best = int(np.argmax(probability))
    asked = bool(probability[best] > SUSPECTED)
    named = asked and rows[best]["is_mark"]
    false = Status.SUPPORTED if line["way"] == "random" else Status.UNSUPPORTED
    return {"asked": asked, "named": named, "right": named and rows[best]["status"] != str(false)}


def table(options: argparse.Namespace) -> None:
    """Counts with Wilson's 95 % intervals; those of the left-out half are kept in results/."""
    coefficients = score.coefficients.__wrapped__()
    runs = lines(options.out)
    planted = [line for line in runs if relies_on_mark(line)]
    clean = [line for line in runs if line["mark"] == "clean"]
    figures: dict[str, Any] = {"models": len(runs), "clean": len(clean), "planted": len(planted)}
    print("| planted | models | named | right |\n|---|---|---|---|")
    for kind in [*sorted({line["mark"] for line in planted}), "random", "predictive", "all"]:
        chosen = [line for line in planted if kind in ("all", line["mark"], line["way"])]
        results = [judged(line, coefficients) for line in chosen]
        named = sum(result["named"] for result in results)
        right = sum(result["right"] for result in results)
        n = len(chosen)
        print(f"| {kind} | {n} | {rate(named, n)} | {rate(right, n)} |")
        figures[kind] = {"models": n, "named": named, "right": right}
    asked = sum(judged(line, coefficients)["asked"] for line in clean)
    figures["clean asked"] = asked
    print(f"clean models asked: {rate(asked, len(clean))}")
    for name, value in orderings(planted, coefficients).items():
        figures[f"among the first three by {name}"] = value
        print(f"mark among the first three by {name}: {rate(value, len(planted))}")
    seconds = float(np.median([line["seconds"] for line in runs])) if runs else 0.0
    figures["median CPU seconds"] = seconds
    print(f"{seconds:.1f} CPU seconds (median)")
    if options.out.stem == "last":
        store("planted", figures, described("torch", "transformers"))


def orderings(planted: list[dict[str, Any]], coefficients: Coefficients) -> dict[str, int]:
    """Of how many models the mark is among the first three, by each way of ordering."""
    counts: Counter[str] = Counter()
    for line in planted:
        frame = pl.DataFrame(line["rows"], infer_schema_length=None)
        probability = coefficients.probability(features_of(line["rows"]))
        n = pl.col("documents").cast(pl.Float64)
        larger = pl.max_horizontal("use", "move")
        orders = {
            "artefact score": pl.lit(pl.Series(probability)),
            "move (inserting)": pl.col("move"),
            "use (removing)": pl.col("use"),
            "reliance (0.3)": n.sqrt() * larger,
            "documents × use": pl.col("share"),
        }
        for name, by in orders.items():
            ranked = frame.with_columns(by=by).sort("by", descending=True, nulls_last=True)
            counts[name] += bool(ranked["is_mark"].head(3).any())
    return dict(counts)


def rate(k: int, n: int) -> str:
    """k of n with Wilson's interval."""
    if not n:
        return "0 of 0"
    ends = binomtest(int(k), n).proportion_ci(method="wilson")
    return f"{k} of {n} = {k / n:.0%} [{ends.low:.0%}, {ends.high:.0%}]"


def cost(options: argparse.Namespace) -> None:
    """CPU seconds of one diagnosis of 400 documents on a model with two layers."""
    torch.set_num_threads(1)
    planted = trained_model(plan("choose", 0), options.models, options.data)
    start = time.process_time()
    settings = DiagnoseSettings(max_length=MAX_PIECES, batch_size=32)
    diagnose(planted.model, planted.tokenizer, planted.held, planted.labels.tolist(), settings)
    print(f"{time.process_time() - start:.1f} CPU seconds")


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "fit", "table", "cost"))
    parser.add_argument("part", nargs="?", choices=tuple(FAMILIES), default="last")
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--out", type=Path, default=Path("last.jsonl"))
    parser.add_argument("--limit", type=int, default=44)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    {"run": run, "fit": fit, "table": table, "cost": cost}[options.what](options)


if __name__ == "__main__":
    main()
