"""The controls of the audit's page in Firefox, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from marionette import Firefox, binary, firefox

from tokensieve.auditing.result import Audit

pytestmark = [pytest.mark.slow, pytest.mark.skipif(binary() is None, reason="the browser firefox is not installed")]

WATCH = """
window.complaints = [];
addEventListener("error", event => window.complaints.push(String(event.message)));
addEventListener("unhandledrejection", event => window.complaints.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => window.complaints.push(event.effectiveDirective));
"""


@pytest.fixture(scope="module")
def page(html: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    folder: Path = tmp_path_factory.mktemp("firefox")
    (folder / "profile").mkdir()
    (folder / "report.html").write_text(html, encoding="utf-8")
    with firefox(folder / "profile") as found:
        found.call("WebDriver:Navigate", url=(folder / "report.html").as_uri())
        found.until("return document.documentElement.dataset.ready === 'yes'")
        found.do(WATCH)
        yield found
        assert found.do("return window.complaints") == []


@pytest.fixture(autouse=True)
def cleared(page: Firefox) -> Iterator[None]:
    yield
    page.press("\ue00c")  # Escape
    page.do("document.getElementById('table-clear').click(); scrollTo(0, 0)")


def middle(page: Firefox, across: float, down: float) -> tuple[float, float]:
    """A place on the map, as parts of its width and height, in the window."""
    page.do("document.getElementById('map').scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = page.do(
        "const b = document.getElementById('map-over').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]"
    )
    return box[0] + across * box[2], box[1] + down * box[3]


def test_search_and_sort(page: Firefox, audited: Audit) -> None:
    page.type("#find", "wonder")
    expected = {t for t in audited.tokens["token"] if "wonder" in t}
    page.until(f"return document.getElementById('status').textContent === '{len(expected)} tokens in the table.'")
    assert (
        set(page.do("return [...document.querySelectorAll('#table-body th')].map(th => th.innerText.trim())"))
        <= expected
    )
    page.click("#table-head th:nth-child(3) button")
    counts = page.do(
        "return [...document.querySelectorAll('#table-body td:nth-child(3)')].map(td => Number(td.innerText))"
    )
    assert counts == sorted(counts, reverse=True) and len(counts) > 1
    assert page.do("return document.activeElement.textContent").startswith("Documents")
    page.press("\ue007")  # Enter
    assert page.text("#table-head th:nth-child(3) button").endswith("↑")


def test_class_colours_and_axes(page: Firefox) -> None:
    page.do("const c = document.getElementById('class'); c.value = '0'; c.dispatchEvent(new Event('change'))")
    page.until(
        "return document.getElementById('map-titles').innerText.includes('positive · posterior difference · negative')"
    )
    page.do("const c = document.getElementById('class'); c.value = '1'; c.dispatchEvent(new Event('change'))")
    page.until(
        "return document.getElementById('map-titles').innerText.includes('negative · posterior difference · positive')"
    )


def test_hover_brush_and_zoom(page: Firefox, audited: Audit) -> None:
    page.drag([middle(page, 0.75, 0.3)])
    page.drag([middle(page, 0.6, 0.05), middle(page, 0.8, 0.3), middle(page, 0.95, 0.5)])
    page.until("return !document.getElementById('selected').hidden")
    size = int(page.text("#selected h2").split()[0].replace(",", ""))
    assert 0 < size < audited.token_types and page.text("#table-caption").startswith(f"{size:,} of")
    page.click("#selected button.pick")
    page.until("return !document.getElementById('chosen').hidden")
    assert page.text("#chosen h2") in audited.tokens["token"].to_list()
    page.press("\ue00c")
    assert page.do("return document.getElementById('panel').hidden")
    page.click("#zoom-in")
    page.until("return document.getElementById('map-note').innerText.includes('of them in view')")
    page.do("document.getElementById('map-over').focus()")
    page.press("0")
    page.until("return !document.getElementById('map-note').innerText.includes('of them in view')")
    page.press("\ue007")  # Enter chooses the next named token
    page.until("return !document.getElementById('chosen').hidden")


def test_decisions_and_the_address_outlive_a_reload(page: Firefox) -> None:
    page.type("#find", "terrible")
    page.click("#table-body button.pick")
    page.until("return !document.getElementById('chosen').hidden")
    token = page.text("#chosen h2")
    page.do("[...document.querySelectorAll('#chosen .decide button')].find(b => b.innerText === 'Mask').click()")
    page.until("return location.hash.includes('token=')")
    page.call("WebDriver:Refresh")
    page.until("return document.documentElement.dataset.ready === 'yes'")
    page.do(WATCH)
    assert page.text("#chosen h2") == token and page.text("#decisions-count") == "Decisions (1)"
    assert page.do("return document.getElementById('find').value") == "terrible"
    page.do("document.getElementById('decisions-clear').click()")
    assert page.text("#decisions-count") == "Decisions (0)"


def test_what_if_is_what_explain_answers(page: Firefox, audited: Audit) -> None:
    page.type("#box-text", "a wonderful film, truly wonderful")
    page.click("#box-answer .text bdi[data-word='1']")
    page.do("[...document.querySelectorAll('#box-answer .whatif button')].find(b => b.innerText === 'Delete').click()")
    cells = page.do(
        "return [...document.querySelectorAll('#box-answer .whatif tbody tr td:last-child')].map(td => td.innerText)"
    )
    answers = audited.model.decision_function(["a wonderful film, truly wonderful", "a  film, truly wonderful"])
    assert [float(x.replace("−", "-")) for x in cells] == pytest.approx(list(answers), abs=6e-4)


def test_the_theme_and_the_picture_under_the_headline(page: Firefox, audited: Audit) -> None:
    before = page.do("return getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    page.click("#theme")
    assert page.do("return getComputedStyle(document.body).backgroundColor") != before
    page.click("#theme")
    drawn = page.do("return [...document.querySelectorAll('.found-map .wide .name')].map(name => name.textContent)")
    named = audited.findings[0].tokens
    assert set(drawn) <= set(named) and (drawn or not named)
    assert page.do("return document.documentElement.scrollWidth <= innerWidth")


def test_every_control_has_a_name(page: Firefox) -> None:
    bare = page.do(
        "return [...document.querySelectorAll('button, select, input, textarea')]"
        ".filter(one => !one.textContent.trim() && !one.ariaLabel && !one.labels?.length).map(one => one.outerHTML)"
    )
    assert bare == []
    rows = pl.Series(
        page.do("return [...document.querySelectorAll('#table-body tr')].map(tr => Number(tr.dataset.row))")
    )
    assert rows.len() == rows.n_unique() == 10
