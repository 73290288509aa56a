"""What pages and the terminal say is true: order, what is hidden, and why a status is not zero."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve import Settings, audit
from tokensieve.auditing.broken_link import GroupAccuracy, GroupName, Mark
from tokensieve.auditing.checks import order
from tokensieve.auditing.checks.shortcut import either, told_of_class
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.findings import PROBABLE_SHORTCUT, Finding
from tokensieve.auditing.link_report import MarkEffect, RepairEffect
from tokensieve.auditing.next_steps import NextCommands
from tokensieve.auditing.phrases import form_clause
from tokensieve.auditing.report import (
    look_first,
    removed_tokens,
    repair_commands,
    without_shortcuts_sentences,
)
from tokensieve.auditing.report_tokens import disagreements_section
from tokensieve.auditing.result import Audit
from tokensieve.evidence.order import WINDOW, Pair
from tokensieve.read.label_lists import MAX_AUDITS
from tokensieve.report.blocks import Command, Picture, Section, Table, Text, walk


def reviews(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Reviews without the shortcut that the demo plants."""
    made = demo_reviews(n, seed)
    texts = [text.partition("\n")[0] for text in made.texts]
    return texts, ["good" if label else "bad" for label in made.labels]


QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)
THOROUGH = Settings(baseline=False)


@pytest.fixture(scope="module")
def found() -> Audit:
    texts, labels = reviews(300, 0)
    return audit((texts, labels), QUICK)


def with_findings(found: Audit, *severities: float) -> Audit:
    findings = tuple(
        Finding(f"kind{i}", severity, title=f"title {i}", headline=f"headline {i}")
        for i, severity in enumerate(severities)
    )
    return replace(found, findings=findings)


def shown_in(found: Audit, medium: str) -> list[str]:
    sections = [block for block in found.report().blocks if isinstance(block, Section)]
    findings = next(section for section in sections if section.anchor == "found")
    return [
        block.title
        for block in findings.blocks
        if isinstance(block, Section) and medium in block.only
    ]


@pytest.mark.parametrize("medium", ["terminal", "html"])
def test_no_finding_of_medium_severity_is_in_a_file_only(found: Audit, medium: str) -> None:
    severities = [0.2] * 6 + [0.02] * 10 + [0.001] * 12
    shown = shown_in(with_findings(found, *severities), medium)
    assert shown == [f"title {i}" for i in range(16)]


def test_what_is_left_out_is_said_to_be_of_low_severity(found: Audit) -> None:
    many = with_findings(found, *[0.001] * 12)
    texts = [block.text for block in walk(many.report().blocks) if isinstance(block, Text)]
    assert any("3 more findings of low severity" in text for text in texts)
    assert any("7 more findings of low severity" in text for text in texts)


