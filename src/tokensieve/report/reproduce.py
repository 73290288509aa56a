"""The reproduction of the paper: its summary, its Markdown table, its page and its pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from tokensieve.report.charts import INK, MUTED, SIDES, Picture, drawn, finish
from tokensieve.report.page import environment, source
from tokensieve.reproduce.result import NOT_REPRODUCED, NOT_RUN, REPRODUCED, Result, View

LISTED = 100
POINTS = 600  # token types in a picture
OURS, THEIRS = SIDES["completely positive"], SIDES["completely negative"]
TABLE_ROWS = 60  # of a table on the page; the whole is in its CSV file


@dataclass(frozen=True)
class Reproduction:
    """Everything that the files, the page and the terminal show of one `reproduce`.

    Attributes:
        name: what was reproduced, for people.
        results: one per experiment, in the paper's order.
        settings: name → value of every option that decides the results.
        seed: of every draw.
        version: of tokensieve.
        date: when it was finished, as ISO 8601.
        seconds: wall time of each stage; of the experiments the sum, also of those that an earlier run finished.
    """

    name: str
    results: list[Result]
    settings: dict[str, Any]
    seed: int
    version: str
    date: str
    seconds: dict[str, float]

    def tally(self) -> dict[str, int]:
        """Verdict → number of experiments."""
        count = Counter(result.verdict for result in self.results)
        return {verdict: count[verdict] for verdict in (REPRODUCED, NOT_REPRODUCED, NOT_RUN)}

    def to_dict(self) -> dict[str, Any]:
        """The summary: a row per experiment, and how it was made."""
        return {
            "experiments": [result.to_dict() for result in self.results], "verdicts": self.tally(), "settings": self.settings,
            "seed": self.seed, "version": self.version, "date": self.date, "seconds": self.seconds,
        }  # fmt: skip

    def markdown(self) -> str:
        """A table for a README: experiment, the paper's figures, ours, verdict, seconds."""
        rows = [("Experiment", "The paper", "Ours", "Verdict", "Seconds"), ("---", "---", "---", "---", "---:")]
        rows += [(r.id, r.paper, outcome(r), r.verdict, f"{r.seconds:.0f}") for r in self.results]
        lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
        most = self.settings.get("documents_at_most")
        capped = f" (a trial: at most {most} documents of each set)" if most else ""
        made = f"tokensieve {self.version}, scale {self.settings['scale']}{capped}, seed {self.seed}, {self.date}, "
        return "\n".join([*lines, "", f"{made}{self.seconds['total']:.0f} s in all."]) + "\n"


