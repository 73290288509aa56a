"""How a source is read: the options of every command, and those for labels or preferences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from tokensieve.errors import InputError
from tokensieve.escape import HIDDEN, public_address
from tokensieve.name_lists import joined_group, joined_names, split_group, split_names
from tokensieve.options import option


def names_from(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names from the command line, separated by commas, from one option or from several."""
    items = given
    if isinstance(given, str):
        items = [given]
    return tuple(name for item in items for name in split_names(item))


def _groups_from(given: str | Sequence[str]) -> dict[str, list[str]]:
    """`--group NEW=OLD,OLD` as new label → old labels."""
    groups: dict[str, list[str]] = {}
    for item in [given] if isinstance(given, str) else given:
        group = split_group(item)
        if group is None:
            raise InputError(
                f"--group {item!r} is not of the form NEW=OLD,OLD (for example negative=1,2)"
            )
        new, old = group
        groups.setdefault(new, []).extend(old)
    return groups


def _columns_from(given: str | Sequence[str]) -> str | tuple[str, ...]:
    """Column names, which may contain commas: one as text, several as a tuple."""
    if isinstance(given, str):
        return given
    names = tuple(given)
    if len(names) == 1:
        return names[0]
    return names


def _written(given: object) -> str | None:
    """A source or a column as summary.json names it; of an object in Python, its kind."""
    if given is None:
        return None
    if isinstance(given, str):
        return public_address(given, HIDDEN)
    if isinstance(given, Path):
        return str(given)
    return f"({type(given).__name__})"


def _written_names(given: str | Sequence[str] | None) -> str | list[str] | None:
    """One column by its name, several as a list, and none as None."""
    if given is None or isinstance(given, str):
        return given
    names = list(given)
    if len(names) == 1:
        return names[0]
    return names or None


_column = partial(option, metavar="COLUMN")
_columns = partial(option, metavar="COLUMN,…", parse=names_from)