def test_findings_are_sorted_by_severity() -> None:
    """A medium finding that describes the data was listed behind all low ones."""
    texts, labels = reviews(400, 1)
    texts += texts[:30]
    labels += labels[:30]
    texts = [
        f"{text}!" if label == "good" and i % 3 else text
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    severities = [one.severity for one in audit((texts, labels), baseline=False).findings]
    assert len(severities) > 2 and severities == sorted(severities, reverse=True)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_status_of_three_is_never_silent(tmp_path: Path, run: Run) -> None:
    texts, labels = reviews(300, 2)
    texts = [
        f"{text} sent from my tablet" if label == "good" else text
        for text, label in zip(texts, labels, strict=True)
    ]
    source = tmp_path / "reviews.csv"
    pl.DataFrame({"text": texts, "label": labels}).write_csv(source)
    options = ["--no-baseline", "--no-pictures", "--quiet"]
    for limit in ("shortcut=0", "0.5@1%"):
        out = tmp_path / limit
        status, printed, errors = run(
            "audit", str(source), "--fail-on", limit, "--out", str(out), *options
        )
        assert (status, printed) == (3, "")
        assert "tablet" in errors and limit in errors, errors
    first = tmp_path / "shortcut=0"
    clean = tmp_path / "clean.csv"
    shortened = [text.replace(" sent from my tablet", "") for text in texts]
    pl.DataFrame({"text": shortened, "label": labels}).write_csv(clean)
    run("audit", str(clean), "--out", str(tmp_path / "clean"), *options)
    folders = [str(first), str(tmp_path / "clean")]
    status, printed, errors = run(
        "compare", *folders, "--fail-on", "vanished=0", "-q", "--out", str(tmp_path / "compared")
    )
    assert (status, printed) == (3, "") and "vanished" in errors


@pytest.mark.usefixtures("undrawn")
def test_labels_past_the_limit_are_not_called_too_rare(tmp_path: Path, run: Run) -> None:
    n_labels = MAX_AUDITS + 2
    names = [f"l{i:02}" for i in range(n_labels)]
    rows = [
        {
            "text": f"word{i % 7} and word{i % 11}",
            "label": "|".join(name for k, name in enumerate(names) if (i * 7 + k * 13) % 29 < 12),
        }
        for i in range(90)
    ]
    source = tmp_path / "many.csv"
    pl.DataFrame(rows).write_csv(source)
    from tokensieve.read.label_lists import settings_per_label
    from tokensieve.read.settings import ReadSettings

    audits = settings_per_label(str(source), ReadSettings(label_separator="|"))
    assert len(audits.settings) == MAX_AUDITS and not audits.too_few
    assert len(audits.past_limit) == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_labels_of_a_class_that_cannot_be_predicted_are_not_accused(seed: int) -> None:
    """All documents of a small class whose words do not depend on the label were accused."""
    rng = np.random.default_rng(seed)
    texts, labels = reviews(1500, seed)
    for place in rng.permutation(len(labels))[:40]:
        labels[place] = "other"
    found = audit((texts, labels), baseline=False)
    assert "other" in found.labels_not_judged
    issues = [one for one in found.findings if one.kind == "labels"]
    rows = {row for one in issues for row in one.rows["row"].to_list()}
    accused = {labels[row - 1] for row in rows}
    assert "other" not in accused
    blocks = [block for block in walk(found.report().blocks) if isinstance(block, Text)]
    assert any("were not judged" in block.text and "other" in block.text for block in blocks)


def premises(n: int, seed: int) -> pl.DataFrame:
    """Premises with three hypotheses each, one for each label; the hypothesis tells the label."""
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(400)]
    rows = []
    for _ in range(n):
        premise = " ".join(rng.choice(words, 15))
        for label, hint in (("yes", "outdoors"), ("maybe", "sad"), ("no", "nobody")):
            hypothesis = list(rng.choice(words, 5))
            if rng.random() < 0.5:
                hypothesis[2] = hint
            rows.append({"premise": premise, "hypothesis": " ".join(hypothesis), "label": label})
    return pl.DataFrame(rows)


@pytest.mark.slow
def test_a_premise_that_repeats_by_design_is_no_copy_and_the_verdict_contradicts_no_finding() -> (
    None
):
    found = audit(premises(250, 0), baseline=False, text=["premise", "hypothesis"], label="label")
    kinds = {one.kind for one in found.findings}
    assert not kinds & {"repeated", "leak", "contradiction"}
    groups = next(one for one in found.findings if one.kind == "groups")
    assert "premise" in groups.headline and "--by premise" in groups.action
    assert "alone" in kinds
    report = found.report()
    texts = [block.text for block in walk(report.blocks) if isinstance(block, Text)]
    assert not any("found no shortcut" in text for text in [report.verdict, *texts])
    copied = pl.concat([premises(250, 0), premises(250, 0).head(60)])
    again = audit(copied, baseline=False, text=["premise", "hypothesis"], label="label")
    assert "repeated" in {one.kind for one in again.findings}


