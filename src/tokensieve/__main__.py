"""The way in, for `tokensieve` and `python -m tokensieve`: what ends a command is one line and an exit status.

0 done; 2 the input or an option is wrong; 130 interrupted, 143 terminated; 1 anything else.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType

STATUS: dict[int, int] = {signal.SIGINT: 130, signal.SIGTERM: 143}


def main() -> None:
    """Run the command line."""
    interrupted = 0  # the status to end with

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        again, interrupted = interrupted > 0 and number in STATUS, STATUS.get(number, interrupted)
        if not again and _compiling(frame):
            signal.setitimer(signal.ITIMER_REAL, 0.02)  # raised in a compiler's callback it could crash: try again soon
            return
        raise KeyboardInterrupt

    def unraisable(problem: sys.UnraisableHookArgs) -> None:
        if not isinstance(problem.exc_value, KeyboardInterrupt):  # a compiler's callback cannot pass an interrupt on
            sys.__unraisablehook__(problem)

    for number in (*STATUS, *([signal.SIGALRM] if hasattr(signal, "SIGALRM") else [])):
        signal.signal(number, interrupt)
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
            status = interrupted or 130
    if interrupted:
        status = interrupted
    if status in STATUS.values():
        _say(f"{'interrupted' if status == 130 else 'terminated'}; nothing was left half-written")
    sys.exit(status)


def _compiling(frame: FrameType | None) -> bool:
    """Whether a function is being compiled, or loaded from where compiled ones are kept."""
    while frame is not None and hasattr(signal, "setitimer"):
        if str(frame.f_globals.get("__name__", "")).startswith(("numba.", "llvmlite.")):
            return True
        frame = frame.f_back
    return False


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
