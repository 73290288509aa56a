"""Hostile files, options, environments and moments, drawn by seed, against the command line as people start it.

    python benchmarks/attacks.py --seeds 1 2 [--each 4] [--kinds bombs names] [--only packed] [--keep]

Each case is made in a folder of its own, beside a small data set and two saved audits, and is one process with a limit on its
time. Every family of a kind is drawn `--each` times from each seed. A case **falls short** unless all of this holds:

- the exit status is 0, 2 or 3, or one that belongs to the signal or limit that the case sets;
- standard error is at most two lines of up to 700 characters, one of them begins with "tokensieve:" if the status is 2, and there
  is no trace of Python or Rust;
- no control character and no mark that turns the direction of writing reaches the terminal;
- memory stays below 1.3 GB and processor time below 40 s, unless SECURITY.md states another limit for that kind of file;
- no temporary file is left, all other files of the folder are what they were, and a written result fits its checksums;
- pages contain no foreign markup, tables no formula, and the card no front matter that came from the data.

`results/attacks.json` keeps the table by kind, and each case with its status, CPU seconds and peak memory, beside those of
other kinds and seeds that were run before. To try what an
ordinary user may do, start it as root with a Python that the user nobody can run.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from random import Random

from attack_cases import KINDS, Case
from hostile import GB

NOBODY = 65534
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
PROGRAM = [sys.executable, "-m", "tokensieve"]
KILLED = (128 + signal.SIGKILL, 128 + signal.SIGQUIT)


def nobody_can() -> bool:
    command = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        *PROGRAM,
        "--version",
    ]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


def make(folder: Path, case: Case) -> list[str]:
    """The arguments; the files are made in a process of its own, whose memory is not the program's."""
    answer = folder.parent / "arguments"
    child = os.fork()
    if not child:
        try:
            os.chdir(folder)
            answer.write_bytes(pickle.dumps(list(case.make())))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{case.name} could not be made")
    return pickle.loads(answer.read_bytes())