@pytest.mark.slow
def test_a_headline_counts_the_documents_of_what_it_names() -> None:
    """It named a semicolon and counted the documents with double spaces, too."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(60)]
    texts, labels = [], []
    for i in range(400):
        own = list(rng.choice(words, 9))
        if i % 2:
            # of twenty, three have a symbol alone, three double spaces alone, the others both
            own[4] += " |" if i % 40 < 6 else "  " if i % 40 < 12 else "  |"
        texts.append(" ".join(own))
        labels.append("good" if i % 2 else "bad")
    found = audit((texts, labels), Settings(baseline=False, thorough=False))
    training = found.learned.train.corpus
    several = [finding for finding in found.findings if len(finding.tokens) > 1]
    assert several
    for finding in several:
        share = re.match(r"([\d.]+)% of documents (.*?);", finding.headline)
        assert share is not None
        named = [token for token in finding.tokens if clause_of(token) in share[2]]
        counts = found.learned.train.counts
        places = [counts.tokens.tolist().index(token) for token in named]
        n_named = len(np.unique(np.concatenate(counts.holders(np.array(places)))))
        assert float(share[1]) == pytest.approx(100 * n_named / len(training.labels), abs=0.06)


def clause_of(token: str) -> str:
    """What a headline says of a feature, after its first verb."""
    return form_clause(token).removeprefix("contain ")


@pytest.mark.parametrize(
    ("clauses", "joined"),
    [
        (["contain “x”"], "contain “x”"),
        (["contain “x”", "contain a tab"], "contain “x” or a tab"),
        (["end in “!”", "contain a tab"], "contain a tab or end in “!”"),
        (["contain “x”", "contain a tab", "end in “!”"], "contain “x”, a tab or end in “!”"),
    ],
)
def test_clauses_share_their_verb(clauses: list[str], joined: str) -> None:
    assert either(clauses) == joined


def test_a_mark_of_half_the_classes_says_little_about_the_class() -> None:
    assert told_of_class(1, 77) == 1
    assert told_of_class(35, 77) < 0.2 < told_of_class(4, 30) < 1
    assert told_of_class(77, 77) == 0


def test_a_near_copy_with_other_capitals_is_not_said_to_differ_in_a_word() -> None:
    texts, labels = reviews(300, 4)
    others, known = reviews(100, 5)
    copy = texts[0].upper()
    test = pl.DataFrame({"text": [*others, copy], "label": [*known, labels[0]]})
    train = pl.DataFrame({"text": texts, "label": labels})
    found = audit(train, THOROUGH, text="text", label="label", test=test)
    (leak,) = (one for one in found.findings if one.kind == "leak")
    (sentence, _) = leak.details
    assert "this test document has the same words" in sentence
    assert "it is no exact copy" in sentence


def test_counts_of_one_source_say_which_one_they_are_about() -> None:
    """ "28 documents with conflicting labels" stood beside a finding that counts 54 in both."""
    texts, labels = reviews(300, 6)
    others, known = reviews(100, 7)
    opposite = {"good": "bad", "bad": "good"}
    train = pl.DataFrame({"text": [*texts, texts[0]], "label": [*labels, opposite[labels[0]]]})
    test = pl.DataFrame({"text": [*others, texts[1]], "label": [*known, opposite[labels[1]]]})
    found = audit(train, QUICK, text="text", label="label", test=test)
    assert "training documents: 2 documents with conflicting labels" in found.notes
    (finding,) = (one for one in found.findings if one.kind == "contradiction")
    assert finding.details == (
        "4 of 402 training and test documents have a copy with another label",
    )


def probable(*tokens: str) -> Finding:
    return Finding(
        "shortcut", 0.01, title=PROBABLE_SHORTCUT, headline="…", tokens=tokens, maskable=tokens
    )


def test_the_question_before_a_mask_names_every_probable_shortcut() -> None:
    """Of four words that the command removes, the question named three."""
    words = ["well worth", "trash", "lousy", "is very good"]
    question = look_first([probable(word) for word in words])
    assert all(f"“{word}”" in question for word in words)


def test_a_mask_of_ratings_and_words_says_which_words_it_removes() -> None:
    """ "All 54 shortcut tokens" were ten ratings in all their spellings and a word."""
    shortcuts = [probable("10/10", "8/10"), probable("trash")]
    tokens = [*(f"{n}/10" for n in range(11)), "trash"]
    assert removed_tokens(shortcuts, tokens) == (
        "all ratings such as “10/10” and “8/10”, and “trash” (12 tokens)"
    )


def test_a_phrase_that_the_model_cannot_leave_out_is_said_to_stay() -> None:
    """Of 177 test documents with a shortcut, 159 were counted: two phrases are no token types."""
    texts, labels = reviews(400, 8)
    texts = [
        f"{text} Wexcombe" if label == "good" and i % 5 == 0 else text
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    found = audit((texts, labels), THOROUGH)
    assert any("wexcombe" in one.tokens for one in found.shortcuts)
    phrase = Finding("shortcut", 0.01, title=PROBABLE_SHORTCUT, tokens=("well worth",))
    sentences = without_shortcuts_sentences(replace(found, findings=(*found.findings, phrase)))
    assert sentences[0].startswith("Trained without ") and "well worth" not in sentences[0]
    assert any(sentence.startswith("“well worth” is not left out") for sentence in sentences)


def test_a_sentence_on_the_order_of_words_says_how_far_apart_they_are() -> None:
    """ "not" stood before "worth" in 193 documents; the sentence counted 61, within ten words."""
    pair = Pair(
        kind="order",
        first="not",
        second="worth",
        label=0,
        documents=np.arange(61),
        n_of_class=53,
        n_others=171,
        n_others_of_class=66,
        p_value=1e-6,
        q_value=1e-4,
    )
    assert f"“not” up to {WINDOW} words before “worth”" in order.sentence(pair, "negative")


def group_accuracy(name: GroupName, before: str, after: str) -> GroupAccuracy:
    """Two models on a group, a letter for each document: y where it is predicted correctly."""
    return GroupAccuracy(
        group=name,
        n_documents=len(before),
        is_correct_before=np.array([letter == "y" for letter in before]),
        is_correct_after=np.array([letter == "y" for letter in after]),
    )


def test_a_shortcut_misleads_where_it_points_to_another_class() -> None:
    """ "10/10 misleads most" stood beside "no prediction changes", on the lowest accuracy."""
    texts, labels = reviews(400, 8)
    texts = [
        f"{text} Wexcombe" if label == "good" and i % 5 == 0 else text
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    found = audit((texts, labels), THOROUGH)
    effect = found.misleading.without_shortcuts
    assert effect is not None
    mark = replace(
        effect.marks[0],
        mark=Mark(("wexcombe",), "good"),
        groups=(
            group_accuracy("removed", "nnnyy" * 20, "nnnyy" * 20),
            group_accuracy("without", "nnnnn" * 20, "yyyyy" * 20),
            group_accuracy("inserted", "nnyyy" * 20, "yyyyy" * 20),
        ),
    )
    changed = replace(found.misleading, without_shortcuts=replace(effect, marks=(mark,)))
    sentence = without_shortcuts_sentences(replace(found, misleading=changed))[-1]
    assert "misleads, on documents of other classes, with it inserted" in sentence
    assert "60.0% correctly, and 100.0%" in sentence


def test_words_that_predict_together_are_not_called_an_order() -> None:
    """ "Word order predicts the label" stood above "Of 57 documents with both “sales” and …"."""
    rng = np.random.default_rng(3)
    words = [f"word{number}" for number in range(60)]
    texts = []
    labels = []
    for _ in range(900):
        text = rng.choice(words, 20).tolist()
        label = int(rng.integers(2))
        has_first = rng.random() < 0.4
        if has_first:
            text.insert(3, "alpha")
        if has_first == bool(label):
            text.insert(12, "beta")
        texts.append(" ".join(text))
        labels.append(["bad", "good"][label])
    found = audit((texts, labels), QUICK)
    (finding,) = (one for one in found.findings if one.kind == "order")
    assert "with both “" in finding.headline
    assert "order" not in finding.title


def test_on_a_phone_the_question_before_a_mask_is_not_behind_the_command(found: Audit) -> None:
    """Commands without a text of style "next" come first there: "Then remove …" led the page."""
    with_one = replace(found, findings=(probable("plot"),))
    commands = NextCommands(masks=("tokensieve mask reviews.csv --out masked.csv",))
    question, command, *_ = repair_commands(with_one, with_one.shortcuts, commands, "")
    assert isinstance(question, Text) and question.style == "next"
    assert isinstance(command, Command) and command.purpose.startswith("Then remove")


def test_bars_of_some_tokens_do_not_call_the_documents_without_any_of_them_all_others() -> None:
    """Five of ten ratings have a bar, and the documents of the other five are not "all others"."""
    texts, labels = reviews(600, 10)
    rng = np.random.default_rng(5)
    marks = {"good": ["7/10", "8/10", "9/10", "10/10"], "bad": ["1/10", "2/10", "3/10", "4/10"]}
    texts = [
        f"{text} {rng.choice(marks[label])}" if rng.random() < 0.3 else text
        for text, label in zip(texts, labels, strict=True)
    ]
    found = audit((texts, labels), QUICK)
    (picture,) = (
        block
        for block in walk(found.report().blocks)
        if isinstance(block, Picture) and block.name == "headline"
    )
    n_tokens = len(found.findings[0].tokens)
    assert n_tokens > 5
    assert f"with none of the {n_tokens} tokens" in picture.description


def test_words_that_say_little_are_not_listed_as_predictors_that_the_model_ignores(
    found: Audit,
) -> None:
    """ "and", "this" and "of" led the table, at +0.08, +0.10 and +0.06."""
    rows = found.tokens.filter(pl.col("class") == "good").head(2)
    ignored = rows.with_columns(
        token=pl.Series(["and", "superb"]),
        quadrant=pl.lit("carries the label, ignored"),
        documents=pl.lit(200).cast(rows.schema["documents"]),
        effect=pl.lit(0.01),
        posterior_difference=pl.Series([0.08, 0.8]),
        posterior_low=pl.Series([0.04, 0.7]),
        posterior_high=pl.Series([0.12, 0.9]),
    )
    section = disagreements_section(replace(found, tokens=ignored, neutral={"good": 0.0}))
    (table,) = (block for block in walk([section]) if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["superb"]
    none = disagreements_section(replace(found, tokens=ignored.head(1), neutral={"good": 0.0}))
    assert not any(isinstance(block, Table) for block in walk([none]))


def test_hypotheses_that_contrast_under_one_premise_are_no_copies() -> None:
    """Of 55 that "nearly repeat an earlier one", 42 had another label: "a (tall) person in a suit"."""
    texts, labels = reviews(300, 12)
    premises, _ = reviews(300, 13)
    rows = []
    for premise, text, label in zip(premises, texts, labels, strict=True):
        other = {"good": "bad", "bad": "good"}[label]
        rows.append((premise, f"{text} It was there all day long", label))
        rows.append((premise, f"{text} It was never there all day long", other))
    frame = pl.DataFrame(rows, schema=["premise", "hypothesis", "label"], orient="row")
    settings = THOROUGH.with_options({"text": ("premise", "hypothesis"), "label": "label"})
    assert not [one for one in audit(frame, settings).findings if one.kind == "repeated"]
    copies = pl.concat([frame, frame.head(40)])
    (finding,) = (one for one in audit(copies, settings).findings if one.kind == "repeated")
    assert finding.evidence["documents"].found <= 40


def test_an_accuracy_rises_only_if_that_is_more_than_chance() -> None:
    """ "Accuracy rises from 70.9% to 72.7%" was said of 55 documents, at p = 1.0."""
    little = group_accuracy("removed", "nnnyy" * 11, "ynnyy" + "nnnyy" * 10)
    much = group_accuracy("inserted", "nnnyy" * 20, "yyyyy" * 20)
    mark = MarkEffect(Mark(("10/10",), "good"), (little,))
    overall = group_accuracy("all", "yyyyn" * 40, "yyyyn" * 40)
    headline = RepairEffect("reviews.csv", overall, (mark,)).headline
    assert "goes from 40.0% to 41.8%, a difference within chance" in headline
    both = MarkEffect(Mark(("10/10",), "good"), (little, much))
    headline = RepairEffect("reviews.csv", overall, (both,)).headline
    assert "with it inserted, accuracy rises from 40.0% to 100.0%; overall" in headline
