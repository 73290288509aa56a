"""The rows of a table of preference data become answers and comparisons of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.name_lists import joined_names
from tokensieve.read.answers import (
    ASSISTANT,
    alternatives,
    answer_cells,
    has_roles,
    parsed_list,
    read_answers,
)
from tokensieve.read.column_tokens import ColumnTokens
from tokensieve.read.columns import text_field_inside
from tokensieve.read.corpus import Outcome
from tokensieve.read.fields import ColumnKind
from tokensieve.read.pair_collector import Answer, Comparison, PairCollector, PairSource
from tokensieve.read.part_column import TEST_NAMES, check_parts, part_names
from tokensieve.read.preference_columns import preferred_columns
from tokensieve.read.settings import ReadSettings
from tokensieve.read.table import SourceTable
from tokensieve.read.values import as_list, label_names, missing
from tokensieve.read.winners import (
    OutcomeReader,
    WinnerColumn,
    likely_outcome,
    score_columns,
    tie_column,
)
from tokensieve.wording import plural

PROMPT_STEMS = "prompt question instruction query history".split()
ORDERED_NAMES = {"chosen", "preferred", "winner", "better"}  # of the first column: it won
NO_SCORE = ("", "nan", "n/a", "na", "none", "null", "-")
ANSWER_FIELD = "answer"  # of the answer itself, beside fields for other columns


@dataclass(frozen=True)
class _Row:
    """A row of the table.

    Attributes:
        number: from 1.
        values: column → value.
        words: column of --columns → its word.
        environment: None if none are read.
        part: the name in the column of parts, in lower case; "" if there is none.
    """

    number: int
    values: dict[str, Any]
    words: dict[str, str | None]
    environment: str | None
    part: str


@dataclass
class _AnswersOfPrompt:
    """The answers of a prompt that has a row for each of them."""

    first_row: int
    answers: list[Answer] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)


class PairReader:
    """How the rows of one table become pairs.

    Attributes:
        table: the source.
        by: the column of the units (prompts), if any.
        fields: the fields of each text; empty if it is the answer alone.
        tokens: how values of other columns become words.
    """

    def __init__(
        self,
        table: SourceTable,
        settings: ReadSettings,
        by: str | None,
        kinds: Mapping[str, ColumnKind] | None = None,
    ) -> None:
        """Check the columns that the settings name, and recognise the others."""
        self.table = table
        self.settings = settings
        self._differ_in_role = ""
        self._n_unscored = 0
        self._first_number = 0
        self.columns = settings.columns_of_pairs
        self.outcome_columns = settings.outcome_columns
        for name in self.columns:
            table.checked_column(name, "pairs")
        for name in self.outcome_columns:
            table.checked_column(name, settings.outcome_option or "")
        self._by_lower_case = {name.strip().lower(): name for name in reversed(table.columns)}
        self.by = by or self._prompt_column()
        if self.by:
            table.checked_column(self.by, "groups")
        if settings.environments:
            table.checked_column(settings.environments, "environments")
        self._sides = self._last_words()
        self._models = self._model_columns()
        self._tie = tie_column(table) if settings.winner else None
        self._check_no_objects()
        self._has_alternatives = self._are_alternatives()
        self._check_role()
        self._notes = self._order_notes()
        self._token_columns = self._recognised_token_columns()
        self.tokens = ColumnTokens(table, self._token_columns, kinds)
        self.fields = (ANSWER_FIELD, *self.tokens.names) if self.tokens.names else ()

    # ---- columns

    def _prompt_column(self) -> str | None:
        for stem in PROMPT_STEMS:
            for lower, name in self._by_lower_case.items():
                is_prompt = re.fullmatch(rf"{stem}([ _-]?(id|text))?", lower)
                if is_prompt and name not in self.columns:
                    return name
        return None

    def _last_words(self) -> list[str]:
        """The last word of each column of answers, such as "a" and "b"."""
        matches = [re.search(r"[^_\W]+$", name) for name in self.columns]
        return [match[0].lower() for match in matches if match]

    def _model_columns(self) -> list[str]:
        """Columns that name the model of either answer, such as model_a and model_b."""
        names = [self._by_lower_case.get(f"model_{side}") for side in self._sides]
        models = [name for name in names if name is not None]
        if len(self.columns) == len(models) == 2:
            return models
        return []

    def _order_notes(self) -> list[str]:
        """Sentences on how the preferred answer is known, where only the order of the columns can
        say it.

        Raises:
            InputError: another column seems to say which answer won.
        """
        notes = []
        if self._has_alternatives:
            better, worse = map(repr, self.columns)
            notes = [
                f"{better} and {worse} hold lists: each answer is compared with each other one"
            ]
        is_named = not ORDERED_NAMES.isdisjoint(map(str.lower, self.columns))
        if self.outcome_columns or is_named or preferred_columns(self.table) == self.columns:
            return notes
        likely = likely_outcome(self.table, self.columns, self._models)
        if likely is not None:
            command = f"{option('--pairs', joined_names(self.columns))} {option(*likely)}"
            raise InputError(
                f"{self.table.name}: {likely.columns!r} seems to say which answer won; use "
                f"{command}, or, if the first one always won, rename it"
            )
        return [*notes, f"{self.columns[0]!r} is read as the preferred answer of every pair"]

    def _check_no_objects(self) -> None:
        """Refuse objects where answers belong, and name the fields that hold them.

        Raises:
            InputError: an answer is an object that is no message of a conversation.
        """
        fields = [text_field_inside(self.table, name) for name in self.columns]
        answers = [field or name for field, name in zip(fields, self.columns, strict=True)]
        if any(fields):
            command = option("--pairs", joined_names(answers))
            for name in self._outcome_options():
                command += f" {name}"
            raise InputError(
                f"{self.table.name}: the answers are objects; name the fields that hold their "
                f"texts: {command}"
            )

    def _outcome_options(self) -> list[str]:
        if not self.outcome_columns:
            return []
        return [option(f"--{self.settings.outcome_option}", joined_names(self.outcome_columns))]

    def _are_alternatives(self) -> bool:
        """Whether the preferred and the other column hold lists of answers, as in best of n.

        Lists of one length are the answers to each of several turns.
        """
        if self.outcome_columns or len(self.columns) != 2:
            return False
        samples = [self._sample(name) for name in self.columns]
        for cells in zip(*samples, strict=True):
            lists = [parsed_list(cell) for cell in cells]
            are_lists = any(isinstance(cell, list) for cell in lists)
            sizes = {len(alternatives(cell)) for cell in lists}
            if are_lists and len(sizes) > 1:
                return True
        return False

    def _sample(self, name: str) -> list[Any]:
        """The first values of a column; none of a table without rows."""
        with suppress(InputError):
            return self.table.sample_of(name)
        return []

    def _check_role(self) -> None:
        """Refuse --role where the answers are plain texts."""
        if self.settings.role is None:
            return
        samples = [self._sample(name) for name in self.columns]
        rows = [
            [parsed_list(answer) for cell in cells for answer in alternatives(cell)]
            for cells in zip(*samples, strict=True)
        ]
        if rows and not any(
            has_roles(alternatives(cells[0])) or has_roles(cells) for cells in rows
        ):
            raise InputError(
                f"{self.table.name}: --role is for conversations and transcripts, but the answers "
                "are plain texts: leave it out"
            )

    def _recognised_token_columns(self) -> dict[str, tuple[str, ...]]:
        """Field → its columns in the order of the answers; one column if it describes the row."""
        fields: dict[str, tuple[str, ...]] = {}
        for name in self.settings.columns:
            stem = self._stem(name)
            sides = [self._by_lower_case.get(f"{stem}_{side}".lower()) for side in self._sides]
            columns = tuple(side for side in sides if side is not None)
            if len(self.columns) > 1 and len(columns) == len(self.columns):
                fields[stem] = columns
            else:
                self._check_column_of_row(name)
                fields[name] = (name,)
        if ANSWER_FIELD in fields:
            raise InputError(
                f"{self.table.name}: {ANSWER_FIELD!r} is reserved for the answer's text; "
                "rename that column"
            )
        return fields

    def _stem(self, name: str) -> str:
        """The name of a column without the word for one answer: "model" of model_a."""
        for side in self._sides:
            if name.lower().endswith("_" + side):
                return name[: -len(side)].rstrip("_")
        return name.rstrip("_")

    def _check_column_of_row(self, name: str) -> None:
        """Refuse a column that is used already, or whose value is the same for both answers."""
        self.table.checked_column(name, "columns")
        if name in (*self.columns, *self.outcome_columns, self.by, self.settings.split):
            raise InputError(
                f"{self.table.name}: the column {name!r} is already used; leave it out of --columns"
            )
        # with the answer's place the value says something: who prefers the first answer?
        if len(self.columns) == 2 and not self.outcome_columns:
            raise InputError(
                f"{self.table.name}: {name!r} is the same for both answers, so it cannot be a "
                "shortcut; name columns that belong to one answer each, such as model_a and "
                f"model_b, or compare its values with {option('--environments', name)}"
            )

    # ---- rows

    def read_into(self, train: PairCollector, test: PairCollector) -> PairSource:
        """Read all rows of the table into their sides."""
        if self._has_row_per_answer():
            self._read_answer_rows(train)
        else:
            self._read_pair_rows(train, test)
        if self._n_unscored:
            answers = plural(self._n_unscored, "answer")
            self._notes.append(f"{answers} without a score or rank, left out")
        notes = (*self.table.notes, *self.tokens.notes, *self._notes)
        return PairSource(
            self.columns, self.by, self.outcome_columns, self.fields, self.tokens.kinds, notes
        )

    def _has_row_per_answer(self) -> bool:
        """Whether the one column of answers holds a text in each row, not a list of answers."""
        is_scored = self.settings.scores or self.settings.ranks
        if len(self.columns) != 1 or not self.by or not is_scored:
            return False
        column = self.columns[0]
        for row in self._rows():
            if row.values[column] is not None:
                is_text = isinstance(row.values[column], str)
                return is_text and list(answer_cells(row.values, [column])) == [row.values[column]]
        return False

    def _read_pair_rows(self, train: PairCollector, test: PairCollector) -> None:
        """Rows that contain all answers of a prompt."""
        has_column_of_row = any(len(columns) == 1 for columns in self._token_columns.values())
        if len(self.columns) != 2 and has_column_of_row:
            raise InputError(
                f"{self.table.name}: with more than two answers, --columns takes one column per "
                "answer"
            )
        outcomes = None
        if self.settings.winner and len(self.columns) == 1:
            self._find_first_number()
        elif self.settings.winner:
            outcomes = self._outcome_reader()
        parts = set[str]()
        for row in self._rows():
            parts.add(row.part)
            side = train
            if row.part in TEST_NAMES:
                side = test
            side.counts["rows"] += 1
            sides = self._sides_of(row)
            texts, prompt = self._answers(row, sides)
            words = self._words(row, sides)
            answers = [Answer(*answer) for answer in zip(texts, words, strict=True)]
            comparisons = self._comparisons(row, sides, outcomes)
            if comparisons is None:
                side.counts["undecided"] += 1
                continue
            unit = prompt
            if self.by:
                unit = row.values[self.by]
            if missing(unit):
                unit = None
            side.add_row(row.number, answers, comparisons, unit, row.environment)
        if self.settings.split is not None:
            check_parts(self.table, self.settings.split, parts)
        self._add_role_note()
        if outcomes is not None:
            self._notes += outcomes.contradictions()

    def _add_role_note(self) -> None:
        if self._differ_in_role:
            role = self.settings.role or ASSISTANT
            self._notes.append(
                f"after their common beginning, conversations differ in what {role} and "
                f"{self._differ_in_role} say; only messages of {role} are compared (--role)"
            )

    def _comparisons(
        self, row: _Row, sides: Sequence[int], outcomes: OutcomeReader | None
    ) -> Sequence[Comparison] | None:
        """Read which answers of a row are better than which; None if its winner is not usable."""
        if self._has_alternatives:
            return [
                Comparison(better, worse)
                for better, side in enumerate(sides)
                for worse, other_side in enumerate(sides)
                if side < other_side
            ]
        if len(self.columns) == 1 and self.settings.winner:
            return self._winner_of_list(row, len(sides))
        if outcomes is not None:
            outcome = outcomes.outcome(row.number, row.values)
            if outcome == Outcome.UNKNOWN:
                return None
            if outcome == Outcome.TIE:
                return [Comparison(Outcome.FIRST, Outcome.SECOND, is_tie=True)]
            return [Comparison(outcome, outcome.opposite)]
        if self.outcome_columns:
            return scored_comparisons(self._scores(row, len(sides)))
        return [Comparison(Outcome.FIRST, Outcome.SECOND)]

    def _winner_of_list(self, row: _Row, n_answers: int) -> Sequence[Comparison] | None:
        """The answer whose number the winner column holds is better than all others of the list."""
        cell = row.values[str(self.settings.winner)]
        number = self._number(cell, row.number)
        if number is None:
            return None
        winner = int(number) - self._first_number
        if winner != number - self._first_number or not 0 <= winner < n_answers:
            raise InputError(
                f"{self.table.name}: row {row.number}: the winner {cell!r} is not the number of "
                f"one of {n_answers} answers, counted from {self._first_number}"
            )
        return [Comparison(winner, loser) for loser in range(n_answers) if loser != winner]

    def _outcome_reader(self) -> OutcomeReader:
        """The reader of the winner column, which has seen all its values."""
        column = str(self.settings.winner)
        winner = WinnerColumn.of(self.table.name, column, self.columns)
        scores = score_columns(self.table, self.columns)
        reader = OutcomeReader(winner, self._models, self._tie, scores)
        reader.learn(set(label_names(row.values[column] for row in self._rows())))
        self._notes = reader.notes
        return reader

    def _find_first_number(self) -> None:
        """Find out whether the winner among the answers of a list is counted from 0 or from 1."""
        column = str(self.settings.winner)
        numbers = [self._number(row.values[column], row.number) for row in self._rows()]
        smallest = min((number for number in numbers if number is not None), default=0)
        self._first_number = 0 if smallest < 1 else 1
        self._notes = [f"the winner {column!r} counts the answers from {self._first_number}"]

    def _read_answer_rows(self, side: PairCollector) -> None:
        """Rows of one answer each, compared with the others of their prompt."""
        if self.settings.split is not None:
            raise InputError(
                "--split is for rows that contain all answers of a prompt: pass --test SOURCE"
            )
        column = self.columns[0]
        prompts: dict[tuple[str, str | None], _AnswersOfPrompt] = {}
        for row in self._rows():
            side.counts["rows"] += 1
            unit = row.values[self.by or ""]
            if missing(unit):
                unit_name = f"row {row.number}"
            else:
                unit_name = str(unit)
            text = self.table.as_texts([row.values[column]], column, row.number).series[0]
            prompt = prompts.setdefault((unit_name, row.environment), _AnswersOfPrompt(row.number))
            prompt.answers.append(Answer(text, self._words(row, [0])[0]))
            prompt.scores += self._scores(row, 1)
        for (unit_name, environment), prompt in prompts.items():
            comparisons = scored_comparisons(prompt.scores)
            side.add_row(prompt.first_row, prompt.answers, comparisons, unit_name, environment)

    def _rows(self) -> Iterator[_Row]:
        """Yield every row of the table with the columns that are used, in order; numbers begin at
        1."""
        settings = self.settings
        token_columns = [c for columns in self._token_columns.values() for c in columns]
        names: list[str | None] = [*self.columns, *self.outcome_columns, *self._models]
        if settings.winner and len(self.columns) == 2:
            names += score_columns(self.table, self.columns)
        names += [*token_columns, self.by, settings.split, settings.environments, self._tie]
        used_columns = list(dict.fromkeys(name for name in names if name))
        number = 1
        for batch in self.table.read(used_columns):
            words = {
                column: self.tokens.words(field, batch[column]).to_list()
                for field, columns in self._token_columns.items()
                for column in columns
            }
            lists = {name: as_list(values) for name, values in batch.items()}
            n_rows = len(next(iter(lists.values())))
            environments: list[str | None] = [None] * n_rows
            if settings.environments:
                holds = f"the column {settings.environments!r} (--environments) contains"
                environments = self.table.as_names(
                    batch[settings.environments], number, holds, "choose another"
                ).to_list()
            if settings.split:
                parts = part_names(batch[settings.split]).to_list()
            else:
                parts = [""] * n_rows
            for i in range(n_rows):
                yield _Row(
                    number,
                    {name: values[i] for name, values in lists.items()},
                    {name: values[i] for name, values in words.items()},
                    environments[i],
                    parts[i],
                )
                number += 1

    def _sides_of(self, row: _Row) -> Sequence[int]:
        """The column of each answer of a row; of answers in one list, their places."""
        if self._has_alternatives:
            sizes = [len(alternatives(row.values[name])) for name in self.columns]
            return [side for side, size in enumerate(sizes) for _ in range(size)]
        return range(len(answer_cells(row.values, self.columns)))

    def _answers(self, row: _Row, sides: Sequence[int]) -> tuple[list[str | None], object]:
        """The texts of the answers, and the prompt if it stands before each of them."""
        role = self.settings.role
        if self._has_alternatives:
            cells = [cell for name in self.columns for cell in alternatives(row.values[name])]
            answers = read_answers(cells, role)
        else:
            answers = read_answers(answer_cells(row.values, self.columns), role)
        self._differ_in_role = self._differ_in_role or answers.differ_in_role
        has_column_each = len(self.columns) > 1
        texts = []
        for side, cell in zip(sides, answers.cells, strict=True):
            if has_column_each:
                name = self.columns[side]
            else:
                name = self.columns[0]
            texts.append(self.table.as_texts([cell], name, row.number, role, "--pairs").series[0])
        return texts, answers.prompt

    def _words(self, row: _Row, sides: Sequence[int]) -> list[tuple[str | None, ...]]:
        """List for each answer the word of each field.

        Values that describe the row are marked with the answer's place.
        """
        words = []
        for side in sides:
            of_answer = []
            for columns in self._token_columns.values():
                word = row.words[columns[side % len(columns)]]
                describes_row = len(columns) == 1 and len(sides) == 2
                if word and describes_row:
                    word += ("_first", "_second")[side]
                of_answer.append(word)
            words.append(tuple(of_answer))
        return words

    def _scores(self, row: _Row, n_answers: int) -> list[float | None]:
        """The score of every answer, the higher the better; ranks are turned round."""
        cells = answer_cells(row.values, self.outcome_columns)
        if len(cells) != n_answers:
            raise InputError(
                f"{self.table.name}: row {row.number}: {n_answers} answers but {len(cells)} scores"
            )
        scores = [self._number(cell, row.number) for cell in cells]
        self._n_unscored += scores.count(None)
        if self.settings.ranks:
            return [None if score is None else -score for score in scores]
        return scores

    def _number(self, cell: Any, row: int) -> float | None:
        """A score: a number, or a fraction such as 8/10; None if it is missing. An `InputError`
        names the row.
        """
        is_empty = isinstance(cell, str) and cell.strip().lower() in NO_SCORE
        if missing(cell) or is_empty:
            return None
        try:
            if isinstance(cell, str) and "/" in cell:  # 8/10
                points, _, maximum = cell.partition("/")
                return float(points) / float(maximum)
            return float(cell)
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            raise InputError(
                f"{self.table.name}: row {row}: the score {str(cell)[:40]!r} is not a number"
            ) from None


def scored_comparisons(scores: Sequence[float | None]) -> list[Comparison]:
    """All pairs of scored answers, the better one first; of many answers only unequal ones."""
    comparisons = []
    for (i, first), (j, second) in combinations(enumerate(scores), 2):
        if first is None or second is None:
            continue
        if first > second:
            comparisons.append(Comparison(i, j))
        elif first < second:
            comparisons.append(Comparison(j, i))
        elif len(scores) == 2:
            comparisons.append(Comparison(i, j, is_tie=True))
    return comparisons
