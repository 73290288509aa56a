"""Whatever the program prints as a command works exactly as printed, on data with awkward names."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from calls import Run, fast_first
from tokensieve import demo_pairs, demo_reviews
from tokensieve.report import terminal
from tokensieve.report.blocks import Command, Section

pytestmark = pytest.mark.usefixtures("undrawn", "quick_training")

TEXT, LABEL, SOURCE = "Ticket text (raw), v2", "Team; label's $HOME", "my tickets (2).csv"
QUICK = ("--no-pictures", "--no-baseline")


def commands_in(blocks: Any) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Command):
            yield block.command
        elif isinstance(block, Section):
            yield from commands_in(block.blocks)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every report that is shown."""
    seen: list[Any] = []
    show = terminal.show

    def recording(report: Any, *rest: Any, **more: Any) -> None:
        seen.append(report)
        show(report, *rest, **more)

    monkeypatch.setattr(terminal, "show", recording)
    return seen


def write_tickets(path: Path) -> None:
    reviews = demo_reviews(300)
    labels = ["up" if y else "down's" for y in reviews.labels]
    pl.DataFrame({TEXT: reviews.texts, LABEL: labels, "Other text": reviews.texts}).write_csv(path)


def masked_copy(folder: Path, suffix: str = ".csv") -> Path:
    """The copy that the printed command wrote: it is named after the audit's folder."""
    return next(folder.glob(f"*-masked{suffix}"))


@pytest.mark.parametrize(
    "options", fast_first([(("--fail-on", "0.5@1%"),), (("--keep-case",),), ((),)])
)
def test_commands_of_an_audit_work_as_printed(
    run: Run, reports: list[Any], tmp_path: Path, options: tuple[str, ...]
) -> None:
    write_tickets(tmp_path / SOURCE)
    out = "the results"
    assert run("audit", SOURCE, "--text", TEXT, "--label", LABEL, "--out", out, *QUICK, *options)[
        0
    ] in (0, 3)
    printed = [command for report in reports for command in commands_in(report.blocks)]
    assert any(command.startswith("tokensieve mask") for command in printed)
    assert any(command.startswith("tokensieve audit") for command in printed)
    compare = "tokensieve compare 'the results' 'the results-masked'"
    assert any(command.startswith(compare) for command in printed)
    check(run, dict.fromkeys(printed))


@pytest.mark.slow
def test_the_copy_is_audited_with_the_options_of_the_source(
    run: Run, reports: list[Any], tmp_path: Path
) -> None:
    """Labels are merged and dropped, sides and groups named as before; the copy needs neither the
    encoding nor the separator."""
    write_tickets(tmp_path / "first.csv")
    frame = pl.read_csv(tmp_path / "first.csv").rename({"Other text": "author's"})
    size = len(frame)
    frame = frame.with_columns(
        pl.when(pl.arange(size) % 9 == 0)
        .then(pl.lit("other"))
        .otherwise(pl.col(LABEL))
        .alias(LABEL),
        pl.Series("part", ["test" if i % 4 == 0 else "train" for i in range(size)]),
        pl.Series("author's", [f"a{i // 2}" for i in range(size)]),
    )
    (tmp_path / SOURCE).write_bytes(
        frame.write_csv(separator=";").replace("garden", "jardín").encode("cp1252")
    )
    named = (
        "--text",
        TEXT,
        "--label",
        LABEL,
        "--group",
        "it's up=up",
        "--drop",
        "other",
        "--split",
        "part",
    )
    told = (
        "--encoding",
        "cp1252",
        "--separator",
        ";",
        "--by",
        "author's",
        "--ngrams",
        "2",
        "--no-formatting",
    )
    assert (
        run("audit", SOURCE, *named, *told, "--html", "keep", "--out", "-results", *QUICK)[0] == 0
    )
    mask, again, compare, *_ = [
        command for report in reports for command in commands_in(report.blocks)
    ]
    check(run, [mask, again, compare])
    before, after = (
        json.loads((tmp_path / out / "summary.json").read_text())
        for out in ("-results", "-results-masked")
    )
    for name in ("classes", "documents", "class_documents", "seed"):
        assert before[name] == after[name]
    for name in ("ngrams", "formatting", "group", "drop", "split", "by", "html", "columns"):
        assert before["settings"][name] == after["settings"][name], name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nested", "test", "same test"])
