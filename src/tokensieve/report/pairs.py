"""Preference pairs in words: headlines, evidence and tables for page and terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.text import Text

from tokensieve.auditing.preferences import ALIKE as LIKE
from tokensieve.auditing.preferences import PreferenceFacts
from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.model.pairs import PairExplanation
from tokensieve.model.trained import Model
from tokensieve.report.console import Console
from tokensieve.wording import count, percent, signed

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

ALIKE = f"whose lengths are within {round(100 * (LIKE - 1))}% of each other"
WINS = 40  # rows of each table; the page shows ten at first


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


def _interval(share: Share) -> str:
    return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
