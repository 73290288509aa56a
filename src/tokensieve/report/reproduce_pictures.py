"""The reproduction's pictures: each view of an experiment's tables, and the paper's figures 1 to 3 side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from tokensieve.report.charts import INK, MUTED, Picture, finish
from tokensieve.reproduce.result import View
from tokensieve.reproduce.seeds import Result
from tokensieve.reproduce.shape import SYMBOLS
from tokensieve.reproduce.study import Reproduction

POINTS = 600  # token types in a picture
OURS, THEIRS = "#0d4a8f", "#a64200"
LINES = [OURS, THEIRS, "#3f8fd6", "#e08a3c", "#9aa0a8", INK]
SHEETS = {
    "two-layer": ("figure-1", "Figure 1 of the paper, ours: two layers of attention"),
    "synthetic": ("figure-2", "Figure 2 of the paper, ours: one layer, synthetic documents"),
    "one-layer": ("figure-3", "Figure 3 of the paper, ours: one layer, IMDB and Yelp"),
}
PANELS = "dot product of each token's embedding with p (left) and with v (right) against the posterior difference P(1|s) − P(0|s)"


def draw(study: Reproduction) -> dict[str, list[Picture]]:
    """Experiment → its pictures; under "" the paper's figures."""
    return {r.id: draw_result(r) for r in study.results} | {"": figures_of_the_paper(study.results)}


def draw_result(result: Result) -> list[Picture]:
    """A picture of each view of an experiment's tables under its default reading."""
    if result.default is None:
        return []
    first, tables = result.default.findings[0], result.default.tables
    return [
        _lines(view, tables) if view.by else _bins(view, tables[view.table], first.tables[view.points])
        for view in first.views
    ]


def figures_of_the_paper(results: Sequence[Result]) -> list[Picture]:
    """The paper's figures with its panels: a row per data set, p on the left and v on the right."""
    return [_sheet(result) for result in results if result.id in SHEETS and result.default is not None]


def _sheet(result: Result) -> Picture:
    name, title = SHEETS[result.id]
    assert result.default is not None
    first, tables = result.default.findings[0], result.default.tables
    rows: dict[str, list[dict[str, Any]]] = {}
    datasets: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    for view in (view for view in first.views if view.points):
        chart, data, _ = _layers(view, tables[view.table], first.tables[view.points], f"{view.name}-")
        whole = finish(chart, data, f"{view.title.rpartition(':')[0]}: {SYMBOLS[view.y]}", [])
        rows.setdefault(view.table, []).append({key: whole[key] for key in ("layer", "width", "height", "title")})
        datasets |= data
    many = len(result.default.findings)
    subtitle = [PANELS, f"bin means over {many} seeds with their range; bars: standard deviation over types"]
    top = {"text": title, "subtitle": subtitle, "anchor": "start", "offset": 16}
    panels = [{"hconcat": row, "spacing": 72, "bounds": "flush"} for row in rows.values()]
    spec: dict[str, Any] = {key: whole[key] for key in ("$schema", "config", "background") if key in whole}
    spec |= {"title": top, "vconcat": panels, "datasets": datasets}
    return Picture(name, "figure", "", spec, subtitle[1], f"{title}: {PANELS}. {result.ours}.")


def _bins(view: View, bins: pl.DataFrame, tokens: pl.DataFrame) -> Picture:
    """Our bin means with their band and spread over a sample of the types; the paper's means on their own axis."""
    chart, data, caption = _layers(view, bins, tokens)
    first, last = bins.row(0, named=True), bins.row(-1, named=True)
    ends = " to ".join(f"{row[f'{view.y}_mean']:.3g} at {row['x']:.3g}" for row in (first, last))
    description = f"{view.title}: bin means of {view.y} from {ends}."
    return Picture(view.name, view.y, "", finish(chart, data, view.title, caption), "; ".join(caption), description)


