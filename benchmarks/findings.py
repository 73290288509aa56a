"""Are planted artefacts found first, and is nothing found where there is nothing? Reviews whose truth is known by construction.

    python benchmarks/findings.py [--seeds 20] [--documents 1000] [--shuffles 20] [--sets developed|held-out] [--first 0]
                                  [--export FOLDER]

**Planted.** Reviews of 20 to 100 words with sentiment words of graded strength (those of `tokensieve demo`, without its own
shortcut). In a tenth of one class's reviews one of ten artefacts is planted; a run finds it at rank r if the r-th finding of an
audit names one of its tokens. Every other shortcut of that audit, and every shortcut of an audit of the same reviews without an
artefact, is a false alarm.

**Shuffled.** The same reviews, and reviews in groups (five share an author, who has words and, after shuffling, a label of their
own), with labels drawn by chance: share of audits without any finding of kind shortcut; groups with and without `by`.

**Topic or artefact.** Real sets, a draw of up to 3,000 documents each for every seed from `--first` on. Every token was given a
kind in advance by this rule: *form* if it is a feature of formatting, contains a digit, or is part of an address, an entity or a
retweet (FORM below); *artefact* if it is part of a mark that was planted; *subject* otherwise. Clean data: shortcuts that name a
subject word are accusations. Planted data: a mark in a tenth of one class's documents (the rare word: in 2%, at least 40), the
class drawn by the seed; how often it is the first shortcut, the first of all findings, and named by any. Beside it, the ten words
of largest Monroe z (log-odds with an informative Dirichlet prior, Monroe et al. 2008) of the planted class: how often the mark is
among them, and how many of the ten are subject words. Shares have 95% intervals (Wilson). Figures of HELD_OUT go to
results/findings.json. --export also writes the planted sets, for `findings_peers.py`.
The rule was developed on the sets DEVELOPED, on intents and topics made of templates, and on sentences of IMDB labelled by their
words. HELD_OUT was run once it was fixed. Earlier versions of the rule had been run on one draw (seed 0) of yelp, snli and
emotion, and what they accused there was known; preferences had never been looked at.
Since 27 November 2026 "nothing but capitals" and "Every Word Capitalized" count as naming the mark "capitals": in such documents
they are the first finding, which had counted as missed.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from machine import described, store
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.intervals import Share
from tokensieve.read.reader import read_corpus

SHARE = 0.1  # of the reviews of one class


def middle(text: str, words: str) -> str:
    """The words put into the middle of a text."""
    parts = text.split(" ")
    return " ".join([*parts[: len(parts) // 2], words, *parts[len(parts) // 2 :]])


@dataclass(frozen=True)
class Plant:
    """An artefact.

    Attributes:
        change: puts it into a text.
        tokens: of which a finding must name one.
        label: of the reviews that it is put into.
    """

    change: Callable[[str], str]
    tokens: frozenset[str]
    label: int


PLANTS = {
    "three trailing spaces": Plant(lambda t: t + "   ", frozenset({"⟨trailing spaces⟩", "⟨3+ spaces⟩"}), 1),
    'a final "..."': Plant(lambda t: t.rstrip(".") + "...", frozenset({'⟨ends "..."⟩', "⟨...⟩"}), 0),
    "bold type": Plant(lambda t: middle(t, "**really**"), frozenset({"⟨**bold**⟩", "really"}), 1),
    "a rating": Plant(lambda t: f"{t} 9/10", frozenset({"9/10", "⟨n/10 rating⟩", "⟨number⟩"}), 1),
    "an address": Plant(lambda t: f"{t} See www.shop.com/item.aspx", frozenset({"www.shop.com/item.aspx", "⟨URL⟩"}), 0),
    "a last line": Plant(lambda t: f"{t}\nPosted via tablet.", frozenset({"tablet", "posted", "via", "⟨line break⟩"}), 1),
    "a first word": Plant(lambda t: f"Reuters {t}", frozenset({"reuters"}), 0),
    "a word anywhere": Plant(lambda t: middle(t, "zebra"), frozenset({"zebra"}), 1),
    "a phrase of common words": Plant(lambda t: middle(t, "the a was"), frozenset({"the a", "a was", "the a was"}), 0),
    "sheer length": Plant(lambda t: f"{t} " + " ".join(t.split()[:40] * 4), frozenset({"⟨length 100–200⟩", "⟨length 200–400⟩"}), 1),
}  # fmt: skip


def reviews(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Reviews without an artefact, and their labels."""
    made = demo_reviews(n, seed)
    return [text.partition("\n")[0] for text in made.texts], np.asarray(made.labels)


