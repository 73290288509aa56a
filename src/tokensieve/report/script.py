"""The page's scripts and styles, and the Content-Security-Policy that lets these run and nothing else."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup

FOLDER = Path(__file__).parent / "live"
FILES = (
    "codec format words formatting model state address axis points map hand lines card panel decisions theme table whatif shade "
    "documents box main"
)


@cache
def page_script() -> str:
    """The page's own script: the files of `live/`, one object each."""
    parts = [(FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in FILES.split()]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


@cache
def page_style() -> str:
    """The style sheet of every page, and that of the interactive parts."""
    return "".join(path.read_text(encoding="utf-8") for path in (FOLDER.parent / "base.css", FOLDER / "live.css"))


def sortable() -> dict[str, Markup]:
    """What `sortable.html` needs: style, the script that sorts and searches a table, and a policy that lets these run alone."""
    sheets = FOLDER.parent / "base.css", FOLDER / "sortable.css"
    style = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    code = (FOLDER / "sortable.js").read_text(encoding="utf-8")
    return {"policy": Markup(policy(style, code)), "style": Markup(style), "script": Markup(code)}


def policy(style: str, *scripts: str) -> str:
    """A Content-Security-Policy: these texts, style attributes and images within the page, and no request at all."""
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_digest(style)}'; style-src-attr 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
