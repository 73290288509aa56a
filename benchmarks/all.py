"""Every benchmark, one after the other, into one Markdown file.

    python benchmarks/all.py [--only NAME …] [--out docs/benchmarks.md]      (or: make bench-all)

Each is a process of its own, run as its command says; what it prints becomes its section. The file is written after each, and a
section of an earlier run stays until its benchmark is run again, so `--only` renews a part. An hour on two cores; nothing else
should run meanwhile. Needs the extra `bench` and the data (machine.py).
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path

from machine import described, store
from tokensieve import __version__

HERE = Path(__file__).resolve().parent
JOBS = {
    "start": ("A quick start", "start.py"),
    "busy": ("Training beside other processes", "busy.py"),
    "tokens": ("Text into counts", "main_job.py tokens"),
    "classify": ("Text classification beside other classifiers", "peers.py classify"),
    "auditors": ("Auditing beside scattertext and cleanlab", "peers.py audit"),
    "release": ("This version beside the last release", "release.py"),
    "profile": ("How long an audit takes", "profile_audit.py"),
    "calibration": ("Log loss and calibration with few and with many documents", "calibration.py"),
    "labels": ("Wrong labels beside cleanlab", "labels.py"),
    "defaults": (
        "Text classification: ours at defaults, alone",
        "peers.py classify --methods 'ours, defaults'",
    ),
    "pairs": ("Preference pairs beside what one would write oneself", "pairs.py"),
    "audit": ("The whole audit", "main_job.py audit"),
    "gradient": ("The exact gradient in E, p and v", "gradient.py"),
    "adam": ("Full-batch Adam on E and p", "training.py --documents 600"),
    "importance": (
        "Importance of a trained classifier's tokens beside captum and shap",
        "importance.py",
    ),
    "intervals": ("Coverage of intervals, and false discoveries", "intervals.py"),
    "margin": ("The max-margin problem beside a dense formulation", "peers.py margin --seconds 60"),
    "documents": ("Growth with documents", "scale.py growth --most 7"),
    "vocabulary": ("Growth with the vocabulary", "scale.py types --most 7"),
    "text": ("Raw text to a model, in memory and streamed", "scale.py text --most 6"),
    "larger": ("A file larger than the memory allowed", "scale.py larger"),
    "spill": ("Document frequencies that go to files", "scale.py spill"),
    "cluster": ("One process and four Dask workers", "averaging.py --ngrams 2"),
    "predict": ("Documents answered per second", "scale.py predict --ngrams 2"),
    "fidelity": ("A transformer's words beside captum and shap", "diagnose.py fidelity"),
    "curve": ("Checkpoints of a transformer", "diagnose.py curve"),
    "speed": ("Documents a second of a diagnosis", "diagnose.py speed"),
}
HEADING = """# Benchmarks

Every figure on this page was measured with the version in its heading. Figures of [earlier versions](benchmarks-archive.md) are
kept on a page of their own.

`make bench-all` runs everything: hours on a quiet machine. `make bench` takes minutes: it compares this version with the last
release and fails where a command became more than 15% slower. Each script of `benchmarks/` also runs alone and prints a table with
the version, the machine and the date; `benchmarks/results/` keeps the figures. Sides that are compared were run in turns, never at
the same time; figures are medians, with ranges in brackets.

<!-- not run: minutes, and the peers -->
```sh
python benchmarks/peers.py classify
python benchmarks/release.py
python benchmarks/all.py --only gradient predict
```
"""


def sections(path: Path) -> dict[str, str]:
    """Title → text of an earlier run's file."""
    if not path.exists():
        return {}
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.split(" (tokensieve", 1)[0]: "## " + part.strip() for part in parts}


def spaced(text: str) -> str:
    """A blank line before and after each table, as Markdown wants it."""
    out: list[str] = []
    for line in text.splitlines():
        if out and out[-1] and line and line.startswith("|") != out[-1].startswith("|"):
            out.append("")
        out.append(line)
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "benchmarks.md")
    options = parser.parse_args()
    found, failed = sections(options.out), []
    for name in options.only:
        title, command = JOBS[name]
        script, *arguments = shlex.split(command)
        print(f"{name}: {command}", flush=True)
        start = time.perf_counter()
        worker = subprocess.Popen(
            [sys.executable, HERE / script, *arguments], stdout=subprocess.PIPE, text=True
        )
        lines = []
        for line in worker.stdout or ():
            lines.append(line)
            print(line, end="", flush=True)
        seconds, said = time.perf_counter() - start, "".join(lines).strip()
        figures = {
            "benchmark": f"python benchmarks/{command}",
            "seconds": seconds,
            "status": worker.wait(),
            "output": said,
        }
        store(f"all-{name}", figures, described())
        if worker.wait():
            failed.append(name)
            continue
        said = (
            spaced(said) if "|---|" in said else f"```\n{said}\n```"
        )  # a table is Markdown already
        found[title] = (
            f"## {title} (tokensieve {__version__})\n\n`python benchmarks/{command}`, {seconds:,.0f} s\n\n{said}"
        )
        ordered = [title for title, _ in JOBS.values() if title in found]
        text = "\n".join([HEADING, *(f"{found[title]}\n" for title in ordered)])
        options.out.write_text(text, encoding="utf-8")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; their sections are as they were")


if __name__ == "__main__":
    main()