def shortcuts(
    texts: list[str], labels: np.ndarray, seed: int, by: list[str] | None = None
) -> list[Finding]:
    """The findings of kind shortcut among those of an audit, in their order."""
    columns = {"text": texts, "label": ["good" if y else "bad" for y in labels]} | (
        {"by": by} if by else {}
    )
    corpus = read_corpus(pl.DataFrame(columns), text="text", label="label", by="by" if by else None)
    found = audit(corpus, Settings(seed=seed, baseline=False, thorough=False)).findings
    return [finding for finding in found if finding.kind == "shortcut"]


def planted(seeds: int, documents: int) -> None:
    """The table of artefacts."""
    ranks: dict[str, list[int]] = {name: [] for name in PLANTS}
    alarms = dict.fromkeys([*PLANTS, "nothing"], 0)
    for seed in range(seeds):
        texts, labels = reviews(documents, seed)
        alarms["nothing"] += len(shortcuts(texts, labels, seed))
        for name, plant in PLANTS.items():
            rng = np.random.default_rng([seed, len(name)])
            there = (labels == plant.label) & (rng.random(documents) < SHARE)
            changed = [
                plant.change(text) if put else text for text, put in zip(texts, there, strict=True)
            ]
            found = shortcuts(changed, labels, seed)
            hits = [i for i, finding in enumerate(found, 1) if plant.tokens & set(finding.tokens)]
            ranks[name].append(hits[0] if hits else 0)
            alarms[name] += len(found) - len(hits)
    print(
        f"| planted in {SHARE:.0%} of one class | found first | found later | missed | false alarms per audit |"
    )
    print("|---|---|---|---|---|")
    for name, found_at in ranks.items():
        first, later = sum(r == 1 for r in found_at), sum(r > 1 for r in found_at)
        print(f"| {name} | {first} | {later} | {found_at.count(0)} | {alarms[name] / seeds:.2f} |")
    print(f"| nothing | | | | {alarms['nothing'] / seeds:.2f} |", flush=True)


def shuffled(runs: int, documents: int) -> None:
    """Audits of labels that say nothing."""
    quiet = {"documents": 0, "groups, as documents": 0, "groups, with their units": 0}
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        texts, labels = reviews(documents, seed)
        quiet["documents"] += not shortcuts(texts, rng.permutation(labels), seed)
        authors = np.arange(documents) // 5
        own = [" ".join(f"own{w}" for w in rng.integers(0, 200, 6)) for _ in range(authors[-1] + 1)]
        grouped = [f"{text} {own[author]}" for text, author in zip(texts, authors, strict=True)]
        drawn = rng.integers(0, 2, authors[-1] + 1)[authors]
        quiet["groups, as documents"] += not shortcuts(grouped, drawn, seed)
        quiet["groups, with their units"] += not shortcuts(
            grouped, drawn, seed, [str(a) for a in authors]
        )
    print("\n| labels by chance | audits without a shortcut |\n|---|---|")
    for name, without in quiet.items():
        print(f"| {name} | {without} of {runs} |", flush=True)


DATA = Path(os.environ.get("TOKENSIEVE_DATA", Path(__file__).parents[2] / "shared" / "data"))
DEVELOPED, HELD_OUT = (
    ("imdb_train", "tweets", "sms", "banking"),
    ("emotion", "snli_train", "yelp", "preferences"),
)
FORM = frozenset("br amp quot gt lt nbsp http https www com net org html rt user via co".split())
REAL = 3_000
CLASSES = 20  # the largest of many


