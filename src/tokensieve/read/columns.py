"""Which column holds the text and which the label: as named, else by names and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.name_lists import joined_names
from tokensieve.read.annotation_columns import is_annotator_name, is_identifier_name
from tokensieve.read.annotations import ANNOTATOR_KEYS
from tokensieve.read.chats import chat_text, text_key
from tokensieve.read.preference_columns import pair_options
from tokensieve.read.table import SourceTable, written_object
from tokensieve.read.values import label_name, label_names, listed, missing
from tokensieve.read.written_lists import literal_list

TEXT_NAMES = (
    "text review sentence document content body message messages comment tweet conversation".split()
)
LABEL_NAMES = "label labels class sentiment category target stars rating y".split()
KNOWN_NAMES = {*TEXT_NAMES, *LABEL_NAMES}

MIN_MEAN_WORDS = 3  # words with letters, of prose
MIN_MEAN_UNSPACED = 10  # characters of prose in a script without spaces
PROSE_CHARACTERS = 2_000  # of each text are looked at
MIN_REPEATED_VALUES = 20  # values, of which fewer than a tenth differ, are classes and no prose
MIN_JUDGED_VALUES = 8  # fewer values cannot show whether they repeat
MAX_CLASSES_IN_SAMPLE = 50
MAX_FIELDS_NAMED = 3  # columns that one document may consist of, in an error
MAX_NAME_WORDS = 3  # a longer column name looks like data
MAX_NAME_CHARACTERS = 60
MAX_BINARY = 6  # columns in a command; a longer one is hard to read
MAX_PATH_LENGTH = 6  # keys that lead to a nested label


class LabelledColumns(NamedTuple):
    """The columns of the text (one, or several fields) and of the label."""

    texts: tuple[str, ...]
    label: str


def text_columns(table: SourceTable, text: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of the text: those named, else the only plausible one.

    Raises:
        InputError: it is not clear which one.
    """
    if text:
        if isinstance(text, list | tuple):
            names = list(map(str, text))
        else:
            names = [str(text)]
        for name in names:
            table.checked_column(name, "text")
        if len(set(names)) < len(names):
            raise InputError(
                f"{table.name}: a field is named twice: {listed(names)}; name each once with --text"
            )
        return tuple(names)
    name = _recognised_text(table, table.columns, label_is_open=False)
    _check_header(table, [name])
    return (name,)


def _check_no_written_objects(table: SourceTable, texts: Sequence[str]) -> None:
    """Refuse texts that are objects written as JSON, and name their fields."""
    for name in texts:
        fields = _written_fields(table, name)
        if fields:
            raise InputError(
                f"{table.name}: the texts in {name!r} are objects written as JSON; name the field "
                f"that holds the text: {option('--text', fields[0])}"
            )


def _check_no_objects(table: SourceTable, texts: Sequence[str]) -> None:
    """Refuse texts that are objects, and name the field that holds the text."""
    for name in texts:
        field = text_field_inside(table, name)
        if field:
            raise InputError(
                f"{table.name}: the texts in {name!r} are objects; name the field that holds the "
                f"text: {option('--text', field)}"
            )


def _written_fields(table: SourceTable, name: str) -> list[str]:
    """Dotted names of the fields of objects that are written as JSON in a column, prose first."""
    sample: list[object] = []
    with suppress(InputError):  # a table without rows
        sample = [value for value in table.sample_of(name) if not missing(value) and value]
    objects = [written_object(value) for value in sample]
    if not objects or any(written is None for written in objects):
        return []
    paths = [f"{name}.{key}" for key in objects[0] or {}]
    return sorted(paths, key=lambda path: not _is_prose(table.sample_of(path)))


