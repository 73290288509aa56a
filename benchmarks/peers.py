"""What users would pick instead, beside ours: text classifiers, auditors, max-margin solvers.


    python benchmarks/peers.py classify [--data imdb|tweets|yelp|yelp5] [--ngrams 1 2 3] [--runs 3]
    [--methods NAME …]
                                        [--stored-settings] [--name peers-classify]
    python benchmarks/peers.py audit [--runs 3]
    python benchmarks/peers.py margin [--seconds 120]

`classify`: ten rows. TF-IDF + logistic regression, TF-IDF + linear SVM, NB-SVM (Wang & Manning
2012), fastText and Vowpal Wabbit at their defaults and at their best setting, and
`AttentionClassifier`, likewise; and `tokensieve train`, of which the start of Python and all
imports count, too. Every method's setting is chosen on the same tenth of the training documents,
once, and then each is timed in a process of its own from the raw file to the test predictions, with
that setting, in turns (the search for the setting is not in the seconds; `--stored-settings` takes
those that an earlier run found); its peak memory is that process's. Vowpal Wabbit learns with
logistic loss on hashed n-grams in one thread, five passes at its defaults. fastText is that of `pip
install fasttext-wheel` (builds of other packages, 0.9.2 and 0.9.3, ended runs on single words with
"Encountered NaN", for the same settings and data now and then). A peer that is not installed is
left out, and the output names it.

`audit`: finding tokens that give the label away, and wrong labels, on the training half of IMDB:
`tokensieve audit` does both, and cleanlab ranks labels by five-fold probabilities of TF-IDF +
logistic regression.

`margin`: `max_margin` against the dense formulation (every pair a row, Clarabel), with more and
more documents until the dense one passes the time allowed.

`classify` and `audit` keep their figures in benchmarks/results/, with command, versions and
machine. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from machine import BYTE_CODE, DATA, described, store

TASKS = {
    "imdb": "IMDB",
    "tweets": "10,000 tweets",
    "yelp": "Yelp 1,2 / 4,5",
    "yelp5": "Yelp five stars",
}
RESULTS = Path(__file__).with_name("results") / "peers-classify.json"
WORDS = r"(?u)\w+(?:['’]\w+)*"
OURS, COMMAND = "ours, defaults", "ours, the command train"
GRIDS: dict[str, list[dict[str, Any]]] = {
    OURS: [{}],
    COMMAND: [{}],
    "ours, chosen on validation": [
        {"value_rate": rate, "min_documents": k} for rate in (0.05, 0.1, 0.2) for k in (1, 2, 3)
    ],
    "TF-IDF + LR": [{"C": c} for c in (1.0, 10.0, 100.0)],
    "TF-IDF + SVM": [{"C": c} for c in (0.1, 1.0, 10.0)],
    "NB-SVM": [{"C": c, "beta": beta} for c in (0.1, 1.0) for beta in (0.25, 1.0)],
    "fastText, defaults": [{}],
    "fastText, best": [{"epoch": epoch, "lr": lr} for epoch in (5, 25) for lr in (0.1, 0.5, 1.0)],
    "Vowpal Wabbit, defaults": [{}],
    "Vowpal Wabbit, best": [
        {"passes": passes, "l2": l2} for passes in (5, 20) for l2 in (0.0, 1e-7, 1e-6)
    ],
}
PEERS = {
    "fastText": "fasttext",
    "Vowpal": "vowpalwabbit",
}  # first word of a method → the module that it needs
STAGES = ("reading", "features", "training", "predicting")
Split = tuple[pl.Series, list[Any], pl.Series]
Lap = Callable[[str], None]


def load(task: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training and test documents as text and label."""
    if task == "imdb":
        parts = tuple(
            pl.read_parquet(DATA / f"imdb_{part}.parquet").select("text", "label")
            for part in ("train", "test")
        )
        return parts[0], parts[1]
    if task == "tweets":  # short texts
        tweets = pl.read_parquet(DATA / "tweets.parquet").select(
            "text", pl.col("label").cast(pl.String)
        )
        tweets = tweets[np.random.default_rng(0).permutation(len(tweets))]
        return tweets[:10_000], tweets[10_000:]
    yelp = pl.read_parquet(DATA / "yelp.parquet").rename({"stars": "label"})
    if task == "yelp":
        yelp = yelp.filter(pl.col("label") != 3).with_columns(pl.col("label") > 3)
    parts = tuple(
        yelp.filter(pl.col("split") == s).select("text", pl.col("label").cast(pl.String))
        for s in ("dev", "test")
    )
    return parts[0], parts[1]


