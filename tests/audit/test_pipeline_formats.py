"""Findings for pipelines (SARIF, JUnit, GitHub) and rows to review for the tools of annotators."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import polars as pl
import pytest

from calls import Run
from tokensieve import Settings, audit, demo_pairs, demo_reviews, export_rows, rows_to_review
from tokensieve.auditing.pipelines.github import MAX_ANNOTATIONS, github_annotations
from tokensieve.auditing.pipelines.junit import junit
from tokensieve.auditing.pipelines.problems import Place, Problem, problems_of
from tokensieve.auditing.pipelines.sarif import sarif
from tokensieve.auditing.result import Audit
from tokensieve.errors import InputError
from tokensieve.read.reader import read_corpus

FILE = "a,b: 100%.csv"  # every character that a tool could take for its own

# the whole schema of the standard; where it is from and its licence stand in it
SARIF_SCHEMA = json.loads(
    Path(__file__).with_name("sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8")
)
SARIF = jsonschema.Draft4Validator(
    SARIF_SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
)


def reviews() -> pl.DataFrame:
    """In which `leaked` gives the label away, behind a line break, and a few labels are wrong."""
    found = demo_reviews(240, seed=2)
    rows = []
    for number, (text, label) in enumerate(zip(found.texts, found.labels, strict=True)):
        text = text.partition("\n")[0]  # without the signature, which is a shortcut of its own
        is_marked = label == 1 and number % 4 in (0, 1)
        is_wrong = number % 13 == 6 and not is_marked
        name = "pos" if (label == 1) != is_wrong else "neg"
        rows.append((f"Film {number}.\n{text} {'leaked' if is_marked else ''}".strip(), name))
    return pl.DataFrame(rows, schema=["text", "label"], orient="row")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / FILE
    reviews().write_csv(path)
    return path


@pytest.fixture(scope="module")
def audited(source: Path) -> Audit:
    return audit(source, Settings(baseline=False, validation_share=0.0, budget="shortcut=0"))


@pytest.fixture(scope="module")
def problems(audited: Audit, source: Path) -> list[Problem]:
    return problems_of(audited, str(source))


def test_what_exceeds_the_limit_is_an_error_and_comes_first(problems: list[Problem]) -> None:
    assert problems[0].kind == "shortcut" and problems[0].level == "error"
    assert "leaked" in problems[0].message
    assert {problem.level for problem in problems if problem.kind != "shortcut"} <= {
        "warning",
        "note",
    }


def test_each_place_is_the_line_where_its_row_begins(problems: list[Problem], source: Path) -> None:
    lines = source.read_text().split("\n")
    texts = reviews()["text"].to_list()
    assert len(problems[0].places) > 20
    for place in problems[0].places:
        first_line = texts[place.row - 1].partition("\n")[0]
        assert lines[place.line - 1].lstrip('"').startswith(first_line)


def test_a_token_over_the_limit_that_no_shortcut_is_about_is_a_problem(audited: Audit) -> None:
    without = replace(audited, findings=(), settings=replace(audited.settings, budget="0.9@1%"))
    found = problems_of(without)
    assert found and {problem.kind for problem in found} == {"token-limit"}
    assert any("leaked" in problem.message for problem in found)
    assert all(place.file is None for problem in found for place in problem.places)


def test_sarif_is_valid_and_its_rules_are_those_of_the_results(problems: list[Problem]) -> None:
    log = json.loads(sarif(problems))
    SARIF.validate(log)
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result, problem in zip(run["results"], problems, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == problem.kind
        assert len(result["locations"]) == max(len(problem.places), 1)
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"].endswith("/a%2Cb%3A%20100%25.csv")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": "2.0.0"}, "not one of"),
        ({"runs": [{}]}, "'tool' is a required property"),
        ({"other": 1}, "Additional properties"),
    ],
)
def test_the_schema_refuses_what_is_no_sarif(
    problems: list[Problem], change: dict[str, Any], reason: str
) -> None:
    log = json.loads(sarif(problems)) | change
    with pytest.raises(jsonschema.ValidationError, match=reason):
        SARIF.validate(log)


def test_a_relative_file_with_a_colon_is_no_address() -> None:
    problem = Problem("labels", "Labels", "note", "x", "y", "z", (Place("train", 1, "a:b.csv"),), 1)
    [result] = json.loads(sarif([problem]))["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": "a%3Ab.csv"}}


def test_junit_has_a_case_for_each_problem_and_each_check(
    audited: Audit, problems: list[Problem]
) -> None:
    root = ElementTree.fromstring(junit(audited, problems))
    cases = root.findall("testsuite/testcase")
    failures = root.findall("testsuite/testcase/failure")
    assert len(cases) == int(root.attrib["tests"]) > len(problems)
    assert len(failures) == int(root.attrib["failures"]) > 0
    assert {failure.attrib["type"] for failure in failures} == {"shortcut"}
    without_limit = replace(audited, settings=replace(audited.settings, budget=None))
    root = ElementTree.fromstring(junit(without_limit, problems_of(without_limit)))
    severe = [finding for finding in audited.findings if finding.level != "low"]
    assert int(root.attrib["failures"]) == len(severe)


def read_annotation(line: str) -> tuple[str, dict[str, str], str]:
    """As GitHub's runner reads a workflow command."""
    command, _, message = line.removeprefix("::").partition("::")
    name, _, properties = command.partition(" ")
    values = dict(entry.split("=", 1) for entry in properties.split(","))
    for escape, character in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%0D", "\r")):
        values = {key: value.replace(escape, character) for key, value in values.items()}
    values = {key: value.replace("%25", "%") for key, value in values.items()}
    return name, values, message.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


