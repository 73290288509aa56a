"""The battles of a source: two models, two answers, and which of them was preferred."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.ranking.outcomes import (
    Fractions,
    Verdicts,
    contradictions,
    score_fractions,
    winner_fractions,
)
from tokensieve.ranking.settings import RankSettings
from tokensieve.read.answers import read_answers
from tokensieve.read.preference_columns import preferred_columns, score_flag
from tokensieve.read.sources import Source, open_source
from tokensieve.read.table import Batch, SourceTable
from tokensieve.read.values import Values, as_list, checked_weights
from tokensieve.read.winners import (
    WinnerColumn,
    contradiction_notes,
    likely_outcome,
    score_columns,
    tie_column,
)

JUDGE_NAMES = r"judge|annotat|rater|grader|evaluator|labell?er"
PROMPT_NAMES = ("prompt", "question", "instruction", "question_id", "prompt_id")
MAX_MODELS = 5_000  # more are names of rows, not of models


@dataclass(frozen=True, eq=False)
class Battles:
    """Battles between models, one per row that could be used.

    Attributes:
        source: what the data are called.
        models: the names, sorted.
        first, second: which model gave each answer, shape (n,).
        texts: all different answers.
        first_text, second_text: which text each answer is, shape (n,).
        outcome: the fraction of a win that the first answer gets, from 0 to 1, shape (n,).
        weight: of each battle, shape (n,).
        prompt: which prompt each battle is of; battles of a prompt are not independent.
        has_prompts: whether a column names the prompts; if not, every battle is its own.
        winner_is_first: whether the first answer is the preferred one by design (chosen, rejected);
            its place then says nothing about where it was shown.
        judge: who judged each battle, shape (n,), and `judges` their names; empty without a column.
        human: what people say, as `outcome`, nan where they were not asked; None without a column.
        n_rows: rows of the source.
        without_games: models that occur only in rows that could not be used.
        notes: what was left out, and how columns were read.
    """

    source: str
    models: tuple[str, ...]
    first: Ints
    second: Ints
    texts: pl.Series
    first_text: Ints
    second_text: Ints
    outcome: Floats
    weight: Floats
    prompt: Ints
    has_prompts: bool
    judge: Ints
    winner_is_first: bool = False
    judges: tuple[str, ...] = ()
    human: Floats | None = None
    n_rows: int = 0
    without_games: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def n(self) -> int:
        """The number of battles."""
        return len(self.outcome)

    def games(self) -> Ints:
        """The number of battles of each model, shape (M,)."""
        models = np.concatenate([self.first, self.second])
        return np.bincount(models, minlength=len(self.models))


@dataclass(frozen=True)
class _Columns:
    """The columns that are read.

    Attributes:
        answers, models: of the first and the second answer.
        outcome: the winner, or a score of each answer; empty if the first one always won.
        lower_is_better: whether the scores are ranks.
        prompt, judge, human, weight: see `RankSettings`.
        tie: marks ties, beside a winner that marks the wins of one answer.
        compared: scores of the answers, which the winner may contradict.
    """

    answers: tuple[str, ...]
    models: tuple[str, ...]
    outcome: tuple[str, ...]
    lower_is_better: bool
    prompt: str | None
    judge: str | None
    human: str | None
    weight: str | None
    tie: str | None
    compared: tuple[str, ...]

    @property
    def verdicts(self) -> list[str]:
        """The columns with the outcome of a row and its weight, each once."""
        single = (self.human, self.weight, self.tie)
        named = [name for name in single if name is not None]
        return list(dict.fromkeys([*self.outcome, *self.compared, *named]))

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        named = [name for name in (self.prompt, self.judge) if name is not None]
        return list(dict.fromkeys([*self.answers, *self.models, *self.verdicts, *named]))


def read_battles(source: Source, settings: RankSettings) -> Battles:
    """Read every battle of a source; an `InputError` if there are none, or too few models."""
    opened = open_source(source, settings, labelled=False)
    columns = _checked_columns(opened.train, settings)
    rows = _read_table(opened.train, columns, settings)
    if opened.test is not None:
        # a ranking has no test data: a file of each part is one more file of battles
        rows = rows.followed_by(_read_table(opened.test, columns, settings))
    return _battles(opened.train.name, rows, columns, settings)


def _checked_columns(table: SourceTable, settings: RankSettings) -> _Columns:
    """The columns that the settings name, and the prompt where none is named."""
    judge = settings.judge
    prompts = []
    for name in settings.by:
        if judge is None and re.search(JUDGE_NAMES, name.lower()):
            judge = name
        else:
            prompts.append(name)
    if len(prompts) > 1:
        raise InputError(f"--by names two columns of prompts, {' and '.join(prompts)}; name one")
    prompt = prompts[0] if prompts else _likely_prompt(table)
    answers = tuple(settings.pairs)
    columns = _Columns(
        answers=answers,
        models=tuple(settings.models),
        outcome=settings.outcome_columns,
        lower_is_better=bool(settings.ranks),
        prompt=prompt,
        judge=judge,
        human=settings.human,
        weight=settings.battle_weight,
        tie=tie_column(table) if settings.winner else None,
        compared=_numeric_scores(table, answers) if settings.winner else (),
    )
    for name in columns.names:
        table.checked_column(name, "ranking")
    if not columns.outcome:
        _check_order(table, columns)
    return columns


def _numeric_scores(table: SourceTable, answers: tuple[str, ...]) -> tuple[str, ...]:
    """Columns with a number for each answer; none if they hold anything else."""
    names = score_columns(table, answers)
    cells = [cell for name in names for cell in table.sample[name]]
    are_numbers = all(isinstance(cell, int | float | None) for cell in cells)
    return names if are_numbers else ()


def _check_order(table: SourceTable, columns: _Columns) -> None:
    """Raise an `InputError` if another column seems to say which answer won."""
    if preferred_columns(table) == columns.answers:
        return
    likely = likely_outcome(table, columns.answers, columns.models)
    if likely is not None:
        raise InputError(
            f"{table.name}: {likely.columns!r} seems to say which answer won; add "
            f"{option(*likely)}, or, if the first one always won, rename it"
        )


def _likely_prompt(table: SourceTable) -> str | None:
    by_lower_case = {name.lower(): name for name in table.columns}
    for name in PROMPT_NAMES:
        if name in by_lower_case:
            return by_lower_case[name]
    return None


class _Rows(NamedTuple):
    """The rows of a table, and how they were read."""

    frame: pl.DataFrame
    notes: list[str]

    def followed_by(self, rows: _Rows) -> _Rows:
        """Append other rows; each note is kept once."""
        notes = dict.fromkeys([*self.notes, *rows.notes])
        return _Rows(pl.concat([self.frame, rows.frame]), list(notes))


def _read_table(table: SourceTable, columns: _Columns, settings: RankSettings) -> _Rows:
    """A row per row of the table: row, a, b (texts), model_a, model_b, outcome, and more."""
    frames = []
    first_row = 1
    for batch in table.read(columns.names):
        frame = _read_batch(table, batch, columns, settings, first_row)
        frames.append(frame)
        first_row += frame.height
    if not frames:
        raise InputError(f"{table.name} has no rows")
    rows = pl.concat(frames)
    outcome = _outcomes(table.name, rows, columns.outcome, columns)
    notes = [*outcome.notes, *_contradictions(rows, outcome.values, columns)]
    rows = rows.with_columns(outcome=pl.Series(outcome.values))
    if columns.human is not None:
        human = _outcomes(table.name, rows, (columns.human,), columns)
        rows = rows.with_columns(human=pl.Series(human.values))
    return _Rows(rows, notes)


def _contradictions(rows: pl.DataFrame, outcome: Floats, columns: _Columns) -> list[str]:
    """Say so if scores contradict the winner in most rows."""
    if not columns.compared:
        return []
    lower_is_better = score_flag(columns.compared[0]) == "--ranks"
    first, second = (rows[f"={name}"] for name in columns.compared)
    scored = score_fractions(first, second, lower_is_better)
    counts = contradictions(outcome, scored)
    return contradiction_notes(columns.compared, counts.n_contradictions, counts.n_scored)


def _read_batch(
    table: SourceTable, batch: Batch, columns: _Columns, settings: RankSettings, first_row: int
) -> pl.DataFrame:
    """One batch as a frame: a, b (texts), model_a, model_b, prompt and judge, if they are known.

    What decides the outcome stands in columns "=NAME" of text, which cannot have the name of
    another.
    """
    texts = _texts(table, batch, columns.answers, settings.role, first_row)
    frame = {"a": texts[0], "b": texts[1]}
    named = {
        "model_a": columns.models[0],
        "model_b": columns.models[1],
        "prompt": columns.prompt,
        "judge": columns.judge,
    }
    for key, name in named.items():
        if name is not None:
            holds = f"column {name!r} contains"
            frame[key] = table.as_names(batch[name], first_row, holds, "choose another column")
    for name in columns.verdicts:
        holds = f"column {name!r} contains"
        advice = "choose a column of names or numbers"
        frame[f"={name}"] = table.as_names(batch[name], first_row, holds, advice)
    return pl.DataFrame(frame)


def _texts(
    table: SourceTable, batch: Batch, names: Sequence[str], role: str | None, first_row: int
) -> list[pl.Series]:
    """The two answers of each row as text; of conversations, what differs."""
    values: list[Values] = [batch[name] for name in names]
    are_plain = all(isinstance(v, pl.Series) and v.dtype == pl.String for v in values)
    if not are_plain:
        rows = [
            read_answers(cells, role).cells
            for cells in zip(*(as_list(v) for v in values), strict=True)
        ]
        values = [[row[side] for row in rows] for side in (0, 1)]
    return [
        table.as_texts(side, name, first_row, role, "--pairs").series
        for side, name in zip(values, names, strict=True)
    ]


def _outcomes(
    source: str, rows: pl.DataFrame, names: Sequence[str], columns: _Columns
) -> Fractions:
    """The fraction of a win that the first answer of each row gets; 1 if no column says it."""
    if not names:
        return Fractions(np.ones(rows.height), [])
    cells = [rows[f"={name}"] for name in names]
    if len(cells) == 2:
        return Fractions(score_fractions(cells[0], cells[1], columns.lower_is_better), [])
    verdicts = Verdicts(
        column=WinnerColumn.of(source, names[0], columns.answers),
        cells=cells[0],
        models=(rows["model_a"], rows["model_b"]),
        tie=None if columns.tie is None else rows[f"={columns.tie}"],
    )
    return winner_fractions(verdicts)


def _battles(source: str, read: _Rows, columns: _Columns, settings: RankSettings) -> Battles:
    """The usable rows as arrays."""
    rows = read.frame
    used, left_out = _usable(rows)
    if used.is_empty():
        raise InputError(f"{source}: no row has two models, two answers and a winner")
    names = pl.concat([used["model_a"], used["model_b"]])
    models = tuple(sorted(names.unique().to_list()))
    if len(models) > MAX_MODELS:
        raise InputError(
            f"{source}: {len(models):,} different models in "
            f"{' and '.join(columns.models)}; --models must name columns of model names"
        )
    all_names = pl.concat([rows["model_a"], rows["model_b"]]).drop_nulls().unique()
    texts = pl.concat([used["a"], used["b"]]).unique(maintain_order=True)
    prompt = used["prompt"] if "prompt" in used.columns else None
    judges = _positions(used["judge"].fill_null("no judge")) if "judge" in used.columns else None
    return Battles(
        source=source,
        models=models,
        first=_places(used["model_a"], models),
        second=_places(used["model_b"], models),
        texts=texts,
        first_text=_places(used["a"], texts),
        second_text=_places(used["b"], texts),
        outcome=used["outcome"].to_numpy(),
        weight=_weights(used, settings),
        prompt=np.arange(used.height) if prompt is None else _prompts(prompt),
        has_prompts=prompt is not None,
        winner_is_first=not columns.outcome,
        judge=np.zeros(0, np.int64) if judges is None else judges.places,
        judges=() if judges is None else judges.names,
        human=used["human"].to_numpy() if "human" in used.columns else None,
        n_rows=rows.height,
        without_games=tuple(sorted(set(all_names.to_list()) - set(models))),
        notes=(*read.notes, *left_out),
    )


class _Usable(NamedTuple):
    """The rows that are battles, and what was left out."""

    rows: pl.DataFrame
    notes: list[str]


def _usable(rows: pl.DataFrame) -> _Usable:
    """The battles of two known models with two answers and an outcome, and how many rows are left
    out why.
    """
    is_named = rows["model_a"].is_not_null() & rows["model_b"].is_not_null()
    has_answers = rows["a"].is_not_null() & rows["b"].is_not_null()
    is_decided = rows["outcome"].is_not_nan() & rows["outcome"].is_not_null()
    is_of_one = (rows["model_a"] == rows["model_b"]).fill_null(False)
    reasons = {
        "without a model": ~is_named,
        "without an answer": ~has_answers,
        "without a winner": ~is_decided,
        "of a model against itself": is_of_one,
    }
    is_usable = is_named & has_answers & is_decided & ~is_of_one
    return _Usable(rows.with_row_index("row", offset=1).filter(is_usable), _left_out(reasons))


def _left_out(reasons: Mapping[str, pl.Series]) -> list[str]:
    """Sentences with the number of rows that are left out, by the first reason that applies."""
    notes = []
    counted = np.zeros(len(next(iter(reasons.values()))), dtype=bool)
    for reason, applies in reasons.items():
        is_new = applies.to_numpy() & ~counted
        counted |= is_new
        if is_new.any():
            n = int(is_new.sum())
            notes.append(f"{n:,} {'row' if n == 1 else 'rows'} {reason} left out")
    return notes


@dataclass(frozen=True)
class _Positions:
    """Names, sorted, and which of them each row has."""

    names: tuple[str, ...]
    places: Ints


def _positions(values: pl.Series) -> _Positions:
    names = tuple(sorted(values.unique().to_list()))
    return _Positions(names, _places(values, names))


def _places(values: pl.Series, names: Sequence[str] | pl.Series) -> Ints:
    """The position of each value among the names."""
    place_of_name = pl.DataFrame({"value": pl.Series(names, dtype=pl.String)}).with_row_index(
        "place"
    )
    joined = pl.DataFrame({"value": values}).join(
        place_of_name, on="value", how="left", maintain_order="left"
    )
    return joined["place"].to_numpy().astype(np.int64)


def _prompts(values: pl.Series) -> Ints:
    """A number for each prompt; a row without one is its own."""
    numbers = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    is_missing: NDArray[np.bool_] = values.is_null().to_numpy()
    numbers[is_missing] = numbers.max(initial=0) + 1 + np.arange(is_missing.sum())
    return numbers


def _weights(used: pl.DataFrame, settings: RankSettings) -> Floats:
    if settings.battle_weight is None:
        return np.ones(used.height)
    cells = used[f"={settings.battle_weight}"]
    numbers = cells.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    rows = used["row"].to_numpy()
    return checked_weights(numbers, used.height, f"--weight {settings.battle_weight}", rows)
