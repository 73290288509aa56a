"""Write the result of any command into one folder, all or none: page, pictures, tables, summary."""

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

CLOCKS = ("report", "total")  # of `seconds`, which only the writer can know


class _Result(Protocol):
    """What the writer asks of a result."""

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each stage by name.

        It gains `report` and `total` before `files` is called, which may therefore hold them.
        """

    @property
    def own_files(self) -> str:
        """A regular expression for files of an earlier result that would contradict this one.

        Such as "pairs\\.csv|pictures/top\\.svg"; `report.html` and `summary.json` are known.
        """

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
    """Write a result into a folder, all or none: its page, pictures, tables and `summary.json`.

    Files of an earlier result that would contradict this one are removed; other files stay. Returns
    the paths written; an `InputError` if the folder cannot be written.

    Args:
        result: of any command, such as `tokensieve.audit`.
        folder: is made if it does not exist.
        pictures: also write each picture as SVG and PNG.
        start: when the work began (`time.perf_counter`), for the total time; None for the sum of
            the stages.
        for_print: also write each picture as PDF and its data as CSV.
        also: further files of the result, by name.
    """
    began = time.perf_counter()
    report = result.report()
    endings: tuple[str, ...] = ("png",) if pictures else ()
    if for_print:
        endings = ("png", "pdf", "csv")
    drawings = in_background(lambda: draw(report.blocks, *endings))
    files: dict[str, Content] = {"report.html": page(report, drawings)}
    if pictures:
        for name, drawn in drawings.result().items():
            files |= {f"pictures/{name}.{ending}": content for ending, content in drawn.items()}
    _take_time(result, began, start)
    for name, content in result.files().items():
        files[name] = markdown(content) if isinstance(content, Section) else content
    files |= also or {}
    return write_all(
        Path(folder),
        files,
        ours=rf"report\.html|summary\.json|{result.own_files}",
        sums="findings.json" in files,  # of an audit, which `compare` reads again
    )


def _take_time(result: _Result, report_began: float, start: float | None) -> None:
    """Add the time of the report, and the total, to the seconds of a result."""
    now = time.perf_counter()
    seconds = {name: value for name, value in result.seconds.items() if name not in CLOCKS}
    seconds["report"] = now - report_began
    seconds["total"] = sum(seconds.values()) if start is None else now - start
    result.seconds.update(seconds)


def pictures(result: _Result) -> dict[str, bytes]:
    """File name → content: each picture as SVG, and as PNG of twice its size in pixels."""
    drawings = draw(result.report().blocks, "png")
    content: dict[str, bytes] = {}
    for name, files in drawings.items():
        content |= {f"{name}.{ending}": file for ending, file in files.items()}
    return content
