"""Tables that look like preference data, and the options that read them.

A layout is a row of `LAYOUTS`: a function that returns the options for a table, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tokensieve.escape import option
from tokensieve.name_lists import joined_names, split_names
from tokensieve.read.table import SourceTable
from tokensieve.read.values import label_names

# words of column names for the better and the worse answer, which differ in nothing else
OPPOSITES = (
    ("chosen", "rejected"),
    ("preferred", "non_preferred"),
    ("preferred", "dispreferred"),
    ("winner", "loser"),
    ("win", "lose"),
)
SIDES = (("a", "b"), ("0", "1"), ("1", "2"), ("left", "right"), ("first", "second"))
ANSWER_STEMS = (
    "human_ref|response|answer|output|completion|conversation|summary|text|candidate|reply|"
    "generation"
)
PROMPT_NAMES = "prompt|question|instruction|query|history"
VERDICT_NAMES = r"(\w+_)?(verdict|rating|label|labels|result|outcome|judg\w*|annotation|score|vote)"
MAX_VERDICTS = 10  # different ones, or a tenth of the rows: a scale, and words for a tie
WINNER_NAMES = (
    r"winn(er|ing)\w*|prefer\w*|overall_preference|better\w*|best\w*|(human_)?choice|judge?ment|"
    r"\w+_wins?"
)


class AnswerColumns(NamedTuple):
    """The columns of the preferred and of the other answer."""

    preferred: str
    other: str


def pair_options(table: SourceTable) -> str | None:
    """The options that read a table as preference data; None if it does not look like such data."""
    for recognise in LAYOUTS:
        if options := recognise(table):
            return options
    return None


def preferred_columns(table: SourceTable) -> AnswerColumns | None:
    """The columns of the preferred and the other answer, if their names show it."""
    original = {column.lower(): column for column in table.columns}
    for better, worse in OPPOSITES:
        for name in original:
            opposite = re.sub(rf"(^|_){better}(?=_|$)", rf"\1{worse}", name)
            if opposite != name and opposite in original:
                return AnswerColumns(original[name], original[opposite])
    return None


def winner_column(table: SourceTable) -> str | None:
    """A column whose name suggests that it marks which answer won."""
    for column in table.columns:
        if re.fullmatch(WINNER_NAMES, column.strip().lower()):
            return column
    return None


def score_flag(column: str) -> str:
    """The option for a column of numbers: of ranks the lower wins, of scores the higher."""
    return "--ranks" if "rank" in column.lower() else "--scores"


# ---- layouts


def _two_opposite_columns(table: SourceTable) -> str | None:
    """chosen and rejected."""
    columns = preferred_columns(table)
    return option("--pairs", joined_names(columns)) if columns else None


def _scored_answers_in_a_cell(table: SourceTable) -> str | None:
    """All answers to a prompt in one cell, each an object with its text and its score."""
    for column, cells in table.sample.items():
        lists = (cell for cell in cells if isinstance(cell, list) and len(cell) > 1)
        answer = next((cell[0] for cell in lists if isinstance(cell[0], dict)), {})
        text = _text_field(answer)
        score = _score_field(answer)
        if text and score:
            pairs = option("--pairs", f"{column}.{text}")
            return f"{pairs} {option(score_flag(score), f'{column}.{score}')}"
    return None


def _text_field(answer: Mapping[str, object]) -> str | None:
    for key, value in answer.items():
        is_text = re.fullmatch("answer|response|text|output|completion|generation", key.lower())
        if value is not None and is_text:
            return key
    return None


def _score_field(answer: Mapping[str, object]) -> str | None:
    """The field with the shortest name that says it is a score."""
    names = [
        key
        for key, value in answer.items()
        if isinstance(value, int | float) and re.search("rank|score|rating|reward", key.lower())
    ]
    return min(names, key=len, default=None)


def _two_answers_side_by_side(table: SourceTable) -> str | None:
    """response_a and response_b beside a winner or beside score_a and score_b."""
    original = {column.lower(): column for column in table.columns}
    winner = winner_column(table)
    for first, second in SIDES:
        answers = list[str]()
        scores = list[str]()
        for name in original:
            partner = name.removesuffix(first) + second
            if not name.endswith(first) or partner not in original:
                continue
            if re.match(ANSWER_STEMS, name):
                answers.append(joined_names([original[name], original[partner]]))
            if re.match("score|rating|rank", name):
                scores.append(joined_names([original[name], original[partner]]))
        if answers and winner:
            return f"{option('--pairs', answers[0])} {option('--winner', winner)}"
        if answers and scores:
            return f"{option('--pairs', answers[0])} {option(score_flag(scores[0]), scores[0])}"
        if answers and (verdict := _verdict_column(table, answers[0])):
            return f"{option('--pairs', answers[0])} {option('--winner', verdict)}"
    return None


def _verdict_column(table: SourceTable, answers: str) -> str | None:
    """A column beside two answers with few values, which may say which answer won."""
    for column, cells in table.sample.items():
        if column in split_names(answers) or re.match(PROMPT_NAMES, column.lower()):
            continue
        names = list(label_names(cells))
        is_named = re.fullmatch(VERDICT_NAMES, column.strip().lower())
        if is_named and 1 < len(set(names)) <= max(MAX_VERDICTS, len(names) / 10):
            return column
    return None


def _answers_of_a_tree(table: SourceTable) -> str | None:
    """OpenAssistant's messages: each with its parent, and its rank among the parent's answers."""
    original = {column.lower(): column for column in table.columns}
    if not {"parent_id", "rank", "text"} <= set(original):
        return None
    pairs = f"{option('--pairs', original['text'])} {option('--ranks', original['rank'])}"
    return f"{pairs} {option('--by', original['parent_id'])}"


LAYOUTS: tuple[Callable[[SourceTable], str | None], ...] = (
    _two_opposite_columns,
    _scored_answers_in_a_cell,
    _two_answers_side_by_side,
    _answers_of_a_tree,
)
