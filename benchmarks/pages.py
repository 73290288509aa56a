"""Size of report pages, how soon they can be used, and how long the page works for each act of its
reader, in headless Chromium.

    python benchmarks/pages.py FOLDER…        each holds a report.html that `tokensieve audit` wrote

Ready is from the start of navigation until the page's script has drawn map and table. The other
columns are milliseconds of the page's own work for one act (script, style and layout until the
second frame after it, as Chromium's devtools count them), median and worst of 20: the pointer moved
to another place on the map (hover), a letter typed into a text of 2,000 words, another class
chosen, zoom, a search. The limits are 16 ms for hover and 100 ms for typing and for another class.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

LIMITS = {"hover": 16, "typing": 100, "class": 100}  # milliseconds, median
TIMES = 20
METRICS = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
ACTS = {
    "hover": """i => {
      const map = document.getElementById("map-over"), box = map.getBoundingClientRect();
      const clientX = box.x + box.width * (0.25 + 0.025 * i);
      const clientY = box.y + box.height * (0.6 - 0.01 * i);
      const at = { clientX, clientY, bubbles: true };
      map.dispatchEvent(new PointerEvent("pointermove", at));
    }""",
    "class": """i => {
      const choice = document.getElementById("class");
      choice.selectedIndex = (choice.selectedIndex + 1) % choice.options.length;
      choice.dispatchEvent(new Event("change", { bubbles: true }));
    }""",
    "typing": """i => {
      const box = document.getElementById("box-text");
      const words = ["good", "bad", "the", "film", "not"];
      const word = (_, k) => words[k % 6] ?? "w" + k;
      if (i === 0) box.value = Array.from({ length: 2000 }, word).join(" ");
      box.value += i % 7 ? "a" : " ";
      box.dispatchEvent(new Event("input", { bubbles: true }));
    }""",
    "zoom": """i => document.getElementById(i % 2 ? "zoom-out" : "zoom-in").click()""",
    "search": """i => {
      const box = document.getElementById("find");
      box.value = box.value ? "" : "a";
      box.dispatchEvent(new Event("input", { bubbles: true }));
    }""",
}


def works(page: Page, act: str) -> list[float]:
    """Milliseconds of the page's own work for each of TIMES acts; one before them is not
    counted."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def spent() -> float:
        found = {
            one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]
        }
        return 1000 * sum(found[name] for name in METRICS)

    out = []
    for i in range(TIMES + 1):
        before = spent()
        page.evaluate(act, i)
        page.evaluate(FRAMES)
        out.append(spent() - before)
    session.detach()
    return out[1:]


def opened(browser: Browser, path: Path) -> tuple[Page, float]:
    """The page, and seconds until it could be used."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
    return page, time.perf_counter() - start


def main() -> None:
    """Print the table, and which limits are not kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    heads = ["page", "MB", "ready, s", *(f"{name}, ms (worst)" for name in ACTS)]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    over = []
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for folder in options.folders:
            path = (folder / "report.html").resolve()
            pages = [opened(browser, path) for _ in range(3)]
            page = pages[-1][0]
            page.locator("#map").scroll_into_view_if_needed()
            page.wait_for_timeout(500)
            times = {name: works(page, act) for name, act in ACTS.items()}
            cells = [f"{statistics.median(one):.1f} ({max(one):.1f})" for one in times.values()]
            ready = statistics.median(seconds for _, seconds in pages)
            print(
                f"| {folder.name} | {path.stat().st_size / 1e6:.2f} | {ready:.2f} | "
                f"{' | '.join(cells)} |",
                flush=True,
            )
            over += [
                f"{folder.name}: {name}"
                for name, most in LIMITS.items()
                if statistics.median(times[name]) > most
            ]
            for one, _ in pages:
                one.close()
    print(f"over the limit: {', '.join(over)}" if over else "All limits are kept.")


if __name__ == "__main__":
    main()
