"""Panel, decisions, address, what if and saved pictures in a real browser, by mouse and by
keyboard."""

from __future__ import annotations

import base64
import gzip
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from made import reviews
from opened import Opened, sample, without_pictures

from tokensieve.auditing.report import interactive_part
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.report import html as page_module
from tokensieve.report.live.samples import context_lines as concordance
from tokensieve.text.tokenizers import WordTokenizer


def saved(opened: Opened, button: str) -> bytes:
    if button.startswith("#map") and not opened.page.is_visible(button):
        opened.page.click("details.inline summary")
    with opened.page.expect_download() as file:
        opened.page.click(button)
    return Path(file.value.path()).read_bytes()


def pick(opened: Opened, token: str) -> None:
    """Choose a token through the table."""
    opened.page.fill("#find", token)
    opened.page.locator("#table-body button").filter(
        has=opened.page.get_by_text(token, exact=True)
    ).first.click()
    opened.page.fill("#find", "")
    opened.settle()


@pytest.mark.slow
def test_a_token_of_the_prose_opens_its_lines(opened: Opened, audited: Audit) -> None:
    button = opened.page.locator("#predictors button.pick").first
    token = button.inner_text()
    button.focus()
    opened.page.keyboard.press("Enter")
    opened.settle()
    assert opened.page.inner_text("#chosen h2") == token
    row = audited.tokens.filter((pl.col("token") == token) & (pl.col("class") == "positive")).row(
        0, named=True
    )
    assert (
        f"In {row['documents']} training documents; {row['class_documents']} of them"
        in opened.page.inner_text("#chosen")
    )
    columns = opened.page.locator(".concordance > div")
    assert columns.count() == 2
    lines = concordance(interactive_part(audited))[token]
    assert opened.page.locator(".concordance li").count() == len(lines) >= 10
    for column, label in ((columns.nth(0), "positive"), (columns.nth(1), "negative")):
        expected = sorted(one.row for one in lines if one.label == label)
        found = [int(text.split()[1]) for text in column.locator(".where").all_inner_texts()]
        assert (
            sorted(found) == expected
            and column.locator("h3").inner_text() == f"{label} ({len(expected)})"
        )
    assert {
        mark.lower() for mark in opened.page.locator(".concordance mark").all_inner_texts()
    } == {token}
    opened.page.click("#panel-close")
    opened.settle()
    assert (
        not opened.page.is_visible("#panel")
        and opened.page.evaluate("document.activeElement.textContent") == token
    )


@pytest.mark.slow
def test_a_token_without_lines_of_its_own_is_found_in_others(
    opened: Opened, audited: Audit
) -> None:
    rest = audited.tokens.filter(
        ~pl.col("token").is_in(list(concordance(interactive_part(audited))))
        & (pl.col("documents") > 50)
    )["token"]
    token = next(t for t in rest if " " not in t and not t.startswith("⟨"))
    pick(opened, token)
    marks = opened.page.locator(".concordance mark").all_inner_texts()
    assert marks and all(
        [w for _, _, w in WordTokenizer().spans(text)] == [token] for text in marks
    )


@pytest.mark.slow
def test_the_brushed_list_has_a_count_and_leads_to_tokens(opened: Opened) -> None:
    page = opened.page
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map-over").bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"], steps=4)
    page.mouse.up()
    opened.settle()
    said = page.inner_text("#selected h2")
    size = int(said.split()[0].replace(",", ""))
    assert said == f"{size:,} tokens selected" and opened.caption().startswith(f"{size:,} of")
    first = page.locator("#selected button.pick").first
    token = first.inner_text()
    first.click()
    assert page.inner_text("#chosen h2") == token
    page.click("text=← The selected tokens")
    assert page.inner_text("#selected h2") == said
    page.keyboard.press("Escape")
    opened.settle()
    assert not page.is_visible("#panel") and "selected" not in opened.caption()


