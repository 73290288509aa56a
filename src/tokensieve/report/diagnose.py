"""A diagnosis's pictures, its page, and its section for a model card."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokensieve.auditing.agreement import Quadrant, quadrant_sizes
from tokensieve.diagnose.judging import Status
from tokensieve.diagnose.result import Diagnosis, Marked
from tokensieve.diagnose.verdict import Learning
from tokensieve.escape import shown
from tokensieve.report.charts import (
    INK,
    MUTED,
    PAPER,
    POINTS_PER_PICTURE,
    SIDES,
    Picture,
    back_to_front,
    cloud,
    config,
    finish,
    name_rows,
    names,
)
from tokensieve.report.page import environment, source
from tokensieve.report.points import thin
from tokensieve.report.script import sortable
from tokensieve.report.terminal_diagnose import length_line, measure_name, said
from tokensieve.wording import interval, percent, plain, signed

ROWS = 15
LISTED = 100
BARS = 14
CLASSES = 8
SMALL = 12  # layers drawn
CHARACTERS = 1_600
MEASURES = {
    "value": "answer to the word alone",
    "gradient": "effect on the answer (integrated gradients)",
    "deletion": "loss of the answer without the word",
    "attention": "attention received (1 = its share)",
}
FILES = ("use", "correlations", *MEASURES, "layers")
STATUSES = {  # kind of dot, as in the audit's quadrants
    Status.CARRIES: "both", Status.CONTEXT: "data", Status.UNSUPPORTED: "model", Status.RARE: "none", Status.OTHER: "none",
    Status.NOT_SHOWN: "none",
}  # fmt: skip
HEADLINE = 3  # words in it
COLOURS = {
    Status.CARRIES: "#0d4a8f", Status.CONTEXT: "#3f8fd6", Status.UNSUPPORTED: "#a64200", Status.RARE: "#e08a3c",
    Status.OTHER: "#9aa0a8", Status.NOT_SHOWN: "#9aa0a8",
}  # fmt: skip


def render_diagnosis(found: Diagnosis, pictures: list[Picture] | None = None) -> str:
    """A diagnosis as one HTML page without requests: what the model uses most, the verdict, documents, pictures, settings.

    All text of the data is escaped, isolated in its own writing direction and shortened where it is long. Its one script sorts
    and searches the table of words, and nothing else can run.

    Args:
        found: the diagnosis.
        pictures: of `draw`, where they are drawn already.
    """
    pictures = draw(found) if pictures is None else pictures
    used = found.uses.filter(pl.col("status") != str(Status.NOT_SHOWN))
    return environment().get_template("diagnose.html").render(
        study=found,
        command="diagnose",
        headline=headline(found),
        **sortable(),
        correlations=[_row(found, name) for name in found.correlation],
        length=length_line(found),
        uses=found.uses.to_dicts(),
        shown_used=used.height,
        dots={str(status): kind for status, kind in STATUSES.items()},
        lists=[(str(status), used.filter(pl.col("status") == str(status)).to_dicts()) for status in STATUSES],
        confusion=_confusion(found),
        quadrants=quadrant_sizes(found.tokens) if "quadrant" in found.tokens.columns else {},
        dots_of={**dict.fromkeys(Quadrant, "none"), Quadrant.BOTH: "both", Quadrant.DATA: "data", Quadrant.MODEL: "model"},
        tables=[(label, _top(found, label)) for label in found.classes[:CLASSES]],
        marked=[_marked(one) for one in found.marked],
        special=[(f"layer {i + 1}", x) for i, x in enumerate(found.on_special[:-1])],
        special_rolled=found.on_special[-1:],
        figures=[{"source": source(picture), "picture": picture} for picture in pictures],
        listed=LISTED,
    )  # fmt: skip


def headline(found: Diagnosis) -> tuple[str, list[str], str]:
    """What the owner should know first: what stands before up to three words, the words, and what stands behind them."""

    if not found.learned:
        why = {
            Learning.OPEN: "It cannot be said whether this model has", Learning.BARELY: "This model has barely, if at all,"
        }.get(found.learning, "This model is not shown to have")  # fmt: skip
        return f"{why} learned where the label is.", [], ""
    if unsupported := found.leaning["token"].head(HEADLINE).to_list():
        return "This model leans on ", unsupported, ", which these documents do not support."
    used = found.uses.filter(pl.col("status") != str(Status.NOT_SHOWN)).head(HEADLINE)
    if used.height:
        carry = (used["status"] == str(Status.CARRIES)).all()
        they = ", and they carry the label here" if used.height > 1 else ", and it carries the label here"
        return "This model uses ", used["token"].to_list(), f" most{they * carry}."
    return "This model has learned; no single word that it uses could be shown.", [], ""


def model_card(found: Diagnosis) -> str:
    """A section for a model card, in Markdown: what the model uses, on which evidence."""
    skill, used = found.skill, found.uses.filter(pl.col("status") != str(Status.NOT_SHOWN)).head(ROWS)
    lines = [
        "## What this model uses", "",
        f"Measured with tokensieve {found.version} on {found.documents['read']:,} documents of {_cell(found.name)}: "
        f"{percent(skill.accuracy)} right (95% interval {percent(skill.accuracy_low)} to {percent(skill.accuracy_high)}, largest "
        f"class {percent(skill.majority)}).", "",
        *[f"- {_cell(sentence, 600)}" for sentence in found.verdict], "",
        "| word | speaks for | use | share of all use | answers that change without it | data's posterior difference | |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    return "\n".join([*lines, *map(_card_row, used.iter_rows(named=True)), ""])


def _card_row(row: dict[str, Any]) -> str:
    return (
        f"| {_cell(row['token'], 40)} | {_cell(row['class'], 40)} | {plain(row['use'])} "
        f"{interval(row['use_low'], row['use_high'])} | {percent(row['share'])} | {percent(row['flipped'])} | "
        f"{signed(row['posterior_difference'])} {interval(row['posterior_low'], row['posterior_high'])} | {row['status']} |"
    )


def _cell(text: str, length: int = 200) -> str:
    """Text that stays text in Markdown."""
    safe = shown(text, length).replace("\\", "\\\\")
    for mark in "|`*_<>[]":
        safe = safe.replace(mark, f"\\{mark}" if mark not in "<>" else {"<": "&lt;", ">": "&gt;"}[mark])
    return safe.replace("\n", " ")


def draw(found: Diagnosis) -> list[Picture]:
    """What is used most; correlations beside their baselines; each measure against importance, a picture per class; layers."""
    out = [_most_used(found), _correlations(found)] if found.uses.height else [_correlations(found)]
    labels = found.classes[1:2] if len(found.classes) == 2 else found.classes[:CLASSES]
    for of in MEASURES:
        for label in labels if of != "attention" else labels[:1]:
            tokens = found.tokens.filter(pl.col("class") == label)
            if of in tokens.columns and tokens[of].drop_nulls().len() > 1:
                suffix = "" if len(labels) == 1 or of == "attention" else f"-class-{found.classes.index(label) + 1}"
                out.append(_scatter(found, tokens, label, of, of + suffix))
    return out + ([_layers(found)] if found.layers > 1 else [])


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
    """The words that the data shows most surely to be of a class."""
    mine = found.tokens.filter(pl.col("class") == label, pl.col("q_value") < 0.05, pl.col("effect") > 0)
    return mine.sort("posterior_low", "token", descending=[True, False]).head(ROWS).to_dicts()


def _confusion(found: Diagnosis) -> list[tuple[str, list[tuple[int, float]]]]:
    """Each true class with its documents by answer, and their share of the class."""
    rows = found.skill.confusion
    return [
        (label, [(int(n), float(n / max(row.sum(), 1))) for n in row])
        for label, row in zip(found.classes, rows, strict=True)
    ]


def _marked(one: Marked) -> dict[str, Any]:
    """A document's pieces, at most CHARACTERS, with their effect as a share of the largest."""
    peak, left, pieces = max((abs(x) for _, x in one.pieces), default=0.0) or 1.0, CHARACTERS, []
    for text, effect in one.pieces:
        if left <= 0:
            pieces.append((" […]", 0.0))
            break
        pieces.append(
            (shown(text[:left], left) if text.strip() else text[:left], effect if abs(effect) > 0.05 * peak else 0.0)
        )
        left -= len(text)
    return {"marked": one, "peak": peak, "pieces": pieces}


