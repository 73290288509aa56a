"""Two audits compared: the page, its picture, and the verdict in one sentence."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from tokensieve.auditing.checks import registry
from tokensieve.auditing.compare import AuditComparison, Change
from tokensieve.auditing.saved import Saved
from tokensieve.auditing.sentences import quoted
from tokensieve.escape import shown
from tokensieve.report.charts import INK, PAPER, Picture, directions, finish
from tokensieve.report.page import environment, source
from tokensieve.report.script import sortable
from tokensieve.report.sentences import file_name
from tokensieve.wording import count, percent, signed

DRAWN, LOW = 40, 2.0  # tokens in the picture, and the documents at which its axis begins
ROWS = 1_000  # of the page's table
COLOURS = {
    Change.APPEARED: "#0d4a8f", Change.VANISHED: "#9aa0a8", Change.SIGN: "#a64200", Change.STRONGER: "#3f8fd6",
    Change.WEAKER: "#e08a3c",
}  # fmt: skip
WORDS = {
    Change.APPEARED: "appeared", Change.VANISHED: "vanished", Change.SIGN: "changed sign", Change.STRONGER: "grew stronger",
    Change.WEAKER: "grew weaker",
}  # fmt: skip


def verdict(found: AuditComparison) -> str:
    """What changed, in one sentence."""
    sizes = [f"{count(n)} {WORDS[change]}" for change, n in found.counts.items() if n]
    if not sizes:
        head = "No token's tie to the label changed by more than chance"
    else:
        head = f"Of the tokens that carry the label, {', '.join(sizes[:-1])}{' and ' * (len(sizes) > 1)}{sizes[-1]}"
    d = found.accuracy
    before, after = percent(d.before.value), percent(d.after.value)
    if d.low <= 0 <= d.high:
        return f"{head}; test accuracy {before} and {after}, no more apart than chance explains"
    return f"{head}; test accuracy {'rose' if d.value > 0 else 'fell'} from {before} to {after}"


def alone_lines(found: AuditComparison, most: int = 8) -> list[str]:
    """Tokens that one audit alone knows and that are too rare for more than chance, a sentence for either audit that has some."""
    out = []
    for after, words in ((False, "gone"), (True, "new")):
        rows = found.alone(after)
        if rows.height:
            listed = ", ".join(f"{shown(token, 24)} ({count(n)})" for token, n in rows.head(most).iter_rows())
            more = f" and {count(rows.height - most)} more" if rows.height > most else ""
            out.append(f"{words}, but in too few documents to be more than chance: {listed}{more}")
    return out


def points(x: float) -> str:
    """A difference of shares in percentage points."""
    return signed(100 * x, 1)


def render_comparison(found: AuditComparison) -> str:
    """The comparison as one HTML page without requests; its one script sorts and searches the table.

    All text of the data is escaped, isolated in its own writing direction and shortened where it is long.
    """
    changed, pictures = found.changed(), [picture(found, label) for label in found.classes[:6]]
    names, d = {check.name: check.title for check in registry()}, found.accuracy
    return environment().get_template("compare.html").render(
        study={"name": found.after.name, "version": found.version},
        command="compare",
        **sortable(),
        found=found,
        verdict=verdict(found),
        rows=[row | {"words": WORDS[Change(row["change"])]} for row in changed.head(ROWS).to_dicts()],
        changed=changed.height,
        counts=[(WORDS[change], n) for change, n in found.counts.items()],
        points=points,
        alone=alone_lines(found),
        accuracy=[("Before", d.before, d.before.value), ("After", d.after, d.after.value)],
        headlines=[("Before", _headlines(found.before)), ("After", _headlines(found.after))],
        kept=kept(found),
        findings=[
            (names.get(kind, kind), found.before.findings.get(kind, 0), found.after.findings.get(kind, 0))
            for kind in dict.fromkeys([*found.before.findings, *found.after.findings])
        ],
        figures=[{"source": source(one), "picture": one} for one in pictures if one is not None],
    )  # fmt: skip


def kept(found: AuditComparison) -> str:
    """What did not change, in one sentence."""
    same = found.kept()
    if not same:
        return "No token carries the label in both audits without having changed"
    many = f"{count(len(same))} tokens carry" if len(same) > 1 else "1 token carries"
    return (
        f"{many} the label in both audits as before, no more different than chance explains: {quoted(tuple(same), 6)}"
    )


def _headlines(one: Saved) -> list[tuple[str, str]]:
    """Level and sentence of the gravest findings."""
    return [(finding.level.value, finding.headline or finding.title) for finding in one.headlines]


def picture(found: AuditComparison, label: str) -> Picture | None:
    """Each changed token as an arrow on the map of posterior difference and documents; a dot where only one audit has it."""
    mine = found.changed().filter(pl.col("class") == label)
    rows = mine.head(DRAWN)
    if rows.is_empty():
        return None
    words = pl.col("change").replace_strict({one.value: WORDS[one] for one in Change})
    ends = rows.select(
        "token", change=words, x=pl.coalesce("posterior_after", "posterior_before"),
        y=pl.coalesce("documents_after", "documents_before"), x1="posterior_before", y1="documents_before",
        alone=pl.any_horizontal(pl.col("posterior_after", "posterior_before").is_null()),
    )  # fmt: skip
    top = float(max(10, *(n for n in (rows["documents_before"].max(), rows["documents_after"].max()) if n is not None)))  # type: ignore[arg-type]
    up = 330 / math.log(top / LOW)  # units of the picture for each factor e of documents
    dx, dy = (pl.col("x") - pl.col("x1")) * 210, (pl.col("y") / pl.col("y1")).log() * up
    moved = ends.filter(~pl.col("alone")).with_columns(angle=pl.arctan2(dx, dy).degrees())
    sets = {
        "moved": moved.drop("token", "alone").to_dicts(),
        "alone": ends.filter("alone").select("change", "x", "y").to_dicts(),
        "names": _names(ends, up),
    }
    suffix = "" if len(found.classes) == 1 else f"-class-{found.classes.index(label) + 1}"
    spec = finish(_arrows(found, label, top), sets, "What changed", [f"class {shown(label, 40)}"])
    listing = ", ".join(f"{shown(row['token'], 24)} {WORDS[Change(row['change'])]}" for row in rows.head(12).to_dicts())
    described = (
        f"Documents against posterior difference for class {shown(label, 40)}, arrows from before to after: {listing}."
    )
    return Picture(
        f"compare{suffix}",
        "compare",
        label,
        spec,
        f"{rows.height:,} of {mine.height:,} changed tokens shown",
        described,
    )


def _names(ends: pl.DataFrame, up: float) -> list[dict[str, Any]]:
    """The names of tokens, the largest change first, as far as they do not lie over each other."""
    taken: list[tuple[float, float, float]] = []
    out = []
    for row in ends.iter_rows(named=True):
        text = shown(row["token"], 20)
        x, y, half = 210 * row["x"], up * math.log(max(row["y"], 1)), 3.7 * len(text)
        if all(abs(x - a) > half + b or abs(y - c) > 14 for a, c, b in taken):
            taken.append((x, y, half))
            out.append({"x": row["x"], "y": row["y"], "text": text})
    return out


def _arrows(found: AuditComparison, label: str, top: float) -> Any:
    present = [change for change in Change if found.counts[change]]
    colour = alt.Color(
        "change:N",
        scale=alt.Scale(domain=[WORDS[one] for one in present], range=[COLOURS[one] for one in present]),
        legend=alt.Legend(title=None, orient="bottom", symbolType="circle", columns=3),
    )
    low, high = directions(found.after.classes, label)
    x = alt.X("x:Q", title=f"← {low} · posterior difference · {high} →", scale=alt.Scale(domain=[-1, 1], nice=False))
    y = alt.Y("y:Q", title="documents", scale=alt.Scale(type="log", domain=[LOW, top], nice=False))
    moved, alone = alt.Chart(alt.NamedData("moved")), alt.Chart(alt.NamedData("alone"))
    names = alt.Chart(alt.NamedData("names")).encode(x=x, y=y, text="text:N")
    letters: dict[str, Any] = {"dy": -11, "fontSize": 12, "fontWeight": "bold"}
    tips = moved.mark_point(shape="triangle", filled=True, size=70, opacity=1)
    return alt.layer(
        moved.mark_rule(strokeWidth=2, opacity=0.6).encode(x=x, x2="x1:Q", y=y, y2="y1:Q", color=colour),
        tips.encode(x=x, y=y, color=colour, angle=alt.Angle("angle:Q", scale=None)),
        alone.mark_circle(size=70, opacity=0.9).encode(x=x, y=y, color=colour),
        names.mark_text(stroke=PAPER, strokeWidth=3.5, fill=PAPER, **letters),
        names.mark_text(fill=INK, **letters),
    )


def title(found: AuditComparison) -> str:
    """Which audits: "a.csv → b.csv"."""
    return f"{shown(file_name(found.before.name), 40)} → {shown(file_name(found.after.name), 40)}"
