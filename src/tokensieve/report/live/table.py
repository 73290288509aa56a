"""The page's part of the token table, and the bin means of its map."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints
from tokensieve.report.blocks import InteractiveAudit
from tokensieve.report.live.packing import LONGEST_TOKEN, Arrays, Json, packed, shortened
from tokensieve.report.pictures.tokens import CATEGORIES, EXTREMES, bins_of, sample_with_extremes
from tokensieve.task.agreement import QUADRANTS

MAX_ROWS = 20_000  # for all classes together, so that the page stays below 5 MB
# The axis of effects is linear up to the largest effect over this number, and logarithmic beyond.
BEND = 100.0
PER_CLASS = (
    "posterior_low posterior_high alpha alpha_low alpha_high effect effect_low effect_high "
    "p_value q_value value"
).split()
NOT_IN_PAGE = ("units", "stability", "heterogeneity_q")  # columns of tokens.csv
MIRRORED_CATEGORIES = [
    4,
    3,
    2,
    1,
    0,
    5,
]  # the place of each category for the class on the other side
SHARED_TYPES = {"documents": "<u4", "count": "<u4", "score": "<f4", "attention": "<f4"}
CLASS_TYPES = {
    "class_documents": "<u4",
    "count_difference": "<i4",
    **dict.fromkeys(PER_CLASS, "<f4"),
}


@dataclass(frozen=True)
class TableBlock:
    """The packed table, and the token types in it, sorted."""

    block: str
    types: Ints


def rows_per_class(audit: InteractiveAudit) -> int:
    """The number of rows of each class in the table; of two classes, only the second is in it."""
    n_classes = len(audit.classes)
    n_shown = n_classes if n_classes > 2 else 1
    return min(MAX_ROWS // n_shown, audit.tokens.height // n_classes)


def table_block(audit: InteractiveAudit) -> TableBlock:
    """The page's part of the token table, in which all types of the first class come first."""
    n_types = audit.tokens.height // len(audit.classes)
    limit = rows_per_class(audit)
    # the first of two classes is the mirror of the second
    first = 1 if len(audit.classes) == 2 else 0
    tables: dict[int, pl.DataFrame] = {}
    shown: dict[int, pl.DataFrame] = {}
    for k in range(first, len(audit.classes)):
        tables[k] = audit.tokens[k * n_types : (k + 1) * n_types].with_row_index("type")
        shown[k] = _page_rows(audit, tables[k], audit.classes[k], limit)
    types = np.unique(np.concatenate([rows["type"].to_numpy() for rows in shown.values()]))
    types = types.astype(np.int64)
    shared = audit.tokens[:n_types][types]
    arrays: Arrays = {
        name: shared[name].to_numpy().astype(kind) for name, kind in SHARED_TYPES.items()
    }
    arrays["quadrant"] = _positions_in(shared["quadrant"], list(QUADRANTS))
    views = []
    for k, rows in shown.items():
        arrays |= _class_arrays(k, rows, types)
        views.append(_view(k, tables[k]))
    meta = _meta(audit, shared["token"].to_list())
    meta["views"] = views
    return TableBlock(packed(meta, arrays), types)


def _page_rows(audit: InteractiveAudit, side: pl.DataFrame, label: str, limit: int) -> pl.DataFrame:
    """Choose at most `limit` rows of a class: those named elsewhere, the extreme ones, and a
    sample."""
    if side.height <= limit:
        return side
    names = {*audit.top_tokens[label], *audit.disagreeing, *audit.maskable}
    named = side.filter(pl.col("token").is_in(list(names)))[: limit // 4]
    unnamed = side.filter(~pl.col("type").is_in(named["type"].to_list()))
    columns = (*EXTREMES, "score", "value", "attention")
    sample = sample_with_extremes(unnamed, limit - named.height, columns, audit.seed)
    return pl.concat([named, sample]).sort("type")


def _class_arrays(k: int, rows: pl.DataFrame, types: Ints) -> Arrays:
    """The columns of one class, and the place of each row's type in `types`."""
    arrays: Arrays = {f"at.{k}": np.searchsorted(types, rows["type"].to_numpy()).astype("<u4")}
    for name, kind in CLASS_TYPES.items():
        arrays[f"{name}.{k}"] = rows[name].to_numpy().astype(kind)
    arrays[f"category.{k}"] = _positions_in(rows["category"], list(CATEGORIES))
    return arrays


def _positions_in(names: pl.Series, known: list[str]) -> NDArray[np.uint8]:
    return names.cast(pl.Enum(known)).to_physical().to_numpy().astype("u1")


def _view(k: int, side: pl.DataFrame) -> Json:
    """The data for the map of a class beside its rows: its axis of effects, and its bin means."""
    spread = float(side["effect"].abs().max() or 1.0)  # type: ignore[arg-type]
    return {"class": k, "spread": spread, "bend": spread / BEND, "bins": _bin_means(side, spread)}


def _bin_means(side: pl.DataFrame, largest: float) -> dict[str, list[Json]]:
    """The mean value and mean score of token types, in bins of posterior difference and of effect.

    Keys are "posterior_difference:value", …; each row has the middle `x` of a bin and the mean.

    Effects e spread over many orders of magnitude. So their bins are equally wide on the axis that
    the page draws, sign(e) log(1 + |e|/bend) / log(1 + BEND), linear for |e| below `bend`,
    logarithmic beyond, and ±1 for the largest |e|. The x of a bin is turned back into an effect.

    Args:
        side: the token types of one class, from the table of the page.
        largest: of the |e| among them; positive.
    """
    bend = largest / BEND
    end = math.log1p(BEND)
    effect = pl.col("effect")
    on_axis = side.with_columns(effect=effect.sign() * (effect.abs() / bend).log1p() / end)
    x = pl.col("x")
    effect_at_x = x.sign() * bend * ((x.abs() * end).exp() - 1)
    means = {}
    for column in ("value", "score"):
        by_difference = bins_of(side, "posterior_difference", column)
        by_effect = bins_of(on_axis, "effect", column).with_columns(x=effect_at_x)
        means[f"posterior_difference:{column}"] = by_difference.to_dicts()
        means[f"effect:{column}"] = by_effect.to_dicts()
    return means


def _meta(audit: InteractiveAudit, tokens: list[str]) -> Json:
    """Facts about the audit, and about the tokens in the table, for the scripts of the page."""
    return {
        "key": _decisions_key(audit),
        "label": audit.classes.index(audit.first_class),
        "classes": list(audit.classes),
        "classDocuments": [audit.class_documents[name] for name in audit.classes],
        "neutral": [audit.neutral[name] for name in audit.classes],
        "types": audit.token_types,
        "quadrants": QUADRANTS,
        "categories": list(CATEGORIES),
        "turned": MIRRORED_CATEGORIES,
        "perClass": PER_CLASS,
        "columns": [name for name in audit.tokens.columns if name not in NOT_IN_PAGE],
        "tokens": [shortened(token) for token in tokens],
        "shortened": [
            [i, len(token)] for i, token in enumerate(tokens) if len(token) > LONGEST_TOKEN
        ],
    }


def _decisions_key(audit: InteractiveAudit) -> str:
    """The key under which a browser stores a reader's decisions; equal for the same data and
    settings."""
    decisions = [
        audit.name,
        audit.classes,
        audit.documents,
        audit.class_documents,
        audit.token_types,
        audit.seed,
    ]
    return sha256(json.dumps(decisions).encode()).hexdigest()[:16]