def test_the_loop_of_a_nested_label_or_a_test_file_runs_as_printed(
    run: Run, reports: list[Any], tmp_path: Path, kind: str
) -> None:
    """Of the test file, a half or all of the rows are copies of training texts."""
    write_tickets(tmp_path / SOURCE)
    write_tickets(tmp_path / "test.csv")
    if kind == "test":
        test = pl.read_csv(tmp_path / "test.csv")
        is_changed = pl.int_range(pl.len()) % 2 == 0
        new_text = pl.lit("another start of this one: ") + pl.col(TEXT).str.reverse()
        changed = pl.when(is_changed).then(new_text).otherwise(TEXT).alias(TEXT)
        test.with_columns(changed).write_csv(tmp_path / "test.csv")
    source, more = SOURCE, ("--text", TEXT, "--label", LABEL, "--test", "test.csv")
    if kind == "nested":
        source, more = "nested.jsonl", ("--label", "a.label")
        frame = pl.read_csv(tmp_path / SOURCE)
        rows = [{"text": row[TEXT], "a": {"label": row[LABEL]}} for row in frame.to_dicts()]
        (tmp_path / source).write_text("\n".join(map(json.dumps, rows)))
    assert run("audit", source, *more, *QUICK)[0] == 0
    printed = [command for report in reports for command in commands_in(report.blocks)]
    assert any(command.startswith("tokensieve audit") for command in printed), printed
    if kind != "nested":
        leaves_out = any("--leave-out leak" in command for command in printed)
        assert leaves_out == (kind == "test"), printed
    check(run, dict.fromkeys(printed))  # a card may repeat a step of the loop


@pytest.mark.parametrize("kind", fast_first(["several", "chat", "nested", "odd", "masked"]))
def test_mask_takes_every_source_that_an_audit_takes(
    run: Run, reports: list[Any], tmp_path: Path, kind: str
) -> None:
    """These commands failed: of chat messages and nested columns, several files, a name with a
    dash, a copy of a copy."""
    write_tickets(tmp_path / SOURCE)
    frame = (
        pl.read_csv(tmp_path / SOURCE)
        .rename({TEXT: "text", LABEL: "label"})
        .select("text", "label")
    )
    sources, options, copy = (
        ["it's.jsonl"],
        [
            "--text",
            "text",
            "--label",
            "label",
        ],
        "tokensieve-audit-masked.csv",
    )
    if kind in ("chat", "nested"):
        options, copy = ["--text", "a.body", "--label", "label"], "tokensieve-audit-masked.jsonl"
        rows = [{"label": one["label"], "a": {"body": one["text"]}} for one in frame.to_dicts()]
        if kind == "chat":
            options = ["--text", "said", "--role", "assistant", "--label", "label"]
            turn = {"from": "human", "value": "my tablet?"}
            rows = [
                {"label": r["label"], "said": [turn, {"from": "gpt", "value": r["a"]["body"]}]}
                for r in rows
            ]
        (tmp_path / sources[0]).write_text("\n".join(map(json.dumps, rows)))
    else:
        sources = {
            "several": ["a 1.csv", "b;2.csv"],
            "odd": ["-odd name.csv"],
            "masked": ["masked.csv"],
        }[kind]
        for i, name in enumerate(sources):
            frame[i :: len(sources)].write_csv(tmp_path / name)
    assert run("audit", *options, *QUICK, "--", *sources)[0] == 0
    printed = [command for report in reports for command in commands_in(report.blocks)]
    assert printed[0].startswith("tokensieve mask")
    check(run, printed)
    left = masked_copy(tmp_path, Path(copy).suffix).read_text()
    before = "".join((tmp_path / name).read_text() for name in sources)
    assert before.count("tablet") > left.count("tablet") == (300 if kind == "chat" else 0)


