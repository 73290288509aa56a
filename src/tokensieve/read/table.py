"""Named columns in batches: every source is read into this form before its documents are selected.

A batch holds a column as a Polars series where the source is typed, and as a list where one column may mix types (JSON, lists).
Which column holds the text and which the label is as named, else by well-known names, else by how the values look.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import polars as pl

from tokensieve.errors import InputError, one_line
from tokensieve.escape import option
from tokensieve.read.values import SURROGATE, label_name, listed, missing, only_entry

Values: TypeAlias = "pl.Series | list[Any]"
Batch: TypeAlias = dict[str, Values]
Sample: TypeAlias = dict[str, list[Any]]
BATCH, MOST_COLUMNS = 10_000, 20_000  # rows; a spreadsheet has 16,384 columns
_OPPOSITES = "chosen/rejected preferred/non_preferred preferred/dispreferred winner/loser win/lose"
TEXT_NAMES = (
    "text review sentence document content body message messages comment tweet conversation".split()
)
_LABEL_NAMES = "label labels class sentiment category target stars rating y".split()
KNOWN_NAMES = {*TEXT_NAMES, *_LABEL_NAMES}
TEST_NAMES = ("test", "testing")
TRAIN_NAMES = ("train", "training", "dev", "validation", "val")


class SourceTable:
    """Named columns, readable again and again in batches.

    Args:
        columns: the column names, all different.
        read: column names → batches of them, in source order.
        records: the rows with all their fields, where `columns` need not name every one (JSON); None where it does.
        first_line: whether the names come from a first line, which may be data.
        notes: what was detected, such as the separator.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[str],
        read: Callable[[Sequence[str]], Iterator[Batch]],
        records: Callable[[], Iterator[dict[str, Any]]] | None = None,
        first_line: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        if len(columns) > MOST_COLUMNS:
            raise InputError(
                f"{name} has over {MOST_COLUMNS:,} columns; write a file with only the columns you need"
            )
        twice = sorted(column for column, n in Counter(columns).items() if n > 1)
        if twice:
            raise InputError(
                f"{name}: the column name {twice[0][:80]!r} occurs more than once; rename one of them"
            )
        self.name, self.columns, self._read, self._records = name, tuple(columns), read, records
        self.first_line, self.notes = first_line, tuple(notes)
        self.kept: list[
            object
        ] = []  # what must live as long as the table, such as a folder of temporary files
        self.check_same: Callable[[], None] = lambda: (
            None
        )  # called after the last row; raises if the source changed

    @classmethod
    def of_records(
        cls,
        name: str,
        records: Callable[[], Iterator[dict[str, Any]]],
        sample: int | None,
        notes: Sequence[str] = (),
    ) -> SourceTable:
        """A table of JSON objects; its columns are the keys of the first `sample` of them (None: of all)."""
        keys = {key: None for record in islice(records(), sample) for key in record}
        if not keys:
            raise InputError(f"{name} has no rows; write JSON objects {{…}} with named fields")

        def read(names: Sequence[str]) -> Iterator[Batch]:
            remaining = records()
            while rows := list(islice(remaining, BATCH)):
                yield {name: [row.get(name) for row in rows] for name in names}

        return cls(name, list(keys), read, records, notes=notes)

    @classmethod
    def of_lists(cls, lists: tuple[Any, ...], name: str = "the lists") -> SourceTable:
        """A pair of lists of one length, texts and labels, as a table."""
        if len(lists) != 2 or any(
            isinstance(part, str | bytes) or not hasattr(part, "__len__") for part in lists
        ):
            raise InputError("pass texts and labels as a pair of lists: (texts, labels)")
        if len(lists[0]) != len(lists[1]):
            raise InputError(
                f"{len(lists[0])} texts but {len(lists[1])} labels: pass one label for each text"
            )
        texts, labels = (part if isinstance(part, pl.Series) else list(part) for part in lists)
        columns: Batch = {"text": texts, "label": labels}
        return cls(
            name, ("text", "label"), lambda names: iter([{key: columns[key] for key in names}])
        )

    @classmethod
    def of_frame(cls, source: Any, name: str = "the data frame") -> SourceTable | None:
        """A data frame as a table: of Polars or pandas, or anything that gives Arrow data; None for anything else."""
        # a pandas frame exists only where pandas is loaded; do not load it for others
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(source, pandas.DataFrame):
            frame, places = source, {str(column): i for i, column in enumerate(source.columns)}

            def read(names: Sequence[str]) -> Iterator[Batch]:
                # pandas has several missing values (None, nan, NA, NaT): make them one
                columns = {key: frame.iloc[:, places[key]] for key in names}
                yield {
                    key: c.astype(object).where(c.notna(), None).tolist()
                    for key, c in columns.items()
                }

            return cls(name, [str(column) for column in source.columns], read)
        lazy = isinstance(source, pl.LazyFrame)
        if isinstance(source, pl.Series) or not (lazy or hasattr(source, "__arrow_c_stream__")):
            return None
        what = "the lazy frame" if lazy else "the Arrow table"
        try:
            if isinstance(source, pl.LazyFrame | pl.DataFrame):
                polars: pl.LazyFrame | pl.DataFrame = source
            else:
                polars, name = pl.DataFrame(source), what
            columns = polars.collect_schema().names()
        # two columns of one name, for example
        except (pl.exceptions.PolarsError, OSError, TypeError, ValueError) as problem:
            reason = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
            raise InputError(f"{what} cannot be read: {reason}") from None
        return cls(name, columns, lambda names: SourceTable.frame_batches(polars, names))

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """Batches of columns; a name with dots (`data.text`) may lead into nested values."""
        base = {name: self.top_level_column(name) for name in names}
        for batch in self._read(list(dict.fromkeys(base.values()))):
            yield {
                name: batch[column]
                if name == column
                else _nested(batch[column], name[len(column) + 1 :].split("."))
                for name, column in base.items()
            }
        self.check_same()

    def top_level_column(self, name: str) -> str:
        """The column that a name refers to or leads into; the name itself if there is none."""
        start = name
        while start and start not in self.columns:
            start = start.rpartition(".")[0]
        return start or name

    def checked_column(self, name: str, what: str) -> str:
        """The name, if it refers to a column or leads into one; else an `InputError` that states what the column was for."""
        name = str(name)  # pandas' columns may be numbers
        if self.top_level_column(name) in self.columns:
            return name
        lower = {column.strip().lower(): column for column in reversed(self.columns)}
        near = get_close_matches(name.strip().lower(), list(lower), n=1)
        hint = f"; did you mean {lower[near[0]]!r}?" if near else ""
        if "," in name and all(part.strip() in self.columns for part in name.split(",")):
            hint = "; name one column at a time and repeat the option"
        missing = f"there is no column {name!r} for the {what}"
        raise InputError(f"{self.name}: {missing}; the columns are {listed(self.columns)}{hint}")

    def records(self) -> Iterator[dict[str, Any]]:
        """Every row with all its fields, by name."""
        if self._records is not None:
            yield from self._records()
        else:
            for batch in self._read(self.columns):
                for row in zip(*map(SourceTable.as_list, batch.values()), strict=True):
                    yield dict(zip(batch, row, strict=True))
        self.check_same()

    def height(self) -> int:
        """The number of rows."""
        return sum(len(batch[self.columns[0]]) for batch in self._read(self.columns[:1]))

    @cached_property
    def sample(self) -> dict[str, list[Any]]:
        """The first values of every column, as many as recognition needs; an `InputError` if there are no rows."""
        for batch in self._read(self.columns):
            out = {name: SourceTable.as_list(values[:200]) for name, values in batch.items()}
            if n := len(next(iter(out.values()), [])):
                size = sum(
                    len(value)
                    for values in out.values()
                    for value in values
                    if isinstance(value, str)
                )
                kept = max(1, n * 10**6 // max(size, 10**6))
                return {name: values[:kept] for name, values in out.items()}
        raise InputError(f"{self.name} has no rows")

    @staticmethod
    def frame_batches(frame: pl.DataFrame | pl.LazyFrame, names: Sequence[str]) -> Iterator[Batch]:
        """Columns of a frame; a lazy frame comes in batches, so it need not fit into memory."""
        if isinstance(frame, pl.DataFrame):
            yield {name: frame[name] for name in names}
            return
        for part in frame.select(pl.col(name) for name in names).collect_batches(
            chunk_size=BATCH, lazy=True
        ):
            yield {name: part[name] for name in names}

    @staticmethod
    def as_list(values: Values) -> list[Any]:
        """Values as Python objects; of a column with dates that Python cannot hold, the numbers that they are stored as."""
        if not isinstance(values, pl.Series):
            return values
        if values.dtype.is_temporal() or values.dtype.is_nested():
            with suppress(InputError), one_line("dates"):
                return values.to_list()
            return values.to_physical().to_list()
        return values.to_list()

    @staticmethod
    def cells(row: dict[str, Any], names: Sequence[str]) -> list[Any]:
        """The values of some columns; where there is one column, of a list, its entries. CSV holds lists as JSON or Python text."""
        cells = [row[name] for name in names]
        for i, cell in enumerate(cells):
            if isinstance(cell, str) and re.match(r"\[\s*[{\"'\d.-]", cell):
                for parse in (ast.literal_eval, json.loads):
                    with suppress(ValueError, SyntaxError, RecursionError):
                        cells[i] = parse(cell)
            if (
                len(cells) > 1
                and isinstance(cells[i], list)
                and all(isinstance(turn, str | None) for turn in cells[i])
            ):
                cells[i] = "\n".join(
                    turn or "" for turn in cells[i]
                )  # an answer to each of several turns
        return cells[0] if len(cells) == 1 and isinstance(cells[0], list) else cells

    @staticmethod
    def chat_text(value: object, role: str | None = None) -> object:
        """Chat messages (`role` and `content`, or `from` and `value`) of one role or all as one text; any other value as it is."""
        if not (
            isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)
        ):
            return value
        key = next((key for key in ("content", "value", "text") if key in value[0]), None)
        if key is None or not {"role", "from", "speaker", "author"} & set(value[0]):
            return value
        said = {
            "assistant": ("assistant", "gpt", "bot", "model"),
            "user": ("user", "human", "prompter"),
        }
        parts = []
        for entry in value:
            content = entry.get(key)
            if role is not None and (entry.get("role") or entry.get("from")) not in said.get(
                role, (role,)
            ):
                continue
            if isinstance(content, list):  # parts of a multimodal message
                found = [
                    x["text"] for x in content if isinstance(x, dict) and x.get("text") is not None
                ]
                content = "\n".join(map(str, found))
            if content is not None:
                parts.append(str(content))
        return "\n".join(parts) if parts else None

    def as_texts(
        self,
        values: Values,
        column: str,
        first_row: int,
        role: str | None = None,
        flag: str = "--text COLUMN",
    ) -> tuple[pl.Series, int]:
        """Values as text with nulls, and how many had lone surrogates, each of which becomes U+FFFD (no file can hold them).

        Of chat messages those of a role are read; `column`, `first_row` and `flag` are for the message where a value is not text.
        """
        if isinstance(values, pl.Series):
            if values.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null):
                return values.cast(pl.String), 0
            values = self.as_list(values)
        texts, replaced = list[str | None](), 0
        for row, value in enumerate(values, first_row):
            text = self.chat_text(value, role) if isinstance(value, list) else value
            if not isinstance(text, str):
                if not missing(text):
                    holds = f"column {column!r} contains {type(value).__name__} values, not text"
                    raise InputError(f"{self.name}: row {row}: {holds}; choose another with {flag}")
                text = None
            elif not text.isascii():
                text, found = SURROGATE.subn("\ufffd", text)
                replaced += found > 0
            texts.append(text)
        return pl.Series(texts, dtype=pl.String), replaced

    def as_names(self, values: Values, first_row: int, holds: str, advice: str) -> pl.Series:
        """Values as names (labels, groups), trimmed, with nulls; each distinct value is looked at once.

        A list of several or the like is an `InputError`, "source: row 1: the label is a list; advice".
        """
        known: dict[tuple[type, object], str | None] = {}
        out: list[str | None] = []
        for row, given in enumerate(self.as_list(values), first_row):
            value = only_entry(given) if isinstance(given, list) else given
            key = (type(value), value)
            try:
                if key not in known:
                    name = label_name(value)
                    known[key] = name and SURROGATE.sub("\ufffd", name)
            except TypeError:
                raise InputError(
                    f"{self.name}: row {row}: {holds} a {type(value).__name__}; {advice}"
                ) from None
            out.append(known[key])
        return pl.Series(out, dtype=pl.String)

    def text_columns(self, text: str | Sequence[str] | None) -> tuple[str, ...]:
        """The columns of the text: those named, else the only plausible one; an `InputError` if that is not clear."""
        if text:
            names = list(map(str, text)) if isinstance(text, list | tuple) else [str(text)]
            for name in names:
                self.checked_column(name, "text")
            if len(set(names)) < len(names):
                raise InputError(
                    f"{self.name}: a field is named twice: {listed(names)}; name each once with --text"
                )
            return tuple(names)
        name = _guessed_text(self, self.sample, self.columns, "")
        _check_header(self, self.sample, [name])
        return (name,)

    def labelled_columns(
        self, text: str | Sequence[str] | None, label: str | None, taken: Sequence[str]
    ) -> tuple[tuple[str, ...], str]:
        """The columns of the text (None: the only plausible one) and of the label, excluding those already taken."""
        texts = self.text_columns(text) if text else ()
        if label is not None:
            label = self.checked_column(label, "label")
        guessed = list[str]()
        if label is None and (command := self.pair_options()):
            raise InputError(
                f"{self.name}: this looks like preference data; for pairs of answers pass {command}"
            )
        if not texts:
            left = [c for c in self.columns if c not in (label, *taken)]
            texts = (_guessed_text(self, self.sample, left, "" if label else " --label COLUMN"),)
            guessed += texts
        if label is None:
            bases = {self.top_level_column(name) for name in texts}
            left = [c for c in self.columns if c not in bases and c not in taken]
            label = _guessed_label(self, self.sample, left, texts)
            guessed.append(label)
        if guessed:
            _check_header(self, self.sample, guessed)
        if label in texts:
            raise InputError(
                f"{self.name}: text and label must be different columns, but both are {label!r}"
            )
        return texts, label

    def verdict(self) -> str | None:
        """Prodigy's column `answer`, which marks whether the annotator accepted the label; None if it has any other value."""
        said = (
            {str(value) for value in self.sample["answer"]} if "answer" in self.columns else set()
        )
        return "answer" if said and said <= {"accept", "reject", "ignore"} else None

    def pair_options(self) -> str | None:
        """The options that read the table as preference data, by its column names; None if it does not look like such data."""
        lower = {column.lower(): column for column in self.columns}
        if self.preferred:
            return option("--pairs", ",".join(self.preferred))
        for (
            name,
            values,
        ) in self.sample.items():  # all answers of a prompt in one cell, each with its score
            answer = next(
                (
                    v[0]
                    for v in values
                    if isinstance(v, list) and len(v) > 1 and isinstance(v[0], dict)
                ),
                {},
            )
            keys = [key for key, value in answer.items() if value is not None]
            texts = [
                k
                for k in keys
                if re.fullmatch("answer|response|text|output|completion|generation", k.lower())
            ]
            scores = sorted(
                (key for key in keys if re.search(r"rank|score|rating|reward", key.lower())),
                key=len,
            )
            scores = [key for key in scores if isinstance(answer[key], int | float)]
            if texts and scores:
                flag = "--ranks" if "rank" in scores[0].lower() else "--scores"
                return f"{option('--pairs', f'{name}.{texts[0]}')} {option(flag, f'{name}.{scores[0]}')}"
        winner = self.winner_column()
        for first, second in (
            ("a", "b"),
            ("0", "1"),
            ("1", "2"),
            ("left", "right"),
            ("first", "second"),
        ):
            sides = {
                name: name.removesuffix(first) + second for name in lower if name.endswith(first)
            }
            both = [(name, other) for name, other in sides.items() if other in lower]
            kinds = "human_ref|response|answer|output|completion|conversation|summary|text|candidate|reply|generation"
            answers = [
                f"{lower[name]},{lower[other]}" for name, other in both if re.match(kinds, name)
            ]
            scores = [
                f"{lower[name]},{lower[other]}"
                for name, other in both
                if re.match(r"(score|rating|rank)", name)
            ]
            if answers and (winner or scores):
                flag = (
                    "--winner"
                    if winner
                    else "--ranks"
                    if "rank" in scores[0].lower()
                    else "--scores"
                )
                return f"{option('--pairs', answers[0])} {option(flag, winner or scores[0])}"
        return None

    @property
    def preferred(self) -> tuple[str, ...]:
        """The columns of the preferred and the other answer, if their names show it."""
        lower = {column.lower(): column for column in self.columns}
        for one, other in re.findall(r"(\S+)/(\S+)", _OPPOSITES):
            named = {name: re.sub(rf"(^|_){one}(?=_|$)", rf"\1{other}", name) for name in lower}
            for name in (
                name for name, opposite in named.items() if opposite != name and opposite in lower
            ):
                return lower[name], lower[named[name]]
        return ()

    def winner_column(self) -> str | None:
        """A column whose name suggests that it marks which answer won."""
        pattern = r"winn(er|ing)\w*|prefer\w*|overall_preference|better\w*|best\w*|(human_)?choice|judge?ment|\w+_wins?"
        return next(
            (column for column in self.columns if re.fullmatch(pattern, column.strip().lower())),
            None,
        )

    def check_sides(self, part: str, found: set[str]) -> None:
        """Make sure that a column contains train and test, and nothing else."""
        if (
            not found <= {*TEST_NAMES, *TRAIN_NAMES}
            or not found & {*TEST_NAMES}
            or not found & {*TRAIN_NAMES}
        ):
            raise InputError(
                f"{self.name}: column {part!r} must contain 'test' for test rows and one of {listed(TRAIN_NAMES)} for "
                f"the others; it contains {listed(sorted(found))}"
            )