def outcome(result: Result) -> str:
    """What we found, or why nothing was run."""
    return result.ours or (result.notes[0] if result.notes else "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def render_reproduction(study: Reproduction) -> str:
    """The reproduction as one HTML page without scripts or requests: verdicts, figures, bins, notes, settings, citation."""
    return environment().get_template("reproduce.html").render(
        study=study,
        command="reproduce",
        outcome=outcome,
        marks={REPRODUCED: ("right", "✓"), NOT_REPRODUCED: ("wrong", "✗"), NOT_RUN: ("open", "–")},
        tally=study.tally(),
        figures={r.id: [{"source": source(p), "picture": p} for p in draw_result(r)] for r in study.results},
        tables={r.id: _short_tables(r) for r in study.results},
        listed=LISTED,
    )  # fmt: skip


def _short_tables(result: Result) -> list[dict[str, Any]]:
    """The tables of an experiment that fit a page; tables of token types are in files only."""
    return [
        {"name": name, "columns": table.columns, "rows": table.rows()}
        for name, table in result.tables.items()
        if 0 < table.height <= TABLE_ROWS and "token" not in table.columns
    ]


def picture_files(study: Reproduction) -> dict[str, bytes]:
    """File name → content of every picture, as SVG and as PNG."""
    return drawn([picture for result in study.results for picture in draw_result(result)])


def draw_result(result: Result) -> list[Picture]:
    """A picture of each view of an experiment's tables."""
    return [(_lines if view.by else _bins)(view, result.tables) for view in result.views]


def _bins(view: View, tables: Mapping[str, pl.DataFrame]) -> Picture:
    """Our bin means ± one standard deviation over types, over a sample of the types; the paper's means on their own axis."""
    bins, tokens, of = tables[view.table], tables[view.points], view.y
    sample = tokens.gather_every(max(1, -(-tokens.height // POINTS)))
    mean, spread = pl.col(f"{of}_mean"), pl.col(f"{of}_sd")
    data: dict[str, list[dict[str, Any]]] = {
        "points": sample.select(x=view.x, y=pl.col(of).round(4)).drop_nans().to_dicts(),
        "bins": bins.select("x", mean=mean, low=mean - spread, high=mean + spread).to_dicts(),
    }
    across = alt.X("x:Q", title=view.x.replace("_", " "), scale=alt.Scale(nice=False, padding=12))
    # one scale for points, bars and line: all three name the same title
    up: dict[str, Any] = {"title": f"ours: {of}", "scale": alt.Scale(zero=False)}
    line = alt.Chart(alt.NamedData("bins")).encode(x=across)
    chart: Any = alt.layer(
        alt.Chart(alt.NamedData("points")).mark_circle(color=MUTED, opacity=0.25, size=14).encode(
            x=across, y=alt.Y("y:Q", **up)
        ),
        line.mark_rule(color=OURS, strokeWidth=1.6, opacity=0.7).encode(y=alt.Y("low:Q", **up), y2="high:Q"),
        line.mark_line(color=OURS, strokeWidth=2.5, point=alt.OverlayMarkDef(color=OURS, size=36)).encode(
            y=alt.Y("mean:Q", **up)
        ),
    )  # fmt: skip
    caption = [f"mean ± standard deviation over types, {bins['types'].sum():,} types in {bins.height} bins"]
    if view.paper:
        data["paper"] = tables[view.paper].select("x", y=of).to_dicts()
        y = alt.Y("y:Q", axis=alt.Axis(title="paper (dashed)", titleColor=THEIRS, orient="right", grid=False),
                  scale=alt.Scale(zero=False))  # fmt: skip
        paper = alt.Chart(alt.NamedData("paper")).encode(x=across, y=y)
        dashed = paper.mark_line(color=THEIRS, strokeDash=[6, 4], strokeWidth=2.2)
        chart = alt.layer(chart, dashed).resolve_scale(y="independent")
        caption.append("the paper's means are dashed, on the right axis")
    first, last = bins.row(0, named=True), bins.row(-1, named=True)
    ends = " to ".join(f"{row[f'{of}_mean']:.3g} at {row['x']:.3g}" for row in (first, last))
    description = f"{view.title}: bin means of {of} from {ends}."
    return Picture(view.name, of, "", finish(chart, data, view.title, caption), caption[0], description)


def _lines(view: View, tables: Mapping[str, pl.DataFrame]) -> Picture:
    """Lines of y against x, one for each value of `by`."""
    rows = tables[view.table]
    data = rows.select(x=view.x, y=view.y, by=pl.col(view.by).cast(pl.String)).to_dicts()
    scale = alt.Scale(type="log" if view.log_x else "linear", nice=False, padding=12)
    palette = list(SIDES.values())
    chart = (
        alt.Chart(alt.NamedData("lines"))
        .mark_line(strokeWidth=2.3, point=True)
        .encode(
            x=alt.X("x:Q", title=view.x.replace("_", " "), scale=scale),
            y=alt.Y("y:Q", title=view.y.replace("_", " "), scale=alt.Scale(zero=False, padding=12)),
            color=alt.Color("by:N", scale=alt.Scale(range=[palette[0], palette[4], palette[1], palette[3], palette[2], INK]),
                            legend=alt.Legend(title=None, orient="bottom", columns=3)),
        )
    )  # fmt: skip
    caption = f"{rows.height} measurements"
    ends = ", ".join(
        f"{group}: {part[view.y][0]:.3g} to {part[view.y][-1]:.3g}"
        for (group,), part in rows.group_by(view.by, maintain_order=True)
    )
    spec = finish(chart, {"lines": data}, view.title, [caption])
    return Picture(view.name, view.y, "", spec, caption, f"{view.title}. {ends}.")
