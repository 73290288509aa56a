"""`tokensieve diagnose` as a whole: files, page, bad input."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from calls import later
from pages import HOSTILE, Page, pictures_in, violations
from tokensieve import __version__
from tokensieve.cli.command import progress_bar
from tokensieve.cli.diagnose import _models
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose, load, run
from tokensieve.diagnose.subjects.libraries import untrained_twin
from tokensieve.diagnose.subjects.outputs import Outputs
from tokensieve.errors import InputError
from tokensieve.report.html import page as html_page
from tokensieve.report.pictures import specification

torch = later("torch")
tf = later("transformers")
tensors = later("safetensors.torch")

Run = Callable[..., tuple[int, str, str]]
QUICK = ["--min-documents", "5", "--batch-size", "64"]


def broken(home: Path, name: str, change: Callable[[Path], None]) -> str:
    folder = home / name
    if not folder.exists():
        shutil.copytree(home / "model", folder)
        change(folder)
    return str(folder)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_everything_is_written(run: Run, home: Path, tmp_path: Path) -> None:
    status, out, err = run("diagnose", str(home / "model"), str(home / "held.csv"), *QUICK)
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    assert (
        "This model has learned to predict the label" in flat
        and "no document was truncated" in flat
    )
    folder = tmp_path / "tokensieve-diagnose"
    assert {p.name for p in folder.iterdir()} == {
        "summary.json",
        "tokens.csv",
        "uses.csv",
        "leaning.csv",
        "forms.csv",
        "model-card.md",
        "report.html",
        "pictures",
    }
    pictures = {"decides.svg", "decides.png", "moves.svg", "moves.png"}
    assert {p.name for p in (folder / "pictures").iterdir()} == pictures
    summary = json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail)
    assert (
        summary["version"] == __version__
        and summary["learned"] is True
        and summary["truncated_documents"] == 0
    )
    assert (
        summary["correlation"]["value_importance"]
        > summary["baselines"]["untrained"]["value_importance"][2]
    )
    table = pl.read_csv(folder / "tokens.csv")
    assert table.height == 2 * summary["tokens"] and set(table["class"]) == {"negative", "positive"}
    mine = table.filter(pl.col("class") == "positive")
    assert mine.select(pl.corr("value", "importance")).item() == pytest.approx(
        summary["correlation"]["value_importance"], abs=1e-4
    )
    attention = mine.select(pl.corr(pl.col("attention").log(), pl.col("importance").abs())).item()
    assert attention == pytest.approx(summary["correlation"]["attention_importance"], abs=1e-4)
    page = Page((folder / "report.html").read_text())
    # of the other sentences the pictures and tables of the page show the numbers
    assert not page.open and summary["verdict"][0] in page.text
    # the first line after the title is the headline, which the page and the summary share
    assert summary["headline"] in page.text and flat.split("on held.csv ")[1].startswith(
        summary["headline"]
    )
    assert "attention, layer" not in page.text and "carries the label, attended" not in page.text


@pytest.mark.slow
def test_windows_mapping_and_resuming(run: Run, home: Path, tmp_path: Path) -> None:
    arguments = [
        "diagnose",
        str(home / "model"),
        str(home / "other.csv"),
        "--map",
        "up=Negative",
        "--map",
        "down=1",
        *QUICK,
    ]
    status, out, err = run(
        *arguments,
        "--long",
        "windows",
        "--max-length",
        "30",
        "--no-untrained",
        "--resume",
        "w.safetensors",
    )
    assert (status, err) == (0, "") and "were read in windows" in " ".join(out.split())
    first = (tmp_path / "tokensieve-diagnose" / "tokens.csv").read_bytes()
    assert (tmp_path / "w.safetensors").exists()
    again = run(
        *arguments,
        "--long",
        "windows",
        "--max-length",
        "30",
        "--no-untrained",
        "--resume",
        "w.safetensors",
        "-q",
    )
    assert (
        again == (0, "", "")
        and (tmp_path / "tokensieve-diagnose" / "tokens.csv").read_bytes() == first
    )
    summary = json.loads((tmp_path / "tokensieve-diagnose" / "summary.json").read_text())
    assert summary["accuracy"] > 0.6 and summary["baselines"]["untrained"] is None


def nan(folder: Path) -> None:
    weights = tensors.load_file(folder / "model.safetensors")
    max(weights.values(), key=lambda x: x.numel()).view(-1)[3] = float("nan")
    tensors.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def headless(folder: Path) -> None:
    weights = {
        name: w
        for name, w in tensors.load_file(folder / "model.safetensors").items()
        if not name.startswith("classifier")
    }
    tensors.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def without_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def remote(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "my-own",
        "auto_map": dict.fromkeys(("AutoConfig", "AutoModelForSequenceClassification"), "mine.My"),
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text("raise SystemExit('ran foreign code')\n")


def larger_vocabulary(folder: Path) -> None:
    made = json.loads((folder / "tokenizer.json").read_text())
    made["model"]["vocab"]["Ġthe"] = 5000
    (folder / "tokenizer.json").write_text(json.dumps(made))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (nan, "1 of "),
        (headless, "contains no trained classifier"),
        (pickled, "pytorch_model.bin is a pickle"),
        (without_tokenizer, "contains no tokenizer"),
        (lambda f: (f / "config.json").unlink(), "contains no model (config.json)"),
        (lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 99), "cannot be loaded"),
        (remote, "--trust-remote-code"),
        (larger_vocabulary, "use its own tokenizer"),
    ],
    ids="nan headless pickled tokenizer config json weights remote vocabulary".split(),
)  # fmt: skip
def test_broken_models(
    run: Run,
    home: Path,
    tmp_path: Path,
    change: Callable[[Path], None],
    message: str,
    request: pytest.FixtureRequest,
) -> None:
    folder = broken(home, request.node.callspec.id, change)
    status, out, err = run("diagnose", folder, str(home / "held.csv"), *QUICK)
    assert (
        (status, out) == (2, "")
        and err.startswith("tokensieve: ")
        and err.count("\n") == 1
        and message in err
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "three.csv"], "2 classes with --group"),
        (
            ["model", "held.csv", "--map", "negative=Positive", "--map", "positive=0"],
            "with --map negative=Negative",
        ),
        (["model", "swapped.csv"], "% with --map 0=Positive --map 1=Negative"),
        (["model", "other.csv"], "the predictions match --map down=Positive --map up=Negative"),
        (["model", "other.csv", "--map", "up=Positive"], "must name each class once"),
        (["model", "other.csv", "--map", "up"], "CLASS=OUTPUT"),
        (["model", "few.csv"], "too few to diagnose"),
        (["model", "held.csv", "--min-documents", "1000"], "lower --min-documents"),
        (["model", "held.csv", "--long", "skip"], "'truncate', 'windows'"),
        (["model", "held.csv", "--max-length", "3"], "no room for text"),
        (["model", "held.csv", "--device", "nowhere"], "device 'nowhere' is not available"),
        (["model", "held.csv", "--device", "meta"], "device 'meta' is not available"),
        (["model", "held.csv", "--resume", "no/such/file.npz"], "existing folder"),
        (["model", "nowhere.csv"], "no file or folder"),
        (["held.csv", "held.csv"], "is a file; name the folder"),
        (["./nowhere", "held.csv"], "there is no folder './nowhere'"),
        (
            ["model", "held.csv", "--template", "{text}"],
            "name the word for each class with --label-words",
        ),
        (["model", "held.csv", "--label-words", "good"], "negative=terrible,positive=great"),
        (["model", "held.csv", "--pairs", "text"], "must name two different columns"),
        (
            ["model", "held.csv", "--pairs", "text,label", "--drop", "x"],
            "--drop is for labelled documents",
        ),
        (
            ["model", "held.csv", "--pairs", "text,label", "--text", "text"],
            "the column of the prompt",
        ),
        (["model", "held.csv", "--pairs", "text,label"], "a model with a single output, a reward"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    run: Run, home: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "model").symlink_to(home / "model")
    for path in home.glob("*.csv"):
        (tmp_path / path.name).symlink_to(path)
    before = sorted(tmp_path.iterdir())
    status, out, err = run("diagnose", *arguments, "--batch-size", "64")
    assert (status, out) == (2, "")
    assert (
        err.startswith("tokensieve: ") and err.count("\n") == 1 and message in " ".join(err.split())
    )
    assert sorted(tmp_path.iterdir()) == before


def test_matching_classes() -> None:
    assert Outputs.match(["neg", "pos"], ["POS", "NEG"]).order == (1, 0)
    numbered = Outputs.match(["0", "1"], ["good", "poor"])
    assert numbered.order == (0, 1) and not numbered.named
    asked = Outputs.match(["a", "b"], ["x", "y"], {"a": "y", "b": "0"})
    assert asked.order == (1, 0) and not asked.named
    some = Outputs.match(["neg", "pos"], ["neu", "pos", "neg"])
    assert some.order == (2, 1) and "unused: neu" in some.note.replace("'", "")


def test_a_slow_tokenizer_and_a_foreign_object(home: Path) -> None:
    model, _ = load(str(home / "model"))
    with pytest.raises(InputError, match="no character offsets"):
        diagnose(
            model, object(), ["a b", "c d"] * 20, [0, 1] * 20, DiagnoseSettings(min_documents=1)
        )
    with pytest.raises(InputError, match="cannot diagnose a dict"):
        diagnose({}, None, ["a b", "c d"] * 20, [0, 1] * 20)


def test_without_the_libraries_the_extra_is_named(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    status, out, err = run("diagnose", str(home / "model"), str(home / "held.csv"))
    assert (status, out) == (2, "") and "pip install 'tokensieve[transformers]'" in err


def test_out_of_memory_says_what_to_lower(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any, **named: Any) -> None:
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"
        )

    monkeypatch.setattr("tokensieve.diagnose.subjects.reader.Reader._received", full)
    status, _, err = run("diagnose", str(home / "model"), str(home / "held.csv"), *QUICK)
    assert status == 2 and "out of memory on " in err and "lower --batch-size" in err


def test_the_picture_draws_what_the_table_holds(found: Diagnosis) -> None:
    decides, moves = pictures_in(found)
    occurs = pl.col("move").is_not_null() & (pl.col("documents") > 0)
    for picture, table, column in (
        (decides, found.most_deciding, "share"),
        (moves, found.uses.filter(occurs), "move"),
    ):
        rows = specification(picture)["datasets"]["words"]
        top = table.head(len(rows))
        scale = 100 if column == "share" else 1  # shares are drawn in percent
        for drawn, name in (("x", column), ("low", f"{column}_low")):
            values = [row[drawn] for row in rows]
            assert values == pytest.approx([scale * value for value in top[name].to_list()])


@pytest.mark.usefixtures("undrawn")
def test_hostile_text_stays_text(found: Diagnosis) -> None:
    def foreign(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(
            token=pl.Series((HOSTILE * frame.height)[: frame.height], dtype=pl.String)
        )

    hostile = replace(
        found,
        name=HOSTILE[0],
        model=HOSTILE[1],
        notes=HOSTILE,
        tokens=foreign(found.tokens),
        uses=foreign(found.uses),
    )
    page = Page(html_page(hostile.report(), {}))
    assert not page.open and not {"iframe", "object", "link", "base"} & {
        tag for tag, _ in page.elements
    }
    assert HOSTILE[0] in page.text and "{{7*7}}" in page.text


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_two_checkpoints_are_compared(run: Run, home: Path, tmp_path: Path) -> None:
    saved = tmp_path / "runs"
    model, tokenizer = load(str(home / "model"))
    for step, one in ((10, untrained_twin(model, 3)), (20, model)):
        one.config.id2label = {0: "negative", 1: "positive"}
        one.save_pretrained(saved / f"checkpoint-{step}")
        tokenizer.save_pretrained(saved / f"checkpoint-{step}")
    options = [*QUICK, "--no-untrained", "--fail-on", "share=2%"]
    status, out, err = run("diagnose", str(saved), str(home / "held.csv"), *options)
    assert (
        status == 3
        and "words that account for more than 2.0% of all use: " in err
        and "tablet" in err
    )
    flat = " ".join(out.split())
    assert (
        "2 models compared on held.csv" in flat
        and "Words used more" in flat
        and "Words used less" not in flat
    )
    assert (
        "model accuracy unsupported uses most" in flat
    )  # as wide as a terminal; six columns were cut off
    folder = tmp_path / "tokensieve-diagnose"
    tables = {"report.html", "models.csv", "words.csv", "summary.json"}
    assert {p.name for p in folder.iterdir()} == tables | (
        {"pictures"} if (folder / "pictures").exists() else set()
    )
    models, words = pl.read_csv(folder / "models.csv"), pl.read_csv(folder / "words.csv")
    assert (
        models["learned"].to_list() == [False, True]
        and models["accuracy"][1] > models["accuracy"][0]
    )
    assert (
        "tablet" in words.filter(pl.col("change") > 0)["token"].to_list()
        and (words["low"] > 0).all()
    )
    page = Page((folder / "report.html").read_text())
    assert not page.open and "tablet" in page.text
    summary = json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail)
    assert [row["model"].rpartition("/")[2] for row in summary["models"]] == [
        "checkpoint-10",
        "checkpoint-20",
    ]
    steps = [str(saved / f"checkpoint-{step}") for step in (10, 20)]
    assert (
        _models(steps[::-1]) == _models([str(saved)]) == steps
    )  # as a shell's checkpoint-* gives them
    assert _models([steps[1], str(home / "model")]) == [steps[1], str(home / "model")]


@pytest.mark.slow
def test_a_trainer_logs_what_is_learned(home: Path) -> None:
    from tokensieve.diagnose import DiagnoseCallback

    table, logged = pl.read_csv(home / "held.csv").head(80), []
    model, tokenizer = load(str(home / "model"))

    class Quiet:
        processing_class = tokenizer

        def log(self, entry: dict[str, float]) -> None:
            logged.append(entry)

    settings = DiagnoseSettings(min_documents=5, batch_size=64, untrained=False)
    call = DiagnoseCallback(Quiet(), table["text"].to_list(), table["label"].to_list(), settings)
    handler = tf.trainer_callback.CallbackHandler([call], model, tokenizer, None, None)
    state, control = tf.TrainerState(global_step=7), tf.TrainerControl()
    arguments = tf.trainer_callback.TrainerControl()
    handler.on_evaluate(arguments, state, control, metrics={})
    assert set(logged[0]) == {
        f"diagnose/{name}" for name in "value auc learned unsupported top_share".split()
    }
    assert logged[0]["diagnose/auc"] > 0.7 and call.found[0][0] == 7


@pytest.mark.slow
def test_axe_finds_nothing(browser: Any, found: Diagnosis, tmp_path: Path) -> None:
    assert violations(browser, html_page(found.report(), {}), tmp_path) == []


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_preference_pairs_from_columns(run: Run, tmp_path: Path) -> None:
    from diagnose_models import build, save

    words = [f"w{i}" for i in range(12)]
    rows = [
        (f"ask {i % 7}", " ".join(words[i % 5 : i % 5 + 6]), " ".join(words[i % 4 + 2 : i % 4 + 8]))
        for i in range(40)
    ]
    pl.DataFrame(rows, schema=["prompt", "chosen", "rejected"], orient="row").write_csv(
        tmp_path / "pairs.csv"
    )
    save(*build("bert", [" ".join(row) for row in rows], classes=1), tmp_path / "reward")
    options = ["--pairs", "chosen,rejected", "--text", "prompt", "--no-untrained", *QUICK]
    status, _, err = run("diagnose", "reward", "pairs.csv", *options)
    assert status == 0 and "tokensieve:" not in err
    summary = json.loads((tmp_path / "tokensieve-diagnose" / "summary.json").read_text())
    assert summary["classes"] == ["rejected", "chosen"] and summary["documents"]["read"] > 60
    assert "ask" not in pl.read_csv(tmp_path / "tokensieve-diagnose" / "tokens.csv")["token"]
    assert "\x1f" not in (tmp_path / "tokensieve-diagnose" / "report.html").read_text()


def test_an_estimate_is_a_line_before_the_work_starts(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal nothing was written for half a minute, and the estimate never."""
    estimate = "the model reads 1,000 documents; expect about 4 min on one core"
    with progress_bar(False, lines=True) as tell:
        tell("reading", 0.0)
        tell(estimate, 0.0)
        tell("effects", 0.4)
    assert capsys.readouterr().err == f"{estimate}\n"


@pytest.mark.slow
def test_the_time_of_a_large_model_is_estimated(
    trained: Any, reviews: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "affordable_passes", lambda *given: 0.5 * given[-1])
    seen: list[str] = []
    diagnose(
        *trained, reviews.texts.to_list()[:40], reviews.labels[:40].tolist(), DiagnoseSettings(min_documents=5),
        progress=lambda stage, share: seen.append(stage),
    )  # fmt: skip
    assert any(
        re.fullmatch(r"the model reads 40 documents; expect about \d+ min on one core", one)
        for one in seen
    )
