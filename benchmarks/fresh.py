"""Does an audit find planted artefacts, and accuse no subject words, on data that no one has tuned it on?

    python benchmarks/fresh.py --name after [--seeds 0 1] [--sets trivia icd ...]
    python benchmarks/fresh.py --name after --tables

The first command audits, the second stores the figures of everything that was run under this name.

The sets are those of `fresh_sets.py`, of kinds on which detection was neither developed nor tested before. Everything below was
written down and committed before the first audit of a reported set. The runner was developed on the sets DEVELOPED, which are
not reported.

**Draws.** For each seed, up to 2,000 documents of a set, of classes with at least 10 of them. A draw is audited as it is
(clean), with its labels shuffled, and with six of the 28 marks, one at a time. Marks rotate over sets and seeds, so that each is
planted about as often as any other. A mark is put into a tenth of the documents of one class, at least 15. The class is drawn
among those with 100 documents, or is the largest. All audits use Settings(baseline=False, thorough=False).

**Kinds of tokens.**
*mark*: one of the mark's tokens in MARKS, a phrase with one of its words, or a fixed passage at an edge (such as ⟨ends "sent
by"⟩) with one of its words. Words that other texts have too, such as "by", are not among a mark's tokens.
*form*: by the rule of `findings.py`, a feature of formatting, a token with a digit, or part of an address, an entity or a retweet.
*natural*: a word of NATURAL in `fresh_sets.py`, a list of artefacts seen in the texts beforehand.
*subject*: everything else.

**What a finding names.** Findings of kind shortcut, shift or association name tokens. Of each, the first three count, as these are
the ones that a headline can show. A finding names the mark if one of them is of kind mark and the finding is about the class that
has the mark. It accuses a subject word if it is a shortcut, does not name the mark, and one of the three is of kind subject.

**Figures.**
*First of all*: the first finding of the audit, of whatever kind, names the mark.
*First apart from what the clean set has*: every finding before it was also made on the clean draw. Either it names only form and
natural artefacts and shares a token with a finding on the clean draw, or it is of a kind that names no tokens and the clean draw
has a finding of that kind and class. A finding with a subject word is never excused.
*First of what is new*: as before, but a finding with a subject word is excused too if it shares a token with one on the clean draw.
*Found*: any finding names the mark.
*Clean draws with an accusation*: a shortcut on the clean draw names a subject word.
*Shuffled*: there should be no shortcut, and no shift or association either.
Beside them are the ten words of largest Monroe z (log-odds with an informative Dirichlet prior) of the planted class, which it was
told. Only marks that contain a word can be among them.

Intervals are 95% (Wilson, as if audits were independent); the main figures also have one over sets (bootstrap, 2,000 draws).

**Halves.** After the figures `before` and `after` had been published, detection was changed again. For that, the sets were split
before any finding was looked at: every second one in alphabetical order, from the first, is for development (DEVELOPMENT), with
seed 0 only. The others (REPORTED) are run once, with seeds 2 and 3, which nobody had used, on the code before and after: names
`reported before` and `reported after`. Of their earlier findings (seeds 0 and 1) only counts by kind of mark and of finding were
looked at, and what the documentation says about them.

After further changes, developed on the first half with seed 0, the second half is run again with seeds 4 and 5, which nobody had
used, on the code before them (commit d985427a) and after them: names `reported earlier` and `reported now`. Written down on
26 November 2026, 18:40, before either was run.

For a last change, twelve sets were added (`later_sets.py`), again split before any of them was audited: every second one in
alphabetical order, from the first, is for development, the other six are for the report. These six (seeds 0 and 1) and the reported
half of the first sets (seeds 6 and 7, which nobody had used) are run on the code before the change (commit d5008130) and after it:
names `last before`, `last after`. Written down on 27 November 2026, 10:23, before any audit of these six. `last after` was
started three times, because the change went on; the first two were stopped and deleted unread.

Then two details were mended on the sets for development: a word that gives a shape its documents was not always named, and a
fixed place is taken as it is where most texts begin or end in their own way. The six sets with seed 2 and the others with seed 8
are run on the code before everything (d5008130) and after it: names `final before`, `final after`. Written down at 12:20, before
either was run.

Two rules were then found wrong on the sets for development, and changed for the runs named `new before` (commit 4423f314) and
`new after`. A version number named as "v0.0", with zeros for its digits, counts as named. And a mark that leaves more than a
fifth of its documents as they were, such as a lower-case start in Chinese, is not planted: the next one of the order takes its
place. Sets as before, with seeds 9 and 10 for the reported half of the first sets and 3 and 4 for the last six, which nobody had
used. Written down on 27 November 2026, 14:03, before either was run.

That change accused more subject words than it found marks. Two of its thresholds were made stricter on the sets for development
(clean draws, seeds 20 to 27), and the same sets are run with seeds 11 and 12, and 5 and 6, on the code before everything and
after: names `stricter before` (4423f314), `stricter after`. Of the runs before only counts were looked at. Written down at 14:26,
before either was run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

import tokensieve
from findings import kind, monroe
from fresh_sets import CACHE, NATURAL, SETS, texts_of
from later_sets import LATER
from machine import described
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.intervals import Share
from tokensieve.read.reader import read_corpus

DOCUMENTS, LEAST, PLANTED, FEWEST_PLANTED, PER_DRAW = 2_000, 10, 0.1, 15, 6
NAMING = ("shortcut", "shift", "association")
SHARES = ("first", "first apart", "first new", "found")
SHOWN = 3  # tokens of a finding that count
DEVELOPMENT, REPORTED = SETS[::2], SETS[1::2]
RESULTS = Path(__file__).resolve().parent / "results" / "fresh.json"
Change = Callable[[str, np.random.Generator], str]
Kind = Literal["mark", "form", "natural", "subject"]


@dataclass(frozen=True)
class Mark:
    """An artefact: its group, how it is put into a text, and its tokens; "qx*" stands for all tokens with this start."""

    group: Literal["form", "code", "phrase", "word"]
    change: Change
    tokens: frozenset[str]

    @property
    def words(self) -> bool:
        """Whether it contains a word."""
        return any(token[0].isalpha() for token in self.tokens)


def between(put: str) -> Change:
    """Puts it between two words, at random."""

    def change(text: str, rng: np.random.Generator) -> str:
        parts = text.split(" ")
        at = int(rng.integers(len(parts) + 1))
        return " ".join([*parts[:at], put, *parts[at:]])

    return change


def around(before: str, after: str) -> Change:
    """Puts a word, drawn at random, between two strings."""

    def change(text: str, rng: np.random.Generator) -> str:
        parts = text.split(" ")
        at = int(rng.integers(len(parts)))
        return " ".join([*parts[:at], before + (parts[at] or "word") + after, *parts[at + 1 :]])

    return change


def name_of(rng: np.random.Generator) -> str:
    """One of three names."""
    return str(rng.choice(["Petra", "Anton", "Wilma"]))


MARKS: dict[str, Mark] = {
    name: Mark(group, change, frozenset(tokens.split("|")))  # type: ignore[arg-type]
    for name, (group, change, tokens) in {
        "a final ??!": ("form", lambda t, _: t.rstrip(".!? ") + "??!", '⟨??⟩|⟨?!⟩|⟨ends "!"⟩'),
        "an arrow first": ("form", lambda t, _: f"► {t}", '⟨starts with a symbol⟩|⟨starts "►"⟩|►'),
        "curly quotes around it": (
            "form",
            lambda t, _: f"“{t}”",
            '⟨starts with a quote⟩|⟨ends with a quote⟩|⟨"quotes"⟩|⟨curly quotes⟩',
        ),
        "a heading's ##": ("form", lambda t, _: f"## {t}", "⟨heading⟩|⟨starts with a symbol⟩"),
        "two final line breaks": (
            "form",
            lambda t, _: f"{t}\n\n",
            "⟨ends with a line break⟩|⟨blank line⟩|⟨line break⟩|⟨trailing spaces⟩",
        ),
        "a Markdown link": ("form", around("[", "](#note)"), "⟨[link](…)⟩|note"),
        "italics": ("form", around("<i>", "</i>"), "⟨HTML tag⟩|⟨HTML⟩"),
        "broken encoding": ("form", between("â€™"), "⟨mojibake⟩|â"),
        "an emoticon": ("form", lambda t, _: f"{t} :-)", "⟨emoticon⟩"),
        "four spaces": (
            "form",
            lambda t, _: t.replace(" ", "    ", 1) if " " in t else f"{t}    ",
            "⟨3+ spaces⟩|⟨trailing spaces⟩",
        ),
        "a final comma": (
            "form",
            lambda t, _: t.rstrip(".!?… ") + ",",
            '⟨ends ","⟩|⟨no final stop⟩',
        ),
        "a lower-case start": (
            "form",
            lambda t, _: t[:1].lower() + t[1:],
            "⟨starts in lower case⟩|⟨no capitals⟩",
        ),
        "a price": (
            "form",
            lambda t, r: f"{t} €{r.integers(10, 99)}.99",
            "⟨sum of money⟩|⟨number⟩|⟨ends with a digit⟩|€*",
        ),
        "a reference": (
            "code",
            lambda t, r: f"(QX{r.integers(1000, 9999)}/B) {t}",
            "qx*|⟨starts with a symbol⟩|⟨number⟩|⟨(parentheses)⟩",
        ),
        "a checksum": (
            "code",
            lambda t, r: f"[sha:{r.integers(16**7, 16**8):x}] {t}",
            "sha|⟨starts with a symbol⟩",
        ),
        "a version": (
            "code",
            lambda t, r: f"v{r.integers(2, 9)}.{r.integers(10)} | {t}",
            "v0*|v2*|v3*|v4*|v5*|v6*|v7*|v8*|⟨symbol⟩|⟨number⟩",
        ),
        "a name with @": ("code", lambda t, _: f"{t} @desk_nora", "⟨@name⟩|desk_nora"),
        "a hashtag": (
            "code",
            lambda t, _: f"#archive2 {t}",
            "⟨#tag⟩|archive2|⟨starts with a symbol⟩|⟨number⟩",
        ),
        "a path": ("code", lambda t, _: f"{t} see /srv/notes/plan.txt", "srv|txt|plan.txt|notes"),
        "a telephone number": (
            "code",
            lambda t, r: f"{t} Tel. 030-{r.integers(10**5, 10**6)}",
            "tel|030|⟨ends with a digit⟩|⟨number⟩",
        ),
        "a translator": (
            "phrase",
            lambda t, _: f"{t} (Translated by Ingrid Holm)",
            "ingrid|holm|translated",
        ),
        "a notice": (
            "phrase",
            lambda t, _: f"{t} All rights reserved, Quill Media.",
            "quill|media|reserved|rights",
        ),
        "a header": (
            "phrase",
            lambda t, _: f"Section: Overview\n{t}",
            "overview|section|⟨: colon⟩|⟨line break⟩",
        ),
        "one of three names": ("phrase", lambda t, r: f"{t} /{name_of(r)}", "petra|anton|wilma"),
        "a phrase anywhere": ("phrase", between("copper basket"), "copper|basket"),
        "a word anywhere": ("word", between("marmalade"), "marmalade"),
        "a foreign word": ("word", between("γέφυρα"), "γέφυρα"),
        "a first word": ("word", lambda t, _: f"Nevertheless, {t}", "nevertheless"),
    }.items()
}


def token_kind(
    token: str, mark: frozenset[str] = frozenset(), natural: frozenset[str] = frozenset()
) -> Kind:
    """The kind of a token, by the rule of the module."""
    passage = re.match(r'⟨(?:starts|ends) "(.*)"⟩$', token)
    words = (passage[1] if passage else token).lower().split()
    starts = tuple(one[:-1] for one in mark if one.endswith("*"))
    if (
        token in mark
        or mark & set(words)
        or (starts and any(word.strip("([").startswith(starts) for word in words))
    ):
        return "mark"
    if kind(token) == "form":
        return "form"
    return "natural" if natural & set(words) else "subject"


def finding_kinds(finding: Finding, mark: frozenset[str], natural: frozenset[str]) -> set[Kind]:
    """The kinds of the tokens that count."""
    return (
        {token_kind(token, mark, natural) for token in finding.tokens[:SHOWN]}
        if finding.kind in NAMING
        else set()
    )


def names_mark(finding: Finding, mark: frozenset[str], label: str) -> bool:
    """Whether a finding names the mark of this class."""
    return finding.label == label and "mark" in finding_kinds(finding, mark, frozenset())


def accuses(
    finding: Finding, natural: frozenset[str], mark: frozenset[str] = frozenset(), label: str = ""
) -> bool:
    """Whether it is a shortcut that names a subject word, and not the mark."""
    subject = finding.kind == "shortcut" and "subject" in finding_kinds(finding, mark, natural)
    return subject and not (mark and names_mark(finding, mark, label))


def on_clean(finding: Finding, clean: list[Finding]) -> bool:
    """Whether the clean draw has this finding as well, by the rule of the module."""
    if finding.kind not in NAMING:
        return any((one.kind, one.label) == (finding.kind, finding.label) for one in clean)
    return any(set(one.tokens) & set(finding.tokens[:SHOWN]) for one in clean if one.kind in NAMING)


def excused(finding: Finding, clean: list[Finding], natural: frozenset[str]) -> bool:
    """Whether it is a natural artefact, or no artefact at all, that the clean draw has as well."""
    return on_clean(finding, clean) and "subject" not in finding_kinds(
        finding, frozenset(), natural
    )


def judged(
    findings: list[Finding],
    clean: list[Finding],
    mark: frozenset[str],
    label: str,
    natural: frozenset[str],
) -> dict[str, object]:
    """Where the mark is, and what stands before it."""
    rank = next((i for i, one in enumerate(findings, 1) if names_mark(one, mark, label)), 0)
    before = findings[: rank - 1 if rank else None]
    not_excused = [one for one in before if not excused(one, clean, natural)]
    return {
        "rank": rank,
        "first": rank == 1,
        "first apart": rank > 0 and not not_excused,
        "first new": rank > 0 and all(on_clean(one, clean) for one in before),
        "found": rank > 0,
        "accused": sum(accuses(one, natural, mark, label) for one in findings),
        "before": [[one.kind, *one.tokens[:SHOWN]] for one in not_excused[:1]],
    }


def findings_of(frame: pl.DataFrame) -> list[Finding]:
    """The findings of an audit, in its order."""
    corpus = read_corpus(frame, text="text", label="label")
    return list(audit(corpus, Settings(baseline=False, thorough=False)).findings)


def drawn(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The documents of a draw."""
    frame = frame.sample(min(DOCUMENTS, frame.height), seed=seed, shuffle=True)
    return frame.filter(pl.len().over("label") >= LEAST)


