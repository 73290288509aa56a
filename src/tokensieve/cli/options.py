"""What the commands share: the application, its options, and the progress bar.

Options that belong together are a frozen dataclass. `command` turns a function that takes such dataclasses into a command that
has one option for each of their fields, so every option is written down once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.escape import line as printable_line

LARGE = 2_000_000_000
MOST_SEED = 2**32 - 1  # what every library takes

app = typer.Typer(
    name="tokensieve",
    help="Which tokens decide the label, which of them does the model look at, and do the two agree?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
F = TypeVar("F", bound=Callable[..., Any])


def command(function: F) -> F:
    """Make the function a command; each parameter whose type is a dataclass of options stands for those options."""
    groups: dict[str, Any] = {}
    flat: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind):
            groups[parameter.name] = kind
            types = get_type_hints(kind, include_extras=True)
            for field in fields(kind):
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                flat.append(_keyword(field.name, types[field.name], default))
        else:
            flat.append(_keyword(parameter.name, kind, parameter.default))

    def call(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return function(**given)

    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    call.__doc__ = function.__doc__
    app.command(function.__name__)(call)
    return function


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


SourceArgument = Annotated[
    str, typer.Argument(help="File (.csv .tsv .jsonl .parquet, also .gz), folder, `imdb` or `yelp`.")
]
TextOption = Annotated[
    list[str] | None, typer.Option("--text", help="Column that holds the text (repeatable: fields).", metavar="COLUMN")
]
LabelsOption = Annotated[
    list[str] | None,
    typer.Option("--label", help="Column of the label, or of lists of labels (repeatable).", metavar="COLUMN"),
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of text files.")]
NgramsOption = Annotated[int, typer.Option("--ngrams", help="Longest run of words that is one token.", min=1, max=5)]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of every random draw.", min=0, max=MOST_SEED)]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no result on the terminal.")]


def out_option(default: str) -> Any:
    return typer.Option("--out", help="Folder for the results.", metavar="FOLDER", show_default=default)


@dataclass(frozen=True, kw_only=True)
class Files:
    """How text files are read."""

    encoding: EncodingOption = "utf-8"
    separator: Annotated[
        str | None, typer.Option("--separator", help="Of the fields of .csv and .tsv, such as ';'.", metavar="MARK")
    ] = None
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="The first line of .csv and .tsv names the columns.")
    ] = True

    def form(self) -> dict[str, Any]:
        """The same as fields of `tokensieve.text.settings.SourceSettings`."""
        return {"encoding": self.encoding, "separator": self.separator, "header": self.header}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What to read from the rows of a source."""

    text: TextOption = None
    label: Annotated[str | None, typer.Option("--label", help="Column that holds the label.", metavar="COLUMN")] = None
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="Labels to merge: NEW=OLD,OLD (repeatable).", metavar="NEW=OLD,…"),
    ] = None
    drop: Annotated[list[str] | None, typer.Option("--drop", help="Labels to leave out: OLD,OLD.", metavar="OLD,…")] = (
        None
    )

    def groups(self) -> dict[str, list[str]]:
        """--group, new label → old ones.

        Raises:
            InputError: it is not of the form NEW=OLD,OLD.
        """
        groups: dict[str, list[str]] = {}
        for item in self.group or []:
            new, equals, old = item.partition("=")
            if not (new and equals and old):
                raise InputError(f"--group {item!r} is not of the form NEW=OLD,OLD (for example negative=1,2)")
            groups.setdefault(new, []).extend(old.split(","))
        return groups

    def dropped(self) -> list[str]:
        """--drop as a list of labels."""
        return [name for item in self.drop or [] for name in item.split(",")]


@dataclass(frozen=True, kw_only=True)
class Documents(Columns, Files):
    """A source, its parts and how it is read."""

    source: SourceArgument
    test: Annotated[
        str | None, typer.Option("--test", help="Test documents (else a seeded share).", metavar="SOURCE")
    ] = None
    split: Annotated[
        str | None, typer.Option("--split", help="Column that holds train or test for each row.", metavar="COLUMN")
    ] = None

    def reader(self, **more: Any) -> Callable[[], Any]:
        """Check the options now, read later; `more` goes to `read_corpus` as it is."""
        groups, dropped = self.groups(), self.dropped()

        def read() -> Any:
            from tokensieve.text.corpus import read_corpus

            return read_corpus(
                self.source, text=self.text, label=self.label, group=groups, drop=dropped, split=self.split,
                test=self.test, **self.form(), **more,
            )  # fmt: skip

        return read


@dataclass(frozen=True, kw_only=True)
class Intake(Documents):
    """The documents that a classifier is trained on."""

    duplicates: Annotated[
        str, typer.Option("--duplicates", help="Repeated text with the same label: keep or drop.")
    ] = "keep"
    by: Annotated[
        str | None,
        typer.Option("--by", help="Column of the unit a document belongs to (author, source).", metavar="COLUMN"),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option("--weight", help="Column of what a document weighs in training (≥ 0).", metavar="COLUMN"),
    ] = None
    stream: Annotated[
        bool, typer.Option("--stream", help="Larger than memory: keep documents and counts in files under $TMPDIR.")
    ] = False

    pairs: Annotated[
        str | None,
        typer.Option("--pairs", help="Columns of two answers, the preferred one first.", metavar="CHOSEN,REJECTED"),
    ] = None

    def reader(self, **more: Any) -> Callable[[], Any]:
        """As for `Documents`, duplicates and streaming included."""
        if self.pairs is not None:
            from tokensieve.cli.pairs import pair_reader

            return pair_reader(self)
        weights = {} if self.weight is None else {"sample_weight": self.weight}
        return super().reader(duplicates=self.duplicates, stream=self.stream, by=self.by, **weights, **more)

    def advise(self, quiet: bool) -> None:
        """Say that a large file need not be read into memory."""
        path, size = Path(self.source), 0
        with suppress(OSError, ValueError):  # reading will say what is wrong with the path
            size = path.stat().st_size if path.is_file() else 0
        if not self.stream and size > LARGE:
            say(quiet, f"{path.name} has {size / 1e9:.1f} GB: --stream keeps it out of memory, with the same result")

    def as_given(self) -> dict[str, Any]:
        """The options that decide which documents are read, for summary.json."""
        names = ("text", "label", "group", "drop", "test", "split", "by", "weight", "pairs")
        given = {name: getattr(self, name) for name in names}
        return given | {"text": self.text[0] if self.text and len(self.text) == 1 else self.text}


