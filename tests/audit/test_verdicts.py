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
from tokensieve.auditing.checks.shortcut import either, told_of_class
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.phrases import form_clause
from tokensieve.auditing.result import Audit
from tokensieve.read.label_lists import MAX_AUDITS
from tokensieve.report.blocks import Section, Text, walk


def reviews(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Reviews without the shortcut that the demo plants."""
    made = demo_reviews(n, seed)
    texts = [text.partition("\n")[0] for text in made.texts]
    return texts, ["good" if label else "bad" for label in made.labels]


QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)


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
