"""The command line: reads arguments, calls the library, writes files, shows progress. A file per family of commands."""

from tokensieve.cli import main_job, theory
from tokensieve.cli.options import app

__all__ = ["app", "main_job", "theory"]
