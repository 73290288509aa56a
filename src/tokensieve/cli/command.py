"""Commands made from settings: every option is a field of a settings class or a parameter of the
command's function.

A command is a file of this folder with a function of the same name after an underscore. The file's
docstring is the command's help. `--help` of the whole program reads those docstrings without
importing the files, so that it needs none of their libraries.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.escape import line
from tokensieve.name_lists import joined_names, split_names
from tokensieve.options import option
from tokensieve.progress import Progress, silent
from tokensieve.read.settings import ReadSettings

if TYPE_CHECKING:
    from tokensieve.text.tokenizers import Tokenizer

SOURCE = "A file, a folder, a glob, a URL, - for standard input, or `imdb` or `yelp`."
SOURCES = "Files, a folder, a glob, a URL, - for standard input, or `imdb` or `yelp`."
# options of reading that commands without labels do not have
IGNORED = "label label_separator annotator annotated_by group drop"
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
MAX_INTEGER = 2**63 - 1  # of counts and seeds: 10^400 would overflow far from here
MAX_SHOWN_LIMIT = 1e9  # a larger one limits nobody
PROGRESS_INTERVAL = 30  # seconds between two lines, where there is no terminal
MIN_PROGRESS = 0.02  # before it, the time left cannot be estimated
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
        self.section = section
        self.parse = notes["parse"]
        self.two_sided = default is not False
        self.note = _note(notes, _default_text(default, flags[0], notes))
        declared = _declared_type(annotation, notes)
        if "is_flag" in declared and len(flags) == 1:
            flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
        if notes["metavar"]:
            declared["metavar"] = notes["metavar"]
        super().__init__([name, *flags], default=None, help=notes["help"], **declared)

    def type_cast_value(self, ctx: click.Context, value: object) -> object:
        cast = super().type_cast_value(ctx, value)
        if cast is None or cast == ():  # Click's value of a repeatable option that is not given
            return None
        return cast if self.parse is None else self.parse(cast)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        names = ", ".join(sorted(self.opts, key=len))
        if self.two_sided:
            names += "".join(f" / {name}" for name in self.secondary_opts)
        if not self.is_flag:
            names += f" {self.make_metavar(ctx)}"
        return names, f"{self.help}{self.note}"


def _default_text(default: object, flag: str, notes: Mapping[str, Any]) -> str | None:
    """The default as `--help` shows it; None or "" if it is not worth showing."""
    is_nan = default != default
    if notes["default_text"] is not None:
        return str(notes["default_text"])
    if default is False or is_nan or default in (None, (), ""):
        return None
    if default is True:
        return flag
    return f"{default:,g}" if isinstance(default, float) else str(default)


def _note(notes: Mapping[str, Any], default_text: str | None) -> str:
    """The end of an option's help text: its default and its limit, if there are any."""
    facts = [f"default: {default_text}"] if default_text else []
    if notes["high"] is not None and notes["high"] < MAX_SHOWN_LIMIT:
        facts.append(f"at most {notes['high']:,g}")
    return f" [{'; '.join(facts)}]" if facts else ""


def _declared_type(annotation: str, notes: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `click.Option` that follow from the annotation of a field."""
    plain = annotation.split(" | ")[0]
    if plain == "bool":
        return {"is_flag": True}
    declared: dict[str, Any] = {"multiple": bool(_MANY.search(annotation))}
    choice = re.search(r"\bLiteral(\[.*?\])", annotation)
    if choice:
        declared["type"] = click.Choice(ast.literal_eval(choice[1]))
    elif plain == "int":
        high = MAX_INTEGER if notes["high"] is None else notes["high"]
        declared |= {"type": click.IntRange(notes["low"], high), "metavar": "N"}
        declared["type"].name = "integer"
    elif plain == "float":
        declared |= {"type": click.FloatRange(notes["low"], notes["high"]), "metavar": "X"}
        declared["type"].name = "number"
    elif plain == "Path":
        declared |= {"type": _PathType(), "metavar": "FILE"}
    return declared


class _Argument(click.Argument):
    explained = ""


class _Command(click.Command):
    """A command whose help lists arguments, and options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        parameters = self.get_params(ctx)
        for argument in parameters:
            if isinstance(argument, _Argument):
                row = argument.make_metavar(ctx), argument.explained
                sections.setdefault("Arguments", []).append(row)
        for parameter in parameters:
            record = parameter.get_help_record(ctx)
            if record and not isinstance(parameter, _Argument):
                sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class _Commands(click.Group):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in _SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        names = self.list_commands(ctx)
        if name in names:
            import_module(f"tokensieve.cli.{name}")
        elif near := get_close_matches(name, names, n=1):
            raise InputError(f"there is no command {name!r}; did you mean `tokensieve {near[0]}`?")
        return _registered.get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _first_line_of_help(name)) for name in names])