def ours(split: Split, n: int, seed: int, lap: Lap, **setting: Any) -> list[Any]:
    from tokensieve import AttentionClassifier

    texts, labels, unseen = split
    model = AttentionClassifier(ngrams=n, random_state=seed, **setting).fit(texts, labels)
    lap("training")  # counting included
    return model.predict(unseen).tolist()


def tfidf(split: Split, n: int, seed: int, lap: Lap, C: float) -> list[Any]:
    from sklearn.linear_model import LogisticRegression

    return _on_tfidf(split, n, lap, LogisticRegression(C=C, max_iter=1000))


def linear_svm(split: Split, n: int, seed: int, lap: Lap, C: float) -> list[Any]:
    from sklearn.svm import LinearSVC

    return _on_tfidf(split, n, lap, LinearSVC(C=C, random_state=seed))


def _on_tfidf(split: Split, n: int, lap: Lap, model: Any) -> list[Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels, unseen = split
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, n), min_df=2, token_pattern=WORDS
    )
    x = vectorizer.fit_transform(texts.to_list())
    lap("features")
    model.fit(x, labels)
    lap("training")
    return model.predict(vectorizer.transform(unseen.to_list())).tolist()


def nbsvm(split: Split, n: int, seed: int, lap: Lap, C: float, beta: float) -> list[Any]:
    """Presence × log-count ratio of each class against the rest, a linear SVM, its weights
    interpolated with their mean.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.svm import LinearSVC

    texts, labels, unseen = split
    vectorizer = CountVectorizer(binary=True, ngram_range=(1, n), min_df=2, token_pattern=WORDS)
    x = vectorizer.fit_transform(texts.to_list()).astype(np.float64)
    lap("features")
    names, machines = sorted(set(labels)), []
    for name in names[1:] if len(names) == 2 else names:
        y = np.array([label == name for label in labels])
        inside, outside = x[y].sum(axis=0).A1 + 1, x[~y].sum(axis=0).A1 + 1
        ratio = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
        machine = LinearSVC(C=C, random_state=seed).fit(x.multiply(ratio).tocsr(), y)
        weights = beta * machine.coef_[0] + (1 - beta) * np.abs(machine.coef_).mean()
        machines.append((ratio * weights, machine.intercept_[0]))
    lap("training")
    z = vectorizer.transform(unseen.to_list()).astype(np.float64)
    answers = [z @ weights + bias for weights, bias in machines]
    best = (answers[0] > 0).astype(int) if len(names) == 2 else np.argmax(answers, axis=0)
    return [names[k] for k in best]


def fasttext(split: Split, n: int, seed: int, lap: Lap, **setting: Any) -> list[Any]:
    """On the same words, lower-cased, through its own training file; two threads, so its result
    depends on their race.
    """
    import fasttext as library

    texts, labels, unseen = split
    names = {label: f"__label__{k}" for k, label in enumerate(sorted(set(labels)))}
    words = _words(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        order = np.random.default_rng(seed).permutation(
            len(labels)
        )  # read in order, and IMDB's file is sorted by label
        path.write_text(
            "".join(f"{names[labels[i]]} {words[i]}\n" for i in order), encoding="utf-8"
        )
        lap("features")
        how = {"wordNgrams": n, "minCount": 2, "thread": 2, "seed": seed} | setting
        model = library.train_supervised(str(path), verbose=0, **how)
    lap("training")
    back = {name: label for label, name in names.items()}
    answered = model.f.multilinePredict([line + "\n" for line in _words(unseen)], 1, 0.0, "strict")[
        0
    ]
    return [back[row[0]] for row in answered]


def vowpal(
    split: Split, n: int, seed: int, lap: Lap, passes: int = 5, l2: float = 0.0, bits: int = 24
) -> list[Any]:
    """Logistic loss on hashed n-grams of the same words, in one thread, through its own files."""
    from vowpalwabbit import Workspace

    texts, labels, unseen = split
    names = sorted(set(labels))
    kinds = {name: (2 * k - 1 if len(names) == 2 else k + 1) for k, name in enumerate(names)}
    several = "" if len(names) == 2 else f" --oaa {len(names)}"
    grams = f" --ngram {n}" if n > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        train, test, out = (Path(folder) / name for name in ("train.txt", "test.txt", "out.txt"))
        order = np.random.default_rng(seed).permutation(
            len(labels)
        )  # read in order, and IMDB's file is sorted by label
        words = _words(texts)
        train.write_text(
            "".join(f"{kinds[labels[i]]} | {words[i]}\n" for i in order), encoding="utf-8"
        )
        test.write_text("".join(f"| {line}\n" for line in _words(unseen)), encoding="utf-8")
        lap("features")
        how = (
            f"-d {train} -c -k --passes {passes} --holdout_off -b {bits} --l2 {l2} --loss_function "
            "logistic"
        )
        Workspace(f"{how}{several}{grams} -f {folder}/model --quiet").finish()
        lap("training")
        Workspace(f"-i {folder}/model -t -d {test} -p {out} --quiet").finish()
        answered = [float(line.split()[0]) for line in out.read_text().splitlines()]
    if several:
        return [names[int(k) - 1] for k in answered]
    return [names[int(f > 0)] for f in answered]


def _words(part: pl.Series) -> list[str]:
    """The lower-cased words of each text with a space between them, as a user of these tools would
    split them.
    """
    import re

    pattern = re.compile(WORDS)
    return [" ".join(pattern.findall(text.lower())) for text in part]


METHODS: dict[str, Callable[..., list[Any]]] = {
    OURS: ours,
    COMMAND: ours,
    "ours, chosen on validation": ours,
    "TF-IDF + LR": tfidf,
    "TF-IDF + SVM": linear_svm,
    "NB-SVM": nbsvm,
    "fastText, defaults": fasttext,
    "fastText, best": fasttext,
    "Vowpal Wabbit, defaults": vowpal,
    "Vowpal Wabbit, best": vowpal,
}


def choose(task: str, n: int, method: str) -> dict[str, Any]:
    """The setting of best accuracy on a seeded tenth of the training documents, and that
    accuracy."""
    train, _ = load(task)
    order = np.random.default_rng(0).permutation(len(train))
    held, rest = train[order[: len(train) // 10]], train[order[len(train) // 10 :]]
    split = rest["text"], rest["label"].to_list(), held["text"]
    goal, scores = held["label"].to_numpy(), []
    for setting in GRIDS[method]:
        answers = METHODS[method](split, n, 0, lambda stage: None, **setting)
        scores.append(float(np.mean(np.array(answers) == goal)))
    best = int(np.argmax(scores))
    return {"setting": GRIDS[method][best], "score": scores[best]}


def command(task: str, n: int) -> dict[str, float]:
    """`tokensieve train` from Parquet files to the model and its test accuracy:

    the start of Python and all imports count, too.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, part in zip(("train", "test"), load(task), strict=True):
            part.write_parquet(f"{folder}/{name}.parquet")
        words = [
            "train",
            f"{folder}/train.parquet",
            "--test",
            f"{folder}/test.parquet",
            "--ngrams",
            str(n),
            "-q",
        ]
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "tokensieve", *words, "--out", f"{folder}/model"],
            env=os.environ | BYTE_CODE,
            check=True,
        )
        seconds = time.perf_counter() - begun
        summary = json.loads(Path(f"{folder}/model/summary.json").read_text())
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    found = {"accuracy": summary["test_accuracy"], "seconds": seconds, "gigabytes": memory}
    return found | {"tests": summary["documents"]["test"]}


