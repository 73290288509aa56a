"""An audit in a notebook: its interactive page works in a frame, and neither breaks the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tokensieve import Settings, audit, demo_reviews


@pytest.mark.usefixtures("undrawn")
def test_the_page_works_inside_a_notebook_and_leaves_it_alone(browser: Any, tmp_path: Path) -> None:
    reviews = demo_reviews(120)
    labels = ["pos" if label else "neg" for label in reviews.labels]
    settings = Settings(baseline=False, thorough=False, validation_share=0.0)
    output = audit((reviews.texts.to_list(), labels), settings)._repr_html_()
    style = "h1 { color: rgb(200, 0, 0) } p { display: none }"
    file = tmp_path / "notebook.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8><style>{style}</style><h1>Mine</h1>{output}{output}",
        encoding="utf-8",
    )
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    frames = [frame for frame in page.frames if frame.url == "about:srcdoc"]
    assert len(frames) == 2  # the same output twice, as after two cells
    for frame in frames:
        frame.wait_for_selector("html[data-ready]", state="attached", timeout=30_000)
        frame.locator("#find").fill("tablet")
        frame.locator("#find").press("Enter")
        frame.wait_for_selector("text=training documents", timeout=10_000)
        # an opaque origin: nothing of the notebook is within reach
        assert frame.evaluate("() => { try { parent.document; return 1 } catch { return 0 } }") == 0
    colour = page.evaluate("() => getComputedStyle(document.querySelector('h1')).color")
    assert colour == "rgb(200, 0, 0)"
    page.wait_for_timeout(200)  # the address is written with a delay
    assert complaints == [], complaints
    page.close()
