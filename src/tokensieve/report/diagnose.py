"""A diagnosis's pictures, and its page."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokensieve.auditing.agreement import QUADRANTS
from tokensieve.auditing.points import thin
from tokensieve.diagnose.diagnosing import Diagnosis
from tokensieve.diagnose.verdict import signed
from tokensieve.escape import shown
from tokensieve.report.charts import (
    INK,
    MUTED,
    POINTS_PER_PICTURE,
    SIDES,
    Picture,
    back_to_front,
    cloud,
    drawn,
    finish,
    name_rows,
    names,
)
from tokensieve.report.page import environment, source
from tokensieve.report.terminal_diagnose import length_line, measure_name, said

ROWS = 15
LISTED = 100
MEASURES = {
    "value": "answer to the word alone",
    "deletion": "loss of the answer without the word",
    "attention": "attention received (1 = its share)",
}
FILES = ("correlations", *MEASURES)


def diagnose_pictures(found: Diagnosis) -> dict[str, bytes]:
    """File name → content, each picture of a diagnosis as SVG and as PNG."""
    return drawn(draw(found))


def render_diagnosis(found: Diagnosis) -> str:
    """A diagnosis as one HTML page without scripts or requests: verdict, correlations, words, pictures, settings.

    All text of the data is escaped, isolated in its own writing direction and shortened where it is long.
    """
    return environment().get_template("diagnose.html").render(
        study=found,
        command="diagnose",
        correlations=[_row(found, name) for name in found.correlation],
        length=length_line(found),
        leaning=found.leaning.head(ROWS).to_dicts(),
        quadrants=_quadrants(found),
        disagreements=_disagreements(found),
        tables=[(label, _top(found, label)) for label in found.classes[:8]],
        special=[(f"layer {i + 1}", x) for i, x in enumerate(found.on_special[:-1])],
        special_rolled=found.on_special[-1:],
        figures=[{"source": source(picture), "picture": picture} for picture in draw(found)],
        listed=LISTED,
    )  # fmt: skip


def draw(found: Diagnosis) -> list[Picture]:
    """Correlations beside their baselines; value, deletion effect and attention (where there is one) against importance."""
    out = [_correlations(found)]
    label = found.classes[1]
    tokens = found.tokens.filter(pl.col("class") == label)
    return out + [_scatter(found, tokens, label, of) for of in MEASURES if of in tokens.columns]


def _row(found: Diagnosis, name: str) -> dict[str, str]:
    kind = "attention_importance" if name.startswith("attention") else "value_importance"
    ends = found.shuffled_labels.get(name)
    return {
        "measure": measure_name(name),
        "model": said(found.correlation[name]),
        "untrained": said(found.untrained[name]) if name in found.untrained else "–",
        "shuffled": f"{signed(ends[0])} … {signed(ends[1])}" if ends else "–",
        "frequency": signed(found.frequency[kind].rho),
    }


def _top(found: Diagnosis, label: str) -> list[dict[str, Any]]:
    """The words that the data says speak most surely for a class."""
    mine = found.tokens.filter(pl.col("class") == label, pl.col("q_value") < 0.05, pl.col("effect") > 0)
    return mine.sort("posterior_low", "token", descending=[True, False]).head(ROWS).to_dicts()


def _quadrants(found: Diagnosis) -> dict[str, int]:
    """Words in each quadrant; empty without attention."""
    if "quadrant" not in found.tokens.columns:
        return {}
    sizes = dict(found.tokens.group_by("quadrant").agg(pl.col("token").n_unique()).iter_rows())
    return {name: sizes.get(name, 0) for name in QUADRANTS}


def _disagreements(found: Diagnosis) -> dict[str, list[str]]:
    """Words of the two disagreeing quadrants: ignored ones by effect, attended ones without evidence by attention."""
    if "quadrant" not in found.tokens.columns:
        return {}
    out = {}
    for name, by in ((QUADRANTS[1], "effect"), (QUADRANTS[2], "attention")):
        rows = found.tokens.filter(pl.col("quadrant") == name, pl.col("effect") > 0)
        out[name] = (
            rows.sort(by, "token", descending=[True, False])["token"].unique(maintain_order=True).head(ROWS).to_list()
        )
    return out


def _correlations(found: Diagnosis) -> Picture:
    """A dot with its interval for each measure; hollow for the untrained model, a grey bar for shuffled labels."""
    rows = []
    for rank, (name, one) in enumerate(found.correlation.items()):
        row: dict[str, Any] = {"rank": rank, "text": measure_name(name), "x": one.rho, "low": one.low, "high": one.high}
        if name in found.untrained:
            row["untrained"] = found.untrained[name].rho
        if name in found.shuffled_labels:
            row["from"], row["to"] = found.shuffled_labels[name]
        rows.append({key: value for key, value in row.items() if not isinstance(value, float) or value == value})
    base = alt.Chart(alt.NamedData("correlations")).encode(y=alt.Y("rank:O", axis=None))
    across = alt.X(
        "low:Q", title="correlation with importance in the data", scale=alt.Scale(domain=[-1, 1], nice=False)
    )
    blue = SIDES["positive"]
    chart = alt.layer(
        alt.Chart(alt.NamedData("zero")).mark_rule(color=MUTED, strokeDash=[4, 4]).encode(x="x:Q"),
        base.mark_rule(strokeWidth=14, opacity=0.25, color=MUTED).encode(x="from:Q", x2="to:Q"),
        base.mark_rule(strokeWidth=4, opacity=0.5, color=blue, strokeCap="round").encode(x=across, x2="high:Q"),
        base.mark_circle(size=80, opacity=1, color=blue).encode(x="x:Q"),
        base.mark_point(size=70, color=INK, filled=False).encode(x="untrained:Q"),
        base.mark_text(align="left", dy=-13, fontSize=12, color=INK).encode(x=alt.datum(-0.98), text="text:N"),
    )
    said_ = "blue: this model, 95 % interval; ring: untrained; grey: shuffled labels"
    spec = finish(
        chart,
        {"correlations": rows, "zero": [{"x": 0}]},
        "Does the model agree with the data?",
        [said_],
        height=42 * len(rows),
    )
    listing = ", ".join(f"{row['text']} {signed(row.get('x', float('nan')))}" for row in rows)
    return Picture(
        "correlations",
        "correlations",
        "",
        spec,
        f"{found.token_types:,} words",
        f"Correlations with importance: {listing}.",
    )


def _scatter(found: Diagnosis, tokens: pl.DataFrame, label: str, of: str) -> Picture:
    """One measure against importance."""
    usable = tokens.filter(pl.col(of).is_not_null() & pl.col(of).is_finite()).with_columns(
        posterior_difference="importance"
    )
    points = thin(usable, POINTS_PER_PICTURE, ("importance", "documents", of), found.seed)
    rows = back_to_front(points).select(
        x=pl.col("importance").round(3),
        y=pl.col(of).round(4),
        documents=pl.col("documents").clip(lower_bound=1),
        category="category",
    )
    data = {"points": rows.to_dicts(), "names": name_rows(points, of)}
    log = of == "attention" and bool((points[of] > 0).all())
    scale = alt.Scale(type="log", nice=False, padding=16) if log else alt.Scale(zero=False, padding=16)
    x = alt.X("x:Q", title="importance in the data", scale=alt.Scale(domain=[-1, 1], nice=False))
    y = alt.Y("y:Q", title=MEASURES[of], scale=scale)
    chart = alt.layer(cloud(x, y, max([10, *points["documents"]])), *names())
    caption = f"{points.height:,} of {tokens.height:,} words shown"
    one = found.correlation.get(f"{of}_importance")
    heading = f"class {shown(label, 40)}" + (f"; correlation {said(one)}" if one is not None else "")
    spec = finish(chart, data, f"{of.capitalize()} against importance", [heading, caption])
    return Picture(of, of, label, spec, caption, f"Scatter of {MEASURES[of]} against importance: {heading}.")
