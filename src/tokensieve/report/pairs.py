"""Preference pairs in words: headlines, evidence and tables for page and terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.text import Text

from tokensieve.auditing.findings import Finding, FindingKind
from tokensieve.auditing.pairs import LIKE, PreferenceFacts
from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.model.pairs import PairExplanation
from tokensieve.model.trained import Model
from tokensieve.report.console import Console
from tokensieve.text.formatting import is_formatting
from tokensieve.wording import count, percent, signed

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

ALIKE = f"whose lengths are within {round(100 * (LIKE - 1))}% of each other"
WINS = 40  # rows of each table; the page shows ten at first


def about_pairs(finding: Finding) -> bool:
    """Whether these words are for it."""
    return bool({"like_model", "equal_length", "pairs"} & finding.evidence.keys())


def headline(finding: Finding) -> str:
    """The finding as one sentence with its number; of wins and losses in the words of those who compare answers."""
    e, wins = finding.evidence, finding.label == "chosen"
    if "pairs" in e:
        return _intake(finding)
    share = percent(e["decides"].value, 0)
    if not finding.tokens:
        return f"The {'longer' if wins else 'shorter'} answer wins {share} of these pairs"
    verb = "wins" if wins else "loses"
    equal = f"{_rounded(e['equal_length'])} at equal length"
    name = shown(finding.tokens[0], 40)
    if is_formatting(finding.tokens[0]) or len(finding.tokens) == 1:
        name = name if is_formatting(finding.tokens[0]) else f"“{name}”"
        return f"The answer with {name} {verb} {_rounded(e['first'])} of the pairs where only one has it, {equal}"
    named = [f"“{shown(token, 40)}”" for token in finding.tokens[:3]]
    listed = f"{', '.join(named[:-1])} and {named[-1]}"
    many = f"{len(finding.tokens)} words such as {listed}" if len(finding.tokens) > 3 else listed
    where = f"{percent(e['test'].value, 0)} of the test pairs" if e["test"].of else f"{share} of the pairs"
    return f"The answer with more of {many} {verb} {where} that differ in them"


def evidence(finding: Finding) -> list[str]:
    """What it stands on, each a short clause."""
    e, wins = finding.evidence, finding.label == "chosen"
    if finding.kind is FindingKind.LABELS:
        return ["the rejected answer named with probability 0.9 or more by a model that saw no pair of the same unit"]
    if "pairs" in e:
        both = f"{count(e['identical'].found)} of them with both answers" if "identical" in e else ""
        return [f"{count(e['pairs'].found)} of {count(e['pairs'].of)} pairs", *([both] if both else [])]
    of = e["decides"]
    out = [f"{count(of.found)} of {count(of.of)} training pairs in which the answers differ in this ({_range(of)})"]
    if "like_model" in e:
        model, longer = e["like_model"], e["like_longer"]
        out.append(
            f"of {count(model.of)} test pairs {ALIKE} the longer answer wins {_interval(longer)}; the model, which reads words and "
            f"formatting, names {_interval(model)} of them rightly"
        )
        return out
    rate, verb = e["equal_length"], "wins" if wins else "loses"
    many = len(finding.tokens) > 1
    subject = f"the first of them alone, {shown(finding.tokens[0], 40)}," if many else "it"
    out.append(f"at equal length {subject} {verb} {_interval(rate)}")
    if e["test"].of:
        out.append(
            f"in the test pairs, which had no part in finding this: {_interval(e['test'])} of {count(e['test'].of)}"
        )
    return out


def action(finding: Finding) -> str:
    """What to do about it."""
    if finding.kind is FindingKind.LEAK:
        return "Keep each prompt on one side of the split; until then the test accuracy is too high."
    if finding.kind is FindingKind.LABELS:
        return "Read the rows in label-issues.csv from the top, and turn round or leave out those that are wrong."
    if finding.kind is FindingKind.CONTRADICTION:
        return "Decide which answer is the better one, or leave these pairs out."
    if not finding.tokens:
        return (
            "Ask whether people here really prefer length. If not, compare answers of like length, or correct for length when you "
            "judge models or train a reward on these pairs."
        )
    rest = "" if is_formatting(finding.tokens[0]) else ", or mask it on both sides and audit again"
    return (
        "Ask whether a good answer needs this. If not, a reward trained on these pairs will learn it all the same: balance it"
        f"{rest}."
    )


def _intake(finding: Finding) -> str:
    """Units or whole pairs on both sides of the split, or pairs preferred both ways, or the wrong way."""
    share = f"{count(finding.documents)} {{}}pairs ({percent(finding.evidence['pairs'].value)})"
    if finding.kind is FindingKind.LEAK:
        return share.format("test ") + " share their prompt, or both answers, with training pairs"
    if finding.kind is FindingKind.LABELS:
        return share.format("training ") + " look as if the other answer were the better one"
    return share.format("") + " are also there with the other answer preferred"


def lead(audit: Audit) -> str:
    """What was read, in one sentence."""
    assert audit.pairs is not None
    pairs, units = audit.pairs.pairs, audit.pairs.units
    first = f"{count(pairs['train'])} training and {count(pairs['test'])} test pairs"
    if audit.pairs.by:
        first += f" of {count(units['train'])} and {count(units['test'])} units ({shown(audit.pairs.by, 40)})"
    return f"{first}, {count(audit.token_types)} token types"


def accuracies(audit: Audit) -> list[tuple[str, float]]:
    """Who names the preferred answer of a test pair, and how often."""
    assert audit.pairs is not None
    rows = [("This model", audit.pairs.accuracy.value)]
    if audit.baseline_accuracy is not None:
        rows.append(("TF-IDF + logistic regression", audit.baseline_accuracy))
    return [*rows, ("The longer answer", audit.pairs.longer["test"].value), ("Chance", 0.5)]


def model_sentence(audit: Audit) -> str:
    """How well the model answers, and what is left at like length."""
    assert audit.pairs is not None
    found = audit.pairs
    like, longer = found.like_length
    return (
        f"The model names the preferred answer in {_interval(found.accuracy)} of {count(found.accuracy.of)} test pairs; naming "
        f"the longer one is right in {_interval(found.longer['test'])}. In the {count(like.of)} test pairs {ALIKE} the model is "
        f"right in {_interval(like)}, the longer answer in {_interval(longer)}."
    )


def win_tables(audit: Audit) -> list[dict[str, Any]]:
    """What wins and what loses at equal length, a table each: title and rows."""
    assert audit.pairs is not None
    titles = {True: "What wins, also at equal length", False: "What loses, also at equal length"}
    tables = [{"title": title, "rows": win_rows(audit.pairs, wins, WINS)} for wins, title in titles.items()]
    return [table for table in tables if table["rows"]]


def win_rows(found: PreferenceFacts, wins: bool, rows: int) -> list[dict[str, Any]]:
    """Token, pairs, win rate, and at equal length with its interval."""
    return found.top(wins, rows).select(pl.exclude("p_value")).to_dicts()


def score_lines(frame: pl.DataFrame, columns: tuple[str, str]) -> tuple[list[str], dict[str, Any]]:
    """How often the first answer is the preferred one, in words and as JSON values.

    Args:
        frame: of `tokensieve.model.pairs.answer_pairs`.
        columns: of the two answers.
    """
    known = frame.drop_nulls("answer")["answer"].to_numpy()
    right = (known > 0) + 0.5 * (known == 0)
    share = Share.over(right, np.arange(len(known)))
    loss = float(np.mean(np.logaddexp(0.0, -known))) if len(known) else None
    left = len(frame) - len(known)
    lines = [f"{left:,} pairs without two answers: none is named"] if left else []
    if len(known):
        lines.append(
            f"{shown(columns[0], 40)} is named as preferred in {_interval(share)} of {len(known):,} pairs; log loss {loss:.4f} "
            "(the accuracy, where that column holds the preferred answers)"
        )
    return lines, {"first_preferred": share.to_dict(), "log_loss": loss, "without_two_answers": left}


def show_pair(model: Model, texts: tuple[str, str], found: PairExplanation) -> None:
    """Both texts taken apart, and the difference of their sums."""
    from tokensieve.report.terminal_audit import show_sum

    console = Console()
    for name, text, side in zip(("first", "second"), texts, (found.first, found.second), strict=True):
        head = Text(f"{name}: answer {signed(side.answer, 6)}, unknown words: {side.unknown}", style="bold")
        show_sum(model, text, side, head)
    console.print(
        Text(f"first − second = {signed(found.answer, 6)}: ", style="bold")
        + Text(f"the first is preferred with probability {found.probability:.4f}")
    )


def _rounded(share: Share) -> str:
    return f"{percent(share.value, 0)} ({percent(share.low, 0)} to {percent(share.high, 0)})"


def _range(share: Share) -> str:
    return f"{percent(share.value)}, 95% interval {percent(share.low)} to {percent(share.high)}"


def _interval(share: Share) -> str:
    return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