@pytest.mark.slow
def test_all_ratings_of_a_scale_are_masked(run: Run, reports: list[Any], tmp_path: Path) -> None:
    """An audit of few documents finds two of them; masking these alone would leave the others."""
    reviews = demo_reviews(400)
    rated = {(1, 3): "10/10", (1, 7): "9/10", (0, 5): "2/10"}
    texts = [
        f"{text} {rated.get((int(y), i % 12 if y else i % 60), '')}".strip()
        for i, (text, y) in enumerate(zip(reviews.texts, reviews.labels, strict=True))
    ]
    pl.DataFrame({TEXT: texts, LABEL: ["up" if y else "down" for y in reviews.labels]}).write_csv(
        tmp_path / SOURCE
    )
    assert run("audit", SOURCE, "--text", TEXT, "--label", LABEL, *QUICK)[0] == 0
    found = json.loads((tmp_path / "tokensieve-audit" / "findings.json").read_text())["findings"]
    assert not any("2/10" in one["tokens"] for one in found)
    check(run, [command for report in reports for command in commands_in(report.blocks)][:2])
    left = pl.read_csv(masked_copy(tmp_path))[TEXT].str.contains(r"\d/10")
    assert pl.Series(texts).str.contains(r"\b2/10").any() and not left.any()


@pytest.mark.slow
def test_a_long_mask_names_the_folder_and_works_as_printed(
    run: Run, reports: list[Any], tmp_path: Path
) -> None:
    reviews = demo_reviews(400)
    texts = [
        f"{1 + 5 * y + i % 5}/10 " + text.partition("\n")[0]  # without the signature
        for i, (text, y) in enumerate(zip(reviews.texts, reviews.labels, strict=True))
    ]
    pl.DataFrame({TEXT: texts, LABEL: ["up" if y else "down" for y in reviews.labels]}).write_csv(
        tmp_path / SOURCE
    )
    assert (
        run("audit", SOURCE, "--text", TEXT, "--label", LABEL, "--out", "its results", *QUICK)[0]
        == 0
    )
    first, *_ = [command for report in reports for command in commands_in(report.blocks)]
    assert "--audit 'its results'" in first and "--token" not in first
    check(run, [first])
    found = json.loads((tmp_path / "its results" / "findings.json").read_text())["findings"]
    gone = {
        token
        for one in found
        if one["kind"] == "shortcut"
        for token in one["tokens"]
        if token.endswith("/10")
    }
    masked = pl.read_csv(masked_copy(tmp_path))[TEXT].str.split(" ").explode()
    assert len(gone) > 8 and not masked.is_in(list(gone)).any()


@pytest.mark.slow
def test_commands_of_the_demo_work_as_printed(run: Run, reports: list[Any], tmp_path: Path) -> None:
    assert run("demo", "--out", "the demo's results")[0] == 0
    printed = list(
        dict.fromkeys(command for report in reports for command in commands_in(report.blocks))
    )
    assert [command.split()[1] for command in printed[:3]] == ["mask", "audit", "compare"]
    assert "masked.csv" in printed[1]
    check(run, printed)
    assert "tablet" not in masked_copy(tmp_path).read_text()


@pytest.mark.slow
def test_commands_of_an_audit_of_pairs_work_as_printed(
    run: Run, reports: list[Any], tmp_path: Path
) -> None:
    frame = demo_pairs(200).rename({"chosen": "the chosen $1", "rejected": "it's rejected"})
    frame.write_csv(tmp_path / SOURCE)
    assert run("audit", SOURCE, "--pairs", "the chosen $1,it's rejected", *QUICK)[0] == 0
    check(
        run, dict.fromkeys(command for report in reports for command in commands_in(report.blocks))
    )


