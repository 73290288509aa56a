"""The command line: reads arguments, calls the library, writes files, shows progress. A file per family of commands."""

from tokensieve.cli import compare, diagnose, main_job, mask, predict, reproduce, theory
from tokensieve.cli.options import app

__all__ = ["app", "compare", "diagnose", "main_job", "mask", "predict", "reproduce", "theory"]