def labelled_columns(
    table: SourceTable, text: str | Sequence[str] | None, label: str | None, taken: Sequence[str]
) -> LabelledColumns:
    """The columns of the text and of the label: those named, else the only plausible ones.

    Args:
        table: the source.
        text: names of the text columns, if given.
        label: name of the label column, if given.
        taken: columns that other options name.

    Raises:
        InputError: it is not clear which ones; the message has a command that works.
    """
    texts: tuple[str, ...] = ()
    if text:
        texts = text_columns(table, text)
    recognised = list[str]()
    if label is not None:
        label = table.checked_column(label, "label")
    elif command := pair_options(table):
        raise InputError(
            f"{table.name}: this looks like preference data; for pairs of answers pass {command}"
        )
    if not texts:
        free = [name for name in table.columns if name not in (label, *taken)]
        texts = (_recognised_text(table, free, label_is_open=label is None),)
        recognised += texts
    if label is None:
        bases = {table.top_level_column(name) for name in texts}
        free = [name for name in table.columns if name not in bases and name not in taken]
        label = _recognised_label(table, free, texts)
        recognised.append(label)
    _check_header(table, recognised)
    _check_no_written_objects(table, texts)
    _check_no_objects(table, texts)
    if label in texts:
        raise InputError(
            f"{table.name}: text and label must be different columns, but both are {label!r}"
        )
    return LabelledColumns(texts, label)


def verdict_column(table: SourceTable) -> str | None:
    """Prodigy's column `answer`, which says whether the annotator accepted the label."""
    if "answer" not in table.columns:
        return None
    values = {str(value) for value in table.sample["answer"]}
    if values and values <= {"accept", "reject", "ignore"}:
        return "answer"
    return None


def _check_header(table: SourceTable, recognised: Sequence[str]) -> None:
    """Refuse a first line that is taken for column names but looks like the rows below it."""
    if not table.first_line:
        return
    is_header = [
        all(value == name for name, value in zip(table.sample, row, strict=True))
        for row in zip(*table.sample.values(), strict=True)
    ]
    for name in recognised:
        values = [
            x for x, repeats in zip(table.sample[name], is_header, strict=True) if not repeats
        ]
        if _looks_like_data(name) or name in values:
            raise InputError(
                f"{table.name}: the first line looks like data, not like column names "
                f"({name[:40]!r}); {table.header_hint}, or name the columns with --text and --label"
                f"{table.cause()}"
            )


def _looks_like_data(name: str) -> bool:
    return len(name.split()) > MAX_NAME_WORDS or len(name) > MAX_NAME_CHARACTERS


# ---- the text


def _recognised_text(table: SourceTable, columns: Sequence[str], label_is_open: bool) -> str:
    """The column of the text, among those that no option names."""
    candidates = _possible_texts(table, columns)
    answering = [name for name in candidates if not _is_asking(name)]
    if [name.lower() for name in answering] == ["completion"]:  # KTO: what is labelled
        candidates = answering
    if not candidates and len(columns) == 1 and not label_is_open:
        candidates = list(columns)
    if len(candidates) == 1:
        return candidates[0]
    raise _unclear_text(table, columns, candidates, label_is_open)


def _possible_texts(table: SourceTable, columns: Sequence[str]) -> list[str]:
    """The columns with a well-known name, of which prose comes first; else those of prose."""
    flat = [name for name in columns if not _has_objects(table, name)]  # else the text lies within
    named = _with_known_name(flat, TEXT_NAMES)
    prose = [name for name in columns if _is_prose(table.sample[name])]
    named_prose = [name for name in named if name in prose]
    if len(named) > 1 and len(named_prose) == 1:
        return named_prose
    return named or prose


def _unclear_text(
    table: SourceTable, columns: Sequence[str], candidates: Sequence[str], label_is_open: bool
) -> InputError:
    """The error if several columns may hold the text, or none does, with a command."""
    if lists := _lists_of_texts(table, columns):
        return _several_texts_a_row(table, lists)
    candidates = list(candidates) or _nested_texts(table, columns)
    if not candidates and label_is_open:
        # a column that another option names, such as --by, may still be the text
        candidates = [name for name in table.columns if _is_prose(table.sample[name])]
    candidates = candidates or list(columns)
    candidates.sort(key=_is_asking)
    text = candidates[0]
    command = option("--text", text)
    if label_is_open:
        alternatives = [name for name in columns if name not in candidates]
        alternatives = alternatives or [name for name in columns if name != text]
        command += _label_option(table, alternatives, text)
    return InputError(
        f"{table.name}: cannot tell which column holds the text: {listed(candidates)}? "
        f"Pass {command}{_several_fields(table, candidates)}{_possible_cause(table)}"
    )


def _several_fields(table: SourceTable, candidates: Sequence[str]) -> str:
    """That columns of prose may be parts of one document, as premise and hypothesis are."""
    columns = [name for name in candidates if name in table.sample]
    n_prose = sum(_is_prose(table.sample[name]) for name in columns)
    if not 1 < n_prose == len(candidates) <= MAX_FIELDS_NAMED:
        return ""
    options = " ".join(option("--text", name) for name in candidates)
    return f", or, if a document consists of several of them, {options}"


