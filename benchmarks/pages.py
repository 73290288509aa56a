"""Size of report pages, how soon they can be used, and how long zoom and search take, in headless Chromium.

    python benchmarks/pages.py FOLDER…        each holds a report.html that `tokensieve audit` wrote

Ready is from the start of navigation until the page's script has drawn map and table; interactions are from the input to the
second frame after it, medians of ten, with all points of the map.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def interaction(page: Page, act: str) -> float:
    """Median milliseconds of ten."""
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        page.evaluate(act)
        page.evaluate(FRAMES)
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    print("| page | MB | ready, s | zoom, ms | search, ms |\n|---|---|---|---|---|")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for folder in options.folders:
            path = (folder / "report.html").resolve()
            ready = []
            for _ in range(3):
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                start = time.perf_counter()
                page.goto(path.as_uri())
                page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
                ready.append(time.perf_counter() - start)
            page.locator("#pictures").scroll_into_view_if_needed()
            zoom = interaction(
                page,
                "() => { window.out = !window.out; document.querySelector(window.out ? '#zoom-in' : '#zoom-out').click(); }",
            )
            search = interaction(
                page,
                "() => { const box = document.querySelector('input[type=search]'); box.value = box.value ? '' : 'a';"
                " box.dispatchEvent(new Event('input', {bubbles: true})); }",
            )
            size = path.stat().st_size / 1e6
            print(
                f"| {folder.name} | {size:.2f} | {statistics.median(ready):.2f} | {zoom:.0f} | {search:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