@pytest.mark.slow
def test_commands_of_an_audit_of_fields_and_other_columns_work_as_printed(
    run: Run, reports: list[Any], tmp_path: Path
) -> None:
    """Neither the space in a column's name nor its colon is one between the words of an n-gram;
    values are not masked."""
    write_tickets(tmp_path / SOURCE)
    frame = pl.read_csv(tmp_path / SOURCE)
    is_up = pl.col(LABEL) == "up"
    is_exception = pl.int_range(pl.len()) % 3 == 0
    # a field that repeats the other one would tell which documents contain a mark
    notes = pl.Series("Other text", [f"a note about case {i % 9}" for i in range(frame.height)])
    fields = ("--text", TEXT, "--text", "Other text", "--columns", "the agent: name")

    def with_agents(is_of_jonas: pl.Expr) -> pl.DataFrame:
        agent = pl.when(is_of_jonas).then(pl.lit("Jonas")).otherwise(pl.lit("Mia"))
        return frame.with_columns(notes, agent.alias("the agent: name"))

    with_agents(is_up ^ is_exception).write_csv(tmp_path / SOURCE)
    assert run("audit", SOURCE, *fields, "--label", LABEL, *QUICK)[0] == 0
    printed = [command for report in reports for command in commands_in(report.blocks)]
    assert any("'Ticket_text_(raw),_v2:tablet'" in command for command in printed)
    check(run, printed[:1])
    assert "tablet" not in masked_copy(tmp_path).read_text()

    with_agents(is_up).write_csv(tmp_path / SOURCE)
    assert run("audit", SOURCE, *fields, "--label", LABEL, "--out", "decided", *QUICK)[0] == 0
    _, _, said = run("mask", SOURCE, "--audit", "decided", "--out", "again.csv")
    assert "cannot mask the_agent__name:jonas: it is a value of another column" in said


@pytest.mark.slow
def test_commands_of_an_audit_of_pairs_with_other_columns_work_as_printed(
    run: Run, reports: list[Any], tmp_path: Path
) -> None:
    frame = demo_pairs(300).with_columns(chosen=pl.lit("Certainly! ") + pl.col("chosen"))
    frame = frame.with_columns(model_chosen=pl.lit("gpt 4"), model_rejected=pl.lit("claude"))
    frame.write_csv(tmp_path / SOURCE)
    assert run("audit", SOURCE, "--pairs", "chosen,rejected", "--columns", "model", *QUICK)[0] == 0
    printed = [command for report in reports for command in commands_in(report.blocks)]
    assert any("--token certainly" in command for command in printed), printed
    check(run, dict.fromkeys(printed))


@pytest.mark.slow
def test_commands_for_many_words_of_pairs_work_as_printed(
    run: Run, reports: list[Any], tmp_path: Path
) -> None:
    """Length comes first, and the card of the words names the audit's folder instead of all of
    them."""
    frame, words = demo_pairs(900), [f"walrus{letter}" for letter in "abcdefghijkl"]
    marked = [
        f"{text} {words[i // 2 % 12]}" if i % 2 == 0 else text
        for i, text in enumerate(frame["chosen"])
    ]
    frame.with_columns(chosen=pl.Series(marked)).write_csv(tmp_path / SOURCE)
    assert run("audit", SOURCE, "--pairs", "chosen,rejected", *QUICK)[0] == 0
    printed = [command for report in reports for command in commands_in(report.blocks)]
    names = [command.split()[1] for command in printed]
    assert names[:4] == ["balance", "mask", "audit", "compare"], printed
    assert "--pairs chosen,rejected --audit tokensieve-audit" in printed[1]
    check(run, printed)
    assert "walrus" not in masked_copy(tmp_path).read_text()


@pytest.mark.slow
def test_a_pattern_of_one_s_own_may_match_white_space(
    run: Run, reports: list[Any], tmp_path: Path
) -> None:
    """Tags of several words between commas."""
    tags = [
        "machine learning, web",
        "web,data  base ",
        "data base, machine learning",
        "rust lang,web",
    ]
    rows = [
        (f"{tags[i % 4]}, number {i}{', paid post' * (i % 8 > 3)}", f"class {i // 4 % 2}")
        for i in range(400)
    ]
    pl.DataFrame(rows, schema=["tags", "y"], orient="row").write_csv(tmp_path / "tags.csv")
    assert (
        run("audit", "tags.csv", "--label", "y", "--text", "tags", "--pattern", "[^,]+", *QUICK)[0]
        == 0
    )
    tokens = pl.read_csv(tmp_path / "tokensieve-audit/tokens.csv")["token"].to_list()
    words = {"machine_learning", "web", "data_base", "rust_lang", "paid_post"}
    assert {token for token in tokens if "⟨" not in token} == words
    check(
        run, dict.fromkeys(command for report in reports for command in commands_in(report.blocks))
    )
    read = ("--text", "tags", "--pattern", "[^,]+")
    assert run("mask", "tags.csv", *read, "--token", "paid_post", "--out", "masked.csv")[0] == 0
    assert "paid" not in (tmp_path / "masked.csv").read_text()