def _label_option(table: SourceTable, columns: Sequence[str], text: str) -> str:
    """The option that names the likeliest label column, behind that of the text."""
    labels = _with_known_name(columns, LABEL_NAMES)
    labels += [name for name in columns if _could_be_classes(table.sample[name])]
    labels = labels or _nested_labels(table, text)
    if labels:
        return " " + option("--label", labels[0])
    return " --label COLUMN"


def _is_asking(name: str) -> bool:
    """Whether a column is named like what another column answers."""
    return bool(re.match(r"prompt|question|instruction|summary|title", name.lower()))


def _has_objects(table: SourceTable, name: str) -> bool:
    return any(isinstance(value, dict) for value in table.sample[name])


def _nested_texts(table: SourceTable, columns: Sequence[str]) -> list[str]:
    """Dotted names of fields inside objects that are named like text, else of prose."""
    names = []
    prose = []
    for column in columns:
        first = next((value for value in table.sample[column] if value is not None), None)
        if isinstance(first, dict):
            names += [f"{column}.{key}" for key in first if key.lower() in TEXT_NAMES]
            prose.append(text_field_inside(table, column))
    return names or [path for path in prose if path is not None]


# ---- the label


def _recognised_label(table: SourceTable, columns: Sequence[str], texts: Sequence[str]) -> str:
    """The column of the label, among those that no option names."""
    if not columns:
        raise _no_label(table, texts)
    verdict = verdict_column(table)
    without_verdict = [name for name in columns if name != verdict] or list(columns)
    candidates = _possible_labels(table, without_verdict)
    if len(candidates) == 1:
        has_one_value = len({str(value) for value in table.sample[candidates[0]]}) == 1
        if verdict and has_one_value:
            return verdict
        return candidates[0]
    raise _unclear_label(table, candidates or without_verdict, texts)


def _possible_labels(table: SourceTable, columns: Sequence[str]) -> list[str]:
    """The columns with a well-known name, else those of classes, else those without prose."""
    named = _with_known_name(columns, LABEL_NAMES)
    if named:
        return named
    candidates = [name for name in columns if not _is_prose(table.sample[name])]
    if len(candidates) < 2:
        return candidates
    classes = [name for name in candidates if _could_be_classes(table.sample[name])]
    candidates = classes or candidates
    return _without_annotators(candidates) or candidates


def _without_annotators(candidates: Sequence[str]) -> list[str]:
    """The columns that say neither who annotated a row nor, beside them, which text it is about."""
    remaining = [name for name in candidates if not is_annotator_name(name)]
    if len(remaining) == len(candidates):
        return remaining
    return [name for name in remaining if not is_identifier_name(name)]


def _unclear_label(
    table: SourceTable, candidates: Sequence[str], texts: Sequence[str]
) -> InputError:
    """The error if several columns may hold the label, with a command.

    Of objects the field inside is named, and of columns of 0 and 1 all of them.
    """
    if lists := _lists_of_texts(table, candidates):
        return _several_texts_a_row(table, lists)
    candidates = sorted(candidates, key=lambda name: name.lower() in ANNOTATOR_KEYS)
    nested = [path for name in candidates for path in fields_inside(table, name)]
    if nested and not any(_could_be_classes(table.sample[name]) for name in candidates):
        inner = min(nested, key=_rank_as_label)
        outer = table.top_level_column(inner)
        candidates = [inner, *(name for name in candidates if name != outer)]
    command = " ".join(option("--text", name) for name in texts)
    binary = [name for name in candidates if _are_binary(table.sample_of(name))]
    alternative = ""
    by_annotator = _columns_of_annotators(table, candidates)
    if 1 < len(binary) <= MAX_BINARY:
        options = " ".join(option("--label", name) for name in binary)
        alternative = f", or, for an audit of each, {options}"
    elif by_annotator:
        columns = option("--annotated-by", joined_names(by_annotator))
        alternative = f", or, if each holds the labels of one annotator, {columns}"
    return InputError(
        f"{table.name}: cannot tell which column holds the label: {listed(candidates)}? "
        f"Pass {command} {option('--label', candidates[0])}{alternative}{_possible_cause(table)}"
    )


