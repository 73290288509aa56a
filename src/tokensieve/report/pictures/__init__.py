"""Which chart draws which picture, and the pictures as SVG and PNG, without a browser or a network.

They are drawn in a separate process, so running out of memory or file handles costs the pictures
and nothing else.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence

import polars as pl

from tokensieve.files import csv_table
from tokensieve.progress import DRAWING
from tokensieve.report.blocks import Block, Picture, walk
from tokensieve.report.pictures import audit, diagnose, rank, reproduce, theory
from tokensieve.report.pictures.frame import DARK, Charts, Specification
from tokensieve.wording import subscripts

Drawings = dict[str, dict[str, bytes]]
"""Name of a picture → ending → file: "svg", and on request "png" (twice its size), "pdf", "csv"."""

CHARTS: Charts = {
    **audit.CHARTS,
    **diagnose.CHARTS,
    **rank.CHARTS,
    **reproduce.CHARTS,
    **theory.CHARTS,
}
_NUMBER = r"(-?[0-9]+(?:\.[0-9])?)[0-9]*"  # to one decimal
_CIRCLE = re.compile(
    rf'<path transform="translate\({_NUMBER},{_NUMBER}\)" d="M{_NUMBER},0A[^MZ"]*"'
    r'( fill="#[0-9a-f]*") stroke-width="2"( opacity="[0-9.]*")/>'
)


def specification(picture: Picture) -> Specification:
    """The Vega-Lite specification of the picture, its data included."""
    return CHARTS[picture.chart](picture)


def draw(blocks: Sequence[Block], *also: str) -> Drawings:
    """Draw all pictures among blocks, each once by its name.

    Each is an SVG and, as asked `also`, a "png", a "pdf" or a "csv" of what is drawn. If drawing
    fails, a line on standard error says so, and the result is empty.
    """
    pictures = [block for block in walk(blocks) if isinstance(block, Picture)]
    specifications = {picture.name: specification(picture) for picture in pictures}
    if not specifications:
        return {}
    drawings = _drawn_elsewhere(specifications, also)
    if "csv" in also:
        for name in drawings:
            drawings[name]["csv"] = _marks_as_csv(specifications[name])
    return drawings


def _drawn_elsewhere(specifications: Mapping[str, Specification], also: Sequence[str]) -> Drawings:
    """The files of each picture, from the process that draws; empty if it fails."""
    texts = {
        name: subscripts(json.dumps(specification, default=float, ensure_ascii=False))
        for name, specification in specifications.items()
    }
    request = json.dumps({"specs": texts, "also": also}).encode()
    answer = DRAWING.answer(lambda file: file.write(request)) or {}
    return {
        name: {ending: b64decode(file) for ending, file in files.items()}
        for name, files in answer.items()
    }


def _marks_as_csv(specification: Specification) -> bytes:
    """A row per mark; the column `part` names the layer that it belongs to."""
    parts = []
    for part, rows in specification["datasets"].items():
        if rows:
            table = pl.DataFrame(rows, infer_schema_length=None)
            parts.append(table.select(pl.lit(part).alias("part"), pl.all()))
    if not parts:
        return csv_table(pl.DataFrame({"part": []}))
    return csv_table(pl.concat(parts, how="diagonal_relaxed"))


def themed(drawn: bytes) -> str:
    """The SVG for a page: dark where the reader prefers dark, with its circles written shorter."""
    rules = "".join(
        f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}'
        for light, dark in DARK.items()
    )
    shorter = _CIRCLE.sub(r'<circle cx="\1" cy="\2" r="\3"\4\5/>', drawn.decode())
    opening, tag_end, rest = shorter.partition(">")
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    return f"{opening}{tag_end}{style}{rest}"