def one(task: str, n: int, method: str, seed: int, setting: dict[str, Any]) -> dict[str, float]:
    """Raw file to test predictions."""
    if method == COMMAND:
        return command(task, n)
    laps = [("", time.perf_counter())]
    lap: Lap = lambda stage: laps.append((stage, time.perf_counter()))  # noqa: E731
    train, test = load(task)
    split = train["text"], train["label"].to_list(), test["text"]
    lap("reading")
    answers = METHODS[method](split, n, seed, lap, **setting)
    lap("predicting")
    accuracy = float(np.mean(np.array(answers) == test["label"].to_numpy()))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    stages = {stage: end - start for (_, start), (stage, end) in pairwise(laps)}
    return {
        "accuracy": accuracy,
        "seconds": laps[-1][1] - laps[0][1],
        "processor": usage.ru_utime + usage.ru_stime,
        "gigabytes": usage.ru_maxrss / 1e6,
        "tests": len(test),
    } | stages


def child(what: str, task: str, n: int, method: str, **more: Any) -> dict[str, Any]:
    """This file in a process of its own, its last line read as JSON."""
    options = [
        x
        for name, value in more.items()
        for x in (f"--{name}", value if name != "setting" else json.dumps(value))
    ]
    command = [
        sys.executable,
        __file__,
        what,
        "--data",
        task,
        "--ngrams",
        str(n),
        "--method",
        method,
        *map(str, options),
    ]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | BYTE_CODE
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def classify(options: argparse.Namespace) -> None:
    """A row for each data set, length of n-grams and method, and what the rows say of ours beside
    the best of the others.
    """
    lacking = {word for word, module in PEERS.items() if find_spec(module) is None}
    methods = [m for m in options.methods if m.split()[0].rstrip(",") not in lacking]
    print(described("scikit-learn", "fasttext-wheel", "vowpalwabbit") + "\n")
    if lacking:
        print(f"not installed and left out: {', '.join(sorted(lacking))}\n")
    print(
        "| data | words | method | setting | validation | test accuracy | seconds | "
        f"{' | '.join(STAGES)} | GB |"
    )
    print("|---|---|---|---|---|---|---|" + "---|" * (len(STAGES) + 1), flush=True)
    kept, verdicts, known = [], [], dict[tuple[str, int, str], dict[str, Any]]()
    if options.stored_settings:
        for row in json.loads(RESULTS.read_text())["figures"]:
            known[row["data"], row["ngrams"], row["method"]] = {
                name: row[name] for name in ("setting", "score")
            }
    for task in options.data:
        for n in options.ngrams:
            chosen = {m: known.get((task, n, m)) or child("choose", task, n, m) for m in methods}
            runs: dict[str, list[dict[str, float]]] = {m: [] for m in methods}
            for seed in range(options.runs):
                for m in methods if seed % 2 == 0 else methods[::-1]:
                    runs[m].append(
                        child("one", task, n, m, seed=seed, setting=chosen[m]["setting"])
                    )
            for m in methods:
                print(_row(task, n, m, chosen[m], runs[m]), flush=True)
                kept.append({"data": task, "ngrams": n, "method": m, **chosen[m], "runs": runs[m]})
            if {OURS} < set(methods):
                verdicts.append(_verdict(task, n, runs))
    print("\n" + "\n".join(verdicts))
    store(options.name, kept, described("scikit-learn", "fasttext-wheel", "vowpalwabbit"))


