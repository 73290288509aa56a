"""Commands made from settings: every option is a field of a settings class or a parameter of the command's function.

A command is a file of this folder with a function of the same name after an underscore. The file's docstring is the command's help.
`--help` of the whole program reads those docstrings without importing the files, so that it needs none of their libraries.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.escape import line
from tokensieve.options import option
from tokensieve.progress import Progress, silent
from tokensieve.read.settings import ReadSettings

SOURCE = "A file, a folder, a glob, a URL, - for standard input, or `imdb` or `yelp`."
SOURCES = "Files, a folder, a glob, a URL, - for standard input, or `imdb` or `yelp`."
IGNORED = "label label_separator group drop"  # options of reading that commands without labels do not have
LARGE = 2_000_000_000  # bytes of a file, from which on streaming is suggested
QUIET: Any = option(False, "Show neither progress nor results.", flag="--quiet,-q")
_SECTIONS = {
    "Commands": "audit compare mask balance rank train predict explain diagnose demo".split(),
    "Research": "verify reproduce".split(),
}
_SURPLUS = {  # command → where an argument too many goes
    "explain": "put the text in quotes",
    "compare": "it takes two audits",
    "predict": "it takes one source",
    "balance": "name the folder or file to write with --out",
    "mask": "it takes one source; name the folder or file to write with --out",
    "verify": "it takes one source",
    "diagnose": "pass test documents with --test SOURCE",
}
_MANY = re.compile(r"\b(tuple|list|Sequence|Mapping|dict)\[")
_registered: dict[str, click.Command] = {}


class _PathType(click.Path):
    """A path that is not empty: "" would be the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty; name a file or folder", param, ctx)
        if "://" in str(value):
            self.fail("it is an address; name a file or folder of this machine", param, ctx)
        return super().convert(value, param, ctx)


class _Option(click.Option):
    """An option made with `tokensieve.options.option`; `None` where the user did not give it."""

    def __init__(
        self, name: str, annotation: str, default: object, notes: Mapping[str, Any], section: str
    ) -> None:
        flags = (notes["flag"] or "--" + name.replace("_", "-")).split(",")
        self.section, self.parse, self.two_sided = section, notes["parse"], default is not False
        shown = notes["default_text"]
        if (
            shown is None
            and default is not False
            and default not in (None, (), "")
            and default == default
        ):
            shown = (
                flags[0]
                if default is True
                else f"{default:,g}"
                if isinstance(default, float)
                else str(default)
            )
        facts = [f"default: {shown}"] if shown else []
        if notes["high"] is not None and notes["high"] < 1e9:
            facts.append(f"at most {notes['high']:,g}")
        self.note = f" [{'; '.join(facts)}]" if facts else ""
        declared: dict[str, Any] = {"multiple": bool(_MANY.search(annotation))}
        choice, plain = re.search(r"\bLiteral(\[.*?\])", annotation), annotation.split(" | ")[0]
        if plain == "bool":
            declared = {"is_flag": True}
            if len(flags) == 1:
                flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
        elif choice:
            declared["type"] = click.Choice(ast.literal_eval(choice[1]))
        elif plain in ("int", "float"):
            # no count or seed is larger than a machine's integer: 10^400 would overflow far from here
            most = 2**63 - 1 if plain == "int" and notes["high"] is None else notes["high"]
            declared["type"] = (click.IntRange if plain == "int" else click.FloatRange)(
                notes["low"], most
            )
            declared["type"].name = "integer" if plain == "int" else "number"
            declared["metavar"] = "N" if plain == "int" else "X"
        elif plain == "Path":
            declared |= {"type": _PathType(), "metavar": "FILE"}
        declared |= {"metavar": notes["metavar"]} if notes["metavar"] else {}
        super().__init__([name, *flags], default=None, help=notes["help"], **declared)

    def type_cast_value(self, ctx: click.Context, value: object) -> object:
        cast = super().type_cast_value(ctx, value)
        return cast if self.parse is None or cast is None or cast == () else self.parse(cast)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        names = ", ".join(sorted(self.opts, key=len))
        names += "".join(f" / {name}" for name in self.secondary_opts if self.two_sided)
        return names + (
            "" if self.is_flag else f" {self.make_metavar(ctx)}"
        ), f"{self.help}{self.note}"


