"""The options of every command: a contract that later versions keep."""

from __future__ import annotations

import re

import pytest

from tokensieve.cli import app

READ = "--text --label --group --drop --encoding"
PARTS = "--test --split"
TOKENS = "--ngrams --min-documents --tokenizer --keep-case"
ENDS = "--seed --out --quiet -q"
FIRST = {  # command → arguments in order | options, as version 0.1 has them
    "demo": f" | --ngrams {ENDS}",
    "audit": f"source | {READ} {PARTS} {TOKENS} {ENDS} --duplicates --stream --baseline "
    "--no-baseline --fail-on --pictures --no-pictures",
    "train": f"source | {READ} {PARTS} {TOKENS} {ENDS} --duplicates --stream --cluster",
    "predict": "model source | --text --encoding --out --quiet -q",
    "explain": "model text | --label --json",
    "mask": "source | --out --token --audit --text --encoding --tokenizer --keep-case --quiet -q",
    "verify": f"source | {READ} {ENDS} --ngrams --min-documents --documents --types --relevant "
    "--length --d --eta --max-norm --max-seconds --resume",
    "reproduce": f"experiments | {ENDS} --data --scale --documents --list",
    "diagnose": f"model source | {READ} {PARTS} {ENDS} --map --min-documents --max-documents "
    "--max-length --long --batch-size --deletions --untrained --no-untrained "
    "--device --trust-remote-code --resume",
}


@pytest.mark.parametrize("name", FIRST)
def test_every_option_of_the_first_version_is_still_there(name: str) -> None:
    arguments, options = (part.split() for part in FIRST[name].split("|"))
    parameters = app.get_command(None, name).params
    assert [p.name for p in parameters if p.param_type_name == "argument"][
        : len(arguments)
    ] == arguments
    present = {
        o for p in parameters if p.param_type_name == "option" for o in (*p.opts, *p.secondary_opts)
    }
    assert set(options) <= present


@pytest.mark.parametrize("name", FIRST)
def test_help_shows_every_option_with_an_explanation(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app(args=[name, "--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    for option in FIRST[name].split("|")[1].split():
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown), option
    parameters = app.get_command(None, name).params
    assert all(getattr(p, "help", None) or p.explained for p in parameters)


@pytest.mark.parametrize("name", ["audit", "train"])
def test_the_step_size_of_the_values_is_an_option(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app(args=[name, "--help"], standalone_mode=False)
    words = " ".join(capsys.readouterr().out.partition("--value-rate")[2].split())
    assert "[default: 0.1" in words[:100]
