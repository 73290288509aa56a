"""How fast and how light: every row that was asked of this version, measured beside its peer.

    python benchmarks/speed.py all [--minutes 14] [--runs 5] [--peers PYTHON] [--before FOLDER]
                                   [--only NAME …] [--again]
    python benchmarks/speed.py table [--name speed]

`all` measures and writes the table between the two marks in docs/benchmarks.md. `run` only
measures, `table` only writes.

Every process is timed from its start to its end. In each round every row's sides run once, in
turns; rounds go on until each row has --runs of them, or until no row is left that would end within
--minutes. After each row of a round benchmarks/results/speed.json is written. Called again for the
same commit and machine, it goes on where it stopped (--again: anew). --peers names a Python that
has vowpalwabbit and fasttext; without them their sides are left out. --before names the source
folder of an earlier version, which is then measured in the same turns.

Wall seconds are what was asked; the seconds of all processors stand beside them, because a machine
that does other work disturbs them less. Code that Numba compiles and byte code are kept, as an
installation has them after a first start; only the row about the first start begins without.
Vowpal Wabbit's and fastText's seconds begin after their imports, ours before. Data: see machine.py.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from machine import BYTE_CODE, DATA, described, store

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results")
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN = "<!-- speed: begin -->"
END = "<!-- speed: end -->"
GIB = 2**30
MIB = 2**20

IMDB = [str(DATA / "imdb_train.parquet"), "--test", str(DATA / "imdb_test.parquet")]
SNLI = [str(DATA / "snli_train.parquet"), "--test", str(DATA / "snli_test.parquet")]
ONE_COLUMN = [*SNLI, "--text", "hypothesis"]
TWO_COLUMNS = [*SNLI, "--text", "premise", "--text", "hypothesis"]
BANKING = [str(DATA / "banking.parquet"), "--text", "text", "--label", "label"]
PREFERENCES = [
    str(DATA / "preferences.parquet"),
    *("--pairs", "chosen,rejected", "--by", "prompt"),
]
FIT_100_TEXTS = """
import tokensieve
reviews = tokensieve.demo_reviews(100)
tokensieve.AttentionClassifier().fit(reviews.texts, reviews.labels)
"""


@dataclass(frozen=True)
class Run:
    """One run of one side: wall seconds, seconds of all processors, the largest memory of one of
    its processes in bytes, and the test accuracy where there is one."""

    wall: float
    processor: float
    memory: float
    accuracy: float | None = None


@dataclass(frozen=True)
class Versions:
    """What is measured: the sources of this version, the Python of the peers, and a folder for
    everything that is written."""

    source: Path
    peers: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of a process of ours: this source, byte code and compiled code kept in a folder of its
        own."""
        kernels = {"NUMBA_CACHE_DIR": str(self.folder / "kernels")}
        return os.environ | BYTE_CODE | kernels | {"PYTHONPATH": str(self.source)}


Side = Callable[[Versions], Run]
Measured = tuple[Side, Versions]


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        sides: name → one measured run; the first is judged.
        asked: the largest value allowed.
        unit: of the value: "times" the second side's wall seconds, "s", "GiB" or "MiB".
        peer: the module of the second side's program; "" if both sides are ours.
    """

    what: str
    sides: dict[str, Side]
    asked: float
    unit: str
    peer: str = ""


def measured(command: list[str], environment: dict[str, str]) -> Run:
    """Run a command to its end."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    messages = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{messages}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0)


def ours(*arguments: str) -> Side:
    """A command of tokensieve that writes a folder; its summary has the accuracy."""

    def run(versions: Versions) -> Run:
        out = versions.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        words = [argument.replace("FOLDER", str(versions.folder)) for argument in arguments]
        command = [sys.executable, "-m", "tokensieve", *words, "--out", str(out), "-q"]
        taken = measured(command, versions.environment)
        summary = out / "summary.json"
        accuracy = None
        if summary.exists():
            accuracy = json.loads(summary.read_text()).get("test_accuracy")
        return Run(taken.wall, taken.processor, taken.memory, accuracy)

    return run


def without_compiled_code(side: Side) -> Side:
    """The same in a folder where nothing has been compiled yet, as after an installation."""

    def run(versions: Versions) -> Run:
        with tempfile.TemporaryDirectory() as folder:
            return side(Versions(versions.source, versions.peers, Path(folder)))

    return run


def fitted_classifier(versions: Versions) -> Run:
    """From the start of Python to a classifier of 100 texts."""
    return measured([sys.executable, "-c", FIT_100_TEXTS], versions.environment)