def _first_line_of_help(name: str) -> str:
    """The first line of a command's docstring, read without importing its file."""
    source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return docstring.partition("\n")[0]


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
        arguments: name → explanation of each positional argument. Of the function's other
            parameters, one whose type is a settings class stands for an option per field, and any
            other has a default made with `option`; the latter replaces a field's option of the same
            name.
    """

    def decorate(function: Callable[..., int | None]) -> click.Command:
        parameters = _Parameters.of(function, arguments, without.split())

        def call(**given: Any) -> int | None:
            return function(**parameters.arguments(given))

        name = function.__name__.removeprefix("_")
        about = inspect.getdoc(inspect.getmodule(function))
        _registered[name] = _Command(name, callback=call, params=parameters.declared, help=about)
        return _registered[name]

    return decorate


@dataclass(frozen=True)
class _Parameters:
    """The parameters of a command's function.

    Attributes:
        declared: arguments and options, for click.
        defaults: parameter → its value if the user does not give it.
        settings_classes: parameter → the settings class that stands for an option per field.
        settings_options: parameter → the fields that are options of this command.
    """

    declared: list[click.Parameter] = field(default_factory=list)
    defaults: dict[str, object] = field(default_factory=dict)
    settings_classes: dict[str, Any] = field(default_factory=dict)
    settings_options: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, function: Callable[..., Any], explained: Mapping[str, str], without: list[str]
    ) -> _Parameters:
        """Read the signature of a command's function; see `command`."""
        result = cls()
        signature = inspect.signature(function).parameters
        excluded = {*signature, *without}
        for name, parameter in signature.items():
            annotation = str(parameter.annotation)
            kind: Any = function.__globals__.get(annotation)
            if name in explained:
                result._add_argument(name, annotation, parameter.default, explained[name])
            elif is_dataclass(kind):
                result._add_settings(name, kind, excluded)
            else:
                default = parameter.default
                result.defaults[name] = default.default
                notes = default.metadata["option"]
                result.declared.append(_Option(name, annotation, default.default, notes, "Output"))
        return result

    def _add_argument(self, name: str, annotation: str, default: object, explained: str) -> None:
        is_required = default is inspect.Parameter.empty
        nargs = -1 if _MANY.search(annotation) else 1
        path = _PathType() if "Path" in annotation else None
        argument = _Argument([name], required=is_required, nargs=nargs, type=path)
        argument.explained = explained
        self.declared.append(argument)
        self.defaults[name] = None if is_required else default

    def _add_settings(self, name: str, kind: Any, excluded: set[str]) -> None:
        options = [option for option in _fields(kind) if option.name not in excluded]
        self.settings_classes[name] = kind
        self.settings_options[name] = [str(option.name) for option in options]
        self.declared.extend(options)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, object]:
        """The arguments of the function: what the user gave, in settings objects, and defaults."""
        values = {name: value for name, value in given.items() if value is not None}
        for parameter, names in self.settings_options.items():
            chosen = {name: values.pop(name) for name in names if name in values}
            values[parameter] = self.settings_classes[parameter](**chosen)
        return self.defaults | values