@pytest.mark.slow
def test_decisions_are_kept_over_a_reload_and_saved_as_agreed(
    opened: Opened, audited: Audit
) -> None:
    page = opened.page
    pick(opened, "wonderful")
    page.click("#chosen > p .decide >> text=Mask")
    row = concordance(interactive_part(audited))["wonderful"][0].row
    page.locator(".concordance li").filter(
        has=page.get_by_text(f"row {row}", exact=True)
    ).get_by_role("button").click()
    page.keyboard.press("Escape")
    article = page.locator("#documents-list article").first
    test_row = int(article.locator("h3").inner_text().split()[1])
    article.get_by_role("button", name="Keep", exact=True).focus()
    page.keyboard.press("Space")
    assert page.inner_text("#decisions-count") == "Decisions (3)"
    for clear_storage in (False, True):
        if clear_storage:
            page.evaluate("localStorage.clear()")
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        assert page.inner_text("#decisions-count") == "Decisions (3)"
    page.click("#decisions-count")
    kept = json.loads(saved(opened, "#decisions-save"))
    assert kept == {
        "tokensieve": "decisions",
        "version": 1,
        "tokens": {"wonderful": "mask"},
        "documents": [
            {"part": "train", "row": row, "decision": "wrong label"},
            {"part": "test", "row": test_row, "decision": "keep"},
        ],
    }
    page.locator("#decisions-list button.pick").click()
    assert page.inner_text("#chosen h2") == "wonderful"
    assert page.get_attribute("#chosen .decide >> text=Mask", "aria-pressed") == "true"
    page.keyboard.press("Escape")
    if not page.is_visible("#decisions"):
        page.click("#decisions-count")
    page.get_by_role("button", name="Undo: mask").click()
    assert page.inner_text("#decisions-count") == "Decisions (2)"
    page.click("#decisions-clear")
    assert page.inner_text("#decisions-count") == "Decisions (0)" and page.is_visible(
        "#decisions-none"
    )
    opened.requests = opened.requests[:1]


def test_hostile_decisions_in_the_storage_do_no_harm(opened: Opened) -> None:
    page = opened.page
    pick(opened, "wonderful")
    page.click("#chosen > p .decide >> text=Mask")
    page.keyboard.press("Escape")
    key = page.evaluate("Object.keys(localStorage)[0]")
    hostile = [
        *(
            "null",
            "7",
            '"x"',
            "[]",
            "{",
            '{"tokens": 1, "documents": 5}',
            '{"documents": [null, 1, []]}',
            "[" * 10_000,
        ),
        json.dumps(
            {
                "documents": [
                    {"part": "<b>", "row": "<img src=x onerror=alert(1)>", "decision": "keep"}
                ]
            }
        ),
        json.dumps(
            {
                "tokens": {
                    "<img src=x onerror=alert(1)>\u202e": "mask",
                    "__proto__": "keep",
                    "x": ["mask"],
                }
            }
        ),
        json.dumps(
            {
                "tokens": {"n" * 100_000: "mask"},
                "documents": [{"part": "test", "row": 1e300, "decision": "keep"}],
            }
        ),
    ]
    for content, decisions in zip(hostile, [0] * 9 + [2, 2], strict=True):
        page.evaluate(
            "([key, content]) => { localStorage.setItem(key, content); history.replaceState({}, "
            "'') }",
            [key, content],
        )
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached", timeout=10_000)
        assert page.inner_text("#decisions-count") == f"Decisions ({decisions})", content[:80]
        page.click("#decisions-count")
        assert (
            page.locator("#decisions-list li").count() == decisions
            and page.locator("#decisions-list img").count() == 0
        )
        if page.is_visible("#decisions"):
            page.keyboard.press("Escape")
    opened.again()