def marks_of(name: str, seed: int) -> list[str]:
    """The marks of a draw, in an order of the seed, from where the set before it stopped: the first six are planted."""
    order = np.random.default_rng([29, seed]).permutation(list(MARKS)).tolist()
    every = SETS + LATER
    at = every.index(name) * PER_DRAW if name in every else 0
    return [order[(at + i) % len(order)] for i in range(len(order))]


def planted(
    frame: pl.DataFrame, mark: Mark, rng: np.random.Generator
) -> tuple[pl.DataFrame, str, int]:
    """A draw with a mark in some documents of a class, that class, and in how many."""
    sizes = frame["label"].value_counts().sort("count", "label", descending=[True, False])
    choices = (
        sizes.filter(pl.col("count") >= 100)["label"].to_list() or sizes["label"].to_list()[:1]
    )
    label = choices[int(rng.integers(len(choices)))]
    of_class = np.flatnonzero((frame["label"] == label).to_numpy())
    put = set(
        rng.choice(
            of_class,
            min(len(of_class), max(FEWEST_PLANTED, round(PLANTED * len(of_class)))),
            replace=False,
        ).tolist()
    )
    texts = [mark.change(text, rng) if i in put else text for i, text in enumerate(frame["text"])]
    return frame.with_columns(text=pl.Series(texts)), label, len(put)


