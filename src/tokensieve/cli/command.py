"""Commands made from settings: every option is a field of a settings class or a parameter of the command's function.

A command is a file of this folder with a function of the same name. The file's docstring is the command's help. `--help` of the
whole program reads those docstrings without importing the files, so that it needs none of their libraries.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tokensieve import __version__
from tokensieve.errors import InputError
from tokensieve.escape import line
from tokensieve.options import option

_SECTIONS = {
    "Commands": "audit compare mask train predict explain diagnose demo".split(),
    "Research": "verify reproduce".split(),
}
_TYPES: dict[str, tuple[Callable[..., Any], str]] = {  # annotation → class for the value, and its placeholder in --help
    "int": (click.IntRange, "N"),
    "float": (click.FloatRange, "X"),
}
_MANY = re.compile(r"\b(tuple|list|Sequence|Mapping|dict)\[")
_CHOICE = re.compile(r"\bLiteral(\[.*?\])")
_SURPLUS = {  # command → where an argument too many goes
    "explain": "put the text in quotes",
    "compare": "it takes two audits",
    "predict": "it takes one source",
    "mask": "it takes one source; name the folder or file to write with --out",
    "verify": "it takes one source",
    "diagnose": "test documents go with --test SOURCE",
}


class _Option(click.Option):
    """An option made with `tokensieve.options.option`; `None` where the user did not give it."""

    def __init__(self, name: str, annotation: str, default: Any, notes: Mapping[str, Any], section: str) -> None:
        flags = (notes["flag"] or "--" + name.replace("_", "-")).split(",")
        declared: dict[str, Any] = {"multiple": bool(_MANY.search(annotation)), "help": notes["help"]}
        if annotation.split(" | ")[0] == "bool":
            declared = {"is_flag": True, "help": notes["help"]}
            if len(flags) == 1:
                flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
        elif choice := _CHOICE.search(annotation):
            declared["type"] = click.Choice(ast.literal_eval(choice[1]))
        elif annotation.split(" | ")[0] in _TYPES:
            kind, metavar = _TYPES[annotation.split(" | ")[0]]
            declared |= {"type": kind(notes["low"], notes["high"]), "metavar": metavar}
            declared["type"].name = "integer" if metavar == "N" else "number"
        elif annotation.startswith("Path"):
            declared |= {"type": click.Path(path_type=Path), "metavar": "FILE"}
        if notes["metavar"]:
            declared["metavar"] = notes["metavar"]
        super().__init__([name, *flags], default=None, **declared)
        self.two_sided = default is not False
        self.section, self.parse = section, notes["parse"]
        self.note = _note(flags[0].split("/")[0], default, notes)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        cast = super().type_cast_value(ctx, value)
        return cast if self.parse is None or cast is None or cast == () else self.parse(cast)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        short = sorted(self.opts, key=len)
        names = ", ".join(short) + "".join(f" / {name}" for name in self.secondary_opts if self.two_sided)
        metavar = "" if self.is_flag else f" {self.make_metavar(ctx)}"
        return names + metavar, f"{self.help}{self.note}"


def _note(flag: str, default: Any, notes: Mapping[str, Any]) -> str:
    """What `--help` adds to an explanation: the default and the upper limit."""
    shown = notes["default_text"]
    if shown is None and default is not False and default not in (None, (), "") and default == default:
        shown = flag if default is True else f"{default:,g}" if isinstance(default, float) else str(default)
    facts = [f"default: {shown}"] if shown else []
    if notes["high"] is not None and notes["high"] < 1e9:
        facts.append(f"at most {notes['high']:,g}")
    return f" [{'; '.join(facts)}]" if facts else ""


class _Argument(click.Argument):
    """An argument with an explanation."""

    def __init__(self, name: str, annotation: str, required: bool, explained: str) -> None:
        many = bool(_MANY.search(annotation))
        kind = click.Path(path_type=Path) if "Path" in annotation else None
        super().__init__([name], required=required, nargs=-1 if many else 1, type=kind)
        self.explained = explained


class _Command(click.Command):
    """A command whose help lists arguments, and options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        arguments = [(p.make_metavar(ctx), p.explained) for p in self.params if isinstance(p, _Argument)]
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": arguments} if arguments else {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                record = parameter.get_help_record(ctx)
                if record is not None:
                    sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class _Commands(click.Group):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in _SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        module = import_module(f"tokensieve.cli.{name}")
        found: click.Command = getattr(module, name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _docstring(name).partition("\n")[0]) for name in names])


