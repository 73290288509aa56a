"""Phase diagrams: what becomes of the flow over sizes, step sizes and relaxed hypotheses, drawn
from a sweep."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from theory_docs.sweep import Sweep
from tokensieve.errors import InputError

FIGURES = {
    "limit_dimension_v": "dim V, directions that stay finite",
    "tied_share": "share of documents with tied tokens",
    "limit_one_sided_selected": "documents that select a one-sided token",
    "limit_angle_times_norm": "limit of angle · |p|",
}
SHADES = ["#0d4a8f", "#e08a3c", "#3f8fd6", "#a64200", "#5b626c", "#9aa0a8"]


def phase_table(sweep: Sweep, x: str, by: str | None = None) -> pl.DataFrame:
    """Mean, standard deviation and number of decided runs of each figure of `FIGURES`, for each
    value of `x` (and of `by`).

    Columns: x, by, figure, mean, sd (over seeds; null for one), runs, undecided (runs without the
    figure).

    Args:
        sweep: from `run_sweep`.
        x: a field of `Case` that the sweep varies.
        by: another, or None.

    Raises:
        InputError: a name that is no field of the rows.
    """
    rows = pl.DataFrame(sweep.rows, infer_schema_length=None)
    for name in filter(None, (x, by)):
        if name not in rows.columns:
            raise InputError(
                f"the sweep has no column {name!r}: it has {', '.join(rows.columns[:13])}, …"
            )
    for name in FIGURES:
        if name not in rows.columns:
            rows = rows.with_columns(pl.lit(None, pl.Float64).alias(name))
    lines = pl.lit("") if by is None else pl.col(by).cast(pl.String)
    wide = rows.select(*FIGURES, x=pl.col(x), by=lines)
    long = wide.unpivot(
        list(FIGURES), index=["x", "by"], variable_name="figure", value_name="value"
    )
    found = pl.col("value").drop_nulls()
    return long.group_by("x", "by", "figure", maintain_order=True).agg(
        mean=found.mean(), sd=found.std(), runs=found.len(), undecided=pl.col("value").null_count()
    )


def phase_pictures(sweep: Sweep, x: str, by: str | None = None) -> dict[str, alt.LayerChart]:
    """Charts by file name: each figure against `x`, a line for each value of `by`, with bars of one
    standard deviation over seeds.

    Args:
        sweep, x, by: as `phase_table`.
    """
    table = phase_table(sweep, x, by)
    return {
        f"phase-{figure.removeprefix('limit_').replace('_', '-')}": _chart(
            table.filter(pl.col("figure") == figure).drop_nulls("mean"), figure, x, by
        )
        for figure in FIGURES
        if table.filter(pl.col("figure") == figure)["runs"].sum()
    }


def _chart(table: pl.DataFrame, figure: str, x: str, by: str | None) -> alt.LayerChart:
    sd = table["sd"].fill_null(0.0)
    rows = table.select("x", "by", "mean", low=table["mean"] - sd, high=table["mean"] + sd)
    values = np.unique(table["x"].to_numpy().astype(float))
    wide = values.min() > 0 and values.max() / values.min() >= 30
    across = alt.X(
        "x:Q", title=x, scale=alt.Scale(type="log" if wide else "linear", zero=False, padding=12)
    )
    names = table["by"].unique(maintain_order=True).to_list()
    colour = alt.Color(
        "by:N",
        legend=None if by is None else alt.Legend(title=by, orient="bottom"),
        scale=alt.Scale(domain=names, range=SHADES),
    )
    base = alt.Chart(alt.Data(values=rows.to_dicts())).encode(x=across, color=colour)
    up = alt.Y("mean:Q", title=FIGURES[figure])
    runs, undecided = int(table["runs"].sum()), int(table["undecided"].sum())
    caption = f"{runs:,} runs; bars: one standard deviation over seeds"
    return alt.layer(
        base.mark_line(strokeWidth=2).encode(y=up),
        base.mark_rule(strokeWidth=1.5).encode(
            y=alt.Y("low:Q", title=FIGURES[figure]), y2="high:Q"
        ),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=up),
        title=alt.Title(
            FIGURES[figure],
            subtitle=caption + f"; {undecided:,} without this figure" * bool(undecided),
        ),
        width=420,
        height=260,
    )
