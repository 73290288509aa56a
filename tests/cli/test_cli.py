"""The command line as its user meets it: results, files, messages, exit status."""

from __future__ import annotations

import csv
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from calls import fast_first
from reviews import write_reviews
from tokensieve import __version__
from tokensieve.auditing.demo import demo_reviews
from tokensieve.read import table

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.slow
def test_demo_finds_the_truth_and_says_so(run: Run, tmp_path: Path) -> None:
    status, out, err = run("demo")
    assert (status, err) == (0, "")
    assert "The planted shortcut 'tablet' is the first suspicious token" in out
    assert "20 of 20 sentiment words were found" in out
    assert {p.name for p in (tmp_path / "tokensieve-demo").iterdir()} == {
        "report.html", "summary.json", "tokens.csv", "table.json", "model.json", "model.safetensors", "pictures",
        "findings.json", "findings.csv", "label-issues.csv", "reviews.csv", "SHA256SUMS", "test-results.csv",
    }  # fmt: skip
    assert out.index("“tablet” appears in ") < out.index("Test accuracy")
    assert len(out.partition("planted effects")[0].splitlines()) <= 40
    drawn = {p.name for p in (tmp_path / "tokensieve-demo" / "pictures").iterdir()}
    assert drawn == {
        f"{name}.{kind}"
        for name in ("headline", "alarm", "value", "score", "top")
        for kind in ("svg", "png")
    }


