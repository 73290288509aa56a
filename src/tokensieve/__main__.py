"""The entry point of `tokensieve` and `python -m tokensieve`: every command ends with an exit status, and errors are one line.

0 done; 1 a bug of this program; 2 the input, an option or the system's resources do not allow it; 3 a finding exceeds --fail-on;
129 the terminal was closed; 130 interrupted; 141 nobody reads the output; 143 terminated; 152 the CPU time limit was reached.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys

_ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU")  # Windows has the first two
STATUS: dict[int, int] = {
    getattr(signal, name): 128 + getattr(signal, name) for name in _ENDINGS if hasattr(signal, name)
}


def main() -> None:
    """Run the command line."""
    status = stopped = 0

    def stop(number: int, frame: object) -> None:
        nonlocal stopped
        stopped = stopped or STATUS[number]
        raise KeyboardInterrupt

    def unraisable(problem: sys.UnraisableHookArgs) -> None:
        if isinstance(
            problem.exc_value, KeyboardInterrupt
        ):  # compiled code called us and cannot pass it on: again
            from threading import Timer

            Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
        else:
            sys.__unraisablehook__(problem)

    for number in STATUS:
        if (
            number in (signal.SIGINT, signal.SIGTERM) or signal.getsignal(number) != signal.SIG_IGN
        ):  # as nohup asks
            signal.signal(number, stop)
    sys.unraisablehook = unraisable
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        raw = open(2, "wb", closefd=False)  # noqa: SIM115 - it lives as long as the process
        sys.stderr = _Messages(raw, sys.stderr.encoding, line_buffering=True)
    for name in ("stdin", "stdout", "stderr"):
        if (
            getattr(sys, name) is None
        ):  # closed by the caller: no file that is opened later may take its number
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    try:
        status = _run()
    except BaseException as error:  # compiled libraries turn an interrupt into errors of their own
        if not (stopped or isinstance(error, KeyboardInterrupt)):
            status = _explain(error)
        stopped = stopped or 130 * isinstance(error, KeyboardInterrupt)
    finally:
        for number in STATUS:
            signal.signal(
                number, signal.SIG_IGN
            )  # all is written or removed: what is left to do is to end
    if stopped:
        why = {130: "interrupted", 152: "the CPU time limit was reached"}.get(stopped, "terminated")
        _say(f"{why}; no incomplete files were left behind")
    gc.freeze()  # the last garbage collection looks at all that the libraries made: 0.1 to 0.5 s
    sys.exit(stopped or status)


class _Messages(io.TextIOWrapper):
    """Standard error: where it cannot be written (a full disk, a closed pipe) messages are lost, and the work goes on."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def _run() -> int:
    threads = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS")
    for name in (
        *threads,
        "SOURCE_DATE_EPOCH",
    ):  # other values make libraries fail when they are loaded
        value = os.environ.get(name, "1")
        if not (
            value.isdecimal() and 0 < int(value[:99]) < (10_000 if name in threads else 10**15)
        ):
            from tokensieve.errors import InputError

            raise InputError(
                f"the environment variable {name} is {value[:20]!r}, but must be at least 1; correct or unset it"
            )
    _check_limits(3 * 10**9 if sys.argv[1:2] == ["diagnose"] else 2 * 10**9)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a terminal that cannot show a letter shows its number
    gc.set_threshold(
        100_000, 20, 20
    )  # the default looks through all lists and tuples several hundred times
    from tokensieve.cli import run  # takes a while, and may be interrupted like everything else

    status = run(sys.argv[1:] or ["--help"])
    sys.stdout.flush()
    return status


def _check_limits(needed: int) -> None:
    """Refuse limits under which libraries end the process: an address space too small for Polars (measured: 1.8 GB, but not 2.0) or
    PyTorch (2.5, not 3.0), or too few processes for OpenBLAS."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    import threading

    end = threading.Event()
    try:
        # of all processes of the user: only a try can tell
        if 0 <= resource.getrlimit(resource.RLIMIT_NPROC)[0] < 4096:
            for _ in range(4 * (os.cpu_count() or 1) + 8):
                threading.Thread(target=end.wait, daemon=True).start()
    except RuntimeError:
        from tokensieve.errors import InputError

        raise InputError(
            "the limit on processes leaves no room for threads; raise it with `ulimit -u`"
        ) from None
    finally:
        end.set()
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < needed:
        from tokensieve.errors import InputError

        raise InputError(
            f"the address space is limited to {limit / 1e9:.1f} GB, but at least {needed / 1e9:.1f} GB are needed; raise it, for "
            "example with `ulimit -v 4000000` (without pictures, which need 70 GB), or limit memory instead"
        )


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong."""
    from tokensieve.errors import InputError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if isinstance(error, InputError):
        _say(str(error))
    elif isinstance(error, MemoryError):
        _say(
            "not enough memory; keep documents on disk with --stream, or drop rare tokens with a larger --min-documents"
        )
    elif isinstance(error, OSError):
        _say(
            f"the operating system refused: {error}; free some space, allow access, or set TMPDIR to another folder"
        )
    elif isinstance(error, RuntimeError) and "cannot cache function" in str(error):  # Numba's words
        _say(
            "compiled code cannot be stored; set NUMBA_CACHE_DIR to a folder that you can write to"
        )
    elif os.environ.get("TOKENSIEVE_TRACEBACK"):
        raise error
    else:
        place = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
        _say(
            f"unexpected {type(error).__name__}: {error}{place} (set TOKENSIEVE_TRACEBACK=1 to see where)"
        )
        return 1
    return 2


def _say(message: str) -> None:
    from tokensieve.escape import line

    print(f"tokensieve: {line(message)}", file=sys.stderr)


if __name__ == "__main__":
    main()