def peer(method: str, ngrams: int) -> Side:
    """A method of peers.py on IMDB, from the Parquet files to the predictions, with the setting
    that was chosen for it (results/peers-classify.json)."""
    script = str(Path(__file__).with_name("peers.py"))
    stored = json.loads((RESULTS / "peers-classify.json").read_text())["figures"]
    same = (
        row
        for row in stored
        if (row["data"], row["ngrams"], row["method"]) == ("imdb", ngrams, method)
    )
    setting = next(same)["setting"]

    def run(versions: Versions) -> Run:
        words = ["one", "--data", "imdb", "--ngrams", str(ngrams), "--method", method]
        command = [versions.peers, script, *words, "--setting", json.dumps(setting)]
        environment = os.environ | BYTE_CODE | {"PYTHONPATH": str(versions.source)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended:\n{done.stderr}")
        told = json.loads(done.stdout.splitlines()[-1])
        return Run(told["seconds"], told["processor"], told["gigabytes"] * 1e9, told["accuracy"])

    return run


def installed(versions: Versions) -> Run:
    """The size of a fresh installation of this version, as `memory`, and the number of its
    packages, as `accuracy` (neither takes part in the seconds)."""
    root = versions.source.parent
    with tempfile.TemporaryDirectory() as temporary:
        checkout = Path(temporary) / "checkout"  # a copy, as building leaves files in it
        shutil.copytree(versions.source, checkout / "src")
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(root / name, checkout / name)
        target = Path(temporary) / "target"
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(target)]
        taken = measured([*command, str(checkout)], dict(os.environ))
        files = (path for path in target.rglob("*") if path.is_file())
        size = float(sum(path.stat().st_size for path in files))
        packages = len(list(target.glob("*.dist-info")))
    return Run(taken.wall, taken.processor, size, float(packages))


def vowpal_row(ngrams: int, name: str) -> Row:
    """Training on IMDB beside Vowpal Wabbit's five passes."""
    sides = {
        "tokensieve": ours("train", *IMDB, "--ngrams", str(ngrams)),
        "Vowpal Wabbit": peer("Vowpal Wabbit, defaults", ngrams),
    }
    what = f"`train` IMDB, {name} / Vowpal Wabbit, five passes"
    return Row(what, sides, 0.7, "times", "vowpalwabbit")


AUDIT_BIGRAMS = ours("audit", *IMDB, "--ngrams", "2")
DEMO = ours("demo")
ROWS: dict[str, Row] = {
    "vowpal-1": vowpal_row(1, "words"),
    "vowpal-2": vowpal_row(2, "bigrams"),
    "vowpal-3": vowpal_row(3, "trigrams"),
    "fasttext": Row(
        "`audit` IMDB, bigrams / fastText, setting chosen",
        {"tokensieve": AUDIT_BIGRAMS, "fastText": peer("fastText, best", 2)},
        0.6,
        "times",
        "fasttext",
    ),
    "memory": Row(
        "peak memory of `audit` IMDB, bigrams", {"tokensieve": AUDIT_BIGRAMS}, 1.0, "GiB"
    ),
    "audit-2000": Row(
        "`audit` of 2,000 reviews; page, controls and order included",
        {"tokensieve": ours("audit", "FOLDER/reviews.parquet")},
        2.0,
        "s",
    ),
    "columns-train": Row(
        "`train` SNLI, two columns / one",
        {"two": ours("train", *TWO_COLUMNS), "one": ours("train", *ONE_COLUMN)},
        1.3,
        "times",
    ),
    "columns-audit": Row(
        "`audit` SNLI, two columns / one",
        {"two": ours("audit", *TWO_COLUMNS), "one": ours("audit", *ONE_COLUMN)},
        1.3,
        "times",
    ),
    "first-start": Row(
        "first `demo` ever / a later one",
        {"first": without_compiled_code(DEMO), "later": DEMO},
        1.5,
        "times",
    ),
    "classifier": Row(
        "`import tokensieve` to a fitted classifier on 100 texts, a process of its own",
        {"tokensieve": fitted_classifier},
        1.5,
        "s",
    ),
    "classifier-first": Row(
        "the same before anything was compiled",
        {"tokensieve": without_compiled_code(fitted_classifier)},
        1.5,
        "s",
    ),
    "preferences": Row(
        "`audit` of 8,175 preference pairs, page included",
        {"tokensieve": ours("audit", *PREFERENCES)},
        3.0,
        "s",
    ),
    "banking": Row(
        "`audit` of banking, 13,083 short texts in 77 classes, page included",
        {"tokensieve": ours("audit", *BANKING)},
        5.0,
        "s",
    ),
    "installed": Row("installed size, default", {"tokensieve": installed}, 700.0, "MiB"),
}
ONCE = {"installed"}  # a second installation has the same size


