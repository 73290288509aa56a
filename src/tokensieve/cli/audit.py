"""Find tokens that give the label away, train a classifier and write an HTML report.

A shortcut is a token in at least 1% of a class's documents, with q < 0.05 and a conservative bound on its class association that is
more than halfway to certainty, that also looks like an artefact of how the data was collected. A label is worth checking if the
model predicts another class with a margin of 0.8. The glossary in the documentation lists all thresholds.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokensieve.auditing.settings import Settings
from tokensieve.cli.command import command, out_option, progress, quiet_option
from tokensieve.cli.labels import audit_labels, labels_to_audit
from tokensieve.cli.options import SOURCES, Splitting, advise_streaming, reading_of, sources
from tokensieve.options import option


@command(source=SOURCES)
def audit(
    source: list[str],
    settings: Settings,
    splitting: Splitting,
    pictures: bool = option(True, "Write every picture as SVG and PNG."),
    card: bool = option(False, "Write card.md: the findings as a section of a dataset card."),
    out: Path = out_option("tokensieve-audit"),
    quiet: bool = quiet_option(),
) -> int:
    """Audit a source, or each of its labels."""
    from tokensieve.auditing.limits import exceeded_report
    from tokensieve.report.terminal import show as show_report

    given, shown = sources(source)
    advise_streaming(shown, settings, quiet)
    asked, left_out = labels_to_audit(given, settings)
    how = {"splitting": splitting, "quiet": quiet, "draw": pictures, "card": card}
    if asked:

        def run(one: Any, folder: Path, name: str) -> Any:
            return run_audit(given, one, folder, name=name, show=False, **how)  # type: ignore[arg-type]

        return audit_labels(asked, left_out, shown, out, quiet, run)
    found = run_audit(given, settings, out, **how)  # type: ignore[arg-type]
    if found.fails and not quiet:
        show_report(exceeded_report(found, shown, out))
    return 3 if found.fails else 0


def run_audit(
    source: Any,
    settings: Settings,
    out: Path,
    splitting: Splitting,
    quiet: bool,
    draw: bool = True,
    card: bool = False,
    name: str = "",
    show: bool = True,
) -> Any:
    """Read, audit, write everything or nothing, and show the result.

    Args:
        source: to be read.
        settings: of reading and of the audit.
        out: folder for the results.
        splitting: how texts are split.
        quiet: nothing on the terminal.
        draw: write every picture.
        card: write card.md.
        name: of the corpus, if it is not that of its source.
        show: show the result.
    """
    from tokensieve.auditing.run import audit as run
    from tokensieve.files import check_writable
    from tokensieve.report.dataset_card import dataset_card
    from tokensieve.report.terminal import show as show_report
    from tokensieve.report.writer import save
    from tokensieve.text.corpus import read_corpus

    start = time.perf_counter()
    tokenizer = splitting.splitter()
    check_writable(out)
    with progress(quiet) as tell:
        tell("reading", 0.0)
        corpus = read_corpus(source, settings)
        corpus = replace(corpus, name=name) if name else corpus
        result = run(corpus, settings, tokenizer, tell, {"reading": time.perf_counter() - start})
        result.more.update(reading_of(settings) | splitting.as_given())
        tell("writing", 0.0)
        also = {"card.md": dataset_card(result)} if card else {}
        save(result, out, draw, start, also=also)
    if show and not quiet:
        show_report(result.report(), out, result.seconds["total"])
    return result