def _row(
    task: str, n: int, method: str, chosen: dict[str, Any], runs: list[dict[str, float]]
) -> str:
    def middle(key: str, digits: int, spread: bool = False) -> str:
        values = [run.get(key, 0.0) for run in runs]
        wide = f" ({min(values):.{digits}f} … {max(values):.{digits}f})" if spread else ""
        return f"{statistics.median(values):.{digits}f}{wide}"

    setting = ", ".join(f"{k} {v:g}" for k, v in chosen["setting"].items()) or "–"
    stages = " | ".join(middle(stage, 1) for stage in STAGES)
    return (
        f"| {TASKS[task]} | 1…{n} | {method} | {setting} | {chosen['score']:.4f} | "
        f"{middle('accuracy', 4, True)} | {middle('seconds', 1, True)} | {stages} | "
        f"{max(run['gigabytes'] for run in runs):.2f} |"
    )


def _verdict(task: str, n: int, runs: dict[str, list[dict[str, float]]]) -> str:
    """Ours, at defaults, beside the most accurate of the others, whose 95 % interval (Wilson's) is
    that of its test documents.
    """
    from scipy.stats import binomtest

    accuracy = {m: statistics.median(run["accuracy"] for run in of) for m, of in runs.items()}
    seconds = {m: statistics.median(run["seconds"] for run in of) for m, of in runs.items()}
    mine, tests = accuracy.pop(OURS), int(runs[OURS][0]["tests"])
    accuracy = {m: a for m, a in accuracy.items() if not m.startswith("ours")}
    best = max(accuracy, key=lambda m: accuracy[m])
    interval = binomtest(round(accuracy[best] * tests), tests).proportion_ci(method="wilson")
    said = (
        "at least as accurate"
        if mine >= accuracy[best]
        else "less accurate, within"
        if mine > interval.low
        else "less accurate, below"
    )
    times = ", ".join(f"{m} {s / seconds[OURS]:.1f}" for m, s in seconds.items() if m != OURS)
    return (
        f"- {TASKS[task]}, 1…{n} words: ours at defaults {mine:.4f}; the best of the others is "
        f"{best}, {accuracy[best]:.4f} ({interval.low:.4f} … {interval.high:.4f}): {said}. Times "
        f"our seconds: {times}."
    )


