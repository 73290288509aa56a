"""The audit as one HTML page that needs no network and no other file, and can be read without its scripts."""

from __future__ import annotations

import math
import shlex
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
import polars as pl
from markupsafe import Markup

from tokensieve import wording as numbers
from tokensieve.auditing.agreement import Quadrant
from tokensieve.auditing.checks import registry
from tokensieve.auditing.findings import Finding
from tokensieve.escape import named, shown, visible
from tokensieve.report import charts, data, headline, pairs, script
from tokensieve.report.model_card import card_view
from tokensieve.report.sentences import file_name, main_line

if TYPE_CHECKING:
    from tokensieve.auditing.documents import Example
    from tokensieve.auditing.result import Audit

CARDS, OPENED, MASKED = 9, 2, 12  # findings shown, those shown whole, tokens in a command
TABLED_CLASSES = 50
ROWS_IN_ALL = 300  # rows of the class tables together; each has 10 to 25
DISAGREEMENTS = 15
DOCUMENTS = 12
DOCUMENT_CHARACTERS = 3_000
DOCUMENT_PIECES = 800
ANSWER_ROWS = 12
RECALLED = 12
PAGE_BYTES = 4_950_000
LISTED = 100  # notes, settings, suspicious tokens
_FORMATS = (numbers.signed, numbers.plain, numbers.percent, numbers.count, numbers.chance, numbers.milli)
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they reverse what follows, until closed


@dataclass(frozen=True)
class Cut:
    """A long document's visible pieces and what was left out between them."""

    head: list[tuple[str, float, float, float]]
    left_out: int
    tail: list[tuple[str, float, float, float]]


def render(audit: Audit, pictures: list[charts.Picture] | None = None) -> str:
    """The audit's report: a pure function of the audit, under 5 MB for any number of documents and token types.

    All text of the data is escaped, isolated in its own writing direction and shortened where it is long; a
    Content-Security-Policy in the page lets its own scripts run, by their hashes, and forbids every other and every request.
    The table in the page holds up to 20,000 rows and the model as many token types as there is room for, most frequent first;
    the page says what it leaves out.

    Args:
        audit: the result of `tokensieve.audit`.
        pictures: of `charts.draw`, where they are drawn already.

    Returns:
        HTML, complete.
    """
    template, context = (
        environment().get_template("page.html"),
        _context(audit, charts.draw(audit) if pictures is None else pictures),
    )
    table, types = data.table_block(audit)
    order = data.model_order(audit)
    blocks = {
        "table": table,
        "colours": data.pack({"dark": charts.DARK, "colours": charts.COLOURS}),
        "lines": data.lines_block(audit),
        "documents": data.documents_block(audit, np.sort(order)),
        "model": "",
    }
    without = template.render(context, blocks=blocks, left_out="x" * 200)
    kept = data.model_block(audit, order, types, PAGE_BYTES - len(without.encode()))
    blocks |= {"model": kept.block, "documents": data.documents_block(audit, kept.types)}
    return template.render(context, blocks=blocks, left_out=kept.note)


def _context(audit: Audit, pictures: list[charts.Picture]) -> dict[str, Any]:
    """What the template needs, but for the blocks that the scripts read."""
    style, code = script.page_style(), script.page_script()
    return {
        "audit": audit,
        "study": audit,
        "command": "audit",
        "policy": Markup(script.policy(style, code)),
        "style": Markup(style),
        "script": Markup(code),
        "thinned": _thinned(audit),
        "binary": len(audit.classes) == 2,
        "recall": _recall(audit),
        "card_view": card_view(audit),
        "decided": _mask(audit, "--decisions decisions.json"),
        "interval": (audit.accuracy.low, audit.accuracy.high),
        "Quadrant": Quadrant,
        "main": main_line(audit),
        "opened": OPENED,
        "under": headline.under(audit),
        "titles": {check.name: check.title for check in registry()},
        "cards": [_card(audit, finding) for finding in audit.findings[:CARDS]],
        "over": []
        if audit.over_budget.is_empty()
        else audit.over_budget["token"].unique(maintain_order=True).to_list()[:12],
        "next_steps": _next_steps(audit),
        "tables": _class_tables(audit),
        "class_tables_left_out": max(0, len(audit.classes) - TABLED_CLASSES),
        "figures": [{"source": source(picture), "picture": picture} for picture in pictures],
        "pictured": charts.pictured_classes(audit),
        "attended": _table(audit, audit.disagreement(Quadrant.MODEL, DISAGREEMENTS)),
        "ignored": _table(audit, audit.disagreement(Quadrant.DATA, DISAGREEMENTS)),
        "documents": [_document(e) for e in audit.examples[:DOCUMENTS]],
        "listed": LISTED,
        "pairs": _pairs(audit),
    }


