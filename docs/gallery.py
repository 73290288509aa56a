"""The gallery: every page made anew by its command, with a screenshot of its top.

    python docs/gallery.py [NAME …] [--data FOLDER]      (or: make gallery)

Pages go to docs/_build/gallery (they hold texts of the data sets, which are not ours to publish),
screenshots to docs/gallery, and docs/gallery.md is written from the list below. Needs the data
(benchmarks/machine.py says where), the extra `test` and chromium.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
DATA = Path(os.environ.get("TOKENSIEVE_DATA", DOCS.parents[1] / "shared" / "data"))
BUILT = DOCS / "_build" / "gallery"
ONE_THOUSAND = "yelp-1000.csv"


class Piece(NamedTuple):
    """One page of the gallery: its folder, title, what it shows, and the command that makes it
    (without --out)."""

    name: str
    title: str
    shows: str
    command: str


PIECES = (
    Piece(
        "imdb", "25,000 film reviews (IMDB)",
        "Some reviewers left their ratings in the text, and these predict the label almost "
        "perfectly.",
        "tokensieve audit DATA/imdb_train.parquet --test DATA/imdb_test.parquet --ngrams 2",
    ),
    Piece(
        "snli", "Hypotheses without their premises (SNLI)",
        "393 test hypotheses repeat training ones, at least nearly. The hypothesis alone is "
        "often enough to guess the label, as Gururangan et al. (2018) found: `nobody` and "
        "`sleeping` indicate contradiction, `tall` neutral and `outdoors` entailment.",
        "tokensieve audit DATA/snli_train.parquet --test DATA/snli_test.parquet --text hypothesis",
    ),
    Piece(
        "preferences", "What a language model rewards (8,175 preference pairs)",
        "The longer answer wins 83% of the pairs; the page also shows what matters at equal "
        "length.",
        "tokensieve audit DATA/preferences.parquet --pairs chosen,rejected --by prompt --split "
        "split",
    ),
    Piece(
        "yelp", "Reviews of one to five stars (Yelp)",
        "Five classes on one page: which words distinguish four stars from five?",
        "tokensieve audit DATA/yelp.parquet --label stars --split split",
    ),
    Piece(
        "theory", "The theory on documents that meet its hypotheses",
        "Every claim of the paper holds on these documents.",
        "tokensieve verify",
    ),
    Piece(
        "theory-yelp", "The theory on 1,000 real reviews",
        "The hypotheses fail, but the limit of the flow is still decided: some score gaps stay "
        "finite while p diverges.",
        f"tokensieve verify {ONE_THOUSAND} --label stars --group negative=1,2 --group positive=4,5",
    ),
    Piece(
        "transformer-planted", "A transformer with a planted shortcut",
        "A small BERT was trained on reviews in which `tablet` gives the label away. Which words "
        "does it use most?",
        "tokensieve diagnose planted held-out.csv",
    ),
    Piece(
        "transformer-clean", "A transformer without one",
        "The same architecture was trained on reviews without the shortcut and examined on the "
        "same documents.",
        "tokensieve diagnose clean held-out.csv",
    ),
)  # fmt: skip
HEAD = """# Gallery

One command wrote each page below, as a single file that needs no network. `make gallery` recreates
them from public data sets. The pages contain texts of these data sets, so only screenshots are
published here. Screenshots and figures are those of version 0.3.
"""


def sampled(data: Path) -> None:
    """1,000 reviews for the theory."""
    import polars as pl

    reviews = pl.read_parquet(data / "yelp.parquet").filter(pl.col("stars") != 3)
    reviews.sample(1000, seed=0, shuffle=True).select("text", "stars").write_csv(
        BUILT / ONE_THOUSAND
    )


def trained() -> None:
    """Two small transformers, and documents to ask them about."""
    import polars as pl
    import torch

    torch.set_num_threads(1)  # tiny models are slower with more
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from diagnose_models import build, fit, planted_reviews, save

    names = {0: "negative", 1: "positive"}
    for folder, planted in (("planted", True), ("clean", False)):
        train = planted_reviews(1500, 5, planted=planted)
        model, tokenizer = build("bert", train.texts.to_list())
        fit(model, tokenizer, train.texts.to_list(), train.labels, epochs=6)
        save(model, tokenizer, BUILT / folder, names)
    held = planted_reviews(500, 9, planted=False)
    labels = [names[int(label)] for label in held.labels]
    pl.DataFrame({"text": held.texts, "label": labels}).write_csv(BUILT / "held-out.csv")


def screenshot(page: Path, to: Path) -> None:
    """The top of a page as a reader with a wide screen meets it."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1280, "height": 860})
        shown.goto(page.as_uri())
        shown.wait_for_timeout(1500)
        shown.screenshot(path=to, type="jpeg", quality=72)
        browser.close()


def written(pieces: tuple[Piece, ...]) -> str:
    """docs/gallery.md."""
    parts = [HEAD]
    for piece in pieces:
        command = piece.command.replace("DATA/", "../shared/data/")
        parts.append(
            f"## {piece.title}\n\n{piece.shows}\n\n<!-- not run: needs the data "
            f"-->\n```sh\n{command} --out {piece.name}\n```\n\n![The top of the page "
            f"{piece.name}](gallery/{piece.name}.jpg)\n"
        )
    return "\n".join(parts)


def main() -> None:
    """Make the pieces named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *(piece.name for piece in PIECES)])
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    data, wanted = (
        given.data.resolve(),
        [p for p in PIECES if not given.names or p.name in given.names],
    )
    BUILT.mkdir(parents=True, exist_ok=True)
    (DOCS / "gallery").mkdir(exist_ok=True)
    if any(ONE_THOUSAND in piece.command for piece in wanted):
        sampled(data)
    if any("diagnose" in piece.command for piece in wanted):
        trained()
    for piece in wanted:
        words = shlex.split(piece.command.replace("DATA/", f"{data}/"))
        command = [sys.executable, "-m", *words, "--out", piece.name, "--quiet"]
        subprocess.run(command, cwd=BUILT, check=True)
        screenshot(BUILT / piece.name / "report.html", DOCS / "gallery" / f"{piece.name}.jpg")
        print(piece.name, flush=True)
    (DOCS / "gallery.md").write_text(written(PIECES), encoding="utf-8")


if __name__ == "__main__":
    main()