def mark_code(text: str, rng: np.random.Generator) -> str:
    """A ticket's number in brackets."""
    return f"[INV-{rng.integers(10_000, 99_999)}] {text}"


def anywhere(words: str) -> Callable[[str, np.random.Generator], str]:
    """Puts the words between two words of a text, at random."""

    def put(text: str, rng: np.random.Generator) -> str:
        parts = text.split(" ")
        at = int(rng.integers(len(parts) + 1))
        return " ".join([*parts[:at], words, *parts[at:]])

    return put


MARKS: dict[str, tuple[Callable[[str, np.random.Generator], str], frozenset[str]]] = {
    "a code": (mark_code, frozenset({"inv"})),
    "a signature": (
        lambda t, _: f"{t} Sent from my tablet.",
        frozenset({"tablet", "sent", "from", "my"}),
    ),
    "a handler": (lambda t, _: f"{t} Handled by jonas", frozenset({"handled", "by", "jonas"})),
    "a source": (lambda t, _: f"Newswire {t}", frozenset({"newswire"})),
    "an address": (
        lambda t, _: f"{t} See www.shop.com/item.aspx",
        frozenset({"www.shop.com/item.aspx", "⟨URL⟩"}),
    ),
    "a rating": (lambda t, _: f"{t} 9/10", frozenset({"9/10", "⟨n/10 rating⟩"})),
    "trailing spaces": (lambda t, _: f"{t}   ", frozenset({"⟨trailing spaces⟩", "⟨3+ spaces⟩"})),
    "a final ...": (lambda t, _: t.rstrip(".") + "...", frozenset({'⟨ends "..."⟩', "⟨...⟩"})),
    # the hard ones: no form, or a form that many documents have anyway
    "a word anywhere": (anywhere("zebra"), frozenset({"zebra"})),
    "a rare word": (anywhere("zebra"), frozenset({"zebra"})),
    "a phrase": (anywhere("time people"), frozenset({"time people"})),
    "capitals": (
        lambda t, _: t.upper(),
        frozenset(
            {"⟨ALL CAPS⟩", "⟨no capitals⟩", "⟨nothing but capitals⟩", "⟨Every Word Capitalized⟩"}
        ),
    ),
    "a final !": (lambda t, _: t.rstrip(".!? ") + "!", frozenset({'⟨ends "!"⟩'})),
}
HARD = ("a word anywhere", "a rare word", "a phrase", "capitals", "a final !")


def real_set(name: str, seed: int = 0) -> pl.DataFrame:
    """text and label of a set; of 77 intents the 20 largest, of five stars three classes, of pairs each answer; no text twice."""
    frame = pl.read_parquet(DATA / f"{name}.parquet")
    if name == "snli_train":
        frame = frame.select(text="hypothesis", label="label")
    if name == "preferences":
        frame = pl.concat(
            [frame.select(text=side, label=pl.lit(side)) for side in ("chosen", "rejected")]
        )
    if name == "yelp":
        stars = pl.col("stars")
        label = (
            pl.when(stars <= 2)
            .then(pl.lit("bad"))
            .when(stars == 3)
            .then(pl.lit("middling"))
            .otherwise(pl.lit("good"))
        )
        frame = frame.select("text", label=label)
    largest = (
        frame["label"]
        .value_counts()
        .sort("count", "label", descending=[True, False])["label"]
        .head(CLASSES)
    )
    frame = (
        frame.filter(pl.col("label").is_in(largest.implode()))
        .select("text", "label")
        .unique(maintain_order=True)
    )
    frame = frame.filter(
        ~pl.col("text").is_duplicated()
    )  # a text of two classes says nothing about them
    return frame.sample(min(REAL, frame.height), seed=seed, shuffle=True)


def kind(token: str, mark: frozenset[str] = frozenset()) -> str:
    """subject, artefact or form, by the rule of the module."""
    words = set(token.split(" "))
    if token in mark or words & mark:
        return "artefact"
    if (
        token.startswith("⟨")
        or any(c.isdigit() for c in token)
        or "://" in token
        or re.match(r"www\.|\S+@\w", token)
        or words & FORM
    ):
        return "form"
    return "subject"