def _lists_of_texts(table: SourceTable, columns: Sequence[str]) -> str | None:
    """The first column whose cells are lists of texts, such as all answers to a prompt."""
    for name in columns:
        cells = [cell for cell in table.sample[name] if cell is not None]
        texts = [text for cell in cells if isinstance(cell, list) for text in cell]
        are_lists = bool(cells) and all(isinstance(cell, list) for cell in cells)
        if are_lists and all(isinstance(text, str) for text in texts) and _is_prose(texts):
            return name
    return None


def _several_texts_a_row(table: SourceTable, name: str) -> InputError:
    return InputError(
        f"{table.name}: {name!r} holds several texts a row. If each has the row's label, write a "
        "row for each text; if the first is the best answer, write it and another one into two "
        "columns, chosen and rejected, and pass --pairs chosen,rejected"
    )


def annotators_beside(table: SourceTable, columns: LabelledColumns) -> list[str]:
    """Columns beside that of the label that are called after annotators and hold its classes."""
    others = [name for name in table.columns if name != columns.label and _is_of_annotator(name)]
    names = _columns_of_annotators(table, others)
    if not names or columns.label not in table.columns:
        return []
    classes = set(label_names(table.sample[columns.label]))
    if set(label_names(table.sample[names[0]])) <= classes:
        return names
    return []


def _is_of_annotator(name: str) -> bool:
    person = r"annotat|(^|[\W_])(rater|coder|labell?er|worker|judge)"
    return re.search(person, name, re.IGNORECASE) is not None


def _columns_of_annotators(table: SourceTable, candidates: Sequence[str]) -> list[str]:
    """Columns that have the same classes, as those that hold the labels of one annotator each."""
    columns_of_classes: dict[frozenset[str], list[str]] = {}
    for name in candidates:
        values = table.sample_of(name)
        if _could_be_classes(values):
            classes = frozenset(label_names(values))
            columns_of_classes.setdefault(classes, []).append(name)
    largest = max(columns_of_classes.values(), key=len, default=[])
    if len(largest) > 1:
        return largest
    return []


def _are_binary(values: Sequence[object]) -> bool:
    """Whether values are 0 and 1, or true and false, as of one of several labels."""
    names = {str(name).lower() for name in label_names(values)}
    return bool(names) and (names <= {"0", "1"} or names <= {"false", "true"})


def _no_label(table: SourceTable, texts: Sequence[str]) -> InputError:
    chat = texts[0]
    hint = _possible_cause(table)
    if table.top_level_column(chat) in table.columns:
        answers = table.sample_of(f"{chat}.assistant")
        if _could_be_classes(answers):  # as in files for fine-tuning a chat model
            hint = (
                f"; pass {option('--text', f'{chat}.user')} "
                f"{option('--label', f'{chat}.assistant')}"
            )
    return InputError(f"{table.name}: there is no label column besides the text{hint}")


def _nested_labels(table: SourceTable, text: str) -> list[str]:
    """Dotted names of what could be classes within the columns, the likeliest first.

    Such as annotations.result.value.choices.
    """
    paths = [path for column in table.columns for path in _class_fields(table, column)]
    return sorted((path for path in paths if path != text), key=_rank_as_label)


def fields_inside(table: SourceTable, name: str) -> list[str]:
    """Dotted names of fields that could be classes, if a column holds objects."""
    if not any(map(_holds_objects, _parsed_sample(table, name))):
        return []
    return sorted(_class_fields(table, name), key=_rank_as_label)


def _parsed_sample(table: SourceTable, name: str) -> list[Any]:
    """The first values of a column, with objects and lists that are written as text."""
    return [
        written_object(value) or literal_list(value.strip()) or value
        if isinstance(value, str)
        else value
        for value in table.sample_of(name)
    ]


def text_field_inside(table: SourceTable, name: str) -> str | None:
    """The dotted name of the text, if a column holds objects that are no messages."""
    with suppress(InputError):
        sample = table.sample_of(name)
        first = next((value for value in sample if value is not None), None)
        first = written_object(first) or first
        if not isinstance(first, dict) or text_key([first]) is not None:
            return None
        chats = [f"{name}.{key}" for key, value in first.items() if text_key(value) is not None]
        if chats:
            return chats[0]
        paths = [path for path in _paths_to_values(first, name) if path != name]
        prose = [path for path in paths if _is_prose(table.sample_of(path))]
        return next(iter(prose), None)
    return None


