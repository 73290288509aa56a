"""All checks: those in the files of this folder, then those of other packages."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from tokensieve.auditing import checks
from tokensieve.auditing.checks.api import Check
from tokensieve.errors import InputError

ENTRY_POINTS = "tokensieve.checks"


@cache
def all_checks() -> tuple[Check, ...]:
    """Instances of all checks, in the order of the documentation.

    Raises:
        InputError: the check of another package cannot be loaded, or lacks its name or texts.
    """
    built_in = sorted(
        _own_checks(), key=lambda check: (check.descriptive, check.title, check.about)
    )
    installed = [_check_of(entry) for entry in entry_points(group=ENTRY_POINTS)]
    return (*built_in, *installed)


def kinds_of_finding() -> list[str]:
    """The names of all checks, each once: `--fail-on` limits their findings by these."""
    return list(dict.fromkeys(check.name for check in all_checks()))


def _own_checks() -> Iterator[Check]:
    """The checks that the modules of this folder define."""
    for file in pkgutil.iter_modules(checks.__path__):
        module = import_module(f"{checks.__name__}.{file.name}")
        for value in vars(module).values():
            is_check = inspect.isclass(value) and issubclass(value, Check)
            if is_check and value.__module__ == module.__name__ and not inspect.isabstract(value):
                yield value()


def _check_of(entry: EntryPoint) -> Check:
    """The check that another package names."""
    try:
        check: Check = entry.load()()
        assert check.glossary_entry  # raises if it lacks a text
    except Exception as error:
        package = entry.dist.name if entry.dist else entry.value
        raise InputError(
            f"the check {entry.name!r} of {package} cannot be used: {error}; "
            f"fix or uninstall {package}"
        ) from error
    return check
