"""Write the result of any command: page, pictures, tables and summary in one folder, all or none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tokensieve.files import Content, write_all
from tokensieve.progress import in_background
from tokensieve.report.blocks import Report, Section
from tokensieve.report.html import page
from tokensieve.report.markdown import markdown
from tokensieve.report.pictures import draw


class _Result(Protocol):
    """What the writer asks of a result."""

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each stage by name; gains `report` and `total`, which `files` may therefore hold."""

    @property
    def own_files(self) -> str:
        """A regular expression for names of files that an earlier result of this kind may have left and that would contradict this
        one, such as "pairs\\.csv|pictures/top\\.svg"; `report.html` and `summary.json` are known."""

    def report(self) -> Report: ...

    def files(self) -> Mapping[str, Content | Section]: ...


def save(
    result: _Result,
    folder: str | Path,
    pictures: bool = True,
    start: float | None = None,
    for_print: bool = False,
    also: Mapping[str, Content] | None = None,
) -> list[Path]:
    """Write a result into a folder, all or none: its page, pictures, tables and `summary.json`. Files of an earlier result that
    would contradict this one are removed; other files stay. Returns the paths written; an `InputError` if the folder cannot be
    written.

    Args:
        result: of any command, such as `tokensieve.audit`.
        pictures: also write each picture as SVG and PNG.
        start: when the work began (`time.perf_counter`), for the total time; the sum of the stages if None.
        for_print: also write each picture as PDF and its data as CSV.
        also: further files of the result, by name.
    """
    lap = time.perf_counter()
    report = result.report()
    endings = ("png", "pdf", "csv") if for_print else ("png",) if pictures else ()
    drawings = in_background(lambda: draw(report.blocks, *endings))
    files: dict[str, Content] = {"report.html": page(report, drawings)}
    for name, drawn in drawings.result().items() if pictures else ():
        files |= {f"pictures/{name}.{ending}": content for ending, content in drawn.items()}
    now = time.perf_counter()
    seconds = {name: s for name, s in result.seconds.items() if name not in ("report", "total")}
    seconds["report"] = now - lap
    seconds["total"] = sum(seconds.values()) if start is None else now - start
    result.seconds.update(seconds)
    files |= {
        name: markdown(x) if isinstance(x, Section) else x for name, x in result.files().items()
    }
    files |= also or {}
    ours = rf"report\.html|summary\.json|{result.own_files}"
    return write_all(
        Path(folder), files, ours=ours, sums="findings.json" in files
    )  # only audits are read again


def pictures(result: _Result) -> dict[str, bytes]:
    """File name → content: each picture of a result as SVG, and as PNG of twice its size in pixels."""
    drawings = draw(result.report().blocks, "png")
    return {
        f"{name}.{ending}": file
        for name, files in drawings.items()
        for ending, file in files.items()
    }