class Pairs:
    """Columns of preference data, for the `pairs` of `read_corpus`.

    As `Pairs("response_a", "response_b", winner="winner")`. Without a winner or scores there are
    two columns, the preferred answer first. One column may contain all answers to a prompt as a
    list; with scores and `by` it may also contain one answer per row. Of scores the higher wins, of
    ranks the lower.
    """

    def __init__(
        self,
        *columns: str,
        winner: str | None = None,
        scores: str | Sequence[str] = (),
        ranks: str | Sequence[str] = (),
        ties: Literal["half", "drop"] = "half",
    ) -> None:
        self.fields = {
            "pairs": columns,
            "winner": winner,
            "scores": scores,
            "ranks": ranks,
            "ties": ties,
        }


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """The source.

    `docs/reads.md` lists what is recognised without any of these.
    """

    text: str | Sequence[str] | None = _column(
        None, "Column of the text; repeat it for several fields.", parse=_columns_from
    )
    role: str | None = option(
        None, "In chat messages, read only this role (assistant, user).", metavar="ROLE"
    )
    label: str | Sequence[str] | None = _column(
        None, "Column of the label, or of lists of labels (repeatable).", parse=_columns_from
    )
    annotator: str | None = option(
        None,
        "Of several annotators' labels, use this one's.",
        metavar="NAME",
        default_text="the majority's",
    )
    annotated_by: Sequence[str] | None = _columns(
        None,
        "Column that names each row's annotator, or columns with one annotator's labels each.",
        default_text="recognised",
    )
    label_separator: str | None = option(
        None, "Separates several labels of one document, such as '|'.", metavar="MARK"
    )
    group: Mapping[str, Sequence[str]] | None = option(
        None, "Merge labels (repeatable).", metavar="NEW=OLD,…", parse=_groups_from
    )
    drop: Sequence[str] = option(
        (), "Leave out these labels (repeatable).", metavar="OLD,…", parse=names_from
    )
    encoding: str | None = option(None, "Encoding of text files.", default_text="detected")
    separator: str | None = option(
        None,
        "Separator of .csv and .tsv files, such as ';'.",
        metavar="MARK",
        default_text="detected",
    )
    header: bool = option(True, "The first line of .csv and .tsv files names the columns.")
    quotes: bool = option(True, "Double quotes in .csv and .tsv files enclose fields.")
    sheet: str | None = option(
        None,
        "Sheet of a workbook; '*' for all that are alike.",
        metavar="NAME",
        default_text="the first",
    )
    limits: bool = option(
        True, "Stop at lines or cells over 100 MB and at archives that expand over 200-fold."
    )

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (len(mark.encode()) != 1 or mark in '"\r\n\0'):
            raise InputError(
                f"the separator must be one ASCII character, such as ; or |, not {mark!r}"
            )
        if self.annotated_by is not None:
            self._check_annotators()
        group: object = self.group
        if isinstance(group, str | list | tuple):
            object.__setattr__(self, "group", _groups_from(group))

    def _check_annotators(self) -> None:
        """Raise an InputError unless each annotator has one column, and these hold the labels."""
        given = self.annotated_by or ()
        if isinstance(given, str):
            names = names_from(given)
        else:
            names = tuple(map(str, given))
        object.__setattr__(self, "annotated_by", names)
        if len(set(names)) < len(names):
            raise InputError(f"--annotated-by names a column twice: {', '.join(names)}")
        if len(names) > 1 and self.label not in (None, names[0]):
            raise InputError(
                "the columns of --annotated-by hold the labels: leave out --label, or name one "
                "column with --annotated-by, which says who labelled each row"
            )

    def with_options(self, options: Mapping[str, object]) -> Self:
        """The settings with some of their fields replaced."""
        names = list(self.__dataclass_fields__)
        for name in options:
            if name not in names:
                raise InputError(f"unknown option {name!r}{_similar_option(name, names)}")
        current = {name: getattr(self, name) for name in names}
        return type(self)(**current | dict(options))

    @property
    def row_annotator(self) -> str | None:
        """The column that names each row's annotator, if it is named."""
        if self.annotated_by is None or len(self.annotated_by) != 1:
            return None
        return self.annotated_by[0]

    def label_columns(self) -> list[str]:
        """The label columns that are named; of annotators with a column each, the first."""
        if self.label is None:
            has_column_each = self.annotated_by is not None and len(self.annotated_by) > 1
            if has_column_each:
                return list(self.annotated_by or ())[:1]
            return []
        label: object = self.label
        if isinstance(label, list | tuple):
            return list(label)
        return [str(label)]

    def one_label(self) -> str | None:
        """The one label column, if any; an `InputError` where several are named."""
        names = self.label_columns()
        if len(names) > 1:
            raise InputError(
                f"name one label column, not {len(names)}: only `tokensieve audit` takes several"
            )
        if names:
            return names[0]
        return None

    def destinations(self) -> dict[str, str | None]:
        """Original label → final label, or None if its documents are left out."""
        from tokensieve.read.values import label_name  # Polars, which --help does not need

        asked: list[tuple[str | None, Sequence[str]]] = [*(self.group or {}).items()]
        asked.append((None, self.drop))
        final: dict[str, str | None] = {}
        for new, names in asked:
            if isinstance(names, str):
                action = "drop"
                if new is not None:
                    action = f"group {new!r}"
                raise InputError(f"{action}: pass a list of labels, not {names!r}")
            for name in names:
                label = label_name(name) or ""
                if final.setdefault(label, new) != new:
                    raise InputError(
                        f"the label {label!r} is grouped or dropped in two ways; name it once"
                    )
        return final


def _similar_option(name: str, names: Sequence[str]) -> str:
    similar = get_close_matches(name, names, n=1)
    if similar:
        return f"; did you mean {similar[0]!r}?"
    return f"; the options are {', '.join(sorted(names))}"