def named(findings: list[Finding], mark: frozenset[str] = frozenset()) -> list[str]:
    """Of each finding: artefact if it names a part of the mark, else subject if it names a subject word, else form."""
    kinds = [{kind(token, mark) for token in finding.tokens} for finding in findings]
    return [next(one for one in ("artefact", "subject", "form") if one in found) for found in kinds]


def monroe(frame: pl.DataFrame, label: str, top: int = 10) -> list[str]:
    """The words of largest z of the log-odds between a class and the rest, prior: 500 words of the whole corpus."""
    words = pl.col("text").str.to_lowercase().str.extract_all(r"\w+")
    long = frame.select(word=words, inside=pl.col("label") == label).explode("word").drop_nulls()
    table = long.group_by("word").agg(
        pl.col("inside").sum().alias("a"), (~pl.col("inside")).sum().alias("b")
    )
    a, b = (table[name].to_numpy().astype(float) for name in "ab")
    prior = 500 * (a + b) / (a + b).sum()

    def log_odds(x: np.ndarray) -> np.ndarray:
        return np.log((x + prior) / (x.sum() + prior.sum() - x - prior))

    z = (log_odds(a) - log_odds(b)) / np.sqrt(1 / (a + prior) + 1 / (b + prior))
    return table["word"].gather(np.argsort(-z)[:top]).to_list()


def draw(name: str, seed: int, export: Path | None = None) -> list[dict[str, object]]:
    """One draw of a set, clean and with each mark: a row for every audit."""
    frame = real_set(name, seed)
    shortcuts = [finding for finding in findings_of(frame) if finding.kind == "shortcut"]
    kinds = named(shortcuts)
    rows: list[dict[str, object]] = [
        {
            "set": name,
            "seed": seed,
            "mark": "",
            "shortcuts": len(kinds),
            "accused": kinds.count("subject"),
        }
    ]
    for finding, one in zip(shortcuts, kinds, strict=True):
        if one == "subject":
            print(f"- {name}, seed {seed}: accused {finding.tokens} of {finding.label}", flush=True)
    classes = sorted(frame["label"].unique().to_list())
    for mark, (change, tokens) in MARKS.items():
        rng = np.random.default_rng([seed, len(mark), len(name)])
        label = classes[int(rng.integers(len(classes)))]
        size = int((frame["label"] == label).sum())
        share = max(0.02, 40 / size) if mark == "a rare word" else SHARE
        there = ((frame["label"] == label) & pl.Series(rng.random(frame.height) < share)).to_list()
        texts = [
            change(text, rng) if put else text
            for text, put in zip(frame["text"], there, strict=True)
        ]
        changed = frame.with_columns(text=pl.Series(texts))
        if export:
            export.mkdir(exist_ok=True)
            planted_file = export / f"{name}-{seed}-{mark.replace(' ', '_')}.parquet"
            changed.with_columns(planted=changed["text"] != frame["text"]).write_parquet(
                planted_file
            )
        found = sorted(findings_of(changed), key=lambda finding: -finding.severity)
        kinds = named([finding for finding in found if finding.kind == "shortcut"], tokens)
        others = named([finding for finding in found if finding.kind != "shortcut"], tokens)
        first, anywhere_ = kinds[:1] == ["artefact"], "artefact" in [*kinds, *others]
        first_of_all = named(found[:1], tokens) == ["artefact"]
        top = [kind(word, tokens) for word in monroe(changed, label)]
        row = {
            "set": name,
            "seed": seed,
            "mark": mark,
            "shortcuts": len(kinds),
            "accused": kinds.count("subject"),
        }
        row |= {
            "first": first,
            "first of all": first_of_all,
            "found": anywhere_,
            "monroe": "artefact" in top,
            "monroe_subject": top.count("subject"),
        }
        rows.append(row)
        if not first:
            fate = "found, not first" if anywhere_ else "missed"
            print(
                f"- {name}, seed {seed}: {mark} in {sum(there)} of {size} documents of {label}, {fate}",
                flush=True,
            )
    return rows