def _nested(values: Values, path: Sequence[str]) -> list[Any]:
    """What lies at a path of keys in every value; of a list, what lies there in each entry, or what a role says in a chat."""

    def value_at(value: object, keys: Sequence[str]) -> object:
        for place, key in enumerate(keys):
            if isinstance(value, list):
                said = SourceTable.chat_text(value, role=key)
                return (
                    said
                    if isinstance(said, str)
                    else [value_at(entry, keys[place:]) for entry in value]
                )
            value = value.get(key) if isinstance(value, dict) else None
        return value

    return [value_at(value, path) for value in SourceTable.as_list(values)]


def _check_header(table: SourceTable, sample: Sample, guessed: Sequence[str]) -> None:
    """Refuse a first line that is taken for column names but looks like the rows below it."""
    for name in guessed if table.first_line else ():
        if len(name.split()) >= 4 or len(name) > 60 or name in sample[name]:
            raise InputError(
                f"{table.name}: the first line looks like data, not like column names ({name[:40]!r}); pass --no-header, or "
                "name the columns with --text and --label"
            )


def _known(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns with a well-known name; only the exact first name, where it occurs."""
    found = [c for c in columns if c.strip().lower() in names]
    exact = [c for c in found if c.strip().lower() == names[0]]
    return exact if len(exact) == 1 else found


def _guessed_text(table: SourceTable, sample: Sample, columns: Sequence[str], more: str) -> str:
    objects = [
        c for c in columns if any(isinstance(value, dict) for value in sample[c])
    ]  # the text lies within
    known = _known([c for c in columns if c not in objects], TEXT_NAMES)
    prose = [c for c in columns if _is_prose(sample[c])]
    if len(known) > 1 and len(set(known) & set(prose)) == 1:
        known = [c for c in known if c in prose]
    if not known:
        known = prose or (list(columns) if len(columns) == 1 and not more else [])
    if len(known) == 1:
        return known[0]
    if not known:
        first = {
            c: next((value for value in sample[c] if value is not None), None) for c in columns
        }
        nested = [
            f"{c}.{key}" for c, value in first.items() if isinstance(value, dict) for key in value
        ]
        known = [name for name in nested if name.rpartition(".")[2].lower() in TEXT_NAMES]
        # a column that another option names, such as --by, may still be the text
        known = known or [c for c in sample if more and _is_prose(sample[c])] or list(columns)
    known.sort(
        key=lambda name: bool(re.match(r"prompt|question|instruction|summary|title", name.lower()))
    )
    others = [c for c in columns if c not in known] or [c for c in columns if c != known[0]]
    labels = [*_known(others, _LABEL_NAMES), *(c for c in others if _could_be_classes(sample[c]))]
    labels = labels or _nested_labels(sample, known[0])
    more = " " + option("--label", labels[0]) if more and labels else more
    raise InputError(
        f"{table.name}: cannot tell which column holds the text: {listed(known)}? Pass {option('--text', known[0])}{more}"
        f"{_possible_cause(table)}"
    )


def _nested_labels(sample: Sample, text: str) -> list[str]:
    """Dotted names of what could be classes within the columns, such as annotations.result.value.choices, the likeliest first."""
    paths: dict[str, None] = {}

    def walk(value: object, path: str) -> None:
        value = only_entry(value)
        if isinstance(value, dict) and path.count(".") < 6:
            for key, inner in value.items():
                walk(inner, f"{path}.{key}")
        elif isinstance(value, str) and path != text:
            paths[path] = None

    for column, values in sample.items():
        walk(next((value for value in values if value), None), column)
    inside = {
        path: _nested(sample[path.partition(".")[0]], path.split(".")[1:])
        for path in paths
        if "." in path
    }
    found = [
        path for path, values in inside.items() if _could_be_classes(SourceTable.as_list(values))
    ]
    return sorted(
        found,
        key=lambda path: not re.search(r"choice|label|class|value|sentiment|categor", path.lower()),
    )


def _guessed_label(
    table: SourceTable, sample: Sample, columns: Sequence[str], texts: Sequence[str]
) -> str:
    verdict = table.verdict()
    columns = [c for c in columns if c != verdict] or columns
    known = _known(columns, _LABEL_NAMES) or [c for c in columns if not _is_prose(sample[c])]
    if len(known) > 1 and not _known(columns, _LABEL_NAMES):
        known = [c for c in known if _could_be_classes(sample[c])] or known
    if len(known) == 1:
        one_value = len({str(value) for value in sample[known[0]]}) == 1
        return verdict if verdict and one_value else known[0]
    if not columns:
        chat, hint = texts[0], _possible_cause(table)
        if _could_be_classes(
            _nested(sample.get(chat, []), ["assistant"])
        ):  # as in files for fine-tuning a chat model
            hint = f"; pass {option('--text', f'{chat}.user')} {option('--label', f'{chat}.assistant')}"
        raise InputError(f"{table.name}: there is no label column besides the text{hint}")
    candidates = known or list(columns)
    named = " ".join(option("--text", name) for name in texts)
    raise InputError(
        f"{table.name}: cannot tell which column holds the label: {listed(candidates)}? Pass {named} "
        f"{option('--label', candidates[0])}{_possible_cause(table)}"
    )


def _is_prose(values: Sequence[object]) -> bool:
    """Free text or chat: on average three words with letters, or ten characters of a script without spaces."""
    texts = [
        text for value in values if isinstance(text := SourceTable.chat_text(value), str) and text
    ]
    if not texts or (len(texts) >= 20 and len(set(texts)) < len(texts) / 10):
        return False
    words = sum(
        len(re.findall(r"[^\W\d_]+", text[:2000])) for text in texts if not re.match(r"\S+$", text)
    )
    unspaced = (
        len(text)
        for text in texts
        if len(text[:200].encode("ascii", "ignore")) < len(text[:200]) / 2
    )
    return words >= 3 * len(texts) or sum(unspaced) >= 10 * len(texts)


def _could_be_classes(values: Sequence[object]) -> bool:
    """Few different values that repeat, unlike an identifier, a date or a measurement."""
    try:
        names = [
            name
            for value in values
            if not missing(value) and (name := label_name(value)) is not None
        ]
    except TypeError:
        found = next((v for v in values if v is not None), None)
        return isinstance(found, list) and not any(
            isinstance(entry, dict | list) for entry in found
        )
    if len(names) < 8:
        return len(set(names)) > 1
    dates = all(re.fullmatch(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?", name) for name in names)
    return 1 < len(set(names)) <= min(50, len(names) / 2) and not dates


def _possible_cause(table: SourceTable) -> str:
    """What else may be wrong with a file whose columns are not clear."""
    if command := table.pair_options():
        return f"; for preference data pass {command}"
    if table.first_line and any(len(name.split()) >= 4 or len(name) > 60 for name in table.columns):
        return "; the first line looks like data: if the file has no header, pass --no-header"
    return ""
