"""How a source is read: the options that every command shares, and those of commands that need labels or preferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from tokensieve.errors import InputError
from tokensieve.options import option


def _names_from(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names from the command line, separated by commas, from one option or from several."""
    items = [given] if isinstance(given, str) else given
    return tuple(name.strip() for item in items for name in item.split(",") if name.strip())


def _groups_from(given: str | Sequence[str]) -> dict[str, list[str]]:
    """`--group NEW=OLD,OLD` as new label → old labels."""
    groups: dict[str, list[str]] = {}
    for item in [given] if isinstance(given, str) else given:
        new, equals, old = item.partition("=")
        if not (new and equals and old):
            raise InputError(
                f"--group {item!r} is not of the form NEW=OLD,OLD (for example negative=1,2)"
            )
        groups.setdefault(new, []).extend(old.split(","))
    return groups


def _columns_from(given: str | Sequence[str]) -> str | tuple[str, ...]:
    """Column names, which may contain commas: one as text, several as a tuple."""
    names = (given,) if isinstance(given, str) else tuple(given)
    return names[0] if len(names) == 1 else names


def _written(given: object) -> str | None:
    """A source or a column as summary.json names it; of an object that only Python can pass, its kind."""
    if given is None or isinstance(given, str):
        return given
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
_columns = partial(option, metavar="COLUMN,…", parse=_names_from)