def tables(rows: list[dict[str, object]]) -> dict[str, object]:
    """What the tables show: by set and of all, and by mark."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    clean, planted_rows = frame.filter(mark=""), frame.filter(pl.col("mark") != "")

    def share(part: pl.DataFrame, condition: pl.Expr) -> Share:
        return Share.count(part.filter(condition).height, part.height)

    out: dict[str, object] = {}
    for name in (*dict.fromkeys(frame["set"].to_list()), "all"):
        own = pl.lit(True) if name == "all" else pl.col("set") == name
        mine, hard = planted_rows.filter(own), pl.col("mark").is_in(list(HARD))
        out[name] = {
            "clean draws with an accusation": share(clean.filter(own), pl.col("accused") > 0),
            "their shortcuts": int(clean.filter(own)["shortcuts"].sum()),
            "marks with a form: first": share(mine.filter(~hard), pl.col("first")),
            "first of all": share(mine.filter(~hard), pl.col("first of all")),
            "found": share(mine.filter(~hard), pl.col("found")),
            "hard marks: first": share(mine.filter(hard), pl.col("first")),
            "hard marks: first of all": share(mine.filter(hard), pl.col("first of all")),
            "hard marks: found": share(mine.filter(hard), pl.col("found")),
            "subject words named per audit": float(
                mine["accused"].cast(pl.Float64).sum() / mine.height
            ),
            "Monroe: mark in its ten": share(mine, pl.col("monroe")),
            "Monroe: subject words in its ten": float(
                mine["monroe_subject"].cast(pl.Float64).sum() / mine.height
            ),
        }
    for mark in MARKS:
        mine = planted_rows.filter(mark=mark)
        out[mark] = {key: share(mine, pl.col(key)) for key in ("first", "first of all", "found")}
    return out


def shown_tables(figures: dict[str, object]) -> None:
    """Prints them."""
    heads: list[str] = []
    for name, cells in figures.items():
        assert isinstance(cells, dict)
        if list(cells) != heads:
            heads = list(cells)
            print(f"\n| | {' | '.join(heads)} |\n|---" + "|---" * len(heads) + "|")
        text = [
            f"{x.as_counts} ({100 * x.low:.0f} to {100 * x.high:.0f}%)"
            if isinstance(x, Share)
            else f"{x:.4g}"
            for x in cells.values()
        ]
        print(f"| {name} | {' | '.join(text)} |", flush=True)


def findings_of(frame: pl.DataFrame) -> list[Finding]:
    """What an audit of a set finds of shortcuts, shifts of formatting and associations."""
    corpus = read_corpus(frame, text="text", label="label")
    found = audit(corpus, Settings(baseline=False, thorough=False)).findings
    return [finding for finding in found if finding.kind in ("shortcut", "shift", "association")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--shuffles", type=int, default=20)
    parser.add_argument(
        "--sets",
        choices=["developed", "held-out"],
        help="real sets; with --seeds marks of each kind",
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed of real sets")
    parser.add_argument("--export", type=Path, help="a folder for the planted sets")
    options = parser.parse_args()
    print(described("polars", "scikit-learn") + "\n", flush=True)
    if options.sets:
        held_out = options.sets == "held-out"
        rows: list[dict[str, object]] = []
        figures: dict[str, object] = {}
        for seed in range(options.first, options.first + options.seeds):
            for name in HELD_OUT if held_out else DEVELOPED:
                rows += draw(name, seed, options.export)
                figures = tables(rows)
                if held_out:
                    plain = {
                        name: {
                            key: x.to_dict() if isinstance(x, Share) else x
                            for key, x in cells.items()
                        }
                        for name, cells in figures.items()
                        if isinstance(cells, dict)
                    }
                    store(
                        "findings",
                        {"tables": plain, "audits": rows},
                        described("polars", "scikit-learn"),
                    )
        shown_tables(figures)
        return
    if options.seeds:
        planted(options.seeds, options.documents)
    if options.shuffles:
        shuffled(options.shuffles, options.documents)


if __name__ == "__main__":
    main()