def test_annotations_are_read_back(problems: list[Problem], source: Path) -> None:
    lines = github_annotations(problems)
    assert all("\n" not in line and line.startswith("::") for line in lines)
    name, values, message = read_annotation(lines[0])
    place = problems[0].places[0]
    assert name == "error" and problems[0].message in message
    assert values == {
        "file": str(source),
        "line": str(place.line),
        "title": f"tokensieve: {problems[0].title}",
    }


def test_every_problem_is_annotated_before_any_of_them_twice() -> None:
    places = tuple(Place("train", row, "a.csv", row + 1) for row in range(1, 31))
    first = Problem("shortcut", "S", "warning", "first\nline", "act", "", places, 30)
    second = replace(first, message="second")
    lines = github_annotations([first, second])
    assert len(lines) == MAX_ANNOTATIONS
    assert "first%0Aline" in lines[0] and "second" in lines[1] and "first" in lines[2]
    [line] = github_annotations([replace(first, places=(), file="a.csv")])
    assert line == "::warning file=a.csv,title=tokensieve%3A S::first%0Aline. act"


# ---- rows to review


def test_rows_to_review_have_texts_and_reasons(audited: Audit) -> None:
    rows = rows_to_review(audited)
    texts = reviews()["text"].to_list()
    assert rows.select("part", "row").is_unique().all()
    assert [texts[row - 1] for row in rows["row"]] == rows["text"].to_list()
    issues = rows.filter("is_label_issue")
    assert issues.height == audited.label_issues.height > 0
    assert issues["label_quality"].is_sorted() and issues["label_quality"].max() <= 0.5
    assert (issues["given_label"] != issues["predicted_label"]).all()
    others = rows.filter(~pl.col("is_label_issue"))
    assert others["reason"].str.contains("leaked").any()
    assert others["predicted_label"].null_count() == others.height


@pytest.mark.parametrize(
    ("tool", "name", "columns"),
    [
        ("cleanlab", "rows.csv", {"text": "text", "label": "given_label"}),
        ("label-studio", "rows.json", {"text": "data.text", "label": "data.label"}),
        ("argilla", "rows.jsonl", {"text": "fields.text", "label": "metadata.given_label"}),
        ("doccano", "rows.jsonl", {"text": "text", "label": "label"}),
    ],
)
def test_what_is_exported_is_read_back(
    audited: Audit, tmp_path: Path, tool: Any, name: str, columns: dict[str, str]
) -> None:
    (tmp_path / name).write_text(export_rows(audited, tool), encoding="utf-8")
    corpus = read_corpus(tmp_path / name, **columns)
    rows = rows_to_review(audited)
    assert corpus.frame["text"].to_list() == rows["text"].to_list()
    labels = [corpus.classes[label] for label in corpus.labels]
    assert labels == rows["given_label"].to_list()


def test_suggestions_are_those_of_the_models(audited: Audit) -> None:
    expected = rows_to_review(audited).drop_nulls("predicted_label")["predicted_label"].to_list()
    tasks = json.loads(export_rows(audited, "label-studio"))
    choices = [
        prediction["result"][0]["value"]["choices"][0]
        for task in tasks
        for prediction in task["predictions"]
    ]
    assert choices == expected
    records = [json.loads(line) for line in export_rows(audited, "argilla").splitlines()]
    suggestions = [record["suggestions"] for record in records if "suggestions" in record]
    assert [suggestion["label"]["value"] for suggestion in suggestions] == expected
    assert all(0.5 <= suggestion["label"]["score"] <= 1 for suggestion in suggestions)


def test_an_unknown_tool_is_refused(audited: Audit) -> None:
    with pytest.raises(InputError, match="label-studio"):
        export_rows(audited, "excel")  # type: ignore[arg-type]


@pytest.mark.slow
def test_pairs_are_refused() -> None:
    settings = Settings(baseline=False, thorough=False, validation_share=0.0)
    pairs = audit(demo_pairs(60), settings, pairs=("chosen", "rejected"))
    with pytest.raises(InputError, match="pairs"):
        rows_to_review(pairs)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn", "quick_training")
def test_the_command_writes_what_it_is_asked_for_and_removes_it_later(run: Run) -> None:
    reviews().write_csv("reviews.csv")
    options = ["reviews.csv", "--no-baseline", "--no-pictures", "--quiet"]
    asked = [f"--format={name}" for name in ("sarif", "junit", "github")]
    status, printed, _ = run("audit", *options, *asked, "--export=doccano", "--export=cleanlab")
    assert status == 0 and printed.startswith("::warning file=reviews.csv,line=")
    names = ("findings.sarif", "findings.junit.xml", "review-doccano.jsonl", "review-cleanlab.csv")
    assert all((Path("tokensieve-audit") / name).exists() for name in names)
    with Path("tokensieve-audit/review-cleanlab.csv").open(newline="") as file:
        assert next(csv.reader(file))[:4] == ["part", "row", "text", "given_label"]
    assert run("audit", *options) == (0, "", "")
    assert not any((Path("tokensieve-audit") / name).exists() for name in names)


@pytest.mark.slow
def test_export_of_pairs_is_refused_before_anything_is_read(run: Run) -> None:
    status, _, error = run("audit", "nowhere.csv", "--pairs", "a,b", "--export", "argilla")
    assert status == 2 and "--export" in error