@pytest.mark.usefixtures("undrawn", "quick_training")
def test_audit_train_predict_explain(run: Run, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv")
    status, out, err = run("audit", "reviews.csv", "--out", "found", "--seed", "3", "--no-pictures")
    assert (status, err) == (0, "")
    summary = json.loads((tmp_path / "found" / "summary.json").read_text())
    assert f"{summary['test_accuracy']:.1%}" in out.partition("Test accuracy")[2].splitlines()[0]
    assert summary["seed"] == 3 and summary["version"] == __version__
    assert set(summary["seconds"]) >= {"reading", "tokenizing", "training", "report", "total"}
    with (tmp_path / "found" / "tokens.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * summary["token_types"]

    status, out, err = run("train", "reviews.csv", "--out", "found")
    assert (status, out) == (
        2,
        "",
    ) and "contains an audit" in err  # whose summary and model would no longer be of one run
    assert run("train", "reviews.csv", "--formatting", "--out", "model", "--seed", "3", "-q") == (
        0,
        "",
        "",
    )
    assert not (tmp_path / "model" / "report.html").exists()
    trained = json.loads((tmp_path / "model" / "summary.json").read_text())
    assert trained["test_accuracy"] == summary["test_accuracy"]

    status, out, err = run("predict", "model", "reviews.csv")
    table = out.splitlines()
    answers = list(csv.DictReader(table))
    assert (status, len(answers)) == (0, 300) and "labelled documents" in err
    status, out, err = run("predict", "model", "reviews.csv", "--out", "answers")
    assert status == 0 and "300 predictions" in err and "label ↓ prediction →" in out
    assert (tmp_path / "answers" / "predictions.csv").read_text().splitlines() == table

    first = demo_reviews(300).texts[0]
    status, out, _ = run("explain", "model", first, "--json")
    explained = json.loads(out)
    assert status == 0
    assert sum(t["contribution"] for t in explained["tokens"]) == pytest.approx(
        explained["answer"], abs=1e-10
    )
    assert explained["answer"] == pytest.approx(float(answers[0]["answer"]), abs=1e-10)
    status, out, _ = run("explain", "model", first)
    assert status == 0 and "sum" in out and f"{explained['answer']:+.6f}".replace("-", "−") in out


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn", "quick_training")
def test_labels_grouped_and_dropped_and_split_by_column(run: Run, tmp_path: Path) -> None:
    reviews = demo_reviews(200)
    stars = [
        (5 if i % 2 else 4) if y else (1 if i % 2 else 2) for i, y in enumerate(reviews.labels)
    ]
    lines = [
        json.dumps(
            {"text": t, "stars": 3 if i % 10 == 0 else s, "part": "test" if i % 3 == 0 else "train"}
        )
        for i, (t, s) in enumerate(zip(reviews.texts, stars, strict=True))
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    options = "--group negative=1,2 --group positive=4,5 --drop 3 --split part --no-baseline --no-pictures".split()
    status, _, err = run("audit", "r.jsonl", *options, "--out", "o")
    assert (status, err) == (0, "")
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert summary["classes"] == ["negative", "positive"]
    assert summary["documents"] == {"train": 120, "test": 60}
    assert summary["baseline_accuracy"] is None
    assert any("13 documents labelled '3'" in note for note in summary["notes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "nowhere.csv"], "no file or folder"),
        (["audit", "good.csv", "--text", "nope"], "no column 'nope'"),
        (["audit", "good.csv", "--out", "good.csv"], "is a file; name a folder"),
        (["audit", "good.csv", "--out", "good.csv/folder"], "is a file; name a folder"),
        (["audit", "good.csv", "--ngrams", "0"], "--ngrams"),
        (["audit", "good.csv", "--group", "x"], "NEW=OLD"),
        (["audit", "good.csv", "--min-documents", "1000"], "lower --min-documents"),
        (["audit", "good.csv", "--tokenizer", "good.csv"], "not a tokenizers file"),
        (["audit", "good.csv", "--tokenizer", "fifo"], "not a regular file"),
        (["audit", "fifo"], "fifo"),
        (["audit", "zero.csv"], "zero.csv"),
        (["predict", "m", "good.csv", "good.csv"], "it takes one source"),
        (["predict", "model", "good.csv", "good.csv"], "it takes one source"),
        (["explain", "model", "two", "words"], "put the text in quotes"),
        (["verify", "--d", "99999999999"], "GB of memory, but this machine has"),
        (["verify", "--documents", "99999999999"], "GB of memory"),
        (["verify", "--types", "99999999999"], "GB of memory"),
        (["verify", "--length", "99999999999"], "GB of memory"),
        (["audit", "x" * 5000 + ".csv"], "xxxxx"),
        (["audit", "\x1b]0;title\x07\u202e.csv"], "there is no file"),
        (["audit", "good.csv", "--label", "\x1b[2J\u2067"], "no column"),
        (["audit", "good.csv", "--duplicates", "maybe"], "keep"),
        (["audit", "good.csv", "--tokenizer", "x.json", "--keep-case"], "--keep-case"),
        (["audit", "good.csv", "--frobnicate"], "--frobnicate"),
        (["frobnicate"], "frobnicate"),
        (["train", "one.csv"], "only one value"),
        (["predict", "good.csv", "good.csv"], "is not a model folder"),
        (["explain", "nowhere", "text"], "is not a model folder"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_reviews(tmp_path / "good.csv", 40)
    (tmp_path / "one.csv").write_text("text,label\na,1\nb,1\n")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("tokensieve: ") and err.count("\n") == 1 and message in err
    assert len(err) <= 500 + len("tokensieve: \n") and err[:-1].isprintable()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.usefixtures("undrawn", "quick_training")
def test_hostile_text_and_labels_survive_everywhere(run: Run, tmp_path: Path) -> None:
    labels = ["<script>alert(1)</script>", "=cmd()|'x'"]
    words = ["[bold]", "'quote\"", "\x1b[31m", "\ud800", "\u202eabc", "👍", "{{7*7}}", "</td>"]
    rows = [
        json.dumps(
            {
                "text": f"{' '.join(words)} w{i} {'nice' if i % 2 else 'ugly'}",
                "label": labels[i % 2],
            }
        )
        for i in range(60)
    ]
    (tmp_path / "h.jsonl").write_text("\n".join(rows))
    status, out, err = run("audit", "h.jsonl", "--out", "o", "--no-pictures")
    assert (status, err) == (0, "")
    assert "\x1b[31m" not in out
    assert "with lone surrogates" in out
    page = (tmp_path / "o" / "report.html").read_text()
    assert "<script>alert" not in page.lower() and "&lt;script&gt;" in page
    with (tmp_path / "o" / "tokens.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert {row["class"] for row in table} == {labels[0], "'" + labels[1]}
    assert "👍" in {row["token"] for row in table}
    assert json.loads((tmp_path / "o" / "summary.json").read_text())["classes"] == sorted(labels)
    status, out, err = run("explain", "o", " ".join(words).encode("utf-8", "replace").decode())
    assert (status, err) == (0, "") and "\x1b[31m" not in out


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn", "quick_training")
def test_nothing_that_is_printed_steers_the_terminal(run: Run, tmp_path: Path) -> None:
    hostile = "\x1b]0;title\x07\x9b2J\u202e\u2067\u200f\u2028"
    rows = [
        {f"text{hostile}": f"{hostile}{i} {hostile} word", f"label{hostile}": f"{hostile}{i % 2}"}
        for i in range(40)
    ]
    (tmp_path / f"h{hostile}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / f"o{hostile}").mkdir()
    out = f"o{hostile}/o"
    quick, text = ["--no-baseline", "--no-pictures", "--out", out], ["--text", f"text{hostile}"]
    for arguments in (
        ["audit", f"h{hostile}.jsonl", *quick, "--fail-on", "0.5@1%"], ["predict", out, f"h{hostile}.jsonl", *text],
        ["explain", out, f"{hostile} word {hostile}"], ["explain", out, f"{hostile} word", "--json"],
        ["explain", out, "word", "--label", hostile], ["predict", out, f"h{hostile}.jsonl", *text, "--out", f"p{hostile}"],
        ["mask", f"h{hostile}.jsonl", *text, "--token", "word", "--out", f"m{hostile}.csv"],
    ):  # fmt: skip
        status, printed, err = run(*arguments)
        assert status in ((2,) if "--label" in arguments else (0, 3)) and (printed or err), (
            arguments,
            err,
        )
        assert all(c.isprintable() or c in "\n\t" for c in printed + err), (
            arguments[0],
            printed,
            err,
        )
        if "--json" in arguments:
            assert json.loads(printed)["predicted"].startswith(hostile)
    assert hostile in (tmp_path / f"p{hostile}" / "predictions.csv").read_text()


def test_full_disk_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reviews(tmp_path / "good.csv", 60)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    status, _, err = run("train", "good.csv", "--out", "o")
    assert (
        status == 2
        and "No space left on device" in err
        and "MB are needed" in err
        and err.count("\n") == 1
    )
    assert [p.name for p in tmp_path.iterdir()] == ["good.csv"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kilobytes", [20, *(pytest.param(size, marks=pytest.mark.slow) for size in (1, 60))]
)
def test_a_limit_on_files_is_one_line_wherever_it_strikes(tmp_path: Path, kilobytes: int) -> None:
    write_reviews(tmp_path / "good.csv", 400 if kilobytes < 60 else 2000)
    (tmp_path / "tmp").mkdir()
    limit = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes * 1000}, "
        f"{kilobytes * 1000}))"
    )
    program = (
        f"{limit}; sys.argv = {['tokensieve', 'train', 'good.csv', '--stream', '--out', 'o']!r}"
    )
    program += "; import tokensieve.__main__ as way_in; way_in.main()"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["good.csv", "tmp"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "size", "drawn", "status"),
    [
        ("AS", 2_500 * 10**6, False, 0),
        ("AS", 1_500 * 10**6, False, 2),
        ("NOFILE", 12, False, 0),
        ("NOFILE", 24, True, 0),
    ],
)
def test_limits_of_the_system_cost_the_pictures_only(
    tmp_path: Path, limit: str, size: int, drawn: bool, status: int
) -> None:
    write_reviews(tmp_path / "good.csv", 100)
    program = f"import resource, sys; resource.setrlimit(resource.RLIMIT_{limit}, ({size}, {size}))"
    program += f"; sys.argv = {['tokensieve', 'audit', 'good.csv', '--out', 'o', '-q']!r}"
    program += "; import tokensieve.__main__ as way_in; way_in.main()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, (tmp_path / "o" / "pictures").is_dir()) == (status, drawn), done.stderr
    assert done.stderr.count("\n") == (not drawn) + ("TF-IDF" in done.stderr), (
        done.stderr
    )  # both are other processes
    if status == 0:
        assert drawn or "the pictures are missing" in done.stderr
        assert {"report.html", "summary.json", "SHA256SUMS", "model.json"} <= set(
            os.listdir(tmp_path / "o")
        )
    else:
        assert (
            "the address space is limited to 1.5 GB" in done.stderr
            and not (tmp_path / "o").exists()
        )


def test_too_little_address_space_is_refused_before_pytorch_aborts(tmp_path: Path) -> None:
    program = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2_500 * 10**6,) * 2)"
    program += "; sys.argv = ['tokensieve', 'diagnose', 'm', 'x.csv']; import tokensieve.__main__ as way_in; way_in.main()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr.count("\n")) == (
        2,
        1,
    ) and "at least 3.0 GB are needed" in done.stderr


def test_too_few_processes_for_threads_are_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenBLAS would write five lines and interrupt the program."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(
        "resource.getrlimit", lambda kind: (5, 5) if kind == resource.RLIMIT_NPROC else (-1, -1)
    )
    monkeypatch.setattr(threading.Thread, "start", refused)
    status, _, err = run("audit", "a.csv")
    assert (status, err.count("\n")) == (2, 1) and "the limit on processes" in err


@pytest.mark.slow
def test_train_and_audit_with_the_same_settings_write_the_same_model(
    run: Run, tmp_path: Path
) -> None:
    """To the last byte, digest included; only the defaults of the two commands differ."""
    write_reviews(tmp_path / "a.csv", 60)
    assert run("audit", "a.csv", "--out", "a", "-q", "--no-baseline", "--no-pictures")[0] == 0
    assert run("train", "a.csv", "--formatting", "--min-documents", "3", "--out", "b", "-q")[0] == 0
    for name in ("model.json", "model.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.slow
def test_a_changed_audit_is_noticed_by_all_that_read_it(run: Run, tmp_path: Path) -> None:
    write_reviews(tmp_path / "good.csv", 300)
    quick = ("-q", "--no-baseline", "--no-pictures", "--formatting", "--min-documents", "2")
    assert run("audit", "good.csv", "--out", "a", *quick)[0] == 0
    assert (
        run("train", "good.csv", "--out", "t", "-q", "--formatting", "--min-documents", "2")[0] == 0
    )
    assert (tmp_path / "a" / "model.json").read_bytes() == (
        tmp_path / "t" / "model.json"
    ).read_bytes()
    readers = (
        ("compare", "a", "a"),
        ("mask", "good.csv", "--audit", "a", "--token", "film", "--out", "m.csv"),
        ("predict", "a", "good.csv"),
    )
    for command in (
        readers[0],
        readers[2],
        ("train", "good.csv"),
        ("mask", "good.csv", "--token", "film"),
    ):
        status, _, err = run(*command, "--out", "a")
        assert status == 2 and "contains an audit" in err, command
    status, _, err = run("predict", "t", "good.csv", "--out", "t")
    assert status == 2 and "contains a model" in err
    assert run("train", "good.csv", "--out", "t", "-q")[0] == 0
    status, _, err = run("train", "good.csv", "--out", "a/" * 1_500)
    assert status == 2 and "cannot be the name of a folder" in err and err.count("\n") == 1
    page = tmp_path / "a" / "report.html"
    page.write_text(page.read_text() + " ")
    for reader in readers:
        status, _, err = run(*reader)
        assert status == 2 and "'report.html' has changed" in err and err.count("\n") == 1
    page.unlink()
    for reader in readers:
        status, _, err = run(*reader)
        assert status == 2 and "'report.html' cannot be read" in err and err.count("\n") == 1


@pytest.mark.parametrize("name", ["POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "SOURCE_DATE_EPOCH"])
@pytest.mark.parametrize("value", ["0", "abc", "-1", "9" * 30])
def test_a_variable_that_libraries_fail_on_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    status, _, err = run("audit", "a.csv")
    assert (status, err.count("\n")) == (2, 1) and f"{name} is" in err and "unset it" in err


@pytest.mark.parametrize(
    "problem", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")]
)
def test_a_source_that_is_closed_or_goes_away_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: OSError
) -> None:
    write_reviews(tmp_path / "good.csv", 40)
    opened = Path.open

    def refuses(path: Path, *how: Any, **more: Any) -> Any:
        if path.name == "good.csv":
            raise problem
        return opened(path, *how, **more)

    monkeypatch.setattr(Path, "open", refuses)
    status, _, err = run("audit", "good.csv", "--out", "o")
    assert status == 2 and problem.strerror in err and "good.csv" in err and err.count("\n") == 1
    assert not (tmp_path / "o").exists()


KINDS = {
    "csv": pl.DataFrame.write_csv,
    "arrow": pl.DataFrame.write_ipc,
    "parquet": pl.DataFrame.write_parquet,
}
KINDS |= {"jsonl": pl.DataFrame.write_ndjson, "ipc": pl.DataFrame.write_ipc_stream}
CHANGES: dict[str, Callable[[Path], object]] = {
    "longer": lambda path: path.write_bytes(path.read_bytes() * 2),
    "deleted": os.unlink,
    "replaced": lambda path: os.replace(shutil.copy(path, "new"), path),
}


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_source_that_changes_while_it_is_read_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, change: str
) -> None:
    """It would give results of two states of the data."""
    path, rows = (
        tmp_path / f"data.{kind}",
        [(f"{('bad', 'good')[i % 2]} film {i} " * 5, i % 2) for i in range(1_000)],
    )
    KINDS[kind](pl.DataFrame(rows, ["text", "label"], orient="row"), path)
    read = table.SourceTable.read

    def changing(source: table.SourceTable, names: Sequence[str]) -> Iterator[Any]:
        for i, batch in enumerate(read(source, names)):
            if i == 0:
                CHANGES[change](path)
            yield batch

    monkeypatch.setattr(table, "BATCH_ROWS", 100)
    monkeypatch.setattr(table.SourceTable, "read", changing)
    status, _, err = run("train", path.name, "-q", "--out", "o")
    assert status == 2 and err.count("\n") == 1 and path.name in err, err
    assert {found.name for found in tmp_path.iterdir()} <= {path.name}


@pytest.mark.parametrize("kind", fast_first(["csv", "arrow", "parquet", "jsonl", "ipc"]))
def test_a_source_that_is_cut_while_it_is_read_is_one_line(tmp_path: Path, kind: str) -> None:
    """Mapped files that are cut end a process with SIGBUS."""
    program = f"""
import os, sys
import numpy as np
import polars as pl
from tokensieve.read.table import SourceTable
from tokensieve.__main__ import main
path = "data.{kind}"
data = pl.DataFrame({{"text": [f"{{'good' if i % 2 else 'bad'}} film of number {{i}} " * 5 for i in range(25_000)],
                     "label": [i % 2 for i in range(25_000)]}})
write = {{"csv": data.write_csv, "jsonl": data.write_ndjson, "parquet": data.write_parquet, "arrow": data.write_ipc,
         "ipc": data.write_ipc_stream}}
write["{kind}"](path)
mapped, read = np.memmap, SourceTable.read
def memmap(name, *given):
    found = mapped(name, *given)
    if str(name) == path and "{kind}" == "csv":
        os.truncate(path, 0)
    return found
def changing(table, names):
    for i, batch in enumerate(read(table, names)):
        if i == 1:
            os.truncate(path, 0)
        yield batch
np.memmap, SourceTable.read = memmap, changing
sys.argv = ["tokensieve", "train", path, "-q", "--out", "o"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert (
        done.returncode == 2 and done.stderr.count("\n") == 1 and f"data.{kind}" in done.stderr
    ), done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {f"data.{kind}"}


@pytest.mark.slow
@pytest.mark.parametrize("to", ["2>/dev/full", ">/dev/full 2>&1", "2>&1 >/dev/null | true"])
def test_messages_that_cannot_be_written_are_no_failure(tmp_path: Path, to: str) -> None:
    command = f"{sys.executable} -m tokensieve"
    assert (
        subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{command} train nosuch.csv {to}"], cwd=tmp_path
        ).returncode
        == 2
    )


@pytest.mark.slow
def test_a_reader_that_leaves_ends_an_audit_with_141(tmp_path: Path) -> None:
    write_reviews(tmp_path / "good.csv", 60)
    command = (
        f"{sys.executable} -m tokensieve audit good.csv --no-baseline --no-pictures --out o | true"
    )
    assert subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=tmp_path).returncode == 141


@pytest.mark.slow
@pytest.mark.parametrize("closed", fast_first(["<&- >&- 2>&-", "2>&-", "<&-", ">&-"]))
def test_streams_that_are_closed_are_no_failure(tmp_path: Path, closed: str) -> None:
    command = f"{sys.executable} -m tokensieve"
    assert subprocess.run(f"{command} --version {closed}", shell=True, cwd=tmp_path).returncode == 0
    assert (
        subprocess.run(f"{command} train nosuch.csv {closed}", shell=True, cwd=tmp_path).returncode
        == 2
    )


def test_version_and_help(run: Run) -> None:
    assert run("--version") == (0, f"tokensieve {__version__}\n", "")
    status, out, _ = run("--help")
    assert status == 0
    assert all(name in out for name in ("demo", "audit", "train", "predict", "explain"))


def test_no_arguments_show_the_help(run: Run) -> None:
    status, out, err = run()
    assert (status, err) == (0, "") and out.count("\n") > 10


@pytest.mark.slow
def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    write_reviews(tmp_path / "good.csv", 40)
    command = [
        sys.executable,
        "-m",
        "tokensieve",
        "audit",
        "good.csv",
        "--out",
        "o",
        "--no-pictures",
        "--no-baseline",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Test accuracy" in done.stdout


@pytest.mark.usefixtures("undrawn", "quick_training")
def test_several_files_are_one_source(run: Run, tmp_path: Path) -> None:
    write_reviews(tmp_path / "one.csv")
    write_reviews(tmp_path / "two.csv", seed=1)
    status, _, err = run("train", "one.csv", "two.csv", "--out", "both")
    assert status == 0, err
    assert (
        json.loads((tmp_path / "both" / "summary.json").read_text())["name"]
        == "one.csv and two.csv"
    )
    status, _, err = run("audit", "my", "reviews.csv")  # a name with a space, without quotes
    assert status == 2 and "there is no file or folder 'my'" in err


def test_a_command_that_does_not_exist_is_proposed(run: Run) -> None:
    status, _, err = run("audt", "reviews.csv")
    assert (
        status == 2
        and err == "tokensieve: there is no command 'audt'; did you mean `tokensieve audit`?\n"
    )
    assert "(did you mean --text or --test " in run("audit", "reviews.csv", "--txt", "text")[2]


def test_a_missing_file_is_proposed_by_its_name_without_its_kind(run: Run, tmp_path: Path) -> None:
    for name in ("excel.csv", "reviews.csv"):
        write_reviews(tmp_path / name)
    assert "did you mean 'reviews.csv'?" in run("audit", "reveiws.cvs")[2]
    assert "did you mean" not in run("audit", "w x.csv")[2]
