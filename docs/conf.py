"""Sphinx's settings; pages generated from the code (API, commands, files); formulas as MathML; our
docstrings for Sphinx."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tokensieve

sys.path.insert(0, str(Path(__file__).parent))

HERE = Path(__file__).parent
PACKAGES = {
    "read": (
        "Sources",
        "Files, folders and tables: which column holds the text, and which the label.",
    ),
    "text": (
        "Text in, counts out",
        "Tokenizers, the vocabulary and the counts.",
    ),
    "evidence": (
        "What the data alone shows",
        "Token importance with document-level uncertainty; no model needed.",
    ),
    "model": ("The model", "The classifier, its exact gradients, explanations and files."),
    "theory": ("The theory", "One step, gradient flow, selection, max margin, hypotheses."),
    "auditing": ("The audit", "Data against model: the main job and what follows from it."),
    "diagnose": (
        "Other people's models",
        "A trained transformer against the tokens that carry the label.",
    ),
    "ranking": ("Ranks", "Models ranked by their battles, with and without style held fixed."),
    "report": ("Pages and pictures", "Pure functions of results."),
    "errors": ("Errors", "One root for everything that is the input's fault."),
}

project, author = "tokensieve", "The tokensieve developers"
version = release = tokensieve.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3
suppress_warnings = ["myst.strikethrough"]
# formulas become MathML when the site is built, so that it needs no script from elsewhere
html_math_renderer = "mathml"
html_theme, html_title = "furo", "tokensieve"
html_show_sourcelink = False
templates_path: list[str] = []
exclude_patterns = ["_build"]
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring, napoleon_numpy_docstring, napoleon_use_ivar = True, False, True
napoleon_attr_annotations = False
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True

SECTION = re.compile(
    r"(Args|Attributes|Returns|Yields|Raises|Examples?|Note|Notes|References|Source):$"
)
HEAD = """# {title}

{text}

Everything here is imported from `tokensieve` itself: `from tokensieve import {first}`.
"""


def plain(text: str) -> str:
    """One line of a docstring without anything that reStructuredText would take for markup; code in
    double backticks."""
    parts = re.split(r"(`[^`]+`)", text)
    for i, part in enumerate(parts):
        code = i % 2 == 1
        parts[i] = (
            f"``{part.strip('`')}``" if code else re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", part)
        )
    return "".join(parts)


def bridge(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Formulas (indented paragraphs outside the sections) and examples stay as written; the rest
    becomes plain text."""
    out: list[str] = []
    inside = formula = False
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if SECTION.match(line):
            inside, formula = not line.startswith(("Example", "Source", "Note")), False
            out.append(line)
        elif not inside and indent >= 4 and line.strip():
            if not formula and (number == 0 or not lines[number - 1].strip()):
                out += ["::", ""]
                formula = True
            out.append(line if formula else plain(line))
        else:
            formula = formula and not line.strip()
            out.append(line if line.lstrip().startswith((">>>", "...")) else plain(line))
    lines[:] = out


def write_api(app: Any) -> None:
    """One page per room from the public names, so that none is missing and none is listed by
    hand."""
    listed: dict[str, list[str]] = {room: [] for room in PACKAGES}
    for name in tokensieve.__all__:
        if name != "__version__":
            home = getattr(tokensieve, name).__module__
            room = home.split(".")[1]
            listed["model" if room == "task" else room].append(
                f"{home}.{name}"
            )  # `learn_on` trains one, too
    for room, (title, text) in PACKAGES.items():
        page = [
            HEAD.format(title=title, text=text, first=listed[room][0].rsplit(".", 1)[1])
            if listed[room]
            else ""
        ]
        page += [
            _entry(path)
            for path in sorted(listed[room], key=lambda path: path.rsplit(".", 1)[1].lower())
        ]
        _replace(HERE / "api" / f"{room}.md", "\n".join(page))


def _entry(path: str) -> str:
    name = path.rsplit(".", 1)[1]
    kind = "autoclass" if isinstance(getattr(tokensieve, name), type) else "autofunction"
    members = "\n:members:\n" if kind == "autoclass" else "\n"
    return f"\n## {name}\n\n```{{eval-rst}}\n.. {kind}:: {path}{_indented(members)}```\n"


def _indented(text: str) -> str:
    return "".join(f"   {line}\n" if line else "\n" for line in text.splitlines())


def _replace(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def signature(
    app: Any, what: str, name: str, obj: Any, options: Any, given: str, returned: str
) -> Iterable[Any] | None:
    """Annotations without the package's own prefixes."""
    if not given:
        return None
    clean = re.sub(
        r"\b(tokensieve\.[a-z_.]+\.|numpy\.|typing\.|collections\.abc\.|pathlib\.)", "", given
    )
    return clean, returned


def visit_inline(self: Any, node: Any) -> None:
    """A formula within a line, as MathML."""
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    self.body.append(convert(node.astext()))
    raise SkipNode


def visit_block(self: Any, node: Any) -> None:
    """A formula on a line of its own, as MathML."""
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    self.body.append(convert(node.astext(), display="block"))
    raise SkipNode


def write_reference(app: Any) -> None:
    """The pages of commands and of files, from the code and from what the commands write."""
    from reference import commands_page, files_page

    _replace(HERE / "reference" / "commands.md", commands_page())
    _replace(HERE / "reference" / "files.md", files_page())


def setup(app: Any) -> None:
    """Hooks: generated pages before anything is read, docstrings before the sections are parsed."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("builder-inited", write_api)
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", bridge, priority=100)
    app.connect("autodoc-process-signature", signature)
