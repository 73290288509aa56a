"""The rows of a table of preference data become answers and comparisons of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.read.answers import answer_cells, read_answers
from tokensieve.read.column_tokens import ColumnTokens
from tokensieve.read.corpus import Outcome
from tokensieve.read.fields import ColumnKind
from tokensieve.read.pair_collector import Answer, Comparison, PairCollector, PairSource
from tokensieve.read.part_column import TEST_NAMES, check_parts, part_names
from tokensieve.read.preference_columns import preferred_columns
from tokensieve.read.settings import ReadSettings
from tokensieve.read.table import SourceTable
from tokensieve.read.values import as_list, label_names, missing
from tokensieve.read.winners import OutcomeReader, WinnerColumn, likely_outcome

PROMPT_STEMS = "prompt question instruction query history".split()
ORDERED_NAMES = {"chosen", "preferred", "winner", "better"}  # of the first column: it won
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
        self._tie = self._tie_column()
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
        return models if len(self.columns) == len(models) == 2 else []

    def _tie_column(self) -> str | None:
        if not self.settings.winner:
            return None
        for name in self.table.columns:
            if re.fullmatch(r"(winner_)?(model_)?tie", name.lower()):
                return name
        return None

    def _order_notes(self) -> list[str]:
        """How the preferred answer is known if only the order of the columns can say it.

        Raises:
            InputError: another column seems to say which answer won.
        """
        is_named = not ORDERED_NAMES.isdisjoint(map(str.lower, self.columns))
        if self.outcome_columns or is_named or preferred_columns(self.table) == self.columns:
            return []
        likely = likely_outcome(self.table, self.columns, self._models)
        if likely is not None:
            command = f"{option('--pairs', ','.join(self.columns))} {option(*likely)}"
            raise InputError(
                f"{self.table.name}: {likely.columns!r} seems to say which answer won; use "
                f"{command}, or, if the first one always won, rename it"
            )
        return [f"{self.columns[0]!r} is read as the preferred answer of every pair"]

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
        outcomes = self._outcome_reader() if self.settings.winner else None
        parts = set[str]()
        for row in self._rows():
            parts.add(row.part)
            side = test if row.part in TEST_NAMES else train
            side.counts["rows"] += 1
            texts, prompt = self._answers(row)
            words = self._words(row, len(texts))
            answers = [Answer(*answer) for answer in zip(texts, words, strict=True)]
            comparisons = self._comparisons(row, len(texts), outcomes)
            if comparisons is None:
                side.counts["undecided"] += 1
                continue
            unit = row.values[self.by] if self.by else prompt
            unit = None if missing(unit) else unit
            side.add_row(row.number, answers, comparisons, unit, row.environment)
        if self.settings.split is not None:
            check_parts(self.table, self.settings.split, parts)

    def _comparisons(
        self, row: _Row, n_answers: int, outcomes: OutcomeReader | None
    ) -> Sequence[Comparison] | None:
        """Which answers of a row are better than which; None if its winner is not usable."""
        if outcomes is not None:
            outcome = outcomes.outcome(row.number, row.values)
            if outcome == Outcome.UNKNOWN:
                return None
            if outcome == Outcome.TIE:
                return [Comparison(Outcome.FIRST, Outcome.SECOND, is_tie=True)]
            return [Comparison(outcome, outcome.opposite)]
        if self.outcome_columns:
            return scored_comparisons(self._scores(row, n_answers))
        return [Comparison(Outcome.FIRST, Outcome.SECOND)]

    def _outcome_reader(self) -> OutcomeReader:
        """The reader of the winner column, which has seen all its values."""
        column = str(self.settings.winner)
        if len(self.columns) != 2:
            raise InputError(
                "--winner is for two columns in --pairs; for more answers use --scores or --ranks"
            )
        winner = WinnerColumn.of(self.table.name, column, self.columns)
        reader = OutcomeReader(winner, self._models, self._tie)
        reader.learn(set(label_names(row.values[column] for row in self._rows())))
        self._notes = reader.notes
        return reader

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
            unit_name = f"row {row.number}" if missing(unit) else str(unit)
            text = self.table.as_texts([row.values[column]], column, row.number).series[0]
            prompt = prompts.setdefault((unit_name, row.environment), _AnswersOfPrompt(row.number))
            prompt.answers.append(Answer(text, self._words(row, 1)[0]))
            prompt.scores += self._scores(row, 1)
        for (unit_name, environment), prompt in prompts.items():
            comparisons = scored_comparisons(prompt.scores)
            side.add_row(prompt.first_row, prompt.answers, comparisons, unit_name, environment)

    def _rows(self) -> Iterator[_Row]:
        settings = self.settings
        token_columns = [c for columns in self._token_columns.values() for c in columns]
        names: list[str | None] = [*self.columns, *self.outcome_columns, *self._models]
        names += [*token_columns, self.by, settings.split, settings.environments, self._tie]
        wanted = list(dict.fromkeys(name for name in names if name))
        number = 1
        for batch in self.table.read(wanted):
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
            parts = part_names(batch[settings.split]).to_list() if settings.split else [""] * n_rows
            for i in range(n_rows):
                yield _Row(
                    number,
                    {name: values[i] for name, values in lists.items()},
                    {name: values[i] for name, values in words.items()},
                    environments[i],
                    parts[i],
                )
                number += 1

    def _answers(self, row: _Row) -> tuple[list[str | None], object]:
        """The texts of the answers, and the prompt if it stands before each of them."""
        answers = read_answers(answer_cells(row.values, self.columns), self.settings.role)
        n_answers = len(answers.cells)
        names = self.columns if len(self.columns) > 1 else self.columns * n_answers
        texts = [
            self.table.as_texts([cell], name, row.number, self.settings.role, "--pairs").series[0]
            for cell, name in zip(answers.cells, names, strict=True)
        ]
        return texts, answers.prompt

    def _words(self, row: _Row, n_answers: int) -> list[tuple[str | None, ...]]:
        """For each answer, the word of each field.

        Values that describe the row are marked with the answer's place.
        """
        words = []
        for i in range(n_answers):
            of_answer = []
            for columns in self._token_columns.values():
                word = row.words[columns[i % len(columns)]]
                describes_row = len(columns) == 1 and n_answers == 2
                if word and describes_row:
                    word += ("_first", "_second")[i]
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
        if self.settings.ranks:
            return [None if score is None else -score for score in scores]
        return scores

    def _number(self, cell: Any, row: int) -> float | None:
        is_empty = isinstance(cell, str) and cell.strip().lower() in ("", "nan")
        if missing(cell) or is_empty:
            return None
        try:
            return float(cell)
        except (TypeError, ValueError, OverflowError):
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
