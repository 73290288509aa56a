"""Which answer won: what the values of a winner column mean, and which column seems to say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.name_lists import joined_names
from tokensieve.read.corpus import Outcome
from tokensieve.read.preference_columns import VERDICT_NAMES, score_flag, winner_column
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
        "tie ties tied draw both bothgood bothbad botharegood botharebad bothequal equal "
        "equallygood equallybad aboutequal aboutthesame thesame same similar neither none "
        "nopreference nodifference tiebothbad"
    ).split(),
    Outcome.UNKNOWN: (
        "skip skipped invalid error unknown unsure notsure unclear na nan null".split()
    ),
}
SIDES = (Outcome.FIRST, Outcome.SECOND)
LIKERT_SIZES = range(4, 11)  # with fewer numbers, 3 is a tie
MAX_NUMBERS_IN_NOTE = 20  # more of them are a continuous scale
MIN_CONTRADICTIONS = 0.5  # of the rows with different scores
MAX_COMPARISON = 500  # characters; the patterns below take cubic time
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_WINS = r"([\W_]+(is[\W_])?(wins?|won|winner|better|best|preferred))?"
_DEGREES = (
    "much far slightly significantly somewhat clearly marginally strongly bit little a".split()
)
_DEGREE = rf"(?:(?:{'|'.join(_DEGREES)})\s+)*"
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
    if number < middle:
        return Outcome.FIRST
    return Outcome.SECOND


def _numbers_of_columns(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """The numbers in the columns' names, such as response_0 and response_1."""
    ends = last_words(column.answers)
    if not all(end.isdigit() for end in ends):
        return None
    meaning = dict(zip(map(float, ends), SIDES, strict=True))
    if numbers <= set(meaning):
        return meaning
    return None


