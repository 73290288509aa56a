"""Which chart draws which picture (`CHARTS` in `audit.py` and `studies.py`), and the pictures as SVG and PNG, without a browser or
a network. They are drawn in a separate process, so running out of memory or file handles costs the pictures and nothing else."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Sequence

import polars as pl

from tokensieve.files import csv_table
from tokensieve.progress import DRAWING
from tokensieve.report.blocks import Block, Picture, walk
from tokensieve.report.pictures import audit, studies
from tokensieve.report.pictures.audit import Specification
from tokensieve.wording import subscripts

Drawings = dict[str, dict[str, bytes]]
"""Name of a picture → ending → file: "svg", and where asked for "png" (twice its size), "pdf" and "csv" (what is drawn)."""

_NUMBER = r"(-?[0-9]+(?:\.[0-9])?)[0-9]*"  # to one decimal
_CIRCLE = re.compile(
    rf'<path transform="translate\({_NUMBER},{_NUMBER}\)" d="M{_NUMBER},0A[^MZ"]*"( fill="#[0-9a-f]*")'
    r' stroke-width="2"( opacity="[0-9.]*")/>'
)


def specification(picture: Picture) -> Specification:
    """What Vega-Lite draws, its data included."""
    return (audit.CHARTS | studies.CHARTS)[picture.chart](picture)


def draw(blocks: Sequence[Block], *also: str) -> Drawings:
    """Draw all pictures among blocks, each once by its name, as SVG and also as "png", "pdf" or "csv". If that fails, a line on
    standard error says so, and the result is empty."""
    specs = {
        block.name: specification(block) for block in walk(blocks) if isinstance(block, Picture)
    }
    if not specs:
        return {}
    texts = {
        name: subscripts(json.dumps(spec, default=float, ensure_ascii=False))
        for name, spec in specs.items()
    }
    drawn = DRAWING.answer(
        lambda file: file.write(json.dumps({"specs": texts, "also": also}).encode())
    )
    out = {
        name: {ending: b64decode(file) for ending, file in files.items()}
        for name, files in (drawn or {}).items()
    }
    for name, spec in specs.items() if drawn and "csv" in also else ():
        # a row per mark, in the column `part` the layer that it belongs to
        parts = [
            pl.DataFrame(rows, infer_schema_length=None).select(
                pl.lit(part).alias("part"), pl.all()
            )
            for part, rows in spec["datasets"].items()
            if rows
        ]
        out[name]["csv"] = csv_table(
            pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame({"part": []})
        )
    return out


def themed(drawn: bytes) -> str:
    """The SVG for a page: dark where the reader prefers dark, and with circles cell_text shorter."""
    rules = "".join(
        f'[fill="{a}"]{{fill:{b}}}[stroke="{a}"]{{stroke:{b}}}' for a, b in audit.DARK.items()
    )
    head, tag, rest = _CIRCLE.sub(
        r'<circle cx="\1" cy="\2" r="\3"\4\5/>', drawn.decode()
    ).partition(">")
    return f"{head}{tag}<style>@media (prefers-color-scheme:dark){{{rules}}}</style>{rest}"
