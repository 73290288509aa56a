"""What stands under the page's headline: the finding on the map of tokens, or bars of what wins; and accuracies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tokensieve.auditing.agreement import Quadrant
from tokensieve.auditing.findings import Finding
from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.report import pairs
from tokensieve.report.charts import strongest
from tokensieve.wording import count, signed

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

WIDTHS = {"wide": 660, "narrow": 340}  # of the same picture, for screens and phones
HEIGHT, EDGE = 300, 14
DOTS = 700
NAMED, LANDMARKS = 12, 5  # names of the finding's tokens; of others, on either side
LETTER, LINE = 7.4, 15  # pixels: width of a letter, height of a line
WON = 5  # findings in the bars of what wins


@dataclass(frozen=True)
class Name:
    """A token's name near its dot, with a line between them where it is far."""

    text: str
    x: float
    y: float
    anchor: str
    line: str


@dataclass(frozen=True)
class Drawing:
    """A picture of tokens, in pixels.

    Attributes:
        kind: "wide" or "narrow".
        width, neutral, middle: its width, and where a token that carries nothing and the value zero are.
        clouds: kind of dot (p, m, n) → SVG path of the dots of that kind.
        spots: x, y, radius and side (p, m) of the finding's tokens.
        names, landmarks: of the finding's tokens and of a few others.
    """

    kind: str
    width: int
    neutral: float
    middle: float
    clouds: dict[str, str]
    spots: list[tuple[float, float, float, str]]
    names: list[Name]
    landmarks: list[Name]


def under(audit: Audit) -> dict[str, Any]:
    """What the template prints under the headline."""
    first = audit.findings[0] if audit.findings else None
    named = first is not None and bool(first.tokens) and audit.pairs is None
    return {
        "picture": picture(audit, first) if named and first else None,
        "won": _won(audit),
        "bars": _accuracies(audit),
        "chance": _chance(audit),
    }


def picture(audit: Audit, finding: Finding) -> dict[str, Any] | None:
    """The map of token types in which the finding's tokens stand out; None where none of them is in the table.

    Across is the posterior difference for the finding's class (of two classes for the second), up the model's value.
    """
    label = audit.classes[1] if len(audit.classes) == 2 else finding.label or _class_of(audit, finding.tokens[0])
    columns = "token posterior_difference posterior_low posterior_high value documents effect quadrant".split()
    mine = audit.tokens.filter(pl.col("class") == label).select(columns)
    mine = mine.filter(pl.col("posterior_difference").is_finite() & pl.col("value").is_finite())
    found = mine.filter(pl.col("token").is_in(list(finding.tokens)))
    if found.is_empty():
        return None
    dots, others = strongest(mine, DOTS, "value", audit.seed), _landmarks(mine, found, audit.neutral[label])
    every = pl.concat([dots, found, others])["value"]
    low, high = min(0.0, float(every.min())), max(0.0, float(every.max()))  # type: ignore[arg-type]
    drawn = [_drawing(kind, (low, high), dots, found, others, audit.neutral[label]) for kind in WIDTHS]
    two = len(audit.classes) == 2
    own, other = shown(label, 24), shown(audit.classes[0], 24) if two else "other classes"
    listed = "; ".join(f"{shown(t, 24)} at {signed(x)}" for t, x in found.select(columns[:2]).head(NAMED).iter_rows())
    shares = f"{count(dots.height)} of {count(mine.height)} token types are drawn"
    return {
        "drawings": drawn,
        "height": HEIGHT,
        "own": own,
        "other": other,
        "caption": f"Each dot is a token: to the right those mostly in {own}, up those that the model reads as {own}. {shares}.",
        "described": f"Map of tokens for class {own}, on which the finding's tokens stand out: {listed}.",
    }


def _class_of(audit: Audit, token: str) -> str:
    """The class that a token speaks for most surely."""
    rows = audit.tokens.filter(pl.col("token") == token).sort("posterior_low", descending=True)
    return str(rows["class"][0]) if rows.height else audit.classes[0]


def _landmarks(tokens: pl.DataFrame, found: pl.DataFrame, neutral: float) -> pl.DataFrame:
    """The most telling other words on either side, by the interest of live/map.js."""
    x = pl.col("posterior_difference")
    away = pl.max_horizontal(pl.col("posterior_low") - neutral, neutral - pl.col("posterior_high"), 0.0)
    words = tokens.filter(~pl.col("token").is_in(found["token"].to_list()) & ~pl.col("token").str.starts_with("⟨"))
    worth = away * pl.col("documents").log1p()
    sides = [words.filter(side).top_k(4 * LANDMARKS, by=worth) for side in (x > neutral, x < neutral)]
    return pl.concat(sides)