def audit_ours() -> dict[str, Any]:
    import tokensieve

    with tempfile.TemporaryDirectory() as folder:
        found = tokensieve.audit(DATA / "imdb_train.parquet", tokensieve.Settings(ngrams=2))
        tokensieve.save(found, folder)
    return {
        "what": "tokens, shortcuts, wrong labels, duplicates, page",
        "found": len(found.findings),
    }


def audit_cleanlab() -> dict[str, Any]:
    from cleanlab.filter import find_label_issues
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline

    frame = pl.read_parquet(DATA / "imdb_train.parquet")
    y = (frame["label"] == "positive").to_numpy().astype(int)
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2), LogisticRegression(C=10.0, max_iter=1000)
    )
    chances = cross_val_predict(model, frame["text"].to_list(), y, cv=5, method="predict_proba")
    issues = find_label_issues(y, chances, return_indices_ranked_by="self_confidence")
    return {"what": "wrong labels", "found": len(issues)}


AUDITS = {"tokensieve": audit_ours, "cleanlab": audit_cleanlab}


def audit(options: argparse.Namespace) -> None:
    """A row for each tool, each run in a process of its own, in turns."""
    commands = {
        name: [sys.executable, __file__, "audit-one", "--tool", name]
        for name in AUDITS
        if find_spec(name)
    }
    tools = list(commands)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in tools}
    for k in range(options.runs):
        for name in tools if k % 2 == 0 else tools[::-1]:
            done = subprocess.run(
                commands[name],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env=os.environ | BYTE_CODE,
            )
            runs[name].append(json.loads(done.stdout.splitlines()[-1]))
    print(described("cleanlab", "scikit-learn") + "\n")
    print("| tool | what it finds | found | seconds | GB |\n|---|---|---|---|---|")
    for name, of in runs.items():
        seconds = [one["seconds"] for one in of]
        span = f"{statistics.median(seconds):.1f} ({min(seconds):.1f} … {max(seconds):.1f})"
        print(
            f"| {name} | {of[0]['what']} | {of[0]['found']:,} | {span} | "
            f"{max(one['gigabytes'] for one in of):.2f} |"
        )
    store("peers-audit", runs, described("cleanlab", "scikit-learn"))