def _pairs(audit: Audit) -> dict[str, Any] | None:
    """What the page says of preference pairs, where documents are the sides of pairs."""
    if audit.pairs is None:
        return None
    return {"lead": pairs.lead(audit), "sentence": pairs.model_sentence(audit), "tables": pairs.win_tables(audit)}


def _thinned(audit: Audit) -> str:
    """What the page's table leaves out, in words."""
    types, rows = audit.tokens.height // len(audit.classes), data.rows_per_class(audit)
    if types <= rows:
        return ""
    return (
        f"{rows:,} of {types:,} token types are in this table: those named elsewhere in this page, those at the"
        " extremes of effect, posterior difference, documents, score, value or attention, and a sample of the rest."
    )


@cache
def environment() -> jinja2.Environment:
    """The templates of this folder, with everything escaped; compiled once."""
    out = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    out.filters.update({f.__name__: f for f in (shown, file_name, one_line, given, *_FORMATS)})
    out.tests["turning"] = lambda text: not _TURNS.isdisjoint(text)
    return out


def source(picture: charts.Picture) -> str:
    """The picture as a data address: nothing in it can touch the page, and it follows the page's light or dark."""
    return "data:image/svg+xml;base64," + b64encode(picture.svg(follow_theme=True).encode()).decode()


def _recall(audit: Audit) -> list[tuple[str, float]]:
    """Share of right answers by class, at most 12 classes, lowest first; nothing for two classes of like size."""
    known = [(name, share) for name, share in audit.class_recall.items() if share is not None]
    sizes = audit.class_documents.values()
    if len(audit.classes) == 2 and max(sizes) <= 1.5 * min(sizes):
        return []
    return sorted(known, key=lambda pair: pair[1])[:RECALLED]


def _card(audit: Audit, finding: Finding) -> dict[str, Any]:
    """What the page shows of one finding."""
    words = finding.maskable[:MASKED] if finding.kind == "shortcut" else []
    return {
        "finding": finding,
        "title": finding.title,
        "headline": finding.headline,
        "evidence": finding.details,
        "action": finding.action,
        "command": words and _mask(audit, *(f"--token {shlex.quote(shown(token, 40))}" for token in words)),
        "lines": 3 if finding.kind == "labels" else 2,
        "on_train": finding.kind == "labels",
    }


def _mask(audit: Audit, *what: str) -> list[str]:
    """The command that cuts something out, in parts that stay together on a line."""
    sides = [f"--pairs {shlex.quote(','.join(audit.pairs.columns))}"] if audit.pairs else []
    return [f"tokensieve mask {_source(audit.name)}", *sides, *what, "--out masked.csv"]


def _source(name: str) -> str:
    """The source as a command names it: its file, or SOURCE where it was none."""
    last = shown(file_name(name))
    return shlex.quote(last) if "." in last and " " not in last else "SOURCE"


def one_line(text: str) -> str:
    """Text of a document on one line, with nothing in it that turns the writing direction or cannot be seen."""
    words = named(" ".join(text.split()))
    return f"{' ' * text[:1].isspace()}{words}{' ' * text[-1:].isspace()}" if words else text and " "


def given(settings: Any) -> list[tuple[str, str]]:
    """The settings that were given, in words: none that is None or empty, no list in brackets, no folder of a path."""
    out = []
    for name, value in (settings if isinstance(settings, dict) else settings.to_dict()).items():
        if value is None or value == [] or name in ("seed", "version"):
            continue
        words = {True: "yes", False: "no"}.get(value) if isinstance(value, bool) else None
        listed = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        out.append((name.replace("_", " "), words or file_name(listed)))
    return out


