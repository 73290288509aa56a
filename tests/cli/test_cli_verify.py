"""`tokensieve verify` as its user meets it: results, files, messages, exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from artefacts import Artefact
from reviews import write_reviews
from tokensieve import __version__

pytestmark = pytest.mark.usefixtures("undrawn")

Run = Callable[..., tuple[int, str, str]]
SMALL = "--documents 60 --types 24 --length 5 --relevant 6 --d 256 --max-norm 400".split()
FILES = {
    "report.html",
    "summary.json",
    "tokens.csv",
    "flow.csv",
    "support.csv",
    "gaps.csv",
    "pictures",
} | {
    "certificate.json",
    "certificate.npz",
}


def test_generated_documents(shared_verification: Artefact) -> None:
    out, folder = shared_verification.result, shared_verification.folder
    assert out.count("\nholds: ") == 5 and "All 7 hypotheses of the theory hold" in out
    assert {p.name for p in folder.iterdir()} == FILES
    summary = json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail)
    assert summary["version"] == __version__ and summary["seed"] == 2
    assert (
        summary["settings"] | {"documents": 60, "types": 24, "d": 256, "max_norm": 400.0}
        == summary["settings"]
    )
    assert (
        summary["flow"]["norm"] == pytest.approx(400, rel=1e-6)
        and summary["margin"]["status"] == "solved"
    )
    assert set(summary["seconds"]) >= {"reading", "one step", "flow", "margin", "report", "total"}
    curve, tokens = pl.read_csv(folder / "flow.csv"), pl.read_csv(folder / "tokens.csv")
    assert curve["norm"][-1] == pytest.approx(summary["flow"]["norm"])
    assert curve["angle"][-1] == pytest.approx(summary["flow"]["angle"])
    assert tokens.height == 24 and tokens["selected_in"].sum() == 60
    assert pl.read_csv(folder / "support.csv").height == summary["margin"]["support_pairs"]


@pytest.mark.slow
def test_a_source_with_grouped_labels(run: Run, tmp_path: Path) -> None:
    write_reviews(tmp_path / "r.csv", 200, stars=True)
    groups = "--label stars --group neg=1,2 --group pos=4,5".split()
    status, out, err = run(
        "verify",
        "r.csv",
        *groups,
        "--out",
        "o",
        "--d",
        "64",
        "--max-norm",
        "5",
        "--min-documents",
        "30",
    )
    assert (status, err) == (0, "")
    assert "hypotheses of the theory fail" in out and "for example rows" in out
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert set(summary["classes"]) == {"neg", "pos"} and summary["documents"] == 200
    assert summary["settings"]["min_documents"] == 30 and summary["settings"]["d"] == 64
    failing = [item for item in summary["assumptions"] if not item["holds"]]
    assert failing and all(1 <= row <= 200 for item in failing for row in item["rows"])
    assert pl.read_csv(tmp_path / "o" / "tokens.csv").height == summary["token_types"]


@pytest.mark.slow
def test_a_flow_goes_on_where_it_stopped_and_nothing_stale_stays(run: Run, tmp_path: Path) -> None:
    assert run("verify", *SMALL, "-q") == (0, "", "")
    folder = tmp_path / "tokensieve-verify"
    whole = pl.read_csv(folder / "flow.csv")
    assert (folder / "pictures" / "angle.svg").exists()
    (folder / "pictures" / "mine.png").touch()

    status, out, _ = run("verify", *SMALL, "--max-norm", "6", "--resume", "flow.npz")
    assert status == 0 and "needs a longer run" in out and (tmp_path / "flow.npz").exists()
    left = {p.name for p in (folder / "pictures").iterdir()}
    assert not left & {"angle.svg", "angle.png"} and left >= {"norm.svg", "mine.png"}
    assert pl.read_csv(folder / "support.csv").is_empty()

    assert run("verify", *SMALL, "--resume", "flow.npz", "-q") == (0, "", "")
    again = pl.read_csv(folder / "flow.csv")
    for name in ("norm", "log_time", "angle"):
        assert again[name][-1] == pytest.approx(whole[name][-1], rel=1e-3)

    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    status, out, err = run("verify", *SMALL, "--resume", "flow.npz", "--eta", "100")
    assert (status, out) == (2, "") and err.count("\n") == 1 and "data, settings or" in err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_spent_budget_says_how_to_go_on(run: Run) -> None:
    status, out, _ = run("verify", *SMALL, "--max-seconds", "1e-9")
    assert status == 0 and out.count("needs a longer run") >= 3
    assert "--max-seconds; --resume FILE" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--relevant", "100"], "100 relevant types leave -30 others"),
        (["--relevant", "21"], "even number"),
        (["--length", "60"], "use 1 ≤ T ≤ 51"),
        (["--documents", "10"], "use more"),
        (["--d", "0"], "--d"),
        (["--eta", "1e300"], "overflows: use a smaller step size"),
        (["--eta", "nan"], "not a positive number"),
        (["--max-norm", "inf"], "must be positive numbers"),
        (["--max-seconds", "0"], "must be positive numbers"),
        (["--text", "body"], "from a SOURCE"),
        (["--min-documents", "3"], "--min-documents"),
        (["five.csv", "--types", "9"], "leave out the SOURCE"),
        (["five.csv", "--label", "stars"], "has 4: merge them with --group"),
        (["five.csv", "--group", "x"], "NEW=OLD"),
        (["nowhere.csv"], "no file or folder"),
        (["same.csv", "--min-documents", "1"], "no signal"),
        (["--resume", "no/such/flow.npz"], "existing folder"),
        (["--resume", "five.csv"], "cannot be read as a checkpoint"),
        (["--out", "five.csv"], "is a file; name a folder"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_reviews(tmp_path / "five.csv", 60, stars=True)
    (tmp_path / "same.csv").write_text("text,label\n" + "a b,1\na b,0\n" * 3)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    status, out, err = run("verify", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("tokensieve: ") and err.count("\n") == 1 and message in err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_documents_of_one_token_get_an_honest_verdict(run: Run, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("text,label\n" + "good,1\nbad,0\n" * 20)
    status, out, err = run("verify", "one.csv", "--d", "64", "--min-documents", "2")
    assert (status, err) == (0, "")
    assert "no score can change the" in out and "40 a single token type" in " ".join(out.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("yelp.parquet", "--label stars --group neg=1,2 --group pos=4,5 --drop 3"),
        ("imdb_train.parquet", "--label label"),
    ],
)
def test_real_reviews(run: Run, tmp_path: Path, name: str, options: str) -> None:
    data = (
        Path(os.environ.get("TOKENSIEVE_DATA", Path(__file__).parents[3] / "shared" / "data"))
        / name
    )
    if not data.exists():
        pytest.skip(f"{data} is not there")
    pl.read_parquet(data).sample(1000, seed=0).write_parquet(tmp_path / "sample.parquet")
    status, out, err = run(
        "verify", "sample.parquet", *options.split(), "--d", "128", "--max-seconds", "5"
    )
    assert (status, err) == (0, "")
    summary = json.loads(
        (tmp_path / "tokensieve-verify" / "summary.json").read_text(), parse_constant=pytest.fail
    )
    assert summary["one_step"]["bound_holds"] and summary["one_step"]["r2"] > 0.9
    assert {item["holds"] for item in summary["assumptions"]} >= {True, False}
    assert "hypotheses of the theory fail" in out