def _drawing(
    kind: str, ends: tuple[float, float], dots: pl.DataFrame, found: pl.DataFrame, others: pl.DataFrame, neutral: float
) -> Drawing:
    width = WIDTHS[kind]
    low, high = ends
    inner, tall = width - 2 * EDGE, HEIGHT - 4 * EDGE

    def across(x: float) -> float:
        return EDGE + (x + 1) / 2 * inner

    def up(y: float) -> float:
        return 2 * EDGE + (high - y) / (high - low or 1) * tall

    most = math.log(max(10, *found["documents"]))
    found = found.sort("documents", descending=True)
    spots = [
        (across(x), up(y), 3.5 + 3.5 * math.log(max(n, 1)) / most, "p" if x > neutral else "m")
        for x, y, n in found.select("posterior_difference", "value", "documents").iter_rows()
    ]
    places = _Places(width, [(x, y, r) for x, y, r, _ in spots])
    names = [places.near(shown(t, 18), *spot[:3]) for t, spot in zip(found["token"][:NAMED], spots, strict=False)]
    words, sides = [], [0, 0]
    for token, x, y in others.select("token", "posterior_difference", "value").iter_rows():
        side = int(x > neutral)
        if sides[side] < LANDMARKS and (name := places.near(shown(token, 18), across(x), up(y), 2.5, close=True)):
            words.append(name)
            sides[side] += 1
    return Drawing(
        kind, width, round(across(neutral), 1), round(up(0.0), 1), _paths(dots, neutral, across, up),
        [(round(x, 1), round(y, 1), round(r, 1), side) for x, y, r, side in spots], [n for n in names if n], words,
    )  # fmt: skip


def _paths(dots: pl.DataFrame, neutral: float, across: Any, up: Any) -> dict[str, str]:
    """Dots as lines of no length with round ends: one path for each kind, nine characters a dot."""
    out: dict[str, list[str]] = {"n": [], "m": [], "p": []}
    carries = dots["quadrant"].is_in([Quadrant.BOTH.value, Quadrant.DATA.value])
    for x, y, carried in zip(dots["posterior_difference"], dots["value"], carries, strict=True):
        kind = ("p" if x > neutral else "m") if carried else "n"
        out[kind].append(f"M{across(x):.0f} {up(y):.0f}h0")
    return {kind: "".join(dict.fromkeys(parts)) for kind, parts in out.items()}


class _Places:
    """Where names have room: none lies on another, nor on a spot, nor beyond the edge."""

    def __init__(self, width: int, spots: list[tuple[float, float, float]]) -> None:
        self.width = width
        self.taken = [(x - r, y - r, x + r, y + r) for x, y, r in spots]

    def near(self, text: str, x: float, y: float, r: float, close: bool = False) -> Name | None:
        """The first free place around a spot, nearest first; None where there is none."""
        size = LETTER * len(text) + 4
        for far in (4,) if close else (4, 16, 30, 46, 64, 84, 110):
            for angle in (0, math.pi, -math.pi / 2, math.pi / 2, -0.8, 0.8, math.pi - 0.8, math.pi + 0.8):
                a, b = x + (r + far) * math.cos(angle), y + (r + far) * math.sin(angle)
                side = round(math.cos(angle), 1)
                left = a if side > 0 else a - size if side < 0 else a - size / 2
                middle = b + 0.5 * LINE * math.sin(angle) * (side == 0)
                box = (left, middle - LINE / 2, left + size, middle + LINE / 2)
                if box[0] < 2 or box[2] > self.width - 2 or box[1] < EDGE + 4 or box[3] > HEIGHT - EDGE - 4:
                    continue
                if any(box[0] < c and a_ < box[2] and box[1] < d and b_ < box[3] for a_, b_, c, d in self.taken):
                    continue
                self.taken.append(box)
                anchor = "start" if side > 0 else "end" if side < 0 else "middle"
                line = f"M{x:.0f} {y:.0f}L{a:.0f} {b:.0f}" if far > 4 else ""
                return Name(text, round(a, 1), round(middle + 4.5, 1), anchor, line)
        return None


def _accuracies(audit: Audit) -> list[tuple[str, Share | None, float]]:
    """Name, share with its interval where there is one, and value of each accuracy."""
    own = audit.accuracy if audit.pairs is None else audit.pairs.accuracy
    rows: list[tuple[str, Share | None, float]] = [("This model", own, own.value)]
    if audit.honest_accuracy is not None:
        without = audit.honest_accuracy[1]
        rows.append(("… without the shortcuts", without, without.value))
    if audit.pairs is not None:
        return [*rows, *((name, None, value) for name, value in pairs.accuracies(audit)[1:])]
    if audit.baseline_accuracy is not None:
        rows.append(("TF-IDF + logistic regression", None, audit.baseline_accuracy))
    return [*rows, ("Always the largest class", None, audit.majority_accuracy)]


def _chance(audit: Audit) -> bool:
    """Whether chance explains what the shortcuts add to the accuracy."""
    if audit.honest_accuracy is None:
        return False
    whole, without = audit.honest_accuracy
    return without.low <= whole.value <= without.high


def _won(audit: Audit) -> list[tuple[str, list[tuple[str, bool, Share]]]]:
    """Of preference pairs: what wins, in groups of (name, whether it is a token, share of the pairs)."""
    if audit.pairs is None:
        return []
    groups: list[tuple[str, list[tuple[str, bool, Share]]]] = []
    for finding in audit.findings:
        if "like_longer" in finding.evidence and finding.label == "chosen":
            e = finding.evidence
            rows = [("of all pairs", False, e["decides"]), ("of pairs of like length", False, e["like_longer"])]
            groups.append(("The longer answer wins", rows))
    equal = [
        (one.tokens[0], True, one.evidence["equal_length"])
        for one in audit.findings
        if "equal_length" in one.evidence and one.label == "chosen"
    ]
    if equal:
        groups.append(("At equal length still wins the answer with", equal[:WON]))
    return groups
