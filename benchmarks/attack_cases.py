"""The cases of `attacks.py`, by kind and family: each family draws one case from a seeded generator."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

import hostile
from hostile import GB, NAMES, NUMBERS, dumped, log_uniform, no_file

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / part) for part in ("", "cli")]
QUICK = ["-q", "--no-baseline", "--no-pictures"]
AUDIT = ["audit", "good.csv", "--out", "o", *QUICK]
DRAWN = [*AUDIT[:4], "--no-baseline"]  # with pictures, and shown
READERS = {
    "mask": ["mask", "good.csv", "--audit", "saved", "--out", "m.csv"],
    "compare": ["compare", "saved", "other", "--out", "o", "-q"],
    "predict": ["predict", "saved", "good.csv", "-q"],
    "explain": ["explain", "saved", "a good film"],
}


@dataclass(frozen=True)
class Case:
    """One process: `make` writes its files into the current folder and returns its arguments.

    Attributes:
        shell: a command line in which "{}" stands for the program, such as "yes | {}".
        limits: limits of the system for the process, by the name of the resource.
        after, change: seconds until something is done to the process or its files, and what.
        target: the file or folder that may be replaced.
        leaves: whether the case itself puts files of a run that was killed into its folder.
        memory, seconds: what it may use, bytes and seconds of processor.
    """

    name: str
    make: Callable[[], Sequence[str]]
    shell: str = ""
    environment: dict[str, str | None] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    as_nobody: bool = False
    after: float = 0.0
    change: Callable[[subprocess.Popen[bytes]], object] | None = None
    statuses: Sequence[int] = (0, 2, 3)
    target: str = "o"
    leaves: bool = False
    memory: float = 1.3 * GB
    seconds: float = 40


Family = Callable[[Random], Case]
KINDS: dict[
    str, dict[str, tuple[Family, int]]
] = {}  # kind → name of a family → what draws it, and how often


def attack(kind: str, name: str = "", times: int = 1) -> Callable[[Family], Family]:
    def keep(family: Family) -> Family:
        KINDS.setdefault(kind, {})[name or family.__name__] = family, times
        return family

    return keep


def with_file(name: str, write: Callable[[], object], arguments: list[str], **how: object) -> Case:
    def make() -> list[str]:
        write()
        return arguments

    return Case(name, make, **how)  # type: ignore[arg-type]


def write_rows(path: str, rows: Sequence[Sequence[object]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


# ---- 1 tokenizers


@attack("tokenizers", times=2)
def tokenizer_text(rng: Random) -> Case:
    kind, text = hostile.tokenizer(rng)

    def write() -> None:
        hostile.long_runs(rng)
        Path("t.json").write_text(text, errors="surrogatepass")

    return with_file(f"tokenizer: {kind}", write, [*AUDIT, "--tokenizer", "t.json"])


@attack("tokenizers")
def tokenizer_file(rng: Random) -> Case:
    name, write = no_file(rng, "t.json")
    return with_file(f"tokenizer is {name}", write, [*AUDIT, "--tokenizer", "t.json"])


@attack("tokenizers")
def tokenizer_of_model(rng: Random) -> Case:
    from test_loaders import replaced

    command, pattern = rng.choice(["predict", "explain"]), hostile.pattern(rng)

    def change(model: dict[str, object]) -> None:
        kept = model["tokenizer"]
        model["tokenizer"] = (
            {**kept, "pattern": pattern} if rng.random() < 0.5 else replaced(kept, rng)
        )

    return with_file(
        f"{command}: the model's tokenizer", partial(hostile.resigned, change), READERS[command]
    )


# ---- 2 mask


@attack("mask")
def masked_rows(rng: Random) -> Case:
    out, digits = (
        rng.choice(["m.csv", "m.tsv", "m.jsonl", "m.parquet"]),
        log_uniform(rng, 300, 6000),
    )
    depth, (left, right) = log_uniform(rng, 100, 6000), rng.choice([("[", "]"), ('{"a":', "}")])
    values = [
        "1" + "0" * digits,
        left * depth + "1" + right * depth,
        '[1, "a", null]',
        '"=cmd|x!A0"',
        *NUMBERS,
    ]
    values += ['"\\ud800"', '"\\u0000"']
    names = rng.sample([*NAMES, "", *map(str, range(2000))], log_uniform(rng, 1, 2000))
    row = {
        "text": '"a good \\u202e film"',
        "label": rng.choice(values),
        **{json.dumps(n)[1:-1]: "1" for n in names},
    }
    line = (
        "{"
        + ", ".join(f'"{key}": {value}' for key, value in (row | {"x": rng.choice(values)}).items())
        + "}\n"
    )
    arguments = ["mask", "s.jsonl", "--token", "good", "--text", "text", "--out", out, "-q"]
    write = partial(Path("s.jsonl").write_text, line * 3)
    return with_file(
        f"to {out}: {len(names)} columns, {line[-30:-1]}", write, arguments, target=out
    )


@attack("mask")
def decisions(rng: Random) -> Case:
    from test_loaders import replaced

    name, write = no_file(rng, "d.json")
    rows = [{"part": "train", "row": 1, "decision": "wrong label"}]
    good = {"tokensieve": "decisions", "version": 1, "tokens": {"good": "mask"}, "documents": rows}
    if rng.random() < 0.5:
        name, text = "changed", dumped(replaced(good, rng))
        write = partial(Path("d.json").write_text, text, errors="surrogatepass")
    arguments = ["mask", "good.csv", "--decisions", "d.json", "--out", "m.csv", "-q"]
    return with_file(f"decisions: {name}", write, arguments, target="m.csv")


# ---- 3 reading


@attack("readers")
def result_file(rng: Random) -> Case:
    file = rng.choice(
        "summary.json findings.json tokens.csv model.json model.safetensors SHA256SUMS".split()
    )
    command, unsigned = rng.choice(list(READERS)), file != "SHA256SUMS" and rng.random() < 0.7
    name, write = no_file(rng, f"saved/{file}")
    both = [Path("saved/SHA256SUMS").unlink, write] if unsigned else [write]
    large = 2.3 * GB  # as SECURITY.md says of files of brackets and of models
    make = lambda: [step() for step in both]  # noqa: E731
    return with_file(
        f"{command}: {file} is {name}", make, READERS[command], target="m.csv", memory=large
    )


@attack("readers")
def changed_result(rng: Random) -> Case:
    from test_loaders import changed

    file = rng.choice(
        "summary.json findings.json tokens.csv model.json model.safetensors table.json".split()
    )
    command = rng.choice(list(READERS))

    def write() -> None:
        changed(Path("saved", file), rng)
        hostile.resigned()

    return with_file(f"{command}: {file} changed", write, READERS[command], target="m.csv")


@attack("readers")
def odd_tensors(rng: Random) -> Case:
    content = hostile.tensors(rng)

    def write() -> None:
        Path("saved/model.safetensors").write_bytes(content)
        hostile.resigned()

    return with_file("predict: odd tensors", write, READERS["predict"])


@attack("readers")
def odd_sums(rng: Random) -> Case:
    names = [
        "../good.csv",
        "/etc/passwd",
        "a\0b",
        "c/c/x",
        "\x1b[2J\u202e",
        *(f"{'./' * i}tokens.csv" for i in range(99)),
    ]
    text = "".join(f"{'0' * 64}  {rng.choice(names)}\n" for _ in range(log_uniform(rng, 1, 10**6)))

    def write() -> None:
        os.symlink("c", "saved/c")
        Path("saved/SHA256SUMS").write_text(text)

    return with_file("compare: odd checksums", write, READERS["compare"])


@attack("readers")
def odd_source(rng: Random) -> Case:
    places = "/proc/kmsg /proc/self/mem /proc/kcore /proc/self/environ /proc/self/pagemap /dev/stdin /proc/self/fd/0"
    more = "/dev/full /dev/random /dev/tty /sys/kernel/notes s.csv s.jsonl s.json w.txt"
    place = rng.choice(f"{places} {more}".split())
    name, write = no_file(rng, place) if place[0] != "/" else ("", lambda: None)
    roles = [
        ["audit", place],
        ["audit", "good.csv", "--test", place],
        ["audit", "good.csv", "--stop-words", place],
    ]
    arguments = rng.choice(roles)
    return with_file(
        f"{' '.join(arguments)} {name}",
        write,
        [*arguments, *AUDIT[2:]],
        as_nobody=rng.random() < 0.5,
    )


# ---- 4 numbers


@attack("numbers")
def odd_number(rng: Random) -> Case:
    role, value = (
        rng.choice(["label", "text", "weight", "column", "date", "score"]),
        rng.choice(NUMBERS),
    )
    dates = "999999-01-01 0000-00-00 -5000-01-01 2024-13-45 9999999999999999-01-01".split()
    other = f'"{rng.choice(dates)}"' if role == "date" else value
    options = {
        "weight": ["--weight", "w"],
        "column": ["--columns", "w"],
        "date": ["--columns", "w"],
    }.get(role, [])
    options += (
        ["--pairs", "text,b", "--scores", "w,v"]
        if role == "score"
        else ["--text", "text", "--label", "label"]
    )

    def write() -> None:
        with open("s.jsonl", "w") as file:
            for i in range(40):
                row = {
                    "text": f'"a {("good", "bad")[i % 2]} film {i}"',
                    "label": f'"{"pn"[i % 2]}"',
                    "b": f'"b {i}"',
                }
                row |= {"v": "1", "w": other} | ({role: value} if i % 3 and role in row else {})
                file.write(
                    "{" + ", ".join(f'"{key}": {given}' for key, given in row.items()) + "}\n"
                )

    return with_file(f"{role} {other[:9]}", write, ["audit", "s.jsonl", *AUDIT[2:], *options])


@attack("numbers")
def odd_option(rng: Random) -> Case:
    name = rng.choice(
        ["--min-documents", "--ngrams", "--seed", "--value-rate", "--fail-on", "--fail-on"]
    )
    value = rng.choice(
        ["1" + "0" * 50, "9" * 5000, str(2**62), str(2**64), "-1", "1e400", "nan", "0x9", "١", ""]
    )
    if name == "--fail-on":
        value = rng.choice(["0.9@{}%", "{}@1%", "shortcut={}", "leak={}%"]).format(value)
    return Case(f"{name} {value[:12]}", lambda: [*AUDIT, f"{name}={value}"])


# ---- 5 bombs


def bomb(draw: Callable[[Random], hostile.Named], rng: Random) -> Case:
    name, write = draw(rng)

    def make() -> list[str]:
        file, *options = write()
        return ["audit", file, *AUDIT[2:], *options]

    case = Case(
        name, make, seconds=120 if "MB of" in name else 60
    )  # time in proportion to megabytes of line ends
    return (
        replace(case, memory=4.2 * GB, seconds=75) if "workbook" in name else case
    )  # as SECURITY.md says


for draw in hostile.BOMBS:
    attack("bombs", draw.__name__)(partial(bomb, draw))


@attack("bombs")
def piped(rng: Random) -> Case:
    text = rng.choice(["'good film,p'", "a", "'{\"text\":1}'", "'\"'"])
    sources = [
        f"yes {text} | {{}}",
        "{} </dev/full",
        "{} </dev/zero",
        "head -c 3000000 /dev/urandom | {}",
    ]
    sources += ["yes , | tr -d '\\n' | {}", "(printf 'text,label\\n\"'; cat /dev/zero) | {}"]
    shell = rng.choice([*sources, '(printf \'[\'; yes \'{"text":"a","label":1},\') | {}'])
    return Case(shell, lambda: ["audit", "-", *AUDIT[2:]], shell=shell, seconds=120)


# ---- 6 an existing --out


@attack("out")
def odd_journal(rng: Random) -> Case:
    names = [
        "l/precious.csv",
        "../mine/precious.csv",
        "ABSOLUTE",
        ".",
        "a\0",
        1,
        None,
        "summary.json",
    ]
    journal = json.dumps({"files": rng.choices(names, k=2), "stale": rng.choices(names, k=2)})
    text = rng.choice(
        [journal] * 6 + ["[]", "[" * 10**5, "", json.dumps({"files": ["a"] * 10**5, "stale": []})]
    )

    def write() -> None:
        staging = Path("o/.tokensieve-x")
        (staging / "new").mkdir(parents=True)
        (staging / "lock").touch()
        (staging / "journal.json").write_text(
            text.replace("ABSOLUTE", str(Path("mine/precious.csv").absolute()))
        )
        Path("o/l").symlink_to("../mine")

    return with_file(f"journal {text[:50]}", write, AUDIT, leaves=True)


@attack("out")
def odd_target(rng: Random) -> Case:
    places = "o o/summary.json o/report.html o/pictures o/.tokensieve-turn o/.tokensieve-x/lock"
    place, what = (
        rng.choice(places.split()),
        rng.choice(["fifo", "folder", "mine", "mine/precious.csv", "nowhere", "itself"]),
    )

    def write() -> None:
        path = Path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        if what in ("fifo", "folder"):
            (os.mkfifo if what == "fifo" else os.mkdir)(path)
        else:
            path.symlink_to(path.name if what == "itself" else "../" * place.count("/") + what)

    return with_file(f"{place} is {what}", write, DRAWN, leaves=".tokensieve" in place)


@attack("out")
def odd_out_name(rng: Random) -> Case:
    names = [
        "",
        "/proc/x",
        "/dev/full/x",
        "a\nb",
        "\x1b[2J",
        "x" * 300,
        "a/" * 600,
        "good.csv",
        "good.csv/x",
        "..",
    ]
    name = rng.choice([*names, "/dev/null"])
    return Case(f"--out {name[:20]!r}", lambda: [*AUDIT[:2], f"--out={name}", *QUICK], target=name)


@attack("out", times=2)
def signalled(rng: Random) -> Case:
    number = rng.choice(
        [
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGKILL,
            signal.SIGKILL,
            signal.SIGQUIT,
        ]
    )
    after, ngrams = rng.uniform(0.2, 3), rng.choice("123")
    arguments = ["audit", "good.csv", "--out", "saved", *QUICK, "--ngrams", ngrams]
    case = Case(
        f"{number.name} after {after:.2f} s", lambda: arguments, after=after, target="saved"
    )
    return replace(
        case, change=lambda process: process.send_signal(number), statuses=(0, 128 + number)
    )


# ---- 7 limits of the system, 8 patterns


@attack("limits", times=2)
def limited(rng: Random) -> Case:
    ranges = {
        "NOFILE": (8, 60),
        "FSIZE": (2000, 5e6),
        "AS": (3e8, 4e9),
        "CPU": (1, 4),
        "STACK": (2e5, 8e6),
        "NPROC": (1, 40),
    }
    name = rng.choice([*ranges, "AS"])
    most = log_uniform(rng, *ranges[name])
    statuses = {"CPU": (0, 2, 152), "NOFILE": (0, 1, 2), "STACK": (0, 2, 139), "AS": (0, 1, 2)}.get(
        name, (0, 2)
    )
    arguments = rng.choice([AUDIT, DRAWN])
    return Case(
        f"{name} {most}",
        lambda: arguments,
        limits={name: most},
        statuses=statuses,
        as_nobody=name == "NPROC",
    )


@attack("patterns", times=2)
def option_pattern(rng: Random) -> Case:
    words = "|".join(f"w{i}" for i in range(15_000))
    pattern = rng.choice(
        [hostile.pattern(rng), hostile.pattern(rng), words, "\x1b[2J", "\\w" * 3000, "a\ue000?"]
    )
    write = partial(hostile.long_runs, rng) if rng.random() < 0.7 else lambda: None
    return with_file(f"--pattern {pattern[:40]}", write, [*AUDIT, f"--pattern={pattern}"])


# ---- environments, moments, names, encodings


@attack("environments")
def odd_variable(rng: Random) -> Case:
    libraries = "POLARS_MAX_THREADS NUMBA_NUM_THREADS NUMBA_CACHE_DIR OMP_NUM_THREADS RAYON_NUM_THREADS SOURCE_DATE_EPOCH"
    system = "HOME TMPDIR LC_ALL COLUMNS LINES TERM TZ PATH FORCE_COLOR NO_COLOR LANG XDG_CACHE_HOME PYTHONOPTIMIZE"
    name = rng.choice(f"{libraries} {system}".split())
    values = [
        None,
        *" 0 1 abc /nonexistent /proc /etc/passwd ../.. C utf-16 999999999999999999999999 \x1b[2J".split(
            " "
        ),
    ]
    value = rng.choice(values if name != "PYTHONOPTIMIZE" else ["0", "1", "2"])
    return Case(
        f"{name}={value}", lambda: DRAWN, environment={name: value}, as_nobody=rng.random() < 0.3
    )


@attack("environments")
def odd_streams(rng: Random) -> Case:
    tails = "<&-,>&-,2>&-,<&- >&- 2>&-,>/dev/full,2>/dev/full,>/dev/full 2>&1,| true,2>&1 | true,0>x,1</dev/null"
    shell = f"{{}} {rng.choice(tails.split(','))}"
    command = rng.choice([DRAWN, ["predict", "saved", "good.csv"], ["--help"]])
    return Case(f"{command[0]} {shell}", lambda: command, shell=shell, statuses=(0, 2, 141))


@attack("environments")
def forbidden(rng: Random) -> Case:
    path = rng.choice(
        "good.csv saved saved/model.json saved/summary.json . o saved/SHA256SUMS".split()
    )
    mode, command = rng.choice([0, 0o111, 0o444, 0o555]), rng.choice([AUDIT, *READERS.values()])

    def write() -> None:
        Path("o").mkdir()
        os.chmod("o", 0o777)
        os.chmod(path, mode)

    target = "m.csv" if command[0] == "mask" else "o"
    return with_file(
        f"{command[0]} as nobody, {path} {mode:o}", write, command, as_nobody=True, target=target
    )


@attack("moments", times=2)
def changing_source(rng: Random) -> Case:
    how, after = (
        rng.choice(["cut", "longer", "deleted", "replaced", "a folder", "forbidden"]),
        rng.uniform(0.1, 2.5),
    )
    name = f"s.{rng.choice(['csv', 'jsonl', 'parquet', 'arrow'])}"
    command = rng.choice(
        [
            ["audit", name, *AUDIT[2:]],
            ["train", name, "--out", "o", "-q"],
            ["predict", "saved", name, "-q"],
        ]
    )

    def write() -> None:
        import polars as pl

        texts = [f"{('bad', 'good')[i % 2]} film of number {i} " * 5 for i in range(60_000)]
        data = pl.DataFrame({"text": texts, "label": [i % 2 for i in range(60_000)]})
        writers = {
            "csv": data.write_csv,
            "jsonl": data.write_ndjson,
            "parquet": data.write_parquet,
            "arrow": data.write_ipc,
        }
        writers[name[2:]](name)

    def change(process: subprocess.Popen[bytes]) -> None:
        path = Path(f"/proc/{process.pid}/cwd").resolve() / name
        if how == "cut":
            os.truncate(path, path.stat().st_size // 3)
        elif how == "longer":
            with path.open("ab") as file:
                file.write(b"x,y\n" * 100)
        elif how == "forbidden":
            os.chmod(path, 0)
        else:
            path.unlink()
            {"replaced": path.touch, "a folder": path.mkdir}.get(how, lambda: None)()

    case = with_file(f"{command[0]}: {name} {how} after {after:.2f} s", write, command, target=name)
    return replace(case, after=after, change=change, as_nobody=True)


@attack("names")
def odd_label(rng: Random) -> Case:
    one, other = rng.choice(NAMES), rng.choice([*NAMES, "other"]) + " 2"
    rows = [
        (f"a {('good', 'bad')[i % 2]} film {one if i % 2 else ''} {i}", (one, other)[i % 2])
        for i in range(60)
    ]
    arguments = ["audit", "s.csv", "--text", "text", "--label", "label", *DRAWN[2:], "--card"]
    write = partial(write_rows, "s.csv", [("text", "label"), *rows])
    return with_file(f"labels {one[:20]!r}, {other[:20]!r}", write, arguments)


@attack("names")
def odd_column(rng: Random) -> Case:
    name, option = rng.choice(NAMES), rng.choice(["--columns", "--by", "--environments"])
    rows = [(f"a {('good', 'bad')[i % 2]} film, number {i}", i % 2, i % 7) for i in range(60)]
    write = partial(write_rows, "s.csv", [(name, f"label {name}", f"by {name}"), *rows])
    roles = [
        f"--text={name.strip()}",
        f"--label=label {name.rstrip()}",
        f"{option}=by {name.rstrip()}",
    ]
    return with_file(f"columns {name[:20]!r}", write, ["audit", "s.csv", *roles, *DRAWN[2:]])


@attack("names")
def odd_file_name(rng: Random) -> Case:
    name = (
        "./"
        + re.sub("[/\0]", "_", rng.choice(NAMES))[:60]
        + rng.choice([".csv", ".CSV", "", ".txt", ".csv.bak"])
    )
    return with_file(
        f"file {name[:24]!r}", partial(shutil.copy, "good.csv", name), ["audit", name, *DRAWN[2:]]
    )


@attack("encodings")
def odd_encoding(rng: Random) -> Case:
    import encodings
    import pkgutil

    known = sorted(
        {module.name for module in pkgutil.iter_modules(encodings.__path__)} - {"aliases"}
    )
    name, damage = rng.choice([*known, "", "x" * 5000, "\x1b[2J", "../x"]), rng.random() < 0.4
    options = [f"--encoding={name}"] * (rng.random() < 0.7)

    def write() -> None:
        text = Path("good.csv").read_text().replace("e", "é")
        with suppress(Exception):  # some of these are no encodings of text
            content = text.encode(name, "replace")
            Path("good.csv").write_bytes(
                bytes(b ^ (damage and rng.random() < 0.01) * 255 for b in content)
            )

    return with_file(f"encoding {name[:20]!r}{', damaged' * damage}", write, [*AUDIT, *options])


@attack("encodings")
def odd_separator(rng: Random) -> Case:
    mark, inside = (
        rng.choice([*'\\t|ab||é|\n|"| |a|]|^|\\|\x1b|;'.split("|"), "|"]),
        rng.choice(",;|\t"),
    )

    def write() -> None:
        Path("good.csv").write_text(Path("good.csv").read_text().replace(",", inside))

    return with_file(
        f"separator {mark!r}, {inside!r} in the file", write, [*AUDIT, f"--separator={mark}"]
    )