def state(folder: Path, target: str) -> dict[str, str]:
    """Small files and their digests, but those that the command may replace."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        ours = name.split("/")[0] == (target.split("/")[0] or "o")
        if ours or path.is_symlink() or not path.is_file() or path.stat().st_size > 10**6:
            continue
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def resident(pid: int) -> int:
    """Bytes in memory of a process and its children."""
    with suppress(OSError, ValueError, IndexError):
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return own + sum(resident(int(child)) for child in children)
    return 0


def start(
    case: Case, arguments: list[str], folder: Path, out: int, err: int
) -> subprocess.Popen[bytes]:
    def prepare() -> None:
        for name, most in {"CPU": 150, "CORE": 0, "FSIZE": 30 * GB, **case.limits}.items():
            resource.setrlimit(
                getattr(resource, f"RLIMIT_{name}"), (most, most + 5 * (name == "CPU"))
            )
        if case.as_nobody:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    command = [*PROGRAM, *arguments]
    if case.shell:
        program = case.shell.replace("{}", f'{sys.executable} -m tokensieve "$@"')
        command = ["bash", "-o", "pipefail", "-c", program, "bash", *arguments]
    own = {
        "TMPDIR": str(folder.parent / "tmp"),
        "NUMBA_CACHE_DIR": f"/tmp/attack-kernels-{case.as_nobody:d}",
    }
    environment = {
        name: value
        for name, value in (os.environ | own | case.environment).items()
        if value is not None
    }
    streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
    return subprocess.Popen(
        command, cwd=folder, env=environment, preexec_fn=prepare, process_group=0, **streams
    )


def foreign(folder: Path) -> list[str]:
    """What came from the data and is active in a page, a table or the card."""
    for path in folder.glob("o/**/*"):
        text = (
            path.read_text(errors="replace")
            if path.is_file() and path.suffix in (".html", ".md", ".csv")
            else ""
        )
        if path.suffix != ".csv" and ("<script>alert(1)" in text or "<img src=x onerror" in text):
            return [f"{path.name} contains foreign markup"]
        if path.suffix == ".md" and (
            "](javascript:" in text or re.search("(?m)^license: evil", text)
        ):
            return [f"{path.name} contains a foreign link or front matter"]
        for cell in itertools.chain.from_iterable(
            csv.reader(text.splitlines()) if path.suffix == ".csv" else ()
        ):
            number = re.fullmatch(
                r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", cell, re.IGNORECASE
            )
            if re.match(r"[=+\-@\t\r]", cell) and not number:
                return [f"{path.name} contains the formula {cell[:30]!r}"]
    return []


def faults(
    case: Case, status: int, out: str, err: str, folder: Path, before: dict[str, str]
) -> list[str]:
    """In what the ended process falls short, but for memory and time."""
    found, lines = [], err.splitlines()
    if status not in case.statuses:
        found.append(f"status {status}")
    traces = (
        re.search("Traceback|panicked|unexpected [A-Z]", err)
        or max(map(len, lines), default=0) > 700
    )
    if status != 1 and (traces or len(lines) > 2):  # with status 1 Python itself may not start
        found.append(f"{len(lines)} lines of errors, or a trace")
    if (
        status == 2
        and "2>" not in case.shell
        and not any(line.startswith("tokensieve: ") for line in lines)
    ):
        found.append("no message")
    if STEERING.search(out) or STEERING.search(err):
        found.append("control characters")
    left = [path.name for path in (folder.parent / "tmp").iterdir()]
    if (
        case.change and status in KILLED
    ):  # what lies in the folder is put right by the next run that writes there
        left = []
        again = [
            *PROGRAM,
            "audit",
            "good.csv",
            "--out",
            case.target,
            "-q",
            "--no-baseline",
            "--no-pictures",
        ]
        subprocess.run(again, cwd=folder, check=True)
    left += [] if case.leaves else [path.name for path in folder.glob("*/.tokensieve-*")]
    found += [f"left {', '.join(left[:3])}"] * bool(left)
    after = state(folder, case.target)
    lost = [name for name, digest in before.items() if after.get(name) != digest]
    found += [f"lost {', '.join(lost[:3])}"] * bool(lost)
    for result in {"o", case.target} if status != 2 and not case.leaves else ():
        if (folder / result / "SHA256SUMS").is_file() and result:
            check = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
            done = subprocess.run(check, cwd=folder / result, capture_output=True, text=True)
            found += [f"{result} is mixed: {done.stdout[:80]}"] * bool(done.returncode)
    return found + foreign(folder)


def tried(case: Case, made: Path, keep: bool) -> dict[str, object]:
    """Run one case and judge it."""
    root = Path(tempfile.mkdtemp(prefix="attack-"))
    folder = root / "here"
    shutil.copytree(made, folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "precious.csv").write_text("mine")
    (root / "tmp").mkdir()
    for path in (root, root / "tmp", *[folder, *folder.rglob("*")] * case.as_nobody):
        path.chmod(0o777 if path.is_dir() else 0o666)
    arguments = make(folder, case)
    before, began, short = state(folder, case.target), time.monotonic(), list[str]()
    change_at = began + case.after if case.change else float("inf")
    with open(root / "out", "wb") as out, open(root / "err", "wb") as err:
        process = start(case, arguments, folder, out.fileno(), err.fileno())
    while not (found := os.wait4(process.pid, os.WNOHANG))[0]:
        if time.monotonic() > change_at:
            change_at = float("inf")
            with suppress(OSError):
                case.change(process)
                before = state(folder, case.target)
        if time.monotonic() > began + 300 or resident(process.pid) > 7 * GB:
            short = ["did not end, or took over 7 GB"]
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.02)
    _, code, usage = found
    process.returncode = os.waitstatus_to_exitcode(code)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # what a pipe has left
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    said, erred = ((root / name).read_text(errors="surrogateescape") for name in ("out", "err"))
    short = short or faults(case, status, said, erred, folder, before)
    spent, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    short += [f"{peak / GB:.1f} GB"] * (peak > case.memory) + [f"{spent:.0f} s"] * (
        spent > case.seconds
    )
    if not keep:
        subprocess.run(["chmod", "-R", "u+rwX", root], capture_output=True)
        shutil.rmtree(root, ignore_errors=True)
    name, message = STEERING.sub("?", case.name), STEERING.sub("?", erred.strip()[-300:])
    figures = {"status": status, "seconds": round(spent, 1), "megabytes": peak // 10**6}
    return {"case": name, "short": short, **figures} | ({"message": message} if short else {})


def table(results: list[dict[str, object]]) -> list[dict[str, object]]:
    """By kind: cases tried, how many fell short, and the most seconds and megabytes of one."""
    rows = []
    for kind in dict.fromkeys(result["kind"] for result in results):
        some = [result for result in results if result["kind"] == kind]
        rows.append(
            {
                "kind": kind,
                "tried": len(some),
                "short": sum(bool(result["short"]) for result in some),
            }
        )
        rows[-1] |= {
            name: max(result[name] for result in some) for name in ("seconds", "megabytes")
        }
    return rows


def store(results: list[dict[str, object]]) -> None:
    """Put the cases beside those of other kinds and seeds that are kept."""
    import machine

    path = Path(__file__).parent / "results" / "attacks.json"
    kept = json.loads(path.read_text())["figures"]["cases"] if path.exists() else []
    new = {(result["kind"], result["seed"]) for result in results}
    cases = [case for case in kept if (case["kind"], case["seed"]) not in new] + results
    seeds = {
        seed: table([case for case in cases if case["seed"] == seed])
        for seed in sorted({c["seed"] for c in cases})
    }
    figures = {"all": table(cases), "seeds": seeds, "cases": cases}
    machine.store("attacks", figures, machine.described("polars", "tokenizers"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--each", type=int, default=4, help="draws of every family for each seed")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument(
        "--only", default="", help="families or cases whose name contains this; nothing is stored"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    how = parser.parse_args()
    made, ordinary, results = (
        Path(tempfile.mkdtemp(prefix="attack-made-")),
        nobody_can(),
        list[dict[str, object]](),
    )
    if not ordinary:
        print(
            "the user nobody cannot run this program: cases meant for it run as the user of this process"
        )
    program = f"import sys, pathlib; sys.path[:0] = {sys.path[:2]}; from test_loaders import make"
    subprocess.run(
        [sys.executable, "-c", f"{program}; make(pathlib.Path({str(made)!r}))"], check=True
    )
    for seed, kind in itertools.product(how.seeds, how.kinds):
        draws = [
            (name, draw, i)
            for name, (draw, times) in KINDS[kind].items()
            for i in range(how.each * times)
        ]
        for name, draw, i in draws:
            case = draw(Random(f"{name} {seed} {i}"))
            if how.only in name or how.only in case.name:
                object.__setattr__(case, "as_nobody", case.as_nobody and ordinary)
                results.append(
                    {"kind": kind, "seed": seed, "family": name, **tried(case, made, how.keep)}
                )
                print(
                    "SHORT" if results[-1]["short"] else "ok",
                    *list(results[-1].values())[1:],
                    flush=True,
                )
        if not how.only:
            store(results)
    shutil.rmtree(made)
    for row in table(results):
        print(*row.values(), sep="\t")


if __name__ == "__main__":
    main()
