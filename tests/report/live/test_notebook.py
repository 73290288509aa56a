"""An audit in a notebook: its interactive page works in a frame, and neither breaks the other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tokensieve import Settings, audit, demo_reviews
from tokensieve.auditing.result import Audit
from tokensieve.errors import InputError
from tokensieve.report.widget import page_widget


@pytest.fixture(scope="module")
def found() -> Audit:
    reviews = demo_reviews(120)
    labels = ["pos" if label else "neg" for label in reviews.labels]
    settings = Settings(baseline=False, thorough=False, validation_share=0.0)
    return audit((reviews.texts.to_list(), labels), settings)


@pytest.mark.usefixtures("undrawn")
def test_the_page_works_inside_a_notebook_and_leaves_it_alone(
    browser: Any, tmp_path: Path, found: Audit
) -> None:
    output = found._repr_html_()
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


class FakeTrait(SimpleNamespace):
    def __init__(self, *_: object) -> None:
        super().__init__(is_synchronised=False)

    def tag(self, sync: bool) -> FakeTrait:
        self.is_synchronised = sync
        return self


class FakeWidget:
    def __init__(self, page: str) -> None:
        self.page = page


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """anywidget and traitlets, as far as the widget uses them."""
    monkeypatch.setattr("tokensieve.report.widget.find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "anywidget", SimpleNamespace(AnyWidget=FakeWidget))
    traits = SimpleNamespace(Unicode=FakeTrait, List=FakeTrait)
    monkeypatch.setitem(sys.modules, "traitlets", traits)


NOTEBOOK = """<!doctype html><meta charset=utf-8><div id="cell"></div><script type="module">
const values = { page: PAGE, selected: [] };
const model = { get: (name) => values[name], set: (name, value) => { values[name] = value; },
  save_changes: () => { window.saved = values.selected; } };
const url = URL.createObjectURL(new Blob([CODE], { type: "text/javascript" }));
const widget = (await import(url)).default;
widget.render({ model, el: document.getElementById("cell") });
window.postMessage({ tokensieve: "selected", tokens: ["not from the page"] }, "*");
</script>"""


def written(value: str) -> str:
    """A JavaScript string that does not end the script it stands in."""
    return json.dumps(value).replace("<", "\\u003c")


@pytest.mark.usefixtures("undrawn", "libraries")
def test_what_is_selected_on_the_page_comes_back(
    browser: Any, tmp_path: Path, found: Audit
) -> None:
    widget = found.widget
    assert type(widget).selected.is_synchronised and type(widget).page.is_synchronised
    file = tmp_path / "widget.html"
    code = NOTEBOOK.replace("CODE", written(type(widget)._esm))
    file.write_text(code.replace("PAGE", written(widget.page)), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("iframe")
    frame = next(frame for frame in page.frames if frame.url == "about:srcdoc")
    frame.wait_for_selector("html[data-ready]", state="attached", timeout=30_000)
    frame.locator("#find").fill("tablet")
    frame.locator("#find").press("Enter")
    page.wait_for_function("() => window.saved?.length === 1", timeout=10_000)
    assert page.evaluate("() => window.saved") == ["tablet"]
    page.close()


def test_without_anywidget_the_widget_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokensieve.report.widget.find_spec", lambda name: None)
    with pytest.raises(InputError, match="notebook"):
        page_widget("")
