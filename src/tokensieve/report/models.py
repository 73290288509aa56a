"""Several models on the same documents: their page and its curve."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokensieve import __version__
from tokensieve.diagnose.comparing import Comparison
from tokensieve.escape import shown
from tokensieve.report.charts import INK, Picture, finish
from tokensieve.report.page import environment, source
from tokensieve.report.terminal_diagnose import LEARNED, last_names
from tokensieve.wording import signed

LISTED, NAMED = 20, 3
LEAST = 0.005  # smaller changes would be shown as 0.00


def render_comparison(found: Comparison) -> str:
    """The comparison as one page without scripts or requests."""
    first = found.diagnoses[0]
    changes = [
        {"before": before, "after": after, "lists": [("gained", _some(rows, 1)), ("lost", _some(rows, -1))]}
        for (before, after), rows in found.words.group_by("before", "after", maintain_order=True)
    ]
    changes = changes[-1:] + changes[:-1]  # from the first to the last, then step by step
    study = {
        "name": first.name, "version": __version__, "documents": first.documents, "classes": first.classes, "seed": first.seed,
        "settings": first.settings, "seconds": {one.model: sum(one.seconds.values()) for one in found.diagnoses},
    }  # fmt: skip
    picture = curve(found)
    return environment().get_template("models.html").render(
        study=study, command="diagnose", headline=headline(found), models=found.models.to_dicts(), changes=changes,
        learned=LEARNED, short=last_names(found.models["model"].to_list()), notes=found.notes, listed=100,
        figures=[{"source": source(picture), "picture": picture}],
    )  # fmt: skip


def _some(rows: pl.DataFrame, sign: int) -> list[dict[str, Any]]:
    return rows.filter(sign * pl.col("change") >= LEAST).head(LISTED).to_dicts()


def headline(found: Comparison) -> tuple[str, list[str], str]:
    """Up to three words that the last model uses more, or less, than the first, between what stands before and behind them."""
    short = last_names(found.models["model"].to_list())
    first, last = (shown(short[found.diagnoses[i].model], 40) for i in (0, -1))
    rows = found.words.filter(
        pl.col("before") == found.diagnoses[0].model, pl.col("after") == found.diagnoses[-1].model
    )
    for sign, how in ((1, "more"), (-1, "less")):
        if words := [row["token"] for row in _some(rows, sign)[:NAMED]]:
            return f"{last} uses ", words, f" {how} than {first} does."
    return "No word's use differs between these models by more than chance.", [], ""


def curve(found: Comparison) -> Picture:
    """Accuracy, AUC and the correlation of words alone, from model to model."""
    shown_ = (("accuracy", "accuracy"), ("AUC", "auc"), ("words alone against the data", "value"))
    short = last_names(found.models["model"].to_list())
    rows: list[dict[str, Any]] = [
        {
            "order": i,
            "model": short[row["model"]][-28:],
            "of": name,
            "y": row[of],
            "low": row[f"{of}_low"],
            "high": row[f"{of}_high"],
        }
        for i, row in enumerate(found.models.to_dicts())
        for name, of in shown_
        if row[of] == row[of] and row[f"{of}_low"] == row[f"{of}_low"]
    ]
    colour = alt.Color(
        "of:N", scale=alt.Scale(domain=[name for name, _ in shown_], range=["#0d4a8f", "#3f8fd6", "#e08a3c"]),
        legend=alt.Legend(title=None, orient="bottom", symbolOpacity=1),  # of the lines, not of the pale areas
    )  # fmt: skip
    base = alt.Chart(alt.NamedData("models")).encode(
        x=alt.X("model:N", sort=alt.SortField("order"), title=None, axis=alt.Axis(labelAngle=-30)), color=colour
    )
    chart = alt.layer(
        base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=None, scale=alt.Scale(zero=False)), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y="y:Q"),
        base.mark_circle(size=50, stroke=INK).encode(y="y:Q"),
    )
    spec = finish(chart, {"models": rows}, "From model to model", ["with 95% intervals"])
    listing = "; ".join(f"{row['model']}: {row['of']} {signed(row['y'])}" for row in rows)
    return Picture("curve", "curve", "", spec, f"{found.models.height} models", f"From model to model: {listing}.")
