"""What the documents tell people to type works: every shell and Python block of README.md, docs/,
its tutorials and its pages for jobs is run.

A block runs in a folder that holds the built-in reviews: `reviews.csv` (columns body and stars) and
`new.csv` (the same, other reviews). Python blocks of one document share their names. A block that
needs what a test has not, such as a network, stands below a comment `<!-- not run: reason -->`.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from calls import Run
from tokensieve.auditing.demo import demo_reviews
from tokensieve.cli import app

HOME = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [
        HOME / "README.md",
        *(HOME / "docs").glob("*.md"),
        *(HOME / "docs" / "tutorials").glob("*.md"),
        *(HOME / "docs" / "jobs").glob("*.md"),
    ]
)
BLOCK = re.compile(
    r"(?P<skip><!-- not run: (?P<reason>[^\n]*?) -->\n+)?^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHELL = {"sh", "bash", "shell", "console"}


class Block(NamedTuple):
    line: int
    language: str
    code: str
    reason: str | None


def blocks(text: str) -> list[Block]:
    """The fenced blocks that are commands or Python; other languages, and none, are output."""
    found = []
    for match in BLOCK.finditer(text):
        language = match["language"].strip()
        if language == "python" or language in SHELL:
            found.append(
                Block(
                    text[: match.start("code")].count("\n") + 1,
                    language,
                    match["code"],
                    match["reason"],
                )
            )
    return found


def commands_of(code: str) -> list[list[str]]:
    """The words of each line of a shell block that is no remark."""
    lines = [
        shlex.split(line.removeprefix("$ "), comments=True)
        for line in code.replace("\\\n", " ").splitlines()
    ]
    return [words for words in lines if words]


def run_shell(code: str, run: Run) -> None:
    """Each line, `$ ` before it or not, must be a call of tokensieve that succeeds; with --fail-on
    it may find something."""
    for words in commands_of(code):
        text = shlex.join(words)
        target = words.index(">") if ">" in words else len(words)
        assert words[0] == "tokensieve", (
            f"{text!r} is no call of tokensieve: write `<!-- not run: reason -->` above the block"
        )
        status, out, err = run(*words[1:target])
        assert status == 0 or (status == 3 and "--fail-on" in words), (
            f"{text!r} ended with {status}: {err}"
        )
        for name in words[target + 1 :]:
            Path(name).write_text(out)


@pytest.fixture(scope="module")
def tables() -> dict[str, pl.DataFrame]:
    found = {}
    for name, seed in (("reviews.csv", 0), ("new.csv", 1)):
        reviews = demo_reviews(300, seed)
        stars = [
            (3 if i % 10 == 0 else 4 + i % 2) if y else 1 + i % 2
            for i, y in enumerate(reviews.labels)
        ]
        found[name] = pl.DataFrame({"body": reviews.texts, "stars": stars})
    return found


@pytest.fixture
def at_home(tmp_path: Path, tables: dict[str, pl.DataFrame]) -> Path:
    for name, table in tables.items():
        table.write_csv(tmp_path / name)
    return tmp_path


HELD = [d for d in DOCUMENTS if blocks(d.read_text())]
# several audits each
LONG = {
    "repair.md",
    "pipelines.md",
    "audit.md",
    "preferences.md",
    "manager.md",
    "chinese.md",
    "stars.md",
}


@pytest.mark.parametrize("document", HELD, ids=lambda d: d.name)
def test_every_command_has_the_options_that_it_is_given(document: Path, at_home: Path) -> None:
    """Each command line is parsed, not run; each name that Python imports from us is there."""
    commands: Any = app
    for block in blocks(document.read_text()):
        if block.language == "python":
            for node in ast.walk(ast.parse(block.code)):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("tokensieve"):
                    module = importlib.import_module(str(node.module))
                    assert all(hasattr(module, name.name) for name in node.names)
            continue
        for words in commands_of(block.code):
            if words[0] == "tokensieve" and len(words) > 1 and not words[1].startswith("-"):
                given = words[2 : words.index(">") if ">" in words else len(words)]
                commands.get_command(None, words[1]).make_context(words[1], given)


@pytest.mark.parametrize(
    "document",
    [pytest.param(d, marks=pytest.mark.slow if d.name in LONG else ()) for d in HELD],
    ids=lambda d: d.name,
)
@pytest.mark.usefixtures("undrawn", "quick_training")
def test_every_block_runs(document: Path, run: Run, at_home: Path) -> None:
    names: dict[str, Any] = {}
    for block in blocks(document.read_text()):
        if block.reason is not None:
            continue
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.code, str(document), "exec"), names)
        else:
            run_shell(block.code, run)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_sentences_that_the_repair_tutorial_quotes_are_printed(run: Run, at_home: Path) -> None:
    text = (HOME / "docs" / "tutorials" / "repair.md").read_text()
    printed: list[str] = []

    def noted(*words: str, **options: Any) -> tuple[int, str, str]:
        result = run(*words, **options)
        printed.extend(result[1].split())
        return result

    names: dict[str, Any] = {}
    for block in blocks(text):
        if block.reason is None and block.language == "python":
            exec(block.code, names)
        elif block.reason is None:
            run_shell(block.code, noted)
    quotes = re.findall(r"^> .*(?:\n> .*)*", text, re.MULTILINE)
    assert len(quotes) == 2
    for quote in quotes:
        assert " ".join(quote.replace("\n> ", " ").split()[1:]) in " ".join(printed)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn", "quick_training")
def test_the_notebook_runs_and_each_last_value_can_be_shown() -> None:
    notebook = json.loads((HOME / "docs" / "notebook.ipynb").read_text())
    names: dict[str, Any] = {}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "outputs are not stored"
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "notebook", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
            shown.append(value._repr_html_())
    assert len(shown) == 4 and "tablet" in shown[0] and "srcdoc" in shown[0]


def test_readme_has_blocks_and_every_exception_a_reason() -> None:
    found = [block for document in DOCUMENTS for block in blocks(document.read_text())]
    assert any(block.reason is None for block in found)
    assert all(block.reason is None or len(block.reason.split()) > 1 for block in found)


def test_no_audit_of_the_readme_writes_over_another_and_a_comparison_follows() -> None:
    lines = [
        words
        for block in blocks((HOME / "README.md").read_text())
        for words in commands_of(block.code)
        if block.language in SHELL
    ]
    audits = [
        words for words in lines if words[:2] == ["tokensieve", "audit"] and "--pairs" not in words
    ]
    folders = [
        words[words.index("--out") + 1] if "--out" in words else "tokensieve-audit"
        for words in audits
    ]
    [compared] = [words[2:] for words in lines if words[:2] == ["tokensieve", "compare"]]
    assert len(set(folders)) == len(folders) > 2 and compared[:2] == folders[:2]


TEXT = (
    "a\n\n```sh\ntokensieve --version  # shown\n```\n\n```\noutput\n```\n<!-- not run: no network "
    "-->\n```python\nx = 1\n```\n"
)


def test_blocks_are_found_with_their_lines() -> None:
    assert blocks(TEXT) == [
        Block(4, "sh", "tokensieve --version  # shown\n", None),
        Block(12, "python", "x = 1\n", "no network"),
    ]


def test_a_command_that_fails_is_noticed(run: Run, tmp_path: Path) -> None:
    run_shell("$ tokensieve --version > out.txt\n\n# a remark\n", run)
    assert (tmp_path / "out.txt").read_text().startswith("tokensieve 0")
    with pytest.raises(AssertionError, match="ended with 2"):
        run_shell("tokensieve audit nowhere.csv", run)
    with pytest.raises(AssertionError, match="not run: reason"):
        run_shell("make test", run)
