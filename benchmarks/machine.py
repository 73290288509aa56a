"""What the benchmarks share:

where the data lie, on what they were measured, and the memory of a process.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tokensieve

# of programs that are timed: byte code is kept, as an installation has it, also where the
# environment says not to write any
BYTE_CODE = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "tokensieve-byte-code"),
}
DATA = Path(
    os.environ.get("TOKENSIEVE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def described(*packages: str) -> str:
    """Processor, cores, memory, Python, the versions of some packages, and the date."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    parts = [
        processor(),
        f"{os.cpu_count()} cores, {memory:.0f} GB",
        f"Python {platform.python_version()}",
    ]
    parts.append(f"tokensieve {tokensieve.__version__}")
    for package in ("numpy", *packages):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"no {package}")
    return ", ".join([*parts, time.strftime("%Y-%m-%d")])


def store(name: str, figures: object, machine: str) -> Path:
    """Keep a benchmark's figures in results/NAME.json, with the command, the machine, the versions
    and how busy it was.
    """
    path = Path(__file__).resolve().parent / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    said = {
        "command": " ".join(["python", *sys.argv]),
        "machine": machine,
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }
    said["load"] = (
        f"{os.getloadavg()[1]:.2f} processes waiting or running over the last five minutes"
    )
    path.write_text(
        json.dumps(said | {"figures": figures}, indent=1, ensure_ascii=False), encoding="utf-8"
    )
    return path


def processor() -> str:
    """As the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def memory(field: str) -> float:
    """VmHWM (peak), VmRSS (now) or RssAnon (now, without mapped files) of this process, GB; NaN
    where it is unknown.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return math.nan
    return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith(field))


def forget_peak() -> None:
    """Give freed memory back to the system and start the peak anew, so that memory in use twice is
    seen (Linux).
    """
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
        Path("/proc/self/clear_refs").write_text("5")
