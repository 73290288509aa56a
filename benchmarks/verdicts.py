"""How often our verdicts are wrong: sentences that people quote, on data whose truth is known.

    python benchmarks/verdicts.py             # an hour or two; writes docs/verdicts.md
    python benchmarks/verdicts.py --small     # generated reviews only, seconds; so the tests run it

For each verdict the data is made so that we know whether the sentence is true: labels are shuffled,
a mark is planted, labels are turned, documents are copied with an edit. The trials are in
`verdict_*.py`, one file for each group of verdicts; each counts how often one sentence was said,
and how often it was false. The sets (`verdict_data.REAL_SETS`) chose no threshold of the verdicts
measured on them, and neither did the planted marks, edits and turned labels (but the score of
artefacts was fitted on sms and tweets, with other marks).

Every outcome is kept in benchmarks/results/verdicts.jsonl as soon as it is known, and the command
goes on where an earlier one stopped. All outcomes of the file are of one state of the package: if
src/tokensieve has changed since, the command refuses to add to them, and `--fresh` begins anew.
`--page` writes the page of what is known so far, and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import verdict_audits
import verdict_changes
import verdict_copies
import verdict_diagnoses
import verdict_preferences
from machine import described
from tokensieve.evidence.intervals import Share
from verdict_data import GENERATED, REAL_SETS, Outcome, Verdict, generated, load

HOME = Path(__file__).resolve().parents[1]
PAGE = HOME / "docs" / "verdicts.md"
KEPT = HOME / "benchmarks" / "results" / "verdicts.jsonl"
PACKAGE = "src/tokensieve"
N_SEEDS = 6  # samples of each real set
# seeds below were seen while the sentences were written; nothing is reported on them
FIRST_SEED = 300
FIRST_GENERATED_SEED = 5000
MAX_ERROR = 0.05
VERDICTS = (
    *verdict_changes.VERDICTS,
    *verdict_audits.VERDICTS,
    *verdict_copies.VERDICTS,
    *verdict_preferences.VERDICTS,
    *verdict_diagnoses.VERDICTS,
)


# ---- what is measured


@dataclass(frozen=True)
class Task:
    """One measurement: a verdict on one set with one seed.

    Attributes:
        turn: from 0 to 1; tasks are done in this order, so that a stopped run has about the same
            part of every verdict.
    """

    verdict: Verdict
    set_name: str
    seed: int
    turn: float

    @property
    def key(self) -> str:
        """What identifies it among the kept outcomes."""
        return json.dumps([self.verdict.name, self.set_name, self.seed])

    def measure(self) -> Outcome:
        """Make the data and judge the sentences."""
        is_generated = self.set_name == GENERATED
        documents = generated(self.seed) if is_generated else load(self.set_name, self.seed)
        return self.verdict.trial(documents, self.seed)


def tasks(small: bool, n_seeds: int) -> list[Task]:
    """All measurements, in turn; those that share an audit follow each other."""
    every = []
    for verdict in VERDICTS:
        n_generated = 1 if small else verdict.n_generated
        every += [
            Task(verdict, GENERATED, FIRST_GENERATED_SEED + number, (number + 0.5) / n_generated)
            for number in range(n_generated)
        ]
        if verdict.on_real_sets and not small:
            every += [
                Task(verdict, name, FIRST_SEED + number, (number + 0.5) / n_seeds)
                for name in REAL_SETS
                for number in range(n_seeds)
            ]
    return sorted(every, key=lambda task: (task.turn, task.set_name))


def measured(
    every: Sequence[Task], known: dict[str, Outcome], trials: Sequence[str], keeps: bool
) -> None:
    """Add the outcomes that are not known yet; with `trials`, of these only."""
    for task in every:
        if task.key in known or (trials and task.verdict.name not in trials):
            continue
        outcome = task.measure()
        known[task.key] = outcome
        if keeps:
            _keep(task, outcome)
        print(f"{task.key}: {outcome.false} of {outcome.said}", file=sys.stderr, flush=True)


# ---- what is kept


def package_state() -> str:
    """The commit that changed the package last, marked if it has changed since."""
    commit = _git("log", "-1", "--format=%h", "--", PACKAGE)
    is_changed = bool(_git("status", "--porcelain", "--", PACKAGE))
    return f"{commit} with changes" if is_changed else commit


def _git(*words: str) -> str:
    command = ["git", "-C", str(HOME), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class Kept:
    """The outcomes of earlier runs.

    Attributes:
        by_key: key of the task → outcome.
        state: of the package that gave them; None if there are none.
        machine: on which they were measured.
    """

    by_key: dict[str, Outcome]
    state: str | None
    machine: str

    @classmethod
    def read(cls) -> Kept:
        """Read the file.

        Raises:
            SystemExit: its outcomes are of more than one state of the package.
        """
        lines = KEPT.read_text().splitlines() if KEPT.exists() else []
        rows = [json.loads(line) for line in lines]
        states = sorted({row["state"] for row in rows})
        if len(states) > 1:
            raise SystemExit(f"{KEPT} has outcomes of {' and '.join(states)}: begin with --fresh")
        outcomes = {row["key"]: Outcome(row["said"], row["false"]) for row in rows}
        machine = rows[-1]["on"] if rows else described()
        return cls(outcomes, states[0] if states else None, machine)


def _keep(task: Task, outcome: Outcome) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    row = {
        "key": task.key,
        "said": outcome.said,
        "false": outcome.false,
        "state": package_state(),
        "on": described("scikit-learn"),
    }
    with KEPT.open("a") as file:
        file.write(json.dumps(row) + "\n")


# ---- the page


@dataclass(frozen=True)
class Row:
    """A verdict and what was counted of it.

    Attributes:
        sets: names of the sets with a count.
        share: false ones among those said.
        by_set: the same of each set.
    """

    verdict: Verdict
    sets: tuple[str, ...]
    share: Share
    by_set: dict[str, Share]

    @classmethod
    def of(cls, verdict: Verdict, every: Sequence[Task], known: dict[str, Outcome]) -> Row:
        """Count the outcomes of a verdict."""
        said: dict[str, int] = {}
        false: dict[str, int] = {}
        for task in every:
            if task.verdict is verdict and task.key in known:
                name = task.set_name
                said[name] = said.get(name, 0) + known[task.key].said
                false[name] = false.get(name, 0) + known[task.key].false
        by_set = {name: Share.count(false[name], said[name]) for name in sorted(said)}
        share = Share.count(sum(false.values()), sum(said.values()))
        return cls(verdict, tuple(by_set), share, by_set)

    @property
    def rate(self) -> str:
        """The error rate, as the table says it."""
        if not self.sets:
            return "not measured"
        return _rate(self.share) if self.share.of else "never said"


def _rate(share: Share) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def page(rows: Sequence[Row], state: str, machine: str) -> str:
    """docs/verdicts.md."""
    lines = [
        "# How often our verdicts are wrong",
        "",
        "A sentence that people quote has an error rate. For each verdict, "
        "`benchmarks/verdicts.py` makes data whose truth is known and counts how often the "
        "sentence is false, on sets, marks and edits that chose none of its thresholds (but the "
        "score of shortcuts was fitted on sms and tweets with other marks, too). The interval is "
        "95% (Wilson).",
        "",
        "| the verdict | what makes it false | one count is | sets | counts | false | error rate |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.verdict.sentence} | {row.verdict.truth} | {row.verdict.counted} | "
        f"{', '.join(row.sets)} | {row.share.of:,} | {row.share.found:,} | {row.rate} |"
        for row in rows
    ]
    lines += [*_rows_of_planted_models(), "", *_notes(rows), ""]
    lines.append(
        f"All rows of audits, comparisons, `rank` and models of words were measured on one state "
        f"of the package, commit {state}, with `python benchmarks/verdicts.py` on {machine}. The "
        "last two rows are from `benchmarks/planted.py`. The tests run the same trials on "
        "generated reviews."
    )
    return "\n".join(lines) + "\n"


def _rows_of_planted_models() -> list[str]:
    """What `planted.py` counted of diagnoses of transformers, as rows of the same table."""
    path = KEPT.parent / "planted.json"
    if not path.exists():
        return []
    figures = json.loads(path.read_text())["figures"]
    missed = Share.count(figures["planted"] - figures["all"]["named"], figures["planted"])
    accused = Share.count(figures["clean asked"], figures["clean"])
    sentences = (
        (
            "A diagnosis of a transformer: No word, form or pattern dominates",
            "it relies on a planted mark",
            missed,
        ),
        (
            "A diagnosis of a transformer: This model relies on …, would you expect that?",
            "nothing was planted",
            accused,
        ),
    )
    return [
        f"| {sentence} | {truth} (`planted.py`) | model | models left out | {share.of} | "
        f"{share.found} | {_rate(share)} |"
        for sentence, truth, share in sentences
    ]


def _notes(rows: Sequence[Row]) -> list[str]:
    """What follows from the table: which verdicts are wrong too often, and what they then claim."""
    lines = ["## What follows from the table", ""]
    too_often = [row for row in rows if row.share.of and row.share.low > MAX_ERROR]
    open_rates = [
        row for row in rows if row.share.of and row.share.low <= MAX_ERROR < row.share.high
    ]
    if not too_often:
        lines.append(
            f"- No sentence of the upper rows is shown to be false more than {MAX_ERROR:.0%} of "
            "the time."
        )
    lines += [
        f"- “{row.verdict.sentence}” was false {row.share.found:,} of {row.share.of:,} times. "
        f"{CLAIMS.get(row.verdict.name, 'It must be reworded.')}"
        for row in too_often
    ]
    lines += [
        f"- Whether “{row.verdict.sentence}” is false more than {MAX_ERROR:.0%} of the time is "
        f"open: {row.share.found:,} of {row.share.of:,}. {CLAIMS.get(row.verdict.name, '')}".strip()
        for row in open_rates
    ]
    lines += [
        f"- By set, “{row.verdict.sentence}”: "
        + "; ".join(
            f"{name} {share.found:,} of {share.of:,}"
            for name, share in row.by_set.items()
            if share.of
        )
        + "."
        for row in rows
        if row.share.found
    ]
    return [*lines, *CHOICES]


# what a sentence that is often false is understood to say
CLAIMS = {
    "wrong_label_although_right": (
        "It is a statement about models; the row says how often the label was right after all."
    ),
    "not_learned_although_it_has": (
        "It says that evidence is missing, and gives the accuracy beside that of the largest class."
    ),
}
CHOICES = [
    "- Comparisons of accuracies are paired, document by document. `tests/evidence/test_paired.py` "
    "simulates the interval and the test.",
    "- The rule for near copies (one word added or removed from 6 words on, replaced or moved from "
    "15 words on, three-word sequences beyond) was chosen on the sets *hwu*, *finphrase*, *subj*, "
    "*mpqa*, *irony*, *germeval* and *emoji*, by how often their own texts fall under it. The rows "
    "above use other sets and other edits.",
]


# ---- the command


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="generated reviews only")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs measured")
    parser.add_argument(
        "--trials", nargs="+", default=(), metavar="NAME", help="measure only these"
    )
    parser.add_argument("--page", action="store_true", help="write what is known so far")
    options = parser.parse_args()
    every = tasks(options.small, options.seeds)
    if options.small:
        outcomes: dict[str, Outcome] = {}
        measured(every, outcomes, options.trials, keeps=False)
        print(page([Row.of(v, every, outcomes) for v in VERDICTS], package_state(), described()))
        return
    if options.fresh:
        KEPT.unlink(missing_ok=True)
    kept = Kept.read()
    if not options.page:
        if kept.state not in (None, package_state()):
            raise SystemExit(
                f"{KEPT} has outcomes of {kept.state}, and the package is {package_state()} now: "
                "begin anew with --fresh"
            )
        measured(every, kept.by_key, options.trials, keeps=True)
        kept = Kept.read()
    if kept.state is None:
        raise SystemExit(f"{KEPT} has no outcomes yet: measure some first")
    rows = [Row.of(verdict, every, kept.by_key) for verdict in VERDICTS]
    PAGE.write_text(page(rows, kept.state, kept.machine))


if __name__ == "__main__":
    main()