def rows_of(name: str, seed: int) -> list[dict[str, object]]:
    """A draw of a set, clean, shuffled, and with its marks: a row for every audit."""
    natural, frame = NATURAL.get(name, frozenset()), drawn(texts_of(name), seed)
    began = time.process_time()
    clean = findings_of(frame)
    base = {"set": name, "seed": seed, "documents": frame.height}
    accused = [[one.label, *one.tokens[:SHOWN]] for one in clean if accuses(one, natural)]
    shortcuts = sum(one.kind == "shortcut" for one in clean)
    rows: list[dict[str, object]] = [
        base | {"mark": "", "shortcuts": shortcuts, "accused": len(accused), "words": accused}
    ]
    rows[0] |= {"seconds": round(time.process_time() - began, 2)}
    rng = np.random.default_rng([31, seed, len(name)])
    mixed = frame.with_columns(label=pl.Series(rng.permutation(frame["label"].to_list())))
    by_chance = [one for one in findings_of(mixed) if one.kind in NAMING]
    rows.append(
        base
        | {
            "mark": "shuffled",
            "shortcuts": sum(one.kind == "shortcut" for one in by_chance),
            "any": len(by_chance),
        }
    )
    for chosen in marks_of(name, seed):
        mark, rng = MARKS[chosen], np.random.default_rng([37, seed, list(MARKS).index(chosen)])
        changed, label, n = planted(frame, mark, rng)
        if (changed["text"] != frame["text"]).sum() < 0.8 * n:
            continue
        row = base | {"mark": chosen, "group": mark.group, "class": label, "planted": n}
        row |= judged(findings_of(changed), clean, mark.tokens, label, natural)
        if mark.words:
            top = [token_kind(word, mark.tokens) for word in monroe(changed, label)]
            row |= {"monroe": top.index("mark") + 1 if "mark" in top else 0}
        rows.append(row)
        if len(rows) == 2 + PER_DRAW:
            break
    return rows