class _Argument(click.Argument):
    explained = ""


class _Command(click.Command):
    """A command whose help lists arguments, and options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in sorted(
            self.get_params(ctx), key=lambda one: not isinstance(one, _Argument)
        ):
            if isinstance(parameter, _Argument):
                sections.setdefault("Arguments", []).append(
                    (parameter.make_metavar(ctx), parameter.explained)
                )
            elif record := parameter.get_help_record(ctx):
                sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class _Commands(click.Group):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in _SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in self.list_commands(ctx):
            import_module(f"tokensieve.cli.{name}")
        return _registered.get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = get_close_matches(args[0], self.list_commands(ctx), n=1)
        if near and near[0] != args[0]:
            raise InputError(
                f"there is no command {args[0]!r}; did you mean `tokensieve {near[0]}`?"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in _SECTIONS.items():
            sources = {
                name: Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
                for name in names
            }
            said = {
                name: ast.get_docstring(ast.parse(source)) or "" for name, source in sources.items()
            }
            with formatter.section(title):
                formatter.write_dl([(name, text.partition("\n")[0]) for name, text in said.items()])


app = click.version_option(__version__, message="%(prog)s %(version)s")(
    _Commands(
        "tokensieve",
        help="Find the tokens that predict a label, and see which of them a model relies on.",
        epilog="`tokensieve COMMAND --help` explains a command. Start with `tokensieve demo`.",
        context_settings={"max_content_width": 120},  # longer lines are hard to read
    )
)


def command(
    without: str = "", **arguments: str
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a function a command; it returns the exit status, or None for 0.

    Args:
        without: fields of settings classes that are no options of this command.
        arguments: name → explanation of each positional argument. Of the function's other parameters, one whose type is a
            settings class stands for an option per field, and any other has a default made with `option`; the latter
            replaces a field's option of the same name.
    """

    def decorate(function: Callable[..., int | None]) -> click.Command:
        parameters: list[click.Parameter] = []
        groups: dict[str, tuple[Any, list[str]]] = {}
        defaults: dict[str, object] = {}
        own = inspect.signature(function).parameters
        for name, parameter in own.items():
            annotation, default = str(parameter.annotation), parameter.default
            kind: Any = function.__globals__.get(annotation)
            if name in arguments:
                required, many = default is inspect.Parameter.empty, bool(_MANY.search(annotation))
                path = _PathType() if "Path" in annotation else None
                one = _Argument([name], required=required, nargs=-1 if many else 1, type=path)
                one.explained = arguments[name]
                parameters.append(one)
                defaults[name] = None if required else default
            elif is_dataclass(kind):
                made = [
                    field for field in _fields(kind) if field.name not in {*own, *without.split()}
                ]
                groups[name] = (kind, [str(field.name) for field in made])
                parameters += made
            else:
                defaults[name] = default.default
                parameters.append(
                    _Option(name, annotation, default.default, default.metadata["option"], "Output")
                )

        def call(**given: Any) -> int | None:
            given = {
                name: value for name, value in given.items() if value is not None and value != ()
            }
            for group, (kind, names) in groups.items():
                given[group] = kind(**{name: given.pop(name) for name in names if name in given})
            return function(**(defaults | given))

        name, about = (
            function.__name__.removeprefix("_"),
            inspect.getdoc(inspect.getmodule(function)),
        )
        _registered[name] = _Command(name, callback=call, params=parameters, help=about)
        return _registered[name]

    return decorate