def _most_used(found: Diagnosis) -> Picture:
    """A bar with its interval for each of the words used most, coloured by what the data says of them."""
    top = found.uses.head(BARS).select("token", "use", "use_low", "use_high", "status")
    rows = [
        {"rank": rank, "text": shown(token, 24), "x": use, "low": low, "high": high, "status": status}
        for rank, (token, use, low, high, status) in enumerate(top.iter_rows())
    ]
    base = alt.Chart(alt.NamedData("words")).encode(y=alt.Y("rank:O", axis=None))
    present = [status for status in COLOURS if any(row["status"] == status for row in rows)]
    colour = alt.Color(
        "status:N", scale=alt.Scale(domain=[str(s) for s in present], range=[COLOURS[s] for s in present]),
        legend=alt.Legend(title=None, orient="bottom", columns=2, labelLimit=260, columnPadding=24),
    )  # fmt: skip
    across = alt.Scale(domainMin=0, zero=True, padding=4)
    chart = alt.layer(
        base.mark_bar(height=11, opacity=0.9).encode(
            x=alt.X("x:Q", title="change of the answer without the word, with 95% interval", scale=across), color=colour
        ),
        base.mark_rule(color=INK, strokeWidth=1.4).encode(x="low:Q", x2="high:Q"),
        base.mark_text(align="left", dx=6, fontSize=12, color=INK).encode(x="high:Q", text="text:N"),
    )
    listing = ", ".join(f"{row['text']} {plain(row['x'])}" for row in rows)
    spec = finish(chart, {"words": rows}, "What this model uses most", [], height=24 * max(len(rows), 4))
    return Picture(
        "use", "use", "", spec, f"{len(rows)} of {found.token_types:,} words", f"Words used most: {listing}."
    )


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
    key = "blue: this model, 95% interval; ring: untrained; grey: shuffled labels"
    spec = finish(
        chart, {"correlations": rows, "zero": [{"x": 0}]}, "Does the model agree with the data?", [key], height=42 * len(rows)
    )  # fmt: skip
    listing = ", ".join(f"{row['text']} {signed(row.get('x'))}" for row in rows)
    words = f"{found.token_types:,} words"
    return Picture("correlations", "correlations", "", spec, words, f"Correlations with importance: {listing}.")


