"""Single tokens that all but decide a class."""

from __future__ import annotations

import polars as pl

from tokensieve.auditing.agreement import FLOOR
from tokensieve.data.importance import LEVEL
from tokensieve.escape import shown
from tokensieve.text.counts import Counts, Floats


def suspicious_tokens(
    table: pl.DataFrame, counts: Counts, neutral: Floats, rows: int = 10
) -> list[tuple[str, str, str]]:
    """Single tokens in at least 1 % of documents that all but decide a class, the surest first.

    The order is by how much of the way from neutral to certain the cautious end of the posterior difference goes. Of n-grams
    that share a word, the first stands for all.
    """
    floor = max(FLOOR, 0.01 * counts.n_documents)
    way = (pl.col("posterior_low") - pl.col("neutral")) / (1 - pl.col("neutral"))
    base = pl.DataFrame({"class": counts.classes, "neutral": neutral})
    found = table.lazy().filter(pl.col("documents") >= floor, pl.col("q_value") < LEVEL).join(base.lazy(), on="class")
    found = found.with_columns(way=way).filter(pl.col("way") > 0.5).sort("way", "token", descending=[True, False])
    out: list[tuple[str, str, str]] = []
    seen: set[str] = set()
    for row in found.collect().iter_rows(named=True):
        words = set(row["token"].split(" "))
        if words & seen:
            continue
        seen |= words
        share, pure = row["documents"] / counts.n_documents, row["class_documents"] / row["documents"]
        reason = f"occurs in {row['documents']:,} documents ({share:.1%}), {pure:.1%} of them {shown(row['class'], 40)}"
        out.append((row["token"], row["class"], reason))
        if len(out) == rows:
            break
    return out
