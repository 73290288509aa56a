"""The entry point of `tokensieve` and `python -m tokensieve`.

Every command ends with an exit status, and errors are one line.

    0    done
    1    a bug of this program
    2    the input, an option or the system's resources do not allow it
    3    a finding exceeds --fail-on
    129  the terminal was closed
    130  interrupted
    141  nobody reads the output
    143  terminated
    152  the CPU time limit was reached
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys

from tokensieve.memory import keep_little_freed_memory

INTERRUPTED = 130
INTERRUPTIONS = {INTERRUPTED: "interrupted", 152: "the CPU time limit was reached"}
_ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU")  # Windows has the first two
STATUS: dict[int, int] = {
    getattr(signal, name): 128 + getattr(signal, name) for name in _ENDINGS if hasattr(signal, name)
}


MEMORY_NEEDED = 2 * 10**9  # bytes of address space; Polars ends the process at 1.8 GB, not at 2.0
MEMORY_OF_TORCH = 3 * 10**9  # PyTorch ends the process at 2.5 GB, not at 3.0
MAX_THREADS = 10_000  # in environment variables; with more, libraries fail when they are loaded
MAX_DATE = 10**15  # seconds since 1970
USUAL_PROCESSES = 4096  # a limit below it may be too low for the threads of OpenBLAS
REPEAT_AFTER = 0.05  # seconds, in which compiled code returns


def main() -> None:
    """Run the command line."""
    interrupts = _Interrupts()
    interrupts.install()
    _open_streams()
    status = 0
    try:
        status = _run()
    except BaseException as error:  # compiled libraries turn an interrupt into errors of their own
        if isinstance(error, KeyboardInterrupt):
            interrupts.status = interrupts.status or INTERRUPTED
        elif not interrupts.status:
            status = _explain(error)
    finally:
        interrupts.ignore()  # all is written or removed: what is left to do is to end
    if interrupts.status:
        reason = INTERRUPTIONS.get(interrupts.status, "terminated")
        _say(f"{reason}; no incomplete files were left behind")
    gc.freeze()  # the last garbage collection looks at all that the libraries made: 0.1 to 0.5 s
    sys.exit(interrupts.status or status)


class _Interrupts:
    """Signals that end the program.

    Attributes:
        status: the exit status that the first one asks for; 0 if there was none.
    """

    status = 0

    def install(self) -> None:
        """Turn signals into a `KeyboardInterrupt`."""
        for number in STATUS:
            is_always_handled = number in (signal.SIGINT, signal.SIGTERM)
            # the others may be ignored, as nohup asks
            if is_always_handled or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)
        sys.unraisablehook = self._repeat

    def ignore(self) -> None:
        """From now on signals have no effect."""
        for number in STATUS:
            signal.signal(number, signal.SIG_IGN)

    def _stop(self, number: int, frame: object) -> None:
        self.status = self.status or STATUS[number]
        raise KeyboardInterrupt

    def _repeat(self, problem: sys.UnraisableHookArgs) -> None:
        """Repeat an interrupt that compiled code, which called us, cannot pass on."""
        if not isinstance(problem.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(problem)
            return
        from threading import Timer

        Timer(REPEAT_AFTER, signal.raise_signal, [signal.SIGINT]).start()


def _open_streams() -> None:
    """Make standard error forgiving, and replace streams that the caller closed.

    Otherwise a file that is opened later would take the number of a closed stream.
    """
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        raw = open(2, "wb", closefd=False)  # noqa: SIM115 - it lives as long as the process
        sys.stderr = _Messages(raw, sys.stderr.encoding, line_buffering=True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


class _Messages(io.TextIOWrapper):
    """Standard error: where it cannot be written (a full disk, a closed pipe) messages are lost,
    and the work goes on."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def _run() -> int:
    keep_little_freed_memory()
    _check_environment()
    _check_processes()
    _check_address_space(MEMORY_OF_TORCH if sys.argv[1:2] == ["diagnose"] else MEMORY_NEEDED)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that cannot show a letter shows its number
            stream.reconfigure(errors="backslashreplace")
    # the default looks through all lists and tuples several hundred times
    gc.set_threshold(100_000, 20, 20)
    from tokensieve.cli import run  # takes a while, and may be interrupted like everything else

    status = run(sys.argv[1:] or ["--help"])
    sys.stdout.flush()
    return status


def _check_environment() -> None:
    """Refuse values with which libraries fail when they are loaded."""
    highest = {
        "POLARS_MAX_THREADS": MAX_THREADS,
        "NUMBA_NUM_THREADS": MAX_THREADS,
        "SOURCE_DATE_EPOCH": MAX_DATE,
    }
    for name, limit in highest.items():
        value = os.environ.get(name, "1")
        if value.isdecimal() and 0 < int(value[:99]) < limit:
            continue
        from tokensieve.errors import InputError

        raise InputError(
            f"the environment variable {name} is {value[:20]!r}, but must be at least 1; "
            "correct or unset it"
        )


def _check_processes() -> None:
    """Refuse a limit on processes under which OpenBLAS ends the process."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    import threading

    if not 0 <= resource.getrlimit(resource.RLIMIT_NPROC)[0] < USUAL_PROCESSES:
        return
    end = threading.Event()
    try:
        # the limit is on all processes of the user, so only a try can tell
        for _ in range(4 * (os.cpu_count() or 1) + 8):
            threading.Thread(target=end.wait, daemon=True).start()
    except RuntimeError:
        from tokensieve.errors import InputError

        raise InputError(
            "the limit on processes leaves no room for threads; raise it with `ulimit -u`"
        ) from None
    finally:
        end.set()


def _check_address_space(needed: int) -> None:
    """Refuse an address space so small that a library would end the process."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= needed:
        return
    from tokensieve.errors import InputError

    raise InputError(
        f"the address space is limited to {limit / 1e9:.1f} GB, but at least {needed / 1e9:.1f} GB "
        "are needed; raise it, for example with `ulimit -v 4000000` (without pictures, which need "
        "70 GB), or limit memory instead"
    )


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong; the exit status."""
    from tokensieve.errors import InputError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if isinstance(error, InputError):
        _say(str(error))
        return 2
    advice = _resources_message(error)
    if advice is not None:
        _say(advice)
        return 2
    if os.environ.get("TOKENSIEVE_TRACEBACK"):
        raise error
    place = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    problem = f"unexpected {type(error).__name__}: {error}{place}"
    _say(f"{problem} (set TOKENSIEVE_TRACEBACK=1 to see where)")
    return 1


def _resources_message(error: BaseException) -> str | None:
    """What to do if the system's resources were the problem; None for a bug of this program."""
    if isinstance(error, MemoryError):
        return (
            "not enough memory; keep documents on disk with --stream, or drop rare tokens with a "
            "larger --min-documents"
        )
    if isinstance(error, OSError):
        return (
            f"the operating system refused: {error}; free some space, allow access, or set "
            "TMPDIR to another folder"
        )
    if isinstance(error, RuntimeError) and "cannot cache function" in str(error):  # Numba's words
        return (
            "compiled code cannot be stored; set NUMBA_CACHE_DIR to a folder that you can write to"
        )
    return None


def _say(message: str) -> None:
    from tokensieve.escape import line

    print(f"tokensieve: {line(message)}", file=sys.stderr)


if __name__ == "__main__":
    main()
