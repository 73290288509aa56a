"""Two kinds of attack: names that are paths, twins or links, and a limit on open files.

Labels become folders, and folders are named by people: each such run ends well, or in one line, and
writes nothing outside of its folder.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calls import Run
from reviews import write_reviews
from tokensieve import AttentionClassifier
from tokensieve.errors import InputError
from tokensieve.progress import check_not_forked
from tokensieve.read.reader import read_corpus

LABELS = ["..", "/etc/passwd", "CON", "con", "é", unicodedata.normalize("NFD", "é")]


@pytest.mark.slow
def test_labels_that_are_paths_stay_inside_the_folder(run: Run, tmp_path: Path) -> None:
    rows = []
    for i in range(160):
        labels = [label for k, label in enumerate(LABELS) if (i + k) % 3]
        word = "fine" if i % 2 else "poor"
        rows.append(json.dumps({"text": f"a {word} film number {i}", "labels": labels}))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "many.jsonl").write_text("\n".join(rows))
    status, _, err = run(
        *"audit in/many.jsonl --text text --label labels --no-pictures --no-baseline".split(),
        *"--out results -q".split(),
    )
    assert status in (0, 2) and err.count("\n") <= 1, err
    assert {path.name for path in tmp_path.iterdir()} <= {"in", "results"}


@pytest.mark.parametrize("command", ["audit", "train", "mask --token a", "balance", "predict m"])
def test_an_empty_folder_name_is_refused(run: Run, tmp_path: Path, command: str) -> None:
    write_reviews(tmp_path / "reviews.csv", 20)
    status, _, err = run(*command.split(), "reviews.csv", "--out", "")
    assert status == 2 and "empty" in err and err.count("\n") == 1, err
    assert [path.name for path in tmp_path.iterdir()] == ["reviews.csv"]


def test_links_in_a_folder_of_texts_do_not_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    for label in ("pos", "neg"):
        (tmp_path / "texts" / label).mkdir(parents=True)
        for i in range(4):
            (tmp_path / "texts" / label / f"{i}.txt").write_text(f"a {label} film number {i}")
    inside = tmp_path / "texts" / "pos" / "inside.txt"
    inside.symlink_to(tmp_path / "texts" / "pos" / "0.txt")
    assert len(read_corpus(tmp_path / "texts").texts) == 9
    inside.unlink()
    inside.symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InputError, match="leads out of the folder"):
        read_corpus(tmp_path / "texts")


@pytest.mark.parametrize("link", ["test", "train", "train/pos", "only"])
def test_linked_folders_of_texts_do_not_lead_outside(tmp_path: Path, link: str) -> None:
    for part in ("train", "test"):
        for label in ("pos", "neg"):
            folder = tmp_path / "reviews" / part / label
            folder.mkdir(parents=True)
            for i in range(4):
                (folder / f"{i}.txt").write_text(f"a {label} {part} film number {i}")
    assert len(read_corpus(tmp_path / "reviews").texts) == 8
    source = tmp_path / "reviews"
    if link == "only":  # a folder that holds nothing but a link to the data
        source = tmp_path / "box"
        source.mkdir()
        (source / "reviews").symlink_to(tmp_path / "reviews")
    else:
        (source / link).rename(tmp_path / "moved")
        (source / link).symlink_to(tmp_path / "moved")
    with pytest.raises(InputError, match="leads out of the folder"):
        read_corpus(source)


TEXTS = [f"film {i} was {'good' if i % 2 else 'bad'}" for i in range(40)]
LABELS = [i % 2 for i in range(40)]


def _fit() -> AttentionClassifier:
    return AttentionClassifier(max_epochs=1).fit(TEXTS, LABELS)


def _predict(model: AttentionClassifier) -> None:
    model.predict(TEXTS[:1])


def _message(results: multiprocessing.Queue[str], work: Callable[..., object], *of: object) -> None:
    """Put the line with which work is refused into a queue; an empty one if it is done."""
    try:
        work(*of)
    except InputError as problem:
        results.put(str(problem))
    else:
        results.put("")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_says_at_once_what_to_do() -> None:
    model = _fit()  # this process has worked
    cases = [
        ("fork", "spawn", check_not_forked, ()),
        ("fork", "spawn", _fit, ()),
        ("fork", "spawn", _predict, (model,)),
        ("spawn", "", check_not_forked, ()),
    ]
    for method, advice, work, of in cases:
        context: Any = multiprocessing.get_context(method)
        results = context.Queue()
        child = context.Process(target=_message, args=(results, work, *of))
        child.start()
        assert advice in results.get(timeout=120)
        child.join()


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv.pop(1)),) * 2)
from tokensieve.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
@pytest.mark.parametrize("files", [8, 12, 16, 24, 32, 64])
def test_a_limit_on_open_files_is_one_line_or_nothing(tmp_path: Path, files: int) -> None:
    write_reviews(tmp_path / "reviews.csv", 120)
    command = ["train", "reviews.csv", "--out", "model", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(files), *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 1, done.stderr
    if done.returncode == 2:
        assert [path.name for path in tmp_path.iterdir()] == ["reviews.csv"]
