"""The command line: a file per command, and `command.py`, which makes commands from settings."""

from tokensieve.cli.command import app, run

__all__ = ["app", "run"]