def _fields(kind: Any) -> Iterator[_Option]:
    """Options of a settings class, those of its bases first, each under the first line of the docstring of its class."""
    for field in fields(kind):
        notes = field.metadata.get("option")
        if notes is not None and notes["flag"] != "":
            home = next(
                owner
                for owner in reversed(kind.__mro__)
                if field.name in inspect.get_annotations(owner)
            )
            title = (inspect.getdoc(home) or "Options").partition("\n")[0].rstrip(".")
            yield _Option(field.name, str(field.type), field.default, notes, title)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit status; not by Click's `main`, which prints an empty line when interrupted."""
    try:
        with app.make_context("tokensieve", arguments) as context:
            return app.invoke(context) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        message, context_of = error.format_message().rstrip("."), getattr(error, "ctx", None)
        if (
            isinstance(error, click.NoSuchOption) and error.possibilities
        ):  # Click sorts them by name
            message = (
                f"{error.message.rstrip('.')} (did you mean {' or '.join(error.possibilities)}?)"
            )
        name = context_of.info_name if context_of is not None else ""
        if "extra argument" in message and name in _SURPLUS:
            raise InputError(f"{message}: {_SURPLUS[name]}") from None
        raise InputError(
            f"{message}; see {getattr(context_of, 'command_path', 'tokensieve')} --help"
        ) from None


def out_option(default: str) -> Any:
    """The folder for the results."""
    return option(Path(default), "Folder for the results.", metavar="FOLDER")


@contextmanager
def progress_bar(quiet: bool, lines: bool = False) -> Iterator[Progress]:
    """A bar on standard error that disappears at the end. Without a terminal there is none; commands that may take an hour then
    write a line every 30 seconds (`lines`). An estimate of the total time is a line of its own. Nothing if quiet."""

    def is_estimate(stage: str, share: float) -> bool:
        return share == 0.0 and stage.endswith("on one core")

    if quiet or not sys.stderr.isatty():
        start = last = time.monotonic()

        def line(stage: str, share: float) -> None:
            nonlocal last
            now = time.monotonic()
            if is_estimate(stage, share):
                print(stage, file=sys.stderr)
            elif now - last >= 30:
                last = now
                left = (
                    f", about {(now - start) * (1 - share) / share / 60:.0f} min left"
                    if share > 0.02
                    else ""
                )
                print(f"{stage}: {share:.0%} done after {now - start:.0f} s{left}", file=sys.stderr)

        yield line if lines and not quiet else silent
        return
    from rich import progress as bars
    from rich.console import Console

    columns = [
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TimeElapsedColumn(),
    ]
    columns += [bars.TextColumn("left"), bars.TimeRemainingColumn()] if lines else []
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(stage: str, share: float) -> None:
            if is_estimate(stage, share):
                bar.console.print(stage)
            # of a task that is done the clock would stand still, and the next stage would not start it again
            bar.update(
                task, description=stage, total=1.0 if share else None, completed=min(share, 0.999)
            )

        yield show


def say(quiet: bool, message: str) -> None:
    """One line on standard error."""
    if not quiet:
        print(line(message), file=sys.stderr)


def pair_columns(given: str | None, model: Path | None) -> tuple[str, str] | None:
    """The two columns of `--pairs A,B`, or else those of the pairs that the model in a folder was trained on, if it was."""
    from tokensieve.files import parsed, read_regular

    if given is not None:
        names = [name.strip() for name in given.split(",")]
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise InputError(
                f"--pairs {given!r} must name two columns, such as --pairs chosen,rejected"
            )
        return names[0], names[1]
    if model is None:
        return None
    try:
        first, second = map(str, parsed(read_regular(model / "summary.json"))["pairs"]["columns"])
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            "this is a preference model; name two columns with --pairs FIRST,SECOND"
        ) from None
    return first, second


def checked_source(given: list[str], settings: ReadSettings, quiet: bool) -> str | list[str]:
    """What is to be read: one source, or several files; of a large file it says that it need not be read into memory."""
    if len(given) > 1:
        return list(given)
    path, size = Path(given[0]), 0
    with suppress(OSError, ValueError):  # reading will say what is wrong with the path
        size = path.stat().st_size if path.is_file() else 0
    if not settings.stream and size > LARGE:
        say(
            quiet,
            f"{path.name} is {size / 1e9:.1f} GB; --stream keeps it out of memory, with the same result",
        )
    return given[0]