@pytest.mark.slow
def test_the_address_holds_what_is_shown(opened: Opened, browser: Any) -> None:
    page = opened.page
    page.select_option("#class", label="negative")
    page.click("details.inline summary")
    page.select_option("#map-across", "effect")
    pick(opened, "terrible")
    page.fill("#find", "err")
    page.click("#zoom-in")
    page.wait_for_timeout(300)
    address, note, rows = page.url, page.inner_text("#map-note"), opened.rows()
    assert "token=terrible" in address and "class=negative" in address and "zoom=" in address
    other = opened.context.new_page()
    other.goto(address)
    other.wait_for_selector("html[data-ready]", state="attached")
    other.wait_for_timeout(200)
    assert other.input_value("#find") == "err" and other.input_value("#map-across") == "effect"
    assert other.inner_text("#chosen h2") == "terrible" and other.inner_text("#map-note") == note
    assert [text.strip() for text in other.locator("#table-body th").all_inner_texts()] == rows
    other.evaluate(
        "location.hash = "
        "'class=%3Cscript%3E&token=__proto__&zoom=1,0,x&map=1&at=%22%5D&find=%3Cimg%20onerror=1%3E'"
    )
    other.wait_for_timeout(300)
    assert other.input_value("#find") == "<img onerror=1>" and not other.is_visible("#panel")
    assert other.evaluate("document.querySelectorAll('main script, [onerror]').length") == 0
    other.close()
    page.click("nav a[href='#accuracy']")
    page.wait_for_timeout(300)
    assert page.url.endswith("at=accuracy") and "token=terrible" in page.url
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy-link")
    page.wait_for_timeout(400)
    assert (
        page.evaluate("navigator.clipboard.readText()") == "report.html#" + page.url.split("#")[1]
    )
    opened.requests = opened.requests[:1]


def test_what_if_is_exact(opened: Opened, audited: Audit) -> None:
    """The page's answer to a changed document is Python's, by the sum that the page has and by the
    text itself."""
    model, rng = audited.model, np.random.default_rng(0)
    cases = []
    for i in range(0, len(sample(audited)), 25):
        words = len(WordTokenizer().spans(sample(audited)[i].text))
        chosen = sorted(rng.choice(words, min(words, 3), replace=False).tolist())
        cases.append([i, [[at, ["", "wonderful", "not good"][j]] for j, at in enumerate(chosen)]])
    found = opened.page.evaluate(
        "cases => cases.map(([i, edits]) => window.tokensieve.changed(i, edits))", cases
    )
    expected = model.decision_function([one["text"] for one in found])
    np.testing.assert_allclose([one["answer"][0] for one in found], expected, atol=2e-5)


@pytest.mark.slow
def test_words_are_deleted_and_replaced_by_mouse_and_keyboard(
    opened: Opened, audited: Audit
) -> None:
    page = opened.page
    page.fill("#box-text", "a wonderful film, truly wonderful")
    page.click("#box-answer .text bdi[data-word='1']")
    p = [
        row.split("\t")[-1].strip()
        for row in page.locator("#box-answer .whatif tbody tr").all_inner_texts()
    ]
    texts = ["a wonderful film, truly wonderful", "a  film, truly wonderful"]
    answers = audited.model.decision_function(texts)
    assert [float(x.replace("−", "-")) for x in p] == pytest.approx(list(answers), abs=6e-4)
    page.fill("#box-answer .whatif input", "terrible")
    page.keyboard.press("Enter")
    assert page.inner_text("#box-answer .whatif ins") == "terrible"
    page.click("#box-answer .whatif >> text=Use the changed text")
    assert page.input_value("#box-text") == "a terrible film, truly wonderful"
    page.focus("#box-answer .text")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Delete")
    assert page.inner_text("#box-answer .whatif del") == "terrible"
    page.fill("#box-answer .whatif input", "x")
    page.keyboard.press("Escape")
    assert not page.is_visible("#box-answer .whatif")