@dataclass(frozen=True, kw_only=True)
class Audited(Intake):
    """The documents that are audited."""

    label: LabelsOption = None  # type: ignore[assignment]  # several: an audit of each; of each alone it is a str again
    label_separator: Annotated[
        str | None,
        typer.Option("--label-separator", help="Between several labels of one document, such as '|'.", metavar="MARK"),
    ] = None
    environments: Annotated[
        str | None,
        typer.Option("--environments", help="Column of where documents come from (site, month).", metavar="COLUMN"),
    ] = None

    def reader(self, **more: Any) -> Callable[[], Any]:
        """As for `Intake`, environments included."""
        if self.pairs is not None and self.environments is not None:
            raise InputError("--environments is for labelled documents, not for --pairs: leave one of the two out")
        return super().reader(environments=self.environments, **more)

    def as_given(self) -> dict[str, Any]:
        """As for `Intake`, environments included."""
        return super().as_given() | {"environments": self.environments}


@dataclass(frozen=True, kw_only=True)
class Splitting:
    """How a text becomes tokens."""

    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", help="Hugging Face tokenizer.json to use instead of words.", metavar="FILE"),
    ] = None
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Do not fold upper and lower case.")] = False
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", help="What a token is, as a regular expression (Rust's).", metavar="REGEX"),
    ] = None
    stop_words: Annotated[
        Path | None, typer.Option("--stop-words", help="Words to leave out, one a line.", metavar="FILE")
    ] = None
    html: Annotated[str, typer.Option("--html", help="Tags and entities in the texts: keep or strip.")] = "keep"

    def splitter(self) -> Any:
        """The tokenizer meant.

        Raises:
            InputError: the options contradict each other, the pattern does not compile, or a file cannot be read.
        """
        from tokensieve.text.tokenizers import WORD, PieceTokenizer, WordTokenizer, read_stop_words

        if self.html not in ("keep", "strip"):
            raise InputError(f"--html is keep or strip, not {self.html!r}")
        if self.tokenizer:
            for name in ("keep_case", "pattern", "stop_words"):
                if getattr(self, name):
                    option = "--" + name.replace("_", "-")
                    raise InputError(
                        f"{option} is for words; a tokenizer file splits by itself: leave one of the two out"
                    )
            if self.html == "strip":
                raise InputError("--html is for words; a tokenizer file splits by itself: leave one of the two out")
            return PieceTokenizer(self.tokenizer)
        left_out = () if self.stop_words is None else read_stop_words(self.stop_words, not self.keep_case)
        return WordTokenizer(
            lowercase=not self.keep_case,
            pattern=self.pattern or WORD,
            html=self.html == "strip",
            stop_words=left_out,
        )

    def as_given(self) -> dict[str, Any]:
        """The options that decide what a token is, for summary.json."""
        stop_words = None if self.stop_words is None else str(self.stop_words)
        given = {"tokenizer": self.tokenizer or "words", "keep_case": self.keep_case}
        return given | {"pattern": self.pattern, "stop_words": stop_words, "html": self.html}


FORMATTING = "What a text looks like (length, spaces, marks) is a token, too."


@dataclass(frozen=True, kw_only=True)
class Tokens(Splitting):
    """Which tokens a classifier knows, and how fast it learns their values."""

    ngrams: NgramsOption = 1
    min_documents: Annotated[
        int, typer.Option("--min-documents", help="A token must occur in at least this many documents.", min=1)
    ] = 3
    value_rate: Annotated[
        float, typer.Option("--value-rate", help="Initial step size of the token values.", min=1e-6, max=100)
    ] = 0.1


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False) -> None:
    if version:
        print(f"tokensieve {__version__}")
        raise typer.Exit


ONE_MORE = {  # command → where a second argument goes
    "audit": "test documents go with --test SOURCE",
    "train": "test documents go with --test SOURCE",
    "diagnose": "test documents go with --test SOURCE",
    "explain": "put the text in quotes",
    "predict": "one source at a time",
    "compare": "two audits at a time",
    "mask": "one source at a time; --out names the folder or file to write",
    "verify": "one source at a time",
}


def advice(error: Any) -> str:
    """What to do about arguments that Typer refused."""
    name = getattr(getattr(error, "ctx", None), "info_name", None)
    if "extra argument" in error.format_message() and name in ONE_MORE:
        return f": {ONE_MORE[name]}"
    return f"; see tokensieve {name} --help" if name in ONE_MORE else "; see tokensieve --help"


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error that vanishes when it is done, or when that is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda stage, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(stage: str, share: float) -> None:
            bar.update(task, description=stage, total=1.0 if share else None, completed=share)

        yield tell


def say(quiet: bool, line: str) -> None:
    if not quiet:
        print(printable_line(line), file=sys.stderr)
