"""The page of an audit driven in a real browser: every control, hostile text, no request."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import runpy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from opened import Opened, download, sample, without_pictures

from calls import fast_first
from tokensieve import render
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.files import csv_table
from tokensieve.read.reader import read_corpus
from tokensieve.text.tokenizers import WordTokenizer

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="the browser chromium is not installed"
)

HOSTILE = [
    *(
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "javascript:alert(1)",
        "{{7*7}}${7*7}<%=7*7%>",
    ),
    *(
        "\u202eturned\u202c שלום\u200f",
        "<!--",
        "=cmd()",
        "a\"b'c`\\",
        "nul\x00bell\x07\x1b",
        "\u2028\u2029",
        "__proto__",
    ),
]


def place_of(opened: Opened, token: str) -> tuple[float, float]:
    """Where the map shows a token, in pixels of the window, as a reader would measure it from the
    axes."""
    table = pl.read_csv(download(opened))
    opened.page.evaluate(
        "document.getElementById('map').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    box = opened.page.locator("#map-over").bounding_box()
    row = table.filter(pl.col("token") == token).row(0, named=True)
    values = table["value"]
    width, height = box["width"] - 44 - 14, box["height"] - 10 - 24
    bins = page_bins(opened)
    low, high = min(values.min(), *bins), max(values.max(), *bins)  # type: ignore[type-var]
    low, high = low - 0.07 * (high - low), high + 0.07 * (high - low)
    x = box["x"] + 44 + width * (row["posterior_difference"] + 1) / 2
    return x, box["y"] + 10 + height * (high - row["value"]) / (high - low)


def page_bins(opened: Opened) -> list[float]:
    raw = gzip.decompress(base64.b64decode(opened.page.text_content("#block-table")))
    meta = json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])
    return [
        b[end]
        for b in meta["views"][0]["bins"]["posterior_difference:value"]
        for end in ("low", "high")
    ]


def test_search_filters_the_table_and_marks_the_map(opened: Opened, audited: Audit) -> None:
    before = opened.page.evaluate("document.getElementById('map-frame').toDataURL()")
    opened.page.fill("#find", "WONDER")
    shown = opened.page.locator("#find-list li")
    assert 1 < shown.count() <= 8 and "document" in shown.first.inner_text()
    for listed in (
        shown.first,
        shown.last,
    ):  # beside the box, and in view, also where the box is low
        box = listed.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= opened.page.viewport_size["height"]
    opened.settle()
    expected = {t for t in audited.tokens["token"] if "wonder" in t}
    assert opened.page.inner_text("#status") == f"{len(expected)} tokens in the table."
    assert len(expected) > 1 and set(pl.read_csv(download(opened))["token"]) == expected
    assert opened.caption().startswith(f"{len(expected)} of {audited.token_types:,}")
    assert opened.page.evaluate("document.getElementById('map-frame').toDataURL()") != before
    assert opened.page.inner_text("#find-count") == f"{len(expected)} found"
    first = shown.first.locator("bdi").inner_text()
    opened.page.press("#find", "Enter")
    opened.settle()
    assert opened.page.inner_text("#chosen h2") == first and not shown.first.is_visible()
    opened.page.keyboard.press("Escape")  # which empties a search field, too
    opened.settle()
    assert opened.caption().startswith(f"{audited.token_types:,} token types")


@pytest.mark.slow
def test_the_page_of_an_audit_of_imdb_is_small_and_quick(browser: Any, tmp_path: Path) -> None:
    """Under 5 MB, and within the limits of benchmarks/pages.py at the fastest of 20: medians depend
    on how busy a machine is."""
    data = (
        Path(os.environ.get("TOKENSIEVE_DATA") or Path(__file__).parents[4] / "shared" / "data")
        / "imdb_train.parquet"
    )
    if not data.exists():
        pytest.skip(f"{data} is not there")
    found = audit(
        pl.read_parquet(data).sample(3_000, seed=1),
        text="text",
        label="label",
        thorough=False,
        baseline=False,
    )
    page = Opened(browser, without_pictures(found), tmp_path)
    assert page.file.stat().st_size < 5_000_000
    measure = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "pages.py"))
    page.page.locator("#map").scroll_into_view_if_needed()
    for act, most in measure["LIMITS"].items():
        times = measure["works"](page.page, measure["ACTS"][act])
        assert min(times) <= most, (act, sorted(times))


def test_hover_shows_numbers_and_click_shows_documents(opened: Opened, audited: Audit) -> None:
    x, y = place_of(opened, "wonderful")
    opened.page.mouse.move(x, y)
    row = audited.tokens.filter(
        (pl.col("token") == "wonderful") & (pl.col("class") == "positive")
    ).row(0, named=True)
    text = opened.page.inner_text("#map-tip")
    assert text.startswith("wonderful") and "predictive, high attention" in text
    assert (
        f"{row['posterior_difference']:+.2f} [{row['posterior_low']:+.2f}, "
        f"{row['posterior_high']:+.2f}]" in text
    )
    assert f"{row['documents']}, {row['class_documents']} of the class" in text
    opened.page.mouse.down()
    opened.page.mouse.up()
    opened.settle()
    holders = [s for s in sample(audited) if "wonderful" in s.text.lower()]
    assert f"Read the {len(holders)} test documents on this page" in opened.page.inner_text(
        "#chosen"
    )
    shown = opened.page.locator("#documents-list .text").all_inner_texts()
    assert 0 < len(shown) <= len(holders) and all("wonderful" in text.lower() for text in shown)
    opened.page.keyboard.press("Escape")


@pytest.mark.slow
def test_brush_selects_into_the_table_and_zoom_moves_the_points(
    opened: Opened, audited: Audit
) -> None:
    x, y = place_of(opened, "wonderful")
    opened.page.mouse.move(x - 40, y - 60)
    opened.page.mouse.down()
    opened.page.mouse.move(x + 20, y + 20, steps=4)
    opened.page.mouse.move(x + 40, y + 60, steps=4)
    opened.page.mouse.up()
    opened.settle()
    assert "selected on the map" in opened.caption()
    table = pl.read_csv(download(opened))
    assert "wonderful" in table["token"].to_list() and 0 < table.height < audited.token_types
    centre = table.filter(pl.col("token") == "wonderful").row(0, named=True)
    box = opened.page.locator("#map-over").bounding_box()
    reach = 2 * 41 / (box["width"] - 58)
    assert (table["posterior_difference"] - centre["posterior_difference"]).abs().max() <= reach  # type: ignore[operator]
    opened.page.click("#table-clear")
    note = opened.page.inner_text("#map-note")
    opened.page.click("#zoom-in")
    opened.settle()
    assert "of them in view" in opened.page.inner_text("#map-note")
    opened.page.focus("#map-over")
    opened.page.keyboard.press("0")
    opened.settle()
    assert opened.page.inner_text("#map-note") == note


@pytest.mark.slow
@pytest.mark.parametrize("key", fast_first(["#map-up", "#map-across", "#map-paint"]))
def test_the_map_can_show_something_else(opened: Opened, key: str) -> None:
    pixels = "document.getElementById('map-points').toDataURL()"
    before = opened.page.evaluate(pixels)
    opened.page.click("details.inline summary")
    opened.page.select_option(
        key, {"#map-up": "score", "#map-across": "effect", "#map-paint": "quadrant"}[key]
    )
    opened.settle()
    assert opened.page.evaluate(pixels) != before
    if key == "#map-paint":
        assert "high attention, no evidence" in opened.page.inner_text("#map-legend")


@pytest.mark.slow
def test_sorting_by_every_column(opened: Opened, audited: Audit) -> None:
    mine = audited.tokens.filter(pl.col("class") == "positive")
    assert opened.page.locator("#table-head th").count() == 5
    opened.page.click("#table-more")
    assert opened.page.locator("#table-head th").count() == 9
    for by in ("effect", "documents", "score", "value", "attention", "q_value"):
        name = {"effect": "Effect per 1,000 tokens", "q_value": "q"}.get(by, by.capitalize())
        button = opened.page.locator("#table-head button", has_text=name).first
        (opened.page.locator("#table-head button").nth(4) if by == "q_value" else button).click()
        found = pl.read_csv(download(opened))
        expected = mine[by].sort(descending=by != "q_value").to_list()
        assert found[by].to_list() == pytest.approx(expected, rel=1e-12), by
        assert opened.rows() == found["token"][:10].to_list()
    opened.page.locator("#table-head button").first.click()
    assert opened.rows() == sorted(mine["token"])[:10]
    assert opened.page.locator("#table-head th").first.get_attribute("aria-sort") == "ascending"
    opened.page.click("#table-next")
    assert opened.rows() == sorted(mine["token"])[10:20]


@pytest.mark.slow
@pytest.mark.parametrize("label", fast_first(["positive", "negative"]))
def test_the_download_is_tokens_csv(opened: Opened, audited: Audit, label: str) -> None:
    opened.page.select_option("#class", label=label)
    opened.settle()
    whole = (
        pl.read_csv(io.BytesIO(csv_table(audited.tokens)))
        .filter(pl.col("class") == label)
        .sort("token")
    )
    found = pl.read_csv(download(opened)).sort("token")
    assert found.columns == whole.columns and found.height == whole.height
    for name in whole.columns:
        if whole[name].dtype.is_numeric():
            np.testing.assert_allclose(
                found[name].cast(float), whole[name].cast(float), rtol=1e-12, atol=0, err_msg=name
            )
        else:
            assert found[name].to_list() == whole[name].to_list(), name
    opened.page.select_option("#filter-quadrant", label="neither")
    opened.page.fill("#filter-least", "30")
    kept = whole.filter((pl.col("quadrant") == "neither") & (pl.col("documents") >= 30))
    assert pl.read_csv(download(opened)).sort("token")["token"].to_list() == kept["token"].to_list()
    assert opened.caption().startswith(f"{kept.height:,} of")


@pytest.mark.slow
def test_documents_add_up_and_can_be_walked(opened: Opened, audited: Audit) -> None:
    tabs = opened.page.locator("#documents-tabs button").all_inner_texts()
    assert set(tabs) == {s.kind for s in sample(audited) if s.kind}
    opened.page.locator("#documents-tabs button", has_text="correct and confident").click()
    articles = opened.page.locator("#documents-list article")
    rows = {s.row: s for s in sample(audited) if s.kind == "correct and confident"}
    for i in range(articles.count()):
        article = articles.nth(i)
        row = int(article.locator("h3").inner_text().split()[1])
        said = article.locator(".sum strong").inner_text()
        assert float(said.split()[1].replace("−", "-")) == pytest.approx(
            rows[row].answer[0], abs=6e-4
        )
        assert article.locator(".text").inner_text().strip() == rows[row].text.strip()
    (first := articles.first).locator("summary").click()
    first.locator("tfoot").wait_for()
    cells = [
        c.replace("−", "-").replace("+", "")
        for c in first.locator("tbody td:last-child").all_inner_texts()
    ]
    total = first.locator("tfoot td").last.inner_text().replace("−", "-")
    assert sum(map(float, cells)) == pytest.approx(float(total), abs=5e-3)
    text = first.locator(".text")
    text.focus()
    for _ in range(text.locator("bdi[data-word]").count()):
        opened.page.keyboard.press("ArrowRight")
    read = first.locator(".readout").inner_text()
    assert float(read.split("sum so far")[1].replace("−", "-")) == pytest.approx(
        float(total), abs=2e-3
    )


@pytest.mark.slow
def test_the_keyboard_keeps_its_place(opened: Opened, audited: Audit) -> None:
    page = opened.page
    focused = "document.activeElement.textContent.trim()"
    page.locator("#table-head button", has_text="Documents").focus()
    page.keyboard.press("Enter")
    assert (
        page.evaluate(focused).startswith("Documents")
        and page.input_value("#table-order") == "documents"
    )
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "Documents" and page.input_value("#table-order") == ""
    assert page.locator("#table th[aria-sort=ascending]").count() == 1
    page.locator("#documents-tabs button").nth(1).focus()
    name = page.evaluate(focused)
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == name
    page.focus("#map-over")
    page.keyboard.press("Enter")
    opened.settle()
    chosen = page.inner_text("#chosen bdi >> nth=0")
    assert chosen in audited.tokens["token"].to_list()
    page.focus("#find")
    page.keyboard.press("Escape")
    opened.settle()
    assert not page.is_visible("#chosen")


@pytest.mark.slow
def test_a_search_without_a_hit_is_told(opened: Opened) -> None:
    opened.page.fill("#find", "qqqq")
    assert "No token on this page contains “qqqq”" in opened.page.inner_text("#table-body")
    opened.page.click("#table-clear")


@pytest.mark.slow
def test_a_class_keeps_its_colour(opened: Opened) -> None:
    """The bar of "terrible" is orange whichever class is chosen, and legend and axes name the
    classes."""
    for label, other in (("positive", "negative"), ("negative", "positive")):
        opened.page.select_option("#class", label=label)
        opened.page.fill("#find", "terrible")
        opened.settle()
        row = opened.page.locator("#table-body tr").filter(
            has=opened.page.get_by_text("terrible", exact=True)
        )
        assert row.locator(".bar").get_attribute("class") == "bar against"
        assert f"← {other} · posterior difference · {label} →" in opened.page.inner_text(
            "#map-titles"
        )
        legend = opened.page.inner_text("#map-legend")
        assert f"for {label}" in legend and f"against {label}" in legend
        colour = (
            opened.page.locator("#map-legend li", has_text=f"for {label}")
            .locator(".dot")
            .get_attribute("style")
        )
        assert ("rgb(63, 143, 214)" in str(colour)) == (label == "positive")
    opened.page.click("#table-clear")


@pytest.mark.slow
def test_theme_switch_and_system_theme(opened: Opened) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = opened.page.evaluate(background)
    for expected in ("light", "dark", None):
        opened.page.click("#theme")
        opened.settle()
        assert opened.page.evaluate("document.documentElement.dataset.theme ?? null") == expected
        assert (opened.page.evaluate(background) == light) is (expected != "dark")
    opened.page.emulate_media(color_scheme="dark")
    assert opened.page.evaluate(background) != light


def hostile_audit(length: int) -> Audit:
    rng = np.random.default_rng(4)
    labels = ["</script><script>alert(2)</script>", "<img src=x onerror=alert(3)>"]
    huge = "é" * length
    texts = [
        "~".join([*rng.permutation(HOSTILE), "good" if y else "bad", huge])
        for y in np.arange(60) % 2
    ]
    tokenizer = WordTokenizer(lowercase=False, line_breaks=False, html="keep", pattern=r"[^~]+")
    corpus = read_corpus((texts, [labels[y] for y in np.arange(60) % 2]))
    found = audit(
        replace(corpus, name=HOSTILE[0]),
        Settings(baseline=False, thorough=False, tokenizer=tokenizer),
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "length"), fast_first([("light", 20_000), ("dark", 200_000)]))
def test_hostile_text_stays_text(browser: Any, tmp_path: Path, theme: str, length: int) -> None:
    opened = Opened(
        browser,
        render(hostile_audit(length)),
        tmp_path,
        width=1200 if theme == "light" else 360,
        theme=theme,
    )
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    rows = opened.rows()
    page.click("#table-next")
    rows += opened.rows()
    for token in HOSTILE[:4]:
        assert token.replace(" ", "_") in rows  # tokens hold no space
    assert any(f"({length:,} characters)" in row for row in rows)
    assert (
        page.evaluate(
            "document.querySelectorAll('main script, [onerror], iframe, main style').length"
        )
        == 0
    )
    page.locator("#table-body button").first.click()
    for k in ("0", "1"):
        page.select_option("#class", k)
        opened.settle()
    page.keyboard.press("Escape")
    table = download(opened).decode()
    assert "\n'=cmd()," in table
    opened.check()
    opened.context.close()


def test_without_scripts_the_page_is_a_document(browser: Any, html: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(html, encoding="utf-8")
    context = browser.new_context(java_script_enabled=False, viewport={"width": 400, "height": 800})
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    assert (
        not page.is_visible("#map") and not page.is_visible("#box") and not page.is_visible("#find")
    )
    assert page.is_visible(".static-only article") and page.is_visible(".static-only img")
    context.close()


def test_nothing_else_may_run(opened: Opened) -> None:
    tried = opened.page.evaluate(
        """async () => {
          const out = [];
          document.addEventListener("securitypolicyviolation", event => out.push(event.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "window.broken = 1";
          document.head.append(script);
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          document.head.append(style);
          const image = new Image();
          image.src = "https://example.org/a.png";
          await fetch("https://example.org").catch(() => out.push("fetch"));
          await new Promise(done => setTimeout(done, 100));
          return [window.broken ?? null, getComputedStyle(document.body).display, out.sort()];
        }"""
    )
    assert tried[:2] == [None, "block"]
    assert {"fetch", "connect-src", "img-src", "script-src-elem", "style-src-elem"} <= set(tried[2])
    opened.complaints, opened.requests = [], opened.requests[:1]


@pytest.mark.slow
def test_prints_as_a_document(opened: Opened) -> None:
    opened.page.emulate_media(media="print")
    assert opened.page.is_visible(".static-only img") and not opened.page.is_visible(".bar-top")
    assert opened.page.pdf()[:5] == b"%PDF-"