@pytest.mark.slow
def test_the_map_is_saved_as_svg_and_png(opened: Opened) -> None:
    root = ElementTree.fromstring(saved(opened, "#map-svg"))
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert set(tags) <= {"svg", "path", "circle", "text"} and tags.count("circle") > 100
    texts = [element.text for element in root.iter() if element.text]
    assert "← negative · posterior difference · positive →" in texts and any(
        "reviews: value" in t for t in texts
    )
    assert saved(opened, "#map-png")[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_names_on_the_map_do_not_run_into_each_other(opened: Opened) -> None:
    root = ElementTree.fromstring(saved(opened, "#map-svg"))
    names = [e for e in root.iter() if e.tag.endswith("text") and e.get("font-weight") == "bold"][
        1:
    ]
    assert len(names) >= 20 and not {"the", "and", "a", "of"} & {e.text for e in names}
    places = [(float(e.get("x", 0)), float(e.get("y", 0)), 3.0 * len(e.text or "")) for e in names]
    for i, (x, y, half) in enumerate(places):
        assert all(abs(x - a) > 0.9 * (half + w) or abs(y - b) >= 13.9 for a, b, w in places[:i])


@pytest.mark.slow
def test_a_finding_is_shown_on_the_map(opened: Opened) -> None:
    card = opened.page.locator(".card:has(.named)").first
    before = opened.page.evaluate("document.getElementById('map-frame').toDataURL()")
    card.get_by_role("button", name="Show on the map").click()
    opened.settle()
    assert opened.page.evaluate("document.getElementById('map-frame').toDataURL()") != before
    assert opened.caption().split()[0] == str(card.locator(".named button").count())
    opened.page.click("#table-clear")
    opened.settle()
    assert opened.caption().split()[1:3] == [
        "token",
        "types,",
    ]  # all rows again: not "3 of 40 token types"


@pytest.mark.slow
def test_what_if_counts_what_the_page_leaves_out(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = reviews(200, 1, ngrams=1)
    whole = without_pictures(found)
    block = whole.split('id="block-model">')[1].split("<")[0]
    # 2,000 bytes are kept for tags and 200 for the sentence about what is left out
    monkeypatch.setattr(page_module, "PAGE_BYTES", len(whole.encode()) + 2_200 - len(block) // 3)
    opened = Opened(browser, without_pictures(found), tmp_path)
    assert "token types are not on this page" in opened.page.inner_text("#box-left")
    cases = [[i, [[2, ""], [0, "was"]]] for i in range(0, len(sample(found)), 5)]
    changed = opened.page.evaluate(
        "cases => cases.map(([i, edits]) => window.tokensieve.changed(i, edits))", cases
    )
    whole_answers = found.model.decision_function([one["text"] for one in changed])
    boxed = opened.page.evaluate(
        "texts => texts.map(t => window.tokensieve.explain(t).answer[0])",
        [one["text"] for one in changed],
    )
    known = [
        i
        for i, one in enumerate(sample(found)[::5])
        if all(w in kept_words(opened) for w in first_words(one.text))
    ]
    error = np.abs(np.asarray([one["answer"][0] for one in changed]) - whole_answers)[known]
    assert len(known) > 5 and error.max() < 2e-5 < np.abs(np.asarray(boxed) - whole_answers).max()
    opened.context.close()


@pytest.mark.slow
def test_the_panel_says_why_occurrences_and_fractions_of_documents_disagree(
    browser: Any, tmp_path: Path
) -> None:
    draw = np.random.default_rng(0)
    filler = [f"word{i}" for i in range(60)]
    # "often" is a quarter of a short positive text, but occurs twice in a long negative one
    texts = [
        " ".join([*draw.choice(filler, 3 if label else 40), *["often"] * (1 if label else 2)])
        for label in draw.integers(0, 2, 300)
    ]
    found = audit(
        (texts, ["positive" if len(text.split()) < 10 else "negative" for text in texts]),
        baseline=False,
    )
    opened = Opened(browser, without_pictures(found), tmp_path)
    pick(opened, "often")
    assert (
        "The posterior difference says otherwise because it counts occurrences"
        in opened.page.inner_text("#chosen")
    )
    opened.context.close()


def first_words(text: str) -> list[str]:
    return [word for _, _, word in WordTokenizer().spans(text)[:3]]


def kept_words(opened: Opened) -> set[str]:
    raw = gzip.decompress(base64.b64decode(opened.page.text_content("#block-model")))
    return set(json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])["words"])