@pytest.mark.slow
def test_commands_of_an_audit_of_scores_work_as_printed(run: Run, reports: list[Any]) -> None:
    """Here "tablet" only occurs in reviews of five stars, some texts have two scores, and a column
    follows the stars."""
    made = demo_reviews(400, seed=2)
    stars = [4.0 + i % 2 if label else 1.0 + i % 3 for i, label in enumerate(made.labels)]
    device = ["it's an app" if (s > 3) != (i % 5 == 0) else "web" for i, s in enumerate(stars)]
    frame = pl.DataFrame({TEXT: made.texts, "how many stars?": stars, "the device": device})
    again = frame.head(20).with_columns((pl.col("how many stars?") + 1) % 5 + 1)
    pl.concat([frame, again]).write_csv(SOURCE)
    columns = ("--text", TEXT, "--label", "how many stars?", "--columns", "the device")
    given = ("audit", SOURCE, *columns, "--task", "scores", "--out", "my scores", *QUICK)
    assert run(*given)[0] == 0
    printed = [command for report in reports for command in commands_in(report.blocks)]
    audits = [command for command in printed if command.startswith("tokensieve audit")]
    assert audits and all("--task scores" in command for command in audits)
    assert not any(command.startswith("tokensieve compare") for command in printed)
    check(run, dict.fromkeys(printed))


def check(run: Run, printed: Any) -> None:
    for command in printed:
        program, *arguments = shlex.split(command)
        status, _, err = run(*arguments)
        assert program == "tokensieve" and status == 0, f"{command}\n{err}"


@pytest.mark.parametrize(
    "arguments",
    [
        *[
            pytest.param(("audit", SOURCE, "--text", *rest), marks=pytest.mark.slow)
            for rest in ((TEXT, "--label", LABEL.lower()), ("Ticket text", "--label", LABEL))
        ],
        pytest.param(("audit", SOURCE, "--label", LABEL), marks=pytest.mark.slow),
        ("audit", "rare.csv"),
        pytest.param(("audit", "rare.csv", "--by", "text"), marks=pytest.mark.slow),
        ("train", SOURCE, "--label", LABEL, "--text", TEXT.upper()),
        ("mask", SOURCE, "--token", "tablet"),
        ("mask", SOURCE, "--text", TEXT, "--token", "tabelt"),
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_options_that_an_error_suggests_work(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """The options in the message, in place of those of the same name, make the command succeed."""
    write_tickets(tmp_path / SOURCE)
    reviews = demo_reviews(60)
    labels = ["Billing " if y else "rest" for y in reviews.labels]
    pl.DataFrame({"text": reviews.texts, "label": ["billing's", *labels[1:]]}).write_csv(
        tmp_path / "rare.csv"
    )
    for _ in range(3):
        status, _, err = run(*arguments, *(QUICK if arguments[0] == "audit" else ()))
        if status == 0:
            return
        assert status == 2
        suggested = re.search(
            r"(--(?:text|label|group|token) ('[^']*'(?:\"'\"'[^']*')*|[^\s`]+))", err
        )
        if suggested:
            flag, value = shlex.split(suggested[1].rstrip(";,."))[:2]
        else:
            name = re.search(r"did you mean (['\"].*?['\"])\?", err)
            assert name, err
            (value,) = shlex.split(name[1])
            flag = "--label" if "for the label" in err else "--text"
        arguments = replaced(arguments, flag, value)
    raise AssertionError(err)


def replaced(arguments: tuple[str, ...], flag: str, value: str) -> tuple[str, ...]:
    if flag in arguments and flag != "--group":
        at = arguments.index(flag)
        return (*arguments[: at + 1], value, *arguments[at + 2 :])
    return (*arguments, flag, value)
