"""The interactive part of the audit's page: its HTML, its script and styles, and the data that the script reads.

The files of this folder are JavaScript objects, one a file; `page.js` beside `page.jinja` is the script of every page.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from tokensieve.auditing.result import Audit
from tokensieve.escape import shown
from tokensieve.report.live import data

FOLDER = Path(__file__).parent
FILES = (
    "codec format words formatting model state address axis points map hand lines card panel decisions theme table whatif shade "
    "documents box search main"
).split()
LINKS = [("pictures", "Map"), ("table", "Tokens"), ("documents", "Documents"), ("box", "Try a text")]


@cache
def script() -> str:
    """All objects in one scope of their own."""
    parts = [(FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in FILES]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


@cache
def style() -> str:
    """What the style sheet of every page lacks."""
    return (FOLDER / "live.css").read_text(encoding="utf-8")


def html(audit: Audit) -> dict[str, Markup]:
    """The parts of the page that the script fills: `controls` for the bar, `panel`, and `sections`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters["shown"] = shown
    types, rows = audit.tokens.height // len(audit.classes), data.rows_per_class(audit)
    context = {
        "classes": audit.classes,
        "label": data.first_class(audit),
        "pairs": audit.pairs is not None,
        "thinned": f"{rows:,} of {types:,} token types are in this table: those named elsewhere on this page, the extremes, "
        "and a sample of the rest. tokens.csv holds all of them."
        if types > rows
        else "",
    }
    module = environment.get_template("audit.jinja").make_module(context)
    return {name: Markup(getattr(module, name)()) for name in ("controls", "panel", "sections")}


def data_blocks(audit: Audit, characters: int) -> dict[str, str]:
    """Name → data that the script reads; of the model as much as fits, together at most `characters`."""
    return data.data_blocks(audit, characters)
