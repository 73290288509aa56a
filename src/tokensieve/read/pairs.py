"""Read preference data into a corpus whose documents 2i and 2i + 1 are the two sides of pair i, the preferred one first.

Pairs of one prompt share its words and difficulty, so all statistics count prompts, and a prompt stays on one side of a split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.read.corpus import Corpus, Intake, Pairing
from tokensieve.read.documents import Collected, ColumnTokens
from tokensieve.read.fields import ColumnKind, join_fields
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source, open_source
from tokensieve.read.table import BATCH, TEST_NAMES, SourceTable
from tokensieve.read.values import label_name, listed, missing

FIRST, SECOND, TIE = 0, 1, 2  # which of two answers won
_Answer = tuple[str | None, tuple[str | None, ...]]  # its text, and the values of other columns
_Result = tuple[int, int, bool]  # the better of two answers, the other one, and whether it is a tie
_ENVIRONMENT = "\0"  # of a row, beside its columns
_SYNONYMS = {  # what a winner column may hold, without anything but letters and digits
    TIE: "tie ties tied draw both bothgood bothbad equal same neither none nopreference tiebothbad".split(),
    FIRST: "a modela responsea answera assistanta left first model1 response1 answer1 chosen".split(),
    SECOND: "b modelb responseb answerb assistantb right second model2 response2 answer2 rejected".split(),
}


def read_pairs(source: Source, settings: ReadSettings | None = None, **options: object) -> Corpus:
    """Read preference data.

    An answer is text, a list of chat messages, or a transcript ("Human: …", "Assistant: …"); in the latter two, what both sides
    share at the beginning is the prompt. Pairs without two different, non-empty answers are left out and counted.

    `settings.pairs` names the columns, and `winner`, `scores` or `ranks` say which answer won; see `read_corpus`.
    The corpus has classes "rejected" and "chosen" and 2n documents, in the order chosen, rejected, chosen, … An `InputError` if
    the source cannot be read, a column is missing or seems to name the winner, or fewer than two groups are usable.
    """
    how = (settings or ReadSettings()).with_options(options)
    if not how.columns_of_pairs:
        raise InputError(
            'name the columns of two answers: pairs=("chosen", "rejected"), or --pairs chosen,rejected'
        )
    if how.text is not None:
        raise InputError(
            "--text is for labelled documents: --pairs names the columns of the answers; leave it out"
        )
    opened = open_source(source, how)
    how = replace(how, split=opened.split_column(how))
    table, held = (
        opened.train,
        opened.test if how.test is None else open_source(how.test, how).held_out,
    )
    if (
        held is not None
        and how.test is None
        and (how.split or not set(how.columns_of_pairs) <= set(held.columns))
    ):
        opened.ignored[held.name], held = held.height(), None
    reader = _PairReader(table, how, how.by)
    sides = [_Side(name, how, reader.fields) for name in (table.name, f"{table.name} (test rows)")]
    reader.read_into(*sides)
    train = sides[0].corpus(reader)
    train = replace(train, intake=replace(train.intake, ignored=opened.ignored))
    assert train.pairs is not None
    if how.split is None and held is None:
        if len(train.pairs.names) < 2:
            n = len(train.pairs.units)
            same = f"the same value in column {reader.by!r}" if reader.by else "the same prompt"
            usable = "has a single usable pair" if n == 1 else f"all {n:,} pairs have {same}"
            raise InputError(
                f"{table.name}: {usable}, so none can be held out; add pairs, or pass --test SOURCE"
            )
        return train
    if held is not None:
        sides[1] = _Side(held.name, how, reader.fields)
        reader = _PairReader(
            held, how, reader.by if reader.by in held.columns else None, reader.suspects.kinds
        )
        reader.read_into(sides[1], sides[1])
    test = sides[1].corpus(reader)
    assert test.pairs is not None
    both = [
        pl.DataFrame({"a": c.keys.gather_every(2), "b": c.keys.gather_every(2, 1)})
        for c in (train, test)
    ]
    train.intake.counts["test_overlap"] = (
        both[1].join(both[0].unique(), on=["a", "b"], how="semi").height
    )
    if train.pairs.group_column is not None:
        known = set(train.pairs.names)
        train.intake.counts["shared_units"] = sum(
            test.pairs.names[unit] in known for unit in test.pairs.units
        )
    return replace(train, test=test)


class _Side(Collected):
    """Collects usable pairs for training or testing, and counts the others."""

    def __init__(self, name: str, how: ReadSettings, fields: tuple[str, ...]) -> None:
        self.name, self._fields, self._drop = name, fields, how.ties == "drop"
        self._waiting: list[
            tuple[Any, ...]
        ] = []  # documents as in the schema, each with the values of other columns
        self._schema = {"text": pl.String, "label": pl.Int64, "row": pl.Int64, "weight": pl.Float64}
        self._schema |= {"environment": pl.String, "unit": pl.String, "position": pl.Int64}
        super().__init__(self._schema, how.stream)

    def add_row(
        self,
        row: int,
        answers: Sequence[_Answer],
        results: Sequence[_Result],
        unit: object,
        environment: str | None,
    ) -> None:
        """The answers of one row or prompt, each with the values of other columns, and which of two won."""
        kept = []
        for one, other, tie in results:
            a, b = answers[one][0], answers[other][0]
            if tie and self._drop:
                self.counts["ties_dropped"] += 1
            elif a is None or b is None:
                self.counts["missing_text"] += 1
            elif not a or not b or a.isspace() or b.isspace():
                self.counts["empty"] += 1
            elif a == b:
                self.counts["identical"] += 1
            else:
                kept.append((one, other, tie))
        if kept and unit is None:
            self.counts["missing_label"] += 1
        of = f"\0{row}" if unit is None else str(unit)  # no name that a column holds
        for one, other, tie in kept:
            self.counts["ties"] += tie
            weight = (0.5 if tie else 1.0) / len(kept)
            for first, second in ((one, other), (other, one))[: 1 + tie]:
                position = TIE if tie else int(first > second)
                for label, (text, words) in ((1, answers[first]), (0, answers[second])):
                    self._waiting.append(
                        (text, label, row, weight, environment, of, position, *words)
                    )
        if len(self._waiting) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        """Store the waiting rows, with the values of other columns as fields."""
        columns = [*zip(*self._waiting, strict=True)] or [()] * len(self._schema)
        frame = pl.DataFrame(dict(zip(self._schema, columns, strict=False)), schema=self._schema)
        frame = frame.with_columns(key=self.digests(frame["text"]))  # of the answers alone
        if words := [pl.Series(column, dtype=pl.String) for column in columns[len(self._schema) :]]:
            frame = frame.with_columns(text=join_fields(self._fields, [frame["text"], *words]))
        self.keep(frame)
        self._waiting = []

    def corpus(self, reader: _PairReader) -> Corpus:
        """The collected pairs as a corpus; an `InputError` if no pair is usable."""
        self._flush()
        frame, stored, counts = self.finish()
        columns, n = reader.columns, frame.height // 2
        if not counts["rows"]:
            raise InputError(f"{self.name} has no rows")
        if not n:
            lost = f"{counts['missing_text']:,} without an answer, {counts['empty']:,} with an empty one"
            same = f"{counts['identical']:,} with the same text twice"
            raise InputError(
                f"{self.name}: none of the {counts['rows']:,} rows is a usable pair ({lost}, {same}); check --pairs"
            )
        pairs, other = frame.gather_every(2), frame["key"].gather_every(2, 1)
        units, position = pairs["unit"].to_list(), pairs["position"].to_numpy()
        decided = pl.DataFrame({"a": pairs["key"], "b": other}).filter(pl.Series(position != TIE))
        swapped = decided.select(pl.col("b").alias("a"), pl.col("a").alias("b")).unique()
        if not reader.by:  # only of a column is a missing value worth a word
            del counts["missing_label"]
        counts["kept"], counts["duplicates"] = 2 * n, decided.height - decided.unique().height
        counts["conflicts"] = decided.join(swapped, on=["a", "b"], how="semi").height
        notes = [*reader.table.notes, *reader.suspects.notes, *reader.notes]
        if reader.judged:  # where the preference came from, and how often the first answer won, which should not matter
            notes.append(
                f"the preferred answer is determined by {', '.join(map(repr, reader.judged))}"
            )
        if reader.judged and len(columns) == 2 and decided.height:
            from scipy.stats import binomtest  # half a second, which most readers do not need

            first = int((position == FIRST).sum())
            interval = binomtest(first, decided.height).proportion_ci(method="wilson")
            fair = interval.low <= 0.5 <= interval.high
            notes.append(
                f"the first answer ({columns[0]!r}) wins {first / decided.height:.1%} of {decided.height:,} pairs "
                f"(95% CI {interval.low:.1%} to {interval.high:.1%}){'' if fair else ', so its position predicts the preference'}"
            )
        names = tuple(name.removeprefix("\0") for name in dict.fromkeys(units))
        if reader.by and len(names) < 6 and n >= 50:  # p is never below 2^(1 − units)
            notes.append(
                f"column {reader.by!r} (--by) has {len(names)} values for {n:,} pairs: too few for a significant result; to "
                f"compare them, pass {option('--environments', reader.by)}"
            )
        ends = columns[0], columns[-1]
        places = (
            position if reader.judged and len(columns) == 2 else np.where(position == TIE, TIE, -1)
        )
        pairing = Pairing(
            ends, reader.by, Corpus.unit_index(units), names, None if (places < 0).all() else places
        )
        intake = Intake(counts=counts, columns=ends, detected=tuple(notes), pairs=True)
        unused = {
            "weight": pairs["weight"].n_unique() == 1,
            "environment": pairs["environment"].null_count() == n,
        }
        data = frame.drop(
            "unit", "position", *(name for name, is_unused in unused.items() if is_unused)
        )
        kinds = reader.suspects.kinds
        return Corpus(
            data,
            ("rejected", "chosen"),
            self.name,
            intake,
            None,
            reader.fields,
            kinds,
            pairing,
            stored,
        )


class _PairReader:
    """How the rows of one table become pairs."""

    def __init__(
        self,
        table: SourceTable,
        how: ReadSettings,
        by: str | None,
        kinds: Mapping[str, ColumnKind] | None = None,
    ) -> None:
        self.table, self.how, self.columns = table, how, how.columns_of_pairs
        self.judged = (how.winner,) if how.winner else tuple(how.scores or how.ranks)
        kind = "winner" if how.winner else "scores" if how.scores else "ranks"
        for name, what in [
            *((name, "pairs") for name in self.columns),
            *((name, kind) for name in self.judged),
        ]:
            table.checked_column(name, what)
        lower = {name.strip().lower(): name for name in reversed(table.columns)}
        stems = "prompt question instruction query history".split()
        prompts = [
            lower[n]
            for stem in stems
            for n in lower
            if re.fullmatch(rf"{stem}([ _-]?(id|text))?", n)
        ]
        self.by = by or next((name for name in prompts if name not in self.columns), None)
        if self.by:
            table.checked_column(self.by, "groups")
        ties = [
            name for name in table.columns if re.fullmatch(r"(winner_)?(model_)?tie", name.lower())
        ]
        self._tie = ties[0] if ties and how.winner else None
        # columns that name the model of either answer, such as model_a and model_b
        ends = [re.search(r"[^_\W]+$", name) for name in self.columns]
        models = [lower.get(f"model_{end[0].lower()}") for end in ends if end]
        self._models = (
            [name for name in models if name] if len(self.columns) == 2 and all(models) else []
        )
        self.notes: list[str] = []  # how the winner was read
        ordered = {"chosen", "preferred", "winner", "better"} & {*map(str.lower, self.columns)}
        if not (self.judged or ordered or table.preferred == self.columns):
            self.notes = [f"{self.columns[0]!r} is read as the preferred answer of every pair"]
            flag, outcome = self._likely_outcome()
            if outcome:
                command = f"{option('--pairs', ','.join(self.columns))} {option(flag, outcome)}"
                says = f"{outcome!r} seems to say which answer won; use {command}, or, if the first one always won, rename it"
                raise InputError(f"{table.name}: {says}")
        self._columns = self._tested_columns([end[0].lower() for end in ends if end])
        self.suspects = ColumnTokens(table, self._columns, kinds)
        self.fields = ("answer", *self.suspects.names) if self.suspects.names else ()
        if how.environments:
            table.checked_column(how.environments, "environments")

    def _likely_outcome(self) -> tuple[str, str]:
        """`--winner` and a column that is named so, or whose first values name both answers and else only ties (numbers and models
        count where its name says more); or `--scores` or `--ranks` and two columns of numbers that are named like the answers."""
        if (named := self.table.winner_column()) or len(self.columns) != 2:
            return "--winner" * bool(named), named or ""
        cells = {
            n: some
            for n, some in self.table.sample.items()
            if not any(isinstance(x, list | dict) for x in some)
        }
        sample = {n: {x for x in map(label_name, some) if x} for n, some in cells.items()}
        own = [
            {_letters_and_digits(name), *_SYNONYMS[side]} for side, name in enumerate(self.columns)
        ]
        less_clear = [
            [{"0"}, {"1"}],
            [{"1"}, {"2"}],
            [set(map(_letters_and_digits, sample.get(name, ""))) for name in self._models],
        ]
        word = r"([^\W\d_]+|\d+)"
        first, second = (set(re.findall(word, name)) for name in self.columns)
        other_side: dict[str, str] = dict(
            zip(first - second, second - first, strict=False)
        )  # such as "a" and "b"
        scored = "(rank)|score|rating|vote|likes|reward|points|likert|logprob|elo$|elo_|correct|quality|helpful|prob"
        chance = rf"(p|prob\w*|chance|confidence)_({'|'.join(first ^ second)})(_.*)?"
        for name, values in sample.items():
            said = set(map(_letters_and_digits, values)) - {*_SYNONYMS[TIE]}
            says = re.search(
                r"w[io]n|prefer|better|best|choice|chosen|select|vote|label|target|favou?r",
                name.lower(),
            )
            for sides in [own, *(less_clear if says else [])]:
                if sides and said <= set.union(*sides) and all(said & side for side in sides):
                    return "--winner", name
            other = "".join(other_side.get(part, part) for part in re.split(word, name))
            numbers = all(re.fullmatch(r"-?[0-9.]+", x) for x in values | sample.get(other, set()))
            if (
                numbers
                and (other == name or other not in sample)
                and re.fullmatch(chance, name, re.IGNORECASE)
            ):
                return "--winner", name
            kind = re.search(scored, name.lower())
            if numbers and kind and other != name and other in sample:
                return "--ranks" if kind[1] else "--scores", f"{name},{other}"
        return "", ""

    def _tested_columns(self, ends: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Field → its columns in the order of the answers; one column for all answers if it describes the row."""
        found: dict[str, tuple[str, ...]] = {}
        lower = {name.strip().lower(): name for name in reversed(self.table.columns)}
        for name in self.how.columns:
            stem = next((name[: -len(end)] for end in ends if name.lower().endswith("_" + end)), "")
            stem = (stem or name).rstrip("_")
            sides = [lower.get(f"{stem}_{end}".lower()) for end in ends]
            if len(self.columns) > 1 and len(sides) == len(self.columns) and all(sides):
                found[stem] = tuple(str(side) for side in sides)
                continue
            self.table.checked_column(name, "columns")
            if name in (*self.columns, *self.judged, self.by, self.how.split):
                raise InputError(
                    f"{self.table.name}: the column {name!r} is already used; leave it out of --columns"
                )
            # the same value on both sides says nothing, but with the answer's place it does: who prefers the first?
            if len(self.columns) == 2 and not self.judged:
                same = (
                    f"{name!r} is the same for both answers, so it cannot be a shortcut; name columns that belong to one answer "
                    "each"
                )
                compared = f"or compare its values with {option('--environments', name)}"
                raise InputError(
                    f"{self.table.name}: {same}, such as model_a and model_b, {compared}"
                )
            found[name] = (name,)
        if "answer" in found:
            raise InputError(
                f"{self.table.name}: 'answer' is reserved for the answer's text; rename that column"
            )
        return found

    def _words(self, values: dict[str, Any], answers: int) -> list[tuple[str | None, ...]]:
        """For each answer, the word of each field; values that describe the row are marked with the answer's place."""
        found = []
        for i in range(answers):
            words = [values["\0" + columns[i % len(columns)]] for columns in self._columns.values()]
            whole = [len(columns) == 1 and answers == 2 for columns in self._columns.values()]
            place = ("_first", "_second")[i % 2]
            found.append(
                tuple(
                    word + place if word and of else word
                    for word, of in zip(words, whole, strict=True)
                )
            )
        return found

    def read_into(self, train: _Side, test: _Side) -> None:
        """All rows of the table into their sides."""
        how, found, outcome = self.how, set[str](), self._outcome() if self.how.winner else None
        if len(self.columns) == 1 and self.by and (how.scores or how.ranks):
            column = self.columns[0]
            first = next(
                (values for _, values in self._rows() if values[column] is not None), {column: None}
            )
            if isinstance(first[column], str) and self.table.cells(first, [column]) == [
                first[column]
            ]:
                self._fill_from_rows(train)
                return
        if len(self.columns) != 2 and any(len(columns) == 1 for columns in self._columns.values()):
            raise InputError(
                f"{self.table.name}: with more than two answers, --columns takes one column per answer"
            )
        for row, values in self._rows():
            side = train
            if how.split is not None:
                name = str(values[how.split]).strip().lower()
                found.add(name)
                side = test if name in TEST_NAMES else train
            answers, prompt = self._answers(row, values)
            unit = values[self.by] if self.by else prompt
            side.counts["rows"] += 1
            results = [(FIRST, SECOND, False)]
            if outcome is not None:
                won = outcome(row, values)
                if won is None:
                    side.counts["undecided"] += 1
                    continue
                results = [(FIRST, SECOND, True)] if won == TIE else [(won, 1 - won, False)]
            elif self.judged:
                results = self._scored_pairs(self._numbers(row, values, len(answers)))
            both = list(zip(answers, self._words(values, len(answers)), strict=True))
            side.add_row(row, both, results, None if missing(unit) else unit, values[_ENVIRONMENT])
        if how.split is not None:
            self.table.check_sides(how.split, found)

    def _fill_from_rows(self, side: _Side) -> None:
        """Rows of one answer each, compared with the others of their prompt."""
        if self.how.split is not None:
            raise InputError(
                "--split is for rows that contain all answers of a prompt: pass --test SOURCE"
            )
        # prompt and environment → row, score, and text with the values of other columns
        prompts: dict[tuple[str, str | None], list[tuple[int, float | None, Any]]] = {}
        for row, values in self._rows():
            side.counts["rows"] += 1
            unit = values[self.by or ""]
            text = self.table.as_texts([values[self.columns[0]]], self.columns[0], row)[0][0]
            found = row, self._numbers(row, values, 1)[0], (text, self._words(values, 1)[0])
            key = str(unit) if not missing(unit) else f"row {row}"
            prompts.setdefault((key, values[_ENVIRONMENT]), []).append(found)
        for (unit, environment), answers in prompts.items():
            results = self._scored_pairs([score for _, score, _ in answers])
            side.add_row(
                answers[0][0], [answer for *_, answer in answers], results, unit, environment
            )

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        how, others = self.how, [column for columns in self._columns.values() for column in columns]
        wanted = [
            *self.columns,
            *self.judged,
            *self._models,
            *others,
            self.by,
            how.split,
            how.environments,
            self._tie,
        ]
        row = 1
        holds = f"the column {how.environments!r} (--environments) contains"
        for batch in self.table.read(list(dict.fromkeys(name for name in wanted if name))):
            for name, columns in self._columns.items():
                batch |= {
                    "\0" + column: self.suspects.words(name, batch[column]) for column in columns
                }
            if how.environments:
                batch[_ENVIRONMENT] = self.table.as_names(
                    batch[how.environments], row, holds, "choose another"
                )
            lists = [self.table.as_list(column) for column in batch.values()]
            for values in zip(*lists, strict=True):
                yield row, {_ENVIRONMENT: None} | dict(zip(batch, values, strict=True))
                row += 1

    def _answers(self, row: int, values: dict[str, Any]) -> tuple[list[str | None], object]:
        """The answers of a row, and what they share at the beginning, if they are conversations."""
        cells, prompt = self.table.cells(values, self.columns), None
        turn = r"(?i)\s*(Human|User|H|Q|Question|SUBREDDIT)\s*:"
        if len(cells) > 1 and all(
            isinstance(cell, list) and cell and isinstance(cell[0], dict) for cell in cells
        ):
            common = _common_length(cells)
            prompt = self.table.chat_text(cells[0][:common]) if common else None
            rest = [cell[common:] or cell[-1:] for cell in cells]
            cells = [
                self.table.chat_text(part if common else part[-1:], self.how.role) for part in rest
            ]
        elif len(cells) > 1 and all(
            isinstance(cell, str) and re.match(turn, cell) for cell in cells
        ):
            # transcripts: the prompt goes up to the last common turn of the assistant
            turns = list(_REPLY.finditer(cells[0][: _common_length(cells)]))
            end = turns[-1].end() if turns else 0
            prompt = cells[0][:end].strip() if turns else None
            cells = [
                cell[end:].strip() if turns else _REPLY.split(cell)[-1].strip() for cell in cells
            ]
        names = self.columns if len(self.columns) > 1 else self.columns * len(cells)
        each = zip(cells, names, strict=True)
        return [
            self.table.as_texts([cell], name, row, self.how.role, "--pairs")[0][0]
            for cell, name in each
        ], prompt

    def _numbers(self, row: int, values: dict[str, Any], answers: int) -> list[float | None]:
        """Score of every answer, the higher the better; ranks are turned round."""
        cells = self.table.cells(values, self.judged)
        if len(cells) != answers:
            raise InputError(
                f"{self.table.name}: row {row}: {answers} answers but {len(cells)} scores"
            )
        out: list[float | None] = []
        for cell in cells:
            try:
                none = missing(cell) or (
                    isinstance(cell, str) and cell.strip().lower() in ("", "nan")
                )
                out.append(None if none else -float(cell) if self.how.ranks else float(cell))
            except (TypeError, ValueError, OverflowError):
                where = f"{self.table.name}: row {row}"
                raise InputError(f"{where}: the score {str(cell)[:40]!r} is not a number") from None
        return out

    def _scored_pairs(self, numbers: Sequence[float | None]) -> list[_Result]:
        """All pairs of scored answers, the better one first; of many answers only those with different scores."""
        results = []
        for (i, a), (j, b) in combinations(enumerate(numbers), 2):
            if a is not None and b is not None and (a != b or len(numbers) == 2):
                results.append((i, j, a == b) if a >= b else (j, i, False))
        return results

    def _outcome(self) -> Callable[[int, dict[str, Any]], int | None]:
        """A value of the winner column → FIRST, SECOND, TIE or None."""
        column, true = str(self.how.winner), ("1", "true")
        if len(self.columns) != 2:
            raise InputError(
                "--winner is for two columns in --pairs; for more answers use --scores or --ranks"
            )
        found = {name for _, row in self._rows() if (name := label_name(row[column])) is not None}
        numbers = set(filter(re.compile(r"-?\d+(\.\d+)?(e-?\d+)?").fullmatch, found))
        own = [c.lower() for c in self.columns]
        ends = [re.sub(r".*[_\W]", "", c) for c in own]
        wins = r"([\W_]+(is[\W_])?(wins?|won|winner|better|best|preferred))?"
        sides = [
            side
            for side in (FIRST, SECOND)
            if re.search(rf"(^|[\W_]){ends[side]}{wins}$", column.lower())
        ]
        truth = {x.lower() for x in found} <= {"0", "1", "true", "false"} and not column.endswith(
            "_id"
        )
        tie = None
        if truth and len(sides) == 1:  # such as winner_model_a or a_wins, with 1 where it won
            tie, meaning = self._tie, {x: abs((x.lower() not in true) - sides[0]) for x in found}
        else:  # of several that say it the last one counts
            said = [(side, _SYNONYMS[side]) for side in (SECOND, FIRST)]
            said += [
                (side, [own[side], _letters_and_digits(ends[side])]) for side in (SECOND, FIRST)
            ] + [(TIE, _SYNONYMS[TIE])]
            meaning = {
                x: side
                for side, names in said
                for x in found
                if _letters_and_digits(x) in names or x.lower() in names
            }
            meaning |= self._by_number(numbers, ends, sides) if numbers else {}

        def outcome(row: int, values: dict[str, Any]) -> int | None:
            cell, models = (
                label_name(values[column]),
                [label_name(values[model]) for model in self._models],
            )
            if tie and (label_name(values[tie]) or "").lower() in true:
                return TIE
            if cell is None:
                return None
            if (
                cell in models
                and models[0] != models[1]
                and cell not in numbers
                and meaning.get(cell) != TIE
            ):
                return models.index(cell)
            if cell in meaning:
                return meaning[cell]
            raise InputError(
                f"{self.table.name}: row {row}: column {column!r} contains {cell[:40]!r}, which names neither answer nor a tie; it "
                f"may contain {self.columns[0]} and {self.columns[1]}, A and B, 1 and 2, 0 and 1, the models' names, and tie"
            )

        return outcome

    def _by_number(
        self, numbers: set[str], ends: Sequence[str], sides: Sequence[int]
    ) -> dict[str, int]:
        """What the numbers of a winner column mean if its name mentions `sides`."""
        found = {float(number) for number in numbers}
        if (
            min(found) >= 0 and max(found) <= 1 and not found <= {0, 1}
        ):  # chances of winning, such as p_a_wins
            if len(sides) != 1:
                what = f"{self.table.name}: {self.how.winner!r} looks like a win probability, but it is unclear for which answer"
                raise InputError(f"{what}; rename it, for example p_{ends[0]}_wins")
            meaning = {
                value: TIE if value == 0.5 else abs((value < 0.5) - sides[0]) for value in found
            }
        elif (
            min(found) < 0
        ):  # a scale such as HelpSteer's −3 to 3: below zero the first answer is better
            meaning = {
                value: FIRST if value < 0 else SECOND if value > 0 else TIE for value in found
            }
        elif all(end.isdigit() for end in ends) and found <= {float(end) for end in ends}:
            meaning = {float(ends[0]): FIRST, float(ends[1]): SECOND}
        elif found in ({0, 1}, {1, 2}):
            meaning = {min(found): FIRST, max(found): SECOND}
        elif found in ({0, 1, 2}, {1, 2, 3}):
            meaning = {1: FIRST, 2: SECOND, 0: TIE, 3: TIE}
        else:
            raise InputError(
                f"{self.table.name}: column {self.how.winner!r} contains {listed(sorted(numbers))}, which does not say "
                "which answer won; it may contain 0 and 1, or 1 and 2"
            )
        names = (*map(repr, self.columns), "a tie")
        shown = (
            (f"{value:g}", names[meaning[value]])
            for value in (*sorted(found)[:2], *sorted(found)[2:][-2:])
        )
        self.notes = ["a winner of " + ", ".join(f"{value} means {name}" for value, name in shown)]
        return {number: meaning[float(number)] for number in numbers}


_REPLY = re.compile(r"\n\s*(Assistant|AI|Bot|A|Answer)\s*:", re.IGNORECASE)


def _letters_and_digits(name: str) -> str:
    """Its letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _common_length(parts: Sequence[Sequence[object]]) -> int:
    """The length of their common beginning."""
    unlike = (
        i
        for i, (one, *rest) in enumerate(zip(*parts, strict=False))
        if any(other != one for other in rest)
    )
    return next(unlike, min(map(len, parts)))