def _fields(kind: Any) -> Iterator[_Option]:
    """Options of a settings class, those of its bases first.

    Each is listed under the first line of the docstring of the class that declares it.
    """
    for declared in fields(kind):
        notes = declared.metadata.get("option")
        if notes is None or notes["flag"] == "":
            continue
        owner = next(
            base
            for base in reversed(kind.__mro__)
            if declared.name in inspect.get_annotations(base)
        )
        title = (inspect.getdoc(owner) or "Options").partition("\n")[0].rstrip(".")
        yield _Option(declared.name, str(declared.type), declared.default, notes, title)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit status.

    Not by Click's `main`, which prints an empty line when interrupted.
    """
    try:
        with app.make_context("tokensieve", arguments) as context:
            return app.invoke(context) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        raise InputError(_usage_message(error)) from None


def _usage_message(error: click.ClickException) -> str:
    """One line that says what is wrong with the command line, and which `--help` explains it."""
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption) and error.possibilities:  # Click sorts them by name
        options = " or ".join(error.possibilities)
        message = f"{error.message.rstrip('.')} (did you mean {options}?)"
    name = context.info_name if context is not None else ""
    if "extra argument" in message and name in _SURPLUS:
        return f"{message}: {_SURPLUS[name]}"
    return f"{message}; see {getattr(context, 'command_path', 'tokensieve')} --help"


def out_option(default: str) -> Any:
    """The folder for the results."""
    return option(Path(default), "Folder for the results.", metavar="FOLDER")


@contextmanager
def progress_bar(quiet: bool, lines: bool = False) -> Iterator[Progress]:
    """Show progress on standard error: a bar that disappears at the end; nothing if quiet.

    Without a terminal there is no bar; commands that may take an hour then write a line every 30
    seconds (`lines`). An estimate of the total time is a line of its own.
    """
    if not quiet and sys.stderr.isatty():
        with _bar(with_time_left=lines) as show:
            yield show
    else:
        yield _progress_lines() if lines and not quiet else silent


def _is_estimate(stage: str, share: float) -> bool:
    return share == 0.0 and stage.endswith("on one core")


def _progress_lines() -> Progress:
    """Writes a line from time to time."""
    start = time.monotonic()
    last = start

    def write(stage: str, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if _is_estimate(stage, share):
            print(stage, file=sys.stderr)
        elif now - last >= PROGRESS_INTERVAL:
            last = now
            seconds = now - start
            left = ""
            if share > MIN_PROGRESS:
                left = f", about {seconds * (1 - share) / share / 60:.0f} min left"
            print(f"{stage}: {share:.0%} done after {seconds:.0f} s{left}", file=sys.stderr)

    return write


@contextmanager
def _bar(with_time_left: bool) -> Iterator[Progress]:
    """A bar in the terminal."""
    from rich import progress as bars
    from rich.console import Console

    columns = [
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TimeElapsedColumn(),
    ]
    if with_time_left:
        columns += [bars.TextColumn("left"), bars.TimeRemainingColumn()]
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(stage: str, share: float) -> None:
            if _is_estimate(stage, share):
                bar.console.print(stage)
            total = 1.0 if share else None
            # below 1: the clock of a task that is done would stand still, and the next stage would
            # not start it again
            bar.update(task, description=stage, total=total, completed=min(share, 0.999))

        yield show


def say(quiet: bool, message: str) -> None:
    """One line on standard error."""
    if not quiet:
        print(line(message), file=sys.stderr)


def answer_columns(given: str | None, model: Path | None) -> tuple[str, ...]:
    """The columns of answers: those of `--pairs A,B`, or else those that the model in a folder
    was trained on; none if neither is given. One column may hold lists of answers.
    """
    from tokensieve.files import parsed, read_regular

    if given is not None:
        names = split_names(given)
        if not names or len(set(names)) < len(names):
            raise InputError(
                f"--pairs {given!r} must name different columns, such as --pairs chosen,rejected"
            )
        return tuple(names)
    if model is None:
        return ()
    try:
        summary = parsed(read_regular(model / "summary.json"))
        written = summary.get("settings", {}).get("pairs")
        names = split_names(written) if written else list(map(str, summary["pairs"]["columns"]))
        return tuple(dict.fromkeys(names))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise InputError(
            "this is a preference model; name the columns of the answers with --pairs FIRST,SECOND"
        ) from None


def pair_columns(given: str | None, model: Path) -> tuple[str, str]:
    """The columns of `--pairs A,B`, or else those of the model's pairs, of which there are two."""
    names = answer_columns(given, model)
    if len(names) != 2:
        raise InputError(
            f"--pairs {joined_names(names)!r} must name two columns, such as "
            "--pairs chosen,rejected"
        )
    return names[0], names[1]


def checked_source(given: list[str], settings: ReadSettings, quiet: bool) -> str | list[str]:
    """Return the source to read: one, or a list of files; suggest `--stream` if one is large."""
    if len(given) > 1:
        return list(given)
    path = Path(given[0])
    size = 0
    with suppress(OSError, ValueError):  # reading will say what is wrong with the path
        size = path.stat().st_size if path.is_file() else 0
    if not settings.stream and size > LARGE:
        say(
            quiet,
            f"{path.name} is {size / 1e9:.1f} GB; --stream keeps it out of memory, with the same "
            "result",
        )
    return given[0]


def as_token(name: str, tokenizer: Tokenizer) -> str:
    """A token as the tokenizer writes it, if an option names it in capitals."""
    from tokensieve.read.values import text_series

    words = tokenizer.split(text_series([name])).to_list()[0] or []
    token = " ".join(words)
    return token if token.casefold() == name.casefold() else name