def _class_fields(table: SourceTable, name: str) -> list[str]:
    """Dotted names inside a column that could be classes."""
    first = next((value for value in _parsed_sample(table, name) if value), None)
    paths = [path for path in _paths_to_values(first, name) if path != name]
    return [path for path in paths if _could_be_classes(table.sample_of(path))]


def _holds_objects(value: object) -> bool:
    """Whether a value is an object, or a list that begins with one."""
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, dict)


def _paths_to_values(value: object, path: str) -> list[str]:
    """Dotted names of all single values inside a value; of a list, inside its first entry."""
    while isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        if path.count(".") >= MAX_PATH_LENGTH:
            return []
        inner_paths = [_paths_to_values(inner, f"{path}.{key}") for key, inner in value.items()]
        return [inner_path for paths in inner_paths for inner_path in paths]
    if isinstance(value, str | int):
        return [path]
    return []


def _rank_as_label(path: str) -> int:
    """A rank for a dotted name: the lower, the more it looks like that of a label."""
    last = path.rpartition(".")[2].lower()
    if path.lower().startswith("prediction"):  # of a model
        return 4
    if re.search(r"choice|label|class|sentiment|categor", last):
        return 0
    if re.search(r"value|name", last):
        return 1
    if re.search(r"(^|_)(id|user|type)s?$", last):
        return 3
    return 2


# ---- names and values


def _with_known_name(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns with a well-known name; only the one with the first name, if it occurs."""
    matching = [column for column in columns if column.strip().lower() in names]
    first = [column for column in matching if column.strip().lower() == names[0]]
    if len(first) == 1:
        return first
    return matching


def _is_prose(values: Sequence[object]) -> bool:
    """Whether values are free text or chat, not names.

    Free text has three words with letters on average, or ten characters of a script without spaces.
    """
    texts = [text for text in map(chat_text, values) if isinstance(text, str) and text]
    if not texts:
        return False
    if len(texts) >= MIN_REPEATED_VALUES and len(set(texts)) < len(texts) / 10:
        return False
    n_words = 0
    n_unspaced = 0
    for text in texts:
        start = text[:PROSE_CHARACTERS]
        if not re.match(r"\S+$", text):
            n_words += len(re.findall(r"[^\W\d_]+", start))
        if _is_mostly_beyond_ascii(start[:200]):
            n_unspaced += len(text)
    return n_words >= MIN_MEAN_WORDS * len(texts) or n_unspaced >= MIN_MEAN_UNSPACED * len(texts)


def _is_mostly_beyond_ascii(text: str) -> bool:
    return len(text.encode("ascii", "ignore")) < len(text) / 2


def _could_be_classes(values: Sequence[Any]) -> bool:
    """Whether few different values repeat, unlike an identifier, a date or a measurement."""
    leaves = [leaf for value in values for leaf in _leaves(value) if not missing(leaf)]
    has_lists = any(isinstance(value, list) for value in values)
    if has_lists and len({isinstance(leaf, str) for leaf in leaves}) > 1:
        return False  # spans, as [0, 5, "PLACE"]
    try:
        names = [name for leaf in leaves if (name := label_name(leaf)) is not None]
    except TypeError:
        return False
    if len(names) < MIN_JUDGED_VALUES:
        return len(set(names)) > 1
    if all(map(_is_date, names)):
        return False
    return 1 < len(set(names)) <= min(MAX_CLASSES_IN_SAMPLE, len(names) / 2)


def _leaves(value: object) -> list[object]:
    """The entries of a list and of all lists in it; of anything else, the value."""
    if isinstance(value, list):
        return [leaf for entry in value for leaf in _leaves(entry)]
    return [value]


def _is_date(name: str) -> bool:
    return bool(re.fullmatch(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?", name))


def _possible_cause(table: SourceTable) -> str:
    """A clause on what else may be wrong with a file whose columns are not clear."""
    if command := pair_options(table):
        return f"; for preference data pass {command}"
    if cause := table.cause():
        return cause
    if table.first_line and any(map(_looks_like_data, table.columns)):
        return f"; the first line looks like data: if there is no header, {table.header_hint}"
    return ""
