"""How fast and how light: every row that was asked of this version, measured beside its peer.

    python benchmarks/speed.py run [--quick] [--runs 5] [--peers PYTHON] [--before FOLDER]
                                   [--only NAME …] [--again]
    python benchmarks/speed.py table [--name speed]

`run` measures each row's sides in turns, every one in a process of its own from its start to its
end, and keeps the row in benchmarks/results/speed.json as soon as it is complete. Called again for
the same commit and machine, it goes on with the rows that are not there yet (--again: all of them
anew). --quick runs everything once and begins no row after nine minutes; it keeps speed-quick.json.
--peers names a Python that has vowpalwabbit and fasttext; without them their sides are left out.
--before names the source folder of an earlier version, which is then measured in the same turns.

`table` writes the rows as a table between the two marks in docs/benchmarks.md.

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
QUICK_LIMIT = 540.0  # seconds after which --quick begins no further row: ten minutes with the last
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

    def keep(self, name: str, row: Row, runs: dict[str, list[Run]]) -> None:
        """Store a complete row."""
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


def run(options: argparse.Namespace) -> None:
    """Measure the rows that are lacking."""
    begun = time.monotonic()
    machine = described("polars", "numba", "vowpalwabbit", "fasttext-wheel")
    name = options.name or ("speed-quick" if options.quick else "speed")
    session = Session(name, machine, commit())
    if not options.again:
        session.resume()
    print(f"{machine}; commit {session.commit}", flush=True)
    n_runs = 1 if options.quick else options.runs
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        now = Versions(ROOT / "src", options.peers, folder / "now")
        sources = {"": now}
        if options.before:
            before = Versions(options.before.resolve(), options.peers, folder / "before")
            sources["before: "] = before
        for versions in sources.values():
            versions.folder.mkdir()
            warm_up(versions)
        known: dict[Measured, list[Run]] = {}
        for row_name in options.only:
            if row_name in session.rows:
                continue
            if options.quick and time.monotonic() - begun > QUICK_LIMIT:
                print(f"{row_name}: no time left for it with --quick", flush=True)
                continue
            row = ROWS[row_name]
            runs = runs_of(row, sources, 1 if row_name in ONCE else n_runs, known)
            session.keep(row_name, row, runs)
            print(line(session.rows[row_name]), flush=True)


def runs_of(
    row: Row, sources: dict[str, Versions], n_runs: int, known: dict[Measured, list[Run]]
) -> dict[str, list[Run]]:
    """Every side's runs, in turns, every other turn backwards.

    A row whose only side stands in an earlier row, too, takes its runs from there (`known`).
    """
    jobs: list[tuple[str, Side, Versions]] = []
    for prefix, versions in sources.items():
        for side_name, side in row.sides.items():
            is_peer = bool(row.peer) and side_name != "tokensieve"
            if is_peer and (prefix or not has_package(versions.peers, row.peer)):
                continue
            jobs.append((prefix + side_name, side, versions))
    if len(row.sides) == 1 and all((side, source) in known for _, side, source in jobs):
        return {name: known[side, source] for name, side, source in jobs}
    runs: dict[str, list[Run]] = {name: [] for name, _, _ in jobs}
    known |= {(side, source): runs[name] for name, side, source in jobs}
    for turn in range(n_runs):
        for name, side, versions in jobs if turn % 2 == 0 else jobs[::-1]:
            runs[name].append(side(versions))
    return runs


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
    name = options.name or "speed"
    stored = json.loads((RESULTS / f"{name}.json").read_text())
    rows = [stored["figures"]["rows"][key] for key in ROWS if key in stored["figures"]["rows"]]
    n_runs = max(len(runs) for row in rows for runs in row["runs"].values())
    heading = (
        f"`{stored['command']}`: medians of {n_runs} runs, in turns, with ranges in parentheses; a "
        f"value above what was asked is bold. {stored['machine']}, commit "
        f"{stored['figures']['commit']}; `benchmarks/results/{name}.json`."
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
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, help="a Python that has the peers")
    parser.add_argument("--before", type=Path, help="source folder of an earlier version")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--again", action="store_true", help="measure rows that are stored, too")
    parser.add_argument("--name", default="", help="of the file in results/")
    options = parser.parse_args()
    {"run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