class Pairs:
    """Columns of preference data, for the `pairs` of `read_corpus`: `Pairs("response_a", "response_b", winner="winner")`.

    Without a winner or scores there are two columns, the preferred answer first. One column may contain all answers to a prompt as
    a list; with scores and `by` it may also contain one answer per row. Of scores the higher wins, of ranks the lower.
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
    label_separator: str | None = option(
        None, "Separates several labels of one document, such as '|'.", metavar="MARK"
    )
    group: Mapping[str, Sequence[str]] | None = option(
        None, "Merge labels (repeatable).", metavar="NEW=OLD,…", parse=_groups_from
    )
    drop: Sequence[str] = option(
        (), "Leave out these labels (repeatable).", metavar="OLD,…", parse=_names_from
    )
    encoding: str | None = option(None, "Encoding of text files.", default_text="detected")
    separator: str | None = option(
        None,
        "Separator of .csv and .tsv files, such as ';'.",
        metavar="MARK",
        default_text="detected",
    )
    header: bool = option(True, "The first line of .csv and .tsv files names the columns.")
    limits: bool = option(
        True, "Stop at lines or cells over 100 MB and at archives that expand over 200-fold."
    )

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (len(mark.encode()) != 1 or mark in '"\r\n\0'):
            raise InputError(
                f"the separator must be one ASCII character, such as ; or |, not {mark!r}"
            )
        given: object = self.group
        if isinstance(given, str | list | tuple):
            object.__setattr__(self, "group", _groups_from(given))

    def with_options(self, options: Mapping[str, object]) -> Self:
        """The settings with some of their fields replaced."""
        names = list(self.__dataclass_fields__)
        for name in options:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = (
                    f"; did you mean {near[0]!r}?"
                    if near
                    else f"; the options are {', '.join(sorted(names))}"
                )
                raise InputError(f"unknown option {name!r}{hint}")
        return type(self)(**{name: getattr(self, name) for name in names} | dict(options))

    def one_label(self) -> str | None:
        """The one label column, if any; an `InputError` where several are named."""
        given: object = self.label
        names = (
            list(given)
            if isinstance(given, list | tuple)
            else []
            if given is None
            else [str(given)]
        )
        if len(names) > 1:
            raise InputError(
                f"name one label column, not {len(names)}: only `tokensieve audit` takes several"
            )
        return names[0] if names else None

    def destinations(self) -> dict[str, str | None]:
        """Original label → final label, or None if its documents are left out."""
        from tokensieve.read.values import label_name  # Polars, which --help does not need

        asked = [*(self.group or {}).items(), (None, self.drop)]
        for new, names in asked:
            if isinstance(names, str):
                raise InputError(
                    f"{'drop' if new is None else f'group {new!r}'}: pass a list of labels, not {names!r}"
                )
        result: dict[str, str | None] = {}
        for name, new in [(label_name(name) or "", new) for new, names in asked for name in names]:
            if result.setdefault(name, new) != new:
                raise InputError(
                    f"the label {name!r} is grouped or dropped in two ways; name it once"
                )
        return result


@dataclass(frozen=True, kw_only=True)
class ReadSettings(SourceSettings):
    """Labels and pairs.

    How labelled documents or preference pairs are read.

    Attributes:
        having: one of several labels that documents can have in the label column; the classes are then "no" and "yes".
        test: a source of test documents, read with the same columns, groups and drops; it replaces the source's own.
        by: column that says what a document belongs to (prompt, author, thread); these groups are then the independent units.
        sample_weight: a column, or one number for each row of the source. Only the model uses it; importance counts documents.
        columns: other columns whose values become tokens, so that they can be found as shortcuts. Of pairs, columns such as model_a
            and model_b belong to one answer each; any other value is marked as that of the first or the second answer.
        pairs: columns of the answers in preference data: two, the preferred one first, unless `winner`, `scores` or `ranks` says
            which answer won; or a `Pairs`, which sets all of these.
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
    pairs: Sequence[str] | Pairs | None = option(
        None,
        "Columns of two answers, the preferred one first.",
        metavar="CHOSEN,REJECTED",
        parse=_names_from,
    )
    winner: str | None = _column(None, "With --pairs: column with the winner.")
    scores: Sequence[str] = _columns((), "With --pairs: columns of the answers' scores.")
    ranks: Sequence[str] = _columns((), "With --pairs: columns of the answers' ranks, best first.")
    ties: Literal["half", "drop"] = option(
        "half", "With --pairs: count a tie as half a win for each, or drop it."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (self.pairs.fields if isinstance(self.pairs, Pairs) else {}).items():
            object.__setattr__(self, name, value)
        for name in ("scores", "ranks", "columns", "pairs"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(
                    self, name, _names_from(given) if isinstance(given, str) else tuple(given)
                )
        if self.split is not None and self.test is not None:
            raise InputError("pass either a split column or a test source, not both")
        if self.duplicates not in ("keep", "drop"):
            raise InputError(f"duplicates must be 'keep' or 'drop', not {self.duplicates!r}")
        if self.ties not in ("half", "drop"):
            raise InputError(f"--ties must be half or drop, not {self.ties!r}")
        judged = [name for name in ("winner", "scores", "ranks") if getattr(self, name)]
        if self.pairs is None:
            if judged:
                raise InputError(
                    f"--{judged[0]} needs the columns of the answers: add --pairs FIRST,SECOND"
                )
            return
        if len(judged) > 1:
            raise InputError(f"pass one of --{judged[0]} and --{judged[1]}, not both")
        names = self.columns_of_pairs
        several = judged and judged != ["winner"]
        if (
            not names
            or not all(names)
            or len(set(names)) < len(names)
            or (len(names) != 2 and not several)
        ):
            raise InputError(
                "--pairs must name two different columns, the preferred answer first, such as chosen,rejected; got "
                f"{','.join(map(str, names))!r}"
            )
        if several and len(getattr(self, judged[0])) != len(names):
            raise InputError(
                f"--{judged[0]} names {len(getattr(self, judged[0]))} columns, but --pairs names {len(names)}"
            )
        given = {
            name: getattr(self, name)
            for name in ("label", "group", "drop", "having", "label_separator")
        }
        given |= {"weight": self.sample_weight is not None, "duplicates": self.duplicates != "keep"}
        for name in (name for name, value in given.items() if value):
            raise InputError(
                f"--{name.replace('_', '-')} is for labelled documents: leave it out with --pairs"
            )

    def check_for_cluster(self) -> None:
        """Refuse settings that do not work on a cluster."""
        refused = {
            "pairs": self.pairs,
            "weight": self.sample_weight is not None,
            "columns": self.columns,
        }
        refused |= {
            "label-separator": self.label_separator,
            "duplicates drop": self.duplicates == "drop",
        }
        for name in (name for name, given in refused.items() if given):
            instead = "leave out --cluster, and use --stream if the data is larger than memory"
            raise InputError(f"--{name} does not work on a cluster yet; {instead}")
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
        groups = [f"{new}={','.join(old)}" for new, old in (self.group or {}).items()]
        return {
            "test": _written(self.test),
            "split": self.split,
            "by": self.by,
            "environments": self.environments,
            "text": _written_names(self.text),
            "label": _written_names(self.label),
            "group": groups or None,
            "drop": list(self.drop) or None,
            "weight": _written(self.sample_weight),
            "pairs": ",".join(self.columns_of_pairs) or None,
        }

    @property
    def columns_of_pairs(self) -> tuple[str, ...]:
        """`pairs` as names; empty for labelled documents."""
        return tuple(self.pairs) if isinstance(self.pairs, tuple) else ()
