"""Loops that leave out rows or keep groups whole: what an audit prints runs, and mends the finding."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve import demo_reviews
from tokensieve.auditing.report_cards import row_commands
from tokensieve.cli import audit as command
from tokensieve.report.blocks import Command

pytestmark = pytest.mark.usefixtures("undrawn", "quick_training")

TEXT, LABEL = "the text; raw", "it's a label"
QUICK = ("--no-pictures", "--no-baseline")


def reviews(n: int, seed: int) -> pl.DataFrame:
    made = demo_reviews(n, seed=seed)
    labels = ["up" if label else "down's" for label in made.labels]
    return pl.DataFrame({TEXT: made.texts, LABEL: labels})


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every audit that the command makes."""
    made: list[Any] = []
    run_audit = command.run_audit

    def recording(*given: Any, **options: Any) -> Any:
        made.append(run_audit(*given, **options))
        return made[-1]

    monkeypatch.setattr(command, "run_audit", recording)
    return made


def loop_of(audit: Any, kind: str) -> list[str]:
    """The commands on the card of the first finding of a kind."""
    finding = next(finding for finding in audit.findings if finding.kind == kind)
    blocks = row_commands(audit, finding)
    return [block.command for block in blocks if isinstance(block, Command)]


def follow(run: Run, commands: list[str], also: tuple[str, ...] = QUICK) -> None:
    """Runs commands as they are printed; audits with some options more."""
    for written in commands:
        program, *arguments = shlex.split(written)
        status, _, problem = run(*arguments, *(also if arguments[0] == "audit" else ()))
        assert program == "tokensieve" and status == 0, f"{written}\n{problem}"


def n_of_kind(folder: str, kind: str) -> int:
    return int(json.loads((Path(folder) / "summary.json").read_text())["findings"].get(kind, 0))


def test_copies_in_a_test_file_are_left_out(run: Run, audits: list[Any]) -> None:
    train = reviews(400, 1)
    train.write_csv("it's train.csv")
    pl.concat([reviews(200, 2), train.head(40)]).write_csv("te st.csv")
    columns = ("--text", TEXT, "--label", LABEL)
    given = (
        "audit",
        "it's train.csv",
        "--test",
        "te st.csv",
        *columns,
        *QUICK,
        "--out",
        "my audit",
    )
    assert run(*given)[0] == 0
    loop = loop_of(audits[0], "leak")
    assert [line.split()[1] for line in loop] == ["mask", "audit", "compare"]
    follow(run, loop)
    assert pl.read_csv("my audit-without-leak.csv").height == 200
    assert pl.read_csv("my audit-without-leak-left-out.csv").height == 40
    assert n_of_kind("my audit-without-leak", "leak") == 0


@pytest.mark.slow
def test_repeats_are_left_out(run: Run, audits: list[Any]) -> None:
    made = reviews(400, 3)
    pl.concat([made, made.head(120)]).write_csv("copies.csv")
    columns = ("--text", TEXT, "--label", LABEL)
    assert run("audit", "copies.csv", *columns, *QUICK, "--out", "a")[0] == 0
    follow(run, loop_of(audits[0], "repeated"))
    assert pl.read_csv("a-without-repeated.csv").height < 520
    assert n_of_kind("a-without-repeated", "repeated") == 0


@pytest.mark.slow
def test_texts_with_two_labels_are_left_out_exactly_as_printed(run: Run, audits: list[Any]) -> None:
    made = reviews(400, 6)
    again = made.head(30).with_columns(
        pl.when(pl.col(LABEL) == "up").then(pl.lit("down's")).otherwise(pl.lit("up")).alias(LABEL)
    )
    source = "-my $HOME; reviews (2).csv"
    pl.concat([made, again]).write_csv(source)
    columns = ("--text", TEXT, "--label", LABEL)
    assert run("audit", f"./{source}", *columns, *QUICK, "--out", "it's an audit")[0] == 0
    assert n_of_kind("it's an audit", "contradiction") == 1
    loop = loop_of(audits[0], "contradiction")
    assert [line.split()[1] for line in loop] == ["mask", "audit", "compare"]
    follow(run, loop, also=())
    assert n_of_kind("it's an audit-without-contradiction", "contradiction") == 0
    assert Path("it's an audit-without-contradiction-compare/report.html").exists()


@pytest.mark.slow
def test_wrong_labels_are_left_out_exactly_as_printed(run: Run, audits: list[Any]) -> None:
    words = {"up": "amber basalt cedar dune".split(), "down's": "ember fjord grove islet".split()}
    rng = np.random.default_rng(0)
    labels = np.array(["up", "down's"])[rng.integers(0, 2, 500)]
    texts = [
        " ".join(rng.choice(words[str(label)], 10)) + f" n{i}" for i, label in enumerate(labels)
    ]
    is_wrong = np.arange(500) < 20
    given = np.where(is_wrong, np.where(labels == "up", "down's", "up"), labels)
    pl.DataFrame({TEXT: texts, LABEL: given}).write_csv("wrong $labels.csv")
    columns = ("--text", TEXT, "--label", LABEL)
    assert run("audit", "wrong $labels.csv", *columns, *QUICK, "--out", "a `b`")[0] == 0
    loop = loop_of(audits[0], "labels")
    assert [line.split()[1] for line in loop] == ["mask", "audit", "compare"]
    follow(run, loop, also=())
    left = pl.read_csv("a `b`-without-labels.csv")
    n_wrong_left = left[TEXT].is_in(np.array(texts)[is_wrong].tolist()).sum()
    assert n_wrong_left < 10 and left.height > 470
    assert n_of_kind("a `b`-without-labels", "labels") == 0 or n_wrong_left


@pytest.mark.slow
def test_groups_of_a_column_are_kept_whole(run: Run, audits: list[Any]) -> None:
    rng = np.random.default_rng(0)
    authors = rng.integers(0, 60, 600)
    words = "amber basalt cedar dune ember fjord grove harbor islet jade kelp lagoon".split()
    texts = [f"{' '.join(rng.choice(words, 10))} zz{author}q" for author in authors]
    labels = ["up" if author % 2 else "down's" for author in authors]
    names = [f"u{author}" for author in authors]
    pl.DataFrame({TEXT: texts, LABEL: labels, "author": names}).write_csv("by people.csv")
    columns = ("--text", TEXT, "--label", LABEL)
    assert run("audit", "by people.csv", *columns, *QUICK, "--out", "a")[0] == 0
    loop = loop_of(audits[0], "groups")
    assert "--by author" in loop[0]
    follow(run, loop)
    assert n_of_kind("a-by-group", "groups") == 0


@pytest.mark.slow
def test_rows_to_leave_out_need_an_audit_that_found_them(run: Run) -> None:
    reviews(200, 5).write_csv("r.csv")
    leave_out = ("mask", "r.csv", "--leave-out", "leak")
    status, _, problem = run(*leave_out, "--out", "m.csv")
    assert status == 2 and "--audit" in problem
    columns = ("--text", TEXT, "--label", LABEL)
    assert run("audit", "r.csv", *columns, *QUICK, "--out", "a")[0] == 0
    status, _, problem = run(*leave_out, "--text", TEXT, "--audit", "a", "--out", "m.csv")
    assert status == 2 and "no such rows" in problem
