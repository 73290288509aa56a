"""`tokensieve reproduce`: files, terminal, page, and every bad input in one line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tokensieve.reproduce.seeds import Outcome, Result, Run
from tokensieve.reproduce.study import Reproduction

from calls import Run as Call
from pages import violations
from tokensieve.report.reproduce import markdown, render_reproduction
from tokensieve.reproduce import registry, synthetic
from tokensieve.reproduce.result import Check, Experiment, Finding, Reading

HOSTILE = ["<script>alert(1)</script>", "</title></style>", "{{7*7}}", "a|b\nc", "\u202eturned", "nul\x00"]
TINY = {"d": 8, "steps": 20, "learning_rate": 0.05, "documents": 300, "n_types": 40, "length": 20, "n_irrelevant": 10}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The synthetic experiment at toy size."""
    small = replace(synthetic.EXPERIMENT, settings={"quick": TINY, "paper": TINY})
    monkeypatch.setitem(registry.EXPERIMENTS, "synthetic", small)
    monkeypatch.delenv("TOKENSIEVE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "500")  # no line of the terminal's table is broken


def test_list_describes_every_experiment(run: Call) -> None:
    status, out, _ = run("reproduce", "--list")
    assert status == 0
    for id in registry.EXPERIMENTS:
        assert re.search(rf"^{id} ", out, re.MULTILINE), id
    assert "needs imdb, yelp, PyTorch" in out
    assert run("reproduce", "mlp", "--list")[1].count("criterion, fixed on") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("tiny", "undrawn")
def test_files_terminal_and_second_run(run: Call, tmp_path: Path) -> None:
    status, out, err = run(
        "reproduce", "synthetic", "frozen", "--out", "there", "--seed", "3", "--seeds", "2", "--jobs", "1"
    )
    assert status == 0, err
    assert "2 experiments:" in out and "1 not run" in out and "no data folder is named" in out
    assert re.search(r"^synthetic, seed 4: (not )?every criterion met \(\d+ s\)$", err, re.MULTILINE)
    summary = json.loads((tmp_path / "there/summary.json").read_text())
    rows = {row["id"]: row for row in summary["experiments"]}
    assert set(rows) == {"synthetic", "frozen"} and rows["frozen"]["verdict"] == "not run"
    for row in rows.values():
        assert {"id", "claim", "paper", "ours", "verdict", "seconds"} <= set(row)
    assert summary["seed"] == 3 and rows["synthetic"]["settings"]["seed"] == 3
    names = {
        path.relative_to(tmp_path / "there").as_posix() for path in (tmp_path / "there").rglob("*") if path.is_file()
    }
    assert {"report.html", "table.md", "tables/synthetic-bins.csv"} <= names
    drawn = ("synthetic-value", "synthetic-score", "figure-2")
    assert {f"pictures/{name}.{kind}" for name in drawn for kind in ("svg", "png")} <= names
    bins = pl.read_csv(tmp_path / "there/tables/synthetic-bins.csv")
    assert {"x", "seeds", "types", "few", "value_mean", "value_sd", "value_low", "value_high"} <= set(bins.columns)
    tokens = pl.read_csv(tmp_path / "there/runs/synthetic/default/4/tokens.csv")
    assert tokens.height == 40 and {"token", "posterior_difference", "score", "value"} <= set(tokens.columns)
    text = (tmp_path / "there/table.md").read_text()
    table = text[text.index("| Experiment") :].splitlines()
    assert (
        table[0].startswith("| Experiment |")
        and table[2].startswith("| synthetic |")
        and table[3].startswith("| frozen |")
    )
    before = (tmp_path / "there/tables/synthetic-bins.csv").read_bytes()
    _, _, err = run("reproduce", "synthetic", "frozen", "--out", "there", "--seed", "3", "--seeds", "2", "--jobs", "1")
    assert "synthetic, seed 3: " in err and "taken over from an earlier run" in err
    assert (tmp_path / "there/tables/synthetic-bins.csv").read_bytes() == before
    assert "a trial" not in text
    _, _, err = run("reproduce", "synthetic", "--out", "there", "--seed", "4", "--documents", "500", "--seeds", "1")
    assert "taken over" not in err and "a trial: at most 500" in (tmp_path / "there/table.md").read_text()
    assert (tmp_path / "there/tables/synthetic-bins.csv").read_bytes() != before


@pytest.mark.usefixtures("tiny", "undrawn")
def test_quiet_says_nothing(run: Call) -> None:
    assert run("reproduce", "synthetic", "--quiet", "--seeds", "1") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one-leyer"], "did you mean 'one-layer'"),
        (["--scale", "huge"], "--scale 'huge' is not one of quick, paper"),
        (["--data", "nowhere"], "there is no data folder 'nowhere'"),
        (["--documents", "10"], "--documents"),
        (["--seed", "-1"], "--seed"),
        (["--seeds", "0"], "--seeds"),
        (["mlp", "--reading", "residual"], "there is no reading 'residual' of these experiments"),
    ],
)
def test_bad_input_in_one_line(run: Call, arguments: list[str], said: str) -> None:
    status, out, err = run("reproduce", *arguments)
    assert (status, out) == (2, "") and said in err and len(err.splitlines()) == 1


class Page(HTMLParser):
    """Elements with their attributes, and text; every element must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def study(text: str) -> Reproduction:
    table = pl.DataFrame({"x": [0.5, None], "name": [text, text]})
    checks = (Check(text, 1.0, 0.5, paper=2.0, ceiling=0.95), Check("second", float("nan"), high=1.0))
    found = Finding(text, checks, {"other": table}, (), (text,), (Check(text, 0.875),))
    runs = tuple(Run("default", seed, {"d": text}, found, 3.5, 100.0) for seed in (1, 2))
    readings = (Reading("other", text, {}),)
    settings = {"quick": {}, "paper": {}}
    made = Experiment("one", text, text, text, settings, {}, lambda bench: found, readings=readings)
    failed = Run("other", 1, {}, None, 0.1, 100.0, text)
    one = Result(made, (Outcome("default", runs), Outcome("other", (failed,))))
    late = Result(replace(made, id="two"), problem=text)
    return Reproduction(
        text, [one, late], {"scale": "quick", "seeds": "1 2"}, 1, "9.9", "2030-01-01 10:00", {"total": 3.5}
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_page_takes_nothing_for_markup(text: str) -> None:
    page = Page(render_reproduction(study(text)))
    assert not page.open and "49" not in page.text.replace("1149", "")
    assert not [tag for tag, _ in page.elements if tag in {"script", "iframe", "link"}]
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert all(link and link.startswith("#") and link[1:] in ids for link in links)
    assert "2.00" in page.text and "at least 0.5" in page.text and "0.950" in page.text and "87.5%" in page.text
    assert "0 of 2" in page.text


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_rows_stay_rows(text: str) -> None:
    lines = markdown(study(text)).splitlines()
    lines = lines[[line.startswith("| ") for line in lines].index(True) :]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 9 for line in lines[:5]) and lines[5] == ""
    assert study(text).tally() == {"reproduced": 0, "explained": 0, "not reproduced": 1, "not run": 1}
    json.dumps(study(text).to_dict(), allow_nan=False)


@pytest.mark.slow
def test_axe_finds_nothing(browser: Any, tmp_path: Path) -> None:
    assert violations(browser, render_reproduction(study("some text")), tmp_path) == []