def warm_up(versions: Versions) -> None:
    """Compile what the rows need, once, with few documents; nothing of it is counted."""
    reviews = pl.read_parquet(DATA / "imdb_train.parquet")
    reviews = reviews.gather_every(reviews.height // 2000).head(2000)
    reviews.write_parquet(versions.folder / "reviews.parquet")
    pairs = pl.read_parquet(DATA / "preferences.parquet").head(500)
    pairs.write_parquet(versions.folder / "pairs.parquet")
    sentences = pl.read_parquet(DATA / "snli_train.parquet").head(2000)
    sentences.write_parquet(versions.folder / "sentences.parquet")
    two = ["FOLDER/sentences.parquet", "--text", "premise", "--text", "hypothesis"]
    jobs = [
        ours("audit", "FOLDER/reviews.parquet", "--ngrams", "3"),
        ours("audit", "FOLDER/reviews.parquet"),
        ours("audit", "FOLDER/pairs.parquet", *PREFERENCES[1:]),
        ours("audit", *two),
        DEMO,
        fitted_classifier,
    ]
    for job in jobs:
        job(versions)


@dataclass
class Session:
    """A file of results that grows row by row."""

    name: str
    machine: str
    commit: str
    rows: dict[str, Any] = field(default_factory=dict)

    def resume(self) -> None:
        """Take over the rows that were measured of the same commit on the same machine."""
        path = RESULTS / f"{self.name}.json"
        if not path.exists():
            return
        kept = json.loads(path.read_text())
        figures = kept["figures"]
        if figures["commit"] == self.commit and kept["machine"] == self.machine:
            self.rows = figures["rows"]

    def runs_of(self, name: str) -> dict[str, list[Run]]:
        """What was measured of a row so far; nothing of a row that is new."""
        stored = self.rows.get(name, {"runs": {}})["runs"]
        return {side: [Run(**one) for one in runs] for side, runs in stored.items()}

    def n_runs(self, name: str) -> int:
        """How many rounds a row has had."""
        return min(map(len, self.runs_of(name).values()), default=0)

    def seconds_of_round(self, name: str) -> float:
        """How long a further round takes, judging by the longest so far; 0 of a new row."""
        return sum(max(run.wall for run in runs) for runs in self.runs_of(name).values())

    def add(self, name: str, row: Row, round_of_row: dict[str, Run]) -> None:
        """Store a further round of a row."""
        runs = self.runs_of(name)
        for side, one in round_of_row.items():
            runs.setdefault(side, []).append(one)
        self.rows[name] = {
            "what": row.what,
            "asked": row.asked,
            "unit": row.unit,
            "value": judged(row, runs),
            "load": round(os.getloadavg()[0], 2),
            "runs": {side: [asdict(run) for run in of] for side, of in runs.items()},
        }
        store(self.name, {"commit": self.commit, "rows": self.rows}, self.machine)


def median(runs: list[Run], quantity: str) -> float:
    """The median of wall, processor or memory."""
    return statistics.median(getattr(run, quantity) for run in runs)


def judged(row: Row, runs: dict[str, list[Run]]) -> float | None:
    """The row's value in its unit; None if the side that it is compared with was left out."""
    first, *others = runs.values()
    if row.unit == "s":
        return median(first, "wall")
    if row.unit == "GiB":
        return median(first, "memory") / GIB
    if row.unit == "MiB":
        return median(first, "memory") / MIB
    if not others:
        return None
    return median(first, "wall") / median(others[0], "wall")


def has_package(python: str, package: str) -> bool:
    """Whether a Python can import a package."""
    done = subprocess.run([python, "-c", f"import {package}"], capture_output=True)
    return done.returncode == 0


def commit() -> str:
    """The commit of this checkout, with a plus where files of the source were changed."""
    git = ["git", "-C", str(ROOT)]
    name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True)
    mark = "+" if changed.stdout.strip() else ""
    return name.stdout.strip() + mark