def _scatter(found: Diagnosis, tokens: pl.DataFrame, label: str, of: str, name: str) -> Picture:
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
    titles = {"value": "Words alone", "gradient": "Effects", "deletion": "Leaving out", "attention": "Attention"}
    spec = finish(chart, data, f"{titles[of]} against importance", [heading, caption])
    return Picture(name, of, label, spec, caption, f"Scatter of {MEASURES[of]} against importance: {heading}.")


def _layers(found: Diagnosis) -> Picture:
    """Attention against the size of importance, a small picture for each of at most SMALL layers."""
    label, step = found.classes[-1], -(-found.layers // SMALL)
    layers = [i for i in range(1, found.layers + 1) if (found.layers - i) % step == 0]
    tokens = found.tokens.filter(pl.col("class") == label, pl.col("attention").is_not_null())
    points = thin(tokens.with_columns(posterior_difference="importance"), 300, ("importance", "attention"), found.seed)
    rho = {i: signed(found.correlation[f"attention_layer_{i}_importance"].rho) for i in layers}
    rows = [
        {"layer": f"layer {i}  ({rho[i]})", "order": i, "x": abs(x), "y": y}
        for i in layers
        for x, y in points.select("importance", f"attention_layer_{i}").iter_rows()
        if y is not None and y > 0
    ]
    chart = (
        alt.Chart(alt.NamedData("points"))
        .mark_circle(size=14, opacity=0.4, color="#3f8fd6")
        .encode(
            x=alt.X("x:Q", title=None, scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("y:Q", title=None, scale=alt.Scale(type="log", nice=False)),
        )
        .properties(width=118, height=96)
        .facet(
            facet=alt.Facet(
                "layer:N", title=None, sort=alt.SortField("order"), header=alt.Header(labelFontSize=12, labelColor=INK)
            ),
            columns=3,
            title=alt.TitleParams(
                "Layers", subtitle=["attention (1 = its share) against", "the size of importance"], anchor="start"
            ),
        )
    )
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec |= {"background": PAPER, "config": {**spec["config"], **config()}, "datasets": {"points": rows}}
    caption = f"{len(layers)} of {found.layers} layers, {points.height:,} words"
    listing = ", ".join(f"{i} {rho[i]}" for i in layers)
    return Picture(
        "layers", "layers", "", spec, caption, f"Correlation of attention with importance by layer: {listing}."
    )
