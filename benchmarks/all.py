"""Every benchmark, one after the other, into one Markdown file.

    python benchmarks/all.py [--only NAME …] [--out FILE]      (or: make bench-all)

Each is a process of its own, run as its command says; what it prints becomes its section. The file
is written after each, and a section of an earlier run stays until its benchmark is run again, so
`--only` renews a part. Hours on two cores; nothing else should run meanwhile. Needs the extra
`bench` and the data (machine.py). What is published is chosen from it by hand: docs/benchmarks.md.
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
    "tokens": ("Text into counts", "main_job.py tokens"),
    "classify": ("Text classification beside other classifiers", "peers.py classify"),
    "auditors": ("Auditing beside cleanlab", "peers.py audit"),
    "release": ("This version beside the last release", "release.py"),
    "labels": ("Wrong labels beside cleanlab", "labels.py"),
    "defaults": (
        "Text classification: ours at defaults, alone",
        "peers.py classify --methods 'ours, defaults'",
    ),
    "audit": ("The whole audit", "main_job.py audit"),
    "gradient": ("The exact gradient in E, p and v", "gradient.py"),
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
    "predict": ("Documents answered per second", "scale.py predict --ngrams 2"),
    "fidelity": ("A transformer's words beside captum and shap", "diagnose.py fidelity"),
    "curve": ("Checkpoints of a transformer", "diagnose.py curve"),
    "speed": ("Documents a second of a diagnosis", "diagnose.py speed"),
}


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
    parser.add_argument("--out", type=Path, default=Path("benchmarks.md"))
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
            f"## {title} (tokensieve {__version__})\n\n`python benchmarks/{command}`, "
            f"{seconds:,.0f} s\n\n{said}"
        )
        ordered = [title for title, _ in JOBS.values() if title in found]
        text = "\n".join(["# Benchmarks\n", *(f"{found[title]}\n" for title in ordered)])
        options.out.write_text(text, encoding="utf-8")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; their sections are as they were")


if __name__ == "__main__":
    main()
