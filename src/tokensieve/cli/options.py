"""What the commands share: the application, its options, the reader of a source, and the progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve import __version__
from tokensieve.errors import InputError

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

SourceArgument = Annotated[
    str, typer.Argument(help="File (.csv .tsv .jsonl .parquet, also .gz), folder, `imdb` or `yelp`.")
]
TextOption = Annotated[str | None, typer.Option("--text", help="Column that holds the text.", metavar="COLUMN")]
LabelOption = Annotated[str | None, typer.Option("--label", help="Column that holds the label.", metavar="COLUMN")]
GroupOption = Annotated[
    list[str] | None, typer.Option("--group", help="Labels to merge: NEW=OLD,OLD (repeatable).", metavar="NEW=OLD,…")
]
DropOption = Annotated[list[str] | None, typer.Option("--drop", help="Labels to leave out: OLD,OLD.", metavar="OLD,…")]
TestOption = Annotated[
    str | None, typer.Option("--test", help="Test documents (else a seeded share).", metavar="SOURCE")
]
SplitOption = Annotated[
    str | None, typer.Option("--split", help="Column that says train or test for each row.", metavar="COLUMN")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of text files.")]
DuplicatesOption = Annotated[str, typer.Option("--duplicates", help="Repeated text with the same label: keep or drop.")]
NgramsOption = Annotated[int, typer.Option("--ngrams", help="Longest run of words that is one token.", min=1, max=5)]
MinimumOption = Annotated[int, typer.Option("--min-documents", help="A token must stand in so many documents.", min=1)]
RateOption = Annotated[float, typer.Option("--value-rate", help="Initial step size for the token values.", min=1e-6)]
TokenizerOption = Annotated[
    str | None, typer.Option("--tokenizer", help="Hugging Face tokenizer.json to use instead of words.", metavar="FILE")
]
CaseOption = Annotated[bool, typer.Option("--keep-case", help="Do not fold upper and lower case.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the split and the training.", min=0, max=MOST_SEED)]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="Larger than memory: keep documents and counts in files under $TMPDIR.")
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", help="Learn on the Dask cluster there (tcp://HOST:PORT).", metavar="ADDRESS")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no result on the terminal.")]
BaselineOption = Annotated[
    bool, typer.Option("--baseline/--no-baseline", help="Train TF-IDF + logistic regression for comparison.")
]

PicturesOption = Annotated[
    bool, typer.Option("--pictures/--no-pictures", help="Write every picture as SVG and PNG too.")
]


def out_option(default: str) -> Any:
    return typer.Option("--out", help="Folder for the results.", metavar="FOLDER", show_default=default)


def whole_option(name: str, explained: str, default: str, most: int | None = None) -> Any:
    """A whole number from one; None where it was not given, so that an option that does not apply is told from a default."""
    return typer.Option(name, help=explained, min=1, max=most, show_default=default)


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Show the version.", is_eager=True)] = False) -> None:
    if version:
        print(f"tokensieve {__version__}")
        raise typer.Exit


def reader(
    source: str, text: str | None, label: str | None, group: list[str] | None, drop: list[str] | None,
    test: str | None, split: str | None, encoding: str, duplicates: str, stream: bool = False,
) -> Callable[[], Any]:  # fmt: skip
    """Check the options now, read later."""
    groups: dict[str, list[str]] = {}
    for item in group or []:
        new, equals, old = item.partition("=")
        if not (new and equals and old):
            raise InputError(f"--group {item!r} is not of the form NEW=OLD,OLD (for example negative=1,2)")
        groups.setdefault(new, []).extend(old.split(","))
    dropped = [name for item in drop or [] for name in item.split(",")]

    def read() -> Any:
        from tokensieve.text.corpus import read_corpus

        return read_corpus(
            source, text=text, label=label, group=groups, drop=dropped, split=split, test=test, encoding=encoding,
            duplicates=duplicates, stream=stream,  # type: ignore[arg-type]
        )  # fmt: skip

    return read


def advise(source: str, stream: bool, quiet: bool) -> None:
    """Say that a large file need not be read into memory."""
    path = Path(source)
    if not stream and path.is_file() and path.stat().st_size > LARGE:
        say(
            quiet,
            f"{path.name} has {path.stat().st_size / 1e9:.1f} GB: --stream keeps it out of memory, with the same result",
        )


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
        print(line, file=sys.stderr)