def versions_of_peers(python: str) -> str:
    """The names and versions of the peers that a Python has."""
    script = """
from importlib.metadata import PackageNotFoundError, version
for name in ("vowpalwabbit", "fasttext", "fasttext-wheel"):
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    return ", ".join(done.stdout.splitlines()) or "no peers"


def run(options: argparse.Namespace) -> None:
    """Measure round after round, until the rounds or the minutes are over."""
    end = time.monotonic() + 60 * options.minutes
    machine = f"{described('polars', 'numba')}, {versions_of_peers(options.peers)}"
    session = Session(options.name, machine, commit())
    if not options.again:
        session.resume()
    print(f"{machine}; commit {session.commit}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sources = {"": Versions(ROOT / "src", options.peers, folder / "now")}
        if options.before:
            before = Versions(options.before.resolve(), options.peers, folder / "before")
            sources["before: "] = before
        for versions in sources.values():
            versions.folder.mkdir()
            warm_up(versions)
        for n_before in range(options.runs):
            known: dict[Measured, Run] = {}
            for row_name in options.only:
                if session.n_runs(row_name) > n_before or (n_before and row_name in ONCE):
                    continue
                if time.monotonic() + session.seconds_of_round(row_name) > end:
                    print(f"{row_name}: no time left for round {n_before + 1}", flush=True)
                    continue
                row = ROWS[row_name]
                session.add(row_name, row, round_of(row, sources, known, n_before))
                print(line(session.rows[row_name]), flush=True)


def round_of(
    row: Row, sources: dict[str, Versions], known: dict[Measured, Run], number: int
) -> dict[str, Run]:
    """One run of every side, in odd rounds backwards.

    A row whose only side stands in an earlier row of the round, too, takes its run from there
    (`known`).
    """
    jobs: list[tuple[str, Side, Versions]] = []
    for prefix, versions in sources.items():
        for side_name, side in row.sides.items():
            is_peer = bool(row.peer) and side_name != "tokensieve"
            if is_peer and (prefix or not has_package(versions.peers, row.peer)):
                continue
            jobs.append((prefix + side_name, side, versions))
    is_known = len(row.sides) == 1
    results: dict[str, Run] = {}
    for name, side, versions in jobs[::-1] if number % 2 else jobs:
        if not is_known or (side, versions) not in known:
            known[side, versions] = side(versions)
        results[name] = known[side, versions]
    return {name: results[name] for name, _, _ in jobs}


def line(row: dict[str, Any]) -> str:
    """A row of the Markdown table."""
    sides = []
    for name, runs in row["runs"].items():
        wall = [one["wall"] for one in runs]
        processor = statistics.median(one["processor"] for one in runs)
        memory = max(one["memory"] for one in runs) / GIB
        parts = [
            f"{statistics.median(wall):.2f} s ({min(wall):.2f} to {max(wall):.2f})",
            f"{processor:.2f} CPU s",
            f"{memory:.2f} GiB",
        ]
        accuracy = runs[0]["accuracy"]
        if row["unit"] == "MiB":
            parts = [f"{accuracy:.0f} packages"]
        elif accuracy is not None:
            parts.append(f"accuracy {accuracy:.4f}")
        sides.append(f"{name}: {', '.join(parts)}")
    unit = {"times": "", "s": " s", "GiB": " GiB", "MiB": " MiB"}[row["unit"]]
    digits = 0 if row["unit"] == "MiB" else 2
    value = "not measured" if row["value"] is None else f"{row['value']:.{digits}f}{unit}"
    if row["value"] is not None and row["value"] > row["asked"]:
        value = f"**{value}**"
    return f"| {row['what']} | {row['asked']:g}{unit} | {value} | {'; '.join(sides)} |"


def table(options: argparse.Namespace) -> None:
    """Write the table into docs/benchmarks.md."""
    stored = json.loads((RESULTS / f"{options.name}.json").read_text())
    rows = [stored["figures"]["rows"][key] for key in ROWS if key in stored["figures"]["rows"]]
    n_runs = [min(map(len, row["runs"].values())) for row in rows if row["unit"] != "MiB"]
    loads = [row["load"] for row in rows]
    heading = (
        f"`{stored['command']}`: medians of {min(n_runs)} to {max(n_runs)} rounds, in which the "
        "sides took turns, with ranges in parentheses; a value above what was asked is bold. "
        f"{stored['machine']}, commit {stored['figures']['commit']}, {min(loads):.1f} to "
        f"{max(loads):.1f} processes waiting or running (one of them is the measured one); "
        f"`benchmarks/results/{options.name}.json`."
    )
    lines = [BEGIN, heading, "", "| | asked at most | measured | sides |", "|---|---|---|---|"]
    lines += [*map(line, rows), END]
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE} lacks the marks {BEGIN} and {END}")
    PAGE.write_text(before + "\n".join(lines) + after, encoding="utf-8")
    print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("all", "run", "table"))
    parser.add_argument("--minutes", type=float, default=14.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, help="a Python that has the peers")
    parser.add_argument("--before", type=Path, help="source folder of an earlier version")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--again", action="store_true", help="measure rows that are stored, too")
    parser.add_argument("--name", default="speed", help="of the file in results/")
    options = parser.parse_args()
    if options.what in ("all", "run"):
        run(options)
    if options.what in ("all", "table"):
        table(options)


if __name__ == "__main__":
    main()
