"""Tables that look like preference data, and the options that read them.

A layout is a row of `LAYOUTS`: a function that returns the options for a table, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tokensieve.escape import option
from tokensieve.name_lists import joined_names, split_names
from tokensieve.read.chats import chat_text, text_key
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
# the same of answers whose cells are texts; columns of labels may have these names too
CONTRASTS = (
    ("pos", "neg"),
    ("positive", "negative"),
    ("good", "bad"),
    ("better", "worse"),
    ("accepted", "refused"),
)
MIN_ANSWER_WORDS = 3  # on average; a label has fewer
SIDES = (("a", "b"), ("0", "1"), ("1", "2"), ("left", "right"), ("first", "second"))
ANSWER_STEMS = (
    "human_ref|response|answer|output|completion|conversation|summary|text|candidate|reply|"
    "generation"
)
REJECTED_NAMES = "rejected(_(response|answer|output|completion|message))?|non_preferred_output"
PROMPT_NAMES = "prompt|question|instruction|query|history"
VERDICT_NAMES = r"(\w+_)?(verdict|rating|label|labels|result|outcome|judg\w*|annotation|score|vote)"
# values that name one of two answers, in a column of any name
NAMES_OF_SIDES = r"((model|answer|response|output|option|assistant)[ _]?)?"
FIRST_SIDE = NAMES_OF_SIDES + "(a|first|left)"
SECOND_SIDE = NAMES_OF_SIDES + "(b|second|right)"
MAX_VERDICTS = 10  # different ones, or a tenth of the rows: a scale, and words for a tie
WINNER_NAMES = (
    r"winn(er|ing)\w*|prefer\w*|overall_preference|better\w*|best\w*|(human_)?choice|judge?ment|"
    r"\w+_wins?"
)
# an order of two, [1, 0], names the same winner whether its numbers are ranks or places
MAX_UNAMBIGUOUS = 2
ORDER_NOTE = (
    " if each number is the rank of the answer beside it; if they are the answers' numbers, best "
    "first, write ranks instead"
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


def preferred_columns(
    table: SourceTable, opposites: Sequence[tuple[str, str]] = OPPOSITES
) -> AnswerColumns | None:
    """The columns of the preferred and the other answer, if their names show it."""
    original = {column.lower(): column for column in table.columns}
    for better, worse in opposites:
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


def _two_contrasted_texts(table: SourceTable) -> str | None:
    """pos and neg, if they hold texts, or objects that do: pos_answer and neg_answer."""
    columns = preferred_columns(table, CONTRASTS)
    if columns is None:
        return None
    fields = [_field_of_answers(table.sample[column]) for column in columns]
    if None in fields:
        return None
    names = [
        f"{column}.{field}" if field else column
        for column, field in zip(columns, fields, strict=True)
    ]
    return option("--pairs", joined_names(names))


def _field_of_answers(cells: Sequence[Any]) -> str | None:
    """The field that holds texts, "" if the cells are texts themselves; None if they are neither.

    Of conversations, the cells.
    """
    first = next((cell for cell in cells if cell), None)
    field = ""
    if isinstance(first, dict):
        if text_key([first]) is not None:
            return ""
        field = _text_field(first) or ""
        cells = [cell.get(field) for cell in cells if isinstance(cell, dict)]
    texts = [text for text in map(chat_text, cells) if isinstance(text, str)]
    n_words = sum(len(text.split()) for text in texts)
    return field if texts and n_words >= MIN_ANSWER_WORDS * len(texts) else None


def _conversation_and_rejected_answer(table: SourceTable) -> str | None:
    """messages, which end with the preferred answer, beside rejected_response."""
    rejected = [name for name in table.columns if re.fullmatch(REJECTED_NAMES, name.lower())]
    chats = [name for name, cells in table.sample.items() if any(map(text_key, cells))]
    preferred = [name for name in chats if name not in rejected]
    if len(rejected) == 1 and len(preferred) == 1:
        return option("--pairs", joined_names([*preferred, *rejected]))
    return None


def _best_of_a_list(table: SourceTable) -> str | None:
    """All answers to a prompt in one cell, beside the number of the best one."""
    winner = winner_column(table)
    if winner is None:
        return None
    for column, cells in table.sample.items():
        lists = [cell for cell in cells if isinstance(cell, list) and len(cell) > 1]
        answers = [answer for cell in lists for answer in cell]
        field = _field_of_answers(answers)
        if column != winner and field is not None and not any(map(text_key, lists)):
            name = f"{column}.{field}" if field else column
            return f"{option('--pairs', joined_names([name]))} {option('--winner', winner)}"
    return None


def _scored_answers_in_a_cell(table: SourceTable) -> str | None:
    """All answers to a prompt in one cell, each an object with its text and its score."""
    for column, cells in table.sample.items():
        lists = (cell for cell in cells if isinstance(cell, list) and len(cell) > 1)
        answer = next((cell[0] for cell in lists if isinstance(cell[0], dict)), {})
        text = _text_field(answer)
        score = _score_field(answer)
        if text and score:
            pairs = option("--pairs", joined_names([f"{column}.{text}"]))
            scores = option(score_flag(score), joined_names([f"{column}.{score}"]))
            return f"{pairs} {scores}"
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
            columns = joined_names([original[name], original[partner]])
            if re.match(ANSWER_STEMS, name):
                answers.append(columns)
            if re.match("score|rating|rank", name):
                scores.append(columns)
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
        if _name_both_sides(names):
            return column
        if is_named and 1 < len(set(names)) <= max(MAX_VERDICTS, len(names) / 10):
            return column
    return None


def _name_both_sides(values: Sequence[str]) -> bool:
    """Whether some values name the first of two answers, others the second, few anything else."""
    lowered = [value.strip().lower() for value in values]
    n_first = sum(bool(re.fullmatch(FIRST_SIDE, value)) for value in lowered)
    n_second = sum(bool(re.fullmatch(SECOND_SIDE, value)) for value in lowered)
    others = {value for value in lowered if not re.fullmatch(f"{FIRST_SIDE}|{SECOND_SIDE}", value)}
    # a tie has a name or two
    return n_first > 0 and n_second > 0 and len(others) <= 2


def _answers_and_numbers_in_cells(table: SourceTable) -> str | None:
    """All answers to a prompt in one cell, and their ranks or scores in another."""
    for column, cells in table.sample.items():
        lists = [cell for cell in cells if isinstance(cell, list) and len(cell) > 1]
        field = _field_of_answers([answer for cell in lists for answer in cell])
        if not lists or field is None or any(map(text_key, lists)):
            continue
        answers = option("--pairs", joined_names([f"{column}.{field}" if field else column]))
        for other, numbers in table.sample.items():
            is_scored = re.search("rank|score|rating|reward", other.lower()) is not None
            if is_scored and _are_as_long(cells, numbers):
                return f"{answers} {option(score_flag(other), joined_names([other]))}"
            if "order" in other.lower() and _are_orders(cells, numbers):
                is_clear = max(len(cell) for cell in lists) <= MAX_UNAMBIGUOUS
                note = "" if is_clear else ORDER_NOTE
                return f"{answers} {option('--ranks', joined_names([other]))}{note}"
    return None


def _are_orders(cells: Sequence[Any], numbers: Sequence[Any]) -> bool:
    """Whether each list has one number for each entry of the list beside it, from 0 or from 1."""
    return _are_as_long(cells, numbers) and all(
        sorted(of_cell) in ([*range(len(of_cell))], [*range(1, len(of_cell) + 1)])
        for of_cell in numbers
    )


def _are_as_long(cells: Sequence[Any], numbers: Sequence[Any]) -> bool:
    """Whether each list has one number for each entry of the list beside it."""
    return all(
        isinstance(cell, list)
        and isinstance(of_cell, list)
        and len(cell) == len(of_cell)
        and all(isinstance(number, int | float) for number in of_cell)
        for cell, of_cell in zip(cells, numbers, strict=True)
    )


def _answers_of_a_tree(table: SourceTable) -> str | None:
    """OpenAssistant's messages: each with its parent, and its rank among the parent's answers."""
    original = {column.lower(): column for column in table.columns}
    if not {"parent_id", "rank", "text"} <= set(original):
        return None
    pairs = f"{option('--pairs', original['text'])} {option('--ranks', original['rank'])}"
    return f"{pairs} {option('--by', original['parent_id'])}"


LAYOUTS: tuple[Callable[[SourceTable], str | None], ...] = (
    _two_opposite_columns,
    _two_contrasted_texts,
    _conversation_and_rejected_answer,
    _scored_answers_in_a_cell,
    _answers_and_numbers_in_cells,
    _two_answers_side_by_side,
    _best_of_a_list,
    _answers_of_a_tree,
)
