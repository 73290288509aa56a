"""The interactive part of the audit's page: its HTML, and the data for its scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.report.blocks import InteractiveAudit
from tokensieve.report.live.model import documents_block, model_block, tokenizer_for_page
from tokensieve.report.live.packing import LONGEST_TOKEN, Json, packed, shortened
from tokensieve.report.live.samples import context_lines, sample_documents
from tokensieve.report.live.table import rows_per_class, table_block
from tokensieve.report.pictures.frame import BLUE, DARK, GREY, ORANGE, PALE_BLUE, PALE_GREY
from tokensieve.report.pictures.tokens import CATEGORIES
from tokensieve.task.agreement import QUADRANTS
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.vocabulary import Vocabulary

LINKS = [
    ("pictures", "Map"),
    ("table", "Tokens"),
    ("documents", "Documents"),
    ("box", "Try a text"),
]
QUADRANT_COLOURS = dict(zip(QUADRANTS, (BLUE, PALE_BLUE, ORANGE, GREY, PALE_GREY), strict=True))
TAG_CHARACTERS = 2_000  # of the HTML around the blocks
LONGEST_NOTE = "x" * 200  # stands for the note on types left out, while sizes are measured
NOTE_CHARACTERS = 1_000  # more than any note on types left out takes, packed
MIN_SHRINKING = 0.98  # of the size that would fit if all types took equal space


def context(audit: InteractiveAudit) -> Json:
    """The variables of this folder's template."""
    n_types = audit.tokens.height // len(audit.classes)
    n_rows = rows_per_class(audit)
    thinned = ""
    if n_types > n_rows:
        thinned = (
            f"This table lists {n_rows:,} of {n_types:,} token types: those named elsewhere on "
            "this page, the extremes, and a sample of the rest. tokens.csv lists all of them."
        )
    return {
        "classes": audit.classes,
        "label": audit.classes.index(audit.first_class),
        "pairs": not audit.learned.task.classifies,
        "thinned": thinned,
    }


def data_blocks(audit: InteractiveAudit, characters: Callable[[], int]) -> dict[str, str]:
    """Name → data that the script reads; together at most `characters()`.

    Of the model, as many types as fit are kept.
    """
    vocabulary = audit.learned.model.vocabulary
    assert vocabulary is not None, "a model of an audit has its vocabulary"
    table = table_block(audit)
    sample = sample_documents(audit, tokenizer_for_page(vocabulary) is not None)
    types = audit.tokens[: audit.tokens.height // len(audit.classes)]
    order = _types_by_need(types, sample.types)
    blocks = {
        "table": table.block,
        "colours": packed({"dark": DARK, "colours": CATEGORIES | QUADRANT_COLOURS}),
        "lines": _lines_block(audit),
    }
    cut = _Cut(audit, vocabulary, order, sample.documents, table.types)
    # most often the whole model fits, and the documents are packed once
    documents = cut.documents(len(order), _left_out(types, order, len(order)))
    model = cut.model(len(order))
    budget = characters() - sum(map(len, blocks.values())) - TAG_CHARACTERS
    if len(documents) + len(model) + NOTE_CHARACTERS > budget:
        budget -= len(cut.documents(len(order), LONGEST_NOTE))
        n_kept, model = cut.fitting_model(model, budget)
        documents = cut.documents(n_kept, _left_out(types, order, n_kept))
    return blocks | {"documents": documents, "model": model}


@dataclass(frozen=True, eq=False)
class _Cut:
    """The blocks that hold as many types as the page has room for.

    Attributes:
        audit: what the page is of.
        vocabulary: of its model.
        order: the types, those that are needed most first.
        sample: the documents that are shown.
        tabled: the types in the page's table.
    """

    audit: InteractiveAudit
    vocabulary: Vocabulary
    order: Ints
    sample: Sequence[Json]
    tabled: Ints

    def documents(self, n_kept: int, note: str) -> str:
        """The documents, with the first of the ordered types."""
        kept = np.sort(self.order[:n_kept])
        return documents_block(self.audit, self.vocabulary, self.sample, kept, note)

    def model(self, n_kept: int) -> str:
        """The model of the first of the ordered types."""
        return model_block(self.audit, self.vocabulary, np.sort(self.order[:n_kept]), self.tabled)

    def fitting_model(self, whole: str, budget: int) -> tuple[int, str]:
        """The number of the ordered types that fit into the page's budget of bytes, and the packed
        model of these.

        `whole` is the model of all of them.
        """
        n_kept = len(self.order)
        block = whole
        while len(block) > budget and n_kept > 0:
            # everything else alone may exceed the budget, which then is negative
            smaller = int(MIN_SHRINKING * n_kept * budget / len(block))
            n_kept = max(min(smaller, n_kept - 1), 0)
            block = self.model(n_kept)
        return n_kept, block


def _types_by_need(types: pl.DataFrame, in_sample: Ints) -> Ints:
    """Types of the shown documents, then the others by training documents, most first.

    Of equals, words come before 2-grams before 3-grams. Cut anywhere, the list holds with every
    n-gram its words and its first n−1 words, since these are in at least as many documents. Types
    longer than `LONGEST_TOKEN`, and with them every n-gram that contains one, are not in it.
    """
    n_documents = types["documents"].to_numpy().astype(np.int64)
    is_in_sample = np.isin(np.arange(len(n_documents)), in_sample)
    order: Ints = np.lexsort((-n_documents, ~is_in_sample))
    is_short = (types["token"].str.len_chars() <= LONGEST_TOKEN).to_numpy()
    fitting: Ints = order[is_short[order]]
    return fitting


def _left_out(types: pl.DataFrame, order: Ints, n_kept: int) -> str:
    """A sentence that says which types the page's model leaves out."""
    left_out = []
    if n_kept < len(order):
        most_documents = types["documents"].to_numpy()[order[n_kept:]].max(initial=0)
        left_out.append(
            f"those in no text here and in at most {most_documents:,} training documents"
        )
    if len(order) < types.height:
        left_out.append(f"those longer than {LONGEST_TOKEN} characters")
    return " and ".join(left_out)


def _lines_block(audit: InteractiveAudit) -> str:
    """Keyword in context: all lines once, and for each token the places of its own among them."""
    lines_of = context_lines(audit)
    places: dict[Excerpt, int] = {}
    places_of = [
        [places.setdefault(line, len(places)) for line in lines] for lines in lines_of.values()
    ]
    written = [
        [line.row, audit.classes.index(line.label), line.before, line.token, line.after]
        for line in places
    ]
    tokens = [shortened(token) for token in lines_of]
    return packed({"tokens": tokens, "of": places_of, "lines": written})
