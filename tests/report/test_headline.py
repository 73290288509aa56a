"""What stands under the headline: the finding's tokens are where the table has them, every name has room, chance is named."""

from __future__ import annotations

import re

import polars as pl
import pytest
from made import changed

from tokensieve.auditing.findings import Finding
from tokensieve.auditing.result import Audit
from tokensieve.evidence.shares import Share
from tokensieve.report import charts, headline, render

TOKENS = ("wonderful", "terrible", "superb", "awful", "⟨ends \"!\"⟩")  # fmt: skip


def shortcut(audited: Audit, tokens: tuple[str, ...] = TOKENS) -> Audit:
    evidence = {name: Share.count(90, 960) for name in ("documents", "decides", "class")}
    found = Finding("shortcut", 0.1, "", tokens, ("number",), evidence, 90)
    return changed(audited, findings=(found,), honest_accuracy=(Share.count(200, 240), Share.count(190, 240)))


def box(name: headline.Name) -> tuple[float, float, float, float]:
    size = headline.LETTER * len(name.text)
    left = {"start": name.x, "end": name.x - size, "middle": name.x - size / 2}[name.anchor]
    return left, name.y - 12, left + size, name.y + 2


@pytest.mark.slow
def test_the_tokens_are_where_the_table_has_them(audited: Audit) -> None:
    found = shortcut(audited)
    drawn = headline.under(found)["picture"]
    rows = audited.tokens.filter(pl.col("token").is_in(TOKENS) & (pl.col("class") == "positive"))
    for one in drawn["drawings"]:
        inner = one.width - 2 * headline.EDGE
        expected = sorted(headline.EDGE + (x + 1) / 2 * inner for x in rows["posterior_difference"])
        assert sorted(x for x, _, _, _ in one.spots) == pytest.approx(expected, abs=0.06)
        right = {side for x, _, _, side in one.spots if x > one.neutral}
        assert right == {"p"} and {side for x, _, _, side in one.spots if x < one.neutral} == {"m"}
        ups = [y for _, y, _, _ in one.spots]
        ordered = rows.sort("documents", descending=True)["value"]
        assert sorted(range(len(ups)), key=lambda i: -ups[i]) == sorted(range(len(ups)), key=lambda i: ordered[i])
        assert {name.text for name in one.names} == set(rows["token"])
        dots = sum(path.count("h0") for path in one.clouds.values())
        assert 200 < dots <= headline.DOTS


def test_names_have_room(audited: Audit) -> None:
    crowd = tuple(audited.top("positive", 9)["token"])
    drawn = headline.under(shortcut(audited, crowd))["picture"]
    for one in drawn["drawings"]:
        boxes = [box(name) for name in (*one.names, *one.landmarks)]
        assert len(one.names) >= 6 and len(boxes) >= 9
        for i, (a, b, c, d) in enumerate(boxes):
            assert a >= 0 and c <= one.width and b >= 0 and d <= headline.HEIGHT
            assert all(a >= g or e >= c or b >= h or f >= d for e, f, g, h in boxes[:i])


def test_no_picture_where_the_finding_names_no_token(audited: Audit) -> None:
    leak = Finding("leak", 0.1, evidence={"test": Share.count(3, 9), "identical": Share.count(3, 9)})
    assert headline.under(changed(audited, findings=(leak,)))["picture"] is None
    assert headline.under(changed(audited, findings=()))["picture"] is None
    assert headline.under(shortcut(audited, ("not there",)))["picture"] is None
    assert "What tells the classes apart" in render(changed(audited, findings=()), [])


def test_what_chance_explains_is_said(audited: Audit) -> None:
    found = shortcut(audited)
    said = "What the shortcuts add is no more than chance explains."
    assert headline.under(found)["chance"] and said in render(found, [])
    far = changed(found, honest_accuracy=(Share.count(230, 240), Share.count(190, 240)))
    assert not headline.under(far)["chance"] and said not in render(far, [])


def test_the_command_leaves_formatting_alone(audited: Audit) -> None:
    html = render(shortcut(audited), [])
    code = re.findall(r'<p class="command"><code>(.*?)</code>', html)
    plain = re.sub("<.*?>", "", code[0])
    assert (
        plain
        == "tokensieve mask SOURCE --token wonderful --token terrible --token superb --token awful --out masked.csv"
    )


def test_pictures_in_the_page_hold_the_strongest_types_as_circles(audited: Audit) -> None:
    """Each circle of the page's picture lies where Vega draws it in the file."""
    tokens = audited.tokens.filter(pl.col("class") == "positive")
    points = charts.strongest(tokens, 400, "value", 0)
    carries = tokens.filter(pl.col("quadrant").str.starts_with("carries"))
    best = carries.top_k(200, by=pl.col("effect").abs())["token"]
    assert points.height == points["token"].n_unique() == 400 and set(best) <= set(points["token"])
    picture = charts.draw(audited)[0]
    plain, slim = picture.svg(), picture.svg(follow_theme=True)
    places = re.findall(
        r'translate\(([-0-9.]+),([-0-9.]+)\)" d="M[0-9.]+,0A[^"]*" fill="#[0-9a-f]+" stroke-width="2" opacity', plain
    )
    circles = re.findall(r'<circle cx="([-0-9.]+)" cy="([-0-9.]+)" r="[0-9.]+" fill="#[0-9a-f]+" opacity="0.5"/>', slim)
    assert len(circles) == len(places) == charts.POINTS_IN_ALL // 2 and len(slim) < 0.6 * len(plain)
    for one, other in zip(places, circles, strict=True):
        assert all(abs(float(a) - float(b)) < 0.1 for a, b in zip(one, other, strict=True))
    assert "the strongest, and a sample of the rest" in picture.caption
