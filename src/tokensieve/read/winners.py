"""Which answer won: what the values of a winner column mean, and which column seems to say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tokensieve.errors import InputError
from tokensieve.read.corpus import Outcome
from tokensieve.read.preference_columns import score_flag, winner_column
from tokensieve.read.table import SourceTable
from tokensieve.read.values import label_name, label_names, listed

SYNONYMS = {  # of the outcomes, without anything but letters and digits
    Outcome.FIRST: (
        "a modela responsea answera assistanta left first model1 response1 answer1 chosen"
    ).split(),
    Outcome.SECOND: (
        "b modelb responseb answerb assistantb right second model2 response2 answer2 rejected"
    ).split(),
    Outcome.TIE: (
        "tie ties tied draw both bothgood bothbad equal same neither none nopreference tiebothbad"
    ).split(),
}
SIDES = (Outcome.FIRST, Outcome.SECOND)
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_WINS = r"([\W_]+(is[\W_])?(wins?|won|winner|better|best|preferred))?"
_SAYS_OUTCOME = r"w[io]n|prefer|better|best|choice|chosen|select|vote|label|target|favou?r"
_IS_SCORE = (
    "rank|score|rating|vote|likes|reward|points|likert|logprob|elo$|elo_|correct|quality|helpful|"
    "prob"
)


def letters_and_digits(name: str) -> str:
    """The ASCII letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def last_words(answers: Iterable[str]) -> list[str]:
    """The last word of each column's name, such as "a" and "b"."""
    return [re.sub(r".*[_\W]", "", name.lower()) for name in answers]


def other_side(side: Outcome) -> Outcome:
    """The other one of two answers."""
    return side.opposite


# ---- what numbers mean


@dataclass(frozen=True)
class WinnerColumn:
    """A column that says which of two answers won.

    Attributes:
        source: what the table is called, for messages.
        name: the column.
        answers: the columns of the answers.
        side: the answer that the column's name mentions, as in `a_wins`; None if it mentions none
            or both.
    """

    source: str
    name: str
    answers: tuple[str, ...]
    side: Outcome | None

    @classmethod
    def of(cls, source: str, name: str, answers: tuple[str, ...]) -> WinnerColumn:
        """Find out which answer the name of the column mentions."""
        sides = [
            side
            for side, end in zip(SIDES, last_words(answers), strict=True)
            if re.search(rf"(^|[\W_]){end}{_WINS}$", name.lower())
        ]
        return cls(source, name, answers, sides[0] if len(sides) == 1 else None)


Meaning = dict[float, Outcome]
NumberScale = Callable[[WinnerColumn, set[float]], Meaning | None]


