"""The way in, for `tokensieve` and `python -m tokensieve`: what ends a command is one line and an exit status.

0 done; 2 the input or an option is wrong; 130 interrupted; 1 anything else.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line."""
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    def unraisable(problem: sys.UnraisableHookArgs) -> None:
        if not isinstance(problem.exc_value, KeyboardInterrupt):  # a compiler's callback cannot pass an interrupt on
            sys.__unraisablehook__(problem)

    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = unraisable
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter shows its number
    try:
        status = _run()
    except BaseException as error:  # compiled libraries turn an interrupt into errors of their own
        if isinstance(error, SystemExit):
            raise
        if not interrupted and not isinstance(error, KeyboardInterrupt):
            status = _explain(error)
        else:
            status = 130
    if interrupted:
        status = 130
    if status == 130:
        _say("interrupted; nothing was left half-written")
    sys.exit(status)


def _run() -> int:
    from tokensieve.cli import app  # takes a while, and may be interrupted like everything else

    status = app(args=sys.argv[1:] or ["--help"], standalone_mode=False)
    return status if isinstance(status, int) else 0


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong."""
    from tokensieve.errors import InputError

    if isinstance(error, InputError):
        _say(str(error))
        return 2
    if hasattr(error, "format_message"):  # an option or argument that typer could not read
        _say(error.format_message())
        return 2
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if os.environ.get("TOKENSIEVE_TRACEBACK"):
        raise error
    _say(f"unexpected {type(error).__name__}: {error} (set TOKENSIEVE_TRACEBACK=1 to see where)")
    return 1


def _say(message: str) -> None:
    line = " ".join(message.split())
    print(f"tokensieve: {line}".encode(errors="backslashreplace").decode(), file=sys.stderr)


if __name__ == "__main__":
    main()