def _next_steps(audit: Audit) -> list[str]:
    """What the numbers suggest to do, in plain words."""
    low, high = audit.accuracy.low, audit.accuracy.high
    steps = []
    if low <= audit.majority_accuracy:
        steps.append(
            "The model is not clearly better than always answering the largest class: tokens alone may not decide these"
            " labels, or there are too few documents. Draw no conclusion from single tokens yet."
        )
    if audit.baseline_accuracy is not None and high < audit.baseline_accuracy:
        points = 100 * (audit.baseline_accuracy - audit.test_accuracy)
        steps.append(
            f"The baseline is {points:.1f} points better than this model: read the model's answers with that in mind,"
            " and try longer n-grams, or a smaller floor on the documents that a token needs."
        )
    return steps


def _class_tables(audit: Audit) -> list[dict[str, Any]]:
    labels = audit.classes
    if len(labels) > TABLED_CLASSES:
        largest = set(sorted(labels, key=lambda c: -audit.class_documents[c])[:TABLED_CLASSES])
        labels = tuple(c for c in labels if c in largest)
    rows = min(25, max(10, ROWS_IN_ALL // len(labels)))
    return [{"label": label, **_table(audit, audit.top(label, rows))} for label in labels]


def _table(audit: Audit, rows: pl.DataFrame) -> dict[str, Any]:
    """Rows to print, the axis of their effects, decimals for three digits of the largest, the class drawn orange."""
    peak = 1000 * float(rows["effect"].abs().max() or 0) if rows.height else 0.0  # type: ignore[arg-type]
    digits = min(8, max(2, 2 - math.floor(math.log10(peak)))) if peak > 0 else 2
    orange = audit.classes[0] if len(audit.classes) == 2 else None
    return {"rows": rows.to_dicts(), "scale": _scale(rows), "digits": digits, "orange": orange}


def _scale(rows: pl.DataFrame) -> tuple[float, float]:
    """Start and width of the axis on which a table's effects are drawn; zero is on it."""
    if rows.is_empty():
        return 0.0, 1.0
    start = min(0.0, *rows["effect_low"].to_list(), *rows["effect"].to_list())
    end = max(0.0, *rows["effect_high"].to_list(), *rows["effect"].to_list())
    return start, (end - start) or 1.0


def _document(example: Example) -> dict[str, Any]:
    tokens = example.tokens.sort(pl.col("contribution").abs(), descending=True, maintain_order=True)
    rest = tokens[ANSWER_ROWS:]
    return {
        "example": example,
        "cut": cut(example.pieces),
        "peak": max((abs(p[1]) for p in example.pieces), default=0.0) or 1.0,
        "rows": tokens[:ANSWER_ROWS].to_dicts(),
        "rest": rest.height,
        "rest_contribution": float(rest["contribution"].sum()),
        "rest_attention": float(rest["attention"].sum()),
        "sum": float(tokens["contribution"].sum()),
        "attention": float(tokens["attention"].sum()),
    }


def cut(pieces: list[tuple[str, float, float, float]]) -> Cut:
    """The pieces of a document to show: all, or 1,500 characters (at most 400 pieces) of each end."""
    ends = list(accumulate(len(p[0]) for p in pieces))
    total = ends[-1] if ends else 0
    if total <= DOCUMENT_CHARACTERS and len(pieces) <= DOCUMENT_PIECES:
        return Cut([_written(p, 0, len(p[0])) for p in pieces], 0, [])
    half = DOCUMENT_PIECES // 2
    first = min(DOCUMENT_CHARACTERS // 2, ends[min(half, len(ends)) - 1])
    last = max(total - DOCUMENT_CHARACTERS // 2, ends[-half - 1] if len(ends) > half else 0, first)
    head, tail = [], []
    for piece, end in zip(pieces, ends, strict=True):
        start = end - len(piece[0])
        if start < first:
            head.append(_written(piece, 0, first - start))
        if end > last:
            tail.append(_written(piece, max(0, last - start), len(piece[0])))
    return Cut(head, last - first, tail)


def _written(piece: tuple[str, float, float, float], start: int, end: int) -> tuple[str, float, float, float]:
    """Part of a piece; line breaks and tabs stay, other control characters are made visible."""
    lines = piece[0][start:end].replace("\r\n", "\n").split("\n")
    text = "\n".join("\t".join(visible(part) for part in line.split("\t")) for line in lines)
    return (text, *piece[1:])
