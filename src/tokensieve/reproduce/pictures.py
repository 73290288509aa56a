"""The experiments' pictures: bin means with error bars over a sample of the token types, and lines."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokensieve.report.charts import INK, MUTED, SIDES, Picture, finish

POINTS = 600
OURS, THEIRS = SIDES["completely positive"], SIDES["completely negative"]


def bin_picture(
    name: str,
    title: str,
    of: str,
    bins: pl.DataFrame,
    tokens: pl.DataFrame,
    theirs: pl.DataFrame | None = None,
    x: str = "posterior_difference",
) -> Picture:
    """Our bin means ± one standard deviation over types, over a sample of the types; the paper's means on their own axis.

    Args:
        name: file name without ending.
        title: heading.
        of: "value" or "score".
        bins: columns x, types, {of}_mean, {of}_sd.
        tokens: columns {x} and {of}.
        theirs: the paper's means: columns x and {of}.
        x: what the bins are bins of.
    """
    sample = tokens.gather_every(max(1, -(-tokens.height // POINTS)))
    data: dict[str, list[dict[str, Any]]] = {
        "points": sample.select(x=pl.col(x), y=pl.col(of).round(4)).drop_nans().to_dicts(),
        "bins": bins.select(
            "x",
            mean=f"{of}_mean",
            low=pl.col(f"{of}_mean") - pl.col(f"{of}_sd"),
            high=pl.col(f"{of}_mean") + pl.col(f"{of}_sd"),
        ).to_dicts(),
    }
    across = alt.X("x:Q", title=x.replace("_", " "), scale=alt.Scale(nice=False, padding=12))
    # one scale for points, bars and line: all three name the same title
    up: dict[str, Any] = {"title": f"ours: {of}", "scale": alt.Scale(zero=False)}
    line = alt.Chart(alt.NamedData("bins")).encode(x=across)
    ours = alt.layer(
        alt.Chart(alt.NamedData("points")).mark_circle(color=MUTED, opacity=0.25, size=14).encode(
            x=across, y=alt.Y("y:Q", **up)
        ),
        line.mark_rule(color=OURS, strokeWidth=1.6, opacity=0.7).encode(y=alt.Y("low:Q", **up), y2="high:Q"),
        line.mark_line(color=OURS, strokeWidth=2.5, point=alt.OverlayMarkDef(color=OURS, size=36)).encode(
            y=alt.Y("mean:Q", **up)
        ),
    )  # fmt: skip
    chart: Any = ours
    said = [f"mean ± standard deviation over types, {bins['types'].sum():,} types in {bins.height} bins"]
    if theirs is not None:
        data["paper"] = theirs.select("x", y=of).to_dicts()
        y = alt.Y("y:Q", axis=alt.Axis(title="paper (dashed)", titleColor=THEIRS, orient="right", grid=False),
                  scale=alt.Scale(zero=False))  # fmt: skip
        paper = alt.Chart(alt.NamedData("paper")).encode(x=across, y=y)
        chart = alt.layer(ours, paper.mark_line(color=THEIRS, strokeDash=[6, 4], strokeWidth=2.2)).resolve_scale(
            y="independent"
        )
        said.append("the paper's means are dashed, on the right axis")
    first, last = bins.row(0, named=True), bins.row(-1, named=True)
    ends = " to ".join(f"{row[f'{of}_mean']:.3g} at {row['x']:.3g}" for row in (first, last))
    told = f"{title}: bin means of {of} from {ends}"
    return Picture(name, of, "", finish(chart, data, title, said), said[0], told + ".")


def line_picture(name: str, title: str, rows: pl.DataFrame, x: str, y: str, by: str, log_x: bool = False) -> Picture:
    """Lines of y against x, one for each value of `by`."""
    data = rows.select(x=pl.col(x), y=pl.col(y), by=pl.col(by).cast(pl.String)).to_dicts()
    scale = alt.Scale(type="log" if log_x else "linear", nice=False, padding=12)
    palette = list(SIDES.values())
    chart = (
        alt.Chart(alt.NamedData("lines"))
        .mark_line(strokeWidth=2.3, point=True)
        .encode(
            x=alt.X("x:Q", title=x.replace("_", " "), scale=scale),
            y=alt.Y("y:Q", title=y.replace("_", " "), scale=alt.Scale(zero=False, padding=12)),
            color=alt.Color("by:N", scale=alt.Scale(range=[palette[0], palette[4], palette[1], palette[3], palette[2], INK]),
                            legend=alt.Legend(title=None, orient="bottom", columns=3)),
        )
    )  # fmt: skip
    said = f"{rows.height} measurements"
    ends = ", ".join(
        f"{group[0]}: {part[y][0]:.3g} to {part[y][-1]:.3g}" for group, part in rows.group_by(by, maintain_order=True)
    )
    return Picture(name, y, "", finish(chart, {"lines": data}, title, [said]), said, f"{title}. {ends}.")