def _two_numbers(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """Recognise 0 and 1, or 1 and 2, as names of the two answers."""
    if numbers not in ({0, 1}, {1, 2}):
        return None
    return {min(numbers): Outcome.FIRST, max(numbers): Outcome.SECOND}


def _three_numbers(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """Recognise a scale on which 1 and 2 name the answers, and 0 or 3 is a tie."""
    if numbers not in ({0, 1, 2}, {1, 2, 3}):
        return None
    return {0: Outcome.TIE, 1: Outcome.FIRST, 2: Outcome.SECOND, 3: Outcome.TIE}


def _between_one_and_two(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """AlpacaEval's 1 (the first answer) to 2 (the second one), in fractions."""
    is_between = min(numbers) >= 1 and max(numbers) <= 2 and not numbers <= {1, 2}
    if is_between:
        return {number: _below_first(number, middle=1.5) for number in numbers}
    return None


def _likert(column: WinnerColumn, numbers: set[float]) -> Meaning | None:
    """Recognise a scale from 1 (the first answer is much better) to 4 and up to 10 (the second one
    is)."""
    highest = max(numbers)
    are_whole = all(number.is_integer() for number in numbers)
    if not are_whole or min(numbers) != 1 or highest not in LIKERT_SIZES:
        return None
    return {number: _below_first(number, middle=(1 + highest) / 2) for number in numbers}


NUMBER_SCALES: tuple[NumberScale, ...] = (
    _win_probability,
    _signed_scale,
    _numbers_of_columns,
    _two_numbers,
    _three_numbers,
    _between_one_and_two,
    _likert,
)


# ---- what any value means


@dataclass
class OutcomeReader:
    """Reads the outcome of a row from its winner column.

    Attributes:
        column: the winner column.
        models: columns that name the model of either answer, if there are any.
        tie: a column that marks ties, beside one that marks the wins of one answer.
        scores: columns with a score of either answer, if there are any; the winner is compared
            with them.
        meaning: value → outcome.
        numbers: the values that are numbers.
        notes: how numbers were read.
    """

    column: WinnerColumn
    models: Sequence[str]
    tie: str | None
    scores: tuple[str, ...] = ()
    meaning: dict[str, Outcome] = field(default_factory=dict)
    numbers: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    n_scored: int = 0
    n_contradictions: int = 0

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
        """The outcome of each number of the winner column, by the first scale that has them all."""
        numbers = {float(number) for number in self.numbers}
        for scale in NUMBER_SCALES:
            meaning = scale(self.column, numbers)
            if meaning is not None:
                self.notes = [self._note(meaning, sorted(numbers))]
                return {number: meaning[float(number)] for number in self.numbers}
        raise InputError(
            f"{self.column.source}: column {self.column.name!r} contains "
            f"{listed(sorted(self.numbers))}, which does not say which answer "
            "won; "
            "it may contain 0 and 1, or 1 and 2"
        )

    def _note(self, meaning: Meaning, numbers: Sequence[float]) -> str:
        """A sentence with the meanings of the first and the last number."""
        names = {
            Outcome.FIRST: repr(self.column.answers[0]),
            Outcome.SECOND: repr(self.column.answers[1]),
            Outcome.TIE: "a tie",
        }
        if len(numbers) > MAX_NUMBERS_IN_NOTE:
            lowest = meaning[numbers[0]]
            end = max(number for number in numbers if meaning[number] == lowest)
            return (
                f"a winner of {numbers[0]:g} to {end:.4g} means {names[lowest]}, "
                f"up to {numbers[-1]:g} {names[meaning[numbers[-1]]]}"
            )
        shown = numbers
        if len(numbers) > 4:
            ties = [number for number in numbers if meaning[number] == Outcome.TIE]
            shown = list(dict.fromkeys([*numbers[:2], *ties[:1], *numbers[-2:]]))
        return "a winner of " + ", ".join(
            f"{number:g} means {names[meaning[number]]}" for number in shown
        )

    def outcome(self, row: int, values: Mapping[str, object]) -> Outcome:
        """The outcome of a row; UNKNOWN if its cell is empty."""
        outcome = self._read_outcome(row, values)
        if self.scores and outcome in SIDES:
            self._compare_with_scores(outcome, values)
        return outcome

    def _compare_with_scores(self, outcome: Outcome, values: Mapping[str, object]) -> None:
        """Count whether the scores of a row agree with its outcome; rows without two different ones
        do not count.
        """
        with suppress(TypeError, ValueError, OverflowError):
            first, second = (float(str(values[name])) for name in self.scores)
            if first == second:
                return
            lower_is_better = score_flag(self.scores[0]) == "--ranks"
            first_is_better = (first < second) == lower_is_better
            self.n_scored += 1
            self.n_contradictions += first_is_better != (outcome == Outcome.FIRST)

    def contradictions(self) -> list[str]:
        """Say so if the scores contradict the winner in most rows."""
        return contradiction_notes(self.scores, self.n_contradictions, self.n_scored)

    def _read_outcome(self, row: int, values: Mapping[str, object]) -> Outcome:
        """The outcome of one row: a tie that another column marks, then the name of a model, then
        the meaning of the cell.

        Raises:
            InputError: the cell names neither answer nor a tie.
        """
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


def contradiction_notes(
    score_columns: Sequence[str], n_contradictions: int, n_scored: int
) -> list[str]:
    """Say so if scores contradict the winner in most of the rows with different scores."""
    if n_contradictions <= MIN_CONTRADICTIONS * n_scored:
        return []
    scores = joined_names(score_columns)
    flag = score_flag(scores)
    return [
        f"the winner contradicts {scores} in {n_contradictions:,} of {n_scored:,} rows: "
        f"if these are right, pass {option(flag, scores)} in place of --winner"
    ]


def _is_true(value: str) -> bool:
    return value.lower() in ("1", "true")


def _named_outcomes(answers: Sequence[str], values: Iterable[str]) -> dict[str, Outcome]:
    """Outcomes of the values that are names of a column, or words for an answer or a tie."""
    names = dict.fromkeys(SYNONYMS[Outcome.SECOND], Outcome.SECOND)
    names |= dict.fromkeys(SYNONYMS[Outcome.FIRST], Outcome.FIRST)
    for side in (Outcome.SECOND, Outcome.FIRST):
        column = answers[side].lower()
        names |= {column: side, letters_and_digits(last_words([column])[0]): side}
    for outcome in (Outcome.TIE, Outcome.UNKNOWN):
        names |= dict.fromkeys(SYNONYMS[outcome], outcome)
    meaning = {}
    for value in values:
        named = names.get(letters_and_digits(value), names.get(value.lower()))
        meant = named
        if named is None:
            meant = _compared(value, names)
        if meant is not None:
            meaning[value] = meant
    return meaning


def _compared(value: str, names: Mapping[str, Outcome]) -> Outcome | None:
    """The outcome that a written comparison says: [[A>>B]], A = B, a sign alone, or "A is slightly
    better"."""
    if len(value) > MAX_COMPARISON:
        return None
    sign_alone = re.fullmatch(r"\W*?([<>]+|[=≈~]+)\W*", value)
    if sign_alone:
        signs_of_outcomes = {">": Outcome.FIRST, "<": Outcome.SECOND}
        return signs_of_outcomes.get(sign_alone[1][0], Outcome.TIE)
    signs = re.fullmatch(r"\W*?([\w ]+?)\s*([<>]+|[=≈~]+)\s*([\w ]+?)\W*", value)
    if signs:
        sides = [names.get(letters_and_digits(signs[i])) for i in (1, 3)]
        return _compared_by_sign(sides, signs[2][0])
    words = re.fullmatch(
        rf"(.+?)\s+(?:is|was|are)?\s*{_DEGREE}\s*(better|worse|preferred|wins?|won)\W*",
        value.lower(),
    )
    if not words:
        return None
    side = names.get(letters_and_digits(words[1]))
    if side is None or side not in SIDES:
        return side
    if words[2] == "worse":
        return side.opposite
    return side


def _compared_by_sign(sides: Sequence[Outcome | None], sign: str) -> Outcome | None:
    """The outcome of two sides with a sign between them; None if they are not two answers."""
    if None in sides or sides[0] == sides[1]:
        return None
    if sign in "=≈~":
        return Outcome.TIE
    if sign == ">":
        return sides[0]
    return sides[1]


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
    names_of_models = [
        {letters_and_digits(value) for value in values.get(name, set())} for name in models
    ]
    for name, cells in values.items():
        if _names_answers(name, cells, answers, names_of_models):
            return OutcomeOption("--winner", name)
        scores = _as_scores(name, values, answers)
        if scores is not None:
            return scores
    return None


def _names_answers(
    name: str, values: set[str], answers: tuple[str, ...], models: Sequence[set[str]]
) -> bool:
    """Whether all values of a column name one of the answers or a tie, and both answers occur."""
    meaning = _named_outcomes(answers, (value for value in values if not _NUMBER.fullmatch(value)))
    if len(meaning) == len(values) and {*SIDES} <= set(meaning.values()):
        return True
    decided = {letters_and_digits(value) for value in values - set(meaning)}
    decided |= {letters_and_digits(value) for value in meaning if meaning[value] in SIDES}
    if re.search(_SAYS_OUTCOME, name.lower()):
        for first, second in [({"0"}, {"1"}), ({"1"}, {"2"}), *_pairs_of(models)]:
            if decided <= first | second and decided & first and decided & second:
                return True
    return _is_scale(name, values)


def _pairs_of(models: Sequence[set[str]]) -> list[tuple[set[str], set[str]]]:
    if len(models) == 2:
        return [(models[0], models[1])]
    return []


def _is_scale(name: str, values: set[str]) -> bool:
    """Whether a column is named like a verdict and holds the numbers of a scale."""
    if not re.fullmatch(VERDICT_NAMES, name.strip().lower()):
        return False
    if not values or not all(_NUMBER.fullmatch(value) for value in values):
        return False
    numbers = {float(value) for value in values}
    any_column = WinnerColumn("", name, ("a", "b"), None)
    return any(
        scale(any_column, numbers) for scale in (_signed_scale, _between_one_and_two, _likert)
    )


def tie_column(table: SourceTable) -> str | None:
    """A column that marks ties, beside one that marks the wins of one answer."""
    for name in table.columns:
        if re.fullmatch(r"(winner_)?(model_)?tie", name.lower()):
            return name
    return None


def score_columns(table: SourceTable, answers: Sequence[str]) -> tuple[str, ...]:
    """Two columns with a score of either answer, by their names; none if there are none."""
    names = {name: name.lower() for name in table.columns}
    words = list(zip(last_words(answers), SIDES, strict=True))
    for name, lower in names.items():
        (first, _), (second, _) = words
        if not re.search(_IS_SCORE, lower) or not lower.endswith(first):
            continue
        partner_name = lower.removesuffix(first) + second
        partner = next((column for column, text in names.items() if text == partner_name), None)
        if partner is not None and partner != name and name not in answers:
            return name, partner
    return ()


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
    opposite_name = "".join(opposite.get(part, part) for part in re.split(word, name))
    numbers = values[name] | values.get(opposite_name, set())
    if not all(re.fullmatch(r"-?[0-9.]+", number) for number in numbers):
        return None
    has_partner = opposite_name != name and opposite_name in values
    sides = "|".join([*first_only, *second_only])
    is_chance = rf"(p|prob\w*|chance|confidence)_({sides})(_.*)?"
    if not has_partner and re.fullmatch(is_chance, name, re.IGNORECASE):
        return OutcomeOption("--winner", name)
    if has_partner and re.search(_IS_SCORE, name.lower()):
        return OutcomeOption(score_flag(name), f"{name},{opposite_name}")
    return None