def _layers(
    view: View, bins: pl.DataFrame, tokens: pl.DataFrame, prefix: str = ""
) -> tuple[Any, dict[str, list[dict[str, Any]]], list[str]]:
    """Chart, its data sets (names begin with `prefix`), and the caption's lines."""
    of, theirs = view.y, f"paper_{view.y}"
    sample = tokens.gather_every(max(1, -(-tokens.height // POINTS)))
    mean, spread = pl.col(f"{of}_mean"), pl.col(f"{of}_sd")
    rows = bins.select(
        "x", "few", mean=mean, low=mean - spread, high=mean + spread, least=f"{of}_low", most=f"{of}_high"
    )
    data: dict[str, list[dict[str, Any]]] = {
        f"{prefix}points": sample.select(x=view.x, y=pl.col(of).round(4)).drop_nans().to_dicts(),
        f"{prefix}bins": rows.to_dicts(),
    }
    across = alt.X("x:Q", title=view.x.replace("_", " "), scale=alt.Scale(nice=False, padding=12))
    # one scale for points, bars and line: all name the same title
    up: dict[str, Any] = {"title": f"ours: {SYMBOLS[of]}", "scale": alt.Scale(zero=False)}
    base = alt.Chart(alt.NamedData(f"{prefix}bins")).encode(x=across)
    dots = alt.Color("few:N", legend=None, scale=alt.Scale(domain=[False, True], range=[OURS, "#ffffff"]))
    chart: Any = alt.layer(
        alt.Chart(alt.NamedData(f"{prefix}points")).mark_circle(color=MUTED, opacity=0.25, size=14).encode(
            x=across, y=alt.Y("y:Q", **up)
        ),
        base.mark_area(color=OURS, opacity=0.22).encode(y=alt.Y("least:Q", **up), y2="most:Q"),
        base.mark_rule(color=OURS, strokeWidth=1.6, opacity=0.7).encode(y=alt.Y("low:Q", **up), y2="high:Q"),
        base.mark_line(color=OURS, strokeWidth=2.5).encode(y=alt.Y("mean:Q", **up)),
        base.mark_point(stroke=OURS, filled=True, opacity=1, size=36).encode(y=alt.Y("mean:Q", **up), fill=dots),
    )  # fmt: skip
    seeds = int(bins["seeds"].max())  # type: ignore[arg-type]
    caption = [f"mean ± standard deviation over types, {tokens.height:,} types in {bins.height} bins"]
    if seeds > 1:
        caption.append(f"band: range of the bin means over {seeds} seeds; points: types of the first")
    if bins["few"].any():
        caption.append("hollow: bins of one or two types in some seed")
    if theirs in bins.columns:
        data[f"{prefix}paper"] = bins.select("x", y=theirs).to_dicts()
        axis = alt.Axis(title="the paper (dashed)", titleColor=THEIRS, orient="right", grid=False)
        paper = alt.Chart(alt.NamedData(f"{prefix}paper")).encode(
            x=across, y=alt.Y("y:Q", axis=axis, scale=alt.Scale(zero=False))
        )
        dashed = paper.mark_line(color=THEIRS, strokeDash=[6, 4], strokeWidth=1.6)
        points = paper.mark_point(color=THEIRS, shape="diamond", filled=True, opacity=1, size=44)
        chart = alt.layer(chart, alt.layer(dashed, points)).resolve_scale(y="independent")
        caption.append("the paper's means are diamonds, on the right axis")
    return chart, data, caption


def _lines(view: View, tables: Mapping[str, pl.DataFrame]) -> Picture:
    """Lines of y against x, one for each value of `by`: means over seeds with their range."""
    rows = tables[view.table]
    over = rows.group_by(view.by, view.x, maintain_order=True).agg(
        mean=pl.mean(view.y), least=pl.min(view.y), most=pl.max(view.y)
    )
    data = over.select("mean", "least", "most", x=view.x, by=pl.col(view.by).cast(pl.String)).to_dicts()
    scale = alt.Scale(type="log" if view.log_x else "linear", nice=False, padding=12)
    up: dict[str, Any] = {"title": view.y.replace("_", " "), "scale": alt.Scale(zero=False, padding=12)}
    base = alt.Chart(alt.NamedData("lines")).encode(
        x=alt.X("x:Q", title=view.x.replace("_", " "), scale=scale),
        color=alt.Color(
            "by:N", scale=alt.Scale(range=LINES), legend=alt.Legend(title=None, orient="bottom", columns=3)
        ),
    )
    chart = alt.layer(
        base.mark_area(opacity=0.15).encode(y=alt.Y("least:Q", **up), y2="most:Q"),
        base.mark_line(strokeWidth=2.3, point=True).encode(y=alt.Y("mean:Q", **up)),
    )
    caption = f"{rows.height} measurements over {rows['seed'].n_unique()} seeds: means and range"
    ends = ", ".join(
        f"{group}: {part['mean'][0]:.3g} to {part['mean'][-1]:.3g}"
        for (group,), part in over.group_by(view.by, maintain_order=True)
    )
    spec = finish(chart, {"lines": data}, view.title, [caption])
    return Picture(view.name, view.y, "", spec, caption, f"{view.title}. {ends}.")
