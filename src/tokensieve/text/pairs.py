"""Preference data: rows into a corpus whose documents 2i and 2i + 1 are the two sides of pair i, the preferred one first.

Everything that reads documents (tokens, counts, the table, the page) then reads pairs, too; what is different about them is which
documents belong together. Pairs of one prompt share their prompt's words and difficulty: the prompt is the unit of every
statistic, and stays on one side of every split.

A tie becomes two pairs, one in each order, of half the weight. Several answers to one prompt become all pairs of answers with
different scores, each weighted so that the prompt counts once.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.columns import preference_options, winner_column
from tokensieve.text.corpus import Corpus, Intake, Pairing
from tokensieve.text.documents import TEST_NAMES, check_sides, digest
from tokensieve.text.labels import label_name, listed, missing
from tokensieve.text.settings import ReadSettings, with_options
from tokensieve.text.sources import Source, open_source
from tokensieve.text.spill import TextWriter
from tokensieve.text.table import SourceTable, as_texts, chat_text


def read_pairs(source: Source, settings: ReadSettings | None = None, **options: Any) -> Corpus:
    """Read preference data.

    An answer is text, a list of chat messages, or a transcript ("Human: …", "Assistant: …"); of the latter two what both sides
    share at the beginning is the prompt. Pairs without two different, non-empty answers are left out and counted.

    Args:
        source: as for `tokensieve.text.corpus.read_corpus`, with the columns of the answers.
        settings: how; `pairs` names the columns, and `winner`, `scores` or `ranks` say which answer won.
        options: fields of `ReadSettings` by name, in place of those in `settings`.

    Returns:
        A corpus of classes "rejected" and "chosen" with 2n documents, in the order chosen, rejected, chosen, …

    Raises:
        InputError: the source cannot be read, a column is missing, a column seems to say which answer won and is not named, or
            fewer than two units hold a usable pair.
    """
    how = with_options(settings or ReadSettings(), options)
    if not how.columns_of_pairs:
        raise InputError(
            'name the columns of the two answers: pairs=("chosen", "rejected"), or --pairs chosen,rejected'
        )
    if how.text is not None:
        raise InputError("--text is for labelled documents: --pairs names the columns of the answers; leave it out")
    table = open_source(source, how).train
    reader = PairReader(table, how)
    parts = {"train": UsablePairs(table.name, how.stream), "test": UsablePairs(f"{table.name} (test rows)", how.stream)}
    reader.fill(parts, "train")
    train = parts["train"].corpus(reader)
    if how.split is None and how.test is None:
        assert train.pairs is not None
        if len(train.pairs.names) < 2:
            n = len(train.pairs.units)
            same = f"the same value in column {train.pairs.by!r}" if train.pairs.by else "the same prompt"
            all_same = f"all {n:,} pairs have {same}"
            usable = "has a single usable pair" if n == 1 else all_same
            raise InputError(
                f"{table.name}: {usable}, so that none can be held out for testing; give more pairs, or --test SOURCE"
            )
        return train
    if how.test is not None:
        held = open_source(how.test, how).held_out
        parts["test"] = UsablePairs(held.name, how.stream)
        reader = PairReader(held, replace(how, by=reader.by if reader.by in held.columns else None))
        reader.fill(parts, "test")
    return _with_test(train, parts["test"].corpus(reader))


def _with_test(train: Corpus, test: Corpus) -> Corpus:
    """Both parts as one corpus, with what they share counted."""
    assert train.pairs is not None and test.pairs is not None
    sides = [pl.DataFrame({"a": c.keys.gather_every(2), "b": c.keys.gather_every(2, 1)}) for c in (train, test)]
    shared = 0
    if train.pairs.by is not None:
        known = set(train.pairs.names)
        shared = sum(test.pairs.names[unit] in known for unit in test.pairs.units)
    overlap = sides[1].join(sides[0].unique(), on=["a", "b"], how="semi").height
    counts = dict(train.intake.counts) | {"shared_units": shared}
    return replace(train, test=test, intake=replace(train.intake, test_overlap=overlap, counts=counts))


CLASSES = ("rejected", "chosen")  # the second of two is y = +1
PROMPT_NAMES = ("prompt", "question", "instruction", "query", "question_id")
FIRST, SECOND, TIE = 0, 1, 2
_TIES = "tie ties tied draw both bothgood bothbad equal same neither none nopreference tiebothbad".split()
_FIRST_NAMES = "a modela responsea answera assistanta left first model1 response1 answer1 chosen".split()
_SECOND_NAMES = "b modelb responseb answerb assistantb right second model2 response2 answer2 rejected".split()


class UsablePairs:
    """Collects usable pairs, and counts the others."""

    def __init__(self, name: str, stream: bool) -> None:
        self.name, self.counts = name, Counter[str](rows=0)
        self.texts: list[str] = []
        self.writer = TextWriter() if stream else None
        self.keys: list[bytes] = []
        self.rows: list[int] = []
        self.units: list[tuple[str, Any]] = []
        self.weights: list[float] = []
        self.position: list[int] = []
        self.environments: list[str | None] = []

    def add(
        self,
        row: int,
        answers: Sequence[str | None],
        results: Sequence[tuple[int, int, bool]],
        unit: Any,
        environment: Any,
    ) -> None:
        """The answers of one row or prompt, and which of two won (first, second, tie)."""
        kept = []
        for one, other, tie in results:
            a, b = answers[one], answers[other]
            if a is None or b is None:
                self.counts["missing_text"] += 1
            elif not a or not b or a.isspace() or b.isspace():
                self.counts["empty"] += 1
            elif a == b:
                self.counts["identical"] += 1
            else:
                kept.append((one, other, tie))
        if kept and unit is None:
            self.counts["missing_label"] += 1
        for one, other, tie in kept:
            self.counts["ties"] += tie
            for first, second in ((one, other), (other, one))[: 1 + tie]:
                sides = [str(answers[first]), str(answers[second])]
                self.keys += [digest(side) for side in sides]
                if self.writer is None:
                    self.texts += sides
                else:
                    self.writer.extend(sides)
                self.rows += [row, row]
                self.units.append(("row", row) if unit is None else ("unit", str(unit)))
                self.weights.append((0.5 if tie else 1.0) / len(kept))
                self.position.append(TIE if tie else int(first > second))
                self.environments.append(environment)

    def corpus(self, reader: PairReader) -> Corpus:
        """What was collected.

        Raises:
            InputError: no pair is usable.
        """
        counts, columns = self.counts, reader.columns
        if not self.units:
            if not counts["rows"]:
                raise InputError(f"{self.name}: has no rows")
            raise InputError(
                f"{self.name}: no pair is left; of {counts['rows']:,} rows {counts['missing_text']:,} lack an answer, "
                f"{counts['empty']:,} have an empty one, {counts['identical']:,} have the same text on both sides; check --pairs"
            )
        n = len(self.units)
        keys = pl.Series(self.keys, dtype=pl.Binary)
        sides = pl.DataFrame({"a": keys.gather_every(2), "b": keys.gather_every(2, 1)})
        decided = sides.filter(pl.Series(self.position) != TIE)
        swapped = decided.select(pl.col("b").alias("a"), pl.col("a").alias("b")).unique()
        intake = Intake(
            counts={"missing_text": 0, "missing_label": 0, "empty": 0} | dict(counts),
            kept=2 * n,
            columns=(columns[0], columns[-1]),
            duplicates=decided.height - decided.unique().height,
            conflicts=decided.join(swapped, on=["a", "b"], how="semi").height,
            detected=(*reader.table.notes, *self._who_won(reader)),
            pairs=True,
        )
        numbers: dict[Any, int] = {}
        units = np.array([numbers.setdefault(unit, len(numbers)) for unit in self.units], dtype=np.int64)
        judged = reader.how.winner or reader.how.scores or reader.how.ranks
        pairing = Pairing(
            (columns[0], columns[-1]),
            reader.by,
            units,
            tuple(str(name) for _, name in numbers),
            position=np.array(self.position) if judged and len(columns) == 2 else None,
            environments=pl.Series(self.environments, dtype=pl.String) if reader.how.environments else None,
        )
        frame: dict[str, Any] = {} if self.writer else {"text": pl.Series(self.texts, dtype=pl.String)}
        frame |= {
            "key": keys,
            "label": np.tile(np.array([1, 0], dtype=np.int64), n),
            "row": np.array(self.rows, dtype=np.int64),
        }
        if len(set(self.weights)) > 1:
            frame["weight"] = np.repeat(np.array(self.weights), 2)
        stored = self.writer.finish() if self.writer else None
        return Corpus(pl.DataFrame(frame), CLASSES, self.name, intake, pairs=pairing, stored=stored)

    def _who_won(self, reader: PairReader) -> list[str]:
        """Where the preference came from, and how often the first answer won, which should not matter."""
        how = reader.how
        judged = [how.winner] if how.winner else [*how.scores, *how.ranks]
        if not judged:
            return []
        notes = [f"the preferred answer is that of {', '.join(map(repr, judged))}"]
        decided = len(self.position) - self.position.count(TIE)
        if len(reader.columns) != 2 or not decided:
            return notes
        from scipy.stats import binomtest  # half a second, which most readers do not need

        first = self.position.count(FIRST)
        interval = binomtest(first, decided).proportion_ci(method="wilson")
        note = (
            f"the first answer ({reader.columns[0]!r}) wins {first / decided:.1%} of {decided:,} pairs "
            f"(95% CI {interval.low:.1%} to {interval.high:.1%})"
        )
        fair = interval.low <= 0.5 <= interval.high
        return [*notes, note if fair else f"{note}: its position predicts the preference"]


class PairReader:
    """How the rows of one table become pairs."""

    def __init__(self, table: SourceTable, how: ReadSettings) -> None:
        self.table, self.how, self.columns = table, how, how.columns_of_pairs
        for name in self.columns:
            table.position(name, "pairs")
        judged = (how.winner,) if how.winner else how.scores or how.ranks
        for name in judged:
            table.position(name, "winner" if how.winner else "scores" if how.scores else "ranks")
        if not judged:
            self._stop_at_winner()
        found = next((c for name in PROMPT_NAMES for c in table.columns if c.strip().lower() == name), None)
        self.by = how.by or (found if found not in self.columns else None)
        if self.by:
            table.position(self.by, "units")
        self.models = self._models()

    def _stop_at_winner(self) -> None:
        """Refuse to read the first answer as the preferred one where a column seems to say which one is."""
        if {name.lower() for name in self.columns} & {"chosen", "rejected", "preferred", "winner", "better"}:
            return
        winner = winner_column(self.table.columns)
        scores = preference_options(self.table.columns) or ""
        if winner is None and "--scores" not in scores:
            return
        pairs = shlex.quote(",".join(self.columns))
        command = f"--pairs {pairs} --winner {shlex.quote(winner)}" if winner else scores
        raise InputError(
            f"{self.table.name}: the column {(winner or scores.rpartition(' ')[2])!r} seems to say which answer won; give "
            f"{command}, or, if the first answer always won, rename that column"
        )

    def _models(self) -> list[str]:
        """Columns that name the model of either answer, such as model_a and model_b."""
        if len(self.columns) != 2:
            return []
        ends = [re.search(r"[^_\W]+$", name) for name in self.columns]
        names = {name.lower(): name for name in self.table.columns}
        found = [names.get(f"model_{end[0].lower()}") for end in ends if end]
        return [name for name in found if name] if len([name for name in found if name]) == 2 else []

    def fill(self, parts: dict[str, UsablePairs], part: str) -> None:
        """All rows of the table into their parts."""
        how, found = self.how, set[str]()
        outcome = self._outcome() if how.winner else None
        if len(self.columns) == 1 and self.by and (how.scores or how.ranks) and self._one_answer_per_row():
            self._fill_from_rows(parts[part])
            return
        for row, values in self._rows():
            where = part
            if how.split is not None:
                side = str(values[how.split]).strip().lower()
                found.add(side)
                where = "test" if side in TEST_NAMES else "train"
            answers, prompt = self._answers(row, values)
            unit = values[self.by] if self.by else prompt
            environment = label_name(values[how.environments]) if how.environments else None
            parts[where].counts["rows"] += 1
            if outcome is not None:
                result = outcome(row, values)
                if result is None:
                    parts[where].counts["undecided"] += 1
                    continue
                results = [(FIRST, SECOND, True)] if result == TIE else [(result, 1 - result, False)]
            elif how.scores or how.ranks:
                results = self._compared(row, self._numbers(row, values, len(answers)))
            else:
                results = [(FIRST, SECOND, False)]
            ties = [result for result in results if result[2]]
            if how.ties == "drop" and ties:
                parts[where].counts["ties_dropped"] += len(ties)
                results = [result for result in results if not result[2]]
                if not results:
                    continue
            parts[where].add(row, answers, results, None if missing(unit) else unit, environment)
        if how.split is not None:
            check_sides(self.table.name, how.split, found)

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        how = self.how
        names = [*self.columns, *how.scores, *how.ranks, *self.models]
        names += [name for name in (how.winner, self.by, how.split, how.environments) if name]
        if how.winner:
            names += [name for name in self.table.columns if re.fullmatch(r"(winner_)?(model_)?tie", name.lower())]
        row = 1
        for batch in self.table.read(list(dict.fromkeys(names))):
            lists = {
                name: values.to_list() if isinstance(values, pl.Series) else values for name, values in batch.items()
            }
            for values in zip(*lists.values(), strict=True):
                yield row, dict(zip(lists, values, strict=True))
                row += 1

    def _answers(self, row: int, values: dict[str, Any]) -> tuple[list[str | None], Any]:
        """The answers of a row, and what they share at the beginning, if they are conversations."""
        cells = [values[name] for name in self.columns]
        if len(cells) == 1 and isinstance(cells[0], list):
            cells = cells[0]
        prompt: Any = None
        if len(cells) > 1 and all(isinstance(cell, list) and cell and isinstance(cell[0], dict) for cell in cells):
            common = _common(cells)
            prompt = chat_text(cells[0][:common]) if common else None
            rest = [cell[common:] or cell[-1:] for cell in cells]
            cells = [chat_text(part[-1:] if not common else part, self.how.role) for part in rest]
        elif len(cells) > 1 and all(isinstance(cell, str) and _TURN.match(cell) for cell in cells):
            prompt, cells = _transcripts(cells)
        texts = []
        for i, cell in enumerate(cells):
            name = self.columns[i] if i < len(self.columns) else self.columns[0]
            try:
                texts.append(as_texts([cell], self.table.name, name, row, self.how.role)[0][0])
            except InputError as problem:
                raise InputError(str(problem).replace("--text COLUMN", "--pairs")) from None
        return texts, prompt

    def _numbers(self, row: int, values: dict[str, Any], answers: int) -> list[float | None]:
        """Score of every answer, the higher the better; ranks are turned round."""
        cells = [values[name] for name in self.how.scores or self.how.ranks]
        if len(cells) == 1 and isinstance(cells[0], list):
            cells = cells[0]
        if len(cells) != answers:
            raise InputError(f"{self.table.name}: row {row}: {answers} answers but {len(cells)} scores")
        out: list[float | None] = []
        for cell in cells:
            try:
                number = None if missing(cell) or (isinstance(cell, str) and not cell.strip()) else float(cell)
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"{self.table.name}: row {row}: the score {str(cell)[:40]!r} is not a number"
                ) from None
            out.append(None if number is None else -number if self.how.ranks else number)
        return out

    def _compared(self, row: int, numbers: Sequence[float | None]) -> list[tuple[int, int, bool]]:
        """All pairs of scored answers, the better one first; of many answers only those with different scores."""
        results = []
        for i, j in combinations(range(len(numbers)), 2):
            a, b = numbers[i], numbers[j]
            if a is None or b is None or (a == b and len(numbers) > 2):
                continue
            results.append((i, j, a == b) if a >= b else (j, i, False))
        return results

    def _one_answer_per_row(self) -> bool:
        first = next(
            (values[self.columns[0]] for _, values in self._rows() if values[self.columns[0]] is not None), None
        )
        return isinstance(first, str)

    def _fill_from_rows(self, part: UsablePairs) -> None:
        """Rows of one answer each, compared with the others of their prompt."""
        if self.how.split is not None:
            raise InputError("--split is for rows that hold all answers of a prompt: give --test SOURCE")
        prompts: dict[str, list[tuple[int, Any, float | None, str | None]]] = {}
        for row, values in self._rows():
            part.counts["rows"] += 1
            unit = values[self.by or ""]
            text = as_texts([values[self.columns[0]]], self.table.name, self.columns[0], row)[0][0]
            environment = label_name(values[self.how.environments]) if self.how.environments else None
            key = str(unit) if not missing(unit) else f"row {row}"
            prompts.setdefault(key, []).append((row, text, self._numbers(row, values, 1)[0], environment))
        for unit, answers in prompts.items():
            results = self._compared(answers[0][0], [score for _, _, score, _ in answers])
            results = [result for result in results if not (result[2] and self.how.ties == "drop")]
            part.add(answers[0][0], [text for _, text, _, _ in answers], results, unit, answers[0][3])

    # ---- who won

    def _outcome(self) -> Any:
        """Row → FIRST, SECOND, TIE or None, by what the winner column holds.

        Raises:
            InputError: its values cannot be read as winners.
        """
        name, column = self.table.name, str(self.how.winner)
        if len(self.columns) != 2:
            raise InputError("--winner is for two columns in --pairs; of more answers give --scores or --ranks")
        values = {label_name(values[column]) for _, values in self._rows()} - {None}
        numbers = {value for value in values if re.fullmatch(r"-?\d+(\.\d+)?", str(value))}
        flags = {str(value).lower() for value in values} <= {"0", "1", "true", "false"}
        own = [c.lower() for c in self.columns]
        ends = [re.sub(r".*[_\W]", "", c) for c in own]
        tie = next((c for c in self.table.columns if re.fullmatch(r"(winner_)?(model_)?tie", c.lower())), None)
        if flags and any(column.lower().endswith("_" + end) for end in ends) and not re.search(r"_id$", column):
            side = FIRST if column.lower().endswith("_" + ends[0]) else SECOND
            return lambda row, values: (
                TIE
                if tie and label_name(values[tie]) in ("1", "True")
                else None
                if missing(values[column])
                else side
                if label_name(values[column]) in ("1", "True")
                else 1 - side
            )
        by_number = self._by_number(numbers, ends) if numbers else {}

        def outcome(row: int, values: dict[str, Any]) -> int | None:
            cell = label_name(values[column])
            if cell is None:
                return None
            if cell in by_number:
                return by_number[cell]
            plain = re.sub(r"[^a-z0-9]", "", cell.lower())
            if plain in _TIES:
                return TIE
            models = [label_name(values[model]) for model in self.models]
            for side in (FIRST, SECOND):
                if cell.lower() == own[side] or plain == re.sub(r"[^a-z0-9]", "", ends[side]):
                    return side
                if models and cell == models[side] and models[0] != models[1]:
                    return side
            if plain in _FIRST_NAMES:
                return FIRST
            if plain in _SECOND_NAMES:
                return SECOND
            raise InputError(
                f"{name}: row {row}: column {column!r} holds {cell[:40]!r}, which names neither answer nor a tie; it may hold "
                f"{self.columns[0]} and {self.columns[1]}, A and B, 1 and 2, 0 and 1, the models' names, and tie"
            )

        return outcome

    def _by_number(self, numbers: set[Any], ends: Sequence[str]) -> dict[str, int]:
        """What the numbers of a winner column mean.

        Raises:
            InputError: it is not clear.
        """
        values = {number: float(number) for number in numbers}
        found = set(values.values())
        if min(found) < 0:  # a scale such as HelpSteer's −3 to 3: below zero the first answer is better
            return {n: FIRST if v < 0 else SECOND if v > 0 else TIE for n, v in values.items()}
        if found <= {0, 0.5, 1} and 0.5 in found:
            raise InputError(
                f"{self.table.name}: column {self.how.winner!r} looks like the first answer's chance to win; give it as --scores"
            )
        if all(end.isdigit() for end in ends) and found <= {float(end) for end in ends}:
            return {n: int(v == float(ends[1])) for n, v in values.items()}
        if found == {0, 1} or found == {1, 2}:
            return {n: int(v == max(found)) for n, v in values.items()}
        if found in ({0, 1, 2}, {1, 2, 3}):
            low = min(found)
            return (
                {n: FIRST if v == 1 else SECOND if v == 2 else TIE for n, v in values.items()}
                if low == 0
                else {n: (FIRST, SECOND, TIE)[int(v - 1)] for n, v in values.items()}
            )
        raise InputError(
            f"{self.table.name}: column {self.how.winner!r} holds {listed(sorted(map(str, numbers)))}, which does not say "
            "which answer won; it may hold 0 and 1, or 1 and 2"
        )


_TURN = re.compile(r"\s*(Human|User|H|Q|Question|SUBREDDIT)\s*:", re.IGNORECASE)
_REPLY = re.compile(r"\n\s*(Assistant|AI|Bot|A|Answer)\s*:", re.IGNORECASE)


def _transcripts(cells: Sequence[str]) -> tuple[str | None, list[str]]:
    """Transcripts with a common beginning: the prompt up to the last common turn of the assistant, and what each says then."""
    turns = list(_REPLY.finditer(cells[0][: _common(cells)]))
    if turns:
        end = turns[-1].end()
        return cells[0][:end].strip(), [cell[end:].strip() for cell in cells]
    return None, [_REPLY.split(cell)[-1].strip() for cell in cells]


def _common(parts: Sequence[Sequence[Any]]) -> int:
    """The length of their common beginning."""
    least = min(map(len, parts))
    return next((i for i in range(least) if any(part[i] != parts[0][i] for part in parts)), least)