def over_sets(rows: pl.DataFrame, column: str) -> list[float]:
    """95% interval of a share, by drawing sets with replacement."""
    counts = (
        rows.group_by("set")
        .agg(pl.col(column).sum().cast(pl.Float64).alias("k"), pl.len().alias("n"))
        .sort("set")
    )
    k, n = counts["k"].to_numpy(), counts["n"].to_numpy()
    at = np.random.default_rng(0).integers(0, len(k), (2_000, len(k)))
    return [round(float(x), 4) for x in np.quantile(k[at].sum(1) / n[at].sum(1), [0.025, 0.975])]


def figures_of(rows: list[dict[str, object]]) -> dict[str, object]:
    """What the tables show, of all, by group of marks, by set and by mark."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    clean, mixed = frame.filter(mark=""), frame.filter(mark="shuffled")
    marked = frame.filter(~pl.col("mark").is_in(["", "shuffled"]))

    def shares(part: pl.DataFrame) -> dict[str, object]:
        out: dict[str, object] = {
            key: Share.count(int(part[key].sum()), part.height).to_dict() for key in SHARES
        }
        words = part.drop_nulls("monroe")
        if words.height:
            out["with a word"] = {
                key: Share.count(int(words[key].sum()), words.height).to_dict()
                for key in ("first", "found")
            }
            out["Monroe first"] = Share.count(
                int((words["monroe"] == 1).sum()), words.height
            ).to_dict()
            out["Monroe in ten"] = Share.count(
                int((words["monroe"] > 0).sum()), words.height
            ).to_dict()
        return out | {
            "subject words accused per audit": round(
                float(part["accused"].cast(pl.Float64).mean()), 3
            )
        }  # type: ignore[arg-type]

    accused = clean.with_columns(pl.col("accused") > 0)
    quiet = {"no shortcut": pl.col("shortcuts") == 0, "nothing named": pl.col("any") == 0}
    return {
        "all": shares(marked) | {f"{key}, over sets": over_sets(marked, key) for key in SHARES},
        "clean draws with an accusation": Share.count(
            int(accused["accused"].sum()), clean.height
        ).to_dict(),
        "clean draws with an accusation, over sets": over_sets(accused, "accused"),
        "sets with an accusation": sorted(set(accused.filter("accused")["set"])),
        "shuffled": {
            key: Share.count(mixed.filter(one).height, mixed.height).to_dict()
            for key, one in quiet.items()
        },
        "groups": {
            name: shares(marked.filter(group=name))
            for name in dict.fromkeys(marked["group"].to_list())
        },
        "sets": {
            name: shares(marked.filter(set=name)) for name in dict.fromkeys(marked["set"].to_list())
        },
        "marks": {
            name: shares(marked.filter(mark=name))
            for name in MARKS
            if name in marked["mark"].to_list()
        },
    }


def shown_tables(figures: dict[str, object]) -> None:
    """Prints them as Markdown."""

    def cell(share: dict[str, float] | None) -> str:
        if share is None:
            return ""
        return f"{share['found']} of {share['of']} ({100 * share['low']:.0f} to {100 * share['high']:.0f}%)"

    heads = (*SHARES, "Monroe first", "Monroe in ten")
    print(
        f"\n| | {' | '.join(heads)} | accused per audit |\n|---" + "|---" * (len(heads) + 1) + "|"
    )
    for part in ({"all": figures["all"]}, *(figures[name] for name in ("groups", "sets", "marks"))):
        for name, shares in part.items():  # type: ignore[attr-defined]
            print(
                f"| {name} | {' | '.join(cell(shares.get(head)) for head in heads)} | {shares['subject words accused per audit']} |"
            )
    print(
        "\nclean draws with an accusation:",
        cell(figures["clean draws with an accusation"]),
        figures["sets with an accusation"],
    )  # type: ignore[arg-type]
    for name, share in figures["shuffled"].items():  # type: ignore[attr-defined]
        print(f"shuffled labels, {name}: {cell(share)}")
    print(
        {key: value for key, value in figures.items() if "over sets" in key},
        {k: v for k, v in figures["all"].items() if "over" in k},
    )  # type: ignore[attr-defined]


def commit() -> str:
    """That of the code under test."""
    folder = Path(tokensieve.__file__).parent
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True
    ).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--name", required=True, help="of the figures, in results/fresh.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument(
        "--tables",
        action="store_true",
        help="store and show the figures of what was run under this name",
    )
    options = parser.parse_args()
    folder = CACHE / "audits" / options.name
    folder.mkdir(parents=True, exist_ok=True)
    if not options.tables:
        for seed in options.seeds:
            for name in options.sets:
                path = folder / f"{name}-{seed}.json"
                if not path.exists():  # what was run once is not run again
                    began, rows = time.process_time(), rows_of(name, seed)
                    path.write_text(
                        json.dumps({"commit": commit(), "rows": rows}, ensure_ascii=False),
                        encoding="utf-8",
                    )
                    print(
                        f"{name}, seed {seed}: {time.process_time() - began:.0f} processor seconds",
                        flush=True,
                    )
        return
    parts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    rows = [row for part in parts for row in part["rows"]]
    stored = (
        json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"figures": {}}
    )
    figures = figures_of(rows)
    about = {
        "commits": sorted({part["commit"] for part in parts}),
        "machine": described("polars"),
        "audits": len(rows),
    }
    stored["command"] = "python benchmarks/fresh.py --name NAME, then with --tables"
    stored["figures"][options.name] = about | {"tables": figures, "rows": rows}
    RESULTS.write_text(json.dumps(stored, indent=1, ensure_ascii=False), encoding="utf-8")
    shown_tables(figures)


if __name__ == "__main__":
    main()
