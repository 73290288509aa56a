"""The templates of the pages that are not made of blocks yet."""

from __future__ import annotations

from base64 import b64encode, standard_b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from tokensieve import wording as numbers
from tokensieve.auditing.report import file_name
from tokensieve.escape import shown
from tokensieve.report import charts

FOLDER = Path(__file__).parent
_FORMATS = (numbers.signed, numbers.plain, numbers.percent, numbers.count, numbers.chance, numbers.milli)


@cache
def environment() -> jinja2.Environment:
    """The templates of this folder, with everything escaped; compiled once."""
    out = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    out.filters.update({f.__name__: f for f in (shown, file_name, given, *_FORMATS)})
    return out


def source(picture: charts.Picture) -> str:
    """The picture as a data address: nothing in it can touch the page, and it follows the page's light or dark."""
    return "data:image/svg+xml;base64," + b64encode(picture.svg(follow_theme=True).encode()).decode()


def given(settings: dict[str, Any]) -> list[tuple[str, str]]:
    """The settings that were given, in words: none that is None or empty, no list in brackets, no folder of a path."""
    out = []
    for name, value in settings.items():
        if value is None or value == [] or name in ("seed", "version"):
            continue
        words = {True: "yes", False: "no"}.get(value) if isinstance(value, bool) else None
        listed = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        out.append((name.replace("_", " "), words or file_name(listed)))
    return out


def sortable() -> dict[str, Markup]:
    """What `sortable.html` needs: style, the script that sorts and searches a table, and a policy that lets these run alone."""
    style = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("base.css", "live/sortable.css"))
    code = (FOLDER / "live/sortable.js").read_text(encoding="utf-8")
    hashes = [standard_b64encode(sha256(text.encode()).digest()).decode() for text in (code, style)]
    rules = (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return {"policy": Markup(rules), "style": Markup(style), "script": Markup(code)}