def audit_one(tool: str) -> dict[str, Any]:
    begun = time.perf_counter()
    found = AUDITS[tool]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found | {"seconds": time.perf_counter() - begun, "gigabytes": peak}


def margin(options: argparse.Namespace) -> None:
    """Assumption 1, d = 1024, T = 20: seconds of both, and how far their solutions are apart."""
    import clarabel
    import scipy.sparse as sp

    from tokensieve.theory.embeddings import initialise
    from tokensieve.theory.generators import single_token
    from tokensieve.theory.limit.margin import max_margin
    from tokensieve.theory.one_step import one_step

    print(described("clarabel", "scipy") + "\n")
    print("| documents | types | pairs | tokensieve | dense, Clarabel | ratio | difference |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for n in (50, 100, 200, 400, 800, 1600, 3200, 6400):
        counts, relevance = single_token(n, max(60, n // 2), 20, max(10, n // 20), seed=0)
        E = one_step(counts, *initialise(counts.n_types, 1024, seed=0), 300.0).embeddings()
        mask = (relevance != 0)[counts.matrix.indices]
        start = time.perf_counter()
        found = max_margin(counts, E, mask)
        mine = time.perf_counter() - start
        document = np.repeat(np.arange(n), np.diff(counts.matrix.indptr))
        chosen = np.full(n, -1)
        chosen[document[mask]] = counts.matrix.indices[mask]
        pairs = np.unique(
            np.stack([chosen[document[~mask]], counts.matrix.indices[~mask]], axis=1), axis=0
        )
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.time_limit = False, options.seconds
        start = time.perf_counter()
        D = E[pairs[:, 0]] - E[pairs[:, 1]]
        solver = clarabel.DefaultSolver(
            sp.eye_array(1024, format="csc"), np.zeros(1024), sp.csc_array(-D), -np.ones(len(D)),
            [clarabel.NonnegativeConeT(len(D))], settings,
        )  # fmt: skip
        answer = solver.solve()
        theirs = time.perf_counter() - start
        solved = str(answer.status) in ("Solved", "AlmostSolved")
        apart = (
            np.linalg.norm(np.asarray(answer.x) - found.p) / np.linalg.norm(found.p)
            if solved
            else np.nan
        )
        print(
            f"| {n:,} | {counts.n_types:,} | {len(pairs):,} | {mine:.2f} s ({found.status}) | "
            f"{theirs:.2f} s ({answer.status}) | {theirs / mine:.0f} | {apart:.1e} |",
            flush=True,
        )
        if not solved or theirs > options.seconds:
            return


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", choices=("classify", "audit", "margin", "choose", "one", "audit-one")
    )
    parser.add_argument("--data", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--ngrams", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--stored-settings",
        action="store_true",
        help="those of results/peers-classify.json, if it has them",
    )
    parser.add_argument("--name", default=RESULTS.stem, help="of the results of classify")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--method", choices=METHODS)
    parser.add_argument("--tool", choices=AUDITS)
    parser.add_argument("--setting", type=json.loads, default={})
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    if options.what == "choose":
        print(json.dumps(choose(options.data[0], options.ngrams[0], options.method)))
    elif options.what == "one":
        print(
            json.dumps(
                one(
                    options.data[0],
                    options.ngrams[0],
                    options.method,
                    options.seed,
                    options.setting,
                )
            )
        )
    elif options.what == "audit-one":
        print(json.dumps(audit_one(options.tool)))
    else:
        {"classify": classify, "audit": audit, "margin": margin}[options.what](options)


if __name__ == "__main__":
    main()