def _win_probability(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """Chances of winning, such as p_a_wins."""
    is_between = min(numbers) >= 0 and max(numbers) <= 1 and not numbers <= {0, 1}
    if not is_between:
        return None
    if column.side is None:
        first = last_words(column.answers)[0]
        raise InputError(
            f"{column.source}: {column.name!r} looks like a win probability, but it is unclear for "
            f"which answer; rename it, for example p_{first}_wins"
        )
    meaning: Meaning = {}
    for number in numbers:
        if number == 0.5:
            meaning[number] = Outcome.TIE
        else:
            meaning[number] = column.side if number > 0.5 else other_side(column.side)
    return meaning


def _signed_scale(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """A scale such as HelpSteer's −3 to 3: below zero the first answer is better."""
    if min(numbers) >= 0:
        return None
    return {number: _below_first(number, middle=0) for number in numbers}


def _below_first(number: float, middle: float) -> Outcome:
    if number == middle:
        return Outcome.TIE
    return Outcome.FIRST if number < middle else Outcome.SECOND


def _numbers_of_columns(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """The numbers in the columns' names, such as response_0 and response_1."""
    ends = last_words(column.answers)
    if not all(end.isdigit() for end in ends):
        return None
    meaning = dict(zip(map(float, ends), SIDES, strict=True))
    return meaning if numbers <= set(meaning) else None


def _two_numbers(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """0 and 1, or 1 and 2."""
    if numbers not in ({0, 1}, {1, 2}):
        return None
    return {min(numbers): Outcome.FIRST, max(numbers): Outcome.SECOND}


def _three_numbers(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """1 and 2, and 0 or 3 for a tie."""
    if numbers not in ({0, 1, 2}, {1, 2, 3}):
        return None
    return {0: Outcome.TIE, 1: Outcome.FIRST, 2: Outcome.SECOND, 3: Outcome.TIE}


NUMBER_SCALES: tuple[NumberScale, ...] = (
    _win_probability,
    _signed_scale,
    _numbers_of_columns,
    _two_numbers,
    _three_numbers,
)


# ---- what any value means


@dataclass
class OutcomeReader:
    """Reads the outcome of a row from its winner column.

    Attributes:
        column: the winner column.
        models: columns that name the model of either answer, if there are any.
        tie: a column that marks ties, beside one that marks the wins of one answer.
        meaning: value → outcome.
        numbers: the values that are numbers.
        notes: how numbers were read.
    """

    column: WinnerColumn
    models: Sequence[str]
    tie: str | None
    meaning: dict[str, Outcome] = field(default_factory=dict)
    numbers: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def learn(self, values: set[str]) -> None:
        """Find out what the values of the column mean, from all of them."""
        self.numbers = {value for value in values if _NUMBER.fullmatch(value)}
        are_truth_values = {value.lower() for value in values} <= {"0", "1", "true", "false"}
        is_index = self.column.name.endswith("_id")
        if are_truth_values and not is_index and self.column.side is not None:
            side = self.column.side  # such as winner_model_a or a_wins, with 1 where it won
            self.meaning = {
                value: side if _is_true(value) else other_side(side) for value in values
            }
            return
        self.tie = None
        self.meaning = _named_outcomes(self.column.answers, values)
        if self.numbers:
            self.meaning |= self._number_meanings()

    def _number_meanings(self) -> dict[str, Outcome]:
        numbers = {float(number) for number in self.numbers}
        for scale in NUMBER_SCALES:
            meaning = scale(self.column, numbers)
            if meaning is not None:
                self.notes = [self._note(meaning, sorted(numbers))]
                return {number: meaning[float(number)] for number in self.numbers}
        raise InputError(
            f"{self.column.source}: column {self.column.name!r} contains "
            f"{listed(sorted(self.numbers))}, which does not say which answer won; "
            "it may contain 0 and 1, or 1 and 2"
        )

    def _note(self, meaning: Meaning, numbers: Sequence[float]) -> str:
        """What the first and the last numbers mean."""
        names = {
            Outcome.FIRST: repr(self.column.answers[0]),
            Outcome.SECOND: repr(self.column.answers[1]),
            Outcome.TIE: "a tie",
        }
        ends = numbers if len(numbers) <= 4 else [*numbers[:2], *numbers[-2:]]
        return "a winner of " + ", ".join(
            f"{number:g} means {names[meaning[number]]}" for number in ends
        )

    def outcome(self, row: int, values: Mapping[str, object]) -> Outcome:
        """The outcome of a row; UNKNOWN if its cell is empty."""
        if self.tie and _is_true(label_name(values[self.tie]) or ""):
            return Outcome.TIE
        cell = label_name(values[self.column.name])
        if cell is None:
            return Outcome.UNKNOWN
        models = [label_name(values[model]) for model in self.models]
        names_a_model = cell in models and models[0] != models[1] and cell not in self.numbers
        if names_a_model and self.meaning.get(cell) != Outcome.TIE:
            return SIDES[models.index(cell)]
        if cell in self.meaning:
            return self.meaning[cell]
        first, second = self.column.answers
        raise InputError(
            f"{self.column.source}: row {row}: column {self.column.name!r} contains {cell[:40]!r}, "
            f"which names neither answer nor a tie; it may contain {first} and {second}, A and B, "
            "1 and 2, 0 and 1, the models' names, and tie"
        )


def _is_true(value: str) -> bool:
    return value.lower() in ("1", "true")


def _named_outcomes(answers: Sequence[str], values: Iterable[str]) -> dict[str, Outcome]:
    """What the values mean that are names of a column, or words for an answer or a tie."""
    names = dict.fromkeys(SYNONYMS[Outcome.SECOND], Outcome.SECOND)
    names |= dict.fromkeys(SYNONYMS[Outcome.FIRST], Outcome.FIRST)
    for side in (Outcome.SECOND, Outcome.FIRST):
        column = answers[side].lower()
        names |= {column: side, letters_and_digits(last_words([column])[0]): side}
    names |= dict.fromkeys(SYNONYMS[Outcome.TIE], Outcome.TIE)
    meaning = {}
    for value in values:
        outcome = names.get(letters_and_digits(value), names.get(value.lower()))
        if outcome is not None:
            meaning[value] = outcome
    return meaning


# ---- which column seems to say it


class OutcomeOption(NamedTuple):
    """An option that says which answer won, and its columns."""

    flag: str
    columns: str


def likely_outcome(
    table: SourceTable, answers: tuple[str, ...], models: Sequence[str]
) -> OutcomeOption | None:
    """The option that a table seems to need beside --pairs.

    That is --winner with a column that is named so, or whose first values name both answers and
    else only ties (numbers and models count if its name says more); or --scores or --ranks with two
    columns of numbers that are named like the answers.
    """
    named = winner_column(table)
    if named:
        return OutcomeOption("--winner", named)
    if len(answers) != 2:
        return None
    values = {
        name: set(label_names(cells))
        for name, cells in table.sample.items()
        if not any(isinstance(cell, list | dict) for cell in cells)
    }
    names_of_models = [_simplified(values.get(name, set())) for name in models]
    for name, cells in values.items():
        if _names_answers(name, cells, answers, names_of_models):
            return OutcomeOption("--winner", name)
        scores = _as_scores(name, values, answers)
        if scores is not None:
            return scores
    return None


def _simplified(values: Iterable[str]) -> set[str]:
    return {letters_and_digits(value) for value in values}


def _names_answers(
    name: str, values: set[str], answers: Sequence[str], models: Sequence[set[str]]
) -> bool:
    """Whether all values of a column name one of the answers or a tie, and both answers occur."""
    own_names = [{letters_and_digits(answers[side]), *SYNONYMS[side]} for side in SIDES]
    sides = [own_names]
    if re.search(_SAYS_OUTCOME, name.lower()):
        sides += [[{"0"}, {"1"}], [{"1"}, {"2"}]]
        if models:
            sides.append(list(models))
    said = _simplified(values) - {*SYNONYMS[Outcome.TIE]}
    return any(said <= first | second and said & first and said & second for first, second in sides)


def _as_scores(
    name: str, values: Mapping[str, set[str]], answers: Sequence[str]
) -> OutcomeOption | None:
    """The option for a column of numbers that is named like the first answer, if it is."""
    word = r"([^\W\d_]+|\d+)"
    first_words = re.findall(word, answers[0])
    second_words = re.findall(word, answers[1])
    first_only = [part for part in first_words if part not in second_words]
    second_only = [part for part in second_words if part not in first_words]
    opposite: dict[str, str] = dict(zip(first_only, second_only, strict=False))
    other = "".join(opposite.get(part, part) for part in re.split(word, name))
    numbers = values[name] | values.get(other, set())
    if not all(re.fullmatch(r"-?[0-9.]+", number) for number in numbers):
        return None
    has_partner = other != name and other in values
    sides = "|".join([*first_only, *second_only])
    is_chance = rf"(p|prob\w*|chance|confidence)_({sides})(_.*)?"
    if not has_partner and re.fullmatch(is_chance, name, re.IGNORECASE):
        return OutcomeOption("--winner", name)
    if has_partner and re.search(_IS_SCORE, name.lower()):
        return OutcomeOption(score_flag(name), f"{name},{other}")
    return None
