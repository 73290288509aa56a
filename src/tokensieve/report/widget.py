"""The interactive page as a widget, which tells a notebook what its reader selects."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokensieve.errors import InputError


def page_widget(page: str) -> Any:
    """A widget of anywidget that shows a page; its `selected` has the tokens selected there.

    Raises:
        InputError: anywidget is not installed.
    """
    if find_spec("anywidget") is None:
        raise InputError("anywidget is not installed: pip install 'tokensieve[notebook]'")
    traitlets = import_module("traitlets")
    members = {
        "_esm": Path(__file__).with_name("widget.js").read_text(encoding="utf-8"),
        "page": traitlets.Unicode().tag(sync=True),
        "selected": traitlets.List(traitlets.Unicode()).tag(sync=True),
    }
    base: Any = import_module("anywidget").AnyWidget
    return type("PageWidget", (base,), members)(page=page)