def _docstring(name: str) -> str:
    source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


@click.group(
    "tokensieve",
    cls=_Commands,
    help="Find the tokens that predict a label, and see which of them a model relies on.",
    epilog="`tokensieve COMMAND --help` explains a command. Start with `tokensieve demo`.",
    context_settings={"max_content_width": 120},  # longer lines are hard to read
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """The program."""


def command(without: str = "", **arguments: str) -> Callable[[Callable[..., int | None]], click.Command]:
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
        defaults: dict[str, Any] = {}
        own = inspect.signature(function).parameters
        for name, parameter in own.items():
            annotation, default = str(parameter.annotation), parameter.default
            kind: Any = function.__globals__.get(annotation)
            if name in arguments:
                required = default is inspect.Parameter.empty
                parameters.append(_Argument(name, annotation, required, arguments[name]))
                defaults[name] = None if required else default
            elif is_dataclass(kind):
                made = [one for one in _fields(kind) if one.name not in {*own, *without.split()}]
                groups[name] = (kind, [str(one.name) for one in made])
                parameters += made
            else:
                defaults[name] = default.default
                parameters.append(_Option(name, annotation, default.default, default.metadata["option"], "Output"))

        def call(**given: Any) -> int | None:
            given = {name: value for name, value in given.items() if value is not None and value != ()}
            for group, (kind, names) in groups.items():
                given[group] = kind(**{name: given.pop(name) for name in names if name in given})
            return function(**(defaults | given))

        where = inspect.getmodule(function)
        return _Command(function.__name__, callback=call, params=parameters, help=inspect.getdoc(where))

    return decorate


def _fields(kind: Any) -> Iterator[_Option]:
    """Options of a settings class, those of its bases first, each under the first line of the docstring of its class."""
    for field in fields(kind):
        notes = field.metadata.get("option")
        if notes is None or notes["flag"] == "":
            continue
        home = next(owner for owner in reversed(kind.__mro__) if field.name in inspect.get_annotations(owner))
        title = (inspect.getdoc(home) or "Options").partition("\n")[0].rstrip(".")
        yield _Option(field.name, str(field.type), field.default, notes, title)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit status.

    Not by Click's own `main`, which prints an empty line when it is interrupted.

    Raises:
        InputError: an option, an argument or the input is wrong.
    """
    try:
        with app.make_context("tokensieve", arguments) as context:
            return app.invoke(context) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        message, context_of = error.format_message().rstrip("."), getattr(error, "ctx", None)
        name = context_of.info_name if context_of is not None else ""
        if "extra argument" in message and name in _SURPLUS:
            raise InputError(f"{message}: {_SURPLUS[name]}") from None
        raise InputError(f"{message}; see tokensieve {name + ' ' if name in _SURPLUS else ''}--help") from None


def out_option(default: str) -> Any:
    """--out FOLDER."""
    return option(Path(default), "Folder for the results.", metavar="FOLDER")


def quiet_option() -> Any:
    """--quiet."""
    return option(False, "Show neither progress nor results.", flag="--quiet,-q")


@contextmanager
def progress(quiet: bool, lines: bool = False) -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error that disappears at the end; if that is no terminal, nothing, or a line every 30 seconds."""
    if quiet or not sys.stderr.isatty():
        start = last = time.monotonic()

        def line(stage: str, share: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= 30:
                last = now
                left = f", about {(now - start) * (1 - share) / share / 60:.0f} min left" if share > 0.02 else ""
                print(f"{stage}: {share:.0%} done after {now - start:.0f} s{left}", file=sys.stderr)

        yield line if lines and not quiet else lambda stage, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    remaining = TextColumn("left"), TimeRemainingColumn()
    with Progress(*columns, *(remaining if lines else ()), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(stage: str, share: float) -> None:
            # of a task that is done the clock would stand still, and the next stage would not start it again
            bar.update(task, description=stage, total=1.0 if share else None, completed=min(share, 0.999))

        yield tell


def say(quiet: bool, message: str) -> None:
    """One line on standard error."""
    if not quiet:
        print(line(message), file=sys.stderr)