@dataclass(frozen=True, kw_only=True)
class ReadSettings(SourceSettings):
    """Labels and pairs.

    How labelled documents or preference pairs are read.

    Attributes:
        having: one of several labels that documents can have in the label column; the classes are
            then "no" and "yes".
        test: a source of test documents, read with the same columns, groups and drops; it replaces
            the source's own.
        by: column that says what a document belongs to (prompt, author, thread); these groups are
            then the independent units.
        sample_weight: a column, or one number for each row of the source. Only the model uses it;
            importance counts documents.
        columns: other columns whose values become tokens, so that they can be found as shortcuts.
            Of pairs, columns such as model_a and model_b belong to one answer each; any other value
            is marked as that of the first or the second answer.
        pairs: columns of the answers in preference data: two, the preferred one first, unless
            `winner`, `scores` or `ranks` says which answer won; or a `Pairs`, which sets them.
        stream: keep documents, tokens and counts in files. All results are bit-identical.
    """

    having: str | None = option(None, "", flag="")
    split: str | None = _column(None, "Column that says train or test for each row.")
    test: Any = option(
        None, "Test documents.", metavar="SOURCE", default_text="a random 20%, drawn with --seed"
    )
    duplicates: Literal["keep", "drop"] = option(
        "keep", "Keep or drop repeated texts with the same label."
    )
    by: str | None = _column(None, "Column that groups documents (author, prompt).")
    sample_weight: Any = option(
        None, "Column of training weights (0 or more).", flag="--weight", metavar="COLUMN"
    )
    environments: str | None = _column(
        None, "Column that says where documents come from (site, month, judge)."
    )
    columns: Sequence[str] = _columns(
        (), "Other columns to test for shortcuts: source,annotator,date."
    )
    stream: bool = option(
        False, "For data larger than memory: keep documents and counts in files under $TMPDIR."
    )
    task: Literal["classes", "scores"] = option(
        "classes",
        "Labels are classes, or scores such as stars, ratings or a toxicity from 0 to 1.",
    )
    pairs: Sequence[str] | Pairs | None = option(
        None,
        "Columns of two answers, the preferred one first.",
        metavar="CHOSEN,REJECTED",
        parse=names_from,
    )
    winner: str | None = _column(None, "With --pairs: column with the winner.")
    scores: Sequence[str] = _columns((), "With --pairs: columns of the answers' scores.")
    ranks: Sequence[str] = _columns((), "With --pairs: columns of the answers' ranks, best first.")
    ties: Literal["half", "drop"] = option(
        "half", "With --pairs: count a tie as half a win for each, or drop it."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.pairs, Pairs):
            for name, value in self.pairs.fields.items():
                object.__setattr__(self, name, value)
        for name in ("scores", "ranks", "columns", "pairs"):
            setting = getattr(self, name)
            if setting is not None:
                if isinstance(setting, str):
                    names = names_from(setting)
                else:
                    names = tuple(setting)
                object.__setattr__(self, name, names)
        if self.split is not None and self.test is not None:
            raise InputError("pass either a split column or a test source, not both")
        if self.duplicates not in ("keep", "drop"):
            raise InputError(f"duplicates must be 'keep' or 'drop', not {self.duplicates!r}")
        if self.ties not in ("half", "drop"):
            raise InputError(f"--ties must be half or drop, not {self.ties!r}")
        if self.task not in ("classes", "scores"):
            raise InputError(f"--task must be classes or scores, not {self.task!r}")
        self._check_outcome()
        if self.pairs is not None:
            self._check_answers()
            self._check_without_labels()

    def _check_outcome(self) -> None:
        """Raise an InputError unless at most one option says which answer won, and the answers are
        named."""
        names = [name for name in ("winner", "scores", "ranks") if getattr(self, name)]
        if names and self.pairs is None:
            raise InputError(
                f"--{names[0]} needs the columns of the answers: add --pairs FIRST,SECOND"
            )
        if len(names) > 1:
            raise InputError(f"pass one of --{names[0]} and --{names[1]}, not both")

    def _check_answers(self) -> None:
        """There are two columns of answers, or as many as there are columns of scores."""
        names = self.columns_of_pairs
        is_scored = self.outcome_option in ("scores", "ranks")
        may_be_list = is_scored or (self.outcome_option == "winner" and len(names) == 1)
        are_different = bool(names) and all(names) and len(set(names)) == len(names)
        if not are_different or (len(names) != 2 and not may_be_list):
            raise InputError(
                "--pairs must name two different columns, the preferred answer first, such as "
                f"chosen,rejected; got {joined_names(names)!r}"
            )
        n_scores = len(self.outcome_columns)
        if is_scored and n_scores != len(names):
            raise InputError(
                f"--{self.outcome_option} names {n_scores} columns, but --pairs names {len(names)}"
            )

    def _check_without_labels(self) -> None:
        """Options for labelled documents are not given."""
        options = {
            "label": self.label,
            "group": self.group,
            "drop": self.drop,
            "having": self.having,
            "label-separator": self.label_separator,
            "weight": self.sample_weight is not None,
            "duplicates": self.duplicates != "keep",
            "task scores": self.task == "scores",
        }
        for name in _given(options):
            raise InputError(f"--{name} is for labelled documents: leave it out with --pairs")

    def check_for_cluster(self) -> None:
        """Refuse settings that do not work on a cluster."""
        refused = {
            "pairs": self.pairs,
            "weight": self.sample_weight is not None,
            "columns": self.columns,
            "annotated-by": self.annotated_by,
            "label-separator": self.label_separator,
            "duplicates drop": self.duplicates == "drop",
            "task scores": self.task == "scores",
        }
        for name in _given(refused):
            raise InputError(
                f"--{name} does not work on a cluster yet; leave out --cluster, "
                "and use --stream if the data is larger than memory"
            )
        if not isinstance(self.label, str | None):
            raise InputError("--cluster takes one label column: name one with --label")

    def uses(self, name: str) -> bool:
        """Whether an option names this column."""
        roles = (
            self.text,
            self.label,
            self.by,
            self.environments,
            self.sample_weight,
            self.columns,
            self.pairs,
        )
        return any(
            name == role or (isinstance(role, list | tuple) and name in role) for role in roles
        )

    def read_options(self) -> dict[str, Any]:
        """The settings that decide which documents are read, as JSON values, for summary.json."""
        groups = [joined_group(new, old) for new, old in (self.group or {}).items()]
        written: dict[str, Any] = {}
        if self.task == "scores":
            written["task"] = self.task
        if self.having is not None:
            written["having"] = self.having
            written["label_separator"] = self.label_separator
        return written | {
            "test": _written(self.test),
            "split": self.split,
            "by": self.by,
            "environments": self.environments,
            "text": _written_names(self.text),
            "label": _written_names(self.label),
            "group": groups or None,
            "drop": list(self.drop) or None,
            "weight": _written(self.sample_weight),
            "pairs": joined_names(self.columns_of_pairs) or None,
        }

    @property
    def columns_of_pairs(self) -> tuple[str, ...]:
        """`pairs` as names; empty for labelled documents."""
        if isinstance(self.pairs, tuple):
            return tuple(self.pairs)
        return ()

    @property
    def outcome_option(self) -> str | None:
        """The option that says which answer won, if any: winner, scores or ranks."""
        return next((name for name in ("winner", "scores", "ranks") if getattr(self, name)), None)

    @property
    def outcome_columns(self) -> tuple[str, ...]:
        """The columns that say which answer won; empty if the order of the answers does."""
        if self.winner:
            return (self.winner,)
        return tuple(self.scores or self.ranks)


def _given(options: Mapping[str, object]) -> Iterator[str]:
    """The names of options that have a value."""
    return (name for name, value in options.items() if value)
